/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/when.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define US 1000000

bool when_parse(const char *text, int64_t *unix_us)
{
	static const char form[] = "0000-00-00T00:00:00.000000Z";
	struct tm tm = {.tm_isdst = 0};
	int us;

	/* digits where there are digits: so no number below is longer, or has a sign */
	for (unsigned i = 0; i < sizeof(form); i++) {
		bool digit = text[i] >= '0' && text[i] <= '9';

		if (form[i] == '0' ? !digit : text[i] != form[i])
			return false;
	}
	if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d.%6dZ", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
		    &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &us) != 7)
		return false;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	*unix_us = (int64_t)timegm(&tm) * US + us;
	return true;
}

static void local(int64_t unix_us, struct tm *tm, int *us)
{
	time_t seconds = (time_t)(unix_us / US);

	*us = (int)(unix_us % US);
	if (*us < 0) {
		*us += US;
		seconds--;
	}
	localtime_r(&seconds, tm);
}

const char *when_short(char buffer[WHEN_MAX], int64_t unix_us)
{
	struct tm tm;
	int us;

	local(unix_us, &tm, &us);
	size_t length = strftime(buffer, WHEN_MAX, "%m-%d %H:%M:%S", &tm);

	snprintf(buffer + length, WHEN_MAX - length, ".%03d", us / 1000);
	return buffer;
}

const char *when_full(char buffer[WHEN_MAX], int64_t unix_us)
{
	struct tm tm;
	int us;

	local(unix_us, &tm, &us);
	size_t length = strftime(buffer, WHEN_MAX, "%Y-%m-%d %H:%M:%S", &tm);

	snprintf(buffer + length, WHEN_MAX - length, ".%06d", us);
	return buffer;
}

const char *when_clock(char buffer[WHEN_MAX], int64_t us)
{
	unsigned long long seconds = us > 0 ? (unsigned long long)us / US : 0;

	if (seconds < 360000)
		snprintf(buffer, WHEN_MAX, "%02llu:%02llu:%02llu", seconds / 3600,
			seconds / 60 % 60, seconds % 60);
	else
		snprintf(buffer, WHEN_MAX, "%llud %02lluh", seconds / 86400, seconds / 3600 % 24);
	return buffer;
}

const char *when_span(char buffer[WHEN_MAX], uint64_t us)
{
	static const struct {
		uint64_t below;	     /* seconds */
		unsigned unit, part; /* seconds of each */
		const char *unit_name, *part_name;
	} spans[] = {
		{3600, 60, 1, "min", "s"},
		{86400, 3600, 60, "h", "min"},
		{UINT64_MAX, 86400, 3600, "d", "h"},
	};
	unsigned long long seconds = us / US;
	unsigned i = 0;

	if (us < 1000)
		snprintf(buffer, WHEN_MAX, "%u us", (unsigned)us);
	else if (us < US)
		snprintf(buffer, WHEN_MAX, "%u ms", (unsigned)(us / 1000));
	else if (seconds < 120 && us % US >= US / 10)
		snprintf(buffer, WHEN_MAX, "%llu.%u s", seconds, (unsigned)(us % US / (US / 10)));
	else if (seconds < 120)
		snprintf(buffer, WHEN_MAX, "%llu s", seconds);
	if (us < 120 * (uint64_t)US)
		return buffer;
	while (seconds >= spans[i].below)
		i++;
	unsigned long long units = seconds / spans[i].unit;
	unsigned long long parts = seconds % spans[i].unit / spans[i].part;

	if (parts > 0)
		snprintf(buffer, WHEN_MAX, "%llu %s %llu %s", units, spans[i].unit_name, parts,
			spans[i].part_name);
	else
		snprintf(buffer, WHEN_MAX, "%llu %s", units, spans[i].unit_name);
	return buffer;
}
