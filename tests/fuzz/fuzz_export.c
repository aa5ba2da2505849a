/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The URL of an export, and behind a zero the bytes of a report that is encoded for it. Besides what sanitizers see:
 *
 * - what is refused is told in one line;
 * - what is taken is within the limits that its header tells;
 * - a message is never longer than its room, its sets fill it, and what does not fit leaves it as it was.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/ipfix.h"
#include "export/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

static void check_target(const struct export_target *target)
{
	check(target->transport < EXPORT_N_TRANSPORTS, "transport");
	check(target->transport == EXPORT_FILE ? target->path[0] != '\0' : target->host[0] != '\0',
		"a place");
	check(target->mtu >= 576 && target->mtu <= 65535 && target->queue >= 131072, "limits");
	check(!target->filter.by_prefix || block_match_check(&target->filter.prefix) == 0,
		"prefix");
}

static unsigned read_16(const uint8_t *bytes)
{
	return (unsigned)bytes[0] << 8 | bytes[1];
}

static void check_message(const struct ipfix_message *message)
{
	size_t at = IPFIX_HEADER;

	check(message->length <= message->size, "a message in its room");
	check(read_16(message->bytes) == 10 && read_16(message->bytes + 2) == message->length,
		"its header");
	while (at < message->length) {
		check(message->length - at >= 4, "a whole set header");
		check(read_16(message->bytes + at + 2) >= 4, "a set with its header");
		at += read_16(message->bytes + at + 2);
	}
	check(at == message->length, "sets fill the message");
}

static void encode(const struct export_target *target, const struct flow_report *report)
{
	const struct ipfix_format format = {
		.domain = target->domain, .pen = target->pen, .biflow = target->biflow};
	const struct ipfix_way way = {.ingress = {1, 2}, .egress = {2, 1}};
	uint8_t bytes[IPFIX_LEAST + 1];
	struct ipfix_message message;
	unsigned n = 0;

	bytes[IPFIX_LEAST] = 0xa5;
	ipfix_begin(&message, bytes, IPFIX_LEAST);
	for (unsigned i = 0; i < ipfix_n_templates(&format); i++) {
		if (ipfix_add_template(&message, &format, i))
			continue;
		ipfix_end(&message, &format);
		check_message(&message);
		ipfix_begin(&message, bytes, IPFIX_LEAST);
		check(ipfix_add_template(&message, &format, i), "each template fits a message");
	}
	ipfix_end(&message, &format);
	check_message(&message);
	ipfix_begin(&message, bytes, IPFIX_LEAST);
	while (ipfix_add_flow(&message, &format, report, &way))
		n += ipfix_records(&format, report);
	check(n > 0 && message.records == n, "records are counted");
	ipfix_end(&message, &format);
	ipfix_stamp(bytes, 1, 2);
	check_message(&message);
	check(bytes[IPFIX_LEAST] == 0xa5, "nothing behind it");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct flow_report report = {.record.key.version_wire = 0x40};
	struct export_target target;
	struct error error = {.text = ""};
	const size_t length = strnlen((const char *)data, size);
	char text[1024];

	if (length >= sizeof(text))
		return 0;
	memcpy(text, data, length);
	text[length] = '\0';
	if (export_target_parse(&target, text, &error) < 0) {
		check(error.text[0] != '\0' && strchr(error.text, '\n') == NULL, "one line");
		return 0;
	}
	check_target(&target);
	if (length < size) {
		const size_t rest = size - length - 1;

		memcpy(&report, data + length + 1, rest < sizeof(report) ? rest : sizeof(report));
	}
	report.reason = ((unsigned)report.reason % FLOW_N_ENDS) & 0x3fu;
	report.stamped &= 1;
	report.offload.told = size & 1;
	report.offload.full[0] = report.offload.full[1] = report.offload.estimated = false;
	(void)export_filter_takes(&target.filter, &report);
	encode(&target, &report);
	return 0;
}
