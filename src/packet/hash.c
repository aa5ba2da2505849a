/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/hash.h"

#include <errno.h>
#include <stddef.h>
#include <sys/random.h>

int hash_secret_init(struct hash_secret *secret)
{
	struct hash_secret fresh;
	unsigned char *bytes = (unsigned char *)&fresh;
	size_t done = 0;

	/* A signal may interrupt the wait for the kernel's pool at boot, before any byte came. */
	while (done < sizeof(fresh)) {
		ssize_t got = getrandom(bytes + done, sizeof(fresh) - done, 0);

		if (got >= 0)
			done += (size_t)got;
		else if (errno != EINTR)
			return -errno;
	}
	*secret = fresh;
	return 0;
}
