/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/port/rss.h"

#include <string.h>

#include "drivers/flowsim/port/compat.h"
#include "drivers/flowsim/port/port.h"

const uint32_t sim_rss_functions =
	1u << RTE_ETH_HASH_FUNCTION_DEFAULT | 1u << RTE_ETH_HASH_FUNCTION_TOEPLITZ |
	1u << RTE_ETH_HASH_FUNCTION_SIMPLE_XOR | 1u << RTE_ETH_HASH_FUNCTION_SYMMETRIC_TOEPLITZ |
	1u << SIM_HASH_SYMMETRIC_SORT;

const uint8_t sim_rss_default_key[SIM_RSS_DEFAULT_KEY] = {
	0x6d,
	0x5a,
	0x56,
	0xda,
	0x25,
	0x5b,
	0x0e,
	0xc2,
	0x41,
	0x67,
	0x25,
	0x3d,
	0x43,
	0xa3,
	0x8f,
	0xb0,
	0xd0,
	0xca,
	0x2b,
	0xcb,
	0xae,
	0x7b,
	0x30,
	0xb4,
	0x77,
	0xcb,
	0x2d,
	0xa3,
	0x80,
	0x30,
	0xf2,
	0x0c,
	0x6a,
	0x42,
	0xb7,
	0x3b,
	0xbe,
	0xac,
	0x01,
	0xfa,
	0x5c,
	0x91,
	0x3e,
	0x47,
	0xb8,
	0x06,
	0xd3,
	0x7d,
	0x2f,
	0xe0,
	0x99,
	0x18,
};

/* What goes into the hash, in its order: source and destination address, source and destination port. */
struct input {
	uint8_t bytes[SIM_RSS_INPUT];
	unsigned n;
};

/* The RTE_ETH_RSS_* of one version of IP. */
struct version_types {
	uint64_t any, fragment, tcp, udp, sctp, other;
	uint8_t src, dst, length; /* of the addresses in the header */
};

static const struct version_types of_ipv4 = {
	.any = RTE_ETH_RSS_IPV4,
	.fragment = RTE_ETH_RSS_FRAG_IPV4,
	.tcp = RTE_ETH_RSS_NONFRAG_IPV4_TCP,
	.udp = RTE_ETH_RSS_NONFRAG_IPV4_UDP,
	.sctp = RTE_ETH_RSS_NONFRAG_IPV4_SCTP,
	.other = RTE_ETH_RSS_NONFRAG_IPV4_OTHER,
	.src = 12,
	.dst = 16,
	.length = 4,
};

static const struct version_types of_ipv6 = {
	.any = RTE_ETH_RSS_IPV6,
	.fragment = RTE_ETH_RSS_FRAG_IPV6,
	.tcp = RTE_ETH_RSS_NONFRAG_IPV6_TCP,
	.udp = RTE_ETH_RSS_NONFRAG_IPV6_UDP,
	.sctp = RTE_ETH_RSS_NONFRAG_IPV6_SCTP,
	.other = RTE_ETH_RSS_NONFRAG_IPV6_OTHER,
	.src = 8,
	.dst = 24,
	.length = 16,
};

static bool is_fragment(const struct sim_view *view)
{
	const uint8_t *ip = view->level[0].ip;

	if (view->layers & SIM_IPV6_FRAG)
		return true;
	/* more fragments, or an offset */
	return (view->layers & SIM_IPV4) && ((ip[6] & 0x3f) | ip[7]) != 0;
}

/* Whether the addresses are hashed, and the ports. */
static void choose(const struct sim_view *view, const struct version_types *of, uint64_t types,
	bool *addresses, bool *ports)
{
	uint64_t own = of->other;

	*ports = false;
	if (is_fragment(view)) {
		*addresses = (types & (of->any | of->fragment)) != 0;
		return;
	}
	if (view->layers & (SIM_TCP | SIM_UDP | SIM_SCTP)) {
		own = view->layers & SIM_TCP   ? of->tcp
		      : view->layers & SIM_UDP ? of->udp
					       : of->sctp;
		*ports = (types & own) != 0;
	}
	*addresses = (types & (of->any | own)) != 0;
}

static void put(struct input *input, const uint8_t *bytes, unsigned n)
{
	memcpy(&input->bytes[input->n], bytes, n);
	input->n += n;
}

/* Two fields of a layer, as the function wants them; one of them alone when that is asked for. */
static void put_pair(struct input *input, enum rte_eth_hash_function function, const uint8_t *src,
	const uint8_t *dst, unsigned n, bool src_only, bool dst_only)
{
	uint8_t both[16];

	if (src_only != dst_only) {
		put(input, src_only ? src : dst, n);
	} else if (function == RTE_ETH_HASH_FUNCTION_SYMMETRIC_TOEPLITZ) {
		for (unsigned i = 0; i < n; i++)
			both[i] = src[i] ^ dst[i];
		put(input, both, n);
		put(input, both, n);
	} else if (function == SIM_HASH_SYMMETRIC_SORT && memcmp(src, dst, n) > 0) {
		put(input, dst, n);
		put(input, src, n);
	} else {
		put(input, src, n);
		put(input, dst, n);
	}
}

static void gather(struct input *input, const struct sim_view *view,
	enum rte_eth_hash_function function, uint64_t types)
{
	const struct sim_level *level = &view->level[0];
	const struct version_types *of;
	bool addresses, ports;

	input->n = 0;
	if (view->layers & SIM_IPV4)
		of = &of_ipv4;
	else if (view->layers & SIM_IPV6)
		of = &of_ipv6;
	else
		return;
	choose(view, of, types, &addresses, &ports);
	if (!addresses)
		return;
	put_pair(input, function, &level->ip[of->src], &level->ip[of->dst], of->length,
		types & RTE_ETH_RSS_L3_SRC_ONLY, types & RTE_ETH_RSS_L3_DST_ONLY);
	if (ports)
		put_pair(input, function, &level->l4[0], &level->l4[2], 2,
			types & RTE_ETH_RSS_L4_SRC_ONLY, types & RTE_ETH_RSS_L4_DST_ONLY);
}

/* Both ports are one word, as the addresses are of some. */
static uint32_t xor_words(const struct input *input)
{
	uint32_t hash = 0;

	for (unsigned i = 0; i < input->n; i++)
		hash ^= (uint32_t)input->bytes[i] << (24 - i % 4 * 8);
	return hash;
}

static uint8_t key_byte(const uint8_t *key, unsigned length, unsigned i)
{
	return i < length ? key[i] : 0;
}

/*
 * Toeplitz takes, for each bit of the input that is 1, the 32 bits of the key that begin there. The 40
 * bits that begin at byte `i` of the key have those of all bits of byte `i` of the input.
 */
static uint64_t key_window(const uint8_t *key, unsigned length, unsigned i)
{
	uint64_t window = 0;

	for (unsigned n = 0; n < 5; n++)
		window = window << 8 | key_byte(key, length, i + n);
	return window;
}

static uint32_t toeplitz_byte(uint64_t window, uint8_t byte)
{
	uint32_t hash = 0;

	for (unsigned bit = 0; bit < 8; bit++)
		hash ^= (uint32_t)(window >> (8 - bit)) & -(uint32_t)(byte >> (7 - bit) & 1);
	return hash;
}

void sim_rss_table_fill(struct sim_rss_table *table, const uint8_t *key, unsigned key_length)
{
	for (unsigned i = 0; i < SIM_RSS_INPUT; i++) {
		uint64_t window = key_window(key, key_length, i);

		for (unsigned value = 0; value < 16; value++) {
			table->part[2 * i][value] = toeplitz_byte(window, (uint8_t)(value << 4));
			table->part[2 * i + 1][value] = toeplitz_byte(window, (uint8_t)value);
		}
	}
}

uint32_t sim_rss_hash(const struct sim_view *view, enum rte_eth_hash_function function,
	uint64_t types, const uint8_t *key, unsigned key_length)
{
	struct input input;
	uint32_t hash = 0;

	gather(&input, view, function, types);
	if (function == RTE_ETH_HASH_FUNCTION_SIMPLE_XOR)
		return xor_words(&input);
	for (unsigned i = 0; i < input.n; i++)
		hash ^= toeplitz_byte(key_window(key, key_length, i), input.bytes[i]);
	return hash;
}

/* The port's key and its configuration are constant but under the lock that is taken here. */
static rte_rwlock_t *lock_of(const struct sim_port *port)
{
	return (rte_rwlock_t *)(uintptr_t)&port->rss_lock;
}

uint32_t sim_rss_of(const struct sim_port *port, const struct sim_view *view)
{
	const struct sim_rss_table *table = &port->rss_table;
	struct input input;
	uint32_t hash = 0;

	rte_rwlock_read_lock(lock_of(port));
	gather(&input, view, port->rss_function, port->rss_hf);
	if (port->rss_function == RTE_ETH_HASH_FUNCTION_SIMPLE_XOR)
		hash = xor_words(&input);
	else
		for (unsigned i = 0; i < input.n; i++)
			hash ^= table->part[2 * i][input.bytes[i] >> 4] ^
				table->part[2 * i + 1][input.bytes[i] & 15];
	rte_rwlock_read_unlock(lock_of(port));
	return hash;
}

uint16_t sim_rss_queue(const struct sim_port *port, uint32_t hash)
{
	return __atomic_load_n(&port->reta[hash % SIM_RETA], __ATOMIC_RELAXED);
}

uint16_t sim_rss_rule_queue(const struct sim_rss *rss, const struct sim_view *view, uint32_t hash)
{
	const uint8_t *key = rss->key;
	unsigned length = rss->key_length;

	if (rss->n_queues == 0)
		return 0;
	/* nothing but queues was said: what is hashed stays as it is */
	if (rss->types == 0 && length == 0 && rss->function == RTE_ETH_HASH_FUNCTION_DEFAULT)
		return rss->queues[hash % rss->n_queues];
	if (length == 0) {
		key = sim_rss_default_key;
		length = SIM_RSS_DEFAULT_KEY;
	}
	hash = sim_rss_hash(
		view, rss->function, rss->types != 0 ? rss->types : SIM_RSS_FIELDS, key, length);
	return rss->queues[hash % rss->n_queues];
}
