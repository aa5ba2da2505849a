/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/port/fault.h"

#include "drivers/flowsim/port/firmware.h"
#include "drivers/flowsim/port/port.h"

/* Counted under a lock, read by receive without one: a packet more or less is nobody's promise. */
bool sim_fault_is_on(const struct sim_faults *faults, enum sim_fault_name name)
{
	return __atomic_load_n(&faults->on[name], __ATOMIC_RELAXED);
}

void sim_fault_turn(struct sim_faults *faults, enum sim_fault_name name, bool on)
{
	faults->fault[name].on = on;
	__atomic_store_n(&faults->on[name], on, __ATOMIC_RELAXED);
}

/* One chance of a fault that is on; its lock is held. */
static bool chance(struct sim_faults *faults, enum sim_fault_name name)
{
	struct sim_fault_state *state = &faults->fault[name];
	uint64_t every = state->every == 0 ? 1 : state->every;

	if (state->chances++ < state->after)
		return false;
	if (state->after_ms != 0 && sim_now_ms() < state->set_at_ms + state->after_ms)
		return false;
	if (++state->begun % every != 0)
		return false;
	state->strikes++;
	state->total_strikes++;
	if (state->times != 0 && state->strikes >= state->times)
		sim_fault_turn(faults, name, false);
	return true;
}

bool sim_fault_strikes(struct sim_port *port, enum sim_fault_name name)
{
	struct sim_faults *faults = &port->faults;

	return sim_fault_is_on(faults, name) && !faults->quiet && chance(faults, name);
}

uint64_t sim_fault_delay_ns(struct sim_port *port, enum sim_fault_name name)
{
	if (!sim_fault_strikes(port, name))
		return 0;
	return port->faults.fault[name].value * 1000000;
}

bool sim_fault_on_packets(const struct sim_port *port)
{
	return sim_fault_is_on(&port->faults, SIM_FAULT_STOP_MARK) ||
	       sim_fault_is_on(&port->faults, SIM_FAULT_WRONG_MARK);
}

/* With mark=ID packets of that mark are its chances, else all; those that are only flagged have none. */
static bool strikes_mark(struct sim_faults *faults, enum sim_fault_name name, const uint32_t *mark)
{
	const struct sim_fault_state *state = &faults->fault[name];

	if (!sim_fault_is_on(faults, name))
		return false;
	if (state->has_mark && (mark == NULL || *mark != state->mark))
		return false;
	return chance(faults, name);
}

bool sim_fault_mark(struct sim_port *port, uint32_t *mark)
{
	struct sim_faults *faults = &port->faults;
	bool marked;

	pthread_mutex_lock(&faults->lock);
	marked = !strikes_mark(faults, SIM_FAULT_STOP_MARK, mark);
	if (marked && mark != NULL && strikes_mark(faults, SIM_FAULT_WRONG_MARK, mark))
		*mark ^= (uint32_t)faults->fault[SIM_FAULT_WRONG_MARK].value;
	pthread_mutex_unlock(&faults->lock);
	return marked;
}

struct sim_fault_state sim_fault_look(struct sim_port *port, enum sim_fault_name name)
{
	struct sim_fault_state state;

	pthread_mutex_lock(&port->faults.lock);
	state = port->faults.fault[name];
	pthread_mutex_unlock(&port->faults.lock);
	return state;
}
