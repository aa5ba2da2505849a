/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/words.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/view.h"

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

/* The names of `protos` below (a test holds them against each other). */
static const char *const proto_words[] = {
	"tcp", "udp", "sctp", "icmp", "icmp6", "dccp", "udplite", "gre", "esp", "igmp", NULL};

/* Phases first; then every state of docs/flow-life.md (a test holds them against src/flow). */
static const char *const state_words[] = {"new", "open", "closing", "request", "picked-up",
	"syn-sent", "syn-received", "replied", "established", "fin-0", "fin-1", "fin-both",
	"fin-ack-0", "fin-ack-1", "time-wait", "reset", NULL};

/* Every state of docs/offload.md (a test holds them against src/offload). */
static const char *const where_words[] = {
	"software", "queued", "refused", "installing", "leaving", "suspect", "in_hw", NULL};

/* Every reason of docs/packet-path.md (a test holds them against src/dataplane). */
static const char *const why_words[] = {"malformed", "tcp_window", "tcp_header", "hand_over",
	"output", "cut", "too_long", "blocked", "rule", "rejected", "ttl_expired", "no_next_hop",
	"too_big", "policed", "meter", "ip_checksum", "other_host", "martian", "blackhole",
	"source", "punt_limited", "punt_ring", "not_possible", NULL};

static const char *const by_words[] = {"rate", "packets", "bytes", "age", NULL};

const struct cli_value_words cli_value_words[] = {
	{"PROTO", proto_words, "a number"},
	{"STATE", state_words, NULL},
	{"WHERE", where_words, NULL},
	{"BY", by_words, NULL},
	{"REASON", why_words, NULL},
};
const unsigned cli_n_value_words = N_OF(cli_value_words);

const struct cli_option cli_options[CLI_N_OPTIONS] = {
	[CLI_ADDRESS] = {"address", "ADDR",
		"either end has this address, or one of a prefix: 10.0.0.0/8", "address",
		CLI_VALUE_ADDRESS, 0, 0, NULL},
	[CLI_PORT] = {"port", "N", "either end has this port number", "port", CLI_VALUE_NUMBER, 0,
		65535, NULL},
	[CLI_PROTO] = {"proto", "PROTO", "of this protocol", "proto", CLI_VALUE_PROTO, 0, 0, NULL},
	[CLI_STATE] = {"state", "STATE", "in this phase (new, open, closing) or this very state",
		"state", CLI_VALUE_WORD, 0, 0, state_words},
	[CLI_WIRE] = {"wire", "N", "on this wire", "wire", CLI_VALUE_NUMBER, 0, 15, NULL},
	[CLI_WORKER] = {"worker", "N", "of this worker", "worker", CLI_VALUE_NUMBER, 0, 15, NULL},
	[CLI_ZONE] = {"zone", "N", "in this zone", "zone", CLI_VALUE_NUMBER, 0, 65535, NULL},
	[CLI_OFFLOAD] = {"offload", "WHERE",
		"handled there: by the direction that is further on its way to the\n"
		"network card",
		"offload", CLI_VALUE_WORD, 0, 0, where_words},
	[CLI_BLOCKED] = {"blocked", NULL, "whose packets are dropped, since a block fits them",
		"blocked", CLI_VALUE_YES, 0, 0, NULL},
	[CLI_TOP] = {"top", "N", "only the first N by rate, or by what --by says; 1 to 1,000",
		"top", CLI_VALUE_NUMBER, 1, 1000, NULL},
	[CLI_BY] = {"by", "BY", "what --top goes by (default rate, in packets a second)", "by",
		CLI_VALUE_WORD, 0, 0, by_words},
	[CLI_OVER] = {"over", "SECONDS", "how long the rate is measured, 0.1 to 10 (default 1)",
		"over_ms", CLI_VALUE_SECONDS, 100, 10000, NULL},
	[CLI_LIMIT] = {"limit", "N", "stop after so many, and say how to go on", "limit",
		CLI_VALUE_NUMBER, 1, UINT32_MAX, NULL},
	[CLI_CURSOR] = {"cursor", "TEXT", "go on where an answer with --limit said", "cursor",
		CLI_VALUE_TEXT, 0, 0, NULL},
	[CLI_NO_FLOWS] = {"no-flows", NULL, "leave out what happens to flows", "flows",
		CLI_VALUE_NO, 0, 0, NULL},
	[CLI_FOLLOW] = {"follow", NULL, "go on with those that come, until interrupted", "follow",
		CLI_VALUE_YES, 0, 0, NULL},
	[CLI_FOR] = {"for", "SECONDS", "end the block by itself after so long (default: never)",
		"for", CLI_VALUE_NUMBER, 1, 1000000000, NULL},
	[CLI_REASON] = {"reason", "TEXT", "why, for whoever lists the blocks; at most 117 bytes",
		"reason", CLI_VALUE_TEXT, 0, 0, NULL},
	[CLI_DROP_REASON] = {"why", "REASON", "only what is dropped for this reason", "reason",
		CLI_VALUE_WORD, 0, 0, why_words},
	[CLI_NUMBER] = {"number", "N", "the block of this number, as block list shows it", "number",
		CLI_VALUE_LARGE, 0, 0, NULL},
	[CLI_AT] = {"at", "N", "at this port of the engine, by its number", "at", CLI_VALUE_NUMBER,
		0, 31, NULL},
	[CLI_CONFIRM] = {"confirm", "SECONDS",
		"go back by itself after so long, unless confirm comes; 1 to 86,400", "confirm",
		CLI_VALUE_NUMBER, 1, 86400, NULL},
	[CLI_NO_WAIT] = {"no-wait", NULL,
		"do not wait until all live flows are decided by the new rules", "wait",
		CLI_VALUE_NO, 0, 0, NULL},
	[CLI_SAVE] = {"save", NULL, "replace the engine's own file, too, once it is in force",
		"save", CLI_VALUE_YES, 0, 0, NULL},
	[CLI_OF_RULE] = {"rule", "N", "only by the rule of this number, with --at", "rule",
		CLI_VALUE_NUMBER, 0, UINT32_MAX - 1, NULL},
	[CLI_RATE] = {"rate", "N", "of each reason so many a second, 1 to 1,000 (default 100)",
		"rate", CLI_VALUE_NUMBER, 1, 1000, NULL},
	[CLI_INTERVAL] = {"interval", "SECONDS", "a new picture so often: 0.1 to 3600 (default 1)",
		"interval_ms", CLI_VALUE_SECONDS, 100, 3600000, NULL},
	[CLI_ONCE] = {"once", NULL, "one picture as text, and no keys", NULL, CLI_VALUE_NONE, 0, 0,
		NULL},
	[CLI_JSON] = {"json", NULL, "the engine's own answer, one JSON object a line", NULL,
		CLI_VALUE_NONE, 0, 0, NULL},
	[CLI_SOCKET] = {"socket", "PATH",
		"the engine's control socket (default millrace.sock in\n"
		"$XDG_RUNTIME_DIR, else in /run)",
		NULL, CLI_VALUE_TEXT, 0, 0, NULL},
	[CLI_HELP] = {"help", NULL, "this", NULL, CLI_VALUE_NONE, 0, 0, NULL},
};

#define FLOW_FIXED_FILTERS                                                                   \
	(CLI_BIT(CLI_ADDRESS) | CLI_BIT(CLI_PORT) | CLI_BIT(CLI_PROTO) | CLI_BIT(CLI_WIRE) | \
		CLI_BIT(CLI_ZONE))
#define FLOW_FILTERS                                                                            \
	(FLOW_FIXED_FILTERS | CLI_BIT(CLI_STATE) | CLI_BIT(CLI_WORKER) | CLI_BIT(CLI_OFFLOAD) | \
		CLI_BIT(CLI_BLOCKED))
#define FLOW_LIST_OPTIONS                                                        \
	(FLOW_FILTERS | CLI_BIT(CLI_TOP) | CLI_BIT(CLI_BY) | CLI_BIT(CLI_OVER) | \
		CLI_BIT(CLI_LIMIT) | CLI_BIT(CLI_CURSOR))
#define FLOW_NAME_OPTIONS (CLI_BIT(CLI_WIRE) | CLI_BIT(CLI_ZONE))
#define BLOCK_NAME_OPTIONS (FLOW_NAME_OPTIONS | CLI_BIT(CLI_PORT) | CLI_BIT(CLI_PROTO))

const struct cli_verb cli_verbs[] = {
	{"flow", "list", "the flows, or those that all the filters fit",
		"A wire of 0/7 is wire 0, zone 7; with --top it stands behind the protocol, if it\n"
		"is not 0: tcp w0/7. -> is from the initiator, <- to it; with --active they and\n"
		"the age count from the last report.\n",
		CLI_NO_WORDS, false, FLOW_LIST_OPTIONS, &cli_flow_list},
	{"flow", "explain", "all about one flow: where it is handled, why, and when it will end",
		NULL, CLI_FLOW, false, FLOW_NAME_OPTIONS, &cli_flow_explain},
	{"flow", "kill", "end one flow; its next packet begins another", NULL, CLI_FLOW, false,
		FLOW_NAME_OPTIONS, &cli_flow_kill},
	{"flow", "block", "drop the packets of a flow, or of all flows of an address or prefix",
		"New flows are blocked with their first packet, live ones within a second. What "
		"has\n"
		"been blocked already gets the time and the reason that are given now.\n",
		CLI_BLOCK, false, BLOCK_NAME_OPTIONS | CLI_BIT(CLI_FOR) | CLI_BIT(CLI_REASON),
		&cli_flow_block},
	{"flow", "unblock", "take a block back: the very flow, address or prefix that was blocked",
		"What another block fits too stays blocked.\n", CLI_BLOCK, false,
		BLOCK_NAME_OPTIONS | CLI_BIT(CLI_NUMBER), &cli_flow_unblock},
	{"block", "list", "what is blocked, and how much of it was dropped",
		"With a flow: the blocks that fit it. With an address or prefix: those of flows\n"
		"with an end in it, and of prefixes that lie in it or hold it.\n",
		CLI_BLOCK_MAYBE, false,
		FLOW_NAME_OPTIONS | CLI_BIT(CLI_LIMIT) | CLI_BIT(CLI_CURSOR), &cli_block_list},
	{"rule", "list", "the rules in force, and what they have matched",
		"Flows are those that a rule decides or has decided as a whole. - is not counted: "
		"other\n"
		"rules decide the packets (jump, passthru), or the rule decides packets one by "
		"one.\n",
		CLI_NO_WORDS, false, CLI_BIT(CLI_AT) | CLI_BIT(CLI_LIMIT) | CLI_BIT(CLI_CURSOR),
		&cli_rule_list},
	{"rule", "add", "put a rule in force, or do another command of testpmd's flow syntax",
		"New flows are decided by it with their first packet, live ones within a "
		"second.\n"
		"flow validate, destroy, flush, list, query, aged and indirect_action, set, and\n"
		"the lines that make meters, do what they say.\n",
		CLI_RULE, false, 0, &cli_rule_add},
	{"rule", "del", "take a rule out of force", NULL, CLI_RULE_NUMBER, false, 0, &cli_rule_del},
	{"rule", "diff", "what rule load of the file would change", NULL, CLI_FILE, false, 0,
		&cli_rule_diff},
	{"rule", "load", "put a file's rules in force in place of all that are",
		"All or nothing: the file is checked first. Each packet is handled by the rules "
		"before\n"
		"or by the new ones. Rules that stand in both keep what they have counted. It "
		"ends\n"
		"when all live flows are decided anew, and network cards have let go what they "
		"had\n"
		"of the rules before. FILE is - for standard input.\n",
		CLI_FILE, false, CLI_BIT(CLI_CONFIRM) | CLI_BIT(CLI_NO_WAIT) | CLI_BIT(CLI_SAVE),
		&cli_rule_load},
	{"rule", "confirm", "keep the rules that were loaded with --confirm", NULL, CLI_NO_WORDS,
		false, 0, &cli_rule_confirm},
	{"rule", "rollback", "go back to the rules before the last rule load", NULL, CLI_NO_WORDS,
		false, 0, &cli_rule_load},
	{"rule", "status", "how far the last change of all rules has come", NULL, CLI_NO_WORDS,
		false, 0, &cli_rule_status},
	{"rule", "trace", "which rules are tried for the packets of a flow, or for a packet",
		"Of a flow it traces what goes from its first address to the second; where the "
		"flow "
		"is\n"
		"there, the port that its packets come in by is known. A packet is given by the "
		"port\n"
		"that it comes in by and by its fields, as a rule names them:\n"
		"0 eth / ipv4 src is 10.0.0.1 ttl is 3 / tcp dst is 80 / end\n"
		"Then fields count, too, that packets of a flow may differ in.\n",
		CLI_WAY, false, FLOW_NAME_OPTIONS | CLI_BIT(CLI_AT), &cli_rule_trace},
	{"port", "show", "each port: device, link, queues, and what it carried", NULL, CLI_NO_WORDS,
		false, 0, &cli_port_show},
	{"worker", "show", "each thread: flows, packets, how busy, cycles by stage", NULL,
		CLI_NO_WORDS, false, 0, &cli_worker_show},
	{"wire", "show", "each wire: where every packet that it received went", NULL, CLI_NO_WORDS,
		false, 0, &cli_wire_show},
	{"domain", "show",
		"each wire and router: its ports, and what a router leaves to the kernel", NULL,
		CLI_NO_WORDS, false, 0, &cli_domain_show},
	{"route", "show", "the routes that routers follow, or the one that an address takes",
		"Of a prefix: the routes to it, and to those in it. With lookup and an address: "
		"the\n"
		"route that packets to it take.\n",
		CLI_ROUTE, false, 0, &cli_route_show},
	{"neighbour", "show", "the neighbours of routers, and their link addresses", NULL,
		CLI_NO_WORDS, false, 0, &cli_neighbour_show},
	{"drop", "show", "packets dropped, by reason", NULL, CLI_NO_WORDS, false, 0,
		&cli_drop_show},
	{"drop", "follow", "a sample of dropped packets as they are dropped, until interrupted",
		"With --at only what rules of that port drop, which were made for it. What is "
		"above\n"
		"the rate is counted: left out.\n",
		CLI_NO_WORDS, true,
		CLI_BIT(CLI_DROP_REASON) | CLI_BIT(CLI_AT) | CLI_BIT(CLI_OF_RULE) |
			CLI_BIT(CLI_RATE),
		&cli_drop_follow},
	{"export", "show", "each export: records sent to it, waiting and lost", NULL, CLI_NO_WORDS,
		false, 0, &cli_export_show},
	{"offload", "show",
		"each port's network card: what it holds, its rates, failures and health", NULL,
		CLI_NO_WORDS, false, 0, &cli_offload_show},
	{"offload", "events", "what became of flows and network cards, oldest first",
		"As far as the engine remembers: the last 4,096 changes of each worker. With\n"
		"--address, --port, --proto or --zone only those of flows, with --no-flows only\n"
		"those of cards.\n",
		CLI_NO_WORDS, false,
		FLOW_FIXED_FILTERS | CLI_BIT(CLI_NO_FLOWS) | CLI_BIT(CLI_FOLLOW),
		&cli_offload_events},
	{"offload", "check", "would a flow go into a network card, and if not, why",
		"It need not be there; of one that is, where it is handled now is told too.\n",
		CLI_FLOW, false, FLOW_NAME_OPTIONS, &cli_offload_check},
	{"event", "follow", "one line for each event, until interrupted", NULL, CLI_NO_WORDS, true,
		CLI_BIT(CLI_NO_FLOWS), &cli_event_follow},
	{"config", "show", "the configuration in effect, every default filled in", NULL,
		CLI_NO_WORDS, false, 0, &cli_config_show},
	{"config", "diff", "what config apply of the file would change, key by key", NULL, CLI_FILE,
		false, 0, &cli_config_diff},
	{"config", "apply", "put a file's configuration in effect, all of it or nothing",
		"Everything is checked first. Where the file says something that only a restart "
		"can\n"
		"change, nothing changes, and the key is named. What the engine's command line "
		"says\n"
		"holds. FILE is - for standard input.\n",
		CLI_FILE, false, CLI_BIT(CLI_CONFIRM) | CLI_BIT(CLI_NO_WAIT) | CLI_BIT(CLI_SAVE),
		&cli_config_apply},
	{"config", "confirm", "keep the configuration that was applied with --confirm", NULL,
		CLI_NO_WORDS, false, 0, &cli_config_confirm},
	{"config", "rollback", "go back to the configuration before the last config apply", NULL,
		CLI_NO_WORDS, false, 0, &cli_config_apply},
	{"config", "status", "where the configuration came from, and what it waits for", NULL,
		CLI_NO_WORDS, false, 0, &cli_config_status},
};
const unsigned cli_n_verbs = N_OF(cli_verbs);

const struct cli_verb cli_top_verb = {.noun = "top",
	.what = "its busiest flows, ports, workers, drops and NICs, as they change",
	.more = "Keys: arrows move, Enter explains a flow, b blocks it, s sorts, f filters, space\n"
		"freezes, ? lists them all, q quits. Where there is no terminal, and with --once "
		"or\n"
		"--json, it prints one picture and ends; as JSON that is one object, which has "
		"the\n"
		"engine's own answers and their rates.\n",
	.words = CLI_NO_WORDS,
	.options = FLOW_FILTERS | CLI_BIT(CLI_TOP) | CLI_BIT(CLI_BY) | CLI_BIT(CLI_INTERVAL) |
		   CLI_BIT(CLI_ONCE)};

const struct cli_verb cli_filter_verb = {
	.noun = "filter", .words = CLI_NO_WORDS, .options = FLOW_FILTERS};

const char *cli_verb_title(char title[CLI_TITLE_MAX], const struct cli_verb *verb)
{
	snprintf(title, CLI_TITLE_MAX, "%s%s%s", verb->noun, verb->name ? " " : "",
		verb->name ? verb->name : "");
	return title;
}

static const struct cli_proto protos[] = {
	{"tcp", 6, true, true},
	{"udp", 17, true, true},
	{"sctp", 132, true, true},
	{"icmp", 1, false, true},
	{"icmp6", 58, false, true},
	{"dccp", 33, true, false},
	{"udplite", 136, true, false},
	{"gre", 47, false, false},
	{"esp", 50, false, false},
	{"igmp", 2, false, false},
};

unsigned cli_words_count(const char *const *words)
{
	unsigned n = 0;

	while (words[n])
		n++;
	return n;
}

bool cli_words_have(const char *const *words, const char *word)
{
	for (; *words; words++)
		if (strcmp(*words, word) == 0)
			return true;
	return false;
}

const char *const *cli_words_of(const char *value)
{
	static const char *const none[] = {NULL};

	for (unsigned i = 0; i < cli_n_value_words; i++)
		if (strcmp(cli_value_words[i].value, value) == 0)
			return cli_value_words[i].words;
	return none;
}

static const struct cli_proto *proto_by_number(uint64_t number)
{
	for (unsigned i = 0; i < N_OF(protos); i++)
		if (protos[i].number == number)
			return &protos[i];
	return NULL;
}

bool cli_proto_parse(struct cli_proto *proto, const char *text)
{
	size_t digits = strspn(text, "0123456789");

	for (unsigned i = 0; i < N_OF(protos); i++) {
		if (strcmp(protos[i].name, text) == 0) {
			*proto = protos[i];
			return true;
		}
	}
	if (digits == 0 || digits > 3 || text[digits] != '\0')
		return false;
	unsigned long number = strtoul(text, NULL, 10);
	const struct cli_proto *known = proto_by_number(number);

	*proto = known ? *known : (struct cli_proto){.number = (uint8_t)number};
	return number <= UINT8_MAX;
}

const char *cli_proto_ask(char buffer[CLI_PROTO_ASK_MAX], const struct cli_proto *proto)
{
	if (proto->asked)
		snprintf(buffer, CLI_PROTO_ASK_MAX, "%s", proto->name);
	else
		snprintf(buffer, CLI_PROTO_ASK_MAX, "%u", proto->number);
	return buffer;
}

const char *cli_proto_name(uint64_t number)
{
	const struct cli_proto *known = proto_by_number(number);

	return known ? known->name : NULL;
}
