/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/cut.h"

#include "packet/headers.h"

/* Where the datagram ends by its own word; 0 where that cannot be told. */
static size_t datagram_end(const struct rte_mbuf *frame)
{
	struct reader reader = reader_of(frame);
	struct link_header link;
	uint8_t scratch[6];
	const uint8_t *header;

	if (!link_walk(&reader, LINK_ETHERNET, &link) ||
		(link.ethertype != ETHERTYPE_IPV4 && link.ethertype != ETHERTYPE_IPV6))
		return 0;
	header = reader_peek(&reader, link.end, sizeof(scratch), scratch);
	if (header == NULL)
		return 0;
	if (link.ethertype == ETHERTYPE_IPV4)
		return link.end + load_be16(header + 2);
	return link.end + IPV6_LENGTH + load_be16(header + 4);
}

bool frame_may_be_cut(const struct rte_mbuf *frame, uint32_t room)
{
	const uint32_t tag = frame->ol_flags & RTE_MBUF_F_RX_VLAN ? VLAN_TAG_LENGTH : 0;

	return frame->pkt_len >= room + tag && datagram_end(frame) != frame->pkt_len;
}
