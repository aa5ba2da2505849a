/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Changes of what is in NICs, for those who ask. */

#include "control/control.h"

/* Room for the changes of those who ask, taken at the start. NULL without memory. */
struct events_room *events_room_create(const struct plane *plane);
void events_room_destroy(struct events_room *room);

/* Takes what ports have to tell of themselves, for those who ask later. Now and then. */
void offload_events_keep(struct control *control);
