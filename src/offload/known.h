/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What is known of a network card by an earlier `millrace probe`: how many rules there is room for, how fast they are
 * made, how wide marks are. It is kept in files, one for each driver, firmware and version of DPDK, and for the
 * arguments that its device was given: they choose what a vdev is, and how some PCI cards behave.
 *
 * The files are reports as `millrace probe --json` prints them. Any thread; nothing is kept in memory.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "rteflow/provider.h"

struct known_key {
	char driver[64];
	char firmware[128]; /* "": the driver does not tell */
	char dpdk[64];
	/* of the device, behind its name; where these are longer, a hash of all of it */
	char arguments[256];
};

struct known {
	char time[32]; /* of the probe: 2026-11-23T04:20:00Z */
	char back_end[24];
	bool sized; /* `rules` is known */
	bool full;  /* it is all that there is room for; else at least so many */
	uint32_t rules;
	/* one rule at a time: time until it is there, or gone; 0: not known */
	uint64_t insert_p50_ns, insert_p99_ns, delete_p50_ns, delete_p99_ns;
	/* as many at once as it takes; 0: not known */
	uint64_t inserts_per_s, deletes_per_s;
	unsigned mark_bits; /* that packets come with, else that are accepted; 0: not known */
	bool counts;	    /* rules that mark have counters that move with their packets */
	/* rules for flows of these kinds were seen to mark their packets */
	bool works[PROVIDER_N_KINDS];
};

/* Of an ethdev. The firmware and the version of DPDK are asked for. 0 or a negative errno. */
int known_key(struct known_key *key, uint16_t port_id, const char *arguments);
/* Of a report that has them. 0 or -EINVAL. */
int known_key_of(struct known_key *key, const json_t *report);

/*
 * The directory: millrace in $XDG_STATE_HOME; else, of root, /var/lib/millrace, and of others
 * ~/.local/state/millrace. 0, or -ENOENT: there is no home.
 */
int known_directory(char *path, size_t size);
/* The file of a card, in a directory. 0 or -ENAMETOOLONG. */
int known_path(char *path, size_t size, const char *directory, const struct known_key *key);

/* 0; -ENOENT: nothing is known of it; or a negative errno with a line. */
int known_load(struct known *known, const char *directory, const struct known_key *key,
	struct error *error);
/* Replaces what was known of that card, at once or not at all; makes the directory. 0 or a negative errno with a line. */
int known_store(const json_t *report, const char *directory, struct error *error);

/* Pure: what a report says. 0 or -EINVAL. */
int known_read(struct known *known, const json_t *report);
