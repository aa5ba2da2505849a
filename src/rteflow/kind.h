/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "packet/key.h"

/* Kinds of flows, which need patterns of their own. */
enum provider_kind {
	PROVIDER_IPV4_TCP,
	PROVIDER_IPV4_UDP,
	PROVIDER_IPV4_SCTP,
	PROVIDER_IPV4_ICMP,
	PROVIDER_IPV6_TCP,
	PROVIDER_IPV6_UDP,
	PROVIDER_IPV6_SCTP,
	PROVIDER_IPV6_ICMP,
	PROVIDER_N_KINDS, /* others (ESP, GRE, ...) stay in software */
};

/* The kind of a flow; PROVIDER_N_KINDS: none. */
enum provider_kind provider_kind(const struct flow_key *key);
uint8_t provider_kind_protocol(enum provider_kind kind);
/* "ipv4/tcp", ... */
const char *provider_kind_name(enum provider_kind kind);
