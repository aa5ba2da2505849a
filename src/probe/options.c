/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>

#include "base/options.h"
#include "probe/limits.h"
#include "probe/probe.h"

#define MAX_RULES 100000
#define TIMEOUT_S 300
#define STEP_S 20
#define LISTEN_S 2

enum probe_option {
	OPTION_PEER = 256,
	OPTION_LOOPBACK,
	OPTION_TO,
	OPTION_VDEV,
	OPTION_LISTEN,
	OPTION_MAX_RULES,
	OPTION_TIMEOUT,
	OPTION_STEP,
	OPTION_NO_STORE,
	OPTION_FORCE,
	OPTION_JSON,
	OPTION_HELP,
};

static const struct option long_options[] = {
	{"peer", required_argument, NULL, OPTION_PEER},
	{"loopback", no_argument, NULL, OPTION_LOOPBACK},
	{"to", required_argument, NULL, OPTION_TO},
	{"vdev", required_argument, NULL, OPTION_VDEV},
	{"listen", required_argument, NULL, OPTION_LISTEN},
	{"max-rules", required_argument, NULL, OPTION_MAX_RULES},
	{"timeout", required_argument, NULL, OPTION_TIMEOUT},
	{"step-timeout", required_argument, NULL, OPTION_STEP},
	{"no-store", no_argument, NULL, OPTION_NO_STORE},
	{"force", no_argument, NULL, OPTION_FORCE},
	{"json", no_argument, NULL, OPTION_JSON},
	{"help", no_argument, NULL, OPTION_HELP},
	{NULL, 0, NULL, 0},
};

static const char usage[] =
	"Usage: millrace probe [OPTION]... DEVICE\n"
	"\n"
	"Tells what a network card does with flow rules, by trial: each pattern with each set of\n"
	"actions is validated, created, looked at by packets, and destroyed; then how many rules\n"
	"there is room for, and how long one takes. What is found is kept for engines that use\n"
	"such a card. DEVICE is what \"run --port\" takes, and nobody else may use it meanwhile.\n"
	"\n"
	"Packets to look at: those that arrive by themselves, or\n"
	"  --peer DEVICE        sends test packets by this device, which is wired to the other\n"
	"  --loopback           sends them by DEVICE itself, to which they come back\n"
	"  --listen SECONDS     how long to look for flows that arrive, at most (default 2)\n"
	"\n"
	"Limits\n"
	"  --max-rules N        most rules that there are at once (default 100,000)\n"
	"  --timeout SECONDS    of all of it (default 300)\n"
	"  --step-timeout SECONDS\n"
	"                       without an answer of the driver's (default 20)\n"
	"\n"
	"Others\n"
	"  --to DEVICE          another port of the same card: packets are to be sent on by it\n"
	"                       (default: by DEVICE itself)\n"
	"  --vdev DEVICE        a DPDK device that DEVICE is made of; is made before it\n"
	"  --force              use an interface though an address, a default route or another\n"
	"                       interface stands on it\n"
	"  --no-store           do not keep what was found\n"
	"  --json               what was found as one JSON object\n"
	"  --help               this\n"
	"\n"
	"Exit status: 0 fine, whatever the card can do; 1 when it could not be found out, or "
	"rules\n"
	"may have been left; 2 for a wrong command line.\n";

void probe_options_help(FILE *stream)
{
	fputs(usage, stream);
}

static int take_device(
	struct port_device *device, const char *where, const char *text, struct error *error)
{
	struct error because;

	if (port_device_parse(device, text, &because) < 0)
		return error_set(error, -EINVAL, "%s %s", where, because.text);
	return 0;
}

static int take_vdev(struct probe_options *options, const char *value, struct error *error)
{
	struct port_device *device = &options->vdevs[options->n_vdevs];
	int ret;

	if (options->n_vdevs == PROBE_MAX_VDEVS)
		return error_set(error, -EINVAL, "--vdev: at most %d of them", PROBE_MAX_VDEVS);
	ret = take_device(device, "--vdev", value, error);
	if (ret == 0 && device->kind != PORT_DEVICE_VDEV)
		return option_bad_value(
			"--vdev", value, "a DPDK device is needed, such as net_ring0", error);
	options->n_vdevs += ret == 0;
	return ret;
}

static int take_option(
	struct probe_options *options, int id, const char *value, struct error *error)
{
	char where[OPTION_WORD_MAX];

	snprintf(where, sizeof(where), "--%s", option_name(long_options, id));
	switch (id) {
	case OPTION_PEER:
		return take_device(&options->devices[PROBE_PEER], where, value, error);
	case OPTION_TO:
		return take_device(&options->devices[PROBE_TO], where, value, error);
	case OPTION_VDEV:
		return take_vdev(options, value, error);
	case OPTION_LISTEN:
		return option_number(where, value, value, 600, &options->listen_s, error);
	case OPTION_MAX_RULES:
		return option_number(
			where, value, value, LIMITS_MAX_RULES, &options->max_rules, error);
	case OPTION_TIMEOUT:
		return option_number(where, value, value, 86400, &options->timeout_s, error);
	case OPTION_STEP:
		return option_number(where, value, value, 3600, &options->step_s, error);
	default:
		options->loopback |= id == OPTION_LOOPBACK;
		options->no_store |= id == OPTION_NO_STORE;
		options->force |= id == OPTION_FORCE;
		options->json |= id == OPTION_JSON;
		return id == OPTION_HELP || id == 'h' ? PROBE_HELP : 0;
	}
}

int probe_options_parse(struct probe_options *options, int argc, char **argv, struct error *error)
{
	int id, ret;

	*options = (struct probe_options){.max_rules = MAX_RULES,
		.timeout_s = TIMEOUT_S,
		.step_s = STEP_S,
		.listen_s = LISTEN_S};
	optind = 0; /* glibc: begin anew, whatever was parsed before */
	while ((id = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
		if (id == '?' || id == ':')
			return option_refused(long_options, id, argv, error);
		ret = take_option(options, id, optarg, error);
		if (ret != 0)
			return ret;
	}
	if (optind == argc)
		return error_set(error, -EINVAL,
			"probe: a device is needed, such as eth1; \"millrace help probe\" says "
			"more");
	if (argc - optind > 1)
		return error_set(error, -EINVAL, "probe: one device at a time");
	if (options->loopback && options->devices[PROBE_PEER].text[0] != '\0')
		return error_set(error, -EINVAL, "--loopback and --peer: only one of them");
	return take_device(&options->devices[PROBE_DEVICE], "probe:", argv[optind], error);
}
