/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Receives bursts from the lcore's queues, and hands each to the pipeline, or to the parser
 * where it cannot begin there. The first frames of a port are looked at for unfinished checksums, and those of af_packet
 * that fill its buffers for what is missing.
 */

#include "dataplane/lcore.h"

/* Polls of every queue, and looks into every ring, in one iteration, at most. */
#define RX_ROUNDS 4

/* Several rounds while there is much. True when there was something. Sets lcore->more_wait. */
bool rx_poll(struct lcore *lcore);
