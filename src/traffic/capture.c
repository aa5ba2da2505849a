/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/capture.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "traffic/capture_link.h"
#include "traffic/capture_pcapng.h"
#include "traffic/capture_source.h"

struct capture {
	struct capture_source *source;
	struct pcapng pcapng; /* reads a pcapng file */
	FILE *stream;	      /* libpcap's to close once `pcap` is there */
	pcap_t *pcap;	      /* reads a pcap file */
	uint64_t packets;
	uint64_t intact; /* position after the last packet that was read */

	uint64_t interfaces; /* of a pcapng file, in all sections */
	uint64_t readable;   /* those of a link type that is read */
	uint64_t left_out;   /* packets of the others */
	int foreign;	     /* link type of the first of the others */

	int end;	 /* what capture_next() goes on returning; 1 while there is more */
	bool read_ahead; /* `first` is read and not yet handed out */
	struct capture_packet first;
	struct error error; /* with a negative `end` */
	char name[256];	    /* the path as it appears in texts */
};

/*
 * Seconds of a pcap file are 32 bits and, there being no packets from before 1970, unsigned; so are
 * the microseconds, where garbage may say more than a second.
 */
static uint64_t pcap_time_us(const struct timeval *ts)
{
	return (uint64_t)(uint32_t)ts->tv_sec * 1000000 + (uint32_t)ts->tv_usec;
}

static int wrong_link_type(const struct capture *capture, int link_type, struct error *error)
{
	char text[CAPTURE_LINK_TEXT_MAX];

	return error_set(error, -EPROTONOSUPPORT,
		"%s: link type %s is not read; " CAPTURE_LINKS_READ, capture->name,
		capture_link_text(link_type, text));
}

/* The end of the file, which is fine unless packets had to be left out. */
static int end_of_file(struct capture *capture)
{
	char text[CAPTURE_LINK_TEXT_MAX], left_out[TEXT_NUMBER_MAX], packets[TEXT_NUMBER_MAX];

	if (capture->interfaces > 0 && capture->readable == 0)
		return wrong_link_type(capture, capture->foreign, &capture->error);
	if (capture->left_out == 0)
		return 0;
	return error_set(&capture->error, -EPROTONOSUPPORT,
		"%s: %s packet%s left out beside %s that %s read: link type %s is not "
		"read; " CAPTURE_LINKS_READ,
		capture->name, text_grouped(left_out, capture->left_out),
		capture->left_out == 1 ? "" : "s", text_grouped(packets, capture->packets),
		capture->packets == 1 ? "was" : "were", capture_link_text(capture->foreign, text));
}

/* The reading stopped because the file is `how`; why, in terms of the file. */
static int broken(struct capture *capture, const char *how, const char *why)
{
	char packets[TEXT_NUMBER_MAX], position[TEXT_NUMBER_MAX];

	if (capture->intact == 0)
		return error_set(&capture->error, -EBADMSG, "%s: %s before the first packet: %s",
			capture->name, how, why);
	return error_set(&capture->error, -EBADMSG, "%s: %s after %s packet%s and %s bytes: %s",
		capture->name, how, text_grouped(packets, capture->packets),
		capture->packets == 1 ? "" : "s", text_grouped(position, capture->intact), why);
}

/* Fills in what both formats have, and takes the check sequence off, as far as it was captured. */
static void take_packet(struct capture *capture, struct capture_packet *packet,
	const struct capture_packet *found, uint8_t fcs)
{
	uint32_t whole = found->wire_length;

	/* a damaged file may say that there was less on the wire than in the capture */
	if (whole < found->length)
		whole = found->length;
	whole -= fcs < whole ? fcs : whole;
	*packet = *found;
	if (packet->length > whole)
		packet->length = whole;
	packet->wire_length -= fcs < packet->wire_length ? fcs : packet->wire_length;
	capture->packets++;
	capture->intact = capture_position(capture);
}

/*
 * libpcap read the file as one without a snapshot length, and takes its own limit for the file's in what
 * it says of a packet that is too long.
 */
static int pcap_broken(struct capture *capture)
{
	const char *why = pcap_geterr(capture->pcap);
	const char *how = "damaged";
	char text[128];
	unsigned length;

	if (ferror(capture->stream))
		how = "reading failed";
	else if (feof(capture->stream))
		how = "cut";
	else if (sscanf(why, "invalid packet capture length %u", &length) == 1) {
		snprintf(text, sizeof(text),
			"a packet of %u bytes; the longest that is read has %u, and the file's "
			"snapshot length is %u",
			length, CAPTURE_LENGTH_MAX, capture_source_pcap(capture->source)->snaplen);
		why = text;
	}
	return broken(capture, how, why);
}

static int read_pcap_packet(struct capture *capture, struct capture_packet *packet)
{
	struct pcap_pkthdr *header;
	const u_char *bytes;
	int ret = pcap_next_ex(capture->pcap, &header, &bytes);

	if (ret == PCAP_ERROR_BREAK)
		return 0;
	if (ret != 1)
		return pcap_broken(capture);
	const struct capture_packet found = {
		.bytes = bytes,
		.length = header->caplen,
		.wire_length = header->len,
		.time_us = pcap_time_us(&header->ts),
		.link = (enum link_type)capture_link(pcap_datalink(capture->pcap)),
	};

	take_packet(capture, packet, &found, capture_source_pcap(capture->source)->fcs);
	return 1;
}

static void count_interface(struct capture *capture, int link_type)
{
	if (capture_link(link_type) >= 0)
		capture->readable++;
	else if (capture->interfaces == capture->readable)
		capture->foreign = link_type;
	capture->interfaces++;
}

static int pcapng_broken(struct capture *capture, int ret, const struct error *why)
{
	switch (ret) {
	case -ENODATA:
		return broken(capture, "cut", why->text);
	case -EBADMSG:
		return broken(capture, "damaged", why->text);
	case -EPROTONOSUPPORT:
		broken(capture, "not read on", why->text);
		return -EPROTONOSUPPORT;
	default:
		return broken(capture, "reading failed", why->text);
	}
}

/* Reads one block. Returns an enum pcapng_step, or a negative errno with capture->error set. */
static int step(struct capture *capture, struct capture_packet *packet)
{
	struct pcapng_packet found;
	struct error why;
	int ret = pcapng_step(&capture->pcapng, &found, &why);

	if (ret < 0)
		return pcapng_broken(capture, ret, &why);
	if (ret == PCAPNG_INTERFACE)
		count_interface(capture, found.link_type);
	if (ret != PCAPNG_PACKET)
		return ret;

	int link = capture_link(found.link_type);

	if (link < 0) {
		capture->left_out++;
		return PCAPNG_OTHER;
	}
	const struct capture_packet taken = {
		.bytes = found.bytes,
		.length = found.length,
		.wire_length = found.wire_length,
		.time_us = found.time_us,
		.link = (enum link_type)link,
	};

	take_packet(capture, packet, &taken, found.fcs);
	return ret;
}

static int read_pcapng_packet(struct capture *capture, struct capture_packet *packet)
{
	int ret;

	do
		ret = step(capture, packet);
	while (ret == PCAPNG_INTERFACE || ret == PCAPNG_OTHER);
	if (ret < 0)
		return ret;
	return ret == PCAPNG_PACKET ? 1 : end_of_file(capture);
}

static int capture_read_packet(struct capture *capture, struct capture_packet *packet)
{
	return capture->pcap ? read_pcap_packet(capture, packet)
			     : read_pcapng_packet(capture, packet);
}

int capture_next(struct capture *capture, struct capture_packet *packet, struct error *error)
{
	if (capture->read_ahead) {
		capture->read_ahead = false;
		*packet = capture->first;
		return 1;
	}
	if (capture->end == 1)
		capture->end = capture_read_packet(capture, packet);
	if (capture->end < 0)
		*error = capture->error;
	return capture->end;
}

/* Microseconds are asked for: libpcap would multiply garbage to nanoseconds beyond an int. */
static int begin_pcap(struct capture *capture, struct error *error)
{
	char why[PCAP_ERRBUF_SIZE] = "";

	capture->stream = capture_source_stream(capture->source);
	if (!capture->stream)
		return error_set(error, -ENOMEM, "%s: out of memory", capture->name);
	capture->pcap = pcap_fopen_offline_with_tstamp_precision(
		capture->stream, PCAP_TSTAMP_PRECISION_MICRO, why);
	if (!capture->pcap)
		return error_set(error, -EBADMSG, "%s: %s before the first packet: %s",
			capture->name, feof(capture->stream) ? "cut" : "damaged", why);
	capture->intact = capture_position(capture);

	int link_type = pcap_datalink(capture->pcap);

	return capture_link(link_type) < 0 ? wrong_link_type(capture, link_type, error) : 0;
}

/*
 * A section and its first interface have to be there, or the end of the file. Whether any interface is
 * of a link type that is read shows, when the first one is not, by reading on to the first packet of one
 * that is.
 */
static int begin_pcapng(struct capture *capture, struct error *error)
{
	int ret;

	capture->pcapng.source = capture->source;
	do
		ret = step(capture, &capture->first);
	while (ret == PCAPNG_OTHER);
	if (ret < 0) {
		*error = capture->error;
		return ret;
	}
	capture->intact = capture_position(capture);
	if (ret == PCAPNG_END || capture->readable > 0)
		return 0;
	capture->end = capture_read_packet(capture, &capture->first);
	capture->read_ahead = capture->end == 1;
	if (capture->read_ahead || capture->readable > 0)
		return 0;
	return wrong_link_type(capture, capture->foreign, error);
}

static int begin(struct capture *capture, struct error *error)
{
	const char *packed, *unpack = capture_source_unpack(capture->source, &packed);

	if (unpack)
		return error_set(error, -EINVAL,
			"%s: compressed by %s; unpack it on the way: %s FILE | millrace replay -",
			capture->name, packed, unpack);
	switch (capture_source_format(capture->source)) {
	case CAPTURE_PCAP:
		return begin_pcap(capture, error);
	case CAPTURE_PCAPNG:
		return begin_pcapng(capture, error);
	case CAPTURE_UNKNOWN:
		break;
	}
	return error_set(error, -EINVAL, "%s: not a capture (pcap or pcapng)", capture->name);
}

int capture_open(struct capture **out, const char *path, struct error *error)
{
	struct capture *capture = calloc(1, sizeof(*capture));
	int ret;

	if (!capture)
		return error_set(error, -ENOMEM, "out of memory");
	text_printable(capture->name, sizeof(capture->name),
		strcmp(path, "-") == 0 ? "standard input" : path);
	capture->end = 1;
	ret = capture_source_open(&capture->source, path, capture->name, error);
	if (ret == 0)
		ret = begin(capture, error);
	if (ret < 0) {
		capture_close(capture);
		return ret;
	}
	*out = capture;
	return 0;
}

uint64_t capture_position(const struct capture *capture)
{
	if (!capture->stream)
		return capture_source_position(capture->source);

	off_t position = ftello(capture->stream);

	return position < 0 ? 0 : (uint64_t)position;
}

uint64_t capture_size(const struct capture *capture)
{
	return capture_source_size(capture->source);
}

void capture_close(struct capture *capture)
{
	if (!capture)
		return;
	if (capture->pcap)
		pcap_close(capture->pcap);
	else if (capture->stream)
		fclose(capture->stream);
	pcapng_fini(&capture->pcapng);
	capture_source_close(capture->source);
	free(capture);
}
