/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/capture_files.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <rte_mbuf.h>

#include "base/mailbox.h"
#include "base/text.h"
#include "traffic/capture_write.h"

/* Copies of one worker that are taken at once. */
#define COPIES_AT_ONCE 64
/* So long the thread sleeps when no copy is there. */
#define PAUSE_NS 2000000
#define NAME_MAX_SHOWN 120

struct capture_file {
	const char *path; /* the configuration's */
	struct capture_writer *writer;
	uint64_t copies; /* that came for it */
	bool said;	 /* that it cannot be written */
};

struct capture_files {
	unsigned n;
	struct capture_file file[PLANE_MAX_CAPTURES];
	struct plane *plane;
	uint64_t origin_us; /* Unix time of the run's clock 0 */
	capture_files_say_fn say;
	void *say_context;
	pthread_t thread;
	bool runs;
	atomic_bool stop;
};

/* Two writers of one file would write over each other. */
static int check_apart(const struct capture_files *files, const char *path, struct error *error)
{
	struct stat status, other;
	char name[NAME_MAX_SHOWN];

	if (stat(path, &status) < 0 || !S_ISREG(status.st_mode))
		return 0;
	for (unsigned i = 0; i < files->n; i++)
		if (stat(files->file[i].path, &other) == 0 && other.st_dev == status.st_dev &&
			other.st_ino == status.st_ino)
			return error_set(error, -EINVAL, "%s: two capture files are this one",
				text_printable(name, sizeof(name), path));
	return 0;
}

int capture_files_open(
	struct capture_files **files, char *const *paths, unsigned n, struct error *error)
{
	struct capture_files *opened = calloc(1, sizeof(*opened));
	int ret = 0;

	if (opened == NULL)
		return error_set(error, -ENOMEM, "no memory for capture files");
	for (; ret == 0 && opened->n < n; opened->n++) {
		struct capture_file *file = &opened->file[opened->n];

		file->path = paths[opened->n];
		ret = check_apart(opened, file->path, error);
		if (ret == 0)
			ret = capture_writer_open(&file->writer, file->path, error);
	}
	if (ret < 0) {
		for (unsigned i = 0; i < opened->n; i++)
			capture_writer_close(opened->file[i].writer);
		free(opened);
		return ret;
	}
	*files = opened;
	return 0;
}

/* Once for each file. */
static void say_failed(struct capture_files *files, struct capture_file *file, int code)
{
	char line[NAME_MAX_SHOWN + 128], name[NAME_MAX_SHOWN];

	if (file->said)
		return;
	file->said = true;
	snprintf(line, sizeof(line), "capture %s: %s; copies for it are lost from here on",
		text_printable(name, sizeof(name), file->path), strerror(-code));
	files->say(files->say_context, line);
}

static void write_copy(struct capture_files *files, struct rte_mbuf *copy)
{
	struct capture_file *file = &files->file[copy->port];
	int ret = capture_writer_begin(
		file->writer, files->origin_us + copy->tx_offload, copy->pkt_len);

	for (const struct rte_mbuf *part = copy; ret == 0 && part != NULL; part = part->next)
		ret = capture_writer_add(
			file->writer, rte_pktmbuf_mtod(part, const void *), part->data_len);
	file->copies++;
	if (ret < 0)
		say_failed(files, file, ret);
	rte_pktmbuf_free(copy);
}

/* What workers have copied until now. True: there was something. */
static bool write_copies(struct capture_files *files)
{
	struct rte_mbuf *copies[COPIES_AT_ONCE];
	bool some = false;

	for (unsigned i = 0; i < plane_config(files->plane)->n_workers; i++) {
		struct mailbox *copied = plane_copies(files->plane, i);
		const unsigned n = mailbox_pop(copied, copies, COPIES_AT_ONCE);

		for (unsigned at = 0; at < n; at++)
			write_copy(files, copies[at]);
		some = some || n > 0;
	}
	return some;
}

static void flush_files(struct capture_files *files)
{
	for (unsigned i = 0; i < files->n; i++) {
		struct capture_file *file = &files->file[i];
		const int ret = capture_writer_flush(file->writer);

		if (ret < 0)
			say_failed(files, file, ret);
	}
}

static void *write_files(void *context)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	struct capture_files *files = context;
	bool fresh = false;

	for (;;) {
		/* what came before the stop is there by then */
		const bool stop = atomic_load_explicit(&files->stop, memory_order_acquire);

		if (write_copies(files)) {
			fresh = true;
			continue;
		}
		if (fresh)
			flush_files(files);
		fresh = false;
		if (stop)
			return NULL;
		nanosleep(&pause, NULL);
	}
}

int capture_files_start(struct capture_files *files, struct plane *plane, capture_files_say_fn say,
	void *context, struct error *error)
{
	files->plane = plane;
	files->origin_us = plane_origin_us(plane);
	files->say = say;
	files->say_context = context;
	int ret = pthread_create(&files->thread, NULL, write_files, files);

	if (ret != 0)
		return error_set(error, -ret, "no thread for capture files: %s", strerror(ret));
	files->runs = true;
	return 0;
}

static void tell_file(const struct capture_files *files, struct capture_file *file)
{
	char line[NAME_MAX_SHOWN + 128], name[NAME_MAX_SHOWN];
	char written[TEXT_NUMBER_MAX], lost[TEXT_NUMBER_MAX];
	const uint64_t frames = capture_writer_frames(file->writer);

	snprintf(line, sizeof(line), "capture %s: %s packets written, %s lost",
		text_printable(name, sizeof(name), file->path), text_grouped(written, frames),
		text_grouped(lost, file->copies - frames));
	files->say(files->say_context, line);
}

void capture_files_destroy(struct capture_files *files)
{
	if (files == NULL)
		return;
	if (files->runs) {
		atomic_store_explicit(&files->stop, true, memory_order_release);
		pthread_join(files->thread, NULL);
	}
	if (files->runs)
		flush_files(files);
	for (unsigned i = 0; i < files->n; i++) {
		if (files->runs)
			tell_file(files, &files->file[i]);
		capture_writer_close(files->file[i].writer);
	}
	free(files);
}
