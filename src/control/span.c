/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/span.h"

#include <stdio.h>

#include "base/clock.h"

const char *span_text(char text[TEXT_NUMBER_MAX], uint64_t us)
{
	char grouped[TEXT_NUMBER_MAX];

	if (us < 1000)
		snprintf(text, TEXT_NUMBER_MAX, "%u us", (unsigned)us);
	else if (us < CLOCK_US_PER_S)
		snprintf(text, TEXT_NUMBER_MAX, "%u ms", (unsigned)(us / 1000));
	else if (us < 10 * CLOCK_US_PER_S)
		snprintf(text, TEXT_NUMBER_MAX, "%u.%u s", (unsigned)(us / CLOCK_US_PER_S),
			(unsigned)(us / (CLOCK_US_PER_S / 10) % 10));
	else
		snprintf(text, TEXT_NUMBER_MAX, "%.20s s",
			text_grouped(grouped, us / CLOCK_US_PER_S));
	return text;
}
