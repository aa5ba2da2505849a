/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shard against a simple map: millions of random packets over more flows than fit, with time
 * passing, so that flows are learned, found, aged and evicted all the while. The map knows every live
 * flow's counters, times and phase, and holds each report against them: the reason, the numbers, and
 * for a victim of eviction that the design's rule allows it.
 *
 * MODEL_OPERATIONS sets the number of packets (10,000,000 unless told otherwise).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <netinet/in.h>

#include "base/clock.h"
#include "flow/shard.h"

enum { CAPACITY = 300, FLOWS = 900 };

struct entry {
	bool live;
	enum flow_phase phase;
	uint32_t timeout_s;
	unsigned initiator;
	uint64_t packets[2], bytes[2];
	uint64_t start_us, last_us;
};

struct model {
	struct entry entries[FLOWS];
	struct flow_shard *shard;
	struct hash_secret secret;
	struct flow_timeouts timeouts;
	unsigned live;
	uint64_t now_us;
	uint64_t reports;
	bool learning; /* an eviction is allowed */
	bool ending;
	uint64_t packets_in, packets_reported;
};

/* Flow n: a third TCP, the others UDP and something else. */
static uint8_t proto_of(unsigned n)
{
	static const uint8_t protos[] = {IPPROTO_TCP, IPPROTO_UDP, 47};

	return protos[n % 3];
}

static struct flow_key key_of(unsigned n)
{
	struct flow_key key = {.proto = proto_of(n), .version_wire = FLOW_KEY_VERSION_WIRE(4, 0)};

	key.addr[0][0] = 1;
	key.addr[0][1] = (uint8_t)(n >> 8);
	key.addr[0][2] = (uint8_t)n;
	key.addr[1][0] = 2;
	return key;
}

static unsigned number_of(const struct flow_key *key)
{
	return (unsigned)key->addr[0][1] << 8 | key->addr[0][2];
}

static uint64_t idle_tick(const struct entry *entry)
{
	return clock_tick_from(entry->last_us + entry->timeout_s * CLOCK_US_PER_S);
}

/* Embryonic, then closing, then the idlest of at least 16. */
static void check_victim(const struct model *model, const struct entry *victim)
{
	unsigned of_phase[FLOW_N_PHASES] = {0};
	unsigned idle_less = 0;

	assert_true(model->learning);
	assert_int_equal(model->live, CAPACITY);
	for (unsigned i = 0; i < FLOWS; i++) {
		const struct entry *entry = &model->entries[i];

		if (!entry->live)
			continue;
		of_phase[entry->phase]++;
		idle_less += entry->phase == FLOW_PHASE_OPEN && entry->last_us >= victim->last_us;
	}
	if (of_phase[FLOW_PHASE_NEW] != 0)
		assert_int_equal(victim->phase, FLOW_PHASE_NEW);
	else if (of_phase[FLOW_PHASE_CLOSING] != 0)
		assert_int_equal(victim->phase, FLOW_PHASE_CLOSING);
	else
		assert_true(idle_less >= 16);
}

static void take_report(struct model *model, const struct flow_report *report)
{
	const struct flow_record *record = &report->record;
	struct entry *entry = &model->entries[number_of(&record->key)];

	assert_true(entry->live);
	assert_int_equal(record->initiator, entry->initiator);
	assert_int_equal(record->start_us, entry->start_us);
	assert_int_equal(record->last_seen_us, entry->last_us);
	for (unsigned end = 0; end < 2; end++) {
		assert_int_equal(flow_packets(record, end), entry->packets[end]);
		assert_int_equal(flow_bytes(record, end), entry->bytes[end]);
		model->packets_reported += entry->packets[end];
	}
	switch ((enum flow_end)report->reason) {
	case FLOW_END_EVICTED:
		check_victim(model, entry);
		break;
	case FLOW_END_IDLE:
	case FLOW_END_RST:
		/* neither early nor late, to the tick */
		if (!model->ending)
			assert_int_equal(idle_tick(entry), model->shard->tick);
		break;
	case FLOW_END_SHUTDOWN:
		assert_true(model->ending);
		break;
	case FLOW_END_FIN:
	case FLOW_END_ACTIVE:
	case FLOW_END_KILLED:
	case FLOW_N_ENDS:
		fail_msg("unexpected reason %u", (unsigned)report->reason);
	}
	assert_int_equal(report->reason == FLOW_END_RST,
		entry->phase == FLOW_PHASE_CLOSING && report->reason != FLOW_END_EVICTED);
	entry->live = false;
	model->live--;
	model->reports++;
}

static void sink(void *context, const struct flow_report *reports, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		take_report(context, &reports[i]);
}

static uint32_t timeout_of(const struct model *model, unsigned n, enum flow_phase phase)
{
	enum flow_state state = phase == FLOW_PHASE_NEW	   ? FLOW_REQUEST
				: phase == FLOW_PHASE_OPEN ? FLOW_REPLIED
							   : FLOW_RESET;
	const uint32_t *seconds = model->timeouts.seconds;

	if (state == FLOW_RESET)
		return seconds[FLOW_TIMEOUT_TCP_RESET];
	if (proto_of(n) == IPPROTO_TCP)
		return seconds[state == FLOW_REQUEST ? FLOW_TIMEOUT_TCP_NEW
						     : FLOW_TIMEOUT_TCP_OPEN];
	if (proto_of(n) == IPPROTO_UDP)
		return seconds[state == FLOW_REQUEST ? FLOW_TIMEOUT_UDP_NEW
						     : FLOW_TIMEOUT_UDP_OPEN];
	return seconds[state == FLOW_REQUEST ? FLOW_TIMEOUT_OTHER_NEW : FLOW_TIMEOUT_OTHER_OPEN];
}

/* The packet that is sent, and what the model expects it to do. */
static void packet(struct model *model)
{
	unsigned n = (unsigned)random() % FLOWS;
	struct entry *entry = &model->entries[n];
	struct packet_info info = {
		.key = key_of(n),
		.bytes = 60 + (uint32_t)random() % 1440,
		.from = random() & 1,
	};
	bool closing = entry->live && entry->phase == FLOW_PHASE_CLOSING;
	bool tcp = proto_of(n) == IPPROTO_TCP;
	bool reset = tcp && entry->live && entry->phase == FLOW_PHASE_OPEN && random() % 8 == 0;

	/* TCP without data, with numbers that stand still; what follows a reset is cut, and moves no state */
	if (tcp && !closing) {
		info.flags = PACKET_TCP;
		info.tcp = (struct tcp_segment){
			.flags = reset ? TCP_RST : TCP_ACK,
			.window = UINT16_MAX,
			.scale = TCP_SCALE_NONE,
		};
	}
	info.hash = flow_key_hash(&model->secret, &info.key);
	uint32_t position = flow_table_find(&model->shard->table, &info.key, info.hash);

	assert_int_equal(position != FLOW_NONE, entry->live);
	if (position == FLOW_NONE) {
		model->learning = true;
		position = flow_shard_learn(model->shard, &info);
		flow_shard_flush(model->shard);
		model->learning = false;
		*entry = (struct entry){
			.live = true, .initiator = info.from, .start_us = model->now_us};
		model->live++;
	} else {
		assert_int_equal(
			flow_shard_account(model->shard, position, &info), FLOW_ACCOUNT_GO);
		if (reset)
			entry->phase = FLOW_PHASE_CLOSING;
		else if (entry->phase == FLOW_PHASE_NEW && info.from != entry->initiator)
			entry->phase = FLOW_PHASE_OPEN;
	}
	entry->timeout_s = timeout_of(model, n, entry->phase);
	entry->packets[info.from]++;
	entry->bytes[info.from] += info.bytes;
	entry->last_us = model->now_us;
	model->packets_in++;
}

static void pass_time(struct model *model)
{
	uint64_t step =
		random() % 1000 == 0 ? (uint64_t)random() % 200000000 : (uint64_t)random() % 20000;
	uint64_t until = model->now_us + step;

	/* tick by tick, so that reports come at the tick that they belong to */
	while (clock_tick(model->now_us) < clock_tick(until)) {
		model->now_us = (clock_tick(model->now_us) + 1) * CLOCK_TICK_US;
		flow_shard_advance(model->shard, model->now_us);
		flow_shard_flush(model->shard);
		for (unsigned i = 0; i < FLOWS; i++)
			assert_true(!model->entries[i].live ||
				    idle_tick(&model->entries[i]) > clock_tick(model->now_us));
	}
	model->now_us = until;
	flow_shard_advance(model->shard, until);
}

static void against_the_map(void **state)
{
	(void)state;
	const char *told = getenv("MODEL_OPERATIONS");
	uint64_t operations = told == NULL ? 10000000 : strtoull(told, NULL, 10);
	struct model *model = calloc(1, sizeof(*model));
	struct flow_shard_config config = {.capacity = CAPACITY,
		.secret = &model->secret,
		.sink = sink,
		.sink_context = model};

	assert_int_equal(hash_secret_init(&model->secret), 0);
	model->timeouts = flow_timeouts_default();
	model->timeouts.seconds[FLOW_TIMEOUT_TCP_OPEN] = 400;
	config.timeouts = model->timeouts;
	assert_int_equal(flow_shard_create(&model->shard, &config), 0);
	srandom(1);
	for (uint64_t i = 0; i < operations; i++) {
		packet(model);
		/* crowded for most of the time, and now and then quiet enough to age */
		if (i / 50000 % 4 == 3 || random() % 50 == 0)
			pass_time(model);
		assert_int_equal(model->shard->table.count, model->live);
	}
	model->ending = true;
	flow_shard_end_all(model->shard);
	assert_int_equal(model->live, 0);
	assert_int_equal(model->packets_in, model->packets_reported);
	assert_int_equal(model->packets_in, model->shard->counters.packets);
	assert_int_equal(model->packets_in, model->shard->counters.reported_packets);

	const uint64_t *ended = model->shard->counters.ended;

	print_message("%ju packets, %ju flows: idle %ju, rst %ju, evicted %ju\n", operations,
		model->reports, ended[FLOW_END_IDLE], ended[FLOW_END_RST], ended[FLOW_END_EVICTED]);
	if (operations >= 1000000) {
		assert_true(ended[FLOW_END_IDLE] > 0 && ended[FLOW_END_RST] > 0 &&
			    ended[FLOW_END_EVICTED] > 0);
	}
	flow_shard_destroy(model->shard);
	free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(against_the_map)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
