/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process that touches the device: opens it, tries every form, what forms that work tell besides, and the size of
 * the table, closes it, and tells what it finds.
 */
/* Flow queues are experimental still. */
#define ALLOW_EXPERIMENTAL_API

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
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
#include "probe/findings.h"
#include "probe/packets.h"
#include "probe/probe.h"
#include "probe/report.h"

#define MEGABYTES 384
/* Queues to send packets to: two pairs. */
#define QUEUES 4
#define POOL 16383
/* A step that goes on and on is told so often. */
#define STEP_US 100000
/* With so many rules that did not go no more is tried. */
#define LEFT_MAX 8
/* So long a counter is watched: it may go round. */
#define WIDTH_US 1500000

/* A form that works better than others before it. */
struct candidate {
	struct form form;
	enum level level;
};

struct child {
	const struct probe_options *options;
	int pipe;
	uint64_t begin_us;
	uint64_t told_us; /* the last step */
	char told[160];
	struct port *ports[PROBE_N_DEVICES]; /* NULL: there is none */
	struct rte_mempool *pool;
	struct probe_packets *packets;
	struct observer observer;
	struct rule_port rules;
	unsigned n_vdevs;
	bool spoilt; /* so many rules did not go that what is seen may be theirs */
	bool failed; /* it takes no rule any more that it took before */
	/* the best of all, of those that mark, and of those that mark and count */
	struct candidate taken, marks, counts;
	FILE *nowhere; /* for what drivers say to the log: their answers say it too */
};

/* The parent says when it is enough; a user who interrupts both wants no rule left behind. */
static atomic_bool stop_asked;

static void ask_to_stop(int number)
{
	(void)number;
	atomic_store_explicit(&stop_asked, true, memory_order_release);
}

/* A line for the parent; takes the object. A parent that has gone wants nothing more. */
static void tell_line(const struct child *child, json_t *line)
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

/* {"KEY":value}; takes the value. */
static void tell(const struct child *child, const char *key, json_t *value)
{
	tell_line(child, json_pack("{so}", key, value));
}

/* Tells what it is about to do; `allow_s`: it may take so long, 0: as long as others. */
static void tell_step(struct child *child, const char *what, unsigned rules, unsigned allow_s)
{
	uint64_t now_us = monotonic_us();
	json_t *line;

	if (allow_s == 0 && strcmp(what, child->told) == 0 && now_us - child->told_us < STEP_US)
		return;
	child->told_us = now_us;
	snprintf(child->told, sizeof(child->told), "%s", what);
	line = json_pack("{ss sI}", "step", what, "rules", (json_int_t)rules);
	if (allow_s > 0)
		answer_number(line, "allow_s", allow_s);
	tell_line(child, line);
}

static void step_rule(void *context, const char *what, unsigned rules)
{
	tell_step(context, what, rules, 0);
}

static void step_limits(void *context, const char *what, unsigned rules, unsigned allow_s)
{
	struct child *child = context;
	char text[64];

	snprintf(text, sizeof(text), "table size: %s", what);
	tell_step(child, text, rules + child->rules.n_left, allow_s);
}

static void warn(void *context, const char *line)
{
	(void)context;
	fprintf(stderr, "millrace: %s\n", line);
}

static int start_dpdk(const struct child *child, struct error *error)
{
	struct dpdk_needs needs = {.megabytes = MEGABYTES, .hugepages = true};

	for (unsigned i = 0; i < PROBE_N_DEVICES; i++) {
		const struct port_device *device = &child->options->devices[i];

		if (device->text[0] != '\0' && device->kind == PORT_DEVICE_PCI)
			needs.pci[needs.n_pci++] = device->text;
	}
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

static int open_one(struct child *child, enum probe_device_use use, struct error *error)
{
	static const char *const names[] = {[PROBE_DEVICE] = "the device",
		[PROBE_PEER] = "the peer",
		[PROBE_TO] = "the other port"};
	const struct probe_options *options = child->options;
	struct hash_secret secret;
	int ret = hash_secret_init(&secret);
	const struct port_config config = {
		.name = names[use],
		.device = options->devices[use],
		.n_queues = use == PROBE_DEVICE ? QUEUES : 1,
		.force = options->force,
		.rss_pattern = rss_pattern((uint16_t)secret.word[0]),
		.offload_places = use == PROBE_DEVICE ? options->max_rules : 0,
	};

	if (ret < 0)
		return error_set(error, ret, "no randomness from the kernel: %s", strerror(-ret));
	return port_open(&child->ports[use], &config, warn, child, error);
}

static int make_pool(struct child *child, struct error *error)
{
	bool software = true;
	uint16_t room = 0;
	unsigned n = POOL;

	for (unsigned i = 0; i < PROBE_N_DEVICES; i++) {
		const struct port *port = child->ports[i];

		if (port == NULL)
			continue;
		n += port_buffers(port);
		room = (uint16_t)RTE_MAX(room, port_data_room(port));
		software = software && port->software;
	}
	child->pool = port_pool_create("packets", n, 0, room, SOCKET_ID_ANY, software);
	return child->pool != NULL ? 0 : error_set(error, -ENOMEM, "no memory for %u packets", n);
}

static int open_all(struct child *child, struct error *error)
{
	int ret = open_one(child, PROBE_DEVICE, error);

	for (unsigned i = PROBE_DEVICE + 1; i < PROBE_N_DEVICES && ret == 0; i++)
		if (child->options->devices[i].text[0] != '\0')
			ret = open_one(child, (enum probe_device_use)i, error);
	if (ret == 0)
		ret = make_pool(child, error);
	for (unsigned i = 0; i < PROBE_N_DEVICES && ret == 0; i++)
		if (child->ports[i] != NULL)
			ret = port_start(child->ports[i], child->pool, error);
	return ret;
}

/* What the port is: what is kept goes by it. */
static int tell_port(const struct child *child, struct error *error)
{
	const struct port *port = child->ports[PROBE_DEVICE];
	struct known_key key;
	int ret = known_port_key(&key, port);

	if (ret < 0)
		return error_set(error, ret, "DPDK does not describe the device");
	tell(child, "set",
		json_pack("{so so ss so sI sb}", "driver", answer_string(key.driver), "firmware",
			key.firmware[0] ? answer_string(key.firmware) : json_null(), "dpdk",
			key.dpdk, "arguments", answer_string(key.arguments), "queues",
			(json_int_t)port->n_rx, "templates", port->flow_queues));
	return 0;
}

static int make_observer(struct child *child, struct error *error)
{
	const struct probe_options *options = child->options;
	struct port *port = child->ports[PROBE_DEVICE], *peer = child->ports[PROBE_PEER];
	const struct probe_packets_config config = {
		.port = port,
		.peer = options->loopback ? port : peer,
		.to = child->ports[PROBE_TO] != NULL ? child->ports[PROBE_TO] : port,
		.pool = child->pool,
		.listen_ms = options->listen_s * 1000,
	};
	const char *packets = "none";
	int ret;

	tell_step(child, "listening", 0, options->listen_s + 10);
	ret = probe_packets_create(&child->packets, &config, error);
	if (ret < 0)
		return ret;
	probe_packets_observer(child->packets, &child->observer);
	child->rules = (struct rule_port){.id = port->id,
		.target = config.to->id,
		.n_queues = port->n_rx,
		.flow_queues = port->flow_queues,
		.observer = child->observer.flows > 0 ? &child->observer : NULL,
		.step = step_rule,
		.context = child};
	shape_port_read(&child->rules.rss,
		&(struct provider_config){.port_id = port->id, .n_queues = port->n_rx});
	if (options->loopback)
		packets = "loopback";
	else if (peer != NULL)
		packets = "peer";
	else if (child->observer.flows > 0)
		packets = "arriving";
	tell(child, "set",
		json_pack("{ss sI sI}", "packets", packets, "heard",
			(json_int_t)child->observer.heard, "flows",
			(json_int_t)child->observer.flows));
	return 0;
}

/* The time when so much of all of it is over. */
static uint64_t share_of_time(const struct child *child, unsigned per_cent)
{
	return child->begin_us + child->options->timeout_s * UINT64_C(10000) * per_cent;
}

/* That much of the time is over, or the parent does not want to wait. */
static bool is_enough(const struct child *child, unsigned per_cent)
{
	return atomic_load_explicit(&stop_asked, memory_order_acquire) ||
	       monotonic_us() >= share_of_time(child, per_cent);
}

static void choose(struct candidate *best, const struct form *form, enum level level)
{
	if (level >= LEVEL_ACCEPTS && level > best->level)
		*best = (struct candidate){*form, level};
}

static void try_marks(struct child *child, json_t *set)
{
	struct cell_marks marks;
	json_t *object;

	cell_marks(&child->rules, &child->marks.form, &marks);
	object = json_pack("{sI}", "accepted_bits", (json_int_t)marks.accepted_bits);
	if (child->rules.observer != NULL)
		answer_number(object, "seen_bits", marks.seen_bits);
	json_object_set_new(set, "marks", object);
}

static void try_counters(struct child *child, json_t *set)
{
	struct cell_width width;

	if (cell_counter_width(&child->rules, &child->counts.form, WIDTH_US, &width))
		json_object_set_new(set, "counters",
			json_pack("{sI sI sb sI}", "came", (json_int_t)width.expected[width.n - 1],
				"counted", (json_int_t)width.counted[width.n - 1], "bytes",
				width.has_bytes, width.bits != 0 ? "bits" : "at_least_bits",
				(json_int_t)width.at_least));
}

static void add_async(const struct child *child, json_t *set)
{
	struct rte_flow_queue_info queue = {0};
	struct rte_flow_port_info info = {0};
	struct rte_flow_error said = {0};

	if (child->rules.flow_queues &&
		rte_flow_info_get(child->rules.id, &info, &queue, &said) >= 0)
		json_object_set_new(set, "async",
			json_pack("{sI sI sI sI sI sI}", "queues", (json_int_t)info.max_nb_queues,
				"queue_size", (json_int_t)queue.max_size, "counters",
				(json_int_t)info.max_nb_counters, "ages",
				(json_int_t)info.max_nb_aging_objects, "meters",
				(json_int_t)info.max_nb_meters, "connections",
				(json_int_t)info.max_nb_conn_tracks));
}

static void try_indirect(struct child *child)
{
	static const char *const names[CELL_N_SHARED] = {"count", "age", "rss"};
	const struct candidate *counts = &child->counts;

	for (unsigned i = 0; i < CELL_N_SHARED; i++) {
		struct provider_why why = {0};
		enum level level = cell_indirect(&child->rules,
			counts->level >= LEVEL_ACCEPTS ? &counts->form : NULL, (enum cell_shared)i,
			&why);

		tell(child, "indirect",
			json_pack("{ss ss so*}", "action", names[i], "level", level_name(level),
				"answer", why.error != 0 ? report_refusal(&why) : NULL));
	}
}

/* Tries what else can be found out by forms that work. */
static void try_more(struct child *child)
{
	json_t *set = json_object();

	if (child->marks.level >= LEVEL_ACCEPTS)
		try_marks(child, set);
	if (child->counts.level == LEVEL_WORKS)
		try_counters(child, set);
	add_async(child, set);
	tell(child, "set", set);
	try_indirect(child);
}

/* All that are left, by one call; a driver that knows it takes them where it did not take each. */
static void flush(struct child *child)
{
	struct rte_flow_error said = {0};

	tell_step(child, "flush", child->rules.n_left, 60);
	if (rte_flow_flush(child->rules.id, &said) == 0)
		child->rules.n_left = 0;
}

/* Does it still take a form that it took before? Else nothing that is found out now is true of the card. */
static bool is_well(struct child *child)
{
	const struct candidate *before =
		child->taken.level >= LEVEL_ACCEPTS ? &child->taken : &child->marks;
	struct cell cell;

	if (before->level < LEVEL_ACCEPTS)
		return true;
	cell_try(&child->rules, &before->form, &cell);
	return cell.level >= LEVEL_ACCEPTS;
}

static json_t *why_stopped(const struct child *child)
{
	if (child->spoilt)
		return json_string("rules do not go again");
	if (child->failed)
		return json_string("it takes no rule any more that it took before");
	return json_string(atomic_load(&stop_asked) ? "interrupted" : "the time is over");
}

/* False: no more can be tried. */
static bool try_form(struct child *child, const struct form *form)
{
	struct cell cell;

	cell_try(&child->rules, form, &cell);
	child->failed = rule_is_passing(cell.create.error) && !is_well(child);
	if (child->failed)
		return false;
	if (form->pattern.special == FORM_SHAPE)
		choose(&child->taken, form, cell.level);
	if (form->actions->mark)
		choose(&child->marks, form, cell.level);
	if (form->actions->mark && form->actions->count)
		choose(&child->counts, form, cell.level);
	tell(child, "cell", report_cell(form, &cell));
	/* rules that stay would be seen wherever others are looked for */
	if (cell.left)
		flush(child);
	child->spoilt = cell.left && child->rules.n_left >= LEFT_MAX;
	return !child->spoilt;
}

/* Each pattern with each set of actions; 60 % of the time at the most. */
static void try_forms(struct child *child, unsigned first)
{
	unsigned n = form_n(), i = first;
	bool goes_on = true;
	struct form form;

	while (goes_on && i < n && !is_enough(child, 60)) {
		form_get(i, &form);
		goes_on = try_form(child, &form);
		i += goes_on;
	}
	tell(child, "set",
		json_pack("{so* sI}", "stopped", i < n ? why_stopped(child) : NULL, "cells_asked",
			(json_int_t)n));
}

static int measure_table(struct child *child, bool async, unsigned per_cent)
{
	const struct port *port = child->ports[PROBE_DEVICE];
	const struct limits_config config = {
		.provider = {.port_id = port->id,
			.n_places = child->options->max_rules,
			.n_queues = port->n_rx,
			.metadata = port->marks,
			.async = async,
			.random = monotonic_us(),
			.stop = &stop_asked},
		.form = !async && child->taken.level >= LEVEL_ACCEPTS ? &child->taken.form : NULL,
		.port = &child->rules,
		.deadline_us = share_of_time(child, per_cent),
		.step = step_limits,
		.context = child,
	};
	struct limits limits;
	int ret = limits_measure(&limits, &config);

	if (ret < 0)
		return ret;
	child->rules.n_left += limits.left;
	tell(child, "table", report_limits(&limits, config.form));
	return 0;
}

/* All that is tried, from the cell `first` on. 0 or a negative errno with a line. */
static int try_all(struct child *child, unsigned first, struct error *error)
{
	int ret = 0;

	try_forms(child, first);
	if (child->spoilt || child->failed || is_enough(child, 95))
		return 0;
	try_more(child);
	/* the back end that an engine would have comes first */
	if (child->rules.flow_queues)
		ret = measure_table(child, true, 80);
	if (ret == 0 && !child->rules.by_templates)
		ret = measure_table(child, false, 95);
	if (ret < 0)
		return error_set(error, ret, "no memory for %u rules", child->options->max_rules);
	/* of a card that failed on the way not everything is true */
	child->failed = !is_well(child);
	if (child->failed)
		tell(child, "set", json_pack("{so}", "stopped", why_stopped(child)));
	return 0;
}

/* Tries all, without what drivers say to the log. */
static int try_quietly(struct child *child, unsigned first, struct error *error)
{
	int ret;

	child->nowhere = fopen("/dev/null", "we");
	if (child->nowhere != NULL)
		rte_openlog_stream(child->nowhere);
	ret = try_all(child, first, error);
	/* what could not be destroyed goes with all others, or with the port */
	if (child->rules.n_left > 0)
		flush(child);
	tell(child, "set", json_pack("{sI}", "rules_left", (json_int_t)child->rules.n_left));
	return ret;
}

static void close_all(struct child *child)
{
	probe_packets_destroy(child->packets);
	for (unsigned i = PROBE_N_DEVICES; i-- > 0;)
		port_close(child->ports[i]);
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

/* False: the parent is gone already. */
static bool take_signals(pid_t parent)
{
	const struct sigaction stop = {.sa_handler = ask_to_stop, .sa_flags = SA_RESTART};

	/* without the parent there is no reason to go on */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_IGN);
	sigaction(SIGTERM, &stop, NULL);
	/* it may have gone before the line above was heard */
	return getppid() == parent;
}

int probe_child(const struct probe_options *options, pid_t parent, int pipe, uint64_t begin_us,
	unsigned first)
{
	struct child child = {.options = options, .pipe = pipe, .begin_us = begin_us};
	struct error error;
	int ret;

	if (!take_signals(parent))
		return EXIT_FAILURE;
	tell_step(&child, "opening the device", 0, 0);
	ret = start_dpdk(&child, &error);
	if (ret == 0)
		ret = make_vdevs(&child, &error);
	if (ret == 0)
		ret = open_all(&child, &error);
	if (ret == 0)
		ret = tell_port(&child, &error);
	if (ret == 0)
		ret = make_observer(&child, &error);
	if (ret == 0)
		ret = try_quietly(&child, first, &error);
	if (ret < 0)
		tell(&child, "failed", answer_string(error.text));
	tell_step(&child, "closing the device", child.rules.n_left, 0);
	close_all(&child);
	dpdk_stop();
	tell(&child, "end", json_true());
	return ret < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
