/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The routing table with a table of the Internet's size, against DPDK's rte_fib and rte_fib6. Look-ups go
 * to random addresses under random routes, copied a thousand at a time before they are timed, so that they
 * are as warm as after extraction. Both sides have to find the same next hops.
 */
#include "bench/route.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "base/dpdk.h"
#include "bench/bench.h"
#include "bench/memory.h"
#include "route/table_file.h"

/* For DPDK's tables and the mempools of its prefixes. */
#define HEAP_BYTES ((size_t)6 << 30)

#define BURST 64
#define PARTS 256
#define CHANGES 65536u
/* Groups of DPDK's tables beyond those that the routes need, in percent. */
#define MOST_SPARE 400
#define CHURN_ROUNDS 100
/* DPDK's table is left when it has lost routes, or after so many rounds. */
#define CHURN_ROUNDS_THEIRS 10

#define GOAL_V4 (1 / 1.2)
#define GOAL_V6 1.0
#define GOAL_LOAD 1e6
#define GOAL_CHANGES 1e4
#define GOAL_V6_BYTES 16e6
#define GOAL_V6_ROUTES 220103

struct contest {
	const char *load;
	struct route_set set;
	const struct route_side *rival;
	void *ours, *theirs;
	void *direct;	 /* IPv4: ours with direct entries */
	uint32_t *order; /* of routes, by chance */
	struct route_addresses *addresses;
	uint64_t random;
	bool json;
};

static void say(const char *load, const char *what, int code)
{
	fprintf(stderr, "millrace: bench route: %s: %s: %s\n", load, what, strerror(-code));
}

static struct bench_row row_of(const struct contest *contest, const char *measure, const char *unit)
{
	return (struct bench_row){.bench = "route",
		.measure = measure,
		.load = contest->load,
		.flows = contest->set.n,
		.unit = unit,
		.against = contest->rival->name,
		.rounds = BENCH_ROUNDS};
}

static double processor_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int add_all(const struct contest *contest, const struct route_side *side, void *state)
{
	for (uint32_t i = 0; i < contest->set.n; i++) {
		const struct route_entry *entry = &contest->set.routes[i];
		int ret = side->add(state, &entry->prefix, entry->next_hop);

		if (ret < 0)
			return ret;
	}
	return 0;
}

static void shuffle(struct contest *contest)
{
	for (uint32_t i = 0; i + 1 < contest->set.n; i++) {
		uint32_t other =
			i + (uint32_t)(route_random(&contest->random) % (contest->set.n - i));
		uint32_t swap = contest->order[i];

		contest->order[i] = contest->order[other];
		contest->order[other] = swap;
	}
}

static void end_contest(struct contest *contest)
{
	if (contest->ours)
		route_ours.destroy(contest->ours);
	if (contest->direct)
		route_direct.destroy(contest->direct);
	if (contest->theirs)
		contest->rival->destroy(contest->theirs);
	free(contest->order);
	free(contest->addresses);
	route_set_free(&contest->set);
}

/* DPDK's table with as few groups as take all routes. */
static int begin_rival(struct contest *contest)
{
	int ret = -ENOSPC;

	for (uint32_t spare = 25; ret == -ENOSPC && spare <= MOST_SPARE; spare *= 2) {
		ret = contest->rival->create(&contest->theirs, &contest->set, spare);
		if (ret < 0)
			return ret;
		ret = add_all(contest, contest->rival, contest->theirs);
		if (ret < 0) {
			contest->rival->destroy(contest->theirs);
			contest->theirs = NULL;
		}
	}
	return ret;
}

static int begin_contest(struct contest *contest, const char *load, uint32_t routes, bool json)
{
	*contest = (struct contest){.load = load, .random = 1, .json = json};
	int ret = route_set_make(&contest->set, load, routes);

	if (ret < 0)
		return ret;
	contest->rival = contest->set.version == 4 ? &route_rte_fib : &route_rte_fib6;
	contest->order = calloc(contest->set.n, sizeof(*contest->order));
	contest->addresses = calloc(PARTS, sizeof(*contest->addresses));
	if (!contest->order || !contest->addresses)
		return -ENOMEM;
	for (uint32_t i = 0; i < contest->set.n; i++)
		contest->order[i] = i;
	ret = route_ours.create(&contest->ours, &contest->set, 0);
	if (ret == 0)
		ret = add_all(contest, &route_ours, contest->ours);
	if (ret == 0 && contest->set.version == 4) {
		ret = route_direct.create(&contest->direct, &contest->set, 0);
		if (ret == 0)
			ret = add_all(contest, &route_direct, contest->direct);
	}
	if (ret == 0)
		ret = begin_rival(contest);
	if (ret < 0)
		say(load, "the tables", ret);
	return ret;
}

/* Both find the same. */
static int compare(struct contest *contest)
{
	static struct route_addresses addresses;
	uint32_t ours[BURST], theirs[BURST];

	for (unsigned part = 0; part < PARTS; part++) {
		route_addresses_draw(&addresses, &contest->set, &contest->random);
		for (unsigned at = 0; at < ROUTE_PART; at += BURST) {
			route_ours.lookup(contest->ours, &addresses, at, BURST, ours);
			contest->rival->lookup(contest->theirs, &addresses, at, BURST, theirs);
			if (memcmp(ours, theirs, sizeof(ours)) == 0)
				continue;
			say(contest->load, "the two tables disagree", -EBADMSG);
			return -EBADMSG;
		}
	}
	return 0;
}

/* Cycles an address: the median of parts, so that what interrupts the thread does not count. */
static double lookup(
	const struct contest *contest, const struct route_side *side, void *state, unsigned burst)
{
	static struct route_addresses addresses;
	uint32_t next_hops[BURST], *found = side == contest->rival ? NULL : next_hops;
	double parts[PARTS];
	uint64_t sum = 0;

	for (unsigned part = 0; part < PARTS; part++) {
		memcpy(&addresses, &contest->addresses[part], sizeof(addresses));
		uint64_t begin = rte_rdtsc();

		for (unsigned at = 0; at < ROUTE_PART; at += burst)
			sum += side->lookup(state, &addresses, at, burst, found);
		parts[part] = (double)(rte_rdtsc() - begin) / ROUTE_PART;
	}
	/* the compiler must not know that nobody needs it */
	__asm__ volatile("" : : "r"(sum));
	return bench_median(parts, PARTS);
}

static void lookups(struct contest *contest, const char *measure, const struct route_side *side,
	void *state, unsigned burst)
{
	struct bench_row row = row_of(contest, measure, "cycles");

	row.goal = contest->set.version == 4 ? GOAL_V4 : GOAL_V6;
	for (unsigned i = 0; i < BENCH_ROUNDS; i++) {
		for (unsigned part = 0; part < PARTS; part++)
			route_addresses_draw(
				&contest->addresses[part], &contest->set, &contest->random);
		row.ours[i] = lookup(contest, side, state, burst);
		row.theirs[i] = lookup(contest, contest->rival, contest->theirs, burst);
	}
	bench_print(&row, contest->json);
}

static void memory(const struct contest *contest)
{
	struct bench_row row = row_of(contest, "memory", "bytes");

	row.rounds = 1;
	row.goal = 1;
	row.ours[0] = (double)route_ours.memory(contest->ours);
	row.theirs[0] = (double)contest->rival->memory(contest->theirs);
	bench_print(&row, contest->json);
	if (contest->direct) {
		row.measure = "memory_direct";
		row.ours[0] = (double)route_direct.memory(contest->direct);
		bench_print(&row, contest->json);
	}
	if (contest->set.version == 4 || contest->set.n > GOAL_V6_ROUTES)
		return;
	row.against = "goal";
	row.theirs[0] = GOAL_V6_BYTES;
	bench_print(&row, contest->json);
}

struct rates {
	double delete, add, change;
	uint32_t n_failed;
};

/* Deletes some routes by chance, adds them again, and gives them other next hops, in a full table. */
static void change_some(
	struct contest *contest, const struct route_side *side, void *state, struct rates *rates)
{
	uint32_t n = RTE_MIN(CHANGES, contest->set.n);
	const struct route_entry *routes = contest->set.routes;
	double begin = processor_s();

	for (uint32_t i = 0; i < n; i++)
		rates->n_failed += side->delete(state, &routes[contest->order[i]].prefix) < 0;
	double deleted = processor_s();

	for (uint32_t i = 0; i < n; i++) {
		const struct route_entry *entry = &routes[contest->order[i]];

		rates->n_failed += side->add(state, &entry->prefix, entry->next_hop) < 0;
	}
	double added = processor_s();

	for (uint32_t i = 0; i < n; i++) {
		const struct route_entry *entry = &routes[contest->order[i]];

		rates->n_failed += side->add(state, &entry->prefix, entry->next_hop ^ 1) < 0;
	}
	double changed = processor_s();

	rates->delete = n / (deleted - begin);
	rates->add = n / (added - deleted);
	rates->change = n / (changed - added);
}

static int changes(struct contest *contest, const struct bench_options *options)
{
	struct bench_row rows[] = {row_of(contest, "delete", "1/s"), row_of(contest, "add", "1/s"),
		row_of(contest, "change", "1/s"), row_of(contest, "change", "1/s")};
	struct rates ours = {.n_failed = 0}, theirs = {.n_failed = 0};

	for (unsigned i = 0; i < BENCH_ROUNDS; i++) {
		shuffle(contest);
		change_some(contest, &route_ours, contest->ours, &ours);
		change_some(contest, contest->rival, contest->theirs, &theirs);
		rows[0].ours[i] = ours.delete;
		rows[0].theirs[i] = theirs.delete;
		rows[1].ours[i] = ours.add;
		rows[1].theirs[i] = theirs.add;
		rows[2].ours[i] = rows[3].ours[i] = ours.change;
		rows[2].theirs[i] = theirs.change;
		rows[3].theirs[i] = GOAL_CHANGES;
	}
	rows[3].against = "goal";
	rows[3].goal = 1;
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		rows[i].rate = true;
		if (bench_asked(options->measures, rows[i].measure))
			bench_print(&rows[i], contest->json);
	}
	if (theirs.n_failed > 0)
		fprintf(stderr, "%s: %u changes of %s failed\n", contest->load, theirs.n_failed,
			contest->rival->name);
	return ours.n_failed > 0 ? -ENOSPC : 0;
}

/* Rounds that delete a third by chance and add it again. Returns how many additions failed. */
static uint32_t churn_side(
	struct contest *contest, const struct route_side *side, void *state, unsigned *rounds)
{
	const struct route_entry *routes = contest->set.routes;
	uint32_t n_failed = 0;

	for (unsigned round = 0; round < *rounds; round++) {
		shuffle(contest);
		for (uint32_t i = 0; i < contest->set.n / 3; i++)
			side->delete(state, &routes[contest->order[i]].prefix);
		for (uint32_t i = 0; i < contest->set.n / 3; i++) {
			const struct route_entry *entry = &routes[contest->order[i]];

			n_failed += side->add(state, &entry->prefix, entry->next_hop) < 0;
		}
		if (n_failed > 0)
			*rounds = round + 1;
	}
	return n_failed;
}

static void churn(struct contest *contest)
{
	struct bench_row row = row_of(contest, "churn_failed", "routes");
	struct bench_row kept = row_of(contest, "churn_memory", "bytes");
	unsigned ours = CHURN_ROUNDS, theirs = CHURN_ROUNDS_THEIRS;

	row.rounds = kept.rounds = 1;
	row.goal = 1;
	kept.goal = 0.99;
	kept.against = "before";
	kept.theirs[0] = (double)route_ours.memory(contest->ours);
	row.ours[0] = churn_side(contest, &route_ours, contest->ours, &ours);
	kept.ours[0] = (double)route_ours.memory(contest->ours);
	row.theirs[0] = churn_side(contest, contest->rival, contest->theirs, &theirs);
	fprintf(stderr, "%s: %u rounds of ours, %u of %s\n", contest->load, ours, theirs,
		contest->rival->name);
	bench_print(&row, contest->json);
	bench_print(&kept, contest->json);
}

static int write_routes(const struct contest *contest, const char *path)
{
	FILE *file = fopen(path, "we");
	char text[ROUTE_PREFIX_TEXT_MAX];

	if (!file)
		return -errno;
	for (uint32_t i = 0; i < contest->set.n; i++) {
		const struct route_entry *entry = &contest->set.routes[i];

		fprintf(file, "%s %u\n", route_prefix_format(&entry->prefix, text),
			entry->next_hop);
	}
	return fclose(file) == 0 ? 0 : -errno;
}

/* A file of all routes into an empty table. */
static int load(const struct contest *contest)
{
	struct bench_row row = row_of(contest, "load", "1/s");
	char directory[] = "/tmp/millrace-bench-XXXXXX", path[64];
	struct error error = {""};
	struct route_loaded loaded;
	int ret;

	if (!mkdtemp(directory))
		return -errno;
	snprintf(path, sizeof(path), "%s/routes", directory);
	ret = write_routes(contest, path);
	for (unsigned i = 0; ret == 0 && i < BENCH_ROUNDS; i++) {
		void *fib;

		ret = route_ours.create(&fib, &contest->set, 0);
		if (ret < 0)
			break;
		double begin = processor_s();

		ret = route_load_file(fib, path, NULL, NULL, &loaded, &error);
		row.ours[i] = contest->set.n / (processor_s() - begin);
		row.theirs[i] = GOAL_LOAD;
		route_ours.destroy(fib);
	}
	unlink(path);
	rmdir(directory);
	row.against = "goal";
	row.goal = 1;
	row.rate = true;
	if (ret == 0)
		bench_print(&row, contest->json);
	else
		fprintf(stderr, "millrace: bench route: %s\n",
			error.text[0] ? error.text : strerror(-ret));
	return ret;
}

static int run(struct contest *contest, const struct bench_options *options)
{
	static const struct {
		const char *measure;
		const struct route_side *side;
		unsigned burst;
	} rows[] = {{"lookup", &route_ours, BURST}, {"lookup_burst32", &route_ours, BURST / 2},
		{"direct", &route_direct, BURST}, {"direct_burst32", &route_direct, BURST / 2}};
	const char *list = options->measures;
	int ret = compare(contest);

	for (unsigned i = 0; ret == 0 && i < RTE_DIM(rows); i++) {
		void *state = rows[i].side == &route_direct ? contest->direct : contest->ours;

		if (state && bench_asked(list, rows[i].measure))
			lookups(contest, rows[i].measure, rows[i].side, state, rows[i].burst);
	}
	if (ret == 0 && bench_asked(list, "memory"))
		memory(contest);
	if (ret == 0 && bench_asked(list, "load"))
		ret = load(contest);
	if (ret == 0 && (bench_asked(list, "add") || bench_asked(list, "delete") ||
				bench_asked(list, "change")))
		ret = changes(contest, options);
	/* the last: DPDK 22.11's tables are not whole after it */
	if (ret == 0 && (bench_asked(list, "churn_failed") || bench_asked(list, "churn_memory")))
		churn(contest);
	return ret;
}

int bench_route(const struct bench_options *options)
{
	unsigned n_sizes = options->n_flows == 0 ? 1 : options->n_flows;
	struct contest contest;
	struct error error;
	int ret = dpdk_start(512, &error);

	if (ret < 0) {
		fprintf(stderr, "millrace: bench route: %s\n", error.text);
		return ret;
	}
	route_socket = bench_heap_create(HEAP_BYTES);
	ret = route_socket < 0 ? route_socket : 0;
	bench_pin();
	bench_print_head(options->json);
	for (unsigned size = 0; ret == 0 && size < n_sizes; size++) {
		for (unsigned i = 0; ret == 0 && route_loads[i]; i++) {
			if (!bench_asked(options->loads, route_loads[i]))
				continue;
			ret = begin_contest(&contest, route_loads[i],
				options->n_flows == 0 ? 0 : options->flows[size], options->json);
			if (ret == 0)
				ret = run(&contest, options);
			end_contest(&contest);
		}
	}
	dpdk_stop();
	return ret;
}
