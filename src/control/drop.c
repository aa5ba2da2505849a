/* SPDX-License-Identifier: BSD-3-Clause */

/* drop show: packets that ended here, by reason and wire. */

#include "control/control.h"
#include "control/verbs.h"

static json_t *drops_describe(
	const struct plane_snapshot *snapshot, unsigned n_wires, unsigned reason)
{
	json_t *wires = json_array();
	uint64_t sum = 0;

	for (unsigned i = 0; i < n_wires; i++) {
		uint64_t packets = snapshot->wires[i].dropped[reason];

		json_array_append_new(wires, json_integer((json_int_t)packets));
		sum += packets;
	}
	return json_pack("{s:s, s:I, s:s, s:o}", "reason", drop_name((enum drop_reason)reason),
		"packets", (json_int_t)sum, "what", drop_what((enum drop_reason)reason), "wires",
		wires);
}

static int show_drops(
	struct answer *answer, const struct request_value *values, struct error *error)
{
	unsigned n_wires = plane_config(answer->plane)->topology.n_domains;
	int ret = show_snapshot(answer, error);

	(void)values;
	if (ret < 0)
		return ret;
	for (unsigned i = 0; i < DROP_N_REASONS && ret == 0; i++)
		ret = answer_add(answer, drops_describe(&answer->control->snapshot, n_wires, i));
	return ret < 0 ? control_silent(error, ret, "drop show") : 0;
}

const struct answer_verb drop_show = {
	.ask = "drop show",
	.begin = show_drops,
};
