/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A running engine, as main has it: what it was told, and what was made of that, in the order in which it is made. All of it
 * belongs to control's thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/topology.h"
#include "control/server.h"
#include "export/news.h"
#include "main/run_config.h"

struct run_before;

struct run {
	struct run_config config; /* of the start: what only a restart changes stays as it says */
	struct run_config
		*current;	/* in effect: that of the start, or one that was applied since */
	struct run_words words; /* of the command line */
	struct run_blocks_text blocks; /* what the one in effect has blocked */
	struct run_before *before;     /* that can be gone back to; NULL: none */
	char *text; /* of the one that was applied last; NULL: it is its file's */
	size_t text_size;
	struct topology topology;	     /* of the configuration's wires and routers */
	struct port *ports[PLANE_MAX_PORTS]; /* by their numbers there */
	struct known
		*known[PLANE_MAX_PORTS]; /* of their cards, by an earlier probe; NULL: nothing */
	struct exporter *exporter;
	const char *port_names[TOPOLOGY_MAX_PORTS];
	struct export_collector *collectors[EXPORTS_MAX]; /* the exporter's */
	unsigned n_collectors;
	struct exports_news exports_news[EXPORTS_MAX];
	struct capture_files *captures; /* NULL: there are none */
	struct plane *plane;
	struct host *hosts[TOPOLOGY_MAX_DOMAINS]; /* by domain; NULL: it is no router */
	uint32_t
		carriers; /* a bit for each port of a router whose link the kernel was told to be up */
	uint64_t used_us; /* when the kernel was told of neighbours in use; clock of the machine */
	struct control *control;
	bool dpdk;   /* was started */
	int signals; /* descriptor */
	bool stop;
	bool reloading;		  /* the service manager was told so */
	bool reload_waits;	  /* the configuration is to be read again as soon as that can be */
	uint64_t reload_waits_us; /* since when; clock of the machine */
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
