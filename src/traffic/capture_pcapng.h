/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The reader of pcapng files (draft-ietf-opsawg-pcapng), block by block.
 *
 * It is our own because libpcap, which reads pcap files for us, tells of a packet neither the
 * interface nor the options, and refuses sections of another byte order than the first one's and
 * interfaces of different link types or snapshot lengths.
 *
 * Read are sections of version 1 in either byte order, each with interfaces of its own, and packets in
 * Enhanced, Simple and (obsolete) Packet Blocks. Every other block is passed over.
 *
 * Memory: some bytes for each interface of a section.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "traffic/capture_source.h"

#define PCAPNG_SECTION_HEADER 0x0a0d0d0a /* the same in both byte orders */

/* What pcapng_step() came upon. */
enum pcapng_step {
	PCAPNG_END,	  /* the file ends where a block ends */
	PCAPNG_PACKET,	  /* a packet */
	PCAPNG_INTERFACE, /* the description of an interface */
	PCAPNG_OTHER,	  /* any other block */
};

struct pcapng_packet {
	const uint8_t *bytes; /* as captured, within the source's buffer until the next step */
	uint32_t length;
	uint32_t wire_length;
	uint64_t time_us;
	uint16_t link_type; /* of its interface, as files number them */
	uint8_t fcs;	    /* bytes of check sequence that `wire_length` includes */
};

struct pcapng_interface {
	uint16_t link_type;
	uint8_t resolution; /* if_tsresol */
	uint8_t fcs;	    /* bytes, by if_fcslen; 0 = none or not known */
	uint32_t snaplen;   /* 0 = no limit */
	int64_t offset_s;   /* if_tsoffset */
};

struct pcapng {
	struct capture_source *source;
	bool swapped;			     /* the section is not in this machine's byte order */
	struct pcapng_interface *interfaces; /* of the section */
	size_t n_interfaces;
	size_t max_interfaces; /* that there is room for */
};

/*
 * Reads the next block. Returns an enum pcapng_step; `packet` is filled for PCAPNG_PACKET, and for
 * PCAPNG_INTERFACE only its link type. Or a negative errno with the reason in `why`: -ENODATA (the
 * file is cut), -EBADMSG (damaged), -EPROTONOSUPPORT (another version), -EIO (reading failed),
 * -ENOMEM. After that it must not be called again.
 */
int pcapng_step(struct pcapng *pcapng, struct pcapng_packet *packet, struct error *why);

void pcapng_fini(struct pcapng *pcapng);
