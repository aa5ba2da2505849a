/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/progress.h"

#include <unistd.h>

#include "base/monotonic.h"
#include "base/text.h"

#define FIRST_US 500000
#define AGAIN_US 200000

/* Back to the line's start, and clear from there: ECMA-48 EL, which every terminal has. */
#define ERASE "\r\033[K"

void progress_start(struct progress *progress, FILE *stream, uint64_t size, bool wanted)
{
	uint64_t now = monotonic_us();

	*progress = (struct progress){
		.stream = stream,
		.on = wanted && isatty(fileno(stream)),
		.size = size,
		.begin_us = now,
		.next_us = now + FIRST_US,
	};
}

void progress_update(struct progress *progress, uint64_t position, uint64_t packets)
{
	char count[TEXT_NUMBER_MAX], rate[TEXT_NUMBER_MAX], bytes[TEXT_NUMBER_MAX];

	if (!progress->on)
		return;
	uint64_t now = monotonic_us();

	if (now < progress->next_us)
		return;
	progress->next_us = now + AGAIN_US;
	progress->shown = true;
	fputs(ERASE, progress->stream);
	if (progress->size > 0 && position <= progress->size)
		fprintf(progress->stream, "%3.0f %%",
			100.0 * (double)position / (double)progress->size);
	else
		fputs(text_bytes(bytes, position), progress->stream);
	fprintf(progress->stream, "  %s packets  %spps", text_grouped(count, packets),
		text_rate(rate, (double)packets * 1e6 / (double)(now - progress->begin_us)));
	fflush(progress->stream);
}

void progress_clear(struct progress *progress)
{
	if (!progress->shown)
		return;
	progress->shown = false;
	fputs(ERASE, progress->stream);
	fflush(progress->stream);
}
