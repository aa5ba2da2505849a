/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The command line of `millrace probe`. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "port/port.h"

#define PROBE_MAX_VDEVS 8
/* What probe_options_parse() says when only the help is wanted. */
#define PROBE_HELP 1

struct probe_options {
	struct port_device device;
	struct port_device peer; /* text "": none */
	struct port_device to;	 /* the same */
	struct port_device vdevs[PROBE_MAX_VDEVS];
	unsigned n_vdevs;
	bool loopback; /* what the port sends comes back */
	bool json, force, no_store;
	uint32_t max_rules;
	uint32_t timeout_s, step_s;
	uint32_t listen_ms;
};

/* 0, PROBE_HELP, or -EINVAL with a line. */
int probe_options_parse(struct probe_options *options, int argc, char **argv, struct error *error);
void probe_options_help(FILE *stream);
