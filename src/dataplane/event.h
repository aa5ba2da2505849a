/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* A state change on the packet path that somebody can follow. Made by an lcore, read by control. */

#include <assert.h>
#include <stdint.h>

#include "packet/key.h"

enum path_event_kind {
	PATH_EVENT_FLOW_NEW,
	PATH_EVENT_FLOW_OPEN,
	PATH_EVENT_FLOW_CLOSING,
	PATH_EVENT_FLOW_BLOCKED,      /* its packets are dropped from now on */
	PATH_EVENT_FLOW_UNBLOCKED,    /* and are not any more */
	PATH_EVENT_FLOW_END,	      /* `reason` is enum flow_end */
	PATH_EVENT_SHARDING_FALLBACK, /* `port`; RSS did not bring a packet of `key` where it should */
	PATH_EVENT_SHARDING_RETRY,    /* `port`; after that it is trusted again */
	PATH_EVENT_CROWDED, /* `worker` has far more than its share; `reason` is enum balance_of */
	PATH_EVENT_CHECKSUM_OFFLOAD, /* `port`; `key` is of a frame with an unfinished checksum */
	PATH_EVENT_FRAMES_CUT,	     /* `port`; the first frame that came in cut, and was dropped */
	PATH_EVENT_FRAMES_TOO_LONG,  /* `port`; the first that was too long to go out by it */
	PATH_EVENT_FRAMES_REFUSED,   /* `port`; the first that the kernel would not send by it */
	PATH_EVENT_LOG,		     /* something came to a rule that logs: see below */
	PATH_EVENT_OFFLOAD, /* `port`, `from`, `before`, `after`; `reason` is enum offload_reason */
	PATH_EVENT_N_KINDS,
};

struct path_event {
	struct flow_key key;
	uint64_t time_us : 48; /* clock of the run */
	uint64_t kind : 8;     /* enum path_event_kind */
	uint64_t reason : 8;
	uint8_t initiator; /* the key's end that began */
	uint8_t worker;
	uint8_t port; /* number of the port */
	uint8_t from; /* of offload: the key's end that the rule is for, and states */
	uint8_t before, after;
	/*
	 * Of a log line: the rule by its port and number; `verdict` for what comes from the end `from`, by `port`
	 * (UINT8_MAX: not known); `key` zeroed where there is no flow; and lines that were left out since the one before.
	 */
	uint8_t rule_port, by_packet;
	uint32_t rule;
	uint16_t verdict;
	uint16_t lost;
};

static_assert(sizeof(struct path_event) == 64, "small, since it is copied twice");
