/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Kinds of flows whose rules are accepted and mark nothing. Such a kind gets other actions when the breaker tries the
 * port again. With none left it is out: a few flows try it only, with each of its actions in turn for ten seconds, until
 * one is marked. All of it is the installer's thread's; a kind that is out stands in the port's health.
 */

#include "offload/health.h"
#include "rteflow/provider.h"

struct marking {
	uint32_t unseen_then[PROVIDER_N_KINDS]; /* when that kind's actions were changed last */
	uint64_t tried_us[PROVIDER_N_KINDS];	/* since when a kind that is out is tried */
};

/* The breaker tries again. True: other actions are tried. `out`: kinds that are out from now on, a bit each. */
bool marking_change_actions(struct marking *marking, struct health *health,
	struct provider *provider, uint64_t now_us, uint32_t *out);
/* Now and then, of kinds that are out: those that are marked now, a bit each. Others are tried on. */
uint32_t marking_look(
	struct marking *marking, struct health *health, struct provider *provider, uint64_t now_us);
