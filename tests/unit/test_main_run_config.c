/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "run_line.h"

static int read_text(struct run_config *config, const char *text, struct error *error)
{
	return run_config_read_bytes(config, "f.yaml", text, strlen(text), error);
}

static void check_port(const struct run_config *config, unsigned wire, unsigned end,
	const char *name, const char *device)
{
	const struct run_port *port = &config->ports[config->wires[wire].port[end]];

	assert_string_equal(port->name, name);
	assert_string_equal(port->device.text, device);
}

/* The default socket with $XDG_RUNTIME_DIR as given, which is put back. */
static void check_default_socket(const char *directory, const char *wanted)
{
	const char *before = getenv("XDG_RUNTIME_DIR");
	char *kept = before ? strdup(before) : NULL;
	struct run_config config;
	struct error error;
	struct line line;

	if (directory)
		setenv("XDG_RUNTIME_DIR", directory, 1);
	else
		unsetenv("XDG_RUNTIME_DIR");
	assert_int_equal(parse(&line, "--wire a,b", &config, &error), 0);
	assert_string_equal(config.socket, wanted);
	run_config_fini(&config);
	unsetenv("XDG_RUNTIME_DIR");
	if (kept)
		setenv("XDG_RUNTIME_DIR", kept, 1);
	free(kept);
}

static void test_defaults(void **state)
{
	struct flow_timeouts timeouts = flow_timeouts_default();
	struct run_config config;
	struct error error;
	struct line line;

	(void)state;
	assert_int_equal(parse(&line, "--wire eth1,eth2", &config, &error), 0);
	assert_int_equal(config.n_wires, 1);
	assert_int_equal(config.n_ports, 2);
	check_port(&config, 0, 0, "eth1", "eth1");
	check_port(&config, 0, 1, "eth2", "eth2");
	assert_int_equal(config.engine.workers, 1);
	assert_int_equal(config.engine.flows, 1048576);
	assert_true(config.engine.fragments_follow);
	assert_false(config.engine.tcp_strict || config.engine.zone_vlan);
	assert_int_equal(config.engine.active_s, 0);
	assert_memory_equal(&config.engine.timeouts, &timeouts, sizeof(timeouts));
	assert_int_equal(config.threads, PLANE_RUN_TO_COMPLETION);
	assert_int_equal(config.sharding, PLANE_SHARDING_AUTO);
	assert_true(config.pin);
	assert_false(config.poll_always || config.force || config.telemetry || config.one_armed);
	assert_null(config.output);
	assert_null(config.metrics.listen);
	assert_null(config.config_file);
	run_config_fini(&config);
	check_default_socket("/run/user/7", "/run/user/7/millrace.sock");
	check_default_socket("", "/run/millrace.sock");
	check_default_socket(NULL, "/run/millrace.sock");
}

static void test_all(void **state)
{
	struct run_config config;
	struct error error;
	struct line line;

	(void)state;
	assert_int_equal(
		parse(&line,
			"--wire lan,wan --workers 4 --port wan=net_af_packet0,iface=eth2 "
			"--port=lan=eth1 "
			"--threads split --sharding software --poll always --pin no --one-armed "
			"yes --flows 5 "
			"--fragments "
			"separate "
			"--tcp strict --zone vlan --active 60 --timeout udp=7 --output - --socket "
			"s "
			"--force --telemetry --metrics 9180 --foreground --wire "
			"5e:00.0,0000:5e:00.1",
			&config, &error),
		0);
	assert_int_equal(config.n_ports, 4);
	assert_int_equal(config.n_wires, 2);
	check_port(&config, 0, 0, "lan", "eth1");
	check_port(&config, 0, 1, "wan", "net_af_packet0,iface=eth2");
	check_port(&config, 1, 0, "5e:00.0", "0000:5e:00.0");
	check_port(&config, 1, 1, "0000:5e:00.1", "0000:5e:00.1");
	assert_int_equal(config.engine.workers, 4);
	assert_int_equal(config.engine.flows, 5);
	assert_false(config.engine.fragments_follow);
	assert_true(config.engine.tcp_strict && config.engine.zone_vlan);
	assert_int_equal(config.engine.active_s, 60);
	assert_int_equal(config.engine.timeouts.seconds[FLOW_TIMEOUT_UDP_NEW], 7);
	assert_int_equal(config.engine.timeouts.seconds[FLOW_TIMEOUT_UDP_OPEN], 7);
	assert_int_equal(config.threads, PLANE_SPLIT);
	assert_int_equal(config.sharding, PLANE_SHARDING_SOFTWARE);
	assert_true(config.poll_always && config.force && config.telemetry && config.one_armed);
	assert_false(config.pin);
	assert_string_equal(config.output, "-");
	assert_string_equal(config.socket, "s");
	assert_string_equal(config.metrics.listen, "9180");
	run_config_fini(&config);
	assert_int_equal(parse(&line, "--help --wire a", &config, &error), RUN_HELP);
	run_config_fini(&config);
	assert_int_equal(parse(&line, "--config nowhere -h", &config, &error), RUN_HELP);
	run_config_fini(&config);
}

static void test_words_refused(void **state)
{
	static const struct row rows[] = {
		{"", "a wire is needed: --wire NAME,NAME, as in --wire eth1,eth2"},
		{"--port a=eth1", "--port a: this port is in no wire"},
		{"--wir", "--wire needs a value"},
		{"--wires a,b", "--wires: no such option; did you mean --wire?"},
		{"--thread=splt --wire a,b",
			"--threads splt: \"run-to-completion\" or \"split\" is needed"},
		{"--sharding hash --wire a,b",
			"--sharding hash: \"auto\", \"rss\" or \"software\" is needed"},
		{"--poll never --wire a,b", "--poll never: \"adaptive\" or \"always\" is needed"},
		{"--pin 1 --wire a,b", "--pin 1: \"yes\" or \"no\" is needed"},
		{"--tcp lax --wire a,b", "--tcp lax: \"strict\" or \"count\" is needed"},
		{"--zone mpls --wire a,b", "--zone mpls: \"vlan\" or \"none\" is needed"},
		{"--active 0 --wire a,b",
			"--active 0: a whole number from 1 to 31,536,000 is needed, or off"},
		{"--workers 17 --wire a,b", "--workers 17: a whole number from 1 to 16 is needed"},
		{"--timeout udpnew=3 --wire a,b",
			"--timeout udpnew: no such timeout; did you mean udp-new?"},
		{"--output ~ --wire a,b", "--output \"\": a file is needed"},
		{"--socket ~ --wire a,b",
			"--socket \"\": a path of 1 to 107 bytes without control characters is "
			"needed"},
		{"--force=no --wire a,b", "--force takes no value"},
		{"eth1,eth2", "eth1,eth2: no option; did you mean --wire eth1,eth2?"},
		{"--wire a,b c", "c: no option; run --help lists them"},
		{"--config ~", "--config \"\": a file is needed"},
		{"--config a --config b", "--config b: one file can be read, not two"},
	};

	(void)state;
	check_refused(rows, sizeof(rows) / sizeof(rows[0]));
}

static void test_ports_refused(void **state)
{
	static const struct row rows[] = {
		{"--wire eth1", "--wire eth1: NAME,NAME is needed, as in eth1,eth2"},
		{"--wire eth1,", "--wire eth1,: NAME,NAME is needed, as in eth1,eth2"},
		{"--wire ,eth1", "--wire ,eth1: NAME,NAME is needed, as in eth1,eth2"},
		{"--wire net_tap0,iface=a,b",
			"--wire net_tap0,iface=a,b: NAME,NAME is needed; a device with arguments "
			"gets a name by --port NAME=DEVICE"},
		{"--wire a,a", "--wire a: a wire has two ports, not one twice"},
		{"--wire a,b --wire c,a",
			"--wire a: it is in another wire already; a port belongs to one"},
		{"--port a --wire a,b", "--port a: NAME=DEVICE is needed, as in lan=eth1"},
		{"--port a= --wire a,b", "--port a=: NAME=DEVICE is needed, as in lan=eth1"},
		{"--port =eth1 --wire a,b", "--port =eth1: NAME=DEVICE is needed, as in lan=eth1"},
		{"--port a=eth1 --port a=eth2 --wire a,b",
			"--port a: there is a port of this name already"},
		{"--port a=eth1 --port b=eth1 --wire a,b",
			"--port eth1: port a has the same device"},
		{"--port a=eth1 --wire a,eth1", "--wire eth1: port a has the same device"},
		{"--port a=eth1 --port b=net_af_packet0,iface=eth1 --wire a,b",
			"--port net_af_packet0,iface=eth1: port a has the same device"},
		{"--port a=net_tap0,iface=x --port b=net_tap0,iface=y --wire a,b",
			"--port net_tap0,iface=y: port a has the same device"},
		{"--wire 5e:00.0,0000:5E:00.0",
			"--wire 0000:5E:00.0: port 5e:00.0 has the same device"},
		{"--port lan=eth1 --port wan=eth2 --wire lan,van",
			"--port wan: this port is in no wire; did you mean it where a wire has "
			"van?"},
		{"--port upstream-provider-1=eth1 --wire upstream-provider-2,eth2",
			"--wire upstream-provider-2: no such port; did you mean "
			"upstream-provider-1?"},
		{"--port a\"b=eth1 --wire a,b",
			"--port a\"b: a port's name has 1 to 31 letters, digits and signs, none of "
			"them , = / \\ or a quote"},
		{"--port abcdefghijklmnopqrstuvwxyz012345=eth1 --wire a,b",
			"--port abcdefghijklmnopqrstuvwxyz012345: a port's name has 1 to 31 "
			"letters, "
			"digits and signs, none of them , = / \\ or a quote"},
	};

	(void)state;
	check_refused(rows, sizeof(rows) / sizeof(rows[0]));
}

static void test_bad_device(void **state)
{
	struct run_config config;
	struct error error;
	struct line line;

	(void)state;
	assert_int_equal(parse(&line, "--port a=b/c --wire a,d", &config, &error), -EINVAL);
	assert_int_equal(strncmp(error.text, "--port b/c: ", 12), 0);
	run_config_fini(&config);
	assert_int_equal(
		parse(&line, "--wire an-interface-of-too-long-a-name,d", &config, &error), -EINVAL);
	assert_int_equal(strncmp(error.text, "--wire an-int", 13), 0);
	run_config_fini(&config);
}

static void test_how_many(void **state)
{
	struct run_config config;
	char words[1024] = "";
	struct error error;
	struct line line;

	(void)state;
	for (unsigned i = 0; i < 16; i++)
		snprintf(words + strlen(words), sizeof(words) - strlen(words), "--wire l%u,r%u ", i,
			i);
	assert_int_equal(parse(&line, words, &config, &error), 0);
	assert_int_equal(config.n_wires, 16);
	assert_int_equal(config.n_ports, 32);
	check_port(&config, 15, 1, "r15", "r15");
	run_config_fini(&config);
	strcat(words, "--wire l,r");
	assert_int_equal(parse(&line, words, &config, &error), -EINVAL);
	assert_string_equal(error.text, "--wire l,r: there can be 16 wires at most");
	run_config_fini(&config);
}

static void test_file(void **state)
{
	static const char text[] = "# a comment\n"
				   "ports:\n"
				   "  - {name: lan, device: eth1}\n"
				   "  - name: wan\n"
				   "    device: net_af_packet0,iface=eth2\n"
				   "wires:\n"
				   "  - [lan, wan]\n"
				   "  - [0000:5e:00.0, eth3]\n"
				   "workers: 2\n"
				   "threads: split\n"
				   "sharding: rss\n"
				   "poll: always\n"
				   "pin: off\n"
				   "one-armed: on\n"
				   "force: yes\n"
				   "telemetry: on\n"
				   "fragments:\n"
				   "active: 300\n"
				   "timeouts: {udp-new: 5, udp: 9, icmp: 1}\n"
				   "output: ~\n";
	struct run_config config;
	struct error error = {""};

	(void)state;
	assert_int_equal(read_text(&config, text, &error), 0);
	assert_int_equal(config.n_ports, 4);
	assert_int_equal(config.n_wires, 2);
	check_port(&config, 0, 0, "lan", "eth1");
	check_port(&config, 0, 1, "wan", "net_af_packet0,iface=eth2");
	check_port(&config, 1, 0, "0000:5e:00.0", "0000:5e:00.0");
	check_port(&config, 1, 1, "eth3", "eth3");
	assert_int_equal(config.engine.workers, 2);
	assert_int_equal(config.threads, PLANE_SPLIT);
	assert_int_equal(config.sharding, PLANE_SHARDING_RSS);
	assert_true(config.telemetry && config.one_armed);
	assert_true(config.poll_always && config.force && config.engine.fragments_follow);
	assert_false(config.pin);
	assert_null(config.output);
	assert_int_equal(config.engine.active_s, 300);
	/* the one is meant more than all of its protocol, wherever they stand */
	assert_int_equal(config.engine.timeouts.seconds[FLOW_TIMEOUT_UDP_NEW], 5);
	assert_int_equal(config.engine.timeouts.seconds[FLOW_TIMEOUT_UDP_OPEN], 9);
	assert_int_equal(config.engine.timeouts.seconds[FLOW_TIMEOUT_ICMP], 1);
	run_config_fini(&config);
}

/* Each file is refused with its text. */
static void check_files(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct run_config config;
		struct error error = {""};
		int ret = read_text(&config, rows[i].words, &error);

		run_config_fini(&config);
		assert_string_equal(error.text, rows[i].text);
		assert_int_equal(ret, -EBADMSG);
	}
}

static void test_keys_refused(void **state)
{
	static const struct row rows[] = {
		{"\nwokers: 2\n", "f.yaml:2: wokers: no such key; did you mean workers?"},
		{"colour: red\n", "f.yaml:1: colour: no such key"},
		{"workers: 4\noffload:\n  rules-per-second: 3\n",
			"f.yaml:3: offload.rules-per-second: 3: 4 workers need one each; 4 or "
			"more, or 0 for no limit"},
		{"workers: 4\noffload:\n  slots: 3\n",
			"f.yaml:3: offload.slots: 3: 4 workers need one each; 4 or more"},
		{"my key: 1\n", "f.yaml:1: my key: no such key"},
		{"\"a\\nb\": 1\n", "f.yaml:1: a?b: no such key"},
		{"timeouts:\n  udp: 1\n  udp-nwe: 1\n",
			"f.yaml:3: timeouts.udp-nwe: no such key; did you mean udp-new?"},
		{"timeout: {udp: 1}\n", "f.yaml:1: timeout: no such key; did you mean timeouts?"},
		{"ports:\n- {name: a,\n   devise: b}\n",
			"f.yaml:3: ports[0].devise: no such key; did you mean device?"},
		{"flows: 1\nworkers: 1\nflows: 2\n",
			"f.yaml:3: flows: said twice, first in line 1"},
		{"timeouts: {udp: 1, udp: 2}\n",
			"f.yaml:1: timeouts.udp: said twice, first in line 1"},
		{"[a]: b\n", "f.yaml:1: a key must be one word"},
		{"\"a\\0b\": 1\n", "f.yaml:1: a key with a zero byte"},
	};

	(void)state;
	check_files(rows, sizeof(rows) / sizeof(rows[0]));
}

static void test_values_refused(void **state)
{
	static const struct row rows[] = {
		{"pin: yes\nworkers: 0\n",
			"f.yaml:2: workers: 0: a whole number from 1 to 16 is needed"},
		{"workers: 010\n", "f.yaml:1: workers: 010: a whole number from 1 to 16 is needed, "
				   "without leading zeros"},
		{"workers: two\n", "f.yaml:1: workers: two: a whole number from 1 to 16 is needed"},
		{"workers: [2]\n", "f.yaml:1: workers: one word or number is needed"},
		{"flows: 0x10\n",
			"f.yaml:1: flows: 0x10: a whole number from 1 to 67,108,864 is needed"},
		{"pin: maybe\n", "f.yaml:1: pin: maybe: \"yes\" or \"no\" is needed"},
		{"tcp: lax\n", "f.yaml:1: tcp: lax: \"strict\" or \"count\" is needed"},
		{"active: -1\n", "f.yaml:1: active: -1: a whole number from 1 to 31,536,000 is "
				 "needed, or off"},
		{"timeouts:\n\n  udp-new: soon\n",
			"f.yaml:3: timeouts.udp-new: soon: a whole number from 1 to 31,536,000 is "
			"needed"},
		{"timeouts: {udp-new: {a: 1}}\n",
			"f.yaml:1: timeouts.udp-new: one word or number is needed"},
		{"timeouts: 5\n", "f.yaml:1: timeouts: lines of NAME: SECONDS are needed"},
		{"output: \"a\\nb\"\n",
			"f.yaml:1: output: a?b: control characters are not taken in its name"},
		{"output: \"a\\0b\"\n", "f.yaml:1: output: a zero byte in the value"},
	};

	(void)state;
	check_files(rows, sizeof(rows) / sizeof(rows[0]));
}

static void test_structure_refused(void **state)
{
	static const struct row rows[] = {
		{"ports: {lan: eth1}\n",
			"f.yaml:1: ports: a list of {name: NAME, device: DEVICE} is needed"},
		{"ports: [eth1]\n", "f.yaml:1: ports[0]: {name: NAME, device: DEVICE} is needed"},
		{"ports:\n- name: a\n",
			"f.yaml:2: ports[0]: device is missing; {name: NAME, device: DEVICE} is "
			"needed"},
		{"wires: eth1\n", "f.yaml:1: wires: a list of [NAME, NAME] is needed"},
		{"wires: [eth1, eth2]\n", "f.yaml:1: wires[0]: [NAME, NAME] is needed"},
		{"wires:\n- [a, b]\n- [c]\n", "f.yaml:3: wires[1]: [NAME, NAME] is needed"},
		{"wires:\n- [a, b]\n- [c, d, e]\n", "f.yaml:3: wires[1]: [NAME, NAME] is needed"},
		{"wires: [[a, [b]]]\n", "f.yaml:1: wires[0][1]: one word or number is needed"},
		{"wires:\n- [a, b]\n- [c, a]\n", "f.yaml:3: wires[1]: a: it is in another wire "
						 "already; a port belongs to one"},
		{"ports:\n- {name: lan, device: eth1}\nwires:\n- [lam, wan]\n",
			"f.yaml:2: ports[0]: lan: this port is in no wire; did you mean it where a "
			"wire has lam?"},
		{"wires: [[\"\", b]]\n", "f.yaml:1: wires[0]: \"\": a port's name has 1 to 31 "
					 "letters, digits and signs, "
					 "none of them , = / \\ or a quote"},
		{"- a\n- b\n", "f.yaml:1: lines of KEY: VALUE are needed"},
		{"Dear sir or madam,\n", "f.yaml:1: lines of KEY: VALUE are needed"},
		{"flows: 1\n---\nflows: 2\n", "f.yaml:2: a second document; there can be one only"},
		{"flows: &a 1\nworkers: *a\n",
			"f.yaml:2: aliases (*NAME) are not known here: write it out"},
		{"a: [[[[[[[1]]]]]]]\n", "f.yaml:1: a[0][0][0][0][0]: nested too deeply"},
		{"flows: 1\n\tworkers: 2\n",
			"f.yaml:2: not YAML: found a tab character that violates indentation"},
		{"\x01\x02", "f.yaml: not YAML: control characters are not allowed (byte 1)"},
	};

	(void)state;
	check_files(rows, sizeof(rows) / sizeof(rows[0]));
}

/* What a file says is taken back by the command line, option by option. */
static void test_line_wins(void **state)
{
	static const char text[] = "wires: [[a, b]]\nworkers: 2\nthreads: split\npoll: always\n"
				   "sharding: software\npin: no\none-armed: yes\nflows: "
				   "7\nfragments: separate\ntcp: strict\n"
				   "zone: vlan\nactive: 9\ntimeouts: {udp: 3}\noutput: x\n"
				   "socket: y\n";
	char path[] = "/tmp/millrace-test-XXXXXX", words[512];
	struct run_config config;
	struct error error;
	struct line line;
	int fd = mkstemp(path);

	(void)state;
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	close(fd);
	snprintf(words, sizeof(words),
		"--workers 3 --threads run-to-completion --sharding rss --poll adaptive --pin yes "
		"--flows 8 "
		"--one-armed no "
		"--fragments follow --tcp count --zone none --active off --timeout udp-new=4 "
		"--output z --socket w --config %s",
		path);
	assert_int_equal(parse(&line, words, &config, &error), 0);
	assert_string_equal(config.config_file, path);
	assert_int_equal(config.n_wires, 1);
	assert_int_equal(config.engine.workers, 3);
	assert_int_equal(config.threads, PLANE_RUN_TO_COMPLETION);
	assert_int_equal(config.sharding, PLANE_SHARDING_RSS);
	assert_true(config.pin && config.engine.fragments_follow);
	assert_false(config.poll_always || config.engine.tcp_strict || config.engine.zone_vlan ||
		     config.one_armed);
	assert_int_equal(config.engine.flows, 8);
	assert_int_equal(config.engine.active_s, 0);
	assert_int_equal(config.engine.timeouts.seconds[FLOW_TIMEOUT_UDP_NEW], 4);
	assert_int_equal(config.engine.timeouts.seconds[FLOW_TIMEOUT_UDP_OPEN], 3);
	assert_string_equal(config.output, "z");
	assert_string_equal(config.socket, "w");
	run_config_fini(&config);

	snprintf(words, sizeof(words), "--config %s --wire c,d", path);
	assert_int_equal(parse(&line, words, &config, &error), -EINVAL);
	assert_non_null(strstr(error.text, "choose one"));
	run_config_fini(&config);
	unlink(path);
	assert_int_equal(parse(&line, words, &config, &error), -ENOENT);
	assert_non_null(strstr(error.text, path));
	run_config_fini(&config);
}

/* As JSON and back: nothing is lost, and nothing is said otherwise. */
static void check_round_trip(const char *words)
{
	struct run_config config, again;
	struct error error = {""};
	struct line line;

	assert_int_equal(parse(&line, words, &config, &error), 0);
	char *first = run_config_json(&config);

	assert_null(strchr(first, '\n'));
	assert_int_equal(read_text(&again, first, &error), 0);
	char *second = run_config_json(&again);

	assert_string_equal(first, second);
	assert_int_equal(again.n_ports, config.n_ports);
	assert_memory_equal(again.ports, config.ports, sizeof(config.ports));
	assert_memory_equal(again.wires, config.wires, sizeof(config.wires));
	assert_memory_equal(
		&again.engine.timeouts, &config.engine.timeouts, sizeof(config.engine.timeouts));
	assert_int_equal(again.engine.tcp_strict, config.engine.tcp_strict);
	assert_int_equal(again.engine.zone_vlan, config.engine.zone_vlan);
	assert_int_equal(again.engine.active_s, config.engine.active_s);
	assert_int_equal(again.pin, config.pin);
	assert_int_equal(again.one_armed, config.one_armed);
	assert_int_equal(again.sharding, config.sharding);
	assert_int_equal(!again.output, !config.output);
	free(first);
	free(second);
	run_config_fini(&config);
	run_config_fini(&again);
}

static void test_round_trip(void **state)
{
	(void)state;
	check_round_trip("--wire eth1,eth2");
	check_round_trip("--port b=net_tap1,iface=tb --wire 5e:00.0,c --wire a,b --port a=eth9 "
			 "--workers 16 --threads split --sharding software --poll always --pin no "
			 "--flows 67108864 "
			 "--one-armed yes "
			 "--fragments separate --tcp strict --zone vlan --active 31536000 "
			 "--timeout tcp=1 --timeout icmp=2 --output - --socket /a\\b\"c{é€😀 "
			 "--force --telemetry");
}

static void test_help(void **state)
{
	static const char *const words[] = {"--config FILE", "--port NAME=DEVICE",
		"--wire NAME,NAME", "--workers N", "--threads WORD", "--sharding WORD",
		"--poll WORD", "--pin yes|no", "--flows N", "--fragments WORD", "--tcp strict",
		"--zone vlan", "--timeout NAME=SECONDS", "--active SECONDS", "--output FILE",
		"--socket PATH", "--force", "--telemetry", "--foreground", "--one-armed yes|no",
		"service", "1,048,576", "net_af_packet0", "net_tap0", "0000:5e:00.0", "--tcp count",
		"--zone none", "--active off"};
	char *text = NULL;
	size_t size = 0, column = 0;
	FILE *stream = open_memstream(&text, &size);

	(void)state;
	run_config_help(stream);
	fclose(stream);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strstr(text, words[i]))
			fail_msg("the help has no \"%s\"", words[i]);
	for (unsigned i = 0; i < FLOW_N_TIMEOUTS; i++)
		assert_non_null(strstr(text, flow_timeout_name((enum flow_timeout)i)));
	for (size_t i = 0; i < size; i++) {
		column = text[i] == '\n' ? 0 : column + 1;
		assert_true(column <= 100);
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_words_refused),
		cmocka_unit_test(test_ports_refused),
		cmocka_unit_test(test_bad_device),
		cmocka_unit_test(test_how_many),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_keys_refused),
		cmocka_unit_test(test_values_refused),
		cmocka_unit_test(test_structure_refused),
		cmocka_unit_test(test_line_wins),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_help),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
