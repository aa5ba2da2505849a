/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/rx.h"

#include "dataplane/pipeline.h"
#include "dataplane/router_in.h"
#include "packet/checksum.h"
#include "packet/cut.h"

/* A queue that was empty so often is polled in one iteration of QUIET_ITERATIONS while others bring packets. */
#define QUIET_POLLS 4096
#define QUIET_ITERATIONS 16

/* Packets of a queue in one iteration, at most. */
#define RECEIVE_MOST (RX_ROUNDS * LCORE_BURST)
/* One without link in one iteration of so many, whatever the others do. */
#define DOWN_ITERATIONS 64

/* Unfinished checksums before it is said: one may be chance. */
#define CHECKSUMS_SURE 3

/* The first frames of each port are looked at: unfinished checksums make TCP fail mysteriously. */
static void look_at_checksums(
	struct lcore *lcore, struct lcore_rx *rx, struct rte_mbuf **packets, unsigned n)
{
	const struct extract_options options = {.secret = lcore->secret};
	struct packet_info info;

	for (unsigned i = 0; i < n && rx->checksums_to_look_at > 0; i++) {
		if (extract(&options, packets[i], rx->from.domain, &info) != EXTRACT_IP)
			continue;
		rx->checksums_to_look_at--;
		if (!checksum_unfinished(packets[i], &info) ||
			++rx->checksums_unfinished != CHECKSUMS_SURE)
			continue;
		rx->checksums_to_look_at = 0;
		lcore_event(lcore, (struct path_event){
					   .key = info.key,
					   .kind = PATH_EVENT_CHECKSUM_OFFLOAD,
					   .port = rx->from.port,
				   });
	}
}

/* Drops frames that their driver had no room for; says how many are left. */
static unsigned drop_cut(
	struct lcore *lcore, const struct lcore_rx *rx, struct rte_mbuf **packets, unsigned n)
{
	struct path_counters *counters = &lcore->worker.counters[rx->from.domain];
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
		lcore->ports[rx->from.port].rx_bytes += packet->pkt_len;
		lcore_drop_of(lcore, rx->from.domain, packet, DROP_CUT);
		lcore_event_once(lcore, PATH_EVENT_FRAMES_CUT, rx->from.port);
	}
	return left;
}

/* Says how many packets are left. */
static __rte_noinline unsigned look_closely(
	struct lcore *lcore, struct lcore_rx *rx, struct rte_mbuf **packets, unsigned n)
{
	if (rx->live->rx_room != 0)
		n = drop_cut(lcore, rx, packets, n);
	if (rx->checksums_to_look_at > 0)
		look_at_checksums(lcore, rx, packets, n);
	rx->careful = rx->live->rx_room != 0 || rx->checksums_to_look_at > 0 || rx->from.router;
	return rx->from.router ? router_in(lcore, rx, packets, n) : n;
}

/* Is this queue polled now? What brings nothing is asked less often than what does. */
static bool due(const struct lcore *lcore, const struct lcore_rx *rx)
{
	if (unlikely(lcore->paused >> rx->from.port & 1))
		return false;
	if (!atomic_load_explicit(&rx->live->link_up, memory_order_relaxed))
		return lcore->iterations % DOWN_ITERATIONS == 0;
	return rx->quiet < QUIET_POLLS || !lcore->busy || lcore->iterations % QUIET_ITERATIONS == 0;
}

/* Packets that go to the parser: counted at their port, their headers on their way. */
static void count_and_fetch(
	struct plane_port_counters *counters, struct rte_mbuf **packets, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		rte_prefetch0(rte_pktmbuf_mtod(packets[i], void *));
		counters->rx_bytes += packets[i]->pkt_len;
	}
}

/* What does not begin in the pipeline, or not all of a burst that began there. */
static __rte_noinline void go_to_parser(
	struct lcore *lcore, const struct lcore_rx *rx, struct rte_mbuf **packets, unsigned n)
{
	count_and_fetch(&lcore->ports[rx->from.port], packets, n);
	pipeline_finish(lcore);
	parser_burst(lcore->parser, rx->from, lcore->now_us, packets, n);
	stage_end(&lcore->worker.stages, STAGE_PARSE, n);
	parser_flush(lcore->parser);
}

static unsigned receive_queue(struct lcore *lcore, struct lcore_rx *rx, bool directly)
{
	struct stage_times *stages = &lcore->worker.stages;
	struct rte_mbuf *room[LCORE_BURST], **packets = directly ? pipeline_room(lcore) : room;
	unsigned n, got, direct = 0;

	stage_begin(stages);
	n = got = rte_eth_rx_burst(rx->port_id, rx->queue, packets, lcore->burst);
	if (n == 0) {
		rx->quiet += rx->quiet < QUIET_POLLS;
		return 0;
	}
	stage_burst(stages);
	stage_end(stages, STAGE_RX, n);
	rx->quiet = 0;
	lcore->ports[rx->from.port].rx_packets += n;
	if (unlikely(rx->careful)) {
		n = look_closely(lcore, rx, packets, n);
		if (n == 0)
			return got;
	}
	if (directly)
		direct = pipeline_begin(lcore, rx, n);
	if (unlikely(direct != n))
		go_to_parser(lcore, rx, packets + direct, n - direct);
	return got;
}

/* Each queue that is due, once; says whether it is worth another round. */
static bool receive_round(struct lcore *lcore, unsigned *sum)
{
	bool whole = false;

	lcore->more_wait = false;
	for (unsigned i = 0; i < lcore->n_rx; i++) {
		struct lcore_rx *rx = &lcore->rx[i];

		if (!due(lcore, rx))
			continue;
		const bool directly = pipeline_may(lcore, rx);
		const unsigned got = receive_queue(lcore, rx, directly);

		lcore->bursts += got != 0;
		lcore->idle_polls += got == 0;
		if (got == lcore->burst) {
			lcore->more_wait = true;
			/* what others have to be handed may be too much for their rings */
			whole |= directly;
		}
		*sum += got;
	}
	return whole;
}

/* Several rounds while there is much: a burst is finished when the next one is begun. */
bool rx_poll(struct lcore *lcore)
{
	unsigned n = 0;

	for (unsigned most = 0; most < RECEIVE_MOST; most += lcore->burst)
		if (!receive_round(lcore, &n))
			break;
	pipeline_finish(lcore);
	stage_stop(&lcore->worker.stages);
	return n != 0;
}
