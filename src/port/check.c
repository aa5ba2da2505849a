/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "port/claim.h"
#include "port/device.h"
#include "port/parts.h"
#include "port/probe.h"

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

/* Packets that come for this machine would go out on the other side of the wire. */
static int check_needed(const struct port_opening *opening, struct error *error)
{
	const char *name = opening->port->device.interface;
	char carried[160];

	if (!kernel_carries(name, carried, sizeof(carried)))
		return 0;
	if (!opening->config->force)
		return error_set(error, -EBUSY,
			"%s carries %s: a wire would cut this machine off. Use --force if you mean "
			"it.",
			name, carried);
	port_warn(opening, "%s carries %s: the wire takes these packets too, as --force says", name,
		carried);
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

int port_check_interface(struct port_opening *opening, struct error *error)
{
	struct port *port = opening->port;
	const char *name = port->device.interface;
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
		ret = check_needed(opening, error);
	if (ret == 0)
		ret = check_up(opening, error);
	if (ret < 0)
		return ret;
	port->interface_index = opening->interface.index;
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
