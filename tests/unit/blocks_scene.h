/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What the tests of the list of blocks share: a secret, an RCU variable, and blocks by their text. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "rule/blocks.h"

#define S(seconds) ((uint64_t)(seconds) * CLOCK_US_PER_S)
#define MAX_WORKERS 2

/* The sanitizers make everything slower, which says nothing of the list. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLOWER 20
#else
#define SLOWER 1
#endif

static struct hash_secret secret;
static struct rte_rcu_qsbr *qsbr;

static inline int start(void **state)
{
	(void)state;
	for (unsigned i = 0; i < HASH_SECRET_WORDS; i++)
		secret.word[i] = UINT64_C(0x9e3779b97f4a7c15) * (i + 1) ^ i << 7;
	size_t size = rte_rcu_qsbr_get_memsize(MAX_WORKERS);

	qsbr = aligned_alloc(64, (size + 63) / 64 * 64);
	return !qsbr || rte_rcu_qsbr_init(qsbr, MAX_WORKERS) != 0;
}

static inline int stop(void **state)
{
	(void)state;
	free(qsbr);
	return 0;
}

static inline struct blocks *make(uint32_t max_entries, uint32_t max_reasons)
{
	struct blocks_config config = {
		.max_entries = max_entries,
		.max_reasons = max_reasons,
		.n_workers = MAX_WORKERS,
		.secret = &secret,
		.qsbr = qsbr,
	};
	struct blocks *blocks = NULL;

	assert_int_equal(blocks_create(&blocks, &config), 0);
	return blocks;
}

static inline void settle(struct blocks *blocks)
{
	blocks_settled(blocks, blocks_generation(blocks));
}

static uint64_t seed = 1;

static inline uint32_t draw(uint32_t n)
{
	seed += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t z = (seed ^ seed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);

	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((z ^ z >> 31) >> 32) % n;
}

static inline struct block parse_block(const char *text)
{
	static char line[BLOCK_LINE_MAX];
	struct block block;
	struct error error;
	unsigned column;

	assert_true(strlen(text) < sizeof(line));
	memcpy(line, text, strlen(text) + 1);
	if (block_parse_line(&block, line, &column, &error) < 0)
		fail_msg("%s: %s", text, error.text);
	return block;
}
