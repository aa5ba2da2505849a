/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The place of the control socket in the file system: claimed from nobody, or from an engine that is
 * dead, never from one that lives, nor from anything that is not a socket.
 *
 * Claims are made one at a time, under a lock on the directory (advisory, between millraces), so that
 * two that start together do not take each other for dead. A lock that does not come within a second is
 * gone without.
 */

#include <stdbool.h>
#include <sys/types.h>
#include <sys/un.h>

#include "base/error.h"

struct control_place {
	int fd; /* listening, non-blocking */
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	bool taken_over; /* a dead engine's socket was in the way */
	/* which file is ours */
	dev_t device;
	ino_t inode;
};

/* `path` NULL: the default. Returns 0 or a negative errno with a line; then there is no place. */
int control_place_claim(struct control_place *place, const char *path, struct error *error);

/* Closes the socket and removes it, if what lies there is still ours. */
void control_place_release(struct control_place *place);
