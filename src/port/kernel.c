/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/kernel.h"

#include <dirent.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
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

static unsigned ask_speed(int fd, const char *name)
{
	struct ethtool_cmd settings = {.cmd = ETHTOOL_GSET};

	if (ask_ethtool(fd, name, &settings) < 0 ||
		ethtool_cmd_speed(&settings) >= (uint32_t)INT32_MAX)
		return 0;
	return ethtool_cmd_speed(&settings);
}

static void look_at_hardware(struct kernel_interface *interface, int fd, const char *name)
{
	struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};
	struct ethtool_drvinfo driver = {.cmd = ETHTOOL_GDRVINFO};
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
	interface->speed_mbps = ask_speed(fd, name);
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

unsigned kernel_speed(const char *name)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	unsigned speed;

	if (fd < 0)
		return 0;
	speed = ask_speed(fd, name);
	close(fd);
	return speed;
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
