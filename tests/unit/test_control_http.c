/* SPDX-License-Identifier: BSD-3-Clause */

/* The HTTP server: what it answers, to whom, and what becomes of clients that are slow, many, or not welcome. */

#include "control/http.h"
#include "control/http_address.h"
#include "unit/control_scene.h"

#define ANSWER_MAX (2u << 20)
#define MANY 20000
/* What Prometheus sends. */
static const char prometheus_accept[] =
	"application/openmetrics-text;version=1.0.0,application/openmetrics-text;"
	"version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";

static void test_addresses(void **state)
{
	static const struct {
		const char *text, *means;
		bool local;
	} good[] = {
		{"127.0.0.1:9180", "http://127.0.0.1:9180", true},
		{"9180", "http://127.0.0.1:9180", true},
		{"127.9.9.9:0", "http://127.9.9.9:0", true},
		{"0.0.0.0:65535", "http://0.0.0.0:65535", false},
		{"192.0.2.1:80", "http://192.0.2.1:80", false},
		{"[::1]:9180", "http://[::1]:9180", true},
		{"[2001:DB8::1]:1", "http://[2001:db8::1]:1", false},
		{"/run/m.sock", "/run/m.sock", true},
		{"./m", "./m", true},
	};
	static const char *const bad[] = {"", ":", ":9180", "localhost:9180", "127.0.0.1",
		"127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:1x", "127.0.0.1:-1", "::1:9180",
		"[::1]", "[::1]9180", "[127.0.0.1]:1", "[]:1", "1.2.3:4", "99999", "1 2",
		"[1111:2222:3333:4444:5555:6666:7777:8888:9999:0000]:1"};
	char text[HTTP_ADDRESS_TEXT], path[200];
	struct http_address address;
	struct error error;

	(void)state;
	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(http_address_parse(&address, good[i].text, &error), 0);
		assert_string_equal(http_address_text(&address, text), good[i].means);
		assert_int_equal(http_address_is_local(&address), good[i].local);
	}
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (http_address_parse(&address, bad[i], &error) != -EINVAL)
			fail_msg("\"%s\" is taken", bad[i]);
		assert_non_null(strstr(error.text, "ADDRESS:PORT is needed"));
	}
	memset(path, '/', sizeof(path));
	path[107] = '\0';
	assert_int_equal(http_address_parse(&address, path, &error), 0);
	path[107] = '/';
	path[108] = '\0';
	assert_int_equal(http_address_parse(&address, path, &error), -EINVAL);
	assert_non_null(strstr(error.text, "107 bytes"));
}

static void test_hosts(void **state)
{
	static const char *const good[] = {"localhost", "LocalHost:9180", "127.0.0.1",
		"127.0.0.1:9180", "192.0.2.7:1", "[::1]", "[::1]:9180", "[2001:db8::1]:80"};
	static const char *const bad[] = {"", "evil.example", "evil.example:9180",
		"localhost.evil.example", "127.0.0.1.evil.example", "localhost:", "localhost:x",
		"localhost:1:2", "[::1", "[::1]x", "[::1]:", "::1", "[evil]", "1.2.3", "localhost ",
		"localhost/", "[1111:2222:3333:4444:5555:6666:7777:8888:9999:0000]",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};

	(void)state;
	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(http_host_is_allowed(good[i]));
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (http_host_is_allowed(bad[i]))
			fail_msg("\"%s\" is allowed", bad[i]);
}

static void test_accept(void **state)
{
	static const char *const open[] = {"application/openmetrics-text",
		"application/openmetrics-text;version=1.0.0",
		"Application/OpenMetrics-Text; version=1.0.0", prometheus_accept,
		"text/plain;q=0.5, application/openmetrics-text;q=0.5",
		"application/openmetrics-text;q=0.001"};
	static const char *const plain[] = {"", "*/*", "text/plain", "text/html,*/*;q=0.8",
		"application/openmetrics-text;q=0", "application/openmetrics-text;q=0.000",
		"application/openmetrics-text;version=0.0.1", "application/openmetrics-textual",
		"application/openmetrics-text;q=0.4,text/plain;q=0.45", ",,;;q=", ";q=1"};

	(void)state;
	assert_false(http_wants_openmetrics(NULL));
	for (unsigned i = 0; i < sizeof(open) / sizeof(open[0]); i++)
		if (!http_wants_openmetrics(open[i]))
			fail_msg("\"%s\" is not OpenMetrics", open[i]);
	for (unsigned i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (http_wants_openmetrics(plain[i]))
			fail_msg("\"%s\" is OpenMetrics", plain[i]);
}

/* A scene whose server answers by HTTP too, at a UNIX socket. */

static void http_path(const struct scene *scene, char path[108])
{
	snprintf(path, 108, "%s/http", scene->directory);
}

static void tell_some(void *context, struct control_records *records)
{
	(void)context;
	*records = (struct control_records){
		.made = 10, .written = 7, .overflowed = 1, .lost_write = 2};
}

static void open_http(struct scene *scene)
{
	char path[108];
	const struct control_http_config config = {.listen = path, .records = tell_some};
	struct error error;

	http_path(scene, path);
	if (control_http(scene->control, &config, &error) < 0)
		fail_msg("%s", error.text);
	assert_non_null(strstr(scene->note, path));
}

static int http_setup(void **state)
{
	int ret = scene_setup(state);

	open_http(*state);
	return ret;
}

static struct talker *visitor(struct scene *scene)
{
	struct talker *talker = calloc(1, sizeof(*talker));
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	assert_non_null(talker);
	http_path(scene, address.sun_path);
	talker->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(talker->fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return talker;
}

/* The whole answer, up to the end of the connection; to be freed. */
static char *visitor_read(struct scene *scene, struct talker *talker)
{
	char *answer = malloc(ANSWER_MAX);
	size_t n = 0;

	assert_non_null(answer);
	for (unsigned i = 0; i < SCENE_STEPS && !talker->eof; i++) {
		scene_step(scene);
		talker_read(talker);
		assert_true(n + talker->n < ANSWER_MAX);
		memcpy(answer + n, talker->data, talker->n);
		n += talker->n;
		talker->n = 0;
	}
	assert_true(talker->eof);
	answer[n] = '\0';
	return answer;
}

/* A request of its own connection, with these headers beside the usual ones. */
static char *fetch_with(
	struct scene *scene, const char *method, const char *path, const char *headers)
{
	struct talker *talker = visitor(scene);
	char request[1024];

	snprintf(request, sizeof(request), "%s %s HTTP/1.1\r\nConnection: close\r\n%s\r\n", method,
		path, headers);
	talker_say(talker, request, strlen(request));
	char *answer = visitor_read(scene, talker);

	talker_destroy(talker);
	return answer;
}

static char *fetch(struct scene *scene, const char *path)
{
	return fetch_with(scene, "GET", path, "Host: localhost\r\n");
}

static void expect_status(const char *answer, unsigned status)
{
	unsigned said = 0;

	if (sscanf(answer, "HTTP/1.1 %u ", &said) != 1 || said != status)
		fail_msg("%u is not the status of %.200s", status, answer);
}

static const char *body_of(const char *answer)
{
	const char *body = strstr(answer, "\r\n\r\n");

	assert_non_null(body);
	return body + 4;
}

static void expect_fetch(struct scene *scene, const char *method, const char *path,
	const char *headers, unsigned status)
{
	char *answer = fetch_with(scene, method, path, headers);

	expect_status(answer, status);
	free(answer);
}

static void test_formats(void **state)
{
	struct scene *scene = *state;
	char *answer = fetch(scene, "/metrics");

	expect_status(answer, 200);
	assert_non_null(
		strstr(answer, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
	assert_non_null(strstr(answer, "Cache-Control: no-store\r\n"));
	assert_null(strstr(answer, "# EOF"));
	assert_non_null(strstr(answer, "\nmillrace_records_lost_total{reason=\"write\"} 2\n"));
	free(answer);
	answer = fetch_with(scene, "GET", "/metrics",
		"Host: localhost\r\nAccept: application/openmetrics-text;version=1.0.0\r\n");
	expect_status(answer, 200);
	assert_non_null(strstr(answer,
		"Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"));
	assert_string_equal(answer + strlen(answer) - 7, "\n# EOF\n");
	free(answer);
	answer = fetch_with(scene, "HEAD", "/metrics", "Host: localhost\r\n");
	expect_status(answer, 200);
	assert_string_equal(body_of(answer), "");
	free(answer);
}

/* Many who ask at once are told what one was told a moment ago. */
static void test_fresh(void **state)
{
	static const char line[] = "\nmillrace_wire_received_packets_total{wire=\"1\"} ";
	struct scene *scene = *state;
	uint64_t told[3];

	for (unsigned i = 0; i < 3; i++) {
		scene->plane.snapshot.wires[1].received = 100 + i;
		scene_now_us += i < 2 ? HTTP_FRESH_US / 2 : HTTP_FRESH_US;
		char *answer = fetch(scene, "/metrics");
		const char *at = strstr(answer, line);

		assert_non_null(at);
		told[i] = strtoull(at + strlen(line), NULL, 10);
		free(answer);
	}
	assert_int_equal(told[0], 100);
	assert_int_equal(told[1], 100);
	assert_int_equal(told[2], 102);
}

static void test_page(void **state)
{
	char *answer = fetch(*state, "/");

	expect_status(answer, 200);
	assert_non_null(strstr(answer, "Content-Type: text/html; charset=utf-8\r\n"));
	assert_non_null(
		strstr(answer, "Content-Security-Policy: default-src 'none'; script-src 'sha256-"));
	assert_non_null(strstr(answer, "X-Content-Type-Options: nosniff\r\n"));
	assert_int_equal(strlen(body_of(answer)), http_page_size);
	assert_memory_equal(body_of(answer), http_page, http_page_size);
	free(answer);
}

/* Nothing that changes anything, no other site, no other method. */
static void test_refused(void **state)
{
	static const char *const changes[] = {"/api/flow/kill?src=10.0.0.1&dst=10.0.0.2&proto=udp",
		"/api/flow/block", "/api/flow/unblock", "/api/rule/add", "/api/rule/del",
		"/api/event/follow", "/api/offload/events", "/api/", "/api/flow", "/api/flow/list/",
		"/api/flow%20list", "/metric", "/metrics/", "/x", "//"};
	static const char *const methods[] = {"POST", "PUT", "DELETE", "OPTIONS", "PATCH"};
	static const char *const hosts[] = {
		"Host: evil.example\r\n", "Host: localhost.evil.example:9180\r\n"};
	struct scene *scene = *state;
	struct flow_record record = fake_flow("10.0.0.1", 0, "10.0.0.2", 0, 17);

	fake_add(&scene->plane, 0, 1, &record);
	for (unsigned i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		expect_fetch(scene, "GET", changes[i], "Host: localhost\r\n", 404);
	for (unsigned i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		char *answer = fetch_with(scene, methods[i], "/metrics", "Host: localhost\r\n");

		expect_status(answer, 405);
		assert_non_null(strstr(answer, "Allow: GET, HEAD\r\n"));
		free(answer);
	}
	for (unsigned i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		expect_fetch(scene, "GET", "/metrics", hosts[i], 403);
		expect_fetch(scene, "GET", "/api/flow/list", hosts[i], 403);
	}
	/* a newer libmicrohttpd refuses it by itself, as a bad request */
	char *twice =
		fetch_with(scene, "GET", "/metrics", "Host: localhost\r\nHost: evil.example\r\n");

	assert_true(strncmp(twice, "HTTP/1.1 40", 11) == 0);
	assert_null(strstr(twice, "millrace_"));
	free(twice);
	expect_fetch(scene, "GET", "/metrics", "Host: 127.0.0.1:9180\r\n", 200);
	/* a body is passed over */
	expect_fetch(
		scene, "GET", "/metrics", "Host: 127.0.0.1\r\nContent-Length: 5\r\n\r\nabc", 200);
	expect_fetch(
		scene, "POST", "/metrics", "Host: 127.0.0.1\r\nContent-Length: 5\r\n\r\nabc", 405);
	assert_int_equal(scene->plane.n_kills, 0);
}

/* The array of a query; its last item, which ends the answer, is taken off and checked. */
static json_t *query(struct scene *scene, const char *path, unsigned status, const char *error)
{
	char *answer = fetch(scene, path);

	expect_status(answer, status);
	assert_non_null(strstr(answer, "Content-Type: application/json\r\n"));
	json_t *lines = json_loads(body_of(answer), 0, NULL);

	assert_non_null(lines);
	json_t *end = lines_end(lines);

	assert_true(json_is_true(json_object_get(end, "end")));
	if (error)
		assert_string_equal(text_of(end, "error"), error);
	else
		assert_true(json_is_null(json_object_get(end, "error")));
	json_array_remove(lines, json_array_size(lines) - 1);
	free(answer);
	return lines;
}

static void test_same_as_the_socket(void **state)
{
	static const char *const asks[] = {"wire show", "port show", "worker show", "drop show",
		"offload show", "config show", "flow list"};
	struct scene *scene = *state;
	struct flow_record record = fake_flow("10.0.0.1", 7, "10.0.0.2", 8, 17);
	char request[64], path[64];

	fake_add(&scene->plane, 0, 1, &record);
	scene->plane.snapshot.wires[0].received = 5;
	for (unsigned i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
		snprintf(request, sizeof(request), "{\"ask\":\"%s\"}", asks[i]);
		snprintf(path, sizeof(path), "/api/%s", asks[i]);
		*strchr(path, ' ') = '/';
		json_t *by_socket = scene_ask(scene, request);
		json_t *by_http = query(scene, path, 200, NULL);

		json_array_remove(by_socket, json_array_size(by_socket) - 1);
		assert_true(json_array_size(by_http) > 0);
		assert_true(json_equal(by_socket, by_http));
		json_decref(by_socket);
		json_decref(by_http);
	}
}

/* Numbers, texts, flags and protocols in the URL; and what is wrong with them. */
static void test_words(void **state)
{
	struct scene *scene = *state;
	struct flow_record record = fake_flow("2001:db8::1", 7, "2001:db8::2", 8, 17);

	fake_add(&scene->plane, 0, 1, &record);
	json_t *lines = query(scene,
		"/api/flow/explain?src=2001%3Adb8::1&sport=7&dst=2001:db8::2&dport=8&proto=17", 200,
		NULL);

	assert_string_equal(text_of(json_array_get(lines, 0), "dst"), "2001:db8::2");
	json_decref(lines);
	lines = query(scene, "/api/flow/list?port=8&proto=udp&blocked=false&limit=5", 200, NULL);
	assert_int_equal(json_array_size(lines), 1);
	json_decref(lines);
	json_decref(query(scene, "/api/flow/explain?src=10.0.0.1&dst=10.0.0.2&proto=udp", 200,
		"no such flow"));
	json_decref(query(scene, "/api/flow/list?port=x", 400,
		"flow list: port: a whole number from 0 to 65,535 is needed"));
	json_decref(query(scene, "/api/flow/list?port=70000", 400,
		"flow list: port 70000: a whole number from 0 to 65,535 is needed"));
	json_decref(query(scene, "/api/flow/list?port=99999999999999999999", 400,
		"flow list: port: a whole number from 0 to 65,535 is needed"));
	json_decref(query(scene, "/api/flow/list?blocked=maybe", 400,
		"flow list: blocked: true or false is needed"));
	json_decref(query(
		scene, "/api/wire/show?x=1", 400, "wire show: \"x\": no such key; it takes none"));
	json_decref(query(scene, "/api/flow/list?address", 400,
		"flow list: address \"\": no IP address or prefix"));
	expect_fetch(scene, "GET", "/api/flow/list?address=%ff", "Host: localhost\r\n", 400);
}

static void test_long_answers(void **state)
{
	struct scene *scene = *state;

	scene->plane.made_up = MANY;
	json_t *lines = query(scene, "/api/flow/list?limit=2000", 200, NULL);

	assert_int_equal(json_array_size(lines), 2000);
	json_decref(lines);
	json_decref(query(scene, "/api/flow/list", 400,
		"the answer is longer than 1 MiB; ask for less (limit, top)"));
}

/* A list by rate takes two looks, and is made one at a time; meanwhile all else is answered. */
static void test_lists_by_rate(void **state)
{
	static const char request[] = "GET /api/flow/list?top=3&by=rate HTTP/1.1\r\nHost: "
				      "localhost\r\nConnection: close\r\n\r\n";
	struct scene *scene = *state;
	struct talker *both[2];

	scene->plane.made_up = 100;
	for (unsigned i = 0; i < 2; i++) {
		both[i] = visitor(scene);
		talker_say(both[i], request, sizeof(request) - 1);
	}
	scene_settle(scene);
	expect_fetch(scene, "GET", "/metrics", "Host: localhost\r\n", 200);
	json_decref(query(scene, "/api/wire/show", 200, NULL));
	/* clients of the socket have room for theirs, too */
	json_t *lines =
		scene_ask(scene, "{\"ask\":\"flow list\",\"with\":{\"top\":1,\"by\":\"packets\"}}");

	assert_int_equal(json_array_size(lines), 2);
	json_decref(lines);
	for (unsigned i = 0; i < 2; i++) {
		talker_read(both[i]);
		assert_int_equal(both[i]->n, 0);
		scene_now_us += 1000000;
		scene->plane.now_us += 1000000;
		char *answer = visitor_read(scene, both[i]);

		expect_status(answer, 200);
		assert_non_null(strstr(answer, "\"rate_pps\":"));
		free(answer);
		talker_destroy(both[i]);
	}
}

/* It ends while lists are being made: nobody is left waiting, no memory is lost. */
static void test_end_while_asked(void **state)
{
	static const char request[] =
		"GET /api/flow/list?top=3&by=rate HTTP/1.1\r\nHost: localhost\r\n\r\n";
	struct scene *scene = *state;
	struct talker *talker = visitor(scene);
	char path[108];

	scene->plane.made_up = 100;
	talker_say(talker, request, sizeof(request) - 1);
	scene_settle(scene);
	control_destroy(scene->control);
	scene->control = NULL;
	talker_read(talker);
	assert_true(talker->eof);
	talker_destroy(talker);
	http_path(scene, path);
	assert_int_equal(access(path, F_OK), -1);
}

/* Those who came and say nothing have all the places; the control socket does not notice, and they are let go. */
static void test_idle_clients(void **state)
{
	struct scene *scene = *state;
	struct talker *idle[HTTP_MAX_CONNECTIONS];
	static const char request[] =
		"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

	for (unsigned i = 0; i < HTTP_MAX_CONNECTIONS; i++) {
		idle[i] = visitor(scene);
		talker_say(idle[i], "GET /", i % 6);
		scene_step(scene);
	}
	struct talker *late = visitor(scene);

	talker_say(late, request, sizeof(request) - 1);
	scene_settle(scene);
	talker_read(late);
	assert_int_equal(late->n, 0);
	json_t *lines = expect_lines(scene, "{\"ask\":\"wire show\"}", 2);

	json_decref(lines);
	/* a word now and then does not help */
	scene_now_us += HTTP_CROWDED_US - 1;
	talker_say(idle[31], "m", 1);
	scene_settle(scene);
	talker_read(late);
	assert_int_equal(late->n, 0);
	scene_now_us += 1;
	char *answer = visitor_read(scene, late);

	expect_status(answer, 200);
	free(answer);
	talker_destroy(late);
	for (unsigned i = 0; i < HTTP_MAX_CONNECTIONS; i++) {
		talker_read(idle[i]);
		assert_true(idle[i]->eof);
		talker_destroy(idle[i]);
	}
}

/* It asks for much and takes nothing: its answer is dropped in the end, and nobody waits for it. */
static void test_never_reads(void **state)
{
	static const char request[] =
		"GET /api/flow/list?limit=2500 HTTP/1.1\r\nHost: localhost\r\n\r\n";
	struct scene *scene = *state;
	struct talker *lazy = visitor(scene);
	size_t n = 0;

	scene->plane.made_up = MANY;
	talker_say(lazy, request, sizeof(request) - 1);
	scene_settle(scene);
	json_t *lines = expect_lines(scene, "{\"ask\":\"wire show\"}", 2);

	json_decref(lines);
	scene_now_us += HTTP_PATIENCE_US;
	scene_settle(scene);
	while (!lazy->eof) {
		lazy->n = 0;
		talker_read(lazy);
		n += lazy->n;
		assert_true(n < 1000000);
	}
	assert_true(n > 1000);
	talker_destroy(lazy);
}

/* Answers that nobody takes have a limit; what needs no such memory is answered meanwhile. */
static void test_many_never_read(void **state)
{
	static const char request[] = "GET /api/flow/list?limit=2500 HTTP/1.1\r\nHost: "
				      "localhost\r\nConnection: close\r\n\r\n";
	struct scene *scene = *state;
	struct talker *lazy[HTTP_MAX_ANSWERS];

	scene->plane.made_up = MANY;
	for (unsigned i = 0; i < HTTP_MAX_ANSWERS; i++) {
		lazy[i] = visitor(scene);
		talker_say(lazy[i], request, sizeof(request) - 1);
	}
	scene_settle(scene);
	struct talker *late = visitor(scene);

	talker_say(late, request, sizeof(request) - 1);
	scene_settle(scene);
	talker_read(late);
	assert_int_equal(late->n, 0);
	expect_fetch(scene, "GET", "/metrics", "Host: localhost\r\n", 200);
	/* when those have been let go it has its turn */
	scene_now_us += HTTP_PATIENCE_US;
	char *answer = visitor_read(scene, late);

	expect_status(answer, 200);
	free(answer);
	talker_destroy(late);
	for (unsigned i = 0; i < HTTP_MAX_ANSWERS; i++)
		talker_destroy(lazy[i]);
}

/* A connection is used again, by requests that come one behind the other. */
static void test_kept_connection(void **state)
{
	static const char request[] = "GET /api/wire/show HTTP/1.1\r\nHost: localhost\r\n\r\n";
	struct scene *scene = *state;
	struct talker *talker = visitor(scene);

	for (unsigned i = 0; i < 200; i++) {
		talker_say(talker, request, sizeof(request) - 1);
		talker_say(talker, request, sizeof(request) - 1);
		unsigned n = 0;

		for (unsigned step = 0; n < 2 && step < SCENE_STEPS; step++) {
			scene_step(scene);
			talker_read(talker);
			talker->data[talker->n] = '\0';
			n = 0;
			for (const char *at = talker->data;
				(at = strstr(at, "\"end\":true")) != NULL; at++)
				n++;
		}
		assert_int_equal(n, 2);
		talker->n = 0;
		/* longer than patience is, but it has got its answers */
		scene_now_us += HTTP_PATIENCE_US / 2;
	}
	talker_destroy(talker);
}

/* A thread that does not answer costs nobody more than the answer. */
static void test_silent(void **state)
{
	struct scene *scene = *state;

	scene->plane.silent = true;
	expect_fetch(scene, "GET", "/metrics", "Host: localhost\r\n", 503);
	expect_fetch(scene, "GET", "/", "Host: localhost\r\n", 200);
	json_decref(query(scene, "/api/wire/show", 200,
		"wire show: a thread of the packet path does not answer"));
	scene->plane.silent = false;
	expect_fetch(scene, "GET", "/metrics", "Host: localhost\r\n", 200);
}

static void test_history(void **state)
{
	struct scene *scene = *state;
	json_t *object = NULL, *rows = NULL;

	for (unsigned i = 0; i < 400; i++) {
		scene->plane.snapshot.wires[0].received = i;
		scene->plane.snapshot.wires[1].received = i;
		scene->plane.snapshot.wire_flows[1] = 7;
		scene->plane.snapshot.now_us = i * UINT64_C(2000000);
		scene_step(scene);
		scene_now_us += 2000000;
	}
	char *answer = fetch(scene, "/api/history");

	expect_status(answer, 200);
	object = json_loads(body_of(answer), 0, NULL);
	assert_non_null(object);
	assert_int_equal(number_of(object, "step_ms"), 2000);
	rows = json_object_get(object, "rows");
	/* ten minutes */
	assert_int_equal(json_array_size(rows), 301);
	for (unsigned i = 0; i < 301; i++) {
		const json_t *row = json_array_get(rows, i);
		const json_t *before = json_array_get(rows, i - 1);

		assert_int_equal(
			json_array_size(row), json_array_size(json_object_get(object, "columns")));
		assert_int_equal(json_integer_value(json_array_get(row, 9)), 7);
		if (i > 0 && i < 300)
			assert_int_equal(json_integer_value(json_array_get(row, 1)),
				json_integer_value(json_array_get(before, 1)) + 2);
	}
	json_decref(object);
	free(answer);
}

/* Two at one place; and a place where there can be none. */
static void test_no_place(void **state)
{
	struct scene *scene = *state;
	char path[108];
	const struct control_http_config config = {.listen = path};
	struct control_config control_config = {.socket_path = "/nowhere", .plane = &scene->plane};
	struct control *control;
	struct error error;
	char other[96];

	snprintf(other, sizeof(other), "%s/other", scene->directory);
	control_config.socket_path = other;
	assert_int_equal(control_create(&control, &control_config, &error), 0);
	http_path(scene, path);
	assert_int_equal(control_http(control, &config, &error), -EADDRINUSE);
	assert_string_equal(
		strstr(error.text, "another"), strstr(error.text, "another millrace answers at"));
	strcpy(path, "/nowhere/at/all");
	assert_int_equal(control_http(control, &config, &error), -ENOENT);
	assert_string_equal(error.text, "metrics: /nowhere/at/all: its directory does not exist");
	strcpy(path, "192.0.2.1:9180");
	assert_true(control_http(control, &config, &error) < 0);
	assert_int_equal(strncmp(error.text, "metrics: http://192.0.2.1:9180: ", 32), 0);
	control_destroy(control);
}

#define HTTP_TEST(function) cmocka_unit_test_setup_teardown(function, http_setup, scene_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_accept),
		HTTP_TEST(test_formats),
		HTTP_TEST(test_fresh),
		HTTP_TEST(test_page),
		HTTP_TEST(test_refused),
		HTTP_TEST(test_same_as_the_socket),
		HTTP_TEST(test_words),
		HTTP_TEST(test_long_answers),
		HTTP_TEST(test_lists_by_rate),
		HTTP_TEST(test_end_while_asked),
		HTTP_TEST(test_idle_clients),
		HTTP_TEST(test_never_reads),
		HTTP_TEST(test_many_never_read),
		HTTP_TEST(test_kept_connection),
		HTTP_TEST(test_silent),
		HTTP_TEST(test_history),
		HTTP_TEST(test_no_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
