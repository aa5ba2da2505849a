/* SPDX-License-Identifier: BSD-3-Clause */
/* Which packets a flow's rule claims, and which it must leave alone: frame by frame. */
#include "provider_scene.h"

#include "capture_files.h"
#include "frames.h"

#define MAX_SHOTS 64
#define SHORTEST 100

/* A frame that is known by its length, and what its packets are to carry. */
struct shot {
	struct frame frame;
	const char *what;
	uint32_t mark; /* 0: none */
	bool perhaps;  /* or none */
	uint64_t seen;
};

struct shots {
	unsigned n;
	struct shot shot[MAX_SHOTS];
};

static struct shots shots;

static const struct {
	const char *args;
	bool async;
} nics[] = {
	{"profile=ideal", false},
	{"profile=ideal", true},
	{"profile=ideal,items=-eth", false},
	{"profile=tiny", false},
	{"profile=x710", false},
	{"profile=e810", false},
	{"profile=cx5", false},
	{"profile=cx6-hws", true},
};

static struct frame *shot(const char *what, uint32_t mark)
{
	struct shot *new = &shots.shot[shots.n++];

	assert_true(shots.n <= MAX_SHOTS);
	memset(new, 0, sizeof(*new));
	new->what = what;
	new->mark = mark;
	frame_start(&new->frame);
	return &new->frame;
}

static void tcp(const char *what, uint32_t mark, bool back, unsigned flags)
{
	struct frame *frame = shot(what, mark);
	const struct frame_tcp header = {
		.src_port = back ? 80 : 1000, .dst_port = back ? 1000 : 80, .flags = flags};

	frame_ipv4(frame, back ? "10.0.0.2" : "10.0.0.1", back ? "10.0.0.1" : "10.0.0.2", 6);
	frame_tcp(frame, &header);
}

static void udp(const char *what, uint32_t mark, const char *src, const char *dst, unsigned sport,
	unsigned dport)
{
	struct frame *frame = shot(what, mark);

	if (strchr(src, ':') != NULL)
		frame_ipv6(frame, src, dst, 17);
	else
		frame_ipv4(frame, src, dst, 17);
	frame_udp(frame, sport, dport);
}

static void tagged(const char *what, uint32_t mark, unsigned outer, unsigned inner)
{
	struct frame *frame = shot(what, mark);

	frame_tag(frame, inner != 0 ? 0x88a8 : 0x8100, 0x6000 | outer);
	if (inner != 0)
		frame_tag(frame, 0x8100, inner);
	frame_ipv4(frame, "10.0.0.1", "10.0.0.2", 17);
	frame_udp(frame, 1000, 53);
}

static void icmp(const char *what, uint32_t mark, bool six, bool back, unsigned type)
{
	struct frame *frame = shot(what, mark);
	const char *one = six ? "2001:db8::1" : "10.0.0.1", *two = six ? "2001:db8::2" : "10.0.0.2";

	if (six)
		frame_ipv6(frame, back ? two : one, back ? one : two, 58);
	else
		frame_ipv4(frame, back ? two : one, back ? one : two, 1);
	frame_icmp(frame, type, 0);
}

/* All of them into a file. */
static char *write_capture(void)
{
	static struct file file;

	memset(&file, 0, sizeof(file));
	put_pcap_header(&file, PCAP_MICROSECONDS, 4, FILE_ETHERNET);
	for (unsigned i = 0; i < shots.n; i++) {
		struct frame *frame = &shots.shot[i].frame;

		frame_fill(frame, SHORTEST + i - frame->length);
		frame_finish(frame);
		put32(&file, i);
		put32(&file, 0);
		put32(&file, (uint32_t)frame->length);
		put32(&file, (uint32_t)frame->length);
		put_bytes(&file, frame->bytes, frame->length);
	}
	return save(&file, file.length);
}

static void open_shots(
	struct provider_scene *scene, const char *args, bool async, bool zone_vlan, char **path)
{
	char all[200];

	*path = write_capture();
	snprintf(all, sizeof(all), "%s,capture=%s", args, *path);
	print_message("%s%s\n", args, async ? ", async" : "");
	scene_port(scene, all, async);
	scene->config.zone_vlan = zone_vlan;
	assert_int_equal(provider_open(&scene->provider, &scene->config), 0);
}

static void close_shots(struct provider_scene *scene, char *path)
{
	scene_close(scene);
	unlink(path);
	free(path);
}

/* The rule that packets like a shot are to have. */
static int insert_like(struct provider_scene *scene, const char *what)
{
	const struct hash_secret secret = {.word = {1, 2}};
	const struct extract_options options = {
		.secret = &secret, .zone_vlan = scene->config.zone_vlan};
	struct packet_info info;
	struct offload_rule rule;
	struct provider_why why;
	unsigned i = 0;

	while (strcmp(shots.shot[i].what, what) != 0)
		assert_true(++i < shots.n);
	struct rte_mbuf *mbuf = frame_mbuf(shots.shot[i].frame.bytes, shots.shot[i].frame.length);

	assert_int_equal(extract(&options, mbuf, 0, &info), EXTRACT_IP);
	frame_mbuf_free(mbuf);
	rule = (struct offload_rule){
		.key = info.key, .from = info.from, .mark = shots.shot[i].mark};
	return scene_insert(scene, i, &rule, &why);
}

static void check_packet(const struct rte_mbuf *packet)
{
	struct shot *found = &shots.shot[packet->pkt_len - SHORTEST];
	bool marked = packet->ol_flags & RTE_MBUF_F_RX_FDIR_ID;
	const uint32_t mark = marked ? packet->hash.fdir.hi : 0, wanted = found->mark;

	found->seen++;
	if (mark != wanted && !(found->perhaps && mark == 0))
		fail_msg("%s: %u, not %u", found->what, mark, wanted);
}

/* Each shot a few times. */
static void check_shots(struct provider_scene *scene)
{
	uint64_t fewest = 0;

	for (unsigned turn = 0; fewest < 3; turn++) {
		struct rte_mbuf *packets[32];
		uint16_t n =
			rte_eth_rx_burst(scene->nic.id, (uint16_t)(turn % NIC_QUEUES), packets, 32);

		assert_true(turn < 1000000);
		for (uint16_t i = 0; i < n; i++)
			check_packet(packets[i]);
		rte_pktmbuf_free_bulk(packets, n);
		fewest = UINT64_MAX;
		for (unsigned i = 0; i < shots.n; i++)
			fewest = RTE_MIN(fewest, shots.shot[i].seen);
	}
}

static bool takes(const struct provider_scene *scene, enum provider_kind kind)
{
	return provider_abilities(scene->provider)->kind[kind];
}

/* The CPU sees each of them anyway. */
static void opening_and_closing_segments_are_marked(void **state)
{
	struct provider_scene scene;
	char *path;

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(nics); i++) {
		shots.n = 0;
		tcp("ack", 71, false, TCP_ACK);
		tcp("push, urgent", 71, false, TCP_ACK | TCP_PSH | TCP_URG);
		tcp("no flags", 71, false, 0);
		tcp("all others", 71, false, 0xf8);
		tcp("syn", 71, false, TCP_SYN);
		tcp("syn, ack", 71, false, TCP_SYN | TCP_ACK);
		tcp("fin", 71, false, TCP_FIN | TCP_ACK);
		tcp("rst", 71, false, TCP_RST);
		tcp("back", 0, true, TCP_ACK);
		tcp("back rst", 0, true, TCP_RST | TCP_ACK);
		udp("the same ports", 0, "10.0.0.1", "10.0.0.2", 1000, 80);
		open_shots(&scene, nics[i].args, nics[i].async, false, &path);
		assert_int_equal(insert_like(&scene, "ack"), 0);
		check_shots(&scene);
		close_shots(&scene, path);
	}
}

static void fragments(void)
{
	struct frame *frame;

	udp("first fragment", 72, "10.0.0.1", "10.0.0.2", 1000, 53);
	shots.shot[shots.n - 1].perhaps = true;
	frame_ipv4_fragment(&shots.shot[shots.n - 1].frame, 7, 0, true);
	/* with the ports' bytes where those would be */
	udp("later fragment", 0, "10.0.0.1", "10.0.0.2", 1000, 53);
	frame_ipv4_fragment(&shots.shot[shots.n - 1].frame, 7, 64, true);
	udp("last fragment", 0, "10.0.0.1", "10.0.0.2", 1000, 53);
	frame_ipv4_fragment(&shots.shot[shots.n - 1].frame, 7, 128, false);
	frame = shot("later fragment, ipv6", 0);
	frame_ipv6(frame, "2001:db8::1", "2001:db8::2", 44);
	frame_ipv6_fragment(frame, 17, 7, 64, true);
	frame_udp(frame, 1000, 53);
	frame = shot("later fragment of icmp", 0);
	frame_ipv4(frame, "10.0.0.1", "10.0.0.2", 1);
	frame_ipv4_fragment(frame, 8, 64, false);
	frame_icmp(frame, 8, 0);
}

static void fragments_and_strangers_stay_out(void **state)
{
	struct provider_scene scene;
	char *path;

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(nics); i++) {
		shots.n = 0;
		udp("forward", 72, "10.0.0.1", "10.0.0.2", 1000, 53);
		udp("reverse", 73, "10.0.0.2", "10.0.0.1", 53, 1000);
		udp("another port", 0, "10.0.0.1", "10.0.0.2", 1001, 53);
		udp("ports the other way", 0, "10.0.0.1", "10.0.0.2", 53, 1000);
		udp("another address", 0, "10.0.0.1", "10.0.0.3", 1000, 53);
		udp("six", 74, "2001:db8::1", "2001:db8::2", 1000, 53);
		udp("six, last byte", 0, "2001:db8::1", "2001:db8::3", 1000, 53);
		udp("six, first byte", 0, "2101:db8::1", "2001:db8::2", 1000, 53);
		udp("six, back", 0, "2001:db8::2", "2001:db8::1", 53, 1000);
		tcp("tcp", 0, false, TCP_ACK);
		udp("self, up", 75, "10.0.0.5", "10.0.0.5", 7, 9);
		udp("self, down", 76, "10.0.0.5", "10.0.0.5", 9, 7);
		udp("self, same ports", 77, "10.0.0.6", "10.0.0.6", 7, 7);
		fragments();
		open_shots(&scene, nics[i].args, nics[i].async, false, &path);
		static const char *const rules[] = {
			"forward", "reverse", "six", "self, up", "self, down", "self, same ports"};

		for (unsigned k = 0; k < RTE_DIM(rules); k++)
			assert_int_equal(insert_like(&scene, rules[k]), 0);
		check_shots(&scene);
		close_shots(&scene, path);
	}
}

static void icmp_is_all_between_two(void **state)
{
	struct provider_scene scene;
	char *path;

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(nics); i++) {
		shots.n = 0;
		icmp("echo", 81, false, false, 8);
		icmp("unreachable", 81, false, false, 3);
		icmp("answer", 82, false, true, 0);
		icmp("echo 6", 83, true, false, 128);
		icmp("too big 6", 83, true, false, 2);
		icmp("answer 6", 0, true, true, 129);
		udp("udp", 0, "10.0.0.1", "10.0.0.2", 0, 0);
		fragments();
		/* these have rules here that are not made */
		for (unsigned k = 7; k < shots.n; k++)
			shots.shot[k].mark = 0;
		open_shots(&scene, nics[i].args, nics[i].async, false, &path);
		if (takes(&scene, PROVIDER_IPV4_ICMP)) {
			assert_int_equal(insert_like(&scene, "echo"), 0);
			assert_int_equal(insert_like(&scene, "answer"), 0);
			assert_int_equal(insert_like(&scene, "echo 6"), 0);
			check_shots(&scene);
		} else {
			assert_int_equal(insert_like(&scene, "echo"), -EOPNOTSUPP);
		}
		close_shots(&scene, path);
	}
}

/* With zones that are VLANs: the outermost tag, whatever is behind it. */
static void each_vlan_has_its_flows(void **state)
{
	(void)state;
	for (unsigned i = 0; i < RTE_DIM(nics); i++) {
		struct provider_scene scene;
		char *path;

		shots.n = 0;
		tagged("five", 91, 5, 0);
		tagged("six", 92, 6, 0);
		tagged("seven", 0, 7, 0);
		tagged("five and six", 91, 5, 6);
		tagged("six and five", 92, 6, 5);
		udp("none", 93, "10.0.0.1", "10.0.0.2", 1000, 53);
		open_shots(&scene, nics[i].args, nics[i].async, true, &path);
		bool tags = strstr(provider_abilities(scene.provider)->shape[PROVIDER_IPV4_UDP],
				    "vlan") != NULL;
		int none;

		assert_int_equal(insert_like(&scene, "five"), tags ? 0 : -EOPNOTSUPP);
		assert_int_equal(insert_like(&scene, "six"), tags ? 0 : -EOPNOTSUPP);
		none = insert_like(&scene, "none");
		/* one set of fields: tagged packets, or the others */
		if (strstr(nics[i].args, "x710") != NULL) {
			assert_true(tags);
			assert_int_equal(none, -EOPNOTSUPP);
			shots.shot[5].mark = 0;
		} else {
			assert_int_equal(none, 0);
		}
		/* no tag in rules: packets in tags that look the same are verified */
		for (unsigned k = 0; k < 5 && !tags; k++) {
			shots.shot[k].mark = 93;
			shots.shot[k].perhaps = true;
		}
		check_shots(&scene);
		close_shots(&scene, path);
	}
}

/* Without them a flow's packets are its own in any VLAN. */
static void tags_do_not_matter_otherwise(void **state)
{
	(void)state;
	for (unsigned i = 0; i < RTE_DIM(nics); i++) {
		struct provider_scene scene;
		char *path;

		shots.n = 0;
		tagged("five", 91, 5, 0);
		tagged("five and six", 91, 5, 6);
		udp("none", 91, "10.0.0.1", "10.0.0.2", 1000, 53);
		open_shots(&scene, nics[i].args, nics[i].async, false, &path);
		assert_int_equal(insert_like(&scene, "five"), 0);
		check_shots(&scene);
		close_shots(&scene, path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opening_and_closing_segments_are_marked),
		cmocka_unit_test(fragments_and_strangers_stay_out),
		cmocka_unit_test(icmp_is_all_between_two),
		cmocka_unit_test(each_vlan_has_its_flows),
		cmocka_unit_test(tags_do_not_matter_otherwise),
	};

	return cmocka_run_group_tests(tests, nic_begin, NULL);
}
