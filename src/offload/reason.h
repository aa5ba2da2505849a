/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Why a flow's offload state is what it is. One byte, per record and port; from OFFLOAD_REFUSALS on it
 * is a refusal by the port's own driver, whose errno and sentence the port keeps (offload/refusal.h).
 */

#include <stdint.h>

/* Each has a name, and one sentence that begins with a small letter and has no full stop. */
#define OFFLOAD_REASONS(X)                                                                       \
	/* software */                                                                           \
	X(QUIET, quiet, "its rate is below the threshold, or was not measured yet")              \
	X(OFF, off, "offload is turned off")                                                     \
	X(NO_NIC, no_nic, "no NIC is there that takes rules and marks")                          \
	X(TRIAL, trial, "what the port does with rules for such flows could not be tried yet")   \
	X(KIND, kind, "the port takes no rules for this kind of flow")                           \
	X(MARKLESS, markless,                                                                    \
		"the port accepts rules for this kind of flow, and none has ever marked a "      \
		"packet")                                                                        \
	X(SHORT, short, "it has had too few packets")                                            \
	X(DISPLACED, displaced, "busier flows took its place in the queue")                      \
	X(OUTRANKED, outranked, "busier flows have all rules that the port has room for")        \
	X(BOTH_SIDES, both_sides, "its packets come by both ports, and are marked at the other") \
	X(OTHER_WAY, other_way,                                                                  \
		"its other direction comes by the same port, and has the rule there")            \
	X(NO_SLOT, no_slot, "no mark is free for it")                                            \
	X(BREAKER, breaker, "too much went wrong at the port, which was put to software")        \
	X(QUARANTINE, quarantine, "it fell out of the NIC, and waits before the next try")       \
	X(UNPLAIN, unplain,                                                                      \
		"most of its packets are none that a rule can be expected to match: "            \
		"fragments, or with IPv4 options, IPv6 extension headers, more than two "        \
		"VLAN tags, or cut")                                                             \
	X(REJECTED, rejected,                                                                    \
		"a rule rejects it, and software tells its sender, which no NIC does")           \
	/* on its way, and there */                                                              \
	X(BUSY, busy, "its rate reached the threshold")                                          \
	X(CANARY, canary, "it is tried to see whether the NIC keeps its word")                   \
	X(OLDER_RULE, older_rule,                                                                \
		"it waits behind an older rule of the same addresses and ports, which is "       \
		"not confirmed to be gone")                                                      \
	/* leaving, and why it was suspect */                                                    \
	X(CLOSING, closing, "a FIN or RST came, or a SYN of a flow that the NIC had alone")      \
	X(PROMOTED, promoted, "it was marked, and the NIC can forward it alone")                 \
	X(DECIDED, decided, "what is done with the flow was decided anew")                       \
	X(SLOWED, slowed, "its rate fell below half of the threshold")                           \
	X(ENDED, ended, "the flow ended, or began anew")                                         \
	X(UNSEEN, unseen, "the rule was accepted, but packets never came with the mark")         \
	X(UNMARKED, unmarked, "packets came without the mark")                                   \
	X(WRONG_MARK, wrong_mark, "packets came with a mark that is not theirs")                 \
	X(RETURNED, returned, "packets came that the NIC was to forward alone")                  \
	X(COUNTER, counter, "the NIC's counter does not move with its packets")                  \
	X(STALLED, stalled, "the NIC did not answer in time")                                    \
	X(STOPPING, stopping, "the engine ends")                                                 \
	/* of the breaker alone */                                                               \
	X(STALE, stale_rule, "a rule works on that the NIC said is gone")

#define OFFLOAD_REASON_NUMBER(reason, name, what) OFFLOAD_##reason,

enum offload_reason {
	OFFLOAD_REASONS(OFFLOAD_REASON_NUMBER) OFFLOAD_N_REASONS,
	OFFLOAD_REFUSALS = 128,
};

/* "quiet", "displaced", ... of all but refusals; those are "refused". */
const char *offload_reason_name(uint8_t reason);
/* The sentence. */
const char *offload_reason_what(uint8_t reason);
