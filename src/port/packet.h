/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The packet socket of DPDK's af_packet driver, put right.
 *
 * The driver (22.11) makes its socket a member of a fan-out group even if it is the only one, and that
 * group reassembles fragments: what comes out no longer fits through the other side. The group also
 * hears what this machine itself sends on the interface, which no wire would carry back. And between
 * its making and its binding the socket hears every other interface. None of it can be taken back, so
 * the socket is replaced by one that is like it in all else, under the same descriptor and at the same
 * address, before the first packet is taken.
 */

#include <stdint.h>

struct packet_ring {
	unsigned block_bytes;
	unsigned frame_bytes;
	unsigned frames;
};

/* The driver's own choices where its arguments say nothing. */
#define PACKET_FRAME_DEFAULT 2048
#define PACKET_FRAMES_DEFAULT 512

/*
 * Replaces the one socket that this process has bound to the interface. 0 or a negative errno: then the
 * driver's own is as it was.
 */
int packet_renew(unsigned interface_index, const struct packet_ring *ring);

/* Frames that the kernel dropped since it was last asked because the ring was full. */
uint64_t packet_missed(unsigned interface_index);

/*
 * After the interface was down the socket refuses once to send, and what the driver has put into its
 * ring waits for the next packet that comes. Takes the refusal, and has what waits sent.
 */
void packet_recover(unsigned interface_index);
