/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* `millrace rule check`: is each line of a file a rule? argv[0] is "check". */
int rule_check_main(int argc, char **argv);
