/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/turn.h"

#include <rte_pause.h>

#include "dataplane/ask.h"
#include "dataplane/pipeline.h"
#include "dataplane/snapshot.h"
#include "dataplane/tx.h"
#include "offload/agent.h"
#include "packet/checksum.h"
#include "packet/cut.h"

/* A queue that was empty so often is polled in one turn of QUIET_TURNS while others bring packets. */
#define QUIET_POLLS 4096
#define QUIET_TURNS 16

/* Polls of every queue in one turn, at most. */
#define RECEIVE_ROUNDS 4
/* Packets of a queue in one turn, at most. */
#define RECEIVE_MOST (RECEIVE_ROUNDS * STATION_BURST)
/* One without link in one turn of so many, whatever the others do. */
#define DOWN_TURNS 64

/*
 * Unless a turn left something where it was, the next one waits so long. With one that followed at once after 24
 * packets a worker that marked packets come to turned all the time at half of what it can carry, each packet half again
 * as dear. A turn and each of its polls cost some hundred cycles whatever they bring: after 4 us that was 37 % of the
 * time at such a load, after 8 us 35 %, after 16 us no less.
 */
#define GATHER_US 8

/* Unfinished checksums before it is said: one may be chance. */
#define CHECKSUMS_SURE 3

static bool is_worker(const struct station *station)
{
	return station->worker.shard != NULL;
}

/* What was lost a while ago is tried again. */
static void trust_anew(struct station *station)
{
	for (unsigned i = 0; i < station->n_rx; i++) {
		struct station_rx *rx = &station->rx[i];
		const uint8_t again = trust_again(&station->trust[i], station->now_us);

		if (again == 0)
			continue;
		rx->from.trusted |= again;
		station_event(station, (struct path_event){
					       .kind = PATH_EVENT_SHARDING_RETRY,
					       .worker = (uint8_t)station->worker.number,
					       .port = rx->from.port,
				       });
	}
}

/* Once a second. */
static __rte_noinline void look(struct station *station)
{
	station->look_us = station->now_us + BALANCE_LOOK_US;
	trust_anew(station);
	if (station->board == NULL)
		return;
	const struct flow_counters *counters = &station->worker.shard->counters;
	const uint64_t had[BALANCE_N] = {
		[BALANCE_FLOWS] = counters->learned, [BALANCE_PACKETS] = counters->packets};
	const unsigned news = balance_look(&station->balance, station->board, station->number,
		station->worker.steer.n_shards, had);

	for (unsigned of = 0; of < BALANCE_N; of++)
		if (news >> of & 1)
			station_event(station, (struct path_event){
						       .kind = PATH_EVENT_CROWDED,
						       .reason = of & 0xff,
						       .worker = (uint8_t)station->number,
					       });
}

void turn_hand_over(void *context, unsigned shard, struct rte_mbuf **packets, unsigned n)
{
	struct station *station = context;
	unsigned to = station->shard_station[shard];

	stage_end(&station->worker.stages, STAGE_TRIAGE, 0);
	if (to == station->place)
		pipeline_resume(station, packets, n);
	else
		send_to_station(station, to, packets, n);
}

/* The first frames of each port are looked at: unfinished checksums make TCP fail mysteriously. */
static void look_at_checksums(
	struct station *station, struct station_rx *rx, struct rte_mbuf **packets, unsigned n)
{
	const struct extract_options options = {.secret = station->secret};
	struct packet_info info;

	for (unsigned i = 0; i < n && rx->checksums_to_look_at > 0; i++) {
		if (extract(&options, packets[i], rx->from.domain, &info) != EXTRACT_IP)
			continue;
		rx->checksums_to_look_at--;
		if (!checksum_unfinished(packets[i], &info) ||
			++rx->checksums_unfinished != CHECKSUMS_SURE)
			continue;
		rx->checksums_to_look_at = 0;
		station_event(station, (struct path_event){
					       .key = info.key,
					       .kind = PATH_EVENT_CHECKSUM_OFFLOAD,
					       .port = rx->from.port,
				       });
	}
}

/* Drops frames that their driver had no room for; says how many are left. */
static unsigned drop_cut(
	struct station *station, const struct station_rx *rx, struct rte_mbuf **packets, unsigned n)
{
	struct path_counters *counters = &station->worker.counters[rx->from.domain];
	unsigned left = 0;

	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *packet = packets[i];

		if (likely(packet->pkt_len < rx->live->rx_room) ||
			!frame_may_be_cut(packet, rx->live->rx_room)) {
			packets[left++] = packet;
			continue;
		}
		counters->received++;
		counters->received_bytes += packet->pkt_len;
		station->ports[rx->from.port].rx_bytes += packet->pkt_len;
		worker_drop_of(&station->worker, rx->from.domain, packet, DROP_CUT);
		station_event_once(station, PATH_EVENT_FRAMES_CUT, rx->from.port);
	}
	return left;
}

/* Says how many packets are left. */
static __rte_noinline unsigned look_closely(
	struct station *station, struct station_rx *rx, struct rte_mbuf **packets, unsigned n)
{
	if (rx->live->rx_room != 0)
		n = drop_cut(station, rx, packets, n);
	if (rx->checksums_to_look_at > 0)
		look_at_checksums(station, rx, packets, n);
	rx->careful = rx->live->rx_room != 0 || rx->checksums_to_look_at > 0;
	return n;
}

/* Is it this queue's turn? What brings nothing is asked less often than what does. */
static bool due(const struct station *station, const struct station_rx *rx)
{
	if (unlikely(station->paused >> rx->from.port & 1))
		return false;
	if (!atomic_load_explicit(&rx->live->link_up, memory_order_relaxed))
		return station->turns % DOWN_TURNS == 0;
	return rx->quiet < QUIET_POLLS || !station->busy || station->turns % QUIET_TURNS == 0;
}

/* Packets that go by triage: counted at their port, their headers on their way. */
static void count_and_fetch(
	struct plane_port_counters *counters, struct rte_mbuf **packets, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		rte_prefetch0(rte_pktmbuf_mtod(packets[i], void *));
		counters->rx_bytes += packets[i]->pkt_len;
	}
}

/* What does not go the short way, or not all of a burst that began there. */
static __rte_noinline void go_by_triage(
	struct station *station, const struct station_rx *rx, struct rte_mbuf **packets, unsigned n)
{
	count_and_fetch(&station->ports[rx->from.port], packets, n);
	pipeline_finish(station);
	triage_burst(station->triage, rx->from, station->now_us, packets, n);
	stage_end(&station->worker.stages, STAGE_TRIAGE, n);
	triage_flush(station->triage);
}

static unsigned receive_queue(struct station *station, struct station_rx *rx, bool directly)
{
	struct stage_times *stages = &station->worker.stages;
	struct rte_mbuf *room[STATION_BURST], **packets = directly ? pipeline_room(station) : room;
	unsigned n, got, direct = 0;

	stage_begin(stages);
	n = got = rte_eth_rx_burst(rx->port_id, rx->queue, packets, station->burst);
	if (n == 0) {
		rx->quiet += rx->quiet < QUIET_POLLS;
		return 0;
	}
	stage_burst(stages);
	stage_end(stages, STAGE_RX, n);
	rx->quiet = 0;
	station->ports[rx->from.port].rx_packets += n;
	if (unlikely(rx->careful)) {
		n = look_closely(station, rx, packets, n);
		if (n == 0)
			return got;
	}
	if (directly)
		direct = pipeline_begin(station, rx, n);
	if (unlikely(direct != n))
		go_by_triage(station, rx, packets + direct, n - direct);
	return got;
}

/* Each queue whose turn it is, once; says whether it is worth another round. */
static bool receive_round(struct station *station, unsigned *sum)
{
	bool whole = false;

	station->more_wait = false;
	for (unsigned i = 0; i < station->n_rx; i++) {
		struct station_rx *rx = &station->rx[i];

		if (!due(station, rx))
			continue;
		const bool directly = pipeline_may(station, rx);
		const unsigned got = receive_queue(station, rx, directly);

		station->bursts += got != 0;
		station->idle_polls += got == 0;
		if (got == station->burst) {
			station->more_wait = true;
			/* what others have to be handed may be too much for their rings */
			whole |= directly;
		}
		*sum += got;
	}
	return whole;
}

/* Several rounds while there is much: a burst is finished when the next one is begun. */
static bool receive(struct station *station)
{
	unsigned n = 0;

	for (unsigned most = 0; most < RECEIVE_MOST; most += station->burst)
		if (!receive_round(station, &n))
			break;
	pipeline_finish(station);
	stage_stop(&station->worker.stages);
	return n != 0;
}

/* Packets and notes that another station handed over, between two markers. */
static void take_packets(
	struct station *station, unsigned sender, const ring_element *elements, unsigned n)
{
	struct rte_mbuf *walk[STATION_BURST];
	unsigned n_walk = 0;

	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *packet = ring_packet(elements[i]);
		struct packet_meta *meta = packet_meta(packet);

		if (!packet_is_note(packet)) {
			station->worker.counters[meta->wire].handed_in++;
			snapshot_packet(&station->snapshot, sender, meta->wire);
		}
		meta->time_us = station->now_us;
		switch ((enum packet_kind)meta->kind) {
		case PACKET_KIND_FRAGMENT:
		case PACKET_KIND_QUOTE_FRAGMENT:
			triage_handed(station->triage, station->now_us, packet);
			break;
		case PACKET_KIND_SEND:
			send_packets(station, &packet, 1);
			break;
		case PACKET_KIND_FLOW:
		case PACKET_KIND_OTHER:
		case PACKET_KIND_QUOTE:
		case PACKET_KIND_BEGIN:
		case PACKET_KIND_END:
			walk[n_walk++] = packet;
			break;
		}
	}
	if (n_walk != 0)
		pipeline_resume(station, walk, n_walk);
}

static unsigned take_ring(struct station *station, unsigned sender)
{
	ring_element elements[STATION_BURST];
	unsigned n = ring_pop(station->from[sender], elements, STATION_BURST);
	unsigned begin = 0;

	for (unsigned i = 0; i < n; i++) {
		if (!ring_is_marker(elements[i]))
			continue;
		/* what came before the marker has to be where it counts */
		take_packets(station, sender, &elements[begin], i - begin);
		snapshot_marker(station, sender, ring_marker_snapshot(elements[i]));
		begin = i + 1;
	}
	take_packets(station, sender, &elements[begin], n - begin);
	return n;
}

static bool take_rings(struct station *station)
{
	unsigned n = 0;

	for (unsigned i = 0; i < station->n_stations; i++) {
		if (station->from[i] == NULL)
			continue;
		unsigned got = STATION_BURST;

		/* as often as packets are received in a turn */
		for (unsigned round = 0; round < RECEIVE_ROUNDS && got == STATION_BURST; round++) {
			got = take_ring(station, i);
			station->bursts += got != 0;
			n += got;
		}
		station->more_wait |= got == STATION_BURST;
	}
	return n != 0;
}

/* From here to the next turn nothing is asked of a paused port. */
static void see_pauses(struct station *station)
{
	uint32_t paused = atomic_load_explicit(station->pause, memory_order_acquire);

	if (likely(paused == station->paused))
		return;
	station->paused = paused;
	station->careful = paused | station->any_length;
	atomic_store_explicit(&station->paused_seen, paused, memory_order_release);
}

bool turn_station(struct station *station, uint64_t now_us)
{
	bool busy = false;

	see_pauses(station);
	station->now_us = now_us;
	station->turns++;
	station->more_wait = false;
	if (unlikely(now_us >= station->look_us))
		look(station);
	if (station->receiving)
		busy |= receive(station);
	busy |= take_rings(station);
	if (station->triage != NULL)
		triage_advance(station->triage, now_us);
	if (is_worker(station)) {
		busy |= !flow_shard_advance(station->worker.shard, now_us);
		busy |= policy_turn(&station->policy, station->worker.shard, !busy,
			station_verdict_changed, station);
		flow_shard_flush(station->worker.shard);
		if (station->worker.agent != NULL)
			agent_turn(station->worker.agent, now_us);
	}
	send_settle(station);
	if (station->snapshot.markers_wait)
		snapshot_push_markers(station);
	busy |= ask_answer(station);
	station->busy = busy;
	return busy;
}

bool turn_timed(struct station *station, uint64_t *tsc)
{
	uint64_t now_us = tsc_clock_us(station->clock, *tsc);

	/* a record's times are all told by what the machine's clock is set to when it is reported */
	if (is_worker(station))
		station->worker.shard->origin_us = tsc_clock_origin_us(station->clock);
	bool busy = turn_station(station, RTE_MAX(now_us, station->now_us));
	uint64_t now = rte_rdtsc();
	uint64_t passed = now > *tsc ? now - *tsc : 0; /* the counter may have begun anew */

	if (busy)
		station->busy_cycles += passed;
	else
		station->idle_cycles += passed;
	*tsc = now;
	return busy;
}

uint64_t turn_wait(bool more_wait, uint64_t *tsc)
{
	const uint64_t begin = *tsc, most = rte_get_tsc_hz() * GATHER_US / CLOCK_US_PER_S;

	if (more_wait)
		return 0;
	/* a counter that begins anew ends it */
	while (*tsc - begin < most) {
		rte_pause();
		*tsc = rte_rdtsc();
	}
	return *tsc > begin ? *tsc - begin : 0;
}

void turn_gather(struct station *station, uint64_t *tsc)
{
	station->idle_cycles += turn_wait(station->more_wait, tsc);
}
