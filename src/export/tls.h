/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * TLS over a connected socket that never waits, by OpenSSL: at least TLS 1.2, and the collector has to show a certificate
 * for the name that the target gives (RFC 7011 section 11.3). Used by one thread.
 */

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "export/target.h"

struct tls;

/* What all connections to a collector share. Returns 0 or a negative errno with a line. */
int tls_create(struct tls **tls, const struct export_target *target, struct error *error);
/* Accepts NULL. */
void tls_destroy(struct tls *tls);

/* A new connection over `fd`; the one before is forgotten. 0 or -ENOMEM. */
int tls_begin(struct tls *tls, int fd);

/* Goes on with the handshake: 0 when it is done, -EAGAIN, or -EPROTO: `why` says what went wrong. */
int tls_shake(struct tls *tls, char *why, size_t size);

/* Returns how many bytes were taken, -EAGAIN, or a negative errno. */
ssize_t tls_put(struct tls *tls, const void *bytes, size_t length);

/* Says goodbye, if that goes without waiting. */
void tls_end(struct tls *tls);
