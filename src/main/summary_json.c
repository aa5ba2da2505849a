/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/summary.h"

#include <errno.h>
#include <jansson.h>

#include "export/json.h"

static json_t *count(uint64_t number)
{
	return json_integer((json_int_t)number);
}

static json_t *drops_by_reason(const struct replay_summary *summary)
{
	json_t *object = json_object();

	for (unsigned i = 0; i < summary->n_drops; i++)
		json_object_set_new(object, summary->drops[i].name, count(summary->drops[i].count));
	return object;
}

static json_t *flows_by_protocol(const struct replay_summary *summary)
{
	json_t *object = json_object();

	for (unsigned i = 0; i < EXPORTER_N_PROTOCOLS; i++)
		json_object_set_new(object, exporter_protocol_name((enum exporter_protocol)i),
			count(summary->flows_by_protocol[i]));
	return object;
}

static json_t *records_by_end(const struct replay_summary *summary)
{
	json_t *object = json_object();

	for (unsigned i = 0; i < FLOW_N_ENDS; i++)
		json_object_set_new(
			object, flow_end_name((enum flow_end)i), count(summary->records_by_end[i]));
	return object;
}

/* The records as the output has them, without the name of their capture. */
static json_t *records(const struct flow_report *top, unsigned n)
{
	json_t *list = json_array();
	char line[EXPORT_JSON_MAX];

	for (unsigned i = 0; i < n; i++) {
		size_t length = export_json_line(line, &top[i], NULL, true);

		json_array_append_new(list, json_loadb(line, length, 0, NULL));
	}
	return list;
}

static void set_counts(json_t *object, const struct replay_summary *summary)
{
	const struct {
		const char *key;
		uint64_t number;
	} counts[] = {
		{"captures", summary->n_captures},
		{"packets", summary->packets},
		{"bytes", summary->bytes},
		{"out", summary->out},
		{"delivered", summary->delivered},
		{"held", summary->held},
		{"non_ip", summary->non_ip},
		{"flows", summary->flows},
		{"flow_packets", summary->flow_packets},
		{"records", summary->records},
		{"records_lost", summary->records_lost},
		{"fragments_untied", summary->fragments_untied},
		{"icmp_untied", summary->icmp_untied},
		{"tcp_outside_window", summary->tcp_odd},
		{"time_back", summary->time_back},
		{"time_back_us", summary->time_back_most_us},
	};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		json_object_set_new(object, counts[i].key, count(counts[i].number));
}

int summary_json(FILE *stream, const struct replay_summary *summary, const struct flow_report *top,
	unsigned n_top)
{
	json_t *object = json_object();
	int ret = 0;

	/* jansson passes a NULL through and reports it by the last of the calls on its way */
	set_counts(object, summary);
	json_object_set_new(object, "dropped", drops_by_reason(summary));
	json_object_set_new(object, "flows_by_protocol", flows_by_protocol(summary));
	json_object_set_new(object, "ended", records_by_end(summary));
	json_object_set_new(object, "seconds", json_real(summary->seconds));
	if (top)
		json_object_set_new(object, "top", records(top, n_top));
	if (!object || json_dumpf(object, stream, JSON_COMPACT | JSON_REAL_PRECISION(6)) < 0)
		ret = -ENOMEM;
	else
		fputc('\n', stream);
	json_decref(object);
	return ret;
}
