# SPDX-License-Identifier: BSD-3-Clause
"""examples/router/ as they stand: two LANs and a provider, routed between by what `ip` says, and by BGP.

Everything that a user would try first (ping, traceroute, PMTU discovery, iperf3, curl), both IP versions, several
next hops, and what happens when links and routes go. Every packet is counted: the sum of the router is asked for by equality.
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time

import pytest

from engine import MILLRACE, SLOWER, Connection, check_wires
from network import LIBC, NEW_NETWORK, checked, own_namespace

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "examples" / "router" / "two-lans.sh"
NEEDED = ("ip", "ethtool", "ping", "traceroute", "tracepath", "iperf3", "curl", "sysctl")
PROVIDER = {4: "198.51.100.1", 6: "2001:db8:ffff::1"}
VERSIONS = pytest.mark.parametrize("version", (4, 6))


def lan(number, version, host=2):
    return f"10.{number}.0.{host}" if version == 4 else f"2001:db8:{number}::{host}"


class Router:
    """The example, running."""

    def __init__(self, directory, example=SCRIPT):
        self.directory, self.example = directory, example
        self.prefix = f"t{os.getpid()}-"
        self.environment = {**os.environ, "MILLRACE": MILLRACE, "PREFIX": self.prefix,
                            "DIRECTORY": str(directory)}

    def script(self, word):
        done = subprocess.run(["sh", str(self.example), word], env=self.environment, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, check=False, timeout=120 * SLOWER)
        assert done.returncode == 0, done.stderr

    def inside(self, name, *words, code=0, timeout=60):
        """A command in a namespace; what it printed."""
        done = subprocess.run(["ip", "netns", "exec", self.prefix + name, *words], text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False,
                              timeout=timeout * SLOWER)
        if code is not None:
            assert done.returncode == code, (words, done.stdout, done.stderr)
        return done.stdout

    def ip(self, words):
        self.inside("r1", "ip", *words.split())

    @contextlib.contextmanager
    def entered(self, name):
        before = own_namespace()
        space = os.open(f"/run/netns/{self.prefix}{name}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            checked(LIBC.setns(space, NEW_NETWORK))
            yield
        finally:
            checked(LIBC.setns(before, NEW_NETWORK))
            os.close(space)
            os.close(before)

    def socket(self, name, version, kind):
        with self.entered(name):
            made = socket.socket(socket.AF_INET if version == 4 else socket.AF_INET6, kind)
        made.settimeout(30 * SLOWER)
        return made

    def ask(self, request, **given):
        with Connection(self.directory / "millrace.sock") as connection:
            return connection.ask(request, **given)[0]

    def client(self, *words):
        return subprocess.run([MILLRACE, *words, "--socket", str(self.directory / "millrace.sock")],
                              text=True, capture_output=True, check=True, timeout=60).stdout

    def domain(self):
        return self.ask("domain show")[0]

    def punts(self):
        return {punt["reason"]: punt["packets"] for punt in self.domain()["punts"]}

    def drops(self):
        return {drop["reason"]: drop["packets"] for drop in self.ask("drop show") if drop["packets"]}

    def until(self, condition, what, timeout=30):
        deadline = time.monotonic() + timeout * SLOWER
        while not (result := condition()):
            assert time.monotonic() < deadline, what
            time.sleep(0.02)
        return result

    def known(self, address):
        """Waits until the router can send to that next hop by itself."""
        return self.until(
            lambda: any(line["address"] == address and line["mac"] for line in
                        self.ask("neighbour show")), f"{address} is no neighbour")


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            pytest.skip(f"no {program} here")
    if os.geteuid() != 0 or not os.path.exists("/dev/net/tun"):
        pytest.skip("namespaces and TAPs take privileges")


@pytest.fixture
def router(tmp_path):
    need(*NEEDED)
    made = Router(tmp_path / "two-lans")
    try:
        made.script("up")
        made.until(lambda: made.ask("route show", lookup=PROVIDER[6])[:1]
                   and made.ask("route show", lookup=PROVIDER[4])[:1], "the default routes")
        yield made
        check_wires(made.ask("wire show"))
    finally:
        made.script("down")


def ping(router, name, address, count=3):
    said = router.inside(name, "ping", "-n", "-c", str(count), "-i", "0.1", "-W", "5", address)
    assert f"{count} received" in said
    return said


@VERSIONS
def test_ping(router, version):
    assert "ttl=64" in ping(router, "lan1", lan(1, version, 1))  # the router itself
    assert "ttl=63" in ping(router, "lan1", lan(2, version))
    assert "ttl=63" in ping(router, "lan2", lan(1, version))
    assert "ttl=63" in ping(router, "lan1", PROVIDER[version])
    # once the neighbours are known the kernel has nothing to do with it
    before = router.punts()
    ping(router, "lan1", lan(2, version), 10)
    after = router.punts()
    # (what the machines' own kernels send to multicast groups comes at any time)
    for reason in ("no_neighbour", "no_route", "ttl", "too_big"):
        assert after[reason] == before[reason], reason
    assert router.drops() == {}


@VERSIONS
def test_traceroute_shows_each_hop(router, version):
    said = router.inside("lan1", "traceroute", f"-{version}", "-n", "-q", "1", "-w", "5", PROVIDER[version])
    hops = [line.split()[1] for line in said.splitlines()[1:]]
    assert hops == [lan(1, version, 1), PROVIDER[version]]
    assert router.punts()["ttl"] >= 1


@VERSIONS
def test_mtu_is_discovered(router, version):
    """A smaller link behind the router, and who sends too much is told."""
    ping(router, "lan1", PROVIDER[version])
    router.known(lan(3, version))
    router.ip("link set eth3 mtu 1280")
    router.inside("isp", "ip", "link", "set", "eth0", "mtu", "1280")
    router.until(lambda: router.ask("route show", lookup=PROVIDER[version])[0]["hops"][0]["mtu"] == 1280,
                 "the new MTU")
    said = router.inside("lan1", "tracepath", f"-{version}", "-n", PROVIDER[version])
    assert re.search(r"Resume: pmtu 1280 hops 2 back 2", said), said
    assert router.punts()["too_big"] >= 1
    # and one who lets his packets be fragmented is not told, but carried
    if version == 4:
        before = router.punts()["too_big"]
        said = router.inside("lan2", "ping", "-n", "-c", "3", "-i", "0.1", "-M", "dont", "-s", "1400",
                             PROVIDER[4])
        assert "3 received" in said
        assert router.punts()["too_big"] == before + 3


@VERSIONS
def test_iperf(router, version):
    """Streams in both directions; none of their packets is the kernel's but for the first."""
    server = subprocess.Popen(["ip", "netns", "exec", router.prefix + "lan2", "iperf3", "-s", "-1", "--forceflush"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    with server:
        assert any("listening" in line for line in iter(server.stdout.readline, ""))
        ping(router, "lan1", lan(2, version))
        before = router.domain()
        said = json.loads(router.inside("lan1", "iperf3", "-c", lan(2, version), "-n", "20M", "-P", "2", "-J"))
        server.stdout.read()
    # what lies in buffers when the sender has done is not told as received
    assert said["end"]["sum_sent"]["bytes"] >= 20e6 and said["end"]["sum_received"]["bytes"] > 1e6
    after = router.domain()
    assert after["delivered"] - before["delivered"] < 50
    assert router.drops() == {}


@VERSIONS
def test_curl(router, version):
    page = b"over there\n" * 1000
    host = lan(2, version) if version == 4 else f"[{lan(2, version)}]"
    with router.socket("lan2", version, socket.SOCK_STREAM) as listener:
        listener.bind((lan(2, version), 80))
        listener.listen()

        def serve():
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + page)

        thread = threading.Thread(target=serve)
        thread.start()
        said = router.inside("lan1", "curl", "-s", f"http://{host}/")
        thread.join()
    assert said.encode() == page


def test_several_next_hops(router):
    """Flows are dealt to two next hops, each stays with its own, and moves when that one goes."""
    router.inside("lan2", "ip", "address", "add", PROVIDER[4] + "/32", "dev", "lo")
    router.ip("route replace default nexthop via 10.3.0.2 nexthop via 10.2.0.2")
    router.known("10.3.0.2")
    router.known("10.2.0.2")
    router.until(lambda: len(router.ask("route show", lookup=PROVIDER[4])[0]["hops"]) == 2, "both")
    n = 200

    with contextlib.ExitStack() as stack:
        ends = [stack.enter_context(router.socket(name, 4, socket.SOCK_DGRAM)) for name in ("isp", "lan2")]
        for end in ends:
            end.bind((PROVIDER[4], 7))
        senders = [stack.enter_context(router.socket("lan1", 4, socket.SOCK_DGRAM)) for _ in range(n)]

        def heard():
            """Sends one datagram of each flow; where each arrived."""
            for number, sender in enumerate(senders):
                sender.sendto(str(number).encode(), (PROVIDER[4], 7))
            where = {}
            for end in ends:
                end.setblocking(False)
            deadline = time.monotonic() + 30 * SLOWER
            while len(where) < n and time.monotonic() < deadline:
                for side, end in enumerate(ends):
                    with contextlib.suppress(BlockingIOError):
                        while True:
                            number = int(end.recv(16))
                            assert number not in where
                            where[number] = side
            assert len(where) == n, router.drops()
            return where

        first = heard()
        assert 50 < sum(first.values()) < 150
        assert heard() == first
        router.ip("route replace default via 10.3.0.2")
        router.until(lambda: len(router.ask("route show", lookup=PROVIDER[4])[0]["hops"]) == 1, "one")
        # those of the other one stayed where they were, and these are there, too
        router.until(lambda: sum(heard().values()) == 0, "all flows have moved")
    assert router.drops() == {}


def test_routes_that_drop(router):
    router.ip("route add blackhole 203.0.113.0/24")
    router.ip("route add unreachable 192.0.2.0/24")
    router.until(lambda: router.ask("route show", lookup="192.0.2.1")[0]["kind"] == "unreachable"
                 and router.ask("route show", lookup="203.0.113.1")[0]["kind"] == "blackhole", "both")
    router.inside("lan1", "ping", "-c", "2", "-i", "0.1", "-W", "1", "203.0.113.1", code=1)
    assert router.drops() == {"blackhole": 2}
    said = router.inside("lan1", "ping", "-c", "2", "-i", "0.1", "-W", "1", "192.0.2.1", code=1)
    assert "Destination Host Unreachable" in said


def test_links_and_the_table_go(router):
    """A link that goes down takes its routes along; a table that is flushed is followed; all of it comes back."""

    def kinds(prefix):
        return [line["kind"] for line in router.ask("route show", prefix=prefix) if line["prefix"] == prefix]

    ping(router, "lan1", lan(2, 4))
    router.ip("link set eth2 down")
    router.until(lambda: not any(hop["link"] == "eth2" for hop in
                                 router.ask("route show", lookup=lan(2, 4))[0]["hops"]), "the route is gone")
    router.ip("link set eth2 up")
    router.until(lambda: router.ask("route show", lookup=lan(2, 4))[0]["hops"][0]["link"] == "eth2", "it is back")
    ping(router, "lan1", lan(2, 4))
    router.ip("route flush table main")
    router.until(lambda: kinds("10.2.0.0/24") == [], "nothing is left")
    router.inside("lan1", "ping", "-c", "1", "-W", "1", lan(2, 4), code=1)
    router.ip("route add 10.2.0.0/24 dev eth2")
    router.ip("route add 10.1.0.0/24 dev eth1")
    router.until(lambda: kinds("10.1.0.0/24") == ["unicast"], "routes are back")
    ping(router, "lan1", lan(2, 4))


def test_what_is_shown(router):
    """The words of the client, as text and as JSON."""
    ping(router, "lan1", lan(2, 4))
    said = router.client("route", "show", "lookup", PROVIDER[4])
    assert re.fullmatch(r"0\.0\.0\.0/0 via 10\.3\.0\.2 dev eth3( mac \S+| not resolved) proto boot metric 0\n", said)
    lines = [json.loads(line) for line in router.client("route", "show", "--json").splitlines()]
    assert {"10.1.0.0/24", "10.2.0.0/24", "10.3.0.0/24", "0.0.0.0/0", "::/0"} <= {line["prefix"] for line in lines}
    assert "10.2.0.2 dev eth2 mac " in router.client("neighbour", "show")
    assert router.client("domain", "show").startswith(" 0: router r1, ports p1 p2 p3; ")


@pytest.fixture
def speaker():
    need("ip", "ethtool", "ping", "sysctl", "/usr/lib/frr/bgpd", "vtysh")
    # FRR's user has to reach its directory
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        os.chmod(place, 0o755)
        made = Router(pathlib.Path(place) / "bgp", SCRIPT.with_name("bgp.sh"))
        try:
            made.script("up")
            yield made
            check_wires(made.ask("wire show"))
        finally:
            made.script("down")


def test_bgp(speaker):
    """A path is withdrawn while a flow takes it, and comes back: the flow goes by the other one meanwhile."""
    there = "203.0.113.1"

    def goes_by(gateway):
        routes = speaker.ask("route show", lookup=there)
        return [hop["gateway"] for route in routes for hop in route["hops"]] == [gateway]

    def comes_by(name):
        # each end has a counter of its own: what its loopback's address was sent
        return int(speaker.inside(name, "awk", "/^Icmp: [0-9]/ {print $10}", "/proc/net/snmp"))

    speaker.until(lambda: goes_by("10.3.0.2"), "the provider's path", 90)
    speaker.known("10.3.0.2")
    speaker.known("10.2.0.2")
    ping(speaker, "lan1", there)
    flow = ["ping", "-n", "-i", "0.02", "-c", "200", "-W", "2", there]
    with subprocess.Popen(["ip", "netns", "exec", speaker.prefix + "lan1", *flow], text=True,
                          stdout=subprocess.PIPE) as running:
        speaker.script("withdraw")
        speaker.until(lambda: goes_by("10.2.0.2"), "the other path")
        said = running.stdout.read()
    received = int(re.search(r"(\d+) received", said)[1])
    assert received >= 195, said[-300:]
    assert comes_by("lan2") > 0
    before = comes_by("lan2")
    speaker.script("announce")
    speaker.until(lambda: goes_by("10.3.0.2"), "the provider's path again")
    ping(speaker, "lan1", there)
    assert comes_by("lan2") == before
    assert speaker.drops() == {}
