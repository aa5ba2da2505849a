/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Eviction: room in a full table. For the files of the shard. */

#include "flow/shard.h"

/* Makes room by ending `n` flows, of which there are as many. */
void flow_evict(struct flow_shard *shard, unsigned n);
