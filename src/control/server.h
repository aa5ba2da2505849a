/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The control socket: how a running engine is asked (docs/control.md has the protocol).
 *
 * It never waits for a client. A client has one buffer for the request that it is sending and one for
 * the lines that it has not taken yet; an answer makes its next lines when there is room for them, a
 * page of flows at most before it is another client's turn.
 *
 * Life-cycle: control_create() binds the socket and listens; control_step() is the body of the loop
 * of whoever owns it, main; control_destroy() ends the answers under way and removes the socket. Best
 * between plane_stop() and the closing of the ports: so followers see how the last flows end. Plane and
 * ports must still be there.
 *
 * Everything here belongs to one thread, the plane's control thread.
 */

#include <stdint.h>

#include "base/error.h"
#include "plane/plane.h"

struct control;

/* A line for a person, without its newline. */
typedef void (*control_line_fn)(void *context, const char *line);

struct control_config {
	const char *socket_path; /* NULL: $XDG_RUNTIME_DIR/millrace.sock, else /run/millrace.sock */
	struct plane *plane;	 /* or NULL, and then control_serve() before the first step */
	const char *config_json; /* the configuration in effect as one line of JSON; copied */
	/*
	 * What the operator should know whether or not somebody follows: a dead engine's socket was
	 * taken over; a port is not spread as asked, or brings unfinished checksums (once for each
	 * port). May be NULL.
	 */
	control_line_fn note;
	void *note_context;
	/* NULL: the system's monotonic clock, in microseconds. For tests. */
	uint64_t (*clock_us)(void);
};

/*
 * The socket is there with mode 0600 and answers from the next step on. Sets the process's umask for
 * a moment: no other thread may be making files. Returns 0 or a negative errno with a line
 * (-EADDRINUSE: another millrace answers at this path).
 */
int control_create(
	struct control **control, const struct control_config *config, struct error *error);

/*
 * The plane that is asked. So the socket can be claimed before anything else is touched, and a second
 * engine finds out that there is one before it takes the ports.
 */
int control_serve(struct control *control, struct plane *plane, struct error *error);

/* Whose exports are shown; it outlives the steps. */
struct exporter;
void control_show_exports(struct control *control, struct exporter *exporter);

/* Routers' host threads, by domain, NULL where there is none; the list outlives the steps. */
struct host;
void control_show_hosts(struct control *control, struct host *const *hosts);

/* Where it listens. */
const char *control_path(const struct control *control);

/*
 * Waits until there is something to do, but no longer than `timeout_ms` (-1: for ever), does a bounded
 * piece of it, and returns. Returns 0, or a negative errno when it cannot go on.
 */
int control_step(struct control *control, int timeout_ms);

/*
 * control_step() also waits for this descriptor, and calls `ready` whenever there is something to read. At most
 * CONTROL_MAX_WATCHES; the descriptor stays the caller's, and open for as long as there are steps. Returns 0, -ENOSPC,
 * or what the kernel says.
 */
#define CONTROL_MAX_WATCHES 8
typedef void (*control_ready_fn)(void *context, int fd);
int control_watch(struct control *control, int fd, control_ready_fn ready, void *context);

/* What became of records, for the metrics. */
struct control_records {
	uint64_t made;	      /* reports of flows */
	uint64_t written;     /* of these, in the output */
	uint64_t overflowed;  /* and those that are nowhere: there was no room to wait, */
	uint64_t lost_write;  /* writing failed, */
	uint64_t lost_reader; /* or there was no reader, or a slow one */
};
typedef void (*control_records_fn)(void *context, struct control_records *records);

struct control_http_config {
	const char *listen; /* http_address_parse() reads it */
	/* fills what is asked for while the engine runs; NULL: there are no records */
	control_records_fn records;
	void *records_context;
};

/*
 * Answers by HTTP too, from the next step on: metrics, and a page. Once, before the first step. 0 or a negative errno with
 * a line.
 */
int control_http(
	struct control *control, const struct control_http_config *config, struct error *error);

/* Events that main sees first. Followers get them; without followers nothing happens. */
void control_event_link(struct control *control, const struct port *port);
/* And about a port whose MTU, or that of its other end, is another one than before. */
void control_event_mtu(struct control *control, const struct port *port);
void control_event_renamed(struct control *control, const struct port *port);
/* So many more records could not be written. */
void control_event_records_lost(struct control *control, uint64_t records);

/* Accepts NULL. */
void control_destroy(struct control *control);
