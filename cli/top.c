/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop of `millrace top`: asks when it is time, takes what comes and what is typed, and draws. */
#include "cli/top.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "cli/args.h"
#include "cli/field.h"
#include "cli/help.h"
#include "cli/top_ask.h"
#include "cli/top_draw.h"
#include "cli/top_filter.h"
#include "cli/top_json.h"
#include "cli/top_terminal.h"
#include "cli/view.h"
#include "cli/where.h"

#define EXIT_MISUSED 2

#define US_PER_MS INT64_C(1000)
#define US_PER_S INT64_C(1000000)
/* Where the engine has gone it is looked for so often. */
#define RETRY_US US_PER_S
/* An answer that takes longer is told to be late. */
#define SILENT_US (3 * US_PER_S)
/* How long the engine measures the rates of flows. */
#define OVER_MIN_MS 100
#define OVER_MAX_MS 1000
#define DEFAULT_INTERVAL_MS 1000
/* Flows in the list: of a screen, and of one picture. */
#define LIST_LIVE 200
#define LIST_ONCE 20
#define ONCE_COLS 100
#define N_ROUNDS 2
/*
 * To list flows an engine looks at each of its table, in the threads of the packet path: with a million of them that takes
 * a while, and so many times as long nothing is asked.
 */
#define LIST_REST 4

enum { WAIT_KEYS, WAIT_COUNTERS, WAIT_LIST, WAIT_ACT, N_WAITS };

struct top {
	struct cli_args args;
	json_t *filter; /* of the request flow list */
	unsigned interval_ms, over_ms, n_list;
	struct top_ask counters, list, act;
	enum top_action acting; /* what `act` is asked; TOP_STAY: nothing */
	/* when to ask next, and since when is waited, of the monotonic clock */
	int64_t counters_due_us, list_due_us, act_due_us;
	int64_t asked_us, list_asked_us;
	int64_t shown_us; /* Unix time of the picture */
	struct top_picture picture;
	struct top_view view;
	struct top_canvas canvas;
	char *explanation;	 /* NULL: none has come */
	bool is_lost;		 /* there is no engine: */
	struct error lost;	 /* why */
	struct error trouble[2]; /* what of the counters, and of the flows, the engine refused */
};

static volatile sig_atomic_t caught;

static void catch_signal(int number)
{
	caught = number;
}

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * US_PER_S + now.tv_nsec / 1000;
}

static int64_t unix_now_us(void)
{
	struct timeval now;

	gettimeofday(&now, NULL);
	return (int64_t)now.tv_sec * US_PER_S + now.tv_usec;
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int complain(const struct error *error, int code)
{
	fprintf(stderr, "millrace: %s\n", error->text);
	return code;
}

/* ------------------------------ requests */

static enum top_ask_state begin_counters(struct top *top, int64_t now)
{
	struct top_request requests[TOP_N_COUNTERS];
	json_t *none = json_object();

	for (unsigned i = 0; i < TOP_N_COUNTERS; i++)
		requests[i] = (struct top_request){top_counter_asks[i], none};
	top->asked_us = now;
	top->counters_due_us = now + top->interval_ms * US_PER_MS;
	enum top_ask_state state =
		top_ask_begin(&top->counters, requests, TOP_N_COUNTERS, &top->lost);

	json_decref(none);
	return state;
}

static enum top_ask_state begin_list(struct top *top, int64_t now, struct error *error)
{
	json_t *with = json_deep_copy(top->filter);
	const struct top_request request = {"flow list", with};

	json_object_set_new(with, "top", json_integer(top->n_list));
	json_object_set_new(with, "by", json_string(top_order_names[top->view.order]));
	if (top->view.order == TOP_BY_RATE)
		json_object_set_new(with, "over_ms", json_integer(top->over_ms));
	top->list_asked_us = now;
	top->list_due_us = now + top->interval_ms * US_PER_MS;
	enum top_ask_state state = top_ask_begin(&top->list, &request, 1, error);

	json_decref(with);
	return state;
}

/* The keys that name the flow. */
static json_t *flow_keys(const json_t *line)
{
	static const char *const keys[] = {"src", "sport", "dst", "dport", "wire", "zone"};
	char text[FIELD_MAX], ask[CLI_PROTO_ASK_MAX];
	json_t *with = json_object();
	struct cli_proto proto;

	for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (field_has(line, keys[i]))
			json_object_set(with, keys[i], json_object_get(line, keys[i]));
	if (cli_proto_parse(&proto, field_proto(line, text)))
		json_object_set_new(with, "proto", json_string(cli_proto_ask(ask, &proto)));
	return with;
}

static void begin_act(struct top *top, enum top_action action, int64_t now)
{
	json_t *with = flow_keys(top->view.target);
	struct top_request request = {"flow explain", with};
	struct error error;

	if (action == TOP_DO_BLOCK) {
		request.ask = "flow block";
		if (top->view.block_s > 0)
			json_object_set_new(with, "for", json_integer(top->view.block_s));
	} else if (action == TOP_DO_UNBLOCK) {
		request.ask = "flow unblock";
	}
	top->acting = action;
	top->act_due_us = now + top->interval_ms * US_PER_MS;
	if (top_ask_begin(&top->act, &request, 1, &error) == TOP_ASK_LOST) {
		top->acting = TOP_STAY;
		if (action != TOP_ASK_EXPLAIN)
			top_view_say(&top->view, true, error.text);
	}
	json_decref(with);
}

/* ------------------------------ answers */

static void take_counters(struct top *top, int64_t now)
{
	enum top_ask_state before = top->counters.state;
	struct error error;
	enum top_ask_state state = top_ask_turn(&top->counters, &error);

	if (state == before)
		return;
	if (state == TOP_ASK_LOST) {
		top->is_lost = true;
		top->lost = error;
		top->counters_due_us = now + RETRY_US;
		top_picture_restart(&top->picture);
		return;
	}
	top->is_lost = false;
	top->trouble[0].text[0] = '\0';
	if (state == TOP_ASK_REFUSED)
		top->trouble[0] = error;
	if (state != TOP_ASK_DONE || top->view.frozen)
		return;
	/* rates need two answers: the second one is not waited for longer than need be */
	if (top->picture.counters_us[TOP_WIRES] == 0)
		top->counters_due_us = earlier(top->counters_due_us, now + US_PER_S);
	top->shown_us = unix_now_us();
	top_picture_counters(&top->picture, top->counters.lines, top->counters.end, now);
}

/* The next list is asked for when the engine has had its rest. */
static void rest_from_list(struct top *top, int64_t now)
{
	int64_t took = now - top->list_asked_us;

	if (top->view.order == TOP_BY_RATE)
		took -= top->over_ms * US_PER_MS;
	if (took > 0 && now + LIST_REST * took > top->list_due_us)
		top->list_due_us = now + LIST_REST * took;
}

static void take_list(struct top *top, int64_t now)
{
	enum top_ask_state before = top->list.state;
	struct error error;
	enum top_ask_state state = top_ask_turn(&top->list, &error);

	if (state == before)
		return;
	top->trouble[1].text[0] = '\0';
	/* that the engine has gone is told by the counters */
	if (state == TOP_ASK_LOST)
		top->list_due_us = now + RETRY_US;
	else if (state == TOP_ASK_REFUSED)
		top->trouble[1] = error;
	if (state != TOP_ASK_DONE || top->view.frozen)
		return;
	rest_from_list(top, now);
	top->shown_us = unix_now_us();
	top_picture_flows(&top->picture, top->list.lines[0], now);
	top_view_follow(&top->view, &top->picture);
}

/* Returns the text that the view of a verb prints for a line. The caller frees it; NULL: no memory. */
static char *text_of(const struct cli_view *view, const json_t *line)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	struct cli_show show = {.out = out, .now_us = unix_now_us()};

	if (!out)
		return NULL;
	view->line(&show, line);
	fclose(out);
	return text;
}

static void take_explanation(struct top *top, enum top_ask_state state, const struct error *error)
{
	char *text;

	if (state == TOP_ASK_DONE) {
		print_wrap_at(top->canvas.cols - 1);
		text = text_of(&cli_flow_explain, json_array_get(top->act.lines[0], 0));
	} else {
		size_t size = sizeof(error->text) + 3;

		text = malloc(size);
		if (text)
			snprintf(text, size, " %s\n", error->text);
	}
	free(top->explanation);
	top->explanation = text;
}

static void take_act(struct top *top, int64_t now)
{
	enum top_action acting = top->acting;
	struct error error;
	enum top_ask_state state = top_ask_turn(&top->act, &error);

	if (acting == TOP_STAY || state == TOP_ASK_WAITS)
		return;
	top->acting = TOP_STAY;
	if (acting == TOP_ASK_EXPLAIN) {
		take_explanation(top, state, &error);
		return;
	}
	top->list_due_us = top->act_due_us = now;
	if (state != TOP_ASK_DONE) {
		top_view_say(&top->view, true, error.text);
		return;
	}
	char *text = text_of(acting == TOP_DO_BLOCK ? &cli_flow_block : &cli_flow_unblock,
		json_array_get(top->act.lines[0], 0));

	if (text)
		text[strcspn(text, "\n")] = '\0';
	top_view_say(&top->view, false, text ? text : "done");
	free(text);
}

/* ------------------------------ the loop */

static void ask_what_is_due(struct top *top, int64_t now)
{
	struct error error;

	if (top->view.mode == TOP_EXPLAIN && top->acting == TOP_STAY && now >= top->act_due_us)
		begin_act(top, TOP_ASK_EXPLAIN, now);
	if (top->view.frozen)
		return;
	if (now >= top->counters_due_us && top->counters.state != TOP_ASK_WAITS &&
		begin_counters(top, now) == TOP_ASK_LOST) {
		top->is_lost = true;
		top->counters_due_us = now + RETRY_US;
		top_picture_restart(&top->picture);
	}
	if (now >= top->list_due_us && top->list.state != TOP_ASK_WAITS &&
		begin_list(top, now, &error) == TOP_ASK_LOST)
		top->list_due_us = now + RETRY_US;
}

static void take_answers(struct top *top)
{
	int64_t now = now_us();

	take_counters(top, now);
	take_list(top, now);
	take_act(top, now);
}

/* When something is to be asked, at the latest in a second: what is late is told by the second. */
static int64_t wake_us(const struct top *top, int64_t now)
{
	int64_t wake = now + US_PER_S;

	if (top_ask_has_more(&top->counters) || top_ask_has_more(&top->list) ||
		top_ask_has_more(&top->act))
		return now;
	if (top->view.mode == TOP_EXPLAIN && top->acting == TOP_STAY)
		wake = earlier(wake, top->act_due_us);
	if (!top->view.frozen && top->counters.state != TOP_ASK_WAITS)
		wake = earlier(wake, top->counters_due_us);
	if (!top->view.frozen && top->list.state != TOP_ASK_WAITS)
		wake = earlier(wake, top->list_due_us);
	return wake > now ? wake : now;
}

/* Waits for an answer, a key (where `keys` is a descriptor) or the time. False: the terminal has gone. */
static bool wait_for_more(const struct top *top, int keys, const sigset_t *signals)
{
	struct pollfd fds[N_WAITS] = {
		[WAIT_KEYS] = {.fd = keys, .events = POLLIN},
		[WAIT_COUNTERS] = {.fd = top_ask_fd(&top->counters), .events = POLLIN},
		[WAIT_LIST] = {.fd = top_ask_fd(&top->list), .events = POLLIN},
		[WAIT_ACT] = {.fd = top_ask_fd(&top->act), .events = POLLIN},
	};
	int64_t now = now_us(), left = wake_us(top, now) - now;
	struct timespec time = {
		.tv_sec = left / US_PER_S, .tv_nsec = (long)(left % US_PER_S) * 1000};

	if (ppoll(fds, N_WAITS, &time, signals) <= 0)
		return true;
	return !(fds[WAIT_KEYS].revents & (POLLHUP | POLLERR | POLLNVAL));
}

static void draw(struct top *top)
{
	int64_t waited = now_us() - top->asked_us;
	bool late = top->counters.state == TOP_ASK_WAITS && waited >= SILENT_US;
	const struct error *trouble = &top->trouble[top->trouble[0].text[0] == '\0'];
	struct top_state state = {
		.greeting = top->counters.greeting,
		.now_us = top->shown_us,
		.interval_ms = top->interval_ms,
		.silent_s = late ? (unsigned)(waited / US_PER_S) : 0,
		.lost = top->is_lost ? top->lost.text : NULL,
		.trouble = trouble->text[0] != '\0' ? trouble->text : NULL,
		.text = top->explanation,
	};
	unsigned rows, cols;

	top_terminal_size(&rows, &cols);
	/* without memory what there is of the picture is drawn */
	(void)top_canvas_resize(&top->canvas, rows, cols);
	top_draw(&top->canvas, &top->picture, &top->view, &state);
	top_terminal_show(&top->canvas);
}

static void take_filter(struct top *top)
{
	struct error error;
	json_t *filter = top_filter_parse(top->view.input, &error);

	if (!filter) {
		top_view_say(&top->view, true, error.text);
		return;
	}
	json_decref(top->filter);
	top->filter = filter;
	top_view_filter(&top->view);
	top_picture_forget_flows(&top->picture);
	top->view.frozen = false;
}

/* Asks for a new list, because the order or the filter has changed. */
static void list_anew(struct top *top, int64_t now)
{
	top_ask_close(&top->list);
	top->list_due_us = now;
}

/* False: that was enough. */
static bool heed_key(struct top *top, int key)
{
	enum top_action action = top_view_key(&top->view, &top->picture, key);
	int64_t now = now_us();

	switch (action) {
	case TOP_STAY:
		break;
	case TOP_QUIT:
		return false;
	case TOP_TAKE_FILTER:
		take_filter(top);
		list_anew(top, now);
		break;
	case TOP_SORT:
		top_picture_sort(&top->picture, top->view.order);
		list_anew(top, now);
		break;
	case TOP_FREEZE:
		top->counters_due_us = top->list_due_us = top->act_due_us = now;
		break;
	case TOP_ASK_EXPLAIN:
		free(top->explanation);
		top->explanation = NULL;
		/* the answer that is on its way is of another flow; what was blocked is still to be told */
		if (top->acting == TOP_ASK_EXPLAIN)
			top->acting = TOP_STAY;
		top->act_due_us = now;
		break;
	case TOP_DO_BLOCK:
	case TOP_DO_UNBLOCK:
		begin_act(top, action, now);
		break;
	case TOP_REPAINT:
		top_terminal_repaint();
		break;
	}
	return true;
}

/* Until somebody has seen enough. Returns the signal that ended it, or 0. */
static int run_screen(struct top *top, const sigset_t *signals)
{
	int key;

	for (;;) {
		ask_what_is_due(top, now_us());
		draw(top);
		if (!wait_for_more(top, STDIN_FILENO, signals))
			return SIGHUP;
		if (caught)
			return caught;
		take_answers(top);
		while ((key = top_terminal_key()) >= 0)
			if (!heed_key(top, key))
				return 0;
	}
}

static int live(struct top *top)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH};
	struct sigaction action = {.sa_handler = catch_signal};
	sigset_t blocked, before;
	bool utf8 = top_terminal_utf8();
	struct error error;

	sigemptyset(&blocked);
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		sigaddset(&blocked, numbers[i]);
		/* the last one is ncurses' own */
		if (numbers[i] != SIGWINCH)
			sigaction(numbers[i], &action, NULL);
	}
	if (top_terminal_open(&error) < 0)
		return complain(&error, EXIT_FAILURE);
	if (top_canvas_init(&top->canvas, 1, 1, utf8) < 0) {
		top_terminal_close();
		error_set(&error, -ENOMEM, "top: no memory");
		return complain(&error, EXIT_FAILURE);
	}
	sigprocmask(SIG_BLOCK, &blocked, &before);
	int number = run_screen(top, &before);

	top_terminal_close();
	sigprocmask(SIG_SETMASK, &before, NULL);
	/* Ctrl-C is one way to have seen enough */
	if (number == 0 || number == SIGINT)
		return EXIT_SUCCESS;
	signal(number, SIG_DFL);
	raise(number);
	return EXIT_FAILURE;
}

/* ------------------------------ one picture */

/* All of it was asked and has come: 0, or a negative errno with a line. */
static int take_round(struct top *top, struct error *error)
{
	sigset_t signals;
	int64_t begun = now_us();

	sigprocmask(SIG_BLOCK, NULL, &signals);
	if (begin_counters(top, begun) == TOP_ASK_LOST) {
		*error = top->lost;
		return -EIO;
	}
	if (begin_list(top, begun, error) == TOP_ASK_LOST)
		return -EIO;
	while (top->counters.state == TOP_ASK_WAITS || top->list.state == TOP_ASK_WAITS) {
		wait_for_more(top, -1, &signals);
		take_answers(top);
	}
	if (top->is_lost || top->list.state == TOP_ASK_LOST) {
		*error = top->lost;
		return -EIO;
	}
	for (unsigned i = 0; i < 2; i++) {
		if (top->trouble[i].text[0] != '\0') {
			*error = top->trouble[i];
			return -EIO;
		}
	}
	return 0;
}

static void print_text(struct top *top)
{
	struct top_state state = {
		.greeting = top->counters.greeting,
		.now_us = top->shown_us,
		.interval_ms = top->interval_ms,
	};
	char line[ONCE_COLS * 4 + 1];

	top->view.plain = true;
	if (top_canvas_init(&top->canvas, top_draw_rows(&top->picture, ONCE_COLS), ONCE_COLS,
		    top_terminal_utf8()) < 0)
		return;
	top_draw(&top->canvas, &top->picture, &top->view, &state);
	for (unsigned row = 0; row < top->canvas.rows; row++)
		puts(top_canvas_text(&top->canvas, row, line, sizeof(line)));
}

static void print_json(const struct top *top)
{
	json_t *object = top_json(&top->picture, top->counters.greeting);

	json_dumpf(object, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(object);
}

/* Two rounds: rates are what has changed between them. */
static int once(struct top *top)
{
	int64_t begun = now_us();
	struct error error;

	top->over_ms =
		top->over_ms / N_ROUNDS > OVER_MIN_MS ? top->over_ms / N_ROUNDS : OVER_MIN_MS;
	for (unsigned round = 0; round < N_ROUNDS; round++) {
		int64_t left = begun + round * top->over_ms * US_PER_MS - now_us();
		struct timespec time = {.tv_sec = 0, .tv_nsec = (long)left * 1000};

		if (left > 0)
			nanosleep(&time, NULL);
		if (take_round(top, &error) < 0)
			return complain(&error, EXIT_FAILURE);
	}
	if (cli_args_given(&top->args, CLI_JSON))
		print_json(top);
	else
		print_text(top);
	return EXIT_SUCCESS;
}

/* ------------------------------ begin and end */

/* Takes an option out of the filter: it is meant for top, and flow list does not know it. */
static unsigned take_number(json_t *with, const char *key, unsigned otherwise)
{
	const json_t *value = json_object_get(with, key);
	unsigned number = value ? (unsigned)json_integer_value(value) : otherwise;

	json_object_del(with, key);
	return number;
}

static void take_order(struct top *top)
{
	const char *by = json_string_value(json_object_get(top->filter, "by"));

	for (unsigned i = 0; by && i < TOP_N_ORDERS; i++)
		if (strcmp(by, top_order_names[i]) == 0)
			top->view.order = (enum top_order)i;
	json_object_del(top->filter, "by");
}

/* The filter of the command line, as it would be typed. */
static void write_filter(struct top *top)
{
	char *text = top->view.filter, value[FIELD_MAX];
	size_t size = sizeof(top->view.filter), length = 0;

	for (unsigned id = 0; id < CLI_N_OPTIONS && length < size; id++) {
		const struct cli_option *option = &cli_options[id];

		if (!(cli_filter_verb.options & CLI_BIT(id)) ||
			!json_object_get(top->filter, option->key))
			continue;
		length += (size_t)snprintf(text + length, size - length, "%s%s%s%s",
			length > 0 ? " " : "", option->name, option->value ? " " : "",
			option->value ? field_text(top->filter, option->key, value) : "");
	}
}

static int run(struct top *top)
{
	bool is_live = top_terminal_there() && !cli_args_given(&top->args, CLI_ONCE) &&
		       !cli_args_given(&top->args, CLI_JSON);
	struct cli_client client;
	struct error error;

	top->filter = json_incref(top->args.with);
	top->interval_ms = take_number(top->filter, "interval_ms", DEFAULT_INTERVAL_MS);
	top->n_list = take_number(top->filter, "top", is_live ? LIST_LIVE : LIST_ONCE);
	top->over_ms = top->interval_ms < OVER_MAX_MS ? top->interval_ms : OVER_MAX_MS;
	top_view_init(&top->view);
	take_order(top);
	write_filter(top);
	top_ask_init(&top->counters, top->args.socket);
	top_ask_init(&top->list, top->args.socket);
	top_ask_init(&top->act, top->args.socket);
	if (!is_live)
		return once(top);
	/* a wrong path is told where it was typed, not on a screen that waits for an engine */
	int ret = cli_client_open(&client, top->args.socket, &error);

	cli_client_close(&client);
	return ret < 0 ? complain(&error, EXIT_FAILURE) : live(top);
}

static void end(struct top *top)
{
	top_ask_fini(&top->counters);
	top_ask_fini(&top->list);
	top_ask_fini(&top->act);
	top_picture_fini(&top->picture);
	top_view_fini(&top->view);
	top_canvas_fini(&top->canvas);
	json_decref(top->filter);
	cli_args_fini(&top->args);
	free(top->explanation);
	free(top);
}

int top_main(int argc, char **argv)
{
	struct top *top = calloc(1, sizeof(*top));
	struct error error = {.text = "top: no memory"};
	int code;

	if (!top)
		return complain(&error, EXIT_FAILURE);
	int ret = cli_args_parse(&top->args, &cli_top_verb, argc, argv, &error);

	if (ret == CLI_ARGS_HELP) {
		cli_help_verb(stdout, &cli_top_verb);
		code = cli_finish_stdout(EXIT_SUCCESS);
	} else if (ret < 0) {
		code = complain(&error, ret == -EINVAL ? EXIT_MISUSED : EXIT_FAILURE);
	} else {
		code = cli_finish_stdout(run(top));
	}
	end(top);
	return code;
}
