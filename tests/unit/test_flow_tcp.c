/* SPDX-License-Identifier: BSD-3-Clause */

/* Opening, the window, conversations met in the middle or with losses. */

#include "tcp_scenes.h"

/* clang-format off */

/* RFC 9293 figure 8. */
static const struct row simultaneous_open[] = {
	{SYN, 0, 0, 0, 8000, A, FIRST, SYN_SENT},
	{SYN, 0, 0, 0, 4000, B, IN, SYN_SENT}, /* anybody may say so */
	{SYN, 0, 0, 0, 8000, A, IN, SYN_SENT},
	{SYN | ACK, 0, 0, 7, 4000, B, PASSED, SYN_SENT},
	{SYN | ACK, 0, 0, 1, 4000, B, IN, SYN_RECEIVED},
	{SYN | ACK, 0, 0, 1, 8000, A, IN, ESTABLISHED},
	{ACK, 100, 1, 1, 8000, A, IN, ESTABLISHED},
	{ACK, 100, 1, 101, 4000, B, IN, ESTABLISHED},
	{FIN | ACK, 0, 101, 101, 8000, A, IN, FIN_A},
};

static const struct row simultaneous_open_initiator_first[] = {
	{SYN, 0, 0, 0, 8000, A, FIRST, SYN_SENT, SCALE(3)},
	{SYN, 0, 0, 0, 4000, B, IN, SYN_SENT, SCALE(2)},
	{SYN | ACK, 0, 0, 1, 8000, A, IN, ESTABLISHED, SCALE(3)},
	{SYN | ACK, 0, 0, 1, 4000, B, IN, ESTABLISHED, SCALE(2)},
	{ACK, 0, 1, 1, 1000, B, IN, ESTABLISHED},
	{ACK, 100, 1, 1, 1000, A, IN, ESTABLISHED},
	{ACK, 0, 1, 101, 1000, B, IN, ESTABLISHED},
	{ACK, 100, 4102, 1, 1000, A, ODD, ESTABLISHED},
};

/* Only the initiator's ACK that acknowledges the responder's SYN opens. */
static const struct row handshake_proof[] = {
	{SYN, 0, 0, 0, 8000, A, FIRST, SYN_SENT},
	{SYN | ACK, 0, 0, 0, 8000, B, PASSED, SYN_SENT},
	{SYN | ACK, 0, 0, 2, 8000, B, PASSED, SYN_SENT},
	/* of an older conversation, and the RST that ends it there: RFC 9293 figure 9 */
	{ACK, 0, 77, 77, 8000, B, PASSED, SYN_SENT},
	{RST, 0, 77, 0, 0, A, PASSED, SYN_SENT},
	{ACK, 0, 1000, 1, 8000, A, ODD, SYN_SENT},
	{SYN | ACK, 0, 0, 1, 8000, B, IN, SYN_RECEIVED},
	{ACK, 0, 1, 0, 8000, A, ODD, SYN_RECEIVED},
	{ACK, 0, 1, 2, 8000, A, ODD, SYN_RECEIVED},
	{0, 10, 1, 1, 8000, A, ODD, SYN_RECEIVED}, /* no ACK at all */
	{ACK, 100, 1, 1, 8000, B, IN, SYN_RECEIVED},
	{ACK, 0, 1, 1, 8000, A, IN, ESTABLISHED},
	{0, 10, 1, 1, 8000, A, ODD, ESTABLISHED},
};

/* Retransmissions in the handshake; a new attempt with another number. */
static const struct row handshake_retransmitted[] = {
	{SYN, 0, 0, 0, 8000, A, FIRST, SYN_SENT},
	{SYN, 0, 0, 0, 8000, A, IN, SYN_SENT},
	{SYN, 0, 70000, 0, 8000, A, IN, SYN_SENT},
	{SYN | ACK, 0, 0, 1, 8000, B, IN, SYN_RECEIVED}, /* answers the one given up */
	{SYN | ACK, 0, 0, 70001, 8000, B, ANEW, SYN_RECEIVED},
	{SYN | ACK, 0, 0, 70001, 8000, B, IN, SYN_RECEIVED},
	{SYN, 0, 70000, 0, 8000, A, IN, SYN_RECEIVED},
	{ACK, 0, 70001, 1, 8000, A, IN, ESTABLISHED},
	{SYN | ACK, 0, 0, 70001, 8000, B, IN, ESTABLISHED},
	{ACK, 0, 70001, 1, 8000, A, IN, ESTABLISHED},
};

/* The responder forgot its first answer and gives another. */
static const struct row answered_anew[] = {
	{SYN, 0, 0, 0, 8000, A, FIRST, SYN_SENT},
	{SYN | ACK, 0, 0, 1, 8000, B, IN, SYN_RECEIVED},
	{SYN | ACK, 0, 123456789, 2, 8000, B, ODD, SYN_RECEIVED},
	{SYN | ACK, 0, 123456789, 1, 8000, B, IN, SYN_RECEIVED},
	{ACK, 0, 1, 1, 8000, A, ODD, SYN_RECEIVED},
	{ACK, 0, 1, 123456790, 8000, A, IN, ESTABLISHED},
	{ACK, 9, 123456790, 1, 8000, B, IN, ESTABLISHED},
};

/* The handshake's second and third segments change places on the way to us. */
static const struct row handshake_reordered[] = {
	{SYN, 0, 0, 0, 8000, A, FIRST, SYN_SENT, SCALE(2)},
	{ACK, 0, 1, 1, 2000, A, IN, PICKED_UP},
	{SYN | ACK, 0, 0, 1, 8000, B, IN, ESTABLISHED, SCALE(3)},
	{ACK, 100, 1, 1, 2000, A, IN, ESTABLISHED},
	{ACK, 0, 1, 101, 1000, B, IN, ESTABLISHED},
	{ACK, 1, 8102, 1, 2000, A, ODD, ESTABLISHED},
};

/* The answer before the question: B is the one first seen. */
static const struct row answer_first[] = {
	{SYN | ACK, 0, 0, 1, 8000, A, FIRST, PICKED_UP, SCALE(3)},
	{SYN | ACK, 0, 0, 1, 8000, A, IN, PICKED_UP, SCALE(3)},
	{SYN, 0, 0, 0, 8000, B, IN, ESTABLISHED, SCALE(2)},
	{ACK, 0, 1, 1, 2000, B, IN, ESTABLISHED},
	{ACK, 100, 1, 1, 2000, B, IN, ESTABLISHED},
	{ACK, 0, 1, 101, 1000, A, IN, ESTABLISHED},
	{ACK, 1, 8102, 1, 2000, B, ODD, ESTABLISHED},
};

static const struct row answer_first_then_ack[] = {
	{SYN | ACK, 0, 0, 1, 8000, A, FIRST, PICKED_UP},
	{ACK, 0, 1, 1, 2000, B, IN, ESTABLISHED},
	{ACK, 1, 8002, 1, 2000, B, ODD, ESTABLISHED},
};

/* SYN+ACK lost before us: the responder's data, then the initiator's. */
static const struct row answer_missed[] = {
	{SYN, 0, 0, 0, 8000, A, FIRST, SYN_SENT},
	{ACK, 10, 1, 1, 8000, B, IN, PICKED_UP},
	{ACK, 0, 1, 1, 8000, A, IN, ESTABLISHED},
	{ACK, 0, 1, 11, 8000, A, IN, ESTABLISHED},
	{FIN | ACK, 0, 1, 11, 8000, A, IN, FIN_A},
	{FIN | ACK, 0, 11, 2, 8000, B, IN, FIN_ACK_A},
};

/* What we picked up was the tail of the conversation before. */
static const struct row syn_after_tail[] = {
	{ACK, 0, 500000000, 700000000, 8000, A, FIRST, PICKED_UP},
	{SYN, 0, 0, 0, 8000, A, IN, PICKED_UP},
	{SYN | ACK, 0, 0, 1, 8000, B, ANEW, SYN_RECEIVED},
	{ACK, 0, 1, 1, 8000, A, IN, ESTABLISHED},
};

static const struct row syn_after_tail_from_the_other_end[] = {
	{ACK, 0, 500000000, 700000000, 8000, A, FIRST, PICKED_UP},
	{SYN, 0, 0, 0, 8000, B, IN, PICKED_UP},
	{SYN, 0, 0, 0, 8000, B, IN, PICKED_UP},
	{SYN | ACK, 0, 0, 1, 8000, A, ANEW, SYN_RECEIVED},
	{ACK, 0, 1, 1, 8000, B, IN, ESTABLISHED},
	{ACK, 10, 1, 1, 8000, A, IN, ESTABLISHED},
};

/* A late double of its SYN does not begin a conversation anew. */
static const struct row syn_doubled_after_ack[] = {
	{SYN, 0, 0, 0, 8000, A, FIRST, SYN_SENT},
	{ACK, 400, 1, 1, 8000, A, IN, PICKED_UP},
	{SYN, 0, 0, 0, 8000, A, IN, PICKED_UP},
	{ACK, 10, 1, 401, 8000, B, IN, ESTABLISHED},
};

/* RFC 7413: data in the SYN, acknowledged in whole, in part, or not at all. */
static const struct row fast_open[] = {
	{SYN, 500, 0, 0, 8000, A, FIRST, SYN_SENT},
	{SYN | ACK, 0, 0, 501, 8000, B, IN, SYN_RECEIVED},
	{ACK, 900, 1, 501, 8000, B, IN, SYN_RECEIVED},
	{ACK, 0, 501, 1, 8000, A, IN, ESTABLISHED}, /* of the SYN alone */
	{ACK, 0, 501, 901, 8000, A, IN, ESTABLISHED},
};

static const struct row fast_open_refused[] = {
	{SYN, 500, 0, 0, 8000, A, FIRST, SYN_SENT},
	{SYN | ACK, 0, 0, 502, 8000, B, PASSED, SYN_SENT},
	{SYN | ACK, 0, 0, 0, 8000, B, PASSED, SYN_SENT},
	{SYN, 0, 0, 0, 8000, A, IN, SYN_SENT}, /* again, without data */
	{SYN | ACK, 0, 0, 1, 8000, B, IN, SYN_RECEIVED},
	{ACK, 500, 1, 1, 8000, A, IN, ESTABLISHED},
};

/* Retransmitted and reordered data, duplicate ACKs. */
static const struct row retransmissions[] = {
	OPEN(8000, 8000),
	{ACK, 1000, 1, 1, 8000, A, IN, ESTABLISHED},
	{ACK, 1000, 2001, 1, 8000, A, IN, ESTABLISHED},
	{ACK, 0, 1, 1001, 8000, B, IN, ESTABLISHED},
	{ACK, 0, 1, 1001, 8000, B, IN, ESTABLISHED},
	{ACK, 1000, 1001, 1, 8000, A, IN, ESTABLISHED},
	{ACK, 1000, 1, 1, 8000, A, IN, ESTABLISHED},
	{ACK, 0, 1, 3001, 8000, B, IN, ESTABLISHED},
	{ACK, 0, 1, 1001, 8000, B, IN, ESTABLISHED},
};

/* A segment older than a whole window of data is none of this conversation. */
static const struct row far_behind[] = {
	OPEN(4000, 4000),
	{ACK, 4000, 1, 1, 4000, A, IN, ESTABLISHED},
	{ACK, 0, 1, 4001, 4000, B, IN, ESTABLISHED},
	{ACK, 4000, 4001, 1, 4000, A, IN, ESTABLISHED},
	{ACK, 100, 3901, 1, 4000, A, IN, ESTABLISHED},
	{ACK, 100, 3900, 1, 4000, A, ODD, ESTABLISHED},
};

/* The acknowledgement may lag 66,000 behind, no more. */
static const struct row old_ack[] = {
	OPEN(60000, 60000),
	{ACK, 50000, 1, 1, 60000, A, IN, ESTABLISHED},
	{ACK, 0, 1, 50001, 60000, B, IN, ESTABLISHED},
	{ACK, 50000, 50001, 1, 60000, A, IN, ESTABLISHED},
	{ACK, 0, 1, 34001, 60000, B, IN, ESTABLISHED},
	{ACK, 0, 1, 34000, 60000, B, ODD, ESTABLISHED},
	{ACK, 0, 1, 100002, 60000, B, ODD, ESTABLISHED},
};

/* One before the end, with and without a byte of garbage. */
static const struct row keep_alive[] = {
	OPEN(8000, 8000),
	{ACK, 100, 1, 1, 8000, A, IN, ESTABLISHED},
	{ACK, 0, 1, 101, 8000, B, IN, ESTABLISHED},
	{ACK, 0, 100, 1, 8000, A, IN, ESTABLISHED},
	{ACK, 1, 100, 1, 8000, A, IN, ESTABLISHED},
	{ACK, 0, 1, 101, 8000, B, IN, ESTABLISHED},
	{ACK, 0, 0, 101, 8000, B, IN, ESTABLISHED},
};

/* B has no room: A probes at the limit until it has. */
static const struct row zero_window[] = {
	OPEN(8000, 1000),
	{ACK, 1000, 1, 1, 8000, A, IN, ESTABLISHED},
	{ACK, 0, 1, 1001, 0, B, IN, ESTABLISHED},
	{ACK, 1, 1001, 1, 8000, A, IN, ESTABLISHED},
	{ACK, 0, 1, 1001, 0, B, IN, ESTABLISHED},
	{ACK, 1, 1001, 1, 8000, A, IN, ESTABLISHED},
	{ACK, 0, 1, 1001, 1000, B, IN, ESTABLISHED},
	{ACK, 1000, 1001, 1, 8000, A, IN, ESTABLISHED},
};

/* A window that was 0 from the start. */
static const struct row zero_window_at_once[] = {
	OPEN(8000, 0),
	{ACK, 1, 1, 1, 8000, A, IN, ESTABLISHED},
	{ACK, 0, 1, 1, 8000, A, IN, ESTABLISHED},
	{ACK, 0, 1, 2, 0, B, IN, ESTABLISHED},
	{ACK, 0, 1, 1, 8000, A, IN, ESTABLISHED},
};

/* RFC 7323: windows of SYNs unscaled, those that follow scaled. */
static const struct row window_scale[] = {
	OPEN_SCALED(64000, 7, 1000, 2),
	{ACK, 500, 1001, 1, 500, A, IN, ESTABLISHED}, /* B's SYN allowed 1,000 */
	{RST, 0, 1002, 1, 500, A, ODD, ESTABLISHED},
	{ACK, 0, 1, 1501, 1000, B, IN, ESTABLISHED},
	{ACK, 0, 5501, 1, 500, A, IN, ESTABLISHED},  /* now 1,000 << 2 */
	{RST, 0, 5502, 1, 500, A, ODD, ESTABLISHED},
	{RST, 0, 64002, 1501, 500, B, ODD, ESTABLISHED}, /* 500 << 7 */
	{RST, 0, 64001, 1501, 500, B, IN, ESTABLISHED},
};

/* Only one end has the option: nobody scales. */
static const struct row window_scale_refused[] = {
	{SYN, 0, 0, 0, 8000, A, FIRST, SYN_SENT, SCALE(7)},
	{SYN | ACK, 0, 0, 1, 1000, B, IN, SYN_RECEIVED},
	{ACK, 0, 1, 1, 8000, A, IN, ESTABLISHED},
	{RST, 0, 1002, 1, 0, A, ODD, ESTABLISHED},
	{RST, 0, 8130, 1, 0, B, ODD, ESTABLISHED}, /* above 8,000 rounded up to 63 << 7, + 1 */
	{RST, 0, 8001, 1, 0, B, IN, ESTABLISHED},
};

static const struct row window_scale_not_offered[] = {
	{SYN, 0, 0, 0, 8000, A, FIRST, SYN_SENT},
	{SYN | ACK, 0, 0, 1, 1000, B, IN, SYN_RECEIVED, SCALE(9)},
	{ACK, 0, 1, 1, 8000, A, IN, ESTABLISHED},
	{ACK, 0, 1, 1, 1000, B, IN, ESTABLISHED},
	{RST, 0, 1002, 1, 0, A, ODD, ESTABLISHED},
	{RST, 0, 8002, 1, 0, B, ODD, ESTABLISHED},
};

/* Scale 0 is an option too; above 14 counts as 14 (RFC 7323 section 2.3). */
static const struct row window_scale_extremes[] = {
	OPEN_SCALED(65535, 0, 65535, 14),
	{ACK, 0, 1, 1, 65535, B, IN, ESTABLISHED},
	{RST, 0, 1073725442, 1, 0, A, ODD, ESTABLISHED},
	{RST, 0, 65537, 1, 0, B, ODD, ESTABLISHED},
	{RST, 0, 1073725441, 1, 0, A, IN, ESTABLISHED},
};

/* Met in the middle, the other end answers. The window has the most lenient scale. */
static const struct row pickup[] = {
	{ACK, 1000, 1, 1, 50, A, FIRST, PICKED_UP},
	{ACK, 1000, 1001, 1, 50, A, IN, PICKED_UP},
	{ACK, 0, 1, 2001, 50, B, IN, ESTABLISHED},
	{ACK, 0, 800001, 1, 50, A, IN, ESTABLISHED},
	{RST, 0, 821202, 1, 50, A, ODD, ESTABLISHED}, /* 2,001 + (50 << 14) */
	{FIN | ACK, 0, 800001, 1, 50, A, IN, FIN_A},
	{FIN | ACK, 0, 1, 800002, 50, B, IN, FIN_ACK_A},
	{ACK, 0, 800002, 2, 50, A, IN, TIME_WAIT},
};

/* The first thing seen is half of the close. */
static const struct row pickup_by_fin[] = {
	{FIN | ACK, 0, 1, 1, 50, A, FIRST, FIN_A},
	{ACK, 700, 1, 1, 50, B, IN, FIN_A},
	{FIN | ACK, 0, 701, 2, 50, B, IN, FIN_ACK_A},
	{ACK, 0, 2, 702, 50, A, IN, TIME_WAIT},
};

static const struct row pickup_by_bare_fin[] = {
	{FIN, 0, 1, 0, 50, A, FIRST, FIN_A},
	{ACK, 0, 1, 1, 50, B, IN, FIN_A},
	{FIN | ACK, 0, 1, 2, 50, B, IN, FIN_ACK_A},
};

/* Segments that make no sense as a beginning. */
static const struct row pickup_of_scans[] = {
	{0, 0, 1, 0, 50, A, FIRST, PICKED_UP},
	{0, 0, 1, 0, 50, A, ODD, PICKED_UP},
	{RST | ACK, 0, 0, 1, 0, B, IN, RESET},
};
/* clang-format on */

static const struct scene scenes[] = {
	SCENE(simultaneous_open),
	SCENE(simultaneous_open_initiator_first),
	SCENE(handshake_proof),
	SCENE(handshake_retransmitted),
	SCENE(answered_anew),
	SCENE(handshake_reordered),
	SCENE(answer_first),
	SCENE(answer_first_then_ack),
	SCENE(answer_missed),
	SCENE(syn_after_tail),
	SCENE(syn_after_tail_from_the_other_end),
	SCENE(syn_doubled_after_ack),
	SCENE(fast_open),
	SCENE(fast_open_refused),
	SCENE(retransmissions),
	SCENE(far_behind),
	SCENE(old_ack),
	SCENE(keep_alive),
	SCENE(zero_window),
	SCENE(zero_window_at_once),
	SCENE(window_scale),
	SCENE(window_scale_refused),
	SCENE(window_scale_not_offered),
	SCENE(window_scale_extremes),
	SCENE(pickup),
	SCENE(pickup_by_fin),
	SCENE(pickup_by_bare_fin),
	SCENE(pickup_of_scans),
};

static void test_scenes(void **state)
{
	(void)state;
	assert_int_equal(play_all(scenes, sizeof(scenes) / sizeof(scenes[0])), 0);
}

/* clang-format off */
/* The capture lost data of A, more than the window: what B acknowledges is followed, and nothing else. */
static const struct row loss[] = {
	OPEN(8000, 8000),
	{ACK, 100, 20001, 1, 8000, A, ODD, ESTABLISHED},
	{ACK, 100, 20101, 1, 8000, A, ODD, ESTABLISHED},
	{ACK, 0, 1, 20201, 8000, B, IN, ESTABLISHED},
	{ACK, 100, 20201, 1, 8000, A, IN, ESTABLISHED},
	{ACK, 0, 1, 20301, 8000, B, IN, ESTABLISHED},
	/* the acknowledgement comes first */
	{ACK, 0, 1, 30001, 8000, B, ODD, ESTABLISHED},
	{ACK, 0, 1, 30001, 8000, B, ODD, ESTABLISHED},
	{ACK, 100, 30001, 1, 8000, A, IN, ESTABLISHED},
	{ACK, 0, 1, 30101, 8000, B, IN, ESTABLISHED},
	{ACK, 100, 37001, 1, 8000, A, IN, ESTABLISHED},
	/* too far to believe: one more than 2^26 beyond */
	{ACK, 100, 105110866, 1, 8000, A, ODD, ESTABLISHED},
	{ACK, 0, 1, 105110966, 8000, B, ODD, ESTABLISHED},
	/* ahead and old at once is nobody's */
	{ACK, 0, 70000, 4294000000, 8000, B, ODD, ESTABLISHED},
	/* both directions are lost */
	{ACK, 0, 70000, 90000, 8000, B, ODD, ESTABLISHED},
	{ACK, 10, 90000, 70000, 8000, A, IN, ESTABLISHED},
	{ACK, 0, 70000, 90010, 8000, B, IN, ESTABLISHED},
	{ACK, 10, 90010, 70000, 8000, A, IN, ESTABLISHED},
	/* a FIN that runs ahead closes when it is acknowledged */
	{FIN | ACK, 5, 110000, 70000, 8000, A, ODD, ESTABLISHED},
	{ACK, 0, 70000, 110006, 8000, B, IN, FIN_A},
	{FIN | ACK, 0, 70000, 110006, 8000, B, IN, FIN_ACK_A},
	{ACK, 0, 110006, 70001, 8000, A, IN, TIME_WAIT},
};

/* One forged segment, however near, moves nothing: the connection goes on, and ends. */
static const struct row forged_data[] = {
	OPEN(8000, 8000),
	{ACK, 100, 30000001, 1, 8000, A, ODD, ESTABLISHED},
	{ACK, 100, 20000001, 1, 8000, B, ODD, ESTABLISHED},
	{ACK, 0, 1, 40000001, 8000, B, ODD, ESTABLISHED},
	{ACK, 100, 1, 1, 8000, A, IN, ESTABLISHED},
	{ACK, 100, 1, 101, 8000, B, IN, ESTABLISHED},
	{ACK, 0, 101, 101, 8000, A, IN, ESTABLISHED},
	{FIN | ACK, 0, 101, 101, 8000, A, IN, FIN_A},
	{FIN | ACK, 0, 101, 102, 8000, B, IN, FIN_ACK_A},
	{ACK, 0, 102, 102, 8000, A, IN, TIME_WAIT},
};

/* The same: while strict, nothing follows. */
static const struct row loss_strict[] = {
	OPEN(8000, 8000),
	{ACK, 100, 20001, 1, 8000, A, ODD, ESTABLISHED},
	{ACK, 100, 20101, 1, 8000, A, ODD, ESTABLISHED},
	{ACK, 0, 1, 20201, 8000, B, ODD, ESTABLISHED},
	{ACK, 100, 1, 1, 8000, A, IN, ESTABLISHED},
	{ACK, 0, 1, 101, 8000, B, IN, ESTABLISHED},
};

/* The request was lost with the handshake's last ACK: the answer shows it. */
static const struct row loss_in_handshake[] = {
	{SYN, 0, 0, 0, 8000, A, FIRST, SYN_SENT},
	{SYN | ACK, 0, 0, 1, 8000, B, IN, SYN_RECEIVED},
	{ACK, 1000, 1, 301, 8000, B, ODD, SYN_RECEIVED},
	{ACK, 0, 301, 4000, 8000, A, ODD, SYN_RECEIVED}, /* proves nothing */
	{ACK, 10, 9000, 301, 8000, B, ODD, SYN_RECEIVED}, /* nor may this move what is proof */
	{ACK, 0, 301, 9010, 8000, A, ODD, SYN_RECEIVED},
	{ACK, 0, 301, 1001, 8000, A, IN, ESTABLISHED},
};

/* FINs are final: what runs ahead of one is not followed. */
static const struct row loss_after_fin[] = {
	OPEN(8000, 8000),
	{FIN | ACK, 0, 1, 1, 8000, A, IN, FIN_A},
	{ACK, 0, 1, 5000, 8000, B, ODD, FIN_A},
	{ACK, 10, 10001, 1, 8000, A, ODD, FIN_A},
	{ACK, 10, 10001, 2, 8000, B, ODD, FIN_A},
	{ACK, 0, 2, 10011, 8000, A, IN, FIN_A},
	{ACK, 10, 10011, 2, 8000, B, IN, FIN_A},
	{FIN | ACK, 0, 10021, 2, 8000, B, IN, FIN_ACK_A},
	{ACK, 0, 2, 10022, 8000, A, IN, TIME_WAIT},
};
/* clang-format on */

static void test_loss(void **state)
{
	static const struct scene lenient[] = {
		SCENE(loss),
		SCENE(forged_data),
		SCENE(loss_in_handshake),
		SCENE(loss_after_fin),
	};
	static const struct scene strict = SCENE(loss_strict);
	unsigned wrong = play_everywhere(&strict, true);

	(void)state;
	for (size_t i = 0; i < sizeof(lenient) / sizeof(lenient[0]); i++)
		wrong += play_everywhere(&lenient[i], false);
	assert_int_equal(wrong, 0);
}

/* Back from hardware: the windows known are stale, the first packet each way tells them anew. */
static void test_learn_anew(void **state)
{
	(void)state;
	for (unsigned end = 0; end < 2; end++) {
		static const struct row before[] = {OPEN(8000, 8000)};
		static const struct row after[] = {
			{ACK, 100, 3000000000, 1500000000, 8000, A, IN, ESTABLISHED},
			{ACK, 100, 1500000000, 3000000100, 8000, B, IN, ESTABLISHED},
			{RST, 0, 3000008101, 0, 0, A, ODD, ESTABLISHED},
			{RST, 0, 1500008001, 0, 0, B, ODD, ESTABLISHED},
			{FIN | ACK, 0, 3000000100, 1500000100, 8000, A, IN, FIN_A},
		};
		struct flow_record record = {0};
		static const uint32_t initial[2] = {77, 99};

		for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
			struct tcp_segment segment = segment_of(&before[i], initial);

			step(&record, before[i].from ^ end, &segment, true);
		}
		assert_int_equal(record.state, FLOW_ESTABLISHED);
		record.window_known = 0;
		for (size_t i = 0; i < sizeof(after) / sizeof(after[0]); i++) {
			struct tcp_segment segment = segment_of(&after[i], initial);

			assert_int_equal(step(&record, after[i].from ^ end, &segment, true),
				after[i].expected);
			assert_int_equal(record.state, mirrored(after[i].state, end));
		}
	}
}

static void test_names(void **state)
{
	(void)state;
	for (unsigned i = 0; i < FLOW_N_STATES; i++)
		assert_non_null(flow_state_name((enum flow_state)i));
	for (unsigned i = 0; i < FLOW_N_ENDS; i++)
		assert_non_null(flow_end_name((enum flow_end)i));
	assert_string_equal(flow_state_name(FLOW_TIME_WAIT), "time-wait");
	assert_string_equal(flow_end_name(FLOW_END_FIN), "fin");
	assert_string_equal(flow_phase_name(flow_phase(FLOW_PICKED_UP)), "new");
	assert_string_equal(flow_phase_name(flow_phase(FLOW_ESTABLISHED)), "open");
	assert_string_equal(flow_phase_name(flow_phase(FLOW_RESET)), "closing");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scenes),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_learn_anew),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
