/* SPDX-License-Identifier: BSD-3-Clause */

/* Closing: FINs, resets, and conversations that follow. */

#include "tcp_scenes.h"

/* clang-format off */

/* Handshake, a request, its answer, the client closes, the server follows. */
static const struct row whole_life[] = {
	OPEN(8000, 8000),
	{ACK | PSH, 100, 1, 1, 8000, A, IN, ESTABLISHED},
	{ACK, 0, 1, 101, 8000, B, IN, ESTABLISHED},
	{ACK | PSH, 900, 1, 101, 8000, B, IN, ESTABLISHED},
	{ACK, 0, 101, 901, 8000, A, IN, ESTABLISHED},
	{FIN | ACK, 0, 101, 901, 8000, A, IN, FIN_A},
	{ACK, 0, 901, 102, 8000, B, IN, FIN_A},
	{FIN | ACK, 0, 901, 102, 8000, B, IN, FIN_ACK_A},
	{ACK, 0, 102, 902, 8000, A, IN, TIME_WAIT},
	/* the last ACK was lost further on: both come again */
	{FIN | ACK, 0, 901, 102, 8000, B, IN, TIME_WAIT},
	{ACK, 0, 102, 902, 8000, A, IN, TIME_WAIT},
};

/* The server closes, its FIN carries data; the answer acknowledges and closes in one. */
static const struct row close_by_responder[] = {
	OPEN(8000, 8000),
	{FIN | ACK | PSH, 50, 1, 1, 8000, B, IN, FIN_B},
	{FIN | ACK, 0, 1, 52, 8000, A, IN, FIN_ACK_B},
	{ACK, 0, 52, 2, 8000, B, IN, TIME_WAIT},
};

/* A's FIN is acknowledged first, then data goes on the other way for long. */
static const struct row half_close[] = {
	OPEN(8000, 8000),
	{FIN | ACK, 10, 1, 1, 8000, A, IN, FIN_A},
	{ACK, 1000, 1, 12, 8000, B, IN, FIN_A},
	{ACK, 0, 12, 1001, 8000, A, IN, FIN_A},
	{ACK, 1000, 1001, 12, 8000, B, IN, FIN_A},
	{ACK, 0, 12, 2001, 8000, A, IN, FIN_A},
	{FIN | ACK, 1000, 2001, 12, 8000, B, IN, FIN_ACK_A},
	/* not all of it is acknowledged yet */
	{ACK, 0, 12, 3001, 8000, A, IN, FIN_ACK_A},
	{ACK, 0, 12, 3002, 8000, A, IN, TIME_WAIT},
};

/* Both FINs cross, the acknowledgements come one by one. */
static const struct row simultaneous_close[] = {
	OPEN(8000, 8000),
	{FIN | ACK, 0, 1, 1, 8000, A, IN, FIN_A},
	{FIN | ACK, 0, 1, 1, 8000, B, IN, FIN_BOTH},
	{ACK, 0, 2, 2, 8000, A, IN, FIN_ACK_B},
	{ACK, 0, 2, 2, 8000, B, IN, TIME_WAIT},
};

static const struct row simultaneous_close_other_order[] = {
	OPEN(8000, 8000),
	{FIN | ACK, 5, 1, 1, 8000, B, IN, FIN_B},
	{FIN | ACK, 7, 1, 1, 8000, A, IN, FIN_BOTH},
	{ACK, 0, 7, 9, 8000, B, IN, FIN_ACK_A},
	{ACK, 0, 9, 7, 8000, A, IN, TIME_WAIT},
};

/* FINs are sent again until acknowledged: no state moves by that. */
static const struct row fin_retransmitted[] = {
	OPEN(8000, 8000),
	{FIN | ACK, 0, 1, 1, 8000, A, IN, FIN_A},
	{FIN | ACK, 0, 1, 1, 8000, A, IN, FIN_A},
	{FIN | ACK, 0, 1, 1, 8000, B, IN, FIN_BOTH},
	{FIN | ACK, 0, 1, 1, 8000, A, IN, FIN_BOTH},
	{FIN | ACK, 0, 1, 1, 8000, B, IN, FIN_BOTH},
	{FIN | ACK, 0, 1, 2, 8000, B, IN, FIN_ACK_A},
	{FIN | ACK, 0, 1, 2, 8000, A, IN, TIME_WAIT},
};

/* Nothing follows a FIN, and nothing behind later data is one. */
static const struct row fin_is_the_end[] = {
	OPEN(8000, 8000),
	{ACK, 100, 1, 1, 8000, A, IN, ESTABLISHED},
	{FIN | ACK, 0, 51, 1, 8000, A, ODD, ESTABLISHED},
	{FIN | ACK, 0, 101, 1, 8000, A, IN, FIN_A},
	{ACK, 10, 102, 1, 8000, A, ODD, FIN_A},
	{FIN | ACK, 0, 102, 1, 8000, A, ODD, FIN_A},
	{ACK, 0, 1, 103, 8000, B, ODD, FIN_A}, /* acknowledges more than there is */
	{FIN | ACK, 0, 1, 102, 8000, B, IN, FIN_ACK_A},
};

/* FIN overtakes the data before it. */
static const struct row fin_out_of_order[] = {
	OPEN(8000, 8000),
	{FIN | ACK, 0, 101, 1, 8000, A, IN, FIN_A},
	{ACK, 100, 1, 1, 8000, A, IN, FIN_A},
	{ACK, 0, 1, 101, 8000, B, IN, FIN_A},
	{FIN | ACK, 0, 1, 102, 8000, B, IN, FIN_ACK_A},
	{ACK, 0, 102, 2, 8000, A, IN, TIME_WAIT},
};

/* The server closes before the handshake's last ACK was seen. */
static const struct row fin_in_handshake[] = {
	{SYN, 0, 0, 0, 8000, A, FIRST, SYN_SENT},
	{SYN | ACK, 0, 0, 1, 8000, B, IN, SYN_RECEIVED},
	{FIN | ACK, 0, 1, 1, 8000, B, IN, FIN_B},
	{ACK, 0, 1, 1, 8000, A, IN, FIN_B},
	{FIN | ACK, 0, 1, 2, 8000, A, IN, FIN_ACK_B},
	{ACK, 0, 2, 2, 8000, B, IN, TIME_WAIT},
};

/* Last ACK of the handshake and FIN in one. */
static const struct row fin_with_handshake[] = {
	{SYN, 0, 0, 0, 8000, A, FIRST, SYN_SENT},
	{SYN | ACK, 0, 0, 1, 8000, B, IN, SYN_RECEIVED},
	{FIN | ACK, 20, 1, 1, 8000, A, IN, FIN_A},
	{FIN | ACK, 0, 1, 22, 8000, B, IN, FIN_ACK_A},
};

/* A closed port. */
static const struct row connection_refused[] = {
	{SYN, 0, 0, 0, 8000, A, FIRST, SYN_SENT},
	{RST, 0, 0, 0, 0, B, ODD, SYN_SENT},        /* no ACK */
	{RST | ACK, 0, 0, 0, 0, B, ODD, SYN_SENT},  /* acknowledges nothing of ours */
	{RST | ACK, 0, 0, 2, 0, B, ODD, SYN_SENT},  /* nor this */
	{RST | ACK, 0, 99999, 1, 0, B, IN, RESET},  /* any seq, in practice 0 */
	{SYN, 0, 0, 0, 8000, A, IN, RESET},         /* asks again */
	{RST | ACK, 0, 0, 1, 0, B, IN, RESET},
	{SYN, 0, 800, 0, 8000, A, REOPEN, SYN_SENT},
	{SYN | ACK, 0, 0, 801, 8000, B, IN, SYN_RECEIVED},
};

/* Fast open refused by RST, asked again without data. */
static const struct row fast_open_reset[] = {
	{SYN, 100, 0, 0, 8000, A, FIRST, SYN_SENT},
	{RST | ACK, 0, 0, 1, 0, B, IN, RESET},
	{SYN, 0, 0, 0, 8000, A, IN, RESET},
	{SYN, 100, 0, 0, 8000, A, IN, RESET},
	{SYN, 0, 0, 0, 8000, B, REOPEN, SYN_SENT},
};

static const struct row reset_by_initiator_in_syn_sent[] = {
	{SYN, 0, 0, 0, 8000, A, FIRST, SYN_SENT},
	{RST, 0, 2, 0, 0, A, PASSED, SYN_SENT},
	{RST, 0, 4294967295, 0, 0, A, PASSED, SYN_SENT},
	{RST, 0, 1, 0, 0, A, IN, RESET},
};

static const struct row reset_in_syn_received[] = {
	{SYN, 0, 0, 0, 8000, A, FIRST, SYN_SENT},
	{SYN | ACK, 0, 0, 1, 8000, B, IN, SYN_RECEIVED},
	{RST, 0, 8002, 0, 0, A, ODD, SYN_RECEIVED},
	{RST, 0, 1, 0, 0, A, IN, RESET},
};

static const struct row reset_by_responder_in_syn_received[] = {
	{SYN, 0, 0, 0, 8000, A, FIRST, SYN_SENT},
	{SYN | ACK, 0, 0, 1, 8000, B, IN, SYN_RECEIVED},
	{RST | ACK, 0, 8002, 1, 0, B, ODD, SYN_RECEIVED},
	{RST | ACK, 0, 2, 1, 0, B, IN, SYN_RECEIVED},
	{RST | ACK, 0, 1, 1, 0, B, IN, RESET},
};

/*
 * Blind RST, FIN and SYN, inside the window and outside: nothing moves, and both ends go on talking. A RST at the
 * next number ends it (RFC 5961 section 3.2), whatever it acknowledges.
 */
static const struct row blind_attacks[] = {
	OPEN(8000, 8000),
	{RST, 0, 8002, 0, 0, A, ODD, ESTABLISHED},
	{RST, 0, 3000000000, 0, 0, A, ODD, ESTABLISHED},
	{RST, 0, 8001, 0, 0, A, IN, ESTABLISHED},
	{RST, 0, 2, 0, 0, A, IN, ESTABLISHED},
	{RST, 0, 0, 0, 0, A, IN, ESTABLISHED},
	{RST | ACK, 0, 2, 1, 0, B, IN, ESTABLISHED},
	{RST | ACK, 0, 4294960000, 1, 0, B, IN, ESTABLISHED},
	{RST | ACK, 0, 4294950000, 1, 0, B, ODD, ESTABLISHED},
	{ACK, 100, 1, 1, 8000, A, IN, ESTABLISHED},
	{ACK, 100, 1, 101, 8000, B, IN, ESTABLISHED},
	{ACK, 0, 101, 101, 8000, A, IN, ESTABLISHED},
	{FIN | ACK, 0, 100000000, 101, 8000, A, ODD, ESTABLISHED},
	{FIN | ACK, 0, 3000000000, 101, 8000, B, ODD, ESTABLISHED},
	{FIN | ACK, 0, 101, 3000000000, 8000, B, ODD, ESTABLISHED},
	{SYN, 0, 100000, 0, 8000, A, PASSED, ESTABLISHED},
	{SYN, 0, 200, 0, 8000, A, IN, ESTABLISHED},
	{SYN | ACK, 0, 200, 101, 8000, B, IN, ESTABLISHED},
	{ACK, 0, 101, 201, 8000, A, ODD, ESTABLISHED}, /* that SYN did not count */
	{ACK, 100, 101, 101, 8000, B, IN, ESTABLISHED},
	{RST | ACK, 0, 201, 77777777, 0, B, IN, RESET},
	{ACK, 0, 101, 201, 8000, A, IN, RESET},
	{FIN | ACK, 0, 101, 201, 8000, A, IN, RESET},
	{RST, 0, 101, 0, 0, A, IN, RESET},
};

/* RST in each of the closing states; a SYN is only judged. */
static const struct row reset_in_fin_states[] = {
	OPEN(8000, 8000),
	{FIN | ACK, 0, 1, 1, 8000, A, IN, FIN_A},
	{SYN, 0, 100, 0, 8000, A, IN, FIN_A},
	{RST, 0, 9000, 0, 0, B, ODD, FIN_A},
	{RST, 0, 1, 0, 0, B, IN, RESET},
};

static const struct row reset_in_fin_both[] = {
	OPEN(8000, 8000),
	{FIN | ACK, 0, 1, 1, 8000, A, IN, FIN_A},
	{FIN | ACK, 0, 1, 1, 8000, B, IN, FIN_BOTH},
	{RST, 0, 2, 0, 0, A, IN, RESET},
};

static const struct row reset_in_fin_ack[] = {
	OPEN(8000, 8000),
	{FIN | ACK, 0, 1, 1, 8000, A, IN, FIN_A},
	{FIN | ACK, 0, 1, 2, 8000, B, IN, FIN_ACK_A},
	{RST, 0, 2, 0, 0, A, IN, RESET},
};

static const struct row reset_in_picked_up[] = {
	{ACK, 10, 1, 1, 8000, A, FIRST, PICKED_UP},
	{RST | ACK, 0, 2, 11, 0, B, IN, PICKED_UP},
	{RST | ACK, 0, 2000000000, 11, 0, B, ODD, PICKED_UP},
	{RST | ACK, 0, 1, 11, 0, B, IN, RESET},
};

static const struct row reset_first[] = {
	{RST, 0, 100, 0, 0, A, FIRST, RESET},
	{RST | ACK, 0, 100, 5, 0, A, IN, RESET},
	{SYN, 0, 5, 0, 8000, B, REOPEN, SYN_SENT},
};

/* TIME_WAIT is not left by RST (RFC 1337), by old doubles, or by a SYN within what was sent. */
static const struct row time_wait[] = {
	OPEN(8000, 8000),
	CLOSE_BY_A,
	{RST, 0, 2, 0, 0, A, IN, TIME_WAIT},
	{RST, 0, 90000, 0, 0, A, ODD, TIME_WAIT},
	{SYN, 0, 0, 0, 8000, A, IN, TIME_WAIT},
	{SYN, 0, 1, 0, 8000, A, IN, TIME_WAIT}, /* the last number that was used */
	{SYN, 0, 4294000000, 0, 8000, A, PASSED, TIME_WAIT},
	{SYN | ACK, 0, 70000, 3, 8000, B, ODD, TIME_WAIT},
	{ACK, 100, 1000, 2, 8000, A, IN, TIME_WAIT},
	{ACK, 100, 100000, 2, 8000, A, ODD, TIME_WAIT},
	{SYN, 0, 2, 0, 8000, A, REOPEN, SYN_SENT},
	{SYN | ACK, 0, 90000, 3, 8000, B, IN, SYN_RECEIVED},
	{ACK, 0, 3, 90001, 8000, A, IN, ESTABLISHED},
};

static const struct row time_wait_reopened_by_responder[] = {
	OPEN(8000, 8000),
	CLOSE_BY_A,
	{SYN, 0, 64000, 0, 8000, B, REOPEN, SYN_SENT},
};

static const struct row reset_reopened[] = {
	OPEN(8000, 8000),
	{RST, 0, 1, 0, 0, A, IN, RESET},
	{SYN | ACK, 0, 0, 1, 8000, B, IN, RESET},
	{SYN, 0, 4000000000, 0, 8000, A, REOPEN, SYN_SENT},
};
/* RFC 9293 section 3.10.7.4 in its order: an ACK of the FIN overtakes the FIN that should follow it. */
static const struct row ack_overtakes_fin[] = {
	OPEN(8000, 8000),
	{FIN | ACK, 0, 1, 1, 8000, A, IN, FIN_A},
	{ACK, 0, 2, 2, 8000, B, IN, FIN_A},
	{FIN | ACK, 0, 1, 1, 8000, B, IN, FIN_ACK_A},
	{ACK, 0, 2, 2, 8000, A, IN, TIME_WAIT},
};

static const struct row ack_overtakes_fin_of_responder[] = {
	OPEN(8000, 8000),
	{FIN | ACK, 5, 1, 1, 8000, B, IN, FIN_B},
	{ACK, 0, 8, 7, 8000, A, IN, FIN_B},
	{FIN | ACK, 6, 1, 1, 8000, A, IN, FIN_ACK_B},
	{ACK, 0, 7, 8, 8000, B, IN, TIME_WAIT},
};

/* Of both FINs the acknowledgements are seen before themselves: two queues of a capture. */
static const struct row acks_before_fins[] = {
	OPEN(8000, 8000),
	{ACK, 0, 1, 2, 8000, B, ODD, ESTABLISHED},
	{FIN | ACK, 0, 1, 1, 8000, A, IN, FIN_A},
	{ACK, 0, 2, 2, 8000, A, ODD, FIN_A},
	{FIN | ACK, 0, 1, 2, 8000, B, IN, TIME_WAIT},
};

static const struct row second_fin_first[] = {
	OPEN(8000, 8000),
	{FIN | ACK, 0, 1, 2, 8000, B, ODD, ESTABLISHED},
	{FIN | ACK, 0, 1, 1, 8000, A, IN, FIN_ACK_A},
	{ACK, 0, 2, 2, 8000, A, IN, TIME_WAIT},
};

/* clang-format on */

static const struct scene scenes[] = {
	SCENE(whole_life),
	SCENE(close_by_responder),
	SCENE(half_close),
	SCENE(simultaneous_close),
	SCENE(simultaneous_close_other_order),
	SCENE(fin_retransmitted),
	SCENE(fin_is_the_end),
	SCENE(fin_out_of_order),
	SCENE(fin_in_handshake),
	SCENE(fin_with_handshake),
	SCENE(connection_refused),
	SCENE(fast_open_reset),
	SCENE(reset_by_initiator_in_syn_sent),
	SCENE(reset_in_syn_received),
	SCENE(reset_by_responder_in_syn_received),
	SCENE(blind_attacks),
	SCENE(reset_in_fin_states),
	SCENE(reset_in_fin_both),
	SCENE(reset_in_fin_ack),
	SCENE(reset_in_picked_up),
	SCENE(reset_first),
	SCENE(ack_overtakes_fin),
	SCENE(ack_overtakes_fin_of_responder),
	SCENE(time_wait),
	SCENE(time_wait_reopened_by_responder),
	SCENE(reset_reopened),
};

static void test_scenes(void **state)
{
	(void)state;
	assert_int_equal(play_all(scenes, sizeof(scenes) / sizeof(scenes[0])), 0);
}

/* Not strict: segments that came before what they acknowledge are looked at again. */
static void test_seen_in_another_order(void **state)
{
	static const struct scene lenient[] = {
		SCENE(acks_before_fins),
		SCENE(second_fin_first),
	};
	unsigned wrong = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(lenient) / sizeof(lenient[0]); i++)
		wrong += play_everywhere(&lenient[i], false);
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scenes),
		cmocka_unit_test(test_seen_in_another_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
