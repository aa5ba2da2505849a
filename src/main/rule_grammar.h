/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stdbool.h>

/* `millrace rule grammar`: all that rules can say, as the second half of docs/rules.md. argv[0] is "grammar". */
int rule_grammar_main(int argc, char **argv);

/*
 * The help of commands of the rule language that begin with these words ("flow", "create"), without their values. False: there are
 * none, and nothing is printed.
 */
bool rule_grammar_help(int n, char *const *words);
