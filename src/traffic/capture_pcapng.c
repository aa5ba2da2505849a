/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/capture_pcapng.h"

#include <stdlib.h>
#include <string.h>

/* Block types of the pcapng specification (draft-ietf-opsawg-pcapng, section 4). */
#define INTERFACE_DESCRIPTION 1
#define PACKET 2
#define SIMPLE_PACKET 3
#define ENHANCED_PACKET 6

/* A type that stands for none of them: libpcap passes over blocks that it does not know. */
#define SKIPPED 0x00000bad

#define BYTE_ORDER_MAGIC 0x1a2b3c4d
#define LINK_TYPE_ETHERNET 1

/* Header of a block, trailer of a block, and what an Enhanced Packet Block has more than a Simple
 * one: interface, time, captured length. */
#define HEADER_SIZE 8
#define TRAILER_SIZE 4
#define ENHANCED_EXTRA 16

static uint32_t get32(const struct pcapng_walk *walk, const uint8_t *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return walk->swapped ? __builtin_bswap32(value) : value;
}

static uint16_t get16(const struct pcapng_walk *walk, const uint8_t *bytes)
{
	uint16_t value;

	memcpy(&value, bytes, sizeof(value));
	return walk->swapped ? __builtin_bswap16(value) : value;
}

static void put32(struct pcapng_walk *walk, uint32_t value)
{
	if (walk->swapped)
		value = __builtin_bswap32(value);
	memcpy(walk->rewritten + walk->rewritten_length, &value, sizeof(value));
	walk->rewritten_length += sizeof(value);
}

/* Writes a block's header anew, with what follows it up to `size` bytes of the original. */
static void rewrite(struct pcapng_walk *walk, const uint8_t *bytes, size_t size, uint32_t type)
{
	put32(walk, type);
	memcpy(walk->rewritten + 4, bytes + 4, size - 4);
	walk->rewritten_length = size;
}

static void begin_section(struct pcapng_walk *walk, uint32_t magic)
{
	walk->swapped = magic != BYTE_ORDER_MAGIC;
	walk->n_interfaces = 0;
	walk->snaplen = 0;
}

/* Notes an interface and shows it as Ethernet without a limit. Returns the bytes replaced. */
static size_t describe_interface(struct pcapng_walk *walk, const uint8_t *bytes)
{
	uint16_t link_type = get16(walk, bytes + 8);
	bool foreign = link_type != LINK_TYPE_ETHERNET;

	if (walk->n_interfaces == walk->max_interfaces) {
		size_t more = walk->max_interfaces ? 2 * walk->max_interfaces : 16;
		uint8_t *grown = realloc(walk->foreign, more);

		/* without memory the interface stays as it is: libpcap refuses it by itself */
		if (!grown)
			return 0;
		walk->foreign = grown;
		walk->max_interfaces = more;
	}
	if (walk->n_interfaces == 0)
		walk->snaplen = get32(walk, bytes + 12);
	walk->foreign[walk->n_interfaces++] = foreign;
	if (!foreign)
		walk->blocks.ethernet++;
	else if (walk->blocks.interfaces == walk->blocks.ethernet)
		walk->blocks.foreign_link_type = link_type;
	walk->blocks.interfaces++;

	uint16_t ethernet = LINK_TYPE_ETHERNET;

	if (walk->swapped)
		ethernet = __builtin_bswap16(ethernet);
	rewrite(walk, bytes, 12, INTERFACE_DESCRIPTION);
	memcpy(walk->rewritten + 8, &ethernet, sizeof(ethernet));
	put32(walk, 0);
	return 16;
}

/* Hides the packets of interfaces that are not Ethernet. */
static size_t pass_packet(struct pcapng_walk *walk, const uint8_t *bytes, uint32_t interface)
{
	if (interface >= walk->n_interfaces || !walk->foreign[interface])
		return 0;
	walk->blocks.foreign_packets++;
	rewrite(walk, bytes, HEADER_SIZE, SKIPPED);
	return HEADER_SIZE;
}

/* Shows a Simple Packet Block that holds less than the packet as an Enhanced one. */
static size_t pass_simple_packet(struct pcapng_walk *walk, const uint8_t *bytes, uint32_t total)
{
	uint32_t wire_length = get32(walk, bytes + 8);

	if (walk->n_interfaces == 0 || walk->foreign[0] || walk->snaplen == 0 ||
		wire_length <= walk->snaplen || total > UINT32_MAX - ENHANCED_EXTRA)
		return pass_packet(walk, bytes, 0);
	walk->trailer = true;
	walk->was = total;
	walk->is = total + ENHANCED_EXTRA;
	put32(walk, ENHANCED_PACKET);
	put32(walk, walk->is);
	put32(walk, 0); /* interface */
	put32(walk, 0); /* time, twice */
	put32(walk, 0);
	put32(walk, walk->snaplen);
	put32(walk, wire_length);
	return HEADER_SIZE + 4;
}

/* The end of a block that was made longer; one that was wrong stays wrong. */
static size_t pass_trailer(
	struct pcapng_walk *walk, const uint8_t *bytes, size_t length, uint64_t *body)
{
	walk->trailer = false;
	*body = 0;
	if (length < TRAILER_SIZE) {
		*body = PCAPNG_TO_THE_END;
		return 0;
	}
	put32(walk, get32(walk, bytes) == walk->was ? walk->is : 0);
	return TRAILER_SIZE;
}

size_t pcapng_walk_next(
	struct pcapng_walk *walk, const uint8_t *bytes, size_t length, uint64_t *body)
{
	size_t replaced = 0;

	if (walk->trailer)
		return pass_trailer(walk, bytes, length, body);
	walk->blocks.ended = length == 0;
	/* what is no block is libpcap's to complain of */
	*body = PCAPNG_TO_THE_END;
	if (length < HEADER_SIZE + TRAILER_SIZE)
		return 0;

	uint32_t type = get32(walk, bytes);

	if (type == PCAPNG_SECTION_HEADER) {
		uint32_t magic;

		memcpy(&magic, bytes + 8, sizeof(magic));
		if (magic != BYTE_ORDER_MAGIC && magic != __builtin_bswap32(BYTE_ORDER_MAGIC))
			return 0;
		begin_section(walk, magic);
	}
	uint32_t total = get32(walk, bytes + 4);

	if (total < HEADER_SIZE + TRAILER_SIZE)
		return 0;
	if (type == INTERFACE_DESCRIPTION && total >= 20 && length >= 16)
		replaced = describe_interface(walk, bytes);
	else if (type == ENHANCED_PACKET && total >= 16)
		replaced = pass_packet(walk, bytes, get32(walk, bytes + 8));
	else if (type == PACKET && total >= 16)
		replaced = pass_packet(walk, bytes, get16(walk, bytes + 8));
	else if (type == SIMPLE_PACKET && total >= 16)
		replaced = pass_simple_packet(walk, bytes, total);
	*body = total - replaced - (walk->trailer ? TRAILER_SIZE : 0);
	return replaced;
}

size_t pcapng_walk_take(struct pcapng_walk *walk, char *out, size_t size)
{
	size_t waiting = walk->rewritten_length - walk->rewritten_taken;

	if (size > waiting)
		size = waiting;
	memcpy(out, walk->rewritten + walk->rewritten_taken, size);
	walk->rewritten_taken += size;
	if (size == waiting)
		walk->rewritten_length = walk->rewritten_taken = 0;
	return size;
}

void pcapng_walk_fini(struct pcapng_walk *walk)
{
	free(walk->foreign);
	walk->foreign = NULL;
}
