/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow/timeouts.h"

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
	[FLOW_TIMEOUT_ICMP] = {"icmp", 30},
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
