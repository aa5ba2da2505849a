/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Bytes as what the kernel says by netlink, or a peer by FPM. The first byte's lowest bit says which. Besides what sanitizers see:
 *
 * - the follower is told nothing twice, and of nothing gone that it does not know;
 * - nobody sends more hops than count, or prefixes with bits beyond their length;
 * - when both sources are swept without being told anything again, the follower knows no route any more.
 *
 * The kernel's messages are in dumps, begin one or end one, by the lowest bits of their `nlmsg_pid`.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libmnl/libmnl.h>

#include "host/frames.h"
#include "host/mirror.h"

#define MAX_ROUTES 512
#define MAX_BYTES 65536

enum { IN_DUMP = 1, BEGINS = 2, ENDS = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct known {
	struct kernel_route route; /* `hops`: `hop` */
	struct kernel_hop hop[KERNEL_HOPS];
} known[MAX_ROUTES];
static unsigned n_known;

static void check(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

static struct known *find(const struct kernel_route *route)
{
	for (unsigned i = 0; i < n_known; i++) {
		const struct kernel_route *other = &known[i].route;

		if (other->version == route->version && other->length == route->length &&
			other->table == route->table && other->metric == route->metric &&
			memcmp(other->prefix, route->prefix, sizeof(route->prefix)) == 0)
			return &known[i];
	}
	return NULL;
}

static bool is_same(const struct known *one, const struct kernel_route *route)
{
	return one->route.kind == route->kind && one->route.protocol == route->protocol &&
	       one->route.n_hops == route->n_hops &&
	       (route->n_hops == 0 ||
		       memcmp(one->hop, route->hops, route->n_hops * sizeof(one->hop[0])) == 0);
}

static void check_route(const struct kernel_route *route)
{
	const unsigned bits = route->version == 4 ? 32 : 128;

	check(route->version == 4 || route->version == 6, "version");
	check(route->length <= bits, "length");
	for (unsigned i = route->length; i < 128; i++)
		check((route->prefix[i / 8] & 0x80 >> i % 8) == 0, "bits beyond the prefix");
	check(route->n_hops <= KERNEL_HOPS, "hops");
	check(route->kind != KERNEL_UNICAST || route->n_hops > 0, "a way");
}

static void route_told(void *context, const struct kernel_route *route, bool gone)
{
	struct known *found = find(route);

	(void)context;
	if (gone) {
		check(found != NULL, "known before it is gone");
		*found = known[--n_known];
		return;
	}
	check_route(route);
	if (found == NULL)
		found = &known[n_known++];
	else
		check(!is_same(found, route), "told once");
	found->route = *route;
	if (route->n_hops > 0)
		memcpy(found->hop, route->hops, route->n_hops * sizeof(found->hop[0]));
}

static void link_told(void *context, const struct kernel_link *link, bool gone)
{
	(void)context;
	(void)gone;
	check(link->ifindex != 0 && memchr(link->name, '\0', sizeof(link->name)) != NULL, "link");
}

static void address_told(void *context, const struct kernel_address *address, bool gone)
{
	(void)context;
	(void)gone;
	check(address->length <= (address->version == 4 ? 32 : 128), "address");
}

static void neighbour_told(void *context, const struct kernel_neighbour *neighbour, bool gone)
{
	(void)context;
	(void)gone;
	check(neighbour->valid || !neighbour->reachable, "neighbour");
}

static void synced_told(void *context)
{
	(void)context;
}

static void sweep(struct mirror *mirror, enum route_source source)
{
	while (!mirror_sweep(mirror, source, 7))
		;
}

/* The bytes come in pieces, as TCP brings them. */
static void run_fpm(struct mirror *mirror, const uint8_t *data, size_t size)
{
	static struct frames frames;
	size_t piece = 1;

	mirror_begin(mirror, SOURCE_FPM);
	frames_begin(&frames, mirror);
	while (size > 0) {
		size_t room;
		char *at = frames_room(&frames, &room);
		const size_t n = size < piece ? size : piece;

		check(room > 0, "room for more");
		memcpy(at, data, n < room ? n : room);
		if (frames_take(&frames, n < room ? n : room) < 0)
			break;
		data += n < room ? n : room;
		size -= n < room ? n : room;
		piece = piece * 3 % 1021 + 1;
	}
	frames_flush(&frames);
}

static void run_kernel(struct mirror *mirror, const uint8_t *data, size_t size)
{
	static union {
		struct nlmsghdr first;
		uint8_t bytes[MAX_BYTES];
	} buffer;
	const struct nlmsghdr *message = &buffer.first;
	int left = (int)size;

	memcpy(buffer.bytes, data, size);
	for (; message_fits(message, left); message = mnl_nlmsg_next(message, &left)) {
		if (message->nlmsg_pid & BEGINS)
			mirror_begin(mirror, SOURCE_KERNEL);
		(void)mirror_take(mirror, SOURCE_KERNEL, message, message->nlmsg_pid & IN_DUMP);
		if (message->nlmsg_pid & ENDS)
			sweep(mirror, SOURCE_KERNEL);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct kernel_follower follower = {.link = link_told,
		.address = address_told,
		.neighbour = neighbour_told,
		.route = route_told,
		.synced = synced_told};
	struct mirror *mirror;
	struct error error;

	if (size < 1 || size > MAX_BYTES)
		return 0;
	n_known = 0;
	check(mirror_create(&mirror, MAX_ROUTES, &follower, &error) == 0, "create");
	if (data[0] & 1)
		run_fpm(mirror, data + 1, size - 1);
	else
		run_kernel(mirror, data + 1, size - 1);
	for (enum route_source source = SOURCE_KERNEL; source < N_SOURCES; source++) {
		mirror_begin(mirror, source);
		sweep(mirror, source);
	}
	check(n_known == 0, "nothing is left");
	mirror_destroy(mirror);
	return 0;
}
