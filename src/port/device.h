/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The text of a device taken apart: "net_tap0,iface=ta" is a name and arguments. */

#include <stdbool.h>
#include <stddef.h>

/* What stands before the first comma; returns its length. */
size_t device_name(const char *text, char *name, size_t size);

/* What stands after it, or "". */
const char *device_arguments(const char *text);

/* The value of an argument; false where there is none. */
bool device_argument(const char *text, const char *key, char *value, size_t size);

/*
 * The n-th device, at whatever depth, that a device is made of: of "net_flowsim0,port=[net_af_packet0,iface=eth1]"
 * the first is "net_af_packet0,iface=eth1". False where there is none.
 */
bool device_below(const char *text, unsigned n, char *below, size_t size);

/* Is the vdev `name` ("net_tap0") one of this driver's ("tap")? Old names (eth_tap0) are too. */
bool device_is(const char *name, const char *driver);
