/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/capture_link.h"

#include <pcap/pcap.h>
#include <stdio.h>

int capture_link(int link_type)
{
	switch (link_type) {
	case 1:
		return LINK_ETHERNET;
	case 12:  /* what libpcap calls 101 on most systems, so that some files have it */
	case 14:  /* the same on OpenBSD */
	case 101: /* raw IP */
	case 228: /* raw IPv4 */
	case 229: /* raw IPv6 */
		return LINK_RAW;
	case 113:
		return LINK_SLL;
	case 276:
		return LINK_SLL2;
	case 0:
	case 108: /* OpenBSD's */
		return LINK_LOOPBACK;
	case 9:
	case 50: /* with HDLC-like framing */
		return LINK_PPP;
	case 51:
		return LINK_PPPOE;
	default:
		return -1;
	}
}

const char *capture_link_text(int link_type, char text[CAPTURE_LINK_TEXT_MAX])
{
	/* the few that libpcap knows by another number than files do, and that are not read */
	static const struct {
		int in_files, in_libpcap;
	} other[] = {{100, DLT_ATM_RFC1483}, {104, DLT_C_HDLC}};

	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		if (other[i].in_files == link_type)
			link_type = other[i].in_libpcap;

	const char *name = pcap_datalink_val_to_name(link_type);
	const char *description = pcap_datalink_val_to_description(link_type);

	if (name && description)
		snprintf(text, CAPTURE_LINK_TEXT_MAX, "%s (%s)", name, description);
	else
		snprintf(text, CAPTURE_LINK_TEXT_MAX, "%d", link_type);
	return text;
}
