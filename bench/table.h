/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Inside of `millrace bench table`: what its files share.
 *
 * A contender is a way of keeping flows: ours, and those it is measured against. All are asked the same
 * by the same calls, a chunk of keys at a time, and the chunk is what is timed: keys and pointers to
 * them are made before. A key is 40 bytes in a cache line of its own, the rest 0, so that each contender
 * finds it in the length that suits it.
 *
 * A contender may have several ways of doing the same, which are measured each; the best counts.
 *
 * Flows begin in the order of their numbers.
 */

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "bench/bench.h"
#include "flow/table.h"

#define TABLE_CHUNK 1024
#define TABLE_BURST 64

/* Churn: bursts of 32 of which three are new, and as many flows end. */
#define TABLE_CHURN_BURST 32
#define TABLE_CHURN_NEW 3
#define TABLE_CHURN_BURSTS 16
#define TABLE_CHURN_CHANGES (TABLE_CHURN_BURSTS * TABLE_CHURN_NEW)

/* Ways of a look-up at most. */
#define TABLE_WAYS 4

/* What a packet adds. */
#define TABLE_PACKET_BYTES 64

struct table_key {
	struct flow_key key;
	uint8_t zero[24];
} __attribute__((aligned(64)));

/* Keys to be asked for, and pointers to them, as both kinds of table take them. */
struct table_chunk {
	struct table_key keys[TABLE_CHUNK];
	const struct flow_key *pointers[TABLE_CHUNK];
};

struct table_churn {
	struct table_chunk chunk;
	struct table_key ended[TABLE_CHURN_CHANGES];
	uint32_t ended_positions[TABLE_CHURN_CHANGES]; /* the same flows */
	uint32_t ended_hashes[TABLE_CHURN_CHANGES];    /* by prepare() */
	uint32_t new_positions[TABLE_CHURN_CHANGES];   /* filled */
};

struct table_config {
	uint32_t flows; /* capacity */
	uint32_t held;	/* flows at most, for which there are records */
	bool brim;	/* all of the capacity will be held */
	bool small_pages;
	bool writers; /* several threads change it */
	const struct hash_secret *secret;
};

struct table_contender {
	const char *name;
	unsigned look_up_ways;
	unsigned update_ways;
	unsigned churn_ways;
	/* Memory that create() will ask for, about. */
	size_t (*needs)(const struct table_config *config);
	/* 0, or a negative errno; after that destroy() does nothing. */
	int (*create)(void **side, const struct table_config *config);
	void (*destroy)(void *side);
	/* Bytes taken by now, records included. */
	size_t (*memory)(const void *side);
	bool (*has)(const void *side, const struct table_key *key);
	/* `n` keys, at most a chunk, in bursts of `burst`. */
	void (*look_up)(void *side, unsigned way, const struct table_chunk *chunk, unsigned n,
		unsigned burst);
	/* The same, and each record is counted on; all keys are there. */
	void (*update)(void *side, unsigned way, const struct table_chunk *chunk, unsigned n,
		unsigned burst, uint64_t now);
	/* Fills the positions of ours. False when one found no room. */
	bool (*insert)(
		void *side, const struct table_chunk *chunk, unsigned n, uint32_t *positions);
	void (*remove)(void *side, const struct table_chunk *chunk, unsigned n);
	/* NULL where flows are removed by their keys only. */
	void (*remove_known)(void *side, const uint32_t *positions, unsigned n);
	/* What is known of flows that end before they do, outside of the time; NULL: nothing more. */
	void (*prepare)(struct table_churn *churn);
	void (*churn)(void *side, unsigned way, struct table_churn *churn, uint64_t now);
};

extern const struct table_contender table_ours;
extern const struct table_contender table_rte_hash;
extern const struct table_contender table_rte_hash_naive;
extern const struct table_contender table_rte_hash_lf;
extern const struct table_contender table_rte_table_hash_ext;

/*
 * Ways of ours: bursts carried on beside one another, which is all of it; one burst after the other; in the
 * order of the packets' way, a burst counted after the next one's lines are asked for; and for the ablation
 * one burst after the other with its hashes made before, and one key after the other.
 */
enum {
	TABLE_OURS_CARRIED,
	TABLE_OURS_ALONE,
	TABLE_OURS_ENGINE,
	TABLE_OURS_APART,
	TABLE_OURS_SINGLE
};

/* Ways of ours to churn: flows end by position, or by key. */
enum { TABLE_OURS_BY_POSITION, TABLE_OURS_BY_KEY };

/* Our table, for who reads its memory otherwise. */
const struct flow_table *table_ours_inside(const void *side);

/* ---- keys (table_keys.c) ---- */

enum table_load { TABLE_UNIFORM, TABLE_ZIPF, TABLE_N_LOADS };

/* "uniform", "zipf" */
const char *table_load_name(enum table_load load);

/*
 * In what order flows are asked for: numbers below `held`, far more than a round asks for. And in what
 * order they end: each once, by chance.
 */
struct table_order {
	uint32_t *number[TABLE_N_LOADS];
	uint32_t *ending;
	uint32_t n_ending;
};

int table_order_create(struct table_order *order, uint32_t held);
void table_order_destroy(struct table_order *order);

/* Numbers of flows that are in no table, beyond those of flows. */
#define TABLE_STRANGER (UINT32_C(1) << 31)

struct table_key table_key_of(uint32_t number);
/* Chunks from an order, at any place, each number plus `first`; of numbers in a row; of churn. */
void table_chunk_point(struct table_chunk *chunk);
void table_chunk_order(struct table_chunk *chunk, const struct table_order *order,
	enum table_load load, uint64_t place, uint32_t first);
void table_chunk_row(struct table_chunk *chunk, uint32_t first, unsigned n);
/* Keys of these numbers plus `first`. */
void table_chunk_of(struct table_chunk *chunk, const uint32_t *numbers, uint32_t first, unsigned n);

/* ---- rounds (table_round.c) ---- */

/* One of the two sides of a row. */
struct table_side {
	const struct table_contender *is;
	void *side;
	uint64_t first;	     /* number of the oldest flow held; keys have the lower half of it */
	uint32_t live;	     /* flows held, with numbers in a row */
	uint32_t *positions; /* of ours: by number modulo `ring` */
	uint32_t ring;
};

/* 0 or a negative errno with `error` set to a line. Destroys what it has made. */
int table_side_create(struct table_side *side, const struct table_contender *is,
	const struct table_config *config, struct error *error);
void table_side_destroy(struct table_side *side);

/* Grows to so many flows; cycles a flow. -1: there was no room. */
double table_fill(struct table_side *side, uint32_t live);
/* Ends all flows, in that order, the oldest first if it is NULL; by position if `known`. Cycles a flow. */
double table_empty(struct table_side *side, const uint32_t *ending, bool known);
/* Ends the oldest until there are so many left. */
void table_shrink(struct table_side *side, uint32_t live);
/* Whether it has the flows that it should, by samples, and no others. */
bool table_side_right(const struct table_side *side);

struct table_look_up {
	const struct table_order *order;
	enum table_load load;
	bool update;
	bool miss;
	unsigned burst;
	unsigned way;
	unsigned round;
};

/* Cycles a key of a round. */
double table_look_ups(struct table_side *side, const struct table_look_up *what);
double table_churns(struct table_side *side, unsigned way, unsigned round);

/* ---- rows ---- */

struct plot;

struct table_bench {
	const struct bench_options *options;
	struct hash_secret secret;
	struct table_order order; /* of the size at hand */
	uint32_t flows;
	uint32_t held; /* 0.875 of them */
	struct table_side ours;
	cpu_set_t processors; /* that there are for threads */
	struct plot *plot;    /* NULL: none is wanted */
	struct error error;
};

static inline bool table_wants(const struct table_bench *bench, const char *measure)
{
	return bench_asked(bench->options->measures, measure);
}

/* A row begun: of this bench's size, against that. */
struct bench_row table_row(const struct table_bench *bench, const char *measure, const char *load,
	const char *against, double goal);
/* Prints it, and adds it to the chart. */
void table_print(struct table_bench *bench, struct bench_row *row);
/* What is being done, on stderr where that is a terminal; NULL: nothing. */
void table_progress(const char *what, const char *against, uint32_t flows, unsigned round);

/* The goal of `lookup_update` at so many flows. */
double table_update_goal(uint32_t flows);
/* Theirs by each of its ways: the best by the lower quartile goes into the row. */
void table_take_best(struct bench_row *row, double rounds[][BENCH_ROUNDS], unsigned ways);
/* Rows of look-ups against `theirs`, one a load; the best of their ways counts. */
void table_look_up_rows(struct table_bench *bench, struct table_side *theirs, const char *measure,
	const struct table_look_up *wanted, double (*goal)(uint32_t flows));
/* All rows of a contender against ours, which is full; ours may be filled anew meanwhile. */
int table_contest(struct table_bench *bench, const struct table_contender *contender);
/* Rows whose tables are others: 4 KB pages; filled to the last; memory (table_variants.c). */
int table_variants(struct table_bench *bench);
/* Our look-up against the machine's limit (table_limit.c). */
int table_limit(struct table_bench *bench);
/* Two threads that insert and delete (table_writers.c). */
int table_writers(struct table_bench *bench);
/* What each trick is worth (table_ablate.c). */
int table_ablate(struct table_bench *bench);
