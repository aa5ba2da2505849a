/* SPDX-License-Identifier: BSD-3-Clause */
#include "export/json.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>

#include "export/address.h"
#include "offload/reason.h"
#include "offload/state.h"
#include "packet/link.h"

#define ICMP 1
#define TCP 6
#define ICMPV6 58

/* Appends a text of the template, whose length the compiler knows. */
#define TEXT(out, text) ((char *)memcpy(out, text, sizeof(text) - 1) + sizeof(text) - 1)

static const char pairs[] = "00010203040506070809101112131415161718192021222324"
			    "25262728293031323334353637383940414243444546474849"
			    "50515253545556575859606162636465666768697071727374"
			    "75767778798081828384858687888990919293949596979899";

static char *write_pair(char *out, unsigned number)
{
	memcpy(out, &pairs[2 * number], 2);
	return out + 2;
}

static char *write_number(char *out, uint64_t number)
{
	char reversed[20];
	unsigned start = sizeof(reversed);

	while (number >= 100) {
		start -= 2;
		write_pair(&reversed[start], (unsigned)(number % 100));
		number /= 100;
	}
	if (number >= 10) {
		start -= 2;
		write_pair(&reversed[start], (unsigned)number);
	} else {
		reversed[--start] = (char)('0' + number);
	}
	memcpy(out, &reversed[start], sizeof(reversed) - start);
	return out + sizeof(reversed) - start;
}

static char *write_string(char *out, const char *text)
{
	size_t length = strlen(text);

	memcpy(out, text, length);
	return out + length;
}

/*
 * The civil date of a day since 1970, counted in years that begin in March: so the leap day is the
 * last of its year, and of the 400 years after which the calendar repeats.
 */
static char *write_date(char *out, uint64_t day)
{
	day += 719468; /* since March 1 of the year 0 */

	uint64_t era = day / 146097;
	unsigned day_of_era = (unsigned)(day % 146097);
	unsigned year_of_era =
		(day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
	unsigned day_of_year =
		day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	unsigned month = (5 * day_of_year + 2) / 153; /* 0 = March */
	unsigned day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
	uint64_t year = era * 400 + year_of_era + (month >= 10);

	if (year < 10000) {
		out = write_pair(out, (unsigned)year / 100);
		out = write_pair(out, (unsigned)year % 100);
	} else {
		out = write_number(out, year);
	}
	*out++ = '-';
	out = write_pair(out, month < 10 ? month + 3 : month - 9);
	*out++ = '-';
	return write_pair(out, day_of_month);
}

static char *write_time(char *out, uint64_t us)
{
	uint64_t seconds = us / 1000000;
	unsigned second = (unsigned)(seconds % 86400);
	unsigned fraction = (unsigned)(us % 1000000);

	out = write_date(out, seconds / 86400);
	*out++ = 'T';
	out = write_pair(out, second / 3600);
	*out++ = ':';
	out = write_pair(out, second / 60 % 60);
	*out++ = ':';
	out = write_pair(out, second % 60);
	*out++ = '.';
	out = write_pair(out, fraction / 10000);
	out = write_pair(out, fraction / 100 % 100);
	out = write_pair(out, fraction % 100);
	*out++ = 'Z';
	return out;
}

const char *export_json_time(char text[EXPORT_JSON_TIME_MAX], uint64_t unix_us)
{
	*write_time(text, unix_us) = '\0';
	return text;
}

/* version proto src sport dst dport wire zone, and link where it is not Ethernet */
static char *write_key(char *out, const struct flow_key *key, unsigned from, bool wire_is_link)
{
	unsigned version = flow_key_version(key);

	out = write_number(TEXT(out, "\"version\":"), version);
	out = write_number(TEXT(out, ",\"proto\":"), key->proto);
	out = TEXT(out, ",\"src\":\"");
	out += export_address(out, version, key->addr[from]);
	out = write_number(TEXT(out, "\",\"sport\":"), rte_be_to_cpu_16(key->port[from]));
	out = TEXT(out, ",\"dst\":\"");
	out += export_address(out, version, key->addr[!from]);
	out = write_number(TEXT(out, "\",\"dport\":"), rte_be_to_cpu_16(key->port[!from]));
	out = write_number(TEXT(out, ",\"wire\":"), wire_is_link ? 0 : flow_key_wire(key));
	out = write_number(TEXT(out, ",\"zone\":"), key->zone);
	if (!wire_is_link || flow_key_wire(key) == LINK_ETHERNET)
		return out;
	out = write_string(
		TEXT(out, ",\"link\":\""), link_type_name((enum link_type)flow_key_wire(key)));
	return TEXT(out, "\"");
}

static char *write_counters(char *out, const struct flow_record *record, unsigned from)
{
	out = write_number(TEXT(out, ",\"packets\":"), flow_packets(record, from));
	out = write_number(TEXT(out, ",\"bytes\":"), flow_bytes(record, from));
	out = write_number(TEXT(out, ",\"reverse_packets\":"), flow_packets(record, !from));
	return write_number(TEXT(out, ",\"reverse_bytes\":"), flow_bytes(record, !from));
}

/* start end state end_reason; of a flow that lives, start and state */
static char *write_life(char *out, const struct flow_report *report, bool live)
{
	const struct flow_record *record = &report->record;
	enum flow_end reason = (enum flow_end)report->reason;
	const char *state = "ended";

	if (live || reason == FLOW_END_ACTIVE)
		state = flow_phase_name(flow_phase((enum flow_state)record->state));
	out = write_time(TEXT(out, ",\"start\":\""), flow_report_start_us(report));
	if (!live)
		out = write_time(TEXT(out, "\",\"end\":\""), flow_report_end_us(report));
	out = write_string(TEXT(out, "\",\"state\":\""), state);
	if (!live)
		out = write_string(TEXT(out, "\",\"end_reason\":\""), flow_end_name(reason));
	return TEXT(out, "\"");
}

unsigned export_json_direction(const struct flow_record *record, const struct flow_offload *offload)
{
	/* how far a direction has come; a place in the queue is more than a refusal */
	static const uint8_t ranks[OFFLOAD_N_STATES] = {
		[OFFLOAD_SOFTWARE] = 0,
		[OFFLOAD_REFUSED] = 1,
		[OFFLOAD_QUEUED] = 2,
		[OFFLOAD_INSTALLING] = 3,
		[OFFLOAD_LEAVING] = 4,
		[OFFLOAD_SUSPECT] = 5,
		[OFFLOAD_ACCEPTED] = 6,
		[OFFLOAD_PROVEN] = 7,
	};

	unsigned first = ranks[offload->state[0]], second = ranks[offload->state[1]];

	return first == second ? record->initiator : second > first;
}

static char *write_offload(char *out, const struct flow_report *report)
{
	const struct flow_offload *offload = &report->offload;
	unsigned from = export_json_direction(&report->record, offload);

	if (!offload->told)
		return TEXT(out, ",\"offload\":{\"packets\":0,\"state\":\"software\","
				 "\"reason\":\"no_nic\"}");
	out = TEXT(out, ",\"offload\":{\"packets\":");
	if (offload->packets == FLOW_OFFLOAD_LOST)
		out = TEXT(out, "null");
	else
		out = write_number(out, offload->packets);
	out = write_string(TEXT(out, ",\"state\":\""),
		offload_state_name((enum offload_state)offload->state[from]));
	out = write_string(
		TEXT(out, "\",\"reason\":\""), offload_reason_name(offload->reason[from]));
	out = TEXT(out, "\"");
	if (offload_state_holds((enum offload_state)offload->state[from]))
		out = offload->full[from] ? TEXT(out, ",\"how\":\"full\"")
					  : TEXT(out, ",\"how\":\"mark\"");
	if (offload->estimated)
		out = TEXT(out, ",\"estimated\":true");
	return TEXT(out, "}");
}

/* Only of ICMP: of the first packet of each direction that has any. */
static char *write_icmp(char *out, const struct flow_record *record)
{
	const unsigned from = record->initiator;
	const uint16_t first = flow_icmp_type_code(record, from);
	const uint16_t reverse = flow_icmp_type_code(record, !from);

	if (record->key.proto != ICMP && record->key.proto != ICMPV6)
		return out;
	out = write_number(TEXT(out, ",\"icmp_type\":"), first >> 8);
	out = write_number(TEXT(out, ",\"icmp_code\":"), first & 0xff);
	if (flow_packets(record, !from) == 0)
		return out;
	out = write_number(TEXT(out, ",\"reverse_icmp_type\":"), reverse >> 8);
	return write_number(TEXT(out, ",\"reverse_icmp_code\":"), reverse & 0xff);
}

/* Only of a flow that is blocked, or was: most are neither, and have their lines as they always were. */
static char *write_blocked(char *out, const struct flow_report *report)
{
	const struct flow_record *record = &report->record;
	const struct flow_dropped sum = flow_report_dropped(report), *dropped = &sum;
	const bool blocked = flow_is_blocked(record);

	/* rules may have dropped all that was dropped */
	if (!record->was_dropped ||
		(!blocked &&
			(flow_is_dropped(record, 0) || flow_is_dropped(record, 1) ||
				dropped->rule_packets != 0) &&
			dropped->packets == dropped->rule_packets))
		return out;
	out = write_string(TEXT(out, ",\"blocked\":"), blocked ? "true" : "false");
	out = write_number(
		TEXT(out, ",\"blocked_packets\":"), dropped->packets - dropped->rule_packets);
	return write_number(TEXT(out, ",\"blocked_bytes\":"), dropped->bytes - dropped->rule_bytes);
}

/* Only of a flow that rules drop, or give a mark. */
static char *write_rules(char *out, const struct flow_report *report)
{
	const struct flow_record *record = &report->record;
	const struct flow_dropped sum = flow_report_dropped(report), *dropped = &sum;
	const struct flow_rules *rules = &report->rules;
	const unsigned from = record->initiator;

	if (record->was_dropped &&
		(dropped->rule_packets != 0 ||
			(record->by_rule &&
				(flow_is_dropped(record, 0) || flow_is_dropped(record, 1))))) {
		out = write_number(TEXT(out, ",\"rule_dropped_packets\":"), dropped->rule_packets);
		out = write_number(TEXT(out, ",\"rule_dropped_bytes\":"), dropped->rule_bytes);
	}
	if (rules->marked >> from & 1)
		out = write_number(TEXT(out, ",\"rule_mark\":"), rules->mark[from]);
	if (rules->marked >> !from & 1)
		out = write_number(TEXT(out, ",\"reverse_rule_mark\":"), rules->mark[!from]);
	return out;
}

/* Only of a flow that is measured. A time that is not known is left out. */
static char *write_measured(char *out, const struct flow_report *report)
{
	const struct flow_record *record = &report->record;
	const struct flow_measured first = flow_report_measure(report, record->initiator),
				   reverse = flow_report_measure(report, !record->initiator);

	if (!report->measured)
		return out;
	if (record->key.proto == TCP) {
		if (first.answer_us != 0 && reverse.answer_us != 0)
			out = write_number(TEXT(out, ",\"rtt_us\":"),
				(uint64_t)first.answer_us + reverse.answer_us);
		if (first.answer_us != 0)
			out = write_number(TEXT(out, ",\"answer_us\":"), first.answer_us);
		if (reverse.answer_us != 0)
			out = write_number(TEXT(out, ",\"reverse_answer_us\":"), reverse.answer_us);
		out = write_number(TEXT(out, ",\"retransmissions\":"), first.retransmissions);
		out = write_number(
			TEXT(out, ",\"reverse_retransmissions\":"), reverse.retransmissions);
		out = write_number(TEXT(out, ",\"out_of_order\":"), first.out_of_order);
		out = write_number(TEXT(out, ",\"reverse_out_of_order\":"), reverse.out_of_order);
		out = write_number(TEXT(out, ",\"zero_windows\":"), first.zero_windows);
		out = write_number(TEXT(out, ",\"reverse_zero_windows\":"), reverse.zero_windows);
	}
	out = write_number(TEXT(out, ",\"max_gap_us\":"), first.max_gap_us);
	return write_number(TEXT(out, ",\"reverse_max_gap_us\":"), reverse.max_gap_us);
}

/* All members from version on. */
static char *write_members(
	char *out, const struct flow_report *report, bool live, bool wire_is_link)
{
	const struct flow_record *record = &report->record;
	unsigned from = record->initiator;
	bool tcp = record->key.proto == TCP;

	out = write_key(out, &record->key, from, wire_is_link);
	out = write_counters(out, record, from);
	out = write_life(out, report, live);
	out = write_number(TEXT(out, ",\"tcp_flags\":"), tcp ? record->end[from].tcp_flags : 0);
	out = write_number(
		TEXT(out, ",\"reverse_tcp_flags\":"), tcp ? record->end[!from].tcp_flags : 0);
	out = write_number(TEXT(out, ",\"icmp_errors\":"), record->icmp_errors);
	out = write_icmp(out, record);
	out = write_offload(out, report);
	out = write_measured(out, report);
	out = write_blocked(out, report);
	return write_rules(out, report);
}

size_t export_json_line(
	char *buffer, const struct flow_report *report, const char *file, bool wire_is_link)
{
	char *out = TEXT(buffer, "{");

	if (file) {
		out = write_string(TEXT(out, "\"file\":"), file);
		*out++ = ',';
	}
	out = write_members(out, report, false, wire_is_link);
	out = TEXT(out, "}\n");
	return (size_t)(out - buffer);
}

size_t export_json_live(char *buffer, const struct flow_report *report)
{
	char *out = write_members(TEXT(buffer, "{"), report, true, false);

	out = write_number(TEXT(out, ",\"worker\":"), report->worker);
	return (size_t)(out - buffer);
}

/*
 * Length of the UTF-8 sequence that `bytes` begins with, 0 if it is none (RFC 3629: no surrogates,
 * nothing longer than needed, nothing beyond U+10FFFF).
 */
static size_t utf8_length(const unsigned char *bytes)
{
	/* the second byte's range is narrower after some first bytes, see the RFC's section 4 */
	unsigned char low = 0x80, high = 0xbf;
	size_t length;

	if (bytes[0] < 0x80)
		return 1;
	if (bytes[0] >= 0xc2 && bytes[0] <= 0xdf)
		length = 2;
	else if ((bytes[0] & 0xf0) == 0xe0)
		length = 3;
	else if (bytes[0] >= 0xf0 && bytes[0] <= 0xf4)
		length = 4;
	else
		return 0;
	if (bytes[0] == 0xe0)
		low = 0xa0;
	else if (bytes[0] == 0xed)
		high = 0x9f;
	else if (bytes[0] == 0xf0)
		low = 0x90;
	else if (bytes[0] == 0xf4)
		high = 0x8f;
	if (bytes[1] < low || bytes[1] > high)
		return 0;
	for (size_t i = 2; i < length; i++)
		if ((bytes[i] & 0xc0) != 0x80)
			return 0;
	return length;
}

char *export_json_string(const char *bytes)
{
	static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
	char *clean = malloc(3 * strlen(bytes) + 1), *out = clean;

	if (!clean)
		return NULL;
	while (*bytes != '\0') {
		size_t length = utf8_length((const unsigned char *)bytes);

		memcpy(out, length ? bytes : replacement, length ? length : 3);
		out += length ? length : 3;
		bytes += length ? length : 1;
	}
	*out = '\0';

	json_t *string = json_string(clean);
	char *text = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;

	json_decref(string);
	free(clean);
	return text;
}
