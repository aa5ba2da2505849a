/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/top_draw.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/field.h"
#include "cli/top_flows.h"
#include "cli/top_pane.h"
#include "cli/when.h"

/* Rows of the head, and those that are there in any case: titles of ports and flows, drops, the last line. */
#define HEAD_ROWS 2
#define FIXED_ROWS (HEAD_ROWS + 4)
/* The list of flows keeps so many rows, or this part of the screen. */
#define FLOWS_LEAST 6
#define FLOWS_PART(rows) ((rows) * 2 / 5)
/* Columns of a worker, and of its bar. */
#define WORKER_COLS 40
#define BAR_COLS 12
#define TEXT_MAX 700
/* The length of the question about a block, without the name of the flow. */
#define QUESTION_COLS 17

/* How many rows each part has. */
struct layout {
	unsigned ports, worker_rows, workers_a_row;
	bool ports_cut, workers_cut; /* a row tells how many more there are */
	unsigned flows;		     /* rows of the list */
};

const char *top_rate_text(char text[TOP_RATE_MAX], double rate)
{
	char spaced[TEXT_NUMBER_MAX];
	unsigned n = 0;

	if (rate < 0)
		return memcpy(text, "-", 2);
	text_rate(spaced, rate);
	for (const char *from = spaced; *from != '\0'; from++)
		if (*from != ' ')
			text[n++] = *from;
	text[n] = '\0';
	return text;
}

const char *top_age_text(char text[TOP_RATE_MAX], int64_t us)
{
	unsigned long long seconds = us > 0 ? (unsigned long long)us / 1000000 : 0;

	if (seconds < 60)
		snprintf(text, TOP_RATE_MAX, "%llus", seconds);
	else if (seconds < 3600)
		snprintf(text, TOP_RATE_MAX, "%llum%02llus", seconds / 60, seconds % 60);
	else if (seconds < 86400)
		snprintf(text, TOP_RATE_MAX, "%lluh%02llum", seconds / 3600, seconds / 60 % 60);
	else
		snprintf(text, TOP_RATE_MAX, "%llud%02lluh", seconds / 86400, seconds / 3600 % 24);
	return text;
}

const char *top_fit(char *text, unsigned width)
{
	size_t length = strlen(text);

	if (length <= width || width < 3)
		return text;
	/* the end has the port, and the most of what tells addresses of one network apart */
	size_t tail = (width - 1) * 2 / 3, head = width - 1 - tail;

	text[head] = '~';
	memmove(text + head + 1, text + length - tail, tail + 1);
	return text;
}

/* ------------------------------ the parts of the screen */

static unsigned at_most(unsigned number, unsigned most)
{
	return number < most ? number : most;
}

static unsigned at_least(unsigned number, unsigned least)
{
	return number > least ? number : least;
}

static unsigned rows_for(unsigned n, unsigned a_row)
{
	return (n + a_row - 1) / a_row;
}

static struct layout layout_of(const struct top_picture *picture, const struct top_view *view,
	unsigned rows, unsigned cols)
{
	struct layout layout = {.workers_a_row = at_least(cols / WORKER_COLS, 1)};
	unsigned ports = picture->n_ports;
	unsigned workers = rows_for(picture->n_workers, layout.workers_a_row);
	unsigned last = view->plain ? 0 : 1;
	unsigned room = rows - FIXED_ROWS + 1 - last;
	unsigned upper = room - at_most(room, at_least(FLOWS_LEAST, FLOWS_PART(rows)));

	if (view->plain)
		upper = ports + workers;
	/* each gets what it needs, or half and what the other one leaves */
	unsigned half = upper / 2;

	layout.worker_rows = at_most(workers, at_least(half, upper - at_most(upper, ports)));
	layout.ports = at_most(ports, upper - layout.worker_rows);
	layout.ports_cut = layout.ports < ports;
	layout.workers_cut = layout.worker_rows < workers;
	layout.flows = room - layout.ports - layout.worker_rows;
	return layout;
}

unsigned top_draw_rows(const struct top_picture *picture, unsigned cols)
{
	return FIXED_ROWS - 1 + picture->n_ports +
	       rows_for(picture->n_workers, at_least(cols / WORKER_COLS, 1)) +
	       at_least(picture->n_listed, 1);
}

/* Writes from `*col` on, and moves it behind. */
static void __attribute__((format(printf, 5, 6))) put_next(struct top_canvas *canvas, unsigned row,
	unsigned *col, enum top_style style, const char *format, ...)
{
	char text[TEXT_MAX];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	*col += top_put(canvas, row, *col, canvas->cols, style, text);
}

/* Writes at the right of the first row how often the picture changes, or why it does not. */
static void draw_condition(struct top_canvas *canvas, const struct top_view *view,
	const struct top_state *state, unsigned from)
{
	char text[64];
	enum top_style style = TOP_BAD;

	if (state->lost) {
		snprintf(text, sizeof(text), "NO ENGINE");
	} else if (view->frozen) {
		snprintf(text, sizeof(text), "FROZEN");
		style = TOP_BOLD;
	} else if (state->silent_s > 0) {
		snprintf(text, sizeof(text), "NO ANSWER FOR %u s", state->silent_s);
	} else {
		snprintf(text, sizeof(text), "every %g s", state->interval_ms / 1000.0);
		style = TOP_PLAIN;
	}
	if (from + 1 < canvas->cols)
		top_put_right(canvas, 0, from + 1, canvas->cols - from - 2, style, text);
}

static void draw_head(struct top_canvas *canvas, const struct top_picture *picture,
	const struct top_view *view, const struct top_state *state)
{
	const char *started = json_string_value(json_object_get(state->greeting, "started"));
	char text[FIELD_MAX], span[WHEN_MAX], flows[TEXT_NUMBER_MAX];
	int64_t started_us;
	unsigned col = 1;

	put_next(canvas, 0, &col, TOP_BOLD, "millrace");
	if (field_has(state->greeting, "millrace"))
		put_next(canvas, 0, &col, TOP_BOLD, " %.20s",
			field_text(state->greeting, "millrace", text));
	if (started && when_parse(started, &started_us) && state->now_us >= started_us) {
		uint64_t seconds = (uint64_t)(state->now_us - started_us) / 1000000;

		put_next(canvas, 0, &col, TOP_PLAIN, "  up %s",
			seconds > 0 ? when_span(span, seconds * 1000000) : "0 s");
	}
	if (picture->counters[TOP_WIRES])
		put_next(canvas, 0, &col, TOP_PLAIN, "  %s flows",
			text_grouped(flows, picture->n_flows));
	if (picture->new_flows_pps >= 0 && picture->counters[TOP_WORKERS])
		put_next(canvas, 0, &col, TOP_PLAIN, " (%s new/s)",
			top_rate_text(text, picture->new_flows_pps));
	draw_condition(canvas, view, state, col);
}

static void draw_rates(struct top_canvas *canvas, const struct top_picture *picture)
{
	char text[TOP_RATE_MAX], number[TEXT_NUMBER_MAX];
	unsigned col = 1;

	if (!picture->counters[TOP_WIRES]) {
		put_next(canvas, 1, &col, TOP_PLAIN, "asking the engine ...");
		return;
	}
	put_next(canvas, 1, &col, TOP_BOLD, "%s pkt/s", top_rate_text(text, picture->pps));
	put_next(canvas, 1, &col, TOP_BOLD, "  %s bit/s", top_rate_text(text, picture->bps));
	put_next(canvas, 1, &col, picture->drops_pps > 0 ? TOP_BAD : TOP_PLAIN, "  %s drops/s",
		top_rate_text(text, picture->drops_pps));
	if (!picture->offloads) {
		put_next(canvas, 1, &col, TOP_DIM, "  no offload");
		return;
	}
	put_next(canvas, 1, &col, TOP_GOOD, "  in NIC: %s rules",
		text_grouped(number, picture->n_in_nic));
	if (picture->list_us != 0 && picture->nic_percent >= 0)
		put_next(canvas, 1, &col, TOP_GOOD, ", %.0f %% of packets", picture->nic_percent);
}

/* ------------------------------ ports */

/* "up 10G" */
static void link_text(char text[FIELD_MAX], const json_t *line)
{
	unsigned long long speed = field_number(line, "speed_mbps");
	size_t length = strlen(field_text(line, "link", text));
	bool whole = speed % 1000 == 0;

	if (speed > 0)
		snprintf(text + length, FIELD_MAX - length, " %llu%s", whole ? speed / 1000 : speed,
			whole ? "G" : "M");
}

/* Appends a part of a list, if there is room for all of it. */
static void append_part(char text[TEXT_MAX], unsigned room, const char *part)
{
	size_t length = strlen(text);

	if (length + strlen(part) + 2 <= room && room < TEXT_MAX)
		snprintf(text + length, TEXT_MAX - length, ", %s", part);
}

/*
 * Writes what the NIC does for a port, in the words of `offload show`, cut to the room that there is. Returns true when the
 * NIC has a fault.
 */
static bool offload_text(char text[TEXT_MAX], unsigned room, const json_t *offload)
{
	static const char *const states[] = {
		"suspect", "installing", "queued", "leaving", "refused"};
	const json_t *flows = json_object_get(offload, "flows");
	char word[FIELD_MAX], part[2 * FIELD_MAX];

	text[0] = '\0';
	if (!offload)
		return false;
	if (!json_is_true(json_object_get(offload, "offload")) || field_has(offload, "unable")) {
		snprintf(text, TEXT_MAX, "none");
		return false;
	}
	if (!json_is_object(flows)) {
		snprintf(text, TEXT_MAX, "being tried");
		return false;
	}
	field_text(json_object_get(offload, "health"), "state", word);
	bool open = strcmp(word, "open") == 0 || strcmp(word, "trying") == 0;

	if (open)
		snprintf(text, TEXT_MAX, "BREAKER %.20s", word);
	snprintf(part, sizeof(part), "%s in NIC", field_grouped(flows, "in_hw", word));
	if (open)
		append_part(text, room, part);
	else
		snprintf(text, TEXT_MAX, "%s", part);
	for (unsigned i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		if (field_number(flows, states[i]) == 0)
			continue;
		snprintf(part, sizeof(part), "%s %s", field_grouped(flows, states[i], word),
			states[i]);
		append_part(text, room, part);
	}
	return open;
}

static const struct {
	unsigned col, width;
	const char *title;
} port_columns[] = {{1, 9, "port"}, {11, 7, "link"}, {19, 8, "rx pkt/s"}, {28, 6, "bit/s"},
	{35, 8, "tx pkt/s"}, {44, 6, "bit/s"}, {51, 8, "missed/s"}, {61, 0, "offload"}};

static void port_cell(struct top_canvas *canvas, unsigned row, unsigned column,
	enum top_style style, double value)
{
	char text[TOP_RATE_MAX];

	top_put_right(canvas, row, port_columns[column].col, port_columns[column].width, style,
		top_rate_text(text, value));
}

static void draw_port(struct top_canvas *canvas, unsigned row, const struct top_port *port)
{
	char text[TEXT_MAX], link[FIELD_MAX];
	bool up = strcmp(field_text(port->line, "link", link), "up") == 0;
	bool open = offload_text(text, canvas->cols - port_columns[7].col, port->offload);

	top_put(canvas, row, port_columns[7].col, canvas->cols, open ? TOP_BAD : TOP_PLAIN, text);
	top_put(canvas, row, port_columns[0].col, port_columns[0].width, TOP_PLAIN,
		top_fit(memcpy(text, field_text(port->line, "port", text), strlen(text) + 1),
			port_columns[0].width));
	link_text(link, port->line);
	top_put(canvas, row, port_columns[1].col, port_columns[1].width, up ? TOP_PLAIN : TOP_BAD,
		link);
	port_cell(canvas, row, 2, TOP_PLAIN, port->rx_pps);
	port_cell(canvas, row, 3, TOP_PLAIN, port->rx_bps);
	port_cell(canvas, row, 4, TOP_PLAIN, port->tx_pps);
	port_cell(canvas, row, 5, TOP_PLAIN, port->tx_bps);
	port_cell(canvas, row, 6, port->missed_pps > 0 ? TOP_BAD : TOP_PLAIN, port->missed_pps);
}

static unsigned draw_ports(struct top_canvas *canvas, const struct top_picture *picture,
	const struct layout *layout, unsigned row)
{
	unsigned shown = layout->ports_cut && layout->ports > 0 ? layout->ports - 1 : layout->ports;

	top_style_row(canvas, row, TOP_TITLE);
	for (unsigned i = 0; i < sizeof(port_columns) / sizeof(port_columns[0]); i++) {
		if (i >= 2 && i <= 6)
			top_put_right(canvas, row, port_columns[i].col, port_columns[i].width,
				TOP_TITLE, port_columns[i].title);
		else
			top_put(canvas, row, port_columns[i].col, canvas->cols, TOP_TITLE,
				port_columns[i].title);
	}
	row++;
	for (unsigned i = 0; i < shown; i++)
		draw_port(canvas, row++, &picture->ports[i]);
	if (shown < layout->ports) {
		unsigned col = 1;

		put_next(canvas, row++, &col, TOP_DIM, "and %u more ports: millrace port show",
			picture->n_ports - shown);
	}
	return row;
}

/* ------------------------------ workers */

/* "[######      ]"; in UTF-8 by eighths of a column. */
static void draw_bar(
	struct top_canvas *canvas, unsigned row, unsigned col, enum top_style style, double percent)
{
	static const char *const eighths[] = {
		"", "\u258f", "\u258e", "\u258d", "\u258c", "\u258b", "\u258a", "\u2589", "\u2588"};
	unsigned full = percent < 0 ? 0 : (unsigned)(percent * BAR_COLS * 8 / 100 + 0.5);

	full = at_most(full, BAR_COLS * 8);
	/* a little is not nothing */
	if (percent >= 1 && full == 0)
		full = 1;
	top_put(canvas, row, col, 1, TOP_PLAIN, "[");
	for (unsigned i = 0; i < BAR_COLS; i++) {
		unsigned part = at_most(full, 8);

		if (canvas->utf8)
			top_put(canvas, row, col + 1 + i, 1, style, eighths[part]);
		else if (part >= 4 || (i == 0 && part > 0))
			top_put(canvas, row, col + 1 + i, 1, style, "#");
		full -= part;
	}
	top_put(canvas, row, col + 1 + BAR_COLS, 1, TOP_PLAIN, "]");
}

static void draw_worker(
	struct top_canvas *canvas, unsigned row, unsigned col, const struct top_worker *worker)
{
	char text[FIELD_MAX], rate[TOP_RATE_MAX];
	enum top_style style = worker->busy >= 90 ? TOP_BAD : TOP_GOOD;

	top_put(canvas, row, col, 9, TOP_PLAIN, field_text(worker->line, "thread", text));
	draw_bar(canvas, row, col + 10, style, worker->busy);
	if (worker->busy >= 0)
		snprintf(text, sizeof(text), "%.0f %%", worker->busy);
	top_put_right(canvas, row, col + 25, 5, style, worker->busy >= 0 ? text : "-");
	snprintf(text, sizeof(text), "%s/s", top_rate_text(rate, worker->pps));
	top_put_right(canvas, row, col + 31, 7, TOP_PLAIN, text);
}

static unsigned draw_workers(struct top_canvas *canvas, const struct top_picture *picture,
	const struct layout *layout, unsigned row)
{
	unsigned rows = layout->worker_rows;
	unsigned shown = at_most(picture->n_workers, rows * layout->workers_a_row);

	if (layout->workers_cut && rows > 0)
		shown = (rows - 1) * layout->workers_a_row;
	for (unsigned i = 0; i < shown; i++)
		draw_worker(canvas, row + i / layout->workers_a_row,
			1 + i % layout->workers_a_row * WORKER_COLS, &picture->workers[i]);
	if (layout->workers_cut && rows > 0) {
		unsigned col = 1;

		put_next(canvas, row + rows - 1, &col, TOP_DIM,
			"and %u more threads: millrace worker show", picture->n_workers - shown);
	}
	return row + rows;
}

/* ------------------------------ drops */

static void draw_drops(struct top_canvas *canvas, const struct top_picture *picture, unsigned row)
{
	char reason[FIELD_MAX], all[FIELD_MAX], rate[TOP_RATE_MAX], text[TEXT_MAX];
	unsigned col = 1;

	put_next(canvas, row, &col, TOP_PLAIN, "drops");
	if (picture->n_drops == 0)
		put_next(
			canvas, row, &col, TOP_PLAIN, picture->counters[TOP_DROPS] ? "  none" : "");
	for (unsigned i = 0; i < picture->n_drops; i++) {
		const struct top_drop *drop = &picture->drops[i];

		snprintf(text, sizeof(text), "  %s %s/s (%s)",
			field_text(drop->line, "reason", reason), top_rate_text(rate, drop->pps),
			field_grouped(drop->line, "packets", all));
		/* whole, or not at all */
		if (col + top_width(text) + 4 > canvas->cols) {
			put_next(canvas, row, &col, TOP_DIM, " ...");
			return;
		}
		put_next(canvas, row, &col, drop->pps > 0 ? TOP_BAD : TOP_PLAIN, "%s", text);
	}
}

/* ------------------------------ the last line, and all of it */

static void draw_prompt(struct top_canvas *canvas, const struct top_view *view, unsigned row)
{
	char name[TOP_NAME_MAX];
	unsigned col = 1;

	switch (view->prompt) {
	case TOP_PROMPT_FILTER:
		put_next(canvas, row, &col, TOP_BOLD, "filter (as of flow list, empty: all): ");
		break;
	case TOP_PROMPT_BLOCK:
	case TOP_PROMPT_UNBLOCK:
		memcpy(name, view->target_name, sizeof(name));
		put_next(canvas, row, &col, TOP_BOLD, "%sblock %s? y/n ",
			view->prompt == TOP_PROMPT_UNBLOCK ? "un" : "",
			top_fit(name, canvas->cols - QUESTION_COLS));
		break;
	case TOP_PROMPT_FOR:
		put_next(
			canvas, row, &col, TOP_BOLD, "for how many seconds? (Enter: without end) ");
		break;
	case TOP_NO_PROMPT:
		break;
	}
	/* of a line that is too long the end is seen, where something is typed */
	unsigned length = (unsigned)strlen(view->input);
	unsigned room = canvas->cols - at_most(canvas->cols, col + 2);

	put_next(canvas, row, &col, TOP_PLAIN, "%s",
		view->input + (length > room ? length - room : 0));
	put_next(canvas, row, &col, TOP_CURSOR, " ");
}

static void draw_list_state(struct top_canvas *canvas, const struct top_picture *picture,
	const struct top_view *view, unsigned row)
{
	unsigned col = 1;

	put_next(canvas, row, &col, TOP_PLAIN, "by %s", top_order_names[view->order]);
	if (picture->n_listed > 0)
		put_next(canvas, row, &col, TOP_PLAIN, ", %u to %u of %u listed", view->first + 1,
			at_most(view->first + view->page, picture->n_listed), picture->n_listed);
	if (view->filter[0] != '\0')
		put_next(canvas, row, &col, TOP_BOLD, "  filter: %s", view->filter);
}

static void draw_last(struct top_canvas *canvas, const struct top_picture *picture,
	const struct top_view *view, const struct top_state *state)
{
	static const char keys[] = "? help  q quit";
	const unsigned width = sizeof(keys) - 1;
	unsigned row = canvas->rows - 1, col = 1;

	if (view->prompt != TOP_NO_PROMPT && view->message[0] == '\0') {
		draw_prompt(canvas, view, row);
		return;
	}
	if (view->message[0] != '\0') {
		top_put(canvas, row, 1, canvas->cols, view->is_bad ? TOP_BAD : TOP_BOLD,
			view->message);
		return;
	}
	if (state->lost || state->trouble) {
		top_put(canvas, row, 1, canvas->cols, TOP_BAD,
			state->lost ? state->lost : state->trouble);
		return;
	}
	if (view->mode == TOP_LIST)
		draw_list_state(canvas, picture, view, row);
	else
		put_next(canvas, row, &col, TOP_PLAIN, "lines %u to %u of %u%s", view->line + 1,
			at_most(view->line + view->pane, view->n_lines), view->n_lines,
			view->mode == TOP_EXPLAIN ? "  b block  u unblock" : "");
	top_put(canvas, row, canvas->cols - width - 1, width, TOP_DIM, keys);
}

static void draw_too_small(struct top_canvas *canvas)
{
	char text[64];

	top_put(canvas, 0, 0, canvas->cols, TOP_BOLD, "too small a terminal");
	snprintf(text, sizeof(text), "%ux%u; %ux%u or more needed", canvas->cols, canvas->rows,
		TOP_MIN_COLS, TOP_MIN_ROWS);
	top_put(canvas, 1, 0, canvas->cols, TOP_PLAIN, text);
	top_put(canvas, 2, 0, canvas->cols, TOP_PLAIN, "q quits");
}

void top_draw(struct top_canvas *canvas, const struct top_picture *picture, struct top_view *view,
	const struct top_state *state)
{
	top_canvas_clear(canvas);
	view->too_small =
		!view->plain && (canvas->rows < TOP_MIN_ROWS || canvas->cols < TOP_MIN_COLS);
	if (view->too_small) {
		draw_too_small(canvas);
		return;
	}
	draw_head(canvas, picture, view, state);
	draw_rates(canvas, picture);
	if (view->mode != TOP_LIST) {
		top_pane_draw(canvas, HEAD_ROWS, canvas->rows - HEAD_ROWS - 1, view, state->text);
	} else {
		struct layout layout = layout_of(picture, view, canvas->rows, canvas->cols);
		unsigned row = draw_ports(canvas, picture, &layout, HEAD_ROWS);

		row = draw_workers(canvas, picture, &layout, row);
		draw_drops(canvas, picture, row++);
		top_flows_draw(canvas, row, layout.flows, picture, view, state->now_us);
	}
	if (!view->plain)
		draw_last(canvas, picture, view, state);
}
