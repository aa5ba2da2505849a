/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/service.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include <systemd/sd-daemon.h>

#include "base/monotonic.h"
#include "base/text.h"

#define STATUS_MAX 256

/* The state, if there is one, and a status line. A newline in it would be read as another variable. */
static void notify(const char *state, const char *format, va_list arguments)
{
	char text[STATUS_MAX], status[STATUS_MAX];

	(void)vsnprintf(text, sizeof(text), format, arguments);
	(void)sd_notifyf(0, "%sSTATUS=%s\n", state, text_printable(status, sizeof(status), text));
}

void service_ready(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	notify("READY=1\n", format, arguments);
	va_end(arguments);
}

void service_status(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	notify("", format, arguments);
	va_end(arguments);
}

void service_reloading(void)
{
	/* with the time, so that a manager of version 253 or later knows which reload this is */
	(void)sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64 "\n", monotonic_us());
}

void service_stopping(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	notify("STOPPING=1\n", format, arguments);
	va_end(arguments);
}

uint64_t service_watchdog_interval_us(void)
{
	uint64_t patience_us = 0;

	if (sd_watchdog_enabled(0, &patience_us) <= 0)
		return 0;
	return patience_us / 2;
}

void service_alive(void)
{
	(void)sd_notify(0, "WATCHDOG=1");
}
