/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The command line of `millrace run`. It is read twice: first for what it asks of the reader (help, a
 * file) and for its ports and wires, then, after the file, for what it says otherwise than the file.
 */

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/text.h"
#include "main/run_config_make.h"
#include "main/run_draft.h"
#include "main/run_option.h"

static_assert(PLANE_MAX_PORTS == 32 && FLOW_MAX_WIRES == 16, "as the complaints here say");

struct line {
	struct run_config *config;
	struct run_draft draft;
	const char *file;
	const struct run_config_text *text; /* in its place; NULL: it is read */
	bool except_given;
	struct error *error;
};

/* NAME=DEVICE, cut in two in place. */
static int take_port(struct line *line, char *value)
{
	struct run_draft *draft = &line->draft;
	char *equals = strchr(value, '=');

	if (!equals || equals == value || equals[1] == '\0')
		return option_bad_value(
			"--port", value, "NAME=DEVICE is needed, as in lan=eth1", line->error);
	if (draft->n_ports == PLANE_MAX_PORTS)
		return option_bad_value(
			"--port", value, "there can be 32 ports at most", line->error);
	*equals = '\0';
	strcpy(draft->ports[draft->n_ports].where, "--port");
	draft->ports[draft->n_ports].name = value;
	draft->ports[draft->n_ports++].device = equals + 1;
	return 0;
}

/* NAME,NAME, cut in two in place. */
static int take_wire(struct line *line, char *value)
{
	struct run_draft *draft = &line->draft;
	char *comma = strchr(value, ',');

	if (!comma || comma == value || comma[1] == '\0')
		return option_bad_value(
			"--wire", value, "NAME,NAME is needed, as in eth1,eth2", line->error);
	if (strchr(comma + 1, ','))
		return option_bad_value("--wire", value,
			"NAME,NAME is needed; a device with arguments gets a name by "
			"--port NAME=DEVICE",
			line->error);
	if (draft->n_wires == FLOW_MAX_WIRES)
		return option_bad_value(
			"--wire", value, "there can be 16 wires at most", line->error);
	*comma = '\0';
	strcpy(draft->wires[draft->n_wires].where, "--wire");
	draft->wires[draft->n_wires].name[0] = value;
	draft->wires[draft->n_wires++].name[1] = comma + 1;
	return 0;
}

static int take_file(struct line *line, const char *value)
{
	if (*value == '\0')
		return option_bad_value("--config", value, "a file is needed", line->error);
	if (line->file)
		return option_bad_value(
			"--config", value, "one file can be read, not two", line->error);
	line->file = value;
	return 0;
}

/* What has no option before it: most likely the wire itself. */
static int stray_word(const char *value, struct error *error)
{
	const char *comma = strchr(value, ',');
	char word[OPTION_WORD_MAX];
	bool wire = comma && comma != value && comma[1] != '\0' && !strchr(comma + 1, ',');

	text_printable(word, sizeof(word), value);
	if (wire)
		return error_set(
			error, -EINVAL, "%s: no option; did you mean --wire %s?", word, word);
	return error_set(error, -EINVAL, "%s: no option; run --help lists them", word);
}

static int first_look(struct line *line, int argc, char **argv)
{
	int id, ret = 0;

	optind = 0; /* glibc: begin anew, whatever was parsed before */
	while (ret == 0 && (id = getopt_long(argc, argv, ":h", run_options, NULL)) != -1) {
		switch (id) {
		case '?':
		case ':':
			return option_refused(run_options, id, argv, line->error);
		case 'h':
		case RUN_OPTION_HELP:
			return RUN_HELP;
		case RUN_OPTION_CONFIG:
			ret = take_file(line, optarg);
			break;
		case RUN_OPTION_PORT:
			ret = take_port(line, optarg);
			break;
		case RUN_OPTION_WIRE:
			ret = take_wire(line, optarg);
			break;
		default: /* the second look's */
			break;
		}
	}
	if (ret == 0 && optind < argc)
		return stray_word(argv[optind], line->error);
	return ret;
}

static int second_look(struct line *line, int argc, char **argv)
{
	char where[OPTION_WORD_MAX];
	int id, ret = 0;

	optind = 0;
	while (ret == 0 && (id = getopt_long(argc, argv, ":h", run_options, NULL)) != -1) {
		switch (id) {
		case RUN_OPTION_CONFIG:
		case RUN_OPTION_PORT:
		case RUN_OPTION_WIRE:
		case RUN_OPTION_FOREGROUND:
			break;
		default:
			line->except_given |= id == RUN_OPTION_OFFLOAD_EXCEPT;
			snprintf(where, sizeof(where), "--%s", option_name(run_options, id));
			ret = run_config_set(
				line->config, id, where, optarg ? optarg : "yes", line->error);
		}
	}
	return ret;
}

/* The wires are the command line's or the file's. */
static int join(struct line *line)
{
	bool given = line->draft.n_wires > 0 || line->draft.n_ports > 0;
	char word[OPTION_WORD_MAX];

	/* what another file says of the wires is held against those that there are */
	if (given && line->config->n_wires + line->config->n_routers > 0 && line->text != NULL &&
		!line->text->strict)
		return 0;
	if (given && line->config->n_wires + line->config->n_routers > 0)
		return error_set(line->error, -EINVAL,
			"--%s: %s has wires of its own; choose one: its wires, or those of the "
			"command line",
			line->draft.n_ports > 0 ? "port" : "wire",
			text_printable(word, sizeof(word), line->file));
	if (given) {
		int ret = run_config_join(line->config, &line->draft, line->error);

		if (ret < 0)
			return ret;
	}
	if (line->config->n_wires + line->config->n_routers > 0)
		return 0;
	if (line->file)
		return error_set(line->error, -EINVAL,
			"a wire is needed: --wire NAME,NAME, or wires: in %s",
			text_printable(word, sizeof(word), line->file));
	return error_set(
		line->error, -EINVAL, "a wire is needed: --wire NAME,NAME, as in --wire eth1,eth2");
}

/* A file without wires could not be held against its ports yet. */
static const char *line_where_except(
	const void *context, unsigned number, char where[RUN_WHERE_MAX])
{
	const struct line *line = context;

	(void)number;
	if (line->except_given || !line->file)
		return "--offload-except";
	snprintf(where, RUN_WHERE_MAX, "%.200s: offload.except:", line->file);
	return where;
}

/* The file that the command line names, or the text in its place. */
static int read_file(struct line *line)
{
	const struct run_config_text *text = line->text;

	if (text == NULL)
		return line->file ? run_config_read(line->config, line->file, line->error) : 0;
	int ret = run_config_read_bytes(
		line->config, text->name, text->bytes, text->size, line->error);

	return ret == 0 && line->file ? run_config_name(line->config, line->file, line->error)
				      : ret;
}

static int parse(struct run_config *config, int argc, char **argv,
	const struct run_config_text *text, struct error *error)
{
	struct line *line = calloc(1, sizeof(*line));
	int ret;

	run_config_init(config);
	if (!line)
		return error_set(error, -ENOMEM, "no memory for the configuration");
	*line = (struct line){.config = config, .text = text, .error = error};
	ret = first_look(line, argc, argv);
	if (ret == 0)
		ret = read_file(line);
	if (ret == 0)
		ret = second_look(line, argc, argv);
	if (ret == 0)
		ret = join(line);
	if (ret == 0)
		ret = run_config_check_except(config, line_where_except, line, error);
	if (ret == 0)
		ret = run_config_complete(config, "offload slots", "offload rules-per-second",
			"blocks max", "rules max", error);
	if (ret == 0)
		ret = run_config_check_files(config, error);
	free(line);
	return ret;
}

int run_config_parse(struct run_config *config, int argc, char **argv, struct error *error)
{
	return parse(config, argc, argv, NULL, error);
}

void run_words_fini(struct run_words *words)
{
	for (int i = 0; i < words->n; i++)
		free(words->word[i]);
	free(words->word);
	*words = (struct run_words){0};
}

int run_words_copy(struct run_words *words, int n, char *const *word)
{
	*words = (struct run_words){.word = calloc((size_t)n + 1, sizeof(*words->word))};
	for (; words->word != NULL && words->n < n; words->n++) {
		words->word[words->n] = strdup(word[words->n]);
		if (words->word[words->n] == NULL)
			break;
	}
	if (words->word != NULL && words->n == n)
		return 0;
	run_words_fini(words);
	return -ENOMEM;
}

int run_config_parse_again(struct run_config *config, const struct run_words *words,
	const struct run_config_text *text, struct error *error)
{
	struct run_words copy;
	int ret;

	if (run_words_copy(&copy, words->n, words->word) < 0) {
		run_config_init(config);
		return error_set(error, -ENOMEM, "no memory for the configuration");
	}
	/* reading moves the words: the copy's own are freed all the same, in another order */
	ret = parse(config, copy.n, copy.word, text, error);
	run_words_fini(&copy);
	return ret;
}
