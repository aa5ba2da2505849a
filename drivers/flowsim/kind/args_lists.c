/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of arguments: numbers, choices, lists of words; those of the profile. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "base/suggest.h"
#include "drivers/flowsim/kind/args_lists.h"

int sim_args_number(const char *word, const char *text, uint64_t low, uint64_t high,
	uint64_t *value, struct error *error)
{
	char *end;

	*value = 0;
	/* strtoull() takes signs and blanks */
	if (text[0] >= '0' && text[0] <= '9') {
		errno = 0;
		*value = strtoull(text, &end, 10);
		if (*end == '\0' && errno == 0 && *value >= low && *value <= high)
			return 0;
	}
	if (high == 1)
		return error_set(error, -EINVAL, "%s=%s: 0 or 1", word, text);
	if (high == UINT64_MAX)
		return error_set(error, -EINVAL, "%s=%s: a number from %" PRIu64, word, text, low);
	return error_set(error, -EINVAL, "%s=%s: a number from %" PRIu64 " to %" PRIu64, word, text,
		low, high);
}

/* All of them in one line: there are few. */
static int not_one_of(const char *word, const char *text, const char *const words[], unsigned n,
	struct error *error)
{
	const char *near = suggest(text, words, n);
	char all[256] = "";
	size_t used = 0;

	if (near != NULL)
		return error_set(error, -EINVAL, "%s=%s: there is no such word; did you mean %s?",
			word, text, near);
	for (unsigned i = 0; i < n && used < sizeof(all); i++)
		used += (size_t)snprintf(&all[used], sizeof(all) - used, "%s%s",
			i == 0	    ? ""
			: i + 1 < n ? ", "
				    : " or ",
			words[i]);
	return error_set(error, -EINVAL, "%s=%s: it can be %s", word, text, all);
}

int sim_args_choice(const char *word, const char *text, const char *const words[], unsigned n,
	unsigned *chosen, struct error *error)
{
	for (unsigned i = 0; i < n; i++)
		if (strcmp(text, words[i]) == 0) {
			*chosen = i;
			return 0;
		}
	return not_one_of(word, text, words, n, error);
}

static int find_bit(const char *word, const char *text, size_t length,
	const struct sim_args_bit bits_of[], unsigned n, int *bit, struct error *error)
{
	const char *names[64], *near;
	char name[40];

	for (unsigned i = 0; i < n; i++) {
		names[i] = bits_of[i].name;
		if (strlen(names[i]) == length && memcmp(names[i], text, length) == 0) {
			*bit = bits_of[i].bit;
			return 0;
		}
	}
	snprintf(name, sizeof(name), "%.*s", (int)RTE_MIN(length, sizeof(name) - 1), text);
	near = suggest(name, names, n);
	return error_set(error, -EINVAL, "%s=%s: there is no such word%s%s%s", word, name,
		near != NULL ? "; did you mean " : "", near != NULL ? near : "",
		near != NULL ? "?" : "");
}

int sim_args_list(const char *word, const char *text, const struct sim_args_bit bits_of[],
	unsigned n, uint64_t *bits, struct error *error)
{
	bool changes = text[0] == '+' || text[0] == '-';
	uint64_t sum = changes ? *bits : 0;
	bool more = true;
	int bit, ret;

	for (const char *at = text; more;) {
		bool away = *at == '-';

		if (*at == '+' || *at == '-')
			at++;
		size_t length = strcspn(at, "+-");

		ret = find_bit(word, at, length, bits_of, n, &bit, error);
		if (ret < 0)
			return ret;
		if (away)
			sum &= ~(UINT64_C(1) << bit);
		else
			sum |= UINT64_C(1) << bit;
		at += length;
		more = *at != '\0';
	}
	*bits = sum;
	return 0;
}

/* As testpmd calls them. */
#define ACTION(name, type) {name, RTE_FLOW_ACTION_TYPE_##type}
static const struct sim_args_bit actions[] = {
	ACTION("mark", MARK),
	ACTION("flag", FLAG),
	ACTION("queue", QUEUE),
	ACTION("rss", RSS),
	ACTION("drop", DROP),
	ACTION("passthru", PASSTHRU),
	ACTION("jump", JUMP),
	ACTION("count", COUNT),
	ACTION("age", AGE),
	ACTION("port_id", PORT_ID),
	ACTION("represented_port", REPRESENTED_PORT),
	ACTION("port_representor", PORT_REPRESENTOR),
	ACTION("of_pop_vlan", OF_POP_VLAN),
	ACTION("of_push_vlan", OF_PUSH_VLAN),
	ACTION("of_set_vlan_vid", OF_SET_VLAN_VID),
	ACTION("of_set_vlan_pcp", OF_SET_VLAN_PCP),
	ACTION("set_mac_src", SET_MAC_SRC),
	ACTION("set_mac_dst", SET_MAC_DST),
	ACTION("set_ipv4_src", SET_IPV4_SRC),
	ACTION("set_ipv4_dst", SET_IPV4_DST),
	ACTION("set_ipv6_src", SET_IPV6_SRC),
	ACTION("set_ipv6_dst", SET_IPV6_DST),
	ACTION("set_tp_src", SET_TP_SRC),
	ACTION("set_tp_dst", SET_TP_DST),
	ACTION("dec_ttl", DEC_TTL),
	ACTION("meter", METER),
	ACTION("sample", SAMPLE),
};

#define ITEM(name, type) {name, RTE_FLOW_ITEM_TYPE_##type}
static const struct sim_args_bit items[] = {
	ITEM("any", ANY),
	ITEM("port_id", PORT_ID),
	ITEM("eth", ETH),
	ITEM("vlan", VLAN),
	ITEM("ipv4", IPV4),
	ITEM("ipv6", IPV6),
	ITEM("ipv6_frag_ext", IPV6_FRAG_EXT),
	ITEM("icmp", ICMP),
	ITEM("icmp6", ICMP6),
	ITEM("udp", UDP),
	ITEM("tcp", TCP),
	ITEM("sctp", SCTP),
	ITEM("vxlan", VXLAN),
	ITEM("gre", GRE),
	ITEM("gre_key", GRE_KEY),
	ITEM("geneve", GENEVE),
	ITEM("gtp", GTP),
	ITEM("gtpu", GTPU),
	ITEM("port_representor", PORT_REPRESENTOR),
	ITEM("represented_port", REPRESENTED_PORT),
};

static const struct sim_args_bit quirks[] = {
	{"unfilled", 0},
	{"no_validate", 1},
	{"validate_yes", 2},
	{"full_errno", 3},
	{"blame", 4},
	{"packet_type", 5},
};
_Static_assert(RTE_DIM(quirks) == SIM_N_QUIRKS, "each has a word");

/* Their bits are the types themselves: see sim_actions.named. */
int sim_args_actions(struct sim_args *args, const char *word, const char *text, struct error *error)
{
	return sim_args_list(word, text, actions, RTE_DIM(actions), &args->profile.actions, error);
}

int sim_args_items(struct sim_args *args, const char *word, const char *text, struct error *error)
{
	return sim_args_list(word, text, items, RTE_DIM(items), &args->profile.items, error);
}

int sim_args_hostile(struct sim_args *args, const char *word, const char *text, struct error *error)
{
	uint64_t bits = args->profile.quirks;
	int ret;

	if (strcmp(text, "1") == 0)
		return 0;
	if (strcmp(text, "0") == 0) {
		args->profile.quirks = 0;
		return 0;
	}
	ret = sim_args_list(word, text, quirks, RTE_DIM(quirks), &bits, error);
	args->profile.quirks = (uint32_t)bits;
	/* a profile that says "full" as it should has no other number: igb's then */
	if (args->profile.full_errno == 0)
		args->profile.full_errno = ENOSYS;
	return ret;
}
