/* SPDX-License-Identifier: BSD-3-Clause */
/* Of the twelve defects of test_offload_twelve.c those of many flows at a time, and of a slow NIC. */
#include "offload_live.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <netinet/in.h>

#include "dataplane/pipeline.h"
#include "offload_talks.h"
#include "packet/hash.h"

#define PROVEN_MS 20000

/* Flows from BUSY on are lesser ones. */
enum { BUSY = 10, LESSER = 300, TIMES = 32 };

/* How long a call is held up: longer than what is waited for meanwhile, which takes its time under a sanitizer. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define HELD_MS 40000
#define WAIT_MS 19000
#else
#define HELD_MS 9000
#define WAIT_MS 4000
#endif

/* Packets of one lesser flow in a second, as far as this machine gets. */
static uint64_t lesser_pps(const struct offload_live *live, uint64_t since_us)
{
	uint64_t packets = 0;

	for (uint32_t i = BUSY; i < BUSY + LESSER; i++)
		packets += live->flows[i].in[0];
	return packets * CLOCK_US_PER_S / LESSER / (live->now_us - since_us + 1);
}

/*
 * The queue is full of flows that are known for what they are: one that is taken for less than it is, as busy ones are
 * with their first packets, takes no place that it would lose again.
 */
static bool queue_is_settled(struct offload_live *live, void *begun_us)
{
	const struct queue *queue = &live->plane->lcores[0].worker.agent->port[0].queue;

	return queue->n == QUEUE_SIZE &&
	       rate_pps(queue->entry[0].rate) >= lesser_pps(live, *(uint64_t *)begun_us) * 2 / 5;
}

static bool is_busy(const struct offload_live *live, const struct flow_key *key)
{
	for (uint32_t i = 0; i < BUSY; i++)
		if (flow_key_equal(&live->flows[i].key, key))
			return true;
	return false;
}

static unsigned count_moves(const struct offload_live *live, bool busy, enum offload_state after)
{
	unsigned n = 0;

	for (unsigned i = 0; i < live->n_events; i++) {
		const struct offload_change *change = &live->events[i];

		n += change->kind == CHANGE_FLOW && change->after == after &&
		     is_busy(live, &change->key) == busy;
	}
	return n;
}

static bool all_busy_wait(struct offload_live *live, void *unused)
{
	(void)unused;
	return count_moves(live, true, OFFLOAD_QUEUED) == BUSY;
}

static bool all_busy_are_asked_for(struct offload_live *live, void *unused)
{
	(void)unused;
	return count_moves(live, true, OFFLOAD_INSTALLING) == BUSY;
}

static struct offload_live *begin_lesser_and_busy(void)
{
	static struct frame frames[BUSY + LESSER];
	static struct live_frame rounds[BUSY * TIMES + LESSER];
	unsigned n = 0;

	for (uint32_t i = 0; i < BUSY + LESSER; i++) {
		const struct talk talk = {"10.0.0.1", "10.0.0.2", IPPROTO_UDP, 1000 + i, 2000, 0};

		talk_frame(&frames[i], &talk, false);
		for (unsigned j = 0; j < (i < BUSY ? TIMES : 1); j++)
			rounds[n++] = (struct live_frame){&frames[i], i, 0};
	}
	return offload_live_begin(&(struct offload_live_options){
		.n_flows = BUSY + LESSER,
		.frames = rounds,
		.n_frames = n,
		.words = "async=0",
		.one_way = true,
		.rate = 310000,
		.threshold = 50,
	});
}

/* A NIC is held up, and all places are taken when the busy ones come. */
static void founding_09_busier_flows_go_first(void **state)
{
	struct offload_live *live = begin_lesser_and_busy();
	uint64_t begun_us = live->now_us;
	unsigned asked = 0;

	(void)state;
	for (uint32_t i = 0; i < BUSY; i++)
		live->flows[i].muted = true;
	offload_live_fault(live, 0, "late:ms=" RTE_STR(HELD_MS) ":times=1");
	assert_true(offload_live_until(live, queue_is_settled, &begun_us, WAIT_MS));
	offload_live_forget(live);
	for (uint32_t i = 0; i < BUSY; i++)
		live->flows[i].muted = false;
	assert_true(offload_live_until(live, all_busy_wait, NULL, WAIT_MS));
	/* others had to go for them, and say so (one may have for another, too); none of them had to */
	assert_true(count_moves(live, false, OFFLOAD_SOFTWARE) >= BUSY);
	assert_int_equal(count_moves(live, true, OFFLOAD_SOFTWARE), 0);
	assert_int_equal(count_moves(live, false, OFFLOAD_INSTALLING), 0);
	assert_true(offload_live_until(live, all_busy_are_asked_for, NULL, HELD_MS + PROVEN_MS));
	for (unsigned i = 0; i < live->n_events && asked < BUSY; i++) {
		const struct offload_change *change = &live->events[i];

		if (change->kind != CHANGE_FLOW)
			continue;
		if (change->after == OFFLOAD_SOFTWARE)
			assert_int_equal(change->reason, OFFLOAD_DISPLACED);
		if (change->after != OFFLOAD_INSTALLING)
			continue;
		assert_true(is_busy(live, &change->key));
		asked++;
	}
	offload_live_end(live);
}

struct refusing {
	const char *words;
	int error;
	const char *said;
	bool seen[32];
};

static bool all_are_told(struct offload_live *live, void *context)
{
	struct refusing *refusing = context;
	bool all = true;

	for (uint32_t i = 0; i < live->options.n_flows; i++) {
		struct plane_flow answer;

		if (refusing->seen[i] || offload_live_proven(live, &live->flows[i]))
			continue;
		all = false;
		if (!offload_live_knows(live, &live->flows[i]))
			continue;
		offload_live_ask(live, &live->flows[i], &answer);
		if (answer.offload.state[offload_live_from(&answer.record, 0)] != OFFLOAD_REFUSED)
			continue;
		const struct refusal *refusal =
			refusal_of(installer_refusals(plane_installer(live->plane, 0)),
				answer.offload.reason[offload_live_from(&answer.record, 0)]);

		assert_non_null(refusal);
		assert_int_equal(refusal->error, refusing->error);
		assert_string_equal(refusal->words, refusing->said);
		assert_true(answer.retry_us[offload_live_from(&answer.record, 0)] > answer.now_us);
		refusing->seen[i] = true;
	}
	return all;
}

/* A NIC with room for eight: each of the others says that, in its driver's words. */
static void founding_09_refusals_are_told_of_each_flow(void **state)
{
	struct refusing kinds[] = {
		{.words = "async=0,hostile=0,rules=8",
			.error = ENOSPC,
			.said = "the table is full"},
		{.words = "profile=x710,rules=8",
			.error = ENOBUFS,
			.said = "Not supported action."},
		{.words = "profile=cx5,rules=8", .error = ENOMEM, .said = "the table is full"},
	};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(kinds); i++) {
		struct offload_live *live = offload_live_begin(&(struct offload_live_options){
			.n_flows = 32, .words = kinds[i].words, .one_way = true, .rate = 30000});
		unsigned refused = 0;

		assert_true(offload_live_until(live, all_are_told, &kinds[i], PROVEN_MS));
		for (uint32_t j = 0; j < 32; j++)
			refused += kinds[i].seen[j];
		assert_int_equal(refused, 24);
		assert_int_equal(offload_live_rules(live, 0), 8);
		offload_live_end(live);
	}
}

/* Keys that share 16 bits of the hash under one secret. */
static unsigned collide(const struct hash_secret *secret, struct flow_key *keys, unsigned max)
{
	struct flow_key key = {.proto = IPPROTO_TCP, .version_wire = FLOW_KEY_VERSION_WIRE(4, 0)};
	unsigned n = 0;

	for (uint32_t i = 0; n < max; i++) {
		memcpy(key.addr[0], &i, sizeof(i));
		if ((uint16_t)(flow_key_hash(secret, &key) >> 32) == 0)
			keys[n++] = key;
	}
	return n;
}

/* What collides in one run does not in the next. */
static void founding_10_hashes_are_keyed_anew_each_run(void **state)
{
	enum { KEYS = 64 };
	struct hash_secret secrets[2];
	struct flow_key keys[KEYS];
	unsigned same = 0;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct offload_live *live = offload_live_begin(
			&(struct offload_live_options){.n_flows = 2, .rate = 1000});

		secrets[i] = live->plane->secret;
		offload_live_end(live);
	}
	assert_int_equal(collide(&secrets[0], keys, KEYS), KEYS);
	for (unsigned i = 0; i < KEYS; i++)
		for (unsigned j = 0; j < i; j++)
			same += (uint16_t)(flow_key_hash(&secrets[1], &keys[i]) >> 32) ==
				(uint16_t)(flow_key_hash(&secrets[1], &keys[j]) >> 32);
	/* 2,016 pairs, of which one in 65,536 would be expected */
	assert_in_range(same, 0, 3);
}

static unsigned looked_up_together(const struct offload_live *live)
{
	const struct pipeline *pipeline = live->plane->lcores[0].pipeline;

	/* in a small table no burst waits for another: it is always the same one */
	return pipeline->burst[pipeline->next].up.n;
}

/* A burst without marks is looked up whole, and one with marks not at all. */
static void founding_10_look_up_is_by_burst(void **state)
{
	static const bool offloads[] = {true, false};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(offloads); i++) {
		struct offload_live *live = offload_live_begin(
			&(struct offload_live_options){.n_flows = 2 * LCORE_MARKED_BURST,
				.one_way = true,
				.rate = 100000,
				.threshold = offloads[i] ? 0 : 1000000000});

		if (offloads[i])
			assert_true(
				offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
		else
			offload_live_run(live, 50);
		offload_live_check(live);
		uint64_t before = offload_live_received(live, 0);

		/* two bursts that come at once */
		live->side[0].budget[0] = 2 * LCORE_MARKED_BURST * UINT64_C(1000000);
		live->options.rate = 0;
		offload_live_turn(live);
		assert_int_equal(offload_live_received(live, 0), before + 2 * LCORE_MARKED_BURST);
		assert_int_equal(looked_up_together(live), offloads[i] ? 0 : LCORE_MARKED_BURST);
		offload_live_end(live);
	}
}

/* What a worker did while one call of the NIC was under way. */
struct held {
	uint64_t call_us; /* when the call began that is under way; 0: none */
	uint64_t since_us, packets;
	uint64_t all_us, all_packets;
	unsigned all_turns, calls;
};

static bool has_seen_calls(struct offload_live *live, void *context)
{
	struct held *held = context;
	uint64_t call_us = atomic_load_explicit(
		&installer_counters(plane_installer(live->plane, 0))->oldest_us,
		memory_order_relaxed);
	uint64_t packets = offload_live_received(live, 0);

	if (call_us != 0 && call_us == held->call_us) {
		held->all_turns++;
		held->all_us += live->now_us - held->since_us;
		held->all_packets += packets - held->packets;
	} else {
		held->calls += held->call_us != 0;
		held->call_us = call_us;
	}
	held->since_us = live->now_us;
	held->packets = packets;
	return held->calls >= 50;
}

/* Calls of 11 ms, one after the other, to insert and to delete. */
static void founding_11_a_slow_nic_holds_up_no_worker(void **state)
{
	enum { RATE = 20000 };
	struct offload_live *live =
		offload_live_begin(&(struct offload_live_options){.n_flows = 128,
			.words = "profile=x710-stock,spin=0",
			.one_way = true,
			.rate = RATE});
	struct held inserts = {0}, deletes = {0};

	(void)state;
	assert_true(offload_live_until(live, has_seen_calls, &inserts, PROVEN_MS));
	assert_true(offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
	for (uint32_t i = 0; i < live->options.n_flows; i++)
		offload_live_kill(live, &live->flows[i]);
	assert_true(offload_live_until(live, has_seen_calls, &deletes, PROVEN_MS));
	for (unsigned i = 0; i < 2; i++) {
		const struct held *held = i == 0 ? &inserts : &deletes;

		/*
		 * A worker that waited for the call would never turn twice within one. How many turns there
		 * are else depends on the machine, as a call takes 11,000 us by the clock.
		 */
		print_message("%u turns in %u calls, %lu packets in %lu us of them\n",
			held->all_turns, held->calls, held->all_packets, held->all_us);
		assert_true(held->all_turns >= held->calls / 2);
		/* packets are paced by the clock: that time's came, and were counted */
		assert_true(held->all_packets > 0);
		assert_true(held->all_packets * 1000000 >= held->all_us * RATE / 4);
	}
	offload_live_end(live);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(founding_09_busier_flows_go_first, offload_live_tidy),
		cmocka_unit_test_teardown(
			founding_09_refusals_are_told_of_each_flow, offload_live_tidy),
		cmocka_unit_test_teardown(
			founding_10_hashes_are_keyed_anew_each_run, offload_live_tidy),
		cmocka_unit_test_teardown(founding_10_look_up_is_by_burst, offload_live_tidy),
		cmocka_unit_test_teardown(
			founding_11_a_slow_nic_holds_up_no_worker, offload_live_tidy),
	};

	/* one of them alone, for whoever looks for something */
	cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
	return cmocka_run_group_tests(tests, offload_live_environment, NULL);
}
