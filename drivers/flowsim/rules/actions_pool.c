/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/rules/actions_pool.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>

#include "drivers/flowsim/packets/meter.h"
#include "drivers/flowsim/port/port.h"
#include "drivers/flowsim/rules/actions_read.h"
#include "drivers/flowsim/rules/flow_state.h"

#define FIRST_BUCKETS 64

struct sim_actions_entry {
	struct sim_actions_entry *next;
	uint64_t hash;
	uint32_t users;
	struct sim_actions actions; /* cut: see size_of() */
};

static struct sim_actions_entry *entry_of(struct sim_actions *held)
{
	return (struct sim_actions_entry *)((char *)held -
					    offsetof(struct sim_actions_entry, actions));
}

static bool has_rss(const struct sim_actions *actions)
{
	return actions->fate == SIM_FATE_RSS && actions->rss_handle == NULL;
}

/* Only as much as says something: of a million rules each may rewrite to something else. */
static size_t size_of(const struct sim_actions *actions)
{
	if (has_rss(actions))
		return sizeof(*actions);
	return offsetof(struct sim_actions, edits) + actions->n_edits * sizeof(actions->edits[0]);
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

static uint64_t mix_bytes(uint64_t hash, const void *bytes, size_t size)
{
	const char *at = bytes;

	for (; size > 0; at += 8) {
		size_t n = RTE_MIN(size, (size_t)8);
		uint64_t word = 0;

		memcpy(&word, at, n);
		hash = mix(hash, word);
		size -= n;
	}
	return hash;
}

/* What is only a number or a flag, in words; the mark's id is left out. */
#define N_PLAIN 9

static void plain_of(uint64_t words[N_PLAIN], const struct sim_actions *actions)
{
	words[0] = actions->named;
	words[1] = (uint64_t)actions->fate << 32 | (uint64_t)actions->queue << 16 | actions->port;
	words[2] = (uint64_t)actions->mark | actions->flag << 1 | actions->count << 2 |
		   actions->age << 3 | actions->jump << 4 | actions->passthru << 5 |
		   actions->meter << 6 | actions->sample << 7;
	words[3] = (uint64_t)actions->jump_group << 32 | actions->meter_id;
	words[4] = (uint64_t)actions->age_seconds << 32 | actions->sample_ratio;
	words[5] = (uintptr_t)actions->count_handle;
	words[6] = (uintptr_t)actions->age_handle;
	words[7] = (uintptr_t)actions->rss_handle;
	words[8] = (uint64_t)actions->n_edits << 16 | actions->meter_at << 8 | actions->sample_at;
}

static uint64_t hash_of(const struct sim_actions *actions, bool with_mark)
{
	uint64_t plain[N_PLAIN];
	uint64_t hash = with_mark ? actions->mark_id : 0;

	plain_of(plain, actions);
	for (unsigned i = 0; i < N_PLAIN; i++)
		hash = mix(hash, plain[i]);
	hash = mix_bytes(hash, actions->edits, actions->n_edits * sizeof(actions->edits[0]));
	if (has_rss(actions)) {
		const struct sim_rss *rss = &actions->rss;

		hash = mix(
			hash, (uint64_t)rss->function << 32 | rss->n_queues << 8 | rss->key_length);
		hash = mix(hash, rss->types);
		hash = mix_bytes(hash, rss->queues, rss->n_queues * sizeof(rss->queues[0]));
		hash = mix_bytes(hash, rss->key, rss->key_length);
	}
	return actions->sample ? mix(hash, hash_of(actions->sampled, true)) : hash;
}

static bool same_rss(const struct sim_rss *a, const struct sim_rss *b)
{
	return a->n_queues == b->n_queues && a->function == b->function && a->types == b->types &&
	       a->key_length == b->key_length &&
	       memcmp(a->queues, b->queues, a->n_queues * sizeof(a->queues[0])) == 0 &&
	       memcmp(a->key, b->key, a->key_length) == 0;
}

static bool same(const struct sim_actions *a, const struct sim_actions *b, bool with_mark)
{
	uint64_t of_a[N_PLAIN], of_b[N_PLAIN];

	plain_of(of_a, a);
	plain_of(of_b, b);
	if (memcmp(of_a, of_b, sizeof(of_a)) != 0 || (with_mark && a->mark_id != b->mark_id))
		return false;
	if (memcmp(a->edits, b->edits, a->n_edits * sizeof(a->edits[0])) != 0)
		return false;
	if (has_rss(a) && !same_rss(&a->rss, &b->rss))
		return false;
	return !a->sample || same(a->sampled, b->sampled, true);
}

static struct sim_actions_entry **bucket_of(struct sim_actions_pool *pool, uint64_t hash)
{
	return &pool->buckets[hash >> 32 & (pool->n_buckets - 1)];
}

static struct sim_actions_entry *find(
	struct sim_actions_pool *pool, uint64_t hash, const struct sim_actions *parsed)
{
	if (pool->n_buckets == 0)
		return NULL;
	for (struct sim_actions_entry *entry = *bucket_of(pool, hash); entry != NULL;
		entry = entry->next)
		if (entry->hash == hash && same(&entry->actions, parsed, false))
			return entry;
	return NULL;
}

/* Room for one entry more; without memory the lists get longer, but for the first. */
static bool grow(struct sim_actions_pool *pool)
{
	if (pool->n_entries < pool->n_buckets)
		return true;

	uint32_t n = pool->n_buckets == 0 ? FIRST_BUCKETS : pool->n_buckets * 2;
	struct sim_actions_pool larger = {.n_buckets = n, .buckets = calloc(n, sizeof(void *))};

	if (larger.buckets == NULL)
		return pool->n_buckets > 0;
	for (uint32_t i = 0; i < pool->n_buckets; i++) {
		for (struct sim_actions_entry *entry = pool->buckets[i], *next; entry != NULL;
			entry = next) {
			struct sim_actions_entry **bucket = bucket_of(&larger, entry->hash);

			next = entry->next;
			entry->next = *bucket;
			*bucket = entry;
		}
	}
	free(pool->buckets);
	pool->buckets = larger.buckets;
	pool->n_buckets = n;
	return true;
}

/* Under the pool's lock. NULL: *error. */
static struct sim_actions_entry *make(
	struct sim_port *port, uint64_t hash, const struct sim_actions *parsed, int *error)
{
	struct sim_actions_pool *pool = &port->flow->actions_pool;
	struct sim_actions_entry *entry;
	struct sim_meter *meter = NULL;

	*error = -ENOMEM;
	if (!grow(pool))
		return NULL;
	entry = malloc(offsetof(struct sim_actions_entry, actions) + size_of(parsed));
	if (entry == NULL)
		return NULL;
	if (parsed->meter) {
		meter = sim_meter_hold(port, parsed->meter_id);
		if (meter == NULL) {
			*error = -ENOENT;
			free(entry);
			return NULL;
		}
	}
	entry->hash = hash;
	entry->users = 0;
	memcpy(&entry->actions, parsed, size_of(parsed));
	entry->actions.mark_id = 0;
	entry->actions.age_context = NULL;
	entry->actions.meter_held = meter;

	struct sim_actions_entry **bucket = bucket_of(pool, hash);

	entry->next = *bucket;
	*bucket = entry;
	pool->n_entries++;
	return entry;
}

struct sim_actions *sim_actions_hold(struct sim_port *port, struct sim_actions *parsed)
{
	struct sim_actions_pool *pool = &port->flow->actions_pool;
	uint64_t hash = hash_of(parsed, false);
	bool is_new = false;
	int error = 0;

	rte_spinlock_lock(&pool->lock);

	struct sim_actions_entry *entry = find(pool, hash, parsed);

	if (entry == NULL) {
		entry = make(port, hash, parsed, &error);
		is_new = true;
	}
	if (entry != NULL)
		entry->users++;
	rte_spinlock_unlock(&pool->lock);
	if (entry == NULL) {
		errno = -error;
		return NULL;
	}
	if (is_new)
		parsed->sampled = NULL; /* the entry's */
	else
		sim_actions_fini(parsed);
	return &entry->actions;
}

void sim_actions_share(struct sim_port *port, struct sim_actions *held)
{
	rte_spinlock_lock(&port->flow->actions_pool.lock);
	entry_of(held)->users++;
	rte_spinlock_unlock(&port->flow->actions_pool.lock);
}

void sim_actions_release(struct sim_port *port, struct sim_actions *held)
{
	struct sim_actions_pool *pool = &port->flow->actions_pool;

	if (held == NULL)
		return;

	struct sim_actions_entry *entry = entry_of(held), **link;

	rte_spinlock_lock(&pool->lock);
	if (--entry->users > 0) {
		rte_spinlock_unlock(&pool->lock);
		return;
	}
	for (link = bucket_of(pool, entry->hash); *link != entry; link = &(*link)->next)
		;
	*link = entry->next;
	pool->n_entries--;
	rte_spinlock_unlock(&pool->lock);
	if (held->meter_held != NULL)
		sim_meter_release(port, held->meter_held);
	sim_actions_fini(held);
	free(entry);
}

void sim_actions_pool_fini(struct sim_actions_pool *pool)
{
	assert(pool->n_entries == 0);
	free(pool->buckets);
	pool->buckets = NULL;
	pool->n_buckets = 0;
}
