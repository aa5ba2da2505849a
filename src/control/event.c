/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event follow: lines about what happens, as it happens. A follower that reads too slowly loses
 * events and is told how many, at the place where they are missing.
 *
 * Lcores keep events for as long as it takes to fetch them: some milliseconds while somebody
 * follows. Those of ports are looked for now and then in any case, since the operator has to know.
 */
#include "control/event.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/block_name.h"
#include "control/control.h"
#include "control/drop_follow.h"
#include "control/flow_name.h"
#include "control/offload_events.h"
#include "control/offload_words.h"
#include "control/verbs.h"
#include "export/address.h"
#include "export/json.h"

/* Events in one go: their lines fit into a buffer that is empty. */
#define BATCH 256
/* Batches for the farewell. */
#define LAST_BATCHES 64
#define LINE_MAX_BYTES 2048
#define FLOW_TEXT_MAX 320
#define PORT_TEXT_MAX 80

/* "flow_new", ... */
static const char *event_name(enum path_event_kind kind)
{
	static const char *const names[PATH_EVENT_N_KINDS] = {
		[PATH_EVENT_FLOW_NEW] = "flow_new",
		[PATH_EVENT_FLOW_OPEN] = "flow_open",
		[PATH_EVENT_FLOW_CLOSING] = "flow_closing",
		[PATH_EVENT_FLOW_BLOCKED] = "flow_blocked",
		[PATH_EVENT_FLOW_UNBLOCKED] = "flow_unblocked",
		[PATH_EVENT_FLOW_END] = "flow_end",
		[PATH_EVENT_SHARDING_FALLBACK] = "sharding_fallback",
		[PATH_EVENT_SHARDING_RETRY] = "sharding_retry",
		[PATH_EVENT_CROWDED] = "worker_crowded",
		[PATH_EVENT_CHECKSUM_OFFLOAD] = "checksum_offload",
		[PATH_EVENT_FRAMES_CUT] = "frames_cut",
		[PATH_EVENT_FRAMES_TOO_LONG] = "frames_too_long",
		[PATH_EVENT_FRAMES_REFUSED] = "frames_refused",
		[PATH_EVENT_LOG] = "log",
		[PATH_EVENT_OFFLOAD] = "offload",
	};

	return names[kind];
}

static const struct request_key keys[] = {
	{.name = "flows", .type = REQUEST_FLAG},
};

enum {
	FLOWS,
	N_KEYS,
};

#define WHAT_MAX 320

/* What an operator types for a port's interface. */
static const char *interface_of(const struct control *control, unsigned number)
{
	const struct plane_config *config = plane_config(control->plane);

	if (number >= config->topology.n_ports || config->port[number]->device.interface[0] == '\0')
		return "INTERFACE";
	return config->port[number]->device.interface;
}

/* The same for the port that it forwards to. */
static const char *peer_interface_of(const struct control *control, unsigned number)
{
	const struct topology *topology = &plane_config(control->plane)->topology;

	/* a number that no port has, if need be */
	return interface_of(
		control, number < topology->n_ports ? topology->peer[number] : TOPOLOGY_MAX_PORTS);
}

/* Without line breaks and quotes. */
static const char *port_event_what(
	const struct control *control, const struct path_event *event, char text[WHAT_MAX])
{
	const char *own = interface_of(control, event->port);
	const char *other = peer_interface_of(control, event->port);

	if (event->kind == PATH_EVENT_SHARDING_FALLBACK)
		return "it does not spread packets over its queues as it said; for a while workers "
		       "hand them over to one another, which costs speed";
	if (event->kind == PATH_EVENT_SHARDING_RETRY)
		return "it is trusted again to spread packets over its queues as it said";
	if (event->kind == PATH_EVENT_CHECKSUM_OFFLOAD)
		return "frames with unfinished checksums come in, which other machines will drop; "
		       "switch checksum offload off where they are sent: ethtool -K INTERFACE tx "
		       "off";
	if (event->kind == PATH_EVENT_FRAMES_REFUSED)
		return "the kernel does not send some frames by it, and they are dropped (output); "
		       "perhaps the MTU is less at its other end";
	if (event->kind == PATH_EVENT_FRAMES_CUT)
		snprintf(text, WHAT_MAX,
			"frames come in that are longer than it has room for, and are dropped "
			"(cut); "
			"if they were joined: ethtool -K %s gro off lro off, and gso off where "
			"they "
			"are sent; if the MTU was raised, start the engine anew",
			own);
	else
		snprintf(text, WHAT_MAX,
			"frames that are longer than it, or its other end, takes are dropped "
			"(too_long); if they were joined: ethtool -K %s gro off lro off, and gso "
			"off "
			"where they are sent; else the same MTU everywhere: ip link set %s mtu N",
			other, own);
	return text;
}

static bool is_port_event(enum path_event_kind kind)
{
	return kind == PATH_EVENT_SHARDING_FALLBACK || kind == PATH_EVENT_SHARDING_RETRY ||
	       kind == PATH_EVENT_CHECKSUM_OFFLOAD || kind == PATH_EVENT_FRAMES_CUT ||
	       kind == PATH_EVENT_FRAMES_TOO_LONG || kind == PATH_EVENT_FRAMES_REFUSED;
}

static const char *port_name(const struct control *control, unsigned number)
{
	const struct plane_config *config = plane_config(control->plane);

	return number < config->topology.n_ports ? config->port[number]->name : "?";
}

/* {"time":...,"event":NAME, then what the format says, and its newline. Returns the length. */
__attribute__((format(printf, 5, 6))) static size_t write_line(char line[LINE_MAX_BYTES],
	const struct control *control, uint64_t time_us, const char *name, const char *format, ...)
{
	char time[EXPORT_JSON_TIME_MAX];
	size_t length;
	va_list args;

	length = (size_t)snprintf(line, LINE_MAX_BYTES, "{\"time\":\"%s\",\"event\":\"%s\"",
		export_json_time(time, plane_origin_us(control->plane) + time_us), name);
	va_start(args, format);
	length += (size_t)vsnprintf(line + length, LINE_MAX_BYTES - length, format, args);
	va_end(args);
	/* what is cut would not be JSON; names of ports and addresses are far too short for that */
	return length < LINE_MAX_BYTES ? length : 0;
}

static size_t write_flow(
	char line[LINE_MAX_BYTES], const struct control *control, const struct path_event *event)
{
	const struct flow_key *key = &event->key;
	unsigned from = event->initiator & 1;
	unsigned version = flow_key_version(key);
	char src[EXPORT_ADDRESS_MAX], dst[EXPORT_ADDRESS_MAX], ended[48] = "";

	src[export_address(src, version, key->addr[from])] = '\0';
	dst[export_address(dst, version, key->addr[!from])] = '\0';
	if (event->kind == PATH_EVENT_FLOW_END)
		snprintf(ended, sizeof(ended), ",\"end_reason\":\"%s\"",
			flow_end_name((enum flow_end)event->reason));
	return write_line(line, control, event->time_us,
		event_name((enum path_event_kind)event->kind),
		",\"proto\":%u,\"src\":\"%s\",\"sport\":%u,\"dst\":\"%s\",\"dport\":%u,"
		"\"wire\":%u,\"zone\":%u,\"worker\":%u%s}\n",
		key->proto, src, rte_be_to_cpu_16(key->port[from]), dst,
		rte_be_to_cpu_16(key->port[!from]), flow_key_wire(key), key->zone, event->worker,
		ended);
}

/* The addresses of a flow's packets that come from this end, and where the flow is. "" without a flow. */
static const char *flow_text(char text[FLOW_TEXT_MAX], const struct flow_key *key, unsigned from)
{
	unsigned version = flow_key_version(key);
	char src[EXPORT_ADDRESS_MAX], dst[EXPORT_ADDRESS_MAX];

	text[0] = '\0';
	if (version == 0)
		return text;
	src[export_address(src, version, key->addr[from])] = '\0';
	dst[export_address(dst, version, key->addr[!from])] = '\0';
	snprintf(text, FLOW_TEXT_MAX,
		",\"proto\":%u,\"src\":\"%s\",\"sport\":%u,\"dst\":\"%s\",\"dport\":%u,"
		"\"wire\":%u,\"zone\":%u",
		key->proto, src, rte_be_to_cpu_16(key->port[from]), dst,
		rte_be_to_cpu_16(key->port[!from]), flow_key_wire(key), key->zone);
	return text;
}

/* A flow or packet came to a rule that logs. */
static size_t write_log(
	char line[LINE_MAX_BYTES], const struct control *control, const struct path_event *event)
{
	const struct plane_config *config = plane_config(control->plane);
	char flow[FLOW_TEXT_MAX], port[PORT_TEXT_MAX] = "", lost[32] = "";

	if (event->port < config->topology.n_ports)
		snprintf(port, sizeof(port), ",\"port\":\"%s\"", port_name(control, event->port));
	if (event->lost != 0)
		snprintf(lost, sizeof(lost), ",\"lost\":%u", event->lost);
	return write_line(line, control, event->time_us, event_name(PATH_EVENT_LOG),
		",\"rule_port\":%u,\"rule\":%u,\"per\":\"%s\",\"verdict\":\"%s\"%s%s,\"worker\":%u%"
		"s}\n",
		event->rule_port, event->rule, event->by_packet ? "packet" : "flow",
		flow_verdict_name(event->verdict), port,
		flow_text(flow, &event->key, event->from & 1), event->worker, lost);
}

/* From the end that the rule is for. The driver's words are in `offload events`. */
static size_t write_offload(
	char line[LINE_MAX_BYTES], const struct control *control, const struct path_event *event)
{
	const struct flow_key *key = &event->key;
	unsigned from = event->from & 1, version = flow_key_version(key);
	enum offload_state before = (enum offload_state)(event->before % OFFLOAD_N_STATES);
	enum offload_state after = (enum offload_state)(event->after % OFFLOAD_N_STATES);
	char src[EXPORT_ADDRESS_MAX], dst[EXPORT_ADDRESS_MAX], proven[24] = "";

	src[export_address(src, version, key->addr[from])] = '\0';
	dst[export_address(dst, version, key->addr[!from])] = '\0';
	if (after >= OFFLOAD_ACCEPTED)
		snprintf(proven, sizeof(proven), ",\"proven\":%s",
			after == OFFLOAD_PROVEN ? "true" : "false");
	return write_line(line, control, event->time_us,
		event_name((enum path_event_kind)event->kind),
		",\"proto\":%u,\"src\":\"%s\",\"sport\":%u,\"dst\":\"%s\",\"dport\":%u,"
		"\"wire\":%u,\"zone\":%u,\"worker\":%u,\"port\":\"%s\",\"before\":\"%s\","
		"\"after\":\"%s\"%s,\"reason\":\"%s\"}\n",
		key->proto, src, rte_be_to_cpu_16(key->port[from]), dst,
		rte_be_to_cpu_16(key->port[!from]), flow_key_wire(key), key->zone, event->worker,
		port_name(control, event->port), offload_state_name(before),
		offload_state_name(after), proven, offload_reason_name((uint8_t)event->reason));
}

static size_t write_port(
	char line[LINE_MAX_BYTES], const struct control *control, const struct path_event *event)
{
	enum path_event_kind kind = (enum path_event_kind)event->kind;
	char what[WHAT_MAX];

	return write_line(line, control, event->time_us, event_name(kind),
		",\"port\":\"%s\",\"what\":\"%s\"}\n", port_name(control, event->port),
		port_event_what(control, event, what));
}

static const char *crowded_what(const struct path_event *event)
{
	if (event->reason == BALANCE_PACKETS)
		return "it has far more than its share of the packets";
	return "it has far more than its share of the new flows; where somebody aims them at it, "
	       "sharding: software spreads them by a secret";
}

static size_t write_crowded(
	char line[LINE_MAX_BYTES], const struct control *control, const struct path_event *event)
{
	return write_line(line, control, event->time_us,
		event_name((enum path_event_kind)event->kind), ",\"worker\":%u,\"what\":\"%s\"}\n",
		event->worker, crowded_what(event));
}

/* First of all says what is missing here. False as long as there is no room for that. */
static bool tell_lost(struct client *client, const struct control *control)
{
	struct follower *follower = &client->answer.follower;
	char line[LINE_MAX_BYTES];

	if (output_free(&client->output) >= OUTPUT_BYTES / 2)
		follower->behind = false;
	if (follower->behind)
		return false;
	if (follower->lost == 0)
		return true;
	size_t length = write_line(line, control, plane_now_us(control->plane), "lost",
		",\"events\":%llu}\n", (unsigned long long)follower->lost);
	char *room = output_room(&client->output, length);

	if (!room)
		return false;
	memcpy(room, line, length);
	output_add(&client->output, length);
	follower->lost = 0;
	return true;
}

void event_give(
	struct client *client, const struct control *control, const char *line, size_t length)
{
	struct follower *follower = &client->answer.follower;
	char *room = NULL;

	if (tell_lost(client, control))
		room = output_room(&client->output, length);
	if (!room) {
		follower->lost++;
		follower->behind = true;
		return;
	}
	memcpy(room, line, length);
	output_add(&client->output, length);
}

static bool follows(const struct client *client, bool flows)
{
	const struct follower *follower = &client->answer.follower;

	return client->fd >= 0 && client->answering && follower->on && !client->answer.ended &&
	       follower->drops.reasons == 0 && (follower->flows || !flows);
}

static bool anybody_follows(const struct control *control, bool flows)
{
	for (unsigned i = 0; i < CONTROL_MAX_CLIENTS; i++)
		if (follows(&control->clients[i], flows))
			return true;
	return false;
}

static void give_all(struct control *control, bool flows, const char *line, size_t length)
{
	for (unsigned i = 0; i < CONTROL_MAX_CLIENTS && length > 0; i++)
		if (follows(&control->clients[i], flows))
			event_give(&control->clients[i], control, line, length);
}

int events_wanted(struct control *control)
{
	bool wanted = anybody_follows(control, true);

	control->events_us = control->now_us;
	if (wanted == control->following)
		return 0;
	int ret = plane_follow(control->plane, wanted);

	if (ret == 0)
		control->following = wanted;
	return ret;
}

/* Whoever runs the engine hears of each port once. */
static void note_port(struct control *control, const struct path_event *event)
{
	enum path_event_kind kind = (enum path_event_kind)event->kind;
	char line[LINE_MAX_BYTES], what[WHAT_MAX];

	if (event->port >= PLANE_MAX_PORTS || control->noted[kind][event->port])
		return;
	control->noted[kind][event->port] = true;
	if (!control->note)
		return;
	snprintf(line, sizeof(line), "%s: %s", port_name(control, event->port),
		port_event_what(control, event, what));
	control->note(control->note_context, line);
}

/* Whoever runs the engine hears of a worker's new flows once: packets may be those of one busy flow. */
static void note_crowded(struct control *control, const struct path_event *event)
{
	char line[LINE_MAX_BYTES];

	if (event->reason != BALANCE_FLOWS || event->worker >= PLANE_MAX_WORKERS ||
		control->noted[PATH_EVENT_CROWDED][event->worker])
		return;
	control->noted[PATH_EVENT_CROWDED][event->worker] = true;
	if (!control->note)
		return;
	snprintf(line, sizeof(line), "worker %u: %s", event->worker, crowded_what(event));
	control->note(control->note_context, line);
}

static void take_event(struct control *control, const struct path_event *event)
{
	char line[LINE_MAX_BYTES];

	if (event->kind >= PATH_EVENT_N_KINDS)
		return;
	if (event->kind == PATH_EVENT_CROWDED) {
		note_crowded(control, event);
		give_all(control, false, line, write_crowded(line, control, event));
		return;
	}
	if (event->kind == PATH_EVENT_LOG) {
		give_all(control, false, line, write_log(line, control, event));
		return;
	}
	bool of_port = is_port_event((enum path_event_kind)event->kind);

	if (of_port)
		note_port(control, event);
	if (of_port)
		give_all(control, false, line, write_port(line, control, event));
	else if (control->following)
		give_all(control, true, line,
			event->kind == PATH_EVENT_OFFLOAD ? write_offload(line, control, event)
							  : write_flow(line, control, event));
}

/* The lcores' own losses are told where they happened: behind the events that they still had. */
static void count_lost(struct control *control, uint64_t lost)
{
	for (unsigned i = 0; i < CONTROL_MAX_CLIENTS; i++) {
		struct client *client = &control->clients[i];

		if (!follows(client, false))
			continue;
		if (follows(client, true))
			client->answer.follower.lost += lost;
		(void)tell_lost(client, control);
	}
}

/* At once, so that there is room for more; a connection that is broken is found at its next turn. */
static void send_all(struct control *control)
{
	for (unsigned i = 0; i < CONTROL_MAX_CLIENTS; i++) {
		struct client *client = &control->clients[i];

		if (follows(client, false))
			(void)output_send(&client->output, client->fd);
	}
}

static const char *health_what(enum health_state state)
{
	if (state == HEALTH_OPEN)
		return "its NIC is given no flows for now, and software carries on";
	if (state == HEALTH_TRYING)
		return "its NIC is tried with a few flows";
	return "its NIC keeps its word again, and is given flows as before";
}

/* To those who follow, and to whoever runs the engine. */
static void tell_health(
	struct control *control, unsigned port, enum health_state state, uint8_t why)
{
	char line[LINE_MAX_BYTES], sentence[OFFLOAD_SENTENCE_MAX];

	give_all(control, false, line,
		write_line(line, control, plane_now_us(control->plane), "breaker",
			",\"port\":\"%s\",\"breaker\":\"%s\",\"reason\":\"%s\",\"what\":\"%s\"}\n",
			port_name(control, port), health_state_name(state),
			offload_reason_name(why), health_what(state)));
	if (!control->note)
		return;
	offload_breaker_sentence(sentence, control->plane, port, why);
	snprintf(line, sizeof(line), "%s: %s%s%.300s%s", port_name(control, port),
		health_what(state), state == HEALTH_OPEN ? " (" : "",
		state == HEALTH_OPEN ? sentence : "", state == HEALTH_OPEN ? ")" : "");
	control->note(control->note_context, line);
}

/* What comes next on the way from the state that was told to the one that is. */
static enum health_state next_health(enum health_state told, enum health_state state)
{
	if (told == HEALTH_CLOSED)
		return HEALTH_OPEN;
	if (told == HEALTH_OPEN)
		return HEALTH_TRYING;
	return state == HEALTH_CLOSED ? HEALTH_CLOSED : HEALTH_OPEN;
}

/* Each change is told, also those that came and went between two looks: a try may end within milliseconds. */
static void look_at_health(struct control *control, unsigned port)
{
	struct installer *installer = plane_installer(control->plane, port);
	struct control_health *told = &control->health[port];

	if (!installer)
		return;
	const struct health *health = installer_health(installer);
	/* in this order: one that is counted is seen in the state */
	uint32_t opened = atomic_load_explicit(&health->opened, memory_order_acquire);
	enum health_state state = health_state(health), at = (enum health_state)told->state;
	uint8_t why = atomic_load_explicit(&health->why, memory_order_relaxed);

	while (at != state || (int32_t)(opened - told->opened) > 0) {
		at = next_health(at, state);
		if (at == HEALTH_OPEN && (int32_t)(opened - ++told->opened) > 0)
			told->opened = opened; /* of many the last */
		tell_health(control, port, at, why);
	}
	told->state = (uint8_t)at;
}

/* False when that were all, for now. */
static bool take_batch(struct control *control)
{
	struct path_event events[BATCH];
	uint64_t lost = 0;
	unsigned n = plane_events(control->plane, events, BATCH, &lost);

	for (unsigned i = 0; i < n; i++)
		take_event(control, &events[i]);
	count_lost(control, lost);
	send_all(control);
	return n == BATCH;
}

void events_poll(struct control *control)
{
	if (control->now_us < control->events_us)
		return;
	bool more = take_batch(control);

	for (unsigned i = 0; i < plane_config(control->plane)->topology.n_ports; i++)
		look_at_health(control, i);
	/* whether anybody asks or not: ports keep a few only, and the oldest */
	offload_events_keep(control);
	if (control->following != anybody_follows(control, true))
		(void)events_wanted(control);
	control->events_us = control->now_us;
	const bool soon = drops_poll(control) || anybody_follows(control, false);

	if (!more)
		control->events_us += soon ? CONTROL_EVENTS_US : CONTROL_QUIET_US;
}

void events_drain(struct control *control)
{
	bool more = anybody_follows(control, false);

	/* bounded, since lcores may still be making events */
	for (unsigned i = 0; i < LAST_BATCHES && more; i++)
		more = take_batch(control);
}

void control_event_link(struct control *control, const struct port *port)
{
	char line[LINE_MAX_BYTES];
	size_t length = write_line(line, control, plane_now_us(control->plane), "link",
		",\"port\":\"%s\",\"link\":\"%s\"}\n", port->name, port_link_name(port->link));

	give_all(control, false, line, length);
}

void control_event_mtu(struct control *control, const struct port *port)
{
	char line[LINE_MAX_BYTES], far[40] = "";

	if (port->far_mtu != 0)
		snprintf(far, sizeof(far), ",\"far_mtu\":%u", port->far_mtu);
	size_t length = write_line(line, control, plane_now_us(control->plane), "mtu",
		",\"port\":\"%s\",\"mtu\":%u%s}\n", port->name, port->mtu, far);

	give_all(control, false, line, length);
}

void control_event_renamed(struct control *control, const struct port *port)
{
	/* the kernel lets nearly every character stand in a name */
	char *now = export_json_string(port->interface);
	char *before = export_json_string(port->interface_before);
	char line[LINE_MAX_BYTES];

	if (now != NULL && before != NULL)
		give_all(control, false, line,
			write_line(line, control, plane_now_us(control->plane), "renamed",
				",\"port\":\"%s\",\"interface\":%s,\"before\":%s}\n", port->name,
				now, before));
	free(now);
	free(before);
}

void control_event_records_lost(struct control *control, uint64_t records)
{
	char line[LINE_MAX_BYTES];
	size_t length = write_line(line, control, plane_now_us(control->plane), "records_lost",
		",\"records\":%llu}\n", (unsigned long long)records);

	if (records > 0)
		give_all(control, false, line, length);
}

void event_policy(struct control *control, const char *name, const char *more)
{
	char line[LINE_MAX_BYTES];

	give_all(control, false, line,
		write_line(line, control, plane_now_us(control->plane), name, "%s}\n", more));
}

/* Of one flow it is an event of flows. */
void event_block_expired(struct control *control, const struct block_view *gone)
{
	const uint64_t now_us = plane_now_us(control->plane);
	char line[LINE_MAX_BYTES], block[BLOCK_JSON_MAX];

	if (!anybody_follows(control, gone->match.is_flow))
		return;
	block_json(block, gone, plane_origin_us(control->plane), now_us);
	/* one object goes on in the other */
	give_all(control, gone->match.is_flow, line,
		write_line(line, control, now_us, "block_expired", ",%s}\n", block + 1));
}

static int follow_begin(
	struct answer *answer, const struct request_value *values, struct error *error)
{
	answer->follower = (struct follower){
		.on = true,
		.flows = !values[FLOWS].given || values[FLOWS].flag,
	};
	answer->endless = true;
	int ret = events_wanted(answer->control);

	return ret < 0 ? control_silent(error, ret, "event follow") : 0;
}

static int follow_turn(struct answer *answer, struct error *error)
{
	(void)answer;
	(void)error;
	return ANSWER_WAIT;
}

static void follow_end(struct answer *answer)
{
	answer->follower.on = false;
	/* where lcores do not answer, the next look for events tries again */
	(void)events_wanted(answer->control);
}

const struct answer_verb event_follow = {
	.ask = "event follow",
	.keys = keys,
	.n_keys = N_KEYS,
	.begin = follow_begin,
	.turn = follow_turn,
	.end = follow_end,
};
