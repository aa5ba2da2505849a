/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/parse.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include <netinet/in.h>

#include "flow/held.h"
#include "packet/datagram.h"
#include "packet/headers.h"
#include "packet/quote.h"

/* Packets for one shard that are not handed over yet. */
struct outbox {
	unsigned n;
	struct rte_mbuf *packets[PARSER_BURST];
};

struct parser {
	struct parser_config config;
	struct fragments *fragments; /* NULL: not tied */
	struct held *held;
	uint64_t now_us;
	unsigned left; /* packets that may still be let go in this iteration */
	struct path_counters counters[FLOW_MAX_WIRES];
	struct outbox outbox[];
};

static void flush_outbox(struct parser *parser, unsigned shard)
{
	struct outbox *outbox = &parser->outbox[shard];

	if (outbox->n == 0)
		return;
	parser->config.hand_over(parser->config.context, shard, outbox->packets, outbox->n);
	outbox->n = 0;
}

void parser_flush(struct parser *parser)
{
	for (unsigned i = 0; i < parser->config.steer.n_shards; i++)
		flush_outbox(parser, i);
}

static void emit(struct parser *parser, unsigned shard, struct rte_mbuf *packet)
{
	struct outbox *outbox = &parser->outbox[shard];

	packet_meta(packet)->time_us = parser->now_us;
	outbox->packets[outbox->n++] = packet;
	if (outbox->n == PARSER_BURST)
		flush_outbox(parser, shard);
}

static struct path_counters *counters_of(struct parser *parser, const struct rte_mbuf *packet)
{
	return &parser->counters[packet_meta(packet)->wire];
}

static void emit_own(struct parser *parser, struct rte_mbuf *packet)
{
	struct packet_meta *meta = packet_meta(packet);

	meta->kind = PACKET_KIND_FLOW;
	meta->unchecked = 0;
	emit(parser, steer_shard(&parser->config.steer, &meta->info), packet);
}

/* An ICMP error goes on, whose quoted flow was not asked: nobody will be. */
static void emit_unasked(struct parser *parser, struct rte_mbuf *error)
{
	if (error != NULL)
		emit_own(parser, error);
}

/* A note about a packet that an ICMP error quotes, for the shard of its flow. */
static void emit_quote(struct parser *parser, struct rte_mbuf *note)
{
	const unsigned shard = steer_shard(&parser->config.steer, &packet_meta(note)->info);
	struct rte_mbuf *error = packet_meta(note)->error;

	packet_meta(note)->kind = PACKET_KIND_QUOTE;
	emit(parser, shard, note);
	if (error == NULL || parser->config.wait == NULL)
		return;
	flush_outbox(parser, shard);
	parser->config.wait(parser->config.context, shard);
	emit_own(parser, error);
}

/* The same for a quoted later fragment, which has the ports of its first, if that is known. */
static void quoted_fragment(struct parser *parser, struct rte_mbuf *note)
{
	struct packet_info *quoted = &packet_meta(note)->info;
	struct fragment_ports ports;

	if (!fragments_find(parser->fragments,
		    datagram_fingerprint(parser->config.extract.secret, quoted), parser->now_us,
		    &ports)) {
		counters_of(parser, note)->icmp_untied++;
		emit_unasked(parser, packet_meta(note)->error);
		rte_pktmbuf_free(note);
		return;
	}
	extract_set_upper(&parser->config.extract, quoted, ports.proto, ports.src, ports.dst);
	emit_quote(parser, note);
}

/*
 * Hands a fragment, or a note about one, to the parser that ties its datagram. False when that is this
 * one.
 */
static bool deal(struct parser *parser, struct rte_mbuf *packet, enum packet_kind kind)
{
	struct packet_meta *meta = packet_meta(packet);

	if (!parser->config.shared)
		return false;
	unsigned owner =
		hash_shard(datagram_fingerprint(parser->config.extract.secret, &meta->info),
			parser->config.steer.n_shards);

	if (owner == parser->config.self)
		return false;
	meta->kind = (uint8_t)kind;
	emit(parser, owner, packet);
	return true;
}

/* The note about the flow that an ICMP error quotes; NULL, and counted, when there is none. */
static struct rte_mbuf *make_note(struct parser *parser, struct rte_mbuf *error)
{
	const struct packet_meta *meta = packet_meta(error);
	struct rte_mbuf *note = NULL;
	struct packet_info quoted;

	if (extract_quote(&parser->config.extract, error, &meta->info, &quoted))
		note = rte_pktmbuf_alloc(parser->config.pool);
	if (note == NULL) {
		counters_of(parser, error)->icmp_untied++;
		return NULL;
	}
	packet_meta(note)->info = quoted;
	packet_meta(note)->error = NULL;
	packet_meta(note)->wire = meta->wire;
	packet_meta(note)->port = meta->port;
	return note;
}

static void quote(struct parser *parser, struct rte_mbuf *note)
{
	if (parser->fragments == NULL || !(packet_meta(note)->info.flags & PACKET_LATER_FRAGMENT))
		emit_quote(parser, note);
	else if (!deal(parser, note, PACKET_KIND_QUOTE_FRAGMENT))
		quoted_fragment(parser, note);
}

/* An ICMP error that is to be decided by the flow that it quotes travels with the note about that. */
static void emit_related(struct parser *parser, struct rte_mbuf *error)
{
	struct rte_mbuf *note = make_note(parser, error);

	if (note == NULL) {
		emit_own(parser, error);
		return;
	}
	packet_meta(note)->error = error;
	quote(parser, note);
}

static void emit_flow(struct parser *parser, struct rte_mbuf *packet)
{
	const uint8_t flags = packet_meta(packet)->info.flags;

	if (unlikely(flags & PACKET_ICMP_ERROR) && parser->config.relates)
		emit_related(parser, packet);
	else
		emit_own(parser, packet);
}

static void drop(struct parser *parser, struct rte_mbuf *packet, enum drop_reason reason)
{
	const struct packet_meta *meta = packet_meta(packet);

	if (parser->config.drops != NULL && drop_watch_is_on(parser->config.drops))
		drop_watch_packet(
			parser->config.drops, meta->wire, meta->port, packet, NULL, reason);
	counters_of(parser, packet)->dropped[reason]++;
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

static bool is_refused(const struct parser *parser, const struct rte_mbuf *packet)
{
	return parser->config.tcp_strict && hides_header(&packet_meta(packet)->info);
}

/* A later fragment that is with its first, or has to do without. */
static void emit_later(struct parser *parser, struct rte_mbuf *packet)
{
	if (is_refused(parser, packet))
		drop(parser, packet, DROP_TCP_HEADER);
	else
		emit_flow(parser, packet);
}

static void emit_tied(struct parser *parser, struct rte_mbuf *packet, struct fragment_ports ports)
{
	extract_set_upper(&parser->config.extract, &packet_meta(packet)->info, ports.proto,
		ports.src, ports.dst);
	emit_later(parser, packet);
}

static void emit_untied(struct parser *parser, struct rte_mbuf *packet)
{
	counters_of(parser, packet)->fragments_untied++;
	emit_later(parser, packet);
}

/* A packet that was held is no longer. */
static void let_go(struct parser *parser, struct rte_mbuf *packet, enum held_fate fate,
	struct fragment_ports ports)
{
	packet_meta(packet)->waited = 1;
	counters_of(parser, packet)->held--;
	parser->left -= parser->left != 0;
	if (fate == HELD_TIED)
		emit_tied(parser, packet, ports);
	else if (fate == HELD_UNTIED)
		emit_untied(parser, packet);
	else
		drop(parser, packet, DROP_TCP_HEADER);
}

static bool let_go_ready(struct parser *parser)
{
	enum held_fate fate;
	struct fragment_ports ports;
	struct rte_mbuf *packet = held_take_ready(parser->held, &fate, &ports);

	if (packet != NULL)
		let_go(parser, packet, fate, ports);
	return packet != NULL;
}

/* There is none that is ready: the oldest of those that wait goes on without its first fragment. */
static void let_go_oldest(struct parser *parser)
{
	bool last;
	struct rte_mbuf *packet = held_take_oldest(parser->held, &last);

	if (last)
		fragments_forget(
			parser->fragments, datagram_fingerprint(parser->config.extract.secret,
						   &packet_meta(packet)->info));
	let_go(parser, packet, HELD_UNTIED, (struct fragment_ports){0});
}

/* Of those whose fate is known, as many as may go now. */
static void let_go_settled(struct parser *parser)
{
	while (parser->left != 0 && let_go_ready(parser))
		;
}

static void settle(
	struct parser *parser, uint32_t waiting, enum held_fate fate, struct fragment_ports ports)
{
	if (waiting == FRAGMENTS_NONE)
		return;
	held_settle(parser->held, waiting, fate, ports);
	let_go_settled(parser);
}

/* A datagram that waits has to make room. */
static void evicted(void *context, uint32_t waiting)
{
	struct parser *parser = context;

	held_settle(parser->held, waiting, HELD_UNTIED, (struct fragment_ports){0});
}

/*
 * Time passes, and what has waited for so long goes on: each packet at its own time, unless that has passed already
 * because only so many may go at once.
 */
static void pass_time(struct parser *parser, uint64_t now_us)
{
	const struct rte_mbuf *oldest;

	if (parser->fragments != NULL) {
		let_go_settled(parser);
		while (parser->left != 0 && (oldest = held_oldest(parser->held)) != NULL) {
			uint64_t until_us =
				packet_meta(oldest)->came_us + parser->config.max_wait_us;

			if (until_us > now_us)
				break;
			parser->now_us = RTE_MAX(parser->now_us, until_us);
			let_go_oldest(parser);
		}
	}
	parser->now_us = RTE_MAX(parser->now_us, now_us);
}

int parser_create(struct parser **out, const struct parser_config *config)
{
	struct parser *parser =
		calloc(1, sizeof(*parser) + config->steer.n_shards * sizeof(struct outbox));
	int ret = 0;

	if (parser == NULL)
		return -ENOMEM;
	parser->config = *config;
	parser->left = config->pace == 0 ? UINT_MAX : config->pace;
	if (config->max_datagrams != 0) {
		ret = fragments_create(&parser->fragments, config->max_datagrams, evicted, parser);
		if (ret == 0)
			ret = held_create(
				&parser->held, config->max_held, config->max_held_datagram);
	}
	if (ret < 0) {
		parser_destroy(parser);
		return ret;
	}
	*out = parser;
	return 0;
}

void parser_destroy(struct parser *parser)
{
	if (parser == NULL)
		return;
	held_destroy(parser->held);
	fragments_destroy(parser->fragments);
	free(parser);
}

uint32_t parser_held(const struct parser *parser)
{
	return parser->held == NULL ? 0 : held_count(parser->held);
}

const struct path_counters *parser_counters(const struct parser *parser)
{
	return parser->counters;
}

static struct fragment_piece piece_of(const struct packet_info *info)
{
	return (struct fragment_piece){
		.offset = info->fragment_offset & (uint16_t)~PACKET_MORE_FRAGMENTS,
		.length = info->fragment_length,
		.more = (info->fragment_offset & PACKET_MORE_FRAGMENTS) != 0,
	};
}

static void first_fragment(struct parser *parser, struct rte_mbuf *packet)
{
	const struct packet_info *info = &packet_meta(packet)->info;
	struct fragment_ports ports = {
		packet_src_port(info), packet_dst_port(info), info->key.proto};
	uint64_t fingerprint = datagram_fingerprint(parser->config.extract.secret, info);
	uint32_t waiting;

	if (is_refused(parser, packet)) {
		waiting = fragments_drop(parser->fragments, fingerprint, parser->now_us);
		drop(parser, packet, DROP_TCP_HEADER);
		settle(parser, waiting, HELD_DROPPED, ports);
		return;
	}
	waiting = fragments_first(
		parser->fragments, fingerprint, ports, piece_of(info), parser->now_us);
	emit_flow(parser, packet);
	settle(parser, waiting, HELD_TIED, ports);
}

/* Puts a fragment on its datagram's list; false when that has as many as may wait. */
static bool hold(
	struct parser *parser, struct rte_mbuf *packet, uint64_t fingerprint, uint32_t waiting)
{
	uint32_t list = held_add(parser->held, waiting, packet);

	if (list == HELD_NONE)
		return false;
	counters_of(parser, packet)->held++;
	if (list != waiting)
		fragments_set_waiting(parser->fragments, fingerprint, list);
	return true;
}

/* Where there is no room for another packet the one that has been held for longest goes. */
static void make_room(struct parser *parser, const struct rte_mbuf *packet)
{
	while (!held_has_room(parser->held, packet))
		if (!let_go_ready(parser))
			let_go_oldest(parser);
}

static void later_fragment(struct parser *parser, struct rte_mbuf *packet)
{
	struct packet_info *info = &packet_meta(packet)->info;
	uint64_t fingerprint = datagram_fingerprint(parser->config.extract.secret, info);
	struct fragment_piece piece = piece_of(info);
	struct fragment_ports ports;
	uint32_t waiting;

	switch (fragments_later(
		parser->fragments, fingerprint, piece, parser->now_us, &ports, &waiting)) {
	case FRAGMENTS_KNOWN:
		emit_tied(parser, packet, ports);
		return;
	case FRAGMENTS_DROPPED:
		drop(parser, packet, DROP_TCP_HEADER);
		return;
	case FRAGMENTS_WAITING:
		break;
	}
	if (waiting == FRAGMENTS_NONE && !held_could(parser->held, packet)) {
		fragments_forget(parser->fragments, fingerprint);
		emit_untied(parser, packet);
		return;
	}
	if (!held_has_room(parser->held, packet)) {
		make_room(parser, packet);
		/* that may have been the last of its own datagram, which begins anew then */
		piece.length = 0;
		fragments_later(
			parser->fragments, fingerprint, piece, parser->now_us, &ports, &waiting);
	}
	if (!hold(parser, packet, fingerprint, waiting))
		emit_untied(parser, packet);
}

static void fragment(struct parser *parser, struct rte_mbuf *packet)
{
	if (packet_meta(packet)->info.flags & PACKET_LATER_FRAGMENT)
		later_fragment(parser, packet);
	else
		first_fragment(parser, packet);
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
static void flow_packet(struct parser *parser, const struct arrival *from, struct rte_mbuf *packet)
{
	struct packet_meta *meta = packet_meta(packet);
	uint8_t flags = meta->info.flags;
	struct rte_mbuf *note = flags & PACKET_ICMP_ERROR && !parser->config.relates
					? make_note(parser, packet)
					: NULL;

	if (parser->fragments != NULL && flags & PACKET_FRAGMENT) {
		if (!deal(parser, packet, PACKET_KIND_FRAGMENT))
			fragment(parser, packet);
	} else if (is_refused(parser, packet)) {
		drop(parser, packet, DROP_TCP_HEADER);
	} else if (brought(from, &meta->info) &&
		   !(flags & PACKET_ICMP_ERROR && parser->config.relates)) {
		meta->kind = PACKET_KIND_FLOW;
		meta->unchecked = 1;
		emit(parser, parser->config.self, packet);
	} else {
		emit_flow(parser, packet);
	}
	if (note != NULL)
		quote(parser, note);
}

static void one(struct parser *parser, const struct arrival *from, struct rte_mbuf *packet)
{
	struct path_counters *counters = &parser->counters[from->domain];
	struct packet_meta *meta = packet_meta(packet);

	counters->received++;
	counters->received_bytes += packet->pkt_len;
	meta->wire = from->domain;
	meta->port = from->port;
	if (!from->stamped)
		meta->came_us = parser->now_us;
	meta->waited = meta->came_us < parser->now_us;
	switch (extract(&parser->config.extract, packet, from->domain, &meta->info)) {
	case EXTRACT_MALFORMED:
		drop(parser, packet, DROP_MALFORMED);
		return;
	case EXTRACT_NON_IP:
		counters->non_ip++;
		meta->kind = PACKET_KIND_OTHER;
		emit(parser, parser->config.self, packet);
		return;
	case EXTRACT_IP:
		if (from->place != 0)
			meta->info.flags |= PACKET_SIDE;
		flow_packet(parser, from, packet);
		return;
	}
}

/* Something arrives: without a pace what has waited too long goes before it. */
static void arrive(struct parser *parser, uint64_t now_us)
{
	if (parser->config.pace == 0)
		parser_advance(parser, now_us);
	else
		parser->now_us = RTE_MAX(parser->now_us, now_us);
}

void parser_advance(struct parser *parser, uint64_t now_us)
{
	pass_time(parser, now_us);
	/* the next iteration begins */
	parser->left = parser->config.pace == 0 ? UINT_MAX : parser->config.pace;
}

void parser_burst(struct parser *parser, struct arrival from, uint64_t now_us,
	struct rte_mbuf **packets, unsigned n)
{
	arrive(parser, now_us);
	for (unsigned i = 0; i < n; i++)
		one(parser, &from, packets[i]);
}

void parser_handed(struct parser *parser, uint64_t now_us, struct rte_mbuf *packet)
{
	arrive(parser, now_us);
	if (packet_meta(packet)->kind == PACKET_KIND_FRAGMENT)
		fragment(parser, packet);
	else
		quoted_fragment(parser, packet);
}

static int tell_all(struct parser *parser, enum packet_kind kind, uint64_t time_us, uint32_t run)
{
	for (unsigned i = 0; i < parser->config.steer.n_shards; i++) {
		struct rte_mbuf *note = rte_pktmbuf_alloc(parser->config.pool);

		if (note == NULL)
			return -ENOMEM;
		packet_meta(note)->kind = (uint8_t)kind;
		packet_meta(note)->time_us = time_us;
		packet_meta(note)->run = run;
		parser->config.hand_over(parser->config.context, i, &note, 1);
	}
	return 0;
}

int parser_begin(struct parser *parser, uint64_t origin_us, uint32_t run)
{
	parser->now_us = 0;
	return tell_all(parser, PACKET_KIND_BEGIN, origin_us, run);
}

void parser_release(struct parser *parser)
{
	if (parser->fragments != NULL) {
		while (let_go_ready(parser))
			;
		while (held_oldest(parser->held) != NULL)
			let_go_oldest(parser);
		fragments_clear(parser->fragments);
	}
	parser_flush(parser);
}

int parser_end(struct parser *parser, uint64_t now_us)
{
	parser_advance(parser, now_us);
	parser_release(parser);
	return tell_all(parser, PACKET_KIND_END, parser->now_us, 0);
}
