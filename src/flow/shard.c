/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow/shard.h"

#include <errno.h>
#include <stdlib.h>

#include <netinet/in.h>

#include "base/clock.h"
#include "flow/account.h"
#include "flow/age.h"

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
	flow_shard_begin(shard, 0, 0);
	*out = shard;
	return 0;
}

void flow_shard_destroy(struct flow_shard *shard)
{
	if (shard == NULL)
		return;
	flow_table_fini(&shard->table);
	free(shard);
}

size_t flow_shard_memory(const struct flow_shard *shard)
{
	return sizeof(*shard) + flow_table_memory(&shard->table);
}

void flow_shard_begin(struct flow_shard *shard, uint64_t origin_us, uint32_t run)
{
	for (unsigned i = 0; i < FLOW_N_PHASES; i++)
		wheel_init(&shard->wheel[i], shard->table.records);
	flow_table_restart(&shard->table);
	shard->now_us = 0;
	shard->tick = 0;
	shard->behind = false;
	shard->origin_us = origin_us;
	shard->run = run;
}

static void count(
	struct flow_shard *shard, struct flow_record *record, const struct packet_info *info)
{
	unsigned from = info->from;

	flow_count_packet(record, from, info->bytes);
	record->last_seen_us = shard->now_us & CLOCK_MAX_US;
	if (info->flags & PACKET_TCP)
		record->end[from].tcp_flags |= info->tcp.flags;
	shard->counters.packets++;
	shard->counters.bytes += info->bytes;
}

/* Fills a record that is zeroed but for its key from the first packet of its flow. */
static void start(struct flow_shard *shard, uint32_t position, const struct packet_info *info)
{
	struct flow_record *record = flow_table_record(&shard->table, position);
	enum flow_state state = info->key.proto == IPPROTO_TCP ? FLOW_PICKED_UP : FLOW_REQUEST;
	uint64_t now_us = shard->now_us & CLOCK_MAX_US;

	record->start_us = now_us & CLOCK_MAX_US;
	record->status =
		flow_status(now_us, state, info->from != 0, (info->flags & PACKET_SIDE) != 0);
	flow_count_packet(record, info->from, info->bytes);
	if (info->flags & PACKET_TCP) {
		flow_tcp_first(record, info->from, &info->tcp);
		record->end[info->from].tcp_flags = info->tcp.flags;
		state = (enum flow_state)record->state;
	}
	flow_shard_counted(shard, 1, info->bytes);
	flow_age_file_new(shard, position, state, info->key.proto);
	shard->counters.learned++;
	shard->counters.learned_by_proto[info->key.proto]++;
	shard->wire_flows[flow_key_wire(&info->key)]++;
}

uint32_t flow_shard_learn(struct flow_shard *shard, const struct packet_info *info)
{
	if (shard->table.count == shard->table.capacity)
		flow_evict(shard, 1);
	uint32_t position = flow_table_insert(&shard->table, &info->key, info->hash);

	start(shard, position, info);
	return position;
}

void flow_shard_learn_burst(
	struct flow_shard *shard, const struct packet_info *const *infos, unsigned n)
{
	const struct flow_key *keys[FLOW_BURST];
	uint64_t hashes[FLOW_BURST];
	uint32_t positions[FLOW_BURST];

	if (n == 0 || n > shard->table.capacity) {
		/* of a table smaller than the burst the last ones stay */
		for (unsigned i = 0; i < n; i++)
			flow_shard_learn(shard, infos[i]);
		return;
	}
	if (n > shard->table.capacity - shard->table.count)
		flow_evict(shard, n - (shard->table.capacity - shard->table.count));
	for (unsigned i = 0; i < n; i++) {
		keys[i] = &infos[i]->key;
		hashes[i] = infos[i]->hash;
	}
	flow_table_insert_burst(&shard->table, keys, hashes, positions, n);
	for (unsigned i = 0; i < n; i++)
		start(shard, positions[i], infos[i]);
}

/* A new conversation on the key of one that is over: same position, new record. */
static void reopen(struct flow_shard *shard, uint32_t position, const struct packet_info *info)
{
	struct flow_record *record = flow_table_record(&shard->table, position);

	flow_age_unfile(shard, position, flow_record_phase(record));
	flow_report(shard, record, flow_end_reason(record, FLOW_END_FIN));
	shard->wire_flows[flow_key_wire(&record->key)]--;
	*record = (struct flow_record){.key = info->key};
	start(shard, position, info);
}

/* A packet of a flow that is not TCP, or whose TCP header is not there. */
static void reply(struct flow_record *record, const struct packet_info *info)
{
	if (info->from == record->initiator)
		return;
	if (record->state == FLOW_REQUEST)
		record->state = FLOW_REPLIED;
	else if (record->state == FLOW_PICKED_UP)
		record->state = FLOW_ESTABLISHED;
}

/* Files a record anew when its state asks for another wheel, or for an earlier end. */
static void refile(struct flow_shard *shard, uint32_t position, enum flow_state before)
{
	const struct flow_record *record = flow_table_record(&shard->table, position);
	enum flow_state after = (enum flow_state)record->state;
	const struct flow_timeouts *timeouts = &shard->config.timeouts;
	uint8_t proto = record->key.proto;

	if (flow_phase(after) == flow_phase(before) &&
		flow_idle_timeout(timeouts, after, proto) >=
			flow_idle_timeout(timeouts, before, proto))
		return;
	flow_age_unfile(shard, position, flow_phase(before));
	flow_age_file(shard, position);
}

enum flow_account flow_shard_account(
	struct flow_shard *shard, uint32_t position, const struct packet_info *info)
{
	struct flow_record *record = flow_table_record(&shard->table, position);
	enum flow_state before = (enum flow_state)record->state;
	enum tcp_verdict verdict = TCP_IN_WINDOW;

	if (account_plain(record, info, shard->now_us)) {
		flow_shard_counted(shard, 1, info->bytes);
		return FLOW_ACCOUNT_GO;
	}

	if (info->flags & PACKET_TCP) {
		verdict = flow_tcp_track(record, info->from, &info->tcp, shard->config.tcp_strict);
		if (verdict == TCP_REOPEN) {
			reopen(shard, position, info);
			return FLOW_ACCOUNT_GO;
		}
		shard->counters.tcp_odd += verdict == TCP_ODD;
		if (verdict == TCP_ODD && shard->config.tcp_strict)
			return FLOW_ACCOUNT_TCP_ODD; /* dropped: it leaves no trace in the record */
		if (verdict == TCP_IN_WINDOW && info->flags & PACKET_FIRST_FRAGMENT)
			flow_tcp_forget_window(record);
	} else {
		reply(record, info);
	}
	count(shard, record, info);
	if (record->state != before)
		refile(shard, position, before);
	return FLOW_ACCOUNT_GO;
}

bool flow_shard_quoted(struct flow_shard *shard, const struct packet_info *quoted)
{
	uint32_t position = flow_table_find(&shard->table, &quoted->key, quoted->hash);

	if (position == FLOW_NONE)
		return false;
	struct flow_record *record = flow_table_record(&shard->table, position);

	if (record->icmp_errors != UINT8_MAX)
		record->icmp_errors++;
	return true;
}

void flow_shard_kill(struct flow_shard *shard, uint32_t position)
{
	flow_age_unfile(
		shard, position, flow_record_phase(flow_table_record(&shard->table, position)));
	flow_end_record(shard, position, FLOW_END_KILLED);
}

void flow_shard_end_all(struct flow_shard *shard)
{
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
	sum->tcp_odd += counters->tcp_odd;
	for (unsigned i = 0; i < 256; i++)
		sum->learned_by_proto[i] += counters->learned_by_proto[i];
}
