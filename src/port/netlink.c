/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/netlink.h"

#include <errno.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <libmnl/libmnl.h>

/* More than any answer that the kernel puts together at once. */
#define ANSWER_MAX 32768
#define REQUEST_MAX 128
/* A list that changed while it was told is asked for again, so often. */
#define ATTEMPTS 10

static void copy_text(char *text, size_t size, const struct nlattr *attribute)
{
	snprintf(text, size, "%.*s", (int)mnl_attr_get_payload_len(attribute),
		(const char *)mnl_attr_get_payload(attribute));
}

/* An attribute of this type with at least so many bytes? */
static bool is(const struct nlattr *attribute, unsigned type, size_t bytes)
{
	return mnl_attr_get_type(attribute) == type && mnl_attr_get_payload_len(attribute) >= bytes;
}

/* What the kind of interface says of itself; the kind comes before it. */
static int take_data(const struct nlattr *attribute, void *context)
{
	struct netlink_link *link = context;

	if ((strcmp(link->kind, "macvlan") == 0 || strcmp(link->kind, "macvtap") == 0) &&
		is(attribute, IFLA_MACVLAN_MODE, sizeof(uint32_t)))
		link->alone = mnl_attr_get_u32(attribute) != MACVLAN_MODE_BRIDGE;
	if (strcmp(link->kind, "hsr") == 0 && is(attribute, IFLA_HSR_SLAVE1, sizeof(uint32_t)))
		link->lower[0] = mnl_attr_get_u32(attribute);
	if (strcmp(link->kind, "hsr") == 0 && is(attribute, IFLA_HSR_SLAVE2, sizeof(uint32_t)))
		link->lower[1] = mnl_attr_get_u32(attribute);
	return MNL_CB_OK;
}

static int take_info(const struct nlattr *attribute, void *context)
{
	struct netlink_link *link = context;

	if (is(attribute, IFLA_INFO_KIND, 1))
		copy_text(link->kind, sizeof(link->kind), attribute);
	else if (is(attribute, IFLA_INFO_DATA, 0))
		return mnl_attr_parse_nested(attribute, take_data, link);
	return MNL_CB_OK;
}

static int take_attribute(const struct nlattr *attribute, void *context)
{
	struct netlink_link *link = context;

	if (is(attribute, IFLA_IFNAME, 1))
		copy_text(link->name, sizeof(link->name), attribute);
	else if (is(attribute, IFLA_MTU, sizeof(uint32_t)))
		link->mtu = mnl_attr_get_u32(attribute);
	else if (is(attribute, IFLA_MASTER, sizeof(uint32_t)))
		link->master = mnl_attr_get_u32(attribute);
	else if (is(attribute, IFLA_LINK, sizeof(uint32_t)))
		link->lower[0] = mnl_attr_get_u32(attribute);
	else if (is(attribute, IFLA_LINK_NETNSID, sizeof(uint32_t)))
		/* it may have no number yet, and is another one all the same */
		link->lower_space = (int)(mnl_attr_get_u32(attribute) & INT32_MAX);
	else if (is(attribute, IFLA_LINKINFO, 0))
		return mnl_attr_parse_nested(attribute, take_info, link);
	return MNL_CB_OK;
}

static void take_link(struct netlink_link *link, const struct nlmsghdr *message)
{
	const struct ifinfomsg *head = mnl_nlmsg_get_payload(message);

	memset(link, 0, sizeof(*link));
	link->lower_space = -1;
	link->index = (unsigned)head->ifi_index;
	link->up = (head->ifi_flags & IFF_UP) != 0;
	link->running = link->up && (head->ifi_flags & IFF_RUNNING) != 0;
	mnl_attr_parse(message, sizeof(*head), take_attribute, link);
	/* some say so who lie on nothing */
	if (link->lower[0] == link->index && link->lower_space < 0)
		link->lower[0] = 0;
}

static bool is_message(const struct nlmsghdr *message, uint16_t type, size_t head)
{
	return message->nlmsg_type == type && mnl_nlmsg_get_payload_len(message) >= head;
}

static int keep_link(const struct nlmsghdr *message, void *context)
{
	if (is_message(message, RTM_NEWLINK, sizeof(struct ifinfomsg)))
		take_link(context, message);
	return MNL_CB_OK;
}

/* Sends the request and hands each message of the answer to `take`. 0 or a negative errno. */
static int netlink_ask(struct nlmsghdr *request, mnl_cb_t take, void *context)
{
	struct mnl_socket *socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	char answer[ANSWER_MAX] __attribute__((aligned(NLMSG_ALIGNTO)));
	int ret = MNL_CB_OK;

	if (socket == NULL)
		return -errno;
	request->nlmsg_seq = 1;
	if (mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0 ||
		mnl_socket_sendto(socket, request, request->nlmsg_len) < 0)
		ret = MNL_CB_ERROR;
	while (ret > MNL_CB_STOP) {
		ssize_t n = mnl_socket_recvfrom(socket, answer, sizeof(answer));

		ret = n < 0 ? MNL_CB_ERROR
			    : mnl_cb_run(answer, (size_t)n, 1, mnl_socket_get_portid(socket), take,
				      context);
	}
	ret = ret == MNL_CB_ERROR ? -errno : 0;
	mnl_socket_close(socket);
	return ret;
}

static struct nlmsghdr *begin(char *buffer, uint16_t type, uint16_t flags)
{
	struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);

	request->nlmsg_type = type;
	request->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
	return request;
}

int netlink_link(struct netlink_link *link, unsigned index)
{
	char buffer[REQUEST_MAX] __attribute__((aligned(NLMSG_ALIGNTO)));
	/* with its acknowledgement the answer has an end */
	struct nlmsghdr *request = begin(buffer, RTM_GETLINK, NLM_F_ACK);
	struct ifinfomsg *head = mnl_nlmsg_put_extra_header(request, sizeof(*head));

	head->ifi_index = (int)index;
	memset(link, 0, sizeof(*link));
	int ret = netlink_ask(request, keep_link, link);

	if (ret == 0 && link->index != index)
		return -EIO;
	return ret;
}

/* Room for one more at the end of a list whose items have `size` bytes; NULL without memory. */
static void *netlink_add(void *list, unsigned *n, size_t size)
{
	void **items = list;

	/* at 16 and every power of two above it is full */
	if (*n == 0 || (*n >= 16 && (*n & (*n - 1)) == 0)) {
		void *more = reallocarray(*items, *n == 0 ? 16 : 2 * (size_t)*n, size);

		if (more == NULL)
			return NULL;
		*items = more;
	}
	return (char *)*items + (size_t)(*n)++ * size;
}

static int no_memory(void)
{
	errno = ENOMEM;
	return MNL_CB_ERROR;
}

static int add_link(const struct nlmsghdr *message, void *context)
{
	struct netlink_state *state = context;
	struct netlink_link *link;

	if (!is_message(message, RTM_NEWLINK, sizeof(struct ifinfomsg)))
		return MNL_CB_OK;
	link = netlink_add(&state->links, &state->n_links, sizeof(*link));
	if (link == NULL)
		return no_memory();
	take_link(link, message);
	return MNL_CB_OK;
}

/* IFA_LOCAL is the interface's own where IFA_ADDRESS is that of the other end. */
struct address {
	const struct nlattr *own, *other;
};

static int find_address(const struct nlattr *attribute, void *context)
{
	struct address *address = context;

	if (is(attribute, IFA_LOCAL, 4))
		address->own = attribute;
	else if (is(attribute, IFA_ADDRESS, 4))
		address->other = attribute;
	return MNL_CB_OK;
}

static int add_address(const struct nlmsghdr *message, void *context)
{
	const struct ifaddrmsg *head = mnl_nlmsg_get_payload(message);
	struct netlink_state *state = context;
	struct netlink_address *entry;
	struct address address = {NULL, NULL};
	char text[INET6_ADDRSTRLEN];

	if (!is_message(message, RTM_NEWADDR, sizeof(*head)) ||
		(head->ifa_family == AF_INET6 && head->ifa_scope == RT_SCOPE_LINK))
		return MNL_CB_OK;
	mnl_attr_parse(message, sizeof(*head), find_address, &address);
	const struct nlattr *own = address.own != NULL ? address.own : address.other;

	if (own == NULL ||
		mnl_attr_get_payload_len(own) != (head->ifa_family == AF_INET ? 4 : 16) ||
		inet_ntop(head->ifa_family, mnl_attr_get_payload(own), text, sizeof(text)) == NULL)
		return MNL_CB_OK;
	entry = netlink_add(&state->addresses, &state->n_addresses, sizeof(*entry));
	if (entry == NULL)
		return no_memory();
	entry->index = head->ifa_index;
	snprintf(entry->text, sizeof(entry->text), "%s/%u", text, head->ifa_prefixlen);
	return MNL_CB_OK;
}

static int add_route_to(struct netlink_state *state, unsigned index)
{
	struct netlink_route *route;

	for (unsigned i = 0; i < state->n_routes; i++)
		if (state->routes[i].index == index)
			return MNL_CB_OK;
	route = netlink_add(&state->routes, &state->n_routes, sizeof(*route));
	if (route == NULL)
		return no_memory();
	route->index = index;
	return MNL_CB_OK;
}

/* A route may have several next hops, each with an interface. */
static int take_hops(struct netlink_state *state, const struct nlattr *attribute)
{
	const uint8_t *at = mnl_attr_get_payload(attribute);
	size_t left = mnl_attr_get_payload_len(attribute);
	struct rtnexthop hop;

	while (left >= sizeof(hop)) {
		memcpy(&hop, at, sizeof(hop));
		if (hop.rtnh_len < sizeof(hop) || hop.rtnh_len > left)
			break;
		if (add_route_to(state, (unsigned)hop.rtnh_ifindex) < 0)
			return MNL_CB_ERROR;
		size_t step = NLMSG_ALIGN((size_t)hop.rtnh_len);

		step = step < left ? step : left;
		at += step;
		left -= step;
	}
	return MNL_CB_OK;
}

static int take_route(const struct nlattr *attribute, void *context)
{
	if (is(attribute, RTA_OIF, sizeof(uint32_t)))
		return add_route_to(context, mnl_attr_get_u32(attribute));
	if (is(attribute, RTA_MULTIPATH, 0))
		return take_hops(context, attribute);
	return MNL_CB_OK;
}

static int add_route(const struct nlmsghdr *message, void *context)
{
	const struct rtmsg *head = mnl_nlmsg_get_payload(message);

	if (!is_message(message, RTM_NEWROUTE, sizeof(*head)) || head->rtm_dst_len != 0 ||
		head->rtm_type != RTN_UNICAST || (head->rtm_flags & RTM_F_CLONED))
		return MNL_CB_OK;
	return mnl_attr_parse(message, sizeof(*head), take_route, context);
}

/* One whole list of the kernel's; where it changed meanwhile, anew. */
static int dump(struct netlink_state *state, uint16_t type, mnl_cb_t take, unsigned *n)
{
	const unsigned before = *n;
	int ret = -EINTR;

	for (unsigned i = 0; ret == -EINTR && i < ATTEMPTS; i++) {
		char buffer[REQUEST_MAX] __attribute__((aligned(NLMSG_ALIGNTO)));
		struct nlmsghdr *request = begin(buffer, type, NLM_F_DUMP);

		/* a header of zeros, as long as any of them: all families, all interfaces */
		memset(mnl_nlmsg_put_extra_header(request, sizeof(struct ifinfomsg)), 0,
			sizeof(struct ifinfomsg));
		*n = before;
		ret = netlink_ask(request, take, state);
	}
	/* what changes all the time is told as it was last seen */
	return ret == -EINTR ? 0 : ret;
}

int netlink_state_init(struct netlink_state *state)
{
	memset(state, 0, sizeof(*state));
	int ret = dump(state, RTM_GETLINK, add_link, &state->n_links);

	if (ret == 0)
		ret = dump(state, RTM_GETADDR, add_address, &state->n_addresses);
	if (ret == 0)
		ret = dump(state, RTM_GETROUTE, add_route, &state->n_routes);
	if (ret < 0)
		netlink_state_fini(state);
	return ret;
}

void netlink_state_fini(struct netlink_state *state)
{
	free(state->links);
	free(state->addresses);
	free(state->routes);
	memset(state, 0, sizeof(*state));
}
