/* SPDX-License-Identifier: BSD-3-Clause */
#include "action/programs.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_jhash.h>
#include <rte_random.h>

#include "base/mapping.h"

/* In lists of numbers, where 0 is no member. */
#define NONE 0

struct entry {
	uint32_t references;
	uint64_t token;	    /* without references: the grace period that has to pass */
	uint16_t next_same; /* of the same hash chain */
	/* of the idle numbers, in the order in which they became idle */
	uint16_t previous_idle;
	uint16_t next_idle;
};

struct programs_book {
	struct rte_rcu_qsbr *qsbr;
	uint32_t max;
	uint32_t n_made; /* numbers up to this one have had a program */
	uint32_t n_used; /* with references */
	uint32_t seed;	 /* of the hash: nobody outside can choose programs that collide */
	uint32_t mask;	 /* of the chains */
	uint16_t oldest_idle;
	uint16_t newest_idle;
	uint16_t *chain;      /* by hash: the first number */
	struct entry entry[]; /* by number */
};

static size_t programs_size(uint32_t max)
{
	return (max + 1) * sizeof(struct action_program);
}

struct programs *programs_create(uint32_t max, struct rte_rcu_qsbr *qsbr)
{
	struct programs *programs;
	struct programs_book *book;

	if (max == 0 || max > PROGRAMS_MAX) {
		errno = EINVAL;
		return NULL;
	}
	programs = calloc(1, sizeof(*programs));
	book = calloc(1, sizeof(*book) + (max + 1) * sizeof(book->entry[0]));
	if (programs == NULL || book == NULL)
		goto fail;
	programs->book = book;
	*book = (struct programs_book){
		.qsbr = qsbr,
		.max = max,
		.seed = (uint32_t)rte_rand(),
		.mask = rte_align32pow2(max) - 1,
	};
	book->chain = calloc(book->mask + 1, sizeof(book->chain[0]));
	programs->program = mapping_create(programs_size(max), 0);
	if (book->chain == NULL || programs->program == NULL)
		goto fail;
	programs->program[0].port = ACTION_NO_PORT;
	return programs;
fail:
	if (programs != NULL)
		programs->book = book;
	else
		free(book);
	programs_destroy(programs);
	errno = ENOMEM;
	return NULL;
}

static uint16_t *chain_of(struct programs_book *book, const struct action_program *program)
{
	static_assert(sizeof(*program) % sizeof(uint32_t) == 0, "hashed by words");
	uint32_t hash = rte_jhash_32b(
		(const void *)program, sizeof(*program) / sizeof(uint32_t), book->seed);

	return &book->chain[hash & book->mask];
}

static uint16_t find(const struct programs *programs, const struct action_program *program)
{
	uint16_t number = *chain_of(programs->book, program);

	while (number != NONE && memcmp(&programs->program[number], program, sizeof(*program)) != 0)
		number = programs->book->entry[number].next_same;
	return number;
}

static void chain_remove(struct programs *programs, uint16_t number)
{
	struct programs_book *book = programs->book;
	uint16_t *link = chain_of(book, &programs->program[number]);

	while (*link != number)
		link = &book->entry[*link].next_same;
	*link = book->entry[number].next_same;
}

static void idle_append(struct programs_book *book, uint16_t number)
{
	struct entry *entry = &book->entry[number];

	entry->next_idle = NONE;
	entry->previous_idle = book->newest_idle;
	if (book->newest_idle != NONE)
		book->entry[book->newest_idle].next_idle = number;
	else
		book->oldest_idle = number;
	book->newest_idle = number;
}

static void idle_remove(struct programs_book *book, uint16_t number)
{
	const struct entry *entry = &book->entry[number];

	if (entry->previous_idle != NONE)
		book->entry[entry->previous_idle].next_idle = entry->next_idle;
	else
		book->oldest_idle = entry->next_idle;
	if (entry->next_idle != NONE)
		book->entry[entry->next_idle].previous_idle = entry->previous_idle;
	else
		book->newest_idle = entry->previous_idle;
}

/* A number that no program has, or none of which a worker could know, else NONE. */
static uint16_t take(struct programs *programs)
{
	struct programs_book *book = programs->book;
	uint16_t number = book->oldest_idle;

	if (book->n_made < book->max)
		return (uint16_t)++book->n_made;
	if (number == NONE || rte_rcu_qsbr_check(book->qsbr, book->entry[number].token, false) != 1)
		return NONE;
	idle_remove(book, number);
	chain_remove(programs, number);
	return number;
}

static int no_number(const struct programs_book *book, struct error *error)
{
	if (book->oldest_idle != NONE)
		return error_set(error, -EAGAIN,
			"programs: %u of %u are in use, and workers may still run the others; "
			"try again",
			book->n_used, book->max);
	return error_set(error, -ENOSPC, "programs: all %u are in use", book->max);
}

int programs_intern(struct programs *programs, const struct action_program *program,
	uint16_t *number, struct error *error)
{
	struct programs_book *book = programs->book;
	uint16_t found;

	if (action_program_is_plain(program)) {
		*number = 0;
		return 0;
	}
	if (program->does & ACTION_DOES_REJECT) {
		*number = (uint16_t)(PROGRAMS_REJECT + program->reject);
		return 0;
	}
	found = find(programs, program);
	if (found == NONE) {
		uint16_t *chain = chain_of(book, program);

		found = take(programs);
		if (found == NONE)
			return no_number(book, error);
		memcpy(&programs->program[found], program, sizeof(*program));
		book->entry[found].next_same = *chain;
		*chain = found;
	} else if (book->entry[found].references == 0) {
		idle_remove(book, found);
	}
	if (book->entry[found].references++ == 0)
		book->n_used++;
	*number = found;
	return 0;
}

int programs_make_drop(struct programs *programs)
{
	const struct action drop = {.kind = ACTION_DROP};
	struct action_program program;
	struct error error;
	uint16_t number = 0;
	int ret = action_program_compile(&program, &drop, 1, &error);

	if (ret == 0)
		ret = programs_intern(programs, &program, &number, &error);
	return ret == 0 && number != PROGRAMS_DROP ? -EINVAL : ret;
}

/* Plain forwarding, and what rejects. */
static bool is_always_there(uint16_t number)
{
	return number == 0 || number >= PROGRAMS_REJECT;
}

void programs_hold(struct programs *programs, uint16_t number)
{
	if (is_always_there(number))
		return;
	assert(programs->book->entry[number].references > 0);
	programs->book->entry[number].references++;
}

void programs_release(struct programs *programs, uint16_t number)
{
	struct programs_book *book = programs->book;

	if (is_always_there(number))
		return;
	assert(book->entry[number].references > 0);
	if (--book->entry[number].references > 0)
		return;
	book->n_used--;
	book->entry[number].token = rte_rcu_qsbr_start(book->qsbr);
	idle_append(book, number);
}

uint32_t programs_count(const struct programs *programs)
{
	return programs->book->n_used;
}

uint32_t programs_references(const struct programs *programs, uint16_t number)
{
	return is_always_there(number) ? 0 : programs->book->entry[number].references;
}

void programs_destroy(struct programs *programs)
{
	if (programs == NULL)
		return;
	if (programs->program != NULL)
		mapping_destroy(programs->program, programs_size(programs->book->max));
	if (programs->book != NULL)
		free(programs->book->chain);
	free(programs->book);
	free(programs);
}
