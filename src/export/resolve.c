/* SPDX-License-Identifier: BSD-3-Clause */
#include "export/resolve.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

int resolve(struct resolved *to, const struct export_target *target, int type, struct error *error)
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = type};
	struct addrinfo *found = NULL;
	char port[8];

	snprintf(port, sizeof(port), "%u", target->port);
	int ret = getaddrinfo(target->host, port, &hints, &found);

	if (ret != 0 || found == NULL)
		return error_set(error, -EHOSTUNREACH, "%s: no address of %.200s: %s", target->text,
			target->host, ret == EAI_SYSTEM ? strerror(errno) : gai_strerror(ret));
	memcpy(&to->address, found->ai_addr, found->ai_addrlen);
	to->length = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}
