/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Values of arguments: numbers, choices, lists of words, and the lists of the profile. Each returns 0 or -EINVAL with a
 * line that names the word.
 */

#include "drivers/flowsim/kind/args.h"

/* A decimal number and nothing else. */
int sim_args_number(const char *word, const char *text, uint64_t low, uint64_t high,
	uint64_t *value, struct error *error);

/* One of `n` words; *chosen is its place. */
int sim_args_choice(const char *word, const char *text, const char *const words[], unsigned n,
	unsigned *chosen, struct error *error);

/*
 * A list of words as bits, laid over *bits: see args.h. `bit` tells the bit of a word, its names are for
 * suggestions.
 */
struct sim_args_bit {
	const char *name;
	int bit;
};
int sim_args_list(const char *word, const char *text, const struct sim_args_bit bits_of[],
	unsigned n, uint64_t *bits, struct error *error);

/* Lists of the profile. */
int sim_args_actions(
	struct sim_args *args, const char *word, const char *text, struct error *error);
int sim_args_items(struct sim_args *args, const char *word, const char *text, struct error *error);
int sim_args_hostile(
	struct sim_args *args, const char *word, const char *text, struct error *error);
