/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Follows a list of rules that took the place of another: how far workers have come with their flows, and NICs with
 * their rules. And goes back where rules or a whole configuration were not confirmed in time.
 */

#include "control/policy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/control.h"
#include "control/event.h"
#include "control/staged.h"
#include "export/json.h"

/* How often it is looked how far a list has come once that has taken too long. */
#define LATE_LOOK_US UINT64_C(250000)
/* Keys of an event, and of names in them. */
#define KEYS_MAX 1024

void policy_begin_control(struct control *control)
{
	control->policy = (struct control_policy){
		.look_us = UINT64_MAX, .confirm_us = UINT64_MAX, .applied = 1};
}

/* The outcome of a list. */

static uint64_t us_since(const struct control *control, uint64_t since_us)
{
	/* nothing takes no time: 0 is for what is not over */
	return RTE_MAX(control->now_us - since_us, UINT64_C(1));
}

/* Rules of single flows that NICs have still, which do otherwise than the list says. False: a worker does not answer. */
static bool flows_in_nics(const struct control *control, uint64_t *flows)
{
	const struct plane_config *config = plane_config(control->plane);
	struct agent_counters counters;

	*flows = 0;
	for (unsigned i = 0; config->offload.on && i < config->topology.n_ports; i++) {
		if (plane_offload_counters(control->plane, i, &counters) < 0)
			return false;
		*flows += counters.decided;
	}
	return true;
}

static void tell_progress(struct control *control)
{
	struct control_policy *policy = &control->policy;
	const unsigned n = plane_policy_workers(control->plane, policy->generation);
	char keys[KEYS_MAX];

	if (n == policy->workers_told)
		return;
	policy->workers_told = n;
	snprintf(keys, sizeof(keys), ",\"epoch\":%" PRIu32 ",\"workers\":%u,\"of\":%u",
		rules_epoch(plane_rules(control->plane)), n,
		plane_config(control->plane)->n_workers);
	event_policy(control, "policy_progress", keys);
}

static void tell_not_in_nic(struct control *control, uint64_t flows)
{
	struct control_policy *policy = &control->policy;
	const uint32_t epoch = rules_epoch(plane_rules(control->plane));
	char keys[KEYS_MAX], line[200];

	if (policy->not_in_nic == epoch)
		return;
	policy->not_in_nic = epoch;
	snprintf(keys, sizeof(keys),
		",\"epoch\":%" PRIu32 ",\"rules\":%" PRIu32 ",\"flows\":%" PRIu64
		",\"what\":\"the rules are in force in software, but NICs still have some that "
		"are to leave them\"",
		epoch, plane_nic_rules_leaving(control->plane, NULL, 0), flows);
	event_policy(control, "policy_not_in_nic", keys);
	snprintf(line, sizeof(line),
		"the new rules are in force in software, but NICs still have %" PRIu32
		" rules and %" PRIu64 " flows that are to leave them",
		plane_nic_rules_leaving(control->plane, NULL, 0), flows);
	if (control->note)
		control->note(control->note_context, line);
}

static void end_wait(struct control *control)
{
	struct control_policy *policy = &control->policy;
	char keys[KEYS_MAX];

	policy->took_us = us_since(control, policy->since_us);
	policy->generation = 0;
	policy->look_us = UINT64_MAX;
	policy->applied = rules_epoch(plane_rules(control->plane));
	snprintf(keys, sizeof(keys),
		",\"epoch\":%" PRIu32 ",\"flows_us\":%" PRIu64 ",\"took_us\":%" PRIu64,
		policy->applied, policy->flows_us, policy->took_us);
	event_policy(control, "policy_applied", keys);
}

/* Have all come to the list: first workers with their flows, then NICs? */
static void look_at_policy(struct control *control)
{
	struct control_policy *policy = &control->policy;
	uint64_t flows = 0;

	policy->look_us = control->now_us + POLICY_LOOK_US;
	tell_progress(control);
	if (plane_policy_decided(control->plane) < policy->generation)
		return;
	if (policy->flows_us == 0)
		policy->flows_us = us_since(control, policy->since_us);
	const bool told = flows_in_nics(control, &flows);

	if (told && flows == 0 && !plane_nic_rules_leave(control->plane)) {
		end_wait(control);
		return;
	}
	if (control->now_us - policy->since_us < ANSWER_PATIENCE_US)
		return;
	policy->look_us = control->now_us + LATE_LOOK_US;
	if (told)
		tell_not_in_nic(control, flows);
}

/* From here on it is looked at. */
static void begin_wait(struct control *control, uint64_t generation)
{
	struct control_policy *policy = &control->policy;

	policy->generation = generation;
	policy->since_us = control->now_us;
	policy->flows_us = policy->took_us = 0;
	policy->workers_told = 0;
	policy->look_us = control->now_us + 1;
	plane_nic_rules_tend(control->plane);
}

static size_t put_change(char *keys, size_t size, const struct rules_change *change)
{
	return (size_t)snprintf(keys, size,
		",\"added\":%" PRIu32 ",\"removed\":%" PRIu32 ",\"moved\":%" PRIu32
		",\"unchanged\":%" PRIu32,
		change->n[RULES_ADDED], change->n[RULES_REMOVED], change->n[RULES_MOVED],
		change->n[RULES_UNCHANGED]);
}

/* A list is in force. */
static void take_list(struct control *control, const char *name, const struct rules_change *change)
{
	struct control_policy *policy = &control->policy;
	char *quoted = export_json_string(name);
	char keys[KEYS_MAX];
	size_t length;

	snprintf(policy->file, sizeof(policy->file), "%s", name);
	policy->loaded_us = plane_now_us(control->plane);
	begin_wait(control, change->generation);
	length = (size_t)snprintf(keys, sizeof(keys), ",\"epoch\":%" PRIu32,
		rules_epoch(plane_rules(control->plane)));
	length += put_change(keys + length, sizeof(keys) - length, change);
	if (quoted != NULL && length + strlen(quoted) + 16 < sizeof(keys))
		snprintf(keys + length, sizeof(keys) - length, ",\"file\":%s", quoted);
	free(quoted);
	event_policy(control, "policy_loaded", keys);
}

int policy_go_back(
	struct control *control, const char *why, struct rules_change *change, struct error *error)
{
	int ret = rules_go_back(plane_rules(control->plane), change, error);
	char keys[KEYS_MAX];
	size_t length;

	if (ret < 0)
		return ret;
	if (!control->policy.of_config)
		control->policy.confirm_us = UINT64_MAX;
	staged_drop(&control->policy.save);
	control->policy.loaded_us = plane_now_us(control->plane);
	control->policy.file[0] = '\0';
	begin_wait(control, change->generation);
	length = (size_t)snprintf(keys, sizeof(keys), ",\"epoch\":%" PRIu32 ",\"why\":\"%s\"",
		rules_epoch(plane_rules(control->plane)), why);
	put_change(keys + length, sizeof(keys) - length, change);
	event_policy(control, "policy_rollback", keys);
	return 0;
}

/* Nobody has confirmed it in time. */
static void go_back_alone(struct control *control)
{
	struct control_policy *policy = &control->policy;
	const bool of_config = policy->of_config;
	struct error error;

	if (policy->back(control, &error) < 0) {
		policy->confirm_us = control->now_us + POLICY_LOOK_US;
		return;
	}
	policy_confirm(control, of_config);
	if (control->note)
		control->note(control->note_context,
			of_config ? "the new configuration was not confirmed: the one before is in "
				    "force again"
				  : "the new rules were not confirmed: those before are in force "
				    "again");
}

void policy_tend(struct control *control)
{
	struct control_policy *policy = &control->policy;

	if (control->now_us >= policy->confirm_us)
		go_back_alone(control);
	if (policy->generation != 0 && control->now_us >= policy->look_us)
		look_at_policy(control);
}

int policy_check_unconfirmed(const struct control *control, struct error *error)
{
	if (control->policy.confirm_us == UINT64_MAX)
		return 0;
	return error_set(error, -EBUSY,
		control->policy.of_config
			? "the configuration that was applied last waits for config confirm; it, "
			  "or config rollback, comes first"
			: "the rules that were loaded last wait for rule confirm; it, or rule "
			  "rollback, comes first");
}

void policy_await(struct control *control, uint32_t seconds, bool of_config, policy_back_fn back)
{
	control->policy.back = back;
	control->policy.of_config = of_config;
	control->policy.confirm_us = control->now_us + seconds * (uint64_t)CLOCK_US_PER_S;
}

uint32_t policy_waits_s(const struct control *control, bool of_config)
{
	const struct control_policy *policy = &control->policy;

	if (policy->confirm_us == UINT64_MAX || policy->of_config != of_config)
		return 0;
	/* what is due is about to be done */
	return (uint32_t)((policy->confirm_us - RTE_MIN(control->now_us, policy->confirm_us) +
				  CLOCK_US_PER_S - 1) /
			  CLOCK_US_PER_S) +
	       (control->now_us >= policy->confirm_us);
}

bool policy_confirm(struct control *control, bool of_config)
{
	struct control_policy *policy = &control->policy;

	if (policy->confirm_us == UINT64_MAX || policy->of_config != of_config)
		return false;
	policy->confirm_us = UINT64_MAX;
	policy->of_config = false;
	return true;
}

int policy_put(struct control *control, const char *name, struct rules_list *list,
	struct rules_change *change, struct error *error)
{
	struct rules *rules = plane_rules(control->plane);

	rules_tell_time(rules, plane_now_us(control->plane));
	int ret = rules_replace(rules, list, change, error);

	if (ret < 0)
		rules_list_destroy(rules, list);
	else
		take_list(control, name, change);
	return ret;
}

int policy_turn_of(struct answer *answer, uint32_t epoch, struct error *error)
{
	const struct control_policy *policy = &answer->control->policy;

	if (policy->applied >= epoch)
		return ANSWER_GO;
	if (policy->not_in_nic >= epoch)
		return error_set(error, -EBUSY,
			"%s: the rules are in force in software as epoch %" PRIu32
			", but NICs still have some that are to leave them (policy_not_in_nic); "
			"rule list says why",
			answer->verb->ask, epoch);
	if (answer->control->now_us - policy->since_us > 2 * ANSWER_PATIENCE_US)
		return error_set(error, -EBUSY,
			"%s: the rules are in force as epoch %" PRIu32
			", but not all live flows are decided by them yet; rule status says when",
			answer->verb->ask, epoch);
	answer->wake_us = answer->control->now_us + POLICY_LOOK_US;
	return ANSWER_WAIT;
}

int control_put_rules(struct control *control, const char *name, struct rules_list *list,
	struct rules_change *change, struct error *error)
{
	return policy_put(control, name, list, change, error);
}

int control_rules_back(
	struct control *control, const char *why, struct rules_change *change, struct error *error)
{
	return policy_go_back(control, why, change, error);
}
