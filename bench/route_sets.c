/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sets of routes for the bench. Where there is no file, routes by chance of the lengths that Debian's
 * libloc-database of 2022 has, clustered as networks are: a block of a network, then runs of longer
 * prefixes in it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/route.h"
#include "route/table_file.h"

#define USUAL_DIRECTORY "../shared/routes"
#define REAL_V4 1069950
#define REAL_V6 220103
#define FILE_MEMORY ((size_t)2 << 30)
#define NEXT_HOPS 256
/* Longer prefixes in a block, at most. */
#define MOST_IN_BLOCK 16

const char *const route_loads[] = {"ipv4", "ipv6", NULL};

/* So many of 10,000 routes have prefixes of this length. */
struct share {
	uint8_t length;
	uint16_t share;
};

static const struct share lengths_v4[] = {{13, 8}, {14, 17}, {15, 29}, {16, 175}, {17, 92},
	{18, 151}, {19, 274}, {20, 462}, {21, 557}, {22, 1355}, {23, 1112}, {24, 5762}, {32, 6}};
static const struct share lengths_v6[] = {{28, 12}, {29, 684}, {30, 47}, {31, 19}, {32, 1791},
	{33, 172}, {34, 161}, {35, 65}, {36, 346}, {37, 46}, {38, 82}, {39, 58}, {40, 695},
	{41, 43}, {42, 114}, {43, 58}, {44, 858}, {45, 82}, {46, 178}, {47, 155}, {48, 4323},
	{64, 11}};

uint64_t route_random(uint64_t *state)
{
	/* xorshift64* */
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(0x2545f4914f6cdd1d);
}

static unsigned draw_length(unsigned version, uint64_t *random)
{
	const struct share *at = version == 4 ? lengths_v4 : lengths_v6;
	unsigned drawn = (unsigned)(route_random(random) % 10000);

	while (drawn >= at->share)
		drawn -= (at++)->share;
	return at->length;
}

/* The first bits of a network: the parts of IPv6 that registries give out, and what IPv4 routes. */
static uint64_t draw_block(unsigned version, uint64_t *random)
{
	static const uint16_t registries[] = {0x2000, 0x2400, 0x2600, 0x2800, 0x2a00, 0x2c00};
	uint64_t bits = route_random(random);

	if (version == 4)
		return (bits % 223 + 1) << 56 | (bits >> 8 & 0xffffff) << 32;
	uint64_t registry = registries[bits % 6] | (bits >> 8 & 0xf);

	/* few of the next bits are in use */
	return registry << 48 | (bits >> 16 & 0x3fff) << 34 | (bits >> 32 & 0x3ffff) << 16;
}

/* A block and runs of prefixes in it, as long as there are fewer than `n`. */
static int add_block(
	struct fib *fib, unsigned version, uint32_t n, uint32_t *added, uint64_t *random)
{
	uint64_t block = draw_block(version, random);
	unsigned in_block = 1 + (unsigned)(route_random(random) % MOST_IN_BLOCK);
	/* next to one another from some place in the block on */
	uint64_t next = block;

	for (unsigned i = 0; i < in_block && *added < n; i++) {
		unsigned length = draw_length(version, random);
		struct route_bits bits = route_bits_cut((struct route_bits){next, 0}, length);
		struct route_prefix prefix = {
			.version = (uint8_t)version, .length = (uint8_t)length};

		route_bits_to(bits, prefix.addr);
		int ret = fib_add(fib, &prefix, (uint32_t)(route_random(random) % NEXT_HOPS));

		if (ret < 0)
			return ret;
		*added += ret == 0;
		next = bits.high + (UINT64_C(1) << (length < 64 ? 64 - length : 0));
	}
	return 0;
}

static int make_routes(struct fib *fib, unsigned version, uint32_t n)
{
	uint64_t random = 1;
	uint32_t added = 0;
	int ret = 0;

	while (ret == 0 && added < n)
		ret = add_block(fib, version, n, &added, &random);
	return ret;
}

static bool take(void *context, const struct route_prefix *prefix, uint32_t next_hop)
{
	struct route_set *set = context;

	set->routes[set->n++] = (struct route_entry){*prefix, next_hop};
	return true;
}

static int list_routes(struct route_set *set, const struct fib *fib)
{
	struct fib_stats stats;

	fib_stats(fib, &stats);
	set->routes = calloc(stats.routes + 1, sizeof(*set->routes));
	if (!set->routes)
		return -ENOMEM;
	fib_walk(fib, take, set);
	return 0;
}

static int fill(struct fib *fib, const char *load, uint32_t n)
{
	const char *directory = getenv("MILLRACE_ROUTES");
	unsigned version = fib_version(fib);
	struct route_loaded loaded;
	struct error error;
	char path[4096];
	int ret;

	snprintf(path, sizeof(path), "%s/%s.txt", directory ? directory : USUAL_DIRECTORY, load);
	if (n == 0 && access(path, R_OK) == 0) {
		ret = route_load_file(fib, path, NULL, NULL, &loaded, &error);
		if (ret < 0)
			fprintf(stderr, "millrace: bench route: %s\n", error.text);
		return ret;
	}
	ret = make_routes(fib, version, n != 0 ? n : version == 4 ? REAL_V4 : REAL_V6);
	if (ret < 0)
		fprintf(stderr, "millrace: bench route: %s: %s\n", load, strerror(-ret));
	return ret;
}

int route_set_make(struct route_set *set, const char *load, uint32_t n)
{
	struct fib_config config = {
		.version = strcmp(load, "ipv4") == 0 ? 4 : 6, .memory = FILE_MEMORY};
	struct fib *fib;
	int ret = fib_create(&fib, &config);

	*set = (struct route_set){.version = config.version};
	if (ret < 0)
		return ret;
	ret = fill(fib, load, n);
	if (ret == 0)
		ret = list_routes(set, fib);
	fib_destroy(fib);
	return ret;
}

void route_set_free(struct route_set *set)
{
	free(set->routes);
	*set = (struct route_set){.n = 0};
}

void route_addresses_draw(
	struct route_addresses *addresses, const struct route_set *set, uint64_t *random)
{
	for (unsigned i = 0; i < ROUTE_PART; i++) {
		const struct route_prefix *prefix =
			&set->routes[route_random(random) % set->n].prefix;
		struct route_bits route = route_bits_of(prefix->addr, set->version);
		struct route_bits bits = {route_random(random), route_random(random)};
		struct route_bits asked = route_bits_cut(bits, prefix->length);

		bits.high ^= asked.high ^ route.high;
		bits.low ^= asked.low ^ route.low;
		addresses->v4[i] = (uint32_t)(bits.high >> 32);
		route_bits_to(bits, addresses->v6[i]);
	}
}
