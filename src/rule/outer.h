/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Outer headers of encapsulations, as `set` lines say them: as items, and as bytes. Private to rule/. */

#include "rule/parser.h"

/* Can the command, a `set` line that is right so far, be used by rules? 0, or what is wrong. */
int rule_outer_check(struct rule_parser *parser);

/*
 * The items of a `set` line with addresses and numbers, as the line of set raw_encap that says the same.
 * False where it does not fit.
 */
bool rule_outer_text(const struct rule_command *command, char *text, size_t size);

/*
 * The bytes of a pattern's headers. What is zero gets its usual value: the protocol of the next header, IP
 * versions, time to live 64, flags that say that there is a VNI. Returns how many bytes, or -ENOTSUP with the
 * position of an item that has no header, or -E2BIG.
 */
int rule_outer_bytes(const struct rte_flow_item *items, uint8_t *bytes, size_t size, unsigned *at);
#define RULE_OUTER_MAX 512
