/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/reason.h"

static const struct {
	const char *name, *what;
} reasons[OFFLOAD_N_REASONS] = {
	[OFFLOAD_QUIET] = {"quiet", "its rate is below the threshold, or was not measured yet"},
	[OFFLOAD_OFF] = {"off", "offload is turned off"},
	[OFFLOAD_NO_NIC] = {"no_nic", "no NIC is there that takes rules and marks"},
	[OFFLOAD_TRIAL] = {"trial",
		"what the port does with rules for such flows could not be tried yet"},
	[OFFLOAD_KIND] = {"kind", "the port takes no rules for this kind of flow"},
	[OFFLOAD_MARKLESS] = {"markless",
		"the port accepts rules for this kind of flow, and none has ever marked a packet"},
	[OFFLOAD_SHORT] = {"short", "it has had too few packets"},
	[OFFLOAD_DISPLACED] = {"displaced", "busier flows took its place in the queue"},
	[OFFLOAD_OUTRANKED] = {"outranked",
		"busier flows have all rules that the port has room for"},
	[OFFLOAD_BOTH_SIDES] = {"both_sides",
		"its packets come by both ports, and are marked at the other"},
	[OFFLOAD_OTHER_WAY] = {"other_way",
		"its other direction comes by the same port, and has the rule there"},
	[OFFLOAD_NO_SLOT] = {"no_slot", "no mark is free for it"},
	[OFFLOAD_BREAKER] = {"breaker",
		"too much went wrong at the port, which was put to software"},
	[OFFLOAD_QUARANTINE] = {"quarantine",
		"it fell out of the NIC, and waits before the next try"},
	[OFFLOAD_UNPLAIN] = {"unplain",
		"most of its packets are none that a rule can be expected to match: fragments, or "
		"with IPv4 options, IPv6 extension headers, more than two VLAN tags, or cut"},
	[OFFLOAD_REJECTED] = {"rejected",
		"a rule rejects it, and software tells its sender, which no NIC does"},
	[OFFLOAD_BUSY] = {"busy", "its rate reached the threshold"},
	[OFFLOAD_CANARY] = {"canary", "it is tried to see whether the NIC keeps its word"},
	[OFFLOAD_OLDER_RULE] = {"older_rule",
		"it waits behind an older rule of the same addresses and ports, which is not "
		"confirmed to be gone"},
	[OFFLOAD_CLOSING] = {"closing",
		"a FIN or RST came, or a SYN of a flow that the NIC had alone"},
	[OFFLOAD_PROMOTED] = {"promoted", "it was marked, and the NIC can forward it alone"},
	[OFFLOAD_DECIDED] = {"decided", "what is done with the flow was decided anew"},
	[OFFLOAD_SLOWED] = {"slowed", "its rate fell below half of the threshold"},
	[OFFLOAD_ENDED] = {"ended", "the flow ended, or began anew"},
	[OFFLOAD_UNSEEN] = {"unseen",
		"the rule was accepted, but packets never came with the mark"},
	[OFFLOAD_UNMARKED] = {"unmarked", "packets came without the mark"},
	[OFFLOAD_WRONG_MARK] = {"wrong_mark", "packets came with a mark that is not theirs"},
	[OFFLOAD_RETURNED] = {"returned", "packets came that the NIC was to forward alone"},
	[OFFLOAD_COUNTER] = {"counter", "the NIC's counter does not move with its packets"},
	[OFFLOAD_STALLED] = {"stalled", "the NIC did not answer in time"},
	[OFFLOAD_STOPPING] = {"stopping", "the engine ends"},
	[OFFLOAD_STALE] = {"stale_rule", "a rule works on that the NIC said is gone"},
};

const char *offload_reason_name(uint8_t reason)
{
	if (reason >= OFFLOAD_REFUSALS)
		return "refused";
	return reason < OFFLOAD_N_REASONS ? reasons[reason].name : "unknown";
}

const char *offload_reason_what(uint8_t reason)
{
	if (reason >= OFFLOAD_REFUSALS)
		return "the NIC's driver refused it";
	return reason < OFFLOAD_N_REASONS ? reasons[reason].what : "nobody knows";
}
