/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What is known of a port's card: offload/known.h, by port. */

#include "offload/known.h"
#include "port/port.h"

/* Of a port that is open. 0 or a negative errno. */
int known_port_key(struct known_key *key, const struct port *port);

/* NULL: nothing is known. What is wrong with a file is told by `warn`. The caller frees it. */
struct known *known_port_load(const struct port *port, port_warn_fn warn, void *context);
