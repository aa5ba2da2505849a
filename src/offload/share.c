/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/share.h"

/* The state of all other workers, as one of them sees it. */
struct others {
	uint32_t rules, leaving, waits; /* waits: the highest rate; 0: nobody waits */
	uint32_t bar;			/* the least, */
	unsigned bar_of;		/* and the first worker that has it */
};

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

static struct others look(const struct share *share, unsigned n_workers, unsigned worker)
{
	struct others others = {.bar = SHARE_NOBODY, .bar_of = n_workers};

	for (unsigned i = 0; i < n_workers; i++) {
		const struct share_worker *other = &share->worker[i];
		const uint32_t bar = read(&other->bar);

		if (i == worker)
			continue;
		others.rules += read(&other->rules);
		others.leaving += read(&other->leaving);
		others.waits = RTE_MAX(others.waits, read(&other->waits));
		if (bar < others.bar) {
			others.bar = bar;
			others.bar_of = i;
		}
	}
	return others;
}

uint32_t share_rules(const struct share *share, unsigned n_workers, unsigned worker)
{
	return look(share, n_workers, worker).rules;
}

uint32_t share_bar(const struct share *share, unsigned n_workers, unsigned worker)
{
	return look(share, n_workers, worker).bar;
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

	return look(share, n_workers, worker).leaving > 0 && told != 0 && rate >= told;
}

uint32_t share_asks(const struct share *share, unsigned n_workers, unsigned worker, uint32_t room)
{
	const struct share_worker *own = &share->worker[worker];
	const struct others others = look(share, n_workers, worker);
	const uint32_t bar = read(&own->bar);

	/* of equal bars the first worker's is the least */
	if (bar == SHARE_NOBODY || bar > others.bar ||
		(bar == others.bar && others.bar_of < worker))
		return 0;
	if (others.waits == 0 || others.waits < bar || others.leaving + read(&own->leaving) > 0)
		return 0;
	/* where there is room still, the other has a place, which it has not taken yet */
	return others.rules + read(&own->rules) < room ? 0 : others.waits;
}
