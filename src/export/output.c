/* SPDX-License-Identifier: BSD-3-Clause */
#include "export/output.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/monotonic.h"
#include "base/text.h"
#include "export/lines.h"
#include "export/outlet.h"

#define RETRY_MS 100
#define STALL_MS 2000
#define HURRY_MS 60000
/* What a replay gathers before it writes, and a live output, which writes no later than that. */
#define GATHER ((size_t)256 * 1024)
/* What a live output holds while its reader is slow: as many records as a worker's mailbox holds reports. */
#define BUFFER ((size_t)32 << 20)
/* After so long a reader that takes nothing is worth a message. */
#define STALL_TOLD_MS 1000
/* Between two tries at a slow reader when there is no need to wait for it. */
#define SLOW_MS 5
/* The longest wait before the other threads' wishes are looked at again. */
#define WAIT_MS 20

struct export_output {
	/* set once */
	bool live;
	struct export_output_limits limits;
	char *path; /* NULL: standard output */
	char name[256];
	/* anyone writes */
	atomic_uint reopen_asked, reopen_heeded; /* how often */
	atomic_bool hurry;
	/* the user's own */
	struct outlet outlet;
	struct lines lines;
	bool ended;	   /* nothing goes out any more: failed in replay, or given up at the end */
	bool broken;	   /* the last try failed; a slow reader is no failure */
	int failure;	   /* as in the state */
	uint64_t next_ms;  /* not to be tried before */
	uint64_t watch_ms; /* when to look whether the reader is there, with nothing to write */
	uint64_t hurry_ms; /* since when; 0: not seen yet */
	uint64_t stuck_ms; /* since when the reader has taken nothing; 0: it takes what it gets */
	uint64_t written;
	uint64_t lost[EXPORT_N_LOSSES];
	/* the user writes, anyone reads, under the lock */
	pthread_mutex_t lock;
	struct export_output_state state;
};

static void say_why(const struct export_output *output, int code, struct error *error)
{
	if (code == -EPIPE)
		error_set(error, code, "%s: the reader of the records is gone", output->name);
	else if (code == -ENXIO)
		error_set(error, code, "%s: nobody reads the records", output->name);
	else if (code == -ETIMEDOUT)
		error_set(error, code, "%s: the reader of the records takes none", output->name);
	else
		error_set(error, code, "%s: writing the records failed: %s", output->name,
			strerror(-code));
}

/* What failed first is what is told until writing works again; a slow reader is the least of it. */
static void set_failure(struct export_output *output, int code)
{
	if (output->failure == code ||
		(code < 0 && output->failure < 0 && output->failure != -ETIMEDOUT))
		return;
	output->failure = code;
	pthread_mutex_lock(&output->lock);
	output->state.failure = code;
	if (code < 0) {
		output->state.n_failures++;
		say_why(output, code, &output->state.why);
	}
	pthread_mutex_unlock(&output->lock);
}

/* Records are lost for what has failed. */
static void lose(struct export_output *output, uint64_t n, int code)
{
	bool reader = code == -EPIPE || code == -ENXIO || code == -ETIMEDOUT;

	output->lost[reader ? EXPORT_LOSS_READER : EXPORT_LOSS_WRITE] += n;
}

static void works(struct export_output *output)
{
	output->broken = false;
	set_failure(output, 0);
}

/* Gives up the record that is written in part. */
static void drop_cut(struct export_output *output)
{
	if (lines_cut_rest(&output->lines) > 0) {
		lines_cut_drop(&output->lines);
		lose(output, 1, output->failure);
	}
}

/*
 * Before a file is left: the record that is written in part gets its rest; where that fails its begin
 * is taken back and it is whole again; where that fails too it is lost.
 */
static void leave_line(struct export_output *output)
{
	size_t rest, length;
	ssize_t n;

	while ((rest = lines_cut_rest(&output->lines)) > 0) {
		n = outlet_put(&output->outlet, lines_bytes(&output->lines, &length), rest);
		if (n <= 0)
			break;
		output->written += lines_take(&output->lines, (size_t)n);
	}
	if (rest == 0)
		return;
	if (outlet_take_back(&output->outlet, lines_cut_begin(&output->lines)))
		lines_cut_restore(&output->lines);
	else
		drop_cut(output);
}

/* Nothing goes out any more; what is buffered is lost. */
static void give_up(struct export_output *output)
{
	if (output->live && lines_cut_rest(&output->lines) > 0)
		(void)outlet_take_back(&output->outlet, lines_cut_begin(&output->lines));
	lose(output, lines_clear(&output->lines), output->failure);
	output->ended = true;
}

static int failed(struct export_output *output, int code)
{
	set_failure(output, code);
	output->broken = true;
	output->stuck_ms = 0;
	output->next_ms = (monotonic_us() / 1000) + output->limits.retry_ms;
	if (!output->live) {
		give_up(output);
	} else if (code == -EPIPE && output->outlet.fifo) {
		/* the next reader is another one, to whom the rest of a line means nothing */
		drop_cut(output);
		(void)outlet_close(&output->outlet);
	}
	return code;
}

/* The reader takes no more for the moment. */
static int stuck(struct export_output *output, bool progress)
{
	uint64_t now = (monotonic_us() / 1000);

	output->next_ms = now + SLOW_MS;
	if (progress || output->stuck_ms == 0)
		output->stuck_ms = now;
	if (progress)
		works(output);
	else if (output->live && now - output->stuck_ms >= STALL_TOLD_MS)
		set_failure(output, -ETIMEDOUT);
	return -EAGAIN;
}

/*
 * Writes until nothing is left or no more is taken. Returns 0, -EAGAIN when the reader is slow, or
 * what failed.
 */
static int push(struct export_output *output)
{
	bool progress = false;
	const char *bytes;
	size_t length;

	if (output->outlet.fd < 0) {
		int ret = outlet_open(&output->outlet, output->path, true);

		if (ret < 0)
			return failed(output, ret);
	}
	while ((bytes = lines_bytes(&output->lines, &length)) != NULL) {
		ssize_t n = outlet_put(&output->outlet, bytes, length);

		if (n == -EAGAIN)
			return stuck(output, progress);
		if (n < 0)
			return failed(output, (int)n);
		progress = true;
		output->written += lines_take(&output->lines, (size_t)n);
	}
	output->stuck_ms = 0;
	if (progress)
		works(output);
	return 0;
}

static bool out_of_time(struct export_output *output)
{
	if (!output->live || !atomic_load_explicit(&output->hurry, memory_order_relaxed))
		return false;

	uint64_t now = (monotonic_us() / 1000);

	if (output->hurry_ms == 0)
		output->hurry_ms = now;
	if (now - output->hurry_ms >= output->limits.hurry_ms)
		return true;
	if (output->stuck_ms == 0)
		return false;

	uint64_t since = output->stuck_ms > output->hurry_ms ? output->stuck_ms : output->hurry_ms;

	return now - since >= output->limits.stall_ms;
}

/* A live output's reader is not waited for, until the end is near. */
static bool make_room_at_once(struct export_output *output, size_t length)
{
	if (!output->ended && !lines_fit(&output->lines, length) &&
		monotonic_us() / 1000 >= output->next_ms)
		(void)push(output);
	return !output->ended && lines_fit(&output->lines, length);
}

/* A slow reader is waited for here, and nowhere else. */
static bool make_room(struct export_output *output, size_t length)
{
	if (output->live && !atomic_load_explicit(&output->hurry, memory_order_relaxed))
		return make_room_at_once(output, length);
	while (!output->ended && !lines_fit(&output->lines, length)) {
		if (output->broken && (monotonic_us() / 1000) < output->next_ms)
			return false;
		if (out_of_time(output)) {
			set_failure(output, -ETIMEDOUT);
			give_up(output);
			break;
		}
		switch (push(output)) {
		case 0:
			break;
		case -EAGAIN:
			if (lines_fit(&output->lines, length))
				break;
			outlet_wait(&output->outlet, WAIT_MS);
			export_output_tend(output);
			break;
		default:
			return !output->ended && lines_fit(&output->lines, length);
		}
	}
	return !output->ended;
}

void export_output_write(struct export_output *output, const char *bytes, size_t length)
{
	size_t waiting;

	if (length > EXPORT_OUTPUT_MAX || !make_room(output, length)) {
		/* what neither failed nor was given up was not taken fast enough */
		lose(output, 1, output->broken || output->ended ? output->failure : -ETIMEDOUT);
		return;
	}
	lines_add(&output->lines, bytes, length);
	if (output->outlet.terminal ||
		(output->live && lines_bytes(&output->lines, &waiting) != NULL &&
			waiting >= GATHER))
		export_output_flush(output);
}

/* With nothing to write: a reader that goes is missed, and its successor welcomed, all the same. */
static void look_after_reader(struct export_output *output)
{
	uint64_t now = (monotonic_us() / 1000);

	if (now < output->watch_ms)
		return;
	output->watch_ms = now + output->limits.retry_ms;
	if (outlet_deserted(&output->outlet))
		failed(output, -EPIPE);
	else if (push(output) == 0)
		works(output);
}

void export_output_flush(struct export_output *output)
{
	size_t length;

	if (output->ended)
		return;
	if (!output->live) {
		while (lines_bytes(&output->lines, &length) && push(output) == -EAGAIN)
			outlet_wait(&output->outlet, -1);
		return;
	}
	if (lines_bytes(&output->lines, &length)) {
		if ((monotonic_us() / 1000) >= output->next_ms)
			(void)push(output);
	} else if (output->outlet.fifo || output->outlet.fd < 0) {
		look_after_reader(output);
	}
}

static void open_anew(struct export_output *output)
{
	struct outlet fresh;
	int ret;

	if (!output->path || !outlet_reopens(&output->outlet))
		return;
	ret = outlet_open(&fresh, output->path, true);
	if (ret == 0) {
		if (output->outlet.fd >= 0)
			leave_line(output);
		(void)outlet_close(&output->outlet);
		output->outlet = fresh;
		output->next_ms = 0;
		output->stuck_ms = 0;
	}
	pthread_mutex_lock(&output->lock);
	if (ret == 0) {
		output->state.n_reopened++;
	} else {
		output->state.n_not_reopened++;
		error_set(&output->state.not_reopened, ret, "%s: cannot be opened anew: %s",
			output->name, ret == -ENXIO ? "nobody reads it" : strerror(-ret));
	}
	pthread_mutex_unlock(&output->lock);
}

void export_output_tend(struct export_output *output)
{
	unsigned asked = atomic_load_explicit(&output->reopen_asked, memory_order_relaxed);

	if (asked == atomic_load_explicit(&output->reopen_heeded, memory_order_relaxed))
		return;
	if (output->live && !output->ended)
		open_anew(output);
	atomic_store_explicit(&output->reopen_heeded, asked, memory_order_release);
}

void export_output_reopen(struct export_output *output)
{
	atomic_fetch_add_explicit(&output->reopen_asked, 1, memory_order_relaxed);
}

bool export_output_reopening(const struct export_output *output)
{
	return atomic_load_explicit(&output->reopen_heeded, memory_order_acquire) !=
	       atomic_load_explicit(&output->reopen_asked, memory_order_relaxed);
}

void export_output_hurry(struct export_output *output)
{
	atomic_store_explicit(&output->hurry, true, memory_order_relaxed);
}

void export_output_state(struct export_output *output, struct export_output_state *state)
{
	pthread_mutex_lock(&output->lock);
	*state = output->state;
	pthread_mutex_unlock(&output->lock);
}

const char *export_output_name(const struct export_output *output)
{
	return output->name;
}

uint64_t export_output_written(const struct export_output *output)
{
	return output->written;
}

uint64_t export_output_lost(const struct export_output *output)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < EXPORT_N_LOSSES; i++)
		sum += output->lost[i];
	return sum;
}

uint64_t export_output_lost_by(const struct export_output *output, enum export_loss loss)
{
	return output->lost[loss];
}

static bool is_fifo(const char *path)
{
	struct stat status;

	return path && stat(path, &status) == 0 && S_ISFIFO(status.st_mode);
}

static int open_outlet(struct export_output *output, const char *path, struct error *error)
{
	bool standard = !path || strcmp(path, "-") == 0;
	int ret = lines_init(&output->lines, output->live ? output->limits.buffer : GATHER);

	if (ret == 0 && !standard && !(output->path = strdup(path)))
		ret = -ENOMEM;
	if (ret < 0)
		return error_set(error, ret, "out of memory");
	text_printable(output->name, sizeof(output->name), standard ? "standard output" : path);
	ret = outlet_open(&output->outlet, output->path, output->live);
	if (ret == -ENXIO && output->live && is_fifo(output->path)) {
		failed(output, ret);
		return 0;
	}
	if (ret < 0)
		return error_set(error, ret, "%s: cannot write: %s", output->name, strerror(-ret));
	return 0;
}

static void destroy(struct export_output *output)
{
	pthread_mutex_destroy(&output->lock);
	lines_fini(&output->lines);
	free(output->path);
	free(output);
}

static int create(struct export_output **out, const char *path,
	const struct export_output_limits *limits, struct error *error)
{
	struct export_output *output = calloc(1, sizeof(*output));
	int ret;

	if (!output)
		return error_set(error, -ENOMEM, "out of memory");
	pthread_mutex_init(&output->lock, NULL);
	if (limits) {
		output->live = true;
		output->limits = *limits;
	}
	ret = open_outlet(output, path, error);
	if (ret < 0)
		destroy(output);
	else
		*out = output;
	return ret;
}

int export_output_open(struct export_output **output, const char *path, struct error *error)
{
	return create(output, path, NULL, error);
}

int export_output_open_live(struct export_output **output, const char *path,
	const struct export_output_limits *limits, struct error *error)
{
	struct export_output_limits all = {0};

	if (limits)
		all = *limits;
	if (all.retry_ms == 0)
		all.retry_ms = RETRY_MS;
	if (all.stall_ms == 0)
		all.stall_ms = STALL_MS;
	if (all.hurry_ms == 0)
		all.hurry_ms = HURRY_MS;
	if (all.buffer == 0)
		all.buffer = BUFFER;
	return create(output, path, &all, error);
}

void export_output_end(struct export_output *output)
{
	size_t length;

	export_output_hurry(output);
	export_output_tend(output);
	if (!output->live)
		export_output_flush(output);
	while (!output->ended && lines_bytes(&output->lines, &length)) {
		int ret = push(output);

		if (ret == 0)
			break;
		if (ret != -EAGAIN || out_of_time(output)) {
			set_failure(output, -ETIMEDOUT); /* unless something else has failed */
			give_up(output);
			break;
		}
		outlet_wait(&output->outlet, WAIT_MS);
	}
	output->ended = true;
	/* that nobody reads is no failure where there was nothing to be read */
	if (output->live && export_output_lost(output) == 0)
		set_failure(output, 0);

	int ret = outlet_close(&output->outlet);

	if (ret < 0)
		set_failure(output, ret);
}

int export_output_close(struct export_output *output, struct error *error)
{
	int ret;

	if (!output)
		return 0;
	if (!output->ended || output->outlet.fd >= 0)
		export_output_end(output);
	ret = output->failure;
	if (ret < 0)
		*error = output->state.why;
	destroy(output);
	return ret;
}
