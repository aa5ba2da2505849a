/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The engine put together: parser on the caller's thread, workers with their shards on theirs, and the
 * exporter behind them. The caller hands in packets with the time of their arrival; where they come
 * from is its business.
 *
 * Between engine_begin() and engine_end() lies a run: it has a clock of its own, and all its flows end
 * with it. All functions belong to one thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "base/error.h"
#include "dataplane/counters.h"
#include "export/exporter.h"
#include "flow/shard.h"

/* Buffers of packets that may wait for the first fragment of their datagram. */
#define ENGINE_MAX_HELD 65536
#define ENGINE_MAX_WORKERS 16
/* Packets that the caller may have of the engine's pool while it waits for more of them. */
#define ENGINE_MAX_WAITING 64

struct engine_config {
	unsigned n_workers;
	uint32_t flows; /* of all workers together */
	bool tie_fragments;
	bool zone_vlan;
	bool tcp_strict;
	bool octets;  /* reports have octets of IP packets: flow/octets.h */
	bool measure; /* flows are measured (flow/measure.h): those that fit, or with NULL all */
	const struct block_match *measure_what; /* outlives it */
	uint32_t active_s;
	struct flow_timeouts timeouts;
	const char *blocks;		/* file of what is dropped (rule/blocks.h), or NULL */
	const char *rules;		/* file of rules (rule/rules.h), or NULL */
	bool replies_follow, no_pickup; /* as in struct rules_config */
	unsigned mapping;		/* pages of the tables: enum mapping_flag */
	struct exporter *exporter;	/* stays the caller's, and outlives the engine */
};

struct engine;

/* Everything counted since the engine was made. */
struct engine_counters {
	struct path_counters path;
	struct flow_counters flow;
	uint32_t held;
};

/* Memory is taken and threads are started here. Returns 0 or a negative errno. */
int engine_create(struct engine **engine, const struct engine_config *config, struct error *error);
/* Accepts NULL. Not within a run. */
void engine_destroy(struct engine *engine);

/* The pool that frames for the engine are made from: see traffic/frame.h. */
struct rte_mempool *engine_pool(const struct engine *engine);

/* A run begins whose clock 0 is `origin_us` of Unix time. `run` names it in the reports. */
int engine_begin(struct engine *engine, uint64_t origin_us, uint32_t run, struct error *error);

/*
 * Says what a frame begins with; each frame has to be told. A flow's wire is its link type: what two kinds
 * of link carried is two flows.
 */
void engine_set_link(struct rte_mbuf *frame, enum link_type link);

/* Says how many bytes at the frame's end its capture has left out; each frame has to be told. */
void engine_set_missing(struct rte_mbuf *frame, uint32_t missing);

/* Sets when a packet came by the run's clock, now or before, and its own time stamp, which records tell. */
void engine_stamp(struct rte_mbuf *packet, uint64_t came_us, uint64_t stamp_us);

/* Stamped packets, the clock of the run being `now_us`; at most 64, all become the engine's. */
void engine_packets(struct engine *engine, uint64_t now_us, struct rte_mbuf **packets, unsigned n);

/* Lets the workers have what parser has gathered for them. */
void engine_flush(struct engine *engine);

/* The run ends at `now_us`. Returns when every flow of it has been handed to the exporter. */
int engine_end(struct engine *engine, uint64_t now_us, struct error *error);

/* Between runs. */
void engine_counters(const struct engine *engine, struct engine_counters *counters);
