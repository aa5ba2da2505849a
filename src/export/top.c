/* SPDX-License-Identifier: BSD-3-Clause */
#include "export/top.h"

#include <stdlib.h>
#include <string.h>

/*
 * A heap by position in an array: the children of i are 2i+1 and 2i+2, and none ranks below its
 * parent. So the lowest of those kept is the first, at hand to be compared with and replaced.
 */
struct top {
	unsigned count;
	unsigned n;
	struct flow_report *reports;
};

uint64_t top_bytes(const struct flow_report *report)
{
	return flow_bytes(&report->record, 0) + flow_bytes(&report->record, 1);
}

/* Negative when `a` ranks above `b`: a total order, so that the outcome is always the same. */
static int rank(const void *a_, const void *b_)
{
	const struct flow_report *a = a_, *b = b_;
	uint64_t a_bytes = top_bytes(a), b_bytes = top_bytes(b);
	uint64_t a_start = flow_report_start_us(a);
	uint64_t b_start = flow_report_start_us(b);

	if (a_bytes != b_bytes)
		return a_bytes > b_bytes ? -1 : 1;
	if (a_start != b_start)
		return a_start < b_start ? -1 : 1;
	return memcmp(&a->record.key, &b->record.key, sizeof(a->record.key));
}

struct top *top_create(unsigned count)
{
	struct top *top = calloc(1, sizeof(*top));

	if (!top)
		return NULL;
	top->count = count > 0 ? count : 1;
	top->reports = aligned_alloc(
		_Alignof(struct flow_report), top->count * sizeof(struct flow_report));
	if (!top->reports) {
		free(top);
		return NULL;
	}
	return top;
}

static void swap(struct flow_report *a, struct flow_report *b)
{
	struct flow_report kept = *a;

	*a = *b;
	*b = kept;
}

static void sift_up(struct top *top, unsigned i)
{
	while (i > 0 && rank(&top->reports[i], &top->reports[(i - 1) / 2]) > 0) {
		swap(&top->reports[i], &top->reports[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
}

static void sift_down(struct top *top, unsigned i)
{
	for (unsigned child; (child = 2 * i + 1) < top->n; i = child) {
		if (child + 1 < top->n && rank(&top->reports[child + 1], &top->reports[child]) > 0)
			child++;
		if (rank(&top->reports[child], &top->reports[i]) <= 0)
			return;
		swap(&top->reports[child], &top->reports[i]);
	}
}

void top_add(struct top *top, const struct flow_report *report)
{
	if (top->n < top->count) {
		top->reports[top->n] = *report;
		sift_up(top, top->n++);
	} else if (rank(report, &top->reports[0]) < 0) {
		top->reports[0] = *report;
		sift_down(top, 0);
	}
}

const struct flow_report *top_sorted(struct top *top, unsigned *n)
{
	qsort(top->reports, top->n, sizeof(top->reports[0]), rank);
	*n = top->n;
	return top->reports;
}

void top_destroy(struct top *top)
{
	if (!top)
		return;
	free(top->reports);
	free(top);
}
