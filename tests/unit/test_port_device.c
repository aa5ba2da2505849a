/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "port/device.h"
#include "port/port.h"

static void test_good(void **state)
{
	static const struct {
		const char *text;
		enum port_device_kind kind;
		const char *taken; /* NULL: as written */
		const char *interface;
	} rows[] = {
		{"eth1", PORT_DEVICE_KERNEL, NULL, "eth1"},
		{"enp94s0f0np0", PORT_DEVICE_KERNEL, NULL, "enp94s0f0np0"},
		{"fifteen_letters", PORT_DEVICE_KERNEL, NULL, "fifteen_letters"},
		{"eth1.100", PORT_DEVICE_KERNEL, NULL, "eth1.100"},
		{"eth_wan", PORT_DEVICE_KERNEL, NULL, "eth_wan"},
		{"eth_tapestry", PORT_DEVICE_KERNEL, NULL, "eth_tapestry"},
		{"00.0", PORT_DEVICE_KERNEL, NULL, "00.0"},
		{"0000:5e:00.0", PORT_DEVICE_PCI, NULL, ""},
		{"5e:00.1", PORT_DEVICE_PCI, "0000:5e:00.1", ""},
		{"0000:5E:0a.7,dv_flow_en=2", PORT_DEVICE_PCI, NULL, ""},
		{"5e:00.1,a=b", PORT_DEVICE_PCI, "0000:5e:00.1,a=b", ""},
		{"net_tap0", PORT_DEVICE_VDEV, NULL, ""},
		{"net_tap0,iface=ta", PORT_DEVICE_VDEV, NULL, ""},
		{"eth_tap0,iface=ta", PORT_DEVICE_VDEV, NULL, ""},
		{"eth_pcap,rx_pcap=/x/y.pcap", PORT_DEVICE_VDEV, NULL, ""},
		{"net_af_packet0,iface=eth1", PORT_DEVICE_VDEV, NULL, "eth1"},
		{"eth_af_packet0,qpairs=1,iface=eth1", PORT_DEVICE_VDEV, NULL, "eth1"},
		{"net_af_xdp_x,iface=eth1,queue_count=2", PORT_DEVICE_VDEV, NULL, "eth1"},
		{"net_flowsim0,port=net_af_packet0", PORT_DEVICE_VDEV, NULL, ""},
		{"net_flowsim0,port=[net_af_packet0,iface=eth1],nic=n", PORT_DEVICE_VDEV, NULL,
			"eth1"},
		{"net_flowsim0,port=[net_af_xdp0,iface=eth1]", PORT_DEVICE_VDEV, NULL, "eth1"},
		{"net_flowsim0,port=[net_failsafe0,dev(net_af_packet0,framesz=2048,iface=eth1)]",
			PORT_DEVICE_VDEV, NULL, "eth1"},
		{"net_failsafe0,dev(net_af_packet0,iface=a),dev(net_af_packet1,iface=b)",
			PORT_DEVICE_VDEV, NULL, ""},
		{"net_flowsim0,port=[net_tap0,iface=ta]", PORT_DEVICE_VDEV, NULL, ""},
		{"net_flowsim0,port=[net_null0", PORT_DEVICE_VDEV, NULL, ""},
	};
	struct port_device device;
	struct error error;

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (port_device_parse(&device, rows[i].text, &error) < 0)
			fail_msg("%s: %s", rows[i].text, error.text);
		assert_int_equal(device.kind, rows[i].kind);
		assert_string_equal(device.text, rows[i].taken ? rows[i].taken : rows[i].text);
		assert_string_equal(device.interface, rows[i].interface);
	}
}

static void test_bad(void **state)
{
	static const struct {
		const char *text;
		const char *says;
	} rows[] = {
		{"", "a device is needed"},
		{"/dev/eth0", "/dev/eth0: no device: give an interface"},
		{".", "no device"},
		{"..", "no device"},
		{"sixteen_letters_", "at most 15 characters"},
		{"eth 1", "blanks"},
		{"eth1\n", "eth1?: blanks"},
		{"\x1b[31m", "?[31m: blanks"},
		{"tap0,iface=ta", "did you mean net_tap0,iface=ta?"},
		{"5e:00.8", "no device"},
		{"0000:5e:00", "no device"},
		{"00000:5e:00.0", "no device"},
		{"5g:00.0", "no device"},
		{"a:b", "no device"},
		{"eth1=2", "no device"},
		{"net_af_packet0", "net_af_packet0,iface=eth1"},
		{"net_af_xdp0,queue_count=1", "net_af_xdp0,iface=eth1"},
		{"net_af_packet0,iface=", "is not the name of an interface"},
		{"net_af_packet0,iface=sixteen_letters_", "is not the name of an interface"},
		{"net_af_packet0,xiface=eth1", "it needs its interface"},
	};
	struct port_device device;
	struct error error;

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(port_device_parse(&device, rows[i].text, &error), -EINVAL);
		if (strstr(error.text, rows[i].says) == NULL)
			fail_msg("%s: %s", rows[i].text, error.text);
		assert_null(strchr(error.text, '\n'));
	}
}

/* Any length around that of the buffers, of any kind, is taken whole or refused. */
static void test_long(void **state)
{
	static const char *const starts[] = {
		"", "net_tap0,iface=", "net_af_packet0,iface=", "5e:00.0,", "tap0,", "net_"};
	struct port_device device;
	struct error error;
	char text[2 * PORT_DEVICE_MAX];

	(void)state;
	for (unsigned i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		for (size_t length = strlen(starts[i]); length < sizeof(text); length++) {
			memset(text, 'x', length);
			memcpy(text, starts[i], strlen(starts[i]));
			text[length] = '\0';
			if (port_device_parse(&device, text, &error) < 0)
				continue;
			assert_true(length < PORT_DEVICE_MAX);
			assert_non_null(strstr(device.text, text));
		}
	}
}

static void test_parts(void **state)
{
	char name[16], value[8];

	(void)state;
	assert_int_equal(device_name("net_tap0,iface=ta", name, sizeof(name)), 8);
	assert_string_equal(name, "net_tap0");
	assert_string_equal(device_arguments("net_tap0,iface=ta,mac=fixed"), "iface=ta,mac=fixed");
	assert_string_equal(device_arguments("net_tap0"), "");
	assert_true(device_argument("a,iface=ta,b=1", "b", value, sizeof(value)));
	assert_string_equal(value, "1");
	assert_false(device_argument("a,iface=ta,b=1", "c", value, sizeof(value)));
	assert_false(device_argument("a,iface=ta", "ifac", value, sizeof(value)));
	assert_true(device_argument("a,b=", "b", value, sizeof(value)));
	assert_string_equal(value, "");
	/* cut, not overrun */
	assert_true(device_argument("a,b=0123456789", "b", value, sizeof(value)));
	assert_string_equal(value, "0123456");

	assert_true(device_is("net_tap0", "tap"));
	assert_true(device_is("eth_tap", "tap"));
	assert_true(device_is("net_af_xdp_eth1", "af_xdp"));
	assert_false(device_is("net_tapestry", "tap"));
	assert_false(device_is("tap0", "tap"));
	assert_false(device_is("0000:5e:00.0", "tap"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
