/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Ports that are used again, resets that are none, windows that were forgotten; and a table of what each kind of
 * segment does in each state, which was written from RFC 9293 section 3.10.7, RFC 5961 sections 3 to 5 and
 * RFC 1337, not from the code.
 */

#include "tcp_scenes.h"

/* clang-format off */

#define A_NEW 500000000u
#define B_NEW 700000000u

/* A whole conversation with other numbers, from its SYN's answer on. */
#define LIFE_ANEW(client, server) \
	{SYN | ACK, 0, B_NEW, A_NEW + 1, 8000, server, ANEW, SYN_RECEIVED}, \
	{ACK, 0, A_NEW + 1, B_NEW + 1, 8000, client, IN, ESTABLISHED}, \
	{ACK, 100, A_NEW + 1, B_NEW + 1, 8000, client, IN, ESTABLISHED}, \
	{ACK, 900, B_NEW + 1, A_NEW + 101, 8000, server, IN, ESTABLISHED}

static const struct row reuse_in_syn_sent[] = {
	{SYN, 0, 0, 0, 8000, A, FIRST, SYN_SENT},
	{SYN, 0, A_NEW, 0, 8000, A, IN, SYN_SENT},
	{SYN, 0, A_NEW, 0, 8000, A, IN, SYN_SENT},
	LIFE_ANEW(A, B),
};

/* A SYN in the middle of a handshake is not answered: the handshake goes on. */
static const struct row forged_in_syn_sent[] = {
	{SYN, 0, 0, 0, 8000, A, FIRST, SYN_SENT},
	{SYN, 0, A_NEW, 0, 8000, A, IN, SYN_SENT},
	{SYN, 0, B_NEW, 0, 8000, B, IN, SYN_SENT},
	{SYN | ACK, 0, 0, 1, 8000, B, IN, SYN_RECEIVED},
	{SYN, 0, A_NEW + 5, 0, 8000, A, PASSED, SYN_RECEIVED},
	{SYN, 0, B_NEW + 5, 0, 8000, B, PASSED, SYN_RECEIVED},
	{ACK, 0, 1, 1, 8000, A, IN, ESTABLISHED},
};

static const struct row refused_anew[] = {
	{SYN, 0, 0, 0, 8000, A, FIRST, SYN_SENT},
	{SYN, 0, A_NEW, 0, 8000, A, IN, SYN_SENT},
	{RST | ACK, 0, 0, A_NEW + 1, 0, B, ANEW, RESET},
	{SYN, 0, A_NEW, 0, 8000, A, IN, RESET},
	{RST | ACK, 0, 0, A_NEW + 1, 0, B, IN, RESET},
	{SYN, 0, A_NEW, 0, 8000, A, IN, RESET}, /* the third time somebody listens */
	LIFE_ANEW(A, B),
};

static const struct row reuse_in_syn_received[] = {
	{SYN, 0, 0, 0, 8000, A, FIRST, SYN_SENT},
	{SYN | ACK, 0, 0, 1, 8000, B, IN, SYN_RECEIVED},
	{SYN, 0, A_NEW, 0, 8000, A, PASSED, SYN_RECEIVED},
	LIFE_ANEW(A, B),
};

static const struct row reuse_in_picked_up[] = {
	{ACK, 10, 1, 1, 8000, A, FIRST, PICKED_UP},
	{SYN, 0, A_NEW, 0, 8000, A, IN, PICKED_UP},
	LIFE_ANEW(A, B),
};

static const struct row reuse_in_established[] = {
	OPEN(8000, 8000),
	{SYN, 0, A_NEW, 0, 8000, A, PASSED, ESTABLISHED},
	{SYN, 0, A_NEW, 0, 8000, A, PASSED, ESTABLISHED},
	LIFE_ANEW(A, B),
};

/* The former server asks; and with a number that lies in the old window. */
static const struct row reuse_by_the_other_end[] = {
	OPEN(8000, 8000),
	{ACK, 100, 1, 1, 8000, A, IN, ESTABLISHED},
	{SYN, 0, A_NEW, 0, 8000, B, PASSED, ESTABLISHED},
	LIFE_ANEW(B, A),
};

static const struct row reuse_in_the_window[] = {
	OPEN(8000, 8000),
	{SYN, 0, 4000, 0, 8000, A, IN, ESTABLISHED},
	{SYN | ACK, 0, 3000, 4001, 8000, B, ANEW, SYN_RECEIVED},
	{ACK, 0, 4001, 3001, 8000, A, IN, ESTABLISHED},
};

static const struct row reuse_half_closed[] = {
	OPEN(8000, 8000),
	{FIN | ACK, 0, 1, 1, 8000, A, IN, FIN_A},
	{SYN, 0, A_NEW, 0, 8000, A, PASSED, FIN_A},
	LIFE_ANEW(A, B),
};

static const struct row reuse_last_ack_missing[] = {
	OPEN(8000, 8000),
	{FIN | ACK, 0, 1, 1, 8000, A, IN, FIN_A},
	{FIN | ACK, 0, 1, 2, 8000, B, IN, FIN_ACK_A},
	{SYN, 0, A_NEW, 0, 8000, A, PASSED, FIN_ACK_A},
	LIFE_ANEW(A, B),
};

static const struct row reuse_lower_in_time_wait[] = {
	OPEN(8000, 8000),
	CLOSE_BY_A,
	{SYN, 0, 4000000000, 0, 8000, A, PASSED, TIME_WAIT},
	{SYN | ACK, 0, B_NEW, 4000000001, 8000, B, ANEW, SYN_RECEIVED},
	{ACK, 0, 4000000001, B_NEW + 1, 8000, A, IN, ESTABLISHED},
};

static const struct row reuse_after_reset[] = {
	OPEN(8000, 8000),
	{RST, 0, 1, 0, 0, A, IN, RESET},
	{SYN, 0, A_NEW, 0, 8000, A, REOPEN, SYN_SENT},
	{SYN | ACK, 0, B_NEW, A_NEW + 1, 8000, B, IN, SYN_RECEIVED},
};

/* RFC 9293 section 3.5.1: a challenge ACK, the RST that it asks for, the SYN again. */
static const struct row half_open_discovery[] = {
	OPEN(8000, 8000),
	{ACK, 100, 1, 1, 8000, A, IN, ESTABLISHED},
	{ACK, 0, 1, 101, 8000, B, IN, ESTABLISHED},
	{SYN, 0, A_NEW, 0, 8000, A, PASSED, ESTABLISHED},
	{ACK, 0, 1, 101, 8000, B, IN, ESTABLISHED},
	{RST, 0, 101, 0, 0, A, IN, RESET},
	{SYN, 0, A_NEW, 0, 8000, A, REOPEN, SYN_SENT},
	{SYN | ACK, 0, B_NEW, A_NEW + 1, 8000, B, IN, SYN_RECEIVED},
	{ACK, 0, A_NEW + 1, B_NEW + 1, 8000, A, IN, ESTABLISHED},
};

static const struct row reuse_by_simultaneous_open[] = {
	OPEN(8000, 8000),
	{SYN, 0, A_NEW, 0, 8000, A, PASSED, ESTABLISHED},
	{SYN, 0, B_NEW, 0, 8000, B, PASSED, ESTABLISHED},
	{SYN | ACK, 0, A_NEW, B_NEW + 1, 8000, A, ANEW, SYN_RECEIVED},
	{SYN | ACK, 0, B_NEW, A_NEW + 1, 8000, B, IN, ESTABLISHED},
	{ACK, 100, A_NEW + 1, B_NEW + 1, 8000, A, IN, ESTABLISHED},
};

/* The answer to the SYN is not in the capture; what follows it is. */
static const struct row reuse_answer_missed[] = {
	OPEN(8000, 8000),
	{SYN, 0, A_NEW, 0, 8000, A, PASSED, ESTABLISHED},
	{ACK, 100, B_NEW + 1, A_NEW + 1, 8000, B, ANEW, PICKED_UP},
	{ACK, 0, A_NEW + 1, B_NEW + 101, 8000, A, IN, ESTABLISHED},
};

static const struct row reuse_scaled[] = {
	OPEN(8000, 8000),
	{SYN, 0, A_NEW, 0, 8000, A, PASSED, ESTABLISHED, SCALE(4)},
	{SYN | ACK, 0, B_NEW, A_NEW + 1, 100, B, ANEW, SYN_RECEIVED, SCALE(2)},
	{ACK, 0, A_NEW + 1, B_NEW + 1, 500, A, IN, ESTABLISHED},
	{ACK, 0, B_NEW + 1, A_NEW + 1, 100, B, IN, ESTABLISHED},
	{ACK, 10, A_NEW + 401, B_NEW + 1, 500, A, IN, ESTABLISHED}, /* 100 << 2 */
	{ACK, 10, A_NEW + 402, B_NEW + 1, 500, A, ODD, ESTABLISHED},
	{ACK, 10, B_NEW + 8001, A_NEW + 1, 100, B, IN, ESTABLISHED}, /* 500 << 4 */
	{ACK, 10, B_NEW + 8002, A_NEW + 1, 100, B, ODD, ESTABLISHED},
};

/* Forged SYNs beside the genuine one: the one that is answered counts. */
static const struct row reuse_among_forged[] = {
	OPEN(8000, 8000),
	{SYN, 0, A_NEW, 0, 8000, A, PASSED, ESTABLISHED},
	{SYN, 0, A_NEW + 10, 0, 8000, A, PASSED, ESTABLISHED},
	{SYN, 0, A_NEW + 20, 0, 8000, A, PASSED, ESTABLISHED},
	{SYN, 0, A_NEW + 30, 0, 8000, B, PASSED, ESTABLISHED},
	LIFE_ANEW(A, B),
};

/* A SYN that only a challenge ACK answers: the conversation goes on. */
static const struct row forged_syn[] = {
	OPEN(8000, 8000),
	{SYN, 0, A_NEW, 0, 8000, A, PASSED, ESTABLISHED},
	{ACK, 0, 1, 1, 8000, B, IN, ESTABLISHED},
	{SYN | ACK, 0, B_NEW, A_NEW + 2, 8000, B, ODD, ESTABLISHED}, /* of nobody's SYN */
	{ACK, 100, 1, 1, 8000, A, IN, ESTABLISHED},
	{ACK, 0, A_NEW + 1, B_NEW, 8000, A, ODD, ESTABLISHED},
	CLOSE_AT(101),
};

/* Its own SYN and the answer to it, both once more, begin nothing. */
static const struct row handshake_doubled[] = {
	OPEN(8000, 8000),
	{SYN, 0, 0, 0, 8000, A, IN, ESTABLISHED},
	{SYN | ACK, 0, 0, 1, 8000, B, IN, ESTABLISHED},
	{ACK, 100, 1, 1, 8000, A, IN, ESTABLISHED},
	{SYN, 0, 0, 0, 8000, A, IN, ESTABLISHED},
	{SYN | ACK, 0, 0, 1, 8000, B, IN, ESTABLISHED},
	CLOSE_AT(101),
	{SYN, 0, 0, 0, 8000, A, IN, TIME_WAIT},
	{SYN | ACK, 0, 0, 1, 8000, B, IN, TIME_WAIT},
};

/* One direction alone is seen: what follows the SYN in order makes it count. */
static const struct row one_way[] = {
	{SYN, 0, 0, 0, 8000, A, FIRST, SYN_SENT},
	{ACK, 0, 1, 1, 8000, A, IN, PICKED_UP},
	{ACK, 100, 1, 1, 8000, A, IN, PICKED_UP},
	{FIN | ACK, 0, 101, 900, 8000, A, IN, FIN_A},
	{SYN, 0, A_NEW, 0, 8000, A, IN, FIN_A},
	{ACK, 0, A_NEW + 1, B_NEW + 1, 8000, A, ANEW, PICKED_UP},
	{ACK, 100, A_NEW + 1, B_NEW + 1, 8000, A, IN, PICKED_UP},
	{SYN, 0, 77, 0, 8000, A, IN, PICKED_UP},
	{ACK, 0, 3000000000, 1, 8000, A, IN, PICKED_UP}, /* this does not follow it */
	{ACK, 50, 78, 1, 8000, A, ANEW, PICKED_UP},
};

/* Answers alone are seen. */
static const struct row one_way_back[] = {
	{SYN | ACK, 0, 0, 1, 8000, A, FIRST, PICKED_UP},
	{ACK, 100, 1, 101, 8000, A, IN, PICKED_UP},
	{FIN | ACK, 0, 101, 200, 8000, A, IN, FIN_A},
	{SYN | ACK, 0, B_NEW, A_NEW, 8000, A, IN, FIN_A},
	{ACK, 10, B_NEW + 1, A_NEW + 9, 8000, A, ANEW, PICKED_UP},
	{FIN | ACK, 0, B_NEW + 11, A_NEW + 9, 8000, A, IN, FIN_A},
};

/* A RST at the exact number that neither end heeds: both go on, first in whose name it came. */
static const struct row open_again[] = {
	OPEN(8000, 8000),
	{RST, 0, 1, 0, 0, A, IN, RESET},
	{ACK, 100, 1, 1, 8000, B, IN, RESET}, /* may have been under way */
	{ACK, 100, 1, 101, 8000, A, IN, RESET},
	{ACK, 100, 101, 101, 8000, B, IN, ESTABLISHED},
	{ACK, 0, 101, 201, 8000, A, IN, ESTABLISHED},
	{FIN | ACK, 0, 101, 201, 8000, A, IN, FIN_A},
};

/* What was under way when it came does not open it. */
static const struct row not_open_again[] = {
	OPEN(8000, 8000),
	{ACK, 100, 1, 1, 8000, A, IN, ESTABLISHED},
	{RST, 0, 101, 0, 0, A, IN, RESET},
	{ACK, 100, 1, 1, 8000, A, IN, RESET},
	{ACK, 100, 1, 101, 8000, B, IN, RESET},
	{ACK, 100, 101, 101, 8000, B, IN, RESET},
	{ACK, 0, 101, 1, 8000, A, IN, RESET},
	{ACK, 0, 101, 101, 8000, B, IN, RESET},
};

/* Half closed, a RST that nobody heeds, and on it goes. */
static const struct row half_closed_again[] = {
	OPEN(8000, 8000),
	{FIN | ACK, 0, 1, 1, 8000, A, IN, FIN_A},
	{RST, 0, 1, 0, 0, B, IN, RESET},
	{ACK, 100, 1, 2, 8000, B, IN, RESET},
	{ACK, 0, 2, 101, 8000, A, IN, FIN_A},
	{FIN | ACK, 0, 101, 2, 8000, B, IN, FIN_ACK_A},
	{ACK, 0, 2, 102, 8000, A, IN, TIME_WAIT},
};

/* A refused attempt stays refused. */
static const struct row refused_for_good[] = {
	{SYN, 0, 0, 0, 8000, A, FIRST, SYN_SENT},
	{RST | ACK, 0, 0, 1, 0, B, IN, RESET},
	{ACK, 9, 1, 1, 8000, B, IN, RESET},
	{ACK, 9, 1, 1, 8000, A, IN, RESET},
	{ACK, 9, 1, 1, 8000, B, IN, RESET},
};

/* A host that has closed answers data by what it acknowledges, one below its FIN (as Linux believes). */
static const struct row reset_below_the_fin[] = {
	OPEN(8000, 8000),
	{FIN | ACK, 0, 1, 1, 8000, A, IN, FIN_A},
	{ACK, 500, 1, 1, 8000, B, IN, FIN_A},
	{RST, 0, 0, 0, 0, A, IN, FIN_A},
	{RST, 0, 1, 0, 0, A, IN, RESET},
};

/* A closed end resets at what the other has acknowledged last, while more was under way. */
static const struct row reset_at_the_acknowledged[] = {
	OPEN(8000, 8000),
	{ACK, 100, 1, 1, 8000, A, IN, ESTABLISHED},
	{ACK, 100, 101, 1, 8000, A, IN, ESTABLISHED},
	{ACK, 0, 1, 101, 8000, B, IN, ESTABLISHED},
	{RST, 0, 151, 0, 0, A, IN, ESTABLISHED},
	{RST, 0, 101, 0, 0, A, IN, RESET},
};

/* A window that was forgotten: a FIN or RST waits for the other end's acknowledgement. */
static const struct row forgotten_fin[] = {
	OPEN(8000, 8000),
	FORGET,
	{FIN | ACK, 0, 3000000, 5000000, 8000, A, IN, ESTABLISHED},
	FORGET,
	{ACK, 100, 4999900, 2999999, 8000, B, IN, ESTABLISHED},
	FORGET,
	{FIN | ACK, 0, 5000000, 3000001, 8000, B, IN, FIN_ACK_A},
	FORGET,
	{ACK, 0, 3000001, 5000001, 8000, A, IN, TIME_WAIT},
};

static const struct row forgotten_fins_cross[] = {
	OPEN(8000, 8000),
	FORGET,
	{FIN | ACK, 0, 3000000, 5000000, 8000, A, IN, ESTABLISHED},
	FORGET,
	{FIN | ACK, 0, 5000000, 3000000, 8000, B, IN, FIN_BOTH},
	FORGET,
	{ACK, 0, 3000001, 5000001, 8000, A, IN, FIN_ACK_B},
	FORGET,
	{ACK, 0, 5000001, 3000001, 8000, B, IN, TIME_WAIT},
};

static const struct row forgotten_forged[] = {
	OPEN(8000, 8000),
	FORGET,
	{FIN | ACK, 0, 4000000000, 1234, 8000, A, IN, ESTABLISHED},
	{RST, 0, 4000000000, 0, 0, B, IN, ESTABLISHED},
	FORGET,
	{RST | ACK, 0, 77, 88, 0, A, IN, ESTABLISHED},
	FORGET,
	{ACK, 100, 3000000, 5000000, 8000, A, IN, ESTABLISHED},
	FORGET,
	{ACK, 100, 5000000, 3000100, 8000, B, IN, ESTABLISHED},
	{ACK, 100, 3000100, 5000100, 8000, A, IN, ESTABLISHED},
	{RST, 0, 4000000000, 0, 0, A, ODD, ESTABLISHED},
	{FIN | ACK, 0, 3000200, 5000100, 8000, A, IN, FIN_A},
	{FIN | ACK, 0, 5000100, 3000201, 8000, B, IN, FIN_ACK_A},
};

/* First one forged segment, and then both ends: nothing of them is outside. */
static const struct row forgotten_poisoned[] = {
	OPEN(8000, 8000),
	FORGET,
	{ACK, 9, 4000000000, 1234, 8000, A, IN, ESTABLISHED},
	{ACK, 100, 3000000, 5000000, 8000, A, IN, ESTABLISHED},
	{ACK, 9, 77777777, 99999999, 8000, B, IN, ESTABLISHED},
	{ACK, 100, 3000100, 5000000, 8000, A, IN, ESTABLISHED},
	{ACK, 100, 5000000, 3000200, 8000, B, IN, ESTABLISHED},
	{ACK, 9, 77777777, 99999999, 8000, B, ODD, ESTABLISHED},
	{FIN | ACK, 0, 3000200, 5000100, 8000, A, IN, FIN_A},
};

static const struct row forgotten_rst[] = {
	OPEN(8000, 8000),
	FORGET,
	{RST, 0, 3000000, 0, 0, A, IN, ESTABLISHED},
	FORGET,
	{ACK, 100, 5000000, 2999900, 8000, B, IN, ESTABLISHED},
	FORGET,
	{ACK, 100, 5000100, 3000000, 8000, B, IN, RESET},
};

static const struct row forgotten_rst_after_fin[] = {
	OPEN(8000, 8000),
	FORGET,
	{FIN | ACK, 0, 3000000, 5000000, 8000, A, IN, ESTABLISHED},
	FORGET,
	{RST | ACK, 0, 5000000, 3000001, 0, B, IN, RESET},
};
/* An end that has sent nothing since closes while data are under way: its FIN, and a RST for each of them. */
static const struct row forgotten_silent_end[] = {
	OPEN(8000, 8000),
	FORGET,
	{FIN | ACK, 0, 1, 3000000, 8000, B, IN, FIN_B},
	{RST, 0, 1, 0, 0, B, IN, RESET},
};

/* The number of what was forged is known to who forged it, and proves nothing. */
static const struct row forgotten_forged_anchor[] = {
	OPEN(8000, 8000),
	FORGET,
	{ACK, 9, 4000000000, 1234, 8000, B, IN, ESTABLISHED},
	{FIN | ACK, 0, 4000000009, 99999999, 8000, B, IN, ESTABLISHED},
	{RST, 0, 4000000009, 0, 0, B, IN, ESTABLISHED},
};
/* clang-format on */

static const struct scene scenes[] = {
	SCENE(reuse_in_syn_sent),
	SCENE(forged_in_syn_sent),
	SCENE(refused_anew),
	SCENE(reuse_in_syn_received),
	SCENE(reuse_in_picked_up),
	SCENE(reuse_in_established),
	SCENE(reuse_by_the_other_end),
	SCENE(reuse_in_the_window),
	SCENE(reuse_half_closed),
	SCENE(reuse_last_ack_missing),
	SCENE(reuse_lower_in_time_wait),
	SCENE(reuse_after_reset),
	SCENE(half_open_discovery),
	SCENE(reuse_by_simultaneous_open),
	SCENE(reuse_answer_missed),
	SCENE(reuse_scaled),
	SCENE(reuse_among_forged),
	SCENE(forged_syn),
	SCENE(handshake_doubled),
	SCENE(one_way),
	SCENE(one_way_back),
	SCENE(open_again),
	SCENE(not_open_again),
	SCENE(half_closed_again),
	SCENE(refused_for_good),
	SCENE(reset_below_the_fin),
	SCENE(reset_at_the_acknowledged),
	SCENE(forgotten_fin),
	SCENE(forgotten_fins_cross),
	SCENE(forgotten_forged),
	SCENE(forgotten_poisoned),
	SCENE(forgotten_rst),
	SCENE(forgotten_rst_after_fin),
	SCENE(forgotten_silent_end),
	SCENE(forgotten_forged_anchor),
};

static void test_scenes(void **state)
{
	(void)state;
	assert_int_equal(play_all(scenes, sizeof(scenes) / sizeof(scenes[0])), 0);
}

/*
 * The table. A row is a state, with what leads to it and where its ends are then: A's next number is `a`, B's
 * is `b`, and the windows are 8,000. A column is one segment, of A but for the SYN-ACKs, which are B's.
 */
enum kind {
	SYN_OUTSIDE,
	SYN_INSIDE,
	ANSWER_OUTSIDE, /* a SYN-ACK of another number, which acknowledges what A has sent */
	ANSWER_UNASKED, /* a SYN-ACK of a SYN that nobody sent */
	RST_EXACT,
	RST_INSIDE,
	RST_OUTSIDE,
	RST_OLD,
	FIN_NEXT,
	FIN_OUTSIDE,
	DATA_NEXT,
	DATA_OUTSIDE,
	N_KINDS,
};

struct cell {
	enum expected verdict;
	enum flow_state state;
};

#define MOST_ROWS 8

struct state_row {
	const char *name;
	struct row to[MOST_ROWS];
	uint32_t a, b;
	struct cell cells[N_KINDS];
};

/* clang-format off */
static const struct state_row table[] = {
	{
		"syn-sent", {{SYN, 0, 0, 0, 8000, A, FIRST, SYN_SENT}}, 1, 0,
		{
			[SYN_OUTSIDE] = {IN, SYN_SENT}, [SYN_INSIDE] = {IN, SYN_SENT},
			[ANSWER_OUTSIDE] = {IN, SYN_RECEIVED}, [ANSWER_UNASKED] = {PASSED, SYN_SENT},
			[RST_EXACT] = {IN, RESET}, [RST_INSIDE] = {PASSED, SYN_SENT},
			[RST_OUTSIDE] = {PASSED, SYN_SENT}, [RST_OLD] = {PASSED, SYN_SENT},
			[FIN_NEXT] = {IN, FIN_A}, [FIN_OUTSIDE] = {ODD, SYN_SENT},
			[DATA_NEXT] = {IN, PICKED_UP}, [DATA_OUTSIDE] = {ODD, SYN_SENT},
		},
	}, {
		"syn-received", {
			{SYN, 0, 0, 0, 8000, A, FIRST, SYN_SENT},
			{SYN | ACK, 0, 0, 1, 8000, B, IN, SYN_RECEIVED},
		}, 1, 1,
		{
			[SYN_OUTSIDE] = {PASSED, SYN_RECEIVED}, [SYN_INSIDE] = {IN, SYN_RECEIVED},
			[ANSWER_OUTSIDE] = {IN, SYN_RECEIVED}, [ANSWER_UNASKED] = {ODD, SYN_RECEIVED},
			[RST_EXACT] = {IN, RESET}, [RST_INSIDE] = {IN, SYN_RECEIVED},
			[RST_OUTSIDE] = {ODD, SYN_RECEIVED}, [RST_OLD] = {ODD, SYN_RECEIVED},
			[FIN_NEXT] = {IN, FIN_A}, [FIN_OUTSIDE] = {ODD, SYN_RECEIVED},
			[DATA_NEXT] = {IN, ESTABLISHED}, [DATA_OUTSIDE] = {ODD, SYN_RECEIVED},
		},
	}, {
		/* nothing limits A yet */
		"picked-up", {{ACK, 10, 1, 1, 8000, A, FIRST, PICKED_UP}}, 11, 1,
		{
			[SYN_OUTSIDE] = {IN, PICKED_UP}, [SYN_INSIDE] = {IN, PICKED_UP},
			[ANSWER_OUTSIDE] = {ODD, PICKED_UP}, [ANSWER_UNASKED] = {ODD, PICKED_UP},
			[RST_EXACT] = {IN, RESET}, [RST_INSIDE] = {IN, PICKED_UP},
			[RST_OUTSIDE] = {IN, PICKED_UP}, [RST_OLD] = {IN, PICKED_UP},
			[FIN_NEXT] = {IN, FIN_A}, [FIN_OUTSIDE] = {IN, FIN_A},
			[DATA_NEXT] = {IN, PICKED_UP}, [DATA_OUTSIDE] = {IN, PICKED_UP},
		},
	}, {
		"established", {OPEN(8000, 8000)}, 1, 1,
		{
			[SYN_OUTSIDE] = {PASSED, ESTABLISHED}, [SYN_INSIDE] = {IN, ESTABLISHED},
			[ANSWER_OUTSIDE] = {ODD, ESTABLISHED}, [ANSWER_UNASKED] = {ODD, ESTABLISHED},
			[RST_EXACT] = {IN, RESET}, [RST_INSIDE] = {IN, ESTABLISHED},
			[RST_OUTSIDE] = {ODD, ESTABLISHED}, [RST_OLD] = {ODD, ESTABLISHED},
			[FIN_NEXT] = {IN, FIN_A}, [FIN_OUTSIDE] = {ODD, ESTABLISHED},
			[DATA_NEXT] = {IN, ESTABLISHED}, [DATA_OUTSIDE] = {ODD, ESTABLISHED},
		},
	}, {
		/* nothing is known that a segment could be outside of; but a sender silent since then is known */
		"established, window forgotten", {OPEN(8000, 8000), FORGET}, 1, 1,
		{
			[SYN_OUTSIDE] = {IN, ESTABLISHED}, [SYN_INSIDE] = {IN, ESTABLISHED},
			[ANSWER_OUTSIDE] = {IN, ESTABLISHED}, [ANSWER_UNASKED] = {IN, ESTABLISHED},
			[RST_EXACT] = {IN, RESET}, [RST_INSIDE] = {IN, ESTABLISHED},
			[RST_OUTSIDE] = {IN, ESTABLISHED}, [RST_OLD] = {IN, ESTABLISHED},
			[FIN_NEXT] = {IN, FIN_A}, [FIN_OUTSIDE] = {IN, ESTABLISHED},
			[DATA_NEXT] = {IN, ESTABLISHED}, [DATA_OUTSIDE] = {IN, ESTABLISHED},
		},
	}, {
		"fin of A", {OPEN(8000, 8000), {FIN | ACK, 0, 1, 1, 8000, A, IN, FIN_A}}, 2, 1,
		{
			[SYN_OUTSIDE] = {PASSED, FIN_A}, [SYN_INSIDE] = {IN, FIN_A},
			[ANSWER_OUTSIDE] = {ODD, FIN_A}, [ANSWER_UNASKED] = {ODD, FIN_A},
			[RST_EXACT] = {IN, RESET}, [RST_INSIDE] = {IN, FIN_A},
			[RST_OUTSIDE] = {ODD, FIN_A}, [RST_OLD] = {ODD, FIN_A},
			[FIN_NEXT] = {ODD, FIN_A}, [FIN_OUTSIDE] = {ODD, FIN_A},
			[DATA_NEXT] = {ODD, FIN_A}, [DATA_OUTSIDE] = {ODD, FIN_A},
		},
	}, {
		"fin of B", {OPEN(8000, 8000), {FIN | ACK, 0, 1, 1, 8000, B, IN, FIN_B}}, 1, 2,
		{
			[SYN_OUTSIDE] = {PASSED, FIN_B}, [SYN_INSIDE] = {IN, FIN_B},
			[ANSWER_OUTSIDE] = {ODD, FIN_B}, [ANSWER_UNASKED] = {ODD, FIN_B},
			[RST_EXACT] = {IN, RESET}, [RST_INSIDE] = {IN, FIN_B},
			[RST_OUTSIDE] = {ODD, FIN_B}, [RST_OLD] = {ODD, FIN_B},
			[FIN_NEXT] = {IN, FIN_ACK_B}, [FIN_OUTSIDE] = {ODD, FIN_B},
			[DATA_NEXT] = {IN, FIN_B}, [DATA_OUTSIDE] = {ODD, FIN_B},
		},
	}, {
		"fin of both", {
			OPEN(8000, 8000),
			{FIN | ACK, 0, 1, 1, 8000, A, IN, FIN_A},
			{FIN | ACK, 0, 1, 1, 8000, B, IN, FIN_BOTH},
		}, 2, 2,
		{
			[SYN_OUTSIDE] = {PASSED, FIN_BOTH}, [SYN_INSIDE] = {IN, FIN_BOTH},
			[ANSWER_OUTSIDE] = {ODD, FIN_BOTH}, [ANSWER_UNASKED] = {ODD, FIN_BOTH},
			[RST_EXACT] = {IN, RESET}, [RST_INSIDE] = {IN, FIN_BOTH},
			[RST_OUTSIDE] = {ODD, FIN_BOTH}, [RST_OLD] = {ODD, FIN_BOTH},
			[FIN_NEXT] = {ODD, FIN_BOTH}, [FIN_OUTSIDE] = {ODD, FIN_BOTH},
			[DATA_NEXT] = {ODD, FIN_BOTH}, [DATA_OUTSIDE] = {ODD, FIN_BOTH},
		},
	}, {
		"fin of both, that of A acknowledged", {
			OPEN(8000, 8000),
			{FIN | ACK, 0, 1, 1, 8000, A, IN, FIN_A},
			{FIN | ACK, 0, 1, 2, 8000, B, IN, FIN_ACK_A},
		}, 2, 2,
		{
			[SYN_OUTSIDE] = {PASSED, FIN_ACK_A}, [SYN_INSIDE] = {IN, FIN_ACK_A},
			[ANSWER_OUTSIDE] = {ODD, FIN_ACK_A}, [ANSWER_UNASKED] = {ODD, FIN_ACK_A},
			[RST_EXACT] = {IN, RESET}, [RST_INSIDE] = {IN, FIN_ACK_A},
			[RST_OUTSIDE] = {ODD, FIN_ACK_A}, [RST_OLD] = {ODD, FIN_ACK_A},
			[FIN_NEXT] = {ODD, FIN_ACK_A}, [FIN_OUTSIDE] = {ODD, FIN_ACK_A},
			[DATA_NEXT] = {ODD, FIN_ACK_A}, [DATA_OUTSIDE] = {ODD, FIN_ACK_A},
		},
	}, {
		"time-wait", {OPEN(8000, 8000), CLOSE_BY_A}, 2, 2,
		{
			[SYN_OUTSIDE] = {REOPEN, SYN_SENT}, [SYN_INSIDE] = {REOPEN, SYN_SENT},
			[ANSWER_OUTSIDE] = {ODD, TIME_WAIT}, [ANSWER_UNASKED] = {ODD, TIME_WAIT},
			[RST_EXACT] = {IN, TIME_WAIT}, [RST_INSIDE] = {IN, TIME_WAIT},
			[RST_OUTSIDE] = {ODD, TIME_WAIT}, [RST_OLD] = {ODD, TIME_WAIT},
			[FIN_NEXT] = {IN, TIME_WAIT}, [FIN_OUTSIDE] = {ODD, TIME_WAIT},
			[DATA_NEXT] = {IN, TIME_WAIT}, [DATA_OUTSIDE] = {ODD, TIME_WAIT},
		},
	}, {
		"reset", {OPEN(8000, 8000), {RST, 0, 1, 0, 0, B, IN, RESET}}, 1, 1,
		{
			[SYN_OUTSIDE] = {REOPEN, SYN_SENT}, [SYN_INSIDE] = {REOPEN, SYN_SENT},
			[ANSWER_OUTSIDE] = {ODD, RESET}, [ANSWER_UNASKED] = {ODD, RESET},
			[RST_EXACT] = {IN, RESET}, [RST_INSIDE] = {IN, RESET},
			[RST_OUTSIDE] = {ODD, RESET}, [RST_OLD] = {ODD, RESET},
			[FIN_NEXT] = {IN, RESET}, [FIN_OUTSIDE] = {ODD, RESET},
			[DATA_NEXT] = {IN, RESET}, [DATA_OUTSIDE] = {ODD, RESET},
		},
	},
};
/* clang-format on */

static struct row segment_of_kind(enum kind kind, const struct state_row *state)
{
	const struct cell *cell = &state->cells[kind];
	const struct {
		uint8_t flags;
		uint32_t len;
		uint32_t seq; /* beyond A's next number */
	} kinds[N_KINDS] = {
		[SYN_OUTSIDE] = {SYN, 0, A_NEW},
		[SYN_INSIDE] = {SYN, 0, 1000},
		[ANSWER_OUTSIDE] = {SYN | ACK, 0, 0},
		[ANSWER_UNASKED] = {SYN | ACK, 0, 0},
		[RST_EXACT] = {RST, 0, 0},
		[RST_INSIDE] = {RST, 0, 1000},
		[RST_OUTSIDE] = {RST, 0, 100000},
		[RST_OLD] = {RST, 0, -20000u},
		[FIN_NEXT] = {FIN | ACK, 0, 0},
		[FIN_OUTSIDE] = {FIN | ACK, 0, 100000},
		[DATA_NEXT] = {ACK, 10, 0},
		[DATA_OUTSIDE] = {ACK, 10, 100000},
	};
	struct row row = {
		.flags = kinds[kind].flags,
		.len = kinds[kind].len,
		.seq = state->a + kinds[kind].seq,
		.ack = state->b,
		.win = 8000,
		.from = A,
		.expected = cell->verdict,
		.state = cell->state,
	};

	if (kind == ANSWER_OUTSIDE || kind == ANSWER_UNASKED) {
		row.from = B;
		row.seq = B_NEW;
		row.ack = kind == ANSWER_OUTSIDE ? state->a : A_NEW + 1;
	}
	return row;
}

static void test_table(void **state)
{
	unsigned wrong = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct row rows[MOST_ROWS + 1];
		size_t n = 0;

		while (n < MOST_ROWS && (table[i].to[n].flags != 0)) {
			rows[n] = table[i].to[n];
			n++;
		}
		for (unsigned kind = 0; kind < N_KINDS; kind++) {
			struct scene scene = {table[i].name, rows, n + 1};

			rows[n] = segment_of_kind((enum kind)kind, &table[i]);
			unsigned before = wrong;

			wrong += play_everywhere(&scene, false) + play_everywhere(&scene, true);
			if (wrong != before)
				print_error("in the column %u\n", kind);
		}
	}
	assert_int_equal(wrong, 0);
}

/* However many SYNs come, the memory is what it was, and what gives way is counted. */
static void test_memory_is_bounded(void **state)
{
	static const struct row rows[] = {OPEN(8000, 8000)};
	static const uint32_t initial[2] = {1000, 2000};
	struct flow_record record = {0};

	(void)state;
	tcp_memory_clear(&memory);
	memory.forgotten = 0;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tcp_segment segment = segment_of(&rows[i], initial);

		step(&record, rows[i].from, &segment, true);
	}
	for (unsigned i = 0; i < 1000; i++) {
		struct tcp_segment segment = {
			.seq = A_NEW + i, .flags = SYN, .window = 8000, .scale = TCP_SCALE_NONE};

		assert_int_equal(step(&record, A, &segment, true), PASSED);
	}
	assert_int_equal(memory.n_used, TCP_MEMORY_WAYS);
	assert_int_equal(memory.forgotten, 1000 - TCP_MEMORY_WAYS);

	struct tcp_segment answer = {.seq = B_NEW,
		.ack = A_NEW + 1,
		.flags = SYN | ACK,
		.window = 8000,
		.scale = TCP_SCALE_NONE};

	assert_int_equal(step(&record, B, &answer, true), ODD);
	answer.ack = A_NEW + 1000;
	assert_int_equal(step(&record, B, &answer, true), ANEW);
	assert_int_equal(memory.n_used, TCP_MEMORY_WAYS - 1);
}

/* A SYN of long ago is forgotten. */
static void test_memory_fades(void **state)
{
	static const uint32_t initial[2] = {1000, 2000};
	static const struct row rows[] = {OPEN(8000, 8000)};

	(void)state;
	for (unsigned late = 0; late < 2; late++) {
		struct flow_record record = {0};
		struct tcp_segment syn = {
			.seq = A_NEW, .flags = SYN, .window = 8000, .scale = TCP_SCALE_NONE};
		struct tcp_segment answer = {.seq = B_NEW,
			.ack = A_NEW + 1,
			.flags = SYN | ACK,
			.window = 8000,
			.scale = TCP_SCALE_NONE};

		tcp_memory_clear(&memory);
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			struct tcp_segment segment = segment_of(&rows[i], initial);

			step(&record, rows[i].from, &segment, true);
		}
		step(&record, A, &syn, true);
		scene_us += TCP_MEMORY_US - 1 + late;
		assert_int_equal(step(&record, B, &answer, true), late ? ODD : ANEW);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scenes),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_memory_is_bounded),
		cmocka_unit_test(test_memory_fades),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
