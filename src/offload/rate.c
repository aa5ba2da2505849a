/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/rate.h"

#define WEIGHTS 256u

uint32_t rate_decay(uint64_t us)
{
	/* 256 * 2^(-i/8) */
	static const uint16_t parts[] = {256, 235, 215, 197, 181, 166, 152, 140, 128};
	const uint64_t eighth_us = RATE_HALF_US / 8;
	uint64_t halves = us / RATE_HALF_US;
	uint64_t rest = us % RATE_HALF_US;

	if (halves >= 8)
		return 0;
	unsigned i = (unsigned)(rest / eighth_us);
	/* along the line between two of them */
	uint32_t part =
		(uint32_t)(parts[i] - (parts[i] - parts[i + 1]) * (rest % eighth_us) / eighth_us);

	return part >> halves;
}

/* So many packets in so many microseconds. */
static uint64_t in_units(uint64_t packets, uint64_t us)
{
	/* more than any port carries, and than can be multiplied */
	if (packets > UINT32_MAX)
		return UINT32_MAX;
	uint64_t value = packets * CLOCK_US_PER_S * RATE_ONE / us;

	return value < UINT32_MAX ? value : UINT32_MAX;
}

void rate_begin(struct rate *rate, uint64_t packets, uint64_t since_us, uint64_t now_us)
{
	uint64_t age_us = now_us > since_us ? now_us - since_us : 0;

	*rate = (struct rate){
		.packets = packets,
		.us = now_us,
		.value = (uint32_t)in_units(packets, age_us + RATE_PRIOR_US),
	};
}

void rate_look(struct rate *rate, uint64_t packets, uint64_t now_us)
{
	uint64_t us = now_us - rate->us;

	if (packets < rate->packets) {
		rate->packets = packets;
		rate->us = now_us;
		return;
	}
	if (us < RATE_LEAST_US)
		return;
	uint64_t came = packets - rate->packets;
	uint64_t expected = (uint64_t)rate->value * us / CLOCK_US_PER_S >> RATE_FRACTION;
	uint64_t most = came > expected ? came : expected;
	uint64_t telling = most < UINT32_MAX ? most : UINT32_MAX;
	uint32_t by_time = rate_decay(us);
	uint32_t by_number = (uint32_t)(WEIGHTS * RATE_TELLING / (telling + RATE_TELLING));
	uint32_t old = by_time < by_number ? by_time : by_number;
	uint64_t value = rate->value * (uint64_t)old + in_units(came, us) * (WEIGHTS - old);

	rate->packets = packets;
	rate->us = now_us;
	rate->value = (uint32_t)(value / WEIGHTS);
}
