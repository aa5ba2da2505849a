/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/act.h"

#include "dataplane/lcore.h"
#include "dataplane/punt.h"
#include "dataplane/reject.h"
#include "dataplane/tx.h"

enum drop_reason act_drop_reason(enum action_drop drop)
{
	static const uint8_t reasons[ACTION_N_DROPS] = {
		[ACTION_DROP_BLOCKED] = DROP_RULE,
		[ACTION_DROP_REJECTED] = DROP_REJECTED,
		[ACTION_DROP_PUNTED] = DROP_NOT_POSSIBLE,
		[ACTION_DROP_MARTIAN] = DROP_MARTIAN,
		[ACTION_DROP_BLACKHOLE] = DROP_BLACKHOLE,
		[ACTION_DROP_SOURCE] = DROP_SOURCE,
		[ACTION_DROP_TTL_EXPIRED] = DROP_TTL_EXPIRED,
		[ACTION_DROP_NO_NEXT_HOP] = DROP_NO_NEXT_HOP,
		[ACTION_DROP_TOO_BIG] = DROP_TOO_BIG,
		[ACTION_DROP_POLICED] = DROP_POLICED,
		[ACTION_DROP_METERED] = DROP_METER,
		[ACTION_DROP_NOT_POSSIBLE] = DROP_NOT_POSSIBLE,
	};

	return (enum drop_reason)reasons[drop];
}

/*
 * A copy goes to whoever writes capture files, with its time and the file's number in fields that nobody else needs. Where
 * it finds no memory or no room, it is lost: the worker waits for no disk.
 */
static void copy_to_file(
	struct lcore *lcore, unsigned domain, const struct rte_mbuf *packet, uint16_t number)
{
	struct path_counters *counters = &lcore->worker.counters[domain];
	struct rte_mbuf *copy;

	if (lcore->copies == NULL)
		return;
	copy = mailbox_room(lcore->copies) == 0
		       ? NULL
		       : rte_pktmbuf_copy(packet, packet->pool, 0, UINT32_MAX);
	if (copy == NULL) {
		counters->capture_lost++;
		return;
	}
	copy->port = number;
	copy->tx_offload = lcore->worker.shard->now_us;
	/* there is room, as nobody else puts something in */
	(void)mailbox_push(lcore->copies, &copy, 1);
	counters->captured++;
}

/* A copy goes out by that port; without memory for it there is none. */
static __rte_noinline void mirror(
	struct lcore *lcore, unsigned domain, const struct rte_mbuf *packet, uint16_t port)
{
	struct rte_mbuf *copy;

	if (port >= lcore->n_ports) {
		copy_to_file(lcore, domain, packet, (uint16_t)(port - lcore->n_ports));
		return;
	}
	copy = rte_pktmbuf_copy(packet, packet->pool, 0, UINT32_MAX);
	if (copy == NULL)
		return;
	lcore->worker.counters[domain].mirrored++;
	send_to_port(lcore, copy, domain, port);
}

/* What the program of a packet says, and has done to it. */
static inline void ask_program(
	struct act *act, struct burst *burst, unsigned i, struct action_answer *answer)
{
	const struct action_program *program = programs_get(act->programs, burst->verdict[i]);
	struct rte_mbuf *packet = burst->packet[i];

	if (unlikely(burst->others >> i & 1)) {
		action_run_any(program, &act->context, packet, answer);
		return;
	}
	const struct action_packet headers = action_packet_of(packet, burst_info(burst, i));

	action_run(program, &act->context, packet, &headers, answer);
}

/* A packet that was accounted as carried was dropped by a meter, as by a rule. */
static __rte_noinline void take_back(
	struct lcore *lcore, const struct packet_info *info, int32_t excess)
{
	struct flow_shard *shard = lcore->worker.shard;
	const uint64_t hash = flow_key_hash(lcore->secret, &info->key);
	const uint32_t position = flow_table_find(&shard->table, &info->key, hash);

	/* one that was evicted in this burst has been reported with it */
	flow_shard_excess(shard, excess);
	if (position != FLOW_NONE)
		flow_shard_uncount(shard, position, info);
}

/* A packet of the burst ends here, as nobody has changed it. */
static void drop_packet(
	struct lcore *lcore, struct burst *burst, unsigned i, enum drop_reason reason)
{
	const unsigned domain = burst->from.domain;

	if (drop_watch_is_on(&lcore->drops))
		drop_watch_packet(&lcore->drops, domain, burst->from.port, burst->packet[i],
			burst->others >> i & 1 ? NULL : burst_info(burst, i), reason);
	lcore->worker.counters[domain].dropped[reason]++;
	rte_pktmbuf_free(burst->packet[i]);
}

/* Why a router leaves a packet to the kernel that a program drops; PUNT_N_REASONS: it does not. */
static enum punt_reason punt_of(const struct action_answer *answer)
{
	if (answer->drop == ACTION_DROP_PUNTED)
		return (enum punt_reason)answer->punt;
	if (answer->drop == ACTION_DROP_TTL_EXPIRED)
		return PUNT_TTL;
	if (answer->drop == ACTION_DROP_NO_NEXT_HOP)
		return PUNT_NO_NEIGHBOUR;
	return answer->drop == ACTION_DROP_TOO_BIG ? PUNT_TOO_BIG : PUNT_N_REASONS;
}

/* A program drops the packet. */
static __rte_noinline void end_packet(
	struct lcore *lcore, struct burst *burst, unsigned i, const struct action_answer *answer)
{
	const bool has_info = !(burst->others >> i & 1);
	const enum punt_reason punt = burst->from.router ? punt_of(answer) : PUNT_N_REASONS;

	if (punt != PUNT_N_REASONS) {
		punt_packet(lcore, burst->from.port, burst->packet[i],
			has_info ? burst_info(burst, i) : NULL, punt);
		return;
	}
	if (answer->drop == ACTION_DROP_METERED && has_info)
		take_back(lcore, burst_info(burst, i), burst->excess[i]);
	drop_packet(lcore, burst, i, act_drop_reason((enum action_drop)answer->drop));
}

/* Runs the program of a packet. True: it leaves by the peer with the others. Else it was sent, or dropped. */
static bool run_program(struct lcore *lcore, struct burst *burst, unsigned i)
{
	struct act *act = &lcore->act;
	struct rte_mbuf *packet = burst->packet[i];
	const unsigned domain = burst->from.domain;
	struct action_answer answer;

	ask_program(act, burst, i, &answer);
	/* the packet has no next hop yet: rules let it pass, or changed it */
	if (unlikely(burst->from.router && answer.drop == ACTION_DROP_NONE &&
		     answer.port == ACTION_NO_PORT)) {
		burst->verdict[i] =
			routes_verdict_of(act->routes[domain], packet, burst->from.port);
		ask_program(act, burst, i, &answer);
	}
	if (unlikely(answer.drop != ACTION_DROP_NONE)) {
		end_packet(lcore, burst, i, &answer);
		return false;
	}
	if (unlikely(answer.mirror_port != ACTION_NO_PORT))
		mirror(lcore, domain, packet, answer.mirror_port);
	if (likely(answer.port == ACTION_NO_PORT || answer.port == burst->from.peer))
		return true;
	if (unlikely(answer.port >= lcore->n_ports))
		lcore_drop_of(lcore, domain, packet, DROP_NO_NEXT_HOP);
	else
		send_to_port(lcore, packet, domain, answer.port);
	return false;
}

/* Packets that are dropped, have gone, or have a program: bits of those that leave with the others. */
static uint64_t run_all(struct lcore *lcore, struct burst *burst, const struct outcome *outcome)
{
	uint64_t leave = UINT64_MAX >> (64 - burst->n) & ~(outcome->dropped | outcome->gone);

	for (uint64_t left = outcome->dropped; left != 0; left &= left - 1) {
		const unsigned i = (unsigned)__builtin_ctzll(left);
		const enum drop_reason reason = (enum drop_reason)burst->drop[i];

		if (unlikely(reason == DROP_REJECTED))
			reject_packet(lcore, burst, i);
		drop_packet(lcore, burst, i, reason);
	}
	uint64_t acts = outcome->acts;

	lcore->act.context.now_ns = lcore->worker.shard->now_us * 1000;
	if (unlikely(burst->from.router)) {
		for (uint64_t left = leave & ~acts; left != 0; left &= left - 1)
			burst->verdict[__builtin_ctzll(left)] = FLOW_VERDICT_FORWARD;
		acts = leave;
	}
	for (uint64_t left = acts & leave; left != 0; left &= left - 1) {
		const unsigned i = (unsigned)__builtin_ctzll(left);

		if (unlikely(!run_program(lcore, burst, i)))
			leave &= ~(UINT64_C(1) << i);
	}
	return leave;
}

unsigned act_burst(struct lcore *lcore, struct burst *burst, const struct outcome *outcome)
{
	const uint64_t leave = run_all(lcore, burst, outcome);
	unsigned n = 0;

	burst->bytes = 0;
	if (likely(leave == UINT64_MAX >> (64 - burst->n))) {
		for (; n < burst->n; n++)
			burst->bytes += burst->packet[n]->pkt_len;
		return n;
	}
	for (uint64_t left = leave; left != 0; left &= left - 1) {
		struct rte_mbuf *packet = burst->packet[__builtin_ctzll(left)];

		burst->bytes += packet->pkt_len;
		burst->packet[n++] = packet;
	}
	return n;
}
