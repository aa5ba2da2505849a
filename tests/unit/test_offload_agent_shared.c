/* SPDX-License-Identifier: BSD-3-Clause */
/* Two workers and the rules of one NIC: whose flow is busier gets a place, whoever had it. */
#include "agent_crowd.h"

enum { WORKERS = 2, ROOM = 8 };

/* That worker's flows have so many packets a second, the next one of it so many more. */
static void busy(struct crowd *crowd, unsigned worker, uint32_t pps, uint32_t more)
{
	for (unsigned i = worker; i < CROWD_FLOWS; i += WORKERS) {
		crowd->pps[i] = pps;
		pps += more;
	}
}

static unsigned n_held_by(struct crowd *crowd, unsigned worker)
{
	unsigned n = 0;

	for (unsigned i = worker; i < CROWD_FLOWS; i += WORKERS)
		n += crowd_is_held(crowd, i);
	return n;
}

static unsigned n_removed(void)
{
	return atomic_load(&crowd_nic()->n_asked[INSTALLER_REMOVE]);
}

/* What one has, the other gets, one place after the other; and back. */
static void places_go_to_the_other(void **state)
{
	struct crowd crowd;

	(void)state;
	for (unsigned first = 0; first < WORKERS; first++) {
		crowd_begin(&crowd, WORKERS, ROOM);
		busy(&crowd, first, 500, 50);
		busy(&crowd, !first, 0, 0);
		crowd_pass(&crowd, 4000);
		assert_in_range(n_held_by(&crowd, first), ROOM - 1, ROOM);
		busy(&crowd, !first, 3000, 200);
		crowd_pass(&crowd, 6000);
		assert_int_equal(n_held_by(&crowd, first), 0);
		assert_in_range(n_held_by(&crowd, !first), ROOM - 1, ROOM);
		crowd_assert_busiest(&crowd);
		busy(&crowd, first, 20000, 1000);
		crowd_pass(&crowd, 6000);
		assert_int_equal(n_held_by(&crowd, !first), 0);
		assert_in_range(n_held_by(&crowd, first), ROOM - 1, ROOM);
		assert_int_equal(crowd.most_rules, ROOM);
		crowd_end(&crowd);
	}
}

/* Busy ones at both: each has its part, and nothing moves while nothing changes. */
static void both_have_their_busiest(void **state)
{
	struct crowd crowd;

	(void)state;
	crowd_begin(&crowd, WORKERS, ROOM);
	crowd_pass(&crowd, 6000);
	assert_in_range(crowd_n_held(&crowd), ROOM - 1, ROOM);
	crowd_assert_busiest(&crowd);
	crowd_turn_around(&crowd);
	crowd_pass(&crowd, 8000);
	assert_in_range(crowd_n_held(&crowd), ROOM - 1, ROOM);
	crowd_assert_busiest(&crowd);
	for (unsigned worker = 0; worker < WORKERS; worker++)
		assert_in_range(n_held_by(&crowd, worker), 2, ROOM - 2);
	unsigned removed = n_removed();

	crowd_pass(&crowd, 5000);
	assert_true(n_removed() - removed <= 2);
	assert_int_equal(crowd.most_rules, ROOM);
	crowd_end(&crowd);
}

/* One flow of the second worker, the busiest of all, gets the one place that it needs, and nobody else leaves. */
static void one_place_is_made_for_one(void **state)
{
	struct crowd crowd;

	(void)state;
	crowd_begin(&crowd, WORKERS, ROOM);
	busy(&crowd, 0, 1000, 10);
	busy(&crowd, 1, 0, 0);
	crowd_pass(&crowd, 4000);
	unsigned held = n_held_by(&crowd, 0), removed = n_removed();

	crowd.pps[CROWD_FLOWS - 1] = 9000;
	crowd_pass(&crowd, 2000);
	assert_true(crowd_is_held(&crowd, CROWD_FLOWS - 1));
	assert_in_range(n_held_by(&crowd, 0), held - 1, ROOM - 1);
	assert_true(n_removed() - removed <= 2);
	crowd_end(&crowd);
}

/* Where the NIC lets no rule go, who waits for a place of the other's does not wait in the queue for ever. */
static void nobody_waits_for_what_stays(void **state)
{
	struct crowd crowd;
	unsigned queued = 0;

	(void)state;
	crowd_begin(&crowd, WORKERS, ROOM);
	busy(&crowd, 0, 500, 50);
	busy(&crowd, 1, 0, 0);
	crowd_pass(&crowd, 4000);
	atomic_store(&crowd_nic()->result[INSTALLER_REMOVE], -EIO);
	busy(&crowd, 1, 3000, 200);
	for (unsigned i = 0; i < 50; i++) {
		crowd_pass(&crowd, 100);
		queued += crowd.scene[1].agent->port[0].counters.flows[OFFLOAD_QUEUED] != 0;
	}
	assert_int_equal(n_held_by(&crowd, 1), 0);
	assert_in_range(crowd.scene[0].agent->port[0].n_stay, 1, ROOM);
	assert_in_range(queued, 0, 10);
	atomic_store(&crowd_nic()->result[INSTALLER_REMOVE], 0);
	crowd_pass(&crowd, 12000);
	assert_int_equal(crowd.scene[0].agent->port[0].n_stay, 0);
	assert_in_range(n_held_by(&crowd, 1), ROOM - 1, ROOM);
	crowd_end(&crowd);
}

/* So many strangers came to the first worker, and so many of them were ghosts. */
static void assert_strangers(struct crowd *crowd, unsigned strangers, unsigned ghosts)
{
	const struct agent_counters *counters = &crowd->scene[0].agent->port[0].counters;

	assert_int_equal(counters->strangers, strangers);
	assert_int_equal(counters->ghosts, ghosts);
}

/* A wrong mark that the second worker gave comes to the first: whoever gave it is of this run. */
static void marks_of_the_other_are_no_ghosts(void **state)
{
	struct crowd crowd;

	(void)state;
	crowd_begin(&crowd, WORKERS, CROWD_FLOWS);
	struct agent_scene *first = &crowd.scene[0], *second = &crowd.scene[1];
	const uint32_t generation = UINT32_C(1) << first->agent->wire[0].slots.number_bits;

	/* all flows are asked in at once */
	second->agent->config.threshold = 0;
	second->agent->config.min_packets = 1;
	agent_prove(second, crowd.flow[1], 0, 0);
	const uint32_t mark = agent_mark(second, crowd.flow[1]);

	agent_packet_with(first, crowd.flow[0], 0, 0, mark);
	assert_strangers(&crowd, 1, 0);
	/* one that nobody gave */
	agent_packet_with(first, crowd.flow[0], 0, 0, mark + generation);
	assert_strangers(&crowd, 2, 1);
	/* its rule may be at work for a while after its flow */
	agent_end(second, crowd.flow[1]);
	agent_packet_with(first, crowd.flow[0], 0, 0, mark);
	assert_strangers(&crowd, 3, 1);
	crowd_end(&crowd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_go_to_the_other),
		cmocka_unit_test(both_have_their_busiest),
		cmocka_unit_test(one_place_is_made_for_one),
		cmocka_unit_test(nobody_waits_for_what_stays),
		cmocka_unit_test(marks_of_the_other_are_no_ghosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
