/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/flow_name.h"
#include "cli/words.h"
#include "dataplane/counters.h"
#include "flow/record.h"
#include "offload/state.h"

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

/* The words of --state are the engine's own, all of them and no other. */
static void test_states(void **state)
{
	const char *const *words = cli_words_of("STATE");
	unsigned n = 0;

	(void)state;
	for (unsigned i = 0; i < FLOW_N_PHASES; i++, n++)
		assert_true(cli_words_have(words, flow_phase_name((enum flow_phase)i)));
	for (unsigned i = FLOW_FREE + 1; i < FLOW_N_STATES; i++, n++)
		assert_true(cli_words_have(words, flow_state_name((enum flow_state)i)));
	assert_int_equal(cli_words_count(words), n);
}

/* So are those of --offload. */
static void test_places(void **state)
{
	const char *const *words = cli_words_of("WHERE");

	(void)state;
	for (unsigned i = 0; i < OFFLOAD_N_STATES; i++)
		assert_true(cli_words_have(words, offload_state_name((enum offload_state)i)));
	/* both values of in_hw have one name */
	assert_int_equal(cli_words_count(words), OFFLOAD_N_STATES - 1);
}

/* Every name of a protocol in the help is one, and its number leads back to it. */
static void test_protocols(void **state)
{
	const char *const *words = cli_words_of("PROTO");
	unsigned named = 0;

	(void)state;
	for (unsigned i = 0; words[i]; i++) {
		struct cli_proto proto;

		assert_true(cli_proto_parse(&proto, words[i]));
		assert_string_equal(cli_proto_name(proto.number), words[i]);
	}
	for (unsigned number = 0; number <= UINT8_MAX; number++)
		named += cli_proto_name(number) != NULL;
	assert_int_equal(named, cli_words_count(words));
	assert_null(cli_proto_name(256 + 6));
	assert_null(cli_proto_name(UINT64_MAX));
}

/* Every reason to drop a packet has a word. */
static void test_drop_reasons(void **state)
{
	const char *const *words = cli_words_of("REASON");

	(void)state;
	assert_int_equal(cli_words_count(words), DROP_N_REASONS);
	for (unsigned i = 0; i < DROP_N_REASONS; i++)
		assert_true(cli_words_have(words, drop_name((enum drop_reason)i)));
}

/* An option's words are those that the help lists under its value's name. */
static void test_options(void **state)
{
	(void)state;
	for (unsigned id = 0; id < CLI_N_OPTIONS; id++) {
		const struct cli_option *option = &cli_options[id];

		assert_non_null(option->name);
		assert_non_null(option->what);
		if (option->kind == CLI_VALUE_WORD)
			assert_ptr_equal(option->words, cli_words_of(option->value));
		for (unsigned other = 0; other < id; other++)
			assert_string_not_equal(option->name, cli_options[other].name);
	}
	assert_int_equal(cli_words_count(cli_words_of("NOTHING")), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_protocols),
		cmocka_unit_test(test_drop_reasons),
		cmocka_unit_test(test_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
