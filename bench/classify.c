/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The classifier, as the first packets of flows use it: every header is new to the run. Rounds make their
 * headers first; then each contender, in turn, looks all of them up in bursts of 64, the first thousand
 * outside of the time. It is handed a few hundred at a time, just copied to where it wants them, so that they are as
 * warm as after extraction. All contenders have to find the same rules.
 */
#include "bench/classify.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "base/dpdk.h"
#include "base/monotonic.h"
#include "bench/memory.h"

#define HEADERS CLASSIFY_MAX_HEADERS
#define WARM 1024
#define PART CLASSIFY_PREPARED
#define BURST CLASSIFIER_BURST

/* For rte_acl's tables and its user's hashes. */
#define HEAP_BYTES ((size_t)3 << 30)

#define MANY_MASKS 1000
#define FEW_MASKS 20
#define EXPLOSION_RULES 10000

#define GOAL_EACH (1 / 1.5)
#define GOAL_MEDIAN 2.0
#define GOAL_TUPLES 4.0
#define GOAL_UPDATE 1000.0
#define GOAL_RATE 5000.0
#define GOAL_EXPLOSION (1 / 3.0)
#define GOAL_BYTES 200.0

#define CHANGE_US 100000

static struct classifier_header headers[HEADERS];

static bool wanted(const struct bench_options *options, const char *measure)
{
	return bench_asked(options->measures, measure);
}

static struct bench_row row_of(const char *measure, const char *load, uint32_t rules)
{
	return (struct bench_row){.bench = "classify",
		.measure = measure,
		.load = load,
		.flows = rules,
		.unit = "cycles",
		.rounds = BENCH_ROUNDS};
}

static void say(const char *load, uint32_t rules, const char *what, int code)
{
	fprintf(stderr, "millrace: bench classify: %s, %u rules: %s: %s\n", load, rules, what,
		strerror(-code));
}

/* Cycles a header: the median of parts, so that what interrupts the thread does not count. */
static double measure(const struct classify_side *side, void *state)
{
	double parts[HEADERS / PART];
	uint32_t ids[BURST], sum = 0;

	for (unsigned part = 0; part < HEADERS / PART; part++) {
		side->prepare(state, headers + (size_t)part * PART, PART);
		uint64_t begin = rte_rdtsc();

		for (unsigned at = 0; at < PART; at += BURST) {
			side->find(state, at, BURST, ids);
			sum += ids[0];
		}
		parts[part] = (double)(rte_rdtsc() - begin) / PART;
	}
	/* the compiler must not know that nobody needs them */
	__asm__ volatile("" : : "r"(sum));
	return bench_median(parts + WARM / PART, (HEADERS - WARM) / PART);
}

/* All contenders of a set; NULL where one cannot take it. */
struct contest {
	const char *load;
	struct classify_set set;
	void *ours, *acl, *tuples;
	uint64_t random;
};

static void end_contest(struct contest *contest)
{
	if (contest->ours)
		classify_ours.destroy(contest->ours);
	if (contest->acl)
		classify_acl.destroy(contest->acl);
	if (contest->tuples)
		classify_tuples.destroy(contest->tuples);
	classify_set_free(&contest->set);
}

static void begin_side(
	const struct contest *contest, const struct classify_side *side, void **state)
{
	int ret = side->create(state, &contest->set);

	if (ret < 0) {
		say(contest->load, contest->set.n, side->name, ret);
		*state = NULL;
	}
}

static int begin_contest(struct contest *contest, const struct bench_options *options,
	const char *load, uint32_t rules)
{
	*contest = (struct contest){.load = load, .random = 1};
	int ret = classify_set_make(&contest->set, load, rules);

	if (ret == 0)
		ret = classify_ours.create(&contest->ours, &contest->set);
	if (ret < 0) {
		say(load, rules, "ours", ret);
		end_contest(contest);
		return ret;
	}
	if (bench_asked(options->against, "rte_acl"))
		begin_side(contest, &classify_acl, &contest->acl);
	if (bench_asked(options->against, "tuple_space"))
		begin_side(contest, &classify_tuples, &contest->tuples);
	return 0;
}

static int compare(struct contest *contest, const struct classify_side *side, void *state)
{
	uint32_t ours[BURST], theirs[BURST];

	if (!state)
		return 0;
	classify_headers(&contest->set, &contest->random, headers, HEADERS);
	for (unsigned at = 0; at < HEADERS; at += BURST) {
		classify_ours.prepare(contest->ours, headers + at, BURST);
		side->prepare(state, headers + at, BURST);
		classify_ours.find(contest->ours, 0, BURST, ours);
		side->find(state, 0, BURST, theirs);
		if (memcmp(ours, theirs, sizeof(ours)) != 0) {
			say(contest->load, contest->set.n, side->name, -EBADMSG);
			return -EBADMSG;
		}
	}
	return 0;
}

/* The ratios of the twelve sets to rte_acl, by round. */
struct ratios {
	double ratio[BENCH_ROUNDS][CLASSIFY_REAL_SETS];
	unsigned n;
};

static int find(struct contest *contest, const struct bench_options *options, struct ratios *ratios,
	bool counts)
{
	struct bench_row acl = row_of("find", contest->load, contest->set.n), tuples = acl;
	int ret = compare(contest, &classify_acl, contest->acl);

	if (ret == 0)
		ret = compare(contest, &classify_tuples, contest->tuples);
	if (ret < 0)
		return ret;
	acl.against = classify_acl.name;
	acl.goal = GOAL_EACH;
	tuples.against = classify_tuples.name;
	tuples.goal = GOAL_TUPLES;
	for (unsigned i = 0; i < BENCH_ROUNDS; i++) {
		classify_headers(&contest->set, &contest->random, headers, HEADERS);
		acl.ours[i] = tuples.ours[i] = measure(&classify_ours, contest->ours);
		if (contest->acl)
			acl.theirs[i] = measure(&classify_acl, contest->acl);
		if (contest->tuples)
			tuples.theirs[i] = measure(&classify_tuples, contest->tuples);
		if (contest->acl && counts)
			ratios->ratio[i][ratios->n] = acl.theirs[i] / acl.ours[i];
	}
	ratios->n += contest->acl && counts;
	if (contest->acl)
		bench_print(&acl, options->json);
	if (contest->tuples) {
		bench_print(&tuples, options->json);
		fprintf(stderr, "%s, %u rules: %u tables of tuple space\n", contest->load,
			contest->set.n, classify_tuples_number(contest->tuples));
	}
	return 0;
}

static void tell_median(struct ratios *ratios, const struct bench_options *options, uint32_t rules)
{
	struct bench_row row = row_of("find_median", "twelve", rules);

	if (ratios->n < CLASSIFY_REAL_SETS)
		return;
	row.unit = "times";
	row.against = "goal";
	row.rate = true;
	row.goal = 1;
	for (unsigned i = 0; i < BENCH_ROUNDS; i++) {
		row.ours[i] = bench_median(ratios->ratio[i], ratios->n);
		row.theirs[i] = GOAL_MEDIAN;
	}
	bench_print(&row, options->json);
}

/* Changes while another thread looks up. */

struct reader {
	void *side;
	const struct classify_set *set;
	atomic_bool stop;
	_Atomic uint64_t cycles, looked_up;
};

static void *read_on(void *context)
{
	static struct classifier_header mine[HEADERS];
	struct reader *reader = context;
	const struct classifier_header *pointers[BURST];
	struct classifier *classifier = classify_ours_classifier(reader->side);
	uint64_t random = 99;
	uint32_t ids[BURST];

	bench_pin();
	rte_rcu_qsbr_thread_register(classify_qsbr, CLASSIFY_READER);
	rte_rcu_qsbr_thread_online(classify_qsbr, CLASSIFY_READER);
	while (!atomic_load(&reader->stop)) {
		classify_headers(reader->set, &random, mine, BURST);
		for (unsigned i = 0; i < BURST; i++)
			pointers[i] = &mine[i];
		uint64_t begin = rte_rdtsc();

		classifier_find_burst(classifier, 0, pointers, ids, BURST);
		atomic_fetch_add(&reader->cycles, rte_rdtsc() - begin);
		atomic_fetch_add(&reader->looked_up, BURST);
		rte_rcu_qsbr_quiescent(classify_qsbr, CLASSIFY_READER);
	}
	rte_rcu_qsbr_thread_offline(classify_qsbr, CLASSIFY_READER);
	rte_rcu_qsbr_thread_unregister(classify_qsbr, CLASSIFY_READER);
	return NULL;
}

struct changes {
	unsigned long n;
	uint64_t add_cycles, remove_cycles;
	double find_cycles; /* a header, meanwhile */
	int error;
};

static void change_one(struct contest *contest, struct changes *changes)
{
	struct classifier *classifier = classify_ours_classifier(contest->ours);
	uint32_t at = (uint32_t)(classify_random(&contest->random) % contest->set.n);
	uint32_t *handle = &classify_ours_handles(contest->ours)[at];
	uint64_t begin = rte_rdtsc();

	changes->error = classifier_remove(classifier, *handle);
	uint64_t between = rte_rdtsc();

	do {
		if (changes->error == -EAGAIN)
			sched_yield();
		if (changes->error == 0 || changes->error == -EAGAIN)
			changes->error =
				classifier_add(classifier, &contest->set.rules[at], handle);
	} while (changes->error == -EAGAIN);
	changes->remove_cycles += between - begin;
	changes->add_cycles += rte_rdtsc() - between;
	changes->n++;
}

/* For a while, with changes or without. */
static struct changes run_beside(struct contest *contest, struct reader *reader, bool change)
{
	struct changes changes = {0};
	uint64_t cycles = atomic_load(&reader->cycles);
	uint64_t looked_up = atomic_load(&reader->looked_up);
	uint64_t end = monotonic_us() + CHANGE_US;

	while (monotonic_us() < end && changes.error == 0) {
		if (change)
			change_one(contest, &changes);
		else
			sched_yield();
	}
	looked_up = atomic_load(&reader->looked_up) - looked_up;
	changes.find_cycles = (double)(atomic_load(&reader->cycles) - cycles) /
			      (double)RTE_MAX(looked_up, UINT64_C(1));
	return changes;
}

struct update_rows {
	struct bench_row insert, delete, update, beside;
};

static int fill_updates(struct contest *contest, struct reader *reader, struct update_rows *rows)
{
	double hz = (double)rte_get_tsc_hz();

	for (unsigned i = 0; i < BENCH_ROUNDS; i++) {
		struct changes quiet = run_beside(contest, reader, false);
		struct changes changes = run_beside(contest, reader, true);

		if (changes.error < 0)
			return changes.error;
		double n = (double)changes.n;

		rows->insert.ours[i] = n * hz / (double)changes.add_cycles;
		rows->delete.ours[i] = n * hz / (double)changes.remove_cycles;
		rows->insert.theirs[i] = rows->delete.theirs[i] = GOAL_RATE;
		rows->update.ours[i] =
			(double)(changes.add_cycles + changes.remove_cycles) / 2 / n / hz * 1e6;
		rows->update.theirs[i] =
			contest->acl ? classify_acl_build_s(contest->acl) * 1e6 : 0;
		rows->beside.ours[i] = changes.find_cycles;
		rows->beside.theirs[i] = quiet.find_cycles;
	}
	return 0;
}

static int update(struct contest *contest, const struct bench_options *options)
{
	const char *load = contest->load;
	uint32_t rules = contest->set.n;
	struct update_rows rows = {row_of("insert", load, rules), row_of("delete", load, rules),
		row_of("update", load, rules), row_of("find_changing", load, rules)};
	struct reader reader = {.side = contest->ours, .set = &contest->set};
	pthread_t thread;
	int ret = -pthread_create(&thread, NULL, read_on, &reader);

	if (ret < 0)
		return ret;
	ret = fill_updates(contest, &reader, &rows);
	atomic_store(&reader.stop, true);
	pthread_join(thread, NULL);
	if (ret < 0) {
		say(load, rules, "changes", ret);
		return ret;
	}
	rows.insert.against = rows.delete.against = "goal";
	rows.insert.unit = rows.delete.unit = "1/s";
	rows.insert.rate = rows.delete.rate = true;
	rows.insert.goal = rows.delete.goal = 1;
	rows.update.against = "rte_acl_build";
	rows.update.unit = "us";
	rows.update.goal = GOAL_UPDATE;
	rows.beside.against = "no_change";
	bench_print(&rows.insert, options->json);
	bench_print(&rows.delete, options->json);
	if (contest->acl)
		bench_print(&rows.update, options->json);
	bench_print(&rows.beside, options->json);
	/* what came in again last is found like the rest */
	return 0;
}

static void bytes(const struct contest *contest, const struct bench_options *options)
{
	struct bench_row row = row_of("bytes_per_rule", contest->load, contest->set.n);
	size_t size = classifier_memory(classify_ours_classifier(contest->ours));

	row.unit = "bytes";
	row.against = "goal";
	row.goal = contest->set.n >= 7000 ? 1 : 0;
	row.rounds = 1;
	row.ours[0] = (double)size / contest->set.n;
	row.theirs[0] = GOAL_BYTES;
	bench_print(&row, options->json);
}

/* Many masks against few. */
static int explosion(const struct bench_options *options)
{
	struct bench_row row = row_of("explosion", "masks", EXPLOSION_RULES);
	struct classify_set many, few;
	void *sides[2] = {NULL, NULL};
	uint64_t random = 1;
	int ret = classify_set_masks(&many, MANY_MASKS, EXPLOSION_RULES);

	if (ret == 0)
		ret = classify_set_masks(&few, FEW_MASKS, EXPLOSION_RULES);
	if (ret == 0)
		ret = classify_ours.create(&sides[0], &many);
	if (ret == 0)
		ret = classify_ours.create(&sides[1], &few);
	for (unsigned i = 0; ret == 0 && i < BENCH_ROUNDS; i++) {
		classify_headers(&many, &random, headers, HEADERS);
		row.ours[i] = measure(&classify_ours, sides[0]);
		classify_headers(&few, &random, headers, HEADERS);
		row.theirs[i] = measure(&classify_ours, sides[1]);
	}
	row.against = "20_masks";
	row.goal = GOAL_EXPLOSION;
	if (ret == 0)
		bench_print(&row, options->json);
	for (unsigned i = 0; i < 2; i++)
		if (sides[i])
			classify_ours.destroy(sides[i]);
	classify_set_free(&many);
	classify_set_free(&few);
	return ret;
}

static int run_set(
	const struct bench_options *options, unsigned which, uint32_t rules, struct ratios *ratios)
{
	struct contest contest;
	int ret = begin_contest(&contest, options, classify_sets[which], rules);

	if (ret < 0)
		return ret;
	if (wanted(options, "find"))
		ret = find(&contest, options, ratios, which < CLASSIFY_REAL_SETS);
	if (wanted(options, "bytes_per_rule"))
		bytes(&contest, options);
	if (ret == 0 && wanted(options, "update"))
		ret = update(&contest, options);
	end_contest(&contest);
	return ret;
}

static int run_size(const struct bench_options *options, uint32_t rules)
{
	struct ratios ratios = {.n = 0};
	int ret = 0;

	for (unsigned i = 0; ret == 0 && classify_sets[i]; i++)
		if (bench_asked(options->loads, classify_sets[i]))
			ret = run_set(options, i, rules, &ratios);
	if (ret == 0 && wanted(options, "find"))
		tell_median(&ratios, options, rules);
	return ret;
}

/* Whether a measure that needs the rule sets is asked for. */
static bool wants_sets(const struct bench_options *options)
{
	return wanted(options, "find") || wanted(options, "bytes_per_rule") ||
	       wanted(options, "update");
}

static int start(void)
{
	struct error error;
	int ret = dpdk_start(512, &error);

	if (ret < 0) {
		fprintf(stderr, "millrace: bench classify: %s\n", error.text);
		return ret;
	}
	classify_socket = bench_heap_create(HEAP_BYTES);
	size_t size = RTE_ALIGN_CEIL(rte_rcu_qsbr_get_memsize(1), (size_t)RTE_CACHE_LINE_SIZE);

	classify_qsbr = aligned_alloc(RTE_CACHE_LINE_SIZE, size);
	if (!classify_qsbr)
		return -ENOMEM;
	rte_rcu_qsbr_init(classify_qsbr, 1);
	return classify_socket < 0 ? classify_socket : 0;
}

int bench_classify(const struct bench_options *options)
{
	static const uint32_t usual[] = {1000, 10000, 100000};
	const uint32_t *sizes = options->n_flows == 0 ? usual : options->flows;
	unsigned n = options->n_flows == 0 ? RTE_DIM(usual) : options->n_flows;
	cpu_set_t before;
	int ret = start();

	CPU_ZERO(&before);
	sched_getaffinity(0, sizeof(before), &before);
	bench_print_head(options->json);
	for (unsigned i = 0; ret == 0 && wants_sets(options) && i < n; i++)
		ret = run_size(options, sizes[i]);
	if (ret == 0 && wanted(options, "explosion"))
		ret = explosion(options);
	free(classify_qsbr);
	dpdk_stop();
	return ret;
}
