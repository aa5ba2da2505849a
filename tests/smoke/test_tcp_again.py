# SPDX-License-Identifier: BSD-3-Clause
"""TCP of real kernels: hosts that come back on the same port, forged resets, a bad line.

Everything is strict: a segment that is wrongly taken to be outside the window is dropped, and the
hosts notice.
"""
import collections
import contextlib
import errno
import fcntl
import random
import select
import socket
import struct
import threading

import pytest

from engine import read_records
from network import AF_PACKET, INTERFACES, Network

import frames  # pylint: disable=unused-import  # it silences scapy
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether

pytestmark = pytest.mark.needs("root")

PORT, CLIENT = 5001, 40000
TCP_REPAIR = 19
PACKET_IGNORE_OUTGOING = 23
ALL_FRAMES = 3


def listener(end):
    server = end.space.socket(socket.AF_INET, socket.SOCK_STREAM)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((end.address, PORT))
    server.listen(64)
    server.settimeout(60)
    return server


def caller(end, port):
    client = end.space.socket(socket.AF_INET, socket.SOCK_STREAM)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.settimeout(60)
    client.bind((end.address, port))
    return client


def vanish(sock):
    """As when a machine loses its power: neither FIN nor RST."""
    sock.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
    sock.close()


def said(sock, n):
    """So many bytes; b"" at the end of the stream before them."""
    data = b""
    while len(data) < n:
        more = sock.recv(n - len(data))
        if not more:
            return data
        data += more
    return data


def exchange(client, server, asked=100, answered=1000):
    client.sendall(b"q" * asked)
    assert said(server, asked) == b"q" * asked
    server.sendall(b"a" * answered)
    assert said(client, answered) == b"a" * answered


def is_quiet(*socks):
    """Nothing that one of them has sent is on its way."""
    outq = 0x5411  # SIOCOUTQ
    return all(struct.unpack("i", fcntl.ioctl(sock, outq, b"\0" * 4))[0] == 0 for sock in socks)


def flow_between(engine, port):
    return next((flow for flow in engine.flows() if port in (flow["sport"], flow["dport"])), None)


def test_both_ends_vanish_and_come_back(network, millrace):
    net = network(AF_PACKET)
    engine = millrace("--tcp", "strict", "--output", "records.json", network=net)
    with contextlib.closing(listener(net.right)) as server:
        for _ in range(3):
            client = caller(net.left, CLIENT)
            client.connect((net.right.address, PORT))
            accepted = server.accept()[0]
            exchange(client, accepted)
            engine.until(lambda: is_quiet(client, accepted), "all is acknowledged")
            vanish(client)
            vanish(accepted)
    engine.idle()
    assert "tcp_window" not in engine.drops()
    engine.stop(leaves=["records.json"])
    records = read_records(engine.directory / "records.json")
    assert [record["end_reason"] for record in records] == ["idle", "idle", "shutdown"]
    assert all(record["src"] == net.left.address for record in records)


def test_one_end_vanishes_and_comes_back(network, millrace):
    """The other knows the old one: its challenge, and the RST that this asks for, have to arrive."""
    net = network(AF_PACKET)
    engine = millrace("--tcp", "strict", "--output", "records.json", network=net)
    with contextlib.closing(listener(net.right)) as server:
        first = caller(net.left, CLIENT)
        first.connect((net.right.address, PORT))
        old = server.accept()[0]
        exchange(first, old)
        vanish(first)
        with contextlib.closing(caller(net.left, CLIENT)) as client:
            client.connect((net.right.address, PORT))
            with contextlib.closing(server.accept()[0]) as accepted:
                exchange(client, accepted)
        with pytest.raises(ConnectionResetError):
            old.recv(1)
        old.close()
    engine.idle()
    assert "tcp_window" not in engine.drops()
    engine.stop(leaves=["records.json"])
    reasons = [record["end_reason"] for record in read_records(engine.directory / "records.json")]
    assert reasons[0] == "rst" and len(reasons) == 2


@pytest.mark.parametrize("beyond", [5000, 1, -1])
def test_a_blind_rst(network, millrace, beyond):
    """The receiver answers it and goes on (RFC 5961), and so does the engine, in one record."""
    net = network(AF_PACKET)
    engine = millrace("--tcp", "strict", "--output", "records.json", network=net)
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(contextlib.closing(listener(net.right)))
        client = stack.enter_context(contextlib.closing(caller(net.left, CLIENT)))
        raw = stack.enter_context(net.left.space.socket(
            socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_FRAMES)))
        raw.setsockopt(263, PACKET_IGNORE_OUTGOING, 0)
        raw.bind(("end", ALL_FRAMES))
        raw.settimeout(30)
        client.connect((net.right.address, PORT))
        accepted = stack.enter_context(contextlib.closing(server.accept()[0]))
        exchange(client, accepted)
        sent = 0
        while True:  # until the client's last acknowledgement, of all that was answered
            packet = Ether(raw.recv(2048))
            if TCP in packet and packet[TCP].sport == CLIENT:
                length = packet[IP].len - 20 - packet[TCP].dataofs * 4
                following = packet[TCP].seq + length + ("S" in packet[TCP].flags)
                sent += length
                if sent == 100 and length == 0:
                    break
        forged = (Ether(src=net.left.mac, dst=net.right.mac) /
                  IP(src=net.left.address, dst=net.right.address) /
                  TCP(sport=CLIENT, dport=PORT, flags="R", seq=(following + beyond) % (1 << 32)))
        before = engine.wire()["received"]
        raw.send(bytes(forged))
        engine.until(lambda: engine.wire()["received"] > before, "the RST came")
        for _ in range(120):
            exchange(client, accepted)
        assert flow_between(engine, CLIENT)["state"] == "open"
    engine.until(lambda: flow_between(engine, CLIENT)["state"] == "closing", "it closes")
    engine.idle()
    assert "tcp_window" not in engine.drops()
    engine.stop(leaves=["records.json"])
    assert len(read_records(engine.directory / "records.json")) == 1


# -------------------------------------------------------------------------------- a bad line


class BadLine(Network):
    """The same network, with a relay on either side of the engine that loses and delays frames."""

    def make_veths(self):
        middle = self.middle
        for name, end in zip(INTERFACES, self.ends):
            middle.ip(f"link add r{name} mtu {self.mtu} type veth peer name end "
                      f"netns {end.space.path}",
                      f"link add {name} mtu {self.mtu} type veth peer name x{name}",
                      *(f"link set {link} multicast off arp off addrgenmode none up"
                        for link in (name, f"x{name}", f"r{name}")))
        self.settle_ends()

    def check_nothing_left(self):
        assert all(link in self.middle.links() for link in INTERFACES)


class Relay:
    """Carries frames between two interfaces until it is closed; some it loses, some it swaps.

    Of ports in `dark` it carries no RST: whoever lost its power does not answer a late segment.
    """

    def __init__(self, space, one, other, seed, dark, lost=2, swapped=4):
        self.random, self.lost, self.swapped = random.Random(seed), lost, swapped
        self.dark = dark
        self.sockets = []
        for name in (one, other):
            sock = space.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_FRAMES))
            sock.setsockopt(263, PACKET_IGNORE_OUTGOING, 1)
            sock.bind((name, ALL_FRAMES))
            self.sockets.append(sock)
        self.over = socket.socketpair()
        self.kept = [None, None]
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def close(self):
        self.over[0].send(b"x")
        self.thread.join()
        for sock in (*self.sockets, *self.over):
            sock.close()

    def is_dark(self, frame):
        if not self.dark or len(frame) < 54 or frame[12:14] != b"\x08\0" or frame[23] != 6:
            return False
        return frame[47] & 4 and not self.dark.isdisjoint(struct.unpack("!HH", frame[34:38]))

    def carry(self, way, frame):
        chance = self.random.randrange(100)
        if chance < self.lost or self.is_dark(frame):
            return
        if chance < self.lost + self.swapped and self.kept[way] is None:
            self.kept[way] = frame
            return
        for each in (frame, self.kept[way]):
            if each is not None:
                self.sockets[1 - way].send(each)
        self.kept[way] = None

    def run(self):
        while True:
            ready = select.select([*self.sockets, self.over[1]], [], [], 0.05)[0]
            if self.over[1] in ready:
                return
            for way, sock in enumerate(self.sockets):
                if sock in ready:
                    self.carry(way, sock.recv(4096))
                elif not ready and self.kept[way] is not None:
                    self.sockets[1 - way].send(self.kept[way])
                    self.kept[way] = None


def of_port(space, port):
    """The states of the kernel's sockets of this port, but for those that only listen or wait."""
    with space.entered(), open("/proc/thread-self/net/tcp", encoding="ascii") as file:
        lines = [line.split() for line in file.readlines()[1:]]
    return [line[3] for line in lines if line[3] not in ("06", "0A") and
            port in (int(line[1].split(":")[1], 16), int(line[2].split(":")[1], 16))]


KINDS = ("client closes", "server closes", "half closed", "client resets", "server resets",
         "both vanish", "client vanishes")
REASONS = {"client closes": "fin", "server closes": "fin", "half closed": "fin",
           "client resets": "rst", "server resets": "rst", "client vanishes": "rst",
           "both vanish": "idle"}


class Host(threading.Thread):
    """One client port, over and over; what its two ends know of each conversation is in `reasons`."""

    def __init__(self, net, port, count, desk, until, dark):
        super().__init__()
        self.net, self.port, self.count, self.desk, self.until = net, port, count, desk, until
        self.dark = dark
        self.random = random.Random(port)
        self.reasons, self.failure, self.old = [], None, []

    def run(self):
        try:
            for number in range(self.count):
                kind = self.random.choice(KINDS)
                if number == self.count - 1 and REASONS[kind] == "rst":
                    kind = "client closes"  # nobody comes who would bring it to light
                self.talk(kind)
                self.reasons.append(REASONS[kind])
        except BaseException as failure:  # pylint: disable=broad-exception-caught
            self.failure = failure
        for sock in self.old:
            sock.close()

    def connect(self):
        def connected():
            client = caller(self.net.left, self.port)
            try:
                client.connect((self.net.right.address, PORT))
                return client
            except OSError as error:
                client.close()
                if error.errno in (errno.EADDRNOTAVAIL, errno.EADDRINUSE):
                    return None  # the last one waits for stragglers
                raise

        client = self.until(connected, "the port is free", timeout=90)
        return client, self.desk.take(client.getsockname()[1])

    def talk(self, kind):
        client, server = self.connect()
        self.dark.discard(self.port)
        for _ in range(self.random.randrange(1, 5)):
            exchange(client, server, self.random.randrange(1, 5000), self.random.randrange(1, 5000))
        reset = struct.pack("ii", 1, 0)
        if kind == "both vanish":
            self.until(lambda: is_quiet(client, server), "all is acknowledged")
            self.dark.add(self.port)
            vanish(client)
            vanish(server)
        elif kind == "client vanishes":
            self.until(lambda: is_quiet(client, server), "all is acknowledged")
            vanish(client)
            self.old.append(server)  # it learns of it by the next SYN
        elif kind.endswith("resets"):
            first, second = (client, server) if kind == "client resets" else (server, client)
            self.until(lambda: is_quiet(client, server), "all is acknowledged")
            first.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
            first.close()
            for option, value in ((socket.TCP_KEEPIDLE, 1), (socket.TCP_KEEPINTVL, 1)):
                with contextlib.suppress(OSError):
                    second.setsockopt(socket.IPPROTO_TCP, option, value)
            with contextlib.suppress(OSError):
                second.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            with contextlib.suppress(ConnectionResetError):
                assert second.recv(1) == b"x", "a RST was lost, and a FIN came"
            second.close()
        else:
            self.finish(kind, client, server)

    def finish(self, kind, client, server):
        first, second = (server, client) if kind == "server closes" else (client, server)
        first.shutdown(socket.SHUT_WR)
        assert second.recv(1) == b""
        if kind == "half closed":
            second.sendall(b"z" * 3000)
            assert said(first, 3000) == b"z" * 3000
        second.shutdown(socket.SHUT_WR)
        assert first.recv(1) == b""
        client.close()
        server.close()
        self.until(lambda: not of_port(self.net.left.space, self.port) and
                   not of_port(self.net.right.space, self.port), "both kernels have closed")


class Desk(threading.Thread):
    """Accepts, and hands each to whoever asks for the client's port."""

    def __init__(self, server):
        super().__init__()
        self.server, self.over = server, False
        self.waiting, self.changed = collections.defaultdict(list), threading.Condition()

    def run(self):
        while True:
            try:
                sock, peer = self.server.accept()
            except OSError:
                return
            sock.settimeout(60)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.changed:
                self.waiting[peer[1]].append(sock)
                self.changed.notify_all()

    def take(self, port):
        with self.changed:
            assert self.changed.wait_for(lambda: self.waiting[port], 60), "nobody was accepted"
            return self.waiting[port].pop()


def test_two_hundred_conversations_over_a_bad_line(millrace):
    """What both kernels know of each is what the records say: how many, who began, how it ended."""
    ports, each, dark = range(30000, 30020), 10, set()
    with contextlib.ExitStack() as stack:
        net = stack.enter_context(contextlib.closing(BadLine(AF_PACKET)))
        net.left.space.set("ipv4/tcp_tw_reuse", 1)
        engine = millrace("--tcp", "strict", "--output", "records.json", network=net)
        for seed, name in enumerate(INTERFACES):
            stack.enter_context(contextlib.closing(
                Relay(net.middle, f"r{name}", f"x{name}", seed, dark)))
        server = listener(net.right)
        desk = Desk(server)
        desk.start()
        hosts = [Host(net, port, each, desk, engine.until, dark) for port in ports]
        for host in hosts:
            host.start()
        for host in hosts:
            host.join()
        server.shutdown(socket.SHUT_RDWR)
        desk.join()
        server.close()
        for host in hosts:
            if host.failure:
                raise host.failure
        engine.idle()
        engine.stop(leaves=["records.json"])
        records = read_records(engine.directory / "records.json")
    wrong = []
    for host in hosts:
        mine = sorted((record for record in records if host.port in (record["sport"],
                       record["dport"])), key=lambda record: record["start"])
        told = [record["end_reason"] for record in mine]
        expected = list(host.reasons)
        if expected[-1] == "idle":
            expected[-1] = "shutdown"
        if told != expected or any(record["sport"] != host.port for record in mine):
            wrong.append(f"{host.port}: expected {expected}, told {told}")
    assert not wrong, "\n".join(wrong)
    assert sum(len(host.reasons) for host in hosts) == len(ports) * each
