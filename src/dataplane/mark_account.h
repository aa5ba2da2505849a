/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* A marked packet that fits the record its mark names is accounted: see mark_match.h. */

#include "dataplane/mark_match.h"
#include "flow/fetch.h"

#ifdef TCP_NUMBERS

/* The length of both headers, by the byte that TCP's is in; more than any where it is too short. */
static __rte_always_inline uint32_t mark_headers(uint8_t words)
{
#if SIMD_LEVEL >= SIMD_LEVEL_AVX2
	return mark_expect.tcp_headers[words];
#else
	return words >= TCP_LENGTH << 2 ? IPV4_LENGTH + (words >> 4) * 4u : UINT16_MAX + 1;
#endif
}

/*
 * The common segment, behind an IPv4 header without options. What is left is for account_plain(): to call it from here
 * would take the registers from all others.
 */
static __rte_always_inline bool mark_track(
	struct flow_record *record, uintptr_t target, const uint8_t *ip, uint32_t length)
{
	struct flow_end_state *const end = &mark_own(target, true)->end;
#if SIMD_LEVEL >= SIMD_LEVEL_AVX2
	const struct tcp_places *places = &mark_expect_of(target)->places;
#else
	const struct tcp_places *places = tcp_places_of(mark_from(target));
#endif
	const uint8_t *header = ip + IPV4_LENGTH;
	const uint8_t flags = header[13];
	uint32_t payload;

	if (unlikely((flags & (TCP_UNUSUAL | TCP_ACK)) != TCP_ACK) ||
		unlikely(__builtin_sub_overflow(length, mark_headers(header[12]), &payload)))
		return false;

	__m128i numbers = tcp_numbers_on_wire(header + 4, places);

	if (unlikely(!tcp_moves_on(record, end, places, numbers, payload, load_be16(header + 14))))
		return false;
	end->tcp_flags |= (uint8_t)flags;
	return true;
}

#else

static __rte_always_inline bool mark_track(
	struct flow_record *record, uintptr_t target, const uint8_t *ip, uint32_t length)
{
	const uintptr_t from = mark_from(target);
	const uint8_t *header = ip + IPV4_LENGTH;
	const uint32_t header_length = (uint32_t)tcp_header_length(header);

	if (unlikely(header_length < TCP_LENGTH || length < IPV4_LENGTH + header_length))
		return false;

	const struct tcp_segment tcp = tcp_fields(header, (size_t)length - IPV4_LENGTH);

	if (unlikely(!tcp_track_settled(record, (unsigned)from, &tcp)))
		return false;
	record->end[from].tcp_flags |= tcp.flags;
	return true;
}

#endif

/*
 * Accounts a packet that fits its record, which was fetched from as `far`. False, with nothing changed, where there is
 * more to it.
 */
static __rte_always_inline bool mark_account(const struct mark_burst *burst,
	struct flow_record *record, uint32_t bytes, const uint8_t *frame, uintptr_t target,
	bool tcp, bool far)
{
	const uint8_t *header = frame + MARK_IPV4_OFFSET;
	struct mark_own *const own = mark_own(target, tcp);
	const uint32_t length = load_be16(header + 2);

	if (tcp) {
		if (unlikely(!mark_track(record, target, header, length)))
			return false;
	} else if (unlikely(length < IPV4_LENGTH + sizeof(uint32_t))) {
		return false;
	} else {
		fetch_rest(record, far);
	}
	if (unlikely(__builtin_add_overflow(
		    own->count.both, flow_count_of(bytes), &own->count.both)))
		flow_carry_or_begin(record, (unsigned)mark_from(target), burst->now_us);
	/* around what is read when the next packet is held against it */
	uint32_t low = (uint32_t)burst->now_us;
	uint16_t high = (uint16_t)(burst->now_us >> 32);

	memcpy(&record->status, &low, sizeof(low));
	memcpy((uint8_t *)&record->status + sizeof(low), &high, sizeof(high));
	return true;
}

/*
 * Accounts a packet whose mark leads to that target, if it is of the flow and nothing but counted. `frame`: its first
 * byte; `tcp`: what the target says; `far`: see fetch_record(). Else false,
 * with nothing changed.
 */
static __rte_always_inline bool mark_packet(const struct mark_burst *burst, uintptr_t target,
	const struct rte_mbuf *packet, const uint8_t *frame, bool tcp, bool far)
{
	/* mark_record(), of a target whose lowest bits are known but for the end */
	struct flow_record *record =
		(struct flow_record *)(target - mark_offset(target) - (tcp ? MARK_TCP : 0));
	uint64_t lengths;

	/* all of the packet's and its first piece's, at once */
	static_assert(offsetof(struct rte_mbuf, data_len) ==
			      offsetof(struct rte_mbuf, pkt_len) + sizeof(uint32_t),
		"side by side");
	memcpy(&lengths, (const uint8_t *)packet + offsetof(struct rte_mbuf, pkt_len),
		sizeof(lengths));
	/* frames are 60 bytes at least */
	if (unlikely((uint16_t)(lengths >> 32) < MARK_LEAST))
		return false;
	if (unlikely(!mark_fits(record, frame, target, tcp)))
		return false;
	return likely(mark_account(burst, record, (uint32_t)lengths, frame, target, tcp, far));
}
