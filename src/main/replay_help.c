/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/replay_options.h"

#include "base/text.h"

static const char usage[] =
	"Usage: millrace replay [OPTION]... CAPTURE...\n"
	"\n"
	"Runs the whole engine over captures and writes one record for each flow, a line of\n"
	"JSON. Each capture (pcap or pcapng, Ethernet) is a run of its own; - is standard\n"
	"input. A summary follows on standard error.\n"
	"\n"
	"Records\n"
	"  --output FILE        write the records to FILE; - and the default is standard output\n"
	"  --summary            after the summary, the flows with most bytes\n"
	"  --json               the summary as one JSON object\n"
	"\n"
	"Engine\n";

static const char timeouts[] =
	"\n"
	"Timeouts: how long a flow may be silent, in seconds\n"
	"  --timeout NAME=SECONDS\n"
	"                       may be given several times; a protocol's name alone (tcp, udp,\n"
	"                       sctp, other) sets all of its timeouts\n"
	"\n"
	"    NAME               default\n";

static const char ends[] =
	"\n"
	"Exit status: 0 when everything was read and written; 1 when a capture was cut, damaged\n"
	"or not readable (the others are still read), or records could not be written; 2 for a\n"
	"wrong command line.\n";

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

void replay_options_help(FILE *stream)
{
	struct flow_timeouts defaults = flow_timeouts_default();
	char flows[TEXT_NUMBER_MAX], max_flows[TEXT_NUMBER_MAX], seconds[TEXT_NUMBER_MAX];

	fputs(usage, stream);
	fprintf(stream, "  --workers N          threads, 1 to %d (default 1)\n",
		REPLAY_WORKERS_MAX);
	fprintf(stream,
		"  --flows N            flows held at a time, 1 to %s (default %s);\n"
		"                       a full table ends the least useful ones\n",
		text_grouped(max_flows, REPLAY_FLOWS_MAX),
		text_grouped(flows, REPLAY_FLOWS_DEFAULT));
	fputs("  --fragments WORD     follow: later fragments belong to the flow of their first "
	      "one\n"
	      "                       (default); separate: they are a flow without ports\n"
	      "  --tcp strict         drop segments outside the window (default: count them)\n"
	      "  --zone vlan          the outermost VLAN number is part of a flow's key\n"
	      "                       (default: it is not)\n"
	      "  --active SECONDS     report a long flow this often while it lives (default: "
	      "off)\n",
		stream);
	fputs(timeouts, stream);
	for (unsigned i = 0; i < FLOW_N_TIMEOUTS; i++)
		fprintf(stream, "    %-15s %10s  %s\n", flow_timeout_name((enum flow_timeout)i),
			text_grouped(seconds, defaults.seconds[i]), timeout_notes[i]);
	fprintf(stream, "\nSeconds are whole, 1 to %s (a year).\n",
		text_grouped(seconds, FLOW_TIMEOUT_MAX_S));
	fputs(ends, stream);
}
