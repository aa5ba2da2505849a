/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Unfinished checksums: a host whose card (or virtual card) computes checksums leaves only the sum of
 * the pseudo-header in the TCP or UDP header. Where no card follows, as on a veth with offload on, the
 * frame arrives so, and the other host drops it.
 */

#include <stdbool.h>

#include "packet/extract.h"

/*
 * Does this TCP or UDP packet hold only the sum of its pseudo-header? False for everything else. A
 * finished checksum looks so once in 65,536 packets: do not judge by one.
 */
bool checksum_unfinished(const struct rte_mbuf *frame, const struct packet_info *info);
