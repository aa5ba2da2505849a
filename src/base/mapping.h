/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Large memory straight from the kernel: anonymous, zeroed, aligned to a page (to 2 MB where large
 * pages are asked for), given back whole.
 */

#include <stdbool.h>
#include <stddef.h>

enum mapping_flag {
	MAPPING_HUGE = 1 << 0, /* 2 MB pages where the kernel has them; else small ones, silently */
	MAPPING_POPULATE = 1 << 1, /* all pages taken now, not at their first touch */
	MAPPING_SMALL = 1 << 2, /* small pages, also where the kernel takes large ones unasked; goes
				   before the first, which then only aligns */
};

/*
 * Returns NULL and sets errno: EINVAL for size 0, ENOMEM when the memory is not there, EINTR when it was not to be
 * waited for.
 */
void *mapping_create(size_t size, unsigned flags);

/*
 * Tens of gigabytes take as many seconds. While pages are taken (MAPPING_POPULATE) `stop` is asked a few times a
 * second whether that is still wanted. NULL, as at the start: it is. Of a thread, for mappings that it makes.
 */
void mapping_ask(bool (*stop)(void *context), void *context);
/* `size` as it was asked for. Accepts NULL. */
void mapping_destroy(void *mapping, size_t size);
