/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Messages of rtnetlink, read from bytes: of the kernel, or of a routing daemon (FPM), which nobody vouches for. Nothing
 * is believed of a length; what does not fit together is refused whole.
 */

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "route/kernel.h"

enum message_kind {
	MESSAGE_LINK,
	MESSAGE_ADDRESS,
	MESSAGE_NEIGHBOUR,
	MESSAGE_ROUTE,
	MESSAGE_NEXT_HOP,
	MESSAGE_RULE,
};

struct message_link {
	struct kernel_link link; /* vrf_table: of a VRF device, its own */
	uint32_t master;	 /* ifindex of what it is enslaved to; 0: nothing */
};

struct message_route {
	struct kernel_route route; /* `hops` is this message's */
	uint32_t next_hop;	   /* the nexthop object that it names; 0: none */
	bool replaces;		   /* the one with its key; else it may stand beside that */
	bool cut;		   /* it had more hops than KERNEL_HOPS */
	struct kernel_hop hops[KERNEL_HOPS];
};

struct message_member {
	uint32_t id;
	uint16_t weight;
};

/* A nexthop object: one hop, or a group of others. */
struct message_next_hop {
	uint32_t id;
	enum kernel_route_kind kind; /* KERNEL_UNICAST, KERNEL_BLACKHOLE or KERNEL_ONLY */
	struct kernel_hop hop;
	bool cut; /* it had more members than KERNEL_HOPS */
	unsigned n_members;
	struct message_member members[KERNEL_HOPS];
};

/* A policy rule. */
struct message_rule {
	uint8_t version;
	uint8_t action;
	bool usual; /* one of those that every kernel has: local, main, default, l3mdev */
	uint32_t priority, table;
	uint32_t sum; /* over all that it says: differs for different rules */
};

struct message {
	enum message_kind kind;
	bool gone;
	union {
		struct message_link link;
		struct kernel_address address;
		struct kernel_neighbour neighbour;
		struct message_route route;
		struct message_next_hop next_hop;
		struct message_rule rule;
	};
};

/* Whether a message with all its bytes is at `header`, of which `left` bytes are there. (mnl_nlmsg_ok() takes lengths of 2 GB and more.) */
static inline bool message_fits(const struct nlmsghdr *header, int left)
{
	return left >= (int)sizeof(*header) && header->nlmsg_len >= sizeof(*header) &&
	       header->nlmsg_len <= (unsigned)left;
}

/*
 * Reads the message at `header`, which is aligned as netlink's are and has all its `nlmsg_len` bytes. Returns 1; 0: it tells
 * nothing that is followed (other kinds and families); -EBADMSG: it is malformed.
 */
int message_read(struct message *message, const struct nlmsghdr *header);
