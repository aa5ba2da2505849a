/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_mbuf.h>

#include "base/suggest.h"
#include "port/check.h"
#include "port/device.h"
#include "port/open.h"
#include "port/probe.h"
#include "port/xdp.h"

#define PACKET_FRAMES 4096
#define PACKET_FRAMES_LEAST 128
/* No more than this for the frames of a queue in one direction, however large they are. */
#define PACKET_MEMORY (16u << 20)
#define PACKET_BLOCK 65536

/* Room in an mbuf that the frames of a packet socket, `frame` bytes each, need; head room included. */
static uint16_t packet_room(unsigned frame)
{
	return (uint16_t)RTE_MIN(
		packet_tx_room(frame) + RTE_PKTMBUF_HEADROOM, (unsigned)UINT16_MAX);
}

/* The smallest that will do, as a cache line goes. */
static unsigned tight_frame(unsigned mtu)
{
	return RTE_ALIGN(mtu + PORT_FRAME_OVERHEAD + PACKET_RX_HEADER, RTE_CACHE_LINE_SIZE);
}

static unsigned packet_frame(unsigned mtu)
{
	return RTE_MAX(2048u, RTE_ALIGN(mtu + PORT_FRAME_OVERHEAD + PACKET_RX_HEADER, 1024u));
}

static unsigned number_argument(const char *text, const char *key, unsigned otherwise)
{
	char value[16];

	if (!device_argument(text, key, value, sizeof(value)))
		return otherwise;
	return (unsigned)strtoul(value, NULL, 10);
}

/* What the driver makes of these arguments. */
static struct packet_ring packet_ring_of(const char *text)
{
	return (struct packet_ring){
		.block_bytes = number_argument(text, "blocksz", (unsigned)sysconf(_SC_PAGESIZE)),
		.frame_bytes = number_argument(text, "framesz", PACKET_FRAME_DEFAULT),
		.frames = number_argument(text, "framecnt", PACKET_FRAMES_DEFAULT),
	};
}

static void warn_of_driver(const struct port_opening *opening, const char *name)
{
	port_warn(opening,
		"%s: the kernel puts fragments together before we see them, packets that this "
		"machine sends are seen too, and one that the other end refuses stops all behind "
		"it",
		name);
}

static void renew_packet(const struct port_opening *opening)
{
	struct port *port = opening->port;

	port->packet_frame = opening->ring.frame_bytes;
	port->packet_tx = calloc(1, sizeof(*port->packet_tx));
	if (port->packet_tx != NULL &&
		packet_renew(port->interface_index, &opening->ring, port->packet_tx) == 0)
		return;
	free(port->packet_tx);
	port->packet_tx = NULL;
	warn_of_driver(opening, port->ethdev);
}

/*
 * The sockets of af_packet devices below another one. Nobody follows what is in their rings to be sent: between the
 * worker and them there is that other device.
 */
static void renew_below(const struct port_opening *opening)
{
	char below[PORT_DEVICE_MAX], name[RTE_ETH_NAME_MAX_LEN], interface[PORT_DEVICE_MAX];

	for (unsigned i = 0; device_below(opening->port->device.text, i, below, sizeof(below));
		i++) {
		const struct packet_ring ring = packet_ring_of(below);
		struct packet_tx unused = {0};

		device_name(below, name, sizeof(name));
		if (!device_is(name, "af_packet") ||
			!device_argument(below, "iface", interface, sizeof(interface)))
			continue;
		if (opening->port->device.below[0] != '\0')
			opening->port->packet_frame = ring.frame_bytes;
		if (packet_renew(kernel_index(interface), &ring, &unused) < 0)
			warn_of_driver(opening, name);
	}
}

/*
 * With what the user has given, and as many frames, large enough for the MTU, as may be: a limit on
 * locked memory may be in the way of more.
 */
static int probe_packet(struct port_opening *opening, const char *given, char *said, size_t size)
{
	struct port *port = opening->port;
	unsigned frame = packet_frame(port->mtu);

	if (opening->room != 0 && packet_room(frame) > opening->room)
		frame = tight_frame(port->mtu);
	/* the driver has them lie without a gap: whole frames in each block of whole pages */
	unsigned step = frame % 1024 == 0 ? 4 * frame : 64 * frame;
	unsigned block = step * RTE_MAX(1u, PACKET_BLOCK / step);
	unsigned in_block = block / frame;
	unsigned frames = RTE_MIN(PACKET_FRAMES, PACKET_MEMORY / block * in_block);
	char arguments[PORT_DEVICE_MAX + 64];
	int ret = -EINVAL;

	port->data_room = packet_room(frame);
	for (; ret < 0 && ret != -EBUSY && frames >= PACKET_FRAMES_LEAST;
		frames = frames / 2 / in_block * in_block) {
		snprintf(arguments, sizeof(arguments), "%s,blocksz=%u,framesz=%u,framecnt=%u",
			given, block, frame, frames);
		ret = probe_device("vdev", port->ethdev, arguments, &port->id, said, size);
		opening->ring = (struct packet_ring){block, frame, frames};
	}
	return ret;
}

int port_open_packet(struct port_opening *opening, struct error *error)
{
	struct port *port = opening->port;
	char given[64], said[160] = "";

	snprintf(port->ethdev, sizeof(port->ethdev), "net_af_packet_%s", port->interface);
	/* one queue: with more, the driver's group of sockets reassembles fragments */
	snprintf(given, sizeof(given), "iface=%s,qpairs=1", port->interface);
	int ret = probe_packet(opening, given, said, sizeof(said));

	if (ret < 0)
		return error_set(error, ret, "%s: af_packet does not open it: %s",
			port->device.interface, *said ? said : strerror(-ret));
	renew_packet(opening);
	return 0;
}

/* The way to as many receive queues as af_xdp would take. */
static void fewer_channels(
	const struct port_opening *opening, unsigned wanted, char *text, size_t size)
{
	const struct kernel_interface *interface = &opening->interface;

	if (interface->combined < interface->channels)
		snprintf(text, size, "ethtool -L %s rx 1 tx 1", opening->port->device.interface);
	else
		snprintf(text, size, "ethtool -L %s combined %u", opening->port->device.interface,
			wanted);
}

/* Why not af_xdp? In a few words; "" and 0 when there is no reason. -EBUSY: it has a program. */
static int object_to_xdp(const struct port_opening *opening, char *why, size_t size)
{
	unsigned wanted =
		RTE_MIN(RTE_MAX(opening->config->n_queues, 1u), (unsigned)PORT_MAX_QUEUES);
	unsigned channels = opening->interface.channels;
	char how[64];

	why[0] = '\0';
	if (opening->port->mtu > xdp_max_mtu()) {
		snprintf(why, size, "MTU %u is above %u", opening->port->mtu, xdp_max_mtu());
		return -EMSGSIZE;
	}
	if (channels > RTE_MIN(wanted, opening->interface.combined)) {
		/* packets of the other queues would pass us by */
		fewer_channels(opening, wanted, how, sizeof(how));
		snprintf(why, size, "%u receive queues; %s", channels, how);
		return -E2BIG;
	}
	return xdp_rehearse(opening->interface.index, channels, why, size);
}

int port_open_interface(struct port_opening *opening, struct error *error)
{
	struct port *port = opening->port;
	char arguments[64], why[128];
	int ret = -ENOTSUP, objection;

	objection = object_to_xdp(opening, why, sizeof(why));
	if (objection == -EADDRINUSE)
		return error_set(error, -EBUSY, "%s: %s, a second engine perhaps",
			port->device.interface, why);
	if (why[0] == '\0') {
		snprintf(port->ethdev, sizeof(port->ethdev), "net_af_xdp_%s",
			port->device.interface);
		snprintf(arguments, sizeof(arguments), "iface=%s,queue_count=%u",
			port->device.interface, opening->interface.channels);
		ret = probe_device("vdev", port->ethdev, arguments, &port->id, why, sizeof(why));
	}
	if (ret == 0)
		return 0;
	if (objection == -EBUSY)
		port_warn(opening,
			"%s has an XDP program already, of another engine perhaps: what that takes "
			"we never see; ip link set %s xdp off",
			port->device.interface, port->device.interface);
	ret = port_open_packet(opening, error);
	if (ret == 0)
		snprintf(port->note, sizeof(port->note), "af_packet, 1 queue (not af_xdp: %.90s)",
			why);
	return ret;
}

/* Arguments that would lose packets; the driver itself says nothing. */
static int check_packet_arguments(
	struct port_opening *opening, const char *text, struct error *error)
{
	struct port *port = opening->port;
	const struct packet_ring ring = packet_ring_of(text);
	unsigned frame = ring.frame_bytes, block = ring.block_bytes;
	char name[RTE_ETH_NAME_MAX_LEN];

	device_name(text, name, sizeof(name));
	if (frame == 0 || frame > UINT16_MAX || block == 0 || block % frame != 0)
		return error_set(error, -EINVAL,
			"%s: blocksz=%u must be a multiple of framesz=%u, which is at most 65,535",
			name, block, frame);
	if (frame < (unsigned)port->mtu + PORT_FRAME_OVERHEAD + PACKET_RX_HEADER)
		return error_set(error, -EINVAL,
			"%s: framesz=%u cuts the frames of %s, MTU %u: "
			"framesz=%u,blocksz=%u would do",
			name, frame, port->device.interface, port->mtu, packet_frame(port->mtu),
			4 * packet_frame(port->mtu));
	port->data_room = packet_room(frame);
	opening->ring = ring;
	return 0;
}

static int check_xdp_arguments(const struct port_opening *opening, struct error *error)
{
	const struct port *port = opening->port;
	const char *text = *port->device.below ? port->device.below : port->device.text;
	unsigned channels = opening->interface.channels;
	unsigned count = RTE_MIN(
		number_argument(text, "queue_count", 1), RTE_MAX(opening->config->n_queues, 1u));
	char how[64], why[128];

	if (port->mtu > xdp_max_mtu())
		return error_set(error, -EINVAL,
			"%s: af_xdp takes frames up to MTU %u, and %s has %u", port->ethdev,
			xdp_max_mtu(), port->device.interface, port->mtu);
	/* the driver would find out late, and take away what is not its own */
	if (xdp_rehearse(opening->interface.index, channels, why, sizeof(why)) < 0)
		return error_set(error, -EBUSY, "%s: af_xdp does not work on %s: %s", port->ethdev,
			port->device.interface, why);
	if (count >= channels)
		return 0;
	fewer_channels(opening, count, how, sizeof(how));
	if (!opening->config->force)
		return error_set(error, -EINVAL,
			"%s takes %u of the %u receive queues of %s, packets of the others would "
			"pass it by: %s",
			port->ethdev, count, channels, port->device.interface, how);
	port_warn(opening, "%s takes %u of the %u receive queues of %s, as --force says",
		port->ethdev, count, channels, port->device.interface);
	return 0;
}

/* Drivers of the distribution's DPDK that one would name by hand. */
static const char *const drivers[] = {
	"net_af_packet",
	"net_af_xdp",
	"net_bonding",
	"net_failsafe",
	"net_flowsim",
	"net_memif",
	"net_null",
	"net_pcap",
	"net_ring",
	"net_softnic",
	"net_tap",
	"net_tun",
	"net_vhost",
	"net_virtio_user",
};

static bool known_driver(const char *name, const char **near)
{
	char driver[RTE_ETH_NAME_MAX_LEN];

	snprintf(driver, sizeof(driver), "%s", name);
	for (size_t length = strlen(driver);
		length > 0 && isdigit((unsigned char)driver[length - 1]);)
		driver[--length] = '\0';
	for (size_t i = 0; i < RTE_DIM(drivers); i++)
		if (strncmp(name, drivers[i], strlen(drivers[i])) == 0)
			return true;
	*near = suggest(driver, drivers, RTE_DIM(drivers));
	return false;
}

/* What to do about a device that DPDK does not take. */
static int explain(const struct port *port, int ret, const char *said, struct error *error)
{
	const char *name = port->ethdev, *near = NULL;
	size_t length = strlen(name);

	/* some begin with the name */
	if (strncmp(said, name, length) == 0 && strncmp(&said[length], ": ", 2) == 0)
		said += length + 2;
	if (ret == -EBUSY)
		return error_set(error, ret, "%s: another port has this device", name);
	if (port->device.kind == PORT_DEVICE_PCI)
		return error_set(error, ret,
			"%s: no such PCI device, or no driver that DPDK can use is bound to it; "
			"dpdk-devbind.py -s lists them",
			name);
	if (!known_driver(name, &near) && near != NULL)
		return error_set(error, -ENODEV, "%s: DPDK has no such driver; did you mean %s?",
			name, near);
	if (device_is(name, "tap") || device_is(name, "tun")) {
		if (access("/dev/net/tun", F_OK) < 0)
			return error_set(error, ret,
				"%s: there is no /dev/net/tun here: modprobe tun", name);
		if (access("/dev/net/tun", R_OK | W_OK) < 0 || !kernel_may_net_admin())
			return error_set(error, -EPERM,
				"%s: no permission to make a tap: run as root, or give the program "
				"CAP_NET_ADMIN",
				name);
	}
	return error_set(
		error, ret, "%s: DPDK does not open it: %s", name, *said ? said : strerror(-ret));
}

/* Says the user nothing of the rings? The driver's own are small. */
static bool rings_left_to_us(const char *text)
{
	char value[2];

	return !device_argument(text, "blocksz", value, sizeof(value)) &&
	       !device_argument(text, "framesz", value, sizeof(value)) &&
	       !device_argument(text, "framecnt", value, sizeof(value));
}

static int open_packet_named(
	struct port_opening *opening, char *said, size_t size, struct error *error)
{
	struct port *port = opening->port;
	const char *text = port->device.text;
	int ret;

	if (number_argument(text, "qdisc_bypass", 1) == 0)
		port_warn(opening,
			"%s: with qdisc_bypass=0 a slow qdisc of %s holds up a worker, and all "
			"ports with it; better without",
			port->ethdev, port->device.interface);
	if (rings_left_to_us(text)) {
		ret = probe_packet(opening, device_arguments(text), said, size);
	} else {
		ret = check_packet_arguments(opening, text, error);
		if (ret < 0)
			return ret;
		ret = probe_device(
			"vdev", port->ethdev, device_arguments(text), &port->id, said, size);
	}
	if (ret < 0)
		return explain(port, ret, said, error);
	renew_packet(opening);
	return 0;
}

int port_open_named(struct port_opening *opening, struct error *error)
{
	struct port *port = opening->port;
	const char *text = port->device.text;
	char said[200] = "";
	int ret = 0;

	if (device_name(text, port->ethdev, sizeof(port->ethdev)) >= sizeof(port->ethdev))
		return error_set(error, -ENAMETOOLONG, "%s...: too long a name", port->ethdev);
	if (device_is(port->ethdev, "af_packet"))
		return open_packet_named(opening, said, sizeof(said), error);
	if (device_is(port->ethdev, "af_xdp") || device_is(port->device.below, "af_xdp"))
		ret = check_xdp_arguments(opening, error);
	if (device_is(port->device.below, "af_packet"))
		ret = check_packet_arguments(opening, port->device.below, error);
	if (ret < 0)
		return ret;
	ret = probe_device(port->device.kind == PORT_DEVICE_PCI ? "pci" : "vdev", port->ethdev,
		device_arguments(text), &port->id, said, sizeof(said));
	if (ret < 0)
		return explain(port, ret, said, error);
	renew_below(opening);
	return 0;
}
