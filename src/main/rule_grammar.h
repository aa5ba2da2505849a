/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* `millrace rule grammar`: all that rules can say, as the second half of docs/rules.md. argv[0] is "grammar". */
int rule_grammar_main(int argc, char **argv);
