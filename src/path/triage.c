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
	struct path_counters counters;
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
	for (unsigned i = 0; i < triage->config.n_shards; i++)
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

static void emit_flow(struct triage *triage, struct rte_mbuf *packet)
{
	struct packet_meta *meta = packet_meta(packet);

	meta->kind = PACKET_KIND_FLOW;
	emit(triage, hash_shard(meta->info.hash, triage->config.n_shards), packet);
}

static void emit_untied(struct triage *triage, struct rte_mbuf *packet)
{
	triage->counters.fragments_untied++;
	emit_flow(triage, packet);
}

/* A datagram's time is over and its first fragment never came. */
static void expired(void *context, uint32_t waiting)
{
	struct triage *triage = context;
	struct rte_mbuf *packet;

	while ((packet = held_take(triage->held, &waiting)) != NULL)
		emit_untied(triage, packet);
}

int triage_create(struct triage **out, const struct triage_config *config)
{
	struct triage *triage =
		calloc(1, sizeof(*triage) + config->n_shards * sizeof(struct outbox));
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
	return &triage->counters;
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
	while ((packet = held_take(triage->held, &waiting)) != NULL) {
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

/* The ports of a quoted later fragment, if its first is known. */
static bool tie_quote(struct triage *triage, struct packet_info *quoted)
{
	struct fragment_ports ports;

	if (!(quoted->flags & PACKET_LATER_FRAGMENT) || triage->fragments == NULL)
		return true;
	if (!fragments_find(triage->fragments,
		    datagram_fingerprint(triage->config.extract.secret, quoted), triage->now_us,
		    &ports))
		return false;
	extract_set_upper(&triage->config.extract, quoted, ports.proto, ports.src, ports.dst);
	return true;
}

/* The note for the shard of the flow that an ICMP error quotes; NULL, and counted, when there is none. */
static struct rte_mbuf *make_note(struct triage *triage, struct rte_mbuf *error)
{
	struct rte_mbuf *note = NULL;
	struct packet_info quoted;

	if (extract_quote(&triage->config.extract, error, &packet_meta(error)->info, &quoted) &&
		tie_quote(triage, &quoted))
		note = rte_pktmbuf_alloc(triage->config.pool);
	if (note == NULL) {
		triage->counters.icmp_untied++;
		return NULL;
	}
	packet_meta(note)->kind = PACKET_KIND_QUOTE;
	packet_meta(note)->info = quoted;
	return note;
}

/* A packet with a key. Once it is handed over it is no longer ours to read. */
static void flow_packet(struct triage *triage, struct rte_mbuf *packet)
{
	uint8_t flags = packet_meta(packet)->info.flags;
	struct rte_mbuf *note = flags & PACKET_ICMP_ERROR ? make_note(triage, packet) : NULL;

	if (triage->fragments != NULL && flags & PACKET_LATER_FRAGMENT)
		later_fragment(triage, packet);
	else if (triage->fragments != NULL && flags & PACKET_FIRST_FRAGMENT)
		first_fragment(triage, packet);
	else
		emit_flow(triage, packet);
	if (note != NULL)
		emit(triage, hash_shard(packet_meta(note)->info.hash, triage->config.n_shards),
			note);
}

static void one(struct triage *triage, unsigned wire, struct rte_mbuf *packet)
{
	struct packet_meta *meta = packet_meta(packet);

	triage->counters.received++;
	triage->counters.received_bytes += packet->pkt_len;
	switch (extract(&triage->config.extract, packet, wire, &meta->info)) {
	case EXTRACT_MALFORMED:
		triage->counters.dropped[DROP_MALFORMED]++;
		rte_pktmbuf_free(packet);
		return;
	case EXTRACT_NON_IP:
		triage->counters.non_ip++;
		meta->kind = PACKET_KIND_OTHER;
		emit(triage, 0, packet);
		return;
	case EXTRACT_IP:
		flow_packet(triage, packet);
		return;
	}
}

void triage_burst(struct triage *triage, unsigned wire, uint64_t now_us, struct rte_mbuf **packets,
	unsigned n)
{
	if (now_us > triage->now_us)
		triage->now_us = now_us;
	if (triage->fragments != NULL)
		fragments_advance(triage->fragments, triage->now_us);
	for (unsigned i = 0; i < n; i++)
		one(triage, wire, packets[i]);
}

static int tell_all(struct triage *triage, enum packet_kind kind, uint64_t time_us, uint32_t run)
{
	for (unsigned i = 0; i < triage->config.n_shards; i++) {
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

int triage_end(struct triage *triage, uint64_t now_us)
{
	if (now_us > triage->now_us)
		triage->now_us = now_us;
	if (triage->fragments != NULL) {
		fragments_advance(triage->fragments, triage->now_us);
		fragments_flush(triage->fragments);
	}
	triage_flush(triage);
	return tell_all(triage, PACKET_KIND_END, triage->now_us, 0);
}
