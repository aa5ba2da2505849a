/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/steer.h"

/* Trust that has held for so many times the last back-off is as good as new. */
#define HELD 10

static void lose(struct trust_kind *kind, uint64_t now_us)
{
	const uint64_t held_us = now_us - kind->again_us;

	if (kind->back_off_us == 0 || held_us >= HELD * kind->back_off_us)
		kind->back_off_us = TRUST_FIRST_US;
	else if (kind->back_off_us < TRUST_MOST_US / 2)
		kind->back_off_us *= 2;
	else
		kind->back_off_us = TRUST_MOST_US;
	kind->misplaced = 0;
	kind->again_us = now_us + kind->back_off_us;
}

bool trust_misplaced(struct trust *trust, enum rss_kind number, uint64_t now_us)
{
	struct trust_kind *kind = &trust->kind[number];

	/* it came before that, and waited */
	if (trust->lost >> number & 1)
		return false;
	if (kind->misplaced == 0 || now_us - kind->since_us > TRUST_WINDOW_US) {
		kind->misplaced = 0;
		kind->since_us = now_us;
	}
	if (++kind->misplaced < TRUST_PACKETS)
		return false;
	trust->lost |= (uint8_t)(1u << number);
	lose(kind, now_us);
	return true;
}

uint8_t trust_again(struct trust *trust, uint64_t now_us)
{
	uint8_t again = 0;

	for (unsigned i = 0; i < RSS_N_KINDS; i++)
		if (trust->lost >> i & 1 && now_us >= trust->kind[i].again_us)
			again |= (uint8_t)(1u << i);
	trust->lost &= (uint8_t)~again;
	return again;
}
