/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Any bytes as a frame, through extraction, the quote of an error, and the datagram's fingerprint.
 *
 * Input: a byte of options (zone, wire, and whether that is a link type), a byte that counts segment sizes (0..15), the sizes, then
 * the frame. Every segment lies in a heap buffer of its own size. Besides what sanitizers see:
 *
 * - a frame in pieces reads as the frame in one;
 * - keys are sorted, their hash and end are right, their flags agree with one another;
 * - with source and destination exchanged, the key stays and the end is the other one;
 * - nothing is written to the frame.
 */

#include <stdio.h>

#include "packet/datagram.h"
#include "packet/quote.h"
#include "unit/frames.h"

#define MAX_SIZES 15

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct hash_secret secret = {
	.word = {0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb, 0x2545f4914f6cdd1d,
		0xd6e8feb86659fd93, 0xa0761d6478bd642f},
};

struct reading {
	enum extract_result result;
	struct packet_info info;
	uint64_t fingerprint;
	bool found;
	struct packet_info quoted;
};

static void check(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

static bool same_info(const struct packet_info *a, const struct packet_info *b)
{
	return flow_key_equal(&a->key, &b->key) && a->hash == b->hash &&
	       memcmp(&a->tcp, &b->tcp, sizeof(a->tcp)) == 0 && a->fragment_id == b->fragment_id &&
	       a->bytes == b->bytes && a->l4_offset == b->l4_offset && a->flags == b->flags &&
	       a->from == b->from;
}

static void check_info(const struct extract_options *options, const struct packet_info *info)
{
	const uint8_t *src = info->key.addr[info->from];
	const uint8_t *dst = info->key.addr[!info->from];
	struct packet_info again = *info;
	struct flow_key key = info->key;
	unsigned version = flow_key_version(&key);

	check(version == 4 || version == 6, "version");
	check(info->from ==
			flow_key_make(&key, src, dst, packet_src_port(info), packet_dst_port(info)),
		"end");
	check(flow_key_equal(&key, &info->key), "sorted key");
	check(info->hash == flow_key_hash(&secret, &key), "hash");
	check(!(info->flags & PACKET_FIRST_FRAGMENT) || !(info->flags & PACKET_LATER_FRAGMENT),
		"one kind of fragment");
	check((info->flags & PACKET_HAS_PORTS) || (key.port[0] == 0 && key.port[1] == 0), "ports");
	check(!(info->flags & PACKET_HAS_PORTS) ||
			!(info->flags & (PACKET_LATER_FRAGMENT | PACKET_CUT | PACKET_ICMP_ERROR)),
		"ports that cannot be");
	check(!(info->flags & PACKET_TCP) || ((info->flags & PACKET_HAS_PORTS) && key.proto == 6),
		"tcp");
	check(info->tcp.scale <= 14 || info->tcp.scale == TCP_SCALE_NONE, "scale");
	extract_set_upper(
		options, &again, again.key.proto, packet_src_port(info), packet_dst_port(info));
	check(same_info(info, &again), "ports set again");
}

static struct reading read_frame(const struct extract_options *options, unsigned wire,
	const uint8_t *bytes, size_t length, const uint16_t *sizes, size_t n_sizes)
{
	struct rte_mbuf *mbuf = frame_mbuf_sized(bytes, length, sizes, n_sizes);
	struct reading reading = {0};
	size_t at = 0;

	memset(&reading.info, 0xa5, sizeof(reading.info));
	reading.result = extract(options, mbuf, wire, &reading.info);
	if (reading.result == EXTRACT_IP) {
		check_info(options, &reading.info);
		check(flow_key_wire(&reading.info.key) == wire, "wire");
		check(reading.info.bytes == length, "bytes");
		reading.fingerprint = datagram_fingerprint(&secret, &reading.info);
	}
	if (reading.result == EXTRACT_IP && reading.info.flags & PACKET_ICMP_ERROR) {
		memset(&reading.quoted, 0xa5, sizeof(reading.quoted));
		reading.found = extract_quote(options, mbuf, &reading.info, &reading.quoted);
		if (reading.found)
			check_info(options, &reading.quoted);
	}
	for (struct rte_mbuf *segment = mbuf; segment != NULL; segment = segment->next) {
		check(segment->data_len == 0 ||
				memcmp(segment->buf_addr, bytes + at, segment->data_len) == 0,
			"frame unchanged");
		at += segment->data_len;
	}
	frame_mbuf_free(mbuf);
	return reading;
}

static void check_same(const struct reading *a, const struct reading *b)
{
	check(a->result == b->result, "result in pieces");
	if (a->result != EXTRACT_IP)
		return;
	check(same_info(&a->info, &b->info), "info in pieces");
	check(a->fingerprint == b->fingerprint, "fingerprint in pieces");
	check(a->found == b->found, "quote in pieces");
	check(!a->found || same_info(&a->quoted, &b->quoted), "quoted info in pieces");
}

static void swap_bytes(uint8_t *a, uint8_t *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint8_t byte = a[i];

		a[i] = b[i];
		b[i] = byte;
	}
}

/* The frame as the other end would send it. */
static void check_swapped(const struct extract_options *options, unsigned wire,
	const uint8_t *bytes, size_t length, const struct packet_info *info)
{
	bool v4 = flow_key_version(&info->key) == 4;
	size_t n = v4 ? 4 : 16;
	size_t ip = 14;

	while (bytes[ip - 2] != (v4 ? 0x08 : 0x86) || bytes[ip - 1] != (v4 ? 0x00 : 0xdd))
		ip += 4;

	uint8_t *copy = malloc(length);
	uint8_t *addresses = copy + ip + (v4 ? 12 : 8);

	assert(copy != NULL);
	memcpy(copy, bytes, length);
	swap_bytes(addresses, addresses + n, n);
	if (info->flags & PACKET_HAS_PORTS)
		swap_bytes(copy + info->l4_offset, copy + info->l4_offset + 2, 2);

	struct reading other = read_frame(options, wire, copy, length, NULL, 0);
	bool one_end = memcmp(info->key.addr[0], info->key.addr[1], 16) == 0 &&
		       info->key.port[0] == info->key.port[1];

	check(other.result == EXTRACT_IP, "swapped result");
	check(flow_key_equal(&other.info.key, &info->key), "swapped key");
	check(other.info.hash == info->hash, "swapped hash");
	check(other.info.flags == info->flags, "swapped flags");
	check(other.info.from == (one_end ? 0 : !info->from), "swapped end");
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct extract_options options = {.secret = &secret};
	uint16_t sizes[MAX_SIZES];
	size_t n_sizes;
	unsigned wire;

	if (size < 2)
		return 0;
	options.zone_vlan = data[0] & 0x10;
	options.wire_is_link = data[0] & 0x20;
	wire = data[0] & 0x0f;
	n_sizes = data[1] % (MAX_SIZES + 1);
	data += 2;
	size -= 2;
	if (n_sizes > size)
		n_sizes = size;
	for (size_t i = 0; i < n_sizes; i++)
		sizes[i] = data[i];
	data += n_sizes;
	size -= n_sizes;

	struct reading whole = read_frame(&options, wire, data, size, NULL, 0);
	struct reading pieces = read_frame(&options, wire, data, size, sizes, n_sizes);

	check_same(&whole, &pieces);
	/* One byte first: the walk for any frame, whatever the sizes are. */
	pieces = read_frame(&options, wire, data, size, (uint16_t[]){1}, 1);
	check_same(&whole, &pieces);
	if (whole.result == EXTRACT_IP && whole.info.l4_offset < UINT16_MAX &&
		extract_link(&options, wire) == LINK_ETHERNET)
		check_swapped(&options, wire, data, size, &whole.info);
	return 0;
}
