/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* `millrace probe`: what a network card does with flow rules, by trial. Returns the exit code. */
int probe_main(int argc, char **argv);
