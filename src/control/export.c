/* SPDX-License-Identifier: BSD-3-Clause */

/* export show: what each export was told, has sent, and has lost. */

#include "control/control.h"
#include "control/verbs.h"
#include "export/exporter.h"

static const char *transport_name(enum export_transport transport)
{
	static const char *const names[EXPORT_N_TRANSPORTS] = {
		[EXPORT_UDP] = "udp",
		[EXPORT_TCP] = "tcp",
		[EXPORT_TLS] = "tls",
		[EXPORT_FILE] = "file",
		[EXPORT_KAFKA] = "kafka",
	};

	return names[transport];
}

static json_t *export_describe(struct export_collector *collector)
{
	const struct export_target *target = export_collector_target(collector);
	struct export_counters counters;
	json_t *line = json_object();

	export_collector_counters(collector, &counters);
	json_object_set_new(line, "to", answer_string(target->text));
	json_object_set_new(
		line, "format", json_string(target->format == EXPORT_JSON ? "json" : "ipfix"));
	json_object_set_new(line, "transport", json_string(transport_name(target->transport)));
	json_object_set_new(line, "up", json_boolean(counters.up));
	answer_number(line, "flows", counters.flows);
	answer_number(line, "filtered", counters.filtered);
	answer_number(line, "records", counters.records);
	answer_number(line, "written", counters.written);
	answer_number(line, "lost", counters.lost);
	answer_number(line, "waiting", counters.waiting);
	answer_number(line, "lost_packets", counters.lost_packets);
	answer_number(line, "lost_octets", counters.lost_octets);
	answer_number(line, "messages", counters.messages);
	answer_number(line, "bytes", counters.bytes);
	answer_number(line, "refused", counters.refused);
	answer_number(line, "sessions", counters.sessions);
	if (counters.why.text[0] != '\0')
		json_object_set_new(line, "last_failure", answer_string(counters.why.text));
	return line;
}

static int show_exports(
	struct answer *answer, const struct request_value *values, struct error *error)
{
	const struct exporter *exporter = answer->control->exporter;
	const unsigned n = exporter == NULL ? 0 : exporter_n_collectors(exporter);
	int ret = 0;

	(void)values;
	for (unsigned i = 0; i < n && ret == 0; i++)
		ret = answer_add(answer, export_describe(exporter_collector(exporter, i)));
	return ret < 0 ? error_set(error, ret, "export show: no memory") : 0;
}

const struct answer_verb export_show = {
	.ask = "export show",
	.begin = show_exports,
};
