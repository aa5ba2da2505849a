/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Rights that are of use at the start only. */

/*
 * Gives up CAP_SYS_ADMIN for the calling thread and those that it makes from then on: with it a thread that was
 * taken over could do anything. Other threads keep what they have. Nothing happens where there is no such right.
 */
void privilege_drop_admin(void);
