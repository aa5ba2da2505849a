/* SPDX-License-Identifier: BSD-3-Clause */
#include "route/table_file.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"

#define NAME_MAX_SHOWN 256

struct entry {
	struct route_prefix prefix;
	uint32_t next_hop;
	uint32_t line;
};

struct loading {
	struct fib *fib;
	unsigned version;
	const char *name;
	route_next_hop_fn next_hop;
	void *context;
	struct entry *list;
	size_t n, room;
	struct error *error;
};

static int refuse(const struct loading *loading, int code, const char *what)
{
	char name[NAME_MAX_SHOWN];

	return error_set(loading->error, code, "%s: %s",
		text_printable(name, sizeof(name), loading->name), what);
}

static int refuse_line(
	const struct loading *loading, int code, unsigned line, unsigned column, const char *what)
{
	char name[NAME_MAX_SHOWN];

	return error_set(loading->error, code, "%s:%u:%u: %s",
		text_printable(name, sizeof(name), loading->name), line, column, what);
}

static int make_room(struct loading *loading)
{
	if (loading->list && loading->n < loading->room)
		return 0;
	size_t room = loading->room == 0 ? 1024 : loading->room * 2;
	struct entry *list = realloc(loading->list, room * sizeof(*list));

	if (!list)
		return refuse(loading, -ENOMEM, "no memory to read the routes");
	loading->list = list;
	loading->room = room;
	return 0;
}

/* The number of the line's next hop, and whether its prefix is of the table's version. */
static int resolve(const struct loading *loading, struct route_line *route, struct error *why)
{
	if (route->prefix.version == 0) {
		/* `default` alone is of any version */
		route->prefix.version = (uint8_t)loading->version;
	}
	if (route->prefix.version != loading->version)
		return error_set(why, -EINVAL, "not a prefix of IPv%u", loading->version);
	if (route->has_number)
		return 0;
	if (!loading->next_hop)
		return error_set(why, -EINVAL, "the number of a next hop must follow the prefix");
	int ret = loading->next_hop(loading->context, route, &route->number, why);

	if (ret == 0 && route->number > FIB_MAX_NEXT_HOP)
		ret = error_set(why, -ERANGE, "next hops have numbers up to %u", FIB_MAX_NEXT_HOP);
	return ret;
}

/* `line` ends with a zero at `length`. */
static int take_line(struct loading *loading, char *line, size_t length, unsigned number)
{
	size_t skipped = strspn(line, " \t\r");
	struct route_line route;
	struct error why;
	unsigned column;

	if (memchr(line, '\0', length))
		return refuse_line(loading, -EBADMSG, number, (unsigned)strlen(line) + 1,
			"a zero byte; this is no text");
	if (line[skipped] == '\0' || line[skipped] == '#' || line[skipped] == ';')
		return 0;
	int ret = make_room(loading);

	if (ret < 0)
		return ret;
	assert(loading->list);
	if (route_parse_line(&route, line, &column, &why) < 0)
		return refuse_line(loading, -EBADMSG, number, column, why.text);
	if (resolve(loading, &route, &why) < 0)
		return refuse_line(loading, -EBADMSG, number, (unsigned)skipped + 1, why.text);
	loading->list[loading->n++] = (struct entry){route.prefix, route.number, number};
	return 0;
}

/* `text` has `size` bytes and room for a zero behind them. */
static int read_lines(struct loading *loading, char *text, size_t size)
{
	char *end = text + size;
	unsigned number = 0;
	int ret = 0;

	while (ret == 0 && text < end) {
		char *newline = memchr(text, '\n', (size_t)(end - text));

		if (!newline)
			newline = end;
		*newline = '\0';
		ret = take_line(loading, text, (size_t)(newline - text), ++number);
		text = newline + 1;
	}
	return ret;
}

static int add_all(const struct loading *loading, struct route_loaded *loaded)
{
	for (size_t i = 0; i < loading->n; i++) {
		const struct entry *entry = &loading->list[i];
		int ret = fib_add(loading->fib, &entry->prefix, entry->next_hop);

		if (ret < 0)
			return refuse_line(loading, ret, entry->line, 1,
				ret == -EAGAIN ? "the routing table's memory is still in use by "
						 "readers; try again"
					       : "the routing table's memory is full");
		if (ret == 0)
			loaded->added++;
		else
			loaded->changed++;
	}
	return 0;
}

/* `text` is cut up. */
static int load(struct loading *loading, char *text, size_t size, struct route_loaded *loaded)
{
	int ret = read_lines(loading, text, size);

	if (ret == 0)
		ret = add_all(loading, loaded);
	free(loading->list);
	return ret;
}

int route_load_bytes(struct fib *fib, const char *name, const char *bytes, size_t size,
	route_next_hop_fn next_hop, void *context, struct route_loaded *loaded, struct error *error)
{
	struct loading loading = {.fib = fib,
		.version = fib_version(fib),
		.name = name,
		.next_hop = next_hop,
		.context = context,
		.error = error};

	*loaded = (struct route_loaded){0, 0};
	if (size > ROUTE_FILE_MAX_BYTES)
		return refuse(&loading, -EFBIG, "a list of routes has at most 1 GiB");
	char *text = malloc(size + 1);

	if (!text)
		return refuse(&loading, -ENOMEM, "no memory to read the routes");
	if (size > 0)
		memcpy(text, bytes, size);
	int ret = load(&loading, text, size, loaded);

	free(text);
	return ret;
}

int route_load_file(struct fib *fib, const char *path, route_next_hop_fn next_hop, void *context,
	struct route_loaded *loaded, struct error *error)
{
	struct loading loading = {.fib = fib,
		.version = fib_version(fib),
		.name = path,
		.next_hop = next_hop,
		.context = context,
		.error = error};
	char *text = NULL;
	size_t size = 0;

	*loaded = (struct route_loaded){0, 0};
	int ret = file_read_all(path, ROUTE_FILE_MAX_BYTES, &text, &size);

	if (ret == -EFBIG)
		refuse(&loading, ret, "a list of routes has at most 1 GiB");
	else if (ret < 0)
		refuse(&loading, ret, strerror(-ret));
	else
		ret = load(&loading, text, size, loaded);
	free(text);
	return ret;
}
