/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Aligned columns without looking ahead: each has its place, chosen for what it usually holds. A cell
 * that is too long is never cut; it moves those after it, which find back to their places as soon as
 * there is room.
 */

#include <stdbool.h>
#include <stdio.h>

struct table_column {
	const char *title;
	unsigned width;
	bool right; /* numbers */
};

struct table {
	FILE *out;
	const struct table_column *columns;
	unsigned gap;	/* blanks between two columns when all is well */
	unsigned next;	/* column of the next cell */
	unsigned place; /* where it begins when nothing is too long */
	unsigned at;	/* characters written on this line */
};

/* The columns stay the caller's. */
void table_init(struct table *table, FILE *out, const struct table_column *columns);
/* One blank between columns, where two leave them too little room. Before the titles. */
void table_narrow(struct table *table);
/* A line of the first `n` titles. */
void table_titles(struct table *table, unsigned n);
void table_cell(struct table *table, const char *text);
/* Ends the row. */
void table_end(struct table *table);
