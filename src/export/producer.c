/* SPDX-License-Identifier: BSD-3-Clause */
#include "export/producer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <librdkafka/rdkafka.h>

#include "base/monotonic.h"
#include "base/privilege.h"
#include "export/address.h"

/* The library's own limit is in bytes; no record is as short as this, so that its other limit is never met. */
#define LEAST_RECORD 128

/* At the end: how long the library may take to give back what it was told to forget. */
#define PURGE_MS 2000
#define PURGE_WAIT_MS 20

/* From one client to the next after a fatal error, at least. */
#define RENEW_MS 1000

/* Protocol, two addresses, two ports and the zone, with spaces. */
#define KEY_MAX (2 * EXPORT_ADDRESS_MAX + 32)

/* A record that the library has, and whose end it has not told. */
struct pending {
	struct pending *next, *previous;
	uint64_t packets, octets;
	size_t length;
	char *line; /* after this */
};

struct producer {
	struct carrier carrier;
	rd_kafka_conf_t *conf; /* what each client is made from; set once */
	/* the user's own */
	rd_kafka_t *client; /* NULL: another one is being made */
	rd_kafka_topic_t *topic;
	struct pending pending; /* the list's two ends */
	uint64_t waiting;	/* so many are in it */
	bool fatal;		/* the client takes nothing any more */
	bool purged;
	uint64_t renew_ms; /* another client is not made before */
	bool renewing;	   /* the renewer runs */
	pthread_t renewer;
	/* the renewer's while it runs */
	rd_kafka_t *old, *fresh;
	rd_kafka_topic_t *fresh_topic;
	struct error why_not;
	/* the renewer writes, the user reads */
	atomic_bool renewed;
};

static struct producer *producer_of(struct carrier *carrier)
{
	return (struct producer *)carrier;
}

static void set_why(struct producer *producer, const char *what)
{
	error_set(&producer->carrier.counters.why, -EIO, "%.200s: %.200s",
		producer->carrier.target->text, what);
}

/* ---------------------------------------------------- records on their way */

static void add_pending(struct producer *producer, struct pending *pending)
{
	pending->next = &producer->pending;
	pending->previous = producer->pending.previous;
	pending->previous->next = pending;
	producer->pending.previous = pending;
	producer->waiting++;
}

static void free_pending(struct producer *producer, struct pending *pending)
{
	pending->next->previous = pending->previous;
	pending->previous->next = pending->next;
	producer->waiting--;
	free(pending);
}

static void lose_pending(struct producer *producer, const struct pending *pending)
{
	struct export_counters *counters = &producer->carrier.counters;

	counters->lost++;
	counters->lost_packets += pending->packets;
	counters->lost_octets += pending->octets;
}

static bool is_purged(rd_kafka_resp_err_t code)
{
	return code == RD_KAFKA_RESP_ERR__PURGE_QUEUE || code == RD_KAFKA_RESP_ERR__PURGE_INFLIGHT;
}

/* What has become of a record; called within rd_kafka_poll(), in the thread that pushes. */
static void take_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque)
{
	struct producer *producer = opaque;
	struct export_counters *counters = &producer->carrier.counters;
	struct pending *pending = message->_private;

	(void)client;
	if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
		producer->carrier.moved_ms = monotonic_us() / 1000;
		counters->up = 1;
		counters->written++;
		counters->messages++;
		counters->bytes += pending->length;
	} else {
		lose_pending(producer, pending);
		if (!is_purged(message->err)) {
			counters->up = 0;
			set_why(producer, rd_kafka_err2str(message->err));
		}
	}
	free_pending(producer, pending);
}

/* Called within rd_kafka_poll(), too. What is not fatal the library goes on trying. */
static void take_error(rd_kafka_t *client, int code, const char *reason, void *opaque)
{
	struct producer *producer = opaque;
	char text[256];

	if (code == RD_KAFKA_RESP_ERR__FATAL) {
		(void)rd_kafka_fatal_error(client, text, sizeof(text));
		producer->fatal = true;
		reason = text;
	}
	producer->carrier.counters.up = 0;
	set_why(producer, reason);
}

/* The library would write to standard error; what matters comes as an error. */
static void keep_quiet(const rd_kafka_t *client, int level, const char *facility, const char *text)
{
	(void)client;
	(void)level;
	(void)facility;
	(void)text;
}

/* ---------------------------------------------------- clients */

/*
 * Ends the old client, if there is one, and makes another. It runs in a thread of its own: the threads that the library
 * makes have its rights, and an old client may take some time to end.
 */
static void *renew(void *arg)
{
	struct producer *producer = arg;
	rd_kafka_conf_t *conf = rd_kafka_conf_dup(producer->conf);
	char text[256];

	privilege_drop_admin();
	if (producer->old != NULL)
		rd_kafka_destroy(producer->old);
	producer->old = NULL;
	producer->fresh_topic = NULL;
	producer->fresh = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
	if (producer->fresh != NULL)
		producer->fresh_topic =
			rd_kafka_topic_new(producer->fresh, producer->carrier.target->topic, NULL);
	else
		rd_kafka_conf_destroy(conf);
	if (producer->fresh == NULL || producer->fresh_topic == NULL)
		error_set(&producer->why_not, -EIO, "%.200s: the producer does not start: %.200s",
			producer->carrier.target->text,
			producer->fresh == NULL ? text : rd_kafka_err2str(rd_kafka_last_error()));
	atomic_store_explicit(&producer->renewed, true, memory_order_release);
	return NULL;
}

static int begin_renewal(struct producer *producer)
{
	int ret;

	if (producer->topic != NULL)
		rd_kafka_topic_destroy(producer->topic);
	producer->topic = NULL;
	producer->old = producer->client;
	producer->client = NULL;
	atomic_store_explicit(&producer->renewed, false, memory_order_relaxed);
	ret = -pthread_create(&producer->renewer, NULL, renew, producer);
	if (ret == 0)
		producer->renewing = true;
	else
		producer->client = producer->old;
	return ret;
}

/* Returns 0, or -EIO: `why_not` says why there is no client. */
static int end_renewal(struct producer *producer)
{
	pthread_join(producer->renewer, NULL);
	producer->renewing = false;
	producer->client = producer->fresh;
	producer->topic = producer->fresh_topic;
	producer->fatal = producer->topic == NULL;
	producer->purged = false;
	if (producer->topic == NULL)
		return -EIO;
	producer->carrier.counters.sessions++;
	return 0;
}

/* After a fatal error the client gives back what it has, which is lost, and another one takes its place. */
static void recover(struct producer *producer)
{
	if (producer->renewing) {
		if (!atomic_load_explicit(&producer->renewed, memory_order_acquire))
			return;
		if (end_renewal(producer) < 0)
			producer->carrier.counters.why = producer->why_not;
		return;
	}
	if (producer->client != NULL && !producer->purged) {
		(void)rd_kafka_purge(
			producer->client, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
		producer->purged = true;
	}
	const uint64_t now = monotonic_us() / 1000;

	if (producer->waiting > 0 || now < producer->renew_ms)
		return;
	producer->renew_ms = now + RENEW_MS;
	(void)begin_renewal(producer);
}

/* ---------------------------------------------------- the carrier */

/*
 * The key of the message, by which a topic's partition is chosen: the same for both directions and every report of a
 * conversation.
 */
static size_t write_flow_key(char text[KEY_MAX], const struct flow_key *key)
{
	const unsigned version = flow_key_version(key);
	char ends[2][EXPORT_ADDRESS_MAX];

	for (unsigned i = 0; i < 2; i++)
		ends[i][export_address(ends[i], version, key->addr[i])] = '\0';
	return (size_t)snprintf(text, KEY_MAX, "%u %s %u %s %u %u", key->proto, ends[0],
		ntohs(key->port[0]), ends[1], ntohs(key->port[1]), key->zone);
}

static struct pending *make_pending(const struct export_flow *flow)
{
	struct pending *pending = malloc(sizeof(*pending) + flow->line->length);

	if (pending == NULL)
		return NULL;
	*pending = (struct pending){.packets = flow->packets,
		.octets = flow->octets,
		.length = flow->line->length,
		.line = (char *)(pending + 1)};
	memcpy(pending->line, flow->line->bytes, flow->line->length);
	return pending;
}

static bool produce(struct carrier *carrier, const struct export_flow *flow)
{
	struct producer *producer = producer_of(carrier);
	char key[KEY_MAX];
	struct pending *pending;
	size_t length;

	if (producer->client == NULL || producer->fatal)
		return false;
	pending = make_pending(flow);
	if (pending == NULL)
		return false;
	length = write_flow_key(key, &flow->report->record.key);
	add_pending(producer, pending);
	/* a message is the line without its newline; it stays where it is until its delivery is told */
	if (rd_kafka_produce(producer->topic, RD_KAFKA_PARTITION_UA, 0, pending->line,
		    pending->length - 1, key, length, pending) == 0)
		return true;

	const rd_kafka_resp_err_t code = rd_kafka_last_error();
	const bool gone = code != RD_KAFKA_RESP_ERR__QUEUE_FULL && code != RD_KAFKA_RESP_ERR__FATAL;

	/* what is neither full nor broken refuses this record, however long it is waited for */
	if (gone) {
		lose_pending(producer, pending);
		set_why(producer, rd_kafka_err2str(code));
	}
	free_pending(producer, pending);
	return gone;
}

static void poll_client(struct carrier *carrier)
{
	struct producer *producer = producer_of(carrier);

	if (producer->client != NULL)
		(void)rd_kafka_poll(producer->client, 0);
	if (producer->fatal)
		recover(producer);
}

static void wait_for_broker(struct carrier *carrier, int ms)
{
	const struct producer *producer = producer_of(carrier);
	const struct timespec pause = {.tv_nsec = ms * 1000000L};

	if (producer->client != NULL && !producer->fatal)
		(void)rd_kafka_poll(producer->client, ms);
	else
		(void)nanosleep(&pause, NULL);
}

static bool producer_waits(struct carrier *carrier)
{
	return producer_of(carrier)->waiting > 0;
}

static void tend_producer(struct carrier *carrier, bool all)
{
	(void)all;
	poll_client(carrier);
}

static void show_producer(struct carrier *carrier)
{
	carrier->counters.waiting = producer_of(carrier)->waiting;
}

/* Whatever the library does not give back in time is lost as well. */
static void end_producer(struct carrier *carrier)
{
	struct producer *producer = producer_of(carrier);
	const uint64_t until_ms = monotonic_us() / 1000 + PURGE_MS;

	if (producer->client != NULL)
		(void)rd_kafka_purge(
			producer->client, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
	while (producer->client != NULL && producer->waiting > 0 &&
		monotonic_us() / 1000 < until_ms)
		(void)rd_kafka_poll(producer->client, PURGE_WAIT_MS);
	for (struct pending *pending = producer->pending.next; pending != &producer->pending;
		pending = pending->next)
		lose_pending(producer, pending);
	carrier->counters.waiting = 0;
}

static void destroy_producer(struct carrier *carrier)
{
	struct producer *producer = producer_of(carrier);
	struct pending *pending = producer->pending.next, *next;

	if (producer->renewing)
		(void)end_renewal(producer);
	if (producer->topic != NULL)
		rd_kafka_topic_destroy(producer->topic);
	if (producer->client != NULL)
		rd_kafka_destroy(producer->client);
	for (; pending != &producer->pending; pending = next) {
		next = pending->next;
		free(pending);
	}
	rd_kafka_conf_destroy(producer->conf);
	free(producer);
}

static const struct carrier_kind producer_kind = {
	.put = produce,
	.push = poll_client,
	.wait = wait_for_broker,
	.waits = producer_waits,
	.tend = tend_producer,
	.show = show_producer,
	.end = end_producer,
	.destroy = destroy_producer,
};

/* ---------------------------------------------------- life */

struct setting {
	const char *name, *value;
};

static int set_all(
	struct producer *producer, const struct setting *settings, size_t n, struct error *error)
{
	char text[256];

	for (size_t i = 0; i < n; i++)
		if (settings[i].value[0] != '\0' &&
			rd_kafka_conf_set(producer->conf, settings[i].name, settings[i].value, text,
				sizeof(text)) != RD_KAFKA_CONF_OK)
			return error_set(error, -EINVAL, "%.200s: %.200s",
				producer->carrier.target->text, text);
	return 0;
}

/* The library tells neither which file it cannot read nor why. */
static int check_files(const struct export_target *target, struct error *error)
{
	const char *const files[] = {target->authority, target->certificate, target->key};

	for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (files[i][0] != '\0' && access(files[i], R_OK) < 0)
			return error_set(error, -EINVAL, "%.200s: not to be used for TLS: %s",
				files[i], strerror(errno));
	return 0;
}

static int configure(struct producer *producer, struct error *error)
{
	const struct export_target *target = producer->carrier.target;
	char kilobytes[16], messages[16];
	const struct setting settings[] = {
		{"bootstrap.servers", target->brokers},
		{"client.id", "millrace"},
		{"enable.idempotence", "true"},
		/* what Java's producers do, so that both find the same partition for a key */
		{"partitioner", "murmur2_random"},
		/* a record waits in the queue for its broker, as long as the engine runs */
		{"message.timeout.ms", "0"},
		{"queue.buffering.max.kbytes", kilobytes},
		{"queue.buffering.max.messages", messages},
		{"reconnect.backoff.max.ms", "1000"},
		{"topic.metadata.refresh.interval.ms", "10000"},
		{"socket.keepalive.enable", "true"},
		{"security.protocol", target->tls ? "ssl" : "plaintext"},
		{"ssl.ca.location", target->authority},
		{"ssl.certificate.location", target->certificate},
		{"ssl.key.location", target->key},
	};

	snprintf(kilobytes, sizeof(kilobytes), "%u", target->queue / 1024);
	snprintf(messages, sizeof(messages), "%u", target->queue / LEAST_RECORD);
	rd_kafka_conf_set_opaque(producer->conf, producer);
	rd_kafka_conf_set_dr_msg_cb(producer->conf, take_delivery);
	rd_kafka_conf_set_error_cb(producer->conf, take_error);
	rd_kafka_conf_set_log_cb(producer->conf, keep_quiet);
	return set_all(producer, settings, sizeof(settings) / sizeof(settings[0]), error);
}

int producer_create(struct carrier **out, const struct export_target *target, struct error *error)
{
	struct producer *producer = calloc(1, sizeof(*producer));
	int ret;

	if (producer == NULL)
		return error_set(error, -ENOMEM, "no memory for exports");
	ret = check_files(target, error);
	if (ret < 0) {
		free(producer);
		return ret;
	}
	producer->carrier = (struct carrier){.kind = &producer_kind, .target = target};
	producer->conf = rd_kafka_conf_new();
	producer->pending.next = producer->pending.previous = &producer->pending;
	ret = configure(producer, error);
	if (ret == 0 && (ret = begin_renewal(producer)) < 0)
		error_set(error, ret, "no thread for exports: %s", strerror(-ret));
	if (ret == 0 && (ret = end_renewal(producer)) < 0)
		*error = producer->why_not;
	if (ret < 0) {
		destroy_producer(&producer->carrier);
		return ret;
	}
	*out = &producer->carrier;
	return 0;
}
