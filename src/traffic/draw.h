/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Drawing by a seed, with integers alone, so that the same seed draws the same everywhere.
 * Whoever draws owns the struct.
 */

#include <stdint.h>

/* A number that looks like chance, and is a function of this one (splitmix64's finish). */
static inline uint64_t draw_mix(uint64_t number)
{
	number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
	return number ^ number >> 31;
}

/* The `number`th of those that belong to a seed. */
static inline uint64_t draw_at(uint64_t seed, uint64_t number)
{
	return draw_mix(seed + (number + 1) * UINT64_C(0x9e3779b97f4a7c15));
}

/* 0 to n - 1 of a drawn number. */
static inline uint32_t draw_below(uint64_t drawn, uint32_t n)
{
	return (uint32_t)(((drawn >> 32) * n) >> 32);
}

/* One after the other. */
struct draw {
	uint64_t seed;
	uint64_t number;
};

static inline uint64_t draw_next(struct draw *draw)
{
	return draw_at(draw->seed, draw->number++);
}
