/* SPDX-License-Identifier: BSD-3-Clause */
#include "path/triage.h"

#include <errno.h>
#include <stdlib.h>

#include "packet/datagram.h"
#include "packet/quote.h"
#include "path/held.h"

/* Packets for one shard that are not handed over yet. */
struct outbox {
	unsigned n;
	struct rte_mbuf *packets[TRIAGE_BURST];
};

struct triage {
	struct triage_config config;
	struct fragments *fragments; /* NULL: not tied */
	struct held *held;
	uint64_t now_us;
	struct path_counters counters[FLOW_MAX_WIRES];
	struct outbox outbox[];
};

static void flush(struct triage *triage, unsigned shard)
{
	struct outbox *outbox = &triage->outbox[shard];

	if (outbox->n == 0)
		return;
	triage->config.hand_over(triage->config.context, shard, outbox->packets, outbox->n);
	outbox->n = 0;
}

void triage_flush(struct triage *triage)
{
	for (unsigned i = 0; i < triage->config.steer.n_shards; i++)
		flush(triage, i);
}

static void emit(struct triage *triage, unsigned shard, struct rte_mbuf *packet)
{
	struct outbox *outbox = &triage->outbox[shard];

	packet_meta(packet)->time_us = triage->now_us;
	outbox->packets[outbox->n++] = packet;
	if (outbox->n == TRIAGE_BURST)
		flush(triage, shard);
}

static struct path_counters *counters_of(struct triage *triage, const struct rte_mbuf *packet)
{
	return &triage->counters[packet_meta(packet)->wire];
}

static void emit_flow(struct triage *triage, struct rte_mbuf *packet)
{
	struct packet_meta *meta = packet_meta(packet);

	meta->kind = PACKET_KIND_FLOW;
	meta->unchecked = 0;
	emit(triage, steer_shard(&triage->config.steer, &meta->info), packet);
}

static void emit_untied(struct triage *triage, struct rte_mbuf *packet)
{
	counters_of(triage, packet)->fragments_untied++;
	emit_flow(triage, packet);
}

static struct rte_mbuf *take_held(struct triage *triage, uint32_t *list)
{
	struct rte_mbuf *packet = held_take(triage->held, list);

	if (packet != NULL)
		counters_of(triage, packet)->held--;
	return packet;
}

/* A datagram's time is over and its first fragment never came. */
static void expired(void *context, uint32_t waiting)
{
	struct triage *triage = context;
	struct rte_mbuf *packet;

	while ((packet = take_held(triage, &waiting)) != NULL)
		emit_untied(triage, packet);
}

int triage_create(struct triage **out, const struct triage_config *config)
{
	struct triage *triage =
		calloc(1, sizeof(*triage) + config->steer.n_shards * sizeof(struct outbox));
	int ret = 0;

	if (triage == NULL)
		return -ENOMEM;
	triage->config = *config;
	if (config->max_datagrams != 0) {
		ret = fragments_create(&triage->fragments, config->max_datagrams, expired, triage);
		if (ret == 0)
			ret = held_create(&triage->held, config->max_held);
	}
	if (ret < 0) {
		triage_destroy(triage);
		return ret;
	}
	*out = triage;
	return 0;
}

void triage_destroy(struct triage *triage)
{
	if (triage == NULL)
		return;
	held_destroy(triage->held);
	fragments_destroy(triage->fragments);
	free(triage);
}

uint32_t triage_held(const struct triage *triage)
{
	return triage->held == NULL ? 0 : held_count(triage->held);
}

const struct path_counters *triage_counters(const struct triage *triage)
{
	return triage->counters;
}

static void first_fragment(struct triage *triage, struct rte_mbuf *packet)
{
	const struct packet_info *info = &packet_meta(packet)->info;
	struct fragment_ports ports = {
		packet_src_port(info), packet_dst_port(info), info->key.proto};
	uint64_t fingerprint = datagram_fingerprint(triage->config.extract.secret, info);
	bool tied;
	uint32_t waiting =
		fragments_first(triage->fragments, fingerprint, ports, triage->now_us, &tied);

	emit_flow(triage, packet);
	while ((packet = take_held(triage, &waiting)) != NULL) {
		extract_set_upper(&triage->config.extract, &packet_meta(packet)->info, ports.proto,
			ports.src, ports.dst);
		emit_flow(triage, packet);
	}
}

/* Puts a fragment on its datagram's list; false when there is no room to wait. */
static bool hold(
	struct triage *triage, struct rte_mbuf *packet, uint64_t fingerprint, uint32_t waiting)
{
	uint32_t list = held_add(triage->held, waiting, packet);

	if (list != FRAGMENTS_NONE) {
		counters_of(triage, packet)->held++;
		if (list != waiting)
			fragments_set_waiting(triage->fragments, fingerprint, list);
		return true;
	}
	if (waiting == FRAGMENTS_NONE)
		fragments_forget(triage->fragments, fingerprint);
	return false;
}

static void later_fragment(struct triage *triage, struct rte_mbuf *packet)
{
	struct packet_info *info = &packet_meta(packet)->info;
	uint64_t fingerprint = datagram_fingerprint(triage->config.extract.secret, info);
	struct fragment_ports ports;
	uint32_t waiting;

	switch (fragments_later(triage->fragments, fingerprint, triage->now_us, &ports, &waiting)) {
	case FRAGMENTS_KNOWN:
		extract_set_upper(&triage->config.extract, info, ports.proto, ports.src, ports.dst);
		emit_flow(triage, packet);
		return;
	case FRAGMENTS_WAITING:
		if (!hold(triage, packet, fingerprint, waiting))
			emit_untied(triage, packet);
		return;
	case FRAGMENTS_FULL:
		emit_untied(triage, packet);
		return;
	}
}

static void fragment(struct triage *triage, struct rte_mbuf *packet)
{
	if (packet_meta(packet)->info.flags & PACKET_LATER_FRAGMENT)
		later_fragment(triage, packet);
	else
		first_fragment(triage, packet);
}

/* A note about a packet that an ICMP error quotes, for the shard of its flow. */
static void emit_quote(struct triage *triage, struct rte_mbuf *note)
{
	packet_meta(note)->kind = PACKET_KIND_QUOTE;
	emit(triage, steer_shard(&triage->config.steer, &packet_meta(note)->info), note);
}

/* The same for a quoted later fragment, which has the ports of its first, if that is known. */
static void quoted_fragment(struct triage *triage, struct rte_mbuf *note)
{
	struct packet_info *quoted = &packet_meta(note)->info;
	struct fragment_ports ports;

	if (!fragments_find(triage->fragments,
		    datagram_fingerprint(triage->config.extract.secret, quoted), triage->now_us,
		    &ports)) {
		counters_of(triage, note)->icmp_untied++;
		rte_pktmbuf_free(note);
		return;
	}
	extract_set_upper(&triage->config.extract, quoted, ports.proto, ports.src, ports.dst);
	emit_quote(triage, note);
}

/*
 * Hands a fragment, or a note about one, to the triage that ties its datagram. False when that is this
 * one.
 */
static bool deal(struct triage *triage, struct rte_mbuf *packet, enum packet_kind kind)
{
	struct packet_meta *meta = packet_meta(packet);

	if (!triage->config.shared)
		return false;
	unsigned owner =
		hash_shard(datagram_fingerprint(triage->config.extract.secret, &meta->info),
			triage->config.steer.n_shards);

	if (owner == triage->config.self)
		return false;
	meta->kind = (uint8_t)kind;
	emit(triage, owner, packet);
	return true;
}

/* The note about the flow that an ICMP error quotes; NULL, and counted, when there is none. */
static struct rte_mbuf *make_note(struct triage *triage, struct rte_mbuf *error)
{
	const struct packet_meta *meta = packet_meta(error);
	struct rte_mbuf *note = NULL;
	struct packet_info quoted;

	if (extract_quote(&triage->config.extract, error, &meta->info, &quoted))
		note = rte_pktmbuf_alloc(triage->config.pool);
	if (note == NULL) {
		counters_of(triage, error)->icmp_untied++;
		return NULL;
	}
	packet_meta(note)->info = quoted;
	packet_meta(note)->wire = meta->wire;
	packet_meta(note)->side = meta->side;
	return note;
}

static void quote(struct triage *triage, struct rte_mbuf *note)
{
	if (triage->fragments == NULL || !(packet_meta(note)->info.flags & PACKET_LATER_FRAGMENT))
		emit_quote(triage, note);
	else if (!deal(triage, note, PACKET_KIND_QUOTE_FRAGMENT))
		quoted_fragment(triage, note);
}

/* A packet whose shard need not be computed: RSS brought it where it belongs. */
static bool brought(const struct triage_from *from, const struct packet_info *info)
{
	return from->trusted != 0 && !(info->flags & PACKET_FRAGMENT) &&
	       from->trusted >> rss_kind(&info->key) & 1;
}

/* A packet with a key. Once it is handed over it is no longer ours to read. */
static void flow_packet(
	struct triage *triage, const struct triage_from *from, struct rte_mbuf *packet)
{
	struct packet_meta *meta = packet_meta(packet);
	uint8_t flags = meta->info.flags;
	struct rte_mbuf *note = flags & PACKET_ICMP_ERROR ? make_note(triage, packet) : NULL;

	if (triage->fragments != NULL && flags & PACKET_FRAGMENT) {
		if (!deal(triage, packet, PACKET_KIND_FRAGMENT))
			fragment(triage, packet);
	} else if (brought(from, &meta->info)) {
		meta->kind = PACKET_KIND_FLOW;
		meta->unchecked = 1;
		emit(triage, triage->config.self, packet);
	} else {
		emit_flow(triage, packet);
	}
	if (note != NULL)
		quote(triage, note);
}

static void one(struct triage *triage, const struct triage_from *from, struct rte_mbuf *packet)
{
	struct path_counters *counters = &triage->counters[from->wire];
	struct packet_meta *meta = packet_meta(packet);

	counters->received++;
	counters->received_bytes += packet->pkt_len;
	meta->wire = from->wire;
	meta->side = from->side;
	switch (extract(&triage->config.extract, packet, from->wire, &meta->info)) {
	case EXTRACT_MALFORMED:
		counters->dropped[DROP_MALFORMED]++;
		rte_pktmbuf_free(packet);
		return;
	case EXTRACT_NON_IP:
		counters->non_ip++;
		meta->kind = PACKET_KIND_OTHER;
		emit(triage, triage->config.self, packet);
		return;
	case EXTRACT_IP:
		if (from->side != 0)
			meta->info.flags |= PACKET_SIDE;
		flow_packet(triage, from, packet);
		return;
	}
}

void triage_advance(struct triage *triage, uint64_t now_us)
{
	if (now_us > triage->now_us)
		triage->now_us = now_us;
	if (triage->fragments != NULL)
		fragments_advance(triage->fragments, triage->now_us);
}

void triage_burst(struct triage *triage, struct triage_from from, uint64_t now_us,
	struct rte_mbuf **packets, unsigned n)
{
	triage_advance(triage, now_us);
	for (unsigned i = 0; i < n; i++)
		one(triage, &from, packets[i]);
}

void triage_handed(struct triage *triage, uint64_t now_us, struct rte_mbuf *packet)
{
	triage_advance(triage, now_us);
	if (packet_meta(packet)->kind == PACKET_KIND_FRAGMENT)
		fragment(triage, packet);
	else
		quoted_fragment(triage, packet);
}

static int tell_all(struct triage *triage, enum packet_kind kind, uint64_t time_us, uint32_t run)
{
	for (unsigned i = 0; i < triage->config.steer.n_shards; i++) {
		struct rte_mbuf *note = rte_pktmbuf_alloc(triage->config.pool);

		if (note == NULL)
			return -ENOMEM;
		packet_meta(note)->kind = (uint8_t)kind;
		packet_meta(note)->time_us = time_us;
		packet_meta(note)->run = run;
		triage->config.hand_over(triage->config.context, i, &note, 1);
	}
	return 0;
}

int triage_begin(struct triage *triage, uint64_t origin_us, uint32_t run)
{
	triage->now_us = 0;
	return tell_all(triage, PACKET_KIND_BEGIN, origin_us, run);
}

void triage_release(struct triage *triage)
{
	if (triage->fragments != NULL)
		fragments_flush(triage->fragments);
	triage_flush(triage);
}

int triage_end(struct triage *triage, uint64_t now_us)
{
	triage_advance(triage, now_us);
	triage_release(triage);
	return tell_all(triage, PACKET_KIND_END, triage->now_us, 0);
}
