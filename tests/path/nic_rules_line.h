/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A wire of two simulated NICs, each over two rings: what a test puts into the one arrives at the NIC, which may drop it
 * by its rules; what the engine sends lies in the other. Frames have a number in their last four bytes, by which the test
 * knows which of them came through.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <ethdev_driver.h>
#include <rte_eth_ring.h>
#include <rte_ring.h>

#include "../unit/frames.h"
#include "base/dpdk.h"
#include "base/monotonic.h"
#include "dataplane/poll.h"
#include "drivers/flowsim/sim.h"
#include "plane/plane.h"
#include "plane/plane_private.h"

#define NIC_LINE_WAIT_US UINT64_C(20000000)
/* Shorter than the second that the engine waits for the counters of its NICs. */
#define NIC_LINE_TOLD_US UINT64_C(900000)
#define NIC_LINE_MAX 64 /* frames between two looks at what came out */

struct nic_line {
	struct plane *plane;
	struct port *port[2];
	struct rte_ring *in[2], *out[2];
	uint32_t sent; /* since nic_line_clear() */
	bool passed[NIC_LINE_MAX];
	uint64_t n_sent, n_passed; /* in all */
};

static inline void nic_line_say(void *context, const char *line)
{
	(void)context;
	print_message("%s\n", line);
}

static inline struct rte_ring *nic_line_ring(void)
{
	static unsigned number;
	char name[32];

	snprintf(name, sizeof(name), "nicline%u", number++);
	struct rte_ring *ring = rte_ring_create(
		name, 1024, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);

	assert_non_null(ring);
	return ring;
}

static inline void nic_line_open(struct nic_line *line, unsigned side, const char *words)
{
	static unsigned number;
	char name[32], device[PORT_DEVICE_MAX];
	struct port_config config = {.n_queues = 1, .offload_places = 64};
	struct error error;

	snprintf(name, sizeof(name), "nl%u", number);
	line->in[side] = nic_line_ring();
	line->out[side] = nic_line_ring();
	assert_true(rte_eth_from_rings(
			    name, &line->in[side], 1, &line->out[side], 1, SOCKET_ID_ANY) >= 0);
	snprintf(device, sizeof(device), "net_flowsim%u,port=net_ring_%s,hostile=0%s%s", number,
		name, words[0] != '\0' ? "," : "", words);
	snprintf(name, sizeof(name), "side%u", side);
	config.name = name;
	number++;
	if (port_device_parse(&config.device, device, &error) < 0 ||
		port_open(&line->port[side], &config, nic_line_say, NULL, &error) < 0)
		fail_msg("%s: %s", device, error.text);
}

static inline void nic_line_sink(void *context, const struct flow_report *reports, unsigned n)
{
	(void)context;
	(void)reports;
	(void)n;
}

static inline void nic_line_turn(struct nic_line *line)
{
	for (unsigned i = 0; i < 3; i++)
		lcore_poll(&line->plane->lcores[0], plane_now_us(line->plane));
}

/* Turns until it is so. */
#define NIC_LINE_UNTIL(line, condition)                                    \
	do {                                                               \
		const uint64_t end_us = monotonic_us() + NIC_LINE_WAIT_US; \
		while (!(condition)) {                                     \
			const struct timespec pause = {.tv_nsec = 100000}; \
                                                                           \
			if (monotonic_us() >= end_us)                      \
				fail_msg("%s: in vain", #condition);       \
			nic_line_turn(line);                               \
			plane_nic_rules_tend((line)->plane);               \
			nanosleep(&pause, NULL);                           \
		}                                                          \
	} while (0)

/* `drops`: rules are given to the NICs; `threshold`: of flows. */
static inline void nic_line_begin(
	struct nic_line *line, const char *words, bool drops, uint32_t threshold)
{
	struct error error;

	memset(line, 0, sizeof(*line));
	for (unsigned side = 0; side < 2; side++)
		nic_line_open(line, side, words);
	const struct plane_config config = {
		.topology = topology_of_wires(1),
		.port = {line->port[0], line->port[1]},
		.n_workers = 1,
		.flows = 4096,
		.tie_fragments = true,
		.timeouts = flow_timeouts_default(),
		.max_rules = 1024,
		.offload = {.on = true,
			.slots = 64,
			.threshold = threshold,
			.counters = true,
			.drops = drops},
		.sink = nic_line_sink,
	};

	if (plane_create(&line->plane, &config, &error) < 0)
		fail_msg("%s", error.text);
	NIC_LINE_UNTIL(line, plane_tend(line->plane));
}

static inline void nic_line_end(struct nic_line *line)
{
	flow_shard_end_all(line->plane->lcores[0].worker.shard);
	nic_line_turn(line);
	plane_stop(line->plane);
	for (unsigned side = 0; side < 2; side++)
		port_close(line->port[side]);
	plane_destroy(line->plane);
	for (unsigned side = 0; side < 2; side++) {
		rte_ring_free(line->in[side]);
		rte_ring_free(line->out[side]);
	}
}

static inline void nic_line_tell(void *context, const char *text)
{
	uint32_t *number = context;

	(void)sscanf(text, "Flow rule #%u created", number);
}

/* Does a command; returns the number of the rule that it made. */
static inline uint32_t nic_line_rule(struct nic_line *line, const char *command)
{
	uint32_t number = UINT32_MAX;
	struct error error;
	unsigned column;

	if (rules_command(plane_rules(line->plane), command, strlen(command), &column,
		    nic_line_tell, &number, &error) < 0)
		fail_msg("%s\ncolumn %u: %s", command, column, error.text);
	return number;
}

static inline bool nic_line_decided(struct nic_line *line, uint64_t generation)
{
	const uint64_t decided = plane_policy_decided(line->plane);

	rules_settled(plane_rules(line->plane), decided);
	return decided >= generation;
}

/* A rule that fits is in the NICs, or was refused by one. */
static inline bool nic_line_is_placed(struct nic_line *line, const struct rules_view *rule)
{
	struct plane_rule_where where;

	if (line->plane->nic_rules == NULL)
		return true;
	if (rule->nic != RULE_NIC_FITS)
		return rule->nic != RULE_NIC_PENDING;
	plane_rule_where(line->plane, rule, &where);
	return where.where == PLANE_RULE_NIC || strstr(where.why, "refuses") != NULL ||
	       strstr(where.why, "has no room") != NULL;
}

static inline bool nic_line_all_placed(struct nic_line *line)
{
	uint32_t from = 0;
	struct rules_view view;

	while (from != RULES_NONE)
		if (rules_list(plane_rules(line->plane), RULES_NO_PORT, &from, &view, 1) == 1 &&
			!nic_line_is_placed(line, &view))
			return false;
	return true;
}

/* What was changed is in force: flows are decided by it, NICs have let go what is to go, and have what fits. */
static inline void nic_line_settle(struct nic_line *line)
{
	uint64_t generation = rules_touch(plane_rules(line->plane));

	plane_nic_rules_tend(line->plane);
	NIC_LINE_UNTIL(line, nic_line_decided(line, generation) &&
				     !plane_nic_rules_leave(line->plane) &&
				     nic_line_all_placed(line));
}

/*
 * Brings the counts of rules up to date. The engine waits a second for its NICs and then reports the last known counts; on a
 * busy machine that second may pass, so this asks once more.
 */
static inline void nic_line_count(struct nic_line *line)
{
	const uint64_t generation = rules_touch(plane_rules(line->plane));
	uint64_t begin_us;

	NIC_LINE_UNTIL(line, nic_line_decided(line, generation));
	do {
		begin_us = monotonic_us();
		plane_nic_rules_ask(line->plane);
		NIC_LINE_UNTIL(line, plane_nic_rules_told(line->plane));
	} while (monotonic_us() - begin_us > NIC_LINE_TOLD_US);
}

/* The frame arrives at that side. Returns its number. */
static inline uint32_t nic_line_send(
	struct nic_line *line, unsigned side, const struct frame *frame)
{
	struct rte_mbuf *packet = rte_pktmbuf_alloc(line->plane->pools[0]);
	uint8_t *bytes;

	assert_non_null(packet);
	assert_true(line->sent < NIC_LINE_MAX);
	bytes = (uint8_t *)rte_pktmbuf_append(packet, (uint16_t)frame->length);
	memcpy(bytes, frame->bytes, frame->length);
	put_be32(bytes + frame->length - 4, line->sent);
	assert_int_equal(rte_ring_enqueue(line->in[side], packet), 0);
	line->n_sent++;
	return line->sent++;
}

/* What was sent has gone its way, and `passed` says which frames came out. */
static inline void nic_line_collect(struct nic_line *line)
{
	void *taken;

	memset(line->passed, 0, sizeof(line->passed));
	do
		nic_line_turn(line);
	while (rte_ring_count(line->in[0]) + rte_ring_count(line->in[1]) > 0);
	nic_line_turn(line);
	for (unsigned side = 0; side < 2; side++) {
		while (rte_ring_dequeue(line->out[side], &taken) == 0) {
			struct rte_mbuf *packet = taken;
			uint32_t number;

			memcpy(&number,
				rte_pktmbuf_mtod_offset(packet, char *, packet->data_len - 4), 4);
			number = rte_be_to_cpu_32(number);
			assert_true(number < line->sent);
			assert_false(line->passed[number]);
			line->passed[number] = true;
			line->n_passed++;
			rte_pktmbuf_free(packet);
		}
	}
	line->sent = 0;
}

/* Packets sent = packets that passed + dropped by the engine + dropped by its NICs. Sets what the NICs have dropped. */
static inline void nic_line_check(struct nic_line *line, uint64_t *nic_dropped)
{
	static struct plane_snapshot snapshot;
	const struct path_counters *wire = &snapshot.wires[0];

	nic_line_count(line);
	assert_int_equal(plane_snapshot(line->plane, &snapshot), 0);
	assert_int_equal(wire->out, line->n_passed);
	assert_int_equal(wire->received, wire->out + wire->dropped[DROP_RULE]);
	assert_int_equal(wire->received + wire->nic_dropped, line->n_sent);
	*nic_dropped = wire->nic_dropped;
}

/* For the group's set-up. */
static inline int nic_line_environment(void **state)
{
	struct error error;

	(void)state;
	if (dpdk_start(512, &error) == 0)
		return 0;
	print_error("%s\n", error.text);
	return -1;
}

static inline void nic_line_fault(struct nic_line *line, unsigned side, const char *text)
{
	struct sim_port *sim = rte_eth_devices[line->port[side]->id].data->dev_private;
	struct error error;

	pthread_mutex_lock(&sim->lock);
	int ret = sim_fault_parse(sim, text, &error);

	pthread_mutex_unlock(&sim->lock);
	if (ret < 0)
		fail_msg("%s: %s", text, error.text);
}
