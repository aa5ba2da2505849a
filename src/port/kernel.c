/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/kernel.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/capability.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <net/route.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct ifreq request_of(const char *name)
{
	struct ifreq request;

	memset(&request, 0, sizeof(request));
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	return request;
}

/* `command` starts with its number, as all of ethtool's do. */
static int ask_ethtool(int fd, const char *name, void *command)
{
	struct ifreq request = request_of(name);

	request.ifr_data = command;
	return ioctl(fd, SIOCETHTOOL, &request) < 0 ? -errno : 0;
}

static uint32_t ethtool_value(int fd, const char *name, uint32_t which)
{
	struct ethtool_value value = {.cmd = which};

	return ask_ethtool(fd, name, &value) == 0 ? value.data : 0;
}

static void look_at_hardware(struct kernel_interface *interface, int fd, const char *name)
{
	struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};
	struct ethtool_drvinfo driver = {.cmd = ETHTOOL_GDRVINFO};
	struct ethtool_cmd settings = {.cmd = ETHTOOL_GSET};
	uint32_t flags = ethtool_value(fd, name, ETHTOOL_GFLAGS);

	interface->gro = ethtool_value(fd, name, ETHTOOL_GGRO) != 0;
	interface->lro = (flags & ETH_FLAG_LRO) != 0;
	interface->vlan_strip = (flags & ETH_FLAG_RXVLAN) != 0;
	interface->channels = interface->combined = 1;
	if (ask_ethtool(fd, name, &channels) == 0) {
		interface->channels = channels.combined_count + channels.rx_count;
		if (interface->channels == 0)
			interface->channels = 1;
		/* without any it still has one, as the driver sees it */
		if (channels.max_combined > 0)
			interface->combined = channels.combined_count;
	}
	if (ask_ethtool(fd, name, &driver) == 0)
		snprintf(interface->driver, sizeof(interface->driver), "%.31s", driver.driver);
	if (ask_ethtool(fd, name, &settings) == 0 &&
		ethtool_cmd_speed(&settings) < (uint32_t)INT32_MAX)
		interface->speed_mbps = ethtool_cmd_speed(&settings);
}

int kernel_look(struct kernel_interface *interface, const char *name)
{
	struct ifreq request = request_of(name);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int ret = 0;

	memset(interface, 0, sizeof(*interface));
	if (fd < 0)
		return -errno;
	if (ioctl(fd, SIOCGIFINDEX, &request) < 0) {
		ret = -errno;
		goto out;
	}
	interface->index = (unsigned)request.ifr_ifindex;
	request = request_of(name);
	if (ioctl(fd, SIOCGIFFLAGS, &request) < 0) {
		ret = -errno;
		goto out;
	}
	interface->up = (request.ifr_flags & IFF_UP) != 0;
	interface->running = interface->up && (request.ifr_flags & IFF_RUNNING) != 0;
	request = request_of(name);
	if (ioctl(fd, SIOCGIFMTU, &request) == 0)
		interface->mtu = (unsigned)request.ifr_mtu;
	request = request_of(name);
	if (ioctl(fd, SIOCGIFHWADDR, &request) == 0)
		interface->ethernet = request.ifr_hwaddr.sa_family == ARPHRD_ETHER ||
				      request.ifr_hwaddr.sa_family == ARPHRD_LOOPBACK;
	look_at_hardware(interface, fd, name);
out:
	close(fd);
	return ret;
}

unsigned kernel_index(const char *name)
{
	return if_nametoindex(name);
}

bool kernel_name(unsigned index, char *name)
{
	return if_indextoname(index, name) != NULL;
}

unsigned kernel_names(char (*names)[IF_NAMESIZE], unsigned max)
{
	struct if_nameindex *all = if_nameindex();
	unsigned n = 0;

	for (; all != NULL && n < max && all[n].if_index != 0; n++)
		snprintf(names[n], IF_NAMESIZE, "%s", all[n].if_name);
	if_freenameindex(all);
	return n;
}

static bool default_route4(const char *name)
{
	FILE *file = fopen("/proc/net/route", "re");
	char line[512], interface[64];
	unsigned destination, gateway, flags, mask;
	bool found = false;

	if (file == NULL)
		return false;
	while (!found && fgets(line, sizeof(line), file) != NULL)
		found = sscanf(line, "%63s %x %x %x %*s %*s %*s %x", interface, &destination,
				&gateway, &flags, &mask) == 5 &&
			destination == 0 && mask == 0 && (flags & RTF_UP) &&
			!(flags & RTF_REJECT) && strcmp(interface, name) == 0;
	fclose(file);
	return found;
}

static bool default_route6(const char *name)
{
	FILE *file = fopen("/proc/net/ipv6_route", "re");
	char line[512], destination[40], interface[64];
	unsigned length, flags;
	bool found = false;

	if (file == NULL)
		return false;
	while (!found && fgets(line, sizeof(line), file) != NULL)
		found = sscanf(line, "%39s %x %*s %*s %*s %*s %*s %*s %x %63s", destination,
				&length, &flags, interface) == 4 &&
			length == 0 && strspn(destination, "0") == 32 && (flags & RTF_UP) &&
			!(flags & RTF_REJECT) && strcmp(interface, name) == 0;
	fclose(file);
	return found;
}

/* The bytes of an IP address, 4 or 16 as returned; 0 for anything else. */
static unsigned address_bytes(const struct sockaddr *address, uint8_t bytes[16])
{
	struct sockaddr_in ip4;
	struct sockaddr_in6 ip6;

	if (address == NULL)
		return 0;
	if (address->sa_family == AF_INET) {
		memcpy(&ip4, address, sizeof(ip4));
		memcpy(bytes, &ip4.sin_addr, 4);
		return 4;
	}
	if (address->sa_family == AF_INET6) {
		memcpy(&ip6, address, sizeof(ip6));
		memcpy(bytes, &ip6.sin6_addr, 16);
		return 16;
	}
	return 0;
}

/* "10.0.0.5/24"; false for what is no address, or of the link alone. */
static bool address_text(const struct ifaddrs *entry, char *text, size_t size)
{
	char address[INET6_ADDRSTRLEN];
	uint8_t bytes[16], mask[16];
	unsigned n = address_bytes(entry->ifa_addr, bytes);
	unsigned n_mask = address_bytes(entry->ifa_netmask, mask);
	unsigned length = 0;

	if (n == 0 || (n == 16 && bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80))
		return false;
	for (unsigned i = 0; i < n_mask; i++)
		length += (unsigned)__builtin_popcount(mask[i]);
	inet_ntop(entry->ifa_addr->sa_family, bytes, address, sizeof(address));
	snprintf(text, size, "%s/%u", address, length);
	return true;
}

bool kernel_carries(const char *name, char *text, size_t size)
{
	struct ifaddrs *all = NULL;
	char first[INET6_ADDRSTRLEN + 4] = "", address[sizeof(first)], more[32] = "";
	unsigned n = 0;

	if (getifaddrs(&all) == 0) {
		for (const struct ifaddrs *entry = all; entry != NULL; entry = entry->ifa_next) {
			if (strcmp(entry->ifa_name, name) != 0 ||
				!address_text(entry, address, sizeof(address)))
				continue;
			if (n++ == 0)
				memcpy(first, address, sizeof(first));
		}
		freeifaddrs(all);
	}
	bool route = default_route4(name) || default_route6(name);

	if (n > 1)
		snprintf(more, sizeof(more), "%s %u more", route ? "," : " and", n - 1);
	snprintf(text, size, "%s%s%s%s", first, more, n > 0 && route ? " and " : "",
		route ? "the default route" : "");
	return n > 0 || route;
}

int kernel_set_up(const char *name)
{
	struct ifreq request = request_of(name);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int ret = 0;

	if (fd < 0)
		return -errno;
	if (ioctl(fd, SIOCGIFFLAGS, &request) < 0) {
		ret = -errno;
	} else {
		request.ifr_flags = (short)(request.ifr_flags | IFF_UP);
		if (ioctl(fd, SIOCSIFFLAGS, &request) < 0)
			ret = -errno;
	}
	close(fd);
	return ret;
}

int kernel_promiscuous(unsigned index)
{
	struct packet_mreq every = {.mr_ifindex = (int)index, .mr_type = PACKET_MR_PROMISC};
	/* protocol 0: it never receives */
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &every, sizeof(every)) < 0) {
		int ret = -errno;

		close(fd);
		return ret;
	}
	return fd;
}

static bool is_tap(int fd, const char *name)
{
	struct ifreq request = request_of("");
	char path[40], what[16];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ssize_t length = readlink(path, what, sizeof(what));

	return length == 12 && memcmp(what, "/dev/net/tun", 12) == 0 &&
	       ioctl(fd, TUNGETIFF, &request) == 0 && strcmp(request.ifr_name, name) == 0;
}

int kernel_tap(unsigned index)
{
	char name[IF_NAMESIZE];
	DIR *directory = opendir("/proc/self/fd");
	const struct dirent *entry;
	int found = -1;

	if (directory == NULL)
		return -1;
	/* the driver holds one of them from the first to the last: the lowest */
	if (kernel_name(index, name))
		while ((entry = readdir(directory)) != NULL) {
			int fd = atoi(entry->d_name);

			if (entry->d_name[0] != '.' && (found < 0 || fd < found) &&
				is_tap(fd, name))
				found = fd;
		}
	closedir(directory);
	return found;
}

bool kernel_tap_lives(int fd)
{
	struct ifreq request = request_of("");

	return ioctl(fd, TUNGETIFF, &request) == 0 || errno != EBADFD;
}

static bool may(unsigned capability)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	memset(data, 0, sizeof(data));
	if (syscall(SYS_capget, &header, data) < 0)
		return false;
	return data[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability);
}

bool kernel_may_net_admin(void)
{
	return may(CAP_NET_ADMIN);
}

bool kernel_may_net_raw(void)
{
	return may(CAP_NET_RAW);
}
