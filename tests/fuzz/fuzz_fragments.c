/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Operations on a small fragment table, three bytes each, held against an array that forgets nothing: the table may have
 * forgotten, since it evicts, but what it says is true, and no list is told twice, or lost while its datagram waits.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "flow/fragments.h"

#define N_DATAGRAMS 64
#define UNIT_US UINT64_C(2048)

enum kind {
	ABSENT,
	KNOWN,
	DROPPED,
	WAITING,
};

struct model {
	struct {
		enum kind kind;
		uint64_t since_us; /* when its 60 s began */
		uint16_t port;
		uint32_t list;
	} datagrams[N_DATAGRAMS];
	uint64_t now_us;
	uint32_t next_list;
};

static void check(bool holds)
{
	if (!holds)
		abort();
}

/* Who waits with a list is in the table until it is evicted or forgotten. */
static void on_evicted(void *context, uint32_t list)
{
	struct model *model = context;

	for (uint32_t i = 0; i < N_DATAGRAMS; i++) {
		if (model->datagrams[i].kind == WAITING && model->datagrams[i].list == list) {
			model->datagrams[i].kind = ABSENT;
			return;
		}
	}
	check(false);
}

/* Few lines, few tags in each: as many collisions as can be. */
static uint64_t fingerprint_of(uint32_t i)
{
	return (uint64_t)(i & 3) << 62 | (i & 4 ? UINT64_C(0x80000000) : 0) | i;
}

static bool may_live(const struct model *model, uint32_t i)
{
	/* it may have become whole in its last moment */
	return model->now_us <=
	       model->datagrams[i].since_us + FRAGMENTS_LIFETIME_US + FRAGMENTS_LINGER_US + UNIT_US;
}

static struct fragment_piece piece_of(uint8_t byte)
{
	return (struct fragment_piece){
		.offset = byte & 7, .length = byte >> 3 & 7, .more = byte >> 6 & 1};
}

/* The list that a first fragment lets go. */
static void check_list(const struct model *model, uint32_t i, uint32_t list)
{
	check(list ==
		(model->datagrams[i].kind == WAITING ? model->datagrams[i].list : FRAGMENTS_NONE));
}

static void begin(struct model *model, uint32_t i, enum kind kind, uint16_t port)
{
	if (model->datagrams[i].kind != WAITING)
		model->datagrams[i].since_us = model->now_us;
	model->datagrams[i].kind = kind;
	model->datagrams[i].port = port;
}

static void do_first(struct model *model, struct fragments *fragments, uint32_t i, uint8_t byte)
{
	uint16_t port = (uint16_t)(byte << 8 | i);
	struct fragment_ports ports = {.proto = 17, .src = port, .dst = (uint16_t)(port + 1)};
	struct fragment_piece piece = {.length = byte & 7, .more = true};

	check_list(model, i,
		fragments_first(fragments, fingerprint_of(i), ports, piece, model->now_us));
	begin(model, i, KNOWN, port);
	/* what was only just told is known */
	if (model->now_us <= model->datagrams[i].since_us + FRAGMENTS_LIFETIME_US)
		check(fragments_find(fragments, fingerprint_of(i), model->now_us, &ports));
}

static void do_drop(struct model *model, struct fragments *fragments, uint32_t i)
{
	check_list(model, i, fragments_drop(fragments, fingerprint_of(i), model->now_us));
	begin(model, i, DROPPED, 0);
}

static void do_later(
	struct model *model, struct fragments *fragments, uint32_t i, uint8_t byte, bool held)
{
	struct fragment_ports ports = {0};
	uint32_t waiting = 0;
	enum fragments_answer answer = fragments_later(
		fragments, fingerprint_of(i), piece_of(byte), model->now_us, &ports, &waiting);

	if (answer == FRAGMENTS_KNOWN) {
		check(model->datagrams[i].kind == KNOWN && may_live(model, i));
		check(ports.src == model->datagrams[i].port && ports.proto == 17);
		return;
	}
	if (answer == FRAGMENTS_DROPPED) {
		check(model->datagrams[i].kind == DROPPED && may_live(model, i));
		return;
	}
	if (model->datagrams[i].kind == WAITING) {
		check(waiting == model->datagrams[i].list);
		return;
	}
	check(waiting == FRAGMENTS_NONE);
	model->datagrams[i].kind = ABSENT;
	if (!held) {
		fragments_forget(fragments, fingerprint_of(i));
		return;
	}
	model->datagrams[i].kind = WAITING;
	model->datagrams[i].since_us = model->now_us;
	model->datagrams[i].list = model->next_list++;
	fragments_set_waiting(fragments, fingerprint_of(i), model->datagrams[i].list);
}

static void compare(const struct model *model, struct fragments *fragments)
{
	for (uint32_t i = 0; i < N_DATAGRAMS; i++) {
		struct fragment_ports ports = {0};

		if (fragments_find(fragments, fingerprint_of(i), model->now_us, &ports))
			check(model->datagrams[i].kind == KNOWN && may_live(model, i) &&
				ports.src == model->datagrams[i].port);
		if (fragments_is_dropped(fragments, fingerprint_of(i), model->now_us))
			check(model->datagrams[i].kind == DROPPED && may_live(model, i));
	}
}

/* Every list that waits comes out, once. */
static void let_all_go(struct model *model, struct fragments *fragments)
{
	for (uint32_t i = 0; i < N_DATAGRAMS; i++)
		if (model->datagrams[i].kind == WAITING)
			do_drop(model, fragments, i);
}

/* Who has a datagram wait forgets it in time. */
static void pass_time(struct model *model, struct fragments *fragments, uint64_t us)
{
	model->now_us += us;
	for (uint32_t i = 0; i < N_DATAGRAMS; i++) {
		if (model->datagrams[i].kind != WAITING ||
			model->now_us < model->datagrams[i].since_us + FRAGMENTS_LIFETIME_US)
			continue;
		fragments_forget(fragments, fingerprint_of(i));
		model->datagrams[i].kind = ABSENT;
	}
}

static void step(struct model *model, struct fragments *fragments, const uint8_t *bytes)
{
	uint32_t i = bytes[1] % N_DATAGRAMS;

	switch (bytes[0] % 8) {
	case 0:
		pass_time(model, fragments, bytes[0] & 8 ? bytes[2] * CLOCK_US_PER_S : bytes[2]);
		break;
	case 1:
		fragments_forget(fragments, fingerprint_of(i));
		model->datagrams[i].kind = ABSENT;
		break;
	case 2:
		if (bytes[1] == 0 && bytes[2] == 0) {
			let_all_go(model, fragments);
			fragments_clear(fragments);
			memset(model->datagrams, 0, sizeof(model->datagrams));
			model->now_us = 0;
		} else {
			do_drop(model, fragments, i);
		}
		break;
	case 3:
	case 4:
	case 5:
		do_later(model, fragments, i, bytes[2], bytes[0] & 8);
		break;
	default:
		do_first(model, fragments, i, bytes[2]);
	}
	compare(model, fragments);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct model model = {0};
	struct fragments *fragments = NULL;

	if (size == 0)
		return 0;
	if (fragments_create(&fragments, data[0] % (N_DATAGRAMS + 1), on_evicted, &model) != 0)
		return 0;
	for (size_t at = 1; at + 3 <= size; at += 3)
		step(&model, fragments, data + at);
	let_all_go(&model, fragments);
	fragments_destroy(fragments);
	return 0;
}
