/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Spans of time, as sentences of answers have them. */

#include <stdint.h>

#include "base/text.h"

/* From `then` to `now`; 0 where a thread saw something after the question was asked. */
static inline uint64_t span_since(uint64_t now_us, uint64_t then_us)
{
	return now_us > then_us ? now_us - then_us : 0;
}

/* "912 us", "3 ms", "4.2 s", "120 s". Returns `text`. */
const char *span_text(char text[TEXT_NUMBER_MAX], uint64_t us);
