/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Where known packets come from: streams by seed, or a capture. */

#include "drivers/flowsim/kind/args.h"
#include "drivers/flowsim/match/view.h"

/* What the packets are: filled by the kind of source. Does not change after it was made. */
struct sim_source {
	uint32_t n_streams;
	/* places of a round, before they are spread over queues: streams, or NULL: each one, in order */
	uint32_t n_places;
	uint32_t *places;
	uint32_t max_length; /* of a frame */
	/* the stream's headers; the port is not set */
	void (*view)(const struct sim_source *source, uint32_t number, struct sim_view *view);
	uint16_t (*length)(const struct sim_source *source, uint32_t number);
	void (*destroy)(struct sim_source *source);
	/* by seed: the set's stream is number << shift | side */
	const struct stream_set *set;
	uint8_t shift, side;
	/* a capture: frames lie one after the other, each beginning on a line of the cache */
	const uint8_t *frames;
	const uint64_t *frame_at; /* by stream */
	const uint16_t *frame_length;
	uint16_t written; /* bytes of a frame that are written to a packet, at most */
};

/* What the arguments ask for: streams or a capture. Returns 0, or a negative errno and why. */
int sim_source_create(struct sim_source **source, const struct sim_args *args, struct error *error);
void sim_source_destroy(struct sim_source *source); /* accepts NULL */
