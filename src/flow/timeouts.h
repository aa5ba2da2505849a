/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * How long a flow may be silent, by what it is and how far it has come. Whole seconds. Set once,
 * before the first packet; read by every shard.
 */

#include <stdint.h>

#include "flow/record.h"

enum flow_timeout {
	FLOW_TIMEOUT_TCP_NEW,	  /* handshake, or met in mid-conversation and not answered */
	FLOW_TIMEOUT_TCP_OPEN,	  /* RFC 5382 REQ-5: at least 2 hours and 4 minutes */
	FLOW_TIMEOUT_TCP_CLOSING, /* RFC 5382 REQ-5: at least 4 minutes */
	FLOW_TIMEOUT_TCP_TIME_WAIT, /* RFC 9293 section 3.4.2 asks 4 minutes of hosts; most keep 1..2 */
	FLOW_TIMEOUT_TCP_RESET,	    /* only stragglers can come */
	FLOW_TIMEOUT_UDP_NEW,
	FLOW_TIMEOUT_UDP_OPEN, /* RFC 4787 REQ-5: at least 2 minutes */
	FLOW_TIMEOUT_SCTP_NEW,
	FLOW_TIMEOUT_SCTP_OPEN,
	FLOW_TIMEOUT_ICMP, /* RFC 5508 REQ-2: a minute is enough, 30 s is usual */
	FLOW_TIMEOUT_OTHER_NEW,
	FLOW_TIMEOUT_OTHER_OPEN,
	FLOW_N_TIMEOUTS,
};

#define FLOW_TIMEOUT_MAX_S 31536000 /* one year; keeps every sum within the clock's 48 bits */

struct flow_timeouts {
	uint32_t seconds[FLOW_N_TIMEOUTS]; /* 1..FLOW_TIMEOUT_MAX_S */
};

struct flow_timeouts flow_timeouts_default(void);

/* The name users write: "tcp-new", "udp-open", ... */
const char *flow_timeout_name(enum flow_timeout timeout);

/*
 * How long a flow of which a rule says `age_s` (0: none does) may be silent, where its protocol has `seconds`. One that
 * is closing ends no later than by its protocol.
 */
static inline uint32_t flow_timeout_by_rule(uint32_t seconds, uint32_t age_s, enum flow_state state)
{
	if (age_s == 0 || (flow_phase(state) == FLOW_PHASE_CLOSING && seconds < age_s))
		return seconds;
	return age_s;
}

/* Which of them a flow of this protocol is under, in this state. */
enum flow_timeout flow_timeout_of(enum flow_state state, uint8_t proto);
