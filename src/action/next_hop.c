/* SPDX-License-Identifier: BSD-3-Clause */
#include "action/next_hop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#define MAX_VLAN 4094
/* RFC 791 section 3.2: every link carries 68 bytes. */
#define MIN_MTU 68
#define NO_PORT UINT16_MAX
#define MAX_CHANGES 65536

/* Slots out of use, oldest first, each with the moment from which on no new reader finds it. */
struct next_hops_retired {
	struct rte_rcu_qsbr *qsbr;
	uint32_t head; /* the oldest */
	uint32_t count;
	uint32_t size;
	struct {
		uint32_t slot;
		uint64_t token; /* 0: no worker has ever seen it */
	} ring[];
};

struct next_hops *next_hops_create(uint32_t n, uint32_t changes, struct rte_rcu_qsbr *qsbr)
{
	struct next_hops *hops;

	if (n == 0 || n > NEXT_HOP_MAX_NUMBERS || changes == 0 || changes > MAX_CHANGES) {
		errno = EINVAL;
		return NULL;
	}
	hops = calloc(1, sizeof(*hops));
	if (hops == NULL)
		return NULL;
	hops->n = n;
	hops->n_slots = 1 + n + changes;
	hops->slot = calloc(n, sizeof(*hops->slot));
	hops->hops = aligned_alloc(RTE_CACHE_LINE_SIZE,
		RTE_ALIGN_CEIL(hops->n_slots * sizeof(*hops->hops), RTE_CACHE_LINE_SIZE));
	hops->retired =
		calloc(1, sizeof(*hops->retired) + hops->n_slots * sizeof(hops->retired->ring[0]));
	if (hops->slot == NULL || hops->hops == NULL || hops->retired == NULL) {
		next_hops_destroy(hops);
		errno = ENOMEM;
		return NULL;
	}
	memset(hops->hops, 0, hops->n_slots * sizeof(*hops->hops));
	hops->retired->qsbr = qsbr;
	hops->retired->size = hops->n_slots;
	for (uint32_t slot = 1; slot < hops->n_slots; slot++)
		hops->retired->ring[hops->retired->count++].slot = slot;
	return hops;
}

static void retire(struct next_hops_retired *retired, uint32_t slot)
{
	uint32_t at = (retired->head + retired->count) % retired->size;

	if (slot == 0)
		return;
	retired->ring[at].slot = slot;
	retired->ring[at].token = rte_rcu_qsbr_start(retired->qsbr);
	retired->count++;
}

/* A slot that no worker reads, or 0. */
static uint32_t take_next_hop(struct next_hops_retired *retired)
{
	uint32_t at = retired->head;

	if (retired->count == 0)
		return 0;
	if (retired->ring[at].token != 0 &&
		rte_rcu_qsbr_check(retired->qsbr, retired->ring[at].token, false) != 1)
		return 0;
	retired->head = (at + 1) % retired->size;
	retired->count--;
	return retired->ring[at].slot;
}

static void publish(struct next_hops *hops, uint32_t number, uint32_t slot)
{
	uint32_t old = atomic_load_explicit(&hops->slot[number], memory_order_relaxed);

	atomic_store_explicit(&hops->slot[number], slot, memory_order_release);
	retire(hops->retired, old);
}

static int number_check(const struct next_hops *hops, uint32_t number, struct error *error)
{
	if (number < hops->n)
		return 0;
	return error_set(error, -EINVAL, "next hop %u: numbers are below %u", number, hops->n);
}

static int hop_check(uint32_t number, const struct next_hop *hop, struct error *error)
{
	if (!hop->valid)
		return 0;
	if (hop->vlan > MAX_VLAN)
		return error_set(error, -EINVAL, "next hop %u: VLAN %u is above %d", number,
			hop->vlan, MAX_VLAN);
	if (hop->port == NO_PORT)
		return error_set(error, -EINVAL, "next hop %u: no port", number);
	if (hop->mtu < MIN_MTU)
		return error_set(error, -EINVAL, "next hop %u: MTU %u is below %d", number,
			hop->mtu, MIN_MTU);
	if (hop->mac_src[0] & 1)
		return error_set(
			error, -EINVAL, "next hop %u: the source MAC is a multicast one", number);
	return 0;
}

int next_hops_set(
	struct next_hops *hops, uint32_t number, const struct next_hop *hop, struct error *error)
{
	int code = number_check(hops, number, error);
	uint32_t slot;

	if (code == 0)
		code = hop_check(number, hop, error);
	if (code != 0)
		return code;
	slot = take_next_hop(hops->retired);
	if (slot == 0)
		return error_set(error, -EAGAIN,
			"next hop %u: too many changes wait for the workers; try again", number);
	hops->hops[slot] = *hop;
	memset(hops->hops[slot].pad, 0, sizeof(hop->pad));
	publish(hops, number, slot);
	return 0;
}

int next_hops_clear(struct next_hops *hops, uint32_t number, struct error *error)
{
	int code = number_check(hops, number, error);

	if (code == 0)
		publish(hops, number, 0);
	return code;
}

void next_hops_destroy(struct next_hops *hops)
{
	if (hops == NULL)
		return;
	free(hops->retired);
	free(hops->hops);
	free(hops->slot);
	free(hops);
}
