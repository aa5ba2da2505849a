/* SPDX-License-Identifier: BSD-3-Clause */

/* The routing table at its limit of memory, over many rounds of changes, and beside readers. */

#include <pthread.h>
#include <stdatomic.h>

#include "unit/fib_scene.h"

#define N_ROUTES (30000 / SLOWER)
#define N_ROUNDS 100
#define N_READERS 2

static struct rte_rcu_qsbr *qsbr;

static int start(void **state)
{
	size_t size = rte_rcu_qsbr_get_memsize(N_READERS);

	(void)state;
	qsbr = aligned_alloc(64, (size + 63) / 64 * 64);
	return !qsbr || rte_rcu_qsbr_init(qsbr, N_READERS) != 0;
}

static int stop(void **state)
{
	(void)state;
	free(qsbr);
	return 0;
}

/* All different: the number of the route lies in its first bits. */
static struct route_prefix route(unsigned version, unsigned i)
{
	/* bits in another order, so that neighbours come far apart */
	uint32_t number = (i * UINT32_C(2654435761) & 0xfffff) << 12;
	uint8_t addr[16] = {(uint8_t)(number >> 24), (uint8_t)(number >> 16),
		(uint8_t)(number >> 8), (uint8_t)number, (uint8_t)(i * 7), (uint8_t)(i * 13)};
	static const uint8_t lengths[2][8] = {
		{20, 24, 24, 32, 22, 24, 31, 24}, {20, 48, 32, 48, 128, 64, 44, 29}};

	return prefix_at(addr, version, lengths[version == 6][i % 8]);
}

static void add_route(struct fib *fib, unsigned version, unsigned i)
{
	struct route_prefix prefix = route(version, i);

	assert_int_equal(fib_add(fib, &prefix, i), 0);
}

static void delete_route(struct fib *fib, unsigned version, unsigned i)
{
	struct route_prefix prefix = route(version, i);

	assert_int_equal(fib_delete(fib, &prefix), 0);
}

static void check_routes(const struct fib *fib, unsigned version, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct route_prefix prefix = route(version, i);

		assert_int_equal(fib_get(fib, &prefix), i);
		assert_int_equal(lookup(fib, prefix.addr), i);
	}
}

static size_t in_use(const struct fib *fib)
{
	struct fib_stats stats;

	fib_stats(fib, &stats);
	return stats.in_use;
}

/* Measures the memory that a table of these routes takes. */
static size_t least_memory(unsigned version)
{
	struct fib *fib = make_fib(version, (size_t)256 << 20, NULL);

	for (unsigned i = 0; i < N_ROUTES; i++)
		add_route(fib, version, i);
	size_t bytes = in_use(fib);

	fib_destroy(fib);
	return bytes;
}

/*
 * Rounds that delete a third and add it again, with a sixteenth of memory to spare: no addition fails, and the
 * memory in use is what it was.
 */
static void churn(unsigned version)
{
	size_t least = least_memory(version);
	size_t memory = least + least / 16;
	struct fib *fib =
		make_fib(version, memory > FIB_MIN_MEMORY ? memory : FIB_MIN_MEMORY, NULL);
	unsigned *order = calloc(N_ROUTES, sizeof(*order));

	assert_non_null(order);
	for (unsigned i = 0; i < N_ROUTES; i++) {
		order[i] = i;
		add_route(fib, version, i);
	}
	assert_int_equal(in_use(fib), least);
	for (unsigned round = 0; round < N_ROUNDS; round++) {
		for (unsigned i = 0; i < N_ROUTES / 3; i++) {
			unsigned other = i + draw(N_ROUTES - i), swap = order[i];

			order[i] = order[other];
			order[other] = swap;
			delete_route(fib, version, order[i]);
		}
		for (unsigned i = N_ROUTES / 3; i > 0; i--)
			add_route(fib, version, order[i - 1]);
		assert_in_range(in_use(fib), least - least / 100, least + least / 100);
	}
	check_routes(fib, version, N_ROUTES);
	free(order);
	fib_destroy(fib);
}

static void test_churn_v4(void **state)
{
	(void)state;
	churn(4);
}

static void test_churn_v6(void **state)
{
	(void)state;
	churn(6);
}

/* Fills a table up to its limit. Returns how many routes it took. */
static unsigned fill(struct fib *fib, unsigned version)
{
	for (unsigned n = 0;; n++) {
		struct route_prefix prefix = route(version, n);
		int ret = fib_add(fib, &prefix, n);

		if (ret < 0) {
			assert_int_equal(ret, -ENOSPC);
			assert_int_equal(fib_get(fib, &prefix), FIB_NO_ROUTE);
			return n;
		}
	}
}

/* A full table refuses routes and loses none; it takes other next hops and deletes. */
static void test_limit(void **state)
{
	static const unsigned versions[] = {4, 6};
	struct fib_stats stats;

	(void)state;
	for (unsigned v = 0; v < 2; v++) {
		unsigned version = versions[v];
		struct fib *fib = make_fib(version, FIB_MIN_MEMORY, NULL);
		unsigned n = fill(fib, version);

		fib_stats(fib, &stats);
		assert_true(n > 1000 && stats.in_use <= stats.memory);
		assert_int_equal(stats.routes, n);
		assert_int_equal(stats.refused, 1);
		check_routes(fib, version, n);
		for (unsigned i = 0; i < n; i++) {
			struct route_prefix prefix = route(version, i);

			assert_int_equal(fib_add(fib, &prefix, i), 1);
		}
		/* all but every fifth go, from pages that are then nearly empty */
		for (unsigned i = 0; i < n; i++)
			if (i % 5 != 0)
				delete_route(fib, version, i);
		for (unsigned i = 0; i < n; i++) {
			struct route_prefix prefix = route(version, i);

			assert_int_equal(lookup(fib, prefix.addr), i % 5 ? FIB_NO_ROUTE : i);
		}
		for (unsigned i = 0; i < n - n / 50; i++)
			if (i % 5 != 0)
				add_route(fib, version, i);
		check_routes(fib, version, n - n / 50);
		fib_destroy(fib);
	}
}

/* A /24 of its own among the 2^18 that the table's first bits tell apart. */
static struct route_prefix lone_route(uint32_t n, unsigned below)
{
	uint32_t first = n << 14 | below << 8;
	uint8_t addr[16] = {(uint8_t)(first >> 24), (uint8_t)(first >> 16), (uint8_t)(first >> 8)};

	return prefix_at(addr, 6, 24);
}

/* Blocks that leave pages nearly empty are gathered when their memory is wanted for other sizes. */
static void test_gather(void **state)
{
	struct fib *fib = make_fib(6, FIB_MIN_MEMORY, NULL);
	struct fib_stats stats;
	unsigned n = 0, added = 0;
	int ret = 0;

	(void)state;
	/* small nodes of one prefix each until the table is full; then every 64th stays */
	for (; ret == 0; n += ret == 0) {
		struct route_prefix prefix = lone_route(n, 0);

		ret = fib_add(fib, &prefix, n);
	}
	assert_int_equal(ret, -ENOSPC);
	for (unsigned i = 0; i < n; i++) {
		struct route_prefix prefix = lone_route(i, 0);

		if (i % 64 != 0)
			assert_int_equal(fib_delete(fib, &prefix), 0);
	}
	/* full nodes take other pages */
	for (ret = 0; ret == 0; added += ret == 0) {
		struct route_prefix prefix = lone_route((1u << 17) + added / 64, added % 64);

		ret = fib_add(fib, &prefix, added);
	}
	assert_int_equal(ret, -ENOSPC);
	fib_stats(fib, &stats);
	print_message("%u and %u routes, gathered %lu times\n", n, added, stats.gathered);
	assert_true(stats.gathered > 0 && added > 8 * n / 10);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(lookup(fib, lone_route(i, 0).addr), i % 64 ? FIB_NO_ROUTE : i);
	for (unsigned i = 0; i < added; i++)
		assert_int_equal(lookup(fib, lone_route((1u << 17) + i / 64, i % 64).addr), i);
	fib_destroy(fib);
}

/* Readers. */

#define N_LIVE 4096
#define N_CHANGES (400000 / SLOWER)

struct reader {
	const struct fib *fib;
	unsigned thread;
	atomic_bool stop;
	_Atomic uint64_t n_bursts;
	uint64_t n_wrong, n_found;
};

/* The route of a next hop must hold the address; routes of even numbers are there all the time. */
static void check_burst(struct reader *reader, const unsigned *which, const uint32_t *found)
{
	unsigned version = fib_version(reader->fib);

	for (unsigned i = 0; i < 64; i++) {
		struct route_prefix prefix = route(version, which[i]);

		if (found[i] == FIB_NO_ROUTE) {
			reader->n_wrong += which[i] % 2 == 0;
			continue;
		}
		struct route_prefix other = route(version, found[i] % N_LIVE);

		reader->n_found++;
		reader->n_wrong += !holds(&other, prefix.addr);
		reader->n_wrong += which[i] % 2 == 0 && other.length < prefix.length;
	}
}

static void *read_routes(void *context)
{
	struct reader *reader = context;
	uint64_t random = reader->thread + 7;
	unsigned version = fib_version(reader->fib);

	rte_rcu_qsbr_thread_register(qsbr, reader->thread);
	rte_rcu_qsbr_thread_online(qsbr, reader->thread);
	while (!atomic_load(&reader->stop)) {
		uint8_t addr[64][16];
		unsigned which[64];
		uint32_t found[64];

		for (unsigned i = 0; i < 64; i++) {
			random = random * UINT64_C(6364136223846793005) + 1;
			which[i] = (unsigned)(random >> 33) % N_LIVE;
			memcpy(addr[i], route(version, which[i]).addr, 16);
		}
		lookup_all(reader->fib, (const uint8_t(*)[16])addr, found, 64);
		check_burst(reader, which, found);
		rte_rcu_qsbr_quiescent(qsbr, reader->thread);
		atomic_fetch_add(&reader->n_bursts, 1);
	}
	rte_rcu_qsbr_thread_offline(qsbr, reader->thread);
	rte_rcu_qsbr_thread_unregister(qsbr, reader->thread);
	return NULL;
}

/* Adds, changes and deletes routes of odd numbers, and a default route now and then. */
static void change_route(struct fib *fib, unsigned version)
{
	unsigned i = draw(N_LIVE / 2) * 2 + 1;
	struct route_prefix prefix = route(version, i);
	int ret;

	if (draw(2))
		ret = fib_delete(fib, &prefix);
	else
		ret = fib_add(fib, &prefix, i + draw(1000) * N_LIVE);
	/* readers that have no processor hold memory up */
	assert_true(ret >= 0 || ret == -ENOENT || ret == -EAGAIN);
}

static void read_beside(unsigned version)
{
	size_t memory = least_memory(version);
	struct fib *fib =
		make_fib(version, memory > FIB_MIN_MEMORY ? memory : FIB_MIN_MEMORY, qsbr);
	struct reader readers[N_READERS];
	pthread_t threads[N_READERS];
	struct fib_stats stats;
	unsigned n = 0;

	for (unsigned i = 0; i < N_LIVE; i++)
		add_route(fib, version, i);
	for (unsigned i = 0; i < N_READERS; i++) {
		readers[i] = (struct reader){.fib = fib, .thread = i};
		assert_int_equal(pthread_create(&threads[i], NULL, read_routes, &readers[i]), 0);
	}
	while (n < N_CHANGES || atomic_load(&readers[0].n_bursts) < 1000 ||
		atomic_load(&readers[1].n_bursts) < 1000) {
		change_route(fib, version);
		n++;
	}
	for (unsigned i = 0; i < N_READERS; i++) {
		atomic_store(&readers[i].stop, true);
		pthread_join(threads[i], NULL);
		assert_int_equal(readers[i].n_wrong, 0);
		assert_true(readers[i].n_found > 0);
	}
	/* twice: what is freed waits in two steps */
	fib_reclaim(fib);
	fib_reclaim(fib);
	fib_stats(fib, &stats);
	assert_int_equal(stats.waiting, 0);
	print_message("%u changes beside %lu bursts\n", n, readers[0].n_bursts);
	fib_destroy(fib);
}

static void test_readers_v4(void **state)
{
	(void)state;
	read_beside(4);
}

static void test_readers_v6(void **state)
{
	(void)state;
	read_beside(6);
}

/* Memory is not used again while a reader has not reported, and is when it has. */
static void test_waiting(void **state)
{
	struct fib *fib = make_fib(4, FIB_MIN_MEMORY, qsbr);
	struct fib_stats stats;
	unsigned n = fill(fib, 4);
	struct route_prefix next = route(4, n);

	(void)state;
	rte_rcu_qsbr_thread_register(qsbr, 0);
	rte_rcu_qsbr_thread_online(qsbr, 0);
	for (unsigned i = 0; i < n; i++)
		delete_route(fib, 4, i);
	assert_int_equal(fib_lookup4(fib, 0), FIB_NO_ROUTE);
	fib_stats(fib, &stats);
	assert_true(stats.waiting > 0);
	int ret = 0;

	for (unsigned i = 0; i < n && ret == 0; i++) {
		struct route_prefix prefix = route(4, i);

		ret = fib_add(fib, &prefix, i);
	}
	assert_int_equal(ret, -EAGAIN);
	/* what is freed waits in two steps */
	rte_rcu_qsbr_quiescent(qsbr, 0);
	fib_reclaim(fib);
	rte_rcu_qsbr_quiescent(qsbr, 0);
	assert_int_equal(fib_add(fib, &next, 9), 0);
	rte_rcu_qsbr_thread_offline(qsbr, 0);
	rte_rcu_qsbr_thread_unregister(qsbr, 0);
	fib_reclaim(fib);
	fib_reclaim(fib);
	fib_stats(fib, &stats);
	assert_int_equal(stats.waiting, 0);
	fib_destroy(fib);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_churn_v4),
		cmocka_unit_test(test_churn_v6),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_gather),
		cmocka_unit_test(test_readers_v4),
		cmocka_unit_test(test_readers_v6),
		cmocka_unit_test(test_waiting),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
