/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The best path that rte_hash allows: no states, no ageing, no reports, only a record with counters. Key
 * and hash are made in one go while the key is in registers, the key is padded to 48 bytes (then a slot
 * is one line, and compared by SIMD), a burst of 64 is looked up at once by the hashes at hand, and the
 * records are prefetched before they are written.
 *
 * Plain UDP and TCP over IPv4 without options alone: what it does not know is not counted.
 *
 * Owned by one thread.
 */

#include <stdint.h>

#include <rte_mbuf.h>

struct stateless;

/* For `capacity` flows, with its table from the heap of `socket`. 0 or a negative errno. */
int stateless_create(struct stateless **stateless, uint32_t capacity, int socket);
/* Accepts NULL. */
void stateless_destroy(struct stateless *stateless);

/* Accounts `n` packets, at most 64, that arrived at `now`. */
void stateless_burst(
	struct stateless *stateless, struct rte_mbuf **packets, unsigned n, uint64_t now);

/* Flows that have a record. */
uint32_t stateless_flows(const struct stateless *stateless);
