/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/known_port.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "port/device.h"

int known_port_key(struct known_key *key, const struct port *port)
{
	bool named = port->device.kind != PORT_DEVICE_KERNEL;

	/* of a kernel interface the driver is all that counts */
	return known_key(key, port->id, named ? device_arguments(port->device.text) : "");
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
