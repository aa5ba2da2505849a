/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A sample of dropped packets for those who follow them: `drop follow`. While nobody does, a dropped packet pays for one
 * test, and others for none.
 *
 * Of each reason a worker takes so many a second, and counts those that it leaves out. The samples wait in a mailbox
 * until control takes them.
 *
 * An lcore's own, but for the mailbox's other end and what has been left out, which control reads.
 */

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_mbuf.h>

#include "base/mailbox.h"
#include "base/rate_limit.h"
#include "dataplane/counters.h"
#include "packet/extract.h"

struct lcore;

/* Bytes of a packet that a sample has: Ethernet, two tags, IPv6, TCP with options, and some data. */
#define DROP_SAMPLE_BYTES 128
/* Samples that may wait, of each lcore. */
#define DROP_SAMPLES 256

/* Packets of any rule, and of none; no port has the number. And every rule of a port; no rule has the number. */
#define DROP_ANY_RULE UINT8_MAX
#define DROP_EVERY_NUMBER UINT32_MAX

struct drop_sample {
	uint64_t time_us; /* clock of the run */
	uint32_t length;
	uint32_t rule;	     /* its number */
	uint8_t rule_port;   /* the port that it was made for; DROP_ANY_RULE: no rule did it */
	uint8_t reason;	     /* enum drop_reason */
	uint8_t port, wire;  /* that it came in by, and over */
	uint8_t from, flags; /* as in struct packet_info */
	uint8_t tcp_flags;   /* where `flags` has PACKET_TCP */
	bool has_key;	     /* else it is not IP, or malformed */
	uint8_t n_bytes;     /* that are there: the first ones */
	struct flow_key key;
	uint8_t bytes[DROP_SAMPLE_BYTES];
};

/* The packets that somebody wants to see. */
struct drop_wanted {
	uint32_t reasons;  /* a bit for each enum drop_reason; 0: nothing */
	uint32_t rule;	   /* only what this rule drops, or DROP_EVERY_NUMBER, */
	uint8_t rule_port; /* of this port; or DROP_ANY_RULE */
	uint32_t rate;	   /* samples of a reason in a second, at most */
	unsigned parts;	   /* lcores that share it */
};

/* Whether the sample is wanted by its rule. */
static inline bool drop_is_of_rule(
	const struct drop_wanted *wanted, const struct drop_sample *sample)
{
	return wanted->rule_port == DROP_ANY_RULE ||
	       (sample->rule_port == wanted->rule_port &&
		       (wanted->rule == DROP_EVERY_NUMBER || sample->rule == wanted->rule));
}

struct drop_watch {
	struct drop_wanted wanted;
	struct lcore *lcore;
	struct mailbox *samples; /* NULL: nobody can follow, as in replay */
	struct rate_limit limit[DROP_N_REASONS];
	atomic_uint_fast64_t left_out[DROP_N_REASONS];
	uint64_t left_out_told[DROP_N_REASONS]; /* control's */
};

/* From now on that is wanted. */
void drop_watch_set(struct drop_watch *watch, const struct drop_wanted *wanted);

/*
 * A packet that is about to be dropped, which nobody has changed. `info`: what was read of it, or NULL. `port`: the one
 * that it came in by, or DROP_ANY_PORT: the mbuf says it.
 */
#define DROP_ANY_PORT UINT_MAX
void drop_watch_packet(struct drop_watch *watch, unsigned wire, unsigned port,
	const struct rte_mbuf *packet, const struct packet_info *info, enum drop_reason reason);

/* Packets that are dropped, and cannot be shown. */
void drop_watch_unseen(struct drop_watch *watch, enum drop_reason reason, uint64_t packets);

/* Does somebody want to see packets that are dropped? */
static inline bool drop_watch_is_on(const struct drop_watch *watch)
{
	return unlikely(watch->wanted.reasons != 0);
}
