/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Rules, one by one. */

#include "control/control.h"

/* Frees what removed rules have, as soon as no flow has them. */
void rules_tend(struct control *control);
