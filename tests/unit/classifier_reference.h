/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The classifier's plain reference: a list that is searched from its first rule to its last, and sets as
 * lists of prefixes. It shares no code with the classifier. Beside it are rules and headers made from
 * numbers, either random ones or the bytes of a fuzzer.
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "rule/classifier.h"

#define REFERENCE_MAX_RULES 1024
#define REFERENCE_MAX_PREFIXES 256
#define REFERENCE_GROUPS 3
#define REFERENCE_SETS 4

struct reference_prefix {
	uint32_t set;
	struct classifier_prefix prefix;
};

struct reference_entry {
	struct classifier_rule rule;
	uint64_t age;
	uint32_t handle;
};

struct reference {
	struct reference_entry entries[REFERENCE_MAX_RULES];
	unsigned n;
	uint64_t age;
	struct reference_prefix prefixes[REFERENCE_MAX_PREFIXES];
	unsigned n_prefixes;
};

/* Where numbers come from: bytes while there are some, else a generator. */
struct numbers {
	uint64_t state;
	const uint8_t *bytes;
	size_t n_bytes;
};

static inline uint32_t number_below(struct numbers *numbers, uint32_t limit)
{
	if (numbers->bytes) {
		uint32_t value = 0;

		for (uint32_t reach = 1; reach < limit && numbers->n_bytes > 0;
			reach = reach > UINT32_MAX / 256 ? UINT32_MAX : reach * 256) {
			value = value << 8 | *numbers->bytes++;
			numbers->n_bytes--;
		}
		return value % limit;
	}
	numbers->state = numbers->state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)((numbers->state >> 32) * limit >> 32);
}

static inline bool reference_prefix_has(
	const struct classifier_prefix *prefix, uint8_t version, const uint32_t addr[4])
{
	if (prefix->version != version)
		return false;
	for (unsigned bit = 0; bit < prefix->length; bit++)
		if (((prefix->addr[bit / 32] ^ addr[bit / 32]) >> (31 - bit % 32) & 1) != 0)
			return false;
	return true;
}

static inline bool reference_set_has(
	const struct reference *reference, uint32_t set, uint8_t version, const uint32_t addr[4])
{
	for (unsigned i = 0; i < reference->n_prefixes; i++)
		if (reference->prefixes[i].set == set &&
			reference_prefix_has(&reference->prefixes[i].prefix, version, addr))
			return true;
	return false;
}

static inline bool reference_matches(const struct reference *reference,
	const struct classifier_rule *rule, const struct classifier_header *header)
{
	const uint8_t *value = (const uint8_t *)&rule->value;
	const uint8_t *mask = (const uint8_t *)&rule->mask, *bytes = (const uint8_t *)header;

	for (size_t i = 0; i < sizeof(*header); i++)
		if (i / 4 != offsetof(struct classifier_header, src_port) / 4 &&
			((value[i] ^ bytes[i]) & mask[i]) != 0)
			return false;
	if (header->src_port < rule->src_port.first || header->src_port > rule->src_port.last ||
		header->dst_port < rule->dst_port.first || header->dst_port > rule->dst_port.last)
		return false;
	if (rule->src_set &&
		!reference_set_has(reference, rule->src_set, header->version, header->src))
		return false;
	return !rule->dst_set ||
	       reference_set_has(reference, rule->dst_set, header->version, header->dst);
}

static inline uint32_t reference_find(
	const struct reference *reference, uint32_t group, const struct classifier_header *header)
{
	const struct reference_entry *best = NULL;

	for (unsigned i = 0; i < reference->n; i++) {
		const struct reference_entry *entry = &reference->entries[i];

		if (entry->rule.group != group)
			continue;
		if (best && (entry->rule.priority > best->rule.priority ||
				    (entry->rule.priority == best->rule.priority &&
					    entry->age > best->age)))
			continue;
		if (reference_matches(reference, &entry->rule, header))
			best = entry;
	}
	if (!best)
		return CLASSIFIER_NONE;
	return best->rule.jump ? reference_find(reference, best->rule.jump, header) : best->rule.id;
}

static inline void reference_add(
	struct reference *reference, const struct classifier_rule *rule, uint32_t handle)
{
	reference->entries[reference->n++] =
		(struct reference_entry){.rule = *rule, .age = reference->age++, .handle = handle};
}

static inline void reference_remove(struct reference *reference, unsigned at)
{
	reference->entries[at] = reference->entries[--reference->n];
}

/* Kinds of rules, as bits. */
#define RULES_V6 1u
#define RULES_RANGES 2u
#define RULES_MASKS 4u	/* prefixes of all lengths, and some that are none */
#define RULES_FIELDS 8u /* VLAN, input port, TCP flags, TOS, metadata, Ethernet */
#define RULES_SETS 16u
#define RULES_GROUPS 32u
#define RULES_ANY 64u /* some for every IP version */
#define RULES_ALL 127u

/* Few addresses, many of which share their beginning. */
static inline void random_address(struct numbers *numbers, bool v6, uint32_t addr[4])
{
	static const uint32_t heads[] = {
		0x0a000000, 0x0a010200, 0xc0a80100, 0x20010db8, 0x0a0102f0};

	memset(addr, 0, 16);
	addr[0] = heads[number_below(numbers, 5)] ^ number_below(numbers, 8);
	if (number_below(numbers, 4) == 0)
		addr[0] ^= number_below(numbers, 256) << number_below(numbers, 25);
	for (unsigned i = 1; v6 && i < 4; i++)
		addr[i] = number_below(numbers, 3) << (number_below(numbers, 8) * 4);
}

static inline void mask_of_length(uint32_t mask[4], unsigned length)
{
	for (unsigned i = 0; i < 4; i++)
		mask[i] = length >= 32 * (i + 1) ? UINT32_MAX
			  : length <= 32 * i	 ? 0
						 : UINT32_MAX << (32 * (i + 1) - length);
}

static inline void random_mask(struct numbers *numbers, unsigned kinds, bool v6, uint32_t mask[4])
{
	static const uint8_t v4_lengths[] = {0, 0, 1, 16, 23, 24, 31, 32};
	static const uint8_t v6_lengths[] = {0, 0, 32, 48, 64, 112, 127, 128};
	unsigned length = kinds & RULES_MASKS ? number_below(numbers, v6 ? 129 : 33)
			  : v6		      ? v6_lengths[number_below(numbers, 8)]
					      : v4_lengths[number_below(numbers, 8)];

	mask_of_length(mask, length);
	if ((kinds & RULES_MASKS) && number_below(numbers, 16) == 0)
		mask[0] &= ~(number_below(numbers, 256) << number_below(numbers, 24));
}

static inline struct classifier_range random_range(struct numbers *numbers, unsigned kinds)
{
	uint16_t port = (uint16_t)(number_below(numbers, 12) * 100), width;

	switch (number_below(numbers, kinds & RULES_RANGES ? 4 : 2)) {
	case 0:
		return (struct classifier_range){0, UINT16_MAX};
	case 1:
		return (struct classifier_range){port, port};
	case 2:
		return (struct classifier_range){1024, UINT16_MAX};
	default:
		width = (uint16_t)number_below(numbers, 500);
		return (struct classifier_range){port, (uint16_t)(port + width)};
	}
}

static inline void random_fields(
	struct numbers *numbers, struct classifier_header *value, struct classifier_header *mask)
{
	switch (number_below(numbers, 8)) {
	case 0:
		value->vlan = (uint16_t)(CLASSIFIER_TAGGED | number_below(numbers, 3));
		mask->vlan = number_below(numbers, 2) ? 0x1fff : 0x1001;
		break;
	case 1:
		value->in_port = (uint16_t)number_below(numbers, 3);
		mask->in_port = UINT16_MAX;
		break;
	case 2:
		value->tcp_flags = (uint8_t)number_below(numbers, 4);
		mask->tcp_flags = (uint8_t)number_below(numbers, 4);
		break;
	case 3:
		value->tos = (uint8_t)(number_below(numbers, 2) << 2);
		mask->tos = 0xfc;
		break;
	case 4:
		value->metadata = number_below(numbers, 3);
		mask->metadata = number_below(numbers, 2) ? UINT32_MAX : 1;
		break;
	case 5:
		value->eth_src[5] = (uint8_t)number_below(numbers, 2);
		mask->eth_src[5] = UINT8_MAX;
		break;
	case 6:
		value->ttl = (uint8_t)number_below(numbers, 2);
		mask->ttl = UINT8_MAX;
		break;
	default:
		break;
	}
}

static inline struct classifier_rule random_rule(
	struct numbers *numbers, unsigned kinds, uint32_t id)
{
	bool v6 = (kinds & RULES_V6) && number_below(numbers, 2);
	struct classifier_rule rule = classifier_rule_any(id);

	rule.priority = number_below(numbers, 16);
	rule.src_port = random_range(numbers, kinds);
	rule.dst_port = random_range(numbers, kinds);
	if (!(kinds & RULES_ANY) || number_below(numbers, 8)) {
		rule.value.version = v6 ? 6 : 4;
		rule.mask.version = UINT8_MAX;
		random_address(numbers, v6, rule.value.src);
		random_address(numbers, v6, rule.value.dst);
		random_mask(numbers, kinds, v6, rule.mask.src);
		random_mask(numbers, kinds, v6, rule.mask.dst);
	} else if (number_below(numbers, 4) == 0) {
		rule.mask.version = UINT8_MAX;
	}
	if (number_below(numbers, 2)) {
		rule.value.proto = number_below(numbers, 2) ? 6 : 17;
		rule.mask.proto = UINT8_MAX;
	}
	if (kinds & RULES_FIELDS)
		random_fields(numbers, &rule.value, &rule.mask);
	if ((kinds & RULES_SETS) && number_below(numbers, 4) == 0)
		rule.src_set = 1 + number_below(numbers, REFERENCE_SETS);
	if ((kinds & RULES_SETS) && number_below(numbers, 8) == 0)
		rule.dst_set = 1 + number_below(numbers, REFERENCE_SETS);
	if (kinds & RULES_GROUPS) {
		rule.group = number_below(numbers, REFERENCE_GROUPS);
		if (rule.group + 1 < REFERENCE_GROUPS && number_below(numbers, 4) == 0)
			rule.jump = rule.group + 1 +
				    number_below(numbers, REFERENCE_GROUPS - 1 - rule.group);
	}
	return rule;
}

static inline struct classifier_header random_header(struct numbers *numbers, unsigned kinds)
{
	struct classifier_header header = {
		.version = 4,
		.proto = number_below(numbers, 2) ? 6 : 17,
		.tcp_flags = (uint8_t)number_below(numbers, 4),
		.src_port = (uint16_t)(number_below(numbers, 12) * 100 + number_below(numbers, 2)),
		.dst_port = (uint16_t)(number_below(numbers, 12) * 100 + number_below(numbers, 2)),
	};

	if ((kinds & RULES_V6) && number_below(numbers, 2))
		header.version = 6;
	if ((kinds & RULES_ANY) && number_below(numbers, 16) == 0)
		header.version = 0;
	if (header.version != 0) {
		random_address(numbers, header.version == 6, header.src);
		random_address(numbers, header.version == 6, header.dst);
	}
	if (!(kinds & RULES_FIELDS))
		return header;
	header.vlan = number_below(numbers, 2)
			      ? 0
			      : (uint16_t)(CLASSIFIER_TAGGED | number_below(numbers, 3));
	header.in_port = (uint16_t)number_below(numbers, 3);
	header.tos = (uint8_t)number_below(numbers, 8);
	header.metadata = number_below(numbers, 3);
	header.eth_src[5] = (uint8_t)number_below(numbers, 2);
	header.ttl = (uint8_t)number_below(numbers, 2);
	return header;
}

/* A header that the rule matches, but for its sets; what it does not ask for is random. */
static inline struct classifier_header header_of_rule(
	struct numbers *numbers, unsigned kinds, const struct classifier_rule *rule)
{
	struct classifier_header header = random_header(numbers, kinds);
	uint8_t *bytes = (uint8_t *)&header;
	const uint8_t *value = (const uint8_t *)&rule->value;
	const uint8_t *mask = (const uint8_t *)&rule->mask;

	if (rule->mask.version != 0 && header.version != rule->value.version) {
		header.version = rule->value.version;
		memset(header.src, 0, 16);
		memset(header.dst, 0, 16);
		if (header.version != 0) {
			random_address(numbers, header.version == 6, header.src);
			random_address(numbers, header.version == 6, header.dst);
		}
	}
	for (size_t i = 0; i < sizeof(header); i++)
		bytes[i] = (uint8_t)((bytes[i] & ~mask[i]) | (value[i] & mask[i]));
	header.src_port =
		(uint16_t)(rule->src_port.first +
			   number_below(numbers, rule->src_port.last - rule->src_port.first + 1u));
	header.dst_port =
		(uint16_t)(rule->dst_port.first +
			   number_below(numbers, rule->dst_port.last - rule->dst_port.first + 1u));
	return header;
}
