/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/run_config_metrics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "control/http_address.h"

const char *run_metrics_key(enum run_metrics_key key)
{
	static const char *const keys[RUN_METRICS_N_KEYS] = {[RUN_METRICS_LISTEN] = "listen"};

	return keys[key];
}

void run_metrics_fini(struct run_metrics *metrics)
{
	free(metrics->listen);
	metrics->listen = NULL;
}

int run_metrics_set(struct run_metrics *metrics, enum run_metrics_key key, const char *where,
	const char *value, struct error *error)
{
	struct http_address address;
	struct error wanted;
	char *copy = NULL;

	if (key != RUN_METRICS_LISTEN)
		return -EINVAL;
	if (strcmp(value, "none") != 0) {
		if (!option_is_line(value))
			return option_bad_value(
				where, value, "control characters are not taken in it", error);
		if (http_address_parse(&address, value, &wanted) < 0)
			return option_bad_value(where, value, wanted.text, error);
		copy = strdup(value);
		if (!copy)
			return error_set(error, -ENOMEM, "no memory for the configuration");
	}
	free(metrics->listen);
	metrics->listen = copy;
	return 0;
}
