/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * How many rules a NIC has room for, and how long it takes for one: measured with the engine's own rules, by the
 * provider that an engine would have (rteflow/provider.h), until the NIC says that there is no room, or the cap or
 * the time is reached. Rules are for addresses of RFC 2544 at both ends, which no packet should have.
 *
 * The first rules and the first deletes go one at a time: their times are latencies. The others go as many at once as
 * the back end allows.
 */

#include <stdbool.h>
#include <stdint.h>

#include "probe/rule.h"
#include "rteflow/provider.h"

/* Rules whose addresses and ports differ. */
#define LIMITS_MAX_RULES 16777216

struct limits_config {
	struct provider_config provider; /* its places are `max_rules` */
	/*
	 * Where the provider has none: rules of this form, which the port takes; NULL: that was all. Its pattern is one
	 * of the engine's.
	 */
	const struct form *form;
	struct rule_port *port;
	uint64_t deadline_us; /* monotonic */
	/* `allow_s`: it may take that long; 0: as others do */
	void (*step)(void *context, const char *what, unsigned rules, unsigned allow_s);
	void *context;
};

struct limits_latency {
	uint32_t times;
	uint64_t p50_ns, p99_ns;
	double per_s; /* 0: not measured */
};

enum limits_end {
	LIMITS_NONE, /* no rule was taken */
	LIMITS_FULL,
	LIMITS_CAP,	/* it has room for as many as were to be tried, at least */
	LIMITS_TIME,	/* the same, as far as the time went */
	LIMITS_FAILED,	/* calls failed again and again */
	LIMITS_STOPPED, /* somebody did not want to wait: as with TIME */
};

struct limits {
	struct provider_abilities abilities; /* by trial */
	bool by_form;			     /* its own rules are none: those of the form */
	enum provider_kind kind;	     /* of the rules that were made */
	enum limits_end end;
	struct provider_why why; /* of FULL and FAILED: what the driver said */
	uint32_t rules;		 /* that were there at once */
	uint32_t failed;	 /* inserts that failed on the way */
	uint32_t refused_removes;
	struct limits_latency insert, remove;
	uint64_t all_away_us; /* the time in which the last `all_away` went */
	uint32_t all_away;
	uint32_t left; /* rules that may still be there */
};

/* 0 or -ENOMEM. */
int limits_measure(struct limits *limits, const struct limits_config *config);

/* The rule number `i`. Pure. */
void limits_rule(struct offload_rule *rule, enum provider_kind kind, uint32_t i);
/* The time that `share` of `n` times did not exceed; sorts them. Pure. */
uint64_t limits_percentile(uint64_t *times, uint32_t n, double share);
