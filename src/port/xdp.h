/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * af_xdp: whether it will work, and what its driver leaves behind.
 *
 * The driver finds out that it cannot only when its queues are set up, and then it cannot be closed
 * safely. So the kernel is asked first, in the steps that the driver will take: program, attachment,
 * memory. A rehearsal leaves nothing behind.
 */

#include <stddef.h>
#include <stdint.h>

/* The largest MTU: a frame lies in one page, behind the mbuf's header, private bytes and head rooms. */
unsigned xdp_max_mtu(void);

/*
 * 0, or a negative errno and why not, in a few words. -EADDRINUSE: somebody alive receives from it by
 * AF_XDP, and no packet is left for anybody else. -EBUSY: it has another XDP program.
 */
int xdp_rehearse(unsigned interface_index, unsigned n_queues, char *why, size_t size);

/* The XDP program that is attached to an interface; 0: none, or it cannot be told. */
uint32_t xdp_program_id(unsigned interface_index);

/* Libraries below the driver print to standard error: not any more. Their last line is kept. */
void xdp_quiet(void);
/* What they said last, or "". */
const char *xdp_said(void);

/*
 * Descriptors that the driver and its libraries open and do not close again: with DPDK 22.11 the first
 * socket of each queue's memory, which keeps the queue, and what it looks at while it closes. Found
 * between begin and end, when a port starts and again when it closes.
 */
#define XDP_MAX_LEFT 128
#define XDP_MAX_DESCRIPTORS 4096

struct xdp_descriptor {
	int fd;
	char what[40]; /* as /proc/self/fd has it */
};

struct xdp_left {
	uint64_t before[XDP_MAX_DESCRIPTORS / 64];
	unsigned n;
	struct xdp_descriptor left[XDP_MAX_LEFT];
};

void xdp_left_begin(struct xdp_left *left);
void xdp_left_end(struct xdp_left *left);
/* After the driver has closed: those that are still there. */
void xdp_left_close(struct xdp_left *left);
