/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "port/device.h"
#include "port/port.h"

/* The old names that DPDK still takes for some vdevs; anything else with eth_ is an interface. */
static const char *const old_names[] = {
	"eth_af_packet", "eth_bond", "eth_null", "eth_pcap", "eth_ring", "eth_tap", "eth_vhost"};

static bool is_hex(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isxdigit((unsigned char)text[i]))
			return false;
	return true;
}

/* "5e:00.0", the end of every PCI address. */
static bool is_short_pci(const char *text, size_t length)
{
	return length == 7 && is_hex(text, 2) && text[2] == ':' && is_hex(text + 3, 2) &&
	       text[5] == '.' && text[6] >= '0' && text[6] <= '7';
}

static bool is_pci(const char *text, size_t length)
{
	if (is_short_pci(text, length))
		return true;
	return length == 12 && is_hex(text, 4) && text[4] == ':' && is_short_pci(text + 5, 7);
}

static bool is_vdev(const char *text)
{
	if (strncmp(text, "net_", 4) == 0)
		return true;
	for (size_t i = 0; i < sizeof(old_names) / sizeof(old_names[0]); i++) {
		size_t length = strlen(old_names[i]);

		if (strncmp(text, old_names[i], length) == 0 &&
			(text[length] == '\0' || text[length] == ',' ||
				isdigit((unsigned char)text[length])))
			return true;
	}
	return false;
}

size_t device_name(const char *text, char *name, size_t size)
{
	size_t length = strcspn(text, ",");

	snprintf(name, size, "%.*s", (int)length, text);
	return length;
}

const char *device_arguments(const char *text)
{
	const char *comma = strchr(text, ',');

	return comma ? comma + 1 : "";
}

bool device_argument(const char *text, const char *key, char *value, size_t size)
{
	size_t length = strlen(key);

	for (const char *at = strchr(text, ','); at != NULL; at = strchr(at, ',')) {
		at++;
		if (strncmp(at, key, length) != 0 || at[length] != '=')
			continue;
		at += length + 1;
		snprintf(value, size, "%.*s", (int)strcspn(at, ","), at);
		return true;
	}
	return false;
}

bool device_below(const char *text, unsigned n, char *below, size_t size)
{
	for (const char *at = strpbrk(text, "[("); at != NULL; at = strpbrk(at, "[(")) {
		unsigned depth = 1;
		size_t length = 0;

		at++;
		if (!is_vdev(at) || n-- != 0)
			continue;
		for (; at[length] != '\0'; length++) {
			depth += at[length] == '[' || at[length] == '(';
			depth -= at[length] == ']' || at[length] == ')';
			if (depth == 0)
				break;
		}
		snprintf(below, size, "%.*s", (int)length, at);
		return true;
	}
	return false;
}

/* What the kernel allows, less what could not stand in a DPDK argument. */
static bool is_interface(const char *name)
{
	size_t length = strlen(name);

	if (length == 0 || length >= IF_NAMESIZE || strcmp(name, ".") == 0 ||
		strcmp(name, "..") == 0)
		return false;
	for (size_t i = 0; i < length; i++)
		if (!isgraph((unsigned char)name[i]) || strchr("/:,[]=", name[i]) != NULL)
			return false;
	return true;
}

/* Drivers over an interface that the kernel has to have already: its name into `interface`, or "". */
static int find_interface(const char *text, char interface[IF_NAMESIZE], struct error *error)
{
	char name[PORT_DEVICE_MAX], value[PORT_DEVICE_MAX];

	interface[0] = '\0';
	device_name(text, name, sizeof(name));
	if (!device_is(name, "af_packet") && !device_is(name, "af_xdp"))
		return 0;
	if (!device_argument(text, "iface", value, sizeof(value)))
		return error_set(
			error, -EINVAL, "%s: it needs its interface: %s,iface=eth1", name, name);
	if (!is_interface(value))
		return error_set(error, -EINVAL, "%s: iface=%s is not the name of an interface",
			name, value);
	memcpy(interface, value, strlen(value) + 1);
	return 0;
}

/* Its own, or that of the only device below it that has one. */
static int take_interface(struct port_device *device, struct error *error)
{
	char below[PORT_DEVICE_MAX], interface[IF_NAMESIZE];
	int ret = find_interface(device->text, device->interface, error);
	unsigned n = 0;

	if (device->interface[0] != '\0')
		return ret;
	for (unsigned i = 0; ret == 0 && device_below(device->text, i, below, sizeof(below)); i++) {
		ret = find_interface(below, interface, error);
		if (ret < 0 || interface[0] == '\0')
			continue;
		n++;
		memcpy(device->interface, interface, sizeof(interface));
		memcpy(device->below, below, sizeof(below));
	}
	if (n > 1)
		device->interface[0] = device->below[0] = '\0';
	return ret;
}

bool device_is(const char *name, const char *driver)
{
	size_t length = strlen(driver);

	if (strncmp(name, "net_", 4) != 0 && strncmp(name, "eth_", 4) != 0)
		return false;
	return strncmp(name + 4, driver, length) == 0 &&
	       !(islower((unsigned char)name[4 + length]));
}

static int refuse(const char *word, const char *text, struct error *error)
{
	const char *comma = strchr(text, ',');

	if (comma != NULL && isalpha((unsigned char)text[0]))
		return error_set(error, -EINVAL,
			"%s: only DPDK devices take arguments; did you mean net_%s?", word, word);
	if (strlen(text) >= IF_NAMESIZE && strchr(text, '/') == NULL)
		return error_set(error, -EINVAL,
			"%s: no device: an interface's name has at most %d characters, a PCI "
			"address looks like 0000:5e:00.0, a DPDK device like net_tap0,iface=ta",
			word, IF_NAMESIZE - 1);
	return error_set(error, -EINVAL,
		"%s: no device: give an interface (eth1), a PCI address (0000:5e:00.0), or a DPDK "
		"device (net_tap0,iface=ta)",
		word);
}

int port_device_parse(struct port_device *device, const char *text, struct error *error)
{
	char word[80];
	size_t length = strcspn(text, ",");

	memset(device, 0, sizeof(*device));
	text_printable(word, sizeof(word), text);
	if (*text == '\0')
		return error_set(error, -EINVAL, "a device is needed, such as eth1");
	/* room for the domain of a short PCI address */
	if (strlen(text) + sizeof("0000:") > sizeof(device->text))
		return error_set(error, -EINVAL, "%s...: too long for a device", word);
	for (const char *at = text; *at != '\0'; at++)
		if (!isgraph((unsigned char)*at))
			return error_set(error, -EINVAL,
				"%s: blanks and control characters are not part of a device", word);

	snprintf(device->text, sizeof(device->text), "%s%s",
		is_short_pci(text, length) ? "0000:" : "", text);
	if (is_pci(text, length)) {
		device->kind = PORT_DEVICE_PCI;
		return 0;
	}
	if (is_vdev(text)) {
		device->kind = PORT_DEVICE_VDEV;
		return take_interface(device, error);
	}
	if (!is_interface(text))
		return refuse(word, text, error);
	device->kind = PORT_DEVICE_KERNEL;
	memcpy(device->interface, text, strlen(text) + 1);
	return 0;
}
