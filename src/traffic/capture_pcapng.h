/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A walk over the blocks of a pcapng file, just deep enough to change what libpcap would refuse
 * (traffic/capture_source.h says what and why). Everything else, damage included, goes through as
 * it is and is libpcap's to judge.
 *
 * Memory: a byte for each interface of a section.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "traffic/capture_source.h"

#define PCAPNG_SECTION_HEADER 0x0a0d0d0a /* the same in both byte orders */

/* So many bytes the walk wants to see of what comes next. */
#define PCAPNG_LOOK_AHEAD 16

/* Length of a body that goes on to the end of the file. */
#define PCAPNG_TO_THE_END UINT64_MAX

struct pcapng_walk {
	struct capture_blocks blocks;
	bool swapped;	       /* the section is not in this machine's byte order */
	bool trailer;	       /* the next bytes are the trailer of a block that was rewritten */
	uint32_t was, is;      /* length of that block in the file, and as rewritten */
	uint32_t snaplen;      /* of the section's first interface, 0 = no limit */
	uint8_t *foreign;      /* by interface of the section: is it another type than Ethernet? */
	size_t n_interfaces;   /* of the section */
	size_t max_interfaces; /* that `foreign` has room for */
	uint8_t rewritten[32];
	size_t rewritten_length; /* 0 = nothing waits */
	size_t rewritten_taken;
};

/*
 * Looks at the next `length` bytes, which begin with a block (or a trailer), up to
 * PCAPNG_LOOK_AHEAD of them, fewer only at the end of the file. Returns how many of them are
 * replaced by walk->rewritten; after that, `body` bytes go through as they are.
 */
size_t pcapng_walk_next(
	struct pcapng_walk *walk, const uint8_t *bytes, size_t length, uint64_t *body);

/* Hands out up to `size` of the rewritten bytes. */
size_t pcapng_walk_take(struct pcapng_walk *walk, char *out, size_t size);

void pcapng_walk_fini(struct pcapng_walk *walk);
