/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What a kind of NIC can do and how long it takes: the limits of the profiles, each with its source in
 * docs/hardware.md. A port copies its profile and lays its own devargs over it; after the port is made
 * nothing changes.
 */

#include <stdbool.h>
#include <stdint.h>

#include "drivers/flowsim/match/actions.h"
#include "drivers/flowsim/match/pattern.h"

/* The small things in which drivers differ from what they say. Each is named, with the driver and the
 * line it was seen in, in profile.c and docs/hardware.md. `hostile=0` turns all of them off. */
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

/* Whose rules for combinations of actions: of the drivers that docs/hardware.md names. */
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
