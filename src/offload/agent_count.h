/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The NIC's counters of rules: for the agent's files only.
 *
 * The counter of a rule that marks is held against the packets that came with its mark. The counter of a rule whose
 * packets the NIC sends on alone is credited to the record each time that it was read, and once more when the rule is
 * gone; where the last packets are not told the flow says that its numbers are estimated.
 */

#include "offload/agent_full.h"

/*
 * Between two readings of a counter of full offload, at most, where there are few flows: one that fell silent is to end
 * within a second of its time. One reading tells of its last packet, and another that its time is over.
 */
#define AGENT_READ_US 250000

/* The rule was accepted. */
void agent_count_begin(const struct agent_at *at);
/* Asks for the counter of a rule that is in the NIC, if that is due and may be asked for now. */
void agent_count_look(const struct agent_at *at);
/* When agent_count_look() is due next; UINT64_MAX: not before an answer has come, or never. */
uint64_t agent_count_due_us(const struct agent_at *at);
/* The counter was read, or could not be. The record may be gone then. */
void agent_count_answer(const struct agent_at *at, const struct installer_answer *answer);
/* A full rule is gone; before the direction is in software. */
void agent_count_last(const struct agent_at *at, const struct installer_answer *answer);
