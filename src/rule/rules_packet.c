/* SPDX-License-Identifier: BSD-3-Clause */
/* A packet that is given by its fields, as the pattern of a rule would say them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "packet/headers.h"
#include "rule/rules_private.h"

#define BEFORE_PORT "flow validate "
#define BEFORE_ITEMS " ingress pattern"
#define BEHIND " actions drop / end"
#define USUAL_TTL 64
#define TPID_8021Q 0x8100

/* The one port that a range holds; 0 where none was given. */
static int one_port(
	const struct classifier_range *range, const char *name, uint16_t *port, struct error *error)
{
	*port = range->first;
	if (range->first == range->last || (range->first == 0 && range->last == UINT16_MAX))
		return 0;
	return error_set(error, -EINVAL, "%s: a packet has one port, not a range", name);
}

/*
 * One of the states that the fields name, the first; else that of the direction. A packet without either begins a
 * conversation.
 */
static uint8_t bits_of(const struct classifier_rule *rule)
{
	const uint8_t states = rules_states_of(rule) & RULE_CT_ALL;
	uint8_t bits = rule->value.bits & rule->mask.bits;

	if (states != 0 && states != RULE_CT_ALL)
		bits |= (uint8_t)((states & -states) << CLASSIFIER_STATE_SHIFT);
	else
		bits |= (uint8_t)((bits & CLASSIFIER_REVERSE ? RULE_CT_ESTABLISHED : RULE_CT_NEW)
				  << CLASSIFIER_STATE_SHIFT);
	if (!(bits & (CLASSIFIER_FORWARD | CLASSIFIER_REVERSE)))
		bits |= states == RULE_CT_ESTABLISHED ? CLASSIFIER_REVERSE : CLASSIFIER_FORWARD;
	return bits;
}

/* What the fields say, and what a packet with them has if they do not say it. */
static int fill_header(const struct classifier_rule *rule, uint16_t port,
	struct classifier_header *header, struct error *error)
{
	const uint8_t *mask = (const uint8_t *)&rule->mask;
	uint8_t *bytes = (uint8_t *)header;
	int ret;

	if (rule->src_set != 0 || rule->dst_set != 0)
		return error_set(error, -EINVAL, "a packet has one address, not a set of them");
	*header = rule->value;
	for (size_t i = 0; i < sizeof(*header); i++)
		bytes[i] &= mask[i];
	header->in_port = port;
	header->bits = bits_of(rule);
	ret = one_port(&rule->src_port, "source", &header->src_port, error);
	if (ret == 0)
		ret = one_port(&rule->dst_port, "destination", &header->dst_port, error);
	if (ret < 0)
		return ret;
	if (header->version == 0 && rule->mask.proto != 0)
		return error_set(error, -EINVAL, "an item ipv4 or ipv6 is needed before it");
	if (header->version == 0)
		return 0;
	if (header->bits & RULE_CT_NEW << CLASSIFIER_STATE_SHIFT)
		header->metadata |= RULE_METADATA_LIMIT;
	if (rule->mask.ttl == 0)
		header->ttl = USUAL_TTL;
	if (rule->mask.vlan != 0)
		header->vlan |= CLASSIFIER_TAGGED;
	if (rule->mask.eth_type == 0)
		header->eth_type = header->vlan != 0	  ? 0x8100
				   : header->version == 4 ? ETHERTYPE_IPV4
							  : ETHERTYPE_IPV6;
	return 0;
}

int rules_header_of_packet(const struct rules *rules, const char *text,
	struct classifier_header *header, unsigned *column, struct error *error)
{
	char line[RULE_LINE_MAX + 1];
	const int skipped = (int)strspn(text, " "),
		  digits = (int)strspn(text + skipped, "0123456789");
	const int before = (int)strlen(BEFORE_PORT) + digits + (int)strlen(BEFORE_ITEMS);
	struct rule_refusal refusal = {.part = RULE_PART_COMMAND};
	struct classifier_rule rule;
	struct rule_command *command;
	unsigned at;

	*column = (unsigned)skipped + 1;
	if (digits == 0)
		return error_set(error, -EINVAL, "the number of the port is needed, then items");
	const int length = snprintf(line, sizeof(line), BEFORE_PORT "%.*s" BEFORE_ITEMS "%s" BEHIND,
		digits, text + skipped, text + skipped + digits);

	if (length >= (int)sizeof(line))
		return error_set(error, -E2BIG, "the packet is too long");
	int ret = rule_command_parse(&command, rules->setup, line, (size_t)length, &at, error);

	if (ret == 0) {
		ret = rule_port_check(&rules->ground, command->port, error);
		if (ret == 0)
			ret = rule_pattern_read(command, &rules->ground, &rule, &refusal, error);
		if (ret == 0)
			ret = fill_header(&rule, command->port, header, error);
		rule_command_destroy(command);
		at = rule_refusal_column(line, (size_t)length, &refusal);
	}
	/* where it stands in the text that was given */
	if (ret < 0 && (int)at > before)
		*column = at - (unsigned)before + (unsigned)(skipped + digits);
	if (ret < 0 && *column > strlen(text))
		return error_set(error, -EINVAL, "\" / end\" is needed behind the items");
	return ret == -ENOTSUP || ret == -ENODATA ? -EINVAL : ret;
}
