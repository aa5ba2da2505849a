/* SPDX-License-Identifier: BSD-3-Clause */
/* One line of a file of routes. */
#include <errno.h>
#include <string.h>

#include "route/table_file.h"

static const char *const types[] = {
	[ROUTE_UNICAST] = "unicast",
	[ROUTE_LOCAL] = "local",
	[ROUTE_BROADCAST] = "broadcast",
	[ROUTE_ANYCAST] = "anycast",
	[ROUTE_MULTICAST] = "multicast",
	[ROUTE_BLACKHOLE] = "blackhole",
	[ROUTE_UNREACHABLE] = "unreachable",
	[ROUTE_PROHIBIT] = "prohibit",
	[ROUTE_THROW] = "throw",
};

/* Words of `ip route` that a value follows, and those that stand alone. */
static const char *const valued[] = {"proto", "scope", "src", "metric", "table", "pref", "mtu",
	"advmss", "error", "expires", "realm", "realms", "tos", "window", "rtt", "rttvar",
	"hoplimit", "initcwnd", "initrwnd", "weight", "nhid", "preference"};
static const char *const alone[] = {
	"onlink", "linkdown", "dead", "pervasive", "offload", "rt_offload", "trap", "rt_trap"};

/* The words of a line, one after the other. */
struct words {
	char *line, *at;
	char *word; /* the last one, NULL behind the end */
	unsigned *column;
};

static bool next_word(struct words *words)
{
	char *at = words->at;

	while (*at == ' ' || *at == '\t' || *at == '\r')
		at++;
	*words->column = (unsigned)(at - words->line) + 1;
	words->word = *at == '\0' ? NULL : at;
	while (*at != '\0' && *at != ' ' && *at != '\t' && *at != '\r')
		at++;
	if (*at != '\0')
		*at++ = '\0';
	words->at = at;
	return words->word != NULL;
}

static bool is_among(const char *word, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(word, list[i]) == 0)
			return true;
	return false;
}

/* A word that says the type; words of routes begin otherwise. */
static bool is_type(const char *word, enum route_type *type)
{
	if (*word < 'a' || *word > 'z')
		return false;
	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (strcmp(word, types[i]) != 0)
			continue;
		*type = (enum route_type)i;
		return true;
	}
	return false;
}

static int parse_number(struct route_line *route, const char *word, struct error *error)
{
	uint64_t number = 0;

	for (; *word != '\0'; word++) {
		if (*word < '0' || *word > '9')
			return error_set(error, -EINVAL, "not the number of a next hop");
		number = number * 10 + (unsigned)(*word - '0');
		if (number > FIB_MAX_NEXT_HOP)
			return error_set(error, -EINVAL, "next hops have numbers up to %u",
				FIB_MAX_NEXT_HOP);
	}
	route->has_number = true;
	route->number = (uint32_t)number;
	return 0;
}

static int parse_gateway(struct route_line *route, struct words *words, struct error *error)
{
	if (next_word(words) &&
		(strcmp(words->word, "inet") == 0 || strcmp(words->word, "inet6") == 0))
		next_word(words);
	if (!words->word)
		return error_set(error, -EINVAL, "an address must follow 'via'");
	if (strchr(words->word, '/'))
		return error_set(error, -EINVAL, "a gateway is an address, not a prefix");
	return route_prefix_parse(&route->gateway, words->word, error);
}

static int parse_device(struct route_line *route, struct words *words, struct error *error)
{
	if (!next_word(words))
		return error_set(error, -EINVAL, "an interface must follow 'dev'");
	size_t length = strlen(words->word);

	if (length >= sizeof(route->device))
		return error_set(error, -EINVAL, "the name of an interface has at most %zu bytes",
			sizeof(route->device) - 1);
	memcpy(route->device, words->word, length + 1);
	return 0;
}

/* The words behind the prefix, the first of which has been read. */
static int parse_words(struct route_line *route, struct words *words, struct error *error)
{
	do {
		const char *word = words->word;
		int ret = 0;

		if (strcmp(word, "via") == 0)
			ret = parse_gateway(route, words, error);
		else if (strcmp(word, "dev") == 0)
			ret = parse_device(route, words, error);
		else if (strcmp(word, "nexthop") == 0)
			ret = error_set(error, -EINVAL,
				"routes with several next hops cannot be read from a file");
		else if (is_among(word, valued, sizeof(valued) / sizeof(valued[0])))
			ret = next_word(words)
				      ? 0
				      : error_set(error, -EINVAL, "a value must follow '%s'", word);
		else if (!is_among(word, alone, sizeof(alone) / sizeof(alone[0])))
			ret = error_set(error, -EINVAL, "not a word of a route");
		if (ret < 0)
			return ret;
	} while (next_word(words));
	return 0;
}

int route_parse_line(struct route_line *route, char *line, unsigned *column, struct error *error)
{
	struct words words = {.line = line, .at = line, .column = column};
	bool is_default, is_typed;
	int ret;

	memset(route, 0, sizeof(*route));
	is_typed = next_word(&words) && is_type(words.word, &route->type);
	if (is_typed)
		next_word(&words);
	if (!words.word)
		return error_set(error, -EINVAL, "a prefix is missing");
	is_default = strcmp(words.word, "default") == 0;
	if (!is_default) {
		ret = route_prefix_parse(&route->prefix, words.word, error);
		if (ret < 0)
			return ret;
	}
	if (!next_word(&words))
		return is_typed && route->type >= ROUTE_BLACKHOLE
			       ? 0
			       : error_set(error, -EINVAL, "a next hop is missing");
	if (*words.word >= '0' && *words.word <= '9') {
		ret = parse_number(route, words.word, error);
		if (ret == 0 && next_word(&words))
			ret = error_set(error, -EINVAL, "nothing may follow the number");
	} else {
		ret = parse_words(route, &words, error);
	}
	if (ret == 0 && is_default)
		route->prefix.version = route->gateway.version;
	return ret;
}
