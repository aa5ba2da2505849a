/* SPDX-License-Identifier: BSD-3-Clause */
/* Who gets the rules of a NIC that has too few: the busiest, within what it has room and time for. */
#include <sched.h>

#include "agent_scene.h"

#define FLOWS 24
/* What is waited for at first after a rule stayed. */
#define STAYS_US 1000000

struct crowd {
	struct agent_scene scene;
	uint32_t flow[FLOWS];
	uint32_t pps[FLOWS];
	uint64_t begin_us;
	uint64_t sent[FLOWS];
	unsigned most_rules;
};

static struct agent_nic *nic(void)
{
	return &agent_nics[0];
}

/* A hundred packets a second, two hundred, ... */
static void begin(struct crowd *crowd, unsigned room)
{
	*crowd = (struct crowd){.most_rules = 0};
	agent_scene_begin(&crowd->scene, 64, false);
	crowd->scene.agent->config.threshold = 1;
	crowd->scene.agent->config.min_packets = 4;
	atomic_store(&nic()->room, room);
	for (unsigned i = 0; i < FLOWS; i++) {
		crowd->flow[i] = agent_flow(&crowd->scene, IPPROTO_UDP, (uint16_t)(i + 1));
		agent_record(&crowd->scene, crowd->flow[i])->start_us =
			crowd->scene.now_us & CLOCK_MAX_US;
		crowd->pps[i] = 100 * (i + 1);
	}
	crowd->begin_us = crowd->scene.now_us;
}

static bool is_held(struct crowd *crowd, unsigned i)
{
	return agent_state(&crowd->scene, crowd->flow[i], 0) >= OFFLOAD_SUSPECT;
}

/* Each packet is marked by its rule, or sampled. */
static void send_packet(struct crowd *crowd, unsigned i)
{
	struct agent_scene *scene = &crowd->scene;

	if (is_held(crowd, i)) {
		agent_packet(scene, crowd->flow[i], 0, 0, true);
	} else {
		agent_record(scene, crowd->flow[i])->packets_low[0]++;
		agent_sample(scene->agent, crowd->flow[i], 0, 0);
	}
}

static bool is_awaited(const struct agent *agent)
{
	const struct agent_wire *wire = &agent->wire[0];

	for (uint32_t i = 0; i < wire->n_used; i++)
		if (slots_slot(&wire->slots, wire->used[i].slot)->side[0].awaited)
			return true;
	return false;
}

/* Time stands still until the NIC has done what it was asked for. */
static void await(struct crowd *crowd)
{
	struct agent *agent = crowd->scene.agent;
	const uint64_t from_us = monotonic_us();

	while (is_awaited(agent)) {
		if (monotonic_us() - from_us > AGENT_WAIT_US)
			fail_msg("the installer does not answer");
		sched_yield();
		agent_turn(agent, crowd->scene.now_us);
	}
}

static void pass(struct crowd *crowd, unsigned ms)
{
	for (unsigned now = 0; now < ms; now++) {
		for (unsigned i = 0; i < FLOWS; i++) {
			uint64_t due = crowd->pps[i] * UINT64_C(1000);

			for (crowd->sent[i] += due; crowd->sent[i] >= CLOCK_US_PER_S;
				crowd->sent[i] -= CLOCK_US_PER_S)
				send_packet(crowd, i);
		}
		agent_pass_ms(&crowd->scene, 1);
		await(crowd);
		unsigned rules = atomic_load(&nic()->n_rules);

		if (rules > crowd->most_rules)
			crowd->most_rules = rules;
	}
}

static unsigned n_held(struct crowd *crowd)
{
	unsigned n = 0;

	for (unsigned i = 0; i < FLOWS; i++)
		n += is_held(crowd, i);
	return n;
}

/* All that are held are busier than the first that is not, but for what hysteresis leaves as it is. */
static void assert_busiest(struct crowd *crowd)
{
	uint32_t least = UINT32_MAX, most = 0;

	for (unsigned i = 0; i < FLOWS; i++) {
		if (is_held(crowd, i) && crowd->pps[i] < least)
			least = crowd->pps[i];
		if (!is_held(crowd, i) && crowd->pps[i] > most)
			most = crowd->pps[i];
	}
	assert_true(most <= least + least * 6 / 10);
}

static void turn_around(struct crowd *crowd)
{
	for (unsigned i = 0; i < FLOWS; i++)
		crowd->pps[i] = 100 * (FLOWS - i);
}

static void the_busiest_have_the_rules(void **state)
{
	struct crowd crowd;

	(void)state;
	begin(&crowd, 8);
	pass(&crowd, 5000);
	assert_in_range(n_held(&crowd), 7, 8);
	assert_busiest(&crowd);
	/* who comes is not who stays */
	turn_around(&crowd);
	pass(&crowd, 5000);
	assert_in_range(n_held(&crowd), 7, 8);
	assert_busiest(&crowd);
	assert_int_equal(crowd.most_rules, 8);
	/* nothing moves while nothing changes, but for a look now and then whether there is more room */
	unsigned inserts = atomic_load(&nic()->n_asked[INSTALLER_INSERT]);

	pass(&crowd, 5000);
	assert_true(atomic_load(&nic()->n_asked[INSTALLER_INSERT]) - inserts <= 8);
	agent_scene_end(&crowd.scene);
}

/* A NIC that lets no rule go: few leave for nothing, and nobody waits for their places. */
static void nobody_waits_for_rules_that_stay(void **state)
{
	struct crowd crowd;
	unsigned queued = 0;

	(void)state;
	begin(&crowd, 8);
	pass(&crowd, 5000);
	const struct agent_port *port = &crowd.scene.agent->port[0];

	atomic_store(&nic()->result[INSTALLER_REMOVE], -EIO);
	turn_around(&crowd);
	for (unsigned i = 0; i < 50; i++) {
		pass(&crowd, 100);
		queued += port->counters.flows[OFFLOAD_QUEUED] != 0;
	}
	assert_in_range(port->n_stay, 1, 8);
	assert_int_equal(port->n_stay, port->counters.flows[OFFLOAD_LEAVING]);
	assert_true(port->stay_us > STAYS_US);
	assert_in_range(queued, 0, 3);
	/* it does as it is told again: so does everybody */
	atomic_store(&nic()->result[INSTALLER_REMOVE], 0);
	pass(&crowd, 8000);
	assert_int_equal(port->n_stay, 0);
	assert_in_range(n_held(&crowd), 7, 8);
	assert_busiest(&crowd);
	agent_scene_end(&crowd.scene);
}

/* Two that are nearly alike do not change places all the time. */
static void nearly_alike_stay_where_they_are(void **state)
{
	struct crowd crowd;

	(void)state;
	begin(&crowd, 12);
	for (unsigned i = 0; i < FLOWS; i++)
		crowd.pps[i] = 1000 + 5 * i;
	pass(&crowd, 3000);
	unsigned removes = atomic_load(&nic()->n_asked[INSTALLER_REMOVE]);

	pass(&crowd, 5000);
	assert_true(atomic_load(&nic()->n_asked[INSTALLER_REMOVE]) - removes <= 2);
	assert_in_range(n_held(&crowd), 11, 12);
	agent_scene_end(&crowd.scene);
}

static void a_limit_is_kept(void **state)
{
	struct crowd crowd;

	(void)state;
	begin(&crowd, 0);
	crowd.scene.agent->config.rules = 5;
	pass(&crowd, 4000);
	turn_around(&crowd);
	pass(&crowd, 4000);
	assert_int_equal(crowd.most_rules, 5);
	assert_busiest(&crowd);
	assert_int_equal(crowd.scene.agent->port[0].counters.refused, 0);
	agent_scene_end(&crowd.scene);
}

/* What other workers' flows have of it is known a moment later: no refusal of the NIC's, and nothing to hide. */
static void others_have_what_there_may_be(void **state)
{
	const struct agent_scene as = {.threshold = 0, .limit = 2};
	struct agent_scene scene;
	uint32_t flow[3];

	(void)state;
	agent_scene_begin_as(&scene, 64, false, &as);
	for (unsigned i = 0; i < RTE_DIM(flow); i++) {
		flow[i] = agent_flow(&scene, IPPROTO_UDP, (uint16_t)(i + 1));
		agent_ask_in(&scene, flow[i], 0, 0);
	}
	assert_int_equal(agent_state(&scene, flow[1], 0), OFFLOAD_ACCEPTED);
	assert_int_equal(agent_state(&scene, flow[2], 0), OFFLOAD_SOFTWARE);
	assert_int_equal(agent_record(&scene, flow[2])->reason[0], OFFLOAD_OUTRANKED);
	assert_int_equal(scene.agent->port[0].counters.refused, 0);
	assert_int_equal(atomic_load(&nic()->n_rules), 2);
	agent_scene_end(&scene);
}

static unsigned n_asked(void)
{
	return atomic_load(&nic()->n_asked[INSTALLER_INSERT]) +
	       atomic_load(&nic()->n_asked[INSTALLER_REMOVE]);
}

/* Ten rules a second: made, or taken away for others, or since flows end. */
static void no_second_has_more_rules_than_it_may(void **state)
{
	enum { A_SECOND = 10, SECONDS = 8, PARTS = 10 };
	unsigned asked[SECONDS * PARTS + 1];
	uint64_t us[SECONDS * PARTS + 1];
	struct crowd crowd;

	(void)state;
	begin(&crowd, 8);
	crowd.scene.agent->port[0].budget.per_s = A_SECOND;
	asked[0] = n_asked();
	us[0] = crowd.scene.now_us;
	for (unsigned i = 1; i <= SECONDS * PARTS; i++) {
		if (i == 30 || i == 65)
			turn_around(&crowd);
		for (unsigned j = 0; i == 50 && j < FLOWS; j++)
			crowd.pps[j] = j % 3 == 0 ? 5000 : 1;
		pass(&crowd, 1000 / PARTS);
		asked[i] = n_asked();
		us[i] = crowd.scene.now_us;
		for (unsigned j = 0; j < i; j++)
			assert_true((uint64_t)(asked[i] - asked[j]) * CLOCK_US_PER_S <=
				    (us[i] - us[j]) * A_SECOND + CLOCK_US_PER_S);
	}
	assert_true(asked[SECONDS * PARTS] >= 4 * A_SECOND);
	agent_scene_end(&crowd.scene);
}

/* The NIC's table was full, and is so no more. */
static void more_room_is_found(void **state)
{
	struct crowd crowd;

	(void)state;
	begin(&crowd, 4);
	pass(&crowd, 3000);
	assert_int_equal(crowd.most_rules, 4);
	unsigned refused = (unsigned)crowd.scene.agent->port[0].counters.refused;

	pass(&crowd, 4000);
	/* once it is known to be full, it is asked for one more now and then */
	assert_true(crowd.scene.agent->port[0].counters.refused - refused <= 4);
	atomic_store(&nic()->room, 20);
	for (unsigned i = 0; i < 20 && n_held(&crowd) < 20; i++)
		pass(&crowd, 1000);
	assert_int_equal(n_held(&crowd), 20);
	agent_scene_end(&crowd.scene);
}

static void ranks_are_told(void **state)
{
	struct flow_offload view;
	struct agent_rank rank;
	struct crowd crowd;

	(void)state;
	begin(&crowd, 8);
	pass(&crowd, 6000);
	agent_rank(crowd.scene.agent, crowd.flow[FLOWS - 1], 0, &rank);
	assert_in_range(rate_pps(rank.rate), 2300, 2500);
	assert_int_equal(rank.rank, 1);
	assert_in_range(rank.held, 7, 8);
	assert_in_range(rank.room, 8, 9);
	agent_rank(crowd.scene.agent, crowd.flow[1], 0, &rank);
	assert_in_range(rate_pps(rank.rate), 150, 250);
	assert_in_range(rank.rank, 8, 9);
	assert_true(rank.rate < rank.bar);
	agent_view(crowd.scene.agent, agent_record(&crowd.scene, crowd.flow[1]), &view);
	assert_int_equal(view.state[0], OFFLOAD_SOFTWARE);
	assert_string_equal(offload_reason_name(view.reason[0]), "outranked");
	/* what any flow would need */
	const uint32_t needed = rank.bar;

	assert_true(agent_bar(crowd.scene.agent, 0, &rank));
	assert_int_equal(rank.bar, needed);
	assert_false(rank.has_room);
	assert_int_equal(rank.rank, 0);
	/* of the other direction nothing came */
	agent_rank(crowd.scene.agent, crowd.flow[1], 1, &rank);
	assert_int_equal(rank.rate, 0);
	agent_scene_end(&crowd.scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_busiest_have_the_rules),
		cmocka_unit_test(nobody_waits_for_rules_that_stay),
		cmocka_unit_test(nearly_alike_stay_where_they_are),
		cmocka_unit_test(a_limit_is_kept),
		cmocka_unit_test(others_have_what_there_may_be),
		cmocka_unit_test(no_second_has_more_rules_than_it_may),
		cmocka_unit_test(more_room_is_found),
		cmocka_unit_test(ranks_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
