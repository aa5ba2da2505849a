/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/capture.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "traffic/capture_source.h"

struct capture {
	struct capture_source *source;
	FILE *stream; /* libpcap's to close once `pcap` is there */
	pcap_t *pcap; /* NULL: a pcapng file without an interface, hence without a packet */
	uint64_t packets;
	uint64_t intact; /* position after the last packet that was read */
	int end;	 /* what capture_next() goes on returning; 1 while there is more */
	bool read_ahead; /* `first` is read and not yet handed out */
	struct capture_packet first;
	struct error error; /* with a negative `end` */
	char name[256];	    /* the path as it appears in texts */
};

/*
 * Seconds of a pcap file are 32 bits and, there being no packets from before 1970, unsigned; so are
 * the microseconds, where garbage may say more than a second. A pcapng file has 64 bits of time in
 * any unit, plus an offset.
 */
static uint64_t packet_time_us(const struct capture *capture, const struct timeval *ts)
{
	uint64_t us = (uint32_t)ts->tv_usec;
	uint64_t seconds = (uint64_t)ts->tv_sec;

	if (capture_source_format(capture->source) == CAPTURE_PCAP)
		seconds = (uint32_t)ts->tv_sec;
	else if (ts->tv_sec < 0)
		return 0;
	if (seconds > CAPTURE_TIME_MAX_US / 1000000)
		return CAPTURE_TIME_MAX_US;
	us += seconds * 1000000;
	return us < CAPTURE_TIME_MAX_US ? us : CAPTURE_TIME_MAX_US;
}

/* Number and meaning of a link type of a pcapng interface, which libpcap did not see. */
static const char *link_type_text(int link_type, char *buffer, size_t size)
{
	/* the few that libpcap knows by another number than files do */
	static const struct {
		int in_files, in_libpcap;
	} other[] = {{50, DLT_PPP_SERIAL}, {51, DLT_PPP_ETHER}, {100, DLT_ATM_RFC1483},
		{101, DLT_RAW}, {104, DLT_C_HDLC}};

	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		if (other[i].in_files == link_type)
			link_type = other[i].in_libpcap;

	const char *name = pcap_datalink_val_to_name(link_type);
	const char *description = pcap_datalink_val_to_description(link_type);

	if (name && description)
		snprintf(buffer, size, "%s (%s)", name, description);
	else
		snprintf(buffer, size, "%d", link_type);
	return buffer;
}

static int wrong_link_type(const struct capture *capture, int link_type, struct error *error)
{
	char text[128];

	return error_set(error, -EPROTONOSUPPORT, "%s: link type %s, only Ethernet is read",
		capture->name, link_type_text(link_type, text, sizeof(text)));
}

/* The end of the file, which is fine unless packets had to be left out. */
static int end_of_file(struct capture *capture)
{
	const struct capture_blocks *blocks = capture_source_blocks(capture->source);
	char text[128], left_out[TEXT_NUMBER_MAX], packets[TEXT_NUMBER_MAX];

	if (blocks->interfaces > 0 && blocks->ethernet == 0)
		return wrong_link_type(capture, blocks->foreign_link_type, &capture->error);
	if (blocks->foreign_packets == 0)
		return 0;
	return error_set(&capture->error, -EPROTONOSUPPORT,
		"%s: %s packet%s left out beside %s of Ethernet: link type %s, only Ethernet is "
		"read",
		capture->name, text_grouped(left_out, blocks->foreign_packets),
		blocks->foreign_packets == 1 ? "" : "s", text_grouped(packets, capture->packets),
		link_type_text(blocks->foreign_link_type, text, sizeof(text)));
}

/* Why libpcap gave up, in terms of the file. */
static int broken(struct capture *capture, const char *why)
{
	char packets[TEXT_NUMBER_MAX], position[TEXT_NUMBER_MAX];
	const char *how = "damaged";

	if (ferror(capture->stream))
		how = "reading failed";
	else if (feof(capture->stream))
		how = "cut";
	return error_set(&capture->error, -EBADMSG, "%s: %s after %s packet%s and %s bytes: %s",
		capture->name, how, text_grouped(packets, capture->packets),
		capture->packets == 1 ? "" : "s", text_grouped(position, capture->intact), why);
}

static int read_packet(struct capture *capture, struct capture_packet *packet)
{
	struct pcap_pkthdr *header;
	const u_char *bytes;
	int ret;

	if (!capture->pcap)
		return 0;
	ret = pcap_next_ex(capture->pcap, &header, &bytes);
	if (ret == PCAP_ERROR_BREAK)
		return end_of_file(capture);
	if (ret != 1)
		return broken(capture, pcap_geterr(capture->pcap));
	*packet = (struct capture_packet){
		.bytes = bytes,
		.length = header->caplen,
		.wire_length = header->len,
		.time_us = packet_time_us(capture, &header->ts),
	};
	capture->packets++;
	capture->intact = capture_position(capture);
	return 1;
}

int capture_next(struct capture *capture, struct capture_packet *packet, struct error *error)
{
	if (capture->read_ahead) {
		capture->read_ahead = false;
		*packet = capture->first;
		return 1;
	}
	if (capture->end == 1)
		capture->end = read_packet(capture, packet);
	if (capture->end < 0)
		*error = capture->error;
	return capture->end;
}

/* What libpcap would not even begin with. */
static int refused(struct capture *capture, const char *why, struct error *error)
{
	const struct capture_blocks *blocks = capture_source_blocks(capture->source);
	bool cut = feof(capture->stream);

	switch (capture_source_format(capture->source)) {
	case CAPTURE_GZIP:
		return error_set(error, -EINVAL,
			"%s: compressed by gzip, not a capture; unpack it first", capture->name);
	case CAPTURE_PCAPNG:
		/* a section and nothing in it is a whole file; libpcap wants an interface */
		if (blocks->ended && blocks->interfaces == 0 && strstr(why, "Interface"))
			return 0;
		break;
	case CAPTURE_PCAP:
		break;
	case CAPTURE_UNKNOWN:
		return error_set(
			error, -EINVAL, "%s: not a capture (pcap or pcapng)", capture->name);
	}
	return error_set(error, -EBADMSG, "%s: %s before the first packet: %s", capture->name,
		cut ? "cut" : "damaged", why);
}

/*
 * Whether any interface is Ethernet shows when a file's first interface is not: by reading on to the
 * first packet that is.
 */
static int check_link_type(struct capture *capture, struct error *error)
{
	const struct capture_blocks *blocks = capture_source_blocks(capture->source);
	int link_type = pcap_datalink(capture->pcap);

	if (link_type != DLT_EN10MB)
		return wrong_link_type(capture, link_type, error);
	if (blocks->interfaces == 0 || blocks->ethernet > 0)
		return 0;
	capture->end = read_packet(capture, &capture->first);
	capture->read_ahead = capture->end == 1;
	if (capture->read_ahead || blocks->ethernet > 0)
		return 0;
	return wrong_link_type(capture, blocks->foreign_link_type, error);
}

/* Microseconds are asked for: libpcap would multiply garbage to nanoseconds beyond an int. */
static int begin(struct capture *capture, struct error *error)
{
	char why[PCAP_ERRBUF_SIZE] = "";

	capture->stream = capture_source_stream(capture->source);
	if (!capture->stream)
		return error_set(error, -ENOMEM, "%s: out of memory", capture->name);
	capture->pcap = pcap_fopen_offline_with_tstamp_precision(
		capture->stream, PCAP_TSTAMP_PRECISION_MICRO, why);
	if (!capture->pcap)
		return refused(capture, why, error);
	capture->intact = capture_position(capture);
	return check_link_type(capture, error);
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
	capture_source_close(capture->source);
	free(capture);
}
