/* SPDX-License-Identifier: BSD-3-Clause */
/* flow explain: sentences, as far as the engine says what they need. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/block.h"
#include "cli/field.h"
#include "cli/view.h"
#include "cli/when.h"
#include "cli/where.h"

/* Where the further lines of a sentence begin: of the flow, of a direction, of a change. */
#define SENTENCE 5
#define SIDE 7
#define CHANGE 28
/* RFC 7323 section 2.3: no scale is larger. */
#define SCALE_LARGEST 14

static const char *const tcp_flag_names[] = {
	"FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"};

static void print_ends(FILE *out, const json_t *line)
{
	char proto[FIELD_MAX], from[FIELD_MAX], to[FIELD_MAX], state[FIELD_MAX], detail[FIELD_MAX];

	fprintf(out, " %s %s -> %s, %s", field_proto(line, proto),
		field_endpoint(line, "src", "sport", from),
		field_endpoint(line, "dst", "dport", to), field_text(line, "state", state));
	if (field_has(line, "state_detail"))
		fprintf(out, " (%s)", field_text(line, "state_detail", detail));
	putc('\n', out);
}

static void print_place(FILE *out, const json_t *line)
{
	char wire[FIELD_MAX], zone[FIELD_MAX], worker[FIELD_MAX], cpu[FIELD_MAX];

	fprintf(out, " wire %s, zone %s, worker %s", field_text(line, "wire", wire),
		field_text(line, "zone", zone), field_text(line, "worker", worker));
	if (field_has(line, "cpu"))
		fprintf(out, " on cpu %s", field_text(line, "cpu", cpu));
	putc('\n', out);
}

static void print_age(FILE *out, const json_t *line)
{
	char text[FIELD_MAX], span[WHEN_MAX], full[WHEN_MAX];
	const char *start = json_string_value(json_object_get(line, "start"));
	int64_t start_us;

	fputs(" learned", out);
	if (field_has(line, "age_us"))
		fprintf(out, " %s ago", when_span(span, field_number(line, "age_us")));
	if (field_has(line, "learned_from"))
		fprintf(out, " from %s", field_text(line, "learned_from", text));
	if (start && when_parse(start, &start_us))
		fprintf(out, ", counted since %s", when_full(full, start_us));
	if (field_has(line, "idle_us"))
		fprintf(out, ", last packet %s ago",
			when_span(span, field_number(line, "idle_us")));
	putc('\n', out);
}

/* A direction of a routed flow. */
static void print_way(FILE *out, const json_t *way, const char *arrow)
{
	const json_t *route = json_object_get(way, "route"),
		     *hop = json_object_get(way, "next_hop");
	char text[FIELD_MAX], link[FIELD_MAX], mac[FIELD_MAX];

	fprintf(out, " route %s %s", arrow,
		json_is_object(route) ? field_text(route, "prefix", text) : "none");
	if (json_is_object(hop))
		fprintf(out, ", next hop %s dev %s mac %s", field_text(hop, "gateway", text),
			field_text(hop, "link", link), field_text(hop, "mac", mac));
	else if (field_has(way, "punt"))
		fprintf(out, ", left to the kernel: %s", field_text(way, "punt", text));
	else if (field_has(way, "drop"))
		fprintf(out, ", dropped: %s", field_text(way, "drop", text));
	else
		fputs(", looked up packet by packet", out);
	putc('\n', out);
}

static void print_routes(FILE *out, const json_t *line)
{
	if (!field_has(line, "router"))
		return;
	print_way(out, json_object_get(line, "way"), "->");
	print_way(out, json_object_get(line, "reverse_way"), "<-");
}

static void print_counters(FILE *out, const json_t *line)
{
	char there[FIELD_MAX], back[FIELD_MAX], errors[FIELD_MAX];

	fprintf(out, " packets %s -> and %s <-", field_grouped(line, "packets", there),
		field_grouped(line, "reverse_packets", back));
	fprintf(out, ", bytes %s -> and %s <-", field_grouped(line, "bytes", there),
		field_grouped(line, "reverse_bytes", back));
	fprintf(out, ", ICMP errors %s\n", field_grouped(line, "icmp_errors", errors));
}

static void print_flags(FILE *out, const json_t *line, const char *key)
{
	uint64_t flags = field_number(line, key);
	const char *blank = "";

	if (flags == 0)
		fputs("none", out);
	for (unsigned i = 0; i < sizeof(tcp_flag_names) / sizeof(tcp_flag_names[0]); i++) {
		if (!(flags >> i & 1))
			continue;
		fprintf(out, "%s%s", blank, tcp_flag_names[i]);
		blank = " ";
	}
}

static void print_window(FILE *out, const json_t *tcp, const char *const keys[3], const char *arrow)
{
	char next[FIELD_MAX], window[FIELD_MAX], scale[FIELD_MAX];

	fprintf(out, "next %s, window %s, scale %s %s", field_text(tcp, keys[0], next),
		field_grouped(tcp, keys[1], window),
		field_number(tcp, keys[2]) > SCALE_LARGEST ? "not known"
							   : field_text(tcp, keys[2], scale),
		arrow);
}

static void print_tcp(FILE *out, const json_t *line)
{
	static const char *const there[] = {"next_seq", "window", "scale"};
	static const char *const back[] = {"reverse_next_seq", "reverse_window", "reverse_scale"};
	const json_t *tcp = json_object_get(line, "tcp");

	if (!json_is_object(tcp))
		return;
	fputs(" tcp flags ", out);
	print_flags(out, line, "tcp_flags");
	fputs(" -> and ", out);
	print_flags(out, line, "reverse_tcp_flags");
	fputs(" <-\n", out);
	if (!json_is_true(json_object_get(tcp, "window_tracked"))) {
		fputs(" tcp window not followed yet\n", out);
		return;
	}
	fputs(" tcp ", out);
	print_window(out, tcp, there, "->");
	fputs("\n     ", out);
	print_window(out, tcp, back, "<-");
	putc('\n', out);
}

/*
 * "1,410 packets a second: rank 12 among 7,168 in the NIC, which has room for 7,168; 30.5 needed to get
 * in"; of one that is not there "would be rank 12 beside". Among none there is no rank.
 */
static void print_rank(FILE *out, const json_t *side)
{
	char rate[FIELD_MAX], rank[FIELD_MAX], ranked[FIELD_MAX], room[FIELD_MAX],
		text[5 * FIELD_MAX];
	bool ranks = field_number(side, "ranked") > 0;
	const char *state = field_text(side, "state", room);
	/* on its way it is counted among them already, and until it has left */
	bool there = strcmp(state, "software") != 0 && strcmp(state, "queued") != 0 &&
		     strcmp(state, "refused") != 0;
	int length;

	if (!field_has(side, "rank"))
		return;
	length = snprintf(
		text, sizeof(text), "%s packets a second", field_decimal(side, "rate_pps", rate));
	if (ranks)
		length += snprintf(text + length, sizeof(text) - (size_t)length,
			": %srank %s %s %s in the NIC", there ? "" : "would be ",
			field_grouped(side, "rank", rank), there ? "among" : "beside",
			field_grouped(side, "ranked", ranked));
	if (field_has(side, "room"))
		length +=
			snprintf(text + length, sizeof(text) - (size_t)length, "%s has room for %s",
				ranks ? ", which" : "; the NIC", field_grouped(side, "room", room));
	if (field_has(side, "needs_pps"))
		snprintf(text + length, sizeof(text) - (size_t)length, "; %s needed to get in",
			field_decimal(side, "needs_pps", room));
	print_wrapped(out, "     ", text, SIDE);
}

/* "forward in NIC on eth2 since 12 s: " and why */
static void print_direction(FILE *out, const json_t *side)
{
	char where[FIELD_MAX], text[FIELD_MAX], because[FIELD_MAX], span[WHEN_MAX];
	char head[3 * FIELD_MAX];
	bool forward = strcmp(field_text(side, "direction", text), "forward") == 0;
	size_t length = (size_t)snprintf(head, sizeof(head), "  %s %s", forward ? "->" : "<-",
		where_text(side, "state", where));

	if (json_is_false(json_object_get(side, "proven")))
		length += (size_t)snprintf(
			head + length, sizeof(head) - length, " by its word alone");
	if (field_has(side, "port"))
		length += (size_t)snprintf(head + length, sizeof(head) - length, ", %s",
			field_text(side, "port", text));
	if (field_has(side, "for_us"))
		length += (size_t)snprintf(head + length, sizeof(head) - length, ", since %s",
			when_span(span, field_number(side, "for_us")));
	snprintf(head + length, sizeof(head) - length, ":");
	print_wrapped(out, head, field_text(side, "because", because), SIDE);
	print_rank(out, side);
	if (field_has(side, "nic_packets"))
		fprintf(out, "       the NIC counted %s packets in its rule, we %s in all\n",
			field_grouped(side, "nic_packets", text),
			field_grouped(side, "packets", because));
}

static bool is_full(const json_t *line)
{
	char text[FIELD_MAX];

	return strcmp(field_text(line, "how", text), "full") == 0;
}

/* Is there a rule, or was there one as far as is known, by which the NIC sends packets on alone? */
static bool was_full(const json_t *line)
{
	static const char *const lists[] = {"directions", "changes"};
	const json_t *one;
	size_t at;

	for (unsigned i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		json_array_foreach(json_object_get(line, lists[i]), at, one)
		{
			if (is_full(one))
				return true;
		}
	return is_full(line);
}

static const char *nic_text(const json_t *line)
{
	return is_full(line) ? "by the NIC alone" : "in NIC";
}

static void print_where(FILE *out, const json_t *line)
{
	char where[FIELD_MAX], because[FIELD_MAX], head[3 * FIELD_MAX], back[FIELD_MAX];
	const json_t *sides = json_object_get(line, "directions"), *side;
	uint64_t all = field_number(line, "packets") + field_number(line, "reverse_packets");
	size_t i;

	if (field_has(line, "where")) {
		bool nic = strcmp(field_text(line, "where", where), "in_hw") == 0;
		bool plain = nic || strcmp(where, "software") == 0;

		where_text(line, "where", where);

		/* on its way to the NIC or back it is in software, too */
		snprintf(head, sizeof(head),
			"handled %s%s%s%s because:", nic ? nic_text(line) : "in software",
			plain ? "" : " (", plain ? "" : where, plain ? "" : ")");
		print_wrapped(out, head, field_text(line, "where_because", because), SENTENCE);
	}
	json_array_foreach(sides, i, side) print_direction(out, side);
	if (json_is_null(json_object_get(line, "marked_packets")))
		fputs(" marked by the NIC: not known any more\n", out);
	else if (field_number(line, "marked_packets") > 0)
		fprintf(out, " marked by the NIC%s: %s of %s packets\n",
			was_full(line) ? ", or sent on by it alone" : "",
			field_grouped(line, "marked_packets", where), text_grouped(back, all));
	if (json_is_true(json_object_get(line, "estimated")))
		fputs(" estimated: the NIC did not tell the last packets that it sent on alone\n",
			out);
	if (field_has(line, "verdict"))
		fprintf(out, " verdict %s -> and %s <-\n", field_text(line, "verdict", where),
			field_text(line, "reverse_verdict", back));
}

/*
 * "blocked by block 12: 192.0.2.0/24 port 80, for 59 s more: flood", and what was dropped; of a flow that was blocked,
 * that alone.
 */
static void print_blocked(FILE *out, const json_t *line)
{
	char packets[FIELD_MAX], bytes[FIELD_MAX];
	const json_t *block = json_object_get(line, "block");

	if (!field_has(line, "blocked"))
		return;
	if (block)
		block_sentence(out, "blocked by block", block);
	else if (json_is_true(json_object_get(line, "blocked")))
		fputs(" blocked until now, by a block that was just taken back\n", out);
	fprintf(out, " blocked packets %s, bytes %s, not counted above\n",
		field_grouped(line, "blocked_packets", packets),
		field_grouped(line, "blocked_bytes", bytes));
}

/* "decided by rule #3 of port 0 ->: flow create 0 ..." */
static void print_decided_by(FILE *out, const json_t *line, const char *key, const char *arrow)
{
	const json_t *rule = json_object_get(line, key);
	const char *text = json_string_value(json_object_get(rule, "rule"));
	char number[FIELD_MAX], port[FIELD_MAX], head[3 * FIELD_MAX];

	if (text == NULL)
		return;
	snprintf(head, sizeof(head),
		"%s rule #%s of port %s %s:", field_has(rule, "follows") ? "follows" : "decided by",
		field_text(rule, "number", number), field_text(rule, "port", port), arrow);
	print_wrapped(out, head, text, SENTENCE);
}

/* "source 10.0.0.7 has 201 live flows, limit 200 (rule #3 of port 0)" */
static void print_limits(FILE *out, const json_t *line)
{
	char text[2 * FIELD_MAX], number[FIELD_MAX], port[FIELD_MAX];
	const json_t *limit;
	size_t i;

	json_array_foreach(json_object_get(line, "limits"), i, limit)
		fprintf(out, " %s (rule #%s of port %s)\n", field_limit(limit, text),
			field_text(limit, "number", number), field_text(limit, "port", port));
}

/* "rules dropped 12 packets, bytes 768, not counted above", and the marks that they give */
static void print_rules(FILE *out, const json_t *line)
{
	char packets[FIELD_MAX], bytes[FIELD_MAX];

	if (field_has(line, "ct_state"))
		fprintf(out, " conversation %s: %s ->, %s <-\n",
			json_is_true(json_object_get(line, "accepted")) ? "accepted"
									: "not accepted",
			field_text(line, "ct_state", packets),
			field_text(line, "reverse_ct_state", bytes));
	print_decided_by(out, line, "decided_by", "->");
	print_decided_by(out, line, "reverse_decided_by", "<-");
	print_limits(out, line);
	if (field_has(line, "rule_dropped_packets"))
		fprintf(out, " packets dropped by rules %s, bytes %s, not counted above\n",
			field_grouped(line, "rule_dropped_packets", packets),
			field_grouped(line, "rule_dropped_bytes", bytes));
	if (field_has(line, "rule_mark"))
		fprintf(out, " mark by a rule %s ->\n", field_text(line, "rule_mark", packets));
	if (field_has(line, "reverse_rule_mark"))
		fprintf(out, " mark by a rule %s <-\n",
			field_text(line, "reverse_rule_mark", packets));
}

static void print_measured_way(
	FILE *out, const json_t *line, const char *reverse, const char *arrow)
{
	char key[FIELD_MAX], again[FIELD_MAX], order[FIELD_MAX], windows[FIELD_MAX];
	char span[WHEN_MAX];

	snprintf(key, sizeof(key), "%smax_gap_us", reverse);
	fprintf(out, " longest silence %s %s", when_span(span, field_number(line, key)), arrow);
	snprintf(key, sizeof(key), "%sretransmissions", reverse);
	if (field_has(line, key)) {
		field_grouped(line, key, again);
		snprintf(key, sizeof(key), "%sout_of_order", reverse);
		field_grouped(line, key, order);
		snprintf(key, sizeof(key), "%szero_windows", reverse);
		fprintf(out, "; %s segments sent again, %s out of order, %s with a closed window",
			again, order, field_grouped(line, key, windows));
	}
	fputc('\n', out);
}

/* Of a flow that is measured: "round trip 25.0 ms: 5.0 ms ->, 20.0 ms <-", and each direction. */
static void print_measured(FILE *out, const json_t *line)
{
	char rtt[WHEN_MAX], first[WHEN_MAX], reverse[WHEN_MAX];

	if (!field_has(line, "max_gap_us"))
		return;
	if (field_has(line, "rtt_us"))
		fprintf(out, " round trip %s: %s answered -> and %s <-\n",
			when_span(rtt, field_number(line, "rtt_us")),
			when_span(first, field_number(line, "answer_us")),
			when_span(reverse, field_number(line, "reverse_answer_us")));
	print_measured_way(out, line, "", "->");
	print_measured_way(out, line, "reverse_", "<-");
}

/* " before: 12 s ago  -> in NIC to software: its rate fell", newest first */
static void print_changes(FILE *out, const json_t *line)
{
	const json_t *changes = json_object_get(line, "changes"), *change;
	char because[FIELD_MAX], text[FIELD_MAX], span[WHEN_MAX], head[3 * FIELD_MAX];
	const char *begin = "before:";
	size_t i;

	json_array_foreach(changes, i, change)
	{
		bool forward = strcmp(field_text(change, "direction", text), "forward") == 0;

		int length = snprintf(head, sizeof(head), "%-7s %10s ago  %s  ", begin,
			when_span(span, field_number(change, "ago_us")), forward ? "->" : "<-");

		where_change(change, text, sizeof(text));
		snprintf(head + length, sizeof(head) - (size_t)length, "%s:", text);
		print_wrapped(out, head, field_text(change, "because", because), CHANGE);
		begin = "";
	}
	if (json_is_true(json_object_get(line, "changes_lost")))
		fputs("         older changes are no longer known\n", out);
}

static void print_end(FILE *out, const json_t *line)
{
	char text[FIELD_MAX], span[WHEN_MAX];

	if (field_has(line, "timeout_s")) {
		fprintf(out, " will end: %s after its last packet",
			when_span(span, field_number(line, "timeout_s") * 1000000));
		if (field_has(line, "timeout_name"))
			fprintf(out, " (%s)", field_text(line, "timeout_name", text));
		if (field_has(line, "ends_in_us"))
			fprintf(out, ", in %s if nothing more comes",
				when_span(span, field_number(line, "ends_in_us")));
		putc('\n', out);
	}
	if (field_has(line, "ends_because"))
		print_wrapped(out, "because:", field_text(line, "ends_because", text), SENTENCE);
}

static void explain_line(struct cli_show *show, const json_t *line)
{
	print_ends(show->out, line);
	print_place(show->out, line);
	print_age(show->out, line);
	print_routes(show->out, line);
	print_counters(show->out, line);
	print_measured(show->out, line);
	print_blocked(show->out, line);
	print_rules(show->out, line);
	print_tcp(show->out, line);
	print_where(show->out, line);
	print_changes(show->out, line);
	print_end(show->out, line);
}

const struct cli_view cli_flow_explain = {explain_line, NULL};
