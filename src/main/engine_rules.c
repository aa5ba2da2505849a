/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/engine_rules.h"

#include "base/options.h"
#include "packet/meta.h"

int engine_rules_load(struct lone_rules *rules, const struct engine_config *engine,
	const struct hash_secret *secret, struct error *error)
{
	static const struct topology one_port = {.n_ports = 1, .n_domains = 1, .size = {1}};
	struct rules_config config = {
		.n_workers = engine->n_workers,
		.topology = &one_port,
		.zone_vlan = engine->zone_vlan,
		.replies_follow = engine->replies_follow,
		.no_pickup = engine->no_pickup,
		.sends_nothing = true,
		.secret = secret,
	};
	uint32_t added;
	int ret = option_file_lines(engine->rules, RULES_MAX, &config.max_rules, error);

	if (ret == 0)
		ret = lone_rules_create(rules, &config, error);
	return ret < 0 ? ret
		       : rules_load_file(rules->rules, engine->rules, &added, NULL, NULL, error);
}

static void decide_captured(void *rules, const struct flow_key *key, const uint16_t port[2],
	struct flow_decision *decision)
{
	static const uint16_t first[2] = {0, 0};

	(void)port;
	rules_decide(rules, key, first, decision);
}

static void classify_captured(void *rules, const struct rte_mbuf *packet,
	const struct packet_info *info, uint16_t port, struct flow_packet_ct ct,
	struct flow_packet_decision *decision)
{
	const unsigned link = info != NULL ? flow_key_wire(&info->key) : packet_meta(packet)->wire;

	(void)port;
	rules_classify_captured(rules, packet, info, (enum link_type)link, ct, decision);
}

struct policy_others engine_rules_policy(const struct lone_rules *rules)
{
	if (rules->rules == NULL)
		return (struct policy_others){0};
	return (struct policy_others){
		.context = rules->rules,
		.decide = decide_captured,
		.classify = classify_captured,
		.count = rules_count_packets,
		.leave = rules_leave,
		.tell = rules_tell_flow,
	};
}
