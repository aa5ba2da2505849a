# SPDX-License-Identifier: BSD-3-Clause
"""The filters of examples/filters/ do between hosts what their first lines say."""
import contextlib
import pathlib
import random
import select
import socket
import struct
import subprocess
import xml.etree.ElementTree

import pytest

from engine import SLOWER
from network import AF_PACKET

FILTERS = pathlib.Path(__file__).resolve().parents[2] / "examples" / "filters"
INSIDE, OUTSIDE = 0, 1
TCP, UDP = socket.SOCK_STREAM, socket.SOCK_DGRAM
# Where nothing comes back at all.
SILENCE_S = 1
# Operators' addresses in the file, and an outside host that is one.
NOBODY, OPERATOR = "192.0.2.0 src prefix 24", "10.77.0.2 src prefix 32"

HOME = [
    (INSIDE, 4, TCP, 80, "works"), (INSIDE, 6, TCP, 80, "works"), (INSIDE, 4, UDP, 53, "works"),
    (INSIDE, 6, UDP, 53, "works"), (OUTSIDE, 4, TCP, 22, "refused"), (OUTSIDE, 6, TCP, 22, "refused"),
    (OUTSIDE, 4, UDP, 53, "silence"), (OUTSIDE, 6, UDP, 53, "silence"),
]
SERVERS = [
    (OUTSIDE, 4, TCP, 80, "works"), (OUTSIDE, 4, TCP, 443, "works"), (OUTSIDE, 4, TCP, 25, "refused"),
    (OUTSIDE, 4, UDP, 53, "refused"), (OUTSIDE, 6, TCP, 80, "silence"), (INSIDE, 4, UDP, 53, "works"),
    (INSIDE, 4, UDP, 123, "works"), (INSIDE, 4, TCP, 80, "refused"), (INSIDE, 4, UDP, 124, "refused"),
]

# The states that nmap finds from a side, by IP version, protocol and port. All TCP ports but 8080 have a listener, all UDP ports but
# 5000 a program that answers.
TCP_PORTS, UDP_PORTS = (22, 25, 53, 80, 443, 8080), (53, 123, 5000)
OPEN = {**dict.fromkeys(TCP_PORTS, "open"), 8080: "closed"}
ANSWERED = {**dict.fromkeys(UDP_PORTS, "open"), 5000: "closed"}
SILENT, UNHEARD = dict.fromkeys(TCP_PORTS, "filtered"), dict.fromkeys(UDP_PORTS, "open|filtered")
CLOSED, UNREACHABLE = dict.fromkeys(TCP_PORTS, "closed"), dict.fromkeys(UDP_PORTS, "closed")
SCANS = {
    "home-gateway": {(INSIDE, 4): (OPEN, ANSWERED), (INSIDE, 6): (OPEN, ANSWERED),
                     (OUTSIDE, 4): (CLOSED, UNHEARD), (OUTSIDE, 6): (CLOSED, UNHEARD)},
    "server-farm": {(OUTSIDE, 4): ({**CLOSED, 80: "open", 443: "open"}, UNREACHABLE), (OUTSIDE, 6): (SILENT, UNHEARD),
                    (INSIDE, 4): (CLOSED, {**UNREACHABLE, 53: "open", 123: "open"}), (INSIDE, 6): (SILENT, UNHEARD)},
    "guest-network": {(INSIDE, 4): ({**OPEN, 25: "closed"}, ANSWERED), (INSIDE, 6): ({**OPEN, 25: "closed"}, ANSWERED),
                      (OUTSIDE, 4): (SILENT, UNHEARD), (OUTSIDE, 6): (SILENT, UNHEARD)},
    "dns-server": {(OUTSIDE, 4): ({**SILENT, 53: "open"}, {**UNHEARD, 53: "open"}),
                   (OUTSIDE, 6): ({**SILENT, 53: "open"}, {**UNHEARD, 53: "open"}),
                   (INSIDE, 4): (SILENT, UNHEARD), (INSIDE, 6): (SILENT, UNHEARD)},
}
GUEST_FLOWS, GUEST_SSH, FLOOD_SHARE = 200, 3, 500


def open_socket(end, version, kind, timeout):
    made = end.space.socket(socket.AF_INET if version == 4 else socket.AF_INET6, kind)
    made.settimeout(timeout)
    return made


def outcome(ends, side, version, kind, port, timeout):
    """What becomes of an attempt of that side to talk with a service of the other one."""
    asker, answerer = ends[side], ends[1 - side]
    address = answerer.address if version == 4 else answerer.address6
    with contextlib.closing(open_socket(answerer, version, kind, 10 * SLOWER)) as service, \
            contextlib.closing(open_socket(asker, version, kind, timeout)) as client:
        service.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        service.bind((address, port))
        try:
            if kind == TCP:
                service.listen()
                client.connect((address, port))
                service.accept()[0].close()
                return "works" if client.recv(1) == b"" else "odd"
            client.connect((address, port))
            client.send(b"asked")
            if select.select([service, client], [], [], timeout)[0] == [service]:
                said, back = service.recvfrom(64)
                service.sendto(said + b", told", back)
            return "works" if client.recv(64) == b"asked, told" else "odd"
        except ConnectionRefusedError:
            return "refused"
        except OSError as error:
            return "silence" if isinstance(error, TimeoutError) else "refused"


def check(engine, ends, attempts):
    for attempt in attempts:
        timeout = SILENCE_S if attempt[-1] == "silence" else 10 * SLOWER
        assert outcome(ends, *attempt[:-1], timeout) == attempt[-1], attempt
    wire = engine.ask("wire show")[0]
    assert wire["reject_replies"] == sum(attempt[-1] == "refused" for attempt in attempts), wire


@pytest.mark.needs("af_packet")
def test_home_gateway(network, millrace):
    net = network(AF_PACKET)
    engine = millrace("--rules", FILTERS / "home-gateway.rules", network=net)
    check(engine, net.ends, HOME)
    engine.stop()


@pytest.mark.needs("af_packet")
def test_server_farm(network, millrace, tmp_path):
    """With the operators' address in the file SSH works from there, and is told of; the file is loaded while all runs."""
    net = network(AF_PACKET)
    text = (FILTERS / "server-farm.rules").read_text(encoding="ascii")
    engine = millrace("--rules", FILTERS / "server-farm.rules", network=net)
    check(engine, net.ends, [*SERVERS, (OUTSIDE, 4, TCP, 22, "refused")])
    assert text.count(NOBODY) == 1
    (tmp_path / "rules").write_text(text.replace(NOBODY, OPERATOR), encoding="ascii")
    engine.client("rule", "load", tmp_path / "rules")
    assert outcome(net.ends, OUTSIDE, 4, TCP, 22, 10 * SLOWER) == "works"
    assert sum(rule["packets"] > 0 for rule in engine.ask("rule list")) >= 5
    engine.stop()


def rules_of(engine):
    """{text of a rule in force: packets}"""
    return {rule["rule"]: rule["packets"] for rule in engine.ask("rule list")}


def only(rules, *words):
    """The packets of the one rule that has all these words."""
    found = [packets for text, packets in rules.items() if all(word in text for word in words)]
    assert len(found) == 1, (words, rules)
    return found[0]


@pytest.mark.needs("af_packet")
def test_guest_network(network, millrace):
    """A guest's SSH connections are refused above three; of IPv6, where he has not begun any, he has 200 flows, and each
    that ends leaves room for another one."""
    net = network(AF_PACKET)
    engine = millrace("--rules", FILTERS / "guest-network.rules", network=net)
    guest, host = net.ends
    for _ in range(GUEST_SSH):
        assert outcome(net.ends, INSIDE, 4, TCP, 22, 10 * SLOWER) == "works"
    assert outcome(net.ends, INSIDE, 4, TCP, 22, 10 * SLOWER) == "refused"
    assert outcome(net.ends, INSIDE, 4, TCP, 25, 10 * SLOWER) == "refused"
    assert outcome(net.ends, INSIDE, 4, TCP, 80, 10 * SLOWER) == "works"
    assert outcome(net.ends, OUTSIDE, 4, TCP, 80, SILENCE_S) == "silence"
    with contextlib.ExitStack() as stack:
        service = stack.enter_context(contextlib.closing(open_socket(host, 6, UDP, 10 * SLOWER)))
        service.bind((host.address6, 5000))
        flows = [stack.enter_context(contextlib.closing(open_socket(guest, 6, UDP, SILENCE_S)))
                 for _ in range(GUEST_FLOWS + 20)]
        for number, flow in enumerate(flows):
            flow.connect((host.address6, 5000))
            flow.send(struct.pack("!I", number))
        heard = {struct.unpack("!I", service.recv(64))[0] for _ in range(GUEST_FLOWS)}
        assert heard == set(range(GUEST_FLOWS))
        engine.until(lambda: only(rules_of(engine), "live_flows") == 20, "the rest is dropped")
        refused = {"src": guest.address6, "dst": host.address6, "sport": flows[-1].getsockname()[1], "dport": 5000,
                   "proto": "udp"}
        said = engine.ask("flow explain", **refused)[0]["limits"][-1]
        assert (said["live_flows"], said["limit"], said["above"]) == (GUEST_FLOWS, GUEST_FLOWS, True), said
        assert said["source"] == "fd77::/64"
        # one ends: there is room for the last one, and for no other
        engine.ask("flow kill", **{**refused, "sport": flows[0].getsockname()[1]})
        flows[-1].send(b"anew")
        assert service.recv(64) == b"anew"
        flows[-2].send(b"too many")
        engine.until(lambda: only(rules_of(engine), "live_flows") == 21, "one more is dropped")
        flows[-1].send(b"again")
        assert service.recv(64) == b"again"
    engine.stop()


def query(number):
    """A DNS query for the address of a name."""
    return struct.pack("!HHHHHH", number & 0xffff, 0x100, 1, 0, 0, 0) + b"\x07example\x04test\0" + struct.pack("!HH", 1, 1)


def flood_frame(ends, random_source, number):
    """A query from an address that nobody has."""
    data = query(number)
    udp = struct.pack("!HHHH", 1024 + number % 50000, 53, 8 + len(data), 0) + data
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, random_source,
                         socket.inet_aton(ends[0].address))
    total = sum(struct.unpack("!10H", header))
    while total > 0xffff:
        total = (total & 0xffff) + (total >> 16)
    header = header[:10] + struct.pack("!H", ~total & 0xffff) + header[12:]
    return bytes.fromhex((ends[0].mac + ends[1].mac).replace(":", "")) + b"\x08\x00" + header + udp


@pytest.mark.needs("af_packet", "dnsmasq")
def test_dns_server(network, millrace, tmp_path):
    """A known client gets all its answers while others flood, from anywhere and from one network."""
    net = network(AF_PACKET)
    server, world = net.ends
    text = (FILTERS / "dns-server.rules").read_text(encoding="ascii")
    (tmp_path / "rules").write_text(text.replace(NOBODY, "10.77.0.0 src prefix 24"), encoding="ascii")
    server.space.ip(f"route add default via {world.address} dev end")
    process = server.space.popen("dnsmasq", "--no-daemon", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--pid-file=",
                                 "--user=root", "--bind-interfaces", f"--listen-address={server.address}",
                                 "--address=/example.test/192.0.2.77", stderr=subprocess.PIPE, text=True)
    with contextlib.ExitStack() as stack:
        stack.callback(process.wait)
        stack.callback(process.terminate)
        while "started" not in process.stderr.readline():
            assert process.poll() is None
        engine = millrace("--rules", tmp_path / "rules", network=net)
        client = stack.enter_context(contextlib.closing(open_socket(world, 4, UDP, 10 * SLOWER)))
        client.connect((server.address, 53))
        flood = stack.enter_context(contextlib.closing(world.space.socket(socket.AF_PACKET, socket.SOCK_RAW)))
        flood.bind(("end", 0))
        before, draw, sent, asked, dropped = server.space.received(), random.Random(53), 0, 0, (0, 0)
        while min(dropped) < 1000:
            for _ in range(200):
                # every other one from one network of 256 addresses, and the rest from anywhere
                source = bytes((198, 51, 100, draw.randrange(256))) if sent % 2 else bytes((11, *draw.randbytes(3)))
                flood.send(flood_frame(net.ends, source, sent))
                sent += 1
            client.send(query(asked))
            answer = client.recv(512)
            assert answer[:2] == query(asked)[:2] and socket.inet_aton("192.0.2.77") in answer, asked
            asked += 1
            rules = rules_of(engine)
            dropped = only(rules, "ipv4_prefix 24"), only(rules, "ipv4_prefix 0")
        passed = only(rules, "priority 5", "ipv4 / udp")
        # each packet is in the count of one rule, and the server heard of those alone that rules let pass
        assert passed + sum(dropped) == sent, rules
        assert only(rules, "priority 3", "10.77.0.0", "udp") == asked
        assert server.space.received() - before == passed + asked
        # both parts were there to be used
        assert passed >= FLOOD_SHARE and sent - passed >= 2000, rules
        engine.stop()


@contextlib.contextmanager
def services(end):
    """Listeners and answering programs on the ports that are scanned, and a function that lets them answer."""
    with contextlib.ExitStack() as stack:
        answering = []
        for version, family in ((4, socket.AF_INET), (6, socket.AF_INET6)):
            address = end.address if version == 4 else end.address6
            for kind, ports, none in ((TCP, TCP_PORTS, 8080), (UDP, UDP_PORTS, 5000)):
                for port in ports:
                    if port == none:
                        continue
                    made = stack.enter_context(contextlib.closing(end.space.socket(family, kind)))
                    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    made.bind((address, port))
                    if kind == TCP:
                        made.listen()
                    else:
                        answering.append(made)

        def answer():
            for made in select.select(answering, [], [], 0.1)[0]:
                said, back = made.recvfrom(2048)
                made.sendto(said or b"here", back)
        yield answer


def scan(asker, answerer, version, answer, output):
    """({TCP port: state}, {UDP port: state}) as nmap sees them."""
    ports = f"T:{','.join(map(str, TCP_PORTS))},U:{','.join(map(str, UDP_PORTS))}"
    process = asker.space.popen(
        "nmap", "-n", "-Pn", "--send-ip", "-sS", "-sU", "-p", ports, "--max-retries", "2", "-T4", "-oX", output,
        *(("-6", answerer.address6) if version == 6 else (answerer.address,)), stdout=subprocess.DEVNULL)
    try:
        while process.poll() is None:
            answer()
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    found = {"tcp": {}, "udp": {}}
    for port in xml.etree.ElementTree.parse(output).iter("port"):
        found[port.get("protocol")][int(port.get("portid"))] = port.find("state").get("state")
    return found["tcp"], found["udp"]


@pytest.mark.needs("af_packet", "nmap")
@pytest.mark.parametrize("name", SCANS)
def test_a_scan_sees_the_policy(network, millrace, tmp_path, name):
    net = network(AF_PACKET)
    engine = millrace("--rules", FILTERS / f"{name}.rules", network=net)
    for (side, version), expected in SCANS[name].items():
        asker, answerer = net.ends[side], net.ends[1 - side]
        with services(answerer) as answer:
            assert scan(asker, answerer, version, answer, tmp_path / "scan.xml") == expected, (side, version)
    engine.stop()
