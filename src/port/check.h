/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* May a port use an interface, and is it set up as a wire needs it? For the files of port/. */

#include "port/open.h"

/* One line of warning for the user. */
void port_warn(const struct port_opening *opening, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Is the interface there, usable, and not needed by this machine? Sets it up and promiscuous. */
int port_check_interface(struct port_opening *opening, struct error *error);
/* The same of the interface that a tap is to have, if it is there already; of other devices nothing. */
int port_check_tap(struct port *port, struct error *error);
/* Checks the interfaces of the devices below it, where there are several. */
int port_check_below(const struct port_opening *opening, struct error *error);
/* After the driver is known: what the interface does to packets that a wire would rather it did not. */
void port_check_offloads(const struct port_opening *opening);
