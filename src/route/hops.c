/* SPDX-License-Identifier: BSD-3-Clause */
#include "route/hops.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* Times that a change of a next hop is tried while the workers have not passed. */
#define SET_TRIES 20000

int hops_init(struct hops *hops, const struct hops_config *config)
{
	*hops = (struct hops){.config = *config};
	hops->free = calloc(config->n, sizeof(hops->free[0]));
	hops->free_since = calloc(config->n, sizeof(hops->free_since[0]));
	if (hops->free == NULL || hops->free_since == NULL || map_init(&hops->hops) < 0 ||
		map_init(&hops->neighbours) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < config->n; i++)
		hops->free[i] = config->first + i;
	hops->n_free = config->n;
	return 0;
}

static void free_hop(void *context, struct map_node *node)
{
	(void)context;
	free(MAP_ENTRY(node, struct hop, node));
}

static void free_neighbour(void *context, struct map_node *node)
{
	(void)context;
	free(MAP_ENTRY(node, struct hop_neighbour, node));
}

void hops_fini(struct hops *hops)
{
	map_walk(&hops->hops, free_hop, NULL);
	map_walk(&hops->neighbours, free_neighbour, NULL);
	map_fini(&hops->hops);
	map_fini(&hops->neighbours);
	free(hops->free);
	free(hops->free_since);
	*hops = (struct hops){0};
}

static bool same_place(const struct hop_at *a, const struct hop_at *b)
{
	return a->ifindex == b->ifindex && a->version == b->version &&
	       memcmp(a->address, b->address, sizeof(a->address)) == 0;
}

static uint64_t hop_hash(const struct hop_at *at)
{
	uint8_t bytes[24] = {0};

	memcpy(bytes, &at->ifindex, sizeof(at->ifindex));
	bytes[4] = at->version;
	memcpy(bytes + 8, at->address, sizeof(at->address));
	return map_hash(bytes, sizeof(bytes));
}

static struct hop_at place_of(const struct kernel_neighbour *neighbour)
{
	struct hop_at at = {.ifindex = neighbour->ifindex, .version = neighbour->version};

	memcpy(at.address, neighbour->address, neighbour->version == 4 ? 4 : 16);
	return at;
}

/* ------------------------------------------------------------------ links */

static struct hop_link *find_link(struct hops *hops, uint32_t ifindex)
{
	for (unsigned i = 0; i < hops->n_links; i++)
		if (hops->links[i].kernel.ifindex == ifindex)
			return &hops->links[i];
	return NULL;
}

const struct hop_link *hops_link(const struct hops *hops, uint32_t ifindex)
{
	for (unsigned i = 0; i < hops->n_links; i++)
		if (hops->links[i].kernel.ifindex == ifindex)
			return hops->links[i].port == HOPS_NO_PORT ? NULL : &hops->links[i];
	return NULL;
}

struct hop_neighbour *hops_neighbour(struct hops *hops, const struct hop_at *at)
{
	const uint64_t hash = hop_hash(at);

	for (struct map_node *node = map_chain(&hops->neighbours, hash); node != NULL;
		node = node->next) {
		struct hop_neighbour *neighbour = MAP_ENTRY(node, struct hop_neighbour, node);
		const struct hop_at place = place_of(&neighbour->kernel);

		if (node->hash == hash && same_place(&place, at))
			return neighbour;
	}
	return NULL;
}

/* Describes what the number of the hop means. False: its link or neighbour does not allow it. */
static bool describe(struct hops *hops, const struct hop *hop, struct next_hop *next)
{
	const struct hop_link *link = hops_link(hops, hop->at.ifindex);
	const struct hop_neighbour *neighbour = hops_neighbour(hops, &hop->at);

	*next = (struct next_hop){0};
	if (link == NULL || !link->kernel.up || !link->kernel.carrier || neighbour == NULL ||
		!neighbour->kernel.valid)
		return false;
	memcpy(next->mac_dst, neighbour->kernel.mac, sizeof(next->mac_dst));
	memcpy(next->mac_src, link->kernel.mac, sizeof(next->mac_src));
	next->vlan = link->vlan;
	next->port = link->port;
	next->mtu = (uint16_t)(link->kernel.mtu < UINT16_MAX ? link->kernel.mtu : UINT16_MAX);
	next->valid = true;
	return true;
}

/* Writes what the number means. A hop that was lost borrows from another one of its group. */
static void apply(struct hops *hops, struct hop *hop)
{
	struct next_hop next;
	struct error error;
	bool valid = describe(hops, hop, &next);

	if (valid)
		hop->was_valid = true;
	for (struct hop *other = hop->next_of_group; !valid && hop->was_valid && other != hop;
		other = other->next_of_group)
		valid = describe(hops, other, &next);
	hops->changes++;
	/* a change may have to wait until the workers have passed; one that stands still is not waited for */
	for (unsigned tries = 0; valid; tries++) {
		const int ret = next_hops_set(hops->config.next_hops, hop->number, &next, &error);

		if (ret != -EAGAIN || tries == SET_TRIES) {
			valid = ret == 0;
			break;
		}
		sched_yield();
	}
	if (!valid)
		(void)next_hops_clear(hops->config.next_hops, hop->number, &error);
}

static void apply_group(struct hops *hops, struct hop *hop)
{
	struct hop *member = hop;

	do {
		apply(hops, member);
		member = member->next_of_group;
	} while (member != hop);
}

struct of_link {
	struct hops *hops;
	uint32_t ifindex;
};

static void apply_of_link(void *context, struct map_node *node)
{
	const struct of_link *of = context;
	struct hop *hop = MAP_ENTRY(node, struct hop, node);

	if (hop->at.ifindex == of->ifindex)
		apply_group(of->hops, hop);
}

bool hops_set_link(struct hops *hops, const struct kernel_link *link, uint16_t port, uint16_t vlan)
{
	struct of_link of = {.hops = hops, .ifindex = link->ifindex};
	struct hop_link *known = find_link(hops, link->ifindex);

	if (known == NULL) {
		if (hops->n_links == HOPS_MAX_LINKS)
			return false;
		known = &hops->links[hops->n_links++];
	}
	*known = (struct hop_link){.kernel = *link, .port = port, .vlan = vlan};
	map_walk(&hops->hops, apply_of_link, &of);
	return true;
}

void hops_remove_link(struct hops *hops, uint32_t ifindex)
{
	struct of_link of = {.hops = hops, .ifindex = ifindex};
	struct hop_link *known = find_link(hops, ifindex);

	if (known == NULL)
		return;
	*known = hops->links[--hops->n_links];
	map_walk(&hops->hops, apply_of_link, &of);
}

/* ------------------------------------------------------------------ neighbours */

static void apply_at(struct hops *hops, const struct hop_at *at)
{
	const uint64_t hash = hop_hash(at);

	for (struct map_node *node = map_chain(&hops->hops, hash); node != NULL;
		node = node->next) {
		struct hop *hop = MAP_ENTRY(node, struct hop, node);

		if (node->hash == hash && same_place(&hop->at, at))
			apply_group(hops, hop);
	}
}

struct hop_neighbour *hops_set_neighbour(
	struct hops *hops, const struct kernel_neighbour *neighbour, bool gone)
{
	const struct hop_at at = place_of(neighbour);
	struct hop_neighbour *known = hops_neighbour(hops, &at);

	if (gone) {
		if (known == NULL)
			return NULL;
		/* what was made of it is taken back by who made it, as it is no longer valid */
		known->kernel.valid = false;
		known->kernel.reachable = false;
		apply_at(hops, &at);
		return known;
	}
	if (known == NULL) {
		known = calloc(1, sizeof(*known));
		if (known == NULL)
			return NULL;
		known->kernel = *neighbour;
		map_insert(&hops->neighbours, &known->node, hop_hash(&at));
		apply_at(hops, &at);
		return known;
	}
	const bool same = known->kernel.valid == neighbour->valid &&
			  memcmp(known->kernel.mac, neighbour->mac, 6) == 0;

	known->kernel = *neighbour;
	if (!same)
		apply_at(hops, &at);
	return known;
}

void hops_forget_neighbour(struct hops *hops, struct hop_neighbour *neighbour)
{
	map_remove(&hops->neighbours, &neighbour->node);
	free(neighbour);
}

/* ------------------------------------------------------------------ next hops */

static bool take_number(struct hops *hops, uint32_t *number)
{
	const struct hops_config *config = &hops->config;
	const uint64_t since = hops->free_since[hops->first_free];

	if (hops->n_free == 0 || (since != 0 && config->settled(config->context) < since)) {
		hops->full++;
		return false;
	}
	*number = hops->free[hops->first_free];
	hops->first_free = (hops->first_free + 1) % config->n;
	hops->n_free--;
	return true;
}

static void give_number(struct hops *hops, uint32_t number)
{
	const struct hops_config *config = &hops->config;
	const uint32_t at = (hops->first_free + hops->n_free) % config->n;

	hops->free[at] = number;
	/* the one who gives it up changes what is decided after that */
	hops->free_since[at] = config->now(config->context) + 1;
	hops->n_free++;
}

struct hop *hops_get(struct hops *hops, const struct hop_at *at, const void *group)
{
	const uint64_t hash = hop_hash(at);
	struct hop *hop;

	for (struct map_node *node = map_chain(&hops->hops, hash); node != NULL;
		node = node->next) {
		hop = MAP_ENTRY(node, struct hop, node);
		if (node->hash != hash || hop->group != group || !same_place(&hop->at, at))
			continue;
		hop->references++;
		return hop;
	}
	hop = calloc(1, sizeof(*hop));
	if (hop == NULL || !take_number(hops, &hop->number)) {
		free(hop);
		return NULL;
	}
	hop->at = *at;
	hop->group = group;
	hop->references = 1;
	hop->next_of_group = hop;
	map_insert(&hops->hops, &hop->node, hash);
	apply(hops, hop);
	if (!hop->was_valid && hops->config.resolve != NULL)
		hops->config.resolve(hops->config.resolve_context, at);
	return hop;
}

void hops_join(struct hop *const *members, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		members[i]->next_of_group = members[(i + 1) % n];
}

void hops_put(struct hops *hops, struct hop *hop)
{
	if (--hop->references > 0)
		return;
	/* flows that still name the number are decided anew; until then it means what it meant */
	give_number(hops, hop->number);
	map_remove(&hops->hops, &hop->node);
	free(hop);
}
