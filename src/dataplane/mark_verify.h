/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What packets show of the NIC's work: whether a mark names the packet's own flow, and whether one is there
 * that should be. The agent (offload/agent.h) draws the conclusions. Worker's thread; `agent` may be NULL:
 * nothing is offloaded, and no mark is looked at.
 */

#include <rte_mbuf.h>

#include "offload/agent.h"

static inline bool mark_is_there(const struct rte_mbuf *packet)
{
	return packet->ol_flags & RTE_MBUF_F_RX_FDIR_ID;
}

static inline uint32_t mark_value(const struct rte_mbuf *packet)
{
	return packet->hash.fdir.hi;
}

/* Placeholder for a mark that resolves to no flow; no packet matches it. */
extern struct flow_record mark_nobody;

/* A packet that has been accounted to the record at `position`; FLOW_NONE: of no flow that is known. */
void mark_verify(struct agent *agent, unsigned port, const struct rte_mbuf *packet,
	uint32_t position, const struct packet_info *info);

/* A packet that began a flow, for agents that want all flows at once. `agent` is not NULL. */
void mark_learned(struct agent *agent, unsigned port, const struct rte_mbuf *packet,
	const struct packet_info *info);

/* A packet of the record at `position` that is dropped by its verdict. `agent` may be NULL. */
void mark_verify_dropped(struct agent *agent, unsigned port, const struct rte_mbuf *packet,
	uint32_t position, const struct packet_info *info);

/* One packet of a burst, already counted, which the agent asked for as a sample: agent_samples(). */
void mark_sample(struct agent *agent, unsigned port, const struct rte_mbuf *packet,
	uint32_t position, const struct packet_info *info);
