/* SPDX-License-Identifier: BSD-3-Clause */
#include "rule/limit.h"

#include <errno.h>
#include <string.h>

#define USUAL_IPV4_PREFIX 32
#define USUAL_IPV6_PREFIX 128

/* The rule's item, and its place in the pattern; NULL: it has none. */
static const struct rte_flow_item *find_source_item(
	const struct rule_command *command, unsigned *index)
{
	const struct rte_flow_item *item = command->pattern;

	for (*index = 0; item->type != RTE_FLOW_ITEM_TYPE_END; item++, ++*index)
		if ((int)item->type == RULE_ITEM_SOURCE)
			return item;
	return NULL;
}

static int refuse_source(struct error *error, const char *why)
{
	return error_set(error, -EINVAL, "item 'source': %s", why);
}

static int check_limit_number(struct error *error, const char *field, uint32_t number)
{
	if (number >= 1 && number <= RULE_LIMIT_MAX)
		return 0;
	return error_set(error, -EINVAL, "field '%s' of item 'source': it is 1 to %u", field,
		RULE_LIMIT_MAX);
}

static int read_numbers(const struct rule_source *spec, const struct rule_source *mask,
	struct rule_limit *limit, struct error *error)
{
	const bool is_new = mask->new_flows != 0, is_live = mask->live_flows != 0;
	int ret;

	if (is_new == is_live)
		return refuse_source(error,
			is_new ? "it has one limit; another one needs a rule of its own"
			       : "it needs `new_flows above N per TIME` or `live_flows above N`");
	if (is_new && mask->per_s == 0)
		return refuse_source(error, "new_flows needs a time: per second, minute or hour");
	if (is_live && (mask->per_s != 0 || mask->burst != 0))
		return refuse_source(error, "live_flows has neither per nor burst");
	*limit = (struct rule_limit){
		.given = true,
		.live = is_live,
		.above = is_live ? spec->live_flows : spec->new_flows,
		.per_s = is_live ? 0 : spec->per_s,
		.prefix4 = mask->ipv4_prefix != 0 ? spec->ipv4_prefix : USUAL_IPV4_PREFIX,
		.prefix6 = mask->ipv6_prefix != 0 ? spec->ipv6_prefix : USUAL_IPV6_PREFIX,
	};
	limit->burst = is_live ? 0 : mask->burst != 0 ? spec->burst : limit->above;
	ret = check_limit_number(error, is_live ? "live_flows" : "new_flows", limit->above);
	return ret < 0 || is_live ? ret : check_limit_number(error, "burst", limit->burst);
}

/* A limit is asked about when a flow begins, and says who may begin none: that leaves no room for more. */
static int check_limited(const struct rule_ground *ground, const struct classifier_rule *rule,
	const struct rule_effect *effect, struct error *error)
{
	struct classifier_rule plain = *rule, of_flows;

	plain.mask.metadata &= ~RULE_METADATA_LIMIT;
	if (rule_pattern_of_flows(&plain, ground, &of_flows))
		return error_set(error, -ENOTSUP,
			"item 'source': the rule may not ask for what packets of a flow differ in");
	if (effect->passes || effect->jump != 0 || effect->n == 0 ||
		(effect->list[0].kind != ACTION_DROP && effect->list[0].kind != ACTION_REJECT))
		return refuse_source(error, "the rule has to drop or reject");
	return 0;
}

int rule_limit_read(const struct rule_command *command, const struct rule_ground *ground,
	const struct classifier_rule *rule, const struct rule_effect *effect,
	struct rule_limit *limit, struct rule_refusal *refusal, struct error *error)
{
	static const struct rule_source none;
	unsigned index;
	const struct rte_flow_item *item = find_source_item(command, &index);
	int ret;

	*limit = (struct rule_limit){0};
	if (item == NULL)
		return 0;
	*refusal = (struct rule_refusal){.part = RULE_PART_PATTERN, .index = index};
	ret = read_numbers(item->spec != NULL ? item->spec : &none,
		item->mask != NULL ? item->mask : &none, limit, error);
	return ret < 0 ? ret : check_limited(ground, rule, effect, error);
}
