/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of actions. */
#include "rule/grammar.h"

#include <rte_version.h>

#include "rule/field.h"
#include "rule/words.h"

static const struct rule_field jump_fields[] = {
	HOST("group", struct rte_flow_action_jump, group, "group whose rules come next"),
};

static const struct rule_field mark_fields[] = {
	HOST("id", struct rte_flow_action_mark, id, "number that packets are marked with"),
};

static const struct rule_field queue_fields[] = {
	HOST("index", struct rte_flow_action_queue, index, "queue that packets go to"),
};

static const struct rule_field count_fields[] = {
	HOST("identifier", struct rte_flow_action_count, id, "number of the counter"),
};

#define RSS struct rte_flow_action_rss
static const struct rule_field rss_fields[] = {
	WORD("func", RSS, func, rule_hash_functions, "hash function"),
	HOST("level", RSS, level, "level of encapsulation"),
	{FIELD("types", RULE_TYPES, RSS, types, "what is hashed, up to the word end"),
		.words = rule_rss_types},
	{FIELD("key", RULE_HEX, RSS, key, "key of the hash"), .max = 64,
		.length_offset = offsetof(RSS, key_len) + 1, .length_width = SIZE_OF(RSS, key_len)},
	{FIELD("key_len", RULE_NUMBER, RSS, key_len, "bytes of the key; zeros fill it up"),
		.max = 64},
	{FIELD("queues", RULE_QUEUES, RSS, queue, "queues, up to the word end"), .max = 128,
		.length_offset = offsetof(RSS, queue_num) + 1,
		.length_width = SIZE_OF(RSS, queue_num)},
};

/* One bit, then the number. */
static const struct rule_field vf_fields[] = {
	BITS("original", RULE_BOOLEAN, 0, 4, 0, 1, "the function that the packet had"),
	HOST("id", struct rte_flow_action_vf, id, "virtual function"),
};

static const struct rule_field port_id_fields[] = {
	BITS("original", RULE_BOOLEAN, 0, 4, 0, 1, "the port that the packet had"),
	HOST("id", struct rte_flow_action_port_id, id, "DPDK port"),
};

static const struct rule_field meter_fields[] = {
	HOST("mtr_id", struct rte_flow_action_meter, mtr_id, "number of the meter"),
};

static const struct rule_field color_fields[] = {
	WORD("type", struct rte_flow_action_meter_color, color, rule_colors,
		"color that packets get"),
};

/* Profile and policy are numbers here, in the place of pointers. */
#define METER_MARK struct rte_flow_action_meter_mark
static const struct rule_field meter_mark_fields[] = {
	IN_POINTER("mtr_profile", METER_MARK, profile, "number of the profile"),
	IN_POINTER("mtr_policy", METER_MARK, policy, "number of the policy"),
	HOST("mtr_color_mode", METER_MARK, color_mode, "1: packets have a color before"),
#if RTE_VERSION < RTE_VERSION_NUM(23, 3, 0, 0)
	WORD("mtr_init_color", METER_MARK, init_color, rule_colors,
		"color that packets have before"),
#endif
	HOST("mtr_state", METER_MARK, state, "1: the meter is enabled"),
};

static const struct rule_field push_vlan_fields[] = {
	NET_HEX("ethertype", struct rte_flow_action_of_push_vlan, ethertype,
		"EtherType of the tag"),
};

static const struct rule_field vlan_vid_fields[] = {
	NET("vlan_vid", struct rte_flow_action_of_set_vlan_vid, vlan_vid, "VLAN number"),
};

static const struct rule_field vlan_pcp_fields[] = {
	NET("vlan_pcp", struct rte_flow_action_of_set_vlan_pcp, vlan_pcp, "priority"),
};

static const struct rule_field pop_mpls_fields[] = {
	NET_HEX("ethertype", struct rte_flow_action_of_pop_mpls, ethertype,
		"EtherType that the packet gets"),
};

static const struct rule_field push_mpls_fields[] = {
	NET_HEX("ethertype", struct rte_flow_action_of_push_mpls, ethertype,
		"EtherType of the label"),
};

static const struct rule_field set_ipv4_fields[] = {
	IPV4("ipv4_addr", struct rte_flow_action_set_ipv4, ipv4_addr, "new address"),
};

static const struct rule_field set_ipv6_fields[] = {
	IPV6("ipv6_addr", struct rte_flow_action_set_ipv6, ipv6_addr, "new address"),
};

static const struct rule_field set_tp_fields[] = {
	NET("port", struct rte_flow_action_set_tp, port, "new port number"),
};

static const struct rule_field set_ttl_fields[] = {
	NET("ttl_value", struct rte_flow_action_set_ttl, ttl_value, "new time to live"),
};

static const struct rule_field set_mac_fields[] = {
	MAC("mac_addr", struct rte_flow_action_set_mac, mac_addr, "new address"),
};

static const struct rule_field tcp_number_fields[] = {
	{.name = "value", .what = "how much", .kind = RULE_NUMBER, .width = 4, .big_endian = true},
};

static const struct rule_field raw_encap_fields[] = {
	{FIELD("index", RULE_NUMBER, struct rule_raw_encap, index, "which set raw_encap"),
		.max = RULE_MAX_INDEX - 1,
		.also_offset = offsetof(struct rule_raw_encap, given) + 1},
};

static const struct rule_field raw_decap_fields[] = {
	{FIELD("index", RULE_NUMBER, struct rule_raw_decap, index, "which set raw_decap"),
		.max = RULE_MAX_INDEX - 1,
		.also_offset = offsetof(struct rule_raw_decap, given) + 1},
};

static const struct rule_field set_tag_fields[] = {
	HOST("data", struct rte_flow_action_set_tag, data, "the tag's value"),
	HOST("index", struct rte_flow_action_set_tag, index, "which tag"),
	HOST("mask", struct rte_flow_action_set_tag, mask, "bits that change"),
};

static const struct rule_field set_meta_fields[] = {
	HOST("data", struct rte_flow_action_set_meta, data, "metadata"),
	{FIELD("mask", RULE_NUMBER, struct rte_flow_action_set_meta, mask,
		 "bits that change; if not given, all"),
		.flags = RULE_ONES},
};

static const struct rule_field set_dscp_fields[] = {
	HOST("dscp_value", struct rte_flow_action_set_dscp, dscp, "new DSCP"),
};

static const struct rule_field age_fields[] = {
	BITS("timeout", RULE_NUMBER, 0, 4, 0, 24, "seconds without a packet"),
};

/* Six bits, one that says that there is a timeout, the timeout, one bit. */
static const struct rule_field age_update_fields[] = {
	{.name = "timeout",
		.what = "seconds without a packet",
		.kind = RULE_NUMBER,
		.width = 4,
		.shift = 7,
		.bits = 24,
		.also_offset = 1,
		.also_shift = 6},
	BITS("touch", RULE_BOOLEAN, 0, 4, 31, 1, "the rule counts as if a packet had come"),
};

static const struct rule_field sample_fields[] = {
	HOST("ratio", struct rule_sample, sample.ratio, "one packet of so many"),
	{FIELD("index", RULE_NUMBER, struct rule_sample, index, "which set sample_actions"),
		.max = RULE_MAX_INDEX - 1, .also_offset = offsetof(struct rule_sample, given) + 1},
};

static const struct rule_field indirect_fields[] = {
	HOST("", struct rule_indirect, id, "number of the indirect action"),
};

static const struct rule_field reject_fields[] = {
	WORD("type", struct rule_reject, with, rule_reject_types, "what the sender is told"),
};

#define MODIFY struct rte_flow_action_modify_field
static const struct rule_field modify_fields[] = {
	WORD("op", MODIFY, operation, rule_modify_ops, "what is done"),
	WORD("dst_type", MODIFY, dst.field, rule_field_ids, "field that changes"),
	HOST("dst_level", MODIFY, dst.level, "its level of encapsulation, or number of the tag"),
	HOST("dst_offset", MODIFY, dst.offset, "its first bit"),
	{FIELD("src_type", RULE_WORD, MODIFY, src.field, "where the bits come from"),
		.words = rule_field_ids, .flags = RULE_CLEARS},
	{FIELD("src_level", RULE_NUMBER, MODIFY, src.level,
		 "its level of encapsulation, or number of the tag"),
		.flags = RULE_SOURCE},
	{FIELD("src_offset", RULE_NUMBER, MODIFY, src.offset, "its first bit"),
		.flags = RULE_SOURCE},
	{FIELD("src_value", RULE_INLINE, MODIFY, src.value, "the bytes of a value"),
		.flags = RULE_SOURCE},
	{FIELD("src_ptr", RULE_HEX, MODIFY, src.pvalue, "the bytes behind a pointer"), .max = 32,
		.flags = RULE_SOURCE},
	HOST("width", MODIFY, width, "number of bits"),
};

/* Behind the connection's state: which of direction and state are updated. */
#define CT_UPDATE_WORD sizeof(struct rte_flow_action_conntrack)
static const struct rule_field conntrack_update_fields[] = {
	BITS("dir", RULE_FLAG, CT_UPDATE_WORD, 4, 0, 1, "the direction is updated"),
	BITS("ctx", RULE_FLAG, CT_UPDATE_WORD, 4, 1, 1, "everything else is updated"),
};

#define ETHDEV struct rte_flow_action_ethdev
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

/* Actions that are refused. */
static const struct rule_field quota_create_fields[] = {
	LATER(0, "quota_limit", RULE_NUMBER, "limit"),
	LATER_WORD(1, "quota_mode", rule_quota_modes, "what is counted"),
};

static const struct rule_field quota_update_fields[] = {
	LATER(0, "quota_limit", RULE_NUMBER, "limit"),
	LATER_WORD(1, "update_op", rule_quota_ops, "what is done"),
};

static const struct rule_field later_index_fields[] = {
	LATER(0, "index", RULE_NUMBER, "which set line"),
};

static const struct rule_field nat64_fields[] = {
	LATER(0, "type", RULE_NUMBER, "direction of the translation"),
};

static const struct rule_field jump_table_fields[] = {
	LATER(0, "table", RULE_NUMBER, "number of the table"),
	LATER(1, "index", RULE_NUMBER, "number of the rule"),
};

static const struct rule_field indirect_list_fields[] = {
	LATER(0, "handle", RULE_NUMBER, "number of the list"),
	LATER(1, "conf", RULE_NUMBER, "number of its configuration"),
};

static const struct rule_field shared_indirect_fields[] = {
	LATER(0, "", RULE_NUMBER, "number of the port"),
	LATER(1, "", RULE_NUMBER, "number of the indirect action"),
};

static const struct rule_field mpls_ttl_fields[] = {
	LATER(0, "mpls_ttl", RULE_NUMBER, "new time to live"),
};

static const struct rule_field nw_ttl_fields[] = {
	LATER(0, "nw_ttl", RULE_NUMBER, "new time to live"),
};

static const struct rule_field phy_port_fields[] = {
	LATER(0, "original", RULE_BOOLEAN, "the port that the packet had"),
	LATER(1, "index", RULE_NUMBER, "physical port"),
};

static const struct rule_field security_fields[] = {
	LATER(0, "security_session", RULE_NUMBER, "session"),
};

#define ACTION(a_name, a_type, s, a_fields, a_what)    \
	{.name = (a_name),                             \
		.what = (a_what),                      \
		.type = RTE_FLOW_ACTION_TYPE_##a_type, \
		.size = sizeof(s),                     \
		.fields = (a_fields),                  \
		.n_fields = COUNT_OF(a_fields)}
#define FILLED(a_name, a_type, s, a_fill, a_slot, a_what) \
	{.name = (a_name),                                \
		.what = (a_what),                         \
		.type = RTE_FLOW_ACTION_TYPE_##a_type,    \
		.size = sizeof(s),                        \
		.fill = (a_fill),                         \
		.slot = (a_slot)}
#define BARE(a_name, a_type, a_what) \
	{.name = (a_name), .what = (a_what), .type = RTE_FLOW_ACTION_TYPE_##a_type}
#define REFUSED(a_name, a_fields, a_why, a_what)                       \
	{.name = (a_name),                                             \
		.what = (a_what),                                      \
		.type = -1,                                            \
		.size = 16 * sizeof(a_fields) / sizeof((a_fields)[0]), \
		.fields = (a_fields),                                  \
		.n_fields = COUNT_OF(a_fields),                        \
		.refused = (a_why)}
#define REFUSED_BARE(a_name, a_why, a_what) \
	{.name = (a_name), .what = (a_what), .type = -1, .refused = (a_why)}

const struct rule_thing rule_actions[] = {
	BARE("end", END, "ends the list"),
	BARE("void", VOID, "nothing"),
	BARE("passthru", PASSTHRU, "later rules see the packet too"),
	ACTION("jump", JUMP, struct rte_flow_action_jump, jump_fields,
		"go on with the rules of a group"),
	ACTION("mark", MARK, struct rte_flow_action_mark, mark_fields, "mark with a number"),
	BARE("flag", FLAG, "mark without a number"),
	ACTION("queue", QUEUE, struct rte_flow_action_queue, queue_fields, "deliver to a queue"),
	BARE("drop", DROP, "drop"),
	{.name = "reject",
		.what = "drop and tell the sender: ours, not testpmd's",
		.type = RULE_ACTION_REJECT,
		.size = sizeof(struct rule_reject),
		.fields = reject_fields,
		.n_fields = COUNT_OF(reject_fields)},
	{.name = "log",
		.what = "tell in a line what comes to the rule: ours, not testpmd's",
		.type = RULE_ACTION_LOG},
	ACTION("count", COUNT, struct rte_flow_action_count, count_fields, "count"),
	{.name = "rss",
		.what = "spread over queues",
		.type = RTE_FLOW_ACTION_TYPE_RSS,
		.size = sizeof(RSS),
		.fields = rss_fields,
		.n_fields = COUNT_OF(rss_fields),
		.fill = RULE_FILL_RSS},
	BARE("pf", PF, "deliver to the physical function"),
	ACTION("vf", VF, struct rte_flow_action_vf, vf_fields, "deliver to a virtual function"),
	ACTION("port_id", PORT_ID, struct rte_flow_action_port_id, port_id_fields,
		"send to a DPDK port"),
	ACTION("meter", METER, struct rte_flow_action_meter, meter_fields, "meter"),
	ACTION("color", METER_COLOR, struct rte_flow_action_meter_color, color_fields,
		"give a color"),
	ACTION("meter_mark", METER_MARK, METER_MARK, meter_mark_fields,
		"meter by a profile and a policy"),
	BARE("of_dec_nw_ttl", OF_DEC_NW_TTL, "decrement the time to live"),
	BARE("of_pop_vlan", OF_POP_VLAN, "take the outer VLAN tag off"),
	ACTION("of_push_vlan", OF_PUSH_VLAN, struct rte_flow_action_of_push_vlan, push_vlan_fields,
		"put a VLAN tag on"),
	ACTION("of_set_vlan_vid", OF_SET_VLAN_VID, struct rte_flow_action_of_set_vlan_vid,
		vlan_vid_fields, "set the VLAN number"),
	ACTION("of_set_vlan_pcp", OF_SET_VLAN_PCP, struct rte_flow_action_of_set_vlan_pcp,
		vlan_pcp_fields, "set the VLAN priority"),
	ACTION("of_pop_mpls", OF_POP_MPLS, struct rte_flow_action_of_pop_mpls, pop_mpls_fields,
		"take the outer MPLS label off"),
	ACTION("of_push_mpls", OF_PUSH_MPLS, struct rte_flow_action_of_push_mpls, push_mpls_fields,
		"put an MPLS label on"),
	FILLED("vxlan_encap", VXLAN_ENCAP, struct rte_flow_action_vxlan_encap, RULE_FILL_DEFINITION,
		RULE_SLOT_VXLAN, "put the headers of set vxlan on"),
	BARE("vxlan_decap", VXLAN_DECAP, "take outer headers up to VXLAN off"),
	FILLED("nvgre_encap", NVGRE_ENCAP, struct rte_flow_action_nvgre_encap, RULE_FILL_DEFINITION,
		RULE_SLOT_NVGRE, "put the headers of set nvgre on"),
	BARE("nvgre_decap", NVGRE_DECAP, "take outer headers up to NVGRE off"),
	{.name = "raw_encap",
		.what = "put the headers of set raw_encap on",
		.type = RTE_FLOW_ACTION_TYPE_RAW_ENCAP,
		.size = sizeof(struct rule_raw_encap),
		.fields = raw_encap_fields,
		.n_fields = COUNT_OF(raw_encap_fields),
		.fill = RULE_FILL_BYTES,
		.slot = RULE_SLOT_RAW_ENCAP},
	{.name = "raw_decap",
		.what = "take the headers of set raw_decap off",
		.type = RTE_FLOW_ACTION_TYPE_RAW_DECAP,
		.size = sizeof(struct rule_raw_decap),
		.fields = raw_decap_fields,
		.n_fields = COUNT_OF(raw_decap_fields),
		.fill = RULE_FILL_BYTES,
		.slot = RULE_SLOT_RAW_DECAP},
	FILLED("l2_encap", RAW_ENCAP, struct rule_raw_encap, RULE_FILL_BYTES, RULE_SLOT_L2_ENCAP,
		"put the header of set l2_encap on"),
	FILLED("l2_decap", RAW_DECAP, struct rule_raw_decap, RULE_FILL_BYTES, RULE_SLOT_L2_DECAP,
		"take the header of set l2_decap off"),
	FILLED("mplsogre_encap", RAW_ENCAP, struct rule_raw_encap, RULE_FILL_BYTES,
		RULE_SLOT_MPLSOGRE_ENCAP, "put the headers of set mplsogre_encap on"),
	FILLED("mplsogre_decap", RAW_DECAP, struct rule_raw_decap, RULE_FILL_BYTES,
		RULE_SLOT_MPLSOGRE_DECAP, "take the headers of set mplsogre_decap off"),
	FILLED("mplsoudp_encap", RAW_ENCAP, struct rule_raw_encap, RULE_FILL_BYTES,
		RULE_SLOT_MPLSOUDP_ENCAP, "put the headers of set mplsoudp_encap on"),
	FILLED("mplsoudp_decap", RAW_DECAP, struct rule_raw_decap, RULE_FILL_BYTES,
		RULE_SLOT_MPLSOUDP_DECAP, "take the headers of set mplsoudp_decap off"),
	ACTION("set_ipv4_src", SET_IPV4_SRC, struct rte_flow_action_set_ipv4, set_ipv4_fields,
		"set the IPv4 source address"),
	ACTION("set_ipv4_dst", SET_IPV4_DST, struct rte_flow_action_set_ipv4, set_ipv4_fields,
		"set the IPv4 destination address"),
	ACTION("set_ipv6_src", SET_IPV6_SRC, struct rte_flow_action_set_ipv6, set_ipv6_fields,
		"set the IPv6 source address"),
	ACTION("set_ipv6_dst", SET_IPV6_DST, struct rte_flow_action_set_ipv6, set_ipv6_fields,
		"set the IPv6 destination address"),
	ACTION("set_tp_src", SET_TP_SRC, struct rte_flow_action_set_tp, set_tp_fields,
		"set the source port"),
	ACTION("set_tp_dst", SET_TP_DST, struct rte_flow_action_set_tp, set_tp_fields,
		"set the destination port"),
	BARE("mac_swap", MAC_SWAP, "swap the MAC addresses"),
	BARE("dec_ttl", DEC_TTL, "decrement the time to live"),
	ACTION("set_ttl", SET_TTL, struct rte_flow_action_set_ttl, set_ttl_fields,
		"set the time to live"),
	ACTION("set_mac_src", SET_MAC_SRC, struct rte_flow_action_set_mac, set_mac_fields,
		"set the source MAC address"),
	ACTION("set_mac_dst", SET_MAC_DST, struct rte_flow_action_set_mac, set_mac_fields,
		"set the destination MAC address"),
	ACTION("inc_tcp_seq", INC_TCP_SEQ, rte_be32_t, tcp_number_fields,
		"increase the TCP sequence number"),
	ACTION("dec_tcp_seq", DEC_TCP_SEQ, rte_be32_t, tcp_number_fields,
		"decrease the TCP sequence number"),
	ACTION("inc_tcp_ack", INC_TCP_ACK, rte_be32_t, tcp_number_fields,
		"increase the TCP acknowledgment"),
	ACTION("dec_tcp_ack", DEC_TCP_ACK, rte_be32_t, tcp_number_fields,
		"decrease the TCP acknowledgment"),
	ACTION("set_tag", SET_TAG, struct rte_flow_action_set_tag, set_tag_fields, "set a tag"),
	ACTION("set_meta", SET_META, struct rte_flow_action_set_meta, set_meta_fields,
		"set the metadata"),
	ACTION("set_ipv4_dscp", SET_IPV4_DSCP, struct rte_flow_action_set_dscp, set_dscp_fields,
		"set the DSCP of IPv4"),
	ACTION("set_ipv6_dscp", SET_IPV6_DSCP, struct rte_flow_action_set_dscp, set_dscp_fields,
		"set the DSCP of IPv6"),
	ACTION("age", AGE, struct rte_flow_action_age, age_fields,
		"report the rule when no packet comes"),
	ACTION("age_update", AGE, struct rte_flow_update_age, age_update_fields,
		"change an indirect age action"),
	{.name = "sample",
		.what = "copy some packets; the actions are those of set sample_actions",
		.type = RTE_FLOW_ACTION_TYPE_SAMPLE,
		.size = sizeof(struct rule_sample),
		.fields = sample_fields,
		.n_fields = COUNT_OF(sample_fields),
		.fill = RULE_FILL_SAMPLE,
		.slot = RULE_SLOT_SAMPLE},
	ACTION("indirect", INDIRECT, struct rule_indirect, indirect_fields,
		"the indirect action of a number"),
	ACTION("modify_field", MODIFY_FIELD, MODIFY, modify_fields, "change bits of a field"),
	FILLED("conntrack", CONNTRACK, struct rte_flow_action_conntrack, RULE_FILL_CONNTRACK,
		RULE_SLOT_CONNTRACK, "track the connection as set conntrack says"),
	{.name = "conntrack_update",
		.what = "change an indirect conntrack action",
		.type = RTE_FLOW_ACTION_TYPE_CONNTRACK,
		.size = sizeof(struct rte_flow_modify_conntrack),
		.fields = conntrack_update_fields,
		.n_fields = COUNT_OF(conntrack_update_fields),
		.fill = RULE_FILL_CONNTRACK,
		.slot = RULE_SLOT_CONNTRACK},
	ACTION("port_representor", PORT_REPRESENTOR, struct rte_flow_action_ethdev,
		port_representor_fields, "in the switch: deliver to a DPDK port"),
	ACTION("represented_port", REPRESENTED_PORT, struct rte_flow_action_ethdev,
		represented_port_fields, "in the switch: send to what a DPDK port stands for"),
	BARE("send_to_kernel", SEND_TO_KERNEL, "deliver to the kernel"),
	REFUSED_BARE("skip_cman", RULE_CAME("23.03"), "no congestion management"),
	REFUSED("quota_create", quota_create_fields, RULE_CAME("23.03"), "make a quota"),
	REFUSED("quota_update", quota_update_fields, RULE_CAME("23.03"), "change a quota"),
	REFUSED("shared_indirect", shared_indirect_fields, RULE_CAME("23.03"),
		"the indirect action of another port"),
	REFUSED("indirect_list", indirect_list_fields, RULE_CAME("23.07"),
		"a list of indirect actions"),
	REFUSED("ipv6_ext_push", later_index_fields, RULE_CAME("23.07"),
		"put an IPv6 extension header in"),
	REFUSED("ipv6_ext_remove", later_index_fields, RULE_CAME("23.07"),
		"take an IPv6 extension header out"),
	REFUSED("nat64", nat64_fields, RULE_CAME("24.03"), "translate IPv4 and IPv6"),
	REFUSED("jump_to_table_index", jump_table_fields, RULE_CAME("24.11"),
		"go on with a rule of a table"),
	REFUSED("of_set_mpls_ttl", mpls_ttl_fields, RULE_WENT("22.11"),
		"set the time to live of MPLS"),
	REFUSED_BARE("of_dec_mpls_ttl", RULE_WENT("22.11"), "decrement the time to live of MPLS"),
	REFUSED("of_set_nw_ttl", nw_ttl_fields, RULE_WENT("22.11"), "set the time to live"),
	REFUSED_BARE("of_copy_ttl_out", RULE_WENT("22.11"), "copy the time to live outwards"),
	REFUSED_BARE("of_copy_ttl_in", RULE_WENT("22.11"), "copy the time to live inwards"),
	REFUSED("phy_port", phy_port_fields, RULE_WENT("22.11"), "send to a physical port"),
	REFUSED("security", security_fields, "it needs a session, which no rule can name",
		"IPsec or MACsec in the NIC"),
};
const unsigned rule_n_actions = sizeof(rule_actions) / sizeof(rule_actions[0]);
