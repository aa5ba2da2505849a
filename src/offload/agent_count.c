/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/agent_count.h"

#include <errno.h>

/* How old a reading of a counter may be, where it is known that readings are fresh, and where it is not. */
#define FRESH_US 250000
#define CACHED_US 1200000
/* Packets a second that bring something between two looks at a counter that is in doubt, and the time between these. */
#define TELLING_PPS 100
#define DOUBT_US 60000
/* So many counters that are in doubt are read in such a time at each port; others wait for so long. */
#define DOUBTS 32
#define NO_DOUBT_US 500000
/* Packets that a NIC may have counted and not yet handed over. */
#define NIC_AHEAD 1024
/* A counter is held against so many packets, if these come in such a time. */
#define TELLING UINT64_C(16)
#define LEAST_US 250000
#define MOST_US 4000000
/* A reading of one counter, of all rules of a wire together. */
#define EACH_US 100

/* Readings of many full flows take one part in so many of an installer's time; the rest is for rules. */
#define READ_PART 4
/* The more of them are told later than that, the longer is the interval: by such steps, so many times at most. */
#define READ_LATE_US 300000
#define READ_STEPS 64
#define READ_MOST 15
/* The first reading: no counter wraps in that time, whatever a port carries. */
#define FIRST_US 1000
/* Bytes of a frame, where it is not known what the port takes. */
#define LONGEST 16384
/* Packets that no rule can be expected to match, within a time, that are held against what a full rule counted. */
#define UNPLAIN 16
#define UNPLAIN_US 10000

static struct agent_port *port_of(const struct agent_at *at)
{
	return &at->agent->port[at->port];
}

/* The counter is read in so many us. */
static void plan(const struct agent_at *at, uint64_t us)
{
	at->direction->nic_due_us = at->agent->now_us + us;
	agent_due(at, at->direction->nic_due_us);
}

/* The counter of a rule that marks is in doubt; where many are, not all can be read as soon. */
static void plan_in_doubt(const struct agent_at *at, uint64_t us)
{
	struct agent_port *port = port_of(at);

	if (at->agent->now_us < port->doubt_us) {
		plan(at, RTE_MAX(us, (uint64_t)NO_DOUBT_US));
		return;
	}
	port->doubt_us = at->agent->now_us + DOUBT_US / DOUBTS;
	plan(at, us);
}

/* It asks also while a full rule whose delete was refused goes on sending packets. */
static bool is_read(const struct slot_direction *direction)
{
	if (agent_is_full(direction))
		return agent_is_in_hw(direction) ||
		       (direction->state == OFFLOAD_LEAVING && direction->remove &&
			       !direction->awaited);
	return direction->state == OFFLOAD_ACCEPTED || direction->state == OFFLOAD_PROVEN;
}

void agent_count_look(const struct agent_at *at)
{
	const struct agent_wire *wire = &at->agent->wire[at->domain];
	struct slot_direction *direction = at->direction;
	const struct installer_request request = {
		.key = at->entry->key,
		.tsc = rte_rdtsc(),
		.place = slots_place(&wire->slots, at->slot),
		.op = INSTALLER_COUNT,
		.from = at->from,
	};

	if (direction->nic_due_us > at->agent->now_us || direction->count_awaited ||
		!is_read(direction))
		return;
	/* all that has come by now is in the NIC's counter when it is asked */
	direction->asked =
		agent_marked_packets(direction, at->record, at->from) - direction->nic_base;
	direction->count_awaited =
		installer_ask(port_of(at)->installer, at->agent->config.worker, &request);
}

uint64_t agent_count_due_us(const struct agent_at *at)
{
	const struct agent_counters *counters = &port_of(at)->counters;

	if (at->direction->count_awaited || at->direction->nic_due_us == UINT64_MAX ||
		!is_read(at->direction))
		return UINT64_MAX;
	if (at->direction->nic_due_us > at->agent->now_us)
		return at->direction->nic_due_us;
	/* too many are under way: of all flows one is asked for in each us */
	return at->agent->now_us + counters->flows[OFFLOAD_ACCEPTED] +
	       counters->flows[OFFLOAD_PROVEN];
}

/* One rule's counter tells how old readings are for all of the port. */
static void learn_age(struct agent_port *port, const struct counter *counter)
{
	port->caches |= counter->caches;
	port->fresh = !port->caches && (port->fresh || counter->fresh >= COUNTER_FRESH);
}

/*
 * Until the next reading of a counter that is held against packets, at most: as long as some of these take. What is
 * known of the rate is one of a few seconds. Where there are many rules each is read less often, as readings take the
 * installer's time, too.
 */
static uint64_t longest_us(const struct agent_at *at, uint64_t rate)
{
	const uint64_t each_us = (uint64_t)at->agent->wire[at->domain].slots.n_used * EACH_US;
	const uint64_t least_us = RTE_MAX((uint64_t)LEAST_US, each_us);
	uint64_t pps = RTE_MAX(rate, (uint64_t)rate_pps(at->direction->rate.value));
	uint64_t us = pps == 0 ? UINT64_MAX : TELLING * CLOCK_US_PER_S / pps;

	if (at->agent->now_us - at->direction->queued_us < MOST_US)
		return least_us;
	return RTE_MAX(RTE_MIN(us, (uint64_t)MOST_US), least_us);
}

/* `rate`: packets a second since the last look at the direction. */
static void watch(const struct agent_at *at, uint64_t raw, uint64_t rate)
{
	struct agent_port *port = port_of(at);
	struct slot_direction *direction = at->direction;
	struct counter *counter = &direction->nic;
	const uint64_t came =
		agent_marked_packets(direction, at->record, at->from) - direction->nic_base;
	const struct counter_look look = {
		.raw = raw,
		.least = direction->asked,
		/* packets that the NIC dropped when the host was late are in its counter, too */
		.most = came + NIC_AHEAD,
		.now_us = at->agent->now_us,
		.patience_us = port->fresh ? FRESH_US : CACHED_US,
	};
	enum counter_verdict verdict = counter_watch(counter, &look);

	/* what it has too many never came here, and never will: from now on it is expected */
	if (verdict == COUNTER_AHEAD)
		direction->nic_base -= counter->total - came;
	uint64_t us = counter_interval_us(counter, rate, longest_us(at, rate));

	learn_age(port, counter);
	if (verdict == COUNTER_STUCK)
		agent_event(at, EVENT_FAILED, OFFLOAD_COUNTER, 0);
	else if (verdict == COUNTER_BEHIND ||
		 (!port->fresh && !port->caches && rate >= TELLING_PPS))
		plan_in_doubt(at, RTE_MIN(us, (uint64_t)DOUBT_US));
	else
		plan(at, us);
}

static void count_marking(const struct agent_at *at, const struct installer_answer *answer)
{
	struct slot_direction *direction = at->direction;
	const uint64_t passed_us = at->agent->now_us - direction->rate.us + 1;

	if (!agent_is_in_hw(direction) || at->record == NULL)
		return;
	direction->nic_due_us = UINT64_MAX;
	if (answer->result == -EOPNOTSUPP)
		return; /* the port cannot, whatever it said */
	if (answer->result < 0) {
		plan(at, AGENT_SECOND_US);
		return;
	}
	watch(at, answer->packets,
		(flow_packets(at->record, at->from) - direction->rate.packets) * AGENT_SECOND_US /
			passed_us);
}

/* The flow's record; another flow may have its place. NULL: it has gone. */
static const struct flow_record *record_of(const struct agent_at *at)
{
	const struct flow_record *record = at->record;

	if (record == NULL || !offload_has_slot(record) || record->slot != at->slot ||
		!flow_key_equal(&record->key, &at->entry->key))
		return NULL;
	return record;
}

/* Bytes of a packet of that end, so far. */
static uint32_t packet_size(const struct agent_at *at)
{
	const struct flow_record *record = record_of(at);
	uint64_t packets, bytes;

	if (record == NULL && agent_full_of(at)->held)
		record = &agent_full_of(at)->report.record;
	packets = record == NULL ? 0 : flow_packets(record, at->from);
	bytes = record == NULL ? 0 : flow_bytes(record, at->from);
	/* an active report may have taken them: any size that is usual */
	return packets == 0 ? 1024 : (uint32_t)RTE_MAX(bytes / packets, UINT64_C(1));
}

/* Hands on what the tally has more than before; returns how many packets that is. */
static uint64_t give_credit(const struct agent_at *at, bool last)
{
	struct agent_full *full = agent_full_of(at);
	struct agent_full_direction *direction = agent_full_direction_of(at);
	struct agent_counters *counters = &port_of(at)->counters;
	struct agent_credit credit = {
		.port = at->port,
		.position = record_of(at) != NULL ? at->entry->position : FLOW_NONE,
		.last = last,
		.credit = {.packets = direction->tally.packets.total - direction->packets,
			.bytes = direction->tally.bytes.total - direction->bytes,
			.from = at->from,
			.since_us = direction->looked_us,
			.seen_us = at->agent->now_us},
		.dropped = at->direction->deed == PROVIDER_DROPS,
	};
	const uint64_t packets = credit.credit.packets;

	/* that the last ones were credited before is news as well */
	if (packets == 0 && (!last || direction->packets == 0))
		return 0;
	if (packets == 0)
		credit.credit.seen_us = 0;
	if (credit.position == FLOW_NONE && full->held) {
		credit.report = &full->report;
		if (full->report.offload.packets != FLOW_OFFLOAD_LOST)
			full->report.offload.packets += packets;
	}
	direction->packets += packets;
	direction->bytes += credit.credit.bytes;
	at->direction->marked += packets;
	if (!credit.dropped) {
		counters->forwarded += packets;
		counters->forwarded_bytes += credit.credit.bytes;
	}
	if (credit.position == FLOW_NONE && credit.report == NULL)
		counters->unaccounted += packets;
	at->agent->config.credit(at->agent->config.context, &credit);
	return packets;
}

static void read_counter(const struct agent_at *at, const struct installer_answer *answer)
{
	const struct agent_config *config = &at->agent->config;
	struct agent_full_direction *direction = agent_full_direction_of(at);
	const struct tally_look look = {
		.passed_us = at->agent->now_us - direction->looked_us,
		.link_mbps = config->link_mbps[at->port],
		.longest = config->longest[at->port] != 0 ? config->longest[at->port] : LONGEST,
		.size = packet_size(at),
	};
	const struct provider_count told = {
		.packets = answer->packets, .bytes = answer->bytes, .has_bytes = answer->has_bytes};

	if (!tally_read(&direction->tally, &port_of(at)->tally, &told, &look))
		agent_full_of(at)->estimated = true;
	/* as users see it */
	at->direction->nic.total = direction->tally.packets.total;
}

/* `most_us`: it is not known how its rate changes. */
static void plan_full(const struct agent_at *at, uint64_t rate, uint64_t most_us)
{
	const struct agent_port *port = port_of(at);
	const unsigned bits = port->tally.packets.bits;
	/* a flow that becomes busier must not wrap a narrow counter meanwhile: all of these are read often */
	const uint64_t read_us = bits != 0 && bits < 32 ? AGENT_READ_US : port->counters.read_us;

	plan(at, tally_interval_us(&port->tally, rate, packet_size(at), RTE_MIN(most_us, read_us)));
}

/* The interval of readings follows from how many flows there are, and from whether they are read when they are to be. */
static void adapt(struct agent_port *port, uint64_t now_us, uint64_t due_us)
{
	const uint64_t flows = port->counters.flows[OFFLOAD_ACCEPTED] +
			       port->counters.flows[OFFLOAD_PROVEN] +
			       port->counters.flows[OFFLOAD_SUSPECT];
	const uint64_t least = RTE_MAX(
		(uint64_t)AGENT_READ_US, flows * READ_PART * installer_count_us(port->installer));

	if (now_us > due_us && now_us - due_us > READ_LATE_US)
		port->read_late += 1 + port->read_late / READ_STEPS;
	else if (port->read_late > 0)
		port->read_late -= 1 + port->read_late / READ_STEPS;
	port->read_late = RTE_MIN(port->read_late, READ_STEPS * READ_MOST);
	port->counters.read_us = least + least * port->read_late / READ_STEPS;
}

/* The counter moved: the rule is in the NIC. */
static void prove_by_counter(const struct agent_at *at)
{
	at->direction->unmarked = 0;
	if (record_of(at) != NULL)
		agent_remember_proven(at);
	if (at->direction->state == OFFLOAD_ACCEPTED)
		health_proven(agent_health_worker(at));
	agent_event(at, EVENT_PROVEN, 0,
		at->direction->state == OFFLOAD_ACCEPTED
			? (uint32_t)(at->agent->now_us - at->direction->queued_us)
			: 0);
}

/* Since the last reading more packets came here that no rule can be expected to match than the rule counted. */
static bool is_mostly_unplain(const struct agent_at *at, uint64_t packets, uint64_t passed_us)
{
	const uint32_t unplain = at->direction->unplain;

	if (passed_us < UNPLAIN_US || !agent_is_in_hw(at->direction))
		return false;
	at->direction->unplain = 0;
	return unplain >= UNPLAIN && unplain > packets;
}

static void count_full(const struct agent_at *at, const struct installer_answer *answer)
{
	struct agent_full_direction *direction = agent_full_direction_of(at);
	const uint64_t now_us = at->agent->now_us, passed_us = now_us - direction->looked_us;
	uint64_t packets, left_us;

	if (at->direction->state < OFFLOAD_LEAVING)
		return;
	if (answer->result < 0) {
		/* the answer to its delete tells of a rule that is gone */
		plan(at, AGENT_READ_US);
		return;
	}
	adapt(port_of(at), now_us, at->direction->nic_due_us);
	read_counter(at, answer);
	packets = give_credit(at, false);
	direction->looked_us = now_us;
	if (packets != 0)
		prove_by_counter(at);
	if (is_mostly_unplain(at, packets, passed_us)) {
		agent_event(at, EVENT_UNPLAIN, 0, 0);
		return;
	}
	plan_full(at, packets * AGENT_SECOND_US / RTE_MAX(passed_us, UINT64_C(1)), 4 * passed_us);
	/* last: the record may be gone then */
	if (packets != 0 || record_of(at) == NULL)
		return;
	left_us = at->agent->config.silent(at->agent->config.context, at->entry->position);
	if (left_us != 0 && left_us < at->direction->nic_due_us - now_us)
		plan(at, left_us);
}

void agent_count_begin(const struct agent_at *at)
{
	const struct provider_abilities *abilities = installer_abilities(port_of(at)->installer);

	counter_begin(&at->direction->nic, 0);
	if (agent_is_full(at->direction)) {
		agent_full_direction_of(at)->looked_us = at->agent->now_us;
		at->direction->rate.us = at->agent->now_us;
		plan_full(at, 0, FIRST_US);
	} else if (abilities->counts && at->agent->config.audit_counters) {
		plan_in_doubt(at, DOUBT_US);
	}
}

/* It is told once, until one can be read again: what goes wrong with counters from then on is not seen. */
static void tell_failed(const struct agent_at *at, uint8_t reason)
{
	struct agent_port *port = port_of(at);
	const struct refusal *refusal = refusal_of(installer_refusals(port->installer), reason);

	/* a rule that has no counter, or is gone, is nothing that the NIC refused */
	if (refusal == NULL || port->unread || !agent_tells_again(at->agent, &port->unread_told_us))
		return;
	port->unread = true;
	agent_tell(at->agent, at->port, CHANGE_COUNTER_REFUSED, reason);
}

void agent_count_answer(const struct agent_at *at, const struct installer_answer *answer)
{
	at->direction->count_awaited = false;
	if (answer->result < 0)
		tell_failed(at, answer->reason);
	else
		port_of(at)->unread = false;
	if (agent_is_full(at->direction))
		count_full(at, answer);
	else
		count_marking(at, answer);
}

void agent_count_last(const struct agent_at *at, const struct installer_answer *answer)
{
	if (answer->counted)
		read_counter(at, answer);
	if (!answer->counted || !answer->final)
		agent_full_of(at)->estimated = true;
	(void)give_credit(at, true);
}
