/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Admission: which flows go to the NIC, and which leave for them. For the agent's files only.
 *
 * A direction is asked for when its rate (offload/rate.h) is the threshold or more, and the port has room, or holds a
 * flow that is less busy (offload/admission.h). With threshold 0 all flows are asked for, with their first packets. It
 * leaves for a busier one, and when its rate falls below half of the threshold. A direction that fell out, was refused or
 * found no slot waits: 0.1 s, doubled each time, up to a minute; one that lost its place in the queue 0.1 s.
 */

#include "offload/agent_state.h"

/* How often the rate of a rule of that state is looked at, where a wire has so many slots in use. */
uint64_t agent_look_us(uint32_t n_slots, uint32_t threshold, enum offload_state state);

/* Another rule would fit, as far as is known: the port's, and the slots. */
bool agent_has_room(const struct agent *agent, unsigned port);
/* Every turn: requests that fit are handed to the installer. */
void agent_admit_turn(struct agent *agent, unsigned port);
/* The answer to an insert: what the port has room for, and how many requests it is handed at a time. */
void agent_admit_answered(const struct agent_at *at, const struct installer_answer *answer);
/* A delete failed: others are not asked to leave for a while. */
void agent_admit_stays(const struct agent_at *at);
/* A rule that is in the NIC is looked at, while its record lives: does its rate still deserve it? */
void agent_admit_look(const struct agent_at *at);
/* When that is due next; UINT64_MAX: with its counter. */
uint64_t agent_admit_due_us(const struct agent_at *at);
