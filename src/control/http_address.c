/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/http_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define BACKLOG 128
#define WANTED                                                                  \
	"ADDRESS:PORT is needed, as in 127.0.0.1:9180 or [::1]:9180, or a path" \
	" with a slash for a UNIX socket"

/* Digits up to the end: 0 to 65535. */
static bool read_port(const char *text, uint16_t *port)
{
	unsigned number = 0, n = 0;

	for (; n < 5 && text[n] >= '0' && text[n] <= '9'; n++)
		number = number * 10 + (unsigned)(text[n] - '0');
	*port = (uint16_t)number;
	return n > 0 && text[n] == '\0' && number <= UINT16_MAX;
}

/* The part of "[ADDRESS]:PORT" or "ADDRESS:PORT" before its last colon, without brackets; `port` is behind it. */
static bool split_address(const char *text, char host[INET6_ADDRSTRLEN], const char **port)
{
	const bool brackets = *text == '[';
	const char *begin = text + brackets;
	const char *end = brackets ? strchr(begin, ']') : strchr(begin, ':');

	if (!end || end == begin || end - begin >= INET6_ADDRSTRLEN)
		return false;
	if (brackets && end[1] != ':')
		return false;
	memcpy(host, begin, (size_t)(end - begin));
	host[end - begin] = '\0';
	*port = end + 1 + brackets;
	return true;
}

static int parse_tcp(struct http_address *address, const char *text, struct error *error)
{
	char host[INET6_ADDRSTRLEN] = "127.0.0.1";
	const char *port_text = text;
	uint16_t port;

	if (strchr(text, ':') && !split_address(text, host, &port_text))
		return error_set(error, -EINVAL, WANTED);
	if (!read_port(port_text, &port))
		return error_set(error, -EINVAL, WANTED);
	if (*text != '[' && inet_pton(AF_INET, host, &address->tcp.v4.sin_addr) == 1) {
		address->tcp.v4.sin_family = AF_INET;
		address->tcp.v4.sin_port = htons(port);
		address->length = sizeof(address->tcp.v4);
		return 0;
	}
	if (*text == '[' && inet_pton(AF_INET6, host, &address->tcp.v6.sin6_addr) == 1) {
		address->tcp.v6.sin6_family = AF_INET6;
		address->tcp.v6.sin6_port = htons(port);
		address->length = sizeof(address->tcp.v6);
		return 0;
	}
	return error_set(error, -EINVAL, WANTED);
}

int http_address_parse(struct http_address *address, const char *text, struct error *error)
{
	memset(address, 0, sizeof(*address));
	if (!strchr(text, '/'))
		return parse_tcp(address, text, error);
	if (strlen(text) >= sizeof(address->path))
		return error_set(error, -EINVAL, "the path of a socket has at most %zu bytes",
			sizeof(address->path) - 1);
	snprintf(address->path, sizeof(address->path), "%s", text);
	return 0;
}

bool http_address_is_local(const struct http_address *address)
{
	if (address->path[0] != '\0')
		return true;
	if (address->tcp.any.sa_family == AF_INET)
		return ntohl(address->tcp.v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&address->tcp.v6.sin6_addr);
}

const char *http_address_text(const struct http_address *address, char text[HTTP_ADDRESS_TEXT])
{
	char host[INET6_ADDRSTRLEN] = "";

	if (address->path[0] != '\0') {
		snprintf(text, HTTP_ADDRESS_TEXT, "%s", address->path);
	} else if (address->tcp.any.sa_family == AF_INET) {
		inet_ntop(AF_INET, &address->tcp.v4.sin_addr, host, sizeof(host));
		snprintf(text, HTTP_ADDRESS_TEXT, "http://%s:%u", host,
			ntohs(address->tcp.v4.sin_port));
	} else {
		inet_ntop(AF_INET6, &address->tcp.v6.sin6_addr, host, sizeof(host));
		snprintf(text, HTTP_ADDRESS_TEXT, "http://[%s]:%u", host,
			ntohs(address->tcp.v6.sin6_port));
	}
	return text;
}

/* `fd` is bound and listens, and `address` has the port that it got; or a negative errno. */
static int bind_tcp(struct http_address *address, int fd)
{
	const int yes = 1;

	/* an engine that is started again must not wait for connections of the last one to be forgotten */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0)
		return -errno;
	/* an address of IPv6 is no address of IPv4, whatever the machine's default is */
	if (address->tcp.any.sa_family == AF_INET6 &&
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes)) < 0)
		return -errno;
	if (bind(fd, &address->tcp.any, address->length) < 0 || listen(fd, BACKLOG) < 0 ||
		getsockname(fd, &address->tcp.any, &address->length) < 0)
		return -errno;
	return 0;
}

int http_address_listen(struct http_address *address, struct error *error)
{
	char text[HTTP_ADDRESS_TEXT];
	int fd = socket(address->tcp.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int ret = fd < 0 ? -errno : bind_tcp(address, fd);

	if (ret == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return error_set(
		error, ret, "metrics: %s: %s", http_address_text(address, text), strerror(-ret));
}

bool http_host_is_allowed(const char *host)
{
	static const char name[] = "localhost";
	char literal[INET6_ADDRSTRLEN];
	struct in6_addr v6;
	struct in_addr v4;
	const char *end;
	uint16_t port;

	if (*host == '[') {
		end = strchr(host, ']');
		if (!end || end - host - 1 >= INET6_ADDRSTRLEN)
			return false;
		memcpy(literal, host + 1, (size_t)(end - host - 1));
		literal[end - host - 1] = '\0';
		end++;
		if (inet_pton(AF_INET6, literal, &v6) != 1)
			return false;
	} else {
		size_t length = strcspn(host, ":");

		if (length >= sizeof(literal))
			return false;
		memcpy(literal, host, length);
		literal[length] = '\0';
		end = host + length;
		if (strcasecmp(literal, name) != 0 && inet_pton(AF_INET, literal, &v4) != 1)
			return false;
	}
	return *end == '\0' || (*end == ':' && read_port(end + 1, &port));
}

/* The value of a parameter of one range of Accept, ";q=0.5", up to its end; NULL where it has none. */
static const char *find_parameter(const char *range, size_t length, const char *name)
{
	const size_t n = strlen(name);
	const char *end = range + length;

	for (const char *at = memchr(range, ';', length); at;
		at = memchr(at, ';', (size_t)(end - at))) {
		at++;
		while (at < end && (*at == ' ' || *at == '\t'))
			at++;
		if ((size_t)(end - at) > n && strncasecmp(at, name, n) == 0 && at[n] == '=')
			return at + n + 1;
	}
	return NULL;
}

/* How much a range is wanted, in thousandths. "q=0.75" has at most three decimals. */
static unsigned weight_of(const char *range, size_t length)
{
	const char *text = find_parameter(range, length, "q");
	unsigned weight = 0, unit = 100;

	if (!text || *text != '0')
		return 1000;
	if (text[1] != '.')
		return 0;
	for (text += 2; *text >= '0' && *text <= '9' && unit > 0; text++, unit /= 10)
		weight += (unsigned)(*text - '0') * unit;
	return weight;
}

static bool is_type(const char *range, size_t length, const char *type)
{
	const size_t n = strlen(type);

	return length >= n && strncasecmp(range, type, n) == 0 &&
	       (length == n || strchr("; \t", range[n]) != NULL);
}

/* OpenMetrics of no version, or of the one that is spoken here. */
static bool is_openmetrics(const char *range, size_t length)
{
	static const char version[] = "1.0.0";

	if (!is_type(range, length, "application/openmetrics-text"))
		return false;
	const char *said = find_parameter(range, length, "version");

	return !said || strncmp(said, version, strlen(version)) == 0;
}

bool http_wants_openmetrics(const char *accept)
{
	unsigned openmetrics = 0, plain = 0;

	while (accept && *accept != '\0') {
		accept += strspn(accept, ", \t");
		const size_t length = strcspn(accept, ",");
		const unsigned weight = weight_of(accept, length);

		if (is_openmetrics(accept, length) && weight > openmetrics)
			openmetrics = weight;
		else if (is_type(accept, length, "text/plain") && weight > plain)
			plain = weight;
		accept += length;
	}
	return openmetrics > 0 && openmetrics >= plain;
}
