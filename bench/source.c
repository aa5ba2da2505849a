/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "port/rss.h"

static void say(void *context, const char *line)
{
	(void)context;
	fprintf(stderr, "millrace: bench: %s\n", line);
}

#ifdef MILLRACE_FLOWSIM

/* Of the key that spreads flows among queues; any will do where nobody attacks. */
#define RSS_RANDOM 0x6d69

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
	unsigned n_queues = RTE_MAX(config->n_queues, 1u);
	char name[PORT_NAME_MAX], device[PORT_DEVICE_MAX];
	struct port_config port = {.name = name,
		.n_queues = n_queues,
		.offload_places = config->offload_places,
		.rss_pattern = n_queues > 1 ? rss_pattern(RSS_RANDOM) : 0};

	snprintf(name, sizeof(name), "%s%u", number == 0 ? "left" : "right", config->number);
	int length =
		snprintf(device, sizeof(device), "net_flowsim%u,", 2 * config->number + number);

	if (config->capture[number] != NULL)
		length += snprintf(device + length, sizeof(device) - length, "capture=%s",
			config->capture[number]);
	else
		length += snprintf(device + length, sizeof(device) - length,
			"flows=%u,load=%s,side=%s", config->flows, load_word(config->load),
			number == 0 || config->same ? "forward" : "reverse");
	if (config->words != NULL)
		snprintf(device + length, sizeof(device) - length, ",%s", config->words);
	int ret = port_device_parse(&port.device, device, error);

	return ret < 0 ? ret : port_open(&source->port[number], &port, say, NULL, error);
}

#else

static int open_port(struct bench_source *source, unsigned number,
	const struct bench_source_config *config, struct error *error)
{
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

int bench_null_ports(struct port *port[2], struct error *error)
{
	static const char *const names[] = {"source", "sink"};
	static const char *const devices[] = {"net_null0", "net_null1"};
	int ret = 0;

	for (unsigned side = 0; ret == 0 && side < 2; side++) {
		struct port_config config = {.name = names[side], .n_queues = 1};

		ret = port_device_parse(&config.device, devices[side], error);
		if (ret == 0)
			ret = port_open(&port[side], &config, say, NULL, error);
	}
	return ret;
}
