/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/replay_options.h"

static const char usage[] =
	"Usage: millrace replay [OPTION]... CAPTURE...\n"
	"\n"
	"Runs the whole engine over captures and writes one record for each flow, a line of\n"
	"JSON. Each capture is a run of its own; - is standard input. A summary follows on\n"
	"standard error.\n"
	"\n"
	"A capture is a pcap or pcapng file of Ethernet, raw IP, Linux cooked, BSD loopback or\n"
	"PPP packets. One that is compressed is unpacked on the way: zcat FILE | millrace replay "
	"-\n"
	"\n"
	"Captures\n"
	"  --continue           the captures are one stream in the order given, as tcpdump -C,\n"
	"                       -G and dumpcap -b write it: flows go on from one to the next\n"
	"  --pace               packets come at the pace of the capture, not at full speed\n"
	"\n"
	"Records\n"
	"  --output FILE        write the records to FILE; - and the default is standard output\n"
	"  --export URL         send records of each flow to a collector, IPFIX as in\n"
	"                       ipfix://127.0.0.1:2055; also ipfix+tcp://, ipfix+tls://,\n"
	"                       ipfix+file:; json+udp://, json+tcp://, json+tls://, json+file:\n"
	"                       and kafka://BROKER/TOPIC send JSON; may be given more than\n"
	"                       once (docs/export.md). By UDP\n"
	"                       200,000 records a second are sent, or as the URL says (rate=N).\n"
	"                       Records are written as well only where --output says so\n"
	"  --summary            after the summary, the flows with most bytes\n"
	"  --json               the summary as one JSON object\n"
	"\n"
	"Engine\n"
	"  --blocks FILE        drop what FILE blocks, a line each, as millrace run does from its\n"
	"                       start; here no block ends by time\n"
	"  --rules FILE         do what the rules of FILE say, as millrace run does; all packets\n"
	"                       come in by port 0\n"
	"  --rules-replies WORD\n"
	"                       match or follow, as for millrace run\n"
	"  --rules-pickup WORD  yes or no, as for millrace run\n";

static const char ends[] =
	"\n"
	"Exit status: 0 when everything was read and written; 1 when a capture was cut, damaged\n"
	"or not readable (the others are still read), or records could not be written; 2 for a\n"
	"wrong command line.\n";

void replay_options_help(FILE *stream)
{
	fputs(usage, stream);
	engine_options_help(stream);
	fputs(ends, stream);
}
