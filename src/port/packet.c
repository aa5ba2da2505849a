/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/packet.h"

#include <dirent.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_bound(int fd, unsigned interface_index)
{
	struct sockaddr_ll address;
	socklen_t size = sizeof(address);

	memset(&address, 0, sizeof(address));
	return getsockname(fd, (struct sockaddr *)&address, &size) == 0 &&
	       address.sll_family == AF_PACKET && address.sll_ifindex == (int)interface_index;
}

/* The next descriptor after `fd` that is a packet socket on the interface, or -1. */
static int next_socket(int fd, unsigned interface_index)
{
	DIR *directory = opendir("/proc/self/fd");
	const struct dirent *entry;
	int next = -1;

	if (directory == NULL)
		return -1;
	while ((entry = readdir(directory)) != NULL) {
		int found = atoi(entry->d_name);

		if (entry->d_name[0] != '.' && found > fd && (next < 0 || found < next) &&
			is_bound(found, interface_index))
			next = found;
	}
	closedir(directory);
	return next;
}

/* Where a socket's rings are mapped, or NULL. */
static void *find_mapping(int fd, size_t length)
{
	FILE *file = fopen("/proc/self/maps", "re");
	struct stat status;
	char line[512], wanted[40];
	unsigned long from, to;
	void *found = NULL;

	if (file == NULL)
		return NULL;
	if (fstat(fd, &status) == 0) {
		snprintf(wanted, sizeof(wanted), "socket:[%lu]", (unsigned long)status.st_ino);
		while (found == NULL && fgets(line, sizeof(line), file) != NULL)
			if (strstr(line, wanted) != NULL &&
				sscanf(line, "%lx-%lx", &from, &to) == 2 && to - from == length)
				found = (void *)from;
	}
	fclose(file);
	return found;
}

/* What the driver has set on its socket. */
static int copy_options(int from, int to)
{
	static const int options[] = {PACKET_VERSION, PACKET_LOSS, PACKET_RESERVE,
		PACKET_QDISC_BYPASS, PACKET_TIMESTAMP, PACKET_TX_HAS_OFF, PACKET_VNET_HDR};

	for (unsigned i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		int value = 0;
		socklen_t size = sizeof(value);

		if (getsockopt(from, SOL_PACKET, options[i], &value, &size) < 0 || value == 0)
			continue;
		if (setsockopt(to, SOL_PACKET, options[i], &value, sizeof(value)) < 0)
			return -errno;
	}
	return 0;
}

/* Its rings, and last of all its interface. */
static int set_up(int fd, unsigned interface_index, const struct tpacket_req *request)
{
	struct sockaddr_ll address;
	int one = 1;

	memset(&address, 0, sizeof(address));
	address.sll_family = AF_PACKET;
	address.sll_protocol = htons(ETH_P_ALL);
	address.sll_ifindex = (int)interface_index;
	if (setsockopt(fd, SOL_PACKET, PACKET_RX_RING, request, sizeof(*request)) < 0 ||
		setsockopt(fd, SOL_PACKET, PACKET_TX_RING, request, sizeof(*request)) < 0)
		return -errno;
	/* since Linux 4.20; without it this machine's own packets are heard too */
	setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one));
	return bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
}

static int kick(struct packet_tx *tx)
{
	return send(tx->fd, NULL, 0, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int replace(int old, int new, unsigned interface_index, const struct packet_ring *ring,
	struct packet_tx *tx)
{
	const struct tpacket_req request = {
		.tp_block_size = ring->block_bytes,
		.tp_block_nr = ring->frames / (ring->block_bytes / ring->frame_bytes),
		.tp_frame_size = ring->frame_bytes,
		.tp_frame_nr = ring->frames,
	};
	size_t length = 2 * (size_t)request.tp_block_size * request.tp_block_nr;
	void *address = find_mapping(old, length);
	int ret;

	if (address == NULL)
		return -ENOTSUP;
	ret = copy_options(old, new);
	if (ret == 0)
		ret = set_up(new, interface_index, &request);
	if (ret < 0)
		return ret;
	/* the kernel keeps its pages anyway: they need no lock, and limits count them no more */
	if (mmap(address, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, new, 0) ==
		MAP_FAILED)
		return -errno;
	if (dup2(new, old) < 0)
		return -errno;
	/* the driver has its ring behind that of what is received, and begins at its first frame */
	*tx = (struct packet_tx){
		.fd = old,
		.frames = (uint8_t *)address + length / 2,
		.frame_bytes = ring->frame_bytes,
		.n_frames = ring->frames,
		.kick = kick,
		.refused = UINT32_MAX,
	};
	return 0;
}

int packet_renew(unsigned interface_index, const struct packet_ring *ring, struct packet_tx *tx)
{
	int old = next_socket(-1, interface_index);
	int new, ret;

	if (old < 0 || next_socket(old, interface_index) >= 0)
		return -ENOTSUP;
	/* protocol 0: it hears nothing until it is bound */
	new = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (new < 0)
		return -errno;
	ret = replace(old, new, interface_index, ring, tx);
	close(new);
	return ret;
}

uint64_t packet_missed(unsigned interface_index)
{
	uint64_t missed = 0;

	for (int fd = -1; (fd = next_socket(fd, interface_index)) >= 0;) {
		struct tpacket_stats stats;
		socklen_t size = sizeof(stats);

		if (getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &size) == 0)
			missed += stats.tp_drops;
	}
	return missed;
}

void packet_recover(unsigned interface_index)
{
	for (int fd = -1; (fd = next_socket(fd, interface_index)) >= 0;) {
		int code = 0;
		socklen_t size = sizeof(code);

		/* asking takes it away; the kernel lets one thread at a time send what is in a ring */
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size) == 0 && code != 0)
			(void)send(fd, NULL, 0, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
}
