/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A FLOW on the command line: ADDR:PORT ADDR:PORT PROTO, either end first. IPv6 with a port is
 * [2001:db8::1]:443; protocols without ports leave it out, then the brackets are optional too.
 */

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/words.h"

/* One end. */
struct cli_endpoint {
	char address[INET6_ADDRSTRLEN]; /* as inet_ntop() writes it */
	unsigned version;		/* 4 or 6 */
	bool has_port;
	uint16_t port;
};

struct cli_flow {
	struct cli_endpoint end[2];
	char proto[CLI_PROTO_ASK_MAX]; /* as the engine takes it */
};

#define CLI_FLOW_WORDS 3

/* The CLI_FLOW_WORDS words of a FLOW. 0, or -EINVAL with a line that names the word. */
int cli_flow_parse(struct cli_flow *flow, const char *const *words, struct error *error);

/* A protocol by name or number. 0, or -EINVAL with a line that names the word. */
int cli_proto_read(struct cli_proto *proto, const char *word, struct error *error);

/* An address or prefix (ADDR/LENGTH). */
bool cli_address_valid(const char *text);
