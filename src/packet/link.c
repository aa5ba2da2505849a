/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/link.h"

#include "packet/headers.h"

enum {
	ETHERTYPE_NONE = 0, /* stands for whatever is not IP and has no ethertype */
	SLL_LENGTH = 16,    /* of which the last two bytes are the ethertype */
	SLL2_LENGTH = 20,   /* of which the first two are */
	LOOPBACK_LENGTH = 4,
	HDLC_LENGTH = 2, /* address and control (RFC 1662 section 3.1) */
	CISCO_LENGTH = 4,
	PPPOE_LENGTH = 6,
	PPP_IPV4 = 0x0021,
	PPP_IPV6 = 0x0057,
};

const char *link_type_name(enum link_type type)
{
	static const char *const names[LINK_N_TYPES] = {
		[LINK_ETHERNET] = "ethernet",
		[LINK_RAW] = "raw",
		[LINK_SLL] = "linux_sll",
		[LINK_SLL2] = "linux_sll2",
		[LINK_LOOPBACK] = "loopback",
		[LINK_PPP] = "ppp",
		[LINK_PPPOE] = "pppoe",
	};

	return names[type];
}

static bool ethertype_at(
	struct reader *reader, size_t offset, size_t length, struct link_header *link)
{
	uint8_t scratch[2];
	const uint8_t *type = reader_peek(reader, offset, sizeof(scratch), scratch);

	if (type == NULL || !reader_has(reader, 0, length))
		return false;
	link->end = length;
	link->ethertype = load_be16(type);
	return true;
}

/* Without a link header the first byte says the version; one that is neither is a broken IPv4 header. */
static bool raw_walk(struct reader *reader, struct link_header *link)
{
	uint8_t scratch;
	const uint8_t *first = reader_peek(reader, 0, 1, &scratch);

	if (first == NULL)
		return false;
	link->ethertype = *first >> 4 == 6 ? ETHERTYPE_IPV6 : ETHERTYPE_IPV4;
	return true;
}

/*
 * The address family, as the capturing system numbers it, in its byte order (in OpenBSD's, the
 * network's). Each is below 65,536, which tells the order.
 */
static bool loopback_walk(struct reader *reader, struct link_header *link)
{
	uint8_t scratch[LOOPBACK_LENGTH];
	const uint8_t *bytes = reader_peek(reader, 0, LOOPBACK_LENGTH, scratch);

	if (bytes == NULL)
		return false;

	uint32_t family = load_be32(bytes);

	if (family > UINT16_MAX)
		family = __builtin_bswap32(family);
	link->end = LOOPBACK_LENGTH;
	switch (family) {
	case 2:
		link->ethertype = ETHERTYPE_IPV4;
		break;
	case 10: /* Linux */
	case 23: /* Windows */
	case 24: /* NetBSD, OpenBSD */
	case 28: /* FreeBSD */
	case 30: /* Darwin */
		link->ethertype = ETHERTYPE_IPV6;
		break;
	default:
		link->ethertype = ETHERTYPE_NONE;
	}
	return true;
}

/* RFC 1661 section 2: two bytes, or one, which is odd, where the ends agreed to compress them. */
static bool ppp_protocol(struct reader *reader, size_t offset, struct link_header *link)
{
	uint8_t scratch[2];
	const uint8_t *bytes = reader_peek(reader, offset, 1, scratch);
	uint16_t protocol;

	if (bytes == NULL)
		return false;
	if (*bytes & 1) {
		protocol = *bytes;
		link->end = offset + 1;
	} else {
		bytes = reader_peek(reader, offset, 2, scratch);
		if (bytes == NULL)
			return false;
		protocol = load_be16(bytes);
		link->end = offset + 2;
	}
	link->ethertype = ETHERTYPE_NONE;
	if (protocol == PPP_IPV4)
		link->ethertype = ETHERTYPE_IPV4;
	else if (protocol == PPP_IPV6)
		link->ethertype = ETHERTYPE_IPV6;
	return true;
}

static bool ppp_walk(struct reader *reader, struct link_header *link)
{
	uint8_t scratch[HDLC_LENGTH];
	const uint8_t *bytes = reader_peek(reader, 0, HDLC_LENGTH, scratch);
	uint16_t start;

	if (bytes == NULL)
		return false;
	start = load_be16(bytes);
	if (start == 0xff03)
		return ppp_protocol(reader, HDLC_LENGTH, link);
	/* Cisco's HDLC, unicast or broadcast: an ethertype follows */
	if (start == 0x0f00 || start == 0x8f00)
		return ethertype_at(reader, HDLC_LENGTH, CISCO_LENGTH, link);
	return ppp_protocol(reader, 0, link);
}

/* RFC 2516 section 4. Packets of the discovery stage carry no PPP. */
static bool pppoe_walk(struct reader *reader, struct link_header *link)
{
	uint8_t scratch[PPPOE_LENGTH];
	const uint8_t *bytes = reader_peek(reader, 0, PPPOE_LENGTH, scratch);

	if (bytes == NULL)
		return false;
	link->end = PPPOE_LENGTH;
	link->ethertype = ETHERTYPE_NONE;
	return bytes[1] != 0 || ppp_protocol(reader, PPPOE_LENGTH, link);
}

/* What stands before the tags. */
static bool first_header(struct reader *reader, enum link_type type, struct link_header *link)
{
	switch (type) {
	case LINK_RAW:
		return raw_walk(reader, link);
	case LINK_SLL:
		return ethertype_at(reader, SLL_LENGTH - 2, SLL_LENGTH, link);
	case LINK_SLL2:
		return ethertype_at(reader, 0, SLL2_LENGTH, link);
	case LINK_LOOPBACK:
		return loopback_walk(reader, link);
	case LINK_PPP:
		return ppp_walk(reader, link);
	case LINK_PPPOE:
		return pppoe_walk(reader, link);
	case LINK_ETHERNET:
	case LINK_N_TYPES:
		break;
	}
	return ethertype_at(reader, ETHERNET_LENGTH - 2, ETHERNET_LENGTH, link);
}

bool link_walk(struct reader *reader, enum link_type type, struct link_header *link)
{
	uint8_t scratch[VLAN_TAG_LENGTH];
	bool outermost = true;

	*link = (struct link_header){0};
	if (!first_header(reader, type, link))
		return false;
	while (ethertype_is_vlan(link->ethertype)) {
		const uint8_t *tag = reader_peek(reader, link->end, VLAN_TAG_LENGTH, scratch);

		if (tag == NULL)
			return false;
		if (outermost)
			link->vlan = load_be16(tag) & 0x0fff;
		outermost = false;
		link->ethertype = load_be16(tag + 2);
		link->end += VLAN_TAG_LENGTH;
	}
	return true;
}
