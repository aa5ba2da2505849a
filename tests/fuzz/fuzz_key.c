/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Keys from any bytes, and a small table of them that inserts, finds and removes as the bytes say,
 * against a plain list. Half of the inputs hash without a secret, under which keys can be made to
 * collide at will.
 *
 * - a key is the same whichever end sends, and the end is the other one;
 * - the table holds what the list holds, in positions that never change, and takes what it was made
 *   for;
 * - its counts of entries that are away from home, and of strays, are what a recount gives;
 * - once empty, it is as new.
 */

#include <stdio.h>
#include <stdlib.h>

#include "flow/place.h"
#include "flow/table.h"

#define CAPACITY 70
#define ENDPOINT 18
#define LONGEST_INPUT 1000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct entry {
	struct flow_key key;
	uint32_t position;
};

struct list {
	struct flow_table table;
	const struct hash_secret *secret;
	struct entry entries[CAPACITY];
	unsigned n;
};

static const struct hash_secret no_secret;
static const struct hash_secret some_secret = {
	.word = {0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb, 0x2545f4914f6cdd1d,
		0xd6e8feb86659fd93, 0xa0761d6478bd642f},
};

static void check(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

/* Two endpoints of 18 bytes. */
static struct flow_key make_key(const uint8_t *bytes)
{
	const uint8_t *a = bytes;
	const uint8_t *b = bytes + ENDPOINT;
	struct flow_key key = {.proto = 17, .version_wire = FLOW_KEY_VERSION_WIRE(6, 0)};
	struct flow_key back = key;
	rte_be16_t port_a, port_b;

	memcpy(&port_a, a + 16, 2);
	memcpy(&port_b, b + 16, 2);
	unsigned from = flow_key_make(&key, a, b, port_a, port_b);
	unsigned from_back = flow_key_make(&back, b, a, port_b, port_a);

	check(flow_key_equal(&key, &back), "one key for both directions");
	check(memcmp(a, b, ENDPOINT) == 0 ? from == 0 && from_back == 0 : from != from_back,
		"the other end");
	check(memcmp(key.addr[from], a, 16) == 0 && key.port[from] == port_a, "the sender's end");
	check(memcmp(key.addr[0], key.addr[1], 16) <= 0, "lower first");
	return key;
}

static void find_all(const struct list *list)
{
	for (unsigned i = 0; i < list->n; i++)
		check(flow_table_find(&list->table, &list->entries[i].key,
			      flow_key_hash(list->secret, &list->entries[i].key)) ==
				list->entries[i].position,
			"found where it was put");
}

/* Counts the entry in one slot where it belongs; returns whether it is a stray. */
static bool recount(const struct flow_table *table, struct place place, unsigned slot,
	unsigned (*away)[LINE_CLASSES])
{
	const struct flow_key *key =
		&flow_table_record(table, place_position(table, place, slot))->key;
	uint64_t hash = flow_key_hash(table->secret, key);
	struct place home = place_home(table, hash);
	uint16_t tag = line_tag(hash);

	check(place_line(table, place)->tag[slot] == tag, "tag");
	if (place_equal(home, place))
		return false;
	if (!place_equal(place_other(table, home, tag), place))
		return true;
	away[home.line][line_class(tag) / 4]++;
	return false;
}

static void check_counts(const struct flow_table *table)
{
	unsigned away[CAPACITY][LINE_CLASSES] = {0};
	struct place place = {0};
	uint32_t strays = 0;
	uint32_t count = 0;

	for (; place.line < table->group_lines; place.line++) {
		uint32_t used = ~line_match(place_line(table, place), 0) & LINE_ALL;

		for (; used != 0; used &= used - 1, count++)
			strays += recount(table, place, line_first(used), away);
	}
	check(count == table->count && strays == table->n_strays, "entries and strays");
	for (uint32_t i = 0; i < table->group_lines; i++) {
		for (unsigned class = 0; class < LINE_CLASSES; class ++) {
			unsigned told = table->lines[i].away >> 4 * class & 15;

			check(told == away[i][class] || told == 15, "entries away from home");
		}
	}
}

static void toggle(struct list *list, const struct flow_key *key)
{
	uint64_t hash = flow_key_hash(list->secret, key);
	uint32_t position = flow_table_find(&list->table, key, hash);
	unsigned i = 0;

	while (i < list->n && !flow_key_equal(&list->entries[i].key, key))
		i++;
	check((position != FLOW_NONE) == (i < list->n), "found what is there");
	if (position != FLOW_NONE) {
		flow_table_remove(&list->table, position);
		list->entries[i] = list->entries[--list->n];
		check(flow_table_find(&list->table, key, hash) == FLOW_NONE, "gone");
		return;
	}
	position = flow_table_insert(&list->table, key, hash);
	check((position != FLOW_NONE) == (list->n < CAPACITY), "takes what it was made for");
	if (position != FLOW_NONE)
		list->entries[list->n++] = (struct entry){*key, position};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct list list = {.secret = &some_secret};

	if (size == 0 || size > LONGEST_INPUT)
		return 0;
	if (data[0] & 1)
		list.secret = &no_secret;
	check(flow_table_init(&list.table, CAPACITY, list.secret, 0) == 0, "init");
	for (size_t at = 1; at + 2 * ENDPOINT <= size; at += 1 + data[at] % 7) {
		struct flow_key key = make_key(&data[at]);

		toggle(&list, &key);
		if (at % 8 == 0)
			find_all(&list);
		check_counts(&list.table);
	}
	while (list.n != 0) {
		struct flow_key key = list.entries[0].key;

		toggle(&list, &key);
	}
	check(list.table.count == 0 && flow_table_next(&list.table, 0) == FLOW_NONE, "empty");
	check(list.table.n_strays == 0, "no strays");
	for (uint32_t i = 0; i < list.table.n_groups * list.table.group_lines; i++)
		check(line_is_empty(&list.table.lines[i]), "a line as new");
	flow_table_fini(&list.table);
	return 0;
}
