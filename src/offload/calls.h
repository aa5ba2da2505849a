/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A port's calls: workers' requests become calls of its provider, and how these end becomes answers, counters, the port's
 * health, and changes to tell. All of it is the installer's thread's, but what offload/installer.h gives to others.
 */

#include "base/mailbox.h"
#include "offload/awaited.h"
#include "offload/installer.h"

struct calls_place {
	bool rule;   /* taken by the NIC, and not given back */
	bool orphan; /* may have a rule by an insert that was given up */
	bool stays;  /* its delete failed, which the port's health was told */
};

struct calls {
	struct provider *provider; /* NULL: there was no memory for it */
	const struct tsc_clock *clock;
	unsigned port; /* its number */
	struct mailbox *answers[INSTALLER_MAX_WORKERS];
	struct mailbox *changes;
	struct health health;
	struct refusals refusals;
	struct installer_counters counters;
	struct installer_histograms histograms;
	struct awaited awaited;
	struct calls_place *places;
	uint32_t n_places;
	uint32_t n_orphans, orphan; /* places that have one, and where the next look begins */
	uint64_t orphans_us;	    /* when they are taken back again */
	bool stalled;
};

/* `calls` is zero. 0 or -ENOMEM; calls_free() comes after both. */
int calls_init(struct calls *calls, const struct installer_config *config);
void calls_free(struct calls *calls);

/* Clock of the run; never 0. */
uint64_t calls_now(const struct calls *calls);
void calls_note(struct calls *calls, enum change_kind kind, uint8_t reason, uint32_t detail);

/* Answers a request without asking the NIC. */
void calls_answer(struct calls *calls, unsigned worker, const struct installer_request *request,
	int result, uint8_t reason);
/* Is its place free of calls, and of what an insert that was given up may have left there? */
bool calls_is_free(struct calls *calls, const struct installer_request *request);
/* Carries a request out. False: the NIC's queue is full, and it is to be asked again; not with `last`. */
bool calls_make(
	struct calls *calls, unsigned worker, const struct installer_request *request, bool last);
/* Takes what the NIC has to say; true when it was something. */
bool calls_poll(struct calls *calls);
/* Counts calls that are late, and gives up what is hopeless. */
void calls_judge(struct calls *calls, uint64_t now_us);
/* Takes back, now and then, rules of inserts that were given up. */
void calls_take_back(struct calls *calls, uint64_t now_us);
/* Tells how many calls are under way, and since when; `begins_us` of one that is being made; 0: none is. */
void calls_gauge(struct calls *calls, uint64_t begins_us);
/* No rule is there any more, and no answer will come: deletes end with `removes`, all else with -EIO. */
void calls_forget_all(struct calls *calls, int removes, const struct provider_why *why);
