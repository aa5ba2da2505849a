/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The client part of the program: asks a running engine over its control socket (docs/control.md) and
 * shows the answer. Knows nothing of DPDK, nor of the engine's own data.
 */

/* The nouns, and one line on each, as the initializers of an array. */
#define CLI_NOUNS(NOUN)                                                                           \
	NOUN(flow, "the flows of a running engine: list, explain, block, kill"),                  \
		NOUN(block, "what is blocked in a running engine: its list of blocks"),           \
		NOUN(port, "the ports of a running engine, and their links"),                     \
		NOUN(worker,                                                                      \
			"the threads of a running engine, and what they spend their time on"),    \
		NOUN(wire, "the wires of a running engine, and where every packet went"),         \
		NOUN(domain, "the wires and routers of a running engine"),                        \
		NOUN(route, "the routes that the routers of a running engine follow"),            \
		NOUN(neighbour, "the neighbours of a running engine's routers"),                  \
		NOUN(drop, "the packets that a running engine dropped, and why"),                 \
		NOUN(export, "the exports of a running engine: what was sent, and what is lost"), \
		NOUN(offload, "what network cards do for a running engine, and how far they are " \
			      "believed"),                                                        \
		NOUN(event, "what happens in a running engine, as it happens"),                   \
		NOUN(config, "the configuration of a running engine"),                            \
		NOUN(rule, "rules, in testpmd's flow syntax")

/* A verb of one of the nouns that needs no running engine: whoever calls cli_main() runs it. */
struct cli_local {
	const char *noun, *verb;
	const char *what;		    /* one line for the help */
	int (*main)(int argc, char **argv); /* argv[0] is the verb */
};

/*
 * Runs `argv[0]` (a noun) `argv[1]` (a verb) and returns the exit code: 0 fine, 1 failed, 2 misused. An
 * entry without a noun ends `locals`. SIGPIPE is ignored, whoever calls has seen to it.
 */
int cli_main(int argc, char **argv, const struct cli_local *locals);

/*
 * Writes out what was printed and returns the exit code: `code`, or 1 with a line where that failed. A reader that has
 * gone has seen enough.
 */
int cli_finish_stdout(int code);
