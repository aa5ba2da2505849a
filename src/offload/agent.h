/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The agent: a worker's part of the offload engine. It decides which of the worker's flows are asked into
 * the NIC, gives them slots, hands requests to the ports' installers, takes their answers, and watches
 * whether the NIC does what it said (the audit): all from what the worker sees anyway, without a look-up
 * of its own.
 *
 * The walk asks it about packets by four calls, all of them rare but the sample:
 *	agent_sample()	 one packet of a burst, for rates
 *	agent_marked()	 a verified mark, where the record does not say `proven` for that side
 *	agent_unmarked() no mark, where offload_is_watched() says that it is worth a look
 *	agent_stranger() a mark that names nobody, or somebody else
 * and the shard about ends by agent_ended(). Everything else happens in agent_turn(), bounded each time.
 *
 * Records are changed here only in `offload`, `reason`, `back_off`, `rate` and `slot`.
 *
 * What makes a flow go to the NIC: its rate in one direction, measured over 10 ms, is the threshold or more
 * (0: every flow, with its first packet). It leaves when its rate over a second is below half of that, when it
 * ends, or when the audit says so. A direction that fell out, was refused, lost its place in the queue or found no
 * slot waits: 0.1 s, doubled each time, up to a minute.
 *
 * One thread, the worker. No global state; memory is taken at the start.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/tsc.h"
#include "flow/report.h"
#include "flow/table.h"
#include "offload/change.h"
#include "offload/installer.h"
#include "offload/meter.h"
#include "offload/queue.h"
#include "offload/slots.h"
#include "packet/extract.h"

#define AGENT_MAX_PORTS 32
#define AGENT_SOON 32

struct agent_config {
	unsigned worker, n_workers;
	unsigned n_ports;			      /* 2 * wires */
	struct installer *installer[AGENT_MAX_PORTS]; /* NULL: offload is off on this port */
	struct flow_table *table;		      /* the shard's; outlives the agent */
	const struct tsc_clock *clock;
	uint32_t threshold;   /* packets a second; 0: all flows */
	uint32_t slots;	      /* a wire, of all workers */
	uint32_t min_packets; /* that a flow has had before it is considered; with threshold 0: 1 */
	bool audit_counters;  /* where a port has counters */
	uint64_t random;
	/* a change was made: for followers; may be NULL */
	void (*tell)(void *context, const struct offload_change *change);
	void *context;
};

/* Of one port, since the start. */
struct agent_counters {
	uint64_t arrows[OFFLOAD_N_STATES][OFFLOAD_N_STATES]; /* from, to */
	uint64_t refused;				     /* by the driver */
	uint64_t displaced;				     /* out of the queue */
	uint64_t no_slot;
	uint64_t stalled;		      /* inserts and deletes whose answer was late */
	uint64_t strangers;		      /* marked packets that were not whom the mark names */
	uint64_t ghosts;		      /* of those, marks that this run has not in force */
	uint64_t fell_out[OFFLOAD_N_REASONS]; /* what the audit took out, by reason */
	uint64_t flows[OFFLOAD_N_STATES];     /* gauge */
};

/* One that is in use. */
struct agent_used {
	uint32_t slot;
	uint32_t
		rests_ms; /* nothing of it is to be looked at before that (clock of the run); 0: any time */
};

/* A wire's slots of this worker. */
struct agent_wire {
	struct slots slots;	 /* zeroed until agent_adopt() */
	struct agent_used *used; /* in no order; slot.next is the place here */
	uint32_t n_used;
	uint32_t sweep; /* place where the next turn looks */
	uint32_t due;	/* millionths of a slot that are to be looked at */
	/* slots whose counters are to be read earlier than the sweep comes to them */
	uint32_t n_soon;
	uint32_t soon[AGENT_SOON];
};

/* Flows of a kind that is out (offload/health.h) which were asked in at that try. */
struct agent_try {
	uint32_t number, asked;
};

/* A port: what waits for its installer, and what it has been handed. */
struct agent_port {
	struct installer *installer; /* NULL: offload is off here */
	struct queue queue;
	uint32_t under_way; /* inserts that are not answered */
	uint32_t limit;	    /* how many may be */
	bool fresh;	    /* counters tell what they have, */
	bool caches;	    /* or what they had a while ago; neither: it is not known yet */
	uint64_t ghost_told_us;
	uint64_t stall_told_us, refusal_told_us;
	struct agent_try tries[PROVIDER_N_KINDS];
	struct agent_counters counters;
};

struct agent {
	struct agent_config config;
	struct agent_wire wire[AGENT_MAX_PORTS / 2];
	struct agent_port port[AGENT_MAX_PORTS];
	struct meter meter;
	struct change_ring changes;
	uint64_t now_us;
};

/* 0 or -ENOMEM. */
int agent_create(struct agent **agent, const struct agent_config *config);
/*
 * Makes the slots of a wire, with marks that its ports take: with a thread of the caller's, while the worker
 * goes on. agent_adopt() hands them to the agent, on the worker's thread; from then on flows go to the NIC.
 * agent_slots_fini() is for those that were not adopted.
 */
int agent_slots_init(struct agent_wire *wire, const struct agent_config *config, uint32_t mark_max);
void agent_slots_fini(struct agent_wire *wire);
void agent_adopt(struct agent *agent, unsigned number, const struct agent_wire *wire);

/* Accepts NULL. The installers have stopped, or were never asked. */
void agent_destroy(struct agent *agent);

/* The record of a marked packet that arrived at `port`; FLOW_NONE: the mark names nobody. To be verified. */
static inline uint32_t agent_position(const struct agent *agent, unsigned port, uint32_t mark)
{
	return slots_position(&agent->wire[port / 2].slots, mark);
}

void agent_sample(struct agent *agent, uint32_t position, unsigned side, unsigned from);
void agent_marked(struct agent *agent, uint32_t position, unsigned side, unsigned from);
/* `info` of the packet: flags that rules do not match, and the direction. */
void agent_unmarked(
	struct agent *agent, uint32_t position, unsigned side, const struct packet_info *info);
/* `position`: of the flow that the packet is of, FLOW_NONE where it has none yet. */
void agent_stranger(struct agent *agent, unsigned port, uint32_t mark, uint32_t position,
	const struct packet_info *info);
/* A flow was learned: with threshold 0 it is queued at once. */
void agent_learned(struct agent *agent, uint32_t position, unsigned side, unsigned from);

/*
 * A report leaves the shard, before any packet after it is told here: of an end (the record is gone, or
 * began anew), or an active one (its counters begin anew). Fills the report's part about offload.
 */
void agent_ended(struct agent *agent, struct flow_report *report);

/*
 * For how long the NIC is not asked for that side of a record, with its slot's entry or NULL; 0: it may be. `record`
 * may be a copy.
 */
uint64_t agent_waits_us(const struct agent *agent, const struct slot *entry,
	const struct flow_record *record, unsigned side);

/* Every turn of the worker. */
void agent_turn(struct agent *agent, uint64_t now_us);

/*
 * What the NIC has of a live record; reasons are made exact: of a flow that nobody asked for it says why that
 * is so (offload is off, no NIC, the kind, too short, the breaker, quiet).
 */
void agent_view(
	const struct agent *agent, const struct flow_record *record, struct flow_offload *view);
