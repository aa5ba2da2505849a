/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The calls of a port's provider that the NIC has not answered yet: in the order in which they began, and found by
 * place. A call is late after AWAITED_STALL_US. All of it is the installer's thread's.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#define AWAITED_STALL_US 1000000

/* A call of the provider, from its begin to its end. */
struct call {
	uint64_t asked_tsc, tsc, us;
	uint32_t place;
	uint8_t op; /* enum installer_op */
	uint8_t worker;
	uint8_t from;
	bool own;     /* an insert that was given up is taken back: no worker awaits it */
	bool late;    /* it was counted as a stall */
	bool gave_up; /* its worker was answered */
};

struct awaited_call {
	TAILQ_ENTRY(awaited_call) next;
	struct call call;
};

struct awaited {
	struct awaited_call *calls;
	struct awaited_call **of_place;
	TAILQ_HEAD(awaited_list, awaited_call) free, under_way;
	struct awaited_call *in_time; /* the first that is not late */
	uint32_t n_places;
	uint32_t n, n_late, n_own, n_inserts; /* of those under way */
};

/* Room for `n` calls. 0 or -ENOMEM. */
int awaited_init(struct awaited *awaited, uint32_t n, uint32_t n_places);
void awaited_free(struct awaited *awaited);

void awaited_add(struct awaited *awaited, const struct call *call);
bool awaited_has(const struct awaited *awaited, uint32_t place);
/* Takes out the call of this place, if it is of this operation. False: there is none. */
bool awaited_take(struct awaited *awaited, uint32_t place, unsigned op, struct call *call);
/* Takes out the oldest, if it began `us` ago or earlier. */
bool awaited_take_oldest(struct awaited *awaited, uint64_t now_us, uint64_t us, struct call *call);
/* The next call that is late now; NULL: there is none. Each is told once. */
const struct call *awaited_late(struct awaited *awaited, uint64_t now_us);
/* When the oldest began; 0: none is under way. */
uint64_t awaited_oldest_us(const struct awaited *awaited);
