/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_log.h>

#include "base/text.h"

void probe_log_begin(struct probe_log *log)
{
	log->text = NULL;
	log->length = 0;
	log->before = rte_log_get_stream();
	log->stream = open_memstream(&log->text, &log->length);
	if (log->stream != NULL)
		rte_openlog_stream(log->stream);
}

void probe_log_end(struct probe_log *log, char *line, size_t size)
{
	line[0] = '\0';
	if (log->stream == NULL)
		return;
	rte_openlog_stream(log->before);
	if (fclose(log->stream) == 0 && log->text != NULL) {
		/* whose words they are is said before */
		const char *start = log->text + (strncmp(log->text, "EAL: ", 5) == 0 ? 5 : 0);
		const char *function = strstr(start, "(): ");
		size_t length = strcspn(start, "\n");

		/* "rte_eth_from_packet(): net_af_packet0: ..." begins with the driver's function */
		if (function != NULL && (size_t)(function - start) < length &&
			strcspn(start, " ") > (size_t)(function - start)) {
			length -= (size_t)(function + 4 - start);
			start = function + 4;
		}
		/* it is to stand within a line of ours */
		while (length > 0 && strchr(". ", start[length - 1]) != NULL)
			length--;
		char *copy = strndup(start, length);

		text_printable(line, size, copy != NULL ? copy : "");
		free(copy);
	}
	free(log->text);
}

/* Ethdevs that are ports of ours. */
static bool taken[RTE_MAX_ETHPORTS];

bool probe_has_interface(unsigned index)
{
	for (uint16_t id = 0; id < RTE_MAX_ETHPORTS; id++) {
		struct rte_eth_dev_info info;

		if (rte_eth_dev_is_valid_port(id) && rte_eth_dev_info_get(id, &info) == 0 &&
			info.if_index == index)
			return true;
	}
	return false;
}

/* The ethdev of a device: of a vdev it has the device's name, of a PCI device not always. */
static int find(const char *name, uint16_t *id)
{
	if (rte_eth_dev_get_port_by_name(name, id) == 0)
		return 0;
	for (uint16_t other = 0; other < RTE_MAX_ETHPORTS; other++) {
		struct rte_eth_dev_info info;

		if (rte_eth_dev_is_valid_port(other) && rte_eth_dev_info_get(other, &info) == 0 &&
			info.device != NULL && strcmp(rte_dev_name(info.device), name) == 0) {
			*id = other;
			return 0;
		}
	}
	return -ENODEV;
}

int probe_device(const char *bus, const char *name, const char *arguments, uint16_t *id, char *said,
	size_t size)
{
	struct probe_log log;
	int ret;

	said[0] = '\0';
	if (find(name, id) < 0) {
		probe_log_begin(&log);
		ret = rte_eal_hotplug_add(bus, name, arguments);
		probe_log_end(&log, said, size);
		if (ret == 0)
			ret = find(name, id);
		/* what a driver says with -1 is not that something is forbidden */
		if (ret < 0)
			return ret == -1 ? -EIO : ret;
	}
	if (taken[*id]) {
		*id = RTE_MAX_ETHPORTS;
		return -EBUSY;
	}
	taken[*id] = true;
	return 0;
}

void probe_remove(const char *bus, const char *name, uint16_t id)
{
	struct probe_log log;
	char said[2];

	taken[id] = false;
	probe_log_begin(&log);
	if (rte_eal_hotplug_remove(bus, name) < 0 && rte_eth_dev_is_valid_port(id))
		rte_eth_dev_close(id);
	probe_log_end(&log, said, sizeof(said));
}
