/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Bytes as a list of routes, for a table of each version. Besides what sanitizers see:
 *
 * - what is refused is told in one line that names the text;
 * - what is taken is walked in order, found by get and by look-up of its first address;
 * - written as text and read again it makes the same table;
 * - what is deleted leaves nothing behind.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "route/table_file.h"

#define MAX_ROUTES 4096
#define LINE_BYTES (ROUTE_PREFIX_TEXT_MAX + 16)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

/* Tables are made once: they are empty again at the end of each run. */
static struct fib *table(unsigned version, unsigned which)
{
	static struct fib *tables[2][2];
	struct fib **fib = &tables[version == 6][which];
	struct fib_config config = {.version = version, .memory = FIB_MIN_MEMORY};

	check(simd_choose(&config.simd) == 0, "simd");
	if (!*fib)
		check(fib_create(fib, &config) == 0, "create");
	return *fib;
}

/* By a sum over the line, so that equal ones are equal. */
static int number_of(
	void *context, const struct route_line *route, uint32_t *number, struct error *error)
{
	(void)context;
	(void)error;
	*number = route->type;
	for (unsigned i = 0; i < sizeof(route->gateway.addr); i++)
		*number = *number * 31 + route->gateway.addr[i];
	for (const char *at = route->device; *at != '\0'; at++)
		*number = *number * 31 + (unsigned char)*at;
	*number &= 0xffffff;
	return 0;
}

struct list {
	const struct fib *fib;
	struct route_prefix prefix[MAX_ROUTES];
	char text[MAX_ROUTES * LINE_BYTES];
	size_t size;
	unsigned n;
};

static uint32_t lookup(const struct fib *fib, const uint8_t addr[16])
{
	uint32_t v4;

	if (fib_version(fib) == 6)
		return fib_lookup6(fib, addr);
	v4 = (uint32_t)addr[0] << 24 | (uint32_t)addr[1] << 16 | (uint32_t)addr[2] << 8 | addr[3];
	return fib_lookup4(fib, v4);
}

static bool see(void *context, const struct route_prefix *prefix, uint32_t next_hop)
{
	struct list *list = context;
	struct route_prefix longest;
	char text[ROUTE_PREFIX_TEXT_MAX];

	if (list->n == MAX_ROUTES)
		return false;
	if (list->n > 0) {
		const struct route_prefix *last = &list->prefix[list->n - 1];
		int order = memcmp(last->addr, prefix->addr, sizeof(last->addr));

		check(order < 0 || (order == 0 && last->length < prefix->length), "order");
	}
	check(fib_get(list->fib, prefix) == next_hop, "get");
	check(fib_match(list->fib, prefix->addr, &longest) == lookup(list->fib, prefix->addr),
		"look-up");
	check(longest.length >= prefix->length, "longest");
	list->prefix[list->n++] = *prefix;
	list->size += (size_t)snprintf(list->text + list->size, LINE_BYTES, "%s %u\n",
		route_prefix_format(prefix, text), next_hop);
	return true;
}

static void delete_all(struct fib *fib, const struct list *list)
{
	struct fib_stats stats;

	for (unsigned i = 0; i < list->n; i++)
		check(fib_delete(fib, &list->prefix[i]) == 0, "delete");
	for (unsigned i = 0; i < list->n; i++)
		check(lookup(fib, list->prefix[i].addr) == FIB_NO_ROUTE, "nothing found");
	fib_reclaim(fib);
	fib_stats(fib, &stats);
	check(stats.routes == 0 && stats.waiting == 0, "empty");
}

static void check_refused(int code, const struct error *error)
{
	check(code == -EBADMSG || code == -ENOSPC, "code");
	check(strncmp(error->text, "f:", 2) == 0, "a name in front");
	for (const char *at = error->text; *at != '\0'; at++)
		check((unsigned char)*at >= 0x20, "one line");
}

static void run(unsigned version, const uint8_t *data, size_t size)
{
	static struct list list, again;
	struct fib *fib = table(version, 0), *other = table(version, 1);
	struct route_loaded loaded;
	struct error error = {""};
	int ret = route_load_bytes(
		fib, "f", (const char *)data, size, number_of, NULL, &loaded, &error);

	if (ret < 0)
		check_refused(ret, &error);
	list.fib = fib;
	again.fib = other;
	list.n = again.n = 0;
	list.size = again.size = 0;
	fib_walk(fib, see, &list);
	check(list.n == loaded.added, "all added");
	ret = route_load_bytes(other, "f", list.text, list.size, NULL, NULL, &loaded, &error);
	check(ret == 0 && loaded.changed == 0, "again");
	fib_walk(other, see, &again);
	check(again.size == list.size && memcmp(again.text, list.text, list.size) == 0, "the same");
	delete_all(fib, &list);
	delete_all(other, &again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* so that no input has more routes than the list */
	if (size > 4 * MAX_ROUTES)
		return 0;
	run(4, data, size);
	run(6, data, size);
	return 0;
}
