/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/packets.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "base/monotonic.h"
#include "packet/extract.h"
#include "traffic/stream.h"

/* Flows that are remembered; those that come when there is no room are not. */
#define FLOWS 4096
#define INDEX (2 * FLOWS)
/* Of what is sent: some of each kind, with and without a tag. */
#define SENT_FLOWS 256
/* Listening is over when so many packets in a row brought nothing new. */
#define ENOUGH 20000
#define ENOUGH_US 50000
/* Of a flow that may be looked at. */
#define LEAST_PACKETS 3
#define LONGEST_GAP_US 250000
/* Looking for packets: as long as it takes usually, twice, within these limits. */
#define WATCH_MIN_US 5000
#define WATCH_MAX_US 3000000
/* A packet that was sent arrives by then, unless the machine has more to do; and by the other in any case. */
#define WIRE_US 20000
#define LATE_US 500000
#define SEND_EACH 16
/* Of so many flows not a packet arrives: then none does. */
#define SENT_TRIES 16
/* Packets of a queue that were on their way at the most. */
#define SETTLE_EACH 2048
#define TAGS (TCP_SYN | TCP_FIN | TCP_RST)
#define MAX_XSTATS 1024

struct seen_flow {
	struct eyes_flow flow;
	uint64_t hash;
	uint64_t first_us, last_us, packets;
	uint32_t stream;
};

struct probe_packets {
	struct probe_packets_config config;
	struct hash_secret secret;
	struct extract_options extract;
	struct stream_set *streams; /* of what is sent */
	uint64_t heard, new_at;
	const struct seen_flow *behind; /* the flow of what was sent behind others */
	bool behind_came;
	unsigned n_flows, next;
	uint16_t index[INDEX]; /* number of a flow + 1; 0: none */
	struct seen_flow flows[FLOWS];
};

static bool sends(const struct probe_packets *packets)
{
	return packets->config.peer != NULL;
}

/* False: not a packet by which rules are judged. */
static bool read_packet(
	const struct probe_packets *packets, const struct rte_mbuf *frame, struct packet_info *info)
{
	if (extract(&packets->extract, frame, 0, info) != EXTRACT_IP)
		return false;
	/* rules leave fragments alone, and some of them these flags */
	if (info->flags & (PACKET_FRAGMENT | PACKET_CUT | PACKET_ICMP_ERROR))
		return false;
	return !(info->flags & PACKET_TCP) || !(info->tcp.flags & TAGS);
}

static bool is_tagged(const struct rte_mbuf *frame)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(frame, const struct rte_ether_hdr *);
	uint16_t type = rte_be_to_cpu_16(eth->ether_type);

	return type == RTE_ETHER_TYPE_VLAN || type == RTE_ETHER_TYPE_QINQ || type == 0x9100 ||
	       type == 0x9200;
}

/* The flow of a packet; NULL: it is not known. */
static struct seen_flow *find_flow(
	struct probe_packets *packets, const struct packet_info *info, unsigned *place)
{
	for (*place = (unsigned)(info->hash >> 32) % INDEX; packets->index[*place] != 0;
		*place = (*place + 1) % INDEX) {
		struct seen_flow *flow = &packets->flows[packets->index[*place] - 1];

		if (flow->hash == info->hash && flow->flow.from == info->from &&
			flow_key_equal(&flow->flow.key, &info->key))
			return flow;
	}
	return NULL;
}

static struct seen_flow *remember(
	struct probe_packets *packets, const struct rte_mbuf *frame, const struct packet_info *info)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(frame, const struct rte_ether_hdr *);
	unsigned place;
	struct seen_flow *flow = find_flow(packets, info, &place);

	if (flow != NULL || packets->n_flows == FLOWS)
		return flow;
	flow = &packets->flows[packets->n_flows++];
	packets->index[place] = (uint16_t)packets->n_flows;
	*flow = (struct seen_flow){.hash = info->hash,
		.flow = {.key = info->key,
			.from = info->from,
			.to = eth->dst_addr,
			.by = eth->src_addr,
			.tagged = is_tagged(frame)}};
	packets->new_at = packets->heard;
	return flow;
}

static void note(struct probe_packets *packets, const struct rte_mbuf *frame, uint16_t queue,
	uint64_t now_us)
{
	struct packet_info info;
	struct seen_flow *flow;

	packets->heard++;
	if (!read_packet(packets, frame, &info))
		return;
	flow = remember(packets, frame, &info);
	if (flow == NULL)
		return;
	if (flow->packets++ == 0)
		flow->first_us = now_us;
	flow->last_us = now_us;
	flow->flow.queue = queue;
}

static void listen_for(struct probe_packets *packets)
{
	uint64_t begin_us = monotonic_us(), now_us = begin_us;
	const struct port *port = packets->config.port;

	while (now_us - begin_us < packets->config.listen_ms * UINT64_C(1000)) {
		for (uint16_t queue = 0; queue < port->n_rx; queue++) {
			struct rte_mbuf *burst[PORT_BURST];
			uint16_t n = rte_eth_rx_burst(port->id, queue, burst, PORT_BURST);

			for (uint16_t i = 0; i < n; i++)
				note(packets, burst[i], queue, now_us);
			rte_pktmbuf_free_bulk(burst, n);
		}
		now_us = monotonic_us();
		if (packets->heard - packets->new_at > ENOUGH && now_us - begin_us > ENOUGH_US)
			break;
	}
}

static struct rte_mbuf *frame_of(const struct probe_packets *packets, uint32_t stream)
{
	struct rte_mbuf *frame = rte_pktmbuf_alloc(packets->config.pool);
	char *bytes;

	if (frame == NULL)
		return NULL;
	bytes = rte_pktmbuf_append(frame, stream_length(packets->streams, stream));
	if (bytes != NULL)
		stream_frame(packets->streams, stream, (uint8_t *)bytes);
	return frame;
}

/* The flows that will be sent. */
static int make_streams(struct probe_packets *packets, struct error *error)
{
	const struct stream_config config = {.flows = SENT_FLOWS,
		.proto_share = {[STREAM_UDP] = 64,
			[STREAM_TCP] = 64,
			[STREAM_SCTP] = 64,
			[STREAM_ICMP] = 64},
		.ipv6_share = 128,
		.vlan_share = 64};
	int ret = stream_set_create(&packets->streams, &config, error);

	for (uint32_t flow = 0; ret == 0 && flow < SENT_FLOWS; flow++) {
		struct rte_mbuf *frame = frame_of(packets, 2 * flow);
		struct packet_info info;
		struct seen_flow *seen = NULL;

		if (frame == NULL)
			return error_set(error, -ENOMEM, "no memory for test packets");
		if (read_packet(packets, frame, &info))
			seen = remember(packets, frame, &info);
		if (seen != NULL)
			seen->stream = 2 * flow;
		rte_pktmbuf_free(frame);
	}
	return ret;
}

/* Where no packet came for a while. */
static void settle(void *context)
{
	const struct probe_packets *packets = context;
	const struct probe_packets_config *config = &packets->config;
	const struct port *ports[] = {config->port,
		config->peer != config->port ? config->peer : NULL,
		config->to != config->port ? config->to : NULL};

	for (unsigned i = 0; i < RTE_DIM(ports); i++) {
		if (ports[i] == NULL)
			continue;
		for (uint16_t queue = 0; queue < ports[i]->n_rx; queue++) {
			struct rte_mbuf *burst[PORT_BURST];
			unsigned left = SETTLE_EACH;
			uint16_t n;

			do {
				n = rte_eth_rx_burst(ports[i]->id, queue, burst, PORT_BURST);
				rte_pktmbuf_free_bulk(burst, n);
				left -= RTE_MIN(left, (unsigned)PORT_BURST);
			} while (n > 0 && left > 0);
		}
	}
}

static uint64_t gap_us(const struct seen_flow *flow)
{
	return flow->packets > 1 ? (flow->last_us - flow->first_us) / (flow->packets - 1)
				 : UINT64_MAX;
}

static bool may_be_looked_at(const struct probe_packets *packets, const struct seen_flow *flow)
{
	return sends(packets) || (flow->packets >= LEAST_PACKETS && gap_us(flow) <= LONGEST_GAP_US);
}

static bool find(void *context, const struct form_pattern *pattern, struct eyes_flow *found)
{
	struct probe_packets *packets = context;

	for (unsigned i = 0; i < packets->n_flows; i++) {
		unsigned number = (packets->next + i) % packets->n_flows;
		const struct seen_flow *flow = &packets->flows[number];
		enum provider_kind kind = provider_kind(&flow->flow.key);

		if (kind == PROVIDER_N_KINDS || flow->flow.tagged != pattern->shape.vlan ||
			!may_be_looked_at(packets, flow))
			continue;
		if (pattern->kind != PROVIDER_N_KINDS && kind != pattern->kind)
			continue;
		packets->next = number + 1;
		*found = flow->flow;
		return true;
	}
	return false;
}

static bool is_of(const struct packet_info *info, const struct eyes_flow *flow)
{
	return info->from == flow->from && flow_key_equal(&info->key, &flow->key);
}

static void look_at(struct probe_packets *packets, const struct eyes_watch *watch,
	const struct rte_mbuf *frame, uint16_t queue, struct eyes_seen *seen)
{
	bool marked = (frame->ol_flags & RTE_MBUF_F_RX_FDIR_ID) != 0;
	struct packet_info info;

	if (!read_packet(packets, frame, &info)) {
		seen->others++;
		return;
	}
	if (!is_of(&info, watch->flow)) {
		packets->behind_came |=
			packets->behind != NULL && is_of(&info, &packets->behind->flow);
		seen->others++;
		return;
	}
	seen->packets++;
	seen->bytes += frame->pkt_len;
	seen->marked += marked && frame->hash.fdir.hi == watch->mark;
	seen->wrong += marked && frame->hash.fdir.hi != watch->mark;
	seen->in_place += watch->queues >> queue & 1;
	seen->queue = queue;
}

static void receive(
	struct probe_packets *packets, const struct eyes_watch *watch, struct eyes_seen *seen)
{
	const struct port *port = packets->config.port, *peer = packets->config.peer;
	struct rte_mbuf *burst[PORT_BURST];

	for (uint16_t queue = 0; queue < port->n_rx; queue++) {
		uint16_t n = rte_eth_rx_burst(port->id, queue, burst, PORT_BURST);

		for (uint16_t i = 0; i < n; i++)
			look_at(packets, watch, burst[i], queue, seen);
		rte_pktmbuf_free_bulk(burst, n);
	}
	if (peer == NULL || peer == port)
		return;
	for (uint16_t queue = 0; queue < peer->n_rx; queue++) {
		struct eyes_seen there = {0};
		uint16_t n = rte_eth_rx_burst(peer->id, queue, burst, PORT_BURST);

		for (uint16_t i = 0; i < n; i++)
			look_at(packets, watch, burst[i], queue, &there);
		rte_pktmbuf_free_bulk(burst, n);
		seen->elsewhere += there.packets;
	}
}

static void send_some(const struct probe_packets *packets, uint32_t stream, struct eyes_seen *seen)
{
	struct rte_mbuf *burst[SEND_EACH];
	uint16_t n = 0, sent;

	while (n < SEND_EACH && (burst[n] = frame_of(packets, stream)) != NULL)
		n++;
	sent = rte_eth_tx_burst(packets->config.peer->id, 0, burst, n);
	if (sent < n)
		rte_pktmbuf_free_bulk(&burst[sent], n - sent);
	seen->sent += sent;
}

/* Of the flow that is watched. */
static const struct seen_flow *flow_of(
	struct probe_packets *packets, const struct eyes_flow *wanted)
{
	for (unsigned i = 0; i < packets->n_flows; i++)
		if (packets->flows[i].flow.from == wanted->from &&
			flow_key_equal(&packets->flows[i].flow.key, &wanted->key))
			return &packets->flows[i];
	return NULL;
}

/* One that arrives, and that no rule for the given one ought to match: the other version of IP, if possible. */
static const struct seen_flow *other_flow(
	const struct probe_packets *packets, const struct eyes_flow *flow)
{
	bool six = provider_kind(&flow->key) >= PROVIDER_IPV6_TCP;
	const struct seen_flow *found = NULL;

	for (unsigned i = 0; i < packets->n_flows; i++) {
		const struct seen_flow *other = &packets->flows[i];
		enum provider_kind kind = provider_kind(&other->flow.key);

		if (other->packets == 0 || other->flow.tagged || kind == provider_kind(&flow->key))
			continue;
		found = other;
		if ((kind >= PROVIDER_IPV6_TCP) != six)
			break;
	}
	return found;
}

/*
 * Not all have come, and they may be late. So another one is sent behind them: when it has come they came before it, or
 * do not come.
 */
static void wait_for_late(
	struct probe_packets *packets, const struct eyes_watch *watch, struct eyes_seen *seen)
{
	uint64_t begin_us = monotonic_us(), until_us = begin_us + WIRE_US;
	struct rte_mbuf *frame = NULL;

	packets->behind = other_flow(packets, watch->flow);
	packets->behind_came = false;
	if (packets->behind != NULL)
		frame = frame_of(packets, packets->behind->stream);
	if (frame != NULL && rte_eth_tx_burst(packets->config.peer->id, 0, &frame, 1) == 1)
		until_us = begin_us + LATE_US;
	else
		rte_pktmbuf_free(frame);
	/* also where all are there by now: it would be taken for the next one */
	while (!packets->behind_came && monotonic_us() < until_us)
		receive(packets, watch, seen);
	/* by a queue that was looked into before */
	receive(packets, watch, seen);
	packets->behind = NULL;
}

static void watch_sent(struct probe_packets *packets, const struct eyes_watch *watch,
	uint32_t stream, struct eyes_seen *seen)
{
	while (seen->sent < watch->wanted) {
		uint64_t sent = seen->sent, begin_us = monotonic_us();
		uint64_t wanted = seen->packets;

		send_some(packets, stream, seen);
		wanted += seen->sent - sent;
		while (monotonic_us() - begin_us < WIRE_US && seen->packets < wanted)
			receive(packets, watch, seen);
		if (seen->packets < wanted)
			wait_for_late(packets, watch, seen);
		if (seen->sent == sent)
			break;
	}
}

/* Which flows arrive, and by which queue: each is sent once. */
static void send_each(struct probe_packets *packets)
{
	bool any = false;

	for (unsigned i = 0; i < packets->n_flows && (any || i < SENT_TRIES); i++) {
		struct seen_flow *flow = &packets->flows[i];
		const struct eyes_watch watch = {
			.flow = &flow->flow, .queues = UINT64_MAX, .wanted = 1};
		struct eyes_seen seen = {0};

		watch_sent(packets, &watch, flow->stream, &seen);
		flow->packets = seen.packets;
		flow->flow.queue = seen.queue;
		any |= seen.packets > 0;
	}
}

static void watch_flows(void *context, const struct eyes_watch *watch, struct eyes_seen *seen)
{
	struct probe_packets *packets = context;
	const struct seen_flow *flow = flow_of(packets, watch->flow);
	uint64_t begin_us = monotonic_us(), usual_us;
	bool is_over;

	if (flow == NULL)
		return;
	if (sends(packets)) {
		watch_sent(packets, watch, flow->stream, seen);
		return;
	}
	/* slow flows are judged by fewer packets */
	usual_us =
		gap_us(flow) * (gap_us(flow) > 10000 ? RTE_MIN(watch->wanted, 4u) : watch->wanted);
	usual_us = RTE_MIN(RTE_MAX(2 * usual_us, (uint64_t)WATCH_MIN_US), (uint64_t)WATCH_MAX_US);
	/* once more when it is over: who was not run meanwhile has not looked */
	do {
		is_over = monotonic_us() - begin_us >= usual_us;
		receive(packets, watch, seen);
	} while (seen->packets < watch->wanted && !is_over);
}

static bool is_tx_packets(const char *name)
{
	static const char *const others[] = {
		"drop", "err", "miss", "discard", "sampled", "filtered", "no_mbuf"};

	if (strncmp(name, "tx", 2) != 0 || strstr(name, "packets") == NULL)
		return false;
	for (unsigned i = 0; i < RTE_DIM(others); i++)
		if (strstr(name, others[i]) != NULL)
			return false;
	return true;
}

/* Whatever counters of the driver grow when packets leave by the port: only that they do is of use. */
static uint64_t forwarded(void *context)
{
	static struct rte_eth_xstat_name names[MAX_XSTATS];
	static struct rte_eth_xstat values[MAX_XSTATS];
	const struct probe_packets *packets = context;
	uint16_t id = packets->config.to->id;
	uint64_t sum = 0;
	int n;

	/* ours are among them */
	if (packets->config.peer == packets->config.to)
		return 0;
	n = rte_eth_xstats_get_names(id, names, MAX_XSTATS);
	if (n <= 0 || n > MAX_XSTATS || rte_eth_xstats_get(id, values, MAX_XSTATS) != n)
		return 0;
	for (int i = 0; i < n; i++)
		if (values[i].id < (uint64_t)n && is_tx_packets(names[values[i].id].name))
			sum += values[i].value;
	return sum;
}

int probe_packets_create(
	struct probe_packets **out, const struct probe_packets_config *config, struct error *error)
{
	struct probe_packets *packets = calloc(1, sizeof(*packets));
	int ret;

	if (packets == NULL)
		return error_set(error, -ENOMEM, "no memory");
	packets->config = *config;
	packets->extract = (struct extract_options){.secret = &packets->secret, .zone_vlan = true};
	ret = hash_secret_init(&packets->secret);
	if (ret < 0)
		error_set(error, ret, "no randomness from the kernel: %s", strerror(-ret));
	else if (config->peer != NULL)
		ret = make_streams(packets, error);
	if (ret == 0 && config->peer != NULL)
		send_each(packets);
	else if (ret == 0)
		listen_for(packets);
	if (ret < 0)
		probe_packets_destroy(packets);
	else
		*out = packets;
	return ret;
}

void probe_packets_destroy(struct probe_packets *packets)
{
	if (packets != NULL)
		stream_set_destroy(packets->streams);
	free(packets);
}

unsigned probe_packets_flows(const struct probe_packets *packets)
{
	unsigned n = 0;

	for (unsigned i = 0; i < packets->n_flows; i++)
		n += provider_kind(&packets->flows[i].flow.key) != PROVIDER_N_KINDS &&
		     may_be_looked_at(packets, &packets->flows[i]);
	return n;
}

uint64_t probe_packets_heard(const struct probe_packets *packets)
{
	return packets->heard;
}

void probe_packets_eyes(struct probe_packets *packets, struct eyes *eyes)
{
	*eyes = (struct eyes){.find = find,
		.settle = settle,
		.watch = watch_flows,
		.forwarded = forwarded,
		.context = packets};
}
