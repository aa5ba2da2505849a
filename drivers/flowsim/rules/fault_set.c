/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/rules/fault_set.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/flowsim/packets/queue.h"
#include "drivers/flowsim/port/fault_text.h"
#include "drivers/flowsim/port/firmware.h"
#include "drivers/flowsim/port/port.h"
#include "drivers/flowsim/rules/ghost.h"
#include "drivers/flowsim/rules/indirect.h"
#include "drivers/flowsim/rules/rule_life.h"

/* A counter that stands still: a rule or an indirect action, and what was counted until then. */
struct sim_still {
	const void *of;
	struct sim_count count;
};

static bool of_packets(unsigned name)
{
	return name == SIM_FAULT_STOP_MARK || name == SIM_FAULT_WRONG_MARK;
}

/* Live rules are gone from the NIC, ghosts for good. Returns how many. */
static uint64_t forget_all(struct sim_port *port)
{
	struct rte_flow *rule;
	uint64_t n = 0;

	TAILQ_FOREACH(rule, &port->rules, link) {
		if (rule->in_table) {
			sim_rule_forget(rule);
			n++;
		}
	}
	sim_ghosts_drop(port);
	return n;
}

static void die(struct sim_port *port)
{
	if (port->dead)
		return;
	port->dead = true;
	forget_all(port);
}

/* The NIC has started over: what there was has counted nothing that anybody could ask for. */
static uint64_t start_over(struct sim_port *port)
{
	struct sim_indirect *indirect;
	struct rte_flow *rule;

	TAILQ_FOREACH(rule, &port->rules, link)
		rule->uncounted = true;
	TAILQ_FOREACH(indirect, &port->indirects, link)
		indirect->uncounted = true;
	return forget_all(port);
}

int sim_fault_fails(struct sim_port *port, enum sim_fault_op op)
{
	struct sim_fault_state *fail = &port->faults.fault[SIM_FAULT_FAIL];

	if (sim_fault_strikes(port, SIM_FAULT_DEAD))
		die(port);
	if (port->dead)
		return -EIO;
	if (fail->op != SIM_OP_ANY && fail->op != op)
		return 0;
	return sim_fault_strikes(port, SIM_FAULT_FAIL) ? -(int)fail->value : 0;
}

static int by_address(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t)((const struct sim_still *)a)->of;
	uintptr_t y = (uintptr_t)((const struct sim_still *)b)->of;

	return x < y ? -1 : x > y;
}

static void release_still(struct sim_faults *faults)
{
	free(faults->still);
	faults->still = NULL;
	faults->n_still = 0;
}

/* What all counters are now; those that come later stand at 0, as do all when memory is short. */
static void stand_still(struct sim_port *port)
{
	struct sim_faults *faults = &port->faults;
	const struct sim_indirect *indirect;
	const struct rte_flow *rule;
	uint32_t n = port->n_rules;

	release_still(faults);
	faults->still_serial = port->serial;
	TAILQ_FOREACH(indirect, &port->indirects, link)
		n++;
	faults->still = calloc(n == 0 ? 1 : n, sizeof(*faults->still));
	if (faults->still == NULL)
		return;
	TAILQ_FOREACH(rule, &port->rules, link) {
		if (rule->actions != NULL && rule->actions->count && faults->n_still < n)
			faults->still[faults->n_still++] =
				(struct sim_still){rule, sim_rule_count(rule)};
	}
	TAILQ_FOREACH(indirect, &port->indirects, link) {
		if (faults->n_still < n)
			faults->still[faults->n_still++] =
				(struct sim_still){indirect, sim_indirect_count(indirect)};
	}
	qsort(faults->still, faults->n_still, sizeof(*faults->still), by_address);
}

static struct sim_count stood_at(
	const struct sim_faults *faults, const void *of, uint64_t serial, struct sim_count now)
{
	const struct sim_still key = {.of = of};
	const struct sim_still *still = NULL;

	/* a younger rule may have the memory of one that was there */
	if (serial <= faults->still_serial && faults->still != NULL)
		still = bsearch(&key, faults->still, faults->n_still, sizeof(key), by_address);
	if (still == NULL)
		return (struct sim_count){0, 0};
	/* so may a handle: then it has counted less */
	if (now.hits < still->count.hits || now.bytes < still->count.bytes)
		return now;
	return still->count;
}

static uint64_t wrapped(struct sim_port *port, uint64_t value)
{
	struct sim_fault_state *state = &port->faults.fault[SIM_FAULT_WRAP];
	uint64_t told;

	if (!sim_fault_is_on(&port->faults, SIM_FAULT_WRAP))
		return value;
	told = value & ((1ull << state->value) - 1);
	state->chances++;
	if (told != value) {
		state->strikes++;
		state->total_strikes++;
	}
	return told;
}

struct sim_count sim_fault_count(
	struct sim_port *port, const void *of, uint64_t serial, struct sim_count count)
{
	if (sim_fault_strikes(port, SIM_FAULT_COUNT_NOTHING))
		count = stood_at(&port->faults, of, serial, count);
	return (struct sim_count){wrapped(port, count.hits), wrapped(port, count.bytes)};
}

/* What happens once, when a fault is set. */
static void begin(struct sim_port *port, enum sim_fault_name name, struct sim_fault_state *state)
{
	uint64_t strikes = 0;

	switch (name) {
	case SIM_FAULT_DEAD:
		if (state->after == 0)
			die(port);
		return;
	case SIM_FAULT_COUNT_NOTHING:
		stand_still(port);
		return;
	case SIM_FAULT_FORGET:
	case SIM_FAULT_RESET:
		strikes = name == SIM_FAULT_RESET ? start_over(port) : forget_all(port);
		sim_fault_turn(&port->faults, name, false);
		break;
	case SIM_FAULT_GHOST:
		port->faults.quiet = true;
		strikes = sim_ghosts_make(port, (uint32_t)state->value);
		port->faults.quiet = false;
		break;
	case SIM_FAULT_STOP_MARK:
	case SIM_FAULT_WRONG_MARK:
	case SIM_FAULT_LOSE:
	case SIM_FAULT_FAIL:
	case SIM_FAULT_STALL_DELETE:
	case SIM_FAULT_LATE:
	case SIM_FAULT_DROP_COMPLETION:
	case SIM_FAULT_EVICT:
	case SIM_FAULT_WRAP:
	case SIM_N_FAULTS:
		return;
	}
	state->chances = name == SIM_FAULT_GHOST ? state->value : strikes;
	state->strikes = strikes;
	state->total_strikes += strikes;
}

/* What ends with a fault. A dead NIC stays dead until it is started anew. */
static void end(struct sim_port *port, enum sim_fault_name name)
{
	if (name == SIM_FAULT_COUNT_NOTHING)
		release_still(&port->faults);
	if (name == SIM_FAULT_GHOST)
		sim_ghosts_drop(port);
}

static void set(struct sim_port *port, enum sim_fault_name name, const struct sim_fault_state *to)
{
	struct sim_faults *faults = &port->faults;
	struct sim_fault_state *state = &faults->fault[name];
	uint64_t total;

	end(port, name);
	pthread_mutex_lock(&faults->lock);
	total = state->total_strikes;
	if (to->on) {
		*state = *to;
		state->total_strikes = total;
		state->set_at_ms = sim_now_ms();
	} else {
		/* its counts are for reading still */
		snprintf(state->told, sizeof(state->told), "%s", to->told);
	}
	sim_fault_turn(faults, name, to->on);
	pthread_mutex_unlock(&faults->lock);
	if (to->on)
		begin(port, name, state);
}

int sim_fault_parse(struct sim_port *port, const char *text, struct error *error)
{
	struct sim_fault_order order;
	bool packets = false;
	int status = sim_fault_read(&order, text, error);

	if (status != 0)
		return status;
	for (unsigned name = 0; name < SIM_N_FAULTS; name++) {
		if (!order.said[name])
			continue;
		set(port, (enum sim_fault_name)name, &order.to[name]);
		packets = packets || of_packets(name);
	}
	if (packets)
		sim_queues_look(port);
	return 0;
}

int sim_faults_init(struct sim_port *port, struct error *error)
{
	struct sim_faults *faults = &port->faults;
	char text[64];
	int status = 0;

	memset(faults, 0, sizeof(*faults));
	pthread_mutex_init(&faults->lock, NULL);
	if (port->args.ghosts != 0) {
		snprintf(text, sizeof(text), "ghost:rules=%u", port->args.ghosts);
		status = sim_fault_parse(port, text, error);
	}
	if (status == 0 && port->args.counter_bits != 0 && port->args.counter_bits < 64) {
		snprintf(text, sizeof(text), "wrap:bits=%u", port->args.counter_bits);
		status = sim_fault_parse(port, text, error);
	}
	if (status == 0 && port->args.faults[0] != '\0')
		status = sim_fault_parse(port, port->args.faults, error);
	return status;
}

void sim_faults_fini(struct sim_port *port)
{
	release_still(&port->faults);
	pthread_mutex_destroy(&port->faults.lock);
}

void sim_faults_start(struct sim_port *port)
{
	pthread_mutex_lock(&port->lock);
	if (port->dead) {
		port->dead = false;
		sim_fault_turn(&port->faults, SIM_FAULT_DEAD, false);
	}
	sim_queues_look(port);
	pthread_mutex_unlock(&port->lock);
}
