/* SPDX-License-Identifier: BSD-3-Clause */
/* What a port writes of a capture's frames into the packets that are received. */
#include "flowsim_port.h"

#include <stdio.h>
#include <unistd.h>

#include <pcap/pcap.h>

#include "traffic/stream.h"

#define FRAME 300
#define PAINT 0x55

static void add_frame(pcap_dumper_t *dump, const uint8_t *frame, uint16_t length)
{
	const struct pcap_pkthdr header = {.caplen = length, .len = length};

	pcap_dump((u_char *)dump, &header, frame);
}

static void open_capture(const char *path, pcap_t **pcap, pcap_dumper_t **dump)
{
	*pcap = pcap_open_dead(DLT_EN10MB, 65535);
	*dump = pcap_dump_open(*pcap, path);
	assert_non_null(*dump);
}

/* One packet, all bytes of it 0xaa. */
static void write_one(const char *path)
{
	pcap_dumper_t *dump;
	uint8_t frame[FRAME];
	pcap_t *pcap;

	open_capture(path, &pcap, &dump);
	memset(frame, 0xaa, sizeof(frame));
	add_frame(dump, frame, FRAME);
	pcap_dump_close(dump);
	pcap_close(pcap);
}

/* What buffers have before the card writes. */
static void paint(struct rte_mempool *mempool, void *context, void *object, unsigned number)
{
	struct rte_mbuf *packet = object;

	(void)mempool;
	(void)context;
	(void)number;
	memset(packet->buf_addr, PAINT, packet->buf_len);
}

static void written_of_one(const char *path, unsigned written)
{
	struct rte_mbuf *packet = NULL;
	char words[128];
	struct nic nic;

	snprintf(words, sizeof(words), "capture=%s,passes=1,written=%u", path, written);
	nic_open(&nic, "net_flowsim0", words);
	assert_int_equal(rte_mempool_obj_iter(nic.pool, paint, NULL), NIC_POOL);
	for (unsigned i = 0; i < 10000 && packet == NULL; i++)
		(void)rte_eth_rx_burst(nic.id, i % NIC_QUEUES, &packet, 1);
	assert_non_null(packet);
	assert_int_equal(packet->pkt_len, FRAME);
	const uint8_t *bytes = rte_pktmbuf_mtod(packet, const uint8_t *);

	for (unsigned i = 0; i < FRAME; i++)
		assert_int_equal(bytes[i], i < written ? 0xaa : PAINT);
	rte_pktmbuf_free(packet);
	nic_close(&nic);
}

static void no_more_is_written_than_was_asked_for(void **state)
{
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "flowsim-written-%d.pcap", (int)getpid());
	write_one(path);
	/* a line of the cache has a way of its own */
	written_of_one(path, RTE_CACHE_LINE_SIZE);
	written_of_one(path, 2 * RTE_CACHE_LINE_SIZE);
	unlink(path);
}

#define FLOWS 13
#define PASSES 5
#define BURST 7
#define MARK 0x123

/* Frames of many lengths. */
static void write_many(const char *path)
{
	const struct stream_config config = {
		.flows = FLOWS, .seed = 3, .size_min = 64, .size_max = 700};
	uint8_t frame[STREAM_MAX_BYTES];
	struct stream_set *set;
	pcap_dumper_t *dump;
	struct error error;
	pcap_t *pcap;

	assert_int_equal(stream_set_create(&set, &config, &error), 0);
	open_capture(path, &pcap, &dump);
	for (uint32_t flow = 0; flow < FLOWS; flow++)
		add_frame(dump, frame, stream_frame(set, 2 * flow, frame));
	pcap_dump_close(dump);
	pcap_close(pcap);
	stream_set_destroy(set);
}

/* Packets of that tuple are marked, and counted. */
static struct rte_flow *mark_tuple(uint16_t id, const struct tuple *tuple)
{
	const struct rte_flow_attr attr = {.ingress = 1};
	const struct rte_flow_item_ipv4 ip = {
		.hdr = {.src_addr = tuple->src, .dst_addr = tuple->dst}};
	const struct rte_flow_item_ipv4 ip_mask = {
		.hdr = {.src_addr = UINT32_MAX, .dst_addr = UINT32_MAX}};
	const struct rte_flow_item_udp udp = {
		.hdr = {.src_port = tuple->sport, .dst_port = tuple->dport}};
	const struct rte_flow_item_udp udp_mask = {
		.hdr = {.src_port = UINT16_MAX, .dst_port = UINT16_MAX}};
	const struct rte_flow_item items[] = {
		{.type = RTE_FLOW_ITEM_TYPE_ETH},
		{.type = RTE_FLOW_ITEM_TYPE_IPV4, .spec = &ip, .mask = &ip_mask},
		{.type = RTE_FLOW_ITEM_TYPE_UDP, .spec = &udp, .mask = &udp_mask},
		{.type = RTE_FLOW_ITEM_TYPE_END},
	};
	const struct rte_flow_action_mark mark = {.id = MARK};
	const struct rte_flow_action_queue queue = {.index = 0};
	const struct rte_flow_action actions[] = {
		{.type = RTE_FLOW_ACTION_TYPE_MARK, .conf = &mark},
		{.type = RTE_FLOW_ACTION_TYPE_COUNT},
		{.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &queue},
		{.type = RTE_FLOW_ACTION_TYPE_END},
	};
	struct rte_flow_error error;
	struct rte_flow *flow = rte_flow_create(id, &attr, items, actions, &error);

	assert_non_null(flow);
	return flow;
}

static uint64_t counted(uint16_t id, struct rte_flow *flow)
{
	const struct rte_flow_action actions[] = {
		{.type = RTE_FLOW_ACTION_TYPE_COUNT}, {.type = RTE_FLOW_ACTION_TYPE_END}};
	struct rte_flow_query_count count = {0};
	struct rte_flow_error error;

	assert_int_equal(rte_flow_query(id, flow, actions, &count, &error), 0);
	return count.hits;
}

/* What of a packet is to be the same however much of its frame is written. */
struct seen {
	uint64_t flags;
	uint32_t mark, rss, length;
	uint8_t line[RTE_CACHE_LINE_SIZE];
};

/* All packets of queue 0, in bursts that end anywhere in a round; returns how many. */
static unsigned see_all(uint16_t id, struct seen *seen)
{
	struct rte_mbuf *packets[BURST];
	unsigned n = 0;

	for (unsigned empty = 0; empty < 1000;) {
		uint16_t got = rte_eth_rx_burst(id, 0, packets, BURST);

		empty = got == 0 ? empty + 1 : 0;
		assert_true(n + got <= FLOWS * PASSES);
		for (uint16_t i = 0; i < got; i++) {
			const bool marked = packets[i]->ol_flags & RTE_MBUF_F_RX_FDIR_ID;

			seen[n] = (struct seen){
				.flags = packets[i]->ol_flags,
				.mark = marked ? packets[i]->hash.fdir.hi : 0,
				.rss = packets[i]->hash.rss,
				.length = packets[i]->pkt_len,
			};
			assert_int_equal(packets[i]->data_len, packets[i]->pkt_len);
			memcpy(seen[n++].line, rte_pktmbuf_mtod(packets[i], const void *),
				sizeof(seen->line));
		}
		rte_pktmbuf_free_bulk(packets, got);
	}
	return n;
}

static unsigned marks_of(const struct seen *seen, unsigned n)
{
	unsigned marks = 0;

	for (unsigned i = 0; i < n; i++)
		marks += seen[i].mark == MARK;
	return marks;
}

/* The way of a line tells the same of each packet as the way of all other numbers. */
static void a_line_is_written_as_any_number_is(void **state)
{
	static struct seen seen[2][FLOWS * PASSES];
	char path[64], words[128];

	(void)state;
	snprintf(path, sizeof(path), "flowsim-written-%d.pcap", (int)getpid());
	write_many(path);
	for (unsigned ruled = 0; ruled < 2; ruled++) {
		unsigned n[2];

		memset(seen, 0, sizeof(seen));
		for (unsigned i = 0; i < 2; i++) {
			struct rte_flow *flow = NULL;
			struct tuple tuple;
			struct nic nic;

			snprintf(words, sizeof(words), "capture=%s,passes=%u,written=%u", path,
				PASSES, RTE_CACHE_LINE_SIZE + i);
			nic_open(&nic, "net_flowsim0", words);
			tuple = nic_tuple(&nic);
			if (ruled)
				flow = mark_tuple(nic.id, &tuple);
			n[i] = see_all(nic.id, seen[i]);
			if (ruled)
				assert_int_equal(counted(nic.id, flow), marks_of(seen[i], n[i]));
			nic_close(&nic);
		}
		assert_true(n[0] > FLOWS);
		assert_int_equal(n[0], n[1]);
		assert_int_equal(marks_of(seen[0], n[0]) > 1, ruled);
		assert_memory_equal(seen[0], seen[1], sizeof(seen[0]));
	}
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_more_is_written_than_was_asked_for),
		cmocka_unit_test(a_line_is_written_as_any_number_is),
	};

	return cmocka_run_group_tests(tests, nic_begin, NULL);
}
