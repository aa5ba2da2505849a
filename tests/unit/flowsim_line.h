/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Simulated ports over net_ring: what a test puts into the ring arrives at the port, what the port sends
 * comes to lie in the ring. One ring for both, so look at what was sent before anybody receives. There
 * is one for each queue.
 */

#include "unit/flowsim_port.h"

#include <stdlib.h>

#include <rte_ring.h>

#define LINE_QUEUES 2
#define LINE_POOL 2047
#define LINE_BYTES 60

struct line {
	struct nic nic;
	char ring_name[32];
	struct rte_ring *rings[LINE_QUEUES];
};

/* What a frame is told apart by: a stream has a source port of 1000 + its number. */
struct line_frame {
	uint8_t eth[14];
	struct rte_ipv4_hdr ip;
	struct rte_udp_hdr udp;
	uint8_t payload[LINE_BYTES - 14 - 20 - 8];
} __attribute__((packed, aligned(2)));

static inline void line_frame(struct line_frame *frame, unsigned stream)
{
	static const uint8_t eth[14] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0};
	struct rte_ipv4_hdr ip = {
		.version_ihl = 0x45,
		.total_length = rte_cpu_to_be_16(LINE_BYTES - 14),
		.time_to_live = 64,
		.next_proto_id = 17,
		.src_addr = rte_cpu_to_be_32(0x0a000000 + stream),
		.dst_addr = rte_cpu_to_be_32(0x0a010001),
	};
	struct rte_udp_hdr udp = {
		.src_port = rte_cpu_to_be_16((uint16_t)(1000 + stream)),
		.dst_port = rte_cpu_to_be_16(80),
		.dgram_len = rte_cpu_to_be_16(LINE_BYTES - 34),
	};

	memset(frame, 0x5a, sizeof(*frame));
	memcpy(frame->eth, eth, sizeof(eth));
	ip.hdr_checksum = rte_ipv4_cksum(&ip);
	frame->ip = ip;
	frame->udp = udp;

	_Alignas(8) uint8_t whole[LINE_BYTES + 2];

	/* DPDK sums aligned words */
	memcpy(whole + 2, frame, LINE_BYTES);
	udp.dgram_cksum =
		rte_ipv4_udptcp_cksum((const void *)(whole + 16), (const void *)(whole + 36));
	frame->udp.dgram_cksum = udp.dgram_cksum;
}

/* Checksums of a frame of ours, by DPDK. */
static inline void line_assert_checksums(const struct rte_ipv4_hdr *ip)
{
	_Alignas(8) uint8_t copy[LINE_BYTES];
	struct rte_ipv4_hdr *header = (void *)copy;

	memcpy(copy, ip, rte_be_to_cpu_16(ip->total_length));
	assert_int_equal(rte_ipv4_cksum(header), 0);
	assert_int_equal(rte_ipv4_udptcp_cksum_verify(header, header + 1), 0);
}

/* The stream of a frame, however it was marked. */
static inline unsigned line_stream(const struct rte_mbuf *packet)
{
	const struct line_frame *frame = rte_pktmbuf_mtod(packet, const void *);

	return rte_be_to_cpu_32(frame->ip.src_addr) - 0x0a000000;
}

static inline struct rte_mbuf *line_packet(const struct line *line, unsigned stream)
{
	struct rte_mbuf *packet = rte_pktmbuf_alloc(line->nic.pool);
	void *data = packet != NULL ? rte_pktmbuf_append(packet, LINE_BYTES) : NULL;

	if (data == NULL)
		fail_msg("no mbuf");
	else
		line_frame(data, stream);
	return packet;
}

/* n packets arrive at the port, of streams 0, 1, ... n_streams - 1, 0, ... */
static inline void line_arrive(const struct line *line, unsigned n, unsigned n_streams)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(
			rte_ring_enqueue(line->rings[0], line_packet(line, i % n_streams)), 0);
}

/* The next packet that was sent, or NULL. */
static inline struct rte_mbuf *line_sent(const struct line *line)
{
	void *packet = NULL;

	for (unsigned i = 0; i < LINE_QUEUES; i++)
		if (rte_ring_dequeue(line->rings[i], &packet) == 0)
			return packet;
	return NULL;
}

/* The next packet of a receive queue; NULL: none came however often it was asked for. */
static inline struct rte_mbuf *line_receive(const struct line *line, uint16_t queue)
{
	struct rte_mbuf *packet;

	for (unsigned tries = 0; tries < 100; tries++)
		if (rte_eth_rx_burst(line->nic.id, queue, &packet, 1) == 1)
			return packet;
	return NULL;
}

static inline void line_configure(const struct line *line)
{
	struct rte_eth_conf conf = {
		.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS,
		.rx_adv_conf.rss_conf.rss_hf = RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_UDP,
	};
	uint16_t id = line->nic.id;

	assert_int_equal(rte_eth_dev_configure(id, LINE_QUEUES, LINE_QUEUES, &conf), 0);
	for (uint16_t i = 0; i < LINE_QUEUES; i++) {
		assert_int_equal(rte_eth_rx_queue_setup(
					 id, i, 256, (unsigned)SOCKET_ID_ANY, NULL, line->nic.pool),
			0);
		assert_int_equal(
			rte_eth_tx_queue_setup(id, i, 256, (unsigned)SOCKET_ID_ANY, NULL), 0);
	}
}

/* `args` behind port=: "nic=a,hostile=0". Started. */
static inline void line_open(struct line *line, const char *name, const char *args)
{
	static unsigned n_lines; /* net_ring leaves its rings behind: other ones each time */
	char text[160];

	snprintf(line->ring_name, sizeof(line->ring_name), "net_ring_%s%u", name, n_lines++);
	snprintf(line->nic.name, sizeof(line->nic.name), "net_flowsim_%s", name);
	line->nic.pool = rte_pktmbuf_pool_create(
		name, LINE_POOL, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	assert_non_null(line->nic.pool);
	assert_int_equal(rte_vdev_init(line->ring_name, ""), 0);
	for (unsigned i = 0; i < LINE_QUEUES; i++) {
		snprintf(text, sizeof(text), "ETH_RXTX%u_%s", i, line->ring_name);
		line->rings[i] = rte_ring_lookup(text);
		assert_non_null(line->rings[i]);
	}
	snprintf(text, sizeof(text), "port=%s,%s", line->ring_name, args);
	assert_int_equal(rte_vdev_init(line->nic.name, text), 0);
	assert_int_equal(rte_eth_dev_get_port_by_name(line->nic.name, &line->nic.id), 0);
	line_configure(line);
	nic_start(&line->nic);
}

static inline void line_close(struct line *line)
{
	assert_int_equal(rte_eth_dev_stop(line->nic.id), 0);
	assert_int_equal(rte_eth_dev_close(line->nic.id), 0);
	(void)rte_vdev_uninit(line->nic.name);
	(void)rte_vdev_uninit(line->ring_name);
	/* every packet has come back, wherever it went */
	assert_int_equal(rte_mempool_avail_count(line->nic.pool), LINE_POOL);
	rte_mempool_free(line->nic.pool);
}

static inline uint64_t line_counter(const struct line *line, const char *name)
{
	uint64_t id, value;

	assert_int_equal(rte_eth_xstats_get_id_by_name(line->nic.id, name, &id), 0);
	assert_int_equal(rte_eth_xstats_get_by_id(line->nic.id, &id, &value, 1), 1);
	return value;
}

/* What came to a queue. */
struct line_taken {
	unsigned n, marked, flagged, hashed;
	unsigned streams[16];
	uint32_t mark; /* of the last one */
};

static inline void line_take(const struct line *line, uint16_t queue, struct line_taken *taken)
{
	struct rte_mbuf *packet;

	memset(taken, 0, sizeof(*taken));
	while ((packet = line_receive(line, queue)) != NULL) {
		taken->n++;
		taken->marked += (packet->ol_flags & RTE_MBUF_F_RX_FDIR_ID) != 0;
		taken->flagged += (packet->ol_flags & RTE_MBUF_F_RX_FDIR) != 0;
		taken->hashed += (packet->ol_flags & RTE_MBUF_F_RX_RSS_HASH) != 0;
		taken->mark = packet->hash.fdir.hi;
		assert_int_equal(packet->port, line->nic.id);
		taken->streams[line_stream(packet) % 16]++;
		rte_pktmbuf_free(packet);
	}
}

/* A rule for one stream, or for all with stream < 0. */
static inline struct rte_flow *line_rule(const struct line *line, const struct rte_flow_attr *attr,
	int stream, const struct rte_flow_action *actions)
{
	struct rte_flow_item_udp udp = {
		.hdr.src_port = rte_cpu_to_be_16((uint16_t)(1000 + stream))};
	struct rte_flow_item_udp mask = {.hdr.src_port = RTE_BE16(0xffff)};
	struct rte_flow_item items[] = {
		{.type = RTE_FLOW_ITEM_TYPE_ETH},
		{.type = RTE_FLOW_ITEM_TYPE_UDP},
		{.type = RTE_FLOW_ITEM_TYPE_END},
	};
	struct rte_flow_error error = {0};
	struct rte_flow *rule;

	if (stream >= 0) {
		items[1].spec = &udp;
		items[1].mask = &mask;
	}
	rule = rte_flow_create(line->nic.id, attr, items, actions, &error);
	if (rule == NULL)
		fail_msg("%s", error.message);
	return rule;
}

static inline uint64_t line_hits(const struct line *line, struct rte_flow *rule, uint64_t *bytes)
{
	const struct rte_flow_action count[] = {
		{.type = RTE_FLOW_ACTION_TYPE_COUNT}, {.type = RTE_FLOW_ACTION_TYPE_END}};
	struct rte_flow_query_count answer = {0};
	struct rte_flow_error error;

	assert_int_equal(rte_flow_query(line->nic.id, rule, count, &answer, &error), 0);
	assert_true(answer.hits_set && answer.bytes_set);
	if (bytes != NULL)
		*bytes = answer.bytes;
	return answer.hits;
}
