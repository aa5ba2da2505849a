/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/error.h"

#include <stdio.h>

int error_set(struct error *error, int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	return code;
}
