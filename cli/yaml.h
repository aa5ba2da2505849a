/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * JSON as YAML in block style, such as a configuration file has: what YAML might take for something
 * else than a string stands in quotes, and nothing but printable characters is written.
 */

#include <stdio.h>

#include <jansson.h>

void yaml_write(FILE *out, const json_t *value);
