/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Receives bursts from the station's queues, and hands each to the pipeline, or to the parser
 * where it cannot begin there. The first frames of a port are looked at for unfinished checksums, and those of af_packet
 * that fill its buffers for what is missing.
 */

#include "dataplane/station.h"

/* Polls of every queue, and looks into every ring, in one turn, at most. */
#define RX_ROUNDS 4

/* Several rounds while there is much. True when there was something. Sets station->more_wait. */
bool rx_poll(struct station *station);
