/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A hash table of things that carry their own link, growing by doubling: for as many as there are classes
 * and groups, not for rules. It owns the table and nothing that is in it. Not thread-safe.
 *
 *	for (struct sim_link *link = sim_links_first(&links, hash); link != NULL; link = link->next)
 *		if (link->hash == hash && ...)
 */

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

struct sim_link {
	struct sim_link *next;
	uint64_t hash;
};

struct sim_links {
	struct sim_link **heads;
	uint32_t n_heads; /* power of two */
	uint32_t n;
};

/* Returns 0 or -ENOMEM. */
static inline int sim_links_init(struct sim_links *links)
{
	*links = (struct sim_links){.heads = calloc(16, sizeof(*links->heads)), .n_heads = 16};
	return links->heads != NULL ? 0 : -ENOMEM;
}

static inline void sim_links_fini(struct sim_links *links)
{
	free(links->heads);
}

/* Those that follow may have another hash. */
static inline struct sim_link *sim_links_first(const struct sim_links *links, uint64_t hash)
{
	return links->heads[hash & (links->n_heads - 1)];
}

static inline void sim_links_put(struct sim_links *links, struct sim_link *link)
{
	struct sim_link **head = &links->heads[link->hash & (links->n_heads - 1)];

	link->next = *head;
	*head = link;
}

/* Without memory for a larger table it stays as it is, and gets slower. */
static inline void sim_links_grow(struct sim_links *links)
{
	struct sim_links larger = {.n_heads = links->n_heads * 2, .n = links->n};

	larger.heads = calloc(larger.n_heads, sizeof(*larger.heads));
	if (larger.heads == NULL)
		return;
	for (uint32_t i = 0; i < links->n_heads; i++)
		while (links->heads[i] != NULL) {
			struct sim_link *link = links->heads[i];

			links->heads[i] = link->next;
			sim_links_put(&larger, link);
		}
	free(links->heads);
	*links = larger;
}

/* link->hash is set. */
static inline void sim_links_add(struct sim_links *links, struct sim_link *link)
{
	if (links->n >= links->n_heads && links->n_heads < 1u << 30)
		sim_links_grow(links);
	sim_links_put(links, link);
	links->n++;
}

/* What is in it. */
static inline void sim_links_remove(struct sim_links *links, struct sim_link *link)
{
	struct sim_link **at = &links->heads[link->hash & (links->n_heads - 1)];

	while (*at != link)
		at = &(*at)->next;
	*at = link->next;
	links->n--;
}
