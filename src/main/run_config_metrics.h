/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The section `metrics` of a configuration: where the engine answers by HTTP (docs/metrics.md). Its one key is the option
 * --metrics of the command line. `where` and errors are as in base/options.h; all of it belongs to the thread that reads
 * the command line.
 */

#include "base/error.h"

struct run_metrics {
	char *listen; /* as it was written; NULL: nowhere */
};

enum run_metrics_key {
	RUN_METRICS_LISTEN,
	RUN_METRICS_N_KEYS,
};

/* As a file calls it: "listen". */
const char *run_metrics_key(enum run_metrics_key key);

void run_metrics_fini(struct run_metrics *metrics);

/* Reads a value; "none" is no address. 0, -EINVAL or -ENOMEM with a line. */
int run_metrics_set(struct run_metrics *metrics, enum run_metrics_key key, const char *where,
	const char *value, struct error *error);
