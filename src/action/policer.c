/* SPDX-License-Identifier: BSD-3-Clause */
#include "action/policer.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define NS_PER_S UINT64_C(1000000000)

static int limit_set(struct policer *policer, enum policer_rate which,
	const struct policer_limit *limit, const char *name, struct error *error)
{
	unsigned __int128 depth;

	if (limit->rate == 0 || limit->rate > POLICER_MAX_RATE)
		return error_set(error, -EINVAL,
			"policer: %s rate %" PRIu64 ": it has to be 1 to %" PRIu64 " a second",
			name, limit->rate, POLICER_MAX_RATE);
	if (limit->burst == 0)
		return error_set(
			error, -EINVAL, "policer: %s burst 0: no packet would ever pass", name);
	policer->unit_time[which] =
		(uint64_t)((((unsigned __int128)NS_PER_S << 32) + limit->rate / 2) / limit->rate);
	/* rounded up: a packet as large as the burst passes */
	depth = ((unsigned __int128)policer->unit_time[which] * limit->burst + 0xffff) >> 16;
	if (depth > (unsigned __int128)POLICER_MAX_BURST_NS << 16)
		return error_set(error, -EINVAL,
			"policer: %s burst %" PRIu64 " takes longer than 39 hours at %" PRIu64
			" a second",
			name, limit->burst, limit->rate);
	policer->depth[which] = (uint64_t)depth;
	return 0;
}

int policer_init(
	struct policer *policer, const struct policer_options *options, struct error *error)
{
	struct policer made = {
		.packets = options->packets,
		.two_rates = options->committed.rate != 0,
	};
	int code = limit_set(
		&made, POLICER_PEAK, &options->peak, made.two_rates ? "peak" : "the", error);

	if (code == 0 && made.two_rates)
		code = limit_set(&made, POLICER_COMMITTED, &options->committed, "committed", error);
	if (code == 0 && made.two_rates && options->committed.rate > options->peak.rate)
		code = error_set(error, -EINVAL,
			"policer: committed rate %" PRIu64 " is above the peak rate %" PRIu64,
			options->committed.rate, options->peak.rate);
	if (code == 0)
		*policer = made;
	return code;
}
