/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/standing.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOT_REACHED UINT32_MAX

/* Links by their places in the list, in the order in which they were reached, and each one's way back. */
struct walk {
	unsigned n;
	uint32_t *order;
	uint32_t *from; /* by place; itself: where it began; NOT_REACHED */
};

static bool walk_begin(struct walk *walk, const struct netlink_state *state, uint32_t place)
{
	walk->n = 0;
	walk->order = calloc((size_t)state->n_links + 1, sizeof(*walk->order));
	walk->from = calloc((size_t)state->n_links + 1, sizeof(*walk->from));
	if (walk->order == NULL || walk->from == NULL)
		return false;
	for (unsigned i = 0; i < state->n_links; i++)
		walk->from[i] = NOT_REACHED;
	walk->from[place] = place;
	walk->order[walk->n++] = place;
	return true;
}

static void walk_end(struct walk *walk)
{
	free(walk->order);
	free(walk->from);
}

static void reach(struct walk *walk, uint32_t place, uint32_t from)
{
	if (walk->from[place] != NOT_REACHED)
		return;
	walk->from[place] = from;
	walk->order[walk->n++] = place;
}

static uint32_t place_of(const struct netlink_state *state, unsigned index)
{
	for (unsigned i = 0; i < state->n_links; i++)
		if (index != 0 && state->links[i].index == index)
			return i;
	return NOT_REACHED;
}

static bool lies_on(const struct netlink_link *upper, const struct netlink_link *lower)
{
	return upper->lower_space < 0 &&
	       (upper->lower[0] == lower->index || upper->lower[1] == lower->index);
}

/* Two ends of one cable, such as a veth pair. */
static bool are_pair(const struct netlink_link *a, const struct netlink_link *b)
{
	return lies_on(a, b) && lies_on(b, a);
}

/* Does `upper` get what comes in by `lower`? */
static bool stands_on(const struct netlink_link *upper, const struct netlink_link *lower)
{
	return lower->master == upper->index || (lies_on(upper, lower) && !are_pair(upper, lower));
}

/* ------------------------------------------------------------------------ what stands on one */

__attribute__((format(printf, 3, 4))) static void append(
	char *text, size_t size, const char *format, ...)
{
	size_t length = strlen(text);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(&text[length], size - length, format, arguments);
	va_end(arguments);
}

static bool has_default_route(const struct netlink_state *state, unsigned index)
{
	for (unsigned i = 0; i < state->n_routes; i++)
		if (state->routes[i].index == index)
			return true;
	return false;
}

/* "10.0.0.5/24, 2 more and the default route"; "" where it has neither. */
static void describe_addresses(
	const struct netlink_state *state, unsigned index, char *text, size_t size)
{
	bool route = has_default_route(state, index);
	const char *first = NULL;
	unsigned n = 0;

	for (unsigned i = 0; i < state->n_addresses; i++)
		if (state->addresses[i].index == index && n++ == 0)
			first = state->addresses[i].text;
	text[0] = '\0';
	if (n > 0)
		append(text, size, "%s", first);
	if (n > 1)
		append(text, size, "%s %u more", route ? "," : " and", n - 1);
	if (route)
		append(text, size, "%sthe default route", n > 0 ? " and " : "");
}

static bool is_needed(const struct netlink_state *state, unsigned index)
{
	char text[64];

	describe_addresses(state, index, text, sizeof(text));
	return text[0] != '\0';
}

/* Everything above it, the nearest first. */
static void walk_up(struct walk *walk, const struct netlink_state *state)
{
	for (unsigned next = 0; next < walk->n; next++)
		for (uint32_t i = 0; i < state->n_links; i++)
			if (stands_on(&state->links[i], &state->links[walk->order[next]]))
				reach(walk, i, walk->order[next]);
}

static const char *kind_of(const struct netlink_link *link)
{
	if (strcmp(link->kind, "vlan") == 0)
		return "VLAN";
	return link->kind[0] != '\0' ? link->kind : "interface";
}

/* "is a member of bridge br0", "carries macvlan mv0": what `upper` is to `lower`. */
static void describe_step(
	const struct netlink_link *upper, const struct netlink_link *lower, char *text, size_t size)
{
	append(text, size, "%s %s %s", lower->master == upper->index ? "is a member of" : "carries",
		kind_of(upper), upper->name);
}

/* The way from the first to `place`, each step a clause. */
static void describe_way(const struct netlink_state *state, const struct walk *walk, uint32_t place,
	char *text, size_t size)
{
	if (walk->from[place] == place)
		return;
	describe_way(state, walk, walk->from[place], text, size);
	if (text[0] != '\0')
		append(text, size, ", which ");
	describe_step(&state->links[place], &state->links[walk->from[place]], text, size);
}

bool standing_on(
	const struct netlink_state *state, unsigned index, bool *cut_off, char *text, size_t size)
{
	uint32_t place = place_of(state, index), told;
	struct walk walk = {0};

	*cut_off = false;
	text[0] = '\0';
	if (place == NOT_REACHED)
		return false;
	if (walk_begin(&walk, state, place)) {
		char addresses[NETLINK_ADDRESS_MAX + 48];

		walk_up(&walk, state);
		told = walk.n > 1 ? walk.order[1] : place;
		for (unsigned i = 0; i < walk.n && !*cut_off; i++)
			if (is_needed(state, state->links[walk.order[i]].index)) {
				*cut_off = true;
				told = walk.order[i];
			}
		describe_way(state, &walk, told, text, size);
		describe_addresses(state, state->links[told].index, addresses, sizeof(addresses));
		if (*cut_off)
			append(text, size, "%scarries %s", text[0] != '\0' ? ", which " : "",
				addresses);
	}
	walk_end(&walk);
	return text[0] != '\0';
}

void standing_remedy(const struct netlink_state *state, unsigned index, char *text, size_t size)
{
	uint32_t place = place_of(state, index);

	text[0] = '\0';
	if (place == NOT_REACHED || is_needed(state, index))
		return;
	const struct netlink_link *link = &state->links[place];

	if (link->master != 0) {
		append(text, size, "ip link set %s nomaster", link->name);
		return;
	}
	for (unsigned i = 0; i < state->n_links && text[0] == '\0'; i++)
		if (stands_on(&state->links[i], link))
			append(text, size, "ip link del %s", state->links[i].name);
}

/* -------------------------------------------------------------------------------------- loops */

static bool is_kind(const struct netlink_link *link, const char *kind)
{
	return strcmp(link->kind, kind) == 0;
}

/* Does it hand on what it hears by one of its own to the others? */
static bool is_switch(const struct netlink_link *link)
{
	return is_kind(link, "bridge") || is_kind(link, "openvswitch") || is_kind(link, "bond") ||
	       is_kind(link, "team") || is_kind(link, "hsr");
}

/* Macvlans and their like reach one another, and whatever their parent reaches. */
static bool is_branch(const struct netlink_link *link)
{
	return !link->alone &&
	       (strncmp(link->kind, "macv", 4) == 0 || strncmp(link->kind, "ipv", 3) == 0);
}

/* Do frames that are sent out by one of them come to the other, without the engine? */
static bool are_joined(const struct netlink_link *a, const struct netlink_link *b)
{
	if (are_pair(a, b))
		return true;
	if ((is_switch(b) && stands_on(b, a)) || (is_switch(a) && stands_on(a, b)))
		return true;
	return (is_branch(a) && lies_on(a, b)) || (is_branch(b) && lies_on(b, a)) ||
	       /* on a parent in another namespace */
	       (is_branch(a) && is_branch(b) && a->lower_space >= 0 &&
		       a->lower_space == b->lower_space && a->lower[0] == b->lower[0]);
}

static bool are_wired(const struct standing_wire *wires, unsigned n, unsigned a, unsigned b)
{
	for (unsigned i = 0; i < n; i++)
		if ((wires[i].index[0] == a && wires[i].index[1] == b) ||
			(wires[i].index[0] == b && wires[i].index[1] == a))
			return true;
	return false;
}

static void walk_around(struct walk *walk, const struct netlink_state *state,
	const struct standing_wire *wires, unsigned n)
{
	for (unsigned next = 0; next < walk->n; next++) {
		const struct netlink_link *at = &state->links[walk->order[next]];

		for (uint32_t i = 0; i < state->n_links; i++)
			if (are_joined(at, &state->links[i]) ||
				are_wired(wires, n, at->index, state->links[i].index))
				reach(walk, i, walk->order[next]);
	}
}

bool standing_joined(const struct netlink_state *state, const struct standing_wire *wires,
	unsigned n, char *text, size_t size)
{
	uint32_t to = place_of(state, wires[n - 1].index[0]);
	uint32_t from = place_of(state, wires[n - 1].index[1]);
	struct walk walk = {0};
	bool joined = false;

	text[0] = '\0';
	if (from == NOT_REACHED || to == NOT_REACHED)
		return false;
	if (walk_begin(&walk, state, from)) {
		walk_around(&walk, state, wires, n - 1);
		joined = walk.from[to] != NOT_REACHED;
		for (uint32_t at = to; joined; at = walk.from[at]) {
			append(text, size, "%s%s", text[0] != '\0' ? ", " : "",
				state->links[at].name);
			if (walk.from[at] == at)
				break;
		}
	}
	walk_end(&walk);
	return joined;
}
