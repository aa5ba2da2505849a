/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Templates and tables of them, compiled: which words of a pattern a rule gives (match/pattern.h), which
 * actions are fixed and what of them a rule may say. A rule then costs a few copies, where its actions
 * are as most are ("quick"), and a parse where they are not.
 *
 * Made and destroyed under the port's lock, in memory of their own. The thread of a flow queue reads
 * them without it (rte_flow.h: a template is not destroyed while a table has it, nor a table while it
 * has rules), the firmware with it. A template or table that is in use is not destroyed: -EBUSY. What
 * an application hands over as one is looked for in the port's lists, but for the table of a rule, of
 * which only the magic is looked at.
 *
 * Errors are as rte_flow.h says: NULL and an errno below zero in *error, or that errno.
 */

#include <rte_common.h>
#include <rte_flow_driver.h>

#include "drivers/flowsim/match/rule.h"

#define SIM_TEMPLATE_MAX_TABLE 16 /* templates of a kind in a table */
#define SIM_SHARED_ACTIONS 16
#define SIM_TABLE_MAGIC 0x7461626cu

struct sim_port;
struct sim_async;

struct rte_flow_pattern_template {
	TAILQ_ENTRY(rte_flow_pattern_template) link;
	struct sim_port *port;
	uint32_t users; /* tables */
	bool domains[SIM_N_DOMAINS];
	struct sim_pattern_template read;
};

/* What a rule says of an action. */
enum sim_given {
	SIM_GIVEN_NOTHING, /* the template has it all */
	SIM_GIVEN_ALL,
	SIM_GIVEN_CONTEXT, /* of AGE: the time is the template's, */
	SIM_GIVEN_TIMEOUT, /* or the context is */
};

struct rte_flow_actions_template {
	TAILQ_ENTRY(rte_flow_actions_template) link;
	struct sim_port *port;
	uint32_t users;
	bool domains[SIM_N_DOMAINS];
	uint8_t n;
	struct rte_flow_action *list; /* END ends it; indirect ones with the handle or NULL */
	enum rte_flow_action_type behind[SIM_MAX_ACTIONS]; /* of an indirect one */
	uint8_t given[SIM_MAX_ACTIONS];
	bool quick; /* rules say no more than marks, queues, ageing and handles */
	int8_t mark, queue,
		age; /* which actions these are, if a rule says something of it; or -1 */
	int8_t count_handle, age_handle, rss_handle;
};

/* What a rule of a quick template gives of what rules share. */
struct sim_choice {
	uint16_t queue;
	uint32_t age_seconds;
	struct sim_indirect *rss;
};

/* An actions template in a table. */
struct sim_actions_use {
	struct rte_flow_actions_template *template;
	struct sim_actions base; /* of a rule that gives what parse takes, no more */
	bool quick;
	struct {
		struct sim_choice choice;
		struct sim_actions *held; /* by us; NULL: none */
	} shared[SIM_SHARED_ACTIONS];
};

/* A pattern template in a table: the rules that are made of it. */
struct sim_template_use {
	struct sim_rule_use use; /* of its rules: counts table->left */
	struct rte_flow_template_table *table;
	struct rte_flow_pattern_template *template;
	struct sim_class *sort; /* pinned */
};

static inline struct sim_template_use *sim_template_use_of(const struct rte_flow *rule)
{
	return container_of(rule->use, struct sim_template_use, use);
}

struct rte_flow_template_table {
	TAILQ_ENTRY(rte_flow_template_table) link;
	uint32_t magic; /* SIM_TABLE_MAGIC */
	struct sim_port *port;
	enum sim_domain domain;
	uint32_t group, priority;
	uint32_t n_flows; /* at most */
	uint8_t n_patterns, n_actions;
	struct sim_template_use patterns[SIM_TEMPLATE_MAX_TABLE];
	struct sim_actions_use *actions; /* n_actions */
	/* rules that were asked for, by the threads of flow queues; and those that went, by the firmware */
	uint64_t taken __rte_cache_aligned;
	uint64_t left_seen; /* `left`, some time ago */
	uint64_t left __rte_cache_aligned;
};

TAILQ_HEAD(sim_pattern_templates, rte_flow_pattern_template);
TAILQ_HEAD(sim_actions_templates, rte_flow_actions_template);
TAILQ_HEAD(sim_tables, rte_flow_template_table);

/* The calls of rte_flow.h. */
struct rte_flow_pattern_template *sim_pattern_template_create(struct rte_eth_dev *dev,
	const struct rte_flow_pattern_template_attr *attr, const struct rte_flow_item items[],
	struct rte_flow_error *error);
int sim_pattern_template_destroy(struct rte_eth_dev *dev,
	struct rte_flow_pattern_template *template, struct rte_flow_error *error);
struct rte_flow_actions_template *sim_actions_template_create(struct rte_eth_dev *dev,
	const struct rte_flow_actions_template_attr *attr, const struct rte_flow_action actions[],
	const struct rte_flow_action masks[], struct rte_flow_error *error);
int sim_actions_template_destroy(struct rte_eth_dev *dev,
	struct rte_flow_actions_template *template, struct rte_flow_error *error);
struct rte_flow_template_table *sim_template_table_create(struct rte_eth_dev *dev,
	const struct rte_flow_template_table_attr *attr,
	struct rte_flow_pattern_template *patterns[], uint8_t n_patterns,
	struct rte_flow_actions_template *actions[], uint8_t n_actions,
	struct rte_flow_error *error);
int sim_template_table_destroy(struct rte_eth_dev *dev, struct rte_flow_template_table *table,
	struct rte_flow_error *error);

/* All that are there still; their rules have gone. Under the port's lock. */
void sim_templates_free(struct sim_async *async);

/* A place in the table for one rule more; false: it has its nb_flows. By the thread of a flow queue. */
bool sim_template_take(struct rte_flow_template_table *table);
void sim_template_untake(struct rte_flow_template_table *table);

/* template_actions.c: compiles what an application gives. Returns 0 or a negative errno. */
int sim_actions_compile(struct rte_flow_actions_template *template,
	const struct rte_flow_action actions[], const struct rte_flow_action masks[],
	struct sim_fault_at *fault);

/*
 * A rule's list: the template's where that has it all, else the rule's. `ages` is room for what is put
 * together. Returns 0 or -EINVAL: another action than in the template.
 */
int sim_actions_merge(const struct rte_flow_actions_template *template,
	const struct rte_flow_action given[], struct rte_flow_action list[SIM_MAX_ACTIONS],
	struct rte_flow_action_age ages[SIM_MAX_ACTIONS], struct sim_fault_at *fault);

/*
 * What a rule gives, without a parse, in templates that are quick: false when it takes one. The mark's
 * id, the context of ageing and handles of COUNT and AGE are put into the rule.
 */
bool sim_actions_choose(const struct sim_actions_use *use, const struct rte_flow_action given[],
	struct sim_choice *choice, struct rte_flow *rule);

/* The actions of a choice, with one user more; NULL and errno. Under the port's lock. */
struct sim_actions *sim_actions_of_choice(
	struct sim_port *port, struct sim_actions_use *use, const struct sim_choice *choice);

/* What the use holds is released. Under the port's lock. */
void sim_actions_use_fini(struct sim_port *port, struct sim_actions_use *use);
