/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Random packets by description: what a rewriting has to make of a packet is the packet that is built from the
 * changed description, all its checksums computed from the bytes.
 */

#include "unit/frames.h"

enum {
	RANDOM_MAX_TAGS = 3,
	RANDOM_MAX_EXTENSIONS = 4,
	RANDOM_WHOLE = 0,
	RANDOM_FIRST = 1,
	RANDOM_LATER = 2,
};

struct random_packet {
	uint8_t mac[2][6]; /* source, destination */
	unsigned n_tags;
	uint16_t tpid[RANDOM_MAX_TAGS + 2], tci[RANDOM_MAX_TAGS + 2]; /* outermost first */
	unsigned version;
	uint8_t addr[2][16];
	uint8_t ttl;
	unsigned n_options; /* bytes of IPv4 options */
	unsigned n_extensions;
	uint8_t extension[RANDOM_MAX_EXTENSIONS]; /* IPv6: 0, 43, 60 */
	uint8_t final[16];			  /* the last address of a routing header */
	bool segments_left;
	bool authenticated; /* an authentication header last */
	unsigned fragment;
	uint16_t id;
	uint8_t proto;
	uint16_t port[2];
	bool no_checksum;
	bool partial; /* the checksum of UDP-Lite or DCCP covers the header alone */
	unsigned payload;
	unsigned cut;  /* bytes of a first fragment's upper layer that are in it */
	uint64_t seed; /* of all bytes that have no meaning */
};

static inline uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static inline unsigned random_below(uint64_t *state, unsigned n)
{
	return (unsigned)(random_next(state) % n);
}

static inline void random_fill(uint64_t *state, uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)random_next(state);
}

static inline uint32_t random_sum(uint32_t sum, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/* RFC 9260 appendix A, bit by bit. */
static inline uint32_t random_crc32c(const uint8_t *bytes, size_t n)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < n; i++) {
		crc ^= bytes[i];
		for (unsigned bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
	}
	return ~crc;
}

static inline unsigned random_header_length(uint8_t proto)
{
	switch (proto) {
	case 6:
		return 20;
	case 33:
	case 132:
		return 12;
	default:
		return 8;
	}
}

static inline bool random_has_ports(uint8_t proto)
{
	return proto == 6 || proto == 17 || proto == 33 || proto == 132 || proto == 136;
}

static inline void random_checksum(const struct random_packet *packet, uint8_t *upper,
	size_t length, size_t covered, size_t at)
{
	size_t n = packet->version == 4 ? 4 : 16;
	uint32_t sum = 0;

	put_be16(upper + at, 0);
	if (packet->proto != 1) {
		sum = random_sum(sum, packet->addr[0], n);
		sum = random_sum(sum, packet->segments_left ? packet->final : packet->addr[1], n);
		sum += packet->proto + (uint32_t)length;
	}
	sum = ~random_sum(sum, upper, covered) & 0xffff;
	if (sum == 0 && (packet->proto == 17 || packet->proto == 136))
		sum = 0xffff;
	put_be16(upper + at, packet->no_checksum ? 0 : sum);
}

/* The upper layer's header and payload of the whole datagram; returns its length. */
static inline size_t random_upper(const struct random_packet *packet, uint8_t *upper)
{
	size_t header = random_header_length(packet->proto);
	size_t length = header + packet->payload;
	uint64_t seed = packet->seed;

	random_fill(&seed, upper, length);
	if (random_has_ports(packet->proto)) {
		put_be16(upper, packet->port[0]);
		put_be16(upper + 2, packet->port[1]);
	}
	switch (packet->proto) {
	case 6:
		upper[12] = 0x50;
		upper[13] = 0x10;
		random_checksum(packet, upper, length, length, 16);
		break;
	case 17:
		put_be16(upper + 4, (unsigned)length);
		random_checksum(packet, upper, length, length, 6);
		break;
	case 136:
		put_be16(upper + 4, packet->partial ? 8 : 0);
		random_checksum(packet, upper, length, packet->partial ? 8 : length, 6);
		break;
	case 33:
		upper[4] = 3;
		upper[5] = packet->partial;
		random_checksum(packet, upper, length, packet->partial ? 12 : length, 6);
		break;
	case 1:
		upper[0] = 8;
		random_checksum(packet, upper, length, length, 2);
		break;
	case 58:
		upper[0] = 128;
		random_checksum(packet, upper, length, length, 2);
		break;
	case 132: {
		put_be32(upper + 8, 0);
		uint32_t crc = rte_cpu_to_le_32(random_crc32c(upper, length));

		memcpy(upper + 8, packet->no_checksum ? (uint8_t[4]){0} : (uint8_t *)&crc, 4);
		break;
	}
	default:
		break;
	}
	return length;
}

/* Extension headers of IPv6, each of which names the next one. `*next` is where the first one is named. */
static inline uint8_t *random_extensions(
	const struct random_packet *packet, struct frame *frame, uint8_t *next)
{
	for (unsigned i = 0; i < packet->n_extensions; i++) {
		bool routing = packet->extension[i] == 43;
		uint8_t *at = frame_add(frame, routing ? 24 : 8);

		*next = packet->extension[i];
		next = at;
		at[1] = routing ? 2 : 0;
		if (routing) {
			at[3] = packet->segments_left;
			memcpy(at + 8, packet->final, 16);
		} else {
			at[2] = 1; /* PadN */
			at[3] = 4;
		}
	}
	if (packet->fragment != RANDOM_WHOLE) {
		uint8_t *at = frame_add(frame, 8);

		*next = 44;
		next = at;
		put_be16(at + 2, packet->fragment == RANDOM_FIRST ? 1 : 1480);
		put_be32(at + 4, packet->id);
	}
	return next;
}

static inline void random_build(const struct random_packet *packet, struct frame *frame)
{
	uint8_t upper[2048];
	size_t length = random_upper(packet, upper);
	uint8_t *next;

	memset(frame, 0, sizeof(*frame));
	memcpy(frame_add(frame, 6), packet->mac[1], 6);
	memcpy(frame_add(frame, 6), packet->mac[0], 6);
	for (unsigned i = 0; i < packet->n_tags; i++)
		frame_tag(frame, packet->tpid[i], packet->tci[i]);
	if (packet->version == 4) {
		frame_ipv4_options(frame, "0.0.0.0", "0.0.0.0", 0, packet->n_options);

		uint8_t *at = frame->bytes + frame->ip[0];

		memcpy(at + 12, packet->addr[0], 4);
		memcpy(at + 16, packet->addr[1], 4);
		at[8] = packet->ttl;
		if (packet->fragment != RANDOM_WHOLE)
			frame_ipv4_fragment(frame, packet->id,
				packet->fragment == RANDOM_FIRST ? 0 : 1480,
				packet->fragment == RANDOM_FIRST);
		next = at + 9;
	} else {
		frame_ipv6(frame, "::", "::", 0);

		uint8_t *at = frame->bytes + frame->ip[0];

		memcpy(at + 8, packet->addr[0], 16);
		memcpy(at + 24, packet->addr[1], 16);
		at[7] = packet->ttl;
		next = random_extensions(packet, frame, at + 6);
	}
	if (packet->authenticated && packet->fragment != RANDOM_LATER) {
		uint8_t *at = frame_add(frame, 24);

		*next = 51;
		next = at;
		at[1] = 4;
	}
	*next = packet->proto;
	if (packet->fragment == RANDOM_FIRST && packet->cut < length)
		length = packet->cut;
	memcpy(frame_add(frame, length), upper, length);
	frame->upper = frame->length - length;
	frame_finish(frame);
}

static inline void random_ip(struct random_packet *packet, uint64_t *state)
{
	static const uint8_t extensions[] = {0, 43, 60};

	if (packet->version == 4) {
		packet->n_options = random_below(state, 3) == 0 ? random_below(state, 11) * 4 : 0;
		return;
	}
	packet->n_extensions =
		random_below(state, 2) ? random_below(state, RANDOM_MAX_EXTENSIONS + 1) : 0;
	for (unsigned i = 0; i < packet->n_extensions; i++) {
		packet->extension[i] = extensions[random_below(state, RTE_DIM(extensions))];
		packet->segments_left |= packet->extension[i] == 43 && random_below(state, 2);
	}
}

static inline struct random_packet random_packet(uint64_t *state)
{
	static const uint8_t protos[] = {6, 6, 6, 17, 17, 17, 33, 132, 132, 136, 1, 58, 47};
	static const uint16_t tpids[] = {0x8100, 0x88a8, 0x9100, 0x9200};
	struct random_packet packet = {
		.version = random_below(state, 2) ? 4 : 6,
		.n_tags = random_below(state, 2) ? random_below(state, RANDOM_MAX_TAGS + 1) : 0,
		.ttl = (uint8_t)(2 + random_below(state, 254)),
		.proto = protos[random_below(state, RTE_DIM(protos))],
		.fragment = random_below(state, 4) == 0 ? random_below(state, 3) : RANDOM_WHOLE,
		.authenticated = random_below(state, 10) == 0,
		.id = (uint16_t)random_next(state),
		.partial = random_below(state, 2),
		.payload = random_below(state, 100),
		.seed = random_next(state),
	};

	random_fill(state, packet.mac[0], sizeof(packet.mac));
	random_fill(state, packet.addr[0], sizeof(packet.addr));
	random_fill(state, packet.final, sizeof(packet.final));
	for (unsigned i = 0; i < packet.n_tags; i++) {
		packet.tpid[i] = tpids[random_below(state, RTE_DIM(tpids))];
		packet.tci[i] = (uint16_t)random_next(state);
	}
	for (unsigned i = 0; i < 2; i++)
		packet.port[i] = (uint16_t)random_next(state);
	if (packet.proto == 58)
		packet.version = 6;
	if (packet.proto == 1)
		packet.version = 4;
	random_ip(&packet, state);
	packet.no_checksum =
		(packet.proto == 17 || packet.proto == 132) && random_below(state, 4) == 0;
	packet.cut = random_header_length(packet.proto) + random_below(state, 60);
	return packet;
}
