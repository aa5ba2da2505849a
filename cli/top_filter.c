/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/top_filter.h"

#include <stdio.h>
#include <string.h>

#include "cli/args.h"
#include "cli/flow_name.h"
#include "cli/words.h"

#define TEXT_MAX 400
#define WORDS_MAX 40

/* The words as a command line would have them: an option may lack its dashes, and its name where the value tells. */
struct words {
	char text[TEXT_MAX];
	size_t length;
	char *word[WORDS_MAX + 1];
	int n;
};

static bool add_word(struct words *words, const char *before, const char *word)
{
	size_t length = strlen(before) + strlen(word) + 1;

	if (words->n == WORDS_MAX || words->length + length > sizeof(words->text))
		return false;
	words->word[words->n++] = words->text + words->length;
	snprintf(words->text + words->length, length, "%s%s", before, word);
	words->length += length;
	return true;
}

/* The option of this name, with or without its dashes, and whether it wants a value behind it. */
static bool is_option(const char *word, bool *wants)
{
	const char *name = word + strspn(word, "-");
	size_t length = strcspn(name, "=");

	for (unsigned id = 0; id < CLI_N_OPTIONS; id++) {
		const struct cli_option *option = &cli_options[id];

		if (!(cli_filter_verb.options & CLI_BIT(id)) ||
			strncmp(option->name, name, length) != 0 || option->name[length] != '\0')
			continue;
		*wants = option->value && name[length] == '\0';
		return true;
	}
	return false;
}

static bool add_one(struct words *words, const char *word, bool *wants)
{
	struct cli_proto proto;

	if (*wants) {
		*wants = false;
		return add_word(words, "", word);
	}
	if (is_option(word, wants))
		return add_word(words, "--", word + strspn(word, "-"));
	if (cli_address_valid(word))
		return add_word(words, "--address=", word);
	/* a number alone may be of anything */
	if (strspn(word, "0123456789") == 0 && cli_proto_parse(&proto, word))
		return add_word(words, "--proto=", word);
	return add_word(words, "", word);
}

json_t *top_filter_parse(const char *text, struct error *error)
{
	struct words words = {.n = 0};
	char copy[TEXT_MAX], *state = NULL;
	struct cli_args args;
	size_t length = strlen(text);
	bool wants = false, fits = length < sizeof(copy) && add_word(&words, "", "filter");
	json_t *with = NULL;

	if (fits)
		memcpy(copy, text, length + 1);
	for (char *word = fits ? strtok_r(copy, " \t", &state) : NULL; word && fits;
		word = strtok_r(NULL, " \t", &state))
		fits = add_one(&words, word, &wants);
	if (!fits) {
		error_set(error, -1, "the filter is too long");
		return NULL;
	}
	int ret = cli_args_parse(&args, &cli_filter_verb, words.n, words.word, error);

	if (ret == CLI_ARGS_HELP)
		error_set(error, -1, "\"millrace help flow list\" has the words of a filter");
	if (ret == 0)
		with = json_incref(args.with);
	cli_args_fini(&args);
	return with;
}
