/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host_mirror OPTIONS [TAP...]: the host thread with a follower that prints what it is told, for tests/smoke/test_host.py.
 *
 *	--space SPACE    network namespace, as in struct host_config
 *	--buffer BYTES   of the netlink socket
 *	--scan SECONDS   --max ROUTES   --fpm PORT   --settle SECONDS   --keep SECONDS
 *	--quiet          routes are only counted
 *
 * Each TAP has the port of its place, the MAC 02:00:00:00:00:PLACE and a line for its punts. Everything is printed as one JSON object a line: what
 * the follower and the hooks are told, and frames that the kernel sends. Lines of standard input are commands:
 *
 *	status           prints {"status": ...}
 *	carrier PORT 0|1
 *	use IFINDEX ADDRESS
 *	punt PORT HEX    a frame for the kernel
 *	resync
 *
 * It ends with its input.
 */
#include <arpa/inet.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <rte_mbuf.h>

#include "base/dpdk.h"
#include "host/host.h"

enum { MAX_TAPS = 8, FRAME_MAX = 2048, PRINT_MS = 2 };

static struct {
	struct host *host;
	struct punt_line line;
	struct rte_mempool *pool;
	bool quiet;
	_Atomic uint64_t told, gone;
} tool;

static _Noreturn void fail(const char *text)
{
	fprintf(stderr, "host_mirror: %s\n", text);
	exit(EXIT_FAILURE);
}

/* Two threads print: a line is printed whole. */
static void print(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void print(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	flockfile(stdout);
	vprintf(format, args);
	putchar_unlocked('\n');
	funlockfile(stdout);
	va_end(args);
}

static const char *word(bool is)
{
	return is ? "true" : "false";
}

static const char *address_text(
	char text[INET6_ADDRSTRLEN], unsigned version, const uint8_t *address)
{
	text[0] = '\0';
	if (version != 0)
		inet_ntop(version == 4 ? AF_INET : AF_INET6, address, text, INET6_ADDRSTRLEN);
	return text;
}

static const char *mac_text(char text[18], const uint8_t mac[6])
{
	snprintf(text, 18, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4],
		mac[5]);
	return text;
}

static void link_told(void *context, const struct kernel_link *link, bool gone)
{
	char mac[18];

	(void)context;
	print("{\"link\":%u,\"name\":\"%s\",\"mac\":\"%s\",\"mtu\":%u,\"up\":%s,\"carrier\":%s,"
	      "\"parent\":%u,\"vlan\":%u,\"vrf_table\":%u,\"gone\":%s}",
		link->ifindex, link->name, mac_text(mac, link->mac), link->mtu, word(link->up),
		word(link->carrier), link->parent, link->vlan, link->vrf_table, word(gone));
}

static void address_told(void *context, const struct kernel_address *address, bool gone)
{
	char text[INET6_ADDRSTRLEN];

	(void)context;
	print("{\"address\":\"%s/%u\",\"ifindex\":%u,\"tentative\":%s,\"gone\":%s}",
		address_text(text, address->version, address->address), address->length,
		address->ifindex, word(address->tentative), word(gone));
}

static void neighbour_told(void *context, const struct kernel_neighbour *neighbour, bool gone)
{
	char text[INET6_ADDRSTRLEN], mac[18];

	(void)context;
	print("{\"neighbour\":\"%s\",\"ifindex\":%u,\"mac\":\"%s\",\"valid\":%s,\"reachable\":%s,"
	      "\"gone\":%s}",
		address_text(text, neighbour->version, neighbour->address), neighbour->ifindex,
		mac_text(mac, neighbour->mac), word(neighbour->valid), word(neighbour->reachable),
		word(gone));
}

static const char *kind_name(enum kernel_route_kind kind)
{
	static const char *const names[] = {"unicast", "local", "broadcast", "multicast",
		"blackhole", "unreachable", "prohibit", "only"};

	return names[kind];
}

static void route_told(void *context, const struct kernel_route *route, bool gone)
{
	char text[INET6_ADDRSTRLEN];

	(void)context;
	atomic_fetch_add(gone ? &tool.gone : &tool.told, 1);
	if (tool.quiet)
		return;
	flockfile(stdout);
	printf("{\"route\":\"%s/%u\",\"table\":%u,\"metric\":%u,\"kind\":\"%s\",\"protocol\":%u,"
	       "\"gone\":%s,\"hops\":[",
		address_text(text, route->version, route->prefix), route->length, route->table,
		route->metric, kind_name(route->kind), route->protocol, word(gone));
	for (unsigned i = 0; i < route->n_hops; i++) {
		const struct kernel_hop *hop = &route->hops[i];

		printf("%s[%u,\"%s\",%u,%s]", i == 0 ? "" : ",", hop->ifindex,
			address_text(text, hop->version, hop->gateway), hop->weight,
			word(hop->dead));
	}
	printf("]}\n");
	funlockfile(stdout);
}

static void synced_told(void *context)
{
	(void)context;
	print("{\"synced\":true}");
	fflush(stdout);
}

static void tap_told(void *context, unsigned port, uint32_t ifindex)
{
	(void)context;
	print("{\"tap\":%u,\"ifindex\":%u}", port, ifindex);
}

static void event_told(void *context, const struct host_event *event)
{
	(void)context;
	print("{\"event\":\"%s\",\"port\":%u,\"text\":\"%s\"}", host_event_name(event->kind),
		event->port, event->text);
}

/* ---------------------------------------------------- commands */

static double cpu_s(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void print_port(unsigned port)
{
	struct taps_counts counts;

	if (!host_port_counts(tool.host, port, &counts))
		return;
	printf("%s{\"there\":%s,\"to_kernel\":%" PRIu64 ",\"from_kernel\":%" PRIu64
	       ",\"lost\":%" PRIu64 ",\"dropped\":{",
		port == 0 ? "" : ",", word(counts.there), counts.to_kernel, counts.from_kernel,
		counts.lost);
	for (unsigned i = 0; i < HOST_N_DROPS; i++)
		printf("%s\"%s\":%" PRIu64, i == 0 ? "" : ",", host_drop_name((enum host_drop)i),
			counts.dropped[i]);
	printf("}}");
}

static void print_status(void)
{
	struct host_status status;

	host_status(tool.host, &status);
	flockfile(stdout);
	printf("{\"status\":{\"synced\":%s,\"routes\":%u,\"fpm_routes\":%u,\"links\":%u,"
	       "\"neighbours\":%u,\"only_kernel\":%u,\"foreign_rules\":%u,\"refused\":%" PRIu64
	       ",\"malformed\":%" PRIu64 ",\"dumps\":%" PRIu64 ",\"failed\":%" PRIu64
	       ",\"overruns\":%" PRIu64 ",\"dump_us\":%" PRIu64 ",\"buffer\":%u,\"told\":%" PRIu64
	       ",\"gone\":%" PRIu64 ",\"asked\":%" PRIu64 ",\"fpm_messages\":%" PRIu64
	       ",\"fpm_malformed\":%" PRIu64 ",\"fpm_connected\":%s,\"foreign_rule\":\"%s\","
	       "\"cpu_s\":%.3f},\"ports\":[",
		word(status.synced), status.mirror.routes[SOURCE_KERNEL],
		status.mirror.routes[SOURCE_FPM], status.mirror.links, status.mirror.neighbours,
		status.mirror.only_kernel, status.mirror.foreign_rules, status.mirror.refused,
		status.mirror.malformed, status.watch.dumps, status.watch.failed,
		status.watch.overruns, status.watch.dump_us, status.watch.buffer_bytes,
		atomic_load(&tool.told), atomic_load(&tool.gone), status.asked, status.fpm.messages,
		status.fpm.malformed, word(status.fpm.connected), status.foreign_rule, cpu_s());
	for (unsigned i = 0; i < MAX_TAPS; i++)
		print_port(i);
	printf("]}\n");
	funlockfile(stdout);
}

static void punt(unsigned port, const char *hex)
{
	struct rte_mbuf *frame = rte_pktmbuf_alloc(tool.pool);
	unsigned byte;

	if (frame == NULL)
		fail("no buffer");
	for (; sscanf(hex, "%2x", &byte) == 1; hex += 2) {
		char *at = rte_pktmbuf_append(frame, 1);

		if (at == NULL)
			fail("the frame is too long");
		*at = (char)byte;
	}
	frame->port = (uint16_t)port;
	const uint64_t one = 1;

	if (ring_push(&tool.line.to_host, &frame, 1) != 1)
		rte_pktmbuf_free(frame);
	if (write(tool.line.event, &one, sizeof(one)) != sizeof(one))
		fail("cannot wake the host");
}

static void obey(const char *line)
{
	char text[2 * FRAME_MAX + 1], address[16] = {0};
	unsigned first, second;

	if (strncmp(line, "status", 6) == 0) {
		print_status();
	} else if (strncmp(line, "resync", 6) == 0) {
		host_resync(tool.host);
	} else if (sscanf(line, "carrier %u %u", &first, &second) == 2) {
		host_set_carrier(tool.host, first, second != 0);
	} else if (sscanf(line, "punt %u %4096s", &first, text) == 2) {
		punt(first, text);
	} else if (sscanf(line, "use %u %64s", &first, text) == 2) {
		const bool v6 = strchr(text, ':') != NULL;

		if (inet_pton(v6 ? AF_INET6 : AF_INET, text, address) != 1)
			fail(line);
		host_neighbour_use(tool.host, first, v6 ? 6 : 4, (const uint8_t *)address);
	} else {
		fail(line);
	}
}

static void print_frames(void)
{
	ring_element elements[64];
	const unsigned n = ring_pop(&tool.line.from_host, elements, 64);

	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *frame = ring_packet(elements[i]);
		const uint8_t *bytes = rte_pktmbuf_mtod(frame, const uint8_t *);

		flockfile(stdout);
		printf("{\"frame\":%u,\"hex\":\"", frame->port);
		for (unsigned j = 0; j < frame->data_len; j++)
			printf("%02x", bytes[j]);
		printf("\"}\n");
		funlockfile(stdout);
		rte_pktmbuf_free(frame);
	}
}

/* ---------------------------------------------------- begin and end */

static unsigned long number(const char *text)
{
	char *end;
	const unsigned long value = strtoul(text, &end, 10);

	if (*end != '\0')
		fail(text);
	return value;
}

static void read_options(int argc, char **argv, struct host_config *config)
{
	static const struct option options[] = {{"space", required_argument, NULL, 's'},
		{"buffer", required_argument, NULL, 'b'}, {"scan", required_argument, NULL, 'c'},
		{"max", required_argument, NULL, 'm'}, {"fpm", required_argument, NULL, 'f'},
		{"settle", required_argument, NULL, 'e'}, {"keep", required_argument, NULL, 'k'},
		{"quiet", no_argument, NULL, 'q'}, {NULL, 0, NULL, 0}};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 's':
			config->space = optarg;
			break;
		case 'b':
			config->buffer_bytes = (uint32_t)number(optarg);
			break;
		case 'c':
			config->scan_s = (uint32_t)number(optarg);
			break;
		case 'm':
			config->max_routes = (uint32_t)number(optarg);
			break;
		case 'f':
			config->fpm = true;
			config->fpm_port = (uint16_t)number(optarg);
			break;
		case 'e':
			config->fpm_settle_s = (uint32_t)number(optarg);
			break;
		case 'k':
			config->fpm_keep_s = (uint32_t)number(optarg);
			break;
		case 'q':
			tool.quiet = true;
			break;
		default:
			exit(2);
		}
	}
}

static void make_line(void)
{
	tool.line.event = -1;
	tool.line.to_host.mailbox = mailbox_create("to_host", sizeof(ring_element), PUNT_RING);
	tool.line.from_host.mailbox = mailbox_create("from_host", sizeof(ring_element), PUNT_RING);
	tool.pool = rte_pktmbuf_pool_create("frames", 4095, 0, 0, FRAME_MAX, 0);
	if (tool.line.to_host.mailbox == NULL || tool.line.from_host.mailbox == NULL ||
		tool.pool == NULL)
		fail("no memory");
}

static void serve_input(void)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	char line[2 * FRAME_MAX + 64];
	size_t n = 0;

	for (;;) {
		print_frames();
		fflush(stdout);
		if (poll(&input, 1, PRINT_MS) <= 0)
			continue;
		/* byte by byte: what is read ahead would not be seen by poll() */
		if (read(STDIN_FILENO, &line[n], 1) != 1)
			return;
		if (line[n] == '\n') {
			line[n] = '\0';
			obey(line);
			n = 0;
		} else if (++n == sizeof(line)) {
			fail("the line is too long");
		}
	}
}

int main(int argc, char **argv)
{
	struct host_config config = {.follower = {.link = link_told,
					     .address = address_told,
					     .neighbour = neighbour_told,
					     .route = route_told,
					     .synced = synced_told},
		.hooks = {.tap = tap_told, .event = event_told}};
	struct punt_line *lines[] = {&tool.line};
	struct taps_port taps[MAX_TAPS] = {0};
	struct error error;

	read_options(argc, argv, &config);
	if (dpdk_start(64, &error) < 0)
		fail(error.text);
	make_line();
	for (; optind < argc && config.n_taps < MAX_TAPS; optind++) {
		struct taps_port *tap = &taps[config.n_taps];

		tap->port = config.n_taps;
		tap->line = &tool.line;
		tap->pool = tool.pool;
		tap->tap.mtu = 1500;
		tap->tap.mac[0] = 2;
		tap->tap.mac[5] = (uint8_t)config.n_taps++;
		snprintf(tap->tap.name, sizeof(tap->tap.name), "%s", argv[optind]);
	}
	config.taps = taps;
	config.lines = lines;
	config.n_lines = 1;
	if (host_create(&tool.host, &config, &error) < 0)
		fail(error.text);
	serve_input();
	host_destroy(tool.host);
	print_frames();
	mailbox_destroy(tool.line.to_host.mailbox);
	mailbox_destroy(tool.line.from_host.mailbox);
	dpdk_stop();
	return EXIT_SUCCESS;
}
