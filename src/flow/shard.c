/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow/shard.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <netinet/in.h>

#include "base/clock.h"
#include "base/mapping.h"
#include "flow/account.h"
#include "flow/decide.h"
#include "flow/end.h"
#include "flow/evict.h"
#include "flow/filing.h"
#include "flow/sides.h"
#include "packet/datagram.h"

/* Datagrams whose first fragment was dropped, of which a shard knows that more is to be. */
#define DROPPED_DATAGRAMS 1024

uint32_t flow_shard_part(uint32_t flows, unsigned n_shards)
{
	uint32_t part = flows / n_shards + 1;
	uint32_t deviation = 1;

	if (n_shards == 1)
		return flows;
	while (deviation * deviation < part)
		deviation++;
	part += 8 * deviation;
	return part < flows ? part : flows;
}

static size_t stamps_size(const struct flow_shard *shard)
{
	return flow_table_positions(&shard->table) * sizeof(*shard->stamps);
}

static size_t excess_size(const struct flow_shard *shard)
{
	return flow_table_positions(&shard->table) * sizeof(*shard->excess);
}

static size_t measure_size(const struct flow_shard *shard)
{
	return flow_table_positions(&shard->table) * sizeof(*shard->measure);
}

static int create_rows(struct flow_shard *shard)
{
	const struct flow_shard_config *config = &shard->config;

	if (config->stamped) {
		shard->stamps = mapping_create(stamps_size(shard), config->mapping);
		if (shard->stamps == NULL)
			return -ENOMEM;
	}
	if (config->octets) {
		shard->excess = mapping_create(excess_size(shard), config->mapping);
		if (shard->excess == NULL)
			return -ENOMEM;
	}
	if (config->measure) {
		shard->measure = mapping_create(measure_size(shard), config->mapping);
		if (shard->measure == NULL)
			return -ENOMEM;
	}
	return flow_decide_init(shard);
}

int flow_shard_create(struct flow_shard **out, const struct flow_shard_config *config)
{
	struct flow_shard *shard = aligned_alloc(64, sizeof(*shard));

	if (shard == NULL)
		return -ENOMEM;
	*shard = (struct flow_shard){.config = *config};
	int ret = flow_table_init(&shard->table, config->capacity, config->secret, config->mapping);

	if (ret < 0) {
		free(shard);
		return ret;
	}
	ret = tcp_memory_init(&shard->memory, config->capacity, config->secret);
	if (ret == 0 && config->tcp_strict)
		ret = fragments_create(&shard->dropped, DROPPED_DATAGRAMS, NULL, NULL);
	if (ret == 0)
		ret = create_rows(shard);
	if (ret < 0) {
		flow_shard_destroy(shard);
		return ret;
	}
	flow_shard_begin(shard, 0, 0);
	*out = shard;
	return 0;
}

void flow_shard_destroy(struct flow_shard *shard)
{
	if (shard == NULL)
		return;
	tcp_memory_fini(&shard->memory);
	if (shard->stamps != NULL)
		mapping_destroy(shard->stamps, stamps_size(shard));
	if (shard->excess != NULL)
		mapping_destroy(shard->excess, excess_size(shard));
	if (shard->measure != NULL)
		mapping_destroy(shard->measure, measure_size(shard));
	flow_decide_fini(shard);
	flow_table_fini(&shard->table);
	fragments_destroy(shard->dropped);
	free(shard);
}

size_t flow_shard_memory(const struct flow_shard *shard)
{
	return sizeof(*shard) + flow_table_memory(&shard->table) +
	       tcp_memory_bytes(shard->config.capacity) +
	       (shard->dropped == NULL ? 0 : fragments_memory(shard->dropped)) +
	       (shard->stamps == NULL ? 0 : stamps_size(shard)) +
	       (shard->excess == NULL ? 0 : excess_size(shard)) +
	       (shard->measure == NULL ? 0 : measure_size(shard)) + flow_decide_memory(shard);
}

void flow_shard_begin(struct flow_shard *shard, uint64_t origin_us, uint32_t run)
{
	for (unsigned i = 0; i < FLOW_N_PHASES; i++)
		wheel_init(&shard->wheel[i], shard->table.records);
	flow_table_restart(&shard->table);
	if (shard->dropped != NULL)
		fragments_clear(shard->dropped);
	tcp_memory_clear(&shard->memory);
	shard->now_us = 0;
	shard->waited_us = 0;
	shard->tick = 0;
	shard->behind = false;
	shard->refile = FLOW_NONE;
	shard->origin_us = origin_us;
	shard->run = run;
}

static uint64_t came_us(const struct flow_shard *shard)
{
	return (shard->now_us - shard->waited_us) & CLOCK_MAX_US;
}

static struct flow_stamps *stamps_of(struct flow_shard *shard, const struct flow_record *record)
{
	return &shard->stamps[record - shard->table.records];
}

/* Its first packet, or the first one after an active report. */
static void stamp_first(struct flow_shard *shard, const struct flow_record *record)
{
	if (shard->stamps != NULL)
		*stamps_of(shard, record) = (struct flow_stamps){
			.start_us = shard->stamp_us, .end_us = shard->stamp_us};
}

/*
 * The record's times, after a packet, and the stamps of its first and last. What waited may have come before others that
 * were counted before it.
 */
static void see(struct flow_shard *shard, struct flow_record *record)
{
	uint64_t time_us = came_us(shard);

	if (shard->waited_us != 0 && time_us < record->start_us) {
		record->start_us = time_us & CLOCK_MAX_US;
		if (shard->stamps != NULL)
			stamps_of(shard, record)->start_us = shard->stamp_us;
	}
	if (shard->waited_us != 0 && time_us < record->last_seen_us)
		return;
	record->last_seen_us = time_us & CLOCK_MAX_US;
	if (shard->stamps != NULL)
		stamps_of(shard, record)->end_us = shard->stamp_us;
}

/* What the packet has beside its IP packet, where that is counted. */
static void count_excess(struct flow_shard *shard, const struct flow_record *record, unsigned from)
{
	if (shard->excess != NULL)
		flow_shard_add_excess(shard, flow_table_position_of(&shard->table, record), from,
			shard->packet_excess);
}

static void set_excess(struct flow_shard *shard, uint32_t position, unsigned from, int64_t excess)
{
	if (shard->excess != NULL)
		shard->excess[position].from[from] = excess;
}

/* A further packet of a flow: what is to be measured of it is. */
static void measure(
	struct flow_shard *shard, const struct flow_record *record, const struct packet_info *info)
{
	if (record->measured)
		flow_measure_packet(&shard->measure[flow_table_position_of(&shard->table, record)],
			info, came_us(shard));
}

/* A flow begins: it is measured from here on, if that is wanted of it. */
static void measure_first(
	struct flow_shard *shard, struct flow_record *record, const struct packet_info *info)
{
	const struct flow_shard_config *config = &shard->config;

	if (config->measures != NULL && !config->measures(config->measures_context, &record->key))
		return;
	record->measured = record->not_plain = 1;
	flow_measure_first(&shard->measure[flow_table_position_of(&shard->table, record)], info,
		came_us(shard));
}

static void count(
	struct flow_shard *shard, struct flow_record *record, const struct packet_info *info)
{
	unsigned from = info->from;

	if (flow_is_fresh(record)) {
		flow_begin_again(record, came_us(shard));
		stamp_first(shard, record);
	}
	flow_count_packet(record, from, info->bytes);
	count_excess(shard, record, from);
	measure(shard, record, info);
	see(shard, record);
	if (info->flags & PACKET_TCP)
		record->end[from].tcp_flags |= info->tcp.flags;
	shard->counters.packets++;
	shard->counters.bytes += info->bytes;
}

/*
 * A packet that is dropped by its flow's verdict, or by the one `rule` that decided it: the flow is not idle, and nothing else is
 * learned of it.
 */
static void count_dropped(
	struct flow_shard *shard, uint32_t position, const struct packet_info *info, uint32_t rule)
{
	struct flow_record *record = flow_table_record(&shard->table, position);
	struct flow_dropped *dropped = &shard->verdict_dropped[position];

	if (flow_is_fresh(record)) {
		flow_begin_again(record, came_us(shard));
		stamp_first(shard, record);
	}
	flow_decide_begin_dropped(shard, position);
	flow_decide_dropped(shard, dropped, rule, 1, info->bytes);
	see(shard, record);
}

void flow_shard_uncount(struct flow_shard *shard, uint32_t position, const struct packet_info *info)
{
	struct flow_record *record = flow_table_record(&shard->table, position);
	const unsigned from = info->from;
	const uint64_t packets = flow_packets(record, from), bytes = flow_bytes(record, from);

	/* another conversation began on the record since then: the packet was reported with the one before */
	if (packets == 0 || bytes < info->bytes)
		return;
	flow_decide_fold(shard, position);
	flow_set_counts(record, from, packets - 1, bytes - info->bytes);
	if (shard->excess != NULL)
		flow_shard_add_excess(shard, position, from, -shard->packet_excess);
	shard->counters.packets--;
	shard->counters.bytes -= info->bytes;
	flow_decide_uncounted(shard, position, info);
}

/* The first packet of a flow is counted, unless it is dropped. */
static void count_first(struct flow_shard *shard, uint32_t position, const struct packet_info *info,
	const struct flow_first *first)
{
	struct flow_record *record = flow_table_record(&shard->table, position);

	if (flow_verdict_drops(first->packet.verdict)) {
		count_dropped(shard, position, info,
			first->by_packet ? first->packet.rule
					 : flow_decide_rule(shard, position, info->from));
		return;
	}
	flow_count_packet(record, info->from, info->bytes);
	count_excess(shard, record, info->from);
	if (info->flags & PACKET_TCP)
		record->end[info->from].tcp_flags = info->tcp.flags;
	flow_shard_counted(shard, 1, info->bytes);
	if (first->by_packet)
		flow_decide_carried(shard, position, info, &first->packet);
}

static bool is_icmp(const struct packet_info *info)
{
	return info->key.proto == IPPROTO_ICMP || info->key.proto == IPPROTO_ICMPV6;
}

/* A conversation begins with this packet: the record's state, which it has no trace of another one in, follows from it. */
static enum flow_state begin_state(
	struct flow_shard *shard, uint32_t position, const struct packet_info *info)
{
	struct flow_record *record = flow_table_record(&shard->table, position);
	const bool not_plain = record->not_plain;
	const uint8_t offload = (uint8_t)record->offload;
	const uint64_t now_us = came_us(shard);
	const enum flow_state state =
		info->key.proto == IPPROTO_TCP ? FLOW_PICKED_UP : FLOW_REQUEST;

	record->start_us = now_us & CLOCK_MAX_US;
	record->heard =
		flow_shard_is_two_sided(shard, &info->key) ? FLOW_HEARD_ONE : FLOW_HEARD_APART;
	record->status = flow_status(now_us, state, info->from != 0);
	record->not_plain = not_plain;
	record->offload = offload;
	record->side = (info->flags & PACKET_SIDE) != 0;
	stamp_first(shard, record);
	if (is_icmp(info))
		record->end[info->from].tcp_window = info->tcp.window;
	if (!(info->flags & PACKET_TCP))
		return state;
	flow_tcp_first(record, info->from, &info->tcp);
	return (enum flow_state)record->state;
}

/*
 * Fills a record that is zeroed but for its key and its verdicts from the first packet of its flow.
 */
static void start(struct flow_shard *shard, uint32_t position, const struct packet_info *info,
	const struct flow_first *first)
{
	struct flow_record *record = flow_table_record(&shard->table, position);
	const enum flow_state state = begin_state(shard, position, info);

	set_excess(shard, position, 0, 0);
	set_excess(shard, position, 1, 0);
	if (shard->measure != NULL)
		measure_first(shard, record, info);
	count_first(shard, position, info, first);
	flow_age_file_new(shard, position, state, info->key.proto);
	shard->counters.learned++;
	shard->counters.learned_by_proto[info->key.proto]++;
	shard->wire_flows[flow_key_wire(&info->key)]++;
}

static void tell_learned(const struct flow_shard *shard, uint32_t position,
	const struct flow_first *first, struct flow_learned *learned)
{
	learned->verdict = first->packet.verdict;
	learned->cause = flow_verdict_drops(first->packet.verdict)
				 ? flow_shard_dropped(shard, position).cause
				 : FLOW_CAUSE_NONE;
}

uint32_t flow_shard_learn_packet(
	struct flow_shard *shard, const struct packet_info *info, struct flow_learned *learned)
{
	struct flow_first first;

	if (shard->table.count == shard->table.capacity)
		flow_evict(shard, 1);
	uint32_t position = flow_table_insert(&shard->table, &info->key, info->hash);

	flow_decide_first(shard, position, info, &first);
	start(shard, position, info, &first);
	tell_learned(shard, position, &first, learned);
	return position;
}

uint32_t flow_shard_learn(struct flow_shard *shard, const struct packet_info *info)
{
	struct flow_learned learned;

	return flow_shard_learn_packet(shard, info, &learned);
}

/* Those that have nothing decided are started in a loop of their own. */
static void start_burst(struct flow_shard *shard, const struct packet_info *const *infos,
	unsigned n, const uint32_t *positions, struct flow_learned *learned)
{
	const struct flow_first plain = {.packet.rule = FLOW_RULE_NONE};
	struct flow_first first[FLOW_BURST];

	if (!shard->decides) {
		for (unsigned i = 0; i < n; i++) {
			start(shard, positions[i], infos[i], &plain);
			learned[i] = (struct flow_learned){.cause = FLOW_CAUSE_NONE};
		}
		return;
	}
	for (unsigned i = 0; i < n; i++)
		flow_decide_first(shard, positions[i], infos[i], &first[i]);
	for (unsigned i = 0; i < n; i++) {
		start(shard, positions[i], infos[i], &first[i]);
		tell_learned(shard, positions[i], &first[i], &learned[i]);
	}
}

void flow_shard_learn_burst(struct flow_shard *shard, const struct packet_info *const *infos,
	unsigned n, struct flow_learned *learned)
{
	const struct flow_key *keys[FLOW_BURST];
	uint64_t hashes[FLOW_BURST];
	uint32_t positions[FLOW_BURST];

	if (n == 0 || n > shard->table.capacity) {
		/* of a table smaller than the burst the last ones stay */
		for (unsigned i = 0; i < n; i++)
			(void)flow_shard_learn_packet(shard, infos[i], &learned[i]);
		return;
	}
	if (n > shard->table.capacity - shard->table.count)
		flow_evict(shard, n - (shard->table.capacity - shard->table.count));
	for (unsigned i = 0; i < n; i++) {
		keys[i] = &infos[i]->key;
		hashes[i] = infos[i]->hash;
	}
	flow_table_insert_burst(&shard->table, keys, hashes, positions, n);
	start_burst(shard, infos, n, positions, learned);
}

/*
 * The first packet of a flow that is let pass, after all before it were dropped: what those said is forgotten, and the
 * conversation is this packet's sender's.
 */
static void begin_here(struct flow_shard *shard, uint32_t position, const struct packet_info *info)
{
	struct flow_record *record = flow_table_record(&shard->table, position);

	flow_age_unfile(shard, position, flow_record_phase(record));
	memset(record->end, 0, sizeof(record->end));
	memset(record->tcp_end, 0, sizeof(record->tcp_end));
	memset(record->tcp_max_end, 0, sizeof(record->tcp_max_end));
	flow_set_counts(record, 0, 0, 0);
	flow_set_counts(record, 1, 0, 0);
	record->tcp_note = 0;
	(void)begin_state(shard, position, info);
	flow_count_packet(record, info->from, info->bytes);
	count_excess(shard, record, info->from);
	if (info->flags & PACKET_TCP)
		record->end[info->from].tcp_flags = info->tcp.flags;
	flow_shard_counted(shard, 1, info->bytes);
	flow_age_file(shard, position);
}

/*
 * A new conversation on the key of another, which ends: same position, new record. What is done with it was decided by
 * the key, unless it counts who began it. `passed`: the packet went on already. False: its rule drops it.
 */
static bool reopen(
	struct flow_shard *shard, uint32_t position, const struct packet_info *info, bool passed)
{
	struct flow_record *record = flow_table_record(&shard->table, position);
	enum flow_state state = (enum flow_state)record->state;
	struct flow_first first = {.packet.rule = FLOW_RULE_NONE};
	bool closed = state == FLOW_FIN_BOTH || state == FLOW_FIN_ACK_0 || state == FLOW_FIN_ACK_1;

	/* both had closed, and would not talk anew if the last acknowledgement had not come */
	flow_age_unfile(shard, position, flow_record_phase(record));
	flow_report(shard, record, flow_end_reason(record, closed ? FLOW_END_FIN : FLOW_END_IDLE));
	shard->wire_flows[flow_key_wire(&record->key)]--;
	*record = (struct flow_record){
		.key = info->key,
		.verdict = {record->verdict[0], record->verdict[1]},
		.not_plain = record->not_plain,
		.was_dropped = record->was_dropped,
		.by_port = record->by_port,
		.by_rule = record->by_rule,
	};
	/* where it is not decided anew its packet has been decided, and is carried */
	const bool anew = flow_decide_anew(shard, position, info, passed, &first);

	start(shard, position, info, &first);
	if (!anew)
		flow_decide_reopened(shard, position);
	return !flow_verdict_drops(first.packet.verdict);
}

/* A packet of a flow that is not TCP. TCP without a whole header is counted, and moves nothing: its state is another. */
static void reply(struct flow_record *record, const struct packet_info *info)
{
	if (info->from == record->initiator || record->state != FLOW_REQUEST)
		return;
	record->state = FLOW_REPLIED;
	if (is_icmp(info))
		record->end[info->from].tcp_window = info->tcp.window;
}

/*
 * Files a record anew when its state asks for another wheel than that of `phase`, or for an earlier end than that
 * of `silent_before` (flow_silent_state()).
 */
static void refile(struct flow_shard *shard, uint32_t position, enum flow_state silent_before,
	enum flow_phase phase)
{
	const struct flow_record *record = flow_table_record(&shard->table, position);
	enum flow_state silent_after = flow_silent_state(record);
	uint8_t proto = record->key.proto;

	if (flow_record_phase(record) == phase &&
		flow_idle_timeout(shard, position, silent_after, proto) >=
			flow_idle_timeout(shard, position, silent_before, proto))
		return;
	flow_age_unfile(shard, position, phase);
	flow_age_file(shard, position);
}

/* flow_sides_hear(), for a record that is on a wheel. */
static bool shard_hear(struct flow_shard *shard, uint32_t position, const struct packet_info *info)
{
	struct flow_record *record = flow_table_record(&shard->table, position);
	const enum flow_phase phase = flow_record_phase(record);
	const bool heard = flow_sides_hear(record, info);

	if (flow_record_phase(record) != phase) {
		flow_age_unfile(shard, position, phase);
		flow_age_file(shard, position);
	}
	return heard;
}

static void remember_dropped(struct flow_shard *shard, const struct packet_info *info)
{
	if (info->flags & PACKET_FIRST_FRAGMENT)
		fragments_drop(shard->dropped, datagram_fingerprint(shard->config.secret, info),
			shard->now_us);
}

/*
 * Is this a later fragment of a datagram whose first was dropped? It could not be put together without that, but with
 * another one from elsewhere. A new first fragment is judged anew.
 */
static bool was_dropped(struct flow_shard *shard, const struct packet_info *info)
{
	uint64_t fingerprint = datagram_fingerprint(shard->config.secret, info);

	if (info->flags & PACKET_LATER_FRAGMENT)
		return info->key.proto == IPPROTO_TCP &&
		       fragments_is_dropped(shard->dropped, fingerprint, shard->now_us);
	fragments_forget(shard->dropped, fingerprint);
	return false;
}

/*
 * What was remembered, and counted in the record that was there, is the beginning of a new one: its packets go
 * over to it, but for those that were reported already.
 */
static void begin_anew(struct flow_shard *shard, uint32_t position, const struct packet_info *info,
	const struct tcp_remembered *begin)
{
	struct flow_record *record = flow_table_record(&shard->table, position);
	struct packet_info first = *info;
	unsigned from = begin->from & 1u;
	uint64_t packets = flow_packets(record, from), bytes = flow_bytes(record, from);
	bool here = begin->first_us >= record->start_us && begin->packets <= packets &&
		    begin->bytes <= bytes;

	if (here) {
		flow_set_counts(record, from, packets - begin->packets, bytes - begin->bytes);
		if (shard->excess != NULL)
			flow_shard_add_excess(shard, position, from, -begin->excess);
		if (record->last_seen_us == begin->last_us) {
			record->last_seen_us = begin->before_us & CLOCK_MAX_US;
			if (shard->stamps != NULL)
				stamps_of(shard, record)->end_us -=
					begin->last_us - begin->before_us;
			record->end[from].tcp_flags &= (uint8_t)~begin->new_flags;
		}
	}
	first.from = begin->from;
	first.tcp = begin->segment;
	first.bytes = begin->bytes;
	first.flags = (uint8_t)((info->flags & ~(PACKET_SIDE | PACKET_FRAGMENT)) |
				(begin->side ? PACKET_SIDE : 0));
	(void)reopen(shard, position, &first, true);
	/* they were counted when they came */
	shard->counters.packets--;
	shard->counters.bytes -= begin->bytes;
	shard->counters.tcp_odd -= begin->odd;
	flow_set_counts(record, from, here ? begin->packets : 0, here ? begin->bytes : 0);
	set_excess(shard, position, from, here ? begin->excess : 0);
	if (here)
		record->start_us = begin->first_us & CLOCK_MAX_US;
	record->last_seen_us = begin->last_us & CLOCK_MAX_US;
	if (record->measured)
		flow_measure_began(
			&shard->measure[position], begin->first_us, begin->last_us, begin->packets);
	if (shard->stamps != NULL) {
		stamps_of(shard, record)->start_us -= came_us(shard) - record->start_us;
		stamps_of(shard, record)->end_us -= came_us(shard) - begin->last_us;
	}
	flow_age_unfile(shard, position, flow_record_phase(record));
	flow_age_file(shard, position);
	if (flow_shard_is_two_sided(shard, &info->key))
		shard_hear(shard, position, info);
}

/*
 * A TCP segment that is not plain: moves the record, or begins another one. TCP_ANEW: it showed that another one had begun,
 * and the rules of that one drop it.
 */
static enum tcp_verdict account_tcp(
	struct flow_shard *shard, uint32_t position, const struct packet_info *info)
{
	struct flow_record *record = flow_table_record(&shard->table, position);
	const struct tcp_sight sight = {
		.now_us = came_us(shard),
		.bytes = info->bytes,
		.excess = shard->packet_excess,
		.from = info->from,
		.side = info->flags & PACKET_SIDE,
		.two_sided = flow_shard_is_two_sided(shard, &info->key),
		.segment = &info->tcp,
	};
	struct tcp_remembered begin;
	enum tcp_verdict verdict =
		tcp_memory_track(&shard->memory, record, &sight, shard->config.tcp_strict, &begin);

	if (verdict == TCP_ANEW) {
		begin_anew(shard, position, info, &begin);
		if (flow_is_dropped(record, info->from))
			return verdict;
		verdict = flow_tcp_track(record, info->from, &info->tcp);
	}
	return verdict;
}

/* A packet that no verdict drops. `decided`: it began a conversation, and was counted by the rule of that. */
static enum flow_account account_carried(
	struct flow_shard *shard, uint32_t position, const struct packet_info *info, bool *decided)
{
	struct flow_record *record = flow_table_record(&shard->table, position);
	enum flow_state before = (enum flow_state)record->state;
	enum tcp_verdict verdict = TCP_IN_WINDOW;

	if (shard->dropped != NULL && info->flags & PACKET_FRAGMENT && was_dropped(shard, info))
		return FLOW_ACCOUNT_TCP_ODD;
	if (shard->waited_us == 0 && account_counted(record, info, shard->now_us, ACCOUNT_OF_ANY)) {
		flow_shard_counted(shard, 1, info->bytes);
		count_excess(shard, record, info->from);
		measure(shard, record, info);
		if (shard->stamps != NULL)
			stamps_of(shard, record)->end_us = shard->stamp_us;
		return FLOW_ACCOUNT_GO;
	}
	enum flow_state silent_before = flow_silent_state(record);

	if (flow_shard_is_two_sided(shard, &info->key) && !shard_hear(shard, position, info)) {
		count(shard, record, info);
		return FLOW_ACCOUNT_ONE_SIDED;
	}
	enum flow_phase phase = flow_record_phase(record);

	if (info->flags & PACKET_TCP) {
		uint64_t learned = shard->counters.learned;
		unsigned initiator = record->initiator;

		verdict = account_tcp(shard, position, info);
		if (verdict == TCP_REOPEN) {
			*decided = flow_decide_keeps(shard, position);
			return reopen(shard, position, info, false) ? FLOW_ACCOUNT_GO
								    : FLOW_ACCOUNT_DROPPED;
		}
		if (verdict == TCP_ANEW) {
			count_dropped(shard, position, info,
				flow_decide_rule(shard, position, info->from));
			return FLOW_ACCOUNT_DROPPED;
		}
		if (shard->counters.learned != learned) {
			/* begun anew: with its SYN, and filed so */
			before = silent_before = FLOW_SYN_SENT;
			phase = FLOW_PHASE_NEW;
		} else if (record->initiator != initiator) {
			/* the SYN of the conversation, only late */
			record->side = !!(info->flags & PACKET_SIDE);
		}
		shard->counters.tcp_odd += verdict == TCP_ODD || verdict == TCP_PASSED;
		if (verdict == TCP_ODD && shard->config.tcp_strict) {
			remember_dropped(shard, info);
			return FLOW_ACCOUNT_TCP_ODD; /* dropped: it leaves no trace in the record */
		}
		if (verdict == TCP_IN_WINDOW && info->flags & PACKET_FIRST_FRAGMENT)
			flow_tcp_forget_window(record);
	} else {
		reply(record, info);
	}
	count(shard, record, info);
	if (record->state != before || flow_silent_state(record) != silent_before)
		refile(shard, position, silent_before, phase);
	return FLOW_ACCOUNT_GO;
}

/* Where the ends are is known better than it was at `place`: the decision may be another one. */
static void look_where(struct flow_shard *shard, uint32_t position, unsigned place)
{
	const struct flow_record *record = flow_table_record(&shard->table, position);

	if (__builtin_expect(flow_sides_place(record, 0) != place, 0) && shard->decides)
		(void)flow_shard_decide(shard, position);
}

enum flow_account flow_shard_account(
	struct flow_shard *shard, uint32_t position, const struct packet_info *info)
{
	const struct flow_record *record = flow_table_record(&shard->table, position);
	const unsigned place = flow_sides_place(record, 0);

	if (__builtin_expect(flow_is_dropped(record, info->from), 0)) {
		count_dropped(shard, position, info, flow_decide_rule(shard, position, info->from));
		return FLOW_ACCOUNT_DROPPED;
	}
	bool decided = false;
	const enum flow_account account = account_carried(shard, position, info, &decided);

	look_where(shard, position, place);
	return account;
}

/*
 * A packet that was let pass by itself. Where nothing of its flow was before, it begins the conversation; and where nobody
 * had begun one that was let pass, it does.
 */
static enum flow_account account_passed(
	struct flow_shard *shard, uint32_t position, const struct packet_info *info, bool *decided)
{
	const struct flow_record *record = flow_table_record(&shard->table, position);

	if (!flow_is_uncarried(record) || !flow_decide_accepts(shard, position, info))
		return account_carried(shard, position, info, decided);
	begin_here(shard, position, info);
	return FLOW_ACCOUNT_GO;
}

enum flow_account flow_shard_account_packet(struct flow_shard *shard, uint32_t position,
	const struct packet_info *info, const struct flow_packet_decision *packet)
{
	const unsigned place = flow_sides_place(flow_table_record(&shard->table, position), 0);

	if (flow_verdict_drops(packet->verdict)) {
		count_dropped(shard, position, info, packet->rule);
		return FLOW_ACCOUNT_DROPPED;
	}
	bool decided = false;
	const enum flow_account account = account_passed(shard, position, info, &decided);
	const bool goes = account == FLOW_ACCOUNT_GO || account == FLOW_ACCOUNT_ONE_SIDED;

	if (goes && !decided)
		flow_decide_carried(shard, position, info, packet);
	/* last: it tells rules of what the record has, but for what they know */
	look_where(shard, position, place);
	if (goes && flow_decide_accepts(shard, position, info))
		(void)flow_decide_accepted(shard, position, info, packet);
	else
		flow_decide_leave(shard, &info->key, info->from, packet->counted);
	return account;
}

/*
 * Has the sender of a quoted TCP segment sent its number not long ago? Who cannot see the conversation would have to
 * guess it (RFC 5927 section 4.1). Numbers that are not known, as of a flow that is back from hardware, refuse nothing.
 */
static bool quoted_was_sent(const struct flow_record *record, const struct packet_info *quoted)
{
	unsigned from = quoted->from;
	bool began = record->state == FLOW_SYN_SENT || record->state == FLOW_SYN_RECEIVED;
	uint32_t oldest = record->tcp_end[from] - TCP_ACK_LAG;

	if (record->key.proto != IPPROTO_TCP || quoted->flags & PACKET_LATER_FRAGMENT)
		return true;
	/* only the initiator has sent */
	if ((record->state == FLOW_SYN_SENT || record->state == FLOW_PICKED_UP) &&
		from != record->initiator)
		return false;
	if (!began && !tcp_is_known(record, from))
		return true;
	if (!began && tcp_is_known(record, !from)) {
		uint32_t acknowledged = record->tcp_max_end[from] - tcp_window_bytes(record, !from);

		if (tcp_beyond(acknowledged, oldest) < 0)
			oldest = acknowledged;
	}
	return tcp_between(quoted->tcp.seq, oldest, record->tcp_end[from]);
}

struct flow_quoted flow_shard_quoted(struct flow_shard *shard, const struct packet_info *quoted)
{
	uint32_t position = flow_table_find(&shard->table, &quoted->key, quoted->hash);

	if (position == FLOW_NONE)
		return (struct flow_quoted){0};
	struct flow_record *record = flow_table_record(&shard->table, position);

	if (!quoted_was_sent(record, quoted))
		return (struct flow_quoted){0};
	if (record->icmp_errors != UINT8_MAX)
		record->icmp_errors++;
	struct flow_quoted told = {.known = true};

	told.related = flow_decide_related(shard, position, quoted->from, &told.answers);
	return told;
}

void flow_shard_kill(struct flow_shard *shard, uint32_t position)
{
	flow_age_unfile(
		shard, position, flow_record_phase(flow_table_record(&shard->table, position)));
	flow_end_record(shard, position, FLOW_END_KILLED);
}

void flow_shard_end_all(struct flow_shard *shard)
{
	flow_decide_last(shard);
	for (uint32_t position = flow_table_next(&shard->table, 0); position != FLOW_NONE;
		position = flow_table_next(&shard->table, position)) {
		const struct flow_record *record = flow_table_record(&shard->table, position);

		flow_end_record(shard, position, flow_end_reason(record, FLOW_END_SHUTDOWN));
	}
	flow_shard_flush(shard);
	for (unsigned i = 0; i < FLOW_N_PHASES; i++)
		wheel_init(&shard->wheel[i], shard->table.records);
	shard->behind = false;
}

void flow_counters_add(struct flow_counters *sum, const struct flow_counters *counters)
{
	sum->packets += counters->packets;
	sum->bytes += counters->bytes;
	sum->learned += counters->learned;
	for (unsigned i = 0; i < FLOW_N_ENDS; i++)
		sum->ended[i] += counters->ended[i];
	sum->reported_packets += counters->reported_packets;
	sum->reported_bytes += counters->reported_bytes;
	sum->dropped_packets += counters->dropped_packets;
	sum->dropped_bytes += counters->dropped_bytes;
	sum->tcp_odd += counters->tcp_odd;
	for (unsigned i = 0; i < 256; i++)
		sum->learned_by_proto[i] += counters->learned_by_proto[i];
}
