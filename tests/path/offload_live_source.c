/* SPDX-License-Identifier: BSD-3-Clause */
/* What arrives at the simulated NICs: streams, or frames of a test's own, round after round; and whose it is. */
#include "offload_live.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../unit/capture_files.h"
#include "traffic/stream.h"

#define FRAME_BYTES 2048

static void write_frame(FILE *file, const struct frame *frame)
{
	const uint32_t head[4] = {0, 0, (uint32_t)frame->length, (uint32_t)frame->length};

	assert_int_equal(fwrite(head, sizeof(head), 1, file), 1);
	assert_int_equal(fwrite(frame->bytes, frame->length, 1, file), 1);
}

/* A capture of what arrives at that side, whose name the caller frees; NULL: nothing does. */
static char *write_capture(const struct offload_live_options *options, unsigned side)
{
	struct file head = {.length = 0};
	unsigned n = 0;

	for (unsigned i = 0; i < options->n_frames; i++)
		n += options->frames[i].side == side;
	if (n == 0)
		return NULL;
	put_pcap_header(&head, PCAP_MICROSECONDS, 4, FILE_ETHERNET);

	char *path = save(&head, head.length);
	FILE *file = fopen(path, "a");

	assert_non_null(file);
	for (unsigned i = 0; i < options->n_frames; i++)
		if (options->frames[i].side == side)
			write_frame(file, options->frames[i].frame);
	assert_int_equal(fclose(file), 0);
	return path;
}

char *live_source_device(
	const struct offload_live_options *options, unsigned number, char device[PORT_DEVICE_MAX])
{
	char *capture = write_capture(options, number);
	const char *words = options->words == NULL ? "" : options->words;
	const char *comma = *words == '\0' ? "" : ",";

	if (capture != NULL)
		snprintf(device, PORT_DEVICE_MAX, "net_flowsim%u,capture=%s%s%s", number, capture,
			comma, words);
	else if (options->n_frames != 0)
		snprintf(device, PORT_DEVICE_MAX, "net_flowsim%u,source=none%s%s", number, comma,
			words);
	else if (number == 1 && options->one_way)
		snprintf(device, PORT_DEVICE_MAX, "net_flowsim1,source=none");
	else
		snprintf(device, PORT_DEVICE_MAX, "net_flowsim%u,flows=%u,load=%s,side=%s%s%s",
			number, options->n_flows, options->load == NULL ? "order" : options->load,
			number == 0 ? "forward" : "reverse", comma, words);
	return capture;
}

struct extract_options live_source_reading(const struct offload_live *live)
{
	return (struct extract_options){
		.secret = &live->plane->secret, .zone_vlan = live->options.zone_vlan};
}

const struct live_frame *live_source_frame(
	const struct offload_live_options *options, const struct rte_mbuf *packet)
{
	for (unsigned i = 0; i < options->n_frames; i++) {
		const struct frame *frame = options->frames[i].frame;

		if (frame->length == packet->data_len &&
			memcmp(frame->bytes, rte_pktmbuf_mtod(packet, const void *),
				frame->length) == 0)
			return &options->frames[i];
	}
	return NULL;
}

/* The key of what arrives there, which says from which end of it; the other end's packets arrive elsewhere. */
static void learn_key(
	struct offload_live *live, uint32_t number, unsigned side, const struct rte_mbuf *packet)
{
	const struct extract_options options = live_source_reading(live);
	struct live_flow *flow = &live->flows[number];
	bool first = !flow->comes[0] && !flow->comes[1];
	struct packet_info info;

	assert_int_equal(extract(&options, packet, 0, &info), EXTRACT_IP);
	flow->key = info.key;
	flow->from[side] = info.from;
	flow->comes[side] = true;
	if (!first)
		return;
	flow->from[!side] = !info.from;
	uint32_t place = (uint32_t)info.hash % live->n_places;

	while (live->places[place] != 0)
		place = (place + 1) % live->n_places;
	live->places[place] = number + 1;
}

void live_source_learn(struct offload_live *live)
{
	const struct offload_live_options *options = &live->options;
	const struct sim_source *source = live->side[0].sim->source;
	uint8_t frame[FRAME_BYTES];

	for (unsigned i = 0; i < options->n_frames; i++) {
		const struct live_frame *given = &options->frames[i];
		const struct rte_mbuf packet = {
			.buf_addr = (void *)(uintptr_t)given->frame->bytes,
			.data_len = (uint16_t)given->frame->length,
			.pkt_len = (uint32_t)given->frame->length,
			.nb_segs = 1,
		};

		if (!live->flows[given->flow].comes[given->side])
			learn_key(live, given->flow, given->side, &packet);
	}
	for (uint32_t i = 0; options->n_frames == 0 && i < options->n_flows; i++) {
		for (unsigned side = 0; side < 2; side++) {
			struct rte_mbuf packet = {.buf_addr = frame, .nb_segs = 1};

			packet.data_len = stream_frame(source->set, 2 * i + side, frame);
			packet.pkt_len = packet.data_len;
			learn_key(live, i, side, &packet);
		}
		live->flows[i].comes[1] = !options->one_way;
	}
}
