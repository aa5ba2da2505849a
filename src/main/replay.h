/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * `millrace replay`: the whole engine over captures, flow records out. argv[0] is "replay". Returns
 * the exit code: 0, 1 when something could not be read or written, 2 for a wrong command line.
 */
int replay_main(int argc, char **argv);
