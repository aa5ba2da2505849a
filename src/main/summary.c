/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/summary.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "base/say.h"
#include "base/text.h"

/* A name longer than this loses its beginning: what tells files apart is mostly at the end. */
#define NAME_COLUMNS 48

/* Text laid out piece by piece; a piece that does not fit begins a new line. */
struct layout {
	FILE *stream;
	unsigned column;
};

__attribute__((format(printf, 3, 4))) static void put(
	struct layout *layout, const char *gap, const char *format, ...)
{
	char piece[SUMMARY_COLUMNS - 1]; /* behind the two blanks of a new line */
	va_list args;

	va_start(args, format);
	vsnprintf(piece, sizeof(piece), format, args);
	va_end(args);

	unsigned length = (unsigned)(strlen(gap) + strlen(piece));

	if (layout->column > 0 && layout->column + length > SUMMARY_COLUMNS) {
		fputs("\n  ", layout->stream);
		layout->column = 2 + (unsigned)strlen(piece);
	} else {
		fputs(gap, layout->stream);
		layout->column += length;
	}
	fputs(piece, layout->stream);
}

static void end_line(struct layout *layout)
{
	fputc('\n', layout->stream);
	layout->column = 0;
}

static void put_name(struct layout *layout, const struct replay_summary *summary)
{
	const char *name = summary->name;
	char printable[NAME_COLUMNS + 1];

	if (!name) {
		put(layout, "", "%u captures", summary->n_captures);
		return;
	}
	size_t length = strlen(name);
	bool cut = length > NAME_COLUMNS;

	if (cut)
		name += length - (NAME_COLUMNS - 3);
	/* not from the middle of a character */
	while (cut && (*name & 0xc0) == 0x80)
		name++;
	put(layout, "", "%s%s", cut ? "..." : "",
		text_printable(printable, sizeof(printable), name));
}

/* "500 flows (498 tcp, 2 udp)" */
static void put_flows(struct layout *layout, const struct replay_summary *summary)
{
	char number[TEXT_NUMBER_MAX];
	unsigned left = 0;

	put(layout, "  ", "%s flow%s", text_grouped(number, summary->flows),
		say_plural(summary->flows));
	for (unsigned i = 0; i < EXPORTER_N_PROTOCOLS; i++)
		left += summary->flows_by_protocol[i] > 0;
	for (unsigned i = 0, n = 0; i < EXPORTER_N_PROTOCOLS; i++) {
		if (summary->flows_by_protocol[i] == 0)
			continue;
		left--;
		put(layout, " ", "%s%s %s%s", n++ == 0 ? "(" : "",
			text_grouped(number, summary->flows_by_protocol[i]),
			exporter_protocol_name((enum exporter_protocol)i), left > 0 ? "," : ")");
	}
}

static uint64_t count_drops(const struct replay_summary *summary)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < summary->n_drops; i++)
		sum += summary->drops[i].count;
	return sum;
}

static double packets_per_second(const struct replay_summary *summary)
{
	return summary->seconds > 0 ? (double)summary->packets / summary->seconds : 0;
}

static void put_drops(struct layout *layout, const struct replay_summary *summary)
{
	char number[TEXT_NUMBER_MAX];

	if (count_drops(summary) == 0)
		return;
	put(layout, "", "  dropped:");
	for (unsigned i = 0, n = 0; i < summary->n_drops; i++)
		if (summary->drops[i].count > 0)
			put(layout, n++ > 0 ? "  " : " ", "%s %s", summary->drops[i].name,
				text_grouped(number, summary->drops[i].count));
	end_line(layout);
}

static void put_ends(struct layout *layout, const struct replay_summary *summary)
{
	char number[TEXT_NUMBER_MAX];
	unsigned n = 0;

	put(layout, "", "  ended:");
	for (unsigned i = 0; i < FLOW_N_ENDS; i++)
		if (summary->records_by_end[i] > 0)
			put(layout, n++ > 0 ? "  " : " ", "%s %s", flow_end_name((enum flow_end)i),
				text_grouped(number, summary->records_by_end[i]));
	if (n == 0)
		put(layout, " ", "none");
}

/* Shown only where there is something to say. */
static void put_rare(struct layout *layout, const char *what, uint64_t count)
{
	char number[TEXT_NUMBER_MAX];

	if (count > 0)
		put(layout, "      ", "%s: %s", what, text_grouped(number, count));
}

static void put_time_back(struct layout *layout, const struct replay_summary *summary)
{
	const uint64_t us = summary->time_back_most_us;
	char number[TEXT_NUMBER_MAX], seconds[TEXT_NUMBER_MAX];

	if (summary->time_back > 0)
		put(layout, "      ", "time went back: %s time%s, by %s.%06u s at most",
			text_grouped(number, summary->time_back), say_plural(summary->time_back),
			text_grouped(seconds, us / CLOCK_US_PER_S),
			(unsigned)(us % CLOCK_US_PER_S));
}

void summary_text(FILE *stream, const struct replay_summary *summary)
{
	struct layout layout = {.stream = stream};
	char number[TEXT_NUMBER_MAX], other[TEXT_NUMBER_MAX];

	put_name(&layout, summary);
	put(&layout, "  ", "%s packet%s", text_grouped(number, summary->packets),
		say_plural(summary->packets));
	put(&layout, "  ", "%s", text_bytes(number, summary->bytes));
	put_flows(&layout, summary);
	put(&layout, "  ", "%s dropped", text_grouped(number, count_drops(summary)));
	put(&layout, "  ", "in %.2f s (%spps)", summary->seconds,
		text_rate(number, packets_per_second(summary)));
	end_line(&layout);

	put_ends(&layout, summary);
	put(&layout, "      ", "not tied: %s fragment%s, %s ICMP error%s",
		text_grouped(number, summary->fragments_untied),
		say_plural(summary->fragments_untied), text_grouped(other, summary->icmp_untied),
		say_plural(summary->icmp_untied));
	put(&layout, "      ", "non-IP: %s", text_grouped(number, summary->non_ip));
	put_rare(&layout, "outside the TCP window", summary->tcp_odd);
	put_time_back(&layout, summary);
	put_rare(&layout, "delivered", summary->delivered);
	put_rare(&layout, "held", summary->held);
	put_rare(&layout, "records lost", summary->records_lost);
	end_line(&layout);
	put_drops(&layout, summary);
}
