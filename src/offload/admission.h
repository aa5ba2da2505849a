/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Admission: which flows have one worker's part of one port's rules. It keeps those that hold a rule (or are on their
 * way in) by rate, in steps of a fourth of an octave, so that the least busy one is had at once, and tells what
 * rate another needs to take its place.
 *
 *	room		a flow that reaches the threshold goes in
 *	no room		a flow goes in that is busier than the least busy one there by ADMISSION_HYSTERESIS; that one
 *			leaves, but not before it has been there for ADMISSION_STAY_US (it is not settled yet)
 *
 * Rates are those of offload/rate.h. What a port has room for, and how many rules it may be asked for each second,
 * is known to whoever asks.
 *
 * One thread, the worker; memory is taken at the start. No global state.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ADMISSION_NONE UINT32_MAX
#define ADMISSION_OCTAVE 4
#define ADMISSION_STEPS (32 * ADMISSION_OCTAVE)
/* Steps: whoever takes a place is at least this much busier (2^(1/4) to 2^(1/2)). */
#define ADMISSION_HYSTERESIS 2
#define ADMISSION_STAY_US 250000

struct admission_place {
	uint32_t next, before; /* of the same step; ADMISSION_NONE: none */
	uint8_t step;
	bool held;
	bool settled; /* it may be asked to leave */
};

struct admission {
	struct admission_place *places; /* by slot */
	uint32_t n_places;
	uint32_t n_held;
	uint32_t lowest;		 /* no step below that has any that settled */
	uint32_t first[ADMISSION_STEPS]; /* of those that settled */
	uint32_t n_at[ADMISSION_STEPS];	 /* of all that are held */
};

/* 0 or -ENOMEM. admission_fini() on a zeroed or failed one does nothing. */
int admission_init(struct admission *admission, uint32_t n_places);
void admission_fini(struct admission *admission);

/* The slot's flow holds a rule from now on, or is asked in. */
void admission_hold(struct admission *admission, uint32_t slot, uint32_t rate);
/* Its rate was looked at; `settled`: it has been there for long enough. Of one that holds none: nothing. */
void admission_look(struct admission *admission, uint32_t slot, uint32_t rate, bool settled);
/* It leaves, or never came. Of one that holds none: nothing. */
void admission_release(struct admission *admission, uint32_t slot);

/* The least rate that takes the place of another; UINT32_MAX: nobody gives way. */
uint32_t admission_bar(struct admission *admission);
/* Who leaves for a flow of that rate, by what is known of it; ADMISSION_NONE: nobody. */
uint32_t admission_least(struct admission *admission, uint32_t rate);
/* How many of those that are held are busier, and one more. */
uint32_t admission_rank(const struct admission *admission, uint32_t rate);

/*
 * Rules a second: what is asked for is charged, and only when it can be paid for. No second, wherever it begins, has
 * more than so many. A tenth of them, or one, may be saved up, and less comes in for it.
 */
#define ADMISSION_SAVED 10

struct admission_budget {
	uint32_t per_s; /* 0: there is no limit */
	uint64_t us;
	uint64_t millionths; /* of a rule, that may be asked for */
};

/* May so many more rules be asked for, or taken away (one, where no more can be saved up)? Nothing is charged. */
bool admission_affords(struct admission_budget *budget, uint64_t now_us, unsigned n);
/* It was. */
void admission_charge(struct admission_budget *budget);
