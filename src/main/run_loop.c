/* SPDX-License-Identifier: BSD-3-Clause */
/* What the control thread does while packets flow, and at the end. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/monotonic.h"
#include "base/text.h"
#include "main/run_parts.h"
#include "main/service.h"
#include "path/plane_offload.h"

/* How often links are looked at, and lost records told. */
#define TEND_MS 250

void run_say(void *context, const char *line)
{
	(void)context;
	fprintf(stderr, "millrace: %s\n", line);
}

static void get_ready(const struct run *run)
{
	service_ready("%u wire%s, %u worker%s", run->config.n_wires,
		run->config.n_wires == 1 ? "" : "s", run->config.engine.workers,
		run->config.engine.workers == 1 ? "" : "s");
}

void run_take_signals(void *context, int descriptor)
{
	struct run *run = context;
	struct signalfd_siginfo signal;

	while (read(descriptor, &signal, sizeof(signal)) == (ssize_t)sizeof(signal)) {
		if (signal.ssi_signo != SIGHUP) {
			run->stop = true;
			continue;
		}
		service_reloading();
		exporter_reopen(run->exporter);
		get_ready(run);
	}
}

static void signals_of(sigset_t *signals)
{
	sigemptyset(signals);
	sigaddset(signals, SIGINT);
	sigaddset(signals, SIGTERM);
	sigaddset(signals, SIGHUP);
}

int run_catch_signals(struct run *run, struct error *error)
{
	sigset_t signals;

	signals_of(&signals);
	if (sigprocmask(SIG_BLOCK, &signals, NULL) == 0)
		run->signals = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
	if (run->signals < 0)
		return error_set(error, -errno, "no signals: %s", strerror(errno));
	return 0;
}

/* What a user wants to see before the first packet: ports as they were opened, workers, memory. */
static void introduce(const struct run *run)
{
	const struct engine_options *engine = &run->config.engine;
	char flows[TEXT_NUMBER_MAX], memory[TEXT_NUMBER_MAX];

	for (unsigned i = 0; i < run_n_ports(run); i++)
		fprintf(stderr, "%s: %s%s", run->ports[i]->name, run->ports[i]->note,
			i % 2 == 0 ? "        " : "\n");
	if (run->config.offload.on && run->config.offload.verify_one_in > 1)
		fprintf(stderr,
			"offload: marks of one burst in %u are verified (verify: sampled): a card "
			"that marks wrongly may have packets counted for strangers\n",
			run->config.offload.verify_one_in);
	fprintf(stderr, "%u worker%s%s, %s flows (%s); socket %s\n", engine->workers,
		engine->workers == 1 ? "" : "s",
		run->config.threads == PLANE_SPLIT ? ", an rx and a tx thread" : "",
		text_grouped(flows, engine->flows), text_bytes(memory, plane_memory(run->plane)),
		control_path(run->control));
}

/* Tells the service manager that all is well, if it wants to know and the stations have answered. */
static void stay_alive(struct run *run)
{
	static struct plane_snapshot snapshot;
	uint64_t interval_us = service_watchdog_interval_us();

	if (interval_us == 0 || run->tended_us - run->alive_us < interval_us)
		return;
	if (plane_snapshot(run->plane, &snapshot) < 0)
		return;
	run->alive_us = run->tended_us;
	service_alive();
}

/* Once for a wire: nothing else is lost by it. */
static void say_no_slots(struct run *run)
{
	char line[160];

	for (unsigned wire = 0; wire < plane_config(run->plane)->n_wires; wire++) {
		if (!plane_has_no_slots(run->plane, wire) || run->said_no_slots >> wire & 1)
			continue;
		run->said_no_slots |= (uint16_t)(1u << wire);
		snprintf(line, sizeof(line),
			"wire %u: no memory for %u offload slots, its flows stay in software; "
			"offload.slots may be less",
			wire, plane_config(run->plane)->offload.slots);
		run_say(run, line);
	}
}

/* Links, lost records and the watchdog; a few times a second. */
static void tend(struct run *run)
{
	for (unsigned i = 0; i < run_n_ports(run); i++) {
		struct port *port = run->ports[i];

		if (!port_update_link(port))
			continue;
		fprintf(stderr, "millrace: %s: link %s\n", port->name, port_link_name(port->link));
		control_event_link(run->control, port);
	}
	bool trouble = run->news.trouble;

	export_news_look(&run->news, run->exporter, run->tended_us);
	if (run->news.trouble && !trouble)
		service_status("flows are carried, but records are being lost");
	else if (trouble && !run->news.trouble)
		get_ready(run);
	for (unsigned i = 0; i < run->news.n_lines; i++)
		run_say(run, run->news.lines[i].text);
	if (run->news.lost != 0)
		control_event_records_lost(run->control, run->news.lost);
	plane_tend(run->plane);
	say_no_slots(run);
	plane_correct_clock(run->plane);
	stay_alive(run);
}

void run_loop(struct run *run)
{
	introduce(run);
	get_ready(run);
	while (!run->stop) {
		int ret = control_step(run->control, TEND_MS);

		if (ret < 0) {
			fprintf(stderr, "millrace: the control socket: %s\n", strerror(-ret));
			run->failed = true;
			return;
		}
		if (monotonic_us() - run->tended_us < TEND_MS * UINT64_C(1000))
			continue;
		run->tended_us = monotonic_us();
		tend(run);
	}
}

static uint64_t n_lost(const struct exporter_totals *totals)
{
	return totals->lost + totals->overflowed;
}

/* The sum of everything, as replay tells it. */
static void tell_totals(struct run *run, const struct exporter_totals *records)
{
	static struct plane_snapshot snapshot;
	struct path_counters sum = {0};
	char received[TEXT_NUMBER_MAX], bytes[TEXT_NUMBER_MAX], out[TEXT_NUMBER_MAX];
	char dropped[TEXT_NUMBER_MAX], reports[TEXT_NUMBER_MAX], lost[TEXT_NUMBER_MAX];

	if (plane_snapshot(run->plane, &snapshot) < 0)
		return;
	for (unsigned wire = 0; wire < run->config.n_wires; wire++)
		path_counters_add(&sum, &snapshot.wires[wire]);
	fprintf(stderr, "%s packets  %s  %s out  %s dropped  %s records",
		text_grouped(received, sum.received), text_bytes(bytes, sum.received_bytes),
		text_grouped(out, sum.out), text_grouped(dropped, path_counters_dropped(&sum)),
		text_grouped(reports, records->records));
	if (run->config.output != NULL)
		fprintf(stderr, ", %s lost", text_grouped(lost, n_lost(records)));
	if (sum.nic_forwarded != 0)
		fprintf(stderr, "; besides, %s packets sent on by NICs alone",
			text_grouped(out, sum.nic_forwarded));
	fprintf(stderr, "\n");
}

/* Rules that did not go: of a NIC that keeps them, packets of the next run may come with their marks. */
static void tell_rules_left(const struct run *run)
{
	char text[TEXT_NUMBER_MAX];

	for (unsigned i = 0; i < run_n_ports(run); i++) {
		struct installer *installer = plane_installer(run->plane, i);
		uint32_t left = installer ? atomic_load(&installer_counters(installer)->rules) : 0;

		if (left > 0)
			fprintf(stderr, "millrace: %s: %s rules may still be in its NIC\n",
				run->ports[i]->name, text_grouped(text, left));
	}
}

void run_finish(struct run *run)
{
	struct exporter_totals before, totals;
	struct error error;
	sigset_t signals;
	char lost[TEXT_NUMBER_MAX];

	/* the second signal of a kind kills: somebody is in a hurry */
	signals_of(&signals);
	sigdelset(&signals, SIGHUP);
	sigprocmask(SIG_UNBLOCK, &signals, NULL);
	service_stopping("every flow is being reported");
	exporter_live_totals(run->exporter, &before);
	plane_stop(run->plane);
	tell_rules_left(run);
	if (exporter_finish(run->exporter, &totals, &error) < 0) {
		run_say(run, error.text);
		run->failed = true;
	} else if (run->config.output != NULL && n_lost(&totals) > n_lost(&before)) {
		fprintf(stderr, "millrace: %s records were lost at the end\n",
			text_grouped(lost, n_lost(&totals) - n_lost(&before)));
		run->failed = true;
	}
	tell_totals(run, &totals);
}
