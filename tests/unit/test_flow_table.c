/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "flow/fragments.h"
#include "flow/shard.h"
#include "flow/table.h"

static struct hash_secret random_secret;

/* With this secret the keys of colliding_key() all have one hash. */
static const struct hash_secret no_secret;

static struct flow_key numbered_key(uint32_t number)
{
	struct flow_key key = {.proto = 17, .version_wire = FLOW_KEY_VERSION_WIRE(4, 0)};

	memcpy(key.addr[0], &number, sizeof(number));
	key.addr[1][0] = 255;
	return key;
}

static struct flow_key colliding_key(uint32_t number)
{
	struct flow_key key = {.version_wire = FLOW_KEY_VERSION_WIRE(6, 0)};

	memcpy(&key.addr[0][8], &number, sizeof(number));
	return key;
}

/* No line holds anything, or remembers that something went away. */
static void check_as_new(const struct flow_table *table)
{
	assert_int_equal(table->count, 0);
	assert_int_equal(table->n_strays, 0);
	assert_int_equal(flow_table_next(table, 0), FLOW_NONE);
	for (uint32_t i = 0; i < table->n_groups * table->group_lines; i++) {
		assert_true(line_is_empty(&table->lines[i]));
		/* a count sticks only where keys are made to collide */
		if (table->secret != &no_secret)
			assert_int_equal(table->lines[i].away, 0);
	}
}

static void fill_and_empty(
	const struct hash_secret *secret, uint32_t capacity, struct flow_key (*make)(uint32_t))
{
	uint32_t *position = malloc(capacity * sizeof(*position));
	struct flow_table table;

	assert_int_equal(flow_table_init(&table, capacity, secret, 0), 0);
	for (uint32_t i = 0; i < capacity; i++) {
		struct flow_key key = make(i);

		position[i] = flow_table_insert(&table, &key, flow_key_hash(secret, &key));
		assert_int_not_equal(position[i], FLOW_NONE);
		assert_true(flow_key_equal(&flow_table_record(&table, position[i])->key, &key));
		flow_table_record(&table, position[i])->state = FLOW_REQUEST;
	}
	struct flow_key more = make(capacity);

	assert_int_equal(flow_table_insert(&table, &more, flow_key_hash(secret, &more)), FLOW_NONE);
	assert_int_equal(flow_table_find(&table, &more, flow_key_hash(secret, &more)), FLOW_NONE);
	for (uint32_t i = 0; i < capacity; i++) {
		struct flow_key key = make(i);
		uint64_t hash = flow_key_hash(secret, &key);

		assert_int_equal(flow_table_find(&table, &key, hash), position[i]);
		if (i % 2 == 0) {
			flow_table_remove(&table, position[i]);
			assert_int_equal(flow_table_find(&table, &key, hash), FLOW_NONE);
		}
	}
	for (uint32_t i = 1; i < capacity; i += 2) {
		struct flow_key key = make(i);

		assert_int_equal(
			flow_table_find(&table, &key, flow_key_hash(secret, &key)), position[i]);
		flow_table_remove(&table, position[i]);
	}
	check_as_new(&table);
	flow_table_fini(&table);
	free(position);
}

static void takes_what_it_was_made_for(void **state)
{
	(void)state;
	static const uint32_t capacities[] = {
		1, 2, 14, 15, 16, 31, 100, 1000, 65535, 65536, 70000, 131072, 131073, 300000};

	for (unsigned i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++)
		fill_and_empty(&random_secret, capacities[i], numbered_key);
}

static void takes_it_whatever_the_keys(void **state)
{
	(void)state;
	struct flow_key a = colliding_key(1), b = colliding_key(2);

	assert_int_equal(flow_key_hash(&no_secret, &a), flow_key_hash(&no_secret, &b));
	fill_and_empty(&no_secret, 1, colliding_key);
	fill_and_empty(&no_secret, 62, colliding_key);
	fill_and_empty(&no_secret, 5000, colliding_key);
}

static void bursts_find_what_single_look_ups_find(void **state)
{
	(void)state;
	enum { CAPACITY = 4000, BURST = 64 };
	struct flow_table table;

	assert_int_equal(flow_table_init(&table, CAPACITY, &random_secret, 0), 0);
	for (uint32_t i = 0; i < CAPACITY; i++) {
		struct flow_key key = numbered_key(i);

		flow_table_insert(&table, &key, flow_key_hash(&random_secret, &key));
	}
	/* leave stale keys behind in freed positions: they must not be found */
	for (uint32_t i = 0; i < CAPACITY; i += 3) {
		struct flow_key key = numbered_key(i);

		flow_table_remove(
			&table, flow_table_find(&table, &key, flow_key_hash(&random_secret, &key)));
	}
	for (uint32_t first = 0; first < 2 * CAPACITY; first += BURST) {
		const struct flow_key *pointers[BURST];
		struct flow_key keys[BURST];
		uint64_t hashes[BURST];
		uint32_t positions[BURST];

		for (uint32_t i = 0; i < BURST; i++) {
			keys[i] = numbered_key(first + i);
			pointers[i] = &keys[i];
			hashes[i] = flow_key_hash(&random_secret, &keys[i]);
		}
		flow_table_find_burst(&table, pointers, hashes, positions, BURST);
		for (uint32_t i = 0; i < BURST; i++) {
			bool there = first + i < CAPACITY && (first + i) % 3 != 0;

			assert_int_equal(
				positions[i], flow_table_find(&table, &keys[i], hashes[i]));
			assert_int_equal(positions[i] != FLOW_NONE, there);
		}
	}
	flow_table_fini(&table);
}

/*
 * A table that was full for long, each flow replaced many times over: look-ups still end after a line
 * or two, since nothing lies elsewhere than where its hash says.
 */
static void stays_cheap_when_full_for_long(void **state)
{
	(void)state;
	enum { CAPACITY = 65536, TURNOVERS = 5 };
	uint32_t *position = malloc(CAPACITY * sizeof(*position));
	uint32_t reading_on = 0;
	struct flow_table table;
	uint32_t next = 0;

	assert_int_equal(flow_table_init(&table, CAPACITY, &random_secret, 0), 0);
	for (; next < CAPACITY; next++) {
		struct flow_key key = numbered_key(next);

		position[next] =
			flow_table_insert(&table, &key, flow_key_hash(&random_secret, &key));
	}
	srandom(3);
	for (uint32_t i = 0; i < TURNOVERS * CAPACITY; i++) {
		uint32_t victim = (uint32_t)random() % CAPACITY;
		struct flow_key key = numbered_key(next++);

		flow_table_remove(&table, position[victim]);
		position[victim] =
			flow_table_insert(&table, &key, flow_key_hash(&random_secret, &key));
		assert_int_not_equal(position[victim], FLOW_NONE);
		assert_int_equal(table.n_strays, 0);
	}
	for (uint32_t i = 0; i < table.n_groups * table.group_lines; i++) {
		for (unsigned class = 0; class < LINE_CLASSES; class ++)
			reading_on += (table.lines[i].away >> 4 * class & 15) != 0;
	}
	/* at the fullest that a table can be, three of four misses read the other line too */
	assert_true(reading_on < table.group_lines * 4 * 85 / 100);
	flow_table_fini(&table);
	free(position);
}

/* In a table of several groups positions go beyond its capacity. */
static void positions_have_a_bound(void **state)
{
	enum { MANY = 200000 };
	struct flow_table table = {0};
	uint32_t highest = 0;

	(void)state;
	assert_int_equal(flow_table_init(&table, MANY, &random_secret, 0), 0);
	for (uint32_t i = 0; i < MANY; i++) {
		struct flow_key key = numbered_key(i);
		uint32_t position =
			flow_table_insert(&table, &key, flow_key_hash(&random_secret, &key));

		assert_true(position < flow_table_positions(&table));
		highest = position > highest ? position : highest;
	}
	assert_true(table.n_groups > 1 && highest >= MANY);
	flow_table_fini(&table);
}

static void refuses_impossible_capacities(void **state)
{
	(void)state;
	struct flow_table table = {0};

	assert_int_equal(flow_table_init(&table, 0, &random_secret, 0), -EINVAL);
	assert_int_equal(
		flow_table_init(&table, FLOW_MAX_CAPACITY + 1, &random_secret, 0), -EINVAL);
	flow_table_fini(&table);
}

static void no_reports(void *context, const struct flow_report *reports, unsigned n)
{
	(void)context;
	(void)reports;
	(void)n;
}

static void pays_144_bytes_a_flow(void **state)
{
	(void)state;
	static const uint32_t capacities[] = {65536, 65537, 80000, 100000, 131072, 131073, 200000,
		262144, 262145, 1000000, 1 << 22};

	for (unsigned i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++) {
		struct flow_shard_config config = {
			.capacity = capacities[i],
			.secret = &random_secret,
			.sink = no_reports,
		};
		struct flow_shard *shard;

		assert_int_equal(flow_shard_create(&shard, &config), 0);
		size_t bytes =
			flow_shard_memory(shard) + fragments_bytes(fragments_for(capacities[i]));

		assert_true(bytes <= 144 * (size_t)capacities[i]);
		flow_shard_destroy(shard);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_what_it_was_made_for),
		cmocka_unit_test(takes_it_whatever_the_keys),
		cmocka_unit_test(bursts_find_what_single_look_ups_find),
		cmocka_unit_test(stays_cheap_when_full_for_long),
		cmocka_unit_test(positions_have_a_bound),
		cmocka_unit_test(refuses_impossible_capacities),
		cmocka_unit_test(pays_144_bytes_a_flow),
	};

	if (hash_secret_init(&random_secret) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
