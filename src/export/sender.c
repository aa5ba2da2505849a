/* SPDX-License-Identifier: BSD-3-Clause */
#include "export/sender.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/monotonic.h"
#include "base/topology.h"
#include "export/datagram.h"
#include "export/queue.h"
#include "export/stream.h"

/* A message of a stream; it may be longer, but nobody wins by that. */
#define STREAM_MESSAGE 16384

/* So many bytes of lines are handed to a stream at once. */
#define LINES_AT_ONCE 65536

/* So long flows wait at most for others to fill their message. */
#define LATE_MS 250
/* Between two looks at what the way carries, and whether the collector has gone. */
#define LOOK_MS 500
/* After a failure. */
#define RETRY_MS 100

/* Messages with templates and what goes with them: what options tell does not fit one of the shortest. */
#define OPENING_MESSAGES 8

struct opening {
	uint8_t bytes[OPENING_MESSAGES * 1024];
	struct queued message[OPENING_MESSAGES];
	size_t at[OPENING_MESSAGES]; /* where each begins */
	unsigned n, sent;
};

struct sender {
	struct carrier carrier;
	/* set once */
	bool lines; /* of JSON; else IPFIX */
	struct ipfix_format format;
	unsigned n_interfaces;
	struct ipfix_interface interfaces[TOPOLOGY_MAX_PORTS];
	struct ipfix_way (*way)(const void *context, const struct flow_report *report);
	const void *context;
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
	uint64_t opened_messages; /* when templates were sent */
	bool refused;
	uint8_t at_once[LINES_AT_ONCE]; /* lines on their way into a stream */
};

static struct sender *sender_of(struct carrier *carrier)
{
	return (struct sender *)carrier;
}

static uint64_t sender_now_ms(void)
{
	return monotonic_us() / 1000;
}

static bool is_udp(const struct sender *sender)
{
	return sender->carrier.target->transport == EXPORT_UDP;
}

static void show_sender(struct carrier *carrier)
{
	struct sender *sender = sender_of(carrier);
	struct export_counters *counters = &carrier->counters;

	counters->waiting = sender->queued;
	if (sender->message.bytes != NULL)
		counters->waiting += sender->message.records;
	counters->sessions = is_udp(sender) ? 1 : sender->stream.sessions;
	counters->up = is_udp(sender) ? !sender->refused : sender->stream.state == STREAM_UP;
	if (!is_udp(sender))
		counters->why = sender->stream.why;
}

static void flow_lost(struct carrier *carrier, const struct export_flow *flow)
{
	/* the collector is to see that they are missing */
	sender_of(carrier)->sequence += flow->records;
}

/* ---------------------------------------------------- templates and options */

/* Ends the message that is being written, and begins another one behind it. */
static bool next_opening(struct sender *sender, struct ipfix_message *message)
{
	struct opening *opening = &sender->opening;
	const size_t at = opening->at[opening->n];

	ipfix_end(message, &sender->format);
	opening->message[opening->n++] =
		(struct queued){.length = (uint32_t)message->length, .records = message->records};
	if (opening->n == OPENING_MESSAGES)
		return false;
	opening->at[opening->n] = at + message->length;

	const size_t left = sizeof(opening->bytes) - opening->at[opening->n];

	ipfix_begin(message, opening->bytes + opening->at[opening->n],
		sender->size < left ? sender->size : left);
	return true;
}

static struct ipfix_statistics statistics_of(const struct sender *sender)
{
	const struct export_counters *counters = &sender->carrier.counters;

	return (struct ipfix_statistics){
		.messages = sender->session_messages,
		.records = sender->session_records,
		.lost_records = counters->lost,
		.lost_packets = counters->lost_packets,
		.lost_octets = counters->lost_octets,
	};
}

/* What a session begins with, and UDP sends again: nothing else can be read without it. */
static void make_opening(struct sender *sender)
{
	const struct ipfix_format *format = &sender->format;
	const struct ipfix_statistics statistics = statistics_of(sender);
	struct opening *opening = &sender->opening;
	struct ipfix_message message;
	bool room = true;

	opening->n = opening->sent = 0;
	opening->at[0] = 0;
	sender->opening_due = sender->opening_owed = false;
	sender->opened_ms = sender_now_ms();
	sender->opened_messages = sender->session_messages;
	if (sender->lines)
		return;
	ipfix_begin(&message, opening->bytes,
		sender->size < sizeof(opening->bytes) ? sender->size : sizeof(opening->bytes));
	for (unsigned i = 0; room && i < ipfix_n_templates(format); i++) {
		while (room && !ipfix_add_template(&message, format, i))
			room = next_opening(sender, &message);
		/* the first one is theirs */
		for (unsigned j = 0; i == 0 && room && format->pen != 0 && j < ipfix_n_elements();
			j++)
			while (room && !ipfix_add_element(&message, format, j))
				room = next_opening(sender, &message);
	}
	while (room && !ipfix_add_statistics(&message, format, &statistics))
		room = next_opening(sender, &message);
	for (unsigned i = 0; room && i < sender->n_interfaces; i++)
		while (room && !ipfix_add_interface(&message, &sender->interfaces[i]))
			room = next_opening(sender, &message);
	if (room)
		(void)next_opening(sender, &message);
}

/* ---------------------------------------------------- sending */

/* Writes what is known only when the message leaves. */
static void stamp(const struct sender *sender, uint8_t *bytes, uint32_t sequence)
{
	struct timespec now;

	if (sender->lines)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	ipfix_stamp(bytes, (uint32_t)now.tv_sec, sequence);
}

static void sent(struct sender *sender, const struct queued *message, bool flows)
{
	sender->sequence += message->records;
	sender->carrier.moved_ms = sender_now_ms();
	sender->session_messages++;
	sender->carrier.counters.messages++;
	sender->carrier.counters.bytes += message->length;
	if (!flows)
		return;
	sender->session_records += message->records;
	sender->carrier.counters.written += message->records;
}

/* The messages that are next, templates first; returns how many. */
static unsigned gather(struct sender *sender, struct iovec *parts, unsigned max)
{
	struct opening *opening = &sender->opening;
	uint32_t sequence = sender->sequence;
	const struct queued *message;
	size_t cursor = 0;
	unsigned n = 0;
	uint8_t *bytes;

	for (unsigned i = opening->sent; i < opening->n && n < max; i++, n++) {
		bytes = opening->bytes + opening->at[i];
		parts[n] = (struct iovec){.iov_base = bytes, .iov_len = opening->message[i].length};
		stamp(sender, bytes, sequence);
		sequence += opening->message[i].records;
	}
	while (n < max && (message = queue_next(&sender->queue, &cursor, &bytes)) != NULL) {
		parts[n++] = (struct iovec){.iov_base = bytes, .iov_len = message->length};
		stamp(sender, bytes, sequence);
		sequence += message->records;
	}
	return n;
}

/* The message that is next, or NULL. */
static const struct queued *first_message(struct sender *sender, uint8_t **bytes)
{
	struct opening *opening = &sender->opening;
	size_t cursor = 0;

	if (opening->sent >= opening->n)
		return queue_next(&sender->queue, &cursor, bytes);
	*bytes = opening->bytes + opening->at[opening->sent];
	return &opening->message[opening->sent];
}

/* The first message is gone, whole. */
static void first_sent(struct sender *sender)
{
	struct opening *opening = &sender->opening;
	uint8_t *bytes;
	const struct queued *message = first_message(sender, &bytes);

	if (opening->sent < opening->n) {
		sent(sender, message, false);
		opening->sent++;
		return;
	}
	sender->queued -= message->records;
	sent(sender, message, true);
	queue_drop(&sender->queue);
}

static void udp_failed(struct sender *sender, int code, uint64_t now)
{
	if (code == -EAGAIN) {
		sender->retry_ms = now + 1;
		return;
	}
	error_set(&sender->carrier.counters.why, code, "%.200s: %s", sender->carrier.target->text,
		strerror(-code));
	sender->refused = true;
	sender->retry_ms = now + RETRY_MS;
}

/*
 * Nobody listened to a datagram that went before: these were not sent, and the next ones may well be heard. A collector that
 * has come back begins without templates.
 */
static bool was_refused(struct sender *sender, int code, uint64_t now)
{
	if (code != -ECONNREFUSED)
		return false;
	udp_failed(sender, code, now);
	sender->retry_ms = now;
	sender->carrier.counters.refused++;
	sender->opening_owed = true;
	return true;
}

static void push_datagrams(struct sender *sender, uint64_t now)
{
	struct iovec parts[DATAGRAM_BURST];
	unsigned n, refusals = 0;

	if (now < sender->retry_ms)
		return;
	if (sender->opening_due || (sender->opening_owed && now - sender->opened_ms >= LOOK_MS))
		make_opening(sender);
	while ((n = gather(sender, parts, DATAGRAM_BURST)) > 0) {
		const int taken = datagram_send(&sender->datagram, parts, n);

		if (taken < 0) {
			if (was_refused(sender, taken, now) && refusals++ < 2)
				continue;
			if (taken != -ECONNREFUSED)
				udp_failed(sender, taken, now);
			return;
		}
		if (refusals == 0)
			sender->refused = false;
		for (int i = 0; i < taken; i++)
			first_sent(sender);
	}
}

/* A session begins with templates, and counts from 0 (RFC 7011 section 10.4: of TCP). */
static void begin_session(struct sender *sender)
{
	sender->session = sender->stream.sessions;
	sender->begun = 0;
	sender->sequence = 0;
	sender->session_messages = sender->session_records = 0;
	make_opening(sender);
}

static void push_messages(struct sender *sender, uint64_t now)
{
	struct stream *stream = &sender->stream;
	const struct queued *message;
	uint8_t *bytes;

	while ((message = first_message(sender, &bytes)) != NULL) {
		if (sender->begun == 0)
			stamp(sender, bytes, sender->sequence);

		const ssize_t n = stream_put(stream, bytes + sender->begun,
			message->length - sender->begun, sender->begun, now);

		if (n < 0 && n != -EAGAIN)
			sender->begun = 0; /* it is sent again, whole */
		if (n < 0)
			return;
		sender->begun += (size_t)n;
		if (sender->begun < message->length)
			continue;
		sender->begun = 0;
		first_sent(sender);
	}
}

/* Lines that are next, as many as go at once, less what is gone of the first. Returns how many bytes. */
static size_t gather_lines(struct sender *sender)
{
	size_t length = 0, gone = sender->begun, cursor = 0;
	const struct queued *message;
	uint8_t *bytes;

	while (length < sizeof(sender->at_once) &&
		(message = queue_next(&sender->queue, &cursor, &bytes)) != NULL) {
		const size_t left = message->length - gone, room = sizeof(sender->at_once) - length;
		const size_t n = left < room ? left : room;

		memcpy(sender->at_once + length, bytes + gone, n);
		length += n;
		gone = 0;
	}
	return length;
}

static void push_lines(struct sender *sender, uint64_t now)
{
	const struct queued *message;
	uint8_t *bytes;
	size_t length;

	while ((length = gather_lines(sender)) > 0) {
		const ssize_t n =
			stream_put(&sender->stream, sender->at_once, length, sender->begun, now);

		if (n < 0 && n != -EAGAIN)
			sender->begun = 0;
		if (n < 0)
			return;
		sender->begun += (size_t)n;
		while ((message = first_message(sender, &bytes)) != NULL &&
			sender->begun >= message->length) {
			sender->begun -= message->length;
			first_sent(sender);
		}
	}
}

static void push_stream(struct sender *sender, uint64_t now)
{
	if (!stream_ready(&sender->stream, now))
		return;
	if (sender->stream.sessions != sender->session)
		begin_session(sender);
	if (sender->lines)
		push_lines(sender, now);
	else
		push_messages(sender, now);
}

static void push_sender(struct carrier *carrier)
{
	struct sender *sender = sender_of(carrier);
	const uint64_t now = sender_now_ms();

	if (is_udp(sender))
		push_datagrams(sender, now);
	else
		push_stream(sender, now);
}

static bool sender_waits(struct carrier *carrier)
{
	uint8_t *bytes;

	return first_message(sender_of(carrier), &bytes) != NULL;
}

static void wait_for_room(struct carrier *carrier, int ms)
{
	const struct sender *sender = sender_of(carrier);

	if (is_udp(sender))
		datagram_wait(&sender->datagram, ms);
	else
		stream_wait(&sender->stream, ms);
}

/* ---------------------------------------------------- flows */

static void close_message(struct sender *sender)
{
	if (sender->message.bytes == NULL)
		return;
	ipfix_end(&sender->message, &sender->format);
	sender->filling.length = (uint32_t)sender->message.length;
	sender->filling.records = sender->message.records;
	queue_add(&sender->queue, &sender->filling);
	sender->queued += sender->filling.records;
	sender->message.bytes = NULL;
}

static bool begin_message(struct sender *sender)
{
	uint8_t *bytes = queue_room(&sender->queue, sender->size);

	if (bytes == NULL)
		return false;
	ipfix_begin(&sender->message, bytes, sender->size);
	sender->filling = (struct queued){0};
	sender->filling_ms = sender_now_ms();
	return true;
}

static bool put_line(struct sender *sender, const struct export_flow *flow)
{
	const size_t length = flow->line->length;
	uint8_t *bytes = queue_room(&sender->queue, length);

	if (bytes == NULL)
		return false;
	memcpy(bytes, flow->line->bytes, length);
	queue_add(&sender->queue, &(struct queued){.length = (uint32_t)length,
					  .records = flow->records,
					  .packets = flow->packets,
					  .octets = flow->octets});
	sender->queued += flow->records;
	return true;
}

static bool put_flow(struct carrier *carrier, const struct export_flow *flow)
{
	struct sender *sender = sender_of(carrier);
	const struct flow_report *report = flow->report;
	struct ipfix_message *message = &sender->message;

	if (sender->lines)
		return put_line(sender, flow);

	const struct ipfix_way way = sender->way(sender->context, report);

	if (message->bytes == NULL || !ipfix_add_flow(message, &sender->format, report, &way)) {
		close_message(sender);
		if (!begin_message(sender) ||
			!ipfix_add_flow(message, &sender->format, report, &way))
			return false;
	}
	sender->filling.packets += flow->packets;
	sender->filling.octets += flow->octets;
	return true;
}

/* ---------------------------------------------------- now and then */

static void look_at_datagrams(struct sender *sender, uint64_t now)
{
	const struct export_target *target = sender->carrier.target;
	const uint64_t messages = sender->session_messages - sender->opened_messages;

	sender->size = datagram_carries(&sender->datagram, target->mtu);
	if (now - sender->opened_ms >= (uint64_t)target->templates_s * 1000 ||
		messages >= target->templates_messages)
		sender->opening_due = true;
}

static void tend_sender(struct carrier *carrier, bool all)
{
	struct sender *sender = sender_of(carrier);
	const uint64_t now = sender_now_ms();

	if (sender->message.bytes != NULL && (all || now - sender->filling_ms >= LATE_MS))
		close_message(sender);
	if (now >= sender->look_ms) {
		sender->look_ms = now + LOOK_MS;
		if (is_udp(sender))
			look_at_datagrams(sender, now);
		else if (stream_ended(&sender->stream, now))
			sender->begun = 0;
	}
	push_sender(carrier);
}

static void reopen_sender(struct carrier *carrier)
{
	struct sender *sender = sender_of(carrier);

	if (carrier->target->transport != EXPORT_FILE)
		return;
	stream_reopen(&sender->stream, sender->begun, sender_now_ms());
	sender->begun = 0;
}

/* ---------------------------------------------------- life */

static void close_way(struct sender *sender)
{
	if (is_udp(sender))
		datagram_close(&sender->datagram);
	else
		stream_close(&sender->stream);
}

static void end_sender(struct carrier *carrier)
{
	struct sender *sender = sender_of(carrier);
	const struct queued *message;
	size_t cursor = 0;
	uint8_t *bytes;

	close_message(sender);
	while ((message = queue_next(&sender->queue, &cursor, &bytes)) != NULL) {
		carrier->counters.lost += message->records;
		carrier->counters.lost_packets += message->packets;
		carrier->counters.lost_octets += message->octets;
	}
	sender->queued = 0;
	show_sender(carrier);
	if (!is_udp(sender))
		stream_take_back(&sender->stream, sender->begun);
	close_way(sender);
}

static void destroy_sender(struct carrier *carrier)
{
	struct sender *sender = sender_of(carrier);

	close_way(sender);
	queue_fini(&sender->queue);
	free(sender);
}

static const struct carrier_kind sender_kind = {
	.put = put_flow,
	.push = push_sender,
	.wait = wait_for_room,
	.waits = sender_waits,
	.tend = tend_sender,
	.lost = flow_lost,
	.reopen = reopen_sender,
	.show = show_sender,
	.end = end_sender,
	.destroy = destroy_sender,
};

int sender_create(struct carrier **out, const struct sender_config *config, struct error *error)
{
	const struct export_target *target = config->target;
	struct sender *sender = calloc(1, sizeof(*sender));
	int ret;

	if (sender == NULL || queue_init(&sender->queue, target->queue) < 0) {
		free(sender);
		return error_set(error, -ENOMEM, "no memory for exports");
	}
	sender->carrier = (struct carrier){.kind = &sender_kind, .target = target};
	sender->lines = target->format == EXPORT_JSON;
	sender->format = (struct ipfix_format){
		.domain = target->domain, .pen = target->pen, .biflow = target->biflow};
	sender->size = STREAM_MESSAGE;
	sender->way = config->way;
	sender->context = config->context;
	sender->opening_due = true;
	sender->datagram.fd = sender->stream.fd = -1;
	for (unsigned i = 0; i < config->n_interfaces; i++)
		sender->interfaces[sender->n_interfaces++] = config->interfaces[i];
	if (is_udp(sender)) {
		ret = datagram_open(&sender->datagram, target, error);
		if (ret == 0)
			sender->size = datagram_carries(&sender->datagram, target->mtu);
	} else {
		ret = stream_open(&sender->stream, target, config->truncate, error);
	}
	if (ret < 0)
		destroy_sender(&sender->carrier);
	else
		*out = &sender->carrier;
	return ret;
}
