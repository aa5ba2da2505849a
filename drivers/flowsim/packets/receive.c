/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The burst of known sources. What a real NIC does costs its driver the filling of an mbuf; so it does
 * here, and the packet's bytes are written besides. What a rule left for a stream lies beside its place, or,
 * where streams have several places, is fetched long before the packet's turn.
 */
#include "drivers/flowsim/packets/receive.h"

#include <string.h>

#include <rte_prefetch.h>

#include "drivers/flowsim/packets/apply.h"
#include "drivers/flowsim/packets/pace.h"
#include "drivers/flowsim/packets/queue.h"
#include "drivers/flowsim/packets/resolve.h"
#include "drivers/flowsim/packets/source.h"
#include "drivers/flowsim/port/port.h"
#include "traffic/stream_write.h"

/* Places ahead, measured: see docs/benchmarks.md, "The simulated NIC". */
#define ENTRIES_AHEAD 64
#define FRAMES_AHEAD 8

/* Where receive finds what rules left for the streams; nowhere while they left nothing. */
enum looks { LOOKS_NOWHERE, LOOKS_AT_PLACE, LOOKS_AT_STREAM };

/* What a burst writes alike into each mbuf. */
struct same {
	uint64_t rearm;
	uint64_t flags; /* a hash is told where one is asked for */
};

static struct same same_of(const struct sim_rx_queue *queue)
{
	const uint64_t types = __atomic_load_n(&queue->port->rss_hf, __ATOMIC_RELAXED);
	struct rte_mbuf like = {
		.data_off = RTE_PKTMBUF_HEADROOM,
		.refcnt = 1,
		.nb_segs = 1,
		.port = queue->port->id,
	};
	struct same same = {.flags = types != 0 ? RTE_MBUF_F_RX_RSS_HASH : 0};

	memcpy(&same.rearm, &like.rearm_data, sizeof(same.rearm));
	return same;
}

/*
 * The mbufs come raw from the pool: `next` is NULL and one segment is said already, as whoever frees a
 * packet leaves it.
 */
static inline void fill(struct rte_mbuf *packet, const struct same *same, uint64_t flags,
	uint16_t length, uint32_t rss)
{
	memcpy(&packet->rearm_data, &same->rearm, sizeof(same->rearm));
	packet->ol_flags = same->flags | flags;
	/* what lies side by side, in two stores */
	const uint64_t type_and_length = (uint64_t)length << 32;
	const uint64_t length_and_rss = (uint64_t)rss << 32 | length;

	static_assert(RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN, "else the halves change places");
	memcpy(&packet->packet_type, &type_and_length, sizeof(type_and_length));
	memcpy(&packet->data_len, &length_and_rss, sizeof(length_and_rss));
}

static inline uint16_t write_frame(
	const struct sim_source *source, uint32_t number, uint8_t *data, bool plain)
{
	if (plain)
		return stream_write_plain(
			source->set, number << source->shift | source->side, data);
	if (source->set != NULL)
		return stream_write(source->set, number << source->shift | source->side, data);
	const uint8_t *frame = source->frames + source->frame_at[number];

	memcpy(data, frame, RTE_MIN(source->frame_length[number], source->written));
	return source->frame_length[number];
}

/* As DMA leaves it on a machine where it writes to memory: not in any cache. */
static inline void chill(const uint8_t *data, uint16_t length)
{
	for (unsigned at = 0; at < length; at += RTE_CACHE_LINE_SIZE) {
#if defined(__x86_64__)
		__asm__ volatile("clflush %0" ::"m"(data[at]) : "memory");
#elif defined(__aarch64__)
		__asm__ volatile("dc civac, %0" ::"r"(&data[at]) : "memory");
#else
		(void)data;
#endif
	}
}

static_assert(SIM_ENTRY_FLAG == RTE_MBUF_F_RX_FDIR, "an mbuf's bit");
static_assert(SIM_ENTRY_MARK == RTE_MBUF_F_RX_FDIR_ID, "an mbuf's bit");
/* Packets of a burst, at most: each of the flags has room for as many, before the next one begins. */
#define BURST_MOST (SIM_ENTRY_MARK / SIM_ENTRY_FLAG - 1)
static_assert(SIM_ENTRY_MATCHED / SIM_ENTRY_MARK > BURST_MOST, "flags are added up");

/*
 * What a rule that marks and counts does to a packet. Without a branch: streams come in any order. Of the flags none
 * has a program here: a queue with one goes the slow way.
 * Returns what is to be counted, three numbers in one that stays in a register: see tally().
 */
static inline uint64_t look(struct sim_entry *entry, struct rte_mbuf *packet, uint64_t *ol_flags)
{
	uint32_t flags = entry->flags;

	*ol_flags = flags & (SIM_ENTRY_MARK | SIM_ENTRY_FLAG);
	packet->hash.fdir.hi = entry->mark;
	__atomic_store_n(&entry->hits,
		__atomic_load_n(&entry->hits, __ATOMIC_RELAXED) + flags / SIM_ENTRY_MATCHED,
		__ATOMIC_RELAXED);
	return flags;
}

/* Of a burst. */
static inline void tally(struct sim_rx_counters *sum, uint64_t counts)
{
	uint64_t flagged = counts / SIM_ENTRY_FLAG & BURST_MOST;
	uint64_t marked = counts / SIM_ENTRY_MARK & BURST_MOST;

	sum->matched += counts / SIM_ENTRY_MATCHED;
	sum->marked += marked;
	sum->flagged += flagged - marked;
}

/* As fill_burst() for plain streams, four at once (traffic/stream_write.h); returns how many of `n`. */
static __rte_always_inline uint16_t fill_plain(struct sim_rx_queue *queue,
	struct rte_mbuf **packets, uint16_t n, struct sim_rx_counters *sum, enum looks looks)
{
	const struct sim_source *source = queue->port->source;
	struct sim_round *round = &queue->round;
	const struct same same = same_of(queue);
	/* what the frames that are written might be, for all that a compiler knows */
	const struct stream_set *set = source->set;
	const struct sim_place *places = round->places;
	struct sim_entry *entries = looks == LOOKS_AT_PLACE ? round->entries : queue->entries;
	const uint16_t length = set->plain_length;
	const uint32_t shift = source->shift, side = source->side, n_places = round->n;
	uint32_t at = round->at;
	uint64_t counts = 0;

	for (uint16_t i = 0; i + 4 <= n; i += 4) {
		uint32_t streams[4];
		uint8_t *data[4];

		for (unsigned j = 0; j < 4; j++) {
			const struct sim_place *place = &places[at];
			struct rte_mbuf *packet = packets[i + j];

			if (looks == LOOKS_AT_STREAM && likely(at + ENTRIES_AHEAD < n_places))
				rte_prefetch0(&entries[place[ENTRIES_AHEAD].stream]);
			streams[j] = place->stream << shift | side;
			data[j] = (uint8_t *)packet->buf_addr + RTE_PKTMBUF_HEADROOM;
			uint64_t flags = 0;

			if (looks != LOOKS_NOWHERE)
				counts +=
					look(&entries[looks == LOOKS_AT_PLACE ? at : place->stream],
						packet, &flags);
			fill(packet, &same, flags, length, place->rss);
			if (unlikely(++at == n_places)) {
				sim_round_end(round);
				at = 0;
			}
		}
		stream_write_4(set, streams, data);
	}
	round->at = at;
	tally(sum, counts);
	sum->bytes += (uint64_t)(n & ~3) * length;
	return (uint16_t)(n & ~3);
}

/*
 * As fill_burst() for a capture of which a line is written of each frame, whatever the frame has of it: frames begin at
 * one. They lie in the order of places, and the processor fetches them by itself.
 */
static __rte_always_inline void fill_lines(struct sim_rx_queue *queue, struct rte_mbuf **packets,
	uint16_t n, struct sim_rx_counters *sum, bool looks)
{
	const struct sim_source *source = queue->port->source;
	struct sim_round *round = &queue->round;
	const struct same same = same_of(queue);
	/* what is written to packets might be any of these, for all that a compiler knows */
	const struct sim_place *places = round->places;
	struct sim_entry *entries = round->entries;
	const uint8_t *frames = source->frames;
	const uint64_t *frame_at = source->frame_at;
	const uint16_t *frame_length = source->frame_length;
	const uint32_t n_places = round->n;
	struct rte_mbuf *const *packet = packets;
	uint64_t counts = 0, bytes = 0;
	uint32_t at = round->at;

	while (n > 0) {
		const uint32_t part = RTE_MIN((uint32_t)n, n_places - at);
		const struct sim_place *place = &places[at];
		struct sim_entry *entry = looks ? &entries[at] : NULL;
		struct rte_mbuf *const *end = packet + part;

		for (; packet < end; packet++, place++) {
			const uint32_t stream = place->stream;
			const uint16_t length = frame_length[stream];
			uint64_t flags = 0;

			memcpy((uint8_t *)(*packet)->buf_addr + RTE_PKTMBUF_HEADROOM,
				frames + frame_at[stream], RTE_CACHE_LINE_SIZE);
			if (looks)
				counts += look(entry++, *packet, &flags);
			fill(*packet, &same, flags, length, place->rss);
			bytes += length;
		}
		at += part;
		n = (uint16_t)(n - part);
		if (at == n_places) {
			sim_round_end(round);
			at = 0;
		}
	}
	round->at = at;
	tally(sum, counts);
	sum->bytes += bytes;
}

/* What rules left for the stream of that place. */
static inline struct sim_entry *entry_at(const struct sim_rx_queue *queue, uint32_t at)
{
	const struct sim_round *round = &queue->round;

	return round->entries != NULL ? &round->entries[at]
				      : &queue->entries[round->places[at].stream];
}

/* The next `n` places of the round into `n` mbufs. */
static __rte_always_inline void fill_burst(struct sim_rx_queue *queue, struct rte_mbuf **packets,
	uint16_t n, struct sim_rx_counters *sum, bool plain, enum looks looks, bool cold)
{
	const struct sim_source *source = queue->port->source;
	struct sim_round *round = &queue->round;
	const struct same same = same_of(queue);
	uint16_t done = plain && !cold ? fill_plain(queue, packets, n, sum, looks) : 0;
	uint32_t at = round->at;
	uint64_t counts = 0, bytes = 0;

	for (uint16_t i = done; i < n; i++) {
		const struct sim_place *place = &round->places[at];
		uint8_t *data = (uint8_t *)packets[i]->buf_addr + RTE_PKTMBUF_HEADROOM;

		if (looks == LOOKS_AT_STREAM && likely(at + ENTRIES_AHEAD < round->n))
			rte_prefetch0(&queue->entries[place[ENTRIES_AHEAD].stream]);
		if (!plain && source->set == NULL && likely(at + FRAMES_AHEAD < round->n))
			rte_prefetch0(
				source->frames + source->frame_at[place[FRAMES_AHEAD].stream]);

		uint16_t length = write_frame(source, place->stream, data, plain);

		uint64_t flags = 0;

		if (looks != LOOKS_NOWHERE)
			counts += look(entry_at(queue, at), packets[i], &flags);
		fill(packets[i], &same, flags, length, place->rss);
		if (cold)
			chill(data, length);
		bytes += length;
		if (unlikely(++at == round->n)) {
			sim_round_end(round);
			at = 0;
		}
	}
	round->at = at;
	tally(sum, counts);
	sum->bytes += bytes;
}

/* The same with nothing left to ask in the loop. */
static __rte_always_inline void fill_warm(struct sim_rx_queue *queue, struct rte_mbuf **packets,
	uint16_t n, struct sim_rx_counters *sum, bool plain, enum looks looks)
{
	switch (looks) {
	case LOOKS_NOWHERE:
		fill_burst(queue, packets, n, sum, plain, LOOKS_NOWHERE, false);
		break;
	case LOOKS_AT_PLACE:
		fill_burst(queue, packets, n, sum, plain, LOOKS_AT_PLACE, false);
		break;
	case LOOKS_AT_STREAM:
		fill_burst(queue, packets, n, sum, plain, LOOKS_AT_STREAM, false);
		break;
	}
}

/* As the application will see it. */
static void count_marks(const struct rte_mbuf *packet, struct sim_rx_counters *sum)
{
	sum->marked += (packet->ol_flags & RTE_MBUF_F_RX_FDIR_ID) != 0;
	sum->flagged += (packet->ol_flags & (RTE_MBUF_F_RX_FDIR | RTE_MBUF_F_RX_FDIR_ID)) ==
			RTE_MBUF_F_RX_FDIR;
}

/* A packet that a fault may strike. */
static void mark_slowly(
	struct sim_rx_queue *queue, struct sim_entry *entry, struct rte_mbuf *packet)
{
	uint32_t mark = entry->mark;

	if ((entry->flags & (SIM_ENTRY_MARK | SIM_ENTRY_FLAG)) == 0 ||
		!sim_fault_mark(queue->port, &mark))
		return;
	packet->ol_flags |= RTE_MBUF_F_RX_FDIR;
	if (entry->flags & SIM_ENTRY_MARK) {
		packet->ol_flags |= RTE_MBUF_F_RX_FDIR_ID;
		packet->hash.fdir.hi = mark;
	}
}

/* The same, or one that needs more than a mark. Returns whether it is the application's. */
static bool slow_packet(struct sim_rx_queue *queue, uint32_t number, struct sim_entry *entry,
	struct rte_mbuf **packet, struct sim_rx_counters *sum)
{
	const struct sim_verdict *verdict;
	uint16_t to = queue->number;
	struct sim_view view;

	if (entry->flags & SIM_ENTRY_MATCHED) {
		sim_count_add(&entry->hits, 1);
		sum->matched++;
		mark_slowly(queue, entry, *packet);
	}
	verdict = sim_stream_verdict(queue->port->resolver, number);
	if ((entry->flags & SIM_ENTRY_PROGRAM) == 0 || verdict == NULL)
		return true;
	sim_view_packet(&view, *packet);
	view.port = queue->port->id;
	/* the stream is on the queue that its rules say */
	return sim_apply(queue->port, verdict, &view, packet, &to, sum);
}

static uint16_t slow_burst(struct sim_rx_queue *queue, struct rte_mbuf **packets, uint16_t n,
	struct sim_rx_counters *sum, bool cold)
{
	struct sim_round *round = &queue->round;
	const struct same same = same_of(queue);
	uint16_t kept = 0;

	for (uint16_t i = 0; i < n; i++) {
		const struct sim_place place = round->places[round->at];
		struct sim_entry *entry = entry_at(queue, round->at);
		struct rte_mbuf *packet = packets[i];
		uint8_t *data = (uint8_t *)packet->buf_addr + RTE_PKTMBUF_HEADROOM;
		uint16_t length = write_frame(queue->port->source, place.stream, data, false);

		fill(packet, &same, 0, length, place.rss);
		if (++round->at == round->n)
			sim_round_end(round);
		if (!slow_packet(queue, place.stream, entry, &packet, sum))
			continue;
		count_marks(packet, sum);
		if (cold)
			chill(rte_pktmbuf_mtod(packet, uint8_t *), packet->data_len);
		sum->bytes += packet->pkt_len;
		packets[kept++] = packet;
	}
	return kept;
}

/* How many places may be served now. */
static uint16_t served_now(const struct sim_rx_queue *queue, uint16_t n)
{
	const struct sim_round *round = &queue->round;
	const uint64_t passes = queue->port->args.passes;

	if (round->n == 0)
		return 0;
	if (likely(passes == 0))
		return n;

	const uint64_t left = sim_round_left(round, passes);

	return left < n ? (uint16_t)left : n;
}

static void add(struct sim_rx_counters *counters, const struct sim_rx_counters *sum, uint16_t n)
{
	sim_count_add(&counters->packets, n);
	sim_count_add(&counters->bytes, sum->bytes);
	if (sum->matched == 0)
		return;
	sim_count_add(&counters->missed, sum->missed);
	sim_count_add(&counters->sampled, sum->sampled);
	sim_count_add(&counters->no_mbuf, sum->no_mbuf);
	sim_count_add(&counters->matched, sum->matched);
	sim_count_add(&counters->marked, sum->marked);
	sim_count_add(&counters->flagged, sum->flagged);
	sim_count_add(&counters->rule_dropped, sum->rule_dropped);
	sim_count_add(&counters->rule_dropped_bytes, sum->rule_dropped_bytes);
	sim_count_add(&counters->forwarded, sum->forwarded);
	sim_count_add(&counters->forwarded_bytes, sum->forwarded_bytes);
}

static enum looks looks_of(const struct sim_rx_queue *queue)
{
	if (queue->n_looks == 0)
		return LOOKS_NOWHERE;
	return queue->entries == NULL ? LOOKS_AT_PLACE : LOOKS_AT_STREAM;
}

/* Is fill_lines() for it? */
static bool writes_lines(const struct sim_source *source, enum looks looks)
{
	return source->set == NULL && source->written == RTE_CACHE_LINE_SIZE &&
	       looks != LOOKS_AT_STREAM;
}

/* Under the queue's lock. */
static uint16_t receive(struct sim_rx_queue *queue, struct rte_mbuf **packets, uint16_t n)
{
	struct sim_rx_counters sum = {0};
	bool cold = queue->port->args.cold, plain = queue->plain;
	enum looks looks = looks_of(queue);
	uint16_t served;

	if (unlikely(n > BURST_MOST))
		n = BURST_MOST;
	/* also when nothing is to be served: time passes, and what the NIC keeps is not missed */
	if (unlikely(queue->pace.a_cycle > 0))
		n = sim_pace_due(queue, n);
	n = served_now(queue, n);
	if (n == 0)
		return 0;
	served = n;
	if (unlikely(rte_mempool_get_bulk(queue->pool, (void **)packets, n) != 0)) {
		sim_count_add(&queue->counters.no_mbuf, n);
		return 0;
	}
	if (unlikely(queue->slow || queue->n_programs > 0))
		n = slow_burst(queue, packets, n, &sum, cold);
	else if (cold)
		fill_burst(queue, packets, n, &sum, plain, looks, true);
	else if (plain)
		fill_warm(queue, packets, n, &sum, true, looks);
	else if (writes_lines(queue->port->source, looks) && looks == LOOKS_NOWHERE)
		fill_lines(queue, packets, n, &sum, false);
	else if (writes_lines(queue->port->source, looks))
		fill_lines(queue, packets, n, &sum, true);
	else
		fill_warm(queue, packets, n, &sum, false, looks);
	add(&queue->counters, &sum, n);
	if (unlikely(queue->pace.a_cycle > 0))
		sim_pace_take(queue, packets, n, served);
	return n;
}

uint16_t sim_receive(void *queue, struct rte_mbuf **packets, uint16_t n)
{
	struct sim_rx_queue *rx = queue;

	/* control has it: nothing has come yet */
	if (unlikely(rte_spinlock_trylock(&rx->lock) == 0))
		return 0;
	if (unlikely(!__atomic_load_n(&rx->port->link_up, __ATOMIC_RELAXED)))
		n = 0;
	else if (unlikely(__atomic_load_n(&rx->given, __ATOMIC_RELAXED)))
		n = sim_queue_take_given(rx, packets, n);
	else
		n = receive(rx, packets, n);
	rte_spinlock_unlock(&rx->lock);
	return n;
}
