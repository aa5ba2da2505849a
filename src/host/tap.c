/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define DEVICE "/dev/net/tun"
/* Segments of a frame that are written at once; no port's frames have more. */
#define SEGMENTS 64

static int refuse_device(int code, struct error *error)
{
	if (code == -ENOENT || code == -ENODEV || code == -ENXIO)
		return error_set(error, code,
			"no " DEVICE ": the kernel has no TUN/TAP driver, or a container does not "
			"show it (modprobe tun)");
	if (code == -EACCES || code == -EPERM)
		return error_set(error, code,
			"no permission to open " DEVICE
			": TAPs take read and write access to it and "
			"CAP_NET_ADMIN");
	return error_set(error, code, "cannot open " DEVICE ": %s", strerror(-code));
}

static int refuse_name(int code, const char *name, struct error *error)
{
	if (code == -EPERM || code == -EACCES)
		return error_set(error, code,
			"no permission to make the TAP '%s': it takes CAP_NET_ADMIN", name);
	if (code == -EBUSY)
		return error_set(error, code,
			"cannot make the TAP '%s': another program uses a TAP of this name", name);
	if (code == -EINVAL)
		return error_set(error, code,
			"cannot make the TAP '%s': an interface has this name and is no TAP, or "
			"the name cannot be an interface's; the namespace may be another one",
			name);
	return error_set(error, code, "cannot make the TAP '%s': %s", name, strerror(-code));
}

/* Its MAC and MTU, which only a socket of its namespace can set, and its number. */
static int set_up(struct tap *tap, const struct tap_config *config, struct error *error)
{
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = {0};
	const char *what = "socket";
	int ret = fd < 0 ? -errno : 0;

	memcpy(request.ifr_name, config->name, sizeof(request.ifr_name));
	if (ret == 0) {
		what = "its MAC";
		request.ifr_hwaddr.sa_family = ARPHRD_ETHER;
		memcpy(request.ifr_hwaddr.sa_data, config->mac, sizeof(config->mac));
		ret = ioctl(fd, SIOCSIFHWADDR, &request) < 0 ? -errno : 0;
	}
	if (ret == 0) {
		what = "its MTU";
		request.ifr_mtu = (int)config->mtu;
		ret = ioctl(fd, SIOCSIFMTU, &request) < 0 ? -errno : 0;
	}
	if (ret == 0) {
		what = "its number";
		ret = ioctl(fd, SIOCGIFINDEX, &request) < 0 ? -errno : 0;
	}
	if (fd >= 0)
		close(fd);
	if (ret < 0)
		return error_set(error, ret, "cannot set up the TAP '%s' (%s): %s", config->name,
			what, strerror(-ret));
	tap->ifindex = (uint32_t)request.ifr_ifindex;
	return 0;
}

int tap_open(struct tap *tap, const struct tap_config *config, struct error *error)
{
	struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
	int ret;

	*tap = (struct tap){.fd = open(DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC)};
	if (tap->fd < 0)
		return refuse_device(-errno, error);
	memcpy(request.ifr_name, config->name, sizeof(request.ifr_name));
	if (ioctl(tap->fd, TUNSETIFF, &request) < 0)
		ret = refuse_name(-errno, config->name, error);
	else
		ret = set_up(tap, config, error);
	if (ret == 0 && tap_set_carrier(tap, false) < 0)
		ret = error_set(error, -errno, "cannot set the carrier of the TAP '%s': %s",
			config->name, strerror(errno));
	if (ret < 0)
		tap_close(tap);
	return ret;
}

void tap_close(struct tap *tap)
{
	if (tap->fd >= 0)
		close(tap->fd);
	*tap = (struct tap){.fd = -1};
}

int tap_set_carrier(const struct tap *tap, bool up)
{
	int carrier = up;

	return ioctl(tap->fd, TUNSETCARRIER, &carrier) < 0 ? -errno : 0;
}

ssize_t tap_read(const struct tap *tap, void *frame, size_t size)
{
	/* one byte more shows that a frame was longer */
	char more;
	const struct iovec parts[] = {{.iov_base = frame, .iov_len = size}, {&more, sizeof(more)}};
	ssize_t n;

	do {
		n = readv(tap->fd, parts, 2);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	return (size_t)n > size ? -EMSGSIZE : n;
}

int tap_write(const struct tap *tap, const struct rte_mbuf *frame)
{
	struct iovec parts[SEGMENTS];
	int n = 0;

	for (const struct rte_mbuf *part = frame; part != NULL; part = part->next) {
		if (n == SEGMENTS)
			return -EMSGSIZE;
		parts[n++] = (struct iovec){.iov_base = rte_pktmbuf_mtod(part, void *),
			.iov_len = rte_pktmbuf_data_len(part)};
	}
	while (writev(tap->fd, parts, n) < 0)
		if (errno != EINTR)
			return errno == ENOMEM || errno == ENOBUFS ? -EAGAIN : -errno;
	return 0;
}
