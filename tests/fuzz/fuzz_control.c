/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Any bytes sent to the control socket, by one client or by two in turns, in pieces as the bytes say.
 * The server stays on its feet, every line that it sends is JSON, and afterwards it still answers.
 */

#include <jansson.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/server.h"
#include "unit/fake_plane.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define N_CLIENTS 2
#define LONGEST_INPUT 16384
#define ROUNDS 400

static struct plane plane;
static struct control *control;
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static char directory[] = "/tmp/millrace-fuzz-XXXXXX";
static uint64_t clock_us;

static uint64_t now(void)
{
	/* a step takes 50 ms, so that measuring rates takes some */
	return clock_us += 25000;
}

static void check(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

static void clean_up(void)
{
	control_destroy(control);
	fake_fini(&plane);
	rmdir(directory);
}

static void fill_plane(void)
{
	static const uint8_t protos[] = {6, 17, 1, 132};

	/* answers under way may have to do with the list */
	struct blocks *blocks = plane.blocks;
	struct rte_rcu_qsbr *qsbr = plane.qsbr;

	fake_init(&plane);
	plane.blocks = blocks;
	plane.qsbr = qsbr;
	if (!blocks)
		fake_blocks(&plane, 1000, 16);
	for (unsigned i = 0; i < 200; i++) {
		struct flow_record record =
			fake_flow("10.0.0.1", (uint16_t)i, "10.0.0.2", 80, protos[i % 4]);

		record.state = (1 + i % (FLOW_N_STATES - 1)) & 0xf;
		fake_add(&plane, i % FAKE_WORKERS, i, &record);
	}
}

static void set_up(void)
{
	char path[64];
	struct control_config config = {
		.socket_path = path, .plane = &plane, .config_json = "{}", .clock_us = now};
	struct error error;

	check(mkdtemp(directory) != NULL, "a directory");
	snprintf(path, sizeof(path), "%s/s", directory);
	memcpy(address.sun_path, path, sizeof(path));
	fill_plane();
	if (control_create(&control, &config, &error) < 0)
		check(false, error.text);
	atexit(clean_up);
}

struct answer_reader {
	int fd;
	size_t n;
	unsigned n_ends;
	char line[65536];
};

static void take_line(struct answer_reader *reader)
{
	json_t *line = json_loadb(reader->line, reader->n, JSON_REJECT_DUPLICATES, NULL);

	check(json_is_object(line), "every line is an object");
	json_t *end = json_object_get(line, "end");

	if (json_is_true(end)) {
		json_t *error = json_object_get(line, "error");
		json_int_t code = json_integer_value(json_object_get(line, "code"));

		reader->n_ends++;
		check(json_is_string(error) ? code == 1 || code == 2 : json_is_null(error),
			"an error has a code");
	}
	json_decref(line);
	reader->n = 0;
}

/* False when the connection has ended. */
static bool read_lines(struct answer_reader *reader)
{
	char bytes[65536];
	ssize_t n = recv(reader->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	for (ssize_t i = 0; i < n; i++) {
		if (bytes[i] == '\n') {
			take_line(reader);
			continue;
		}
		check(reader->n < sizeof(reader->line), "no line is that long");
		reader->line[reader->n++] = bytes[i];
	}
	return n > 0 || (n < 0 && errno == EAGAIN);
}

static void open_reader(struct answer_reader *reader)
{
	reader->n = 0;
	reader->n_ends = 0;
	reader->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	check(connect(reader->fd, (const struct sockaddr *)&address, sizeof(address)) == 0,
		"somebody listens");
}

/* The next piece of the input, for one of the clients; its first byte says which and how long. */
static size_t say(struct answer_reader *readers, const uint8_t *data, size_t size)
{
	struct answer_reader *reader = &readers[data[0] & 1];
	size_t n = 1 + (size_t)(data[0] >> 1) * 16;

	if (n > size - 1)
		n = size - 1;
	(void)!send(reader->fd, data + 1, n, MSG_NOSIGNAL);
	if (data[0] % 16 == 3)
		shutdown(reader->fd, SHUT_WR);
	return 1 + n;
}

static void still_answers(void)
{
	static const char ask[] = "{\"ask\":\"flow list\",\"with\":{\"limit\":1}}\n";
	struct answer_reader *reader = calloc(1, sizeof(*reader));

	open_reader(reader);
	check(send(reader->fd, ask, sizeof(ask) - 1, MSG_NOSIGNAL) > 0, "it takes a request");
	for (unsigned i = 0; i < ROUNDS && reader->n_ends == 0; i++) {
		check(control_step(control, 0) == 0, "a step");
		check(read_lines(reader), "the connection lasts");
	}
	check(reader->n_ends == 1, "it still answers");
	close(reader->fd);
	free(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct answer_reader readers[N_CLIENTS];

	if (size > LONGEST_INPUT)
		return 0;
	if (!control)
		set_up();
	for (unsigned i = 0; i < N_CLIENTS; i++)
		open_reader(&readers[i]);
	while (size > 0) {
		size_t used = say(readers, data, size);

		data += used;
		size -= used;
		check(control_step(control, 0) == 0, "a step");
		for (unsigned i = 0; i < N_CLIENTS; i++)
			(void)read_lines(&readers[i]);
	}
	for (unsigned i = 0; i < 60; i++) {
		check(control_step(control, 0) == 0, "a step");
		for (unsigned j = 0; j < N_CLIENTS; j++)
			(void)read_lines(&readers[j]);
	}
	for (unsigned i = 0; i < N_CLIENTS; i++)
		close(readers[i].fd);
	/* nobody's answer, and nobody's kill, is left for the next input */
	fill_plane();
	still_answers();
	return 0;
}
