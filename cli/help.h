/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The help of nouns and verbs, made of the tables of cli/words.h. Its form is fixed, since the
 * completion of shells reads it: two blanks before each verb or option, two at least behind it, and
 * values that go by a word in a list "  PROTO  tcp, udp, ...", its further lines indented by more than two.
 */

#include <stdio.h>

#include "cli/cli.h"
#include "cli/words.h"

void cli_help_noun(FILE *stream, const char *noun, const struct cli_local *locals);
void cli_help_verb(FILE *stream, const struct cli_verb *verb);
