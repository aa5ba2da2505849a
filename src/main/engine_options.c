/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/engine_options.h"

#include <errno.h>
#include <string.h>

#include "base/options.h"
#include "base/suggest.h"
#include "base/text.h"
#include "main/engine.h"

void engine_options_init(struct engine_options *options)
{
	*options = (struct engine_options){
		.workers = 1,
		.flows = ENGINE_FLOWS_DEFAULT,
		.fragments_follow = true,
		.timeouts = flow_timeouts_default(),
	};
}

bool engine_timeout_set(
	struct engine_options *options, const char *name, size_t length, uint32_t seconds)
{
	bool found = false;

	for (unsigned i = 0; i < FLOW_N_TIMEOUTS; i++) {
		const char *known = flow_timeout_name((enum flow_timeout)i);

		if (strncmp(name, known, length) != 0)
			continue;
		if (known[length] != '\0' && (known[length] != '-' || memchr(name, '-', length)))
			continue;
		options->timeouts.seconds[i] = seconds;
		found = true;
	}
	return found;
}

static int unknown_timeout(const char *where, const char *name, struct error *error)
{
	const char *names[FLOW_N_TIMEOUTS];
	char word[OPTION_WORD_MAX];

	for (unsigned i = 0; i < FLOW_N_TIMEOUTS; i++)
		names[i] = flow_timeout_name((enum flow_timeout)i);
	const char *near = suggest(name, names, FLOW_N_TIMEOUTS);

	return error_set(error, -EINVAL, "%s %s: no such timeout; %s%s%s", where,
		text_printable(word, sizeof(word), name),
		near ? "did you mean " : "--help lists them", near ? near : "", near ? "?" : "");
}

/* NAME=SECONDS */
static int take_timeout(
	struct engine_options *options, const char *where, const char *value, struct error *error)
{
	const char *equals = strchr(value, '=');
	size_t length = equals ? (size_t)(equals - value) : strlen(value);
	struct engine_options tried = *options;
	char name[OPTION_WORD_MAX];
	uint32_t seconds;

	if (!equals || length == 0)
		return option_bad_value(
			where, value, "NAME=SECONDS is needed, as in udp=60", error);
	snprintf(name, sizeof(name), "%.*s",
		length < sizeof(name) ? (int)length : OPTION_WORD_MAX - 1, value);
	/* a name that is not known is told before a number that is wrong */
	if (!engine_timeout_set(&tried, value, length, 1))
		return unknown_timeout(where, name, error);
	if (option_number(where, value, equals + 1, FLOW_TIMEOUT_MAX_S, &seconds, error) < 0)
		return -EINVAL;
	engine_timeout_set(options, value, length, seconds);
	return 0;
}

/* Also on the command line of a replay: its exports alone ask for reports. */
static int take_active(
	struct engine_options *options, const char *where, const char *value, struct error *error)
{
	struct error number;

	if (strcmp(value, ENGINE_ACTIVE_DEFAULT) == 0) {
		options->active_s = 0;
		return 0;
	}
	if (option_number(where, value, value, FLOW_TIMEOUT_MAX_S, &options->active_s, &number) ==
		0)
		return 0;
	return error_set(error, -EINVAL, "%s, or " ENGINE_ACTIVE_DEFAULT, number.text);
}

/* no, yes, or what a block fits: a prefix, maybe with a port and a protocol, or a flow. */
static int take_measure(
	struct engine_options *options, const char *where, const char *value, struct error *error)
{
	char line[BLOCK_LINE_MAX];
	struct block block;
	struct error why;
	unsigned column;

	if (strlen(value) >= sizeof(line))
		return option_bad_value(where, value, "that is too long", error);
	memcpy(line, value, strlen(value) + 1);
	options->measure = strcmp(value, ENGINE_MEASURE_DEFAULT) != 0;
	options->measure_all = strcmp(value, "yes") == 0;
	memcpy(options->measure_text, options->measure ? value : "",
		options->measure ? strlen(value) + 1 : 1);
	if (!options->measure || options->measure_all)
		return 0;
	if (block_parse_line(&block, line, &column, &why) < 0)
		return error_set(error, -EINVAL,
			"%s: column %u: %s; yes, no, or a prefix or flow as \"flow block\" has it "
			"is needed",
			where, column, why.text);
	if (block.for_s != 0 || block.reason != NULL)
		return error_set(error, -EINVAL,
			"%s: flows are measured for good and without a reason: \"for\" and "
			"\"reason\" "
			"belong to blocks",
			where);
	options->measure_what = block.match;
	return 0;
}

int engine_options_take(struct engine_options *options, int id, const char *where,
	const char *value, bool both_ways, struct error *error)
{
	static const char *const fragments[] = {"follow", "separate"};
	static const char *const tcp[] = {"strict", ENGINE_TCP_DEFAULT};
	static const char *const zone[] = {"vlan", ENGINE_ZONE_DEFAULT};
	unsigned which = 0, n_words = both_ways ? 2 : 1;
	int ret;

	switch (id) {
	case ENGINE_OPTION_WORKERS:
		return option_number(
			where, value, value, ENGINE_MAX_WORKERS, &options->workers, error);
	case ENGINE_OPTION_FLOWS:
		return option_number(where, value, value, ENGINE_FLOWS_MAX, &options->flows, error);
	case ENGINE_OPTION_ACTIVE:
		options->active_said = true;
		return take_active(options, where, value, error);
	case ENGINE_OPTION_MEASURE:
		return take_measure(options, where, value, error);
	case ENGINE_OPTION_TIMEOUT:
		return take_timeout(options, where, value, error);
	case ENGINE_OPTION_FRAGMENTS:
		ret = option_word(where, value, fragments, 2, &which, error);
		options->fragments_follow = which == 0;
		return ret;
	case ENGINE_OPTION_TCP:
		ret = option_word(where, value, tcp, n_words, &which, error);
		options->tcp_strict = which == 0;
		return ret;
	case ENGINE_OPTION_ZONE:
		ret = option_word(where, value, zone, n_words, &which, error);
		options->zone_vlan = which == 0;
		return ret;
	default:
		return -EINVAL;
	}
}

static const char *const timeout_notes[FLOW_N_TIMEOUTS] = {
	[FLOW_TIMEOUT_TCP_NEW] = "no handshake yet, or met in mid-conversation, one side only",
	[FLOW_TIMEOUT_TCP_OPEN] = "RFC 5382 REQ-5: at least 2 h 4 min",
	[FLOW_TIMEOUT_TCP_CLOSING] = "after a FIN; RFC 5382 REQ-5: at least 4 min",
	[FLOW_TIMEOUT_TCP_TIME_WAIT] = "after both; twice a segment's life (RFC 9293)",
	[FLOW_TIMEOUT_TCP_RESET] = "after an RST",
	[FLOW_TIMEOUT_UDP_NEW] = "no reply yet",
	[FLOW_TIMEOUT_UDP_OPEN] = "RFC 4787 REQ-5: at least 2 min",
	[FLOW_TIMEOUT_SCTP_NEW] = "no reply yet",
	[FLOW_TIMEOUT_SCTP_OPEN] = "both have sent",
	[FLOW_TIMEOUT_ICMP] = "queries and replies; RFC 5508",
	[FLOW_TIMEOUT_OTHER_NEW] = "no reply yet",
	[FLOW_TIMEOUT_OTHER_OPEN] = "both have sent",
};

static void timeouts_help(FILE *stream)
{
	struct flow_timeouts defaults = flow_timeouts_default();
	char seconds[TEXT_NUMBER_MAX];

	fputs("\n"
	      "Timeouts: how long a flow may be silent, in seconds\n"
	      "  --timeout NAME=SECONDS\n"
	      "                       may be given several times; a protocol's name alone (tcp, "
	      "udp,\n"
	      "                       sctp, other) sets all of its timeouts\n"
	      "\n"
	      "    NAME               default\n",
		stream);
	for (unsigned i = 0; i < FLOW_N_TIMEOUTS; i++)
		fprintf(stream, "    %-15s %10s  %s\n", flow_timeout_name((enum flow_timeout)i),
			text_grouped(seconds, defaults.seconds[i]), timeout_notes[i]);
	fprintf(stream, "\nSeconds are whole, 1 to %s (a year).\n",
		text_grouped(seconds, FLOW_TIMEOUT_MAX_S));
}

void engine_options_help(FILE *stream)
{
	char flows[TEXT_NUMBER_MAX], max_flows[TEXT_NUMBER_MAX];

	fprintf(stream, "  --workers N          threads, 1 to %d (default 1)\n",
		ENGINE_MAX_WORKERS);
	fprintf(stream,
		"  --flows N            flows held at a time, 1 to %s (default %s);\n"
		"                       a full table ends the least useful ones\n",
		text_grouped(max_flows, ENGINE_FLOWS_MAX),
		text_grouped(flows, ENGINE_FLOWS_DEFAULT));
	fputs("  --fragments WORD     follow: later fragments belong to the flow of their first "
	      "one\n"
	      "                       (default); separate: they are a flow without ports\n"
	      "  --tcp strict         drop segments outside the window (default: count them)\n"
	      "  --zone vlan          the outermost VLAN number is part of a flow's key\n"
	      "                       (default: it is not)\n"
	      "  --active SECONDS     report a long flow this often while it lives; off: at its "
	      "end\n"
	      "                       alone (default: off; 60 with exports)\n"
	      "  --measure WHAT       tell round-trip times, retransmissions and gaps of flows, "
	      "too: "
	      "yes,\n"
	      "                       of all; or PREFIX [port N] [proto P], of those (default: "
	      "no)\n",
		stream);
	timeouts_help(stream);
}
