/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The filter that is typed in `millrace top`, in the words of `flow list`. */

#include <jansson.h>

#include "base/error.h"

/*
 * "proto tcp port 443", with dashes or without; a word alone may be an address, a prefix or a protocol. Returns the keys
 * for the request "flow list", for the caller to release; NULL with a line where a word is wrong.
 */
json_t *top_filter_parse(const char *text, struct error *error);
