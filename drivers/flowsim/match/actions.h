/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What a rule does: the struct that rte_flow actions are read into (rules/actions_read.h).
 *
 * A packet's way through the rules (docs/hardware.md, "What a rule does"): in each group the best rule
 * that matches (lowest priority number, then the one created first) is taken. Without a fate of its own
 * (QUEUE, RSS, DROP, a port) a rule ends the search and the packet goes on as it would have without
 * rules; PASSTHRU goes on with the next best rule of the group; JUMP goes on in another group. Marks,
 * queues and fates of later rules replace those of earlier ones; edits and counters add up. No match in
 * a group = the search ends with what was found. At most SIM_MAX_CHAIN rules are taken.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_flow.h>

#include "drivers/flowsim/match/pattern.h"

#define SIM_MAX_ACTIONS 32
#define SIM_MAX_EDITS 16
#define SIM_MAX_RSS_QUEUES 128
#define SIM_NO_QUEUE UINT16_MAX

enum sim_fate {
	SIM_FATE_NONE, /* as without rules: RSS to a queue, or sent */
	SIM_FATE_QUEUE,
	SIM_FATE_RSS,
	SIM_FATE_DROP,
	SIM_FATE_SEND, /* out of a port, by the NIC alone */
	SIM_FATE_GIVE, /* to a port's receive queues, as if it had arrived there */
};

enum sim_edit_type {
	SIM_EDIT_POP_VLAN,
	SIM_EDIT_PUSH_VLAN, /* value: TPID */
	SIM_EDIT_VLAN_VID,
	SIM_EDIT_VLAN_PCP,
	SIM_EDIT_MAC_SRC,
	SIM_EDIT_MAC_DST,
	SIM_EDIT_IPV4_SRC,
	SIM_EDIT_IPV4_DST,
	SIM_EDIT_IPV6_SRC,
	SIM_EDIT_IPV6_DST,
	SIM_EDIT_TP_SRC,
	SIM_EDIT_TP_DST,
	SIM_EDIT_DEC_TTL, /* a packet with TTL 0 or 1 keeps it and is dropped */
};

struct sim_edit {
	enum sim_edit_type type;
	uint8_t value[16]; /* network byte order, from the start */
};

/* Queues of an RSS action, shared by all who have the handle of an indirect one. */
struct sim_rss {
	uint16_t n_queues;
	uint16_t queues[SIM_MAX_RSS_QUEUES];
	enum rte_eth_hash_function function;
	uint64_t types;
	uint8_t key_length;
	uint8_t key[52];
};

struct sim_meter; /* packets/meter.h */

/* An indirect action (handle.h): the application's handle is the thing itself. */
#define sim_indirect rte_flow_action_handle

struct sim_actions {
	uint64_t named; /* 1 << RTE_FLOW_ACTION_TYPE_... of each that was named, also in SAMPLE */
	enum sim_fate fate;
	uint16_t queue; /* SIM_FATE_QUEUE */
	uint16_t port;	/* SIM_FATE_SEND, SIM_FATE_GIVE: an ethdev */
	bool mark, flag, count, age, jump, passthru, meter, sample;
	uint32_t mark_id;
	uint32_t jump_group;
	uint32_t meter_id;
	uint32_t age_seconds;
	void *age_context;     /* NULL: the rule's own handle, as rte_flow.h says */
	uint32_t sample_ratio; /* one in so many is copied; 1: each */
	struct sim_indirect *count_handle, *age_handle, *rss_handle; /* NULL: of the rule's own */
	struct sim_actions *sampled; /* what is done to the copy: mark, queue, port, edits; owned */
	struct sim_meter *meter_held; /* of meter_id, when rules/actions_pool.h holds these */
	uint8_t meter_at, sample_at;  /* which of the steps (edits, meter, sample) it is, from 0 */
	uint8_t n_edits;
	struct sim_edit edits[SIM_MAX_EDITS]; /* what is held has no room for more than n_edits */
	struct sim_rss rss; /* SIM_FATE_RSS, unless `rss_handle`; else not there in what is held */
};
