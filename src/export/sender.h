/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The sender: a carrier with a queue of messages. Flows become IPFIX messages or lines of JSON, which wait in memory of
 * a fixed size, in order, and leave as datagrams or as a stream. A line is a message of its own; over a stream
 * several leave at once.
 *
 * A session of IPFIX begins with templates, which UDP sends again now and then. A message that a session took in part is
 * sent again, whole, in the next one; of a file its begin is taken back first.
 */

#include "base/error.h"
#include "export/carrier.h"
#include "export/ipfix.h"

struct sender_config {
	const struct export_target *target; /* outlives the sender */
	/* IPFIX: told by options; they are copied */
	const struct ipfix_interface *interfaces;
	unsigned n_interfaces;
	/* where the directions of a record lie; called in put(), with `context` */
	struct ipfix_way (*way)(const void *context, const struct flow_report *report);
	const void *context;
	bool truncate; /* a file is emptied when it is opened first */
};

/* Returns 0, or a negative errno with a line: no memory, no address of a name, or a file that cannot be written. */
int sender_create(
	struct carrier **carrier, const struct sender_config *config, struct error *error);
