/* SPDX-License-Identifier: BSD-3-Clause */
#include <rte_eal.h>
#include <rte_mbuf.h>

#include "port/port.h"

#define CACHE 256

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
	/*
	 * Without hugepages the default pool puts one mbuf on each 4 KiB page, and all their headers
	 * fall into the same few cache sets. Packed as here they have no IO address.
	 */
	return rte_mempool_create(name, n,
		(unsigned)sizeof(struct rte_mbuf) + priv.mbuf_priv_size + data_room, cache,
		sizeof(priv), rte_pktmbuf_pool_init, &priv, rte_pktmbuf_init, NULL, socket,
		RTE_MEMPOOL_F_NO_IOVA_CONTIG);
}
