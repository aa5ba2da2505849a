/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What a client has not taken yet: a buffer of fixed size, filled line by line and sent as the client
 * reads. Whoever wants to add something asks for room first, and comes again later without.
 */

#include <stdbool.h>
#include <stddef.h>

#define OUTPUT_BYTES 65536

struct output {
	size_t begin, end; /* what waits */
	char bytes[OUTPUT_BYTES];
};

static inline bool output_empty(const struct output *output)
{
	return output->begin == output->end;
}

static inline size_t output_free(const struct output *output)
{
	return OUTPUT_BYTES - (output->end - output->begin);
}

/* Room for `n` bytes in one piece, or NULL as long as there is none; output_add() says how many came. */
char *output_room(struct output *output, size_t n);
static inline void output_add(struct output *output, size_t n)
{
	output->end += n;
}

/* Sends what the socket takes without waiting. Returns 0, or the negative errno of a broken one. */
int output_send(struct output *output, int fd);
