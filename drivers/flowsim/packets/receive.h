/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Receive of ports whose packets are known in advance; see resolve.h. `queue` is a sim_rx_queue. */

#include <stdint.h>

#include <rte_mbuf.h>

uint16_t sim_receive(void *queue, struct rte_mbuf **packets, uint16_t n);
