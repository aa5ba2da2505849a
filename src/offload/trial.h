/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The trial: which rules a port takes, by asking it to. What a driver's validate says is worth nothing
 * (docs/hardware.md, `validate_yes`, `no_validate`), so rules are made, with addresses of RFC 5737 and
 * RFC 3849 that no packet has, and taken away again.
 *
 * For each kind of flow the first of these that is taken is kept: of TCP without SYN, FIN and RST before
 * with; with an Ethernet item before without; with a counter before without; then MARK alone, with
 * PASSTHRU, with QUEUE, with RSS (RSS before QUEUE on a port of several queues that are nobody's own).
 * What else it takes of the last four stands in line, should packets come without marks.
 *
 * With zones that are VLANs a kind has two shapes, one that names the tag and one for packets without;
 * where the NIC takes only one of them at a time it is that with the tag.
 *
 * An answer that may be another the next time (not now, failed) is asked for again, a few times.
 */

#include <stdbool.h>
#include <stdint.h>

#include "offload/shape.h"

/* Rules that are there at once while it tries. */
#define TRIAL_HANDS 2

struct trial_calls {
	/* Makes a rule; 0 or an answer of the provider, with what the driver said. */
	int (*make)(void *context, unsigned hand, enum provider_kind kind,
		const struct shape *shape, const struct offload_rule *rule,
		struct provider_why *why);
	/* Takes away what was made. */
	void (*unmake)(void *context, unsigned hand);
	/* Can its counter be read? */
	bool (*counts)(void *context, unsigned hand);
	void *context;
};

struct trial_kind {
	bool plain, tagged;	    /* taken: of packets without a tag, or whatever tag; with one */
	struct shape shapes[2];	    /* by that */
	struct provider_why why[2]; /* of those that were not taken */
	uint8_t fates;		    /* bit by enum shape_fate: taken */
	uint8_t fate;		    /* now in use */
	uint8_t first;
};

struct trial {
	bool zone_vlan;
	bool counts;
	uint32_t mark_max;	      /* 0: no marks that are wide enough */
	uint8_t order[SHAPE_N_FATES]; /* in which fates are tried */
	struct provider_why mark_why;
	struct trial_kind kinds[PROVIDER_N_KINDS];
};

/* Tries everything. True: some kind is taken. */
bool trial_run(struct trial *trial, const struct shape_port *port, bool zone_vlan,
	const struct trial_calls *calls);

/* The shape for a flow's rule; NULL: the port takes none, and has said why. */
const struct shape *trial_shape(
	struct trial *trial, enum provider_kind kind, uint16_t zone, struct provider_why *why);

/* The next in line; false: there is none left, the first is in use again. */
bool trial_next(struct trial *trial, enum provider_kind kind);

/* What of it users are told. */
void trial_tell(const struct trial *trial, struct provider_abilities *abilities);
