/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Edits of packets. A frame is made from a description of it, with checksums computed over the whole; the
 * same edit is done to the frame and to the description, and the frame must be the one that the changed
 * description makes, byte for byte.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <rte_errno.h>
#include <rte_mbuf.h>

#include "base/dpdk.h"
#include "drivers/flowsim/packets/edit.h"

#define ROUNDS 20000
#define MAX_FRAME 512

static struct rte_mempool *pool, *small_pool;

/* What a frame is. */
struct picture {
	uint8_t mac[12];
	unsigned n_tags;
	uint16_t tag[4][2]; /* TPID and TCI, the outer one first */
	bool v6, extended;
	uint8_t source[16], destination[16];
	uint8_t ttl;
	uint8_t protocol;  /* 6, 17, 132, 58, 1 or another */
	bool no_checksum;  /* UDP */
	uint16_t fragment; /* IPv4: flags and offset */
	uint8_t ports[4];
	unsigned n_payload;
	uint8_t payload[64];
};

static uint64_t seed = 1;

static uint32_t draw(uint32_t n)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(seed >> 33) % n;
}

static void draw_bytes(uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)draw(256);
}

static uint32_t add_words(uint32_t sum, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		sum += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
	return sum;
}

static uint16_t fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static bool later_fragment(const struct picture *picture)
{
	return !picture->v6 && (picture->fragment & 0x1fff) != 0;
}

/* Where in layer 4 its checksum lies; 0: it has none that covers addresses. */
static unsigned checksum_at(const struct picture *picture)
{
	switch (picture->protocol) {
	case 6:
		return 16;
	case 17:
		return picture->no_checksum ? 0 : 6;
	case 58:
		return picture->v6 ? 2 : 0;
	default:
		return 0;
	}
}

static size_t layer4_of(const struct picture *picture, uint8_t *l4)
{
	static const uint8_t sizes[256] = {[6] = 20, [17] = 8, [132] = 12, [1] = 8, [58] = 8};
	size_t size = sizes[picture->protocol] + picture->n_payload;
	unsigned width = picture->v6 ? 16 : 4, at = checksum_at(picture);
	uint32_t sum = (uint32_t)size + picture->protocol;
	uint16_t checksum;

	memset(l4, 0, size);
	memcpy(&l4[sizes[picture->protocol]], picture->payload, picture->n_payload);
	memcpy(l4, picture->ports, picture->protocol == 58 ? 2 : 4);
	if (picture->protocol == 17)
		put16(&l4[4], (unsigned)size);
	if (at == 0)
		return size;
	sum = add_words(sum, picture->source, width);
	sum = add_words(sum, picture->destination, width);
	checksum = fold(add_words(sum, l4, size));
	if (checksum == 0 && picture->protocol == 17)
		checksum = 0xffff;
	put16(&l4[at], checksum);
	return size;
}

static size_t ipv4_of(const struct picture *picture, uint8_t *ip, size_t inside)
{
	static const uint8_t options[8] = {1, 1, 1, 1, 7, 3, 4, 0};
	size_t size = picture->extended ? 28 : 20;

	memset(ip, 0, size);
	ip[0] = (uint8_t)(0x40 | size / 4);
	put16(&ip[2], (unsigned)(size + inside));
	put16(&ip[4], 0x1234);
	put16(&ip[6], picture->fragment);
	ip[8] = picture->ttl;
	ip[9] = picture->protocol;
	memcpy(&ip[12], picture->source, 4);
	memcpy(&ip[16], picture->destination, 4);
	if (picture->extended)
		memcpy(&ip[20], options, 8);
	put16(&ip[10], fold(add_words(0, ip, size)));
	return size;
}

/* Extended: hop-by-hop options, then destination options of 16 bytes. */
static size_t ipv6_of(const struct picture *picture, uint8_t *ip, size_t inside)
{
	size_t size = picture->extended ? 40 + 8 + 16 : 40;

	memset(ip, 0, size);
	ip[0] = 0x60;
	put16(&ip[4], (unsigned)(size - 40 + inside));
	ip[6] = picture->extended ? 0 : picture->protocol;
	ip[7] = picture->ttl;
	memcpy(&ip[8], picture->source, 16);
	memcpy(&ip[24], picture->destination, 16);
	if (picture->extended) {
		ip[40] = 60;
		ip[48] = picture->protocol;
		ip[49] = 1;
	}
	return size;
}

static size_t headers_end; /* of the frame drawn last: behind layer 4's header */

static size_t draw_frame(const struct picture *picture, uint8_t *frame)
{
	uint8_t l4[128];
	size_t inside = layer4_of(picture, l4), at = 12;

	memcpy(frame, picture->mac, 12);
	for (unsigned i = 0; i < picture->n_tags; i++, at += 4) {
		put16(&frame[at], picture->tag[i][0]);
		put16(&frame[at + 2], picture->tag[i][1]);
	}
	put16(&frame[at], picture->v6 ? 0x86dd : 0x0800);
	at += 2;
	at += picture->v6 ? ipv6_of(picture, &frame[at], inside)
			  : ipv4_of(picture, &frame[at], inside);
	memcpy(&frame[at], l4, inside);
	headers_end = at + inside - picture->n_payload;
	return at + inside;
}

static void draw_picture(struct picture *picture)
{
	static const uint8_t protocols[] = {6, 6, 17, 17, 17, 132, 1, 58, 89};
	static const uint16_t tpids[] = {0x8100, 0x88a8, 0x9100, 0x9200};

	memset(picture, 0, sizeof(*picture));
	draw_bytes(picture->mac, 12);
	picture->n_tags = draw(3);
	for (unsigned i = 0; i < picture->n_tags; i++) {
		picture->tag[i][0] = tpids[draw(4)];
		picture->tag[i][1] = (uint16_t)draw(65536);
	}
	picture->v6 = draw(2);
	picture->extended = draw(3) == 0;
	draw_bytes(picture->source, 16);
	draw_bytes(picture->destination, 16);
	picture->ttl = (uint8_t)(draw(4) == 0 ? draw(3) : draw(256));
	picture->protocol = protocols[draw(RTE_DIM(protocols))];
	if (!picture->v6 && picture->protocol == 58)
		picture->protocol = 1;
	picture->no_checksum = draw(4) == 0;
	if (!picture->v6 && draw(8) == 0)
		picture->fragment = (uint16_t)(draw(2) ? 0x2000 : 0x2000 | draw(100));
	draw_bytes(picture->ports, 4);
	picture->n_payload = draw(64);
	draw_bytes(picture->payload, picture->n_payload);
	/* words that make sums that wrap */
	if (draw(8) == 0)
		memset(picture->payload, draw(2) ? 0 : 0xff, picture->n_payload);
	if (draw(8) == 0)
		memset(picture->source, draw(2) ? 0 : 0xff, 16);
}

static void draw_edit(struct sim_edit *edit)
{
	static const uint16_t tpids[] = {0x8100, 0x88a8, 0x9100, 0x9200};

	edit->type = (enum sim_edit_type)draw(SIM_EDIT_DEC_TTL + 1);
	draw_bytes(edit->value, sizeof(edit->value));
	if (draw(8) == 0)
		memset(edit->value, draw(2) ? 0 : 0xff, sizeof(edit->value));
	if (edit->type == SIM_EDIT_PUSH_VLAN)
		put16(edit->value, tpids[draw(4)]);
	if (edit->type == SIM_EDIT_VLAN_VID)
		edit->value[0] &= 0x0f;
	if (edit->type == SIM_EDIT_VLAN_PCP)
		edit->value[0] &= 7;
}

/* Without a layer 4 that has ports, or one that can be seen, ports are not set. */
static bool has_ports(const struct picture *picture)
{
	return (picture->protocol == 6 || picture->protocol == 17) && !later_fragment(picture);
}

static void edit_tags(struct picture *picture, const struct sim_edit *edit)
{
	const uint8_t *value = edit->value;

	if (edit->type == SIM_EDIT_PUSH_VLAN) {
		memmove(picture->tag[1], picture->tag[0], 3 * sizeof(picture->tag[0]));
		picture->tag[0][0] = (uint16_t)(value[0] << 8 | value[1]);
		picture->tag[0][1] = picture->n_tags > 0 ? picture->tag[1][1] : 0;
		picture->n_tags++;
	} else if (picture->n_tags == 0) {
		return;
	} else if (edit->type == SIM_EDIT_POP_VLAN) {
		memmove(picture->tag[0], picture->tag[1], 3 * sizeof(picture->tag[0]));
		picture->n_tags--;
	} else if (edit->type == SIM_EDIT_VLAN_VID) {
		picture->tag[0][1] =
			(uint16_t)((picture->tag[0][1] & 0xf000) | value[0] << 8 | value[1]);
	} else {
		picture->tag[0][1] = (uint16_t)((picture->tag[0][1] & 0x1fff) | value[0] << 13);
	}
}

/* The same edit on the description. False: it is to be dropped. */
static bool edit_picture(struct picture *picture, const struct sim_edit *edit)
{
	switch (edit->type) {
	case SIM_EDIT_POP_VLAN:
	case SIM_EDIT_PUSH_VLAN:
	case SIM_EDIT_VLAN_VID:
	case SIM_EDIT_VLAN_PCP:
		edit_tags(picture, edit);
		break;
	case SIM_EDIT_MAC_SRC:
		memcpy(&picture->mac[6], edit->value, 6);
		break;
	case SIM_EDIT_MAC_DST:
		memcpy(picture->mac, edit->value, 6);
		break;
	case SIM_EDIT_IPV4_SRC:
	case SIM_EDIT_IPV6_SRC:
		if (picture->v6 == (edit->type == SIM_EDIT_IPV6_SRC))
			memcpy(picture->source, edit->value, picture->v6 ? 16 : 4);
		break;
	case SIM_EDIT_IPV4_DST:
	case SIM_EDIT_IPV6_DST:
		if (picture->v6 == (edit->type == SIM_EDIT_IPV6_DST))
			memcpy(picture->destination, edit->value, picture->v6 ? 16 : 4);
		break;
	case SIM_EDIT_TP_SRC:
		if (has_ports(picture))
			memcpy(picture->ports, edit->value, 2);
		break;
	case SIM_EDIT_TP_DST:
		if (has_ports(picture))
			memcpy(&picture->ports[2], edit->value, 2);
		break;
	case SIM_EDIT_DEC_TTL:
		if (picture->ttl <= 1)
			return false;
		picture->ttl--;
		break;
	}
	return true;
}

static struct rte_mbuf *mbuf_of(const uint8_t *bytes, size_t size)
{
	struct rte_mbuf *packet = rte_pktmbuf_alloc(pool);

	assert_non_null(packet);
	memcpy(rte_pktmbuf_append(packet, (uint16_t)size), bytes, size);
	return packet;
}

/* Headers in the first segment, the rest in a second. */
static struct rte_mbuf *two_segments_of(const uint8_t *bytes, size_t size, size_t first)
{
	struct rte_mbuf *packet = mbuf_of(bytes, first);

	if (size > first)
		assert_int_equal(
			rte_pktmbuf_chain(packet, mbuf_of(&bytes[first], size - first)), 0);
	return packet;
}

static void assert_bytes(struct rte_mbuf *packet, const uint8_t *bytes, size_t size)
{
	uint8_t copy[MAX_FRAME];

	assert_int_equal(rte_pktmbuf_pkt_len(packet), size);
	assert_memory_equal(rte_pktmbuf_read(packet, 0, (uint32_t)size, copy), bytes, size);
	assert_int_equal(rte_mbuf_check(packet, 1, &(const char *){NULL}), 0);
}

static void assert_pools_full(void)
{
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
	assert_int_equal(rte_mempool_in_use_count(small_pool), 0);
}

/* A later fragment's bytes behind the IP header belong to nobody: here, layer 4 without its checksum. */
static void settle(struct picture *picture)
{
	if (later_fragment(picture)) {
		picture->no_checksum = true;
		picture->protocol = picture->protocol == 6 ? 132 : picture->protocol;
	}
}

static void test_frames(void **state)
{
	unsigned dropped = 0, changed = 0;

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct sim_edit edits[4];
		unsigned n = 1 + draw(4);
		uint8_t before[MAX_FRAME], after[MAX_FRAME];
		struct picture picture;
		struct rte_mbuf *packet;
		size_t size;
		bool stays = true;

		draw_picture(&picture);
		settle(&picture);
		size = draw_frame(&picture, before);
		packet = two_segments_of(before, size, draw(2) ? size : headers_end);
		for (unsigned i = 0; i < n; i++) {
			draw_edit(&edits[i]);
			/* four tags are all that a description has room for */
			if (picture.n_tags == 4)
				edits[i].type = SIM_EDIT_POP_VLAN;
			stays = stays && edit_picture(&picture, &edits[i]);
		}
		assert_int_equal(sim_edit_packet(edits, n, &packet), stays);
		if (stays) {
			size = draw_frame(&picture, after);
			assert_bytes(packet, after, size);
			changed += memcmp(before, after, size) != 0;
		}
		dropped += !stays;
		rte_pktmbuf_free(packet);
	}
	assert_true(dropped > 100);
	assert_true(changed > ROUNDS / 2);
	assert_pools_full();
}

static const struct sim_edit to_port = {SIM_EDIT_TP_DST, {0x30, 0x39}};

static struct picture tcp_picture(void)
{
	struct picture picture;

	do
		draw_picture(&picture);
	while (picture.protocol != 6 || picture.fragment != 0);
	return picture;
}

/* Bytes that somebody else has are not touched. */
static void test_shared(void **state)
{
	(void)state;
	for (unsigned way = 0; way < 4; way++) {
		struct picture picture = tcp_picture();
		uint8_t before[MAX_FRAME], after[MAX_FRAME];
		size_t size = draw_frame(&picture, before);
		struct rte_mbuf *origin = mbuf_of(before, size);
		struct rte_mbuf *other, *packet;

		edit_picture(&picture, &to_port);
		draw_frame(&picture, after);
		if (way == 0) { /* a clone is edited; its own mbuf has no room for bytes */
			other = origin;
			packet = rte_pktmbuf_clone(origin, small_pool);
		} else if (way == 1) { /* a clone has the bytes */
			other = rte_pktmbuf_clone(origin, small_pool);
			packet = origin;
		} else if (way == 2) { /* the mbuf itself has two owners */
			rte_mbuf_refcnt_update(origin, 1);
			other = packet = origin;
		} else { /* a clone of a clone */
			other = rte_pktmbuf_clone(origin, small_pool);
			packet = rte_pktmbuf_clone(other, small_pool);
			rte_pktmbuf_free(origin);
		}
		assert_non_null(packet);
		assert_true(sim_edit_packet(&to_port, 1, &packet));
		assert_ptr_not_equal(packet, other);
		assert_bytes(packet, after, size);
		assert_bytes(other, before, size);
		rte_pktmbuf_free(packet);
		rte_pktmbuf_free(other);
		assert_pools_full();
	}
}

static void nothing_to_free(void *address, void *argument)
{
	(void)address;
	++*(unsigned *)argument;
}

/* Bytes outside of mempools: edited where they lie while nobody else has them. */
static void test_external(void **state)
{
	struct picture picture = tcp_picture();
	uint8_t before[MAX_FRAME], after[MAX_FRAME];
	_Alignas(8) uint8_t outside[MAX_FRAME + 64];
	uint16_t room = sizeof(outside);
	unsigned freed = 0;
	size_t size = draw_frame(&picture, before);
	struct rte_mbuf_ext_shared_info *shared;

	(void)state;
	edit_picture(&picture, &to_port);
	draw_frame(&picture, after);
	for (unsigned clones = 0; clones < 2; clones++) {
		struct rte_mbuf *packet = rte_pktmbuf_alloc(small_pool), *other = NULL;

		memcpy(outside, before, size);
		room = sizeof(outside);
		shared =
			rte_pktmbuf_ext_shinfo_init_helper(outside, &room, nothing_to_free, &freed);
		assert_non_null(shared);
		rte_pktmbuf_attach_extbuf(
			packet, outside, (rte_iova_t)(uintptr_t)outside, room, shared);
		rte_pktmbuf_append(packet, (uint16_t)size);
		if (clones > 0) {
			other = rte_pktmbuf_clone(packet, small_pool);
			/* and there is nowhere to copy it to */
			assert_false(sim_edit_packet(&to_port, 1, &packet));
			assert_bytes(packet, before, size);
		} else {
			assert_true(sim_edit_packet(&to_port, 1, &packet));
			assert_bytes(packet, after, size);
		}
		rte_pktmbuf_free(packet);
		rte_pktmbuf_free(other);
	}
	assert_int_equal(freed, 2);
	assert_pools_full();
}

static void test_no_room(void **state)
{
	const struct sim_edit push = {SIM_EDIT_PUSH_VLAN, {0x81, 0x00}};
	struct picture picture = tcp_picture();
	uint8_t before[MAX_FRAME];
	size_t size = draw_frame(&picture, before);
	struct rte_mbuf *packet = rte_pktmbuf_alloc(pool);

	(void)state;
	packet->data_off = 3;
	memcpy(rte_pktmbuf_append(packet, (uint16_t)size), before, size);
	assert_false(sim_edit_packet(&push, 1, &packet));
	assert_bytes(packet, before, size);
	rte_pktmbuf_free(packet);
}

/* Any bytes, cut anywhere: nothing beyond the packet is touched, and the length is as tags say. */
static void test_rubbish(void **state)
{
	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct picture picture;
		uint8_t bytes[MAX_FRAME], *end;
		struct sim_edit edit;
		struct rte_mbuf *packet;
		size_t size;

		draw_picture(&picture);
		size = draw_frame(&picture, bytes);
		bytes[draw((uint32_t)size)] ^= (uint8_t)draw(256);
		size = draw((uint32_t)size + 1);
		packet = mbuf_of(bytes, size);
		end = rte_pktmbuf_mtod_offset(packet, uint8_t *, size);
		memset(end, 0xa5, 64);
		draw_edit(&edit);
		sim_edit_packet(&edit, 1, &packet);
		for (unsigned i = 0; i < 64; i++)
			assert_int_equal(end[i], 0xa5);
		if (edit.type != SIM_EDIT_PUSH_VLAN && edit.type != SIM_EDIT_POP_VLAN)
			assert_int_equal(packet->pkt_len, size);
		rte_pktmbuf_free(packet);
	}
	assert_pools_full();
}

static int begin(void **state)
{
	struct error error;

	(void)state;
	if (dpdk_start(64, &error) < 0) {
		print_error("%s\n", error.text);
		return -1;
	}
	pool = rte_pktmbuf_pool_create("edit", 255, 0, 0, 2048, SOCKET_ID_ANY);
	small_pool = rte_pktmbuf_pool_create("clones", 63, 0, 0, 0, SOCKET_ID_ANY);
	return pool != NULL && small_pool != NULL ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	rte_mempool_free(pool);
	rte_mempool_free(small_pool);
	dpdk_stop();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_external),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_rubbish),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
