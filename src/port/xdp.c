/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/xdp.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"

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
static bool find_function(const char *library, const char *name, void *function)
{
	void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
	void *symbol = handle != NULL ? dlsym(handle, name) : NULL;

	if (symbol != NULL)
		memcpy(function, &symbol, sizeof(symbol));
	if (handle != NULL)
		dlclose(handle);
	return symbol != NULL;
}

static void quiet_library(const char *library, const char *name)
{
	typedef int (*print_fn)(int level, const char *format, va_list arguments);
	print_fn (*set_print)(print_fn print);

	if (find_function(library, name, &set_print))
		set_print(keep_line);
}

uint32_t xdp_program_id(unsigned interface_index)
{
	int (*query)(int interface_index, int flags, uint32_t *id);
	uint32_t id = 0;

	if (!find_function("libbpf.so.1", "bpf_xdp_query_id", &query) ||
		query((int)interface_index, 0, &id) < 0)
		return 0;
	return id;
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
