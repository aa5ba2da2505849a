/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow/timeouts.h"

#include <netinet/in.h>
#include <stdbool.h>

static const struct {
	const char *name;
	uint32_t seconds;
} timeouts[FLOW_N_TIMEOUTS] = {
	[FLOW_TIMEOUT_TCP_NEW] = {"tcp-new", 60},
	[FLOW_TIMEOUT_TCP_OPEN] = {"tcp-open", 7440},
	[FLOW_TIMEOUT_TCP_CLOSING] = {"tcp-closing", 240},
	[FLOW_TIMEOUT_TCP_TIME_WAIT] = {"tcp-time-wait", 120},
	[FLOW_TIMEOUT_TCP_RESET] = {"tcp-reset", 10},
	[FLOW_TIMEOUT_UDP_NEW] = {"udp-new", 30},
	[FLOW_TIMEOUT_UDP_OPEN] = {"udp-open", 180},
	[FLOW_TIMEOUT_SCTP_NEW] = {"sctp-new", 30},
	[FLOW_TIMEOUT_SCTP_OPEN] = {"sctp-open", 900},
	[FLOW_TIMEOUT_ICMP] = {"icmp", 60},
	[FLOW_TIMEOUT_OTHER_NEW] = {"other-new", 30},
	[FLOW_TIMEOUT_OTHER_OPEN] = {"other-open", 600},
};

struct flow_timeouts flow_timeouts_default(void)
{
	struct flow_timeouts defaults;

	for (unsigned i = 0; i < FLOW_N_TIMEOUTS; i++)
		defaults.seconds[i] = timeouts[i].seconds;
	return defaults;
}

const char *flow_timeout_name(enum flow_timeout timeout)
{
	return timeouts[timeout].name;
}

enum flow_timeout flow_timeout_of(enum flow_state state, uint8_t proto)
{
	bool open = flow_phase(state) == FLOW_PHASE_OPEN;

	if (state == FLOW_TIME_WAIT)
		return FLOW_TIMEOUT_TCP_TIME_WAIT;
	if (state == FLOW_RESET)
		return FLOW_TIMEOUT_TCP_RESET;
	if (flow_phase(state) == FLOW_PHASE_CLOSING)
		return FLOW_TIMEOUT_TCP_CLOSING;
	switch (proto) {
	case IPPROTO_TCP:
		return open ? FLOW_TIMEOUT_TCP_OPEN : FLOW_TIMEOUT_TCP_NEW;
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
		return open ? FLOW_TIMEOUT_UDP_OPEN : FLOW_TIMEOUT_UDP_NEW;
	case IPPROTO_SCTP:
		return open ? FLOW_TIMEOUT_SCTP_OPEN : FLOW_TIMEOUT_SCTP_NEW;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return FLOW_TIMEOUT_ICMP;
	default:
		return open ? FLOW_TIMEOUT_OTHER_OPEN : FLOW_TIMEOUT_OTHER_NEW;
	}
}
