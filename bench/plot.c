/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/plot.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/picture.h"

struct point {
	double x, y;
};

struct line {
	unsigned n;
	struct point point[PLOT_MAX_POINTS];
};

struct plot {
	struct picture picture;
	const char *title, *machine; /* while it is drawn */
	const char *panel[PLOT_MAX_PANELS];
	unsigned n_panels;
	char series[PLOT_MAX_SERIES][32];
	unsigned n_series;
	struct line line[PLOT_MAX_PANELS][PLOT_MAX_SERIES];
};

/* What a panel shows: powers of ten at either end. */
struct scale {
	double low, high; /* logarithms */
	double from, to;  /* where they lie in the picture */
};

int plot_create(struct plot **out, const char *path, const char *const *panels, unsigned n_panels,
	struct error *error)
{
	struct plot *plot = calloc(1, sizeof(*plot));

	*out = NULL;
	if (plot == NULL)
		return error_set(error, -ENOMEM, "--plot: %s", strerror(ENOMEM));
	int ret = picture_open(&plot->picture, path, error);

	if (ret < 0) {
		free(plot);
		return ret;
	}
	for (unsigned i = 0; i < n_panels && i < PLOT_MAX_PANELS; i++)
		plot->panel[plot->n_panels++] = panels[i];
	*out = plot;
	return 0;
}

static unsigned series_of(struct plot *plot, const char *name)
{
	unsigned series = 0;

	while (series < plot->n_series && strcmp(plot->series[series], name) != 0)
		series++;
	if (series == plot->n_series && series < PLOT_MAX_SERIES)
		snprintf(plot->series[plot->n_series++], sizeof(plot->series[0]), "%s", name);
	return series;
}

void plot_add(struct plot *plot, const char *panel, const char *series, double x, double y)
{
	for (unsigned i = 0; i < plot->n_panels; i++) {
		if (strcmp(plot->panel[i], panel) != 0)
			continue;
		unsigned number = series_of(plot, series);

		if (number == PLOT_MAX_SERIES || !(x > 0 && y > 0))
			return;
		struct line *line = &plot->line[i][number];

		for (unsigned j = 0; j < line->n; j++)
			if (line->point[j].x == x)
				return;
		if (line->n < PLOT_MAX_POINTS)
			line->point[line->n++] = (struct point){x, y};
	}
}

/* 1 k, 10 M, 300: of what is 1, 2 or 5 times a power of ten. */
static void number_text(char *text, size_t size, double number)
{
	if (number >= 1e6)
		snprintf(text, size, "%g M", number / 1e6);
	else if (number >= 1e3)
		snprintf(text, size, "%g k", number / 1e3);
	else
		snprintf(text, size, "%g", number);
}

/* ---- a panel ---- */

static double at(const struct scale *scale, double value)
{
	double share = (log10(value) - scale->low) / (scale->high - scale->low);

	return scale->from + share * (scale->to - scale->from);
}

/* From the least to the most of all points of a panel; false when there are none. */
static bool find_scales(const struct plot *plot, unsigned panel, struct scale *x, struct scale *y)
{
	double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};

	for (unsigned series = 0; series < plot->n_series; series++) {
		const struct line *line = &plot->line[panel][series];

		for (unsigned i = 0; i < line->n; i++) {
			low[0] = fmin(low[0], log10(line->point[i].x));
			high[0] = fmax(high[0], log10(line->point[i].x));
			low[1] = fmin(low[1], log10(line->point[i].y));
			high[1] = fmax(high[1], log10(line->point[i].y));
		}
	}
	if (!(low[0] <= high[0]))
		return false;
	/* a little air on all sides, and never nothing between the ends */
	x->low = low[0] - 0.1;
	x->high = high[0] + 0.1;
	y->low = low[1] - 0.1;
	y->high = fmax(high[1] + 0.1, y->low + 0.7);
	return true;
}

static void write_axes(const struct picture *picture, const struct scale *x, const struct scale *y)
{
	static const double steps[] = {1, 2, 5};
	char text[32];

	for (int power = (int)floor(x->low); power <= (int)ceil(x->high); power++) {
		double value = pow(10, power);

		if (log10(value) < x->low || log10(value) > x->high)
			continue;
		fprintf(picture->file, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>\n",
			at(x, value), y->from, y->to);
		number_text(text, sizeof(text), value);
		picture_text(picture, "tick", at(x, value), y->from + 16, text);
	}
	for (int power = (int)floor(y->low); power <= (int)ceil(y->high); power++) {
		for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
			double value = steps[i] * pow(10, power);

			if (log10(value) < y->low || log10(value) > y->high)
				continue;
			fprintf(picture->file, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>\n",
				x->from, at(y, value), x->to);
			number_text(text, sizeof(text), value);
			picture_text(picture, "left", x->from - 6, at(y, value) + 4, text);
		}
	}
	fprintf(picture->file, "<path class=\"axis\" d=\"M%.1f %.1fV%.1fH%.1f\"/>\n", x->from,
		y->to, y->from, x->to);
	picture_text(picture, "tick", (x->from + x->to) / 2, y->from + 34, "flows");
	picture_upright(picture, x->from - 48, (y->from + y->to) / 2, "TSC cycles");
}

static void write_line(const struct picture *picture, const char *name, unsigned series,
	const struct line *line, const struct scale *x, const struct scale *y)
{
	fprintf(picture->file, "<g class=\"series s%u\">", series);
	picture_title(picture, name);
	fputs("<polyline points=\"", picture->file);
	for (unsigned i = 0; i < line->n; i++)
		fprintf(picture->file, "%s%.1f,%.1f", i == 0 ? "" : " ", at(x, line->point[i].x),
			at(y, line->point[i].y));
	fputs("\"/>\n", picture->file);
	for (unsigned i = 0; i < line->n; i++)
		fprintf(picture->file,
			"<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"><title>%.0f flows: %.1f "
			"cycles</title></circle>\n",
			at(x, line->point[i].x), at(y, line->point[i].y), line->point[i].x,
			line->point[i].y);
	fputs("</g>\n", picture->file);
}

static void write_panel(const struct plot *plot, unsigned panel)
{
	const struct picture *picture = &plot->picture;

	fprintf(picture->file, "<g class=\"panel\">\n");
	const struct picture_panel place = picture_panel(picture, panel, plot->panel[panel]);
	struct scale x = {.from = place.left, .to = place.right};
	struct scale y = {.from = place.bottom, .to = place.top};

	if (find_scales(plot, panel, &x, &y)) {
		write_axes(picture, &x, &y);
		for (unsigned series = 0; series < plot->n_series; series++)
			if (plot->line[panel][series].n > 0)
				write_line(picture, plot->series[series], series,
					&plot->line[panel][series], &x, &y);
	} else {
		picture_text(
			picture, "tick", (x.from + x.to) / 2, (y.from + y.to) / 2, "not measured");
	}
	fputs("</g>\n", picture->file);
}

static void draw(const struct picture *picture, const void *context)
{
	const struct plot *plot = context;
	const char *names[PLOT_MAX_SERIES];

	for (unsigned i = 0; i < plot->n_series; i++)
		names[i] = plot->series[i];
	picture_begin(picture, plot->title, plot->machine);
	picture_legend(picture, names, plot->n_series);
	for (unsigned panel = 0; panel < plot->n_panels; panel++)
		write_panel(plot, panel);
}

int plot_finish(struct plot *plot, const char *title, const char *machine, struct error *error)
{
	plot->title = title;
	plot->machine = machine;
	int ret = picture_draw(&plot->picture, draw, plot, error);

	free(plot);
	return ret;
}
