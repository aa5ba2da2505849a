/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/router_in.h"

#include <netinet/icmp6.h>
#include <netinet/in.h>

#include "dataplane/lcore.h"
#include "dataplane/punt.h"
#include "packet/headers.h"

#define TYPE_IPV4 0x0800
#define TYPE_ARP 0x0806
#define TYPE_IPV6 0x86dd
#define TYPE_AT 12

enum fate {
	FATE_GO_ON,
	FATE_DROP,
	FATE_PUNT,
};

struct verdict {
	enum fate fate;
	uint8_t why; /* enum drop_reason or enum punt_reason */
};

static const struct verdict go_on = {FATE_GO_ON, 0};

static struct verdict fate_punt(enum punt_reason reason)
{
	return (struct verdict){FATE_PUNT, (uint8_t)reason};
}

static struct verdict fate_drop(enum drop_reason reason)
{
	return (struct verdict){FATE_DROP, (uint8_t)reason};
}

static uint64_t mac_at(const uint8_t *frame)
{
	uint64_t mac;

	memcpy(&mac, frame, sizeof(mac));
	return mac & rte_cpu_to_le_64(UINT64_C(0xffffffffffff));
}

/* The sum over an IPv4 header of `words` 32-bit words with its checksum is all ones. */
static bool checksum_holds(const uint8_t *ip, unsigned words)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < words; i++) {
		uint32_t word;

		memcpy(&word, ip + i * sizeof(word), sizeof(word));
		sum += word;
	}
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

static bool is_discovery(uint8_t type)
{
	return type >= ND_ROUTER_SOLICIT && type <= ND_REDIRECT;
}

/* `n`: bytes of the packet from the IP header on that lie in its first segment. */
static struct verdict look_at_ipv4(const uint8_t *ip, uint32_t n)
{
	const unsigned words = ip[0] & 0xf;

	/* cut, or no IPv4: the parser counts it as malformed */
	if (n < IPV4_LENGTH || ip[0] >> 4 != 4 || words < 5 || n < words * 4)
		return go_on;
	if (!checksum_holds(ip, words))
		return fate_drop(DROP_CHECKSUM);
	return words > 5 ? fate_punt(PUNT_OPTIONS) : go_on;
}

static struct verdict look_at_ipv6(const uint8_t *ip, uint32_t n)
{
	if (n < IPV6_LENGTH || ip[0] >> 4 != 6)
		return go_on;
	if (ip[6] == IPPROTO_HOPOPTS)
		return fate_punt(PUNT_OPTIONS);
	if (ip[6] == IPPROTO_ICMPV6 && n > IPV6_LENGTH && is_discovery(ip[IPV6_LENGTH]))
		return fate_punt(PUNT_ARP_ND);
	return go_on;
}

/* A frame for all hosts of a link, or several. */
static struct verdict look_at_multicast(const uint8_t *ip, uint32_t n, uint16_t type)
{
	struct verdict verdict = go_on;

	if (type == TYPE_ARP)
		return fate_punt(PUNT_ARP_ND);
	if (type == TYPE_IPV4)
		verdict = look_at_ipv4(ip, n);
	else if (type == TYPE_IPV6)
		verdict = look_at_ipv6(ip, n);
	else
		return fate_punt(PUNT_OTHER);
	return verdict.fate == FATE_GO_ON ? fate_punt(PUNT_MULTICAST) : verdict;
}

static struct verdict look_at(const struct rte_mbuf *packet, uint64_t mac)
{
	const uint8_t *frame = rte_pktmbuf_mtod(packet, const uint8_t *);
	const uint32_t n = packet->data_len;
	uint16_t type;

	if (unlikely(n < ETHERNET_LENGTH))
		return go_on;
	type = load_be16(frame + TYPE_AT);
	if (unlikely(mac_at(frame) != mac))
		return frame[0] & 1 ? look_at_multicast(
					      frame + ETHERNET_LENGTH, n - ETHERNET_LENGTH, type)
				    : fate_drop(DROP_OTHER_HOST);
	if (likely(type == TYPE_IPV4))
		return look_at_ipv4(frame + ETHERNET_LENGTH, n - ETHERNET_LENGTH);
	if (type == TYPE_IPV6)
		return look_at_ipv6(frame + ETHERNET_LENGTH, n - ETHERNET_LENGTH);
	return fate_punt(type == TYPE_ARP ? PUNT_ARP_ND : PUNT_OTHER);
}

static __rte_noinline void end_here(struct lcore *lcore, const struct lcore_rx *rx,
	struct rte_mbuf *packet, struct verdict verdict)
{
	struct path_counters *counters = &lcore->worker.counters[rx->from.domain];

	counters->received++;
	counters->received_bytes += packet->pkt_len;
	lcore->ports[rx->from.port].rx_bytes += packet->pkt_len;
	if (verdict.fate == FATE_PUNT)
		punt_packet(lcore, rx->from.port, packet, NULL, (enum punt_reason)verdict.why);
	else
		lcore_drop_of(lcore, rx->from.domain, packet, (enum drop_reason)verdict.why);
}

unsigned router_in(
	struct lcore *lcore, const struct lcore_rx *rx, struct rte_mbuf **packets, unsigned n)
{
	const uint64_t mac =
		atomic_load_explicit(&lcore->router_ports[rx->from.port].mac, memory_order_relaxed);
	unsigned left = 0;

	for (unsigned i = 0; i < n; i++)
		rte_prefetch0(rte_pktmbuf_mtod(packets[i], const void *));
	for (unsigned i = 0; i < n; i++) {
		const struct verdict verdict = look_at(packets[i], mac);

		if (likely(verdict.fate == FATE_GO_ON))
			packets[left++] = packets[i];
		else
			end_here(lcore, rx, packets[i], verdict);
	}
	return left;
}
