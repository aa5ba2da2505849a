/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mark_flow EAL-ARGUMENTS: has the NIC mark all packets of the first flow that is seen at port 0, and tells how many came
 * marked. rteflow/ finds out by trial which rules the port takes, by blocking calls or by flow queues. Try:
 *	mark_flow --no-huge -m 64 --no-pci --no-shconf --vdev net_flowsim0,flows=4
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "rteflow/provider.h"

#define MARK 7
#define BURST 32

/* Port 0 with one queue each way, as the calls of provider.h want it: asked for marks first, flow queues before start. */
static int open_port(struct provider_config *config)
{
	static const struct rte_eth_conf conf;
	struct rte_mempool *pool = rte_pktmbuf_pool_create(
		"packets", 1023, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);

	config->metadata = provider_negotiate(config->port_id);
	if (pool == NULL || rte_eth_dev_configure(config->port_id, 1, 1, &conf) < 0)
		return -1;
	config->async = provider_prepare(config->port_id, config->n_places);
	if (rte_eth_rx_queue_setup(config->port_id, 0, 256, SOCKET_ID_ANY, NULL, pool) < 0 ||
		rte_eth_tx_queue_setup(config->port_id, 0, 256, SOCKET_ID_ANY, NULL) < 0)
		return -1;
	return rte_eth_dev_start(config->port_id);
}

/* The flow of a packet; `from`: which of the key's ends it comes from. False: it is of another kind. */
static bool flow_of(const struct rte_mbuf *packet, struct offload_rule *rule)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(packet, const struct rte_ether_hdr *);
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)(eth + 1);
	const struct rte_udp_hdr *ports = (const struct rte_udp_hdr *)(ip + 1);
	uint8_t src[16] = {0}, dst[16] = {0};

	if (packet->data_len < sizeof(*eth) + sizeof(*ip) + sizeof(*ports) ||
		eth->ether_type != RTE_BE16(RTE_ETHER_TYPE_IPV4) || ip->version_ihl != 0x45 ||
		(ip->next_proto_id != IPPROTO_UDP && ip->next_proto_id != IPPROTO_TCP))
		return false;
	memcpy(src, &ip->src_addr, sizeof(ip->src_addr));
	memcpy(dst, &ip->dst_addr, sizeof(ip->dst_addr));
	rule->key = (struct flow_key){
		.proto = ip->next_proto_id, .version_wire = FLOW_KEY_VERSION_WIRE(4, 0)};
	rule->from = (uint8_t)flow_key_make(&rule->key, src, dst, ports->src_port, ports->dst_port);
	return true;
}

/* Receives for a second, or until a packet makes the rule. How many packets came with the mark. */
static uint64_t receive(struct offload_rule *rule)
{
	uint64_t end = rte_get_timer_cycles() + rte_get_timer_hz(), marked = 0;
	struct rte_mbuf *packets[BURST];
	bool found = false;

	while (!found && rte_get_timer_cycles() < end) {
		uint16_t n = rte_eth_rx_burst(0, 0, packets, BURST);

		for (uint16_t i = 0; i < n; i++) {
			marked += (packets[i]->ol_flags & RTE_MBUF_F_RX_FDIR_ID) != 0 &&
				  packets[i]->hash.fdir.hi == MARK;
			found = found || (rule != NULL && flow_of(packets[i], rule));
			rte_pktmbuf_free(packets[i]);
		}
	}
	return marked;
}

int main(int argc, char **argv)
{
	struct provider_config config = {.n_places = 16, .n_queues = 1};
	struct offload_rule rule = {.mark = MARK, .deed = PROVIDER_MARKS};
	struct provider_done done = {0};
	struct provider_why why = {0};
	struct provider *provider;

	if (rte_eal_init(argc, argv) < 0 || open_port(&config) < 0 ||
		provider_open(&provider, &config) < 0)
		return 1;
	printf("back end: %s\n", provider_abilities(provider)->back_end);
	receive(&rule);
	int ret = provider_insert(provider, 0, &rule, &why);

	while (ret == -EINPROGRESS)
		if (provider_poll(provider, &done, 1) == 1)
			ret = done.result;
	uint64_t marked = ret == 0 ? receive(NULL) : 0;

	printf("marked: %lu packets%s%s\n", marked, why.words[0] ? ", " : "", why.words);
	provider_close(provider);
	rte_eal_cleanup();
	return marked == 0;
}
