/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of commands: the words of each in their order, and what may stand among them. */
#include "rule/grammar.h"

#include "rule/field.h"
#include "rule/words.h"

#define OPTION_NUMBER(a_name, a_id, a_min, a_what) \
	{.name = (a_name), .what = (a_what), .kind = RULE_NUMBER, .id = (a_id), .min = (a_min)}
#define OPTION_BOOLEAN(a_name, a_id, a_what) \
	{.name = (a_name), .what = (a_what), .kind = RULE_BOOLEAN, .id = (a_id)}
#define OPTION_WORDS(a_name, a_id, a_words, a_what) \
	{.name = (a_name),                          \
		.what = (a_what),                   \
		.kind = RULE_WORD,                  \
		.id = (a_id),                       \
		.min = 1,                           \
		.words = (a_words)}
#define OPTION_OF(a_name, a_kind, a_id, a_what) \
	{.name = (a_name), .what = (a_what), .kind = (a_kind), .id = (a_id), .min = 1}
#define OPTION_LATER(a_name, a_kind, a_why, a_what) \
	{.name = (a_name),                          \
		.what = (a_what),                   \
		.kind = (a_kind),                   \
		.id = RULE_ARG_LATER,               \
		.refused = (a_why)}

#define DIRECTIONS                                                               \
	{.name = "ingress",                                                      \
		.what = "packets that come in",                                  \
		.kind = RULE_FLAG,                                               \
		.attr = RULE_ATTR_INGRESS},                                      \
		{.name = "egress",                                               \
			.what = "packets that go out",                           \
			.kind = RULE_FLAG,                                       \
			.attr = RULE_ATTR_EGRESS},                               \
	{                                                                        \
		.name = "transfer", .what = "packets between ports of a switch", \
		.kind = RULE_FLAG, .attr = RULE_ATTR_TRANSFER                    \
	}
#define GROUP \
	{.name = "group", .what = "group of rules", .kind = RULE_NUMBER, .attr = RULE_ATTR_GROUP}
#define PRIORITY                                   \
	{.name = "priority",                       \
		.what = "priority; 0 comes first", \
		.kind = RULE_NUMBER,               \
		.attr = RULE_ATTR_PRIORITY}

static const struct rule_option rule_options[] = {
	GROUP,
	PRIORITY,
	DIRECTIONS,
	{.name = "replies",
		.what = "follow: the other direction of a conversation takes the rule's verdict; "
			"match: it is decided by itself",
		.kind = RULE_WORD,
		.id = RULE_ARG_REPLIES,
		.words = rule_replies},
	OPTION_NUMBER("tunnel_set", RULE_ARG_TUNNEL_SET, 0, "tunnel that the rule takes off"),
	OPTION_NUMBER("tunnel_match", RULE_ARG_TUNNEL_MATCH, 0, "tunnel that the rule matches"),
	OPTION_LATER("user_id", RULE_NUMBER, RULE_CAME("23.11"), "number of one's own"),
};

static const struct rule_option destroy_options[] = {
	OPTION_NUMBER("rule", RULE_ARG_RULE, 1, "number of a rule"),
};

static const struct rule_option list_options[] = {
	OPTION_NUMBER("group", RULE_ARG_GROUP, 0, "only rules of a group"),
};

static const struct rule_option aged_options[] = {
	{.name = "destroy",
		.what = "destroy the rules too",
		.kind = RULE_FLAG,
		.id = RULE_ARG_DESTROY},
};

static const struct rule_option configure_options[] = {
	OPTION_NUMBER("queues_number", RULE_ARG_QUEUES_NUMBER, 0, "number of queues"),
	OPTION_NUMBER("queues_size", RULE_ARG_QUEUES_SIZE, 0, "size of a queue"),
	OPTION_NUMBER("counters_number", RULE_ARG_COUNTERS, 0, "number of counters"),
	OPTION_NUMBER(
		"aging_counters_number", RULE_ARG_AGING_COUNTERS, 0, "number of objects that age"),
	OPTION_NUMBER("meters_number", RULE_ARG_METERS, 0, "number of meters"),
	OPTION_NUMBER(
		"conn_tracks_number", RULE_ARG_CONNTRACKS, 0, "number of connections tracked"),
	OPTION_NUMBER("flags", RULE_ARG_FLAGS, 0, "flags"),
	OPTION_LATER("quotas_number", RULE_NUMBER, RULE_CAME("23.03"), "number of quotas"),
	OPTION_LATER("host_port", RULE_NUMBER, RULE_CAME("23.03"), "port of the host"),
};

static const struct rule_option pattern_template_options[] = {
	OPTION_NUMBER("pattern_template_id", RULE_ARG_PATTERN_TEMPLATE, 0, "its number"),
	OPTION_BOOLEAN("relaxed", RULE_ARG_RELAXED, "match the given fields only"),
	DIRECTIONS,
};

static const struct rule_option pattern_template_ids[] = {
	OPTION_NUMBER("pattern_template", RULE_ARG_PATTERN_TEMPLATE, 1, "number of a template"),
};

static const struct rule_option actions_template_options[] = {
	OPTION_NUMBER("actions_template_id", RULE_ARG_ACTIONS_TEMPLATE, 0, "its number"),
	DIRECTIONS,
};

static const struct rule_option actions_template_ids[] = {
	OPTION_NUMBER("actions_template", RULE_ARG_ACTIONS_TEMPLATE, 1, "number of a template"),
};

static const struct rule_option table_options[] = {
	OPTION_NUMBER("table_id", RULE_ARG_TABLE, 0, "its number"),
	GROUP,
	PRIORITY,
	DIRECTIONS,
	OPTION_NUMBER("rules_number", RULE_ARG_RULES_NUMBER, 0, "number of rules"),
	OPTION_NUMBER("pattern_template", RULE_ARG_PATTERN_TEMPLATE, 0, "number of a template"),
	OPTION_NUMBER("actions_template", RULE_ARG_ACTIONS_TEMPLATE, 0, "number of a template"),
	OPTION_LATER("insertion_type", RULE_PATH, RULE_CAME("23.03"), "how rules are put in"),
	OPTION_LATER("hash_func", RULE_PATH, RULE_CAME("23.03"), "hash of rules"),
	OPTION_LATER("wire_orig", RULE_FLAG, RULE_CAME("23.03"), "packets from the wire only"),
	OPTION_LATER("vport_orig", RULE_FLAG, RULE_CAME("23.03"), "packets from functions only"),
	OPTION_LATER("resizable", RULE_FLAG, RULE_CAME("24.03"), "its size can change"),
};

static const struct rule_option table_ids[] = {
	OPTION_NUMBER("table", RULE_ARG_TABLE, 1, "number of a table"),
};

#define POSTPONE OPTION_BOOLEAN("postpone", RULE_ARG_POSTPONE, "wait for flow push")

static const struct rule_option queue_create_options[] = {
	OPTION_NUMBER("template_table", RULE_ARG_TABLE, 1, "number of a table"),
	{.name = "table",
		.what = "the same as template_table",
		.kind = RULE_NUMBER,
		.id = RULE_ARG_TABLE,
		.alias = true},
	OPTION_NUMBER("pattern_template", RULE_ARG_PATTERN_TEMPLATE, 0,
		"which of the table's pattern templates"),
	{.name = "item_template",
		.what = "the same as pattern_template",
		.kind = RULE_NUMBER,
		.id = RULE_ARG_PATTERN_TEMPLATE,
		.alias = true},
	OPTION_NUMBER("actions_template", RULE_ARG_ACTIONS_TEMPLATE, 0,
		"which of the table's actions templates"),
	{.name = "action_template",
		.what = "the same as actions_template",
		.kind = RULE_NUMBER,
		.id = RULE_ARG_ACTIONS_TEMPLATE,
		.alias = true},
	POSTPONE,
	DIRECTIONS,
	OPTION_LATER("rule_index", RULE_NUMBER, RULE_CAME("23.03"), "number of the rule"),
};

static const struct rule_option queue_destroy_options[] = {
	POSTPONE,
	OPTION_NUMBER("rule", RULE_ARG_RULE, 1, "number of a rule"),
};

static const struct rule_option indirect_create_options[] = {
	OPTION_NUMBER("action_id", RULE_ARG_ACTION_ID, 0, "its number"),
	DIRECTIONS,
};

static const struct rule_option indirect_destroy_options[] = {
	OPTION_NUMBER("action_id", RULE_ARG_ACTION_ID, 1, "number of an indirect action"),
};

static const struct rule_option queue_indirect_create_options[] = {
	OPTION_NUMBER("action_id", RULE_ARG_ACTION_ID, 0, "its number"),
	DIRECTIONS,
	POSTPONE,
};

static const struct rule_option postpone_options[] = {
	POSTPONE,
};

static const struct rule_option queue_indirect_destroy_options[] = {
	POSTPONE,
	OPTION_NUMBER("action_id", RULE_ARG_ACTION_ID, 1, "number of an indirect action"),
};

static const struct rule_option later_group_options[] = {
	OPTION_LATER("group_id", RULE_NUMBER, RULE_CAME("23.11"), "number of the group"),
	OPTION_LATER("ingress", RULE_FLAG, RULE_CAME("23.11"), "packets that come in"),
	OPTION_LATER("egress", RULE_FLAG, RULE_CAME("23.11"), "packets that go out"),
	OPTION_LATER("transfer", RULE_FLAG, RULE_CAME("23.11"), "packets between ports"),
};

static const struct rule_option later_update_options[] = {
	OPTION_LATER("user_id", RULE_FLAG, RULE_CAME("23.11"), "the rule's number is one's own"),
};

static const struct rule_option later_queue_update_options[] = {
	OPTION_LATER("template_table", RULE_NUMBER, RULE_CAME("23.07"), "number of a table"),
	OPTION_LATER("actions_template", RULE_NUMBER, RULE_CAME("23.07"), "number of a template"),
	OPTION_LATER("postpone", RULE_BOOLEAN, RULE_CAME("23.07"), "wait for flow push"),
};

static const struct rule_option later_hash_options[] = {
	OPTION_LATER("pattern_template", RULE_NUMBER, RULE_CAME("23.11"), "number of a template"),
};

static const struct rule_option later_query_update_options[] = {
	{.name = "mode",
		.what = "what comes first",
		.kind = RULE_WORD,
		.id = RULE_ARG_LATER,
		.words = rule_query_modes},
	{.name = "postpone",
		.what = "wait for flow push",
		.kind = RULE_BOOLEAN,
		.id = RULE_ARG_LATER},
};

/* The outer headers of encapsulations. */
#define IP_VERSION OPTION_WORDS("ip-version", RULE_ARG_IP_VERSION, rule_ip_versions, "ipv4 or ipv6")
#define UDP_PORTS                                                               \
	OPTION_OF("udp-src", RULE_NUMBER, RULE_ARG_UDP_SRC, "UDP source port"), \
		OPTION_OF("udp-dst", RULE_NUMBER, RULE_ARG_UDP_DST, "UDP destination port")
#define IP_ADDRESSES                                                          \
	OPTION_OF("ip-src", RULE_ADDRESS, RULE_ARG_IP_SRC, "source address"), \
		OPTION_OF("ip-dst", RULE_ADDRESS, RULE_ARG_IP_DST, "destination address")
#define VLAN_TCI OPTION_OF("vlan-tci", RULE_NUMBER, RULE_ARG_VLAN_TCI, "tag control information")
#define ETH_ADDRESSES                                                           \
	OPTION_OF("eth-src", RULE_MAC, RULE_ARG_ETH_SRC, "source MAC address"), \
		OPTION_OF("eth-dst", RULE_MAC, RULE_ARG_ETH_DST, "destination MAC address")
#define NUMBER_OF(a_name) OPTION_OF(a_name, RULE_NUMBER, RULE_ARG_VNI, "number of the network")

static const struct rule_option vxlan_options[] = {
	IP_VERSION, NUMBER_OF("vni"), UDP_PORTS, IP_ADDRESSES, ETH_ADDRESSES};
static const struct rule_option vxlan_vlan_options[] = {
	IP_VERSION, NUMBER_OF("vni"), UDP_PORTS, IP_ADDRESSES, VLAN_TCI, ETH_ADDRESSES};
static const struct rule_option vxlan_tos_options[] = {IP_VERSION, NUMBER_OF("vni"), UDP_PORTS,
	OPTION_OF("ip-tos", RULE_NUMBER, RULE_ARG_IP_TOS, "type of service"),
	OPTION_OF("ip-ttl", RULE_NUMBER, RULE_ARG_IP_TTL, "time to live"), IP_ADDRESSES,
	ETH_ADDRESSES};
static const struct rule_option nvgre_options[] = {
	IP_VERSION, NUMBER_OF("tni"), IP_ADDRESSES, ETH_ADDRESSES};
static const struct rule_option nvgre_vlan_options[] = {
	IP_VERSION, NUMBER_OF("tni"), IP_ADDRESSES, VLAN_TCI, ETH_ADDRESSES};
static const struct rule_option l2_options[] = {IP_VERSION, ETH_ADDRESSES};
static const struct rule_option l2_vlan_options[] = {IP_VERSION, VLAN_TCI, ETH_ADDRESSES};
static const struct rule_option decap_options[] = {IP_VERSION};
static const struct rule_option gre_options[] = {
	IP_VERSION, NUMBER_OF("label"), IP_ADDRESSES, ETH_ADDRESSES};
static const struct rule_option gre_vlan_options[] = {
	IP_VERSION, NUMBER_OF("label"), IP_ADDRESSES, VLAN_TCI, ETH_ADDRESSES};
static const struct rule_option udp_options[] = {
	IP_VERSION, NUMBER_OF("label"), UDP_PORTS, IP_ADDRESSES, ETH_ADDRESSES};
static const struct rule_option udp_vlan_options[] = {
	IP_VERSION, NUMBER_OF("label"), UDP_PORTS, IP_ADDRESSES, VLAN_TCI, ETH_ADDRESSES};

/* The NIC's tracking of connections. */
#define CT struct rte_flow_action_conntrack
#define CT_BIT(a_name, n, a_what) \
	BITS(a_name, RULE_NUMBER, BITS_AFTER(CT, peer_port), 1, n, 1, a_what)
static const struct rule_field conntrack_common[] = {
	HOST("peer", CT, peer_port, "port of the other end"),
	CT_BIT("is_orig", 0, "rules are for the original direction"),
	CT_BIT("enable", 1, "the connection is tracked"),
	CT_BIT("live", 2, "an acknowledgment came after the connection was there"),
	CT_BIT("sack", 3, "selective acknowledgments"),
	CT_BIT("cack", 4, "a challenge acknowledgment has passed"),
	CT_BIT("last_dir", 5, "the last packet came from the original side"),
	CT_BIT("liberal", 6, "check the state only"),
	HOST("state", CT, state, "state of the connection"),
	HOST("max_ack_win", CT, max_ack_window, "scale of the largest window"),
	HOST("r_lim", CT, retransmission_limit, "retransmissions that are allowed"),
	HOST("last_win", CT, last_window, "window of the last packet"),
	HOST("last_seq", CT, last_seq, "sequence number of the last packet"),
	HOST("last_ack", CT, last_ack, "acknowledgment of the last packet"),
	HOST("last_end", CT, last_end, "end of the last packet"),
	HOST("last_index", CT, last_index, "flags of the last packet"),
};

#define CT_SIDE struct rte_flow_tcp_dir_param
#define CT_NUMBER(a_name, a_offset, m, a_what)                                                  \
	BITS(a_name, RULE_NUMBER, (a_offset) + offsetof(CT_SIDE, m), SIZE_OF(CT_SIDE, m), 0, 0, \
		a_what)
#define CT_DIRECTION(a_offset)                                                                  \
	{                                                                                       \
		BITS("scale", RULE_NUMBER, a_offset, 1, 0, 4, "window scale"),                  \
		BITS("fin", RULE_NUMBER, a_offset, 1, 4, 1, "a FIN was sent"),                  \
		BITS("acked", RULE_NUMBER, a_offset, 1, 5, 1, "an acknowledgment came"),        \
		BITS("unack_data", RULE_NUMBER, a_offset, 1, 6, 1, "data is not acknowledged"), \
		CT_NUMBER("sent_end", a_offset, sent_end, "end of what was sent"),              \
		CT_NUMBER("reply_end", a_offset, reply_end, "end of what may be sent"),         \
		CT_NUMBER("max_win", a_offset, max_win, "largest window"),                      \
		CT_NUMBER("max_ack", a_offset, max_ack, "largest acknowledgment"),              \
	}
static const struct rule_field conntrack_original[] = CT_DIRECTION(offsetof(CT, original_dir));
static const struct rule_field conntrack_reply[] = CT_DIRECTION(offsetof(CT, reply_dir));

#define CT_THING(a_fields)                                                               \
	&(const struct rule_thing)                                                       \
	{                                                                                \
		.size = sizeof(CT), .fields = (a_fields), .n_fields = COUNT_OF(a_fields) \
	}

/* Steps. */
#define W(a_name) {.step = RULE_STEP_WORD, .name = (a_name)}
#define W_OR(a_name, a_alias) {.step = RULE_STEP_WORD, .name = (a_name), .alias = (a_alias)}
#define N(a_name, a_id) \
	{.step = RULE_STEP_VALUE, .name = (a_name), .kind = RULE_NUMBER, .id = (a_id)}
#define V(a_name, a_kind, a_id) \
	{.step = RULE_STEP_VALUE, .name = (a_name), .kind = (a_kind), .id = (a_id)}
#define V_WORDS(a_name, a_id, a_words) \
	{.step = RULE_STEP_VALUE,      \
		.name = (a_name),      \
		.kind = RULE_WORD,     \
		.id = (a_id),          \
		.words = (a_words)}
#define MAYBE(a_name, a_kind, a_id) \
	{.step = RULE_STEP_MAYBE, .name = (a_name), .kind = (a_kind), .id = (a_id)}
#define PORT N("port", RULE_ARG_PORT)
#define OPTIONS(a_options) \
	{.step = RULE_STEP_OPTIONS, .options = (a_options), .n_options = COUNT_OF(a_options)}
#define ITEMS(a_end) {.step = RULE_STEP_ITEMS, .name = (a_end)}
#define ACTIONS(n) {.step = RULE_STEP_ACTIONS, .list = (n)}
#define FIELDS(a_thing) {.step = RULE_STEP_FIELDS, .thing = (a_thing)}

/* The steps of a form; each is an array that only its row points to. */
#define STEPS(...)                                        \
	.steps = (const struct rule_step[]){__VA_ARGS__}, \
	.n_steps = sizeof((const struct rule_step[]){__VA_ARGS__}) / sizeof(struct rule_step)
#define FORM(a_verb, a_what, ...) {.verb = (a_verb), .what = (a_what), STEPS(__VA_ARGS__)}
#define SET(a_slot, a_what, ...) \
	{.verb = RULE_SET, .slot = (a_slot), .what = (a_what), STEPS(__VA_ARGS__)}
#define LATER_FORM(a_why, a_what, ...) \
	{.verb = RULE_LATER, .what = (a_what), .refused = (a_why), STEPS(__VA_ARGS__)}

#define RULE_TAIL W("pattern"), ITEMS("end"), W_OR("actions", "action"), ACTIONS(0)
#define METER W("port"), W("meter")

const struct rule_form rule_forms[] = {
	FORM(RULE_CREATE, "make a rule", W("flow"), W("create"), PORT, OPTIONS(rule_options),
		RULE_TAIL),
	FORM(RULE_VALIDATE, "ask whether a rule could be made", W("flow"), W("validate"), PORT,
		OPTIONS(rule_options), RULE_TAIL),
	FORM(RULE_DESTROY, "remove rules", W("flow"), W("destroy"), PORT, OPTIONS(destroy_options)),
	FORM(RULE_FLUSH, "remove all rules", W("flow"), W("flush"), PORT),
	FORM(RULE_LIST, "list rules", W("flow"), W("list"), PORT, OPTIONS(list_options)),
	FORM(RULE_QUERY, "ask for what an action of a rule has counted", W("flow"), W("query"),
		PORT, N("rule", RULE_ARG_RULE), {.step = RULE_STEP_ACTION, .name = "action"}),
	FORM(RULE_DUMP, "write the NIC's rules to a file", W("flow"), W("dump"), PORT, W("all"),
		MAYBE("file", RULE_PATH, RULE_ARG_PATH)),
	FORM(RULE_DUMP, "write a rule of the NIC to a file", W("flow"), W("dump"), PORT, W("rule"),
		N("rule", RULE_ARG_RULE), MAYBE("file", RULE_PATH, RULE_ARG_PATH)),
	FORM(RULE_DUMP, "the same as with all", W("flow"), W("dump"), PORT,
		V("file", RULE_PATH, RULE_ARG_PATH)),
	FORM(RULE_ISOLATE, "receive only what rules say", W("flow"), W("isolate"), PORT,
		V("boolean", RULE_BOOLEAN, RULE_ARG_ENABLE)),
	FORM(RULE_AGED, "list rules whose age action has fired", W("flow"), W("aged"), PORT,
		OPTIONS(aged_options)),
	FORM(RULE_INFO, "tell what a port can set aside for rules", W("flow"), W("info"), PORT),
	FORM(RULE_CONFIGURE, "set resources aside for rules", W("flow"), W("configure"), PORT,
		OPTIONS(configure_options)),
	FORM(RULE_TUNNEL_CREATE, "make a tunnel for rules", W("flow"), W("tunnel"), W("create"),
		PORT, W("type"), V("tunnel", RULE_PATH, RULE_ARG_TUNNEL_TYPE)),
	FORM(RULE_TUNNEL_DESTROY, "remove a tunnel", W("flow"), W("tunnel"), W("destroy"), PORT,
		W("id"), N("tunnel", RULE_ARG_TUNNEL)),
	FORM(RULE_TUNNEL_LIST, "list tunnels", W("flow"), W("tunnel"), W("list"), PORT),
	FORM(RULE_INDIRECT_CREATE, "make an action that rules share", W("flow"),
		W("indirect_action"), PORT, W("create"), OPTIONS(indirect_create_options),
		W("action"), ACTIONS(0)),
	FORM(RULE_INDIRECT_UPDATE, "change it", W("flow"), W("indirect_action"), PORT, W("update"),
		N("id", RULE_ARG_ACTION_ID), W("action"), ACTIONS(0)),
	FORM(RULE_INDIRECT_DESTROY, "remove it", W("flow"), W("indirect_action"), PORT,
		W("destroy"), OPTIONS(indirect_destroy_options)),
	FORM(RULE_INDIRECT_QUERY, "ask for what it has counted", W("flow"), W("indirect_action"),
		PORT, W("query"), N("id", RULE_ARG_ACTION_ID)),
	FORM(RULE_PATTERN_TEMPLATE_CREATE, "make a template of patterns", W("flow"),
		W("pattern_template"), PORT, W("create"), OPTIONS(pattern_template_options),
		W("template"), ITEMS("end")),
	FORM(RULE_PATTERN_TEMPLATE_DESTROY, "remove templates", W("flow"), W("pattern_template"),
		PORT, W("destroy"), OPTIONS(pattern_template_ids)),
	FORM(RULE_ACTIONS_TEMPLATE_CREATE, "make a template of actions", W("flow"),
		W("actions_template"), PORT, W("create"), OPTIONS(actions_template_options),
		W("template"), ACTIONS(0),
		{.step = RULE_STEP_WORD, .name = "mask", .optional = true}, ACTIONS(1)),
	FORM(RULE_ACTIONS_TEMPLATE_DESTROY, "remove templates", W("flow"), W("actions_template"),
		PORT, W("destroy"), OPTIONS(actions_template_ids)),
	FORM(RULE_TABLE_CREATE, "make a table of rules by templates", W("flow"),
		W_OR("template_table", "table"), PORT, W("create"), OPTIONS(table_options)),
	FORM(RULE_TABLE_DESTROY, "remove tables", W("flow"), W_OR("template_table", "table"), PORT,
		W("destroy"), OPTIONS(table_ids)),
	FORM(RULE_QUEUE_CREATE, "queue the making of a rule", W("flow"), W("queue"), PORT,
		W("create"), N("queue", RULE_ARG_QUEUE), OPTIONS(queue_create_options), RULE_TAIL),
	FORM(RULE_QUEUE_DESTROY, "queue the removal of rules", W("flow"), W("queue"), PORT,
		W("destroy"), N("queue", RULE_ARG_QUEUE), OPTIONS(queue_destroy_options)),
	FORM(RULE_QUEUE_AGED, "list aged rules of a queue", W("flow"), W("queue"), PORT, W("aged"),
		N("queue", RULE_ARG_QUEUE), OPTIONS(aged_options)),
	FORM(RULE_QUEUE_INDIRECT_CREATE, "queue the making of an indirect action", W("flow"),
		W("queue"), PORT, W("indirect_action"), N("queue", RULE_ARG_QUEUE), W("create"),
		OPTIONS(queue_indirect_create_options), W("action"), ACTIONS(0)),
	FORM(RULE_QUEUE_INDIRECT_UPDATE, "queue its change", W("flow"), W("queue"), PORT,
		W("indirect_action"), N("queue", RULE_ARG_QUEUE), W("update"),
		N("id", RULE_ARG_ACTION_ID), OPTIONS(postpone_options), W("action"), ACTIONS(0)),
	FORM(RULE_QUEUE_INDIRECT_DESTROY, "queue its removal", W("flow"), W("queue"), PORT,
		W("indirect_action"), N("queue", RULE_ARG_QUEUE), W("destroy"),
		OPTIONS(queue_indirect_destroy_options)),
	FORM(RULE_QUEUE_INDIRECT_QUERY, "queue a question to it", W("flow"), W("queue"), PORT,
		W("indirect_action"), N("queue", RULE_ARG_QUEUE), W("query"),
		N("id", RULE_ARG_ACTION_ID), OPTIONS(postpone_options)),
	FORM(RULE_PUSH, "hand what is queued to the NIC", W("flow"), W("push"), PORT, W("queue"),
		N("queue", RULE_ARG_QUEUE)),
	FORM(RULE_PULL, "fetch what became of it", W("flow"), W("pull"), PORT, W("queue"),
		N("queue", RULE_ARG_QUEUE)),
	FORM(RULE_FLEX_CREATE, "make an item of one's own from a file", W("flow"), W("flex_item"),
		W_OR("create", "init"), PORT, N("id", RULE_ARG_FLEX),
		V("file", RULE_PATH, RULE_ARG_PATH)),
	FORM(RULE_FLEX_DESTROY, "remove it", W("flow"), W("flex_item"), W("destroy"), PORT,
		N("id", RULE_ARG_FLEX)),
	FORM(RULE_FLEX_PATTERN, "make a pattern of it", W("flow"), W("flex_item"), W("pattern"),
		N("id", RULE_ARG_FLEX), W("is"), V("hex", RULE_PATH, RULE_ARG_PATTERN)),
	FORM(RULE_FLEX_PATTERN, "make a pattern of it, with a mask", W("flow"), W("flex_item"),
		W("pattern"), N("id", RULE_ARG_FLEX), W("spec"),
		V("hex", RULE_PATH, RULE_ARG_PATTERN), W("mask"),
		V("hex", RULE_PATH, RULE_ARG_MASK)),
	SET(RULE_SLOT_VXLAN, "headers of vxlan_encap", W("set"), W("vxlan"),
		OPTIONS(vxlan_options)),
	SET(RULE_SLOT_VXLAN, "the same with a VLAN tag", W("set"), W("vxlan-with-vlan"),
		OPTIONS(vxlan_vlan_options)),
	SET(RULE_SLOT_VXLAN, "the same with type of service and time to live", W("set"),
		W("vxlan-tos-ttl"), OPTIONS(vxlan_tos_options)),
	SET(RULE_SLOT_NVGRE, "headers of nvgre_encap", W("set"), W("nvgre"),
		OPTIONS(nvgre_options)),
	SET(RULE_SLOT_NVGRE, "the same with a VLAN tag", W("set"), W("nvgre-with-vlan"),
		OPTIONS(nvgre_vlan_options)),
	SET(RULE_SLOT_L2_ENCAP, "header of l2_encap", W("set"), W("l2_encap"), OPTIONS(l2_options)),
	SET(RULE_SLOT_L2_ENCAP, "the same with a VLAN tag", W("set"), W("l2_encap-with-vlan"),
		OPTIONS(l2_vlan_options)),
	SET(RULE_SLOT_L2_DECAP, "header of l2_decap", W("set"), W("l2_decap"),
		{.step = RULE_STEP_OPTIONS,
			.options = decap_options,
			.n_options = 1,
			.optional = true}),
	SET(RULE_SLOT_L2_DECAP, "the same with a VLAN tag", W("set"), W("l2_decap-with-vlan"),
		{.step = RULE_STEP_OPTIONS,
			.options = decap_options,
			.n_options = 1,
			.optional = true}),
	SET(RULE_SLOT_MPLSOGRE_ENCAP, "headers of mplsogre_encap", W("set"), W("mplsogre_encap"),
		OPTIONS(gre_options)),
	SET(RULE_SLOT_MPLSOGRE_ENCAP, "the same with a VLAN tag", W("set"),
		W("mplsogre_encap-with-vlan"), OPTIONS(gre_vlan_options)),
	SET(RULE_SLOT_MPLSOGRE_DECAP, "headers of mplsogre_decap", W("set"), W("mplsogre_decap"),
		OPTIONS(decap_options)),
	SET(RULE_SLOT_MPLSOGRE_DECAP, "the same with a VLAN tag", W("set"),
		W("mplsogre_decap-with-vlan"), OPTIONS(decap_options)),
	SET(RULE_SLOT_MPLSOUDP_ENCAP, "headers of mplsoudp_encap", W("set"), W("mplsoudp_encap"),
		OPTIONS(udp_options)),
	SET(RULE_SLOT_MPLSOUDP_ENCAP, "the same with a VLAN tag", W("set"),
		W("mplsoudp_encap-with-vlan"), OPTIONS(udp_vlan_options)),
	SET(RULE_SLOT_MPLSOUDP_DECAP, "headers of mplsoudp_decap", W("set"), W("mplsoudp_decap"),
		OPTIONS(decap_options)),
	SET(RULE_SLOT_MPLSOUDP_DECAP, "the same with a VLAN tag", W("set"),
		W("mplsoudp_decap-with-vlan"), OPTIONS(decap_options)),
	SET(RULE_SLOT_RAW_ENCAP, "headers of raw_encap", W("set"), W("raw_encap"),
		MAYBE("index", RULE_NUMBER, RULE_ARG_INDEX), ITEMS("end_set")),
	SET(RULE_SLOT_RAW_DECAP, "headers of raw_decap", W("set"), W("raw_decap"),
		MAYBE("index", RULE_NUMBER, RULE_ARG_INDEX), ITEMS("end_set")),
	SET(RULE_SLOT_SAMPLE, "actions of sample", W("set"), W("sample_actions"),
		N("index", RULE_ARG_INDEX), ACTIONS(0)),
	SET(RULE_SLOT_CONNTRACK, "the connection of conntrack", W("set"), W("conntrack"), W("com"),
		FIELDS(CT_THING(conntrack_common))),
	SET(RULE_SLOT_CONNTRACK_ORIGINAL, "its original direction", W("set"), W("conntrack"),
		W("orig"), FIELDS(CT_THING(conntrack_original))),
	SET(RULE_SLOT_CONNTRACK_REPLY, "its other direction", W("set"), W("conntrack"), W("rply"),
		FIELDS(CT_THING(conntrack_reply))),
	FORM(RULE_METER_PROFILE, "make a profile of meters, RFC 2697", W("add"), METER,
		W("profile"), W("srtcm_rfc2697"), PORT, N("profile", RULE_ARG_PROFILE),
		N("cir", RULE_ARG_RATE), N("cbs", RULE_ARG_RATE), N("ebs", RULE_ARG_RATE),
		N("packet_mode", RULE_ARG_PACKET_MODE)),
	FORM(RULE_METER_PROFILE, "make a profile of meters, RFC 2698", W("add"), METER,
		W("profile"), W("trtcm_rfc2698"), PORT, N("profile", RULE_ARG_PROFILE),
		N("cir", RULE_ARG_RATE), N("pir", RULE_ARG_RATE), N("cbs", RULE_ARG_RATE),
		N("pbs", RULE_ARG_RATE), N("packet_mode", RULE_ARG_PACKET_MODE)),
	FORM(RULE_METER_PROFILE, "make a profile of meters, RFC 4115", W("add"), METER,
		W("profile"), W("trtcm_rfc4115"), PORT, N("profile", RULE_ARG_PROFILE),
		N("cir", RULE_ARG_RATE), N("eir", RULE_ARG_RATE), N("cbs", RULE_ARG_RATE),
		N("ebs", RULE_ARG_RATE), N("packet_mode", RULE_ARG_PACKET_MODE)),
	FORM(RULE_METER_POLICY, "make a policy of meters: actions for each color", W("add"), METER,
		W("policy"), PORT, N("policy", RULE_ARG_POLICY), W("g_actions"), ACTIONS(0),
		W("y_actions"), ACTIONS(1), W("r_actions"), ACTIONS(2)),
	FORM(RULE_METER_CREATE, "make a meter", W("create"), METER, PORT,
		N("meter", RULE_ARG_METER), N("profile", RULE_ARG_PROFILE),
		N("policy", RULE_ARG_POLICY), V("enable", RULE_BOOLEAN, RULE_ARG_ENABLE),
		N("stats_mask", RULE_ARG_STATS_MASK), V("shared", RULE_BOOLEAN, RULE_ARG_SHARED),
		{.step = RULE_STEP_MAYBE,
			.name = "default_color",
			.kind = RULE_WORD,
			.id = RULE_ARG_COLOR,
			.words = rule_color_letters},
		MAYBE("use_color", RULE_BOOLEAN, RULE_ARG_USE_COLOR),
		{.step = RULE_STEP_MAYBE,
			.name = "color",
			.kind = RULE_WORD,
			.list = 80,
			.id = RULE_ARG_TABLE_ENTRY,
			.words = rule_color_letters}),
	FORM(RULE_METER_CHANGE, "remove a profile", W("del"), METER, W("profile"), PORT,
		N("profile", RULE_ARG_PROFILE)),
	FORM(RULE_METER_CHANGE, "remove a policy", W("del"), METER, W("policy"), PORT,
		N("policy", RULE_ARG_POLICY)),
	FORM(RULE_METER_CHANGE, "remove a meter", W("del"), METER, PORT,
		N("meter", RULE_ARG_METER)),
	FORM(RULE_METER_CHANGE, "enable a meter", W("enable"), METER, PORT,
		N("meter", RULE_ARG_METER)),
	FORM(RULE_METER_CHANGE, "disable a meter", W("disable"), METER, PORT,
		N("meter", RULE_ARG_METER)),
	FORM(RULE_METER_CHANGE, "give a meter another profile", W("set"), METER, W("profile"), PORT,
		N("meter", RULE_ARG_METER), N("profile", RULE_ARG_PROFILE)),
	FORM(RULE_METER_CHANGE, "what a meter counts", W("set"), METER, W("stats"), W("mask"), PORT,
		N("meter", RULE_ARG_METER), N("stats_mask", RULE_ARG_STATS_MASK)),
	LATER_FORM(RULE_CAME("23.07"), "give a rule other actions", W("flow"), W("update"), PORT,
		N("rule", RULE_ARG_LATER), W("actions"), ACTIONS(0), OPTIONS(later_update_options)),
	LATER_FORM(RULE_CAME("23.11"), "what is done with packets that no rule of a group matches",
		W("flow"), W("group"), PORT, OPTIONS(later_group_options), W("set_miss_actions"),
		ACTIONS(0)),
	LATER_FORM(RULE_CAME("23.11"), "hash of a packet in a table", W("flow"), W("hash"), PORT,
		W("template_table"), N("table", RULE_ARG_LATER), OPTIONS(later_hash_options),
		W("actions_template"), N("template", RULE_ARG_LATER), W("pattern"), ITEMS("end")),
	LATER_FORM(RULE_CAME("24.03"), "hash of an encapsulated packet", W("flow"), W("hash"), PORT,
		W("encap"), V("field", RULE_PATH, RULE_ARG_LATER), W("pattern"), ITEMS("end")),
	LATER_FORM(RULE_CAME("24.03"), "give a table another size", W("flow"), W("template_table"),
		PORT, W("resize"), W("table_resize_id"), N("table", RULE_ARG_LATER),
		W("table_resize_rules_num"), N("rules", RULE_ARG_LATER)),
	LATER_FORM(RULE_CAME("24.03"), "end the change of its size", W("flow"), W("template_table"),
		PORT, W("resize_complete"), W("table"), N("table", RULE_ARG_LATER)),
	LATER_FORM(RULE_CAME("24.03"), "move a rule into the resized table", W("flow"), W("queue"),
		PORT, W("update_resized"), N("queue", RULE_ARG_LATER), W("rule"),
		N("rule", RULE_ARG_LATER)),
	LATER_FORM(RULE_CAME("23.07"), "queue other actions for a rule", W("flow"), W("queue"),
		PORT, W("update"), N("queue", RULE_ARG_LATER), N("rule", RULE_ARG_LATER),
		OPTIONS(later_queue_update_options), W("actions"), ACTIONS(0)),
	LATER_FORM(RULE_CAME("23.03"), "query and change an indirect action", W("flow"),
		W("indirect_action"), PORT, W("query_update"), N("id", RULE_ARG_LATER),
		OPTIONS(later_query_update_options), W("action"), ACTIONS(0)),
	LATER_FORM(RULE_CAME("23.03"), "queue both", W("flow"), W("queue"), PORT,
		W("indirect_action"), N("queue", RULE_ARG_LATER), W("query_update"),
		N("id", RULE_ARG_LATER), OPTIONS(later_query_update_options), W("action"),
		ACTIONS(0)),
	LATER_FORM(RULE_CAME("23.07"), "make a list of indirect actions", W("flow"),
		W("indirect_action"), PORT, W("create"), OPTIONS(indirect_create_options),
		W("list"), W("actions"), ACTIONS(0)),
	LATER_FORM(RULE_CAME("23.07"), "header that ipv6_ext_push puts in", W("set"),
		W("ipv6_ext_push"), N("index", RULE_ARG_LATER), ITEMS("end_set")),
	LATER_FORM(RULE_CAME("23.07"), "header that ipv6_ext_remove takes out", W("set"),
		W("ipv6_ext_remove"), N("index", RULE_ARG_LATER), ITEMS("end_set")),
};
const unsigned rule_n_forms = sizeof(rule_forms) / sizeof(rule_forms[0]);
