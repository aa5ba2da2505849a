/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/settings.h"

#include <string.h>

#include "dataplane/lcore.h"

void settings_put(struct settings_board *board, const struct settings *settings)
{
	uint32_t words[SETTINGS_WORDS] = {0};
	const uint32_t before = atomic_load_explicit(&board->sequence, memory_order_relaxed);

	memcpy(words, settings, sizeof(*settings));
	atomic_store_explicit(&board->sequence, before + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	for (unsigned i = 0; i < SETTINGS_WORDS; i++)
		atomic_store_explicit(&board->words[i], words[i], memory_order_relaxed);
	atomic_store_explicit(&board->sequence, before + 2, memory_order_release);
}

/* False: control is writing. */
static bool read_board(struct settings_board *board, uint32_t sequence, struct settings *settings)
{
	uint32_t words[SETTINGS_WORDS];

	if (sequence % 2 != 0)
		return false;
	for (unsigned i = 0; i < SETTINGS_WORDS; i++)
		words[i] = atomic_load_explicit(&board->words[i], memory_order_relaxed);
	atomic_thread_fence(memory_order_acquire);
	memcpy(settings, words, sizeof(*settings));
	return atomic_load_explicit(&board->sequence, memory_order_relaxed) == sequence;
}

static void heed(struct lcore *lcore, const struct settings *settings)
{
	const unsigned n_workers = lcore->worker.steer.n_shards;

	if (lcore->worker.shard == NULL)
		return;
	flow_shard_set_times(lcore->worker.shard, &settings->timeouts, settings->active_s);
	if (lcore->reject_limit.rate != settings->reject_rate)
		rate_limit_init(&lcore->reject_limit, settings->reject_rate, n_workers);
	if (lcore->log_limit.rate != settings->log_rate)
		rate_limit_init(&lcore->log_limit, settings->log_rate, n_workers);
	if (lcore->worker.agent != NULL)
		agent_set(lcore->worker.agent, &settings->offload);
}

void settings_take(struct lcore *lcore)
{
	struct settings_board *board = lcore->settings;
	struct settings settings;
	uint32_t sequence;

	if (board == NULL)
		return;
	sequence = atomic_load_explicit(&board->sequence, memory_order_acquire);
	if (likely(sequence == lcore->settings_taken) || !read_board(board, sequence, &settings))
		return;
	lcore->settings_taken = sequence;
	heed(lcore, &settings);
}
