/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>

#include "traffic/stream_write.h"

/* What stands behind a port's queue. */
struct bench_stream_side {
	struct rte_mempool *pool;
	struct stream_set *set;
	uint32_t *places;
	uint32_t n_places;
	uint32_t at;
	uint64_t rearm;
};

static uint16_t receive_burst(void *queue, struct rte_mbuf **packets, uint16_t n)
{
	struct bench_stream_side *side = queue;

	n = (uint16_t)(n & ~3);
	if (side->at + n > side->n_places)
		side->at = 0;
	if (side->n_places < n || rte_mempool_get_bulk(side->pool, (void **)packets, n) != 0)
		return 0;
	for (uint16_t i = 0; i < n; i += 4) {
		uint8_t *data[4];

		for (unsigned j = 0; j < 4; j++) {
			struct rte_mbuf *packet = packets[i + j];

			memcpy(&packet->rearm_data, &side->rearm, sizeof(side->rearm));
			packet->ol_flags = 0;
			packet->packet_type = 0;
			packet->pkt_len = STREAM_MIN_BYTES;
			packet->data_len = STREAM_MIN_BYTES;
			packet->vlan_tci = 0;
			packet->hash.rss = 0;
			data[j] = (uint8_t *)packet->buf_addr + RTE_PKTMBUF_HEADROOM;
		}
		stream_write_4(side->set, &side->places[side->at + i], data);
	}
	side->at += n;
	return n;
}

static uint16_t send_burst(void *queue, struct rte_mbuf **packets, uint16_t n)
{
	(void)queue;
	rte_pktmbuf_free_bulk(packets, n);
	return n;
}

static void say(void *context, const char *line)
{
	(void)context;
	fprintf(stderr, "millrace: bench: %s\n", line);
}

static int open_port(struct bench_source *source, unsigned number, struct error *error)
{
	static const char *const names[] = {"left", "right"};
	static const char *const devices[] = {"net_null0", "net_null1"};
	struct port_config config = {.name = names[number], .n_queues = 1};
	int ret = port_device_parse(&config.device, devices[number], error);

	return ret < 0 ? ret : port_open(&source->port[number], &config, say, NULL, error);
}

/* A round that small is repeated until it fills some bursts. */
static int repeat(struct bench_stream_side *side)
{
	uint32_t times = 1 + 4096 / side->n_places;
	uint32_t *places = realloc(side->places, (size_t)times * side->n_places * sizeof(*places));

	if (places == NULL)
		return -ENOMEM;
	for (uint32_t i = 1; i < times; i++)
		memcpy(&places[i * side->n_places], places, side->n_places * sizeof(*places));
	side->places = places;
	side->n_places *= times;
	return 0;
}

static int open_side(struct bench_source *source, unsigned number,
	const struct bench_source_config *config, struct error *error)
{
	const struct stream_config streams = {.flows = config->flows};
	const struct sequence_config sequence = {
		.load = config->load, .exponent = 1, .seed = 1 + number};
	struct bench_stream_side *side = calloc(1, sizeof(*side));
	int ret;

	if (side == NULL)
		return error_set(error, -ENOMEM, "no memory for streams");
	source->side[number] = side;
	ret = stream_set_create(&side->set, &streams, error);
	if (ret == 0)
		ret = sequence_create(&side->places, &side->n_places, config->flows,
			number == 0 ? STREAM_FORWARD : STREAM_REVERSE, &sequence, error);
	if (ret == 0 && repeat(side) < 0)
		ret = error_set(error, -ENOMEM, "no memory for a round of streams");
	return ret;
}

int bench_source_open(
	struct bench_source *source, const struct bench_source_config *config, struct error *error)
{
	int ret = 0;

	memset(source, 0, sizeof(*source));
	for (unsigned i = 0; ret == 0 && i < 2; i++) {
		ret = open_side(source, i, config, error);
		if (ret == 0)
			ret = open_port(source, i, error);
	}
	return ret;
}

int bench_source_begin(struct bench_source *source, struct rte_mempool *pool, struct error *error)
{
	(void)error;
	for (unsigned i = 0; i < 2; i++) {
		struct bench_stream_side *side = source->side[i];
		struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[source->port[i]->id];
		struct rte_mbuf like = {.data_off = RTE_PKTMBUF_HEADROOM,
			.refcnt = 1,
			.nb_segs = 1,
			.port = source->port[i]->id};

		memcpy(&side->rearm, &like.rearm_data, sizeof(side->rearm));
		side->pool = pool;
		ops->rx_pkt_burst = receive_burst;
		ops->tx_pkt_burst = send_burst;
		ops->rxq.data[0] = side;
	}
	return 0;
}

void bench_source_close(struct bench_source *source)
{
	for (unsigned i = 0; i < 2; i++) {
		struct bench_stream_side *side = source->side[i];

		port_close(source->port[i]);
		if (side == NULL)
			continue;
		stream_set_destroy(side->set);
		free(side->places);
		free(side);
	}
}
