/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The link types of captures, by the numbers that files have for them. */

#include <stddef.h>

#include "packet/link.h"

#define CAPTURE_LINK_TEXT_MAX 128

/* Those that are read, for error texts. */
#define CAPTURE_LINKS_READ "Ethernet, raw IP, Linux cooked, BSD loopback and PPP are"

/* An enum link_type, or -1 for one that is not read. */
int capture_link(int link_type);

/* Its name and what it is, as libpcap knows it, or its number. Returns `text`. */
const char *capture_link_text(int link_type, char text[CAPTURE_LINK_TEXT_MAX]);
