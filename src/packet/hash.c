/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/hash.h"

#include <errno.h>
#include <stddef.h>
#include <sys/random.h>

int hash_secret_init(struct hash_secret *secret)
{
	struct hash_secret fresh;
	unsigned char *bytes = (unsigned char *)fresh.word;
	size_t done = 0;
	int ret = simd_choose(&fresh.simd);

	if (ret < 0)
		return ret;
	/* A signal may interrupt the wait for the kernel's pool at boot, before any byte came. */
	while (done < sizeof(fresh.word)) {
		ssize_t got = getrandom(bytes + done, sizeof(fresh.word) - done, 0);

		if (got >= 0)
			done += (size_t)got;
		else if (errno != EINTR)
			return -errno;
	}
	*secret = fresh;
	return 0;
}
