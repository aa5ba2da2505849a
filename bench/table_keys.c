/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys of flows by number, and the orders in which they are asked for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bench/table.h"
#include "traffic/draw.h"
#include "traffic/sequence.h"

#define ORDER (UINT32_C(1) << 21)
#define SEED 20261120
#define EXPONENT 1.1

const char *table_load_name(enum table_load load)
{
	return load == TABLE_ZIPF ? "zipf" : "uniform";
}

int table_order_create(struct table_order *order, uint32_t held)
{
	const struct sequence_config config = {
		.load = SEQUENCE_ZIPF, .exponent = EXPONENT, .seed = SEED, .n_places = ORDER};
	const struct sequence_config once = {.load = SEQUENCE_UNIFORM, .seed = SEED};
	struct draw draw = {.seed = SEED};
	struct error error;
	uint32_t n;

	*order = (struct table_order){0};
	order->number[TABLE_UNIFORM] = malloc(ORDER * sizeof(uint32_t));
	/* of the two streams of a flow the first one: twice its number */
	if (order->number[TABLE_UNIFORM] == NULL ||
		sequence_create(&order->number[TABLE_ZIPF], &n, held, STREAM_FORWARD, &config,
			&error) != 0 ||
		sequence_create(&order->ending, &order->n_ending, held, STREAM_FORWARD, &once,
			&error) != 0) {
		table_order_destroy(order);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < ORDER; i++) {
		order->number[TABLE_UNIFORM][i] = draw_below(draw_next(&draw), held);
		order->number[TABLE_ZIPF][i] /= 2;
	}
	for (uint32_t i = 0; i < order->n_ending; i++)
		order->ending[i] /= 2;
	return 0;
}

void table_order_destroy(struct table_order *order)
{
	for (unsigned load = 0; load < TABLE_N_LOADS; load++)
		free(order->number[load]);
	free(order->ending);
	*order = (struct table_order){0};
}

/* IPv4, UDP: addresses and ports as if by chance, no two alike. */
struct table_key table_key_of(uint32_t number)
{
	uint64_t addresses = draw_mix(number + UINT64_C(1));
	uint32_t ports = (uint32_t)(draw_mix(addresses) >> 32);
	struct table_key key = {
		.key = {.proto = 17, .version_wire = FLOW_KEY_VERSION_WIRE(4, 0)},
	};

	memcpy(key.key.addr[0], &addresses, 4);
	memcpy(key.key.addr[1], (const char *)&addresses + 4, 4);
	memcpy(key.key.port, &ports, sizeof(ports));
	return key;
}

void table_chunk_point(struct table_chunk *chunk)
{
	for (unsigned i = 0; i < TABLE_CHUNK; i++)
		chunk->pointers[i] = &chunk->keys[i].key;
}

void table_chunk_order(struct table_chunk *chunk, const struct table_order *order,
	enum table_load load, uint64_t place, uint32_t first)
{
	const uint32_t *numbers = order->number[load];

	for (unsigned i = 0; i < TABLE_CHUNK; i++)
		chunk->keys[i] = table_key_of(first + numbers[(place + i) & (ORDER - 1)]);
}

void table_chunk_row(struct table_chunk *chunk, uint32_t first, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		chunk->keys[i] = table_key_of(first + i);
}

void table_chunk_of(struct table_chunk *chunk, const uint32_t *numbers, uint32_t first, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		chunk->keys[i] = table_key_of(first + numbers[i]);
}
