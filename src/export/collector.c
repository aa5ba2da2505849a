/* SPDX-License-Identifier: BSD-3-Clause */
#include "export/collector.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/monotonic.h"
#include "export/ipfix.h"
#include "export/producer.h"
#include "export/sender.h"

/* At the end: for a collector that takes nothing, and in all. */
#define STALL_MS 2000
#define HURRY_MS 30000
#define WAIT_MS 20
/* Between two times that the counters are brought up to date while flows come. */
#define SHOW_MS 500

struct export_collector {
	/* set once */
	struct export_target target;
	export_patience *patience; /* NULL: it is live */
	struct topology topology;  /* no ports: there are no interfaces */
	/* anyone writes */
	atomic_bool hurry;
	atomic_uint reopen_asked;
	/* the user's own */
	struct carrier *carrier;
	uint64_t hurry_ms; /* since when there is a hurry */
	uint64_t show_ms;  /* when the counters are to be brought up to date */
	unsigned reopen_heeded;
	bool ended;
	uint64_t paced_ms; /* rate: since when `paced` records went */
	uint64_t paced;
	uint64_t allowed; /* of these at the last look at the clock; of a patient one */
	/* the user writes, anyone reads, under the lock */
	pthread_mutex_t lock;
	struct export_counters shown;
};

static uint64_t now_ms(void)
{
	return monotonic_us() / 1000;
}

static void show(struct export_collector *collector)
{
	struct carrier *carrier = collector->carrier;

	carrier->kind->show(carrier);
	pthread_mutex_lock(&collector->lock);
	collector->shown = carrier->counters;
	pthread_mutex_unlock(&collector->lock);
}

static void lose_flow(struct export_collector *collector, const struct export_flow *flow)
{
	struct carrier *carrier = collector->carrier;

	carrier->counters.lost += flow->records;
	carrier->counters.lost_packets += flow->packets;
	carrier->counters.lost_octets += flow->octets;
	if (carrier->kind->lost != NULL)
		carrier->kind->lost(carrier, flow);
}

static uint64_t packets_of(const struct flow_report *report)
{
	return flow_packets(&report->record, 0) + flow_packets(&report->record, 1);
}

static uint64_t octets_of(const struct flow_report *report)
{
	return flow_report_octets(report, 0) + flow_report_octets(report, 1);
}

/* Is it over, at once or in a while? */
static bool in_hurry(const struct export_collector *collector)
{
	return atomic_load_explicit(&collector->hurry, memory_order_relaxed) ||
	       (collector->patience != NULL && !collector->patience());
}

/*
 * Is it worth to wait for a collector that takes nothing at the moment? A patient one always does; in a hurry all do, as
 * long as it takes something now and then.
 */
static bool may_wait(struct export_collector *collector)
{
	const uint64_t now = now_ms(), moved = collector->carrier->moved_ms;

	if (!in_hurry(collector))
		return collector->patience != NULL;
	if (collector->hurry_ms == 0)
		collector->hurry_ms = now;
	const uint64_t since = moved > collector->hurry_ms ? moved : collector->hurry_ms;

	return now - since < STALL_MS && now - collector->hurry_ms < HURRY_MS;
}

/* Begins a second of the rate. A flow may have put the last one a record over it; the new second has that much less. */
static void begin_second(struct export_collector *collector, uint64_t now)
{
	const uint32_t rate = collector->target.rate;

	collector->paced_ms = now;
	collector->paced = collector->paced > rate ? collector->paced - rate : 0;
}

/*
 * Waits while a patient collector is ahead of its rate, or until the user interrupts. The records of a second are spread over
 * its milliseconds.
 */
static void keep_pace(struct export_collector *collector, unsigned records)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	const uint64_t rate = collector->target.rate;

	if (rate == 0 || collector->patience == NULL)
		return;
	while (collector->paced >= collector->allowed && collector->patience()) {
		const uint64_t now = now_ms();

		if (now - collector->paced_ms >= 1000)
			begin_second(collector, now);
		collector->allowed = rate * (now - collector->paced_ms + 1) / 1000;
		if (collector->paced < collector->allowed)
			break;
		collector->carrier->kind->push(collector->carrier);
		(void)nanosleep(&pause, NULL);
	}
	collector->paced += records;
}

/* Has a live one had its share of this second? */
static bool is_over_rate(struct export_collector *collector, unsigned records)
{
	const uint64_t now = now_ms();

	if (collector->target.rate == 0 || collector->patience != NULL)
		return false;
	if (now - collector->paced_ms >= 1000)
		begin_second(collector, now);
	if (collector->paced >= collector->target.rate)
		return true;
	collector->paced += records;
	return false;
}

/* Packets leave by the port that a rule names, or by the peer of the one that they came in by. */
static struct ipfix_way way_of(const void *context, const struct flow_report *report)
{
	const struct export_collector *collector = context;
	const struct topology *topology = &collector->topology;
	const struct flow_record *record = &report->record;
	struct ipfix_way way = {0};

	if (topology->n_ports == 0)
		return way;
	const unsigned port = topology_port(topology, flow_key_wire(&record->key), record->side);

	for (unsigned from = 0; from < 2; from++) {
		const unsigned in = from == record->initiator ? port : topology->peer[port];
		const unsigned named = report->rules.to_port[from];

		way.ingress[from] = in + 1;
		way.egress[from] = named != 0 ? named : topology->peer[in] + 1u;
	}
	return way;
}

/* Hands a flow to the carrier, and waits for room where that is worth it. */
static bool carry(struct export_collector *collector, const struct export_flow *flow)
{
	struct carrier *carrier = collector->carrier;

	while (!carrier->kind->put(carrier, flow)) {
		carrier->kind->push(carrier);
		if (carrier->kind->put(carrier, flow))
			return true;
		if (!may_wait(collector))
			return false;
		carrier->kind->wait(carrier, WAIT_MS);
	}
	return true;
}

bool export_collector_takes_lines(const struct export_collector *collector)
{
	return collector->target.format == EXPORT_JSON;
}

static uint32_t records_of(
	const struct export_collector *collector, const struct flow_report *report)
{
	const struct ipfix_format format = {.biflow = collector->target.biflow};

	return export_collector_takes_lines(collector) ? 1 : ipfix_records(&format, report);
}

void export_collector_add(struct export_collector *collector, const struct flow_report *report,
	const struct export_line *line)
{
	struct export_counters *counters = &collector->carrier->counters;
	const struct export_flow flow = {
		.report = report,
		.line = line,
		.records = records_of(collector, report),
		.packets = packets_of(report),
		.octets = octets_of(report),
	};

	if (!export_filter_takes(&collector->target.filter, report)) {
		counters->filtered++;
		return;
	}
	counters->flows++;
	counters->records += flow.records;
	keep_pace(collector, flow.records);
	if (collector->ended || is_over_rate(collector, flow.records) || !carry(collector, &flow))
		lose_flow(collector, &flow);
}

/* ---------------------------------------------------- now and then */

static void heed_reopening(struct export_collector *collector)
{
	const unsigned asked = atomic_load_explicit(&collector->reopen_asked, memory_order_relaxed);
	struct carrier *carrier = collector->carrier;

	if (asked == collector->reopen_heeded)
		return;
	collector->reopen_heeded = asked;
	if (carrier->kind->reopen != NULL)
		carrier->kind->reopen(carrier);
}

void export_collector_tend(struct export_collector *collector)
{
	const uint64_t now = now_ms();

	heed_reopening(collector);
	collector->carrier->kind->tend(collector->carrier, false);
	if (now < collector->show_ms)
		return;
	collector->show_ms = now + SHOW_MS;
	show(collector);
}

void export_collector_flush(struct export_collector *collector)
{
	heed_reopening(collector);
	collector->carrier->kind->tend(collector->carrier, true);
	show(collector);
}

bool export_collector_ends(struct export_collector *collector)
{
	struct carrier *carrier = collector->carrier;

	export_collector_hurry(collector);
	carrier->kind->tend(carrier, true);
	return !carrier->kind->waits(carrier) || !may_wait(collector);
}

void export_collector_end(struct export_collector *collector)
{
	struct carrier *carrier = collector->carrier;

	while (!export_collector_ends(collector))
		carrier->kind->wait(carrier, WAIT_MS);
	carrier->kind->end(carrier);
	collector->ended = true;
	show(collector);
}

/* ---------------------------------------------------- life */

static int create_sender(
	struct export_collector *collector, const struct export_ports *ports, struct error *error)
{
	struct ipfix_interface interfaces[TOPOLOGY_MAX_PORTS] = {0};
	struct sender_config config = {
		.target = &collector->target,
		.interfaces = interfaces,
		.way = way_of,
		.context = collector,
		.truncate = collector->patience != NULL,
	};

	if (ports != NULL)
		collector->topology = ports->topology;
	for (unsigned i = 0; ports != NULL && i < ports->topology.n_ports; i++) {
		interfaces[i].number = i + 1;
		strncpy(interfaces[i].name, ports->names[i], IPFIX_NAME);
		config.n_interfaces++;
	}
	return sender_create(&collector->carrier, &config, error);
}

int export_collector_open(struct export_collector **out, const struct export_target *target,
	const struct export_ports *ports, export_patience *patience, struct error *error)
{
	struct export_collector *collector = calloc(1, sizeof(*collector));
	int ret;

	if (collector == NULL)
		return error_set(error, -ENOMEM, "no memory for exports");
	collector->target = *target;
	collector->patience = patience;
	pthread_mutex_init(&collector->lock, NULL);
	if (target->transport == EXPORT_KAFKA)
		ret = producer_create(&collector->carrier, &collector->target, error);
	else
		ret = create_sender(collector, ports, error);
	if (ret < 0) {
		export_collector_close(collector);
		return ret;
	}
	show(collector);
	*out = collector;
	return 0;
}

void export_collector_close(struct export_collector *collector)
{
	if (collector == NULL)
		return;
	if (collector->carrier != NULL)
		collector->carrier->kind->destroy(collector->carrier);
	pthread_mutex_destroy(&collector->lock);
	free(collector);
}

const struct export_target *export_collector_target(const struct export_collector *collector)
{
	return &collector->target;
}

void export_collector_counters(struct export_collector *collector, struct export_counters *counters)
{
	pthread_mutex_lock(&collector->lock);
	*counters = collector->shown;
	pthread_mutex_unlock(&collector->lock);
}

void export_collector_reopen(struct export_collector *collector)
{
	atomic_fetch_add_explicit(&collector->reopen_asked, 1, memory_order_relaxed);
}

void export_collector_hurry(struct export_collector *collector)
{
	atomic_store_explicit(&collector->hurry, true, memory_order_relaxed);
}
