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

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct packet_ring {
	unsigned block_bytes;
	unsigned frame_bytes;
	unsigned frames;
};

/* Before a received frame lie the kernel's header, an address, and padding: see packet(7). */
#define PACKET_RX_HEADER 66

/* The driver's own choices where its arguments say nothing. */
#define PACKET_FRAME_DEFAULT 2048
#define PACKET_FRAMES_DEFAULT 512

/* Bytes of the longest frame that a ring of such frames receives whole, the tag that the kernel takes off left out. */
unsigned packet_rx_room(unsigned frame_bytes);
/* And of the longest that the driver puts into one to be sent. */
unsigned packet_tx_room(unsigned frame_bytes);

/*
 * The ring of what is to be sent, seen from outside the driver.
 *
 * The driver counts as sent what it has put into its ring. The kernel takes frames from there in their order, and
 * a frame that the interface refuses it leaves where it was: as long as that is so, none behind it goes out. So each
 * frame is followed here until the kernel has taken it; one at the head that has waited too long is made one that the
 * kernel throws away, and those behind it go on.
 *
 * All of it belongs to the thread that has the port's tx queue.
 */
struct packet_tx {
	/* set once */
	int fd;
	uint8_t *frames;
	unsigned frame_bytes, n_frames;
	/* has the kernel send what is in the ring: 0, or a negative errno; another one in tests */
	int (*kick)(struct packet_tx *tx);
	/* the owner's */
	unsigned oldest, n; /* of those that the kernel has not taken */
	uint32_t
		refused; /* bytes: a frame of so many and more was refused for long; UINT32_MAX: none */
	uint64_t since_us; /* the oldest is at the head since then */
	uint64_t kicked_us;
	/* others read */
	_Atomic uint64_t discarded;
};

/* What became of frames. */
struct packet_sent {
	unsigned taken; /* by the kernel */
	uint64_t taken_bytes;
	unsigned discarded;
	bool refused; /* some of these by the interface, which works for others */
};

/* So long a frame may be at the head. */
#define PACKET_TX_WAIT_US 5000

/* The driver took another `n` frames. */
void packet_tx_offered(struct packet_tx *tx, unsigned n, uint64_t now_us);
/* Has any not been taken? Then packet_tx_settle() is to be called within a millisecond or so. */
static inline unsigned packet_tx_waiting(const struct packet_tx *tx)
{
	return tx->n;
}
/* Says what became of frames since it was called last, and takes away what is in the way of others. */
struct packet_sent packet_tx_settle(struct packet_tx *tx, uint64_t now_us);

/*
 * Replaces the one socket that this process has bound to the interface, and fills `tx`. 0 or a negative errno: then
 * the driver's own is as it was.
 */
int packet_renew(unsigned interface_index, const struct packet_ring *ring, struct packet_tx *tx);

/* Frames that the kernel dropped since it was last asked because the ring was full. */
uint64_t packet_missed(unsigned interface_index);

/*
 * Where nobody follows the ring: after the interface was down the socket refuses once to send, and what the driver
 * has put into its ring waits for the next packet that comes. Takes the refusal, and has what waits sent.
 */
void packet_recover(unsigned interface_index);
