/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Frames for the tests of the simulated NIC, each built together with what the NIC has to see of it, step
 * by step: once the frame has `end` bytes, a step's header is there. check() cuts a frame at each byte.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "drivers/flowsim/match/view.h"
#include "unit/frames.h"

#define SCENE_MAX_STEPS 48
#define SCENE_TUNNEL offsetof(struct sim_view, tunnel)
#define SCENE_MATCHED offsetof(struct sim_view, port)

/* Once `end` bytes are there: a layer, bytes of the frame, bits at a byte. */
struct step {
	size_t end;
	uint32_t layer;
	size_t at, from, size;
	uint8_t bits;
};

struct scene {
	struct frame frame;
	struct step steps[SCENE_MAX_STEPS];
	unsigned n;
	unsigned level;
};

static inline size_t level_at(const struct scene *scene, size_t at)
{
	return at + scene->level * sizeof(struct sim_level);
}

static inline uint32_t layer_of(const struct scene *scene, uint32_t layer)
{
	return layer << (scene->level * SIM_INNER);
}

static inline struct step *add_step(struct scene *scene, size_t end)
{
	assert_true(scene->n < SCENE_MAX_STEPS);
	scene->steps[scene->n] = (struct step){.end = end};
	return &scene->steps[scene->n++];
}

/* The last `n` bytes of the frame are a header that is seen at `at` of the level. */
static inline void seen(struct scene *scene, uint32_t layer, size_t at, size_t n)
{
	struct step *step = add_step(scene, scene->frame.length);

	step->layer = layer_of(scene, layer);
	step->at = level_at(scene, at);
	step->from = scene->frame.length - n;
	step->size = n;
}

static inline void seen_bits(struct scene *scene, size_t end, size_t at, uint8_t bits)
{
	struct step *step = add_step(scene, end);

	step->at = level_at(scene, at);
	step->bits = bits;
}

#define SEEN(scene, layer, member, n) seen(scene, layer, offsetof(struct sim_level, member), n)

static inline void scene_start(struct scene *scene)
{
	memset(scene, 0, sizeof(*scene));
	frame_start(&scene->frame);
}

/* The type comes before the tag, and belongs to Ethernet or to the tag before. */
static inline void add_type(struct scene *scene, unsigned type, unsigned n_tags)
{
	frame_type(&scene->frame, type);
	if (n_tags == 0)
		SEEN(scene, SIM_ETH, eth, 14);
	else
		SEEN(scene, SIM_VLAN << (n_tags - 1), vlan[n_tags - 1], 4);
	if (n_tags == 1)
		seen_bits(scene, scene->frame.length, offsetof(struct sim_level, has_vlan), 1);
	if (n_tags == 2)
		seen_bits(scene, scene->frame.length, offsetof(struct sim_level, has_more), 1);
}

static inline void add_tci(struct scene *scene, unsigned tci)
{
	put_be16(frame_add(&scene->frame, 2), tci);
}

static inline uint8_t *add_bytes(struct scene *scene, size_t n)
{
	uint8_t *at = frame_add(&scene->frame, n);

	for (size_t i = 0; i < n; i++)
		at[i] = (uint8_t)(0x11 + 7 * i);
	return at;
}

static inline void add_ipv4(struct scene *scene, unsigned protocol, size_t n_options)
{
	uint8_t *at = add_bytes(scene, 20);

	at[0] = (uint8_t)(0x45 + n_options / 4);
	put_be16(at + 6, 0x4000);
	at[9] = (uint8_t)protocol;
	SEEN(scene, SIM_IPV4, ip, 20);
	add_bytes(scene, n_options);
}

static inline void add_ipv6(struct scene *scene, unsigned next)
{
	uint8_t *at = add_bytes(scene, 40);

	at[0] = 0x6a;
	at[6] = (uint8_t)next;
	SEEN(scene, SIM_IPV6, ip, 40);
}

/* Of the frame's last `length` bytes the first 8 say that it is there. */
static inline void add_extension(
	struct scene *scene, unsigned next, unsigned bit, unsigned units, size_t length)
{
	uint8_t *at = add_bytes(scene, length);

	at[0] = (uint8_t)next;
	at[1] = (uint8_t)units;
	seen_bits(scene, scene->frame.length - length + 8,
		offsetof(struct sim_level, ipv6_has) + bit / 8, (uint8_t)(1u << bit % 8));
}

static inline uint8_t *add_l4(struct scene *scene, uint32_t layer, size_t n)
{
	uint8_t *at = add_bytes(scene, n);

	SEEN(scene, layer, l4, n);
	return at;
}

static inline void add_udp(struct scene *scene, unsigned port)
{
	put_be16(add_l4(scene, SIM_UDP, 8) + 2, port);
}

/* A tunnel's header; what follows is inside. */
static inline uint8_t *add_tunnel(struct scene *scene, uint32_t layer, size_t n)
{
	uint8_t *at = add_bytes(scene, n);

	assert_int_equal(scene->level, 0);
	seen(scene, layer, SCENE_TUNNEL, n);
	scene->level = 1;
	return at;
}

static inline void expect(const struct scene *scene, size_t cut, struct sim_view *view)
{
	uint8_t *bytes = (uint8_t *)view;

	memset(view, 0, sizeof(*view));
	for (unsigned i = 0; i < scene->n; i++) {
		const struct step *step = &scene->steps[i];

		if (step->end > cut)
			continue;
		view->layers |= step->layer;
		memcpy(bytes + step->at, scene->frame.bytes + step->from, step->size);
		bytes[step->at] |= step->bits;
	}
}

/* In a buffer of its own size, so that a sanitizer sees a byte read too many. */
static inline void parse(struct sim_view *view, const uint8_t *bytes, size_t length)
{
	uint8_t *copy = malloc(length > 0 ? length : 1);

	assert_non_null(copy);
	memcpy(copy, bytes, length);
	memset(view, 0xa5, sizeof(*view));
	sim_view_parse(view, length > 0 ? copy : copy + 1, (uint32_t)length);
	free(copy);
}

static inline void check_at(const struct scene *scene, size_t cut)
{
	struct sim_view view, expected;

	parse(&view, scene->frame.bytes, cut);
	expect(scene, cut, &expected);
	assert_int_equal(view.layers, expected.layers);
	assert_memory_equal(&view, &expected, SCENE_MATCHED);
	assert_int_equal(view.port, 0xa5a5);
	assert_int_equal(view.length, cut);
}

static inline void check(const struct scene *scene)
{
	for (size_t cut = 0; cut <= scene->frame.length; cut++)
		check_at(scene, cut);
}

static inline uint32_t layers(const struct scene *scene)
{
	struct sim_view view;

	parse(&view, scene->frame.bytes, scene->frame.length);
	return view.layers;
}
