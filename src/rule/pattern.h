/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The meaning of a pattern: which headers a rule of the engine matches, as a rule of the classifier.
 *
 * A pattern is of the outer headers. What the classifier has no field for is refused by its name. The
 * functions keep no state.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/topology.h"
#include "rule/classifier.h"
#include "rule/command.h"

/* Groups that rules may be in: 0 to one less. */
#define RULE_MAX_GROUPS 64

/* Where VXLAN is looked for (RFC 7348), and what such a packet has as metadata, beside its network's number. */
#define RULE_VXLAN_PORT 4789
#define RULE_METADATA_VXLAN 0x01000000u
#define RULE_METADATA_KIND 0x7f000000u
/* In metadata: the packet may begin a flow, so that rules with a limit (rule/limit.h) are asked about it. */
#define RULE_METADATA_LIMIT 0x80000000u

struct rule_meters; /* rule/meters.h */
struct rule_shared; /* rule/shared.h */

/* What is known of the engine that is to run a rule. */
struct rule_ground {
	const struct topology *topology; /* NULL: any port may be there */
	bool zone_vlan;			 /* the key of a flow has the VLAN of its packets */
	unsigned n_captures; /* capture files, which copies go to as to ports behind the last one */
	bool sends_nothing;  /* it reads captures: no packet leaves by a port */
	const struct rule_meters *meters; /* that rules may name, or NULL */
	const struct rule_shared *shared; /* the same of lists of actions */
	/* the number of the set of this name in the classifier, or 0; NULL: there are none */
	uint32_t (*find_set)(void *context, const char *name);
	void *find_set_context;
};

enum rule_part {
	RULE_PART_COMMAND, /* its verb or attributes */
	RULE_PART_PORT,	   /* the number behind the verb */
	RULE_PART_PATTERN,
	RULE_PART_ACTIONS,
};

/* Which part of a command is refused. */
struct rule_refusal {
	enum rule_part part;
	unsigned index;	  /* of the item or action in its list */
	const char *word; /* of the command: the word to point at, or NULL */
};

/*
 * Fills `rule`, but for its id and jump: attributes and pattern of a command that makes or validates a rule.
 * 0; or -ENOTSUP: software cannot do it; or -EINVAL: it makes no sense. Then `error` begins with the word.
 */
int rule_pattern_read(const struct rule_command *command, const struct rule_ground *ground,
	struct classifier_rule *rule, struct rule_refusal *refusal, struct error *error);

/*
 * What is left of a rule when it may only ask for what all packets of a flow's direction have in common:
 * addresses, ports, protocol, IP version, the port that they come by, and the VLAN if the key has it. Returns
 * whether something was left out: then the rule decides single packets.
 */
bool rule_pattern_of_flows(const struct classifier_rule *rule, const struct rule_ground *ground,
	struct classifier_rule *of_flows);

/* The column of the word that is refused, in bytes from 1. The line was parsed. */
unsigned rule_refusal_column(const char *line, size_t length, const struct rule_refusal *refusal);

/* Refuses unless the engine has this port: "port 7: the engine has ports 0 to 1". */
int rule_port_check(const struct rule_ground *ground, uint64_t port, struct error *error);
