/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/suggest.h"

#include <stddef.h>
#include <string.h>

#define LONGEST 31

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Optimal string alignment; only words up to LONGEST. */
static unsigned distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
	unsigned cost[LONGEST + 1][LONGEST + 1];

	for (unsigned i = 0; i <= a_length; i++)
		cost[i][0] = i;
	for (unsigned j = 0; j <= b_length; j++)
		cost[0][j] = j;
	for (unsigned i = 1; i <= a_length; i++) {
		for (unsigned j = 1; j <= b_length; j++) {
			cost[i][j] = cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
			cost[i][j] = least(cost[i][j], cost[i - 1][j] + 1);
			cost[i][j] = least(cost[i][j], cost[i][j - 1] + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				cost[i][j] = least(cost[i][j], cost[i - 2][j - 2] + 1);
		}
	}
	return cost[a_length][b_length];
}

/* The one candidate whose last part the word is, as "verify" is of "offload-verify"; NULL where none is, or several. */
static const char *ends_in(
	const char *word, size_t length, const char *const *candidates, unsigned n)
{
	const char *only = NULL;

	for (unsigned i = 0; i < n; i++) {
		size_t whole = strlen(candidates[i]);

		if (whole <= length + 1 || candidates[i][whole - length - 1] != '-' ||
			strcmp(candidates[i] + whole - length, word) != 0)
			continue;
		if (only)
			return NULL;
		only = candidates[i];
	}
	return only;
}

const char *suggest(const char *word, const char *const *candidates, unsigned n)
{
	size_t length = strlen(word);
	unsigned best_distance = 0;

	if (length == 0 || length > LONGEST)
		return NULL;
	const char *best = ends_in(word, length, candidates, n);

	if (best)
		return best;
	for (unsigned i = 0; i < n; i++) {
		size_t candidate_length = strlen(candidates[i]);

		if (candidate_length > LONGEST)
			continue;
		unsigned changes = distance(word, length, candidates[i], candidate_length);

		/* of a word of 3 letters one may be wrong, of 6 two: beyond, it is another word */
		if (changes > (candidate_length + 1) / 3 || changes >= candidate_length)
			continue;
		if (!best || changes < best_distance) {
			best = candidates[i];
			best_distance = changes;
		}
	}
	return best;
}
