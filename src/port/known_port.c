/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/known_port.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_ethdev.h>

#include "port/device.h"

/* A device's arguments, and those of the devices that it is made of. */
#define WHOLE_MAX 4096

/* What a port of that name is: its driver and arguments. */
static void add_member(char text[WHOLE_MAX], const char *name)
{
	struct rte_eth_dev_info info;
	size_t length = strlen(text);
	uint16_t id;

	if (rte_eth_dev_get_port_by_name(name, &id) < 0 || rte_eth_dev_info_get(id, &info) < 0)
		return;
	const struct rte_devargs *given = rte_dev_devargs(info.device);
	const char *arguments = given != NULL && given->args != NULL ? given->args : "";

	snprintf(text + length, WHOLE_MAX - length, "; %s: %s,%s", name, info.driver_name,
		arguments);
}

/* Bonding ports are what the ports are that they are made of. */
static void add_members(char text[WHOLE_MAX], const char *arguments)
{
	static const char *const keys[] = {"slave=", "member="};

	for (const char *at = arguments; *at != '\0'; at += strspn(at, ",")) {
		const size_t length = strcspn(at, ",");
		char name[RTE_ETH_NAME_MAX_LEN];

		for (unsigned i = 0; i < RTE_DIM(keys); i++) {
			const size_t key = strlen(keys[i]);

			if (strncmp(at, keys[i], key) != 0)
				continue;
			snprintf(name, sizeof(name), "%.*s", (int)(length - key), at + key);
			add_member(text, name);
		}
		at += length;
	}
}

int known_port_key(struct known_key *key, const struct port *port)
{
	char text[WHOLE_MAX] = "";

	/* of a kernel interface the driver is all that counts */
	if (port->device.kind != PORT_DEVICE_KERNEL) {
		snprintf(text, sizeof(text), "%s", device_arguments(port->device.text));
		add_members(text, device_arguments(port->device.text));
	}
	return known_key(key, port->id, text);
}

struct known *known_port_load(const struct port *port, port_warn_fn warn, void *context)
{
	struct known *known = calloc(1, sizeof(*known));
	char directory[PATH_MAX];
	struct known_key key;
	struct error error;
	int ret = known == NULL ? -ENOMEM : known_port_key(&key, port);

	if (ret == 0)
		ret = known_directory(directory, sizeof(directory));
	if (ret == 0) {
		ret = known_load(known, directory, &key, &error);
		if (ret < 0 && ret != -ENOENT)
			warn(context, error.text);
	}
	if (ret == 0)
		return known;
	free(known);
	return NULL;
}
