/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits of sources in force (docs/rules.md, "Limits by source"). A rule with a limit is asked about packets that may begin a
 * flow, when nothing of their flow was let pass: such a flow is decided by packet (rule/rules_conversation.c). Where its source
 * is below the limit the search goes on behind the rule. Once a packet was let pass no limit is asked about the flow, but
 * those of live flows count it until it ends, or rules change.
 */
#include <errno.h>
#include <string.h>

#include "packet/headers.h"
#include "rule/rules_private.h"

/* Live limits come first, so that each has a bit. */
static const struct {
	unsigned from, to;
} places[] = {{RULES_MAX_LIVE, RULES_MAX_LIMITS}, {0, RULES_MAX_LIVE}};

/* The writer: */

static unsigned find_unused(const struct rules *rules, bool live)
{
	unsigned i = places[live].from;

	while (i < places[live].to && rules->limits[i].used)
		i++;
	return i;
}

static unsigned count_unused(const struct rules *rules, bool live)
{
	unsigned n = 0;

	for (unsigned i = places[live].from; i < places[live].to; i++)
		n += !rules->limits[i].used;
	return n;
}

int rules_limits_room(
	const struct rules *rules, unsigned n_new, unsigned n_live, struct error *error)
{
	const bool live = n_live > count_unused(rules, true);

	if (!live && n_new <= count_unused(rules, false))
		return 0;
	if (rules->n_unsettled > 0)
		return error_set(error, -EAGAIN,
			"limits of rules that were just removed are still in use; try again in a "
			"second");
	return error_set(error, -ENOSPC,
		"no room: at most %u rules have a limit of %s, those that they replace among them",
		places[live].to - places[live].from, live ? "live flows" : "new flows");
}

static uint32_t prefix_mask(unsigned bits)
{
	return bits == 0 ? 0 : UINT32_MAX << (32 - bits);
}

void rules_limits_take(struct rules *rules, uint32_t slot, const struct rule_limit *limit)
{
	struct rules_limit *taken;
	unsigned i;

	if (!limit->given)
		return;
	i = find_unused(rules, limit->live);
	taken = &rules->limits[i];
	*taken = (struct rules_limit){
		.used = true,
		.live = limit->live,
		.serial = ++rules->last_limit,
		.slot = slot,
		.above = limit->above,
		.mask4 = prefix_mask(limit->prefix4),
		.rate = sources_rate_of(limit->above, limit->per_s, limit->burst),
	};
	for (unsigned word = 0; word < 4; word++) {
		const unsigned before = 32 * word;
		const unsigned bits = limit->prefix6 > before ? limit->prefix6 - before : 0;

		taken->mask6[word] = prefix_mask(RTE_MIN(bits, 32u));
	}
	rules->slots[slot].limit = (uint16_t)(i + 1);
}

void rules_limits_give_back(struct rules *rules, uint32_t slot)
{
	struct rules_slot *own = &rules->slots[slot];

	if (own->limit != 0)
		rules->limits[own->limit - 1].used = false;
	own->limit = 0;
}

/* Readers: */

static struct sources_key source_of(
	const struct rules_limit *limit, uint8_t version, const uint32_t addr[4])
{
	struct sources_key key = {.limit = limit->serial, .version = version};

	for (unsigned i = 0; i < 4; i++)
		key.addr[i] = addr[i] & (version == 6 ? limit->mask6[i] : 0);
	if (version != 6)
		key.addr[0] = addr[0] & limit->mask4;
	return key;
}

static bool has_limit(const struct rules *rules, uint32_t slot)
{
	return slot != CLASSIFIER_NONE && rules->slots[slot].limit != 0;
}

/* The limit of a slot that has one. */
static const struct rules_limit *limit_of(const struct rules *rules, uint32_t slot)
{
	return &rules->limits[rules->slots[slot].limit - 1];
}

static uint16_t bit_of(const struct rules *rules, const struct rules_limit *limit)
{
	return (uint16_t)(limit->live ? 1u << (limit - rules->limits) : 0);
}

/* Nothing is counted. */
static bool source_is_above(const struct rules *rules, const struct rules_limit *limit,
	const struct classifier_header *header, uint64_t now_us)
{
	const struct sources_key key = source_of(limit, header->version, header->src);

	return limit->live ? sources_live(rules->sources, &key) >= limit->above
			   : sources_is_above(rules->sources, &key, &limit->rate, now_us);
}

/* Does what source_is_above() does, and counts the flow where its source is not above. A source that finds no room is not above. */
static bool count_source(const struct rules *rules, const struct rules_limit *limit,
	const struct classifier_header *header, uint64_t now_us, uint16_t *counted)
{
	const struct sources_key key = source_of(limit, header->version, header->src);
	const enum sources_answer answer =
		limit->live ? sources_enter(rules->sources, &key, limit->above, now_us)
			    : sources_begin(rules->sources, &key, &limit->rate, now_us);

	if (answer == SOURCES_TAKEN)
		*counted |= bit_of(rules, limit);
	return answer == SOURCES_ABOVE;
}

/* Those in `counted` count one flow less of the source. */
static void leave_source(
	const struct rules *rules, uint8_t version, const uint32_t addr[4], uint16_t counted)
{
	for (unsigned left = counted; left != 0; left &= left - 1) {
		const struct sources_key key =
			source_of(&rules->limits[__builtin_ctz(left)], version, addr);

		sources_leave(rules->sources, &key);
	}
}

void rules_leave(void *context, const struct flow_key *key, unsigned from, uint16_t counted)
{
	uint32_t addr[4];

	for (unsigned i = 0; i < 4; i++)
		addr[i] = load_be32(key->addr[from] + 4 * i);
	leave_source(context, flow_key_version(key), addr, counted);
}

uint32_t rules_limits_find(const struct rules *rules, unsigned list,
	const struct classifier_header *header, struct flow_packet_ct ct, uint16_t *counted)
{
	struct classifier_place place = {0};
	const struct rules_limit *limit;
	uint32_t slot;

	*counted = 0;
	for (;;) {
		slot = classifier_find_behind(rules->full, list, header, &place);
		if (!has_limit(rules, slot))
			break;
		limit = limit_of(rules, slot);
		if (ct.looks ? source_is_above(rules, limit, header, ct.now_us)
			     : count_source(rules, limit, header, ct.now_us, counted))
			break;
	}
	if (slot != CLASSIFIER_NONE && flow_verdict_drops(rules->slots[slot].verdict)) {
		leave_source(rules, header->version, header->src, *counted);
		*counted = 0;
	}
	return slot;
}

/* Those of `counted` whose rules are in force. */
static uint16_t still_there(const struct rules *rules, uint16_t counted)
{
	uint16_t there = 0;

	for (unsigned left = counted; left != 0; left &= left - 1) {
		const unsigned i = (unsigned)__builtin_ctz(left);
		const struct rules_slot *slot = &rules->slots[rules->limits[i].slot];

		if (!__atomic_load_n(&slot->gone, __ATOMIC_RELAXED))
			there |= (uint16_t)(1u << i);
	}
	return there;
}

void rules_limits_recount(const struct rules *rules, const struct classifier *classifier,
	unsigned list, const struct classifier_header *header, uint64_t now_us, uint16_t *counted)
{
	struct classifier_header begins = *header;
	struct classifier_place place = {0};
	const uint16_t before = *counted;
	const struct rules_limit *limit;
	uint16_t wanted = 0;
	uint32_t slot;

	if (before == 0 && atomic_load_explicit(&rules->n_live_limits, memory_order_acquire) == 0)
		return;
	begins.metadata |= RULE_METADATA_LIMIT;
	for (;;) {
		slot = classifier_find_behind(classifier, list, &begins, &place);
		if (!has_limit(rules, slot))
			break;
		limit = limit_of(rules, slot);
		const struct sources_key key = source_of(limit, header->version, header->src);

		if (!limit->live)
			continue;
		if ((before & bit_of(rules, limit)) ||
			sources_enter(rules->sources, &key, UINT32_MAX, now_us) == SOURCES_TAKEN)
			wanted |= bit_of(rules, limit);
	}
	/* what stands behind a rule by packet was asked about a packet, and is not known of the flow */
	if (slot != CLASSIFIER_NONE && rules->slots[slot].by_packet)
		wanted |= still_there(rules, before);
	leave_source(rules, header->version, header->src, (uint16_t)(before & ~wanted));
	*counted = wanted;
}

void rules_limits_forget(const struct rules *rules, const struct flow_key *key,
	struct flow_conversation *conversation)
{
	if (conversation->counted == 0)
		return;
	rules_leave((void *)(uintptr_t)rules, key, conversation->initiator, conversation->counted);
	conversation->counted = 0;
}

/* For those who look: nothing is counted. */

bool rules_look_limit(const struct rules *rules, uint32_t slot,
	const struct classifier_header *header, struct rules_limited *limited)
{
	if (!has_limit(rules, slot) || !(header->metadata & RULE_METADATA_LIMIT))
		return false;
	const struct rules_limit *limit = limit_of(rules, slot);
	const struct sources_key key = source_of(limit, header->version, header->src);

	*limited = (struct rules_limited){
		.live = limit->live,
		.limit = limit->above,
		.flows = limit->live ? sources_live(rules->sources, &key) : 0,
		.above = source_is_above(rules, limit, header, rules->now_us),
		.version = header->version,
		.prefix = rules->own[slot].made->limit.prefix4,
	};
	if (header->version == 6)
		limited->prefix = rules->own[slot].made->limit.prefix6;
	memcpy(limited->addr, key.addr, sizeof(limited->addr));
	return true;
}

static void look_at_limit(const struct rules *rules, uint32_t slot,
	const struct classifier_header *header, struct rules_looked *looked)
{
	looked->slot = slot;
	(void)rules_look_limit(rules, slot, header, &looked->limit);
}

unsigned rules_look_limits(const struct rules *rules, const struct classifier_header *header,
	const struct flow_conversation *conversation, struct rules_looked *looked, unsigned max)
{
	struct classifier_header begins = *header;
	struct classifier_place place = {0};
	unsigned n = 0;
	uint32_t slot;

	begins.metadata |= RULE_METADATA_LIMIT;
	if (conversation->accepted) {
		for (unsigned left = conversation->counted; left != 0 && n < max; left &= left - 1)
			look_at_limit(rules, rules->limits[__builtin_ctz(left)].slot, &begins,
				&looked[n++]);
		return n;
	}
	do {
		slot = classifier_find_behind(rules->full,
			atomic_load_explicit(&rules->list, memory_order_relaxed), &begins, &place);
		if (n == max || !has_limit(rules, slot))
			return n;
		look_at_limit(rules, slot, &begins, &looked[n++]);
	} while (!looked[n - 1].limit.above);
	return n;
}

void rules_sources(const struct rules *rules, struct rules_sources *sources)
{
	struct sources_stats stats;

	sources_stats(rules->sources, rules->now_us, &stats);
	*sources = (struct rules_sources){.max = stats.max, .used = stats.used, .full = stats.full};
}
