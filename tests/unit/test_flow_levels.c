/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table's burst functions, as compiled for each SIMD level that this CPU has, against single calls:
 * the same hashes, positions and index. And the levels of one kind of hash against one another.
 *
 * A scene is a table and what it was made to hold: displaced entries, several groups, a full group, keys
 * that collide, so that there are strays.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "flow/place.h"
#include "flow/table.h"
#include "packet/simd.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

/* Keys from here on are in no table. */
enum { KEYS_NOWHERE = 3 << 28 };

/* The same for all levels, so that they can be compared. */
static struct hash_secret secrets[SIMD_N_LEVELS];

/* Two tables that are to be alike: one changed by bursts, one by single calls. */
struct scene {
	struct flow_table burst, single;
	const struct hash_secret *secret;
	/* the scene's keys, and how many of them are in the tables */
	struct flow_key (*key)(const struct scene *scene, uint32_t number);
	uint32_t n;
	struct flow_key *keys;
	uint32_t *positions; /* in `burst` */
	uint64_t digest;     /* of all hashes and positions told */
};

static uint32_t rolled = 1;

static uint32_t roll(uint32_t below)
{
	rolled = rolled * UINT32_C(1664525) + UINT32_C(1013904223);
	return (uint32_t)((uint64_t)rolled * below >> 32);
}

static void digest(struct scene *scene, uint64_t word)
{
	scene->digest = (scene->digest ^ word) * UINT64_C(0x100000001b3);
}

/* ---- keys ---- */

static struct flow_key numbered_key(const struct scene *scene, uint32_t number)
{
	struct flow_key key = {.proto = 17, .version_wire = FLOW_KEY_VERSION_WIRE(4, 0)};

	(void)scene;
	memcpy(key.addr[0], &number, sizeof(number));
	key.addr[1][0] = 255;
	return key;
}

/* Keys whose home is in the first group. */
static struct flow_key first_groups_key(const struct scene *scene, uint32_t number)
{
	struct flow_key key = numbered_key(scene, number);
	uint16_t more = 0;

	while (place_home(&scene->single, flow_key_hash(scene->secret, &key)).group != 0)
		key.zone = ++more;
	return key;
}

#ifdef __x86_64__
/* What becomes `state` by a round of AES without a key. */
static __attribute__((target("aes"))) __m128i before_round(__m128i state)
{
	return _mm_aesdeclast_si128(_mm_aesimc_si128(state), _mm_setzero_si128());
}

/*
 * Who knows the secret makes keys collide: the first address is chosen freely, and the second such that
 * what both add up to after two rounds is 0.
 */
static __attribute__((target("aes"))) struct flow_key colliding_by_aes(
	const struct hash_secret *secret, uint32_t number)
{
	struct flow_key key = {.proto = 6, .version_wire = FLOW_KEY_VERSION_WIRE(6, 0)};
	const __m128i *by = (const __m128i *)secret->word;
	__m128i first = _mm_set1_epi32((int)number);

	_mm_storeu_si128((__m128i *)key.addr[0], first);
	first = _mm_aesenc_si128(
		_mm_xor_si128(first, _mm_loadu_si128(&by[0])), _mm_loadu_si128(&by[1]));
	first = _mm_aesenc_si128(first, _mm_loadu_si128(&by[6]));
	__m128i second = _mm_xor_si128(before_round(first), _mm_loadu_si128(&by[3]));

	second = _mm_xor_si128(before_round(second), _mm_loadu_si128(&by[2]));
	_mm_storeu_si128((__m128i *)key.addr[1], second);
	return key;
}
#endif

/* The same for multiplications: a factor of 0 hides the other. */
static struct flow_key colliding_by_fold(const struct hash_secret *secret, uint32_t number)
{
	struct flow_key key = {.proto = 6, .version_wire = FLOW_KEY_VERSION_WIRE(6, 0)};

	memcpy(key.addr[0], &secret->word[0], 8);
	memcpy(&key.addr[0][8], &number, sizeof(number));
	return key;
}

/* Of three keys, two have the same hash as all others of their kind. */
static struct flow_key colliding_key(const struct scene *scene, uint32_t number)
{
	if (number % 3 == 0)
		return numbered_key(scene, number);
#ifdef __x86_64__
	if (scene->secret->simd >= SIMD_AVX2)
		return colliding_by_aes(scene->secret, number);
#endif
	return colliding_by_fold(scene->secret, number);
}

/* ---- bursts against single calls ---- */

struct keys {
	unsigned n;
	struct flow_key *key; /* on the heap, to its exact size: a sanitizer sees reads beyond it */
	const struct flow_key *pointers[FLOW_BURST];
	uint64_t hashes[FLOW_BURST];
};

static void keys_make(struct keys *keys, unsigned n)
{
	keys->n = n;
	keys->key = malloc(n * sizeof(*keys->key));
	assert_true(keys->key != NULL || n == 0);
}

static void keys_set(
	struct keys *keys, const struct scene *scene, unsigned i, const struct flow_key *key)
{
	keys->key[i] = *key;
	keys->pointers[i] = &keys->key[i];
	keys->hashes[i] = flow_key_hash(scene->secret, key);
}

static void check_alike(const struct scene *scene)
{
	size_t n_lines = (size_t)scene->single.n_groups * scene->single.group_lines;

	assert_int_equal(scene->burst.count, scene->single.count);
	assert_int_equal(scene->burst.n_strays, scene->single.n_strays);
	for (size_t i = 0; i < n_lines; i++)
		if (memcmp(&scene->burst.lines[i], &scene->single.lines[i],
			    sizeof(struct flow_line)) != 0)
			fail_msg("line %zu of the index is not that of single calls", i);
}

/* The next `n` keys of the scene; those that find no room are told so by both. */
static void insert_burst(struct scene *scene, unsigned n)
{
	uint32_t positions[FLOW_BURST];
	struct keys keys;

	keys_make(&keys, n);
	for (unsigned i = 0; i < n; i++) {
		struct flow_key key = scene->key(scene, scene->n + i);

		keys_set(&keys, scene, i, &key);
	}
	flow_table_insert_burst(&scene->burst, keys.pointers, keys.hashes, positions, n);
	for (unsigned i = 0; i < n; i++) {
		uint32_t position =
			flow_table_insert(&scene->single, keys.pointers[i], keys.hashes[i]);

		assert_int_equal(positions[i], position);
		digest(scene, keys.hashes[i]);
		digest(scene, position);
		if (position == FLOW_NONE)
			continue;
		assert_memory_equal(flow_table_record(&scene->burst, position),
			flow_table_record(&scene->single, position), sizeof(struct flow_record));
		flow_table_record(&scene->burst, position)->state = FLOW_REQUEST;
		flow_table_record(&scene->single, position)->state = FLOW_REQUEST;
		scene->keys[scene->n] = keys.key[i];
		scene->positions[scene->n++] = position;
	}
	free(keys.key);
}

static void find_bursts_of(struct scene *scene, const struct keys *keys, const uint32_t *expected)
{
	const struct flow_table *table = &scene->burst;
	uint32_t positions[FLOW_BURST];
	uint64_t hashes[FLOW_BURST];

	flow_table_prefetch(table, keys->hashes, keys->n);
	flow_table_find_burst(table, keys->pointers, keys->hashes, positions, keys->n);
	for (unsigned i = 0; i < keys->n; i++)
		assert_int_equal(positions[i], expected[i]);
	memset(positions, 0, sizeof(positions));
	flow_table_look_up_burst(table, keys->pointers, hashes, positions, keys->n);
	for (unsigned i = 0; i < keys->n; i++) {
		assert_int_equal(hashes[i], keys->hashes[i]);
		assert_int_equal(positions[i], expected[i]);
		assert_int_equal(
			positions[i], flow_table_find(table, keys->pointers[i], keys->hashes[i]));
	}
}

/* Keys that are there, and a few that are not, in one burst; the same key may come twice. */
static void find_burst(struct scene *scene, unsigned n)
{
	uint32_t expected[FLOW_BURST];
	struct keys keys;

	keys_make(&keys, n);
	for (unsigned i = 0; i < n; i++) {
		uint32_t number = roll(scene->n + scene->n / 8 + 1);
		bool there = number < scene->n;
		struct flow_key key =
			there ? scene->keys[number] : scene->key(scene, KEYS_NOWHERE + number);

		keys_set(&keys, scene, i, &key);
		expected[i] = there ? scene->positions[number] : FLOW_NONE;
	}
	find_bursts_of(scene, &keys, expected);
	free(keys.key);
}

/* All at once that are there: none is lost. */
static void find_all(struct scene *scene)
{
	for (uint32_t first = 0; first < scene->n; first += FLOW_BURST) {
		unsigned n = scene->n - first < FLOW_BURST ? scene->n - first : FLOW_BURST;
		struct keys keys;

		keys_make(&keys, n);
		for (unsigned i = 0; i < n; i++)
			keys_set(&keys, scene, i, &scene->keys[first + i]);
		find_bursts_of(scene, &keys, &scene->positions[first]);
		free(keys.key);
	}
}

/* Removes some that are chosen at random, or the last ones. */
static void remove_burst(struct scene *scene, unsigned n)
{
	uint32_t positions[FLOW_BURST];
	struct keys keys;

	if (n > scene->n)
		n = scene->n;
	keys_make(&keys, n);
	for (unsigned i = 0; i < n; i++) {
		uint32_t number = roll(scene->n--), last = scene->n;

		positions[i] = scene->positions[number];
		keys_set(&keys, scene, i, &scene->keys[number]);
		scene->keys[number] = scene->keys[last];
		scene->positions[number] = scene->positions[last];
	}
	flow_table_remove_burst(&scene->burst, positions, n);
	for (unsigned i = 0; i < n; i++) {
		uint32_t position =
			flow_table_find(&scene->single, keys.pointers[i], keys.hashes[i]);

		assert_int_not_equal(position, FLOW_NONE);
		flow_table_remove(&scene->single, position);
		assert_int_equal(flow_table_record(&scene->burst, positions[i])->state, FLOW_FREE);
		positions[i] = FLOW_NONE;
	}
	assert_int_equal(scene->burst.count, scene->n);
	assert_int_equal(scene->burst.n_strays, scene->single.n_strays);
	find_bursts_of(scene, &keys, positions);
	free(keys.key);
}

/* ---- scenes ---- */

static void scene_open(struct scene *scene, enum simd_level level, uint32_t capacity,
	struct flow_key (*key)(const struct scene *scene, uint32_t number))
{
	*scene = (struct scene){
		.secret = &secrets[level],
		.key = key,
		.keys = calloc(capacity, sizeof(*scene->keys)),
		.positions = calloc(capacity, sizeof(*scene->positions)),
	};
	assert_non_null(scene->keys);
	assert_non_null(scene->positions);
	assert_int_equal(flow_table_init(&scene->burst, capacity, scene->secret, 0), 0);
	assert_int_equal(flow_table_init(&scene->single, capacity, scene->secret, 0), 0);
	rolled = capacity;
}

/* Empties it by bursts; nothing is left in the index. */
static void scene_close(struct scene *scene)
{
	while (scene->n > 0)
		remove_burst(scene, 1 + roll(FLOW_BURST));
	assert_int_equal(scene->burst.count, 0);
	assert_int_equal(scene->burst.n_strays, 0);
	assert_int_equal(flow_table_next(&scene->burst, 0), FLOW_NONE);
	for (size_t i = 0; i < (size_t)scene->burst.n_groups * scene->burst.group_lines; i++)
		assert_true(line_is_empty(&scene->burst.lines[i]));
	flow_table_fini(&scene->burst);
	flow_table_fini(&scene->single);
	free(scene->keys);
	free(scene->positions);
}

/* Bursts of every length, until `until` keys are in, look-ups among them. */
static void fill(struct scene *scene, uint32_t until)
{
	for (unsigned n = 0; scene->n < until; n = (n + 1) % (FLOW_BURST + 1)) {
		insert_burst(scene, n < until - scene->n ? n : until - scene->n);
		if (n % 8 == 0)
			find_burst(scene, 1 + roll(FLOW_BURST));
	}
	check_alike(scene);
}

static unsigned lines_with_displaced(const struct flow_table *table)
{
	unsigned n = 0;

	for (size_t i = 0; i < (size_t)table->n_groups * table->group_lines; i++)
		n += table->lines[i].away != 0;
	return n;
}

/* Full to the last record: one of many entries lies in its other line. */
static uint64_t a_full_table(enum simd_level level)
{
	enum { CAPACITY = 4000 };
	struct scene scene;

	scene_open(&scene, level, CAPACITY, numbered_key);
	assert_int_equal(scene.burst.n_groups, 1);
	fill(&scene, CAPACITY - 10);
	/* the burst for which there is room in part */
	insert_burst(&scene, 30);
	assert_int_equal(scene.n, CAPACITY);
	insert_burst(&scene, 30);
	check_alike(&scene);
	assert_true(lines_with_displaced(&scene.burst) > 0);
	find_all(&scene);
	/* free records and counts, as they are in a table that has been used for long */
	for (unsigned i = 0; i < 50; i++)
		remove_burst(&scene, 1 + roll(FLOW_BURST));
	find_all(&scene);
	scene_close(&scene);
	return scene.digest;
}

static uint64_t several_groups(enum simd_level level)
{
	enum { CAPACITY = 300000 };
	struct scene scene;

	scene_open(&scene, level, CAPACITY, numbered_key);
	assert_true(scene.burst.n_groups > 2);
	fill(&scene, CAPACITY / 8);
	find_all(&scene);
	scene_close(&scene);
	return scene.digest;
}

/* More keys of one group than it has records: what is left are strays in the next. */
static uint64_t a_full_group(enum simd_level level)
{
	enum { CAPACITY = 140000, STRAYS = 100 };
	struct scene scene;

	scene_open(&scene, level, CAPACITY, first_groups_key);
	assert_true(scene.burst.n_groups > 1);
	uint32_t room = scene.burst.group_records;

	/* without look-ups at first: those of keys that are not there take long once there are strays */
	while (scene.n < room - 10)
		insert_burst(&scene,
			room - 10 - scene.n < FLOW_BURST ? room - 10 - scene.n : FLOW_BURST);
	uint32_t before = scene.burst.n_strays;

	insert_burst(&scene, 10 + STRAYS / 2);
	insert_burst(&scene, STRAYS / 2);
	assert_true(scene.burst.n_strays >= before + STRAYS);
	check_alike(&scene);
	find_burst(&scene, FLOW_BURST);
	/* the strays themselves: they came last */
	for (unsigned i = 0; i < 3; i++)
		remove_burst(&scene, FLOW_BURST);
	flow_table_fini(&scene.burst);
	flow_table_fini(&scene.single);
	free(scene.keys);
	free(scene.positions);
	return scene.digest;
}

static uint64_t colliding_keys(enum simd_level level)
{
	enum { CAPACITY = 600 };
	struct scene scene;

	scene_open(&scene, level, CAPACITY, colliding_key);
	struct flow_key a = colliding_key(&scene, 1), b = colliding_key(&scene, 2);

	assert_false(flow_key_equal(&a, &b));
	assert_int_equal(flow_key_hash(scene.secret, &a), flow_key_hash(scene.secret, &b));
	fill(&scene, CAPACITY - 5);
	assert_true(scene.burst.n_strays > 300);
	insert_burst(&scene, FLOW_BURST);
	assert_int_equal(scene.n, CAPACITY);
	check_alike(&scene);
	find_all(&scene);
	scene_close(&scene);
	return scene.digest;
}

/* ---- the levels ---- */

static void under_every_level(uint64_t (*play)(enum simd_level level))
{
	uint64_t told[SIMD_N_LEVELS] = {0};

	for (unsigned i = 0; i < SIMD_N_LEVELS; i++) {
		enum simd_level level = (enum simd_level)i;

		if (!simd_has(level)) {
			print_message("this CPU lacks %s\n", simd_name(level));
			continue;
		}
		told[i] = play(level);
	}
	if (simd_has(SIMD_SSE42))
		assert_int_equal(told[SIMD_SSE42], told[SIMD_PORTABLE]);
	if (simd_has(SIMD_AVX512))
		assert_int_equal(told[SIMD_AVX512], told[SIMD_AVX2]);
}

static void full_table(void **state)
{
	(void)state;
	under_every_level(a_full_table);
}

static void groups(void **state)
{
	(void)state;
	under_every_level(several_groups);
}

static void full_group(void **state)
{
	(void)state;
	under_every_level(a_full_group);
}

static void collisions(void **state)
{
	(void)state;
	under_every_level(colliding_keys);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_table),
		cmocka_unit_test(groups),
		cmocka_unit_test(full_group),
		cmocka_unit_test(collisions),
	};

	if (hash_secret_init(&secrets[0]) < 0)
		return 1;
	for (unsigned i = SIMD_N_LEVELS; i-- > 0;) {
		secrets[i] = secrets[0];
		secrets[i].simd = (enum simd_level)i;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
