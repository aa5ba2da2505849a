/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A cell of the table that `millrace probe` fills: what a NIC makes of one form of rule (probe/form.h). The rule
 * is validated, made, looked at by the packets that it is for, and destroyed, and these are looked at again.
 *
 * Packets are somebody else's matter: `struct eyes` finds flows of which packets come, and counts them. It knows no
 * rules, this knows no packets.
 *
 * Levels are what has been shown, each more than the one before. What a driver says is kept beside it:
 *	no	   create refused, and validate did, or is not there
 *	says yes   validate said yes, and create refused
 *	accepts	   created; the effect was not seen, or there was nobody to look
 *	works	   every packet that the rule is for was treated as it says
 *
 * All of it belongs to one thread.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "probe/form.h"
#include "rteflow/provider.h"

enum level {
	LEVEL_NO,
	LEVEL_SAYS_YES,
	LEVEL_ACCEPTS,
	LEVEL_WORKS,
	LEVEL_N,
};

const char *level_name(enum level level);

/* A flow of which packets come. */
struct eyes_flow {
	struct flow_key key; /* with the VLAN's number as zone, whatever the port is used for */
	uint8_t from;	     /* the key's end that they come from */
	struct rte_ether_addr to, by; /* Ethernet addresses: destination, source */
	uint16_t queue;		      /* that they come by without a rule */
	bool tagged;
};

/* Packets of a flow that came, and how. */
struct eyes_seen {
	uint64_t packets, bytes;
	uint64_t marked;    /* with the mark that was asked for */
	uint64_t wrong;	    /* with another one */
	uint64_t in_place;  /* by one of the queues that were asked for */
	uint64_t others;    /* of other flows */
	uint16_t queue;	    /* that the last one came by */
	uint64_t elsewhere; /* of the flow: seen at the other end of the wire */
	uint64_t sent;	    /* of the flow: by us; 0 where they come by themselves */
};

struct eyes_watch {
	const struct eyes_flow *flow;
	uint32_t mark;
	uint64_t queues; /* bit by number */
	unsigned wanted; /* packets of the flow; then it is over */
	bool absent;	 /* none are expected: not so long */
};

struct eyes {
	/* A flow for the pattern; another one each time, where there are several. False: there is none. */
	bool (*find)(void *context, const struct form_pattern *pattern, struct eyes_flow *flow);
	/* Takes what was on its way. */
	void (*settle)(void *context);
	/* Until that many came, or as long as it would have taken twice. */
	void (*watch)(void *context, const struct eyes_watch *watch, struct eyes_seen *seen);
	/* Packets that ports sent without us, by their drivers' counters. */
	uint64_t (*forwarded)(void *context);
	void *context;
};

/* The port, and how rules are made there. */
struct cell_port {
	uint16_t id, n_queues;
	uint16_t target;	 /* where packets may be sent on to */
	struct shape_port rss;	 /* as the port does it */
	const struct eyes *eyes; /* NULL: nobody looks */
	bool flow_queues;	 /* templates may be used */
	bool by_templates;	 /* there are no blocking calls: found out by the first cell */
	uint32_t mark;		 /* of all rules; 0: each has another one */
	unsigned n_marks;	 /* that were asked for */
	unsigned n_left;	 /* rules that did not go */
	uint32_t serial;	 /* of the last operation of the flow queue */
	unsigned n_stuck;	 /* counters that did not move, waited for in vain */
	unsigned n_silent;	 /* forms whose packets were not seen, waited for in vain */
	/* says what is about to be done: a driver may never come back from it; `rules` are there meanwhile */
	void (*step)(void *context, const char *what, unsigned rules);
	void *context;
};

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
	struct eyes_seen seen;
	enum cell_counter counter;
	struct provider_why query;
	uint64_t counted; /* by the NIC, while `seen.packets` came */
	bool back;	  /* they came as before when the rule was gone */
	bool stays;	  /* the effect was there still after the rule was destroyed */
	bool left;	  /* the rule could not be destroyed */
	struct provider_why destroy;
	enum provider_kind kind; /* of the flow that was looked at; PROVIDER_N_KINDS: none */
};

/* An errno of create that may be another the next time: of the device, not of the form. */
static inline bool cell_is_passing(int error)
{
	return error == EIO || error == EAGAIN || error == EBUSY || error == ETIMEDOUT;
}

/* Fills the cell. */
void cell_try(struct cell_port *port, const struct form *form, struct cell *cell);

/* The level by what else the cell has: kept apart for tests. */
enum level cell_level(const struct form_actions *actions, const struct cell *cell);
/* One sentence why the level is not "works"; "" where it is, or where `create` and `validate` say all. */
void cell_words(
	char *text, size_t size, const struct form_actions *actions, const struct cell *cell);
