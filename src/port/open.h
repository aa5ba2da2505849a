/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* How a port is opened, step by step. For the files of port/, whose users have port/port.h. */

#include "port/kernel.h"
#include "port/packet.h"
#include "port/port.h"

/* Ethernet header, two VLAN tags, FCS. */
#define PORT_FRAME_OVERHEAD (RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN + RTE_ETHER_CRC_LEN)

struct port_opening {
	struct port *port;
	const struct port_config *config;
	port_warn_fn warn;
	void *context;
	struct kernel_interface interface; /* where the device has one */
	struct packet_ring ring;	   /* of af_packet */
	uint16_t room; /* that mbufs have already; 0: they will be made to fit */
};

/* An interface by its name: af_xdp, else af_packet. Fills `ethdev` and `id`. */
int port_open_interface(struct port_opening *opening, struct error *error);
/* An interface by af_packet alone. */
int port_open_packet(struct port_opening *opening, struct error *error);
/* Learns from the opened device what it is, and how many of the wanted queues it has. */
int port_take_device(struct port_opening *opening, unsigned n_queues, struct error *error);
/* A PCI device, or a vdev as the user wrote it. */
int port_open_named(struct port_opening *opening, struct error *error);
