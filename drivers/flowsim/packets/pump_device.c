/* SPDX-License-Identifier: BSD-3-Clause */
/* The device behind a port: one that there is, or one that is made for it. */
#include "drivers/flowsim/packets/pump_device.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_bus_vdev.h>
#include <rte_ethdev.h>

#include "drivers/flowsim/port/port.h"

/* "[NAME,ARGUMENTS]", for programs that make no device but those they use themselves. */
static int make_device(
	const char *text, size_t length, char made[SIM_DEVICE_NAME], struct error *error)
{
	char inside[sizeof(((struct sim_args *)NULL)->port)];
	char *arguments;
	int ret;

	snprintf(inside, sizeof(inside), "%.*s", (int)length - 2, text + 1);
	arguments = strchr(inside, ',');
	if (arguments != NULL)
		*arguments++ = '\0';
	snprintf(made, SIM_DEVICE_NAME, "%.63s", inside);
	ret = rte_vdev_init(made, arguments != NULL ? arguments : "");
	if (ret < 0)
		made[0] = '\0';
	return ret < 0 ? error_set(error, ret, "port=%s: the device cannot be made: %s", text,
				 strerror(-ret))
		       : 0;
}

int sim_device_find(
	const char *text, char made[SIM_DEVICE_NAME], uint16_t *wrapped, struct error *error)
{
	size_t length = strlen(text);
	int ret = 0;

	if (length >= 2 && text[0] == '[' && text[length - 1] == ']')
		ret = make_device(text, length, made, error);
	if (ret < 0)
		return ret;
	if (rte_eth_dev_get_port_by_name(made[0] != '\0' ? made : text, wrapped) == 0)
		return 0;
	return error_set(error, -ENODEV,
		"port=%s: there is no such device; it has to be named before", text);
}

void sim_device_remove(const char *made, uint16_t wrapped)
{
	if (made[0] == '\0')
		return;
	if (wrapped != SIM_NO_PORT) {
		/* an interface of the kernel's stays so, else */
		(void)rte_eth_promiscuous_disable(wrapped);
		rte_eth_dev_close(wrapped);
	}
	/* closing it took it away from ethdev: what is left of it is the device */
	(void)rte_vdev_uninit(made);
}
