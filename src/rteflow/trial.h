/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The trial finds which rules a port takes, by asking it to. A driver's validate says nothing (docs/hardware.md,
 * `validate_yes`, `no_validate`), so rules are made, with addresses of RFC 5737 and RFC 3849 that no packet has, and
 * taken away again.
 *
 * For each kind of flow the first of these that is taken is kept: with an Ethernet item before without; with a
 * counter before without; then MARK alone, with PASSTHRU, with QUEUE, with RSS (RSS before QUEUE on a port of several
 * queues that are nobody's own). Others of the last four that are taken stand in line, should packets come without marks.
 * With zones that are VLANs a kind has two shapes, one that names the tag and one for packets without; a NIC that
 * takes only one of them at a time gets that with the tag.
 *
 * Full offload, where it is wanted, is tried of each kind whose packets can be marked, by transfer rules of the same
 * headers: with a counter that outlives the rule before one that does not; with ports named by REPRESENTED_PORT before
 * PORT_ID. It needs a counter, a match that leaves out fragments, and of TCP one that leaves out SYN, FIN and RST.
 *
 * An answer that may be another the next time (no room, not now, failed) is asked for again, a few times. When
 * it stays, the trial ends for now, and goes on later where it stopped: what is found while a NIC has no room is less
 * than it can do. Only each TRIAL_PATIENCEth time the trial goes past such answers, since there are NICs that never say
 * anything else; it begins at another kind each of these times, as one that fails slowly ends it, too.
 *
 * A kind that is refused for good is so only where the port takes a rule of another kind that it took before: else
 * its table is full by now, and a driver may answer anything then.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rteflow/shape.h"

#define TRIAL_PATIENCE 4

static inline bool trial_is_patient(unsigned number)
{
	return number % TRIAL_PATIENCE != TRIAL_PATIENCE - 1;
}

/* Rules that are there at once while it tries. */
#define TRIAL_HANDS 2

/* The largest of 32, 24 and 16 bits: some NICs keep the last 16 of them to themselves. */
#define TRIAL_N_MARKS 3
extern const uint32_t trial_marks[TRIAL_N_MARKS];

/* A rule as the trial asks for them: of packets that nobody sends. */
void trial_rule(struct offload_rule *rule, enum provider_kind kind, bool tagged, uint32_t mark);

struct trial_calls {
	/* Makes a rule; 0 or an answer of the provider, with what the driver said. */
	int (*make)(void *context, unsigned hand, const struct shape *shape,
		const struct offload_rule *rule, struct provider_why *why);
	/* Takes away what was made. */
	void (*unmake)(void *context, unsigned hand);
	/* Can its counter be read? As make(). */
	int (*counts)(void *context, unsigned hand, struct provider_why *why);
	void *context;
	const atomic_bool *stop; /* struct provider_config */
};

struct trial_kind {
	bool plain, tagged;	    /* taken: of packets without a tag, or whatever tag; with one */
	struct shape shapes[2];	    /* by that */
	struct provider_why why[2]; /* of those that were not taken */
	uint8_t fates;		    /* bit by enum shape_fate: taken */
	uint8_t fate;		    /* now in use */
	uint8_t first;
	bool later; /* not settled: to be tried again */
	/* full offload: what is taken, and how; by whether the tag is named */
	bool does[PROVIDER_N_DEEDS][2];
	struct shape full[PROVIDER_N_DEEDS][2];
	struct provider_why full_why; /* forwarding was not taken */
};

struct trial {
	bool zone_vlan;
	bool full;	/* that is tried, too */
	bool uncounted; /* struct provider_config */
	bool counts;
	bool took;		      /* the last time some rule was taken */
	uint32_t mark_max;	      /* 0: no marks that are wide enough */
	uint8_t order[SHAPE_N_FATES]; /* in which fates are tried */
	struct provider_why mark_why;
	struct trial_kind kinds[PROVIDER_N_KINDS];
};

/* Tries everything. True: some kind is taken. */
bool trial_run(struct trial *trial, const struct shape_port *port,
	const struct provider_config *config, const struct trial_calls *calls);

/* Once more, those kinds that are not settled. True: some kind is taken. */
bool trial_again(struct trial *trial, unsigned number, const struct trial_calls *calls);

/* The shape for a flow's rule; NULL: the port does not do that, and has said why. */
const struct shape *trial_shape(
	struct trial *trial, const struct offload_rule *rule, struct provider_why *why);

/* The next in line; false: there is none left, the first is in use again. */
bool trial_next(struct trial *trial, enum provider_kind kind);

/* What of it users are told. */
void trial_tell(const struct trial *trial, struct provider_abilities *abilities);
