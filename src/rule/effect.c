/* SPDX-License-Identifier: BSD-3-Clause */
#include "rule/effect.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include <rte_byteorder.h>

#include "rule/meters.h"
#include "rule/outer.h"

#define TPID_8021Q 0x8100
#define TPID_8021AD 0x88a8
#define MAX_PCP 7

struct effecting {
	const struct rule_ground *ground;
	const struct rule_command *command;
	const struct classifier_rule *rule;
	struct rule_effect *effect;
	const char *name; /* of the action in hand */
	const char *fate; /* the action that says what becomes of the packet, or NULL */
	struct error *error;
};

static int refuse_action(struct effecting *effecting, int code, const char *why)
{
	return error_set(effecting->error, code, "action '%s': %s", effecting->name, why);
}

static struct action *add_action(struct effecting *effecting, enum action_kind kind)
{
	struct rule_effect *effect = effecting->effect;

	/* a rule has at most twice as many: RULE_LIST_MAX */
	if (effect->n == ACTION_LIST_MAX)
		return NULL;
	effect->list[effect->n] = (struct action){.kind = kind};
	return &effect->list[effect->n++];
}

static int refuse_length(struct effecting *effecting)
{
	return refuse_action(effecting, -ENOTSUP, "in software a rule has at most 32 actions");
}

/* The rule needs something that other rules may need, too. */
static int add_use(struct effecting *effecting, struct rule_use *use)
{
	struct rule_effect *effect = effecting->effect;

	for (unsigned i = 0; i < effect->n_uses; i++)
		if (effect->uses[i] == use)
			return 0;
	if (effect->n_uses == RULE_EFFECT_USES)
		return refuse_action(effecting, -ENOTSUP,
			"in software a rule names at most 8 things that it shares");
	effect->uses[effect->n_uses++] = use;
	return 0;
}

/* One action of a rule says what becomes of its packets. */
static int set_fate(struct effecting *effecting)
{
	if (effecting->fate != NULL)
		return error_set(effecting->error, -EINVAL,
			"action '%s': the rule says already what becomes of the packet (%s)",
			effecting->name, effecting->fate);
	effecting->fate = effecting->name;
	return 0;
}

/* The domain that all packets of the rule are in, or -1. */
static int domain_of(const struct effecting *effecting)
{
	const struct rule_ground *ground = effecting->ground;

	return ground->topology != NULL && effecting->rule->mask.in_port != 0
		       ? ground->topology->domain[effecting->rule->value.in_port]
		       : -1;
}

/* Capture files have the numbers behind those of the ports. */
static bool is_capture(const struct rule_ground *ground, uint32_t number)
{
	return ground->topology != NULL && number >= ground->topology->n_ports &&
	       number - ground->topology->n_ports < ground->n_captures;
}

/* The port that an action of `type` names: the words differ, not what they mean here. */
static int read_target(struct effecting *effecting, const struct rte_flow_action *action,
	uint16_t *port, bool of_domain)
{
	uint32_t number = 0;
	struct error said;
	int domain = domain_of(effecting);

	if (effecting->ground->sends_nothing)
		return refuse_action(
			effecting, -ENOTSUP, "packets of a capture are not sent by a port");
	if (action->conf != NULL && action->type == RTE_FLOW_ACTION_TYPE_PORT_ID) {
		const struct rte_flow_action_port_id *id = action->conf;

		number = id->original ? effecting->command->port : id->id;
	} else if (action->conf != NULL) {
		number = ((const struct rte_flow_action_ethdev *)action->conf)->port_id;
	}
	if (!of_domain && is_capture(effecting->ground, number)) {
		*port = (uint16_t)number;
		return 0;
	}
	if (rule_port_check(effecting->ground, number, &said) < 0)
		return refuse_action(effecting, -EINVAL, said.text);
	if (of_domain && domain >= 0 && effecting->ground->topology->domain[number] != domain)
		return error_set(effecting->error, -EINVAL,
			"action '%s': port %u does not belong to the wire of port %u",
			effecting->name, number, effecting->rule->value.in_port);
	*port = (uint16_t)number;
	return 0;
}

static int read_output(struct effecting *effecting, const struct rte_flow_action *action)
{
	uint16_t port = 0;
	int ret = set_fate(effecting);

	if (ret == 0)
		ret = read_target(effecting, action, &port, true);
	if (ret < 0)
		return ret;
	struct action *output = add_action(effecting, ACTION_OUTPUT);

	if (output == NULL)
		return refuse_length(effecting);
	output->port = port;
	return 0;
}

static int read_jump(struct effecting *effecting, const struct rte_flow_action *action)
{
	const struct rte_flow_action_jump *jump = action->conf;
	const uint32_t group = jump != NULL ? jump->group : 0;
	int ret = set_fate(effecting);

	if (ret < 0)
		return ret;
	if (group >= RULE_MAX_GROUPS)
		return error_set(effecting->error, -ENOTSUP,
			"action 'jump': group %u: in software groups are 0 to %u", group,
			RULE_MAX_GROUPS - 1);
	if (group <= effecting->rule->group)
		return error_set(effecting->error, -ENOTSUP,
			"action 'jump': group %u: in software a rule of group %u jumps to a higher "
			"one",
			group, effecting->rule->group);
	effecting->effect->jump = group;
	return 0;
}

/* The last tag that the list puts on and does not take off again, or NULL. */
static struct action *last_push(struct effecting *effecting)
{
	struct rule_effect *effect = effecting->effect;

	for (unsigned i = effect->n; i > 0; i--) {
		if (effect->list[i - 1].kind == ACTION_VLAN_PUSH)
			return &effect->list[i - 1];
		if (effect->list[i - 1].kind == ACTION_VLAN_POP)
			return NULL;
	}
	return NULL;
}

static int read_push(struct effecting *effecting, const struct rte_flow_action *action)
{
	const struct rte_flow_action_of_push_vlan *push = action->conf;
	const uint16_t tpid = push != NULL ? rte_be_to_cpu_16(push->ethertype) : 0;

	if (tpid != TPID_8021Q && tpid != TPID_8021AD)
		return refuse_action(effecting, -EINVAL, "a tag's type is 0x8100 or 0x88a8");
	struct action *made = add_action(effecting, ACTION_VLAN_PUSH);

	if (made == NULL)
		return refuse_length(effecting);
	made->vlan.tpid = tpid;
	return 0;
}

static int read_set_vid(struct effecting *effecting, const struct rte_flow_action *action)
{
	const struct rte_flow_action_of_set_vlan_vid *set = action->conf;
	struct action *made = last_push(effecting);

	if (made == NULL)
		made = add_action(effecting, ACTION_VLAN_SET);
	if (made == NULL)
		return refuse_length(effecting);
	made->vlan.id = set != NULL ? rte_be_to_cpu_16(set->vlan_vid) : 0;
	return 0;
}

static int read_set_pcp(struct effecting *effecting, const struct rte_flow_action *action)
{
	const struct rte_flow_action_of_set_vlan_pcp *set = action->conf;
	struct action *push = last_push(effecting);
	const uint8_t priority = set != NULL ? set->vlan_pcp : 0;

	if (push == NULL)
		return refuse_action(effecting, -ENOTSUP,
			"in software it is done to a tag that the rule has put on before");
	if (priority > MAX_PCP)
		return refuse_action(effecting, -EINVAL, "a priority is at most 7");
	push->vlan.priority = priority;
	return 0;
}

/* An action that sets bytes of a header to those of its configuration. */
static int read_set(struct effecting *effecting, const struct rte_flow_action *action,
	enum action_kind kind, size_t size)
{
	struct action *made = add_action(effecting, kind);

	if (made == NULL)
		return refuse_length(effecting);
	if (action->conf != NULL)
		memcpy(made->address, action->conf, size);
	return 0;
}

/* The same of an address, which packets of the rule have to have. */
static int read_set_address(struct effecting *effecting, const struct rte_flow_action *action,
	enum action_kind kind, uint8_t version)
{
	const struct classifier_rule *rule = effecting->rule;

	/* what comes out of a tunnel is of any version */
	for (unsigned i = 0; i < effecting->effect->n; i++)
		if (effecting->effect->list[i].kind == ACTION_DECAP)
			return read_set(effecting, action, kind, version == 4 ? 4 : 16);
	if (rule->mask.version == UINT8_MAX && rule->value.version != version)
		return refuse_action(effecting, -EINVAL,
			version == 4 ? "the rule's packets are not of IPv4"
				     : "the rule's packets are not of IPv6");
	return read_set(effecting, action, kind, version == 4 ? 4 : 16);
}

static int read_sample(struct effecting *effecting, const struct rte_flow_action *action)
{
	const struct rte_flow_action_sample *sample = action->conf;
	const struct rte_flow_action *found = NULL;
	struct action *made;
	uint16_t port = 0;
	int ret;

	if (sample == NULL || sample->ratio == 0)
		return refuse_action(effecting, -EINVAL, "it needs a ratio of 1 or more");
	for (const struct rte_flow_action *of = sample->actions;
		of != NULL && of->type != RTE_FLOW_ACTION_TYPE_END; of++) {
		bool names_port = of->type == RTE_FLOW_ACTION_TYPE_PORT_ID ||
				  of->type == RTE_FLOW_ACTION_TYPE_REPRESENTED_PORT ||
				  of->type == RTE_FLOW_ACTION_TYPE_PORT_REPRESENTOR;

		if (of->type == RTE_FLOW_ACTION_TYPE_VOID || of->type == RTE_FLOW_ACTION_TYPE_COUNT)
			continue;
		if (!names_port || found != NULL) {
			const struct rule_thing *thing = rule_action_of(of->type);

			return error_set(effecting->error, -ENOTSUP,
				"action 'sample': '%s': in software a copy goes to one port, "
				"unchanged",
				thing != NULL ? thing->name : "?");
		}
		found = of;
	}
	if (found == NULL)
		return refuse_action(effecting, -ENOTSUP,
			"in software its own actions (set sample_actions) name the port for the "
			"copies");
	ret = read_target(effecting, found, &port, false);
	if (ret < 0)
		return ret;
	made = add_action(effecting, ACTION_MIRROR);
	if (made == NULL)
		return refuse_length(effecting);
	made->mirror = (struct action_mirror){.port = port, .one_in = sample->ratio};
	return 0;
}

static int read_age(struct effecting *effecting, const struct rte_flow_action *action)
{
	const struct rte_flow_action_age *age = action->conf;
	struct classifier_rule of_flows;

	if (age == NULL || age->timeout == 0)
		return refuse_action(effecting, -EINVAL, "it needs a timeout of 1 second or more");
	if (effecting->effect->age_s != 0)
		return refuse_action(effecting, -EINVAL, "the rule says already how its flows age");
	if (rule_pattern_of_flows(effecting->rule, effecting->ground, &of_flows))
		return refuse_action(effecting, -ENOTSUP,
			"flows age, and the rule asks for what packets of a flow may differ in");
	effecting->effect->age_s = age->timeout;
	return 0;
}

static int read_meter(struct effecting *effecting, const struct rte_flow_action *action)
{
	const struct rte_flow_action_meter *meter = action->conf;
	const uint32_t number = meter != NULL ? meter->mtr_id : 0;
	uint32_t place = 0;
	struct rule_use *use = rule_meters_find(
		effecting->ground->meters, effecting->command->port, number, &place);
	struct action *made;

	if (use == NULL)
		return error_set(effecting->error, -EINVAL,
			"action 'meter': there is no meter %u of port %u (create port meter)",
			number, effecting->command->port);
	made = add_action(effecting, ACTION_METER);
	if (made == NULL)
		return refuse_length(effecting);
	made->number = place;
	return add_use(effecting, use);
}

static int read_mark(struct effecting *effecting, uint32_t mark)
{
	if (effecting->effect->marked)
		return refuse_action(effecting, -EINVAL, "the rule marks its packets already");
	effecting->effect->marked = true;
	effecting->effect->mark = mark;
	return 0;
}

static int read_reject(struct effecting *effecting, const struct rte_flow_action *action)
{
	const struct rule_reject *reject = action->conf;
	int ret = set_fate(effecting);
	struct action *made;

	if (ret < 0)
		return ret;
	made = add_action(effecting, ACTION_REJECT);
	if (made == NULL)
		return refuse_length(effecting);
	made->reject = reject != NULL ? (enum reject_with)reject->with : REJECT_USUAL;
	return 0;
}

static int read_queue(struct effecting *effecting)
{
	effecting->effect->remark =
		"the flow chooses the worker: in software the queue has no meaning";
	return set_fate(effecting);
}

/* Refuses what is known by name and cannot be done, with the reason. */
static int refuse_kind(struct effecting *effecting, enum rte_flow_action_type type)
{
	switch ((int)type) {
	case RTE_FLOW_ACTION_TYPE_SECURITY:
		return refuse_action(effecting, -ENOTSUP, "packets are not encrypted in software");
	default:
		return refuse_action(effecting, -ENOTSUP, "not done in software");
	}
}

/* Outer headers that come on, `length` bytes or what is wrong with them. */
static int add_encap(struct effecting *effecting, const uint8_t *bytes, int length)
{
	struct action *made;

	if (length == 0)
		return refuse_action(effecting, -EINVAL, "no `set` line has said the headers");
	if (length == -ENOTSUP)
		return refuse_action(effecting, -ENOTSUP, "an item of the headers has no bytes");
	if (length < 0 || length > ACTION_ENCAP_MAX)
		return refuse_action(
			effecting, -ENOTSUP, "in software the headers have at most 120 bytes");
	made = add_action(effecting, ACTION_ENCAP);
	if (made == NULL)
		return refuse_length(effecting);
	made->encap.length = (uint8_t)length;
	memcpy(made->encap.bytes, bytes, (size_t)length);
	return 0;
}

/* Headers that are said as items. */
static int read_encap(struct effecting *effecting, const struct rte_flow_item *definition)
{
	uint8_t bytes[RULE_OUTER_MAX];
	unsigned at;
	int length =
		definition == NULL ? 0 : rule_outer_bytes(definition, bytes, sizeof(bytes), &at);

	return add_encap(effecting, bytes, length);
}

static int read_encap_raw(
	struct effecting *effecting, const struct rte_flow_action_raw_encap *encap)
{
	if (encap == NULL)
		return add_encap(effecting, NULL, 0);
	return add_encap(effecting, encap->data, encap->size < INT_MAX ? (int)encap->size : -E2BIG);
}

static int read_decap(struct effecting *effecting, enum action_tunnel tunnel, size_t length)
{
	struct action *made;

	if (tunnel == ACTION_TUNNEL_BYTES && length == 0)
		return refuse_action(effecting, -EINVAL, "no `set` line has said the headers");
	if (length > UINT8_MAX)
		return refuse_action(effecting, -ENOTSUP, "in software at most 255 bytes come off");
	made = add_action(effecting, ACTION_DECAP);
	if (made == NULL)
		return refuse_length(effecting);
	made->decap = (struct action_decap){tunnel, (uint8_t)length};
	return 0;
}

static int read_tunnel_action(struct effecting *effecting, const struct rte_flow_action *action)
{
	const struct rte_flow_action_vxlan_encap *vxlan = action->conf;
	const struct rte_flow_action_nvgre_encap *nvgre = action->conf;
	const struct rte_flow_action_raw_decap *raw = action->conf;

	switch ((int)action->type) {
	case RTE_FLOW_ACTION_TYPE_VXLAN_ENCAP:
		return read_encap(effecting, vxlan != NULL ? vxlan->definition : NULL);
	case RTE_FLOW_ACTION_TYPE_NVGRE_ENCAP:
		return read_encap(effecting, nvgre != NULL ? nvgre->definition : NULL);
	case RTE_FLOW_ACTION_TYPE_RAW_ENCAP:
		return read_encap_raw(effecting, action->conf);
	case RTE_FLOW_ACTION_TYPE_VXLAN_DECAP:
		return read_decap(effecting, ACTION_TUNNEL_VXLAN, 0);
	case RTE_FLOW_ACTION_TYPE_NVGRE_DECAP:
		return read_decap(effecting, ACTION_TUNNEL_NVGRE, 0);
	case RTE_FLOW_ACTION_TYPE_RAW_DECAP:
		return read_decap(effecting, ACTION_TUNNEL_BYTES, raw != NULL ? raw->size : 0);
	default:
		return refuse_kind(effecting, action->type);
	}
}

static int read_header_action(struct effecting *effecting, const struct rte_flow_action *action)
{
	switch ((int)action->type) {
	case RTE_FLOW_ACTION_TYPE_OF_PUSH_VLAN:
		return read_push(effecting, action);
	case RTE_FLOW_ACTION_TYPE_OF_SET_VLAN_VID:
		return read_set_vid(effecting, action);
	case RTE_FLOW_ACTION_TYPE_OF_SET_VLAN_PCP:
		return read_set_pcp(effecting, action);
	case RTE_FLOW_ACTION_TYPE_OF_POP_VLAN:
		return read_set(effecting, action, ACTION_VLAN_POP, 0);
	case RTE_FLOW_ACTION_TYPE_SET_MAC_SRC:
		return read_set(effecting, action, ACTION_SET_MAC_SRC, 6);
	case RTE_FLOW_ACTION_TYPE_SET_MAC_DST:
		return read_set(effecting, action, ACTION_SET_MAC_DST, 6);
	case RTE_FLOW_ACTION_TYPE_SET_IPV4_SRC:
		return read_set_address(effecting, action, ACTION_SET_IPV4_SRC, 4);
	case RTE_FLOW_ACTION_TYPE_SET_IPV4_DST:
		return read_set_address(effecting, action, ACTION_SET_IPV4_DST, 4);
	case RTE_FLOW_ACTION_TYPE_SET_IPV6_SRC:
		return read_set_address(effecting, action, ACTION_SET_IPV6_SRC, 6);
	case RTE_FLOW_ACTION_TYPE_SET_IPV6_DST:
		return read_set_address(effecting, action, ACTION_SET_IPV6_DST, 6);
	case RTE_FLOW_ACTION_TYPE_SET_TP_SRC:
		return read_set(effecting, action, ACTION_SET_PORT_SRC, 2);
	case RTE_FLOW_ACTION_TYPE_SET_TP_DST:
		return read_set(effecting, action, ACTION_SET_PORT_DST, 2);
	case RTE_FLOW_ACTION_TYPE_DEC_TTL:
		return read_set(effecting, action, ACTION_DECREMENT_TTL, 0);
	case RTE_FLOW_ACTION_TYPE_SET_TTL:
		return read_set(effecting, action, ACTION_SET_TTL, 1);
	default:
		return read_tunnel_action(effecting, action);
	}
}

static int read_action(struct effecting *effecting, const struct rte_flow_action *action);

/* The actions of a list that was named before, as if they stood in the rule. No list has another one in it. */
static int read_indirect(struct effecting *effecting, const struct rte_flow_action *action)
{
	const struct rule_indirect *indirect = action->conf;
	const uint32_t number = indirect != NULL ? indirect->id : 0;
	struct rule_use *use = NULL;
	const struct rte_flow_action *list =
		rule_shared_find(effecting->ground->shared, effecting->command->port, number, &use);
	int ret;

	if (list == NULL)
		return error_set(effecting->error, -EINVAL,
			"action 'indirect': there is no indirect action %u of port %u (flow "
			"indirect_action)",
			number, effecting->command->port);
	ret = add_use(effecting, use);
	for (; ret == 0 && list->type != RTE_FLOW_ACTION_TYPE_END; list++) {
		const struct rule_thing *thing = rule_action_of(list->type);

		effecting->name = thing != NULL ? thing->name : "?";
		ret = read_action(effecting, list);
	}
	return ret;
}

static int read_action(struct effecting *effecting, const struct rte_flow_action *action)
{
	int ret;

	switch ((int)action->type) {
	case RTE_FLOW_ACTION_TYPE_VOID:
	case RTE_FLOW_ACTION_TYPE_COUNT:
		return 0;
	case RTE_FLOW_ACTION_TYPE_PASSTHRU:
		effecting->effect->passes = true;
		return set_fate(effecting);
	case RTE_FLOW_ACTION_TYPE_JUMP:
		return read_jump(effecting, action);
	case RTE_FLOW_ACTION_TYPE_QUEUE:
	case RTE_FLOW_ACTION_TYPE_RSS:
		return read_queue(effecting);
	case RTE_FLOW_ACTION_TYPE_MARK:
		return read_mark(
			effecting, action->conf != NULL
					   ? ((const struct rte_flow_action_mark *)action->conf)->id
					   : 0);
	case RTE_FLOW_ACTION_TYPE_FLAG:
		return read_mark(effecting, 0);
	case RTE_FLOW_ACTION_TYPE_DROP:
		ret = set_fate(effecting);
		return ret < 0 ? ret : read_set(effecting, action, ACTION_DROP, 0);
	case RULE_ACTION_REJECT:
		return read_reject(effecting, action);
	case RULE_ACTION_LOG:
		effecting->effect->logs = true;
		return 0;
	case RTE_FLOW_ACTION_TYPE_PORT_ID:
	case RTE_FLOW_ACTION_TYPE_REPRESENTED_PORT:
	case RTE_FLOW_ACTION_TYPE_PORT_REPRESENTOR:
		return read_output(effecting, action);
	case RTE_FLOW_ACTION_TYPE_SAMPLE:
		return read_sample(effecting, action);
	case RTE_FLOW_ACTION_TYPE_INDIRECT:
		return read_indirect(effecting, action);
	case RTE_FLOW_ACTION_TYPE_AGE:
		return read_age(effecting, action);
	case RTE_FLOW_ACTION_TYPE_METER:
		return read_meter(effecting, action);
	default:
		return read_header_action(effecting, action);
	}
}

/* A rule that hands its packets on to other rules does nothing else. */
static int check_handing_on(struct effecting *effecting)
{
	const struct rule_effect *effect = effecting->effect;

	if ((effect->jump == 0 && !effect->passes) ||
		(effect->n == 0 && !effect->marked && !effect->logs && effect->age_s == 0))
		return 0;
	effecting->name = effecting->fate;
	return refuse_action(effecting, -ENOTSUP,
		"in software a rule that leaves its packets to others does nothing else");
}

int rule_effect_read(const struct rule_command *command, const struct rule_ground *ground,
	const struct classifier_rule *rule, struct rule_effect *effect,
	struct rule_refusal *refusal, struct error *error)
{
	struct effecting effecting = {
		.ground = ground,
		.command = command,
		.rule = rule,
		.effect = effect,
		.error = error,
	};
	const struct rte_flow_action *actions = command->actions[0];
	int ret = 0;

	*effect = (struct rule_effect){0};
	*refusal = (struct rule_refusal){.part = RULE_PART_ACTIONS};
	if (actions[0].type == RTE_FLOW_ACTION_TYPE_END)
		return error_set(error, -EINVAL, "actions: a rule needs one at least");
	for (unsigned i = 0; ret == 0 && actions[i].type != RTE_FLOW_ACTION_TYPE_END; i++) {
		const struct rule_thing *thing = rule_action_of(actions[i].type);

		refusal->index = i;
		effecting.name = thing != NULL ? thing->name : "?";
		ret = read_action(&effecting, &actions[i]);
	}
	return ret == 0 ? check_handing_on(&effecting) : ret;
}
