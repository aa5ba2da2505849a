/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/change.h"

static struct flow_key key_of(uint64_t flow)
{
	struct flow_key key = {.proto = 17, .version_wire = FLOW_KEY_VERSION_WIRE(4, 0)};

	memcpy(key.addr[1], &flow, sizeof(flow));
	return key;
}

/* Of 5 flows in turn, each seventh of a port; the time is the number. */
static void note(struct change_ring *ring, uint64_t number)
{
	struct offload_change change = {
		.key = key_of(number % 5),
		.time_us = number & 0xffffff,
		.kind = number % 7 ? CHANGE_FLOW : CHANGE_STALLED,
		.before = OFFLOAD_INSTALLING,
		.after = OFFLOAD_ACCEPTED,
		.port = 31,
		.reason = 255,
		.from = 1,
		.detail = UINT32_MAX,
	};

	change_note(ring, &change);
}

static void a_flows_changes_come_newest_first(void **state)
{
	struct change_ring *ring = calloc(1, sizeof(*ring));
	struct offload_change changes[CHANGE_RING];
	struct flow_key key = key_of(3);
	const uint64_t totals[] = {
		0, 1, 4, 100, CHANGE_RING, CHANGE_RING + 1, 3 * CHANGE_RING + 17};
	uint64_t number = 0;

	(void)state;
	for (unsigned i = 0; i < sizeof(totals) / sizeof(totals[0]); i++) {
		uint64_t oldest = totals[i] > CHANGE_RING ? totals[i] - CHANGE_RING : 0;
		unsigned expected = 0;
		bool lost;

		for (; number < totals[i]; number++)
			note(ring, number);
		unsigned n = change_of_flow(ring, &key, changes, CHANGE_RING, &lost);

		for (uint64_t at = totals[i]; at-- > oldest;) {
			if (at % 5 != 3 || at % 7 == 0)
				continue;
			assert_true(changes[expected].time_us == at);
			expected++;
		}
		assert_int_equal(n, expected);
		assert_int_equal(lost, totals[i] > CHANGE_RING);
		assert_int_equal(change_of_flow(ring, &key, changes, 2, &lost), n < 2 ? n : 2);
		assert_int_equal(lost, n > 2 || totals[i] > CHANGE_RING);
	}
	assert_int_equal(changes[0].port, 31);
	assert_int_equal(changes[0].reason, 255);
	assert_int_equal(changes[0].before, OFFLOAD_INSTALLING);
	assert_int_equal(changes[0].after, OFFLOAD_ACCEPTED);
	assert_int_equal(changes[0].detail, UINT32_MAX);
	free(ring);
}

static void reading_goes_on_where_it_stopped_and_over_what_is_lost(void **state)
{
	struct change_ring *ring = calloc(1, sizeof(*ring));
	struct offload_change changes[100];
	uint64_t from = 0, expected = 0, number = 0;

	(void)state;
	assert_int_equal(change_read(ring, &from, changes, 100), 0);
	for (unsigned round = 0; round < 400; round++) {
		/* now and then more than the ring holds */
		for (unsigned i = 0; i < (round % 50 == 49 ? CHANGE_RING + 300 : 90); i++)
			note(ring, number++);
		unsigned n = change_read(ring, &from, changes, 100);

		if (expected + CHANGE_RING < number)
			expected = number - CHANGE_RING;
		assert_int_equal(n, number - expected < 100 ? number - expected : 100);
		for (unsigned i = 0; i < n; i++, expected++)
			assert_true(changes[i].time_us == expected);
		assert_true(from == expected);
	}
	free(ring);
}

static void every_kind_has_a_name(void **state)
{
	(void)state;
	for (unsigned i = 0; i < CHANGE_N_KINDS; i++) {
		assert_non_null(change_kind_name(i));
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(change_kind_name(i), change_kind_name(j));
	}
}

static void every_reason_has_a_name_and_a_sentence(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 256; i++) {
		uint8_t reason = i & 255;
		const char *name = offload_reason_name(reason), *what = offload_reason_what(reason);

		assert_true(what[0] >= 'a' && what[0] <= 'z');
		assert_true(what[strlen(what) - 1] != '.');
		for (uint8_t j = 0; i < OFFLOAD_N_REASONS && j < i; j++)
			assert_string_not_equal(name, offload_reason_name(j));
		if (i >= OFFLOAD_N_REASONS)
			assert_string_equal(name, i < OFFLOAD_REFUSALS ? "unknown" : "refused");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_flows_changes_come_newest_first),
		cmocka_unit_test(reading_goes_on_where_it_stopped_and_over_what_is_lost),
		cmocka_unit_test(every_kind_has_a_name),
		cmocka_unit_test(every_reason_has_a_name_and_a_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
