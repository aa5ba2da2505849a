/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/plot.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Of the picture, in its own units. */
#define WIDTH 1000
#define HEIGHT 800
#define TOP 92
#define PANEL_WIDTH 410
#define PANEL_HEIGHT 270
#define PANEL_LEFT 68 /* left of it, for the axis */
#define PANEL_STEP_X 490
#define PANEL_STEP_Y 354

struct point {
	double x, y;
};

struct line {
	unsigned n;
	struct point point[PLOT_MAX_POINTS];
};

struct plot {
	char *path;
	FILE *file;
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
	plot->path = strdup(path);
	/* what is there stays until there is something better */
	plot->file = fopen(path, "ae");
	if (plot->path == NULL || plot->file == NULL) {
		int ret = error_set(error, -errno, "--plot %s: %s", path, strerror(errno));

		free(plot->path);
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

/* ---- text ---- */

static void write_escaped(FILE *file, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '&')
			fputs("&amp;", file);
		else if (*text == '<')
			fputs("&lt;", file);
		else if (*text == '>')
			fputs("&gt;", file);
		else
			fputc((unsigned char)*text < ' ' ? ' ' : *text, file);
	}
}

static void write_text(FILE *file, const char *class, double x, double y, const char *text)
{
	fprintf(file, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, x, y);
	write_escaped(file, text);
	fputs("</text>\n", file);
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

static void write_axes(FILE *file, const struct scale *x, const struct scale *y)
{
	static const double steps[] = {1, 2, 5};
	char text[32];

	for (int power = (int)floor(x->low); power <= (int)ceil(x->high); power++) {
		double value = pow(10, power);

		if (log10(value) < x->low || log10(value) > x->high)
			continue;
		fprintf(file, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>\n", at(x, value),
			y->from, y->to);
		number_text(text, sizeof(text), value);
		write_text(file, "tick", at(x, value), y->from + 16, text);
	}
	for (int power = (int)floor(y->low); power <= (int)ceil(y->high); power++) {
		for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
			double value = steps[i] * pow(10, power);

			if (log10(value) < y->low || log10(value) > y->high)
				continue;
			fprintf(file, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>\n", x->from,
				at(y, value), x->to);
			number_text(text, sizeof(text), value);
			write_text(file, "left", x->from - 6, at(y, value) + 4, text);
		}
	}
	fprintf(file, "<path class=\"axis\" d=\"M%.1f %.1fV%.1fH%.1f\"/>\n", x->from, y->to,
		y->from, x->to);
	write_text(file, "tick", (x->from + x->to) / 2, y->from + 34, "flows");
	fprintf(file,
		"<text class=\"tick\" transform=\"translate(%.1f %.1f) rotate(-90)\">"
		"TSC cycles</text>\n",
		x->from - 48, (y->from + y->to) / 2);
}

static void write_line(FILE *file, const char *name, unsigned series, const struct line *line,
	const struct scale *x, const struct scale *y)
{
	fprintf(file, "<g class=\"series s%u\"><title>", series);
	write_escaped(file, name);
	fputs("</title><polyline points=\"", file);
	for (unsigned i = 0; i < line->n; i++)
		fprintf(file, "%s%.1f,%.1f", i == 0 ? "" : " ", at(x, line->point[i].x),
			at(y, line->point[i].y));
	fputs("\"/>\n", file);
	for (unsigned i = 0; i < line->n; i++)
		fprintf(file,
			"<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"><title>%.0f flows: %.1f "
			"cycles</title></circle>\n",
			at(x, line->point[i].x), at(y, line->point[i].y), line->point[i].x,
			line->point[i].y);
	fputs("</g>\n", file);
}

static void write_panel(const struct plot *plot, unsigned panel)
{
	double left = PANEL_LEFT + PANEL_STEP_X * (panel % 2);
	unsigned down = panel / 2;
	double top = TOP + 24 + PANEL_STEP_Y * down;
	struct scale x = {.from = left, .to = left + PANEL_WIDTH};
	struct scale y = {.from = top + PANEL_HEIGHT, .to = top};

	fprintf(plot->file, "<g class=\"panel\">\n");
	write_text(plot->file, "name", left, top - 8, plot->panel[panel]);
	if (find_scales(plot, panel, &x, &y)) {
		write_axes(plot->file, &x, &y);
		for (unsigned series = 0; series < plot->n_series; series++)
			if (plot->line[panel][series].n > 0)
				write_line(plot->file, plot->series[series], series,
					&plot->line[panel][series], &x, &y);
	} else {
		write_text(plot->file, "tick", (x.from + x.to) / 2, (y.from + y.to) / 2,
			"not measured");
	}
	fputs("</g>\n", plot->file);
}

/* ---- the picture ---- */

/* Colours by M. Okabe and K. Ito, told apart by nearly everybody, on either ground. */
static const char style[] =
	"<style>\n"
	"text{font:13px sans-serif;fill:#222}\n"
	".title{font-size:18px;font-weight:bold}.name{font-weight:bold}\n"
	".tick{text-anchor:middle}.left{text-anchor:end}\n"
	".back{fill:#fff}.axis{fill:none;stroke:#444}.grid{stroke:#ddd}\n"
	".series polyline{fill:none;stroke-width:2}.s0 polyline{stroke-width:3.5}\n"
	".s0{stroke:#0072b2;fill:#0072b2}.s1{stroke:#d55e00;fill:#d55e00}\n"
	".s2{stroke:#b07a00;fill:#b07a00}.s3{stroke:#009e73;fill:#009e73}\n"
	".s4{stroke:#b5598f;fill:#b5598f}.s5{stroke:#777;fill:#777}\n"
	".s6{stroke:#8a6d3b;fill:#8a6d3b}.s7{stroke:#4b0082;fill:#4b0082}\n"
	"circle{stroke:none}\n"
	"@media (prefers-color-scheme:dark){text{fill:#ddd}.back{fill:#16181c}\n"
	".axis{stroke:#aaa}.grid{stroke:#33363c}.s0{stroke:#56b4e9;fill:#56b4e9}\n"
	".s1{stroke:#f08a3c;fill:#f08a3c}.s2{stroke:#f0c040;fill:#f0c040}\n"
	".s7{stroke:#b48cff;fill:#b48cff}}\n"
	"</style>\n";

static void write_legend(const struct plot *plot)
{
	double x = PANEL_LEFT;

	fputs("<g class=\"legend\">\n", plot->file);
	for (unsigned series = 0; series < plot->n_series; series++) {
		fprintf(plot->file,
			"<g class=\"s%u\"><path d=\"M%.1f 75h24\" stroke-width=\"3\"/>"
			"<circle cx=\"%.1f\" cy=\"75\" r=\"3.5\"/></g>\n",
			series, x, x + 12);
		write_text(plot->file, "of", x + 30, 79, plot->series[series]);
		x += 56 + 8.0 * (double)strlen(plot->series[series]);
	}
	fputs("</g>\n", plot->file);
}

static void write_picture(const struct plot *plot, const char *title, const char *machine)
{
	char date[32];
	time_t now = time(NULL);
	struct tm tm;

	strftime(date, sizeof(date), "%Y-%m-%d", gmtime_r(&now, &tm));
	fprintf(plot->file,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
		"height=\"%d\">\n",
		WIDTH, HEIGHT, WIDTH, HEIGHT);
	fputs(style, plot->file);
	fprintf(plot->file, "<rect class=\"back\" width=\"%d\" height=\"%d\"/>\n", WIDTH, HEIGHT);
	write_text(plot->file, "title", PANEL_LEFT, 30, title);
	fprintf(plot->file, "<text x=\"%d\" y=\"52\">%s, ", PANEL_LEFT, date);
	write_escaped(plot->file, machine);
	fputs("</text>\n", plot->file);
	write_legend(plot);
	for (unsigned panel = 0; panel < plot->n_panels; panel++)
		write_panel(plot, panel);
	fputs("</svg>\n", plot->file);
}

int plot_finish(struct plot *plot, const char *title, const char *machine, struct error *error)
{
	int ret = 0;

	/* a pipe has nothing that would have to go */
	if (ftruncate(fileno(plot->file), 0) != 0 && errno != EINVAL)
		ret = -errno;
	write_picture(plot, title, machine);
	if (fflush(plot->file) != 0 || ferror(plot->file))
		ret = -errno;
	if (fclose(plot->file) != 0 && ret == 0)
		ret = -errno;
	if (ret < 0)
		error_set(error, ret, "--plot %s: %s", plot->path, strerror(-ret));
	free(plot->path);
	free(plot);
	return ret;
}
