/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/run_loop.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/monotonic.h"
#include "base/text.h"
#include "control/configurer.h"
#include "main/run_hosts.h"
#include "main/service.h"
#include "plane/plane.h"

/* How often links are looked at, and lost records told. */
#define TEND_MS 250
/* How often it is looked whether a reload is over. */
#define RELOAD_MS 5
/* Rules and exports that were just replaced are waited for so long. */
#define RELOAD_PATIENCE_US 5000000
/* Signals this close together are one: timeout(1) signals the program, and then its whole group. */
#define TOGETHER_US 200000

void run_say(void *context, const char *line)
{
	(void)context;
	fprintf(stderr, "millrace: %s\n", line);
}

static void get_ready(const struct run *run)
{
	char routers[32] = "";

	if (run->config.n_routers > 0)
		snprintf(routers, sizeof(routers), ", %u router%s", run->config.n_routers,
			run->config.n_routers == 1 ? "" : "s");
	service_ready("%u wire%s%s, %u worker%s", run->config.n_wires,
		run->config.n_wires == 1 ? "" : "s", routers, run->config.engine.workers,
		run->config.engine.workers == 1 ? "" : "s");
}

static void tell_trouble(void)
{
	service_status("flows are carried, but records are being lost");
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
		run->reloading = true;
		run->reload_waits = run->config.config_file != NULL ||
				    run->config.rules.file != NULL ||
				    run->config.blocks.file != NULL;
		run->reload_waits_us = monotonic_us();
	}
}

/* Says in a line what was done: "the configuration was read again: 2 keys, 1 rule ..." */
static void say_reloaded(struct run *run, const struct control_config_change *change)
{
	const uint32_t *n = change->of_rules.n;
	char line[320], rules[128] = "";

	if (change->rules_changed)
		snprintf(rules, sizeof(rules), ", rules %u added, %u removed, %u moved",
			n[RULES_ADDED], n[RULES_REMOVED], n[RULES_MOVED]);
	snprintf(line, sizeof(line),
		"%s: %u key%s changed%s, blocks %u added, %u removed, exports %u opened, %u closed",
		run->config.config_file != NULL ? "the configuration was read again"
						: "the rules were read again",
		change->now, change->now == 1 ? "" : "s", rules, change->blocks_added,
		change->blocks_removed, change->exports_opened, change->exports_closed);
	run_say(run, line);
}

/* Applies what the engine was started with, as its files are now. An error is told, and changes nothing. */
static void reload(struct run *run)
{
	struct control_config_change change;
	struct error error;
	char line[sizeof(error.text) + 64];
	int ret = control_reload(run->control, &change, &error);

	/* what was replaced just before is about to be gone */
	if (ret == -EAGAIN && monotonic_us() - run->reload_waits_us < RELOAD_PATIENCE_US) {
		control_config_change_fini(&change);
		return;
	}
	run->reload_waits = false;
	if (ret < 0) {
		snprintf(line, sizeof(line), "the %s as %s: %s",
			run->config.config_file != NULL ? "configuration stays" : "rules stay",
			run->config.config_file != NULL ? "it is" : "they are", error.text);
		run_say(run, line);
	} else {
		say_reloaded(run, &change);
	}
	control_config_change_fini(&change);
}

/* Ready again, once the configuration was read, and the file of records was opened anew by the thread that writes it. */
static void end_reload(struct run *run)
{
	if (run->reload_waits)
		reload(run);
	if (!run->reloading || run->reload_waits || exporter_reopening(run->exporter))
		return;
	run->reloading = false;
	get_ready(run);
	if (run->news.trouble)
		tell_trouble();
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
			run->topology.place[i] == 0 ? "        " : "\n");
	fprintf(stderr, "%u worker%s%s, %s flows (%s); socket %s\n", engine->workers,
		engine->workers == 1 ? "" : "s",
		run->config.threads == PLANE_SPLIT ? ", an rx and a tx thread" : "",
		text_grouped(flows, engine->flows), text_bytes(memory, plane_memory(run->plane)),
		control_path(run->control));
}

/* Tells the service manager that all is well, if it wants to know and the lcores have answered. */
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

	for (unsigned wire = 0; wire < plane_config(run->plane)->topology.n_domains; wire++) {
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

/* The link, and what the interface is called. */
static void look_at_link(struct run *run, struct port *port)
{
	unsigned changed = port_update(port);
	char line[160];

	if (changed & PORT_CHANGED_NAME) {
		snprintf(line, sizeof(line), "%s: interface %s is called %s now", port->name,
			port->interface_before, port->interface);
		run_say(run, line);
		control_event_renamed(run->control, port);
	}
	if (changed & PORT_CHANGED_LINK) {
		fprintf(stderr, "millrace: %s: link %s\n", port->name, port_link_name(port->link));
		control_event_link(run->control, port);
	}
}

/* True when it is new. */
static bool look_at_mtu(struct run *run, struct port *port)
{
	char line[200];

	if (!port_update_mtu(port))
		return false;
	port_mtu_line(port, line, sizeof(line));
	run_say(run, line);
	control_event_mtu(run->control, port);
	return true;
}

/* The MTUs of a wire's two ports, of which one at least is new. */
static void compare_mtus(struct run *run, const struct port *a, const struct port *b)
{
	char line[200];

	/* what a tap carries does not depend on the kernel's MTU of it */
	if (a->mtu == b->mtu || atomic_load_explicit(&a->longest, memory_order_relaxed) ==
					atomic_load_explicit(&b->longest, memory_order_relaxed))
		return;
	snprintf(line, sizeof(line),
		"%s has MTU %u and %s MTU %u: longer frames between them are dropped, too_long",
		a->name, a->mtu, b->name, b->mtu);
	run_say(run, line);
}

static void say_clock_set(struct run *run, int64_t step_us)
{
	const uint64_t us = (uint64_t)(step_us < 0 ? -step_us : step_us);
	char line[160], seconds[TEXT_NUMBER_MAX];

	snprintf(line, sizeof(line),
		"the machine's clock was set %s by %s.%06u s: records tell the new time from now "
		"on",
		step_us < 0 ? "back" : "forward", text_grouped(seconds, us / CLOCK_US_PER_S),
		(unsigned)(us % CLOCK_US_PER_S));
	run_say(run, line);
}

/* An export that is none any more. */
static void say_left(void *context, struct export_collector *collector)
{
	(void)context;
	(void)exports_tell(&collector, 1, stderr);
}

/* Links, MTUs, lost records, clocks and the watchdog; a few times a second. */
static void tend(struct run *run)
{
	uint32_t new_mtus = 0;

	for (unsigned i = 0; i < run_n_ports(run); i++) {
		look_at_link(run, run->ports[i]);
		new_mtus |= (uint32_t)look_at_mtu(run, run->ports[i]) << i;
	}
	for (unsigned i = 0; i < run->topology.n_domains; i++) {
		const unsigned port = run->topology.first[i];

		if (topology_is_wire(&run->topology, i) && new_mtus >> port & 3)
			compare_mtus(run, run->ports[port], run->ports[port + 1]);
	}
	bool trouble = run->news.trouble;

	export_news_look(&run->news, run->exporter, run->tended_us);
	if (run->news.trouble && !trouble)
		tell_trouble();
	else if (trouble && !run->news.trouble)
		get_ready(run);
	for (unsigned i = 0; i < run->news.n_lines; i++)
		run_say(run, run->news.lines[i].text);
	exports_look(run->collectors, run->n_collectors, run->exports_news, run->tended_us, run_say,
		run);
	exporter_left(run->exporter, say_left, run);
	if (run->news.lost != 0)
		control_event_records_lost(run->control, run->news.lost);
	plane_tend(run->plane);
	run_hosts_tend(run);
	say_no_slots(run);
	int64_t step_us = plane_correct_clock(run->plane);

	if (step_us != 0)
		say_clock_set(run, step_us);
	stay_alive(run);
}

void run_loop(struct run *run)
{
	introduce(run);
	get_ready(run);
	while (!run->stop) {
		int ret = control_step(run->control, run->reloading ? RELOAD_MS : TEND_MS);

		if (ret < 0) {
			fprintf(stderr, "millrace: the control socket: %s\n", strerror(-ret));
			run->failed = true;
			return;
		}
		end_reload(run);
		if (monotonic_us() - run->tended_us < TEND_MS * UINT64_C(1000))
			continue;
		run->tended_us = monotonic_us();
		tend(run);
	}
}

/*
 * What became of the records: those made are those written and those lost, whatever the reason. "20,001 records:
 * 8,257 written, 11,744 lost (11,000 no room to wait, 744 writing failed)".
 */
static void tell_records(const struct run *run, const struct exporter_totals *totals)
{
	const struct {
		const char *why;
		uint64_t n;
	} lost[] = {
		{"no room to wait", totals->overflowed},
		{"writing failed", totals->lost_by[EXPORT_LOSS_WRITE]},
		{"no reader, or a slow one", totals->lost_by[EXPORT_LOSS_READER]},
	};
	char made[TEXT_NUMBER_MAX], number[TEXT_NUMBER_MAX], other[TEXT_NUMBER_MAX];
	unsigned told = 0;

	fprintf(stderr, "%s records", text_grouped(made, exporter_made(totals)));
	if (run->config.output == NULL)
		return;
	fprintf(stderr, ": %s written, %s lost", text_grouped(number, totals->written),
		text_grouped(other, exporter_lost(totals)));
	for (unsigned i = 0; i < sizeof(lost) / sizeof(lost[0]); i++)
		if (lost[i].n != 0)
			fprintf(stderr, "%s%s %s", told++ == 0 ? " (" : ", ",
				text_grouped(number, lost[i].n), lost[i].why);
	if (told != 0)
		fprintf(stderr, ")");
}

/* The sum of everything, as replay tells it. */
static void tell_totals(struct run *run, const struct exporter_totals *records)
{
	static struct plane_snapshot snapshot;
	struct path_counters sum = {0};
	char received[TEXT_NUMBER_MAX], bytes[TEXT_NUMBER_MAX], out[TEXT_NUMBER_MAX];
	char dropped[TEXT_NUMBER_MAX];

	if (plane_snapshot(run->plane, &snapshot) < 0)
		return;
	for (unsigned wire = 0; wire < run->topology.n_domains; wire++)
		path_counters_add(&sum, &snapshot.wires[wire]);
	fprintf(stderr, "%s packets  %s  %s out  %s dropped  ",
		text_grouped(received, sum.received), text_bytes(bytes, sum.received_bytes),
		text_grouped(out, sum.out), text_grouped(dropped, path_counters_dropped(&sum)));
	if (sum.mirrored != 0)
		fprintf(stderr, "%s mirrored  ", text_grouped(out, sum.mirrored));
	if (sum.reject_replies != 0)
		fprintf(stderr, "%s answers to rejected ones  ",
			text_grouped(out, sum.reject_replies));
	tell_records(run, records);
	if (sum.nic_forwarded != 0)
		fprintf(stderr, "; besides, %s packets sent on by NICs alone",
			text_grouped(out, sum.nic_forwarded));
	fprintf(stderr, "\n");
	if (sum.capture_lost != 0)
		fprintf(stderr,
			"millrace: %s copies for capture files are lost: they came faster than "
			"they were written\n",
			text_grouped(out, sum.capture_lost));
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

static uint64_t finish_us;

/* A second signal, of either kind, kills: somebody is in a hurry. Not one that came with the first, as timeout(1)'s do. */
static void take_hurry(int number)
{
	if (monotonic_us() - finish_us < TOGETHER_US)
		return;
	signal(number, SIG_DFL);
	raise(number);
}

static void heed_hurry(void)
{
	struct sigaction action = {.sa_handler = take_hurry, .sa_flags = SA_RESTART};
	sigset_t signals;

	finish_us = monotonic_us();
	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signals_of(&signals);
	sigdelset(&signals, SIGHUP);
	sigprocmask(SIG_UNBLOCK, &signals, NULL);
}

void run_finish(struct run *run)
{
	struct exporter_totals before, totals;
	struct error error;
	char lost[TEXT_NUMBER_MAX];

	heed_hurry();
	service_stopping("every flow is being reported");
	exporter_live_totals(run->exporter, &before);
	plane_stop(run->plane);
	tell_rules_left(run);
	if (exporter_finish(run->exporter, &totals, &error) < 0) {
		run_say(run, error.text);
		run->failed = true;
	} else if (run->config.output != NULL && exporter_lost(&totals) > exporter_lost(&before)) {
		fprintf(stderr, "millrace: %s records were lost at the end\n",
			text_grouped(lost, exporter_lost(&totals) - exporter_lost(&before)));
		run->failed = true;
	}
	tell_totals(run, &totals);
	exporter_left(run->exporter, say_left, run);
	if (exports_tell(run->collectors, run->n_collectors, stderr))
		run->failed = true;
}
