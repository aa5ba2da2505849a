/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/replay_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/suggest.h"
#include "base/text.h"

/* Above every character: what getopt says of an option then tells which one it was. */
enum option_id {
	OPTION_WORKERS = 256,
	OPTION_FLOWS,
	OPTION_FRAGMENTS,
	OPTION_TCP,
	OPTION_ZONE,
	OPTION_TIMEOUT,
	OPTION_ACTIVE,
	OPTION_OUTPUT,
	OPTION_SUMMARY,
	OPTION_JSON,
	OPTION_HELP,
};

static const struct option long_options[] = {
	{"workers", required_argument, NULL, OPTION_WORKERS},
	{"flows", required_argument, NULL, OPTION_FLOWS},
	{"fragments", required_argument, NULL, OPTION_FRAGMENTS},
	{"tcp", required_argument, NULL, OPTION_TCP},
	{"zone", required_argument, NULL, OPTION_ZONE},
	{"timeout", required_argument, NULL, OPTION_TIMEOUT},
	{"active", required_argument, NULL, OPTION_ACTIVE},
	{"output", required_argument, NULL, OPTION_OUTPUT},
	{"summary", no_argument, NULL, OPTION_SUMMARY},
	{"json", no_argument, NULL, OPTION_JSON},
	{"help", no_argument, NULL, OPTION_HELP},
	{NULL, 0, NULL, 0},
};

#define N_OPTIONS (sizeof(long_options) / sizeof(long_options[0]) - 1)

/* Words of the command line, made fit for a line of text. */
#define WORD_MAX 64

static const char *option_name(int id)
{
	for (unsigned i = 0; i < N_OPTIONS; i++)
		if (long_options[i].val == id)
			return long_options[i].name;
	return NULL;
}

static int bad_value(const char *option, const char *value, const char *wanted, struct error *error)
{
	char word[WORD_MAX];

	return error_set(error, -EINVAL, "--%s %s: %s", option,
		*value ? text_printable(word, sizeof(word), value) : "\"\"", wanted);
}

/* Digits and nothing else; what is too long for the number is out of every range. */
static bool read_number(const char *text, uint64_t *number)
{
	*number = 0;
	if (*text == '\0')
		return false;
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '9')
			return false;
		if (*number < UINT32_MAX)
			*number = *number * 10 + (uint64_t)(*text - '0');
	}
	return true;
}

/* `value` is what the user wrote, `number` the part of it that has to be one. */
static int take_number(const char *option, const char *value, const char *number, uint32_t max,
	uint32_t *out, struct error *error)
{
	char grouped[TEXT_NUMBER_MAX], wanted[64];
	uint64_t read;

	if (!read_number(number, &read) || read < 1 || read > max) {
		snprintf(wanted, sizeof(wanted), "a whole number from 1 to %s is needed",
			text_grouped(grouped, max));
		return bad_value(option, value, wanted, error);
	}
	*out = (uint32_t)read;
	return 0;
}

/* A value that must be one of `words` (at most 2); says which one. */
static int take_word(const char *option, const char *value, const char *const *words, unsigned n,
	unsigned *which, struct error *error)
{
	char wanted[64];

	for (*which = 0; *which < n; (*which)++)
		if (strcmp(value, words[*which]) == 0)
			return 0;
	snprintf(wanted, sizeof(wanted),
		n == 1 ? "only \"%s\" is known" : "\"%s\" or \"%s\" is needed", words[0],
		words[n - 1]);
	return bad_value(option, value, wanted, error);
}

/* Does `name`, `length` long, mean this timeout? All of a protocol go by its name alone. */
static bool timeout_meant(const char *name, size_t length, enum flow_timeout timeout)
{
	const char *known = flow_timeout_name(timeout);

	return strncmp(name, known, length) == 0 &&
	       (known[length] == '\0' || (known[length] == '-' && !memchr(name, '-', length)));
}

static int unknown_timeout(const char *name, struct error *error)
{
	const char *names[FLOW_N_TIMEOUTS];
	char word[WORD_MAX];

	for (unsigned i = 0; i < FLOW_N_TIMEOUTS; i++)
		names[i] = flow_timeout_name((enum flow_timeout)i);
	const char *near = suggest(name, names, FLOW_N_TIMEOUTS);

	return error_set(error, -EINVAL, "--timeout %s: no such timeout; %s%s%s",
		text_printable(word, sizeof(word), name),
		near ? "did you mean " : "--help lists them", near ? near : "", near ? "?" : "");
}

/* NAME=SECONDS */
static int take_timeout(struct replay_options *options, const char *value, struct error *error)
{
	const char *equals = strchr(value, '=');
	size_t length = equals ? (size_t)(equals - value) : strlen(value);
	char name[WORD_MAX];
	bool found = false;
	uint32_t seconds;

	if (!equals || length == 0)
		return bad_value("timeout", value, "NAME=SECONDS is needed", error);
	snprintf(name, sizeof(name), "%.*s", length < sizeof(name) ? (int)length : WORD_MAX - 1,
		value);
	for (unsigned i = 0; i < FLOW_N_TIMEOUTS; i++)
		found |= timeout_meant(value, length, (enum flow_timeout)i);
	if (!found)
		return unknown_timeout(name, error);
	if (take_number("timeout", value, equals + 1, FLOW_TIMEOUT_MAX_S, &seconds, error) < 0)
		return -EINVAL;
	for (unsigned i = 0; i < FLOW_N_TIMEOUTS; i++)
		if (timeout_meant(value, length, (enum flow_timeout)i))
			options->timeouts.seconds[i] = seconds;
	return 0;
}

/* `id` is getopt's complaint: ':' a value is missing, '?' anything else. */
static int bad_option(int id, char **argv, struct error *error)
{
	const char *names[N_OPTIONS];
	char word[WORD_MAX];
	const char *known = optopt >= OPTION_WORKERS ? option_name(optopt) : NULL;

	if (id == ':')
		return error_set(error, -EINVAL, "--%s needs a value", known ? known : "?");
	if (known)
		return error_set(error, -EINVAL, "--%s takes no value", known);
	if (optopt != 0)
		return error_set(error, -EINVAL, "-%c: no such option",
			optopt > ' ' && optopt < 0x7f ? optopt : '?');

	text_printable(word, sizeof(word), argv[optind - 1]);
	word[strcspn(word, "=")] = '\0';
	for (unsigned i = 0; i < N_OPTIONS; i++) {
		names[i] = long_options[i].name;
		if (strncmp(word + 2, names[i], strlen(word + 2)) == 0)
			return error_set(error, -EINVAL, "%s: short for several options", word);
	}
	const char *near = suggest(word + 2, names, N_OPTIONS);

	return error_set(error, -EINVAL, "%s: no such option%s%s%s", word,
		near ? "; did you mean --" : "", near ? near : "", near ? "?" : "");
}

static int take_option(
	struct replay_options *options, int id, const char *value, struct error *error)
{
	static const char *const fragments[] = {"follow", "separate"};
	static const char *const strict[] = {"strict"}, *const vlan[] = {"vlan"};
	const char *name = option_name(id);
	unsigned which = 0;
	int ret = 0;

	switch (id) {
	case OPTION_WORKERS:
		return take_number(
			name, value, value, REPLAY_WORKERS_MAX, &options->workers, error);
	case OPTION_FLOWS:
		return take_number(name, value, value, REPLAY_FLOWS_MAX, &options->flows, error);
	case OPTION_ACTIVE:
		return take_number(
			name, value, value, FLOW_TIMEOUT_MAX_S, &options->active_s, error);
	case OPTION_TIMEOUT:
		return take_timeout(options, value, error);
	case OPTION_FRAGMENTS:
		ret = take_word(name, value, fragments, 2, &which, error);
		options->fragments_follow = which == 0;
		return ret;
	case OPTION_TCP:
		options->tcp_strict = true;
		return take_word(name, value, strict, 1, &which, error);
	case OPTION_ZONE:
		options->zone_vlan = true;
		return take_word(name, value, vlan, 1, &which, error);
	case OPTION_OUTPUT:
		options->output = value;
		return *value ? 0 : bad_value(name, value, "a file is needed", error);
	case OPTION_SUMMARY:
		options->summary = true;
		return 0;
	case OPTION_JSON:
		options->json = true;
		return 0;
	case OPTION_HELP:
		return REPLAY_HELP;
	default:
		return -EINVAL;
	}
}

/* Opening the output empties it: a capture that is read must not be it. */
static bool same_file(const char *a, const char *b)
{
	struct stat a_stat, b_stat;

	return stat(a, &a_stat) == 0 && stat(b, &b_stat) == 0 && S_ISREG(a_stat.st_mode) &&
	       a_stat.st_dev == b_stat.st_dev && a_stat.st_ino == b_stat.st_ino;
}

static int check_paths(const struct replay_options *options, struct error *error)
{
	bool to_file = options->output && strcmp(options->output, "-") != 0;
	unsigned n_stdin = 0;
	char word[WORD_MAX];

	if (options->n_paths == 0)
		return error_set(error, -EINVAL, "a capture to read is needed");
	for (unsigned i = 0; i < options->n_paths; i++) {
		bool standard = strcmp(options->paths[i], "-") == 0;

		n_stdin += standard;
		if (n_stdin > 1)
			return error_set(
				error, -EINVAL, "- (standard input) can be read once only");
		if (to_file &&
			same_file(options->output, standard ? "/dev/stdin" : options->paths[i]))
			return error_set(error, -EINVAL,
				"--output %s: this is one of the captures to read",
				text_printable(word, sizeof(word), options->output));
	}
	return 0;
}

int replay_options_parse(struct replay_options *options, int argc, char **argv, struct error *error)
{
	int id, ret;

	*options = (struct replay_options){
		.workers = 1,
		.fragments_follow = true,
		.flows = REPLAY_FLOWS_DEFAULT,
		.timeouts = flow_timeouts_default(),
	};
	optind = 0; /* glibc: begin anew, whatever was parsed before */
	while ((id = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
		if (id == '?' || id == ':')
			return bad_option(id, argv, error);
		ret = take_option(options, id == 'h' ? OPTION_HELP : id, optarg, error);
		if (ret != 0)
			return ret;
	}
	options->paths = argv + optind;
	options->n_paths = (unsigned)(argc - optind);
	return check_paths(options, error);
}
