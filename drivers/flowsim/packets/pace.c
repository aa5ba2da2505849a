/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/packets/pace.h"

#include <rte_cycles.h>
#include <rte_mbuf_dyn.h>

#include "drivers/flowsim/port/port.h"

void sim_pace_begin(struct sim_rx_queue *queue)
{
	const struct sim_port *port = queue->port;
	int flag = rte_mbuf_dynflag_lookup(RTE_MBUF_DYNFLAG_RX_TIMESTAMP_NAME, NULL);

	queue->pace = (struct sim_pace){
		.a_cycle = (double)port->args.pace / port->n_rx / (double)rte_get_tsc_hz(),
		.field = rte_mbuf_dynfield_lookup(RTE_MBUF_DYNFIELD_TIMESTAMP_NAME, NULL),
		.flag = flag < 0 ? 0 : UINT64_C(1) << flag,
	};
}

/* Of the places of the round, those that the host gets. */
static double share_of(const struct sim_round *round)
{
	return round->n_gone == 0 ? 1 : (double)round->n / (double)(round->n + round->n_gone);
}

/* The same, and those besides that a queue has no descriptors for. */
static double waiting_at(const struct sim_rx_queue *queue, uint64_t tsc)
{
	const struct sim_pace *pace = &queue->pace;

	double waiting = pace->waiting, left;

	/* another thread may have read its counter a moment later */
	if (pace->tsc != 0 && (int64_t)(tsc - pace->tsc) >= 0)
		waiting += (double)(tsc - pace->tsc) * pace->a_cycle * share_of(&queue->round);
	/* after the last round nothing comes that could be missed */
	left = (double)sim_round_left(&queue->round, queue->port->args.passes);
	return waiting < left ? waiting : left;
}

double sim_pace_waiting(const struct sim_rx_queue *queue)
{
	double waiting = queue->pace.a_cycle > 0 ? waiting_at(queue, rte_rdtsc()) : 0;

	return waiting < queue->descriptors ? waiting : queue->descriptors;
}

uint16_t sim_pace_due(struct sim_rx_queue *queue, uint16_t n)
{
	struct sim_pace *pace = &queue->pace;
	const uint64_t tsc = rte_rdtsc();
	const double most = queue->descriptors;

	pace->waiting = waiting_at(queue, tsc);
	pace->tsc = tsc;
	if (pace->waiting > most) {
		uint64_t missed = (uint64_t)(pace->waiting - most);

		__atomic_fetch_add(&queue->counters.missed, missed, __ATOMIC_RELAXED);
		pace->waiting -= (double)missed;
	}
	return pace->waiting < n ? (uint16_t)pace->waiting : n;
}

void sim_pace_take(
	struct sim_rx_queue *queue, struct rte_mbuf **packets, uint16_t n, uint16_t served)
{
	struct sim_pace *pace = &queue->pace;
	const double cycles = pace->field < 0 ? 0 : 1 / (pace->a_cycle * share_of(&queue->round));
	double ago = (pace->waiting - 1) * cycles;

	for (uint16_t i = 0; i < n && pace->field >= 0; i++, ago -= cycles) {
		*RTE_MBUF_DYNFIELD(packets[i], pace->field, rte_mbuf_timestamp_t *) =
			pace->tsc - (uint64_t)(int64_t)(ago > 0 ? ago : 0);
		packets[i]->ol_flags |= pace->flag;
	}
	pace->waiting -= served;
}
