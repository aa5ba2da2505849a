/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Tells the limit of a rule, and what the source of a flow or packet has of it. */

#include <jansson.h>

#include "rule/rules.h"

/* An object: "of", "source", "limit", "above", and of live flows "live_flows". */
json_t *rule_limit_object(const struct rules_limited *limited);
