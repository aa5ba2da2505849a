/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A configuration file as libcyaml reads it by our schema: the structure is right, the values are
 * still the words that the user wrote.
 *
 * Life-cycle: run_yaml_create(), run_yaml_destroy(). The texts belong to it; the bytes and the places
 * need not outlive the first.
 */

#include <stddef.h>

#include "main/run_config_places.h"
#include "main/run_option.h"

/* A protocol's name alone sets all of its timeouts: these keys come first, then one for each. */
#define RUN_YAML_GROUPS 4
#define RUN_YAML_TIMEOUTS (RUN_YAML_GROUPS + FLOW_N_TIMEOUTS)

struct run_yaml_port {
	char *name;
	char *device;
};

struct run_yaml_wire {
	char *name[2];
};

struct run_yaml_router_port {
	char *port;
	char *name; /* NULL: not said */
};

struct run_yaml_router {
	char *values[RUN_ROUTER_N_KEYS]; /* NULL: not said */
	struct run_yaml_router_port **ports;
	unsigned n_ports;
};

struct run_yaml_timeouts {
	char *seconds[RUN_YAML_TIMEOUTS]; /* NULL: not said */
};

struct run_yaml_offload {
	char *values[RUN_OFFLOAD_EXCEPT]; /* by enum run_offload_key; NULL: not said */
	char **except;
	unsigned n_except;
};

struct run_yaml_blocks {
	char *values[RUN_BLOCKS_LIST]; /* by enum run_blocks_key; NULL: not said */
	char **list;
	unsigned n_list;
};

struct run_yaml_metrics {
	char *values[RUN_METRICS_N_KEYS]; /* by enum run_metrics_key; NULL: not said */
};

struct run_yaml_rules {
	char *values[RUN_RULES_LIST]; /* by enum run_rules_key; NULL: not said */
	char **list;
	unsigned n_list;
	char **sets;
	unsigned n_sets;
	char **captures;
	unsigned n_captures;
};

struct run_yaml_data {
	struct run_yaml_port *ports;
	unsigned n_ports;
	struct run_yaml_wire **wires;
	unsigned n_wires;
	struct run_yaml_router **routers;
	unsigned n_routers;
	char **exports;
	unsigned n_exports;
	struct run_yaml_timeouts *timeouts; /* NULL: none said */
	struct run_yaml_offload *offload;   /* NULL: none said */
	struct run_yaml_blocks *blocks;	    /* NULL: none said */
	struct run_yaml_metrics *metrics;   /* NULL: none said */
	struct run_yaml_rules *rules;	    /* NULL: none said */
	char *settings[RUN_N_SETTINGS];	    /* in the order of run_settings; NULL: not said */
};

struct run_yaml;

/* Returns 0, -EBADMSG or -ENOMEM with a line. */
int run_yaml_create(struct run_yaml **yaml, const struct run_places *places, const char *bytes,
	size_t size, struct error *error);
/* Accepts NULL. */
void run_yaml_destroy(struct run_yaml *yaml);

/* NULL where the file says nothing. */
const struct run_yaml_data *run_yaml_data(const struct run_yaml *yaml);

/* The key of a timeout; `number` below RUN_YAML_TIMEOUTS. */
const char *run_yaml_timeout(unsigned number);
