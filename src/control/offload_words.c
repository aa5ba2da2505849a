/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/offload_words.h"

#include <stdio.h>
#include <string.h>

#include "control/answer.h"
#include "control/span.h"
#include "offload/rate.h"

const char *offload_errno(char text[24], int error)
{
	const char *name = strerrorname_np(error);

	if (name)
		snprintf(text, 24, "%s", name);
	else
		snprintf(text, 24, "%d", error);
	return text;
}

json_t *offload_how(bool full)
{
	return json_string(full ? "full" : "mark");
}

json_t *offload_refusal(int error, const char *words)
{
	json_t *object = json_object();
	char name[24];

	json_object_set_new(object, "errno", json_string(offload_errno(name, error)));
	if (*words != '\0')
		json_object_set_new(object, "words", answer_string(words));
	return object;
}

const char *offload_port_name(const struct plane *plane, unsigned port)
{
	const struct plane_config *config = plane_config(plane);

	return port < config->topology.n_ports ? config->port[port]->name : "?";
}

/* `head: EINVAL, "words"` */
static void write_refusal(
	char sentence[OFFLOAD_SENTENCE_MAX], const char *head, int error, const char *words)
{
	char name[24];
	bool said = *words != '\0';

	snprintf(sentence, OFFLOAD_SENTENCE_MAX, "%s: %s%s%s%s", head, offload_errno(name, error),
		said ? ", \"" : "", words, said ? "\"" : "");
}

void offload_reason_sentence(char sentence[OFFLOAD_SENTENCE_MAX], const struct plane *plane,
	unsigned port, uint8_t reason)
{
	struct installer *installer = plane_installer(plane, port);
	const struct refusal *refusal =
		installer ? refusal_of(installer_refusals(installer), reason) : NULL;

	if (refusal)
		write_refusal(
			sentence, offload_reason_what(reason), refusal->error, refusal->words);
	else if (reason == OFFLOAD_BUSY && plane_config(plane)->offload.threshold == 0)
		snprintf(sentence, OFFLOAD_SENTENCE_MAX,
			"every flow is given to the NIC, since the threshold is 0");
	else
		snprintf(sentence, OFFLOAD_SENTENCE_MAX, "%s", offload_reason_what(reason));
}

void offload_breaker_sentence(char sentence[OFFLOAD_SENTENCE_MAX], const struct plane *plane,
	unsigned port, uint8_t reason)
{
	size_t length;

	offload_reason_sentence(sentence, plane, port, reason);
	if (plane_config(plane)->offload.restart ||
		(reason < OFFLOAD_REFUSALS && reason != OFFLOAD_STALLED))
		return;
	length = strlen(sentence);
	snprintf(sentence + length, OFFLOAD_SENTENCE_MAX - length,
		"; a restart of the port may help (--offload-restart yes)");
}

static void add_retry(
	char sentence[OFFLOAD_SENTENCE_MAX], const struct offload_case *of, uint64_t retry_us)
{
	size_t length = strlen(sentence);
	char span[TEXT_NUMBER_MAX];

	if (retry_us > of->now_us)
		snprintf(sentence + length, OFFLOAD_SENTENCE_MAX - length, "; next try in %s",
			span_text(span, retry_us - of->now_us));
}

static void explain_kind(char sentence[OFFLOAD_SENTENCE_MAX], const struct offload_case *of,
	const struct provider_abilities *abilities)
{
	enum provider_kind kind = provider_kind(of->key);
	char head[96];

	if (kind == PROVIDER_N_KINDS) {
		snprintf(sentence, OFFLOAD_SENTENCE_MAX,
			"NICs are given flows of TCP, UDP and SCTP only, of ICMP over IPv4 and of "
			"ICMPv6 over IPv6");
		return;
	}
	snprintf(head, sizeof(head), "port %s takes no rules for %s flows",
		offload_port_name(of->plane, of->port), provider_kind_name(kind));
	if (abilities->refused[kind].error != 0)
		write_refusal(sentence, head, abilities->refused[kind].error,
			abilities->refused[kind].words);
	else
		snprintf(sentence, OFFLOAD_SENTENCE_MAX, "%s", head);
}

/* Why nothing is known of what the port does with such flows. */
static void explain_trial(char sentence[OFFLOAD_SENTENCE_MAX], const struct offload_case *of,
	const struct installer *installer)
{
	const struct provider_abilities *abilities = installer_abilities(installer);
	const char *name = offload_port_name(of->plane, of->port);
	enum provider_kind kind = provider_kind(of->key);
	char head[128];

	if (!installer_ready(installer) || kind == PROVIDER_N_KINDS) {
		snprintf(sentence, OFFLOAD_SENTENCE_MAX,
			"what port %s does with rules is being tried", name);
		return;
	}
	if (abilities->kind[kind]) {
		snprintf(sentence, OFFLOAD_SENTENCE_MAX,
			"port %s takes rules for %s flows, and its wire's slots are being made",
			name, provider_kind_name(kind));
		return;
	}
	snprintf(head, sizeof(head), "port %s could not be tried yet with rules for %s flows", name,
		provider_kind_name(kind));
	write_refusal(
		sentence, head, abilities->refused[kind].error, abilities->refused[kind].words);
	add_retry(sentence, of, installer_trial_us(installer));
}

static void explain_unable(char sentence[OFFLOAD_SENTENCE_MAX], const struct offload_case *of,
	const struct installer *installer)
{
	snprintf(sentence, OFFLOAD_SENTENCE_MAX, "%s: %s", offload_reason_what(of->reason),
		installer_abilities(installer)->unable);
	add_retry(sentence, of, installer_trial_us(installer));
}

/* After these the flow waits; for others that wait is no reason. */
static bool waits_for(uint8_t reason)
{
	return reason >= OFFLOAD_REFUSALS || reason == OFFLOAD_QUARANTINE ||
	       reason == OFFLOAD_UNPLAIN || reason == OFFLOAD_DISPLACED ||
	       reason == OFFLOAD_NO_SLOT || reason == OFFLOAD_STALLED;
}

uint64_t offload_retry_us(const struct offload_case *of)
{
	struct installer *installer = plane_installer(of->plane, of->port);
	const struct health *health = installer != NULL ? installer_health(installer) : NULL;

	if (health != NULL && (waits_for(of->reason) || of->reason == OFFLOAD_BREAKER) &&
		health_state(health) == HEALTH_OPEN)
		return RTE_MAX(of->retry_us,
			atomic_load_explicit(&health->retry_us, memory_order_relaxed));
	if (installer != NULL && (of->reason == OFFLOAD_TRIAL || of->reason == OFFLOAD_NO_NIC))
		return installer_trial_us(installer);
	return of->retry_us;
}

static void explain_breaker(char sentence[OFFLOAD_SENTENCE_MAX], const struct offload_case *of,
	const struct health *health)
{
	uint64_t since_us = atomic_load_explicit(&health->since_us, memory_order_relaxed);
	uint8_t reason = atomic_load_explicit(&health->why, memory_order_relaxed);
	const char *name = offload_port_name(of->plane, of->port);
	char span[TEXT_NUMBER_MAX], why[OFFLOAD_SENTENCE_MAX];

	offload_breaker_sentence(why, of->plane, of->port, reason);
	span_text(span, span_since(of->now_us, since_us));
	if (health_state(health) == HEALTH_TRYING)
		snprintf(sentence, OFFLOAD_SENTENCE_MAX,
			"port %s was put to software (%.300s), and is tried with a few flows since "
			"%s",
			name, why, span);
	else
		snprintf(sentence, OFFLOAD_SENTENCE_MAX,
			"port %s was put to software %s ago: %.300s", name, span, why);
	if (health_state(health) == HEALTH_OPEN)
		add_retry(sentence, of, offload_retry_us(of));
}

#define ASKED_FOR \
	"is asked for when one of its packets that a rule could mark is looked at: few are"

/* A flow in software is busier than some flows that have a rule, and needs to be more so to get the place of one. */
static bool waits_for_hysteresis(const struct agent_rank *rank)
{
	return rank != NULL && rank->rank != 0 && rank->rank <= rank->held &&
	       rank->rate < rank->bar;
}

static void explain_hysteresis(char sentence[OFFLOAD_SENTENCE_MAX], const struct agent_rank *rank)
{
	snprintf(sentence, OFFLOAD_SENTENCE_MAX, "%s",
		rank->bar == UINT32_MAX
			? "it ranks high enough, and waits: no flow in the NIC gives way now"
			: "it ranks high enough, and waits for hysteresis: a flow in the NIC gives "
			  "way only to one that is busier by a fourth to a half");
}

/* Why a flow is not asked for. */
static void explain_quiet(char sentence[OFFLOAD_SENTENCE_MAX], const struct offload_case *of)
{
	const uint32_t threshold = plane_config(of->plane)->offload.threshold;
	const uint32_t rate = of->rank != NULL && of->rank->rank != 0 ? of->rank->rate : 0;
	char text[TEXT_NUMBER_MAX];

	if (threshold == 0 || rate >= rate_of_pps(threshold)) {
		if (threshold != 0 && waits_for_hysteresis(of->rank))
			explain_hysteresis(sentence, of->rank);
		else
			snprintf(sentence, OFFLOAD_SENTENCE_MAX, "%s " ASKED_FOR,
				threshold == 0 ? "it" : "it is busy enough, and");
	} else {
		snprintf(sentence, OFFLOAD_SENTENCE_MAX,
			"its rate is below the threshold of %s packet%s a second%s",
			text_grouped(text, threshold), threshold == 1 ? "" : "s",
			rate == 0 ? ", or was not measured yet" : "");
	}
}

/*
 * Why a flow in software has none of the port's rules, all of which are in use. False: those that have them are busier,
 * which is what the reason says, or nothing is known of that.
 */
static bool explain_outranked(char sentence[OFFLOAD_SENTENCE_MAX], const struct offload_case *of)
{
	const struct agent_rank *rank = of->rank;

	if (of->reason != OFFLOAD_OUTRANKED || of->state != OFFLOAD_SOFTWARE || rank == NULL ||
		rank->rank == 0)
		return false;
	if (rank->bar != UINT32_MAX && rank->rate >= rank->bar)
		snprintf(sentence, OFFLOAD_SENTENCE_MAX,
			"it is busy enough by now for another to give way, and " ASKED_FOR);
	else if (waits_for_hysteresis(rank))
		explain_hysteresis(sentence, rank);
	else
		return false;
	return true;
}

static void explain_no_slot(char sentence[OFFLOAD_SENTENCE_MAX], const struct offload_case *of)
{
	const unsigned wire = plane_config(of->plane)->topology.domain[of->port];
	char slots[TEXT_NUMBER_MAX];

	if (plane_has_no_slots(of->plane, wire))
		snprintf(sentence, OFFLOAD_SENTENCE_MAX,
			"there was no memory for %s slots; offload.slots may be less",
			text_grouped(slots, plane_config(of->plane)->offload.slots));
	else
		snprintf(sentence, OFFLOAD_SENTENCE_MAX,
			"no mark is free for it; a wire may have %s flows in its NICs",
			text_grouped(slots, plane_n_slots(of->plane, wire)));
}

/* The reasons that have a number in their sentence, or depend on how busy others are. */
static bool explain_number(char sentence[OFFLOAD_SENTENCE_MAX], const struct offload_case *of)
{
	const struct plane_offload *config = &plane_config(of->plane)->offload;
	const char *many = config->threshold == 1 ? "" : "s";
	char threshold[TEXT_NUMBER_MAX];

	text_grouped(threshold, config->threshold);
	if (of->reason == OFFLOAD_NO_SLOT)
		explain_no_slot(sentence, of);
	else if (of->reason == OFFLOAD_QUIET)
		explain_quiet(sentence, of);
	else if (of->reason == OFFLOAD_DISPLACED && of->rank != NULL && of->rank->crowded)
		snprintf(sentence, OFFLOAD_SENTENCE_MAX,
			"the queue for the NIC is full of flows that are more than half as busy");
	else if (of->reason == OFFLOAD_BUSY && config->threshold > 0)
		snprintf(sentence, OFFLOAD_SENTENCE_MAX,
			"its rate reached the threshold of %s packet%s a second", threshold, many);
	else if (of->reason == OFFLOAD_SLOWED)
		snprintf(sentence, OFFLOAD_SENTENCE_MAX,
			"its rate fell below half of the threshold of %s packet%s a second",
			threshold, many);
	else
		return false;
	return true;
}

static bool explain_port(char sentence[OFFLOAD_SENTENCE_MAX], const struct offload_case *of,
	struct installer *installer)
{
	const struct plane_offload *config = &plane_config(of->plane)->offload;
	const struct provider_abilities *abilities =
		installer ? installer_abilities(installer) : NULL;

	if (of->reason == OFFLOAD_OFF && config->on && of->port < PLANE_MAX_PORTS &&
		config->off_port[of->port])
		snprintf(sentence, OFFLOAD_SENTENCE_MAX,
			"port %s is one of those that are left out of offload",
			offload_port_name(of->plane, of->port));
	else if (of->reason == OFFLOAD_NO_NIC && abilities && abilities->unable[0] != '\0')
		explain_unable(sentence, of, installer);
	else if (of->reason == OFFLOAD_TRIAL && installer)
		explain_trial(sentence, of, installer);
	else if (of->reason == OFFLOAD_KIND && abilities)
		explain_kind(sentence, of, abilities);
	else if (of->reason == OFFLOAD_MARKLESS)
		snprintf(sentence, OFFLOAD_SENTENCE_MAX,
			"port %s accepts rules for %s flows, and none has ever marked a packet",
			offload_port_name(of->plane, of->port),
			provider_kind_name(provider_kind(of->key)));
	else if (of->reason == OFFLOAD_BREAKER && installer)
		explain_breaker(sentence, of, installer_health(installer));
	else
		return false;
	return true;
}

/* Who waits is not asked in again before the port is, if that was put to software meanwhile. */
static void add_breaker(char sentence[OFFLOAD_SENTENCE_MAX], const struct offload_case *of,
	const struct health *health)
{
	size_t length = strlen(sentence);
	struct offload_case port = *of;
	char why[OFFLOAD_SENTENCE_MAX];

	port.reason = OFFLOAD_BREAKER;
	explain_breaker(why, &port, health);
	snprintf(sentence + length, OFFLOAD_SENTENCE_MAX - length, "; %.300s", why);
}

/* Since when that rule is to go, where it is known. */
static bool explain_older(char sentence[OFFLOAD_SENTENCE_MAX], const struct offload_case *of)
{
	char span[TEXT_NUMBER_MAX];

	if (of->reason != OFFLOAD_OLDER_RULE || of->older_us == 0)
		return false;
	snprintf(sentence, OFFLOAD_SENTENCE_MAX,
		"it waits behind an older rule of the same addresses and ports, which was to go %s "
		"ago and is not confirmed to be gone",
		span_text(span, span_since(of->now_us, of->older_us)));
	return true;
}

void offload_because(char sentence[OFFLOAD_SENTENCE_MAX], const struct offload_case *of)
{
	struct installer *installer = plane_installer(of->plane, of->port);

	if (!explain_port(sentence, of, installer) && !explain_number(sentence, of) &&
		!explain_outranked(sentence, of) && !explain_older(sentence, of))
		offload_reason_sentence(sentence, of->plane, of->port, of->reason);
	if (waits_for(of->reason) && installer &&
		health_state(installer_health(installer)) != HEALTH_CLOSED)
		add_breaker(sentence, of, installer_health(installer));
	else if (waits_for(of->reason))
		add_retry(sentence, of, of->retry_us);
}

/* "ipv4/tcp, ipv4/udp" */
static void name_kinds(char text[OFFLOAD_SENTENCE_MAX], uint32_t kinds)
{
	size_t length = 0;

	text[0] = '\0';
	for (unsigned kind = 0; kind < PROVIDER_N_KINDS; kind++)
		if (kinds & 1u << kind)
			length += (size_t)snprintf(text + length, OFFLOAD_SENTENCE_MAX - length,
				"%s%s", length > 0 ? ", " : "",
				provider_kind_name((enum provider_kind)kind));
}

/* What was told before goes on with what it is about. */
static bool has_why(unsigned kind)
{
	return kind == CHANGE_BREAKER_OPEN || kind == CHANGE_DELETE_REFUSED ||
	       kind == CHANGE_COUNTER_REFUSED || kind == CHANGE_KIND_OUT ||
	       kind == CHANGE_KIND_IN || kind == CHANGE_UNTRIED || kind == CHANGE_TRIED;
}

void offload_change_sentence(char sentence[OFFLOAD_SENTENCE_MAX], const struct plane *plane,
	const struct offload_change *change)
{
	static const char *const what[CHANGE_N_KINDS] = {
		[CHANGE_BREAKER_OPEN] = "the port is put to software: ",
		[CHANGE_BREAKER_TRIES] = "a few flows are tried in the NIC again",
		[CHANGE_BREAKER_CLOSED] = "the NIC keeps its word again; rules are asked for as "
					  "before",
		[CHANGE_GHOST] = "packets have marks that this run never gave; an earlier one may "
				 "have left its rules",
		[CHANGE_STALLED] = "the NIC has not answered an insert or a delete for long",
		[CHANGE_DELETE_REFUSED] = "a rule stays in the NIC until a later try: ",
		[CHANGE_COUNTER_REFUSED] = "the NIC's counters cannot be read: ",
		[CHANGE_RESET] = "the port was stopped and started; its rules are gone",
		[CHANGE_FLUSHED] = "all rules of the port were taken out by one call, since one "
				   "worked on that the NIC had said is gone",
		[CHANGE_SHAPE] = "other actions are tried, since those that were accepted did not "
				 "mark",
		[CHANGE_KIND_OUT] = "no rule ever marked a packet, with whatever actions; hardly "
				    "any is asked for of flows of ",
		[CHANGE_KIND_IN] = "rules mark now; they are asked for as before of flows of ",
		[CHANGE_UNTRIED] = "what the port does with rules cannot be tried now, and will be "
				   "again: ",
		[CHANGE_TRIED] = "a later trial was granted rules for flows of ",
	};
	char why[OFFLOAD_SENTENCE_MAX];
	unsigned kind = change->kind;

	if (kind == CHANGE_BREAKER_OPEN)
		offload_breaker_sentence(why, plane, change->port, change->reason);
	else
		offload_reason_sentence(why, plane, change->port, change->reason);
	if (kind == CHANGE_KIND_OUT || kind == CHANGE_KIND_IN)
		snprintf(why, sizeof(why), "%s",
			provider_kind_name((enum provider_kind)change->detail));
	else if (kind == CHANGE_TRIED)
		name_kinds(why, change->detail);
	if (kind == CHANGE_FLOW || kind >= CHANGE_N_KINDS)
		snprintf(sentence, OFFLOAD_SENTENCE_MAX, "%s", why);
	else
		snprintf(sentence, OFFLOAD_SENTENCE_MAX, "%.120s%.390s", what[kind],
			has_why(kind) ? why : "");
}

void offload_describe_change(
	json_t *line, const struct plane *plane, const struct offload_change *change)
{
	enum offload_state before = (enum offload_state)change->before;
	enum offload_state after = (enum offload_state)change->after;
	char sentence[OFFLOAD_SENTENCE_MAX];

	if (change->kind == CHANGE_FLOW) {
		json_object_set_new(line, "before", json_string(offload_state_name(before)));
		json_object_set_new(line, "after", json_string(offload_state_name(after)));
		if (after >= OFFLOAD_ACCEPTED) {
			json_object_set_new(line, "how", offload_how(change->full));
			json_object_set_new(line, "proven", json_boolean(after == OFFLOAD_PROVEN));
		}
		json_object_set_new(
			line, "reason", json_string(offload_reason_name(change->reason)));
		if (after == OFFLOAD_QUEUED && change->detail > 0)
			answer_number(line, "rate_pps", change->detail);
		if (after >= OFFLOAD_ACCEPTED && change->detail > 0)
			answer_number(line, "took_us", change->detail);
	} else if (change->kind == CHANGE_BREAKER_OPEN || change->kind == CHANGE_DELETE_REFUSED ||
		   change->kind == CHANGE_COUNTER_REFUSED) {
		json_object_set_new(
			line, "reason", json_string(offload_reason_name(change->reason)));
	}
	offload_change_sentence(sentence, plane, change);
	json_object_set_new(line, "because", answer_string(sentence));
}
