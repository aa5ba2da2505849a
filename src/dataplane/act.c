/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/act.h"

#include "dataplane/send.h"
#include "dataplane/station.h"

enum drop_reason act_drop_reason(enum action_drop drop)
{
	static const uint8_t reasons[ACTION_N_DROPS] = {
		[ACTION_DROP_BLOCKED] = DROP_BLOCKED,
		[ACTION_DROP_TTL_EXPIRED] = DROP_TTL_EXPIRED,
		[ACTION_DROP_NO_NEXT_HOP] = DROP_NO_NEXT_HOP,
		[ACTION_DROP_TOO_BIG] = DROP_TOO_BIG,
		[ACTION_DROP_POLICED] = DROP_POLICED,
		[ACTION_DROP_NOT_POSSIBLE] = DROP_NOT_POSSIBLE,
	};

	return (enum drop_reason)reasons[drop];
}

/* A copy goes out by that port; without memory for it there is none. */
static __rte_noinline void mirror(
	struct station *station, struct act_from from, const struct rte_mbuf *packet, uint16_t port)
{
	struct rte_mbuf *copy;

	if (port >= station->n_ports)
		return;
	copy = rte_pktmbuf_copy(packet, packet->pool, 0, UINT32_MAX);
	if (copy == NULL)
		return;
	station->worker.counters[from.domain].mirrored++;
	send_to_port(station, copy, from.domain, port);
}

bool act_packet(struct station *station, struct act_from from, struct rte_mbuf *packet,
	const struct packet_info *info, uint16_t verdict)
{
	struct act *act = &station->act;
	struct action_answer answer;
	const struct action_packet headers = action_packet_of(packet, info);

	if (verdict == FLOW_VERDICT_FORWARD)
		return true;
	action_run(programs_get(act->programs, verdict), &act->context, packet, &headers, &answer);
	if (unlikely(answer.drop != ACTION_DROP_NONE)) {
		worker_drop_of(&station->worker, from.domain, packet,
			act_drop_reason((enum action_drop)answer.drop));
		return false;
	}
	if (unlikely(answer.mirror_port != ACTION_NO_PORT))
		mirror(station, from, packet, answer.mirror_port);
	if (likely(answer.port == ACTION_NO_PORT || answer.port == from.peer))
		return true;
	if (unlikely(answer.port >= station->n_ports))
		worker_drop_of(&station->worker, from.domain, packet, DROP_NO_NEXT_HOP);
	else
		send_to_port(station, packet, from.domain, answer.port);
	return false;
}
