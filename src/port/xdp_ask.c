/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/if_xdp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_ether.h>
#include <rte_mbuf.h>

#include "port/xdp.h"

/* The least that a port's pool takes; a limit on locked memory must allow it. */
#define REHEARSED_BYTES (UINT64_C(24) << 20)
#define CHUNK 2048
#define PROBED_BYTES (UINT64_C(64) * CHUNK)
#define RELEASE_US 200000
/* An mbuf's private bytes, at most. */
#define PRIVATE_BYTES 256
/* What libxdp attaches for its sockets. */
#define LIBXDP_PROGRAM "xsk_def_prog"

unsigned xdp_max_mtu(void)
{
	unsigned taken = sizeof(struct rte_mempool_objhdr) + sizeof(struct rte_mbuf) +
			 PRIVATE_BYTES + RTE_PKTMBUF_HEADROOM + XDP_PACKET_HEADROOM +
			 RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN + RTE_ETHER_CRC_LEN +
			 RTE_CACHE_LINE_SIZE;

	return (unsigned)sysconf(_SC_PAGESIZE) - taken;
}

static int bpf(enum bpf_cmd command, union bpf_attr *attributes)
{
	long fd = syscall(SYS_bpf, command, attributes, sizeof(*attributes));

	return fd < 0 ? -errno : (int)fd;
}

/* A program that lets every packet pass. */
static int load_program(void)
{
	struct bpf_insn program[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_PASS},
		{.code = BPF_JMP | BPF_EXIT},
	};
	union bpf_attr attributes;

	memset(&attributes, 0, sizeof(attributes));
	attributes.prog_type = BPF_PROG_TYPE_XDP;
	attributes.insns = (uintptr_t)program;
	attributes.insn_cnt = sizeof(program) / sizeof(program[0]);
	attributes.license = (uintptr_t)"BSD";
	return bpf(BPF_PROG_LOAD, &attributes);
}

/* By the interface's own driver, as libxdp does it; attached as long as the descriptor that it returns is open. */
static int attach_program(int program, unsigned interface_index)
{
	union bpf_attr attributes;

	memset(&attributes, 0, sizeof(attributes));
	attributes.link_create.prog_fd = (uint32_t)program;
	attributes.link_create.target_ifindex = interface_index;
	attributes.link_create.attach_type = BPF_XDP;
	attributes.link_create.flags = XDP_FLAGS_DRV_MODE;
	return bpf(BPF_LINK_CREATE, &attributes);
}

/* A socket with its memory at `bytes`; a descriptor, or a negative errno. */
static int xdp_open_socket(void *bytes, uint64_t length)
{
	struct xdp_umem_reg memory = {
		.addr = (uintptr_t)bytes,
		.len = length,
		.chunk_size = CHUNK,
		.flags = XDP_UMEM_UNALIGNED_CHUNK_FLAG,
	};
	int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &memory, sizeof(memory)) < 0) {
		int ret = -errno;

		close(fd);
		return ret;
	}
	return fd;
}

static void *map_memory(uint64_t length)
{
	return mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static int register_memory(void)
{
	void *bytes = map_memory(REHEARSED_BYTES);
	int fd;

	if (bytes == MAP_FAILED)
		return -errno;
	fd = xdp_open_socket(bytes, REHEARSED_BYTES);
	if (fd >= 0)
		close(fd);
	munmap(bytes, REHEARSED_BYTES);
	return fd < 0 ? fd : 0;
}

/* All rings that a socket must have before it can be bound. */
static int set_rings(int fd)
{
	static const int rings[] = {
		XDP_UMEM_FILL_RING, XDP_UMEM_COMPLETION_RING, XDP_RX_RING, XDP_TX_RING};
	int entries = 64;

	for (unsigned i = 0; i < sizeof(rings) / sizeof(rings[0]); i++)
		if (setsockopt(fd, SOL_XDP, rings[i], &entries, sizeof(entries)) < 0)
			return -errno;
	return 0;
}

/*
 * Has somebody alive an AF_XDP socket on the queue? Asked for zero copy, the kernel says so first, and
 * refuses what can do no zero copy without having changed anything.
 */
static bool queue_taken(unsigned interface_index, unsigned queue)
{
	struct sockaddr_xdp address = {
		.sxdp_family = AF_XDP,
		.sxdp_flags = XDP_ZEROCOPY,
		.sxdp_ifindex = interface_index,
		.sxdp_queue_id = queue,
	};
	void *bytes = map_memory(PROBED_BYTES);
	bool taken = false, bound = false;

	if (bytes == MAP_FAILED)
		return false;
	int fd = xdp_open_socket(bytes, PROBED_BYTES);

	if (fd >= 0 && set_rings(fd) == 0) {
		bound = bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
		taken = !bound && errno == EBUSY;
	}
	if (fd >= 0)
		close(fd);
	munmap(bytes, PROBED_BYTES);
	/* the kernel gives the queue back a moment after the socket is closed */
	if (bound)
		usleep(RELEASE_US);
	return taken;
}

static int rehearse_memory(char *why, size_t size)
{
	int ret = register_memory();

	if (ret == -ENOBUFS || ret == -ENOMEM)
		snprintf(why, size, "not enough locked memory, see ulimit -l");
	else if (ret == -EAFNOSUPPORT)
		snprintf(why, size, "the kernel has no AF_XDP sockets");
	else if (ret < 0)
		snprintf(why, size, "no AF_XDP socket: %s", strerror(-ret));
	return ret;
}

/* Is the program on the interface one that libxdp attaches? */
static bool has_libxdp_program(unsigned interface_index)
{
	struct bpf_prog_info info;
	union bpf_attr attributes;
	uint32_t id = xdp_program_id(interface_index);
	int fd;

	memset(&attributes, 0, sizeof(attributes));
	attributes.prog_id = id;
	fd = id == 0 ? -ENOENT : bpf(BPF_PROG_GET_FD_BY_ID, &attributes);
	if (fd < 0)
		return false;
	memset(&info, 0, sizeof(info));
	memset(&attributes, 0, sizeof(attributes));
	attributes.info.bpf_fd = (uint32_t)fd;
	attributes.info.info_len = sizeof(info);
	attributes.info.info = (uintptr_t)&info;
	int ret = bpf(BPF_OBJ_GET_INFO_BY_FD, &attributes);

	close(fd);
	return ret >= 0 && strcmp(info.name, LIBXDP_PROGRAM) == 0;
}

int xdp_rehearse(unsigned interface_index, unsigned n_queues, char *why, size_t size)
{
	int program = load_program();
	int attached;

	why[0] = '\0';
	if (program == -EPERM) {
		snprintf(why, size, "no permission to load BPF programs");
		return program;
	}
	if (program < 0) {
		snprintf(why, size, "the kernel loads no XDP program: %s", strerror(-program));
		return program;
	}
	attached = attach_program(program, interface_index);
	close(program);
	/* before Linux 5.9 this way of attaching is not known: nothing learned */
	if (attached == -EEXIST)
		attached = -EBUSY;
	/* of an engine that was killed: libxdp takes it over; of one that lives: hands off */
	if (attached == -EBUSY && has_libxdp_program(interface_index)) {
		for (unsigned queue = 0; queue < n_queues; queue++)
			if (queue_taken(interface_index, queue)) {
				snprintf(why, size, "another program has its queues by XDP");
				return -EADDRINUSE;
			}
		return rehearse_memory(why, size);
	}
	if (attached == -EBUSY)
		snprintf(why, size, "it has an XDP program already");
	else if (attached == -EOPNOTSUPP)
		snprintf(why, size, "its driver takes no XDP programs");
	else if (attached < 0 && attached != -EINVAL)
		snprintf(why, size, "no XDP program can be attached: %s", strerror(-attached));
	if (attached >= 0)
		close(attached);
	else if (attached != -EINVAL)
		return attached;
	return rehearse_memory(why, size);
}
