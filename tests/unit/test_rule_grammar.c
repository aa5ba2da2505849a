/* SPDX-License-Identifier: BSD-3-Clause */

/* Rules: what they come to, and that they are printed as lines that come to the same. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_l2tpv2.h>

#include "rule/command.h"
#include "rule/setup.h"
#include "unit/rule_same.h"

static struct rule_command *parse_with(const struct rule_setup *setup, const char *line)
{
	struct rule_command *command = NULL;
	struct error error = {""};
	unsigned column = 0;

	if (rule_command_parse(&command, setup, line, strlen(line), &column, &error) < 0)
		fail_msg("%s:\ncolumn %u: %s", line, column, error.text);
	return command;
}

static struct rule_command *parse(const char *line)
{
	return parse_with(NULL, line);
}

/* Printed, it is `expected`, which comes to the same and is printed the same. */
static void check_round(const struct rule_setup *setup, const char *line, const char *expected)
{
	struct rule_command *command = parse_with(setup, line), *again;
	char text[4096], other[4096];
	size_t length = rule_command_print(command, text, sizeof(text));

	assert_int_equal(length, strlen(text));
	if (expected)
		assert_string_equal(text, expected);
	again = parse_with(setup, text);
	if (!rule_same(command, again))
		fail_msg("%s\n%s\nare not the same", line, text);
	rule_command_print(again, other, sizeof(other));
	assert_string_equal(other, text);
	rule_command_destroy(command);
	rule_command_destroy(again);
}

static void test_create(void **state)
{
	struct rule_command *command = parse(
		"flow create 7 group 2 priority 3 ingress pattern eth / ipv4 src is "
		"192.0.2.1 / udp dst spec 53 / end actions mark id 0x10 / queue index 3 / end");
	const struct rte_flow_item *items = command->pattern;
	const struct rte_flow_action *actions = command->actions[0];
	const struct rte_flow_item_ipv4 *ipv4 = items[1].spec, *mask = items[1].mask;
	const struct rte_flow_item_udp *udp = items[2].spec;
	const struct rte_flow_action_mark *mark = actions[0].conf;
	const struct rte_flow_action_queue *queue = actions[1].conf;

	(void)state;
	assert_int_equal(command->verb, RULE_CREATE);
	assert_int_equal(command->port, 7);
	assert_int_equal(command->attr.group, 2);
	assert_int_equal(command->attr.priority, 3);
	assert_true(command->attr.ingress && !command->attr.egress && !command->attr.transfer);
	assert_int_equal(items[0].type, RTE_FLOW_ITEM_TYPE_ETH);
	assert_null(items[0].spec);
	assert_null(items[0].mask);
	assert_int_equal(items[1].type, RTE_FLOW_ITEM_TYPE_IPV4);
	assert_int_equal(rte_be_to_cpu_32(ipv4->hdr.src_addr), 0xc0000201);
	assert_int_equal(mask->hdr.src_addr, UINT32_MAX);
	assert_int_equal(mask->hdr.dst_addr, 0);
	assert_null(items[1].last);
	assert_int_equal(items[2].type, RTE_FLOW_ITEM_TYPE_UDP);
	assert_int_equal(rte_be_to_cpu_16(udp->hdr.dst_port), 53);
	assert_null(items[2].mask);
	assert_int_equal(items[3].type, RTE_FLOW_ITEM_TYPE_END);
	assert_int_equal(actions[0].type, RTE_FLOW_ACTION_TYPE_MARK);
	assert_int_equal(mark->id, 16);
	assert_int_equal(actions[1].type, RTE_FLOW_ACTION_TYPE_QUEUE);
	assert_int_equal(queue->index, 3);
	assert_int_equal(actions[2].type, RTE_FLOW_ACTION_TYPE_END);
	rule_command_destroy(command);
}

/* The bytes of an item's spec, last and mask. */
static void check_item(
	const char *text, const void *spec, const void *last, const void *mask, size_t size)
{
	char line[512];

	snprintf(line, sizeof(line), "flow create 0 pattern %s / end actions end", text);
	struct rule_command *command = parse(line);
	const struct rte_flow_item *item = command->pattern;

	assert_true(!spec == !item->spec && !last == !item->last && !mask == !item->mask);
	if (spec)
		assert_memory_equal(item->spec, spec, size);
	if (last)
		assert_memory_equal(item->last, last, size);
	if (mask)
		assert_memory_equal(item->mask, mask, size);
	rule_command_destroy(command);
	check_round(NULL, line, NULL);
}

#define CHECK_ITEM(text, s, ...) check_item(text, __VA_ARGS__, sizeof(s))

static void test_parameters(void **state)
{
	struct rte_flow_item_ipv4 spec = {.hdr.src_addr = RTE_BE32(0x0a010101)};
	struct rte_flow_item_ipv4 last = {.hdr.src_addr = RTE_BE32(0x0a020304)};
	struct rte_flow_item_ipv4 zero = {.hdr.src_addr = 0};
	struct rte_flow_item_ipv4 all = {.hdr.src_addr = UINT32_MAX};
	struct rte_flow_item_ipv4 part = {.hdr.src_addr = RTE_BE32(0xffff0000)};

	(void)state;
	/* the ways of the guide to say one thing */
	CHECK_ITEM("ipv4 src is 10.1.1.1", spec, &spec, NULL, &all);
	CHECK_ITEM("ipv4 src spec 10.1.1.1 src mask 255.255.255.255", spec, &spec, NULL, &all);
	CHECK_ITEM("ipv4 src spec 10.1.1.1 src prefix 32", spec, &spec, NULL, &all);
	CHECK_ITEM("ipv4 src is 10.1.1.1 src last 10.1.1.1", spec, &spec, &spec, &all);
	CHECK_ITEM("ipv4 src is 10.1.1.1 src last 0", spec, &spec, &zero, &all);
	CHECK_ITEM("ipv4 src is 10.1.1.1 src last 10.2.3.4", spec, &spec, &last, &all);
	CHECK_ITEM("ipv4 src is 10.1.1.1 src last 10.2.3.4 src mask 255.255.0.0", spec, &spec,
		&last, &part);
	CHECK_ITEM("ipv4 src is 10.9.9.9 src is 10.1.1.1", spec, &spec, NULL, &all);
	CHECK_ITEM("ipv4 src is 10.1.1.1 src prefix 24 src prefix 16", spec, &spec, NULL, &part);
	CHECK_ITEM("ipv4 src spec 0x0a010101", spec, &spec, NULL, NULL);
	CHECK_ITEM("ipv4 src prefix 0", spec, NULL, NULL, &zero);
	CHECK_ITEM("ipv4 src spec 0.0.0.0", spec, &zero, NULL, NULL);
}

static void test_fields(void **state)
{
	struct rte_flow_item_vlan vlan = {.hdr.vlan_tci = RTE_BE16(0xb123), .has_more_vlan = 1};
	struct rte_flow_item_vlan vlan_mask = {
		.hdr.vlan_tci = RTE_BE16(0xffff), .has_more_vlan = 1};
	struct rte_flow_item_eth eth = {.has_vlan = 1};
	struct rte_flow_item_ipv6 ipv6 = {.hdr.vtc_flow = RTE_BE32(0x0ab12345), .has_frag_ext = 1};
	struct rte_flow_item_ipv6 ipv6_mask = {
		.hdr.vtc_flow = RTE_BE32(0x0fffffff), .has_frag_ext = 1};
	struct rte_flow_item_raw raw = {.relative = 1, .search = 1, .offset = -4, .limit = 9};
	struct rte_flow_item_raw raw_mask = {
		.relative = 1, .search = 1, .offset = -1, .limit = UINT16_MAX};
	struct rte_flow_item_vxlan vxlan = {.hdr.vx_vni = RTE_BE32(0x01020304)};
	struct rte_flow_item_vxlan vxlan_mask = {.hdr.vx_vni = UINT32_MAX};
	struct rte_flow_item_mpls mpls = {.label_tc_s = {0x12, 0x34, 0x5b}};
	struct rte_flow_item_mpls mpls_mask = {.label_tc_s = {0xff, 0xff, 0xff}};
	struct rte_flow_item_gtp_psc psc = {.hdr = {.type = 9, .qfi = 33}};
	struct rte_flow_item_gtp_psc psc_mask = {.hdr = {.type = 15, .qfi = 63}};
	struct rte_flow_item_geneve geneve = {.ver_opt_len_o_c_rsvd0 = RTE_BE16(0x0500)};
	struct rte_flow_item_geneve geneve_mask = {.ver_opt_len_o_c_rsvd0 = RTE_BE16(0x3f00)};
	struct rte_flow_item_ecpri ecpri = {.hdr.type2.rtc_id = RTE_BE16(7)};
	struct rte_flow_item_ecpri ecpri_mask = {.hdr.type2.rtc_id = UINT16_MAX};
	struct rte_flow_item_l2tpv2 l2tp = {
		.hdr.common.flags_version = RTE_BE16(RTE_L2TPV2_MSG_TYPE_CONTROL)};
	struct rte_flow_item_l2tpv2 l2tp_mask = {.hdr.common.flags_version = UINT16_MAX};

	(void)state;
	ecpri.hdr.common.type = 2;
	ecpri.hdr.common.u32 = rte_cpu_to_be_32(ecpri.hdr.common.u32);
	ecpri_mask.hdr.common.type = 0xff;
	ecpri_mask.hdr.common.u32 = rte_cpu_to_be_32(ecpri_mask.hdr.common.u32);
	l2tp.hdr.type3.session_id = RTE_BE16(0x1111);
	l2tp_mask.hdr.type3.session_id = UINT16_MAX;
	CHECK_ITEM("vlan pcp is 5 dei is 1 vid is 0x123 has_more_vlan is 1", vlan, &vlan, NULL,
		&vlan_mask);
	CHECK_ITEM("vlan tci is 0xb123 has_more_vlan is 1", vlan, &vlan, NULL, &vlan_mask);
	CHECK_ITEM("eth has_vlan is 1", eth, &eth, NULL, &eth);
	CHECK_ITEM(
		"ipv6 tc is 0xab flow is 0x12345 has_frag_ext is 1", ipv6, &ipv6, NULL, &ipv6_mask);
	CHECK_ITEM("raw relative is yes search is on offset is -4 limit is 9", raw, &raw, NULL,
		&raw_mask);
	CHECK_ITEM("vxlan vni is 0x010203 last_rsvd is 4", vxlan, &vxlan, NULL, &vxlan_mask);
	CHECK_ITEM("mpls label is 0x12345 tc is 5 s is 1", mpls, &mpls, NULL, &mpls_mask);
	CHECK_ITEM("gtp_psc qfi is 33 pdu_t is 9", psc, &psc, NULL, &psc_mask);
	CHECK_ITEM("gtp_psc qfi is 33 pdu_type is 9", psc, &psc, NULL, &psc_mask);
	CHECK_ITEM("geneve optlen is 5", geneve, &geneve, NULL, &geneve_mask);
	CHECK_ITEM("ecpri common type rtc_ctrl rtc_id is 7", ecpri, &ecpri, NULL, &ecpri_mask);
	CHECK_ITEM("l2tpv2 type control session_id is 0x1111", l2tp, &l2tp, NULL, &l2tp_mask);
}

static void test_bytes(void **state)
{
	struct rule_command *command =
		parse("flow create 0 pattern raw pattern is abc / raw pattern_hex spec 0a0b "
		      "pattern_hex mask ff00 / geneve-opt class is 1 length is 1 data is 01020304 "
		      "/ end actions rss key 0102 key_len 40 queues 4 3 end types ipv4 udp end / "
		      "end");
	const struct rte_flow_item_raw *raw = command->pattern[0].spec;
	const struct rte_flow_item_raw *mask = command->pattern[0].mask;
	const struct rte_flow_item_geneve_opt *option = command->pattern[2].spec;
	const struct rte_flow_action_rss *rss = command->actions[0][0].conf;

	(void)state;
	assert_int_equal(raw->length, 3);
	assert_memory_equal(raw->pattern, "abc", 3);
	assert_int_equal(mask->length, UINT16_MAX);
	assert_memory_equal(mask->pattern, "\xff\xff\xff", 3);
	raw = command->pattern[1].spec;
	mask = command->pattern[1].mask;
	assert_int_equal(raw->length, 2);
	assert_memory_equal(raw->pattern, "\x0a\x0b", 2);
	assert_int_equal(mask->length, 2);
	assert_memory_equal(mask->pattern, "\xff\x00", 2);
	assert_memory_equal(option->data, "\1\2\3\4\0\0\0\0", 8);
	assert_int_equal(rss->key_len, 40);
	assert_memory_equal(rss->key, "\1\2\0\0\0\0\0\0", 8);
	assert_int_equal(rss->queue_num, 2);
	assert_int_equal(rss->queue[0], 4);
	assert_int_equal(rss->queue[1], 3);
	assert_true(rss->types == (RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_UDP));
	rule_command_destroy(command);
}

static void test_action_structs(void **state)
{
	struct rule_command *command = parse(
		"flow create 0 pattern end actions count / queue / age timeout 9 / age_update "
		"timeout 5 touch 1 / vf original 1 id 3 / set_meta data 4 / indirect 12 / "
		"modify_field op add dst_type tag dst_level 1 src_type value src_value 0x0102 "
		"width 16 / meter_mark mtr_profile 3 mtr_state 1 / conntrack_update dir / end");
	const struct rte_flow_action *actions = command->actions[0];
	const struct rte_flow_action_age *age = actions[2].conf;
	const struct rte_flow_update_age *update = actions[3].conf;
	const struct rte_flow_action_vf *vf = actions[4].conf;
	const struct rte_flow_action_set_meta *meta = actions[5].conf;
	const struct rule_indirect *indirect = actions[6].conf;
	const struct rte_flow_action_modify_field *modify = actions[7].conf;
	const struct rte_flow_action_meter_mark *meter = actions[8].conf;
	const struct rte_flow_modify_conntrack *conntrack = actions[9].conf;

	(void)state;
	/* without a field there is no struct, as testpmd does it */
	assert_null(actions[0].conf);
	assert_null(actions[1].conf);
	assert_int_equal(age->timeout, 9);
	assert_null(age->context);
	assert_true(update->timeout_valid && update->touch);
	assert_int_equal(update->timeout, 5);
	assert_int_equal(update->reserved, 0);
	assert_true(vf->original && vf->id == 3 && vf->reserved == 0);
	assert_true(meta->data == 4 && meta->mask == UINT32_MAX);
	assert_int_equal(indirect->id, 12);
	assert_int_equal(modify->operation, RTE_FLOW_MODIFY_ADD);
	assert_int_equal(modify->dst.field, RTE_FLOW_FIELD_TAG);
	assert_int_equal(modify->dst.level, 1);
	assert_int_equal(modify->src.field, RTE_FLOW_FIELD_VALUE);
	assert_memory_equal(modify->src.value, "\1\2\0\0", 4);
	assert_int_equal(modify->width, 16);
	assert_int_equal((uintptr_t)meter->profile, 3);
	assert_int_equal(meter->state, 1);
	assert_true(conntrack->direction && !conntrack->state);
	rule_command_destroy(command);
}

/* A value that every field of the kind takes, and that is not 0. */
static const char *value_of(const struct rule_field *field)
{
	switch (field->kind) {
	case RULE_NUMBER:
	case RULE_SIGNED:
	case RULE_BOOLEAN:
		return "1";
	case RULE_WORD:
	case RULE_WORDS:
	case RULE_VARIANT:
		return field->words[1].name;
	case RULE_MAC:
		return "02:00:00:00:00:ab";
	case RULE_IPV4:
		return "192.0.2.7";
	case RULE_IPV6:
	case RULE_ADDRESS:
		return "2001:db8::7";
	case RULE_INLINE:
	case RULE_HEX:
		return "0a0b0c";
	case RULE_STRING:
	case RULE_PATH:
	case RULE_NAME:
		return "word";
	case RULE_TYPES:
		return "ipv4 l3-src-only end";
	case RULE_QUEUES:
		return "5 6 end";
	case RULE_FLAG:
	case RULE_EMPTY:
		break;
	}
	return "";
}

/* What has to stand in front of a field, so that the item or action has it. */
static const char *front_of(const struct rule_thing *thing, const struct rule_field *field)
{
	static char front[64];

	front[0] = '\0';
	for (unsigned i = 0; i < thing->n_fields && field->variants; i++)
		if (thing->fields[i].kind == RULE_VARIANT)
			snprintf(front, sizeof(front), "type %s",
				thing->fields[i].words[__builtin_ctz(field->variants)].name);
	if ((field->flags & RULE_SOURCE) && field->kind == RULE_INLINE)
		return "src_type value";
	if ((field->flags & RULE_SOURCE) && field->kind == RULE_HEX)
		return "src_type pointer";
	return front;
}

static void test_every_item(void **state)
{
	static const char *const params[] = {"is", "spec", "last", "mask"};
	char line[512];
	const char *param;

	(void)state;
	for (unsigned i = 0; i < rule_n_items; i++) {
		const struct rule_thing *thing = &rule_items[i];

		if (thing->refused || strcmp(thing->name, "end") == 0)
			continue;
		snprintf(line, sizeof(line), "flow create 0 pattern %s / end actions end",
			thing->name);
		check_round(NULL, line, line);
		for (unsigned f = 0; f < thing->n_fields; f++) {
			const struct rule_field *field = &thing->fields[f];
			bool variant = field->kind == RULE_VARIANT || field->kind == RULE_EMPTY;

			for (unsigned p = 0; p < (variant ? 1 : 4); p++) {
				const uint16_t only = RULE_IS_ONLY | RULE_ABOVE | RULE_BARE;

				if (((field->flags & only) && p > 0) ||
					((field->flags & RULE_NO_RANGE) && p == 2))
					continue;
				param = variant || field->flags & RULE_BARE ? ""
					: field->flags & RULE_ABOVE	    ? "above"
									    : params[p];
				snprintf(line, sizeof(line),
					"flow create 0 pattern %s %s %s %s %s / end actions end",
					thing->name, front_of(thing, field), field->name, param,
					value_of(field));
				check_round(NULL, line, NULL);
			}
		}
	}
}

static void test_every_action(void **state)
{
	char line[512];

	(void)state;
	for (unsigned i = 0; i < rule_n_actions; i++) {
		const struct rule_thing *thing = &rule_actions[i];

		if (thing->refused || strcmp(thing->name, "end") == 0)
			continue;
		for (unsigned f = 0; f <= thing->n_fields; f++) {
			const struct rule_field *field = &thing->fields[f];

			if (f == thing->n_fields) {
				if (f > 0 && thing->fields[0].name[0] == '\0')
					continue;
				snprintf(line, sizeof(line),
					"flow create 0 pattern end actions %s / end", thing->name);
				check_round(NULL, line, line);
				continue;
			}
			snprintf(line, sizeof(line),
				"flow create 0 pattern end actions %s %s %s %s / end", thing->name,
				front_of(thing, field), field->name, value_of(field));
			check_round(NULL, line, NULL);
		}
	}
}

/* Every word of every field that takes words. */
static void test_every_word(void **state)
{
	char line[512];

	(void)state;
	for (unsigned i = 0; i < rule_n_actions; i++) {
		const struct rule_thing *thing = &rule_actions[i];

		for (unsigned f = 0; f < thing->n_fields && !thing->refused; f++) {
			const struct rule_field *field = &thing->fields[f];

			for (const struct rule_word *word = field->words; word && word->name;
				word++) {
				if (word->refused)
					continue;
				snprintf(line, sizeof(line),
					"flow create 0 pattern end actions %s %s %s %s / end",
					thing->name, field->name, word->name,
					field->kind == RULE_TYPES ? "end" : "");
				check_round(NULL, line, NULL);
			}
		}
	}
}

/* What is read, and how it is printed; NULL: the same. */
static const char *const lines[][2] = {
	{"flow create 0 pattern end actions end", NULL},
	{"testpmd> flow create 0 pattern end actions end # the shortest",
		"flow create 0 pattern end actions end"},
	{"  flow\tflush 3\r\n", "flow flush 3"},
	{"flow create 0 group 42 group 24 group 4 egress transfer pattern end actions drop / end",
		"flow create 0 group 4 egress transfer pattern end actions drop / end"},
	{"flow create 0 tunnel_set 1 ingress pattern end actions end",
		"flow create 0 ingress tunnel_set 1 pattern end actions end"},
	{"flow validate 0 pattern eth dst is 0202:0304:0506 / end actions end",
		"flow validate 0 pattern eth dst is 02:02:03:04:05:06 / end actions end"},
	{"flow create 0 pattern udp src is 010 / end action drop / end",
		"flow create 0 pattern udp src is 8 / end actions drop / end"},
	{"flow create 0 pattern udp src mask 0xffffffff / end actions drop / end",
		"flow create 0 pattern udp src mask 0xffff / end actions drop / end"},
	{"flow destroy 0 rule 42 rule 10 rule 2", NULL},
	{"flow list 0", NULL},
	{"flow list 0 group 1 group 2", NULL},
	{"flow query 0 3 count", NULL},
	{"flow isolate 0 on", "flow isolate 0 yes"},
	{"flow aged 0", NULL},
	{"flow aged 0 destroy", NULL},
	{"flow dump 0 all file", NULL},
	{"flow dump 0 all", NULL},
	{"flow dump 0 rule 4 file", NULL},
	{"flow dump 0 file", NULL},
	{"flow info 1", NULL},
	{"flow configure 0 flags 1 queues_number 2 queues_size 64",
		"flow configure 0 queues_number 2 queues_size 64 flags 1"},
	{"flow tunnel create 0 type vxlan", NULL},
	{"flow tunnel destroy 0 id 1", NULL},
	{"flow tunnel list 0", NULL},
	{"flow indirect_action 0 create action_id 100 ingress action rss queues 1 2 end / end",
		NULL},
	{"flow indirect_action 0 update 100 action queue index 1 / end", NULL},
	{"flow indirect_action 0 destroy action_id 100 action_id 101", NULL},
	{"flow indirect_action 0 query 100", NULL},
	{"flow pattern_template 0 create relaxed no pattern_template_id 2 template eth / end",
		"flow pattern_template 0 create pattern_template_id 2 relaxed no template eth / "
		"end"},
	{"flow pattern_template 0 destroy pattern_template 2", NULL},
	{"flow actions_template 0 create actions_template_id 3 template count / end mask count / "
	 "end",
		NULL},
	{"flow actions_template 0 create template count / end", NULL},
	{"flow actions_template 0 destroy actions_template 3 actions_template 4", NULL},
	{"flow template_table 0 create table_id 5 group 2 priority 1 ingress rules_number 64 "
	 "pattern_template 2 actions_template 3",
		NULL},
	{"flow table 0 create table_id 5", "flow template_table 0 create table_id 5"},
	{"flow template_table 0 destroy table 5", NULL},
	{"flow queue 0 create 0 postpone no template_table 6 pattern_template 0 actions_template 0 "
	 "pattern eth / end actions count / end",
		"flow queue 0 create 0 template_table 6 pattern_template 0 actions_template 0 "
		"postpone no pattern eth / end actions count / end"},
	{"flow queue 0 create 1 table 6 item_template 0 action_template 0 pattern eth / end "
	 "actions count / end",
		"flow queue 0 create 1 template_table 6 pattern_template 0 actions_template 0 "
		"pattern eth / end actions count / end"},
	{"flow queue 0 destroy 0 postpone yes rule 0 rule 1", NULL},
	{"flow queue 0 aged 0 destroy", NULL},
	{"flow queue 0 indirect_action 0 create action_id 1 ingress postpone no action count / end",
		NULL},
	{"flow queue 0 indirect_action 0 update 1 postpone no action count / end", NULL},
	{"flow queue 0 indirect_action 0 destroy postpone no action_id 1", NULL},
	{"flow queue 0 indirect_action 0 query 1 postpone no", NULL},
	{"flow push 0 queue 1", NULL},
	{"flow pull 0 queue 1", NULL},
	{"flow flex_item init 0 3 item.json", "flow flex_item create 0 3 item.json"},
	{"flow flex_item destroy 0 3", NULL},
	{"flow flex_item pattern 5 is 45FF", NULL},
	{"flow flex_item pattern 2 spec 4500 mask FF00", NULL},
	{"add port meter profile srtcm_rfc2697 0 13 21504 2688 0 0", NULL},
	{"add port meter profile trtcm_rfc2698 0 13 1 2 3 4 0", NULL},
	{"add port meter profile trtcm_rfc4115 0 13 1 2 3 4 0", NULL},
	{"add port meter policy 0 1 g_actions color type green / end y_actions color type yellow / "
	 "end r_actions drop / end",
		NULL},
	{"create port meter 0 1 13 1 yes 0xffff 0 0", "create port meter 0 1 13 1 yes 65535 no g"},
	{"create port meter 0 1 13 1 yes 1 1 g 0 g y r",
		"create port meter 0 1 13 1 yes 1 yes g no g y r"},
	{"del port meter 0 1", NULL},
	{"del port meter profile 0 1", NULL},
	{"del port meter policy 0 1", NULL},
	{"enable port meter 0 1", NULL},
	{"disable port meter 0 1", NULL},
	{"set port meter profile 0 1 2", NULL},
	{"set port meter stats mask 0 1 255", NULL},
	{"set raw_encap eth / ipv4 / end_set", NULL},
	{"set raw_decap 7 eth / end_set", NULL},
	{"set sample_actions 2 mark id 8 / queue index 3 / end", NULL},
	{"set l2_decap", NULL},
	{"set l2_decap-with-vlan", NULL},
};

static void test_lines(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		check_round(NULL, lines[i][0], lines[i][1] ? lines[i][1] : lines[i][0]);
}

/* Orders of fields and mixtures of parameters that are hard to print. */
static const char *const mixtures[] = {
	"vlan tci spec 0x1fff tci mask 0x0fff",
	"vlan tci spec 5 tci last 9",
	"gre c_rsvd0_ver spec 0x0007 c_rsvd0_ver mask 0x0007 k_bit is 1",
	"gre c_rsvd0_ver is 0x2000 protocol is 0x0800",
	"raw pattern is abcd pattern spec ab",
	"raw pattern is ab pattern spec abcd",
	"raw pattern is abcd pattern mask ab",
	"raw pattern_hex spec 00 pattern_hex mask 00",
	"raw pattern spec abcd pattern mask ab offset spec 0 offset last 0",
	"geneve-opt data is 0100 data spec 01",
	"geneve-opt data is 01 data spec 0102",
	"geneve-opt data spec 00 data mask 00",
	"l2tpv2 type data tunnel_id last 0",
	"l2tpv2 type data type control nr is 1",
	"l2tpv2",
	"ecpri common type rtc_ctrl rtc_id is 1 type delay_measure msr_id prefix 4",
	"ecpri type iq_data pc_id mask 0",
	"integrity level last 0 value spec 0",
	"geneve-opt length is 4 length mask 0xf0",
	"meter color spec green color mask 1",
	"tag data last 0 index is 0",
	"flex item is 3 pattern is 5",
	"conntrack spec 1 mask 1",
	"conntrack is 0",
	"pppoe_proto_id proto_id is 0x21",
	"ipv6 src prefix 65 dst prefix 0",
	"ipv4 proto mask 0",
};

static void test_mixtures(void **state)
{
	char line[512];

	(void)state;
	for (unsigned i = 0; i < sizeof(mixtures) / sizeof(mixtures[0]); i++) {
		snprintf(line, sizeof(line), "flow create 0 pattern %s / end actions end",
			mixtures[i]);
		check_round(NULL, line, NULL);
	}
}

static const char *const action_mixtures[] = {
	"set_meta data 0 mask 0",
	"set_meta mask 0xffffffff",
	"rss key_len 40",
	"rss key 0102 key_len 0",
	"rss key_len 9 key 0102",
	"rss types end queues end",
	"rss types none end",
	"rss types all end",
	"modify_field src_type value src_value 0102 src_type tag",
	"modify_field src_type pointer src_ptr 00",
	"modify_field src_type pointer src_ptr 0100",
	"modify_field src_type tag src_level 3 src_offset 4",
	"age timeout 0",
	"age_update timeout 0",
	"sample ratio 0",
	"sample index 0",
	"raw_encap index 0",
	"queue index 0",
	"set_tag",
	"color type green",
};

static void test_action_mixtures(void **state)
{
	char line[512];

	(void)state;
	for (unsigned i = 0; i < sizeof(action_mixtures) / sizeof(action_mixtures[0]); i++) {
		snprintf(line, sizeof(line), "flow create 0 pattern end actions %s / end",
			action_mixtures[i]);
		check_round(NULL, line, NULL);
	}
}

/* What does not fit is cut, and the length is told. */
static void test_print_cut(void **state)
{
	struct rule_command *command = parse("flow flush 3");
	char text[12];

	(void)state;
	assert_int_equal(rule_command_print(command, NULL, 0), 12);
	assert_int_equal(rule_command_print(command, text, sizeof(text)), 12);
	assert_string_equal(text, "flow flush ");
	rule_command_destroy(command);
	rule_command_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_create),
		cmocka_unit_test(test_parameters),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_action_structs),
		cmocka_unit_test(test_every_item),
		cmocka_unit_test(test_every_action),
		cmocka_unit_test(test_every_word),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_mixtures),
		cmocka_unit_test(test_action_mixtures),
		cmocka_unit_test(test_print_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
