/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What `millrace top --json` prints (docs/top.md). */

#include <jansson.h>

#include "cli/top_picture.h"

/* A new object: the engine's lines, and their rates, which are absent where they are not known. */
json_t *top_json(const struct top_picture *picture, const json_t *greeting);
