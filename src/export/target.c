/* SPDX-License-Identifier: BSD-3-Clause */
#include "export/target.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "base/text.h"
#include "export/ipfix.h"

#define PORT 4739
#define PORT_TLS 4740
#define PORT_KAFKA 9092

#define QUEUE (4u << 20)
/* A broker confirms what it has taken, which keeps its room until then. */
#define QUEUE_KAFKA (64u << 20)

#define WORD_MAX 96

/* A message has to have room for the templates. */
#define MTU_LEAST 576
#define MTU_MOST 65535

struct parsing {
	struct export_target *target;
	struct error *error;
	uint32_t given; /* a bit for each option that was read */
};

static int refuse(const struct parsing *parsing, const char *word, const char *why)
{
	char shown[WORD_MAX];

	return error_set(
		parsing->error, -EINVAL, "%s: %s", text_printable(shown, sizeof(shown), word), why);
}

/* What has been found to fit. */
static void copy(char *to, size_t size, const char *from)
{
	const size_t length = strnlen(from, size - 1);

	memcpy(to, from, length);
	to[length] = '\0';
}

static int take_number(const struct parsing *parsing, const char *value, uint32_t least,
	uint32_t most, uint32_t *number)
{
	char *end;
	unsigned long long all = 0;

	errno = 0;
	if (value[0] >= '0' && value[0] <= '9')
		all = strtoull(value, &end, 10);
	else
		return refuse(parsing, value, "a number is needed");
	if (*end != '\0' || errno != 0)
		return refuse(parsing, value, "a number is needed");
	if (all < least || all > most)
		return error_set(parsing->error, -EINVAL, "%llu: a number from %u to %u is needed",
			all, least, most);
	*number = (uint32_t)all;
	return 0;
}

/* Elements of our own under IPFIX_REVERSE_PEN would read as reverse elements of IANA. */
static int take_pen(const struct parsing *parsing, const char *value, uint32_t *pen)
{
	const int ret = take_number(parsing, value, 1, UINT32_MAX, pen);

	if (ret == 0 && *pen == IPFIX_REVERSE_PEN)
		return refuse(parsing, value, "that number is of reverse elements (RFC 5103)");
	return ret;
}

static int take_bool(const struct parsing *parsing, const char *value, bool *said)
{
	if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
		return refuse(parsing, value, "yes or no is needed");
	*said = value[0] == 'y';
	return 0;
}

static int take_path(const struct parsing *parsing, const char *value, char path[EXPORT_PATH_MAX])
{
	if (*value == '\0' || strlen(value) >= EXPORT_PATH_MAX)
		return refuse(parsing, value, "a file of at most 255 characters is needed");
	copy(path, EXPORT_PATH_MAX, value);
	return 0;
}

static int take_protocol(const struct parsing *parsing, const char *value)
{
	static const struct {
		const char *name;
		uint8_t number;
	} names[] = {{"icmp", 1}, {"tcp", 6}, {"udp", 17}, {"icmpv6", 58}, {"sctp", 132}};
	struct export_filter *filter = &parsing->target->filter;
	uint32_t number = 0;

	filter->by_protocol = true;
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(value, names[i].name) == 0) {
			filter->protocol = names[i].number;
			return 0;
		}
	}
	if (take_number(parsing, value, 0, 255, &number) < 0)
		return refuse(parsing, value,
			"tcp, udp, icmp, icmpv6, sctp or a number up to 255 is needed");
	filter->protocol = (uint8_t)number;
	return 0;
}

static int take_prefix(const struct parsing *parsing, const char *value)
{
	struct export_filter *filter = &parsing->target->filter;
	struct error said;

	filter->by_prefix = true;
	if (block_parse_prefix(&filter->prefix, value, BLOCK_ANY, BLOCK_ANY, &said) < 0)
		return error_set(parsing->error, -EINVAL, "%.300s", said.text);
	return 0;
}

enum option {
	OPTION_DOMAIN,
	OPTION_BIFLOW,
	OPTION_PEN,
	OPTION_TEMPLATES,
	OPTION_TEMPLATE_MESSAGES,
	OPTION_MTU,
	OPTION_RATE,
	OPTION_QUEUE,
	OPTION_CA,
	OPTION_CERT,
	OPTION_KEY,
	OPTION_NAME,
	OPTION_PROTO,
	OPTION_PORT,
	OPTION_NET,
	OPTION_PACKETS,
	N_OPTIONS,
};

static const char *const option_names[N_OPTIONS] = {
	[OPTION_DOMAIN] = "domain",
	[OPTION_BIFLOW] = "biflow",
	[OPTION_PEN] = "pen",
	[OPTION_TEMPLATES] = "templates",
	[OPTION_TEMPLATE_MESSAGES] = "template-messages",
	[OPTION_MTU] = "mtu",
	[OPTION_RATE] = "rate",
	[OPTION_QUEUE] = "queue",
	[OPTION_CA] = "ca",
	[OPTION_CERT] = "cert",
	[OPTION_KEY] = "key",
	[OPTION_NAME] = "name",
	[OPTION_PROTO] = "proto",
	[OPTION_PORT] = "port",
	[OPTION_NET] = "net",
	[OPTION_PACKETS] = "packets",
};

static int take_port(const struct parsing *parsing, const char *value)
{
	uint32_t port = 0;
	int ret = take_number(parsing, value, 0, UINT16_MAX, &port);

	if (ret < 0)
		return ret;
	parsing->target->filter.by_port = true;
	parsing->target->filter.port = (uint16_t)port;
	return 0;
}

static int take_least(const struct parsing *parsing, const char *value)
{
	uint32_t packets = 0;
	int ret = take_number(parsing, value, 0, UINT32_MAX, &packets);

	if (ret == 0)
		parsing->target->filter.least_packets = packets;
	return ret;
}

static int take_name(const struct parsing *parsing, const char *value)
{
	if (*value == '\0' || strlen(value) >= EXPORT_HOST_MAX)
		return refuse(parsing, value, "the name in the collector's certificate is needed");
	copy(parsing->target->name, EXPORT_HOST_MAX, value);
	return 0;
}

static int take_value(const struct parsing *parsing, enum option option, char *value)
{
	struct export_target *target = parsing->target;

	switch (option) {
	case OPTION_DOMAIN:
		return take_number(parsing, value, 0, UINT32_MAX, &target->domain);
	case OPTION_BIFLOW:
		return take_bool(parsing, value, &target->biflow);
	case OPTION_PEN:
		return take_pen(parsing, value, &target->pen);
	case OPTION_TEMPLATES:
		return take_number(parsing, value, 1, 86400, &target->templates_s);
	case OPTION_TEMPLATE_MESSAGES:
		return take_number(parsing, value, 1, UINT32_MAX, &target->templates_messages);
	case OPTION_MTU:
		return take_number(parsing, value, MTU_LEAST, MTU_MOST, &target->mtu);
	case OPTION_RATE:
		return take_number(parsing, value, 1, UINT32_MAX, &target->rate);
	case OPTION_QUEUE:
		return take_number(parsing, value, 131072, 1u << 30, &target->queue);
	case OPTION_CA:
		return take_path(parsing, value, target->authority);
	case OPTION_CERT:
		return take_path(parsing, value, target->certificate);
	case OPTION_KEY:
		return take_path(parsing, value, target->key);
	case OPTION_NAME:
		return take_name(parsing, value);
	case OPTION_PROTO:
		return take_protocol(parsing, value);
	case OPTION_PORT:
		return take_port(parsing, value);
	case OPTION_NET:
		return take_prefix(parsing, value);
	case OPTION_PACKETS:
		return take_least(parsing, value);
	case N_OPTIONS:
		break;
	}
	return -EINVAL;
}

/* Has an option a meaning for this format and transport? */
static bool is_for(enum option option, const struct export_target *target)
{
	switch (option) {
	case OPTION_DOMAIN:
	case OPTION_BIFLOW:
	case OPTION_PEN:
		return target->format == EXPORT_IPFIX;
	case OPTION_TEMPLATES:
	case OPTION_TEMPLATE_MESSAGES:
	case OPTION_MTU:
		return target->format == EXPORT_IPFIX && target->transport == EXPORT_UDP;
	case OPTION_CA:
	case OPTION_CERT:
	case OPTION_KEY:
		return target->tls;
	case OPTION_NAME:
		/* a broker's certificate is for the name that the broker itself tells */
		return target->transport == EXPORT_TLS;
	case OPTION_RATE:
	case OPTION_QUEUE:
	case OPTION_PROTO:
	case OPTION_PORT:
	case OPTION_NET:
	case OPTION_PACKETS:
	case N_OPTIONS:
		break;
	}
	return true;
}

static int take_option(struct parsing *parsing, char *option)
{
	char *equals = strchr(option, '='), shown[WORD_MAX], hint[WORD_MAX] = "";
	unsigned id = 0;

	if (equals == NULL)
		return refuse(parsing, option, "OPTION=VALUE is needed, as in domain=7");
	*equals = '\0';
	while (id < N_OPTIONS && strcmp(option, option_names[id]) != 0)
		id++;
	if (id == N_OPTIONS) {
		const char *near = suggest(option, option_names, N_OPTIONS);

		if (near != NULL)
			snprintf(hint, sizeof(hint), "; did you mean %s?", near);
		return error_set(parsing->error, -EINVAL, "%s: no such option of an export%s",
			text_printable(shown, sizeof(shown), option), hint);
	}
	if (!is_for((enum option)id, parsing->target))
		return refuse(parsing, option, "this format or transport has no use for it");
	if ((parsing->given >> id & 1) != 0)
		return refuse(parsing, option, "this option is given twice");
	parsing->given |= UINT32_C(1) << id;

	char said[sizeof(parsing->error->text)];

	if (take_value(parsing, (enum option)id, equals + 1) == 0)
		return 0;
	copy(said, sizeof(said), parsing->error->text);
	return error_set(parsing->error, -EINVAL, "%s: %.400s", option_names[id], said);
}

/* 0: there is none, and one has to be said. */
static uint32_t default_port(const struct export_target *target)
{
	if (target->transport == EXPORT_KAFKA)
		return PORT_KAFKA;
	if (target->format == EXPORT_JSON)
		return 0;
	return target->transport == EXPORT_TLS ? PORT_TLS : PORT;
}

/* HOST, HOST:PORT, or either with an IPv6 address in brackets. */
static int take_host(const struct parsing *parsing, char *place)
{
	struct export_target *target = parsing->target;
	char *host = place, *rest;
	uint32_t port = default_port(target);

	if (*place == '[') {
		host = place + 1;
		rest = strchr(host, ']');
		if (rest == NULL)
			return refuse(parsing, place, "the address has no ] at its end");
		*rest++ = '\0';
		if (*rest != '\0' && *rest != ':')
			return refuse(parsing, rest, "a port is needed, as in :4739");
	} else {
		rest = strchr(place, ':');
		if (rest != NULL && strchr(rest + 1, ':') != NULL)
			return refuse(parsing, place,
				"an IPv6 address stands in brackets, as in [::1]:4739");
	}
	if (rest != NULL && *rest == ':') {
		*rest = '\0';
		if (take_number(parsing, rest + 1, 1, UINT16_MAX, &port) < 0)
			return -EINVAL;
	}
	if (*host == '\0' || strlen(host) >= EXPORT_HOST_MAX || strchr(host, '/') != NULL)
		return refuse(parsing, host, "a host is needed, as in ipfix://192.0.2.1:4739");
	if (port == 0)
		return refuse(parsing, host, "a port is needed, as in json+tcp://192.0.2.1:5170");
	copy(target->host, sizeof(target->host), host);
	target->port = (uint16_t)port;
	return 0;
}

static bool is_topic(const char *topic)
{
	static const char fit[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	const size_t length = strspn(topic, fit);

	return length > 0 && length < EXPORT_TOPIC_MAX && topic[length] == '\0' &&
	       strcmp(topic, ".") != 0 && strcmp(topic, "..") != 0;
}

/* BROKER[:PORT][,BROKER...]/TOPIC */
static int take_brokers(const struct parsing *parsing, char *place)
{
	struct export_target *target = parsing->target;
	char *topic = strchr(place, '/'), *broker, *next = NULL;

	if (topic == NULL)
		return refuse(parsing, place, "a topic is needed, as in kafka://192.0.2.1/flows");
	*topic++ = '\0';
	if (!is_topic(topic))
		return refuse(parsing, topic,
			"a topic has at most 249 letters, digits, dots, underscores and hyphens");
	copy(target->topic, sizeof(target->topic), topic);
	copy(target->brokers, sizeof(target->brokers), place);
	if (*place == '\0' || *place == ',' || place[strlen(place) - 1] == ',' ||
		strstr(place, ",,") != NULL)
		return refuse(parsing, place, "a broker is needed, as in kafka://192.0.2.1/flows");
	/* each of them is looked at; the library takes the list as it is */
	for (broker = strtok_r(place, ",", &next); broker != NULL;
		broker = strtok_r(NULL, ",", &next)) {
		int ret = take_host(parsing, broker);

		if (ret < 0)
			return ret;
	}
	return 0;
}

static int take_place(const struct parsing *parsing, char *place)
{
	struct export_target *target = parsing->target;

	if (target->transport == EXPORT_KAFKA)
		return take_brokers(parsing, place);
	/* what a pipe's reader has not taken could not be sent again */
	if (target->transport == EXPORT_FILE && target->format == EXPORT_IPFIX &&
		strcmp(place, "-") == 0)
		return refuse(parsing, place,
			"IPFIX is written to a file alone, not to standard output; ./- is a file "
			"of "
			"that name");
	if (target->transport == EXPORT_FILE)
		return take_path(parsing, place, target->path);

	const int ret = take_host(parsing, place);

	if (ret == 0)
		copy(target->name, sizeof(target->name), target->host);
	return ret;
}

static int take_scheme(const struct parsing *parsing, const char *text, size_t *length)
{
	static const struct {
		const char *scheme;
		enum export_format format;
		enum export_transport transport;
		bool tls;
	} schemes[] = {
		{"ipfix://", EXPORT_IPFIX, EXPORT_UDP, false},
		{"ipfix+udp://", EXPORT_IPFIX, EXPORT_UDP, false},
		{"ipfix+tcp://", EXPORT_IPFIX, EXPORT_TCP, false},
		{"ipfix+tls://", EXPORT_IPFIX, EXPORT_TLS, true},
		{"ipfix+file:", EXPORT_IPFIX, EXPORT_FILE, false},
		{"json+udp://", EXPORT_JSON, EXPORT_UDP, false},
		{"json+tcp://", EXPORT_JSON, EXPORT_TCP, false},
		{"json+tls://", EXPORT_JSON, EXPORT_TLS, true},
		{"json+file:", EXPORT_JSON, EXPORT_FILE, false},
		{"kafka://", EXPORT_JSON, EXPORT_KAFKA, false},
		{"kafka+tls://", EXPORT_JSON, EXPORT_KAFKA, true},
	};
	struct export_target *target = parsing->target;

	for (unsigned i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		*length = strlen(schemes[i].scheme);
		if (strncmp(text, schemes[i].scheme, *length) == 0) {
			target->format = schemes[i].format;
			target->transport = schemes[i].transport;
			target->tls = schemes[i].tls;
			return 0;
		}
	}
	return refuse(parsing, text,
		"an export begins with ipfix://, ipfix+tcp://, ipfix+tls://, ipfix+file:, "
		"json+udp://, "
		"json+tcp://, json+tls://, json+file:, kafka:// or kafka+tls://");
}

static int check(const struct parsing *parsing)
{
	const struct export_target *target = parsing->target;

	if ((target->certificate[0] == '\0') != (target->key[0] == '\0'))
		return error_set(parsing->error, -EINVAL, "cert and key are needed together");
	return 0;
}

int export_target_parse(struct export_target *target, const char *text, struct error *error)
{
	struct parsing parsing = {.target = target, .error = error};
	char words[EXPORT_TARGET_MAX], *options, *option, *next = NULL;
	size_t length;
	int ret;

	*target = (struct export_target){
		.templates_s = 30, .templates_messages = 4096, .mtu = 1500, .queue = QUEUE};
	if (strlen(text) >= sizeof(words))
		return error_set(
			error, -EINVAL, "an export has at most %zu characters", sizeof(words) - 1);
	copy(target->text, sizeof(target->text), text);
	ret = take_scheme(&parsing, text, &length);
	if (ret < 0)
		return ret;
	copy(words, sizeof(words), text + length);
	options = strchr(words, '?');
	if (options != NULL)
		*options++ = '\0';
	if (target->transport == EXPORT_KAFKA)
		target->queue = QUEUE_KAFKA;
	ret = take_place(&parsing, words);
	if (options != NULL)
		for (option = strtok_r(options, "&", &next); ret == 0 && option != NULL;
			option = strtok_r(NULL, "&", &next))
			ret = take_option(&parsing, option);
	return ret < 0 ? ret : check(&parsing);
}

bool export_filter_takes(const struct export_filter *filter, const struct flow_report *report)
{
	const struct flow_record *record = &report->record;
	const struct flow_key *key = &record->key;
	const uint16_t port = htons(filter->port);

	if (filter->by_protocol && key->proto != filter->protocol)
		return false;
	if (filter->by_port && key->port[0] != port && key->port[1] != port)
		return false;
	if (filter->by_prefix && !block_match_fits(&filter->prefix, key))
		return false;
	return filter->least_packets == 0 ||
	       flow_packets(record, 0) + flow_packets(record, 1) >= filter->least_packets;
}
