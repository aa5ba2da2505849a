/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/mailbox.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ring.h>
#include <rte_ring_elem.h>

struct mailbox {
	struct rte_ring *ring;
	unsigned element_size;
};

struct mailbox *mailbox_create(const char *name, size_t element_size, unsigned count)
{
	if (element_size == 0 || element_size % 4 != 0 || element_size > UINT16_MAX || count == 0 ||
		count > RTE_RING_SZ_MASK / 2) {
		errno = EINVAL;
		return NULL;
	}
	/* the ring's own size: a power of two that holds `count` and the one place left empty */
	unsigned places = rte_align32pow2(count + 1);
	ssize_t size = rte_ring_get_memsize_elem((unsigned)element_size, places);
	struct mailbox *mailbox = calloc(1, sizeof(*mailbox));

	if (!mailbox || size < 0)
		goto err_free;
	mailbox->element_size = (unsigned)element_size;
	mailbox->ring = aligned_alloc(
		RTE_CACHE_LINE_SIZE, RTE_ALIGN_CEIL((size_t)size, (size_t)RTE_CACHE_LINE_SIZE));
	if (!mailbox->ring)
		goto err_free;
	memset(mailbox->ring, 0, (size_t)size); /* all of it is taken now */

	/* a longer name is an error to the ring; here it is a comment */
	char short_name[RTE_RING_NAMESIZE] = "";

	memcpy(short_name, name, strnlen(name, sizeof(short_name) - 1));
	if (rte_ring_init(mailbox->ring, short_name, count,
		    RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ) < 0)
		goto err_free;
	return mailbox;

err_free:
	mailbox_destroy(mailbox);
	errno = ENOMEM;
	return NULL;
}

unsigned mailbox_push(struct mailbox *mailbox, const void *elements, unsigned n)
{
	return rte_ring_sp_enqueue_burst_elem(
		mailbox->ring, elements, mailbox->element_size, n, NULL);
}

unsigned mailbox_pop(struct mailbox *mailbox, void *elements, unsigned max)
{
	return rte_ring_sc_dequeue_burst_elem(
		mailbox->ring, elements, mailbox->element_size, max, NULL);
}

/* As rte_ring_count(), which reads what another thread writes as if it were its own. */
unsigned mailbox_count(const struct mailbox *mailbox)
{
	const struct rte_ring *ring = mailbox->ring;
	uint32_t out = __atomic_load_n(&ring->cons.tail, __ATOMIC_ACQUIRE);
	uint32_t in = __atomic_load_n(&ring->prod.tail, __ATOMIC_ACQUIRE);
	uint32_t count = (in - out) & ring->mask;

	return count < ring->capacity ? count : ring->capacity;
}

unsigned mailbox_room(const struct mailbox *mailbox)
{
	return mailbox->ring->capacity - mailbox_count(mailbox);
}

void mailbox_destroy(struct mailbox *mailbox)
{
	if (!mailbox)
		return;
	free(mailbox->ring);
	free(mailbox);
}
