/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <rte_mbuf.h>

#include "base/dpdk.h"
#include "port/port.h"
#include "port/rss.h"

#define PRIVATE 100

struct restarts {
	struct port *port;
	atomic_bool done;
	unsigned n_failed;
};

static int start_environment(void **state)
{
	struct error error;

	(void)state;
	if (dpdk_start(64, &error) == 0)
		return 0;
	print_error("%s\n", error.text);
	return -1;
}

static int stop_environment(void **state)
{
	(void)state;
	dpdk_stop();
	return 0;
}

static void no_warning(void *context, const char *line)
{
	(void)context;
	fail_msg("%s", line);
}

static int try_open(struct port **port, const char *device, unsigned n_queues, struct error *error)
{
	struct port_config config = {.name = "left", .n_queues = n_queues, .rss_pattern = 0x6d5a};

	assert_int_equal(port_device_parse(&config.device, device, error), 0);
	return port_open(port, &config, no_warning, NULL, error);
}

static struct port *open_port(const char *device, unsigned n_queues)
{
	struct port *port = NULL;
	struct error error;

	if (try_open(&port, device, n_queues, &error) < 0)
		fail_msg("%s: %s", device, error.text);
	return port;
}

static unsigned count_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(directory);
	while (readdir(directory) != NULL)
		n++;
	closedir(directory);
	return n;
}

static unsigned count_ethdevs(void)
{
	return rte_eth_dev_count_total();
}

static void test_packets(void **state)
{
	struct port *port = open_port("net_ring0", 1);
	struct rte_mempool *pool = port_pool_create("packets", port_buffers(port) + 100, PRIVATE,
		port_data_room(port), SOCKET_ID_ANY, port->software);
	struct rte_mbuf *sent, *received;
	struct rte_eth_stats stats;
	struct error error;

	(void)state;
	assert_non_null(pool);
	assert_true(port->software);
	assert_string_equal(port->name, "left");
	assert_string_equal(port->driver, "net_ring");
	assert_string_equal(port->note, "ring, 1 queue");
	assert_int_equal(port->link, PORT_LINK_DOWN);
	assert_false(atomic_load(&port->link_up));
	assert_int_equal(port_start(port, pool, &error), 0);
	assert_true(port->started);
	assert_int_equal(port->link, PORT_LINK_UP);
	assert_true(atomic_load(&port->link_up));
	assert_int_equal(port_update(port), 0);

	sent = rte_pktmbuf_alloc(pool);
	assert_non_null(rte_pktmbuf_append(sent, 60));
	assert_int_equal(rte_eth_tx_burst(port->id, 0, &sent, 1), 1);
	assert_int_equal(rte_eth_rx_burst(port->id, 0, &received, 1), 1);
	assert_ptr_equal(sent, received);
	assert_int_equal(port_stats(port, &stats), 0);
	assert_int_equal(stats.ipackets, 1);
	assert_int_equal(stats.opackets, 1);
	rte_pktmbuf_free(received);

	port_stop(port);
	assert_false(port->started);
	port_stop(port);
	port_close(port);
	assert_int_equal(rte_mempool_avail_count(pool), pool->size);
	rte_mempool_free(pool);
	port_close(NULL);
}

/* As many as are wanted and the device has. */
static void test_queues(void **state)
{
	struct port *port;

	(void)state;
	port = open_port("net_null0", 0);
	assert_int_equal(port->n_rx, 1);
	port_close(port);
	port = open_port("net_null0", 5);
	assert_int_equal(port->n_rx, 5);
	assert_int_equal(port->n_tx, 5);
	assert_string_equal(port->note, "null, 5 queues");
	assert_int_equal(port_buffers(port), 5 * (port->rx_descriptors + port->tx_descriptors));
	port_close(port);
	port = open_port("net_null0", 100);
	assert_int_equal(port->n_rx, PORT_MAX_QUEUES);
	port_close(port);
}

/* net_null takes a key and a table and gives them back. */
static void test_rss(void **state)
{
	static const struct {
		unsigned n_queues;
		uint64_t rss;
	} rows[] = {{1, 0}, {2, (1 << RSS_N_KINDS) - 1}, {3, (1 << RSS_N_KINDS) - 1}};
	struct rte_mempool *pool = port_pool_create(
		"rss", 100, PRIVATE, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY, true);
	struct rte_eth_rss_reta_entry64 table[2] = {{.mask = UINT64_MAX}, {.mask = UINT64_MAX}};
	struct error error;

	(void)state;
	assert_non_null(pool);
	for (unsigned row = 0; row < RTE_DIM(rows); row++) {
		struct port *port = open_port("net_null0", rows[row].n_queues);

		assert_int_equal(port_start(port, pool, &error), 0);
		assert_int_equal(port->rss, rows[row].rss);
		if (rows[row].rss != 0) {
			assert_int_equal(rte_eth_dev_rss_reta_query(port->id, table, 128), 0);
			for (unsigned i = 0; i < 128; i++)
				assert_int_equal(table[i / 64].reta[i % 64],
					rss_queue(i, rows[row].n_queues));
		}
		port_close(port);
	}
	rte_mempool_free(pool);
}

static void test_refused(void **state)
{
	static const struct {
		const char *device;
		int code;
		const char *says;
	} rows[] = {
		{"net_nul0", -ENODEV, "net_nul0: DPDK has no such driver; did you mean net_null?"},
		{"net_zzzzzzzz", 0, "net_zzzzzzzz: DPDK does not open it"},
		{"net_null0,wrong=1", 0, "net_null0: DPDK does not open it"},
		{"net_pcap0,rx_pcap=/nowhere/at/all", 0, "/nowhere/at/all"},
		{"mr-nowhere", -ENODEV, "mr-nowhere: no such interface"},
		{"0000:fe:1f.7", -ENODEV, "no such PCI device"},
		{"net_af_packet0,iface=mr-nowhere", -ENODEV, "mr-nowhere: no such interface"},
		{"net_ring_a_name_that_is_longer_than_any_that_dpdk_has_room_for_here",
			-ENAMETOOLONG, "too long"},
	};
	unsigned descriptors = count_descriptors();
	unsigned ethdevs = count_ethdevs();

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct port *port = NULL;
		struct error error = {.text = ""};
		int ret = try_open(&port, rows[i].device, 1, &error);

		assert_true(ret < 0);
		if (rows[i].code != 0)
			assert_int_equal(ret, rows[i].code);
		assert_null(port);
		if (strstr(error.text, rows[i].says) == NULL)
			fail_msg("%s: %s", rows[i].device, error.text);
		assert_null(strchr(error.text, '\n'));
	}
	assert_int_equal(count_descriptors(), descriptors);
	assert_int_equal(count_ethdevs(), ethdevs);
}

static void test_twice(void **state)
{
	struct port *first = open_port("net_null7", 1), *second = NULL;
	struct error error;

	(void)state;
	assert_int_equal(try_open(&second, "net_null7", 1, &error), -EBUSY);
	assert_string_equal(error.text, "net_null7: another port has this device");
	assert_null(second);
	/* and the first is none the worse for it */
	assert_true(rte_eth_dev_is_valid_port(first->id));
	port_close(first);
	second = open_port("net_null7", 1);
	port_close(second);
}

/* A hundred times, and nothing is left. */
static void test_again(void **state)
{
	struct rte_mempool *pool = port_pool_create(
		"again", 100, PRIVATE, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY, true);
	unsigned descriptors = 0, ethdevs = 0;

	(void)state;
	assert_non_null(pool);
	for (unsigned i = 0; i < 100; i++) {
		static const char *const devices[] = {"net_null0", "net_ring0"};
		struct error error;

		for (unsigned d = 0; d < RTE_DIM(devices); d++) {
			struct port *port = open_port(devices[d], 2);

			assert_int_equal(port_start(port, pool, &error), 0);
			port_close(port);
		}
		if (i == 0) {
			descriptors = count_descriptors();
			ethdevs = count_ethdevs();
		}
	}
	assert_int_equal(count_descriptors(), descriptors);
	assert_int_equal(count_ethdevs(), ethdevs);
	assert_int_equal(rte_mempool_avail_count(pool), pool->size);
	rte_mempool_free(pool);
}

static void test_pool(void **state)
{
	struct rte_mempool *packed, *spread;

	(void)state;
	packed = port_pool_create("packed", 1000, 101, 2176, SOCKET_ID_ANY, true);
	spread = port_pool_create("spread", 1000, 101, 2176, SOCKET_ID_ANY, false);
	assert_non_null(packed);
	assert_non_null(spread);
	assert_true(packed->flags & RTE_MEMPOOL_F_NO_IOVA_CONTIG);
	assert_false(spread->flags & RTE_MEMPOOL_F_NO_IOVA_CONTIG);
	for (unsigned i = 0; i < 2; i++) {
		struct rte_mempool *pool = i == 0 ? packed : spread;
		struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);

		assert_non_null(mbuf);
		assert_int_equal(rte_pktmbuf_priv_size(pool), 104);
		assert_int_equal(rte_pktmbuf_data_room_size(pool), 2176);
		assert_int_equal(rte_pktmbuf_tailroom(mbuf), 2176 - RTE_PKTMBUF_HEADROOM);
		rte_pktmbuf_free(mbuf);
		/* the same name cannot be had twice */
		assert_null(port_pool_create(
			i == 0 ? "packed" : "spread", 1000, 101, 2176, SOCKET_ID_ANY, i == 0));
		assert_int_equal(rte_errno, EEXIST);
	}
	rte_mempool_free(packed);
	rte_mempool_free(spread);
	/* EAL's memory has no room for so many, and need not: the second one's is its own */
	assert_null(port_pool_create("large", 100000, 0, 2176, SOCKET_ID_ANY, false));
	assert_true(rte_errno > 0);
	packed = port_pool_create("large", 100000, 0, 2176, SOCKET_ID_ANY, true);
	assert_non_null(packed);
	assert_int_equal(rte_mempool_avail_count(packed), 100000);
	assert_int_equal(packed->nb_mem_chunks, 1);
	rte_mempool_free(packed);
}

static void test_wire(void **state)
{
	struct port a = {.name = "inside", .mtu = 1500}, b = {.name = "outside", .mtu = 1500};
	struct error error;

	(void)state;
	assert_int_equal(port_check_wire(&a, &b, &error), 0);
	b.mtu = 9000;
	assert_int_equal(port_check_wire(&a, &b, &error), -EINVAL);
	assert_string_equal(error.text, "inside has MTU 1500 and outside MTU 9000: longer frames "
					"would be lost between them");
	snprintf(b.device.interface, sizeof(b.device.interface), "eth2");
	assert_int_equal(port_check_wire(&a, &b, &error), -EINVAL);
	assert_non_null(strstr(error.text, "; ip link set eth2 mtu 1500"));
	snprintf(a.device.interface, sizeof(a.device.interface), "eth1");
	assert_int_equal(port_check_wire(&b, &a, &error), -EINVAL);
	assert_non_null(strstr(error.text, "; ip link set eth1 mtu 9000"));
}

static void *restart_often(void *context)
{
	struct restarts *restarts = context;

	for (unsigned i = 0; i < 500; i++)
		if (port_restart(restarts->port) < 0)
			restarts->n_failed++;
	atomic_store(&restarts->done, true);
	return NULL;
}

/* By another thread, while this one asks for its link as an engine does: the link is never seen to go. */
static void test_restart(void **state)
{
	struct restarts restarts = {.port = open_port("net_null0", 1)};
	struct rte_mempool *pool = port_pool_create(
		"restart", 4096, PRIVATE, port_data_room(restarts.port), SOCKET_ID_ANY, true);
	struct rte_eth_stats stats;
	struct error error;
	pthread_t thread;

	(void)state;
	assert_non_null(pool);
	assert_int_equal(port_start(restarts.port, pool, &error), 0);
	assert_int_equal(pthread_create(&thread, NULL, restart_often, &restarts), 0);
	while (!atomic_load(&restarts.done)) {
		assert_int_equal(port_update(restarts.port), 0);
		assert_in_set(port_stats(restarts.port, &stats),
			((const uintmax_t[]){0, (uintmax_t)-EBUSY}), 2);
	}
	pthread_join(thread, NULL);
	assert_int_equal(restarts.n_failed, 0);
	assert_int_equal(restarts.port->link, PORT_LINK_UP);
	assert_int_equal(port_stats(restarts.port, &stats), 0);
	port_close(restarts.port);
	rte_mempool_free(pool);
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(port_link_name(PORT_LINK_UP), "up");
	assert_string_equal(port_link_name(PORT_LINK_DOWN), "down");
	assert_string_equal(port_link_name(PORT_LINK_REMOVED), "removed");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_packets),
		cmocka_unit_test(test_queues),
		cmocka_unit_test(test_rss),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_twice),
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_pool),
		cmocka_unit_test(test_wire),
		cmocka_unit_test(test_restart),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, start_environment, stop_environment);
}
