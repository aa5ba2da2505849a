/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow/record.h"

static const struct {
	const char *name;
	enum flow_phase phase;
} states[FLOW_N_STATES] = {
	[FLOW_FREE] = {"free", FLOW_PHASE_NEW},
	[FLOW_REQUEST] = {"request", FLOW_PHASE_NEW},
	[FLOW_PICKED_UP] = {"picked-up", FLOW_PHASE_NEW},
	[FLOW_SYN_SENT] = {"syn-sent", FLOW_PHASE_NEW},
	[FLOW_SYN_RECEIVED] = {"syn-received", FLOW_PHASE_NEW},
	[FLOW_REPLIED] = {"replied", FLOW_PHASE_OPEN},
	[FLOW_ESTABLISHED] = {"established", FLOW_PHASE_OPEN},
	[FLOW_FIN_0] = {"fin-0", FLOW_PHASE_CLOSING},
	[FLOW_FIN_1] = {"fin-1", FLOW_PHASE_CLOSING},
	[FLOW_FIN_BOTH] = {"fin-both", FLOW_PHASE_CLOSING},
	[FLOW_FIN_ACK_0] = {"fin-ack-0", FLOW_PHASE_CLOSING},
	[FLOW_FIN_ACK_1] = {"fin-ack-1", FLOW_PHASE_CLOSING},
	[FLOW_TIME_WAIT] = {"time-wait", FLOW_PHASE_CLOSING},
	[FLOW_RESET] = {"reset", FLOW_PHASE_CLOSING},
};

static const char *const phase_names[FLOW_N_PHASES] = {
	[FLOW_PHASE_NEW] = "new",
	[FLOW_PHASE_OPEN] = "open",
	[FLOW_PHASE_CLOSING] = "closing",
};

static const char *const end_names[FLOW_N_ENDS] = {
	[FLOW_END_FIN] = "fin",
	[FLOW_END_RST] = "rst",
	[FLOW_END_IDLE] = "idle",
	[FLOW_END_ACTIVE] = "active",
	[FLOW_END_EVICTED] = "evicted",
	[FLOW_END_KILLED] = "killed",
	[FLOW_END_SHUTDOWN] = "shutdown",
};

const char *flow_phase_name(enum flow_phase phase)
{
	return phase_names[phase];
}

enum flow_phase flow_phase(enum flow_state state)
{
	return states[state].phase;
}

const char *flow_end_name(enum flow_end reason)
{
	return end_names[reason];
}

const char *flow_state_name(enum flow_state state)
{
	return states[state].name;
}
