/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of pattern items. */
#include "rule/grammar.h"

#include <rte_l2tpv2.h>

#include "rule/field.h"
#include "rule/words.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "bit-fields begin at the lowest bit");

static const struct rule_field any_fields[] = {
	HOST("num", struct rte_flow_item_any, num, "number of layers"),
};

static const struct rule_field port_id_fields[] = {
	HOST("id", struct rte_flow_item_port_id, id, "DPDK port"),
};

static const struct rule_field mark_fields[] = {
	HOST("id", struct rte_flow_item_mark, id,
		"number that an earlier rule marked the packet with"),
};

#define RAW struct rte_flow_item_raw
static const struct rule_field raw_fields[] = {
	BITS("relative", RULE_BOOLEAN, 0, 4, 0, 1,
		"the offset counts from the end of the item before"),
	BITS("search", RULE_BOOLEAN, 0, 4, 1, 1, "search from the offset on"),
	{FIELD("offset", RULE_SIGNED, RAW, offset, "where the bytes stand")},
	HOST("limit", RAW, limit, "how far to search"),
	{FIELD("pattern", RULE_STRING, RAW, pattern, "the bytes, as a word"), .max = 512,
		.length_offset = offsetof(RAW, length) + 1, .length_width = SIZE_OF(RAW, length),
		.flags = RULE_NO_RANGE | RULE_ALIAS},
	{FIELD("pattern_hex", RULE_HEX, RAW, pattern, "the bytes, in hexadecimal digits"),
		.max = 512, .length_offset = offsetof(RAW, length) + 1,
		.length_width = SIZE_OF(RAW, length), .flags = RULE_NO_RANGE},
};

#define ETH struct rte_flow_item_eth
static const struct rule_field eth_fields[] = {
	MAC("dst", ETH, hdr.dst_addr, "destination address"),
	MAC("src", ETH, hdr.src_addr, "source address"),
	NET_HEX("type", ETH, hdr.ether_type, "EtherType or TPID"),
	BITS("has_vlan", RULE_NUMBER, BITS_AFTER(ETH, hdr), 1, 0, 1, "a VLAN tag follows"),
};

#define VLAN struct rte_flow_item_vlan
static const struct rule_field vlan_fields[] = {
	{FIELD("tci", RULE_NUMBER, VLAN, hdr.vlan_tci, "tag control information: pcp, dei and vid"),
		.big_endian = true, .flags = RULE_WHOLE},
	NET_BITS("pcp", VLAN, hdr.vlan_tci, 13, 3, "priority"),
	NET_BITS("dei", VLAN, hdr.vlan_tci, 12, 1, "drop eligible"),
	NET_BITS("vid", VLAN, hdr.vlan_tci, 0, 12, "VLAN number"),
	NET_HEX("inner_type", VLAN, hdr.eth_proto, "EtherType or TPID that follows"),
	BITS("has_more_vlan", RULE_NUMBER, BITS_AFTER(VLAN, hdr), 1, 0, 1,
		"another VLAN tag follows"),
};

#define IP4 struct rte_flow_item_ipv4
static const struct rule_field ipv4_fields[] = {
	NET("version_ihl", IP4, hdr.version_ihl, "version and header length"),
	NET("tos", IP4, hdr.type_of_service, "type of service"),
	NET("length", IP4, hdr.total_length, "total length"),
	NET("packet_id", IP4, hdr.packet_id, "identification"),
	NET("fragment_offset", IP4, hdr.fragment_offset, "flags and fragment offset"),
	NET("ttl", IP4, hdr.time_to_live, "time to live"),
	NET("proto", IP4, hdr.next_proto_id, "protocol that follows"),
	IPV4("src", IP4, hdr.src_addr, "source address"),
	IPV4("dst", IP4, hdr.dst_addr, "destination address"),
	SET_NAME("from_set", struct rule_ipv4, sets.src, "set that the source address is in"),
	SET_NAME("to_set", struct rule_ipv4, sets.dst, "set that the destination address is in"),
};

#define IP6 struct rte_flow_item_ipv6
static const struct rule_field ipv6_fields[] = {
	NET_BITS("tc", IP6, hdr.vtc_flow, 20, 8, "traffic class"),
	NET_BITS("flow", IP6, hdr.vtc_flow, 0, 20, "flow label"),
	NET("length", IP6, hdr.payload_len, "payload length"),
	NET("proto", IP6, hdr.proto, "next header"),
	NET("hop", IP6, hdr.hop_limits, "hop limit"),
	IPV6("src", IP6, hdr.src_addr, "source address"),
	IPV6("dst", IP6, hdr.dst_addr, "destination address"),
	BITS("has_frag_ext", RULE_NUMBER, BITS_AFTER(IP6, hdr), 1, 2, 1,
		"there is a fragment header"),
	SET_NAME("from_set", struct rule_ipv6, sets.src, "set that the source address is in"),
	SET_NAME("to_set", struct rule_ipv6, sets.dst, "set that the destination address is in"),
};

static const struct rule_field icmp_fields[] = {
	NET("type", struct rte_flow_item_icmp, hdr.icmp_type, "type"),
	NET("code", struct rte_flow_item_icmp, hdr.icmp_code, "code"),
	NET("ident", struct rte_flow_item_icmp, hdr.icmp_ident, "identifier"),
	NET("seq", struct rte_flow_item_icmp, hdr.icmp_seq_nb, "sequence number"),
};

static const struct rule_field udp_fields[] = {
	NET("src", struct rte_flow_item_udp, hdr.src_port, "source port"),
	NET("dst", struct rte_flow_item_udp, hdr.dst_port, "destination port"),
};

static const struct rule_field tcp_fields[] = {
	NET("src", struct rte_flow_item_tcp, hdr.src_port, "source port"),
	NET("dst", struct rte_flow_item_tcp, hdr.dst_port, "destination port"),
	NET("flags", struct rte_flow_item_tcp, hdr.tcp_flags, "flags"),
};

static const struct rule_field sctp_fields[] = {
	NET("src", struct rte_flow_item_sctp, hdr.src_port, "source port"),
	NET("dst", struct rte_flow_item_sctp, hdr.dst_port, "destination port"),
	NET("tag", struct rte_flow_item_sctp, hdr.tag, "verification tag"),
	NET("cksum", struct rte_flow_item_sctp, hdr.cksum, "checksum"),
};

#define VXLAN struct rte_flow_item_vxlan
static const struct rule_field vxlan_fields[] = {
	NET_BITS("vni", VXLAN, hdr.vx_vni, 8, 24, "VXLAN network identifier"),
	NET_BITS("flag_g", VXLAN, hdr.vx_flags, 31, 1, "flag G: group based policy"),
	NET_BITS("flag_ver", VXLAN, hdr.vx_flags, 28, 2, "version"),
	NET_BITS("flag_i", VXLAN, hdr.vx_flags, 27, 1, "flag I: there is a VNI"),
	NET_BITS("flag_p", VXLAN, hdr.vx_flags, 26, 1, "flag P: there is a protocol"),
	NET_BITS("flag_b", VXLAN, hdr.vx_flags, 25, 1, "flag B"),
	NET_BITS("flag_o", VXLAN, hdr.vx_flags, 24, 1, "flag O: management"),
	NET_BITS("flag_d", VXLAN, hdr.vx_flags, 22, 1, "flag D: do not learn"),
	NET_BITS("flag_a", VXLAN, hdr.vx_flags, 19, 1, "flag A: policy applied"),
	NET_BITS("group_policy_id", VXLAN, hdr.vx_flags, 0, 16, "group policy number"),
	{FIELD("protocol", RULE_NUMBER, VXLAN, hdr.vx_flags, "protocol that follows"),
		.big_endian = true, .bits = 8, .flags = RULE_ALIAS},
	{FIELD("last_rsvd", RULE_NUMBER, VXLAN, hdr.vx_vni, "last reserved byte"),
		.big_endian = true, .bits = 8},
};

static const struct rule_field e_tag_fields[] = {
	NET_BITS("grp_ecid_b", struct rte_flow_item_e_tag, rsvd_grp_ecid_b, 0, 14,
		"GRP and E-CID base"),
};

static const struct rule_field nvgre_fields[] = {
	NET("tni", struct rte_flow_item_nvgre, tni, "virtual subnet identifier"),
};

static const struct rule_field mpls_fields[] = {
	NET_BITS("label", struct rte_flow_item_mpls, label_tc_s, 4, 20, "label"),
	NET_BITS("tc", struct rte_flow_item_mpls, label_tc_s, 1, 3, "traffic class"),
	NET_BITS("s", struct rte_flow_item_mpls, label_tc_s, 0, 1, "bottom of stack"),
	NET("ttl", struct rte_flow_item_mpls, ttl, "time to live"),
};

#define GRE struct rte_flow_item_gre
static const struct rule_field gre_fields[] = {
	NET_HEX("protocol", GRE, protocol, "protocol that follows"),
	{FIELD("c_rsvd0_ver", RULE_NUMBER, GRE, c_rsvd0_ver, "the first 16 bits"),
		.big_endian = true, .flags = RULE_WHOLE},
	{FIELD("c_bit", RULE_BOOLEAN, GRE, c_rsvd0_ver, "there is a checksum"), .big_endian = true,
		.shift = 15, .bits = 1},
	{FIELD("k_bit", RULE_BOOLEAN, GRE, c_rsvd0_ver, "there is a key"), .big_endian = true,
		.shift = 13, .bits = 1},
	{FIELD("s_bit", RULE_BOOLEAN, GRE, c_rsvd0_ver, "there is a sequence number"),
		.big_endian = true, .shift = 12, .bits = 1},
};

static const struct rule_field gre_key_fields[] = {
	{.name = "value", .what = "the key", .kind = RULE_NUMBER, .width = 4, .big_endian = true},
};

static const struct rule_field gre_option_fields[] = {
	NET("checksum", struct rte_flow_item_gre_opt, checksum_rsvd.checksum, "checksum"),
	NET("key", struct rte_flow_item_gre_opt, key.key, "key"),
	NET("sequence", struct rte_flow_item_gre_opt, sequence.sequence, "sequence number"),
};

static const struct rule_field fuzzy_fields[] = {
	HOST("thresh", struct rte_flow_item_fuzzy, thresh, "how exact a match has to be"),
};

#define GTP struct rte_flow_item_gtp
static const struct rule_field gtp_fields[] = {
	NET("v_pt_rsv_flags", GTP, v_pt_rsv_flags, "version, protocol type and flags"),
	NET("msg_type", GTP, msg_type, "message type"),
	NET("teid", GTP, teid, "tunnel endpoint identifier"),
};

#define GENEVE struct rte_flow_item_geneve
static const struct rule_field geneve_fields[] = {
	NET("vni", GENEVE, vni, "virtual network identifier"),
	NET_HEX("protocol", GENEVE, protocol, "protocol that follows"),
	NET_BITS("optlen", GENEVE, ver_opt_len_o_c_rsvd0, 8, 6,
		"length of the options in 32-bit words"),
};

#define GENEVE_OPT struct rte_flow_item_geneve_opt
static const struct rule_field geneve_opt_fields[] = {
	NET("class", GENEVE_OPT, option_class, "option class"),
	HOST("type", GENEVE_OPT, option_type, "option type"),
	{FIELD("length", RULE_NUMBER, GENEVE_OPT, option_len, "length of the data in 32-bit words"),
		.max = 31},
	{FIELD("data", RULE_HEX, GENEVE_OPT, data, "the data"), .max = 124, .flags = RULE_NO_RANGE},
};

#define VXLAN_GPE struct rte_flow_item_vxlan_gpe
static const struct rule_field vxlan_gpe_fields[] = {
	NET("vni", VXLAN_GPE, vni, "VXLAN-GPE network identifier"),
	NET("protocol", VXLAN_GPE, protocol, "protocol that follows"),
	NET("flags", VXLAN_GPE, flags, "flags"),
	NET("rsvd0", VXLAN_GPE, rsvd0, "reserved bytes behind the flags"),
	NET("rsvd1", VXLAN_GPE, rsvd1, "last reserved byte"),
};

#define ARP struct rte_flow_item_arp_eth_ipv4
static const struct rule_field arp_fields[] = {
	MAC("sha", ARP, sha, "sender's MAC address"),
	IPV4("spa", ARP, spa, "sender's IPv4 address"),
	MAC("tha", ARP, tha, "target's MAC address"),
	IPV4("tpa", ARP, tpa, "target's IPv4 address"),
};

static const struct rule_field ipv6_ext_fields[] = {
	NET("next_hdr", struct rte_flow_item_ipv6_ext, next_hdr, "next header"),
};

#define FRAG struct rte_flow_item_ipv6_frag_ext
static const struct rule_field ipv6_frag_ext_fields[] = {
	NET("next_hdr", FRAG, hdr.next_header, "next header"),
	NET("frag_data", FRAG, hdr.frag_data, "fragment offset and flags"),
	NET("packet_id", FRAG, hdr.id, "identification"),
};

static const struct rule_field icmp6_fields[] = {
	NET("type", struct rte_flow_item_icmp6, type, "type"),
	NET("code", struct rte_flow_item_icmp6, code, "code"),
};

static const struct rule_field nd_ns_fields[] = {
	IPV6("target_addr", struct rte_flow_item_icmp6_nd_ns, target_addr, "target address"),
};

static const struct rule_field nd_na_fields[] = {
	IPV6("target_addr", struct rte_flow_item_icmp6_nd_na, target_addr, "target address"),
};

static const struct rule_field nd_opt_fields[] = {
	NET("type", struct rte_flow_item_icmp6_nd_opt, type, "option type"),
};

static const struct rule_field nd_sla_fields[] = {
	MAC("sla", struct rte_flow_item_icmp6_nd_opt_sla_eth, sla, "source's MAC address"),
};

static const struct rule_field nd_tla_fields[] = {
	MAC("tla", struct rte_flow_item_icmp6_nd_opt_tla_eth, tla, "target's MAC address"),
};

static const struct rule_field meta_fields[] = {
	HOST("data", struct rte_flow_item_meta, data, "the packet's metadata"),
};

/* The struct's members are bit-fields of bytes: length; type; QFI. */
static const struct rule_field gtp_psc_fields[] = {
	BITS("qfi", RULE_NUMBER, 2, 1, 0, 6, "QoS flow identifier"),
	BITS("pdu_t", RULE_NUMBER, 1, 1, 4, 4, "PDU type"),
	{.name = "pdu_type",
		.what = "the same as pdu_t",
		.kind = RULE_NUMBER,
		.offset = 1,
		.width = 1,
		.shift = 4,
		.bits = 4,
		.flags = RULE_ALIAS},
};

static const struct rule_field pppoe_fields[] = {
	NET("seid", struct rte_flow_item_pppoe, session_id, "session identifier"),
	{FIELD("session_id", RULE_NUMBER, struct rte_flow_item_pppoe, session_id,
		 "the same as seid"),
		.big_endian = true, .flags = RULE_ALIAS},
};

static const struct rule_field pppoe_proto_id_fields[] = {
	NET("", struct rte_flow_item_pppoe_proto_id, proto_id, "PPP protocol"),
	{FIELD("proto_id", RULE_NUMBER, struct rte_flow_item_pppoe_proto_id, proto_id,
		 "PPP protocol"),
		.big_endian = true, .flags = RULE_ALIAS},
};

static const struct rule_field higig2_fields[] = {
	NET("classification", struct rte_flow_item_higig2_hdr, hdr.ppt1.classification,
		"classification"),
	NET("vid", struct rte_flow_item_higig2_hdr, hdr.ppt1.vid, "VLAN number"),
};

static const struct rule_field tag_fields[] = {
	HOST("data", struct rte_flow_item_tag, data, "the tag's value"),
	{FIELD("index", RULE_NUMBER, struct rte_flow_item_tag, index, "which tag"),
		.flags = RULE_IS_ONLY},
};

static const struct rule_field l2tpv3oip_fields[] = {
	NET("session_id", struct rte_flow_item_l2tpv3oip, session_id, "session identifier"),
};

static const struct rule_field esp_fields[] = {
	NET("spi", struct rte_flow_item_esp, hdr.spi, "security parameters index"),
};

static const struct rule_field ah_fields[] = {
	NET("spi", struct rte_flow_item_ah, spi, "security parameters index"),
};

static const struct rule_field pfcp_fields[] = {
	NET("s_field", struct rte_flow_item_pfcp, s_field, "S flag"),
	NET("seid", struct rte_flow_item_pfcp, seid, "session endpoint identifier"),
};

enum {
	ECPRI_IQ_DATA = 1,
	ECPRI_RTC_CTRL = 2,
	ECPRI_DELAY = 4,
};

/* The message's type is the second byte of the header. */
static const struct rule_field ecpri_fields[] = {
	{.name = "common", .what = "nothing; it may stand before type", .kind = RULE_EMPTY},
	{.name = "type",
		.what = "message type; the other fields depend on it",
		.kind = RULE_VARIANT,
		.offset = 1,
		.width = 1,
		.words = rule_ecpri_types},
	{FIELD("pc_id", RULE_NUMBER, struct rte_flow_item_ecpri, hdr.type0.pc_id,
		 "physical channel"),
		.big_endian = true, .variants = ECPRI_IQ_DATA},
	{FIELD("rtc_id", RULE_NUMBER, struct rte_flow_item_ecpri, hdr.type2.rtc_id,
		 "real-time control identifier"),
		.big_endian = true, .variants = ECPRI_RTC_CTRL},
	{FIELD("msr_id", RULE_NUMBER, struct rte_flow_item_ecpri, hdr.type5.msr_id,
		 "measurement identifier"),
		.big_endian = true, .variants = ECPRI_DELAY},
};

static const struct rule_field integrity_fields[] = {
	HOST("level", struct rte_flow_item_integrity, level, "level of encapsulation"),
	HOST("value", struct rte_flow_item_integrity, value, "bits of what has to be right"),
};

static const struct rule_field conntrack_fields[] = {
	HOST("", struct rte_flow_item_conntrack, flags, "state of the connection"),
};

#define ETHDEV struct rte_flow_item_ethdev
static const struct rule_field ct_fields[] = {
	{FIELD("state", RULE_WORDS, struct rule_ct, state,
		 "state of the conversation for packets of that direction; several with commas"),
		.flags = RULE_IS_ONLY, .words = rule_ct_states},
};

static const struct rule_field direction_fields[] = {
	{FIELD("", RULE_WORD, struct rule_direction, reverse,
		 "forward: packets of the one who began the conversation"),
		.flags = RULE_IS_ONLY, .words = rule_directions},
};

static const struct rule_field source_fields[] = {
	{FIELD("new_flows", RULE_NUMBER, struct rule_source, new_flows,
		 "flows that the source may begin in a time, see per and burst"),
		.flags = RULE_ABOVE},
	{FIELD("live_flows", RULE_NUMBER, struct rule_source, live_flows,
		 "flows that the source may have at once"),
		.flags = RULE_ABOVE},
	{FIELD("per", RULE_WORD, struct rule_source, per_s, "the time of new_flows"),
		.flags = RULE_BARE, .words = rule_times},
	{FIELD("burst", RULE_NUMBER, struct rule_source, burst,
		 "new flows at once; if not given, as many as new_flows"),
		.flags = RULE_BARE},
	{FIELD("ipv4_prefix", RULE_NUMBER, struct rule_source, ipv4_prefix,
		 "bits of an IPv4 address that make a source; if not given, 32"),
		.flags = RULE_BARE, .max = 32},
	{FIELD("ipv6_prefix", RULE_NUMBER, struct rule_source, ipv6_prefix,
		 "bits of an IPv6 address that make a source; if not given, 128"),
		.flags = RULE_BARE, .max = 128},
};

static const struct rule_field port_representor_fields[] = {
	HOST("port_id", ETHDEV, port_id, "DPDK port"),
	{FIELD("ethdev_port_id", RULE_NUMBER, ETHDEV, port_id, "the same as port_id"),
		.flags = RULE_ALIAS},
};

static const struct rule_field represented_port_fields[] = {
	HOST("ethdev_port_id", ETHDEV, port_id, "DPDK port"),
	{FIELD("port_id", RULE_NUMBER, ETHDEV, port_id, "the same as ethdev_port_id"),
		.flags = RULE_ALIAS},
};

/* Handle and pattern are numbers here, in the place of pointers. */
static const struct rule_field flex_fields[] = {
	{IN_POINTER_OF("item", struct rte_flow_item_flex, handle, "number of a flex item"),
		.flags = RULE_IS_ONLY},
	{IN_POINTER_OF("pattern", struct rte_flow_item_flex, pattern, "number of a flex pattern"),
		.flags = RULE_IS_ONLY},
};

/* Bits of L2TPv2's kinds of messages, in the order of rule_l2tpv2_types. */
enum {
	L2_DATA = 1,
	L2_DATA_L = 2,
	L2_DATA_S = 4,
	L2_DATA_O = 8,
	L2_DATA_L_S = 16,
	L2_CONTROL = 32,
};

#define L2TP struct rte_flow_item_l2tpv2
#define L2(a_name, m, a_variants, a_what)                                     \
	{FIELD(a_name, RULE_NUMBER, L2TP, hdr.m, a_what), .big_endian = true, \
		.variants = (a_variants)}
static const struct rule_field l2tpv2_fields[] = {
	{FIELD("type", RULE_VARIANT, L2TP, hdr.common.flags_version,
		 "kind of message; the other fields depend on it"),
		.big_endian = true, .words = rule_l2tpv2_types},
	L2("length", type6.length, L2_DATA_L | L2_DATA_L_S | L2_CONTROL, "length"),
	L2("tunnel_id", type7.tunnel_id, L2_DATA | L2_DATA_S | L2_DATA_O, "tunnel identifier"),
	L2("session_id", type7.session_id, L2_DATA | L2_DATA_S | L2_DATA_O, "session identifier"),
	L2("tunnel_id", type6.tunnel_id, L2_DATA_L | L2_DATA_L_S | L2_CONTROL, "tunnel identifier"),
	L2("session_id", type6.session_id, L2_DATA_L | L2_DATA_L_S | L2_CONTROL,
		"session identifier"),
	L2("ns", type5.ns, L2_DATA_S, "sequence number"),
	L2("nr", type5.nr, L2_DATA_S, "next sequence number that is expected"),
	L2("ns", type3.ns, L2_DATA_L_S | L2_CONTROL, "sequence number"),
	L2("nr", type3.nr, L2_DATA_L_S | L2_CONTROL, "next sequence number that is expected"),
	L2("offset_size", type4.offset_size, L2_DATA_O, "size of the offset"),
};

static const struct rule_field ppp_fields[] = {
	NET("addr", struct rte_flow_item_ppp, hdr.addr, "address"),
	NET("ctrl", struct rte_flow_item_ppp, hdr.ctrl, "control"),
	NET("proto_id", struct rte_flow_item_ppp, hdr.proto_id, "protocol that follows"),
};

static const struct rule_field meter_fields[] = {
	WORD("color", struct rte_flow_item_meter_color, color, rule_colors, "the meter's color"),
};

/* Items of later releases. */
static const struct rule_field routing_ext_fields[] = {
	LATER(0, "ext_type", RULE_NUMBER, "routing type"),
	LATER(1, "ext_next_hdr", RULE_NUMBER, "next header"),
	LATER(2, "ext_seg_left", RULE_NUMBER, "segments left"),
};

static const struct rule_field icmp6_echo_fields[] = {
	LATER(0, "ident", RULE_NUMBER, "identifier"),
	LATER(1, "seq", RULE_NUMBER, "sequence number"),
};

static const struct rule_field quota_fields[] = {
	LATER_WORD(0, "quota_state", rule_quota_states, "state of the quota"),
};

static const struct rule_field affinity_fields[] = {
	LATER(0, "affinity", RULE_NUMBER, "aggregated port"),
};

static const struct rule_field tx_queue_fields[] = {
	LATER(0, "tx_queue", RULE_NUMBER, "queue that the packet is sent by"),
};

static const struct rule_field ib_bth_fields[] = {
	LATER(0, "opcode", RULE_NUMBER, "opcode"),
	LATER(1, "pkey", RULE_NUMBER, "partition key"),
	LATER(2, "dst_qp", RULE_NUMBER, "destination queue pair"),
	LATER(3, "psn", RULE_NUMBER, "packet sequence number"),
};

static const struct rule_field ptype_fields[] = {
	LATER(0, "packet_type", RULE_NUMBER, "packet type as in mbufs"),
};

static const struct rule_field random_fields[] = {
	LATER(0, "value", RULE_NUMBER, "random value"),
};

static const struct rule_field compare_fields[] = {
	LATER_WORD(0, "op", rule_compare_ops, "comparison"),
	LATER_WORD(1, "a_type", rule_field_ids, "first field"),
	LATER(2, "a_level", RULE_NUMBER, "its level of encapsulation"),
	LATER(3, "a_tag_index", RULE_NUMBER, "its tag"),
	LATER(4, "a_type_id", RULE_NUMBER, "its option type"),
	LATER(5, "a_class", RULE_NUMBER, "its option class"),
	LATER(6, "a_offset", RULE_NUMBER, "its first bit"),
	LATER_WORD(7, "b_type", rule_field_ids, "second field"),
	LATER(8, "b_level", RULE_NUMBER, "its level of encapsulation"),
	LATER(9, "b_tag_index", RULE_NUMBER, "its tag"),
	LATER(10, "b_type_id", RULE_NUMBER, "its option type"),
	LATER(11, "b_class", RULE_NUMBER, "its option class"),
	LATER(12, "b_offset", RULE_NUMBER, "its first bit"),
	{.name = "b_value",
		.what = "a value instead of a field",
		.kind = RULE_INLINE,
		.offset = 13 * 16,
		.width = 16},
	{.name = "b_ptr",
		.what = "the same, behind a pointer",
		.kind = RULE_INLINE,
		.offset = 14 * 16,
		.width = 16},
	LATER(15, "width", RULE_NUMBER, "number of bits"),
};

static const struct rule_field vf_fields[] = {
	LATER(0, "id", RULE_NUMBER, "virtual function"),
};

static const struct rule_field phy_port_fields[] = {
	LATER(0, "index", RULE_NUMBER, "physical port"),
};

#define ITEM(a_name, a_type, s, a_fields, a_wire, a_what) \
	{.name = (a_name),                                \
		.what = (a_what),                         \
		.type = RTE_FLOW_ITEM_TYPE_##a_type,      \
		.size = sizeof(s),                        \
		.fields = (a_fields),                     \
		.n_fields = COUNT_OF(a_fields),           \
		.wire = (a_wire)}
#define OWN_ITEM(a_name, a_type, s, a_fields, a_what) \
	{.name = (a_name),                            \
		.what = (a_what),                     \
		.type = (a_type),                     \
		.size = sizeof(s),                    \
		.fields = (a_fields),                 \
		.n_fields = COUNT_OF(a_fields)}
#define BARE_ITEM(a_name, a_type, a_what) \
	{.name = (a_name), .what = (a_what), .type = RTE_FLOW_ITEM_TYPE_##a_type}
#define LATER_ITEM(a_name, a_fields, a_why, a_what)                    \
	{.name = (a_name),                                             \
		.what = (a_what),                                      \
		.type = -1,                                            \
		.size = sizeof(a_fields) / sizeof((a_fields)[0]) * 16, \
		.fields = (a_fields),                                  \
		.n_fields = COUNT_OF(a_fields),                        \
		.refused = (a_why)}

const struct rule_thing rule_items[] = {
	BARE_ITEM("end", END, "ends the list"),
	BARE_ITEM("void", VOID, "nothing"),
	BARE_ITEM("invert", INVERT, "the rule is for packets that do not match"),
	ITEM("any", ANY, struct rte_flow_item_any, any_fields, 0, "any protocol of a layer"),
	ITEM("port_id", PORT_ID, struct rte_flow_item_port_id, port_id_fields, 0,
		"the DPDK port that the packet comes from"),
	ITEM("mark", MARK, struct rte_flow_item_mark, mark_fields, 0,
		"the mark of an earlier rule"),
	ITEM("raw", RAW, struct rte_flow_item_raw, raw_fields, 0, "bytes at an offset"),
	ITEM("eth", ETH, struct rte_flow_item_eth, eth_fields, 14, "Ethernet header"),
	ITEM("vlan", VLAN, struct rte_flow_item_vlan, vlan_fields, 4, "VLAN tag"),
	ITEM("ipv4", IPV4, struct rule_ipv4, ipv4_fields, 20, "IPv4 header"),
	ITEM("ipv6", IPV6, struct rule_ipv6, ipv6_fields, 40, "IPv6 header"),
	ITEM("icmp", ICMP, struct rte_flow_item_icmp, icmp_fields, 8, "ICMP header"),
	ITEM("udp", UDP, struct rte_flow_item_udp, udp_fields, 8, "UDP header"),
	ITEM("tcp", TCP, struct rte_flow_item_tcp, tcp_fields, 20, "TCP header"),
	ITEM("sctp", SCTP, struct rte_flow_item_sctp, sctp_fields, 12, "SCTP header"),
	ITEM("vxlan", VXLAN, struct rte_flow_item_vxlan, vxlan_fields, 8, "VXLAN header"),
	ITEM("e_tag", E_TAG, struct rte_flow_item_e_tag, e_tag_fields, 0, "IEEE 802.1BR E-Tag"),
	ITEM("nvgre", NVGRE, struct rte_flow_item_nvgre, nvgre_fields, 8, "NVGRE header"),
	ITEM("mpls", MPLS, struct rte_flow_item_mpls, mpls_fields, 4, "MPLS label"),
	ITEM("gre", GRE, struct rte_flow_item_gre, gre_fields, 4, "GRE header"),
	ITEM("fuzzy", FUZZY, struct rte_flow_item_fuzzy, fuzzy_fields, 0,
		"match fast, not exactly"),
	ITEM("gtp", GTP, struct rte_flow_item_gtp, gtp_fields, 8, "GTPv1 header"),
	ITEM("gtpc", GTPC, struct rte_flow_item_gtp, gtp_fields, 8, "GTPv1 header, control plane"),
	ITEM("gtpu", GTPU, struct rte_flow_item_gtp, gtp_fields, 8, "GTPv1 header, user plane"),
	ITEM("geneve", GENEVE, struct rte_flow_item_geneve, geneve_fields, 8, "GENEVE header"),
	ITEM("vxlan-gpe", VXLAN_GPE, struct rte_flow_item_vxlan_gpe, vxlan_gpe_fields, 8,
		"VXLAN-GPE header"),
	ITEM("arp_eth_ipv4", ARP_ETH_IPV4, struct rte_flow_item_arp_eth_ipv4, arp_fields, 0,
		"ARP for IPv4"),
	ITEM("ipv6_ext", IPV6_EXT, struct rte_flow_item_ipv6_ext, ipv6_ext_fields, 0,
		"any IPv6 extension header"),
	ITEM("ipv6_frag_ext", IPV6_FRAG_EXT, struct rte_flow_item_ipv6_frag_ext,
		ipv6_frag_ext_fields, 8, "IPv6 fragment header"),
	ITEM("icmp6", ICMP6, struct rte_flow_item_icmp6, icmp6_fields, 4, "ICMPv6 header"),
	ITEM("icmp6_nd_ns", ICMP6_ND_NS, struct rte_flow_item_icmp6_nd_ns, nd_ns_fields, 24,
		"neighbor solicitation"),
	ITEM("icmp6_nd_na", ICMP6_ND_NA, struct rte_flow_item_icmp6_nd_na, nd_na_fields, 24,
		"neighbor advertisement"),
	ITEM("icmp6_nd_opt", ICMP6_ND_OPT, struct rte_flow_item_icmp6_nd_opt, nd_opt_fields, 0,
		"any option of neighbor discovery"),
	ITEM("icmp6_nd_opt_sla_eth", ICMP6_ND_OPT_SLA_ETH,
		struct rte_flow_item_icmp6_nd_opt_sla_eth, nd_sla_fields, 8,
		"source link-layer address option"),
	ITEM("icmp6_nd_opt_tla_eth", ICMP6_ND_OPT_TLA_ETH,
		struct rte_flow_item_icmp6_nd_opt_tla_eth, nd_tla_fields, 8,
		"target link-layer address option"),
	ITEM("meta", META, struct rte_flow_item_meta, meta_fields, 0, "metadata"),
	ITEM("gre_key", GRE_KEY, rte_be32_t, gre_key_fields, 4, "GRE key"),
	ITEM("gre_option", GRE_OPTION, struct rte_flow_item_gre_opt, gre_option_fields, 0,
		"GRE checksum, key and sequence number"),
	ITEM("gtp_psc", GTP_PSC, struct rte_flow_item_gtp_psc, gtp_psc_fields, 0,
		"GTP extension header of type 0x85"),
	ITEM("pppoes", PPPOES, struct rte_flow_item_pppoe, pppoe_fields, 6, "PPPoE session header"),
	ITEM("pppoed", PPPOED, struct rte_flow_item_pppoe, pppoe_fields, 6,
		"PPPoE discovery header"),
	ITEM("pppoe_proto_id", PPPOE_PROTO_ID, struct rte_flow_item_pppoe_proto_id,
		pppoe_proto_id_fields, 2, "PPP protocol in a PPPoE session"),
	ITEM("higig2", HIGIG2, struct rte_flow_item_higig2_hdr, higig2_fields, 0,
		"Broadcom HiGig2 header"),
	ITEM("tag", TAG, struct rte_flow_item_tag, tag_fields, 0, "tag of an earlier rule"),
	ITEM("l2tpv3oip", L2TPV3OIP, struct rte_flow_item_l2tpv3oip, l2tpv3oip_fields, 4,
		"L2TPv3 over IP header"),
	ITEM("esp", ESP, struct rte_flow_item_esp, esp_fields, 8, "IPsec ESP header"),
	ITEM("ah", AH, struct rte_flow_item_ah, ah_fields, 12, "IPsec AH header"),
	ITEM("pfcp", PFCP, struct rte_flow_item_pfcp, pfcp_fields, 16, "PFCP header"),
	ITEM("ecpri", ECPRI, struct rte_flow_item_ecpri, ecpri_fields, 0, "eCPRI header"),
	ITEM("geneve-opt", GENEVE_OPT, struct rte_flow_item_geneve_opt, geneve_opt_fields, 0,
		"GENEVE option"),
	ITEM("integrity", INTEGRITY, struct rte_flow_item_integrity, integrity_fields, 0,
		"checks that the NIC has made"),
	ITEM("conntrack", CONNTRACK, struct rte_flow_item_conntrack, conntrack_fields, 0,
		"state that the NIC tracks"),
	ITEM("port_representor", PORT_REPRESENTOR, struct rte_flow_item_ethdev,
		port_representor_fields, 0, "packets that a DPDK port sends into the switch"),
	ITEM("represented_port", REPRESENTED_PORT, struct rte_flow_item_ethdev,
		represented_port_fields, 0,
		"packets that what a DPDK port stands for sends into the switch"),
	ITEM("flex", FLEX, struct rte_flow_item_flex, flex_fields, 0, "header of one's own"),
	ITEM("l2tpv2", L2TPV2, struct rte_flow_item_l2tpv2, l2tpv2_fields, 0, "L2TPv2 header"),
	ITEM("ppp", PPP, struct rte_flow_item_ppp, ppp_fields, 4, "PPP header"),
	ITEM("meter", METER_COLOR, struct rte_flow_item_meter_color, meter_fields, 0,
		"color of a meter"),
	BARE_ITEM("nsh", NSH, "NSH header"),
	OWN_ITEM("ct", RULE_ITEM_CT, struct rule_ct, ct_fields,
		"state of the conversation: ours, not testpmd's"),
	OWN_ITEM("direction", RULE_ITEM_DIRECTION, struct rule_direction, direction_fields,
		"direction in the conversation: ours, not testpmd's"),
	OWN_ITEM("source", RULE_ITEM_SOURCE, struct rule_source, source_fields,
		"the flows of a packet's source are above a limit: ours, not testpmd's"),
	LATER_ITEM(
		"ipv6_routing_ext", routing_ext_fields, RULE_CAME("23.03"), "IPv6 routing header"),
	LATER_ITEM(
		"icmp6_echo_request", icmp6_echo_fields, RULE_CAME("23.03"), "ICMPv6 echo request"),
	LATER_ITEM("icmp6_echo_reply", icmp6_echo_fields, RULE_CAME("23.03"), "ICMPv6 echo reply"),
	LATER_ITEM("quota", quota_fields, RULE_CAME("23.03"), "state of a quota"),
	LATER_ITEM("aggr_affinity", affinity_fields, RULE_CAME("23.03"),
		"port of an aggregate that the packet came by"),
	LATER_ITEM("tx_queue", tx_queue_fields, RULE_CAME("23.07"), "queue of sending"),
	LATER_ITEM("ib_bth", ib_bth_fields, RULE_CAME("23.07"), "InfiniBand BTH of RoCE"),
	LATER_ITEM("ptype", ptype_fields, RULE_CAME("23.11"), "packet type"),
	LATER_ITEM("random", random_fields, RULE_CAME("24.03"), "a random number"),
	LATER_ITEM("compare", compare_fields, RULE_CAME("24.03"), "two fields compared"),
	{.name = "pf", .what = "physical function", .type = -1, .refused = RULE_WENT("22.11")},
	LATER_ITEM("vf", vf_fields, RULE_WENT("22.11"), "virtual function"),
	LATER_ITEM("phy_port", phy_port_fields, RULE_WENT("22.11"), "physical port"),
};
const unsigned rule_n_items = sizeof(rule_items) / sizeof(rule_items[0]);
