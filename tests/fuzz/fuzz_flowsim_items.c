/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Any items as the pattern of a rule of the simulated NIC, and any bytes as the frame that it is to match.
 *
 * Input: a byte of options (relaxed template, items without an end), the number of items, then for each
 * its type (a known one by its number below 0x40, else 4 bytes), a byte that says which of spec, last
 * and mask there are, and their bytes; the rest is the frame. Every structure lies in a heap buffer of
 * rte_flow's size for its type, every list in one of its own size. Besides what sanitizers see:
 *
 * - a refusal has a code, a message, and one of the items at fault;
 * - a pattern is well-formed: words rising, values under the mask, ranges the right way round;
 * - with spec and mask for each item, the list is as good as a template and matches the same;
 * - what is seen of a frame makes sense, and is the same when the frame is looked at again;
 * - the table of rules finds a rule exactly when its pattern matches.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "drivers/flowsim/match/table.h"
#include "flowsim_input.h"

#define PORT 2

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_refusal(int ret, const struct list *list, const struct sim_fault_at *fault)
{
	const struct rte_flow_item *cause = fault->cause;

	check(ret == -EINVAL || ret == -ENOTSUP, "code of a refusal");
	check(fault->message != NULL, "message of a refusal");
	check(fault->type >= RTE_FLOW_ERROR_TYPE_ITEM_NUM &&
			fault->type <= RTE_FLOW_ERROR_TYPE_ITEM,
		"type of a refusal");
	check(cause >= list->items && cause < list->items + list->n, "item at fault");
}

static void check_pattern(const struct sim_pattern *pattern)
{
	unsigned word = 0;

	check(pattern->n_ranges <= SIM_MAX_RANGES, "number of ranges");
	for (unsigned i = 0; i < pattern->n_ranges; i++) {
		const struct sim_range *range = &pattern->ranges[i];

		check(range->low < range->high, "range");
		check((range->low & ~range->mask) == 0 && (range->high & ~range->mask) == 0,
			"range under its mask");
		check(range->size >= 1 && range->size <= SIM_MAX_RANGE_BYTES &&
				range->at + range->size <= offsetof(struct sim_view, layers),
			"bytes of a range");
	}
	for (unsigned i = 0; i < SIM_VIEW_WORDS; i++) {
		check((pattern->value[i] & ~pattern->mask[i]) == 0, "value under the mask");
		if (pattern->mask[i] == 0)
			continue;
		check(word < pattern->n_words && pattern->words[word] == i, "words");
		word++;
	}
	check(word == pattern->n_words, "number of words");
	check(pattern->mask[offsetof(struct sim_view, layers) / 8] == 0, "layers in the mask");
}

static bool one_of(uint32_t layers, uint32_t some)
{
	return ((layers & some) & ((layers & some) - 1)) == 0;
}

static void check_layers(uint32_t layers)
{
	const uint32_t l4 = SIM_TCP | SIM_UDP | SIM_SCTP | SIM_ICMP | SIM_ICMP6;
	const uint32_t tunnels = SIM_VXLAN | SIM_GRE | SIM_GENEVE | SIM_GTPU;

	check(one_of(layers, tunnels), "one tunnel");
	check(!(layers & SIM_GRE_KEY) || layers & SIM_GRE, "key of gre");
	check(!(layers & (SIM_VXLAN | SIM_GENEVE | SIM_GTPU)) || layers & SIM_UDP, "udp below");
	check(!(layers & SIM_GRE) || !(layers & l4), "nothing below gre");
	check(layers >> SIM_INNER << SIM_INNER == (layers & tunnels) || layers & tunnels,
		"inner level in a tunnel");
	for (unsigned level = 0; level < 2; level++, layers >>= SIM_INNER) {
		check(!(layers & SIM_VLAN_MORE) || layers & SIM_VLAN, "two tags");
		check(one_of(layers, SIM_IPV4 | SIM_IPV6) && one_of(layers, l4), "one of a kind");
		check(!(layers & l4) || layers & (SIM_IPV4 | SIM_IPV6), "ip below");
		check(!(layers & SIM_ICMP) || layers & SIM_IPV4, "icmp");
		check(!(layers & (SIM_ICMP6 | SIM_IPV6_FRAG)) || layers & SIM_IPV6, "over ipv6");
		check(!(layers & SIM_VLAN) || layers & SIM_ETH, "tag behind ethernet");
	}
}

static void look(struct input *input, struct sim_view *view)
{
	size_t length = input->size;
	uint8_t *frame = take_bytes(input, length);
	struct sim_view again;

	memset(view, 0x5a, sizeof(*view));
	memset(&again, 0xa5, sizeof(again));
	view->port = again.port = PORT;
	sim_view_parse(view, frame, (uint32_t)length);
	sim_view_parse(&again, frame, (uint32_t)length);
	check(memcmp(view, &again, sizeof(again)) == 0, "the same frame again");
	check_layers(view->layers);
	free(frame);
}

/* What the table finds is what matches. */
static void meet(const struct sim_pattern *pattern, const struct sim_view *view)
{
	static struct sim_table *table;
	static struct sim_actions actions = {.fate = SIM_FATE_DROP};
	struct rte_flow *rule = calloc(1, sizeof(*rule) + pattern->n_words * sizeof(uint64_t));
	struct sim_verdict verdict;
	bool matches = sim_pattern_match(pattern, PORT, view);

	if (table == NULL)
		table = sim_table_create(NULL);
	if (rule == NULL || table == NULL)
		abort();
	rule->sort = sim_table_class(table, SIM_INGRESS, 0, pattern);
	rule->ingress = pattern->port != SIM_NO_PORT ? pattern->port : PORT;
	rule->actions = &actions;
	for (unsigned i = 0; i < pattern->n_words; i++)
		rule->values[i] = pattern->value[pattern->words[i]];
	sim_table_insert(table, rule);
	sim_table_match(table, SIM_INGRESS, view, &verdict);
	check(verdict.n == matches, "found in the table");
	check(sim_rule_match(rule, view) == matches, "matches by itself");
	sim_table_remove(table, rule);
	check(sim_table_is_empty(table, SIM_INGRESS), "empty table");
	free(rule);
}

static void check_same(const struct sim_pattern *a, const struct sim_pattern *b)
{
	check(a->layers == b->layers && a->port == b->port && a->items == b->items,
		"layers by template");
	check(a->n_words == b->n_words && memcmp(a->mask, b->mask, sizeof(a->mask)) == 0,
		"masks by template");
	check(memcmp(a->value, b->value, sizeof(a->value)) == 0, "values by template");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {.data = data, .size = size};
	bool relaxed = size > 0 && data[0] & 1;
	struct list list = take_list(&input);
	struct sim_fault_at fault = {0};
	struct sim_pattern pattern, other;
	struct sim_view view;
	int ret, ret2;

	look(&input, &view);
	memset(&pattern, 0xa5, sizeof(pattern));
	ret = sim_pattern_parse(&pattern, list.items, &fault);
	if (ret < 0) {
		check_refusal(ret, &list, &fault);
	} else {
		check_pattern(&pattern);
		meet(&pattern, &view);
	}
	fault = (struct sim_fault_at){0};
	memset(&other, 0x5a, sizeof(other));
	ret2 = sim_pattern_parse_template(&other, list.items, list.items, relaxed, &fault);
	if (ret2 < 0) {
		check_refusal(ret2, &list, &fault);
	} else {
		check_pattern(&other);
		meet(&other, &view);
	}
	if (list.plain && !relaxed && ret == 0) {
		check(ret2 == 0, "as good as a template");
		check_same(&pattern, &other);
	}
	free_list(&list);
	return 0;
}
