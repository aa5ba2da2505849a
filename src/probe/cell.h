/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A cell of the table that `millrace probe` fills: how a NIC handles one form of rule (probe/form.h). The rule is
 * validated, made, watched by the packets that it is for, and destroyed, and these are watched again.
 *
 * Levels are what has been shown, each more than the one before. What a driver says is kept beside it:
 *	no	   create refused, and validate did, or is not there
 *	says yes   validate said yes, and create refused
 *	accepts	   created; the effect was not seen, or there was no observer
 *	works	   every packet that the rule is for was treated as it says
 */

#include "probe/rule.h"

enum level {
	LEVEL_NO,
	LEVEL_SAYS_YES,
	LEVEL_ACCEPTS,
	LEVEL_WORKS,
	LEVEL_N,
};

const char *level_name(enum level level);

enum cell_effect {
	CELL_UNSEEN,  /* nobody looks, or too few such packets come */
	CELL_ONE_WAY, /* there is nothing to tell it by: one queue */
	CELL_BROKEN,  /* packets came, and were not treated so */
	CELL_SEEN,
};

enum cell_counter {
	CELL_NOT_COUNTED,
	CELL_UNREAD, /* the query failed */
	CELL_STUCK,  /* it does not move */
	CELL_LATE,   /* it moves, but not with its packets: the driver has it from before */
	CELL_MOVES,  /* how exactly cannot be told: its packets do not come, or others' do */
	CELL_INEXACT,
	CELL_EXACT,
};

struct cell {
	enum level level;
	bool validates;		      /* the driver can be asked */
	struct provider_why validate; /* its refusal; errno 0: it said yes */
	struct provider_why create;
	enum cell_effect effect;
	struct observed seen;
	enum cell_counter counter;
	struct provider_why query;
	uint64_t counted; /* by the NIC, while `seen.packets` came */
	bool back;	  /* they came as before when the rule was gone */
	bool stays;	  /* the effect was there still after the rule was destroyed */
	bool left;	  /* the rule could not be destroyed */
	struct provider_why destroy;
	enum provider_kind kind; /* of the flow that was watched; PROVIDER_N_KINDS: none */
};

/* Fills the cell. */
void cell_try(struct rule_port *port, const struct form *form, struct cell *cell);

/* The level by what else the cell has: kept apart for tests. */
enum level cell_level(const struct form_actions *actions, const struct cell *cell);
/* One sentence why the level is not "works"; "" where it is, or where `create` and `validate` say all. */
void cell_words(
	char *text, size_t size, const struct form_actions *actions, const struct cell *cell);
