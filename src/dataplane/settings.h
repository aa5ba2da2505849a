/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Settings that change while packets flow: time-outs, rates, and those of offload. Control
 * writes it whole; each lcore takes it over between two bursts, and never a mixture of two: a sequence number is odd
 * while control writes, and an lcore that sees it change tries again in its next iteration. Nobody waits for anybody.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "flow/timeouts.h"
#include "offload/agent.h"

struct lcore;

struct settings {
	struct flow_timeouts timeouts;
	uint32_t active_s;
	/* answers to rejected packets, and log lines, that all workers make in a second; 0: none */
	uint32_t reject_rate, log_rate;
	struct agent_settings offload;
};

#define SETTINGS_WORDS ((sizeof(struct settings) + 3) / 4)

/* One for all lcores; zeroed at first. */
struct settings_board {
	_Atomic uint32_t sequence;
	_Atomic uint32_t words[SETTINGS_WORDS];
};

/* Control's. */
void settings_put(struct settings_board *board, const struct settings *settings);

/* The lcore's, between two bursts: takes over what it has not yet. */
void settings_take(struct lcore *lcore);
