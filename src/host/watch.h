/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Watches the kernel by one netlink socket, of the network namespace that the calling thread is in, and feeds the mirror:
 * messages as they come, and dumps of everything, part by part. Dumps and messages come by the same socket, so that they are in order.
 *
 * A dump begins soon after the mirror asked for one, after an overrun (the kernel had no room for messages and threw them
 * away), and each `scan_s` seconds in any case. Between two dumps there are at least four times as long as the last one had of a
 * processor: however often routes vanish, dumps cost a fifth of one at most. A dump during which the kernel lost messages removes nothing,
 * but for the third one in a row.
 *
 * It never waits: the owner calls watch_read() when the socket is readable, and watch_tend() when the time of
 * watch_wait_ms() is over. One thread's.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "host/mirror.h"

#define WATCH_BUFFER_BYTES (128 << 20)
/* With less the kernel could not go on with a dump. */
#define WATCH_MIN_BUFFER_BYTES (256 << 10)
#define WATCH_SCAN_S 60

struct watch_config {
	struct mirror *mirror; /* outlives it */
	uint32_t
		buffer_bytes; /* of the socket; 0: WATCH_BUFFER_BYTES; less than the least becomes that */
	uint32_t scan_s; /* 0: WATCH_SCAN_S */
};

struct watch_counts {
	uint64_t messages; /* that came by themselves */
	uint64_t dumps;	   /* that are complete */
	uint64_t failed;   /* that were given up, to begin again */
	uint64_t overruns;
	uint64_t dump_us;      /* how long the last one took */
	uint64_t dump_cpu_us;  /* and of a processor, with what else the thread did */
	uint32_t buffer_bytes; /* that the socket has */
};

/* A neighbour that is in use, or wanted. */
struct watch_neighbour {
	uint32_t ifindex;
	uint8_t version;
	uint8_t address[16];
};

struct watch;

/* 0, or a negative errno with a line. Asks for the first dump. */
int watch_open(struct watch **watch, const struct watch_config *config, struct error *error);
/* Accepts NULL. */
void watch_close(struct watch *watch);

int watch_fd(const struct watch *watch);
/* Reads at most some hundred messages, or a piece of a dump. */
void watch_read(struct watch *watch, uint64_t now_us);
/* Goes on with what does not wait for the socket. */
void watch_tend(struct watch *watch, uint64_t now_us);
/* After how many milliseconds watch_tend() has something to do. */
int watch_wait_ms(const struct watch *watch, uint64_t now_us);
/* Has everything dumped soon. */
void watch_want_dump(struct watch *watch, uint64_t now_us);

/*
 * Tells the kernel that these neighbours are in use: it finds out their MACs, and confirms them when they are stale (NTF_USE).
 * Returns how many it was told.
 */
unsigned watch_use(struct watch *watch, const struct watch_neighbour *neighbours, unsigned n);

void watch_counts(const struct watch *watch, struct watch_counts *counts);
