/* SPDX-License-Identifier: BSD-3-Clause */
#include "route/routes.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "action/next_hop.h"
#include "packet/extract.h"
#include "packet/words.h"

/* The scopes of addresses that a router has to tell apart. */
enum scope {
	SCOPE_GLOBAL,
	SCOPE_NONE, /* 0.0.0.0/8 or ::, a source of who has no address yet */
	SCOPE_MARTIAN,
	SCOPE_LINK,
	SCOPE_MULTICAST,
	SCOPE_BROADCAST, /* 255.255.255.255 */
};

const char *routes_source_check_name(enum routes_source_check check)
{
	static const char *const names[ROUTES_N_SOURCE_CHECKS] = {
		[ROUTES_SOURCE_OFF] = "off",
		[ROUTES_SOURCE_LOOSE] = "loose",
		[ROUTES_SOURCE_STRICT] = "strict",
	};

	return names[check];
}

static int intern(
	struct programs *programs, const struct action *list, unsigned n, uint16_t *number)
{
	struct action_program program;
	struct error error;
	int ret = action_program_compile(&program, list, n, &error);

	return ret < 0 ? ret : programs_intern(programs, &program, number, &error);
}

int routes_verdicts_init(
	struct routes_verdicts *verdicts, struct programs *programs, uint32_t n_hops)
{
	int ret = 0;

	*verdicts = (struct routes_verdicts){.n_hops = n_hops};
	for (unsigned i = 0; ret == 0 && i < PUNT_N_REASONS; i++) {
		const struct action punt = {.kind = ACTION_PUNT, .punt = (enum punt_reason)i};

		ret = intern(programs, &punt, 1, &verdicts->punt[i]);
	}
	for (unsigned i = 0; ret == 0 && i < ACTION_N_DISCARDS; i++) {
		const struct action discard = {
			.kind = ACTION_DISCARD, .discard = (enum action_discard)i};

		ret = intern(programs, &discard, 1, &verdicts->discard[i]);
	}
	for (uint32_t i = 0; ret == 0 && i < n_hops; i++) {
		const struct action list[] = {
			{.kind = ACTION_DECREMENT_TTL}, {.kind = ACTION_NEXT_HOP, .number = i}};
		uint16_t number;

		ret = intern(programs, list, 2, &number);
		if (i == 0)
			verdicts->first_hop = number;
		/* a new set numbers its programs in order */
		if (ret == 0 && number != verdicts->first_hop + i)
			ret = -EINVAL;
	}
	return ret;
}

static enum scope scope_of_ipv4(const uint8_t addr[4])
{
	if (addr[0] == 0)
		return SCOPE_NONE;
	if (addr[0] == 127)
		return SCOPE_MARTIAN;
	if (addr[0] < 224)
		return addr[0] == 169 && addr[1] == 254 ? SCOPE_LINK : SCOPE_GLOBAL;
	if (addr[0] < 240)
		return SCOPE_MULTICAST;
	return load_32(addr) == UINT32_MAX ? SCOPE_BROADCAST : SCOPE_MARTIAN;
}

static enum scope scope_of_ipv6(const uint8_t addr[16])
{
	static const uint8_t none[16], self[16] = {[15] = 1},
				       mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (addr[0] == 0xff)
		return SCOPE_MULTICAST;
	if (addr[0] == 0xfe && (addr[1] & 0xc0) == 0x80)
		return SCOPE_LINK;
	if (addr[0] != 0)
		return SCOPE_GLOBAL;
	if (memcmp(addr, none, sizeof(none)) == 0)
		return SCOPE_NONE;
	if (memcmp(addr, self, sizeof(self)) == 0 || memcmp(addr, mapped, sizeof(mapped)) == 0)
		return SCOPE_MARTIAN;
	return SCOPE_GLOBAL;
}

static enum scope scope_of(unsigned version, const uint8_t addr[16])
{
	return version == 4 ? scope_of_ipv4(addr) : scope_of_ipv6(addr);
}

static uint32_t look_up(const struct routes *routes, unsigned version, const uint8_t addr[16])
{
	return version == 4 ? fib_lookup4(routes->fib[0], load_be32(addr))
			    : fib_lookup6(routes->fib[1], addr);
}

/* Decides packets whose addresses alone say enough; false: they do not. */
static bool decide_scopes(
	const struct routes *routes, enum scope from, enum scope to, uint16_t *verdict)
{
	const struct routes_verdicts *verdicts = routes->verdicts;
	const bool to_many = to == SCOPE_MULTICAST || to == SCOPE_BROADCAST;

	*verdict = verdicts->discard[ACTION_DISCARD_MARTIAN];
	if (from == SCOPE_MARTIAN || from == SCOPE_MULTICAST || from == SCOPE_BROADCAST ||
		to == SCOPE_MARTIAN || to == SCOPE_NONE || (from == SCOPE_NONE && !to_many))
		return true;
	*verdict = verdicts->punt[to == SCOPE_BROADCAST ? PUNT_LOCAL : PUNT_MULTICAST];
	return to_many || to == SCOPE_LINK;
}

/* Whether a verdict leads to a next hop of that port. */
static bool leads_by(const struct routes *routes, uint16_t verdict, unsigned port)
{
	const struct routes_verdicts *verdicts = routes->verdicts;
	const uint32_t number = (uint32_t)verdict - verdicts->first_hop;

	/* an address on a link whose neighbour is not known may be behind any port: the kernel looks */
	if (verdict == verdicts->punt[PUNT_NO_NEIGHBOUR])
		return true;
	if (verdict < verdicts->first_hop || number >= verdicts->n_hops)
		return false;
	const struct next_hop *hop = next_hops_get(routes->next_hops, number);

	return hop->valid && hop->port == port;
}

/* `port`: the packets', or UINT_MAX where it is not asked. */
static bool source_is_good(const struct routes *routes, uint32_t value, unsigned port)
{
	const struct routes_verdicts *verdicts = routes->verdicts;

	if (routes->source_check == ROUTES_SOURCE_OFF)
		return true;
	if (value == FIB_NO_ROUTE || value == verdicts->punt[PUNT_NO_ROUTE] ||
		value == verdicts->discard[ACTION_DISCARD_BLACKHOLE])
		return false;
	if (routes->source_check == ROUTES_SOURCE_LOOSE || port == UINT_MAX)
		return true;
	if (value < ROUTES_FIRST_GROUP)
		return leads_by(routes, (uint16_t)value, port);
	for (unsigned i = 0; i < ROUTE_BUCKETS; i++)
		if (leads_by(routes, routes_value_verdict(routes, value, (uint64_t)i << 40), port))
			return true;
	return false;
}

/* The values are those of source and destination in the table. */
static uint16_t decide_way(const struct routes *routes, enum scope from, enum scope to,
	const uint32_t value[2], uint64_t hash, unsigned port)
{
	const struct routes_verdicts *verdicts = routes->verdicts;
	const uint16_t local = verdicts->punt[PUNT_LOCAL];
	uint16_t verdict;

	if (decide_scopes(routes, from, to, &verdict))
		return verdict;
	verdict = routes_value_verdict(routes, value[1], hash);
	/* the kernel alone sends by the router's addresses */
	if (value[0] == local)
		return verdicts->discard[ACTION_DISCARD_MARTIAN];
	if (verdict == local)
		return verdict;
	if (from == SCOPE_LINK)
		return verdicts->punt[PUNT_MULTICAST];
	if (!source_is_good(routes, value[0], port))
		return verdicts->discard[ACTION_DISCARD_SOURCE];
	return verdict;
}

void routes_decide(
	const struct routes *routes, const struct flow_key *key, struct flow_decision *decision)
{
	const unsigned version = flow_key_version(key);
	enum scope scope[2];
	uint32_t value[2];
	uint64_t hash;

	if (routes->source_check == ROUTES_SOURCE_STRICT ||
		(decision->verdict[0] != FLOW_VERDICT_FORWARD &&
			decision->verdict[1] != FLOW_VERDICT_FORWARD))
		return;
	hash = flow_key_hash(routes->secret, key);
	for (unsigned end = 0; end < 2; end++) {
		scope[end] = scope_of(version, key->addr[end]);
		value[end] = look_up(routes, version, key->addr[end]);
	}
	for (unsigned from = 0; from < 2; from++) {
		const uint32_t way[2] = {value[from], value[!from]};

		if (decision->verdict[from] != FLOW_VERDICT_FORWARD)
			continue;
		decision->verdict[from] =
			decide_way(routes, scope[from], scope[!from], way, hash, UINT_MAX);
	}
}

uint16_t routes_verdict(const struct routes *routes, unsigned version, const uint8_t src[16],
	const uint8_t dst[16], uint64_t flow_hash, unsigned port)
{
	const uint32_t way[2] = {look_up(routes, version, src), look_up(routes, version, dst)};

	return decide_way(
		routes, scope_of(version, src), scope_of(version, dst), way, flow_hash, port);
}

uint16_t routes_verdict_of(
	const struct routes *routes, const struct rte_mbuf *packet, unsigned port)
{
	const struct extract_options options = {.secret = routes->secret};
	struct packet_info info;

	if (extract(&options, packet, routes->domain, &info) != EXTRACT_IP)
		return routes->verdicts->punt[PUNT_OTHER];
	return routes_verdict(routes, flow_key_version(&info.key), info.key.addr[info.from],
		info.key.addr[!info.from], flow_key_hash(routes->secret, &info.key), port);
}
