/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/shell_line.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/words.h"
#include "main/command.h"

#define PROMPT_OF_OTHERS "testpmd>"
/* Enough for the first words of any command. */
#define WORD_MAX 64

int shell_split(struct shell_words *words, const char *line, struct error *error)
{
	char *to = words->text;
	char quote = '\0';

	words->n = 0;
	if (strlen(line) >= sizeof(words->text))
		return error_set(error, -E2BIG, "a line has at most %zu characters",
			sizeof(words->text) - 1);
	while (true) {
		while (isspace((unsigned char)*line))
			line++;
		if (*line == '\0' || *line == '#')
			break;
		if (words->n == SHELL_WORDS_MAX)
			return error_set(
				error, -E2BIG, "a line has at most %u words", SHELL_WORDS_MAX);
		words->word[words->n++] = to;
		for (; *line != '\0' && (quote != '\0' || !isspace((unsigned char)*line)); line++) {
			if (*line == '\\' && quote != '\'' && line[1] != '\0')
				*to++ = *++line;
			else if (quote == '\0' && (*line == '"' || *line == '\''))
				quote = *line;
			else if (quote != '\0' && *line == quote)
				quote = '\0';
			else
				*to++ = *line;
		}
		*to++ = '\0';
		if (quote != '\0')
			return error_set(error, -EINVAL, "a quote %c is open at the end", quote);
	}
	words->word[words->n] = NULL;
	return 0;
}

/* The next word of a line, cut to WORD_MAX, and where it ends. */
static const char *next_word(const char *line, char word[WORD_MAX])
{
	size_t n = 0;

	while (isspace((unsigned char)*line))
		line++;
	for (; *line != '\0' && !isspace((unsigned char)*line); line++)
		if (n < WORD_MAX - 1)
			word[n++] = *line;
	word[n] = '\0';
	return line;
}

/* Looks for one word among those that are offered. */
struct search {
	const char *word;
	bool found;
};

static void search_word(void *context, const char *word, const char *what)
{
	struct search *search = context;

	(void)what;
	search->found |= word != NULL && strcmp(word, search->word) == 0;
}

static bool rule_has(const char *before, const char *word)
{
	struct search search = {.word = word};

	rule_complete(before, strlen(before), search_word, &search);
	return search.found;
}

static bool is_command(const struct commands *commands, const char *word)
{
	for (unsigned i = 0; i < commands->n; i++)
		if (strcmp(commands->list[i].name, word) == 0)
			return true;
	return strcmp(word, "help") == 0;
}

static const struct cli_verb *find_verb(const char *noun, const char *name)
{
	for (unsigned i = 0; i < cli_n_verbs; i++)
		if (strcmp(cli_verbs[i].noun, noun) == 0 && strcmp(cli_verbs[i].name, name) == 0)
			return &cli_verbs[i];
	return NULL;
}

bool shell_is_rule(const struct commands *commands, const char *line)
{
	char first[WORD_MAX], second[WORD_MAX], third[WORD_MAX];

	while (isspace((unsigned char)*line))
		line++;
	if (strncmp(line, PROMPT_OF_OTHERS, strlen(PROMPT_OF_OTHERS)) == 0)
		return true;
	next_word(next_word(next_word(line, first), second), third);
	if (!is_command(commands, first))
		return rule_has("", first);
	/* nouns that both languages have */
	if (!rule_has("", first))
		return false;
	if (find_verb(first, second) != NULL)
		return isdigit((unsigned char)third[0]) && strcmp(first, "flow") == 0 &&
		       strcmp(second, "list") == 0;
	char before[WORD_MAX + 1];

	snprintf(before, sizeof(before), "%s ", first);
	return rule_has(before, second);
}

/* ------------------------------ completion */

/* What is offered, as far as it begins with what has been begun. */
struct begun {
	const struct commands *commands;
	const char *word;
	shell_offer_fn offer;
	void *context;
};

static void offer_word(const struct begun *begun, const char *word, const char *what)
{
	if (strncmp(word, begun->word, strlen(begun->word)) == 0)
		begun->offer(begun->context, word, what);
}

static void offer_words(const struct begun *begun, const char *const *words)
{
	for (; *words != NULL; words++)
		offer_word(begun, *words, "");
}

static void offer_commands(const struct begun *begun)
{
	const struct commands *commands = begun->commands;

	for (unsigned i = 0; i < commands->n; i++)
		if (commands->list[i].what != NULL)
			offer_word(begun, commands->list[i].name, commands->list[i].what);
	offer_word(begun, "help", "the help of a command");
}

static void offer_verbs(const struct begun *begun, const char *noun)
{
	for (unsigned i = 0; i < cli_n_verbs; i++)
		if (strcmp(cli_verbs[i].noun, noun) == 0)
			offer_word(begun, cli_verbs[i].name, cli_verbs[i].what);
	for (const struct cli_local *local = begun->commands->locals; local->noun != NULL; local++)
		if (strcmp(local->noun, noun) == 0)
			offer_word(begun, local->verb, local->what);
}

/* The option that a word names, or NULL. */
static const struct cli_option *option_of(const struct cli_verb *verb, const char *word)
{
	for (unsigned id = 0; strncmp(word, "--", 2) == 0 && id < CLI_N_OPTIONS; id++)
		if ((cli_verb_options(verb) & CLI_BIT(id)) &&
			strcmp(cli_options[id].name, word + 2) == 0)
			return &cli_options[id];
	return NULL;
}

static void offer_options(const struct begun *begun, const struct cli_verb *verb)
{
	for (unsigned id = 0; id < CLI_N_OPTIONS; id++) {
		char name[WORD_MAX];

		if (!(cli_verb_options(verb) & CLI_BIT(id)))
			continue;
		snprintf(name, sizeof(name), "--%s", cli_options[id].name);
		offer_word(begun, name, cli_options[id].what);
	}
}

/* Behind a noun and a verb, `n` words in all. */
static void offer_of_verb(
	const struct begun *begun, const struct cli_verb *verb, char *const *words, int n)
{
	const struct cli_option *option = option_of(verb, words[n - 1]);
	int plain = 0;

	if (option != NULL && option->value != NULL) {
		const char *const *values =
			option->words != NULL ? option->words : cli_words_of(option->value);

		offer_words(begun, values);
		if (values[0] == NULL)
			begun->offer(begun->context, NULL, option->value);
		return;
	}
	for (int i = 2; i < n; i++) {
		option = option_of(verb, words[i]);
		if (option == NULL)
			plain++;
		else if (option->value != NULL)
			i++;
	}
	if (verb->words == CLI_RULE) {
		/* the rule is completed as one; what stands behind it is part of it */
		if (plain > 0)
			return;
	} else if (verb->words == CLI_RULE_NUMBER) {
		if (plain < 2 && begun->word[0] == '\0')
			begun->offer(begun->context, NULL, plain == 0 ? "PORT" : "NUMBER");
	} else if (verb->words == CLI_FILE) {
		if (plain == 0 && begun->word[0] == '\0')
			begun->offer(begun->context, NULL, "FILE");
	} else if (verb->words == CLI_ROUTE) {
		if (plain == 0)
			begun->offer(begun->context, "lookup", NULL);
		if (plain < 2 && begun->word[0] == '\0')
			begun->offer(begun->context, NULL, plain == 0 ? "PREFIX" : "ADDR");
	} else if (verb->words != CLI_NO_WORDS && plain == 2)
		offer_words(begun, cli_words_of("PROTO"));
	else if (verb->words != CLI_NO_WORDS && plain < 2 && begun->word[0] == '\0')
		begun->offer(begun->context, NULL, "ADDR:PORT");
	offer_options(begun, verb);
}

static void offer_of_command(const struct begun *begun, char *const *words, int n)
{
	const struct cli_verb *verb;

	if (n > 0 && strcmp(words[0], "help") == 0) {
		if (n == 1)
			offer_commands(begun);
		else if (n == 2)
			offer_verbs(begun, words[1]);
	} else if (n == 0) {
		offer_commands(begun);
		offer_word(begun, "quit", "leave the shell");
	} else if (strcmp(words[0], cli_top_verb.noun) == 0) {
		offer_of_verb(begun, &cli_top_verb, words, n);
	} else if (n == 1) {
		offer_verbs(begun, words[0]);
	} else {
		verb = find_verb(words[0], words[1]);
		if (verb != NULL)
			offer_of_verb(begun, verb, words, n);
	}
}

/* Where the rule begins in a line of `rule add`, behind options; NULL: the line is another one, or is not there yet. */
static const char *rule_of_add(const char *line)
{
	char word[WORD_MAX];
	const char *at = next_word(line, word);

	if (strcmp(word, "rule") != 0)
		return NULL;
	at = next_word(at, word);
	if (strcmp(word, "add") != 0 || *at == '\0')
		return NULL;
	for (;;) {
		const struct cli_option *option;
		const char *end = next_word(at, word);

		if (strncmp(word, "--", 2) != 0)
			break;
		option = option_of(find_verb("rule", "add"), word);
		if (option != NULL && option->value != NULL)
			end = next_word(end, word);
		/* the option itself is being typed, or its value */
		if (*end == '\0')
			return NULL;
		at = end;
	}
	return at + strspn(at, " \t");
}

/* Commands of the rule language in a line of `help`, whose first two words alone have a help of their own; or NULL. */
static const char *rule_of_help(const char *line, int n_words)
{
	char word[WORD_MAX];
	const char *at = next_word(line, word);

	return strcmp(word, "help") == 0 && *at != '\0' && n_words < 3 ? at + strspn(at, " \t")
								       : NULL;
}

void shell_complete(const struct commands *commands, const char *line, size_t length,
	shell_offer_fn offer, void *context)
{
	struct shell_words words;
	struct begun begun = {.commands = commands, .word = "", .offer = offer, .context = context};
	struct error error;
	char copy[RULE_LINE_MAX + 1] = "";
	bool behind_blank = length == 0 || isspace((unsigned char)line[length - 1]);

	if (length >= sizeof(copy))
		return;
	memcpy(copy, line, length);
	copy[length] = '\0';
	if (shell_split(&words, copy, &error) < 0)
		return;
	if (!behind_blank && words.n > 0)
		begun.word = words.word[--words.n];

	/* of a line that has just begun both languages are offered */
	if (words.n < 2 || !shell_is_rule(commands, copy))
		offer_of_command(&begun, words.word, words.n);
	const char *rule = words.n == 0 ? NULL : rule_of_add(copy);

	if (rule == NULL && words.n > 0)
		rule = rule_of_help(copy, words.n);
	if (rule != NULL)
		rule_complete(rule, strlen(rule), offer, context);
	if (words.n == 0 || (words.n == 1 && rule_has("", words.word[0])) ||
		shell_is_rule(commands, copy))
		rule_complete(copy, length, offer, context);
}
