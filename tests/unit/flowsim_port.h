/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Simulated ports for tests that use them as any program does: through ethdev and rte_flow alone. EAL is
 * started once a program (nic_begin), each port has a pool of its own.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <rte_bus_vdev.h>
#include <rte_ethdev.h>
#include <rte_flow.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include "base/dpdk.h"

#define NIC_QUEUES 2
#define NIC_POOL 1023

struct nic {
	char name[32];
	uint16_t id;
	struct rte_mempool *pool;
};

/* What of a packet a rule needs to be for its stream alone: UDP over IPv4. */
struct tuple {
	rte_be32_t src, dst;
	rte_be16_t sport, dport;
};

static inline int nic_begin(void **state)
{
	struct error error;

	(void)state;
	return dpdk_start(128, &error) < 0 ? -1 : 0;
}

static inline void nic_start(const struct nic *nic)
{
	assert_int_equal(rte_eth_dev_start(nic->id), 0);
}

/* `args` as behind the device's name: "flows=8,profile=tiny". Two receive queues, started. */
static inline void nic_open(struct nic *nic, const char *name, const char *args)
{
	struct rte_eth_conf conf = {.rxmode = {.mq_mode = RTE_ETH_MQ_RX_NONE}};

	snprintf(nic->name, sizeof(nic->name), "%s", name);
	nic->pool = rte_pktmbuf_pool_create(
		name, NIC_POOL, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	assert_non_null(nic->pool);
	assert_int_equal(rte_vdev_init(name, args), 0);
	assert_int_equal(rte_eth_dev_get_port_by_name(name, &nic->id), 0);
	assert_int_equal(rte_eth_dev_configure(nic->id, NIC_QUEUES, 1, &conf), 0);
	for (uint16_t i = 0; i < NIC_QUEUES; i++)
		assert_int_equal(rte_eth_rx_queue_setup(
					 nic->id, i, 256, (unsigned)SOCKET_ID_ANY, NULL, nic->pool),
			0);
	assert_int_equal(rte_eth_tx_queue_setup(nic->id, 0, 256, (unsigned)SOCKET_ID_ANY, NULL), 0);
	nic_start(nic);
}

static inline void nic_close(struct nic *nic)
{
	assert_int_equal(rte_eth_dev_stop(nic->id), 0);
	assert_int_equal(rte_eth_dev_close(nic->id), 0);
	/* closing it took it away from ethdev: what is left of it is the device */
	(void)rte_vdev_uninit(nic->name);
	/* every packet that was handed over has come back */
	assert_int_equal(rte_mempool_avail_count(nic->pool), NIC_POOL);
	rte_mempool_free(nic->pool);
}

static inline struct tuple tuple_of(const struct rte_mbuf *packet)
{
	const struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(packet, const void *, 14);
	const struct rte_udp_hdr *udp = rte_pktmbuf_mtod_offset(packet, const void *, 34);

	return (struct tuple){ip->src_addr, ip->dst_addr, udp->src_port, udp->dst_port};
}

static inline bool same_tuple(const struct tuple *a, const struct tuple *b)
{
	return a->src == b->src && a->dst == b->dst && a->sport == b->sport && a->dport == b->dport;
}

/* What came, of all packets and of those with one tuple. */
struct taken {
	uint64_t packets, bytes;
	uint64_t marked; /* with `mark` */
	uint64_t others; /* with another */
	uint64_t tuple, tuple_bytes;
	struct tuple last;
};

/* Receives n packets of a queue, or, with n = 0, until there are no more (passes=). */
static inline void nic_take(const struct nic *nic, uint16_t queue, uint64_t n, uint32_t mark,
	const struct tuple *tuple, struct taken *taken)
{
	unsigned empty = 0;

	memset(taken, 0, sizeof(*taken));
	while (n != 0 ? taken->packets < n : empty < 1000) {
		struct rte_mbuf *packets[32];
		uint64_t room = n != 0 ? RTE_MIN(n - taken->packets, 32u) : 32;
		uint16_t got = rte_eth_rx_burst(nic->id, queue, packets, (uint16_t)room);

		empty = got == 0 ? empty + 1 : 0;
		assert_true(empty < 10000000);
		for (uint16_t i = 0; i < got; i++) {
			taken->last = tuple_of(packets[i]);
			taken->bytes += packets[i]->pkt_len;
			if (packets[i]->ol_flags & RTE_MBUF_F_RX_FDIR_ID) {
				taken->marked += packets[i]->hash.fdir.hi == mark;
				taken->others += packets[i]->hash.fdir.hi != mark;
			}
			if (tuple != NULL && same_tuple(tuple, &taken->last)) {
				taken->tuple++;
				taken->tuple_bytes += packets[i]->pkt_len;
			}
			rte_pktmbuf_free(packets[i]);
		}
		taken->packets += got;
	}
}

/* A stream of the port's: that of the packet that comes next. */
static inline struct tuple nic_tuple(const struct nic *nic)
{
	struct taken taken;

	nic_take(nic, 0, 1, 0, NULL, &taken);
	return taken.last;
}

/* Items of `eth / ipv4 / udp` with a tuple; they point into the struct. */
struct tuple_items {
	struct rte_flow_item_ipv4 ip, ip_mask;
	struct rte_flow_item_udp udp, udp_mask;
	struct rte_flow_item items[4];
};

static inline const struct rte_flow_item *tuple_items(
	struct tuple_items *to, const struct tuple *tuple)
{
	*to = (struct tuple_items){
		.ip.hdr = {.src_addr = tuple->src, .dst_addr = tuple->dst},
		.ip_mask.hdr = {.src_addr = UINT32_MAX, .dst_addr = UINT32_MAX},
		.udp.hdr = {.src_port = tuple->sport, .dst_port = tuple->dport},
		.udp_mask.hdr = {.src_port = UINT16_MAX, .dst_port = UINT16_MAX},
		.items =
			{
				{.type = RTE_FLOW_ITEM_TYPE_ETH},
				{.type = RTE_FLOW_ITEM_TYPE_IPV4},
				{.type = RTE_FLOW_ITEM_TYPE_UDP},
				{.type = RTE_FLOW_ITEM_TYPE_END},
			},
	};
	to->items[1].spec = &to->ip;
	to->items[1].mask = &to->ip_mask;
	to->items[2].spec = &to->udp;
	to->items[2].mask = &to->udp_mask;
	return to->items;
}
