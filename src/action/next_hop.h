/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Next hops: where routed packets go on to, and the link header that they get. A program names a next hop by its
 * number, so that a changed neighbour or a lost link is one store, whatever number of flows goes there.
 *
 * The numbers are chosen by the one who sets next hops. A number that was never set, or was cleared, is an invalid next
 * hop: its packets are dropped.
 *
 * A change is seen whole or not at all: what is new is written to a slot that no worker reads, and published by one
 * atomic store. The old slot is used again once every worker has passed a quiescent state of the RCU variable.
 *
 * Threads: one control thread creates, sets, clears and destroys; workers, registered with the RCU variable, call
 * next_hops_get() and keep what they get until their next quiescent state. Create and destroy own the memory.
 */

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_rcu_qsbr.h>

#include "base/error.h"

/* A slot. 32 bytes, so that none lies across two lines of the cache. */
struct next_hop {
	uint8_t mac_dst[6]; /* the neighbour; with mac_src a link header's first 12 bytes */
	uint8_t mac_src[6]; /* our port */
	uint16_t vlan;	    /* id of the tag (0x8100) that frames get, or 0: none */
	uint16_t port;
	uint16_t mtu; /* of IP packets, bytes */
	bool valid;   /* false: packets are dropped, the rest has no meaning */
	uint8_t pad[13];
};

static_assert(sizeof(struct next_hop) == 32, "slots must not lie across lines of the cache");

#define NEXT_HOP_MAX_NUMBERS 65536

struct next_hops {
	uint32_t n;			   /* numbers are below; set once */
	uint32_t n_slots;		   /* set once */
	_Atomic uint32_t *slot;		   /* by number; 0: invalid */
	struct next_hop *hops;		   /* by slot; the first is the invalid one, for ever */
	struct next_hops_retired *retired; /* the control thread's alone */
};

/*
 * Makes room for numbers 0 to `n` - 1 (n is 1 to NEXT_HOP_MAX_NUMBERS); all are invalid. `changes`: so many changes can
 * wait for the workers. `qsbr` outlives the next hops. Returns NULL with errno EINVAL or ENOMEM.
 */
struct next_hops *next_hops_create(uint32_t n, uint32_t changes, struct rte_rcu_qsbr *qsbr);

/*
 * Sets what a number means from now on. Returns 0; -EINVAL, with the reason, for a number or next hop that can't be;
 * -EAGAIN when too many changes wait for the workers: nothing has changed, and a later call will succeed.
 */
int next_hops_set(
	struct next_hops *hops, uint32_t number, const struct next_hop *hop, struct error *error);

/* Makes the number invalid. Needs no slot, and fails with -EINVAL only. */
int next_hops_clear(struct next_hops *hops, uint32_t number, struct error *error);

/* Accepts NULL. No worker may read any more. */
void next_hops_destroy(struct next_hops *hops);

/* Workers: what a number means now. A number beyond `n` is invalid. */
static inline const struct next_hop *next_hops_get(const struct next_hops *hops, uint32_t number)
{
	uint32_t slot = 0;

	if (number < hops->n)
		slot = atomic_load_explicit(&hops->slot[number], memory_order_acquire);
	return &hops->hops[slot];
}
