/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The state of control: its clients, and all that it keeps between requests. The users of control take control/server.h. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/answer.h"
#include "control/configurer.h"
#include "control/output.h"
#include "control/place.h"
#include "control/server.h"
#include "offload/change.h"

#define CONTROL_MAX_CLIENTS 64
/* The longest request, without its newline. */
#define CONTROL_LINE_MAX 4096
/* Nothing asked, or nothing taken, for so long: such a client may have to make room. */
#define CONTROL_IDLE_US UINT64_C(60000000)
/* Lists by rate that are being measured, one at a time, or wait for that. */
#define CONTROL_MAX_RATES 4
/* First tellings of changes at a time: each needs room for all of them. */
#define CONTROL_MAX_TELLINGS 4
/* How often events are fetched while somebody follows, and while nobody does. */
#define CONTROL_EVENTS_US UINT64_C(10000)
#define CONTROL_QUIET_US UINT64_C(250000)

/* Changes of ports that are kept for whoever asks. */
#define CONTROL_PORT_CHANGES 256

struct control_changes {
	uint64_t n; /* ever kept */
	struct offload_change change[CONTROL_PORT_CHANGES];
};

/* What was told of a port's breaker: the state, and how often it was open. */
struct control_health {
	uint8_t state; /* enum health_state */
	uint32_t opened;
};

/* Inserts and removes that a port's installer had done by some time of the run's clock. */
struct control_rate {
	uint64_t us, done[2];
};

struct control_rates {
	struct control_rate last, before;
};

struct client {
	int fd;		   /* -1: this place is free */
	uint32_t number;   /* tells apart those who sit in this place one after another */
	uint32_t interest; /* what epoll waits for */
	bool eof;	   /* it will send nothing more */
	bool closing;	   /* to be closed when all is sent */
	bool answering;
	bool waiting; /* the answer has nothing to do before its time */
	uint64_t
		turned_us; /* its last turn: when it last asked something, or could take something */
	size_t n_input;
	char input[CONTROL_LINE_MAX + 1];
	struct control_staged staged;
	struct answer answer;
	struct output output;
};

/* Goes back to what was before: 0 or a negative errno with a line. */
typedef int (*policy_back_fn)(struct control *control, struct error *error);

/* The last list of rules that replaced another, and how far that has come (rule_load.c). */
struct control_policy {
	char file[256];	    /* "": none was loaded */
	uint64_t loaded_us; /* clock of the run */
	uint64_t
		generation; /* all flows are to be decided at it; 0: they were, and NICs have let go */
	uint64_t since_us;	    /* of the wait */
	uint64_t flows_us;	    /* how long live flows took; 0: they are not all decided yet */
	uint64_t took_us;	    /* until it was done */
	uint64_t look_us;	    /* when to look again */
	uint64_t confirm_us;	    /* it is gone back then; UINT64_MAX: it is not */
	policy_back_fn back;	    /* which does that */
	bool of_config;		    /* from the whole configuration that was applied */
	struct control_staged save; /* text of a list that is to be saved; NULL: none is */
	unsigned workers_told;	    /* that had decided all their flows */
	uint32_t applied;	    /* the last epoch that was done in full */
	uint32_t not_in_nic;	    /* the last one that some NIC did not let go in time */
};

/* The configuration in effect (config_apply.c). */
struct control_configured {
	uint32_t number;     /* that of the start is 1 */
	uint64_t applied_us; /* clock of the run; 0: it is that of the start */
	char name[256]; /* where it came from; "": it is that of the start, or was gone back to */
	bool saved;	/* as it is in the engine's own file, as far as is known */
	bool saved_before; /* the one before was, and is there still */
	bool save;	   /* it is to be saved once it is confirmed */
};

struct watch {
	int fd; /* -1: free */
	control_ready_fn ready;
	void *context;
};

struct control {
	/* set once */
	const struct answer_verb *const *verbs;
	unsigned n_verbs;
	struct plane *plane;
	struct exporter *exporter; /* NULL: there are no exports */
	struct host *const *hosts; /* by domain; NULL: there are none */
	char *config_json;
	struct control_configurer configurer; /* all NULL: it cannot be changed */
	struct control_configured configured;
	control_line_fn note;
	void *note_context;
	uint64_t (*clock_us)(void);
	struct control_place place;
	int epoll;
	/* an open file of no use, given up to be able to refuse a client when there are too many files */
	int reserve;
	uint64_t now_us;
	uint64_t events_us;	  /* when to look for events */
	uint64_t blocks_us;	  /* and for blocks that are due */
	uint64_t rules_us;	  /* and for what was put off of rules in NICs */
	struct drop_wanted drops; /* that lcores were asked for; without reasons: none */
	bool following;		  /* lcores were asked for the events of flows */
	unsigned n_rates;
	/* taken at the start, for whoever asks: of lists by rate, and of changes */
	struct flow_rates *flow_rates;
	const void *measured; /* the list that has them now; NULL: none */
	struct events_room *events_room;
	/* by kind and port: said to whoever runs the engine */
	bool noted[PATH_EVENT_N_KINDS][PLANE_MAX_PORTS];
	struct control_health health[PLANE_MAX_PORTS];
	struct control_rates rates[PLANE_MAX_PORTS];
	struct control_changes port_changes;
	struct control_policy policy;
	struct watch watches[CONTROL_MAX_WATCHES];
	struct http *http; /* NULL: nobody asks by HTTP */
	struct client clients[CONTROL_MAX_CLIENTS];
	struct plane_snapshot snapshot; /* for whoever needs one just now */
};

/* Takes a picture into control->snapshot: 0, or a negative errno with a line for `ask`. */
int control_snapshot(struct control *control, const char *ask, struct error *error);
/* The same for an answer that tells its counters: the line that ends it has the time of the snapshot. */
int show_snapshot(struct answer *answer, struct error *error);
/* What a plane that does not answer makes of a request. Returns `code`. */
int control_silent(struct error *error, int code, const char *ask);
