/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void say(void *context, const char *line)
{
	(void)context;
	fprintf(stderr, "millrace: bench: %s\n", line);
}

#ifdef MILLRACE_FLOWSIM

static const char *load_word(enum sequence_load load)
{
	switch (load) {
	case SEQUENCE_IN_ORDER:
		return "order";
	case SEQUENCE_UNIFORM:
		return "uniform";
	case SEQUENCE_ZIPF:
		break;
	}
	return "zipf";
}

static int open_port(struct bench_source *source, unsigned number,
	const struct bench_source_config *config, struct error *error)
{
	struct port_config port = {.name = number == 0 ? "left" : "right", .n_queues = 1};
	char device[PORT_DEVICE_MAX];

	snprintf(device, sizeof(device), "net_flowsim%u,flows=%u,load=%s,side=%s%s%s", number,
		config->flows, load_word(config->load),
		number == 0 || config->same ? "forward" : "reverse",
		config->words == NULL ? "" : ",", config->words == NULL ? "" : config->words);
	int ret = port_device_parse(&port.device, device, error);

	return ret < 0 ? ret : port_open(&source->port[number], &port, say, NULL, error);
}

#else

static int open_port(struct bench_source *source, unsigned number,
	const struct bench_source_config *config, struct error *error)
{
	(void)say;
	(void)source;
	(void)number;
	(void)config;
	return error_set(error, -ENOTSUP,
		"this needs the simulated NIC, and was built without (./dev setup)");
}

#endif

int bench_source_open(
	struct bench_source *source, const struct bench_source_config *config, struct error *error)
{
	int ret = 0;

	memset(source, 0, sizeof(*source));
	for (unsigned i = 0; ret == 0 && i < (config->alone ? 1 : 2); i++)
		ret = open_port(source, i, config, error);
	return ret;
}

void bench_source_close(struct bench_source *source)
{
	for (unsigned i = 0; i < 2; i++)
		port_close(source->port[i]);
	memset(source, 0, sizeof(*source));
}
