/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/sequence.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "traffic/draw.h"

#define ZIPF_MAX_EXPONENT 4.0
#define ZIPF_PLACES_A_STREAM 4
#define ZIPF_MIN_PLACES (1u << 16)
#define ZIPF_MAX_PLACES (1u << 22)

/* What is drawn of a seed, each independent of the others. */
enum { DRAW_SHUFFLE = 1, DRAW_RANK, DRAW_SIDE, DRAW_REVERSE = 16 };

static struct draw draw_of(const struct sequence_config *config, unsigned what)
{
	return (struct draw){.seed = draw_at(config->seed, what)};
}

/*
 * Of an order: two ports that send the two sides of a set by one seed send them in orders of their own,
 * while the same flows are the busy ones.
 */
static struct draw draw_order(
	const struct sequence_config *config, unsigned what, enum stream_sides sides)
{
	return draw_of(config, sides == STREAM_REVERSE ? what + DRAW_REVERSE : what);
}

static void shuffle(uint32_t *numbers, uint32_t n, struct draw draw)
{
	for (uint32_t i = n - 1; i > 0; i--) {
		uint32_t other = draw_below(draw_next(&draw), i + 1);
		uint32_t number = numbers[i];

		numbers[i] = numbers[other];
		numbers[other] = number;
	}
}

static uint32_t *count_up(uint32_t n)
{
	uint32_t *numbers = malloc((size_t)n * sizeof(*numbers));

	for (uint32_t i = 0; numbers != NULL && i < n; i++)
		numbers[i] = i;
	return numbers;
}

/*
 * Ranks 1 to n drawn by rank^-s without a table: W. Hoermann and G. Derflinger, "Rejection-inversion to
 * generate variates from monotone discrete distributions", 1996. An area under the curve x^-s is drawn
 * and brought back to x; the nearest rank is taken if the area lies in its own part, and most do.
 */
struct zipf {
	double s;
	double from, to; /* areas up to 1.5 without rank 1's own, and up to n + 0.5 */
	double sure;	 /* so near to a rank that it need not be looked at */
	uint32_t n;
	struct draw draw;
};

/* The area under x^-s up to x, but for a constant. */
static double area(const struct zipf *zipf, double x)
{
	double power = 1 - zipf->s;

	return fabs(power) < 1e-9 ? log(x) : expm1(power * log(x)) / power;
}

static double area_inverse(const struct zipf *zipf, double a)
{
	double power = 1 - zipf->s;

	if (fabs(power) < 1e-9)
		return exp(a);
	/* rounding must not bring it below where the curve begins */
	return exp(log1p(fmax(power * a, -1 + 1e-15)) / power);
}

static void zipf_init(struct zipf *zipf)
{
	zipf->from = area(zipf, 1.5) - 1;
	zipf->to = area(zipf, zipf->n + 0.5);
	zipf->sure = 2 - area_inverse(zipf, area(zipf, 2.5) - pow(2, -zipf->s));
}

static uint32_t zipf_rank(struct zipf *zipf)
{
	for (;;) {
		double even = (double)(draw_next(&zipf->draw) >> 11) * 0x1p-53;
		double a = zipf->to + even * (zipf->from - zipf->to);
		double x = area_inverse(zipf, a);
		double rank = fmin(fmax(floor(x + 0.5), 1), zipf->n);

		if (rank - x <= zipf->sure || a >= area(zipf, rank + 0.5) - pow(rank, -zipf->s))
			return (uint32_t)rank;
	}
}

static uint32_t zipf_places(const struct sequence_config *config, uint64_t streams)
{
	uint64_t places = ZIPF_PLACES_A_STREAM * streams;

	if (config->n_places != 0)
		return config->n_places;
	if (places < ZIPF_MIN_PLACES)
		return ZIPF_MIN_PLACES;
	return places > ZIPF_MAX_PLACES ? ZIPF_MAX_PLACES : (uint32_t)places;
}

static int create_zipf(uint32_t **places, uint32_t *n_places, uint32_t flows,
	enum stream_sides sides, const struct sequence_config *config)
{
	struct zipf zipf = {
		.s = config->exponent, .n = flows, .draw = draw_order(config, DRAW_RANK, sides)};
	struct draw side = draw_of(config, DRAW_SIDE);
	uint32_t *flow_of_rank = count_up(flows);
	uint32_t *round;

	*n_places = zipf_places(config, (uint64_t)flows * (sides == STREAM_BOTH ? 2 : 1));
	*places = round = malloc((size_t)*n_places * sizeof(*round));
	if (flow_of_rank == NULL || round == NULL) {
		free(flow_of_rank);
		free(round);
		return -ENOMEM;
	}
	shuffle(flow_of_rank, flows, draw_of(config, DRAW_SHUFFLE));
	zipf_init(&zipf);
	for (uint32_t i = 0; i < *n_places; i++) {
		uint32_t stream = 2 * flow_of_rank[zipf_rank(&zipf) - 1];

		if (sides == STREAM_BOTH)
			stream += draw_below(draw_next(&side), 2);
		round[i] = stream + (sides == STREAM_REVERSE);
	}
	free(flow_of_rank);
	return 0;
}

/* Each stream of these sides once. */
static int create_whole(uint32_t **places, uint32_t *n_places, uint32_t flows,
	enum stream_sides sides, const struct sequence_config *config)
{
	uint32_t n = sides == STREAM_BOTH ? 2 * flows : flows;
	uint32_t *round = count_up(n);

	if (round == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; sides != STREAM_BOTH && i < n; i++)
		round[i] = 2 * i + (sides == STREAM_REVERSE);
	if (config->load == SEQUENCE_UNIFORM)
		shuffle(round, n, draw_order(config, DRAW_SHUFFLE, sides));
	*places = round;
	*n_places = n;
	return 0;
}

int sequence_create(uint32_t **places, uint32_t *n_places, uint32_t flows, enum stream_sides sides,
	const struct sequence_config *config, struct error *error)
{
	bool zipf = config->load == SEQUENCE_ZIPF;
	int ret;

	if (flows == 0 || flows > STREAM_MAX_FLOWS)
		return error_set(
			error, -EINVAL, "flows: %u is not 1 to %u", flows, STREAM_MAX_FLOWS);
	if (sides < STREAM_FORWARD || sides > STREAM_BOTH)
		return error_set(error, -EINVAL, "sides: %d is none of 1, 2 and 3", (int)sides);
	if (zipf && !(config->exponent > 0 && config->exponent <= ZIPF_MAX_EXPONENT))
		return error_set(error, -EINVAL, "zipf: the exponent is above 0 and at most %g",
			ZIPF_MAX_EXPONENT);
	if (zipf)
		ret = create_zipf(places, n_places, flows, sides, config);
	else
		ret = create_whole(places, n_places, flows, sides, config);
	return ret < 0 ? error_set(error, ret, "no memory for a round of streams") : 0;
}

int sequence_load_parse(struct sequence_config *config, const char *word, struct error *error)
{
	static const char *const words[] = {
		[SEQUENCE_IN_ORDER] = "order",
		[SEQUENCE_UNIFORM] = "uniform",
		[SEQUENCE_ZIPF] = "zipf",
	};
	const unsigned n = sizeof(words) / sizeof(words[0]);
	static const char with_exponent[] = "zipf:";

	if (strncmp(word, with_exponent, sizeof(with_exponent) - 1) == 0) {
		const char *number = word + sizeof(with_exponent) - 1;
		char *end;
		double exponent = strtod(number, &end);

		if (end == number || *end != '\0' ||
			strspn(number, "0123456789.") != strlen(number) ||
			!(exponent > 0 && exponent <= ZIPF_MAX_EXPONENT))
			return error_set(error, -EINVAL,
				"'%s': the exponent is a number above 0 and at most %g", word,
				ZIPF_MAX_EXPONENT);
		config->load = SEQUENCE_ZIPF;
		config->exponent = exponent;
		return 0;
	}
	for (unsigned i = 0; i < n; i++) {
		if (strcmp(word, words[i]) != 0)
			continue;
		config->load = (enum sequence_load)i;
		config->exponent = 1;
		return 0;
	}
	const char *near = suggest(word, words, n);

	return error_set(error, -EINVAL, "'%s' is no load: order, uniform, zipf or zipf:S%s%s",
		word, near == NULL ? "" : "; did you mean ", near == NULL ? "" : near);
}
