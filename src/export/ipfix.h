/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * IPFIX messages (RFC 7011): templates and records of flows, written into the caller's buffer.
 *
 * A flow is two records, one for each direction that had packets, the initiator's first, or with `biflow` one record
 * (RFC 5103). Elements are IANA's; those of our own stand under a private enterprise number, if there is one
 * (docs/export.md lists all of them). The templates are the same from begin to end.
 *
 * A message: ipfix_begin(), then templates and flows as they fit, then ipfix_end(), and ipfix_stamp() when it is sent.
 * Pure: no memory, no clock, no thread of its own.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flow/report.h"

/* The enterprise number under which the elements of IANA are those of the other direction (RFC 5103 section 6.1). */
#define IPFIX_REVERSE_PEN 29305

/* A message has at least so much room. */
#define IPFIX_LEAST 508
#define IPFIX_MOST 65507
#define IPFIX_HEADER 16

/* The longest name of an interface that is told; the rest is cut. */
#define IPFIX_NAME 16

/* An interface: its number in records, from 1 on, and its name. */
struct ipfix_interface {
	uint32_t number;
	char name[IPFIX_NAME + 1];
};

/* By which interfaces packets come in and leave, by the key's end that they come from; 0 where there is none. */
struct ipfix_way {
	uint32_t ingress[2], egress[2];
};

struct ipfix_format {
	uint32_t domain; /* observation domain */
	uint32_t pen;	 /* 0: no elements of our own */
	bool biflow;
};

/* What the options record of an exporting process tells (RFC 7011 section 4.3). */
struct ipfix_statistics {
	uint64_t messages, records; /* sent in this session, this message not among them */
	uint64_t lost_records, lost_packets, lost_octets;
};

struct ipfix_message {
	uint8_t *bytes; /* the caller's, `size` of them */
	size_t size, length;
	size_t set; /* where the open set begins; 0: none is open */
	uint16_t set_id;
	uint32_t records; /* that count for the sequence number */
};

void ipfix_begin(struct ipfix_message *message, uint8_t *bytes, size_t size);

/*
 * The template or options template with that number, from 0 on, of ipfix_n_templates(). Returns false where there is no
 * room: then the message is as it was. Each of them fits the shortest message. With elements of our own the first one is
 * that of ipfix_add_element(), whose records are to stand before the other templates.
 */
bool ipfix_add_template(
	struct ipfix_message *message, const struct ipfix_format *format, unsigned number);
unsigned ipfix_n_templates(const struct ipfix_format *format);

/* A record of an options template. False where there is no room. */
bool ipfix_add_interface(struct ipfix_message *message, const struct ipfix_interface *interface);
bool ipfix_add_statistics(struct ipfix_message *message, const struct ipfix_format *format,
	const struct ipfix_statistics *statistics);

/*
 * What is said of the element of ours with that number, from 0 on (RFC 5610). False where there is no room;
 * ipfix_n_elements() are there.
 */
bool ipfix_add_element(
	struct ipfix_message *message, const struct ipfix_format *format, unsigned number);
unsigned ipfix_n_elements(void);

/* How many records the report is: 1 or 2. */
unsigned ipfix_records(const struct ipfix_format *format, const struct flow_report *report);

/* The records of a flow, all or none: false where there is no room. */
bool ipfix_add_flow(struct ipfix_message *message, const struct ipfix_format *format,
	const struct flow_report *report, const struct ipfix_way *way);

/* Closes the message; its length is message->length. */
void ipfix_end(struct ipfix_message *message, const struct ipfix_format *format);

/* Writes what is known when the message leaves: Unix time in seconds, and the sequence number. */
void ipfix_stamp(uint8_t *message, uint32_t time_s, uint32_t sequence);
