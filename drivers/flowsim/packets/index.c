/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/packets/index.h"

#include <stdlib.h>
#include <string.h>

#include <rte_prefetch.h>

#include "base/mapping.h"
#include "drivers/flowsim/packets/resolve.h"
#include "drivers/flowsim/packets/source.h"

#define NONE UINT32_MAX

/* Streams in lists by the hash of their masked words. */
struct sim_index {
	uint32_t n_streams;
	uint32_t mask;	 /* number of heads - 1 */
	uint32_t *heads; /* a stream, or NONE */
	uint32_t *next;	 /* by stream */
};

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 32;
}

/* The streams are ours or the capture's and the index is never looked into while packets come. */
static uint32_t hash_values(const struct sim_class *sort, const uint64_t *values)
{
	uint64_t hash = 1;

	for (unsigned i = 0; i < sort->shape.n_words; i++)
		hash = mix(hash, values[i]);
	return (uint32_t)(hash >> 20);
}

static void values_of(
	const struct sim_class *sort, const struct sim_view *view, uint64_t values[SIM_VIEW_WORDS])
{
	const uint64_t *words = (const uint64_t *)view;

	for (unsigned i = 0; i < sort->shape.n_words; i++)
		values[i] = words[sort->shape.words[i]] & sort->shape.mask[sort->shape.words[i]];
}

static void fill(
	struct sim_index *index, const struct sim_source *source, const struct sim_class *sort)
{
	uint64_t values[SIM_VIEW_WORDS];
	struct sim_view view;

	memset(index->heads, 0xff, sizeof(*index->heads) * ((size_t)index->mask + 1));
	/* backwards, so that the lists run forwards */
	for (uint32_t stream = source->n_streams; stream-- > 0;) {
		source->view(source, stream, &view);
		if (!sim_class_may_match(sort, &view)) {
			index->next[stream] = NONE;
			continue;
		}
		values_of(sort, &view, values);

		uint32_t *head = &index->heads[hash_values(sort, values) & index->mask];

		index->next[stream] = *head;
		*head = stream;
	}
}

struct sim_index *sim_index_create(const struct sim_source *source, const struct sim_class *sort)
{
	struct sim_index *index = calloc(1, sizeof(*index));
	uint32_t n = source->n_streams, n_heads = 1;

	if (index == NULL)
		return NULL;
	/* lists of one, most of them: a second stream is memory that nobody has fetched ahead */
	while (n_heads / 2 < n && n_heads < 1u << 31)
		n_heads *= 2;
	index->n_streams = n;
	index->mask = n_heads - 1;
	index->heads = mapping_create(n_heads * sizeof(*index->heads), MAPPING_HUGE);
	index->next = mapping_create(n * sizeof(*index->next), MAPPING_HUGE);
	if (index->heads == NULL || index->next == NULL) {
		sim_index_destroy(index);
		return NULL;
	}
	fill(index, source, sort);
	return index;
}

void sim_index_destroy(struct sim_index *index)
{
	if (index == NULL)
		return;
	mapping_destroy(index->heads, sizeof(*index->heads) * ((size_t)index->mask + 1));
	mapping_destroy(index->next, index->n_streams * sizeof(*index->next));
	free(index);
}

void sim_index_prefetch(
	const struct sim_index *index, const struct sim_class *sort, const uint64_t values[])
{
	rte_prefetch0(&index->heads[hash_values(sort, values) & index->mask]);
}

uint32_t sim_index_first(
	const struct sim_index *index, const struct sim_class *sort, const uint64_t values[])
{
	uint32_t first = index->heads[hash_values(sort, values) & index->mask];

	if (first != NONE)
		rte_prefetch0(&index->next[first]);
	return first;
}

static uint32_t step(const struct sim_index *index, const struct sim_source *source,
	const struct rte_flow *rule, uint32_t at)
{
	if (index == NULL)
		return at == SIM_INDEX_START ? 0 : at + 1 < source->n_streams ? at + 1 : NONE;
	if (at == SIM_INDEX_START)
		return index->heads[hash_values(rule->sort, rule->values) & index->mask];
	return index->next[at];
}

bool sim_index_next(const struct sim_index *index, const struct sim_source *source,
	const struct rte_flow *rule, uint32_t *at)
{
	struct sim_view view;

	for (uint32_t stream = step(index, source, rule, *at); stream != NONE;
		stream = step(index, source, rule, stream)) {
		source->view(source, stream, &view);
		view.port = rule->ingress;
		if (sim_rule_match(rule, &view)) {
			*at = stream;
			return true;
		}
	}
	return false;
}
