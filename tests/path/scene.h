/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A scene: parser and workers as the program has them, in one thread, on a clock that the test sets,
 * without ports. The test sends frames and looks at the records that come out.
 *
 * scene_end() checks what must hold in every test: received = out + dropped + held, and the packets and
 * bytes over all reports equal to those of known flows.
 */

#include <stdbool.h>
#include <stdint.h>

#include "../unit/frames.h"
#include "dataplane/lcore.h"
#include "dataplane/parse.h"
#include "dataplane/ring.h"

#define SCENE_MAX_SHARDS 4
#define SCENE_MAX_REPORTS 4096

struct scene_options {
	unsigned n_shards; /* 0 = 1 */
	uint32_t capacity; /* 0 = 1000 */
	bool separate;	   /* fragments are not tied */
	uint32_t max_datagrams;
	uint32_t max_held;
	uint32_t max_held_datagram; /* 0 = as many as are held */
	uint64_t max_wait_us;	    /* 0 = 60 s */
	unsigned pace;
	bool tcp_strict;
	bool zone_vlan;
	uint32_t active_s;
	uint16_t max_segment;		    /* 0 = one segment */
	const struct policy_others *policy; /* NULL: all is forwarded */
};

struct scene {
	struct scene_options options;
	struct hash_secret secret;
	struct parser *parser;
	struct lcore lcore[SCENE_MAX_SHARDS];
	struct topology topology;  /* of one port, its own peer */
	struct ring out;	   /* what lcores send, taken at once */
	struct rte_rcu_qsbr *qsbr; /* NULL without a policy */
	struct rte_mempool *pool;
	uint64_t now_us;
	unsigned n_reports;
	struct flow_report reports[SCENE_MAX_REPORTS];
	uint64_t sent, sent_bytes;
	unsigned n_out;				 /* since the test set it to 0 */
	uint32_t out_lengths[SCENE_MAX_REPORTS]; /* of the packets that went out, in order */
	uint64_t out_us[SCENE_MAX_REPORTS];	 /* when each did */
};

struct scene *scene_begin(const struct scene_options *options);

/* Sends a frame at scene->now_us, alone in its burst. */
void scene_send(struct scene *scene, const struct frame *frame);

/* Sends several in one burst. */
void scene_send_burst(struct scene *scene, const struct frame *const *frames, unsigned n);

/*
 * Sends a segment of the connection from 10.0.0.1:1025 to 10.0.0.2:80, or `back`; and its handshake,
 * after which 100 and 500 are the next numbers.
 */
void scene_tcp(
	struct scene *scene, bool back, unsigned flags, uint32_t seq, uint32_t ack, size_t data);
void scene_handshake(struct scene *scene);

/* Lets time pass; nothing happens until the next frame or the end, as in the program. */
void scene_wait(struct scene *scene, double seconds);

/* A turn without frames, as live lcores have them. */
void scene_turn(struct scene *scene);

/* Sum of the counters so far. */
struct path_counters scene_counters(const struct scene *scene);
struct flow_counters scene_flow_counters(const struct scene *scene);

/* Ends the run and checks the sums. The reports stay. */
void scene_end(struct scene *scene);
void scene_destroy(struct scene *scene);

/* The report of the flow with these ports (lower first does not matter); fails when not exactly one. */
const struct flow_report *scene_report(
	const struct scene *scene, uint8_t proto, uint16_t port_a, uint16_t port_b);

/* Starts DPDK's environment for the test program. */
int scene_environment(void **state);
