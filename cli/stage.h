/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "cli/client.h"

/* A file that a request is about, and how it is sent. */
struct cli_stage {
	const char *ask;  /* the request that takes a piece: "rule stage" */
	const char *path; /* "-": standard input */
	bool exact; /* every byte counts, since it is to be written somewhere: else what is no text becomes '?' */
	size_t most; /* bytes; 0: the engine knows */
};

/*
 * Sends it to the engine, for the request that follows on the same connection. 0 or a negative errno with a line: -EILSEQ
 * where it is exact, and has something that is no text.
 */
int cli_stage_file(struct cli_client *client, const struct cli_stage *stage, struct error *error);
