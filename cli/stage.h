/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "cli/client.h"

/*
 * Sends a file to the engine, in requests `rule stage`, for the request that follows on the same connection. `path` is "-" for
 * standard input. 0 or a negative errno with a line.
 */
int cli_stage_file(struct cli_client *client, const char *path, struct error *error);
