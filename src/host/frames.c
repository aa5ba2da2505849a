/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/frames.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include <libmnl/libmnl.h>

#define HEADER_BYTES 4
#define VERSION 1
#define TYPE_NETLINK 1

void frames_begin(struct frames *frames, struct mirror *mirror)
{
	frames->mirror = mirror;
	frames->n = 0;
	frames->holds = false;
}

void frames_flush(struct frames *frames)
{
	if (!frames->holds)
		return;
	frames->holds = false;
	(void)mirror_take(frames->mirror, SOURCE_FPM, &frames->removal.message, false);
}

static bool is_same_route(const struct kernel_route *one, const struct kernel_route *other)
{
	return one->version == other->version && one->length == other->length &&
	       one->table == other->table && one->metric == other->metric &&
	       memcmp(one->prefix, other->prefix, sizeof(one->prefix)) == 0;
}

/* A removal is held; a route that comes next and replaces it makes it void. */
static bool takes_place(struct frames *frames, const struct nlmsghdr *header)
{
	struct message message;

	if (header->nlmsg_type != RTM_NEWROUTE && header->nlmsg_type != RTM_DELROUTE)
		return false;
	if (message_read(&message, header) <= 0)
		return false;
	if (frames->holds && is_same_route(&message.route.route, &frames->held.route))
		frames->holds = false;
	frames_flush(frames);
	if (!message.gone)
		return false;
	memcpy(&frames->held, &message.route, sizeof(frames->held));
	memcpy(&frames->removal, header, header->nlmsg_len);
	frames->holds = true;
	return true;
}

static int take_frame(struct frames *frames, const char *payload, size_t size)
{
	const struct nlmsghdr *message = &frames->frame.first;
	int left = (int)size;

	memcpy(&frames->frame, payload, size);
	for (; message_fits(message, left); message = mnl_nlmsg_next(message, &left)) {
		frames->messages++;
		if (takes_place(frames, message))
			continue;
		/* nexthop objects come in order with the routes that name them */
		frames_flush(frames);
		(void)mirror_take(frames->mirror, SOURCE_FPM, message, false);
	}
	return left >= (int)NLMSG_ALIGNTO ? -EBADMSG : 0;
}

int frames_take(struct frames *frames, size_t n)
{
	size_t at = 0;

	frames->n += n;
	while (frames->n - at >= HEADER_BYTES) {
		const uint8_t *header = (const uint8_t *)frames->bytes + at;
		const size_t length = (size_t)header[2] << 8 | header[3];

		if (header[0] != VERSION || length < HEADER_BYTES)
			return -EBADMSG;
		if (length > frames->n - at)
			break;
		if (header[1] != TYPE_NETLINK)
			frames->skipped++;
		else if (take_frame(frames, frames->bytes + at + HEADER_BYTES,
				 length - HEADER_BYTES) < 0)
			return -EBADMSG;
		at += length;
	}
	frames->n -= at;
	memmove(frames->bytes, frames->bytes + at, frames->n);
	return 0;
}
