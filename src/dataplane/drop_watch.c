/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/drop_watch.h"

#include "dataplane/lcore.h"
#include "policy/policy.h"

static_assert(DROP_N_REASONS <= 32, "reasons are bits of a word");

/* Reasons that rules are the cause of. */
#define OF_RULES                                                                                   \
	(1u << DROP_RULE | 1u << DROP_REJECTED | 1u << DROP_TTL_EXPIRED | 1u << DROP_NO_NEXT_HOP | \
		1u << DROP_TOO_BIG | 1u << DROP_POLICED | 1u << DROP_METER |                       \
		1u << DROP_NOT_POSSIBLE)

void drop_watch_set(struct drop_watch *watch, const struct drop_wanted *wanted)
{
	watch->wanted = *wanted;
	if (watch->samples == NULL)
		watch->wanted.reasons = 0;
	for (unsigned i = 0; i < DROP_N_REASONS; i++)
		rate_limit_init(&watch->limit[i], wanted->rate, RTE_MAX(wanted->parts, 1u));
}

void drop_watch_unseen(struct drop_watch *watch, enum drop_reason reason, uint64_t packets)
{
	/* one writer */
	const uint64_t left = atomic_load_explicit(&watch->left_out[reason], memory_order_relaxed);

	if (watch->wanted.reasons >> reason & 1)
		atomic_store_explicit(
			&watch->left_out[reason], left + packets, memory_order_relaxed);
}

/* The engine's number of the port that the packet's driver named. */
static unsigned port_of(const struct lcore *lcore, const struct rte_mbuf *packet)
{
	for (unsigned i = 0; i < lcore->n_rx; i++)
		if (lcore->rx[i].port_id == packet->port)
			return lcore->rx[i].from.port;
	for (unsigned i = 0; i < lcore->n_ports; i++)
		if (lcore->tx[i].live != NULL && lcore->tx[i].port_id == packet->port)
			return i;
	return PLANE_MAX_PORTS;
}

/* The rule that decided the packet, or FLOW_RULE_NONE. */
static uint32_t rule_of(const struct lcore *lcore, unsigned port, const struct rte_mbuf *packet,
	const struct packet_info *info)
{
	const struct policy *policy = lcore->worker.policy;
	const struct flow_shard *shard = lcore->worker.shard;
	struct flow_packet_decision decision = {.rule = FLOW_RULE_NONE};
	struct flow_packet_ct ct = {.state = FLOW_CT_NEW};
	uint32_t position = FLOW_NONE;

	if (policy == NULL || shard == NULL)
		return FLOW_RULE_NONE;
	if (info != NULL)
		position = flow_table_find(
			&shard->table, &info->key, flow_key_hash(lcore->secret, &info->key));
	if (position != FLOW_NONE &&
		!flow_is_by_packet(flow_table_record(&shard->table, position), info))
		return flow_shard_rules(shard, position).rule[info->from];
	if (position != FLOW_NONE)
		ct = flow_shard_ct(shard, position, info);
	ct.looks = true;
	if (policy->others.classify != NULL)
		policy_classify(policy, packet, info, (uint16_t)port, ct, &decision);
	return decision.rule;
}

static void fill_rule(const struct drop_watch *watch, const struct rte_mbuf *packet,
	const struct packet_info *info, struct drop_sample *sample)
{
	const struct lcore *lcore = watch->lcore;
	uint32_t rule = FLOW_RULE_NONE;

	sample->rule_port = DROP_ANY_RULE;
	if (OF_RULES >> sample->reason & 1)
		rule = rule_of(lcore, sample->port, packet, info);
	if (rule == FLOW_RULE_NONE || lcore->policy.others.tell == NULL)
		return;
	const struct flow_rule_told told =
		lcore->policy.others.tell(lcore->policy.others.context, rule);

	sample->rule = told.number;
	sample->rule_port = told.port;
}

static void fill_headers(
	const struct rte_mbuf *packet, const struct packet_info *info, struct drop_sample *sample)
{
	const uint32_t n = RTE_MIN(packet->pkt_len, (uint32_t)DROP_SAMPLE_BYTES);
	const void *bytes = rte_pktmbuf_read(packet, 0, n, sample->bytes);

	sample->length = packet->pkt_len;
	if (bytes != NULL) {
		if (bytes != sample->bytes)
			memcpy(sample->bytes, bytes, n);
		sample->n_bytes = (uint8_t)n;
	}
	if (info == NULL)
		return;
	sample->has_key = true;
	sample->key = info->key;
	sample->from = info->from;
	sample->flags = info->flags;
	sample->tcp_flags = info->flags & PACKET_TCP ? info->tcp.flags : 0;
}

void drop_watch_packet(struct drop_watch *watch, unsigned wire, unsigned port,
	const struct rte_mbuf *packet, const struct packet_info *info, enum drop_reason reason)
{
	const struct lcore *lcore = watch->lcore;
	const struct extract_options options = {
		.secret = lcore->secret, .zone_vlan = lcore->zone_vlan};
	const bool by_rule = watch->wanted.rule_port != DROP_ANY_RULE;
	struct rate_limit *limit = &watch->limit[reason];
	struct drop_sample sample;
	struct packet_info read;

	if (!(watch->wanted.reasons >> reason & 1))
		return;
	if (!by_rule && !rate_limit_has(limit, lcore->now_us)) {
		drop_watch_unseen(watch, reason, 1);
		return;
	}
	memset(&sample, 0, sizeof(sample));
	sample.time_us = lcore->now_us;
	sample.reason = (uint8_t)reason;
	sample.wire = (uint8_t)wire;
	sample.port = (uint8_t)(port == DROP_ANY_PORT ? port_of(lcore, packet) : port);
	if (info == NULL && extract(&options, packet, wire, &read) == EXTRACT_IP) {
		read.flags |=
			sample.port < lcore->n_ports && lcore->topology->place[sample.port] == 1
				? PACKET_SIDE
				: 0;
		info = &read;
	}
	fill_rule(watch, packet, info, &sample);
	if (!drop_is_of_rule(&watch->wanted, &sample))
		return;
	if (by_rule && !rate_limit_has(limit, lcore->now_us)) {
		drop_watch_unseen(watch, reason, 1);
		return;
	}
	fill_headers(packet, info, &sample);
	if (mailbox_push(watch->samples, &sample, 1) == 1)
		rate_limit_take(limit);
	else
		drop_watch_unseen(watch, reason, 1);
}
