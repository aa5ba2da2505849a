/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What several answers say of offload: reasons as sentences, refusals, and changes. */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "plane/plane.h"

#define OFFLOAD_SENTENCE_MAX 512

/* A flow's state at a port, as a sentence is wanted of it. */
struct offload_case {
	const struct plane *plane;
	const struct flow_key *key; /* of reasons that are about a flow */
	unsigned port;
	uint8_t state; /* enum offload_state */
	uint8_t reason;
	uint64_t now_us;
	uint64_t retry_us;	       /* 0: any time */
	uint64_t older_us;	       /* since when an older rule is to go; 0: not known */
	const struct agent_rank *rank; /* of the direction; NULL: not known */
};

/* Why it is so now, with what belongs to it: threshold, errno, times. */
void offload_because(char sentence[OFFLOAD_SENTENCE_MAX], const struct offload_case *of);

/* When it is asked in again, or the port is tried, at the earliest: clock of the run; 0, or the past: at any time. */
uint64_t offload_retry_us(const struct offload_case *of);

/* Why it became so at some time: the reason alone, of a refusal errno and words. */
void offload_reason_sentence(char sentence[OFFLOAD_SENTENCE_MAX], const struct plane *plane,
	unsigned port, uint8_t reason);

/*
 * Why the port's breaker is open, or tries: the same, and the way out, where calls fail and the port may not be
 * restarted.
 */
void offload_breaker_sentence(char sentence[OFFLOAD_SENTENCE_MAX], const struct plane *plane,
	unsigned port, uint8_t reason);

/* "EINVAL", or the number of an errno without a name. */
const char *offload_errno(char text[24], int error);

/* {"errno":"EINVAL","words":"..."}; words are absent where the driver had none. NULL without memory. */
json_t *offload_refusal(int error, const char *words);

/* What a rule does: "full", or "mark". */
json_t *offload_how(bool full);

/* The name of a port of the plane, "?" where there is none. */
const char *offload_port_name(const struct plane *plane, unsigned port);

/* The sentence that a change of a port is. */
void offload_change_sentence(char sentence[OFFLOAD_SENTENCE_MAX], const struct plane *plane,
	const struct offload_change *change);

/* The keys before, after, proven, reason, because, and rate_pps or took_us. */
void offload_describe_change(
	json_t *line, const struct plane *plane, const struct offload_change *change);
