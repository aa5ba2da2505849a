/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * From a driver's errno to one of the provider's answers. Drivers use EINVAL, ENOSYS, ENOTSUP and EPERM as they
 * please, a full table included (docs/hardware.md, "no room"): where rules of the same shape have been
 * taken before, these mean that there is no room.
 *
 * Pure, but for the last three. `error` is positive; 0, from a driver that failed and left none, counts as EIO.
 */

#include <stdbool.h>

#include <rte_flow.h>

#include "rteflow/provider.h"

/* Of a rule that was not taken; `taken`: others of its shape were. */
int answer_insert(int error, bool taken);
/* Of one that was not given back. 0 where the driver knows no such rule: it is gone. */
int answer_remove(int error);
int answer_query(int error);

/*
 * What the driver said. `said` was zeroed before the call, and may have been left so. Bytes that are not
 * printable ASCII become '?'.
 */
void answer_why(struct provider_why *why, int error, const struct rte_flow_error *said);
/* The same in words of ours. */
void answer_words(struct provider_why *why, int error, const char *words);

/* The same, and returns `answer`. */
int answer_with_words(struct provider_why *why, int answer, int error, const char *words);

/* What a counter told, or that it did not (`ret` of the call, below 0): 0 or an answer. */
int answer_told(int ret, const struct rte_flow_query_count *told, const struct rte_flow_error *said,
	struct provider_count *count, struct provider_why *why);
/* The counter of a rule: 0 or an answer. */
int answer_count(uint16_t port_id, struct rte_flow *flow, struct provider_count *count,
	struct provider_why *why);
/*
 * All rules of the port by one call, tried some times. When it fails their handles are no longer valid all the same
 * (rte_flow.h), and all may be there: -EIO. -EOPNOTSUPP: there is no such call, and handles are as they were.
 */
int answer_flush(uint16_t port_id, struct provider_why *why);
/* Are rules there still when the port was stopped and started? */
bool answer_keeps_rules(uint16_t port_id);
