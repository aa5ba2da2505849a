/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/flow_name.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "base/text.h"
#include "cli/words.h"

#define WORD_MAX 80
/* Longer than any address with brackets, port and prefix. */
#define ADDRESS_MAX 64

static int bad_word(struct error *error, const char *word, const char *what)
{
	char printable[WORD_MAX];

	return error_set(error, -EINVAL, "%s: %s",
		*word ? text_printable(printable, sizeof(printable), word) : "\"\"", what);
}

/* Digits only, `max` at most; -1 when it is not that. */
static long read_number(const char *text, long max)
{
	size_t length = strlen(text);

	if (length == 0 || length > 5 || strspn(text, "0123456789") != length)
		return -1;
	long number = strtol(text, NULL, 10);

	return number <= max ? number : -1;
}

/* The version of the address, 0 when it is none; `out` gets its usual form. */
static unsigned read_address(const char *text, char out[INET6_ADDRSTRLEN])
{
	uint8_t bytes[16];

	if (inet_pton(AF_INET, text, bytes) == 1) {
		inet_ntop(AF_INET, bytes, out, INET6_ADDRSTRLEN);
		return 4;
	}
	if (inet_pton(AF_INET6, text, bytes) == 1) {
		inet_ntop(AF_INET6, bytes, out, INET6_ADDRSTRLEN);
		return 6;
	}
	return 0;
}

bool cli_address_valid(const char *text)
{
	char address[ADDRESS_MAX], scratch[INET6_ADDRSTRLEN];

	if (strlen(text) >= sizeof(address))
		return false;
	memcpy(address, text, strlen(text) + 1);
	char *slash = strchr(address, '/');

	if (slash)
		*slash = '\0';
	unsigned version = read_address(address, scratch);

	return version != 0 && (!slash || read_number(slash + 1, version == 4 ? 32 : 128) >= 0);
}

/*
 * Takes the word apart, in place: the address, and the port's text or NULL. A colon before a port is
 * the only one, or follows a bracket: an address in IPv6 has at least two.
 */
static char *cut_port(char **address)
{
	char *text = *address, *colon = strchr(text, ':'), *close;

	if (*text == '[') {
		close = strchr(text, ']');
		if (!close || (close[1] != '\0' && close[1] != ':'))
			return NULL;
		colon = close[1] == ':' ? close + 1 : NULL;
		*close = '\0';
		*address = text + 1;
	} else if (colon && strchr(colon + 1, ':')) {
		return NULL;
	}
	if (!colon)
		return NULL;
	*colon = '\0';
	return colon + 1;
}

static int read_end(struct cli_endpoint *end, const char *word, struct error *error)
{
	char text[ADDRESS_MAX], *address = text;

	*end = (struct cli_endpoint){.has_port = false};
	if (strlen(word) >= sizeof(text))
		return bad_word(error, word, "no address, and too long for one");
	memcpy(text, word, strlen(word) + 1);
	char *port = cut_port(&address);

	end->version = read_address(address, end->address);
	/* only what may hold colons itself stands in brackets */
	if (end->version == 0 || (*word == '[' && end->version != 6))
		return bad_word(error, word,
			"no endpoint; ADDR:PORT is needed, for IPv6 as in [2001:db8::1]:443");
	if (!port)
		return 0;
	long number = read_number(port, UINT16_MAX);

	if (number < 0)
		return bad_word(error, word, "the port is not a number from 0 to 65,535");
	end->has_port = true;
	end->port = (uint16_t)number;
	return 0;
}

int cli_proto_read(struct cli_proto *proto, const char *word, struct error *error)
{
	const char *const *words = cli_words_of("PROTO");

	if (cli_proto_parse(proto, word))
		return 0;
	const char *near = suggest(word, words, cli_words_count(words));
	char what[WORD_MAX];

	snprintf(what, sizeof(what), "no such protocol; %s%s%s",
		near ? "did you mean " : "its name or number is needed", near ? near : "",
		near ? "?" : "");
	return bad_word(error, word, what);
}

int cli_flow_parse(struct cli_flow *flow, const char *const *words, struct error *error)
{
	struct cli_proto proto;

	for (unsigned i = 0; i < 2; i++)
		if (read_end(&flow->end[i], words[i], error) < 0)
			return -EINVAL;
	if (flow->end[0].version != flow->end[1].version)
		return bad_word(error, words[1], "one end is IPv4 and the other IPv6");
	if (cli_proto_read(&proto, words[2], error) < 0)
		return -EINVAL;
	cli_proto_ask(flow->proto, &proto);
	for (unsigned i = 0; i < 2; i++) {
		if (proto.ports && !flow->end[i].has_port)
			return bad_word(error, words[i],
				flow->end[i].version == 4
					? "a port is needed, as in 10.0.0.1:80"
					: "a port is needed, as in [2001:db8::1]:443");
		if (!proto.ports && flow->end[i].port != 0)
			return bad_word(error, words[i], "this protocol has no ports");
	}
	return 0;
}
