/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What a running engine tells the service manager that started it, by systemd's notify protocol:
 * ready, reloading, stopping, a line of status, and that it is alive. Nothing of it has an effect
 * when nobody asked for it (NOTIFY_SOCKET is not set), and nothing can fail in a way that an engine
 * should mind.
 *
 * Used by one thread, control. Texts are formatted as by printf, and cut where too long.
 */

#include <stdint.h>

/* Packets flow. The text is the status line: what `systemctl status` shows. Also ends a reload. */
void service_ready(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Another status line. */
void service_status(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* SIGHUP was heeded: what it asks for begins now, and ends with service_ready(). */
void service_reloading(void);

/* The end begins. */
void service_stopping(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * How often service_alive() is to be called, in microseconds: half of what the manager waits before
 * it ends an engine that is silent. 0: not at all.
 */
uint64_t service_watchdog_interval_us(void);

/*
 * Says that all is well. Whoever calls it has made sure: the workers have answered, not only this
 * thread.
 */
void service_alive(void);
