/* SPDX-License-Identifier: BSD-3-Clause */
#include "export/datagram.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "export/ipfix.h"
#include "export/resolve.h"

#define IPV4_HEADERS 28
#define IPV6_HEADERS 48

/* Bursts of a second's flows: what the kernel holds of them is not in our queue. */
#define SEND_BUFFER (4 << 20)

/* What the kernel cuts into datagrams at once, at most; older ones know 64 of them. */
#define JOINED_MOST 64
#define JOINED_BYTES 65000

int datagram_open(
	struct datagram *datagram, const struct export_target *target, struct error *error)
{
	struct resolved to;
	const int size = SEND_BUFFER, want = IP_PMTUDISC_WANT;
	int ret = resolve(&to, target, SOCK_DGRAM, error);

	datagram->fd = -1;
	if (ret < 0)
		return ret;
	datagram->joins = true;
	datagram->ipv6 = to.address.ss_family == AF_INET6;
	datagram->fd = socket(to.address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (datagram->fd < 0 ||
		connect(datagram->fd, (const struct sockaddr *)&to.address, to.length) < 0) {
		ret = -errno;
		datagram_close(datagram);
		return error_set(
			error, ret, "%s: no socket to it: %s", target->text, strerror(-ret));
	}
	(void)setsockopt(datagram->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	/* longer ones are cut into fragments where the way has become narrower */
	if (datagram->ipv6)
		(void)setsockopt(
			datagram->fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &want, sizeof(want));
	else
		(void)setsockopt(datagram->fd, IPPROTO_IP, IP_MTU_DISCOVER, &want, sizeof(want));
	return 0;
}

void datagram_close(struct datagram *datagram)
{
	if (datagram->fd >= 0)
		close(datagram->fd);
	datagram->fd = -1;
}

/* A message for the kernel, of one or more datagrams of ours. */
struct joined {
	struct iovec parts[DATAGRAM_BURST];
	struct mmsghdr headers[DATAGRAM_BURST];
	unsigned n[DATAGRAM_BURST]; /* datagrams in each */
	union {
		struct cmsghdr header; /* for its alignment */
		char bytes[CMSG_SPACE(sizeof(uint16_t))];
	} control[DATAGRAM_BURST];
};

/* How many of the first are as long as the first one, the last of them being no longer. */
static unsigned alike(const struct datagram *datagram, const struct iovec *messages, unsigned n)
{
	size_t length = messages[0].iov_len;
	unsigned i = 1;

	while (datagram->joins && i < n && i < JOINED_MOST &&
		length + messages[i].iov_len <= JOINED_BYTES &&
		messages[i].iov_len <= messages[0].iov_len) {
		length += messages[i].iov_len;
		if (messages[i++].iov_len < messages[0].iov_len)
			break;
	}
	return i;
}

/* Tells the kernel to cut what is joined into datagrams of that length (udp(7), UDP_SEGMENT). */
static void set_segment(struct joined *joined, unsigned i, size_t length)
{
	struct msghdr *message = &joined->headers[i].msg_hdr;
	const uint16_t segment = (uint16_t)length;

	message->msg_control = joined->control[i].bytes;
	message->msg_controllen = sizeof(joined->control[i].bytes);
	struct cmsghdr *control = CMSG_FIRSTHDR(message);

	control->cmsg_level = IPPROTO_UDP;
	control->cmsg_type = UDP_SEGMENT;
	control->cmsg_len = CMSG_LEN(sizeof(segment));
	memcpy(CMSG_DATA(control), &segment, sizeof(segment));
}

static unsigned join(const struct datagram *datagram, struct joined *joined,
	const struct iovec *messages, unsigned n)
{
	unsigned done = 0, i = 0;

	for (; done < n; done += joined->n[i++]) {
		joined->n[i] = alike(datagram, messages + done, n - done);
		for (unsigned j = 0; j < joined->n[i]; j++)
			joined->parts[done + j] = messages[done + j];
		joined->headers[i] = (struct mmsghdr){
			.msg_hdr = {.msg_iov = &joined->parts[done], .msg_iovlen = joined->n[i]}};
		if (joined->n[i] > 1)
			set_segment(joined, i, messages[done].iov_len);
	}
	return i;
}

int datagram_send(struct datagram *datagram, const struct iovec *messages, unsigned n)
{
	struct joined joined;
	const unsigned n_joined = join(datagram, &joined, messages, n);
	int sent, done = 0;

	do
		sent = sendmmsg(
			datagram->fd, joined.headers, n_joined, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent < 0 && n_joined < n && errno != EAGAIN && errno != ENOBUFS &&
		errno != ECONNREFUSED) {
		/* a kernel, a device or a way that does not cut them: one by one, from here on */
		datagram->joins = false;
		return datagram_send(datagram, messages, n);
	}
	if (sent < 0)
		return errno == EWOULDBLOCK || errno == ENOBUFS ? -EAGAIN : -errno;
	for (int i = 0; i < sent; i++)
		done += (int)joined.n[i];
	return done;
}

size_t datagram_carries(const struct datagram *datagram, size_t mtu)
{
	const size_t headers = datagram->ipv6 ? IPV6_HEADERS : IPV4_HEADERS;
	socklen_t length = sizeof(int);
	int known = 0, ret;

	if (datagram->ipv6)
		ret = getsockopt(datagram->fd, IPPROTO_IPV6, IPV6_MTU, &known, &length);
	else
		ret = getsockopt(datagram->fd, IPPROTO_IP, IP_MTU, &known, &length);
	if (ret == 0 && known > 0 && (size_t)known < mtu)
		mtu = (size_t)known;
	const size_t carries = mtu > headers ? mtu - headers : 0;

	if (carries < IPFIX_LEAST)
		return IPFIX_LEAST;
	return carries < IPFIX_MOST - IPV6_HEADERS ? carries : IPFIX_MOST - IPV6_HEADERS;
}

void datagram_wait(const struct datagram *datagram, int ms)
{
	struct pollfd ready = {.fd = datagram->fd, .events = POLLOUT};

	(void)poll(&ready, 1, ms);
}
