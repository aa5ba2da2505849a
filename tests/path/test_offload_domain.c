/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Three ports in one domain, between simulated NICs: each has a peer of its own, and is the peer of one or of two. A
 * flow's directions arrive at any two of them, or both at one. All is counted by the packets themselves.
 */
#include "../unit/capture_files.h"
#include "../unit/frames.h"
#include "drivers/flowsim/sim.h"
#include "plane/plane.h"
#include "plane/plane_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <ethdev_driver.h>

#include "base/dpdk.h"
#include "base/monotonic.h"
#include "dataplane/poll.h"
#include "lcore_sums.h"
#include "port/rss.h"

#define PORTS 3
#define QUEUES 2
#define KINDS 3
#define FLOWS (PORTS * PORTS * KINDS)
#define RATE 40000 /* packets a second at each queue */
#define MILLION UINT64_C(1000000)
#define WAIT_US (20 * MILLION)
#define RUN_US (MILLION / 2)
/* Of each frame, where they are counted: more than come before the NIC has any rule. */
#define PASSES 4000

/* A flow; pairs are by the key's end that packets come from. */
struct domain_flow {
	struct flow_key key;
	unsigned arrives[2]; /* at which port */
	uint64_t in[2], marked[2], out[2], reported[2];
	uint64_t told; /* packets that came marked, as reports have them */
};

struct domain_port {
	struct port *port;
	eth_rx_burst_t receive;
	eth_tx_burst_t send;
	uint64_t budget[QUEUES]; /* millionths of a packet */
};

struct domain {
	struct topology topology;
	struct domain_port port[PORTS];
	struct plane *plane;
	struct hash_secret secret;
	struct domain_flow flow[FLOWS];
	uint64_t now_us;
};

/* The one that there is at a time. */
static struct domain current;

struct scenario {
	uint8_t peer[PORTS];
	bool full;
	unsigned n_workers;
};

static int start(void **state)
{
	struct error error;

	(void)state;
	if (dpdk_start(512, &error) == 0)
		return 0;
	print_error("%s\n", error.text);
	return -1;
}

/* The packets of a flow: `back` from the end that arrives at the second port. */
static void build(struct frame *frame, unsigned number, bool back)
{
	const unsigned kind = number % KINDS, port = 1000 + number / KINDS;
	const char *ends[2][2] = {{"10.1.0.1", "10.2.0.1"}, {"fd00::1", "fd00::2"}};
	const char *const *end = ends[kind == 2];

	frame_start(frame);
	if (kind == 2)
		frame_ipv6(frame, end[back], end[!back], IPPROTO_UDP);
	else
		frame_ipv4(frame, end[back], end[!back], kind == 1 ? IPPROTO_TCP : IPPROTO_UDP);
	if (kind == 1)
		frame_tcp(frame, &(struct frame_tcp){.src_port = back ? 80 : port,
					 .dst_port = back ? port : 80,
					 .seq = back ? 5000 : 1000,
					 .ack = back ? 1000 : 5000,
					 .flags = TCP_ACK,
					 .window = 1000});
	else
		frame_udp(frame, back ? 80 : port, back ? port : 80);
	frame_fill(frame, 100);
	if (kind != 1)
		put_be16(frame->bytes + frame->upper - 4, 108);
	frame_finish(frame);
}

/* Where the packets arrive that the flow's one end sends, and those of the other. */
static unsigned arrives(unsigned number, bool back)
{
	const unsigned pair = number / KINDS;

	return back ? pair / PORTS : pair % PORTS;
}

static struct domain_flow *flow_of(const struct rte_mbuf *packet, struct packet_info *info)
{
	const struct extract_options options = {.secret = &current.secret};

	assert_int_equal(extract(&options, packet, 0, info), EXTRACT_IP);
	for (unsigned i = 0; i < FLOWS; i++)
		if (flow_key_equal(&current.flow[i].key, &info->key))
			return &current.flow[i];
	fail_msg("a packet of no flow");
	return NULL;
}

static unsigned port_of_queue(const void *queue, bool receives, unsigned *number)
{
	for (unsigned port = 0; port < PORTS; port++) {
		const struct rte_eth_dev_data *data =
			rte_eth_devices[current.port[port].port->id].data;

		for (*number = 0; *number < QUEUES; ++*number)
			if ((receives ? data->rx_queues : data->tx_queues)[*number] == queue)
				return port;
	}
	fail_msg("a queue of no port");
	return 0;
}

static uint16_t receive_counted(void *queue, struct rte_mbuf **packets, uint16_t n)
{
	unsigned number, at = port_of_queue(queue, true, &number);
	uint64_t *budget = &current.port[at].budget[number];

	n = (uint16_t)RTE_MIN((uint64_t)n, *budget / MILLION);
	if (n == 0)
		return 0;
	n = current.port[at].receive(queue, packets, n);
	*budget -= n * MILLION;
	for (uint16_t i = 0; i < n; i++) {
		struct packet_info info;
		struct domain_flow *flow = flow_of(packets[i], &info);

		assert_int_equal(flow->arrives[info.from], at);
		flow->in[info.from]++;
		flow->marked[info.from] += (packets[i]->ol_flags & RTE_MBUF_F_RX_FDIR_ID) != 0;
	}
	return n;
}

static uint16_t send_counted(void *queue, struct rte_mbuf **packets, uint16_t n)
{
	unsigned number, by = port_of_queue(queue, false, &number);
	struct domain_flow *flows[4 * LCORE_BURST];
	struct packet_info info[4 * LCORE_BURST];

	assert_true(n <= RTE_DIM(flows));
	for (uint16_t i = 0; i < n; i++) {
		flows[i] = flow_of(packets[i], &info[i]);
		assert_int_equal(current.topology.peer[flows[i]->arrives[info[i].from]], by);
	}
	n = current.port[by].send(queue, packets, n);
	for (uint16_t i = 0; i < n; i++)
		flows[i]->out[info[i].from]++;
	return n;
}

static void say(void *context, const char *line)
{
	(void)context;
	print_message("%s\n", line);
}

/* A capture of what arrives at the port; its name is the caller's. */
static char *write_capture(unsigned port)
{
	struct file file = {.length = 0};

	put_pcap_header(&file, PCAP_MICROSECONDS, 4, FILE_ETHERNET);
	for (unsigned i = 0; i < FLOWS; i++) {
		for (unsigned back = 0; back < 2; back++) {
			struct frame frame;

			if (arrives(i, back) != port)
				continue;
			build(&frame, i, back);
			put32(&file, 0);
			put32(&file, 0);
			put32(&file, (uint32_t)frame.length);
			put32(&file, (uint32_t)frame.length);
			put_bytes(&file, frame.bytes, frame.length);
		}
	}
	return save(&file, file.length);
}

static void open_port(unsigned number, bool full)
{
	struct domain_port *port = &current.port[number];
	char name[PORT_NAME_MAX], device[PORT_DEVICE_MAX];
	char *capture = write_capture(number);
	const struct port_config base = {.n_queues = QUEUES,
		.offload_places = 2 * FLOWS,
		.rss_pattern = rss_pattern(0x6d69)};
	struct port_config config = base;
	struct error error;

	snprintf(name, sizeof(name), "port%u", number);
	config.name = name;
	if (full)
		snprintf(device, sizeof(device),
			"net_flowsim%u,capture=%s,nic=n,profile=cx5,passes=%u", number, capture,
			PASSES);
	else
		snprintf(device, sizeof(device), "net_flowsim%u,capture=%s", number, capture);
	if (port_device_parse(&config.device, device, &error) < 0 ||
		port_open(&port->port, &config, say, NULL, &error) < 0)
		fail_msg("%s: %s", device, error.text);
	unlink(capture);
	free(capture);

	struct rte_eth_dev *dev = &rte_eth_devices[port->port->id];

	port->receive = dev->rx_pkt_burst;
	port->send = dev->tx_pkt_burst;
	dev->rx_pkt_burst = receive_counted;
	dev->tx_pkt_burst = send_counted;
}

static void take_reports(void *context, const struct flow_report *reports, unsigned n)
{
	(void)context;
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < FLOWS; k++) {
			struct domain_flow *flow = &current.flow[k];

			if (!flow_key_equal(&flow->key, &reports[i].record.key))
				continue;
			for (unsigned from = 0; from < 2; from++)
				flow->reported[from] += flow_packets(&reports[i].record, from);
			assert_int_not_equal(reports[i].offload.packets, FLOW_OFFLOAD_LOST);
			assert_false(reports[i].offload.estimated);
			flow->told += reports[i].offload.packets;
		}
}

static void learn_flows(void)
{
	const struct extract_options options = {.secret = &current.secret};

	for (unsigned i = 0; i < FLOWS; i++) {
		for (unsigned back = 0; back < 2; back++) {
			struct packet_info info;
			struct frame frame;

			build(&frame, i, back);
			const struct rte_mbuf packet = {.buf_addr = frame.bytes,
				.data_len = (uint16_t)frame.length,
				.pkt_len = (uint32_t)frame.length,
				.nb_segs = 1};

			assert_int_equal(extract(&options, &packet, 0, &info), EXTRACT_IP);
			current.flow[i].key = info.key;
			current.flow[i].arrives[info.from] = arrives(i, back);
		}
	}
}

static void turn(bool receives)
{
	const struct timespec pause = {.tv_nsec = 20000};
	const uint64_t now_us = plane_now_us(current.plane);
	bool busy = false;

	for (unsigned port = 0; port < PORTS; port++)
		for (unsigned i = 0; i < QUEUES; i++) {
			uint64_t *budget = &current.port[port].budget[i];

			*budget += (now_us - current.now_us) * RATE;
			*budget = receives ? RTE_MIN(*budget, 512 * MILLION) : 0;
		}
	current.now_us = now_us;
	for (unsigned i = 0; i < current.plane->n_lcores; i++)
		busy |= lcore_poll(&current.plane->lcores[i], now_us);
	if (!busy)
		nanosleep(&pause, NULL);
}

static void begin(const struct scenario *scenario)
{
	struct error error;

	memset(&current, 0, sizeof(current));
	assert_int_equal(topology_add(&current.topology, scenario->peer, PORTS), 0);
	assert_int_equal(hash_secret_init(&current.secret), 0);
	learn_flows();
	for (unsigned i = 0; i < PORTS; i++)
		open_port(i, scenario->full);
	const struct plane_config config = {
		.topology = current.topology,
		.port = {current.port[0].port, current.port[1].port, current.port[2].port},
		.n_workers = scenario->n_workers,
		.flows = 2 * FLOWS,
		.timeouts = flow_timeouts_default(),
		.offload = {.on = true,
			.slots = 2 * FLOWS,
			.counters = true,
			.full = scenario->full},
		.sink = take_reports,
	};

	if (plane_create(&current.plane, &config, &error) < 0)
		fail_msg("%s", error.text);
	current.now_us = plane_now_us(current.plane);
	for (const uint64_t end_us = monotonic_us() + WAIT_US; !plane_tend(current.plane);) {
		assert_true(monotonic_us() < end_us);
		turn(false);
	}
}

static void ask(unsigned number, struct plane_flow *answer)
{
	assert_int_equal(plane_flow(current.plane, &current.flow[number].key, answer), 0);
}

/* Does the flow go both ways by one port? That has one rule of it. */
static bool hangs(unsigned number)
{
	return arrives(number, false) == arrives(number, true);
}

/* Each direction is in the NIC of the port where it arrives; of both by one port, one is. */
static bool is_proven(unsigned number)
{
	struct plane_flow answer;
	unsigned n = 0;

	ask(number, &answer);
	for (unsigned from = 0; from < 2; from++) {
		if (answer.offload.state[from] != OFFLOAD_PROVEN)
			continue;
		assert_int_equal(answer.port[from], current.flow[number].arrives[from]);
		n++;
	}
	assert_true(n <= (hangs(number) ? 1 : 2));
	return n == (hangs(number) ? 1 : 2);
}

static bool all_are_proven(void)
{
	for (unsigned i = 0; i < FLOWS; i++)
		if (current.flow[i].in[0] == 0 || current.flow[i].in[1] == 0 || !is_proven(i))
			return false;
	return true;
}

static void settle(void)
{
	for (unsigned i = 0; i < 64; i++)
		turn(false);
}

/* What the plane's counters have is what came, and all of it left by the peers of where it came. */
static void check_counters(void)
{
	static struct plane_snapshot snapshot;
	const struct path_counters *domain = &snapshot.wires[0];
	uint64_t in = 0, out = 0, of_flows = 0;

	settle();
	assert_int_equal(plane_snapshot(current.plane, &snapshot), 0);
	for (unsigned i = 0; i < snapshot.n_lcores; i++) {
		of_flows += snapshot.lcores[i].flow.packets;
		check_lcore_sums(&snapshot.lcores[i]);
	}
	for (unsigned i = 0; i < FLOWS; i++)
		for (unsigned from = 0; from < 2; from++) {
			assert_int_equal(current.flow[i].out[from], current.flow[i].in[from]);
			in += current.flow[i].in[from];
			out += current.flow[i].out[from];
		}
	assert_int_equal(domain->received, in);
	assert_int_equal(domain->out, out);
	assert_int_equal(domain->held, 0);
	assert_int_equal(of_flows, in + domain->nic_forwarded);
	assert_int_equal(domain->nic_unaccounted, 0);
}

/* Nobody's mark came with another's packet, and nothing fell out. */
static void check_agents(void)
{
	for (unsigned port = 0; port < PORTS; port++) {
		struct agent_counters counters;

		assert_int_equal(plane_offload_counters(current.plane, port, &counters), 0);
		assert_int_equal(counters.strangers, 0);
		for (unsigned i = 0; i < OFFLOAD_N_REASONS; i++)
			assert_int_equal(counters.fell_out[i], 0);
	}
}

/* Reports that wait for what the NICs counted last. */
static unsigned held(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < current.plane->n_lcores; i++)
		n += current.plane->lcores[i].worker.agent->n_held;
	return n;
}

static void end(void)
{
	for (unsigned i = 0; i < current.plane->n_lcores; i++)
		flow_shard_end_all(current.plane->lcores[i].worker.shard);
	do
		settle();
	while (held() != 0);
	plane_stop(current.plane);
	for (unsigned i = 0; i < PORTS; i++)
		port_close(current.port[i].port);
	plane_destroy(current.plane);
	current.plane = NULL;
}

/* Every direction is marked where it arrives, and all numbers are right to the packet. */
static void marks_of_any_pair_of_ports(void **state)
{
	const struct scenario *scenario = *state;

	begin(scenario);
	const uint64_t end_us = monotonic_us() + WAIT_US;

	while (!all_are_proven()) {
		assert_true(monotonic_us() < end_us);
		turn(true);
	}
	for (const uint64_t run_us = monotonic_us() + RUN_US; monotonic_us() < run_us;)
		turn(true);
	check_counters();
	assert_true(all_are_proven());
	check_agents();
	end();
	for (unsigned i = 0; i < FLOWS; i++) {
		const struct domain_flow *flow = &current.flow[i];

		for (unsigned from = 0; from < 2; from++) {
			assert_int_equal(flow->reported[from], flow->in[from]);
			/* of both directions by one port one has no rule */
			assert_true(flow->marked[from] > 100 || hangs(i));
		}
		assert_int_equal(flow->told, flow->marked[0] + flow->marked[1]);
	}
}

/* Packets that the NIC sent out of a port by itself, by its own book. */
static uint64_t sent_alone(unsigned port)
{
	const uint16_t id = current.port[port].port->id;
	uint64_t number, value;

	assert_int_equal(rte_eth_xstats_get_id_by_name(id, "tx_nic_packets", &number), 0);
	assert_int_equal(rte_eth_xstats_get_by_id(id, &number, &value, 1), 1);
	return value;
}

static uint64_t all_in(void)
{
	uint64_t sum = 0;

	for (unsigned port = 0; port < PORTS; port++) {
		struct agent_counters counters;

		assert_int_equal(plane_offload_counters(current.plane, port, &counters), 0);
		sum += counters.forwarded;
	}
	for (unsigned i = 0; i < FLOWS; i++)
		sum += current.flow[i].in[0] + current.flow[i].in[1];
	return sum;
}

/* NICs send them on alone, from each port to its peer: records have all of them, wherever they went. */
static void whole_flows_of_any_pair_of_ports(void **state)
{
	const struct scenario *scenario = *state;
	const uint64_t all = UINT64_C(2) * FLOWS * PASSES;
	uint64_t forwarded = 0, by_peer[PORTS] = {0};

	begin(scenario);
	const uint64_t end_us = monotonic_us() + WAIT_US;

	while (all_in() < all) {
		assert_true(monotonic_us() < end_us);
		turn(true);
	}
	check_counters();
	check_agents();
	for (unsigned port = 0; port < PORTS; port++) {
		struct agent_counters counters;

		assert_int_equal(plane_offload_counters(current.plane, port, &counters), 0);
		forwarded += counters.forwarded;
		by_peer[current.topology.peer[port]] += counters.forwarded;
		assert_true(counters.forwarded > 0);
	}
	for (unsigned port = 0; port < PORTS; port++)
		assert_int_equal(sent_alone(port), by_peer[port]);
	assert_true(forwarded > all / 4);
	end();
	for (unsigned i = 0; i < FLOWS; i++)
		for (unsigned from = 0; from < 2; from++)
			assert_int_equal(current.flow[i].reported[from], PASSES);
}

static int tidy(void **state)
{
	(void)state;
	if (current.plane != NULL)
		end();
	return 0;
}

int main(void)
{
	static const struct scenario scenarios[] = {
		{{1, 2, 0}, .n_workers = 2},
		{{2, 2, 0}, .n_workers = 2},
		{{2, 2, 0}, .n_workers = 1},
		{{1, 2, 0}, .n_workers = 2, .full = true},
		{{2, 2, 0}, .n_workers = 2, .full = true},
	};
	struct CMUnitTest tests[RTE_DIM(scenarios)];

	for (unsigned i = 0; i < RTE_DIM(scenarios); i++)
		tests[i] = (struct CMUnitTest){
			.name = scenarios[i].full ? "whole_flows_of_any_pair_of_ports"
						  : "marks_of_any_pair_of_ports",
			.test_func = scenarios[i].full ? whole_flows_of_any_pair_of_ports
						       : marks_of_any_pair_of_ports,
			.teardown_func = tidy,
			.initial_state = (void *)(uintptr_t)&scenarios[i],
		};
	return cmocka_run_group_tests_name("offload_domain", tests, start, NULL);
}
