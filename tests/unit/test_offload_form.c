/* SPDX-License-Identifier: BSD-3-Clause */
/* rte_flow_conv() is experimental still. */
#define ALLOW_EXPERIMENTAL_API

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "probe/form.h"
#include "rteflow/trial.h"

static const struct form_aim *aim_of(const struct form *form)
{
	static struct form_aim aim;
	enum provider_kind kind = form->pattern.kind;

	memset(&aim, 0, sizeof(aim));
	trial_rule(&aim.rule, kind == PROVIDER_N_KINDS ? PROVIDER_IPV4_UDP : kind,
		form->pattern.shape.vlan, 0x1234);
	aim.queue = 3;
	aim.target = 7;
	aim.port = (struct shape_port){.n_queues = 2, .queues = {2, 3}};
	return &aim;
}

/* As testpmd would have it: "eth / ipv4 / udp, mark / queue". */
static void describe(char *text, size_t size, const struct form_rule *rule)
{
	size_t length = 0;

	text[0] = '\0';
	for (const struct rte_flow_item *item = rule->items; item->type != RTE_FLOW_ITEM_TYPE_END;
		item++) {
		const char *name = NULL;

		assert_true(rte_flow_conv(RTE_FLOW_CONV_OP_ITEM_NAME_PTR, &name, sizeof(name),
				    (void *)(uintptr_t)item->type, NULL) > 0);
		length += (size_t)snprintf(
			text + length, size - length, "%s%s", length > 0 ? " / " : "", name);
	}
	length += (size_t)snprintf(text + length, size - length, ",");
	for (const struct rte_flow_action *action = rule->actions;
		action->type != RTE_FLOW_ACTION_TYPE_END; action++) {
		const char *name = NULL;

		assert_true(rte_flow_conv(RTE_FLOW_CONV_OP_ACTION_NAME_PTR, &name, sizeof(name),
				    (void *)(uintptr_t)action->type, NULL) > 0);
		length += (size_t)snprintf(text + length, size - length, " %s", name);
	}
}

static void make(struct form *form, const char *pattern, const char *actions)
{
	for (unsigned i = 0; form_pattern(i, &form->pattern); i++)
		if (strcmp(form->pattern.name, pattern) == 0)
			break;
	assert_string_equal(form->pattern.name, pattern);
	for (unsigned i = 0; (form->actions = form_actions(i)) != NULL; i++)
		if (strcmp(form->actions->name, actions) == 0)
			return;
	fail_msg("no such actions: %s", actions);
}

static void rules_are_what_their_names_say(void **state)
{
	static const struct {
		const char *pattern, *actions, *rule;
	} rows[] = {
		{"eth / ipv4 / udp", "mark", "ETH / IPV4 / UDP, MARK"},
		{"ipv6 / icmp6", "mark + queue + count", "IPV6 / ICMP6, QUEUE MARK COUNT"},
		{"eth / vlan / ipv4 / udp", "mark + rss", "ETH / VLAN / IPV4 / UDP, MARK RSS"},
		{"ipv4 / tcp flags", "drop + count", "IPV4 / TCP, DROP COUNT"},
		{"eth / ipv4", "queue", "ETH / IPV4, QUEUE"},
		{"eth / ipv6", "queue", "ETH / IPV6, QUEUE"},
		{"eth / ipv4 src /24", "drop", "ETH / IPV4, DROP"},
		{"eth / ipv4 / udp dst", "mark", "ETH / IPV4 / UDP, MARK"},
		{"eth dst", "port_id", "ETH, PORT_ID"},
		{"eth / vlan", "represented_port + count", "ETH / VLAN, REPRESENTED_PORT COUNT"},
		{"eth / ipv4 / udp / vxlan", "mark + passthru",
			"ETH / IPV4 / UDP / VXLAN, PASSTHRU MARK"},
	};
	static struct form_rule rule;
	struct form form;
	char text[256], upper[256];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		make(&form, rows[i].pattern, rows[i].actions);
		form_build(&rule, &form, aim_of(&form));
		describe(text, sizeof(text), &rule);
		snprintf(upper, sizeof(upper), "%s", text);
		for (char *at = upper; *at != '\0'; at++)
			*at = (char)(*at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at);
		assert_string_equal(upper, rows[i].rule);
	}
}

static void each_name_is_one_form(void **state)
{
	struct form_pattern one, other;

	(void)state;
	for (unsigned i = 0; i < form_n() / form_n_actions(); i++) {
		assert_true(form_pattern(i, &one));
		for (unsigned j = 0; j < i; j++) {
			assert_true(form_pattern(j, &other));
			assert_string_not_equal(one.name, other.name);
		}
	}
	assert_false(form_pattern(form_n() / form_n_actions(), &one));
	assert_null(form_actions(form_n_actions()));
	for (unsigned i = 0; i < form_n_actions(); i++)
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(form_actions(i)->name, form_actions(j)->name);
}

/* Templates have the same actions, with masks where every rule has the same. */
static void masks_go_with_actions(void **state)
{
	static struct form_rule rule;
	struct form form;

	(void)state;
	for (unsigned i = 0; form_pattern(i, &form.pattern); i++) {
		for (unsigned j = 0; (form.actions = form_actions(j)) != NULL; j++) {
			unsigned n = 0;
			bool ports = form.actions->fate == FORM_REPRESENTED_PORT ||
				     form.actions->fate == FORM_PORT_ID;

			form_build(&rule, &form, aim_of(&form));
			assert_int_equal(rule.attr.transfer, ports);
			assert_int_equal(rule.attr.ingress, !ports);
			do
				assert_int_equal(rule.actions[n].type, rule.masks[n].type);
			while (rule.actions[n++].type != RTE_FLOW_ACTION_TYPE_END);
		}
	}
}

static void values_are_those_of_the_aim(void **state)
{
	static struct form_rule rule;
	struct form form;

	(void)state;
	make(&form, "eth / ipv4 / udp", "mark + queue");
	form_build(&rule, &form, aim_of(&form));
	assert_int_equal(((const struct rte_flow_action_queue *)rule.actions[0].conf)->index, 3);
	assert_int_equal(((const struct rte_flow_action_mark *)rule.actions[1].conf)->id, 0x1234);
	make(&form, "eth / ipv4 / udp", "mark + rss");
	form_build(&rule, &form, aim_of(&form));
	const struct rte_flow_action_rss *rss = rule.actions[1].conf;

	assert_int_equal(rss->queue_num, 2);
	assert_int_equal(rss->queue[0], 2);
	make(&form, "eth / ipv4 / udp", "represented_port");
	form_build(&rule, &form, aim_of(&form));
	assert_int_equal(((const struct rte_flow_action_ethdev *)rule.actions[0].conf)->port_id, 7);
	make(&form, "eth / ipv4 src /24", "drop");
	form_build(&rule, &form, aim_of(&form));
	const struct rte_flow_item_ipv4 *mask = rule.items[1].mask;

	assert_int_equal(mask->hdr.src_addr, RTE_BE32(0xffffff00));
	assert_int_equal(mask->hdr.dst_addr, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_are_what_their_names_say),
		cmocka_unit_test(each_name_is_one_form),
		cmocka_unit_test(masks_go_with_actions),
		cmocka_unit_test(values_are_those_of_the_aim),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
