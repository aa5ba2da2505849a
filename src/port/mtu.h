/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The lengths of frames that a port can send, and what the kernel dropped of them. For the files of port/. */

#include "port/port.h"

/* Once a device is opened: what it can send, and whether frames of any length may come. */
void port_mtu_begin(struct port *port);
/*
 * Packets that the kernel dropped on their way out of the port's interface since it was opened: of a tap those that
 * its queue had no room for, of others those that the interface, or its other end, refused. 0 where it does not tell.
 */
uint64_t port_kernel_dropped(struct port *port);
