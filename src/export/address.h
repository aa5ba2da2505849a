/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * IP addresses in text, faster than inet_ntop() and in the same form: IPv4 dotted, IPv6 as RFC 5952
 * has it.
 */

#include <stddef.h>
#include <stdint.h>

/* The longest, an IPv4 address inside an IPv6 one, with its zero: that of inet_ntop(). */
#define EXPORT_ADDRESS_MAX 46

/*
 * Writes the address, without an ending zero, and returns its length. `version` is 4 (the first 4
 * bytes count) or 6. The buffer has EXPORT_ADDRESS_MAX bytes.
 */
size_t export_address(char *out, unsigned version, const uint8_t address[16]);
