/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Control's thread serves a running engine until it is told to stop, and ends it. */

#include "main/running.h"

/* A line for the user; the first argument is not used. */
void run_say(void *run, const char *line);

/* SIGINT, SIGTERM and SIGHUP come by run->signals from here on, in this thread and those made later. */
int run_catch_signals(struct run *run, struct error *error);
/* Takes what came; called when the descriptor is readable. */
void run_take_signals(void *run, int descriptor);

/* Tells what there is, then serves until a signal says stop, or it cannot go on. */
void run_loop(struct run *run);

/* Stops receiving, has every flow reported, and tells what was counted. */
void run_finish(struct run *run);
