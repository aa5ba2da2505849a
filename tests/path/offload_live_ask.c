/* SPDX-License-Identifier: BSD-3-Clause */
/* What tests ask of a live plane with offload, and what they do to single flows. */
#include "offload_live.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <netinet/in.h>

#include "traffic/stream.h"

unsigned offload_live_worker(const struct offload_live *live, const struct live_flow *flow)
{
	const struct packet_info info = {
		.key = flow->key, .hash = flow_key_hash(&live->plane->secret, &flow->key)};

	return steer_shard(&live->plane->steer, &info);
}

static struct flow_shard *shard_of(
	const struct offload_live *live, const struct live_flow *flow, uint64_t *hash)
{
	*hash = flow_key_hash(&live->plane->secret, &flow->key);
	return plane_shard_lcore(live->plane, offload_live_worker(live, flow))->worker.shard;
}

struct flow_record *offload_live_record(struct offload_live *live, const struct live_flow *flow)
{
	uint64_t hash;
	struct flow_shard *shard = shard_of(live, flow, &hash);
	uint32_t position = flow_table_find(&shard->table, &flow->key, hash);

	return position == FLOW_NONE ? NULL : flow_table_record(&shard->table, position);
}

bool offload_live_proven(struct offload_live *live, const struct live_flow *flow)
{
	const struct flow_record *record = offload_live_record(live, flow);

	for (unsigned side = 0; side < 2; side++)
		if (flow->comes[side] &&
			(record == NULL || offload_state(record, offload_live_from(record, side)) !=
						   OFFLOAD_PROVEN))
			return false;
	return true;
}

bool offload_live_all_proven(struct offload_live *live, void *unused)
{
	(void)unused;
	for (uint32_t i = 0; i < live->options.n_flows; i++)
		if (!live->flows[i].muted && !offload_live_proven(live, &live->flows[i]))
			return false;
	return true;
}

void offload_live_ask(
	struct offload_live *live, const struct live_flow *flow, struct plane_flow *answer)
{
	assert_int_equal(plane_flow(live->plane, &flow->key, answer), 0);
	assert_true(flow_key_equal(&answer->record.key, &flow->key));
	assert_true(answer->offload.told);
}

bool offload_live_knows(struct offload_live *live, const struct live_flow *flow)
{
	return offload_live_record(live, flow) != NULL;
}

void offload_live_kill(struct offload_live *live, const struct live_flow *flow)
{
	uint64_t hash;
	struct flow_shard *shard = shard_of(live, flow, &hash);
	uint32_t position = flow_table_find(&shard->table, &flow->key, hash);

	assert_int_not_equal(position, FLOW_NONE);
	flow_shard_kill(shard, position);
	flow_shard_flush(shard);
}

/* A packet of that many bytes is about to arrive there; returns where its bytes are to be. */
static uint8_t *put(struct offload_live *live, unsigned side, uint16_t length, uint32_t mark)
{
	struct rte_mbuf *packet = rte_pktmbuf_alloc(plane_pool(live->plane));
	struct live_side *at = &live->side[side];

	assert_non_null(packet);
	assert_true(at->n_put < OFFLOAD_LIVE_PUT);
	at->put[at->n_put++] = packet;
	if (mark != 0) {
		packet->ol_flags |= RTE_MBUF_F_RX_FDIR | RTE_MBUF_F_RX_FDIR_ID;
		packet->hash.fdir.hi = mark;
	}
	uint8_t *bytes = (uint8_t *)rte_pktmbuf_append(packet, length);

	assert_non_null(bytes);
	return bytes;
}

/* Where a TCP segment over IPv4 has what. */
enum {
	IPV4_TCP_SEQ = 14 + 20 + 4,
	IPV4_TCP_ACK = IPV4_TCP_SEQ + 4,
	IPV4_TCP_FLAGS = IPV4_TCP_ACK + 5
};

static uint8_t *put_stream(struct offload_live *live, const struct live_flow *flow, unsigned side,
	uint32_t mark, uint8_t tcp_flags)
{
	const struct stream_set *set = live->side[0].sim->source->set;
	uint32_t stream = 2 * (uint32_t)(flow - live->flows) + side;
	uint8_t *frame = put(live, side, stream_length(set, stream), mark);

	stream_frame(set, stream, frame);
	if (tcp_flags == 0)
		return frame;
	assert_int_equal(flow->key.proto, IPPROTO_TCP);
	assert_int_equal(flow_key_version(&flow->key), 4);
	frame[IPV4_TCP_FLAGS] |= tcp_flags;
	return frame;
}

void offload_live_put(struct offload_live *live, const struct live_flow *flow, unsigned side,
	uint32_t mark, uint8_t tcp_flags)
{
	put_stream(live, flow, side, mark, tcp_flags);
}

void offload_live_put_crossed(
	struct offload_live *live, const struct live_flow *flow, uint32_t mark)
{
	const struct stream_set *set = live->side[0].sim->source->set;
	const uint32_t stream = 2 * (uint32_t)(flow - live->flows) + 1;

	live->crosses = true;
	stream_frame(set, stream, put(live, 0, stream_length(set, stream), mark));
}

/* The number that acknowledges all that the segment has, and its FIN. */
static uint32_t behind(const uint8_t *frame)
{
	enum { LENGTH_AT = 14 + 2, HEADERS = 20 + 20 };
	rte_be32_t seq;
	rte_be16_t length;

	memcpy(&seq, &frame[IPV4_TCP_SEQ], sizeof(seq));
	memcpy(&length, &frame[LENGTH_AT], sizeof(length));
	return rte_be_to_cpu_32(seq) + rte_be_to_cpu_16(length) - HEADERS + 1;
}

static bool is_taken(struct offload_live *live, void *unused)
{
	(void)unused;
	return live->side[0].n_put == 0 && live->side[1].n_put == 0;
}

void offload_live_close(struct offload_live *live, const struct live_flow *flow, uint32_t mark)
{
	static const uint8_t sides[] = {0, 1, 0}, flags[] = {TCP_FIN, TCP_FIN, TCP_ACK};
	uint32_t acknowledge = 0;

	for (unsigned i = 0; i < RTE_DIM(sides); i++) {
		uint8_t *frame = put_stream(live, flow, sides[i], mark, flags[i]);

		if (i > 0)
			put_be32(&frame[IPV4_TCP_ACK], acknowledge);
		acknowledge = behind(frame);
		assert_true(offload_live_until(live, is_taken, NULL, 1000));
	}
}

void offload_live_reset(
	struct offload_live *live, const struct live_flow *flow, uint32_t mark, uint32_t ahead)
{
	uint8_t *frame = put_stream(live, flow, 0, mark, TCP_RST);
	rte_be32_t seq;

	memcpy(&seq, &frame[IPV4_TCP_SEQ], sizeof(seq));
	put_be32(&frame[IPV4_TCP_SEQ], rte_be_to_cpu_32(seq) + ahead);
	assert_true(offload_live_until(live, is_taken, NULL, 1000));
	put_stream(live, flow, 1, mark, 0);
	assert_true(offload_live_until(live, is_taken, NULL, 1000));
}

void offload_live_put_frame(
	struct offload_live *live, const struct frame *frame, unsigned side, uint32_t mark)
{
	memcpy(put(live, side, (uint16_t)frame->length, mark), frame->bytes, frame->length);
}

void offload_live_put_late(struct offload_live *live, uint32_t one, uint32_t other, uint32_t mark)
{
	struct agent_counters before, after;

	offload_live_counters(live, 0, &before);
	for (unsigned i = 0; i < OFFLOAD_LIVE_LATE; i++)
		offload_live_put(live, &live->flows[i % 2 == 0 ? one : other], 0, mark, 0);
	offload_live_run(live, 5);
	offload_live_check(live);
	offload_live_counters(live, 0, &after);
	assert_int_equal(after.strangers, before.strangers + OFFLOAD_LIVE_LATE);
}

void offload_live_forget(struct offload_live *live)
{
	/* those that nobody has read are read first */
	offload_live_turn(live);
	live->looked_us = 0;
	offload_live_turn(live);
	live->n_events = 0;
}

uint64_t offload_live_received(const struct offload_live *live, unsigned side)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < live->options.n_flows; i++)
		sum += live->flows[i].in[side];
	return sum;
}

uint64_t offload_live_marked(const struct offload_live *live, unsigned side)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < live->options.n_flows; i++)
		sum += live->flows[i].marked[side];
	return sum;
}

void offload_live_counters(
	struct offload_live *live, unsigned port, struct agent_counters *counters)
{
	assert_int_equal(plane_offload_counters(live->plane, port, counters), 0);
}

void offload_live_print(struct offload_live *live)
{
	for (unsigned i = live->n_events > 80 ? live->n_events - 80 : 0; i < live->n_events; i++) {
		const struct offload_change *change = &live->events[i];

		print_message("  %lu port %u %s %s -> %s %s\n", (unsigned long)change->time_us,
			(unsigned)change->port, change_kind_name((enum change_kind)change->kind),
			offload_state_name((enum offload_state)change->before),
			offload_state_name((enum offload_state)change->after),
			offload_reason_name(change->reason));
	}
	for (uint32_t i = 0; i < live->options.n_flows; i++) {
		struct plane_flow answer;

		if (!offload_live_knows(live, &live->flows[i]))
			continue;
		offload_live_ask(live, &live->flows[i], &answer);
		for (unsigned side = 0; side < 2; side++)
			print_message(
				"  flow %u side %u: %s, %s (%u), retry in %ld us, back-off %u\n", i,
				side,
				offload_state_name((enum offload_state)answer.offload
						.state[offload_live_from(&answer.record, side)]),
				offload_reason_name(answer.offload
						.reason[offload_live_from(&answer.record, side)]),
				answer.offload.reason[offload_live_from(&answer.record, side)],
				(long)(answer.retry_us[offload_live_from(&answer.record, side)] -
					answer.now_us),
				offload_back_off(
					&answer.record, offload_live_from(&answer.record, side)));
	}
}

uint32_t offload_live_rules(const struct offload_live *live, unsigned side)
{
	struct sim_port *sim = live->side[side].sim;

	pthread_mutex_lock(&sim->lock);
	uint32_t n = sim->n_rules;

	pthread_mutex_unlock(&sim->lock);
	return n;
}
