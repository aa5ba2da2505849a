/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/top_picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/field.h"

#define US_PER_S 1000000.0
#define BITS_PER_BYTE 8

const char *const top_counter_asks[TOP_N_COUNTERS] = {
	[TOP_WIRES] = "wire show",
	[TOP_PORTS] = "port show",
	[TOP_WORKERS] = "worker show",
	[TOP_DROPS] = "drop show",
	[TOP_OFFLOAD] = "offload show",
};

const char *const top_order_names[TOP_N_ORDERS] = {
	[TOP_BY_RATE] = "rate",
	[TOP_BY_PACKETS] = "packets",
	[TOP_BY_BYTES] = "bytes",
	[TOP_BY_AGE] = "age",
};

/* A line of an answer, and that of the answer before. */
struct pair {
	const json_t *now, *before;
	double seconds; /* between them; 0 where there was none */
};

static double rate_of(const struct pair *pair, uint64_t now, uint64_t before)
{
	return pair->seconds > 0 && pair->before && now >= before
		       ? (double)(now - before) / pair->seconds
		       : TOP_UNKNOWN;
}

static double rate(const struct pair *pair, const char *key)
{
	return rate_of(pair, field_number(pair->now, key), field_number(pair->before, key));
}

static double bits(double bytes)
{
	return bytes < 0 ? TOP_UNKNOWN : bytes * BITS_PER_BYTE;
}

/* What is not known does not add. */
static double sum(double a, double b)
{
	if (a < 0)
		return b;
	return b < 0 ? a : a + b;
}

static double seconds_between(int64_t now_us, int64_t before_us)
{
	return before_us != 0 && now_us > before_us ? (double)(now_us - before_us) / US_PER_S : 0;
}

/* Line number `at`: both have it, under the same name where `name` is a key. */
static struct pair pair_at(
	const struct top_picture *picture, enum top_counter counter, size_t at, const char *name)
{
	struct pair pair = {
		.now = json_array_get(picture->counters[counter], at),
		.before = json_array_get(picture->counters_before[counter], at),
		.seconds = seconds_between(
			picture->counters_us[counter], picture->counters_before_us[counter]),
	};

	if (name &&
		!json_equal(json_object_get(pair.now, name), json_object_get(pair.before, name)))
		pair.before = NULL;
	return pair;
}

static unsigned count_of(const struct top_picture *picture, enum top_counter counter, unsigned max)
{
	size_t n = json_array_size(picture->counters[counter]);

	return n < max ? (unsigned)n : max;
}

/* The sum of two counters over all lines. */
static uint64_t total_of(const json_t *lines, const char *key, const char *other)
{
	const json_t *line;
	uint64_t total = 0;
	size_t i;

	json_array_foreach(lines, i, line) total +=
		field_number(line, key) + field_number(line, other);
	return total;
}

static double total_rate(const struct top_picture *picture, const char *key, const char *other)
{
	const struct pair pair = {
		.now = picture->counters[TOP_WIRES],
		.before = picture->counters_before[TOP_WIRES],
		.seconds = seconds_between(
			picture->counters_us[TOP_WIRES], picture->counters_before_us[TOP_WIRES]),
	};

	return rate_of(&pair, total_of(pair.now, key, other), total_of(pair.before, key, other));
}

static void take_wires(struct top_picture *picture)
{
	picture->n_flows = total_of(picture->counters[TOP_WIRES], "flows", "");
	picture->pps = total_rate(picture, "received", "nic_forwarded");
	picture->bps = bits(total_rate(picture, "received_bytes", "nic_forwarded_bytes"));
	picture->drops_pps = total_rate(picture, "dropped", "nic_dropped");
}

static double missed_rate(const struct pair *pair)
{
	struct pair nic = {
		.now = json_object_get(pair->now, "nic"),
		.before = json_object_get(pair->before, "nic"),
		.seconds = pair->seconds,
	};

	return nic.now ? sum(rate(&nic, "rx_missed"), rate(&nic, "rx_no_buffer")) : TOP_UNKNOWN;
}

static const json_t *offload_of(const struct top_picture *picture, const json_t *port)
{
	const json_t *line;
	size_t i;

	json_array_foreach(picture->counters[TOP_OFFLOAD], i, line)
	{
		if (json_equal(json_object_get(line, "port"), json_object_get(port, "port")))
			return line;
	}
	return NULL;
}

static void take_ports(struct top_picture *picture)
{
	picture->n_ports = count_of(picture, TOP_PORTS, TOP_MAX_PORTS);
	picture->n_in_nic = 0;
	picture->offloads = false;
	for (unsigned i = 0; i < picture->n_ports; i++) {
		struct pair pair = pair_at(picture, TOP_PORTS, i, "port");
		struct top_port *port = &picture->ports[i];

		*port = (struct top_port){
			.line = pair.now,
			.offload = offload_of(picture, pair.now),
			.rx_pps = rate(&pair, "rx_packets"),
			.rx_bps = bits(rate(&pair, "rx_bytes")),
			.tx_pps = rate(&pair, "tx_packets"),
			.tx_bps = bits(rate(&pair, "tx_bytes")),
			.missed_pps = missed_rate(&pair),
		};
		picture->offloads |= json_is_true(json_object_get(port->offload, "offload"));
		picture->n_in_nic += field_number(json_object_get(port->offload, "flows"), "in_hw");
	}
}

/* By the cycles of both answers; an engine that does not tell them tells the average since its start. */
static double busy_of(const struct pair *pair)
{
	double busy = rate(pair, "busy_cycles");
	double all = sum(sum(busy, rate(pair, "idle_cycles")), rate(pair, "sleep_cycles"));

	if (!field_has(pair->now, "busy_cycles"))
		return field_has(pair->now, "busy_percent")
			       ? json_number_value(json_object_get(pair->now, "busy_percent"))
			       : TOP_UNKNOWN;
	return busy >= 0 && all > 0 ? 100 * busy / all : TOP_UNKNOWN;
}

static void take_workers(struct top_picture *picture)
{
	picture->n_workers = count_of(picture, TOP_WORKERS, TOP_MAX_WORKERS);
	picture->new_flows_pps = TOP_UNKNOWN;
	for (unsigned i = 0; i < picture->n_workers; i++) {
		struct pair pair = pair_at(picture, TOP_WORKERS, i, "thread");

		picture->workers[i] = (struct top_worker){
			.line = pair.now,
			.pps = sum(rate(&pair, "received"), rate(&pair, "handed_in")),
			.busy = busy_of(&pair),
		};
		if (field_has(pair.now, "new_flows"))
			picture->new_flows_pps =
				sum(picture->new_flows_pps, rate(&pair, "new_flows"));
	}
}

static int compare_drops(const void *a_, const void *b_)
{
	const struct top_drop *a = a_, *b = b_;
	uint64_t of_a = field_number(a->line, "packets"), of_b = field_number(b->line, "packets");

	if (a->pps > b->pps || a->pps < b->pps)
		return a->pps > b->pps ? -1 : 1;
	return (of_a < of_b) - (of_a > of_b);
}

static void take_drops(struct top_picture *picture)
{
	unsigned n = count_of(picture, TOP_DROPS, TOP_MAX_DROPS);

	picture->n_drops = 0;
	for (unsigned i = 0; i < n; i++) {
		struct pair pair = pair_at(picture, TOP_DROPS, i, "reason");

		if (field_number(pair.now, "packets") > 0)
			picture->drops[picture->n_drops++] =
				(struct top_drop){.line = pair.now, .pps = rate(&pair, "packets")};
	}
	qsort(picture->drops, picture->n_drops, sizeof(picture->drops[0]), compare_drops);
}

void top_picture_counters(struct top_picture *picture, json_t *const lines[TOP_N_COUNTERS],
	json_t *const ends[TOP_N_COUNTERS], int64_t now_us)
{
	for (unsigned i = 0; i < TOP_N_COUNTERS; i++) {
		uint64_t clock_us = field_number(ends[i], "clock_us");

		json_decref(picture->counters_before[i]);
		picture->counters_before[i] = picture->counters[i];
		picture->counters[i] = json_incref(lines[i]);
		picture->counters_before_us[i] = picture->counters_us[i];
		picture->counters_us[i] = clock_us > 0 ? (int64_t)clock_us : now_us;
	}
	take_wires(picture);
	take_ports(picture);
	take_workers(picture);
	take_drops(picture);
}

const char *top_flow_name(char name[TOP_NAME_MAX], const json_t *line)
{
	char proto[FIELD_MAX], from[FIELD_MAX], to[FIELD_MAX];
	uint64_t wire = field_number(line, "wire"), zone = field_number(line, "zone");
	int length = snprintf(name, TOP_NAME_MAX, "%.12s %.54s %.54s", field_proto(line, proto),
		field_endpoint(line, "src", "sport", from),
		field_endpoint(line, "dst", "dport", to));

	if (wire > 0)
		length += snprintf(
			name + length, (size_t)(TOP_NAME_MAX - length), " wire %u", (unsigned)wire);
	if (zone > 0)
		snprintf(
			name + length, (size_t)(TOP_NAME_MAX - length), " zone %u", (unsigned)zone);
	return name;
}

static json_t *index_of(json_t *lines)
{
	json_t *index = json_object(), *line;
	char name[TOP_NAME_MAX];
	size_t i;

	json_array_foreach(lines, i, line) json_object_set(index, top_flow_name(name, line), line);
	return index;
}

static uint64_t both(const json_t *line, const char *key, const char *reverse_key)
{
	return field_number(line, key) + field_number(line, reverse_key);
}

static uint64_t packets_of(const json_t *line)
{
	return both(line, "packets", "reverse_packets");
}

static uint64_t nic_packets_of(const json_t *line)
{
	return field_number(json_object_get(line, "offload"), "packets");
}

/* The same flow was in the list before; another one of this name began at another time, as does one that was reported. */
static bool same_flow(const json_t *now, const json_t *before)
{
	return before &&
	       json_equal(json_object_get(now, "start"), json_object_get(before, "start"));
}

static void take_flow(struct top_flow *flow, const struct pair *pair, uint64_t *nic, uint64_t *all)
{
	flow->line = pair->now;
	flow->bps = bits(rate_of(pair, both(pair->now, "bytes", "reverse_bytes"),
		both(pair->before, "bytes", "reverse_bytes")));
	flow->pps = rate_of(pair, packets_of(pair->now), packets_of(pair->before));
	/* the engine measures better, and those that were not in the list before, too: their packets are taken for average */
	if (field_has(pair->now, "rate_pps"))
		flow->pps = (double)field_number(pair->now, "rate_pps");
	if (flow->bps < 0 && flow->pps >= 0 && packets_of(pair->now) > 0)
		flow->bps = bits(flow->pps * (double)both(pair->now, "bytes", "reverse_bytes") /
				 (double)packets_of(pair->now));
	if (pair->before && packets_of(pair->now) >= packets_of(pair->before) &&
		nic_packets_of(pair->now) >= nic_packets_of(pair->before)) {
		*all += packets_of(pair->now) - packets_of(pair->before);
		*nic += nic_packets_of(pair->now) - nic_packets_of(pair->before);
	}
}

void top_picture_flows(struct top_picture *picture, json_t *lines, int64_t now_us)
{
	json_t *index, *line;
	uint64_t nic = 0, all = 0;
	size_t i;

	json_decref(picture->list_before);
	picture->list_before = picture->list;
	picture->list = json_incref(lines);
	picture->list_before_us = picture->list_us;
	picture->list_us = now_us;
	picture->n_listed = 0;
	index = index_of(picture->list_before);
	json_array_foreach(lines, i, line)
	{
		struct top_flow *flow = &picture->flows[picture->n_listed];
		struct pair pair = {
			.now = line, .seconds = seconds_between(now_us, picture->list_before_us)};

		if (picture->n_listed == TOP_MAX_FLOWS)
			break;
		pair.before = json_object_get(index, top_flow_name(flow->name, line));
		if (!same_flow(line, pair.before))
			pair.before = NULL;
		take_flow(flow, &pair, &nic, &all);
		picture->n_listed++;
	}
	picture->nic_percent =
		all > 0 ? 100.0 * (double)(nic < all ? nic : all) / (double)all : TOP_UNKNOWN;
	json_decref(index);
}

static int compare_numbers(double a, double b)
{
	return (a < b) - (a > b);
}

static int compare_rates(const void *a_, const void *b_)
{
	const struct top_flow *a = a_, *b = b_;

	return compare_numbers(a->pps, b->pps);
}

static int compare_packets(const void *a_, const void *b_)
{
	const struct top_flow *a = a_, *b = b_;

	return compare_numbers((double)packets_of(a->line), (double)packets_of(b->line));
}

static int compare_bytes(const void *a_, const void *b_)
{
	const struct top_flow *a = a_, *b = b_;

	return compare_numbers((double)both(a->line, "bytes", "reverse_bytes"),
		(double)both(b->line, "bytes", "reverse_bytes"));
}

/* The oldest first; times of one form are in the order of their text. */
static int compare_ages(const void *a_, const void *b_)
{
	const struct top_flow *a = a_, *b = b_;
	const char *of_a = json_string_value(json_object_get(a->line, "start"));
	const char *of_b = json_string_value(json_object_get(b->line, "start"));

	return strcmp(of_a ? of_a : "", of_b ? of_b : "");
}

void top_picture_sort(struct top_picture *picture, enum top_order order)
{
	static int (*const compare[TOP_N_ORDERS])(const void *, const void *) = {
		[TOP_BY_RATE] = compare_rates,
		[TOP_BY_PACKETS] = compare_packets,
		[TOP_BY_BYTES] = compare_bytes,
		[TOP_BY_AGE] = compare_ages,
	};

	qsort(picture->flows, picture->n_listed, sizeof(picture->flows[0]), compare[order]);
}

void top_picture_restart(struct top_picture *picture)
{
	memset(picture->counters_us, 0, sizeof(picture->counters_us));
	picture->list_us = 0;
}

void top_picture_forget_flows(struct top_picture *picture)
{
	json_decref(picture->list);
	json_decref(picture->list_before);
	picture->list = picture->list_before = NULL;
	picture->list_us = 0;
	picture->n_listed = 0;
	picture->nic_percent = TOP_UNKNOWN;
}

void top_picture_fini(struct top_picture *picture)
{
	for (unsigned i = 0; i < TOP_N_COUNTERS; i++) {
		json_decref(picture->counters[i]);
		json_decref(picture->counters_before[i]);
	}
	top_picture_forget_flows(picture);
	*picture = (struct top_picture){.list_us = 0};
}
