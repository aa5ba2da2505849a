/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Who admission is compared with, each with a table as large as the NIC's:
 *
 *	clairvoyant	holds, for each second, those of the flows already seen before it that will have the most
 *			packets in it; rules cost it nothing
 *	first come	asks for a flow with its first packet if there is room, and takes it away when it was idle
 *			for five seconds; each rule takes the NIC's time, one after the other, as in truth
 *
 * One thread. Times are microseconds since the begin of the load.
 */

#include <stdbool.h>
#include <stdint.h>

/* Counts packets a second for the clairvoyant; for all sizes of tables. */
struct clairvoyant {
	uint32_t *packets; /* by flow: in this second */
	bool *known;	   /* seen before this second */
	uint32_t *seen;	   /* flows that sent in it */
	uint32_t n_seen;
	uint32_t *sorted; /* room for as many */
};

int clairvoyant_init(struct clairvoyant *clairvoyant, uint32_t n_flows);
void clairvoyant_fini(struct clairvoyant *clairvoyant);
void clairvoyant_packet(struct clairvoyant *clairvoyant, uint32_t flow);
/* A second is over: for each size of table, the packets that it held. The next one begins. */
void clairvoyant_end(
	struct clairvoyant *clairvoyant, const uint32_t *entries, unsigned n, uint64_t *held);

struct first_come {
	uint32_t entries, used;
	uint64_t rule_us;
	uint64_t busy_us; /* until then the NIC has rules to do */
	uint64_t looked_us;
	uint8_t *state;	   /* by flow */
	uint64_t *last_us; /* by flow: its last packet, or when its rule is done */
	uint32_t *list;	   /* flows with an entry */
	uint32_t n_list;
};

int first_come_init(
	struct first_come *first_come, uint32_t n_flows, uint32_t entries, uint64_t rule_us);
void first_come_fini(struct first_come *first_come);
/* True: the NIC knew the flow. `is_first`: of the flow's packets. */
bool first_come_packet(
	struct first_come *first_come, uint32_t flow, bool is_first, uint64_t now_us);
