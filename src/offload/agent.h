/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The agent: a worker's part of the offload engine. It decides which of the worker's flows go to the NIC, gives them
 * slots, hands requests to the ports' installers, takes their answers, and checks that the NIC does what it said (the
 * audit), from what the worker sees anyway, without a look-up of its own.
 *
 * The dataplane tells it of packets by five calls, all of them rare but the sample:
 *	agent_sample()	 one packet of a burst, for rates
 *	agent_marked()	 a verified mark, where the record does not say `proven` for that direction
 *	agent_unmarked() no mark, where offload_is_watched() says that it is worth a look
 *	agent_stranger() a mark that names no flow, or another one
 *	agent_unplain()	 a packet that no rule can be expected to match, with a mark or without
 * and the shard of ends by agent_ended(). Everything else happens in agent_turn(), bounded each time.
 *
 * The states, and what leads from one to another, are the table of offload/agent_state.c. The policies (agent_admit.c,
 * agent_audit.c, agent_count.c, agent_full.c) emit events and do not call one another; agent.c tells them of packets,
 * answers, and slots whose time has come (offload/due.h).
 *
 * Records are changed here only in `offload`, `reason`, `back_off` and `slot`.
 *
 * One thread, the worker. No global state; memory is taken at the start.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/topology.h"
#include "base/tsc.h"
#include "flow/credit.h"
#include "flow/table.h"
#include "offload/admission.h"
#include "offload/change.h"
#include "offload/due.h"
#include "offload/installer.h"
#include "offload/meter.h"
#include "offload/queue.h"
#include "offload/slots.h"
#include "offload/tally.h"
#include "packet/extract.h"

#define AGENT_MAX_PORTS TOPOLOGY_MAX_PORTS
/* The least time between two samples. */
#define AGENT_SAMPLE_US 16
/* A sample passes over no bursts for longer than that. */
#define AGENT_PASS_US 20000

/* Packets that a NIC forwarded alone, to be credited: flow/credit.h. */
struct agent_credit {
	unsigned port;		    /* that they arrived at */
	uint32_t position;	    /* of the record; FLOW_NONE: it has gone, */
	struct flow_report *report; /* and this has them; NULL: none does */
	struct flow_credit credit;
	bool last;    /* of this rule */
	bool dropped; /* the NIC did not forward them, but dropped them */
};

struct agent_config {
	unsigned worker, n_workers;
	struct topology topology;
	struct installer *installer[AGENT_MAX_PORTS]; /* NULL: offload is off on this port */
	struct flow_table *table;		      /* the shard's; outlives the agent */
	const struct flow_dropped *dropped; /* the shard's; NULL where no verdict drops anything */
	const struct tsc_clock *clock;
	uint32_t threshold; /* packets a second; 0: all flows, whichever comes first */
	uint32_t rules;	    /* at each port, of all workers, at most; 0: as many as it takes */
	/* asked for and taken away at each port, one for each worker or more; 0: as many as it does */
	uint32_t rules_per_s;
	uint32_t slots;	      /* a wire, of all workers */
	uint32_t min_packets; /* that a flow has had before it is considered; with threshold 0: 1 */
	bool audit_counters;  /* where a port has counters */
	bool full; /* where a port can, flows are forwarded without the CPU: the calls below */
	bool tcp_strict; /* but none of TCP, as no NIC checks its window */
	/* by port, of what its NIC can have counted; 0: not known */
	uint64_t link_mbps[AGENT_MAX_PORTS];
	uint32_t longest[AGENT_MAX_PORTS]; /* frame */
	uint64_t random;
	/* a change was made: for followers; may be NULL */
	void (*tell)(void *context, const struct offload_change *change);
	/* the record or report is to have these */
	void (*credit)(void *context, const struct agent_credit *credit);
	/*
	 * The NIC has seen no packet of that record's direction since it was asked before. Says in how many us the flow
	 * would end of that; 0: it has, and its record is gone.
	 */
	uint64_t (*silent)(void *context, uint32_t position);
	/* a report that agent_ended() held back */
	void (*release)(void *context, const struct flow_report *report);
	/* how many of these would find room; NULL: any number */
	unsigned (*room)(void *context);
	void *context;
};

/* Of one port, since the start. */
struct agent_counters {
	uint64_t arrows[OFFLOAD_N_STATES][OFFLOAD_N_STATES]; /* from, to */
	uint64_t refused;				     /* by the driver */
	uint64_t displaced;				     /* out of the queue */
	uint64_t no_slot;
	uint64_t stalled;		     /* inserts and deletes whose answer was late */
	uint64_t strangers;		     /* packets whose mark was not their flow's */
	uint64_t ghosts;		     /* of those, with a mark that no worker has in force */
	uint64_t forwarded, forwarded_bytes; /* by the NIC alone, as far as it was told */
	uint64_t unaccounted;		     /* of these, packets that are in no record */
	uint64_t fell_out[OFFLOAD_N_REASONS]; /* what the audit took out, by reason */
	uint64_t flows[OFFLOAD_N_STATES];     /* gauge */
	/* gauge: rules that forward or drop, other than was decided since, and are not out yet */
	uint64_t decided;
	/* gauge: of full offload, the longest time from one reading of each counter to the next; 0 without */
	uint64_t read_us;
};

/* A wire's slots of this worker. */
struct agent_wire {
	struct slots slots; /* zeroed until agent_adopt() */
	unsigned n_ports;
	struct admission *admission; /* by the port's place in the domain */
	struct due due;		     /* all slots that are in use */
	bool broken;		     /* rules are to be taken out of one of its ports */
	struct agent_full
		*full; /* full offload (offload/agent_full.h), beside each slot; NULL without */
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
	struct admission_budget budget;
	uint32_t room_step; /* when it has room for more than was known, so many more are tried */
	bool grows;	    /* they are being tried */
	bool claims; /* the busiest that waits has a claim to a place that becomes free, or is to */
	uint64_t full_us;     /* how long nothing more is tried; 0: it was not full yet */
	uint64_t again_us;    /* when one more is; UINT64_MAX: now */
	uint32_t n_stay;      /* flows that left, of whose rules the NIC refused to let go */
	uint64_t stay_us;     /* how long no flow gives way after such a refusal; 0: none lately */
	uint64_t exchange_us; /* until then */
	bool fresh;	      /* counters tell what they have, */
	bool caches;	      /* or what they had a while ago; neither: it is not known yet */
	uint64_t ghost_told_us;
	/* a mark of ours that is not in force, and comes with packets of the flow at a position: does its rule work on? */
	struct stale ghost;
	uint32_t ghost_mark, ghost_position;
	uint64_t stall_told_us, refusal_told_us, unread_told_us;
	uint64_t doubt_us; /* when the next counter that is in doubt may be read early */
	bool unread;	   /* counters could not be read when that was tried last, as was told */
	struct tally_port tally; /* of full offload: how wide counters are */
	uint32_t read_late; /* steps that they are read less often by since they are told late */
	struct agent_try tries[PROVIDER_N_KINDS];
	struct agent_counters counters;
};

struct agent {
	struct agent_config config;
	bool off; /* no flow is asked in, and all leave: agent_set() */
	struct agent_wire wire[TOPOLOGY_MAX_DOMAINS];
	struct agent_port port[AGENT_MAX_PORTS];
	struct meter meter;
	struct change_ring changes;
	uint64_t now_us, sampled_us;
	/* that might have been sampled in this turn, and in the last that had some */
	uint32_t bursts, last_bursts;
	uint32_t pass_over, drawn; /* so many of them before the next sample */
	uint32_t n_held;	   /* reports that wait for the NIC's last numbers */
	/* a bit for each wire for whose slots there was no memory: by who makes them, of any thread */
	_Atomic uint16_t without_slots;
	/* all workers', by number; of others nothing is read but `adopted`, and what it leads to */
	const struct agent *workers[INSTALLER_MAX_WORKERS];
	_Atomic(const struct slots *) adopted[TOPOLOGY_MAX_DOMAINS]; /* NULL: not yet */
};

/* The settings that can change while packets flow; as in struct agent_config. */
struct agent_settings {
	bool on; /* false: all flows leave, and none is asked in */
	uint32_t threshold, min_packets;
	uint32_t rules, rules_per_s;
};

/* 0 or -ENOMEM. */
int agent_create(struct agent **agent, const struct agent_config *config);
/*
 * They are of one plane's workers, all of them, by number: a mark that one gave is no ghost to the others. Before any of
 * them runs.
 */
void agent_introduce(struct agent *const *agents, unsigned n);
/*
 * Makes the slots of a wire, with marks that its ports take: with a thread of the caller's, while the worker
 * goes on. agent_adopt() hands them to the agent, on the worker's thread; from then on flows go to the NIC.
 * agent_slots_fini() is for those that were not adopted.
 */
int agent_slots_init(struct agent_wire *wire, const struct agent_config *config, unsigned domain,
	uint32_t mark_max);
void agent_slots_fini(struct agent_wire *wire);
void agent_adopt(struct agent *agent, unsigned number, const struct agent_wire *wire);

/* Accepts NULL. The installers have stopped, or were never asked; so has every worker that it was introduced to. */
void agent_destroy(struct agent *agent);

/* The record of a marked packet that arrived at `port`; FLOW_NONE: the mark names no flow. To be verified. */
static inline uint32_t agent_position(const struct agent *agent, unsigned port, uint32_t mark)
{
	return slots_position(&agent->wire[agent->config.topology.domain[port]].slots, mark);
}

/* Is a packet of this burst to be sampled? More than some hundred thousand a second tell nothing more. */
static inline bool agent_samples(struct agent *agent)
{
	if (agent->config.threshold == 0)
		return true;
	agent->bursts++;
	const uint64_t since_us = agent->now_us - agent->sampled_us;

	if (since_us < AGENT_SAMPLE_US)
		return false;
	if (agent->pass_over > 0 && since_us < AGENT_PASS_US) {
		agent->pass_over--;
		return false;
	}
	agent->sampled_us = agent->now_us;
	/* a turn has one time, and its first burst is always the same port's */
	agent->drawn += UINT32_C(0x9e3779b1);
	agent->pass_over = (uint32_t)((uint64_t)agent->drawn * agent->last_bursts >> 32);
	return true;
}

/*
 * `port`: that the packet arrived at, as in all that follows; `from`: the key's end that it came from; `info` of the
 * packet: whether rules match it, and the direction.
 */
void agent_sample(struct agent *agent, uint32_t position, unsigned port, unsigned from);
void agent_marked(struct agent *agent, uint32_t position, unsigned port, unsigned from);
void agent_unmarked(
	struct agent *agent, uint32_t position, unsigned port, const struct packet_info *info);
/* `position`: of the flow that the packet is of, FLOW_NONE where it has none yet. */
void agent_stranger(struct agent *agent, unsigned port, uint32_t mark, uint32_t position,
	const struct packet_info *info);
/*
 * The same of packets that no rule can be expected to match (extract_is_plain()). They prove nothing, and nothing is held
 * against the NIC for them; where most packets of a direction with a rule are such, the rule is taken out for a minute
 * (OFFLOAD_UNPLAIN). `marked`: with the flow's own mark.
 */
void agent_sample_unplain(struct agent *agent, uint32_t position, unsigned from);
void agent_unplain(struct agent *agent, uint32_t position, unsigned port,
	const struct packet_info *info, bool marked);
void agent_stranger_unplain(
	struct agent *agent, unsigned port, uint32_t position, const struct packet_info *info);
/* The flow has another verdict from now on: a rule that does something else is to leave. */
void agent_decided(struct agent *agent, uint32_t position);
/* A packet of a flow whose verdict drops it, as it was. */
void agent_dropped(
	struct agent *agent, uint32_t position, unsigned port, const struct packet_info *info);
/* A flow was learned: with threshold 0 it is queued at once. */
void agent_learned(struct agent *agent, uint32_t position, unsigned port, unsigned from);

/*
 * A report leaves the shard, before any packet after it is told here: of an end (the record is gone, or
 * began anew), or an active one (its counters begin anew). Fills the report's part about offload. True: it is held
 * back, until the NIC has told what it forwarded last, or for five seconds: config.release() is called then.
 */
bool agent_ended(struct agent *agent, struct flow_report *report);
/* Reports that are held back go as they are. */
void agent_give_up(struct agent *agent);

/*
 * For how long the NIC is not asked for that direction of a record, with its slot's entry or NULL; 0: it may be. `record`
 * may be a copy.
 */
uint64_t agent_waits_us(const struct agent *agent, const struct slot *entry,
	const struct flow_record *record, unsigned from);

/* Where the direction of a record, or of its copy, arrives, as far as that is known. `entry`: of its slot, or NULL. */
unsigned agent_port_of(const struct agent *agent, const struct slot *entry,
	const struct flow_record *record, unsigned from);

/*
 * An earlier flow of the record's key ended, and has a rule of that direction which is not surely gone: packets may have
 * its mark. Sets since when it is to go; 0: the NIC has not even answered its insert.
 */
bool agent_has_older_rule(const struct agent *agent, const struct flow_record *record,
	unsigned from, uint64_t *since_us);

/* From now on flows are asked in by these; which of those in the NIC leave is seen within the next second. */
void agent_set(struct agent *agent, const struct agent_settings *settings);

/* Every turn of the worker. */
void agent_turn(struct agent *agent, uint64_t now_us);

/* Where a direction of a flow stands among those that its port may be given. */
struct agent_rank {
	uint32_t rate; /* its own, as offload/rate.h has it */
	uint32_t bar;  /* that it needs to get in; UINT32_MAX: no flow gives way to it now */
	uint32_t rank; /* 1: no flow in the NIC is busier */
	uint32_t held; /* flows of this worker that hold a rule, or are on their way in */
	/* rules that the port is known to take, or may be asked for; UINT32_MAX: not known */
	uint32_t room;
	bool has_room;	/* for another */
	bool has_slots; /* a mark is free for it: else only this worker's places are of use */
	bool crowded;	/* those that wait for the port have all places of the queue */
};

/* What any flow needs to get in there: rate and rank stay 0. False: no flow is asked in there. */
bool agent_bar(struct agent *agent, unsigned port, struct agent_rank *rank);
/* Of the live record at a position. */
void agent_rank(struct agent *agent, uint32_t position, unsigned from, struct agent_rank *rank);

/*
 * Tells what the NIC has of a live record. Reasons are made exact: for a flow that the NIC is not asked for they say why
 * that is so (offload is off, no NIC, the kind, too short, the breaker, quiet).
 */
void agent_view(
	const struct agent *agent, const struct flow_record *record, struct flow_offload *view);
