/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/rules/age.h"

#include <stdint.h>

#include "drivers/flowsim/port/firmware.h"
#include "drivers/flowsim/port/port.h"
#include "drivers/flowsim/rules/flow_state.h"
#include "drivers/flowsim/rules/indirect.h"
#include "drivers/flowsim/rules/rule_life.h"

/* Rules looked at with one taking of the port's lock, and the pause before the next ones. */
#define LOOKS_AT_ONCE 256
#define PAUSE_NS 1000000u

static struct sim_ages *ages_of(const struct sim_port *port)
{
	return &port->flow->ages;
}

void sim_ages_init(struct sim_ages *ages)
{
	*ages = (struct sim_ages){0};
	TAILQ_INIT(&ages->watched);
	TAILQ_INIT(&ages->tell);
}

static uint64_t hits_of(const struct sim_age *age)
{
	if (age->rule != NULL)
		return sim_rule_count(age->rule).hits;
	return sim_indirect_count(age->handle).hits;
}

static void not_silent(struct sim_ages *ages, struct sim_age *age)
{
	age->told = false;
	if (age->state != SIM_AGE_TELL)
		return;
	TAILQ_REMOVE(&ages->tell, age, tell);
	ages->n_tell--;
	age->state = SIM_AGE_WATCHED;
}

void sim_age_start(struct sim_port *port, struct sim_age *age, uint32_t seconds)
{
	struct sim_ages *ages = ages_of(port);

	sim_age_stop(port, age);
	age->seconds = seconds;
	age->at_ms = sim_now_ms();
	age->hits = hits_of(age);
	if (seconds == 0)
		return;
	age->looked_ms = age->at_ms;
	age->state = SIM_AGE_WATCHED;
	TAILQ_INSERT_TAIL(&ages->watched, age, link);
	/* who watched nothing so far sleeps */
	if (TAILQ_FIRST(&ages->watched) == age)
		sim_firmware_wake(port);
}

void sim_age_stop(struct sim_port *port, struct sim_age *age)
{
	struct sim_ages *ages = ages_of(port);

	if (age->state == SIM_AGE_OFF)
		return;
	not_silent(ages, age);
	TAILQ_REMOVE(&ages->watched, age, link);
	age->state = SIM_AGE_OFF;
}

void sim_age_touch(struct sim_port *port, struct sim_age *age)
{
	age->at_ms = sim_now_ms();
	not_silent(ages_of(port), age);
}

/* Has a packet come since the last look? */
static void look(struct sim_port *port, struct sim_age *age, uint64_t now_ms)
{
	uint64_t hits = hits_of(age);

	if (hits == age->hits)
		return;
	age->hits = hits;
	age->at_ms = now_ms;
	not_silent(ages_of(port), age);
}

/* More than: the clock's milliseconds are cut, and too early is a lie. */
static bool is_silent(const struct sim_age *age, uint64_t now_ms)
{
	return age->seconds != 0 && now_ms - age->at_ms > age->seconds * UINT64_C(1000);
}

uint32_t sim_age_query(struct sim_port *port, struct sim_age *age, bool *aged)
{
	uint64_t now_ms = sim_now_ms();

	look(port, age, now_ms);
	*aged = is_silent(age, now_ms);
	return (uint32_t)((now_ms - age->at_ms) / 1000);
}

int sim_age_take(struct sim_port *port, void **contexts, uint32_t n)
{
	struct sim_ages *ages = ages_of(port);
	uint32_t taken = 0;

	ages->quiet = false;
	if (n == 0)
		return (int)RTE_MIN(ages->n_tell, (uint32_t)INT32_MAX);
	while (taken < n && taken < INT32_MAX && !TAILQ_EMPTY(&ages->tell)) {
		struct sim_age *age = TAILQ_FIRST(&ages->tell);

		contexts[taken++] = age->context;
		not_silent(ages, age);
		age->told = true;
	}
	return (int)taken;
}

static void look_and_tell(struct sim_port *port, struct sim_age *age, uint64_t now_ms)
{
	struct sim_ages *ages = ages_of(port);

	look(port, age, now_ms);
	age->looked_ms = now_ms;
	TAILQ_REMOVE(&ages->watched, age, link);
	TAILQ_INSERT_TAIL(&ages->watched, age, link);
	if (age->told || age->state == SIM_AGE_TELL || !is_silent(age, now_ms))
		return;
	age->state = SIM_AGE_TELL;
	TAILQ_INSERT_TAIL(&ages->tell, age, tell);
	ages->n_tell++;
	ages->raise = true;
	port->told.aged++;
}

/* Those that are due, up to a number; returns when the next ones are. */
static uint64_t look_at_some(struct sim_port *port)
{
	struct sim_ages *ages = ages_of(port);
	uint64_t now_ms = sim_now_ms(), n = 0;
	struct sim_age *age;

	for (;;) {
		age = TAILQ_FIRST(&ages->watched);
		if (age == NULL)
			return UINT64_MAX;
		if (age->looked_ms + SIM_AGE_LOOK_MS > now_ms)
			return (age->looked_ms + SIM_AGE_LOOK_MS - now_ms) * UINT64_C(1000000);
		if (n >= LOOKS_AT_ONCE)
			return PAUSE_NS;
		n += age->handle != NULL ? 1 + age->handle->users : 1;
		look_and_tell(port, age, now_ms);
	}
}

uint64_t sim_age_look(struct sim_port *port)
{
	struct sim_ages *ages = ages_of(port);
	uint64_t wait_ns;
	bool raise;

	pthread_mutex_lock(&port->lock);
	wait_ns = look_at_some(port);
	raise = ages->raise && !ages->quiet;
	ages->raise = false;
	ages->quiet = ages->quiet || raise;
	pthread_mutex_unlock(&port->lock);
	/* whoever is called may ask which they are */
	if (raise)
		rte_eth_dev_callback_process(port->dev, RTE_ETH_EVENT_FLOW_AGED, NULL);
	return wait_ns;
}
