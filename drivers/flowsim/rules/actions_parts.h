/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Inside of actions_read.c and its splits: a list of actions that is being read. */

#include "drivers/flowsim/match/actions.h"

struct sim_port;

struct sim_actions_reader {
	struct sim_actions *actions;
	const struct sim_port *port;
	uint32_t group;
	bool in_sample;
	bool has_fate;	 /* JUMP and PASSTHRU too */
	uint8_t n_steps; /* edits, meter, sample */
	struct sim_fault_at *fault;
};

/* Fills in what is wrong, and returns `code`. */
int sim_actions_refuse(struct sim_fault_at *fault, int code, enum rte_flow_error_type type,
	const void *cause, const char *message);

/* For readers: the action as a whole, and what it points to. */
int sim_action_refused(struct sim_actions_reader *reader, int code,
	const struct rte_flow_action *action, const char *message);
int sim_conf_refused(struct sim_actions_reader *reader, const struct rte_flow_action *action,
	const char *message);

bool sim_action_is_edit(enum rte_flow_action_type type);

/* Whether it is an edit; if so *result is 0 or what sim_actions_parse() is to return. */
bool sim_actions_read_edit(
	struct sim_actions_reader *reader, const struct rte_flow_action *action, int *result);

int sim_actions_read_rss(struct sim_actions_reader *reader, const struct rte_flow_action *action);

/* A fate, when there is none yet. */
int sim_actions_take_fate(struct sim_actions_reader *reader, const struct rte_flow_action *action,
	enum sim_fate fate);
