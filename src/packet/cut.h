/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Frames that a driver may have cut, since its buffers have room for `room` bytes, and for a tag that the kernel had
 * taken off and the driver has put back (RTE_MBUF_F_RX_VLAN).
 */

#include <stdbool.h>

#include <rte_mbuf.h>

/*
 * True of a frame that fills the room, unless its IP header says that the datagram ends where the frame does. One that
 * carries something else than IP, or whose datagram ends before, is taken to be cut: where the room is larger than the
 * MTU asks for, no whole frame is expected to be as long.
 */
bool frame_may_be_cut(const struct rte_mbuf *frame, uint32_t room);
