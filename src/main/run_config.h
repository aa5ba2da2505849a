/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What the user asks of `millrace run`: from the command line, or from a file in YAML with the same
 * words, and what is said on the command line wins.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "main/engine_options.h"
#include "path/plane.h"
#include "port/port.h"

/* What run_config_parse() returns when help was asked for. */
#define RUN_HELP 1

struct run_port {
	char name[PORT_NAME_MAX];
	struct port_device device;
};

struct run_wire {
	unsigned port[2]; /* places in `ports` */
};

struct run_config {
	struct run_port ports[PLANE_MAX_PORTS]; /* each belongs to exactly one wire */
	unsigned n_ports;
	struct run_wire wires[FLOW_MAX_WIRES];
	unsigned n_wires;
	struct engine_options engine; /* workers, flows, timeouts, ... as replay has them */
	enum plane_threads threads;
	bool poll_always;
	bool pin;     /* default true */
	bool force;   /* go on where a wire would cut this machine off */
	char *output; /* file for records; NULL: none are written; "-": standard output */
	char *socket; /* NULL: the default path */
	char *config_file;
};

/*
 * Reads the command line, argv[0] being "run", and the file it names. Returns 0, RUN_HELP, or -EINVAL
 * (or the errno of a file that cannot be read) with one line for the user. The caller frees with
 * run_config_fini() in every case.
 */
int run_config_parse(struct run_config *config, int argc, char **argv, struct error *error);

/* Reads a file alone: `config check`. Errors name the file, the line and the path of the key. */
int run_config_read(struct run_config *config, const char *file, struct error *error);

void run_config_fini(struct run_config *config);

/* The configuration in effect, every default filled in, as one line of JSON. The caller frees. */
char *run_config_json(const struct run_config *config);

void run_config_help(FILE *stream);
