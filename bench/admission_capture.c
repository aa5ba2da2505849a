/* SPDX-License-Identifier: BSD-3-Clause */
/* The packets of a capture as a load of the bench of admission: when each came, and of which flow it is. */
#include <errno.h>
#include <stdlib.h>

#include "bench/admission_load.h"
#include "packet/extract.h"
#include "traffic/capture.h"

/* Beyond this there is no memory for it; 16 bytes each. */
#define MOST_PACKETS (1u << 27)

struct read_packet {
	uint64_t us;
	uint64_t hash; /* of the flow's key: of 64 bits no two flows have the same */
};

struct reading {
	struct read_packet *packets;
	uint32_t n, room;
};

static bool add(struct reading *reading, uint64_t us, uint64_t hash)
{
	if (reading->n == reading->room) {
		uint32_t room = reading->room == 0 ? 1u << 16 : 2 * reading->room;
		void *packets = room > MOST_PACKETS ? NULL
						    : realloc(reading->packets,
							      room * sizeof(*reading->packets));

		if (packets == NULL)
			return false;
		reading->packets = packets;
		reading->room = room;
	}
	reading->packets[reading->n++] = (struct read_packet){us, hash};
	return true;
}

/* Those of IP; what is damaged is left out. */
static int read_all(struct reading *reading, struct capture *capture, struct error *error)
{
	struct hash_secret secret;
	const struct extract_options options = {.secret = &secret, .wire_is_link = true};
	struct capture_packet packet;
	struct packet_info info;
	int ret = hash_secret_init(&secret);

	if (ret < 0)
		return error_set(error, ret, "no random numbers");
	while ((ret = capture_next(capture, &packet, error)) == 1) {
		uint16_t length = (uint16_t)RTE_MIN(packet.length, (uint32_t)UINT16_MAX);
		const struct rte_mbuf frame = {.buf_addr = (void *)(uintptr_t)packet.bytes,
			.data_len = length,
			.pkt_len = length,
			.nb_segs = 1};

		if (extract(&options, &frame, packet.link, &info) == EXTRACT_IP &&
			!add(reading, packet.time_us, info.hash))
			return error_set(error, -ENOMEM, "no memory for its packets");
	}
	return ret;
}

static int by_time(const void *a, const void *b)
{
	const struct read_packet *x = a, *y = b;

	return (x->us > y->us) - (x->us < y->us);
}

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Flows are numbered by their hashes; returns how many there are, 0 without memory. */
static uint32_t number(const struct reading *reading, struct admission_packet *packets)
{
	uint64_t *hashes = malloc(reading->n * sizeof(*hashes));
	uint32_t n = 0;

	if (hashes == NULL)
		return 0;
	for (uint32_t i = 0; i < reading->n; i++)
		hashes[i] = reading->packets[i].hash;
	qsort(hashes, reading->n, sizeof(*hashes), by_number);
	for (uint32_t i = 0; i < reading->n; i++)
		if (i == 0 || hashes[i] != hashes[n - 1])
			hashes[n++] = hashes[i];
	for (uint32_t i = 0; i < reading->n; i++) {
		const uint64_t *found =
			bsearch(&reading->packets[i].hash, hashes, n, sizeof(*hashes), by_number);

		packets[i] = (struct admission_packet){
			.us = reading->packets[i].us - reading->packets[0].us,
			.flow = (uint32_t)(found - hashes),
		};
	}
	free(hashes);
	return n;
}

int admission_capture_read(const char *path, struct admission_packet **packets, uint32_t *n,
	uint32_t *n_flows, struct error *error)
{
	struct reading reading = {.n = 0};
	struct capture *capture;
	int ret = capture_open(&capture, path, error);

	if (ret < 0)
		return ret;
	ret = read_all(&reading, capture, error);
	capture_close(capture);
	*packets = NULL;
	if (ret == 0 && reading.packets == NULL)
		ret = error_set(error, -ENODATA, "%s: it has no packets of IP", path);
	if (ret == 0 && reading.packets != NULL) {
		/* what a capture has out of order came so */
		qsort(reading.packets, reading.n, sizeof(reading.packets[0]), by_time);
		*packets = calloc(reading.n, sizeof(**packets));
		*n = reading.n;
		*n_flows = *packets == NULL ? 0 : number(&reading, *packets);
		if (*n_flows == 0)
			ret = error_set(error, -ENOMEM, "no memory for its packets");
	}
	free(reading.packets);
	if (ret < 0) {
		free(*packets);
		*packets = NULL;
	}
	return ret;
}
