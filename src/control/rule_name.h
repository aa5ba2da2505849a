/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Functions that several requests about rules call: names of rules, and the wait until workers have told their counts. */

#include "control/answer.h"
#include "rule/rules.h"

/* Workers tell what they have counted when they decide their flows again. Zeroed: they need not. */
struct rule_counting {
	uint64_t generation;
	uint64_t since_us; /* when it was first waited for; 0: not yet */
};

/* The rules of the engine; NULL with a line: it keeps none. */
struct rules *rules_of(const struct answer *answer, struct error *error);

/* Refuses the number of a port that the engine does not have. 0 or -EINVAL with a line. */
int rule_port_known(const struct answer *answer, const char *key, const struct request_value *value,
	struct error *error);

/* A rule as an object of its own, with what NICs do of it. */
json_t *rule_object(struct plane *plane, const struct rules_view *view);
