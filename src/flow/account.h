/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Accounting a packet that changes no more than its record's counters: nearly all do not. In a header of
 * its own for walks that are compiled once per SIMD level; everybody else has flow_shard_account().
 */

#include "base/clock.h"
#include "flow/shard.h"
#include "flow/sides.h"
#include "flow/tcp_common.h"

/* Of a flow: what it has to be for its packets to be only counted. */
enum account_of {
	ACCOUNT_OF_PLAIN,
	ACCOUNT_OF_ANY, /* also one that has a verdict */
};

/* A further packet of such a flow without a TCP header changes nothing of its state. */
static inline __attribute__((always_inline)) bool account_is_settled(
	const struct flow_record *record, const struct packet_info *info, enum account_of of)
{
	/*
	 * Both have sent, or it is the one who has, by the port of its first packet. State, initiator and whether it is
	 * plain are read as the one byte that they are in: a packet of the same flow just before has stored the bytes
	 * beside it.
	 */
	const unsigned both = 1u << FLOW_REPLIED | 1u << FLOW_ESTABLISHED;
	const unsigned bits = ((const uint8_t *)&record->status)[FLOW_STATE_BYTE] &
			      (of == ACCOUNT_OF_PLAIN ? UINT8_MAX : UINT8_MAX - FLOW_NOT_PLAIN_BIT);

	/* a flow that is not plain is beyond all states */
	static_assert(FLOW_NOT_PLAIN_BIT == 16, "next to the state");
	if (__builtin_expect(both >> (bits & 31) & 1, 1))
		return true;
	return (bits & (FLOW_NOT_PLAIN_BIT | FLOW_INITIATOR_BIT)) ==
		       info->from * FLOW_INITIATOR_BIT &&
	       record->side == (info->flags & PACKET_SIDE) / PACKET_SIDE;
}

/*
 * The SYN or SYN-ACK of a handshake once more, by the port where its end is: nothing but counted, too. By itself, as
 * hardly any packet of other loads is one.
 */
static inline __attribute__((always_inline)) bool account_comes_again(
	const struct flow_record *record, const struct packet_info *info, enum account_of of)
{
	return !(of == ACCOUNT_OF_PLAIN && record->not_plain) && info->tcp.payload == 0 &&
	       tcp_comes_again(record, info->from, &info->tcp) &&
	       flow_sides_knows(record, record->initiator != info->from, info->flags & PACKET_SIDE);
}

/*
 * What flow_shard_account() does, but for the shard's counters of packets and bytes, which the caller sums
 * up. False, with nothing changed, where it would do more than count: then it is to be called.
 */
static inline __attribute__((always_inline)) bool account_counted(struct flow_record *record,
	const struct packet_info *info, uint64_t now_us, enum account_of of)
{
	unsigned from = info->from;
	uint64_t both;

	/* bytes overflow once in 2^32 */
	if (__builtin_expect(__builtin_add_overflow(
				     record->count[from].both, flow_count_of(info->bytes), &both),
		    0))
		return false;
	if (info->flags & PACKET_TCP) {
		if (info->flags & PACKET_FIRST_FRAGMENT)
			return false;
		if (tcp_track_common(record, from, &info->tcp, of == ACCOUNT_OF_PLAIN))
			record->end[from].tcp_flags |= info->tcp.flags;
		else if (!account_comes_again(record, info, of))
			return false;
	} else if (__builtin_expect(!account_is_settled(record, info, of), 0)) {
		return false;
	}
	record->count[from].both = both;
	record->last_seen_us = now_us & CLOCK_MAX_US;
	return true;
}

/* Of a flow that is plainly forwarded: nearly all packets are. */
static inline __attribute__((always_inline)) bool account_plain(
	struct flow_record *record, const struct packet_info *info, uint64_t now_us)
{
	return account_counted(record, info, now_us, ACCOUNT_OF_PLAIN);
}

/* Of one whose verdict does something with the packet, does not drop it, and is for this packet; which is not measured. */
static inline __attribute__((always_inline)) bool account_acting(
	struct flow_record *record, const struct packet_info *info, uint64_t now_us)
{
	return record->not_plain && !record->measured &&
	       record->verdict[info->from] != FLOW_VERDICT_DROP &&
	       record->verdict[info->from] < FLOW_VERDICT_REJECT &&
	       !(record->by_port && flow_sides_cross(record, info)) &&
	       account_counted(record, info, now_us, ACCOUNT_OF_ANY);
}

/* Packets that were accounted so. */
static inline void flow_shard_counted(struct flow_shard *shard, unsigned packets, uint64_t bytes)
{
	shard->counters.packets += packets;
	shard->counters.bytes += bytes;
}
