/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What `millrace top` shows: the newest answers of an engine, and how fast their counters rise, by the answers before
 * them. The lines of answers are kept by reference.
 *
 * Life-cycle: a zeroed struct, top_picture_counters() and top_picture_flows() with each answer, top_picture_fini().
 */

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

/* What is asked each time beside the flows, in this order. */
enum top_counter {
	TOP_WIRES,
	TOP_PORTS,
	TOP_WORKERS,
	TOP_DROPS,
	TOP_OFFLOAD,
	TOP_N_COUNTERS,
};

extern const char *const top_counter_asks[TOP_N_COUNTERS];

enum top_order {
	TOP_BY_RATE,
	TOP_BY_PACKETS,
	TOP_BY_BYTES,
	TOP_BY_AGE,
	TOP_N_ORDERS,
};

/* As the engine calls them: "rate". */
extern const char *const top_order_names[TOP_N_ORDERS];

/* A rate or percentage that is not known (yet). */
#define TOP_UNKNOWN (-1.0)

/* An engine has fewer; what is above is not shown. */
#define TOP_MAX_PORTS 64
#define TOP_MAX_WORKERS 64
#define TOP_MAX_DROPS 64
#define TOP_MAX_FLOWS 1000

/* A flow's protocol, ends, wire and zone: room for the longest. */
#define TOP_NAME_MAX 160

struct top_port {
	const json_t *line;    /* of port show */
	const json_t *offload; /* of offload show, or NULL */
	double rx_pps, rx_bps, tx_pps, tx_bps, missed_pps;
};

struct top_worker { /* or another thread of the packet path */
	const json_t *line;
	double pps;
	double busy; /* percent of the time since the answer before */
};

struct top_drop {
	const json_t *line;
	double pps;
};

struct top_flow {
	const json_t *line;
	double pps, bps;
	char name[TOP_NAME_MAX]; /* no other flow has the same */
};

struct top_picture {
	json_t *counters[TOP_N_COUNTERS], *counters_before[TOP_N_COUNTERS];
	/* when they were taken, by the engine's clock where it tells it; 0: they were not */
	int64_t counters_us[TOP_N_COUNTERS], counters_before_us[TOP_N_COUNTERS];
	json_t *list, *list_before; /* of flows */
	int64_t list_us, list_before_us;

	/* of all wires */
	double pps, bps, drops_pps, new_flows_pps;
	uint64_t n_flows;
	/* of the flows in the list: percent of their packets that a NIC marked or sent on alone */
	double nic_percent;
	/* directions of flows that are in NICs; does any port offload? */
	uint64_t n_in_nic;
	bool offloads;

	struct top_port ports[TOP_MAX_PORTS];
	struct top_worker workers[TOP_MAX_WORKERS];
	struct top_drop drops[TOP_MAX_DROPS]; /* those that dropped something, the fastest first */
	struct top_flow flows[TOP_MAX_FLOWS];
	unsigned n_ports, n_workers, n_drops, n_listed;
};

/*
 * Takes the lines of the answers, and those that ended them, which came at `now_us` of any clock that does not run
 * back.
 */
void top_picture_counters(struct top_picture *picture, json_t *const lines[TOP_N_COUNTERS],
	json_t *const ends[TOP_N_COUNTERS], int64_t now_us);
/* Takes the lines of `flow list`. */
void top_picture_flows(struct top_picture *picture, json_t *lines, int64_t now_us);
/* Orders the flows that are there: those that the engine would list are known with its next answer. */
void top_picture_sort(struct top_picture *picture, enum top_order order);
/* The engine has gone: what comes next is of another one, and not compared with what is there. */
void top_picture_restart(struct top_picture *picture);
/* Flows of another filter or order come next: what is there is not shown any more. */
void top_picture_forget_flows(struct top_picture *picture);
void top_picture_fini(struct top_picture *picture);

/* "tcp 10.0.0.1:50560 10.0.0.10:102", as the client's FLOW is, and in a wire and zone that are not 0: " wire 1". */
const char *top_flow_name(char name[TOP_NAME_MAX], const json_t *line);
