/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Commands on DPDK's telemetry socket, of any program that has loaded this driver: /flowsim/list,
 * /flowsim/fault, /flowsim/faults, /flowsim/rules, /flowsim/profile (docs/hardware.md). Telemetry's own
 * thread runs them; it takes the port's lock.
 */

struct sim_port;

/* From here on the port, whole by now, can be named by its ethdev number. */
void sim_telemetry_add(struct sim_port *port);

/* No command knows it any longer nor is at work on it. Without the port's lock; again is fine. */
void sim_telemetry_remove(struct sim_port *port);
