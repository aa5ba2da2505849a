/* SPDX-License-Identifier: BSD-3-Clause */
/* The MTU of a port and of a veth's other end, as the kernel tells it while the engine runs, and what follows from it. */
#include <errno.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "port/device.h"
#include "port/mtu.h"
#include "port/packet.h"

/* Ethernet header, and two VLAN tags. */
#define OVERHEAD (RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN)

/* One interface's answer fits, virtual functions and statistics included. */
#define ANSWER_BYTES 32768

/* What the kernel says of an interface. */
struct look {
	unsigned mtu;
	uint64_t tx_dropped;
	bool veth;
	unsigned
		far; /* a veth's other end, in the namespace of this number; negative: in the same one */
	int far_space;
};

struct question {
	struct nlmsghdr header;
	struct ifinfomsg link;
	char attributes[64];
};

static void mtu_add(struct question *question, unsigned short type, const void *value, size_t size)
{
	struct rtattr *attribute = (void *)((char *)question + question->header.nlmsg_len);

	attribute->rta_type = type;
	attribute->rta_len = (unsigned short)RTA_LENGTH(size);
	memcpy(RTA_DATA(attribute), value, size);
	question->header.nlmsg_len += (uint32_t)RTA_SPACE(size);
}

static void read_kind(struct look *look, struct rtattr *attribute)
{
	int left = (int)RTA_PAYLOAD(attribute);

	for (attribute = RTA_DATA(attribute); RTA_OK(attribute, left);
		attribute = RTA_NEXT(attribute, left))
		if (attribute->rta_type == IFLA_INFO_KIND)
			look->veth =
				strncmp(RTA_DATA(attribute), "veth", RTA_PAYLOAD(attribute)) == 0;
}

static void read_attribute(struct look *look, struct rtattr *attribute)
{
	struct rtnl_link_stats64 stats;

	switch (attribute->rta_type) {
	case IFLA_MTU:
		memcpy(&look->mtu, RTA_DATA(attribute), sizeof(look->mtu));
		break;
	case IFLA_LINK:
		memcpy(&look->far, RTA_DATA(attribute), sizeof(look->far));
		break;
	case IFLA_LINK_NETNSID:
		memcpy(&look->far_space, RTA_DATA(attribute), sizeof(look->far_space));
		break;
	case IFLA_LINKINFO:
		read_kind(look, attribute);
		break;
	case IFLA_STATS64:
		memset(&stats, 0, sizeof(stats));
		memcpy(&stats, RTA_DATA(attribute),
			RTE_MIN(sizeof(stats), (size_t)RTA_PAYLOAD(attribute)));
		look->tx_dropped = stats.tx_dropped;
		break;
	default:
		break;
	}
}

static int read_answer(struct look *look, struct nlmsghdr *header, ssize_t length)
{
	struct nlmsgerr refusal;
	int left;

	if (length < 0)
		return -errno;
	if (!NLMSG_OK(header, (size_t)length))
		return -EBADMSG;
	if (header->nlmsg_type == NLMSG_ERROR) {
		memcpy(&refusal, NLMSG_DATA(header), sizeof(refusal));
		return refusal.error < 0 ? refusal.error : -EBADMSG;
	}
	if (header->nlmsg_type != RTM_NEWLINK)
		return -EBADMSG;
	*look = (struct look){.far_space = -1};
	left = (int)IFLA_PAYLOAD(header);
	for (struct rtattr *attribute = IFLA_RTA((struct ifinfomsg *)NLMSG_DATA(header));
		RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left))
		read_attribute(look, attribute);
	return 0;
}

/* By its index, or by its name where that is 0; in the namespace of this number, negative: the socket's own. */
static int mtu_ask(int fd, unsigned index, const char *name, int space, struct look *look)
{
	static uint32_t answer[ANSWER_BYTES / sizeof(uint32_t)];
	struct question question;

	if (fd < 0)
		return -EBADF;
	memset(&question, 0, sizeof(question));
	question.header.nlmsg_len = NLMSG_LENGTH(sizeof(question.link));
	question.header.nlmsg_type = RTM_GETLINK;
	question.header.nlmsg_flags = NLM_F_REQUEST;
	question.link.ifi_family = AF_UNSPEC;
	question.link.ifi_index = (int)index;
	if (index == 0)
		mtu_add(&question, IFLA_IFNAME, name, strlen(name) + 1);
	if (space >= 0)
		mtu_add(&question, IFLA_TARGET_NETNSID, &space, sizeof(space));
	if (send(fd, &question, question.header.nlmsg_len, MSG_NOSIGNAL) < 0)
		return -errno;
	/* the kernel answers before it returns from the call above */
	return read_answer(look, (void *)answer, recv(fd, answer, sizeof(answer), MSG_DONTWAIT));
}

static int mtu_open_socket(void)
{
	return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
}

struct elsewhere {
	int tap;
	int fd;
};

/* A thread of its own enters the tap's namespace, so that no other one has to come back from there. */
static void *open_elsewhere(void *argument)
{
	struct elsewhere *elsewhere = argument;
	int space = ioctl(elsewhere->tap, TUNGETDEVNETNS);
	struct stat here, there;

	if (space < 0)
		return NULL;
	/* to enter another one takes CAP_SYS_ADMIN */
	if ((stat("/proc/thread-self/ns/net", &here) == 0 && fstat(space, &there) == 0 &&
		    here.st_dev == there.st_dev && here.st_ino == there.st_ino) ||
		setns(space, CLONE_NEWNET) == 0)
		elsewhere->fd = mtu_open_socket();
	close(space);
	return NULL;
}

static int open_for_tap(int tap)
{
	struct elsewhere elsewhere = {.tap = tap, .fd = -1};
	pthread_t thread;

	if (pthread_create(&thread, NULL, open_elsewhere, &elsewhere) == 0)
		pthread_join(thread, NULL);
	return elsewhere.fd;
}

/* A tap may be renamed, and moved to another namespace, any time. */
static int look_at_tap(struct port *port, struct look *look)
{
	struct ifreq request;
	int ret = -ENODEV;

	memset(&request, 0, sizeof(request));
	if (ioctl(port->tap, TUNGETIFF, &request) < 0)
		return -errno;
	for (unsigned tries = 0; ret < 0 && tries < 2; tries++) {
		if (port->asks < 0)
			port->asks = open_for_tap(port->tap);
		if (port->asks < 0)
			return -EPERM;
		ret = mtu_ask(port->asks, 0, request.ifr_name, -1, look);
		if (ret < 0) {
			close(port->asks);
			port->asks = -1;
		}
	}
	return ret;
}

static int look_at(struct port *port, struct look *look)
{
	if (port->tap >= 0)
		return look_at_tap(port, look);
	if (port->interface_index == 0)
		return -ENODEV;
	if (port->asks < 0)
		port->asks = mtu_open_socket();
	return mtu_ask(port->asks, port->interface_index, "", -1, look);
}

/* 0: the kernel does not tell, as of a namespace where this process may do nothing. */
static unsigned look_at_far_end(const struct port *port, const struct look *look)
{
	struct look far = {.far_space = -1};

	if (!look->veth || look->far == 0 ||
		mtu_ask(port->asks, look->far, "", look->far_space, &far) < 0)
		return 0;
	return far.mtu;
}

static void set_longest(struct port *port)
{
	/* a tap's other end takes whatever its driver sends */
	const unsigned mtu = port->tap >= 0 ? port->driver_mtu : port->mtu;
	unsigned longest = mtu + OVERHEAD, tagged = longest;

	/* the kernel takes one tag more than the MTU says, and no second one */
	if (port->packet_frame != 0) {
		longest = RTE_MIN(mtu + RTE_ETHER_HDR_LEN, packet_tx_room(port->packet_frame));
		tagged = RTE_MIN(longest + RTE_VLAN_HLEN, packet_tx_room(port->packet_frame));
	}
	/* whatever has four bytes more passes a veth, tag or not */
	if (port->far_mtu != 0) {
		const unsigned far = port->far_mtu + RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN;

		longest = RTE_MIN(longest, far);
		tagged = RTE_MIN(tagged, far);
	}
	atomic_store_explicit(&port->longest, longest, memory_order_relaxed);
	atomic_store_explicit(&port->longest_tagged, tagged, memory_order_relaxed);
}

void port_mtu_begin(struct port *port)
{
	struct look look = {.far_space = -1};

	port->driver_mtu = port->mtu;
	port->any_length = port->interface_index != 0 || port->tap >= 0;
	if (port->packet_frame != 0)
		port->rx_room = packet_rx_room(port->packet_frame);
	if (port->any_length && look_at(port, &look) == 0)
		port->dropped = look.tx_dropped;
	set_longest(port);
}

bool port_update_mtu(struct port *port)
{
	struct look look = {.far_space = -1};
	unsigned mtu, far;

	if (port->link == PORT_LINK_REMOVED || look_at(port, &look) < 0 || look.mtu == 0)
		return false;
	mtu = RTE_MIN(look.mtu, (unsigned)UINT16_MAX);
	far = RTE_MIN(look_at_far_end(port, &look), (unsigned)UINT16_MAX);
	/* as long as the other end takes as much there is nothing to tell of it */
	const bool told =
		mtu != port->mtu ||
		(far != 0 && RTE_MIN(far, mtu) !=
				     RTE_MIN(mtu, port->far_mtu != 0 ? port->far_mtu : mtu));

	port->mtu = (uint16_t)mtu;
	if (far != 0)
		port->far_mtu = (uint16_t)far;
	set_longest(port);
	return told;
}

void port_mtu_line(const struct port *port, char *line, size_t size)
{
	const char *name = port->interface[0] != '\0' ? port->interface : port->name;
	int length = snprintf(line, size, "%s: MTU %u", port->name, port->mtu);
	const size_t at = RTE_MIN((size_t)length, size);

	if (port->far_mtu != 0 && port->far_mtu < port->mtu)
		snprintf(&line[at], size - at,
			", and %u at the other end of %s: longer frames for it are dropped, "
			"too_long",
			port->far_mtu, name);
	else if (port->packet_frame != 0 &&
		 (unsigned)port->mtu + OVERHEAD > packet_rx_room(port->packet_frame))
		snprintf(&line[at], size - at,
			": frames above %u bytes do not fit into its ring and are dropped until "
			"the "
			"engine is started anew",
			packet_rx_room(port->packet_frame));
	else if (port->tap >= 0 && port->mtu > port->driver_mtu)
		snprintf(&line[at], size - at,
			": frames above %u bytes are lost until the engine is started anew with "
			"that "
			"MTU",
			port->driver_mtu + OVERHEAD);
}

uint64_t port_kernel_dropped(struct port *port)
{
	struct look look = {.far_space = -1};

	if (port->link == PORT_LINK_REMOVED || look_at(port, &look) < 0)
		return 0;
	return look.tx_dropped - RTE_MIN(look.tx_dropped, port->dropped);
}
