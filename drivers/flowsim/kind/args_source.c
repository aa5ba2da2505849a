/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments of streams: what packets look like and in which order they come. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>

#include "drivers/flowsim/kind/args_parts.h"

int sim_args_size(struct sim_args *args, const char *word, const char *text, struct error *error)
{
	const char *dash = strchr(text, '-');
	uint64_t low, high;
	char first[24];
	int ret;

	args->streams.imix = strcmp(text, "imix") == 0;
	if (args->streams.imix)
		return 0;
	snprintf(first, sizeof(first), "%.*s", dash != NULL ? (int)(dash - text) : 23, text);
	ret = sim_args_number(word, first, STREAM_MIN_BYTES, STREAM_MAX_BYTES, &low, error);
	high = low;
	if (ret == 0 && dash != NULL)
		ret = sim_args_number(word, dash + 1, low, STREAM_MAX_BYTES, &high, error);
	if (ret < 0)
		return error_set(error, ret,
			"%s=%s: \"imix\", a number from %u to %u, or two: 64-1500", word, text,
			STREAM_MIN_BYTES, STREAM_MAX_BYTES);
	args->streams.size_min = (uint16_t)low;
	args->streams.size_max = (uint16_t)high;
	return 0;
}

int sim_args_proto(struct sim_args *args, const char *word, const char *text, struct error *error)
{
	static const char *const protos[] = {
		[STREAM_UDP] = "udp",
		[STREAM_TCP] = "tcp",
		[STREAM_SCTP] = "sctp",
		[STREAM_ICMP] = "icmp",
		[STREAM_N_PROTOS] = "mix",
	};
	/* mostly TCP, as it is in most places */
	static const uint16_t mix[STREAM_N_PROTOS] = {
		[STREAM_UDP] = 80, [STREAM_TCP] = 160, [STREAM_SCTP] = 8, [STREAM_ICMP] = 8};
	unsigned chosen = 0;
	int ret = sim_args_choice(word, text, protos, RTE_DIM(protos), &chosen, error);

	if (ret < 0)
		return ret;
	memset(args->streams.proto_share, 0, sizeof(args->streams.proto_share));
	if (chosen == STREAM_N_PROTOS)
		memcpy(args->streams.proto_share, mix, sizeof(mix));
	else
		args->streams.proto_share[chosen] = 256;
	return 0;
}

int sim_args_load(struct sim_args *args, const char *word, const char *text, struct error *error)
{
	struct error inner;

	if (sequence_load_parse(&args->sequence, text, &inner) == 0)
		return 0;
	return error_set(error, -EINVAL, "%s=%s: %.400s", word, text, inner.text);
}
