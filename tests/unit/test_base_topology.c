/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/topology.h"

/* Every port of a domain is found by its place, and its peer is another one of the same domain. */
static void check(const struct topology *topology)
{
	unsigned n = 0;

	for (unsigned domain = 0; domain < topology->n_domains; domain++) {
		for (unsigned place = 0; place < topology->size[domain]; place++, n++) {
			const unsigned port = topology_port(topology, domain, place);

			assert_int_equal(port, n);
			assert_int_equal(topology->domain[port], domain);
			assert_int_equal(topology->place[port], place);
			assert_int_not_equal(topology->peer[port], port);
			assert_int_equal(topology->domain[topology->peer[port]], domain);
		}
	}
	assert_int_equal(topology->n_ports, n);
}

static void test_wires(void **state)
{
	(void)state;
	for (unsigned n = 0; n <= TOPOLOGY_MAX_DOMAINS; n++) {
		struct topology topology = topology_of_wires(n);

		assert_int_equal(topology.n_domains, n);
		check(&topology);
		for (unsigned port = 0; port < topology.n_ports; port++)
			assert_int_equal(topology.peer[topology.peer[port]], port);
		for (unsigned domain = 0; domain < n; domain++)
			assert_true(topology_is_wire(&topology, domain));
	}
}

static void test_other_domains(void **state)
{
	static const uint8_t ring[3] = {1, 2, 0}, star[4] = {1, 0, 0, 0};
	struct topology topology = {0};

	(void)state;
	assert_int_equal(topology_add_wire(&topology), 0);
	assert_int_equal(topology_add(&topology, ring, 3), 1);
	assert_int_equal(topology_add(&topology, star, 4), 2);
	assert_int_equal(topology_add_wire(&topology), 3);
	check(&topology);
	assert_true(topology_is_wire(&topology, 0));
	assert_false(topology_is_wire(&topology, 1));
	assert_false(topology_is_wire(&topology, 2));
	assert_true(topology_is_wire(&topology, 3));
	assert_int_equal(
		topology.peer[topology_port(&topology, 1, 2)], topology_port(&topology, 1, 0));
	assert_int_equal(
		topology.peer[topology_port(&topology, 2, 3)], topology_port(&topology, 2, 0));
}

/* What is refused changes nothing. */
static void test_refused(void **state)
{
	static const uint8_t itself[2] = {0, 1}, beyond[2] = {1, 2};
	uint8_t many[TOPOLOGY_MAX_PORTS + 1] = {1};
	struct topology topology = topology_of_wires(3), before = topology;

	(void)state;
	assert_int_equal(topology_add(&topology, itself, 2), -EINVAL);
	assert_int_equal(topology_add(&topology, beyond, 2), -EINVAL);
	assert_int_equal(topology_add(&topology, beyond, 0), -EINVAL);
	assert_int_equal(topology_add(&topology, many, TOPOLOGY_MAX_PORTS - 5), -ENOSPC);
	assert_memory_equal(&topology, &before, sizeof(topology));
	assert_int_equal(topology_add(&topology, many, TOPOLOGY_MAX_PORTS - 6), 3);
	assert_int_equal(topology_add_wire(&topology), -ENOSPC);
	topology = topology_of_wires(TOPOLOGY_MAX_DOMAINS);
	assert_int_equal(topology_add_wire(&topology), -ENOSPC);
	check(&topology);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wires),
		cmocka_unit_test(test_other_domains),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
