/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The address of a collector. A name is looked up, which may take its time: for when nobody waits. */

#include <sys/socket.h>

#include "base/error.h"
#include "export/target.h"

struct resolved {
	struct sockaddr_storage address;
	socklen_t length;
};

/* `type` is SOCK_DGRAM or SOCK_STREAM. Returns 0, or -EHOSTUNREACH with why there is none. */
int resolve(struct resolved *to, const struct export_target *target, int type, struct error *error);
