# SPDX-License-Identifier: BSD-3-Clause
"""Frames that do not fit: what is sent arrives whole, or is dropped under a name; MTUs change meanwhile."""
import contextlib
import fcntl
import os
import random
import select
import socket
import struct
import time

import pytest

import traffic
from engine import SLOWER, Connection
from network import AF_PACKET, AF_XDP, TAP

DRIVERS = pytest.mark.parametrize("driver", [AF_PACKET, AF_XDP, TAP])
LENGTHS = [1450, 1650, 1900, 1950, 2010, 2050, 2150, 3050, 4050, 8050]
HEADERS = 14 + 20 + 8


def events_until(follower, **wanted):
    """Reads events up to one with these keys."""
    while True:
        event = follower.next()
        if all(event.get(key) == value for key, value in wanted.items()):
            return event


class Listener:
    """Every frame that comes to an end, whole, as long as it listens; its datagrams are taken in silence."""

    def __init__(self, end):
        space = end.space
        self.sink = space.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with space.entered():
            self.sink.bind((end.address, 9))
        self.socket = space.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self.socket.setsockopt(263, 23, 1)  # SOL_PACKET, PACKET_IGNORE_OUTGOING
        with space.entered():
            self.socket.bind(("end", 3))
        self.socket.setblocking(False)
        self.frames = []

    def take(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                self.frames.append(self.socket.recv(70000))
        return self.frames

    def close(self):
        self.socket.close()
        self.sink.close()


@pytest.fixture(name="listening")
def make_listening():
    with contextlib.ExitStack() as stack:
        yield lambda end: stack.enter_context(contextlib.closing(Listener(end)))


def send_datagrams(net, lengths, port=9):
    """Datagrams whose frames have these lengths, but for those that this end refuses; how many."""
    sent = 0
    with net.left.space.socket(socket.AF_INET, socket.SOCK_DGRAM) as outbox:
        outbox.setsockopt(socket.IPPROTO_IP, 10, 2)  # IP_MTU_DISCOVER: not in fragments
        for length in lengths:
            with contextlib.suppress(OSError):  # EMSGSIZE: above this end's own MTU
                outbox.sendto(bytes(length - HEADERS), (net.right.address, port))
                sent += 1
    return sent


def check_whole(frames):
    """By the IP header's own word."""
    for frame in frames:
        if frame[12:14] == b"\x08\x00":
            assert len(frame) - 14 >= struct.unpack_from("!H", frame, 16)[0], "a cut frame came out"


def lost_before(engine, port="a"):
    """Frames that the kernel or the driver had no room for: they were never received."""
    nic = engine.ports()[port]["nic"]
    return nic["rx_missed"] + nic["rx_errors"]


def set_mtu(spaces, mtu):
    """Of interfaces; those that refuse stay."""
    for space, name in spaces:
        space.run("ip", "link", "set", name, "mtu", mtu, check=False)


@DRIVERS
def test_mtu_raised(network, millrace, listening, driver):
    """All MTUs are raised while it runs: no frame leaves cut, each arrives or has a reason."""
    net = network(driver)
    engine = millrace(network=net)
    arrived = listening(net.right)
    own = [] if driver == TAP else [(net.middle, "va"), (net.middle, "vb")]
    with Connection(engine.socket) as follower, engine.watched():
        follower.send("event follow", flows=False)
        set_mtu([(net.left.space, "end"), (net.right.space, "end"), *own], 9000)
        if driver != AF_XDP:  # the kernel keeps that one as it is
            for port in "ab":
                assert events_until(follower, event="mtu", port=port)["mtu"] == 9000
            assert {port["mtu"] for port in engine.ports().values()} == {9000}
            assert "millrace: b: MTU 9000" in engine.stderr
        sent = send_datagrams(net, LENGTHS)
        # the kernel keeps both ends of a veth with an XDP program as they are
        assert sent == (1 if driver == AF_XDP else len(LENGTHS))
        unfit = [length for length in LENGTHS if length > 1982]
        engine.until(lambda: engine.wire()["received"] + lost_before(engine) == sent, "all came")
        if driver == AF_PACKET:
            assert engine.wire()["received"] == sent
            assert engine.drops() == {"cut": len(unfit)}
            events_until(follower, event="frames_cut", port="a")
    wire = engine.idle()
    assert wire["received"] == wire["out"] + wire["dropped"]
    engine.until(lambda: len(arrived.take()) == wire["out"], "what went out arrives")
    check_whole(arrived.frames)
    if driver == AF_PACKET:
        assert [len(frame) for frame in arrived.frames] == [1450, 1650, 1900, 1950]
        assert "ethtool -K va gro off" in engine.stderr
    engine.stop()


@pytest.mark.parametrize("driver", [AF_PACKET, AF_XDP])
def test_mtu_changes(network, millrace, listening, driver):
    """That of the outgoing port, and of its other end, down and up: told, true, and heeded to the byte."""
    net = network(driver)
    engine = millrace(network=net)
    arrived = listening(net.right)
    sent, good = 0, []

    def cross(longest):
        """Around the longest frame that fits."""
        nonlocal sent
        lengths = [longest - 1, longest, longest + 1, longest + 40, 100]
        send_datagrams(net, [length for length in lengths if length <= 1514])
        sent += len([length for length in lengths if length <= 1514])
        good.extend(length for length in lengths if length <= min(longest, 1514))
        engine.until(lambda: engine.wire()["received"] == sent, "all came")
        engine.until(lambda: len(arrived.take()) == len(good), "what fits arrives")
        assert [len(frame) for frame in arrived.frames] == good
        wire = engine.idle()
        assert (wire["out"], wire["dropped"]) == (len(good), sent - len(good))

    with Connection(engine.socket) as follower:
        follower.send("event follow", flows=False)
        cross(1514)
        # what the other end takes: four bytes more, as if there were a tag
        for mtu in (1200, 1400):
            net.right.space.ip(f"link set end mtu {mtu}")
            assert events_until(follower, event="mtu", port="b", mtu=1500)["far_mtu"] == mtu
            assert engine.ports()["b"]["far_mtu"] == mtu
            assert f"and {mtu} at the other end of vb" in engine.stderr
            cross(mtu + 18)
            if mtu == 1200:
                events_until(follower, event="frames_too_long", port="b")
        net.right.space.ip("link set end mtu 1500")
        assert events_until(follower, event="mtu", port="b", mtu=1500)["far_mtu"] == 1500
        cross(1514)
        # its own; af_xdp has room for two tags whether there are any or not
        overhead = 14 if driver == AF_PACKET else 22
        for mtu in (600, 1000):
            net.middle.ip(f"link set vb mtu {mtu}")
            events_until(follower, event="mtu", port="b", mtu=mtu)
            assert engine.ports()["b"]["mtu"] == mtu
            assert f"a has MTU 1500 and b MTU {mtu}" in engine.stderr
            cross(mtu + overhead)
        net.middle.ip("link set vb mtu 1500")
        events_until(follower, event="mtu", port="b", mtu=1500)
        cross(1514)
    assert engine.drops() == {"too_long": sent - len(good)}
    engine.stop()


@pytest.mark.needs("ping")
@DRIVERS
def test_the_other_end_takes_less(network, millrace, listening, driver):
    """One long frame for a host behind a smaller MTU: the others' pings pass, before and after."""
    net = network(driver)
    net_mtu = 1400
    if driver != TAP:
        net.right.space.ip(f"link set end mtu {net_mtu}")
    engine = millrace(network=net)
    if driver != TAP:
        engine.until(lambda: engine.ports()["b"].get("far_mtu") == net_mtu, "the MTU is seen")
    listening(net.right)
    before = net.right.space.received()
    traffic.ping(net.left, net.right.address)
    send_datagrams(net, [1514])
    traffic.ping(net.left, net.right.address)
    wire = engine.idle()
    assert wire["received"] == wire["out"] + wire["dropped"]
    assert engine.drops() == ({} if driver == TAP else {"too_long": 1})
    assert engine.ports()["b"]["tx_packets"] == net.right.space.received() - before
    engine.stop()


@pytest.mark.parametrize("joined", ["gro", "gso"])
def test_joined_frames(network, millrace, listening, joined):
    """GRO at the ports, or ends that leave segmenting to a card: what is out arrived, the rest has a name."""
    net = network(AF_PACKET)
    if joined == "gro":
        for name in ("va", "vb"):
            net.middle.run("ethtool", "-K", name, "gro", "on")
    else:
        net.left.space.run("ethtool", "-K", "end", "tx", "on", "gso", "on", "tso", "on")
    engine = millrace(network=net)
    listening(net.right)
    before = net.right.space.received()
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(net.right.space.socket(socket.AF_INET, socket.SOCK_STREAM))
        with net.right.space.entered():
            server.bind((net.right.address, 5201))
            server.listen()
        client = stack.enter_context(net.left.space.socket(socket.AF_INET, socket.SOCK_STREAM))
        if joined == "gro":
            client.connect((net.right.address, 5201))
            client.setblocking(False)
            end = time.monotonic() + 2 * SLOWER
            # segments by the dozen, as long as it takes them until some were joined
            while time.monotonic() < end and not {"cut", "too_long"} & set(engine.drops()):
                with contextlib.suppress(BlockingIOError):
                    client.send(bytes(100000))
                select.select([], [client], [], 0.05)
        else:
            # UDP in super-frames: 20 segments of 1,400 bytes at once
            with net.left.space.socket(socket.AF_INET, socket.SOCK_DGRAM) as outbox:
                outbox.setsockopt(socket.SOL_UDP if hasattr(socket, "SOL_UDP") else 17, 103, 1400)
                for _ in range(50):
                    outbox.sendto(bytes(28000), (net.right.address, 9))
            engine.until(lambda: engine.wire()["received"] >= 50, "all came")
            assert engine.drops() == {"cut": 50}
    wire = engine.idle()
    assert wire["received"] == wire["out"] + wire["dropped"]
    assert set(engine.drops()) <= {"cut", "too_long"}
    port = engine.ports()["b"]
    engine.until(lambda: engine.ports()["b"]["tx_packets"] ==
                 net.right.space.received() - before, "out is what arrived")
    assert port["nic"]["tx_errors"] == 0
    engine.stop(idle=False)


# ------------------------------------------------------------------------ a far end that refuses

TUNSETIFF, TUNATTACHFILTER = 0x400454CA, 0x401054D5
IFF_TAP, IFF_NO_PI = 2, 0x1000


class Tap:
    """An interface whose other end is here, and takes what a filter lets it."""

    def __init__(self, space, name):
        with space.entered():
            self.fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            fcntl.ioctl(self.fd, TUNSETIFF, struct.pack("16sH22x", name.encode(),
                                                        IFF_TAP | IFF_NO_PI))
        space.run("sysctl", "-q", "-w", f"net.ipv6.conf.{name}.disable_ipv6=1", check=False)
        space.ip(f"link set {name} up")
        self.lengths = []

    def refuse_above(self, length):
        """Longer frames are not taken: whoever sends them is told so (NET_XMIT_DROP)."""
        import ctypes  # pylint: disable=import-outside-toplevel
        # A = packet's length; A > length: 0; else all of it
        program = struct.pack("HBBI" * 4, 0x80, 0, 0, 0, 0x25, 0, 1, length, 0x06, 0, 0, 0,
                              0x06, 0, 0, 0xFFFF)
        code = ctypes.create_string_buffer(program)
        fcntl.ioctl(self.fd, TUNATTACHFILTER,
                    struct.pack("HxxxxxxP", 4, ctypes.addressof(code)))

    def send(self, frame):
        os.write(self.fd, frame)

    def take(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                self.lengths.append(len(os.read(self.fd, 70000)))
        return self.lengths

    def close(self):
        os.close(self.fd)


def frame_of(length, number):
    """A datagram with this number."""
    return (bytes.fromhex("020000000002" "020000000001" "0800") +
            struct.pack("!BBHHHBBH4s4s", 0x45, 0, length - 14, number & 0xFFFF, 0, 64, 17, 0,
                        bytes([10, 77, 0, 1]), bytes([10, 77, 0, 2])) +
            struct.pack("!HHHH", 4000 + number % 50, 9, length - 34, 0) + bytes(length - 42))


@pytest.mark.needs("tap", "af_packet")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_far_end_that_refuses(network, millrace, workers):
    """Frames of several sizes that the other end refuses, among good ones, for some seconds: each counts once."""
    net = network(TAP)
    rng = random.Random(28)
    sent, good = 0, []
    with contextlib.closing(Tap(net.middle, "va")) as left, \
            contextlib.closing(Tap(net.middle, "vb")) as right:
        right.refuse_above(1000)
        engine = millrace("--port", "a=net_af_packet0,iface=va", "--port",
                          "b=net_af_packet1,iface=vb", "--wire", "a,b", "--workers", workers,
                          network=Middle(net), joined=False)

        def pass_some(n, refused):
            nonlocal sent
            for _ in range(n):
                if rng.random() < refused:
                    length = rng.choice([1001, 1200, 1400, 1514])
                else:
                    length = rng.choice([60, 500, 999, 1000])
                    good.append(length)
                left.send(frame_of(length, sent))
                sent += 1
                # no more than the rings and queues hold
                if sent % 50 == 0:
                    engine.until(lambda: engine.wire()["received"] == sent, "they came")
                    right.take()

        with engine.watched():
            for refused in (0.01, 0.5, 0.99, 0.1):
                pass_some(700, refused)
            wire = engine.until(lambda: next((wire for wire in [engine.wire()]
                                              if wire["received"] == sent and
                                              wire["held"] == 0), None), "all is decided")
        engine.until(lambda: len(right.take()) == len(good), "what is good arrives")
        # one worker keeps their order
        if workers == 1:
            assert right.lengths == good
        assert sorted(right.lengths) == sorted(good)
        assert wire["out"] == len(good) and wire["out_bytes"] == sum(good)
        assert engine.drops() == {"output": sent - len(good)}
        port = engine.ports()["b"]
        assert port["tx_packets"] == len(good)
        assert (port["nic"]["tx_packets"], port["nic"]["tx_errors"]) == (len(good),
                                                                        sent - len(good))
        engine.until(lambda: "the kernel does not send some frames by it" in engine.stderr,
                     "it is told")

        # the other end takes all of them again
        right.refuse_above(2000)
        for length in (1514, 1200, 60, 1514):
            left.send(frame_of(length, sent))
            good.append(length)
        engine.until(lambda: len(right.take()) == len(good), "all arrive")
        assert sorted(right.lengths) == sorted(good)
        assert engine.stderr.count("the kernel does not send some frames by it") == 1
        engine.stop()


@pytest.mark.needs("tap", "af_xdp")
def test_a_far_end_that_refuses_af_xdp(network, millrace):
    """The kernel takes what it then drops: counted as out, and what was lost by its own count."""
    net = network(TAP)
    good = 0
    with contextlib.closing(Tap(net.middle, "va")) as left, \
            contextlib.closing(Tap(net.middle, "vb")) as right:
        right.refuse_above(1000)
        engine = millrace("--port", "a=net_af_xdp0,iface=va", "--port", "b=net_af_xdp1,iface=vb",
                          "--wire", "a,b", network=Middle(net), joined=False)
        for number in range(200):
            length = (60, 1400, 1000, 1001, 300)[number % 5]
            good += length <= 1000
            left.send(frame_of(length, number))
            if number % 20 == 19:
                engine.until(lambda: engine.wire()["received"] == number + 1, "they came")
        engine.until(lambda: len(right.take()) == good, "what is good arrives")
        assert engine.wire()["out"] == 200
        assert engine.ports()["b"]["nic"]["tx_errors"] == 200 - good
        engine.stop()


class Middle:
    """The engine's namespace alone, where a test has made the interfaces itself."""

    def __init__(self, net):
        self.middle = net.middle

    def engine_is_there(self):
        pass

    def check_nothing_left(self):
        pass


def test_what_a_taps_queue_drops(network, millrace, listening):
    """While the engine stands still a tap's queue overflows: what came and what was missed is what was sent."""
    net = network(TAP)
    engine = millrace(network=net)
    listening(net.right)
    with engine.halted():
        for _ in range(4):
            send_datagrams(net, [200] * 500)
    engine.until(lambda: engine.wire()["received"] + engine.ports()["a"]["nic"]["rx_missed"] ==
                 2000, "each of them is known of")
    assert engine.ports()["a"]["nic"]["rx_missed"] > 0
    engine.stop()
