/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* How requests name one flow: both its ends, protocol, wire and zone. */

#include "control/answer.h"
#include "packet/key.h"

#define FLOW_NAME_KEYS 7

extern const struct request_key flow_name_keys[FLOW_NAME_KEYS];

/* The key that the values name. 0 or -EINVAL with a line. */
int flow_name_key(struct flow_key *key, const struct answer *answer,
	const struct request_value *values, struct error *error);
