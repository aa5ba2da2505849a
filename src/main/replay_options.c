/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/replay_options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/options.h"
#include "base/text.h"
#include "main/file_uses.h"
#include "main/run_config_rules.h"

enum replay_option {
	OPTION_OUTPUT = ENGINE_OPTIONS_END,
	OPTION_SUMMARY,
	OPTION_JSON,
	OPTION_CONTINUE,
	OPTION_EXPORT,
	OPTION_PACE,
	OPTION_BLOCKS,
	OPTION_RULES,
	OPTION_RULES_REPLIES,
	OPTION_RULES_PICKUP,
	OPTION_HELP,
};

static const struct option long_options[] = {
	ENGINE_OPTIONS,
	{"output", required_argument, NULL, OPTION_OUTPUT},
	{"summary", no_argument, NULL, OPTION_SUMMARY},
	{"json", no_argument, NULL, OPTION_JSON},
	{"blocks", required_argument, NULL, OPTION_BLOCKS},
	{"rules", required_argument, NULL, OPTION_RULES},
	{"rules-replies", required_argument, NULL, OPTION_RULES_REPLIES},
	{"rules-pickup", required_argument, NULL, OPTION_RULES_PICKUP},
	{"export", required_argument, NULL, OPTION_EXPORT},
	{"pace", no_argument, NULL, OPTION_PACE},
	{"continue", no_argument, NULL, OPTION_CONTINUE},
	{"help", no_argument, NULL, OPTION_HELP},
	{NULL, 0, NULL, 0},
};

static int replay_take_option(
	struct replay_options *options, int id, const char *value, struct error *error)
{
	char where[OPTION_WORD_MAX];

	switch (id) {
	case OPTION_OUTPUT:
		options->output = value;
		return *value ? 0 : option_bad_value("--output", value, "a file is needed", error);
	case OPTION_BLOCKS:
		options->blocks = value;
		return option_file_name("--blocks", value, error);
	case OPTION_RULES:
		options->rules = value;
		return option_file_name("--rules", value, error);
	case OPTION_RULES_REPLIES:
		return run_rules_replies("--rules-replies", value, &options->replies_follow, error);
	case OPTION_RULES_PICKUP:
		return run_rules_pickup("--rules-pickup", value, &options->no_pickup, error);
	case OPTION_SUMMARY:
		options->summary = true;
		return 0;
	case OPTION_JSON:
		options->json = true;
		return 0;
	case OPTION_EXPORT:
		return exports_add(&options->exports, "--export", value, error);
	case OPTION_PACE:
		options->pace = true;
		return 0;
	case OPTION_CONTINUE:
		options->one_stream = true;
		return 0;
	case OPTION_HELP:
		return REPLAY_HELP;
	default:
		snprintf(where, sizeof(where), "--%s", option_name(long_options, id));
		return engine_options_take(&options->engine, id, where, value, false, error);
	}
}

/* Opening the output empties it: a capture that is read must not be it. */
static bool same_file(const char *a, const char *b)
{
	struct stat a_stat, b_stat;

	return stat(a, &a_stat) == 0 && stat(b, &b_stat) == 0 && S_ISREG(a_stat.st_mode) &&
	       a_stat.st_dev == b_stat.st_dev && a_stat.st_ino == b_stat.st_ino;
}

/* Refuses an export to a file that is a capture to read, for the same reason. */
static int check_exports(const struct exports *exports, const char *path, struct error *error)
{
	char word[OPTION_WORD_MAX];

	for (unsigned i = 0; i < exports->n; i++) {
		const struct export_target *target = &exports->targets[i];

		if (target->path[0] != '\0' && same_file(target->path, path))
			return error_set(error, -EINVAL,
				"--export %s: this is one of the captures to read",
				text_printable(word, sizeof(word), target->text));
	}
	return 0;
}

static int check_paths(const struct replay_options *options, struct error *error)
{
	bool to_file = options->output && strcmp(options->output, "-") != 0;
	unsigned n_stdin = 0;
	char word[OPTION_WORD_MAX];

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

		const int ret = check_exports(
			&options->exports, standard ? "/dev/stdin" : options->paths[i], error);

		if (ret < 0)
			return ret;
	}
	return 0;
}

/* Outputs must not get into each other's way, nor into that of the files to read. Captures are looked at above. */
static int check_outputs(const struct replay_options *options, struct error *error)
{
	struct file_uses uses = {.n = 0};

	file_uses_write(&uses, "--output", options->output);
	file_uses_export(&uses, "--export", &options->exports);
	file_uses_read(&uses, "--rules", options->rules);
	file_uses_read(&uses, "--blocks", options->blocks);
	return file_uses_check(&uses, error);
}

int replay_options_parse(struct replay_options *options, int argc, char **argv, struct error *error)
{
	int id, ret;

	*options = (struct replay_options){0};
	engine_options_init(&options->engine);
	optind = 0; /* glibc: begin anew, whatever was parsed before */
	while ((id = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
		if (id == '?' || id == ':')
			return option_refused(long_options, id, argv, error);
		ret = replay_take_option(options, id == 'h' ? OPTION_HELP : id, optarg, error);
		if (ret != 0)
			return ret;
	}
	if (options->exports.n > 0 && !options->engine.active_said)
		options->engine.active_s = EXPORTS_ACTIVE_S;
	options->paths = argv + optind;
	options->n_paths = (unsigned)(argc - optind);
	ret = check_paths(options, error);
	return ret < 0 ? ret : check_outputs(options, error);
}
