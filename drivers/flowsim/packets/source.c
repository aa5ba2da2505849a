/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/packets/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mapping.h"
#include "traffic/capture.h"

#define LINE 64
/* A capture is held in memory whole. */
#define CAPTURE_MAX_PACKETS (1u << 26)

static uint32_t set_stream(const struct sim_source *source, uint32_t number)
{
	return number << source->shift | source->side;
}

static void view_stream(const struct sim_source *source, uint32_t number, struct sim_view *view)
{
	uint8_t frame[STREAM_MAX_BYTES];
	uint16_t length = stream_frame(source->set, set_stream(source, number), frame);

	sim_view_parse(view, frame, length);
}

static uint16_t stream_bytes(const struct sim_source *source, uint32_t number)
{
	return stream_length(source->set, set_stream(source, number));
}

static void destroy_streams(struct sim_source *source)
{
	free(source->places);
	stream_set_destroy((struct stream_set *)(uintptr_t)source->set);
	free(source);
}

static int create_streams(
	struct sim_source *source, const struct sim_args *args, struct error *error)
{
	struct stream_set *set = NULL;
	int ret = stream_set_create(&set, &args->streams, error);

	source->set = set;
	source->destroy = destroy_streams;
	source->view = view_stream;
	source->length = stream_bytes;
	source->n_streams = 2 * args->streams.flows;
	if (ret == 0)
		ret = sequence_create(&source->places, &source->n_places, args->streams.flows,
			args->sides, &args->sequence, error);
	if (ret < 0)
		return ret;
	source->max_length = args->streams.imix ? 1518 : args->streams.size_max;
	if (source->max_length < STREAM_MIN_BYTES)
		source->max_length = STREAM_MIN_BYTES;
	if (args->sides == STREAM_BOTH)
		return 0;
	/* no numbers for the side that does not send */
	source->n_streams = args->streams.flows;
	source->shift = 1;
	source->side = args->sides == STREAM_REVERSE;
	for (uint32_t i = 0; i < source->n_places; i++)
		source->places[i] >>= 1;
	return 0;
}

static void view_frame(const struct sim_source *source, uint32_t number, struct sim_view *view)
{
	sim_view_parse(
		view, source->frames + source->frame_at[number], source->frame_length[number]);
}

static uint16_t frame_bytes(const struct sim_source *source, uint32_t number)
{
	return source->frame_length[number];
}

static void destroy_capture(struct sim_source *source)
{
	free((void *)(uintptr_t)source->frames);
	free((void *)(uintptr_t)source->frame_at);
	free((void *)(uintptr_t)source->frame_length);
	free(source);
}

/* The capture as it is read; the arrays grow. */
struct reading {
	uint8_t *frames;
	uint64_t *at;
	uint16_t *length;
	size_t bytes, room; /* of frames */
	uint32_t n, places; /* of the others */
};

static bool make_room(struct reading *reading, size_t bytes)
{
	if (reading->bytes + bytes > reading->room) {
		size_t room = 2 * reading->room + bytes + (1 << 20);
		uint8_t *frames = aligned_alloc(LINE, (room + LINE - 1) / LINE * LINE);

		if (frames == NULL)
			return false;
		if (reading->bytes > 0)
			memcpy(frames, reading->frames, reading->bytes);
		free(reading->frames);
		reading->frames = frames;
		reading->room = room;
	}
	if (reading->n + 1 >= reading->places) {
		uint32_t places = 2 * reading->places + 1024;
		uint64_t *at = realloc(reading->at, places * sizeof(*at));

		if (at != NULL)
			reading->at = at;
		uint16_t *length = realloc(reading->length, places * sizeof(*length));

		if (length != NULL)
			reading->length = length;
		if (at == NULL || length == NULL)
			return false;
		reading->places = places;
	}
	return true;
}

static int take_packet(
	struct reading *reading, const struct capture_packet *packet, struct error *error)
{
	if (packet->link != LINK_ETHERNET)
		return error_set(error, -EPROTONOSUPPORT, "it has packets that are not Ethernet");
	if (packet->length == 0)
		return 0;
	if (packet->length > UINT16_MAX || reading->n == CAPTURE_MAX_PACKETS)
		return error_set(error, -E2BIG, "%s",
			packet->length > UINT16_MAX ? "a packet is longer than 65,535 bytes"
						    : "more packets than 67,108,864");
	if (!make_room(reading, packet->length + LINE))
		return error_set(error, -ENOMEM, "no memory for the packets");
	memcpy(reading->frames + reading->bytes, packet->bytes, packet->length);
	reading->at[reading->n] = reading->bytes;
	reading->length[reading->n++] = (uint16_t)packet->length;
	reading->bytes = (reading->bytes + packet->length + LINE - 1) / LINE * LINE;
	return 0;
}

static int read_capture(struct reading *reading, const char *path, struct error *error)
{
	struct capture_packet packet;
	struct capture *capture;
	int ret = capture_open(&capture, path, error);

	if (ret < 0)
		return ret;
	while ((ret = capture_next(capture, &packet, error)) == 1) {
		ret = take_packet(reading, &packet, error);
		if (ret < 0)
			break;
	}
	capture_close(capture);
	if (ret == 0 && reading->n == 0)
		return error_set(error, -ENODATA, "%s: no packet in it", path);
	return ret;
}

static int create_capture(
	struct sim_source *source, const struct sim_args *args, struct error *error)
{
	struct reading reading = {0};
	int ret = read_capture(&reading, args->capture, error);

	source->destroy = destroy_capture;
	source->view = view_frame;
	source->length = frame_bytes;
	source->frames = reading.frames;
	source->frame_at = reading.at;
	source->frame_length = reading.length;
	source->written = args->written == 0 ? UINT16_MAX : args->written;
	source->n_streams = reading.n;
	source->n_places = reading.n;
	for (uint32_t i = 0; i < reading.n; i++)
		if (reading.length[i] > source->max_length)
			source->max_length = reading.length[i];
	return ret;
}

int sim_source_create(struct sim_source **source, const struct sim_args *args, struct error *error)
{
	struct sim_source *made = calloc(1, sizeof(*made));
	int ret = -EINVAL;

	*source = NULL;
	if (made == NULL)
		return error_set(error, -ENOMEM, "no memory");
	if (args->source == SIM_SOURCE_CAPTURE)
		ret = create_capture(made, args, error);
	else
		ret = create_streams(made, args, error);
	if (ret < 0)
		sim_source_destroy(made);
	else
		*source = made;
	return ret;
}

void sim_source_destroy(struct sim_source *source)
{
	if (source != NULL)
		source->destroy(source);
}
