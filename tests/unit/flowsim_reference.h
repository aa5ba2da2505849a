/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Does slowly what match/pattern.h and match/actions.h of the simulated NIC say of rules and packets: headers in a list,
 * items compared one by one as the application gave them, rules tried one after the other. Written from these headers and
 * rte_flow.h alone, so that the driver's matcher has something to agree with. Rules are taken for ones that the driver
 * accepted. No memory is kept.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_flow.h>

#define REFERENCE_CHAIN 8

struct reference_rule {
	struct rte_flow_attr attr;
	const struct rte_flow_item *items;
	const struct rte_flow_action *actions;
	uint16_t created_on;
};

struct reference_verdict {
	unsigned n;
	unsigned
		rule[REFERENCE_CHAIN]; /* numbers of rules, in the order in which they were taken */
	enum rte_flow_action_type
		fate; /* QUEUE, DROP, REPRESENTED_PORT, PORT_REPRESENTOR; END: none */
	uint16_t queue, port;
	bool mark, flag;
	uint32_t mark_id;
};

/* Rules in the order of their creation; the packet arrived at `port`. */
void reference_match(struct reference_verdict *verdict, const struct reference_rule *rules,
	unsigned n, const uint8_t *frame, uint32_t length, uint16_t port);

/* Whether one pattern matches. */
bool reference_items(const struct rte_flow_item *items, uint16_t own, const uint8_t *frame,
	uint32_t length, uint16_t port);
