/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that no rule can be expected to match as the engine reads them: whoever sends such, however many, keeps nobody
 * else's flows out of the NIC.
 */
#include "offload_talks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <netinet/in.h>

#include "plane/plane.h"

#define EACH 8
#define UNPLAIN_A_ROUND 3
#define PROVEN_MS 20000
#define ATTACK_MS 1000

enum { OPTION_DESTINATION = 60 };

static void udp(struct frame *frame, unsigned src_port)
{
	frame_udp(frame, src_port, 53);
	frame_fill(frame, 32);
	frame_finish(frame);
}

static void plain_ipv4(struct frame *frame, const char *src, unsigned src_port)
{
	frame_ipv4(frame, src, "192.0.2.9", IPPROTO_UDP);
	udp(frame, src_port);
}

static void three_tags(struct frame *frame, const char *src, unsigned src_port)
{
	frame_tag(frame, 0x88a8, 7);
	frame_tag(frame, 0x8100, 8);
	frame_tag(frame, 0x8100, 9);
	plain_ipv4(frame, src, src_port);
}

static void options(struct frame *frame, const char *src, unsigned src_port)
{
	frame_ipv4_options(frame, src, "192.0.2.9", IPPROTO_UDP, 8);
	udp(frame, src_port);
}

static void bad_checksum(struct frame *frame, const char *src, unsigned src_port)
{
	plain_ipv4(frame, src, src_port);
	frame->bytes[frame->ip[0] + 10] ^= 0x55;
}

static void too_long(struct frame *frame, const char *src, unsigned src_port)
{
	plain_ipv4(frame, src, src_port);
	put_be16(&frame->bytes[frame->ip[0] + 2], 1400);
}

static void cut(struct frame *frame, const char *src, unsigned src_port)
{
	plain_ipv4(frame, src, src_port);
	put_be16(&frame->bytes[frame->ip[0] + 2], 22);
}

static void first_fragment(struct frame *frame, const char *src, unsigned src_port)
{
	frame_ipv4(frame, src, "192.0.2.9", IPPROTO_UDP);
	frame_ipv4_fragment(frame, src_port, 0, true);
	udp(frame, src_port);
}

static void plain_ipv6(struct frame *frame, const char *src, unsigned src_port)
{
	frame_ipv6(frame, src, "2001:db8::9", IPPROTO_UDP);
	udp(frame, src_port);
}

static void extension(struct frame *frame, const char *src, unsigned src_port)
{
	frame_ipv6(frame, src, "2001:db8::9", OPTION_DESTINATION);
	frame_extension(frame, IPPROTO_UDP, 0, 8);
	udp(frame, src_port);
}

static void no_length(struct frame *frame, const char *src, unsigned src_port)
{
	plain_ipv6(frame, src, src_port);
	put_be16(&frame->bytes[frame->ip[0] + 4], 0);
}

/* What the attacker's packets are; `mixed`: one in four is plain, so that its flows get into the NIC. */
static const struct attack {
	const char *name;
	void (*build)(struct frame *frame, const char *src, unsigned src_port);
	bool ipv6, mixed, full;
	bool matches; /* by the simulated NIC's rules, too */
} attacks[] = {
	{"three tags", three_tags, false, false, false, false},
	{"three tags, some plain", three_tags, false, true, false, false},
	{"three tags, some plain, full offload", three_tags, false, true, true, false},
	{"options", options, false, false, false, false},
	{"options, some plain", options, false, true, false, true},
	{"a bad checksum, some plain", bad_checksum, false, true, false, true},
	{"longer than the frame, some plain", too_long, false, true, false, true},
	{"cut ports", cut, false, false, false, false},
	{"first fragments, some plain", first_fragment, false, true, false, true},
	{"first fragments, some plain, full offload", first_fragment, false, true, true, false},
	{"extension headers", extension, true, false, false, false},
	{"extension headers, some plain", extension, true, true, false, true},
	{"extension headers, some plain, full offload", extension, true, true, true, true},
	{"IPv6 without a length, some plain", no_length, true, true, false, true},
};

static struct frame frames[2 * EACH + EACH * (1 + UNPLAIN_A_ROUND)];
static struct live_frame list[RTE_DIM(frames)];

/* Flows 0 to EACH - 1 are genuine, both ways; the others are the attacker's, one way. */
static struct offload_live *begin(const struct attack *attack)
{
	struct offload_live_options options = {
		.n_flows = 2 * EACH,
		.rate = 8000,
		.threshold = 50,
		.frames = list,
		.full = attack->full,
		.words = attack->full ? "nic=n,profile=cx5" : "profile=cx5",
	};
	unsigned n = 0;

	for (unsigned i = 0; i < EACH; i++) {
		char address[40];

		snprintf(address, sizeof(address), "192.0.2.%u", 20 + i);
		for (unsigned side = 0; side < 2; side++) {
			const struct talk talk = {
				address, "192.0.2.1", IPPROTO_UDP, 4000 + i, 53, 0};

			talk_frame(&frames[n], &talk, side != 0);
			list[n] = (struct live_frame){&frames[n], i, (uint8_t)side};
			n++;
		}
		snprintf(address, sizeof(address), attack->ipv6 ? "2001:db8::%u" : "198.51.100.%u",
			20 + i);
		for (unsigned k = 0; k < 1 + UNPLAIN_A_ROUND; k++) {
			frame_start(&frames[n]);
			if (k == 0 && attack->mixed)
				(attack->ipv6 ? plain_ipv6 : plain_ipv4)(
					&frames[n], address, 5000 + i);
			else
				attack->build(&frames[n], address, 5000 + i);
			list[n] = (struct live_frame){&frames[n], EACH + i, 0};
			n++;
		}
	}
	options.n_frames = n;
	return offload_live_begin(&options);
}

static bool genuine_are_proven(struct offload_live *live, void *unused)
{
	(void)unused;
	for (unsigned i = 0; i < EACH; i++)
		if (!offload_live_proven(live, &live->flows[i]))
			return false;
	return true;
}

static bool attackers_are_told(struct offload_live *live, void *unused)
{
	struct plane_flow answer;

	(void)unused;
	for (unsigned i = EACH; i < 2 * EACH; i++) {
		offload_live_ask(live, &live->flows[i], &answer);
		if (answer.offload.state[offload_live_from(&answer.record, 0)] !=
				OFFLOAD_SOFTWARE ||
			answer.offload.reason[offload_live_from(&answer.record, 0)] !=
				OFFLOAD_UNPLAIN)
			return false;
	}
	return true;
}

static void check_breaker(struct offload_live *live)
{
	struct agent_counters counters;

	for (unsigned port = 0; port < 2; port++) {
		assert_int_equal(
			atomic_load(&installer_health(plane_installer(live->plane, port))->opened),
			0);
		offload_live_counters(live, port, &counters);
		for (unsigned reason = 0; reason < OFFLOAD_N_REASONS; reason++)
			assert_int_equal(counters.fell_out[reason], 0);
	}
}

static void nobody_else_suffers(void **state)
{
	const struct attack *attack = *state;
	struct offload_live *live = begin(attack);

	if (!offload_live_until(live, genuine_are_proven, NULL, PROVEN_MS)) {
		offload_live_print(live);
		fail_msg("genuine flows are not in the NIC");
	}
	if (!attack->matches && !offload_live_until(live, attackers_are_told, NULL, PROVEN_MS)) {
		offload_live_print(live);
		fail_msg("the attacker's flows do not say why they are in software");
	}
	offload_live_run(live, ATTACK_MS);
	check_breaker(live);
	assert_true(genuine_are_proven(live, NULL));
	offload_live_check(live);
	offload_live_leave(live);
}

static bool put_are_taken(struct offload_live *live, void *unused)
{
	(void)unused;
	return live->side[0].n_put == 0;
}

/* A marked packet that is not plain, in front of others in a burst: every byte is counted once. */
static void a_marked_one_in_front(void **state)
{
	static const struct talk talk = {"192.0.2.1", "192.0.2.2", IPPROTO_UDP, 4000, 53, 0};
	const bool *large = *state;
	struct offload_live *live = talks_begin(
		&talk, 1, &(struct offload_live_options){.rate = 1000, .large = *large});
	struct frame plain, fragment;

	assert_true(offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
	talk_frame(&plain, &talk, false);
	talk_fragment(&fragment, &talk, false);
	const uint32_t mark = live->flows[0].mark;

	for (unsigned n_before = 0; n_before < 3; n_before++) {
		for (unsigned i = 0; i < n_before; i++)
			offload_live_put_frame(live, &plain, 0, mark);
		offload_live_put_frame(live, &fragment, 0, mark);
		for (unsigned i = 0; i < 5; i++)
			offload_live_put_frame(live, &plain, 0, mark);
		assert_true(offload_live_until(live, put_are_taken, NULL, 1000));
		offload_live_check(live);
	}
	offload_live_leave(live);
}

int main(void)
{
	static const bool is_large[] = {false, true};
	struct CMUnitTest tests[RTE_DIM(attacks) + RTE_DIM(is_large)];

	for (unsigned i = 0; i < RTE_DIM(is_large); i++)
		tests[RTE_DIM(attacks) + i] = (struct CMUnitTest){
			.name = i == 0 ? "a marked one in front" : "in a large table",
			.test_func = a_marked_one_in_front,
			.teardown_func = offload_live_tidy,
			.initial_state = (void *)(uintptr_t)&is_large[i]};
	for (unsigned i = 0; i < RTE_DIM(attacks); i++)
		tests[i] = (struct CMUnitTest){.name = attacks[i].name,
			.test_func = nobody_else_suffers,
			.teardown_func = offload_live_tidy,
			.initial_state = (void *)(uintptr_t)&attacks[i]};
	return _cmocka_run_group_tests(
		"offload_unplain", tests, RTE_DIM(tests), offload_live_environment, NULL);
}
