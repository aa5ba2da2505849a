/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/kernel_routes.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <rte_common.h>

#define MAX_NEXT_HOPS 65536
/* Routes that were told by themselves stand behind those of a dump. */
#define ORDER_TOLD 0x80000000u

struct key {
	uint8_t prefix[16];
	uint32_t table, metric;
	uint8_t version, length;
	uint8_t zero[2];
};

struct route {
	struct item item;
	struct key key;
	uint32_t order;
	struct hop_list *hops;	 /* that it says itself */
	uint32_t next_hop;	 /* the number of its object, plus 1; 0: it names none */
	uint32_t next, previous; /* that name the same object, plus 1 */
	uint8_t kind;		 /* enum kernel_route_kind */
	uint8_t protocol;
	uint8_t source;	  /* enum route_source */
	bool shown : 1;	  /* the follower knows it */
	bool changes : 1; /* what the follower knows of it is what its object stood for before */
};
static_assert(sizeof(struct route) == 72, "a million routes are to have little memory");

/* ---------------------------------------------------- what the follower knows */

static struct nexthop *object_of(const struct kernel_routes *routes, const struct route *route)
{
	if (route->next_hop == 0)
		return NULL;
	return items_at(&routes->next_hops.items, route->next_hop - 1);
}

/* The hops that the route has now. */
static struct hop_list *goes(
	const struct kernel_routes *routes, const struct route *route, enum kernel_route_kind *kind)
{
	const struct nexthop *object = object_of(routes, route);

	*kind = (enum kernel_route_kind)route->kind;
	if (object == NULL || !object->known)
		return route->hops;
	if (*kind == KERNEL_UNICAST)
		*kind = object->resolved;
	return object->hops;
}

static bool can_show(const struct kernel_routes *routes, const struct route *route)
{
	enum kernel_route_kind kind;
	const struct hop_list *hops = goes(routes, route, &kind);

	return kind != KERNEL_UNICAST || hops != NULL;
}

static bool is_better(
	const struct kernel_routes *routes, const struct route *route, const struct route *other)
{
	enum kernel_route_kind kind, other_kind;

	(void)goes(routes, route, &kind);
	(void)goes(routes, other, &other_kind);
	if ((kind == KERNEL_ONLY) != (other_kind == KERNEL_ONLY))
		return kind == KERNEL_ONLY;
	if (route->source != other->source)
		return route->source == SOURCE_FPM;
	return route->order < other->order;
}

static void tell(
	const struct kernel_routes *routes, const struct key *key, const struct route *route)
{
	struct kernel_route out = {.version = key->version,
		.length = key->length,
		.table = key->table,
		.metric = key->metric};

	memcpy(out.prefix, key->prefix, sizeof(out.prefix));
	if (route != NULL) {
		const struct hop_list *hops = goes(routes, route, &out.kind);

		out.protocol = route->protocol;
		out.n_hops = hops == NULL ? 0 : hops->n;
		out.hops = hops == NULL ? NULL : hops->hop;
	}
	routes->follower->route(routes->follower->context, &out, route == NULL);
}

static struct route *first_of(const struct kernel_routes *routes, const struct key *key)
{
	return items_find(&routes->items, key);
}

static struct route *again(const struct kernel_routes *routes, const struct route *route)
{
	return items_again(&routes->items, &route->item);
}

/* The follower has been told this of a key. */
struct view {
	bool any;
	enum kernel_route_kind kind;
	uint8_t protocol;
	struct hop_list
		*hops; /* held: a list that nobody has might be made anew at the same address */
};

static struct view view_of(struct hop_list *hops, enum kernel_route_kind kind, uint8_t protocol)
{
	hop_list_hold(hops);
	return (struct view){.any = true, .kind = kind, .protocol = protocol, .hops = hops};
}

/* Before a change; settle() comes after it. */
static struct view look(const struct kernel_routes *routes, const struct key *key)
{
	enum kernel_route_kind kind;

	for (struct route *route = first_of(routes, key); route != NULL;
		route = again(routes, route)) {
		if (route->shown) {
			struct hop_list *hops = goes(routes, route, &kind);

			return view_of(hops, kind, route->protocol);
		}
	}
	return (struct view){.any = false};
}

static bool differs(
	const struct kernel_routes *routes, const struct route *route, const struct view *before)
{
	enum kernel_route_kind kind;

	return goes(routes, route, &kind) != before->hops || kind != before->kind ||
	       route->protocol != before->protocol || !before->any;
}

/* Something of this key may have changed: the follower is told what differs. */
static void settle(struct kernel_routes *routes, const struct key *key, const struct view *before)
{
	struct route *best = NULL;

	for (struct route *route = first_of(routes, key); route != NULL;
		route = again(routes, route)) {
		route->shown = false;
		if (can_show(routes, route) && (best == NULL || is_better(routes, route, best)))
			best = route;
	}
	if (best != NULL)
		best->shown = true;
	if (best == NULL ? before->any : differs(routes, best, before))
		tell(routes, key, best);
	hop_list_put(&routes->lists, before->hops);
}

/* ---------------------------------------------------- their nexthop objects */

static struct route *route_at(const struct kernel_routes *routes, uint32_t number)
{
	return items_at(&routes->items, number);
}

static uint32_t number_of(const struct kernel_routes *routes, const struct route *route)
{
	return items_number(&routes->items, &route->item);
}

static void leave_object(struct kernel_routes *routes, struct route *route)
{
	struct nexthop *object = object_of(routes, route);

	if (object == NULL)
		return;
	if (route->previous != 0)
		route_at(routes, route->previous - 1)->next = route->next;
	else
		object->routes = route->next;
	if (route->next != 0)
		route_at(routes, route->next - 1)->previous = route->previous;
	route->next_hop = route->next = route->previous = 0;
	if (object->routes == 0)
		nexthops_unused(&routes->next_hops, object);
}

static void join_object(struct kernel_routes *routes, struct route *route, struct nexthop *object)
{
	const uint32_t number = number_of(routes, route) + 1;

	route->next_hop = items_number(&routes->next_hops.items, &object->item) + 1;
	route->next = object->routes;
	if (route->next != 0)
		route_at(routes, route->next - 1)->previous = number;
	object->routes = number;
}

/* The same view, from before an object that one of the routes names was changed. */
static struct view look_before(const struct kernel_routes *routes, const struct key *key,
	const struct nexthop_before *before)
{
	struct route *route = first_of(routes, key);

	while (route != NULL && !route->changes)
		route = again(routes, route);
	if (route == NULL)
		return look(routes, key);

	const bool own = !before->known || route->kind != KERNEL_UNICAST;

	route->changes = false;
	return view_of(before->known ? before->hops : route->hops,
		own ? (enum kernel_route_kind)route->kind : before->resolved, route->protocol);
}

/* Its routes go elsewhere. Two of them may have one key: that is settled by the first of them. */
static void object_changed(
	void *context, const struct nexthop *object, const struct nexthop_before *before)
{
	struct kernel_routes *routes = context;
	struct route *route;

	for (uint32_t next = object->routes; next != 0; next = route->next) {
		route = route_at(routes, next - 1);
		route->changes = route->shown;
	}
	for (uint32_t next = object->routes; next != 0; next = route->next) {
		route = route_at(routes, next - 1);
		const struct view view = look_before(routes, &route->key, before);

		settle(routes, &route->key, &view);
	}
}

/* ---------------------------------------------------- one route */

/* The number space of nexthop objects: the kernel has one, each connection of FPM its own. */
static uint32_t space_of(const struct route_stamp *stamp)
{
	return stamp->source == SOURCE_KERNEL ? 0 : stamp->number;
}

/* Whether the route names this object; 0: none. */
static bool names(
	const struct kernel_routes *routes, const struct route *route, uint32_t id, uint32_t space)
{
	const struct nexthop *object = object_of(routes, route);

	return object == NULL ? id == 0 : object->id == id && object->space == space;
}

static unsigned n_hops(const struct route *route)
{
	return route->hops == NULL ? 0 : route->hops->n;
}

static const struct kernel_hop *hops_of(const struct route *route)
{
	return route->hops == NULL ? NULL : route->hops->hop;
}

static bool is_same(const struct kernel_routes *routes, const struct route *route,
	const struct message_route *message, const struct route_stamp *stamp)
{
	if (route->kind != message->route.kind ||
		!names(routes, route, message->next_hop, space_of(stamp)))
		return false;
	return message->next_hop != 0 ||
	       hop_list_same(hops_of(route), n_hops(route), message->hops, message->route.n_hops);
}

/* The route becomes what the message says. 0, or -ENOSPC: there is no room for that, and it stays as it was. */
static int become(struct kernel_routes *routes, struct route *route,
	const struct message_route *message, const struct route_stamp *stamp)
{
	const uint32_t space = space_of(stamp);

	struct hop_list *hops = hop_list_get(&routes->lists, message->hops, message->route.n_hops);
	struct nexthop *object = NULL;

	if (hops == NULL && message->route.n_hops > 0)
		return -ENOSPC;
	if (!names(routes, route, message->next_hop, space)) {
		if (message->next_hop != 0)
			object = nexthops_get(&routes->next_hops, space, message->next_hop);
		if (message->next_hop != 0 && object == NULL) {
			hop_list_put(&routes->lists, hops);
			return -ENOSPC;
		}
		leave_object(routes, route);
		if (object != NULL)
			join_object(routes, route, object);
	}
	hop_list_put(&routes->lists, route->hops);
	route->hops = hops;
	routes->n_only -= route->kind == KERNEL_ONLY;
	routes->n_only += message->route.kind == KERNEL_ONLY;
	route->kind = (uint8_t)message->route.kind;
	route->protocol = message->route.protocol;
	return 0;
}

static void remove_route(struct kernel_routes *routes, struct route *route)
{
	const struct key key = route->key;
	const struct view before = look(routes, &key);

	leave_object(routes, route);
	hop_list_put(&routes->lists, route->hops);
	routes->n_only -= route->kind == KERNEL_ONLY;
	routes->n[route->source]--;
	items_remove(&routes->items, &route->item);
	settle(routes, &key, &before);
}

static void stamp_route(struct route *route, const struct route_stamp *stamp)
{
	if (stamp->dump || stamp->source == SOURCE_FPM)
		route->item.marked = stamp->number;
	else
		route->item.told = stamp->number;
}

/* `place`: among the routes of its key. */
static void add_route(struct kernel_routes *routes, const struct key *key,
	const struct message_route *message, const struct route_stamp *stamp, uint32_t place)
{
	struct route *route = items_add(&routes->items, key);
	struct view before;

	if (route == NULL) {
		routes->refused++;
		return;
	}
	route->source = (uint8_t)stamp->source;
	if (become(routes, route, message, stamp) < 0) {
		routes->refused++;
		items_remove(&routes->items, &route->item);
		return;
	}
	routes->n[route->source]++;
	route->order = place;
	stamp_route(route, stamp);
	before = look(routes, key);
	settle(routes, key, &before);
}

static void change_route(struct kernel_routes *routes, struct route *route,
	const struct message_route *message, const struct route_stamp *stamp)
{
	const struct view before = look(routes, &route->key);

	if (become(routes, route, message, stamp) < 0)
		routes->refused++;
	stamp_route(route, stamp);
	settle(routes, &route->key, &before);
}

/* ---------------------------------------------------- messages */

static struct key key_of(const struct kernel_route *route)
{
	struct key key = {.table = route->table,
		.metric = route->metric,
		.version = route->version,
		.length = route->length};

	memcpy(key.prefix, route->prefix, sizeof(key.prefix));
	return key;
}

/* The routes of one key that a source has told. */
struct group {
	struct route *first; /* in the source's order */
	struct route *same;  /* as the message says */
	unsigned n;
	uint32_t named; /* by the dump that goes on */
};

static struct group group_of(const struct kernel_routes *routes, const struct key *key,
	const struct message_route *message, const struct route_stamp *stamp)
{
	struct group group = {.n = 0};

	for (struct route *route = first_of(routes, key); route != NULL;
		route = again(routes, route)) {
		if (route->source != stamp->source)
			continue;
		group.n++;
		group.named += route->item.marked == stamp->number;
		if (group.first == NULL || route->order < group.first->order)
			group.first = route;
		if (group.same == NULL && is_same(routes, route, message, stamp))
			group.same = route;
	}
	return group;
}

/* A route is gone. A message of FPM names none of its hops. */
static int take_gone(struct kernel_routes *routes, const struct key *key,
	const struct message_route *message, const struct route_stamp *stamp)
{
	const struct group group = group_of(routes, key, message, stamp);
	const enum route_source source = stamp->source;
	struct route *next;

	if (source == SOURCE_KERNEL && group.same != NULL) {
		remove_route(routes, group.same);
		return group.n > 1 ? KERNEL_ROUTES_UNSURE : 0;
	}
	if (source == SOURCE_KERNEL)
		return group.n > 0 ? KERNEL_ROUTES_UNSURE : 0;
	for (struct route *route = first_of(routes, key); route != NULL; route = next) {
		next = again(routes, route);
		if (route->source == source)
			remove_route(routes, route);
	}
	return 0;
}

/* One of a dump's takes the place of one that the dump has not named: what the kernel had changed without a message. */
static struct route *unnamed(const struct kernel_routes *routes, const struct key *key,
	const struct route_stamp *stamp, bool *newer)
{
	struct route *found = NULL;

	for (struct route *route = first_of(routes, key); route != NULL;
		route = again(routes, route)) {
		if (route->source != stamp->source)
			continue;
		*newer |= route->item.told == stamp->number;
		if (route->item.marked != stamp->number && route->item.told != stamp->number)
			found = route;
	}
	return found;
}

static void take_dumped(struct kernel_routes *routes, const struct key *key,
	const struct message_route *message, const struct route_stamp *stamp)
{
	const struct group group = group_of(routes, key, message, stamp);
	bool newer = false;
	struct route *old;

	if (group.same != NULL) {
		/* whether its hops are dead is newer where a message of its own has told it */
		group.same->order = group.named;
		if (group.same->item.told == stamp->number)
			group.same->item.marked = stamp->number;
		else
			change_route(routes, group.same, message, stamp);
		return;
	}
	old = unnamed(routes, key, stamp, &newer);
	if (newer || items_was_removed(&routes->items, key))
		return;
	if (old != NULL) {
		old->order = group.named;
		change_route(routes, old, message, stamp);
	} else {
		add_route(routes, key, message, stamp, group.named);
	}
}

static int take_told(struct kernel_routes *routes, const struct key *key,
	const struct message_route *message, const struct route_stamp *stamp)
{
	const struct group group = group_of(routes, key, message, stamp);
	const bool replaces = message->replaces || stamp->source == SOURCE_FPM;

	if (group.same != NULL) {
		change_route(routes, group.same, message, stamp);
		return 0;
	}
	if (group.first == NULL) {
		add_route(routes, key, message, stamp, ++routes->order | ORDER_TOLD);
		return 0;
	}
	/* IPv6 adds a hop to a route, and then tells all of it */
	const bool grown = key->version == 6 && message->route.n_hops > n_hops(group.first) &&
			   n_hops(group.first) > 0 &&
			   hop_list_among(hops_of(group.first), n_hops(group.first), message->hops,
				   message->route.n_hops);

	if (replaces || grown)
		change_route(routes, group.first, message, stamp);
	else
		add_route(routes, key, message, stamp, ++routes->order | ORDER_TOLD);
	return (replaces || grown) && group.n == 1 ? 0 : KERNEL_ROUTES_UNSURE;
}

int kernel_routes_take(struct kernel_routes *routes, const struct message_route *message, bool gone,
	const struct route_stamp *stamp)
{
	const struct key key = key_of(&message->route);

	routes->cut += message->cut;
	if (gone)
		return take_gone(routes, &key, message, stamp);
	if (!stamp->dump)
		return take_told(routes, &key, message, stamp);
	take_dumped(routes, &key, message, stamp);
	return 0;
}

int kernel_routes_take_next_hop(struct kernel_routes *routes,
	const struct message_next_hop *message, bool gone, const struct route_stamp *stamp)
{
	struct nexthops *next_hops = &routes->next_hops;
	struct nexthop *object = nexthops_find(next_hops, space_of(stamp), message->id);

	routes->cut += message->cut;
	if (gone) {
		if (object != NULL)
			nexthops_forget(next_hops, object);
		/* the kernel takes away its routes without a message */
		return stamp->source == SOURCE_KERNEL ? KERNEL_ROUTES_UNSURE : 0;
	}
	/* a dump is not to bring back what was told since */
	if (stamp->dump && object == NULL) {
		const uint32_t key[2] = {message->id, space_of(stamp)};

		if (items_was_removed(&next_hops->items, key))
			return 0;
	}
	if (!stamp->dump || object == NULL || object->item.told != stamp->number)
		object = nexthops_take(next_hops, space_of(stamp), message);
	if (object == NULL)
		routes->refused++;
	else if (stamp->dump || stamp->source == SOURCE_FPM)
		object->item.marked = stamp->number;
	else
		object->item.told = stamp->number;
	return 0;
}

/* ---------------------------------------------------- dumps, and life */

void kernel_routes_dump_begin(struct kernel_routes *routes)
{
	items_dump_begin(&routes->items);
	items_dump_begin(&routes->next_hops.items);
}

void kernel_routes_dump_end(struct kernel_routes *routes)
{
	items_dump_end(&routes->items);
	items_dump_end(&routes->next_hops.items);
}

bool kernel_routes_sweep(struct kernel_routes *routes, const struct route_stamp *stamp,
	uint32_t *position, uint32_t n)
{
	for (; n > 0; n--) {
		struct route *route = items_next(&routes->items, position);

		if (route == NULL)
			return true;
		if (route->source == stamp->source && item_is_stale(&route->item, stamp->number))
			remove_route(routes, route);
	}
	return false;
}

void kernel_routes_sweep_next_hops(struct kernel_routes *routes, const struct route_stamp *stamp)
{
	struct nexthop *object;
	uint32_t position = 0;

	while ((object = items_next(&routes->next_hops.items, &position)) != NULL)
		if (object->known && (object->space == 0) == (stamp->source == SOURCE_KERNEL) &&
			item_is_stale(&object->item, stamp->number))
			nexthops_forget(&routes->next_hops, object);
}

int kernel_routes_init(
	struct kernel_routes *routes, uint32_t max, const struct kernel_follower *follower)
{
	memset(routes, 0, sizeof(*routes));
	routes->follower = follower;
	routes->next_hops.changed = object_changed;
	routes->next_hops.context = routes;
	if (hop_lists_init(&routes->lists) == 0 &&
		nexthops_init(&routes->next_hops, &routes->lists, MAX_NEXT_HOPS) == 0 &&
		items_init(&routes->items, sizeof(struct route), sizeof(struct key), max) == 0)
		return 0;
	kernel_routes_fini(routes);
	return -ENOMEM;
}

void kernel_routes_fini(struct kernel_routes *routes)
{
	uint32_t position = 0;
	struct route *route;

	while ((route = items_next(&routes->items, &position)) != NULL)
		hop_list_put(&routes->lists, route->hops);
	nexthops_fini(&routes->next_hops);
	items_fini(&routes->items);
	hop_lists_fini(&routes->lists);
}
