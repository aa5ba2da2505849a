/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/telemetry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_telemetry.h>

#include "drivers/flowsim/port/compat.h"
#include "drivers/flowsim/port/fault.h"
#include "drivers/flowsim/rules/fault_set.h"
#include "drivers/flowsim/sim.h"

/* Ports by ethdev number. The lock is held through a command, and comes before every port's. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_port *ports[RTE_MAX_ETHPORTS];

void sim_telemetry_add(struct sim_port *port)
{
	pthread_mutex_lock(&lock);
	if (port->id < RTE_DIM(ports))
		ports[port->id] = port;
	pthread_mutex_unlock(&lock);
}

void sim_telemetry_remove(struct sim_port *port)
{
	pthread_mutex_lock(&lock);
	if (port->id < RTE_DIM(ports) && ports[port->id] == port)
		ports[port->id] = NULL;
	pthread_mutex_unlock(&lock);
}

/* An answer that says why not; telemetry sends nothing of a failed command but "null". */
static int refuse(struct rte_tel_data *answer, const char *text)
{
	rte_tel_data_start_dict(answer);
	rte_tel_data_add_dict_string(answer, "error", text);
	return 0;
}

/* The port that `params` begin with, locked, and what follows; else NULL and an answer. */
static struct sim_port *open_port(
	const char *params, const char **rest, struct rte_tel_data *answer)
{
	struct sim_port *port = NULL;
	unsigned long id;
	char *end;

	if (params == NULL || *params < '0' || *params > '9') {
		refuse(answer, "the number of a port is missing");
		return NULL;
	}
	errno = 0;
	id = strtoul(params, &end, 10);
	if (*end != '\0' && *end != ':' && *end != ',') {
		refuse(answer, "the number of the port cannot be read");
		return NULL;
	}
	pthread_mutex_lock(&lock);
	if (errno == 0 && id < RTE_DIM(ports))
		port = ports[id];
	if (port == NULL) {
		pthread_mutex_unlock(&lock);
		refuse(answer, "that port is no net_flowsim");
		return NULL;
	}
	pthread_mutex_lock(&port->lock);
	*rest = *end == '\0' ? "" : end + 1;
	return port;
}

static void close_port(struct sim_port *port)
{
	pthread_mutex_unlock(&port->lock);
	pthread_mutex_unlock(&lock);
}

static int tell_list(const char *command, const char *params, struct rte_tel_data *answer)
{
	(void)command;
	(void)params;
	rte_tel_data_start_array(answer, RTE_TEL_INT_VAL);
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < RTE_DIM(ports); i++) {
		if (ports[i] != NULL)
			rte_tel_data_add_array_int(answer, (int)i);
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

/* {"told":"every=10","on":1,"chances":20,"strikes":2,"total":2} */
static struct rte_tel_data *fault_entry(struct sim_port *port, enum sim_fault_name name)
{
	struct sim_fault_state state = sim_fault_look(port, name);
	struct rte_tel_data *entry;

	if (!state.on && state.chances == 0 && state.total_strikes == 0 && state.told[0] == '\0')
		return NULL;
	entry = rte_tel_data_alloc();
	if (entry == NULL)
		return NULL;
	rte_tel_data_start_dict(entry);
	rte_tel_data_add_dict_string(entry, "told", state.told);
	rte_tel_data_add_dict_int(entry, "on", state.on);
	sim_tel_add_uint(entry, "chances", state.chances);
	sim_tel_add_uint(entry, "strikes", state.strikes);
	sim_tel_add_uint(entry, "total", state.total_strikes);
	return entry;
}

/* Faults that were told or have struck, by name. */
static void list_faults(struct sim_port *port, struct rte_tel_data *answer)
{
	rte_tel_data_start_dict(answer);
	for (unsigned name = 0; name < SIM_N_FAULTS; name++) {
		struct rte_tel_data *entry = fault_entry(port, (enum sim_fault_name)name);

		if (entry != NULL && rte_tel_data_add_dict_container(
					     answer, sim_fault_name(name), entry, 0) != 0)
			rte_tel_data_free(entry);
	}
}

static int tell_faults(const char *command, const char *params, struct rte_tel_data *answer)
{
	const char *rest;
	struct sim_port *port = open_port(params, &rest, answer);

	(void)command;
	if (port == NULL)
		return 0;
	list_faults(port, answer);
	close_port(port);
	return 0;
}

static int tell_fault(const char *command, const char *params, struct rte_tel_data *answer)
{
	struct error error = {.text = ""};
	const char *rest;
	struct sim_port *port = open_port(params, &rest, answer);

	(void)command;
	if (port == NULL)
		return 0;
	if (sim_fault_parse(port, rest, &error) != 0)
		refuse(answer, error.text);
	else
		list_faults(port, answer);
	close_port(port);
	return 0;
}

static int tell_rules(const char *command, const char *params, struct rte_tel_data *answer)
{
	static const char *const states[] = {
		[SIM_RULE_PENDING] = "pending",
		[SIM_RULE_LIVE] = "live",
		[SIM_RULE_LOST] = "lost",
		[SIM_RULE_GONE] = "gone",
		[SIM_RULE_LEAVING] = "leaving",
	};
	uint64_t n[RTE_DIM(states)] = {0}, ghosts = 0;
	const struct rte_flow *rule;
	const char *rest;
	struct sim_port *port = open_port(params, &rest, answer);

	(void)command;
	if (port == NULL)
		return 0;
	TAILQ_FOREACH(rule, &port->rules, link) {
		if (rule->ghost)
			ghosts++;
		else if (rule->state < RTE_DIM(states))
			n[rule->state]++;
	}
	rte_tel_data_start_dict(answer);
	for (unsigned i = 0; i < RTE_DIM(states); i++)
		sim_tel_add_uint(answer, states[i], n[i]);
	sim_tel_add_uint(answer, "ghosts", ghosts);
	sim_tel_add_uint(answer, "size", port->args.profile.size);
	sim_tel_add_uint(answer, "created", port->told.created);
	sim_tel_add_uint(answer, "destroyed", port->told.destroyed);
	sim_tel_add_uint(answer, "refused", port->told.refused);
	rte_tel_data_add_dict_int(answer, "dead", port->dead);
	close_port(port);
	return 0;
}

static int tell_profile(const char *command, const char *params, struct rte_tel_data *answer)
{
	const struct sim_profile *profile;
	const char *rest;
	struct sim_port *port = open_port(params, &rest, answer);

	(void)command;
	if (port == NULL)
		return 0;
	profile = &port->args.profile;
	rte_tel_data_start_dict(answer);
	rte_tel_data_add_dict_string(answer, "name", profile->name);
	rte_tel_data_add_dict_string(answer, "about", profile->about);
	sim_tel_add_uint(answer, "size", profile->size);
	sim_tel_add_uint(answer, "create_ns", profile->create_ns);
	sim_tel_add_uint(answer, "destroy_ns", profile->destroy_ns);
	sim_tel_add_uint(answer, "flush_ns", profile->flush_ns);
	sim_tel_add_uint(answer, "query_ns", profile->query_ns);
	sim_tel_add_uint(answer, "rate", profile->rate);
	sim_tel_add_uint(answer, "answer_ns", profile->answer_ns);
	rte_tel_data_add_dict_int(answer, "mark_bits", profile->mark_bits);
	sim_tel_add_uint(answer, "groups", profile->groups);
	sim_tel_add_uint(answer, "priorities", profile->priorities);
	rte_tel_data_add_dict_int(answer, "sync", profile->sync);
	rte_tel_data_add_dict_int(answer, "async", profile->async);
	rte_tel_data_add_dict_int(answer, "transfer", profile->transfer);
	rte_tel_data_add_dict_int(answer, "egress", profile->egress);
	sim_tel_add_uint(answer, "quirks", profile->quirks);
	close_port(port);
	return 0;
}

/* Before main(), when the driver is linked in, or when it is loaded: telemetry takes both. */
RTE_INIT(sim_telemetry_register)
{
	rte_telemetry_register_cmd(
		"/flowsim/list", tell_list, "Ports of net_flowsim. No parameters");
	rte_telemetry_register_cmd("/flowsim/fault", tell_fault,
		"Sets faults: PORT:NAME[:WORD=NUMBER...][/NAME...], NAME:off ends one");
	rte_telemetry_register_cmd("/flowsim/faults", tell_faults,
		"What was told, chances and strikes of each fault. Parameters: PORT");
	rte_telemetry_register_cmd(
		"/flowsim/rules", tell_rules, "Rules by state. Parameters: PORT");
	rte_telemetry_register_cmd(
		"/flowsim/profile", tell_profile, "Limits in force. Parameters: PORT");
}
