/* SPDX-License-Identifier: BSD-3-Clause */
#include "export/news.h"

#include "base/text.h"

static struct error *next_line(struct export_news *news)
{
	return &news->lines[news->n_lines++];
}

static void tell_reopening(
	struct export_news *news, const struct export_output_state *state, const char *name)
{
	if (state->n_not_reopened != news->n_not_reopened)
		error_set(next_line(news), 0, "%s; writing goes on to what was open",
			state->not_reopened.text);
	else if (state->n_reopened != news->n_reopened)
		error_set(next_line(news), 0, "%s: opened anew", name);
	news->n_not_reopened = state->n_not_reopened;
	news->n_reopened = state->n_reopened;
}

/* A failure says why, and is told once in a trouble; that records are lost is told when it begins. */
static void tell_trouble(
	struct export_news *news, const struct export_output_state *state, const char *name)
{
	if (state->n_failures != news->n_failures && !news->told_failure) {
		news->told_failure = true;
		error_set(next_line(news), 0, "%s; trying again, and counting what is lost",
			state->why.text);
	} else if (!news->trouble && name[0] != '\0') {
		error_set(next_line(news), 0,
			"%s: flows end faster than their records can be written, and some are lost",
			name);
	} else if (!news->trouble) {
		error_set(next_line(news), 0,
			"flows end faster than they can be counted, and some are lost");
	}
}

static void tell_end(struct export_news *news, const char *name)
{
	char number[TEXT_NUMBER_MAX];
	uint64_t lost = news->lost_all - news->lost_before;

	text_grouped(number, lost);
	error_set(next_line(news), 0, "%s%s; %s record%s lost", name,
		name[0] != '\0' ? ": writing again" : "flows are all counted again", number,
		lost == 1 ? " was" : "s were");
}

void export_news_look(struct export_news *news, struct exporter *exporter, uint64_t now_us)
{
	const char *name = exporter_output_name(exporter);
	struct export_output_state state;
	struct exporter_totals totals;

	exporter_live_totals(exporter, &totals);
	exporter_output_state(exporter, &state);
	news->n_lines = 0;
	news->lost = exporter_lost(&totals) - news->lost_all;
	tell_reopening(news, &state, name);

	bool trouble = state.failure < 0 || state.n_failures != news->n_failures || news->lost > 0;

	if (trouble) {
		if (!news->trouble)
			news->lost_before = news->lost_all;
		tell_trouble(news, &state, name);
		news->trouble = true;
		news->trouble_us = now_us;
	}
	news->lost_all += news->lost;
	news->n_failures = state.n_failures;
	if (news->trouble && now_us - news->trouble_us >= EXPORT_NEWS_CALM_US) {
		news->trouble = false;
		news->told_failure = false;
		tell_end(news, name);
	}
}
