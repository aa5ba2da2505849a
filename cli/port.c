/* SPDX-License-Identifier: BSD-3-Clause */
/* port show: a few lines for each port. */
#include <stdio.h>

#include "cli/field.h"
#include "cli/view.h"

/* What the driver counts, and how it is called here. */
static const struct {
	const char *key, *name;
} nic_counters[] = {
	{"rx_packets", "rx"},
	{"tx_packets", "tx"},
	{"rx_missed", "missed"},
	{"rx_errors", "rx errors"},
	{"tx_errors", "tx errors"},
	{"rx_no_buffer", "no buffer"},
};

static void print_link(FILE *out, const json_t *line)
{
	char port[FIELD_MAX], link[FIELD_MAX], wire[FIELD_MAX], speed[FIELD_MAX], mtu[FIELD_MAX];
	const uint64_t far_mtu = field_number(line, "far_mtu");

	fprintf(out, " %-8s wire %s, link %s", field_text(line, "port", port),
		field_text(line, "wire", wire), field_text(line, "link", link));
	if (field_number(line, "speed_mbps") > 0)
		fprintf(out, ", %s Mb/s", field_grouped(line, "speed_mbps", speed));
	fprintf(out, ", mtu %s", field_grouped(line, "mtu", mtu));
	/* what the other end takes in full needs no word */
	if (far_mtu > 0 && far_mtu < field_number(line, "mtu"))
		fprintf(out, ", mtu %s at its other end", field_grouped(line, "far_mtu", mtu));
	putc('\n', out);
}

static void print_device(FILE *out, const json_t *line)
{
	char device[FIELD_MAX], driver[FIELD_MAX], text[FIELD_MAX];

	fprintf(out, "          device %s\n", field_text(line, "device", device));
	fprintf(out, "          driver %s", field_text(line, "driver", driver));
	if (field_has(line, "interface"))
		fprintf(out, ", interface %s", field_text(line, "interface", text));
	if (field_has(line, "mac"))
		fprintf(out, ", mac %s", field_text(line, "mac", text));
	if (field_has(line, "numa"))
		fprintf(out, ", numa %s", field_text(line, "numa", text));
	putc('\n', out);
}

static void print_queues(FILE *out, const json_t *line)
{
	char rx[FIELD_MAX], tx[FIELD_MAX], sharding[FIELD_MAX];

	fprintf(out, "          queues %s rx and %s tx, sharding: %s\n",
		field_text(line, "rx_queues", rx), field_text(line, "tx_queues", tx),
		field_text(line, "sharding", sharding));
}

static void print_counters(FILE *out, const json_t *line)
{
	char rx[FIELD_MAX], rx_bytes[FIELD_MAX], tx[FIELD_MAX], tx_bytes[FIELD_MAX];

	fprintf(out, "          engine: rx %s packets, %s; tx %s packets, %s\n",
		field_grouped(line, "rx_packets", rx), field_bytes(line, "rx_bytes", rx_bytes),
		field_grouped(line, "tx_packets", tx), field_bytes(line, "tx_bytes", tx_bytes));
}

static void print_nic(FILE *out, const json_t *line)
{
	const json_t *nic = json_object_get(line, "nic");
	const char *before = "          driver: ";
	char text[FIELD_MAX];

	if (!json_is_object(nic))
		return;
	for (unsigned i = 0; i < sizeof(nic_counters) / sizeof(nic_counters[0]); i++) {
		if (!field_has(nic, nic_counters[i].key))
			continue;
		fprintf(out, "%s%s %s", before, nic_counters[i].name,
			field_grouped(nic, nic_counters[i].key, text));
		before = ", ";
	}
	if (*before == ',')
		putc('\n', out);
}

static void port_line(struct cli_show *show, const json_t *line)
{
	print_link(show->out, line);
	print_device(show->out, line);
	print_queues(show->out, line);
	print_counters(show->out, line);
	print_nic(show->out, line);
}

const struct cli_view cli_port_show = {port_line, NULL};
