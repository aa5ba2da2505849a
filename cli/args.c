/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/args.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "base/text.h"
#include "cli/flow_name.h"

/* Above every character: what getopt says of an option then tells which one it was. */
#define FIRST_ID 256
/* What getopt says of a word that is no option. */
#define WORD_ID 1

#define WORD_MAX 80
/* The engine takes requests of 4,096 bytes. */
#define RULE_MAX 4000

/* The command line while it is read. */
struct parse {
	struct cli_args *args;
	const char *words[CLI_FLOW_WORDS];
	unsigned n_words;
	char rule[RULE_MAX];
	struct error *error;
	/* those of the verb, for getopt and for suggestions */
	struct option options[CLI_N_OPTIONS + 1];
	const char *names[CLI_N_OPTIONS];
	unsigned n_options;
};

/* "flow list: --port x: what is wrong" */
static int bad_value(struct parse *parse, const char *name, const char *value, const char *wanted)
{
	char word[WORD_MAX], title[CLI_TITLE_MAX];

	return error_set(parse->error, -EINVAL, "%s: --%s %s: %s",
		cli_verb_title(title, parse->args->verb), name,
		*value ? text_printable(word, sizeof(word), value) : "\"\"", wanted);
}

static int misused(struct parse *parse, const char *what)
{
	char title[CLI_TITLE_MAX];

	return error_set(
		parse->error, -EINVAL, "%s: %s", cli_verb_title(title, parse->args->verb), what);
}

static void collect_options(struct parse *parse)
{
	uint32_t has = cli_verb_options(parse->args->verb);

	for (unsigned id = 0; id < CLI_N_OPTIONS; id++) {
		if (!(has & CLI_BIT(id)))
			continue;
		parse->names[parse->n_options] = cli_options[id].name;
		parse->options[parse->n_options++] = (struct option){
			.name = cli_options[id].name,
			.has_arg = cli_options[id].value ? required_argument : no_argument,
			.val = FIRST_ID + (int)id,
		};
	}
}

/* `id` is getopt's complaint: ':' a value is missing, '?' anything else. */
static int bad_option(struct parse *parse, int id, const char *last)
{
	const char *known = optopt >= FIRST_ID ? cli_options[optopt - FIRST_ID].name : NULL;
	char word[WORD_MAX], what[2 * WORD_MAX];

	text_printable(word, sizeof(word), last);
	word[strcspn(word, "=")] = '\0';
	if (known) {
		snprintf(what, sizeof(what), "--%s %s", known,
			id == ':' ? "needs a value" : "takes no value");
	} else if (optopt != 0) {
		snprintf(what, sizeof(what), "-%c: no such option",
			optopt > ' ' && optopt < 0x7f ? optopt : '?');
	} else {
		const char *near = suggest(word + 2, parse->names, parse->n_options);

		for (unsigned i = 0; i < parse->n_options; i++)
			if (strncmp(parse->names[i], word + 2, strlen(word + 2)) == 0)
				known = parse->names[i];
		snprintf(what, sizeof(what), "%s: %s%s%s%s", word,
			known ? "short for several options" : "no such option",
			!known && near ? "; did you mean --" : "", !known && near ? near : "",
			!known && near ? "?" : "");
	}
	return misused(parse, what);
}

/* Digits and nothing else, from `min` to `max`. */
static bool read_number(const char *text, uint64_t min, uint64_t max, uint64_t *number)
{
	size_t length = strlen(text);

	*number = 0;
	if (length == 0 || length > 10 || strspn(text, "0123456789") != length)
		return false;
	for (; *text != '\0'; text++)
		*number = *number * 10 + (uint64_t)(*text - '0');
	return *number >= min && *number <= max;
}

/* Seconds with up to three decimals, as milliseconds. */
static bool read_seconds(const char *text, uint64_t min_ms, uint64_t max_ms, uint64_t *ms)
{
	char digits[16];
	const char *point = strchr(text, '.');
	size_t whole = point ? (size_t)(point - text) : strlen(text);
	size_t decimals = point ? strlen(point + 1) : 0;

	if (whole == 0 || whole > 5 || decimals > 3 || (point && decimals == 0))
		return false;
	snprintf(digits, sizeof(digits), "%.*s%s%.*s", (int)whole, text, point ? point + 1 : "",
		(int)(3 - decimals), "000");
	return read_number(digits, min_ms, max_ms, ms);
}

static json_t *number_value(struct parse *parse, const struct cli_option *option, const char *value)
{
	char least[TEXT_NUMBER_MAX], most[TEXT_NUMBER_MAX], wanted[WORD_MAX];
	uint64_t number;

	if (option->kind == CLI_VALUE_SECONDS) {
		if (read_seconds(value, option->min, option->max, &number))
			return json_integer((json_int_t)number);
		snprintf(wanted, sizeof(wanted), "seconds from %g to %g are needed",
			option->min / 1000.0, option->max / 1000.0);
	} else {
		if (read_number(value, option->min, option->max, &number))
			return json_integer((json_int_t)number);
		snprintf(wanted, sizeof(wanted), "a whole number from %s to %s is needed",
			text_grouped(least, option->min), text_grouped(most, option->max));
	}
	bad_value(parse, option->name, value, wanted);
	return NULL;
}

static json_t *large_value(struct parse *parse, const struct cli_option *option, const char *value)
{
	const size_t length = strlen(value);

	if (length > 0 && length <= 18 && *value != '0' && strspn(value, "0123456789") == length)
		return json_integer((json_int_t)strtoll(value, NULL, 10));
	bad_value(parse, option->name, value, "a whole number from 1 on is needed");
	return NULL;
}

static json_t *word_value(struct parse *parse, const struct cli_option *option, const char *value)
{
	char what[2 * WORD_MAX];

	if (cli_words_have(option->words, value))
		return json_string(value);
	const char *near = suggest(value, option->words, cli_words_count(option->words));

	snprintf(what, sizeof(what), "no such word; %s%s%s",
		near ? "did you mean " : "--help lists them", near ? near : "", near ? "?" : "");
	bad_value(parse, option->name, value, what);
	return NULL;
}

static json_t *proto_value(struct parse *parse, const struct cli_option *option, const char *value)
{
	char ask[CLI_PROTO_ASK_MAX], title[CLI_TITLE_MAX];
	struct cli_proto proto;
	struct error error;

	if (cli_proto_read(&proto, value, &error) == 0)
		return json_string(cli_proto_ask(ask, &proto));
	error_set(parse->error, -EINVAL, "%s: --%s %s", cli_verb_title(title, parse->args->verb),
		option->name, error.text);
	return NULL;
}

/* The value as the engine is to get it, or NULL with a line. */
static json_t *value_of(struct parse *parse, const struct cli_option *option, const char *value)
{
	json_t *text;

	switch (option->kind) {
	case CLI_VALUE_NONE: /* never told to the engine */
	case CLI_VALUE_NO:
		return json_false();
	case CLI_VALUE_YES:
		return json_true();
	case CLI_VALUE_NUMBER:
	case CLI_VALUE_SECONDS:
		return number_value(parse, option, value);
	case CLI_VALUE_LARGE:
		return large_value(parse, option, value);
	case CLI_VALUE_WORD:
		return word_value(parse, option, value);
	case CLI_VALUE_PROTO:
		return proto_value(parse, option, value);
	case CLI_VALUE_ADDRESS:
		if (cli_address_valid(value))
			return json_string(value);
		bad_value(parse, option->name, value, "no address, nor a prefix like 10.0.0.0/8");
		return NULL;
	case CLI_VALUE_TEXT:
	default:
		text = json_string(value);
		if (!text)
			bad_value(parse, option->name, value, "is not UTF-8");
		return text;
	}
}

static int take_option(struct parse *parse, enum cli_option_id id, const char *value)
{
	const struct cli_option *option = &cli_options[id];

	parse->args->given |= CLI_BIT(id);
	if (id == CLI_HELP)
		return CLI_ARGS_HELP;
	if (id == CLI_SOCKET) {
		parse->args->socket = value;
		return *value ? 0 : bad_value(parse, option->name, value, "a path is needed");
	}
	if (!option->key)
		return 0;
	json_t *sent = value_of(parse, option, value);

	if (!sent)
		return -EINVAL;
	return json_object_set_new(parse->args->with, option->key, sent);
}

/* A command of the rule language may be one word of the shell, or many. */
static int take_rule_word(struct parse *parse, const char *word)
{
	const size_t length = strlen(parse->rule);

	if (length + strlen(word) + 2 > sizeof(parse->rule))
		return misused(parse, "the command is too long");
	snprintf(parse->rule + length, sizeof(parse->rule) - length, "%s%s", length > 0 ? " " : "",
		word);
	return 0;
}

/* A packet begins with the number of its port, where a flow has an address; all other words are its items. */
static bool is_of_packet(const struct parse *parse, const char *word)
{
	const size_t digits = strspn(word, "0123456789");

	if (parse->args->verb->words != CLI_WAY || parse->n_words > 0)
		return false;
	return parse->rule[0] != '\0' ||
	       (digits > 0 && (word[digits] == '\0' || word[digits] == ' '));
}

static int take_packet(struct parse *parse)
{
	json_t *packet = json_string(parse->rule);

	return packet == NULL ? misused(parse, "the packet is not UTF-8")
			      : json_object_set_new(parse->args->with, "packet", packet);
}

static int take_word(struct parse *parse, const char *word)
{
	char printable[WORD_MAX], what[2 * WORD_MAX];

	if (parse->args->verb->words == CLI_RULE || is_of_packet(parse, word))
		return take_rule_word(parse, word);
	if (parse->args->verb->words != CLI_NO_WORDS && parse->n_words < CLI_FLOW_WORDS) {
		parse->words[parse->n_words++] = word;
		return 0;
	}
	const char *near = suggest(word, parse->names, parse->n_options);

	snprintf(what, sizeof(what), "%s: %s%s%s",
		*word ? text_printable(printable, sizeof(printable), word) : "\"\"",
		near ? "did you mean --" : "one word too many", near ? near : "", near ? "?" : "");
	return misused(parse, what);
}

/* Options that make sense together only, or never. */
static int check_options(struct parse *parse)
{
	const struct cli_args *args = parse->args;
	const char *by = json_string_value(json_object_get(args->with, "by"));

	if (cli_args_given(args, CLI_TOP) && cli_args_given(args, CLI_LIMIT))
		return misused(parse, "--top and --limit do not go together");
	if (cli_args_given(args, CLI_TOP) && cli_args_given(args, CLI_CURSOR))
		return misused(parse, "--top and --cursor do not go together");
	if (cli_args_given(args, CLI_BY) && !cli_args_given(args, CLI_TOP) &&
		args->verb != &cli_top_verb)
		return misused(parse, "--by needs --top");
	if (cli_args_given(args, CLI_OVER) && !cli_args_given(args, CLI_TOP))
		return misused(parse, "--over needs --top");
	if (cli_args_given(args, CLI_OVER) && by && strcmp(by, "rate") != 0)
		return misused(parse, "--over is of use by rate only");
	return 0;
}

/* What the request says of a FLOW. */
static int take_flow(struct parse *parse)
{
	static const char *const keys[][2] = {{"src", "sport"}, {"dst", "dport"}};
	json_t *with = parse->args->with;
	struct error error;
	struct cli_flow flow;
	int ret = 0;

	if (parse->n_words < CLI_FLOW_WORDS)
		return misused(parse, "which flow? ADDR:PORT ADDR:PORT PROTO is needed");
	if (cli_args_given(parse->args, CLI_PORT) || cli_args_given(parse->args, CLI_PROTO))
		return misused(parse,
			"--port and --proto go with an address or prefix; a flow has its own");
	if (cli_flow_parse(&flow, parse->words, &error) < 0)
		return misused(parse, error.text);
	for (unsigned i = 0; i < 2; i++) {
		ret |= json_object_set_new(with, keys[i][0], json_string(flow.end[i].address));
		ret |= json_object_set_new(with, keys[i][1], json_integer(flow.end[i].port));
	}
	return ret | json_object_set_new(with, "proto", json_string(flow.proto));
}

/* The block that the request names: a FLOW, an address, a prefix, or a number in place of them. */
static int take_block(struct parse *parse)
{
	const struct cli_args *args = parse->args;
	const char *word = parse->words[0];
	char what[2 * WORD_MAX], printable[WORD_MAX];

	if (cli_args_given(args, CLI_NUMBER))
		return parse->n_words == 0
			       ? 0
			       : misused(parse, "--number says which block; no word goes with it");
	if (parse->n_words == 0)
		return args->verb->words == CLI_BLOCK_MAYBE
			       ? 0
			       : misused(parse,
					 "what? an address, a prefix or ADDR:PORT ADDR:PORT PROTO "
					 "is needed");
	if (parse->n_words > 1)
		return take_flow(parse);
	if (cli_args_given(args, CLI_WIRE) || cli_args_given(args, CLI_ZONE))
		return misused(parse, "--wire and --zone go with a flow; an address is one on all");
	if (cli_address_valid(word))
		return json_object_set_new(args->with, "prefix", json_string(word));
	snprintf(what, sizeof(what),
		"%s: no address, nor a prefix like 10.0.0.0/8; a flow is ADDR:PORT ADDR:PORT PROTO",
		*word ? text_printable(printable, sizeof(printable), word) : "\"\"");
	return misused(parse, what);
}

static int take_rule(struct parse *parse)
{
	json_t *rule = json_string(parse->rule);

	if (parse->rule[0] == '\0')
		return misused(parse, "what? a command is needed, as flow create 0 ingress ...");
	return rule == NULL ? misused(parse, "the command is not UTF-8")
			    : json_object_set_new(parse->args->with, "rule", rule);
}

/* PORT NUMBER, as rule list shows them. */
static int take_rule_number(struct parse *parse)
{
	uint64_t port, number;

	if (parse->n_words != 2 || !read_number(parse->words[0], 0, 31, &port) ||
		!read_number(parse->words[1], 0, UINT32_MAX, &number))
		return misused(parse,
			"which rule? PORT NUMBER is needed, as rule list shows them: two numbers");
	return json_object_set_new(parse->args->with, "port", json_integer((json_int_t)port)) |
	       json_object_set_new(parse->args->with, "number", json_integer((json_int_t)number));
}

static int take_file(struct parse *parse)
{
	const char *path = parse->words[0];

	if (parse->n_words != 1 || *path == '\0')
		return misused(parse, "which file? FILE is needed, or - for standard input");
	json_t *name = json_string(strcmp(path, "-") == 0 ? "standard input" : path);

	parse->args->file = path;
	return name == NULL ? misused(parse, "the name of the file is not UTF-8")
			    : json_object_set_new(parse->args->with, "file", name);
}

/* PREFIX, lookup ADDR, or nothing. */
static int take_route(struct parse *parse)
{
	const bool lookup = parse->n_words > 0 && strcmp(parse->words[0], "lookup") == 0;
	const char *word = lookup ? parse->words[1] : parse->words[0];

	if (parse->n_words == 0)
		return 0;
	if (parse->n_words != (lookup ? 2u : 1u))
		return misused(parse, "which route? PREFIX, or lookup and an address");
	if (!cli_address_valid(word) || (lookup && strchr(word, '/') != NULL))
		return misused(parse,
			lookup ? "lookup: an address is needed, as in lookup 192.0.2.1"
			       : "which route? an address or a prefix like 10.0.0.0/8, or lookup "
				 "ADDR");
	return json_object_set_new(
		parse->args->with, lookup ? "lookup" : "prefix", json_string(word));
}

static int take_words(struct parse *parse)
{
	switch (parse->args->verb->words) {
	case CLI_WAY:
		return parse->rule[0] != '\0' ? take_packet(parse) : take_flow(parse);
	case CLI_FLOW:
		return take_flow(parse);
	case CLI_RULE:
		return take_rule(parse);
	case CLI_RULE_NUMBER:
		return take_rule_number(parse);
	case CLI_FILE:
		return take_file(parse);
	case CLI_ROUTE:
		return take_route(parse);
	case CLI_BLOCK:
	case CLI_BLOCK_MAYBE:
		return take_block(parse);
	case CLI_NO_WORDS:
	default:
		return 0;
	}
}

/* The leading '-' of getopt's own options: words come in their places, options among them. */
static int read_all(struct parse *parse, int argc, char **argv)
{
	int id, ret = 0;

	optind = 0; /* glibc: begin anew, whatever was parsed before */
	while (ret == 0 && (id = getopt_long(argc, argv, "-:h", parse->options, NULL)) != -1) {
		if (id == '?' || id == ':')
			return bad_option(parse, id, argv[optind - 1]);
		if (id == WORD_ID)
			ret = take_word(parse, optarg);
		else
			ret = take_option(
				parse, id == 'h' ? CLI_HELP : (unsigned)id - FIRST_ID, optarg);
	}
	for (; ret == 0 && optind < argc; optind++) /* after "--" */
		ret = take_word(parse, argv[optind]);
	return ret;
}

int cli_args_parse(struct cli_args *args, const struct cli_verb *verb, int argc, char **argv,
	struct error *error)
{
	struct parse parse = {.args = args, .error = error};

	*args = (struct cli_args){.verb = verb, .with = json_object()};
	error->text[0] = '\0';
	collect_options(&parse);

	int ret = args->with ? read_all(&parse, argc, argv) : -ENOMEM;

	if (ret == 0)
		ret = check_options(&parse);
	if (ret == 0)
		ret = take_words(&parse);
	if (ret < 0 && error->text[0] == '\0')
		return error_set(error, -ENOMEM, "no memory for the request");
	return ret;
}

void cli_args_fini(struct cli_args *args)
{
	json_decref(args->with);
	args->with = NULL;
}
