/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What goes wrong on purpose, by devarg or, while running, by telemetry. Each fault is asked about at
 * every chance it has; what was told, how many chances there were and how often it struck is counted
 * exactly, and listed by telemetry: /flowsim/faults,PORT. A fault with `every=N` strikes at the Nth,
 * 2Nth, ... chance after it was set; `times=N` ends it after so many; `value` is the fault's own.
 *
 *   fault=lose:every=10/fail:every=3,errno=5,op=create/stop_mark:after=1000,mark=7/late:ms=50
 *   /flowsim/fault,0:lose:every=10        0 is the ethdev; several with '/'; NAME:off ends one
 *
 * Under the port's lock, but for those that strike a packet (`packet` below): these make receive take
 * its slow way and are under a lock of their own.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum sim_fault_name {
	SIM_FAULT_STOP_MARK, /* packet: after N marked packets (after=) or milliseconds (after_ms=) no
				    more marks; with mark=ID only of that mark; FLAG too; counters go on */
	SIM_FAULT_WRONG_MARK, /* packet: another mark: id xor value (1) */
	SIM_FAULT_DEAD, /* nothing matches, calls fail with EIO, until the device is stopped and
				    started */
	SIM_FAULT_LOSE, /* a rule that was accepted is not there */
	SIM_FAULT_FAIL, /* a call fails: errno= (5), op=create|destroy|query|push|any (any) */
	SIM_FAULT_STALL_DELETE, /* destroy takes ms= longer, the rule works on meanwhile */
	SIM_FAULT_LATE, /* a completion comes ms= later than the work was done; sync: the answer */
	SIM_FAULT_DROP_COMPLETION, /* async: done, and never told */
	SIM_FAULT_COUNT_NOTHING,   /* counters stand still */
	SIM_FAULT_FORGET,	   /* once, when set: all live rules are gone */
	SIM_FAULT_EVICT,	   /* a create that succeeds makes the oldest live rule gone */
	SIM_N_FAULTS,
};

struct sim_fault_state {
	bool on;
	uint64_t every, after, after_ms, times; /* 0: not told */
	uint64_t value;				/* mark=, errno=, ms=, value=, by fault */
	bool has_mark;
	uint32_t mark;
	unsigned op;
	uint64_t set_at_ms;
	uint64_t chances, strikes; /* since it was set */
	uint64_t total_strikes;	   /* since the port was made */
};

struct sim_faults {
	pthread_mutex_t lock; /* of the packet faults */
	struct sim_fault_state fault[SIM_N_FAULTS];
};

struct sim_port;

/* Sets faults from text as above. Returns 0, or -EINVAL with a line that names the word. */
int sim_fault_parse(struct sim_port *port, const char *text, struct error *error);

/* A chance for a fault of the control path: counts it and tells whether it strikes. */
bool sim_fault_strikes(struct sim_port *port, enum sim_fault_name name);

/* The same for SIM_FAULT_FAIL: 0, or the negative errno to fail with. `op` is enum sim_fault_op. */
enum sim_fault_op { SIM_OP_CREATE, SIM_OP_DESTROY, SIM_OP_QUERY, SIM_OP_PUSH, SIM_OP_ANY };
int sim_fault_fails(struct sim_port *port, enum sim_fault_op op);

/* True while a packet fault is on: receive then takes its slow way. */
bool sim_fault_on_packets(const struct sim_port *port);

/* A packet that is about to be marked: false = leave the mark out; may change it. Slow way only. */
bool sim_fault_mark(struct sim_port *port, uint32_t *mark);

/* The value of a counter as the NIC tells it: bits, or standing still. */
uint64_t sim_fault_counter(struct sim_port *port, uint64_t value);
