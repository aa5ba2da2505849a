/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The observer finds flows of which packets come, and counts these. It knows no rules, and the files that make rules know no
 * packets. probe/packets.h has the one of `millrace probe`.
 */

#include "probe/form.h"

/* A flow of which packets come. */
struct observed_flow {
	struct flow_key key;	  /* the VLAN's number is its zone, whatever the port is used for */
	uint8_t from;		  /* the key's end that its packets come from */
	struct rte_ether_addr to; /* destination */
	uint16_t queue;		  /* that they come by without a rule */
	bool tagged;
};

/* Packets of a flow that came, and how. */
struct observed {
	uint64_t packets;
	uint64_t marked;    /* with the mark that was asked for */
	uint64_t wrong;	    /* with another one */
	uint64_t in_place;  /* by one of the queues that were asked for */
	uint16_t queue;	    /* that the last one came by */
	uint64_t elsewhere; /* seen at the other end of the wire */
	uint64_t sent;	    /* by us; 0 where they come by themselves */
};

struct observer_watch {
	const struct observed_flow *flow;
	uint32_t mark;
	uint64_t queues; /* bit by number */
	unsigned wanted; /* packets of the flow; then it is over */
};

struct observer {
	/* A flow for the pattern; another one each time, where there are several. False: there is none. */
	bool (*find)(void *context, const struct form_pattern *pattern, struct observed_flow *flow);
	/* Takes what was on its way. */
	void (*settle)(void *context);
	/* Until that many came, or twice as long as that takes usually. */
	void (*watch)(void *context, const struct observer_watch *watch, struct observed *seen);
	/* Packets that ports sent without us, by their drivers' counters. */
	uint64_t (*forwarded)(void *context);
	void *context;
	unsigned flows; /* that may be looked at; 0: there is nothing to see by */
	uint64_t heard; /* packets that came while it listened */
};
