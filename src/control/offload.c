/* SPDX-License-Identifier: BSD-3-Clause */

/* offload show: what each port's NIC holds, how it answers, and how far it is believed. */

#include "control/control.h"
#include "control/offload_words.h"
#include "control/span.h"
#include "control/verbs.h"
#include "export/json.h"
#include "offload/known.h"

#define ASK "offload show"
/* Two asks within this have the same rates. */
#define RATES_US UINT64_C(1000000)

static uint64_t load(const _Atomic uint64_t *number)
{
	return atomic_load_explicit(number, memory_order_relaxed);
}

static json_t *offload_time_of(const struct plane *plane, uint64_t us)
{
	char text[EXPORT_JSON_TIME_MAX];

	return json_string(export_json_time(text, plane_origin_us(plane) + us));
}

/* Installs and removes a second since the last ask, or the one before where that is too near. */
static void describe_rates(json_t *line, struct control_rates *rates, uint64_t now_us,
	const struct installer_counters *counters)
{
	const uint64_t done[2] = {
		load(&counters->done[INSTALLER_INSERT]),
		load(&counters->done[INSTALLER_REMOVE]),
	};

	if (now_us - rates->last.us >= RATES_US) {
		rates->before = rates->last;
		rates->last = (struct control_rate){now_us, {done[0], done[1]}};
	}
	uint64_t us = span_since(now_us, rates->before.us);

	if (us == 0)
		return;
	json_object_set_new(line, "inserts_per_s",
		answer_tenths(1e6 * (double)(done[0] - rates->before.done[0]) / (double)us));
	json_object_set_new(line, "removes_per_s",
		answer_tenths(1e6 * (double)(done[1] - rates->before.done[1]) / (double)us));
	answer_number(line, "rates_over_us", us);
}

static void describe_calls(json_t *line, const struct installer_counters *counters, uint64_t now_us)
{
	static const char *const names[INSTALLER_N_OPS][2] = {
		[INSTALLER_INSERT] = {"inserts", "inserts_failed"},
		[INSTALLER_REMOVE] = {"removes", "removes_failed"},
		[INSTALLER_COUNT] = {"counter_reads", "counter_reads_failed"},
	};
	static const char *const answers[] = {
		"ENOSPC", "EOPNOTSUPP", "EAGAIN", "EIO", "not_answered"};
	uint64_t oldest_us = load(&counters->oldest_us);
	json_t *failures = json_object();

	answer_number(line, "rules", atomic_load_explicit(&counters->rules, memory_order_relaxed));
	answer_number(line, "under_way",
		atomic_load_explicit(&counters->under_way, memory_order_relaxed));
	if (oldest_us != 0)
		answer_number(line, "oldest_us", span_since(now_us, oldest_us));
	answer_number(line, "changes_lost", load(&counters->changes_lost));
	for (unsigned op = 0; op < INSTALLER_N_OPS; op++) {
		answer_number(line, names[op][0], load(&counters->done[op]));
		answer_number(line, names[op][1], load(&counters->failed[op]));
	}
	for (unsigned i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		answer_number(failures, answers[i], load(&counters->by_answer[i]));
	json_object_set_new(line, "failures", failures);
}

static json_t *describe_refusals(const struct refusals *refusals)
{
	unsigned n = atomic_load_explicit(&refusals->n, memory_order_acquire);
	json_t *list = json_array();

	for (unsigned i = 0; i < n && i < OFFLOAD_N_REFUSALS; i++) {
		const struct refusal *refusal = &refusals->refusal[i];
		json_t *object = offload_refusal(refusal->error, refusal->words);

		answer_number(object, "times", load(&refusal->times));
		json_array_append_new(list, object);
	}
	return list;
}

static json_t *describe_histogram(const struct histogram *histogram)
{
	static const struct {
		const char *name;
		double share;
	} shares[] = {{"p50_ns", 0.5}, {"p99_ns", 0.99}, {"p999_ns", 0.999}};
	json_t *object = json_object();

	answer_number(object, "times", load(&histogram->times));
	for (unsigned i = 0; i < sizeof(shares) / sizeof(shares[0]); i++)
		answer_number(object, shares[i].name, histogram_at(histogram, shares[i].share));
	answer_number(object, "max_ns", load(&histogram->max_ns));
	return object;
}

static json_t *describe_latency(const struct installer_histograms *histograms)
{
	json_t *object = json_object();

	json_object_set_new(object, "wait", describe_histogram(&histograms->wait));
	json_object_set_new(
		object, "insert", describe_histogram(&histograms->call[INSTALLER_INSERT]));
	json_object_set_new(
		object, "remove", describe_histogram(&histograms->call[INSTALLER_REMOVE]));
	json_object_set_new(
		object, "counter", describe_histogram(&histograms->call[INSTALLER_COUNT]));
	return object;
}

static json_t *describe_health(
	const struct plane *plane, unsigned port, const struct health *health, uint64_t now_us)
{
	char sentence[OFFLOAD_SENTENCE_MAX];
	enum health_state state = health_state(health);
	uint64_t since_us = load(&health->since_us), retry_us = load(&health->retry_us);
	uint32_t opened = atomic_load_explicit(&health->opened, memory_order_relaxed);
	uint8_t why = atomic_load_explicit(&health->why, memory_order_relaxed);
	json_t *object = json_object();

	json_object_set_new(object, "state", json_string(health_state_name(state)));
	answer_number(object, "opened", opened);
	if (opened > 0) {
		json_object_set_new(object, "reason", json_string(offload_reason_name(why)));
		if (state == HEALTH_CLOSED)
			offload_reason_sentence(sentence, plane, port, why);
		else
			offload_breaker_sentence(sentence, plane, port, why);
		json_object_set_new(object, "because", answer_string(sentence));
		json_object_set_new(object, "since", offload_time_of(plane, since_us));
		answer_number(object, "for_us", span_since(now_us, since_us));
	}
	if (state == HEALTH_OPEN && retry_us > 0)
		answer_number(object, "retry_in_us", span_since(retry_us, now_us));
	return object;
}

/* Can flows of the kind be forwarded by the NIC alone? */
static void describe_full(
	json_t *line, const struct provider_abilities *abilities, enum provider_kind kind)
{
	const struct provider_why *refused = &abilities->full_refused[kind];
	bool granted = abilities->full[PROVIDER_FORWARDS][kind];
	json_t *full = json_object();

	json_object_set_new(full, "granted", json_boolean(granted));
	if (granted)
		json_object_set_new(full, "shape", answer_string(abilities->full_shape[kind]));
	else if (refused->error != 0)
		json_object_set_new(
			full, "refusal", offload_refusal(refused->error, refused->words));
	json_object_set_new(line, "full", full);
}

static json_t *describe_kinds(
	const struct provider_abilities *abilities, const struct health *health, bool full)
{
	json_t *kinds = json_object();

	for (unsigned i = 0; i < PROVIDER_N_KINDS; i++) {
		const struct provider_why *refused = &abilities->refused[i];
		json_t *kind = json_object();

		json_object_set_new(kind, "granted", json_boolean(abilities->kind[i]));
		if (abilities->trying[i])
			json_object_set_new(kind, "trying", json_true());
		if (abilities->kind[i])
			json_object_set_new(kind, "shape", answer_string(abilities->shape[i]));
		else if (refused->error != 0)
			json_object_set_new(
				kind, "refusal", offload_refusal(refused->error, refused->words));
		if (health_kind_out(health, (enum provider_kind)i) != 0)
			json_object_set_new(kind, "markless", json_true());
		if (full)
			describe_full(kind, abilities, (enum provider_kind)i);
		json_object_set_new(kinds, provider_kind_name((enum provider_kind)i), kind);
	}
	return kinds;
}

static void describe_abilities(json_t *line, const struct provider_abilities *abilities,
	const struct health *health, bool full)
{
	json_object_set_new(line, "nic", answer_string(abilities->nic));
	json_object_set_new(line, "back_end", answer_string(abilities->back_end));
	if (abilities->unable[0] != '\0')
		json_object_set_new(line, "unable", answer_string(abilities->unable));
	answer_number(line, "mark_bits", abilities->mark_bits);
	answer_number(line, "mark_max", abilities->mark_max);
	json_object_set_new(line, "counts", json_boolean(abilities->counts));
	if (full)
		json_object_set_new(line, "exact", json_boolean(abilities->exact));
	json_object_set_new(line, "kinds", describe_kinds(abilities, health, full));
}

/* What an earlier `millrace probe` found out of such a card. */
static void describe_known(json_t *line, const struct known *known)
{
	json_t *object;

	if (known == NULL)
		return;
	object = json_object();
	json_object_set_new(object, "time", answer_string(known->time));
	if (known->sized) {
		answer_number(object, "rules", known->rules);
		json_object_set_new(object, "full", json_boolean(known->full));
		answer_number(object, "inserts_per_s", known->inserts_per_s);
		answer_number(object, "deletes_per_s", known->deletes_per_s);
		answer_number(object, "insert_p99_ns", known->insert_p99_ns);
		answer_number(object, "delete_p99_ns", known->delete_p99_ns);
	}
	answer_number(object, "mark_bits", known->mark_bits);
	json_object_set_new(line, "probed", object);
}

/* Flows that are in no state but software are not counted by whoever offloads: they are not here. */
static void describe_flows(json_t *line, const struct agent_counters *counters)
{
	json_t *flows = json_object(), *fell_out = json_object();

	for (unsigned i = OFFLOAD_QUEUED; i < OFFLOAD_N_STATES; i++) {
		const char *name = offload_state_name((enum offload_state)i);
		json_int_t before = json_integer_value(json_object_get(flows, name));

		answer_number(flows, name, counters->flows[i] + (uint64_t)before);
	}
	answer_number(flows, "proven", counters->flows[OFFLOAD_PROVEN]);
	json_object_set_new(line, "flows", flows);
	answer_number(line, "forwarded", counters->forwarded);
	answer_number(line, "forwarded_bytes", counters->forwarded_bytes);
	answer_number(line, "unaccounted", counters->unaccounted);
	if (counters->read_us != 0)
		answer_number(line, "read_every_us", counters->read_us);
	answer_number(line, "refused", counters->refused);
	answer_number(line, "displaced", counters->displaced);
	answer_number(line, "no_slot", counters->no_slot);
	answer_number(line, "strangers", counters->strangers);
	answer_number(line, "ghosts", counters->ghosts);
	answer_number(line, "stalled", counters->stalled);
	for (unsigned i = 0; i < OFFLOAD_N_REASONS; i++)
		if (counters->fell_out[i] > 0)
			answer_number(
				fell_out, offload_reason_name((uint8_t)i), counters->fell_out[i]);
	json_object_set_new(line, "fell_out", fell_out);
}

static void describe_slots(json_t *line, const struct plane_slots *slots)
{
	answer_number(line, "slots", slots->n);
	answer_number(line, "slots_used", slots->used);
	answer_number(line, "slots_draining", slots->draining);
}

static void describe_installer(json_t *line, struct control *control, unsigned port,
	struct installer *installer, uint64_t now_us)
{
	const struct installer_counters *counters = installer_counters(installer);

	json_object_set_new(line, "ready", json_boolean(installer_ready(installer)));
	if (installer_ready(installer))
		describe_abilities(line, installer_abilities(installer),
			installer_health(installer), plane_config(control->plane)->offload.full);
	if (installer_trial_us(installer) != 0)
		answer_number(
			line, "trial_in_us", span_since(installer_trial_us(installer), now_us));
	describe_calls(line, counters, now_us);
	describe_rates(line, &control->rates[port], now_us, counters);
	json_object_set_new(line, "refusals", describe_refusals(installer_refusals(installer)));
	json_object_set_new(line, "latency", describe_latency(installer_histograms(installer)));
	json_object_set_new(line, "health",
		describe_health(control->plane, port, installer_health(installer), now_us));
}

/* A port that nobody installs rules on says why. */
static void describe_none(json_t *line, const struct plane *plane, unsigned port)
{
	const struct plane_offload *config = &plane_config(plane)->offload;
	uint8_t reason = config->on && !config->off_port[port] ? OFFLOAD_NO_NIC : OFFLOAD_OFF;
	const struct offload_case of = {.plane = plane, .port = port, .reason = reason};
	char sentence[OFFLOAD_SENTENCE_MAX];

	offload_because(sentence, &of);
	json_object_set_new(line, "reason", json_string(offload_reason_name(reason)));
	json_object_set_new(line, "unable", answer_string(sentence));
}

static int offload_describe(struct answer *answer, unsigned port, json_t *line)
{
	struct plane *plane = answer->plane;
	struct installer *installer = plane_installer(plane, port);
	uint64_t now_us = plane_now_us(plane);
	struct agent_counters counters;
	struct plane_slots slots = {0};

	json_object_set_new(line, "port", answer_string(plane_config(plane)->port[port]->name));
	answer_number(line, "wire", plane_config(plane)->topology.domain[port]);
	json_object_set_new(line, "offload", json_boolean(installer != NULL));
	describe_known(line, plane_config(plane)->offload.known[port]);
	if (!installer) {
		describe_none(line, plane, port);
		return 0;
	}
	/*
	 * Of what belongs together the later on its way is read first: a flow that is in the NIC has a slot, and
	 * its rule was made before it was told so.
	 */
	int ret = plane_offload_counters(plane, port, &counters);

	if (ret == 0)
		ret = plane_slots(plane, plane_config(plane)->topology.domain[port], &slots);
	if (ret < 0)
		return ret;
	describe_installer(line, answer->control, port, installer, now_us);
	describe_slots(line, &slots);
	describe_flows(line, &counters);
	return 0;
}

static int show_offload(
	struct answer *answer, const struct request_value *values, struct error *error)
{
	unsigned n_ports = plane_config(answer->plane)->topology.n_ports;
	json_t *lines = json_array(), *line;
	size_t number;
	int ret = 0;

	(void)values;
	/* all of them or none: a thread may not answer */
	for (unsigned i = 0; i < n_ports && ret == 0; i++) {
		line = json_object();
		json_array_append_new(lines, line);
		ret = offload_describe(answer, i, line);
	}
	json_array_foreach(lines, number, line)
	{
		if (ret == 0)
			ret = answer_add(answer, json_incref(line));
	}
	json_decref(lines);
	return ret < 0 ? control_silent(error, ret, ASK) : 0;
}

const struct answer_verb offload_show = {
	.ask = ASK,
	.begin = show_offload,
};
