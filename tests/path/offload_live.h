/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A plane with offload between two simulated NICs of known streams. The test turns the lcores itself, by
 * the run's clock; installers are threads, as in the program. What a port hands to the engine, and what the
 * engine hands to a port, is counted by stream from the packets themselves, so that records can be held
 * against it to the packet. Packets are paced: so many a second arrive at each port.
 *
 * A stream can be muted, so that its packets do not arrive, and frames of a test's own can be put in, marks
 * and all.
 */

#include "../unit/frames.h"
#include "drivers/flowsim/sim.h"
#include "offload/histogram.h"
#include "plane/plane.h"
#include "plane/plane_private.h"

#define OFFLOAD_LIVE_QUEUES 2
#define OFFLOAD_LIVE_CHANGES 65536
#define OFFLOAD_LIVE_PUT 64
/* A rate: as fast as it goes. */
#define OFFLOAD_LIVE_FULL UINT64_MAX

/* One of the frames that arrive round after round, and whose it is. */
struct live_frame {
	const struct frame *frame;
	uint32_t flow; /* number of a flow; the first one at each side has what makes its key */
	uint8_t side;  /* where it arrives */
};

struct offload_live_options {
	uint32_t n_flows;
	/* in place of streams; no frame arrives at both sides. Outlive the plane */
	const struct live_frame *frames;
	unsigned n_frames;
	const char *words; /* more arguments of both devices; NULL: none */
	const char *load;  /* of the streams; NULL: one packet of each a round */
	bool one_way;	   /* nothing arrives at the second port */
	uint64_t rate;	   /* packets a second at each port */
	unsigned n_workers, n_queues;
	enum plane_threads threads;
	uint32_t capacity; /* records; 0: room for all flows */
	bool large; /* a table so large that bursts wait for one another: flow_look_up_waits() */
	uint32_t max_blocks;	     /* 0: there is no list */
	struct policy_others policy; /* decides what no block drops */
	uint32_t slots;		     /* 0: more than there are flows */
	bool zone_vlan;
	uint32_t threshold; /* and so on: as in struct plane_offload */
	bool counters, restart;
	/* flows that can be are forwarded by the NIC: nothing of these arrives, and offload_live_finish() is not for it */
	bool full;
	bool untried;	 /* it begins though the ports cannot be tried yet */
	uint32_t idle_s; /* of all protocols and states; 0: as usual */
};

/* A flow; pairs are by the wire's side that packets arrive at. */
struct live_flow {
	struct flow_key key;
	uint8_t from[2]; /* the key's end */
	bool comes[2];	 /* packets arrive there at all */
	bool muted;
	unsigned one_in;    /* of so many packets one arrives; 0: each */
	uint64_t sent[2];   /* by the NIC, in the rounds of its source */
	uint64_t in[2];	    /* packets that the engine got */
	uint64_t marked[2]; /* of these, with any mark */
	uint64_t out[2];    /* packets that left, by where they had arrived */
	uint64_t reported[2];
	uint64_t reported_bytes[2];
	uint64_t reported_dropped;   /* by its verdict, both ways */
	unsigned estimated;	     /* reports that say so */
	unsigned ended[FLOW_N_ENDS]; /* reports, by reason */
	uint64_t told; /* marked packets, as reports have them; UINT64_MAX: one did not know */
	uint32_t mark; /* the last one */
};

struct live_side {
	struct port *port;
	struct sim_port *sim;
	eth_rx_burst_t receive;
	eth_tx_burst_t send;
	/* millionths of a packet that may arrive, by queue: none is to starve another */
	uint64_t budget[OFFLOAD_LIVE_QUEUES];
	unsigned n_put;
	struct rte_mbuf *put[OFFLOAD_LIVE_PUT];
};

struct offload_live {
	struct offload_live_options options;
	struct plane *plane;
	struct live_side side[2];
	struct live_flow *flows;
	uint32_t *places; /* by hash: number of a flow + 1 */
	uint32_t n_places;
	uint64_t now_us, looked_us;
	bool crosses;	   /* packets of an end come by the other port, too */
	uint64_t in_bytes; /* of all packets that the engine got */
	unsigned n_events; /* changes so far, from the last offload_live_forget() on */
	struct offload_change *events;
	struct plane_changes where;
	/* CPU time of each turn of an lcore that received packets, with what is counted here; NULL: not measured */
	struct histogram *times;
};

/* Starts DPDK's environment for the test program. */
int offload_live_environment(void **state);

/* Until the ports have been tried. */
struct offload_live *offload_live_begin(const struct offload_live_options *options);
/* Checks the counts, ends every flow, checks them again; then frees everything; both. */
void offload_live_finish(struct offload_live *live);
void offload_live_leave(struct offload_live *live);
void offload_live_end(struct offload_live *live);
/* After a test: frees what one that failed has left. */
int offload_live_tidy(void **state);

/* Rules in the NIC of one side, by its own book. */
uint32_t offload_live_rules(const struct offload_live *live, unsigned side);

/* One turn of every lcore. */
void offload_live_turn(struct offload_live *live);
/* Turns until it is so; false when it is not after that time. */
bool offload_live_until(struct offload_live *live,
	bool (*is_so)(struct offload_live *live, void *context), void *context, unsigned ms);
/* Turns for that time. */
void offload_live_run(struct offload_live *live, unsigned ms);

/* Sets a fault of the NIC at that side, as telemetry does. */
void offload_live_fault(struct offload_live *live, unsigned side, const char *text);

/* What live records have, by flow. */
struct live_sums {
	uint64_t packets[2], bytes[2]; /* by side */
};
void offload_live_records(const struct offload_live *live, struct live_sums *sums);

/* No packet is under way any more, and none comes: then every number has to be right, to the packet. */
void offload_live_check(struct offload_live *live);

/* It is proven, at each side that packets arrive at; all that are not muted are. */
bool offload_live_proven(struct offload_live *live, const struct live_flow *flow);
bool offload_live_all_proven(struct offload_live *live, void *unused);

/* Whose worker it is: the shard's number. */
unsigned offload_live_worker(const struct offload_live *live, const struct live_flow *flow);
/* What the plane says of a flow; it has to be known. */
void offload_live_ask(
	struct offload_live *live, const struct live_flow *flow, struct plane_flow *answer);
/* The end whose packets come by that side, by the first packet of the flow. */
static inline unsigned offload_live_from(const struct flow_record *record, unsigned side)
{
	return record->side == side ? record->initiator : !record->initiator;
}
/* Its record; NULL: there is none. */
struct flow_record *offload_live_record(struct offload_live *live, const struct live_flow *flow);
/* Is there a record? */
bool offload_live_knows(struct offload_live *live, const struct live_flow *flow);
void offload_live_kill(struct offload_live *live, const struct live_flow *flow);

/* A packet of the flow's arrives beside the stream, with that mark (0: none) and more TCP flags. */
void offload_live_put(struct offload_live *live, const struct live_flow *flow, unsigned side,
	uint32_t mark, uint8_t tcp_flags);
/* The same with a frame of the test's own, of a flow that there is. */
void offload_live_put_frame(
	struct offload_live *live, const struct frame *frame, unsigned side, uint32_t mark);

/* So many packets of two flows come with a mark that is not in force: strangers, each of whom its headers say. */
#define OFFLOAD_LIVE_LATE 8
void offload_live_put_late(struct offload_live *live, uint32_t one, uint32_t other, uint32_t mark);

/*
 * The flow's TCP connection is closed by three packets that come one after the other with that mark: a FIN, the
 * other side's that acknowledges it, and an acknowledgement.
 */
void offload_live_close(struct offload_live *live, const struct live_flow *flow, uint32_t mark);
/*
 * A RST of side 0, whose number is so far ahead of what the other end acknowledges, and a segment of that end after it.
 * In the streams every segment acknowledges the first number of the other direction's.
 */
void offload_live_reset(
	struct offload_live *live, const struct live_flow *flow, uint32_t mark, uint32_t ahead);

/* Changes that came before are not looked at any more. */
/* The responder's packet, by the port of the initiator. */
void offload_live_put_crossed(
	struct offload_live *live, const struct live_flow *flow, uint32_t mark);
void offload_live_forget(struct offload_live *live);
/* Packets of all streams that arrived at that side. */
uint64_t offload_live_received(const struct offload_live *live, unsigned side);
uint64_t offload_live_marked(const struct offload_live *live, unsigned side);
/* The sum over both ports. */
void offload_live_counters(
	struct offload_live *live, unsigned port, struct agent_counters *counters);
/* For whoever has to find out why a test failed: the last changes, and where each flow is. */
void offload_live_print(struct offload_live *live);

/* For offload_live.c: what arrives (offload_live_source.c). */

/* The device of a side. Returns the name of a file to be removed once it is open, to be freed; or NULL. */
char *live_source_device(
	const struct offload_live_options *options, unsigned number, char device[PORT_DEVICE_MAX]);
/* How the plane reads packets. */
struct extract_options live_source_reading(const struct offload_live *live);
/* Whose packets arrive, and where. */
void live_source_learn(struct offload_live *live);
/* The frame that a packet is, by all its bytes: where it has no ports of its own. NULL: it is none. */
const struct live_frame *live_source_frame(
	const struct offload_live_options *options, const struct rte_mbuf *packet);
