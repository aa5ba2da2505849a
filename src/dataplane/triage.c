/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/triage.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include <netinet/in.h>

#include "dataplane/held.h"
#include "packet/datagram.h"
#include "packet/headers.h"
#include "packet/quote.h"

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
	unsigned left; /* packets that may still be let go in this turn */
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

static void drop(struct triage *triage, struct rte_mbuf *packet, enum drop_reason reason)
{
	counters_of(triage, packet)->dropped[reason]++;
	rte_pktmbuf_free(packet);
}

/*
 * A packet that strict TCP does not let pass, since whoever checks it sees another header than the one who gets it: a
 * first fragment that ends before the header does, or one with offset 8, which would write over the flags of a header
 * that is whole (RFC 1858, RFC 3128); a header that is cut or cannot be; also a first fragment that ends before
 * the extension headers do that TCP may follow (RFC 7112).
 */
static bool hides_header(const struct packet_info *info)
{
	uint8_t proto = info->key.proto;

	if (info->flags & PACKET_LATER_FRAGMENT)
		return proto == IPPROTO_TCP &&
		       (info->fragment_offset & ~PACKET_MORE_FRAGMENTS) == 1;
	if (proto == IPPROTO_TCP)
		return !(info->flags & PACKET_TCP);
	return info->flags & PACKET_FIRST_FRAGMENT && info->flags & PACKET_CUT &&
	       proto_is_extension((uint8_t)flow_key_version(&info->key), proto);
}

static bool is_refused(const struct triage *triage, const struct rte_mbuf *packet)
{
	return triage->config.tcp_strict && hides_header(&packet_meta(packet)->info);
}

/* A later fragment that is with its first, or has to do without. */
static void emit_later(struct triage *triage, struct rte_mbuf *packet)
{
	if (is_refused(triage, packet))
		drop(triage, packet, DROP_TCP_HEADER);
	else
		emit_flow(triage, packet);
}

static void emit_tied(struct triage *triage, struct rte_mbuf *packet, struct fragment_ports ports)
{
	extract_set_upper(&triage->config.extract, &packet_meta(packet)->info, ports.proto,
		ports.src, ports.dst);
	emit_later(triage, packet);
}

static void emit_untied(struct triage *triage, struct rte_mbuf *packet)
{
	counters_of(triage, packet)->fragments_untied++;
	emit_later(triage, packet);
}

/* A packet that was held is no longer. */
static void let_go(struct triage *triage, struct rte_mbuf *packet, enum held_fate fate,
	struct fragment_ports ports)
{
	packet_meta(packet)->waited = 1;
	counters_of(triage, packet)->held--;
	triage->left -= triage->left != 0;
	if (fate == HELD_TIED)
		emit_tied(triage, packet, ports);
	else if (fate == HELD_UNTIED)
		emit_untied(triage, packet);
	else
		drop(triage, packet, DROP_TCP_HEADER);
}

static bool let_go_ready(struct triage *triage)
{
	enum held_fate fate;
	struct fragment_ports ports;
	struct rte_mbuf *packet = held_take_ready(triage->held, &fate, &ports);

	if (packet != NULL)
		let_go(triage, packet, fate, ports);
	return packet != NULL;
}

/* There is none that is ready: the oldest of those that wait goes on without its first fragment. */
static void let_go_oldest(struct triage *triage)
{
	bool last;
	struct rte_mbuf *packet = held_take_oldest(triage->held, &last);

	if (last)
		fragments_forget(
			triage->fragments, datagram_fingerprint(triage->config.extract.secret,
						   &packet_meta(packet)->info));
	let_go(triage, packet, HELD_UNTIED, (struct fragment_ports){0});
}

/* Of those whose fate is known, as many as may go now. */
static void let_go_settled(struct triage *triage)
{
	while (triage->left != 0 && let_go_ready(triage))
		;
}

static void settle(
	struct triage *triage, uint32_t waiting, enum held_fate fate, struct fragment_ports ports)
{
	if (waiting == FRAGMENTS_NONE)
		return;
	held_settle(triage->held, waiting, fate, ports);
	let_go_settled(triage);
}

/* A datagram that waits has to make room. */
static void evicted(void *context, uint32_t waiting)
{
	struct triage *triage = context;

	held_settle(triage->held, waiting, HELD_UNTIED, (struct fragment_ports){0});
}

/*
 * Time passes, and what has waited for so long goes on: each packet at its own time, unless that has passed already
 * because only so many may go at once.
 */
static void pass_time(struct triage *triage, uint64_t now_us)
{
	const struct rte_mbuf *oldest;

	if (triage->fragments != NULL) {
		let_go_settled(triage);
		while (triage->left != 0 && (oldest = held_oldest(triage->held)) != NULL) {
			uint64_t until_us =
				packet_meta(oldest)->came_us + triage->config.max_wait_us;

			if (until_us > now_us)
				break;
			triage->now_us = RTE_MAX(triage->now_us, until_us);
			let_go_oldest(triage);
		}
	}
	triage->now_us = RTE_MAX(triage->now_us, now_us);
}

int triage_create(struct triage **out, const struct triage_config *config)
{
	struct triage *triage =
		calloc(1, sizeof(*triage) + config->steer.n_shards * sizeof(struct outbox));
	int ret = 0;

	if (triage == NULL)
		return -ENOMEM;
	triage->config = *config;
	triage->left = config->pace == 0 ? UINT_MAX : config->pace;
	if (config->max_datagrams != 0) {
		ret = fragments_create(&triage->fragments, config->max_datagrams, evicted, triage);
		if (ret == 0)
			ret = held_create(
				&triage->held, config->max_held, config->max_held_datagram);
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

static struct fragment_piece piece_of(const struct packet_info *info)
{
	return (struct fragment_piece){
		.offset = info->fragment_offset & (uint16_t)~PACKET_MORE_FRAGMENTS,
		.length = info->fragment_length,
		.more = (info->fragment_offset & PACKET_MORE_FRAGMENTS) != 0,
	};
}

static void first_fragment(struct triage *triage, struct rte_mbuf *packet)
{
	const struct packet_info *info = &packet_meta(packet)->info;
	struct fragment_ports ports = {
		packet_src_port(info), packet_dst_port(info), info->key.proto};
	uint64_t fingerprint = datagram_fingerprint(triage->config.extract.secret, info);
	uint32_t waiting;

	if (is_refused(triage, packet)) {
		waiting = fragments_drop(triage->fragments, fingerprint, triage->now_us);
		drop(triage, packet, DROP_TCP_HEADER);
		settle(triage, waiting, HELD_DROPPED, ports);
		return;
	}
	waiting = fragments_first(
		triage->fragments, fingerprint, ports, piece_of(info), triage->now_us);
	emit_flow(triage, packet);
	settle(triage, waiting, HELD_TIED, ports);
}

/* Puts a fragment on its datagram's list; false when that has as many as may wait. */
static bool hold(
	struct triage *triage, struct rte_mbuf *packet, uint64_t fingerprint, uint32_t waiting)
{
	uint32_t list = held_add(triage->held, waiting, packet);

	if (list == HELD_NONE)
		return false;
	counters_of(triage, packet)->held++;
	if (list != waiting)
		fragments_set_waiting(triage->fragments, fingerprint, list);
	return true;
}

/* Where there is no room for another packet the one that has been held for longest goes. */
static void make_room(struct triage *triage, const struct rte_mbuf *packet)
{
	while (!held_has_room(triage->held, packet))
		if (!let_go_ready(triage))
			let_go_oldest(triage);
}

static void later_fragment(struct triage *triage, struct rte_mbuf *packet)
{
	struct packet_info *info = &packet_meta(packet)->info;
	uint64_t fingerprint = datagram_fingerprint(triage->config.extract.secret, info);
	struct fragment_piece piece = piece_of(info);
	struct fragment_ports ports;
	uint32_t waiting;

	switch (fragments_later(
		triage->fragments, fingerprint, piece, triage->now_us, &ports, &waiting)) {
	case FRAGMENTS_KNOWN:
		emit_tied(triage, packet, ports);
		return;
	case FRAGMENTS_DROPPED:
		drop(triage, packet, DROP_TCP_HEADER);
		return;
	case FRAGMENTS_WAITING:
		break;
	}
	if (waiting == FRAGMENTS_NONE && !held_could(triage->held, packet)) {
		fragments_forget(triage->fragments, fingerprint);
		emit_untied(triage, packet);
		return;
	}
	if (!held_has_room(triage->held, packet)) {
		make_room(triage, packet);
		/* that may have been the last of its own datagram, which begins anew then */
		piece.length = 0;
		fragments_later(
			triage->fragments, fingerprint, piece, triage->now_us, &ports, &waiting);
	}
	if (!hold(triage, packet, fingerprint, waiting))
		emit_untied(triage, packet);
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
	packet_meta(note)->port = meta->port;
	return note;
}

static void quote(struct triage *triage, struct rte_mbuf *note)
{
	if (triage->fragments == NULL || !(packet_meta(note)->info.flags & PACKET_LATER_FRAGMENT))
		emit_quote(triage, note);
	else if (!deal(triage, note, PACKET_KIND_QUOTE_FRAGMENT))
		quoted_fragment(triage, note);
}

/*
 * A packet whose shard need not be computed: RSS brought it where it belongs. Of what is not plain the NIC may have made its
 * hash otherwise than we would.
 */
static bool brought(const struct arrival *from, const struct packet_info *info)
{
	return from->trusted != 0 &&
	       !(info->flags & (PACKET_FRAGMENT | PACKET_CUT | PACKET_UNPLAIN)) &&
	       from->trusted >> rss_kind(&info->key) & 1;
}

/* A packet with a key. Once it is handed over it is no longer ours to read. */
static void flow_packet(struct triage *triage, const struct arrival *from, struct rte_mbuf *packet)
{
	struct packet_meta *meta = packet_meta(packet);
	uint8_t flags = meta->info.flags;
	struct rte_mbuf *note = flags & PACKET_ICMP_ERROR ? make_note(triage, packet) : NULL;

	if (triage->fragments != NULL && flags & PACKET_FRAGMENT) {
		if (!deal(triage, packet, PACKET_KIND_FRAGMENT))
			fragment(triage, packet);
	} else if (is_refused(triage, packet)) {
		drop(triage, packet, DROP_TCP_HEADER);
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

static void one(struct triage *triage, const struct arrival *from, struct rte_mbuf *packet)
{
	struct path_counters *counters = &triage->counters[from->domain];
	struct packet_meta *meta = packet_meta(packet);

	counters->received++;
	counters->received_bytes += packet->pkt_len;
	meta->wire = from->domain;
	meta->port = from->port;
	if (!from->stamped)
		meta->came_us = triage->now_us;
	meta->waited = meta->came_us < triage->now_us;
	switch (extract(&triage->config.extract, packet, from->domain, &meta->info)) {
	case EXTRACT_MALFORMED:
		drop(triage, packet, DROP_MALFORMED);
		return;
	case EXTRACT_NON_IP:
		counters->non_ip++;
		meta->kind = PACKET_KIND_OTHER;
		emit(triage, triage->config.self, packet);
		return;
	case EXTRACT_IP:
		if (from->place != 0)
			meta->info.flags |= PACKET_SIDE;
		flow_packet(triage, from, packet);
		return;
	}
}

/* Something arrives: without a pace what has waited too long goes before it. */
static void arrive(struct triage *triage, uint64_t now_us)
{
	if (triage->config.pace == 0)
		triage_advance(triage, now_us);
	else
		triage->now_us = RTE_MAX(triage->now_us, now_us);
}

void triage_advance(struct triage *triage, uint64_t now_us)
{
	pass_time(triage, now_us);
	/* the next turn begins */
	triage->left = triage->config.pace == 0 ? UINT_MAX : triage->config.pace;
}

void triage_burst(struct triage *triage, struct arrival from, uint64_t now_us,
	struct rte_mbuf **packets, unsigned n)
{
	arrive(triage, now_us);
	for (unsigned i = 0; i < n; i++)
		one(triage, &from, packets[i]);
}

void triage_handed(struct triage *triage, uint64_t now_us, struct rte_mbuf *packet)
{
	arrive(triage, now_us);
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
	if (triage->fragments != NULL) {
		while (let_go_ready(triage))
			;
		while (held_oldest(triage->held) != NULL)
			let_go_oldest(triage);
		fragments_clear(triage->fragments);
	}
	triage_flush(triage);
}

int triage_end(struct triage *triage, uint64_t now_us)
{
	triage_advance(triage, now_us);
	triage_release(triage);
	return tell_all(triage, PACKET_KIND_END, triage->now_us, 0);
}
