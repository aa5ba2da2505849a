/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow/decide.h"

#include <errno.h>

#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>

#include "base/mapping.h"
#include "flow/filing.h"
#include "flow/tcp.h"

static size_t dropped_size(const struct flow_shard *shard)
{
	return flow_table_positions(&shard->table) * sizeof(*shard->verdict_dropped);
}

static size_t rows_size(const struct flow_shard *shard)
{
	return flow_table_positions(&shard->table) * sizeof(*shard->rows);
}

int flow_decide_init(struct flow_shard *shard)
{
	const struct flow_policy *policy = &shard->config.policy;

	if (policy->decide == NULL)
		return 0;
	/*
	 * Few flows are dropped by verdicts, so the kernel gives pages as rows are first written. The rows lie in large pages
	 * where the flow table does: with small pages and a million rows each dropped packet waited for page table walks.
	 */
	shard->verdict_dropped =
		mapping_create(dropped_size(shard), shard->config.mapping & ~MAPPING_POPULATE);
	if (shard->verdict_dropped == NULL)
		return -ENOMEM;
	if (policy->count != NULL) {
		shard->rows = mapping_create(rows_size(shard), shard->config.mapping);
		if (shard->rows == NULL)
			return -ENOMEM;
	}
	shard->decides = true;
	return 0;
}

void flow_decide_fini(struct flow_shard *shard)
{
	if (shard->verdict_dropped != NULL)
		mapping_destroy(shard->verdict_dropped, dropped_size(shard));
	if (shard->rows != NULL)
		mapping_destroy(shard->rows, rows_size(shard));
}

size_t flow_decide_memory(const struct flow_shard *shard)
{
	return shard->rows == NULL ? 0 : rows_size(shard);
}

static void tell_rule(
	struct flow_shard *shard, uint32_t rule, uint64_t flows, uint64_t packets, uint64_t bytes)
{
	const struct flow_policy *policy = &shard->config.policy;

	if (shard->rows != NULL && (flows | packets | bytes) != 0)
		policy->count(policy->context, rule, flows, packets, bytes);
}

void flow_decide_dropped(struct flow_shard *shard, struct flow_dropped *dropped, uint32_t rule,
	uint64_t packets, uint64_t bytes)
{
	dropped->packets += packets;
	dropped->bytes += bytes;
	shard->counters.dropped_packets += packets;
	shard->counters.dropped_bytes += bytes;
	if (dropped->cause != FLOW_CAUSE_NONE)
		return;
	dropped->rule_packets += packets;
	dropped->rule_bytes += bytes;
	tell_rule(shard, rule, 0, packets, bytes);
}

void flow_decide_begin_dropped(struct flow_shard *shard, uint32_t position)
{
	struct flow_record *record = flow_table_record(&shard->table, position);

	if (record->was_dropped)
		return;
	record->was_dropped = 1;
	shard->verdict_dropped[position] = (struct flow_dropped){.cause = FLOW_CAUSE_NONE};
}

void flow_decide_uncounted(
	struct flow_shard *shard, uint32_t position, const struct packet_info *info)
{
	struct flow_dropped *dropped = &shard->verdict_dropped[position];

	flow_decide_begin_dropped(shard, position);
	dropped->packets++;
	dropped->bytes += info->bytes;
	dropped->rule_packets++;
	dropped->rule_bytes += info->bytes;
	shard->counters.dropped_packets++;
	shard->counters.dropped_bytes += info->bytes;
	if (shard->rows == NULL)
		return;
	/* its rule knows of it */
	shard->rows[position].end[info->from].packets--;
	shard->rows[position].end[info->from].bytes -= info->bytes;
}

void flow_decide_reported(struct flow_shard *shard, uint32_t rule, uint64_t packets, uint64_t bytes)
{
	tell_rule(shard, rule, 0, packets, bytes);
}

/* What is more than `known`, which is it all from then on. A record may have lost some to a new one: see begin_anew(). */
static uint64_t take_more(uint64_t all, uint64_t known)
{
	return all > known ? all - known : 0;
}

/* Rules that age are told when their flow had its last packet, of either direction. */
static void tell_seen(const struct flow_shard *shard, uint32_t position)
{
	const struct flow_record *record = flow_table_record(&shard->table, position);
	const struct flow_policy *policy = &shard->config.policy;
	const struct flow_row *row = &shard->rows[position];

	if (row->age_s == 0 || policy->seen == NULL)
		return;
	for (unsigned from = 0; from < 2; from++)
		if (row->end[from].rule != FLOW_RULE_NONE)
			policy->seen(policy->context, row->end[from].rule, record->last_seen_us);
}

void flow_decide_fold(struct flow_shard *shard, uint32_t position)
{
	const struct flow_record *record = flow_table_record(&shard->table, position);
	uint64_t packets[2], bytes[2];

	if (shard->rows == NULL)
		return;
	tell_seen(shard, position);
	struct flow_row_end *end = shard->rows[position].end;

	for (unsigned from = 0; from < 2; from++) {
		packets[from] = take_more(flow_packets(record, from), end[from].packets);
		bytes[from] = take_more(flow_bytes(record, from), end[from].bytes);
		end[from].packets += packets[from];
		end[from].bytes += bytes[from];
	}
	if (end[0].rule == end[1].rule) {
		tell_rule(shard, end[0].rule, 0, packets[0] + packets[1], bytes[0] + bytes[1]);
		return;
	}
	for (unsigned from = 0; from < 2; from++)
		tell_rule(shard, end[from].rule, 0, packets[from], bytes[from]);
}

void flow_decide_restart(struct flow_shard *shard, uint32_t position)
{
	const struct flow_record *record = flow_table_record(&shard->table, position);

	if (shard->rows == NULL)
		return;
	for (unsigned from = 0; from < 2; from++) {
		struct flow_row_end *end = &shard->rows[position].end[from];

		/* what rules know of is no less than what the record has, once it has been folded */
		end->packets -= flow_packets(record, from);
		end->bytes -= flow_bytes(record, from);
	}
}

/*
 * A flow comes to its rules, but for one that it had already. It has come to none if no direction has one, unless it is
 * for each packet to say.
 */
static void tell_flow(
	struct flow_shard *shard, const struct flow_record *record, const uint32_t had[2])
{
	const struct flow_row_end *end =
		shard->rows[flow_table_position_of(&shard->table, record)].end;
	const struct flow_policy *policy = &shard->config.policy;
	const bool by_packet = record->verdict[0] == FLOW_VERDICT_BY_PACKET ||
			       record->verdict[1] == FLOW_VERDICT_BY_PACKET;

	for (unsigned from = 0; from < 2; from++) {
		const uint32_t rule = end[from].rule;

		if (rule == had[0] || rule == had[1] || (from == 1 && rule == end[0].rule) ||
			(rule == FLOW_RULE_NONE && (by_packet || end[!from].rule != rule)))
			continue;
		tell_rule(shard, rule, 1, 0, 0);
		if (policy->came != NULL && rule != FLOW_RULE_NONE)
			policy->came(policy->context, record, from, rule);
	}
}

/* No rule's number, nor that of none. */
#define RULE_NEW (FLOW_RULE_NONE - 1)

static void write_row(struct flow_shard *shard, const struct flow_record *record,
	const struct flow_decision *decision)
{
	struct flow_row *row = &shard->rows[flow_table_position_of(&shard->table, record)];
	const uint32_t had[2] = {row->end[0].rule, row->end[1].rule};

	for (unsigned from = 0; from < 2; from++) {
		row->end[from].rule = decision->rule[from];
		row->end[from].mark = decision->mark[from];
	}
	row->marked = decision->marked;
	row->age_s = decision->age_s;
	row->initiator = decision->conversation.initiator != 0;
	row->midway = decision->conversation.midway;
	row->accepted = decision->conversation.accepted;
	row->follows = decision->conversation.follows;
	row->kept = decision->conversation.kept;
	row->asked = decision->conversation.asked & 3u;
	row->counted = decision->conversation.counted;
	/* a block is no rule, and not the lack of one */
	if (decision->cause == FLOW_CAUSE_NONE)
		tell_flow(shard, record, had);
}

/* Writes down what the policy said of a flow. True: its verdicts are others than before. */
static bool write_decision(
	struct flow_shard *shard, uint32_t position, const struct flow_decision *decision)
{
	struct flow_record *record = flow_table_record(&shard->table, position);
	const bool drops = flow_verdict_drops(decision->verdict[0]) ||
			   flow_verdict_drops(decision->verdict[1]);
	const bool changes =
		memcmp(record->verdict, decision->verdict, sizeof(record->verdict)) != 0 ||
		record->by_port != decision->by_port;

	memcpy(record->verdict, decision->verdict, sizeof(record->verdict));
	record->by_port = decision->by_port;
	record->by_rule = decision->cause == FLOW_CAUSE_NONE;
	record->not_plain = (decision->verdict[0] | decision->verdict[1]) != FLOW_VERDICT_FORWARD ||
			    decision->by_port || record->measured;
	if (drops && !record->was_dropped) {
		record->was_dropped = 1;
		shard->verdict_dropped[position] = (struct flow_dropped){0};
	}
	if (record->was_dropped)
		shard->verdict_dropped[position].cause = decision->cause;
	if (shard->rows != NULL)
		write_row(shard, record, decision);
	return changes;
}

static const struct flow_decision no_decision = {
	.cause = FLOW_CAUSE_NONE, .rule = {FLOW_RULE_NONE, FLOW_RULE_NONE}};

/* TCP that is no SYN. */
static bool is_midway(const struct packet_info *info)
{
	return info->key.proto == IPPROTO_TCP &&
	       (!(info->flags & PACKET_TCP) || (info->tcp.flags & (TCP_SYN | TCP_ACK)) != TCP_SYN);
}

static bool is_of_icmp(const struct flow_key *key)
{
	return key->proto == IPPROTO_ICMP || key->proto == IPPROTO_ICMPV6;
}

/* The part that an ICMP message has in a conversation. */
enum icmp_part { ICMP_ASKS, ICMP_ANSWERS, ICMP_TELLS };

static enum icmp_part icmp_part(const struct packet_info *info)
{
	const uint8_t type = (uint8_t)(info->tcp.window >> 8);

	if (info->flags & PACKET_ICMP_ERROR)
		return ICMP_TELLS;
	if (info->key.proto == IPPROTO_ICMPV6)
		return type == ICMP6_ECHO_REPLY ? ICMP_ANSWERS : ICMP_ASKS;
	return type == ICMP_ECHOREPLY || type == ICMP_TIMESTAMPREPLY || type == ICMP_INFO_REPLY ||
			       type == ICMP_ADDRESSREPLY
		       ? ICMP_ANSWERS
		       : ICMP_ASKS;
}

static struct flow_packet_ct icmp_ct(const struct flow_row *row, const struct packet_info *info)
{
	const bool asked = row->asked >> !info->from & 1;
	const uint32_t rule = row->end[info->from].rule;
	enum icmp_part part = icmp_part(info);

	/* later fragments do not say what they are of: they are no more than what goes with it */
	if (info->flags & (PACKET_LATER_FRAGMENT | PACKET_CUT))
		part = asked && !(row->asked >> info->from & 1) ? ICMP_ANSWERS : ICMP_ASKS;
	switch (part) {
	case ICMP_TELLS:
		return segment_is_related(&info->tcp)
			       ? (struct flow_packet_ct){.state = FLOW_CT_RELATED,
					 .answers = info->tcp.ack}
			       : (struct flow_packet_ct){.state = FLOW_CT_INVALID};
	case ICMP_ANSWERS:
		if (!asked)
			return (struct flow_packet_ct){.state = FLOW_CT_INVALID};
		return (struct flow_packet_ct){.state = FLOW_CT_ESTABLISHED,
			.reverse = true,
			.answers = rule == FLOW_RULE_NONE ? 0 : rule + 1};
	case ICMP_ASKS:
		break;
	}
	return (struct flow_packet_ct){
		.state = FLOW_CT_NEW, .begins = !(row->asked >> info->from & 1)};
}

/* The conversation of a live flow, as its row has it. */
static struct flow_conversation conversation_of(const struct flow_shard *shard, uint32_t position)
{
	const struct flow_record *record = flow_table_record(&shard->table, position);
	const struct flow_row *row = &shard->rows[position];

	return (struct flow_conversation){
		.initiator = row->initiator,
		.midway = row->midway,
		/* while the policy did not care, what was carried was */
		.accepted = row->kept ? row->accepted : !flow_is_uncarried(record),
		.followed = row->follows ? row->end[!row->initiator].rule : FLOW_RULE_NONE,
		.asked = row->asked,
		.asked_by = {row->end[1].rule, row->end[0].rule},
		.counted = row->counted,
	};
}

/* All ICMP between two hosts is one flow: the conversation is that of the request which the quoted packet is, or answers. */
static bool icmp_is_related(const struct flow_row *row, unsigned from, uint32_t *rule)
{
	const unsigned asker = row->asked >> from & 1 ? from : !from;

	*rule = row->end[!asker].rule;
	return row->asked >> asker & 1;
}

bool flow_decide_related(
	const struct flow_shard *shard, uint32_t position, unsigned from, uint32_t *answers)
{
	const struct flow_record *record = flow_table_record(&shard->table, position);
	uint32_t rule = FLOW_RULE_NONE;
	bool related = !flow_is_uncarried(record);

	if (flow_decide_keeps(shard, position)) {
		const struct flow_row *row = &shard->rows[position];

		if (is_of_icmp(&record->key)) {
			related = icmp_is_related(row, from, &rule);
		} else {
			related = row->accepted;
			rule = row->follows ? row->end[!row->initiator].rule : FLOW_RULE_NONE;
		}
	}
	*answers = rule == FLOW_RULE_NONE ? 0 : rule + 1;
	return related && !flow_is_dropped(record, from);
}

static struct flow_decision decision_before(const struct flow_shard *shard, uint32_t position)
{
	struct flow_decision decision = no_decision;

	decision.now_us = shard->now_us;
	if (shard->rows != NULL)
		decision.conversation = conversation_of(shard, position);
	return decision;
}

static struct flow_packet_ct ct_of(const struct flow_row *row, const struct packet_info *info)
{
	const bool midway = row->accepted ? row->midway : is_midway(info);

	if (is_of_icmp(&info->key))
		return icmp_ct(row, info);
	if (row->accepted && info->from != row->initiator)
		return (struct flow_packet_ct){.state = FLOW_CT_ESTABLISHED, .reverse = true};
	return (struct flow_packet_ct){
		.state = midway ? FLOW_CT_MIDWAY : FLOW_CT_NEW, .begins = !row->accepted};
}

struct flow_packet_ct flow_shard_ct(
	const struct flow_shard *shard, uint32_t position, const struct packet_info *info)
{
	struct flow_packet_ct ct = {.state = FLOW_CT_NEW};

	if (flow_decide_keeps(shard, position))
		ct = ct_of(&shard->rows[position], info);
	ct.now_us = shard->now_us;
	return ct;
}

/* Asks the policy about a flow, and writes down what it says. True: its verdicts are others than before. */
static bool decide(struct flow_shard *shard, uint32_t position)
{
	const struct flow_policy *policy = &shard->config.policy;
	struct flow_decision decision = decision_before(shard, position);

	policy->decide(policy->context, flow_table_record(&shard->table, position), &decision);
	return write_decision(shard, position, &decision);
}

/* A live flow was decided: its rules may let it be silent for longer or shorter than the `age_s` of before. */
static void file_again(struct flow_shard *shard, uint32_t position, uint32_t age_s)
{
	if (shard->rows == NULL || shard->rows[position].age_s == age_s)
		return;
	flow_age_unfile(
		shard, position, flow_record_phase(flow_table_record(&shard->table, position)));
	flow_age_file(shard, position);
}

uint32_t flow_shard_age_s(const struct flow_shard *shard, uint32_t position)
{
	return shard->rows == NULL ? 0 : shard->rows[position].age_s;
}

bool flow_shard_decide(struct flow_shard *shard, uint32_t position)
{
	const uint32_t age_s = flow_shard_age_s(shard, position);

	flow_decide_fold(shard, position);
	const bool changes = decide(shard, position);

	file_again(shard, position, age_s);
	return changes;
}

uint32_t flow_shard_decide_burst(struct flow_shard *shard, const uint32_t *positions, unsigned n)
{
	const struct flow_policy *policy = &shard->config.policy;
	const struct flow_record *records[FLOW_DECIDE_BURST];
	struct flow_decision decisions[FLOW_DECIDE_BURST];
	uint32_t changed = 0;

	if (n == 0)
		return 0;
	for (unsigned i = 0; i < n; i++) {
		records[i] = flow_table_record(&shard->table, positions[i]);
		if (shard->rows != NULL)
			__builtin_prefetch(&shard->rows[positions[i]], 1);
	}
	for (unsigned i = 0; i < n; i++)
		decisions[i] = decision_before(shard, positions[i]);
	policy->decide_burst(policy->context, records, decisions, n);
	for (unsigned i = 0; i < n; i++) {
		const uint32_t age_s = flow_shard_age_s(shard, positions[i]);

		flow_decide_fold(shard, positions[i]);
		changed |= (uint32_t)write_decision(shard, positions[i], &decisions[i]) << i;
		file_again(shard, positions[i], age_s);
	}
	return changed;
}

/* From here on the packet's sender is the one who begins the conversation. */
static void begin_conversation(struct flow_row *row, const struct packet_info *info)
{
	row->initiator = info->from != 0;
	row->midway = is_midway(info);
	row->accepted = row->follows = 0;
}

/*
 * A packet of the one who begins the conversation, or asks in it, was let pass by a rule: the other direction is decided by
 * that.
 */
static bool accept_by(struct flow_shard *shard, uint32_t position, const struct packet_info *info,
	const struct flow_packet_decision *packet)
{
	const struct flow_policy *policy = &shard->config.policy;
	struct flow_decision decision = decision_before(shard, position);
	struct flow_conversation *conversation = &decision.conversation;

	/* an ICMP flow is one of the end that asked first */
	if (conversation->asked == 0) {
		conversation->initiator = info->from != 0;
		conversation->counted |= packet->counted;
	} else {
		flow_decide_leave(shard, &info->key, info->from, packet->counted);
	}
	if (is_of_icmp(&info->key)) {
		conversation->asked |= (uint8_t)(1u << info->from);
		conversation->asked_by[info->from] = packet->rule;
	} else {
		conversation->accepted = true;
		conversation->followed = packet->rule;
	}
	policy->decide(policy->context, flow_table_record(&shard->table, position), &decision);
	return write_decision(shard, position, &decision);
}

/* The first packet of a flow that was decided, or of a conversation: it may have a decision of its own. */
static void decide_packet(struct flow_shard *shard, uint32_t position,
	const struct packet_info *info, struct flow_first *first)
{
	const struct flow_record *record = flow_table_record(&shard->table, position);
	const struct flow_policy *policy = &shard->config.policy;

	first->by_packet = flow_is_by_packet(record, info);
	if (!first->by_packet) {
		first->packet.verdict = flow_verdict(record, info->from);
		return;
	}
	policy->classify(
		policy->context, info, flow_shard_ct(shard, position, info), &first->packet);
	if (!flow_verdict_drops(first->packet.verdict) &&
		flow_decide_accepts(shard, position, info))
		(void)accept_by(shard, position, info, &first->packet);
	else
		flow_decide_leave(shard, &info->key, info->from, first->packet.counted);
}

void flow_decide_first(struct flow_shard *shard, uint32_t position, const struct packet_info *info,
	struct flow_first *first)
{
	struct flow_record *record = flow_table_record(&shard->table, position);

	*first = (struct flow_first){.packet.rule = FLOW_RULE_NONE};
	if (!shard->decides)
		return;
	/* where its ends are is what the packet shows */
	record->side = (info->flags & PACKET_SIDE) != 0;
	record->initiator = info->from != 0;
	if (shard->rows != NULL)
		shard->rows[position] = (struct flow_row){
			.end = {{.rule = RULE_NEW}, {.rule = RULE_NEW}},
			.initiator = info->from != 0,
			.midway = is_midway(info),
		};
	(void)decide(shard, position);
	decide_packet(shard, position, info, first);
}

bool flow_decide_anew(struct flow_shard *shard, uint32_t position, const struct packet_info *info,
	bool passed, struct flow_first *first)
{
	struct flow_record *record = flow_table_record(&shard->table, position);

	if (!flow_decide_keeps(shard, position))
		return false;
	record->side = (info->flags & PACKET_SIDE) != 0;
	record->initiator = info->from != 0;
	*first = (struct flow_first){.packet.rule = FLOW_RULE_NONE};
	begin_conversation(&shard->rows[position], info);
	shard->rows[position].end[0].rule = shard->rows[position].end[1].rule = RULE_NEW;
	(void)decide(shard, position);
	if (!passed)
		decide_packet(shard, position, info, first);
	return true;
}

bool flow_decide_accepts(
	const struct flow_shard *shard, uint32_t position, const struct packet_info *info)
{
	const struct flow_record *record = flow_table_record(&shard->table, position);

	if (!flow_decide_keeps(shard, position))
		return false;
	if (is_of_icmp(&info->key))
		return !(shard->rows[position].asked >> info->from & 1) &&
		       flow_shard_ct(shard, position, info).state == FLOW_CT_NEW;
	if (shard->rows[position].accepted)
		return false;
	/*
	 * Once the ends were heard, what comes by the other's port is no more than let pass: who begins a conversation has
	 * to come by the own port
	 */
	return !flow_sides_cross(record, info) || flow_is_uncarried(record);
}

bool flow_decide_accepted(struct flow_shard *shard, uint32_t position,
	const struct packet_info *info, const struct flow_packet_decision *packet)
{
	const uint32_t age_s = flow_shard_age_s(shard, position);

	flow_decide_fold(shard, position);
	if (!is_of_icmp(&info->key))
		begin_conversation(&shard->rows[position], info);
	const bool changes = accept_by(shard, position, info, packet);

	file_again(shard, position, age_s);
	return changes;
}

void flow_decide_leave(
	const struct flow_shard *shard, const struct flow_key *key, unsigned from, uint16_t counted)
{
	const struct flow_policy *policy = &shard->config.policy;

	if (counted != 0)
		policy->leave(policy->context, key, from, counted);
}

void flow_decide_ended(struct flow_shard *shard, uint32_t position)
{
	struct flow_row *row;

	if (shard->rows == NULL)
		return;
	row = &shard->rows[position];
	flow_decide_leave(shard, &flow_table_record(&shard->table, position)->key, row->initiator,
		row->counted);
	row->counted = 0;
}

void flow_decide_last(struct flow_shard *shard)
{
	uint32_t position;

	if (shard->rows == NULL)
		return;
	for (position = flow_table_next(&shard->table, 0); position != FLOW_NONE;
		position = flow_table_next(&shard->table, position + 1))
		shard->rows[position].counted = 0;
}

void flow_decide_reopened(struct flow_shard *shard, uint32_t position)
{
	if (shard->rows != NULL)
		tell_flow(shard, flow_table_record(&shard->table, position),
			(const uint32_t[2]){RULE_NEW, RULE_NEW});
}

void flow_decide_carried(struct flow_shard *shard, uint32_t position,
	const struct packet_info *info, const struct flow_packet_decision *packet)
{
	if (shard->rows == NULL)
		return;
	struct flow_row *row = &shard->rows[position];
	struct flow_row_end *end = &row->end[info->from];

	end->packets++;
	end->bytes += info->bytes;
	if (packet->marked) {
		row->marked |= (uint8_t)(1u << info->from);
		end->mark = packet->mark;
	}
	tell_rule(shard, packet->rule, 0, 1, info->bytes);
}

struct flow_conversation flow_shard_conversation(const struct flow_shard *shard, uint32_t position)
{
	struct flow_conversation conversation = {0};

	if (!flow_decide_keeps(shard, position))
		return conversation;
	conversation = conversation_of(shard, position);
	conversation.follows = shard->rows[position].follows;
	if (conversation.asked != 0) {
		conversation.accepted = true;
		conversation.initiator = conversation.asked == 2;
		conversation.follows =
			conversation.asked_by[conversation.initiator] != FLOW_RULE_NONE;
	}
	conversation.kept = true;
	return conversation;
}

struct flow_rules flow_shard_rules(const struct flow_shard *shard, uint32_t position)
{
	const struct flow_policy *policy = &shard->config.policy;
	struct flow_rules rules = {.rule = {FLOW_RULE_NONE, FLOW_RULE_NONE},
		.number = {FLOW_RULE_NONE, FLOW_RULE_NONE}};

	if (shard->rows == NULL)
		return rules;
	const struct flow_row *row = &shard->rows[position];

	for (unsigned from = 0; from < 2; from++) {
		rules.rule[from] = row->end[from].rule;
		rules.mark[from] = row->end[from].mark;
		if (policy->tell == NULL || rules.rule[from] == FLOW_RULE_NONE)
			continue;
		const struct flow_rule_told told = policy->tell(policy->context, rules.rule[from]);

		rules.number[from] = told.number;
		rules.to_port[from] = told.to_port;
	}
	rules.marked = row->marked;
	return rules;
}
