/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The provider talks to the flow hardware of one port: by rte_flow with calls that wait, by rte_flow with templates and
 * queues, or, where the port takes no rules, not at all.
 *
 * Rules go by places, small numbers that the caller gives: at most one rule has a place, from an accepted insert to the
 * confirmed end of its remove. For one place the caller awaits the answer before it asks the next; answers of different
 * places come in any order. A caller that has given up waiting for an insert may ask for the remove. One that has for a
 * remove may ask again, and is told that it is done, since nothing else will tell: its rule may be there yet.
 *
 * Answers, of every call that asks the NIC, and of completions:
 *	0		done
 *	-EINPROGRESS	taken; the answer comes by provider_poll(). Calls that wait never say so
 *	-ENOSPC		no room in the NIC now (whatever errno its driver has for that); a guess where a completion
 *			says that an insert failed, and not why
 *	-EOPNOTSUPP	the NIC does not do such rules; asking again is no use
 *	-EAGAIN		not now: a queue is full, or a rule of the same pattern is there still
 *	-EIO		the device failed, or forgot; nothing is known of what it holds
 * All but 0 and -EINPROGRESS come with the driver's errno and sentence in `why`. After a failed insert the place has no
 * rule; after a failed remove it still has one, unless the answer was -EIO and provider_reset() followed.
 *
 * Threads: all calls come from one thread, the port's installer, which alone may read a provider's abilities, as
 * provider_try_again() changes them. A call that waits takes as long as the driver likes: 11 ms is usual
 * (docs/hardware.md).
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "packet/key.h"
#include "rteflow/kind.h"

struct offload_rewrite; /* rteflow/rewrite.h */
struct provider;

/* What a rule does with its packets. All but the first is full offload: the CPU sees none of them. */
enum provider_deed {
	PROVIDER_MARKS,
	PROVIDER_FORWARDS, /* sends them out of the port that the configuration names */
	PROVIDER_DROPS,
	PROVIDER_N_DEEDS,
};

/* A rule: of packets of one direction of a flow. */
struct offload_rule {
	struct flow_key key;
	uint32_t mark;	/* of one that marks */
	uint8_t from;	/* the key's end that these packets come from */
	uint8_t worker; /* whose packets they are: for ports whose rules must name a queue */
	uint8_t deed;	/* enum provider_deed */
	/* of one that forwards, what changes of its packets first; NULL: nothing. Read within the call */
	const struct offload_rewrite *rewrite;
};

struct provider_why {
	int error;	 /* positive errno, as the driver had it */
	char words[112]; /* its sentence; "" when it left none */
	bool guess;	 /* the NIC says that it failed, and not why: the answer is the likeliest */
};

/* The NIC's counter of a rule, as it tells it: it may be narrower than 64 bits. */
struct provider_count {
	uint64_t packets, bytes;
	bool has_bytes;
	bool final; /* no packet comes after these: provider_last_count() */
};

enum provider_op {
	PROVIDER_INSERT,
	PROVIDER_REMOVE,
	PROVIDER_N_OPS,
};

/* The end of something that was -EINPROGRESS. */
struct provider_done {
	uint32_t place;
	enum provider_op op;
	int result; /* 0 or one of the answers */
	struct provider_why why;
};

/* What a port does with rules, by trial. */
struct provider_abilities {
	const char *back_end; /* "rte_flow", "rte_flow async", "none" */
	char nic[64];	      /* the driver's name */
	char unable[160];     /* of "none": one sentence why; else "" */
	unsigned mark_bits;   /* 16, 24 or 32 */
	uint32_t mark_max;    /* largest mark that may be asked for */
	bool counts;	      /* rules of ours have a counter that can be read */
	bool kind[PROVIDER_N_KINDS];
	char shape[PROVIDER_N_KINDS][64];	       /* "eth / ipv4 / tcp flags, mark + queue" */
	struct provider_why refused[PROVIDER_N_KINDS]; /* of kinds that are not granted */
	/* full offload, by kind: what can be done beside marks; nothing unless it was wanted */
	bool full[PROVIDER_N_DEEDS][PROVIDER_N_KINDS];
	bool exact;			       /* of such rules the last packets are told, too */
	char full_shape[PROVIDER_N_KINDS][96]; /* of one that forwards */
	struct provider_why full_refused[PROVIDER_N_KINDS]; /* where it does not */
	/* not granted, for what may be another the next time: provider_try_again() */
	bool trying[PROVIDER_N_KINDS];
	/* of "none": it knows rules, and takes none. A full table says anything: it may, another day */
	bool perhaps;
	/* of "none": for each kind it failed, or never answered, the last time; and no rule was taken */
	bool dead;
};

struct provider_config {
	uint16_t port_id;
	uint32_t n_places;
	uint16_t n_queues; /* of the port, to receive */
	/* the queue of each worker's packets, where the port has one for each; else NULL. Outlives it */
	const uint8_t *worker_queue;
	bool zone_vlan; /* keys have VLAN numbers in them: struct extract_options */
	bool metadata;	/* marks were negotiated, or that was not necessary: provider_negotiate() */
	bool async;	/* provider_prepare() set up queues */
	bool full; /* full offload is wanted; packets that are forwarded go out of this ethdev */
	uint16_t forward_to;
	bool uncounted;	 /* nobody reads the counters of marks: their rules are to have none */
	uint64_t random; /* unlike from run to run */
	unsigned trials; /* how often this port was tried before */
	/* once it is true no more of the port is tried: what is not known yet stays so. NULL: nobody stops it */
	const atomic_bool *stop;
};

/*
 * What has to be done before a port is configured, and before it is started; by whoever sets up the port.
 * The first asks for marks (rte_eth_rx_metadata_negotiate): true when they may come. The second sets up
 * flow queues for `n_places` rules where the port has them: true when it did.
 */
bool provider_negotiate(uint16_t port_id);
bool provider_prepare(uint16_t port_id, uint32_t n_places);

/*
 * Opens the provider of a started port: tries, for each kind of flow, which patterns and actions the NIC
 * takes (the first that works is kept), with addresses that are for documentation, and leaves no rule behind.
 * Never fails but for memory: a port that takes nothing has the back end "none". 0 or -ENOMEM.
 */
int provider_open(struct provider **provider, const struct provider_config *config);
/*
 * The same again for kinds that are `trying`, or, of "none", for all: what is granted stays so. Nothing that anybody
 * awaits may be under way. Replaces the provider if it was "none". 0 or -ENOMEM, when all is as it was.
 */
int provider_try_again(struct provider **provider, const struct provider_config *config);
/*
 * Accepts NULL. Takes away the rules that are left: many of them by one call for all rules of the port, which are
 * nobody else's (rte_flow_flush); else one by one, for some seconds at most. Those under way are waited for, a second
 * at most. How many rules may still be there.
 */
uint32_t provider_close(struct provider *provider);

const struct provider_abilities *provider_abilities(const struct provider *provider);
/* Is some kind of flow to be tried again? Any thread, of abilities that do not change. */
bool provider_is_trying(const struct provider_abilities *abilities);

int provider_insert(struct provider *provider, uint32_t place, const struct offload_rule *rule,
	struct provider_why *why);
int provider_remove(struct provider *provider, uint32_t place, struct provider_why *why);
/*
 * The counter of a place's rule. Never -EINPROGRESS. Where there is no rule (any more), or one without a counter, no
 * driver is asked: -EOPNOTSUPP, with nothing in `why`.
 */
int provider_query(struct provider *provider, uint32_t place, struct provider_count *count,
	struct provider_why *why);

/*
 * What the counter of a place's rule had when the rule was removed, by provider_remove() or with all others: once,
 * before the next insert there. False: it is not known, or nobody counted.
 */
bool provider_last_count(struct provider *provider, uint32_t place, struct provider_count *count);

/* Pushes what is postponed, and takes at most `max` ends of what was -EINPROGRESS. */
unsigned provider_poll(struct provider *provider, struct provider_done *done, unsigned max);

/*
 * The actions of a kind are accepted, but their packets come without marks: the next in line are tried,
 * and kept for later rules. False when there is none left (the first is in line again then).
 */
bool provider_next_shape(struct provider *provider, enum provider_kind kind);

/*
 * Takes out all rules of the port, also such as nobody has a handle of (rte_flow_flush); those that are left are asked
 * to go one by one first, until nothing is heard of them for a second. 0; -EOPNOTSUPP: there is no such call; -EIO with
 * `why`: rules may be there. As after provider_reset() no answer will come of what was under way.
 */
int provider_flush(struct provider *provider, struct provider_why *why);
/* The port was stopped and started: what it kept of rules goes, and no answer will come. */
void provider_reset(struct provider *provider);
