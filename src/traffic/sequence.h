/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The order in which the streams of a set send: a round of places, each the number of a stream, that is
 * gone through again and again. By seed; the same words give the same round everywhere (Zipf's as far as
 * logarithms are the same to the last digit). The two sides of a set, each with a round of its own, have
 * orders of their own by one seed, and the same flows are busy in both.
 */

#include <stdint.h>

#include "base/error.h"
#include "traffic/stream.h"

enum sequence_load {
	SEQUENCE_IN_ORDER, /* each stream once, by number */
	SEQUENCE_UNIFORM,  /* each stream once, shuffled */
	SEQUENCE_ZIPF,	   /* drawn by rank^-s; which flow has which rank is drawn too */
};

struct sequence_config {
	enum sequence_load load;
	double exponent; /* Zipf's s, above 0 and at most 4 */
	uint64_t seed;
	/* Places of a Zipf round; 0: four for each stream, at least 2^16, at most 2^22. With both sides
	 * the two streams of a flow are equally likely. Streams that no draw hit are not in the round. */
	uint32_t n_places;
};

/*
 * Makes a round for the streams of those sides of a set with `flows` flows. Returns 0 and an array for
 * free(), or -EINVAL, -ENOMEM with a text.
 */
int sequence_create(uint32_t **places, uint32_t *n_places, uint32_t flows, enum stream_sides sides,
	const struct sequence_config *config, struct error *error);

/*
 * The words "order", "uniform", "zipf" (s = 1) and "zipf:S", as load and exponent. Returns 0 or -EINVAL
 * with a text.
 */
int sequence_load_parse(struct sequence_config *config, const char *word, struct error *error);
