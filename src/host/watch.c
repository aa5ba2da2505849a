/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/watch.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <libmnl/libmnl.h>
#include <rte_common.h>

#include "host/message.h"

/* The kernel puts a dump into pieces of at most 32 kB. */
#define PIECE_BYTES (64 << 10)
#define READS 64
#define SWEEP_ROUTES 20000
#define USES 64

#define SOON_US 30000
/* Between two dumps there are so many times as long as the last one had of a processor. */
#define PAUSES 4
#define GIVE_UP_US 10000000
/* A part of a dump that changed meanwhile is asked for again, so often; then it counts as it came. */
#define PART_ATTEMPTS 5
/* After so many dumps in a row with an overrun their word counts. */
#define OVERRUNS 3
/* Requests that are no dumps: their answers are only looked at for errors. */
#define SEQUENCE_USE 0x80000000u

static const struct {
	uint16_t type, family;
	size_t head;
} parts[] = {
	{RTM_GETLINK, AF_UNSPEC, sizeof(struct ifinfomsg)},
	{RTM_GETADDR, AF_UNSPEC, sizeof(struct ifaddrmsg)},
	{RTM_GETNEXTHOP, AF_UNSPEC, sizeof(struct nhmsg)},
	{RTM_GETROUTE, AF_INET, sizeof(struct rtmsg)},
	{RTM_GETROUTE, AF_INET6, sizeof(struct rtmsg)},
	{RTM_GETNEIGH, AF_UNSPEC, sizeof(struct ndmsg)},
	{RTM_GETRULE, AF_INET, sizeof(struct fib_rule_hdr)},
	{RTM_GETRULE, AF_INET6, sizeof(struct fib_rule_hdr)},
};

enum state {
	RESTS,
	DUMPS,
	SWEEPS,
};

struct watch {
	struct mnl_socket *socket;
	struct mirror *mirror;
	uint64_t scan_us;
	enum state state;
	unsigned part, attempts;
	uint32_t sequence; /* of the request for this part */
	bool changed;	   /* the part changed while it was told */
	bool overrun;	   /* messages were lost since the dump began */
	bool again;	   /* another one is wanted after this */
	unsigned overruns; /* dumps in a row that had one */
	uint64_t begun_us, progress_us, ended_us, due_us;
	uint64_t begun_cpu_us;
	struct watch_counts counts;
	char piece[PIECE_BYTES] __attribute__((aligned(NLMSG_ALIGNTO)));
};

/* ---------------------------------------------------- the socket */

static int join(struct mnl_socket *socket)
{
	static const int groups[] = {RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR,
		RTNLGRP_NEIGH, RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE, RTNLGRP_IPV4_RULE,
		RTNLGRP_IPV6_RULE, RTNLGRP_NEXTHOP};

	for (unsigned i = 0; i < RTE_DIM(groups); i++) {
		int group = groups[i];

		/* a kernel without nexthop objects has no such group */
		if (mnl_socket_setsockopt(socket, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) <
				0 &&
			group != RTNLGRP_NEXTHOP)
			return -errno;
	}
	return 0;
}

/* Without the right to force it the kernel gives as much as net.core.rmem_max. */
static uint32_t set_buffer(int fd, uint32_t bytes)
{
	int half = (int)(RTE_MAX(bytes, (uint32_t)WATCH_MIN_BUFFER_BYTES) / 2), given = 0;
	socklen_t length = sizeof(given);

	/* the kernel doubles what it is asked for */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &half, sizeof(half)) < 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &half, sizeof(half));
	if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &given, &length) < 0)
		return 0;
	return (uint32_t)given;
}

static void want(struct watch *watch, uint64_t due_us)
{
	const uint64_t pause_us = watch->ended_us + PAUSES * watch->counts.dump_cpu_us;

	if (watch->state != RESTS)
		watch->again = true;
	due_us = RTE_MAX(due_us, pause_us);
	watch->due_us = RTE_MIN(watch->due_us, due_us);
}

void watch_want_dump(struct watch *watch, uint64_t now_us)
{
	want(watch, now_us + SOON_US);
}

int watch_open(struct watch **out, const struct watch_config *config, struct error *error)
{
	struct watch *watch = calloc(1, sizeof(*watch));
	int ret;

	if (watch == NULL)
		return error_set(error, -ENOMEM, "no memory to watch the kernel's routes");
	watch->mirror = config->mirror;
	watch->scan_us = (config->scan_s != 0 ? config->scan_s : WATCH_SCAN_S) * UINT64_C(1000000);
	watch->socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | SOCK_NONBLOCK);
	ret = watch->socket == NULL ? -errno : 0;
	if (ret == 0) {
		watch->counts.buffer_bytes = set_buffer(mnl_socket_get_fd(watch->socket),
			config->buffer_bytes != 0 ? config->buffer_bytes : WATCH_BUFFER_BYTES);
		if (mnl_socket_bind(watch->socket, 0, MNL_SOCKET_AUTOPID) < 0)
			ret = -errno;
	}
	if (ret == 0)
		ret = join(watch->socket);
	if (ret < 0) {
		watch_close(watch);
		return error_set(error, ret, "cannot watch the kernel's routes (netlink): %s",
			strerror(-ret));
	}
	*out = watch;
	return 0;
}

void watch_close(struct watch *watch)
{
	if (watch == NULL)
		return;
	if (watch->socket != NULL)
		mnl_socket_close(watch->socket);
	free(watch);
}

int watch_fd(const struct watch *watch)
{
	return mnl_socket_get_fd(watch->socket);
}

void watch_counts(const struct watch *watch, struct watch_counts *counts)
{
	*counts = watch->counts;
}

/* ---------------------------------------------------- dumps */

static uint64_t cpu_us(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000 + (uint64_t)used.tv_nsec / 1000;
}

/* The dump is over, however it ended. */
static void rest(struct watch *watch, uint64_t now_us, uint64_t due_us)
{
	watch->state = RESTS;
	watch->counts.dump_us = now_us - watch->begun_us;
	watch->counts.dump_cpu_us = cpu_us() - watch->begun_cpu_us;
	watch->ended_us = now_us;
	watch->due_us = due_us;
}

/* The dump did not come to its end: what it has not named stays. */
static void give_up(struct watch *watch, uint64_t now_us)
{
	watch->counts.failed++;
	watch->again = false;
	rest(watch, now_us, UINT64_MAX);
	want(watch, now_us + SOON_US);
}

static void ask_for_part(struct watch *watch, uint64_t now_us)
{
	char buffer[256] __attribute__((aligned(NLMSG_ALIGNTO)));
	struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);

	watch->sequence = (watch->sequence + 1) % SEQUENCE_USE;
	watch->sequence += watch->sequence == 0;
	watch->changed = false;
	watch->progress_us = now_us;
	request->nlmsg_type = parts[watch->part].type;
	request->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	request->nlmsg_seq = watch->sequence;
	/* each of these headers begins with its family */
	uint8_t *head = mnl_nlmsg_put_extra_header(request, parts[watch->part].head);

	*head = (uint8_t)parts[watch->part].family;
	if (parts[watch->part].type == RTM_GETLINK)
		mnl_attr_put_u32(request, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
	if (mnl_socket_sendto(watch->socket, request, request->nlmsg_len) < 0)
		give_up(watch, now_us);
}

static void begin_dump(struct watch *watch, uint64_t now_us)
{
	watch->state = DUMPS;
	watch->part = watch->attempts = 0;
	watch->overrun = watch->again = false;
	watch->begun_us = now_us;
	watch->begun_cpu_us = cpu_us();
	watch->due_us = UINT64_MAX;
	mirror_begin(watch->mirror, SOURCE_KERNEL);
	ask_for_part(watch, now_us);
}

static void end_dump(struct watch *watch, uint64_t now_us)
{
	watch->counts.dumps++;
	rest(watch, now_us, now_us + watch->scan_us);
	if (watch->again)
		want(watch, now_us + SOON_US);
}

static void end_part(struct watch *watch, uint64_t now_us)
{
	if (watch->changed && ++watch->attempts < PART_ATTEMPTS) {
		ask_for_part(watch, now_us);
		return;
	}
	watch->attempts = 0;
	if (++watch->part < RTE_DIM(parts)) {
		ask_for_part(watch, now_us);
		return;
	}
	watch->overruns = watch->overrun ? watch->overruns + 1 : 0;
	if (watch->overrun && watch->overruns < OVERRUNS) {
		give_up(watch, now_us);
		return;
	}
	watch->overruns = 0;
	watch->state = SWEEPS;
}

void watch_tend(struct watch *watch, uint64_t now_us)
{
	if (watch->state == SWEEPS && mirror_sweep(watch->mirror, SOURCE_KERNEL, SWEEP_ROUTES))
		end_dump(watch, now_us);
	if (watch->state == DUMPS && now_us - watch->progress_us >= GIVE_UP_US)
		give_up(watch, now_us);
	if (watch->state == RESTS && now_us >= watch->due_us)
		begin_dump(watch, now_us);
}

int watch_wait_ms(const struct watch *watch, uint64_t now_us)
{
	uint64_t due_us = watch->due_us;

	if (watch->state == SWEEPS)
		return 0;
	if (watch->state == DUMPS)
		due_us = watch->progress_us + GIVE_UP_US;
	if (due_us <= now_us)
		return 0;
	return (int)RTE_MIN((due_us - now_us) / 1000 + 1, UINT64_C(60000));
}

/* ---------------------------------------------------- messages */

/* The answer to a request for a part: its messages, and its end. */
static void take_answer(struct watch *watch, const struct nlmsghdr *message, uint64_t now_us)
{
	watch->progress_us = now_us;
	watch->changed |= (message->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
	if (message->nlmsg_type == NLMSG_DONE) {
		end_part(watch, now_us);
	} else if (message->nlmsg_type == NLMSG_ERROR) {
		const struct nlmsgerr *error = mnl_nlmsg_get_payload(message);
		const bool lacks = mnl_nlmsg_get_payload_len(message) >= sizeof(error->error) &&
				   error->error == -EOPNOTSUPP;

		/* a kernel without nexthop objects, or without IPv6 */
		if (lacks)
			end_part(watch, now_us);
		else
			give_up(watch, now_us);
	} else {
		(void)mirror_take(watch->mirror, SOURCE_KERNEL, message, true);
	}
}

static void take_piece(struct watch *watch, size_t size, uint64_t now_us)
{
	const struct nlmsghdr *message = (const void *)watch->piece;
	const unsigned id = mnl_socket_get_portid(watch->socket);
	int left = (int)size;

	for (; message_fits(message, left); message = mnl_nlmsg_next(message, &left)) {
		if (watch->state == DUMPS && message->nlmsg_seq == watch->sequence &&
			message->nlmsg_pid == id) {
			take_answer(watch, message, now_us);
			continue;
		}
		/* what is left of a dump that was given up is no news, nor are answers to other requests */
		if ((message->nlmsg_flags & NLM_F_MULTI) || message->nlmsg_type < NLMSG_MIN_TYPE)
			continue;
		watch->counts.messages++;
		if (mirror_take(watch->mirror, SOURCE_KERNEL, message, false) == MIRROR_UNSURE)
			watch_want_dump(watch, now_us);
	}
}

/* The kernel threw messages away. */
static void note_overrun(struct watch *watch, uint64_t now_us)
{
	watch->counts.overruns++;
	watch->overrun = true;
	watch_want_dump(watch, now_us);
}

void watch_read(struct watch *watch, uint64_t now_us)
{
	for (unsigned i = 0; i < READS; i++) {
		struct sockaddr_nl from = {0};
		socklen_t length = sizeof(from);
		const ssize_t n = recvfrom(watch_fd(watch), watch->piece, sizeof(watch->piece), 0,
			(struct sockaddr *)&from, &length);

		if (n < 0 && errno == ENOBUFS)
			note_overrun(watch, now_us);
		else if (n < 0 && errno != EINTR)
			return;
		/* other programs may send here, too: only the kernel is believed */
		if (n > 0 && from.nl_pid == 0)
			take_piece(watch, (size_t)n, now_us);
	}
}

/* ---------------------------------------------------- neighbours */

unsigned watch_use(struct watch *watch, const struct watch_neighbour *neighbours, unsigned n)
{
	char buffer[USES * 64] __attribute__((aligned(NLMSG_ALIGNTO)));
	size_t used = 0;

	n = RTE_MIN(n, (unsigned)USES);
	for (unsigned i = 0; i < n; i++) {
		const struct watch_neighbour *neighbour = &neighbours[i];
		struct nlmsghdr *request = mnl_nlmsg_put_header(buffer + used);
		struct ndmsg *head = mnl_nlmsg_put_extra_header(request, sizeof(*head));

		request->nlmsg_type = RTM_NEWNEIGH;
		request->nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE;
		request->nlmsg_seq = SEQUENCE_USE;
		head->ndm_family = neighbour->version == 4 ? AF_INET : AF_INET6;
		head->ndm_ifindex = (int)neighbour->ifindex;
		head->ndm_state = NUD_NONE;
		head->ndm_flags = NTF_USE;
		mnl_attr_put(
			request, NDA_DST, neighbour->version == 4 ? 4 : 16, neighbour->address);
		used += request->nlmsg_len;
	}
	if (n == 0 || mnl_socket_sendto(watch->socket, buffer, used) < 0)
		return 0;
	return n;
}
