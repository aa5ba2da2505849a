/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Bytes as what a client of the HTTP server sends, and as the address that it is to listen at.
 *
 * - a Host that is taken has no byte but those of addresses, "localhost" and a port;
 * - only an Accept that names OpenMetrics asks for it;
 * - an address that is taken is told as a text, which says the same when it is read.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "control/http_address.h"

#define LONGEST_INPUT 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_address(const char *text)
{
	char told[HTTP_ADDRESS_TEXT], again[HTTP_ADDRESS_TEXT];
	struct http_address address, same;
	struct error error;

	if (http_address_parse(&address, text, &error) < 0) {
		check(error.text[0] != '\0');
		return;
	}
	http_address_text(&address, told);
	const char *bare = address.path[0] == '\0' ? told + strlen("http://") : told;

	check(http_address_parse(&same, bare, &error) == 0);
	check(strcmp(http_address_text(&same, again), told) == 0);
	check(http_address_is_local(&same) == http_address_is_local(&address));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > LONGEST_INPUT)
		return 0;
	/* in memory of its own length, so that a look behind the end is found */
	char *text = malloc(size + 1);

	check(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	if (http_host_is_allowed(text))
		check(text[strspn(text, "0123456789abcdefABCDEF.:[]localhstLOCALHST")] == '\0');
	if (http_wants_openmetrics(text))
		check(strcasestr(text, "application/openmetrics-text") != NULL);
	check_address(text);
	free(text);
	return 0;
}
