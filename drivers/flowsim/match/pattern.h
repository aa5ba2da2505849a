/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A rule's pattern, from rte_flow items to bytes. What the items mean is rte_flow.h's and stands, with
 * everything that it leaves open, in docs/hardware.md, "What a rule matches":
 *
 * - An item's spec is compared under its mask; no mask = rte_flow's default mask of the item; nothing =
 *   any such header. `last`: each field is between spec and last, both under the mask.
 * - Each header item must be there, in this order; VOID is skipped, ANY says nothing. A tag before an
 *   IP header need not be mentioned. After a tunnel item come the inner headers.
 * - An item of an upper layer without the lower ones is fine (`pattern udp / end`).
 * - A packet's ports: REPRESENTED_PORT, PORT_REPRESENTOR and PORT_ID name the ethdev that it arrives at.
 *
 * A pattern owns no memory.
 */

#include <rte_flow.h>

#include "drivers/flowsim/match/view.h"

#define SIM_MAX_RANGES 8
#define SIM_MAX_ITEMS 32
#define SIM_MAX_RANGE_BYTES 6

/* Bytes `at` to `at + size` of the view, read as a big-endian number, lie in [low, high]. */
struct sim_range {
	uint16_t at;
	uint8_t size; /* 1 to 6 */
	uint64_t mask, low, high;
};

struct sim_pattern {
	uint32_t layers; /* that must be there */
	uint32_t absent; /* that must not: NICs that know packet types (kind/input_set.h) */
	uint16_t port;	 /* an item's port, or SIM_NO_PORT: the rule's own */
	uint8_t n_words; /* of the mask that are not 0 */
	uint8_t words[SIM_VIEW_WORDS]; /* their numbers, rising */
	uint64_t mask[SIM_VIEW_WORDS];
	uint64_t value[SIM_VIEW_WORDS]; /* under the mask */
	uint8_t n_ranges;
	struct sim_range ranges[SIM_MAX_RANGES];
	uint64_t
		items; /* a bit for each RTE_FLOW_ITEM_TYPE named (all known ones are below 64) but VOID */
	uint8_t input[SIM_VIEW_BYTES / 8]; /* a bit a byte of the view: the input set, ranges too */
};

/* Which item is at fault, and why: for struct rte_flow_error. */
struct sim_fault_at {
	const void *cause; /* the item or action; NULL = none in particular */
	enum rte_flow_error_type type;
	const char *message; /* static */
};

/*
 * Reads at most SIM_MAX_ITEMS items up to END. Any pointers that are not NULL must be readable as
 * rte_flow says; any bytes behind them. Returns 0; -EINVAL for what rte_flow.h forbids (no END within
 * reach, mask or last without spec, last below spec; reserved bits are ignored); -ENOTSUP for what this
 * NIC does not know: an item, an order of items, a third level or tag, ranges of long fields.
 */
int sim_pattern_parse(struct sim_pattern *pattern, const struct rte_flow_item items[],
	struct sim_fault_at *fault);

/*
 * Async rules: a template has the masks, each rule's items the values. Once for a template, then a cheap
 * look at each rule.
 *
 * The template's items: an item's mask says what is compared; without a mask it says that the header is
 * there, and of a port item that the port is the rule's to say; with `relaxed`, nothing at all. spec is
 * looked at only beside last: that range is the template's, the same for all rules.
 *
 * A rule's items have the same types in the same order (VOID does not count); only spec is looked at, and
 * has to be there where the template has a mask that is not zero.
 */
struct sim_pattern_template {
	struct sim_pattern pattern; /* but for values and port */
	uint8_t n_items;
	struct {
		uint8_t type;	  /* enum rte_flow_item_type, all known ones are below 64 */
		bool compared;	  /* needs a spec */
		uint16_t at;	  /* the header's bytes, in the view */
		uint16_t bits_at; /* and the bits that rte_flow's structure has behind them */
		uint8_t bits_shift;
	} items[SIM_MAX_ITEMS];
};

/* Errors as sim_pattern_parse(). */
int sim_pattern_template_read(struct sim_pattern_template *template,
	const struct rte_flow_item items[], bool relaxed, struct sim_fault_at *fault);

/*
 * A rule's values, pattern.n_words of them, as rte_flow.values[] has them, and the port that its items name
 * (SIM_NO_PORT: none). -EINVAL: other items than the template's, no spec, no such port number.
 */
int sim_pattern_template_fill(const struct sim_pattern_template *template, uint64_t values[],
	uint16_t *port, const struct rte_flow_item items[], struct sim_fault_at *fault);

/* Both at once, into a pattern with its values. */
int sim_pattern_parse_template(struct sim_pattern *pattern, const struct rte_flow_item template[],
	const struct rte_flow_item items[], bool relaxed, struct sim_fault_at *fault);

/* Whether a view has the layers that the pattern asks for and lies in its ranges. */
bool sim_pattern_fits(const struct sim_pattern *pattern, const struct sim_view *view);

/*
 * Whether a view matches, the port too (a packet that is being sent has none, and matches any). `own` is
 * the ethdev of the rule when its pattern names none.
 */
bool sim_pattern_match(
	const struct sim_pattern *pattern, uint16_t own, const struct sim_view *view);
