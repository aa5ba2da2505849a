/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * `millrace shell`: reads lines from a terminal, with completion and history, or from a file or a pipe, and runs each
 * as a subcommand of the program; a line of the rule language goes to the running engine. See main/shell_line.h.
 */

#include "main/command.h"

int shell_main(const struct commands *commands, int argc, char **argv);
