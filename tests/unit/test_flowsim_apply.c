/* SPDX-License-Identifier: BSD-3-Clause */

/* What rules do to packets in line; whatever they do, the counts are equal everywhere. */

#include "unit/flowsim_line.h"

#include <rte_mtr.h>

#define END {.type = RTE_FLOW_ACTION_TYPE_END}
#define ACTION(name, pointer) {.type = RTE_FLOW_ACTION_TYPE_##name, .conf = (pointer)}

static const struct rte_flow_attr ingress = {.ingress = 1}, in_group_1 = {.group = 1, .ingress = 1},
				  transfer = {.transfer = 1}, egress = {.egress = 1};

static void open_line(struct line *line)
{
	line_open(line, "a", "hostile=0");
}

/* Two ports of one NIC. */
static void open_pair(struct line *a, struct line *b)
{
	line_open(a, "a", "nic=x,hostile=0");
	line_open(b, "b", "nic=x,hostile=0");
}

/* Received and copied = handed over, dropped, sent on, lost. */
static void assert_sum(const struct line *line, uint64_t arrived)
{
	struct rte_eth_stats stats;

	assert_int_equal(rte_eth_stats_get(line->nic.id, &stats), 0);
	assert_int_equal(arrived + line_counter(line, "rx_sampled_packets"),
		stats.ipackets + line_counter(line, "rx_rule_dropped_packets") +
			line_counter(line, "rx_forwarded_packets") + stats.imissed +
			stats.rx_nombuf);
	assert_int_equal(line_counter(line, "rx_port_packets"), arrived);
}

static void test_marks(void **state)
{
	const struct rte_flow_action_mark mark = {.id = 7}, other = {.id = 9};
	const struct rte_flow_action_queue queue = {.index = 1};
	const struct rte_flow_action_jump jump = {.group = 1};
	const uint16_t one = 0;
	const struct rte_flow_action_rss rss = {.queue_num = 1, .queue = &one};
	const struct rte_flow_action marks[] = {
		ACTION(MARK, &mark), ACTION(QUEUE, &queue), ACTION(COUNT, NULL), END};
	const struct rte_flow_action drops[] = {ACTION(DROP, NULL), ACTION(COUNT, NULL), END};
	const struct rte_flow_action flags[] = {ACTION(FLAG, NULL), ACTION(COUNT, NULL), END};
	const struct rte_flow_action jumps[] = {ACTION(JUMP, &jump), ACTION(COUNT, NULL), END};
	const struct rte_flow_action spreads[] = {
		ACTION(MARK, &other), ACTION(RSS, &rss), ACTION(COUNT, NULL), END};
	struct rte_flow *rule[5];
	struct line_taken taken[2];
	struct line line;
	uint64_t bytes;

	(void)state;
	open_line(&line);
	rule[0] = line_rule(&line, &ingress, 0, marks);
	rule[1] = line_rule(&line, &ingress, 1, drops);
	rule[2] = line_rule(&line, &ingress, 2, flags);
	rule[3] = line_rule(&line, &ingress, 3, jumps);
	rule[4] = line_rule(&line, &in_group_1, -1, spreads);
	line_arrive(&line, 800, 8);
	/* the second queue is asked first: both take turns with the pump */
	line_take(&line, 1, &taken[1]);
	line_take(&line, 0, &taken[0]);
	assert_int_equal(taken[0].n + taken[1].n, 700);
	assert_int_equal(taken[0].hashed + taken[1].hashed, 700);
	assert_int_equal(taken[1].streams[0], 100);
	assert_int_equal(taken[0].streams[0] + taken[0].streams[1] + taken[1].streams[1], 0);
	assert_int_equal(taken[0].streams[2] + taken[1].streams[2], 100);
	assert_int_equal(taken[0].streams[3], 100);
	assert_int_equal(taken[0].marked + taken[1].marked, 200);
	assert_int_equal(taken[0].flagged + taken[1].flagged, 300);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(line_hits(&line, rule[i], &bytes), 100);
		assert_int_equal(bytes, 100 * LINE_BYTES);
	}
	assert_int_equal(line_counter(&line, "rx_matched"), 400);
	assert_int_equal(line_counter(&line, "rx_marked"), 200);
	assert_int_equal(line_counter(&line, "rx_flagged"), 100);
	assert_int_equal(line_counter(&line, "rx_rule_dropped_packets"), 100);
	assert_int_equal(line_counter(&line, "rx_rule_dropped_bytes"), 100 * LINE_BYTES);
	assert_sum(&line, 800);
	line_close(&line);
}

/* Out of the other port, with a tag, another address and a lower TTL; the CPU sees nothing. */
static void test_forward(void **state)
{
	const struct rte_flow_action_of_push_vlan push = {.ethertype = RTE_BE16(0x8100)};
	const struct rte_flow_action_of_set_vlan_vid vid = {.vlan_vid = RTE_BE16(42)};
	const struct rte_flow_action_set_ipv4 address = {.ipv4_addr = RTE_BE32(0xc0a80101)};
	struct rte_flow_action_ethdev to;
	const struct rte_flow_action list[] = {ACTION(COUNT, NULL), ACTION(DEC_TTL, NULL),
		ACTION(SET_IPV4_DST, &address), ACTION(OF_PUSH_VLAN, &push),
		ACTION(OF_SET_VLAN_VID, &vid), ACTION(REPRESENTED_PORT, &to), END};
	struct rte_mbuf *packet;
	struct line_taken taken;
	struct rte_flow *rule;
	struct line a, b;
	unsigned n = 0;

	(void)state;
	open_pair(&a, &b);
	to.port_id = b.nic.id;
	rule = line_rule(&a, &transfer, -1, list);
	line_arrive(&a, 200, 5);
	line_take(&a, 0, &taken);
	assert_int_equal(taken.n, 0);
	for (; (packet = line_sent(&b)) != NULL; n++) {
		const uint8_t *bytes = rte_pktmbuf_mtod(packet, const uint8_t *);
		const struct rte_ipv4_hdr *ip = (const void *)(bytes + 18);

		assert_int_equal(packet->pkt_len, LINE_BYTES + 4);
		assert_memory_equal(&bytes[12], "\x81\x00\x00\x2a\x08\x00", 6);
		assert_int_equal(ip->time_to_live, 63);
		assert_int_equal(ip->dst_addr, address.ipv4_addr);
		assert_int_equal(ip->src_addr, rte_cpu_to_be_32(0x0a000000 + n % 5));
		line_assert_checksums(ip);
		rte_pktmbuf_free(packet);
	}
	assert_int_equal(n, 200);
	assert_int_equal(line_hits(&a, rule, NULL), 200);
	assert_int_equal(line_counter(&a, "rx_forwarded_packets"), 200);
	assert_int_equal(line_counter(&a, "rx_forwarded_bytes"), 200 * (LINE_BYTES + 4));
	assert_int_equal(line_counter(&b, "tx_nic_packets"), 200);
	assert_int_equal(line_counter(&b, "tx_nic_bytes"), 200 * (LINE_BYTES + 4));
	assert_sum(&a, 200);
	assert_int_equal(rte_eth_dev_set_link_down(b.nic.id), 0);
	line_arrive(&a, 10, 5);
	line_take(&a, 0, &taken);
	assert_null(line_sent(&b));
	assert_sum(&a, 210);
	line_close(&a);
	line_close(&b);
}

/* To the receive queues of the other port, as if it had arrived there, and of its own. */
static void test_give(void **state)
{
	const struct rte_flow_action_mark mark = {.id = 3};
	struct rte_flow_action_ethdev to, own;
	const struct rte_flow_action list[] = {
		ACTION(MARK, &mark), ACTION(PORT_REPRESENTOR, &to), END};
	const struct rte_flow_action home[] = {
		ACTION(MARK, &mark), ACTION(PORT_REPRESENTOR, &own), END};
	struct line_taken taken[2];
	struct line a, b;

	(void)state;
	open_pair(&a, &b);
	to.port_id = b.nic.id;
	own.port_id = a.nic.id;
	line_rule(&a, &transfer, 1, list);
	line_rule(&a, &transfer, 2, home);
	line_arrive(&a, 300, 3);
	line_take(&a, 0, &taken[0]);
	line_take(&a, 1, &taken[1]);
	assert_int_equal(taken[0].n + taken[1].n, 200);
	assert_int_equal(taken[0].marked + taken[1].marked, 100);
	assert_int_equal(taken[0].streams[2] + taken[1].streams[2], 100);
	line_take(&b, 0, &taken[0]);
	line_take(&b, 1, &taken[1]);
	assert_int_equal(taken[0].n + taken[1].n, 100);
	assert_int_equal(taken[0].marked + taken[1].marked, 100);
	assert_int_equal(taken[0].hashed + taken[1].hashed, 100);
	assert_sum(&a, 300);
	assert_int_equal(line_counter(&b, "rx_marked"), 100);
	line_close(&a);
	line_close(&b);
}

/* Each third packet is copied as it is between the edit before and the edit behind. */
static void test_sample(void **state)
{
	const struct rte_flow_action_mark mark = {.id = 5}, copy_mark = {.id = 6};
	const struct rte_flow_action_queue queue = {.index = 0}, copy_queue = {.index = 1};
	const struct rte_flow_action_set_tp first = {.port = RTE_BE16(81)};
	const struct rte_flow_action_set_tp second = {.port = RTE_BE16(82)};
	const struct rte_flow_action copy[] = {
		ACTION(MARK, &copy_mark), ACTION(QUEUE, &copy_queue), END};
	const struct rte_flow_action_sample sample = {.ratio = 3, .actions = copy};
	const struct rte_flow_action list[] = {ACTION(SET_TP_DST, &first), ACTION(SAMPLE, &sample),
		ACTION(SET_TP_DST, &second), ACTION(MARK, &mark), ACTION(QUEUE, &queue),
		ACTION(COUNT, NULL), END};
	struct rte_mbuf *packet;
	struct rte_flow *rule;
	unsigned n[2] = {0};
	struct line line;

	(void)state;
	open_line(&line);
	rule = line_rule(&line, &ingress, -1, list);
	line_arrive(&line, 100, 7);
	for (uint16_t q = 0; q < 2; q++) {
		for (; (packet = line_receive(&line, q)) != NULL; n[q]++) {
			const struct line_frame *frame = rte_pktmbuf_mtod(packet, const void *);
			unsigned number = q == 0 ? n[q] : 3 * n[q] + 2;

			assert_int_equal(packet->hash.fdir.hi, q == 0 ? 5 : 6);
			assert_int_equal(frame->udp.dst_port, q == 0 ? second.port : first.port);
			assert_int_equal(line_stream(packet), number % 7);
			line_assert_checksums(&frame->ip);
			rte_pktmbuf_free(packet);
		}
	}
	assert_int_equal(n[0], 100);
	assert_int_equal(n[1], 33);
	assert_int_equal(line_hits(&line, rule, NULL), 100);
	assert_int_equal(line_counter(&line, "rx_sampled_packets"), 33);
	assert_int_equal(line_counter(&line, "rx_marked"), 133);
	assert_sum(&line, 100);
	line_close(&line);
}

static void mirror(struct line *a, struct line *b, const struct rte_flow_action *copy)
{
	const struct rte_flow_action_sample sample = {.ratio = 1, .actions = copy};
	const struct rte_flow_action list[] = {ACTION(SAMPLE, &sample), END};
	struct line_taken taken[2];
	struct rte_flow *rule = line_rule(a, &transfer, -1, list);
	struct rte_flow_error error;
	struct rte_mbuf *packet;
	unsigned n = 0;

	line_arrive(a, 50, 4);
	line_take(a, 0, &taken[0]);
	line_take(a, 1, &taken[1]);
	for (; (packet = line_sent(b)) != NULL; n++)
		rte_pktmbuf_free(packet);
	assert_int_equal(n, copy[0].type == RTE_FLOW_ACTION_TYPE_PORT_ID ? 50 : 0);
	assert_int_equal(
		taken[0].n + taken[1].n, copy[0].type == RTE_FLOW_ACTION_TYPE_END ? 100 : 50);
	assert_int_equal(rte_flow_destroy(a->nic.id, rule, &error), 0);
}

/* Copies for another port, for nobody, and without a fate of their own. */
static void test_mirror(void **state)
{
	struct rte_flow_action_port_id to = {0};
	const struct rte_flow_action sends[] = {ACTION(PORT_ID, &to), END};
	const struct rte_flow_action drops[] = {ACTION(DROP, NULL), END};
	struct line a, b;

	(void)state;
	open_pair(&a, &b);
	to.id = b.nic.id;
	mirror(&a, &b, sends);
	mirror(&a, &b, drops);
	mirror(&a, &b, &drops[1]);
	assert_sum(&a, 150);
	line_close(&a);
	line_close(&b);
}

/* A bucket of ten packets that fills by a byte a second: ten green, five yellow, the rest red. */
static void test_meter(void **state)
{
	struct rte_mtr_meter_profile profile = {.alg = RTE_MTR_SRTCM_RFC2697,
		.srtcm_rfc2697 = {.cir = 1, .cbs = 10 * LINE_BYTES, .ebs = 5 * LINE_BYTES}};
	const struct rte_flow_action none[] = {END}, drop[] = {ACTION(DROP, NULL), END};
	struct rte_mtr_meter_policy_params policy = {.actions = {none, none, drop}};
	struct rte_mtr_params params = {
		.meter_profile_id = 4, .meter_policy_id = 5, .meter_enable = 1, .stats_mask = 0xff};
	const struct rte_flow_action_meter meter = {.mtr_id = 6};
	const struct rte_flow_action list[] = {ACTION(METER, &meter), ACTION(COUNT, NULL), END};
	struct rte_flow_error flow_error;
	struct rte_mtr_stats stats;
	struct rte_mtr_error error;
	struct line_taken taken[2];
	struct rte_flow *rule;
	struct line line;
	uint64_t mask;

	(void)state;
	open_line(&line);
	assert_int_equal(rte_mtr_meter_profile_add(line.nic.id, 4, &profile, &error), 0);
	assert_int_equal(rte_mtr_meter_policy_add(line.nic.id, 5, &policy, &error), 0);
	assert_int_equal(rte_mtr_create(line.nic.id, 6, &params, 1, &error), 0);
	assert_int_equal(rte_mtr_create(line.nic.id, 6, &params, 1, &error), -EEXIST);
	rule = line_rule(&line, &ingress, -1, list);
	assert_int_equal(rte_mtr_destroy(line.nic.id, 6, &error), -EBUSY);
	assert_int_equal(rte_mtr_meter_profile_delete(line.nic.id, 4, &error), -EBUSY);
	assert_int_equal(rte_mtr_meter_policy_delete(line.nic.id, 5, &error), -EBUSY);
	line_arrive(&line, 100, 3);
	line_take(&line, 0, &taken[0]);
	line_take(&line, 1, &taken[1]);
	assert_int_equal(taken[0].n + taken[1].n, 15);
	assert_int_equal(line_hits(&line, rule, NULL), 100);
	assert_int_equal(line_counter(&line, "rx_rule_dropped_packets"), 85);
	assert_sum(&line, 100);
	assert_int_equal(rte_mtr_stats_read(line.nic.id, 6, &stats, &mask, 1, &error), 0);
	assert_int_equal(mask, 0xff);
	assert_int_equal(stats.n_pkts[RTE_COLOR_GREEN], 10);
	assert_int_equal(stats.n_pkts[RTE_COLOR_YELLOW], 5);
	assert_int_equal(stats.n_pkts[RTE_COLOR_RED], 0);
	assert_int_equal(stats.n_pkts_dropped, 85);
	assert_int_equal(stats.n_bytes_dropped, 85 * LINE_BYTES);
	assert_int_equal(rte_mtr_meter_disable(line.nic.id, 6, &error), 0);
	line_arrive(&line, 100, 3);
	line_take(&line, 0, &taken[0]);
	line_take(&line, 1, &taken[1]);
	assert_int_equal(taken[0].n + taken[1].n, 100);
	assert_int_equal(rte_flow_destroy(line.nic.id, rule, &flow_error), 0);
	assert_int_equal(rte_mtr_destroy(line.nic.id, 6, &error), 0);
	assert_int_equal(rte_mtr_destroy(line.nic.id, 6, &error), -ENOENT);
	assert_int_equal(rte_mtr_meter_profile_delete(line.nic.id, 4, &error), 0);
	assert_int_equal(rte_mtr_meter_policy_delete(line.nic.id, 5, &error), 0);
	line_close(&line);
}

static void test_meter_refusals(void **state)
{
	struct rte_mtr_meter_profile profile = {.alg = RTE_MTR_TRTCM_RFC2698};
	const struct rte_flow_action_queue queue = {.index = 0};
	struct rte_flow_action odd[] = {ACTION(QUEUE, &queue), END};
	struct rte_flow_action *endless = calloc(32, sizeof(*endless));
	struct rte_mtr_meter_policy_params policy = {.actions = {odd, NULL, NULL}};
	struct rte_mtr_params params = {.meter_profile_id = 1, .meter_policy_id = 1};
	enum rte_color table[64] = {0};
	struct rte_mtr_error error;
	struct line line;

	(void)state;
	open_line(&line);
	assert_int_equal(rte_mtr_meter_profile_add(line.nic.id, 1, &profile, &error), -ENOTSUP);
	profile.alg = RTE_MTR_SRTCM_RFC2697;
	assert_int_equal(rte_mtr_meter_profile_add(line.nic.id, 1, &profile, &error), -EINVAL);
	assert_int_equal(rte_mtr_meter_policy_validate(line.nic.id, &policy, &error), -ENOTSUP);
	assert_ptr_equal(error.cause, odd);
	for (unsigned i = 0; i < 32; i++)
		endless[i].type = RTE_FLOW_ACTION_TYPE_VOID;
	policy.actions[0] = endless;
	assert_int_equal(rte_mtr_meter_policy_add(line.nic.id, 1, &policy, &error), -EINVAL);
	assert_int_equal(rte_mtr_create(line.nic.id, 1, &params, 0, &error), -ENOENT);
	params.dscp_table = table;
	assert_int_equal(rte_mtr_create(line.nic.id, 1, &params, 0, &error), -ENOTSUP);
	assert_int_equal(rte_mtr_meter_enable(line.nic.id, 1, &error), -ENOENT);
	free(endless);
	line_close(&line);
}

/* What is being sent: some dropped, some changed, some to the other port, and the rest as it is. */
static void test_egress(void **state)
{
	const struct rte_flow_action_set_tp tp = {.port = RTE_BE16(8080)};
	struct rte_flow_action_ethdev to;
	const struct rte_flow_action drops[] = {ACTION(DROP, NULL), ACTION(COUNT, NULL), END};
	const struct rte_flow_action edits[] = {ACTION(SET_TP_DST, &tp), ACTION(COUNT, NULL), END};
	const struct rte_flow_action sends[] = {
		ACTION(REPRESENTED_PORT, &to), ACTION(COUNT, NULL), END};
	struct rte_mbuf *packets[40], *packet;
	struct rte_eth_stats stats;
	struct rte_flow *rule[3];
	struct line a, b;
	unsigned n = 0;

	(void)state;
	open_pair(&a, &b);
	to.port_id = b.nic.id;
	rule[0] = line_rule(&a, &egress, 0, drops);
	rule[1] = line_rule(&a, &egress, 1, edits);
	rule[2] = line_rule(&a, &egress, 2, sends);
	for (unsigned i = 0; i < RTE_DIM(packets); i++)
		packets[i] = line_packet(&a, i % 4);
	assert_int_equal(rte_eth_tx_burst(a.nic.id, 1, packets, RTE_DIM(packets)), 40);
	for (; (packet = line_sent(&a)) != NULL; n++) {
		const struct line_frame *frame = rte_pktmbuf_mtod(packet, const void *);
		unsigned stream = line_stream(packet);

		assert_int_equal(stream, n % 2 ? 3 : 1);
		assert_int_equal(frame->udp.dst_port, stream == 1 ? tp.port : RTE_BE16(80));
		line_assert_checksums(&frame->ip);
		rte_pktmbuf_free(packet);
	}
	assert_int_equal(n, 20);
	for (n = 0; (packet = line_sent(&b)) != NULL; n++) {
		assert_int_equal(line_stream(packet), 2);
		rte_pktmbuf_free(packet);
	}
	assert_int_equal(n, 10);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(line_hits(&a, rule[i], NULL), 10);
	assert_int_equal(rte_eth_stats_get(a.nic.id, &stats), 0);
	assert_int_equal(stats.opackets, 20);
	assert_int_equal(stats.obytes, 20 * LINE_BYTES);
	assert_int_equal(stats.oerrors, 0);
	assert_int_equal(line_counter(&a, "tx_rule_dropped_packets"), 10);
	assert_int_equal(line_counter(&a, "tx_forwarded_packets"), 10);
	assert_int_equal(line_counter(&b, "tx_nic_packets"), 10);
	line_close(&a);
	line_close(&b);
}

/* A packet whose bytes somebody else has: changed for us, not for them. */
static void test_clones(void **state)
{
	const struct rte_flow_action_set_tp tp = {.port = RTE_BE16(8080)};
	const struct rte_flow_action list[] = {ACTION(SET_TP_DST, &tp), END};
	struct line_frame frame;
	struct rte_mbuf *origin, *packet;
	struct line line;

	(void)state;
	open_line(&line);
	line_rule(&line, &ingress, -1, list);
	line_frame(&frame, 1);
	origin = line_packet(&line, 1);
	packet = rte_pktmbuf_clone(origin, line.nic.pool);
	assert_int_equal(rte_ring_enqueue(line.rings[0], packet), 0);
	for (uint16_t q = 0; q < 2; q++) {
		packet = line_receive(&line, q);
		if (packet == NULL)
			continue;
		assert_memory_equal(rte_pktmbuf_mtod(origin, void *), &frame, LINE_BYTES);
		assert_int_equal(
			rte_pktmbuf_mtod(packet, struct line_frame *)->udp.dst_port, tp.port);
		rte_pktmbuf_free(packet);
		rte_pktmbuf_free(origin);
		origin = NULL;
	}
	assert_null(origin);
	line_close(&line);
}

/* Faults strike marks as often as told, in line too. */
static void test_faults(void **state)
{
	static const char *const told[] = {
		"hostile=0,fault=stop_mark:after=30", "hostile=0,fault=wrong_mark:every=4"};
	const struct rte_flow_action_mark mark = {.id = 8};
	const struct rte_flow_action_queue queue = {.index = 0};
	const struct rte_flow_action list[] = {
		ACTION(MARK, &mark), ACTION(QUEUE, &queue), ACTION(COUNT, NULL), END};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(told); i++) {
		unsigned right = 0, wrong = 0, none = 0;
		struct rte_mbuf *packet;
		struct rte_flow *rule;
		struct line line;

		line_open(&line, "a", told[i]);
		rule = line_rule(&line, &ingress, -1, list);
		line_arrive(&line, 100, 5);
		while ((packet = line_receive(&line, 0)) != NULL) {
			bool marked = packet->ol_flags & RTE_MBUF_F_RX_FDIR_ID;

			none += !marked;
			right += marked && packet->hash.fdir.hi == 8;
			wrong += marked && packet->hash.fdir.hi == 9;
			rte_pktmbuf_free(packet);
		}
		assert_int_equal(right, i == 0 ? 30 : 75);
		assert_int_equal(wrong, i == 0 ? 0 : 25);
		assert_int_equal(none, i == 0 ? 70 : 0);
		assert_int_equal(line_counter(&line, "rx_marked"), right + wrong);
		assert_int_equal(line_hits(&line, rule, NULL), 100);
		line_close(&line);
	}
}

/* In isolated mode only what rules send to the host comes there. */
static void test_isolated(void **state)
{
	const struct rte_flow_action_queue queue = {.index = 0};
	const struct rte_flow_action list[] = {ACTION(QUEUE, &queue), END};
	struct rte_flow_error error;
	struct line_taken taken;
	struct line line;

	(void)state;
	line_open(&line, "a", "hostile=0");
	assert_int_equal(rte_eth_dev_stop(line.nic.id), 0);
	assert_int_equal(rte_flow_isolate(line.nic.id, 1, &error), 0);
	nic_start(&line.nic);
	line_rule(&line, &ingress, 2, list);
	line_arrive(&line, 100, 5);
	line_take(&line, 1, &taken);
	assert_int_equal(taken.n, 0);
	line_take(&line, 0, &taken);
	assert_int_equal(taken.n, 20);
	assert_int_equal(line_counter(&line, "rx_rule_dropped_packets"), 80);
	assert_sum(&line, 100);
	line_close(&line);
}

static int end(void **state)
{
	(void)state;
	dpdk_stop();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_forward),
		cmocka_unit_test(test_give),
		cmocka_unit_test(test_sample),
		cmocka_unit_test(test_mirror),
		cmocka_unit_test(test_meter),
		cmocka_unit_test(test_meter_refusals),
		cmocka_unit_test(test_egress),
		cmocka_unit_test(test_clones),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_isolated),
	};

	return cmocka_run_group_tests(tests, nic_begin, end);
}
