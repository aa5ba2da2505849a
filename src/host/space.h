/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Network namespaces, in which threads are. */

#include "base/error.h"

/*
 * The calling thread goes to a network namespace for good: `space` is a name as `ip netns` knows it, or a path with a slash.
 * 0, or a negative errno with a line.
 */
int space_enter(const char *space, struct error *error);
