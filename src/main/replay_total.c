/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/replay_total.h"

#include <time.h>

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void replay_total_start(struct replay_total *total)
{
	*total = (struct replay_total){.begin_ns = monotonic_ns()};
}

void replay_total_resume(struct replay_total *part, const struct replay_total *total)
{
	replay_total_start(part);
	part->before = total->after;
}

void replay_total_count(struct replay_total *total, const struct engine *engine)
{
	engine_counters(engine, &total->after);
	total->end_ns = monotonic_ns();
}

void replay_total_went_back(struct replay_total *total, uint64_t n, uint64_t most_us)
{
	total->n_back += n;
	if (most_us > total->most_back_us)
		total->most_back_us = most_us;
}

/* `drops` is the caller's, DROP_N_REASONS long. */
static struct replay_summary summarize(const struct replay_total *total, const char *name,
	unsigned n_captures, struct summary_drop *drops)
{
	const struct path_counters *path = &total->after.path;
	const struct path_counters *path0 = &total->before.path;
	const struct flow_counters *flow = &total->after.flow;
	const struct flow_counters *flow0 = &total->before.flow;
	struct replay_summary summary = {
		.name = name,
		.n_captures = n_captures,
		.packets = path->received - path0->received,
		.bytes = path->received_bytes - path0->received_bytes,
		.out = path->out - path0->out,
		.drops = drops,
		.n_drops = DROP_N_REASONS,
		.held = total->after.held,
		.non_ip = path->non_ip - path0->non_ip,
		.flows = flow->learned - flow0->learned,
		.flow_packets = flow->packets - flow0->packets,
		.records_lost = total->exported.lost,
		.fragments_untied = path->fragments_untied - path0->fragments_untied,
		.icmp_untied = path->icmp_untied - path0->icmp_untied,
		.tcp_odd = flow->tcp_odd - flow0->tcp_odd,
		.time_back = total->n_back,
		.time_back_most_us = total->most_back_us,
		.seconds = (double)(total->end_ns - total->begin_ns) / 1e9,
	};

	for (unsigned i = 0; i < DROP_N_REASONS; i++) {
		drops[i].name = drop_name((enum drop_reason)i);
		drops[i].count = path->dropped[i] - path0->dropped[i];
	}
	for (unsigned i = 0; i < 256; i++)
		summary.flows_by_protocol[exporter_protocol_of((uint8_t)i)] +=
			flow->learned_by_proto[i] - flow0->learned_by_proto[i];
	for (unsigned i = 0; i < FLOW_N_ENDS; i++) {
		summary.records_by_end[i] = flow->ended[i] - flow0->ended[i];
		summary.records += summary.records_by_end[i];
	}
	return summary;
}

void replay_total_print(const struct replay_total *total, const char *name, unsigned n_captures)
{
	struct summary_drop drops[DROP_N_REASONS];
	struct replay_summary summary = summarize(total, name, n_captures, drops);

	summary_text(stderr, &summary);
}

void replay_total_json(const struct replay_total *total, const char *name, unsigned n_captures,
	const struct flow_report *top, unsigned n_top)
{
	struct summary_drop drops[DROP_N_REASONS];
	struct replay_summary summary = summarize(total, name, n_captures, drops);

	if (summary_json(stderr, &summary, top, n_top) < 0)
		fprintf(stderr, "millrace: no memory for the summary\n");
}
