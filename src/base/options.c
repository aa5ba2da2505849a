/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/options.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/suggest.h"
#include "base/text.h"

#define FILE_NAME_MAX 160

#define MAX_OPTIONS 32

const char *option_name(const struct option *table, int id)
{
	for (; table->name; table++)
		if (table->val == id)
			return table->name;
	return NULL;
}

int option_bad_value(const char *where, const char *value, const char *wanted, struct error *error)
{
	char word[OPTION_WORD_MAX];

	return error_set(error, -EINVAL, "%s %s: %s", where,
		*value ? text_printable(word, sizeof(word), value) : "\"\"", wanted);
}

/* In YAML 010 is eight, to most people ten: what begins so is no number here. */
static bool leading_zero(const char *text)
{
	return text[0] == '0' && text[1] >= '0' && text[1] <= '9';
}

/* Digits and nothing else; what is too long for the number is out of every range. */
static bool read_number(const char *text, uint64_t *number)
{
	*number = 0;
	if (*text == '\0' || leading_zero(text))
		return false;
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '9')
			return false;
		if (*number < UINT32_MAX)
			*number = *number * 10 + (uint64_t)(*text - '0');
	}
	return true;
}

int option_range(const char *where, const char *value, const char *number, uint32_t min,
	uint32_t max, uint32_t *out, struct error *error)
{
	char grouped[TEXT_NUMBER_MAX], wanted[96];
	uint64_t read;

	if (!read_number(number, &read) || read < min || read > max) {
		snprintf(wanted, sizeof(wanted), "a whole number from %u to %s is needed%s", min,
			text_grouped(grouped, max),
			leading_zero(number) ? ", without leading zeros" : "");
		return option_bad_value(where, value, wanted, error);
	}
	*out = (uint32_t)read;
	return 0;
}

int option_number(const char *where, const char *value, const char *number, uint32_t max,
	uint32_t *out, struct error *error)
{
	return option_range(where, value, number, 1, max, out, error);
}

int option_word(const char *where, const char *value, const char *const *words, unsigned n,
	unsigned *which, struct error *error)
{
	char wanted[96];
	size_t length = 0;

	for (*which = 0; *which < n; (*which)++)
		if (strcmp(value, words[*which]) == 0)
			return 0;
	if (n == 1) {
		snprintf(wanted, sizeof(wanted), "only \"%s\" is known", words[0]);
		return option_bad_value(where, value, wanted, error);
	}
	for (unsigned i = 0; i < n && length < sizeof(wanted); i++) {
		const char *after = i + 1 == n ? " is needed" : i + 2 == n ? " or " : ", ";

		length += (size_t)snprintf(
			wanted + length, sizeof(wanted) - length, "\"%s\"%s", words[i], after);
	}
	return option_bad_value(where, value, wanted, error);
}

static const char *const truths[][2] = {
	{"true", "false"}, {"on", "off"}, {"yes", "no"}, {"on", "off"}};

/* One of `n` pairs; the last one is that which a complaint names. */
static int read_truth(const char *where, const char *value, const char *const (*pairs)[2],
	unsigned n, bool *yes, struct error *error)
{
	unsigned which = 0;
	int ret = -EINVAL;

	for (unsigned i = 0; i < n && ret < 0; i++)
		ret = option_word(where, value, pairs[i], 2, &which, error);
	*yes = which == 0;
	return ret;
}

int option_yes_no(const char *where, const char *value, bool *yes, struct error *error)
{
	return read_truth(where, value, truths, 3, yes, error);
}

int option_on_off(const char *where, const char *value, bool *on, struct error *error)
{
	return read_truth(where, value, truths, 4, on, error);
}

/* The word that is no option, with what it may have been meant to be. */
static int unknown_option(const struct option *table, const char *wrong, struct error *error)
{
	const char *names[MAX_OPTIONS];
	char word[OPTION_WORD_MAX];
	unsigned n = 0;

	text_printable(word, sizeof(word), wrong);
	word[strcspn(word, "=")] = '\0';
	for (; table[n].name && n < MAX_OPTIONS; n++) {
		names[n] = table[n].name;
		if (strncmp(word + 2, names[n], strlen(word + 2)) == 0)
			return error_set(error, -EINVAL, "%s: short for several options", word);
	}
	const char *near = suggest(word + 2, names, n);

	return error_set(error, -EINVAL, "%s: no such option%s%s%s", word,
		near ? "; did you mean --" : "", near ? near : "", near ? "?" : "");
}

int option_refused(const struct option *table, int id, char **argv, struct error *error)
{
	const char *known = optopt > UCHAR_MAX ? option_name(table, optopt) : NULL;

	if (id == ':')
		return error_set(error, -EINVAL, "--%s needs a value", known ? known : "?");
	if (known)
		return error_set(error, -EINVAL, "--%s takes no value", known);
	if (optopt != 0)
		return error_set(error, -EINVAL, "-%c: no such option",
			optopt > ' ' && optopt < 0x7f ? optopt : '?');
	return unknown_option(table, argv[optind - 1], error);
}

bool option_is_line(const char *text)
{
	for (const char *at = text; *at != '\0'; at++)
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			return false;
	return !strstr(text, "\xc2\x85") && !strstr(text, "\u2028") && !strstr(text, "\u2029");
}

int option_file_name(const char *where, const char *value, struct error *error)
{
	if (*value == '\0')
		return option_bad_value(where, value, "a file is needed", error);
	if (strcmp(value, "-") == 0)
		return option_bad_value(where, value,
			"a file is needed: standard input and output are not taken; ./- is a file "
			"of this name",
			error);
	return 0;
}

int option_file(const char *where, const char *value, char **name, struct error *error)
{
	char *copy = NULL;

	if (option_file_name(where, value, error) < 0)
		return -EINVAL;
	if (!option_is_line(value))
		return option_bad_value(
			where, value, "control characters are not taken in its name", error);
	if (strcmp(value, "none") != 0) {
		copy = strdup(value);
		if (copy == NULL)
			return error_set(error, -ENOMEM, "no memory for the configuration");
	}
	free(*name);
	*name = copy;
	return 0;
}

static int refuse_file(struct error *error, const char *file, int code, const char *what)
{
	char word[FILE_NAME_MAX];

	return error_set(error, code, "%s: %s", text_printable(word, sizeof(word), file), what);
}

int option_file_lines(const char *file, uint32_t max, uint32_t *lines, struct error *error)
{
	FILE *stream = fopen(file, "re");
	char piece[65536];
	struct stat status;
	size_t n;

	if (stream == NULL)
		return refuse_file(error, file, -errno, strerror(errno));
	*lines = 1;
	if (fstat(fileno(stream), &status) == 0 && !S_ISREG(status.st_mode)) {
		fclose(stream);
		return refuse_file(error, file, -EINVAL, "such a list is read from a file alone");
	}
	do {
		n = fread(piece, 1, sizeof(piece), stream);
		for (size_t i = 0; i < n; i++)
			*lines += piece[i] == '\n' && *lines < max;
	} while (n == sizeof(piece));
	fclose(stream);
	return 0;
}
