/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/balance.h"

/* Of what all workers had since the last look the worker had far more than its share. */
static bool has_most(struct balance *balance, struct balance_board *board, enum balance_of of,
	unsigned worker, unsigned n_workers)
{
	static const uint64_t least[BALANCE_N] = {
		[BALANCE_FLOWS] = BALANCE_LEAST_FLOWS, [BALANCE_PACKETS] = BALANCE_LEAST_PACKETS};
	uint64_t all = 0, own = 0;

	for (unsigned i = 0; i < n_workers; i++) {
		const uint64_t had = atomic_load_explicit(&board->had[of][i], memory_order_relaxed);
		const uint64_t since = had - balance->seen[of][i];

		balance->seen[of][i] = had;
		all += since;
		if (i == worker)
			own = since;
	}
	/* more than (1 + 1/n) / 2 of it */
	return n_workers > 1 && all >= least[of] && own * 2 * n_workers > all * (n_workers + 1);
}

unsigned balance_look(struct balance *balance, struct balance_board *board, unsigned worker,
	unsigned n_workers, const uint64_t had[BALANCE_N])
{
	unsigned news = 0;

	for (unsigned of = 0; of < BALANCE_N; of++) {
		atomic_store_explicit(&board->had[of][worker], had[of], memory_order_relaxed);
		balance->quiet_s[of]++;
		const bool before = balance->was[of];

		balance->was[of] = has_most(balance, board, (enum balance_of)of, worker, n_workers);
		if (!before || !balance->was[of])
			continue;
		if (balance->crowded_s[of] == 0 || balance->quiet_s[of] > BALANCE_QUIET_S)
			news |= 1u << of;
		balance->crowded_s[of]++;
		balance->quiet_s[of] = 0;
	}
	return news;
}
