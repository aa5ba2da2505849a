/* SPDX-License-Identifier: BSD-3-Clause */
#include "rule/words.h"

#include <string.h>

#include <rte_ethdev.h>
#include <rte_l2tpv2.h>

#include "packet/reject.h"

#define ALL_TYPES                                                                                  \
	(RTE_ETH_RSS_ETH | RTE_ETH_RSS_VLAN | RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP | \
		RTE_ETH_RSS_SCTP | RTE_ETH_RSS_L2_PAYLOAD | RTE_ETH_RSS_L2TPV3 | RTE_ETH_RSS_ESP | \
		RTE_ETH_RSS_AH | RTE_ETH_RSS_PFCP | RTE_ETH_RSS_GTPU | RTE_ETH_RSS_ECPRI |         \
		RTE_ETH_RSS_MPLS | RTE_ETH_RSS_L2TPV2)

#define IS(a_name, a_value) {.name = (a_name), .value = (a_value)}

const struct rule_word rule_rss_types[] = {
	IS("all", ALL_TYPES),
	IS("none", 0),
	IS("ip", RTE_ETH_RSS_IP),
	IS("udp", RTE_ETH_RSS_UDP),
	IS("tcp", RTE_ETH_RSS_TCP),
	IS("sctp", RTE_ETH_RSS_SCTP),
	IS("tunnel", RTE_ETH_RSS_TUNNEL),
	IS("vlan", RTE_ETH_RSS_VLAN),
	IS("ipv4", RTE_ETH_RSS_IPV4),
	IS("ipv4-frag", RTE_ETH_RSS_FRAG_IPV4),
	IS("ipv4-tcp", RTE_ETH_RSS_NONFRAG_IPV4_TCP),
	IS("ipv4-udp", RTE_ETH_RSS_NONFRAG_IPV4_UDP),
	IS("ipv4-sctp", RTE_ETH_RSS_NONFRAG_IPV4_SCTP),
	IS("ipv4-other", RTE_ETH_RSS_NONFRAG_IPV4_OTHER),
	IS("ipv6", RTE_ETH_RSS_IPV6),
	IS("ipv6-frag", RTE_ETH_RSS_FRAG_IPV6),
	IS("ipv6-tcp", RTE_ETH_RSS_NONFRAG_IPV6_TCP),
	IS("ipv6-udp", RTE_ETH_RSS_NONFRAG_IPV6_UDP),
	IS("ipv6-sctp", RTE_ETH_RSS_NONFRAG_IPV6_SCTP),
	IS("ipv6-other", RTE_ETH_RSS_NONFRAG_IPV6_OTHER),
	IS("l2-payload", RTE_ETH_RSS_L2_PAYLOAD),
	IS("ipv6-ex", RTE_ETH_RSS_IPV6_EX),
	IS("ipv6-tcp-ex", RTE_ETH_RSS_IPV6_TCP_EX),
	IS("ipv6-udp-ex", RTE_ETH_RSS_IPV6_UDP_EX),
	IS("port", RTE_ETH_RSS_PORT),
	IS("vxlan", RTE_ETH_RSS_VXLAN),
	IS("geneve", RTE_ETH_RSS_GENEVE),
	IS("nvgre", RTE_ETH_RSS_NVGRE),
	IS("gtpu", RTE_ETH_RSS_GTPU),
	IS("eth", RTE_ETH_RSS_ETH),
	IS("s-vlan", RTE_ETH_RSS_S_VLAN),
	IS("c-vlan", RTE_ETH_RSS_C_VLAN),
	IS("esp", RTE_ETH_RSS_ESP),
	IS("ah", RTE_ETH_RSS_AH),
	IS("l2tpv3", RTE_ETH_RSS_L2TPV3),
	IS("pfcp", RTE_ETH_RSS_PFCP),
	IS("pppoe", RTE_ETH_RSS_PPPOE),
	IS("ecpri", RTE_ETH_RSS_ECPRI),
	IS("mpls", RTE_ETH_RSS_MPLS),
	IS("ipv4-chksum", RTE_ETH_RSS_IPV4_CHKSUM),
	IS("l4-chksum", RTE_ETH_RSS_L4_CHKSUM),
	IS("l2tpv2", RTE_ETH_RSS_L2TPV2),
	IS("l3-pre96", RTE_ETH_RSS_L3_PRE96),
	IS("l3-pre64", RTE_ETH_RSS_L3_PRE64),
	IS("l3-pre56", RTE_ETH_RSS_L3_PRE56),
	IS("l3-pre48", RTE_ETH_RSS_L3_PRE48),
	IS("l3-pre40", RTE_ETH_RSS_L3_PRE40),
	IS("l3-pre32", RTE_ETH_RSS_L3_PRE32),
	IS("l2-dst-only", RTE_ETH_RSS_L2_DST_ONLY),
	IS("l2-src-only", RTE_ETH_RSS_L2_SRC_ONLY),
	IS("l4-dst-only", RTE_ETH_RSS_L4_DST_ONLY),
	IS("l4-src-only", RTE_ETH_RSS_L4_SRC_ONLY),
	IS("l3-dst-only", RTE_ETH_RSS_L3_DST_ONLY),
	IS("l3-src-only", RTE_ETH_RSS_L3_SRC_ONLY),
	{.name = NULL},
};

/* The first of each value is printed. */
const struct rule_word rule_booleans[] = {
	IS("0", 0),
	IS("1", 1),
	IS("no", 0),
	IS("yes", 1),
	IS("off", 0),
	IS("on", 1),
	IS("false", 0),
	IS("true", 1),
	IS("N", 0),
	IS("Y", 1),
	{.name = NULL},
};

const struct rule_word rule_colors[] = {
	IS("green", RTE_COLOR_GREEN),
	IS("yellow", RTE_COLOR_YELLOW),
	IS("red", RTE_COLOR_RED),
	{.name = NULL},
};

/* As the commands of meters take colors; numbers stand in old examples. */
const struct rule_word rule_color_letters[] = {
	IS("g", RTE_COLOR_GREEN),
	IS("y", RTE_COLOR_YELLOW),
	IS("r", RTE_COLOR_RED),
	IS("d", 3),
	IS("0", RTE_COLOR_GREEN),
	IS("1", RTE_COLOR_YELLOW),
	IS("2", RTE_COLOR_RED),
	{.name = NULL},
};

const struct rule_word rule_ecpri_types[] = {
	IS("iq_data", 0),
	IS("rtc_ctrl", 2),
	IS("delay_measure", 5),
	{.name = NULL},
};

const struct rule_word rule_l2tpv2_types[] = {
	IS("data", RTE_L2TPV2_MSG_TYPE_DATA),
	IS("data_l", RTE_L2TPV2_MSG_TYPE_DATA_L),
	IS("data_s", RTE_L2TPV2_MSG_TYPE_DATA_S),
	IS("data_o", RTE_L2TPV2_MSG_TYPE_DATA_O),
	IS("data_l_s", RTE_L2TPV2_MSG_TYPE_DATA_L_S),
	IS("control", RTE_L2TPV2_MSG_TYPE_CONTROL),
	{.name = NULL},
};

const struct rule_word rule_quota_states[] = {
	IS("pass", 0),
	IS("block", 1),
	{.name = NULL},
};

const struct rule_word rule_quota_modes[] = {
	IS("packet", 1),
	IS("l2", 2),
	IS("l3", 3),
	{.name = NULL},
};

const struct rule_word rule_quota_ops[] = {
	IS("set", 0),
	IS("add", 1),
	{.name = NULL},
};

const struct rule_word rule_compare_ops[] = {
	IS("eq", 0),
	IS("ne", 1),
	IS("lt", 2),
	IS("le", 3),
	IS("gt", 4),
	IS("ge", 5),
	{.name = NULL},
};

const struct rule_word rule_query_modes[] = {
	IS("update_first", 0),
	IS("query_first", 1),
	{.name = NULL},
};

const struct rule_word rule_modify_ops[] = {
	IS("set", RTE_FLOW_MODIFY_SET),
	IS("add", RTE_FLOW_MODIFY_ADD),
	IS("sub", RTE_FLOW_MODIFY_SUB),
	{.name = NULL},
};

const struct rule_word rule_hash_functions[] = {
	IS("default", RTE_ETH_HASH_FUNCTION_DEFAULT),
	IS("toeplitz", RTE_ETH_HASH_FUNCTION_TOEPLITZ),
	IS("simple_xor", RTE_ETH_HASH_FUNCTION_SIMPLE_XOR),
	IS("symmetric_toeplitz", RTE_ETH_HASH_FUNCTION_SYMMETRIC_TOEPLITZ),
	{.name = "symmetric_toeplitz_sort", .value = 4, .refused = RULE_CAME("23.11")},
	{.name = NULL},
};

const struct rule_word rule_ct_states[] = {
	IS("new", RULE_CT_NEW),
	IS("established", RULE_CT_ESTABLISHED),
	IS("related", RULE_CT_RELATED),
	IS("invalid", RULE_CT_INVALID),
	{.name = NULL},
};

const struct rule_word rule_times[] = {
	IS("second", 1),
	IS("minute", 60),
	IS("hour", 3600),
	{.name = NULL},
};

const struct rule_word rule_directions[] = {
	IS("forward", 0),
	IS("reverse", 1),
	{.name = NULL},
};

const struct rule_word rule_replies[] = {
	IS("match", 0),
	IS("follow", 1),
	{.name = NULL},
};

const struct rule_word rule_ip_versions[] = {
	IS("ipv4", 4),
	IS("ipv6", 6),
	{.name = NULL},
};

const struct rule_word rule_field_ids[] = {
	IS("start", RTE_FLOW_FIELD_START),
	IS("mac_dst", RTE_FLOW_FIELD_MAC_DST),
	IS("mac_src", RTE_FLOW_FIELD_MAC_SRC),
	IS("vlan_type", RTE_FLOW_FIELD_VLAN_TYPE),
	IS("vlan_id", RTE_FLOW_FIELD_VLAN_ID),
	IS("mac_type", RTE_FLOW_FIELD_MAC_TYPE),
	IS("ipv4_dscp", RTE_FLOW_FIELD_IPV4_DSCP),
	IS("ipv4_ttl", RTE_FLOW_FIELD_IPV4_TTL),
	IS("ipv4_src", RTE_FLOW_FIELD_IPV4_SRC),
	IS("ipv4_dst", RTE_FLOW_FIELD_IPV4_DST),
	IS("ipv6_dscp", RTE_FLOW_FIELD_IPV6_DSCP),
	IS("ipv6_hoplimit", RTE_FLOW_FIELD_IPV6_HOPLIMIT),
	IS("ipv6_src", RTE_FLOW_FIELD_IPV6_SRC),
	IS("ipv6_dst", RTE_FLOW_FIELD_IPV6_DST),
	IS("tcp_port_src", RTE_FLOW_FIELD_TCP_PORT_SRC),
	IS("tcp_port_dst", RTE_FLOW_FIELD_TCP_PORT_DST),
	IS("tcp_seq_num", RTE_FLOW_FIELD_TCP_SEQ_NUM),
	IS("tcp_ack_num", RTE_FLOW_FIELD_TCP_ACK_NUM),
	IS("tcp_flags", RTE_FLOW_FIELD_TCP_FLAGS),
	IS("udp_port_src", RTE_FLOW_FIELD_UDP_PORT_SRC),
	IS("udp_port_dst", RTE_FLOW_FIELD_UDP_PORT_DST),
	IS("vxlan_vni", RTE_FLOW_FIELD_VXLAN_VNI),
	IS("geneve_vni", RTE_FLOW_FIELD_GENEVE_VNI),
	IS("gtp_teid", RTE_FLOW_FIELD_GTP_TEID),
	IS("tag", RTE_FLOW_FIELD_TAG),
	IS("mark", RTE_FLOW_FIELD_MARK),
	IS("meta", RTE_FLOW_FIELD_META),
	IS("pointer", RTE_FLOW_FIELD_POINTER),
	IS("value", RTE_FLOW_FIELD_VALUE),
	IS("ipv4_ecn", RTE_FLOW_FIELD_IPV4_ECN),
	IS("ipv6_ecn", RTE_FLOW_FIELD_IPV6_ECN),
	IS("gtp_psc_qfi", RTE_FLOW_FIELD_GTP_PSC_QFI),
	IS("meter_color", RTE_FLOW_FIELD_METER_COLOR),
	{.name = "ipv6_proto", .value = 100, .refused = RULE_CAME("23.03")},
	{.name = "flex_item", .value = 101, .refused = RULE_CAME("23.03")},
	{.name = "hash_result", .value = 102, .refused = RULE_CAME("23.07")},
	{.name = "geneve_opt_type", .value = 103, .refused = RULE_CAME("23.07")},
	{.name = "geneve_opt_class", .value = 104, .refused = RULE_CAME("23.07")},
	{.name = "geneve_opt_data", .value = 105, .refused = RULE_CAME("23.07")},
	{.name = "mpls", .value = 106, .refused = RULE_CAME("23.07")},
	{.name = "tcp_data_off", .value = 107, .refused = RULE_CAME("23.11")},
	{.name = "ipv4_ihl", .value = 108, .refused = RULE_CAME("23.11")},
	{.name = "ipv4_total_len", .value = 109, .refused = RULE_CAME("23.11")},
	{.name = "ipv6_payload_len", .value = 110, .refused = RULE_CAME("23.11")},
	{.name = "ipv4_proto", .value = 111, .refused = RULE_CAME("24.03")},
	{.name = "ipv6_flow_label", .value = 112, .refused = RULE_CAME("24.03")},
	{.name = "ipv6_traffic_class", .value = 113, .refused = RULE_CAME("24.03")},
	{.name = "esp_spi", .value = 114, .refused = RULE_CAME("24.03")},
	{.name = "esp_seq_num", .value = 115, .refused = RULE_CAME("24.03")},
	{.name = "esp_proto", .value = 116, .refused = RULE_CAME("24.03")},
	{.name = "random", .value = 117, .refused = RULE_CAME("24.03")},
	{.name = "vxlan_last_rsvd", .value = 118, .refused = RULE_CAME("24.07")},
	{.name = NULL},
};

const struct rule_word rule_reject_types[] = {
	IS("usual", REJECT_USUAL),
	IS("tcp_reset", REJECT_TCP_RESET),
	IS("port", REJECT_PORT),
	IS("host", REJECT_HOST),
	IS("admin", REJECT_ADMIN),
	{.name = NULL},
};

const struct rule_word *rule_word_find(const struct rule_word *words, const char *name)
{
	for (; words->name; words++)
		if (strcmp(words->name, name) == 0)
			return words;
	return NULL;
}

const char *rule_word_name(const struct rule_word *words, uint64_t value)
{
	for (; words->name; words++)
		if (words->value == value)
			return words->name;
	return NULL;
}
