/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Where an export goes, as a user writes it: a URL with options.
 *
 *	ipfix://HOST[:PORT][?OPTION&OPTION...]		UDP, port 4739 (RFC 7011 section 10.3.4)
 *	ipfix+tcp://HOST[:PORT][?...]			TCP, port 4739 (section 10.4)
 *	ipfix+tls://HOST[:PORT][?...]			TLS over TCP, port 4740 (section 11)
 *	ipfix+file:PATH[?...]				a file of messages (RFC 5655)
 *	json+udp://HOST:PORT[?...]			a datagram for each record
 *	json+tcp://HOST:PORT[?...], json+tls://...	lines over a connection
 *	json+file:PATH[?...]				lines in a file or FIFO; - is standard output
 *	kafka://BROKER[:PORT][,BROKER...]/TOPIC[?...]	a message of Kafka for each record; port 9092; also kafka+tls://
 *
 * An IPv6 address stands in brackets. docs/export.md has the options. A target is plain data of the caller's: no memory,
 * no threads.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "flow/report.h"
#include "rule/block.h"

enum export_format {
	EXPORT_IPFIX,
	EXPORT_JSON, /* lines, as docs/records.md has them */
};

enum export_transport {
	EXPORT_UDP,
	EXPORT_TCP,
	EXPORT_TLS,
	EXPORT_FILE,
	EXPORT_KAFKA,
	EXPORT_N_TRANSPORTS,
};

#define EXPORT_HOST_MAX 256
#define EXPORT_PATH_MAX 256
#define EXPORT_TARGET_MAX 512
#define EXPORT_TOPIC_MAX 250

/* Which flows an export is told of: all for which everything that is set holds. */
struct export_filter {
	bool by_protocol, by_port, by_prefix;
	uint8_t protocol;
	uint16_t port;		   /* of either end */
	uint64_t least_packets;	   /* of both directions */
	struct block_match prefix; /* one end's address is in it */
};

struct export_target {
	char text[EXPORT_TARGET_MAX]; /* as the user wrote it */
	enum export_format format;
	enum export_transport transport;
	bool tls; /* of the connection, or of those to brokers */
	char host[EXPORT_HOST_MAX];
	uint16_t port;
	char path[EXPORT_PATH_MAX];				  /* of a file */
	char brokers[EXPORT_TARGET_MAX], topic[EXPORT_TOPIC_MAX]; /* of Kafka */
	/* TLS: PEM files; empty: the system's authorities, and no certificate of our own */
	char authority[EXPORT_PATH_MAX], certificate[EXPORT_PATH_MAX], key[EXPORT_PATH_MAX];
	char name[EXPORT_HOST_MAX]; /* that the collector's certificate has to be for */
	uint32_t domain;	    /* observation domain (RFC 7011 section 3.1) */
	uint32_t pen; /* private enterprise number of our own elements; 0: they are left out */
	bool biflow;  /* one record for both directions (RFC 5103), not one for each */
	uint32_t templates_s;	     /* UDP: templates are sent again after so long, seconds */
	uint32_t templates_messages; /* and after so many messages */
	uint32_t mtu;		     /* UDP: bytes of an IP packet at most */
	uint32_t rate;		     /* records a second at most; 0: any number */
	uint32_t queue;		     /* bytes that wait for a collector at most */
	struct export_filter filter;
};

/* Returns 0, or -EINVAL with what is wrong. */
int export_target_parse(struct export_target *target, const char *text, struct error *error);

/* Is a flow one that the export is told of? */
bool export_filter_takes(const struct export_filter *filter, const struct flow_report *report);
