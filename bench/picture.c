/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/picture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PANEL_TOP 116
#define PANEL_WIDTH 410
#define PANEL_HEIGHT 270
#define PANEL_STEP_X 490
#define PANEL_STEP_Y 354

int picture_open(struct picture *picture, const char *path, struct error *error)
{
	picture->path = strdup(path);
	if (picture->path == NULL)
		return error_set(error, -ENOMEM, "--plot: %s", strerror(ENOMEM));
	/* what is there stays until there is something better */
	picture->file = fopen(path, "ae");
	if (picture->file != NULL)
		return 0;
	int ret = error_set(error, -errno, "--plot %s: %s", path, strerror(errno));

	free(picture->path);
	return ret;
}

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

void picture_text(
	const struct picture *picture, const char *class, double x, double y, const char *text)
{
	fprintf(picture->file, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, x, y);
	write_escaped(picture->file, text);
	fputs("</text>\n", picture->file);
}

void picture_upright(const struct picture *picture, double x, double y, const char *text)
{
	fprintf(picture->file,
		"<text class=\"tick\" transform=\"translate(%.1f %.1f) rotate(-90)\">", x, y);
	write_escaped(picture->file, text);
	fputs("</text>\n", picture->file);
}

void picture_title(const struct picture *picture, const char *text)
{
	fputs("<title>", picture->file);
	write_escaped(picture->file, text);
	fputs("</title>", picture->file);
}

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
	"circle{stroke:none}.bar{text-anchor:middle;font-size:11px}\n"
	"@media (prefers-color-scheme:dark){text{fill:#ddd}.back{fill:#16181c}\n"
	".axis{stroke:#aaa}.grid{stroke:#33363c}.s0{stroke:#56b4e9;fill:#56b4e9}\n"
	".s1{stroke:#f08a3c;fill:#f08a3c}.s2{stroke:#f0c040;fill:#f0c040}\n"
	".s7{stroke:#b48cff;fill:#b48cff}}\n"
	"</style>\n";

void picture_begin(const struct picture *picture, const char *title, const char *machine)
{
	char date[32];
	time_t now = time(NULL);
	struct tm tm;

	strftime(date, sizeof(date), "%Y-%m-%d", gmtime_r(&now, &tm));
	fprintf(picture->file,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
		"height=\"%d\">\n",
		PICTURE_WIDTH, PICTURE_HEIGHT, PICTURE_WIDTH, PICTURE_HEIGHT);
	fputs(style, picture->file);
	fprintf(picture->file, "<rect class=\"back\" width=\"%d\" height=\"%d\"/>\n", PICTURE_WIDTH,
		PICTURE_HEIGHT);
	picture_text(picture, "title", PICTURE_LEFT, 30, title);
	fprintf(picture->file, "<text x=\"%d\" y=\"52\">%s, ", PICTURE_LEFT, date);
	write_escaped(picture->file, machine);
	fputs("</text>\n", picture->file);
}

void picture_legend(const struct picture *picture, const char *const *names, unsigned n)
{
	double x = PICTURE_LEFT;

	fputs("<g class=\"legend\">\n", picture->file);
	for (unsigned i = 0; i < n; i++) {
		fprintf(picture->file,
			"<g class=\"s%u\"><path d=\"M%.1f 75h24\" stroke-width=\"3\"/>"
			"<circle cx=\"%.1f\" cy=\"75\" r=\"3.5\"/></g>\n",
			i, x, x + 12);
		picture_text(picture, "of", x + 30, 79, names[i]);
		x += 56 + 8.0 * (double)strlen(names[i]);
	}
	fputs("</g>\n", picture->file);
}

struct picture_panel picture_panel(const struct picture *picture, unsigned number, const char *name)
{
	const unsigned down = number / 2;
	const double left = PICTURE_LEFT + PANEL_STEP_X * (number % 2);
	const double top = PANEL_TOP + PANEL_STEP_Y * down;

	picture_text(picture, "name", left, top - 8, name);
	return (struct picture_panel){left, left + PANEL_WIDTH, top, top + PANEL_HEIGHT};
}

int picture_draw(struct picture *picture, void (*draw)(const struct picture *, const void *),
	const void *context, struct error *error)
{
	int ret = 0;

	/* a pipe has nothing that would have to go */
	if (ftruncate(fileno(picture->file), 0) != 0 && errno != EINVAL)
		ret = -errno;
	draw(picture, context);
	fputs("</svg>\n", picture->file);
	if (fflush(picture->file) != 0 || ferror(picture->file))
		ret = -errno;
	if (fclose(picture->file) != 0 && ret == 0)
		ret = -errno;
	if (ret < 0)
		error_set(error, ret, "--plot %s: %s", picture->path, strerror(-ret));
	free(picture->path);
	return ret;
}
