/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * One block: what it fits, and its text.
 *
 * A block fits one flow, or all flows with an end in a prefix. An address alone is a prefix of full
 * length. With a port, the end whose address lies in the prefix must also have this port; with a
 * protocol, the flow must have it. Ports are 1 to 65,535 here, because flows of protocols without
 * ports have port 0.
 *
 * The text of a block is one line:
 *
 *     PREFIX [port N] [proto P] [for SECONDS] [reason TEXT]
 *     flow ADDR[:PORT] ADDR[:PORT] PROTO [wire N] [zone N] [for SECONDS] [reason TEXT]
 *
 * in any order after the prefix or the protocol, but for the reason, which takes the rest of the line.
 * IPv6 addresses with a port stand in brackets. P is tcp, udp, sctp, icmp, icmp6 or a number. A prefix
 * that has bits set beyond its length is refused, because one of the two numbers is then wrong.
 *
 * These functions keep no state; any thread may call them. Those that take a `struct error` return 0
 * or -EINVAL with a line of printable text.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "packet/key.h"
#include "rule/reasons.h"

/* Bytes of a reason, its ending zero included. */
#define BLOCK_REASON_MAX REASON_MAX
/* Bytes of the longest line that block_format() writes, its ending zero included. */
#define BLOCK_LINE_MAX 320
/* The longest expiry, 31 years. */
#define BLOCK_FOR_MAX_S 1000000000u
/* No port, no protocol: the block fits all of them. */
#define BLOCK_ANY (-1)

struct block_prefix {
	uint8_t addr[16]; /* as in keys: IPv4 in the first 4 bytes; zero beyond `length` */
	uint8_t version;  /* 4 or 6 */
	uint8_t length;	  /* in bits, up to 32 or 128 */
	int16_t proto;	  /* or BLOCK_ANY */
	int32_t port;	  /* in host order, or BLOCK_ANY */
};

/* The flows that a block fits. */
struct block_match {
	bool is_flow;
	union {
		struct flow_key flow;
		struct block_prefix prefix;
	};
};

struct block {
	struct block_match match;
	uint32_t for_s;	    /* seconds until it expires; 0: never */
	const char *reason; /* or NULL; the caller's memory */
};

/* 0, or -EINVAL for a match that no text could say. */
int block_match_check(const struct block_match *match);
/* 0, or -EINVAL for a text that is too long or has control characters. NULL is no reason. */
int block_reason_check(const char *reason);

/* Does the block fit the flow of this key? */
bool block_match_fits(const struct block_match *match, const struct flow_key *key);

/* Reads ADDRESS or PREFIX; the port and the protocol come as numbers, or as BLOCK_ANY. */
int block_parse_prefix(
	struct block_match *match, const char *text, int port, int proto, struct error *error);

/* Reads the name or the number of a protocol; -1 when it is neither. */
int block_parse_proto(const char *text);

/*
 * Reads a line, which it cuts up in place: the reason lies in it. `column` becomes the place of the
 * word that is wrong, counted in bytes from 1.
 */
int block_parse_line(struct block *block, char *line, unsigned *column, struct error *error);

/* Writes the line that block_parse_line() reads as the same block. Returns its length. */
size_t block_format(const struct block *block, char buffer[BLOCK_LINE_MAX]);
