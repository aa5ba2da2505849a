# SPDX-License-Identifier: BSD-3-Clause
"""What is looked at before anything is taken, and what is said about it: one clear line each."""
import os
import re
import shutil
import socket
import tempfile

import pytest

import traffic
from engine import MILLRACE, Connection, refused
from network import AF_PACKET, AF_XDP, TAP, ring_bytes


def test_missing_interface(tmp_path, network):
    """The name and what would be right."""
    net = network(AF_PACKET)
    code, line = refused(tmp_path, "--wire", "va,vx", network=net)
    assert code == 1 and line.startswith("millrace: vx: no such interface; did you mean v")
    code, line = refused(tmp_path, "--port", "p=net_af_packet0,iface=wan7", "--wire", "va,p",
                         network=net)
    assert code == 1 and "wan7: no such interface" in line
    net.check_nothing_left()


@pytest.mark.needs("root", "setpriv")
@pytest.mark.parametrize("device", ["va", "net_af_packet0,iface=va", "net_af_xdp0,iface=va",
                                    "net_tap0,iface=ta"])
def test_no_permission(network, device):
    """Somebody without privileges is told which ones it takes."""
    net = network(AF_PACKET)
    with tempfile.TemporaryDirectory(prefix="millrace-smoke-") as directory:
        # the checkout may be closed to others
        program = shutil.copy(MILLRACE, directory)
        os.chmod(directory, 0o777)
        code, line = refused(
            directory, "--port", f"p={device}", "--port", "q=net_null0", "--wire", "p,q",
            network=net, program=program,
            prefix=["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])
        left = [file for _, _, files in os.walk(directory) for file in files]
        assert left == [os.path.basename(program)]
    assert code == 1 and "no permission" in line and "CAP_NET_ADMIN" in line


def test_mtu_mismatch(tmp_path, network):
    """Longer frames would be lost: both MTUs, and the command that makes them alike."""
    net = network(AF_PACKET)
    net.middle.ip("link set dev vb mtu 1400")
    code, line = refused(tmp_path, *net.arguments(), network=net)
    assert code == 1
    assert "a has MTU 1500 and b MTU 1400" in line and "ip link set vb mtu 1500" in line
    net.check_nothing_left()


# The engine's devices by their names, and by a driver with no more than it needs.
PLAIN = ["--port", "a=va", "--port", "b=vb", "--wire", "a,b"]
BARE = ["--port", "a=net_af_packet0,iface=va", "--port", "b=net_af_packet1,iface=vb",
        "--wire", "a,b"]


@pytest.mark.needs("ping")
@pytest.mark.parametrize("first, second", [(BARE, BARE), (PLAIN, BARE), (BARE, PLAIN)],
                         ids=["packet-packet", "name-packet", "packet-name"])
def test_second_engine(tmp_path, network, millrace, first, second):
    """Refused, whatever its socket: it would carry every packet once more. The first goes on."""
    net = network(AF_PACKET)
    engine = millrace(*first, network=net, joined=False)
    code, line = refused(tmp_path, *second, "--socket", tmp_path / "other.sock", network=net)
    assert code == 1 and "va: another millrace has this interface" in line
    before = [end.space.received() for end in net.ends]
    traffic.ping(net.left, net.right.address)
    assert engine.idle()["received"] == 10
    assert [end.space.received() for end in net.ends] == [count + 5 for count in before]
    engine.stop()
    millrace(*second, network=net, joined=False, directory="next").stop()


@pytest.mark.needs("tap")
def test_a_tap_of_another_engine(tmp_path, network, millrace):
    """Its driver would join it, and take it down at the end. One of our own twice neither."""
    net = network(AF_PACKET)
    engine = millrace("--port", "a=net_tap0,iface=ta", "--port", "b=net_tap1,iface=tb",
                      "--wire", "a,b", network=net, joined=False)
    before = net.middle.links()
    code, line = refused(
        tmp_path, "--port", "a=net_tap2,iface=ta", "--port", "b=net_tap3,iface=tc",
        "--wire", "a,b", "--socket", tmp_path / "other.sock", network=net)
    assert code == 1 and "ta: another millrace has this interface" in line
    probed = net.middle.run(MILLRACE, "probe", "--no-store", "net_tap0,iface=ta", check=False)
    assert probed.returncode == 1 and "ta: another millrace has this interface" in probed.stderr
    assert net.middle.links() == before and set(before) >= {"ta", "tb"}
    engine.stop()
    code, line = refused(
        tmp_path, "--port", "a=net_tap0,iface=ta", "--port", "b=net_tap1,iface=ta",
        "--wire", "a,b", "--socket", tmp_path / "other.sock", network=net)
    assert code == 1 and line == "millrace: ta is a port already"


@pytest.mark.parametrize("has, said", [
    (["addr add 192.0.2.1/24 dev va"], "192.0.2.1/24"),
    (["addr add 192.0.2.1/24 dev va", "route add default via 192.0.2.2"], "the default route"),
], ids=["address", "default-route"])
def test_interface_that_is_needed(tmp_path, network, millrace, has, said):
    """Refused without --force; with it there is a warning, and it works."""
    net = network(AF_PACKET)
    net.middle.ip(*has)
    code, line = refused(tmp_path, *net.arguments(), network=net)
    assert code == 1
    assert line.startswith("millrace: va carries ") and said in line and "--force" in line
    engine = millrace("--force", network=net)
    assert re.search(rf"^millrace: va carries .*{said}", engine.stderr, re.MULTILINE)
    traffic.ping(net.left, net.right.address)
    engine.stop()


@pytest.mark.parametrize("driver, warned", [(AF_PACKET, True), (AF_XDP, False)])
def test_offloads_that_join_frames(network, millrace, driver, warned):
    """GRO makes frames too long to be sent on; XDP comes before it. (A veth has no LRO.)"""
    net = network(driver)
    net.middle.run("ethtool", "-K", "va", "gro", "on")
    engine = millrace(network=net)
    lines = [line for line in engine.stderr.splitlines() if "GRO is on" in line]
    assert bool(lines) == warned
    if warned:
        assert len(lines) == 1 and "ethtool -K va gro off" in lines[0]
    engine.stop()


def send_unfinished(net, count):
    """Datagrams whose checksums the sender leaves to a card that is none."""
    net.left.space.run("ethtool", "-K", "end", "tx", "on")
    with net.left.space.socket(socket.AF_INET, socket.SOCK_DGRAM) as outbox:
        for _ in range(count):
            outbox.sendto(b"unfinished", (net.right.address, 7))


@pytest.mark.parametrize("driver", [AF_PACKET, AF_XDP])
def test_unfinished_checksums(network, millrace, driver):
    """Said once, and an event for who follows: which port, and the command that helps."""
    net = network(driver)
    engine = millrace(network=net)
    with Connection(engine.socket) as follower:
        follower.send("event follow", flows=False)
        engine.wire()  # answered later than that was asked
        send_unfinished(net, 10)
        event = follower.next()
        assert (event["event"], event["port"]) == ("checksum_offload", "a")
        assert "ethtool -K" in event["what"] and "tx off" in event["what"]
    said = [line for line in engine.stderr.splitlines() if "unfinished checksums" in line]
    assert len(said) == 1 and said[0].startswith("millrace: a: ") and "ethtool -K" in said[0]
    engine.stop()


def test_finished_checksums_are_not_told(network, millrace):
    """The counterpart: with offloads off nothing is said."""
    net = network(AF_PACKET)
    engine = millrace(network=net)
    traffic.ping(net.left, net.right.address)
    with net.left.space.socket(socket.AF_INET, socket.SOCK_DGRAM) as outbox:
        for _ in range(10):
            outbox.sendto(b"finished", (net.right.address, 7))
    engine.until(lambda: engine.wire()["received"] >= 20, "the datagrams came")
    assert "unfinished checksums" not in engine.stderr
    engine.stop()


@pytest.mark.needs("curl", "tcpdump")
@pytest.mark.parametrize("by_hand", [True, False], ids=["net_af_packet", "by-name"])
def test_jumbo_frames(tmp_path, network, millrace, captures, by_hand):
    """MTU 9000: by name it is af_packet, since af_xdp takes a page at most."""
    net = network(AF_PACKET, mtu=9000)
    devices = net.arguments() if by_hand else ["--port", "a=va", "--port", "b=vb", "--wire", "a,b"]
    engine = millrace(*devices, "--output", "records.json", network=net, joined=False)
    assert {port["driver"] for port in engine.ports().values()} == {"net_af_packet"}
    assert {port["mtu"] for port in engine.ports().values()} == {9000}
    taken = captures(net)
    with engine.watched():
        traffic.ping(net.left, net.right.address, "-M", "do", "-s", 8972)
        traffic.ping(net.right, net.left.address6, "-M", "do", "-s", 8952)
        traffic.curl(net)
    traffic.everything_arrived(engine, net, taken)
    records = traffic.compare(engine, taken, tmp_path)
    web = next(record for record in records if record["dport"] == 8080)
    assert web["reverse_bytes"] / web["reverse_packets"] > 7000


def test_frames_too_long_for_af_packet(tmp_path, network):
    """A ring whose frames would cut them is refused, with arguments that would do."""
    net = network(AF_PACKET, mtu=9000)
    code, line = refused(tmp_path, "--port", "a=net_af_packet0,iface=va,framecnt=512",
                         "--wire", "a,vb", network=net)
    assert code == 1 and "framesz=2048 cuts the frames of va, MTU 9000" in line
    assert re.search(r"framesz=\d+,blocksz=\d+ would do", line)


@pytest.mark.skipif(ring_bytes() < 4096 * 2048, reason="too little memory may be locked")
@pytest.mark.parametrize("mtu, count", [(1500, 4000), (9000, 1000)])
def test_rings_without_arguments(network, millrace, mtu, count):
    """As large as by name: with the driver's own 512 frames most of these were lost."""
    net = network(AF_PACKET, mtu=mtu)
    engine = millrace(*BARE, network=net, joined=False)
    with engine.halted():
        traffic.many_flows(net, count)
    engine.until(lambda: engine.ports()["a"]["rx_packets"] == count, "all of them came")
    assert engine.ports()["a"]["nic"]["rx_missed"] == 0
    traffic.ping(net.left, net.right.address, "-s", mtu - 28)
    engine.stop()


def test_qdisc_that_may_hold_up(network, millrace):
    """The driver would wait for a slow one: told. The same without, or by name, says nothing."""
    net = network(AF_PACKET)
    devices = ["--port", "a=net_af_packet0,iface=va,qdisc_bypass=0",
               "--port", "b=net_af_packet1,iface=vb,qdisc_bypass=1", "--wire", "a,b"]
    engine = millrace(*devices, network=net, joined=False)
    lines = [line for line in engine.stderr.splitlines() if "qdisc_bypass" in line]
    assert len(lines) == 1 and lines[0].startswith("millrace: net_af_packet0: with qdisc_bypass=0")
    traffic.ping(net.left, net.right.address)
    engine.stop()


@pytest.mark.needs("ping", "tcpdump")
@pytest.mark.parametrize("driver, workers, threads", [
    (AF_PACKET, 1, "run-to-completion"), (AF_PACKET, 2, "run-to-completion"),
    (AF_PACKET, 2, "split"), (AF_XDP, 2, "run-to-completion"), (TAP, 2, "split")])
@pytest.mark.parametrize("fragments", ["follow", "separate"])
def test_fragments(tmp_path, network, millrace, captures, driver, workers, threads, fragments):
    """Large pings and datagrams: the pieces go to their flow, or to one of their own."""
    net = network(driver)
    options = ["--fragments", fragments]
    engine = millrace("--output", "records.json", "--workers", workers, "--threads", threads,
                      *options, network=net)
    taken = captures(net)
    with engine.watched():
        traffic.ping(net.left, net.right.address, "-s", 4000)
        traffic.ping(net.right, net.left.address6, "-s", 4000)
        for size in (1473, 4000, 60000):
            for address in ("address", "address6"):
                traffic.datagram(net.left, net.right, size, port=7000 + size % 1000,
                                 address=address)
    traffic.everything_arrived(engine, net, taken)
    assert engine.wire()["fragments_untied"] == 0
    records = traffic.compare(engine, taken, tmp_path, *options)
    apart = [record for record in records if record["proto"] == 17 and record["sport"] == 0]
    assert bool(apart) == (fragments == "separate")
