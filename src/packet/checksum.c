/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/checksum.h"

#include <netinet/in.h>

#include <rte_ip.h>

/* Where the checksum lies in the header; 0 for protocols without one. */
static unsigned field_offset(const struct packet_info *info)
{
	if (info->flags & (PACKET_FRAGMENT | PACKET_CUT))
		return 0;
	switch (info->key.proto) {
	case IPPROTO_TCP:
		return 16;
	case IPPROTO_UDP:
		return 6;
	default:
		return 0;
	}
}

bool checksum_unfinished(const struct rte_mbuf *frame, const struct packet_info *info)
{
	unsigned offset = field_offset(info);
	uint16_t field;

	if (offset == 0 || info->l4_offset + offset + sizeof(field) > frame->data_len)
		return false;
	memcpy(&field, rte_pktmbuf_mtod_offset(frame, const uint8_t *, info->l4_offset + offset),
		sizeof(field));

	/* RFC 9293 section 3.1, RFC 8200 section 8.1; a frame of padding is not taken apart */
	uint16_t length = rte_cpu_to_be_16((uint16_t)(frame->pkt_len - info->l4_offset));
	uint16_t proto = rte_cpu_to_be_16(info->key.proto);
	uint32_t sum = rte_raw_cksum(info->key.addr, sizeof(info->key.addr));

	sum += length;
	sum += proto;
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return field == (uint16_t)sum;
}
