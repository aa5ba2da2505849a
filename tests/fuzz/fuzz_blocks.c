/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Bytes as a list of blocks. Besides what sanitizers see:
 *
 * - what is refused is told in one line that names the text, and leaves the list as it was;
 * - what is taken is listed; written as text and read again it makes the same list;
 * - each flow and each address of the list finds a block, and what is found fits it;
 * - what is removed or expires leaves nothing behind.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "rule/blocks.h"

#define CAPACITY 100
#define MAX_REASONS 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

static struct blocks *make(void)
{
	static const struct hash_secret secret = {.word = {5, 7, 11, 13, 17, 19}};
	static struct rte_rcu_qsbr *qsbr;
	struct blocks *blocks = NULL;

	if (!qsbr) {
		size_t size = (rte_rcu_qsbr_get_memsize(1) + 63) / 64 * 64;

		qsbr = aligned_alloc(64, size);
		check(qsbr && rte_rcu_qsbr_init(qsbr, 1) == 0, "qsbr");
	}
	struct blocks_config config = {
		.max_entries = CAPACITY,
		.max_reasons = MAX_REASONS,
		.n_workers = 1,
		.secret = &secret,
		.qsbr = qsbr,
	};

	check(blocks_create(&blocks, &config) == 0, "create");
	return blocks;
}

static void check_refused(const struct blocks *blocks, int code, const struct error *error)
{
	struct blocks_stats stats;

	check(code == -EBADMSG || code == -ENOSPC, "code");
	check(strncmp(error->text, "f:", 2) == 0, "a name in front");
	for (const char *at = error->text; *at != '\0'; at++)
		check((unsigned char)*at >= 0x20, "one line");
	blocks_stats(blocks, &stats);
	check(stats.entries == 0 && stats.reasons == 0 && blocks_generation(blocks) == 1,
		"nothing changed");
}

/* A flow that the block fits: its own, or one from the first address of its prefix. */
static struct flow_key key_of(const struct block_match *match)
{
	const struct block_prefix *prefix = &match->prefix;
	uint8_t other[16] = {0};
	struct flow_key key;

	if (match->is_flow)
		return match->flow;
	key = (struct flow_key){
		.proto = prefix->proto == BLOCK_ANY ? 6 : (uint8_t)prefix->proto,
		.version_wire = FLOW_KEY_VERSION_WIRE(prefix->version, 3),
		.zone = 5,
	};
	flow_key_make(&key, prefix->addr, other,
		rte_cpu_to_be_16((uint16_t)(prefix->port == BLOCK_ANY ? 9 : prefix->port)), 0);
	return key;
}

static size_t write_all(const struct blocks *blocks, char *text)
{
	struct block_view views[CAPACITY];
	uint32_t from = 0;
	size_t size = 0;
	uint32_t n = blocks_list(blocks, NULL, &from, views, CAPACITY);

	for (uint32_t i = 0; i < n; i++) {
		struct block block = {
			.match = views[i].match,
			.for_s = (uint32_t)(views[i].expires_us / CLOCK_US_PER_S),
			.reason = views[i].reason,
		};
		struct flow_key key = key_of(&block.match);
		uint32_t position = blocks_find(blocks, &key);
		struct block_view found;

		check(position != BLOCKS_NONE, "found");
		check(blocks_get_number(blocks, blocks_number(blocks, position), &found) == 0,
			"number");
		check(block_match_fits(&found.match, &key), "fits");
		check(block_match_fits(&block.match, &key), "fits its own");
		size += block_format(&block, text + size);
		text[size++] = '\n';
	}
	return size;
}

/* Half of them by hand, the others by time. */
static void remove_all(struct blocks *blocks)
{
	struct block_view views[CAPACITY], gone;
	struct blocks_stats stats;
	uint32_t from = 0;
	uint32_t n = blocks_list(blocks, NULL, &from, views, CAPACITY);

	for (uint32_t i = 0; i < n; i++)
		if (i % 2 == 0 || views[i].expires_us == 0)
			check(blocks_remove(blocks, &views[i].match, &gone) == 0 &&
					gone.number == views[i].number,
				"remove");
	blocks_expire(blocks, (BLOCK_FOR_MAX_S + 1) * CLOCK_US_PER_S, NULL, NULL);
	blocks_settled(blocks, blocks_generation(blocks));
	blocks_stats(blocks, &stats);
	check(stats.entries == 0 && stats.flows == 0 && stats.reasons == 0 && stats.unsettled == 0,
		"empty");
	for (uint32_t i = 0; i < n; i++) {
		struct flow_key key = key_of(&views[i].match);

		check(blocks_find(blocks, &key) == BLOCKS_NONE, "nothing found");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char text[CAPACITY * BLOCK_LINE_MAX], again[CAPACITY * BLOCK_LINE_MAX];
	struct blocks *blocks = make();
	struct blocks_added added;
	struct error error = {""};
	int ret = blocks_load_bytes(blocks, "f", (const char *)data, size, 0, &added, &error);

	if (ret < 0) {
		check_refused(blocks, ret, &error);
	} else {
		size_t length = write_all(blocks, text);
		struct blocks *other = make();

		check(blocks_load_bytes(other, "f", text, length, 0, &added, &error) == 0, "again");
		check(added.replaced == 0, "each once");
		check(write_all(other, again) == length && memcmp(text, again, length) == 0,
			"the same");
		blocks_destroy(other);
		remove_all(blocks);
	}
	blocks_destroy(blocks);
	return 0;
}
