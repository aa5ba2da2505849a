/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "offload/queue.h"
#include "traffic/draw.h"

static uint32_t below(struct draw *draw, uint64_t n)
{
	return (uint32_t)(draw_next(draw) % n);
}

/* The same, told plainly: entries in the order in which they came. */
struct model {
	unsigned n;
	struct queue_entry entry[QUEUE_SIZE];
};

static struct queue_entry model_drop(struct model *model, unsigned i)
{
	struct queue_entry entry = model->entry[i];

	memmove(&model->entry[i], &model->entry[i + 1], (--model->n - i) * sizeof(model->entry[0]));
	return entry;
}

static unsigned model_busiest(const struct model *model)
{
	unsigned best = 0;

	for (unsigned i = 1; i < model->n; i++) {
		if (model->entry[i].rate > model->entry[best].rate)
			best = i;
	}
	return best;
}

static unsigned model_least(const struct model *model)
{
	unsigned least = 0;

	for (unsigned i = 1; i < model->n; i++) {
		if (model->entry[i].rate <= model->entry[least].rate)
			least = i;
	}
	return least;
}

static void same(struct queue_entry a, struct queue_entry b)
{
	assert_int_equal(a.rate, b.rate);
	assert_int_equal(a.position, b.position);
	assert_int_equal(a.tag, b.tag);
	assert_int_equal(a.from, b.from);
}

static void put(struct queue *queue, struct model *model, struct queue_entry entry)
{
	struct queue_entry displaced;
	const uint32_t needs = queue_needs(queue);
	enum queue_answer answer = queue_put(queue, entry, &displaced);

	assert_int_equal(answer != QUEUE_FULL, entry.rate >= needs);
	assert_int_equal(answer == QUEUE_TAKEN, needs == 0);

	if (model->n < QUEUE_SIZE) {
		assert_int_equal(answer, QUEUE_TAKEN);
	} else if (model->entry[model_least(model)].rate >= entry.rate ||
		   model->entry[model_least(model)].rate > entry.rate / 2) {
		assert_int_equal(answer, QUEUE_FULL);
		return;
	} else {
		assert_int_equal(answer, QUEUE_TOOK_PLACE);
		same(displaced, model_drop(model, model_least(model)));
	}
	model->entry[model->n++] = entry;
}

/* Of several that are the same it is the last. */
static void move_up(struct queue *queue, struct model *model, struct queue_entry entry)
{
	unsigned same = model->n;

	queue_raise(queue, &entry);
	for (unsigned i = 0; i < model->n; i++) {
		const struct queue_entry *of = &model->entry[i];

		if (of->position == entry.position && of->tag == entry.tag &&
			of->from == entry.from &&
			(same == model->n || of->rate <= model->entry[same].rate))
			same = i;
	}
	if (same == model->n || model->entry[same].rate >= entry.rate)
		return;
	model_drop(model, same);
	model->entry[model->n++] = entry;
}

static void take(struct queue *queue, struct model *model)
{
	struct queue_entry entry;

	assert_int_equal(queue_take(queue, &entry), model->n > 0);
	if (model->n > 0)
		same(entry, model_drop(model, model_busiest(model)));
}

/* Few rates and positions, so that there are equals; phases in which it fills, and empties. */
static void it_does_what_the_model_does(void **state)
{
	struct queue queue = {0};
	struct model model = {0};
	struct draw draw = {.seed = 3};
	unsigned full = 0, empty = 0;

	(void)state;
	for (unsigned i = 0; i < 400000; i++) {
		unsigned what = below(&draw, 20), fills = i / 2000 % 2 ? 4 : 12;
		const struct queue_entry entry = {
			.rate = below(&draw, i & 4096 ? 40 : 4000),
			.position = below(&draw, 300),
			.tag = below(&draw, 2),
			.from = below(&draw, 2) & 1,
		};

		if (what < fills)
			put(&queue, &model, entry);
		else if (what < 16)
			take(&queue, &model);
		else
			move_up(&queue, &model, entry);
		assert_int_equal(queue.n, model.n);
		full += model.n == QUEUE_SIZE;
		empty += model.n == 0;
	}
	assert_true(full > 1000 && empty > 1000);
	while (model.n > 0)
		take(&queue, &model);
	take(&queue, &model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_does_what_the_model_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
