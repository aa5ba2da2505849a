/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/run_draft.h"

#include <errno.h>
#include <string.h>

#include "base/options.h"
#include "base/suggest.h"

#define NO_WIRE UINT32_MAX

struct joining {
	struct run_config *config;
	const struct run_draft *draft;
	unsigned wire[PLANE_MAX_PORTS]; /* of each port: the wire that it is in, or NO_WIRE */
	struct error *error;
};

static bool ports_good_name(const char *name)
{
	for (const char *at = name; *at != '\0'; at++)
		if (*at <= ' ' || *at >= 0x7f || strchr(",=/\\\"'", *at))
			return false;
	return *name != '\0' && strlen(name) < PORT_NAME_MAX;
}

/* What DPDK tells vdevs apart by: all before the arguments. */
static bool same_device(const struct port_device *a, const struct port_device *b)
{
	size_t length = strcspn(a->text, ",");

	if (*a->interface && strcmp(a->interface, b->interface) == 0)
		return true;
	if (length != strcspn(b->text, ","))
		return false;
	return a->kind == PORT_DEVICE_PCI ? strncasecmp(a->text, b->text, length) == 0
					  : strncmp(a->text, b->text, length) == 0;
}

/* The place of the port with this name, or -1. */
static int find_port(const struct run_config *config, const char *name)
{
	for (unsigned i = 0; i < config->n_ports; i++)
		if (strcmp(config->ports[i].name, name) == 0)
			return (int)i;
	return -1;
}

/* A name that is no port's was taken for a device, and is none. */
static int no_such_port(
	const struct joining *joining, const char *where, const char *name, const char *because)
{
	const char *names[PLANE_MAX_PORTS];
	char word[OPTION_WORD_MAX];
	unsigned n = 0;

	for (; n < joining->draft->n_ports; n++)
		names[n] = joining->draft->ports[n].name;
	const char *near = suggest(name, names, n);

	snprintf(word, sizeof(word), "%s", name);
	if (near)
		return error_set(joining->error, -EINVAL, "%s %s: no such port; did you mean %s?",
			where, word, near);
	return error_set(joining->error, -EINVAL, "%s %s", where, because);
}

static int add_port(struct joining *joining, const char *where, const char *name,
	const char *device, bool named)
{
	struct run_config *config = joining->config;
	struct run_port *port = &config->ports[config->n_ports];
	struct error because;

	if (!ports_good_name(name))
		return option_bad_value(where, name,
			"a port's name has 1 to 31 letters, digits and signs, none of them , = / "
			"\\ or a quote",
			joining->error);
	if (find_port(config, name) >= 0)
		return option_bad_value(
			where, name, "there is a port of this name already", joining->error);
	if (port_device_parse(&port->device, device, &because) < 0) {
		if (!named)
			return no_such_port(joining, where, name, because.text);
		return error_set(joining->error, -EINVAL, "%s %s", where, because.text);
	}
	for (unsigned i = 0; i < config->n_ports; i++)
		if (same_device(&port->device, &config->ports[i].device))
			return error_set(joining->error, -EINVAL,
				"%s %s: port %s has the same device", where, port->device.text,
				config->ports[i].name);
	memcpy(port->name, name, strlen(name) + 1);
	joining->wire[config->n_ports++] = NO_WIRE;
	return 0;
}

/* The place of a port that a wire or router, the domain of this number, names; a device may have no name yet. Or an error. */
static int take_domain_port(
	struct joining *joining, unsigned domain, const char *where, const char *name)
{
	struct run_config *config = joining->config;
	const bool router = domain >= joining->draft->n_wires;
	int port = find_port(config, name);

	if (port < 0) {
		int ret = add_port(joining, where, name, name, false);

		if (ret < 0)
			return ret;
		port = (int)config->n_ports - 1;
	}
	if (joining->wire[port] == domain)
		return option_bad_value(where, name,
			router ? "the router has this port already"
			       : "a wire has two ports, not one twice",
			joining->error);
	if (joining->wire[port] != NO_WIRE)
		return option_bad_value(where, name,
			joining->wire[port] >= joining->draft->n_wires
				? "it is in a router already; a port belongs to one"
				: "it is in another wire already; a port belongs to one",
			joining->error);
	joining->wire[port] = domain;
	return port;
}

static int add_end(struct joining *joining, unsigned wire, unsigned end)
{
	const int port = take_domain_port(joining, wire, joining->draft->wires[wire].where,
		joining->draft->wires[wire].name[end]);

	if (port < 0)
		return port;
	joining->config->wires[wire].port[end] = (unsigned)port;
	return 0;
}

static int add_router(struct joining *joining, unsigned number)
{
	const struct run_draft_router *draft = &joining->draft->routers[number];
	struct run_router *router = &joining->config->routers[number];
	int ret = 0;

	run_router_fini(router);
	run_router_init(router);
	for (unsigned i = 0; ret == 0 && i < RUN_ROUTER_N_KEYS; i++)
		if (draft->values[i] != NULL)
			ret = run_router_set(router, (enum run_router_key)i, draft->where,
				draft->values[i], joining->error);
	for (unsigned i = 0; ret == 0 && i < number; i++)
		if (strcmp(joining->config->routers[i].name, router->name) == 0)
			ret = option_bad_value(draft->where, router->name,
				"there is a router of this name already", joining->error);
	for (unsigned i = 0; ret == 0 && i < draft->n_ports; i++) {
		const int port = take_domain_port(joining, joining->draft->n_wires + number,
			draft->where, draft->ports[i].port);

		ret = port < 0 ? port
			       : run_router_add_port(router, (unsigned)port, draft->where,
					 draft->ports[i].tap != NULL ? draft->ports[i].tap
								     : draft->ports[i].port,
					 joining->error);
	}
	if (ret == 0 && router->n_ports == 0)
		ret = error_set(joining->error, -EINVAL, "%s router %s has no port", draft->where,
			router->name);
	joining->config->n_routers = number + 1;
	return ret;
}

/* Ports given and not used: most likely a wire has the name wrong. */
static int check_used(const struct joining *joining)
{
	const struct run_draft *draft = joining->draft;
	const struct run_config *config = joining->config;
	const char *names[PLANE_MAX_PORTS];
	unsigned n = 0;

	for (unsigned i = draft->n_ports; i < config->n_ports; i++)
		names[n++] = config->ports[i].name;
	for (unsigned i = 0; i < draft->n_ports; i++) {
		if (joining->wire[i] != NO_WIRE)
			continue;
		const char *near = suggest(draft->ports[i].name, names, n);

		return error_set(joining->error, -EINVAL, "%s %s: this port is in no wire%s%s%s",
			draft->ports[i].where, draft->ports[i].name,
			near ? "; did you mean it where a wire has " : "", near ? near : "",
			near ? "?" : "");
	}
	return 0;
}

int run_config_join(struct run_config *config, const struct run_draft *draft, struct error *error)
{
	struct joining joining = {.config = config, .draft = draft, .error = error};
	int ret = 0;

	config->n_ports = 0;
	for (unsigned i = 0; ret == 0 && i < draft->n_ports; i++)
		ret = add_port(&joining, draft->ports[i].where, draft->ports[i].name,
			draft->ports[i].device, true);
	for (unsigned wire = 0; ret == 0 && wire < draft->n_wires; wire++) {
		ret = add_end(&joining, wire, 0);
		if (ret == 0)
			ret = add_end(&joining, wire, 1);
	}
	if (ret == 0 && draft->n_wires + draft->n_routers > TOPOLOGY_MAX_DOMAINS)
		ret = error_set(error, -EINVAL, "%s there are %u wires and routers; %d at most",
			draft->routers[0].where, draft->n_wires + draft->n_routers,
			TOPOLOGY_MAX_DOMAINS);
	for (unsigned router = 0; ret == 0 && router < draft->n_routers; router++)
		ret = add_router(&joining, router);
	config->n_wires = draft->n_wires;
	return ret < 0 ? ret : check_used(&joining);
}

struct topology run_config_topology(const struct run_config *config)
{
	struct topology topology = topology_of_wires(config->n_wires);

	for (unsigned i = 0; i < config->n_routers; i++)
		(void)topology_add_router(&topology, config->routers[i].n_ports);
	return topology;
}

unsigned run_config_port(
	const struct run_config *config, const struct topology *topology, unsigned number)
{
	const unsigned domain = topology->domain[number], place = topology->place[number];

	return topology->router[domain]
		       ? config->routers[domain - config->n_wires].ports[place].port
		       : config->wires[domain].port[place];
}
