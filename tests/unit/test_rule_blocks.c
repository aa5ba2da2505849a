/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The list of blocks, held against a naive one; its expiry, its bounds, its pages, its files. The text of
 * blocks has its own test, test_rule_block.c; readers beside the writer are in test_rule_blocks_live.c.
 */

#include <errno.h>
#include <unistd.h>

#include "unit/blocks_scene.h"

static int add(struct blocks *blocks, const char *text, uint64_t now_us)
{
	struct block block = parse_block(text);

	return blocks_add(blocks, &block, now_us, NULL);
}

static struct flow_key key_of(const char *text)
{
	char line[BLOCK_LINE_MAX];

	snprintf(line, sizeof(line), "flow %s", text);
	return parse_block(line).match.flow;
}

/* The block that applies to a flow, as its line; "" when there is none. */
static const char *found(const struct blocks *blocks, const char *flow)
{
	static char line[BLOCK_LINE_MAX];
	struct flow_key key = key_of(flow);
	uint32_t position = blocks_find(blocks, &key);
	struct block_view view;

	line[0] = '\0';
	if (position == BLOCKS_NONE)
		return line;
	assert_int_equal(blocks_get_number(blocks, blocks_number(blocks, position), &view), 0);
	assert_int_equal(view.position, position);
	struct block block = {.match = view.match, .reason = view.reason};

	block_format(&block, line);
	return line;
}

static void test_most_specific(void **state)
{
	static const char flow[] = "10.1.2.3:1000 10.9.9.9:53 udp";
	/* from the least specific to the most */
	static const char *const order[] = {
		"0.0.0.0/0",
		"10.0.0.0/8",
		"10.0.0.0/8 proto udp",
		"10.0.0.0/8 port 53",
		"10.0.0.0/8 port 1000 proto udp",
		"10.1.2.0/24",
		"10.1.2.3",
		"10.9.9.9 port 53",
		"flow 10.1.2.3:1000 10.9.9.9:53 udp",
	};
	struct blocks *blocks = make(100, 0);

	(void)state;
	assert_string_equal(found(blocks, flow), "");
	for (unsigned i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		assert_int_equal(add(blocks, order[i], 0), 0);
		assert_string_equal(found(blocks, flow), order[i]);
	}
	/* not the same end, not the port, not the protocol, not the version */
	assert_int_equal(add(blocks, "192.0.2.1 port 80 proto tcp", 0), 0);
	assert_string_equal(
		found(blocks, "192.0.2.1:80 192.0.3.1:5 tcp"), "192.0.2.1 port 80 proto tcp");
	assert_string_equal(found(blocks, "192.0.2.1:5 192.0.3.1:80 tcp"), "0.0.0.0/0");
	assert_string_equal(found(blocks, "192.0.2.1:80 192.0.3.1:5 udp"), "0.0.0.0/0");
	assert_string_equal(found(blocks, "[::1]:80 [::2]:5 udp"), "");
	/* both ends: the older one */
	assert_int_equal(add(blocks, "172.16.0.2", 0), 0);
	assert_int_equal(add(blocks, "172.16.0.1", 0), 0);
	assert_string_equal(found(blocks, "172.16.0.1:1 172.16.0.2:2 tcp"), "172.16.0.2");
	blocks_destroy(blocks);
	blocks_destroy(NULL);
}

/* A naive list. */

#define MODEL_MAX 400

struct model_entry {
	struct block block;
	char reason[16];
	uint64_t number, added_us, expires_us, packets;
};

struct model {
	struct blocks *blocks;
	struct model_entry entries[MODEL_MAX];
	unsigned n;
	uint64_t now_us, number, packets, gone;
	unsigned n_told;
};

static void random_address(uint8_t addr[16], unsigned version)
{
	memset(addr, 0, 16);
	addr[0] = version == 4 ? 10 : 0x20;
	/* few different ones, which share prefixes of many lengths */
	for (unsigned i = 1; i < (version == 4 ? 4 : 16); i += version == 4 ? 1 : 5)
		addr[i] = (uint8_t)(draw(3) * 0x55);
}

static struct flow_key random_key(void)
{
	static const uint8_t protos[] = {6, 17, 132};
	unsigned version = draw(2) ? 4 : 6;
	uint8_t addr[2][16];
	struct flow_key key = {
		.proto = protos[draw(3)], .version_wire = FLOW_KEY_VERSION_WIRE(version, 0)};

	random_address(addr[0], version);
	random_address(addr[1], version);
	flow_key_make(&key, addr[0], addr[1], rte_cpu_to_be_16((uint16_t)(1 + draw(3))),
		rte_cpu_to_be_16((uint16_t)(1 + draw(3))));
	return key;
}

static struct block_match random_match(void)
{
	struct flow_key key = random_key();
	struct block_match match = {.is_flow = draw(4) == 0};

	if (match.is_flow) {
		match.flow = key;
		return match;
	}
	match.prefix = (struct block_prefix){
		.version = flow_key_version(&key),
		.proto = (int16_t)(draw(2) ? key.proto : BLOCK_ANY),
		.port = draw(2) ? (int32_t)(1 + draw(3)) : BLOCK_ANY,
	};
	match.prefix.length = (uint8_t)draw(match.prefix.version == 4 ? 33 : 129);
	for (unsigned i = 0; i < match.prefix.length; i++)
		match.prefix.addr[i / 8] |= (uint8_t)(key.addr[0][i / 8] & 0x80 >> i % 8);
	return match;
}

static bool same_match(const struct block_match *a, const struct block_match *b)
{
	const struct block_prefix *x = &a->prefix, *y = &b->prefix;

	if (a->is_flow || b->is_flow)
		return a->is_flow && b->is_flow && flow_key_equal(&a->flow, &b->flow);
	return x->version == y->version && x->length == y->length && x->port == y->port &&
	       x->proto == y->proto && memcmp(x->addr, y->addr, 16) == 0;
}

static bool bit_of(const uint8_t addr[16], unsigned i)
{
	return addr[i / 8] >> (7 - i % 8) & 1;
}

/* Bit by bit, unlike block_match_fits(). */
static bool fits(const struct block_match *match, const struct flow_key *key)
{
	const struct block_prefix *prefix = &match->prefix;

	if (match->is_flow)
		return memcmp(&match->flow, key, sizeof(*key)) == 0;
	if (prefix->version != flow_key_version(key) ||
		(prefix->proto != BLOCK_ANY && prefix->proto != key->proto))
		return false;
	for (unsigned end = 0; end < 2; end++) {
		bool all = prefix->port == BLOCK_ANY ||
			   prefix->port == rte_be_to_cpu_16(key->port[end]);

		for (unsigned i = 0; i < prefix->length; i++)
			all &= bit_of(prefix->addr, i) == bit_of(key->addr[end], i);
		if (all)
			return true;
	}
	return false;
}

static unsigned rank(const struct block_match *match)
{
	if (match->is_flow)
		return UINT16_MAX;
	return match->prefix.length * 4u + (match->prefix.port != BLOCK_ANY) * 2u +
	       (match->prefix.proto != BLOCK_ANY);
}

static struct model_entry *model_find(struct model *model, const struct flow_key *key)
{
	struct model_entry *best = NULL;

	for (unsigned i = 0; i < model->n; i++) {
		struct model_entry *entry = &model->entries[i];

		assert_int_equal(
			fits(&entry->block.match, key), block_match_fits(&entry->block.match, key));
		if (!fits(&entry->block.match, key))
			continue;
		if (!best || rank(&entry->block.match) > rank(&best->block.match) ||
			(rank(&entry->block.match) == rank(&best->block.match) &&
				entry->number < best->number))
			best = entry;
	}
	return best;
}

static struct model_entry *model_get(struct model *model, const struct block_match *match)
{
	for (unsigned i = 0; i < model->n; i++)
		if (same_match(&model->entries[i].block.match, match))
			return &model->entries[i];
	return NULL;
}

static void model_drop(struct model *model, struct model_entry *entry)
{
	model->gone += entry->packets;
	*entry = model->entries[--model->n];
}

static void check_view(const struct model_entry *entry, const struct block_view *view)
{
	assert_true(same_match(&entry->block.match, &view->match));
	assert_int_equal(entry->number, view->number);
	assert_int_equal(entry->added_us, view->added_us);
	assert_int_equal(entry->expires_us, view->expires_us);
	assert_int_equal(entry->packets, view->packets);
	assert_int_equal(entry->packets * 100, view->bytes);
	if (entry->reason[0] == '\0')
		assert_null(view->reason);
	else
		assert_string_equal(entry->reason, view->reason);
}

static void model_add(struct model *model)
{
	struct block block = {.match = random_match(), .for_s = draw(2) ? 1 + draw(400) : 0};
	struct model_entry *entry = model_get(model, &block.match);
	uint64_t generation = blocks_generation(model->blocks), number = 0;
	char reason[16] = "";
	bool is_new = entry == NULL;

	if (draw(3) == 0)
		snprintf(reason, sizeof(reason), "reason %u", draw(20));
	block.reason = draw(2) || reason[0] != '\0' ? reason : NULL;
	int ret = blocks_add(model->blocks, &block, model->now_us, &number);

	if (is_new && model->n == MODEL_MAX) {
		assert_int_equal(ret, -ENOSPC);
		return;
	}
	assert_int_equal(ret, is_new ? 0 : 1);
	assert_int_equal(blocks_generation(model->blocks), generation + is_new);
	if (is_new) {
		entry = &model->entries[model->n++];
		*entry = (struct model_entry){.number = ++model->number, .added_us = model->now_us};
	}
	entry->block = block;
	memcpy(entry->reason, reason, sizeof(reason));
	entry->expires_us = block.for_s ? model->now_us + S(block.for_s) : 0;
	assert_int_equal(number, entry->number);
}

static void model_remove(struct model *model)
{
	struct block_match match = random_match();
	struct block_view gone;

	if (model->n == 0 || draw(4) == 0) {
		int ret = blocks_remove(model->blocks, &match, &gone);
		struct model_entry *entry = model_get(model, &match);

		assert_int_equal(ret, entry ? 0 : -ENOENT);
		if (entry) {
			check_view(entry, &gone);
			model_drop(model, entry);
		}
		return;
	}
	struct model_entry *entry = &model->entries[draw(model->n)];
	uint64_t number = entry->number;

	match = entry->block.match;
	if (draw(2))
		assert_int_equal(blocks_remove(model->blocks, &match, &gone), 0);
	else
		assert_int_equal(blocks_remove_number(model->blocks, number, &gone), 0);
	check_view(entry, &gone);
	model_drop(model, entry);
	assert_int_equal(blocks_remove_number(model->blocks, number, NULL), -ENOENT);
}

static void model_look(struct model *model)
{
	struct flow_key key = random_key();
	struct model_entry *entry = model_find(model, &key);
	uint32_t position = blocks_find(model->blocks, &key);

	assert_int_equal(position != BLOCKS_NONE, entry != NULL);
	if (!entry)
		return;
	assert_int_equal(blocks_number(model->blocks, position), entry->number);
	blocks_count_packets(blocks_counts(model->blocks, draw(MAX_WORKERS)), position, 3, 300);
	entry->packets += 3;
	model->packets += 3;
}

static void model_expired(void *context, const struct block_view *gone)
{
	struct model *model = context;
	struct model_entry *entry = model_get(model, &gone->match);

	assert_non_null(entry);
	check_view(entry, gone);
	assert_true(entry->expires_us != 0 && entry->expires_us <= model->now_us);
	model_drop(model, entry);
	model->n_told++;
}

static void model_expire(struct model *model)
{
	model->now_us += draw(4) ? draw(3000000) : draw(400) * CLOCK_US_PER_S;
	model->n_told = 0;
	uint32_t n = blocks_expire(model->blocks, model->now_us, model_expired, model);

	assert_int_equal(n, model->n_told);
	/* nothing is left that was due a second ago */
	for (unsigned i = 0; i < model->n; i++)
		assert_true(model->entries[i].expires_us == 0 ||
			    model->entries[i].expires_us + CLOCK_US_PER_S > model->now_us);
}

static void model_list(struct model *model)
{
	struct block_view views[7];
	uint32_t from = 0, total = 0;

	while (from != BLOCKS_NONE) {
		uint32_t n = blocks_list(model->blocks, NULL, &from, views, 7);

		for (uint32_t i = 0; i < n; i++)
			check_view(model_get(model, &views[i].match), &views[i]);
		total += n;
	}
	assert_int_equal(total, model->n);
}

static void test_model(void **state)
{
	struct model *model = calloc(1, sizeof(*model));
	struct blocks_stats stats;

	(void)state;
	assert_non_null(model);
	model->blocks = make(MODEL_MAX, 25);
	for (unsigned i = 0; i < 300000 / SLOWER; i++) {
		unsigned what = draw(1000);

		/* sometimes more come than go */
		if (what < 250)
			model_add(model);
		else if (what < (i / 4000 % 2 ? 320 : 480))
			model_remove(model);
		else if (what < 484)
			model_expire(model);
		else if (what < 490)
			model_list(model);
		else
			model_look(model);
		if (i % 50 == 0)
			settle(model->blocks);
	}
	settle(model->blocks);
	blocks_stats(model->blocks, &stats);
	assert_int_equal(stats.entries, model->n);
	assert_int_equal(stats.unsettled, 0);
	assert_int_equal(stats.gone_packets, model->gone);
	assert_int_equal(stats.gone_bytes, model->gone * 100);
	assert_int_equal(stats.added - stats.removed - stats.expired, model->n);
	uint64_t live = 0;

	for (unsigned i = 0; i < model->n; i++)
		live += model->entries[i].packets;
	assert_int_equal(live + stats.gone_packets, model->packets);
	blocks_destroy(model->blocks);
	free(model);
}

/* Expiry. */

static void count_told(void *context, const struct block_view *gone)
{
	(void)gone;
	++*(unsigned *)context;
}

/* Around the widths of the wheel's slots, and beyond its reach. */
static void test_expiry(void **state)
{
	static const uint32_t lives_s[] = {1, 2, 59, 255, 256, 257, 511, 3600, 65535, 65536, 65537,
		131072, 16777215, 16777216, 16777217, 50000000, 270000000};
	static const uint64_t starts_us[] = {0, 1, 999999, S(255), S(65535) + 7, S(1000000) - 1};

	(void)state;
	for (unsigned i = 0; i < sizeof(starts_us) / sizeof(starts_us[0]); i++) {
		for (unsigned k = 0; k < sizeof(lives_s) / sizeof(lives_s[0]); k++) {
			struct blocks *blocks = make(4, 0);
			struct block block = parse_block("10.0.0.0/8");
			uint64_t from_us = starts_us[i], due_us = from_us + S(lives_s[k]);
			unsigned told = 0;

			block.for_s = lives_s[k];
			blocks_expire(blocks, from_us, NULL, NULL);
			assert_int_equal(blocks_add(blocks, &block, from_us, NULL), 0);
			/* some steps on the way */
			for (unsigned step = 1; step < 8; step++)
				assert_int_equal(
					blocks_expire(blocks, from_us + S(lives_s[k]) / 8 * step,
						count_told, &told),
					0);
			assert_int_equal(blocks_expire(blocks, due_us - 1, count_told, &told), 0);
			assert_string_equal(
				found(blocks, "10.1.1.1:1 11.1.1.1:1 tcp"), "10.0.0.0/8");
			blocks_expire(blocks, due_us + CLOCK_US_PER_S - 1, count_told, &told);
			assert_int_equal(told, 1);
			assert_string_equal(found(blocks, "10.1.1.1:1 11.1.1.1:1 tcp"), "");
			blocks_destroy(blocks);
		}
	}
}

static void test_expiry_replaced(void **state)
{
	struct blocks *blocks = make(10, 10);
	unsigned told = 0;

	(void)state;
	assert_int_equal(add(blocks, "10.0.0.0/8 for 5 reason one", 0), 0);
	assert_int_equal(add(blocks, "10.0.0.0/8 for 50 reason two", S(2)), 1);
	assert_int_equal(blocks_expire(blocks, S(51), count_told, &told), 0);
	assert_string_equal(found(blocks, "10.1.1.1:1 11.1.1.1:1 tcp"), "10.0.0.0/8 reason two");
	assert_int_equal(add(blocks, "10.0.0.0/8", S(51)), 1);
	assert_int_equal(blocks_expire(blocks, S(1000), count_told, &told), 0);
	assert_string_equal(found(blocks, "10.1.1.1:1 11.1.1.1:1 tcp"), "10.0.0.0/8");
	assert_int_equal(add(blocks, "10.0.0.0/8 for 1", S(1000)), 1);
	assert_int_equal(blocks_expire(blocks, S(1001), count_told, &told), 1);
	assert_int_equal(told, 1);
	blocks_destroy(blocks);
}

/* Bounds. */

static void test_create(void **state)
{
	struct blocks *blocks = NULL;
	struct blocks_config config = {.max_entries = 0, .secret = &secret, .qsbr = qsbr};

	(void)state;
	assert_int_equal(blocks_create(&blocks, &config), -EINVAL);
	config.max_entries = BLOCKS_MAX_ENTRIES + 1;
	assert_int_equal(blocks_create(&blocks, &config), -EINVAL);
	config.max_entries = 1;
	config.max_reasons = 1 << 24;
	assert_int_equal(blocks_create(&blocks, &config), -EINVAL);
	config.max_reasons = 0;
	config.qsbr = NULL;
	assert_int_equal(blocks_create(&blocks, &config), -EINVAL);
	config.qsbr = qsbr;
	assert_int_equal(blocks_create(&blocks, &config), 0);
	assert_int_equal(add(blocks, "::/0 reason none can be given", 0), -ENOSPC);
	assert_int_equal(add(blocks, "::/0", 0), 0);
	blocks_destroy(blocks);
}

static void test_refused(void **state)
{
	struct blocks *blocks = make(2, 1);
	struct block block = parse_block("10.0.0.0/8"), bad;
	char reason[BLOCK_REASON_MAX + 1];

	(void)state;
	bad = block;
	bad.match.prefix.length = 33;
	assert_int_equal(blocks_add(blocks, &bad, 0, NULL), -EINVAL);
	bad.match.prefix.length = 7;
	assert_int_equal(blocks_add(blocks, &bad, 0, NULL), 0);
	bad.match.prefix.length = 4;
	assert_int_equal(blocks_add(blocks, &bad, 0, NULL), -EINVAL);
	bad = block;
	bad.match.prefix.port = 0;
	assert_int_equal(blocks_add(blocks, &bad, 0, NULL), -EINVAL);
	bad = block;
	bad.for_s = BLOCK_FOR_MAX_S + 1;
	assert_int_equal(blocks_add(blocks, &bad, 0, NULL), -EINVAL);
	bad = block;
	bad.reason = "two\nlines";
	assert_int_equal(blocks_add(blocks, &bad, 0, NULL), -EINVAL);
	memset(reason, 'x', sizeof(reason));
	reason[BLOCK_REASON_MAX] = '\0';
	bad.reason = reason;
	assert_int_equal(blocks_add(blocks, &bad, 0, NULL), -EINVAL);
	bad = parse_block("flow 10.0.0.1:1 10.0.0.2:2 tcp");
	bad.match.flow.version_wire = 0;
	assert_int_equal(blocks_add(blocks, &bad, 0, NULL), -EINVAL);
	bad = parse_block("flow 10.0.0.1:1 10.0.0.1:2 tcp");
	bad.match.flow.port[0] = rte_cpu_to_be_16(3);
	assert_int_equal(blocks_add(blocks, &bad, 0, NULL), -EINVAL);
	blocks_destroy(blocks);
}

static void test_full(void **state)
{
	struct blocks *blocks = make(3, 1);
	struct blocks_stats stats;
	struct block_view view;

	(void)state;
	assert_int_equal(add(blocks, "10.0.0.1 reason one", 0), 0);
	assert_int_equal(add(blocks, "10.0.0.2", 0), 0);
	assert_int_equal(add(blocks, "10.0.0.3 reason another", 0), -ENOSPC);
	assert_int_equal(add(blocks, "10.0.0.2 reason another", 0), -ENOSPC);
	assert_int_equal(add(blocks, "10.0.0.3", 0), 0);
	assert_int_equal(add(blocks, "10.0.0.4", 0), -ENOSPC);
	/* its last use makes room for the new one */
	assert_int_equal(add(blocks, "10.0.0.1 reason another", 0), 1);
	blocks_stats(blocks, &stats);
	assert_int_equal(stats.entries, 3);
	assert_int_equal(stats.refused_full, 1);
	assert_int_equal(stats.refused_reasons, 2);
	assert_int_equal(stats.reasons, 1);
	assert_int_equal(stats.max_reasons, 1);
	assert_int_equal(stats.replaced, 1);
	assert_int_equal(blocks_get_number(blocks, 1, &view), 0);
	assert_string_equal(view.reason, "another");
	assert_int_equal(blocks_remove_number(blocks, 2, NULL), 0);
	assert_int_equal(add(blocks, "10.0.0.4", 0), 0);
	assert_int_equal(blocks_get_number(blocks, 4, &view), 0);
	blocks_destroy(blocks);
}

/* A position is not another entry's before flows that have it were decided again. */
static void test_unsettled(void **state)
{
	struct blocks *blocks = make(1, 0);
	struct flow_key key = key_of("10.0.0.1:1 10.0.0.2:2 tcp");
	struct blocks_stats stats;
	uint32_t first, other;
	unsigned n = 0;
	int ret;

	(void)state;
	assert_int_equal(add(blocks, "10.0.0.1", 0), 0);
	first = blocks_find(blocks, &key);
	do {
		assert_int_equal(blocks_remove_number(blocks, ++n, NULL), 0);
		ret = add(blocks, "10.0.0.1", 0);
		other = blocks_find(blocks, &key);
		assert_true(other != first);
	} while (ret == 0);
	assert_int_equal(ret, -EAGAIN);
	assert_int_equal(n, 1 + 1024);
	assert_int_equal(other, BLOCKS_NONE);
	blocks_count_packets(blocks_counts(blocks, 1), first, 5, 700);
	/* all but the last one */
	blocks_settled(blocks, blocks_generation(blocks) - 1);
	blocks_stats(blocks, &stats);
	assert_int_equal(stats.unsettled, 1);
	assert_int_equal(stats.refused_unsettled, 1);
	assert_int_equal(stats.gone_packets, 5);
	assert_int_equal(stats.gone_bytes, 700);
	assert_int_equal(add(blocks, "10.0.0.1", 0), 0);
	blocks_destroy(blocks);
}

/* Pages. */

static void test_pages(void **state)
{
	struct blocks *blocks = make(5000, 0);
	struct block_view views[10];
	uint32_t from = 0, last = 0;
	unsigned n_kept = 0, n_pages = 0;
	char text[64];

	(void)state;
	for (unsigned i = 0; i < 4000; i++) {
		snprintf(text, sizeof(text), "10.0.%u.%u", i / 256, i % 256);
		assert_int_equal(add(blocks, text, 0), 0);
	}
	/* the even numbers stay; an odd one goes, and another comes, with each page */
	while (from != BLOCKS_NONE) {
		uint32_t n = blocks_list(blocks, NULL, &from, views, 10);

		for (uint32_t i = 0; i < n; i++) {
			assert_true(views[i].number > last || views[i].number > 4000);
			last = (uint32_t)views[i].number;
			n_kept += views[i].number % 2 == 0 && views[i].number <= 4000;
		}
		assert_int_equal(blocks_remove_number(blocks, 2 * n_pages + 1, NULL), 0);
		snprintf(text, sizeof(text), "11.0.%u.%u", n_pages / 256, n_pages % 256);
		assert_int_equal(add(blocks, text, 0), 0);
		settle(blocks);
		n_pages++;
	}
	assert_int_equal(n_kept, 2000);
	blocks_destroy(blocks);
}

static unsigned count_list(
	const struct blocks *blocks, const char *prefix, const char *flow, char *numbers)
{
	struct blocks_filter filter = {.flow = NULL};
	struct block_view views[100];
	struct flow_key key;
	uint32_t from = 0;

	if (prefix)
		filter.prefix = parse_block(prefix).match.prefix;
	if (flow) {
		key = key_of(flow);
		filter.flow = &key;
	}
	uint32_t n = blocks_list(blocks, &filter, &from, views, 100);

	assert_int_equal(from, BLOCKS_NONE);
	*numbers = '\0';
	for (uint32_t i = 0; i < n; i++)
		sprintf(numbers + strlen(numbers), "%u ", (unsigned)views[i].number);
	return n;
}

static void test_filter(void **state)
{
	static const char *const texts[] = {
		"10.0.0.0/8",			      /* 1 */
		"10.1.0.0/16 port 80",		      /* 2 */
		"10.1.2.3",			      /* 3 */
		"192.0.2.0/24 proto udp",	      /* 4 */
		"2001:db8::/32",		      /* 5 */
		"flow 10.1.2.3:1 192.0.2.1:80 udp",   /* 6 */
		"flow [2001:db8::1]:1 [2003::]:80 6", /* 7 */
		"0.0.0.0/0",			      /* 8 */
	};
	struct blocks *blocks = make(100, 0);
	char numbers[256];

	(void)state;
	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(add(blocks, texts[i], 0), 0);
	count_list(blocks, "10.1.2.3", NULL, numbers);
	assert_string_equal(numbers, "1 2 3 6 8 ");
	count_list(blocks, "10.1.0.0/17", NULL, numbers);
	assert_string_equal(numbers, "1 2 3 6 8 ");
	count_list(blocks, "10.2.0.0/16", NULL, numbers);
	assert_string_equal(numbers, "1 8 ");
	count_list(blocks, "::/0", NULL, numbers);
	assert_string_equal(numbers, "5 7 ");
	count_list(blocks, NULL, "10.1.2.3:1 192.0.2.1:80 udp", numbers);
	assert_string_equal(numbers, "1 3 4 6 8 ");
	count_list(blocks, "192.0.2.1", "10.1.2.3:1 192.0.2.1:80 udp", numbers);
	assert_string_equal(numbers, "4 6 8 ");
	blocks_destroy(blocks);
}

/* Files. */

static int load(
	struct blocks *blocks, const char *text, struct blocks_added *added, struct error *error)
{
	error->text[0] = '\0';
	return blocks_load_bytes(blocks, "f", text, strlen(text), 0, added, error);
}

static void test_file(void **state)
{
	struct blocks *blocks = make(4, 2);
	struct blocks_added added;
	struct blocks_stats stats;
	struct error error;

	(void)state;
	assert_int_equal(
		load(blocks, "# a comment\n\n  \t\n10.0.0.0/8 # none\n", &added, &error), -EBADMSG);
	assert_string_equal(error.text, "f:4:12: #: port, proto, for or reason is needed here");
	uint64_t generation = blocks_generation(blocks);

	assert_int_equal(load(blocks,
				 "# a comment\n\n10.0.0.0/8 reason a\r\n  ::1 port 5 for 10\n"
				 "10.0.0.0/8 reason b # of it",
				 &added, &error),
		0);
	assert_int_equal(added.added, 2);
	assert_int_equal(added.replaced, 1);
	assert_int_equal(blocks_generation(blocks), generation + 1);
	assert_string_equal(
		found(blocks, "10.0.0.1:1 1.1.1.1:1 tcp"), "10.0.0.0/8 reason b # of it");
	/* what is new does not fit; nor do the reasons; nothing changes */
	generation = blocks_generation(blocks);
	assert_int_equal(
		load(blocks, "10.0.0.0/8\n1.1.1.1\n1.1.1.2\n1.1.1.3\n", &added, &error), -ENOSPC);
	assert_string_equal(error.text, "f: no room for the 4 blocks of this list: 2 of 4 are in "
					"use, with 1 of 2 reasons");
	assert_int_equal(
		load(blocks, "1.1.1.1 reason a\n1.1.1.2 reason c\n", &added, &error), -ENOSPC);
	blocks_stats(blocks, &stats);
	assert_int_equal(stats.entries, 2);
	assert_int_equal(stats.refused_full, 1);
	assert_int_equal(stats.refused_reasons, 1);
	assert_int_equal(blocks_generation(blocks), generation);
	/* more lines than room, but few that are new */
	assert_int_equal(
		load(blocks, "10.0.0.0/8\n1.1.1.1\n1.1.1.1\n1.1.1.2\n::1 port 5\n1.1.1.1\n", &added,
			&error),
		0);
	assert_int_equal(added.added, 2);
	assert_int_equal(added.replaced, 4);
	assert_int_equal(load(blocks, "", &added, &error), 0);
	assert_int_equal(
		blocks_load_bytes(blocks, "f", "::1\n::\0\n", 8, 0, &added, &error), -EBADMSG);
	assert_string_equal(error.text, "f:2:3: a zero byte; this is no text");
	blocks_destroy(blocks);
}

static void test_file_of_disk(void **state)
{
	struct blocks *blocks = make(10, 0);
	char path[] = "blocks.XXXXXX";
	int fd = mkstemp(path);
	struct blocks_added added;
	struct error error;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "1.1.1.1\n1.1.1.2", 15), 15);
	close(fd);
	assert_int_equal(blocks_load_file(blocks, path, 0, &added, &error), 0);
	assert_int_equal(added.added, 2);
	unlink(path);
	assert_int_equal(blocks_load_file(blocks, "/nowhere/x", 0, &added, &error), -ENOENT);
	assert_string_equal(error.text, "/nowhere/x: No such file or directory");
	assert_int_equal(blocks_load_file(blocks, "/dev", 0, &added, &error), -EISDIR);
	blocks_destroy(blocks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_most_specific),
		cmocka_unit_test(test_model),
		cmocka_unit_test(test_expiry),
		cmocka_unit_test(test_expiry_replaced),
		cmocka_unit_test(test_create),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_unsettled),
		cmocka_unit_test(test_pages),
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_file_of_disk),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
