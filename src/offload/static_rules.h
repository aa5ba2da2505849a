/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Static rules of one port: rules that drop whatever matches them, flow or no flow (rule/nic_pattern.h). Software has each
 * of them, too, so that nothing depends on the NIC but that it drops no packet that the rule does not.
 *
 * Control says which rules are wanted, and gives them places. The port's installer makes and removes them between its other
 * work, and reads their counters twice a second. A rule that is refused is asked for again, after a second first and a
 * minute at last. A place is free when nothing is wanted there and the NIC has confirmed that the rule is gone.
 *
 * Counts are those of all rules that a place had since it was free: what the NIC told, and so never too much. What a
 * rule drops between its last reading and a reset of its port is lost.
 *
 * Threads: functions are control's or the installer's, as said; a lock keeps them apart, and is not held during calls of
 * the NIC.
 */

#include <stdbool.h>
#include <stdint.h>

#include "rteflow/provider.h"
#include "rule/classifier.h"

#define STATIC_RULES_MAX 16384u

enum static_state {
	STATIC_FREE,
	STATIC_ASKED, /* the installer has not come to it yet */
	STATIC_INSTALLING,
	STATIC_IN_NIC,
	STATIC_REFUSED,
	STATIC_LEAVING, /* it may be in the NIC, and is to go */
};

struct static_view {
	enum static_state state;
	bool counts, has_bytes;	 /* the rule that is there has a counter */
	uint64_t packets, bytes; /* so far */
	uint32_t renewed;	 /* times that it was made anew, as its packets came to software */
	struct provider_why
		why; /* of STATIC_REFUSED, and where a rule does not go: what the driver said */
};

struct static_rules;

/* `max` up to STATIC_RULES_MAX. 0, -EINVAL or -ENOMEM. */
int static_rules_create(struct static_rules **rules, uint16_t port_id, uint32_t max);
/* After static_rules_clear(), if rules may be there. Accepts NULL. */
void static_rules_destroy(struct static_rules *rules);

/* Control: */

/* The rule is to be in the NIC. The place is free. */
void static_rules_want(
	struct static_rules *rules, uint32_t place, const struct classifier_rule *rule);
/* It is to be there no longer: the place is free, or will be. */
void static_rules_remove(struct static_rules *rules, uint32_t place);
/* The NIC seems to have lost it: it is removed, and made anew. */
void static_rules_renew(struct static_rules *rules, uint32_t place);
void static_rules_get(struct static_rules *rules, uint32_t place, struct static_view *view);
/* Counters are wanted: when static_rules_told() of the number is true, they are not older than this call. */
uint64_t static_rules_ask(struct static_rules *rules);
bool static_rules_told(struct static_rules *rules, uint64_t asked);
/* What all rules have dropped, those that are gone among them. */
void static_rules_dropped(struct static_rules *rules, uint64_t *packets, uint64_t *bytes);

/* Any thread: rules that the NIC has, and whether there was no room for the one that was asked for last. */
uint32_t static_rules_there(const struct static_rules *rules);
bool static_rules_want_room(const struct static_rules *rules);

/* The installer: */

/* Goes on with what there is to do; `insert`: rules may be made. True when it was something. */
bool static_rules_turn(struct static_rules *rules, uint64_t now_us, bool insert);
/* All rules of the port are gone by a call that was none of ours. They are made anew. */
void static_rules_forget(struct static_rules *rules);
/* Removes all, for so long at most; those that are wanted are made anew. Returns how many may be there still. */
uint32_t static_rules_clear(struct static_rules *rules, uint64_t most_us);
