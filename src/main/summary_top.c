/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/summary.h"

#include <stdbool.h>
#include <string.h>

#include <rte_byteorder.h>

#include "base/text.h"
#include "export/address.h"
#include "export/top.h"

/* "[address]:port" */
#define ENDPOINT_MAX (EXPORT_ADDRESS_MAX + 8)

/* The columns whose width depends on what is in them. */
struct widths {
	int forward, reverse; /* packets */
	int initiator, responder;
	bool stacked; /* both endpoints in one line would be too wide: one below the other */
};

static const char *endpoint(char buffer[ENDPOINT_MAX], const struct flow_key *key, unsigned end)
{
	char address[EXPORT_ADDRESS_MAX];
	unsigned version = flow_key_version(key);
	size_t length = export_address(address, version, key->addr[end]);
	unsigned port = rte_be_to_cpu_16(key->port[end]);

	address[length] = '\0';
	if (key->port[0] == 0 && key->port[1] == 0)
		snprintf(buffer, ENDPOINT_MAX, "%s", address);
	else
		snprintf(buffer, ENDPOINT_MAX, version == 6 ? "[%s]:%u" : "%s:%u", address, port);
	return buffer;
}

static const char *protocol(char buffer[TEXT_NUMBER_MAX], uint8_t proto)
{
	switch (proto) {
	case 1:
		return "icmp";
	case 6:
		return "tcp";
	case 17:
		return "udp";
	case 47:
		return "gre";
	case 50:
		return "esp";
	case 58:
		return "icmp6";
	case 132:
		return "sctp";
	default:
		snprintf(buffer, TEXT_NUMBER_MAX, "%u", proto);
		return buffer;
	}
}

static void widen(int *width, const char *text)
{
	int length = (int)strlen(text);

	if (length > *width)
		*width = length;
}

static struct widths top_measure(const struct flow_report *top, unsigned n)
{
	struct widths widths = {.initiator = 9, .responder = 9};
	char number[TEXT_NUMBER_MAX], text[ENDPOINT_MAX];

	for (unsigned i = 0; i < n; i++) {
		const struct flow_record *record = &top[i].record;
		unsigned from = record->initiator;

		widen(&widths.forward, text_grouped(number, flow_packets(record, from)));
		widen(&widths.reverse, text_grouped(number, flow_packets(record, !from)));
		widen(&widths.initiator, endpoint(text, &record->key, from));
		widen(&widths.responder, endpoint(text, &record->key, !from));
	}
	/* the heading "packets -> / <-" has its slash in the column's */
	if (widths.forward < 10)
		widths.forward = 10;
	if (widths.reverse < 2)
		widths.reverse = 2;
	int fixed = 8 + 2 + widths.forward + 3 + widths.reverse + 2 + 5 + 2 + 8 + 2;

	widths.stacked = fixed + widths.initiator + 2 + widths.responder > SUMMARY_COLUMNS;
	return widths;
}

static void print_row(FILE *stream, const struct flow_report *report, const struct widths *widths)
{
	const struct flow_record *record = &report->record;
	unsigned from = record->initiator;
	char bytes[TEXT_NUMBER_MAX], forward[TEXT_NUMBER_MAX], reverse[TEXT_NUMBER_MAX];
	char proto[TEXT_NUMBER_MAX], initiator[ENDPOINT_MAX], responder[ENDPOINT_MAX];
	int indent = 8 + 2 + widths->forward + 3 + widths->reverse + 2 + 5 + 2 + 8 + 2;

	fprintf(stream, "%8s  %*s / %-*s  %-5s  %-8s  ", text_bytes(bytes, top_bytes(report)),
		widths->forward, text_grouped(forward, flow_packets(record, from)), widths->reverse,
		text_grouped(reverse, flow_packets(record, !from)),
		protocol(proto, record->key.proto), flow_end_name((enum flow_end)report->reason));
	endpoint(initiator, &record->key, from);
	endpoint(responder, &record->key, !from);
	if (widths->stacked)
		fprintf(stream, "%s\n%*s%s\n", initiator, indent, "", responder);
	else
		fprintf(stream, "%-*s  %s\n", widths->initiator, initiator, responder);
}

void summary_top(FILE *stream, const struct flow_report *top, unsigned n)
{
	if (n == 0)
		return;
	struct widths widths = top_measure(top, n);

	fprintf(stream, "%8s  %*s / %-*s  %-5s  %-8s  ", "bytes", widths.forward, "packets ->",
		widths.reverse, "<-", "proto", "ended");
	if (widths.stacked)
		fprintf(stream, "initiator, responder\n");
	else
		fprintf(stream, "%-*s  responder\n", widths.initiator, "initiator");
	for (unsigned i = 0; i < n; i++)
		print_row(stream, &top[i], &widths);
}
