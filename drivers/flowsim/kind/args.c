/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/kind/args.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_ethdev.h>
#include <rte_ether.h>

#include "base/suggest.h"
#include "drivers/flowsim/kind/args_lists.h"

/* What a word belongs to: words of different sources do not go together. */
enum group {
	OF_NIC,
	OF_STREAMS,
	OF_CAPTURE,
	OF_PORT,
	OF_NONE,
	OF_KNOWN, /* streams or a capture */
};

struct word;
typedef int (*take_fn)(
	struct sim_args *args, const struct word *word, const char *text, struct error *error);

struct word {
	const char *name;
	enum group group;
	take_fn take;
	/* of numbers: the member, its size, and its bounds */
	size_t at, size;
	uint64_t low, high;
};

static int take_number(
	struct sim_args *args, const struct word *word, const char *text, struct error *error)
{
	char *at = (char *)args + word->at;
	uint64_t value;
	int ret = sim_args_number(word->name, text, word->low, word->high, &value, error);

	if (ret < 0)
		return ret;
	/* little or big endian: the member's own type */
	switch (word->size) {
	case 1:
		*(uint8_t *)at = (uint8_t)value;
		break;
	case 2:
		*(uint16_t *)at = (uint16_t)value;
		break;
	case 4:
		*(uint32_t *)at = (uint32_t)value;
		break;
	default:
		*(uint64_t *)at = value;
	}
	return 0;
}

static int take_text(
	struct sim_args *args, const struct word *word, const char *text, struct error *error)
{
	if (strlen(text) >= word->size)
		return error_set(error, -EINVAL, "%s=%.40s...: longer than %zu bytes", word->name,
			text, word->size - 1);
	snprintf((char *)args + word->at, word->size, "%s", text);
	return 0;
}

static int take_none(
	struct sim_args *args, const struct word *word, const char *text, struct error *error)
{
	(void)args;
	if (strcmp(text, "none") == 0)
		return 0;
	return error_set(error, -EINVAL,
		"%s=%s: there is source=none; flows=, capture= and port= are the others",
		word->name, text);
}

static int take_side(
	struct sim_args *args, const struct word *word, const char *text, struct error *error)
{
	static const char *const sides[] = {"forward", "reverse", "both"};
	unsigned chosen = 0;
	int ret = sim_args_choice(word->name, text, sides, RTE_DIM(sides), &chosen, error);

	args->sides = (enum stream_sides)(chosen + 1);
	return ret;
}

static int take_percent(
	struct sim_args *args, const struct word *word, const char *text, struct error *error)
{
	uint64_t percent;
	int ret = sim_args_number(word->name, text, 0, 100, &percent, error);

	/* of 256 flows */
	*(uint16_t *)((char *)args + word->at) = (uint16_t)((percent * 256 + 50) / 100);
	return ret;
}

static int take_processor(
	struct sim_args *args, const struct word *word, const char *text, struct error *error)
{
	uint64_t number = 0;
	int ret = 0;

	args->nic_thread = true;
	args->nic_core = -1;
	if (strcmp(text, "-1") == 0)
		return 0;
	ret = sim_args_number(word->name, text, 0, CPU_SETSIZE - 1, &number, error);
	args->nic_core = (int)number;
	if (ret == 0 && (long)number >= sysconf(_SC_NPROCESSORS_CONF))
		return error_set(error, -EINVAL, "%s=%s: there is no such processor, only 0 to %ld",
			word->name, text, sysconf(_SC_NPROCESSORS_CONF) - 1);
	return ret;
}

static int take_size(
	struct sim_args *args, const struct word *word, const char *text, struct error *error)
{
	const char *dash = strchr(text, '-');
	uint64_t low, high;
	char first[24];
	int ret;

	args->streams.imix = strcmp(text, "imix") == 0;
	if (args->streams.imix)
		return 0;
	snprintf(first, sizeof(first), "%.*s", dash != NULL ? (int)(dash - text) : 23, text);
	ret = sim_args_number(word->name, first, STREAM_MIN_BYTES, STREAM_MAX_BYTES, &low, error);
	high = low;
	if (ret == 0 && dash != NULL)
		ret = sim_args_number(word->name, dash + 1, low, STREAM_MAX_BYTES, &high, error);
	if (ret < 0)
		return error_set(error, ret,
			"%s=%s: \"imix\", a number from %u to %u, or two: 64-1500", word->name,
			text, STREAM_MIN_BYTES, STREAM_MAX_BYTES);
	args->streams.size_min = (uint16_t)low;
	args->streams.size_max = (uint16_t)high;
	return 0;
}

static int take_proto(
	struct sim_args *args, const struct word *word, const char *text, struct error *error)
{
	static const char *const protos[] = {
		[STREAM_UDP] = "udp",
		[STREAM_TCP] = "tcp",
		[STREAM_SCTP] = "sctp",
		[STREAM_ICMP] = "icmp",
		[STREAM_N_PROTOS] = "mix",
	};
	/* mostly TCP, as it is in most places */
	static const uint16_t mix[STREAM_N_PROTOS] = {
		[STREAM_UDP] = 80, [STREAM_TCP] = 160, [STREAM_SCTP] = 8, [STREAM_ICMP] = 8};
	unsigned chosen = 0;
	int ret = sim_args_choice(word->name, text, protos, RTE_DIM(protos), &chosen, error);

	if (ret < 0)
		return ret;
	memset(args->streams.proto_share, 0, sizeof(args->streams.proto_share));
	if (chosen == STREAM_N_PROTOS)
		memcpy(args->streams.proto_share, mix, sizeof(mix));
	else
		args->streams.proto_share[chosen] = 256;
	return 0;
}

static int take_load(
	struct sim_args *args, const struct word *word, const char *text, struct error *error)
{
	struct error inner;

	if (sequence_load_parse(&args->sequence, text, &inner) == 0)
		return 0;
	return error_set(error, -EINVAL, "%s=%s: %.400s", word->name, text, inner.text);
}

static int take_input_set(
	struct sim_args *args, const struct word *word, const char *text, struct error *error)
{
	static const char *const sets[] = {
		[SIM_INPUT_ANY] = "any",
		[SIM_INPUT_PER_TYPE] = "per_type",
		[SIM_INPUT_EXACT] = "exact",
	};
	unsigned chosen = 0;
	int ret = sim_args_choice(word->name, text, sets, RTE_DIM(sets), &chosen, error);

	args->profile.input_set = (enum sim_input_set)chosen;
	return ret;
}

static int take_mac(
	struct sim_args *args, const struct word *word, const char *text, struct error *error)
{
	struct rte_ether_addr address;

	if (rte_ether_unformat_addr(text, &address) < 0)
		return error_set(error, -EINVAL, "%s=%s is no address like 02:00:00:00:00:01",
			word->name, text);
	if (!rte_is_valid_assigned_ether_addr(&address))
		return error_set(error, -EINVAL,
			"%s=%s: a port has an address that is neither 0 nor of a group", word->name,
			text);
	memcpy(args->mac, &address, sizeof(args->mac));
	args->has_mac = true;
	return 0;
}

/* Those of several fault= one after the other. "[...]" is how a devarg can have ',' in it. */
static int take_faults(
	struct sim_args *args, const struct word *word, const char *text, struct error *error)
{
	size_t length = strlen(text), used = strlen(args->faults);

	if (length >= 2 && text[0] == '[' && text[length - 1] == ']') {
		text++;
		length -= 2;
	}
	if (used + length + 2 > sizeof(args->faults))
		return error_set(error, -EINVAL, "%s=%.40s...: faults of more than %zu bytes",
			word->name, text, sizeof(args->faults) - 2);
	snprintf(&args->faults[used], sizeof(args->faults) - used, "%s%.*s", used > 0 ? "/" : "",
		(int)length, text);
	return 0;
}

/* Found before the others, since these change it. */
static int take_profile(
	struct sim_args *args, const struct word *word, const char *text, struct error *error)
{
	const struct sim_profile *profile = sim_profile_find(text);
	const char *names[32], *near;
	unsigned n = 0;

	if (profile != NULL) {
		args->profile = *profile;
		return 0;
	}
	while (n < RTE_DIM(names) && sim_profile_name(n) != NULL) {
		names[n] = sim_profile_name(n);
		n++;
	}
	near = suggest(text, names, n);
	return error_set(error, -EINVAL, "%s=%s: there is no such profile%s%s%s", word->name, text,
		near != NULL ? "; did you mean " : "", near != NULL ? near : "",
		near != NULL ? "?" : "");
}

#define WRAP(function)                                                             \
	static int take_##function(struct sim_args *args, const struct word *word, \
		const char *text, struct error *error)                             \
	{                                                                          \
		return sim_args_##function(args, word->name, text, error);         \
	}
WRAP(actions)
WRAP(items)
WRAP(hostile)

#define MEMBER(member) offsetof(struct sim_args, member), sizeof(((struct sim_args *)NULL)->member)
#define NUMBER(member, low, high) take_number, MEMBER(member), low, high
#define SECOND UINT64_C(1000000000)

static const struct word words[] = {
	/* streams */
	{"flows", OF_STREAMS, NUMBER(streams.flows, 1, STREAM_MAX_FLOWS)},
	{"seed", OF_STREAMS, NUMBER(streams.seed, 0, UINT64_MAX)},
	{"load", OF_STREAMS, take_load, 0, 0, 0, 0},
	{"side", OF_STREAMS, take_side, 0, 0, 0, 0},
	{"size", OF_STREAMS, take_size, 0, 0, 0, 0},
	{"proto", OF_STREAMS, take_proto, 0, 0, 0, 0},
	{"ipv6", OF_STREAMS, take_percent, MEMBER(streams.ipv6_share), 0, 0},
	{"vlan", OF_STREAMS, take_percent, MEMBER(streams.vlan_share), 0, 0},
	/* the other sources */
	{"capture", OF_CAPTURE, take_text, MEMBER(capture), 0, 0},
	{"written", OF_CAPTURE, NUMBER(written, 0, UINT16_MAX)},
	{"port", OF_PORT, take_text, MEMBER(port), 0, 0},
	{"nic_core", OF_PORT, take_processor, 0, 0, 0, 0},
	{"source", OF_NONE, take_none, 0, 0, 0, 0},
	{"passes", OF_KNOWN, NUMBER(passes, 0, UINT64_MAX)},
	{"rate", OF_KNOWN, NUMBER(rate, 1, SECOND)},
	{"pace", OF_KNOWN, NUMBER(pace, 0, SECOND)},
	{"cold", OF_KNOWN, NUMBER(cold, 0, 1)},
	/* the NIC */
	{"nic", OF_NIC, take_text, MEMBER(nic), 0, 0},
	{"rules", OF_NIC, NUMBER(profile.size, 0, UINT32_MAX)},
	{"create_ns", OF_NIC, NUMBER(profile.create_ns, 0, 60 * SECOND)},
	{"destroy_ns", OF_NIC, NUMBER(profile.destroy_ns, 0, 60 * SECOND)},
	{"flush_ns", OF_NIC, NUMBER(profile.flush_ns, 0, 60 * SECOND)},
	{"query_ns", OF_NIC, NUMBER(profile.query_ns, 0, 60 * SECOND)},
	{"spin", OF_NIC, NUMBER(profile.spin, 0, 1)},
	{"rate_rules", OF_NIC, NUMBER(profile.rate, 0, UINT32_MAX)},
	{"answer_ns", OF_NIC, NUMBER(profile.answer_ns, 0, 60 * SECOND)},
	{"mark_bits", OF_NIC, NUMBER(profile.mark_bits, 0, 32)},
	{"groups", OF_NIC, NUMBER(profile.groups, 1, UINT32_MAX)},
	{"priorities", OF_NIC, NUMBER(profile.priorities, 1, UINT32_MAX)},
	{"transfer", OF_NIC, NUMBER(profile.transfer, 0, 1)},
	{"egress", OF_NIC, NUMBER(profile.egress, 0, 1)},
	{"async", OF_NIC, NUMBER(profile.async, 0, 1)},
	{"sync", OF_NIC, NUMBER(profile.sync, 0, 1)},
	{"ranges", OF_NIC, NUMBER(profile.ranges, 0, 1)},
	{"fate_needed", OF_NIC, NUMBER(profile.fate_needed, 0, 1)},
	{"keep_rules", OF_NIC, NUMBER(profile.keeps_rules, 0, 2)},
	{"input_set", OF_NIC, take_input_set, 0, 0, 0, 0},
	{"actions", OF_NIC, take_actions, 0, 0, 0, 0},
	{"items", OF_NIC, take_items, 0, 0, 0, 0},
	{"hostile", OF_NIC, take_hostile, 0, 0, 0, 0},
	{"queues", OF_NIC, NUMBER(max_queues, 1, SIM_MAX_QUEUES)},
	{"mac", OF_NIC, take_mac, 0, 0, 0, 0},
	{"link_mbps", OF_NIC, NUMBER(link_mbps, 1, UINT32_MAX - 1)},
	{"fault", OF_NIC, take_faults, 0, 0, 0, 0},
	{"counter_bits", OF_NIC, NUMBER(counter_bits, 1, 64)},
	{"ghost", OF_NIC, NUMBER(ghosts, 0, UINT32_MAX)},
};

static const struct word profile_word = {"profile", OF_NIC, take_profile, 0, 0, 0, 0};

static int unknown(const char *name, struct error *error)
{
	const char *names[RTE_DIM(words) + 1], *near;

	for (unsigned i = 0; i < RTE_DIM(words); i++)
		names[i] = words[i].name;
	names[RTE_DIM(words)] = profile_word.name;
	near = suggest(name, names, RTE_DIM(names));
	if (near != NULL)
		return error_set(error, -EINVAL,
			"%s=: there is no such argument; did you mean %s=?", name, near);
	return error_set(error, -EINVAL, "%s=: there is no such argument", name);
}

static const struct word *find(const char *name)
{
	for (unsigned i = 0; i < RTE_DIM(words); i++)
		if (strcmp(words[i].name, name) == 0)
			return &words[i];
	return strcmp(profile_word.name, name) == 0 ? &profile_word : NULL;
}

static bool goes_with(enum group group, enum sim_source_kind source)
{
	switch (group) {
	case OF_NIC:
		return true;
	case OF_STREAMS:
		return source == SIM_SOURCE_STREAMS;
	case OF_CAPTURE:
		return source == SIM_SOURCE_CAPTURE;
	case OF_PORT:
		return source == SIM_SOURCE_PORT;
	case OF_NONE:
		return source == SIM_SOURCE_NONE;
	case OF_KNOWN:
		break;
	}
	return source == SIM_SOURCE_STREAMS || source == SIM_SOURCE_CAPTURE;
}

/*
 * rte_kvargs takes any '=' for the end of a key, those in a file's name too; so the text is taken apart
 * here: at ',' unless it is within brackets, then at the first '='.
 */
#define MAX_PAIRS 64

struct pair {
	char *name, *value; /* NULL: there was no '=' */
};

struct pairs {
	unsigned n;
	struct pair pair[MAX_PAIRS];
};

static char *end_of_pair(char *at)
{
	bool in_list = false;

	for (; *at != '\0' && (in_list || *at != ','); at++)
		if (*at == '[' || *at == ']')
			in_list = *at == '[';
	return at;
}

/* Cuts the text up; false when there are too many. */
static bool split(char *text, struct pairs *pairs)
{
	char *end;

	pairs->n = 0;
	for (char *at = text; *at != '\0'; at = end) {
		end = end_of_pair(at);
		if (*end == ',')
			*end++ = '\0';
		if (*at == '\0')
			continue;
		if (pairs->n == MAX_PAIRS)
			return false;
		struct pair *pair = &pairs->pair[pairs->n++];

		pair->name = at;
		pair->value = strchr(at, '=');
		if (pair->value != NULL)
			*pair->value++ = '\0';
	}
	return true;
}

static const char *value_of(const struct pairs *pairs, const char *name, unsigned *n)
{
	const char *value = NULL;

	*n = 0;
	for (unsigned i = 0; i < pairs->n; i++)
		if (strcmp(pairs->pair[i].name, name) == 0) {
			value = pairs->pair[i].value;
			++*n;
		}
	return value;
}

/* Is each word known, with a value, and there once? */
static int check_words(const struct pairs *pairs, struct error *error)
{
	for (unsigned i = 0; i < pairs->n; i++) {
		const struct pair *pair = &pairs->pair[i];
		const struct word *word = find(pair->name);
		unsigned n;

		if (word == NULL)
			return unknown(pair->name, error);
		if (pair->value == NULL || pair->value[0] == '\0')
			return error_set(
				error, -EINVAL, "%s needs a value: %s=...", pair->name, pair->name);
		(void)value_of(pairs, pair->name, &n);
		if (n > 1 && word->take != take_faults)
			return error_set(error, -EINVAL, "%s= is given twice", pair->name);
	}
	return 0;
}

/* Which source of packets is it, and does every word go with that? */
static int choose_source(struct sim_args *args, const struct pairs *pairs, struct error *error)
{
	static const struct {
		const char *name;
		enum sim_source_kind source;
	} sources[] = {
		{"flows", SIM_SOURCE_STREAMS},
		{"capture", SIM_SOURCE_CAPTURE},
		{"port", SIM_SOURCE_PORT},
		{"source", SIM_SOURCE_NONE},
	};
	const char *chosen = NULL;

	args->source = SIM_SOURCE_STREAMS;
	for (unsigned i = 0; i < RTE_DIM(sources); i++) {
		unsigned n;

		(void)value_of(pairs, sources[i].name, &n);
		if (n > 0 && chosen != NULL)
			return error_set(error, -EINVAL,
				"%s= and %s=: a port has one source of packets", chosen,
				sources[i].name);
		if (n > 0) {
			chosen = sources[i].name;
			args->source = sources[i].source;
		}
	}
	for (unsigned i = 0; i < pairs->n; i++)
		if (!goes_with(find(pairs->pair[i].name)->group, args->source))
			return error_set(error, -EINVAL,
				"%s= says nothing of a port with %s=", pairs->pair[i].name,
				chosen != NULL ? chosen : "flows");
	return 0;
}

static int take_all(struct sim_args *args, const struct pairs *pairs, struct error *error)
{
	unsigned n;
	const char *profile = value_of(pairs, "profile", &n);
	int ret = 0;

	if (profile != NULL)
		ret = take_profile(args, &profile_word, profile, error);
	for (unsigned i = 0; ret == 0 && i < pairs->n; i++) {
		const struct word *word = find(pairs->pair[i].name);

		if (word != &profile_word)
			ret = word->take(args, word, pairs->pair[i].value, error);
	}
	return ret;
}

static int parse(struct sim_args *args, char *text, struct error *error)
{
	struct pairs pairs;
	int ret;

	if (!split(text, &pairs))
		return error_set(error, -EINVAL, "more than %u arguments", MAX_PAIRS);
	ret = check_words(&pairs, error);
	if (ret == 0)
		ret = choose_source(args, &pairs, error);
	if (ret == 0)
		ret = take_all(args, &pairs, error);
	if (ret < 0)
		return ret;
	/* both draw by it, of different things */
	args->sequence.seed = args->streams.seed;
	if (args->profile.sync || args->profile.async)
		return 0;
	return error_set(
		error, -EINVAL, "sync=0 and async=0: a NIC has calls of one kind at least");
}

int sim_args_parse(struct sim_args *args, const char *text, struct error *error)
{
	const struct sim_profile *ideal = sim_profile_find("ideal");
	char *copy;
	int ret;

	memset(args, 0, sizeof(*args));
	args->streams.flows = 1024;
	args->sequence.exponent = 1;
	args->sides = STREAM_FORWARD;
	args->rate = 10000000;
	args->max_queues = SIM_MAX_QUEUES;
	args->link_mbps = RTE_ETH_SPEED_NUM_10G;
	if (ideal != NULL)
		args->profile = *ideal;
	if (text == NULL)
		return 0;
	copy = strdup(text);
	if (copy == NULL)
		return error_set(error, -ENOMEM, "no memory for the arguments");
	ret = parse(args, copy, error);
	free(copy);
	/* what nobody but the NIC sees comes at the same pace */
	if (args->pace != 0)
		args->rate = args->pace;
	return ret;
}
