/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Routes as text, one a line:
 *
 *     PREFIX NUMBER                                  a next hop by its number
 *     [TYPE] PREFIX [via ADDRESS] [dev NAME] ...     as `ip route` prints it
 *
 * PREFIX is an address, a prefix, or `default`. TYPE is unicast, local, broadcast, anycast, multicast,
 * blackhole, unreachable, prohibit or throw. Empty lines and lines that begin with '#' or ';' are left
 * out. Other words of `ip route` are read and not kept; routes with several next hops are refused.
 *
 * Which number a gateway and an interface have is for the caller to say. A file is read before the first route of it is added.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "route/fib.h"

#define ROUTE_FILE_MAX_BYTES ((size_t)1 << 30)
#define ROUTE_DEVICE_MAX 16

enum route_type {
	ROUTE_UNICAST,
	ROUTE_LOCAL,
	ROUTE_BROADCAST,
	ROUTE_ANYCAST,
	ROUTE_MULTICAST,
	ROUTE_BLACKHOLE,
	ROUTE_UNREACHABLE,
	ROUTE_PROHIBIT,
	ROUTE_THROW,
};

struct route_line {
	struct route_prefix prefix; /* of `default` without a gateway: version 0 */
	enum route_type type;
	bool has_number;
	uint32_t number;	       /* up to FIB_MAX_NEXT_HOP */
	struct route_prefix gateway;   /* an address; version 0: none */
	char device[ROUTE_DEVICE_MAX]; /* empty: none */
};

/*
 * Reads a line, which it cuts up in place. Returns 0, or -EINVAL with the reason and the place of the
 * word that is wrong, counted in bytes from 1.
 */
int route_parse_line(struct route_line *route, char *line, unsigned *column, struct error *error);

/*
 * Gives the number of a next hop that a line names by type, gateway and interface. Returns 0, or a
 * negative errno with the reason.
 */
typedef int (*route_next_hop_fn)(
	void *context, const struct route_line *route, uint32_t *number, struct error *error);

struct route_loaded {
	uint64_t added, changed; /* of routes of the same prefix the last one counts */
};

/*
 * Adds the routes of a text to a table of the same version. `next_hop` NULL: numbers only. The error
 * names the file, the line and the column: -EBADMSG for a line that is wrong, which leaves the table as it
 * was; -EFBIG for a text that is too long; why a file cannot be read; or what fib_add() says, with the
 * routes of the lines before it in the table and `loaded`.
 */
int route_load_file(struct fib *fib, const char *path, route_next_hop_fn next_hop, void *context,
	struct route_loaded *loaded, struct error *error);
/* The same from memory; `name` stands for the file. */
int route_load_bytes(struct fib *fib, const char *name, const char *bytes, size_t size,
	route_next_hop_fn next_hop, void *context, struct route_loaded *loaded,
	struct error *error);
