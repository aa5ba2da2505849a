/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Bytes as a configuration file. What is refused is told in one line that names the file; what is taken
 * can be written as JSON, and that is a configuration that says the same.
 */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "main/run_config.h"

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_refused(int code, const struct error *error)
{
	check(code == -EBADMSG);
	check(strncmp(error->text, "f.yaml:", 7) == 0);
	for (const char *at = error->text; *at != '\0'; at++)
		check((unsigned char)*at >= 0x20);
}

static void check_taken(const struct run_config *config)
{
	bool used[PLANE_MAX_PORTS] = {false};

	check(config->n_wires <= FLOW_MAX_WIRES && config->n_ports == 2 * config->n_wires);
	for (unsigned i = 0; i < 2 * config->n_wires; i++) {
		unsigned port = config->wires[i / 2].port[i % 2];

		check(port < config->n_ports && !used[port]);
		used[port] = true;
	}
	for (unsigned i = 0; i < FLOW_N_TIMEOUTS; i++)
		check(config->engine.timeouts.seconds[i] - 1 < FLOW_TIMEOUT_MAX_S);
	check(config->engine.workers >= 1 && config->engine.workers <= PLANE_MAX_WORKERS);
	check(config->engine.flows >= 1 && config->engine.flows <= ENGINE_FLOWS_MAX);
	check(config->offload.slots >= 1 && config->offload.slots <= RUN_OFFLOAD_SLOTS_MAX);
	check(config->offload.n_except <= PLANE_MAX_PORTS);
	for (unsigned i = 0; i < config->n_ports; i++)
		check(config->offload.on || !run_config_offloads(config, i));
	check(config->socket != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct run_config config, again;
	struct error error = {""};
	int ret = run_config_read_bytes(&config, "f.yaml", (const char *)data, size, &error);

	if (ret < 0) {
		check_refused(ret, &error);
	} else {
		check_taken(&config);
		char *json = run_config_json(&config);

		check(json != NULL);
		check(run_config_read_bytes(&again, "f.yaml", json, strlen(json), &error) == 0);
		char *same = run_config_json(&again);

		check(same != NULL && strcmp(json, same) == 0);
		free(same);
		free(json);
		run_config_fini(&again);
	}
	run_config_fini(&config);
	return 0;
}
