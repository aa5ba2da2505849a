/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/counters.h"

#include <stddef.h>

static const struct {
	const char *name;
	const char *what;
} drops[DROP_N_REASONS] = {
	[DROP_MALFORMED] = {"malformed", "a frame or IP header that is cut or cannot be"},
	[DROP_TCP_WINDOW] = {"tcp_window", "a TCP segment outside its window, with strict TCP"},
	[DROP_TCP_HEADER] = {"tcp_header",
		"TCP without a whole header, or a fragment that writes over one, with strict TCP"},
	[DROP_HAND_OVER] = {"hand_over", "the ring to another thread was full"},
	[DROP_OUTPUT] = {"output", "not taken by the port it was to leave by"},
	[DROP_CUT] = {"cut", "longer than the port it came in by has room for"},
	[DROP_TOO_LONG] = {"too_long",
		"longer than the port it was to leave by can send, or than its other end takes"},
	[DROP_BLOCKED] = {"blocked", "of a flow that is blocked (block list)"},
	[DROP_RULE] = {"rule", "a rule drops it, or all of its flow"},
	[DROP_REJECTED] = {"rejected",
		"a rule rejects it, or all of its flow, and tells its sender"},
	[DROP_TTL_EXPIRED] = {"ttl_expired", "the TTL or hop limit of a packet to be routed was 1"},
	[DROP_NO_NEXT_HOP] = {"no_next_hop", "where it was to go is not known, or not reached"},
	[DROP_TOO_BIG] = {"too_big", "larger than the MTU of its next hop"},
	[DROP_POLICED] = {"policed", "above the rate that its flow may have"},
	[DROP_METER] = {"meter", "above the rate of the meter that its rule names"},
	[DROP_CHECKSUM] = {"ip_checksum", "the checksum of its IPv4 header is wrong"},
	[DROP_OTHER_HOST] = {"other_host", "it came to a router for another link address"},
	[DROP_MARTIAN] = {"martian", "from or to an address that no host can have"},
	[DROP_BLACKHOLE] = {"blackhole", "its route drops"},
	[DROP_SOURCE] = {"source", "no route leads back to its source, or not by that port"},
	[DROP_PUNT_LIMITED] = {"punt_limited",
		"the kernel is left no more packets of its kind in a second"},
	[DROP_PUNT_RING] = {"punt_ring", "the ring to the kernel was full"},
	[DROP_NOT_POSSIBLE] = {"not_possible", "the packet has not what was to be changed, or has "
					       "no room for what was to be added"},
};

const char *drop_name(enum drop_reason reason)
{
	return drops[reason].name;
}

const char *drop_what(enum drop_reason reason)
{
	return drops[reason].what;
}

void path_counters_add(struct path_counters *sum, const struct path_counters *counters)
{
	sum->received += counters->received;
	sum->received_bytes += counters->received_bytes;
	sum->non_ip += counters->non_ip;
	sum->out += counters->out;
	sum->out_bytes += counters->out_bytes;
	sum->delivered += counters->delivered;
	sum->from_kernel += counters->from_kernel;
	for (unsigned i = 0; i < PUNT_N_REASONS; i++) {
		sum->punted[i] += counters->punted[i];
		sum->punt_limited[i] += counters->punt_limited[i];
	}
	sum->handed_in += counters->handed_in;
	sum->handed_out += counters->handed_out;
	sum->mirrored += counters->mirrored;
	sum->reject_replies += counters->reject_replies;
	sum->reject_limited += counters->reject_limited;
	sum->reject_unanswered += counters->reject_unanswered;
	sum->logged += counters->logged;
	sum->log_lost += counters->log_lost;
	sum->captured += counters->captured;
	sum->capture_lost += counters->capture_lost;
	sum->nic_forwarded += counters->nic_forwarded;
	sum->nic_forwarded_bytes += counters->nic_forwarded_bytes;
	sum->nic_dropped += counters->nic_dropped;
	sum->nic_dropped_bytes += counters->nic_dropped_bytes;
	sum->nic_unaccounted += counters->nic_unaccounted;
	sum->held += counters->held;
	for (unsigned i = 0; i < DROP_N_REASONS; i++)
		sum->dropped[i] += counters->dropped[i];
	sum->fragments_untied += counters->fragments_untied;
	sum->icmp_untied += counters->icmp_untied;
	sum->one_sided += counters->one_sided;
}

uint64_t path_counters_dropped(const struct path_counters *counters)
{
	uint64_t dropped = 0;

	for (unsigned i = 0; i < DROP_N_REASONS; i++)
		dropped += counters->dropped[i];
	return dropped;
}
