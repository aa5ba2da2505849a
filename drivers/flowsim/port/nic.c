/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/port/nic.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/flowsim/port/port.h"

struct sim_nic {
	TAILQ_ENTRY(sim_nic) link;
	char name[64]; /* empty: of one port alone */
	uint16_t domain;
	unsigned n_ports;
	/* whoever hands a packet to a port reads under it, so that the port does not go meanwhile */
	rte_rwlock_t lock;
	struct sim_port *ports[SIM_MAX_NIC_PORTS];
};

TAILQ_HEAD(nic_list, sim_nic);

/* Of this process, with the lock that ports join and leave under. */
static struct nic_list nics = TAILQ_HEAD_INITIALIZER(nics);
static pthread_mutex_t nics_lock = PTHREAD_MUTEX_INITIALIZER;

static struct sim_nic *find(const char *name)
{
	struct sim_nic *nic = NULL;

	if (name[0] != '\0')
		TAILQ_FOREACH(nic, &nics, link)
			if (strcmp(nic->name, name) == 0)
				break;
	return nic;
}

static struct sim_nic *make(const char *name)
{
	struct sim_nic *nic = calloc(1, sizeof(*nic));

	if (nic == NULL)
		return NULL;
	snprintf(nic->name, sizeof(nic->name), "%s", name);
	rte_rwlock_init(&nic->lock);
	if (rte_eth_switch_domain_alloc(&nic->domain) < 0) {
		free(nic);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&nics, nic, link);
	return nic;
}

/* A place of a NIC: where `port` is, NULL for a free one. */
static struct sim_port **place(struct sim_nic *nic, const struct sim_port *port)
{
	for (unsigned i = 0; i < SIM_MAX_NIC_PORTS; i++)
		if (nic->ports[i] == port)
			return &nic->ports[i];
	return NULL;
}

static int join(struct sim_port *port, struct error *error)
{
	struct sim_nic *nic = find(port->args.nic);
	struct sim_port **free_place;

	if (nic == NULL)
		nic = make(port->args.nic);
	if (nic == NULL)
		return error_set(error, -ENOMEM, "no memory for a NIC");
	free_place = place(nic, NULL);
	if (free_place == NULL)
		return error_set(error, -ENOSPC, "nic=%s has %u ports, and no more", nic->name,
			SIM_MAX_NIC_PORTS);
	rte_rwlock_write_lock(&nic->lock);
	*free_place = port;
	nic->n_ports++;
	rte_rwlock_write_unlock(&nic->lock);
	port->nic = nic;
	return 0;
}

int sim_nic_join(struct sim_port *port, struct error *error)
{
	int ret;

	pthread_mutex_lock(&nics_lock);
	ret = join(port, error);
	pthread_mutex_unlock(&nics_lock);
	return ret;
}

void sim_nic_leave(struct sim_port *port)
{
	struct sim_nic *nic = port->nic;

	if (nic == NULL)
		return;
	pthread_mutex_lock(&nics_lock);
	rte_rwlock_write_lock(&nic->lock);
	*place(nic, port) = NULL;
	nic->n_ports--;
	rte_rwlock_write_unlock(&nic->lock);
	port->nic = NULL;
	if (nic->n_ports == 0) {
		TAILQ_REMOVE(&nics, nic, link);
		rte_eth_switch_domain_free(nic->domain);
		free(nic);
	}
	pthread_mutex_unlock(&nics_lock);
}

void sim_nic_quiesce(struct sim_port *port)
{
	if (port->nic == NULL)
		return;
	rte_rwlock_write_lock(&port->nic->lock);
	rte_rwlock_write_unlock(&port->nic->lock);
}

/* Under the NIC's lock. */
static struct sim_port *port_of(const struct sim_nic *nic, uint16_t ethdev)
{
	for (unsigned i = 0; i < SIM_MAX_NIC_PORTS; i++)
		if (nic->ports[i] != NULL && nic->ports[i]->id == ethdev)
			return nic->ports[i];
	return NULL;
}

struct sim_port *sim_nic_port(const struct sim_port *port, uint16_t ethdev)
{
	struct sim_nic *nic = port->nic;
	struct sim_port *found;

	if (nic == NULL)
		return NULL;
	rte_rwlock_read_lock(&nic->lock);
	found = port_of(nic, ethdev);
	rte_rwlock_read_unlock(&nic->lock);
	return found;
}

uint16_t sim_nic_domain(const struct sim_port *port)
{
	return port->nic->domain;
}

unsigned sim_nic_number(const struct sim_port *port)
{
	return (unsigned)(place(port->nic, port) - port->nic->ports);
}

void sim_nic_count_sent(struct sim_port *to, uint64_t n, uint64_t bytes)
{
	__atomic_fetch_add(&to->nic_sent.packets, n, __ATOMIC_RELAXED);
	__atomic_fetch_add(&to->nic_sent.bytes, bytes, __ATOMIC_RELAXED);
}

struct sim_port *sim_nic_enter(const struct sim_port *port, uint16_t ethdev)
{
	struct sim_nic *nic = port->nic;
	struct sim_port *found;

	if (nic == NULL)
		return NULL;
	rte_rwlock_read_lock(&nic->lock);
	found = port_of(nic, ethdev);
	if (found != NULL && __atomic_load_n(&found->link_up, __ATOMIC_RELAXED))
		return found;
	rte_rwlock_read_unlock(&nic->lock);
	return NULL;
}

void sim_nic_exit(const struct sim_port *port)
{
	rte_rwlock_read_unlock(&port->nic->lock);
}

bool sim_nic_sent(struct sim_port *from, uint16_t to, uint64_t n, uint64_t bytes)
{
	struct sim_port *port = sim_nic_enter(from, to);

	if (port == NULL)
		return false;
	sim_nic_count_sent(port, n, bytes);
	sim_nic_exit(port);
	return true;
}
