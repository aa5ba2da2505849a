/* SPDX-License-Identifier: BSD-3-Clause */
#include "rule/block.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "base/text.h"

#define WORD_MAX 64
/* Longer than any address with brackets, port and length. */
#define ADDRESS_MAX 64

static const struct {
	const char *name;
	uint8_t number;
} protocols[] = {
	{"tcp", IPPROTO_TCP},
	{"udp", IPPROTO_UDP},
	{"sctp", IPPROTO_SCTP},
	{"icmp", IPPROTO_ICMP},
	{"icmp6", IPPROTO_ICMPV6},
};

#define N_PROTOCOLS (sizeof(protocols) / sizeof(protocols[0]))

static int refuse(struct error *error, const char *word, const char *what)
{
	char printable[WORD_MAX];

	return error_set(error, -EINVAL, "%s: %s",
		*word ? text_visible(printable, sizeof(printable), word) : "\"\"", what);
}

static int width_of(unsigned version)
{
	return version == 4 ? 32 : 128;
}

/* Zeroes the bits beyond the prefix; true when one was set. */
static bool clear_host_bits(uint8_t addr[16], unsigned length)
{
	bool was_set = false;

	for (unsigned i = length / 8; i < 16; i++) {
		unsigned kept = i == length / 8 ? 0xff00u >> length % 8 : 0;

		was_set |= (addr[i] & ~kept) != 0;
		addr[i] &= (uint8_t)kept;
	}
	return was_set;
}

static bool has_ports(int proto)
{
	return proto != IPPROTO_ICMP && proto != IPPROTO_ICMPV6;
}

static int check_flow(const struct flow_key *key)
{
	static const uint8_t zero[16];
	unsigned version = flow_key_version(key);
	int order = memcmp(key->addr[0], key->addr[1], 16);

	if (version != 4 && version != 6)
		return -EINVAL;
	if (version == 4 && (memcmp(&key->addr[0][4], zero, 12) != 0 ||
				    memcmp(&key->addr[1][4], zero, 12) != 0))
		return -EINVAL;
	if (!has_ports(key->proto) && (key->port[0] != 0 || key->port[1] != 0))
		return -EINVAL;
	if (order == 0)
		order = (int)rte_be_to_cpu_16(key->port[0]) - (int)rte_be_to_cpu_16(key->port[1]);
	return order > 0 ? -EINVAL : 0;
}

int block_match_check(const struct block_match *match)
{
	if (match->is_flow)
		return check_flow(&match->flow);
	struct block_prefix prefix = match->prefix;

	if ((prefix.version != 4 && prefix.version != 6) ||
		prefix.length > width_of(prefix.version) ||
		clear_host_bits(prefix.addr, prefix.length))
		return -EINVAL;
	if (prefix.proto < BLOCK_ANY || prefix.proto > UINT8_MAX || prefix.port < BLOCK_ANY ||
		prefix.port == 0 || prefix.port > UINT16_MAX)
		return -EINVAL;
	return prefix.port != BLOCK_ANY && !has_ports(prefix.proto) ? -EINVAL : 0;
}

int block_reason_check(const char *reason)
{
	if (!reason)
		return 0;
	size_t length = strnlen(reason, BLOCK_REASON_MAX);

	if (length == BLOCK_REASON_MAX)
		return -EINVAL;
	if (length > 0 && (reason[0] == ' ' || reason[length - 1] == ' '))
		return -EINVAL;
	for (; *reason != '\0'; reason++)
		if ((unsigned char)*reason < 0x20 || *reason == 0x7f)
			return -EINVAL;
	return 0;
}

static bool end_fits(const struct block_prefix *prefix, const struct flow_key *key, unsigned end)
{
	unsigned bytes = prefix->length / 8, bits = prefix->length % 8;

	if (prefix->port != BLOCK_ANY && prefix->port != rte_be_to_cpu_16(key->port[end]))
		return false;
	if (memcmp(prefix->addr, key->addr[end], bytes) != 0)
		return false;
	return bits == 0 || (prefix->addr[bytes] ^ key->addr[end][bytes]) >> (8 - bits) == 0;
}

bool block_match_fits(const struct block_match *match, const struct flow_key *key)
{
	const struct block_prefix *prefix = &match->prefix;

	if (match->is_flow)
		return flow_key_equal(&match->flow, key);
	return prefix->version == flow_key_version(key) &&
	       (prefix->proto == BLOCK_ANY || prefix->proto == key->proto) &&
	       (end_fits(prefix, key, 0) || end_fits(prefix, key, 1));
}

/* Digits and nothing else, at most `max`; -1 when it is not that. */
static int64_t read_block_number(const char *text, uint32_t max)
{
	size_t length = strlen(text);
	uint64_t number = 0;

	if (length == 0 || length > 10)
		return -1;
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '9')
			return -1;
		number = number * 10 + (uint64_t)(*text - '0');
	}
	return number <= max ? (int64_t)number : -1;
}

/* The version of an address, 0 when it is none. */
static uint8_t read_address(uint8_t addr[16], const char *text)
{
	memset(addr, 0, 16);
	if (inet_pton(AF_INET, text, addr) == 1)
		return 4;
	return inet_pton(AF_INET6, text, addr) == 1 ? 6 : 0;
}

int block_parse_proto(const char *text)
{
	for (unsigned i = 0; i < N_PROTOCOLS; i++)
		if (strcmp(text, protocols[i].name) == 0)
			return protocols[i].number;
	return (int)read_block_number(text, UINT8_MAX);
}

static int refuse_proto(struct error *error, const char *word)
{
	const char *names[N_PROTOCOLS], *near;
	char what[WORD_MAX];

	for (unsigned i = 0; i < N_PROTOCOLS; i++)
		names[i] = protocols[i].name;
	near = suggest(word, names, N_PROTOCOLS);
	if (!near)
		return refuse(error, word,
			"no such protocol; tcp, udp, sctp, icmp, icmp6 or a number up to 255 is "
			"needed");
	snprintf(what, sizeof(what), "no such protocol; did you mean %s?", near);
	return refuse(error, word, what);
}

static int refuse_host_bits(
	struct error *error, const char *word, const struct block_prefix *prefix)
{
	char address[INET6_ADDRSTRLEN], what[128];

	inet_ntop(
		prefix->version == 4 ? AF_INET : AF_INET6, prefix->addr, address, sizeof(address));
	snprintf(what, sizeof(what), "the address has bits set beyond the prefix; that is %s/%u",
		address, prefix->length);
	return refuse(error, word, what);
}

static int read_block_prefix(struct block_prefix *prefix, const char *text, struct error *error)
{
	char address[ADDRESS_MAX];
	const char *slash = strchr(text, '/');
	size_t n = slash ? (size_t)(slash - text) : strlen(text);
	int64_t length;

	*prefix = (struct block_prefix){.port = BLOCK_ANY, .proto = BLOCK_ANY};
	if (n >= sizeof(address))
		return refuse(error, text, "no IP address or prefix, and too long for one");
	memcpy(address, text, n);
	address[n] = '\0';
	prefix->version = read_address(prefix->addr, address);
	if (prefix->version == 0)
		return refuse(error, text, "no IP address or prefix");
	length = width_of(prefix->version);
	if (slash)
		length = read_block_number(slash + 1, (uint32_t)length);
	if (length < 0)
		return refuse(error, text,
			prefix->version == 4 ? "a prefix of IPv4 has a length from 0 to 32"
					     : "a prefix of IPv6 has a length from 0 to 128");
	prefix->length = (uint8_t)length;
	if (clear_host_bits(prefix->addr, prefix->length))
		return refuse_host_bits(error, text, prefix);
	return 0;
}

int block_parse_prefix(
	struct block_match *match, const char *text, int port, int proto, struct error *error)
{
	*match = (struct block_match){.is_flow = false};
	if (read_block_prefix(&match->prefix, text, error) < 0)
		return -EINVAL;
	if (port != BLOCK_ANY && (port < 1 || port > UINT16_MAX))
		return error_set(
			error, -EINVAL, "port %d: a port is a number from 1 to 65,535", port);
	if (proto != BLOCK_ANY && (proto < 0 || proto > UINT8_MAX))
		return error_set(
			error, -EINVAL, "proto %d: a protocol is a number from 0 to 255", proto);
	match->prefix.port = port;
	match->prefix.proto = (int16_t)proto;
	if (port != BLOCK_ANY && !has_ports(proto))
		return error_set(error, -EINVAL, "port %d: this protocol has no ports", port);
	return 0;
}

/* A line that is being read. */
struct reader {
	char *line, *at;
	const char *word; /* the last one that was read */
	struct error *error;
};

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Cuts off the next word; at the end of the line it is empty. */
static const char *next_word(struct reader *reader)
{
	while (is_space(*reader->at))
		reader->at++;
	reader->word = reader->at;
	while (*reader->at != '\0' && !is_space(*reader->at))
		reader->at++;
	if (*reader->at != '\0')
		*reader->at++ = '\0';
	return reader->word;
}

static int refuse_word(const struct reader *reader, const char *what)
{
	if (*reader->word == '\0')
		return error_set(reader->error, -EINVAL, "the line ends early: %s", what);
	return refuse(reader->error, reader->word, what);
}

static int read_value(struct reader *reader, uint32_t min, uint32_t max, const char *what)
{
	int64_t number = read_block_number(next_word(reader), max);

	return number < (int64_t)min ? refuse_word(reader, what) : (int)number;
}

static int read_proto(struct reader *reader)
{
	int proto = block_parse_proto(next_word(reader));

	if (proto >= 0)
		return proto;
	return *reader->word == '\0' ? refuse_word(reader, "a protocol is needed")
				     : refuse_proto(reader->error, reader->word);
}

/* The rest of the line, without the white space around it. */
static int read_reason(struct reader *reader, struct block *block)
{
	while (is_space(*reader->at))
		reader->at++;
	size_t length = strlen(reader->at);

	while (length > 0 && is_space(reader->at[length - 1]))
		length--;
	reader->at[length] = '\0';
	reader->word = reader->at;
	reader->at += length;
	block->reason = reader->word;
	if (length == 0)
		return refuse_word(reader, "a text is needed after \"reason\"");
	if (length >= BLOCK_REASON_MAX)
		return refuse_word(reader, "a reason has at most 117 bytes");
	return block_reason_check(block->reason) < 0
		       ? refuse_word(reader, "a reason has no control characters")
		       : 0;
}

static int refuse_key(const struct reader *reader, bool is_flow)
{
	static const char *const keys[] = {"for", "reason", "port", "proto"};
	static const char *const flow_keys[] = {"for", "reason", "wire", "zone"};
	const char *near = suggest(reader->word, is_flow ? flow_keys : keys, 4);
	char what[WORD_MAX];

	if (!near)
		return refuse_word(reader, is_flow ? "wire, zone, for or reason is needed here"
						   : "port, proto, for or reason is needed here");
	snprintf(what, sizeof(what), "no such word; did you mean %s?", near);
	return refuse_word(reader, what);
}

/* Reads a field that flows and prefixes share. Returns 1 when the word is neither "for" nor "reason". */
static int read_common(struct reader *reader, struct block *block)
{
	int number;

	if (strcmp(reader->word, "reason") == 0)
		return read_reason(reader, block);
	if (strcmp(reader->word, "for") != 0)
		return 1;
	if (block->for_s != 0)
		return refuse_word(reader, "given twice");
	number = read_value(reader, 1, BLOCK_FOR_MAX_S,
		"a number of seconds from 1 to 1,000,000,000 is needed");
	if (number < 0)
		return number;
	block->for_s = (uint32_t)number;
	return 0;
}

static int read_prefix_line(struct reader *reader, struct block *block)
{
	struct block_prefix *prefix = &block->match.prefix;
	int ret = read_block_prefix(prefix, reader->word, reader->error);

	while (ret >= 0 && *next_word(reader) != '\0') {
		if (strcmp(reader->word, "port") == 0) {
			if (prefix->port != BLOCK_ANY)
				return refuse_word(reader, "given twice");
			ret = read_value(
				reader, 1, UINT16_MAX, "a port is a number from 1 to 65,535");
			prefix->port = ret;
		} else if (strcmp(reader->word, "proto") == 0) {
			if (prefix->proto != BLOCK_ANY)
				return refuse_word(reader, "given twice");
			ret = read_proto(reader);
			prefix->proto = (int16_t)ret;
		} else {
			ret = read_common(reader, block);
			if (ret == 1)
				return refuse_key(reader, false);
		}
		if (ret >= 0 && prefix->port != BLOCK_ANY && !has_ports(prefix->proto))
			return refuse_word(reader, "this protocol has no ports");
	}
	return ret < 0 ? ret : 0;
}

/* ADDR, ADDR:PORT or [ADDR]:PORT. Returns the port, or 0. */
static int read_end(struct reader *reader, uint8_t addr[16], uint8_t *version)
{
	static const char needed[] =
		"no endpoint; ADDR or ADDR:PORT is needed, for IPv6 as in [2001:db8::1]:443";
	char text[ADDRESS_MAX], *address = text, *colon, *close;
	const char *word = next_word(reader);
	int64_t port = 0;

	if (*word == '\0' || strlen(word) >= sizeof(text))
		return refuse_word(reader, needed);
	memcpy(text, word, strlen(word) + 1);
	colon = strchr(text, ':');
	if (*text == '[') {
		close = strchr(text, ']');
		if (!close || (close[1] != '\0' && close[1] != ':'))
			return refuse_word(reader, needed);
		colon = close[1] == ':' ? close + 1 : NULL;
		*close = '\0';
		address++;
	} else if (colon && strchr(colon + 1, ':')) {
		/* an address of IPv6 has at least two colons of its own */
		colon = NULL;
	}
	if (colon) {
		*colon = '\0';
		port = read_block_number(colon + 1, UINT16_MAX);
	}
	*version = read_address(addr, address);
	if (*version == 0 || (*text == '[' && *version != 6))
		return refuse_word(reader, needed);
	return port < 0 ? refuse_word(reader, "the port is not a number from 0 to 65,535")
			: (int)port;
}

static int read_ends(struct reader *reader, struct flow_key *key)
{
	uint8_t addr[2][16], version[2] = {0};
	int port[2];

	for (unsigned end = 0; end < 2; end++) {
		port[end] = read_end(reader, addr[end], &version[end]);
		if (port[end] < 0)
			return port[end];
	}
	if (version[0] != version[1])
		return refuse_word(reader, "one end is IPv4 and the other IPv6");
	int proto = read_proto(reader);

	if (proto < 0)
		return proto;
	if (!has_ports(proto) && (port[0] != 0 || port[1] != 0))
		return refuse_word(reader, "this protocol has no ports");
	*key = (struct flow_key){
		.proto = (uint8_t)proto, .version_wire = FLOW_KEY_VERSION_WIRE(version[0], 0)};
	flow_key_make(key, addr[0], addr[1], rte_cpu_to_be_16((uint16_t)port[0]),
		rte_cpu_to_be_16((uint16_t)port[1]));
	return 0;
}

static int read_flow_line(struct reader *reader, struct block *block)
{
	struct flow_key *key = &block->match.flow;
	bool wire = false, zone = false;
	int ret;

	block->match.is_flow = true;
	ret = read_ends(reader, key);
	while (ret >= 0 && *next_word(reader) != '\0') {
		if (strcmp(reader->word, "wire") == 0) {
			if (wire)
				return refuse_word(reader, "given twice");
			wire = true;
			ret = read_value(
				reader, 0, FLOW_MAX_WIRES - 1, "a wire is a number from 0 to 15");
			key->version_wire |= ret < 0 ? 0 : (uint8_t)ret;
		} else if (strcmp(reader->word, "zone") == 0) {
			if (zone)
				return refuse_word(reader, "given twice");
			zone = true;
			ret = read_value(
				reader, 0, UINT16_MAX, "a zone is a number from 0 to 65,535");
			key->zone = (uint16_t)ret;
		} else {
			ret = read_common(reader, block);
			if (ret == 1)
				return refuse_key(reader, true);
		}
	}
	return ret < 0 ? ret : 0;
}

int block_parse_line(struct block *block, char *line, unsigned *column, struct error *error)
{
	struct reader reader = {.line = line, .at = line, .error = error};
	int ret;

	*block = (struct block){.for_s = 0};
	if (strcmp(next_word(&reader), "flow") == 0)
		ret = read_flow_line(&reader, block);
	else if (*reader.word == '\0')
		ret = refuse_word(&reader, "an address, a prefix or \"flow\" is needed");
	else
		ret = read_prefix_line(&reader, block);
	*column = (unsigned)(reader.word - reader.line) + 1;
	return ret;
}

static int write_proto(char *buffer, size_t size, unsigned proto)
{
	for (unsigned i = 0; i < N_PROTOCOLS; i++)
		if (protocols[i].number == proto)
			return snprintf(buffer, size, "%s", protocols[i].name);
	return snprintf(buffer, size, "%u", proto);
}

static int write_flow(char *buffer, size_t size, const struct flow_key *key)
{
	char address[INET6_ADDRSTRLEN];
	bool ipv6 = flow_key_version(key) == 6;
	int n = snprintf(buffer, size, "flow");

	for (unsigned end = 0; end < 2; end++) {
		unsigned port = rte_be_to_cpu_16(key->port[end]);

		inet_ntop(ipv6 ? AF_INET6 : AF_INET, key->addr[end], address, sizeof(address));
		n += snprintf(buffer + n, size - (size_t)n, ipv6 ? " [%s]" : " %s", address);
		if (port != 0)
			n += snprintf(buffer + n, size - (size_t)n, ":%u", port);
	}
	n += snprintf(buffer + n, size - (size_t)n, " ");
	n += write_proto(buffer + n, size - (size_t)n, key->proto);
	if (flow_key_wire(key) != 0)
		n += snprintf(buffer + n, size - (size_t)n, " wire %u", flow_key_wire(key));
	if (key->zone != 0)
		n += snprintf(buffer + n, size - (size_t)n, " zone %u", key->zone);
	return n;
}

static int write_prefix(char *buffer, size_t size, const struct block_prefix *prefix)
{
	int n;

	inet_ntop(prefix->version == 4 ? AF_INET : AF_INET6, prefix->addr, buffer, (socklen_t)size);
	n = (int)strlen(buffer);
	if (prefix->length < width_of(prefix->version))
		n += snprintf(buffer + n, size - (size_t)n, "/%u", prefix->length);
	if (prefix->port != BLOCK_ANY)
		n += snprintf(buffer + n, size - (size_t)n, " port %d", prefix->port);
	if (prefix->proto != BLOCK_ANY) {
		n += snprintf(buffer + n, size - (size_t)n, " proto ");
		n += write_proto(buffer + n, size - (size_t)n, (unsigned)prefix->proto);
	}
	return n;
}

size_t block_format(const struct block *block, char buffer[BLOCK_LINE_MAX])
{
	const struct block_match *match = &block->match;
	int n = match->is_flow ? write_flow(buffer, BLOCK_LINE_MAX, &match->flow)
			       : write_prefix(buffer, BLOCK_LINE_MAX, &match->prefix);

	if (block->for_s != 0)
		n += snprintf(buffer + n, BLOCK_LINE_MAX - (size_t)n, " for %u", block->for_s);
	if (block->reason && *block->reason != '\0')
		n += snprintf(buffer + n, BLOCK_LINE_MAX - (size_t)n, " reason %s", block->reason);
	return (size_t)n;
}
