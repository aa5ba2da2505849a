/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What happened to packets, counted by the one thread that owns the struct and added up by whoever
 * shows it. Every received packet ends in exactly one place:
 *	received + made here = out + delivered + sum of dropped + held
 * and for one thread alone
 *	received + made here + handed_in = out + delivered + sum of dropped + handed_out + held
 * Made here are copies and answers (mirrored, reject_replies), and what the kernel sends by a router's ports (from_kernel).
 * Live lcores count for each wire apart; replay has one wire.
 */

#include <stdint.h>

#include "action/punt.h"

/* Why a packet was dropped. The names are what users see (drop_name()). */
enum drop_reason {
	DROP_MALFORMED,	 /* a frame or IP header that is cut or cannot be */
	DROP_TCP_WINDOW, /* a segment outside the window, with tcp: strict; its later fragments */
	DROP_TCP_HEADER, /* with tcp: strict: TCP without a whole header, or that writes over one */
	DROP_HAND_OVER,	 /* the ring to another thread was full */
	DROP_OUTPUT,	 /* not taken by the port it was to leave by */
	DROP_CUT,	 /* the port it came in by had no room for all of it */
	DROP_TOO_LONG, /* the port it was to leave by, or that one's other end, takes none so long */
	DROP_BLOCKED,  /* by the verdict of its flow: the operator's list of blocks */
	DROP_RULE,     /* by a rule: its flow's verdict, or its own */
	DROP_REJECTED, /* the same, by a rule whose packets' senders are told */
	/* by the action program of its flow */
	DROP_TTL_EXPIRED,
	DROP_NO_NEXT_HOP, /* or its port is none of the engine's */
	DROP_TOO_BIG,	  /* for the MTU of the next hop */
	DROP_POLICED,
	DROP_METER, /* a meter of its rule, for its color */
	/* by a router */
	DROP_CHECKSUM,	   /* of the IPv4 header */
	DROP_OTHER_HOST,   /* a frame for another host's link address */
	DROP_MARTIAN,	   /* an address that cannot be one of a host */
	DROP_BLACKHOLE,	   /* a route that drops */
	DROP_SOURCE,	   /* no route leads back to its source, or not by that port */
	DROP_PUNT_LIMITED, /* the kernel is left no more of its kind in a second */
	DROP_PUNT_RING,	   /* the ring to the host thread was full */
	DROP_NOT_POSSIBLE, /* the packet has not what the program is to change */
	DROP_N_REASONS,
};

struct path_counters {
	uint64_t received;
	uint64_t received_bytes;
	uint64_t non_ip; /* of those received: carried without a flow */
	uint64_t out;
	uint64_t out_bytes;
	uint64_t delivered; /* to the machine itself: the sum of `punted` */
	uint64_t dropped[DROP_N_REASONS];
	/* of routers: what went to the kernel, and what was above the rate of its reason, which is dropped; and what came from it */
	uint64_t punted[PUNT_N_REASONS], punt_limited[PUNT_N_REASONS];
	uint64_t from_kernel;
	uint64_t handed_in; /* from another thread */
	uint64_t handed_out;
	/* copies that mirrors made: received + mirrored + from_kernel = out + delivered + dropped + held */
	uint64_t mirrored;
	/*
	 * Frames that the engine made to tell senders of rejected packets, and handed to their port; and those packets that were not
	 * answered: over the rate that answers may have, or not to be answered. Together they are the rejected packets:
	 * received + mirrored + reject_replies + from_kernel = out + delivered + dropped + held
	 */
	uint64_t reject_replies, reject_limited, reject_unanswered;
	/* log lines that rules made, and those that were over the rate or found no room */
	uint64_t logged, log_lost;
	/* copies for capture files, which leave by no port: handed over, and those that found no room */
	uint64_t captured, capture_lost;
	/*
	 * Not among those received: what the NIC forwarded alone, as far as it was told; of these, packets that are in no
	 * record. All packets of known flows = those of them that were received + nic_forwarded = of all records +
	 * nic_unaccounted.
	 */
	uint64_t nic_forwarded;
	uint64_t nic_forwarded_bytes;
	/*
	 * that a NIC dropped by the verdict of their flow, or by a rule, without the CPU: not received either, and in no
	 * record
	 */
	uint64_t nic_dropped;
	uint64_t nic_dropped_bytes;
	uint64_t nic_unaccounted;
	uint64_t
		held; /* a gauge: in rings, waiting for their first fragment, or for the kernel to take them */
	uint64_t fragments_untied; /* later fragments that met no first one: flows without ports */
	uint64_t
		icmp_untied; /* ICMP errors whose quoted packet is cut, of no known flow, or not to be believed */
	uint64_t
		one_sided; /* packets that opened no flow, as they came by the port of the other end */
};

/* "malformed", "tcp_window", "tcp_header", ... */
const char *drop_name(enum drop_reason reason);
/* One sentence. */
const char *drop_what(enum drop_reason reason);

void path_counters_add(struct path_counters *sum, const struct path_counters *counters);
uint64_t path_counters_dropped(const struct path_counters *counters);
