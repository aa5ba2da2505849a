/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Random frames and random rules that often fit each other: values come from small pools, and a rule's
 * specs from the bytes of a frame. All by one seed.
 */

#include <rte_flow.h>

#include "flowsim_reference.h"

#define RANDOM_FRAME_BYTES 512
#define RANDOM_MAX_ITEMS 12
#define RANDOM_ITEM_BYTES 64
#define RANDOM_MAX_ACTIONS 6

/* Where a header was put, whether or not the frame was cut before its end. */
struct random_header {
	enum rte_flow_item_type type;
	unsigned level, at;
};

struct random_frame {
	uint8_t bytes[RANDOM_FRAME_BYTES];
	uint32_t length; /* the last four bytes are its number */
	struct random_header header[16];
	unsigned n;
};

struct random_rule {
	struct rte_flow_attr attr;
	struct rte_flow_item items[RANDOM_MAX_ITEMS];
	struct rte_flow_action actions[RANDOM_MAX_ACTIONS];
	uint8_t spec[RANDOM_MAX_ITEMS][RANDOM_ITEM_BYTES] __attribute__((aligned(8)));
	uint8_t mask[RANDOM_MAX_ITEMS][RANDOM_ITEM_BYTES] __attribute__((aligned(8)));
	uint8_t last[RANDOM_MAX_ITEMS][RANDOM_ITEM_BYTES] __attribute__((aligned(8)));
	struct rte_flow_action_mark mark;
	struct rte_flow_action_queue queue;
	struct rte_flow_action_jump jump;
	struct rte_flow_action_ethdev port;
};

struct random_source {
	uint64_t state;
	uint16_t own, other; /* ethdevs that rules may name */
};

/* 0 to n - 1. */
uint32_t random_below(struct random_source *random, uint32_t n);

void random_frame(struct random_source *random, struct random_frame *frame, uint32_t number);

/* A rule whose specs come from one of the frames. */
void random_rule(struct random_source *random, struct random_rule *rule,
	const struct random_frame *frames, unsigned n_frames);

/* What it says, on stderr. */
void random_rule_print(const struct random_rule *rule);
void random_frame_print(const struct random_frame *frame);
