/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * net_flowsim: a NIC with a flow table, without the NIC. Each ethdev is a sim_port; ports of one `nic=`
 * can forward to each other. This header is for those who look inside from without, tests and benches: it
 * includes what they need. What the directories are, from the top; one includes itself and those below it,
 * which devtools/check-layers proves:
 *
 *   .         the ethdev: probe and remove (device.c), its table of calls (ops.c), configure, start and stop
 *             (life.c), counters, RSS settings, telemetry
 *   calls/    what an application calls: rte_flow, blocking (flow*.c) and asynchronous (async*.c,
 *             template*.c), rte_mtr (meter_*.c)
 *   rules/    a rule's life: read (draft.c, actions*.c), created and destroyed (rule_life.c), shared actions
 *             (indirect.c), ageing; faults that befall rules, ghosts
 *   packets/  what becomes of packets. Known ones: source.c, rules resolved to their streams (resolve.c,
 *             streams.c, index.c), the burst (receive.c). Matched in line over another port: pump*.c. Either
 *             way: what rules do to one (apply.c, edit.c, meter.c), queues, sending, to other ports of the
 *             NIC (forward.c), the link
 *   port/     what all of these share: the port's state (port.h), the NIC that it is of (nic.c), the NIC's own
 *             time (firmware.c), chances of faults (fault.c), the RSS hash, refusals, the log, what differs
 *             between versions of DPDK (compat.h)
 *   kind/     what was asked for: arguments, profiles, which rules such a NIC takes
 *   match/    which rule a packet meets: what is seen of a packet (view.c), patterns, what a rule is (rule.h)
 *             and does (actions.h), the table of live rules
 *
 * match/ and kind/ know no port. Where a lower one has to call upwards it is given functions: the firmware its
 * jobs (device.c), the table the end of its indexes.
 *
 * All is in the memory of one process; secondary processes are refused.
 */

#include "drivers/flowsim/calls/calls.h"
#include "drivers/flowsim/kind/args.h"
#include "drivers/flowsim/kind/profile.h"
#include "drivers/flowsim/match/table.h"
#include "drivers/flowsim/packets/resolve.h"
#include "drivers/flowsim/packets/source.h"
#include "drivers/flowsim/port/firmware.h"
#include "drivers/flowsim/port/port.h"
#include "drivers/flowsim/rules/actions_pool.h"
#include "drivers/flowsim/rules/fault_set.h"
#include "drivers/flowsim/rules/indirect.h"
#include "drivers/flowsim/rules/rule_life.h"
