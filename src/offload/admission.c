/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/admission.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* Steps of a fourth of an octave: the highest bit and the two behind it. */
static unsigned admission_step_of(uint32_t rate)
{
	if (rate < ADMISSION_OCTAVE)
		return rate;
	unsigned bit = 31u - (unsigned)__builtin_clz(rate);

	return ADMISSION_OCTAVE * (bit - 1) + (rate >> (bit - 2) & (ADMISSION_OCTAVE - 1));
}

/* The least rate of a step. */
static uint32_t rate_of(unsigned step)
{
	if (step < 2 * ADMISSION_OCTAVE)
		return step;
	unsigned bit = step / ADMISSION_OCTAVE + 1;

	if (bit > 31)
		return UINT32_MAX;
	return (ADMISSION_OCTAVE + step % ADMISSION_OCTAVE) << (bit - 2);
}

int admission_init(struct admission *admission, uint32_t n_places)
{
	memset(admission, 0, sizeof(*admission));
	admission->lowest = ADMISSION_STEPS;
	for (unsigned i = 0; i < ADMISSION_STEPS; i++)
		admission->first[i] = ADMISSION_NONE;
	admission->places = calloc(n_places > 0 ? n_places : 1, sizeof(admission->places[0]));
	if (admission->places == NULL)
		return -ENOMEM;
	admission->n_places = n_places;
	return 0;
}

void admission_fini(struct admission *admission)
{
	free(admission->places);
	memset(admission, 0, sizeof(*admission));
}

static void list(struct admission *admission, uint32_t slot)
{
	struct admission_place *place = &admission->places[slot];
	uint32_t *first = &admission->first[place->step];

	place->before = ADMISSION_NONE;
	place->next = *first;
	if (*first != ADMISSION_NONE)
		admission->places[*first].before = slot;
	*first = slot;
	place->settled = true;
	if (place->step < admission->lowest)
		admission->lowest = place->step;
}

static void unlist(struct admission *admission, uint32_t slot)
{
	struct admission_place *place = &admission->places[slot];

	if (!place->settled)
		return;
	if (place->before != ADMISSION_NONE)
		admission->places[place->before].next = place->next;
	else
		admission->first[place->step] = place->next;
	if (place->next != ADMISSION_NONE)
		admission->places[place->next].before = place->before;
	place->settled = false;
}

void admission_hold(struct admission *admission, uint32_t slot, uint32_t rate)
{
	struct admission_place *place = &admission->places[slot];

	admission_release(admission, slot);
	*place = (struct admission_place){.held = true, .step = (uint8_t)admission_step_of(rate)};
	admission->n_at[place->step]++;
	admission->n_held++;
}

void admission_look(struct admission *admission, uint32_t slot, uint32_t rate, bool settled)
{
	struct admission_place *place = &admission->places[slot];
	const unsigned step = admission_step_of(rate);

	if (!place->held || (place->step == step && place->settled == settled))
		return;
	unlist(admission, slot);
	admission->n_at[place->step]--;
	admission->n_at[step]++;
	place->step = (uint8_t)step;
	if (settled)
		list(admission, slot);
}

void admission_release(struct admission *admission, uint32_t slot)
{
	struct admission_place *place = &admission->places[slot];

	if (!place->held)
		return;
	unlist(admission, slot);
	admission->n_at[place->step]--;
	admission->n_held--;
	place->held = false;
}

/* The lowest step that has any that settled; ADMISSION_STEPS: none has. */
static unsigned lowest(struct admission *admission)
{
	while (admission->lowest < ADMISSION_STEPS &&
		admission->first[admission->lowest] == ADMISSION_NONE)
		admission->lowest++;
	return admission->lowest;
}

uint32_t admission_bar(struct admission *admission)
{
	unsigned step = lowest(admission);

	return step >= ADMISSION_STEPS ? UINT32_MAX : rate_of(step + ADMISSION_HYSTERESIS);
}

uint32_t admission_least(struct admission *admission, uint32_t rate)
{
	unsigned step = lowest(admission);

	if (step >= ADMISSION_STEPS || admission_step_of(rate) < step + ADMISSION_HYSTERESIS)
		return ADMISSION_NONE;
	return admission->first[step];
}

uint32_t admission_rank(const struct admission *admission, uint32_t rate)
{
	uint32_t n = 1;

	for (unsigned step = admission_step_of(rate) + 1; step < ADMISSION_STEPS; step++)
		n += admission->n_at[step];
	return n;
}

bool admission_affords(struct admission_budget *budget, uint64_t now_us, unsigned n)
{
	const uint32_t tenth = budget->per_s / ADMISSION_SAVED, saved = tenth > 0 ? tenth : 1;
	const uint64_t most = saved * CLOCK_US_PER_S;
	const uint64_t passed_us = now_us - budget->us;

	if (budget->per_s == 0)
		return true;
	budget->us = now_us;
	budget->millionths += (passed_us < CLOCK_US_PER_S ? passed_us : CLOCK_US_PER_S) *
			      (budget->per_s - (saved - 1));
	if (budget->millionths > most)
		budget->millionths = most;
	return budget->millionths >= (n < saved ? n : saved) * (uint64_t)CLOCK_US_PER_S;
}

void admission_charge(struct admission_budget *budget)
{
	if (budget->per_s != 0)
		budget->millionths -=
			budget->millionths < CLOCK_US_PER_S ? budget->millionths : CLOCK_US_PER_S;
}
