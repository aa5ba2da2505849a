/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * An agent over two ports whose NICs do at once what a test tells them, a table of flows that the test fills,
 * and packets that are told as the worker tells them. The agent's time is the test's: it stands still while
 * nobody lets it pass. Installers are threads, as ever, and answer when they do.
 */

#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/monotonic.h"
#include "dataplane/mark_verify.h"
#include "installer_wait.h"
#include "offload/agent.h"
#include "rteflow/back_end.h"

#define AGENT_PLACES 64
#define AGENT_WAIT_US 20000000

/* What a NIC does; read and written by two threads. */
struct agent_nic {
	struct provider base;
	_Atomic int result[INSTALLER_N_OPS]; /* by operation */
	_Atomic uint64_t counter;	     /* of any rule */
	_Atomic bool shut;		     /* calls wait until it is not */
	_Atomic unsigned room;		     /* for rules; 0: for any number */
	_Atomic unsigned n_rules, n_asked[INSTALLER_N_OPS];
	_Atomic unsigned n_shapes[PROVIDER_N_KINDS];
	_Atomic unsigned n_flushed;
	_Atomic int flush_result;
	/* full offload: rules asked for, by what they do; what the counter of one that goes has at last */
	_Atomic unsigned n_deeds[PROVIDER_N_DEEDS];
	_Atomic int refuses_full;
	_Atomic uint64_t last;
	_Atomic bool tells_no_last;
	bool last_full; /* what was removed last was such a rule */
};

struct agent_scene {
	struct agent *agent;
	struct installer *installer[2];
	struct flow_table table;
	struct tsc_clock clock;
	uint64_t now_us;
	/* full offload: what was credited to whom, and reports that were held back */
	bool full, tcp_strict;
	uint32_t threshold;
	uint32_t limit; /* of rules, that the installer keeps; 0: none */
	/* two workers: 2; the second one has the first one's installers */
	unsigned n_workers;
	struct agent_scene *first;
	uint64_t to_records, to_reports, to_nobody;
	unsigned n_last;   /* credits to records that were the last ones of their rules */
	unsigned n_silent; /* times that nothing had come of a record since it was read */
	bool no_room;	   /* for reports that were held back */
	unsigned n_released;
	struct flow_report released;
};

static struct agent_nic agent_nics[2];
/* Of the scene that is on: a test that fails leaves them running. */
static struct installer *agent_installers[2];
static const struct hash_secret agent_secret = {.word = {3, 5}};

static struct agent_nic *agent_nic_of(struct provider *provider)
{
	return provider == &agent_nics[0].base ? &agent_nics[0] : &agent_nics[1];
}

static int agent_nic_do(struct provider *provider, enum installer_op op, struct provider_why *why)
{
	struct agent_nic *nic = agent_nic_of(provider);
	const struct timespec pause = {.tv_nsec = 20000};

	atomic_fetch_add(&nic->n_asked[op], 1);
	while (atomic_load(&nic->shut))
		nanosleep(&pause, NULL);
	int result = atomic_load(&nic->result[op]);

	if (result != 0)
		why->error = -result;
	return result;
}

static int agent_nic_insert(struct provider *provider, uint32_t place,
	const struct offload_rule *rule, struct provider_why *why)
{
	struct agent_nic *nic = agent_nic_of(provider);
	int refusal = rule->deed == PROVIDER_MARKS ? 0 : atomic_load(&nic->refuses_full);
	int result = agent_nic_do(provider, INSTALLER_INSERT, why);
	unsigned room = atomic_load(&nic->room);

	(void)place;
	atomic_fetch_add(&nic->n_deeds[rule->deed], 1);
	if (result == 0 && refusal != 0) {
		why->error = -refusal;
		return refusal;
	}
	nic->last_full = rule->deed != PROVIDER_MARKS;
	if (result == 0 && room != 0 && atomic_load(&nic->n_rules) >= room) {
		why->error = ENOSPC;
		result = -ENOSPC;
	}
	if (result == 0)
		atomic_fetch_add(&nic->n_rules, 1);
	return result;
}

static int agent_nic_remove(struct provider *provider, uint32_t place, struct provider_why *why)
{
	int result = agent_nic_do(provider, INSTALLER_REMOVE, why);

	(void)place;
	if (result == 0)
		atomic_fetch_sub(&agent_nic_of(provider)->n_rules, 1);
	return result;
}

static int agent_nic_query(struct provider *provider, uint32_t place, struct provider_count *count,
	struct provider_why *why)
{
	int result = agent_nic_do(provider, INSTALLER_COUNT, why);
	uint64_t packets = atomic_load(&agent_nic_of(provider)->counter);

	(void)place;
	*count = (struct provider_count){
		.packets = packets, .bytes = 100 * packets, .has_bytes = true};
	return result;
}

static bool agent_nic_last(struct provider *provider, uint32_t place, struct provider_count *count)
{
	const struct agent_nic *nic = agent_nic_of(provider);

	(void)place;
	*count = (struct provider_count){.packets = atomic_load(&nic->last),
		.bytes = 100 * atomic_load(&nic->last),
		.has_bytes = true,
		.final = true};
	return nic->last_full && !atomic_load(&nic->tells_no_last);
}

static unsigned agent_nic_poll(struct provider *provider, struct provider_done *done, unsigned max)
{
	(void)provider;
	(void)done;
	(void)max;
	return 0;
}

static bool agent_nic_next_shape(struct provider *provider, enum provider_kind kind)
{
	atomic_fetch_add(&agent_nic_of(provider)->n_shapes[kind], 1);
	return true;
}

static int agent_nic_flush(struct provider *provider, struct provider_why *why)
{
	struct agent_nic *nic = agent_nic_of(provider);
	int result = atomic_load(&nic->flush_result);

	atomic_fetch_add(&nic->n_flushed, 1);
	if (result != 0)
		why->error = -result;
	return result;
}

static void agent_nic_leave(struct provider *provider)
{
	(void)provider;
}

static uint32_t agent_nic_close(struct provider *provider)
{
	agent_nic_leave(provider);
	return 0;
}

static int agent_nic_open(struct provider **provider, const struct provider_config *config)
{
	static const struct provider_ops ops = {
		.insert = agent_nic_insert,
		.remove = agent_nic_remove,
		.query = agent_nic_query,
		.last_count = agent_nic_last,
		.poll = agent_nic_poll,
		.next_shape = agent_nic_next_shape,
		.flush = agent_nic_flush,
		.reset = agent_nic_leave,
		.close = agent_nic_close,
	};
	struct agent_nic *nic = &agent_nics[config->port_id];

	nic->base.ops = &ops;
	nic->base.abilities = (struct provider_abilities){.back_end = "fake",
		.mark_bits = 24,
		.mark_max = 0xffffff,
		.counts = true,
		.kind = {[PROVIDER_IPV4_TCP] = true,
			[PROVIDER_IPV4_UDP] = true,
			[PROVIDER_IPV4_SCTP] = true},
		.full = {[PROVIDER_FORWARDS] = {[PROVIDER_IPV4_TCP] = config->full,
				 [PROVIDER_IPV4_UDP] = config->full}},
		.exact = config->full};
	*provider = &nic->base;
	return 0;
}

static uint64_t agent_take_silence(void *context, uint32_t position)
{
	struct agent_scene *scene = context;

	assert_int_not_equal(position, FLOW_NONE);
	scene->n_silent++;
	return UINT64_MAX;
}

static void agent_take_credit(void *context, const struct agent_credit *credit)
{
	struct agent_scene *scene = context;
	struct flow_record *record = credit->report != NULL ? &credit->report->record : NULL;

	if (credit->position != FLOW_NONE)
		record = flow_table_record(&scene->table, credit->position);
	*(credit->position != FLOW_NONE	 ? &scene->to_records
		: credit->report != NULL ? &scene->to_reports
					 : &scene->to_nobody) += credit->credit.packets;
	if (record == NULL)
		return;
	scene->n_last += credit->last;
	record->count[credit->credit.from].packets_low += (uint32_t)credit->credit.packets;
	record->count[credit->credit.from].bytes_low += (uint32_t)credit->credit.bytes;
}

static void agent_take_report(void *context, const struct flow_report *report)
{
	struct agent_scene *scene = context;

	scene->released = *report;
	scene->n_released++;
}

static unsigned agent_report_room(void *context)
{
	const struct agent_scene *scene = context;

	return scene->no_room ? 0 : 1;
}

/* Those that a test which failed left running: their threads use its scene. */
static inline void agent_scene_stop_left(void)
{
	for (unsigned i = 0; i < 2; i++) {
		atomic_store(&agent_nics[i].shut, false);
		if (agent_installers[i] != NULL)
			installer_stop(agent_installers[i]);
	}
}

/* The ports' NICs and their installers, for so many workers. */
static inline void agent_scene_open(
	struct agent_scene *scene, uint32_t slots, const struct agent_scene *as)
{
	struct error error;

	memset(agent_nics, 0, sizeof(agent_nics));
	for (unsigned i = 0; i < 2; i++) {
		const struct installer_config of_port = {.number = i,
			.n_workers = RTE_MAX(as->n_workers, 1u),
			.rules = as->limit,
			.clock = &scene->clock,
			.provider = {.port_id = (uint16_t)i,
				.n_places = RTE_MAX(slots, (uint32_t)AGENT_PLACES),
				.full = as->full},
			.open = agent_nic_open,
			/* flows that fall out within a minute of the test's are of one second here */
			.health = {.least_failures = UINT32_MAX}};

		assert_int_equal(installer_create(&scene->installer[i], &of_port, &error), 0);
		assert_int_equal(installer_wait(scene->installer[i], AGENT_WAIT_US / 1000), 0);
		agent_installers[i] = scene->installer[i];
	}
}

/* `slots` of the wire: with fewer than a quarter of them free, those of flows that left are given away. */
static inline void agent_scene_begin_as(
	struct agent_scene *scene, uint32_t slots, bool counters, const struct agent_scene *as)
{
	struct agent_config config = {.n_workers = RTE_MAX(as->n_workers, 1u),
		.worker = as->first != NULL,
		.full = as->full,
		.tcp_strict = as->tcp_strict,
		.threshold = as->threshold,
		.credit = agent_take_credit,
		.silent = agent_take_silence,
		.release = agent_take_report,
		.room = agent_report_room,
		.context = scene,
		.topology = topology_of_wires(1),
		.table = &scene->table,
		.clock = &scene->clock,
		.slots = slots,
		.min_packets = 1,
		.audit_counters = counters};
	struct agent_wire wire;

	if (as->first == NULL)
		agent_scene_stop_left();
	memset(scene, 0, sizeof(*scene));
	/* without DPDK's environment nobody has measured it: any rate that is about right */
	tsc_clock_start_at(&scene->clock, rte_rdtsc(), UINT64_C(2500000000), 0);
	if (as->first == NULL)
		agent_scene_open(scene, slots, as);
	scene->first = as->first;
	for (unsigned i = 0; i < 2; i++)
		config.installer[i] = (as->first != NULL ? as->first : scene)->installer[i];
	assert_int_equal(
		flow_table_init(&scene->table, RTE_MAX(2 * slots, 512u), &agent_secret, 0), 0);
	assert_int_equal(agent_create(&scene->agent, &config), 0);
	assert_int_equal(agent_slots_init(&wire, &config, 0, 0xffffff), 0);
	agent_adopt(scene->agent, 0, &wire);
	scene->now_us = CLOCK_US_PER_S;
	agent_turn(scene->agent, scene->now_us);
}

static inline void agent_scene_begin(struct agent_scene *scene, uint32_t slots, bool counters)
{
	const struct agent_scene as = {.now_us = 0};

	agent_scene_begin_as(scene, slots, counters, &as);
}

/* Of two, the one with the first's installers ends first. */
static inline void agent_scene_end(struct agent_scene *scene)
{
	for (unsigned i = 0; i < 2; i++)
		installer_stop((scene->first != NULL ? scene->first : scene)->installer[i]);
	agent_destroy(scene->agent);
	for (unsigned i = 0; i < 2 && scene->first == NULL; i++) {
		installer_destroy(scene->installer[i]);
		agent_installers[i] = NULL;
	}
	flow_table_fini(&scene->table);
}

/* Time passes in steps of a millisecond, in which the installers may answer. */
static inline void agent_pass_ms(struct agent_scene *scene, unsigned ms)
{
	for (unsigned i = 0; i < ms; i++)
		agent_turn(scene->agent, scene->now_us += 1000);
}

/* Turns, without time passing, until another thread has done something. */
#define agent_until(scene, condition)                                           \
	do {                                                                    \
		const struct timespec pause = {.tv_nsec = 20000};               \
		uint64_t wait_from_us = monotonic_us();                         \
                                                                                \
		while (!(condition)) {                                          \
			if (monotonic_us() - wait_from_us > AGENT_WAIT_US)      \
				fail_msg("waited in vain for: %s", #condition); \
			agent_turn((scene)->agent, (scene)->now_us);            \
			nanosleep(&pause, NULL);                                \
		}                                                               \
	} while (0)

/* A flow that end 0 began at port 0. */
static inline uint32_t agent_flow(struct agent_scene *scene, uint8_t proto, uint16_t number)
{
	struct flow_key key = {.addr = {{192, 0, 2, 1}, {198, 51, 100, 1}},
		.port = {rte_cpu_to_be_16(number), RTE_BE16(9)},
		.proto = proto,
		.version_wire = FLOW_KEY_VERSION_WIRE(4, 0)};
	uint32_t position =
		flow_table_insert(&scene->table, &key, flow_key_hash(&agent_secret, &key));

	assert_int_not_equal(position, FLOW_NONE);
	flow_table_record(&scene->table, position)->status =
		flow_status(scene->now_us, FLOW_REPLIED, 0);
	return position;
}

static inline struct flow_record *agent_record(struct agent_scene *scene, uint32_t position)
{
	return flow_table_record(&scene->table, position);
}

static inline enum offload_state agent_state(
	struct agent_scene *scene, uint32_t position, unsigned from)
{
	return offload_state(agent_record(scene, position), from);
}

/* The mark of the flow's slot. */
static inline uint32_t agent_mark(struct agent_scene *scene, uint32_t position)
{
	return slots_mark(&scene->agent->wire[0].slots, agent_record(scene, position)->slot);
}

/* Makes a packet of the flow's headers, plain ones; `bytes` is where they lie. */
static inline void agent_headers(
	struct rte_mbuf *packet, struct packet_info *info, uint8_t bytes[64])
{
	enum { IPV4 = 14, UPPER = 34, LENGTH = 64 - IPV4 };
	uint8_t *ip = &bytes[IPV4];
	uint32_t sum = 0;

	memset(bytes, 0, 64);
	ip[0] = 0x45;
	ip[3] = LENGTH;
	ip[9] = info->key.proto;
	memcpy(ip + 12, info->key.addr[info->from], 4);
	memcpy(ip + 16, info->key.addr[!info->from], 4);
	for (unsigned at = 0; at < 20; at += 2)
		sum += (unsigned)ip[at] << 8 | ip[at + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~(sum + (sum >> 16));
	ip[10] = (uint8_t)(sum >> 8);
	ip[11] = (uint8_t)sum;
	if (info->key.proto == IPPROTO_TCP)
		bytes[UPPER + 12] = 0x50;
	else
		bytes[UPPER + 5] = 8;
	info->l4_offset = UPPER;
	packet->buf_addr = bytes;
	packet->data_len = 64;
	packet->pkt_len = 64;
}

/* A packet from that end arrives at that port, with that mark or with none (0), and with these flags; counted, then judged. */
static inline void agent_packet_of(struct agent_scene *scene, uint32_t position, unsigned port,
	unsigned from, uint32_t mark, uint8_t flags)
{
	struct flow_record *record = agent_record(scene, position);
	struct packet_info info = {.key = record->key, .from = (uint8_t)from};
	struct rte_mbuf packet = {.nb_segs = 1};
	uint8_t bytes[64];

	agent_headers(&packet, &info, bytes);
	info.flags |= flags;
	record->count[from].packets_low++;
	if (mark != 0) {
		packet.ol_flags = RTE_MBUF_F_RX_FDIR_ID;
		packet.hash.fdir.hi = mark;
	}
	mark_verify(scene->agent, port, &packet, position, &info);
}

static inline void agent_packet_with(
	struct agent_scene *scene, uint32_t position, unsigned port, unsigned from, uint32_t mark)
{
	agent_packet_of(scene, position, port, from, mark, 0);
}

/* The same with the flow's mark or without. */
static inline void agent_packet(
	struct agent_scene *scene, uint32_t position, unsigned port, unsigned from, bool marked)
{
	agent_packet_with(scene, position, port, from, marked ? agent_mark(scene, position) : 0);
}

/* Three of its packets in a row come without their mark. */
static inline void agent_lose_marks(
	struct agent_scene *scene, uint32_t position, unsigned port, unsigned from)
{
	for (unsigned i = 0; i < 3; i++)
		agent_packet(scene, position, port, from, false);
}

/* The flow ends. */
static inline void agent_end(struct agent_scene *scene, uint32_t position)
{
	struct flow_report report = {
		.record = *agent_record(scene, position), .reason = FLOW_END_KILLED};

	agent_ended(scene->agent, &report);
	flow_table_remove(&scene->table, position);
}

/* The direction is asked into the NIC of that port, and has its answer. */
static inline void agent_ask_in(
	struct agent_scene *scene, uint32_t position, unsigned port, unsigned from)
{
	agent_sample(scene->agent, position, port, from);
	agent_until(scene, agent_state(scene, position, from) != OFFLOAD_QUEUED &&
				   agent_state(scene, position, from) != OFFLOAD_INSTALLING);
}

/* ... and it was yes, and a packet came with its mark. */
static inline void agent_prove(
	struct agent_scene *scene, uint32_t position, unsigned port, unsigned from)
{
	agent_ask_in(scene, position, port, from);
	assert_int_equal(agent_state(scene, position, from), OFFLOAD_ACCEPTED);
	agent_packet(scene, position, port, from, true);
	assert_int_equal(agent_state(scene, position, from), OFFLOAD_PROVEN);
}
