/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules that NICs do, too. Each rule that rules_nic_next() finds gets a place, which it has in the static rules of all
 * its ports. What does not fit any more leaves the NICs, and its place is another's when all have let it go.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/monotonic.h"
#include "plane/plane.h"
#include "plane/plane_private.h"

/* Places are looked at so often: whether NICs have lost their rules. */
#define AUDIT_US UINT64_C(1000000)
/* Packets that come to software meanwhile, and none that the NIC counts: so often, and the rule is made anew. */
#define AUDIT_PACKETS 16
#define AUDIT_STRIKES 2
#define RENEW_US UINT64_C(2000000)
#define MOST_RENEW_US UINT64_C(64000000)
/* NICs that do not tell their counters are not waited for any longer. */
#define TELL_US UINT64_C(1000000)

/* Pairs of rules that are compared, and places that are looked at, in one iteration of control: far below a millisecond. */
#define PAIRS_EACH 4096
#define PLACES_EACH 512

struct nic_place {
	uint64_t age; /* of the rule; 0: the place is free */
	uint32_t slot;
	uint32_t ports; /* a bit for each that it was given to */
	bool planned;	/* else it leaves */
	unsigned strikes;
	uint64_t seen, dropped; /* by software and by NICs, at the last look */
	uint64_t renew_us, wait_us;
	struct plane_rule_last *last; /* who waits for the last count; or NULL */
};

struct nic_rules {
	uint32_t max, begun; /* places, and of these such as were ever used */
	uint32_t ready;	     /* a bit for each port that takes rules */
	uint32_t spread;     /* places from here on may not have been given to all of these */
	bool compares;	     /* rules_nic_begin(): some port took rules */
	bool busy;	     /* something was put off to the next iteration */
	uint64_t audit_us;
	uint32_t audited, audit_end; /* where the audit is, and where it ends */
	uint64_t asked[PLANE_MAX_PORTS], asked_us;
	uint32_t *free, n_free;	      /* places that were used */
	uint32_t *leaving, n_leaving; /* those that NICs have not let go yet */
	struct nic_place place[];
};

uint32_t plane_nic_rules_max(const struct plane *plane)
{
	return plane->config.offload.drops ? RTE_MIN(plane->config.max_rules, STATIC_RULES_MAX) : 0;
}

int plane_nic_rules_make(struct plane *plane)
{
	const uint32_t max = plane_nic_rules_max(plane);
	struct nic_rules *nic;

	if (max == 0)
		return 0;
	nic = calloc(1, sizeof(*nic) + max * sizeof(nic->place[0]));
	if (nic == NULL)
		return -ENOMEM;
	plane->nic_rules = nic;
	nic->max = max;
	nic->free = calloc(max, sizeof(nic->free[0]));
	nic->leaving = calloc(max, sizeof(nic->leaving[0]));
	return nic->free == NULL || nic->leaving == NULL ? -ENOMEM : 0;
}

void plane_nic_rules_free(struct plane *plane)
{
	if (plane->nic_rules == NULL)
		return;
	free(plane->nic_rules->free);
	free(plane->nic_rules->leaving);
	free(plane->nic_rules);
	plane->nic_rules = NULL;
}

static struct static_rules *static_of(const struct plane *plane, unsigned port)
{
	return plane->installer[port] == NULL ? NULL
					      : installer_static_rules(plane->installer[port]);
}

/* Has it been tried, and takes it rules at all? */
static bool takes_rules(const struct installer *installer)
{
	return installer != NULL && installer_ready(installer) &&
	       strcmp(installer_abilities(installer)->back_end, "none") != 0;
}

static uint32_t ready_ports(const struct plane *plane)
{
	uint32_t ready = 0;

	for (unsigned i = 0; i < plane_n_ports(plane); i++)
		ready |= (uint32_t)takes_rules(plane->installer[i]) << i;
	return ready;
}

/* The ports whose packets a rule is for. */
static uint32_t ports_of_rule(const struct plane *plane, uint16_t in_port)
{
	if (in_port != RULES_NO_PORT)
		return UINT32_C(1) << in_port;
	return (uint32_t)((UINT64_C(1) << plane_n_ports(plane)) - 1);
}

static void give(struct plane *plane, uint32_t number, const struct classifier_rule *pattern)
{
	struct nic_place *place = &plane->nic_rules->place[number];
	const uint16_t in_port =
		pattern->mask.in_port != 0 ? pattern->value.in_port : RULES_NO_PORT;
	const uint32_t ports =
		ports_of_rule(plane, in_port) & plane->nic_rules->ready & ~place->ports;

	for (unsigned i = 0; i < plane_n_ports(plane); i++)
		if (ports >> i & 1)
			static_rules_want(static_of(plane, i), number, pattern);
	place->ports |= ports;
}

static void take_back(struct plane *plane, uint32_t number)
{
	const struct nic_place *place = &plane->nic_rules->place[number];

	for (unsigned i = 0; i < plane_n_ports(plane); i++)
		if (place->ports >> i & 1)
			static_rules_remove(static_of(plane, i), number);
}

/* What NICs say of a place, of all ports together. */
struct place_sum {
	bool is_free;  /* all have let it go */
	bool counts;   /* those that have the rule count */
	bool no_bytes; /* and some tells packets alone */
	uint64_t packets, bytes;
};

static struct place_sum sum_place(const struct plane *plane, uint32_t number)
{
	const struct nic_place *place = &plane->nic_rules->place[number];
	struct place_sum sum = {.is_free = true, .counts = true};

	for (unsigned i = 0; i < plane_n_ports(plane); i++) {
		struct static_view view;

		if (!(place->ports >> i & 1))
			continue;
		static_rules_get(static_of(plane, i), number, &view);
		sum.is_free &= view.state == STATIC_FREE;
		sum.counts &= view.state != STATIC_IN_NIC || view.counts;
		sum.no_bytes |= view.packets > 0 && !view.has_bytes;
		sum.packets += view.packets;
		sum.bytes += view.bytes;
	}
	return sum;
}

/* Is the rule that had the place there still? */
static bool still_has(
	const struct plane *plane, const struct nic_place *place, struct rules_view *view)
{
	return rules_get_slot(plane->rules, place->slot, view) == 0 && view->age == place->age;
}

/* What was counted in a place goes to its rule, or to who waits for it when the rule is gone. */
static void settle_place(struct plane *plane, uint32_t number, const struct place_sum *sum)
{
	struct nic_place *place = &plane->nic_rules->place[number];
	struct rules_view view;

	if (place->last != NULL)
		*place->last = (struct plane_rule_last){.done = true,
			.packets = sum->packets,
			.bytes = sum->bytes,
			.uncounted_bytes = sum->no_bytes};
	if (!still_has(plane, place, &view)) {
		rules_removed_add(plane->rules, sum->packets, sum->bytes);
		return;
	}
	rules_nic_add(plane->rules, place->slot, sum->packets, sum->bytes);
	rules_nic_tell(plane->rules, place->slot, 0, 0, true);
	rules_nic_set(plane->rules, place->slot, RULES_NONE);
}

/* Places that all NICs have let go are free. */
static void free_places(struct plane *plane)
{
	struct nic_rules *nic = plane->nic_rules;
	uint32_t left = 0;

	for (uint32_t i = 0; i < nic->n_leaving; i++) {
		const uint32_t number = nic->leaving[i];
		const struct place_sum sum = sum_place(plane, number);

		if (!sum.is_free) {
			nic->leaving[left++] = number;
			continue;
		}
		settle_place(plane, number, &sum);
		nic->place[number] = (struct nic_place){0};
		nic->free[nic->n_free++] = number;
	}
	nic->n_leaving = left;
}

/* What fits no longer leaves the NICs at once. */
static void leave_places(struct plane *plane)
{
	struct nic_rules *nic = plane->nic_rules;
	uint32_t number;

	while (rules_nic_left(plane->rules, &number)) {
		nic->place[number].planned = false;
		nic->leaving[nic->n_leaving++] = number;
		take_back(plane, number);
	}
}

/* What fits gets a place, as long as there is one. True when it has to go on with it. */
static bool take_places(struct plane *plane)
{
	struct nic_rules *nic = plane->nic_rules;
	struct rules_nic_rule rule;

	for (unsigned i = 0; i < PLACES_EACH; i++) {
		if (nic->n_free == 0 && nic->begun == nic->max)
			return false;
		if (!rules_nic_next(plane->rules, &rule))
			return false;
		const uint32_t number = nic->n_free > 0 ? nic->free[--nic->n_free] : nic->begun++;

		nic->place[number] =
			(struct nic_place){.age = rule.age, .slot = rule.slot, .planned = true};
		rules_nic_set(plane->rules, rule.slot, number);
		give(plane, number, &rule.rule);
	}
	return true;
}

/* A port that has become ready is given what has a place already. True when it has to go on with it. */
static bool spread_places(struct plane *plane)
{
	struct nic_rules *nic = plane->nic_rules;
	const uint32_t ready = ready_ports(plane);

	if (nic->ready != ready)
		nic->spread = 0;
	nic->ready = ready;
	for (unsigned i = 0; i < PLACES_EACH && nic->spread < nic->begun; i++, nic->spread++) {
		const struct nic_place *place = &nic->place[nic->spread];
		struct classifier_rule rule;

		if (!place->planned)
			continue;
		rules_nic_get(plane->rules, place->slot, &rule);
		give(plane, nic->spread, &rule);
	}
	return nic->spread < nic->begun;
}

/* Packets of a rule come to software, and the NIC that is to drop them counts none: it has lost the rule. */
static void audit_place(struct plane *plane, uint32_t number, uint64_t now_us)
{
	struct nic_place *place = &plane->nic_rules->place[number];
	struct rules_view view;

	if (!still_has(plane, place, &view))
		return;
	const struct place_sum sum = sum_place(plane, number);
	const uint64_t dropped = sum.packets;

	if (dropped != place->dropped)
		place->strikes = 0;
	else if (view.count.packets - place->seen >= AUDIT_PACKETS)
		place->strikes++;
	place->seen = view.count.packets;
	place->dropped = dropped;
	rules_nic_tell(plane->rules, place->slot, sum.packets, sum.bytes, sum.counts);
	if (place->strikes < AUDIT_STRIKES || now_us < place->renew_us)
		return;
	place->strikes = 0;
	place->wait_us = RTE_MIN(RTE_MAX(2 * place->wait_us, RENEW_US), MOST_RENEW_US);
	place->renew_us = now_us + place->wait_us;
	for (unsigned i = 0; i < plane_n_ports(plane); i++)
		if (place->ports >> i & 1)
			static_rules_renew(static_of(plane, i), number);
}

/*
 * Looks at some places, until all have been looked at that there were when it began: no place twice within a second. True
 * when it has to go on with it.
 */
static bool audit_places(struct plane *plane, uint64_t now_us)
{
	struct nic_rules *nic = plane->nic_rules;

	if (nic->audited >= nic->audit_end && now_us - nic->audit_us >= AUDIT_US) {
		nic->audit_us = now_us;
		nic->audited = 0;
		nic->audit_end = nic->begun;
	}
	for (unsigned i = 0; i < PLACES_EACH && nic->audited < nic->audit_end; i++, nic->audited++)
		if (nic->place[nic->audited].planned)
			audit_place(plane, nic->audited, now_us);
	return nic->audited < nic->audit_end;
}

void plane_nic_rules_tend(struct plane *plane)
{
	struct nic_rules *nic = plane->nic_rules;

	if (nic == NULL || plane->rules == NULL)
		return;
	if (!nic->compares) {
		if (ready_ports(plane) == 0 || rules_nic_begin(plane->rules, nic->max) < 0)
			return;
		nic->compares = true;
	}
	rules_tell_time(plane->rules, plane_now_us(plane));
	bool busy = rules_nic_step(plane->rules, PAIRS_EACH);

	leave_places(plane);
	free_places(plane);
	busy |= spread_places(plane);
	busy |= take_places(plane);
	busy |= audit_places(plane, monotonic_us());
	nic->busy = busy;
}

bool plane_nic_rules_busy(const struct plane *plane)
{
	return plane->nic_rules != NULL && plane->nic_rules->busy;
}

bool plane_nic_rules_leave(struct plane *plane)
{
	return plane->nic_rules != NULL && plane->nic_rules->n_leaving > 0;
}

uint32_t plane_nic_rules_leaving(const struct plane *plane, char *why, size_t size)
{
	const struct nic_rules *nic = plane->nic_rules;

	snprintf(why, size, "it was not asked yet");
	if (nic == NULL || nic->n_leaving == 0)
		return 0;
	for (unsigned i = 0; i < plane_n_ports(plane); i++) {
		const uint32_t number = nic->leaving[0];
		struct static_view view;

		if (!(nic->place[number].ports >> i & 1))
			continue;
		static_rules_get(static_of(plane, i), number, &view);
		if (view.state != STATIC_FREE) {
			snprintf(why, size, "port %u: %s", i,
				view.why.words[0] != '\0' ? view.why.words
							  : "its NIC has not answered yet");
			break;
		}
	}
	return nic->n_leaving;
}

void plane_rules_removed(const struct plane *plane, struct rules_removed *removed)
{
	const struct nic_rules *nic = plane->nic_rules;
	struct rules_view view;

	rules_removed(plane->rules, removed);
	for (uint32_t i = 0; nic != NULL && i < nic->n_leaving; i++) {
		const struct place_sum sum = sum_place(plane, nic->leaving[i]);

		if (still_has(plane, &nic->place[nic->leaving[i]], &view))
			continue;
		removed->nic_packets += sum.packets;
		removed->nic_bytes += sum.bytes;
	}
}

bool plane_nic_rules_watch(
	struct plane *plane, const struct rules_view *rule, struct plane_rule_last *last)
{
	*last = (struct plane_rule_last){0};
	if (plane->nic_rules == NULL || rule->place == RULES_NONE)
		return false;
	plane->nic_rules->place[rule->place].last = last;
	return true;
}

void plane_nic_rules_unwatch(
	struct plane *plane, const struct rules_view *rule, const struct plane_rule_last *last)
{
	if (plane->nic_rules->place[rule->place].last == last)
		plane->nic_rules->place[rule->place].last = NULL;
}

void plane_nic_rules_ask(struct plane *plane)
{
	if (plane->nic_rules == NULL)
		return;
	plane->nic_rules->asked_us = monotonic_us();
	for (unsigned i = 0; i < plane_n_ports(plane); i++)
		if (static_of(plane, i) != NULL)
			plane->nic_rules->asked[i] = static_rules_ask(static_of(plane, i));
}

/* Tells the rules what NICs have counted. */
static void tell_rules(struct plane *plane)
{
	const struct nic_rules *nic = plane->nic_rules;
	struct rules_view view;

	for (uint32_t i = 0; i < nic->begun; i++) {
		if (nic->place[i].age == 0 || !still_has(plane, &nic->place[i], &view))
			continue;
		const struct place_sum sum = sum_place(plane, i);

		rules_nic_tell(
			plane->rules, nic->place[i].slot, sum.packets, sum.bytes, sum.counts);
	}
}

bool plane_nic_rules_told(struct plane *plane)
{
	struct nic_rules *nic = plane->nic_rules;

	if (nic == NULL)
		return true;
	for (unsigned i = 0; i < plane_n_ports(plane); i++)
		if (takes_rules(plane->installer[i]) &&
			!static_rules_told(static_of(plane, i), nic->asked[i]) &&
			monotonic_us() - nic->asked_us <= TELL_US)
			return false;
	tell_rules(plane);
	return true;
}

void plane_nic_rules_gather(const struct plane *plane, struct plane_snapshot *snapshot)
{
	for (unsigned i = 0; plane->nic_rules != NULL && i < plane_n_ports(plane); i++) {
		struct path_counters *wire = &snapshot->wires[plane->config.topology.domain[i]];
		uint64_t packets, bytes;

		if (static_of(plane, i) == NULL)
			continue;
		static_rules_dropped(static_of(plane, i), &packets, &bytes);
		wire->nic_dropped += packets;
		wire->nic_dropped_bytes += bytes;
	}
}

/* Why a port has no rules at all; false: it takes them. */
static bool is_no_taker(const struct plane *plane, unsigned port, char *why, size_t size)
{
	const struct installer *installer = plane->installer[port];

	if (installer == NULL)
		snprintf(why, size, "port %u: offload is off", port);
	else if (!installer_ready(installer))
		snprintf(why, size, "port %u: it is being tried", port);
	else if (!takes_rules(installer))
		snprintf(why, size, "port %u: %s", port, installer_abilities(installer)->unable);
	else
		return false;
	return true;
}

/* Why a port's NIC does not have the rule; false: it has it, and `why` may have a word about it. */
static bool is_without(const struct plane *plane, unsigned port, const struct nic_place *place,
	const struct static_view *view, char *why, size_t size)
{
	if (is_no_taker(plane, port, why, size))
		return true;
	if (view->state == STATIC_ASKED && static_rules_want_room(static_of(plane, port)))
		snprintf(why, size, "port %u: its NIC has no room", port);
	else if (place == NULL || !(place->ports >> port & 1) || view->state == STATIC_ASKED ||
		 view->state == STATIC_INSTALLING)
		snprintf(why, size, "port %u: its NIC is being asked", port);
	else if (view->state == STATIC_REFUSED)
		snprintf(why, size, "port %u: its NIC refuses: %s%s(%s)", port, view->why.words,
			view->why.words[0] != '\0' ? " " : "", strerror(view->why.error));
	else if (view->state == STATIC_IN_NIC) {
		if (view->renewed > 0)
			snprintf(why, size,
				"port %u: packets came to software; made anew %u time%s", port,
				view->renewed, view->renewed == 1 ? "" : "s");
		return false;
	}
	return true;
}

/* Port by port; the first that has something to say says why. */
static void say_by_port(
	struct plane *plane, const struct rules_view *rule, struct plane_rule_where *where)
{
	struct nic_rules *nic = plane->nic_rules;
	const struct nic_place *place = rule->place == RULES_NONE ? NULL : &nic->place[rule->place];
	const uint32_t ports = ports_of_rule(plane, rule->in_port);
	uint32_t has = 0;

	for (unsigned i = 0; i < plane_n_ports(plane); i++) {
		struct static_view view = {.state = STATIC_FREE};
		char *why = where->why[0] == '\0' ? where->why : (char[1]){""};
		const size_t size = why == where->why ? sizeof(where->why) : 1;

		if (!(ports >> i & 1))
			continue;
		if (place != NULL && place->ports >> i & 1)
			static_rules_get(static_of(plane, i), rule->place, &view);
		where->packets += view.packets;
		where->bytes += view.bytes;
		if (view.state == STATIC_LEAVING) {
			has |= UINT32_C(1) << i;
			where->where = PLANE_RULE_BOTH;
			snprintf(why, size, "port %u: it is to leave the NIC%s%s", i,
				view.why.words[0] != '\0' ? ": " : "", view.why.words);
			continue;
		}
		if (is_without(plane, i, place, &view, why, size))
			continue;
		has |= UINT32_C(1) << i;
		where->uncounted |= !view.counts;
		where->uncounted_bytes |= view.packets > 0 && !view.has_bytes;
	}
	if (has != 0 && where->where != PLANE_RULE_BOTH)
		where->where = has == ports ? PLANE_RULE_NIC : PLANE_RULE_BOTH;
}

/* The reason that has nothing to do with ports, or "". */
static void say_of_rule(
	const struct plane *plane, const struct rules_view *rule, struct plane_rule_where *where)
{
	struct rules_view before;

	if (plane->nic_rules == NULL) {
		snprintf(where->why, sizeof(where->why), "%s",
			plane->config.offload.on ? "rules are not given to NICs (rules-in-nic)"
						 : "offload is off");
		return;
	}
	if (rule->nic == RULE_NIC_BEHIND &&
		rules_get_slot(plane->rules, rule->behind, &before) == 0)
		snprintf(where->why, sizeof(where->why),
			"rule #%u of port %u comes before it, matches some of its packets, and "
			"does "
			"not drop them",
			before.number, before.port);
	else if (rule->nic != RULE_NIC_FITS)
		snprintf(where->why, sizeof(where->why), "%s", rule_nic_words(rule->nic));
}

void plane_rule_where(
	struct plane *plane, const struct rules_view *rule, struct plane_rule_where *where)
{
	*where = (struct plane_rule_where){.where = PLANE_RULE_SOFTWARE,
		.packets = rule->nic_packets,
		.bytes = rule->nic_bytes};
	say_of_rule(plane, rule, where);
	if (plane->nic_rules != NULL && (rule->nic == RULE_NIC_FITS || rule->place != RULES_NONE))
		say_by_port(plane, rule, where);
}

void plane_rule_foresee(
	struct plane *plane, const struct rules_view *rule, struct plane_rule_where *where)
{
	const uint32_t ports = ports_of_rule(plane, rule->in_port);
	char why[sizeof(where->why)];
	uint32_t takers = 0;

	*where = (struct plane_rule_where){.where = PLANE_RULE_SOFTWARE};
	say_of_rule(plane, rule, where);
	if (plane->nic_rules == NULL || rule->nic != RULE_NIC_FITS)
		return;
	for (unsigned i = 0; i < plane_n_ports(plane); i++) {
		if (!(ports >> i & 1))
			continue;
		why[0] = '\0';
		if (!is_no_taker(plane, i, why, sizeof(why))) {
			if (!static_rules_want_room(static_of(plane, i)))
				takers |= UINT32_C(1) << i;
			else
				snprintf(why, sizeof(why), "port %u: its NIC has no room", i);
		}
		if (where->why[0] == '\0')
			memcpy(where->why, why, sizeof(why));
	}
	if (takers != 0)
		where->where = takers == ports ? PLANE_RULE_NIC : PLANE_RULE_BOTH;
}
