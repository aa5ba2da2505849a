/* SPDX-License-Identifier: BSD-3-Clause */
/* What the agent makes of answers and packets, one direction of a flow apart from the other. */
#include "agent_scene.h"
#include "traffic/draw.h"

/* Packets without the mark until the direction has left the NIC. */
static void fall_out(struct agent_scene *scene, uint32_t flow, unsigned side, unsigned from)
{
	agent_lose_marks(scene, flow, side, from);
	agent_until(scene, agent_state(scene, flow, from) == OFFLOAD_SOFTWARE);
	assert_int_equal(agent_record(scene, flow)->reason[from], OFFLOAD_QUARANTINE);
}

static bool may_be_asked(struct agent_scene *scene, uint32_t flow, unsigned side, unsigned from)
{
	agent_sample(scene->agent, flow, side, from);
	return agent_state(scene, flow, from) == OFFLOAD_QUEUED;
}

/* A direction that is well does not make the other's wait shorter, nor does one that fell out make it longer. */
static void each_side_waits_for_itself(void **state)
{
	struct agent_scene scene;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);
	struct flow_record *record = agent_record(&scene, flow);

	agent_prove(&scene, flow, 0, 0);
	agent_prove(&scene, flow, 1, 1);
	for (unsigned i = 0; i < 3; i++) {
		fall_out(&scene, flow, 1, 1);
		agent_pass_ms(&scene, (100u << i) - 1);
		assert_false(may_be_asked(&scene, flow, 1, 1));
		agent_pass_ms(&scene, 1);
		agent_prove(&scene, flow, 1, 1);
	}
	assert_int_equal(offload_back_off(record, 0), 0);
	assert_int_equal(offload_back_off(record, 1), 3);
	fall_out(&scene, flow, 1, 1);
	/* the first direction is true for long */
	for (unsigned i = 0; i < 120; i++) {
		agent_pass_ms(&scene, 100);
		agent_packet(&scene, flow, 0, 0, true);
	}
	assert_int_equal(offload_back_off(record, 1), 4);
	/* and when it falls out its wait is the shortest */
	fall_out(&scene, flow, 0, 0);
	assert_int_equal(offload_back_off(record, 0), 1);
	agent_pass_ms(&scene, 99);
	assert_false(may_be_asked(&scene, flow, 0, 0));
	assert_true(may_be_asked(&scene, flow, 1, 1));
	agent_pass_ms(&scene, 1);
	assert_true(may_be_asked(&scene, flow, 0, 0));
	agent_scene_end(&scene);
}

/* What a port refuses for ever of one direction the other's may take, and the other way round. */
static void never_is_said_of_one_direction(void **state)
{
	(void)state;
	for (unsigned side = 0; side < 2; side++) {
		struct agent_scene scene;

		agent_scene_begin(&scene, 64, false);
		uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

		atomic_store(&agent_nics[side].result[INSTALLER_INSERT], -EOPNOTSUPP);
		agent_ask_in(&scene, flow, side, side);
		assert_int_equal(agent_state(&scene, flow, side), OFFLOAD_REFUSED);
		agent_prove(&scene, flow, !side, !side);
		/* the other one falls out, and comes back */
		fall_out(&scene, flow, !side, !side);
		agent_pass_ms(&scene, 100);
		agent_prove(&scene, flow, !side, !side);
		agent_pass_ms(&scene, 100000);
		assert_false(may_be_asked(&scene, flow, side, side));
		agent_scene_end(&scene);
	}
}

/* Without a slot the record keeps the later of the times for which its directions wait. */
static void waits_outlive_the_slot(void **state)
{
	static const struct {
		bool was_in[2]; /* and fell out, the second one 50 ms later */
		unsigned wait_ms[2];
	} cases[] = {
		{{true, false}, {50, 0}},
		{{false, true}, {0, 100}},
		{{true, true}, {100, 100}},
	};

	(void)state;
	for (unsigned i = 0; i < 2 * RTE_DIM(cases); i++) {
		const unsigned side = i % 2, wait_ms = cases[i / 2].wait_ms[side];
		struct agent_scene scene;

		agent_scene_begin(&scene, 1, false);
		/* milliseconds of 32 bits have gone half way round */
		scene.now_us += UINT64_C(1000) << 31;
		uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

		for (unsigned k = 0; k < 2; k++)
			if (cases[i / 2].was_in[k])
				agent_prove(&scene, flow, k, k);
		for (unsigned k = 0; k < 2; k++) {
			if (cases[i / 2].was_in[k])
				fall_out(&scene, flow, k, k);
			agent_pass_ms(&scene, k == 0 ? 50 : 0);
		}
		assert_false(offload_has_slot(agent_record(&scene, flow)));
		if (wait_ms != 0) {
			agent_pass_ms(&scene, wait_ms - 1);
			assert_false(may_be_asked(&scene, flow, side, side));
			agent_pass_ms(&scene, 1);
		}
		assert_true(may_be_asked(&scene, flow, side, side));
		agent_scene_end(&scene);
	}
}

/* Without a slot a record has a time and two ports in one word, and each is set without the others. */
static void a_record_has_a_time_and_two_ports(void **state)
{
	static const uint32_t left_ms[] = {0, 1, 100, 60000};
	struct flow_record record = {.slot = 0};
	struct draw draw = {.seed = 3};

	(void)state;
	for (unsigned i = 0; i < 10000; i++) {
		const uint32_t now_ms = (uint32_t)draw_next(&draw);
		const unsigned first = draw_below(draw_next(&draw), TOPOLOGY_MAX_PORTS);
		const unsigned second = draw_below(draw_next(&draw), TOPOLOGY_MAX_PORTS);
		const uint32_t wait_ms = left_ms[i % RTE_DIM(left_ms)];

		offload_set_port(&record, 0, first);
		offload_set_retry_ms(&record, now_ms + wait_ms);
		offload_set_port(&record, 1, second);
		assert_int_equal(offload_port(&record, 0), first);
		assert_int_equal(offload_port(&record, 1), second);
		assert_int_equal(offload_retry_ms(&record, now_ms), now_ms + wait_ms);
		/* and when it is over, for half an hour */
		assert_int_equal(offload_retry_ms(&record, now_ms + 1800000), now_ms + wait_ms);
	}
}

/* Marked packets as the agent tells them. */
static uint64_t told(struct agent_scene *scene, uint32_t flow)
{
	struct flow_offload view;

	agent_view(scene->agent, agent_record(scene, flow), &view);
	return view.packets;
}

/* The packets of one end come by both ports, and the rule is at either: those without the mark are none of it. */
static void packets_by_the_other_port_are_not_marked(void **state)
{
	(void)state;
	for (unsigned side = 0; side < 2; side++) {
		struct agent_scene scene;

		agent_scene_begin(&scene, 64, false);
		uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

		for (unsigned i = 0; i < 5; i++)
			agent_packet(&scene, flow, i % 2, 0, false);
		agent_prove(&scene, flow, side, 0);
		for (unsigned i = 0; i < 7; i++)
			agent_packet(&scene, flow, !side, 0, false);
		assert_int_equal(told(&scene, flow), 1);
		/* nobody is asked in there, for the same packets */
		agent_sample(scene.agent, flow, !side, 0);
		assert_int_equal(agent_state(&scene, flow, 0), OFFLOAD_PROVEN);
		assert_int_equal(atomic_load(&agent_nics[!side].n_asked[INSTALLER_INSERT]), 0);
		/* the other end's by the same ports are not its either */
		agent_packet(&scene, flow, 0, 1, false);
		agent_packet(&scene, flow, 1, 1, false);
		agent_packet(&scene, flow, side, 0, true);
		assert_int_equal(told(&scene, flow), 2);
		agent_scene_end(&scene);
	}
}

/* The packets of one end come by both ports while it waits: the one that was asked first has its rule. */
static void one_of_two_that_wait_is_asked_in(void **state)
{
	struct agent_scene scene;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

	agent_sample(scene.agent, flow, 0, 0);
	agent_sample(scene.agent, flow, 1, 0);
	assert_int_equal(scene.agent->port[1].queue.n, 0);
	agent_until(&scene, agent_state(&scene, flow, 0) == OFFLOAD_ACCEPTED);
	assert_int_equal(agent_state(&scene, flow, 1), OFFLOAD_SOFTWARE);
	assert_int_equal(atomic_load(&agent_nics[0].n_rules), 1);
	assert_int_equal(atomic_load(&agent_nics[1].n_asked[INSTALLER_INSERT]), 0);
	agent_scene_end(&scene);
}

/* A rule is gone, and the other port has one: marks of the first that come late are counted once. */
static void late_marks_are_counted_once(void **state)
{
	struct agent_scene scene;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

	agent_prove(&scene, flow, 0, 0);
	fall_out(&scene, flow, 0, 0);
	/* whatever the port, it is the direction that waits */
	assert_false(may_be_asked(&scene, flow, 1, 0));
	agent_pass_ms(&scene, 100);
	agent_prove(&scene, flow, 1, 0);
	for (unsigned i = 0; i < 5; i++)
		agent_packet(&scene, flow, 0, 0, true);
	agent_packet(&scene, flow, 1, 0, true);
	assert_int_equal(told(&scene, flow), 8);
	agent_scene_end(&scene);
}

/* A flow that began anew is in the NIC, and the rule that it had before is there still; tells its mark. */
static uint32_t begin_anew(struct agent_scene *scene, uint32_t *flow)
{
	*flow = agent_flow(scene, IPPROTO_UDP, 1);
	agent_prove(scene, *flow, 0, 0);
	uint32_t older = agent_mark(scene, *flow);

	atomic_store(&agent_nics[0].result[INSTALLER_REMOVE], -EIO);
	agent_end(scene, *flow);
	*flow = agent_flow(scene, IPPROTO_UDP, 1);
	agent_ask_in(scene, *flow, 0, 0);
	assert_int_equal(agent_state(scene, *flow, 0), OFFLOAD_ACCEPTED);
	assert_int_not_equal(agent_mark(scene, *flow), older);
	return older;
}

/* The older rule's delete is confirmed, just now. */
static void let_go(struct agent_scene *scene, uint32_t mark)
{
	const struct slots *slots = &scene->agent->wire[0].slots;
	const struct slot_direction *direction =
		&slots_slot(slots, slots_of_mark(slots, mark))->direction[0];

	atomic_store(&agent_nics[0].result[INSTALLER_REMOVE], 0);
	for (unsigned ms = 0; ms < 1000 && direction->state == OFFLOAD_LEAVING; ms++) {
		agent_pass_ms(scene, 1);
		agent_until(scene, !direction->awaited);
	}
	assert_int_equal(direction->state, OFFLOAD_SOFTWARE);
}

static void arrive(struct agent_scene *scene, uint32_t flow, uint32_t mark)
{
	for (unsigned i = 0; i < 40; i++)
		agent_packet_with(scene, flow, 0, 0, mark);
}

/* Until that is surely gone its mark is not held against the new one; then it is, and others always. */
static void an_older_rule_of_the_same_key_is_no_fault(void **state)
{
	static const unsigned first_ms[] = {20, 2000};

	(void)state;
	for (unsigned i = 0; i < 2 * RTE_DIM(first_ms); i++) {
		bool foreign = i % 2;
		struct agent_scene scene;
		uint32_t flow;

		agent_scene_begin(&scene, 64, false);
		const struct agent_counters *counters = &scene.agent->port[0].counters;
		uint32_t before = begin_anew(&scene, &flow), older = before;
		uint32_t other = agent_flow(&scene, IPPROTO_UDP, 2);

		agent_prove(&scene, other, 0, 0);
		agent_pass_ms(&scene, first_ms[i / 2]);
		arrive(&scene, flow, older);
		assert_int_equal(agent_state(&scene, flow, 0), OFFLOAD_ACCEPTED);
		/* its own comes, and that of the older one again: the NIC may choose anew for each packet */
		agent_packet(&scene, flow, 0, 0, true);
		arrive(&scene, flow, older);
		assert_int_equal(agent_state(&scene, flow, 0), OFFLOAD_PROVEN);
		if (foreign)
			older = agent_mark(&scene, other);
		let_go(&scene, before);
		arrive(&scene, flow, older);
		assert_int_equal(agent_state(&scene, flow, 0) == OFFLOAD_PROVEN, !foreign);
		assert_int_equal(counters->ghosts, 0);
		assert_int_equal(counters->strangers, 3 * 40);
		agent_pass_ms(&scene, SLOT_DRAIN_TURNS);
		arrive(&scene, flow, older);
		assert_int_not_equal(agent_state(&scene, flow, 0), OFFLOAD_PROVEN);
		assert_int_equal(counters->fell_out[OFFLOAD_WRONG_MARK], 1);
		assert_int_equal(counters->ghosts, foreign ? 0 : 40);
		assert_int_equal(counters->strangers, 4 * 40);
		agent_scene_end(&scene);
	}
}

/* Is a rule in force at that side, for packets from that end? */
static bool is_in_force(struct agent_scene *scene, uint32_t flow, unsigned side, unsigned from)
{
	const struct flow_record *record = agent_record(scene, flow);

	return agent_state(scene, flow, from) >= OFFLOAD_SUSPECT &&
	       scene->agent->wire[0].slots.slots[record->slot].direction[from].port == side;
}

/* Nobody waits for the installers. */
static bool is_quiet(struct agent_scene *scene, uint32_t flow)
{
	for (unsigned from = 0; from < 2; from++) {
		enum offload_state state = agent_state(scene, flow, from);

		if (state == OFFLOAD_QUEUED || state == OFFLOAD_INSTALLING ||
			state == OFFLOAD_LEAVING)
			return false;
	}
	return true;
}

/* The newest change is that of the flow, which came to that state by that side, and is of packets from that end. */
static void check_change(struct agent_scene *scene, uint32_t flow, unsigned side, unsigned from,
	enum offload_state after, uint8_t reason)
{
	const struct change_ring *ring = &scene->agent->changes;
	const struct offload_change *change = &ring->change[(ring->n - 1) % CHANGE_RING];

	assert_true(flow_key_equal(&change->key, &agent_record(scene, flow)->key));
	assert_int_equal(change->port, side);
	assert_int_equal(change->after, after);
	assert_int_equal(change->reason, reason);
	assert_int_equal(change->from, from);
}

/* Also while it has no slot, or none yet for that direction: who waits, and who is sent away. */
static void changes_tell_the_end(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		const unsigned side = i / 2, from = i % 2;
		struct agent_scene scene;

		agent_scene_begin(&scene, 1, false);
		uint32_t one = agent_flow(&scene, IPPROTO_UDP, 1);
		uint32_t other = agent_flow(&scene, IPPROTO_UDP, 2);
		struct health *health = installer_health(scene.installer[side]);

		agent_sample(scene.agent, one, side, from);
		check_change(&scene, one, side, from, OFFLOAD_QUEUED, OFFLOAD_BUSY);
		agent_until(&scene, agent_state(&scene, one, from) == OFFLOAD_ACCEPTED);
		check_change(&scene, one, side, from, OFFLOAD_ACCEPTED, OFFLOAD_BUSY);
		/* the other direction, whose part of the slot is as it was made */
		agent_sample(scene.agent, one, !side, !from);
		check_change(&scene, one, !side, !from, OFFLOAD_QUEUED, OFFLOAD_BUSY);
		agent_until(&scene, agent_state(&scene, one, !from) == OFFLOAD_ACCEPTED);
		agent_sample(scene.agent, other, side, from);
		agent_turn(scene.agent, scene.now_us);
		check_change(&scene, other, side, from, OFFLOAD_SOFTWARE, OFFLOAD_NO_SLOT);
		/* it waits for one, and is not asked for with each of its packets */
		agent_pass_ms(&scene, 99);
		agent_sample(scene.agent, other, side, from);
		check_change(&scene, other, side, from, OFFLOAD_SOFTWARE, OFFLOAD_NO_SLOT);
		agent_pass_ms(&scene, 1);
		agent_sample(scene.agent, other, side, from);
		atomic_store(&health->retry_us, UINT64_MAX);
		atomic_store(&health->state, HEALTH_OPEN);
		agent_turn(scene.agent, scene.now_us);
		check_change(&scene, other, side, from, OFFLOAD_SOFTWARE, OFFLOAD_BREAKER);
		agent_scene_end(&scene);
	}
}

/* A busier flow takes the place of one that waits. */
static void displaced_ones_tell_the_end(void **state)
{
	struct agent_scene scene;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	for (uint16_t i = 1; i <= QUEUE_SIZE; i++)
		agent_sample(scene.agent, agent_flow(&scene, IPPROTO_UDP, i), 0, 1);
	struct queue_entry *least = &scene.agent->port[0].queue.entry[0];
	uint32_t first = least->position, flow = agent_flow(&scene, IPPROTO_TCP, 1);

	least->rate = 0;
	agent_sample(scene.agent, flow, 0, 0);
	check_change(&scene, flow, 0, 0, OFFLOAD_QUEUED, OFFLOAD_BUSY);
	/* with threshold 0 its rate was not measured */
	assert_int_equal(scene.agent->changes.change[scene.agent->changes.n - 1].detail, 0);
	scene.agent->changes.n--;
	check_change(&scene, first, 0, 1, OFFLOAD_SOFTWARE, OFFLOAD_DISPLACED);
	scene.agent->changes.n++;
	/* it waits, however many of its packets come, and whether or not there is room again */
	uint64_t n_changes = scene.agent->changes.n;

	scene.agent->port[0].queue.n = 0;
	agent_sample(scene.agent, first, 0, 1);
	assert_int_equal(scene.agent->changes.n, n_changes);
	scene.now_us += 100000;
	scene.agent->now_us = scene.now_us;
	agent_sample(scene.agent, first, 0, 1);
	check_change(&scene, first, 0, 1, OFFLOAD_QUEUED, OFFLOAD_BUSY);
	agent_scene_end(&scene);
}

static uint8_t said(struct agent_scene *scene, uint32_t flow, unsigned side)
{
	struct flow_offload view;

	agent_view(scene->agent, agent_record(scene, flow), &view);
	return view.reason[side];
}

/* Accepted, and its packets come without the mark: it leaves, and waits until it may try again. */
static void never_mark(struct agent_scene *scene, uint32_t flow)
{
	assert_int_equal(agent_state(scene, flow, 0), OFFLOAD_ACCEPTED);
	agent_pass_ms(scene, 20);
	for (unsigned i = 0; i < 20; i++)
		agent_packet(scene, flow, 0, 0, false);
	agent_until(scene, agent_state(scene, flow, 0) == OFFLOAD_SOFTWARE);
}

/* Two flows at each try, which are not held against the port; the other kinds' are. */
static void of_a_kind_that_is_out_two_are_tried(void **state)
{
	struct agent_scene scene;
	uint32_t udp[6], tcp;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	struct health *health = installer_health(scene.installer[0]);
	const struct health_worker *worker = &health->worker[0];

	for (uint16_t i = 0; i < RTE_DIM(udp); i++)
		udp[i] = agent_flow(&scene, IPPROTO_UDP, i);
	tcp = agent_flow(&scene, IPPROTO_TCP, 1);
	for (uint32_t number = 1; number < 3; number++) {
		atomic_store(&health->out[PROVIDER_IPV4_UDP], number);
		for (unsigned i = 0; i < RTE_DIM(udp); i++)
			assert_int_equal(said(&scene, udp[i], 0), OFFLOAD_MARKLESS);
		assert_int_not_equal(said(&scene, udp[0], 1), OFFLOAD_MARKLESS);
		for (unsigned i = 0; i < RTE_DIM(udp); i++)
			agent_ask_in(&scene, udp[i], 0, 0);
		for (unsigned i = 0; i < RTE_DIM(udp); i++)
			assert_int_equal(
				said(&scene, udp[i], 0), i < 2 ? OFFLOAD_CANARY : OFFLOAD_MARKLESS);
		never_mark(&scene, udp[0]);
		never_mark(&scene, udp[1]);
		assert_int_equal(atomic_load(&worker->unseen_of[PROVIDER_IPV4_UDP]), 2 * number);
		assert_int_equal(atomic_load(&worker->failed), 0);
		/* so that they may try again */
		agent_pass_ms(&scene, 1000);
	}
	agent_ask_in(&scene, tcp, 0, 0);
	assert_int_equal(said(&scene, tcp, 0), OFFLOAD_BUSY);
	never_mark(&scene, tcp);
	assert_int_equal(said(&scene, tcp, 0), OFFLOAD_QUARANTINE);
	assert_int_equal(atomic_load(&worker->failed), 1);
	atomic_store(&health->out[PROVIDER_IPV4_UDP], 3);
	agent_prove(&scene, udp[0], 0, 0);
	assert_int_equal(atomic_load(&worker->proven_of[PROVIDER_IPV4_UDP]), 1);
	atomic_store(&health->out[PROVIDER_IPV4_UDP], 0);
	for (unsigned i = 1; i < RTE_DIM(udp); i++)
		agent_prove(&scene, udp[i], 0, 0);
	agent_scene_end(&scene);
}

/* Packets of both ends by both ports in any order, rules that come and go: what is told is what was marked. */
static void marked_packets_are_told_exactly(void **state)
{
	struct draw draw = {.seed = 9};
	unsigned n_proofs = 0, n_by_both = 0;
	uint64_t n_marked = 0;
	struct agent_scene scene;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

	for (unsigned i = 0; i < 40000; i++) {
		uint64_t drawn = draw_next(&draw);
		/* most by the port where they belong at that time */
		unsigned from = drawn & 1, side = from ^ (i / 1000 % 2) ^ ((drawn & 14) == 0);
		bool marked = is_in_force(&scene, flow, side, from) && (drawn & 0x3f0) != 0;

		/* those without it come in rows */
		if (i % 500 < 16)
			marked = false;
		n_marked += marked;
		agent_packet(&scene, flow, side, from, marked);
		assert_true(told(&scene, flow) == n_marked);
		if (i % 50 == 0) {
			/* whoever fell out may try again, when its rule is gone */
			scene.now_us += 60 * CLOCK_US_PER_S;
			agent_until(&scene, is_quiet(&scene, flow));
			agent_sample(scene.agent, flow, side, from);
			agent_until(&scene, is_quiet(&scene, flow));
			n_by_both += agent_state(&scene, flow, from) >= OFFLOAD_SUSPECT &&
				     !is_in_force(&scene, flow, side, from);
		}
	}
	n_proofs = (unsigned)scene.agent->port[0].counters.arrows[OFFLOAD_ACCEPTED][OFFLOAD_PROVEN];
	assert_true(n_proofs > 10 && n_by_both > 10 && n_marked > 5000);
	agent_scene_end(&scene);
}

/* A turn has one time: whichever of its bursts a flow's packets are in, and of whichever port, they are looked at. */
static void every_burst_of_a_turn_has_its_samples(void **state)
{
	enum { BURSTS = 4, TURNS = 4000 };
	unsigned samples[BURSTS] = {0};
	struct agent_scene scene;

	(void)state;
	agent_scene_begin(&scene, 16, false);
	scene.agent->config.threshold = 1;
	for (unsigned turn = 0; turn < TURNS; turn++) {
		agent_pass_ms(&scene, 1);
		for (unsigned i = 0; i < BURSTS; i++)
			samples[i] += agent_samples(scene.agent);
	}
	for (unsigned i = 0; i < BURSTS; i++)
		assert_in_range(samples[i], TURNS / BURSTS / 2, TURNS / BURSTS * 2);
	/* after turns of many, nobody waits for as many turns of one */
	for (unsigned turn = 0; turn < 24; turn++) {
		agent_pass_ms(&scene, 1);
		for (unsigned i = 0; i < (turn < 2 ? 1000 : 1); i++)
			if (agent_samples(scene.agent))
				samples[0] = turn;
	}
	assert_in_range(samples[0], 2, 24);
	agent_scene_end(&scene);
}

/* What a second may have is shared out to the last rule, and nobody has nothing, which would be no limit. */
static void workers_share_a_second(void **state)
{
	struct agent_scene scene;
	unsigned sum = 0;

	(void)state;
	agent_scene_begin(&scene, 16, false);
	for (unsigned i = 0; i < 3; i++) {
		struct agent_config config = scene.agent->config;
		struct agent *agent;

		config.n_workers = 3;
		config.worker = i;
		config.rules_per_s = 11;
		assert_int_equal(agent_create(&agent, &config), 0);
		assert_in_range(agent->port[0].budget.per_s, 3, 4);
		sum += agent->port[0].budget.per_s;
		agent_destroy(agent);
	}
	assert_int_equal(sum, 11);
	agent_scene_end(&scene);
}

/* A wire for whose slots there was no memory: its flows are not quiet, whatever their rate. */
static void without_slots_it_says_so(void **state)
{
	struct flow_offload view;
	struct agent_scene scene;

	(void)state;
	agent_scene_begin(&scene, 64, false);

	struct agent_wire *wire = &scene.agent->wire[0];
	const struct slots slots = wire->slots;
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

	agent_record(&scene, flow)->count[0].packets_low = 5;
	agent_view(scene.agent, agent_record(&scene, flow), &view);
	assert_int_equal(view.reason[0], OFFLOAD_QUIET);
	wire->slots = (struct slots){.n = 0};
	agent_sample(scene.agent, flow, 0, 0);
	assert_int_equal(agent_state(&scene, flow, 0), OFFLOAD_SOFTWARE);
	/* they are being made, */
	agent_view(scene.agent, agent_record(&scene, flow), &view);
	assert_int_equal(view.reason[0], OFFLOAD_TRIAL);
	/* or cannot be */
	atomic_store(&scene.agent->without_slots, 1);
	agent_view(scene.agent, agent_record(&scene, flow), &view);
	assert_int_equal(view.reason[0], OFFLOAD_NO_SLOT);
	wire->slots = slots;
	agent_scene_end(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(workers_share_a_second),
		cmocka_unit_test(every_burst_of_a_turn_has_its_samples),
		cmocka_unit_test(each_side_waits_for_itself),
		cmocka_unit_test(never_is_said_of_one_direction),
		cmocka_unit_test(waits_outlive_the_slot),
		cmocka_unit_test(a_record_has_a_time_and_two_ports),
		cmocka_unit_test(packets_by_the_other_port_are_not_marked),
		cmocka_unit_test(one_of_two_that_wait_is_asked_in),
		cmocka_unit_test(late_marks_are_counted_once),
		cmocka_unit_test(an_older_rule_of_the_same_key_is_no_fault),
		cmocka_unit_test(of_a_kind_that_is_out_two_are_tried),
		cmocka_unit_test(changes_tell_the_end),
		cmocka_unit_test(displaced_ones_tell_the_end),
		cmocka_unit_test(marked_packets_are_told_exactly),
		cmocka_unit_test(without_slots_it_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
