/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What is to be told about the records while an engine runs: a line when some begin to be lost or can
 * not be written, with the reason; a line when that is over, with how many were lost; and a line for
 * every time that the file was to be opened anew. Trouble that comes and goes is told as one.
 *
 * Whoever runs the engine owns the struct, zero at first, and looks every now and then, once a second
 * say. One thread, that of exporter_live_totals().
 */

#include <stdbool.h>
#include <stdint.h>

#include "export/exporter.h"

#define EXPORT_NEWS_LINES 2

struct export_news {
	/* of the last look */
	uint64_t lost; /* so many more records could not be written */
	unsigned n_lines;
	struct error lines[EXPORT_NEWS_LINES];
	/* kept between looks */
	bool trouble;
	bool told_failure;
	uint64_t trouble_us;  /* when there last was any */
	uint64_t lost_all;    /* as of the last look */
	uint64_t lost_before; /* when the trouble began */
	unsigned n_failures;
	unsigned n_reopened;
	unsigned n_not_reopened;
};

/* After so long without any the trouble is over. */
#define EXPORT_NEWS_CALM_US UINT64_C(2000000)

/* `now_us` is any clock that does not run back. */
void export_news_look(struct export_news *news, struct exporter *exporter, uint64_t now_us);
