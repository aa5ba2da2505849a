/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What a rule does: the struct that rte_flow actions are read into (rules/actions_read.h).
 *
 * The choice of a rule. A received packet meets the transfer rules first, then the ingress rules of its port; a packet that
 * is being sent meets egress rules. In each the search begins in group 0. Of the rules of a group that match, the
 * one with the lowest priority number is taken, of these the one created first. Then:
 *
 * - QUEUE, RSS, DROP, a port (PORT_ID, REPRESENTED_PORT: sent out of it; PORT_REPRESENTOR: given to its receive
 *   queues): that is the packet's fate; the search is over
 * - JUMP: it goes on in that group (a higher number than the rule's own)
 * - PASSTHRU: it goes on with the next best rule of this group
 * - none of these: the search is over, the packet goes on as it would have without rules
 *
 * Nothing that matches ends the search too, with what was found so far. At most eight rules are taken. MARK, FLAG
 * and fates of later rules replace those of earlier ones (a FLAG leaves an earlier MARK's id as it is); counters,
 * ageing, meters, samples and edits of every rule taken apply, in their order. After a transfer search that ended
 * with DROP or a port there is no ingress search; else its marks and edits stay and the ingress search follows, on
 * the packet as it arrived (edits are done when both searches are over).
 *
 * FLAG sets RTE_MBUF_F_RX_FDIR, MARK that and RTE_MBUF_F_RX_FDIR_ID with the id in `hash.fdir.hi`. A mark has as
 * many bits as the profile says; a larger id is refused.
 *
 * SAMPLE copies one packet of `ratio` (the ratio-th, 2 * ratio-th, ... that matches) before later edits. METER
 * drops what is red. DEC_TTL drops a packet whose TTL would become 0.
 *
 * How calls end:
 *
 * Blocking calls of a port go one after the other and take as long as the profile says: a rule matches from the end
 * of its create to the end of its destroy, packets and asynchronous calls go on meanwhile. `flush` takes as long as
 * its destroys (on X710s 5 ms in all), and leaves ghosts and what a flow queue is at work on. A transfer rule whose
 * pattern names another port of the NIC takes room there, and is queried and destroyed on the port it was created
 * on. A handle that is none, or no longer, is refused by -ENOENT, whatever the pointer. Rules go when the port is
 * stopped (unless `keep_rules=`), handles of indirect actions when it is closed. Isolated mode is for stopped
 * ports.
 *
 * Asynchronous calls are done in the order of their queue, whether or not anybody pulls. So `late` and
 * `stall_delete` hold up what follows in the same queue, not in others. A completion that `drop_completion` takes
 * is never told, but its place in the queue is free again. Stopping the port carries out at once what was pushed;
 * what was postponed stays in the queue. A flush does not reach rules that are still on their way. A rule of a
 * template whose items name another port is refused with -ENOTSUP: make it on that port.
 *
 * Calls of newer DPDKs are missing, and return -ENOSYS or -ENOTSUP: rules by index
 * (`async_create_by_index`, `..._with_pattern`, tables of that insertion type), `actions_update` both ways,
 * `query_update`, lists of indirect actions, `group_set_miss_actions`, `calc_table_hash` and `calc_encap_hash`,
 * tables that are resized. Of 22.11's it has no tunnel offload (`tunnel_decap_set` and its like), no flex items, no
 * `get_q_aged_flows`.
 *
 * COUNT by a handle has the packets of all its rules, gone ones too, to the last; a query of such a rule tells the
 * handle's. Resetting is for the rule or handle that was asked. A handle in use is not destroyed: -EBUSY.
 *
 * AGE looks ten times a second (less often at some ten thousand rules), never tells too early, and tells once: a
 * rule comes out of `rte_flow_get_aged_flows` again after it had packets and fell silent anew. The event comes once
 * between two calls of it. A rule that the NIC lost or forgot sees no packets, and ages.
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
