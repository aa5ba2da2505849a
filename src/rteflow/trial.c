/* SPDX-License-Identifier: BSD-3-Clause */
#include "rteflow/trial.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_common.h>
#include <rte_errno.h>

#include "base/monotonic.h"

#define TAGGED 1
#define AGAIN 4
/* A port that fails slowly is not asked again and again in one trial. */
#define FAIL_US 500000
#define MARK 0xfe

const uint32_t trial_marks[TRIAL_N_MARKS] = {0xffffffef, 0xffffef, 0xffef};

/* A trial that is under way. */
struct trier {
	struct trial *trial;
	const struct trial_calls *calls;
	bool patient; /* ends at an answer that may be another the next time */
	bool passing; /* there was such an answer, of the kind that is tried */
	uint64_t begin_us;
	struct provider_why last; /* what that answer was */
};

static void note_passing(struct trier *trier, int answer, const struct provider_why *why)
{
	if (answer != -EAGAIN && answer != -EIO && answer != -ENOSPC)
		return;
	trier->passing = true;
	trier->last = *why;
}

/* Whoever waits for the trial's end is not to wait for a slow NIC. */
static bool is_stopped(struct trier *trier)
{
	const atomic_bool *stop = trier->calls->stop;

	if (stop == NULL || !atomic_load_explicit(stop, memory_order_acquire))
		return false;
	trier->passing = true;
	trier->last = (struct provider_why){.error = ECANCELED, .words = "the engine ends"};
	return true;
}

/* No more is asked for now. */
static bool is_over(struct trier *trier)
{
	if (is_stopped(trier))
		return true;
	return trier->passing && (trier->patient || monotonic_us() - trier->begin_us >= FAIL_US);
}

static bool is_icmp(enum provider_kind kind)
{
	return kind == PROVIDER_IPV4_ICMP || kind == PROVIDER_IPV6_ICMP;
}

void trial_rule(struct offload_rule *rule, enum provider_kind kind, bool tagged, uint32_t mark)
{
	static const uint8_t ipv4[2][16] = {{192, 0, 2, 1}, {198, 51, 100, 1}};
	static const uint8_t ipv6[2][16] = {
		{0x20, 0x01, 0x0d, 0xb8, [15] = 1}, {0x20, 0x01, 0x0d, 0xb8, [14] = 1, [15] = 1}};
	const bool six = kind >= PROVIDER_IPV6_TCP;

	memset(rule, 0, sizeof(*rule));
	memcpy(rule->key.addr, six ? ipv6 : ipv4, sizeof(rule->key.addr));
	rule->key.proto = provider_kind_protocol(kind);
	rule->key.version_wire = FLOW_KEY_VERSION_WIRE(six ? 6 : 4, 0);
	rule->key.zone = tagged ? 1 : 0;
	rule->mark = mark;
	if (is_icmp(kind))
		return;
	/* discard, and one that nobody has */
	rule->key.port[0] = RTE_BE16(9);
	rule->key.port[1] = RTE_BE16(49151);
}

static bool make(struct trier *trier, unsigned hand, enum provider_kind kind,
	const struct shape *shape, uint32_t mark, struct provider_why *why)
{
	const struct trial_calls *calls = trier->calls;
	uint64_t begin_us = monotonic_us();
	struct offload_rule rule;
	int ret = -EAGAIN;

	/* `why` is what ended it */
	if (is_over(trier))
		return false;
	trial_rule(&rule, kind, shape->vlan, mark);
	for (unsigned i = 0; i < AGAIN && (ret == -EAGAIN || ret == -EIO); i++) {
		ret = calls->make(calls->context, hand, shape, &rule, why);
		if (monotonic_us() - begin_us >= FAIL_US)
			break;
	}
	note_passing(trier, ret, why);
	trier->trial->took |= ret == 0;
	return ret == 0;
}

static bool try_it(struct trier *trier, enum provider_kind kind, const struct shape *shape,
	uint32_t mark, struct provider_why *why)
{
	if (!make(trier, 0, kind, shape, mark, why))
		return false;
	trier->calls->unmake(trier->calls->context, 0);
	return true;
}

/* The first of these that is taken. */
static bool find(struct trier *trier, enum provider_kind kind, const struct shape *shapes,
	unsigned n, struct shape *found, struct provider_why *why)
{
	for (unsigned i = 0; i < n; i++) {
		*found = shapes[i];
		if (try_it(trier, kind, found, MARK, why))
			return true;
		if (is_over(trier))
			break;
	}
	return false;
}

/*
 * `from`: typed or tagged, as the caller wants it; these need the Ethernet item, and others try it first. With a counter,
 * if anybody reads it, and without; all fates.
 */
static bool find_marking(struct trier *trier, enum provider_kind kind, struct shape from,
	struct shape *found, struct provider_why *why)
{
	struct shape shapes[4 * SHAPE_N_FATES];
	unsigned n = 0;

	for (unsigned i = 0; i < RTE_DIM(shapes); i++) {
		from.eth = i < 2 * SHAPE_N_FATES;
		from.count = i / SHAPE_N_FATES % 2 == 0;
		from.fate = trier->trial->order[i % SHAPE_N_FATES];
		if ((from.eth || !(from.typed || from.vlan)) &&
			!(from.count && trier->trial->uncounted))
			shapes[n++] = from;
	}
	return find(trier, kind, shapes, n, found, why);
}

/* Its place in the line. */
static unsigned place_of(const struct trial *trial, unsigned fate)
{
	unsigned i = 0;

	while (trial->order[i] != fate)
		i++;
	return i;
}

/* The fates behind that of the shape are in line, too, where they are taken. */
static uint8_t find_fates(struct trier *trier, enum provider_kind kind, struct shape shape)
{
	uint8_t found = (uint8_t)(1u << shape.fate);

	for (unsigned i = place_of(trier->trial, shape.fate) + 1; i < SHAPE_N_FATES; i++) {
		struct provider_why why;

		shape.fate = trier->trial->order[i];
		if (try_it(trier, kind, &shape, MARK, &why))
			found |= (uint8_t)(1u << shape.fate);
	}
	return found;
}

/* The shape of packets without a tag, beside that with one where there is such. */
static bool find_untagged(struct trier *trier, enum provider_kind kind, struct trial_kind *result)
{
	const struct shape typed = {.typed = true}, any = {0};
	struct shape *shape = &result->shapes[0];
	struct provider_why *why = &result->why[0];

	if (!result->tagged)
		return find_marking(trier, kind, typed, shape, why) ||
		       find_marking(trier, kind, any, shape, why);
	*shape = result->shapes[TAGGED];
	shape->vlan = false;
	shape->typed = true;
	if (!make(trier, 0, kind, &result->shapes[TAGGED], MARK, why))
		return false;
	bool found = make(trier, 1, kind, shape, MARK, why);

	if (!found) {
		shape->typed = false;
		found = make(trier, 1, kind, shape, MARK, why);
	}
	if (found)
		trier->calls->unmake(trier->calls->context, 1);
	trier->calls->unmake(trier->calls->context, 0);
	return found;
}

static bool find_shapes(struct trier *trier, enum provider_kind kind)
{
	struct trial_kind *result = &trier->trial->kinds[kind];
	const struct shape tagged = {.vlan = true}, any = {0};

	if (trier->trial->zone_vlan) {
		result->tagged = find_marking(
			trier, kind, tagged, &result->shapes[TAGGED], &result->why[TAGGED]);
		if (is_over(trier))
			result->why[0] = result->why[TAGGED];
		else
			result->plain = find_untagged(trier, kind, result);
	} else {
		result->plain = find_marking(trier, kind, any, &result->shapes[0], &result->why[0]);
	}
	return result->plain || result->tagged;
}

static const struct shape *shape_of(const struct trial_kind *kind)
{
	return &kind->shapes[kind->tagged ? TAGGED : 0];
}

static void try_marks(struct trier *trier, enum provider_kind kind)
{
	struct trial *trial = trier->trial;
	const struct shape *shape = shape_of(&trial->kinds[kind]);

	for (unsigned i = 0; i < TRIAL_N_MARKS && trial->mark_max == 0; i++)
		if (try_it(trier, kind, shape, trial_marks[i], &trial->mark_why))
			trial->mark_max = trial_marks[i];
}

static void try_counter(struct trier *trier, enum provider_kind kind)
{
	const struct shape *shape = shape_of(&trier->trial->kinds[kind]);
	struct provider_why why;

	if (!shape->count || !make(trier, 0, kind, shape, MARK, &why))
		return;
	int ret = trier->calls->counts(trier->calls->context, 0, &why);

	trier->trial->counts = ret == 0;
	note_passing(trier, ret, &why);
	trier->calls->unmake(trier->calls->context, 0);
}

/*
 * Starts from the shape by which packets of the kind are marked: the port is known to take its headers. Counters that
 * outlive their rule come first, and ports by their newer name.
 */
static void find_deed(struct trier *trier, enum provider_kind kind, unsigned tagged,
	enum provider_deed deed, struct provider_why *why)
{
	struct trial_kind *result = &trier->trial->kinds[kind];
	struct shape shapes[4];

	for (unsigned i = 0; i < RTE_DIM(shapes); i++) {
		shapes[i] = result->shapes[tagged];
		shapes[i].fate = SHAPE_ALONE;
		shapes[i].deed = (uint8_t)deed;
		shapes[i].count = true;
		/* else a connection would begin or end unseen */
		shapes[i].no_flags = provider_kind_protocol(kind) == IPPROTO_TCP;
		shapes[i].indirect = i < 2;
		shapes[i].port_id = i % 2 != 0;
	}
	result->does[deed][tagged] =
		find(trier, kind, shapes, RTE_DIM(shapes), &result->full[deed][tagged], why);
}

static void try_full(struct trier *trier, enum provider_kind kind)
{
	struct trial_kind *result = &trier->trial->kinds[kind];
	const bool taken[2] = {result->plain, result->tagged};

	/* ICMP has errors in it, which software has to see; they look like all others to a rule */
	if (!trier->trial->full || is_icmp(kind))
		return;
	for (unsigned tagged = 0; tagged < RTE_DIM(taken); tagged++) {
		struct provider_why why = {0};

		if (!taken[tagged])
			continue;
		find_deed(trier, kind, tagged, PROVIDER_FORWARDS, &result->full_why);
		find_deed(trier, kind, tagged, PROVIDER_DROPS, &why);
	}
}

/* All that is to be known of a kind. */
static void try_all_of(struct trier *trier, enum provider_kind kind)
{
	struct trial *trial = trier->trial;
	struct trial_kind *result = &trial->kinds[kind];

	if (!find_shapes(trier, kind))
		return;
	if (trial->mark_max == 0)
		try_marks(trier, kind);
	if (!trial->counts)
		try_counter(trier, kind);

	struct shape shape = *shape_of(result);

	result->fate = result->first = shape.fate;
	result->fates = find_fates(trier, kind, shape);
	try_full(trier, kind);
}

static bool is_taken(const struct trial *trial, const struct trial_kind *kind)
{
	return !kind->later && trial->mark_max != 0 && (kind->plain || kind->tagged);
}

/* What stood in the way, wherever that was. */
static void put_off(struct trial_kind *kind, const struct provider_why *why)
{
	*kind = (struct trial_kind){.later = true, .why = {*why, *why}};
}

/*
 * A kind that was refused: who takes no rule of another kind either, which was taken before, has no room, and its
 * driver may say whatever it likes.
 */
static void check_room(struct trier *trier, enum provider_kind refused)
{
	struct trial *trial = trier->trial;
	struct provider_why why = {0};

	for (unsigned kind = 0; kind < PROVIDER_N_KINDS; kind++) {
		const struct trial_kind *known = &trial->kinds[kind];

		if (kind == refused || !is_taken(trial, known))
			continue;
		if (try_it(trier, (enum provider_kind)kind, shape_of(known), MARK, &why))
			return;
		/* else it says already what that was */
		if (!trier->passing) {
			trier->passing = true;
			trier->last = why;
		}
		return;
	}
}

/* Settles the kind, or puts it off; false: the whole trial is over for now. */
static bool try_kind(struct trier *trier, enum provider_kind kind)
{
	struct trial *trial = trier->trial;
	struct trial_kind *result = &trial->kinds[kind];

	trier->passing = false;
	trier->begin_us = monotonic_us();
	memset(result, 0, sizeof(*result));
	try_all_of(trier, kind);
	if (!trier->passing && !is_taken(trial, result))
		check_room(trier, kind);
	/* less than what it can, or nothing */
	if (trier->passing && (trier->patient || !is_taken(trial, result)))
		put_off(result, &trier->last);
	return !is_over(trier);
}

bool trial_again(struct trial *trial, unsigned number, const struct trial_calls *calls)
{
	struct trier trier = {.trial = trial, .calls = calls, .patient = trial_is_patient(number)};
	/* where one that fails slowly ends it, others come first the next time */
	unsigned first = trier.patient ? 0 : number / TRIAL_PATIENCE;
	bool any = false, over = false;

	trial->took = false;
	for (unsigned i = 0; i < PROVIDER_N_KINDS; i++) {
		unsigned kind = (first + i) % PROVIDER_N_KINDS;

		if (trial->kinds[kind].later && over)
			put_off(&trial->kinds[kind], &trier.last);
		else if (trial->kinds[kind].later)
			over = !try_kind(&trier, (enum provider_kind)kind);
		any |= is_taken(trial, &trial->kinds[kind]);
	}
	return any;
}

bool trial_run(struct trial *trial, const struct shape_port *port,
	const struct provider_config *config, const struct trial_calls *calls)
{
	bool nobodys = port->n_queues > 1 && port->worker_queue == NULL;

	memset(trial, 0, sizeof(*trial));
	trial->zone_vlan = config->zone_vlan;
	trial->full = config->full;
	trial->uncounted = config->uncounted;
	trial->order[0] = SHAPE_ALONE;
	trial->order[1] = SHAPE_PASSTHRU;
	trial->order[2] = nobodys ? SHAPE_RSS : SHAPE_QUEUE;
	trial->order[3] = nobodys ? SHAPE_QUEUE : SHAPE_RSS;
	for (unsigned kind = 0; kind < PROVIDER_N_KINDS; kind++)
		trial->kinds[kind].later = true;
	return trial_again(trial, config->trials, calls);
}

const struct shape *trial_shape(
	struct trial *trial, const struct offload_rule *rule, struct provider_why *why)
{
	struct trial_kind *kind = &trial->kinds[provider_kind(&rule->key)];
	const bool tagged = trial->zone_vlan && rule->key.zone != 0;

	if (rule->deed == PROVIDER_MARKS && (tagged ? kind->tagged : kind->plain)) {
		kind->shapes[tagged].fate = kind->fate;
		return &kind->shapes[tagged];
	}
	if (rule->deed != PROVIDER_MARKS && rule->deed < PROVIDER_N_DEEDS &&
		kind->does[rule->deed][tagged])
		return &kind->full[rule->deed][tagged];
	*why = rule->deed == PROVIDER_MARKS ? kind->why[tagged] : kind->full_why;
	return NULL;
}

bool trial_next(struct trial *trial, enum provider_kind kind)
{
	struct trial_kind *result = &trial->kinds[kind];

	for (unsigned i = place_of(trial, result->fate) + 1; i < SHAPE_N_FATES; i++)
		if (result->fates & 1u << trial->order[i]) {
			result->fate = trial->order[i];
			return true;
		}
	result->fate = result->first;
	return false;
}

static void tell_unable(const struct provider_why *why, struct provider_abilities *abilities)
{
	const char *words = why->words[0] != '\0' ? why->words : strerror(why->error);

	/* what DPDK says for drivers that know no rules; a full table's ENOSYS comes with its driver's words */
	abilities->perhaps = why->error != ENOSYS || strcmp(words, rte_strerror(ENOSYS)) != 0;

	snprintf(abilities->unable, sizeof(abilities->unable),
		"%.40s takes no rules that mark packets: %.80s", abilities->nic, words);
}

static void tell_full(const struct trial *trial, struct provider_abilities *abilities)
{
	abilities->exact = trial->full;
	for (unsigned i = 0; i < PROVIDER_N_KINDS; i++) {
		const struct trial_kind *kind = &trial->kinds[i];
		unsigned tagged = kind->does[PROVIDER_FORWARDS][TAGGED];

		for (unsigned deed = PROVIDER_FORWARDS; deed < PROVIDER_N_DEEDS; deed++)
			abilities->full[deed][i] =
				abilities->kind[i] && (kind->does[deed][0] || kind->does[deed][1]);
		abilities->full_shape[i][0] = '\0';
		abilities->full_refused[i] = kind->full_why;
		if (!abilities->full[PROVIDER_FORWARDS][i])
			continue;
		abilities->full_refused[i] = (struct provider_why){0};
		abilities->exact &= kind->full[PROVIDER_FORWARDS][tagged].indirect;
		shape_text(abilities->full_shape[i], sizeof(abilities->full_shape[i]),
			&kind->full[PROVIDER_FORWARDS][tagged], i);
	}
}

void trial_tell(const struct trial *trial, struct provider_abilities *abilities)
{
	bool any = false;

	abilities->unable[0] = '\0';
	abilities->perhaps = false;
	abilities->dead = !trial->took;
	abilities->mark_max = trial->mark_max;
	abilities->mark_bits = trial->mark_max > 0xffffff ? 32 : trial->mark_max > 0xffff ? 24 : 16;
	if (trial->mark_max == 0)
		abilities->mark_bits = 0;
	abilities->counts = trial->counts;
	for (unsigned i = 0; i < PROVIDER_N_KINDS; i++) {
		const struct trial_kind *kind = &trial->kinds[i];

		abilities->kind[i] = is_taken(trial, kind);
		abilities->trying[i] = kind->later;
		if (abilities->kind[i])
			shape_text(abilities->shape[i], sizeof(abilities->shape[i]), shape_of(kind),
				i);
		else
			abilities->refused[i] = kind->plain || kind->tagged
							? trial->mark_why
							: kind->why[trial->zone_vlan];
		any = any || abilities->kind[i];
		abilities->dead &= kind->later &&
				   (kind->why[0].error == EIO || kind->why[0].error == ETIMEDOUT);
	}
	tell_full(trial, abilities);
	if (any)
		return;
	/* what was found out before it ended is found out again */
	abilities->mark_max = abilities->mark_bits = 0;
	abilities->counts = false;
	tell_unable(&abilities->refused[PROVIDER_IPV4_UDP], abilities);
}
