/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/bars.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/picture.h"

/* Of a group's width, what is left between it and the next. */
#define BETWEEN 0.25

struct bar {
	bool is_there;
	double value;
};

struct bars {
	struct picture picture;
	struct bars_names names;
	const char *title, *machine; /* while it is drawn */
	const char *group[BARS_MAX_GROUPS];
	unsigned n_groups;
	bool is_full; /* what is added now belongs to nobody */
	struct bar bar[PICTURE_PANELS][BARS_MAX_GROUPS][BARS_MAX_SERIES];
};

int bars_create(
	struct bars **out, const char *path, const struct bars_names *names, struct error *error)
{
	struct bars *bars = calloc(1, sizeof(*bars));

	*out = NULL;
	if (bars == NULL)
		return error_set(error, -ENOMEM, "--plot: %s", strerror(ENOMEM));
	int ret = picture_open(&bars->picture, path, error);

	if (ret < 0) {
		free(bars);
		return ret;
	}
	bars->names = *names;
	*out = bars;
	return 0;
}

void bars_group(struct bars *bars, const char *name)
{
	bars->is_full = bars->n_groups == BARS_MAX_GROUPS;
	if (!bars->is_full)
		bars->group[bars->n_groups++] = name;
}

void bars_add(struct bars *bars, unsigned panel, unsigned series, double value)
{
	if (bars->is_full || bars->n_groups == 0 || panel >= bars->names.n_panels ||
		series >= bars->names.n_series || !isfinite(value))
		return;
	bars->bar[panel][bars->n_groups - 1][series] = (struct bar){true, fmax(value, 0)};
}

/* The largest of a panel; 0: nothing was measured. */
static double most_of(const struct bars *bars, unsigned panel)
{
	double most = 0;

	for (unsigned group = 0; group < bars->n_groups; group++)
		for (unsigned series = 0; series < bars->names.n_series; series++)
			most = fmax(most, bars->bar[panel][group][series].value);
	return most;
}

/* Beside each other, those that are there in the middle of the group's place. */
static void write_group(const struct bars *bars, unsigned panel, unsigned group,
	const struct picture_panel *place, double most)
{
	const struct picture *picture = &bars->picture;
	const struct bar *bar = bars->bar[panel][group];
	const double wide = (place->right - place->left) / bars->n_groups;
	const double each = wide * (1 - BETWEEN) / bars->names.n_series;
	unsigned n = 0;

	for (unsigned i = 0; i < bars->names.n_series; i++)
		n += bar[i].is_there;
	double x = place->left + wide * (group + 0.5) - each * n / 2;

	for (unsigned i = 0; i < bars->names.n_series; i++) {
		double high = most == 0 ? 0 : (place->bottom - place->top) * bar[i].value / most;
		char text[32];

		if (!bar[i].is_there)
			continue;
		snprintf(text, sizeof(text), bar[i].value < 9.95 ? "%.1f" : "%.0f", bar[i].value);
		fprintf(picture->file,
			"<rect class=\"s%u\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\">",
			i, x + 1, place->bottom - high, each - 2, high);
		picture_title(picture, bars->names.series[i]);
		fputs("</rect>\n", picture->file);
		picture_text(picture, "bar", x + each / 2, place->bottom - high - 4, text);
		x += each;
	}
	picture_text(picture, "tick", place->left + wide * (group + 0.5), place->bottom + 16,
		bars->group[group]);
}

static void draw(const struct picture *picture, const void *context)
{
	const struct bars *bars = context;

	picture_begin(picture, bars->title, bars->machine);
	picture_legend(picture, bars->names.series, bars->names.n_series);
	for (unsigned panel = 0; panel < bars->names.n_panels; panel++) {
		fputs("<g class=\"panel\">\n", picture->file);
		struct picture_panel place =
			picture_panel(picture, panel, bars->names.panels[panel]);

		/* for the value of the highest one */
		place.top += 16;
		for (unsigned group = 0; group < bars->n_groups; group++)
			write_group(bars, panel, group, &place, most_of(bars, panel));
		fprintf(picture->file, "<path class=\"axis\" d=\"M%.1f %.1fH%.1f\"/>\n</g>\n",
			place.left, place.bottom, place.right);
	}
}

int bars_finish(struct bars *bars, const char *title, const char *machine, struct error *error)
{
	bars->title = title;
	bars->machine = machine;
	int ret = picture_draw(&bars->picture, draw, bars, error);

	free(bars);
	return ret;
}
