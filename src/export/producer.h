/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The producer: a carrier that hands each line of JSON to a broker of Kafka, by librdkafka, as a message with the flow's
 * key, so that all records of a conversation lie in one partition, in order.
 *
 * The producer is idempotent: what is sent again after a failure is neither doubled nor put behind what came later. A
 * record counts as written when the broker has confirmed it, and as lost when the broker refuses it, when the queue had no
 * room, or when it was not confirmed by the end. A broker that is slow or away fills the queue, and that is all.
 *
 * librdkafka has threads of its own, which talk to the brokers; they have the rights and processors of the thread that
 * calls producer_create(), less CAP_SYS_ADMIN. Delivery reports are taken in the thread that pushes.
 */

#include "base/error.h"
#include "export/carrier.h"

/* `target` outlives the producer. Returns 0, or a negative errno with a line. A broker need not be there. */
int producer_create(
	struct carrier **carrier, const struct export_target *target, struct error *error);
