/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The parts of a running engine, for run.c, which makes them, and run_loop.c, which sees to them. */

#include <stdbool.h>
#include <stdint.h>

#include "base/topology.h"
#include "control/server.h"
#include "export/news.h"
#include "main/run_config.h"

struct run {
	struct run_config config;
	struct topology topology;	     /* of the configuration's wires and routers */
	struct port *ports[PLANE_MAX_PORTS]; /* by their numbers there */
	struct known
		*known[PLANE_MAX_PORTS]; /* of their cards, by an earlier probe; NULL: nothing */
	struct exporter *exporter;
	struct export_collector *collectors[EXPORTS_MAX]; /* the exporter's */
	struct exports_news exports_news[EXPORTS_MAX];
	struct capture_files *captures; /* NULL: there are none */
	struct plane *plane;
	struct host *hosts[TOPOLOGY_MAX_DOMAINS]; /* by domain; NULL: it is no router */
	uint32_t carriers; /* a bit for each port of a router whose link the kernel was told to be up */
	uint64_t used_us; /* when the kernel was told of neighbours in use; clock of the machine */
	struct control *control;
	bool dpdk;   /* was started */
	int signals; /* descriptor */
	bool stop;
	bool reloading;		/* the service manager was told so */
	bool rules_wait;	/* the rules are to be read again as soon as that can be */
	uint64_t rules_wait_us; /* since when; clock of the machine */
	struct export_news news;
	uint64_t tended_us; /* clock of the machine */
	uint64_t alive_us;
	uint16_t said_no_slots; /* a bit for each wire */
	bool failed;
};

static inline unsigned run_n_ports(const struct run *run)
{
	return run->topology.n_ports;
}

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
