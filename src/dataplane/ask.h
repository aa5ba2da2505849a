/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Questions from control to an lcore, one at a time: control posts, the lcore answers between two
 * bursts and gives the question back. Neither waits in a system call for the other.
 */

#include <stdbool.h>

#include "dataplane/lcore.h"

/*
 * Control: ask_prepare() gives the question to fill in, ask_lcore() posts it and waits. The answer
 * stays until the next question. NULL and -ETIMEDOUT when the lcore has not answered for five seconds; or, of
 * quick patience, for a fifth of a second: then a question that it still has is not waited for any more, and each
 * further lcore that does not answer is waited for half as long, so that all of them together cost less than half
 * a second, once.
 */
struct ask *ask_prepare(struct lcore *lcore, enum ask_kind kind);
int ask_lcore(struct lcore *lcore);

/* Does the lcore still have a question? */
bool ask_waits(const struct lcore *lcore);
/* That question, if it is this one, was answered after it had been given up: NULL, or the answer. */
struct ask *ask_late(struct lcore *lcore, enum ask_kind kind, const struct flow_key *key);

void ask_be_patient(struct ask_patience *patience);
void ask_be_quick(struct ask_patience *patience);
/* An lcore has been waited for since `begin_us` (monotonic_us()), by so many looks: is it given up now? */
bool ask_gives_up(struct ask_patience *patience, unsigned looks, uint64_t begin_us);

/* The lcore: answers what waits. True when there was something. */
bool ask_answer(struct lcore *lcore);
