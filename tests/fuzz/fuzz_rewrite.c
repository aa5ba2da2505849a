/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Any bytes as a frame, through an action program of any bits.
 *
 * Input: 16 bits, the low 12 of which choose actions (see CHOSEN) and the high 4 count segment sizes, the sizes, then
 * the frame. Every segment lies in a heap buffer of its own size. Besides what sanitizers see:
 *
 * - by what extract() says of the frame, without it, and in pieces, the same bytes and the same answer come out;
 * - the length changes by the tags alone, and a dropped frame is unchanged;
 * - the addresses and ports that were set are read back, and only those have changed.
 */

#include <stdio.h>

#include "action/program.h"
#include "unit/frames.h"

#define MAX_SIZES 15
#define HEADROOM 8

/* Seeds begin with 0, which chooses these: MAC addresses, TTL, IPv4 addresses and ports. */
#define CHOSEN 0xf07

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct hash_secret secret = {.word = {1, 2, 3, 4, 5, 6}};
static const struct extract_options options = {.secret = &secret};

struct outcome {
	struct action_answer answer;
	uint8_t *bytes;
	size_t length;
};

static void check(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

/* With headroom in front of the first segment. */
static struct rte_mbuf *mbuf_of(
	const uint8_t *bytes, size_t length, const uint16_t *sizes, size_t n_sizes)
{
	struct rte_mbuf *mbuf = frame_mbuf_sized(bytes, length, sizes, n_sizes);
	uint8_t *room = malloc(HEADROOM + mbuf->data_len);

	assert(room != NULL);
	if (mbuf->data_len > 0)
		memcpy(room + HEADROOM, mbuf->buf_addr, mbuf->data_len);
	free(mbuf->buf_addr);
	mbuf->buf_addr = room;
	mbuf->buf_len = (uint16_t)(HEADROOM + mbuf->data_len);
	mbuf->data_off = HEADROOM;
	return mbuf;
}

static struct outcome outcome_of(const struct rte_mbuf *mbuf, struct action_answer answer)
{
	struct outcome outcome = {.answer = answer, .length = mbuf->pkt_len};
	size_t at = 0;

	outcome.bytes = malloc(outcome.length + 1);
	assert(outcome.bytes != NULL);
	for (; mbuf != NULL; mbuf = mbuf->next) {
		check(mbuf->data_len <= outcome.length - at, "length of segments");
		if (mbuf->data_len > 0)
			memcpy(outcome.bytes + at, rte_pktmbuf_mtod(mbuf, const uint8_t *),
				mbuf->data_len);
		at += mbuf->data_len;
	}
	check(at == outcome.length, "length of the frame");
	return outcome;
}

static struct outcome run(const struct action_program *program, const uint8_t *bytes, size_t length,
	const uint16_t *sizes, size_t n_sizes, bool known)
{
	struct rte_mbuf *mbuf = mbuf_of(bytes, length, sizes, n_sizes);
	struct action_packet packet = {.common = false};
	struct action_context context = {0};
	struct action_answer answer;
	struct packet_info info;

	if (known && extract(&options, mbuf, 0, &info) == EXTRACT_IP)
		packet = action_packet_of(mbuf, &info);
	action_run(program, &context, mbuf, &packet, &answer);

	struct outcome outcome = outcome_of(mbuf, answer);

	frame_mbuf_free(mbuf);
	return outcome;
}

static void check_same(const struct outcome *a, const struct outcome *b)
{
	check(memcmp(&a->answer, &b->answer, sizeof(a->answer)) == 0, "answer");
	check(a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0, "bytes");
}

static const uint8_t address[2][16] = {{10, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {10, 0xff, 0xff, 0xff}};
static const rte_be16_t port[2] = {0x1234, 0xffff};

static struct action_program program_of(unsigned bits)
{
	struct action list[ACTION_LIST_MAX];
	struct action_program program;
	struct error error;
	unsigned n = 0;

	memset(list, 0, sizeof(list));
	if (bits & 1)
		list[n++] = (struct action){.kind = ACTION_SET_MAC_SRC, .mac = {2, 1}};
	if (bits & 2)
		list[n++] = (struct action){.kind = ACTION_SET_MAC_DST, .mac = {2, 2}};
	if (bits & 4)
		list[n++].kind = ACTION_DECREMENT_TTL;
	if (bits & 8)
		list[n++].kind = ACTION_VLAN_POP;
	if (bits & 0x10)
		list[n++] = (struct action){.kind = ACTION_VLAN_SET, .vlan = {.id = 9}};
	for (unsigned i = bits >> 5 & 3; i > 0; i--)
		list[n++] = (struct action){.kind = ACTION_VLAN_PUSH, .vlan = {0x88a8, 8, 1}};
	for (unsigned side = 0; side < 2; side++) {
		if (bits & 0x100u << side) {
			list[n].kind =
				(bits & 0x80 ? ACTION_SET_IPV6_SRC : ACTION_SET_IPV4_SRC) + side;
			memcpy(list[n++].address, address[side], 16);
		}
		if (bits & 0x400u << side) {
			list[n].kind = ACTION_SET_PORT_SRC + side;
			list[n++].l4_port = port[side];
		}
	}
	check(action_program_compile(&program, list, n, &error) == 0, "list");
	return program;
}

static bool same_but(const struct packet_info *before, const struct packet_info *after,
	const struct action_program *program, unsigned side)
{
	const uint8_t *was = before->key.addr[side ? !before->from : before->from];
	const uint8_t *is = after->key.addr[side ? !after->from : after->from];
	rte_be16_t old = side ? packet_dst_port(before) : packet_src_port(before);
	rte_be16_t new = side ? packet_dst_port(after) : packet_src_port(after);

	if (program->does & ACTION_DOES_ADDRESS_SRC << side)
		was = program->addr[side];
	if (program->does & ACTION_DOES_PORT_SRC << side && before->flags & PACKET_HAS_PORTS)
		old = program->l4_port[side];
	return memcmp(was, is, 16) == 0 && old == new;
}

/* Compares what extract() reads of the frame before and after. */
static void check_read_back(const struct action_program *program, const uint8_t *bytes,
	size_t length, const struct outcome *outcome)
{
	struct rte_mbuf *mbuf = frame_mbuf(bytes, length);
	struct rte_mbuf *changed = frame_mbuf(outcome->bytes, outcome->length);
	struct packet_info before, after;
	enum extract_result result = extract(&options, mbuf, 0, &before);

	check(extract(&options, changed, 0, &after) == result, "result");
	if (result == EXTRACT_IP) {
		check(same_but(&before, &after, program, 0), "source");
		check(same_but(&before, &after, program, 1), "destination");
		check(before.key.proto == after.key.proto, "protocol");
		/* the number of tags is part of what makes a packet unplain */
		check(((before.flags ^ after.flags) & ~PACKET_UNPLAIN) == 0, "flags");
		check(memcmp(&before.tcp, &after.tcp, sizeof(before.tcp)) == 0, "tcp");
	}
	frame_mbuf_free(changed);
	frame_mbuf_free(mbuf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint16_t sizes[MAX_SIZES];
	size_t n_sizes;

	if (size < 2)
		return 0;

	struct action_program program =
		program_of(((data[0] | (unsigned)data[1] << 8) & 0xfff) ^ CHOSEN);

	n_sizes = data[1] >> 4;
	data += 2;
	size -= 2;
	if (n_sizes > size)
		n_sizes = size;
	for (size_t i = 0; i < n_sizes; i++)
		sizes[i] = data[i];
	data += n_sizes;
	size -= n_sizes;

	struct outcome any = run(&program, data, size, NULL, 0, false);
	struct outcome known = run(&program, data, size, NULL, 0, true);
	struct outcome pieces = run(&program, data, size, sizes, n_sizes, true);
	int tags = program.n_push - program.n_pop;

	check_same(&any, &known);
	/* short first segments may have no room for a tag where a long one has: headroom comes from what is cut off */
	if (any.answer.drop == pieces.answer.drop)
		check_same(&any, &pieces);
	else
		check(program.n_push > 0 && program.n_pop > 0, "drop in pieces");
	if (any.answer.drop == ACTION_DROP_NONE) {
		check(any.length == size + (size_t)(tags * 4), "length");
		check_read_back(&program, data, size, &any);
	} else {
		check(any.length == size && memcmp(any.bytes, data, size) == 0, "dropped");
	}
	free(any.bytes);
	free(known.bytes);
	free(pieces.bytes);
	return 0;
}
