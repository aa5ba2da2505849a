/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Where the HTTP server listens, and what it believes of a request's headers. Functions without state; the text of an
 * address is understood without asking anybody for names.
 */

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/error.h"

/* Room for an address as a person reads it: "http://[2001:db8::1]:9180", or the path of a UNIX socket. */
#define HTTP_ADDRESS_TEXT 160

struct http_address {
	/* the path of a UNIX socket; "" for an address of TCP */
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} tcp;
	socklen_t length;
};

/*
 * Reads "ADDRESS:PORT", "[ADDRESS]:PORT", "PORT" (of 127.0.0.1), or the path of a UNIX socket, which has a slash. With
 * port 0 the kernel chooses. 0, or -EINVAL with what is needed instead.
 */
int http_address_parse(struct http_address *address, const char *text, struct error *error);

/* Is it of this machine alone? A UNIX socket is. */
bool http_address_is_local(const struct http_address *address);

/* A listening socket of TCP, which does not block; `address` has its port then. Or a negative errno with a line. */
int http_address_listen(struct http_address *address, struct error *error);

/* "http://127.0.0.1:9180", or the path. Returns `text`. */
const char *http_address_text(const struct http_address *address, char text[HTTP_ADDRESS_TEXT]);

/*
 * Is the header Host one that a page of another site cannot have brought about? Such a page reaches this server by a name
 * of its own that leads here (DNS rebinding), and then Host has that name: only "localhost" and addresses are taken,
 * with a port or without.
 */
bool http_host_is_allowed(const char *host);

/* Does the header Accept (or NULL) ask for OpenMetrics 1.0.0 rather than for the older text format? */
bool http_wants_openmetrics(const char *accept);
