/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/share.h"

static uint32_t read(const _Atomic uint32_t *number)
{
	return atomic_load_explicit(number, memory_order_relaxed);
}

static void write(_Atomic uint32_t *number, uint32_t value)
{
	if (read(number) != value)
		atomic_store_explicit(number, value, memory_order_relaxed);
}

void share_init(struct share *share, uint32_t room)
{
	const struct share_told nothing = {.bar = SHARE_NOBODY};

	for (unsigned i = 0; i < SHARE_MAX_WORKERS; i++)
		share_tell(share, i, &nothing);
	write(&share->room, room);
}

void share_tell(struct share *share, unsigned worker, const struct share_told *told)
{
	struct share_worker *own = &share->worker[worker];

	write(&own->rules, told->rules);
	write(&own->leaving, told->leaving);
	write(&own->bar, told->bar);
	write(&own->waits, told->waits);
}

uint32_t share_rules(const struct share *share, unsigned n_workers, unsigned worker)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < n_workers; i++)
		if (i != worker)
			n += read(&share->worker[i].rules);
	return n;
}

uint32_t share_bar(const struct share *share, unsigned n_workers, unsigned worker)
{
	uint32_t least = SHARE_NOBODY;

	for (unsigned i = 0; i < n_workers; i++)
		if (i != worker)
			least = RTE_MIN(least, read(&share->worker[i].bar));
	return least;
}

uint32_t share_before(const struct share *share, unsigned n_workers, unsigned worker)
{
	const uint32_t own = read(&share->worker[worker].waits);
	uint32_t n = 0;

	for (unsigned i = 0; i < n_workers; i++) {
		uint32_t waits = read(&share->worker[i].waits);

		n += i != worker && waits != 0 && (waits > own || (waits == own && i < worker));
	}
	return n;
}

bool share_is_served(const struct share *share, unsigned n_workers, unsigned worker, uint32_t rate)
{
	const uint32_t told = read(&share->worker[worker].waits);
	uint32_t leaving = 0;

	for (unsigned i = 0; i < n_workers; i++)
		if (i != worker)
			leaving += read(&share->worker[i].leaving);
	return leaving > 0 && told != 0 && rate >= told;
}

/* Who waits with the busiest flow; n_workers: nobody else does. */
static unsigned first_of(const struct share *share, unsigned n_workers, unsigned worker)
{
	unsigned first = n_workers;
	uint32_t most = 0;

	for (unsigned i = 0; i < n_workers; i++) {
		uint32_t waits = read(&share->worker[i].waits);

		if (i == worker || waits <= most)
			continue;
		most = waits;
		first = i;
	}
	return first;
}

/* Of equal ones the first worker's is the least. */
static bool has_least(const struct share *share, unsigned n_workers, unsigned worker)
{
	const uint32_t own = read(&share->worker[worker].bar);

	for (unsigned i = 0; i < n_workers; i++) {
		uint32_t bar = read(&share->worker[i].bar);

		if (i != worker && (bar < own || (bar == own && i < worker)))
			return false;
	}
	return own != SHARE_NOBODY;
}

uint32_t share_asks(const struct share *share, unsigned n_workers, unsigned worker, uint32_t room)
{
	const unsigned first = first_of(share, n_workers, worker);
	uint32_t rules = 0, rate;

	if (first == n_workers || !has_least(share, n_workers, worker))
		return 0;
	for (unsigned i = 0; i < n_workers; i++) {
		if (read(&share->worker[i].leaving) > 0)
			return 0;
		rules += read(&share->worker[i].rules);
	}
	/* there is a place, which it has not taken yet */
	if (rules < room)
		return 0;
	rate = read(&share->worker[first].waits);
	return rate >= read(&share->worker[worker].bar) ? rate : 0;
}
