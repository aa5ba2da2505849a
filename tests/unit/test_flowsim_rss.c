/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "drivers/flowsim/port/compat.h"
#include "drivers/flowsim/sim.h"
#include "frames.h"
#include "packet/extract.h"
#include "port/rss.h"
#include "traffic/stream.h"

#define TOEPLITZ RTE_ETH_HASH_FUNCTION_TOEPLITZ
#define SYMMETRIC RTE_ETH_HASH_FUNCTION_SYMMETRIC_TOEPLITZ
#define TCP_TYPES (RTE_ETH_RSS_NONFRAG_IPV4_TCP | RTE_ETH_RSS_NONFRAG_IPV6_TCP)
#define IP_TYPES (RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_IPV6)

/* From Microsoft's "Verifying the RSS hash calculation", with the key that stands there. */
static const struct vector {
	const char *dst, *src;
	uint16_t dst_port, src_port;
	uint32_t addresses, all;
} vectors[] = {
	{"161.142.100.80", "66.9.149.187", 1766, 2794, 0x323e8fc2, 0x51ccc178},
	{"65.69.140.83", "199.92.111.2", 4739, 14230, 0xd718262a, 0xc626b0ea},
	{"12.22.207.184", "24.19.198.95", 38024, 12898, 0xd2d0a5de, 0x5c2b394a},
	{"209.142.163.6", "38.27.205.30", 2217, 48228, 0x82989176, 0xafc7327f},
	{"202.188.127.2", "153.39.163.191", 1303, 44251, 0x5d1809c5, 0x10e828a2},
	{"3ffe:2501:200:3::1", "3ffe:2501:200:1fff::7", 1766, 2794, 0x2cc18cd5, 0x40207d3d},
	{"ff02::1", "3ffe:501:8::260:97ff:fe40:efab", 4739, 14230, 0x0f0c461c, 0xdde51bbf},
	{"fe80::200:f8ff:fe21:67cf", "3ffe:1900:4545:3:200:f8ff:fe21:67cf", 38024, 44251,
		0x4b61e985, 0x02d1feef},
};

static void put_port(uint8_t *at, uint16_t port)
{
	at[0] = (uint8_t)(port >> 8);
	at[1] = (uint8_t)port;
}

static void make_view(struct sim_view *view, const struct vector *of, uint32_t l4)
{
	struct sim_level *level = &view->level[0];
	bool v6 = strchr(of->src, ':') != NULL;

	memset(view, 0, sizeof(*view));
	view->layers = SIM_ETH | (v6 ? SIM_IPV6 : SIM_IPV4) | l4;
	assert_int_equal(inet_pton(v6 ? AF_INET6 : AF_INET, of->src, &level->ip[v6 ? 8 : 12]), 1);
	assert_int_equal(inet_pton(v6 ? AF_INET6 : AF_INET, of->dst, &level->ip[v6 ? 24 : 16]), 1);
	put_port(&level->l4[0], of->src_port);
	put_port(&level->l4[2], of->dst_port);
}

static struct vector reversed(const struct vector *of)
{
	return (struct vector){of->src, of->dst, of->src_port, of->dst_port, 0, 0};
}

static uint32_t hash(
	const struct sim_view *view, enum rte_eth_hash_function function, uint64_t types)
{
	return sim_rss_hash(
		view, function, types, sim_rss_default_key, sizeof(sim_rss_default_key));
}

static void test_known(void **state)
{
	struct sim_view view;

	(void)state;
	for (unsigned i = 0; i < sizeof(vectors) / sizeof(*vectors); i++) {
		make_view(&view, &vectors[i], SIM_TCP);
		assert_int_equal(hash(&view, TOEPLITZ, IP_TYPES), vectors[i].addresses);
		assert_int_equal(hash(&view, TOEPLITZ, TCP_TYPES), vectors[i].all);
		assert_int_equal(hash(&view, TOEPLITZ, TCP_TYPES | IP_TYPES), vectors[i].all);
		/* by 40 bytes of key as well */
		assert_int_equal(sim_rss_hash(&view, TOEPLITZ, TCP_TYPES, sim_rss_default_key, 40),
			vectors[i].all);
	}
}

static void test_table(void **state)
{
	struct sim_port *port = calloc(1, sizeof(*port));
	struct sim_view view;

	(void)state;
	assert_non_null(port);
	rte_rwlock_init(&port->rss_lock);
	sim_rss_table_fill(&port->rss_table, sim_rss_default_key, sizeof(sim_rss_default_key));
	for (unsigned i = 0; i < SIM_RETA; i++)
		port->reta[i] = (uint16_t)(i % 7);
	for (unsigned i = 0; i < sizeof(vectors) / sizeof(*vectors); i++) {
		make_view(&view, &vectors[i], SIM_TCP);
		port->rss_hf = TCP_TYPES;
		assert_int_equal(sim_rss_of(port, &view), vectors[i].all);
		assert_int_equal(
			sim_rss_queue(port, vectors[i].all), vectors[i].all % SIM_RETA % 7);
		port->rss_hf = 0;
		assert_int_equal(sim_rss_of(port, &view), 0);
		port->rss_hf = TCP_TYPES;
		port->rss_function = RTE_ETH_HASH_FUNCTION_SIMPLE_XOR;
		assert_int_equal(sim_rss_of(port, &view),
			hash(&view, RTE_ETH_HASH_FUNCTION_SIMPLE_XOR, TCP_TYPES));
		port->rss_function = RTE_ETH_HASH_FUNCTION_DEFAULT;
	}
	free(port);
}

static void test_types(void **state)
{
	const struct vector *of = &vectors[0];
	struct sim_view view;

	(void)state;
	make_view(&view, of, SIM_UDP);
	assert_int_equal(hash(&view, TOEPLITZ, RTE_ETH_RSS_NONFRAG_IPV4_TCP), 0);
	assert_int_equal(hash(&view, TOEPLITZ, RTE_ETH_RSS_NONFRAG_IPV6_UDP), 0);
	assert_int_equal(hash(&view, TOEPLITZ, RTE_ETH_RSS_NONFRAG_IPV4_OTHER), 0);
	assert_int_equal(hash(&view, TOEPLITZ, RTE_ETH_RSS_FRAG_IPV4), 0);
	assert_int_equal(hash(&view, TOEPLITZ, RTE_ETH_RSS_IPV4), of->addresses);
	assert_int_equal(hash(&view, TOEPLITZ, RTE_ETH_RSS_NONFRAG_IPV4_UDP), of->all);
	make_view(&view, of, SIM_SCTP);
	assert_int_equal(hash(&view, TOEPLITZ, RTE_ETH_RSS_NONFRAG_IPV4_SCTP), of->all);
	make_view(&view, of, SIM_ICMP);
	assert_int_equal(hash(&view, TOEPLITZ, RTE_ETH_RSS_NONFRAG_IPV4_OTHER), of->addresses);
	assert_int_equal(hash(&view, TOEPLITZ, SIM_RSS_FIELDS), of->addresses);
	/* no IP, no hash */
	view.layers = SIM_ETH;
	assert_int_equal(hash(&view, TOEPLITZ, SIM_RSS_FIELDS), 0);
}

/* The first fragment has ports, the others have none: all of a datagram go to one queue. */
static void test_fragments(void **state)
{
	struct sim_view view;

	(void)state;
	make_view(&view, &vectors[0], SIM_UDP);
	view.level[0].ip[6] = 0x20;
	assert_int_equal(hash(&view, TOEPLITZ, SIM_RSS_FIELDS), vectors[0].addresses);
	assert_int_equal(hash(&view, TOEPLITZ, RTE_ETH_RSS_FRAG_IPV4), vectors[0].addresses);
	assert_int_equal(hash(&view, TOEPLITZ, RTE_ETH_RSS_NONFRAG_IPV4_UDP), 0);
	make_view(&view, &vectors[0], 0);
	view.level[0].ip[7] = 1;
	assert_int_equal(hash(&view, TOEPLITZ, SIM_RSS_FIELDS), vectors[0].addresses);
	assert_int_equal(hash(&view, TOEPLITZ, RTE_ETH_RSS_NONFRAG_IPV4_OTHER), 0);
	/* don't fragment is no fragment */
	make_view(&view, &vectors[0], SIM_UDP);
	view.level[0].ip[6] = 0x40;
	assert_int_equal(hash(&view, TOEPLITZ, SIM_RSS_FIELDS), vectors[0].all);
	make_view(&view, &vectors[5], SIM_UDP | SIM_IPV6_FRAG);
	assert_int_equal(hash(&view, TOEPLITZ, SIM_RSS_FIELDS), vectors[5].addresses);
	assert_int_equal(hash(&view, TOEPLITZ, RTE_ETH_RSS_FRAG_IPV6), vectors[5].addresses);
}

/* What is left out makes no difference, what is in does. */
static void check_only(uint64_t only, size_t in, size_t out)
{
	uint64_t types = SIM_RSS_FIELDS | only;
	struct sim_view view;
	uint8_t *level = (uint8_t *)&view.level[0];
	uint32_t before;

	make_view(&view, &vectors[0], SIM_TCP);
	before = hash(&view, TOEPLITZ, types);
	level[out] ^= 1;
	assert_int_equal(hash(&view, TOEPLITZ, types), before);
	level[in] ^= 1;
	assert_int_not_equal(hash(&view, TOEPLITZ, types), before);
}

static void test_only(void **state)
{
	const size_t ip = offsetof(struct sim_level, ip), l4 = offsetof(struct sim_level, l4);
	struct sim_view view;

	(void)state;
	check_only(RTE_ETH_RSS_L3_SRC_ONLY, ip + 15, ip + 19);
	check_only(RTE_ETH_RSS_L3_DST_ONLY, ip + 19, ip + 15);
	check_only(RTE_ETH_RSS_L4_SRC_ONLY, l4 + 1, l4 + 3);
	check_only(RTE_ETH_RSS_L4_DST_ONLY, l4 + 3, l4 + 1);
	/* the other layer stays */
	check_only(RTE_ETH_RSS_L3_SRC_ONLY, l4 + 1, ip + 19);
	check_only(RTE_ETH_RSS_L4_SRC_ONLY, ip + 19, l4 + 3);
	/* both is as none */
	make_view(&view, &vectors[0], SIM_TCP);
	assert_int_equal(
		hash(&view, TOEPLITZ,
			SIM_RSS_FIELDS | RTE_ETH_RSS_L3_SRC_ONLY | RTE_ETH_RSS_L3_DST_ONLY),
		vectors[0].all);
}

static void test_symmetry(void **state)
{
	static const enum rte_eth_hash_function symmetric[] = {SYMMETRIC, SIM_HASH_SYMMETRIC_SORT};
	struct sim_view view, back_view;

	(void)state;
	for (unsigned i = 0; i < sizeof(vectors) / sizeof(*vectors); i++) {
		struct vector back = reversed(&vectors[i]);

		make_view(&view, &vectors[i], SIM_TCP);
		make_view(&back_view, &back, SIM_TCP);
		assert_int_not_equal(
			hash(&view, TOEPLITZ, TCP_TYPES), hash(&back_view, TOEPLITZ, TCP_TYPES));
		for (unsigned n = 0; n < 2; n++) {
			uint32_t ahead = hash(&view, symmetric[n], TCP_TYPES);

			assert_int_not_equal(ahead, 0);
			assert_int_equal(hash(&back_view, symmetric[n], TCP_TYPES), ahead);
		}
		assert_int_not_equal(
			hash(&view, symmetric[0], TCP_TYPES), hash(&view, symmetric[1], TCP_TYPES));
	}
}

static void test_xor(void **state)
{
	struct sim_view view;

	(void)state;
	make_view(&view, &vectors[0], SIM_TCP);
	/* 66.9.149.187, 161.142.100.80, 2794, 1766 */
	assert_int_equal(
		hash(&view, RTE_ETH_HASH_FUNCTION_SIMPLE_XOR, IP_TYPES), 0x420995bb ^ 0xa18e6450);
	assert_int_equal(hash(&view, RTE_ETH_HASH_FUNCTION_SIMPLE_XOR, TCP_TYPES),
		0x420995bb ^ 0xa18e6450 ^ 0x0aea06e6);
}

/* The engine computes what the NIC does: of every kind of packet that is no fragment. */
static void test_engine(void **state)
{
	const struct stream_config config = {.flows = 4096,
		.proto_share = {64, 64, 64, 64},
		.ipv6_share = 128,
		.vlan_share = 64};
	const struct hash_secret secret = {.word = {1, 2, 3, 4, 5, 6}};
	const struct extract_options options = {.secret = &secret};
	uint16_t pattern = rss_pattern(12345);
	uint64_t types = rss_flags((1 << RSS_N_KINDS) - 1) & SIM_RSS_TYPES;
	uint8_t key[RSS_KEY_BYTES], frame[128];
	struct stream_set *set;
	struct error error;

	(void)state;
	rss_key(pattern, key);
	assert_int_equal(stream_set_create(&set, &config, &error), 0);
	for (uint32_t stream = 0; stream < 2 * config.flows; stream++) {
		uint16_t length = stream_frame(set, stream, frame);
		struct rte_mbuf *packet = frame_mbuf(frame, length);
		struct packet_info info;
		struct sim_view view;

		assert_int_equal(extract(&options, packet, 0, &info), EXTRACT_IP);
		sim_view_packet(&view, packet);
		assert_int_equal(sim_rss_hash(&view, TOEPLITZ, types, key, sizeof(key)),
			rss_hash(pattern, &info.key));
		frame_mbuf_free(packet);
	}
	stream_set_destroy(set);
}

static void test_rule(void **state)
{
	struct sim_rss rss = {.n_queues = 3, .queues = {5, 2, 9}};
	struct sim_view view;

	(void)state;
	make_view(&view, &vectors[0], SIM_TCP);
	/* queues alone: spread by the port's own hash */
	assert_int_equal(sim_rss_rule_queue(&rss, &view, 7), 2);
	rss.types = TCP_TYPES;
	assert_int_equal(sim_rss_rule_queue(&rss, &view, 7), rss.queues[vectors[0].all % 3]);
	rss.types = IP_TYPES;
	assert_int_equal(sim_rss_rule_queue(&rss, &view, 7), rss.queues[vectors[0].addresses % 3]);
	rss.types = 0;
	rss.function = SYMMETRIC;
	assert_int_equal(sim_rss_rule_queue(&rss, &view, 7),
		rss.queues[hash(&view, SYMMETRIC, SIM_RSS_FIELDS) % 3]);
	rss.n_queues = 0;
	assert_int_equal(sim_rss_rule_queue(&rss, &view, 7), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_fragments),
		cmocka_unit_test(test_only),
		cmocka_unit_test(test_symmetry),
		cmocka_unit_test(test_xor),
		cmocka_unit_test(test_engine),
		cmocka_unit_test(test_rule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
