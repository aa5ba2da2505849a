/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A plane for tests of control/: it answers from canned records, counters and events, in place of the
 * real one. Whoever includes this links control/ against it.
 *
 * Two wires (ports "left", "right", "up", "down"), two workers. Ports have an installer where a test says so.
 * Records lie where a test puts them by
 * fake_add(), or are made up for every position below `made_up`.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_rcu_qsbr.h>

#include "plane/plane.h"

#define FAKE_WORKERS 2
#define FAKE_PORTS 4
#define FAKE_POSITIONS 4096
#define FAKE_EVENTS 4096
/* 2026-11-20T08:00:00Z */
#define FAKE_ORIGIN_US (UINT64_C(1795161600) * 1000000)

#define FAKE_CHANGES 5000

/* What any thread may ask of one; there is no thread behind it. */
struct installer {
	bool there, not_ready;
	struct provider_abilities abilities;
	uint64_t trial_us;
	struct health health;
	struct refusals refusals;
	struct installer_counters counters;
	struct installer_histograms histograms;
};

struct fake_changes {
	uint64_t n;
	struct offload_change change[FAKE_CHANGES];
};

struct plane {
	struct plane_config config;
	struct installer installers[FAKE_PORTS];
	struct agent_counters offload_counters[FAKE_PORTS];
	struct plane_slots slots[FAKE_PORTS / 2];
	bool no_slots;
	unsigned n_come; /* flows that come into a NIC while its flows are counted */
	struct fake_changes changes[FAKE_WORKERS];
	bool flood; /* of one worker's flows there are more changes, however many were read */
	/* told once */
	struct fake_changes port_changes;
	struct plane_flow flow; /* what is said of any flow beside its record */
	struct port ports[FAKE_PORTS];
	struct plane_snapshot snapshot;
	struct flow_record records[FAKE_WORKERS][FAKE_POSITIONS];
	struct flow_offload offload[FAKE_WORKERS][FAKE_POSITIONS];
	struct flow_dropped dropped[FAKE_WORKERS][FAKE_POSITIONS];
	struct rte_rcu_qsbr *qsbr;
	struct blocks *blocks;
	bool undecided;	  /* workers have not looked at the list since it was made */
	uint32_t made_up; /* of each worker */
	uint64_t now_us;
	bool silent; /* lcores do not answer */
	bool following;
	unsigned n_pages, n_kills, n_follows;
	struct path_event events[FAKE_EVENTS];
	unsigned n_events, events_at;
	uint64_t lost;
	struct drop_wanted wanted_drops;
	unsigned n_watches;
	struct drop_sample drops[FAKE_EVENTS]; /* taken once */
	unsigned n_drops;
	uint64_t left_out[DROP_N_REASONS];
};

static inline void fake_init(struct plane *plane)
{
	static const char *const names[FAKE_PORTS] = {"left", "right", "up", "down"};

	memset(plane, 0, sizeof(*plane));
	plane->config.topology = topology_of_wires(2);
	plane->config.n_workers = FAKE_WORKERS;
	plane->config.timeouts = flow_timeouts_default();
	for (unsigned i = 0; i < FAKE_PORTS; i++) {
		snprintf(plane->ports[i].name, sizeof(plane->ports[i].name), "%s", names[i]);
		plane->ports[i].socket = -1;
		plane->config.port[i] = &plane->ports[i];
	}
	plane->snapshot.n_lcores = FAKE_WORKERS;
	for (unsigned i = 0; i < FAKE_WORKERS; i++) {
		plane->snapshot.lcores[i].number = i;
		plane->snapshot.lcores[i].cpu = -1;
	}
	plane->now_us = 100 * UINT64_C(1000000);
}

static inline void fake_address(uint8_t address[16], const char *text)
{
	memset(address, 0, 16);
	if (inet_pton(AF_INET, text, address) != 1 && inet_pton(AF_INET6, text, address) != 1)
		abort();
}

/* With a list of blocks, that nobody reads. */
static inline void fake_blocks(struct plane *plane, uint32_t max, uint32_t max_reasons)
{
	static const struct hash_secret secret = {.word = {1, 2, 3, 4, 5, 6, 7, 8}};
	const size_t size = rte_rcu_qsbr_get_memsize(1);
	struct blocks_config config = {
		.max_entries = max,
		.max_reasons = max_reasons,
		.n_workers = FAKE_WORKERS,
		.secret = &secret,
	};

	plane->qsbr = aligned_alloc(64, (size + 63) / 64 * 64);
	if (!plane->qsbr || rte_rcu_qsbr_init(plane->qsbr, 1) != 0)
		abort();
	config.qsbr = plane->qsbr;
	if (blocks_create(&plane->blocks, &config) < 0)
		abort();
}

static inline void fake_fini(struct plane *plane)
{
	blocks_destroy(plane->blocks);
	free(plane->qsbr);
}

struct blocks *plane_blocks(const struct plane *plane)
{
	return plane->blocks;
}

uint64_t plane_decided(const struct plane *plane)
{
	return plane->undecided ? 0 : blocks_generation(plane->blocks);
}

/* No rules: those have an engine of their own in tests/behaviour. */
/* No NIC is given rules. */
void plane_nic_rules_tend(struct plane *plane)
{
	(void)plane;
}

bool plane_nic_rules_leave(struct plane *plane)
{
	(void)plane;
	return false;
}

uint32_t plane_nic_rules_leaving(const struct plane *plane, char *why, size_t size)
{
	(void)plane;
	(void)size;
	why[0] = '\0';
	return 0;
}

void plane_rules_removed(const struct plane *plane, struct rules_removed *removed)
{
	(void)plane;
	*removed = (struct rules_removed){0};
}

bool plane_nic_rules_busy(const struct plane *plane)
{
	(void)plane;
	return false;
}

bool plane_nic_rules_watch(
	struct plane *plane, const struct rules_view *rule, struct plane_rule_last *last)
{
	(void)plane;
	(void)rule;
	(void)last;
	return false;
}

void plane_nic_rules_unwatch(
	struct plane *plane, const struct rules_view *rule, const struct plane_rule_last *last)
{
	(void)plane;
	(void)rule;
	(void)last;
}

void plane_nic_rules_ask(struct plane *plane)
{
	(void)plane;
}

bool plane_nic_rules_told(struct plane *plane)
{
	(void)plane;
	return true;
}

void plane_rule_where(
	struct plane *plane, const struct rules_view *rule, struct plane_rule_where *where)
{
	(void)plane;
	(void)rule;
	*where = (struct plane_rule_where){.where = PLANE_RULE_SOFTWARE};
}

void plane_rule_foresee(
	struct plane *plane, const struct rules_view *rule, struct plane_rule_where *where)
{
	plane_rule_where(plane, rule, where);
}

struct rules *plane_rules(const struct plane *plane)
{
	(void)plane;
	return NULL;
}

uint64_t plane_policy_decided(const struct plane *plane)
{
	(void)plane;
	return 0;
}

unsigned plane_policy_workers(const struct plane *plane, uint64_t number)
{
	(void)plane;
	(void)number;
	return 0;
}

/* A flow on wire 0, zone 0, from `src`, open, with one packet of 100 bytes; the rest is the test's. */
static inline struct flow_record fake_flow(
	const char *src, uint16_t sport, const char *dst, uint16_t dport, uint8_t proto)
{
	struct flow_record record = {0};
	uint8_t a[16], b[16];

	fake_address(a, src);
	fake_address(b, dst);
	record.key.proto = proto;
	record.key.version_wire = FLOW_KEY_VERSION_WIRE(strchr(src, ':') ? 6 : 4, 0);
	record.initiator = 1 & flow_key_make(&record.key, a, b, htons(sport), htons(dport));
	record.count[record.initiator].packets_low = 1;
	record.count[record.initiator].bytes_low = 100;
	record.state = proto == 6 ? FLOW_ESTABLISHED : FLOW_REPLIED;
	return record;
}

static inline struct flow_record *fake_add(
	struct plane *plane, unsigned worker, uint32_t position, const struct flow_record *record)
{
	plane->records[worker][position] = *record;
	plane->snapshot.lcores[worker].flows++;
	return &plane->records[worker][position];
}

/* The flow that lies at a position when flows are made up: all different, with `position` packets. */
static inline struct flow_record fake_made_up(unsigned worker, uint32_t position)
{
	struct flow_record record =
		fake_flow("10.0.0.0", (uint16_t)(1024 + worker), "192.0.2.1", 53, 17);
	uint32_t host = htonl(10u << 24 | position);

	memcpy(record.key.addr[0], &host, sizeof(host));
	record.count[0].packets_low = position;
	return record;
}

const struct plane_config *plane_config(const struct plane *plane)
{
	return &plane->config;
}

uint32_t plane_positions(const struct plane *plane, unsigned worker)
{
	(void)plane;
	(void)worker;
	return 1 << 16;
}

enum simd_level plane_simd(const struct plane *plane)
{
	(void)plane;
	return SIMD_SSE42;
}

uint64_t plane_origin_us(const struct plane *plane)
{
	(void)plane;
	return FAKE_ORIGIN_US;
}

uint64_t plane_now_us(const struct plane *plane)
{
	return plane->now_us;
}

int plane_snapshot(struct plane *plane, struct plane_snapshot *snapshot)
{
	if (plane->silent)
		return -ETIMEDOUT;
	*snapshot = plane->snapshot;
	return 0;
}

static inline bool fake_at(
	const struct plane *plane, unsigned worker, uint32_t position, struct flow_record *record)
{
	if (position < plane->made_up) {
		*record = fake_made_up(worker, position);
		return true;
	}
	if (position >= FAKE_POSITIONS)
		return false;
	*record = plane->records[worker][position];
	return record->state != FLOW_FREE;
}

int plane_page(struct plane *plane, unsigned worker, uint32_t position, struct plane_page *page)
{
	uint32_t end = plane->made_up > FAKE_POSITIONS ? plane->made_up : FAKE_POSITIONS;

	if (worker >= FAKE_WORKERS)
		abort();
	if (plane->silent)
		return -ETIMEDOUT;
	plane->n_pages++;
	page->n = 0;
	page->now_us = plane->now_us;
	for (; position < end && page->n < PLANE_PAGE; position++)
		if (fake_at(plane, worker, position, &page->record[page->n])) {
			page->offload[page->n] = (struct flow_offload){.packets = 0};
			page->dropped[page->n] = (struct flow_dropped){.packets = 0};
			if (position < FAKE_POSITIONS) {
				page->offload[page->n] = plane->offload[worker][position];
				page->dropped[page->n] = plane->dropped[worker][position];
			}
			page->position[page->n++] = position;
		}
	page->next = position < end ? position : FLOW_NONE;
	return 0;
}

static inline struct flow_record *fake_find(
	struct plane *plane, const struct flow_key *key, unsigned *worker)
{
	for (*worker = 0; *worker < FAKE_WORKERS; (*worker)++) {
		for (unsigned i = 0; i < FAKE_POSITIONS; i++) {
			struct flow_record *record = &plane->records[*worker][i];

			if (record->state != FLOW_FREE && flow_key_equal(&record->key, key))
				return record;
		}
	}
	return NULL;
}

struct router *plane_router(const struct plane *plane, unsigned domain)
{
	(void)plane;
	(void)domain;
	return NULL;
}

int plane_kill(struct plane *plane, const struct flow_key *key, unsigned *worker,
	struct flow_record *record)
{
	struct flow_record *found = fake_find(plane, key, worker);

	if (plane->silent)
		return -ETIMEDOUT;
	if (!found)
		return -ENOENT;
	*record = *found;
	found->state = FLOW_FREE;
	plane->n_kills++;
	return 0;
}

int plane_flow(struct plane *plane, const struct flow_key *key, struct plane_flow *flow)
{
	unsigned worker;
	const struct flow_record *found = fake_find(plane, key, &worker);

	if (plane->silent)
		return -ETIMEDOUT;
	if (!found) {
		memcpy(flow->bar, plane->flow.bar, sizeof(flow->bar));
		return -ENOENT;
	}
	*flow = plane->flow;
	flow->record = *found;
	flow->worker = worker;
	flow->offload = plane->offload[worker][found - plane->records[worker]];
	flow->dropped = plane->dropped[worker][found - plane->records[worker]];
	flow->now_us = plane->now_us;
	return 0;
}

struct installer *plane_installer(const struct plane *plane, unsigned port)
{
	const struct installer *installer = &plane->installers[port % FAKE_PORTS];

	return installer->there ? (struct installer *)(uintptr_t)installer : NULL;
}

int plane_offload_counters(struct plane *plane, unsigned port, struct agent_counters *counters)
{
	if (plane->silent)
		return -ETIMEDOUT;
	*counters = plane->offload_counters[port % FAKE_PORTS];
	plane->offload_counters[port % FAKE_PORTS].flows[OFFLOAD_PROVEN] += plane->n_come;
	plane->slots[port % FAKE_PORTS / 2].used += plane->n_come;
	atomic_fetch_add(&plane->installers[port % FAKE_PORTS].counters.rules, plane->n_come);
	return 0;
}

uint32_t plane_n_slots(const struct plane *plane, unsigned wire)
{
	return plane->slots[wire].n;
}

bool plane_has_no_slots(const struct plane *plane, unsigned wire)
{
	(void)wire;
	return plane->no_slots;
}

int plane_slots(struct plane *plane, unsigned wire, struct plane_slots *slots)
{
	if (plane->silent)
		return -ETIMEDOUT;
	*slots = plane->slots[wire % (FAKE_PORTS / 2)];
	return 0;
}

static inline void fake_change(struct fake_changes *changes, const struct offload_change *change)
{
	if (changes->n == FAKE_CHANGES)
		abort();
	changes->change[changes->n++] = *change;
}

unsigned plane_port_changes(struct plane *plane, struct offload_change *changes, unsigned max)
{
	struct fake_changes *ports = &plane->port_changes;
	unsigned n = 0;

	while (ports->n > 0 && n < max)
		changes[n++] = ports->change[--ports->n];
	return n;
}

int plane_changes(struct plane *plane, struct plane_changes *where, struct offload_change *changes,
	unsigned max, unsigned *n)
{
	*n = plane_port_changes(plane, changes, max);
	if (plane->silent)
		return -ETIMEDOUT;
	while (plane->flood && *n < max)
		changes[(*n)++] = (struct offload_change){
			.kind = CHANGE_FLOW, .key.version_wire = FLOW_KEY_VERSION_WIRE(4, 0)};
	for (unsigned worker = 0; worker < FAKE_WORKERS; worker++) {
		const struct fake_changes *ring = &plane->changes[worker];

		while (where->worker[worker] < ring->n && *n < max)
			changes[(*n)++] = ring->change[where->worker[worker]++];
	}
	return 0;
}

bool installer_ready(const struct installer *installer)
{
	return !installer->not_ready;
}

const struct provider_abilities *installer_abilities(const struct installer *installer)
{
	return &installer->abilities;
}

uint64_t installer_trial_us(const struct installer *installer)
{
	return installer->trial_us;
}

struct health *installer_health(struct installer *installer)
{
	return &installer->health;
}

const struct refusals *installer_refusals(const struct installer *installer)
{
	return &installer->refusals;
}

const struct installer_counters *installer_counters(const struct installer *installer)
{
	return &installer->counters;
}

const struct installer_histograms *installer_histograms(const struct installer *installer)
{
	return &installer->histograms;
}

int plane_follow(struct plane *plane, bool follow)
{
	if (plane->silent)
		return -ETIMEDOUT;
	plane->following = follow;
	plane->n_follows++;
	return 0;
}

static inline void fake_event(struct plane *plane, const struct path_event *event)
{
	if (plane->n_events == FAKE_EVENTS)
		abort();
	plane->events[plane->n_events++] = *event;
}

unsigned plane_events(struct plane *plane, struct path_event *events, unsigned max, uint64_t *lost)
{
	unsigned n = 0;

	while (n < max && plane->events_at < plane->n_events)
		events[n++] = plane->events[plane->events_at++];
	if (plane->events_at == plane->n_events)
		plane->events_at = plane->n_events = 0;
	*lost += plane->lost;
	plane->lost = 0;
	return n;
}

int plane_watch_drops(struct plane *plane, const struct drop_wanted *wanted)
{
	if (plane->silent)
		return -ETIMEDOUT;
	plane->wanted_drops = *wanted;
	plane->n_watches++;
	return 0;
}

unsigned plane_drops(struct plane *plane, struct drop_sample *samples, unsigned max,
	uint64_t left_out[DROP_N_REASONS])
{
	const unsigned n = RTE_MIN(max, plane->n_drops);

	memcpy(samples, plane->drops, n * sizeof(samples[0]));
	plane->n_drops -= n;
	memmove(plane->drops, &plane->drops[n], plane->n_drops * sizeof(plane->drops[0]));
	for (unsigned i = 0; i < DROP_N_REASONS; i++) {
		left_out[i] += plane->left_out[i];
		plane->left_out[i] = 0;
	}
	return n;
}

int port_stats(struct port *port, struct rte_eth_stats *stats)
{
	/* a driver that does not count */
	if (port->id == UINT16_MAX)
		return -ENOTSUP;
	*stats = (struct rte_eth_stats){
		.ipackets = 1,
		.opackets = 2,
		.imissed = 3,
		.ierrors = 4,
		.oerrors = 5,
		.rx_nombuf = 6,
	};
	return 0;
}

const char *port_link_name(enum port_link link)
{
	static const char *const names[] = {"up", "down", "removed"};

	return names[link];
}
