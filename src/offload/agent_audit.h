/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The audit: whether the NIC does what it said, by what the worker's packets show. For the agent's files only. */

#include "offload/agent_state.h"

/* A packet of the direction came with its flow's mark by `port`. */
void agent_audit_marked(const struct agent_at *at, unsigned port);
/* One came without: by the port of the rule, or by another. */
void agent_audit_unmarked(const struct agent_at *at, unsigned port, const struct packet_info *info);
/* One that no rule can be expected to match came with the flow's mark; without it. */
void agent_audit_unplain_marked(const struct agent_at *at, unsigned port);
void agent_audit_unplain(const struct agent_at *at, unsigned port);
/* One came by `port` with a mark that is not its flow's. */
void agent_audit_stranger(const struct agent_at *at, unsigned port, uint32_t mark);
/* One came that a rule was to drop. */
void agent_audit_dropped(const struct agent_at *at);

/* A mark that no worker has in force; false: it is in force, or another worker's. It is counted, and told. */
bool agent_audit_ghost(struct agent *agent, unsigned port, uint32_t mark);
/* Such a mark came by the direction's port with a packet of the flow at that position. */
void agent_audit_look_at_ghost(const struct agent_at *at, uint32_t position, uint32_t mark);

/* An answer of the installer is late: it is told, with others of that second. */
void agent_audit_late(const struct agent_at *at);
/* True: the rule is to leave, as its port was put to software since it was asked for. */
bool agent_audit_breaker(const struct agent_at *at);
