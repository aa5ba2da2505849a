/* SPDX-License-Identifier: BSD-3-Clause */
/* What `millrace top` makes of an engine's answers, and of keys. */
#include "unit/top_scene.h"

#include "cli/top_filter.h"
#include "cli/top_json.h"
#include "cli/top_view.h"

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

static void test_rates(void **state)
{
	struct top_picture *picture = scene_picture(3);

	(void)state;
	assert_true(picture->pps == 1000);
	assert_true(picture->bps == 1000000);
	assert_true(picture->drops_pps == 12);
	assert_true(picture->new_flows_pps == 50);
	assert_int_equal(picture->n_flows, 1234);
	assert_int_equal(picture->n_in_nic, 7);
	assert_true(picture->offloads);
	assert_true(picture->nic_percent == 50);
	assert_int_equal(picture->n_ports, 2);
	assert_true(picture->ports[0].rx_pps == 1000 && picture->ports[0].missed_pps == 7);
	assert_true(picture->ports[1].tx_bps == 988000);
	assert_true(picture->ports[1].missed_pps == TOP_UNKNOWN);
	assert_true(picture->workers[0].pps == 1000 && picture->workers[0].busy == 50);
	/* what drops now comes first; what never did is left out */
	assert_int_equal(picture->n_drops, 2);
	assert_string_equal(
		json_string_value(json_object_get(picture->drops[0].line, "reason")), "blocked");
	assert_true(picture->drops[0].pps == 12 && picture->drops[1].pps == 0);
	assert_int_equal(picture->n_listed, 3);
	assert_true(picture->flows[0].pps == 300 && picture->flows[0].bps == 300000);
	assert_string_equal(picture->flows[0].name, "udp 10.0.0.1:1000 10.9.9.9:53");
	scene_free(picture);
}

/* Nothing is known of the first round, nor of one whose counters are below those before. */
static void test_rates_that_are_not_known(void **state)
{
	struct top_picture *picture = calloc(1, sizeof(*picture));

	(void)state;
	scene_counters(picture, 2);
	scene_flows(picture, 1, 2);
	assert_true(picture->pps == TOP_UNKNOWN && picture->workers[0].busy == TOP_UNKNOWN);
	/* but for what the engine measured; bits then are those of packets of the flow's average size */
	assert_true(picture->flows[0].pps == 100 && picture->flows[0].bps == 100000);
	assert_true(picture->nic_percent == TOP_UNKNOWN);
	top_picture_restart(picture);
	scene_counters(picture, 3);
	assert_true(picture->pps == TOP_UNKNOWN);
	picture->counters_us[TOP_WIRES] = picture->counters_us[TOP_PORTS] = 1;
	scene_counters(picture, 1);
	assert_true(picture->pps == TOP_UNKNOWN && picture->ports[0].rx_pps == TOP_UNKNOWN);
	top_picture_forget_flows(picture);
	assert_int_equal(picture->n_listed, 0);
	scene_free(picture);
}

/* Another flow of the same name is not the one before. */
static void test_a_flow_that_began_anew(void **state)
{
	static const char form[] =
		"[{'proto':47,'src':'2001:db8::1','sport':0,'dst':'2001:db8::2','dport':0,'wire':2,"
		"'zone':7,'packets':%u,'bytes':%u,'start':'%s'}]";
	struct top_picture *picture = calloc(1, sizeof(*picture));
	json_t *lines = scene_json(form, 100, 10000, "2026-11-20T08:00:00.000000Z");

	(void)state;
	top_picture_flows(picture, lines, 1000000);
	json_decref(lines);
	lines = scene_json(form, 200, 20000, "2026-11-20T08:00:01.000000Z");
	top_picture_flows(picture, lines, 2000000);
	json_decref(lines);
	assert_string_equal(picture->flows[0].name, "gre 2001:db8::1 2001:db8::2 wire 2 zone 7");
	assert_true(picture->flows[0].pps == TOP_UNKNOWN && picture->flows[0].bps == TOP_UNKNOWN);
	lines = scene_json(form, 250, 21000, "2026-11-20T08:00:01.000000Z");
	top_picture_flows(picture, lines, 2500000);
	json_decref(lines);
	assert_true(picture->flows[0].pps == 100 && picture->flows[0].bps == 16000);
	scene_free(picture);
}

/* Answers that no engine gives are shown as far as they go, and break nothing. */
static void test_answers_of_another_form(void **state)
{
	struct top_picture *picture = calloc(1, sizeof(*picture));
	json_t *odd =
		scene_json("[{}, {'wire':[],'port':{},'thread':1,'reason':true,'packets':'x'},"
			   "{'packets':-5,'flows':{'in_hw':-1},'offload':true}]");
	json_t *lines[TOP_N_COUNTERS] = {odd, odd, odd, odd, odd};
	json_t *ends[TOP_N_COUNTERS] = {NULL};

	(void)state;
	for (unsigned round = 1; round <= 2; round++) {
		top_picture_counters(picture, lines, ends, round * 1000000);
		top_picture_flows(picture, odd, round * 1000000);
	}
	assert_int_equal(picture->n_ports, 3);
	assert_int_equal(picture->n_drops, 0);
	assert_int_equal(picture->n_in_nic, 0);
	json_decref(odd);
	scene_free(picture);
}

static void test_json(void **state)
{
	struct top_picture *picture = scene_picture(2);
	json_t *greeting = scene_json("{'millrace':'0.1.0','protocol':1}");
	json_t *object = top_json(picture, greeting);
	const json_t *port = json_array_get(json_object_get(object, "ports"), 0);
	const json_t *flow = json_array_get(json_object_get(object, "list"), 1);

	(void)state;
	assert_int_equal(json_integer_value(json_object_get(object, "pps")), 1000);
	assert_true(json_real_value(json_object_get(object, "nic_percent")) == 50.0);
	assert_int_equal(json_integer_value(json_object_get(port, "rx_bps")), 1000000);
	assert_int_equal(json_integer_value(json_object_get(port, "rx_packets")), 2000);
	assert_int_equal(json_integer_value(json_object_get(flow, "rate_bps")), 100000);
	assert_int_equal(json_array_size(json_object_get(object, "drops")), 2);
	assert_null(json_object_get(object, "started"));
	/* the picture's own lines have no more than the engine said */
	assert_null(json_object_get(picture->ports[0].line, "rx_bps"));
	json_decref(object);
	json_decref(greeting);
	scene_free(picture);
}

/* ------------------------------ keys */

static enum top_action type(
	struct top_view *view, const struct top_picture *picture, const char *text)
{
	enum top_action action = TOP_STAY;

	for (; *text != '\0'; text++)
		action = top_view_key(view, picture, *text == '\n' ? TOP_KEY_ENTER : *text);
	return action;
}

static void test_cursor(void **state)
{
	struct top_picture *picture = scene_picture(30);
	struct top_view view;

	(void)state;
	top_view_init(&view);
	view.page = 10;
	top_view_key(&view, picture, TOP_KEY_UP);
	assert_int_equal(view.cursor, 0);
	top_view_key(&view, picture, TOP_KEY_PAGE_DOWN);
	assert_int_equal(view.cursor, 10);
	assert_int_equal(view.first, 1);
	type(&view, picture, "jjk");
	assert_int_equal(view.cursor, 11);
	assert_string_equal(view.name, picture->flows[11].name);
	type(&view, picture, "G");
	assert_int_equal(view.cursor, 29);
	assert_int_equal(view.first, 20);
	/* it stays with its flow, wherever that goes; the list is by rate: now the other way round */
	top_picture_sort(picture, TOP_BY_AGE);
	top_view_follow(&view, picture);
	assert_string_equal(picture->flows[view.cursor].name, "udp 10.0.0.30:1029 10.9.9.9:53");
	/* and where it has gone the cursor stays in the list */
	scene_flows(picture, 4, 3);
	top_view_follow(&view, picture);
	assert_int_equal(view.cursor, 3);
	assert_true(view.first <= 3);
	/* at the top it stays there */
	type(&view, picture, "g");
	assert_string_equal(view.name, "");
	top_picture_forget_flows(picture);
	top_view_follow(&view, picture);
	assert_int_equal(view.cursor, 0);
	type(&view, picture, "jG");
	assert_int_equal(view.cursor, 0);
	top_view_fini(&view);
	scene_free(picture);
}

static void test_orders(void **state)
{
	static const struct {
		const char *keys;
		enum top_order order;
		enum top_action action;
	} rows[] = {
		{"s", TOP_BY_PACKETS, TOP_SORT},
		{"s", TOP_BY_BYTES, TOP_SORT},
		{"s", TOP_BY_AGE, TOP_SORT},
		{"s", TOP_BY_RATE, TOP_SORT},
		{"r", TOP_BY_RATE, TOP_STAY},
		{"y", TOP_BY_BYTES, TOP_SORT},
		{"a", TOP_BY_AGE, TOP_SORT},
		{"p", TOP_BY_PACKETS, TOP_SORT},
		{"r", TOP_BY_RATE, TOP_SORT},
	};
	struct top_picture *picture = scene_picture(12);
	struct top_view view;

	(void)state;
	top_view_init(&view);
	for (size_t i = 0; i < N_OF(rows); i++) {
		assert_int_equal(type(&view, picture, rows[i].keys), rows[i].action);
		assert_int_equal(view.order, rows[i].order);
	}
	/* the oldest began at 07:50: numbers 0 and 10 */
	top_picture_sort(picture, TOP_BY_AGE);
	assert_true(strstr(picture->flows[0].name, "10.0.0.1:") ||
		    strstr(picture->flows[0].name, "10.0.0.11:"));
	top_picture_sort(picture, TOP_BY_BYTES);
	assert_non_null(strstr(picture->flows[0].name, "10.0.0.1:"));
	assert_non_null(strstr(picture->flows[11].name, "10.0.0.12:"));
	top_view_fini(&view);
	scene_free(picture);
}

static void test_block(void **state)
{
	struct top_picture *picture = scene_picture(3);
	struct top_view view;

	(void)state;
	top_view_init(&view);
	type(&view, picture, "jb");
	assert_int_equal(view.prompt, TOP_PROMPT_BLOCK);
	assert_string_equal(view.target_name, "udp 10.0.0.2:1001 10.9.9.9:53");
	/* whatever is no y is no */
	assert_int_equal(type(&view, picture, "x"), TOP_STAY);
	assert_int_equal(view.prompt, TOP_NO_PROMPT);
	assert_string_equal(view.message, "not blocked");
	/* the flow is the one that was asked about, even where another one has come under the cursor */
	type(&view, picture, "b");
	top_picture_sort(picture, TOP_BY_AGE);
	view.cursor = 0;
	assert_int_equal(type(&view, picture, "y\n"), TOP_DO_BLOCK);
	assert_int_equal(view.block_s, 0);
	assert_int_equal(json_integer_value(json_object_get(view.target, "sport")), 1001);
	assert_int_equal(type(&view, picture, "by60\n"), TOP_DO_BLOCK);
	assert_int_equal(view.block_s, 60);
	/* only digits, and no more than an engine takes */
	assert_int_equal(type(&view, picture, "by0-1x7\n"), TOP_DO_BLOCK);
	assert_int_equal(view.block_s, 17);
	assert_int_equal(type(&view, picture, "by0\n"), TOP_STAY);
	assert_true(view.is_bad);
	assert_int_equal(view.prompt, TOP_PROMPT_FOR);
	top_view_key(&view, picture, TOP_KEY_CLEAR);
	assert_int_equal(type(&view, picture, "1000000001\n"), TOP_STAY);
	top_view_key(&view, picture, TOP_KEY_BACKSPACE);
	assert_int_equal(type(&view, picture, "\n"), TOP_DO_BLOCK);
	assert_int_equal(view.block_s, 100000000);
	type(&view, picture, "by5");
	assert_int_equal(top_view_key(&view, picture, TOP_KEY_ESCAPE), TOP_STAY);
	assert_string_equal(view.message, "not blocked");
	assert_int_equal(type(&view, picture, "uy"), TOP_DO_UNBLOCK);
	/* from the explanation, too */
	assert_int_equal(type(&view, picture, "\n"), TOP_ASK_EXPLAIN);
	assert_int_equal(type(&view, picture, "by\n"), TOP_DO_BLOCK);
	assert_int_equal(view.mode, TOP_EXPLAIN);
	assert_int_equal(type(&view, picture, "q"), TOP_STAY);
	assert_int_equal(view.mode, TOP_LIST);
	/* without a flow there is nothing to block or explain */
	top_picture_forget_flows(picture);
	assert_int_equal(type(&view, picture, "b"), TOP_STAY);
	assert_int_equal(view.prompt, TOP_NO_PROMPT);
	assert_int_equal(type(&view, picture, "e"), TOP_STAY);
	assert_int_equal(type(&view, picture, "q"), TOP_QUIT);
	top_view_fini(&view);
	scene_free(picture);
}

static void test_filter_and_freeze(void **state)
{
	struct top_picture *picture = scene_picture(1);
	struct top_view view;

	(void)state;
	top_view_init(&view);
	/* keys of the list are letters while something is typed */
	assert_int_equal(type(&view, picture, "fqp udq\n"), TOP_TAKE_FILTER);
	assert_string_equal(view.input, "qp udq");
	top_view_filter(&view);
	assert_string_equal(view.filter, "qp udq");
	type(&view, picture, "/");
	assert_string_equal(view.input, "qp udq");
	top_view_key(&view, picture, TOP_KEY_ESCAPE);
	assert_string_equal(view.filter, "qp udq");
	type(&view, picture, "f");
	for (unsigned i = 0; i < 2 * TOP_INPUT_MAX; i++)
		type(&view, picture, "a");
	assert_int_equal(strlen(view.input), TOP_INPUT_MAX - 1);
	top_view_key(&view, picture, 0x9b);
	top_view_key(&view, picture, TOP_KEY_OTHER);
	assert_int_equal(strlen(view.input), TOP_INPUT_MAX - 1);
	top_view_key(&view, picture, TOP_KEY_CLEAR);
	top_view_key(&view, picture, TOP_KEY_BACKSPACE);
	assert_int_equal(type(&view, picture, "\n"), TOP_TAKE_FILTER);
	assert_int_equal(type(&view, picture, " "), TOP_FREEZE);
	assert_true(view.frozen);
	assert_int_equal(type(&view, picture, " "), TOP_FREEZE);
	assert_false(view.frozen);
	assert_int_equal(top_view_key(&view, picture, 12), TOP_REPAINT);
	type(&view, picture, "?");
	assert_int_equal(view.mode, TOP_HELP);
	/* nothing is sorted or blocked there */
	assert_int_equal(type(&view, picture, "sb"), TOP_STAY);
	assert_int_equal(view.prompt, TOP_NO_PROMPT);
	assert_int_equal(view.order, TOP_BY_RATE);
	top_view_key(&view, picture, TOP_KEY_ESCAPE);
	assert_int_equal(view.mode, TOP_LIST);
	top_view_fini(&view);
	scene_free(picture);
}

static void test_filters(void **state)
{
	static const struct {
		const char *text, *with; /* or what is wrong */
	} rows[] = {
		{"", "{}"},
		{"  proto udp  port 53 ", "{'proto':'udp','port':53}"},
		{"--proto=tcp --blocked", "{'proto':'tcp','blocked':true}"},
		{"tcp 10.0.0.0/8 state syn-sent",
			"{'proto':'tcp','address':'10.0.0.0/8','state':'syn-sent'}"},
		{"2001:db8::1 wire 1 zone 2 worker 0 offload in_hw",
			"{'address':'2001:db8::1','wire':1,'zone':2,'worker':0,'offload':'in_hw'}"},
		{"proto tpc", "did you mean tcp?"},
		{"prot tcp", "prot"},
		{"53", "filter: 53: one word too many"},
		{"port", "filter: --port needs a value"},
		{"port 70000", "from 0 to 65,535 is needed"},
		{"--json", "no such option"},
		{"--top 5", "no such option"},
		{"-h", "help flow list"},
		{"a b c d e f g h i j k l m n o p q r s t u v w x y z a b c d e f g h i j k l m n "
		 "o",
			"the filter is too long"},
	};

	(void)state;
	for (size_t i = 0; i < N_OF(rows); i++) {
		struct error error = {.text = ""};
		json_t *with = top_filter_parse(rows[i].text, &error);

		if (rows[i].with[0] != '{') {
			assert_null(with);
			assert_non_null(strstr(error.text, rows[i].with));
			continue;
		}
		json_t *wanted = scene_json("%s", rows[i].with);

		assert_true(json_equal(with, wanted));
		json_decref(wanted);
		json_decref(with);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_rates_that_are_not_known),
		cmocka_unit_test(test_a_flow_that_began_anew),
		cmocka_unit_test(test_answers_of_another_form),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_cursor),
		cmocka_unit_test(test_orders),
		cmocka_unit_test(test_block),
		cmocka_unit_test(test_filter_and_freeze),
		cmocka_unit_test(test_filters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
