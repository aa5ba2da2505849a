/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Times and durations as people read them. */

#include <stdbool.h>
#include <stdint.h>

#define WHEN_MAX 40

/* The Unix time in microseconds of "2026-11-20T08:00:00.000000Z". False when it is not that. */
bool when_parse(const char *text, int64_t *unix_us);

/* In the reader's zone. "11-20 09:00:00.000" */
const char *when_short(char buffer[WHEN_MAX], int64_t unix_us);
/* "2026-11-20 09:00:00.000000" */
const char *when_full(char buffer[WHEN_MAX], int64_t unix_us);

/* A duration that lines up: "00:02:11", and from 100 hours on "12d 03h". */
const char *when_clock(char buffer[WHEN_MAX], int64_t us);
/* A duration in a sentence: "3 ms", "39.9 s", "2 h 4 min", "12 d 3 h". */
const char *when_span(char buffer[WHEN_MAX], uint64_t us);
