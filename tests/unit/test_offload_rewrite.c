/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules that change packets before they send them on: what leaves the other port, and what is refused. */

#include "unit/flowsim_line.h"

#include <errno.h>

#include <rte_ip.h>

#include "packet/extract.h"
#include "rteflow/provider.h"
#include "rteflow/rewrite.h"

#define PLACES 64
#define IPV6_BYTES (14 + 40 + 8)

/* Two ports of one NIC, and what gives its rules to the first. */
struct pair {
	struct line a, b;
	struct provider *provider;
};

static const struct offload_rewrite whole = {
	.what = REWRITE_ALL,
	.mac = {{2, 9, 9, 9, 9, 1}, {2, 9, 9, 9, 9, 2}},
	.addr = {{198, 51, 100, 7, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 1},
		{203, 0, 113, 9, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 2}},
	.port = {RTE_BE16(4711), RTE_BE16(8080)},
};

static void begin(struct pair *pair, const char *args)
{
	struct provider_config config = {.n_places = PLACES,
		.n_queues = LINE_QUEUES,
		.metadata = true,
		.full = true,
		.random = 1};
	char words[80];

	snprintf(words, sizeof(words), "nic=x,hostile=0,%s", args);
	line_open(&pair->a, "a", words);
	line_open(&pair->b, "b", words);
	config.port_id = pair->a.nic.id;
	config.forward_to = pair->b.nic.id;
	assert_int_equal(provider_open(&pair->provider, &config), 0);
}

static void end(struct pair *pair)
{
	provider_close(pair->provider);
	line_close(&pair->a);
	line_close(&pair->b);
}

/* The rule for packets like this one, from where it comes. */
static struct offload_rule rule_of(
	const struct rte_mbuf *packet, const struct offload_rewrite *rewrite)
{
	const struct hash_secret secret = {.word = {1, 2}};
	const struct extract_options options = {.secret = &secret};
	struct packet_info info;

	assert_int_equal(extract(&options, packet, 0, &info), EXTRACT_IP);
	return (struct offload_rule){
		.key = info.key, .from = info.from, .deed = PROVIDER_FORWARDS, .rewrite = rewrite};
}

static int insert(struct pair *pair, uint32_t place, unsigned stream, enum provider_deed deed,
	const struct offload_rewrite *rewrite, struct provider_why *why)
{
	struct rte_mbuf *packet = line_packet(&pair->a, stream);
	struct offload_rule rule = rule_of(packet, rewrite);

	rte_pktmbuf_free(packet);
	rule.deed = (uint8_t)deed;
	*why = (struct provider_why){0};
	return provider_insert(pair->provider, place, &rule, why);
}

/* One packet arrives, and leaves by the other port; nobody receives it. */
static struct rte_mbuf *pass(struct pair *pair, struct rte_mbuf *packet)
{
	struct rte_mbuf *sent;

	assert_int_equal(rte_ring_enqueue(pair->a.rings[0], packet), 0);
	assert_null(line_receive(&pair->a, 0));
	sent = line_sent(&pair->b);
	assert_non_null(sent);
	assert_null(line_sent(&pair->b));
	return sent;
}

/* A frame as it is to be: of `what` the new values, else the old ones; checksums are another matter. */
static void expect(struct line_frame *frame, unsigned stream, unsigned what)
{
	line_frame(frame, stream);
	for (unsigned i = 0; i < 2; i++) {
		/* a frame has the destination first */
		if (what & REWRITE_MAC << i)
			memcpy(&frame->eth[i == REWRITE_SRC ? 6 : 0], whole.mac[i], 6);
		if (what & REWRITE_ADDR << i)
			memcpy(i == REWRITE_SRC ? &frame->ip.src_addr : &frame->ip.dst_addr,
				whole.addr[i], 4);
		if (what & REWRITE_PORT << i)
			*(i == REWRITE_SRC ? &frame->udp.src_port : &frame->udp.dst_port) =
				whole.port[i];
	}
	frame->ip.time_to_live = what & REWRITE_TTL ? 63 : 64;
}

/* Each part alone, nothing, and all. */
static void what_leaves_is_rewritten(void **state)
{
	(void)state;
	for (unsigned bit = 0; bit <= 8; bit++) {
		const unsigned what = bit < 7 ? 1u << bit : bit == 7 ? 0 : REWRITE_ALL;
		struct offload_rewrite rewrite = whole;
		struct line_frame wanted, got;
		struct provider_count count;
		struct provider_why why;
		struct pair pair;

		rewrite.what = (uint8_t)what;
		begin(&pair, "profile=cx5");
		assert_int_equal(insert(&pair, 3, 5, PROVIDER_FORWARDS, &rewrite, &why), 0);
		/* the caller's own again */
		memset(&rewrite, 0xee, sizeof(rewrite));

		struct rte_mbuf *sent = pass(&pair, line_packet(&pair.a, 5));

		memcpy(&got, rte_pktmbuf_mtod(sent, void *), sizeof(got));
		rte_pktmbuf_free(sent);
		line_assert_checksums(&got.ip);
		expect(&wanted, 5, what);
		wanted.ip.hdr_checksum = got.ip.hdr_checksum;
		wanted.udp.dgram_cksum = got.udp.dgram_cksum;
		assert_memory_equal(&got, &wanted, sizeof(got));
		/* it is counted as any other that was sent on */
		assert_int_equal(provider_query(pair.provider, 3, &count, &why), 0);
		assert_int_equal(count.packets, 1);
		assert_int_equal(count.bytes, LINE_BYTES);
		assert_int_equal(provider_remove(pair.provider, 3, &why), 0);
		end(&pair);
	}
}

static struct rte_mbuf *ipv6_packet(const struct line *line)
{
	struct rte_mbuf *packet = rte_pktmbuf_alloc(line->nic.pool);
	uint8_t *frame = packet != NULL ? (void *)rte_pktmbuf_append(packet, IPV6_BYTES) : NULL;

	assert_non_null(frame);
	if (frame == NULL)
		return NULL;
	memset(frame, 0, IPV6_BYTES);
	memcpy(frame, (const uint8_t[]){2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd, 0x60}, 15);
	frame[14 + 5] = 8; /* payload */
	frame[14 + 6] = IPPROTO_UDP;
	frame[14 + 7] = 64;
	memcpy(&frame[14 + 8], (const uint8_t[16]){0x20, 1, 0xd, 0xb8, [15] = 1}, 16);
	memcpy(&frame[14 + 24], (const uint8_t[16]){0x20, 1, 0xd, 0xb8, [15] = 2}, 16);
	memcpy(&frame[54], (const uint8_t[]){0x03, 0xe8, 0, 80, 0, 8}, 6);
	return packet;
}

static void of_ipv6_too(void **state)
{
	struct provider_why why = {0};
	struct offload_rule rule;
	struct rte_mbuf *packet;
	struct pair pair;

	(void)state;
	begin(&pair, "profile=cx5");
	packet = ipv6_packet(&pair.a);
	rule = rule_of(packet, &whole);
	assert_int_equal(provider_insert(pair.provider, 0, &rule, &why), 0);
	packet = pass(&pair, packet);

	const uint8_t *frame = rte_pktmbuf_mtod(packet, const uint8_t *);

	assert_memory_equal(&frame[0], whole.mac[REWRITE_DST], 6);
	assert_memory_equal(&frame[6], whole.mac[REWRITE_SRC], 6);
	assert_int_equal(frame[14 + 7], 63);
	assert_memory_equal(&frame[14 + 8], whole.addr[REWRITE_SRC], 16);
	assert_memory_equal(&frame[14 + 24], whole.addr[REWRITE_DST], 16);
	assert_memory_equal(&frame[54], whole.port, 4);
	rte_pktmbuf_free(packet);
	end(&pair);
}

/* Who cannot says so, and is not taken to be full: asking again is no use. */
static void what_a_nic_cannot_rewrite(void **state)
{
	struct offload_rewrite rewrite = whole;
	struct provider_why why;
	struct pair pair;

	(void)state;
	begin(&pair, "profile=cx5,actions=-dec_ttl");
	assert_int_equal(insert(&pair, 0, 0, PROVIDER_FORWARDS, &rewrite, &why), -EOPNOTSUPP);
	assert_int_equal(why.error, ENOTSUP);
	assert_string_not_equal(why.words, "");
	/* all else it can; and the rule that it refused left nothing behind */
	rewrite.what = REWRITE_ALL ^ REWRITE_TTL;
	assert_int_equal(insert(&pair, 0, 0, PROVIDER_FORWARDS, &rewrite, &why), 0);
	assert_int_equal(insert(&pair, 1, 1, PROVIDER_FORWARDS, NULL, &why), 0);
	assert_int_equal(line_counter(&pair.a, "flow_rules"), 2);
	end(&pair);
}

/* A full table says what it likes: once such a rule was taken, no is for want of room. */
static void a_full_table_is_not_an_inability(void **state)
{
	struct provider_why why;
	struct pair pair;

	(void)state;
	begin(&pair, "profile=tiny,rules=4");
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(insert(&pair, i, i, PROVIDER_FORWARDS, &whole, &why), 0);
	assert_int_equal(insert(&pair, 4, 4, PROVIDER_FORWARDS, &whole, &why), -ENOSPC);
	end(&pair);
}

/* What is marked or dropped goes nowhere as anything else. */
static void only_what_is_sent_on(void **state)
{
	static const enum provider_deed deeds[] = {PROVIDER_MARKS, PROVIDER_DROPS};
	struct provider_why why;
	struct pair pair;

	(void)state;
	begin(&pair, "profile=cx5");
	for (unsigned i = 0; i < RTE_DIM(deeds); i++) {
		assert_int_equal(insert(&pair, 0, 0, deeds[i], &whole, &why), -EOPNOTSUPP);
		assert_string_equal(why.words, "only packets that are sent on are rewritten");
	}
	assert_int_equal(line_counter(&pair.a, "flow_rules"), 0);
	end(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_leaves_is_rewritten),
		cmocka_unit_test(of_ipv6_too),
		cmocka_unit_test(what_a_nic_cannot_rewrite),
		cmocka_unit_test(a_full_table_is_not_an_inability),
		cmocka_unit_test(only_what_is_sent_on),
	};

	return cmocka_run_group_tests(tests, nic_begin, NULL);
}
