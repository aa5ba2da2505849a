/* SPDX-License-Identifier: BSD-3-Clause */

/* Operations on a small fragment table, three bytes each, held against an array. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "flow/fragments.h"

#define S(seconds) ((seconds) * CLOCK_US_PER_S)

#define N_DATAGRAMS 64

enum kind {
	ABSENT,
	KNOWN,
	WAITING,
};

struct model {
	struct {
		enum kind kind;
		uint64_t since;
		uint32_t value;
	} datagrams[N_DATAGRAMS];
	uint32_t count;
	uint32_t max_datagrams;
	uint64_t tick;
	uint32_t next_list;
	uint32_t n_ended[2]; /* lists that ended: by the table, by the model */
	uint64_t sum_ended[2];
};

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void on_expired(void *context, uint32_t waiting)
{
	struct model *model = context;

	model->n_ended[0]++;
	model->sum_ended[0] += waiting;
}

/* Few lines, few tags in each: as many collisions as can be. */
static uint64_t fingerprint_of(uint32_t i)
{
	return (uint64_t)(i & 3) << 62 | (i & 4 ? UINT64_C(0x80000000) : 0) | i;
}

static void end(struct model *model, uint32_t i)
{
	if (model->datagrams[i].kind == WAITING && model->datagrams[i].value != FRAGMENTS_NONE) {
		model->n_ended[1]++;
		model->sum_ended[1] += model->datagrams[i].value;
	}
	model->count -= model->datagrams[i].kind != ABSENT;
	model->datagrams[i].kind = ABSENT;
}

static void run_to(struct model *model, uint64_t tick)
{
	model->tick = tick;
	for (uint32_t i = 0; i < N_DATAGRAMS; i++) {
		if (model->datagrams[i].kind != ABSENT &&
			tick >= model->datagrams[i].since + FRAGMENTS_LIFETIME_S)
			end(model, i);
	}
}

static void do_first(struct model *model, struct fragments *fragments, uint32_t i, uint16_t port)
{
	enum kind kind = model->datagrams[i].kind;
	struct fragment_ports ports = {.proto = 17, .src = port, .dst = (uint16_t)(port + 1)};
	bool tied;
	uint32_t waiting =
		fragments_first(fragments, fingerprint_of(i), ports, S(model->tick), &tied);

	check(waiting == (kind == WAITING ? model->datagrams[i].value : FRAGMENTS_NONE));
	check(tied == (kind != ABSENT || model->count < model->max_datagrams));
	if (!tied)
		return;
	model->count += kind == ABSENT;
	if (kind != WAITING)
		model->datagrams[i].since = model->tick;
	model->datagrams[i].kind = KNOWN;
	model->datagrams[i].value = port;
}

static void do_later(struct model *model, struct fragments *fragments, uint32_t i, bool held)
{
	struct fragment_ports ports = {0};
	uint32_t waiting = 0;
	enum fragments_answer answer =
		fragments_later(fragments, fingerprint_of(i), S(model->tick), &ports, &waiting);

	if (model->datagrams[i].kind == KNOWN) {
		check(answer == FRAGMENTS_KNOWN && ports.src == model->datagrams[i].value);
		return;
	}
	if (model->datagrams[i].kind == ABSENT) {
		if (model->count == model->max_datagrams) {
			check(answer == FRAGMENTS_FULL);
			return;
		}
		model->datagrams[i].kind = WAITING;
		model->datagrams[i].since = model->tick;
		model->datagrams[i].value = FRAGMENTS_NONE;
		model->count++;
	}
	check(answer == FRAGMENTS_WAITING && waiting == model->datagrams[i].value);
	if (!held)
		return;
	model->datagrams[i].value = model->next_list++;
	fragments_set_waiting(fragments, fingerprint_of(i), model->datagrams[i].value);
}

static void compare(const struct model *model, const struct fragments *fragments)
{
	check(fragments_count(fragments) == model->count);
	check(model->n_ended[0] == model->n_ended[1]);
	check(model->sum_ended[0] == model->sum_ended[1]);
	for (uint32_t i = 0; i < N_DATAGRAMS; i++) {
		struct fragment_ports ports = {0};
		bool known = fragments_find(fragments, fingerprint_of(i), S(model->tick), &ports);

		check(known == (model->datagrams[i].kind == KNOWN));
		check(!known || ports.src == model->datagrams[i].value);
	}
}

static void step(struct model *model, struct fragments *fragments, const uint8_t *bytes)
{
	uint32_t i = bytes[1] % N_DATAGRAMS;

	switch (bytes[0] % 8) {
	case 0:
		run_to(model, model->tick + bytes[2]);
		if (bytes[0] & 8)
			fragments_advance(fragments, S(model->tick));
		else
			do_later(model, fragments, i, true);
		break;
	case 1:
		if (model->datagrams[i].kind != ABSENT)
			model->count--;
		model->datagrams[i].kind = ABSENT;
		fragments_forget(fragments, fingerprint_of(i));
		break;
	case 2:
		if (bytes[1] != 0 || bytes[2] != 0)
			break;
		fragments_flush(fragments);
		for (i = 0; i < N_DATAGRAMS; i++)
			end(model, i);
		model->tick = 0;
		break;
	case 3:
	case 4:
		do_later(model, fragments, i, bytes[0] & 8);
		break;
	default:
		do_first(model, fragments, i, (uint16_t)(bytes[2] << 8 | i));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct model model = {0};
	struct fragments *fragments = NULL;

	if (size == 0)
		return 0;
	model.max_datagrams = data[0] % (N_DATAGRAMS + 1);
	if (fragments_create(&fragments, model.max_datagrams, on_expired, &model) != 0)
		return 0;
	for (size_t at = 1; at + 3 <= size; at += 3)
		step(&model, fragments, data + at);
	/* time of the table may lie behind: then only a call that tells it shows what has ended */
	fragments_advance(fragments, S(model.tick));
	compare(&model, fragments);
	fragments_destroy(fragments);
	return 0;
}
