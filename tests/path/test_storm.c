/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rules are replaced each 200 ms, by lists that have no rule in common, while each millisecond brings a packet of a new
 * conversation and one of each end of conversations that are live, to a plane with its own threads.
 *
 * No packet that both lists allow is lost, or late by more than LATE_US: the test knows when each came out.
 * None that both lists forbid comes out. After each list every live flow has the verdict and the rules of that list, within
 * DECIDED_US. Time in which the kernel let a thread wait for a processor, or a hypervisor took that away, is nobody's delay.
 *
 * MILLRACE_STORM=long in the environment makes it a minute with 300,000 flows.
 */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cmocka.h>
#include <rte_mbuf.h>

#include "flow/decide.h"
#include "live.h"
#include "rule/rules.h"

#define RELOAD_US 200000
#define LATE_US 10000
#define DECIDED_US 1000000
#define FILLERS 300
#define MAX_RULES (FILLERS + 8)
#define LINE 200
/* New conversations' packets, and both ends' of a live one. */
#define PER_MS 3
#define LEARN_BURST 64
#define FRAME 60

/* Flows by the address that they go to: both lists let the first through, and drop the second; of the third they differ. */
enum kind { ALLOWED, FORBIDDEN, CHANGING, N_KINDS };

struct sent {
	uint64_t at_us, waited_us; /* 0: it was not sent, or is back */
};

struct storm {
	struct live *live;
	uint32_t flows;
	uint64_t lasts_us;
	char list[2][MAX_RULES * LINE];
	size_t size[2];
	unsigned which; /* list is in force */
	/* the traffic's */
	pthread_t thread;
	atomic_bool stop;
	struct sent *sent;
	uint32_t n_sent, n_back, n_allowed, n_late, n_forbidden;
	uint64_t longest_us, longest_late_us;
	/* waiting times of threads, by the kernel */
	int waits[PLANE_MAX_WORKERS + 1];
	unsigned n_waits;
};

static uint64_t clock_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* The calling thread's file that says how long it waited for a processor; -1: the kernel has none. */
static int open_waits(const char *task)
{
	char path[300];

	snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", task);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* That of the workers, which are known by their names. */
static void open_workers(struct storm *storm)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;

	assert_non_null(tasks);
	while ((entry = readdir(tasks)) != NULL) {
		char path[300], name[32] = "";

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		FILE *file = fopen(path, "re");

		if (file == NULL)
			continue;
		if (fgets(name, sizeof(name), file) != NULL && strncmp(name, "worker", 6) == 0)
			storm->waits[storm->n_waits++] = open_waits(entry->d_name);
		fclose(file);
	}
	closedir(tasks);
	assert_int_equal(storm->n_waits, storm->live->options.n_workers);
}

/* How long these threads have waited for a processor, all together. */
static uint64_t waited_us(const struct storm *storm, int own)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i <= storm->n_waits; i++) {
		char text[100] = "";
		unsigned long long ran = 0, waited = 0;
		const int file = i < storm->n_waits ? storm->waits[i] : own;

		if (pread(file, text, sizeof(text) - 1, 0) > 0 &&
			sscanf(text, "%llu %llu", &ran, &waited) == 2)
			sum += waited / 1000;
	}
	return sum;
}

/* The time that a hypervisor took from all processors, in steps of 10 ms. */
static uint64_t stolen_us(void)
{
	FILE *file = fopen("/proc/stat", "re");
	unsigned long long stolen = 0;

	if (file != NULL) {
		(void)!fscanf(file, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &stolen);
		fclose(file);
	}
	return stolen * 10000;
}

/* Lists without a rule in common; `which` of them lets CHANGING through if it is 0. */
static void write_list(struct storm *storm, unsigned which)
{
	char *text = storm->list[which];
	size_t n = 0;

#define ADD(...) (n += (size_t)snprintf(text + n, sizeof(storm->list[0]) - n, __VA_ARGS__))
	for (unsigned i = 0; i < FILLERS; i++)
		ADD("flow create 0 ingress pattern eth / ipv4 dst is 10.%u.%u.%u / end actions "
		    "drop / end\n",
			100 + which, i >> 8, i & 255);
	ADD("flow create 0 ingress replies follow pattern ct state is new / eth / ipv4 dst is "
	    "10.1.0.1 "
	    "%s/ end actions count / end\n",
		which ? "/ udp dst is 7 " : "");
	if (which == 0)
		ADD("flow create 0 ingress replies follow pattern ct state is new / eth / ipv4 dst "
		    "is "
		    "10.3.0.1 / end actions count / end\n");
	ADD("flow create 0 transfer priority 9 pattern eth %s/ end actions drop / end\n",
		which ? "/ ipv4 " : "");
#undef ADD
	storm->size[which] = n;
}

/* A packet of flow `number`, which is one of the live ones, or of those behind them; number `id`. */
static void send_packet(struct storm *storm, uint32_t number, bool reply, uint32_t id)
{
	struct live *live = storm->live;
	const uint8_t ours[4] = {
		10, (uint8_t)(64 + (number >> 16)), (uint8_t)(number >> 8), (uint8_t)number};
	const uint8_t theirs[4] = {10, (uint8_t)(1 + number % N_KINDS), 0, 1};
	struct rte_mbuf *packet;
	uint8_t *at;

	while ((packet = rte_pktmbuf_alloc(live->plane->pools[0])) == NULL)
		sched_yield();
	assert_non_null(rte_pktmbuf_append(packet, FRAME));
	at = rte_pktmbuf_mtod(packet, uint8_t *);
	memset(at, 0, FRAME);
	at[0] = at[6] = 2;
	put_be16(at + 12, 0x0800);
	put_be16(at + 14, 0x4500);
	put_be16(at + 16, 46);
	put_be16(at + 22, 0x4011);
	memcpy(at + 26, reply ? theirs : ours, 4);
	memcpy(at + 30, reply ? ours : theirs, 4);
	put_be16(at + 34, reply ? 7 : 1000);
	put_be16(at + 36, reply ? 1000 : 7);
	put_be16(at + 38, 26);
	memcpy(at + 42, &id, sizeof(id));
	memcpy(at + 46, &number, sizeof(number));
	while (rte_ring_enqueue(live->in[reply][0], packet) != 0)
		sched_yield();
}

/* A packet came out: one that may be late, as the kernel knows what of that time threads waited. */
static void take_packet(
	struct storm *storm, const struct rte_mbuf *packet, int own, uint64_t stolen)
{
	const uint8_t *at = rte_pktmbuf_mtod(packet, const uint8_t *);
	uint32_t id, number;

	memcpy(&id, at + 42, sizeof(id));
	memcpy(&number, at + 46, sizeof(number));
	storm->n_forbidden += number % N_KINDS == FORBIDDEN;
	if (id == UINT32_MAX)
		return;
	struct sent *sent = &storm->sent[id];
	const uint64_t took = clock_us() - sent->at_us;

	/* twice is wrong, too */
	assert_true(sent->at_us != 0);
	storm->longest_us = RTE_MAX(storm->longest_us, took);
	if (took > LATE_US) {
		const uint64_t excused =
			waited_us(storm, own) - sent->waited_us + stolen_us() - stolen;
		const uint64_t late = took > excused ? took - excused : 0;

		storm->longest_late_us = RTE_MAX(storm->longest_late_us, late);
		storm->n_late += late > LATE_US;
	}
	if (number % N_KINDS == ALLOWED)
		storm->n_back++;
	sent->at_us = 0;
}

static unsigned take_packets(struct storm *storm, int own, uint64_t stolen)
{
	struct rte_mbuf *packets[LEARN_BURST];
	unsigned taken = 0;

	for (unsigned side = 0; side < 2; side++) {
		const unsigned n = rte_ring_dequeue_burst(
			storm->live->out[side][0], (void **)packets, LEARN_BURST, NULL);

		for (unsigned i = 0; i < n; i++)
			take_packet(storm, packets[i], own, stolen);
		rte_pktmbuf_free_bulk(packets, n);
		taken += n;
	}
	return taken;
}

/* Live flows; once nothing is under way. */
static uint64_t settled_flows(struct storm *storm)
{
	static struct plane_snapshot snapshot;
	uint64_t flows = 0;

	do {
		take_packets(storm, -1, 0);
		sched_yield();
		assert_int_equal(plane_snapshot(storm->live->plane, &snapshot), 0);
	} while (rte_ring_count(storm->live->in[0][0]) != 0 || snapshot.wires[0].held != 0);
	while (take_packets(storm, -1, 0) != 0)
		;
	for (unsigned i = 0; i < snapshot.n_lcores; i++)
		flows += snapshot.lcores[i].flows;
	return flows;
}

/* A packet of each flow, so that they live; and once more where one was lost, as a ring between two workers was full. */
static void learn(struct storm *storm)
{
	for (unsigned tries = 0; settled_flows(storm) < storm->flows; tries++) {
		assert_true(tries < 20);
		for (uint32_t i = 0; i < storm->flows; i++) {
			send_packet(storm, i, false, UINT32_MAX);
			while (i % LEARN_BURST == 0 &&
				(take_packets(storm, -1, 0) != 0 ||
					rte_ring_count(storm->live->in[0][0]) > 512))
				sched_yield();
		}
	}
	assert_int_equal(storm->n_forbidden, 0);
}

static void send_counted(struct storm *storm, uint32_t number, bool reply, uint64_t waited)
{
	storm->sent[storm->n_sent] = (struct sent){clock_us(), waited};
	storm->n_allowed += number % N_KINDS == ALLOWED;
	send_packet(storm, number, reply, storm->n_sent++);
}

/* Packets each millisecond; and where the thread had to wait, those that are due. */
static void *traffic(void *context)
{
	struct storm *storm = context;
	const int own = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	const uint64_t begin = clock_us(), stolen = stolen_us();
	uint32_t anew = storm->flows, live = 0;

	for (uint64_t ms = 0; !atomic_load(&storm->stop); take_packets(storm, own, stolen)) {
		const uint64_t now = clock_us();

		if (now >= begin + ms * 1000) {
			const uint64_t waited = waited_us(storm, own);

			send_counted(storm, anew++, false, waited);
			send_counted(storm, live, false, waited);
			/* the other end's, whose packets follow */
			send_counted(storm, live, true, waited);
			/* of another kind, and far away in the table */
			live = (live + 7919) % storm->flows;
			ms++;
			continue;
		}
		nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
	}
	for (uint64_t until = clock_us() + 10 * DECIDED_US;
		storm->n_back < storm->n_allowed && clock_us() < until; sched_yield())
		take_packets(storm, own, stolen);
	close(own);
	return NULL;
}

/* Puts the other list in force; returns the generation of it. */
static uint64_t reload(struct storm *storm)
{
	struct rules *rules = plane_rules(storm->live->plane);
	struct rules_change change;
	struct rules_list *list;
	struct error error;

	int ret;

	storm->which = !storm->which;
	assert_int_equal(rules_list_create(rules, &list), 0);
	ret = rules_list_read(rules, list, "storm", storm->list[storm->which],
		storm->size[storm->which], NULL, NULL, &error);
	assert_int_equal(ret, 0);
	/* workers may still be about to be through with the list before */
	while ((ret = rules_replace(rules, list, &change, &error)) == -EAGAIN) {
		rules_settled(rules, plane_policy_decided(storm->live->plane));
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
	}
	assert_int_equal(ret, 0);
	assert_int_equal(change.n[RULES_UNCHANGED], 0);
	return change.generation;
}

/* The record is its worker's, which writes verdicts only while it decides: there is nothing to decide now. */
__attribute__((no_sanitize("thread"))) static bool is_decided(const struct storm *storm,
	const struct flow_shard *shard, uint32_t position, const bool *in_force)
{
	const struct flow_record *record = flow_table_record(&shard->table, position);
	const struct flow_row *row = &shard->rows[position];
	/* the servers' addresses are the lower ones */
	const uint8_t kind = record->key.addr[0][1];
	const bool passes = kind == 1 + ALLOWED || (kind == 1 + CHANGING && storm->which == 0);
	const uint16_t verdict = passes ? FLOW_VERDICT_FORWARD : FLOW_VERDICT_DROP;

	return record->verdict[0] == verdict && record->verdict[1] == verdict &&
	       row->end[0].rule != FLOW_RULE_NONE && row->end[1].rule != FLOW_RULE_NONE &&
	       in_force[row->end[0].rule] && in_force[row->end[1].rule];
}

/* Every live flow has the verdict that the list in force says, by rules of it. Returns how many there are. */
static uint32_t check_all(const struct storm *storm)
{
	const struct plane *plane = storm->live->plane;
	static bool in_force[4 * MAX_RULES];
	struct rules_view view;
	uint32_t from = 0, n = 0, wrong = 0;

	memset(in_force, 0, sizeof(in_force));
	while (from != RULES_NONE)
		if (rules_list(plane_rules(plane), RULES_NO_PORT, &from, &view, 1) == 1)
			in_force[view.slot] = true;
	for (unsigned i = 0; i < plane->n_lcores; i++) {
		const struct flow_shard *shard = plane->lcores[i].worker.shard;

		for (uint32_t at = flow_table_next(&shard->table, 0); at != FLOW_NONE;
			at = flow_table_next(&shard->table, at + 1), n++)
			wrong += !is_decided(storm, shard, at, in_force);
	}
	assert_int_equal(wrong, 0);
	return n;
}

static void begin(struct storm *storm, unsigned n_workers)
{
	const char *form = getenv("MILLRACE_STORM");
	const bool is_long = form != NULL && strcmp(form, "long") == 0;
	struct live_options options = {
		.n_workers = n_workers, .max_rules = MAX_RULES, .counts_reports = true};
	struct error error;

	memset(storm, 0, sizeof(*storm));
	storm->flows = is_long ? 300000 : 50000;
	storm->lasts_us = is_long ? UINT64_C(60000000) : UINT64_C(5000000);
	const uint32_t ms = (uint32_t)(storm->lasts_us / 1000) * 2 + 60000;

	options.capacity = 2 * (storm->flows + ms);
	storm->sent = calloc((size_t)PER_MS * ms, sizeof(*storm->sent));
	assert_non_null(storm->sent);
	write_list(storm, 0);
	write_list(storm, 1);
	storm->live = live_begin(&options);
	storm->which = 1;
	(void)reload(storm);
	assert_int_equal(plane_start(storm->live->plane, &error), 0);
	open_workers(storm);
}

static void replace_under_traffic(unsigned n_workers)
{
	static struct storm storm;
	uint64_t slowest_us = 0, slowest_own_us = 0, next;
	uint32_t checked = 0, lists = 0;

	begin(&storm, n_workers);
	learn(&storm);
	const int own = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	const uint64_t until = clock_us() + storm.lasts_us;

	assert_int_equal(pthread_create(&storm.thread, NULL, traffic, &storm), 0);
	for (next = clock_us(); next < until; lists++) {
		const uint64_t from = clock_us(), waited = waited_us(&storm, own),
			       stolen = stolen_us();
		const uint64_t generation = reload(&storm);

		while (plane_policy_decided(storm.live->plane) < generation)
			nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
		const uint64_t took = clock_us() - from;
		const uint64_t excused = waited_us(&storm, own) - waited + stolen_us() - stolen;

		slowest_us = RTE_MAX(slowest_us, took);
		slowest_own_us = RTE_MAX(slowest_own_us, took > excused ? took - excused : 0);
		checked = check_all(&storm);
		assert_true(checked >= storm.flows);
		for (next = RTE_MAX(next + RELOAD_US, clock_us());
			clock_us() < RTE_MIN(next, until);)
			nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
	}
	atomic_store(&storm.stop, true);
	pthread_join(storm.thread, NULL);
	close(own);
	plane_stop(storm.live->plane);
	print_message("%u workers: %u lists, each decided for up to %u flows after %.1f ms at most "
		      "(%.1f ms "
		      "without waits for a processor); of %u packets %u had to pass and %u did, "
		      "after %.1f ms "
		      "at most (%.1f ms), %u late; %u passed that may not\n",
		n_workers, lists, checked, (double)slowest_us / 1e3, (double)slowest_own_us / 1e3,
		storm.n_sent, storm.n_allowed, storm.n_back, (double)storm.longest_us / 1e3,
		(double)storm.longest_late_us / 1e3, storm.n_late, storm.n_forbidden);
	assert_true(lists >= 5 && storm.n_allowed > 1000);
	assert_int_equal(storm.n_back, storm.n_allowed);
	assert_int_equal(storm.n_forbidden, 0);
	assert_int_equal(storm.n_late, 0);
	assert_true(slowest_own_us <= DECIDED_US);
	for (unsigned i = 0; i < storm.n_waits; i++)
		close(storm.waits[i]);
	live_end(storm.live);
	free(storm.sent);
}

static void one_worker(void **state)
{
	(void)state;
	replace_under_traffic(1);
}

static void two_workers(void **state)
{
	(void)state;
	replace_under_traffic(2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_worker),
		cmocka_unit_test(two_workers),
	};

	return cmocka_run_group_tests(tests, live_environment, NULL);
}
