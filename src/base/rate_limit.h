/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * So many a second, and no more than a tenth of that at once. Where several threads share a rate, each has its part for
 * itself. One thread's; nothing is divided.
 */

#include <stdbool.h>
#include <stdint.h>

/* The highest rate, in a second. */
#define RATE_LIMIT_MAX 1000000u

struct rate_limit {
	uint64_t rate;	 /* of all threads together; 0: none passes */
	uint64_t cost;	 /* of one: a microsecond of one thread brings `rate` */
	uint64_t most;	 /* that may be saved up */
	uint64_t credit; /* at last_us */
	uint64_t last_us;
};

/* `parts`: threads that share the rate, 1 or more. It begins with all that may be saved up. */
static inline void rate_limit_init(struct rate_limit *limit, uint32_t rate, unsigned parts)
{
	const uint64_t cost = UINT64_C(1000000) * parts, tenth = UINT64_C(100000) * rate;

	*limit = (struct rate_limit){
		.rate = rate, .cost = cost, .most = tenth > cost ? tenth : cost};
	limit->credit = rate == 0 ? 0 : limit->most;
}

/* Whether one more may pass now; the clock may begin anew. */
static inline bool rate_limit_has(struct rate_limit *limit, uint64_t now_us)
{
	/* of a longer silence nothing more is saved up, and the product stays small */
	const uint64_t silence_us = UINT64_C(1) << 32;
	uint64_t elapsed_us = now_us > limit->last_us ? now_us - limit->last_us : 0;

	if (elapsed_us > silence_us)
		elapsed_us = silence_us;
	limit->last_us = now_us;
	limit->credit += elapsed_us * limit->rate;
	if (limit->credit > limit->most)
		limit->credit = limit->most;
	return limit->rate != 0 && limit->credit >= limit->cost;
}

/* After rate_limit_has(): it passes. */
static inline void rate_limit_take(struct rate_limit *limit)
{
	limit->credit -= limit->cost;
}
