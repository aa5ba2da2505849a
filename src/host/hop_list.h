/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Lists of hops, each kept once: a million routes have few different ones. A list lives as long as somebody has it. One
 * thread's.
 */

#include <stdbool.h>
#include <stdint.h>

#include "route/kernel.h"

struct hop_list {
	struct hop_list *next; /* in its bucket */
	uint32_t hash;
	uint32_t users;
	unsigned n;
	struct kernel_hop hop[];
};

struct hop_lists {
	struct hop_list **buckets;
	uint32_t n_buckets;
	uint32_t n; /* lists */
};

/* 0 or -ENOMEM. */
int hop_lists_init(struct hop_lists *lists);
/* No list is in use any more. Of zeros too. */
void hop_lists_fini(struct hop_lists *lists);

/*
 * The list of these `n` hops, whose padding is zero, for one more user; NULL: there is no memory, or `n` is 0. hop_list_put() gives it back, and accepts
 * NULL.
 */
struct hop_list *hop_list_get(struct hop_lists *lists, const struct kernel_hop *hop, unsigned n);
/* For one more user. Accepts NULL. */
void hop_list_hold(struct hop_list *hops);
void hop_list_put(struct hop_lists *lists, struct hop_list *hops);

/* Whether these are the same hops, dead or not. */
bool hop_list_same(const struct kernel_hop *one, unsigned n_one, const struct kernel_hop *other,
	unsigned n_other);
/* Whether each of the former is among the latter. */
bool hop_list_among(const struct kernel_hop *few, unsigned n_few, const struct kernel_hop *many,
	unsigned n_many);
