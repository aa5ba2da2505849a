/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/mapping.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE ((size_t)2 << 20)
/* Taken at a time, in a fraction of a second. */
#define PIECE ((size_t)64 << 20)

static _Thread_local struct {
	bool (*stop)(void *context);
	void *context;
} asking;

void mapping_ask(bool (*stop)(void *context), void *context)
{
	asking.stop = stop;
	asking.context = context;
}

static size_t round_up(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (size + page - 1) & ~(page - 1);
}

static void *map(size_t size)
{
	void *mapping =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return mapping == MAP_FAILED ? NULL : mapping;
}

/*
 * The kernel backs only aligned 2 MB stretches with large pages, and older ones align no mapping for
 * that: map a page more than asked for and give back what stands out at both ends.
 */
static void *map_aligned(size_t size)
{
	if (size > SIZE_MAX - HUGE_PAGE) {
		errno = ENOMEM;
		return NULL;
	}
	char *mapping = map(size + HUGE_PAGE);

	if (mapping == NULL)
		return NULL;
	size_t before = -(uintptr_t)mapping & (HUGE_PAGE - 1);

	if (before != 0)
		munmap(mapping, before);
	munmap(mapping + before + size, HUGE_PAGE - before);
	return mapping + before;
}

/* After the advice, not by MAP_POPULATE: that would take small pages before the kernel is told. */
static int populate_piece(void *mapping, size_t size)
{
#ifdef MADV_POPULATE_WRITE
	if (madvise(mapping, size, MADV_POPULATE_WRITE) == 0)
		return 0;
	if (errno != EINVAL)
		return -1;
#endif
	/* before Linux 5.14 */
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t at = 0; at < size; at += page)
		((volatile char *)mapping)[at] = 0;
	return 0;
}

static int populate(void *mapping, size_t size)
{
	for (size_t at = 0; at < size; at += PIECE) {
		if (asking.stop != NULL && asking.stop(asking.context)) {
			errno = EINTR;
			return -1;
		}
		if (populate_piece((char *)mapping + at, size - at < PIECE ? size - at : PIECE) !=
			0)
			return -1;
	}
	return 0;
}

void *mapping_create(size_t size, unsigned flags)
{
	if (size == 0) {
		errno = EINVAL;
		return NULL;
	}
	if (size > SIZE_MAX / 2) {
		errno = ENOMEM;
		return NULL;
	}
	size = round_up(size);
	void *mapping = flags & MAPPING_HUGE ? map_aligned(size) : map(size);

	if (mapping == NULL)
		return NULL;
	/* advice: a kernel without it is no error */
	if (flags & MAPPING_SMALL)
		madvise(mapping, size, MADV_NOHUGEPAGE);
	else if (flags & MAPPING_HUGE)
		madvise(mapping, size, MADV_HUGEPAGE);
	if ((flags & MAPPING_POPULATE) && populate(mapping, size) != 0) {
		int code = errno;

		munmap(mapping, size);
		/* EFAULT and EHWPOISON are the kernel's words for pages it could not get either */
		errno = code == EAGAIN || code == EFAULT ? ENOMEM : code;
		return NULL;
	}
	return mapping;
}

void mapping_destroy(void *mapping, size_t size)
{
	if (mapping != NULL)
		munmap(mapping, round_up(size));
}
