/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The rules of an engine: commands of the rule language (rule/command.h) in force in software. Each rule is a
 * pattern (rule/pattern.h), found by the classifier, and actions (rule/effect.h), compiled to an action program
 * whose number is the verdict of packets.
 *
 * A rule with `ingress` is for packets that come in by its port, one with `transfer` for those of any port.
 * Each direction of a flow is decided by itself, unless it follows the rule of the one who began the conversation
 * (docs/rules.md, "Conversations"). What no rule matches is forwarded. Rules that ask only for
 * what all packets of a flow's direction have in common are decided once a flow; where one that asks for more
 * (time to live, TCP flags, Ethernet addresses, ...) might match, each packet of the flow is classified.
 *
 * Threads: one writer, the control thread, adds, removes, lists and traces. Any number of workers call
 * rules_decide() and rules_classify() and never wait: they are readers of the RCU variable that the creator
 * was given, and report their quiescent states there. Each worker counts in its own array.
 *
 * How a change reaches live flows: each change raises the generation after it has become visible. A worker
 * reads the generation, then decides a flow; when it is higher later, the worker decides its flows again.
 * When every worker has done so, the caller says so by rules_settled(). Until then a removed rule keeps its slot.
 *
 * What workers read is taken at creation; the writer takes memory for texts.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_mbuf.h>
#include <rte_rcu_qsbr.h>

#include "action/programs.h"
#include "base/error.h"
#include "base/topology.h"
#include "flow/verdict.h"
#include "packet/hash.h"
#include "packet/link.h"
#include "rule/classifier.h"
#include "rule/nic_pattern.h"

#define RULES_NONE UINT32_MAX
#define RULES_MAX 1048576u
/* Bytes of the text of a rule, with a zero. */
#define RULES_TEXT_MAX 8193

/* The port of a packet, where it is not known. */
#define RULES_NO_PORT UINT16_MAX

struct action_meter;
struct rule_command;
struct packet_info;
struct rules;

struct rules_config {
	uint32_t max_rules; /* 1 to RULES_MAX */
	/* so many more have room while a list takes the place of another: max_rules, or less where lists differ in few; 0: none does */
	uint32_t max_beside;
	unsigned n_workers;		 /* how many count */
	const struct topology *topology; /* copied; NULL: rules may name any port */
	uint32_t max_sets, max_prefixes; /* sets of addresses, and prefixes in all of them */
	bool any_set; /* sets have all addresses, and are there when a rule names them: rules that are only checked */
	unsigned
		n_captures; /* capture files, whose numbers follow those of the ports; copies alone go there */
	bool zone_vlan;	     /* the key of a flow has the VLAN of its packets */
	bool replies_follow; /* those of rules that do not say whether they do */
	bool no_pickup;	     /* a TCP flow whose first packet is no SYN is invalid, not new */
	bool sends_nothing;  /* packets are those of captures */
	struct programs
		*programs; /* the caller's, with the one that drops as number FLOW_VERDICT_DROP */
	const struct hash_secret *secret; /* copied */
	struct rte_rcu_qsbr *qsbr; /* the caller's, as the programs until after rules_destroy() */
};

/* 0, -EINVAL, or what mapping_create() says. */
int rules_create(struct rules **rules, const struct rules_config *config);
/* After the workers have stopped. Accepts NULL. */
void rules_destroy(struct rules *rules);
size_t rules_memory(const struct rules *rules);

/* Workers: */

/* What was counted of a rule. */
struct rules_count {
	uint64_t flows, packets, bytes;
};

/*
 * Decides a flow (flow/verdict.h). `port` has the port by which packets of each of the key's ends come, or
 * RULES_NO_PORT. A verdict is FLOW_VERDICT_BY_PACKET where single packets are to be classified. `rules` is a
 * struct rules; `decision` comes as plain forwarding, with what is known of the conversation.
 */
void rules_decide(void *rules, const struct flow_key *key, const uint16_t port[2],
	struct flow_decision *decision);

/* The same of several flows, at most FLOW_DECIDE_BURST, whose memory is fetched side by side. */
void rules_decide_burst(void *rules, const struct flow_key *const *keys, const uint16_t (*ports)[2],
	struct flow_decision *decisions, unsigned n);

/*
 * Decides one packet that came by `port`, with all its fields. `info` is what extract() found, with ports and
 * protocol of a later fragment as its first one had them; NULL: the packet is no flow's.
 */
void rules_classify(void *rules, const struct rte_mbuf *packet, const struct packet_info *info,
	uint16_t port, struct flow_packet_ct ct, struct flow_packet_decision *decision);

/*
 * The same of a packet of a capture that was taken on such a link. One that is no flow's has an Ethernet header, or
 * nothing that a rule may ask for.
 */
void rules_classify_captured(void *rules, const struct rte_mbuf *packet,
	const struct packet_info *info, enum link_type link, struct flow_packet_ct ct,
	struct flow_packet_decision *decision);

/* Raised after each change that may alter a decision. Starts at 1. */
const atomic_uint_fast64_t *rules_generation(const struct rules *rules);

/* So many flows, packets and bytes more of a slot. `rules` is a struct rules. */
void rules_count_packets(void *rules, unsigned worker, uint32_t slot, uint64_t flows,
	uint64_t packets, uint64_t bytes);

/* A flow of a slot had its last packet then (clock of the run). `rules` is a struct rules. */
void rules_see(void *rules, unsigned worker, uint32_t slot, uint64_t last_us);

/* Limits of sources count a flow no more: see flow/verdict.h. `rules` is a struct rules. */
void rules_leave(void *rules, const struct flow_key *key, unsigned from, uint16_t counted);

/* Whether what comes to a slot is told. `rules` is a struct rules. */
bool rules_logs(void *rules, uint32_t slot);

/* What is told of the rule of a slot, which a flow has. `rules` is a struct rules. */
struct flow_rule_told rules_tell_flow(void *rules, uint32_t slot);

/* The meters that programs name (action/meter.h): a table of RULES_MAX_METERS. */
#define RULES_MAX_METERS 4096
struct action_meter *rules_meters(const struct rules *rules);

/* The writer: */

/* The clock of the run begins anew: meters and limits have their bursts again. */
void rules_restart(struct rules *rules);

/* What the clock of the run says now, which never goes back: rules that age are idle since then at most. At first 0. */
void rules_tell_time(struct rules *rules, uint64_t now_us);

/* A rule as the writer sees it. The texts are there until it is removed. */
struct rules_view {
	uint32_t slot;
	uint16_t port;
	uint32_t number; /* of its port, as it was told when it was made */
	uint32_t group, priority;
	const char *text;   /* the command, as it was written */
	const char *remark; /* what of it has no meaning in software, or NULL */
	bool by_packet;	    /* it asks for fields that packets of a flow may differ in */
	bool hands_on;	    /* other rules decide its packets (jump, passthru): it does not count */
	uint32_t line;	    /* of the list that it came with, from 1; 0: it was added alone */
	uint32_t epoch;	    /* in which it came: rules_epoch() */
	bool follows;	    /* replies take its verdict */
	bool limits;	    /* it has a limit of its source's flows */
	uint64_t age;	    /* no other rule had, has or will have this number */
	uint16_t in_port;   /* that packets have to come in by, or RULES_NO_PORT */
	enum rule_nic nic;  /* is it one for NICs, as far as that is known? */
	uint32_t behind;    /* of RULE_NIC_BEHIND: the slot of the rule before it */
	uint32_t place;	    /* rules_nic_set() */
	uint64_t nic_packets, nic_bytes; /* rules_nic_add() */
	uint64_t now_packets, now_bytes; /* rules_nic_tell() */
	bool nic_uncounted;
	struct rules_count count; /* what software counted */
	uint32_t age_s;		  /* time-out of its `age` action; 0: it has none */
	/*
	 * Where it has one: how long ago one of its flows had a packet, or a NIC counted one, as far as was told; or
	 * since it was made
	 */
	uint64_t idle_us;
};

/* How the warning begins that no rule jumps to a rule's group, whose number follows. */
#define RULES_NO_JUMP "no rule jumps to group "

/* The warning that a rule waits for conversations that cannot begin. */
#define RULES_NO_BEGINNING \
	"the rule is for conversations that have begun, and no rule lets any begin"

/* One line of an answer, without its newline. */
typedef void (*rules_tell_fn)(void *context, const char *line);

/*
 * Does what a command says and tells about it: create, validate, destroy, flush, list, query, aged, those of meters and of
 * indirect actions, or a line of `set`, which holds for later commands. Else nothing has changed, and `column` is that of the wrong word:
 * -EINVAL, -ENOTSUP, -E2BIG or -ENODATA as rule_command_parse(); -ENOENT: there is no such rule, or meter; -EEXIST: there is
 * one; -EBUSY: rules use it; -ENOSPC: no room; -EAGAIN: rules that were just removed must settle first; -ENOMEM.
 */
int rules_command(struct rules *rules, const char *line, size_t length, unsigned *column,
	rules_tell_fn tell, void *context, struct error *error);

/* The same of a command that was parsed from this line. */
int rules_do(struct rules *rules, const struct rule_command *command, const char *line,
	size_t length, unsigned *column, rules_tell_fn tell, void *context, struct error *error);

/* Counts of removed rules: packets and bytes in software, and those that NICs dropped. */
struct rules_removed {
	struct rules_count count;
	uint64_t nic_packets, nic_bytes;
};
/* All of them, with those whose flows are still to be decided again. */
void rules_removed(const struct rules *rules, struct rules_removed *removed);
/* A NIC has let a removed rule go, and had counted so much more of it. */
void rules_removed_add(struct rules *rules, uint64_t nic_packets, uint64_t nic_bytes);

/* Removes a rule. 0 or -ENOENT. `count` (or NULL) becomes what it had counted. */
int rules_remove(struct rules *rules, uint16_t port, uint32_t number, struct rules_count *count);
/* What a removed rule had counted in software, when `done`: no worker counts for it any more. */
struct rules_gone {
	bool done;
	struct rules_count count;
};
/*
 * Before a rule is removed: `gone` will be filled by rules_settled(). Until then it is there, or is unwatched, and then has
 * what was counted so far.
 */
void rules_watch(struct rules *rules, uint32_t slot, struct rules_gone *gone);
void rules_unwatch(struct rules *rules, uint32_t slot, struct rules_gone *gone);
/* Removes those of a port, or all (RULES_NO_PORT). Returns how many. */
uint32_t rules_flush(struct rules *rules, uint16_t port);

/* All flows are to be decided again, so that what they have counted is told. Returns the generation. */
uint64_t rules_touch(struct rules *rules);
/* Every worker has decided all its live flows at this generation or a later one. */
void rules_settled(struct rules *rules, uint64_t generation);
/* Whether removed rules wait for that. */
bool rules_unsettled(const struct rules *rules);

/* 0 or -ENOENT. */
int rules_get(const struct rules *rules, uint16_t port, uint32_t number, struct rules_view *view);
int rules_get_slot(const struct rules *rules, uint32_t slot, struct rules_view *view);

/*
 * Fills up to `max` views from slot `*from` on, of one port or all (RULES_NO_PORT), and moves it on; it becomes
 * RULES_NONE at the end. Begin with 0.
 */
uint32_t rules_list(const struct rules *rules, uint16_t port, uint32_t *from,
	struct rules_view *views, uint32_t max);

struct rules_stats {
	uint32_t rules, max_rules;
	uint32_t by_packet; /* of these, those that ask for more than what flows have */
	uint32_t unsettled; /* removed, but their slots are not free yet */
	uint32_t
		before; /* of the list that rules_go_back() goes back to; RULES_NONE: there is none */
	uint32_t programs; /* action programs in use */
};
void rules_stats(const struct rules *rules, struct rules_stats *stats);

/* Sources of limits that have room at least. */
#define RULES_SOURCES 65536u

/* The sources that limits know, each limit its own. Counting them takes time by the size of the table. */
struct rules_sources {
	uint32_t max, used;
	uint64_t full; /* how often there was no room for one */
};
void rules_sources(const struct rules *rules, struct rules_sources *sources);

/* The limit of a rule, and what is known of the source of a header. */
struct rules_limited {
	bool live;  /* of live flows, which the source has `flows` of; else of new ones */
	bool above; /* the rule matches */
	uint32_t limit, flows;
	uint8_t version, prefix;
	uint32_t addr[4];
};
/* False: the rule has no limit, or is not asked about the header, which begins no flow. */
bool rules_look_limit(const struct rules *rules, uint32_t slot,
	const struct classifier_header *header, struct rules_limited *limited);

/*
 * The limits that count a live flow, with the header of its initiator; or, as long as nothing of it was let pass, those that
 * are asked about it, up to the one that it is above. Returns how many, at most `max`.
 */
struct rules_looked {
	uint32_t slot;
	struct rules_limited limit;
};
unsigned rules_look_limits(const struct rules *rules, const struct classifier_header *header,
	const struct flow_conversation *conversation, struct rules_looked *looked, unsigned max);

/* A step of a search, and the rule that it is about, if it is about one. */
struct rules_step {
	struct classifier_step step;
	bool jumped; /* of a group: it is searched for packets that the rule matches, and not for those that it does not */
	bool has_rule;
	struct rules_view rule;
	bool has_limit; /* of the result: the rule has one. Where it is not above the search goes on behind it */
	struct rules_limited limit;
};
typedef void (*rules_step_fn)(void *context, const struct rules_step *step);

/* What all packets have in common that come from this end of the key, by this port. */
void rules_header_of_flow(const struct rules *rules, const struct flow_key *key, unsigned from,
	uint16_t port, struct flow_packet_ct ct, struct classifier_header *header);
/* Do rules in force ask for conversations? Then what a packet's is to it, as a rule would say it: "new". */
bool rules_of_conversations(const struct rules *rules);
const char *rules_state_name(const struct rules *rules, struct flow_packet_ct ct);
/* The same of a header, and its direction, "forward" or "reverse"; NULL: it has none. */
const char *rules_state_of(const struct classifier_header *header);
const char *rules_direction_of(const struct classifier_header *header);
/*
 * The header of a packet that a text gives: the number of the port that it comes in by, and items as in a pattern, with
 * "/ end" behind them. What they do not say is 0, but for the type of its Ethernet header and a time to live of 64; it
 * begins a conversation.
 * 0; or -EINVAL, -E2BIG or -ENOMEM with the column of the wrong word.
 */
int rules_header_of_packet(const struct rules *rules, const char *text,
	struct classifier_header *header, unsigned *column, struct error *error);
/*
 * Tells step by step how a header is decided; `packet`: with all its fields, else as a flow. Returns the slot
 * or RULES_NONE. Of a flow, the search goes on behind a rule per packet: in the group that it jumps to, for packets that it
 * matches, and then for packets that it does not match; and so on for so many such rules.
 */
#define RULES_TRACED_BY_PACKET 16
uint32_t rules_trace(const struct rules *rules, const struct classifier_header *header, bool packet,
	rules_step_fn told, void *context);

/* NICs (rule/rules_nic.c): */

/* A rule that a NIC may do in place of software. */
struct rules_nic_rule {
	uint32_t slot;
	uint64_t age;
	struct classifier_rule rule;
};

/*
 * From here on it is known which rules NICs may do: at most `max` that drop, and that no rule before them keeps from their
 * packets. A NIC that drops what these match drops nothing else. Until this was called nothing is compared, and a change
 * costs no more than without NICs. 0 or -ENOMEM.
 */
int rules_nic_begin(struct rules *rules, uint32_t max);
/*
 * Goes on with what is to be compared, for at most so many pairs. A rule that does not only drop was compared when it was
 * added with those that fit already; here are those that may fit. False: nothing is left.
 */
bool rules_nic_step(struct rules *rules, uint32_t pairs);
/*
 * What a rule is for NICs, as `nic` and `behind` of a view, without rules_nic_begin(): it is compared here and now with the
 * rules before it. Each rule that is looked at lowers `visits`; RULE_NIC_PENDING: they were not enough.
 */
enum rule_nic rules_nic_foresee(
	const struct rules *rules, uint32_t slot, uint32_t *visits, uint32_t *behind);
/*
 * The same of a rule that a command would make if it came last of its priority: a view without a slot, numbers and counts.
 * `action`: why, of RULE_NIC_ACTIONS, as rule_nic_action(). 0, or as rules_command(), or -ENOENT: the line makes no rule.
 */
int rules_foresee(struct rules *rules, const char *line, size_t length, uint32_t *visits,
	struct rules_view *view, const char **action);
/* The next rule that fits and has no place: the caller gives it one. False: there is none. */
bool rules_nic_next(struct rules *rules, struct rules_nic_rule *rule);
/* The next place whose rule was removed, or does not fit any more. False: there is none. */
bool rules_nic_left(struct rules *rules, uint32_t *place);
/* A rule that has a place. */
void rules_nic_get(const struct rules *rules, uint32_t slot, struct classifier_rule *rule);
/* Pairs that were compared so far. */
uint64_t rules_nic_compared(const struct rules *rules);
/* Where the caller has what belongs to a rule that is given to NICs; RULES_NONE, as at first: nowhere. */
void rules_nic_set(struct rules *rules, uint32_t slot, uint32_t place);
/* So many packets and bytes more were dropped by NICs that have the rule no longer. */
void rules_nic_add(struct rules *rules, uint32_t slot, uint64_t packets, uint64_t bytes);

/* What NICs that have the rule have counted of it so far; `counts`: all of them count. For query. */
void rules_nic_tell(
	struct rules *rules, uint32_t slot, uint64_t packets, uint64_t bytes, bool counts);

/*
 * Sets of addresses (rule/rules_sets.c), which patterns name. A line has the name of a set and prefixes, or the name, the word
 * `file` and a path; each line of the file has prefixes, or a comment. Lines of one name add up.
 */

/* Is the line right, as far as it is known without a file? 0 or -EINVAL with a line. */
int rules_set_check(const char *line, struct error *error);
/* So many prefixes it has. 0, -EINVAL, or why a file cannot be read, with a line. */
int rules_set_count(const char *line, uint32_t *n, struct error *error);
/* The same, or -ENOSPC: they are in the set from here on, but for those behind the one that is wrong. Before any rule. */
int rules_set_fill(struct rules *rules, const char *line, struct error *error);

/*
 * Replacing the whole list (rule/rules_replace.c), in one moment: a worker decides each flow and each packet by the list
 * before or by the new one. Rules that stand in both with the same words and meaning stay as they are: their numbers, what
 * they have counted, their places in NICs. Lists of actions and meters that the new list makes may be there already, if the
 * same command made them.
 */
struct rules_list;

/* An empty list. 0 or -ENOMEM. */
int rules_list_create(struct rules *rules, struct rules_list **list);
/* Before any other change of what rules share. Accepts NULL. */
void rules_list_destroy(struct rules *rules, struct rules_list *list);
/*
 * Adds lines, as rules_load_bytes(), but nothing of them is in force. `set` lines hold for the list alone. After an error the
 * list is to be destroyed.
 */
int rules_list_read(struct rules *rules, struct rules_list *list, const char *name,
	const char *bytes, size_t size, rules_tell_fn tell, void *context, struct error *error);
int rules_list_read_file(struct rules *rules, struct rules_list *list, const char *path,
	rules_tell_fn tell, void *context, struct error *error);

enum rules_difference {
	RULES_ADDED,
	RULES_REMOVED,
	RULES_MOVED, /* it comes before or after others now that have its priority */
	RULES_UNCHANGED,
	RULES_N_DIFFERENCES,
};

struct rules_change {
	uint32_t n[RULES_N_DIFFERENCES];
	/* of rules_replace() and rules_go_back(): when all workers have decided their flows at it, all flows are by the new list */
	uint64_t generation;
};

/* A rule that is not unchanged: first those that go, in their order, then those of the list. */
typedef void (*rules_differ_fn)(
	void *context, enum rules_difference difference, const char *text, uint32_t line);

/* Tells what rules_replace() would change. 0 or -ENOMEM. */
int rules_compare(struct rules *rules, const struct rules_list *list, struct rules_change *change,
	rules_differ_fn tell, void *context);
/*
 * Puts the list in force, and takes it. Else nothing has changed: -ENOSPC: there is no room for so many; -EAGAIN: rules
 * that were just replaced must settle first; -ENOMEM.
 */
int rules_replace(struct rules *rules, struct rules_list *list, struct rules_change *change,
	struct error *error);
/* Puts the list in force that rules_replace() replaced last, and forgets it. As rules_replace(), or -ENOENT: there is none. */
int rules_go_back(struct rules *rules, struct rules_change *change, struct error *error);
/* How many lists there were: 1, and one more with each that was replaced. */
uint32_t rules_epoch(const struct rules *rules);

/* Files (rule/rules_file.c): */

#define RULES_FILE_MAX_BYTES ((size_t)1 << 30)

/*
 * Adds the rules of a text: lines of `flow create` and `set`, comments and empty lines. All or none. The error
 * names the file, the line and the column: -EBADMSG for a line that is wrong, -EFBIG for a text that is too long;
 * others as in rules_command(), or why a file cannot be read. `tell` (or NULL) is told of rules that can match
 * nothing, and of groups that no rule jumps to.
 */
int rules_load_file(struct rules *rules, const char *path, uint32_t *added, rules_tell_fn tell,
	void *context, struct error *error);
/* The same from memory; `name` stands for the file. */
int rules_load_bytes(struct rules *rules, const char *name, const char *bytes, size_t size,
	uint32_t *added, rules_tell_fn tell, void *context, struct error *error);
