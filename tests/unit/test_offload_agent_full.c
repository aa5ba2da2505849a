/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows that the NIC is to forward alone: which are, how they come back, and who gets what it counted. */
#include "agent_scene.h"
#include "offload/agent_full.h"

#define SLOTS 16

static void begin(struct agent_scene *scene, uint32_t threshold)
{
	const struct agent_scene as = {.full = true, .threshold = threshold};

	agent_scene_begin_as(scene, SLOTS, false, &as);
}

static unsigned asked(unsigned port, enum provider_deed deed)
{
	return atomic_load(&agent_nics[port].n_deeds[deed]);
}

static struct flow_offload view_of(struct agent_scene *scene, uint32_t flow)
{
	struct flow_offload view;

	agent_view(scene->agent, agent_record(scene, flow), &view);
	return view;
}

/* Is a counter of that port asked for, and not told yet? */
static bool awaits_count(const struct agent_scene *scene, unsigned port)
{
	const struct slots *slots = &scene->agent->wire[0].slots;

	for (uint32_t i = 0; i < slots->n; i++)
		for (unsigned from = 0; from < 2; from++) {
			const struct slot_direction *of = &slots->slots[i].direction[from];

			if (of->port == port && of->count_awaited)
				return true;
		}
	return false;
}

/* A millisecond passes; what is asked of the NIC's counters in it is told in it. */
static void pass_answered(struct agent_scene *scene)
{
	agent_pass_ms(scene, 1);
	agent_until(scene, !awaits_count(scene, 0) && !awaits_count(scene, 1));
}

/* The NIC counts so many packets of all its rules, and is asked for that. */
static void count(struct agent_scene *scene, unsigned port, uint64_t packets)
{
	unsigned before;

	agent_until(scene, !awaits_count(scene, port));
	before = atomic_load(&agent_nics[port].n_asked[INSTALLER_COUNT]);
	atomic_store(&agent_nics[port].counter, packets);
	atomic_store(&agent_nics[port].last, packets);
	for (unsigned i = 0; i < 300; i++)
		pass_answered(scene);
	assert_true(atomic_load(&agent_nics[port].n_asked[INSTALLER_COUNT]) > before);
}

/* The direction is in the NIC, whole, and proven. */
static void prove(struct agent_scene *scene, uint32_t flow, unsigned side, unsigned from)
{
	agent_ask_in(scene, flow, side, from);
	assert_int_equal(agent_state(scene, flow, from), OFFLOAD_ACCEPTED);
	atomic_store(&agent_nics[side].counter, 10);
	atomic_store(&agent_nics[side].last, 10);
	for (unsigned i = 0; i < 1000 && agent_state(scene, flow, from) != OFFLOAD_PROVEN; i++)
		pass_answered(scene);
	assert_int_equal(agent_state(scene, flow, from), OFFLOAD_PROVEN);
	assert_true(view_of(scene, flow).full[from]);
}

/* A packet of TCP with these flags. */
static void segment(struct agent_scene *scene, uint32_t flow, unsigned side, uint8_t flags)
{
	struct flow_record *record = agent_record(scene, flow);
	struct packet_info info = {.key = record->key,
		.from = (uint8_t)side,
		.flags = PACKET_TCP,
		.tcp = {.flags = flags}};
	struct rte_mbuf packet = {.nb_segs = 1};
	uint8_t bytes[64];

	agent_headers(&packet, &info, bytes);
	record->count[side].packets_low++;
	mark_verify(scene->agent, side, &packet, flow, &info);
}

static void what_it_counts_is_credited(void **state)
{
	struct agent_scene scene;

	(void)state;
	begin(&scene, 0);
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

	agent_record(&scene, flow)->count[0].packets_low = 5;
	prove(&scene, flow, 0, 0);
	assert_int_equal(asked(0, PROVIDER_FORWARDS), 1);
	assert_int_equal(asked(0, PROVIDER_MARKS), 0);
	assert_int_equal(flow_packets(agent_record(&scene, flow), 0), 15);
	count(&scene, 0, 1000);
	assert_int_equal(flow_packets(agent_record(&scene, flow), 0), 1005);
	assert_int_equal(view_of(&scene, flow).packets, 1000);
	assert_false(view_of(&scene, flow).estimated);
	assert_int_equal(scene.agent->port[0].counters.forwarded, 1000);
	assert_int_equal(scene.agent->port[0].counters.forwarded_bytes, 100000);
	/* nothing new: nothing is credited, and that is told */
	const unsigned silent = scene.n_silent;

	count(&scene, 0, 1000);
	assert_int_equal(scene.to_records, 1000);
	assert_true(scene.n_silent > silent);
	assert_int_equal(scene.to_reports + scene.to_nobody, 0);
	agent_scene_end(&scene);
}

/* Counters that are asked for in so many milliseconds, where each is told at once. */
static unsigned asked_in_ms(struct agent_scene *scene, unsigned ms)
{
	const unsigned before = atomic_load(&agent_nics[0].n_asked[INSTALLER_COUNT]);

	for (unsigned i = 0; i < ms; i++)
		pass_answered(scene);
	return atomic_load(&agent_nics[0].n_asked[INSTALLER_COUNT]) - before;
}

/* The installer has more to do than to read counters; and nobody leaves since it reads them seldom. */
static void of_many_each_is_read_less_often(void **state)
{
	struct agent_scene scene;

	(void)state;
	begin(&scene, 0);
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);
	struct agent_counters *counters = &scene.agent->port[0].counters;
	uint64_t *proven = &counters->flows[OFFLOAD_PROVEN];

	prove(&scene, flow, 0, 0);
	assert_in_range(asked_in_ms(&scene, 2000), 6, 20);
	/* a call takes a microsecond at least, of which there are to be four */
	*proven += 500000;
	asked_in_ms(&scene, 500);
	assert_true(counters->read_us >= 2000000);
	/* or longer, where a call takes longer */
	const unsigned every_ms = (unsigned)(counters->read_us / 1000);

	assert_in_range(asked_in_ms(&scene, 3 * every_ms), 1, 3 * every_ms / 2000 + 2);
	assert_int_equal(agent_state(&scene, flow, 0), OFFLOAD_PROVEN);
	*proven -= 500000;
	asked_in_ms(&scene, 4 * every_ms);
	assert_in_range(asked_in_ms(&scene, 2000), 6, 20);
	agent_scene_end(&scene);
}

/* New flows are read often, all of them, and soon each as seldom as it may be. */
static void new_flows_are_read_often(void **state)
{
	struct agent_scene scene;

	(void)state;
	agent_scene_begin_as(&scene, 128, false, &(struct agent_scene){.full = true});
	for (uint16_t i = 1; i <= 100; i++)
		agent_ask_in(&scene, agent_flow(&scene, IPPROTO_UDP, i), 0, 0);
	assert_in_range(asked_in_ms(&scene, 100), 300, 500);
	asked_in_ms(&scene, 2000);
	/* of 100, four times a second each: not more, as nothing is asked for before it is due */
	assert_in_range(asked_in_ms(&scene, 2000), 600, 1200);
	agent_scene_end(&scene);
}

/* A connection has to be established, and nobody may want its window checked. */
static void connections_are_established_first(void **state)
{
	const struct agent_scene strict = {.full = true, .tcp_strict = true};
	struct agent_scene scene;

	(void)state;
	begin(&scene, 0);
	uint32_t flow = agent_flow(&scene, IPPROTO_TCP, 1);
	struct flow_record *record = agent_record(&scene, flow);

	record->state = FLOW_SYN_SENT;
	agent_sample(scene.agent, flow, 0, 0);
	assert_int_equal(agent_state(&scene, flow, 0), OFFLOAD_SOFTWARE);
	/* one that does not become it is marked */
	const uint32_t opening = agent_flow(&scene, IPPROTO_TCP, 2);

	agent_record(&scene, opening)->state = FLOW_SYN_RECEIVED;
	agent_record(&scene, opening)->count[0].packets_low = 16;
	agent_ask_in(&scene, opening, 0, 0);
	assert_int_equal(asked(0, PROVIDER_MARKS), 1);
	record->state = FLOW_ESTABLISHED;
	record->window_known = 3;
	prove(&scene, flow, 0, 0);
	assert_int_equal(record->window_known, 0);
	/* whatever is seen of it is old by the next packet */
	record->window_known = 3;
	segment(&scene, flow, 1, TCP_ACK);
	assert_int_equal(record->window_known, 0);
	agent_scene_end(&scene);

	agent_scene_begin_as(&scene, SLOTS, false, &strict);
	flow = agent_flow(&scene, IPPROTO_TCP, 1);
	agent_record(&scene, flow)->state = FLOW_SYN_SENT;
	agent_ask_in(&scene, flow, 0, 0);
	assert_int_equal(asked(0, PROVIDER_MARKS), 1);
	assert_int_equal(asked(0, PROVIDER_FORWARDS), 0);
	agent_scene_end(&scene);
}

/* A FIN while the rule is on its way: it leaves for that, and the flow, which lives on, says so. */
static void a_fin_meanwhile_is_why_it_leaves(void **state)
{
	struct agent_scene scene;

	(void)state;
	begin(&scene, 0);
	uint32_t flow = agent_flow(&scene, IPPROTO_TCP, 1);

	agent_record(&scene, flow)->state = FLOW_ESTABLISHED;
	atomic_store(&agent_nics[0].shut, true);
	agent_sample(scene.agent, flow, 0, 0);
	agent_until(&scene, agent_state(&scene, flow, 0) == OFFLOAD_INSTALLING);
	segment(&scene, flow, 0, TCP_FIN | TCP_ACK);
	assert_int_equal(agent_state(&scene, flow, 0), OFFLOAD_INSTALLING);
	atomic_store(&agent_nics[0].shut, false);
	agent_until(&scene, agent_state(&scene, flow, 0) == OFFLOAD_SOFTWARE);
	assert_int_equal(agent_record(&scene, flow)->reason[0], OFFLOAD_CLOSING);
	agent_scene_end(&scene);
}

/* The report of a flow that ended while its rule was on its way waits for that, but not for ever. */
static void a_report_does_not_wait_for_a_driver_that_hangs(void **state)
{
	struct agent_scene scene;

	(void)state;
	begin(&scene, 0);
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

	atomic_store(&agent_nics[0].shut, true);
	agent_sample(scene.agent, flow, 0, 0);
	agent_until(&scene, agent_state(&scene, flow, 0) == OFFLOAD_INSTALLING);
	agent_end(&scene, flow);
	assert_int_equal(scene.agent->n_held, 1);
	agent_pass_ms(&scene, 6000);
	assert_int_equal(scene.n_released, 1);
	assert_true(scene.released.offload.estimated);
	atomic_store(&agent_nics[0].shut, false);
	agent_until(&scene, scene.agent->wire[0].slots.n_used == 0);
	agent_scene_end(&scene);
}

/* Who was whole in the NIC for long waits no longer than anybody else when it falls out. */
static void long_stays_forget_refusals(void **state)
{
	struct agent_scene scene;

	(void)state;
	begin(&scene, 0);
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

	prove(&scene, flow, 0, 0);
	offload_set_back_off(agent_record(&scene, flow), 0, 8);
	for (unsigned i = 1; i <= 40; i++)
		count(&scene, 0, 1000 * i);
	assert_int_equal(offload_back_off(agent_record(&scene, flow), 0), 0);
	agent_scene_end(&scene);
}

/* What a limit of ours sends back the card has not refused: as a whole it is asked for again. */
static void a_limit_is_no_refusal(void **state)
{
	const struct agent_scene as = {.full = true, .limit = 1};
	struct agent_scene scene;

	(void)state;
	agent_scene_begin_as(&scene, SLOTS, false, &as);
	uint32_t first = agent_flow(&scene, IPPROTO_UDP, 1);
	uint32_t second = agent_flow(&scene, IPPROTO_UDP, 2);

	prove(&scene, first, 0, 0);
	agent_ask_in(&scene, second, 0, 0);
	assert_int_equal(agent_state(&scene, second, 0), OFFLOAD_SOFTWARE);
	agent_end(&scene, first);
	agent_until(&scene, atomic_load(&agent_nics[0].n_rules) == 0);
	agent_pass_ms(&scene, 1000);
	agent_ask_in(&scene, second, 0, 0);
	assert_int_equal(agent_state(&scene, second, 0), OFFLOAD_ACCEPTED);
	assert_int_equal(asked(0, PROVIDER_FORWARDS), 2);
	assert_int_equal(asked(0, PROVIDER_MARKS), 0);
	agent_scene_end(&scene);
}

/* A FIN at one side: both leave, and the flow is not asked in as a whole again. */
static void what_ends_brings_it_back(void **state)
{
	static const uint8_t flags[] = {TCP_FIN | TCP_ACK, TCP_RST, TCP_SYN | TCP_ACK};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(flags); i++) {
		struct agent_scene scene;

		begin(&scene, 0);
		uint32_t flow = agent_flow(&scene, IPPROTO_TCP, 1);
		struct flow_record *record = agent_record(&scene, flow);

		record->state = FLOW_ESTABLISHED;
		prove(&scene, flow, 0, 0);
		prove(&scene, flow, 1, 1);
		segment(&scene, flow, 0, flags[i]);
		for (unsigned side = 0; side < 2; side++) {
			assert_int_equal(agent_state(&scene, flow, side), OFFLOAD_LEAVING);
			assert_int_equal(record->reason[side], OFFLOAD_CLOSING);
		}
		agent_until(&scene, agent_state(&scene, flow, 0) == OFFLOAD_SOFTWARE &&
					    agent_state(&scene, flow, 1) == OFFLOAD_SOFTWARE);
		assert_int_equal(scene.agent->port[0].counters.fell_out[OFFLOAD_RETURNED], 0);
		/* told also where all had been credited before */
		assert_int_equal(scene.n_last, 2);
		record->state = FLOW_FIN_0;
		agent_ask_in(&scene, flow, 0, 0);
		assert_int_equal(asked(0, PROVIDER_MARKS), 1);
		agent_scene_end(&scene);
	}
}

/* Packets that come though the NIC was to forward them: one may have been on its way, three in a row were not. */
static void what_comes_nevertheless(void **state)
{
	struct agent_scene scene;

	(void)state;
	begin(&scene, 0);
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

	prove(&scene, flow, 0, 0);
	agent_packet(&scene, flow, 0, 0, false);
	assert_int_equal(agent_state(&scene, flow, 0), OFFLOAD_SUSPECT);
	count(&scene, 0, 20);
	assert_int_equal(agent_state(&scene, flow, 0), OFFLOAD_PROVEN);
	agent_lose_marks(&scene, flow, 0, 0);
	assert_int_equal(agent_state(&scene, flow, 0), OFFLOAD_LEAVING);
	assert_int_equal(agent_record(&scene, flow)->reason[0], OFFLOAD_RETURNED);
	agent_until(&scene, agent_state(&scene, flow, 0) == OFFLOAD_SOFTWARE);
	/* then it is marked, as long as nobody knows better */
	agent_pass_ms(&scene, 100);
	agent_prove(&scene, flow, 0, 0);
	assert_int_equal(asked(0, PROVIDER_MARKS), 1);
	assert_false(view_of(&scene, flow).full[0]);
	/* ten seconds later it is tried again */
	for (unsigned i = 0; i < 12 && agent_state(&scene, flow, 0) == OFFLOAD_PROVEN; i++) {
		agent_packet(&scene, flow, 0, 0, true);
		agent_pass_ms(&scene, 1000);
	}
	agent_until(&scene, agent_state(&scene, flow, 0) == OFFLOAD_SOFTWARE);
	assert_int_equal(scene.agent->port[0].counters.arrows[OFFLOAD_PROVEN][OFFLOAD_LEAVING], 1);
	prove(&scene, flow, 0, 0);
	assert_int_equal(asked(0, PROVIDER_FORWARDS), 2);
	agent_scene_end(&scene);
}

/* The NIC says no to the whole: it is asked for marks then, whatever the no was. */
static void what_is_refused_is_marked(void **state)
{
	static const int results[] = {-EOPNOTSUPP, -ENOSPC, -EIO};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(results); i++) {
		struct agent_scene scene;

		begin(&scene, 0);
		uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

		atomic_store(&agent_nics[0].refuses_full, results[i]);
		agent_ask_in(&scene, flow, 0, 0);
		assert_int_equal(agent_state(&scene, flow, 0), OFFLOAD_REFUSED);
		agent_pass_ms(&scene, 100);
		agent_prove(&scene, flow, 0, 0);
		assert_int_equal(asked(0, PROVIDER_FORWARDS), 1);
		assert_int_equal(asked(0, PROVIDER_MARKS), 1);
		agent_scene_end(&scene);
	}
}

/* A flow ends: its report waits until both its rules are gone, and has what they counted last. */
static void reports_wait_for_the_last_packets(void **state)
{
	(void)state;
	for (unsigned told = 0; told < 2; told++) {
		struct agent_scene scene;

		begin(&scene, 0);
		uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

		prove(&scene, flow, 0, 0);
		prove(&scene, flow, 1, 1);
		atomic_store(&agent_nics[0].last, 1000);
		atomic_store(&agent_nics[1].last, 2000);
		atomic_store(&agent_nics[0].tells_no_last, told == 0);
		atomic_store(&agent_nics[1].shut, true);
		agent_end(&scene, flow);
		assert_int_equal(scene.agent->n_held, 1);
		agent_until(&scene, atomic_load(&agent_nics[0].n_rules) == 0);
		agent_pass_ms(&scene, 10);
		assert_int_equal(scene.n_released, 0);
		atomic_store(&agent_nics[1].shut, false);
		agent_until(&scene, scene.n_released == 1);
		assert_int_equal(scene.agent->n_held, 0);
		assert_int_equal(flow_packets(&scene.released.record, 0), told == 0 ? 10 : 1000);
		assert_int_equal(flow_packets(&scene.released.record, 1), 2000);
		assert_true(scene.released.offload.estimated == (told == 0));
		assert_int_equal(scene.released.offload.packets, told == 0 ? 2010 : 3000);
		assert_int_equal(scene.released.reason, FLOW_END_KILLED);
		assert_int_equal(scene.to_nobody, 0);
		agent_scene_end(&scene);
	}
}

/* Nobody waits for a NIC for ever; what it tells later is nobody's, and is counted. */
static void a_nic_that_does_not_answer(void **state)
{
	(void)state;
	for (unsigned given_up = 0; given_up < 2; given_up++) {
		struct agent_scene scene;

		begin(&scene, 0);
		uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

		prove(&scene, flow, 0, 0);
		atomic_store(&agent_nics[0].last, 500);
		atomic_store(&agent_nics[0].shut, true);
		agent_end(&scene, flow);
		agent_pass_ms(&scene, 4900);
		assert_int_equal(scene.n_released, 0);
		if (given_up)
			agent_give_up(scene.agent);
		else
			agent_pass_ms(&scene, 1000);
		assert_int_equal(scene.n_released, 1);
		assert_true(scene.released.offload.estimated);
		assert_int_equal(flow_packets(&scene.released.record, 0), 10);
		atomic_store(&agent_nics[0].shut, false);
		agent_until(&scene, scene.agent->wire[0].slots.n_used == 0);
		assert_int_equal(scene.to_nobody, 490);
		assert_int_equal(scene.agent->port[0].counters.unaccounted, 490);
		assert_int_equal(scene.n_released, 1);
		agent_scene_end(&scene);
	}
}

static unsigned n_ready(const struct agent_scene *scene)
{
	const struct agent_wire *wire = &scene->agent->wire[0];
	unsigned n = 0;

	for (uint32_t i = 0; i < wire->slots.n; i++)
		n += wire->full[i].ready;
	return n;
}

/*
 * Reports that the NIC has told the last packets of wait for room, two seconds: none is handed over before, their slots are
 * nobody else's until then, and they go in the order in which they were ready.
 */
static void a_report_waits_for_room(void **state)
{
	struct agent_scene scene;
	uint32_t flow[3];

	(void)state;
	for (unsigned patient = 0; patient < 2; patient++) {
		begin(&scene, 0);
		for (unsigned i = 0; i < 3; i++) {
			flow[i] = agent_flow(&scene, IPPROTO_UDP, (uint16_t)(1 + i));
			prove(&scene, flow[i], 0, 0);
		}
		scene.no_room = true;
		for (unsigned i = 0; i < 3; i++) {
			agent_end(&scene, flow[i]);
			agent_until(&scene, n_ready(&scene) == i + 1);
		}
		assert_int_equal(scene.n_released, 0);
		assert_int_equal(scene.agent->n_held, 3);
		assert_int_equal(scene.agent->wire[0].slots.n_used, 3);
		if (patient) {
			scene.no_room = false;
			agent_pass_ms(&scene, 1);
		} else {
			agent_pass_ms(&scene, 2500);
		}
		assert_int_equal(scene.n_released, 3);
		assert_int_equal(scene.agent->n_held, 0);
		assert_false(scene.released.offload.estimated);
		assert_int_equal(scene.agent->wire[0].slots.n_used, 0);
		agent_scene_end(&scene);
	}
	/* given up at the end, while they wait: they are handed over all the same, and tell what they know */
	begin(&scene, 0);
	flow[0] = agent_flow(&scene, IPPROTO_UDP, 1);
	prove(&scene, flow[0], 0, 0);
	scene.no_room = true;
	agent_end(&scene, flow[0]);
	agent_until(&scene, n_ready(&scene) == 1);
	agent_give_up(scene.agent);
	assert_int_equal(scene.n_released, 1);
	assert_false(scene.released.offload.estimated);
	assert_int_equal(n_ready(&scene), 0);
	agent_pass_ms(&scene, 10);
	assert_int_equal(scene.n_released, 1);
	agent_scene_end(&scene);
}

/* An active report has what was credited so far, the next one the rest; nothing is held. */
static void active_reports_add_up(void **state)
{
	struct agent_scene scene;
	struct flow_report report;

	(void)state;
	begin(&scene, 0);
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);
	struct flow_record *record = agent_record(&scene, flow);

	prove(&scene, flow, 0, 0);
	count(&scene, 0, 100);
	report = (struct flow_report){.record = *record, .reason = FLOW_END_ACTIVE};
	assert_false(agent_ended(scene.agent, &report));
	assert_int_equal(report.offload.packets, 100);
	record->count[0].packets_low = record->count[0].bytes_low = 0;
	count(&scene, 0, 150);
	assert_int_equal(flow_packets(record, 0), 50);
	assert_int_equal(view_of(&scene, flow).packets, 50);
	agent_scene_end(&scene);
}

/* By what it credits, a flow that became slow leaves; one of which nothing was ever counted is marked the next time. */
static void slow_flows_leave(void **state)
{
	struct agent_scene scene;

	(void)state;
	for (unsigned mute = 0; mute < 2; mute++) {
		begin(&scene, 1000);
		uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

		/* none comes when the rule may be there: it would have been in vain */
		for (unsigned i = 0; i < 30 && agent_state(&scene, flow, 0) < OFFLOAD_INSTALLING;
			i++) {
			agent_packet(&scene, flow, 0, 0, false);
			agent_sample(scene.agent, flow, 0, 0);
			agent_pass_ms(&scene, 1);
			agent_record(&scene, flow)->count[0].packets_low += 9;
		}
		agent_until(&scene, agent_state(&scene, flow, 0) >= OFFLOAD_ACCEPTED);
		for (unsigned i = 1; i <= 12 && !mute; i++) {
			count(&scene, 0, i * 1000);
			assert_int_equal(agent_state(&scene, flow, 0), OFFLOAD_PROVEN);
		}
		for (unsigned i = 0; i < 3000 && agent_state(&scene, flow, 0) >= OFFLOAD_ACCEPTED;
			i++)
			pass_answered(&scene);
		/* one that is back in software already is quiet there */
		assert_int_equal(agent_record(&scene, flow)->reason[0],
			agent_state(&scene, flow, 0) == OFFLOAD_SOFTWARE ? OFFLOAD_QUIET
									 : OFFLOAD_SLOWED);
		agent_until(&scene, agent_state(&scene, flow, 0) == OFFLOAD_SOFTWARE);
		agent_scene_end(&scene);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_limit_is_no_refusal),
		cmocka_unit_test(a_report_does_not_wait_for_a_driver_that_hangs),
		cmocka_unit_test(long_stays_forget_refusals),
		cmocka_unit_test(a_fin_meanwhile_is_why_it_leaves),
		cmocka_unit_test(what_it_counts_is_credited),
		cmocka_unit_test(of_many_each_is_read_less_often),
		cmocka_unit_test(new_flows_are_read_often),
		cmocka_unit_test(connections_are_established_first),
		cmocka_unit_test(what_ends_brings_it_back),
		cmocka_unit_test(what_comes_nevertheless),
		cmocka_unit_test(what_is_refused_is_marked),
		cmocka_unit_test(reports_wait_for_the_last_packets),
		cmocka_unit_test(a_nic_that_does_not_answer),
		cmocka_unit_test(a_report_waits_for_room),
		cmocka_unit_test(active_reports_add_up),
		cmocka_unit_test(slow_flows_leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
