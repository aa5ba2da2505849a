/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/admission_rivals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define IDLE_US 5000000
#define LOOK_US 50000

int clairvoyant_init(struct clairvoyant *clairvoyant, uint32_t n_flows)
{
	*clairvoyant = (struct clairvoyant){
		.packets = calloc(n_flows, sizeof(uint32_t)),
		.known = calloc(n_flows, sizeof(bool)),
		.seen = calloc(n_flows, sizeof(uint32_t)),
		.sorted = calloc(n_flows, sizeof(uint32_t)),
	};
	return clairvoyant->packets != NULL && clairvoyant->known != NULL &&
			       clairvoyant->seen != NULL && clairvoyant->sorted != NULL
		       ? 0
		       : -ENOMEM;
}

void clairvoyant_fini(struct clairvoyant *clairvoyant)
{
	free(clairvoyant->packets);
	free(clairvoyant->known);
	free(clairvoyant->seen);
	free(clairvoyant->sorted);
}

void clairvoyant_packet(struct clairvoyant *clairvoyant, uint32_t flow)
{
	if (clairvoyant->packets[flow]++ == 0)
		clairvoyant->seen[clairvoyant->n_seen++] = flow;
}

static int falling(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x < y) - (x > y);
}

void clairvoyant_end(
	struct clairvoyant *clairvoyant, const uint32_t *entries, unsigned n, uint64_t *held)
{
	uint32_t n_known = 0;

	for (uint32_t i = 0; i < clairvoyant->n_seen; i++) {
		uint32_t flow = clairvoyant->seen[i];

		if (clairvoyant->known[flow])
			clairvoyant->sorted[n_known++] = clairvoyant->packets[flow];
		clairvoyant->known[flow] = true;
		clairvoyant->packets[flow] = 0;
	}
	clairvoyant->n_seen = 0;
	qsort(clairvoyant->sorted, n_known, sizeof(clairvoyant->sorted[0]), falling);
	for (unsigned i = 0; i < n; i++) {
		held[i] = 0;
		for (uint32_t j = 0; j < n_known && j < entries[i]; j++)
			held[i] += clairvoyant->sorted[j];
	}
}

enum { OUT, ON_ITS_WAY, IN, LEAVING };

int first_come_init(
	struct first_come *first_come, uint32_t n_flows, uint32_t entries, uint64_t rule_us)
{
	*first_come = (struct first_come){
		.entries = entries,
		.rule_us = rule_us,
		.state = calloc(n_flows, sizeof(uint8_t)),
		.last_us = calloc(n_flows, sizeof(uint64_t)),
		.list = calloc(entries, sizeof(uint32_t)),
	};
	return first_come->state != NULL && first_come->last_us != NULL && first_come->list != NULL
		       ? 0
		       : -ENOMEM;
}

void first_come_fini(struct first_come *first_come)
{
	free(first_come->state);
	free(first_come->last_us);
	free(first_come->list);
}

/* When the NIC has done another rule. */
static uint64_t done_us(struct first_come *first_come, uint64_t now_us)
{
	if (first_come->busy_us < now_us)
		first_come->busy_us = now_us;
	return first_come->busy_us += first_come->rule_us;
}

static void look(struct first_come *first_come, uint64_t now_us)
{
	for (uint32_t i = 0; i < first_come->n_list;) {
		uint32_t flow = first_come->list[i];

		if (first_come->state[flow] == ON_ITS_WAY && first_come->last_us[flow] <= now_us)
			first_come->state[flow] = IN;
		if (first_come->state[flow] == IN && now_us > first_come->last_us[flow] &&
			now_us - first_come->last_us[flow] > IDLE_US) {
			first_come->state[flow] = LEAVING;
			first_come->last_us[flow] = done_us(first_come, now_us);
		}
		if (first_come->state[flow] == LEAVING && first_come->last_us[flow] <= now_us) {
			first_come->state[flow] = OUT;
			first_come->list[i] = first_come->list[--first_come->n_list];
		} else {
			i++;
		}
	}
	first_come->looked_us = now_us;
}

bool first_come_packet(struct first_come *first_come, uint32_t flow, bool is_first, uint64_t now_us)
{
	uint8_t *state = &first_come->state[flow];

	if (now_us - first_come->looked_us >= LOOK_US)
		look(first_come, now_us);
	if (*state == ON_ITS_WAY && first_come->last_us[flow] <= now_us)
		*state = IN;
	if (*state == IN) {
		first_come->last_us[flow] = now_us;
		return true;
	}
	if (is_first && first_come->n_list < first_come->entries) {
		*state = ON_ITS_WAY;
		first_come->last_us[flow] = done_us(first_come, now_us);
		first_come->list[first_come->n_list++] = flow;
	}
	return false;
}
