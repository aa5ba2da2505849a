/* SPDX-License-Identifier: BSD-3-Clause */
#include "action/action.h"

#include <stddef.h>

const char *action_kind_name(enum action_kind kind)
{
	static const char *const names[ACTION_N_KINDS] = {
		[ACTION_FORWARD] = "forward",
		[ACTION_OUTPUT] = "output",
		[ACTION_NEXT_HOP] = "next-hop",
		[ACTION_DROP] = "drop",
		[ACTION_REJECT] = "reject",
		[ACTION_PUNT] = "punt",
		[ACTION_DISCARD] = "discard",
		[ACTION_SET_MAC_SRC] = "set-mac-src",
		[ACTION_SET_MAC_DST] = "set-mac-dst",
		[ACTION_DECREMENT_TTL] = "decrement-ttl",
		[ACTION_SET_TTL] = "set-ttl",
		[ACTION_VLAN_PUSH] = "vlan-push",
		[ACTION_VLAN_POP] = "vlan-pop",
		[ACTION_VLAN_SET] = "vlan-set",
		[ACTION_SET_IPV4_SRC] = "set-ipv4-src",
		[ACTION_SET_IPV4_DST] = "set-ipv4-dst",
		[ACTION_SET_IPV6_SRC] = "set-ipv6-src",
		[ACTION_SET_IPV6_DST] = "set-ipv6-dst",
		[ACTION_SET_PORT_SRC] = "set-port-src",
		[ACTION_SET_PORT_DST] = "set-port-dst",
		[ACTION_POLICE] = "police",
		[ACTION_METER] = "meter",
		[ACTION_MIRROR] = "mirror",
		[ACTION_DECAP] = "decap",
		[ACTION_ENCAP] = "encap",
	};

	if ((size_t)kind >= ACTION_N_KINDS)
		return "?";
	return names[kind];
}
