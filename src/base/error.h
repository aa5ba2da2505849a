/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * An error as a person should read it: one line, made where the failure is understood, carried up
 * to where it is shown. Functions that take a `struct error *` return 0 or a negative errno and
 * fill the text on failure only.
 */

#include <stdarg.h>

struct error {
	char text[512];
};

/* Formats the text (cut where too long, never overrun) and returns `code`. */
int error_set(struct error *error, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
