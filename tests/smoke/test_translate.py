# SPDX-License-Identifier: BSD-3-Clause
"""Hosts talk to a virtual address, which action programs translate: both kernels accept every packet.

    client (10.77.0.1) -- va [translate_wire] vb -- server (10.77.0.2, for others 10.77.0.100)

The client knows the virtual address alone. Each host has the translator's MAC address for the other one, so that a
frame whose MAC addresses were not rewritten is not accepted either.
"""
import contextlib
import ctypes
import functools
import hashlib
import http.server
import json
import os
import pathlib
import random
import select
import signal
import socket
import subprocess
import sys
import threading

import frames  # pylint: disable=unused-import  # it silences scapy
import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6
from scapy.layers.l2 import Ether
from scapy.layers.sctp import SCTP, SCTPChunkData
from scapy.packet import Raw

import sctp_peer
import traffic
from engine import MILLRACE, SLOWER
from network import AF_PACKET, INTERFACES, ring_bytes

pytestmark = pytest.mark.needs("ping")

TOOL = pathlib.Path(MILLRACE).parent / "tests" / "translate_wire"
MAC = "02:00:00:00:00:99"
VIRTUAL, VIRTUAL6 = "10.77.0.100", "fd77::100"
# Of the service whose port is translated too, where ports are.
PORT, REAL_PORT = 80, 8080
IPERF_PORT = 5201
ALL_FRAMES = 3
# The ends of the names of what the kernel counts of packets that it does not accept.
COUNTERS = ("InCsumErrors", "InHdrErrors", "ReasmFails", "ChecksumErrors")


def device(number, name):
    return (f"net_af_packet{number},iface={name},blocksz=65536,framesz=2048,"
            f"framecnt={ring_bytes() // 2048}")


class Translator:
    """A translate_wire in the middle namespace; stop() is the end as it should be."""

    def __init__(self, net, names, *arguments):
        self.process = net.middle.popen(
            TOOL, "--client", device(0, names[0]), "--server", device(1, names[1]), *arguments,
            stdout=subprocess.PIPE, text=True)
        ready = select.select([self.process.stdout], [], [], 30 * SLOWER)[0]
        if not ready or self.process.stdout.readline() != "ready\n":
            self.close()
            raise AssertionError("translate_wire does not start")

    def close(self):
        if self.process.returncode is None:
            self.process.kill()
            self.process.communicate()

    def stop(self):
        """Every packet that came has left."""
        self.process.send_signal(signal.SIGTERM)
        counted = json.loads(self.process.communicate(timeout=30 * SLOWER)[0])
        assert self.process.returncode == 0
        assert counted == {**counted, "out": counted["received"], "held": 0, "dropped": {}}
        assert counted["received"] > 0


def not_accepted(end):
    """{counter: packets} of those that the kernel of an end refused because of their headers or checksums."""
    found = {}
    with end.space.entered():
        for name in ("snmp", "netstat", "snmp6", "sctp/snmp"):
            path = pathlib.Path("/proc/thread-self/net") / name
            lines = path.read_text(encoding="ascii").splitlines() if path.exists() else []
            if name in ("snmp", "netstat"):
                rows = [(f"{keys.split(':')[0]}{key}", value) for keys, values in
                        zip(lines[::2], lines[1::2])
                        for key, value in zip(keys.split()[1:], values.split()[1:])]
            else:
                rows = [line.split() for line in lines]
            found.update({key: int(value) for key, value in rows if key.endswith(COUNTERS)})
    assert {"TcpInCsumErrors", "UdpInCsumErrors", "IcmpInCsumErrors", "IpExtInCsumErrors",
            "Udp6InCsumErrors", "Icmp6InCsumErrors"} <= set(found)
    return {key: value for key, value in found.items() if value}


class Host:
    """The client's view: where the service is, and where it really is."""

    def __init__(self, net, ports_differ):
        self.net = net
        self.client, self.server = net.ends
        self.port = PORT if ports_differ else REAL_PORT

    def virtual(self, version):
        return VIRTUAL if version == 4 else VIRTUAL6

    def sockets(self, version, kind, proto=0):
        """The client's, unbound, and the server's, bound."""
        family = socket.AF_INET if version == 4 else socket.AF_INET6
        address = self.server.address if version == 4 else self.server.address6
        stack = contextlib.ExitStack()
        client, server = (stack.enter_context(end.space.socket(family, kind, proto))
                          for end in (self.client, self.server))
        for sock in (client, server):
            sock.settimeout(60 * SLOWER)
        server.bind((address, REAL_PORT))
        return stack, client, server


@pytest.fixture(name="translated")
def make_translated(network):
    """translated(argument...): hosts with a translator between them; tagged: and VLAN tags on a part of the way."""
    if not os.access(TOOL, os.X_OK):
        pytest.skip(f"no program at {TOOL}: it is built with the tests")
    with contextlib.ExitStack() as stack:
        def make(*arguments, tagged=False):
            net = network(AF_PACKET)
            client, server = net.ends
            for end, others in ((client, (VIRTUAL, VIRTUAL6)),
                                (server, (client.address, client.address6))):
                end.space.ip(*(f"neigh replace {other} lladdr {MAC} nud permanent dev end"
                               for other in others))
            arguments = ["--macs", f"{MAC},{client.mac},{server.mac}",
                         "--address", f"{VIRTUAL}={server.address}",
                         "--address", f"{VIRTUAL6}={server.address6}", *arguments]
            names, more = INTERFACES, []
            if tagged:
                net.middle.ip("link add vc type veth peer name vd", "link set vc up",
                              "link set vd up")
                names = (INTERFACES[0], "vc")
                arguments += ["--push", 77]
                more = [Translator(net, ("vd", INTERFACES[1]), "--pop", 77,
                                   "--address", f"{server.address}={server.address}",
                                   "--address", f"{server.address6}={server.address6}")]
                stack.callback(more[0].close)
            translators = [Translator(net, names, *arguments), *more]
            stack.callback(translators[0].close)
            return Host(net, "--port" in arguments), translators
        yield make


PORTS = ["--port", f"{PORT}={REAL_PORT}", "--hop-limit"]
SHAPES = {
    "addresses": ([], {}),
    "ports-2-strict": ([*PORTS, "--workers", 2, "--tcp-strict"], {}),
    "ports-tags": (PORTS, {"tagged": True}),
}


@pytest.fixture(name="hosts", params=SHAPES.values(), ids=SHAPES.keys())
def make_hosts(request, translated):
    """Hosts that have to accept everything, to the end."""
    arguments, options = request.param
    hosts, translators = translated(*arguments, **options)
    yield hosts
    for translator in translators:
        translator.stop()
    for end in hosts.net.ends:
        assert not_accepted(end) == {}, end.space.name


def test_ping(hosts):
    """Also of odd lengths, and in fragments."""
    for size in (0, 1, 56, 1471, 1472, 1473, 4000, 4001, 20000):
        for version in (4, 6):
            traffic.ping(hosts.client, hosts.virtual(version), "-s", size, count=2)


class Web(traffic.Web):
    """Its file, over either version."""

    protocol_version = "HTTP/1.1"


def web_server(family):
    """A class of servers: what a server's address is stands in its class."""
    return type("WebServer", (http.server.ThreadingHTTPServer,), {"address_family": family})


@pytest.mark.needs("curl")
@pytest.mark.parametrize("version", [4, 6])
def test_curl(hosts, version):
    """20 MB, twice over one connection."""
    family = socket.AF_INET if version == 4 else socket.AF_INET6
    address = hosts.server.address if version == 4 else hosts.server.address6
    with hosts.server.space.entered():
        server = web_server(family)((address, REAL_PORT), Web)
    thread = threading.Thread(target=functools.partial(server.serve_forever, poll_interval=0.05))
    thread.start()
    place = hosts.virtual(version) if version == 4 else f"[{hosts.virtual(version)}]"
    try:
        got = hosts.client.space.popen("curl", "-sS", "--noproxy", "*",
                                       *[f"http://{place}:{hosts.port}/"] * 2,
                                       stdout=subprocess.PIPE)
        try:
            data = got.communicate(timeout=120 * SLOWER)[0]
        finally:
            got.kill()
        assert got.returncode == 0
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert hashlib.sha256(data).digest() == hashlib.sha256(Web.body * 2).digest()


@contextlib.contextmanager
def in_thread(function, *arguments):
    """Meanwhile it runs; what it raises is raised at the end."""
    failures = []

    def run():
        try:
            function(*arguments)
        except BaseException as failure:  # pylint: disable=broad-exception-caught
            failures.append(failure)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    if failures:
        raise failures[0]


def echo_stream(server):
    with contextlib.closing(server.accept()[0]) as sock:
        sock.settimeout(60 * SLOWER)
        while piece := sock.recv(65536):
            sock.sendall(piece)


def exchange_stream(hosts, version, proto):
    """Megabytes go to the server and come back at the same time."""
    data = random.Random(version).randbytes(4 * traffic.MEGABYTES)
    got = bytearray()
    stack, client, server = hosts.sockets(version, socket.SOCK_STREAM, proto)
    with stack:
        server.listen(1)
        with in_thread(echo_stream, server):
            client.connect((hosts.virtual(version), hosts.port))
            assert client.getpeername()[:2] == (hosts.virtual(version), hosts.port)
            with in_thread(client.sendall, data):
                while len(got) < len(data):
                    piece = client.recv(65536)
                    assert piece, "the server ended too soon"
                    got += piece
            client.shutdown(socket.SHUT_WR)
            assert client.recv(1) == b""
    assert bytes(got) == data


@pytest.mark.parametrize("version", [4, 6])
def test_tcp_both_ways(hosts, version):
    exchange_stream(hosts, version, socket.IPPROTO_TCP)


@pytest.mark.parametrize("version", [4, 6])
def test_sctp_both_ways(hosts, version):
    """Where the kernel has SCTP; the two tests below need none."""
    try:
        hosts.client.space.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_SCTP).close()
    except OSError as error:
        traffic.ping(hosts.client, hosts.virtual(4), count=1)
        pytest.skip(f"the kernel has no SCTP: {error.strerror}")
    exchange_stream(hosts, version, socket.IPPROTO_SCTP)


@pytest.mark.parametrize("version", [4, 6])
def test_sctp_of_user_space(hosts, version):
    """The same with usrsctp: messages come back whole, and no checksum was wrong at either end."""
    traffic.ping(hosts.client, hosts.virtual(version), count=1)
    try:
        ctypes.CDLL(sctp_peer.LIBRARY)
    except OSError:
        pytest.skip(f"no {sctp_peer.LIBRARY} here (Debian: libusrsctp2)")
    key = "address" if version == 4 else "address6"
    command = [sys.executable, sctp_peer.__file__]
    server = hosts.server.space.popen(*command, "server", getattr(hosts.server, key), REAL_PORT,
                                      stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout.readline() == "ready\n"
        done = hosts.client.space.run(*command, "client", getattr(hosts.client, key), 7,
                                      hosts.virtual(version), hosts.port, timeout=60 * SLOWER)
        told = [done.stdout, server.communicate(timeout=60 * SLOWER)[0]]
    finally:
        server.kill()
        server.communicate()
    for peer in map(json.loads, told):
        assert peer == {**peer, "damaged": 0} and peer["received"] >= sctp_peer.N_MESSAGES


@pytest.mark.parametrize("version", [4, 6])
def test_udp_both_ways(hosts, version):
    """Datagrams of all kinds of lengths come back, from the address that they were sent to; long ones in fragments."""
    lengths = [*range(0, 40), 511, 512, 1400, 1451, 1452, 1471, 1472, 1473, 3000, 4001, 20000, 40001]
    stack, client, server = hosts.sockets(version, socket.SOCK_DGRAM)
    with stack:
        for length in lengths:
            data = random.Random(length).randbytes(length)
            client.sendto(data, (hosts.virtual(version), hosts.port))
            got, peer = server.recvfrom(65536)
            assert got == data
            server.sendto(data, peer)
            got, peer = client.recvfrom(65536)
            assert got == data and peer[:2] == (hosts.virtual(version), hosts.port)


@pytest.mark.needs("iperf3")
@pytest.mark.parametrize("version", [4, 6])
def test_iperf(hosts, version):
    """TCP and UDP, both ways; no datagram is lost."""
    server = traffic.Iperf(hosts.server)
    # a client connects to what this says
    target = type("Target", (), {"address": hosts.virtual(version)})
    with contextlib.closing(server):
        server.end = target
        for way in ((), ("-R",)):
            told = server.run(hosts.client, "-n", "10M", "-w", traffic.WINDOW, *way)
            assert told["sum_received"]["bytes"] > 9 * traffic.MEGABYTES
        for way in ((), ("-R",)):
            told = server.run(hosts.client, "-u", "-l", 1400, "-b", "20M", "-n", "1M", "-w", "2M",
                              *way)
            assert told["sum"]["lost_packets"] == 0 and told["sum"]["packets"] > 700, told["sum"]


@contextlib.contextmanager
def raw(end):
    """A socket for every frame of an end."""
    with end.space.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_FRAMES)) as sock:
        sock.setsockopt(263, 23, 1)  # SOL_PACKET, PACKET_IGNORE_OUTGOING
        sock.bind(("end", ALL_FRAMES))
        sock.settimeout(30 * SLOWER)
        yield sock


def next_of(sock, version, proto):
    """The next frame of a protocol, whatever else comes."""
    while True:
        frame = sock.recv(2048)
        packet = Ether(frame)
        header = packet.getlayer(IP if version == 4 else IPv6)
        if header is not None and proto == (header.proto if version == 4 else header.nh):
            return frame


@pytest.mark.parametrize("version", [4, 6])
def test_sctp_frames(hosts, version):
    """What arrives is, to the byte, what scapy makes of the other addresses: CRC32c and all."""
    def frame(macs, addresses, ports, hop_limit, number):
        addresses = dict(zip(("src", "dst"), addresses))
        header = (IP(ttl=hop_limit, id=number, **addresses) if version == 4 else
                  IPv6(hlim=hop_limit, **addresses))
        data = random.Random(number).randbytes(1 + number * 11)
        return bytes(Ether(src=macs[0], dst=macs[1]) / header /
                     SCTP(sport=ports[0], dport=ports[1], tag=number) /
                     SCTPChunkData(tsn=number, data=data))

    client, server, virtual = hosts.client, hosts.server, hosts.virtual(version)
    key = "address" if version == 4 else "address6"
    mine, real = getattr(client, key), getattr(server, key)
    hop = 63 if hosts.port == PORT else 64
    with raw(client) as left, raw(server) as right:
        for number in range(100):
            left.send(frame((client.mac, MAC), (mine, virtual), (7, hosts.port), 64, number))
            assert next_of(right, version, 132) == \
                frame((MAC, server.mac), (mine, real), (7, REAL_PORT), hop, number)
            right.send(frame((server.mac, MAC), (real, mine), (REAL_PORT, 7), 64, number))
            assert next_of(left, version, 132) == \
                frame((MAC, client.mac), (virtual, mine), (hosts.port, 7), hop, number)


def test_damaged_stays_damaged(translated):
    """A checksum that was wrong is not made right, and the kernel's counters tell."""
    hosts, translators = translated("--port", f"{PORT}={REAL_PORT}")
    client, server = hosts.client, hosts.server
    to = {4: Ether(src=client.mac, dst=MAC) / IP(src=client.address, dst=VIRTUAL),
          6: Ether(src=client.mac, dst=MAC) / IPv6(src=client.address6, dst=VIRTUAL6)}
    data = Raw(b"damaged")
    damaged = {
        "TcpInCsumErrors": to[4] / TCP(sport=7, dport=PORT, flags="S", chksum=0x1234),
        "UdpInCsumErrors": to[4] / UDP(sport=7, dport=PORT, chksum=0x1234) / data,
        "IcmpInCsumErrors": to[4] / ICMP(chksum=0x1234) / data,
        "Udp6InCsumErrors": to[6] / UDP(sport=7, dport=PORT, chksum=0x1234) / data,
        "Icmp6InCsumErrors": to[6] / ICMPv6EchoRequest(cksum=0x1234) / data,
    }
    with raw(client) as left, raw(server) as right:
        for frame in damaged.values():
            left.send(bytes(frame))
            right.recv(2048)
        traffic.ping(client, VIRTUAL, count=1)
    counted = not_accepted(server)
    assert {key: counted.get(key) for key in damaged} == dict.fromkeys(damaged, 1)
    translators[0].stop()
