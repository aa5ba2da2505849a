/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Answers of an engine, as `millrace top` gets them: two rounds, one second apart. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "cli/top_picture.h"

#define SCENE_START_US INT64_C(1795161600000000) /* 2026-11-20T08:00:00Z */

static inline json_t *scene_json(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* An array of objects, written with ' for ". */
static inline json_t *scene_json(const char *format, ...)
{
	char text[8192];
	json_error_t error;
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	for (char *at = text; *at != '\0'; at++)
		if (*at == '\'')
			*at = '"';
	json_t *json = json_loads(text, 0, &error);

	assert_non_null(json);
	return json;
}

/* Everything rises by its share in each round: 1,000 packets and 125,000 bytes a second. */
static inline void scene_counters(struct top_picture *picture, unsigned round)
{
	json_t *lines[TOP_N_COUNTERS] = {
		[TOP_WIRES] = scene_json(
			"[{'wire':0,'received':%u,'received_bytes':%u,'dropped':%u,'flows':1234,"
			"'nic_forwarded':0,'nic_forwarded_bytes':0,'nic_dropped':0}]",
			1000 * round, 125000 * round, 12 * round),
		[TOP_PORTS] = scene_json(
			"[{'port':'eth1','link':'up','speed_mbps':10000,'rx_packets':%u,'rx_bytes':"
			"%u,"
			"'tx_packets':0,'tx_bytes':0,'nic':{'rx_missed':%u}},"
			"{'port':'eth2','link':'down','rx_packets':0,'rx_bytes':0,'tx_packets':%u,"
			"'tx_bytes':%u}]",
			1000 * round, 125000 * round, 7 * round, 988 * round, 123500 * round),
		[TOP_WORKERS] = scene_json(
			"[{'thread':'worker 0','received':%u,'handed_in':0,'new_flows':%u,"
			"'busy_cycles':%u,'idle_cycles':%u,'sleep_cycles':0}]",
			1000 * round, 50 * round, 500 * round, 500 * round),
		[TOP_DROPS] = scene_json("[{'reason':'malformed','packets':2000},"
					 "{'reason':'blocked','packets':%u},"
					 "{'reason':'tcp_window','packets':0}]",
			12 * round),
		[TOP_OFFLOAD] = scene_json(
			"[{'port':'eth1','offload':true,'ready':true,'health':{'state':'closed'},"
			"'flows':{'in_hw':7,'queued':2}},"
			"{'port':'eth2','offload':false,'unable':'left out'}]"),
	};

	/* the engine's clock counts, not that of who asked */
	json_t *end = scene_json("{'end':true,'clock_us':%u}", round * 1000000);
	json_t *ends[TOP_N_COUNTERS] = {end, end, end, end, end};

	top_picture_counters(picture, lines, ends, 5);
	json_decref(end);
	for (unsigned i = 0; i < TOP_N_COUNTERS; i++)
		json_decref(lines[i]);
}

/* Flow `i` of `n` has (n - i) * 100 packets of 125 bytes a second, and a NIC marks half of them. */
static inline void scene_flows(struct top_picture *picture, unsigned n, unsigned round)
{
	json_t *lines = json_array();

	for (unsigned i = 0; i < n; i++) {
		unsigned packets = (n - i) * 100 * round;
		json_t *line = scene_json(
			"{'proto':17,'src':'10.0.0.%u','sport':%u,'dst':'10.9.9.9','dport':53,"
			"'wire':0,'zone':0,'worker':0,'packets':%u,'reverse_packets':0,'bytes':%u,"
			"'reverse_bytes':0,'start':'2026-11-20T07:5%u:00.000000Z','state':'open',"
			"'offload':{'state':'%s','packets':%u},'rate_pps':%u}",
			i + 1, 1000 + i, packets, 125 * packets, i % 10,
			i == 0 ? "in_hw" : "software", packets / 2, (n - i) * 100);

		json_array_append_new(lines, line);
	}
	top_picture_flows(picture, lines, (int64_t)round * 1000000 + 1);
	json_decref(lines);
}

/* Both rounds. Free with top_picture_fini() and free(). */
static inline struct top_picture *scene_picture(unsigned n_flows)
{
	struct top_picture *picture = calloc(1, sizeof(*picture));

	assert_non_null(picture);
	for (unsigned round = 1; round <= 2; round++) {
		scene_counters(picture, round);
		scene_flows(picture, n_flows, round);
	}
	return picture;
}

static inline void scene_free(struct top_picture *picture)
{
	top_picture_fini(picture);
	free(picture);
}
