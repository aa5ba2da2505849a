/* SPDX-License-Identifier: BSD-3-Clause */
#include "export/collector.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/monotonic.h"
#include "export/datagram.h"
#include "export/ipfix.h"
#include "export/queue.h"
#include "export/stream.h"

/* A message of a stream; it may be longer, but nobody wins by that. */
#define STREAM_MESSAGE 16384

/* So long flows wait at most for others to fill their message. */
#define LATE_MS 250
/* Between two looks at what the way carries, and whether the collector has gone. */
#define LOOK_MS 500
/* After a failure. */
#define RETRY_MS 100
/* At the end: for a collector that takes nothing, and in all. */
#define STALL_MS 2000
#define HURRY_MS 30000
#define WAIT_MS 20

/* Messages with templates and what goes with them: what options tell does not fit one of the shortest. */
#define OPENING_MESSAGES 8

struct opening {
	uint8_t bytes[OPENING_MESSAGES * 1024];
	struct queued message[OPENING_MESSAGES];
	size_t at[OPENING_MESSAGES]; /* where each begins */
	unsigned n, sent;
};

struct export_collector {
	/* set once */
	struct export_target target;
	struct ipfix_format format;
	bool patient;
	unsigned n_interfaces;
	struct ipfix_interface interfaces[TOPOLOGY_MAX_PORTS];
	struct topology topology; /* no ports: there are no interfaces */
	/* anyone writes */
	atomic_bool hurry;
	atomic_uint reopen_asked;
	/* the user's own */
	struct datagram datagram;
	struct stream stream;
	struct queue queue;
	struct ipfix_message message; /* being filled; no bytes: none is */
	struct queued filling;
	uint64_t filling_ms; /* since when */
	size_t size;	     /* of a message */
	struct opening opening;
	bool opening_due;
	bool opening_owed; /* UDP: nobody listened to something that was sent since the last one */
	unsigned session;  /* the stream's that the opening was for */
	size_t begun;	   /* bytes of the first message that are gone: streams */
	uint64_t queued;   /* records in the queue */
	uint32_t sequence;
	uint64_t session_messages, session_records;
	uint64_t look_ms, retry_ms, opened_ms;
	uint64_t moved_ms;	  /* when it last took something */
	uint64_t hurry_ms;	  /* since when there is a hurry */
	uint64_t opened_messages; /* when templates were sent */
	unsigned reopen_heeded;
	bool refused;
	bool ended;
	uint64_t paced_ms; /* rate: since when `paced` records went */
	uint64_t paced;
	struct export_counters counters;
	/* the user writes, anyone reads, under the lock */
	pthread_mutex_t lock;
	struct export_counters shown;
};

static uint64_t now_ms(void)
{
	return monotonic_us() / 1000;
}

static bool is_udp(const struct export_collector *collector)
{
	return collector->target.transport == EXPORT_UDP;
}

static void show(struct export_collector *collector)
{
	struct export_counters *counters = &collector->counters;

	counters->waiting = collector->queued;
	if (collector->message.bytes != NULL)
		counters->waiting += collector->message.records;
	counters->sessions = is_udp(collector) ? 1 : collector->stream.sessions;
	counters->up =
		is_udp(collector) ? !collector->refused : collector->stream.state == STREAM_UP;
	if (!is_udp(collector))
		counters->why = collector->stream.why;
	pthread_mutex_lock(&collector->lock);
	collector->shown = *counters;
	pthread_mutex_unlock(&collector->lock);
}

static void lose_message(struct export_collector *collector, const struct queued *message)
{
	collector->counters.lost += message->records;
	collector->counters.lost_packets += message->packets;
	collector->counters.lost_octets += message->octets;
	/* the collector is to see that they are missing */
	collector->sequence += message->records;
}

static uint64_t packets_of(const struct flow_report *report)
{
	return flow_packets(&report->record, 0) + flow_packets(&report->record, 1);
}

static uint64_t octets_of(const struct flow_report *report)
{
	return flow_report_octets(report, 0) + flow_report_octets(report, 1);
}

/* ---------------------------------------------------- templates and options */

/* Ends the message that is being written, and begins another one behind it. */
static bool next_opening(struct export_collector *collector, struct ipfix_message *message)
{
	struct opening *opening = &collector->opening;
	const size_t at = opening->at[opening->n];

	ipfix_end(message, &collector->format);
	opening->message[opening->n++] =
		(struct queued){.length = (uint32_t)message->length, .records = message->records};
	if (opening->n == OPENING_MESSAGES)
		return false;
	opening->at[opening->n] = at + message->length;

	const size_t left = sizeof(opening->bytes) - opening->at[opening->n];

	ipfix_begin(message, opening->bytes + opening->at[opening->n],
		collector->size < left ? collector->size : left);
	return true;
}

static struct ipfix_statistics statistics_of(const struct export_collector *collector)
{
	const struct export_counters *counters = &collector->counters;

	return (struct ipfix_statistics){
		.messages = collector->session_messages,
		.records = collector->session_records,
		.lost_records = counters->lost,
		.lost_packets = counters->lost_packets,
		.lost_octets = counters->lost_octets,
	};
}

/* What a session begins with, and UDP sends again: nothing else can be read without it. */
static void make_opening(struct export_collector *collector)
{
	const struct ipfix_format *format = &collector->format;
	const struct ipfix_statistics statistics = statistics_of(collector);
	struct opening *opening = &collector->opening;
	struct ipfix_message message;
	bool room = true;

	opening->n = opening->sent = 0;
	opening->at[0] = 0;
	ipfix_begin(&message, opening->bytes,
		collector->size < sizeof(opening->bytes) ? collector->size
							 : sizeof(opening->bytes));
	(void)ipfix_add_templates(&message, format);
	while (room && !ipfix_add_statistics(&message, format, &statistics))
		room = next_opening(collector, &message);
	for (unsigned i = 0; room && i < collector->n_interfaces; i++)
		while (room && !ipfix_add_interface(&message, &collector->interfaces[i]))
			room = next_opening(collector, &message);
	for (unsigned i = 0; room && format->pen != 0 && i < ipfix_n_elements(); i++)
		while (room && !ipfix_add_element(&message, format, i))
			room = next_opening(collector, &message);
	if (room)
		(void)next_opening(collector, &message);
	collector->opening_due = collector->opening_owed = false;
	collector->opened_ms = now_ms();
	collector->opened_messages = collector->session_messages;
}

/* ---------------------------------------------------- sending */

/* Writes what is known only when the message leaves. */
static void stamp(uint8_t *bytes, uint32_t sequence)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	ipfix_stamp(bytes, (uint32_t)now.tv_sec, sequence);
}

static void sent(struct export_collector *collector, const struct queued *message, bool flows)
{
	collector->sequence += message->records;
	collector->moved_ms = now_ms();
	collector->session_messages++;
	collector->counters.messages++;
	collector->counters.bytes += message->length;
	if (!flows)
		return;
	collector->session_records += message->records;
	collector->counters.written += message->records;
}

/* The messages that are next, templates first; returns how many. */
static unsigned gather(struct export_collector *collector, struct iovec *parts, unsigned max)
{
	struct opening *opening = &collector->opening;
	uint32_t sequence = collector->sequence;
	const struct queued *message;
	size_t cursor = 0;
	unsigned n = 0;
	uint8_t *bytes;

	for (unsigned i = opening->sent; i < opening->n && n < max; i++, n++) {
		bytes = opening->bytes + opening->at[i];
		parts[n] = (struct iovec){.iov_base = bytes, .iov_len = opening->message[i].length};
		stamp(bytes, sequence);
		sequence += opening->message[i].records;
	}
	while (n < max && (message = queue_next(&collector->queue, &cursor, &bytes)) != NULL) {
		parts[n++] = (struct iovec){.iov_base = bytes, .iov_len = message->length};
		stamp(bytes, sequence);
		sequence += message->records;
	}
	return n;
}

/* The message that is next, or NULL. */
static const struct queued *first_message(struct export_collector *collector, uint8_t **bytes)
{
	struct opening *opening = &collector->opening;
	size_t cursor = 0;

	if (opening->sent >= opening->n)
		return queue_next(&collector->queue, &cursor, bytes);
	*bytes = opening->bytes + opening->at[opening->sent];
	return &opening->message[opening->sent];
}

/* The first message is gone, whole. */
static void first_sent(struct export_collector *collector)
{
	struct opening *opening = &collector->opening;
	uint8_t *bytes;
	const struct queued *message = first_message(collector, &bytes);

	if (opening->sent < opening->n) {
		sent(collector, message, false);
		opening->sent++;
		return;
	}
	collector->queued -= message->records;
	sent(collector, message, true);
	queue_drop(&collector->queue);
}

static void udp_failed(struct export_collector *collector, int code, uint64_t now)
{
	if (code == -EAGAIN) {
		collector->retry_ms = now + 1;
		return;
	}
	error_set(&collector->counters.why, code, "%.200s: %s", collector->target.text,
		strerror(-code));
	collector->refused = true;
	collector->retry_ms = now + RETRY_MS;
}

/*
 * Nobody listened to a datagram that went before: these were not sent, and the next ones may well be heard. A collector that
 * has come back begins without templates.
 */
static bool was_refused(struct export_collector *collector, int code, uint64_t now)
{
	if (code != -ECONNREFUSED)
		return false;
	udp_failed(collector, code, now);
	collector->retry_ms = now;
	collector->counters.refused++;
	collector->opening_owed = true;
	return true;
}

static void push_datagrams(struct export_collector *collector, uint64_t now)
{
	struct iovec parts[DATAGRAM_BURST];
	unsigned n, refusals = 0;

	if (now < collector->retry_ms)
		return;
	if (collector->opening_due ||
		(collector->opening_owed && now - collector->opened_ms >= LOOK_MS))
		make_opening(collector);
	while ((n = gather(collector, parts, DATAGRAM_BURST)) > 0) {
		const int taken = datagram_send(&collector->datagram, parts, n);

		if (taken < 0) {
			if (was_refused(collector, taken, now) && refusals++ < 2)
				continue;
			if (taken != -ECONNREFUSED)
				udp_failed(collector, taken, now);
			return;
		}
		if (refusals == 0)
			collector->refused = false;
		for (int i = 0; i < taken; i++)
			first_sent(collector);
	}
}

/* A session begins with templates, and counts from 0 (RFC 7011 section 10.4: of TCP). */
static void begin_session(struct export_collector *collector)
{
	collector->session = collector->stream.sessions;
	collector->begun = 0;
	collector->sequence = 0;
	collector->session_messages = collector->session_records = 0;
	make_opening(collector);
}

static void push_stream(struct export_collector *collector, uint64_t now)
{
	struct stream *stream = &collector->stream;
	const struct queued *message;
	uint8_t *bytes;

	if (!stream_ready(stream, now))
		return;
	if (stream->sessions != collector->session)
		begin_session(collector);
	while ((message = first_message(collector, &bytes)) != NULL) {
		if (collector->begun == 0)
			stamp(bytes, collector->sequence);

		const ssize_t n = stream_put(
			stream, bytes + collector->begun, message->length - collector->begun, now);

		if (n < 0 && n != -EAGAIN)
			collector->begun = 0; /* it is sent again, whole */
		if (n < 0)
			return;
		collector->begun += (size_t)n;
		if (collector->begun < message->length)
			continue;
		collector->begun = 0;
		stream_whole(stream);
		first_sent(collector);
	}
}

static void push_messages(struct export_collector *collector)
{
	const uint64_t now = now_ms();

	if (is_udp(collector))
		push_datagrams(collector, now);
	else
		push_stream(collector, now);
}

static bool waits(struct export_collector *collector)
{
	uint8_t *bytes;

	return first_message(collector, &bytes) != NULL;
}

static void wait_for_room(const struct export_collector *collector)
{
	if (is_udp(collector))
		datagram_wait(&collector->datagram, WAIT_MS);
	else
		stream_wait(&collector->stream, WAIT_MS);
}

/* ---------------------------------------------------- flows */

static void close_message(struct export_collector *collector)
{
	if (collector->message.bytes == NULL)
		return;
	ipfix_end(&collector->message, &collector->format);
	collector->filling.length = (uint32_t)collector->message.length;
	collector->filling.records = collector->message.records;
	queue_add(&collector->queue, &collector->filling);
	collector->queued += collector->filling.records;
	collector->message.bytes = NULL;
}

/* Is it over, at once or in a while? */
static bool in_hurry(const struct export_collector *collector)
{
	return atomic_load_explicit(&collector->hurry, memory_order_relaxed);
}

/*
 * Is it worth to wait for a collector that takes nothing at the moment? A patient one always does; in a hurry all do, as
 * long as it takes something now and then.
 */
static bool may_wait(struct export_collector *collector)
{
	const uint64_t now = now_ms();

	if (!in_hurry(collector))
		return collector->patient;
	if (collector->hurry_ms == 0)
		collector->hurry_ms = now;
	const uint64_t since = collector->moved_ms > collector->hurry_ms ? collector->moved_ms
									 : collector->hurry_ms;

	return now - since < STALL_MS && now - collector->hurry_ms < HURRY_MS;
}

static bool begin_message(struct export_collector *collector)
{
	uint8_t *bytes = queue_room(&collector->queue, collector->size);

	while (bytes == NULL) {
		push_messages(collector);
		bytes = queue_room(&collector->queue, collector->size);
		if (bytes != NULL || !may_wait(collector))
			break;
		wait_for_room(collector);
	}
	if (bytes == NULL)
		return false;
	ipfix_begin(&collector->message, bytes, collector->size);
	collector->filling = (struct queued){0};
	collector->filling_ms = now_ms();
	return true;
}

/* Holds up a patient one that is too fast: the records of a second are spread over its milliseconds. */
static void keep_pace(struct export_collector *collector, unsigned records)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	const uint32_t rate = collector->target.rate;

	if (rate == 0 || !collector->patient)
		return;
	collector->paced += records;
	for (;;) {
		const uint64_t now = now_ms();

		if (now - collector->paced_ms >= 1000) {
			collector->paced_ms = now;
			collector->paced = records;
		}
		if (collector->paced * 1000 <= rate * (now - collector->paced_ms + 1))
			return;
		push_messages(collector);
		(void)nanosleep(&pause, NULL);
	}
}

/* Has a live one had its share of this second? */
static bool is_over_rate(struct export_collector *collector, unsigned records)
{
	const uint64_t now = now_ms();

	if (collector->target.rate == 0 || collector->patient)
		return false;
	if (now - collector->paced_ms >= 1000) {
		collector->paced_ms = now;
		collector->paced = 0;
	}
	if (collector->paced + records > collector->target.rate)
		return true;
	collector->paced += records;
	return false;
}

static struct ipfix_way way_of(
	const struct export_collector *collector, const struct flow_record *record)
{
	const struct topology *topology = &collector->topology;
	const unsigned domain = flow_key_wire(&record->key);

	if (topology->n_ports == 0)
		return (struct ipfix_way){0};
	const unsigned port = topology_port(topology, domain, record->side);

	return (struct ipfix_way){.ingress = port + 1, .egress = topology->peer[port] + 1u};
}

static bool write_flow(struct export_collector *collector, const struct flow_report *report)
{
	const struct ipfix_way way = way_of(collector, &report->record);
	struct ipfix_message *message = &collector->message;

	if (message->bytes != NULL && ipfix_add_flow(message, &collector->format, report, &way))
		return true;
	close_message(collector);
	return begin_message(collector) &&
	       ipfix_add_flow(message, &collector->format, report, &way);
}

void export_collector_add(struct export_collector *collector, const struct flow_report *report)
{
	const struct queued alone = {
		.records = ipfix_records(&collector->format, report),
		.packets = packets_of(report),
		.octets = octets_of(report),
	};

	if (!export_filter_takes(&collector->target.filter, report)) {
		collector->counters.filtered++;
		return;
	}
	collector->counters.flows++;
	collector->counters.records += alone.records;
	keep_pace(collector, alone.records);
	if (collector->ended || is_over_rate(collector, alone.records) ||
		!write_flow(collector, report)) {
		lose_message(collector, &alone);
		return;
	}
	collector->filling.packets += alone.packets;
	collector->filling.octets += alone.octets;
}

/* ---------------------------------------------------- now and then */

static void look(struct export_collector *collector, uint64_t now)
{
	const unsigned asked = atomic_load_explicit(&collector->reopen_asked, memory_order_relaxed);

	if (asked != collector->reopen_heeded) {
		collector->reopen_heeded = asked;
		if (collector->target.transport == EXPORT_FILE) {
			stream_reopen(&collector->stream, now);
			collector->begun = 0;
		}
	}
	if (now < collector->look_ms)
		return;
	collector->look_ms = now + LOOK_MS;
	if (!is_udp(collector)) {
		if (stream_ended(&collector->stream, now))
			collector->begun = 0;
		(void)stream_ready(&collector->stream, now);
	} else {
		const struct export_target *target = &collector->target;
		const uint64_t messages = collector->session_messages - collector->opened_messages;

		collector->size = datagram_carries(&collector->datagram, target->mtu);
		if (now - collector->opened_ms >= (uint64_t)target->templates_s * 1000 ||
			messages >= target->templates_messages)
			collector->opening_due = true;
	}
	show(collector);
}

void export_collector_tend(struct export_collector *collector)
{
	const uint64_t now = now_ms();

	if (collector->message.bytes != NULL && now - collector->filling_ms >= LATE_MS)
		close_message(collector);
	look(collector, now);
	push_messages(collector);
}

void export_collector_flush(struct export_collector *collector)
{
	close_message(collector);
	export_collector_tend(collector);
	show(collector);
}

bool export_collector_ends(struct export_collector *collector)
{
	export_collector_hurry(collector);
	close_message(collector);
	push_messages(collector);
	return !waits(collector) || !may_wait(collector);
}

void export_collector_end(struct export_collector *collector)
{
	const struct queued *message;
	size_t cursor = 0;
	uint8_t *bytes;

	while (!export_collector_ends(collector))
		wait_for_room(collector);
	while ((message = queue_next(&collector->queue, &cursor, &bytes)) != NULL)
		lose_message(collector, message);
	collector->queued = 0;
	collector->ended = true;
	show(collector);
	if (is_udp(collector))
		datagram_close(&collector->datagram);
	else
		stream_close(&collector->stream);
}

/* ---------------------------------------------------- life */

static void take_ports(struct export_collector *collector, const struct export_ports *ports)
{
	if (ports == NULL)
		return;
	collector->topology = ports->topology;
	for (unsigned i = 0; i < ports->topology.n_ports; i++) {
		struct ipfix_interface *interface = &collector->interfaces[i];

		interface->number = i + 1;
		strncpy(interface->name, ports->names[i], IPFIX_NAME);
		collector->n_interfaces++;
	}
}

int export_collector_open(struct export_collector **out, const struct export_target *target,
	const struct export_ports *ports, bool patient, struct error *error)
{
	struct export_collector *collector = calloc(1, sizeof(*collector));
	int ret;

	if (collector == NULL || queue_init(&collector->queue, target->queue) < 0) {
		free(collector);
		return error_set(error, -ENOMEM, "no memory for exports");
	}
	collector->target = *target;
	collector->patient = patient;
	collector->format = (struct ipfix_format){
		.domain = target->domain, .pen = target->pen, .biflow = target->biflow};
	collector->size = STREAM_MESSAGE;
	collector->opening_due = true;
	collector->datagram.fd = collector->stream.fd = -1;
	pthread_mutex_init(&collector->lock, NULL);
	take_ports(collector, ports);
	if (is_udp(collector)) {
		ret = datagram_open(&collector->datagram, &collector->target, error);
		if (ret == 0)
			collector->size = datagram_carries(&collector->datagram, target->mtu);
	} else {
		ret = stream_open(&collector->stream, &collector->target, patient, error);
	}
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
	if (is_udp(collector))
		datagram_close(&collector->datagram);
	else
		stream_close(&collector->stream);
	queue_fini(&collector->queue);
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
