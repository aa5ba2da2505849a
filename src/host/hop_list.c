/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/hop_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_jhash.h>

/* Lists beyond so many share buckets. */
#define BUCKETS 16384u

int hop_lists_init(struct hop_lists *lists)
{
	lists->n = 0;
	lists->n_buckets = BUCKETS;
	lists->buckets = calloc(BUCKETS, sizeof(lists->buckets[0]));
	return lists->buckets == NULL ? -ENOMEM : 0;
}

void hop_lists_fini(struct hop_lists *lists)
{
	free(lists->buckets);
	memset(lists, 0, sizeof(*lists));
}

static bool same_hop(const struct kernel_hop *one, const struct kernel_hop *other)
{
	return one->ifindex == other->ifindex && one->version == other->version &&
	       one->weight == other->weight &&
	       memcmp(one->gateway, other->gateway, sizeof(one->gateway)) == 0;
}

static bool same_list(const struct hop_list *list, const struct kernel_hop *hop, unsigned n)
{
	if (list->n != n)
		return false;
	for (unsigned i = 0; i < n; i++)
		if (!same_hop(&list->hop[i], &hop[i]) || list->hop[i].dead != hop[i].dead)
			return false;
	return true;
}

struct hop_list *hop_list_get(struct hop_lists *lists, const struct kernel_hop *hop, unsigned n)
{
	const size_t bytes = n * sizeof(hop[0]);

	if (n == 0)
		return NULL;
	const uint32_t hash = rte_jhash(hop, (uint32_t)bytes, n);
	struct hop_list **bucket = &lists->buckets[hash % BUCKETS];
	struct hop_list *hops;

	for (hops = *bucket; hops != NULL; hops = hops->next) {
		if (hops->hash == hash && same_list(hops, hop, n)) {
			hops->users++;
			return hops;
		}
	}
	hops = malloc(sizeof(*hops) + bytes);
	if (hops == NULL)
		return NULL;
	*hops = (struct hop_list){.next = *bucket, .hash = hash, .users = 1, .n = n};
	memcpy(hops->hop, hop, bytes);
	*bucket = hops;
	lists->n++;
	return hops;
}

void hop_list_hold(struct hop_list *hops)
{
	if (hops != NULL)
		hops->users++;
}

void hop_list_put(struct hop_lists *lists, struct hop_list *hops)
{
	if (hops == NULL || --hops->users > 0)
		return;
	struct hop_list **at = &lists->buckets[hops->hash % BUCKETS];

	while (*at != hops)
		at = &(*at)->next;
	*at = hops->next;
	lists->n--;
	free(hops);
}

bool hop_list_among(const struct kernel_hop *few, unsigned n_few, const struct kernel_hop *many,
	unsigned n_many)
{
	for (unsigned i = 0; i < n_few; i++) {
		unsigned at = 0;

		while (at < n_many && !same_hop(&few[i], &many[at]))
			at++;
		if (at == n_many)
			return false;
	}
	return true;
}

bool hop_list_same(const struct kernel_hop *one, unsigned n_one, const struct kernel_hop *other,
	unsigned n_other)
{
	if (n_one != n_other)
		return false;
	for (unsigned i = 0; i < n_one; i++)
		if (!same_hop(&one[i], &other[i]))
			return false;
	return true;
}
