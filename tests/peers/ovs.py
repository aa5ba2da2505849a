# SPDX-License-Identifier: BSD-3-Clause
"""The distribution's Open vSwitch with DPDK, unmodified, over two simulated NICs' ports.

Everything of it lies in a directory of whoever starts it: database, sockets, logs; the system's own
switch, where there is one, does not notice. In tests it forwards between the ends of a network of the
smoke tests.
"""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import time

from testpmd import DRIVER, PATIENCE_S, ask_telemetry, eal_directory

SWITCH = pathlib.Path("/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk")
SCHEMA = pathlib.Path("/usr/share/openvswitch/vswitch.ovsschema")
# of 2 MB: 512 MB at the start, and what it takes for packets
PAGES = 400
MEMORY = pathlib.Path("/proc/sys/vm/nr_hugepages")


def lacks_ovs():
    for path in (SWITCH, SCHEMA):
        if not path.exists():
            return f"no {path} here (Debian: openvswitch-switch-dpdk)"
    return None


def free_pages():
    text = pathlib.Path("/proc/meminfo").read_text(encoding="ascii")
    return int(re.search(r"HugePages_Free: +(\d+)", text)[1])


@contextlib.contextmanager
def hugepages(wanted=PAGES):
    """The kernel's number, raised where it is too small, and set back. OSError when it cannot be."""
    before = MEMORY.read_text(encoding="ascii")
    missing = wanted - free_pages()
    try:
        if missing > 0:
            MEMORY.write_text(str(int(before) + missing), encoding="ascii")
            if free_pages() < wanted:
                raise OSError(f"{wanted} free ones are wanted, {free_pages()} were to be had")
        yield
    finally:
        if missing > 0 and os.access(MEMORY, os.W_OK):
            MEMORY.write_text(before, encoding="ascii")


def lacks_hugepages():
    try:
        with hugepages():
            return None
    except OSError as error:
        return f"no hugepages here: {error.strerror or error}"


def in_line(profile):
    """Two simulated NICs of a kind, in front of the interfaces of a Network's middle."""
    return [*(f"net_af_packet{i},iface={name},framecnt=4096,framesz=2048,blocksz=65536"
              for i, name in enumerate(("va", "vb"))),
            *(f"net_flowsim{i},port=net_af_packet{i},nic=n,profile={profile}" for i in range(2))]


class Switch:
    """Open vSwitch between net_flowsim0 and 1; ends by close().

    `devices` are as in --vdev, `space` is where it lives (its popen()), `settings` are of the database.
    """

    def __init__(self, directory, space, devices, *settings):
        self.directory, self.space = directory, space
        self.environment = {"PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin", "XDG_RUNTIME_DIR": str(directory),
                            **{f"OVS_{what}DIR": str(directory) for what in ("RUN", "LOG", "DB")}}
        self.processes = []
        prefix = f"millrace-ovs-{os.getpid()}"
        self.files = eal_directory(directory, prefix)
        self.run("ovsdb-tool", "create", directory / "conf.db", SCHEMA)
        self.start("ovsdb-server", directory / "conf.db", f"--remote=punix:{directory}/db.sock",
                   f"--unixctl={directory}/db.ctl", f"--log-file={directory}/db.log", "-vconsole:off")
        self.until((directory / "db.sock").exists, "the database")
        self.vsctl("--no-wait", "init")
        extra = " ".join(["--no-pci", "--file-prefix", prefix, "-d", str(DRIVER),
                          *(f"--vdev {device}" for device in devices)])
        self.vsctl("--no-wait", "set", "Open_vSwitch", ".", "other_config:dpdk-init=true",
                   "other_config:dpdk-socket-mem=512", "other_config:max-idle=600000",
                   f'other_config:dpdk-extra="{extra}"', *settings)
        self.start(SWITCH, f"unix:{directory}/db.sock", f"--unixctl={directory}/switch.ctl",
                   f"--pidfile={directory}/switch.pid", f"--log-file={directory}/switch.log",
                   "-vconsole:off", "-vnetdev_offload_dpdk:file:dbg")
        # these return when the switch has done what they say
        self.vsctl("add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev", "fail_mode=secure")
        for i in range(2):
            self.vsctl("add-port", "br0", f"p{i}", "--", "set", "Interface", f"p{i}", "type=dpdk",
                       f"options:dpdk-devargs=net_flowsim{i}", f"ofport_request={i + 1}")
            error = self.vsctl("get", "Interface", f"p{i}", "error").strip()
            assert error == "[]", f"{error}\n{self.log()}"

    def run(self, *command):
        done = subprocess.run(list(map(str, command)), env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}\n{self.log()}"
        return done.stdout

    def start(self, *command):
        with open(self.directory / "said", "ab") as said:
            self.processes.append(self.space.popen(*command, env=self.environment, stdout=said,
                                                   stderr=subprocess.STDOUT, cwd=self.directory))

    def until(self, condition, what):
        """Looks again and again, and not any longer when a part of it has ended."""
        end = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < end, f"never: {what}\n{self.log()}"
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self.processes[-1].wait(0.02)
                raise AssertionError(f"{self.processes[-1].args[0]} has ended with {code}\n{self.log()}")

    def log(self):
        """The end of what it said and logged."""
        return "\n".join(file.read_text(errors="replace")[-3000:] for file in
                         (self.directory / "said", self.directory / "switch.log") if file.exists())

    def vsctl(self, *words):
        return self.run("ovs-vsctl", f"--db=unix:{self.directory}/db.sock", f"--timeout={PATIENCE_S}", *words)

    def rules(self, *rules):
        """OpenFlow rules: what is not named is dropped."""
        for rule in rules:
            self.run("ovs-ofctl", "add-flow", self.directory / "br0.mgmt", rule)

    def appctl(self, *words):
        return self.run("ovs-appctl", "-t", self.directory / "switch.ctl", *words)

    def flows(self):
        """The datapath's flows: (text, packets, bytes, offloaded, datapath) of each."""
        return [(line, int(packets), int(octets), offloaded, datapath) for line, packets, octets, offloaded,
                datapath in re.findall(r"^(.*packets:(\d+), bytes:(\d+),.*?(?:offloaded:(\w+), )?dp:(\w+).*)$",
                                       self.appctl("dpctl/dump-flows", "-m"), re.MULTILINE)]

    def threads(self):
        """Counters of the polling threads, added up, by name."""
        sums = {}
        for name, value in re.findall(r"^  ([a-z ]+): (\d+)", self.appctl("dpif-netdev/pmd-stats-show"),
                                      re.MULTILINE):
            sums[name] = sums.get(name, 0) + int(value)
        return sums

    def nic(self):
        """The extended counters of the two simulated ports, behind the two that they took over."""
        return [ask_telemetry(self.files, f"/ethdev/xstats,{port}") for port in (2, 3)]

    def close(self):
        self.appctl("exit")
        assert self.processes[-1].wait(PATIENCE_S) == 0, self.log()

    def kill(self):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.kill()
            process.wait()
        shutil.rmtree(self.files, ignore_errors=True)
