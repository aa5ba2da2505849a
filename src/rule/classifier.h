/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The classifier: finds the rule that applies to the header of a packet, among up to four million rules
 * with masks, port ranges, address sets and priorities, in groups. The algorithm is explained in
 * docs/classifier.md.
 *
 * Among the rules of a group that match a header, the one with the lowest priority number wins, and among
 * equal priorities the one that was added first. A winning rule with a jump hands the header on to a
 * group with a higher number; what no rule there matches has no rule.
 *
 * Threads: one writer, the control thread, adds, removes, checks, traces and reads statistics. Any number of
 * readers call classifier_find() and classifier_find_burst(), and never wait. They are readers of the RCU
 * variable that the creator was given, and report their quiescent states there. A reader sees each change
 * entirely or not at all, but a look-up that runs beside two changes may see the later one alone.
 *
 * Many changes at once: each rule is in list 0, in list 1, or in both, and a look-up asks for one of them. So a whole
 * other list is built while readers use the present one, rules that stand in both are not touched, and readers go over
 * to the new list by one store of the caller's: to the variable that has the number which they pass.
 *
 * Memory: all of it is taken at creation (classifier_memory()), less than 200 bytes a rule from 10,000
 * rules on. Wide rules, which ask for more than the first 32 bits of an address, a set, metadata or
 * Ethernet fields, take 96 bytes more, from a pool with a size of its own. Adding to a full pool is
 * refused. A removed rule keeps its memory until the readers have passed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_rcu_qsbr.h>

#include "base/error.h"
#include "packet/hash.h"

#define CLASSIFIER_NONE UINT32_MAX
#define CLASSIFIER_MAX_RULES 4194304u
#define CLASSIFIER_MAX_GROUPS 65535u
#define CLASSIFIER_MAX_PRIORITY 0xffffffu
#define CLASSIFIER_MAX_SETS 4096u
#define CLASSIFIER_MAX_PREFIXES 16777216u
#define CLASSIFIER_SET_NAME 32
#define CLASSIFIER_BURST 64
/* Bits of the lists that a rule is in. */
#define CLASSIFIER_LIST(list) (1u << (list))
#define CLASSIFIER_BOTH_LISTS 3u
/* Ranks of rules are below this. */
#define CLASSIFIER_MAX_RANK (UINT64_C(1) << 40)

/* In classifier_header.vlan: the packet has a tag. It takes the place of the bit for drop eligible. */
#define CLASSIFIER_TAGGED 0x1000u

/*
 * In classifier_header.bits: the VLAN tag says that the packet may be dropped first; what its conversation is to it, one
 * bit of these five; and its direction there, one of two, or none where it has no conversation. A rule for some of the
 * states asks that the bits of all others are 0.
 */
#define CLASSIFIER_DEI 0x01u
#define CLASSIFIER_STATE_SHIFT 1
#define CLASSIFIER_STATES 0x3eu
#define CLASSIFIER_NO_STATE 0x20u
#define CLASSIFIER_FORWARD 0x40u
#define CLASSIFIER_REVERSE 0x80u

/*
 * What a verdict may depend on, in host order; an array of words has the most significant one first. Fields
 * that a packet lacks are 0. Who fills it decides what they are of: the outer headers, the inner ones.
 */
struct classifier_header {
	uint32_t src[4], dst[4]; /* IPv4: in the first word */
	uint8_t proto;		 /* IP protocol of the upper layer */
	uint8_t tcp_flags;
	uint8_t version; /* 4, 6, or 0: not IP */
	uint8_t tos;	 /* or traffic class */
	uint16_t vlan; /* 0: untagged, else the tag's number and priority, and CLASSIFIER_TAGGED */
	uint16_t in_port;
	uint16_t src_port, dst_port; /* ICMP: type and code in src_port, if its maker wants so */
	uint32_t metadata;	     /* tenant, tunnel or whatever its maker wants */
	uint8_t eth_src[6], eth_dst[6];
	uint16_t eth_type;
	uint8_t ttl;
	uint8_t bits; /* CLASSIFIER_DEI and what follows it */
};

static_assert(sizeof(struct classifier_header) == 64, "a line");

struct classifier_range {
	uint16_t first, last;
};

/*
 * A rule. A header matches if each bit of it that is set in `mask` is as in `value`, both ports are in
 * their ranges, and each address is in its set. Bits of the value outside of the mask do not count. The
 * version's mask is 0 or 255, and 255 where addresses are masked; the ports of value and mask are not used.
 */
struct classifier_rule {
	struct classifier_header value, mask;
	struct classifier_range src_port, dst_port; /* 0 to 65535: any */
	uint32_t src_set, dst_set;		    /* numbers of sets; 0: any address */
	uint32_t group;
	uint32_t priority; /* 0 is first; up to CLASSIFIER_MAX_PRIORITY */
	uint32_t jump;	   /* a group above its own; 0: none */
	uint32_t id;	   /* the caller's, for look-ups to return; not CLASSIFIER_NONE */
};

/* A rule that matches everything, with priority 0 in group 0. */
struct classifier_rule classifier_rule_any(uint32_t id);

struct classifier;

struct classifier_config {
	uint32_t max_rules; /* 1 to CLASSIFIER_MAX_RULES */
	/* so many more have room, so that one list can be built beside another; it is slower while they are there */
	uint32_t max_beside;
	uint32_t max_wide;		  /* of these, wide ones */
	uint32_t max_groups;		  /* 1 to CLASSIFIER_MAX_GROUPS: 0 to max_groups - 1 */
	uint32_t max_sets;		  /* up to CLASSIFIER_MAX_SETS */
	uint32_t max_prefixes;		  /* in all sets together */
	const struct hash_secret *secret; /* copied */
	struct rte_rcu_qsbr *qsbr;	  /* the caller's, until after classifier_destroy() */
};

/* 0, -EINVAL, or what mapping_create() says. */
int classifier_create(struct classifier **classifier, const struct classifier_config *config);
/* After the readers have stopped. Accepts NULL. */
void classifier_destroy(struct classifier *classifier);
size_t classifier_memory(const struct classifier *classifier);

/* Readers: */

/*
 * The ids of the rules of a list that apply to headers in a group, or CLASSIFIER_NONE. The memory of all headers is fetched
 * side by side.
 */
void classifier_find_in_list(const struct classifier *classifier, unsigned list, uint32_t group,
	const struct classifier_header *const *headers, uint32_t *ids, unsigned n);

/* The same of list 0, which has all rules unless it is said otherwise. */
static inline void classifier_find_burst(const struct classifier *classifier, uint32_t group,
	const struct classifier_header *const *headers, uint32_t *ids, unsigned n)
{
	classifier_find_in_list(classifier, 0, group, headers, ids, n);
}

static inline uint32_t classifier_find(
	const struct classifier *classifier, uint32_t group, const struct classifier_header *header)
{
	uint32_t id;

	classifier_find_in_list(classifier, 0, group, &header, &id, 1);
	return id;
}

/* How far a search has come: the next one goes on behind that. Begins with zeros: at the begin of group 0. */
struct classifier_place {
	uint32_t group;
	uint64_t order; /* 1 more than that of the rule that was found, in that group */
};

/*
 * Searches for one header like classifier_find_in_list(), from a place on: the rule that would apply if none up to that place were
 * there. `place` becomes that of the rule.
 */
uint32_t classifier_find_behind(const struct classifier *classifier, unsigned list,
	const struct classifier_header *header, struct classifier_place *place);

/* The writer: */

/*
 * Adds a rule. `handle` (or NULL) becomes the number by which it is removed, free again after that.
 * Else nothing changes: -EINVAL for a rule that cannot be, -ELOOP for a jump that does not go up,
 * -ENOENT for a set that is not there, -ENOSPC when a pool is full, -EAGAIN when removed rules must be
 * passed by the readers first.
 */
int classifier_add(
	struct classifier *classifier, const struct classifier_rule *rule, uint32_t *handle);

/* A rule's place: the lists that it is in, and its rank among the rules of its priority, from 1. */
struct classifier_position {
	uint64_t
		rank; /* below CLASSIFIER_MAX_RANK; no other rule of a list and priority has it. 0: after all others */
	unsigned lists; /* bits: CLASSIFIER_LIST() */
};
int classifier_add_at(struct classifier *classifier, const struct classifier_rule *rule,
	const struct classifier_position *at, uint32_t *handle);
/* Moves a rule to these lists, where no reader asks for one that it enters or leaves. */
void classifier_set_lists(struct classifier *classifier, uint32_t handle, unsigned lists);
/* The list that traces and shadows are looked for in; at first 0. */
void classifier_show_list(struct classifier *classifier, unsigned list);
/* 0 or -ENOENT. */
int classifier_remove(struct classifier *classifier, uint32_t handle);
/* The rule as it was added, but for the value's bits outside of its mask. 0 or -ENOENT. */
int classifier_get(
	const struct classifier *classifier, uint32_t handle, struct classifier_rule *rule);

struct classifier_stats {
	uint32_t rules, wide, tuples, sets, prefixes;
	uint32_t longest; /* the most rules under one hash key */
	uint32_t passing; /* removed, but some reader may still see them */
};

void classifier_stats(const struct classifier *classifier, struct classifier_stats *stats);

/* Sets of addresses. */

struct classifier_prefix {
	uint32_t addr[4]; /* as in a header */
	uint8_t version;  /* 4 or 6 */
	uint8_t length;
};

/* The number of the set of this name, made if there is none. 0 or -EINVAL, -ENOSPC. */
int classifier_set_open(struct classifier *classifier, const char *name, uint32_t *set);
/* The number of the set of this name, or 0. */
uint32_t classifier_set_find(const struct classifier *classifier, const char *name);
/*
 * From here on rules ask for the sets of another classifier, which is changed in their place and outlives them. Both have
 * one writer. The classifier has no sets of its own.
 */
void classifier_share_sets(struct classifier *classifier, const struct classifier *other);
/* Removes an empty set. 0, -ENOENT, or -EBUSY: it has prefixes, or a rule asks for it. */
int classifier_set_close(struct classifier *classifier, uint32_t set);
/* 0: added. 1: it was there. -ENOENT: no such set; -EINVAL; -ENOSPC; -EAGAIN as classifier_add(). */
int classifier_set_add(
	struct classifier *classifier, uint32_t set, const struct classifier_prefix *prefix);
/* 0 or -ENOENT. */
int classifier_set_remove(
	struct classifier *classifier, uint32_t set, const struct classifier_prefix *prefix);

/* What happens to one header, step by step. */

enum classifier_step_kind {
	CLASSIFIER_STEP_GROUP,	  /* the search of a group begins */
	CLASSIFIER_STEP_FILTERED, /* the first level says that no rule of the tuple fits */
	CLASSIFIER_STEP_LATE,	  /* all rules of the tuple come after the one that was found */
	CLASSIFIER_STEP_PROBED,	  /* the tuple's hash key was looked up; its rules follow */
	CLASSIFIER_STEP_RULE,	  /* a rule was compared */
	CLASSIFIER_STEP_CUT, /* the rules left in the tuple come after the one that was found */
	CLASSIFIER_STEP_NOT_TRIED, /* a rule of the tuple was not compared: its hash key is another */
	CLASSIFIER_STEP_MORE, /* `n` more rules of the tuple were not compared, and are not named */
	CLASSIFIER_STEP_FOUND, /* the group's search ends; `id`, or CLASSIFIER_NONE */
};

/* What a rule or the first level refused. */
enum classifier_field {
	CLASSIFIER_FIELD_NONE, /* nothing: it matches */
	CLASSIFIER_FIELD_SRC,
	CLASSIFIER_FIELD_DST,
	CLASSIFIER_FIELD_PROTO,
	CLASSIFIER_FIELD_TCP_FLAGS,
	CLASSIFIER_FIELD_VERSION,
	CLASSIFIER_FIELD_TOS,
	CLASSIFIER_FIELD_VLAN,
	CLASSIFIER_FIELD_IN_PORT,
	CLASSIFIER_FIELD_SRC_PORT,
	CLASSIFIER_FIELD_DST_PORT,
	CLASSIFIER_FIELD_METADATA,
	CLASSIFIER_FIELD_ETH_SRC,
	CLASSIFIER_FIELD_ETH_DST,
	CLASSIFIER_FIELD_ETH_TYPE,
	CLASSIFIER_FIELD_TTL,
	CLASSIFIER_FIELD_DEI,
	CLASSIFIER_FIELD_STATE,
	CLASSIFIER_FIELD_DIRECTION,
	CLASSIFIER_FIELD_SRC_SET,
	CLASSIFIER_FIELD_DST_SET,
	CLASSIFIER_N_FIELDS,
};

/* A field's name, as "src" or "dst_port". */
const char *classifier_field_name(enum classifier_field field);

struct classifier_step {
	enum classifier_step_kind kind;
	uint32_t group;
	/* of a tuple: what is hashed */
	uint8_t version; /* 4, 6, or 0: rules for both and for what is not IP */
	uint8_t src_bits, dst_bits;
	bool src_port, dst_port, proto, vlan, in_port, metadata;
	/* of a rule, and of what was found */
	uint32_t handle, id, priority, jump;
	enum classifier_field field; /* what did not fit */
	uint32_t n;		     /* of CLASSIFIER_STEP_MORE */
};

typedef void (*classifier_step_fn)(void *context, const struct classifier_step *step);

/* As classifier_find(), with each step told. */
uint32_t classifier_trace(const struct classifier *classifier, uint32_t group,
	const struct classifier_header *header, classifier_step_fn told, void *context);
/*
 * The same from behind a rule, which did not match after all: the search goes on in its group with the rules that come
 * after it. CLASSIFIER_STEP_GROUP has its `id`.
 */
uint32_t classifier_trace_behind(const struct classifier *classifier, uint32_t handle,
	const struct classifier_header *header, classifier_step_fn told, void *context);

/* What is wrong with a rule that nothing can match, or would match. */

/*
 * Finds a rule that comes before this one and matches all that it matches, so that this one never wins.
 * The rule may be in the classifier (`own`, its handle) or not (CLASSIFIER_NONE: it comes last of its
 * priority). Rules that only together hide it are not found. 0 with `handle`, or -ENOENT.
 */
int classifier_shadow(const struct classifier *classifier, const struct classifier_rule *rule,
	uint32_t own, uint32_t *handle);

/*
 * Whether the rule contradicts itself: -EBADMSG with a line that says how, else 0. It knows the sets and
 * groups of the classifier.
 */
int classifier_contradiction(const struct classifier *classifier,
	const struct classifier_rule *rule, struct error *error);
