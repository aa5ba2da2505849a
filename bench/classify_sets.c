/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rule sets: files in ClassBench's form where there are some (in MILLRACE_RULE_SETS, else ../shared/rules),
 * else made by statistics like theirs: how long prefixes are, how many networks there are, and how ports
 * are asked for. Smaller sets are every so manieth rule; larger ones have copies in other networks.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "bench/classify.h"

const char *const classify_sets[] = {"acl1", "acl2", "acl3", "acl4", "acl5", "fw1", "fw2", "fw3",
	"fw4", "fw5", "ipc1", "ipc2", "l20", "l50", NULL};

#define REAL_RULES 10000

uint64_t classify_random(uint64_t *state)
{
	uint64_t word = *state += UINT64_C(0x9e3779b97f4a7c15);

	word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
	return word ^ word >> 31;
}

static uint32_t below(uint64_t *state, uint32_t limit)
{
	return (uint32_t)((classify_random(state) >> 32) * limit >> 32);
}

static uint32_t mask_of(unsigned length)
{
	return length == 0 ? 0 : UINT32_MAX << (32 - length);
}

static struct classifier_rule rule_of(
	uint32_t src, unsigned src_length, uint32_t dst, unsigned dst_length)
{
	struct classifier_rule rule = classifier_rule_any(0);

	rule.value.version = 4;
	rule.mask.version = UINT8_MAX;
	rule.mask.src[0] = mask_of(src_length);
	rule.mask.dst[0] = mask_of(dst_length);
	rule.value.src[0] = src & rule.mask.src[0];
	rule.value.dst[0] = dst & rule.mask.dst[0];
	return rule;
}

/* Files. */

static bool parse_line(const char *line, struct classifier_rule *rule)
{
	unsigned src[5], dst[5], ports[4], proto, proto_mask;

	if (sscanf(line, "@%u.%u.%u.%u/%u %u.%u.%u.%u/%u %u : %u %u : %u %x/%x", &src[0], &src[1],
		    &src[2], &src[3], &src[4], &dst[0], &dst[1], &dst[2], &dst[3], &dst[4],
		    &ports[0], &ports[1], &ports[2], &ports[3], &proto, &proto_mask) != 16 ||
		src[4] > 32 || dst[4] > 32)
		return false;
	*rule = rule_of(src[0] << 24 | src[1] << 16 | src[2] << 8 | src[3], src[4],
		dst[0] << 24 | dst[1] << 16 | dst[2] << 8 | dst[3], dst[4]);
	rule->src_port = (struct classifier_range){(uint16_t)ports[0], (uint16_t)ports[1]};
	rule->dst_port = (struct classifier_range){(uint16_t)ports[2], (uint16_t)ports[3]};
	rule->value.proto = (uint8_t)(proto & proto_mask);
	rule->mask.proto = (uint8_t)proto_mask;
	return true;
}

static void read_file(struct classify_set *set, const char *name, uint32_t room)
{
	const char *directory = getenv("MILLRACE_RULE_SETS");
	char path[512], line[512];

	snprintf(path, sizeof(path), "%s/%s_10k", directory ? directory : "../shared/rules", name);
	FILE *file = fopen(path, "re");

	if (!file)
		return;
	while (set->n < room && fgets(line, sizeof(line), file))
		set->n += parse_line(line, &set->rules[set->n]);
	(void)fclose(file);
	set->is_real = set->n > 0;
}

/* The generator. */

/* Shares of a hundred: how long prefixes of sources and destinations are, and kinds of ports. */
enum shape { OPEN, SHORT, MIDDLE, HOST, N_SHAPES };
enum ports { ANY_ANY, ANY_ONE, ANY_RANGE, ONE_ANY, ONE_ONE, RANGE_ONE, RANGE_RANGE, N_PORTS };

static const struct profile {
	const char *name;
	uint8_t src[N_SHAPES], dst[N_SHAPES];
	uint8_t ports[N_PORTS];
	uint8_t no_proto;
	uint16_t n_src, n_dst; /* networks */
	bool one_open;	       /* sources are open where destinations are not, and the other way */
} profiles[] = {
	{"acl1", {1, 1, 15, 83}, {3, 7, 14, 76}, {28, 60, 12}, 8, 800, 60, false},
	{"acl2", {14, 29, 27, 30}, {9, 30, 24, 37}, {69, 24, 7}, 46, 900, 900, false},
	{"acl3", {10, 14, 56, 20}, {14, 2, 20, 64}, {8, 70, 22}, 4, 90, 100, false},
	{"acl4", {8, 17, 52, 23}, {12, 4, 17, 67}, {8, 71, 21}, 4, 90, 170, false},
	{"acl5", {0, 21, 15, 64}, {0, 0, 36, 64}, {19, 71, 10}, 0, 60, 190, false},
	{"fw1", {64, 2, 9, 25}, {29, 0, 4, 67}, {18, 58, 0, 11, 3, 4, 6}, 1, 300, 600, true},
	{"fw2", {13, 13, 51, 23}, {68, 0, 14, 18}, {36, 0, 0, 48, 0, 16, 0}, 25, 800, 300, true},
	{"fw3", {71, 2, 6, 21}, {29, 0, 3, 68}, {10, 68, 0, 15, 1, 2, 4}, 1, 250, 600, true},
	{"fw4", {57, 1, 7, 35}, {24, 0, 40, 36}, {9, 1, 0, 1, 26, 43, 20}, 6, 350, 650, true},
	{"fw5", {61, 2, 11, 26}, {39, 0, 11, 50}, {18, 55, 1, 16, 5, 2, 3}, 2, 300, 500, true},
	{"ipc1", {13, 9, 50, 28}, {9, 10, 40, 41}, {37, 36, 8, 17, 1, 1, 0}, 33, 150, 280, false},
	{"ipc2", {52, 0, 12, 36}, {11, 0, 0, 89}, {63, 11, 0, 10, 16, 0, 0}, 27, 450, 850, false},
};

static unsigned draw(uint64_t *state, const uint8_t *shares, unsigned n)
{
	int left = (int)below(state, 100);

	for (unsigned i = 0; i + 1 < n; i++)
		if ((left -= shares[i]) < 0)
			return i;
	return n - 1;
}

static unsigned length_of(uint64_t *state, enum shape shape)
{
	static const uint8_t from[N_SHAPES] = {0, 8, 20, 30}, n[N_SHAPES] = {2, 11, 9, 3};

	return from[shape] + below(state, n[shape]);
}

/* An address in one of so many networks, each with few hosts that many rules name. */
static uint32_t address_of(uint64_t *state, unsigned side, unsigned n_networks)
{
	uint64_t network = (uint64_t)side << 32 | below(state, n_networks);
	uint32_t hosts = below(state, 16) * 37;

	return (uint32_t)classify_random(&network) << 10 | hosts;
}

static struct classifier_range range_of(uint64_t *state, unsigned kind)
{
	static const uint16_t usual[] = {20, 21, 22, 23, 25, 53, 80, 110, 123, 143, 161, 389, 443,
		445, 993, 1433, 1521, 1723, 3306, 3389, 5060, 5432, 5631, 6000, 6789, 8080, 8443};
	static const struct classifier_range ranges[] = {{0, 1023}, {1024, UINT16_MAX}, {135, 139},
		{5190, 5193}, {6000, 6063}, {1710, 1718}, {2300, 2400}, {0, 2047}};
	uint16_t port = usual[below(state, RTE_DIM(usual))];

	if (kind == 0)
		return (struct classifier_range){0, UINT16_MAX};
	return kind == 1 ? (struct classifier_range){port, port}
			 : ranges[below(state, RTE_DIM(ranges))];
}

static struct classifier_rule made_rule(uint64_t *state, const struct profile *profile)
{
	static const uint8_t kinds[N_PORTS][2] = {
		{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {2, 1}, {2, 2}};
	enum shape src = draw(state, profile->src, N_SHAPES);
	enum shape dst = draw(state, profile->dst, N_SHAPES);

	if (profile->one_open && src != OPEN && dst != OPEN && below(state, 4) != 0)
		*(below(state, 2) ? &src : &dst) = OPEN;
	struct classifier_rule rule = rule_of(address_of(state, 1, profile->n_src),
		length_of(state, src), address_of(state, 2, profile->n_dst), length_of(state, dst));
	unsigned ports = draw(state, profile->ports, N_PORTS);

	rule.src_port = range_of(state, kinds[ports][0]);
	rule.dst_port = range_of(state, kinds[ports][1]);
	if (below(state, 100) >= profile->no_proto) {
		rule.value.proto = below(state, 4) == 0 ? 17 : 6;
		rule.mask.proto = UINT8_MAX;
	}
	return rule;
}

/* Narrower rules come first, as in the published sets. */
static int by_width(const void *a, const void *b)
{
	const struct classifier_rule *one = a, *other = b;
	int left = __builtin_popcount(one->mask.src[0]) + __builtin_popcount(one->mask.dst[0]);
	int right = __builtin_popcount(other->mask.src[0]) + __builtin_popcount(other->mask.dst[0]);

	return left != right ? right - left : (one->id > other->id) - (one->id < other->id);
}

static void make_rules(struct classify_set *set, const struct profile *profile, uint32_t n)
{
	uint64_t state = profile->n_src;

	for (set->n = 0; set->n < n; set->n++) {
		set->rules[set->n] = made_rule(&state, profile);
		set->rules[set->n].id = set->n;
	}
	qsort(set->rules, set->n, sizeof(*set->rules), by_width);
}

/* Sizes. */

static void thin_out(struct classify_set *set, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		set->rules[i] = set->rules[(uint64_t)i * set->n / n];
	set->n = n;
}

/* Copies of a rule in other networks, as far as it asks for one. */
static uint32_t copies_of(
	const struct classifier_rule *rule, uint32_t n, struct classifier_rule *copies)
{
	uint32_t made = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t state = i;
		uint64_t other = i == 0 ? 0 : classify_random(&state);
		struct classifier_rule copy = *rule;

		copy.value.src[0] =
			(rule->value.src[0] ^ ((uint32_t)other & 0xffff0000)) & rule->mask.src[0];
		copy.value.dst[0] = (rule->value.dst[0] ^ ((uint32_t)(other >> 32) & 0xffff0000)) &
				    rule->mask.dst[0];
		if (i > 0 && copy.value.src[0] == rule->value.src[0] &&
			copy.value.dst[0] == rule->value.dst[0])
			continue;
		copies[made++] = copy;
	}
	return made;
}

static int grow(struct classify_set *set, uint32_t n)
{
	uint32_t times = n / set->n, made = 0;
	struct classifier_rule *rules = calloc((size_t)set->n * times, sizeof(*rules));

	if (!rules)
		return -ENOMEM;
	for (uint32_t i = 0; i < set->n; i++)
		made += copies_of(&set->rules[i], times, rules + made);
	free(set->rules);
	set->rules = rules;
	set->n = made;
	return 0;
}

static void number_rules(struct classify_set *set)
{
	for (uint32_t i = 0; i < set->n; i++) {
		set->rules[i].id = i;
		set->rules[i].priority = i;
	}
}

int classify_set_masks(struct classify_set *set, unsigned n_masks, uint32_t n)
{
	uint64_t state = n_masks;

	*set = (struct classify_set){.rules = calloc(n, sizeof(*set->rules)), .n = n};
	uint8_t(*lengths)[2] = calloc(n_masks, sizeof(*lengths));

	if (!set->rules || !lengths) {
		free(lengths);
		return -ENOMEM;
	}
	/* none so short that a few rules match all there is */
	for (unsigned i = 0; i < n_masks; i++) {
		lengths[i][0] = (uint8_t)(n_masks > 100 ? i % 33 : 8 + below(&state, 25));
		lengths[i][1] = (uint8_t)(n_masks > 100 ? i / 33 % 33 : 8 + below(&state, 25));
	}
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *length = lengths[below(&state, n_masks)];
		uint64_t word = classify_random(&state);

		set->rules[i] =
			rule_of((uint32_t)word, length[0], (uint32_t)(word >> 32), length[1]);
		set->rules[i].id = i;
	}
	free(lengths);
	qsort(set->rules, set->n, sizeof(*set->rules), by_width);
	number_rules(set);
	return 0;
}

int classify_set_make(struct classify_set *set, const char *name, uint32_t n)
{
	const struct profile *profile = NULL;
	int ret = 0;

	*set = (struct classify_set){0};
	if (strcmp(name, "l20") == 0 || strcmp(name, "l50") == 0)
		return classify_set_masks(set, name[1] == '2' ? 20 : 50, n);
	for (unsigned i = 0; i < RTE_DIM(profiles); i++)
		if (strcmp(profiles[i].name, name) == 0)
			profile = &profiles[i];
	if (!profile)
		return -ENOENT;
	set->rules = calloc(REAL_RULES, sizeof(*set->rules));
	if (!set->rules)
		return -ENOMEM;
	read_file(set, name, REAL_RULES);
	if (!set->is_real)
		make_rules(set, profile, REAL_RULES);
	if (n < set->n)
		thin_out(set, n);
	else if (n >= 2 * set->n)
		ret = grow(set, n);
	number_rules(set);
	return ret;
}

void classify_set_free(struct classify_set *set)
{
	free(set->rules);
	*set = (struct classify_set){0};
}

/* Headers. */

void classify_headers(const struct classify_set *set, uint64_t *state,
	struct classifier_header *headers, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct classifier_rule *rule = &set->rules[below(state, set->n)];
		uint64_t addresses = classify_random(state), rest = classify_random(state);
		uint32_t src_width = rule->src_port.last - rule->src_port.first + 1u;
		uint32_t dst_width = rule->dst_port.last - rule->dst_port.first + 1u;

		headers[i] = (struct classifier_header){
			.src = {rule->value.src[0] | ((uint32_t)addresses & ~rule->mask.src[0])},
			.dst = {rule->value.dst[0] |
				((uint32_t)(addresses >> 32) & ~rule->mask.dst[0])},
			.version = 4,
			.proto = rule->value.proto,
			.src_port = (uint16_t)(rule->src_port.first +
					       (uint16_t)rest * src_width / 65536),
			.dst_port = (uint16_t)(rule->dst_port.first +
					       (uint16_t)(rest >> 16) * dst_width / 65536),
		};
		if (rule->mask.proto == 0)
			headers[i].proto = rest >> 32 & 1 ? 6 : 17;
	}
}
