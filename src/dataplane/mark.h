/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The common marked packet: TCP or UDP over IPv4 without tags, options or fragments. It is compared with the
 * record that its mark names as it lies in the frame, and no key is made of it. This header has what a mark leads to, the
 * comparison, and the accounting of a packet that fits. For pipeline_marked.c, which is compiled once per SIMD level.
 */

#include <netinet/in.h>

#include "flow/account.h"
#include "flow/fetch.h"
#include "flow/sides.h"
#include "offload/slots.h"
#include "packet/extract_common.h"

#define MARK_IPV4_OFFSET ETHERNET_LENGTH
#define MARK_UPPER_OFFSET (ETHERNET_LENGTH + IPV4_LENGTH)
#define MARK_LEAST (MARK_UPPER_OFFSET + TCP_LENGTH)

/*
 * What a mark leads to, in one word: a record, and in the lowest bits of its address, which are zeros, the form of its
 * packets. The end that they come from stands there as the distance of what is that end's own from what is end 0's:
 * whoever reads that need not work it out.
 */
#define MARK_TCP 4
#define MARK_FROM 8
#define MARK_FORM (MARK_TCP | MARK_FROM)

static __rte_always_inline uintptr_t mark_target(const struct flow_record *record, uint64_t form)
{
	static_assert(
		MARK_TCP == 4 * SLOT_TCP && MARK_FROM == 4 * SLOT_FROM, "four times the form");
	static_assert(_Alignof(struct flow_record) > MARK_FORM, "there are such bits");
	return (uintptr_t)record + 4 * form;
}

static __rte_always_inline struct flow_record *mark_record(uintptr_t target)
{
	return (struct flow_record *)(target & ~(uintptr_t)MARK_FORM);
}

/* The number in a mark: slots_number() of one that is somebody's. */
static __rte_always_inline uint64_t mark_number(uint64_t mark, unsigned bits)
{
#ifdef __BMI2__
	/* else the compiler keeps a mask, and copies it each time */
	return _bzhi_u64(mark, bits);
#else
	return mark & ((UINT64_C(1) << bits) - 1);
#endif
}

/* The end that packets of a target come from, as that distance, and as its number. */
static __rte_always_inline uintptr_t mark_offset(uintptr_t target)
{
	return target & MARK_FROM;
}

static __rte_always_inline uintptr_t mark_from(uintptr_t target)
{
	return mark_offset(target) / MARK_FROM;
}

/* A record as it lies from that distance on: where end 0's was is what is the end's own. */
struct mark_own {
	struct flow_key key;
	union flow_count count, other_count;
	uint64_t status;
	struct flow_end_state end;
} __attribute__((may_alias));

static_assert(offsetof(struct mark_own, count) == offsetof(struct flow_record, count) &&
		      offsetof(struct mark_own, end) == offsetof(struct flow_record, end),
	"as in the record");
static_assert(sizeof(union flow_count) == MARK_FROM && sizeof(struct flow_end_state) == MARK_FROM,
	"that is the distance");

/* `tcp`: what the target says. */
static __rte_always_inline struct mark_own *mark_own(uintptr_t target, bool tcp)
{
	return (struct mark_own *)(target - (tcp ? MARK_TCP : 0));
}

/* What all packets of a burst share. */
struct mark_burst {
	uint64_t now_us; /* 48 bits */
};

/*
 * A record's status, its highest 16 bits: see struct flow_record. A flow is settled when it is in the phase that it
 * stays in until it ends, it is plain, and the rule of the packet's direction is proven: then the packet is nothing but
 * counted.
 *
 * Whether it came in by that rule's port need not be asked. What the mark says of the end is good for one port alone
 * (slots_form()): the direction's rule was asked for there, and a direction has one rule. By another port the mark says
 * the other end, of whose packets this is none, or names nobody.
 */
#define MARK_STATUS_SHIFT 48
#define MARK_SETTLED_UDP FLOW_REPLIED
#define MARK_SETTLED_TCP (FLOW_ESTABLISHED | 3 << 5)
/* Not settled, but what comes of it may be its SYN or SYN-ACK once more: mark_comes_again(). */
#define MARK_HANDSHAKE (FLOW_SYN_RECEIVED | 3 << 5)
#define MARK_SETTLED_CARES(from) \
	(15 | FLOW_NOT_PLAIN_BIT | 3 << 5 | 7 << (8 + OFFLOAD_STATE_BITS * (from)))
#define MARK_PROVEN (OFFLOAD_PROVEN << 8 | OFFLOAD_PROVEN << (8 + OFFLOAD_STATE_BITS))

/* A packet is compared with one of these: a flow that is settled, or a handshake. */
enum mark_of {
	MARK_OF_UDP,
	MARK_OF_TCP,
	MARK_OF_HANDSHAKE,
};

/* Is the packet a common one, and of the protocol that its mark says? */
static __rte_always_inline bool mark_is_common(const uint8_t *frame, bool tcp)
{
	uint32_t type = load_be32(frame + 12) >> 8; /* and IP's version and header length */
	uint32_t fragment = load_be16(frame + 20) & 0x3fff;
	uint32_t proto = tcp ? IPPROTO_TCP : IPPROTO_UDP;

	return ((type ^ 0x080045) | fragment | (proto ^ frame[MARK_IPV4_OFFSET + 9])) == 0;
}

/* Of common packets. */
static __rte_always_inline bool mark_is_settled(
	const struct flow_record *record, unsigned from, enum mark_of of)
{
	static const unsigned want[] = {[MARK_OF_UDP] = MARK_SETTLED_UDP,
		[MARK_OF_TCP] = MARK_SETTLED_TCP,
		[MARK_OF_HANDSHAKE] = MARK_HANDSHAKE};
	unsigned status = (unsigned)(record->status >> MARK_STATUS_SHIFT);

	return ((status ^ (want[of] | MARK_PROVEN)) & MARK_SETTLED_CARES(from)) == 0;
}

#if SIMD_LEVEL >= SIMD_LEVEL_AVX512

/*
 * A frame's bytes 12 to 43 as a record expects them. MARK_TAKE: by the end that they come from, which of the record's
 * words lie where (16-31: of the addresses, 0 and 1: the ports, 2: the zone, 3: protocol and version, 7: the status;
 * 4: zero). MARK_WANT: by protocol, what the others are. What has no place in a header lies where that has
 * what differs from packet to packet: length, identification, checksum.
 */
typedef uint16_t mark_words[16] __attribute__((aligned(32)));

#define MARK_TAKE(from)                                                                           \
	{4, 4, 2, 3, 4, 4, 7, 16 + 8 * (from), 17 + 8 * (from), 24 - 8 * (from), 25 - 8 * (from), \
		(from), 1 - (from), 4, 4, 4}

/* Words as they are loaded: the first byte is the low one. */
#define MARK_WANT(proto, settled)                                                                 \
	{0x0008, 0x0045, 0, (proto) | 4 << 12, 0, (proto) << 8, (settled) | MARK_PROVEN, 0, 0, 0, \
		0, 0, 0, 0, 0, 0}

/* Of a header: type, version and length, fragment, protocol, addresses and ports. */
static const mark_words mark_header = {0xffff, 0x00ff, 0, 0, 0xff3f, 0xff00, 0, 0xffff, 0xffff,
	0xffff, 0xffff, 0xffff, 0xffff, 0, 0, 0};

/* And of the record: all but the wire, as a slot is of one, and of the status what is settled or not. */
#define MARK_CARES(from)                                                                           \
	{0xffff, 0xffff, 0xffff, 0xf0ff, 0xffff, 0xffff, MARK_SETTLED_CARES(from), 0xffff, 0xffff, \
		0xffff, 0xffff, 0xffff, 0xffff, 0, 0, 0}

#elif SIMD_LEVEL >= SIMD_LEVEL_AVX2

/*
 * The same by bytes, of a frame's bytes 10 to 41, in halves of 16 that keep to themselves. MARK_TAKE: of the low half,
 * 0-3: the ports, 4-5: the zone, 6-7: protocol and version, 8-9: the status; of the high half 0-7: what of the
 * addresses is not zeros, 8-11: the ports; 128: zero.
 */
typedef uint8_t mark_words[32] __attribute__((aligned(32)));

#define MARK_ZERO 128
#define MARK_TAKE(from)                                                                            \
	{8, 9, MARK_ZERO, MARK_ZERO, MARK_ZERO, MARK_ZERO, MARK_ZERO, MARK_ZERO, 4, 5, MARK_ZERO,  \
		MARK_ZERO, MARK_ZERO, MARK_ZERO, 6, 7, 4 * (from), 4 * (from) + 1, 4 * (from) + 2, \
		4 * (from) + 3, 4 - 4 * (from), 5 - 4 * (from), 6 - 4 * (from), 7 - 4 * (from),    \
		8 + 2 * (from), 9 + 2 * (from), 10 - 2 * (from), 11 - 2 * (from), MARK_ZERO,       \
		MARK_ZERO, MARK_ZERO, MARK_ZERO}

#define MARK_WANT(proto, settled)                                                                  \
	{((settled) | MARK_PROVEN) & 0xff, ((settled) | MARK_PROVEN) >> 8, 0x08, 0x00, 0x45, 0, 0, \
		0, 0, 0, 0, 0, 0, (proto), (proto), 4 << 4}

/* Of a header: type, version and length, fragment, protocol, addresses and ports. */
static const mark_words mark_header = {0, 0, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0x3f, 0xff, 0, 0xff,
	0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

/* And of the record: all but the wire, as a slot is of one, and of the status what is settled or not. */
#define MARK_CARES(from)                                                                         \
	{MARK_SETTLED_CARES(from) & 0xff, MARK_SETTLED_CARES(from) >> 8, 0xff, 0xff, 0xff, 0, 0, \
		0, 0xff, 0xff, 0xff, 0xff, 0, 0xff, 0xff, 0xf0, 0xff, 0xff, 0xff, 0xff, 0xff,    \
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

#endif

#if SIMD_LEVEL >= SIMD_LEVEL_AVX2

static const mark_words mark_want[] = {[MARK_OF_UDP] = MARK_WANT(IPPROTO_UDP, MARK_SETTLED_UDP),
	[MARK_OF_TCP] = MARK_WANT(IPPROTO_TCP, MARK_SETTLED_TCP),
	[MARK_OF_HANDSHAKE] = MARK_WANT(IPPROTO_TCP, MARK_HANDSHAKE)};

/* By the byte that a TCP header's length is in: what it takes with that of IPv4; of one too short more than any has. */
#define MARK_BOTH(words) (IPV4_LENGTH + 4 * (words))
#define MARK_ALL_HEADERS                         \
	{[0 ... 0x4f] = UINT16_MAX + 1,          \
		[0x50 ... 0x5f] = MARK_BOTH(5),  \
		[0x60 ... 0x6f] = MARK_BOTH(6),  \
		[0x70 ... 0x7f] = MARK_BOTH(7),  \
		[0x80 ... 0x8f] = MARK_BOTH(8),  \
		[0x90 ... 0x9f] = MARK_BOTH(9),  \
		[0xa0 ... 0xaf] = MARK_BOTH(10), \
		[0xb0 ... 0xbf] = MARK_BOTH(11), \
		[0xc0 ... 0xcf] = MARK_BOTH(12), \
		[0xd0 ... 0xdf] = MARK_BOTH(13), \
		[0xe0 ... 0xef] = MARK_BOTH(14), \
		[0xf0 ... 0xff] = MARK_BOTH(15)}

/* All that is looked up of a packet, by the end that it is from first: in one place, as each place takes a register. */
static const struct mark_expect {
	mark_words take[2], cares[2];
	struct tcp_places places;
	uint32_t tcp_headers[UINT8_MAX + 1];
} mark_expect = {
	{MARK_TAKE(0), MARK_TAKE(1)},
	{MARK_CARES(0), MARK_CARES(1)},
	TCP_PLACES,
	MARK_ALL_HEADERS,
};

/* The same from where the first of each pair is of the end that packets of a target come from. */
static __rte_always_inline const struct mark_expect *mark_expect_of(uintptr_t target)
{
	static_assert(sizeof(mark_words) == TCP_PLACES_AN_END, "one distance for all");
	return (const void *)((const uint8_t *)&mark_expect +
			      mark_offset(target) * (TCP_PLACES_AN_END / MARK_FROM));
}

#endif

#if SIMD_LEVEL >= SIMD_LEVEL_AVX512

/*
 * Is the packet a common one of that protocol, and one of the record's flow, from that end, and is the flow settled (or
 * a handshake)? The rest of an IPv4 address is zeros. The record is read in the pieces that it is written in.
 */
static __rte_always_inline bool mark_fits(
	const struct flow_record *record, const uint8_t *frame, uintptr_t target, enum mark_of of)
{
	const struct mark_expect *expect = mark_expect_of(target);
	__m256i addresses = _mm256_loadu_si256((const void *)record->key.addr);
	__m128i rest = _mm_insert_epi16(_mm_loadl_epi64((const void *)record->key.port),
		(short)(record->status >> MARK_STATUS_SHIFT), 7);
	__m256i header = _mm256_and_si256(_mm256_loadu_si256((const void *)(frame + 12)),
		_mm256_load_si256((const void *)mark_header));
	__m256i key = _mm256_permutex2var_epi16(_mm256_castsi128_si256(rest),
		_mm256_load_si256((const void *)expect->take[0]), addresses);
	/* 0x96: the three of them xor-ed */
	__m256i odd = _mm256_ternarylogic_epi32(
		header, key, _mm256_load_si256((const void *)mark_want[of]), 0x96);

	return _mm256_testz_si256(odd, _mm256_load_si256((const void *)expect->cares[0]));
}

#elif SIMD_LEVEL >= SIMD_LEVEL_AVX2

/* The same. */
static __rte_always_inline bool mark_fits(
	const struct flow_record *record, const uint8_t *frame, uintptr_t target, enum mark_of of)
{
	const struct mark_expect *expect = mark_expect_of(target);
	__m128i rest = _mm_loadl_epi64((const void *)record->key.port);
	__m128i addresses = _mm_insert_epi32(_mm_cvtsi32_si128((int)load_32(record->key.addr[0])),
		(int)load_32(record->key.addr[1]), 1);
	__m256i key = _mm256_inserti128_si256(
		_mm256_castsi128_si256(
			_mm_insert_epi16(rest, (short)(record->status >> MARK_STATUS_SHIFT), 4)),
		_mm_unpacklo_epi64(addresses, rest), 1);
	__m256i header = _mm256_and_si256(_mm256_loadu_si256((const void *)(frame + 10)),
		_mm256_load_si256((const void *)mark_header));
	__m256i odd = _mm256_xor_si256(
		_mm256_xor_si256(header, _mm256_load_si256((const void *)mark_want[of])),
		_mm256_shuffle_epi8(key, _mm256_load_si256((const void *)expect->take[0])));

	return _mm256_testz_si256(odd, _mm256_load_si256((const void *)expect->cares[0]));
}

#else

static __rte_always_inline bool mark_fits(
	const struct flow_record *record, const uint8_t *frame, uintptr_t target, enum mark_of of)
{
	const uint8_t *header = frame + MARK_IPV4_OFFSET;
	const uintptr_t from = mark_from(target);
	uint32_t ports = load_32(header + IPV4_LENGTH);
	uint32_t turn = (uint32_t)from << 4;
	uint32_t both, tail;

	if (unlikely(!mark_is_common(frame, of != MARK_OF_UDP)))
		return false;
	memcpy(&both, &record->key.port[0], sizeof(both));
	memcpy(&tail, &record->key.zone, sizeof(tail));
	ports = ports << turn | ports >> ((32 - turn) & 31);

	/* the rest of an IPv4 address is zeros; a slot is of one wire */
	const uint32_t rest = (uint32_t)(FLOW_KEY_TAIL_IPV4 >> 32) | (uint32_t)header[9] << 16;
	uint32_t src = load_32(header + 12) ^ load_32(record->key.addr[from]);
	uint32_t dst = load_32(header + 16) ^ load_32(record->key.addr[!from]);

	return ((src | dst | (ports ^ both) | ((tail ^ rest) & 0xf0ffffff)) == 0) &
	       mark_is_settled(record, (unsigned)from, of);
}

#endif

static inline struct mark_burst mark_burst_of(uint64_t now_us)
{
	return (struct mark_burst){.now_us = now_us & CLOCK_MAX_US};
}

/* ------------------------- a packet that fits is accounted */

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

/* The record has a packet of now: written around what is read when the next packet is held against it. */
static __rte_always_inline void mark_see(const struct mark_burst *burst, struct flow_record *record)
{
	uint32_t low = (uint32_t)burst->now_us;
	uint16_t high = (uint16_t)(burst->now_us >> 32);

	memcpy(&record->status, &low, sizeof(low));
	memcpy((uint8_t *)&record->status + sizeof(low), &high, sizeof(high));
}

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
	mark_see(burst, record);
	return true;
}

/* mark_record(), of a target whose lowest bits are known but for the end. */
static __rte_always_inline struct flow_record *mark_record_of(uintptr_t target, bool tcp)
{
	return (struct flow_record *)(target - mark_offset(target) - (tcp ? MARK_TCP : 0));
}

/*
 * Accounts a packet whose mark leads to that target, if it is of the flow and nothing but counted. `frame`: its first
 * byte; `tcp`: what the target says; `far`: see fetch_record(). Else false,
 * with nothing changed.
 */
static __rte_always_inline bool mark_packet(const struct mark_burst *burst, uintptr_t target,
	const struct rte_mbuf *packet, const uint8_t *frame, bool tcp, bool far)
{
	struct flow_record *record = mark_record_of(target, tcp);
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
	if (unlikely(!mark_fits(record, frame, target, tcp ? MARK_OF_TCP : MARK_OF_UDP)))
		return false;
	return likely(mark_account(burst, record, (uint32_t)lengths, frame, target, tcp, far));
}

/*
 * The same of the SYN or SYN-ACK of a handshake that comes once more, without data: of a target of TCP. `side`: the packet
 * came by the domain's second port.
 */
static __rte_always_inline bool mark_comes_again(const struct mark_burst *burst, uintptr_t target,
	const struct rte_mbuf *packet, const uint8_t *frame, bool side)
{
	struct flow_record *record = mark_record_of(target, true);
	struct mark_own *own = mark_own(target, true);
	const unsigned from = (unsigned)mark_from(target);
	const uint8_t *tcp = frame + MARK_UPPER_OFFSET;
	uint64_t count;

	if (packet->data_len < MARK_LEAST || !mark_fits(record, frame, target, MARK_OF_HANDSHAKE))
		return false;
	const bool answers = record->initiator != from;
	const uint32_t headers = IPV4_LENGTH + (uint32_t)tcp_header_length(tcp);

	if (headers < IPV4_LENGTH + TCP_LENGTH ||
		load_be16(frame + MARK_IPV4_OFFSET + 2) != headers ||
		!tcp_is_handshake_again(record, from, answers,
			(uint64_t)load_be32(tcp + 4) << 32 | load_be32(tcp + 8), tcp[13]) ||
		!flow_sides_knows(record, answers, side) ||
		__builtin_add_overflow(own->count.both, flow_count_of(packet->pkt_len), &count))
		return false;
	own->count.both = count;
	mark_see(burst, record);
	return true;
}
