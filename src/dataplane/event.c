/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/event.h"

const char *path_event_name(enum path_event_kind kind)
{
	static const char *const names[PATH_EVENT_N_KINDS] = {
		[PATH_EVENT_FLOW_NEW] = "flow_new",
		[PATH_EVENT_FLOW_OPEN] = "flow_open",
		[PATH_EVENT_FLOW_CLOSING] = "flow_closing",
		[PATH_EVENT_FLOW_BLOCKED] = "flow_blocked",
		[PATH_EVENT_FLOW_UNBLOCKED] = "flow_unblocked",
		[PATH_EVENT_FLOW_END] = "flow_end",
		[PATH_EVENT_SHARDING_FALLBACK] = "sharding_fallback",
		[PATH_EVENT_SHARDING_RETRY] = "sharding_retry",
		[PATH_EVENT_CROWDED] = "worker_crowded",
		[PATH_EVENT_CHECKSUM_OFFLOAD] = "checksum_offload",
		[PATH_EVENT_FRAMES_CUT] = "frames_cut",
		[PATH_EVENT_FRAMES_TOO_LONG] = "frames_too_long",
		[PATH_EVENT_FRAMES_REFUSED] = "frames_refused",
		[PATH_EVENT_OFFLOAD] = "offload",
	};

	return names[kind];
}
