/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* A block in a line of text, for views that have one to tell. */

#include <stdio.h>

#include <jansson.h>

/* "HEAD 12: 192.0.2.0/24 port 80, for 59 s more: flood", wrapped. */
void block_sentence(FILE *out, const char *head, const json_t *block);
