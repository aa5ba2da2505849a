/* SPDX-License-Identifier: BSD-3-Clause */
/* The process that touches the device: opens it, has everything tried, closes it, and tells what it finds. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <rte_log.h>

#include "base/dpdk.h"
#include "base/monotonic.h"
#include "control/answer.h"
#include "packet/hash.h"
#include "port/device.h"
#include "port/known_port.h"
#include "port/probe.h"
#include "port/rss.h"
#include "probe/child.h"

#define MEGABYTES 384
/* Queues to send packets to: two pairs. */
#define QUEUES 4
#define POOL 16383
/* A step that goes on and on is told so often. */
#define STEP_US 100000

/* A line for the parent; takes the object. Who has gone wants nothing more. */
static void tell(const struct child *child, json_t *line)
{
	char *text = line != NULL ? json_dumps(line, JSON_COMPACT) : NULL;
	size_t length = text != NULL ? strlen(text) : 0;
	const char *at = text;

	json_decref(line);
	if (text == NULL)
		_exit(EXIT_FAILURE);
	text[length++] = '\n';
	while (length > 0) {
		ssize_t written = write(child->pipe, at, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			_exit(EXIT_FAILURE);
		at += written;
		length -= (size_t)written;
	}
	free(text);
}

void probe_tell(const struct child *child, const char *key, json_t *value)
{
	json_t *line = json_object();

	json_object_set_new(line, key, value);
	tell(child, line);
}

void probe_tell_step(struct child *child, const char *what, unsigned rules, unsigned allow_s)
{
	uint64_t now_us = monotonic_us();
	json_t *line;

	if (allow_s == 0 && strcmp(what, child->told) == 0 && now_us - child->told_us < STEP_US)
		return;
	child->told_us = now_us;
	snprintf(child->told, sizeof(child->told), "%s", what);
	line = json_object();
	json_object_set_new(line, "step", json_string(what));
	answer_number(line, "rules", rules);
	if (allow_s > 0)
		answer_number(line, "allow_s", allow_s);
	tell(child, line);
}

static void warn(void *context, const char *line)
{
	(void)context;
	fprintf(stderr, "millrace: %s\n", line);
}

static int child_start_dpdk(struct error *error, const struct probe_options *options)
{
	struct dpdk_needs needs = {.megabytes = MEGABYTES, .hugepages = true};

	if (options->device.kind == PORT_DEVICE_PCI)
		needs.pci[needs.n_pci++] = options->device.text;
	if (options->peer.text[0] != '\0' && options->peer.kind == PORT_DEVICE_PCI)
		needs.pci[needs.n_pci++] = options->peer.text;
	if (options->to.text[0] != '\0' && options->to.kind == PORT_DEVICE_PCI)
		needs.pci[needs.n_pci++] = options->to.text;
	return dpdk_start_for(&needs, error);
}

static int make_vdevs(struct child *child, struct error *error)
{
	const struct probe_options *options = child->options;

	for (; child->n_vdevs < options->n_vdevs; child->n_vdevs++) {
		const char *text = options->vdevs[child->n_vdevs].text;
		char name[RTE_ETH_NAME_MAX_LEN], said[200];
		uint16_t id;
		int ret;

		device_name(text, name, sizeof(name));
		ret = probe_device("vdev", name, device_arguments(text), &id, said, sizeof(said));
		if (ret < 0)
			return error_set(error, ret, "--vdev %s: DPDK does not open it: %s", name,
				said[0] != '\0' ? said : strerror(-ret));
	}
	return 0;
}

static int open_port(struct child *child, struct port **port, const char *name,
	const struct port_device *device, uint32_t places, struct error *error)
{
	struct hash_secret secret;
	int ret = hash_secret_init(&secret);
	const struct port_config config = {
		.name = name,
		.device = *device,
		.n_queues = places > 0 ? QUEUES : 1,
		.force = child->options->force,
		.rss_pattern = rss_pattern((uint16_t)secret.word[0]),
		.offload_places = places,
	};

	if (ret < 0)
		return error_set(error, ret, "no randomness from the kernel: %s", strerror(-ret));
	return port_open(port, &config, warn, child, error);
}

static int make_pool(struct child *child, struct error *error)
{
	const struct port *ports[] = {child->port, child->peer, child->to};
	bool software = true;
	uint16_t room = 0;
	unsigned n = POOL;

	for (unsigned i = 0; i < RTE_DIM(ports); i++) {
		if (ports[i] == NULL)
			continue;
		n += port_buffers(ports[i]);
		room = (uint16_t)RTE_MAX(room, port_data_room(ports[i]));
		software = software && ports[i]->software;
	}
	child->pool = port_pool_create("packets", n, 0, room, SOCKET_ID_ANY, software);
	return child->pool != NULL ? 0 : error_set(error, -ENOMEM, "no memory for %u packets", n);
}

static int child_open_ports(struct child *child, struct error *error)
{
	const struct probe_options *options = child->options;
	int ret = open_port(
		child, &child->port, "the device", &options->device, options->max_rules, error);

	if (ret == 0 && options->peer.text[0] != '\0')
		ret = open_port(child, &child->peer, "the peer", &options->peer, 0, error);
	if (ret == 0 && options->to.text[0] != '\0')
		ret = open_port(child, &child->to, "the other port", &options->to, 0, error);
	if (ret == 0)
		ret = make_pool(child, error);
	if (ret == 0)
		ret = port_start(child->port, child->pool, error);
	if (ret == 0 && child->peer != NULL)
		ret = port_start(child->peer, child->pool, error);
	if (ret == 0 && child->to != NULL)
		ret = port_start(child->to, child->pool, error);
	return ret;
}

/* What the port is: what is kept goes by it. */
static int tell_port(struct child *child, struct error *error)
{
	const struct port *port = child->port;
	struct known_key key;
	int ret = known_port_key(&key, port);
	json_t *set;

	if (ret < 0)
		return error_set(error, ret, "DPDK does not describe the device");
	set = json_object();
	json_object_set_new(set, "driver", answer_string(key.driver));
	json_object_set_new(
		set, "firmware", key.firmware[0] ? answer_string(key.firmware) : json_null());
	json_object_set_new(set, "dpdk", json_string(key.dpdk));
	json_object_set_new(set, "arguments", answer_string(key.arguments));
	answer_number(set, "queues", port->n_rx);
	json_object_set_new(set, "templates", json_boolean(port->flow_queues));
	probe_tell(child, "set", set);
	return 0;
}

static int make_eyes(struct child *child, struct error *error)
{
	const struct probe_options *options = child->options;
	const struct probe_packets_config config = {
		.port = child->port,
		.peer = options->loopback ? child->port : child->peer,
		.to = child->to != NULL ? child->to : child->port,
		.pool = child->pool,
		.listen_ms = options->listen_ms,
	};
	json_t *set = json_object();
	int ret;

	probe_tell_step(child, "listening", 0, options->listen_ms / 1000 + 10);
	ret = probe_packets_create(&child->packets, &config, error);
	if (ret < 0)
		return ret;
	unsigned flows = probe_packets_flows(child->packets);

	if (flows > 0) {
		probe_packets_eyes(child->packets, &child->eyes);
		child->cells.eyes = &child->eyes;
	}
	json_object_set_new(set, "packets",
		json_string(options->loopback ? "loopback"
			    : child->peer     ? "peer"
			    : flows > 0	      ? "arriving"
					      : "none"));
	answer_number(set, "heard", probe_packets_heard(child->packets));
	answer_number(set, "flows", flows);
	probe_tell(child, "set", set);
	return 0;
}

static void close_all(struct child *child)
{
	probe_packets_destroy(child->packets);
	port_close(child->to);
	port_close(child->peer);
	port_close(child->port);
	while (child->n_vdevs > 0) {
		char name[RTE_ETH_NAME_MAX_LEN];
		uint16_t id;

		device_name(child->options->vdevs[--child->n_vdevs].text, name, sizeof(name));
		if (rte_eth_dev_get_port_by_name(name, &id) == 0)
			probe_remove("vdev", name, id);
	}
	rte_mempool_free(child->pool);
	if (child->nowhere != NULL) {
		rte_openlog_stream(NULL);
		(void)fclose(child->nowhere);
	}
}

/* The parent says when it is enough; whoever interrupts both is not to leave rules behind. */
static atomic_bool stop_asked;

static void ask_to_stop(int number)
{
	(void)number;
	atomic_store_explicit(&stop_asked, true, memory_order_release);
}

/* False: the parent is gone already. */
static bool take_signals(pid_t parent)
{
	const struct sigaction stop = {.sa_handler = ask_to_stop, .sa_flags = SA_RESTART};

	/* whoever waits for it is gone, then so is the reason for it */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_IGN);
	sigaction(SIGTERM, &stop, NULL);
	/* it may have gone before the line above was heard */
	return getppid() == parent;
}

int probe_child(const struct probe_options *options, pid_t parent, int pipe, uint64_t begin_us,
	unsigned first)
{
	struct child child = {
		.options = options, .pipe = pipe, .begin_us = begin_us, .stop = &stop_asked};
	struct error error;
	int ret;

	if (!take_signals(parent))
		return EXIT_FAILURE;
	probe_tell_step(&child, "opening the device", 0, 0);
	ret = child_start_dpdk(&error, options);
	if (ret == 0)
		ret = make_vdevs(&child, &error);
	if (ret == 0)
		ret = child_open_ports(&child, &error);
	if (ret == 0)
		ret = tell_port(&child, &error);
	if (ret == 0)
		ret = make_eyes(&child, &error);
	if (ret == 0) {
		child.nowhere = fopen("/dev/null", "we");
		if (child.nowhere != NULL)
			rte_openlog_stream(child.nowhere);
		ret = probe_trials(&child, first, &error);
		probe_leave(&child);
	}
	if (ret < 0)
		probe_tell(&child, "failed", answer_string(error.text));
	probe_tell_step(&child, "closing the device", child.cells.n_left, 0);
	close_all(&child);
	dpdk_stop();
	probe_tell(&child, "end", json_true());
	return ret < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
