/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Events, for those who follow them. */

#include "control/control.h"

/* Gives one who follows a line, or counts that it has lost one. */
void event_give(
	struct client *client, const struct control *control, const char *line, size_t length);
/* Fetches events if it is time, gives them to those who follow, and sets when to look again. */
void events_poll(struct control *control);
/* An event of a list of rules: its keys behind the name, with a comma in front of each. */
void event_policy(struct control *control, const char *name, const char *more);
/* A block was removed because its time was over. */
void event_block_expired(struct control *control, const struct block_view *gone);
/* All that there still are. */
void events_drain(struct control *control);
/* Someone follows, or does no longer: events of flows are made only when wanted. 0 or errno. */
int events_wanted(struct control *control);
