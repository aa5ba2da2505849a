/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Clients of the control socket: one connection, its requests and answers. */

#include "control/control.h"

/* A new client greets. */
void client_init(struct client *client, int fd, const struct control *control);
/*
 * One turn: sends, answers or reads, as `ready` (of epoll) allows. False when the client is done with,
 * or gone; then client_fini() follows.
 */
bool client_turn(struct client *client, struct control *control, uint32_t ready);
/* The events of epoll to wait for until the next turn. */
uint32_t client_interest(const struct client *client);
void client_fini(struct client *client);
/* The first line that it ever gets. */
#define CLIENT_GREETING_MAX 128
size_t client_greeting(char line[CLIENT_GREETING_MAX], const struct plane *plane);
