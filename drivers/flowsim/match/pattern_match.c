/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/match/pattern.h"

static bool in_range(const struct sim_range *range, const struct sim_view *view)
{
	const uint8_t *bytes = (const uint8_t *)view + range->at;
	uint64_t value = 0;

	for (unsigned i = 0; i < range->size; i++)
		value = value << 8 | bytes[i];
	value &= range->mask;
	return value >= range->low && value <= range->high;
}

bool sim_pattern_fits(const struct sim_pattern *pattern, const struct sim_view *view)
{
	if ((view->layers & (pattern->layers | pattern->absent)) != pattern->layers)
		return false;
	for (unsigned i = 0; i < pattern->n_ranges; i++)
		if (!in_range(&pattern->ranges[i], view))
			return false;
	return true;
}

bool sim_pattern_match(const struct sim_pattern *pattern, uint16_t own, const struct sim_view *view)
{
	uint16_t port = pattern->port != SIM_NO_PORT ? pattern->port : own;

	if ((view->port != SIM_NO_PORT && view->port != port) || !sim_pattern_fits(pattern, view))
		return false;
	for (unsigned i = 0; i < pattern->n_words; i++) {
		unsigned word = pattern->words[i];

		if ((sim_view_word(view, word) & pattern->mask[word]) != pattern->value[word])
			return false;
	}
	return true;
}
