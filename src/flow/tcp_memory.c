/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow/tcp_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "flow/tcp_common.h"
#include "flow/tcp_open.h"

#define FLOWS_A_SET 2048
#define MOST_SETS 512
#define LEAST_SETS 4

/* What the headers of a frame with TCP take at least: Ethernet, IPv4, TCP. */
#define LEAST_HEADERS 54

static uint32_t sets_for(uint32_t capacity)
{
	uint32_t sets = LEAST_SETS;

	while (sets < MOST_SETS && sets < capacity / FLOWS_A_SET)
		sets *= 2;
	return sets;
}

size_t tcp_memory_bytes(uint32_t capacity)
{
	return (size_t)sets_for(capacity) * TCP_MEMORY_WAYS * sizeof(struct tcp_remembered);
}

int tcp_memory_init(struct tcp_memory *memory, uint32_t capacity, const struct hash_secret *secret)
{
	*memory = (struct tcp_memory){.secret = secret, .n_sets = sets_for(capacity)};
	memory->sets = aligned_alloc(64, tcp_memory_bytes(capacity));
	if (memory->sets == NULL)
		return -ENOMEM;
	tcp_memory_clear(memory);
	return 0;
}

void tcp_memory_fini(struct tcp_memory *memory)
{
	free(memory->sets);
	memory->sets = NULL;
}

void tcp_memory_clear(struct tcp_memory *memory)
{
	memset(memory->sets, 0, (size_t)memory->n_sets * TCP_MEMORY_WAYS * sizeof(*memory->sets));
	memory->n_used = 0;
}

/* Where a flow's entries lie. */
struct place {
	uint64_t hash;
	struct tcp_remembered *set;
};

static struct place place_of(const struct tcp_memory *memory, const struct flow_record *record)
{
	uint64_t hash = flow_key_hash(memory->secret, &record->key);
	uint32_t number = (uint32_t)(hash >> 32) & (memory->n_sets - 1);

	return (struct place){hash, &memory->sets[(size_t)number * TCP_MEMORY_WAYS]};
}

static void forget(struct tcp_memory *memory, struct tcp_remembered *entry)
{
	entry->used = false;
	memory->n_used--;
}

/* The flow's entry, if this is one and not too old. */
static struct tcp_remembered *entry_at(
	struct tcp_memory *memory, struct place place, unsigned way, uint64_t now_us)
{
	struct tcp_remembered *entry = &place.set[way];

	if (!entry->used)
		return NULL;
	if (now_us > entry->last_us && now_us - entry->last_us > TCP_MEMORY_US) {
		forget(memory, entry);
		return NULL;
	}
	return entry->hash == place.hash ? entry : NULL;
}

static bool begins(const struct tcp_remembered *entry)
{
	return entry->segment.flags & TCP_SYN;
}

/* One direction alone has been seen: nobody will answer what it says. */
static bool is_one_sided(const struct flow_record *record, unsigned from)
{
	return flow_packets(record, !from) == 0 && record->end[!from].tcp_flags == 0 &&
	       !tcp_is_known(record, !from);
}

/*
 * May a SYN of this number be the record's own, late or sent again? An end has used as many numbers as it
 * has sent bytes of data, which are not more than those of its frames without their headers.
 */
static bool may_be_own(const struct flow_record *record, unsigned from, uint32_t seq)
{
	uint64_t headers = flow_packets(record, from) * LEAST_HEADERS;
	uint64_t bytes = flow_bytes(record, from);
	uint64_t data = bytes > headers ? bytes - headers : 0;
	uint32_t used = record->tcp_end[from] - (seq + 1);

	if (record->state == FLOW_SYN_SENT)
		return from == record->initiator && seq + 1 == record->tcp_max_end[from];
	if (record->state == FLOW_RESET && record->window_known == 0)
		return from == record->initiator && seq + 1 == record->tcp_max_end[from];
	/* its FIN has a number, too */
	return used <= data + 1;
}

static bool has_answered_own(
	const struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	return record->window_known != 0 && may_be_own(record, from, segment->seq);
}

/* An answer: of the other end, and by the port where that is. Nobody can write the port into a packet. */
static bool is_from_the_other(const struct tcp_remembered *entry, const struct tcp_sight *sight)
{
	return entry->from != sight->from && (!sight->two_sided || entry->side != sight->side);
}

/* Has the same end answered? A SYN or RST that acknowledges what is remembered, and nothing else. */
static bool is_answer(const struct flow_record *record, const struct tcp_remembered *entry,
	const struct tcp_sight *sight)
{
	const struct tcp_segment *segment = sight->segment;
	uint8_t flags = segment->flags;
	bool own = may_be_own(record, entry->from, entry->segment.seq);

	if (!is_from_the_other(entry, sight) || !begins(entry) || !(flags & TCP_ACK) ||
		!tcp_between(segment->ack, entry->segment.seq + 1, entry->end))
		return false;
	if (flags & TCP_RST)
		return !own;
	if (flags & TCP_SYN)
		return !own || !has_answered_own(record, sight->from, segment);
	return false;
}

/* The next segment of an end whose SYN is remembered, while nobody can be seen to answer. */
static bool is_next(const struct flow_record *record, const struct tcp_remembered *entry,
	const struct tcp_sight *sight)
{
	const struct tcp_segment *segment = sight->segment;

	return entry->from == sight->from && begins(entry) &&
	       (segment->flags & (TCP_SYN | TCP_ACK | TCP_RST)) == TCP_ACK &&
	       (segment->seq == entry->end || segment->seq == entry->segment.seq + 1) &&
	       is_one_sided(record, sight->from) &&
	       !may_be_own(record, sight->from, entry->segment.seq);
}

/* Both ends have sent a SYN to each other, and each answers the other's: that is one conversation. */
static bool is_simultaneous(const struct flow_record *record, const struct tcp_remembered *entry,
	const struct tcp_segment *segment)
{
	return record->state == FLOW_SYN_SENT && entry->from != record->initiator &&
	       (segment->flags & TCP_SYN) && !(segment->flags & TCP_RST) &&
	       segment->seq + 1 == record->tcp_max_end[record->initiator];
}

static struct tcp_remembered *oldest_of(struct tcp_memory *memory, struct tcp_remembered *set)
{
	struct tcp_remembered *oldest = set;

	for (unsigned i = 0; i < TCP_MEMORY_WAYS; i++) {
		if (!set[i].used)
			return &set[i];
		if (set[i].last_us < oldest->last_us)
			oldest = &set[i];
	}
	memory->forgotten++;
	forget(memory, oldest);
	return oldest;
}

static void add_to(struct tcp_remembered *entry, const struct tcp_sight *sight, bool odd)
{
	entry->last_us = sight->now_us;
	entry->packets++;
	entry->bytes += sight->bytes;
	entry->excess += sight->excess;
	entry->odd = (uint8_t)(entry->odd + (odd && entry->odd != UINT8_MAX));
}

static void remember(struct tcp_memory *memory, const struct flow_record *record,
	const struct tcp_sight *sight, bool odd)
{
	struct place place = place_of(memory, record);
	const struct tcp_segment *segment = sight->segment;
	struct tcp_remembered *entry;

	for (unsigned i = 0; i < TCP_MEMORY_WAYS; i++) {
		entry = entry_at(memory, place, i, sight->now_us);
		if (entry != NULL && entry->from == sight->from &&
			entry->segment.seq == segment->seq &&
			begins(entry) == !!(segment->flags & TCP_SYN)) {
			entry->end = tcp_later(entry->end, tcp_segment_end(segment));
			add_to(entry, sight, odd);
			return;
		}
	}
	entry = oldest_of(memory, place.set);
	*entry = (struct tcp_remembered){
		.hash = place.hash,
		.first_us = sight->now_us,
		.before_us = record->last_seen_us,
		.segment = *segment,
		.end = tcp_segment_end(segment),
		.new_flags = (uint8_t)(segment->flags & ~record->end[sight->from & 1].tcp_flags),
		.from = sight->from & 1u,
		.side = sight->side,
		.used = true,
	};
	add_to(entry, sight, odd);
	memory->n_used++;
}

/* Can this be an answer to what is remembered? Nearly all segments of handshakes and closes cannot. */
static bool may_begin_anew(const struct flow_record *record, const struct tcp_sight *sight)
{
	const struct tcp_segment *segment = sight->segment;
	unsigned to = !sight->from;

	if (!(segment->flags & TCP_ACK))
		return false;
	if (!(segment->flags & (TCP_SYN | TCP_RST)))
		return is_one_sided(record, sight->from);
	return record->state != FLOW_SYN_SENT || sight->from == record->initiator ||
	       !tcp_between(segment->ack, record->tcp_max_end[to], record->tcp_end[to]);
}

/* Before a segment moves its record: is it the answer to something else? */
static bool begins_anew(struct tcp_memory *memory, struct flow_record *record,
	const struct tcp_sight *sight, struct tcp_remembered *begin)
{
	struct place place = place_of(memory, record);

	for (unsigned i = 0; i < TCP_MEMORY_WAYS; i++) {
		struct tcp_remembered *entry = entry_at(memory, place, i, sight->now_us);

		if (entry == NULL ||
			(!is_answer(record, entry, sight) && !is_next(record, entry, sight)))
			continue;
		*begin = *entry;
		forget(memory, entry);
		if (!is_simultaneous(record, begin, sight->segment))
			return true;
		tcp_answer_syn(record, begin->from, &begin->segment);
		return false;
	}
	return false;
}

/* An acknowledgement of a SYN whose own answer was not seen; it fits nothing else. */
static bool acknowledges(const struct flow_record *record, const struct tcp_remembered *entry,
	const struct tcp_sight *sight)
{
	const struct tcp_segment *segment = sight->segment;

	return is_from_the_other(entry, sight) && begins(entry) &&
	       tcp_between(segment->ack, entry->segment.seq + 1, entry->end) &&
	       !may_be_own(record, entry->from, entry->segment.seq);
}

/* Further data of the same end, near what is remembered of it. */
static bool extends(const struct flow_record *record, const struct tcp_remembered *entry,
	const struct tcp_sight *sight)
{
	if (entry->from != sight->from)
		return false;
	if (begins(entry))
		return sight->segment->seq == entry->end;
	return tcp_between(sight->segment->seq, entry->segment.seq,
		entry->end + tcp_window_bytes(record, !sight->from));
}

static void extend(struct tcp_remembered *entry, const struct tcp_sight *sight)
{
	uint32_t end = tcp_segment_end(sight->segment);

	if (!begins(entry) && tcp_beyond(end, entry->end) >= 0)
		entry->segment = *sight->segment;
	entry->end = tcp_later(entry->end, end);
	add_to(entry, sight, true);
}

/*
 * Data outside the window. It may be the answer to what the other end said outside of it; else it is
 * remembered, if it is ahead of all that was seen.
 */
static enum tcp_verdict outside(struct tcp_memory *memory, struct flow_record *record,
	const struct tcp_sight *sight, bool strict, struct tcp_remembered *begin)
{
	const struct tcp_segment *segment = sight->segment;
	unsigned from = sight->from;
	bool ahead =
		!strict && tcp_may_follow(record, from, segment, tcp_judge(record, from, segment));

	if (memory->n_used == 0 && !ahead)
		return TCP_ODD;
	struct place place = place_of(memory, record);

	for (unsigned i = 0; i < TCP_MEMORY_WAYS; i++) {
		struct tcp_remembered *entry = entry_at(memory, place, i, sight->now_us);

		if (entry == NULL)
			continue;
		if (acknowledges(record, entry, sight)) {
			*begin = *entry;
			forget(memory, entry);
			return TCP_ANEW;
		}
		if (ahead && !begins(entry) && is_from_the_other(entry, sight) &&
			tcp_agree(record, !from, &entry->segment, entry->end, segment)) {
			tcp_follow(record, !from, &entry->segment, entry->end, segment);
			forget(memory, entry);
			return TCP_IN_WINDOW;
		}
		if (!strict && (ahead || begins(entry)) && extends(record, entry, sight)) {
			extend(entry, sight);
			return TCP_ODD;
		}
	}
	if (ahead)
		remember(memory, record, sight, true);
	return TCP_ODD;
}

/* A FIN has come which the other end has acknowledged already, as far as we see. */
static void look_back(
	struct tcp_memory *memory, struct flow_record *record, const struct tcp_sight *sight)
{
	struct place place = place_of(memory, record);
	unsigned to = !sight->from;

	for (unsigned i = 0; i < TCP_MEMORY_WAYS; i++) {
		struct tcp_remembered *entry = entry_at(memory, place, i, sight->now_us);

		if (entry == NULL || begins(entry) || entry->from != to ||
			tcp_is_odd(tcp_judge(record, to, &entry->segment)))
			continue;
		flow_tcp_track(record, to, &entry->segment);
		forget(memory, entry);
	}
}

/* A SYN that moved nothing; of the record's own, sent again, nothing new is to be expected. */
static bool is_aside(const struct flow_record *record, const struct tcp_sight *sight)
{
	bool own = may_be_own(record, sight->from, sight->segment->seq);

	if ((sight->segment->flags & (TCP_SYN | TCP_ACK | TCP_RST)) != TCP_SYN)
		return false;
	return !own || flow_phase((enum flow_state)record->state) != FLOW_PHASE_NEW;
}

enum tcp_verdict tcp_memory_track(struct tcp_memory *memory, struct flow_record *record,
	const struct tcp_sight *sight, bool strict, struct tcp_remembered *begin)
{
	const struct tcp_segment *segment = sight->segment;
	uint8_t flags = segment->flags;
	enum flow_state before = (enum flow_state)record->state;

	if (segment->payload == 0 && tcp_comes_again(record, sight->from, segment))
		return TCP_IN_WINDOW;
	if (memory->n_used != 0 && may_begin_anew(record, sight) &&
		begins_anew(memory, record, sight, begin))
		return TCP_ANEW;

	enum tcp_verdict verdict = flow_tcp_track(record, sight->from, segment);

	if (flags & TCP_SYN) {
		bool moved = verdict == TCP_REOPEN || record->state != before;

		if (!moved && is_aside(record, sight))
			remember(memory, record, sight, verdict == TCP_PASSED);
		/* the answer, where only answers are seen */
		if (!moved && (flags & TCP_ACK) && !(flags & TCP_RST) &&
			is_one_sided(record, sight->from) &&
			!may_be_own(record, sight->from, segment->seq)) {
			if (verdict == TCP_ODD)
				verdict = TCP_PASSED;
			remember(memory, record, sight, verdict == TCP_PASSED);
		}
		return verdict;
	}
	if (verdict == TCP_ODD && (flags & (TCP_ACK | TCP_RST)) == TCP_ACK)
		return outside(memory, record, sight, strict, begin);
	if (verdict == TCP_IN_WINDOW && (flags & (TCP_FIN | TCP_RST)) == TCP_FIN &&
		memory->n_used != 0)
		look_back(memory, record, sight);
	return verdict;
}
