/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Inside of rule/: what the files of rules.h share. */

#include "rule/effect.h"
#include "rule/limit.h"
#include "rule/meters.h"
#include "rule/pattern.h"
#include "rule/rules.h"
#include "rule/setup.h"
#include "rule/shared.h"
#include "rule/sources.h"

/* A bit of rules_slot.states: the rule asks for a direction of the conversation. */
#define RULES_DIRECTION 0x80u

/* What workers read of a rule. It is written before the classifiers have the rule, and never changed. */
struct rules_slot {
	uint32_t mark, age_s;
	uint32_t number; /* of its port */
	uint16_t verdict;
	uint8_t port, to_port; /* as in struct flow_rule_told */
	bool marked, by_packet, logs;
	bool follows; /* replies take the verdict */
	uint8_t states; /* that it asks for, as RULE_CT_ALL, and RULES_DIRECTION; 0: it does not ask */
	uint8_t gone;	/* it was removed: the one thing that changes, and atomic */
	uint16_t limit; /* 1 more than its place among the limits; 0: it has none */
};

/* Limits in force, with those of rules that were removed and have not settled. */
#define RULES_MAX_LIMITS 256u
#define RULES_MAX_LIVE 16u /* of these, limits of live flows: each has a bit in a flow's row */

/* A limit as workers read it. It is written before the classifiers have its rule. */
struct rules_limit {
	bool used; /* the writer's */
	bool live;
	uint32_t serial; /* no other limit has or had it */
	uint32_t slot;
	uint32_t above;
	uint32_t mask4, mask6[4]; /* the part of an address that makes a source */
	struct sources_rate rate;
};

/* What the writer has of it. */
struct rules_own {
	struct rules_made *made;    /* until the slot is free; NULL then */
	const char *text;	    /* NULL: no rule of the list is in the slot */
	uint64_t age;		    /* how many rules were added before, and one more */
	uint64_t rank;		    /* its place among the rules of its priority */
	uint32_t epoch;		    /* in which it came */
	uint32_t line;		    /* where its list has it, from 1; 0: it was added alone */
	uint64_t generation, token; /* of its removal */
	uint32_t number, group, priority;
	uint32_t full, of_flows; /* handles in the classifiers, or CLASSIFIER_NONE */
	uint32_t next;		 /* of the same hash, of free slots, or of unsettled ones */
	uint16_t port;
	uint16_t in_port; /* that it asks for, or RULES_NO_PORT */
	uint8_t jump;	  /* the group in which it goes on; 0: none */
	bool hands_on;
	uint8_t beginnings; /* rule_of_beginnings() */
	uint64_t seen_us;   /* when it was made, or a NIC was found to have counted packets */
	uint32_t place;	    /* rules_nic_set() */
	uint64_t nic_packets, nic_bytes; /* of NICs that have it no longer, */
	uint64_t now_packets, now_bytes; /* and of those that have it */
	bool nic_uncounted;
	struct rules_gone *gone; /* who waits for its last count; or NULL */
};

struct rules {
	/*
	 * Workers look at the generation after each burst. Nothing else that changes when a rule comes is on its line, or
	 * each rule would take it from them several times.
	 */
	atomic_uint_fast64_t generation __attribute__((aligned(RTE_CACHE_LINE_SIZE)));

	/* what workers read when they decide */
	struct classifier *full /* rules with all that they ask for */
		__attribute__((aligned(RTE_CACHE_LINE_SIZE)));
	struct classifier *
		of_flows; /* what is left of them for flows; used while there are rules by packet */
	struct rules_slot *slots;
	struct rules_count *counts;
	uint64_t *
		seen; /* by worker and slot, as `counts`: when flows of rules that age had their last packet */
	_Atomic uint32_t
		list; /* of the classifiers (rule/classifier.h), that packets are decided by */
	/* with those of the other list, as long as some worker may use it */
	_Atomic uint32_t n_in_force, n_by_packet, n_with_port;
	_Atomic uint32_t
		n_of_conversations; /* rules that ask for state or direction, or whose replies follow */
	_Atomic uint32_t n_live_limits; /* rules in force that limit live flows */
	struct rules_limit *limits;	/* RULES_MAX_LIMITS */
	struct sources *sources;
	bool replies_follow, no_pickup;
	_Atomic uint32_t port_rules[TOPOLOGY_MAX_PORTS]; /* rules that ask for the port */
	struct rule_ground ground;
	struct topology topology;
	bool any_set;
	uint32_t n_slots;

	/* the writer's */
	struct programs *programs;
	struct rte_rcu_qsbr *qsbr;
	struct rule_setup *setup;
	struct rule_meters *meters;
	struct rule_shared *shared;
	struct rules_list *before; /* the last replacing; NULL: there was none */
	struct rules_turn *turn;   /* that has not ended; NULL: none */
	uint32_t epoch;
	struct rules_own *own;
	uint32_t *heads; /* chains of rules by port and number */
	uint32_t heads_mask;
	uint32_t *next_number,
		*n_of_port; /* by port; the number that is next begins anew with 0 where no rule is left */
	uint32_t n_jumps[RULE_MAX_GROUPS]; /* rules that go on in the group */
	uint32_t n_let_begin, n_drop_all;  /* rule_of_beginnings() */
	unsigned n_workers;
	uint32_t max_rules, n_rules, n_begun, n_unsettled;
	uint32_t free, first_gone, last_gone;
	uint64_t settled, last_age, last_rank;
	uint32_t last_limit;	      /* serial */
	struct rules_removed removed; /* those whose slots are free again; of NICs all */
	uint64_t now_us;	      /* rules_tell_time() */
	bool filled;		      /* of_flows has the rules */
	struct rules_nic *nic;	      /* NULL: no NIC takes rules */
	void *memory;
	size_t size;
};

/* The contents of a command that makes a rule. It is kept while the rule is in force, and while a rollback may need it. */
struct rules_made {
	uint32_t refs;
	struct classifier_rule rule; /* without an id */
	uint64_t hash;		     /* of its text */
	char *text;
	const char *remark;
	struct rule_use *
		*uses; /* what it shares with others (effect.h): ends with NULL, or is NULL */
	struct rule_limit limit;
	uint32_t mark, age_s;
	uint16_t port, verdict;
	bool marked, passes, logs;
	bool follows; /* replies take its verdict */
	bool plain; /* the same words mean the same, whatever lines of `set`, meters and lists of actions there are */
};

/* Of a command and the line that it was parsed from. 0, or as rules_command(). */
int rules_make(struct rules *rules, const struct rule_command *command, const char *line,
	size_t length, struct rules_made **made, struct rule_refusal *refusal, struct error *error);
/* One holder less. Accepts NULL. */
void rules_release(struct rules *rules, struct rules_made *made);

/* Whether `n` more rules have room: 0, -ENOSPC or -EAGAIN. */
int rules_room(struct rules *rules, uint32_t n, struct error *error);
/* Puts a rule in force, which holds what was made; the caller raises the generation. 0 with its slot, or a negative errno. */
int rules_add(struct rules *rules, struct rules_made *made, uint32_t *slot, struct error *error);
/* Takes it out again; the caller raises the generation. */
void rules_drop(struct rules *rules, uint32_t slot);

/* NICs (rule/rules_nic.c): a rule is in force, or is about to be removed. Nothing is done while no NIC takes rules. */
void rules_nic_added(struct rules *rules, uint32_t slot);
void rules_nic_removed(struct rules *rules, uint32_t slot);
enum rule_nic rules_nic_look(const struct rules *rules, uint32_t slot, uint32_t *behind);
/* As rules_nic_foresee(), of a rule that could be made. */
enum rule_nic rules_nic_foresee_made(const struct rules *rules, const struct rules_made *made,
	uint32_t *visits, uint32_t *behind);
void rules_nic_end(struct rules *rules);

/* Nothing is left of what was replaced (rule/rules_replace.c): at the end of all. */
void rules_end_replacing(struct rules *rules);

/* Conversations (rule/rules_beginning.c): what a rule asks of them, for its slot; and by one rule more or less. */
uint8_t rules_states_of(const struct classifier_rule *rule);
void rules_count_conversations(struct rules *rules, uint32_t slot, uint32_t by);
/* Workers (rule/rules_conversation.c): a packet that answers to what a rule let pass, and follows that: by this slot. */
bool rules_answer(const struct rules *rules, struct flow_packet_ct ct, uint32_t *slot);
/* The bits of a packet's header that say what it is in its conversation. */
uint8_t rules_bits_of(const struct rules *rules, struct flow_packet_ct ct);
/* Decides flows whose headers are filled but for that, both of each flow after another. */
void rules_decide_conversations(const struct rules *rules, const struct classifier *classifier,
	unsigned list, const struct flow_key *const *keys, struct classifier_header *headers,
	struct flow_decision *decisions, unsigned n);

/* Limits (rule/rules_limits.c). Have so many of either kind room? 0, -ENOSPC or -EAGAIN. */
int rules_limits_room(
	const struct rules *rules, unsigned n_new, unsigned n_live, struct error *error);
/* The rule of a slot has it from here on, unless it is not given; there is room. And has it no more. */
void rules_limits_take(struct rules *rules, uint32_t slot, const struct rule_limit *limit);
void rules_limits_give_back(struct rules *rules, uint32_t slot);
/*
 * Workers: finds the rule of a packet that may begin a flow, where some rule with a limit matches it. `counted` becomes the
 * bits of those that count the flow, none if the packet is dropped.
 */
uint32_t rules_limits_find(const struct rules *rules, unsigned list,
	const struct classifier_header *header, struct flow_packet_ct ct, uint16_t *counted);
/* Counts a live flow that was let pass by the limits of the rules in force. The header is its initiator's. */
void rules_limits_recount(const struct rules *rules, const struct classifier *classifier,
	unsigned list, const struct classifier_header *header, uint64_t now_us, uint16_t *counted);
/* None counts it any more. */
void rules_limits_forget(const struct rules *rules, const struct flow_key *key,
	struct flow_conversation *conversation);

/* Decisions (rule/rules_decide.c): packets of one end have the rule of a slot, or none. */
void rules_decide_end(
	const struct rules *rules, unsigned from, uint32_t slot, struct flow_decision *decision);
/* The same, whatever of the rule is asked of single packets. */
void rules_take_rule(
	const struct rules *rules, unsigned from, uint32_t slot, struct flow_decision *decision);
/* Would a packet of the flow that comes by another port have another rule than `slot`? Changes the header's port. */
bool rules_depend_on_port(const struct rules *rules, const struct classifier *classifier,
	unsigned list, const struct flow_key *key, uint16_t port, struct classifier_header *header,
	uint32_t slot);
/* Does the rule drop packets, of whatever it matches? */
static inline bool rules_slot_drops(const struct rules *rules, uint32_t slot)
{
	return slot != CLASSIFIER_NONE && !rules->slots[slot].by_packet &&
	       flow_verdict_drops(rules->slots[slot].verdict);
}

/* The set that a pattern names (rule/rules_sets.c); `rules` is a struct rules. 0: there is none. */
uint32_t rules_find_set(void *rules, const char *name);

/* What was counted of a slot. */
struct rules_count rules_sum(const struct rules *rules, uint32_t slot);

/* What rules share (rule/rules_shared.c). A command of it: the line that it was parsed from, and where it is told. */
struct rules_line {
	const struct rule_command *command;
	const char *text;
	size_t length;
	char *told;
	size_t size;
	bool again; /* what the command makes may be there, if the same command has made it */
};

/* Whether a command is of what rules share; and whether it does nothing but make something. */
bool rules_shares(const struct rule_command *command);
bool rules_makes_shared(const struct rule_command *command);
/* Does it. As rules_command(); -EBUSY also where only rules use it that were removed and may still be flows'. */
int rules_share(struct rules *rules, const struct rules_line *line, struct rule_refusal *refusal,
	struct error *error);

/* A rule uses what its effect says: `uses` ends with NULL, or is NULL. 0 or -ENOMEM. And uses it no more. */
int rules_take_uses(const struct rule_effect *effect, struct rule_use ***uses, struct error *error);
void rules_give_uses_back(struct rule_use **uses);
/* So much was counted by a rule that is gone. */
void rules_count_uses(struct rule_use **uses, const struct rules_count *count);

/* Parts of putting a rule in force (rule/rules.c), for those who do it otherwise (rule/rules_replace.c). */

/* A slot, which knows what was made and no classifier; it is in no list yet. There is room. */
uint32_t rules_fill_slot(struct rules *rules, struct rules_made *made, uint64_t rank);
/* Gives one back that no reader could see. */
void rules_empty_slot(struct rules *rules, uint32_t slot);
/* Handles of a rule in the classifiers, or CLASSIFIER_NONE. */
struct rules_handles {
	uint32_t full, of_flows;
};
/* Into one classifier, or both. 0 or a negative errno, and it is in none. */
int rules_classify_in(struct rules *rules, const struct rules_made *made, uint32_t slot,
	const struct classifier_position *at, struct rules_handles *handles);
void rules_declassify(struct rules *rules, const struct rules_handles *handles);
/* From here on flows are decided by what is left of rules for them. 0 or a negative errno. */
int rules_fill_of_flows(struct rules *rules);
/* Counts a rule in the totals that workers look at before they ask classifiers: `by` is 1, or UINT32_MAX for one less. */
void rules_count_in(struct rules *rules, uint32_t slot, uint32_t by);
/* In and out of what the writer lists. The slot is workers' until they have settled. */
void rules_link(struct rules *rules, uint32_t slot, uint64_t age);
void rules_unlink(struct rules *rules, uint32_t slot);
int rules_explain_add(int code, struct error *error);
/* The next rank behind all rules. */
uint64_t rules_next_rank(struct rules *rules);
uint32_t rules_free_slots(const struct rules *rules);

/*
 * A turn from one list of the classifiers to the other ends when no worker uses the old one (rule/rules_replace.c): false
 * as long as some may. Until then no rule is added.
 */
bool rules_end_turn(struct rules *rules);

/* The text of a rule in a line: from its first word to its last. Returns its length. */
size_t rules_find_text(const char *line, size_t length, const char **text);
uint64_t rules_hash_text(const char *text, size_t length);

/* Rules in force by their text (rule/rules_replace.c). */
struct rules_index {
	uint32_t *chains, *next; /* by hash, and by slot */
	uint32_t mask;
};
/* 0 or -ENOMEM. */
int rules_index_create(const struct rules *rules, struct rules_index *index);
void rules_index_destroy(struct rules_index *index);
/* Finds the contents of a rule in force that has these words, where words alone say what it means. NULL: there is none. */
struct rules_made *rules_index_find(const struct rules *rules, const struct rules_index *index,
	const char *text, size_t length);

/* A list that may replace that in force (rule/rules_file.c). */
struct rules_list {
	struct rules_made **made;
	uint32_t *lines; /* where each stands, from 1 */
	struct rules_index index;
	uint32_t n, room;
	struct rule_setup *setup;
	uint64_t meters, shared; /* marks: what was made for it comes after these */
};

/* Frees the list, but not the contents of rules that are or were in force. Accepts NULL. */
void rules_list_free(struct rules *rules, struct rules_list *list);

/* The rule is for conversations that have begun, and nothing lets any begin. */
bool rules_no_beginning(
	const struct rules *rules, const struct classifier_rule *rule, struct error *error);
/* Packets come to the group by no rule that is in force. */
bool rules_no_jump(const struct rules *rules, uint32_t group, struct error *error);
/* Tells in a line each what is wrong with a rule that can be. `slot`: its own, or RULES_NONE. */
void rules_warn(const struct rules *rules, const struct classifier_rule *rule, uint32_t slot,
	rules_tell_fn tell, void *context);
