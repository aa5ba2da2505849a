/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <rte_byteorder.h>
#include <rte_mbuf.h>

#include "drivers/flowsim/match/actions.h"
#include "drivers/flowsim/match/view.h"
#include "drivers/flowsim/packets/edit.h"

#define ETH_SIZE 14
#define TAG_SIZE 4
#define TYPE_AT 12 /* of Ethernet: behind the addresses */

#define IPV4_TTL 8
#define IPV4_CHECKSUM 10
#define IPV4_SOURCE 12
#define IPV6_HOPS 7
#define IPV6_SOURCE 8
#define TCP_CHECKSUM 16
#define UDP_CHECKSUM 6
#define ICMP6_CHECKSUM 2

/* A packet whose bytes are ours, and where its headers lie. */
struct edited {
	struct rte_mbuf *packet;
	uint8_t *bytes;
	uint32_t layers;
	uint32_t n_tags;
	uint16_t l3_at, l4_at;
};

/* RFC 1624, equation 3, over 16-bit words; all in network byte order, which sums do not mind. */
static uint16_t renewed(uint16_t checksum, const uint8_t *old, const uint8_t *new, unsigned size)
{
	uint32_t sum = (uint16_t)~checksum;

	for (unsigned i = 0; i < size; i += 2) {
		uint16_t was, is;

		memcpy(&was, &old[i], 2);
		memcpy(&is, &new[i], 2);
		sum += (uint16_t)~was;
		sum += is;
	}
	while (sum > UINT16_MAX)
		sum = (sum & UINT16_MAX) + (sum >> 16);
	return (uint16_t)~sum;
}

static void renew(uint8_t *checksum, const uint8_t *old, const uint8_t *new, unsigned size)
{
	uint16_t value;

	memcpy(&value, checksum, sizeof(value));
	value = renewed(value, old, new, size);
	memcpy(checksum, &value, sizeof(value));
}

/* UDP's 0 says that there is none (RFC 768; RFC 6935 over IPv6), and stays. */
static void renew_udp(uint8_t *checksum, const uint8_t *old, const uint8_t *new, unsigned size)
{
	if (checksum[0] == 0 && checksum[1] == 0)
		return;
	renew(checksum, old, new, size);
	if (checksum[0] == 0 && checksum[1] == 0)
		memset(checksum, 0xff, 2);
}

/* The checksum of layer 4, if it covers what changed there or in the addresses. */
static void renew_l4(
	const struct edited *edited, const uint8_t *old, const uint8_t *new, unsigned size)
{
	uint8_t *l4 = &edited->bytes[edited->l4_at];

	if (edited->layers & SIM_TCP)
		renew(&l4[TCP_CHECKSUM], old, new, size);
	else if (edited->layers & SIM_UDP)
		renew_udp(&l4[UDP_CHECKSUM], old, new, size);
	else if (edited->layers & SIM_ICMP6)
		renew(&l4[ICMP6_CHECKSUM], old, new, size);
}

static void set_address(
	const struct edited *edited, unsigned at, const uint8_t *value, unsigned size)
{
	uint8_t *l3 = &edited->bytes[edited->l3_at];

	renew_l4(edited, &l3[at], value, size);
	if (edited->layers & SIM_IPV4)
		renew(&l3[IPV4_CHECKSUM], &l3[at], value, size);
	memcpy(&l3[at], value, size);
}

static void set_tp(const struct edited *edited, unsigned at, const uint8_t *value)
{
	uint8_t *l4 = &edited->bytes[edited->l4_at];

	if ((edited->layers & (SIM_TCP | SIM_UDP)) == 0)
		return;
	renew_l4(edited, &l4[at], value, 2);
	memcpy(&l4[at], value, 2);
}

/* False: the packet has come to its end. */
static bool dec_ttl(const struct edited *edited)
{
	uint8_t *l3 = &edited->bytes[edited->l3_at];

	if (edited->layers & SIM_IPV4) {
		uint8_t old[2] = {l3[IPV4_TTL], l3[IPV4_TTL + 1]};

		if (l3[IPV4_TTL] <= 1)
			return false;
		l3[IPV4_TTL]--;
		renew(&l3[IPV4_CHECKSUM], old, &l3[IPV4_TTL], 2);
	} else if (edited->layers & SIM_IPV6) {
		if (l3[IPV6_HOPS] <= 1)
			return false;
		l3[IPV6_HOPS]--;
	}
	return true;
}

/* Headers behind the Ethernet addresses have moved. */
static void shift(struct edited *edited, int by)
{
	edited->bytes = rte_pktmbuf_mtod(edited->packet, uint8_t *);
	edited->l3_at = (uint16_t)(edited->l3_at + by);
	edited->l4_at = (uint16_t)(edited->l4_at + by);
}

/* A tag begins as a copy of the one that it is put before, as OpenFlow has it; without one as zeroes. */
static bool push_vlan(struct edited *edited, const uint8_t *tpid)
{
	uint8_t *bytes;

	if (edited->packet->data_len < ETH_SIZE)
		return true;
	bytes = (uint8_t *)rte_pktmbuf_prepend(edited->packet, TAG_SIZE);
	if (bytes == NULL)
		return false;
	memmove(bytes, &bytes[TAG_SIZE], TYPE_AT);
	memcpy(&bytes[TYPE_AT], tpid, 2);
	if (edited->n_tags > 0)
		memcpy(&bytes[TYPE_AT + 2], &bytes[TYPE_AT + TAG_SIZE + 2], 2);
	else
		memset(&bytes[TYPE_AT + 2], 0, 2);
	edited->n_tags++;
	shift(edited, TAG_SIZE);
	return true;
}

static void pop_vlan(struct edited *edited)
{
	if (edited->n_tags == 0)
		return;
	memmove(&edited->bytes[TAG_SIZE], edited->bytes, TYPE_AT);
	rte_pktmbuf_adj(edited->packet, TAG_SIZE);
	edited->n_tags--;
	shift(edited, -TAG_SIZE);
}

static void set_tci(const struct edited *edited, uint16_t mask, uint16_t value)
{
	uint8_t *tci = &edited->bytes[TYPE_AT + 2];
	uint16_t old;

	if (edited->n_tags == 0)
		return;
	old = (uint16_t)(tci[0] << 8 | tci[1]);
	value |= (uint16_t)(old & ~mask);
	tci[0] = (uint8_t)(value >> 8);
	tci[1] = (uint8_t)value;
}

static void set_mac(const struct edited *edited, unsigned at, const uint8_t *value)
{
	if (edited->layers & SIM_ETH)
		memcpy(&edited->bytes[at], value, 6);
}

static void set_ip(const struct edited *edited, enum sim_edit_type type, const uint8_t *value)
{
	bool destination = type == SIM_EDIT_IPV4_DST || type == SIM_EDIT_IPV6_DST;

	if (type == SIM_EDIT_IPV4_SRC || type == SIM_EDIT_IPV4_DST) {
		if (edited->layers & SIM_IPV4)
			set_address(edited, IPV4_SOURCE + (destination ? 4 : 0), value, 4);
	} else if (edited->layers & SIM_IPV6) {
		set_address(edited, IPV6_SOURCE + (destination ? 16 : 0), value, 16);
	}
}

static bool edit_one(struct edited *edited, const struct sim_edit *edit)
{
	const uint8_t *value = edit->value;

	switch (edit->type) {
	case SIM_EDIT_POP_VLAN:
		pop_vlan(edited);
		return true;
	case SIM_EDIT_PUSH_VLAN:
		return push_vlan(edited, value);
	case SIM_EDIT_VLAN_VID:
		set_tci(edited, 0x0fff, (uint16_t)(value[0] << 8 | value[1]));
		return true;
	case SIM_EDIT_VLAN_PCP:
		set_tci(edited, 0xe000, (uint16_t)(value[0] << 13));
		return true;
	case SIM_EDIT_MAC_DST:
		set_mac(edited, 0, value);
		return true;
	case SIM_EDIT_MAC_SRC:
		set_mac(edited, 6, value);
		return true;
	case SIM_EDIT_IPV4_SRC:
	case SIM_EDIT_IPV4_DST:
	case SIM_EDIT_IPV6_SRC:
	case SIM_EDIT_IPV6_DST:
		set_ip(edited, edit->type, value);
		return true;
	case SIM_EDIT_TP_SRC:
		set_tp(edited, 0, value);
		return true;
	case SIM_EDIT_TP_DST:
		set_tp(edited, 2, value);
		return true;
	case SIM_EDIT_DEC_TTL:
		return dec_ttl(edited);
	}
	return true;
}

/* Whether nobody else has, or will have, the packet or its first bytes. */
static bool is_ours(struct rte_mbuf *packet)
{
	if (rte_mbuf_refcnt_read(packet) != 1 || RTE_MBUF_CLONED(packet))
		return false;
	return !RTE_MBUF_HAS_EXTBUF(packet) || rte_mbuf_ext_refcnt_read(packet->shinfo) == 1;
}

struct rte_mbuf *sim_packet_copy(struct rte_mbuf *packet)
{
	struct rte_mempool *pool =
		RTE_MBUF_CLONED(packet) ? rte_mbuf_from_indirect(packet)->pool : packet->pool;

	/* a pool of clones has no room for bytes */
	if (rte_pktmbuf_data_room_size(pool) <= RTE_PKTMBUF_HEADROOM)
		return NULL;
	return rte_pktmbuf_copy(packet, pool, 0, UINT32_MAX);
}

static bool make_ours(struct rte_mbuf **packet)
{
	struct rte_mbuf *copy;

	if (is_ours(*packet))
		return true;
	copy = sim_packet_copy(*packet);
	if (copy == NULL)
		return false;
	rte_pktmbuf_free(*packet);
	*packet = copy;
	return true;
}

bool sim_edit_packet(const struct sim_edit edits[], unsigned n, struct rte_mbuf **packet)
{
	struct sim_view view;

	if (n == 0)
		return true;
	if (!make_ours(packet))
		return false;
	sim_view_packet(&view, *packet);

	struct edited edited = {
		.packet = *packet,
		.bytes = rte_pktmbuf_mtod(*packet, uint8_t *),
		.layers = view.layers,
		.n_tags = (view.layers & SIM_VLAN ? 1 : 0) + (view.layers & SIM_VLAN_MORE ? 1 : 0),
		.l3_at = view.l3_at,
		.l4_at = view.l4_at,
	};

	for (unsigned i = 0; i < n; i++)
		if (!edit_one(&edited, &edits[i]))
			return false;
	return true;
}
