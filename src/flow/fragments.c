/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow/fragments.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <netinet/in.h>

#include "base/mapping.h"

#define SLOTS 4

enum kind {
	FREE = 0,
	KNOWN = 1,
	DROPPED = 2,
	WAITING = 3,
};

/* The protocols that have ports, in 3 bits; for any other its number stands in place of a port. */
static const uint8_t with_ports[7] = {
	IPPROTO_TCP, IPPROTO_UDP, IPPROTO_SCTP, IPPROTO_DCCP, IPPROTO_UDPLITE};
#define WITHOUT_PORTS 7

/* Times are kept in units of 1,024 us, for which 38 bits last as long as the clock does. */
#define UNIT_BITS 10
#define SEEN_MASK ((UINT64_C(1) << 38) - 1)
#define TAG_HIGH_MASK 127u

struct entry {
	/* when the first of its fragments was seen; of a complete one, when it became so */
	uint64_t seen : 38;
	uint64_t kind : 2;  /* enum kind */
	uint64_t upper : 3; /* which of with_ports, or WITHOUT_PORTS */
	/* what has been seen less what there is: all of it is there when that is 0, and has_end */
	uint64_t balance : 13;
	uint64_t has_end : 1;
	uint64_t tag_high : 7;
	uint32_t tag_low;
	uint32_t value; /* ports, or the number of the waiting list */
};

struct line {
	struct entry entries[SLOTS];
};

static_assert(sizeof(struct line) == 64, "a cache line");
static_assert(CLOCK_MAX_US >> UNIT_BITS <= SEEN_MASK, "as long as the clock does");

struct fragments {
	fragments_evicted_fn evicted;
	void *context;
	uint32_t n_lines;
	struct line lines[] __attribute__((aligned(64)));
};

#define LEAST_DATAGRAMS 1024
#define MOST_DATAGRAMS 65536

uint32_t fragments_for(uint32_t flows)
{
	uint32_t wanted = flows / 8;

	if (wanted < LEAST_DATAGRAMS)
		return LEAST_DATAGRAMS;
	return wanted < MOST_DATAGRAMS ? wanted : MOST_DATAGRAMS;
}

/* Half as many again as are needed, so that hardly one finds both its lines full before the table is. */
static uint32_t lines_for(uint32_t max_datagrams)
{
	uint64_t needed = ((uint64_t)max_datagrams + SLOTS - 1) / SLOTS;

	return (uint32_t)(needed + needed / 2 + 1);
}

static size_t size_for(uint32_t n_lines)
{
	return sizeof(struct fragments) + (size_t)n_lines * sizeof(struct line);
}

size_t fragments_bytes(uint32_t max_datagrams)
{
	return size_for(lines_for(max_datagrams));
}

int fragments_create(struct fragments **fragments, uint32_t max_datagrams,
	fragments_evicted_fn evicted, void *context)
{
	uint32_t n_lines = lines_for(max_datagrams);
	struct fragments *created = mapping_create(size_for(n_lines), MAPPING_POPULATE);

	if (created == NULL)
		return -ENOMEM;
	created->evicted = evicted;
	created->context = context;
	created->n_lines = n_lines;
	*fragments = created;
	return 0;
}

void fragments_destroy(struct fragments *fragments)
{
	if (fragments != NULL)
		mapping_destroy(fragments, size_for(fragments->n_lines));
}

size_t fragments_memory(const struct fragments *fragments)
{
	return size_for(fragments->n_lines);
}

void fragments_clear(struct fragments *fragments)
{
	memset(fragments->lines, 0, (size_t)fragments->n_lines * sizeof(struct line));
}

static void put_ports(struct entry *entry, struct fragment_ports ports)
{
	unsigned upper = 0;

	while (upper < WITHOUT_PORTS && with_ports[upper] != ports.proto)
		upper++;
	entry->upper = upper & 7u;
	entry->value = upper == WITHOUT_PORTS ? ports.proto : ports.src | (uint32_t)ports.dst << 16;
}

static struct fragment_ports ports_of(const struct entry *entry)
{
	if (entry->upper == WITHOUT_PORTS)
		return (struct fragment_ports){.proto = (uint8_t)entry->value};
	return (struct fragment_ports){.src = (uint16_t)entry->value,
		.dst = (uint16_t)(entry->value >> 16),
		.proto = with_ports[entry->upper]};
}

static uint64_t seen_at(uint64_t now_us)
{
	return (now_us > CLOCK_MAX_US ? CLOCK_MAX_US : now_us) >> UNIT_BITS;
}

static bool is_complete(const struct entry *entry)
{
	return entry->has_end && entry->balance == 0;
}

/* What waits is there until it is forgotten. Of anything else no life is cut short: it is counted in whole units. */
static bool is_alive(const struct entry *entry, uint64_t now_us)
{
	uint64_t life_us = is_complete(entry) ? FRAGMENTS_LINGER_US : FRAGMENTS_LIFETIME_US;

	if (entry->kind == FREE || entry->kind == WAITING)
		return entry->kind == WAITING;
	return seen_at(now_us) <= entry->seen + seen_at(life_us + (1u << UNIT_BITS) - 1);
}

static bool matches(const struct entry *entry, uint64_t fingerprint)
{
	return entry->tag_low == (uint32_t)fingerprint &&
	       entry->tag_high == (fingerprint >> 32 & TAG_HIGH_MASK) && entry->kind != FREE;
}

/* One of the two lines of a datagram; they may be the same. */
static uint32_t line_of(const struct fragments *fragments, uint64_t fingerprint, unsigned which)
{
	uint64_t half = which == 0 ? fingerprint >> 32 : (uint32_t)fingerprint;

	return (uint32_t)(half * fragments->n_lines >> 32);
}

static const struct entry *find_alive(
	const struct fragments *fragments, uint64_t fingerprint, uint64_t now_us)
{
	for (unsigned which = 0; which < 2; which++) {
		const struct line *line = &fragments->lines[line_of(fragments, fingerprint, which)];

		for (unsigned slot = 0; slot < SLOTS; slot++) {
			if (matches(&line->entries[slot], fingerprint) &&
				is_alive(&line->entries[slot], now_us))
				return &line->entries[slot];
		}
	}
	return NULL;
}

static struct entry *find_entry(struct fragments *fragments, uint64_t fingerprint, uint64_t now_us)
{
	return (struct entry *)(uintptr_t)find_alive(fragments, fingerprint, now_us);
}

/*
 * A slot without an entry that lives, of the line that has more of them; or else the one whose entry was seen first.
 */
static struct entry *take_slot(struct fragments *fragments, uint64_t fingerprint, uint64_t now_us)
{
	struct entry *oldest = NULL, *vacant = NULL;
	unsigned most = 0;

	for (unsigned which = 0; which < 2; which++) {
		struct line *line = &fragments->lines[line_of(fragments, fingerprint, which)];
		struct entry *last = NULL;
		unsigned n = 0;

		for (unsigned slot = 0; slot < SLOTS; slot++) {
			struct entry *entry = &line->entries[slot];

			if (!is_alive(entry, now_us)) {
				last = entry;
				n++;
			} else if (oldest == NULL || entry->seen < oldest->seen) {
				oldest = entry;
			}
		}
		if (n > most) {
			vacant = last;
			most = n;
		}
	}
	return vacant != NULL ? vacant : oldest;
}

/* The caller has looked: it is not there. */
static struct entry *fragments_insert(
	struct fragments *fragments, uint64_t fingerprint, uint64_t now_us, enum kind kind)
{
	struct entry *entry = take_slot(fragments, fingerprint, now_us);

	if (entry->kind == WAITING && entry->value != FRAGMENTS_NONE)
		fragments->evicted(fragments->context, entry->value);
	*entry = (struct entry){
		.seen = seen_at(now_us) & SEEN_MASK,
		.kind = kind & 3u,
		.tag_high = fingerprint >> 32 & TAG_HIGH_MASK,
		.tag_low = (uint32_t)fingerprint,
		.value = FRAGMENTS_NONE,
	};
	return entry;
}

/* Another piece of it was seen. */
static void add_piece(struct entry *entry, struct fragment_piece piece, uint64_t now_us)
{
	uint32_t balance = (uint32_t)entry->balance + piece.length;
	bool was_complete = is_complete(entry);

	if (!piece.more && !entry->has_end) {
		entry->has_end = 1;
		balance -= (uint32_t)piece.offset + piece.length;
	}
	entry->balance = balance & 0x1fff;
	if (is_complete(entry) && !was_complete && entry->kind == KNOWN)
		entry->seen = seen_at(now_us) & SEEN_MASK;
	else if (was_complete)
		entry->balance = 0; /* carried twice */
}

/* The entry of a first fragment, which is not of that kind yet; `*waiting` is the list that waited for it. */
static struct entry *fragments_begin(struct fragments *fragments, uint64_t fingerprint,
	uint64_t now_us, enum kind kind, uint32_t *waiting)
{
	struct entry *entry = find_entry(fragments, fingerprint, now_us);

	*waiting = FRAGMENTS_NONE;
	if (entry == NULL)
		return fragments_insert(fragments, fingerprint, now_us, kind);
	if (entry->kind == WAITING) {
		*waiting = entry->value; /* its 60 seconds run on */
	} else {
		entry->seen = seen_at(now_us) & SEEN_MASK;
		entry->balance = 0;
		entry->has_end = 0;
	}
	entry->kind = kind & 3u;
	return entry;
}

uint32_t fragments_first(struct fragments *fragments, uint64_t fingerprint,
	struct fragment_ports ports, struct fragment_piece piece, uint64_t now_us)
{
	uint32_t waiting;
	struct entry *entry = fragments_begin(fragments, fingerprint, now_us, KNOWN, &waiting);

	put_ports(entry, ports);
	add_piece(entry, piece, now_us);
	if (is_complete(entry))
		entry->seen = seen_at(now_us) & SEEN_MASK;
	return waiting;
}

uint32_t fragments_drop(struct fragments *fragments, uint64_t fingerprint, uint64_t now_us)
{
	uint32_t waiting;
	struct entry *entry = fragments_begin(fragments, fingerprint, now_us, DROPPED, &waiting);

	/* there is no last piece of it */
	entry->has_end = 0;
	return waiting;
}

enum fragments_answer fragments_later(struct fragments *fragments, uint64_t fingerprint,
	struct fragment_piece piece, uint64_t now_us, struct fragment_ports *ports,
	uint32_t *waiting)
{
	struct entry *entry = find_entry(fragments, fingerprint, now_us);

	if (entry == NULL)
		entry = fragments_insert(fragments, fingerprint, now_us, WAITING);
	if (entry->kind == DROPPED)
		return FRAGMENTS_DROPPED;
	add_piece(entry, piece, now_us);
	if (entry->kind == KNOWN) {
		*ports = ports_of(entry);
		return FRAGMENTS_KNOWN;
	}
	*waiting = entry->value;
	return FRAGMENTS_WAITING;
}

bool fragments_find(const struct fragments *fragments, uint64_t fingerprint, uint64_t now_us,
	struct fragment_ports *ports)
{
	const struct entry *entry = find_alive(fragments, fingerprint, now_us);

	if (entry == NULL || entry->kind != KNOWN)
		return false;
	*ports = ports_of(entry);
	return true;
}

bool fragments_is_dropped(const struct fragments *fragments, uint64_t fingerprint, uint64_t now_us)
{
	const struct entry *entry = find_alive(fragments, fingerprint, now_us);

	return entry != NULL && entry->kind == DROPPED;
}

/* What waits is found at any time; what is known, or no more, is passed over at the end of all. */
void fragments_set_waiting(struct fragments *fragments, uint64_t fingerprint, uint32_t waiting)
{
	struct entry *entry = find_entry(fragments, fingerprint, CLOCK_MAX_US);

	if (entry != NULL && entry->kind == WAITING)
		entry->value = waiting;
}

void fragments_forget(struct fragments *fragments, uint64_t fingerprint)
{
	for (unsigned which = 0; which < 2; which++) {
		struct line *line = &fragments->lines[line_of(fragments, fingerprint, which)];

		for (unsigned slot = 0; slot < SLOTS; slot++) {
			if (matches(&line->entries[slot], fingerprint))
				line->entries[slot].kind = FREE;
		}
	}
}
