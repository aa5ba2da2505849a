/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands of the language, done to the list of rules. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rule/default_mask.h"
#include "rule/rules_private.h"

#define LINE_MAX_TOLD 768

struct doing {
	struct rules *rules;
	const struct rule_command *command;
	const char *line;
	size_t length;
	rules_tell_fn tell;
	void *context;
	struct rule_refusal refusal;
	struct error *error;
};

__attribute__((format(printf, 2, 3))) static void tell_line(
	const struct doing *doing, const char *format, ...)
{
	char line[LINE_MAX_TOLD];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	doing->tell(doing->context, line);
}

/* "warning: what". */
static void tell_warning(void *context, const char *what)
{
	tell_line(context, "warning: %s", what);
}

static void tell_of_rule(struct doing *doing, const struct rules_made *made, uint32_t slot)
{
	if (made->remark != NULL)
		tell_line(doing, "note: %s", made->remark);
	rule_default_mask_warn(doing->command, tell_warning, doing);
	if (made->passes)
		tell_line(doing, "note: passthru leaves the packets to later rules");
	else
		rules_warn(doing->rules, &made->rule, slot, tell_warning, doing);
}

static int do_create(struct doing *doing)
{
	struct rules_made *made;
	struct rules_view view;
	uint32_t slot;
	int ret = rules_make(doing->rules, doing->command, doing->line, doing->length, &made,
		&doing->refusal, doing->error);

	if (ret < 0)
		return ret;
	doing->refusal = (struct rule_refusal){.part = RULE_PART_COMMAND};
	ret = rules_add(doing->rules, made, &slot, doing->error);
	if (ret == 0) {
		rules_touch(doing->rules);
		rules_get_slot(doing->rules, slot, &view);
		tell_line(doing, "Flow rule #%" PRIu32 " created", view.number);
		tell_of_rule(doing, made, slot);
	}
	rules_release(doing->rules, made);
	return ret;
}

static int do_validate(struct doing *doing)
{
	struct rules_made *made;
	int ret = rules_make(doing->rules, doing->command, doing->line, doing->length, &made,
		&doing->refusal, doing->error);

	if (ret < 0)
		return ret;
	doing->refusal = (struct rule_refusal){.part = RULE_PART_COMMAND};
	ret = rules_room(doing->rules, 1, doing->error);
	if (ret == 0) {
		tell_line(doing, "Flow rule validated");
		tell_of_rule(doing, made, RULES_NONE);
	}
	rules_release(doing->rules, made);
	return ret;
}

int rules_foresee(struct rules *rules, const char *line, size_t length, uint32_t *visits,
	struct rules_view *view, const char **action)
{
	struct rule_refusal refusal;
	struct rule_command *command;
	struct rules_made *made;
	struct error error;
	unsigned column;
	int ret = rule_command_parse(&command, rules->setup, line, length, &column, &error);

	if (ret < 0)
		return ret;
	ret = command->verb != RULE_VALIDATE && command->verb != RULE_CREATE
		      ? -ENOENT
		      : rules_make(rules, command, line, length, &made, &refusal, &error);
	if (ret == 0) {
		*view = (struct rules_view){
			.slot = RULES_NONE,
			.port = made->port,
			.group = made->rule.group,
			.priority = made->rule.priority,
			.in_port = made->rule.mask.in_port != 0 ? made->rule.value.in_port
								: RULES_NO_PORT,
			.place = RULES_NONE,
		};
		view->nic = rules_nic_foresee_made(rules, made, visits, &view->behind);
		*action = view->nic == RULE_NIC_ACTIONS ? rule_nic_action(command) : NULL;
		rules_release(rules, made);
	}
	rule_command_destroy(command);
	return ret;
}

static int refuse_number(struct doing *doing, uint64_t number)
{
	return error_set(doing->error, -ENOENT, "there is no rule #%" PRIu64 " of port %u", number,
		doing->command->port);
}

/* All of them or none. */
static int do_destroy(struct doing *doing)
{
	const struct rule_argument *argument;
	struct rules_view view;

	for (unsigned i = 0;
		(argument = rule_command_argument(doing->command, RULE_ARG_RULE, i)) != NULL; i++)
		if (argument->number > UINT32_MAX || rules_get(doing->rules, doing->command->port,
							     (uint32_t)argument->number, &view) < 0)
			return refuse_number(doing, argument->number);
	for (unsigned i = 0;
		(argument = rule_command_argument(doing->command, RULE_ARG_RULE, i)) != NULL; i++)
		/* one that is named twice is gone */
		if (rules_remove(doing->rules, doing->command->port, (uint32_t)argument->number,
			    NULL) == 0)
			tell_line(doing, "Flow rule #%" PRIu64 " destroyed", argument->number);
	return 0;
}

static int do_flush(struct doing *doing)
{
	const uint32_t n = rules_flush(doing->rules, doing->command->port);

	tell_line(doing, "%" PRIu32 " flow rule%s of port %u destroyed", n, n == 1 ? "" : "s",
		doing->command->port);
	return 0;
}

static bool is_listed(const struct doing *doing, const struct rules_view *view)
{
	const struct rule_argument *group =
		rule_command_argument(doing->command, RULE_ARG_GROUP, 0);

	for (unsigned i = 1; group != NULL; i++) {
		if (group->number == view->group)
			return true;
		group = rule_command_argument(doing->command, RULE_ARG_GROUP, i);
		if (group == NULL)
			return false;
	}
	return true;
}

static int do_list(struct doing *doing)
{
	char line[RULES_TEXT_MAX + 64];
	struct rules_view view;
	uint32_t from = 0;

	while (from != RULES_NONE)
		if (rules_list(doing->rules, doing->command->port, &from, &view, 1) == 1 &&
			is_listed(doing, &view)) {
			snprintf(line, sizeof(line), "#%" PRIu32 ": %s", view.number, view.text);
			doing->tell(doing->context, line);
		}
	return 0;
}

/* Of a rule in a NIC that does not count it is not known. */
static bool is_aged(const struct rules_view *view)
{
	return view->age_s != 0 && !view->nic_uncounted &&
	       view->idle_us >= view->age_s * (uint64_t)US_PER_S;
}

static int tell_age(struct doing *doing, const struct rules_view *view)
{
	if (view->age_s == 0)
		return error_set(doing->error, -EINVAL,
			"query: rule #%" PRIu32 " has no age action", view->number);
	if (view->nic_uncounted)
		return error_set(doing->error, -ENOTSUP,
			"query: rule #%" PRIu32 " is in a NIC that does not count", view->number);
	tell_line(doing, "age: aged %d, seconds since the last packet %" PRIu64, is_aged(view),
		view->idle_us / US_PER_S);
	return 0;
}

/* The next rule of the command's port that has aged. False: there is none. */
static bool next_aged(const struct doing *doing, uint32_t *from, struct rules_view *view)
{
	while (*from != RULES_NONE)
		if (rules_list(doing->rules, doing->command->port, from, view, 1) == 1 &&
			is_aged(view))
			return true;
	return false;
}

static int do_aged(struct doing *doing)
{
	const bool destroys = rule_command_argument(doing->command, RULE_ARG_DESTROY, 0) != NULL;
	char line[RULES_TEXT_MAX + 64];
	struct rules_view view;
	uint32_t n = 0;

	for (uint32_t from = 0; next_aged(doing, &from, &view);)
		n++;
	tell_line(doing, "Port %u total aged flows: %" PRIu32, doing->command->port, n);
	for (uint32_t from = 0; next_aged(doing, &from, &view);) {
		snprintf(line, sizeof(line), "#%" PRIu32 ", idle for %" PRIu64 " s: %s",
			view.number, view.idle_us / US_PER_S, view.text);
		doing->tell(doing->context, line);
		if (!destroys)
			continue;
		rules_drop(doing->rules, view.slot);
		tell_line(doing, "Flow rule #%" PRIu32 " destroyed", view.number);
	}
	if (destroys && n > 0)
		rules_touch(doing->rules);
	return 0;
}

static int do_query(struct doing *doing)
{
	const struct rule_argument *number =
		rule_command_argument(doing->command, RULE_ARG_RULE, 0);
	const struct rule_argument *action =
		rule_command_argument(doing->command, RULE_ARG_ACTION, 0);
	struct rules_view view;

	if (action == NULL || (action->number != RTE_FLOW_ACTION_TYPE_COUNT &&
				      action->number != RTE_FLOW_ACTION_TYPE_AGE))
		return error_set(doing->error, -ENOTSUP,
			"query: in software only count and age are known of a rule");
	if (number == NULL || number->number > UINT32_MAX ||
		rules_get(doing->rules, doing->command->port, (uint32_t)number->number, &view) < 0)
		return refuse_number(doing, number != NULL ? number->number : 0);
	if (action->number == RTE_FLOW_ACTION_TYPE_AGE)
		return tell_age(doing, &view);
	if (view.hands_on)
		return error_set(doing->error, -ENOTSUP,
			"query: rule #%" PRIu32 " leaves its packets to others, which count them",
			view.number);
	if (view.nic_uncounted)
		return error_set(doing->error, -ENOTSUP,
			"query: rule #%" PRIu32 " is in a NIC that does not count", view.number);
	tell_line(doing, "count: hits %" PRIu64 ", bytes %" PRIu64,
		view.count.packets + view.nic_packets + view.now_packets,
		view.count.bytes + view.nic_bytes + view.now_bytes);
	return 0;
}

/* What rules share, they may use for as long as flows have them. */
static int wait_if_used(const struct doing *doing, int ret)
{
	return ret == -EBUSY && rules_unsettled(doing->rules) ? -EAGAIN : ret;
}

static int do_shared(struct doing *doing)
{
	char told[LINE_MAX_TOLD];
	const struct rules_line line = {
		.command = doing->command,
		.text = doing->line,
		.length = doing->length,
		.told = told,
		.size = sizeof(told),
	};
	int ret = rules_share(doing->rules, &line, &doing->refusal, doing->error);

	if (ret == 0)
		doing->tell(doing->context, told);
	return wait_if_used(doing, ret);
}

static int do_command(struct doing *doing)
{
	const struct rule_command *command = doing->command;

	if (command->verb != RULE_SET && command->port != RULE_NO_PORT) {
		int ret = rule_port_check(&doing->rules->ground, command->port, doing->error);

		if (ret < 0) {
			doing->refusal.part = RULE_PART_PORT;
			return ret;
		}
	}
	if (rules_shares(command))
		return do_shared(doing);
	switch ((int)command->verb) {
	case RULE_CREATE:
		return do_create(doing);
	case RULE_VALIDATE:
		return do_validate(doing);
	case RULE_DESTROY:
		return do_destroy(doing);
	case RULE_FLUSH:
		return do_flush(doing);
	case RULE_LIST:
		return do_list(doing);
	case RULE_QUERY:
		return do_query(doing);
	case RULE_AGED:
		return do_aged(doing);
	case RULE_SET:
		return rule_setup_learn(doing->rules->setup, command) < 0
			       ? error_set(doing->error, -ENOMEM, "no memory for the rule")
			       : 0;
	default:
		return error_set(doing->error, -ENOTSUP,
			"%s: the engine does not do this to its rules; it knows create, validate, "
			"destroy, flush, list, query and aged",
			command->form->steps[command->form->n_steps > 1 ? 1 : 0].name != NULL
				? command->form->steps[command->form->n_steps > 1 ? 1 : 0].name
				: "the command");
	}
}

int rules_do(struct rules *rules, const struct rule_command *command, const char *line,
	size_t length, unsigned *column, rules_tell_fn tell, void *context, struct error *error)
{
	struct doing doing = {
		.rules = rules,
		.command = command,
		.line = line,
		.length = length,
		.tell = tell,
		.context = context,
		.error = error,
	};
	int ret = do_command(&doing);

	*column = ret < 0 ? rule_refusal_column(line, length, &doing.refusal) : 1;
	return ret;
}

int rules_command(struct rules *rules, const char *line, size_t length, unsigned *column,
	rules_tell_fn tell, void *context, struct error *error)
{
	struct rule_command *command;
	int ret = rule_command_parse(&command, rules->setup, line, length, column, error);

	if (ret < 0)
		return ret;
	ret = rules_do(rules, command, line, length, column, tell, context, error);
	rule_command_destroy(command);
	return ret;
}
