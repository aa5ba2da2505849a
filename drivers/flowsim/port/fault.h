/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What goes wrong on purpose, by devarg or, while running, by telemetry. Each fault is asked about at
 * every chance it has; what was told, how many chances there were and how often it struck is counted
 * exactly, and listed by telemetry: /flowsim/faults,PORT. A fault with `every=N` strikes at the Nth,
 * 2Nth, ... chance after it was set; `after=N` lets N chances pass first; `times=N` ends it after so
 * many strikes. The text is fault_text.h's.
 *
 *   fault=lose:every=10/fail:every=3:errno=5:op=create/stop_mark:after=1000:mark=7/late:ms=50
 *   /flowsim/fault,0:lose:every=10        0 is the ethdev; several with '/'; NAME:off ends one
 *
 * Under the port's lock, but for those that strike a packet (`packet` below): these make receive take
 * its slow way and are under a lock of their own.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "drivers/flowsim/match/rule.h"

enum sim_fault_name {
	SIM_FAULT_STOP_MARK, /* packet: after N marked packets (after=) or milliseconds (after_ms=) no
				    more marks; with mark=ID only of that mark; FLAG too; counters go on */
	SIM_FAULT_WRONG_MARK, /* packet: another mark: id xor value (1) */
	SIM_FAULT_DEAD, /* nothing matches, calls fail with EIO, until the device is stopped and
				    started; strikes: calls that failed so */
	SIM_FAULT_LOSE, /* a rule that was accepted is not there */
	SIM_FAULT_FAIL, /* a call fails: errno= (5), op=create|destroy|query|push|any (any) */
	SIM_FAULT_STALL_DELETE, /* destroy takes ms= longer, the rule works on meanwhile */
	SIM_FAULT_LATE, /* a completion comes ms= later than the work was done; sync: the answer */
	SIM_FAULT_DROP_COMPLETION, /* async: done, and never told */
	SIM_FAULT_COUNT_NOTHING,   /* a query tells what the counter was when the fault was set */
	SIM_FAULT_FORGET,	   /* once, when set: all live rules are gone; strikes: rules */
	SIM_FAULT_RESET, /* the same, and what they counted: queries of theirs fail with EIO */
	SIM_FAULT_EVICT, /* a create that succeeds makes the oldest live rule gone */
	SIM_FAULT_WRAP,	 /* counters have bits= (32); strikes: told numbers that were cut */
	SIM_FAULT_GHOST, /* rules= of an earlier run are there; strikes: how many */
	SIM_N_FAULTS,
};

/* The calls that `op=` means. */
enum sim_fault_op { SIM_OP_CREATE, SIM_OP_DESTROY, SIM_OP_QUERY, SIM_OP_PUSH, SIM_OP_ANY };

struct sim_fault_state {
	bool on;
	uint64_t every, after, after_ms, times; /* 0: not told */
	uint64_t value;				/* errno=, ms=, value=, bits=, rules=, by fault */
	bool has_mark;
	uint32_t mark;
	unsigned op;
	char told[96];
	uint64_t set_at_ms;
	uint64_t chances, strikes; /* since it was set */
	uint64_t begun;		   /* of the chances: after `after` and `after_ms` */
	uint64_t total_strikes;	   /* since the port was made */
};

struct sim_still; /* what a counter was when count_nothing was set */

struct sim_faults {
	pthread_mutex_t lock;  /* of the packet faults */
	bool on[SIM_N_FAULTS]; /* atomic: receive looks without a lock */
	struct sim_fault_state fault[SIM_N_FAULTS];
	bool quiet; /* no fault has a chance: ghosts are being made */
	struct sim_still *still;
	uint32_t n_still;
	uint64_t still_serial;
};

struct sim_port;

/* A chance for a fault of the control path: counts it and tells whether it strikes. */
bool sim_fault_strikes(struct sim_port *port, enum sim_fault_name name);

/* The same for SIM_FAULT_STALL_DELETE and SIM_FAULT_LATE: by how many nanoseconds; 0: it does not. */
uint64_t sim_fault_delay_ns(struct sim_port *port, enum sim_fault_name name);

/* Whether it is set, counting no chance: one that waits for something first. Any thread. */
bool sim_fault_is_on(const struct sim_faults *faults, enum sim_fault_name name);

/* Sets it on or off; its state has been written. Under the lock that it is under. */
void sim_fault_turn(struct sim_faults *faults, enum sim_fault_name name, bool on);

/* True while a packet fault is on: receive then takes its slow way. Any thread. */
bool sim_fault_on_packets(const struct sim_port *port);

/*
 * A packet that is about to be marked: false = leave the mark out; may change it. NULL: about to be
 * flagged only. Slow way only; any thread.
 */
bool sim_fault_mark(struct sim_port *port, uint32_t *mark);

/* "stop_mark", ...; NULL for numbers beyond. */
const char *sim_fault_name(unsigned number);

/* A fault as it stands at this moment, for who lists it; the port's lock is held. */
struct sim_fault_state sim_fault_look(struct sim_port *port, enum sim_fault_name name);
