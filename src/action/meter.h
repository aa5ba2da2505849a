/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Meters: how much of the packets of all rules that name one is within a rate, as a color for each packet. The
 * colors are those of librte_meter: RFC 2697 (one rate), RFC 2698 and RFC 4115 (two rates), color-blind.
 *
 * A meter is one for all workers: it has a lock, which a worker holds for the few dozen cycles that a color takes. So
 * what passes does not depend on how flows are spread over workers. Packets of flows without a meter never see it.
 *
 * Lengths are those of frames, as in all counters. Time is of the run's clock in nanoseconds, which is the
 * capture's in replay; for that the profiles are computed here and not by librte_meter, which counts in
 * cycles of the machine. Rates are met to 0.05 %. Workers' clocks differ a little: time that runs back stands still.
 *
 * Threads: one writer sets meters up and changes them; any number of workers ask action_meter_color().
 */

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>
#include <rte_meter.h>
#include <rte_spinlock.h>

#include "base/error.h"

enum action_meter_kind {
	ACTION_METER_SRTCM,	   /* RFC 2697: a rate, its burst, and an excess burst */
	ACTION_METER_TRTCM,	   /* RFC 2698: a committed and a peak rate, each with its burst */
	ACTION_METER_TRTCM_EXCESS, /* RFC 4115: a committed and an excess rate, each with its burst */
};

/* Units a second, at most: 100 Tbit/s of bytes. And units of a burst, at most. */
#define ACTION_METER_MAX_RATE UINT64_C(12500000000000)
#define ACTION_METER_MAX_BURST (UINT64_C(1) << 56)

struct action_meter_limits {
	enum action_meter_kind kind;
	bool packets;		    /* units are packets, not bytes */
	uint64_t rate[2], burst[2]; /* committed, and the other; ACTION_METER_SRTCM has one rate */
};

struct action_meter_profile {
	enum action_meter_kind kind;
	bool packets;
	union {
		struct rte_meter_srtcm_profile srtcm;
		struct rte_meter_trtcm_profile trtcm;
		struct rte_meter_trtcm_rfc4115_profile excess;
	};
};

struct action_meter {
	alignas(RTE_CACHE_LINE_SIZE) rte_spinlock_t lock;
	bool enabled;	 /* else all packets are green, and take nothing */
	uint8_t drops;	 /* a bit for each color whose packets are dropped */
	uint64_t now_ns; /* never runs back */
	union {
		struct rte_meter_srtcm srtcm;
		struct rte_meter_trtcm trtcm;
		struct rte_meter_trtcm_rfc4115 excess;
	};
	struct action_meter_profile profile;
};

/* The answer of a meter for one packet. */
struct action_meter_answer {
	enum rte_color color;
	bool drops;
};

/* 0, or -EINVAL: a rate or a burst is not possible. */
int action_meter_profile_init(struct action_meter_profile *profile,
	const struct action_meter_limits *limits, struct error *error);

/* The writer: a new meter with full buckets, which no worker knows yet. */
void action_meter_init(struct action_meter *meter, const struct action_meter_profile *profile,
	uint8_t drops, bool enabled);
/* The writer, while workers use it: another profile, with full buckets; and whether it is enabled. */
void action_meter_change(struct action_meter *meter, const struct action_meter_profile *profile);
void action_meter_enable(struct action_meter *meter, bool enabled);
/* The clock begins anew, and the buckets are full. */
void action_meter_restart(struct action_meter *meter);

/* A worker: a packet of `bytes` that came at `now_ns`. */
struct action_meter_answer action_meter_color(
	struct action_meter *meter, uint64_t now_ns, uint32_t bytes);
