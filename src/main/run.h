/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* `millrace run`: the engine between live ports. Returns the exit code. */
int run_main(int argc, char **argv);
