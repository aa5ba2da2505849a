/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What the kernel says of an interface, and the few things that an inline device has to set there.
 * Interfaces are those of the calling thread's network namespace. Nothing is kept between calls but
 * what the caller holds; all of it is control's.
 */

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kernel_interface {
	unsigned index;
	unsigned mtu;
	unsigned channels;   /* receive queues, by `ethtool -l`; 1 where it has none */
	unsigned combined;   /* those of them that also send, which alone af_xdp can take */
	unsigned speed_mbps; /* 0: not known */
	bool ethernet;
	bool up;      /* set up by the administrator */
	bool running; /* and its link is up */
	bool gro;
	bool lro;
	bool vlan_strip; /* `ethtool -k`: rx-vlan-offload, which can be switched off */
	char driver[32];
};

/* 0, or -ENODEV (there is none), or another negative errno. */
int kernel_look(struct kernel_interface *interface, const char *name);

/* Its speed in Mbit/s alone; 0: not known. */
unsigned kernel_speed(const char *name);

/* The index alone, 0 where there is none; the name of an index, false where there is none. */
unsigned kernel_index(const char *name);
bool kernel_name(unsigned index, char *name);

/* The names of all interfaces, at most `max`; returns how many. */
unsigned kernel_names(char (*names)[IF_NAMESIZE], unsigned max);

/* Sets it up. 0 or a negative errno. */
int kernel_set_up(const char *name);

/*
 * Lets the interface take every packet, as long as the descriptor is open: nothing is left behind,
 * however the program ends. Returns it or a negative errno.
 */
int kernel_promiscuous(unsigned index);

/*
 * Taps of this process, wherever they were moved: a descriptor of the one with this index (-1: none),
 * and whether the interface of such a descriptor is still there.
 */
int kernel_tap(unsigned index);
bool kernel_tap_lives(int fd);

/* May this process do it? */
bool kernel_may_net_admin(void);
bool kernel_may_net_raw(void);
