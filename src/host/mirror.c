/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/mirror.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/items.h"
#include "host/message.h"

#define LINKS_MAX 4096
#define ADDRESSES_MAX 16384
#define NEIGHBOURS_MAX 131072
#define RULES_MAX 4096

struct link {
	struct item item;
	uint32_t ifindex; /* its key */
	uint32_t master;
	struct kernel_link said; /* by its own message */
	struct kernel_link told; /* to the follower: with the table of its master */
};

struct address_key {
	uint32_t ifindex;
	uint8_t version, length, zero[2];
	uint8_t address[16];
};

struct address {
	struct item item;
	struct address_key key;
	struct kernel_address told;
};

struct neighbour_key {
	uint32_t ifindex;
	uint8_t version, zero[3];
	uint8_t address[16];
};

struct neighbour {
	struct item item;
	struct neighbour_key key;
	struct kernel_neighbour told;
};

struct rule_key {
	uint32_t version, priority, table, sum;
};

struct rule {
	struct item item;
	struct rule_key key;
	uint8_t action;
	bool usual;
};

struct mirror {
	struct kernel_follower follower;
	struct kernel_routes routes;
	struct items links, addresses, neighbours, rules;
	uint32_t number[N_SOURCES];   /* of the dump that goes on, or was last */
	uint32_t position[N_SOURCES]; /* of the sweep that goes on, in the routes */
	uint32_t n_foreign;	      /* rules */
	uint64_t refused, malformed;
};

#define ITEM_SIZE(type) ((sizeof(type) + 7) & ~(size_t)7)

/* Whether the dump's word counts: nothing newer was told of the item, or of its end. */
static bool counts(const struct mirror *mirror, const struct items *items, const struct item *item,
	const void *key, bool dump)
{
	if (!dump)
		return true;
	return item == NULL ? !items_was_removed(items, key)
			    : item->told != mirror->number[SOURCE_KERNEL];
}

/* The item of this key, made where it is not there, and stamped; NULL: there is no room. `made`: it is new. */
static void *take_item(
	struct mirror *mirror, struct items *items, const void *key, bool dump, bool *made)
{
	struct item *item = items_find(items, key);

	*made = item == NULL;
	if (item == NULL)
		item = items_add(items, key);
	if (item == NULL) {
		mirror->refused++;
		return NULL;
	}
	if (dump)
		item->marked = mirror->number[SOURCE_KERNEL];
	else
		item->told = mirror->number[SOURCE_KERNEL];
	return item;
}

/* Names of a dump that do not count are named all the same. */
static void mark(const struct mirror *mirror, struct item *item)
{
	if (item != NULL)
		item->marked = mirror->number[SOURCE_KERNEL];
}

/* ---------------------------------------------------- links */

static struct link *link_of(const struct mirror *mirror, uint32_t ifindex)
{
	return items_find(&mirror->links, &ifindex);
}

static struct link *next_link(const struct mirror *mirror, uint32_t *position)
{
	return items_next(&mirror->links, position);
}

static uint32_t table_of(const struct mirror *mirror, const struct link *link)
{
	const struct link *master = link->master != 0 ? link_of(mirror, link->master) : NULL;

	if (link->said.vrf_table != 0 || master == NULL)
		return link->said.vrf_table;
	return master->said.vrf_table;
}

static bool same_link(const struct kernel_link *one, const struct kernel_link *other)
{
	return strcmp(one->name, other->name) == 0 &&
	       memcmp(one->mac, other->mac, sizeof(one->mac)) == 0 && one->mtu == other->mtu &&
	       one->up == other->up && one->carrier == other->carrier &&
	       one->parent == other->parent && one->vlan == other->vlan &&
	       one->vrf_table == other->vrf_table;
}

static void tell_link(struct mirror *mirror, struct link *link, bool made)
{
	struct kernel_link told = link->said;

	told.vrf_table = table_of(mirror, link);
	if (!made && same_link(&told, &link->told))
		return;
	link->told = told;
	mirror->follower.link(mirror->follower.context, &link->told, false);
}

/* Links that are enslaved to this one have its table. */
static void tell_slaves(struct mirror *mirror, uint32_t master)
{
	uint32_t position = 0;
	struct link *link;

	while ((link = next_link(mirror, &position)) != NULL)
		if (link->master == master)
			tell_link(mirror, link, false);
}

static void remove_link(struct mirror *mirror, struct link *link)
{
	const struct kernel_link told = link->told;
	const uint32_t ifindex = link->ifindex;

	items_remove(&mirror->links, &link->item);
	mirror->follower.link(mirror->follower.context, &told, true);
	if (told.vrf_table != 0)
		tell_slaves(mirror, ifindex);
}

static int take_link(struct mirror *mirror, const struct message *message, bool dump)
{
	const struct message_link *said = &message->link;
	struct link *link = link_of(mirror, said->link.ifindex);
	bool made;

	if (message->gone) {
		if (link != NULL)
			remove_link(mirror, link);
		return MIRROR_UNSURE;
	}
	if (!counts(mirror, &mirror->links, link == NULL ? NULL : &link->item, &said->link.ifindex,
		    dump)) {
		mark(mirror, link == NULL ? NULL : &link->item);
		return 0;
	}
	link = take_item(mirror, &mirror->links, &said->link.ifindex, dump, &made);
	if (link == NULL)
		return 0;

	const bool table = link->said.vrf_table != said->link.vrf_table;

	link->said = said->link;
	link->master = said->master;
	tell_link(mirror, link, made);
	if (table)
		tell_slaves(mirror, link->ifindex);
	/* routes and their flags change without a message of their own; the kernel merges what happened to a link */
	return dump ? 0 : MIRROR_UNSURE;
}

uint32_t mirror_ifindex(const struct mirror *mirror, const char *name)
{
	uint32_t position = 0;
	const struct link *link;

	while ((link = next_link(mirror, &position)) != NULL)
		if (strncmp(link->said.name, name, sizeof(link->said.name)) == 0)
			return link->ifindex;
	return 0;
}

/* ---------------------------------------------------- addresses and neighbours */

static void remove_address(struct mirror *mirror, struct address *address)
{
	const struct kernel_address told = address->told;

	items_remove(&mirror->addresses, &address->item);
	mirror->follower.address(mirror->follower.context, &told, true);
}

static int take_address(struct mirror *mirror, const struct message *message, bool dump)
{
	const struct kernel_address *said = &message->address;
	struct address_key key = {
		.ifindex = said->ifindex, .version = said->version, .length = said->length};
	bool made;

	memcpy(key.address, said->address, sizeof(key.address));
	void *found = items_find(&mirror->addresses, &key);

	if (message->gone) {
		if (found != NULL)
			remove_address(mirror, found);
		return MIRROR_UNSURE;
	}
	if (!counts(mirror, &mirror->addresses, found, &key, dump)) {
		mark(mirror, found);
		return 0;
	}
	struct address *address = take_item(mirror, &mirror->addresses, &key, dump, &made);

	if (address == NULL || (!made && address->told.tentative == said->tentative))
		return 0;
	address->told = *said;
	mirror->follower.address(mirror->follower.context, &address->told, false);
	return 0;
}

static void remove_neighbour(struct mirror *mirror, struct neighbour *neighbour)
{
	const struct kernel_neighbour told = neighbour->told;

	items_remove(&mirror->neighbours, &neighbour->item);
	mirror->follower.neighbour(mirror->follower.context, &told, true);
}

static bool same_state(const struct kernel_neighbour *one, const struct kernel_neighbour *other)
{
	return memcmp(one->mac, other->mac, sizeof(one->mac)) == 0 && one->valid == other->valid &&
	       one->reachable == other->reachable;
}

static int take_neighbour(struct mirror *mirror, const struct message *message, bool dump)
{
	const struct kernel_neighbour *said = &message->neighbour;
	struct neighbour_key key = {.ifindex = said->ifindex, .version = said->version};
	bool made;

	memcpy(key.address, said->address, sizeof(key.address));
	void *found = items_find(&mirror->neighbours, &key);

	if (message->gone) {
		if (found != NULL)
			remove_neighbour(mirror, found);
		return 0;
	}
	if (!counts(mirror, &mirror->neighbours, found, &key, dump)) {
		mark(mirror, found);
		return 0;
	}
	struct neighbour *neighbour = take_item(mirror, &mirror->neighbours, &key, dump, &made);

	if (neighbour == NULL || (!made && same_state(&neighbour->told, said)))
		return 0;
	neighbour->told = *said;
	mirror->follower.neighbour(mirror->follower.context, &neighbour->told, false);
	return 0;
}

/* ---------------------------------------------------- rules */

static void remove_rule(struct mirror *mirror, struct rule *rule)
{
	mirror->n_foreign -= !rule->usual;
	items_remove(&mirror->rules, &rule->item);
}

static int take_rule(struct mirror *mirror, const struct message *message, bool dump)
{
	const struct message_rule *said = &message->rule;
	const struct rule_key key = {said->version, said->priority, said->table, said->sum};
	void *found = items_find(&mirror->rules, &key);
	bool made;

	if (message->gone) {
		if (found != NULL)
			remove_rule(mirror, found);
		return 0;
	}
	if (!counts(mirror, &mirror->rules, found, &key, dump)) {
		mark(mirror, found);
		return 0;
	}
	struct rule *rule = take_item(mirror, &mirror->rules, &key, dump, &made);

	if (rule == NULL || !made)
		return 0;
	rule->usual = said->usual;
	rule->action = said->action;
	mirror->n_foreign += !rule->usual;
	return 0;
}

bool mirror_foreign_rule(const struct mirror *mirror, char *text, size_t size)
{
	uint32_t position = 0;
	const struct rule *rule;

	while ((rule = items_next(&mirror->rules, &position)) != NULL) {
		if (rule->usual)
			continue;
		snprintf(text, size, "IPv%u rule of priority %u, table %u", rule->key.version,
			rule->key.priority, rule->key.table);
		return true;
	}
	return false;
}

/* ---------------------------------------------------- messages and dumps */

static struct route_stamp stamp_of(const struct mirror *mirror, enum route_source source, bool dump)
{
	return (struct route_stamp){
		.source = source, .dump = dump, .number = mirror->number[source]};
}

static int take_message(
	struct mirror *mirror, enum route_source source, const struct message *message, bool dump)
{
	const struct route_stamp stamp = stamp_of(mirror, source, dump);

	switch (message->kind) {
	case MESSAGE_ROUTE:
		return kernel_routes_take(&mirror->routes, &message->route, message->gone, &stamp);
	case MESSAGE_NEXT_HOP:
		return kernel_routes_take_next_hop(
			&mirror->routes, &message->next_hop, message->gone, &stamp);
	case MESSAGE_LINK:
		return take_link(mirror, message, dump);
	case MESSAGE_ADDRESS:
		return take_address(mirror, message, dump);
	case MESSAGE_NEIGHBOUR:
		return take_neighbour(mirror, message, dump);
	case MESSAGE_RULE:
		return take_rule(mirror, message, dump);
	}
	return 0;
}

int mirror_take(
	struct mirror *mirror, enum route_source source, const struct nlmsghdr *header, bool dump)
{
	struct message message;
	const int ret = message_read(&message, header);

	mirror->malformed += ret < 0;
	if (ret <= 0)
		return ret;
	if (source == SOURCE_FPM && message.kind != MESSAGE_ROUTE &&
		message.kind != MESSAGE_NEXT_HOP)
		return 0;
	return take_message(mirror, source, &message, dump);
}

void mirror_begin(struct mirror *mirror, enum route_source source)
{
	mirror->number[source]++;
	mirror->position[source] = 0;
	if (source != SOURCE_KERNEL)
		return;
	kernel_routes_dump_begin(&mirror->routes);
	items_dump_begin(&mirror->links);
	items_dump_begin(&mirror->addresses);
	items_dump_begin(&mirror->neighbours);
	items_dump_begin(&mirror->rules);
}

static void sweep_small(struct mirror *mirror)
{
	const uint32_t number = mirror->number[SOURCE_KERNEL];
	uint32_t position;
	void *item;

	position = 0;
	while ((item = items_next(&mirror->neighbours, &position)) != NULL)
		if (item_is_stale(item, number))
			remove_neighbour(mirror, item);
	position = 0;
	while ((item = items_next(&mirror->addresses, &position)) != NULL)
		if (item_is_stale(item, number))
			remove_address(mirror, item);
	position = 0;
	while ((item = items_next(&mirror->links, &position)) != NULL)
		if (item_is_stale(item, number))
			remove_link(mirror, item);
	position = 0;
	while ((item = items_next(&mirror->rules, &position)) != NULL)
		if (item_is_stale(item, number))
			remove_rule(mirror, item);
	items_dump_end(&mirror->links);
	items_dump_end(&mirror->addresses);
	items_dump_end(&mirror->neighbours);
	items_dump_end(&mirror->rules);
}

bool mirror_sweep(struct mirror *mirror, enum route_source source, uint32_t n)
{
	const struct route_stamp stamp = stamp_of(mirror, source, false);

	if (!kernel_routes_sweep(&mirror->routes, &stamp, &mirror->position[source], n))
		return false;
	kernel_routes_sweep_next_hops(&mirror->routes, &stamp);
	mirror->position[source] = 0;
	if (source != SOURCE_KERNEL)
		return true;
	kernel_routes_dump_end(&mirror->routes);
	sweep_small(mirror);
	mirror->follower.synced(mirror->follower.context);
	return true;
}

void mirror_counts(const struct mirror *mirror, struct mirror_counts *counts)
{
	const struct kernel_routes *routes = &mirror->routes;

	*counts = (struct mirror_counts){
		.links = mirror->links.n,
		.addresses = mirror->addresses.n,
		.neighbours = mirror->neighbours.n,
		.only_kernel = routes->n_only,
		.foreign_rules = mirror->n_foreign,
		.next_hops = routes->next_hops.items.n,
		.refused = mirror->refused + routes->refused,
		.cut = routes->cut,
		.malformed = mirror->malformed,
	};
	for (unsigned i = 0; i < N_SOURCES; i++)
		counts->routes[i] = routes->n[i];
}

/* ---------------------------------------------------- life */

int mirror_create(struct mirror **out, uint32_t max_routes, const struct kernel_follower *follower,
	struct error *error)
{
	struct mirror *mirror = calloc(1, sizeof(*mirror));

	if (mirror == NULL)
		return error_set(error, -ENOMEM, "no memory to follow the kernel");
	mirror->follower = *follower;
	/* so that nothing new bears the number of a dump that never was */
	mirror->number[SOURCE_KERNEL] = mirror->number[SOURCE_FPM] = 1;
	if (kernel_routes_init(&mirror->routes, max_routes, &mirror->follower) == 0 &&
		items_init(&mirror->links, ITEM_SIZE(struct link), sizeof(uint32_t), LINKS_MAX) ==
			0 &&
		items_init(&mirror->addresses, ITEM_SIZE(struct address),
			sizeof(struct address_key), ADDRESSES_MAX) == 0 &&
		items_init(&mirror->neighbours, ITEM_SIZE(struct neighbour),
			sizeof(struct neighbour_key), NEIGHBOURS_MAX) == 0 &&
		items_init(&mirror->rules, ITEM_SIZE(struct rule), sizeof(struct rule_key),
			RULES_MAX) == 0) {
		*out = mirror;
		return 0;
	}
	mirror_destroy(mirror);
	return error_set(error, -ENOMEM, "no memory to follow %u routes of the kernel", max_routes);
}

void mirror_destroy(struct mirror *mirror)
{
	if (mirror == NULL)
		return;
	kernel_routes_fini(&mirror->routes);
	items_fini(&mirror->links);
	items_fini(&mirror->addresses);
	items_fini(&mirror->neighbours);
	items_fini(&mirror->rules);
	free(mirror);
}
