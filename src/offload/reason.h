/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Why a flow's offload state is what it is. One byte, per record and port; from OFFLOAD_REFUSALS on it
 * is a refusal by the port's own driver, whose errno and sentence the port keeps (offload/refusal.h).
 */

#include <stdint.h>

enum offload_reason {
	/* software */
	OFFLOAD_QUIET = 0,  /* its rate is below the threshold, or was not measured yet */
	OFFLOAD_OFF,	    /* offload is turned off */
	OFFLOAD_NO_NIC,	    /* no NIC is there that takes rules and marks */
	OFFLOAD_TRIAL,	    /* what the port does with such flows could not be tried yet */
	OFFLOAD_KIND,	    /* the port takes no rules for this kind of flow */
	OFFLOAD_MARKLESS,   /* rules for this kind of flow are accepted, and never mark */
	OFFLOAD_SHORT,	    /* it has had too few packets */
	OFFLOAD_DISPLACED,  /* busier flows took its place in the queue, or have all of them */
	OFFLOAD_OUTRANKED,  /* the port's rules are with busier flows; also why it leaves */
	OFFLOAD_BOTH_SIDES, /* its packets come by both ports, and are marked at the other */
	OFFLOAD_OTHER_WAY,  /* its other direction comes by the same port, and has the rule there */
	OFFLOAD_NO_SLOT,    /* no mark is free for it */
	OFFLOAD_BREAKER,    /* the port was put to software */
	OFFLOAD_QUARANTINE, /* it fell out of the NIC, and waits before the next try */
	OFFLOAD_UNPLAIN,    /* most of its packets are none that rules match; also why it leaves */
	OFFLOAD_REJECTED,   /* its senders are told that it is dropped, which no NIC does */
	/* on its way, and there */
	OFFLOAD_BUSY,	    /* its rate reached the threshold */
	OFFLOAD_CANARY,	    /* tried to see whether the NIC keeps its word */
	OFFLOAD_OLDER_RULE, /* busy, and behind a rule of who had its key, which is not surely gone */
	/* leaving, and why it was suspect */
	OFFLOAD_CLOSING, /* it is about to end; or the NIC had it alone, and a SYN, FIN or RST came */
	OFFLOAD_PROMOTED,   /* it was marked, and the NIC can forward it alone */
	OFFLOAD_DECIDED,    /* what is done with the flow was decided anew */
	OFFLOAD_SLOWED,	    /* its rate fell below half of the threshold */
	OFFLOAD_ENDED,	    /* the flow ended, or began anew */
	OFFLOAD_UNSEEN,	    /* accepted, but packets never came with the mark */
	OFFLOAD_UNMARKED,   /* packets came without the mark */
	OFFLOAD_WRONG_MARK, /* packets came with a mark that is not theirs */
	OFFLOAD_RETURNED,   /* packets came that the NIC was to forward alone */
	OFFLOAD_COUNTER,    /* the NIC's counter does not move with its packets */
	OFFLOAD_STALLED,    /* the NIC did not answer in time */
	OFFLOAD_STOPPING,   /* the engine ends */
	/* of the breaker alone */
	OFFLOAD_STALE, /* a rule works on that the NIC said is gone */
	OFFLOAD_N_REASONS,
	OFFLOAD_REFUSALS = 128,
};

/* "quiet", "displaced", ... of all but refusals; those are "refused". */
const char *offload_reason_name(uint8_t reason);
/* One sentence that begins with a small letter and has no full stop. */
const char *offload_reason_what(uint8_t reason);
