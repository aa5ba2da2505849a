/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow/fragments.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <netinet/in.h>

#include "base/clock.h"
#include "base/mapping.h"

/*
 * An entry lies in one of two lines. Either is had from the other and the 37 bits of the fingerprint
 * that the entry keeps (other_line()), so an entry can be moved out of the way of a new one without
 * its whole fingerprint, and removed without a trace.
 *
 * Where three such steps find no room, the entry becomes a stray: it lies anywhere, and its line is
 * marked for as long as the stray can live. Only who comes by a marked line searches the whole table.
 * That is for fingerprints that collide: a full table that a thousand datagrams a second pass through
 * has no strays.
 *
 * The second first seen is kept modulo 64: after advance() no entry is older than 60 s.
 */

#define SLOTS 6
#define MAX_STEPS 3
#define SECONDS_MASK 63u

static_assert(FRAGMENTS_LIFETIME_S + 1 < SECONDS_MASK, "ages are told modulo 64");

enum kind {
	FREE = 0,
	KNOWN = 1,
	WAITING = 2,
};

/* The protocols that have ports, in 3 bits; for any other its number stands in place of a port. */
static const uint8_t with_ports[7] = {
	IPPROTO_TCP, IPPROTO_UDP, IPPROTO_SCTP, IPPROTO_DCCP, IPPROTO_UDPLITE};
#define WITHOUT_PORTS 7

#define TAG_HIGH_MASK 31u

struct entry {
	uint16_t tag_low[2];
	uint16_t value[2]; /* ports, or the number of the waiting list: low half, high half */
	uint8_t tag_high : 5;
	uint8_t upper : 3; /* which of with_ports, or WITHOUT_PORTS */
	uint8_t kind : 2;  /* enum kind */
	uint8_t second : 6;
};

struct line {
	struct entry entries[SLOTS];
	uint16_t unused;
	uint8_t has_strays;   /* entries that belong here may lie anywhere */
	uint8_t stray_second; /* when the last of them came */
};

static_assert(sizeof(struct entry) == 10, "six to a line");
static_assert(sizeof(struct line) == 64, "a cache line");

struct fragments {
	fragments_expired_fn expired;
	void *context;
	uint64_t tick;	   /* whole seconds of the run */
	uint64_t next_due; /* no entry ends before; UINT64_MAX without entries */
	uint32_t max_datagrams;
	uint32_t count;
	uint32_t n_lines;
	struct line lines[] __attribute__((aligned(64)));
};

/* Where an entry lies. */
struct place {
	uint32_t line;
	unsigned slot;
};

static uint32_t home_of(const struct fragments *fragments, uint64_t fingerprint)
{
	return (uint32_t)((fingerprint >> 32) * fragments->n_lines >> 32);
}

/* The other line of an entry that lies in `line`; may be the same. */
static uint32_t other_line(const struct fragments *fragments, uint32_t line, uint32_t tag_low)
{
	uint32_t sum = (uint32_t)((uint64_t)tag_low * fragments->n_lines >> 32);

	return sum >= line ? sum - line : sum + (fragments->n_lines - line);
}

#define LEAST_DATAGRAMS 1024
#define MOST_DATAGRAMS 65536

uint32_t fragments_for(uint32_t flows)
{
	uint32_t wanted = flows / 4;

	if (wanted < LEAST_DATAGRAMS)
		return LEAST_DATAGRAMS;
	return wanted < MOST_DATAGRAMS ? wanted : MOST_DATAGRAMS;
}

/* Three in a hundred more than needed, so that room is found in a full table too. */
static uint32_t lines_for(uint32_t max_datagrams)
{
	uint64_t needed = ((uint64_t)max_datagrams + SLOTS - 1) / SLOTS;
	uint32_t n_lines = (uint32_t)(needed + needed * 3 / 100);

	return n_lines == 0 ? 1 : n_lines;
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
	fragments_expired_fn expired, void *context)
{
	uint32_t n_lines = lines_for(max_datagrams);
	struct fragments *created = mapping_create(size_for(n_lines), MAPPING_POPULATE);

	if (created == NULL)
		return -ENOMEM;
	created->expired = expired;
	created->context = context;
	created->max_datagrams = max_datagrams;
	created->n_lines = n_lines;
	created->next_due = UINT64_MAX;
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

uint32_t fragments_count(const struct fragments *fragments)
{
	return fragments->count;
}

static uint32_t waiting_of(const struct entry *entry)
{
	return entry->value[0] | (uint32_t)entry->value[1] << 16;
}

static void put_waiting(struct entry *entry, uint32_t waiting)
{
	entry->value[0] = (uint16_t)waiting;
	entry->value[1] = (uint16_t)(waiting >> 16);
}

static void put_ports(struct entry *entry, struct fragment_ports ports)
{
	unsigned upper = 0;

	while (upper < WITHOUT_PORTS && with_ports[upper] != ports.proto)
		upper++;
	entry->upper = upper & 7u;
	entry->value[0] = upper == WITHOUT_PORTS ? ports.proto : ports.src;
	entry->value[1] = upper == WITHOUT_PORTS ? 0 : ports.dst;
}

static struct fragment_ports ports_of(const struct entry *entry)
{
	if (entry->upper == WITHOUT_PORTS)
		return (struct fragment_ports){.proto = (uint8_t)entry->value[0]};
	return (struct fragment_ports){
		.src = entry->value[0], .dst = entry->value[1], .proto = with_ports[entry->upper]};
}

/*
 * When something kept modulo 64 ends. What was seen within this second counts from the next whole one,
 * so that nothing ends before its time.
 */
static uint64_t due_of(const struct fragments *fragments, unsigned second)
{
	uint64_t latest = fragments->tick + 1;
	uint64_t age = (latest - second) & SECONDS_MASK;

	return latest - age + FRAGMENTS_LIFETIME_S;
}

static uint32_t tag_low_of(const struct entry *entry)
{
	return entry->tag_low[0] | (uint32_t)entry->tag_low[1] << 16;
}

static bool matches(const struct entry *entry, uint64_t fingerprint)
{
	return tag_low_of(entry) == (uint32_t)fingerprint &&
	       entry->tag_high == (fingerprint >> 32 & TAG_HIGH_MASK) && entry->kind != FREE;
}

static bool find_in(
	const struct fragments *fragments, uint32_t line, uint64_t fingerprint, struct place *place)
{
	const struct line *at = &fragments->lines[line];

	for (unsigned slot = 0; slot < SLOTS; slot++) {
		if (matches(&at->entries[slot], fingerprint)) {
			*place = (struct place){.line = line, .slot = slot};
			return true;
		}
	}
	return false;
}

static bool find(const struct fragments *fragments, uint64_t fingerprint, struct place *place)
{
	uint32_t home = home_of(fragments, fingerprint);
	uint32_t other = other_line(fragments, home, (uint32_t)fingerprint);

	if (find_in(fragments, home, fingerprint, place) ||
		find_in(fragments, other, fingerprint, place))
		return true;
	for (uint32_t line = 0; fragments->lines[home].has_strays && line < fragments->n_lines;
		line++) {
		if (find_in(fragments, line, fingerprint, place))
			return true;
	}
	return false;
}

static struct entry *find_entry(struct fragments *fragments, uint64_t fingerprint)
{
	struct place place;

	if (!find(fragments, fingerprint, &place))
		return NULL;
	return &fragments->lines[place.line].entries[place.slot];
}

static struct entry *free_slot(struct fragments *fragments, uint32_t line)
{
	for (unsigned slot = 0; slot < SLOTS; slot++) {
		if (fragments->lines[line].entries[slot].kind == FREE)
			return &fragments->lines[line].entries[slot];
	}
	return NULL;
}

static uint32_t others_line(const struct fragments *fragments, uint32_t line, unsigned slot)
{
	const struct entry *entry = &fragments->lines[line].entries[slot];

	return other_line(fragments, line, tag_low_of(entry));
}

static struct entry *move(struct entry *entry, struct entry *to)
{
	*to = *entry;
	entry->kind = FREE;
	return entry;
}

/*
 * Frees a slot of a full line: moves one of its entries to its other line, or, with more steps, makes
 * room there first. Should a later step have changed what lies in the slot, then the entry there now
 * is one that came from the very line it is moved to.
 */
static struct entry *make_room(struct fragments *fragments, uint32_t line, unsigned steps)
{
	struct entry *entries = fragments->lines[line].entries;

	for (unsigned slot = 0; slot < SLOTS; slot++) {
		struct entry *to = free_slot(fragments, others_line(fragments, line, slot));

		if (to != NULL)
			return move(&entries[slot], to);
	}
	for (unsigned slot = 0; slot < SLOTS && steps > 1; slot++) {
		uint32_t other = others_line(fragments, line, slot);
		struct entry *to = other == line ? NULL : make_room(fragments, other, steps - 1);

		if (to != NULL)
			return move(&entries[slot], to);
	}
	return NULL;
}

static void mark_stray(struct fragments *fragments, uint32_t home, uint64_t seen)
{
	fragments->lines[home].has_strays = 1;
	fragments->lines[home].stray_second = seen & SECONDS_MASK;
}

/* There is a free slot somewhere. */
static struct entry *take_slot(struct fragments *fragments, uint64_t fingerprint, uint64_t seen)
{
	uint32_t home = home_of(fragments, fingerprint);
	uint32_t other = other_line(fragments, home, (uint32_t)fingerprint);
	struct entry *entry = free_slot(fragments, home);

	if (entry == NULL)
		entry = free_slot(fragments, other);
	for (unsigned steps = 1; steps <= MAX_STEPS && entry == NULL; steps++) {
		entry = make_room(fragments, home, steps);
		if (entry == NULL)
			entry = make_room(fragments, other, steps);
	}
	if (entry != NULL)
		return entry;
	mark_stray(fragments, home, seen);
	for (uint32_t line = home; entry == NULL;) {
		line = line + 1 == fragments->n_lines ? 0 : line + 1;
		entry = free_slot(fragments, line);
	}
	return entry;
}

/* The caller has looked: it is not there. Returns NULL when the table is full. */
static struct entry *insert(
	struct fragments *fragments, uint64_t fingerprint, uint64_t seen, enum kind kind)
{
	if (fragments->count == fragments->max_datagrams)
		return NULL;
	struct entry *entry = take_slot(fragments, fingerprint, seen);

	entry->tag_low[0] = (uint16_t)fingerprint;
	entry->tag_low[1] = (uint16_t)(fingerprint >> 16);
	entry->tag_high = fingerprint >> 32 & TAG_HIGH_MASK;
	entry->kind = kind & 3u;
	entry->second = seen & SECONDS_MASK;
	if (fragments->count++ == 0)
		fragments->next_due = seen + FRAGMENTS_LIFETIME_S;
	return entry;
}

/* The 60 seconds of an entry begin anew. */
static void renew(
	struct fragments *fragments, uint64_t fingerprint, struct entry *entry, uint64_t seen)
{
	uint32_t home = home_of(fragments, fingerprint);

	entry->second = seen & SECONDS_MASK;
	if (fragments->lines[home].has_strays)
		mark_stray(fragments, home, seen);
}

void fragments_forget(struct fragments *fragments, uint64_t fingerprint)
{
	struct entry *entry = find_entry(fragments, fingerprint);

	if (entry == NULL)
		return;
	entry->kind = FREE;
	if (--fragments->count == 0)
		fragments->next_due = UINT64_MAX;
}

static void release(struct fragments *fragments, const struct entry *entry)
{
	if (entry->kind == WAITING && waiting_of(entry) != FRAGMENTS_NONE)
		fragments->expired(fragments->context, waiting_of(entry));
}

/* Removes what ends at `tick`, and finds out when the next will. */
static void sweep(struct fragments *fragments, uint64_t tick)
{
	uint64_t next_due = UINT64_MAX;

	for (uint32_t line = 0; line < fragments->n_lines; line++) {
		struct line *at = &fragments->lines[line];

		if (at->has_strays && tick >= due_of(fragments, at->stray_second))
			at->has_strays = 0;
		for (unsigned slot = 0; slot < SLOTS; slot++) {
			struct entry *entry = &at->entries[slot];

			if (entry->kind == FREE)
				continue;
			uint64_t due = due_of(fragments, entry->second);

			if (tick < due) {
				next_due = due < next_due ? due : next_due;
				continue;
			}
			release(fragments, entry);
			entry->kind = FREE;
			fragments->count--;
		}
	}
	fragments->next_due = next_due;
}

void fragments_advance(struct fragments *fragments, uint64_t now_us)
{
	uint64_t tick = clock_tick(now_us);

	if (tick <= fragments->tick)
		return;
	if (tick >= fragments->next_due)
		sweep(fragments, tick);
	fragments->tick = tick;
}

void fragments_flush(struct fragments *fragments)
{
	for (uint32_t line = 0; line < fragments->n_lines; line++) {
		for (unsigned slot = 0; slot < SLOTS; slot++)
			release(fragments, &fragments->lines[line].entries[slot]);
	}
	memset(fragments->lines, 0, (size_t)fragments->n_lines * sizeof(struct line));
	fragments->count = 0;
	fragments->tick = 0;
	fragments->next_due = UINT64_MAX;
}

uint32_t fragments_first(struct fragments *fragments, uint64_t fingerprint,
	struct fragment_ports ports, uint64_t now_us, bool *tied)
{
	uint32_t waiting = FRAGMENTS_NONE;

	fragments_advance(fragments, now_us);
	struct entry *entry = find_entry(fragments, fingerprint);

	if (entry == NULL)
		entry = insert(fragments, fingerprint, clock_tick_from(now_us), KNOWN);
	else if (entry->kind == WAITING)
		waiting = waiting_of(entry); /* its 60 seconds run on */
	else
		renew(fragments, fingerprint, entry, clock_tick_from(now_us));
	*tied = entry != NULL;
	if (entry != NULL) {
		entry->kind = KNOWN;
		put_ports(entry, ports);
	}
	return waiting;
}

enum fragments_answer fragments_later(struct fragments *fragments, uint64_t fingerprint,
	uint64_t now_us, struct fragment_ports *ports, uint32_t *waiting)
{
	fragments_advance(fragments, now_us);
	struct entry *entry = find_entry(fragments, fingerprint);

	if (entry == NULL) {
		entry = insert(fragments, fingerprint, clock_tick_from(now_us), WAITING);
		if (entry == NULL)
			return FRAGMENTS_FULL;
		put_waiting(entry, FRAGMENTS_NONE);
	}
	if (entry->kind == KNOWN) {
		*ports = ports_of(entry);
		return FRAGMENTS_KNOWN;
	}
	*waiting = waiting_of(entry);
	return FRAGMENTS_WAITING;
}

bool fragments_find(const struct fragments *fragments, uint64_t fingerprint, uint64_t now_us,
	struct fragment_ports *ports)
{
	struct place place;

	if (!find(fragments, fingerprint, &place))
		return false;
	const struct entry *entry = &fragments->lines[place.line].entries[place.slot];

	if (entry->kind != KNOWN || clock_tick(now_us) >= due_of(fragments, entry->second))
		return false;
	*ports = ports_of(entry);
	return true;
}

void fragments_set_waiting(struct fragments *fragments, uint64_t fingerprint, uint32_t waiting)
{
	struct entry *entry = find_entry(fragments, fingerprint);

	if (entry != NULL && entry->kind == WAITING)
		put_waiting(entry, waiting);
}
