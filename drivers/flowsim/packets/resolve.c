/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/packets/resolve.h"

#include <stdlib.h>
#include <string.h>

#include <rte_prefetch.h>

#include "base/mapping.h"
#include "drivers/flowsim/packets/index.h"
#include "drivers/flowsim/packets/source.h"
#include "drivers/flowsim/packets/streams.h"
#include "drivers/flowsim/port/firmware.h"
#include "drivers/flowsim/port/nic.h"
#include "drivers/flowsim/port/rss.h"

/* So many streams are looked at one by one. */
#define FEW_STREAMS 64

static unsigned chain_of(const struct sim_stream *stream, struct rte_flow *const **chain)
{
	if (stream->verdict != NULL) {
		*chain = stream->verdict->chain;
		return stream->verdict->n;
	}
	*chain = &stream->rule;
	return stream->rule != NULL;
}

/* What was counted so far goes to the rules that it was counted for. */
static void credit(struct sim_resolver *resolver, uint32_t number)
{
	struct sim_stream *stream = &resolver->streams[number];
	uint64_t hits = sim_stream_hits(resolver, number), more = hits - stream->base;
	struct rte_flow *const *chain;
	unsigned n = chain_of(stream, &chain);

	for (unsigned i = 0; more > 0 && i < n; i++) {
		uint16_t length = resolver->source->length(resolver->source, number);

		/* workers of other queues may be counting the same rule: sim_apply() */
		__atomic_fetch_add(&chain[i]->count.hits, more, __ATOMIC_RELAXED);
		__atomic_fetch_add(&chain[i]->count.bytes, more * length, __ATOMIC_RELAXED);
	}
	stream->base = hits;
}

/* The way by which packets leave that the NIC keeps to itself; SIM_IN_ROUND: the host shall have them. */
static unsigned exit_of(struct sim_resolver *resolver, const struct sim_verdict *verdict)
{
	if (verdict->n == 0)
		return resolver->port->isolated ? SIM_EXIT_ISOLATED : SIM_IN_ROUND;
	if (verdict->meter || verdict->sample)
		return SIM_IN_ROUND;
	if (verdict->fate == SIM_FATE_DROP)
		return SIM_EXIT_DROP;
	if (verdict->fate != SIM_FATE_SEND)
		return SIM_IN_ROUND;

	/* into memory that nobody looks at, or truly out of another port? */
	const struct sim_port *to = sim_nic_port(resolver->port, verdict->port);

	if (to == NULL || to->args.source == SIM_SOURCE_PORT)
		return SIM_IN_ROUND;
	for (unsigned i = SIM_EXIT_ISOLATED + 1; i < SIM_MAX_EXITS; i++) {
		if (!resolver->exit_used[i]) {
			resolver->exit_used[i] = true;
			resolver->exit_port[i] = verdict->port;
		}
		if (resolver->exit_port[i] == verdict->port)
			return i;
	}
	return SIM_IN_ROUND;
}

static bool needs_program(const struct sim_verdict *verdict, unsigned way)
{
	return way == SIM_IN_ROUND && verdict->n > 0 &&
	       (verdict->edits || verdict->meter || verdict->sample ||
		       verdict->fate == SIM_FATE_SEND || verdict->fate == SIM_FATE_GIVE);
}

static uint16_t queue_of(const struct sim_resolver *resolver, uint32_t number,
	const struct sim_verdict *verdict, const struct sim_view *view)
{
	uint32_t hash = resolver->hashes[number];
	uint16_t queue = sim_rss_queue(resolver->port, hash);

	if (verdict->fate == SIM_FATE_QUEUE)
		queue = verdict->queue;
	else if (verdict->fate == SIM_FATE_RSS)
		queue = sim_rss_rule_queue(verdict->rss, view, hash);
	return queue < resolver->port->n_rx ? queue : 0;
}

static void remember(struct sim_stream *stream, const struct sim_verdict *verdict, bool program)
{
	free(stream->verdict);
	stream->verdict = NULL;
	stream->rule = verdict->n > 0 ? verdict->chain[0] : NULL;
	if (verdict->n < 2 && !program)
		return;
	stream->verdict = malloc(sizeof(*stream->verdict));
	/* without memory the rules beyond the first are not counted, nor their edits done */
	if (stream->verdict != NULL)
		*stream->verdict = *verdict;
}

static struct sim_entry entry_of(const struct sim_verdict *verdict, bool program)
{
	struct sim_entry entry = {.mark = verdict->mark_id};

	if (program)
		entry.flags = SIM_ENTRY_PROGRAM;
	else if (verdict->n > 0)
		entry.flags = SIM_ENTRY_MATCHED |
			      (verdict->mark ? SIM_ENTRY_MARK | SIM_ENTRY_FLAG : 0) |
			      (verdict->flag ? SIM_ENTRY_FLAG : 0);
	return entry;
}

/* Under the lock of the stream's queue. */
static void set_entry(struct sim_resolver *resolver, uint32_t number, struct sim_entry entry)
{
	struct sim_rx_queue *queue = &resolver->port->rx[resolver->streams[number].queue];
	struct sim_entry *old = sim_stream_entry(resolver, number);

	if (old == NULL)
		return;
	queue->n_looks += (entry.flags != 0) - (old->flags != 0);
	queue->n_programs +=
		((entry.flags & SIM_ENTRY_PROGRAM) != 0) - ((old->flags & SIM_ENTRY_PROGRAM) != 0);
	old->mark = entry.mark;
	old->flags = entry.flags;
}

/* From here on the stream is treated so. */
static void decide_so(struct sim_resolver *resolver, uint32_t number,
	const struct sim_verdict *verdict, const struct sim_view *view)
{
	struct sim_stream *stream = &resolver->streams[number];
	unsigned way = exit_of(resolver, verdict);
	bool program = needs_program(verdict, way);
	uint16_t to =
		way == SIM_IN_ROUND ? queue_of(resolver, number, verdict, view) : stream->queue;
	struct sim_rx_queue *queue = &resolver->port->rx[stream->queue];

	rte_spinlock_lock(&queue->lock);
	sim_stream_pass(resolver, number);
	credit(resolver, number);
	if (way != stream->exit || to != stream->queue) {
		/* what looks at the entry goes with the stream */
		set_entry(resolver, number, (struct sim_entry){0});
		sim_stream_leave(resolver, number);
		/* within one round no packet may be received meanwhile: what was served is known of this moment */
		if (to != stream->queue) {
			/* it may have been the last that had to be served */
			sim_round_close(&queue->round);
			rte_spinlock_unlock(&queue->lock);
			queue = &resolver->port->rx[to];
			rte_spinlock_lock(&queue->lock);
		}
		sim_stream_enter(resolver, number, to, way);
	}
	remember(stream, verdict, program);
	if (way == SIM_IN_ROUND)
		set_entry(resolver, number, entry_of(verdict, program));
	rte_spinlock_unlock(&queue->lock);
}

static void decide(struct sim_resolver *resolver, uint32_t number)
{
	struct sim_verdict verdict = {0};
	struct sim_view view;

	resolver->source->view(resolver->source, number, &view);
	view.port = resolver->port->id;
	if (!resolver->port->dead)
		sim_table_match(resolver->port->table, SIM_INGRESS, &view, &verdict);
	decide_so(resolver, number, &verdict, &view);
}

void sim_resolver_changed(struct sim_resolver *resolver, const struct rte_flow *rule)
{
	uint32_t number = SIM_INDEX_START;

	if (resolver == NULL || rule->domain == SIM_EGRESS)
		return;
	if (rule->sort->index == NULL && resolver->source->n_streams > FEW_STREAMS)
		rule->sort->index = sim_index_create(resolver->source, rule->sort);
	while (sim_index_next(rule->sort->index, resolver->source, rule, &number))
		decide(resolver, number);
}

void sim_resolver_prefetch(const struct sim_resolver *resolver, const struct sim_class *sort,
	const uint64_t values[], unsigned step)
{
	if (resolver == NULL || sort->index == NULL)
		return;
	if (step == 0) {
		sim_index_prefetch(sort->index, sort, values);
		return;
	}
	uint32_t number = sim_index_first(sort->index, sort, values);

	if (number >= resolver->source->n_streams)
		return;
	if (step == 2) {
		if (resolver->entries == NULL)
			rte_prefetch0(sim_stream_entry(resolver, number));
		return;
	}
	rte_prefetch0(&resolver->streams[number]);
	rte_prefetch0(&resolver->hashes[number]);
	rte_prefetch0(resolver->entries == NULL ? (const void *)&resolver->position[number]
						: &resolver->entries[number]);
}

/* All hashes anew, those in the rounds too. */
static void hash_all(struct sim_resolver *resolver)
{
	const struct sim_source *source = resolver->source;
	struct sim_view view;

	for (uint32_t number = 0; number < source->n_streams; number++) {
		source->view(source, number, &view);
		resolver->hashes[number] = sim_rss_of(resolver->port, &view);
	}
	for (unsigned i = 0; i < resolver->port->n_rx; i++) {
		struct sim_rx_queue *queue = &resolver->port->rx[i];

		rte_spinlock_lock(&queue->lock);
		for (uint32_t at = 0; at < queue->round.n; at++) {
			struct sim_place *place = &queue->round.places[at];

			place->rss = resolver->hashes[place->stream];
		}
		rte_spinlock_unlock(&queue->lock);
	}
}

void sim_resolver_all(struct sim_resolver *resolver)
{
	if (resolver == NULL)
		return;
	hash_all(resolver);
	for (uint32_t number = 0; number < resolver->source->n_streams; number++)
		decide(resolver, number);
	/* a round may be empty now, and the firmware's to turn */
	sim_firmware_nudge(resolver->port);
}

static bool in_chain(const struct sim_stream *stream, const struct rte_flow *rule)
{
	struct rte_flow *const *chain;
	unsigned n = chain_of(stream, &chain);

	for (unsigned i = 0; i < n; i++)
		if (chain[i] == rule)
			return true;
	return false;
}

/* Packets that are not yet its rules', up to this moment. */
static uint64_t hits_now(struct sim_resolver *resolver, uint32_t number)
{
	const struct sim_stream *stream = &resolver->streams[number];
	struct sim_rx_queue *queue = &resolver->port->rx[stream->queue];

	/* whose packets the worker counts is read without holding it up */
	if (stream->exit != SIM_IN_ROUND) {
		rte_spinlock_lock(&queue->lock);
		sim_stream_pass(resolver, number);
		rte_spinlock_unlock(&queue->lock);
	}
	return sim_stream_hits(resolver, number) - stream->base;
}

struct sim_count sim_resolver_count(struct sim_resolver *resolver, const struct rte_flow *rule)
{
	struct sim_count count = {0};
	uint32_t number = SIM_INDEX_START;

	if (resolver == NULL || rule->domain == SIM_EGRESS)
		return count;
	while (sim_index_next(rule->sort->index, resolver->source, rule, &number)) {
		if (in_chain(&resolver->streams[number], rule)) {
			uint64_t more = hits_now(resolver, number);

			count.hits += more;
			count.bytes += more * resolver->source->length(resolver->source, number);
		}
	}
	return count;
}

void sim_resolver_credit(struct sim_resolver *resolver)
{
	if (resolver == NULL)
		return;
	for (uint32_t number = 0; number < resolver->source->n_streams; number++)
		credit(resolver, number);
}

/* The source's places, each stream's one after the other, on the queues that RSS has for them. */
static void place_all(struct sim_resolver *resolver)
{
	const struct sim_source *source = resolver->source;

	for (uint32_t number = 0; number < source->n_streams; number++) {
		struct sim_stream *stream = &resolver->streams[number];

		stream->first = SIM_NO_PLACE;
		stream->n_places = 0;
		stream->exit = SIM_IN_ROUND;

		uint16_t queue = sim_rss_queue(resolver->port, resolver->hashes[number]);

		stream->queue = (uint8_t)(queue < resolver->port->n_rx ? queue : 0);
	}
	for (uint32_t place = 0; place < source->n_places; place++) {
		uint32_t number = source->places == NULL ? place : source->places[place];
		struct sim_stream *stream = &resolver->streams[number];
		const struct sim_place what = {.stream = number, .rss = resolver->hashes[number]};
		uint32_t id = resolver->entries == NULL ? number : place;

		resolver->next[id] = stream->first;
		stream->first = id;
		stream->n_places++;
		resolver->position[id] =
			sim_round_add(&resolver->port->rx[stream->queue].round, what, id);
	}
}

const struct sim_verdict *sim_stream_verdict(const struct sim_resolver *resolver, uint32_t number)
{
	return resolver->streams[number].verdict;
}

static int create_rounds(struct sim_resolver *resolver)
{
	struct sim_port *port = resolver->port;

	for (unsigned i = 0; i < port->n_rx; i++) {
		struct sim_rx_queue *queue = &port->rx[i];

		queue->entries = resolver->entries;
		queue->plain =
			resolver->source->set != NULL && stream_set_is_plain(resolver->source->set);
		queue->n_looks = 0;
		queue->n_programs = 0;
		/* a rule may send all of them to one queue */
		if (sim_round_create(&queue->round, resolver->source->n_places,
			    resolver->entries == NULL) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Whether a stream has several places. Counts them where place_all() begins to count anew. */
static bool has_several(struct sim_resolver *resolver)
{
	const struct sim_source *source = resolver->source;
	bool several = false;

	for (uint32_t place = 0; source->places != NULL && place < source->n_places; place++)
		several |= resolver->streams[source->places[place]].n_places++ > 0;
	return several;
}

/* Numbers of places: the source's, or the streams'. */
static size_t max_places(const struct sim_source *source)
{
	return RTE_MAX(source->n_streams, source->n_places);
}

static int take_memory(struct sim_resolver *resolver)
{
	size_t n = resolver->source->n_streams, n_places = max_places(resolver->source);

	resolver->streams = mapping_create(n * sizeof(*resolver->streams), MAPPING_HUGE);
	resolver->hashes = mapping_create(n * sizeof(*resolver->hashes), MAPPING_HUGE);
	resolver->next = mapping_create(n_places * sizeof(*resolver->next), MAPPING_HUGE);
	resolver->position = mapping_create(n_places * sizeof(*resolver->position), MAPPING_HUGE);
	if (resolver->streams == NULL || resolver->hashes == NULL || resolver->next == NULL ||
		resolver->position == NULL)
		return -ENOMEM;
	if (has_several(resolver)) {
		resolver->entries = mapping_create(n * sizeof(*resolver->entries), MAPPING_HUGE);
		if (resolver->entries == NULL)
			return -ENOMEM;
	}
	return create_rounds(resolver);
}

struct sim_resolver *sim_resolver_create(struct sim_port *port, struct error *error)
{
	struct sim_resolver *resolver = calloc(1, sizeof(*resolver));

	if (resolver != NULL) {
		resolver->port = port;
		resolver->source = port->source;
	}
	if (resolver == NULL || take_memory(resolver) < 0) {
		error_set(error, -ENOMEM, "no memory for %u streams", port->source->n_streams);
		sim_resolver_destroy(resolver);
		return NULL;
	}
	hash_all(resolver);
	place_all(resolver);
	if (port->isolated || !sim_table_is_empty(port->table, SIM_INGRESS))
		sim_resolver_all(resolver);
	return resolver;
}

void sim_resolver_destroy(struct sim_resolver *resolver)
{
	if (resolver == NULL)
		return;

	size_t n = resolver->source->n_streams, n_places = max_places(resolver->source);

	for (unsigned i = 0; i < resolver->port->n_rx; i++) {
		sim_round_destroy(&resolver->port->rx[i].round, resolver->source->n_places);
		resolver->port->rx[i].entries = NULL;
	}
	for (size_t i = 0; resolver->streams != NULL && i < n; i++)
		free(resolver->streams[i].verdict);
	mapping_destroy(resolver->entries, n * sizeof(*resolver->entries));
	mapping_destroy(resolver->streams, n * sizeof(*resolver->streams));
	mapping_destroy(resolver->hashes, n * sizeof(*resolver->hashes));
	mapping_destroy(resolver->next, n_places * sizeof(*resolver->next));
	mapping_destroy(resolver->position, n_places * sizeof(*resolver->position));
	free(resolver);
}
