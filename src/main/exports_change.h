/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Other exports for a running exporter: those that are said in the same words stay as they are, new ones are opened before any
 * is closed, and no record is lost between two.
 *
 * exports_change_find(), exports_change_open(), which may fail; then exports_change_begin(). exports_change_drop() in any
 * case, which closes what was opened for nothing. One thread's, control's.
 */

#include "base/topology.h"
#include "export/exporter.h"
#include "main/exports.h"

struct exports_in_use {
	struct exporter *exporter;
	const struct topology *ports;
	const char *const *names;      /* of the ports */
	const struct exports *exports; /* that are wanted */
};

struct exports_change {
	struct exports_in_use use;
	struct export_collector *collectors[EXPORTS_MAX]; /* NULL: it is to be opened */
	bool opened[EXPORTS_MAX];
	unsigned n, n_new, n_gone;
	struct exporter_change *change; /* NULL: nothing differs, or it was not opened yet */
};

void exports_change_find(struct exports_change *change, const struct exports_in_use *use);
/* 0 or a negative errno with a line, and none is left open. */
int exports_change_open(struct exports_change *change, struct error *error);
void exports_change_begin(struct exports_change *change);
void exports_change_drop(struct exports_change *change);
