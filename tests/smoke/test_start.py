# SPDX-License-Identifier: BSD-3-Clause
"""What is looked at before anything is taken, and what is said about it: one clear line each."""
import contextlib
import ctypes
import mmap
import os
import re
import shutil
import socket
import struct
import tempfile

import pytest

import traffic
from engine import MILLRACE, Connection, refused
from network import AF_PACKET, AF_XDP, INTERFACES, LIBC, TAP, checked, ring_bytes


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


BRIDGE = ["link add br0 type bridge", "link set br0 up"]
MEMBER = [*BRIDGE, "link set va master br0"]
MACVLAN = ["link add mv0 link va type macvlan mode bridge"]
VLAN_ON_VA = ["link add link va name va.5 type vlan id 5"]
BOND = ["link add bond0 type bond mode active-backup", "link set va down", "link set va master bond0",
        "link set bond0 up"]


def remove_others(net, before):
    """All interfaces of the middle but those; one may go with another."""
    for name in set(net.middle.links()) - set(before):
        net.middle.run("ip", "link", "del", "dev", name, check=False)


REMEDY = "this ends that: ip link set va nomaster. "


@pytest.mark.parametrize("has, said", [
    (MEMBER, "is a member of bridge br0: a wire would take packets from it, or carry them a second "
             f"time; {REMEDY}"),
    ([*MEMBER, "addr add 10.9.0.3/24 dev br0", "route add default via 10.9.0.1"],
     "is a member of bridge br0, which carries 10.9.0.3/24 and the default route: a wire would cut "
     f"this machine off; {REMEDY}"),
    ([*MEMBER, "link add mv0 link br0 type macvlan", "addr add 10.9.0.3/24 dev mv0"],
     "is a member of bridge br0, which carries macvlan mv0, which carries 10.9.0.3/24: a wire would "
     f"cut this machine off; {REMEDY}"),
    (MACVLAN, "carries macvlan mv0: a wire would take packets from it, or carry them a second time; "
              "this ends that: ip link del mv0. "),
    ([*MACVLAN, *BRIDGE, "link set mv0 master br0", "addr add 10.9.0.3/24 dev br0"],
     "carries macvlan mv0, which is a member of bridge br0, which carries 10.9.0.3/24: "),
    ([*VLAN_ON_VA, "addr add 10.9.0.3/24 dev va.5"], "carries VLAN va.5, which carries 10.9.0.3/24: "),
    ([*BOND, *BRIDGE, "link set bond0 master br0", "addr add 10.9.0.3/24 dev br0"],
     "is a member of bond bond0, which is a member of bridge br0, which carries 10.9.0.3/24: "),
], ids=["bridge", "bridge-address", "bridge-macvlan", "macvlan", "macvlan-bridge", "vlan", "bond-bridge"])
@pytest.mark.parametrize("option", [[], ["--config", "forced.yaml"]], ids=["--force", "force: yes"])
def test_interface_that_something_stands_on(tmp_path, network, millrace, has, said, option):
    """Refused, with all that stands on it up to what is needed; with --force it starts and warns."""
    net = network(AF_PACKET)
    before = net.middle.links()
    try:
        net.middle.ip(*has)
    except AssertionError as error:
        pytest.skip(f"this kernel makes no such interface: {error}")
    (tmp_path / "forced.yaml").write_text("force: yes\nwires: [[va, vb]]\n")
    devices = option or PLAIN
    if not option:
        code, line = refused(tmp_path, *devices, network=net)
        assert code == 1
        assert line.startswith(f"millrace: va {said}") and line.endswith("Use --force if you mean it.")
    engine = millrace(*(["--config", tmp_path / "forced.yaml"] if option else [*PLAIN, "--force"]),
                      network=net, joined=False)
    assert len([line for line in engine.stderr.splitlines() if line.startswith(
        f"millrace: va {said.split(': ', maxsplit=1)[0]}: the wire takes these packets too")]) == 1
    remove_others(net, before)
    engine.stop()


@pytest.mark.parametrize("has, ports, way, member", [
    (["link add x1 type veth peer name x2"], "x1 x2", "x1, x2", False),
    ([*MEMBER, "link set vb master br0"], "va vb", "va, br0, vb", True),
    ([*MACVLAN, "link add mv1 link va type macvlan mode bridge"], "mv0 mv1", "mv0, va, mv1", False),
    ([*BRIDGE, "link add x1 type veth peer name y1", "link add x2 type veth peer name y2",
      "link set y1 master br0", "link set y2 master br0"], "x1 x2", "x1, y1, br0, y2, x2", False),
    (["link add x1 type veth peer name y1", "link add x2 type veth peer name y2"], "x1 x2 y1 y2",
     "y1, x1, x2, y2", False),
], ids=["veth", "bridge", "macvlan", "bridge-of-veths", "two-wires"])
def test_wire_that_closes_a_loop(tmp_path, network, millrace, has, ports, way, member):
    """What the kernel joins already is refused; with --force it starts and warns."""
    net = network(AF_PACKET)
    before = net.middle.links()
    net.middle.ip(*has)
    names, devices = ports.split(), []
    for i, name in enumerate(names):
        devices += ["--port", f"{name}=net_af_packet{i},iface={name}"]
    for wire in zip(names[::2], names[1::2]):
        devices += ["--wire", ",".join(wire)]
    code, line = refused(tmp_path, *devices, network=net)
    if member:
        assert line.startswith("millrace: va is a member of bridge br0: ")
    else:
        assert line == (f"millrace: {names[-2]} and {names[-1]} are joined already ({way}): packets "
                        "would arrive twice, or go round for ever. Use --force if you mean it.")
    assert code == 1
    engine = millrace(*devices, "--force", network=net, joined=False)
    assert f"millrace: {names[-2]} and {names[-1]} are joined already ({way}): " in engine.stderr
    remove_others(net, before)
    engine.stop(idle=False)


def test_what_is_no_reason(network, millrace):
    """Addresses of others, also of a parent; a bridge without a port; two pairs that are not joined."""
    net = network(AF_PACKET)
    net.middle.ip(*BRIDGE, "addr add 10.9.0.3/24 dev br0", "link add x1 type veth peer name x2",
                  "addr add 10.8.0.3/24 dev x1", "link set x1 up",
                  "route add default via 10.8.0.1", "link add mv0 link x1 type macvlan mode private",
                  "link add mv1 link x1 type macvlan mode private")
    devices = ["--port", "a=net_af_packet0,iface=va", "--port", "b=net_af_packet1,iface=vb",
               "--port", "c=net_af_packet2,iface=mv0", "--port", "d=net_af_packet3,iface=mv1",
               "--wire", "a,b", "--wire", "c,d"]
    engine = millrace(*devices, network=net, joined=False)
    assert "--force" not in engine.stderr and "joined" not in engine.stderr
    net.middle.ip("link del br0", "link del x1")
    engine.stop(idle=False)


def test_one_interface_under_two_names(tmp_path, network):
    """By its other name, and by another driver, too."""
    net = network(AF_PACKET)
    net.middle.ip("link property add dev va altname wan")
    for second in ("wan", "net_af_packet9,iface=wan", "net_af_xdp9,iface=wan"):
        code, line = refused(tmp_path, "--port", "a=net_af_packet0,iface=va", "--port", f"b={second}",
                             "--wire", "a,b", network=net)
        assert code == 1 and line == "millrace: wan is a port already"
    net.check_nothing_left()


@contextlib.contextmanager
def xdp_socket(space, name):
    """A socket of ours on the interface's first queue: who comes later finds out when it binds its own."""
    memory = mmap.mmap(-1, 1 << 20)
    start = ctypes.c_char.from_buffer(memory)
    with space.entered():
        fd = LIBC.socket(44, socket.SOCK_RAW, 0)
        checked(fd)
        address = struct.pack("HHIII", 44, 2, socket.if_nametoindex(name), 0, 0)
    try:
        region = struct.pack("QQIIII", ctypes.addressof(start), 1 << 20, 4096, 0, 0, 0)
        checked(LIBC.setsockopt(fd, 283, 4, region, len(region)))
        for ring in (5, 6, 2, 3):
            checked(LIBC.setsockopt(fd, 283, ring, struct.pack("I", 64), 4))
        checked(LIBC.bind(fd, address, len(address)))
        yield
    finally:
        os.close(fd)


@pytest.mark.needs("ping")
@pytest.mark.parametrize("mtu", [1500, 3000])
def test_af_xdp_that_does_not_start(tmp_path, network, millrace, mtu):
    """The kernel agrees to every step before, and not to the last: af_packet, where the choice is ours."""
    net = network(AF_XDP, mtu=mtu)
    with xdp_socket(net.middle, "va"):
        code, line = refused(tmp_path, "--port", "a=net_af_xdp0,iface=va", "--wire", "a,vb",
                             network=net)
        assert code == 1 and line.startswith("millrace: a: af_xdp does not start: ")
        assert line.endswith("; --port a=net_af_packet0,iface=va does without it")
        engine = millrace("--workers", 2, *PLAIN, network=net, joined=False)
        assert re.search(r"^a: af_packet, 1 queue \(not af_xdp: .+\) +b: af_xdp, 1 queue$",
                         engine.stderr, re.MULTILINE), engine.stderr
        ports = engine.ports()
        assert [ports[port]["driver"] for port in "ab"] == ["net_af_packet", "net_af_xdp"]
        with engine.watched():
            traffic.ping(net.left, net.right.address, "-M", "do", "-s", mtu - 28)
            traffic.ping(net.right, net.left.address6, "-s", 4000)
        engine.stop()


@pytest.mark.needs("ping")
def test_interface_without_xdp(tmp_path, network, millrace):
    """A macvlan's driver takes no programs: af_packet, and the line says why; by af_xdp alone an error."""
    net = network(AF_XDP)
    net.middle.ip("link add mv0 link va type macvlan mode passthru", "link set mv0 up")
    why = "its driver takes no XDP programs"
    code, line = refused(tmp_path, "--port", "a=net_af_xdp0,iface=mv0", "--wire", "a,vb",
                         network=net)
    assert code == 1 and line == f"millrace: net_af_xdp0: af_xdp does not work on mv0: {why}"
    engine = millrace("--wire", "mv0,vb", network=net, joined=False)
    assert f"mv0: af_packet, 1 queue (not af_xdp: {why})" in engine.stderr
    assert engine.ports()["mv0"]["driver"] == "net_af_packet"
    traffic.ping(net.left, net.right.address)
    net.middle.ip("link del mv0")
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


WRAPPED = {
    "flowsim": "net_flowsim{i},port=[net_af_packet{i},iface={name}]",
    "failsafe": "net_failsafe{i},dev(net_af_packet{i},iface={name})",
    "two-levels": "net_flowsim{i},port=[net_failsafe{i},dev(net_af_packet{i},iface={name})]",
}


@pytest.mark.parametrize("wrapped", WRAPPED)
def test_fragments_below_another_device(network, millrace, wrapped):
    """The socket below gets our options, too: both fragments leave, and a first one alone."""
    net = network(AF_PACKET)
    devices = ["--wire", "a,b"]
    for i, (port, name) in enumerate(zip("ab", INTERFACES)):
        devices += ["--port", f"{port}=" + WRAPPED[wrapped].format(i=i, name=name)]
    engine = millrace(*devices, network=net, joined=False)
    with engine.watched():
        traffic.datagram(net.left, net.right, 2000)
        first = bytes.fromhex("020000000002020000000001080045000024000120004011000"
                              "00a4d00010a4d0002") + bytes(16)
        with net.left.space.socket(socket.AF_PACKET, socket.SOCK_RAW) as outbox:
            outbox.bind(("end", 0))
            outbox.send(first)
        engine.until(lambda: engine.wire()["out"] == 3, "three fragments left")
        # what this machine itself sends on the interface is not for the other side
        with net.middle.socket(socket.AF_PACKET, socket.SOCK_RAW) as outbox:
            outbox.bind(("va", 0))
            outbox.send(first)
        traffic.datagram(net.right, net.left, 100)
        engine.until(lambda: engine.wire()["out"] == 4, "and the answer")
    assert engine.idle()["received"] == 4
    assert {port: line["interface"] for port, line in engine.ports().items()} == {
        "a": "va", "b": "vb"}
    assert "puts fragments together" not in engine.stderr
    engine.stop()


def test_what_stands_on_the_interface_below(tmp_path, network):
    """It counts like the port's own; so does its MTU."""
    net = network(AF_PACKET)
    net.middle.ip(*MEMBER)
    for device in [*WRAPPED.values(), "net_failsafe{i},dev(net_af_packet{i},iface={name}),"
                   "dev(net_af_packet1{i},iface=vb)"]:
        device = device.format(i=0, name="va")
        code, line = refused(tmp_path, "--port", f"a={device}", "--port", "b=net_null0",
                             "--wire", "a,b", network=net)
        assert code == 1 and line.startswith("millrace: va is a member of bridge br0: ")
    net.middle.ip("link del br0", "link set va mtu 4000")
    code, line = refused(tmp_path, "--port", "a=" + WRAPPED["flowsim"].format(i=0, name="va"),
                         "--port", "b=net_null0", "--wire", "a,b", network=net)
    assert code == 1 and "net_af_packet0: framesz=2048 cuts the frames of va, MTU 4000" in line
