/* SPDX-License-Identifier: BSD-3-Clause */

/* Next hops that change while a worker reads them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <sched.h>

#include "action/next_hop.h"
#include "unit/action_reader.h"

static struct next_hop hop_of(unsigned number)
{
	struct next_hop hop = {.vlan = (uint16_t)(number % 4095),
		.port = (uint16_t)(number % 4095),
		.mtu = (uint16_t)(1000 + number % 4095),
		.valid = true};

	memset(hop.mac_dst, (int)(number % 128) * 2, sizeof(hop.mac_dst));
	memset(hop.mac_src, (int)(number % 128) * 2, sizeof(hop.mac_src));
	return hop;
}

static void set_and_clear(void **state)
{
	struct rte_rcu_qsbr *qsbr = action_qsbr_create(1);
	struct next_hops *hops = next_hops_create(3, 1, qsbr);
	struct next_hop hop = hop_of(7);
	struct error error;

	(void)state;
	assert_non_null(hops);
	for (uint32_t number = 0; number < 5; number++)
		assert_false(next_hops_get(hops, number)->valid);
	assert_false(next_hops_get(hops, UINT32_MAX)->valid);
	assert_int_equal(next_hops_set(hops, 2, &hop, &error), 0);
	assert_memory_equal(next_hops_get(hops, 2), &hop, sizeof(hop));
	assert_false(next_hops_get(hops, 1)->valid);
	hop.valid = false;
	assert_int_equal(next_hops_set(hops, 2, &hop, &error), 0);
	assert_false(next_hops_get(hops, 2)->valid);
	hop.valid = true;
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(next_hops_set(hops, i % 3, &hop, &error), 0);
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(next_hops_clear(hops, i % 3, &error), 0);
	assert_false(next_hops_get(hops, 2)->valid);
	next_hops_destroy(hops);
	next_hops_destroy(NULL);
	free(qsbr);
}

static void errors(void **state)
{
	struct rte_rcu_qsbr *qsbr = action_qsbr_create(1);
	struct next_hops *hops = next_hops_create(3, 1, qsbr);
	struct next_hop hop = hop_of(1);
	struct error error;

	(void)state;
	assert_int_equal(next_hops_set(hops, 3, &hop, &error), -EINVAL);
	assert_string_equal(error.text, "next hop 3: numbers are below 3");
	assert_int_equal(next_hops_clear(hops, 3, &error), -EINVAL);
	hop.vlan = 4095;
	assert_int_equal(next_hops_set(hops, 2, &hop, &error), -EINVAL);
	assert_string_equal(error.text, "next hop 2: VLAN 4095 is above 4094");
	hop = hop_of(1);
	hop.mtu = 67;
	assert_int_equal(next_hops_set(hops, 2, &hop, &error), -EINVAL);
	assert_string_equal(error.text, "next hop 2: MTU 67 is below 68");
	hop = hop_of(1);
	hop.port = UINT16_MAX;
	assert_int_equal(next_hops_set(hops, 2, &hop, &error), -EINVAL);
	assert_string_equal(error.text, "next hop 2: no port");
	hop = hop_of(1);
	hop.mac_src[0] = 1;
	assert_int_equal(next_hops_set(hops, 2, &hop, &error), -EINVAL);
	assert_string_equal(error.text, "next hop 2: the source MAC is a multicast one");
	assert_false(next_hops_get(hops, 2)->valid);
	next_hops_destroy(hops);
	errno = 0;
	assert_null(next_hops_create(0, 1, qsbr));
	assert_int_equal(errno, EINVAL);
	assert_null(next_hops_create(65537, 1, qsbr));
	assert_null(next_hops_create(1, 0, qsbr));
	free(qsbr);
}

/* A worker that does not pass keeps what it may have read, and a change waits rather than break it. */
static void slow_worker(void **state)
{
	struct rte_rcu_qsbr *qsbr = action_qsbr_create(1);
	struct next_hops *hops = next_hops_create(1, 2, qsbr);
	struct next_hop first = hop_of(1), later = hop_of(2);
	struct error error;

	(void)state;
	assert_int_equal(rte_rcu_qsbr_thread_register(qsbr, 0), 0);
	rte_rcu_qsbr_thread_online(qsbr, 0);
	assert_int_equal(next_hops_set(hops, 0, &first, &error), 0);

	const struct next_hop *kept = next_hops_get(hops, 0);

	assert_int_equal(next_hops_set(hops, 0, &later, &error), 0);
	assert_int_equal(next_hops_set(hops, 0, &later, &error), 0);
	assert_int_equal(next_hops_set(hops, 0, &later, &error), -EAGAIN);
	assert_string_equal(
		error.text, "next hop 0: too many changes wait for the workers; try again");
	assert_memory_equal(kept, &first, sizeof(first));
	assert_int_equal(next_hops_clear(hops, 0, &error), 0);
	assert_int_equal(next_hops_set(hops, 0, &later, &error), -EAGAIN);
	assert_false(next_hops_get(hops, 0)->valid);
	rte_rcu_qsbr_quiescent(qsbr, 0);
	assert_int_equal(next_hops_set(hops, 0, &later, &error), 0);
	assert_memory_equal(next_hops_get(hops, 0), &later, sizeof(later));
	rte_rcu_qsbr_thread_offline(qsbr, 0);
	next_hops_destroy(hops);
	free(qsbr);
}

/* A worker only reads next hops that were set, and reads them whole. */
static void look(void *context)
{
	const struct next_hop *hop = next_hops_get(context, 0);
	struct next_hop first = *hop;

	for (unsigned i = 0; i < 20; i++) {
		struct next_hop again;

		memcpy(&again, hop, sizeof(again));
		if (memcmp(&again, &first, sizeof(first)) != 0)
			abort();
	}
	if (!first.valid)
		return;
	if (first.vlan != first.port || first.mtu != 1000 + first.port ||
		memcmp(first.mac_dst, first.mac_src, 6) != 0)
		abort();
}

static void changes_are_whole(void **state)
{
	struct rte_rcu_qsbr *qsbr = action_qsbr_create(1);
	struct next_hops *hops = next_hops_create(1, 4, qsbr);
	struct action_reader reader = {.qsbr = qsbr, .look = look, .context = hops};
	struct error error;

	(void)state;
	action_reader_start(&reader);
	for (unsigned i = 0; i < 100000; i++) {
		struct next_hop hop = hop_of(i);
		int code;

		if (i % 7 == 0)
			assert_int_equal(next_hops_clear(hops, 0, &error), 0);
		while ((code = next_hops_set(hops, 0, &hop, &error)) == -EAGAIN)
			sched_yield();
		assert_int_equal(code, 0);
	}
	action_reader_stop(&reader);
	assert_true(atomic_load(&reader.looks) > 0);
	next_hops_destroy(hops);
	free(qsbr);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_and_clear),
		cmocka_unit_test(errors),
		cmocka_unit_test(slow_worker),
		cmocka_unit_test(changes_are_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
