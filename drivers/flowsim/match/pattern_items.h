/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What the items of a pattern look like: which bytes of rte_flow's structures are bytes of a header,
 * where these stand in a view, and which items may stand behind which. Constant.
 */

#include <rte_flow.h>

#include "drivers/flowsim/match/view.h"

/* The order of the items within a level. */
enum sim_item_rank {
	SIM_ITEM_PORT,
	SIM_ITEM_ETH,
	SIM_ITEM_VLAN, /* twice */
	SIM_ITEM_IP,
	SIM_ITEM_FRAGMENT,
	SIM_ITEM_L4,
	SIM_ITEM_TUNNEL, /* begins the inner level */
	SIM_ITEM_KEY,	 /* GRE's, which may stand right behind it */
};

struct sim_item_form {
	uint8_t size;	  /* of rte_flow's structure: what is read of it */
	uint8_t header;	  /* bytes of it that are the header's, from its start */
	uint16_t at;	  /* these, in the outer level or the tunnel */
	uint8_t rank;	  /* enum sim_item_rank */
	uint32_t layer;	  /* that has to be there; the second tag's is the next bit */
	uint32_t rivals;  /* layers that are never in the same level, or below a tunnel */
	const void *mask; /* rte_flow's default; NULL: has none, and nothing is compared */
	/* bits of the structure that are no header bytes, bit 0 first, and where the view has them */
	uint32_t (*bits)(const void *item);
	uint16_t bits_at;
	uint8_t fields[12]; /* sizes of the header's fields, in order */
};

/* NULL: this NIC does not know that type. VOID and ANY have a form of size 0. */
const struct sim_item_form *sim_item_form(enum rte_flow_item_type type);

/* Of the three port items: the number in their spec, last or mask, of 32 bits or 16. */
uint32_t sim_item_port(const struct sim_item_form *form, const void *item);

/* Sets the bits of form->bits() in a view, bit 0 first. */
void sim_item_put_bits(uint8_t *bytes, uint32_t bits);
