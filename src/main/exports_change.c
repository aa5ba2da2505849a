/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/exports_change.h"

#include <errno.h>
#include <string.h>

/* The exporter's collector of that target, which no other target has been given; or NULL. */
static struct export_collector *in_use(
	const struct exports_change *change, const struct export_target *target, bool *taken)
{
	const struct exporter *exporter = change->use.exporter;

	for (unsigned i = 0; i < exporter_n_collectors(exporter); i++) {
		struct export_collector *collector = exporter_collector(exporter, i);

		if (taken[i] || strcmp(export_collector_target(collector)->text, target->text) != 0)
			continue;
		taken[i] = true;
		return collector;
	}
	return NULL;
}

void exports_change_find(struct exports_change *change, const struct exports_in_use *use)
{
	bool taken[EXPORTS_MAX] = {false};

	*change = (struct exports_change){.use = *use, .n = use->exports->n};
	for (unsigned i = 0; i < change->n; i++) {
		change->collectors[i] = in_use(change, &use->exports->targets[i], taken);
		change->n_new += change->collectors[i] == NULL;
	}
	change->n_gone = exporter_n_collectors(use->exporter) - (change->n - change->n_new);
}

/* Those that were opened for this change. */
static void close_new(struct exports_change *change)
{
	for (unsigned i = 0; i < change->n; i++) {
		if (change->opened[i])
			export_collector_close(change->collectors[i]);
		change->opened[i] = false;
	}
}

static int open_new(struct exports_change *change, struct error *error)
{
	const struct export_ports ports = {
		.topology = *change->use.ports, .names = change->use.names};

	for (unsigned i = 0; i < change->n; i++) {
		if (change->collectors[i] != NULL)
			continue;
		int ret = export_collector_open(&change->collectors[i],
			&change->use.exports->targets[i], &ports, NULL, error);

		if (ret < 0) {
			change->collectors[i] = NULL;
			return ret;
		}
		change->opened[i] = true;
	}
	return 0;
}

int exports_change_open(struct exports_change *change, struct error *error)
{
	if (change->n_new == 0 && change->n_gone == 0)
		return 0;
	int ret = open_new(change, error);

	if (ret == 0) {
		change->change =
			exporter_change_make(change->use.exporter, change->collectors, change->n);
		if (change->change == NULL)
			ret = error_set(error, -ENOMEM, "no memory for exports");
	}
	if (ret < 0)
		close_new(change);
	return ret;
}

void exports_change_begin(struct exports_change *change)
{
	if (change->change != NULL)
		exporter_change_begin(change->use.exporter, change->change);
	change->change = NULL;
	memset(change->opened, 0, sizeof(change->opened));
}

void exports_change_drop(struct exports_change *change)
{
	exporter_change_drop(change->change);
	change->change = NULL;
	close_new(change);
}
