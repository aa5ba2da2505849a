/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/capture_pcapng.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "traffic/capture.h"

/* Block types (draft-ietf-opsawg-pcapng, section 4). */
#define INTERFACE_DESCRIPTION 1
#define PACKET 2
#define SIMPLE_PACKET 3
#define ENHANCED_PACKET 6

#define BYTE_ORDER_MAGIC 0x1a2b3c4d
#define MAJOR_VERSION 1

/* Type and length of a block, and the length once more at its end. */
#define HEADER_SIZE 8
#define TRAILER_SIZE 4

/* Where the fields before a block's data or options end. */
#define SECTION_FIELDS 24
#define INTERFACE_FIELDS 16
#define SIMPLE_FIELDS 12
#define PACKET_FIELDS 28 /* of the Enhanced and of the obsolete one */

/* A block that is looked into is not longer than libpcap allows. */
#define BLOCK_MAX (16 * 1024 * 1024)

enum option {
	OPTION_END = 0,
	OPTION_FLAGS = 2, /* epb_flags, pack_flags */
	OPTION_TIME_RESOLUTION = 9,
	OPTION_FCS_LENGTH = 13,
	OPTION_TIME_OFFSET = 14,
};

/* Without if_tsresol times are in microseconds. */
#define RESOLUTION_DEFAULT 6
#define RESOLUTION_BINARY 0x80

static uint16_t get16(const struct pcapng *pcapng, const uint8_t *bytes)
{
	uint16_t value;

	memcpy(&value, bytes, sizeof(value));
	return pcapng->swapped ? __builtin_bswap16(value) : value;
}

static uint32_t get32(const struct pcapng *pcapng, const uint8_t *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return pcapng->swapped ? __builtin_bswap32(value) : value;
}

static uint64_t get64(const struct pcapng *pcapng, const uint8_t *bytes)
{
	uint64_t value;

	memcpy(&value, bytes, sizeof(value));
	return pcapng->swapped ? __builtin_bswap64(value) : value;
}

/* A block's options, or its data and options: bytes[at..end). */
struct block {
	const uint8_t *bytes;
	size_t end; /* where the trailer begins */
	uint32_t type;
};

struct option_value {
	uint16_t code;
	uint16_t length;
	const uint8_t *bytes;
};

/* The option at `*at`, and moves `*at` behind it. False at the end, and where they make no sense. */
static bool next_option(const struct pcapng *pcapng, const struct block *block, size_t *at,
	struct option_value *option)
{
	if (*at > block->end || block->end - *at < 4)
		return false;
	option->code = get16(pcapng, block->bytes + *at);
	option->length = get16(pcapng, block->bytes + *at + 2);
	option->bytes = block->bytes + *at + 4;
	if (option->code == OPTION_END || option->length > block->end - *at - 4)
		return false;
	*at += 4 + ((size_t)option->length + 3) / 4 * 4;
	return true;
}

/* if_fcslen counts bits, but its own example is 4, and who writes it means bytes by that. */
static uint8_t pcapng_fcs_bytes(uint8_t length)
{
	return length < 8 ? length : length / 8;
}

static void read_interface_options(
	const struct pcapng *pcapng, const struct block *block, struct pcapng_interface *interface)
{
	struct option_value option;
	size_t at = INTERFACE_FIELDS;

	while (next_option(pcapng, block, &at, &option)) {
		if (option.code == OPTION_TIME_RESOLUTION && option.length == 1)
			interface->resolution = option.bytes[0];
		else if (option.code == OPTION_FCS_LENGTH && option.length == 1)
			interface->fcs = pcapng_fcs_bytes(option.bytes[0]);
		else if (option.code == OPTION_TIME_OFFSET && option.length == 8)
			interface->offset_s = (int64_t)get64(pcapng, option.bytes);
	}
}

static int read_interface(struct pcapng *pcapng, const struct block *block,
	struct pcapng_packet *packet, struct error *why)
{
	if (block->end < INTERFACE_FIELDS)
		return error_set(why, -EBADMSG, "an interface description of %zu bytes",
			block->end + TRAILER_SIZE);
	if (pcapng->n_interfaces == pcapng->max_interfaces) {
		size_t more = pcapng->max_interfaces ? 2 * pcapng->max_interfaces : 16;
		void *grown = realloc(pcapng->interfaces, more * sizeof(*pcapng->interfaces));

		if (!grown)
			return error_set(why, -ENOMEM, "no memory for %zu interfaces", more);
		pcapng->interfaces = grown;
		pcapng->max_interfaces = more;
	}

	struct pcapng_interface *interface = &pcapng->interfaces[pcapng->n_interfaces++];

	*interface = (struct pcapng_interface){
		.link_type = get16(pcapng, block->bytes + 8),
		.resolution = RESOLUTION_DEFAULT,
		.snaplen = get32(pcapng, block->bytes + 12),
	};
	read_interface_options(pcapng, block, interface);
	packet->link_type = interface->link_type;
	return PCAPNG_INTERFACE;
}

static unsigned __int128 power_of_ten(unsigned exponent)
{
	unsigned __int128 power = 1;

	while (exponent-- > 0)
		power *= 10;
	return power;
}

/* Microseconds of Unix time, within what capture.h promises. */
static uint64_t time_us(const struct pcapng_interface *interface, uint64_t ticks)
{
	unsigned exponent = interface->resolution & ~(unsigned)RESOLUTION_BINARY;
	unsigned __int128 us = ticks;

	if (interface->resolution & RESOLUTION_BINARY)
		us = us * 1000000 >> exponent;
	else if (exponent <= 6)
		us *= power_of_ten(6 - exponent);
	else /* 64 bits of ticks have 20 digits */
		us = exponent - 6 < 20 ? us / power_of_ten(exponent - 6) : 0;

	/* neither of the two comes near 2^127 */
	__int128 time = (__int128)us + (__int128)interface->offset_s * 1000000;

	if (time < 0)
		return 0;
	return time < (__int128)CAPTURE_TIME_MAX_US ? (uint64_t)time : CAPTURE_TIME_MAX_US;
}

static const struct pcapng_interface *interface_of(
	const struct pcapng *pcapng, uint32_t number, struct error *why)
{
	if (number < pcapng->n_interfaces)
		return &pcapng->interfaces[number];
	error_set(why, -EBADMSG, "a packet of interface %u, of which the section has %zu", number,
		pcapng->n_interfaces);
	return NULL;
}

/* `length` bytes of the packet are to follow the block's first `fields` bytes. */
static int check_length(
	const struct block *block, size_t fields, uint32_t length, struct error *why)
{
	if (length > CAPTURE_LENGTH_MAX)
		return error_set(why, -EBADMSG,
			"a packet of %u bytes; the longest that is read has %u", length,
			CAPTURE_LENGTH_MAX);
	if (length > block->end - fields)
		return error_set(why, -EBADMSG, "a packet of %u bytes in a block of %zu", length,
			block->end + TRAILER_SIZE);
	return 0;
}

/* Bits 5 to 8 of a packet's flags: bytes of check sequence, 0 = the interface knows better. */
static uint8_t packet_fcs(const struct pcapng *pcapng, const struct block *block, size_t at)
{
	struct option_value option;
	uint8_t fcs = 0;

	while (next_option(pcapng, block, &at, &option))
		if (option.code == OPTION_FLAGS && option.length == 4)
			fcs = get32(pcapng, option.bytes) >> 5 & 0xf;
	return fcs;
}

/* An Enhanced Packet Block, or the obsolete one, whose interface is a number of 16 bits. */
static int pcapng_read_packet(const struct pcapng *pcapng, const struct block *block,
	struct pcapng_packet *packet, struct error *why)
{
	const uint8_t *bytes = block->bytes;

	if (block->end < PACKET_FIELDS)
		return error_set(
			why, -EBADMSG, "a packet block of %zu bytes", block->end + TRAILER_SIZE);

	const struct pcapng_interface *interface = interface_of(pcapng,
		block->type == PACKET ? get16(pcapng, bytes + 8) : get32(pcapng, bytes + 8), why);
	uint32_t length = get32(pcapng, bytes + 20);

	if (!interface || check_length(block, PACKET_FIELDS, length, why) < 0)
		return -EBADMSG;

	uint8_t fcs = packet_fcs(pcapng, block, PACKET_FIELDS + ((size_t)length + 3) / 4 * 4);

	*packet = (struct pcapng_packet){
		.bytes = bytes + PACKET_FIELDS,
		.length = length,
		.wire_length = get32(pcapng, bytes + 24),
		.time_us = time_us(interface,
			(uint64_t)get32(pcapng, bytes + 12) << 32 | get32(pcapng, bytes + 16)),
		.link_type = interface->link_type,
		.fcs = fcs ? fcs : interface->fcs,
	};
	return PCAPNG_PACKET;
}

/* It has no time, and how much of the packet is there follows from the first interface's limit. */
static int read_simple_packet(const struct pcapng *pcapng, const struct block *block,
	struct pcapng_packet *packet, struct error *why)
{
	if (block->end < SIMPLE_FIELDS)
		return error_set(why, -EBADMSG, "a simple packet block of %zu bytes",
			block->end + TRAILER_SIZE);

	const struct pcapng_interface *interface = interface_of(pcapng, 0, why);

	if (!interface)
		return -EBADMSG;

	uint32_t wire_length = get32(pcapng, block->bytes + 8);
	uint32_t length = wire_length;

	if (interface->snaplen != 0 && length > interface->snaplen)
		length = interface->snaplen;
	if (check_length(block, SIMPLE_FIELDS, length, why) < 0)
		return -EBADMSG;
	*packet = (struct pcapng_packet){
		.bytes = block->bytes + SIMPLE_FIELDS,
		.length = length,
		.wire_length = wire_length,
		.link_type = interface->link_type,
		.fcs = interface->fcs,
	};
	return PCAPNG_PACKET;
}

static int read_section(struct pcapng *pcapng, const struct block *block, struct error *why)
{
	if (block->end < SECTION_FIELDS)
		return error_set(
			why, -EBADMSG, "a section header of %zu bytes", block->end + TRAILER_SIZE);

	unsigned major = get16(pcapng, block->bytes + 12);

	if (major != MAJOR_VERSION)
		return error_set(why, -EPROTONOSUPPORT, "pcapng version %u.%u, only %u.x is read",
			major, get16(pcapng, block->bytes + 14), MAJOR_VERSION);
	pcapng->n_interfaces = 0;
	return PCAPNG_OTHER;
}

static int reading_failed(struct error *why)
{
	return error_set(why, errno == ENOMEM ? -ENOMEM : -EIO, "%s", strerror(errno));
}

static int cut(size_t there, struct error *why)
{
	return error_set(why, -ENODATA, "the file ends %zu bytes into a block", there);
}

static int check_trailer(
	const struct pcapng *pcapng, const uint8_t *trailer, uint32_t total, struct error *why)
{
	uint32_t again = get32(pcapng, trailer);

	if (again == total)
		return 0;
	return error_set(why, -EBADMSG, "a block of %u bytes that ends as one of %u", total, again);
}

/* Passes over a block that nobody wants to look into, however long it is. */
static int pass_over(struct pcapng *pcapng, uint32_t total, struct error *why)
{
	uint64_t body = total - TRAILER_SIZE;
	uint64_t passed = capture_source_skip(pcapng->source, body);
	const uint8_t *trailer;
	ssize_t there =
		passed < body ? 0 : capture_source_look(pcapng->source, TRAILER_SIZE, &trailer);

	if (passed < body && capture_source_failed(pcapng->source))
		there = -1;
	if (there < 0)
		return reading_failed(why);
	if (there < TRAILER_SIZE)
		return cut((size_t)passed + (size_t)there, why);

	int ret = check_trailer(pcapng, trailer, total, why);

	capture_source_skip(pcapng->source, TRAILER_SIZE);
	return ret < 0 ? ret : PCAPNG_OTHER;
}

/* A block that matters, whole in the source's buffer. */
static int read_block(struct pcapng *pcapng, uint32_t type, uint32_t total,
	struct pcapng_packet *packet, struct error *why)
{
	struct block block = {.end = total - TRAILER_SIZE, .type = type};
	ssize_t there = capture_source_look(pcapng->source, total, &block.bytes);

	if (there < 0)
		return reading_failed(why);
	if (there < (ssize_t)total)
		return cut((size_t)there, why);

	int ret = check_trailer(pcapng, block.bytes + block.end, total, why);

	if (ret < 0)
		return ret;
	if (type == PCAPNG_SECTION_HEADER)
		ret = read_section(pcapng, &block, why);
	else if (type == INTERFACE_DESCRIPTION)
		ret = read_interface(pcapng, &block, packet, why);
	else if (type == SIMPLE_PACKET)
		ret = read_simple_packet(pcapng, &block, packet, why);
	else
		ret = pcapng_read_packet(pcapng, &block, packet, why);
	if (ret >= 0)
		capture_source_skip(pcapng->source, total); /* the bytes stay until the next look */
	return ret;
}

/* The section's byte order, before anything of its header can be read. */
static int learn_byte_order(struct pcapng *pcapng, const uint8_t *bytes, struct error *why)
{
	uint32_t magic;

	memcpy(&magic, bytes + HEADER_SIZE, sizeof(magic));
	if (magic != BYTE_ORDER_MAGIC && magic != __builtin_bswap32(BYTE_ORDER_MAGIC))
		return error_set(why, -EBADMSG, "a section header without a byte-order magic");
	pcapng->swapped = magic != BYTE_ORDER_MAGIC;
	return 0;
}

int pcapng_step(struct pcapng *pcapng, struct pcapng_packet *packet, struct error *why)
{
	const uint8_t *bytes;
	ssize_t there = capture_source_look(pcapng->source, HEADER_SIZE + TRAILER_SIZE, &bytes);

	if (there < 0)
		return reading_failed(why);
	if (there == 0)
		return PCAPNG_END;
	if (there < HEADER_SIZE + TRAILER_SIZE)
		return cut((size_t)there, why);

	uint32_t type = get32(pcapng, bytes);

	if (type == PCAPNG_SECTION_HEADER && learn_byte_order(pcapng, bytes, why) < 0)
		return -EBADMSG;

	uint32_t total = get32(pcapng, bytes + 4);

	if (total < HEADER_SIZE + TRAILER_SIZE || total % 4 != 0)
		return error_set(why, -EBADMSG, "a block of %u bytes", total);
	switch (type) {
	case PCAPNG_SECTION_HEADER:
	case INTERFACE_DESCRIPTION:
	case PACKET:
	case SIMPLE_PACKET:
	case ENHANCED_PACKET:
		if (total > BLOCK_MAX)
			return error_set(why, -EBADMSG, "a block of %u bytes", total);
		return read_block(pcapng, type, total, packet, why);
	default:
		return pass_over(pcapng, total, why);
	}
}

void pcapng_fini(struct pcapng *pcapng)
{
	free(pcapng->interfaces);
	pcapng->interfaces = NULL;
}
