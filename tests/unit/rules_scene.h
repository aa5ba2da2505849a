/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Rules of an engine with two wires (ports 0 and 1, 2 and 3), for tests. Everything fails by assertion. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "action/program.h"
#include "rule/rules.h"
#include "unit/frames.h"
#include "unit/packet_checks.h"

struct rules_scene {
	struct rules *rules;
	struct programs *programs;
	struct rte_rcu_qsbr *qsbr;
	struct topology topology;
	char told[65536]; /* lines of the last command */
};

static inline void scene_open(struct rules_scene *scene, uint32_t max, bool zone_vlan)
{
	const struct action drop = {.kind = ACTION_DROP};
	struct action_program program;
	struct error error;
	uint16_t number;

	memset(scene, 0, sizeof(*scene));
	scene->topology = topology_of_wires(2);
	scene->qsbr = aligned_alloc(64, RTE_ALIGN_CEIL(rte_rcu_qsbr_get_memsize(1), (size_t)64));
	assert_non_null(scene->qsbr);
	assert_int_equal(rte_rcu_qsbr_init(scene->qsbr, 1), 0);
	scene->programs = programs_create(256, scene->qsbr);
	assert_non_null(scene->programs);
	assert_int_equal(action_program_compile(&program, &drop, 1, &error), 0);
	assert_int_equal(programs_intern(scene->programs, &program, &number, &error), 0);
	assert_int_equal(number, FLOW_VERDICT_DROP);
	const struct rules_config config = {
		.max_rules = max,
		.max_beside = max,
		.n_workers = 1,
		.topology = &scene->topology,
		.zone_vlan = zone_vlan,
		.programs = scene->programs,
		.secret = &test_secret,
		.qsbr = scene->qsbr,
	};

	assert_int_equal(rules_create(&scene->rules, &config), 0);
}

static inline void scene_close(struct rules_scene *scene)
{
	rules_destroy(scene->rules);
	programs_destroy(scene->programs);
	free(scene->qsbr);
}

static inline void scene_tell(void *context, const char *line)
{
	struct rules_scene *scene = context;
	const size_t length = strlen(scene->told);

	snprintf(scene->told + length, sizeof(scene->told) - length, "%s\n", line);
}

/* What the command says, or its error with the column in front. */
static inline const char *scene_command(struct rules_scene *scene, const char *line)
{
	struct error error;
	unsigned column;

	scene->told[0] = '\0';
	if (rules_command(scene->rules, line, strlen(line), &column, scene_tell, scene, &error) < 0)
		snprintf(scene->told, sizeof(scene->told), "%u: %s\n", column, error.text);
	return scene->told;
}

/* Every worker has seen it all. */
static inline void scene_settle(struct rules_scene *scene)
{
	rules_settled(scene->rules,
		atomic_load_explicit(rules_generation(scene->rules), memory_order_acquire));
}
