/* SPDX-License-Identifier: BSD-3-Clause */
/* Which rules a port takes that leave the CPU nothing to do. */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>

#include "offload/trial_parts.h"

/* ICMP has errors in it, which software has to see; they look like all others to a rule. */
static bool may_be_full(enum provider_kind kind)
{
	return kind != PROVIDER_IPV4_ICMP && kind != PROVIDER_IPV6_ICMP;
}

static bool trial_full_is_tcp(enum provider_kind kind)
{
	return kind == PROVIDER_IPV4_TCP || kind == PROVIDER_IPV6_TCP;
}

/* Counters that outlive their rule come first, and ports by their newer name. */
static bool find_names(
	struct trier *trier, enum provider_kind kind, struct shape *shape, struct provider_why *why)
{
	for (unsigned direct = 0; direct < 2; direct++) {
		for (unsigned port_id = 0; port_id < 2; port_id++) {
			shape->indirect = direct == 0;
			shape->port_id = port_id != 0;
			if (trial_try(trier, kind, shape, why))
				return true;
			if (trial_is_over(trier))
				return false;
		}
	}
	return false;
}

/* Of the shape that packets of the kind are marked by: its headers are known to be taken. */
static void find_deed(struct trier *trier, enum provider_kind kind, unsigned tagged,
	enum provider_deed deed, struct provider_why *why)
{
	struct trial_kind *result = &trier->trial->kinds[kind];
	struct shape shape = result->shapes[tagged];

	shape.fate = SHAPE_ALONE;
	shape.deed = (uint8_t)deed;
	shape.count = true;
	/* else a connection would begin or end unseen */
	shape.no_flags = trial_full_is_tcp(kind);
	if (!find_names(trier, kind, &shape, why))
		return;
	result->full[deed][tagged] = shape;
	result->does[deed][tagged] = true;
}

void trial_try_full(struct trier *trier, enum provider_kind kind)
{
	struct trial_kind *result = &trier->trial->kinds[kind];
	const bool taken[2] = {result->plain, result->tagged};

	if (!trier->trial->full || !may_be_full(kind))
		return;
	for (unsigned tagged = 0; tagged < RTE_DIM(taken); tagged++) {
		struct provider_why why = {0};

		if (!taken[tagged])
			continue;
		find_deed(trier, kind, tagged, PROVIDER_FORWARDS, &result->full_why);
		find_deed(trier, kind, tagged, PROVIDER_DROPS, &why);
	}
}

const struct shape *trial_full_shape(
	const struct trial *trial, const struct offload_rule *rule, struct provider_why *why)
{
	enum provider_kind number = provider_kind(&rule->key);
	unsigned tagged = trial->zone_vlan && rule->key.zone != 0;
	const struct trial_kind *kind = &trial->kinds[number];

	if (number == PROVIDER_N_KINDS || rule->deed >= PROVIDER_N_DEEDS ||
		!kind->does[rule->deed][tagged]) {
		*why = number == PROVIDER_N_KINDS ? (struct provider_why){0} : kind->full_why;
		return NULL;
	}
	return &kind->full[rule->deed][tagged];
}

void trial_tell_full(const struct trial *trial, struct provider_abilities *abilities)
{
	abilities->exact = trial->full;
	for (unsigned i = 0; i < PROVIDER_N_KINDS; i++) {
		const struct trial_kind *kind = &trial->kinds[i];
		unsigned tagged = kind->does[PROVIDER_FORWARDS][TRIAL_TAGGED];

		for (unsigned deed = PROVIDER_FORWARDS; deed < PROVIDER_N_DEEDS; deed++)
			abilities->full[deed][i] =
				abilities->kind[i] && (kind->does[deed][0] || kind->does[deed][1]);
		abilities->full_shape[i][0] = '\0';
		abilities->full_refused[i] = kind->full_why;
		if (!abilities->full[PROVIDER_FORWARDS][i])
			continue;
		abilities->full_refused[i] = (struct provider_why){0};
		abilities->exact &= kind->full[PROVIDER_FORWARDS][tagged].indirect;
		shape_text(abilities->full_shape[i], sizeof(abilities->full_shape[i]),
			&kind->full[PROVIDER_FORWARDS][tagged], i);
	}
}
