/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/reject.h"

#include "dataplane/lcore.h"
#include "dataplane/tx.h"
#include "packet/reject.h"

/* Makes the answer, which is a frame of its own, or NULL: there is none, or no memory for it. */
static struct rte_mbuf *answer_to(const struct rte_mbuf *packet, enum reject_with with)
{
	struct rte_mbuf *answer = rte_pktmbuf_alloc(packet->pool);
	size_t length;

	if (answer == NULL)
		return NULL;
	length = reject_build(
		packet, with, rte_pktmbuf_mtod(answer, uint8_t *), rte_pktmbuf_tailroom(answer));
	if (length == 0) {
		rte_pktmbuf_free(answer);
		return NULL;
	}
	answer->pkt_len = answer->data_len = (uint16_t)length;
	answer->port = packet->port;
	return answer;
}

void reject_packet(struct lcore *lcore, const struct burst *burst, unsigned i)
{
	struct path_counters *counters = &lcore->worker.counters[burst->from.domain];
	const enum reject_with with = (enum reject_with)(burst->verdict[i] - FLOW_VERDICT_REJECT);
	struct rte_mbuf *answer;

	/* in replay nobody is there who could be told */
	if (lcore->n_ports == 0) {
		counters->reject_unanswered++;
		return;
	}
	if (!rate_limit_has(&lcore->reject_limit, lcore->worker.shard->now_us)) {
		counters->reject_limited++;
		return;
	}
	answer = answer_to(burst->packet[i], with);
	if (answer == NULL) {
		counters->reject_unanswered++;
		return;
	}
	rate_limit_take(&lcore->reject_limit);
	counters->reject_replies++;
	lcore->ports[burst->from.port].reject_replies++;
	send_to_port(lcore, answer, burst->from.domain, burst->from.port);
}
