/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The device behind a port that takes over another one (packets/pump.h). */

#include <stdint.h>

#include "base/error.h"

#define SIM_DEVICE_NAME 64

/*
 * The ethdev that the argument `port=` names; one in brackets is made, and its name told: else `made` stays empty. 0 or a
 * negative errno with a line.
 */
int sim_device_find(
	const char *text, char made[SIM_DEVICE_NAME], uint16_t *wrapped, struct error *error);
/* Takes away one that was made; `wrapped` may be SIM_NO_PORT by now. */
void sim_device_remove(const char *made, uint16_t wrapped);
