/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/http_history.h"

#define US_PER_MS 1000

static const char *const names[HISTORY_N_COLUMNS] = {
	[HISTORY_TIME_MS] = "time_ms",
	[HISTORY_RECEIVED] = "received",
	[HISTORY_RECEIVED_BYTES] = "received_bytes",
	[HISTORY_OUT] = "out",
	[HISTORY_OUT_BYTES] = "out_bytes",
	[HISTORY_DROPPED] = "dropped",
	[HISTORY_NIC_FORWARDED] = "nic_forwarded",
	[HISTORY_NIC_FORWARDED_BYTES] = "nic_forwarded_bytes",
	[HISTORY_NIC_DROPPED] = "nic_dropped",
	[HISTORY_FLOWS] = "flows",
	[HISTORY_LEARNED] = "new_flows",
};

void http_history_add(struct http_history *history, const struct plane_snapshot *snapshot,
	unsigned n_wires, uint64_t origin_us)
{
	uint64_t *row = history->row[history->n++ % HTTP_HISTORY];
	struct path_counters sum = {0};
	uint64_t flows = 0, learned = 0;

	for (unsigned i = 0; i < n_wires; i++) {
		path_counters_add(&sum, &snapshot->wires[i]);
		flows += snapshot->wire_flows[i];
	}
	for (unsigned i = 0; i < snapshot->n_lcores; i++)
		learned += snapshot->lcores[i].flow.learned;
	row[HISTORY_TIME_MS] = (origin_us + snapshot->now_us) / US_PER_MS;
	row[HISTORY_RECEIVED] = sum.received;
	row[HISTORY_RECEIVED_BYTES] = sum.received_bytes;
	row[HISTORY_OUT] = sum.out;
	row[HISTORY_OUT_BYTES] = sum.out_bytes;
	row[HISTORY_DROPPED] = path_counters_dropped(&sum);
	row[HISTORY_NIC_FORWARDED] = sum.nic_forwarded;
	row[HISTORY_NIC_FORWARDED_BYTES] = sum.nic_forwarded_bytes;
	row[HISTORY_NIC_DROPPED] = sum.nic_dropped;
	row[HISTORY_FLOWS] = flows;
	row[HISTORY_LEARNED] = learned;
}

json_t *http_history_json(const struct http_history *history)
{
	json_t *object = json_object(), *columns = json_array(), *rows = json_array();
	const uint64_t first = history->n > HTTP_HISTORY ? history->n - HTTP_HISTORY : 0;

	for (unsigned i = 0; i < HISTORY_N_COLUMNS; i++)
		json_array_append_new(columns, json_string(names[i]));
	for (uint64_t n = first; n < history->n; n++) {
		json_t *row = json_array();

		for (unsigned i = 0; i < HISTORY_N_COLUMNS; i++)
			json_array_append_new(
				row, json_integer((json_int_t)history->row[n % HTTP_HISTORY][i]));
		json_array_append_new(rows, row);
	}
	json_object_set_new(
		object, "step_ms", json_integer((json_int_t)(HTTP_HISTORY_STEP_US / US_PER_MS)));
	json_object_set_new(object, "columns", columns);
	json_object_set_new(object, "rows", rows);
	return object;
}
