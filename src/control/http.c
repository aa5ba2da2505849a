/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/http.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <microhttpd.h>
#include <rte_common.h>

#include "base/text.h"
#include "control/control.h"
#include "control/http_address.h"
#include "control/http_history.h"
#include "control/http_query.h"
#include "control/metrics.h"

/* What the library may take for one connection: its headers, and what of an answer is on its way. */
#define CONNECTION_BYTES ((size_t)16384)

#define TYPE_TEXT "text/plain; charset=utf-8"
#define TYPE_JSON "application/json"
#define TYPE_HTML "text/html; charset=utf-8"

/* A connection. */
struct http_peer {
	struct MHD_Connection *connection; /* NULL: free */
	uint64_t since_us;		   /* it came, or its last request was answered */
	bool shut;	/* it was too slow, and the library is about to find out */
	bool suspended; /* the library leaves it alone until the query is done */
	struct http_query *query;
};

/* The last metrics of a format, and when they were made. */
struct http_fresh {
	struct MHD_Response *response;
	uint64_t made_us;
};

struct http {
	struct control *control;
	control_records_fn records;
	void *records_context;
	struct MHD_Daemon *daemon;
	struct control_place place; /* of a UNIX socket; its descriptor is -1 otherwise */
	struct http_peer peers[HTTP_MAX_CONNECTIONS];
	uint64_t
		run_us; /* when the library wants to go on; UINT64_MAX: when a connection is ready */
	bool closed;	/* a connection ended while it went on */
	uint64_t history_us; /* when the next row of the history is due */
	struct http_history history;
	struct http_fresh fresh[METRICS_N_FORMATS];
	struct metrics_source source;
};

static void run_daemon(struct http *http)
{
	MHD_UNSIGNED_LONG_LONG timeout_ms;

	http->closed = false;
	MHD_run(http->daemon);
	http->run_us = UINT64_MAX;
	if (MHD_get_timeout(http->daemon, &timeout_ms) == MHD_YES)
		http->run_us = http->control->now_us + timeout_ms * 1000;
	/* others may wait for its place, whom the library looks for when it goes on the next time */
	if (http->closed)
		http->run_us = http->control->now_us;
}

static void http_ready(void *context, int fd)
{
	(void)fd;
	run_daemon(context);
}

static struct http_peer *peer_of(struct MHD_Connection *connection)
{
	return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
		->socket_context;
}

/* Connections come and go. The library lets in no more than there are places. */
static void note_connection(void *context, struct MHD_Connection *connection, void **place,
	enum MHD_ConnectionNotificationCode code)
{
	struct http *http = context;
	struct http_peer *peer = *place;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		http->closed = true;
		if (peer)
			peer->connection = NULL;
		return;
	}
	for (unsigned i = 0; i < HTTP_MAX_CONNECTIONS && !peer; i++)
		if (!http->peers[i].connection)
			peer = &http->peers[i];
	if (peer)
		*peer = (struct http_peer){
			.connection = connection, .since_us = http->control->now_us};
	*place = peer;
}

/* An answer is over, or the connection ended before it was. */
static void note_completed(void *context, struct MHD_Connection *connection, void **request,
	enum MHD_RequestTerminationCode code)
{
	struct http *http = context;
	struct http_peer *peer = peer_of(connection);

	(void)request;
	(void)code;
	if (!peer)
		return;
	http_query_destroy(peer->query);
	peer->query = NULL;
	peer->since_us = http->control->now_us;
}

/* What every answer says. Browsers are to keep none, guess no type, and show it to no other site. */
static struct MHD_Response *with_headers(struct MHD_Response *response, const char *type)
{
	static const char *const headers[][2] = {
		{"Cache-Control", "no-store"},
		{"X-Content-Type-Options", "nosniff"},
		{"Cross-Origin-Resource-Policy", "same-origin"},
		{"Referrer-Policy", "no-referrer"},
	};

	if (!response)
		return NULL;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	for (unsigned i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		MHD_add_response_header(response, headers[i][0], headers[i][1]);
	return response;
}

/* The connection ends where there was no memory for the response. */
static enum MHD_Result send_response(
	struct MHD_Connection *connection, unsigned status, struct MHD_Response *response)
{
	if (!response)
		return MHD_NO;
	enum MHD_Result ret = MHD_queue_response(connection, status, response);

	MHD_destroy_response(response);
	return ret;
}

static struct MHD_Response *text_response(const char *text)
{
	return with_headers(MHD_create_response_from_buffer(
				    strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT),
		TYPE_TEXT);
}

static enum MHD_Result refuse_request(
	struct MHD_Connection *connection, unsigned status, const char *text)
{
	return send_response(connection, status, text_response(text));
}

/* Of the last tenth of a second, or new. NULL with errno: no memory, or a thread does not answer. */
static struct MHD_Response *metrics_response(struct http *http, enum metrics_format format)
{
	struct control *control = http->control;
	struct http_fresh *fresh = &http->fresh[format];
	struct control_records records = {0};
	size_t length;

	if (fresh->response && control->now_us - fresh->made_us < HTTP_FRESH_US)
		return fresh->response;
	if (http->records)
		http->records(http->records_context, &records);
	int ret = metrics_take(
		&http->source, control->plane, &control->snapshot, &records, control->exporter);

	errno = -ret;
	if (ret < 0)
		return NULL;
	char *bytes = metrics_render(&http->source, format, &length);

	errno = ENOMEM;
	if (!bytes)
		return NULL;
	if (fresh->response)
		MHD_destroy_response(fresh->response);
	fresh->response = MHD_create_response_from_buffer(length, bytes, MHD_RESPMEM_MUST_FREE);
	fresh->made_us = control->now_us;
	if (!fresh->response)
		free(bytes);
	return with_headers(fresh->response, metrics_content_type(format));
}

static enum MHD_Result send_metrics(struct http *http, struct MHD_Connection *connection)
{
	const char *accept =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	struct MHD_Response *response = metrics_response(
		http, http_wants_openmetrics(accept) ? METRICS_OPENMETRICS : METRICS_TEXT);

	if (response)
		return MHD_queue_response(connection, MHD_HTTP_OK, response);
	return refuse_request(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
		errno == ETIMEDOUT ? "a thread of the packet path does not answer\n"
				   : "out of memory\n");
}

static enum MHD_Result send_page(struct MHD_Connection *connection)
{
	struct MHD_Response *response =
		with_headers(MHD_create_response_from_buffer(http_page_size,
				     (void *)(uintptr_t)http_page, MHD_RESPMEM_PERSISTENT),
			TYPE_HTML);

	if (response)
		MHD_add_response_header(response, "Content-Security-Policy", http_page_policy);
	return send_response(connection, MHD_HTTP_OK, response);
}

static enum MHD_Result send_history(struct http *http, struct MHD_Connection *connection)
{
	json_t *object = http_history_json(&http->history);
	char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
	struct MHD_Response *response =
		text ? MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE)
		     : NULL;

	json_decref(object);
	if (!response)
		free(text);
	return send_response(connection, MHD_HTTP_OK, with_headers(response, TYPE_JSON));
}

/* The query is done. Its body goes with the peer's query, after the answer is sent. */
static enum MHD_Result send_query(struct MHD_Connection *connection, struct http_query *query)
{
	size_t length;
	unsigned status;
	const char *body = http_query_body(query, &length, &status);

	return send_response(connection, status,
		with_headers(MHD_create_response_from_buffer(length,
				     (void *)(uintptr_t)(body ? body : ""), MHD_RESPMEM_PERSISTENT),
			TYPE_JSON));
}

/* Words of a question, as they are read from the URL. */
struct words {
	const struct answer_verb *verb;
	json_t *with;
	bool wrong;
};

static enum MHD_Result take_word(
	void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct words *words = context;

	(void)kind;
	if (http_query_add(words->with, words->verb, name, value) < 0)
		words->wrong = true;
	return words->wrong ? MHD_NO : MHD_YES;
}

/* The library leaves the connection alone until the answer is there. */
static enum MHD_Result begin_query(struct http *http, struct MHD_Connection *connection,
	struct http_peer *peer, const struct answer_verb *verb)
{
	struct words words = {.verb = verb, .with = json_object()};

	MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, take_word, &words);
	if (words.wrong) {
		json_decref(words.with);
		return refuse_request(
			connection, MHD_HTTP_BAD_REQUEST, "the question is no UTF-8\n");
	}
	peer->query = http_query_create(http->control, verb, words.with);
	if (!peer->query)
		return MHD_NO;
	peer->suspended = true;
	MHD_suspend_connection(connection);
	return MHD_YES;
}

/* What the headers Host say: there is one at most, unless somebody tries something. */
struct hosts {
	unsigned n;
	bool refused;
};

static enum MHD_Result take_header(
	void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct hosts *hosts = context;

	(void)kind;
	if (strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0) {
		hosts->n++;
		hosts->refused |= !value || !http_host_is_allowed(value);
	}
	return MHD_YES;
}

static bool comes_from_elsewhere(struct MHD_Connection *connection)
{
	struct hosts hosts = {0};

	MHD_get_connection_values(connection, MHD_HEADER_KIND, take_header, &hosts);
	return hosts.refused || hosts.n > 1;
}

/* What a request that is there, and welcome, gets. */
static enum MHD_Result answer_request(struct http *http, struct MHD_Connection *connection,
	struct http_peer *peer, const char *url)
{
	const struct answer_verb *verb = http_query_verb(url);

	if (strcmp(url, "/metrics") == 0)
		return send_metrics(http, connection);
	if (strcmp(url, "/") == 0)
		return send_page(connection);
	if (strcmp(url, "/api/history") == 0)
		return send_history(http, connection);
	if (verb)
		return begin_query(http, connection, peer, verb);
	return refuse_request(connection, MHD_HTTP_NOT_FOUND,
		"there is nothing here; there are /, /metrics and /api/NOUN/VERB\n");
}

static enum MHD_Result refuse_method(struct MHD_Connection *connection)
{
	struct MHD_Response *response =
		text_response("nothing can be changed here: GET and HEAD are answered\n");

	if (response)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	return send_response(connection, MHD_HTTP_METHOD_NOT_ALLOWED, response);
}

/*
 * The library calls it when the headers are there, with each part of a body, and at the end. The answer waits for the
 * end: the connection could not be used again otherwise.
 */
static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *upload, size_t *upload_size,
	void **request)
{
	struct http_peer *peer = peer_of(connection);

	(void)version;
	(void)upload;
	if (!peer)
		return MHD_NO;
	if (!*request || *upload_size > 0) {
		*request = peer;
		*upload_size = 0;
		return MHD_YES;
	}
	if (peer->query)
		return send_query(connection, peer->query);
	if (comes_from_elsewhere(connection))
		return refuse_request(connection, MHD_HTTP_FORBIDDEN,
			"ask by an address, or by localhost: names of hosts are not answered\n");
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return refuse_method(connection);
	return answer_request(context, connection, peer, url);
}

/*
 * So many have an answer at a time, made or on its way. And one list of flows is made at a time, so that clients of the
 * control socket get theirs, too.
 */
static bool may_begin(const struct http *http, const struct http_query *query)
{
	unsigned begun = 0;
	bool listing = false;

	for (unsigned i = 0; i < HTTP_MAX_CONNECTIONS; i++) {
		const struct http_query *other = http->peers[i].query;

		if (!other)
			continue;
		begun += http_query_has_begun(other);
		listing |= http_query_is_listing(other);
	}
	return begun < HTTP_MAX_ANSWERS && !(listing && http_query_is_list(query));
}

/* Each query goes a step on. True when one was done, and the library has to hear of it. */
static bool turn_queries(struct http *http)
{
	bool done = false;

	for (unsigned i = 0; i < HTTP_MAX_CONNECTIONS; i++) {
		struct http_peer *peer = &http->peers[i];

		if (!peer->suspended || !http_query_turn(peer->query, may_begin(http, peer->query)))
			continue;
		peer->suspended = false;
		peer->since_us = http->control->now_us;
		MHD_resume_connection(peer->connection);
		done = true;
	}
	return done;
}

/* How long a connection may be of no use. The library does not say whether others wait. */
static uint64_t patience_us(const struct http *http)
{
	for (unsigned i = 0; i < HTTP_MAX_CONNECTIONS; i++)
		if (!http->peers[i].connection)
			return HTTP_PATIENCE_US;
	return HTTP_CROWDED_US;
}

/* A connection that neither asks, nor takes its answer, makes room for others. */
static void shut_slow(struct http *http)
{
	const uint64_t patient_us = patience_us(http);

	for (unsigned i = 0; i < HTTP_MAX_CONNECTIONS; i++) {
		struct http_peer *peer = &http->peers[i];

		if (!peer->connection || peer->suspended || peer->shut ||
			http->control->now_us - peer->since_us < patient_us)
			continue;
		peer->shut = true;
		shutdown(
			MHD_get_connection_info(peer->connection, MHD_CONNECTION_INFO_CONNECTION_FD)
				->connect_fd,
			SHUT_RDWR);
	}
}

static void keep_history(struct http *http)
{
	struct control *control = http->control;

	if (control->now_us < http->history_us)
		return;
	http->history_us = control->now_us + HTTP_HISTORY_STEP_US;
	/* a gap is left where a thread does not answer */
	if (plane_snapshot(control->plane, &control->snapshot) == 0)
		http_history_add(&http->history, &control->snapshot,
			plane_config(control->plane)->topology.n_domains,
			plane_origin_us(control->plane));
}

void http_tend(struct http *http)
{
	if (!http)
		return;
	keep_history(http);
	shut_slow(http);
	if (turn_queries(http) || http->run_us <= http->control->now_us)
		run_daemon(http);
}

uint64_t http_wake_us(const struct http *http)
{
	if (!http)
		return UINT64_MAX;
	const uint64_t patient_us = patience_us(http);
	uint64_t wake_us = RTE_MIN(http->run_us, http->history_us);

	for (unsigned i = 0; i < HTTP_MAX_CONNECTIONS; i++) {
		const struct http_peer *peer = &http->peers[i];

		if (peer->suspended)
			wake_us = RTE_MIN(wake_us,
				http_query_wake_us(peer->query, may_begin(http, peer->query)));
		else if (peer->connection && !peer->shut)
			wake_us = RTE_MIN(wake_us, peer->since_us + patient_us);
	}
	return wake_us;
}

/* A UNIX socket, as the control socket is one: of mode 0600, and taken over from an engine that is dead. */
static int claim_path(struct http *http, const char *path, struct error *error)
{
	static const char begins[] = "control socket ";
	char word[160];
	struct error why;
	int ret = control_place_claim(&http->place, path, &why);

	if (ret == -EACCES || ret == -EROFS)
		return error_set(error, ret,
			"metrics: %s: this user may not make files in its directory",
			text_printable(word, sizeof(word), path));
	if (ret < 0) {
		const size_t n = strlen(begins);

		return error_set(error, ret, "metrics: %s",
			strncmp(why.text, begins, n) == 0 ? why.text + n : why.text);
	}
	return http->place.fd;
}

static void tell_address(
	const struct control *control, const struct http_address *address, const char *text)
{
	char line[HTTP_ADDRESS_TEXT + 128];

	if (!control->note)
		return;
	snprintf(line, sizeof(line), "metrics: %s%s%s", text,
		address->path[0] == '\0' ? "/metrics, and a page at /" : "",
		http_address_is_local(address)
			? ""
			: "; whoever reaches this address can read all flows");
	control->note(control->note_context, line);
}

static int start_daemon(struct http *http, int fd, struct error *error)
{
	http->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
		handle, http, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
		HTTP_MAX_CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_BYTES,
		MHD_OPTION_NOTIFY_CONNECTION, note_connection, http, MHD_OPTION_NOTIFY_COMPLETED,
		note_completed, http, MHD_OPTION_END);
	if (!http->daemon)
		return error_set(error, -ENOMEM, "metrics: the HTTP server does not start");
	const union MHD_DaemonInfo *info =
		MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	int ret = info ? control_watch(http->control, info->epoll_fd, http_ready, http) : -ENOTSUP;

	if (ret < 0)
		return error_set(
			error, ret, "metrics: the HTTP server does not start: %s", strerror(-ret));
	return 0;
}

int http_create(struct http **out, struct control *control,
	const struct control_http_config *config, struct error *error)
{
	struct http *http = calloc(1, sizeof(*http));
	char text[HTTP_ADDRESS_TEXT], word[HTTP_ADDRESS_TEXT];
	struct http_address address;

	if (!http)
		return error_set(error, -ENOMEM, "metrics: out of memory");
	http->control = control;
	http->records = config->records;
	http->records_context = config->records_context;
	http->run_us = UINT64_MAX;
	http->place.fd = -1;
	int ret = http_address_parse(&address, config->listen, error);

	if (ret == 0)
		ret = address.path[0] != '\0' ? claim_path(http, address.path, error)
					      : http_address_listen(&address, error);
	if (ret >= 0)
		ret = start_daemon(http, ret, error);
	if (ret < 0) {
		http_destroy(http);
		return ret;
	}
	http_address_text(&address, text);
	tell_address(control, &address, text_printable(word, sizeof(word), text));
	*out = http;
	return 0;
}

/* The library may not end while it leaves connections alone. */
static void resume_all(struct http *http)
{
	for (unsigned i = 0; i < HTTP_MAX_CONNECTIONS; i++) {
		struct http_peer *peer = &http->peers[i];

		if (peer->suspended)
			MHD_resume_connection(peer->connection);
		peer->suspended = false;
		http_query_destroy(peer->query);
		peer->query = NULL;
	}
}

void http_destroy(struct http *http)
{
	if (!http)
		return;
	if (http->daemon) {
		/* the library would close the descriptor, which belongs to the place in the file system */
		const int fd = MHD_quiesce_daemon(http->daemon);

		resume_all(http);
		MHD_stop_daemon(http->daemon);
		if (http->place.fd < 0 && fd >= 0)
			close(fd);
	}
	control_place_release(&http->place);
	for (unsigned i = 0; i < METRICS_N_FORMATS; i++)
		if (http->fresh[i].response)
			MHD_destroy_response(http->fresh[i].response);
	free(http);
}
