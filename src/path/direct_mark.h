/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* A marked packet that fits the record its mark names is accounted: see direct_form.h. */

#include "flow/fetch.h"
#include "path/direct_form.h"

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
static __rte_always_inline bool mark_track(const struct mark_burst *burst,
	struct flow_record *record, uintptr_t target, const uint8_t *ip, uint32_t length)
{
	const uintptr_t from = mark_from(burst, target);
#if SIMD_LEVEL >= SIMD_LEVEL_AVX2
	const struct tcp_places *places = &mark_expect.end[from].places;
#else
	const struct tcp_places *places = &tcp_places[from];
#endif
	const uint8_t *header = ip + IPV4_LENGTH;
	const uint8_t flags = header[13];
	uint32_t payload;

	if (unlikely((flags & (TCP_UNUSUAL | TCP_ACK)) != TCP_ACK) ||
		unlikely(__builtin_sub_overflow(length, mark_headers(header[12]), &payload)))
		return false;

	__m128i numbers = tcp_numbers_on_wire(header + 4, places);

	if (unlikely(!tcp_moves_on(record, from, places, numbers, payload, load_be16(header + 14))))
		return false;
	record->tcp_flags[from] |= (uint8_t)flags;
	return true;
}

#else

static __rte_always_inline bool mark_track(const struct mark_burst *burst,
	struct flow_record *record, uintptr_t target, const uint8_t *ip, uint32_t length)
{
	const uintptr_t from = mark_from(burst, target);
	const uint8_t *header = ip + IPV4_LENGTH;
	const uint32_t header_length = (uint32_t)tcp_header_length(header);

	if (unlikely(header_length < TCP_LENGTH || length < IPV4_LENGTH + header_length))
		return false;

	const struct tcp_segment tcp = tcp_fields(header, (size_t)length - IPV4_LENGTH);

	if (unlikely(!tcp_track_settled(record, (unsigned)from, &tcp)))
		return false;
	record->tcp_flags[from] |= tcp.flags;
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
	const uintptr_t from = mark_from(burst, target);
	const uint32_t length = load_be16(header + 2);

	if (tcp) {
		if (unlikely(!mark_track(burst, record, target, header, length)))
			return false;
	} else if (unlikely(length < IPV4_LENGTH + sizeof(uint32_t))) {
		return false;
	} else {
		fetch_rest(record, far);
	}
	/* a low half overflows once in 2^32 */
	if (unlikely(++record->packets_low[from] == 0))
		record->packets_high[from]++;
	if (unlikely((record->bytes_low[from] += bytes) < bytes))
		record->bytes_high[from]++;
	/* around what is read when the next packet is held against it */
	uint32_t low = (uint32_t)burst->now_us;
	uint16_t high = (uint16_t)(burst->now_us >> 32);

	memcpy(&record->status, &low, sizeof(low));
	memcpy((uint8_t *)&record->status + sizeof(low), &high, sizeof(high));
	return true;
}

/*
 * Accounts a packet whose mark leads to that target, if it is of the flow and nothing but counted. `frame`: its first
 * byte; `tcp`: what the target says; `trust`: it is not held against the record; `far`: see fetch_record(). Else false,
 * with nothing changed.
 */
static __rte_always_inline bool mark_packet(const struct mark_burst *burst, uintptr_t target,
	const struct rte_mbuf *packet, const uint8_t *frame, bool tcp, bool trust, bool far)
{
	struct flow_record *record = mark_record(target);

	/* frames are 60 bytes at least */
	if (unlikely(packet->data_len < MARK_LEAST))
		return false;
	if (trust ? unlikely(!mark_is_common(frame, tcp) || !mark_is_settled(burst, record, tcp))
		  : unlikely(!mark_fits(burst, record, frame, target, tcp)))
		return false;
	return likely(mark_account(burst, record, packet->pkt_len, frame, target, tcp, far));
}
