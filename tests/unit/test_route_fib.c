/* SPDX-License-Identifier: BSD-3-Clause */

/* The routing table against a plain list of prefixes, after each of many changes. */

#include "unit/fib_scene.h"

#define N_PREFIXES 240
#define N_POINTS 640
#define N_CHANGES (2000 / SLOWER)
#define MEMORY ((size_t)32 << 20)

/* Prefixes that nest and touch, which of them are in the table, and addresses in and beside them. */
static struct scene {
	unsigned version;
	struct route_prefix prefix[N_PREFIXES];
	bool present[N_PREFIXES];
	uint32_t next_hop[N_PREFIXES];
	uint8_t point[N_POINTS][16];
	unsigned n_present;
} scene;

static bool is_new(unsigned n, const struct route_prefix *prefix)
{
	for (unsigned i = 0; i < n; i++)
		if (memcmp(&scene.prefix[i], prefix, sizeof(*prefix)) == 0)
			return false;
	return true;
}

/* Around a few places, so that prefixes hold one another; each length at least once. */
static struct route_prefix draw_prefix(unsigned i)
{
	unsigned most = bits_of(scene.version), base = draw(5);
	uint8_t addr[16];

	for (unsigned at = 0; at < 16; at++)
		addr[at] = base == 0 ? 0 : base == 1 ? 0xff : (uint8_t)(base * 37 + at * 11);
	/* one or two bits are other than at the place */
	for (unsigned n = draw(3); n > 0; n--)
		addr[draw(most / 8)] ^= (uint8_t)(1u << draw(8));
	return prefix_at(addr, scene.version, i <= most ? i : draw(most + 1));
}

static void make_points(void)
{
	for (unsigned i = 0; i < N_POINTS; i++) {
		const struct route_prefix *prefix = &scene.prefix[i % N_PREFIXES];
		unsigned last = bits_of(scene.version) - 1;

		if (i < N_PREFIXES)
			memcpy(scene.point[i], prefix->addr, 16);
		else
			last_of(prefix, scene.point[i]);
		if (i < 2 * N_PREFIXES)
			continue;
		/* next to the last address, or anywhere near it */
		scene.point[i][last / 8] ^= 1;
		if (draw(2))
			scene.point[i][draw(last / 8 + 1)] ^= (uint8_t)(1u << draw(8));
	}
}

static void make_scene(unsigned version)
{
	memset(&scene, 0, sizeof(scene));
	scene.version = version;
	for (unsigned i = 0; i < N_PREFIXES;) {
		struct route_prefix prefix = draw_prefix(i);

		if (is_new(i, &prefix))
			scene.prefix[i++] = prefix;
	}
	make_points();
}

/* The longest prefix that is in the table and holds an address; N_PREFIXES: none. */
static unsigned reference(const uint8_t addr[16])
{
	unsigned best = N_PREFIXES;

	for (unsigned i = 0; i < N_PREFIXES; i++)
		if (scene.present[i] &&
			(best == N_PREFIXES ||
				scene.prefix[i].length > scene.prefix[best].length) &&
			holds(&scene.prefix[i], addr))
			best = i;
	return best;
}

static uint32_t expected(unsigned which)
{
	return which == N_PREFIXES ? FIB_NO_ROUTE : scene.next_hop[which];
}

/* All points, in bursts of a length by chance. */
static void check_points(const struct fib *fib)
{
	uint32_t found[N_POINTS];
	unsigned size = 1 + draw(200);

	for (unsigned at = 0; at < N_POINTS; at += size)
		lookup_all(fib, (const uint8_t(*)[16])scene.point + at, found + at,
			N_POINTS - at < size ? N_POINTS - at : size);
	for (unsigned i = 0; i < N_POINTS; i++)
		assert_int_equal(found[i], expected(reference(scene.point[i])));
}

static void check_single(const struct fib *fib)
{
	struct route_prefix prefix;

	for (unsigned i = 0; i < N_POINTS; i++) {
		unsigned which = reference(scene.point[i]);

		assert_int_equal(lookup(fib, scene.point[i]), expected(which));
		assert_int_equal(fib_match(fib, scene.point[i], &prefix), expected(which));
		if (which < N_PREFIXES)
			assert_memory_equal(&prefix, &scene.prefix[which], sizeof(prefix));
	}
	for (unsigned i = 0; i < N_PREFIXES; i++)
		assert_int_equal(fib_get(fib, &scene.prefix[i]),
			scene.present[i] ? scene.next_hop[i] : FIB_NO_ROUTE);
}

/* The walk tells each prefix once, in order. */
struct seen {
	struct route_prefix last;
	unsigned n, stop;
};

static bool see(void *context, const struct route_prefix *prefix, uint32_t next_hop)
{
	struct seen *seen = context;
	unsigned i = 0;

	if (seen->n > 0) {
		int order = memcmp(seen->last.addr, prefix->addr, sizeof(prefix->addr));

		assert_true(order < 0 || (order == 0 && seen->last.length < prefix->length));
	}
	while (i < N_PREFIXES && memcmp(&scene.prefix[i], prefix, sizeof(*prefix)) != 0)
		i++;
	assert_true(i < N_PREFIXES && scene.present[i]);
	assert_int_equal(next_hop, scene.next_hop[i]);
	seen->last = *prefix;
	return ++seen->n != seen->stop;
}

static void check_walk(const struct fib *fib)
{
	struct seen all = {.n = 0}, some = {.stop = scene.n_present / 2 + 1};
	struct fib_stats stats;

	fib_walk(fib, see, &all);
	fib_stats(fib, &stats);
	assert_int_equal(all.n, scene.n_present);
	assert_int_equal(stats.routes, scene.n_present);
	if (scene.n_present == 0)
		return;
	fib_walk(fib, see, &some);
	assert_int_equal(some.n, some.stop);
}

/* Adds, changes or deletes; rarely more are deleted than added, then it is the other way round. */
static void change(struct fib *fib, unsigned round)
{
	unsigned i = draw(N_PREFIXES);
	bool fills = round / 1500 % 2 == 0;

	if (draw(3) == 0 ? fills : !fills) {
		assert_int_equal(fib_delete(fib, &scene.prefix[i]), scene.present[i] ? 0 : -ENOENT);
		scene.n_present -= scene.present[i];
		scene.present[i] = false;
		return;
	}
	scene.next_hop[i] = draw(8) ? draw(1000) : FIB_MAX_NEXT_HOP - draw(2);
	assert_int_equal(fib_add(fib, &scene.prefix[i], scene.next_hop[i]), scene.present[i]);
	scene.n_present += !scene.present[i];
	scene.present[i] = true;
}

static void differ(unsigned version, size_t memory)
{
	struct fib_stats empty, stats;
	struct fib *fib;

	make_scene(version);
	fib = make_fib(version, memory, NULL);
	fib_stats(fib, &empty);
	check_single(fib);
	for (unsigned round = 0; round < N_CHANGES; round++) {
		change(fib, round);
		check_points(fib);
		if (round % 100 == 0) {
			check_single(fib);
			check_walk(fib);
		}
	}
	for (unsigned i = 0; i < N_PREFIXES; i++)
		if (scene.present[i])
			assert_int_equal(fib_delete(fib, &scene.prefix[i]), 0);
	memset(scene.present, 0, sizeof(scene.present));
	scene.n_present = 0;
	check_single(fib);
	check_walk(fib);
	fib_reclaim(fib);
	fib_stats(fib, &stats);
	assert_int_equal(stats.in_use, empty.in_use);
	assert_int_equal(stats.waiting, 0);
	fib_destroy(fib);
}

static void test_v4(void **state)
{
	(void)state;
	differ(4, MEMORY);
}

static void test_direct(void **state)
{
	(void)state;
	differ(4, FIB_DIRECT_MEMORY + MEMORY);
}

static void test_v6(void **state)
{
	(void)state;
	differ(6, MEMORY);
}

/* Every length at both ends of the addresses, alone and all together. */
static void test_ends(void **state)
{
	static const unsigned versions[] = {4, 6};
	uint8_t ends[2][16] = {{0}};

	(void)state;
	memset(ends[1], 0xff, sizeof(ends[1]));
	for (unsigned v = 0; v < 2; v++) {
		unsigned most = bits_of(versions[v]);
		struct fib *fib = make_fib(versions[v], MEMORY, NULL);

		for (unsigned end = 0; end < 2; end++) {
			for (unsigned length = 0; length <= most; length++) {
				struct route_prefix prefix =
					prefix_at(ends[end], versions[v], length);

				assert_int_equal(fib_add(fib, &prefix, length), length == 0 && end);
				assert_int_equal(lookup(fib, ends[end]), length);
			}
		}
		for (unsigned length = most; length > 0; length--) {
			struct route_prefix prefix = prefix_at(ends[1], versions[v], length);

			assert_int_equal(fib_delete(fib, &prefix), 0);
			assert_int_equal(lookup(fib, ends[1]), length - 1);
			assert_int_equal(lookup(fib, ends[0]), most);
		}
		fib_destroy(fib);
	}
}

static void test_wrong(void **state)
{
	struct fib_config config = {.version = 5, .memory = MEMORY};
	struct route_prefix prefix = {.version = 4, .length = 33};
	struct fib *fib;

	(void)state;
	assert_int_equal(fib_create(&fib, &config), -EINVAL);
	config = (struct fib_config){.version = 4, .memory = FIB_MIN_MEMORY - 1};
	assert_int_equal(fib_create(&fib, &config), -EINVAL);
	config.memory = FIB_MAX_MEMORY + 1;
	assert_int_equal(fib_create(&fib, &config), -EINVAL);
	config = (struct fib_config){
		.version = 6, .memory = MEMORY + FIB_DIRECT_MEMORY, .direct = true};
	assert_int_equal(fib_create(&fib, &config), -EINVAL);
	config = (struct fib_config){.version = 4, .memory = FIB_DIRECT_MEMORY, .direct = true};
	assert_int_equal(fib_create(&fib, &config), -EINVAL);
	fib = make_fib(4, FIB_MIN_MEMORY, NULL);
	assert_int_equal(fib_add(fib, &prefix, 1), -EINVAL);
	assert_int_equal(fib_delete(fib, &prefix), -EINVAL);
	prefix = (struct route_prefix){.version = 6, .length = 8};
	assert_int_equal(fib_add(fib, &prefix, 1), -EINVAL);
	prefix = (struct route_prefix){.addr = {10, 1}, .version = 4, .length = 8};
	assert_int_equal(fib_add(fib, &prefix, 1), -EINVAL);
	prefix.addr[1] = 0;
	assert_int_equal(fib_add(fib, &prefix, FIB_MAX_NEXT_HOP + 1), -EINVAL);
	assert_int_equal(fib_add(fib, &prefix, FIB_MAX_NEXT_HOP), 0);
	assert_int_equal(fib_lookup4(fib, 10u << 24), FIB_MAX_NEXT_HOP);
	fib_destroy(fib);
	fib_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_v4),
		cmocka_unit_test(test_direct),
		cmocka_unit_test(test_v6),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
