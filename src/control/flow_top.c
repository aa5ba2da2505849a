/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/flow_top.h"

#include <stdlib.h>
#include <string.h>

/* A heap whose first entry is the lowest of those kept: the next one to be replaced. */
struct flow_top {
	unsigned count, n;
	struct flow_top_entry *entries;
};

/* Negative when `a` ranks above `b`. Keys are unlike, so no two rank the same. */
static int rank(const void *a_, const void *b_)
{
	const struct flow_top_entry *a = a_, *b = b_;

	if (a->value != b->value)
		return a->value > b->value ? -1 : 1;
	if (a->packets != b->packets)
		return a->packets > b->packets ? -1 : 1;
	return memcmp(&a->record.key, &b->record.key, sizeof(a->record.key));
}

struct flow_top *flow_top_create(unsigned count)
{
	struct flow_top *top = calloc(1, sizeof(*top));

	if (!top)
		return NULL;
	top->count = count > 0 ? count : 1;
	top->entries = aligned_alloc(
		_Alignof(struct flow_top_entry), top->count * sizeof(top->entries[0]));
	if (!top->entries) {
		free(top);
		return NULL;
	}
	return top;
}

static void swap(struct flow_top *top, unsigned a, unsigned b)
{
	struct flow_top_entry kept = top->entries[a];

	top->entries[a] = top->entries[b];
	top->entries[b] = kept;
}

static void sift_up(struct flow_top *top, unsigned i)
{
	for (; i > 0 && rank(&top->entries[i], &top->entries[(i - 1) / 2]) > 0; i = (i - 1) / 2)
		swap(top, i, (i - 1) / 2);
}

static void sift_down(struct flow_top *top)
{
	unsigned i = 0;

	for (unsigned child; (child = 2 * i + 1) < top->n; i = child) {
		if (child + 1 < top->n && rank(&top->entries[child + 1], &top->entries[child]) > 0)
			child++;
		if (rank(&top->entries[child], &top->entries[i]) <= 0)
			return;
		swap(top, child, i);
	}
}

void flow_top_add(struct flow_top *top, const struct flow_top_entry *flow)
{
	struct flow_top_entry entry = *flow;

	entry.packets = flow_packets(&flow->record, 0) + flow_packets(&flow->record, 1);

	if (top->n < top->count) {
		top->entries[top->n] = entry;
		sift_up(top, top->n++);
	} else if (rank(&entry, &top->entries[0]) < 0) {
		top->entries[0] = entry;
		sift_down(top);
	}
}

const struct flow_top_entry *flow_top_sorted(struct flow_top *top, unsigned *n)
{
	qsort(top->entries, top->n, sizeof(top->entries[0]), rank);
	*n = top->n;
	return top->entries;
}

void flow_top_destroy(struct flow_top *top)
{
	if (!top)
		return;
	free(top->entries);
	free(top);
}
