/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * `millrace top`: a live screen of a running engine, on a terminal; one picture as text or JSON elsewhere. It asks over
 * the control socket and never waits for the engine while there are keys to heed.
 */

/* argv[0] is "top". Returns the exit code: 0 fine, 1 failed, 2 misused. */
int top_main(int argc, char **argv);
