/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What the user asks of `millrace run`: from the command line, or from a file in YAML with the same
 * words, and what is said on the command line wins. docs/configuration.md has the file.
 *
 * Life-cycle: run_config_parse(), run_config_read() or run_config_read_bytes() fill the caller's
 * struct, whatever was in it; run_config_fini() in every case, also after an error. All of it belongs
 * to one thread, and to one before others are there: getopt and strerror are used.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "main/engine_options.h"
#include "main/exports.h"
#include "main/run_config_blocks.h"
#include "main/run_config_metrics.h"
#include "main/run_config_offload.h"
#include "main/run_config_routers.h"
#include "main/run_config_rules.h"
#include "plane/plane.h"
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
	struct run_port ports[PLANE_MAX_PORTS]; /* each belongs to exactly one wire or router */
	unsigned n_ports;
	struct run_wire wires[FLOW_MAX_WIRES];
	unsigned n_wires;
	struct run_router routers[TOPOLOGY_MAX_DOMAINS]; /* domains after the wires */
	unsigned n_routers;
	struct engine_options engine; /* workers, flows, timeouts, ... as replay has them */
	enum plane_threads threads;
	enum plane_sharding sharding;
	bool poll_always;
	bool pin;	/* default true */
	bool one_armed; /* both ends of a flow may be on one side of a wire */
	bool telemetry; /* with DPDK's telemetry socket */
	bool force;	/* go on where a wire would cut this machine off */
	struct run_offload offload;
	struct run_blocks blocks;
	struct run_metrics metrics;
	struct run_rules rules;
	struct exports exports;
	char *output;	   /* file for records; NULL: none are written; "-": standard output */
	char *socket;	   /* never NULL after success: the default is filled in */
	char *config_file; /* NULL: none was read */
};

/*
 * Reads the command line, argv[0] being "run", and the file it names. argv is reordered, and its words
 * are cut. At least one wire or router is there on success.
 *
 * Returns 0, RUN_HELP, -EINVAL where the command line is wrong (the caller exits with 2), or another
 * negative errno where the file is (exit 1): -EBADMSG for what stands in it, else why it cannot be
 * read. With one line for the user.
 */
int run_config_parse(struct run_config *config, int argc, char **argv, struct error *error);

/* A command line, to be read again later: reading cuts its words and changes their order. */
struct run_words {
	int n;
	char **word;
};

/* 0 or -ENOMEM. */
int run_words_copy(struct run_words *words, int n, char *const *word);
void run_words_fini(struct run_words *words);

/* A configuration file in memory; `name` stands for it in errors. */
struct run_config_text {
	const char *name, *bytes;
	size_t size;
	bool strict; /* it is held against the command line as a file at the start is */
};

/*
 * Reads that command line again, with a text in the place of the file that it names, or a file that has changed since
 * (`text` NULL). What the command line says goes before what the text says, but for wires: a text that is not strict may have some
 * although the command line has, which then are those of the configuration. As run_config_parse().
 */
int run_config_parse_again(struct run_config *config, const struct run_words *words,
	const struct run_config_text *text, struct error *error);

/*
 * Reads a file alone, for `config check`; it may leave the wires to the command line. 0 or a negative
 * errno as above. Errors name the file, the line and the path of the key.
 */
int run_config_read(struct run_config *config, const char *file, struct error *error);

/* The same from memory; `name` stands for the file in errors. */
int run_config_read_bytes(struct run_config *config, const char *name, const char *bytes,
	size_t size, struct error *error);

void run_config_fini(struct run_config *config);

/* Is this port (a place in `ports`) one that NICs may be given rules on? */
bool run_config_offloads(const struct run_config *config, unsigned port);

/*
 * The configuration in effect, every default filled in, as one line of JSON without a newline, in the
 * words of the file: read as a file it gives the same configuration. The caller frees; NULL: no memory.
 */
char *run_config_json(const struct run_config *config);

/* Its wires, and its routers after them. */
struct topology run_config_topology(const struct run_config *config);
/* The place in `ports` of a port by its number there. */
unsigned run_config_port(
	const struct run_config *config, const struct topology *topology, unsigned number);

void run_config_help(FILE *stream);
