/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/stream.h"

#include <errno.h>
#include <stdlib.h>

#include "traffic/draw.h"
#include "traffic/stream_write.h"

#define FLOWS_A_ROUND 256 /* over which shares are exact */

/* The inverse of STREAM_SPREAD, modulo 2^26. */
#define SPREAD_BACK UINT32_C(0x2cf17ed)

static const char *const share_names[STREAM_N_PROTOS] = {
	[STREAM_UDP] = "udp",
	[STREAM_TCP] = "tcp",
	[STREAM_SCTP] = "sctp",
	[STREAM_ICMP] = "icmp",
};

static int check_protos(const uint16_t share[STREAM_N_PROTOS], struct error *error)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < STREAM_N_PROTOS; i++) {
		if (share[i] > FLOWS_A_ROUND)
			return error_set(error, -EINVAL, "%s: a share of %u is more than all 256",
				share_names[i], share[i]);
		sum += share[i];
	}
	if (sum != FLOWS_A_ROUND)
		return error_set(error, -EINVAL,
			"udp, tcp, sctp, icmp: the shares add up to %u, not to 256", sum);
	return 0;
}

static int check_sizes(const struct stream_config *config, struct error *error)
{
	if (config->size_min < STREAM_MIN_BYTES || config->size_max > STREAM_MAX_BYTES)
		return error_set(error, -EINVAL, "size: %u to %u bytes is not within %u to %u",
			config->size_min, config->size_max, STREAM_MIN_BYTES, STREAM_MAX_BYTES);
	if (config->size_min > config->size_max)
		return error_set(error, -EINVAL, "size: from %u to %u bytes runs backwards",
			config->size_min, config->size_max);
	return 0;
}

static int check(const struct stream_config *config, struct error *error)
{
	if (config->flows == 0 || config->flows > STREAM_MAX_FLOWS)
		return error_set(error, -EINVAL, "flows: %u is not 1 to %u", config->flows,
			STREAM_MAX_FLOWS);
	if (config->ipv6_share > FLOWS_A_ROUND)
		return error_set(error, -EINVAL, "ipv6: a share of %u is more than all 256",
			config->ipv6_share);
	if (config->vlan_share > FLOWS_A_ROUND)
		return error_set(error, -EINVAL, "vlan: a share of %u is more than all 256",
			config->vlan_share);
	int ret = check_protos(config->proto_share, error);

	return ret < 0 ? ret : check_sizes(config, error);
}

/* Writes out what 0 stands for. */
static int complete(struct stream_config *config, struct error *error)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < STREAM_N_PROTOS; i++)
		sum += config->proto_share[i];
	if (sum == 0)
		config->proto_share[STREAM_UDP] = FLOWS_A_ROUND;
	if (config->imix && (config->size_min != 0 || config->size_max != 0))
		return error_set(error, -EINVAL, "imix: has sizes of its own");
	if (config->size_min == 0)
		config->size_min = STREAM_MIN_BYTES;
	if (config->size_max == 0)
		config->size_max = config->size_min;
	return 0;
}

/*
 * A number's place among 256 in three orders of which each is even over the numbers, and any two or
 * three of them together are to within two flows: multipliers found by trying all.
 */
static void choose_kinds(struct stream_set *set)
{
	const struct stream_config *config = &set->config;

	for (unsigned i = 0; i < FLOWS_A_ROUND; i++) {
		unsigned proto = 0, below = config->proto_share[0];

		while (i * 113 % FLOWS_A_ROUND >= below)
			below += config->proto_share[++proto];
		if (i * 161 % FLOWS_A_ROUND < config->ipv6_share)
			proto |= STREAM_KIND_IPV6;
		if (i * 81 % FLOWS_A_ROUND < config->vlan_share)
			proto |= STREAM_KIND_VLAN;
		set->kind[i] = (uint8_t)proto;
	}
}

int stream_set_create(
	struct stream_set **out, const struct stream_config *config, struct error *error)
{
	struct stream_config whole = *config;
	int ret = complete(&whole, error);

	if (ret == 0)
		ret = check(&whole, error);
	if (ret < 0)
		return ret;
	struct stream_set *set = aligned_alloc(64, (sizeof(*set) + 63) / 64 * 64);

	if (set == NULL)
		return error_set(error, -ENOMEM, "no memory for streams");
	memset(set, 0, sizeof(*set));
	set->config = whole;
	choose_kinds(set);
	ret = stream_set_fill(set);
	if (ret < 0) {
		stream_set_destroy(set);
		return error_set(error, ret, "no memory for streams");
	}
	*out = set;
	return 0;
}

void stream_set_destroy(struct stream_set *set)
{
	if (set == NULL)
		return;
	free(set->sctp_crc);
	free(set);
}

bool stream_set_is_plain(const struct stream_set *set)
{
	return set->plain_length != 0;
}

static uint32_t load_be(const uint8_t *bytes, unsigned n)
{
	uint32_t value = 0;

	for (unsigned i = 0; i < n; i++)
		value = value << 8 | bytes[i];
	return value;
}

/* The flow whose client has this end of an address; the server's is compared by the caller. */
static uint32_t flow_of_name(uint32_t name)
{
	return (name - STREAM_SHIFT) * SPREAD_BACK & (STREAM_MAX_FLOWS - 1);
}

/* The name of the flow between a client and a server, if there is one. */
static uint32_t name_ipv4(const uint8_t *client, const uint8_t *server)
{
	uint32_t low = load_be(client, 4), high = load_be(server, 4);
	uint32_t name = (low & 0x3fffff) | (high >> 12 & 0xf) << 22;

	return stream_client_ipv4(name) == low && stream_server_ipv4(name) == high ? name
										   : STREAM_NONE;
}

static uint32_t name_ipv6(const uint8_t *client, const uint8_t *server)
{
	struct stream_address a, b;
	uint32_t name = load_be(client + 6, 2) | (load_be(client + 14, 2) & 0x3ff) << 16;

	stream_client_ipv6(name, &a);
	stream_server_ipv6(name, &b);
	return memcmp(&a, client, sizeof(a)) == 0 && memcmp(&b, server, sizeof(b)) == 0
		       ? name
		       : STREAM_NONE;
}

uint32_t stream_find(
	const struct stream_set *set, unsigned version, const uint8_t *src, const uint8_t *dst)
{
	uint32_t (*name_of)(const uint8_t *client, const uint8_t *server) =
		version == 4 ? name_ipv4 : name_ipv6;
	uint32_t name = name_of(src, dst), side = 0, flow;

	if (name == STREAM_NONE) {
		name = name_of(dst, src);
		side = 1;
	}
	if (name == STREAM_NONE)
		return STREAM_NONE;
	flow = flow_of_name(name);
	if (flow >= set->config.flows ||
		(version == 4) != !(stream_kind(set, flow) & STREAM_KIND_IPV6))
		return STREAM_NONE;
	return 2 * flow + side;
}
