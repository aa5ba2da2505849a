/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * TCP conversations as rows, one row a segment. Sequence and acknowledgement numbers count from the
 * initial ones of the ends, so that A's SYN has seq 0 and its first data seq 1. The first row of a
 * scene is the first segment of a record. A is the initiator.
 *
 * Every scene runs at several initial sequence numbers, so that each of its steps crosses 2^32 in
 * one of them, and with A as either end of the key (states are written for A = end 0).
 *
 * To add a scene: write its rows in one of the test_flow_tcp*.c, name it in `scenes`.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "flow/tcp_memory.h"

/* A row says what matters; the rest is 0. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

enum { A, B };

/* What is expected of a row. After REOPEN and ANEW the state is that of the fresh record. */
enum expected {
	FIRST,
	IN,
	ODD,
	PASSED,
	REOPEN,
	ANEW,
};

struct row {
	uint8_t flags;
	uint32_t len;
	uint32_t seq;
	uint32_t ack;
	uint16_t win;
	uint8_t from;
	enum expected expected;
	enum flow_state state;
	uint8_t option; /* SCALE(n) of a SYN with a window scale option */
};

#define SCALE(n) ((n) + 1)

/* No segment: the window is forgotten, as for a flow that a network card has whole. */
#define FORGET {.flags = 0xff}

#define SYN TCP_SYN
#define ACK TCP_ACK
#define FIN TCP_FIN
#define RST TCP_RST
#define PSH TCP_PSH

#define PICKED_UP FLOW_PICKED_UP
#define SYN_SENT FLOW_SYN_SENT
#define SYN_RECEIVED FLOW_SYN_RECEIVED
#define ESTABLISHED FLOW_ESTABLISHED
#define FIN_A FLOW_FIN_0
#define FIN_B FLOW_FIN_1
#define FIN_BOTH FLOW_FIN_BOTH
#define FIN_ACK_A FLOW_FIN_ACK_0
#define FIN_ACK_B FLOW_FIN_ACK_1
#define TIME_WAIT FLOW_TIME_WAIT
#define RESET FLOW_RESET

/* clang-format off */
#define OPEN(win_a, win_b) \
	{SYN, 0, 0, 0, win_a, A, FIRST, SYN_SENT}, \
	{SYN | ACK, 0, 0, 1, win_b, B, IN, SYN_RECEIVED}, \
	{ACK, 0, 1, 1, win_a, A, IN, ESTABLISHED}

/* Both offer the option; the last ACK's window is in units already. */
#define OPEN_SCALED(win_a, scale_a, win_b, scale_b) \
	{SYN, 0, 0, 0, win_a, A, FIRST, SYN_SENT, SCALE(scale_a)}, \
	{SYN | ACK, 0, 0, 1, win_b, B, IN, SYN_RECEIVED, SCALE(scale_b)}, \
	{ACK, 0, 1, 1, (win_a) >> (scale_a), A, IN, ESTABLISHED}

#define CLOSE_BY_A \
	{FIN | ACK, 0, 1, 1, 8000, A, IN, FIN_A}, \
	{FIN | ACK, 0, 1, 2, 8000, B, IN, FIN_ACK_A}, \
	{ACK, 0, 2, 2, 8000, A, IN, TIME_WAIT}

/* A has sent up to `a`, B nothing. */
#define CLOSE_AT(a) \
	{FIN | ACK, 0, a, 1, 8000, A, IN, FIN_A}, \
	{FIN | ACK, 0, 1, (a) + 1, 8000, B, IN, FIN_ACK_A}, \
	{ACK, 0, (a) + 1, 2, 8000, A, IN, TIME_WAIT}
/* clang-format on */

#define SCENE(name) {#name, name, sizeof(name) / sizeof((name)[0])}

struct scene {
	const char *name;
	const struct row *rows;
	size_t n_rows;
};

static const char *const verdicts[] = {"first", "in", "odd", "passed", "reopen", "anew"};

/* What the shard of the scene remembers; each begins with none. */
static struct tcp_memory memory;
static struct hash_secret scene_secret;
static uint64_t scene_us;

static struct tcp_segment segment_of(const struct row *row, const uint32_t initial[2])
{
	return (struct tcp_segment){
		.seq = initial[row->from] + row->seq,
		.ack = row->flags & ACK ? initial[!row->from] + row->ack : 0,
		.payload = row->len,
		.window = row->win,
		.flags = row->flags,
		.scale = row->option ? (uint8_t)(row->option - 1) : TCP_SCALE_NONE,
	};
}

static enum flow_state mirrored(enum flow_state state, bool mirror)
{
	static const uint8_t other[FLOW_N_STATES] = {
		[FLOW_FIN_0] = FLOW_FIN_1,
		[FLOW_FIN_1] = FLOW_FIN_0,
		[FLOW_FIN_ACK_0] = FLOW_FIN_ACK_1,
		[FLOW_FIN_ACK_1] = FLOW_FIN_ACK_0,
	};

	return mirror && other[state] ? (enum flow_state)other[state] : state;
}

static void count(struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	flow_count_packet(record, from, 54 + segment->payload);
	record->end[from].tcp_flags |= segment->flags;
	record->last_seen_us = scene_us & ((UINT64_C(1) << 48) - 1);
}

static void begin(struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	memset(record, 0, sizeof(*record));
	record->initiator = from & 1;
	flow_tcp_first(record, from, segment);
	count(record, from, segment);
}

static enum expected step(
	struct flow_record *record, unsigned from, const struct tcp_segment *segment, bool strict)
{
	struct flow_record before = *record;
	struct tcp_remembered first;
	const struct tcp_sight sight = {
		.now_us = ++scene_us,
		.bytes = 54 + segment->payload,
		.from = from,
		.segment = segment,
	};

	if (record->state == FLOW_FREE) {
		begin(record, from, segment);
		return FIRST;
	}
	enum tcp_verdict verdict = tcp_memory_track(&memory, record, &sight, strict, &first);

	if (verdict == TCP_IN_WINDOW) {
		count(record, from, segment);
		return IN;
	}
	/* what is outside the window, or of another conversation, moves nothing */
	assert_memory_equal(record, &before, sizeof(before));
	switch (verdict) {
	case TCP_ODD:
		if (!strict)
			count(record, from, segment);
		return ODD;
	case TCP_PASSED:
		count(record, from, segment);
		return PASSED;
	case TCP_REOPEN:
		begin(record, from, segment);
		return REOPEN;
	case TCP_ANEW:
		begin(record, first.from, &first.segment);
		assert_int_equal(flow_tcp_track(record, from, segment), TCP_IN_WINDOW);
		count(record, from, segment);
		return ANEW;
	case TCP_IN_WINDOW:
		break;
	}
	return FIRST;
}

/* Returns the number of rows whose outcome is not the expected one. */
static unsigned play(const struct scene *scene, const uint32_t initial[2], bool mirror, bool strict)
{
	struct flow_record record = {0};
	unsigned wrong = 0;

	if (memory.sets == NULL)
		assert_int_equal(tcp_memory_init(&memory, 1, &scene_secret), 0);
	tcp_memory_clear(&memory);
	for (size_t i = 0; i < scene->n_rows && wrong == 0; i++) {
		const struct row *row = &scene->rows[i];
		if (row->flags == 0xff) {
			flow_tcp_forget_window(&record);
			continue;
		}
		struct tcp_segment segment = segment_of(row, initial);
		enum expected outcome =
			step(&record, row->from ^ (unsigned)mirror, &segment, strict);
		enum flow_state state = mirrored(row->state, mirror);

		if (outcome == row->expected && record.state == state)
			continue;
		print_error("%s, row %zu%s%s at %#x/%#x: %s and %s, expected %s and %s\n",
			scene->name, i, mirror ? ", mirrored" : "", strict ? ", strict" : "",
			initial[0], initial[1], verdicts[outcome], flow_state_name(record.state),
			verdicts[row->expected], flow_state_name(state));
		wrong++;
	}
	return wrong;
}

/* So that every step of a scene crosses 2^32, or 2^31, in one of them. */
static const uint32_t initial_numbers[] = {
	0, 1, 0x7fffff00, 0x80000000, 0xffff0000, 0xfffff000, 0xffffff80, 0xfffffffe, 0xffffffff};
#define N_INITIAL (sizeof(initial_numbers) / sizeof(initial_numbers[0]))

static unsigned play_everywhere(const struct scene *scene, bool strict)
{
	unsigned wrong = 0;

	for (size_t i = 0; i < N_INITIAL * N_INITIAL; i++) {
		uint32_t initial[2] = {
			initial_numbers[i / N_INITIAL], initial_numbers[i % N_INITIAL]};

		wrong += play(scene, initial, false, strict);
		wrong += play(scene, initial, true, strict);
	}
	return wrong;
}

static unsigned play_all(const struct scene *scenes, size_t n_scenes)
{
	unsigned wrong = 0;

	for (size_t i = 0; i < n_scenes; i++) {
		wrong += play_everywhere(&scenes[i], false);
		wrong += play_everywhere(&scenes[i], true);
	}
	return wrong;
}
