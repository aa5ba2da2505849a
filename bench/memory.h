/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Memory for the contenders that take theirs from DPDK. Without hugepages DPDK's lies on pages of 4 KB,
 * and a table on these is no match for one of ours, which the kernel gives pages of 2 MB: so they get a
 * heap on such pages too.
 *
 * Once per process, after EAL has started; it lasts until EAL ends.
 */

#include <stddef.h>

/*
 * Whether the kernel backs memory that asks for it by pages of 2 MB, as tried with some: 1, 0, or a negative
 * errno when it does not say. Any thread, at any time.
 */
int bench_huge_pages(void);

/* Makes a heap of `bytes`. Returns the socket that it is asked by, or a negative errno. */
int bench_heap_create(size_t bytes);
