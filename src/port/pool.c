/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>

#include "base/mapping.h"
#include "port/port.h"

#define CACHE 256

static void unmap(struct rte_mempool_memhdr *part, void *size)
{
	mapping_destroy(part->addr, (size_t)(uintptr_t)size);
}

/* Takes memory of our own for all of a pool's objects. */
static int populate(struct rte_mempool *pool, unsigned n, unsigned object)
{
	const size_t size = (size_t)n * object;
	void *memory = mapping_create(size, MAPPING_HUGE | MAPPING_POPULATE);

	if (memory == NULL)
		return -errno;
	int ret = rte_mempool_populate_iova(
		pool, memory, RTE_BAD_IOVA, size, unmap, (void *)(uintptr_t)size);

	if (ret == (int)n)
		return 0;
	if (ret <= 0)
		mapping_destroy(memory, size);
	return ret < 0 ? ret : -ENOMEM;
}

/*
 * Without hugepages the default pool puts one mbuf on each 4 KiB page, and all their headers fall into the same few
 * cache sets. Packed as here they have no IO address. And EAL's memory is a file then, which has small pages: a burst's
 * packets lie on as many, whose addresses a processor hardly keeps. Ours has large ones where the kernel has any.
 */
static struct rte_mempool *packed(const char *name, unsigned n, unsigned cache,
	struct rte_pktmbuf_pool_private *priv, int socket)
{
	const unsigned size = (unsigned)sizeof(struct rte_mbuf) + priv->mbuf_priv_size +
			      priv->mbuf_data_room_size;
	struct rte_mempool *pool = rte_mempool_create_empty(
		name, n, size, cache, sizeof(*priv), socket, RTE_MEMPOOL_F_NO_IOVA_CONTIG);

	if (pool == NULL)
		return NULL;
	rte_pktmbuf_pool_init(pool, priv);
	int ret = populate(pool, n, rte_mempool_calc_obj_size(size, pool->flags, NULL));

	if (ret < 0) {
		rte_mempool_free(pool);
		rte_errno = -ret;
		return NULL;
	}
	rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
	return pool;
}

struct rte_mempool *port_pool_create(const char *name, unsigned n, uint16_t priv_size,
	uint16_t data_room, int socket, bool all_software)
{
	struct rte_pktmbuf_pool_private priv = {
		.mbuf_data_room_size = data_room,
		.mbuf_priv_size = (uint16_t)RTE_ALIGN(priv_size, RTE_MBUF_PRIV_ALIGN),
	};
	unsigned cache = n >= 4 * CACHE ? CACHE : 0;

	if (!all_software || rte_eal_has_hugepages())
		return rte_pktmbuf_pool_create(
			name, n, cache, priv.mbuf_priv_size, data_room, socket);
	return packed(name, n, cache, &priv, socket);
}
