/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/rule_limit.h"

#include <arpa/inet.h>
#include <stdio.h>

/* "10.0.0.7", or "2001:db8::/64" where a prefix makes the source. */
static void print_source(const struct rules_limited *limited, char *text, size_t size)
{
	const unsigned whole = limited->version == 6 ? 128 : 32;
	char address[INET6_ADDRSTRLEN] = "";
	uint32_t words[4];

	for (unsigned i = 0; i < 4; i++)
		words[i] = htonl(limited->addr[i]);
	inet_ntop(limited->version == 6 ? AF_INET6 : AF_INET, words, address, sizeof(address));
	if (limited->prefix == whole)
		snprintf(text, size, "%s", address);
	else
		snprintf(text, size, "%s/%u", address, limited->prefix);
}

json_t *rule_limit_object(const struct rules_limited *limited)
{
	char source[INET6_ADDRSTRLEN + 8];
	json_t *object = json_object();

	print_source(limited, source, sizeof(source));
	json_object_set_new(object, "of", json_string(limited->live ? "live_flows" : "new_flows"));
	json_object_set_new(object, "source", json_string(source));
	if (limited->live)
		json_object_set_new(object, "live_flows", json_integer(limited->flows));
	json_object_set_new(object, "limit", json_integer(limited->limit));
	json_object_set_new(object, "above", json_boolean(limited->above));
	return object;
}
