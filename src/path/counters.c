/* SPDX-License-Identifier: BSD-3-Clause */
#include "path/counters.h"

#include <stddef.h>

static const char *const drop_names[DROP_N_REASONS] = {
	[DROP_MALFORMED] = "malformed",
	[DROP_TCP_WINDOW] = "tcp_window",
	[DROP_OUTPUT] = "output",
};

const char *drop_name(enum drop_reason reason)
{
	return drop_names[reason];
}

void path_counters_add(struct path_counters *sum, const struct path_counters *counters)
{
	sum->received += counters->received;
	sum->received_bytes += counters->received_bytes;
	sum->non_ip += counters->non_ip;
	sum->out += counters->out;
	sum->out_bytes += counters->out_bytes;
	for (unsigned i = 0; i < DROP_N_REASONS; i++)
		sum->dropped[i] += counters->dropped[i];
	sum->fragments_untied += counters->fragments_untied;
	sum->icmp_untied += counters->icmp_untied;
}

uint64_t path_counters_dropped(const struct path_counters *counters)
{
	uint64_t dropped = 0;

	for (unsigned i = 0; i < DROP_N_REASONS; i++)
		dropped += counters->dropped[i];
	return dropped;
}
