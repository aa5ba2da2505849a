/* SPDX-License-Identifier: BSD-3-Clause */
/* The streams of a port on their places: into rounds, out of them, and what was counted meanwhile. */
#include "drivers/flowsim/packets/streams.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mapping.h"
#include "drivers/flowsim/packets/pace.h"
#include "drivers/flowsim/packets/source.h"
#include "drivers/flowsim/port/firmware.h"
#include "drivers/flowsim/port/nic.h"
#include "drivers/flowsim/port/rss.h"

static void note(struct sim_resolver *resolver, const struct sim_moved *moved)
{
	for (unsigned i = 0; i < moved->n; i++)
		resolver->position[moved->id[i]] = moved->position[i];
}

struct sim_entry *sim_stream_entry(const struct sim_resolver *resolver, uint32_t number)
{
	const struct sim_stream *stream = &resolver->streams[number];

	if (stream->exit != SIM_IN_ROUND || stream->n_places == 0)
		return NULL;
	if (resolver->entries != NULL)
		return &resolver->entries[number];
	return &resolver->port->rx[stream->queue].round.entries[resolver->position[stream->first]];
}

/* Packets of a stream that the NIC kept to itself since it left the round. */
static uint64_t gone_hits(const struct sim_resolver *resolver, const struct sim_stream *stream)
{
	const struct sim_round *round = &resolver->port->rx[stream->queue].round;
	uint64_t rounds = __atomic_load_n(&round->rounds, __ATOMIC_RELAXED) - stream->gone_round;

	if (rounds == 0)
		return 0;
	return (stream->n_places - stream->gone_served) * rounds +
	       stream->gone_served * (rounds - 1);
}

uint64_t sim_stream_hits(const struct sim_resolver *resolver, uint32_t number)
{
	const struct sim_stream *stream = &resolver->streams[number];
	const struct sim_entry *entry = sim_stream_entry(resolver, number);

	if (stream->exit != SIM_IN_ROUND)
		return gone_hits(resolver, stream);
	return entry == NULL ? 0 : sim_count_get(&entry->hits);
}

/* So many packets have left by that exit. */
static void count_gone(struct sim_rx_queue *queue, const struct sim_resolver *resolver,
	unsigned way, uint64_t packets, uint64_t bytes)
{
	struct sim_rx_counters *counters = &queue->counters;

	if (way != SIM_EXIT_ISOLATED)
		sim_count_add(&counters->matched, packets);
	if (way == SIM_EXIT_DROP || way == SIM_EXIT_ISOLATED) {
		sim_count_add(&counters->rule_dropped, packets);
		sim_count_add(&counters->rule_dropped_bytes, bytes);
		return;
	}
	if (!sim_nic_sent(resolver->port, resolver->exit_port[way], packets, bytes)) {
		sim_count_add(&counters->missed, packets);
		return;
	}
	sim_count_add(&counters->forwarded, packets);
	sim_count_add(&counters->forwarded_bytes, bytes);
}

/* How much of the queue's round has passed. */
static uint16_t passed_of(const struct sim_rx_queue *queue)
{
	const struct sim_round *round = &queue->round;
	const uint64_t passes = queue->port->args.passes;

	/* there is no round after the last one */
	return passes != 0 && round->rounds >= passes
		       ? 0
		       : sim_round_passed(round, sim_pace_waiting(queue));
}

static void settle(struct sim_rx_queue *queue, const struct sim_resolver *resolver)
{
	uint64_t packets[SIM_MAX_EXITS] = {0}, bytes[SIM_MAX_EXITS] = {0};

	sim_round_settle(&queue->round, packets, bytes);
	for (unsigned i = 0; i < SIM_MAX_EXITS; i++)
		if (packets[i] != 0)
			count_gone(queue, resolver, i, packets[i], bytes[i]);
}

void sim_stream_pass(struct sim_resolver *resolver, uint32_t number)
{
	struct sim_stream *stream = &resolver->streams[number];
	struct sim_rx_queue *queue = &resolver->port->rx[stream->queue];
	struct sim_round *round = &queue->round;
	uint32_t passed, length;

	if (stream->exit == SIM_IN_ROUND)
		return;
	settle(queue, resolver);
	if (round->rounds != stream->gone_round) {
		/* as if it had left when this round began */
		stream->base -= gone_hits(resolver, stream);
		stream->gone_round = round->rounds;
		stream->gone_served = 0;
		stream->gone_passed = 0;
	}
	length = resolver->source->length(resolver->source, number);
	passed = sim_round_pass(round, &round->exits[stream->exit],
		stream->n_places - stream->gone_served, length, passed_of(queue),
		&stream->gone_passed);
	if (passed == 0)
		return;
	stream->gone_served += passed;
	stream->base -= passed;
	count_gone(queue, resolver, stream->exit, passed, (uint64_t)length * passed);
}

static void leave_round(struct sim_resolver *resolver, struct sim_stream *stream, uint32_t number)
{
	struct sim_rx_queue *queue = &resolver->port->rx[stream->queue];
	struct sim_round *round = &queue->round;
	struct sim_moved moved;

	if (resolver->entries != NULL)
		resolver->entries[number].hits = 0;
	stream->gone_served = 0;
	stream->gone_round = round->rounds;
	for (uint32_t place = stream->first; place != SIM_NO_PLACE; place = resolver->next[place]) {
		stream->gone_served += sim_round_take(round, resolver->position[place], &moved);
		note(resolver, &moved);
	}
	stream->gone_passed = passed_of(queue);
}

static void leave_exit(struct sim_resolver *resolver, struct sim_stream *stream, uint32_t bytes)
{
	struct sim_round *round = &resolver->port->rx[stream->queue].round;
	struct sim_exit *way = &round->exits[stream->exit];
	uint32_t served = stream->gone_served;

	round->n_gone -= stream->n_places;
	/* the accounts were settled, and it was looked at in this round */
	way->n -= stream->n_places - served;
	way->bytes -= (uint64_t)bytes * (stream->n_places - served);
	way->n_next -= served;
	way->bytes_next -= (uint64_t)bytes * served;
}

void sim_stream_leave(struct sim_resolver *resolver, uint32_t number)
{
	struct sim_stream *stream = &resolver->streams[number];
	struct sim_rx_queue *queue = &resolver->port->rx[stream->queue];

	settle(queue, resolver);
	if (stream->exit == SIM_IN_ROUND)
		leave_round(resolver, stream, number);
	else
		leave_exit(resolver, stream, resolver->source->length(resolver->source, number));
	stream->base = 0;
}

static void enter_round(struct sim_resolver *resolver, uint32_t number, struct sim_round *round)
{
	struct sim_stream *stream = &resolver->streams[number];
	const struct sim_place what = {.stream = number, .rss = resolver->hashes[number]};
	uint32_t served = stream->gone_served;
	struct sim_moved moved;

	for (uint32_t place = stream->first; place != SIM_NO_PLACE; place = resolver->next[place]) {
		resolver->position[place] =
			sim_round_put_back(round, what, place, served > 0, &moved);
		served -= served > 0;
		note(resolver, &moved);
	}
}

void sim_stream_enter(struct sim_resolver *resolver, uint32_t number, uint16_t to, unsigned way)
{
	struct sim_stream *stream = &resolver->streams[number];
	struct sim_rx_queue *queue = &resolver->port->rx[to];
	struct sim_round *round = &queue->round;

	settle(queue, resolver);
	stream->queue = (uint8_t)to;
	stream->exit = (uint8_t)way;
	stream->gone_round = round->rounds;
	if (way == SIM_IN_ROUND) {
		enter_round(resolver, number, round);
	} else {
		uint64_t bytes = resolver->source->length(resolver->source, number);
		uint32_t not_served = stream->n_places - stream->gone_served;

		round->n_gone += stream->n_places;
		round->exits[way].n += not_served;
		round->exits[way].bytes += bytes * not_served;
		round->exits[way].n_next += stream->gone_served;
		round->exits[way].bytes_next += bytes * stream->gone_served;
	}
	sim_round_close(round);
	/* from here on time turns it, not a worker */
	if (round->n == 0)
		sim_firmware_wake(resolver->port);
}

void sim_streams_settle(struct sim_resolver *resolver)
{
	if (resolver == NULL)
		return;
	for (unsigned i = 0; i < resolver->port->n_rx; i++) {
		struct sim_rx_queue *queue = &resolver->port->rx[i];

		rte_spinlock_lock(&queue->lock);
		settle(queue, resolver);
		rte_spinlock_unlock(&queue->lock);
	}
}

/* The places of a round that time turns; 0: it is none. Under the queue's lock. */
static uint64_t turned_places(const struct sim_resolver *resolver, const struct sim_round *round)
{
	uint64_t passes = resolver->port->args.passes;

	return round->n > 0 || (passes != 0 && round->rounds >= passes) ? 0 : round->n_gone;
}

/*
 * The port's `rate` is shared by all places that time turns: `all` of them, in all queues. So their rounds
 * pass alike. Returns whether the round is one of these. Under the queue's lock.
 */
static bool turn(struct sim_resolver *resolver, unsigned i, uint64_t passed_ns, uint64_t all)
{
	struct sim_round *round = &resolver->port->rx[i].round;
	uint64_t passes = resolver->port->args.passes;
	uint64_t cost = all * UINT64_C(1000000000);

	if (cost == 0 || turned_places(resolver, round) == 0) {
		resolver->turn_credit[i] = 0;
		return false;
	}
	resolver->turn_credit[i] += passed_ns * resolver->port->args.rate;

	uint64_t rounds = resolver->turn_credit[i] / cost;

	resolver->turn_credit[i] -= rounds * cost;
	if (passes != 0 && rounds > passes - round->rounds)
		rounds = passes - round->rounds;
	__atomic_store_n(&round->rounds, round->rounds + rounds, __ATOMIC_RELAXED);
	return true;
}

bool sim_streams_turn(struct sim_resolver *resolver, uint64_t passed_ns)
{
	bool turning = false;
	uint64_t all = 0;

	if (resolver == NULL)
		return false;
	/* nobody moves streams between this and the turn: the port's lock is held */
	for (unsigned i = 0; i < resolver->port->n_rx; i++) {
		struct sim_rx_queue *queue = &resolver->port->rx[i];

		rte_spinlock_lock(&queue->lock);
		all += turned_places(resolver, &queue->round);
		rte_spinlock_unlock(&queue->lock);
	}
	for (unsigned i = 0; i < resolver->port->n_rx; i++) {
		struct sim_rx_queue *queue = &resolver->port->rx[i];

		rte_spinlock_lock(&queue->lock);
		turning |= turn(resolver, i, passed_ns, all);
		rte_spinlock_unlock(&queue->lock);
	}
	return turning;
}
