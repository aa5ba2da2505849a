/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Flows that are explained, for the tests of that: each test program includes this once. */

#include "unit/control_scene.h"

#define ONE "\"src\":\"10.0.0.7\",\"sport\":33512,\"dst\":\"10.0.0.10\",\"dport\":443"
#define TURNED "\"dst\":\"10.0.0.7\",\"dport\":33512,\"src\":\"10.0.0.10\",\"sport\":443"
#define EXPLAIN(with) "{\"ask\":\"flow explain\",\"with\":{" with "}}"
#define CLOCK 100000000 /* of the fake plane */

static inline struct flow_record *add(struct scene *scene, uint8_t proto, enum flow_state state)
{
	struct flow_record record = fake_flow("10.0.0.7", 33512, "10.0.0.10", 443, proto);

	record.state = state & 0xf;
	record.start_us = CLOCK - 40000000;
	record.last_seen_us = CLOCK - 3000;
	return fake_add(&scene->plane, 1, 17, &record);
}

/* The initiator's direction is the first of two. */
static inline const json_t *direction(const json_t *line, unsigned number)
{
	const json_t *directions = json_object_get(line, "directions");

	assert_int_equal(json_array_size(directions), 2);
	return json_array_get(directions, number);
}

/* The port "left" is that of the forward direction, "right" that of the reverse. */
static inline struct flow_record *add_offloaded(
	struct scene *scene, uint8_t forward, uint8_t reverse)
{
	struct flow_record *record = add(scene, 6, FLOW_ESTABLISHED);

	record->count[0].packets_low = 7000;
	record->count[1].packets_low = 5000;
	scene->plane.flow.port[1] = 1;
	scene->plane.config.offload = (struct plane_offload){.on = true, .threshold = 1000};
	scene->plane.installers[0].there = scene->plane.installers[1].there = true;
	scene->plane.offload[1][17] = (struct flow_offload){
		.packets = 6000,
		.state = {forward, reverse},
		.reason = {OFFLOAD_BUSY, OFFLOAD_QUIET},
		.told = true,
	};
	return record;
}
