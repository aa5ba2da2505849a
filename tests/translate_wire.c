/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * translate_wire OPTIONS: carries packets between two kernel interfaces, and translates addresses on the way.
 *
 *	--client IF --server IF     the two ports of the wire: devices as `millrace run` takes them
 *	--address VIRTUAL=REAL      what goes to VIRTUAL gets REAL as its destination, and what comes from REAL gets
 *	                            VIRTUAL as its source; once or twice, IPv4 or IPv6
 *	--port VIRTUAL=REAL         the same for one port of these addresses
 *	--macs OWN,CLIENT,SERVER    packets get OWN as their source and that of their receiver as their destination
 *	--hop-limit                 each packet's TTL or hop limit is decremented
 *	--push ID, --pop ID         packets to the server get a VLAN tag, or lose one; packets from it the other way round
 *	--tcp-strict                TCP segments outside the window are dropped
 *	--workers N
 *
 * Both directions of a conversation come in with different addresses, so that they are two flows here. It prints
 * "ready" when packets flow. SIGTERM ends it: it then prints as JSON what it counted, by the names of struct
 * path_counters.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#include "action/program.h"
#include "action/programs.h"
#include "base/dpdk.h"
#include "plane/plane.h"
#include "port/port.h"
#include "port/rss.h"

enum { CLIENT, SERVER, N_PORTS, MAX_ADDRESSES = 2, MAX_PROGRAMS = 16, TEND_NS = 200000000 };
/* the ends of a translation, and of what is given as VIRTUAL=REAL */
enum { VIRTUAL, REAL };
enum { OWN_MAC, CLIENT_MAC, SERVER_MAC, N_MACS };

struct translation {
	unsigned version;
	uint8_t address[2][16];
	/* of what is sent to this end, or by it; the second has the port changed too */
	uint16_t program[2][2];
};

struct options {
	const char *device[N_PORTS];
	struct translation translations[MAX_ADDRESSES];
	unsigned n_translations, n_workers;
	bool has_port, has_macs, hop_limit, tcp_strict;
	rte_be16_t port[2];
	uint8_t mac[N_MACS][6];
	int push, pop; /* -1: neither */
};

static _Noreturn void fail(const char *what, const char *more)
{
	fprintf(stderr, "translate_wire: %s: %s\n", what, more);
	exit(EXIT_FAILURE);
}

static void parse_address(struct options *options, char *text)
{
	struct translation *translation = &options->translations[options->n_translations++];
	const char *part[2] = {text, ""};
	char *equals = strchr(text, '=');

	if (equals != NULL) {
		*equals = '\0';
		part[REAL] = equals + 1;
	}
	translation->version = strchr(text, ':') != NULL ? 6 : 4;
	for (unsigned end = 0; end < 2; end++)
		if (options->n_translations > MAX_ADDRESSES ||
			inet_pton(translation->version == 6 ? AF_INET6 : AF_INET, part[end],
				translation->address[end]) != 1)
			fail("--address", text);
}

static void parse_port(struct options *options, const char *text)
{
	unsigned port[2];

	if (sscanf(text, "%u=%u", &port[VIRTUAL], &port[REAL]) != 2)
		fail("--port", text);
	options->has_port = true;
	for (unsigned end = 0; end < 2; end++)
		options->port[end] = rte_cpu_to_be_16((uint16_t)port[end]);
}

static void parse_macs(struct options *options, char *text)
{
	char *rest = NULL, *word = strtok_r(text, ",", &rest);

	for (unsigned i = 0; i < N_MACS; i++, word = strtok_r(NULL, ",", &rest)) {
		uint8_t *mac = options->mac[i];

		if (word == NULL || sscanf(word, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1],
					    &mac[2], &mac[3], &mac[4], &mac[5]) != 6)
			fail("--macs", "three addresses are needed");
	}
	options->has_macs = true;
}

static void parse(struct options *options, int argc, char **argv)
{
	static const struct option known[] = {
		{"client", required_argument, NULL, 'c'},
		{"server", required_argument, NULL, 's'},
		{"address", required_argument, NULL, 'a'},
		{"port", required_argument, NULL, 'p'},
		{"macs", required_argument, NULL, 'm'},
		{"hop-limit", no_argument, NULL, 'h'},
		{"push", required_argument, NULL, '+'},
		{"pop", required_argument, NULL, '-'},
		{"tcp-strict", no_argument, NULL, 't'},
		{"workers", required_argument, NULL, 'w'},
		{NULL, 0, NULL, 0},
	};
	int option;

	*options = (struct options){.n_workers = 1, .push = -1, .pop = -1};
	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (option) {
		case 'c':
		case 's':
			options->device[option == 's'] = optarg;
			break;
		case 'a':
			parse_address(options, optarg);
			break;
		case 'p':
			parse_port(options, optarg);
			break;
		case 'm':
			parse_macs(options, optarg);
			break;
		case 'h':
			options->hop_limit = true;
			break;
		case 't':
			options->tcp_strict = true;
			break;
		case '+':
			options->push = atoi(optarg);
			break;
		case '-':
			options->pop = atoi(optarg);
			break;
		case 'w':
			options->n_workers = (unsigned)atoi(optarg);
			break;
		default:
			fail("usage", "see the head of tests/translate_wire.c");
		}
	}
	if (options->device[CLIENT] == NULL || options->device[SERVER] == NULL)
		fail("usage", "--client and --server are needed");
}

/* The program of what is sent to the virtual end, or by the real one. */
static uint16_t make_program(struct plane *plane, const struct options *options,
	const struct translation *translation, unsigned end, bool with_port)
{
	const bool back = end == REAL, ipv4 = translation->version == 4;
	const int push = back ? options->pop : options->push;
	const int pop = back ? options->push : options->pop;
	const unsigned receiver = back ? CLIENT_MAC : SERVER_MAC;
	struct action list[ACTION_LIST_MAX] = {{.kind = ACTION_FORWARD}};
	struct action_program program;
	struct error error;
	uint16_t number;
	unsigned n = 1;

	if (back)
		list[n].kind = ipv4 ? ACTION_SET_IPV4_SRC : ACTION_SET_IPV6_SRC;
	else
		list[n].kind = ipv4 ? ACTION_SET_IPV4_DST : ACTION_SET_IPV6_DST;
	memcpy(list[n++].address, translation->address[!end], sizeof(list[0].address));
	if (with_port)
		list[n++] = (struct action){
			.kind = back ? ACTION_SET_PORT_SRC : ACTION_SET_PORT_DST,
			.l4_port = options->port[!end],
		};
	if (options->has_macs) {
		list[n].kind = ACTION_SET_MAC_SRC;
		memcpy(list[n++].mac, options->mac[OWN_MAC], sizeof(list[0].mac));
		list[n].kind = ACTION_SET_MAC_DST;
		memcpy(list[n++].mac, options->mac[receiver], sizeof(list[0].mac));
	}
	if (options->hop_limit)
		list[n++].kind = ACTION_DECREMENT_TTL;
	if (pop >= 0)
		list[n++].kind = ACTION_VLAN_POP;
	if (push >= 0)
		list[n++] = (struct action){
			.kind = ACTION_VLAN_PUSH,
			.vlan = {.tpid = 0x8100, .id = (uint16_t)push},
		};
	if (action_program_compile(&program, list, n, &error) < 0 ||
		programs_intern(plane_programs(plane), &program, &number, &error) < 0)
		fail("program", error.text);
	return number;
}

static void make_programs(struct plane *plane, struct options *options)
{
	for (unsigned i = 0; i < options->n_translations; i++)
		for (unsigned end = 0; end < 2; end++)
			for (unsigned port = 0; port < 2; port++)
				options->translations[i].program[end][port] = make_program(
					plane, options, &options->translations[i], end, port == 1);
}

/* Workers' threads, which begin after the programs were made. */
static void decide(void *context, const struct flow_key *key, const uint16_t port[2],
	struct flow_decision *decision)
{
	const struct options *options = context;

	(void)port;
	for (unsigned i = 0; i < 2 * options->n_translations; i++) {
		const struct translation *translation = &options->translations[i / 2];
		const unsigned from = i % 2;

		if (flow_key_version(key) != translation->version)
			continue;
		if (memcmp(key->addr[!from], translation->address[VIRTUAL], 16) == 0)
			decision->verdict[from] =
				translation->program[VIRTUAL][options->has_port &&
							      key->port[!from] ==
								      options->port[VIRTUAL]];
		else if (memcmp(key->addr[from], translation->address[REAL], 16) == 0)
			decision->verdict[from] =
				translation->program[REAL][options->has_port &&
							   key->port[from] == options->port[REAL]];
	}
}

static void warn(void *context, const char *line)
{
	(void)context;
	fprintf(stderr, "translate_wire: %s\n", line);
}

static void drop_reports(void *context, const struct flow_report *reports, unsigned n)
{
	(void)context;
	(void)reports;
	(void)n;
}

static void print_counters(struct plane *plane)
{
	static struct plane_snapshot snapshot;
	const struct path_counters *counters = &snapshot.wires[0];

	if (plane_snapshot(plane, &snapshot) < 0)
		fail("counters", "a worker does not answer");
	printf("{\"received\": %lu, \"out\": %lu, \"held\": %lu, \"dropped\": {",
		counters->received, counters->out, counters->held);
	for (unsigned i = 0, n = 0; i < DROP_N_REASONS; i++)
		if (counters->dropped[i] != 0)
			printf("%s\"%s\": %lu", n++ == 0 ? "" : ", ", drop_name(i),
				counters->dropped[i]);
	printf("}}\n");
	fflush(stdout);
}

static void open_ports(struct options *options, struct port *ports[N_PORTS])
{
	static const char *const names[] = {"client", "server"};
	struct error error;

	for (unsigned i = 0; i < N_PORTS; i++) {
		struct port_config config = {
			.name = names[i],
			.n_queues = options->n_workers,
			.rss_pattern = rss_pattern(1),
		};

		if (port_device_parse(&config.device, options->device[i], &error) < 0 ||
			port_open(&ports[i], &config, warn, NULL, &error) < 0)
			fail(names[i], error.text);
	}
	if (port_check_wire(ports[CLIENT], ports[SERVER], &error) < 0)
		fail("ports", error.text);
}

/* Returns when SIGTERM comes. */
static void tend(struct plane *plane, struct port *const ports[N_PORTS], const sigset_t *signals)
{
	const struct timespec interval = {.tv_nsec = TEND_NS};

	while (sigtimedwait(signals, NULL, &interval) < 0) {
		for (unsigned i = 0; i < N_PORTS; i++) {
			port_update(ports[i]);
			port_update_mtu(ports[i]);
		}
		plane_tend(plane);
	}
}

int main(int argc, char **argv)
{
	const struct dpdk_needs needs = {.megabytes = 384, .hugepages = true};
	struct port *ports[N_PORTS];
	struct options options;
	struct plane *plane;
	struct error error;
	sigset_t signals;

	parse(&options, argc, argv);
	/* before there are threads */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	if (dpdk_start_for(&needs, &error) < 0)
		fail("DPDK", error.text);
	open_ports(&options, ports);

	const struct plane_config config = {
		.topology = topology_of_wires(1),
		.port = {ports[CLIENT], ports[SERVER]},
		.n_workers = options.n_workers,
		.threads = PLANE_RUN_TO_COMPLETION,
		.flows = 65536,
		.tie_fragments = true,
		.tcp_strict = options.tcp_strict,
		.timeouts = flow_timeouts_default(),
		.max_programs = MAX_PROGRAMS,
		.policy = {.context = &options, .decide = decide},
		.sink = drop_reports,
	};

	if (plane_create(&plane, &config, &error) < 0)
		fail("plane", error.text);
	make_programs(plane, &options);
	if (plane_start(plane, &error) < 0)
		fail("plane", error.text);
	printf("ready\n");
	fflush(stdout);
	tend(plane, ports, &signals);
	plane_stop(plane);
	print_counters(plane);
	for (unsigned i = 0; i < N_PORTS; i++)
		port_close(ports[i]);
	plane_destroy(plane);
	dpdk_stop();
	return EXIT_SUCCESS;
}
