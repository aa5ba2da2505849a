/* SPDX-License-Identifier: BSD-3-Clause */
#include "export/datagram.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
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

int datagram_open(
	struct datagram *datagram, const struct export_target *target, struct error *error)
{
	struct resolved to;
	const int size = SEND_BUFFER, want = IP_PMTUDISC_WANT;
	int ret = resolve(&to, target, SOCK_DGRAM, error);

	datagram->fd = -1;
	if (ret < 0)
		return ret;
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

int datagram_send(struct datagram *datagram, const struct iovec *messages, unsigned n)
{
	struct mmsghdr headers[DATAGRAM_BURST];
	struct iovec parts[DATAGRAM_BURST];
	int sent;

	for (unsigned i = 0; i < n; i++) {
		parts[i] = messages[i];
		headers[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &parts[i], .msg_iovlen = 1}};
	}
	do
		sent = sendmmsg(datagram->fd, headers, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return errno == EWOULDBLOCK || errno == ENOBUFS ? -EAGAIN : -errno;
	return sent;
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
