/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Samples of dropped packets, for those who follow them. */

#include "control/control.h"

/* Fetches samples of dropped packets for those who follow them. True while somebody does. */
bool drops_poll(struct control *control);
