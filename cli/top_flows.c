/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/top_flows.h"

#include <stdio.h>
#include <string.h>

#include "cli/field.h"
#include "cli/top_draw.h"
#include "cli/when.h"
#include "cli/where.h"

/* "[2001:db8:ffff:ffff:ffff:ffff:ffff:ffff]:65535" */
#define IPV6_END 47
/* Behind the mark of the cursor. */
#define MARGIN 1

enum column {
	COLUMN_PPS,
	COLUMN_BPS,
	COLUMN_PACKETS,
	COLUMN_BYTES,
	COLUMN_WHERE,
	COLUMN_PROTO,
	COLUMN_STATE,
	COLUMN_FROM,
	COLUMN_TO,
	COLUMN_WIRE,
	COLUMN_WORKER,
	COLUMN_AGE,
	N_COLUMNS,
};

/* From left to right. */
static const struct {
	const char *title;
	unsigned width;
	bool right;
	unsigned cols; /* of a screen that has the column */
} columns[N_COLUMNS] = {
	[COLUMN_PPS] = {"pkt/s", 6, true, 0},
	[COLUMN_BPS] = {"bit/s", 6, true, 0},
	[COLUMN_PACKETS] = {"pkts", 6, true, 0},
	[COLUMN_BYTES] = {"bytes", 6, true, 0},
	[COLUMN_WHERE] = {"where", 8, false, 0},
	[COLUMN_PROTO] = {"proto", 5, false, 0},
	[COLUMN_STATE] = {"state", 7, false, 0},
	[COLUMN_FROM] = {"initiator", 21, false, 0},
	[COLUMN_TO] = {"responder", 21, false, 0},
	[COLUMN_WIRE] = {"wire", 4, true, 140},
	[COLUMN_WORKER] = {"worker", 6, true, 140},
	[COLUMN_AGE] = {"age", 6, true, 0},
};

/* Which is left out last, when the flows are ordered by something else than packets or bytes. */
static const enum column importance[N_COLUMNS] = {COLUMN_PPS, COLUMN_FROM, COLUMN_TO, COLUMN_BPS,
	COLUMN_PROTO, COLUMN_WHERE, COLUMN_AGE, COLUMN_PACKETS, COLUMN_BYTES, COLUMN_STATE,
	COLUMN_WIRE, COLUMN_WORKER};

/* 0: the column is left out. */
struct widths {
	enum top_order order;
	unsigned of[N_COLUMNS];
};

/* The column that the order is of changes places with that of packets a second: it stands first, and is never left out. */
static enum column in_place_of(enum column column, enum top_order order)
{
	enum column ordered = order == TOP_BY_PACKETS ? COLUMN_PACKETS
			      : order == TOP_BY_BYTES ? COLUMN_BYTES
						      : COLUMN_PPS;

	if (column == COLUMN_PPS)
		return ordered;
	return column == ordered ? COLUMN_PPS : column;
}

static struct widths choose_columns(unsigned cols, enum top_order order)
{
	struct widths widths = {.order = order};
	/* of what is chosen, with a blank before each */
	unsigned used = MARGIN - 1;

	for (unsigned i = 0; i < N_COLUMNS; i++) {
		enum column column = in_place_of(importance[i], order);

		if (cols < columns[column].cols || used + 1 + columns[column].width > cols)
			break;
		widths.of[column] = columns[column].width;
		used += 1 + columns[column].width;
	}
	/* what is left is for addresses */
	for (bool more = widths.of[COLUMN_TO] > 0; more && used + 2 <= cols; used += 2) {
		widths.of[COLUMN_FROM]++;
		widths.of[COLUMN_TO]++;
		more = widths.of[COLUMN_TO] < IPV6_END;
	}
	return widths;
}

static const char *where_of(const json_t *line, char text[FIELD_MAX])
{
	if (json_is_true(json_object_get(line, "blocked")))
		return "blocked";
	return where_text(json_object_get(line, "offload"), "state", text);
}

static const char *age_of(const json_t *line, int64_t now_us, char text[TOP_RATE_MAX])
{
	const char *start = json_string_value(json_object_get(line, "start"));
	int64_t start_us;

	return start && when_parse(start, &start_us) ? top_age_text(text, now_us - start_us) : "-";
}

static const char *sum_of(
	const json_t *line, const char *key, const char *reverse_key, char text[TOP_RATE_MAX])
{
	return top_rate_text(
		text, (double)(field_number(line, key) + field_number(line, reverse_key)));
}

static const char *end_of(const json_t *line, const char *address, const char *port, unsigned width,
	char text[FIELD_MAX])
{
	field_endpoint(line, address, port, text);
	return top_fit(text, width);
}

static const char *cell_of(const struct top_flow *flow, enum column column, unsigned width,
	int64_t now_us, char text[FIELD_MAX])
{
	const json_t *line = flow->line;

	switch (column) {
	case COLUMN_PPS:
		return top_rate_text(text, flow->pps);
	case COLUMN_BPS:
		return top_rate_text(text, flow->bps);
	case COLUMN_PACKETS:
		return sum_of(line, "packets", "reverse_packets", text);
	case COLUMN_BYTES:
		return sum_of(line, "bytes", "reverse_bytes", text);
	case COLUMN_WHERE:
		return where_of(line, text);
	case COLUMN_PROTO:
		return field_proto(line, text);
	case COLUMN_STATE:
		return field_text(line, "state", text);
	case COLUMN_FROM:
		return end_of(line, "src", "sport", width, text);
	case COLUMN_TO:
		return end_of(line, "dst", "dport", width, text);
	case COLUMN_WIRE:
		return field_text(line, "wire", text);
	case COLUMN_WORKER:
		return field_text(line, "worker", text);
	case COLUMN_AGE:
		return age_of(line, now_us, text);
	case N_COLUMNS:
		break;
	}
	return "";
}

static enum top_style style_of(const struct top_flow *flow, enum column column)
{
	char text[FIELD_MAX];

	if (column != COLUMN_WHERE)
		return TOP_PLAIN;
	if (json_is_true(json_object_get(flow->line, "blocked")))
		return TOP_BAD;
	field_text(json_object_get(flow->line, "offload"), "state", text);
	return strcmp(text, "in_hw") == 0 ? TOP_GOOD : TOP_PLAIN;
}

static void put_cell(struct top_canvas *canvas, unsigned row, unsigned col, unsigned width,
	enum column column, enum top_style style, const char *text)
{
	if (columns[column].right)
		top_put_right(canvas, row, col, width, style, text);
	else
		top_put(canvas, row, col, width, style, text);
}

static void draw_titles(struct top_canvas *canvas, unsigned row, const struct widths *widths)
{
	unsigned col = MARGIN;

	top_style_row(canvas, row, TOP_TITLE);
	for (unsigned i = 0; i < N_COLUMNS; i++) {
		enum column column = in_place_of(i, widths->order);
		unsigned width = widths->of[column];

		if (width == 0)
			continue;
		put_cell(canvas, row, col, width, column, TOP_TITLE, columns[column].title);
		col += width + 1;
	}
}

static void draw_flow(struct top_canvas *canvas, unsigned row, const struct widths *widths,
	const struct top_flow *flow, int64_t now_us)
{
	char text[FIELD_MAX];
	unsigned col = MARGIN;

	for (unsigned i = 0; i < N_COLUMNS; i++) {
		enum column column = in_place_of(i, widths->order);
		unsigned width = widths->of[column];

		if (width == 0)
			continue;
		put_cell(canvas, row, col, width, column, style_of(flow, column),
			cell_of(flow, column, width, now_us, text));
		col += width + 1;
	}
}

void top_flows_draw(struct top_canvas *canvas, unsigned row, unsigned n,
	const struct top_picture *picture, struct top_view *view, int64_t now_us)
{
	struct widths widths = choose_columns(canvas->cols, view->order);

	view->page = n > 0 ? n : 1;
	top_view_follow(view, picture);
	draw_titles(canvas, row++, &widths);
	if (picture->n_listed == 0)
		top_put(canvas, row, MARGIN, canvas->cols, TOP_DIM,
			picture->list_us == 0	  ? "asking for flows ..."
			: view->filter[0] != '\0' ? "no flow fits the filter"
						  : "no flows");
	for (unsigned i = 0; i < n && view->first + i < picture->n_listed; i++) {
		draw_flow(canvas, row + i, &widths, &picture->flows[view->first + i], now_us);
		if (!view->plain && view->first + i == view->cursor) {
			top_put(canvas, row + i, 0, 1, TOP_CURSOR, ">");
			top_style_row(canvas, row + i, TOP_CURSOR);
		}
	}
}
