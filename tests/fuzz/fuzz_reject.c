/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Any bytes as a frame that a rule rejects.
 *
 * Input: two bytes, of which the first says what the sender is told and the second counts segment sizes, the sizes, then
 * the frame. Every segment lies in a heap buffer of its own size, and so does the answer. Besides what sanitizers see:
 *
 * - in pieces the same answer comes out, and with less room none that is longer;
 * - the answer is a whole frame: what extract() reads of it goes back from where the frame went to;
 * - nobody answers an answer that may have none: a reset, and an error.
 */

#include <stdio.h>

#include "packet/extract.h"
#include "packet/reject.h"
#include "unit/frames.h"

#define MAX_SIZES 15

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct hash_secret secret = {.word = {1, 2, 3, 4, 5, 6}};
static const struct extract_options options = {.secret = &secret};

static void check(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

/* The answer in a buffer of just that size, which the caller frees. */
static uint8_t *answer_to(
	const struct rte_mbuf *frame, enum reject_with with, size_t room, size_t *length)
{
	uint8_t *bytes = malloc(room + 1);

	assert(bytes != NULL);
	*length = reject_build(frame, with, bytes, room);
	check(*length == 0 || (*length >= REJECT_MIN && *length <= room), "length");
	return bytes;
}

static void check_way_back(
	const struct rte_mbuf *frame, const uint8_t *bytes, size_t length, enum reject_with with)
{
	struct rte_mbuf *answer = frame_mbuf(bytes, length);
	struct packet_info asked, told;
	size_t again;

	check(extract(&options, frame, 0, &asked) == EXTRACT_IP, "what was rejected");
	check(extract(&options, answer, 0, &told) == EXTRACT_IP, "what is told");
	check(memcmp(asked.key.addr[asked.from], told.key.addr[!told.from], 16) == 0, "receiver");
	check(memcmp(asked.key.addr[!asked.from], told.key.addr[told.from], 16) == 0, "sender");
	check(told.flags & (PACKET_TCP | PACKET_ICMP_ERROR), "kind");
	if (told.flags & PACKET_TCP) {
		check(told.tcp.flags & TCP_RST, "reset");
		check(packet_dst_port(&told) == packet_src_port(&asked), "port");
	}
	if (told.flags & PACKET_ICMP_ERROR || with == REJECT_USUAL || with == REJECT_TCP_RESET) {
		uint8_t *none = answer_to(answer, REJECT_USUAL, REJECT_MAX, &again);

		check(again == 0, "an answer to the answer");
		free(none);
	}
	frame_mbuf_free(answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint16_t sizes[MAX_SIZES];
	size_t n_sizes, length, in_pieces, shorter;

	if (size < 2)
		return 0;
	const enum reject_with with = (enum reject_with)(data[0] % REJECT_N_WITH);
	const size_t less = REJECT_MIN + data[0];

	n_sizes = data[1] & 15;
	data += 2;
	size -= 2;
	if (n_sizes > size)
		n_sizes = size;
	for (size_t i = 0; i < n_sizes; i++)
		sizes[i] = data[i];
	data += n_sizes;
	size -= n_sizes;

	struct rte_mbuf *frame = frame_mbuf(data, size);
	struct rte_mbuf *pieces = frame_mbuf_sized(data, size, sizes, n_sizes);
	uint8_t *whole = answer_to(frame, with, REJECT_MAX, &length);
	uint8_t *other = answer_to(pieces, with, REJECT_MAX, &in_pieces);
	uint8_t *small = answer_to(frame, with, less, &shorter);

	check(length == in_pieces && memcmp(whole, other, length) == 0, "in pieces");
	check(shorter <= length, "with less room");
	if (length != 0)
		check_way_back(frame, whole, length, with);
	free(small);
	free(other);
	free(whole);
	frame_mbuf_free(pieces);
	frame_mbuf_free(frame);
	return 0;
}
