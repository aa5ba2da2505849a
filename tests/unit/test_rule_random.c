/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Random lines, made of the words that completion offers: each is taken, and printed it is the same. What the
 * table has is reached without being named here.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rule/setup.h"
#include "unit/rule_same.h"

/* RULE_LINES in the environment asks for another number. */
#define N_LINES 3000
#define MAX_WORDS 300

static uint64_t seed = 1;

static unsigned below(unsigned n)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (unsigned)((seed >> 33) % n);
}

/* One of the offered words; those that end something are likelier than the others. */
struct choice {
	const char *word;
	unsigned n;
	char text[64], what[128];
};

static void choose(void *context, const char *word, const char *what)
{
	struct choice *choice = context;
	bool ends = word && (strcmp(word, "/") == 0 || strncmp(word, "end", 3) == 0 ||
				    strcmp(word, "pattern") == 0 || strcmp(word, "actions") == 0);
	unsigned weight = ends ? 4 : 1;

	choice->n += weight;
	if (below(choice->n) >= weight)
		return;
	choice->word = word ? strncpy(choice->text, word, sizeof(choice->text) - 1) : NULL;
	/* it is the parser's, until this returns */
	snprintf(choice->what, sizeof(choice->what), "%s", what != NULL ? what : "");
}

static void make_number(char text[64])
{
	static const unsigned widths[] = {1, 3, 8, 16, 32};
	unsigned width = widths[below(5)];
	uint64_t number = (uint64_t)below(UINT32_MAX) & ((UINT64_C(1) << width) - 1);

	snprintf(text, 64, below(2) ? "%" PRIu64 : "0x%" PRIx64, number);
}

/* A value by what completion calls it. */
static void make_value(char text[64], const char *what)
{
	if (strncmp(what, "an IPv4", 7) == 0 || strncmp(what, "an IP address", 13) == 0)
		snprintf(text, 64, "%u.%u.%u.%u", below(256), below(256), below(256), below(256));
	else if (strncmp(what, "an IPv6", 7) == 0)
		snprintf(text, 64, "%x::%x", below(65536), below(3));
	else if (strncmp(what, "a MAC", 5) == 0)
		snprintf(text, 64, "%x:%x:0:0:0:%x", below(256), below(2), below(256));
	else if (strncmp(what, "an even", 7) == 0)
		snprintf(text, 64, "%02x%02x%02x", below(2), below(256), below(2));
	else if (strncmp(what, "a number", 8) == 0 || strncmp(what, "a queue", 7) == 0)
		make_number(text);
	else
		snprintf(text, 64, "w%u", below(10));
}

static bool is_rule(const char *line, size_t length)
{
	struct rule_command *command;
	struct error error;
	unsigned column;

	if (rule_command_parse(&command, NULL, line, length, &column, &error) < 0)
		return false;
	rule_command_destroy(command);
	return true;
}

/* A line that begins so; false where a value did not fit or it never came to an end. */
static bool make_line(char *line, size_t size, const char *front)
{
	size_t length = (size_t)snprintf(line, size, "%s", front);

	for (unsigned i = 0; i < MAX_WORDS; i++) {
		struct choice choice = {.n = 0};

		rule_complete(line, length, choose, &choice);
		if (choice.n == 0)
			return true;
		if (!choice.word)
			make_value(choice.text, choice.what);
		length += (size_t)snprintf(line + length, size - length, "%s ", choice.text);
		if (length >= size)
			return false;
		/* what may go on for ever */
		if (below(8) == 0 && is_rule(line, length))
			return true;
	}
	return false;
}

static void check_line(struct rule_setup *setup, const char *line, unsigned *taken)
{
	static char text[8 * RULE_LINE_MAX], other[8 * RULE_LINE_MAX];
	struct rule_command *command, *again;
	struct error error = {""};
	unsigned column = 0;
	int ret = rule_command_parse(&command, setup, line, strlen(line), &column, &error);

	if (ret < 0)
		return;
	++*taken;
	rule_command_print(command, text, sizeof(text));
	if (rule_command_parse(&again, setup, text, strlen(text), &column, &error) < 0)
		fail_msg("%s\n%s\ncolumn %u: %s", line, text, column, error.text);
	if (!rule_same(command, again))
		fail_msg("%s\n%s\nare not the same", line, text);
	rule_command_print(again, other, sizeof(other));
	assert_string_equal(text, other);
	if (command->verb == RULE_SET)
		assert_int_equal(rule_setup_learn(setup, command), 0);
	rule_command_destroy(command);
	rule_command_destroy(again);
}

static void test_random(void **state)
{
	const char *told = getenv("RULE_LINES");
	unsigned n = told ? (unsigned)strtoul(told, NULL, 10) : N_LINES, taken = 0;
	struct rule_setup *setup = rule_setup_create();
	static char line[RULE_LINE_MAX];
	static const char *const fronts[] = {
		"", "flow create 0 ingress pattern ", "flow create 0 pattern end actions ", "set "};

	(void)state;
	for (unsigned i = 0; i < n; i++)
		if (make_line(line, sizeof(line), fronts[i % 4]))
			check_line(setup, line, &taken);
	rule_setup_destroy(setup);
	print_message("%u of %u lines are rules\n", taken, n);
	assert_true(taken > n / 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
