/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The table of the rule language, which is testpmd's: pattern items and actions with their fields, and
 * the forms of the commands. Parser, printer, completion and docs/rules.md all read this table and know
 * no word of their own. To teach the language a word is to add a row.
 *
 * The table is constant: any thread may read it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_flow.h>

/* How the text of a value becomes bytes, and which bytes. */
enum rule_kind {
	RULE_NUMBER,  /* unsigned: decimal, 0x..., or octal with a leading 0 */
	RULE_SIGNED,  /* the same with a sign */
	RULE_BOOLEAN, /* 0, 1, no, yes, off, on, false, true, N, Y */
	RULE_WORD,    /* one of `words` */
	RULE_WORDS,   /* some of `words`, each a bit, with commas between them */
	RULE_MAC,     /* six bytes */
	RULE_IPV4,    /* an address, or a number, big endian */
	RULE_IPV6,    /* sixteen bytes */
	RULE_ADDRESS, /* IPv4 or IPv6; only for arguments of commands */
	RULE_PATH,    /* any word; only for arguments of commands */
	RULE_NAME,    /* a name into an array of `width` bytes, with zeros behind it */
	RULE_INLINE,  /* hexadecimal digits into an array of `width` bytes */
	RULE_HEX,     /* hexadecimal digits behind a pointer */
	RULE_STRING,  /* a word's own bytes behind a pointer; printed as RULE_HEX */
	RULE_FLAG,    /* takes no value and sets its bits */
	RULE_EMPTY,   /* takes no value and does nothing */
	RULE_VARIANT, /* a word that also says which other fields there are */
	RULE_TYPES,   /* RSS hash types up to the word end */
	RULE_QUEUES,  /* numbers up to the word end */
};

struct rule_word {
	const char *name; /* NULL ends a list */
	uint64_t value;
	const char *refused; /* why no rule can have it ("it came with DPDK 23.03"); NULL: it can */
};

enum {
	RULE_WHOLE = 1,	   /* other fields are parts of it: printed only where those don't say it */
	RULE_ALIAS = 2,	   /* another name of a field: read, never printed */
	RULE_IS_ONLY = 4,  /* takes no parameter but `is` */
	RULE_NO_RANGE = 8, /* takes neither `last` nor `prefix` */
	RULE_SOURCE =
		16, /* of modify_field: shares its bytes with others of these; see rule_source_fits() */
	RULE_CLEARS = 32,  /* says which of them there is */
	RULE_ONES = 64,	   /* all ones where it is not given */
	RULE_IN_HEX = 128, /* printed in hexadecimal digits */
	RULE_ABOVE = 256,  /* takes no parameter but `above` */
	RULE_BARE = 512,   /* of an item: its value follows its name */
};

struct rule_field {
	const char *name; /* "": the value follows the item's own name */
	const char *what; /* one line for docs and completion */
	enum rule_kind kind;
	uint16_t offset; /* in the struct: of a number's word, or of a pointer */
	uint8_t width;	 /* bytes of the word, 1 to 8; of arrays more */
	uint8_t shift;	 /* of the field's lowest bit in its word */
	uint8_t bits;	 /* 0: the whole word */
	bool big_endian;
	uint16_t flags;
	uint8_t also_shift;   /* bit of a 32-bit word that says "given"; see also_offset */
	uint16_t also_offset; /* 1 more than the offset of that word; 0: there is none */
	uint16_t
		length_offset; /* behind a pointer: 1 more than where the length stands; 0: nowhere */
	uint8_t length_width;
	uint16_t max;	   /* bytes behind a pointer, or numbers in a list, at most; 0: no limit */
	uint16_t variants; /* bits of those variants that have this field; 0: all */
	const struct rule_word *words;
	const char *refused; /* as in struct rule_word */
};

/* What else becomes part of an action, from `set` lines. */
enum rule_fill {
	RULE_FILL_NOTHING,
	RULE_FILL_DEFINITION, /* items of an outer header */
	RULE_FILL_BYTES,      /* bytes of an outer header */
	RULE_FILL_SAMPLE,
	RULE_FILL_CONNTRACK,
	RULE_FILL_RSS,
};

/* Lines of `set` that a struct rule_setup remembers; those that have an index, once for each. */
enum rule_slot {
	RULE_SLOT_NONE,
	RULE_SLOT_VXLAN,
	RULE_SLOT_NVGRE,
	RULE_SLOT_L2_ENCAP,
	RULE_SLOT_L2_DECAP,
	RULE_SLOT_MPLSOGRE_ENCAP,
	RULE_SLOT_MPLSOGRE_DECAP,
	RULE_SLOT_MPLSOUDP_ENCAP,
	RULE_SLOT_MPLSOUDP_DECAP,
	RULE_SLOT_CONNTRACK,
	RULE_SLOT_CONNTRACK_ORIGINAL,
	RULE_SLOT_CONNTRACK_REPLY,
	RULE_SLOT_RAW_ENCAP,
	RULE_SLOT_RAW_DECAP,
	RULE_SLOT_SAMPLE,
	RULE_N_SLOTS,
};
#define RULE_MAX_INDEX 8

/* An item or an action. */
struct rule_thing {
	const char *name;
	const char *what;
	int type;      /* enum rte_flow_item_type or rte_flow_action_type */
	uint16_t size; /* of its struct; 0: it has none */
	uint8_t n_fields;
	uint8_t wire; /* items: bytes of the header, with which the struct begins; 0: none in packets */
	enum rule_fill fill;
	enum rule_slot slot;
	const struct rule_field *fields;
	const char *refused; /* as in struct rule_word */
};

extern const struct rule_thing rule_items[];
extern const unsigned rule_n_items;
extern const struct rule_thing rule_actions[];
extern const unsigned rule_n_actions;

/* Words with values of their own: RSS hash types, booleans. */
extern const struct rule_word rule_rss_types[];
extern const struct rule_word rule_booleans[];

/*
 * Configurations that have more than rte_flow's struct. The latter comes first, so that a driver sees
 * its own. Each `given` is 0 where the rule named no index.
 */
struct rule_sample {
	struct rte_flow_action_sample sample;
	uint32_t index, given;
};
struct rule_raw_encap {
	struct rte_flow_action_raw_encap encap;
	uint32_t index, given;
};
struct rule_raw_decap {
	struct rte_flow_action_raw_decap decap;
	uint32_t index, given;
};
/* Likewise items: the names of sets of addresses, where their mask is ones. */
#define RULE_NAME_MAX 32
struct rule_sets {
	char src[RULE_NAME_MAX], dst[RULE_NAME_MAX];
};
struct rule_ipv4 {
	struct rte_flow_item_ipv4 item;
	struct rule_sets sets;
};
struct rule_ipv6 {
	struct rte_flow_item_ipv6 item;
	struct rule_sets sets;
};
/*
 * Actions of ours: no driver knows their types, and no NIC is given them. `reject` drops, and tells the sender; `log` tells
 * what came to the rule.
 */
#define RULE_ACTION_REJECT 0x4d520001
#define RULE_ACTION_LOG 0x4d520002
struct rule_reject {
	uint32_t with; /* enum reject_with */
};

/*
 * Items of Millrace's own, which rte_flow does not have: only software matches them. The state is some of the bits below;
 * `reverse` is a bit of struct rule_direction's only byte.
 */
#define RULE_ITEM_CT 0x4d520101
#define RULE_ITEM_DIRECTION 0x4d520102
#define RULE_CT_NEW 1u
#define RULE_CT_ESTABLISHED 2u
#define RULE_CT_RELATED 4u
#define RULE_CT_INVALID 8u
#define RULE_CT_ALL 15u
struct rule_ct {
	uint8_t state;
};
struct rule_direction {
	uint8_t reverse;
};
/*
 * How many flows a packet's source may have, or begin in a time of so many seconds: `above` that many the item matches. An
 * IP version's prefix says which addresses are one source; it is all of the address where it is not given.
 */
#define RULE_ITEM_SOURCE 0x4d520103
struct rule_source {
	uint32_t new_flows, live_flows;
	uint32_t per_s, burst;
	uint8_t ipv4_prefix, ipv6_prefix;
};
/* The configuration of `indirect`: who runs the rule puts the handle of this number in its place. */
struct rule_indirect {
	uint32_t id;
};

/* What a command is. */
enum rule_verb {
	RULE_CREATE,
	RULE_VALIDATE,
	RULE_UPDATE,
	RULE_DESTROY,
	RULE_FLUSH,
	RULE_LIST,
	RULE_QUERY,
	RULE_DUMP,
	RULE_ISOLATE,
	RULE_AGED,
	RULE_INFO,
	RULE_CONFIGURE,
	RULE_TUNNEL_CREATE,
	RULE_TUNNEL_DESTROY,
	RULE_TUNNEL_LIST,
	RULE_INDIRECT_CREATE,
	RULE_INDIRECT_UPDATE,
	RULE_INDIRECT_DESTROY,
	RULE_INDIRECT_QUERY,
	RULE_PATTERN_TEMPLATE_CREATE,
	RULE_PATTERN_TEMPLATE_DESTROY,
	RULE_ACTIONS_TEMPLATE_CREATE,
	RULE_ACTIONS_TEMPLATE_DESTROY,
	RULE_TABLE_CREATE,
	RULE_TABLE_DESTROY,
	RULE_QUEUE_CREATE,
	RULE_QUEUE_DESTROY,
	RULE_QUEUE_AGED,
	RULE_QUEUE_INDIRECT_CREATE,
	RULE_QUEUE_INDIRECT_UPDATE,
	RULE_QUEUE_INDIRECT_DESTROY,
	RULE_QUEUE_INDIRECT_QUERY,
	RULE_PUSH,
	RULE_PULL,
	RULE_FLEX_CREATE,
	RULE_FLEX_DESTROY,
	RULE_FLEX_PATTERN,
	RULE_SET,	    /* fills a slot of a struct rule_setup */
	RULE_METER_PROFILE, /* add port meter profile */
	RULE_METER_POLICY,  /* add port meter policy */
	RULE_METER_CREATE,  /* create port meter */
	RULE_METER_CHANGE,  /* every other command of meters */
	RULE_LATER,	    /* of a release after 22.11: never returned */
};

/* The arguments of commands, by what they mean. */
enum rule_argument_id {
	RULE_ARG_NONE,
	RULE_ARG_PORT,
	RULE_ARG_RULE,
	RULE_ARG_GROUP,
	RULE_ARG_PRIORITY,
	RULE_ARG_QUEUE,
	RULE_ARG_TABLE,
	RULE_ARG_PATTERN_TEMPLATE,
	RULE_ARG_ACTIONS_TEMPLATE,
	RULE_ARG_ACTION_ID,
	RULE_ARG_REPLIES, /* 1: they follow */
	RULE_ARG_TUNNEL_SET,
	RULE_ARG_TUNNEL_MATCH,
	RULE_ARG_TUNNEL_TYPE,
	RULE_ARG_TUNNEL,
	RULE_ARG_POSTPONE,
	RULE_ARG_RELAXED,
	RULE_ARG_RULES_NUMBER,
	RULE_ARG_ENABLE,
	RULE_ARG_DESTROY, /* given: aged rules are destroyed */
	RULE_ARG_ACTION,  /* the action that is queried: its enum rte_flow_action_type */
	RULE_ARG_PATH,
	RULE_ARG_FLEX,
	RULE_ARG_PATTERN,
	RULE_ARG_MASK,
	RULE_ARG_QUEUES_NUMBER,
	RULE_ARG_QUEUES_SIZE,
	RULE_ARG_COUNTERS,
	RULE_ARG_AGING_COUNTERS,
	RULE_ARG_METERS,
	RULE_ARG_CONNTRACKS,
	RULE_ARG_FLAGS,
	RULE_ARG_INDEX,
	RULE_ARG_IP_VERSION,
	RULE_ARG_VNI, /* VXLAN's; also NVGRE's TNI and MPLS's label */
	RULE_ARG_UDP_SRC,
	RULE_ARG_UDP_DST,
	RULE_ARG_IP_SRC,
	RULE_ARG_IP_DST,
	RULE_ARG_IP_TOS,
	RULE_ARG_IP_TTL,
	RULE_ARG_VLAN_TCI,
	RULE_ARG_ETH_SRC,
	RULE_ARG_ETH_DST,
	RULE_ARG_METER,
	RULE_ARG_PROFILE,
	RULE_ARG_POLICY,
	RULE_ARG_RATE, /* of a profile: committed rate, then the others in the order of the command */
	RULE_ARG_PACKET_MODE,
	RULE_ARG_STATS_MASK,
	RULE_ARG_SHARED,
	RULE_ARG_COLOR,
	RULE_ARG_USE_COLOR,
	RULE_ARG_TABLE_ENTRY,
	RULE_ARG_PROTO,
	RULE_ARG_LATER, /* of a word that is refused */
};

/* Options that fill the rule's attributes rather than arguments. */
enum rule_attr {
	RULE_ATTR_NONE,
	RULE_ATTR_GROUP,
	RULE_ATTR_PRIORITY,
	RULE_ATTR_INGRESS,
	RULE_ATTR_EGRESS,
	RULE_ATTR_TRANSFER,
};

/* A word with or without a value, somewhere among others. */
struct rule_option {
	const char *name;
	const char *what;
	enum rule_kind kind;
	enum rule_argument_id id;
	enum rule_attr attr;
	uint8_t min; /* that many have to be given */
	bool alias;  /* another name of the option before it: read, never printed */
	const struct rule_word *words;
	const char *refused;
};

enum rule_step_kind {
	RULE_STEP_WORD,	   /* `name` itself */
	RULE_STEP_VALUE,   /* a value of `kind` */
	RULE_STEP_MAYBE,   /* the same, or nothing */
	RULE_STEP_OPTIONS, /* any of `options`, in any order */
	RULE_STEP_ITEMS,   /* up to the word `name`, after which a `/` stands before it */
	RULE_STEP_ACTIONS, /* up to the word end, as list number `list` */
	RULE_STEP_ACTION,  /* the name of an action */
	RULE_STEP_FIELDS,  /* fields of `thing`, as those of an action */
};

struct rule_step {
	enum rule_step_kind step;
	const char *name;  /* of a value: what docs call it */
	const char *alias; /* of a word: another one that means the same, or NULL */
	enum rule_kind kind;
	enum rule_argument_id id;
	uint8_t list; /* of actions: which list; of RULE_STEP_MAYBE: how often at most, if not once */
	bool optional; /* of a word: without it the command ends here; of options: none is needed */
	const struct rule_option *options;
	uint8_t n_options;
	const struct rule_word *words;
	const struct rule_thing *thing;
};

/* Lists of actions in one command: a template and its mask, or a policy's three colors. */
#define RULE_MAX_LISTS 3

struct rule_form {
	enum rule_verb verb;
	enum rule_slot slot; /* of RULE_SET */
	const char *what;
	const char *refused;
	uint8_t n_steps;
	const struct rule_step *steps;
};

extern const struct rule_form rule_forms[];
extern const unsigned rule_n_forms;

/* NULL where there is none of this name. */
const struct rule_thing *rule_item_find(const char *name);
const struct rule_thing *rule_action_find(const char *name);
/* The row of a type; of several that are alike, the first. */
const struct rule_thing *rule_item_of(enum rte_flow_item_type type);
const struct rule_thing *rule_action_of(enum rte_flow_action_type type);
/* Is the field (of RULE_SOURCE) that which a source of this type has? */
bool rule_source_fits(const struct rule_field *field, uint64_t type);
const struct rule_word *rule_word_find(const struct rule_word *words, const char *name);
/* The name of a value in a list, or NULL. */
const char *rule_word_name(const struct rule_word *words, uint64_t value);
