/* SPDX-License-Identifier: BSD-3-Clause */
/* Exports to Kafka: librdkafka's own simulated brokers, which fail as they are told to. */
#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include "export_live.h"

#include "export/collector.h"

#define N_FLOWS 40
#define TOPIC "flows"
#define PARTITIONS 4
#define API_PRODUCE 0

struct cluster {
	rd_kafka_t *client;
	rd_kafka_mock_cluster_t *mock;
};

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
	char text[256];

	if (rd_kafka_conf_set(conf, name, value, text, sizeof(text)) != RD_KAFKA_CONF_OK)
		fail_msg("%s", text);
}

static rd_kafka_t *make_client(rd_kafka_type_t type, const char *brokers)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	char text[256];

	set(conf, "log_level", "0");
	if (brokers != NULL)
		set(conf, "bootstrap.servers", brokers);
	if (type == RD_KAFKA_CONSUMER)
		set(conf, "group.id", "test");
	rd_kafka_t *client = rd_kafka_new(type, conf, text, sizeof(text));

	if (client == NULL)
		fail_msg("%s", text);
	return client;
}

static int start_cluster(void **state)
{
	struct cluster *cluster = calloc(1, sizeof(*cluster));

	if (cluster == NULL)
		return -1;
	cluster->client = make_client(RD_KAFKA_PRODUCER, NULL);
	cluster->mock = rd_kafka_mock_cluster_new(cluster->client, 1);
	assert_non_null(cluster->mock);
	rd_kafka_mock_topic_create(cluster->mock, TOPIC, PARTITIONS, 1);
	*state = cluster;
	return 0;
}

static int stop_cluster(void **state)
{
	struct cluster *cluster = *state;

	rd_kafka_mock_cluster_destroy(cluster->mock);
	rd_kafka_destroy(cluster->client);
	free(cluster);
	return 0;
}

static struct export_collector *open_export(const struct cluster *cluster, const char *options)
{
	struct export_collector *collector = NULL;
	struct export_target target;
	struct error error;
	char url[256];

	snprintf(url, sizeof(url), "kafka://%s/" TOPIC "%s",
		rd_kafka_mock_cluster_bootstraps(cluster->mock), options);
	if (export_target_parse(&target, url, &error) < 0 ||
		export_collector_open(&collector, &target, NULL, NULL, &error) < 0)
		fail_msg("%s", error.text);
	return collector;
}

static struct export_counters counters_of(struct export_collector *collector)
{
	struct export_counters counters;

	export_collector_flush(collector);
	export_collector_counters(collector, &counters);
	assert_int_equal(counters.records, counters.written + counters.lost + counters.waiting);
	return counters;
}

/* Reports of N_FLOWS flows in turn, each line with the flow's number and its own. */
static void add_reports(struct export_collector *collector, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++) {
		struct flow_report report = {.reason = FLOW_END_ACTIVE};
		char text[512];
		struct export_line line = {.bytes = text};

		report.record.key.version_wire = FLOW_KEY_VERSION_WIRE(4, 0);
		report.record.key.proto = 17;
		report.record.key.port[0] = htons((uint16_t)(1 + i % N_FLOWS));
		flow_set_counts(&report.record, 0, 2, 200);
		line.length = (size_t)snprintf(
			text, sizeof(text), "%u %u %0300d\n", i % N_FLOWS, i / N_FLOWS, 0);
		export_collector_add(collector, &report, &line);
		if (i % 64 == 0)
			export_collector_tend(collector);
	}
}

#define WAIT_UNTIL(condition)                                      \
	for (uint64_t until_ms = now_ms() + LONG; !(condition);) { \
		if (now_ms() > until_ms)                           \
			fail_msg("in vain: %s", #condition);       \
		sched_yield();                                     \
	}

static void take_message(
	const rd_kafka_message_t *message, uint64_t next[N_FLOWS], int partition[N_FLOWS])
{
	const char *text = message->payload;
	unsigned flow, number, port;
	char key[64] = "";

	assert_int_equal(message->err, 0);
	assert_int_equal(sscanf(text, "%u %u ", &flow, &number), 2);
	assert_int_not_equal(text[message->len - 1], '\n');
	memcpy(key, message->key, message->key_len);
	assert_int_equal(sscanf(key, "17 0.0.0.0 %u 0.0.0.0 0 0", &port), 1);
	assert_int_equal(port, flow + 1);
	/* later than the one before, and where that was */
	assert_true(number + 1 > next[flow]);
	assert_true(next[flow] == 0 || partition[flow] == message->partition);
	next[flow] = number + 1;
	partition[flow] = message->partition;
}

/* All messages: of each flow in order, and none twice. Returns how many. */
static uint64_t read_all(const struct cluster *cluster, uint64_t wanted)
{
	rd_kafka_t *client =
		make_client(RD_KAFKA_CONSUMER, rd_kafka_mock_cluster_bootstraps(cluster->mock));
	rd_kafka_topic_partition_list_t *all = rd_kafka_topic_partition_list_new(PARTITIONS);
	uint64_t next[N_FLOWS] = {0}, n = 0, until_ms = now_ms() + LONG;
	int partition[N_FLOWS];

	for (int i = 0; i < PARTITIONS; i++)
		rd_kafka_topic_partition_list_add(all, TOPIC, i)->offset =
			RD_KAFKA_OFFSET_BEGINNING;
	assert_int_equal(rd_kafka_assign(client, all), 0);
	rd_kafka_topic_partition_list_destroy(all);
	/* a while longer than for those that are wanted: there are to be no more */
	while (now_ms() < until_ms) {
		rd_kafka_message_t *message = rd_kafka_consumer_poll(client, 100);

		if (message == NULL && n >= wanted)
			break;
		if (message == NULL)
			continue;
		take_message(message, next, partition);
		n++;
		rd_kafka_message_destroy(message);
	}
	rd_kafka_consumer_close(client);
	rd_kafka_destroy(client);
	return n;
}

static void close_export(struct export_collector *collector)
{
	export_collector_end(collector);
	export_collector_close(collector);
}

/* Brokers that fail for a while, in ways that are over when they are tried again: nothing is lost, doubled or out of order. */
static void test_in_order(void **state)
{
	struct cluster *cluster = *state;
	struct export_collector *collector = open_export(cluster, "");

	for (unsigned i = 0; i < 10; i++) {
		add_reports(collector, i * 400, (i + 1) * 400);
		rd_kafka_mock_push_request_errors(cluster->mock, API_PRODUCE, 2,
			RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
			RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION);
		WAIT_UNTIL(counters_of(collector).written > i * 400);
	}
	WAIT_UNTIL(counters_of(collector).waiting == 0);
	const struct export_counters counters = counters_of(collector);

	assert_int_equal(counters.written, 4000);
	assert_int_equal(counters.lost, 0);
	assert_int_equal(counters.messages, 4000);
	assert_int_equal(counters.up, 1);
	assert_int_equal(counters.sessions, 1);
	close_export(collector);
	assert_int_equal(read_all(cluster, 4000), 4000);
}

/* A broker that is away costs what finds no room, and no time; what waits is sent when it is back. */
static void test_away(void **state)
{
	struct cluster *cluster = *state;
	struct export_collector *collector = open_export(cluster, "?queue=131072");

	add_reports(collector, 0, 100);
	WAIT_UNTIL(counters_of(collector).written == 100);
	rd_kafka_mock_broker_set_down(cluster->mock, 1);
	const uint64_t began = now_ms();

	add_reports(collector, 100, 10000);
	assert_true(now_ms() - began < LONG / 4);
	struct export_counters counters = counters_of(collector);

	assert_true(counters.waiting > 0 && counters.waiting < 131072 / 300);
	assert_int_equal(counters.lost, 9900 - counters.waiting);
	assert_int_equal(counters.lost_packets, 2 * counters.lost);
	WAIT_UNTIL(counters_of(collector).up == 0);
	assert_true(counters_of(collector).why.text[0] != '\0');
	rd_kafka_mock_broker_set_up(cluster->mock, 1);
	WAIT_UNTIL(counters_of(collector).waiting == 0);
	assert_int_equal(counters_of(collector).lost, counters.lost);
	assert_int_equal(counters_of(collector).up, 1);
	const uint64_t written = counters_of(collector).written;

	close_export(collector);
	assert_int_equal(read_all(cluster, written), written);
}

/* What a broker refuses for good is lost, and told; the others go on. */
static void test_refused(void **state)
{
	struct cluster *cluster = *state;
	struct export_collector *collector = open_export(cluster, "");

	rd_kafka_mock_push_request_errors(
		cluster->mock, API_PRODUCE, 1, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
	add_reports(collector, 0, 40);
	WAIT_UNTIL(counters_of(collector).waiting == 0);
	const uint64_t lost = counters_of(collector).lost;

	assert_true(lost > 0);
	assert_non_null(strstr(counters_of(collector).why.text, "too large"));
	add_reports(collector, 40, 400);
	WAIT_UNTIL(counters_of(collector).waiting == 0);
	assert_int_equal(counters_of(collector).written, 400 - lost);
	close_export(collector);
	assert_int_equal(read_all(cluster, 400 - lost), 400 - lost);
}

/* After an error that ends the producer another one takes its place; what the first had is counted as lost. */
static void test_fatal(void **state)
{
	struct cluster *cluster = *state;
	struct export_collector *collector = open_export(cluster, "");

	add_reports(collector, 0, 40);
	WAIT_UNTIL(counters_of(collector).written == 40);
	rd_kafka_mock_push_request_errors(
		cluster->mock, API_PRODUCE, 1, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
	add_reports(collector, 40, 80);
	WAIT_UNTIL(counters_of(collector).sessions == 2);
	const struct export_counters counters = counters_of(collector);

	assert_int_equal(counters.waiting, 0);
	assert_true(counters.lost > 0);
	add_reports(collector, 80, 400);
	WAIT_UNTIL(counters_of(collector).waiting == 0);
	assert_int_equal(counters_of(collector).lost, counters.lost);
	const uint64_t written = counters_of(collector).written;

	close_export(collector);
	/* of what was on its way when the first one ended nobody knows whether a broker has it */
	const uint64_t there = read_all(cluster, written);

	assert_true(there >= written && there <= written + counters.lost);
}

/* Without a broker the end comes, and what was not taken is counted as lost. */
static void test_end(void **state)
{
	struct cluster *cluster = *state;
	struct export_collector *collector = open_export(cluster, "");
	struct export_counters counters;
	const uint64_t began = now_ms();

	rd_kafka_mock_broker_set_down(cluster->mock, 1);
	add_reports(collector, 0, 1000);
	export_collector_hurry(collector);
	export_collector_end(collector);
	assert_true(now_ms() - began < LONG / 2);
	export_collector_counters(collector, &counters);
	assert_int_equal(counters.records, 1000);
	assert_int_equal(counters.lost, 1000);
	assert_int_equal(counters.waiting, 0);
	export_collector_close(collector);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_in_order, start_cluster, stop_cluster),
		cmocka_unit_test_setup_teardown(test_away, start_cluster, stop_cluster),
		cmocka_unit_test_setup_teardown(test_refused, start_cluster, stop_cluster),
		cmocka_unit_test_setup_teardown(test_fatal, start_cluster, stop_cluster),
		cmocka_unit_test_setup_teardown(test_end, start_cluster, stop_cluster),
	};

#ifdef __SANITIZE_THREAD__
	/* librdkafka starts its threads by thrd_create(), which gcc's thread sanitizer does not follow */
	return 77; /* skipped */
#endif
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests_name("export_kafka", tests, NULL, NULL);
}
