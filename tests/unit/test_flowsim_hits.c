/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What rules count of known packets, against whoever receives them: rules of all kinds come and go at any
 * place of a round, faults begin and end, and at every step what a rule tells is what was received since it
 * came. Of packets that were dropped: each stream has as many in all as its places have rounds.
 */
#include "flowsim_port.h"

#include <errno.h>
#include <stdlib.h>

#include "drivers/flowsim/sim.h"

#define N_STREAMS 64
#define BURST 32

enum kind { NONE, MARK, FLAG, COUNT, DROP, EDIT, ELSEWHERE, N_KINDS };

struct stream {
	struct tuple tuple;
	uint64_t places; /* of a round */
	struct rte_flow *rule;
	enum kind kind;
	uint32_t mark;
	uint64_t since;	 /* received since its rule came */
	uint64_t stands; /* what count_nothing lets its rule tell */
	uint64_t received, dropped;
};

struct scene {
	struct nic nic;
	struct stream streams[N_STREAMS];
	unsigned n_kinds; /* rules are of those before */
	bool stopped, wrong, standing;
	uint64_t matched; /* by rules that are gone */
	uint64_t marked, flagged, kept;
};

static struct stream *stream_of(struct scene *scene, const struct rte_mbuf *packet)
{
	struct tuple tuple = tuple_of(packet);

	for (unsigned i = 0; i < N_STREAMS; i++)
		if (same_tuple(&scene->streams[i].tuple, &tuple))
			return &scene->streams[i];
	return NULL;
}

/* The first round, before there are rules: the streams, and how many places each has. */
static void learn(struct scene *scene, uint32_t n_places)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < n_places; i++) {
		struct rte_mbuf *packet;

		/* nothing comes while control has the queue */
		while (rte_eth_rx_burst(scene->nic.id, 0, &packet, 1) == 0)
			;
		struct stream *stream = stream_of(scene, packet);

		if (stream == NULL) {
			assert_true(n < N_STREAMS);
			stream = &scene->streams[n++];
			stream->tuple = tuple_of(packet);
		}
		stream->places++;
		stream->received++;
		rte_pktmbuf_free(packet);
	}
	assert_int_equal(n, N_STREAMS);
}

static void check_packet(struct scene *scene, const struct rte_mbuf *packet)
{
	uint64_t flags = packet->ol_flags & (RTE_MBUF_F_RX_FDIR | RTE_MBUF_F_RX_FDIR_ID);
	struct stream *stream = stream_of(scene, packet);
	uint64_t expected = 0;

	assert_non_null(stream);
	assert_int_not_equal(stream->kind, DROP);
	if (stream->kind == MARK && !scene->stopped)
		expected = RTE_MBUF_F_RX_FDIR | RTE_MBUF_F_RX_FDIR_ID;
	if (stream->kind == FLAG && !scene->stopped)
		expected = RTE_MBUF_F_RX_FDIR;
	assert_int_equal(flags, expected);
	if (flags & RTE_MBUF_F_RX_FDIR_ID)
		assert_int_equal(packet->hash.fdir.hi, stream->mark ^ scene->wrong);
	scene->marked += (flags & RTE_MBUF_F_RX_FDIR_ID) != 0;
	scene->flagged += flags == RTE_MBUF_F_RX_FDIR;
	stream->since++;
	stream->received++;
}

/* Returns how many came. */
static uint16_t take(struct scene *scene, uint16_t queue, uint16_t n)
{
	struct rte_mbuf *packets[BURST];
	uint16_t got = rte_eth_rx_burst(scene->nic.id, queue, packets, n);

	for (uint16_t i = 0; i < got; i++) {
		check_packet(scene, packets[i]);
		rte_pktmbuf_free(packets[i]);
	}
	return got;
}

static void come(const struct scene *scene, struct stream *stream)
{
	static const struct rte_flow_attr ingress = {.ingress = 1};
	const struct rte_flow_action_queue queue = {.index = stream->kind == ELSEWHERE};
	const struct rte_flow_action_mark mark = {.id = stream->mark};
	const struct rte_flow_action does[N_KINDS] = {
		[MARK] = {.type = RTE_FLOW_ACTION_TYPE_MARK, .conf = &mark},
		[FLAG] = {.type = RTE_FLOW_ACTION_TYPE_FLAG},
		[EDIT] = {.type = RTE_FLOW_ACTION_TYPE_DEC_TTL},
	};
	struct rte_flow_action actions[] = {does[stream->kind],
		{.type = RTE_FLOW_ACTION_TYPE_COUNT},
		{.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &queue},
		{.type = RTE_FLOW_ACTION_TYPE_END}};
	struct rte_flow_error error = {0};
	struct tuple_items items;

	if (stream->kind == DROP)
		actions[2] = (struct rte_flow_action){.type = RTE_FLOW_ACTION_TYPE_DROP};
	if (actions[0].type == RTE_FLOW_ACTION_TYPE_END)
		actions[0].type = RTE_FLOW_ACTION_TYPE_VOID;
	stream->rule = rte_flow_create(
		scene->nic.id, &ingress, tuple_items(&items, &stream->tuple), actions, &error);
	if (stream->rule == NULL)
		fail_msg("refused: %s", error.message == NULL ? "?" : error.message);
	stream->since = 0;
	stream->stands = 0;
}

static uint64_t hits(const struct scene *scene, const struct stream *stream)
{
	static const struct rte_flow_action action[] = {
		{.type = RTE_FLOW_ACTION_TYPE_COUNT}, {.type = RTE_FLOW_ACTION_TYPE_END}};
	struct rte_flow_query_count count = {0};
	struct rte_flow_error error;

	assert_int_equal(rte_flow_query(scene->nic.id, stream->rule, action, &count, &error), 0);
	return count.hits;
}

/* Of the packets that are dropped nobody knows at once; of all others the rule tells what came. */
static void check_hits(const struct scene *scene, const struct stream *stream)
{
	if (scene->standing)
		assert_int_equal(hits(scene, stream), stream->stands);
	else if (stream->kind != DROP)
		assert_int_equal(hits(scene, stream), stream->since);
}

static void set_fault(const struct scene *scene, const char *name, bool on)
{
	struct rte_eth_dev *dev = &rte_eth_devices[scene->nic.id];
	struct sim_port *port = sim_port_of(dev);
	struct error error;
	char text[64];

	snprintf(text, sizeof(text), "%s%s", name, on ? "" : ":off");
	pthread_mutex_lock(&port->lock);
	assert_int_equal(sim_fault_parse(port, text, &error), 0);
	pthread_mutex_unlock(&port->lock);
}

static void stand(struct scene *scene, bool on)
{
	for (unsigned i = 0; on && i < N_STREAMS; i++)
		if (scene->streams[i].rule != NULL)
			scene->streams[i].stands = hits(scene, &scene->streams[i]);
	scene->standing = on;
	set_fault(scene, "count_nothing", on);
}

static void go(struct scene *scene, struct stream *stream)
{
	struct rte_flow_error error;
	bool standing = scene->standing;

	check_hits(scene, stream);
	if (standing)
		stand(scene, false);
	check_hits(scene, stream);
	scene->matched += hits(scene, stream);
	if (stream->kind == DROP) {
		stream->dropped += hits(scene, stream);
		scene->kept += hits(scene, stream);
	}
	assert_int_equal(rte_flow_destroy(scene->nic.id, stream->rule, &error), 0);
	stream->rule = NULL;
	stream->kind = NONE;
	if (standing)
		stand(scene, true);
}

/* Every counter, when nobody receives: the port's and each rule's. */
static void check_all(const struct scene *scene)
{
	uint64_t id, told, sum = scene->matched;

	for (unsigned i = 0; i < N_STREAMS; i++) {
		if (scene->streams[i].rule == NULL)
			continue;
		check_hits(scene, &scene->streams[i]);
		sum += hits(scene, &scene->streams[i]);
	}
	assert_int_equal(rte_eth_xstats_get_id_by_name(scene->nic.id, "rx_matched", &id), 0);
	assert_int_equal(rte_eth_xstats_get_by_id(scene->nic.id, &id, &told, 1), 1);
	if (!scene->standing)
		assert_int_equal(told, sum);
}

static void step(struct scene *scene)
{
	struct stream *stream = &scene->streams[random() % N_STREAMS];

	switch (random() % 64) {
	case 0:
		scene->stopped = !scene->stopped;
		set_fault(scene, "stop_mark", scene->stopped);
		break;
	case 1:
		scene->wrong = !scene->wrong;
		set_fault(scene, "wrong_mark", scene->wrong);
		break;
	case 2:
		stand(scene, !scene->standing);
		break;
	case 3:
		check_all(scene);
		break;
	default:
		if (random() % 4 != 0) {
			take(scene, random() % 8 == 0, 1 + (uint16_t)random() % BURST);
		} else if (stream->rule != NULL) {
			go(scene, stream);
		} else {
			stream->kind = 1 + (enum kind)(random() % (scene->n_kinds - 1));
			stream->mark = (uint32_t)random();
			come(scene, stream);
		}
	}
}

/* Streams all come back, and what is left of the last round is received. */
static void come_home(struct scene *scene)
{
	stand(scene, false);
	for (unsigned i = 0; i < N_STREAMS; i++)
		if (scene->streams[i].rule != NULL)
			go(scene, &scene->streams[i]);
	check_all(scene);
}

static void run(const char *load, uint32_t n_places, unsigned n_kinds, uint64_t passes)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	char args[128];

	assert_non_null(scene);
	srandom(11);
	scene->n_kinds = n_kinds;
	snprintf(args, sizeof(args), "flows=64,side=forward,hostile=0,load=%s,passes=%lu", load,
		(unsigned long)passes);
	nic_open(&scene->nic, "net_flowsim_hits", args);
	learn(scene, n_places);
	for (unsigned i = 0; i < 12000; i++)
		step(scene);
	come_home(scene);
	assert_true(scene->marked > 100 && scene->flagged > 100 && scene->kept > 100);
	for (unsigned empty = 0; passes != 0 && empty < 1000;)
		empty = take(scene, 0, BURST) > 0 ? 0 : empty + 1;
	/* where places moved to another queue they have had the rounds of that */
	for (unsigned i = 0; passes != 0 && i < N_STREAMS; i++) {
		const struct stream *stream = &scene->streams[i];

		assert_int_equal(stream->received + stream->dropped, passes * stream->places);
	}
	check_all(scene);
	nic_close(&scene->nic);
	free(scene);
}

/* A place each, of which entries go along with the places. */
static void hits_of_places_in_any_order(void **state)
{
	(void)state;
	run("uniform", N_STREAMS, ELSEWHERE, 2500);
	run("order", N_STREAMS, ELSEWHERE, 2500);
}

/* Many places have one entry. */
static void hits_of_streams_with_many_places(void **state)
{
	(void)state;
	run("zipf", 65536, ELSEWHERE, 4);
}

static void hits_of_places_that_change_queues(void **state)
{
	(void)state;
	run("uniform", N_STREAMS, N_KINDS, 0);
	run("zipf", 65536, N_KINDS, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hits_of_places_in_any_order),
		cmocka_unit_test(hits_of_streams_with_many_places),
		cmocka_unit_test(hits_of_places_that_change_queues),
	};

	return cmocka_run_group_tests(tests, nic_begin, NULL);
}
