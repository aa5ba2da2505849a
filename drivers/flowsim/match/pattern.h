/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A rule's pattern, from rte_flow items to bytes: what the items mean is rte_flow.h's, and what that leaves open is
 * this. A pattern owns no memory.
 *
 * A packet is looked at from its first byte, in its first segment. What the frame's end cuts is not there, nor is
 * anything behind it; what has to be there of a header is its fixed part (IPv4 20 bytes, TCP 20, ICMP and ICMPv6 8,
 * an IPv6 extension header 8, and so on), options count for where the next header begins. Of the lengths that
 * headers claim only those are believed: IHL (below 5: the header is not there), lengths of extension headers,
 * GENEVE's options, GRE's flags; not the total lengths, nor TCP's data offset. Checksums are not looked at.
 *
 * Layers. Ethernet; up to two VLAN tags (TPID 0x8100, 0x88a8, 0x9100, 0x9200; a third tag ends the walk: nothing
 * behind it is there); IPv4 or IPv6, by the type behind the tags and if the version nibble agrees; of IPv6's
 * extension headers hop-by-hop, routing, destination options, authentication, mobility, HIP, shim6 are stepped over
 * and the fragment header is a layer of its own, of several the first (at most eight headers in all; a ninth, or
 * ESP, ends the walk); then TCP, UDP, SCTP, ICMP (over IPv4) or ICMPv6 (over IPv6) by protocol number. A fragment
 * with an offset above 0 has no layer 4, nor a tunnel. Then a tunnel: over UDP by its destination port VXLAN
 * (4789), GENEVE (6081), GTP-U (2152, version 1, protocol type 1, message 255); GRE by protocol 47 with version 0
 * (with RFC 1701's routing bit nothing behind it is there). Inside it a second level: Ethernet in VXLAN, and in
 * GENEVE and GRE with type 0x6558; IPv4 or IPv6 by type in GENEVE and GRE, by the version nibble in GTP-U. GENEVE's
 * options, GRE's optional checksum, key and sequence words, GTP-U's optional word and up to four extension headers
 * (a fifth, or one of length 0, ends the walk) are stepped over. There is no third level.
 *
 * Items. A header item says that the header is there, and compares spec under mask with its bytes as they stand in
 * the frame. No mask means rte_flow's default mask of the item (`rte_flow_item_X_mask`; IPV6_FRAG_EXT has none:
 * nothing is compared), none of the three any such header. A mask or a `last` without spec is -EINVAL, as
 * rte_flow's guide says. Items stand in the order of the layers, each once a level (VLAN twice); layers need not be
 * named to be there: `pattern udp / end` is UDP over anything. VOID is skipped, ANY says nothing and may stand
 * anywhere. Another order, or one that no packet can have (`ipv4 / icmp6`, `tcp / vxlan`, `udp / gre`, `gtpu /
 * eth`), a third tag, a tunnel in a tunnel and any other item are refused with -ENOTSUP. END has to be among the
 * first 32 items, else -EINVAL.
 *
 * - ETH: `type` is what stands behind the addresses: a TPID when there is a tag. So `eth / ipv4` matches with and
 *   without tags, `eth type is 0x0800 / ipv4` without. `has_vlan` compares with whether there is a tag.
 * - VLAN: the first item is the outer tag, the second the inner one. `has_more_vlan`: whether another follows that
 *   one.
 * - IPV6: `proto` is the next header of the fixed header. The `has_..._ext` bits compare with what the walk met,
 *   ESP and fragment headers too.
 * - IPV6_FRAG_EXT: the fragment header is there.
 * - ICMP: type, code, checksum, identifier, sequence number. ICMP6: type, code, checksum.
 * - VXLAN, GENEVE, GTPU (GTP too): the first 8 bytes. GRE: 4 bytes; GRE_KEY: the key is there and is that (spec a
 *   32-bit word, default mask all ones); it stands right behind GRE, or in its place.
 * - PORT_ID, REPRESENTED_PORT, PORT_REPRESENTOR: the packet arrived at that ethdev. One of them, with a spec and
 *   all bits of the mask (else -ENOTSUP; a number above 65534: -EINVAL). First in the pattern, in transfer rules;
 *   in others only the rule's own port. A transfer rule that names no port is for packets that arrive at the port
 *   it was created on.
 *
 * Ranges. With `last`, each field of the header (as rte_flow's structures cut it; addresses of 16 bytes cannot be
 * ranges) lies between spec and last, read as a big-endian number, all three under the mask. A field whose `last`
 * under the mask is 0 or equals spec is compared as without. `last` below spec: -EINVAL. A range of an address of
 * 16 bytes, of a port item, of bits of structures that are no header bytes, and more than eight ranges in one rule:
 * -ENOTSUP.
 *
 * Templates of asynchronous rules have the masks, each rule the specs. An item of the template without a mask says
 * that the header is there, and a port item that the rule names a port; with `relaxed` it says nothing. `spec` of a
 * template counts only beside `last`: that range is the same for all its rules. A rule's items have the template's
 * types in its order (but for VOID), and a spec wherever the template has a mask that is not zero, else -EINVAL;
 * their `last` and mask are not looked at.
 */

#include <rte_flow.h>

#include "drivers/flowsim/match/view.h"

#define SIM_MAX_RANGES 8
#define SIM_MAX_ITEMS 32
#define SIM_MAX_RANGE_BYTES 6

/* Bytes `at` to `at + size` of the view, read as a big-endian number, lie in [low, high]. */
struct sim_range {
	uint16_t at;
	uint8_t size; /* 1 to 6 */
	uint64_t mask, low, high;
};

struct sim_pattern {
	uint32_t layers; /* that must be there */
	uint32_t absent; /* that must not: NICs that know packet types (kind/input_set.h) */
	uint16_t port;	 /* an item's port, or SIM_NO_PORT: the rule's own */
	uint8_t n_words; /* of the mask that are not 0 */
	uint8_t words[SIM_VIEW_WORDS]; /* their numbers, rising */
	uint64_t mask[SIM_VIEW_WORDS];
	uint64_t value[SIM_VIEW_WORDS]; /* under the mask */
	uint8_t n_ranges;
	struct sim_range ranges[SIM_MAX_RANGES];
	uint64_t
		items; /* a bit for each RTE_FLOW_ITEM_TYPE named (all known ones are below 64) but VOID */
	uint8_t input[SIM_VIEW_BYTES / 8]; /* a bit a byte of the view: the input set, ranges too */
};

/* Which item is at fault, and why: for struct rte_flow_error. */
struct sim_fault_at {
	const void *cause; /* the item or action; NULL = none in particular */
	enum rte_flow_error_type type;
	const char *message; /* static */
};

/*
 * Reads at most SIM_MAX_ITEMS items up to END. Any pointers that are not NULL must be readable as
 * rte_flow says; any bytes behind them. Returns 0; -EINVAL for what rte_flow.h forbids (no END within
 * reach, mask or last without spec, last below spec; reserved bits are ignored); -ENOTSUP for what this
 * NIC does not know: an item, an order of items, a third level or tag, ranges of long fields.
 */
int sim_pattern_parse(struct sim_pattern *pattern, const struct rte_flow_item items[],
	struct sim_fault_at *fault);

/*
 * Async rules: a template has the masks, each rule's items the values. Once for a template, then a cheap
 * look at each rule.
 *
 * The template's items: an item's mask says what is compared; without a mask it says that the header is
 * there, and of a port item that the port is the rule's to say; with `relaxed`, nothing at all. spec is
 * looked at only beside last: that range is the template's, the same for all rules.
 *
 * A rule's items have the same types in the same order (VOID does not count); only spec is looked at, and
 * has to be there where the template has a mask that is not zero.
 */
struct sim_pattern_template {
	struct sim_pattern pattern; /* but for values and port */
	uint8_t n_items;
	struct {
		uint8_t type;	  /* enum rte_flow_item_type, all known ones are below 64 */
		bool compared;	  /* needs a spec */
		uint16_t at;	  /* the header's bytes, in the view */
		uint16_t bits_at; /* and the bits that rte_flow's structure has behind them */
		uint8_t bits_shift;
	} items[SIM_MAX_ITEMS];
};

/* Errors as sim_pattern_parse(). */
int sim_pattern_template_read(struct sim_pattern_template *template,
	const struct rte_flow_item items[], bool relaxed, struct sim_fault_at *fault);

/*
 * A rule's values, pattern.n_words of them, as rte_flow.values[] has them, and the port that its items name
 * (SIM_NO_PORT: none). -EINVAL: other items than the template's, no spec, no such port number.
 */
int sim_pattern_template_fill(const struct sim_pattern_template *template, uint64_t values[],
	uint16_t *port, const struct rte_flow_item items[], struct sim_fault_at *fault);

/* Both at once, into a pattern with its values. */
int sim_pattern_parse_template(struct sim_pattern *pattern, const struct rte_flow_item template[],
	const struct rte_flow_item items[], bool relaxed, struct sim_fault_at *fault);

/* Whether a view has the layers that the pattern asks for and lies in its ranges. */
bool sim_pattern_fits(const struct sim_pattern *pattern, const struct sim_view *view);

/*
 * Whether a view matches, the port too (a packet that is being sent has none, and matches any). `own` is
 * the ethdev of the rule when its pattern names none.
 */
bool sim_pattern_match(
	const struct sim_pattern *pattern, uint16_t own, const struct sim_view *view);
