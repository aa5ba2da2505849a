/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/items.h"

#include <errno.h>
#include <string.h>

#include <rte_common.h>
#include <rte_jhash.h>

#include "base/mapping.h"

int items_init(struct items *items, size_t item_bytes, size_t key_bytes, uint32_t max)
{
	memset(items, 0, sizeof(*items));
	items->item_bytes = item_bytes;
	items->key_bytes = key_bytes;
	items->max = max;
	items->n_buckets = rte_align32pow2(max);
	items->memory = mapping_create(max * item_bytes, 0);
	items->buckets = mapping_create(items->n_buckets * sizeof(items->buckets[0]), 0);
	if (items->memory != NULL && items->buckets != NULL)
		return 0;
	items_fini(items);
	return -ENOMEM;
}

void items_fini(struct items *items)
{
	mapping_destroy(items->memory, items->max * items->item_bytes);
	mapping_destroy(items->buckets, items->n_buckets * sizeof(items->buckets[0]));
	memset(items, 0, sizeof(*items));
}

static uint32_t hash_of(const struct items *items, const void *key)
{
	return rte_jhash(key, (uint32_t)items->key_bytes, 0);
}

void *items_at(const struct items *items, uint32_t number)
{
	return items->memory + number * items->item_bytes;
}

uint32_t items_number(const struct items *items, const struct item *item)
{
	return (uint32_t)((size_t)((const char *)item - items->memory) / items->item_bytes);
}

/* The first one with this key in the chain that begins with `next`. */
static struct item *find_from(const struct items *items, uint32_t next, const void *key)
{
	while (next != 0) {
		struct item *item = items_at(items, next - 1);

		if (memcmp(item_key(item), key, items->key_bytes) == 0)
			return item;
		next = item->next;
	}
	return NULL;
}

void *items_find(const struct items *items, const void *key)
{
	return find_from(items, items->buckets[hash_of(items, key) & (items->n_buckets - 1)], key);
}

void *items_again(const struct items *items, const struct item *item)
{
	return find_from(items, item->next, item + 1);
}

void *items_add(struct items *items, const void *key)
{
	uint32_t *bucket = &items->buckets[hash_of(items, key) & (items->n_buckets - 1)];
	struct item *item;

	if (items->free != 0) {
		item = items_at(items, items->free - 1);
		items->free = item->next;
	} else if (items->fresh < items->max) {
		item = items_at(items, items->fresh++);
	} else {
		return NULL;
	}
	memset(item, 0, items->item_bytes);
	memcpy(item + 1, key, items->key_bytes);
	item->used = true;
	item->next = *bucket;
	*bucket = items_number(items, item) + 1;
	items->n++;
	return item;
}

static void keep_in_mind(struct items *items, uint32_t hash)
{
	if (!items->dumping)
		return;
	if (items->n_removed < ITEMS_REMOVED)
		items->removed[items->n_removed++] = hash;
	else
		items->removed_lost = true;
}

void items_remove(struct items *items, struct item *item)
{
	const uint32_t hash = hash_of(items, item_key(item)), number = items_number(items, item);
	uint32_t *at = &items->buckets[hash & (items->n_buckets - 1)];

	while (*at != number + 1) {
		struct item *other = items_at(items, *at - 1);

		at = &other->next;
	}
	*at = item->next;
	keep_in_mind(items, hash);
	item->used = false;
	item->next = items->free;
	items->free = number + 1;
	items->n--;
}

void *items_next(const struct items *items, uint32_t *position)
{
	while (*position < items->fresh) {
		struct item *item = items_at(items, (*position)++);

		if (item->used)
			return item;
	}
	return NULL;
}

void items_dump_begin(struct items *items)
{
	items->dumping = true;
	items->removed_lost = false;
	items->n_removed = 0;
}

void items_dump_end(struct items *items)
{
	items->dumping = false;
	items->n_removed = 0;
}

bool items_was_removed(const struct items *items, const void *key)
{
	if (items->n_removed == 0)
		return false;
	const uint32_t hash = hash_of(items, key);

	for (unsigned i = 0; i < items->n_removed; i++)
		if (items->removed[i] == hash)
			return true;
	return false;
}
