/* SPDX-License-Identifier: BSD-3-Clause */

/* Lists of blocks as text. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "rule/blocks.h"

#define NAME_MAX_SHOWN 256

struct loading {
	const char *name;
	struct block *list;
	uint32_t n, room;
	struct error *error;
};

static int refuse_load(const struct loading *loading, int code, const char *what)
{
	char name[NAME_MAX_SHOWN];

	return error_set(loading->error, code, "%s: %s",
		text_printable(name, sizeof(name), loading->name), what);
}

static int refuse_line(
	const struct loading *loading, unsigned line, unsigned column, const char *what)
{
	char name[NAME_MAX_SHOWN];

	return error_set(loading->error, -EBADMSG, "%s:%u:%u: %s",
		text_printable(name, sizeof(name), loading->name), line, column, what);
}

static int make_room(struct loading *loading)
{
	if (loading->n < loading->room)
		return 0;
	uint32_t room = loading->room == 0 ? 1024 : loading->room * 2;
	struct block *list = realloc(loading->list, room * sizeof(*list));

	if (!list)
		return refuse_load(loading, -ENOMEM, "no memory to read the list of blocks");
	loading->list = list;
	loading->room = room;
	return 0;
}

/* `line` ends with a zero at `length`. */
static int take_line(struct loading *loading, char *line, size_t length, unsigned number)
{
	size_t skipped = strspn(line, " \t\r");
	struct error why;
	unsigned column;

	if (memchr(line, '\0', length))
		return refuse_line(loading, number, (unsigned)strlen(line) + 1,
			"a zero byte; this is no text");
	if (line[skipped] == '\0' || line[skipped] == '#')
		return 0;
	if (loading->n == BLOCKS_MAX_ENTRIES)
		return refuse_line(loading, number, 1, "there can be 15,728,640 blocks at most");
	int ret = make_room(loading);

	if (ret < 0)
		return ret;
	if (block_parse_line(&loading->list[loading->n], line, &column, &why) < 0)
		return refuse_line(loading, number, column, why.text);
	loading->n++;
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

static int explain(const struct loading *loading, const struct blocks *blocks, int code)
{
	struct blocks_stats stats;
	char what[160];

	blocks_stats(blocks, &stats);
	if (code == -EAGAIN)
		return refuse_load(loading, code,
			"blocks that were just removed are still in use; try again in a second");
	if (code == -ENOMEM)
		return refuse_load(loading, code, "no memory to check the list of blocks");
	snprintf(what, sizeof(what),
		"no room for the %u blocks of this list: %u of %u are in use, with %u of %u "
		"reasons",
		loading->n, stats.entries, stats.max_entries, stats.reasons, stats.max_reasons);
	return refuse_load(loading, code, what);
}

/* `text` is cut up. */
static int load(struct blocks *blocks, struct loading *loading, char *text, size_t size,
	uint64_t now_us, struct blocks_added *added)
{
	const size_t mark = text_byte_order_mark(text, size);
	int ret = read_lines(loading, text + mark, size - mark);

	if (ret == 0) {
		ret = blocks_add_all(blocks, loading->list, loading->n, now_us, added);
		if (ret < 0)
			explain(loading, blocks, ret);
	}
	free(loading->list);
	return ret;
}

int blocks_load_bytes(struct blocks *blocks, const char *name, const char *bytes, size_t size,
	uint64_t now_us, struct blocks_added *added, struct error *error)
{
	struct loading loading = {.name = name, .error = error};

	*added = (struct blocks_added){0};
	if (size > BLOCKS_FILE_MAX_BYTES)
		return refuse_load(&loading, -EFBIG, "a list of blocks has at most 1 GiB");
	char *text = malloc(size + 1);

	if (!text)
		return refuse_load(&loading, -ENOMEM, "no memory to read the list of blocks");
	if (size > 0)
		memcpy(text, bytes, size);
	int ret = load(blocks, &loading, text, size, now_us, added);

	free(text);
	return ret;
}

int blocks_load_file(struct blocks *blocks, const char *path, uint64_t now_us,
	struct blocks_added *added, struct error *error)
{
	struct loading loading = {.name = path, .error = error};
	char *text = NULL;
	size_t size = 0;

	*added = (struct blocks_added){0};
	int ret = file_read_all(path, BLOCKS_FILE_MAX_BYTES, &text, &size);

	if (ret == -EFBIG)
		refuse_load(&loading, ret, "a list of blocks has at most 1 GiB");
	else if (ret < 0)
		refuse_load(&loading, ret, strerror(-ret));
	else
		ret = load(blocks, &loading, text, size, now_us, added);
	free(text);
	return ret;
}

int blocks_list_read(struct blocks_list *list, const char *name, const char *bytes, size_t size,
	struct error *error)
{
	struct loading loading = {.name = name, .error = error};

	*list = (struct blocks_list){.text = malloc(size + 1)};
	if (list->text == NULL)
		return refuse_load(&loading, -ENOMEM, "no memory to read the list of blocks");
	if (size > 0)
		memcpy(list->text, bytes, size);
	const size_t mark = text_byte_order_mark(list->text, size);
	int ret = read_lines(&loading, list->text + mark, size - mark);

	list->blocks = loading.list;
	list->n = loading.n;
	if (ret < 0)
		blocks_list_fini(list);
	return ret;
}

void blocks_list_fini(struct blocks_list *list)
{
	free(list->blocks);
	free(list->text);
	*list = (struct blocks_list){0};
}
