/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a listing costs the worker: one worker at full load, its flows listed over the control socket by
 * a client that takes the lines as fast as they come, against the same worker left alone. Server and
 * client share another processor.
 *
 * Packets come out of memory, their headers written just before: warmer than a NIC would leave them.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "base/dpdk.h"
#include "base/mapping.h"
#include "base/monotonic.h"
#include "bench/bench.h"
#include "bench/source.h"
#include "control/server.h"
#include "plane/plane.h"

#define FRAME_BYTES 60
#define ROUND_MS 500

/* At most 5 % dearer. */
#define GOAL (1 / 1.05)

struct listing {
	struct bench_options options;
	struct port *port[2];
	struct plane *plane;
	struct control *control;
	char directory[64];
	char path[96];
	int socket;
	pthread_t client;
	bool connected;
	atomic_bool leave;
	atomic_bool reading; /* the client asks for another listing when one has ended */
	atomic_ulong lines;
};

/* The source behind port 0: every flow in turn. Used by the worker alone. */
static struct {
	struct rte_mempool *pool;
	uint32_t flows;
	uint32_t next;
	uint8_t frame[FRAME_BYTES];
} source;

static void make_frame(void)
{
	struct rte_ether_hdr *ether = (void *)source.frame;
	struct rte_ipv4_hdr *ip = (void *)(ether + 1);
	struct rte_udp_hdr *udp = (void *)(ip + 1);

	ether->ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4);
	*ip = (struct rte_ipv4_hdr){
		.version_ihl = RTE_IPV4_VHL_DEF,
		.total_length = rte_cpu_to_be_16(FRAME_BYTES - sizeof(*ether)),
		.time_to_live = 64,
		.next_proto_id = IPPROTO_UDP,
		.src_addr = rte_cpu_to_be_32(RTE_IPV4(10, 0, 0, 0)),
		.dst_addr = rte_cpu_to_be_32(RTE_IPV4(192, 0, 2, 1)),
	};
	*udp = (struct rte_udp_hdr){.src_port = rte_cpu_to_be_16(1024),
		.dst_port = rte_cpu_to_be_16(53),
		.dgram_len = rte_cpu_to_be_16(FRAME_BYTES - sizeof(*ether) - sizeof(*ip))};
}

static uint16_t receive_burst(void *queue, struct rte_mbuf **packets, uint16_t n)
{
	if (queue == NULL || rte_pktmbuf_alloc_bulk(source.pool, packets, n) != 0)
		return 0;
	for (uint16_t i = 0; i < n; i++) {
		uint8_t *data = rte_pktmbuf_mtod(packets[i], uint8_t *);
		struct rte_ipv4_hdr *ip = (void *)(data + sizeof(struct rte_ether_hdr));

		memcpy(data, source.frame, FRAME_BYTES);
		ip->src_addr = rte_cpu_to_be_32(RTE_IPV4(10, 0, 0, 0) + source.next);
		packets[i]->data_len = FRAME_BYTES;
		packets[i]->pkt_len = FRAME_BYTES;
		if (++source.next == source.flows)
			source.next = 0;
	}
	return n;
}

static uint16_t send_burst(void *queue, struct rte_mbuf **packets, uint16_t n)
{
	(void)queue;
	rte_pktmbuf_free_bulk(packets, n);
	return n;
}

/* Ports that are ordinary ethdevs but for their bursts, which come from and go to memory. */
static void use_memory(const struct listing *listing)
{
	for (unsigned side = 0; side < 2; side++) {
		struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[listing->port[side]->id];

		ops->rx_pkt_burst = receive_burst;
		ops->tx_pkt_burst = send_burst;
		ops->rxq.data[0] = side == 0 ? (void *)&source : NULL;
	}
}

static void say(void *context, const char *line)
{
	(void)context;
	fprintf(stderr, "millrace: bench list: %s\n", line);
}

static void ignore(void *context, const struct flow_report *reports, unsigned n)
{
	(void)context;
	(void)reports;
	(void)n;
}

static int create_plane(struct listing *listing, uint32_t flows, struct error *error)
{
	const struct plane_config config = {
		.topology = topology_of_wires(1),
		.port = {listing->port[0], listing->port[1]},
		.n_workers = 1,
		.poll_always = true,
		.pin = true,
		.flows = (uint32_t)(flows / 0.875),
		.tie_fragments = true,
		.timeouts = flow_timeouts_default(),
		.mapping = MAPPING_HUGE | MAPPING_POPULATE,
		.sink = ignore,
	};

	return plane_create(&listing->plane, &config, error);
}

/* Reads on in the answer; true when that had its last line. `at` is the place in the line, kept. */
static bool read_on(struct listing *listing, const char *bytes, ssize_t n, unsigned *at)
{
	static const char end[] = "{\"end\":";
	bool ended = false;

	for (ssize_t i = 0; i < n; i++) {
		if (bytes[i] == '\n') {
			atomic_fetch_add(&listing->lines, 1);
			*at = 0;
		} else if (*at < sizeof(end) - 1) {
			*at = bytes[i] == end[*at] ? *at + 1 : (unsigned)sizeof(end);
			ended |= *at == sizeof(end) - 1;
		}
	}
	return ended;
}

/* The client: asks for everything, reads it, and asks again, as long as it may. */
static void *client(void *argument)
{
	static const char ask[] = "{\"ask\":\"flow list\"}\n";
	struct listing *listing = argument;
	static char buffer[256 * 1024];
	bool begun = false;
	unsigned at = 0;

	while (!atomic_load(&listing->leave)) {
		if (!begun && atomic_load(&listing->reading))
			begun = write(listing->socket, ask, sizeof(ask) - 1) > 0;
		if (!begun) {
			sched_yield();
			continue;
		}
		ssize_t n = read(listing->socket, buffer, sizeof(buffer));

		if (n <= 0)
			break;
		if (read_on(listing, buffer, n, &at))
			begun = false;
	}
	return NULL;
}

static int start_client(struct listing *listing, struct error *error)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", listing->path);
	listing->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listing->socket < 0 ||
		connect(listing->socket, (struct sockaddr *)&address, sizeof(address)) < 0)
		return error_set(error, -errno, "the control socket: %s", strerror(errno));
	int ret = pthread_create(&listing->client, NULL, client, listing);

	if (ret != 0)
		return error_set(error, -ret, "the client: %s", strerror(ret));
	listing->connected = true;
	return 0;
}

static int start(struct listing *listing, uint32_t flows, struct error *error)
{
	struct control_config control = {.socket_path = listing->path, .config_json = "{}"};
	cpu_set_t first;
	int ret = bench_null_ports(listing->port, error);

	source.flows = flows;
	source.next = 0;
	make_frame();
	if (ret == 0)
		ret = create_plane(listing, flows, error);
	if (ret == 0) {
		source.pool = plane_pool(listing->plane);
		use_memory(listing);
		control.plane = listing->plane;
		ret = control_create(&listing->control, &control, error);
	}
	if (ret == 0)
		ret = plane_start(listing->plane, error);
	/* the worker has the last processor; server and client stay on the first */
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	if (ret == 0)
		sched_setaffinity(0, sizeof(first), &first);
	if (ret == 0)
		ret = start_client(listing, error);
	return ret;
}

static void stop(struct listing *listing)
{
	atomic_store(&listing->leave, true);
	if (listing->connected) {
		shutdown(listing->socket, SHUT_RDWR);
		pthread_join(listing->client, NULL);
		close(listing->socket);
	}
	if (listing->plane != NULL)
		plane_stop(listing->plane);
	control_destroy(listing->control);
	for (unsigned side = 0; side < 2; side++)
		port_close(listing->port[side]);
	plane_destroy(listing->plane);
}

/* The worker's cycles a packet while the server serves for a round. */
static double measure(struct listing *listing, bool list)
{
	static struct plane_snapshot before, after;
	unsigned long lines = atomic_load(&listing->lines);
	uint64_t end;

	atomic_store(&listing->reading, list);
	plane_snapshot(listing->plane, &before);
	for (end = (monotonic_us() / 1000) + ROUND_MS; (monotonic_us() / 1000) < end;)
		control_step(listing->control, list ? 0 : 10);
	plane_snapshot(listing->plane, &after);
	/* a listing that stood still would cost nothing */
	if (list && atomic_load(&listing->lines) == lines)
		return -1;

	const struct plane_lcore *a = &before.lcores[0], *b = &after.lcores[0];

	return (double)(b->busy_cycles - a->busy_cycles) /
	       (double)(b->sum.received - a->sum.received);
}

/* Until every flow is known, and nothing of a listing is under way. */
static int settle(struct listing *listing, uint32_t flows)
{
	static struct plane_snapshot snapshot;
	uint64_t lines;

	for (unsigned tries = 0; snapshot.wire_flows[0] < flows; tries++) {
		if (tries == 1000)
			return -ETIMEDOUT;
		control_step(listing->control, 10);
		if (plane_snapshot(listing->plane, &snapshot) < 0)
			return -ETIMEDOUT;
	}
	do {
		lines = atomic_load(&listing->lines);
		control_step(listing->control, 10);
	} while (lines != atomic_load(&listing->lines));
	return 0;
}

static int measure_size(struct listing *listing, uint32_t flows)
{
	struct bench_row row = {.bench = "list",
		.measure = "list",
		.load = "uniform",
		.flows = flows,
		.unit = "cycles",
		.against = "no_list",
		.goal = GOAL,
		.rounds = BENCH_ROUNDS};
	struct error error;
	int ret = start(listing, flows, &error);

	if (ret < 0) {
		say(NULL, error.text);
	} else {
		ret = settle(listing, flows);
		for (unsigned i = 0; ret == 0 && i < BENCH_ROUNDS; i++) {
			row.ours[i] = measure(listing, true);
			atomic_store(&listing->reading, false);
			ret = row.ours[i] < 0 ? -EIO : settle(listing, flows);
			row.theirs[i] = measure(listing, false);
		}
	}
	unsigned long lines = atomic_load(&listing->lines);

	stop(listing);
	if (ret == 0) {
		bench_print(&row, listing->options.json);
		fprintf(stderr, "listed: %lu lines in %u rounds of %u ms and what was under way\n",
			lines, BENCH_ROUNDS, ROUND_MS);
	}
	return ret;
}

int bench_list(const struct bench_options *options)
{
	uint32_t flows = options->n_flows == 0 ? 1000000 : options->flows[0];
	struct listing listing = {.options = *options, .directory = "/tmp/millrace-bench-XXXXXX"};
	struct error error;
	int ret = dpdk_start(256, &error);

	if (ret < 0) {
		say(NULL, error.text);
		return ret;
	}
	if (mkdtemp(listing.directory) == NULL)
		return -errno;
	snprintf(listing.path, sizeof(listing.path), "%s/socket", listing.directory);
	bench_print_head(options->json);
	ret = measure_size(&listing, flows);
	rmdir(listing.directory);
	dpdk_stop();
	return ret;
}
