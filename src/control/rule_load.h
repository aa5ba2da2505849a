/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Whole lists of rules. */

#include "control/control.h"

/* Sees how far a list has come that replaced another, and goes back where that was not confirmed. */
void policy_begin_control(struct control *control);
void policy_tend(struct control *control);
/* Forgets what was sent. */
void staged_drop(struct control_staged *staged);
