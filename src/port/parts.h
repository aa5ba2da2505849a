/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What the files of port/ share: how a port is opened, step by step. Nobody else includes this. */

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

/* One line of warning for the user. */
void port_warn(const struct port_opening *opening, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Is the interface there, usable, and not needed by this machine? Sets it up and promiscuous. */
int port_check_interface(struct port_opening *opening, struct error *error);
/* The same of the interface that a tap is to have, if it is there already; of other devices nothing. */
int port_check_tap(struct port *port, struct error *error);
/* What stands on the interfaces of the devices below it, where there are several. */
int port_check_below(const struct port_opening *opening, struct error *error);
/* After the driver is known: what the interface does to packets that a wire would rather it did not. */
void port_check_offloads(const struct port_opening *opening);

/* An interface by its name: af_xdp, else af_packet. Fills `ethdev` and `id`. */
int port_open_interface(struct port_opening *opening, struct error *error);
/* An interface by af_packet alone. */
int port_open_packet(struct port_opening *opening, struct error *error);
/* Learns from the opened device what it is, and how many of the wanted queues it has. */
int port_take_device(struct port_opening *opening, unsigned n_queues, struct error *error);
/* A PCI device, or a vdev as the user wrote it. */
int port_open_named(struct port_opening *opening, struct error *error);

/* Once a device is opened: what it can send, and whether frames of any length may come. */
void port_mtu_begin(struct port *port);
/*
 * Packets that the kernel dropped on their way out of the port's interface since it was opened: of a tap those that
 * its queue had no room for, of others those that the interface, or its other end, refused. 0 where it does not tell.
 */
uint64_t port_kernel_dropped(struct port *port);

/* Room in an mbuf that the frames of a packet socket, `frame` bytes each, need; head room included. */
uint16_t port_packet_room(unsigned frame);

/* Asks for the symmetric key while the port is configured; what it made of it, once it is started. */
void port_rss_configure(
	const struct port *port, const struct rte_eth_dev_info *info, struct rte_eth_conf *conf);
uint64_t port_rss_accepted(const struct port *port, const struct rte_eth_dev_info *info);
