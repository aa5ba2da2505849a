/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/config_check.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/say.h"
#include "base/text.h"
#include "main/run_config.h"

#define EXIT_MISUSED 2

#define FILE_NAME_MAX 160

enum option_id {
	OPTION_JSON = UCHAR_MAX + 1,
	OPTION_HELP,
};

static const struct option long_options[] = {
	{"json", no_argument, NULL, OPTION_JSON},
	{"help", no_argument, NULL, OPTION_HELP},
	{NULL, 0, NULL, 0},
};

static const char help[] =
	"Usage: millrace config check FILE [--json]\n"
	"\n"
	"Says whether FILE is right as a configuration of millrace run, in one line: what it "
	"comes\n"
	"to, or what is wrong and where. Nothing is started, and no device need be there. A file\n"
	"of blocks or rules that it names is read, too.\n"
	"\n"
	"  --json               print the whole configuration, every default filled in, as one\n"
	"                       JSON object; millrace run takes this too as its FILE\n"
	"\n"
	"Exit status: 0 when it is right, 1 when it is not or cannot be read, 2 for a wrong\n"
	"command line.\n";

static void print_line(const char *file, const struct run_config *config)
{
	char word[FILE_NAME_MAX], flows[TEXT_NUMBER_MAX], routers[32] = "";
	unsigned workers = config->engine.workers;

	if (config->n_routers > 0)
		snprintf(routers, sizeof(routers), ", %u router%s", config->n_routers,
			say_plural(config->n_routers));
	printf("%s: fine: %u wire%s%s, %u port%s, %u worker%s, %s flow%s%s\n",
		text_printable(word, sizeof(word), file), config->n_wires,
		say_plural(config->n_wires), routers, config->n_ports, say_plural(config->n_ports),
		workers, say_plural(workers), text_grouped(flows, config->engine.flows),
		config->engine.flows == 1 ? "" : "s",
		config->n_wires + config->n_routers > 0
			? ""
			: "; the command line has to name the wires");
}

/* Where the command line names the wires, rules may name any port. */
static int check_rules(const struct run_config *config, struct error *error)
{
	const struct topology topology = run_config_topology(config);

	return run_rules_check(&config->rules, topology.n_domains > 0 ? &topology : NULL,
		config->engine.zone_vlan, error);
}

static int config_check_check(const char *file, bool json)
{
	struct run_config config;
	struct error error;
	int code = EXIT_SUCCESS;

	if (run_config_read(&config, file, &error) < 0 ||
		run_blocks_check(&config.blocks, &error) < 0 || check_rules(&config, &error) < 0) {
		code = say_error(error.text, EXIT_FAILURE);
	} else if (json) {
		char *line = run_config_json(&config);

		if (line)
			puts(line);
		else
			code = say_error("no memory for the configuration", EXIT_FAILURE);
		free(line);
	} else {
		print_line(file, &config);
	}
	run_config_fini(&config);
	return code == EXIT_SUCCESS ? say_end(EXIT_SUCCESS) : code;
}

int config_check_main(int argc, char **argv)
{
	bool json = false;
	struct error error;
	int id;

	optind = 0; /* glibc: begin anew, whatever was parsed before */
	while ((id = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
		switch (id) {
		case OPTION_JSON:
			json = true;
			break;
		case 'h':
		case OPTION_HELP:
			fputs(help, stdout);
			return say_end(EXIT_SUCCESS);
		default:
			option_refused(long_options, id, argv, &error);
			return say_error(error.text, EXIT_MISUSED);
		}
	}
	if (optind + 1 != argc)
		return say_error(optind == argc ? "config check: a file is needed"
						: "config check: one file at a time",
			EXIT_MISUSED);
	return config_check_check(argv[optind], json);
}
