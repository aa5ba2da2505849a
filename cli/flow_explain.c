/* SPDX-License-Identifier: BSD-3-Clause */
/* flow explain: sentences, as far as the engine says what they need. */
#include <stdio.h>
#include <string.h>

#include "cli/field.h"
#include "cli/view.h"
#include "cli/when.h"

#define LAST_COLUMN 99
/* RFC 7323 section 2.3: no scale is larger. */
#define SCALE_LARGEST 14

static const char *const tcp_flag_names[] = {
	"FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"};

/* A sentence of any length behind `head`, its further lines indented. */
static void print_wrapped(FILE *out, const char *head, const char *text)
{
	int at = fprintf(out, " %s", head);

	while (*text != '\0') {
		size_t length = strcspn(text, " ");

		if (at + 1 + (int)length > LAST_COLUMN)
			at = fprintf(out, "\n    ") - 1;
		at += fprintf(out, " %.*s", (int)length, text);
		text += length;
		text += strspn(text, " ");
	}
	putc('\n', out);
}

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

static void print_where(FILE *out, const json_t *line)
{
	char where[FIELD_MAX], because[FIELD_MAX], head[FIELD_MAX + 32], back[FIELD_MAX];

	if (field_has(line, "where")) {
		snprintf(head, sizeof(head),
			"handled in %s because:", field_text(line, "where", where));
		print_wrapped(out, head, field_text(line, "where_because", because));
	}
	if (field_has(line, "verdict"))
		fprintf(out, " verdict %s -> and %s <-\n", field_text(line, "verdict", where),
			field_text(line, "reverse_verdict", back));
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
		print_wrapped(out, "because:", field_text(line, "ends_because", text));
}

static void explain_line(struct cli_show *show, const json_t *line)
{
	print_ends(show->out, line);
	print_place(show->out, line);
	print_age(show->out, line);
	print_counters(show->out, line);
	print_tcp(show->out, line);
	print_where(show->out, line);
	print_end(show->out, line);
}

const struct cli_view cli_flow_explain = {explain_line, NULL};
