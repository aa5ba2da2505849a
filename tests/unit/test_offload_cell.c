/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>

#include <rte_cycles.h>

#include "provider_scene.h"

#include "probe/findings.h"
#include "probe/limits.h"
#include "probe/packets.h"

/* A port whose packets are looked at as the program looks. */
struct cells {
	struct provider_scene scene;
	struct port port;
	struct probe_packets *packets;
	struct observer observer;
	struct rule_port cell_port;
};

static void cells_open(struct cells *cells, const char *args, bool async)
{
	const struct probe_packets_config config = {
		.port = &cells->port, .to = &cells->port, .listen_ms = 2000};
	struct provider_config provider;
	struct error error;

	memset(cells, 0, sizeof(*cells));
	scene_port(&cells->scene, args, async);
	cells->port.id = cells->scene.nic.id;
	cells->port.n_rx = NIC_QUEUES;
	assert_int_equal(probe_packets_create(&cells->packets, &config, &error), 0);
	probe_packets_observer(cells->packets, &cells->observer);
	cells->cell_port = (struct rule_port){.id = cells->scene.nic.id,
		.n_queues = NIC_QUEUES,
		.target = cells->scene.nic.id,
		.observer = cells->observer.flows > 0 ? &cells->observer : NULL,
		.flow_queues = async};
	provider = cells->scene.config;
	shape_port_read(&cells->cell_port.rss, &provider);
}

static void cells_close(struct cells *cells)
{
	assert_int_equal(scene_count(&cells->scene, "flow_rules"), 0);
	probe_packets_destroy(cells->packets);
	nic_close(&cells->scene.nic);
}

static void try_form(
	struct cells *cells, const char *pattern, const char *actions, struct cell *cell)
{
	struct form form;

	for (unsigned i = 0; form_pattern(i, &form.pattern); i++)
		if (strcmp(form.pattern.name, pattern) == 0)
			break;
	assert_string_equal(form.pattern.name, pattern);
	form.actions = NULL;
	for (unsigned i = 0; form_actions(i) != NULL; i++)
		if (strcmp(form_actions(i)->name, actions) == 0)
			form.actions = form_actions(i);
	assert_non_null(form.actions);
	cell_try(&cells->cell_port, &form, cell);
}

static void expect(struct cells *cells, const char *pattern, const char *actions, enum level level)
{
	struct cell cell;

	try_form(cells, pattern, actions, &cell);
	if (cell.level != level)
		fail_msg("%s, %s: %s, not %s", pattern, actions, level_name(cell.level),
			level_name(level));
}

/* Whatever is tried of it, nothing is left in the NIC. */
static void no_form_leaves_a_rule(void **state)
{
	static const struct {
		const char *args;
		bool async;
	} nics[] = {
		{"flows=64,proto=mix,ipv6=50,vlan=30", false},
		{"flows=64,proto=mix,ipv6=50,vlan=30,profile=cx6-hws", true},
		{"flows=8,profile=x710,create_ns=0,destroy_ns=0", false},
		{"source=none,profile=e810,create_ns=0,destroy_ns=0", false},
		{"flows=8,fault=fail:every=3", false},
		{"flows=8,fault=fail:every=7/drop_completion:every=500,profile=cx6-hws", true},
	};
	struct cells cells;

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(nics); i++) {
		struct form form;
		struct cell cell;

		cells_open(&cells, nics[i].args, nics[i].async);
		for (unsigned p = 0; form_pattern(p, &form.pattern); p++) {
			for (unsigned a = 0; (form.actions = form_actions(a)) != NULL; a++) {
				cell_try(&cells.cell_port, &form, &cell);
				if (cell.left)
					fail_msg("%s: %s, %s: left, %s", nics[i].args,
						form.pattern.name, form.actions->name,
						cell.destroy.words);
			}
		}
		assert_int_equal(cells.cell_port.n_left, 0);
		cells_close(&cells);
	}
}

/* Of a rule that was refused, and whose refusal nobody heard of, there is nothing to take back. */
static void a_refusal_that_nobody_heard_leaves_nothing(void **state)
{
	struct cells cells;
	struct cell cell;

	(void)state;
	cells_open(&cells, "flows=8,profile=cx6-hws", true);
	/* the port says how it makes rules */
	expect(&cells, "eth / ipv4 / udp", "mark + queue", LEVEL_WORKS);
	assert_true(cells.cell_port.by_templates);
	scene_fault(&cells.scene, "fail:op=create");
	scene_fault(&cells.scene, "drop_completion:every=21");
	for (unsigned i = 0; i < 22; i++) {
		try_form(&cells, "eth / ipv4 / udp", "mark + queue", &cell);
		assert_int_equal(cell.level, LEVEL_NO);
		assert_false(cell.left);
	}
	assert_int_equal(cells.cell_port.n_left, 0);
	cells_close(&cells);
}

static void lies_are_accepted_and_do_not_work(void **state)
{
	struct cells cells;
	struct cell cell;

	(void)state;
	cells_open(&cells, "flows=8", false);
	expect(&cells, "eth / ipv4 / udp", "mark + count", LEVEL_WORKS);
	expect(&cells, "eth / ipv4 / udp", "drop + count", LEVEL_WORKS);
	scene_fault(&cells.scene, "stop_mark");
	expect(&cells, "eth / ipv4 / udp", "mark", LEVEL_ACCEPTS);
	scene_fault(&cells.scene, "stop_mark:every=3");
	expect(&cells, "eth / ipv4 / udp", "mark", LEVEL_ACCEPTS);
	scene_fault(&cells.scene, "stop_mark:off");
	scene_fault(&cells.scene, "wrong_mark");
	try_form(&cells, "eth / ipv4 / udp", "mark", &cell);
	assert_int_equal(cell.level, LEVEL_ACCEPTS);
	assert_int_equal(cell.seen.wrong, cell.seen.packets);
	scene_fault(&cells.scene, "wrong_mark:off");
	scene_fault(&cells.scene, "lose");
	expect(&cells, "eth / ipv4 / udp", "drop", LEVEL_ACCEPTS);
	expect(&cells, "eth / ipv4 / udp", "queue", LEVEL_ACCEPTS);
	expect(&cells, "eth / ipv4 / udp", "represented_port", LEVEL_ACCEPTS);
	scene_fault(&cells.scene, "lose:off");
	scene_fault(&cells.scene, "count_nothing");
	try_form(&cells, "eth / ipv4 / udp", "mark + count", &cell);
	assert_int_equal(cell.level, LEVEL_ACCEPTS);
	assert_int_equal(cell.counter, CELL_STUCK);
	expect(&cells, "eth / ipv4 / udp", "mark", LEVEL_WORKS);
	cells_close(&cells);
}

static void a_rule_that_does_not_go_is_told(void **state)
{
	struct rte_flow_error said;
	struct cells cells;
	struct cell cell;

	(void)state;
	cells_open(&cells, "flows=8", false);
	scene_fault(&cells.scene, "fail:op=destroy");
	try_form(&cells, "eth / ipv4 / udp", "mark", &cell);
	assert_true(cell.left);
	assert_int_equal(cell.destroy.error, EIO);
	assert_int_equal(cells.cell_port.n_left, 1);
	scene_fault(&cells.scene, "fail:off");
	assert_int_equal(rte_flow_flush(cells.scene.nic.id, &said), 0);
	cells_close(&cells);
}

static void an_effect_ends_with_its_rule(void **state)
{
	struct cells cells;
	struct cell cell;

	(void)state;
	cells_open(&cells, "flows=8", true);
	expect(&cells, "eth / ipv4 / udp", "mark", LEVEL_WORKS);
	try_form(&cells, "eth / ipv4 / udp", "queue", &cell);
	assert_false(cell.stays);
	assert_int_equal(cell.effect, CELL_SEEN);
	cells_close(&cells);
}

static void where_nothing_comes_nothing_works(void **state)
{
	struct cells cells;
	struct cell cell;
	char words[192];

	(void)state;
	cells_open(&cells, "source=none", false);
	assert_null(cells.cell_port.observer);
	try_form(&cells, "eth / ipv4 / udp", "mark + count", &cell);
	assert_int_equal(cell.level, LEVEL_ACCEPTS);
	assert_int_equal(cell.effect, CELL_UNSEEN);
	cell_words(words, sizeof(words), form_actions(0), &cell);
	assert_string_equal(words, "effect not tried: no packets of such a flow came");
	cells_close(&cells);
}

/* Says how many packets come at each look, one after the other. */
struct told {
	struct observer real;
	const unsigned *packets;
	unsigned looks;
};

static bool told_find(void *context, const struct form_pattern *pattern, struct observed_flow *flow)
{
	const struct told *told = context;

	return told->real.find(told->real.context, pattern, flow);
}

/* Before each look. */
static void told_settle(void *context)
{
	struct told *told = context;

	told->looks++;
}

static void told_watch(void *context, const struct observer_watch *watch, struct observed *seen)
{
	const struct told *told = context;

	(void)watch;
	seen->packets = told->packets[told->looks - 1];
	seen->marked = seen->in_place = seen->packets;
	/* whoever waits for packets that do not come waits longer */
	if (seen->packets == 0)
		rte_delay_us_sleep(1000);
}

static uint64_t told_forwarded(void *context)
{
	(void)context;
	return 0;
}

/* A card is not blamed for what may not have come: nothing of two flows, whose second one is looked at before. */
static void silence_of_uneven_traffic_tells_nothing(void **state)
{
	static const struct {
		const char *actions;
		unsigned looks, packets[9];
		enum cell_effect effect;
		enum cell_counter counter;
	} rows[] = {
		{"mark", 2, {1, 4}, CELL_SEEN, CELL_NOT_COUNTED},
		{"mark", 6, {0}, CELL_UNSEEN, CELL_NOT_COUNTED},
		{"mark", 5, {0, 4, 4, 0, 4}, CELL_BROKEN, CELL_NOT_COUNTED},
		{"mark", 8, {0, 4, 3, 0, 4, 3, 0, 4}, CELL_UNSEEN, CELL_NOT_COUNTED},
		{"mark", 8, {0, 4, 4, 0, 0, 16, 0, 4}, CELL_BROKEN, CELL_NOT_COUNTED},
		{"mark", 5, {0, 4, 3, 1, 4}, CELL_SEEN, CELL_NOT_COUNTED},
		{"drop", 2, {0, 4}, CELL_SEEN, CELL_NOT_COUNTED},
		{"drop", 2, {1, 4}, CELL_BROKEN, CELL_NOT_COUNTED},
		{"drop + count", 5, {0, 4, 4, 0, 4}, CELL_SEEN, CELL_STUCK},
		{"drop + count", 8, {0, 4, 3, 0, 4, 3, 0, 4}, CELL_UNSEEN, CELL_NOT_COUNTED},
		{"drop + count", 6, {0}, CELL_UNSEEN, CELL_NOT_COUNTED},
		{"represented_port", 5, {0, 4, 4, 0, 4}, CELL_BROKEN, CELL_NOT_COUNTED},
		{"represented_port", 8, {0, 4, 3, 0, 4, 3, 0, 4}, CELL_UNSEEN, CELL_NOT_COUNTED},
	};
	struct cells cells;

	(void)state;
	cells_open(&cells, "flows=8", false);
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct told told = {.real = cells.observer, .packets = rows[i].packets};
		const struct observer observer = {.find = told_find,
			.settle = told_settle,
			.watch = told_watch,
			.forwarded = told_forwarded,
			.context = &told};
		struct cell cell;

		cells.cell_port.observer = &observer;
		/* no pause is waited for */
		cells.cell_port.n_stuck = cells.cell_port.n_silent = 2;
		try_form(&cells, "eth / ipv4 / udp", rows[i].actions, &cell);
		if (cell.effect != rows[i].effect || cell.counter != rows[i].counter ||
			told.looks != rows[i].looks)
			fail_msg("row %u: effect %d, counter %d, %u looks", i, cell.effect,
				cell.counter, told.looks);
	}
	cells_close(&cells);
}

static void marks_are_as_wide_as_they_come(void **state)
{
	static const struct {
		const char *args;
		unsigned bits;
	} rows[] = {{"flows=8", 32}, {"flows=8,mark_bits=24", 24}, {"flows=8,mark_bits=16", 16},
		{"flows=8,mark_bits=31", 31}, {"flows=8,mark_bits=20", 20},
		{"flows=8,mark_bits=15", 15}, {"flows=8,mark_bits=8", 8},
		{"flows=8,mark_bits=6", 6}, {"flows=8,profile=cx5,create_ns=0", 24}};
	struct form form;

	(void)state;
	form_pattern(4, &form.pattern);
	/* mark + queue */
	form.actions = form_actions(2);
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct cell_marks marks;
		struct cells cells;

		cells_open(&cells, rows[i].args, false);
		cell_marks(&cells.cell_port, &form, &marks);
		assert_int_equal(marks.accepted_bits, rows[i].bits);
		assert_int_equal(marks.seen_bits, rows[i].bits);
		cells_close(&cells);
	}
}

static void a_counter_that_goes_round_is_that_wide(void **state)
{
	static const struct {
		const char *args;
		unsigned bits;
	} rows[] = {
		{"flows=4", 0}, {"flows=4,counter_bits=10", 10}, {"flows=4,counter_bits=12", 12}};
	struct form form;

	(void)state;
	form_pattern(4, &form.pattern);
	form.actions = form_actions(4);
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct cell_width width;
		struct cells cells;

		cells_open(&cells, rows[i].args, false);
		assert_true(cell_counter_width(&cells.cell_port, &form, 500000, &width));
		assert_int_equal(width.bits, rows[i].bits);
		if (rows[i].bits == 0)
			assert_int_equal(width.counted[width.n - 1], width.expected[width.n - 1]);
		cells_close(&cells);
	}
}

static void widths_by_samples(void **state)
{
	struct cell_width width = {.n = 16};

	(void)state;
	for (unsigned i = 0; i < width.n; i++)
		width.expected[i] = width.counted[i] = (i + 1) * UINT64_C(25013);
	cell_judge_width(&width);
	assert_int_equal(width.bits, 0);
	assert_int_equal(width.at_least, 19);
	for (unsigned i = 0; i < width.n; i++)
		width.counted[i] = width.expected[i] & 0xffff;
	cell_judge_width(&width);
	assert_int_equal(width.bits, 16);
	/* one that stands still has no width */
	for (unsigned i = 0; i < width.n; i++)
		width.counted[i] = 1000;
	cell_judge_width(&width);
	assert_int_equal(width.bits, 0);
	assert_int_equal(width.at_least, 10);
	width.n = 0;
	cell_judge_width(&width);
	assert_int_equal(width.at_least, 0);
}

static void levels_by_what_was_shown(void **state)
{
	const struct form_actions counts = {.count = true}, plain = {.count = false};
	struct cell cell = {.create = {.error = EINVAL}};

	(void)state;
	assert_int_equal(cell_level(&plain, &cell), LEVEL_NO);
	cell.validates = true;
	assert_int_equal(cell_level(&plain, &cell), LEVEL_SAYS_YES);
	cell.validate.error = ENOTSUP;
	assert_int_equal(cell_level(&plain, &cell), LEVEL_NO);
	/* a driver whose validate says no, and whose create does it, is believed in what it does */
	cell.create.error = 0;
	assert_int_equal(cell_level(&plain, &cell), LEVEL_ACCEPTS);
	cell.effect = CELL_BROKEN;
	assert_int_equal(cell_level(&plain, &cell), LEVEL_ACCEPTS);
	cell.effect = CELL_SEEN;
	assert_int_equal(cell_level(&plain, &cell), LEVEL_WORKS);
	assert_int_equal(cell_level(&counts, &cell), LEVEL_ACCEPTS);
	cell.counter = CELL_STUCK;
	assert_int_equal(cell_level(&counts, &cell), LEVEL_ACCEPTS);
	cell.counter = CELL_LATE;
	assert_int_equal(cell_level(&counts, &cell), LEVEL_WORKS);
}

static void tables_have_the_room_that_they_have(void **state)
{
	static const struct {
		const char *args;
		uint32_t rules;
		enum limits_end end;
		bool async;
	} rows[] = {
		{"source=none,profile=tiny,create_ns=0,destroy_ns=0", 512, LIMITS_FULL, false},
		{"source=none,profile=tiny,create_ns=0,destroy_ns=0,hostile=0", 512, LIMITS_FULL,
			false},
		{"source=none,profile=e810,create_ns=0,destroy_ns=0,rules=700", 700, LIMITS_FULL,
			false},
		{"source=none,profile=cx6-hws,rules=900", 900, LIMITS_FULL, true},
		{"source=none,rules=900,fault=ghost:rules=100", 800, LIMITS_FULL, false},
		{"source=none", 1000, LIMITS_CAP, false},
		{"source=none,fault=fail:op=create:every=5", 1000, LIMITS_CAP, false},
		{"source=none", 1000, LIMITS_CAP, true},
		{"source=none,actions=queue+drop", 0, LIMITS_NONE, false},
	};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct provider_scene scene;
		struct limits limits;

		scene_port(&scene, rows[i].args, rows[i].async);
		struct limits_config config = {
			.provider = scene.config, .deadline_us = monotonic_us() + 20000000};

		config.provider.n_places = 1000;
		assert_int_equal(limits_measure(&limits, &config), 0);
		assert_int_equal(limits.end, rows[i].end);
		if (strstr(rows[i].args, "every") == NULL)
			assert_int_equal(limits.rules, rows[i].rules);
		else
			assert_int_equal(limits.rules + limits.failed, 1000);
		assert_int_equal(limits.left, 0);
		assert_int_equal(scene_count(&scene, "flow_rules"),
			strstr(rows[i].args, "ghost") != NULL ? 100 : 0);
		nic_close(&scene.nic);
	}
}

static void stop_at_inserts(void *context, const char *what, unsigned rules, unsigned allow_s)
{
	atomic_bool *stop = context;

	(void)allow_s;
	if (strcmp(what, "insert") == 0 && rules == 10)
		atomic_store(stop, true);
}

static void who_interrupts_is_told_so(void **state)
{
	atomic_bool stop = false;
	struct limits_config config;
	struct provider_scene scene;
	struct limits limits;

	(void)state;
	scene_port(&scene, "source=none", false);
	config = (struct limits_config){
		.provider = scene.config, .deadline_us = monotonic_us() + 20000000};
	config.step = stop_at_inserts;
	config.context = &stop;
	config.provider.stop = &stop;
	config.provider.n_places = 1000;
	assert_int_equal(limits_measure(&limits, &config), 0);
	assert_int_equal(limits.end, LIMITS_STOPPED);
	assert_true(limits.rules > 0 && limits.rules < 1000);
	assert_int_equal(limits.left, 0);
	nic_close(&scene.nic);
}

static void latencies_are_those_of_the_calls(void **state)
{
	struct provider_scene scene;
	struct limits limits;

	(void)state;
	scene_port(&scene, "source=none,create_ns=2000000,destroy_ns=1000000,async=0", false);
	struct limits_config config = {
		.provider = scene.config, .deadline_us = monotonic_us() + 20000000};

	config.provider.n_places = 50;
	assert_int_equal(limits_measure(&limits, &config), 0);
	assert_int_equal(limits.insert.times, 50);
	assert_true(limits.insert.p50_ns >= 2000000);
	assert_true(limits.insert.per_s <= 500);
	assert_true(limits.remove.p50_ns >= 1000000);
	assert_true(limits.remove.p99_ns >= limits.remove.p50_ns);
	nic_close(&scene.nic);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_form_leaves_a_rule),
		cmocka_unit_test(a_refusal_that_nobody_heard_leaves_nothing),
		cmocka_unit_test(lies_are_accepted_and_do_not_work),
		cmocka_unit_test(a_rule_that_does_not_go_is_told),
		cmocka_unit_test(an_effect_ends_with_its_rule),
		cmocka_unit_test(where_nothing_comes_nothing_works),
		cmocka_unit_test(silence_of_uneven_traffic_tells_nothing),
		cmocka_unit_test(marks_are_as_wide_as_they_come),
		cmocka_unit_test(a_counter_that_goes_round_is_that_wide),
		cmocka_unit_test(widths_by_samples),
		cmocka_unit_test(levels_by_what_was_shown),
		cmocka_unit_test(tables_have_the_room_that_they_have),
		cmocka_unit_test(who_interrupts_is_told_so),
		cmocka_unit_test(latencies_are_those_of_the_calls),
	};

	return cmocka_run_group_tests(tests, nic_begin, NULL);
}
