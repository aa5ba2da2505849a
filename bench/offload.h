/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The parts of `millrace bench offload`: the founding experiment, anew. */

#include <stdint.h>

#include "bench/bench.h"
#include "bench/wire.h"
#include "offload/histogram.h"

/* What `millrace run` has, if nobody says otherwise. */
#define OFFLOAD_THRESHOLD 1

enum offload_mode {
	IN_SOFTWARE,
	BY_MARK,
	WHOLE, /* the NIC forwards alone */
	N_MODES,
};

/* A load, and how its packets come to the ports. */
struct offload_load {
	const char *name, *what;
	uint32_t flows;
	enum sequence_load load;
	bool streams;	    /* else captures, which are written for the bench */
	char directory[64]; /* of these; "" without */
	char capture[2][96];
};

#define OFFLOAD_N_LOADS 3
/* "imix", "tcp64", "zipf" */
extern const char *const offload_loads[];
/* UDP packets as many as tcp64 has, of as many flows: tcp64's cycles are measured against theirs. Nobody asks for it by name. */
#define OFFLOAD_UDP64 "udp64"

/* Writes what has to be written. 0 or a negative errno with a line. offload_load_fini() removes it. */
int offload_load_init(struct offload_load *load, const char *name, struct error *error);
void offload_load_fini(struct offload_load *load);

/* Times since the engine was opened; of packets, since its load was steady. */
struct offload_times {
	struct histogram
		first; /* of each direction's first packet, from its arrival to where it leaves */
	struct histogram
		bare; /* of packets that are received, held for as long as the engine takes, and sent */
	struct histogram rule;	/* from a flow's admission to where the NIC has its rule */
	struct histogram in_hw; /* the same from the flow's first packet */
};
/* Of ports that are opened later, packets that come at a rate tell when they came. 0 or a negative errno. */
int offload_times_init(void);
/* The thread has a processor for itself, as far as there are others for the threads of the engines and NICs. */
void offload_pin(void);

/* How an engine is to be. */
struct offload_setup {
	enum offload_mode mode;
	unsigned number; /* of several at a time */
	uint32_t
		threshold; /* packets a second from which on a flow is given to the NIC; 0: with its first packet */
	uint64_t pps; /* of each port; 0: packets come whenever it asks */
	struct offload_times *
		times; /* it is watched, from its first packet on; one engine at a time. NULL: it is not */
	bool packets; /* that is, also its packets' times, when the load is steady */
	double cycles; /* that the engine takes for a packet, above what receiving and sending do; 0: no bare times */
};

/*
 * An engine with this load. The rules that it wants are there when this returns, or ten seconds have passed; where times
 * of packets are taken, up to five more. 0 or a negative errno after a line.
 */
int offload_open(struct wire_engine *engine, const struct offload_load *load,
	const struct offload_setup *setup);
/* Accepts a zeroed one. */
void offload_close(struct wire_engine *engine);

/* Share of all packets that the NICs named or carried alone, since they were opened or asked last. */
struct offload_share {
	uint64_t all, named;
};
double offload_share(const struct wire_engine *engine, struct offload_share *last);

/* Turns for so long; which share of that time was spent on packets. `gathers`: as with `poll: adaptive`. */
double offload_busy(const struct wire_engine *engine, uint64_t us, bool gathers);
/* The same of nothing but receiving and sending, where so many cycles are spent on each packet besides. */
double offload_floor(const struct wire_engine *engine, uint64_t us, bool gathers, double cycles);

void offload_say(const char *line);
