/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/nexthops.h"

#include <stdlib.h>
#include <string.h>

struct key {
	uint32_t id, space;
};

int nexthops_init(struct nexthops *next_hops, struct hop_lists *lists, uint32_t max)
{
	next_hops->lists = lists;
	return items_init(&next_hops->items, sizeof(struct nexthop), sizeof(struct key), max);
}

static struct nexthop *next_of(const struct nexthops *next_hops, uint32_t *position)
{
	return items_next(&next_hops->items, position);
}

void nexthops_fini(struct nexthops *next_hops)
{
	struct nexthop *next_hop;
	uint32_t position = 0;

	while ((next_hop = next_of(next_hops, &position)) != NULL) {
		free(next_hop->members);
		hop_list_put(next_hops->lists, next_hop->hops);
	}
	items_fini(&next_hops->items);
}

struct nexthop *nexthops_find(const struct nexthops *next_hops, uint32_t space, uint32_t id)
{
	const struct key key = {id, space};

	return items_find(&next_hops->items, &key);
}

struct nexthop *nexthops_get(struct nexthops *next_hops, uint32_t space, uint32_t id)
{
	const struct key key = {id, space};
	struct nexthop *next_hop = nexthops_find(next_hops, space, id);

	if (next_hop == NULL)
		next_hop = items_add(&next_hops->items, &key);
	return next_hop;
}

/* Finds the hops that an object stands for: its own, or those of the members that are known and no groups. */
static unsigned resolve(const struct nexthops *next_hops, const struct nexthop *next_hop,
	struct kernel_hop hop[KERNEL_HOPS], enum kernel_route_kind *kind)
{
	unsigned n = 0;

	*kind = next_hop->kind;
	if (!next_hop->known)
		return 0;
	if (!next_hop->is_group) {
		if (next_hop->kind == KERNEL_UNICAST)
			memcpy(&hop[n++], &next_hop->hop, sizeof(hop[0]));
		return n;
	}
	for (unsigned i = 0; i < next_hop->n_members; i++) {
		const struct nexthop *member =
			nexthops_find(next_hops, next_hop->space, next_hop->members[i].id);

		if (member == NULL || !member->known || member->is_group)
			continue;
		if (member->kind != KERNEL_UNICAST) {
			/* a blackhole is the only member of its group; what only the kernel can do decides for all */
			*kind = member->kind;
			return 0;
		}
		memcpy(&hop[n], &member->hop, sizeof(hop[0]));
		hop[n++].weight = next_hop->members[i].weight;
	}
	return n;
}

/* Finds its hops anew. `known`: it had some before. */
static void refresh(struct nexthops *next_hops, struct nexthop *next_hop, bool known)
{
	const struct nexthop_before before = {known, next_hop->resolved, next_hop->hops};
	struct hop_list *old = next_hop->hops;
	struct kernel_hop hop[KERNEL_HOPS];
	const unsigned n = resolve(next_hops, next_hop, hop, &next_hop->resolved);

	next_hop->hops = hop_list_get(next_hops->lists, hop, n);
	if (next_hop->hops != old || next_hop->resolved != before.resolved ||
		next_hop->known != known)
		next_hops->changed(next_hops->context, next_hop, &before);
	hop_list_put(next_hops->lists, old);
}

/* Groups that it is a member of stand for something else as well. */
static void refresh_groups(struct nexthops *next_hops, const struct nexthop *member)
{
	struct nexthop *group;
	uint32_t position = 0;

	while ((group = next_of(next_hops, &position)) != NULL) {
		if (group->space != member->space)
			continue;
		for (unsigned i = 0; i < group->n_members; i++) {
			if (group->members[i].id == member->id) {
				refresh(next_hops, group, group->known);
				break;
			}
		}
	}
}

struct nexthop *nexthops_take(
	struct nexthops *next_hops, uint32_t space, const struct message_next_hop *message)
{
	struct nexthop *next_hop = nexthops_get(next_hops, space, message->id);
	struct message_member *members = NULL;

	if (next_hop == NULL)
		return NULL;
	if (message->n_members > 0) {
		members = malloc(message->n_members * sizeof(members[0]));
		if (members == NULL)
			return NULL;
		memcpy(members, message->members, message->n_members * sizeof(members[0]));
	}
	free(next_hop->members);
	next_hop->members = members;
	next_hop->n_members = message->n_members;
	next_hop->is_group = message->n_members > 0;
	next_hop->cut = message->cut;
	next_hop->kind = message->kind;
	memcpy(&next_hop->hop, &message->hop, sizeof(next_hop->hop));

	/* before it was known its routes went by what they say themselves */
	const bool known = next_hop->known;

	next_hop->known = true;
	refresh(next_hops, next_hop, known);
	if (!next_hop->is_group)
		refresh_groups(next_hops, next_hop);
	return next_hop;
}

void nexthops_forget(struct nexthops *next_hops, struct nexthop *next_hop)
{
	const bool is_group = next_hop->is_group, known = next_hop->known;

	free(next_hop->members);
	next_hop->members = NULL;
	next_hop->n_members = 0;
	next_hop->known = next_hop->is_group = false;
	refresh(next_hops, next_hop, known);
	if (!is_group)
		refresh_groups(next_hops, next_hop);
	if (next_hop->routes == 0)
		nexthops_unused(next_hops, next_hop);
}

void nexthops_unused(struct nexthops *next_hops, struct nexthop *next_hop)
{
	if (!next_hop->known)
		items_remove(&next_hops->items, &next_hop->item);
}
