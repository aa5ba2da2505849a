/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A change of offload, kept in a bounded ring so that it can be told later: of a flow's state at one port,
 * or of a port itself. A ring has one writer (a worker, or a port's installer) and is read on the writer's
 * thread, or when it stands still.
 */

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "offload/reason.h"
#include "offload/state.h"

enum change_kind {
	CHANGE_FLOW,	      /* `before`, `after`, `reason` */
	CHANGE_BREAKER_OPEN,  /* the port goes to software: `reason` */
	CHANGE_BREAKER_TRIES, /* canary flows are sent */
	CHANGE_BREAKER_CLOSED,
	CHANGE_GHOST,	/* packets have marks that this run never gave: rules of an earlier one? */
	CHANGE_STALLED, /* the NIC has not answered a delete or an insert for long */
	CHANGE_DELETE_REFUSED,	/* a rule stays in the NIC: `reason`, a refusal */
	CHANGE_COUNTER_REFUSED, /* counters cannot be read, from now on: `reason`, a refusal */
	CHANGE_RESET,		/* the port was stopped and started */
	CHANGE_FLUSHED, /* all rules were taken out by one call, as some worked on that were to be gone */
	CHANGE_SHAPE, /* other actions are tried, since those accepted did not mark */
	CHANGE_KIND_OUT, /* no actions make rules of a kind of flow mark; `detail`: enum provider_kind */
	CHANGE_KIND_IN, /* they do now */
	CHANGE_UNTRIED, /* not all could be tried that the port may do: `reason`, a refusal */
	CHANGE_TRIED,	/* a later trial granted kinds of flows: `detail`, a bit of each kind */
	CHANGE_N_KINDS,
};

struct offload_change {
	struct flow_key key;   /* of flows; else zero */
	uint64_t time_us : 48; /* clock of the run */
	uint64_t kind : 8;
	uint64_t reason : 8;
	uint64_t port : 8; /* number of the port */
	uint64_t from : 1; /* the key's end that the rule is for */
	uint64_t before : 3;
	uint64_t after : 3;
	uint64_t full : 1; /* by a rule that leaves the CPU nothing to do */
	uint64_t unused : 16;
	/* queued: packets a second, 0 where they were not measured; in_hw: us since it was queued; kinds */
	uint64_t detail : 32;
};

static_assert(sizeof(struct offload_change) == 56, "small, since there are many");

#define CHANGE_RING 4096

struct change_ring {
	uint64_t n; /* ever written */
	struct offload_change change[CHANGE_RING];
};

/* "flow", "breaker_open", ... */
const char *change_kind_name(enum change_kind kind);

void change_note(struct change_ring *ring, const struct offload_change *change);

/* The newest changes of a flow first, at most `max`; `lost` says whether there are older ones, or may have been. */
unsigned change_of_flow(const struct change_ring *ring, const struct flow_key *key,
	struct offload_change *changes, unsigned max, bool *lost);

/*
 * Changes from number `*from` on, oldest first, at most `max`; moves `*from` behind them, and over those
 * that are lost already.
 */
unsigned change_read(const struct change_ring *ring, uint64_t *from, struct offload_change *changes,
	unsigned max);
