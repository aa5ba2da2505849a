/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/admission_load.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "traffic/draw.h"

#define MS_US 1000
#define ZIPF_FLOWS 1000000
#define ZIPF_A_MS 5000
/* Live flows at a time, at most: twice as many as there ever are. */
#define MOST_LIVE (1u << 20)
/* A wheel of milliseconds, longer than any flow waits for its next packet. */
#define WHEEL (1u << 20)
#define MOST_WAIT_US ((uint64_t)(WHEEL - 2) * MS_US)
#define MOST_SIZE 1000000
#define LONGEST_S 600
#define NONE UINT32_MAX

const char *const admission_loads[] = {
	"zipf-1.0", "zipf-1.1", "churn-1.05", "churn-1.2", "websearch", NULL};

enum kind { ZIPF, CHURN, SEARCH, CAPTURE };

static const struct {
	enum kind kind;
	double parameter;
	uint32_t new_a_s;
} kinds[] = {
	{ZIPF, 1.0, 0},
	{ZIPF, 1.1, 0},
	{CHURN, 1.05, 20000},
	{CHURN, 1.2, 20000},
	{SEARCH, 0, 1000},
};

/* Sizes in packets and the share of flows that are not larger; straight between them. */
static const struct {
	double size, share;
} search[] = {{1, 0}, {6, 0.15}, {13, 0.2}, {19, 0.3}, {33, 0.4}, {53, 0.53}, {133, 0.6},
	{667, 0.7}, {1333, 0.8}, {3333, 0.9}, {6667, 0.97}, {20000, 1}};

struct live {
	double rate; /* packets a microsecond */
	uint64_t due_us;
	uint32_t flow;
	uint32_t left; /* packets */
	uint32_t next; /* due in the same millisecond; of a free one: the next free one */
};

struct admission_load {
	enum kind kind;
	double parameter, new_a_us;
	struct draw draw;
	uint64_t now_ms;
	struct admission_packet *packets;
	uint32_t n_packets, room;
	/* Zipf: Walker's tables, by place */
	uint32_t *other;
	float *stays;
	/* the others */
	struct live *live;
	uint32_t *wheel;
	uint32_t free, n_flows;
	double begins_us; /* of the next flow */
	/* a capture's */
	struct admission_packet *all;
	uint32_t n_all, at;
};

static double uniform(struct admission_load *load)
{
	return ((double)(draw_next(&load->draw) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(struct admission_load *load)
{
	double radius = sqrt(-2 * log(uniform(load)));

	return radius * cos(2 * M_PI * uniform(load));
}

/* The mean is 1. */
static double exponential(struct admission_load *load)
{
	return -log(uniform(load));
}

static bool add(struct admission_load *load, uint64_t us, uint32_t flow)
{
	if (load->n_packets == load->room) {
		uint32_t room = load->room == 0 ? 1u << 14 : 2 * load->room;
		void *packets = realloc(load->packets, room * sizeof(load->packets[0]));

		if (packets == NULL)
			return false;
		load->packets = packets;
		load->room = room;
	}
	load->packets[load->n_packets++] = (struct admission_packet){us, flow};
	return true;
}

/* Walker's alias method: a place is drawn evenly, and stays or is exchanged for another. */
static void make_tables(struct admission_load *load, double *share, uint32_t *few, uint32_t *many)
{
	uint32_t n_few = 0, n_many = 0;
	double sum = 0;

	for (uint32_t i = 0; i < ZIPF_FLOWS; i++)
		sum += share[i] = pow(i + 1.0, -load->parameter);
	for (uint32_t i = 0; i < ZIPF_FLOWS; i++) {
		share[i] *= ZIPF_FLOWS / sum;
		load->stays[i] = 1;
		if (share[i] < 1)
			few[n_few++] = i;
		else
			many[n_many++] = i;
	}
	while (n_few > 0 && n_many > 0) {
		uint32_t from = few[--n_few], to = many[n_many - 1];

		load->stays[from] = (float)share[from];
		load->other[from] = to;
		share[to] -= 1 - share[from];
		if (share[to] < 1) {
			n_many--;
			few[n_few++] = to;
		}
	}
}

static int make_zipf(struct admission_load *load)
{
	double *share = malloc(ZIPF_FLOWS * sizeof(*share));
	uint32_t *few = malloc(ZIPF_FLOWS * sizeof(*few));
	uint32_t *many = malloc(ZIPF_FLOWS * sizeof(*many));
	int ret = -ENOMEM;

	load->other = calloc(ZIPF_FLOWS, sizeof(load->other[0]));
	load->stays = calloc(ZIPF_FLOWS, sizeof(load->stays[0]));
	if (share != NULL && few != NULL && many != NULL && load->other != NULL &&
		load->stays != NULL) {
		make_tables(load, share, few, many);
		ret = 0;
	}
	free(share);
	free(few);
	free(many);
	return ret;
}

static int make_churn(struct admission_load *load)
{
	load->live = calloc(MOST_LIVE, sizeof(load->live[0]));
	load->wheel = malloc(WHEEL * sizeof(load->wheel[0]));
	if (load->live == NULL || load->wheel == NULL)
		return -ENOMEM;
	memset(load->wheel, 0xff, WHEEL * sizeof(load->wheel[0]));
	for (uint32_t i = 0; i < MOST_LIVE; i++)
		load->live[i].next = i + 1 < MOST_LIVE ? i + 1 : NONE;
	return 0;
}

int admission_load_create(struct admission_load **out, const char *name, uint64_t seed)
{
	unsigned i = 0;

	while (admission_loads[i] != NULL && strcmp(admission_loads[i], name) != 0)
		i++;
	if (admission_loads[i] == NULL)
		return -EINVAL;
	struct admission_load *load = calloc(1, sizeof(*load));

	if (load == NULL)
		return -ENOMEM;
	load->kind = kinds[i].kind;
	load->parameter = kinds[i].parameter;
	load->new_a_us = kinds[i].new_a_s / 1e6;
	load->draw.seed = seed;
	int ret = load->kind == ZIPF ? make_zipf(load) : make_churn(load);

	if (ret < 0)
		admission_load_destroy(load);
	else
		*out = load;
	return ret;
}

int admission_load_open(struct admission_load **out, const char *path, struct error *error)
{
	struct admission_load *load = calloc(1, sizeof(*load));
	int ret;

	if (load == NULL)
		return error_set(error, -ENOMEM, "no memory");
	load->kind = CAPTURE;
	ret = admission_capture_read(path, &load->all, &load->n_all, &load->n_flows, error);
	if (ret < 0)
		admission_load_destroy(load);
	else
		*out = load;
	return ret;
}

void admission_load_destroy(struct admission_load *load)
{
	if (load == NULL)
		return;
	free(load->packets);
	free(load->all);
	free(load->other);
	free(load->stays);
	free(load->live);
	free(load->wheel);
	free(load);
}

uint32_t admission_load_flows(const struct admission_load *load, unsigned seconds)
{
	if (load->kind == CAPTURE)
		return load->n_flows;
	/* of so many the chance of a tenth more is none */
	return load->kind == ZIPF ? ZIPF_FLOWS
				  : (uint32_t)(1.1e6 * load->new_a_us * (seconds + 1)) + 1000;
}

uint32_t admission_load_begun(const struct admission_load *load)
{
	return load->kind == ZIPF ? ZIPF_FLOWS : load->n_flows;
}

unsigned admission_load_seconds(const struct admission_load *load)
{
	return load->kind == CAPTURE ? (unsigned)(load->all[load->n_all - 1].us / 1000000) + 1 : 0;
}

static double draw_size(struct admission_load *load)
{
	double drawn = uniform(load), size;
	unsigned i = 1;

	if (load->kind == CHURN) {
		size = floor(1 + pow(drawn, -1 / load->parameter));
		return size < MOST_SIZE ? size : MOST_SIZE;
	}
	while (search[i].share < drawn)
		i++;
	double part = (drawn - search[i - 1].share) / (search[i].share - search[i - 1].share);

	return ceil(search[i - 1].size + part * (search[i].size - search[i - 1].size));
}

static void put(struct admission_load *load, uint32_t i)
{
	uint32_t *first = &load->wheel[load->live[i].due_us / MS_US % WHEEL];

	load->live[i].next = *first;
	*first = i;
}

static void begin_flow(struct admission_load *load)
{
	uint32_t i = load->free;

	/* more than there can be: the load would be another */
	if (i == NONE)
		abort();
	struct live *live = &load->live[i];
	double size = draw_size(load);
	double pps = 3 * exp(1.2 * normal(load)) * pow(size, 0.45);

	if (size / pps > LONGEST_S)
		pps = size / LONGEST_S;
	load->free = live->next;
	*live = (struct live){
		.rate = pps / 1e6,
		.due_us = (uint64_t)load->begins_us,
		.flow = load->n_flows++,
		.left = (uint32_t)size,
	};
	put(load, i);
}

static bool send(struct admission_load *load, uint32_t i)
{
	struct live *live = &load->live[i];
	double wait_us = exponential(load) / live->rate;

	if (!add(load, live->due_us, live->flow))
		return false;
	if (--live->left == 0) {
		live->next = load->free;
		load->free = i;
		return true;
	}
	live->due_us += wait_us < (double)MOST_WAIT_US ? (uint64_t)wait_us : MOST_WAIT_US;
	put(load, i);
	return true;
}

static int by_time(const void *a, const void *b)
{
	const struct admission_packet *x = a, *y = b;

	if (x->us != y->us)
		return x->us < y->us ? -1 : 1;
	return (x->flow > y->flow) - (x->flow < y->flow);
}

static bool next_of_churn(struct admission_load *load)
{
	uint32_t *first = &load->wheel[load->now_ms % WHEEL];
	double end_us = (double)(load->now_ms + 1) * MS_US;

	while (load->begins_us < end_us) {
		begin_flow(load);
		load->begins_us += exponential(load) / load->new_a_us;
	}
	/* what is sent may be due in this millisecond again */
	while (*first != NONE) {
		uint32_t i = *first;

		*first = load->live[i].next;
		if (!send(load, i))
			return false;
	}
	qsort(load->packets, load->n_packets, sizeof(load->packets[0]), by_time);
	return true;
}

static bool next_of_zipf(struct admission_load *load)
{
	for (uint32_t i = 0; i < ZIPF_A_MS; i++) {
		uint64_t drawn = draw_next(&load->draw);
		uint32_t place = draw_below(drawn, ZIPF_FLOWS);
		float stays = (float)(drawn & 0xffffff) / (float)0x1000000;

		if (stays >= load->stays[place])
			place = load->other[place];
		if (!add(load, load->now_ms * MS_US + (uint64_t)i * MS_US / ZIPF_A_MS, place))
			return false;
	}
	return true;
}

/* They lie in order already. */
static const struct admission_packet *next_of_capture(struct admission_load *load, uint32_t *n)
{
	const uint32_t from = load->at;

	while (load->at < load->n_all && load->all[load->at].us / MS_US <= load->now_ms)
		load->at++;
	load->now_ms++;
	*n = load->at - from;
	return &load->all[from];
}

const struct admission_packet *admission_load_next(struct admission_load *load, uint32_t *n)
{
	if (load->kind == CAPTURE)
		return next_of_capture(load, n);
	load->n_packets = 0;
	bool good = load->kind == ZIPF ? next_of_zipf(load) : next_of_churn(load);

	load->now_ms++;
	*n = load->n_packets;
	return good ? load->packets : NULL;
}
