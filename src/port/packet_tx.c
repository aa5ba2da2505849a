/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames in a packet socket's ring, until the kernel has taken them: see port/packet.h. */
#include <errno.h>
#include <linux/if_packet.h>
#include <stdbool.h>
#include <stddef.h>

#include "port/packet.h"

/* Before one to send: what the driver counts as taken. */
#define TX_HEADER (TPACKET2_HDRLEN - sizeof(struct sockaddr_ll))

/* While a frame is at the head, calls of the kernel are so far apart. */
#define KICK_US 500
/* Frames that are taken away in one call, at most. */
#define MOST 64

/*
 * A frame of so many bytes has no whole Ethernet header: the kernel takes it out of the ring, as PACKET_LOSS says,
 * and says nothing.
 */
#define IMPOSSIBLE_BYTES 1

unsigned packet_rx_room(unsigned frame_bytes)
{
	return frame_bytes - PACKET_RX_HEADER;
}

unsigned packet_tx_room(unsigned frame_bytes)
{
	return frame_bytes - (unsigned)TX_HEADER;
}

static struct tpacket2_hdr *head(const struct packet_tx *tx)
{
	return (void *)&tx->frames[(size_t)tx->oldest * tx->frame_bytes];
}

static void next(struct packet_tx *tx)
{
	if (++tx->oldest == tx->n_frames)
		tx->oldest = 0;
	tx->n--;
}

void packet_tx_offered(struct packet_tx *tx, unsigned n, uint64_t now_us)
{
	if (tx->n == 0)
		tx->since_us = now_us;
	tx->n += n;
}

/* Those that are no longer to be sent; says whether there were any. */
static bool take_gone(struct packet_tx *tx, uint64_t now_us, struct packet_sent *sent)
{
	const unsigned before = tx->n;

	while (tx->n != 0) {
		const struct tpacket2_hdr *frame = head(tx);

		if (__atomic_load_n(&frame->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_SEND_REQUEST)
			break;
		/* such a frame passes again */
		if (frame->tp_len >= tx->refused)
			tx->refused = UINT32_MAX;
		sent->taken++;
		sent->taken_bytes += frame->tp_len;
		next(tx);
	}
	if (tx->n != before)
		tx->since_us = now_us;
	return tx->n != before;
}

static void discard(struct packet_tx *tx, uint64_t now_us, struct packet_sent *sent)
{
	head(tx)->tp_len = IMPOSSIBLE_BYTES;
	sent->discarded++;
	next(tx);
	tx->since_us = now_us;
}

/*
 * The kernel was asked to send, and a frame is at the head still. ENOBUFS: the interface refused it, or is congested;
 * EAGAIN: what was sent before is on its way yet; anything else: nothing can be sent. Says whether to ask again.
 */
static bool unblock(struct packet_tx *tx, int ret, uint64_t now_us, struct packet_sent *sent)
{
	const bool waited = now_us - tx->since_us >= PACKET_TX_WAIT_US;
	const uint32_t bytes = head(tx)->tp_len;

	if (waited && ret != 0 && ret != -ENOBUFS && ret != -EAGAIN) {
		while (tx->n != 0)
			discard(tx, now_us, sent);
		return false;
	}
	/* what was refused for long once is not waited for again */
	if (!waited && (ret != -ENOBUFS || bytes < tx->refused))
		return false;
	if (ret == -ENOBUFS && bytes < tx->refused)
		tx->refused = bytes;
	sent->refused |= ret == -ENOBUFS;
	discard(tx, now_us, sent);
	return true;
}

struct packet_sent packet_tx_settle(struct packet_tx *tx, uint64_t now_us)
{
	struct packet_sent sent = {0};
	const uint64_t discarded = atomic_load_explicit(&tx->discarded, memory_order_relaxed);

	take_gone(tx, now_us, &sent);
	if (tx->n == 0)
		return sent;
	if (tx->refused == UINT32_MAX && now_us - tx->kicked_us < KICK_US)
		return sent;
	tx->kicked_us = now_us;
	for (unsigned i = 0; i < MOST; i++) {
		const int ret = tx->kick(tx);

		if (take_gone(tx, now_us, &sent) && ret == 0 && tx->n != 0)
			continue;
		if (tx->n == 0 || !unblock(tx, ret, now_us, &sent) || tx->n == 0)
			break;
	}
	if (sent.discarded != 0)
		atomic_store_explicit(
			&tx->discarded, discarded + sent.discarded, memory_order_relaxed);
	return sent;
}
