/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* How a router stands with the kernel, for `domain show`. */

#include <jansson.h>

#include "plane/plane.h"

struct host;

/* docs/control.md has the keys. */
json_t *domain_host_describe(struct host *host, const struct plane_config *config, unsigned domain);
