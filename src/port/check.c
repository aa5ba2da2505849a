/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "port/check.h"
#include "port/claim.h"
#include "port/device.h"
#include "port/netlink.h"
#include "port/probe.h"
#include "port/standing.h"

#define MAX_NAMES 64

void port_warn(const struct port_opening *opening, const char *format, ...)
{
	struct error line;
	va_list arguments;

	if (opening->warn == NULL)
		return;
	va_start(arguments, format);
	vsnprintf(line.text, sizeof(line.text), format, arguments);
	va_end(arguments);
	opening->warn(opening->context, line.text);
}

static int no_interface(const char *name, struct error *error)
{
	char names[MAX_NAMES][IF_NAMESIZE];
	const char *candidates[MAX_NAMES];
	unsigned n = kernel_names(names, MAX_NAMES);

	for (unsigned i = 0; i < n; i++)
		candidates[i] = names[i];
	const char *near = suggest(name, candidates, n);

	return error_set(error, -ENODEV, "%s: no such interface%s%s%s", name,
		near ? "; did you mean " : "; `ip link` lists them", near ? near : "",
		near ? "?" : "");
}

/* Packets that come for this machine, or for what stands on the interface, would go out on the other side. */
static int check_needed(
	const struct port_opening *opening, const char *name, unsigned index, struct error *error)
{
	struct netlink_state state;
	char what[320], remedy[64];
	bool cut_off;
	int ret = netlink_state_init(&state);

	if (ret < 0)
		return error_set(error, ret, "%s: the kernel does not say what stands on it: %s",
			name, strerror(-ret));
	bool on = standing_on(&state, index, &cut_off, what, sizeof(what));

	standing_remedy(&state, index, remedy, sizeof(remedy));
	netlink_state_fini(&state);
	if (!on)
		return 0;
	if (!opening->config->force)
		return error_set(error, -EBUSY,
			"%s %s: a wire would %s%s%s. Use --force if you mean it.", name, what,
			cut_off ? "cut this machine off"
				: "take packets from it, or carry them a second time",
			remedy[0] != '\0' ? "; this ends that: " : "", remedy);
	port_warn(opening, "%s %s: the wire takes these packets too, as --force says", name, what);
	return 0;
}

static int check_up(const struct port_opening *opening, struct error *error)
{
	const char *name = opening->port->device.interface;
	int ret;

	if (opening->interface.up)
		return 0;
	ret = kernel_set_up(name);
	if (ret < 0)
		return error_set(error, ret,
			"%s is down and cannot be set up: %s; try: ip link set %s up", name,
			strerror(-ret), name);
	return 0;
}

/* 0, or -EBUSY with a line: one engine has it. */
static int claim(struct port *port, const char *name, unsigned index, struct error *error)
{
	if (probe_has_interface(index))
		return error_set(error, -EBUSY, "%s is a port already", name);
	port->claim = claim_interface(index);
	if (port->claim == -EBUSY)
		return error_set(error, -EBUSY, "%s: another millrace has this interface", name);
	return 0;
}

int port_check_tap(struct port *port, struct error *error)
{
	char driver[PORT_DEVICE_MAX], interface[PORT_DEVICE_MAX];

	device_name(port->device.text, driver, sizeof(driver));
	if (!device_is(driver, "tap") ||
		!device_argument(port->device.text, "iface", interface, sizeof(interface)))
		return 0;
	/* the driver makes it, unless it is there: then it would join whoever has it, and take it down at the end */
	unsigned index = if_nametoindex(interface);

	return index == 0 ? 0 : claim(port, interface, index, error);
}

int port_check_below(const struct port_opening *opening, struct error *error)
{
	char below[PORT_DEVICE_MAX], interface[PORT_DEVICE_MAX];
	int ret = 0;

	for (unsigned i = 0;
		ret == 0 && device_below(opening->port->device.text, i, below, sizeof(below)); i++)
		if (device_argument(below, "iface", interface, sizeof(interface)) &&
			kernel_index(interface) != 0)
			ret = check_needed(opening, interface, kernel_index(interface), error);
	return ret;
}

int port_check_interface(struct port_opening *opening, struct error *error)
{
	struct port *port = opening->port;
	const char *name = port->device.interface;
	struct netlink_link link;
	int ret = kernel_look(&opening->interface, name);

	if (ret == -ENODEV)
		return no_interface(name, error);
	if (ret < 0)
		return error_set(error, ret, "%s cannot be looked at: %s", name, strerror(-ret));
	if (!opening->interface.ethernet)
		return error_set(
			error, -EINVAL, "%s carries no Ethernet frames: it cannot be a port", name);
	if (!kernel_may_net_raw() || !kernel_may_net_admin())
		return error_set(error, -EPERM,
			"%s: no permission: run as root, or give the program CAP_NET_RAW and "
			"CAP_NET_ADMIN",
			name);
	ret = claim(port, name, opening->interface.index, error);
	if (ret == 0)
		ret = check_needed(opening, name, opening->interface.index, error);
	if (ret == 0)
		ret = check_up(opening, error);
	if (ret < 0)
		return ret;
	port->interface_index = opening->interface.index;
	/* what it was opened by may be another name of its (`altname`) */
	ret = netlink_link(&link, port->interface_index);
	if (ret < 0)
		return error_set(error, ret, "%s cannot be looked at: %s", name, strerror(-ret));
	memcpy(port->interface, link.name, sizeof(port->interface));
	port->mtu = (uint16_t)RTE_MIN(opening->interface.mtu, (unsigned)UINT16_MAX);
	port->promiscuous = kernel_promiscuous(port->interface_index);
	if (port->promiscuous < 0)
		return error_set(error, port->promiscuous, "%s cannot be made promiscuous: %s",
			name, strerror(-port->promiscuous));
	return 0;
}

void port_check_offloads(const struct port_opening *opening)
{
	const struct kernel_interface *interface = &opening->interface;
	const char *name = opening->port->device.interface;
	bool xdp = device_is(opening->port->ethdev, "af_xdp");

	/* XDP comes before GRO; with LRO no program can be attached */
	if (!xdp && (interface->gro || interface->lro))
		port_warn(opening,
			"%s: %s is on: it makes frames that do not fit through again; "
			"ethtool -K %s gro off lro off",
			name, interface->lro ? "LRO" : "GRO", name);
	if (!xdp)
		return;
	if (strcmp(interface->driver, "veth") == 0)
		port_warn(opening,
			"%s is a veth: af_xdp does not see VLAN tags that the other end's kernel "
			"sets; there: ethtool -K IF txvlan off",
			name);
	else if (interface->vlan_strip)
		port_warn(opening,
			"%s strips VLAN tags, and af_xdp loses them: ethtool -K %s rxvlan off",
			name, name);
}

int port_check_wire(const struct port *a, const struct port *b, struct error *error)
{
	const struct port *low = a->mtu < b->mtu ? a : b;
	const struct port *high = a->mtu < b->mtu ? b : a;

	if (a->mtu == b->mtu)
		return 0;
	if (low->device.interface[0] != '\0')
		return error_set(error, -EINVAL,
			"%s has MTU %u and %s MTU %u: longer frames would be lost between them; "
			"ip link set %s mtu %u",
			a->name, a->mtu, b->name, b->mtu, low->device.interface, high->mtu);
	if (high->device.interface[0] != '\0')
		return error_set(error, -EINVAL,
			"%s has MTU %u and %s MTU %u: longer frames would be lost between them; "
			"ip link set %s mtu %u",
			a->name, a->mtu, b->name, b->mtu, high->device.interface, low->mtu);
	return error_set(error, -EINVAL,
		"%s has MTU %u and %s MTU %u: longer frames would be lost between them", a->name,
		a->mtu, b->name, b->mtu);
}

int port_check_loops(struct port *const *ports, const struct topology *topology, bool force,
	port_warn_fn warn, void *context, struct error *error)
{
	struct standing_wire *wires = calloc(topology->n_domains, sizeof(*wires));
	struct netlink_state state = {0};
	char way[200];
	int ret = wires == NULL ? -ENOMEM : netlink_state_init(&state);

	if (ret < 0)
		error_set(error, ret, "the kernel does not say how its interfaces are joined: %s",
			strerror(-ret));
	for (unsigned i = 0, n = 0; ret == 0 && i < topology->n_domains; i++) {
		if (!topology_is_wire(topology, i))
			continue;
		const struct port *a = ports[topology_port(topology, i, 0)],
				  *b = ports[topology_port(topology, i, 1)];
		struct error line;

		wires[n++] = (struct standing_wire){{a->interface_index, b->interface_index}};
		if (!standing_joined(&state, wires, n, way, sizeof(way)))
			continue;
		error_set(&line, 0,
			"%s and %s are joined already (%s): packets would arrive twice, or go "
			"round for ever",
			a->name, b->name, way);
		if (!force)
			ret = error_set(
				error, -ELOOP, "%s. Use --force if you mean it.", line.text);
		else
			warn(context, line.text);
	}
	netlink_state_fini(&state);
	free(wires);
	return ret;
}
