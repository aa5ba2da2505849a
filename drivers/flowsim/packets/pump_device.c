/* SPDX-License-Identifier: BSD-3-Clause */
/* The device behind a port: one that there is, or one that is made for it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_bus_vdev.h>

#include "drivers/flowsim/packets/pump_parts.h"

/* "[NAME,ARGUMENTS]", for programs that make no device but those they use themselves. */
static int make_device(struct sim_pump *pump, const char *text, size_t length, struct error *error)
{
	char inside[sizeof(pump->port->args.port)];
	char *arguments;
	int ret;

	snprintf(inside, sizeof(inside), "%.*s", (int)length - 2, text + 1);
	arguments = strchr(inside, ',');
	if (arguments != NULL)
		*arguments++ = '\0';
	snprintf(pump->made, sizeof(pump->made), "%.63s", inside);
	ret = rte_vdev_init(pump->made, arguments != NULL ? arguments : "");
	if (ret < 0)
		pump->made[0] = '\0';
	return ret < 0 ? error_set(error, ret, "port=%s: the device cannot be made: %s", text,
				 strerror(-ret))
		       : 0;
}

int sim_pump_find_device(struct sim_pump *pump, uint16_t *wrapped, struct error *error)
{
	const char *text = pump->port->args.port;
	size_t length = strlen(text);
	int ret = 0;

	if (length >= 2 && text[0] == '[' && text[length - 1] == ']')
		ret = make_device(pump, text, length, error);
	if (ret < 0)
		return ret;
	if (rte_eth_dev_get_port_by_name(pump->made[0] != '\0' ? pump->made : text, wrapped) == 0)
		return 0;
	return error_set(error, -ENODEV,
		"port=%s: there is no such device; it has to be named before", text);
}

void sim_pump_remove_device(struct sim_pump *pump)
{
	if (pump->made[0] == '\0')
		return;
	if (pump->wrapped != SIM_NO_PORT) {
		/* an interface of the kernel's stays so, else */
		(void)rte_eth_promiscuous_disable(pump->wrapped);
		rte_eth_dev_close(pump->wrapped);
	}
	/* closing it took it away from ethdev: what is left of it is the device */
	(void)rte_vdev_uninit(pump->made);
}
