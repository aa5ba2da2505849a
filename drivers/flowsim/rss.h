/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The NIC's RSS hash and which queue it means. Functions: Toeplitz; simple XOR; symmetric Toeplitz in
 * the two ways of rte_flow.h (both addresses and both ports replaced by their XOR; sorted before).
 * Symmetric Toeplitz with an ordinary function comes from a key that repeats 16 bits.
 */

#include "drivers/flowsim/actions.h"
#include "drivers/flowsim/view.h"

/* 0 when no field of the packet is in `types` (RTE_ETH_RSS_*): such packets go to queue 0 by hash 0. */
uint32_t sim_rss_hash(const struct sim_view *view, enum rte_eth_hash_function function,
	uint64_t types, const uint8_t *key, unsigned key_length);

struct sim_port;

/* The port's own hash of a packet, and the queue that its RETA has for it. */
uint32_t sim_rss_of(const struct sim_port *port, const struct sim_view *view);
uint16_t sim_rss_queue(const struct sim_port *port, uint32_t hash);

/* The queue that a rule's RSS action has for a packet whose own hash is `hash`. */
uint16_t sim_rss_rule_queue(const struct sim_rss *rss, const struct sim_view *view, uint32_t hash);
