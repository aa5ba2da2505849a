/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* A step of CRC-32c, as both of the contenders that hash by it would have it: one instruction. */

#include <stdint.h>

#include <rte_hash_crc.h>

static inline uint32_t bench_crc(uint64_t value, uint32_t crc)
{
#ifdef __SSE4_2__
	return (uint32_t)__builtin_ia32_crc32di(crc, value);
#else
	return rte_hash_crc_8byte(value, crc);
#endif
}
