/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "drivers/flowsim/match/pattern.h"
#include "drivers/flowsim/match/pattern_items.h"

static int fail_at(struct sim_fault_at *fault, const struct rte_flow_item *item,
	enum rte_flow_error_type type, const char *message)
{
	fault->cause = item;
	fault->type = type;
	fault->message = message;
	return -EINVAL;
}

/* A rule's next item: it has to be the template's `n`th. NULL: it is not. */
static const struct rte_flow_item *next_item(const struct sim_pattern_template *template,
	const struct rte_flow_item items[], unsigned *at, unsigned n)
{
	unsigned type = n < template->n_items ? template->items[n].type : RTE_FLOW_ITEM_TYPE_END;

	for (; *at < SIM_MAX_ITEMS; (*at)++) {
		if (items[*at].type == RTE_FLOW_ITEM_TYPE_VOID)
			continue;
		return items[*at].type == type ? &items[(*at)++] : NULL;
	}
	return NULL;
}

int sim_pattern_template_fill(const struct sim_pattern_template *template, uint64_t values[],
	uint16_t *port, const struct rte_flow_item items[], struct sim_fault_at *fault)
{
	const struct sim_pattern *pattern = &template->pattern;
	uint64_t words[SIM_VIEW_WORDS];
	uint8_t *bytes = (uint8_t *)words;
	unsigned at = 0;

	sim_clear(words, sizeof(words));
	*port = SIM_NO_PORT;
	for (unsigned n = 0; n <= template->n_items; n++) {
		const struct rte_flow_item *item =
			items != NULL ? next_item(template, items, &at, n) : NULL;
		const struct sim_item_form *form;

		if (item == NULL)
			return fail_at(fault,
				items != NULL && at < SIM_MAX_ITEMS ? &items[at] : items,
				RTE_FLOW_ERROR_TYPE_ITEM, "other items than in the template");
		if (n == template->n_items)
			break;
		if (!template->items[n].compared)
			continue;
		if (item->spec == NULL)
			return fail_at(fault, item, RTE_FLOW_ERROR_TYPE_ITEM_SPEC,
				"the template compares this, and there is no spec");
		form = sim_item_form(item->type);
		if (form->rank == SIM_ITEM_PORT) {
			uint32_t id = sim_item_port(form, item->spec);

			if (id >= SIM_NO_PORT)
				return fail_at(fault, item, RTE_FLOW_ERROR_TYPE_ITEM_SPEC,
					"no port has such a number");
			*port = (uint16_t)id;
			continue;
		}
		memcpy(bytes + template->items[n].at, item->spec, form->header);
		if (form->bits != NULL)
			sim_item_put_bits(bytes + template->items[n].bits_at,
				form->bits(item->spec) << template->items[n].bits_shift);
	}
	for (unsigned i = 0; i < pattern->n_words; i++)
		values[i] = words[pattern->words[i]] & pattern->mask[pattern->words[i]];
	return 0;
}

int sim_pattern_parse_template(struct sim_pattern *pattern, const struct rte_flow_item template[],
	const struct rte_flow_item items[], bool relaxed, struct sim_fault_at *fault)
{
	struct sim_pattern_template read;
	uint64_t values[SIM_VIEW_WORDS] = {0};
	uint16_t port = SIM_NO_PORT;
	int ret = sim_pattern_template_read(&read, template, relaxed, fault);

	if (ret == 0)
		ret = sim_pattern_template_fill(&read, values, &port, items, fault);
	if (ret < 0)
		return ret;
	*pattern = read.pattern;
	pattern->port = port;
	for (unsigned i = 0; i < pattern->n_words; i++)
		pattern->value[pattern->words[i]] = values[i];
	return 0;
}
