/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/refusal.h"

#include <string.h>

static void clean_words(char to[REFUSAL_WORDS], const char *words)
{
	size_t n = 0;

	memset(to, 0, REFUSAL_WORDS);
	if (words == NULL)
		return;
	for (; n < REFUSAL_WORDS - 1 && words[n] != '\0'; n++)
		to[n] = words[n] >= 0x20 && words[n] < 0x7f ? words[n] : '?';
}

static uint8_t refusal_count(struct refusals *refusals, unsigned i)
{
	struct refusal *refusal = &refusals->refusal[i];
	/* nobody else writes: no need for a locked addition */
	uint64_t times = atomic_load_explicit(&refusal->times, memory_order_relaxed);

	atomic_store_explicit(&refusal->times, times + 1, memory_order_relaxed);
	return (uint8_t)(OFFLOAD_REFUSALS + i);
}

uint8_t refusal_note(struct refusals *refusals, int error, const char *words)
{
	unsigned n = atomic_load_explicit(&refusals->n, memory_order_relaxed);
	char cleaned[REFUSAL_WORDS];
	struct refusal *refusal;

	clean_words(cleaned, words);
	for (unsigned i = 0; i < n; i++) {
		refusal = &refusals->refusal[i];
		if (refusal->error == error && strcmp(refusal->words, cleaned) == 0)
			return refusal_count(refusals, i);
	}
	if (n == OFFLOAD_N_REFUSALS)
		return refusal_count(refusals, n - 1);
	/* the last one has words for all that follow too, or it would put them into wrong mouths */
	if (n == OFFLOAD_N_REFUSALS - 1)
		clean_words(cleaned, "one of more refusals than are told apart");
	refusal = &refusals->refusal[n];
	refusal->error = error;
	memcpy(refusal->words, cleaned, sizeof(cleaned));
	atomic_store_explicit(&refusals->n, n + 1, memory_order_release);
	return refusal_count(refusals, n);
}

const struct refusal *refusal_of(const struct refusals *refusals, uint8_t reason)
{
	unsigned n = atomic_load_explicit(&refusals->n, memory_order_acquire);

	if (reason < OFFLOAD_REFUSALS || reason >= OFFLOAD_REFUSALS + n)
		return NULL;
	return &refusals->refusal[reason - OFFLOAD_REFUSALS];
}
