/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * offload events: the changes that are still known, merged by time; then, if wanted, those that come.
 *
 * Changes of flows lie in the workers' rings, where everybody may read them. Those of ports are told once,
 * so control keeps them for whoever asks later; some of them lie in rings as well, and are told once here.
 */
#include "control/offload_events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mapping.h"
#include "control/control.h"
#include "control/flow_filter.h"
#include "control/offload_words.h"
#include "control/verbs.h"
#include "export/address.h"
#include "export/json.h"

#define ASK "offload events"
#define BATCH 256
#define FEW 64
/* How often a follower gets what is new. */
#define FOLLOW_US UINT64_C(100000)
#define LINE_MAX_BYTES 2048
/* Read without telling, whether wanted or not: what comes meanwhile is for later. */
#define READ_MOST (CHANGE_RING * PLANE_MAX_WORKERS + CONTROL_PORT_CHANGES)

enum {
	FLOWS = FLOW_FILTER_N_FIXED,
	FOLLOW,
	N_KEYS,
};

static const struct request_key keys[N_KEYS] = {
	FLOW_FILTER_FIXED_KEYS,
	[FLOWS] = {.name = "flows", .type = REQUEST_FLAG},
	[FOLLOW] = {.name = "follow", .type = REQUEST_FLAG},
};

struct entry {
	struct offload_change change;
	uint64_t order; /* among those of the same time */
};

/*
 * Room for all changes that there are, lent to whoever asks for as long as the telling takes. A borrower whose client
 * has taken nothing for a while loses it when another one wants it.
 */
struct events_room {
	unsigned n; /* entries in each */
	struct lent {
		struct events *to; /* NULL: to nobody */
		uint64_t moved_us;
		struct entry *entries;
	} lent[CONTROL_MAX_TELLINGS];
};

/* What follows is told bit by bit. */
#define FEW_ENTRIES (2 * BATCH + CONTROL_PORT_CHANGES)
/* How often it is looked whether there is room, how long it is waited for, and how long it is kept without use. */
#define ROOM_US UINT64_C(20000)
#define ROOM_PATIENCE_US UINT64_C(5000000)
#define ROOM_UNUSED_US UINT64_C(1000000)

struct events {
	const struct topology *topology;
	struct flow_filter filter;
	bool flows, ports; /* whose changes are told */
	bool follow;
	bool telling;
	struct plane_changes where;
	uint64_t port_changes; /* of control's own, taken so far */
	struct lent *lent;     /* of the first telling; NULL: not yet, or it is over */
	bool robbed;	       /* it was wanted by others */
	bool told;	       /* the first telling is over */
	uint64_t asked_us;     /* for room; 0: not yet */
	struct entry *few;     /* for what follows */
	struct entry *entries; /* one of both */
	unsigned n, room, at;
	unsigned read; /* since the last lines, wanted or not */
};

static bool is_wanted(const struct events *events, const struct offload_change *change)
{
	const int wire = events->filter.wire;

	if (change->kind == CHANGE_FLOW)
		return events->flows && flow_filter_key(&events->filter, &change->key);
	return events->ports &&
	       (wire == FLOW_FILTER_ANY || wire == events->topology->domain[change->port]);
}

static int add(struct events *events, const struct offload_change *change)
{
	if (!is_wanted(events, change))
		return 0;
	if (events->n == events->room)
		return -ENOBUFS;
	events->entries[events->n] = (struct entry){*change, events->n};
	events->n++;
	return 0;
}

static bool same(const struct offload_change *a, const struct offload_change *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* Keeps a change of a port for those who ask later. */
static void keep(struct control_changes *kept, const struct offload_change *change)
{
	uint64_t first = kept->n > CONTROL_PORT_CHANGES ? kept->n - CONTROL_PORT_CHANGES : 0;

	for (uint64_t i = first; i < kept->n; i++)
		if (same(&kept->change[i % CONTROL_PORT_CHANGES], change))
			return;
	kept->change[kept->n++ % CONTROL_PORT_CHANGES] = *change;
}

/* What whoever runs the engine is to know, beside the breaker's changes (control/event.c). */
static void note(struct control *control, const struct offload_change *change)
{
	char line[LINE_MAX_BYTES], sentence[OFFLOAD_SENTENCE_MAX];
	unsigned kind = change->kind;

	if (!control->note || (kind != CHANGE_UNTRIED && kind != CHANGE_TRIED &&
				      kind != CHANGE_RESET && kind != CHANGE_FLUSHED))
		return;
	offload_change_sentence(sentence, control->plane, change);
	snprintf(line, sizeof(line), "%s: %s", offload_port_name(control->plane, change->port),
		sentence);
	control->note(control->note_context, line);
}

/* A port tells its changes once, to whoever asks first. */
static void keep_port(struct control *control, const struct offload_change *change)
{
	keep(&control->port_changes, change);
	note(control, change);
}

void offload_events_keep(struct control *control)
{
	struct offload_change changes[BATCH];
	unsigned n = plane_port_changes(control->plane, changes, BATCH);

	for (unsigned i = 0; i < n; i++)
		keep_port(control, &changes[i]);
}

static int take_kept(struct events *events, const struct control_changes *kept)
{
	int ret = 0;

	if (kept->n > events->port_changes + CONTROL_PORT_CHANGES)
		events->port_changes = kept->n - CONTROL_PORT_CHANGES;
	for (; ret == 0 && events->port_changes < kept->n; events->port_changes++)
		ret = add(events, &kept->change[events->port_changes % CONTROL_PORT_CHANGES]);
	return ret;
}

static int by_time(const void *a_, const void *b_)
{
	const struct entry *a = a_, *b = b_;

	if (a->change.time_us != b->change.time_us)
		return a->change.time_us < b->change.time_us ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

/* One batch; true when there are no more for now. */
static int read_batch(struct answer *answer, struct events *events, bool *all)
{
	struct offload_change changes[BATCH];
	struct control_changes *kept = &answer->control->port_changes;
	unsigned n = 0;
	int ret = plane_changes(answer->plane, &events->where, changes, BATCH, &n);

	/* ports' are told once, also to who cannot be told of flows now; those of flows are not read again */
	for (unsigned i = 0; i < n; i++) {
		if (changes[i].kind != CHANGE_FLOW)
			keep_port(answer->control, &changes[i]);
		else if (ret == 0 || ret == -ETIMEDOUT)
			ret = add(events, &changes[i]) < 0 ? -ENOBUFS : ret;
	}
	/* then no worker had as many as it tells at a time, and all were asked */
	events->read += n;
	*all = n < FEW || events->n + BATCH + CONTROL_PORT_CHANGES > events->room ||
	       events->read >= READ_MOST;
	if (ret == 0 && *all)
		ret = take_kept(events, kept);
	return ret;
}

static void describe_key(json_t *line, const struct offload_change *change)
{
	const struct flow_key *key = &change->key;
	unsigned version = flow_key_version(key), from = change->from;
	char address[EXPORT_ADDRESS_MAX];

	answer_number(line, "proto", key->proto);
	address[export_address(address, version, key->addr[from])] = '\0';
	json_object_set_new(line, "src", json_string(address));
	answer_number(line, "sport", rte_be_to_cpu_16(key->port[from]));
	address[export_address(address, version, key->addr[!from])] = '\0';
	json_object_set_new(line, "dst", json_string(address));
	answer_number(line, "dport", rte_be_to_cpu_16(key->port[!from]));
	answer_number(line, "zone", key->zone);
}

static json_t *events_describe(const struct plane *plane, const struct offload_change *change)
{
	char time[EXPORT_JSON_TIME_MAX];
	json_t *line = json_object();

	export_json_time(time, plane_origin_us(plane) + change->time_us);
	json_object_set_new(line, "time", json_string(time));
	json_object_set_new(
		line, "event", json_string(change_kind_name((enum change_kind)change->kind)));
	json_object_set_new(line, "port", answer_string(offload_port_name(plane, change->port)));
	answer_number(line, "wire", plane_config(plane)->topology.domain[change->port]);
	if (change->kind == CHANGE_FLOW)
		describe_key(line, change);
	offload_describe_change(line, plane, change);
	return line;
}

/* The line of a change: 1, 0 as long as there is no room for it, or -ENOMEM. */
static int events_write_line(struct answer *answer, const struct offload_change *change)
{
	char *room = output_room(answer->output, LINE_MAX_BYTES);

	if (!room)
		return 0;
	json_t *line = events_describe(answer->plane, change);
	size_t length = json_dumpb(line, room, LINE_MAX_BYTES - 1, ANSWER_JSON);

	json_decref(line);
	if (length == 0 || length >= LINE_MAX_BYTES)
		return -ENOMEM;
	room[length] = '\n';
	output_add(answer->output, length + 1);
	return 1;
}

struct events_room *events_room_create(const struct plane *plane)
{
	const struct plane_config *config = plane_config(plane);
	struct events_room *room = calloc(1, sizeof(*room));

	if (!room)
		return NULL;
	room->n = BATCH + CONTROL_PORT_CHANGES + CHANGE_RING * config->n_workers;
	for (unsigned i = 0; i < CONTROL_MAX_TELLINGS; i++) {
		room->lent[i].entries = mapping_create(
			room->n * sizeof(struct entry), MAPPING_SMALL | MAPPING_POPULATE);
		if (!room->lent[i].entries) {
			events_room_destroy(room);
			return NULL;
		}
	}
	return room;
}

void events_room_destroy(struct events_room *room)
{
	for (unsigned i = 0; room && i < CONTROL_MAX_TELLINGS; i++)
		mapping_destroy(room->lent[i].entries, room->n * sizeof(struct entry));
	free(room);
}

static void give_back(struct events *events)
{
	if (events->lent)
		events->lent->to = NULL;
	events->lent = NULL;
	events->entries = NULL;
}

/* One that is free, or has not been of use for longest: NULL where all are. */
static struct lent *find_room(const struct control *control)
{
	struct events_room *room = control->events_room;
	struct lent *oldest = &room->lent[0];

	for (unsigned i = 0; i < CONTROL_MAX_TELLINGS; i++) {
		if (!room->lent[i].to)
			return &room->lent[i];
		if (room->lent[i].moved_us < oldest->moved_us)
			oldest = &room->lent[i];
	}
	if (control->now_us - oldest->moved_us < ROOM_UNUSED_US)
		return NULL;
	oldest->to->robbed = true;
	give_back(oldest->to);
	return oldest;
}

/* enum answer_turn: ANSWER_GO when there is room now. */
static int borrow(struct answer *answer, struct events *events, struct error *error)
{
	struct control *control = answer->control;
	struct lent *lent = find_room(control);

	if (events->asked_us == 0)
		events->asked_us = control->now_us;
	if (lent) {
		lent->to = events;
		lent->moved_us = control->now_us;
		events->lent = lent;
		events->entries = lent->entries;
		events->room = control->events_room->n;
		return ANSWER_GO;
	}
	if (control->now_us - events->asked_us >= ROOM_PATIENCE_US)
		return error_set(error, -EBUSY,
			ASK ": %d clients are being told already; try again later",
			CONTROL_MAX_TELLINGS);
	answer->wake_us = control->now_us + ROOM_US;
	return ANSWER_WAIT;
}

static int tell(struct answer *answer, struct events *events, struct error *error)
{
	for (; events->at < events->n; events->at++) {
		const struct entry *entry = &events->entries[events->at];
		bool twice = events->at > 0 && entry->change.kind != CHANGE_FLOW &&
			     same(&entry->change, &entry[-1].change);
		int ret = twice ? 1 : events_write_line(answer, &entry->change);

		if (ret < 0)
			return control_silent(error, ret, ASK);
		if (ret == 0)
			return ANSWER_GO;
		if (events->lent)
			events->lent->moved_us = answer->control->now_us;
	}
	give_back(events);
	events->told = true;
	if (!events->follow)
		return ANSWER_END;
	events->entries = events->few;
	events->room = FEW_ENTRIES;
	events->n = events->at = events->read = 0;
	events->telling = false;
	answer->wake_us = answer->control->now_us + FOLLOW_US;
	return ANSWER_WAIT;
}

static int events_turn(struct answer *answer, struct error *error)
{
	struct events *events = answer->state;
	bool all = false;

	answer->wake_us = UINT64_MAX;
	if (events->robbed)
		return error_set(
			error, -ENOBUFS, ASK ": others wait, and this client reads too slowly");
	if (!events->entries) {
		int ret = borrow(answer, events, error);

		if (ret != ANSWER_GO)
			return ret;
	}
	if (!events->telling) {
		int ret = read_batch(answer, events, &all);

		if (ret < 0)
			return control_silent(error, ret, ASK);
		if (!all)
			return ANSWER_GO;
		if (events->n > 0)
			qsort(events->entries, events->n, sizeof(events->entries[0]), by_time);
		events->telling = true;
	}
	return tell(answer, events, error);
}

/* What is wanted of flows leaves out what is none. */
static int choose(struct events *events, const struct request_value *values,
	const struct plane_config *config, struct error *error)
{
	static const enum flow_filter_key of_flows[] = {
		FLOW_FILTER_ADDRESS, FLOW_FILTER_PORT, FLOW_FILTER_PROTO, FLOW_FILTER_ZONE};

	events->follow = values[FOLLOW].flag;
	events->flows = !values[FLOWS].given || values[FLOWS].flag;
	events->ports = true;
	for (unsigned i = 0; i < RTE_DIM(of_flows); i++) {
		if (!values[of_flows[i]].given)
			continue;
		if (!events->flows)
			return error_set(error, -EINVAL,
				ASK ": %s is of flows, which are to be left out",
				keys[of_flows[i]].name);
		events->ports = false;
	}
	return flow_filter_init_fixed(&events->filter, ASK, values, config, error);
}

static int events_begin(
	struct answer *answer, const struct request_value *values, struct error *error)
{
	struct events *events = calloc(1, sizeof(*events));

	if (!events)
		return error_set(error, -ENOMEM, ASK ": there is not enough memory");
	answer->state = events;
	events->topology = &plane_config(answer->plane)->topology;
	int ret = choose(events, values, plane_config(answer->plane), error);

	if (ret < 0)
		return ret;
	events->few = events->follow ? malloc(FEW_ENTRIES * sizeof(struct entry)) : NULL;
	if (events->follow && !events->few)
		return error_set(error, -ENOMEM, ASK ": there is not enough memory");
	/* as one that follows events it ends well when the engine does, and stays when nothing happens */
	answer->endless = events->follow;
	return 0;
}

static void events_end(struct answer *answer)
{
	struct events *events = answer->state;

	if (!events)
		return;
	give_back(events);
	free(events->few);
	free(events);
}

const struct answer_verb offload_events = {
	.ask = ASK,
	.keys = keys,
	.n_keys = N_KEYS,
	.begin = events_begin,
	.turn = events_turn,
	.end = events_end,
};
