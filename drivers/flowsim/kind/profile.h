/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A profile says what a kind of NIC can do, and how long that takes (docs/hardware.md). A port copies its
 * profile and lays its own arguments over it; after the port is made nothing changes.
 *
 * The figures come from drivers and documents of DPDK 22.11.11 unless said; a driver's name stands for
 * drivers/net/NAME/. Assumed means that no source was found.
 * - X710: 7,168 rules: measured by the project's founding experiment (FlowTable over rte_flow, DPDK 17.02). What
 *   the card has, guaranteed and best effort together, the driver logs: i40e_fdir.c:171; its arrays are for 8,192:
 *   i40e_ethdev.h:716
 * - X710: 11 ms a rule: the same experiment. The driver waits 10 ms after each rule to read its status:
 *   i40e_fdir.c:66 and :1746, by rte_delay_us(), which burns (spin=1). 22.11 skips this while the card has
 *   guaranteed room and invalidates guaranteed entries first (:1522, :1546); then it is fast, and blind
 * - X710: 5 ms for a flush: one register empties the card's table, and is looked at each 5 ms until it did:
 *   i40e_fdir.c, i40e_fdir_flush(). How long the card needs is not said there: the first look is assumed to find it
 *   done
 * - X710: 22 us: the same experiment with the driver changed to look at the status until it is there
 * - X710: 32-bit marks: i40e_flow.c:2482, soft_id
 * - X710: full is ENOBUFS: i40e_flow.c:3926
 * - E810: 16,384 rules: assumed; the card tells, ice_fdir_filter.c:383 and :455
 * - E810: 22 us: assumed as the X710's: the driver looks each microsecond, and gives up after 10 ms:
 *   ice_rxtx.c:4590 to :4616
 * - E810: full is EINVAL: ice_rxtx.c:4536, :4543
 * - ConnectX-5: 1 M rules: assumed. doc/guides/rel_notes/release_19_05.rst:112 says millions
 * - ConnectX-5: 20 us a rule: assumed, between two figures: over a million a second by Direct Rules
 *   (doc/guides/nics/mlx5.rst:85; groups above 0, several threads), and group 0, which firmware manages and which
 *   is much slower (mlx5.rst:1107). create_ns=1000 is the former
 * - ConnectX: 24-bit marks, the last 16 kept: mlx5.rst:1077 to :1080; common/mlx5/mlx5_prm.h:252
 * - ConnectX: 21,844 priorities: mlx5_flow.h:374; group 0 has fewer: mlx5_flow.c:1371
 * - ConnectX: 65,531 groups: mlx5.h:1141 to :1149
 * - ConnectX: full is ENOMEM: assumed; the driver passes on what it is told: mlx5_flow_dv.c:14958
 * - ConnectX-6 Dx: 4 M rules: OISF/suricata pull request 15877: about 4 million rules on a ConnectX-6
 * - ConnectX-6 Dx: 4.5 M rules a second: DPDK commit 90967539d0: 4.46 to 4.58 million a second, deletes 7.8
 * - ConnectX: answers after 10 us, queries in 1 us: assumed
 * - tiny: 512 rules, 22 us: the smallest flow table among the NICs that the first FlowTable met
 *
 * Patterns and actions that the drivers take:
 *
 * X710 (i40e_flow.c). Patterns from Ethernet on, in the order ETH, VLAN, IPV4 or IPV6, TCP, UDP or SCTP; no
 * tunnels, no ICMP (:995). Fields, each whole or not at all: tag or a part of it; IPv4 addresses, TOS, TTL, and
 * protocol where no layer 4 is named (the same protocol beside layer 4, which Open vSwitch 3.1 asks for, is taken
 * as said twice; the real driver refuses it: i40e_ethdev.c:9216); IPv6 addresses, traffic class, hop limit, next
 * header; ports, SCTP's tag; Ethernet type without IP. Ethernet addresses of IPv4 packets, but not together with
 * what is above (:1952). "No fragment" (mask 0x3fff, spec 0) may be added, and is no part of the set (:1906). TCP
 * flags, ranges, identification: no. A rule of TCP matches segments of all flags; on an X722, which is otherwise
 * alike, not a SYN without ACK, which is a packet type of its own there (i40e_type.h, NONF_IPV4_TCP_SYN_NO_ACK).
 * The real driver takes a partly masked address and ignores it (:1882); ours refuses. The first rule of a packet
 * type fixes its set of fields, until its last rule is gone (i40e_fdir.c:1308; doc/guides/nics/i40e.rst:924).
 * Actions (:2444): one of QUEUE, DROP, PASSTHRU, MARK, RSS; with it one of MARK, FLAG (not with MARK alone), RSS
 * (with MARK or PASSTHRU). Ingress, priority 0, group 0 (:1220).
 *
 * E810 (ice_fdir_filter.c: flow director only; the card's switch, which takes other patterns without MARK, is not
 * simulated). Patterns of :109: like the X710's without VLAN, with VXLAN and GTP-U and the inner addresses and
 * ports. Fields as X710, and Ethernet addresses with all of it. Actions (:1678): at most one of QUEUE, DROP,
 * PASSTHRU, RSS (2, 4, ... 128 queues that lie together, :1621); MARK; COUNT.
 *
 * ConnectX (mlx5_flow_dv.c). Any mask of any field; a range only of IPv4's fragment offset. No SCTP, no ANY
 * (doc/guides/nics/features/mlx5.ini). A rule for received packets needs a fate: QUEUE, RSS, DROP, JUMP (:8247).
 * MARK and FLAG exclude each other (mlx5_flow.c:1905). DROP goes with COUNT, AGE and SAMPLE only (:8196). Transfer
 * rules: no MARK, FLAG, QUEUE, RSS; ports only in these. VLAN push not for received packets, pop not for those sent
 * (:8266). Not simulated: that a real ConnectX-5 pushes tags only onto packets that come from a representor
 * (:8271).
 *
 * The small hostilities were seen in:
 * - unfilled: failsafe/failsafe_flow.c:137 (destroy), and :213: query says -1, with nothing filled in, even when it
 *   worked
 * - no_validate: ntnic/ntnic_filter/ntnic_filter.c:1369 (25.11): no validate among its calls; gve
 * - validate_yes: iavf/iavf_generic_flow.c:2157: refused by the other side, it leaves the loop with the engine,
 *   which means yes; e1000/igb_flow.c: neither queue numbers nor room are looked at
 * - full_errno: e1000/igb_ethdev.c:4428: ENOSYS; i40e/i40e_flow.c:3926: ENOBUFS
 * - blame: i40e/i40e_flow.c:3883: all parsers whose pattern fits are tried, and the last one's error stays (:1001
 *   and :1111 are of one pattern; :2622 is what it says); igb's are the same
 * - packet_type: i40e/i40e_flow.c:1841: the packet type is that of the last layer named
 */

#include <stdbool.h>
#include <stdint.h>

#include "drivers/flowsim/match/actions.h"
#include "drivers/flowsim/match/pattern.h"

/* The small things in which drivers differ from what they say. `hostile=0` turns all of them off. */
enum sim_quirk {
	SIM_QUIRK_UNFILLED = 1 << 0,	 /* a refusal leaves struct rte_flow_error as it was */
	SIM_QUIRK_NO_VALIDATE = 1 << 1,	 /* validate is not there: -ENOSYS */
	SIM_QUIRK_VALIDATE_YES = 1 << 2, /* validate parses only; limits show in create */
	SIM_QUIRK_FULL_ERRNO = 1 << 3,	 /* full is told by another errno: `full_errno` */
	SIM_QUIRK_BLAME = 1 << 4,	 /* refusals blame an action whatever was wrong */
	SIM_QUIRK_PACKET_TYPE =
		1 << 5, /* `eth / ipv4` is for packets that are neither TCP, UDP, SCTP
					    nor fragments; also IPv6: the NIC's packet types */
};
#define SIM_N_QUIRKS 6

/* Which rules one table may hold together. */
enum sim_input_set {
	SIM_INPUT_ANY,	    /* any masks */
	SIM_INPUT_PER_TYPE, /* one set of whole fields for each packet type, fixed by its first rule */
	SIM_INPUT_EXACT,    /* fields are matched whole or not at all, no ranges */
};

/* The driver, of those named above, whose rules for combinations of actions hold. */
enum sim_maker {
	SIM_MAKER_NONE, /* none but rte_flow.h's */
	SIM_MAKER_I40E,
	SIM_MAKER_ICE,
	SIM_MAKER_MLX5,
};

struct sim_profile {
	const char *name;
	const char *about; /* a line */
	uint32_t size;	   /* rules; UINT32_MAX: no limit */
	uint64_t create_ns, destroy_ns, query_ns;
	uint64_t flush_ns;  /* one call empties the table; 0: it makes as many as there are rules */
	bool spin;	    /* burns its latency instead of sleeping */
	bool sync, async;   /* which calls it has */
	uint32_t rate;	    /* async: at most so many rules a second; 0: no limit */
	uint64_t answer_ns; /* async: from push to completion at least */
	uint8_t mark_bits;  /* 16, 24, 32; 0: no MARK */
	uint8_t mark_kept;  /* so many of the highest marks are the driver's own */
	uint64_t items;	    /* bits as in sim_pattern.items */
	uint64_t actions;   /* bits by sim_action_bit() */
	bool transfer, egress;
	uint32_t groups;     /* numbers below it; 1: no JUMP */
	uint32_t priorities; /* numbers below it */
	bool fate_needed;    /* MARK alone is refused; PASSTHRU counts as none */
	bool ranges;	     /* `last`; without: IPv4's fragment offset only */
	enum sim_maker maker;
	enum sim_input_set input_set;
	int unsupported; /* positive: the errno of what it cannot do */
	uint32_t quirks;
	int full_errno;	  /* positive */
	bool thread_safe; /* RTE_ETH_DEV_FLOW_OPS_THREAD_SAFE */
	uint8_t keeps_rules; /* over a restart; 1: RTE_ETH_DEV_CAPA_FLOW_RULE_KEEP says so, 2: nobody does */
};

/* NULL when there is no such profile; "ideal" is always there. Names: sim_profile_name(i), NULL ends. */
const struct sim_profile *sim_profile_find(const char *name);
const char *sim_profile_name(unsigned i);

/* Of the bit 1 << i; NULL from SIM_N_QUIRKS on: "unfilled", "no_validate", ... */
const char *sim_quirk_name(unsigned i);

/*
 * Whether a port of this kind would take the rule: capabilities and combinations, not room. Returns 0,
 * or -ENOTSUP, -EINVAL and so on as the real driver does, and why. With SIM_QUIRK_PACKET_TYPE it narrows
 * the pattern to what such a NIC makes of it.
 */
struct sim_draft;
int sim_profile_check(
	const struct sim_profile *profile, struct sim_draft *draft, struct sim_fault_at *fault);

/*
 * SIM_INPUT_PER_TYPE: the input sets in use, with a count of rules each. add returns -EINVAL ("conflict
 * with the first rule's input set") where another set is in use for that packet type. Under the port's
 * lock; destroy accepts NULL, and so do the others: without a limit then.
 */
struct sim_input_sets;
struct sim_input_sets *sim_input_sets_create(void);
void sim_input_sets_destroy(struct sim_input_sets *sets);
int sim_input_sets_add(
	struct sim_input_sets *sets, const struct sim_pattern *pattern, struct sim_fault_at *fault);
void sim_input_sets_remove(struct sim_input_sets *sets, const struct sim_pattern *pattern);
