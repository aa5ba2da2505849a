/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * `millrace probe`: what a network card does with flow rules, by trial. The parent (command.c) reads the command line
 * and starts a child, which alone touches the device (child.c): drivers crash, and drivers hang. The child tells what
 * it finds out by a pipe, one JSON object a line, so that nothing is lost when it ends in the middle:
 *	{"step":"...","rules":N,"allow_s":N}	what it is about to do, with how many rules in the NIC
 *	{"set":{...}}				members of the report
 *	{"cell":{...}}, {"table":{...}}, {"indirect":{...}}	one more of the report's list of these
 *	{"failed":"..."}			it cannot go on
 *	{"end":true}				that was all
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/error.h"
#include "port/port.h"

#define PROBE_MAX_VDEVS 8
/* probe_options_parse() returns it when only the help is wanted. */
#define PROBE_HELP 1

enum probe_device_use {
	PROBE_DEVICE,
	PROBE_PEER,
	PROBE_TO,
	PROBE_N_DEVICES,
};

struct probe_options {
	struct port_device devices[PROBE_N_DEVICES]; /* text "": none */
	struct port_device vdevs[PROBE_MAX_VDEVS];
	unsigned n_vdevs;
	bool loopback; /* what the port sends comes back */
	bool json, force, no_store;
	uint32_t max_rules;
	uint32_t timeout_s, step_s;
	uint32_t listen_s;
};

/* 0, PROBE_HELP, or -EINVAL with a line. */
int probe_options_parse(struct probe_options *options, int argc, char **argv, struct error *error);
void probe_options_help(FILE *stream);

/*
 * The child's life, since `begin_us` of the whole probe; `first` is the cell to begin with. Returns the exit code.
 * SIGTERM ends it, with nothing left behind. `parent` is the process that forked it, without which it ends at once.
 */
int probe_child(const struct probe_options *options, pid_t parent, int pipe, uint64_t begin_us,
	unsigned first);

/* The command. Returns the exit code. */
int probe_main(int argc, char **argv);
