/* SPDX-License-Identifier: BSD-3-Clause */
#include "export/ipfix.h"

#include <assert.h>
#include <string.h>

#include <rte_byteorder.h>

#define VERSION 10
#define SET_TEMPLATES 2
#define SET_OPTIONS 3
#define SET_HEADER 4

enum template_id {
	TEMPLATE_IPV4 = 256,
	TEMPLATE_IPV6 = 257,
	TEMPLATE_INTERFACE = 258,
	TEMPLATE_STATISTICS = 259,
	TEMPLATE_ELEMENT = 260,
	/* flows that are measured, where elements of our own are sent */
	TEMPLATE_IPV4_MEASURED = 261,
	TEMPLATE_IPV6_MEASURED = 262,
};

/* Whose the element is. */
enum owner {
	OWNER_IANA,
	OWNER_REVERSE,
	OWNER_OURS,
};

struct field {
	uint16_t element;
	uint16_t length;
	enum owner owner;
};

static const struct field ipv4_fields[] = {
	{8, 4, OWNER_IANA},  /* sourceIPv4Address */
	{12, 4, OWNER_IANA}, /* destinationIPv4Address */
};

static const struct field ipv6_fields[] = {
	{27, 16, OWNER_IANA}, /* sourceIPv6Address */
	{28, 16, OWNER_IANA}, /* destinationIPv6Address */
};

/* What every record has behind its addresses. The order is that of write_common(). */
static const struct field common_fields[] = {
	{7, 2, OWNER_IANA},   /* sourceTransportPort */
	{11, 2, OWNER_IANA},  /* destinationTransportPort */
	{4, 1, OWNER_IANA},   /* protocolIdentifier */
	{60, 1, OWNER_IANA},  /* ipVersion */
	{6, 1, OWNER_IANA},   /* tcpControlBits, of reduced length (RFC 7011 section 6.2) */
	{136, 1, OWNER_IANA}, /* flowEndReason */
	{58, 2, OWNER_IANA},  /* vlanId */
	{10, 4, OWNER_IANA},  /* ingressInterface */
	{14, 4, OWNER_IANA},  /* egressInterface */
	{2, 8, OWNER_IANA},   /* packetDeltaCount */
	{1, 8, OWNER_IANA},   /* octetDeltaCount: of IP packets */
	{352, 8, OWNER_IANA}, /* layer2OctetDeltaCount: of frames */
	{154, 8, OWNER_IANA}, /* flowStartMicroseconds */
	{155, 8, OWNER_IANA}, /* flowEndMicroseconds */
	/* goflow2 takes the two before for plain microseconds, but keeps the times that it reads last: these */
	{152, 8, OWNER_IANA}, /* flowStartMilliseconds */
	{153, 8, OWNER_IANA}, /* flowEndMilliseconds */
	{239, 1, OWNER_IANA}, /* biflowDirection */
};

static const struct field icmp_ipv4_fields[] = {
	{32, 2, OWNER_IANA}, /* icmpTypeCodeIPv4 */
};

static const struct field icmp_ipv6_fields[] = {
	{139, 2, OWNER_IANA}, /* icmpTypeCodeIPv6 */
};

/* The other direction, in a record for both. The order is that of write_reverse(). */
static const struct field reverse_fields[] = {
	{2, 8, OWNER_REVERSE},
	{1, 8, OWNER_REVERSE},
	{352, 8, OWNER_REVERSE},
	{6, 1, OWNER_REVERSE},
};

static const struct field reverse_icmp_ipv4_fields[] = {
	{32, 2, OWNER_REVERSE},
};

static const struct field reverse_icmp_ipv6_fields[] = {
	{139, 2, OWNER_REVERSE},
};

/* Our own elements. The order is that of write_ours(), and docs/export.md has what the values mean. */
static const struct field our_fields[] = {
	{1, 1, OWNER_OURS},
	{2, 1, OWNER_OURS},
	{3, 1, OWNER_OURS},
	{4, 8, OWNER_OURS},
	{5, 8, OWNER_OURS},
	{6, 8, OWNER_OURS},
	{7, 4, OWNER_OURS},
	{8, 1, OWNER_OURS},
	{9, 1, OWNER_OURS},
	{10, 4, OWNER_OURS},
};

/* The elements that only records of measured flows have, in the order in which put_measured() writes them. */
static const struct field measured_fields[] = {
	{11, 4, OWNER_OURS},
	{12, 4, OWNER_OURS},
	{13, 4, OWNER_OURS},
	{14, 4, OWNER_OURS},
	{15, 4, OWNER_OURS},
};

/* The same elements of the other direction; a record for both directions has them as well. */
static const struct field reverse_measured_fields[] = {
	{16, 4, OWNER_OURS},
	{17, 4, OWNER_OURS},
	{18, 4, OWNER_OURS},
	{19, 4, OWNER_OURS},
	{20, 4, OWNER_OURS},
};

/* RFC 5610 section 3.1: informationElementDataType and informationElementSemantics. */
enum data_type {
	TYPE_UNSIGNED8 = 1,
	TYPE_UNSIGNED32 = 3,
	TYPE_UNSIGNED64 = 4,
};

enum semantics {
	SEMANTICS_QUANTITY = 1,
	SEMANTICS_DELTA = 3,
	SEMANTICS_IDENTIFIER = 4,
};

/* RFC 5610 section 3.4 and IANA's registry of units: informationElementUnits. */
enum units {
	UNITS_NONE = 0,
	UNITS_PACKETS = 3,
	UNITS_MICROSECONDS = 7,
	UNITS_MESSAGES = 10,
};

/* Names and types of our elements for RFC 5610 options. The first entry is element 1. */
static const struct {
	const char *name;
	enum data_type type;
	enum semantics semantics;
	enum units units;
} our_elements[] = {
	{"millraceFlowEndCause", TYPE_UNSIGNED8, SEMANTICS_IDENTIFIER, UNITS_NONE},
	{"millraceOffloadState", TYPE_UNSIGNED8, SEMANTICS_IDENTIFIER, UNITS_NONE},
	{"millraceOffloadReason", TYPE_UNSIGNED8, SEMANTICS_IDENTIFIER, UNITS_NONE},
	{"millraceOffloadPacketDeltaCount", TYPE_UNSIGNED64, SEMANTICS_DELTA, UNITS_PACKETS},
	{"millraceBlockedPacketDeltaCount", TYPE_UNSIGNED64, SEMANTICS_DELTA, UNITS_PACKETS},
	{"millraceRuleDroppedPacketDeltaCount", TYPE_UNSIGNED64, SEMANTICS_DELTA, UNITS_PACKETS},
	{"millraceRuleMark", TYPE_UNSIGNED32, SEMANTICS_IDENTIFIER, UNITS_NONE},
	{"millraceIcmpErrorDeltaCount", TYPE_UNSIGNED8, SEMANTICS_DELTA, UNITS_MESSAGES},
	{"millraceWorker", TYPE_UNSIGNED8, SEMANTICS_IDENTIFIER, UNITS_NONE},
	{"millraceRule", TYPE_UNSIGNED32, SEMANTICS_IDENTIFIER, UNITS_NONE},
	{"millraceAnswerMicroseconds", TYPE_UNSIGNED32, SEMANTICS_QUANTITY, UNITS_MICROSECONDS},
	{"millraceRetransmissionDeltaCount", TYPE_UNSIGNED32, SEMANTICS_DELTA, UNITS_PACKETS},
	{"millraceOutOfOrderDeltaCount", TYPE_UNSIGNED32, SEMANTICS_DELTA, UNITS_PACKETS},
	{"millraceZeroWindowDeltaCount", TYPE_UNSIGNED32, SEMANTICS_DELTA, UNITS_PACKETS},
	{"millraceMaximumGapMicroseconds", TYPE_UNSIGNED32, SEMANTICS_QUANTITY, UNITS_MICROSECONDS},
	{"reverseMillraceAnswerMicroseconds", TYPE_UNSIGNED32, SEMANTICS_QUANTITY,
		UNITS_MICROSECONDS},
	{"reverseMillraceRetransmissionDeltaCount", TYPE_UNSIGNED32, SEMANTICS_DELTA,
		UNITS_PACKETS},
	{"reverseMillraceOutOfOrderDeltaCount", TYPE_UNSIGNED32, SEMANTICS_DELTA, UNITS_PACKETS},
	{"reverseMillraceZeroWindowDeltaCount", TYPE_UNSIGNED32, SEMANTICS_DELTA, UNITS_PACKETS},
	{"reverseMillraceMaximumGapMicroseconds", TYPE_UNSIGNED32, SEMANTICS_QUANTITY,
		UNITS_MICROSECONDS},
};

#define N(array) (sizeof(array) / sizeof((array)[0]))

static_assert(N(our_fields) + N(measured_fields) + N(reverse_measured_fields) == N(our_elements),
	"what is told of each element");

unsigned ipfix_n_elements(void)
{
	return N(our_elements);
}

static uint8_t *put_8(uint8_t *out, uint8_t number)
{
	*out = number;
	return out + 1;
}

static uint8_t *put_16(uint8_t *out, uint16_t number)
{
	number = rte_cpu_to_be_16(number);
	memcpy(out, &number, sizeof(number));
	return out + sizeof(number);
}

static uint8_t *put_32(uint8_t *out, uint32_t number)
{
	number = rte_cpu_to_be_32(number);
	memcpy(out, &number, sizeof(number));
	return out + sizeof(number);
}

static uint8_t *put_64(uint8_t *out, uint64_t number)
{
	number = rte_cpu_to_be_64(number);
	memcpy(out, &number, sizeof(number));
	return out + sizeof(number);
}

void ipfix_begin(struct ipfix_message *message, uint8_t *bytes, size_t size)
{
	*message = (struct ipfix_message){.bytes = bytes, .size = size, .length = IPFIX_HEADER};
}

static void close_set(struct ipfix_message *message)
{
	if (message->set == 0)
		return;
	uint8_t *out = put_16(message->bytes + message->set, message->set_id);

	put_16(out, (uint16_t)(message->length - message->set));
	message->set = 0;
}

/* Room for `length` bytes in a set of that id, or NULL. */
static uint8_t *room(struct ipfix_message *message, uint16_t set_id, size_t length)
{
	const bool begins = message->set == 0 || message->set_id != set_id;
	uint8_t *out;

	if (message->length + begins * SET_HEADER + length > message->size)
		return NULL;
	if (begins) {
		close_set(message);
		message->set = message->length;
		message->set_id = set_id;
		message->length += SET_HEADER;
	}
	out = message->bytes + message->length;
	message->length += length;
	return out;
}

/* The field lists of a template, in the order of its records. */
struct template
{
	uint16_t id;
	struct {
		const struct field *fields;
		unsigned n;
	} part[8];
	unsigned n_parts;
};

static void add_part(struct template *template, const struct field *fields, size_t n)
{
	template->part[template->n_parts].fields = fields;
	template->part[template->n_parts++].n = (unsigned)n;
}

static struct template template_of(const struct ipfix_format *format, uint16_t id)
{
	struct template template = {.id = id};
	const bool ipv4 = id == TEMPLATE_IPV4 || id == TEMPLATE_IPV4_MEASURED;
	const bool measured = id == TEMPLATE_IPV4_MEASURED || id == TEMPLATE_IPV6_MEASURED;

	if (ipv4)
		add_part(&template, ipv4_fields, N(ipv4_fields));
	else
		add_part(&template, ipv6_fields, N(ipv6_fields));
	add_part(&template, common_fields, N(common_fields));
	if (ipv4)
		add_part(&template, icmp_ipv4_fields, N(icmp_ipv4_fields));
	else
		add_part(&template, icmp_ipv6_fields, N(icmp_ipv6_fields));
	if (format->biflow)
		add_part(&template, reverse_fields, N(reverse_fields));
	if (format->biflow && ipv4)
		add_part(&template, reverse_icmp_ipv4_fields, N(reverse_icmp_ipv4_fields));
	else if (format->biflow)
		add_part(&template, reverse_icmp_ipv6_fields, N(reverse_icmp_ipv6_fields));
	if (format->pen != 0)
		add_part(&template, our_fields, N(our_fields));
	if (measured)
		add_part(&template, measured_fields, N(measured_fields));
	if (measured && format->biflow)
		add_part(&template, reverse_measured_fields, N(reverse_measured_fields));
	return template;
}

static uint16_t template_id(bool ipv4, bool measured)
{
	if (measured)
		return ipv4 ? TEMPLATE_IPV4_MEASURED : TEMPLATE_IPV6_MEASURED;
	return ipv4 ? TEMPLATE_IPV4 : TEMPLATE_IPV6;
}

static uint32_t enterprise(const struct ipfix_format *format, enum owner owner)
{
	return owner == OWNER_REVERSE ? IPFIX_REVERSE_PEN : format->pen;
}

static uint8_t *put_field(
	uint8_t *out, const struct ipfix_format *format, const struct field *field)
{
	const uint16_t enterprise_bit = field->owner == OWNER_IANA ? 0 : 0x8000;

	out = put_16(out, field->element | enterprise_bit);
	out = put_16(out, field->length);
	return enterprise_bit != 0 ? put_32(out, enterprise(format, field->owner)) : out;
}

static bool add_template(
	struct ipfix_message *message, const struct ipfix_format *format, uint16_t id)
{
	const struct template template = template_of(format, id);
	size_t length = 4;
	unsigned n = 0;

	for (unsigned i = 0; i < template.n_parts; i++) {
		for (unsigned j = 0; j < template.part[i].n; j++)
			length += template.part[i].fields[j].owner == OWNER_IANA ? 4 : 8;
		n += template.part[i].n;
	}
	uint8_t *out = room(message, SET_TEMPLATES, length);

	if (out == NULL)
		return false;
	out = put_16(put_16(out, id), (uint16_t)n);
	for (unsigned i = 0; i < template.n_parts; i++)
		for (unsigned j = 0; j < template.part[i].n; j++)
			out = put_field(out, format, &template.part[i].fields[j]);
	return true;
}

#define VARIABLE 65535 /* the length stands before the value (RFC 7011 section 7) */

/* Options templates; the first field of each is its scope. The order is that of the functions that write them. */
static const struct field interface_fields[] = {
	{10, 4, OWNER_IANA},	      /* ingressInterface */
	{82, IPFIX_NAME, OWNER_IANA}, /* interfaceName, zeros behind it */
};

static const struct field statistics_fields[] = {
	{144, 4, OWNER_IANA}, /* exportingProcessId: the observation domain */
	{41, 8, OWNER_IANA},  /* exportedMessageTotalCount */
	{42, 8, OWNER_IANA},  /* exportedFlowRecordTotalCount */
	{166, 8, OWNER_IANA}, /* notSentFlowTotalCount */
	{167, 8, OWNER_IANA}, /* notSentPacketTotalCount */
	{168, 8, OWNER_IANA}, /* notSentOctetTotalCount */
};

/* libfixbuf needs all of these fields; without one it ignores the description. */
static const struct field element_fields[] = {
	{346, 4, OWNER_IANA},	     /* privateEnterpriseNumber */
	{303, 2, OWNER_IANA},	     /* informationElementId */
	{339, 1, OWNER_IANA},	     /* informationElementDataType */
	{344, 1, OWNER_IANA},	     /* informationElementSemantics */
	{345, 2, OWNER_IANA},	     /* informationElementUnits */
	{342, 8, OWNER_IANA},	     /* informationElementRangeBegin: 0, and */
	{343, 8, OWNER_IANA},	     /* informationElementRangeEnd: 0, which is any value */
	{341, VARIABLE, OWNER_IANA}, /* informationElementName */
	{340, VARIABLE,
		OWNER_IANA}, /* informationElementDescription: none, as docs/export.md has it */
};

static bool add_options_template(struct ipfix_message *message, const struct ipfix_format *format,
	uint16_t id, const struct field *fields, size_t n, uint16_t n_scope)
{
	uint8_t *out = room(message, SET_OPTIONS, 6 + 4 * n);

	if (out == NULL)
		return false;
	out = put_16(put_16(put_16(out, id), (uint16_t)n), n_scope);
	for (size_t i = 0; i < n; i++)
		out = put_field(out, format, &fields[i]);
	/* pmacct reads one in a set, and calls a set with more of them malformed */
	close_set(message);
	return true;
}

/*
 * The order in which templates are sent. The one that describes our elements is first: libfixbuf knows an element only in
 * templates that it reads after its description.
 */
static const uint16_t template_ids[] = {
	TEMPLATE_ELEMENT,
	TEMPLATE_IPV4,
	TEMPLATE_IPV6,
	TEMPLATE_INTERFACE,
	TEMPLATE_STATISTICS,
	TEMPLATE_IPV4_MEASURED,
	TEMPLATE_IPV6_MEASURED,
};

unsigned ipfix_n_templates(const struct ipfix_format *format)
{
	/* the first and the last two are of our elements */
	return N(template_ids) - (format->pen == 0 ? 3 : 0);
}

bool ipfix_add_template(
	struct ipfix_message *message, const struct ipfix_format *format, unsigned number)
{
	const uint16_t id = template_ids[number + (format->pen == 0 ? 1 : 0)];

	switch (id) {
	case TEMPLATE_INTERFACE:
		return add_options_template(
			message, format, id, interface_fields, N(interface_fields), 1);
	case TEMPLATE_STATISTICS:
		return add_options_template(
			message, format, id, statistics_fields, N(statistics_fields), 1);
	case TEMPLATE_ELEMENT:
		return add_options_template(
			message, format, id, element_fields, N(element_fields), 2);
	default:
		return add_template(message, format, id);
	}
}

bool ipfix_add_interface(struct ipfix_message *message, const struct ipfix_interface *interface)
{
	uint8_t *out = room(message, TEMPLATE_INTERFACE, 4 + IPFIX_NAME);

	if (out == NULL)
		return false;
	out = put_32(out, interface->number);
	memset(out, 0, IPFIX_NAME);
	memcpy(out, interface->name, strnlen(interface->name, IPFIX_NAME));
	message->records++;
	return true;
}

bool ipfix_add_statistics(struct ipfix_message *message, const struct ipfix_format *format,
	const struct ipfix_statistics *statistics)
{
	uint8_t *out = room(message, TEMPLATE_STATISTICS, 4 + 5 * 8);

	if (out == NULL)
		return false;
	out = put_32(out, format->domain);
	out = put_64(out, statistics->messages);
	out = put_64(out, statistics->records);
	out = put_64(out, statistics->lost_records);
	out = put_64(out, statistics->lost_packets);
	put_64(out, statistics->lost_octets);
	message->records++;
	return true;
}

bool ipfix_add_element(
	struct ipfix_message *message, const struct ipfix_format *format, unsigned number)
{
	const char *name = our_elements[number].name;
	const size_t length = strlen(name);
	uint8_t *out = room(message, TEMPLATE_ELEMENT, 4 + 2 + 1 + 1 + 2 + 8 + 8 + 1 + length + 1);

	if (out == NULL)
		return false;
	out = put_32(out, format->pen);
	out = put_16(out, (uint16_t)(number + 1));
	out = put_8(out, (uint8_t)our_elements[number].type);
	out = put_8(out, (uint8_t)our_elements[number].semantics);
	out = put_16(out, (uint16_t)our_elements[number].units);
	out = put_64(put_64(out, 0), 0);
	out = put_8(out, (uint8_t)length);
	memcpy(out, name, length);
	put_8(out + length, 0);
	message->records++;
	return true;
}

/* One direction of a flow, and what is the same for both. */
struct side {
	const struct flow_report *report;
	const struct ipfix_way *way;
	uint64_t start_us, end_us; /* Unix time */
	uint64_t octets[2];	   /* of IP packets, by the key's end */
	bool ipv4;
	bool measured; /* and elements of our own tell of it */
	uint8_t reason;
};

/* Element 136: 1 idle, 2 active, 3 end of flow, 4 forced, 5 lack of resources. */
static uint8_t end_reason(enum flow_end end)
{
	switch (end) {
	case FLOW_END_IDLE:
		return 1;
	case FLOW_END_ACTIVE:
		return 2;
	case FLOW_END_FIN:
	case FLOW_END_RST:
		return 3;
	case FLOW_END_EVICTED:
		return 5;
	case FLOW_END_KILLED:
	case FLOW_END_SHUTDOWN:
	case FLOW_N_ENDS:
		break;
	}
	return 4;
}

/*
 * RFC 7011 section 6.1.9: seconds since 1900 and a fraction of 2^32, of which the lower 11 bits are 0. It is rounded up, so
 * that whoever cuts it to microseconds gets the same.
 */
static uint64_t ntp_time(uint64_t unix_us)
{
	const uint64_t seconds = unix_us / 1000000 + 2208988800u;
	const uint64_t fraction = ((unix_us % 1000000 << 32) + 999999) / 1000000;

	return seconds << 32 | ((fraction + 0x7ff) & 0xfffff800);
}

static uint8_t tcp_flags(const struct flow_record *record, unsigned from)
{
	return record->key.proto == 6 ? record->end[from].tcp_flags : 0;
}

static uint8_t *write_addresses(uint8_t *out, const struct side *side, unsigned from)
{
	const struct flow_key *key = &side->report->record.key;
	const size_t length = side->ipv4 ? 4 : 16;

	memcpy(out, key->addr[from], length);
	memcpy(out + length, key->addr[!from], length);
	return out + 2 * length;
}

static uint8_t *write_common(uint8_t *out, const struct side *side, unsigned from)
{
	const struct flow_record *record = &side->report->record;
	const struct flow_key *key = &record->key;
	const bool initiator = from == record->initiator;

	memcpy(out, &key->port[from], 2);
	memcpy(out + 2, &key->port[!from], 2);
	out = put_8(out + 4, key->proto);
	out = put_8(out, flow_key_version(key));
	out = put_8(out, tcp_flags(record, from));
	out = put_8(out, side->reason);
	out = put_16(out, key->zone);
	out = put_32(out, side->way->ingress[from]);
	out = put_32(out, side->way->egress[from]);
	out = put_64(out, flow_packets(record, from));
	out = put_64(out, side->octets[from]);
	out = put_64(out, flow_bytes(record, from));
	out = put_64(out, ntp_time(side->start_us));
	out = put_64(out, ntp_time(side->end_us));
	out = put_64(out, side->start_us / 1000);
	out = put_64(out, side->end_us / 1000);
	return put_8(out, initiator ? 1 : 2);
}

static uint8_t *write_reverse(uint8_t *out, const struct side *side, unsigned from)
{
	const struct flow_record *record = &side->report->record;

	out = put_64(out, flow_packets(record, from));
	out = put_64(out, side->octets[from]);
	out = put_64(out, flow_bytes(record, from));
	out = put_8(out, tcp_flags(record, from));
	return put_16(out, flow_icmp_type_code(record, from));
}

static uint8_t *write_ours(uint8_t *out, const struct side *side, unsigned from)
{
	const struct flow_report *report = side->report;
	const struct flow_offload *offload = &report->offload;
	const struct flow_dropped dropped = flow_report_dropped(report);
	const bool initiator = from == report->record.initiator;
	const bool counted = initiator && offload->told && offload->packets != FLOW_OFFLOAD_LOST;

	/* what is of the whole flow stands in the record of the initiator's direction: nothing is told twice */
	out = put_8(out, (uint8_t)report->reason);
	out = put_8(out, offload->told ? offload->state[from] : 0);
	out = put_8(out, offload->told ? offload->reason[from] : 0);
	out = put_64(out, counted ? offload->packets : 0);
	out = put_64(out, initiator ? dropped.packets - dropped.rule_packets : 0);
	out = put_64(out, initiator ? dropped.rule_packets : 0);
	out = put_32(out, report->rules.marked >> from & 1 ? report->rules.mark[from] : 0);
	out = put_8(out, initiator ? (uint8_t)report->record.icmp_errors : 0);
	out = put_8(out, (uint8_t)report->worker);
	return put_32(out, report->rules.number[from]);
}

static uint8_t *put_measured(uint8_t *out, const struct flow_report *report, unsigned from)
{
	const struct flow_measured measured = flow_report_measure(report, from);

	out = put_32(out, measured.answer_us);
	out = put_32(out, measured.retransmissions);
	out = put_32(out, measured.out_of_order);
	out = put_32(out, measured.zero_windows);
	return put_32(out, measured.max_gap_us);
}

static size_t fields_length(const struct field *fields, size_t n)
{
	size_t length = 0;

	for (size_t i = 0; i < n; i++)
		length += fields[i].length;
	return length;
}

/* Of a flow's record. */
static size_t record_length(const struct ipfix_format *format, bool ipv4, bool measured)
{
	size_t length = ipv4 ? fields_length(ipv4_fields, N(ipv4_fields))
			     : fields_length(ipv6_fields, N(ipv6_fields));

	length += fields_length(common_fields, N(common_fields)) +
		  fields_length(icmp_ipv4_fields, N(icmp_ipv4_fields));
	if (format->biflow)
		length += fields_length(reverse_fields, N(reverse_fields)) +
			  fields_length(reverse_icmp_ipv4_fields, N(reverse_icmp_ipv4_fields));
	if (format->pen != 0)
		length += fields_length(our_fields, N(our_fields));
	if (measured)
		length += fields_length(measured_fields, N(measured_fields)) *
			  (format->biflow ? 2 : 1);
	return length;
}

static uint8_t *write_record(
	uint8_t *out, const struct ipfix_format *format, const struct side *side, unsigned from)
{
	out = write_addresses(out, side, from);
	out = write_common(out, side, from);
	out = put_16(out, flow_icmp_type_code(&side->report->record, from));
	if (format->biflow)
		out = write_reverse(out, side, !from);
	if (format->pen != 0)
		out = write_ours(out, side, from);
	if (side->measured)
		out = put_measured(out, side->report, from);
	if (side->measured && format->biflow)
		out = put_measured(out, side->report, !from);
	return out;
}

/* Directions with packets, as bits by the key's end; of a flow that has none, the initiator's. */
static unsigned directions(const struct ipfix_format *format, const struct flow_record *record)
{
	const unsigned all =
		(flow_packets(record, 0) != 0 ? 1u : 0) | (flow_packets(record, 1) != 0 ? 2u : 0);

	return format->biflow || all == 0 ? 1u << record->initiator : all;
}

unsigned ipfix_records(const struct ipfix_format *format, const struct flow_report *report)
{
	return directions(format, &report->record) == 3 ? 2 : 1;
}

bool ipfix_add_flow(struct ipfix_message *message, const struct ipfix_format *format,
	const struct flow_report *report, const struct ipfix_way *way)
{
	const struct flow_record *record = &report->record;
	const unsigned initiator = record->initiator;
	const unsigned told = directions(format, record), n = told == 3 ? 2 : 1;
	const struct side side = {
		.report = report,
		.way = way,
		.start_us = flow_report_start_us(report),
		.end_us = flow_report_end_us(report),
		.octets = {flow_report_octets(report, 0), flow_report_octets(report, 1)},
		.ipv4 = flow_key_version(&record->key) == 4,
		.measured = report->measured && format->pen != 0,
		.reason = end_reason((enum flow_end)report->reason),
	};
	const size_t length = record_length(format, side.ipv4, side.measured);
	uint8_t *out = room(message, template_id(side.ipv4, side.measured), n * length);

	if (out == NULL)
		return false;
	if (told >> initiator & 1)
		out = write_record(out, format, &side, initiator);
	if (told >> !initiator & 1)
		write_record(out, format, &side, !initiator);
	message->records += n;
	return true;
}

void ipfix_end(struct ipfix_message *message, const struct ipfix_format *format)
{
	uint8_t *out = message->bytes;

	close_set(message);
	out = put_16(out, VERSION);
	out = put_16(out, (uint16_t)message->length);
	put_32(out + 8, format->domain);
}

void ipfix_stamp(uint8_t *message, uint32_t time_s, uint32_t sequence)
{
	put_32(put_32(message + 4, time_s), sequence);
}
