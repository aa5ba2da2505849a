/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The device arguments: what stands behind `net_flowsim0,`. An unknown word, a value that cannot be read
 * or two words that contradict each other make the probe fail with a line that names them.
 *
 * Sources (one of them):
 *   flows=N          streams by seed (1024)     capture=FILE     the packets of a capture, again and again
 *   port=DEVICE      another port's packets: the name of a DPDK device that was named before, which this
 *                    port takes over           source=none      nothing arrives (tests; egress)
 * Streams: seed=N load=order|uniform|zipf[:S] side=forward|reverse|both size=N|N-N|imix
 *   proto=udp|tcp|sctp|icmp|mix ipv6=PERCENT vlan=PERCENT
 * Both known sources: passes=N (rounds, then silence; 0: endless), rate=N (packets a second of rounds
 *   that reach no worker; 10000000), cold=1 (packets lie as cold as DMA leaves them)
 * port=: nic_core=N (a thread of the NIC on that processor matches; -1: a thread on any)
 * The NIC: nic=NAME (ports of one name are of one NIC and can forward to each other)
 *   profile=NAME, and each limit by its own word: rules= create_ns= destroy_ns= flush_ns= query_ns= spin=
 *   rate_rules= answer_ns= mark_bits= groups= priorities= transfer= egress= async= sync= actions=+count-mark
 *   items=udp+ipv4 ranges= fate_needed= input_set=any|per_type|exact keep_rules= hostile=0|1|WORD+WORD
 *   queues=N (most receive and transmit queues; 16) mac=ADDRESS link_mbps=N
 * Faults: fault=NAME:VALUE..., several separated by '/' or by another fault= (port/fault_text.h);
 *   counter_bits=N; ghost=N
 *
 * Lists of actions, items and hostile words: WORD+WORD is these and no others; one that begins with '+' or
 * '-' adds to what the profile has, or takes away. A word is given once, but for fault=. A ',' within
 * brackets separates nothing: fault=[fail:every=3,errno=5].
 */

#include <limits.h>

#include "base/error.h"
#include "drivers/flowsim/kind/profile.h"
#include "traffic/sequence.h"
#include "traffic/stream.h"

#define SIM_MAX_QUEUES 16

enum sim_source_kind {
	SIM_SOURCE_STREAMS,
	SIM_SOURCE_CAPTURE,
	SIM_SOURCE_PORT,
	SIM_SOURCE_NONE,
};

struct sim_args {
	enum sim_source_kind source;
	struct stream_config streams;
	struct sequence_config sequence;
	enum stream_sides sides;
	char capture[PATH_MAX];
	uint16_t written; /* bytes of a packet, at most; 0: all */
	char port[160];
	uint64_t passes;
	uint64_t rate;
	uint64_t pace; /* 0: packets come whenever somebody asks */
	bool cold;
	bool nic_thread;
	int nic_core;		    /* -1: any */
	char nic[64];		    /* empty: a NIC of its own */
	struct sim_profile profile; /* with what was said over it */
	uint16_t max_queues;
	uint8_t mac[6];
	bool has_mac;
	uint32_t link_mbps;
	char faults[512]; /* read by sim_fault_parse() when the port is made */
	uint32_t ghosts;
	unsigned counter_bits;
};

/* `words` is the text after the device's name, or NULL. Returns 0, -EINVAL or -ENOMEM. */
int sim_args_parse(struct sim_args *args, const char *words, struct error *error);

/*
 * The words, for RTE_PMD_REGISTER_PARAM_STRING and the docs' test.
 */
#define SIM_ARGS_HELP                                                                          \
	"flows=<n> capture=<file> port=<device> source=none seed=<n> "                         \
	"load=order|uniform|zipf[:<s>] side=forward|reverse|both size=<n>|<n>-<n>|imix "       \
	"proto=udp|tcp|sctp|icmp|mix ipv6=<percent> vlan=<percent> passes=<n> rate=<n> "       \
	"pace=<n> written=<n> "                                                                \
	"cold=0|1 nic_core=<n> nic=<name> profile=<name> rules=<n> create_ns=<n> "             \
	"destroy_ns=<n> flush_ns=<n> query_ns=<n> spin=0|1 rate_rules=<n> answer_ns=<n> "      \
	"mark_bits=<n> groups=<n> priorities=<n> transfer=0|1 egress=0|1 async=0|1 sync=0|1 "  \
	"actions=<list> items=<list> ranges=0|1 fate_needed=0|1 input_set=any|per_type|exact " \
	"keep_rules=0|1 hostile=0|1|<list> queues=<n> mac=<address> link_mbps=<n> "            \
	"fault=<faults> counter_bits=<n> ghost=<n>"
