/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The pipeline: a burst of packets goes through
 *	parse (or mark) -> lookup -> account -> learn -> act -> tx
 *
 * It has two entries. A worker that runs to completion parses the packets that it receives without a note in them, as
 * long as they are whole packets of flows that belong here: pipeline_begin(). From the first packet on that is anything
 * else (a fragment, an ICMP error, no IP, a kind that RSS does not bring here) the burst is left to the parser
 * (dataplane/parse.h), so that the packets of a flow keep their order. Packets that were parsed before enter at lookup:
 * pipeline_resume(). Those are handed off by another lcore, were held back, or come from a capture.
 *
 * With a table larger than the nearest caches a burst is begun, and finished when the next one is begun: while the
 * records of the one come from memory, the headers of the other are read. At most one burst waits so, and no longer
 * than the iteration.
 *
 * The stages up to account are compiled once per SIMD level, without marks (pipeline_plain.c) and with them
 * (pipeline_marked.c): there a packet with a mark that names a flow of this worker needs no lookup, and the common one is
 * read only to be compared with the record's key. While no flow of a domain has a slot and no packet of a burst a
 * mark, the burst goes the way without.
 *
 * An lcore's own thread.
 */

#include <stdbool.h>

#include "dataplane/burst.h"
#include "dataplane/lcore.h"

/* The stages up to account, compiled for one SIMD level. */
struct pipeline_level {
	unsigned (*begin)(struct lcore *lcore, const struct lcore_rx *rx, unsigned n);
	void (*finish)(struct lcore *lcore);
	/* looks up and accounts pipeline.resumed, and ends it */
	void (*resume)(struct lcore *lcore, uint64_t flows, bool slow);
};

struct pipeline {
	const struct pipeline_level *level;
	unsigned next; /* which of the two bursts is begun next */
	bool waits;    /* the other one is to be finished */
	/* with marks: the one that waits went the way without (pipeline_marked.c) */
	bool unmarked;
	bool last_tcp; /* the last packet with a mark was of TCP, as the next ones may be */
	bool mixed;    /* the last burst that was sorted had packets with and without marks */
	struct burst burst[2];
	struct burst resumed;
};

/* Without marks, and with them. */
extern const struct pipeline_level pipeline_plain_portable, pipeline_marked_portable;
#ifdef __x86_64__
extern const struct pipeline_level pipeline_plain_sse42, pipeline_marked_sse42;
extern const struct pipeline_level pipeline_plain_avx2, pipeline_marked_avx2;
extern const struct pipeline_level pipeline_plain_avx512, pipeline_marked_avx512;
#endif

/* Makes the pipeline of an lcore with a shard; `marks`: it has an agent. Returns 0 or -ENOMEM. */
int pipeline_create(struct pipeline **pipeline, const struct hash_secret *secret, bool marks);
/* Accepts NULL. No burst may be waiting. */
void pipeline_destroy(struct pipeline *pipeline);

/* Whether packets of that queue may begin here now. */
static inline bool pipeline_may(const struct lcore *lcore, const struct lcore_rx *rx)
{
	const struct worker *worker = &lcore->worker;

	/* a follower hears of each change of phase, and that is seen packet by packet */
	return lcore->pipeline != NULL && !worker->follow && lcore->tx[rx->from.peer].own &&
	       (worker->steer.n_shards == 1 || rx->from.trusted != 0);
}

/* Where the packets of the next burst are to be received, LCORE_BURST at most: nobody copies them. */
struct rte_mbuf **pipeline_room(struct lcore *lcore);

/*
 * Takes packets from the front of the burst in pipeline_room(), and says how many: received and counted, they are the
 * lcore's no longer, and wait for pipeline_finish(). The rest stays there for the parser, after pipeline_finish().
 */
unsigned pipeline_begin(struct lcore *lcore, const struct lcore_rx *rx, unsigned n);

/* Finishes the burst that waits, if any. */
void pipeline_finish(struct lcore *lcore);

/*
 * Takes `n` parsed packets and notes, at most LCORE_BURST, in order; all of them are the lcore's. A burst is what
 * came at the same time of the clock by the same port; a note ends the burst before it, and a packet that was held
 * back, which came before it was let go, is a burst of its own.
 */
void pipeline_resume(struct lcore *lcore, struct rte_mbuf **packets, unsigned n);

/* The stages after account, for a burst that has been accounted. */
void pipeline_end(struct lcore *lcore, struct burst *burst, struct outcome *outcome);

/*
 * Time passes, and flows end, before a burst's records are looked for; where there is an agent it hears of those that
 * have ended.
 */
static inline void pipeline_pass_time(struct lcore *lcore, uint64_t now_us)
{
	struct flow_shard *shard = lcore->worker.shard;

	/* all bursts of an iteration have one time */
	if (likely(now_us <= shard->now_us && !shard->behind && shard->n_reports == 0))
		return;
	flow_shard_advance(shard, now_us);
	if (lcore->worker.agent != NULL)
		flow_shard_flush(shard);
}

/*
 * A worker without ports or a thread of its own: packets enter by pipeline_resume(), and what goes out is counted. For
 * replay. The caller makes its shard. Returns 0 or -ENOMEM.
 */
int pipeline_init_portless(struct lcore *lcore, unsigned number, const struct hash_secret *secret);
/* Mirrors it, and destroys the shard; accepts one that is all zeros. */
void pipeline_fini_portless(struct lcore *lcore);
