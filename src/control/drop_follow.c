/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drop follow: a sample of dropped packets, as they are dropped. Lcores take samples only while somebody follows; what
 * all followers want together is asked of them, and each is given what it wants.
 */
#include "control/drop_follow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/control.h"
#include "control/event.h"
#include "control/verbs.h"
#include "export/address.h"
#include "export/json.h"

/* Samples in one go, and goes at a time. */
#define BATCH 64
#define BATCHES 16
#define DEFAULT_RATE 100
#define MAX_RATE 1000

static const struct request_key keys[] = {
	{.name = "reason", .type = REQUEST_TEXT},
	{.name = "at", .type = REQUEST_NUMBER, .max = PLANE_MAX_PORTS - 1},
	{.name = "rule", .type = REQUEST_NUMBER, .max = DROP_EVERY_NUMBER - 1},
	{.name = "rate", .type = REQUEST_NUMBER, .min = 1, .max = MAX_RATE},
};

enum {
	REASON,
	AT,
	RULE,
	RATE,
	N_KEYS,
};

static bool follows_drops(const struct client *client)
{
	const struct answer *answer = &client->answer;

	return client->fd >= 0 && client->answering && answer->follower.on && !answer->ended &&
	       answer->follower.drops.reasons != 0;
}

/* All wishes of those who follow, together. */
static struct drop_wanted want_of_all(const struct control *control)
{
	struct drop_wanted all = {.rule_port = DROP_ANY_RULE};
	unsigned n = 0;

	for (unsigned i = 0; i < CONTROL_MAX_CLIENTS; i++) {
		const struct drop_wanted *one = &control->clients[i].answer.follower.drops;

		if (!follows_drops(&control->clients[i]))
			continue;
		if (n++ == 0) {
			all = *one;
			continue;
		}
		all.reasons |= one->reasons;
		all.rate = RTE_MAX(all.rate, one->rate);
		if (all.rule_port != one->rule_port || all.rule != one->rule)
			all.rule_port = DROP_ANY_RULE;
	}
	return all;
}

/* Asks lcores for what is wanted now, unless they were. 0 or errno. */
static int ask_for_drops(struct control *control)
{
	const struct drop_wanted all = want_of_all(control), *now = &control->drops;
	uint64_t left_out[DROP_N_REASONS];
	struct drop_sample old[BATCH];

	if (all.reasons == now->reasons &&
		(all.reasons == 0 || (all.rate == now->rate && all.rule_port == now->rule_port &&
					     all.rule == now->rule)))
		return 0;
	/* nobody has followed: what is there still is of another time */
	for (unsigned i = 0; now->reasons == 0 && i < BATCHES; i++)
		if (plane_drops(control->plane, old, BATCH, left_out) < BATCH)
			break;
	const int ret = plane_watch_drops(control->plane, &all);

	if (ret == 0)
		control->drops = all;
	return ret;
}

static bool wants_sample(const struct drop_wanted *wanted, const struct drop_sample *sample)
{
	return wanted->reasons >> sample->reason & 1 && drop_is_of_rule(wanted, sample);
}

static void add_address(json_t *line, const char *name, const struct flow_key *key, unsigned end)
{
	char text[EXPORT_ADDRESS_MAX];

	text[export_address(text, flow_key_version(key), key->addr[end])] = '\0';
	json_object_set_new(line, name, json_string(text));
}

static void add_headers(json_t *line, const struct drop_sample *sample)
{
	const struct flow_key *key = &sample->key;
	const unsigned from = sample->from & 1;

	if (!sample->has_key)
		return;
	answer_number(line, "proto", key->proto);
	add_address(line, "src", key, from);
	answer_number(line, "sport", rte_be_to_cpu_16(key->port[from]));
	add_address(line, "dst", key, !from);
	answer_number(line, "dport", rte_be_to_cpu_16(key->port[!from]));
	answer_number(line, "zone", key->zone);
	if (sample->flags & PACKET_TCP)
		answer_number(line, "tcp_flags", sample->tcp_flags);
	if (sample->flags & PACKET_FRAGMENT)
		json_object_set_new(line, "fragment",
			json_string(sample->flags & PACKET_FIRST_FRAGMENT ? "first" : "later"));
}

static json_t *describe(const struct control *control, const struct drop_sample *sample)
{
	const struct plane_config *config = plane_config(control->plane);
	char text[2 * DROP_SAMPLE_BYTES + 1] = "", time[EXPORT_JSON_TIME_MAX];
	json_t *line = json_object();

	json_object_set_new(line, "time",
		json_string(
			export_json_time(time, plane_origin_us(control->plane) + sample->time_us)));
	json_object_set_new(
		line, "reason", json_string(drop_name((enum drop_reason)sample->reason)));
	if (sample->port < config->topology.n_ports)
		json_object_set_new(line, "port", answer_string(config->port[sample->port]->name));
	answer_number(line, "wire", sample->wire);
	answer_number(line, "length", sample->length);
	add_headers(line, sample);
	if (sample->rule_port != DROP_ANY_RULE) {
		answer_number(line, "rule_port", sample->rule_port);
		answer_number(line, "rule", sample->rule);
	}
	for (unsigned i = 0; i < sample->n_bytes; i++)
		snprintf(text + 2 * i, 3, "%02x", sample->bytes[i]);
	json_object_set_new(line, "bytes", json_string(text));
	return line;
}

/* Gives a line to one who follows; takes the object. */
static void give_object(struct client *client, const struct control *control, json_t *object)
{
	char *text = json_dumps(object, ANSWER_JSON);
	const size_t length = text != NULL ? strlen(text) : 0;

	json_decref(object);
	if (text == NULL)
		return;
	/* a line ends with a newline, which stands where the string ended */
	text[length] = '\n';
	event_give(client, control, text, length + 1);
	free(text);
}

static void give_left_out(struct client *client, const struct control *control,
	const uint64_t left_out[DROP_N_REASONS])
{
	char time[EXPORT_JSON_TIME_MAX];
	uint64_t sum = 0;
	json_t *line;

	for (unsigned i = 0; i < DROP_N_REASONS; i++)
		if (client->answer.follower.drops.reasons >> i & 1)
			sum += left_out[i];
	if (sum == 0)
		return;
	line = json_object();
	json_object_set_new(line, "time",
		json_string(export_json_time(
			time, plane_origin_us(control->plane) + plane_now_us(control->plane))));
	answer_number(line, "left_out", sum);
	give_object(client, control, line);
}

/* False when those were all, for now. */
static bool take_samples(struct control *control, uint64_t left_out[DROP_N_REASONS])
{
	struct drop_sample samples[BATCH];
	const unsigned n = plane_drops(control->plane, samples, BATCH, left_out);

	for (unsigned i = 0; i < CONTROL_MAX_CLIENTS; i++) {
		struct client *client = &control->clients[i];

		for (unsigned at = 0; at < n && follows_drops(client); at++)
			if (wants_sample(&client->answer.follower.drops, &samples[at]))
				give_object(client, control, describe(control, &samples[at]));
	}
	return n == BATCH;
}

bool drops_poll(struct control *control)
{
	uint64_t left_out[DROP_N_REASONS] = {0};

	/* where lcores did not answer, they are asked again */
	(void)ask_for_drops(control);
	if (control->drops.reasons == 0)
		return false;
	for (unsigned i = 0; i < BATCHES && take_samples(control, left_out); i++)
		;
	for (unsigned i = 0; i < CONTROL_MAX_CLIENTS; i++) {
		struct client *client = &control->clients[i];

		if (!follows_drops(client))
			continue;
		give_left_out(client, control, left_out);
		(void)output_send(&client->output, client->fd);
	}
	return true;
}

static int read_reason(
	const struct request_value *value, struct drop_wanted *wanted, struct error *error)
{
	const char *known[DROP_N_REASONS];

	for (unsigned i = 0; i < DROP_N_REASONS; i++) {
		known[i] = drop_name((enum drop_reason)i);
		if (!value->given || strcmp(value->text, known[i]) == 0)
			wanted->reasons |= UINT32_C(1) << i;
	}
	return wanted->reasons != 0 ? 0
				    : request_unknown(error, "drop follow", "reason", value->text,
					      "no such reason", known, DROP_N_REASONS);
}

static int drops_begin(
	struct answer *answer, const struct request_value *values, struct error *error)
{
	struct drop_wanted wanted = {
		.rule_port = values[AT].given ? (uint8_t)values[AT].number : DROP_ANY_RULE,
		.rule = values[RULE].given ? values[RULE].number : DROP_EVERY_NUMBER,
		.rate = values[RATE].given ? values[RATE].number : DEFAULT_RATE,
	};
	int ret = read_reason(&values[REASON], &wanted, error);

	if (ret < 0)
		return ret;
	if (values[RULE].given && !values[AT].given)
		return error_set(error, -EINVAL,
			"drop follow: rule %u: the port that it was made for is needed, too (at)",
			values[RULE].number);
	answer->follower = (struct follower){.on = true, .drops = wanted};
	answer->endless = true;
	/* the next look for events asks lcores for it: at once */
	answer->control->events_us = answer->control->now_us;
	return 0;
}

static int drops_turn(struct answer *answer, struct error *error)
{
	(void)answer;
	(void)error;
	return ANSWER_WAIT;
}

static void drops_end(struct answer *answer)
{
	answer->follower.on = false;
	answer->control->events_us = answer->control->now_us;
}

const struct answer_verb drop_follow = {
	.ask = "drop follow",
	.keys = keys,
	.n_keys = N_KEYS,
	.begin = drops_begin,
	.turn = drops_turn,
	.end = drops_end,
};
