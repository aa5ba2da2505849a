/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The opening of a TCP connection: handshake and pick-up. For the files of the TCP observer, whose users have flow/tcp.h. */

#include "flow/tcp.h"

/* The responder's SYN, with or without ACK: both ends' windows as RFC 9293 section 3.5 has them. */
void tcp_answer_syn(struct flow_record *record, unsigned from, const struct tcp_segment *segment);
/* Any segment in SYN_SENT but a SYN without ACK that is not the initiator's own. */
enum tcp_verdict tcp_track_syn_sent(
	struct flow_record *record, unsigned from, const struct tcp_segment *segment);
/* A SYN without ACK in PICKED_UP: was it the one that the segments seen have answered, only late? */
bool tcp_take_late_syn(
	struct flow_record *record, unsigned from, const struct tcp_segment *segment);
