/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/limits.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_byteorder.h>
#include <rte_common.h>
#include <rte_pause.h>

#include "base/monotonic.h"
#include "rteflow/answer.h"

/* Rules that are made and destroyed one at a time, and for how long at most. */
#define SINGLES 1000
#define SINGLES_US 3000000
/* Operations that are under way at once. */
#define MANY 256
/* So many refusals one after the other: the table is full, or the NIC is past asking. */
#define REFUSALS 4
#define FAILURES 16
/* An answer that does not come by then will not come. */
#define ANSWER_US 2000000
#define TRIALS 4
#define STEP_EACH 1024
/* Deletes one by one where that takes less; else one call for all. */
#define ONE_BY_ONE_US 2000000

struct measuring {
	struct limits *limits;
	const struct limits_config *config;
	struct provider *provider;
	struct rule_handle *rules; /* by place, of a form; NULL: the provider has them */
	bool *there;		   /* by place: it has a rule */
	uint64_t *times;	   /* SINGLES */
	enum provider_op op;	   /* what is measured */
	uint32_t place;		   /* the next one */
	uint32_t end;		   /* behind the last place that has a rule */
	uint32_t done;		   /* operations that succeeded */
	uint32_t under_way;
	unsigned refused, failures; /* one after the other */
	bool async;		    /* answers come later */
	bool over;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

uint64_t limits_percentile(uint64_t *times, uint32_t n, double share)
{
	if (n == 0)
		return 0;
	qsort(times, n, sizeof(*times), compare);
	uint32_t at = (uint32_t)((double)n * share);

	return times[RTE_MIN(at, n - 1)];
}

void limits_rule(struct offload_rule *rule, enum provider_kind kind, uint32_t i)
{
	bool six = kind >= PROVIDER_IPV6_TCP, icmp = kind % PROVIDER_IPV6_TCP == PROVIDER_IPV4_ICMP;
	static const uint8_t protocols[] = {IPPROTO_TCP, IPPROTO_UDP, IPPROTO_SCTP, IPPROTO_ICMP};
	struct flow_key *key = &rule->key;

	memset(rule, 0, sizeof(*rule));
	for (unsigned end = 0; end < 2; end++) {
		static const uint8_t ipv6[16] = {0x20, 0x01, 0x00, 0x02};
		uint8_t *low = six ? &key->addr[end][12] : key->addr[end];

		if (six)
			memcpy(key->addr[end], ipv6, sizeof(ipv6));
		low[0] = 198;
		low[1] = (uint8_t)(18 + end);
	}
	/* both ends differ in all that rules of a kind may differ in */
	uint8_t *client = six ? &key->addr[0][12] : key->addr[0];
	uint8_t *server = six ? &key->addr[1][12] : key->addr[1];

	client[2] = (uint8_t)(i >> 8);
	client[3] = (uint8_t)i;
	server[2] = (uint8_t)(i >> 16);
	server[3] = 1;
	if (!icmp) {
		key->port[0] = rte_cpu_to_be_16((uint16_t)(1024 + i % 50000));
		key->port[1] = RTE_BE16(9);
	}
	key->proto = six && icmp ? IPPROTO_ICMPV6 : protocols[kind % PROVIDER_IPV6_TCP];
	key->version_wire = FLOW_KEY_VERSION_WIRE(six ? 6 : 4, 0);
	rule->mark = 1 + i % 0xff00;
}

static void step(const struct measuring *measuring, const char *what, unsigned allow_s)
{
	const struct limits_config *config = measuring->config;

	if (config->step != NULL)
		config->step(config->context, what, measuring->limits->rules, allow_s);
}

static void take_refusal(struct measuring *measuring, int ret, const struct provider_why *why)
{
	struct limits *limits = measuring->limits;

	if (measuring->op == PROVIDER_REMOVE) {
		limits->refused_removes++;
		return;
	}
	limits->why = *why;
	if (ret == -ENOSPC || ret == -EOPNOTSUPP) {
		measuring->refused++;
	} else {
		limits->failed++;
		measuring->failures++;
	}
	if (measuring->refused >= REFUSALS || measuring->failures >= FAILURES) {
		limits->end = measuring->refused >= REFUSALS ? LIMITS_FULL : LIMITS_FAILED;
		measuring->over = true;
	}
}

/* The end of an operation. */
static void take_end(
	struct measuring *measuring, uint32_t place, int ret, const struct provider_why *why)
{
	if (ret != 0) {
		take_refusal(measuring, ret, why);
		return;
	}
	measuring->done++;
	if (measuring->op == PROVIDER_REMOVE)
		return;
	measuring->limits->rules++;
	measuring->there[place] = true;
	measuring->end = RTE_MAX(measuring->end, place + 1);
	measuring->refused = measuring->failures = 0;
}

/* Completions that came; how many of them. */
static unsigned poll_ends(struct measuring *measuring)
{
	struct provider_done done[MANY];
	unsigned n = provider_poll(measuring->provider, done, MANY);

	for (unsigned i = 0; i < n; i++) {
		/* inserts may end after they were given up */
		if (done[i].op == measuring->op)
			take_end(measuring, done[i].place, done[i].result, &done[i].why);
		else if (done[i].result != 0)
			measuring->limits->refused_removes++;
		measuring->under_way -= measuring->under_way > 0;
	}
	return n;
}

/* Until no more than `left` are under way; false: nothing comes any more. */
static bool await(struct measuring *measuring, uint32_t left)
{
	uint64_t begin_us = monotonic_us();

	while (measuring->under_way > left) {
		if (poll_ends(measuring) > 0)
			begin_us = monotonic_us();
		else if (monotonic_us() - begin_us > ANSWER_US)
			return false;
		rte_pause();
	}
	return true;
}

static int insert_form(struct measuring *measuring, uint32_t place, struct provider_why *why)
{
	const struct limits_config *config = measuring->config;
	struct form_aim aim = {.port = config->port->rss, .target = config->port->target};
	struct form_rule built;
	int ret;

	limits_rule(&aim.rule, measuring->limits->kind, place);
	/* its marks may be narrower than an engine's are */
	aim.rule.mark = rule_mark(config->port);
	form_build(&built, config->form, &aim);
	ret = rule_create(config->port, &built, &measuring->rules[place], why);
	return ret == 0 ? 0 : answer_insert(why->error, true);
}

static int ask_once(struct measuring *measuring, uint32_t place, struct provider_why *why)
{
	struct rule_handle *handle = measuring->rules != NULL ? &measuring->rules[place] : NULL;
	struct offload_rule rule;

	if (measuring->op == PROVIDER_REMOVE) {
		if (handle == NULL)
			return provider_remove(measuring->provider, place, why);
		return handle->flow == NULL ? 0
					    : rule_destroy(measuring->config->port, handle, why);
	}
	if (handle != NULL)
		return insert_form(measuring, place, why);
	limits_rule(&rule, measuring->limits->kind, place);
	return provider_insert(measuring->provider, place, &rule, why);
}

static void ask(struct measuring *measuring, uint32_t place)
{
	struct provider_why why = {0};
	int ret = -EAGAIN;

	for (unsigned i = 0; i < FAILURES && ret == -EAGAIN; i++) {
		ret = ask_once(measuring, place, &why);
		/* a queue that is full */
		if (ret == -EAGAIN && measuring->under_way > 0)
			poll_ends(measuring);
	}
	if (ret == -EINPROGRESS) {
		measuring->under_way++;
		measuring->async = true;
	} else {
		take_end(measuring, place, ret, &why);
	}
}

/* Is there a place to go on with? Of a delete one that has a rule; an insert's end says why there is none. */
static bool has_next(struct measuring *measuring, uint64_t until_us)
{
	const struct provider_config *config = &measuring->config->provider;
	struct limits *limits = measuring->limits;

	if (measuring->op == PROVIDER_REMOVE) {
		while (measuring->place < measuring->end && !measuring->there[measuring->place])
			measuring->place++;
		return measuring->place < measuring->end && monotonic_us() < until_us;
	}
	if (measuring->over)
		return false;
	if (config->stop != NULL && atomic_load_explicit(config->stop, memory_order_acquire))
		limits->end = LIMITS_STOPPED;
	else if (measuring->place == config->n_places)
		limits->end = LIMITS_CAP;
	else if (monotonic_us() >= until_us)
		limits->end = LIMITS_TIME;
	else
		return true;
	measuring->over = true;
	return false;
}

/* One at a time: the times of those that succeed are latencies. */
static void measure_singly(
	struct measuring *measuring, struct limits_latency *latency, uint64_t until_us)
{
	const char *what = measuring->op == PROVIDER_INSERT ? "insert" : "delete";
	const uint64_t begin_ns = now_ns(), single_us = monotonic_us() + SINGLES_US;
	uint64_t took_ns;
	uint32_t n = 0;

	while (n < SINGLES && monotonic_us() < single_us && has_next(measuring, until_us)) {
		const uint32_t before = measuring->done;
		uint64_t one_ns;

		step(measuring, what, 0);
		one_ns = now_ns();
		ask(measuring, measuring->place++);
		if (!await(measuring, 0))
			measuring->under_way = 0;
		if (measuring->done > before)
			measuring->times[n++] = now_ns() - one_ns;
	}
	took_ns = now_ns() - begin_ns;
	latency->times = n;
	latency->p50_ns = limits_percentile(measuring->times, n, 0.5);
	latency->p99_ns = limits_percentile(measuring->times, n, 0.99);
	if (n > 0 && took_ns > 0)
		latency->per_s = 1e9 * (double)n / (double)took_ns;
}

/* Asks for as many at once as the back end takes. False: some were not answered. */
static bool measure_together(
	struct measuring *measuring, struct limits_latency *latency, uint64_t until_us)
{
	const char *what = measuring->op == PROVIDER_INSERT ? "insert" : "delete";
	const uint64_t begin_ns = now_ns();
	const uint32_t before = measuring->done;
	bool answered = true;

	for (unsigned i = 0; answered && has_next(measuring, until_us); i++) {
		if (i % STEP_EACH == 0)
			step(measuring, what, 0);
		ask(measuring, measuring->place++);
		answered = await(measuring, MANY - 1);
	}
	answered = answered && await(measuring, 0);
	/* the better figure, where there is one */
	if (answered && measuring->done >= before + MANY)
		latency->per_s =
			1e9 * (double)(measuring->done - before) / (double)(now_ns() - begin_ns);
	return answered;
}

static void fill(struct measuring *measuring, uint64_t until_us)
{
	struct limits *limits = measuring->limits;

	measuring->op = PROVIDER_INSERT;
	measure_singly(measuring, &limits->insert, until_us);
	if (!measure_together(measuring, &limits->insert, until_us) && limits->end == LIMITS_NONE) {
		limits->end = LIMITS_FAILED;
		limits->why =
			(struct provider_why){.error = ETIMEDOUT, .words = "no completion came"};
	}
	if (limits->rules == 0 && limits->end != LIMITS_STOPPED)
		limits->end = LIMITS_NONE;
}

/* Deletes for as long as that is quick: what is left then goes by one call. Returns how many places that are. */
static uint32_t empty(struct measuring *measuring)
{
	struct limits_latency *remove = &measuring->limits->remove;
	/* rules of a form have nobody else who would take them away */
	const bool all = measuring->rules != NULL;
	uint64_t rest_us;
	uint32_t begun;

	measuring->op = PROVIDER_REMOVE;
	measuring->place = measuring->done = measuring->under_way = 0;
	measure_singly(measuring, remove, UINT64_MAX);
	begun = measuring->place;
	rest_us = remove->p50_ns * (uint64_t)(measuring->end - begun) / 1000;
	/* one after the other these are no faster than before */
	if (!all && (remove->times == 0 || (rest_us > ONE_BY_ONE_US && !measuring->async)))
		return measuring->end - begun;
	if (!measure_together(measuring, remove, all ? UINT64_MAX : monotonic_us() + ONE_BY_ONE_US))
		return measuring->end - begun;
	return measuring->end - measuring->place;
}

/* The kind that most flows are of, where it is granted. */
static enum provider_kind choose_kind(const struct provider_abilities *abilities)
{
	static const enum provider_kind order[] = {PROVIDER_IPV4_UDP, PROVIDER_IPV4_TCP,
		PROVIDER_IPV6_UDP, PROVIDER_IPV6_TCP, PROVIDER_IPV4_SCTP, PROVIDER_IPV6_SCTP,
		PROVIDER_IPV4_ICMP, PROVIDER_IPV6_ICMP};

	for (unsigned i = 0; i < RTE_DIM(order); i++)
		if (abilities->kind[order[i]])
			return order[i];
	return PROVIDER_N_KINDS;
}

/* Rules of the form, where the port takes none of the engine's. */
static int turn_to_form(struct measuring *measuring)
{
	const struct limits_config *config = measuring->config;
	struct limits *limits = measuring->limits;

	if (limits->kind != PROVIDER_N_KINDS || config->form == NULL)
		return 0;
	measuring->rules = calloc(config->provider.n_places, sizeof(*measuring->rules));
	if (measuring->rules == NULL)
		return -ENOMEM;
	limits->kind = config->form->pattern.kind;
	limits->by_form = true;
	return 0;
}

static int open_provider(struct measuring *measuring)
{
	struct provider_config config = measuring->config->provider;
	int ret;

	step(measuring, "trial", 0);
	ret = provider_open(&measuring->provider, &config);
	while (ret == 0 && provider_is_trying(provider_abilities(measuring->provider)) &&
		++config.trials < TRIALS) {
		step(measuring, "trial", 0);
		ret = provider_try_again(&measuring->provider, &config);
	}
	return ret;
}

/* Takes away the rules of the last `rest` places. */
static void close_provider(struct measuring *measuring, uint32_t rest)
{
	struct limits *limits = measuring->limits;
	uint64_t begin_us, each_us = limits->remove.p50_ns / 1000 + 1;

	if (rest > 0)
		step(measuring, "delete all", (unsigned)(2 * each_us * rest / 1000000 + 30));
	begin_us = monotonic_us();
	limits->left = provider_close(measuring->provider);
	if (rest > 0) {
		limits->all_away = rest;
		limits->all_away_us = monotonic_us() - begin_us;
	}
}

int limits_measure(struct limits *limits, const struct limits_config *config)
{
	struct measuring measuring = {.limits = limits, .config = config};
	uint64_t now_us = monotonic_us(), fill_until_us = 0;
	uint32_t rest = 0;
	int ret;

	/* as long again for what has to go */
	if (now_us < config->deadline_us)
		fill_until_us = now_us + (config->deadline_us - now_us) / 2;
	memset(limits, 0, sizeof(*limits));
	measuring.times = calloc(SINGLES, sizeof(*measuring.times));
	measuring.there = calloc(config->provider.n_places, sizeof(*measuring.there));
	ret = measuring.times == NULL || measuring.there == NULL ? -ENOMEM
								 : open_provider(&measuring);
	if (ret == 0) {
		limits->abilities = *provider_abilities(measuring.provider);
		limits->kind = choose_kind(&limits->abilities);
		ret = turn_to_form(&measuring);
		if (ret == 0 && limits->kind != PROVIDER_N_KINDS) {
			fill(&measuring, fill_until_us);
			rest = empty(&measuring);
		}
		close_provider(&measuring, rest);
	}
	free(measuring.rules);
	free(measuring.there);
	free(measuring.times);
	return ret;
}
