/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/exports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/text.h"

/* After so long without any the trouble is over. */
#define CALM_US UINT64_C(2000000)

static void clear(struct exports *exports)
{
	free(exports->targets);
	exports->targets = NULL;
	exports->n = 0;
	exports->from_file = false;
}

void exports_fini(struct exports *exports)
{
	clear(exports);
}

int exports_add(struct exports *exports, const char *where, const char *value, struct error *error)
{
	struct export_target target, *targets;
	struct error said;
	char word[OPTION_WORD_MAX];

	if (strcmp(value, "none") == 0) {
		clear(exports);
		return 0;
	}
	if (exports->n == EXPORTS_MAX)
		return option_bad_value(where, value, "there can be 128 exports at most", error);
	if (!option_is_line(value))
		return option_bad_value(where, value, "control characters are not taken", error);
	if (export_target_parse(&target, value, &said) < 0)
		return error_set(error, -EINVAL, "%s %s: %.300s", where,
			text_printable(word, sizeof(word), value), said.text);
	targets = realloc(exports->targets, (exports->n + 1) * sizeof(*targets));
	if (targets == NULL)
		return error_set(error, -ENOMEM, "no memory for the configuration");
	exports->targets = targets;
	exports->targets[exports->n++] = target;
	return 0;
}

int exports_open(const struct exports *exports, const struct export_ports *ports,
	export_patience *patience, struct export_collector **collectors, struct error *error)
{
	unsigned n = 0;
	int ret = 0;

	for (; ret == 0 && n < exports->n; n++) {
		struct export_target target = exports->targets[n];

		if (patience != NULL && target.rate == 0 && target.transport == EXPORT_UDP)
			target.rate = EXPORTS_REPLAY_RATE;
		ret = export_collector_open(&collectors[n], &target, ports, patience, error);
	}
	if (ret < 0)
		for (unsigned i = 0; i + 1 < n; i++)
			export_collector_close(collectors[i]);
	return ret;
}

bool exports_tell(struct export_collector *const *collectors, unsigned n, FILE *stream)
{
	char written[TEXT_NUMBER_MAX], lost[TEXT_NUMBER_MAX], refused[TEXT_NUMBER_MAX];
	char name[EXPORT_TARGET_MAX];
	bool any = false;

	for (unsigned i = 0; i < n; i++) {
		const struct export_target *target = export_collector_target(collectors[i]);
		struct export_counters counters;

		export_collector_counters(collectors[i], &counters);
		any |= counters.lost != 0;
		fprintf(stream, "%s: %s records sent",
			text_printable(name, sizeof(name), target->text),
			text_grouped(written, counters.written));
		if (counters.lost != 0)
			fprintf(stream, ", %s lost", text_grouped(lost, counters.lost));
		if (counters.refused != 0)
			fprintf(stream, "; %s times nobody listened",
				text_grouped(refused, counters.refused));
		if (counters.lost != 0 && counters.why.text[0] != '\0')
			fprintf(stream, " (%s)", counters.why.text);
		fputc('\n', stream);
	}
	return any;
}

static void look_at_export(struct export_collector *collector, struct exports_news *news,
	uint64_t now_us, void (*tell)(void *context, const char *line), void *context)
{
	char name[128], number[TEXT_NUMBER_MAX], line[768];
	struct export_counters counters;

	export_collector_counters(collector, &counters);
	text_printable(name, sizeof(name), export_collector_target(collector)->text);
	if (counters.lost != news->lost) {
		if (news->trouble_us == 0) {
			news->lost_before = news->lost;
			snprintf(line, sizeof(line), "%s: records are being lost: %s", name,
				counters.why.text[0] != '\0'
					? counters.why.text
					: "it takes them more slowly than they come");
			tell(context, line);
		}
		news->trouble_us = now_us;
		news->lost = counters.lost;
	} else if (news->trouble_us != 0 && now_us - news->trouble_us >= CALM_US) {
		snprintf(line, sizeof(line), "%s: no more records are lost; %s were", name,
			text_grouped(number, counters.lost - news->lost_before));
		tell(context, line);
		news->trouble_us = 0;
	}
}

void exports_look(struct export_collector *const *collectors, unsigned n, struct exports_news *news,
	uint64_t now_us, void (*tell)(void *context, const char *line), void *context)
{
	for (unsigned i = 0; i < n; i++)
		look_at_export(collectors[i], &news[i], now_us, tell, context);
}
