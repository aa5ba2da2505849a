/* SPDX-License-Identifier: BSD-3-Clause */
/* How `millrace top` is laid out, at any size. */
#include "unit/top_scene.h"

#include <locale.h>

#include "cli/top_draw.h"
#include "cli/top_pane.h"

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))
#define LINE_MAX_BYTES 4096

static void test_numbers(void **state)
{
	static const struct {
		double rate;
		const char *text;
	} rates[] = {{0, "0"}, {912.4, "912"}, {1000, "1.0k"}, {81204, "81.2k"}, {999400, "999k"},
		{612e6, "612M"}, {9.1e9, "9.1G"}, {TOP_UNKNOWN, "-"}};
	static const struct {
		int64_t seconds;
		const char *text;
	} ages[] = {{-5, "0s"}, {59, "59s"}, {60, "1m00s"}, {3599, "59m59s"}, {3600, "1h00m"},
		{86399, "23h59m"}, {86400, "1d00h"}, {86400 * 99 + 3600 * 23, "99d23h"}};
	char text[TOP_RATE_MAX];

	(void)state;
	for (size_t i = 0; i < N_OF(rates); i++)
		assert_string_equal(top_rate_text(text, rates[i].rate), rates[i].text);
	for (size_t i = 0; i < N_OF(ages); i++)
		assert_string_equal(top_age_text(text, ages[i].seconds * 1000000), ages[i].text);
}

static void test_fit(void **state)
{
	static const struct {
		unsigned width;
		const char *text, *fits;
	} rows[] = {
		{21, "255.255.255.255:65535", "255.255.255.255:65535"},
		{21, "[2001:db8:1:2:3:4:5:6]:65535", "[2001:d~:4:5:6]:65535"},
		{3, "abcdef", "a~f"},
		{2, "abcdef", "abcdef"},
	};

	(void)state;
	for (size_t i = 0; i < N_OF(rows); i++) {
		char text[64];

		snprintf(text, sizeof(text), "%s", rows[i].text);
		assert_string_equal(top_fit(text, rows[i].width), rows[i].fits);
	}
}

/* Nothing that controls a terminal gets into a cell, whatever it is written in. */
static void test_what_is_shown(void **state)
{
	static const struct {
		const char *text, *ascii, *utf8;
	} rows[] = {
		{"a\x1b[2Jb\r\n\t\x7f", "a?[2Jb????", "a?[2Jb????"},
		/* U+009B in UTF-8, and as a byte of another set */
		{"\xc2\x9b"
		 "1m\x9b"
		 "2m",
			"?1m?2m", "?1m?2m"},
		{"gr\xc3\xbc\xc3\x9f", "gr??", "gr\xc3\xbc\xc3\x9f"},
		/* right to left, no width, two columns wide, cut, too long a form */
		{"\xe2\x80\xae|\xcc\x88|\xe6\xbc\xa2|\xe2\x80", "?|?|?|?", "?|?|?|?"},
		{"\xc0\x9b|\xed\xa0\x80", "??|?", "??|?"},
	};
	struct top_canvas canvas;
	char text[LINE_MAX_BYTES];

	(void)state;
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		skip();
	for (size_t i = 0; i < N_OF(rows); i++) {
		for (unsigned utf8 = 0; utf8 < 2; utf8++) {
			assert_int_equal(top_canvas_init(&canvas, 1, 20, utf8), 0);
			unsigned n = top_put(&canvas, 0, 0, 20, TOP_PLAIN, rows[i].text);

			assert_string_equal(top_canvas_text(&canvas, 0, text, sizeof(text)),
				utf8 ? rows[i].utf8 : rows[i].ascii);
			assert_int_equal(n, top_width(rows[i].text));
			top_canvas_fini(&canvas);
		}
	}
}

/* What lies outside is not drawn. */
static void test_edges(void **state)
{
	struct top_canvas canvas;
	char text[LINE_MAX_BYTES];

	(void)state;
	assert_int_equal(top_canvas_init(&canvas, 2, 5, false), 0);
	assert_int_equal(top_put(&canvas, 0, 3, 9, TOP_PLAIN, "abc"), 2);
	assert_int_equal(top_put(&canvas, 1, 0, 2, TOP_PLAIN, "abc"), 2);
	assert_int_equal(top_put(&canvas, 2, 0, 9, TOP_PLAIN, "abc"), 0);
	assert_int_equal(top_put(&canvas, 0, 5, 9, TOP_PLAIN, "abc"), 0);
	top_put_right(&canvas, 1, 2, 3, TOP_PLAIN, "x");
	top_style_row(&canvas, 7, TOP_BOLD);
	assert_string_equal(top_canvas_text(&canvas, 0, text, sizeof(text)), "   ab");
	assert_string_equal(top_canvas_text(&canvas, 1, text, sizeof(text)), "ab  x");
	assert_string_equal(top_canvas_text(&canvas, 1, text, 4), "ab");
	assert_int_equal(top_canvas_resize(&canvas, 0, 0), 0);
	assert_int_equal(top_put(&canvas, 0, 0, 9, TOP_PLAIN, "abc"), 0);
	top_canvas_fini(&canvas);
}

/* ------------------------------ whole screens */

struct screen {
	struct top_canvas canvas;
	struct top_picture *picture;
	struct top_view view;
	struct top_state state;
	json_t *greeting;
	char text[LINE_MAX_BYTES];
};

static void screen_create(struct screen *screen, unsigned rows, unsigned cols, unsigned n_flows)
{
	*screen = (struct screen){.picture = scene_picture(n_flows)};
	assert_int_equal(top_canvas_init(&screen->canvas, rows, cols, false), 0);
	top_view_init(&screen->view);
	screen->greeting = scene_json(
		"{'millrace':'0.1.0','protocol':1,'started':'2026-11-20T05:56:00.000000Z'}");
	screen->state = (struct top_state){
		.greeting = screen->greeting, .now_us = SCENE_START_US, .interval_ms = 1000};
}

static void screen_destroy(struct screen *screen)
{
	scene_free(screen->picture);
	top_view_fini(&screen->view);
	top_canvas_fini(&screen->canvas);
	json_decref(screen->greeting);
}

static const char *row_of(struct screen *screen, unsigned row)
{
	return top_canvas_text(&screen->canvas, row, screen->text, sizeof(screen->text));
}

static void draw(struct screen *screen)
{
	top_draw(&screen->canvas, screen->picture, &screen->view, &screen->state);
}

static void test_80_columns(void **state)
{
	static const char *const rows[] = {
		" millrace 0.1.0  up 2 h 4 min  1,234 flows (50 new/s)                 every 1 s",
		" 1.0k pkt/s  1.0M bit/s  12 drops/s  in NIC: 7 rules, 50 % of packets",
		" port      link    rx pkt/s  bit/s tx pkt/s  bit/s missed/s  offload",
		" eth1      up 10G      1.0k   1.0M        0      0        7  7 in NIC, 2 queued",
		" eth2      down           0      -      988   988k        -  none",
		" worker 0  [######      ]  50 %  1.0k/s",
		" drops  blocked 12/s (24)  malformed 0/s (2,000)",
		"  pkt/s  bit/s where    proto initiator             responder                age",
		">  3.0k   3.0M in NIC   udp   10.0.0.1:1000         10.9.9.9:53           10m00s",
		"   2.9k   2.9M software udp   10.0.0.2:1001         10.9.9.9:53            9m00s",
	};
	struct screen screen;

	(void)state;
	screen_create(&screen, 24, 80, 30);
	/* a counter that is not told has no rate */
	screen.picture->ports[1].rx_bps = TOP_UNKNOWN;
	draw(&screen);
	for (unsigned i = 0; i < N_OF(rows); i++)
		assert_string_equal(row_of(&screen, i), rows[i]);
	assert_string_equal(row_of(&screen, 23),
		" by rate, 1 to 15 of 30 listed                                   ? help  q quit");
	assert_int_equal(screen.view.page, 15);
	screen_destroy(&screen);
}

/* By packets and bytes these come first; a wide screen has all columns. */
static void test_columns(void **state)
{
	static const struct {
		unsigned cols;
		enum top_order order;
		const char *title;
	} rows[] = {
		{60, TOP_BY_RATE, "  pkt/s  bit/s initiator              responder"},
		{80, TOP_BY_PACKETS,
			"   pkts  bit/s where    proto initiator             responder             "
			"   age"},
		{80, TOP_BY_BYTES,
			"  bytes  bit/s where    proto initiator             responder             "
			"   age"},
		{102, TOP_BY_BYTES,
			"  bytes  bit/s   pkts  pkt/s where    proto state   initiator             "
			"responder                age"},
		{102, TOP_BY_AGE,
			"  pkt/s  bit/s   pkts  bytes where    proto state   initiator             "
			"responder                age"},
		{140, TOP_BY_RATE,
			"  pkt/s  bit/s   pkts  bytes where    proto state   initiator"
			"                          responder                          wire worker  "
			"  age"},
	};

	(void)state;
	for (unsigned i = 0; i < N_OF(rows); i++) {
		struct screen screen;

		screen_create(&screen, 24, rows[i].cols, 3);
		screen.view.order = rows[i].order;
		draw(&screen);
		assert_string_equal(row_of(&screen, 7), rows[i].title);
		screen_destroy(&screen);
	}
}

/* No size writes outside, and each that is large enough has the last line and a flow. */
static void test_every_size(void **state)
{
	struct screen screen;

	(void)state;
	screen_create(&screen, 1, 1, 40);
	/* more ports and threads than any screen has lines for */
	screen.picture->n_ports = TOP_MAX_PORTS;
	for (unsigned i = 2; i < TOP_MAX_PORTS; i++)
		screen.picture->ports[i] = screen.picture->ports[i % 2];
	screen.picture->n_workers = TOP_MAX_WORKERS;
	for (unsigned i = 1; i < TOP_MAX_WORKERS; i++)
		screen.picture->workers[i] = screen.picture->workers[0];
	for (unsigned rows = 0; rows < 130; rows++) {
		for (unsigned cols = 0; cols < 200; cols += rows % 3 + 1) {
			assert_int_equal(top_canvas_resize(&screen.canvas, rows, cols), 0);
			draw(&screen);
			if (rows < TOP_MIN_ROWS || cols < TOP_MIN_COLS) {
				if (rows > 1 && cols > 40)
					assert_non_null(strstr(row_of(&screen, 1), "needed"));
				continue;
			}
			assert_non_null(strstr(row_of(&screen, rows - 1), "? help  q quit"));
			assert_true(screen.view.page >= 6);
			bool cut = false, flow = false;

			for (unsigned row = 3; row < rows; row++) {
				cut |= strstr(row_of(&screen, row), "more ports") != NULL;
				flow |= strstr(row_of(&screen, row), "10.9.9.9") != NULL;
			}
			assert_true(cut);
			assert_true(flow);
		}
	}
	screen_destroy(&screen);
}

static void test_too_small(void **state)
{
	struct screen screen;

	(void)state;
	screen_create(&screen, 10, 40, 3);
	draw(&screen);
	assert_string_equal(row_of(&screen, 0), "too small a terminal");
	assert_string_equal(row_of(&screen, 1), "40x10; 60x16 or more needed");
	assert_string_equal(row_of(&screen, 2), "q quits");
	/* what cannot be seen is not done */
	top_view_key(&screen.view, screen.picture, 'b');
	assert_int_equal(screen.view.prompt, TOP_NO_PROMPT);
	assert_int_equal(top_view_key(&screen.view, screen.picture, 'q'), TOP_QUIT);
	assert_int_equal(top_canvas_resize(&screen.canvas, TOP_MIN_ROWS, TOP_MIN_COLS), 0);
	draw(&screen);
	top_view_key(&screen.view, screen.picture, 'b');
	assert_int_equal(screen.view.prompt, TOP_PROMPT_BLOCK);
	screen_destroy(&screen);
}

/* What is wrong is told: no engine, one that does not answer, and what was refused. */
static void test_conditions(void **state)
{
	struct screen screen;

	(void)state;
	screen_create(&screen, 24, 80, 3);
	screen.state.silent_s = 7;
	screen.state.trouble = "flow list: four lists are being measured";
	draw(&screen);
	assert_non_null(strstr(row_of(&screen, 0), "NO ANSWER FOR 7 s"));
	assert_string_equal(row_of(&screen, 23), " flow list: four lists are being measured");
	screen.state.lost = "no millrace runs here";
	draw(&screen);
	assert_non_null(strstr(row_of(&screen, 0), "NO ENGINE"));
	assert_string_equal(row_of(&screen, 23), " no millrace runs here");
	screen.state = (struct top_state){.greeting = NULL, .interval_ms = 500};
	screen.view.frozen = true;
	snprintf(screen.view.filter, sizeof(screen.view.filter), "port 53");
	top_picture_forget_flows(screen.picture);
	draw(&screen);
	assert_non_null(strstr(row_of(&screen, 0), "FROZEN"));
	assert_non_null(strstr(row_of(&screen, 23), "filter: port 53"));
	assert_string_equal(row_of(&screen, 8), " asking for flows ...");
	screen.picture->list_us = 1;
	draw(&screen);
	assert_string_equal(row_of(&screen, 8), " no flow fits the filter");
	screen_destroy(&screen);
}

static void test_prompts(void **state)
{
	struct screen screen;

	(void)state;
	screen_create(&screen, 24, 80, 3);
	top_view_key(&screen.view, screen.picture, 'b');
	draw(&screen);
	assert_string_equal(row_of(&screen, 23), " block udp 10.0.0.1:1000 10.9.9.9:53? y/n");
	/* of a name that is too long the middle is left out, never the question */
	memset(screen.view.target_name, 'x', 100);
	screen.view.target_name[100] = '\0';
	draw(&screen);
	assert_int_equal(strlen(row_of(&screen, 23)), 75);
	assert_non_null(strstr(screen.text, "x~x"));
	assert_non_null(strstr(screen.text, "x? y/n"));
	top_view_key(&screen.view, screen.picture, 'y');
	top_view_key(&screen.view, screen.picture, '6');
	draw(&screen);
	assert_string_equal(row_of(&screen, 23), " for how many seconds? (Enter: without end) 6");
	top_view_key(&screen.view, screen.picture, TOP_KEY_ESCAPE);
	top_view_key(&screen.view, screen.picture, 'f');
	for (unsigned i = 0; i < 90; i++)
		top_view_key(&screen.view, screen.picture, 'a' + (int)(i % 26));
	draw(&screen);
	/* its end is seen */
	assert_int_equal(row_of(&screen, 23)[strlen(screen.text) - 1], 'a' + 89 % 26);
	screen_destroy(&screen);
}

static void test_pane_lines(void **state)
{
	static const struct {
		const char *text;
		unsigned cols;
		const char *lines[4];
		unsigned indent[4];
	} rows[] = {
		{" one two\n\n three", 20, {" one two", "", " three"}, {0, 0, 0}},
		{" one two three four", 12, {" one two", "three", "four"}, {0, 5, 5}},
		{"abcdefghij", 4, {"abcd", "e", "f", "g"}, {0, 4, 4, 4}},
		{"   x y", 5, {"   x", "y"}, {0, 7}},
	};

	(void)state;
	for (size_t i = 0; i < N_OF(rows); i++) {
		const char *text = rows[i].text;
		unsigned indent = 0;

		for (unsigned n = 0; n < 4 && *text != '\0'; n++) {
			unsigned at = indent;
			const char *next;
			size_t length = top_pane_line(text, rows[i].cols, &indent, &next);

			assert_non_null(rows[i].lines[n]);
			assert_int_equal(length, strlen(rows[i].lines[n]));
			assert_memory_equal(text, rows[i].lines[n], length);
			assert_int_equal(at, rows[i].indent[n]);
			assert_true(next > text);
			text = next;
		}
	}
}

/* A text that is longer than the screen scrolls, up to its end and no further. */
static void test_pane(void **state)
{
	struct screen screen;
	char text[2048] = "";

	(void)state;
	for (unsigned i = 0; i < 40; i++)
		sprintf(text + strlen(text), " line %u\n", i);
	screen_create(&screen, 24, 80, 3);
	screen.state.text = text;
	assert_int_equal(
		top_view_key(&screen.view, screen.picture, TOP_KEY_ENTER), TOP_ASK_EXPLAIN);
	draw(&screen);
	assert_non_null(strstr(row_of(&screen, 2), "explain udp 10.0.0.1:1000 10.9.9.9:53"));
	assert_string_equal(row_of(&screen, 3), " line 0");
	assert_string_equal(row_of(&screen, 22), " line 19");
	top_view_key(&screen.view, screen.picture, TOP_KEY_END);
	draw(&screen);
	assert_string_equal(row_of(&screen, 22), " line 39");
	top_view_key(&screen.view, screen.picture, TOP_KEY_DOWN);
	draw(&screen);
	assert_string_equal(row_of(&screen, 22), " line 39");
	top_view_key(&screen.view, screen.picture, TOP_KEY_PAGE_UP);
	draw(&screen);
	assert_string_equal(row_of(&screen, 3), " line 0");
	screen.state.text = NULL;
	draw(&screen);
	assert_string_equal(row_of(&screen, 3), " asking ...");
	top_view_key(&screen.view, screen.picture, 'q');
	top_view_key(&screen.view, screen.picture, '?');
	draw(&screen);
	assert_non_null(strstr(row_of(&screen, 2), "keys"));
	/* all of the help is there at the usual size */
	assert_true(screen.view.n_lines <= screen.view.pane);
	screen_destroy(&screen);
}

/* For a file: every port, worker and flow, and no cursor. */
static void test_plain(void **state)
{
	struct screen screen;

	(void)state;
	screen_create(&screen, 1, 1, 30);
	screen.view.plain = true;
	unsigned rows = top_draw_rows(screen.picture, 100);

	assert_int_equal(rows, 5 + 2 + 1 + 30);
	assert_int_equal(top_canvas_resize(&screen.canvas, rows, 100), 0);
	draw(&screen);
	assert_int_equal(row_of(&screen, 8)[0], ' ');
	assert_non_null(strstr(row_of(&screen, rows - 1), "10.0.0.30:1029"));
	screen_destroy(&screen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_fit),
		cmocka_unit_test(test_what_is_shown),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_80_columns),
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_every_size),
		cmocka_unit_test(test_too_small),
		cmocka_unit_test(test_conditions),
		cmocka_unit_test(test_prompts),
		cmocka_unit_test(test_pane_lines),
		cmocka_unit_test(test_pane),
		cmocka_unit_test(test_plain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
