/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/xdp.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_xdp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_ether.h>
#include <rte_mbuf.h>

#include "base/text.h"

/* The least that a port's pool takes; a limit on locked memory must allow it. */
#define REHEARSED_BYTES (UINT64_C(24) << 20)
#define CHUNK 2048
/* An mbuf's private bytes, at most. */
#define PRIVATE_BYTES 256

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

/* Attached as long as the descriptor that it returns is open. */
static int attach_program(int program, unsigned interface_index)
{
	union bpf_attr attributes;

	memset(&attributes, 0, sizeof(attributes));
	attributes.link_create.prog_fd = (uint32_t)program;
	attributes.link_create.target_ifindex = interface_index;
	attributes.link_create.attach_type = BPF_XDP;
	return bpf(BPF_LINK_CREATE, &attributes);
}

static int register_memory(void)
{
	struct xdp_umem_reg memory = {
		.len = REHEARSED_BYTES,
		.chunk_size = CHUNK,
		.flags = XDP_UMEM_UNALIGNED_CHUNK_FLAG,
	};
	void *bytes = mmap(
		NULL, REHEARSED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd, ret = 0;

	if (bytes == MAP_FAILED)
		return -errno;
	fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	memory.addr = (uintptr_t)bytes;
	if (fd < 0 || setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &memory, sizeof(memory)) < 0)
		ret = -errno;
	if (fd >= 0)
		close(fd);
	munmap(bytes, REHEARSED_BYTES);
	return ret;
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

int xdp_rehearse(unsigned interface_index, char *why, size_t size)
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
	if (attached == -EBUSY)
		snprintf(why, size, "it has an XDP program already");
	else if (attached < 0 && attached != -EINVAL)
		snprintf(why, size, "no XDP program can be attached: %s", strerror(-attached));
	if (attached >= 0)
		close(attached);
	else if (attached != -EINVAL)
		return attached;
	return rehearse_memory(why, size);
}

static char said[160];

/* Both libraries' levels begin with warnings, 0; the rest is chatter. */
static int keep_line(int level, const char *format, va_list arguments)
{
	char line[sizeof(said)];

	if (level == 0 && vsnprintf(line, sizeof(line), format, arguments) > 0) {
		line[strcspn(line, "\n")] = '\0';
		text_printable(said, sizeof(said), line);
	}
	return 0;
}

/* They come with the driver, a plug-in: in the process, or not. */
static void quiet_library(const char *library, const char *name)
{
	typedef int (*print_fn)(int level, const char *format, va_list arguments);
	typedef print_fn (*set_print_fn)(print_fn print);
	void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
	set_print_fn set_print;

	if (handle == NULL)
		return;
	void *symbol = dlsym(handle, name);

	if (symbol != NULL) {
		memcpy(&set_print, &symbol, sizeof(set_print));
		set_print(keep_line);
	}
	dlclose(handle);
}

void xdp_quiet(void)
{
	said[0] = '\0';
	quiet_library("libbpf.so.1", "libbpf_set_print");
	quiet_library("libxdp.so.1", "libxdp_set_print");
}

const char *xdp_said(void)
{
	return said;
}

typedef void (*descriptor_fn)(struct xdp_left *left, int fd);

static void each_descriptor(struct xdp_left *left, descriptor_fn visit)
{
	DIR *directory = opendir("/proc/self/fd");
	const struct dirent *entry;

	if (directory == NULL)
		return;
	while ((entry = readdir(directory)) != NULL) {
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] != '.' && fd < XDP_MAX_DESCRIPTORS && fd != dirfd(directory))
			visit(left, fd);
	}
	closedir(directory);
}

/* Says what it is, in a way that tells one socket from another; false for all but the driver's. */
static bool is_drivers(int fd, struct xdp_descriptor *found)
{
	char path[40], what[sizeof(found->what)];
	int domain = 0;
	socklen_t size = sizeof(domain);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ssize_t length = readlink(path, what, sizeof(what) - 1);

	if (length < 0)
		return false;
	what[length] = '\0';
	found->fd = fd;
	memcpy(found->what, what, (size_t)length + 1);
	if (strncmp(what, "anon_inode:bpf", 14) == 0)
		return true;
	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_XDP;
}

static void mark_before(struct xdp_left *left, int fd)
{
	left->before[fd / 64] |= UINT64_C(1) << fd % 64;
}

static void add_new(struct xdp_left *left, int fd)
{
	if (left->before[fd / 64] >> fd % 64 & 1 || left->n == XDP_MAX_LEFT)
		return;
	left->n += is_drivers(fd, &left->left[left->n]);
}

void xdp_left_begin(struct xdp_left *left)
{
	memset(left->before, 0, sizeof(left->before));
	each_descriptor(left, mark_before);
	/* one that it closes now may be opened again as something else */
	for (unsigned i = 0; i < left->n; i++)
		left->before[left->left[i].fd / 64] &= ~(UINT64_C(1) << left->left[i].fd % 64);
}

void xdp_left_end(struct xdp_left *left)
{
	each_descriptor(left, add_new);
}

void xdp_left_close(struct xdp_left *left)
{
	struct xdp_descriptor now;

	for (unsigned i = 0; i < left->n; i++)
		if (is_drivers(left->left[i].fd, &now) && strcmp(now.what, left->left[i].what) == 0)
			close(now.fd);
	left->n = 0;
}

#ifdef __SANITIZE_ADDRESS__
/* The driver never frees libxdp's description of a queue's memory: 80 bytes of each. */
const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
	return "leak:xsk_umem__create\n";
}
#endif
