/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The texts that say why something was blocked. Equal texts are stored once and counted, because a
 * list of a million entries mostly has one reason for all of them, or none.
 *
 * A reason is known by a number; 0 is no reason. The memory for `max` different texts is taken at
 * creation. All calls belong to one thread.
 */

#include <stddef.h>
#include <stdint.h>

/* Bytes of a reason, its ending zero included. */
#define REASON_MAX 118

struct reasons;

/* 0, -EINVAL (more than 16,777,215) or what mapping_create() says. `seed` makes the hash of texts hard to guess. */
int reasons_create(struct reasons **reasons, uint32_t max, uint64_t seed);
/* Accepts NULL. */
void reasons_destroy(struct reasons *reasons);
size_t reasons_memory(const struct reasons *reasons);

/*
 * The number of a text, which is stored if it is new; each call is one use. NULL and "" are number 0.
 * 0 or -ENOSPC. The text must be shorter than REASON_MAX.
 */
int reasons_take(struct reasons *reasons, const char *text, uint32_t *number);
/* Ends one use. */
void reasons_release(struct reasons *reasons, uint32_t number);

/* The text's number, or 0 when it is not stored. */
uint32_t reasons_find(const struct reasons *reasons, const char *text);
/* NULL for number 0. Valid until the last use is released. */
const char *reasons_text(const struct reasons *reasons, uint32_t number);
/* How often the reason is in use. */
uint32_t reasons_uses(const struct reasons *reasons, uint32_t number);
/* How many different texts are stored, and how many more fit. */
uint32_t reasons_count(const struct reasons *reasons);
uint32_t reasons_room(const struct reasons *reasons);
