/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The first look at packets that come in by a router's port: those that may be forwarded go on to the pipeline. What a
 * router does not forward whatever its routes are ends here: frames for another link address are dropped; broadcast,
 * multicast, ARP, neighbour discovery and packets with options go to the kernel; an IPv4 header with a wrong checksum is dropped.
 *
 * The lcore's own thread.
 */

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include <rte_mbuf.h>

#include "port/port.h"

struct lcore;
struct lcore_rx;

/* The addresses by which a router knows its ports; the thread that follows the kernel writes them. */
struct router_port {
	/* the link address that packets come to: its bytes as they lie in a frame, and two zeros */
	_Atomic uint64_t mac;
};

static inline uint64_t router_mac(const uint8_t mac[6])
{
	uint64_t value = 0;

	memcpy(&value, mac, 6);
	return value;
}

/* Says how many packets are left, which may be forwarded; the rest has been counted, and dropped or left to the kernel. */
unsigned router_in(
	struct lcore *lcore, const struct lcore_rx *rx, struct rte_mbuf **packets, unsigned n);
