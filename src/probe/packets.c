/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/packets.h"

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
/* Flows that are sent: some of each kind, with and without a tag. */
#define SENT_FLOWS 256
/* Listening is over when so many packets in a row brought nothing new. */
#define ENOUGH 20000
#define ENOUGH_US 50000
/* A flow that may be looked at has so many packets, so close together. */
#define LEAST_PACKETS 3
#define LONGEST_GAP_US 250000
/* Looking for packets: as long as it takes usually, twice, within these limits. */
#define WATCH_MIN_US 5000
#define WATCH_MAX_US 3000000
/* A packet that was sent arrives by then, unless the machine has more to do; and by the other in any case. */
#define WIRE_US 20000
#define LATE_US 500000
#define SEND_EACH 16
/* When no packet of so many flows arrives, none will. */
#define SENT_TRIES 16
/* Packets of a queue that were on their way at the most. */
#define SETTLE_EACH 2048
#define TAGS (TCP_SYN | TCP_FIN | TCP_RST)
#define MAX_XSTATS 1024

struct seen_flow {
	struct observed_flow flow;
	uint64_t hash;
	uint64_t first_us, last_us, packets;
	uint32_t stream;
};

struct probe_packets {
	struct probe_packets_config config;
	struct hash_secret secret;
	struct extract_options extract;
	struct stream_set *streams; /* that are sent */
	uint64_t heard, new_at, now_us;
	const struct seen_flow *behind; /* the flow that was sent behind others */
	bool behind_came;
	/* what is watched, and what is seen of it at the port and at the peer */
	const struct observer_watch *watch;
	struct observed *seen;
	unsigned n_flows, next;
	uint16_t index[INDEX]; /* number of a flow + 1; 0: none */
	struct seen_flow flows[FLOWS];
};

typedef void (*packet_fn)(
	struct probe_packets *packets, const struct rte_mbuf *frame, uint16_t queue);

/* Takes a burst of each queue, and has each packet looked at; returns how many these were. `look` may be NULL. */
static unsigned take(struct probe_packets *packets, const struct port *port, packet_fn look)
{
	unsigned all = 0;

	for (uint16_t queue = 0; queue < port->n_rx; queue++) {
		struct rte_mbuf *burst[PORT_BURST];
		uint16_t n = rte_eth_rx_burst(port->id, queue, burst, PORT_BURST);

		for (uint16_t i = 0; i < n && look != NULL; i++)
			look(packets, burst[i], queue);
		rte_pktmbuf_free_bulk(burst, n);
		all += n;
	}
	return all;
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

/* The flow of a packet; NULL: it is not known, and may have the `place` in the index. */
static struct seen_flow *find_packet(
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

/* The flow of a packet by which rules are judged, a new one if need be; NULL: it has none. */
static struct seen_flow *remember(struct probe_packets *packets, const struct rte_mbuf *frame)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(frame, const struct rte_ether_hdr *);
	struct packet_info info;
	struct seen_flow *flow;
	unsigned place;
	uint16_t type;

	if (!read_packet(packets, frame, &info))
		return NULL;
	flow = find_packet(packets, &info, &place);
	if (flow != NULL || packets->n_flows == FLOWS)
		return flow;
	flow = &packets->flows[packets->n_flows++];
	packets->index[place] = (uint16_t)packets->n_flows;
	type = rte_be_to_cpu_16(eth->ether_type);
	*flow = (struct seen_flow){.hash = info.hash,
		.flow = {.key = info.key,
			.from = info.from,
			.to = eth->dst_addr,
			.tagged = type == RTE_ETHER_TYPE_VLAN || type == RTE_ETHER_TYPE_QINQ ||
				  type == 0x9100 || type == 0x9200}};
	packets->new_at = packets->heard;
	return flow;
}

static void hear(struct probe_packets *packets, const struct rte_mbuf *frame, uint16_t queue)
{
	struct seen_flow *flow;

	packets->heard++;
	flow = remember(packets, frame);
	if (flow == NULL)
		return;
	if (flow->packets++ == 0)
		flow->first_us = packets->now_us;
	flow->last_us = packets->now_us;
	flow->flow.queue = queue;
}

static void listen_for(struct probe_packets *packets)
{
	const uint64_t begin_us = monotonic_us();
	uint64_t passed_us = 0;

	packets->now_us = begin_us;
	while (passed_us < packets->config.listen_ms * UINT64_C(1000) &&
		(packets->heard - packets->new_at <= ENOUGH || passed_us <= ENOUGH_US)) {
		take(packets, packets->config.port, hear);
		packets->now_us = monotonic_us();
		passed_us = packets->now_us - begin_us;
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

	for (uint32_t stream = 0; ret == 0 && stream < 2 * SENT_FLOWS; stream += 2) {
		struct rte_mbuf *frame = frame_of(packets, stream);
		struct seen_flow *flow;

		if (frame == NULL)
			return error_set(error, -ENOMEM, "no memory for test packets");
		flow = remember(packets, frame);
		if (flow != NULL)
			flow->stream = stream;
		rte_pktmbuf_free(frame);
	}
	return ret;
}

static void settle_ports(void *context)
{
	struct probe_packets *packets = context;
	const struct probe_packets_config *config = &packets->config;
	const struct port *ports[] = {config->port,
		config->peer != config->port ? config->peer : NULL,
		config->to != config->port ? config->to : NULL};

	for (unsigned i = 0; i < RTE_DIM(ports); i++)
		for (unsigned taken = 0; ports[i] != NULL && taken < SETTLE_EACH;
			taken += PORT_BURST)
			if (take(packets, ports[i], NULL) == 0)
				break;
}

static uint64_t gap_us(const struct seen_flow *flow)
{
	return flow->packets > 1 ? (flow->last_us - flow->first_us) / (flow->packets - 1)
				 : UINT64_MAX;
}

static bool may_be_looked_at(const struct probe_packets *packets, const struct seen_flow *flow)
{
	return packets->config.peer != NULL ||
	       (flow->packets >= LEAST_PACKETS && gap_us(flow) <= LONGEST_GAP_US);
}

static bool find(void *context, const struct form_pattern *pattern, struct observed_flow *found)
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

static bool is_of(const struct packet_info *info, const struct observed_flow *flow)
{
	return info->from == flow->from && flow_key_equal(&info->key, &flow->key);
}

/* Is it of the flow that is watched? Notices the one behind it, too. */
static bool is_watched(struct probe_packets *packets, const struct rte_mbuf *frame)
{
	struct packet_info info;

	if (!read_packet(packets, frame, &info))
		return false;
	if (is_of(&info, packets->watch->flow))
		return true;
	packets->behind_came |= packets->behind != NULL && is_of(&info, &packets->behind->flow);
	return false;
}

static void see(struct probe_packets *packets, const struct rte_mbuf *frame, uint16_t queue)
{
	bool marked = (frame->ol_flags & RTE_MBUF_F_RX_FDIR_ID) != 0;
	struct observed *seen = packets->seen;

	if (!is_watched(packets, frame))
		return;
	seen->packets++;
	seen->marked += marked && frame->hash.fdir.hi == packets->watch->mark;
	seen->wrong += marked && frame->hash.fdir.hi != packets->watch->mark;
	seen->in_place += packets->watch->queues >> queue & 1;
	seen->queue = queue;
}

static void see_elsewhere(
	struct probe_packets *packets, const struct rte_mbuf *frame, uint16_t queue)
{
	(void)queue;
	packets->seen->elsewhere += is_watched(packets, frame);
}

static void receive(struct probe_packets *packets)
{
	const struct port *port = packets->config.port, *peer = packets->config.peer;

	take(packets, port, see);
	if (peer != NULL && peer != port)
		take(packets, peer, see_elsewhere);
}

/* Some packets; returns how many went. */
static uint16_t send_some(const struct probe_packets *packets, uint32_t stream, unsigned wanted)
{
	struct rte_mbuf *burst[SEND_EACH];
	uint16_t n = 0, sent;

	while (n < wanted && (burst[n] = frame_of(packets, stream)) != NULL)
		n++;
	sent = rte_eth_tx_burst(packets->config.peer->id, 0, burst, n);
	rte_pktmbuf_free_bulk(&burst[sent], n - sent);
	return sent;
}

/* One that arrives, and that no rule for the given one ought to match: the other version of IP, if possible. */
static const struct seen_flow *other_flow(
	const struct probe_packets *packets, const struct observed_flow *flow)
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
static void wait_for_late(struct probe_packets *packets)
{
	uint64_t until_us = monotonic_us() + WIRE_US;

	packets->behind = other_flow(packets, packets->watch->flow);
	packets->behind_came = false;
	if (packets->behind != NULL && send_some(packets, packets->behind->stream, 1) == 1)
		until_us += LATE_US - WIRE_US;
	/* also where all are there by now: it would be taken for the next one */
	while (!packets->behind_came && monotonic_us() < until_us)
		receive(packets);
	/* by a queue that was looked into before */
	receive(packets);
	packets->behind = NULL;
}

static void watch_sent(struct probe_packets *packets, uint32_t stream)
{
	struct observed *seen = packets->seen;

	while (seen->sent < packets->watch->wanted) {
		const uint64_t begin_us = monotonic_us();
		const uint16_t sent = send_some(packets, stream, SEND_EACH);
		const uint64_t wanted = seen->packets + sent;

		seen->sent += sent;
		while (monotonic_us() - begin_us < WIRE_US && seen->packets < wanted)
			receive(packets);
		if (seen->packets < wanted)
			wait_for_late(packets);
		if (sent == 0)
			break;
	}
}

/* Which flows arrive, and by which queue: each is sent once. */
static void send_each(struct probe_packets *packets)
{
	bool any = false;

	for (unsigned i = 0; i < packets->n_flows && (any || i < SENT_TRIES); i++) {
		struct seen_flow *flow = &packets->flows[i];
		const struct observer_watch watch = {
			.flow = &flow->flow, .queues = UINT64_MAX, .wanted = 1};
		struct observed seen = {0};

		packets->watch = &watch;
		packets->seen = &seen;
		watch_sent(packets, flow->stream);
		flow->packets = seen.packets;
		flow->flow.queue = seen.queue;
		any |= seen.packets > 0;
	}
}

static void watch_flow(void *context, const struct observer_watch *watch, struct observed *seen)
{
	struct probe_packets *packets = context;
	const struct seen_flow *flow = packets->flows, *end = flow + packets->n_flows;
	const uint64_t begin_us = monotonic_us();
	uint64_t usual_us;
	bool is_over;

	while (flow < end && (flow->flow.from != watch->flow->from ||
				     !flow_key_equal(&flow->flow.key, &watch->flow->key)))
		flow++;
	if (flow == end)
		return;
	packets->watch = watch;
	packets->seen = seen;
	if (packets->config.peer != NULL) {
		watch_sent(packets, flow->stream);
		return;
	}
	/* slow flows are judged by fewer packets */
	usual_us =
		gap_us(flow) * (gap_us(flow) > 10000 ? RTE_MIN(watch->wanted, 4u) : watch->wanted);
	usual_us = RTE_MIN(RTE_MAX(2 * usual_us, (uint64_t)WATCH_MIN_US), (uint64_t)WATCH_MAX_US);
	/* once more when it is over: a thread that was not run meanwhile has not looked */
	do {
		is_over = monotonic_us() - begin_us >= usual_us;
		receive(packets);
	} while (seen->packets < watch->wanted && !is_over);
}

static bool is_tx_packets(const char *name)
{
	static const char *const others[] = {
		"drop", "err", "miss", "discard", "sampled", "filtered", "no_mbuf"};

	for (unsigned i = 0; i < RTE_DIM(others); i++)
		if (strstr(name, others[i]) != NULL)
			return false;
	return strncmp(name, "tx", 2) == 0 && strstr(name, "packets") != NULL;
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

void probe_packets_observer(struct probe_packets *packets, struct observer *observer)
{
	*observer = (struct observer){.find = find,
		.settle = settle_ports,
		.watch = watch_flow,
		.forwarded = forwarded,
		.context = packets,
		.heard = packets->heard};
	for (unsigned i = 0; i < packets->n_flows; i++)
		observer->flows += provider_kind(&packets->flows[i].flow.key) != PROVIDER_N_KINDS &&
				   may_be_looked_at(packets, &packets->flows[i]);
}
