/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The NIC's RSS hash and which queue it means. Functions: Toeplitz; simple XOR; symmetric Toeplitz in
 * the two ways of rte_flow.h (both addresses and both ports replaced by their XOR; sorted before).
 * Symmetric Toeplitz with an ordinary function comes from a key that repeats 16 bits.
 *
 * What is hashed, by the types (RTE_ETH_RSS_*) that are asked for: of TCP, UDP and SCTP addresses and
 * ports, when their own type is; else of any IP packet the addresses, when IPV4, or of what is neither
 * of the three NONFRAG_IPV4_OTHER, or of fragments FRAG_IPV4, is; IPv6 alike. A fragment, the first too,
 * has no ports. L3_SRC_ONLY, L3_DST_ONLY, L4_SRC_ONLY, L4_DST_ONLY leave the other field of that layer
 * out. Of a tunnel the outer headers count.
 */

#include "drivers/flowsim/match/actions.h"
#include "drivers/flowsim/match/view.h"

/* Addresses and ports. */
#define SIM_RSS_INPUT 36

/* Toeplitz of each half byte of an input by itself: the sum (XOR) of those is the hash of all. */
struct sim_rss_table {
	uint32_t part[2 * SIM_RSS_INPUT][16];
};

/* Types and functions (bits 1 << RTE_ETH_HASH_FUNCTION_*) that the NIC has. */
#define SIM_RSS_FIELDS                                                                      \
	(RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_FRAG_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_TCP |          \
		RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV4_SCTP |              \
		RTE_ETH_RSS_NONFRAG_IPV4_OTHER | RTE_ETH_RSS_IPV6 | RTE_ETH_RSS_FRAG_IPV6 | \
		RTE_ETH_RSS_NONFRAG_IPV6_TCP | RTE_ETH_RSS_NONFRAG_IPV6_UDP |               \
		RTE_ETH_RSS_NONFRAG_IPV6_SCTP | RTE_ETH_RSS_NONFRAG_IPV6_OTHER)
#define SIM_RSS_TYPES                                                         \
	(SIM_RSS_FIELDS | RTE_ETH_RSS_L3_SRC_ONLY | RTE_ETH_RSS_L3_DST_ONLY | \
		RTE_ETH_RSS_L4_SRC_ONLY | RTE_ETH_RSS_L4_DST_ONLY)
extern const uint32_t sim_rss_functions;

/* The key of a port that was given none: that of Microsoft's examples, and what it lacks in length. */
#define SIM_RSS_DEFAULT_KEY 52
extern const uint8_t sim_rss_default_key[SIM_RSS_DEFAULT_KEY];

/* Bytes that a key lacks are 0. */
void sim_rss_table_fill(struct sim_rss_table *table, const uint8_t *key, unsigned key_length);

/* 0 when no field of the packet is in `types` (RTE_ETH_RSS_*): such packets go to queue 0 by hash 0. */
uint32_t sim_rss_hash(const struct sim_view *view, enum rte_eth_hash_function function,
	uint64_t types, const uint8_t *key, unsigned key_length);

struct sim_port;

/* The port's own hash of a packet, and the queue that its RETA has for it. Any thread. */
uint32_t sim_rss_of(const struct sim_port *port, const struct sim_view *view);
uint16_t sim_rss_queue(const struct sim_port *port, uint32_t hash);

/* The queue that a rule's RSS action has for a packet whose own hash is `hash`. */
uint16_t sim_rss_rule_queue(const struct sim_rss *rss, const struct sim_view *view, uint32_t hash);
