# SPDX-License-Identifier: BSD-3-Clause
"""Rules on live ports: the kernel's nf_tables says the same of each packet, and kernels accept what rules make."""
import contextlib
import ipaddress
import json
import random
import select
import socket
import subprocess
import time

import frames  # pylint: disable=unused-import  # it silences scapy
import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from engine import MILLRACE, SLOWER
from network import AF_PACKET, Namespace

ALL_FRAMES = 3
PACKETS = 1500

# Protocol, source, destination, first and last destination port, and whether it goes on; the first that fits counts.
RULES = [
    ("tcp", "10.1.0.0/16", "10.2.3.4/32", (80, 80), True),
    ("tcp", "10.1.1.0/24", "10.2.0.0/16", (22, 22), False),
    ("udp", "10.1.0.0/17", "10.2.128.0/17", (53, 53), True),
    ("udp", None, "10.2.0.0/24", (1000, 1999), False),
    ("tcp", "10.1.2.0/23", None, (8000, 8080), True),
    ("tcp", None, "10.2.64.0/18", None, False),
    (None, "10.1.77.7/32", None, None, False),
    ("udp", "10.1.64.0/18", "10.2.3.0/24", (500, 4500), True),
    (None, None, "10.2.99.0/24", None, False),
    ("tcp", None, None, (6000, 6063), False),
    ("udp", "10.1.128.0/17", None, (1, 1023), False),
    (None, "10.1.255.0/24", "10.2.255.0/24", None, False),
]


def as_rule(priority, rule):
    """In testpmd's words; what goes on goes to the other port, whatever later rules say."""
    protocol, src, dst, ports, allowed = rule
    network = [f"{name} spec {net.network_address} {name} prefix {net.prefixlen}"
               for name, net in (("src", src), ("dst", dst)) if net
               for net in [ipaddress.ip_network(net)]]
    # a protocol without a header of it: ipv4 proto
    upper = ""
    if protocol:
        upper = f" / {protocol}"
        if ports:
            upper += f" dst spec {ports[0]} dst last {ports[1]} dst mask 0xffff"
    action = "port_id id 1" if allowed else "drop"
    return (f"flow create 0 priority {priority} ingress pattern eth / ipv4 {' '.join(network)}{upper} / end "
            f"actions {action} / end")


def as_nft(rule):
    protocol, src, dst, ports, allowed = rule
    words = ["nft", "add", "rule", "ip", "t", "forward"]
    words += ["ip", "saddr", src] if src else []
    words += ["ip", "daddr", dst] if dst else []
    if protocol and ports:
        words += [protocol, "dport", f"{ports[0]}-{ports[1]}" if ports[0] != ports[1] else ports[0]]
    elif protocol:
        words += ["ip", "protocol", protocol]
    return [*words, "accept" if allowed else "drop"]


def draw_packets(draw):
    """Packets of which many fit some rule, each a flow of its own, named by its payload."""
    made = []
    for number in range(PACKETS):
        protocol, src, dst, ports, _ = draw.choice(RULES)
        # near what a rule asks for: within, or beside it
        source = draw_address(draw, src or "10.1.0.0/16", "10.1.0.0/16")
        target = draw_address(draw, dst or "10.2.0.0/16", "10.2.0.0/16")
        port = draw.randint(*ports) if ports and draw.random() < 0.8 else draw.randint(1, 9000)
        upper = {"tcp": TCP, "udp": UDP}[protocol or draw.choice(("tcp", "udp"))]
        if draw.random() < 0.1:
            upper = TCP if upper is UDP else UDP
        more = {"flags": "S"} if upper is TCP else {}
        made.append(IP(src=source, dst=target, ttl=64) /
                    upper(sport=10000 + number, dport=port, **more) / Raw(b"%08d" % number))
    return made


def draw_address(draw, inside, around):
    network = ipaddress.ip_network(inside if draw.random() < 0.8 else around)
    return str(network[draw.randrange(network.num_addresses)])


class Listener:
    """The numbers of the packets that come out."""

    def __init__(self, space, interface):
        self.socket = space.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_FRAMES))
        self.socket.bind((interface, 0))
        self.numbers = set()

    def take(self, until):
        """Reads until that one has come."""
        end = time.monotonic() + 30 * SLOWER
        while until not in self.numbers:
            assert select.select([self.socket], [], [], max(0, end - time.monotonic()))[0], until
            self.drain()

    def drain(self):
        while select.select([self.socket], [], [], 0)[0]:
            frame = self.socket.recv(2048)
            tail = frame.rstrip(b"\0")[-8:]
            if tail.isdigit():
                self.numbers.add(int(tail))


def send_all(space, interface, packets, mac, listener):
    """Sends them in their order, no more at once than any queue holds, with one behind that always passes."""
    sender = space.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    with contextlib.closing(sender):
        sender.bind((interface, 0))
        head = Ether(src="02:00:00:00:00:01", dst=mac)
        for at in range(0, len(packets), 100):
            mark = 90000000 + at
            for packet in packets[at:at + 100]:
                sender.send(bytes(head / packet))
            # of no rule: it goes on, and all before it have been decided
            sender.send(bytes(head / IP(src="10.9.0.1", dst="10.9.0.2") / UDP(sport=1, dport=1) /
                              Raw(b"%08d" % mark)))
            listener.take(mark)
    listener.drain()
    return {number for number in listener.numbers if number < PACKETS}


def passed_by_kernel(packets):
    """What a kernel that forwards lets pass, by the same rules."""
    with contextlib.ExitStack() as stack:
        spaces = [stack.enter_context(contextlib.closing(Namespace(name)))
                  for name in ("source", "router", "sink")]
        source, router, sink = spaces
        for name, end in (("in", source), ("out", sink)):
            router.ip(f"link add {name} type veth peer name end netns {end.path}", f"link set {name} up")
            end.ip("link set end up")
            router.set(f"ipv4/conf/{name}/rp_filter", 0)
        router.set("ipv4/conf/all/rp_filter", 0)
        router.set("ipv4/ip_forward", 1)
        router.ip("addr add 10.8.0.1/24 dev out", "neigh add 10.8.0.2 lladdr 02:00:00:00:00:02 dev out nud permanent",
                  "route add default via 10.8.0.2", "addr add 10.7.0.1/24 dev in", "route add 10.1.0.0/16 dev in")
        router.run("nft", "add", "table", "ip", "t")
        router.run("nft", "add", "chain", "ip", "t", "forward",
                   "{ type filter hook forward priority 0 ; policy accept ; }")
        for rule in RULES:
            router.run(*as_nft(rule))
        listener = Listener(sink, "end")
        mac = router.links()["in"]["address"]
        return send_all(source, "end", packets, mac, listener)


@pytest.mark.needs("af_packet", "nft")
def test_the_kernel_says_the_same_of_each_packet(network, millrace, tmp_path):
    net = network(AF_PACKET)
    packets = draw_packets(random.Random(30))
    (tmp_path / "rules").write_text("\n".join(
        as_rule(priority, rule) for priority, rule in enumerate(RULES)) + "\n", encoding="ascii")
    engine = millrace("--rules", tmp_path / "rules", network=net)
    passed = send_all(net.left.space, "end", packets, net.right.mac, Listener(net.right.space, "end"))
    rules = engine.ask("rule list")
    by_kernel = passed_by_kernel(packets)
    assert passed == by_kernel
    assert 200 < len(passed) < PACKETS - 200
    # every rule had something to do, and what was dropped is told
    assert all(rule["packets"] > 0 for rule in rules), rules
    assert sum(rule["packets"] for rule, words in zip(rules, RULES) if not words[-1]) == PACKETS - len(passed)
    engine.stop()


def command(engine, *words):
    """A verb of the client, of the engine's socket."""
    done = subprocess.run([MILLRACE, *words, "--socket", engine.socket], capture_output=True, text=True,
                          check=False, timeout=60 * SLOWER, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return done.stdout


TUNNEL = ("set vxlan ip-version ipv4 vni 77 udp-src 0 udp-dst 4789 ip-src 10.77.0.1 ip-dst 10.77.0.2 "
          "eth-src 02:00:00:00:00:01 eth-dst 02:00:00:00:00:02")


@pytest.mark.needs("af_packet", "ping")
def test_a_tunnel_ends_in_a_kernel(network, millrace):
    """The left host has no tunnel; the right one's kernel has a VXLAN device. Rules stand between the two."""
    net = network(AF_PACKET)
    left, right = net.ends
    try:
        right.space.ip(f"link add vx type vxlan id 77 local {right.address} remote {left.address} dstport 4789 dev end",
                       "link set vx address 02:00:00:00:00:88 up", "addr add 10.79.0.2/24 dev vx")
    except AssertionError as error:
        pytest.skip(f"no VXLAN in this kernel: {error}")
    right.space.ip("neigh replace 10.79.0.1 lladdr 02:00:00:00:00:01 dev vx nud permanent")
    left.space.ip("addr add 10.79.0.1/24 dev end",
                  "neigh replace 10.79.0.2 lladdr 02:00:00:00:00:88 dev end nud permanent")
    engine = millrace(network=net)
    for line in (TUNNEL,
                 "flow create 0 ingress pattern eth / ipv4 dst is 10.79.0.2 / end "
                 "actions vxlan_encap / port_id id 1 / end",
                 "flow create 1 ingress pattern eth / ipv4 / udp dst is 4789 / end "
                 "actions vxlan_decap / port_id id 0 / end"):
        command(engine, "rule", "add", line)
    left.space.run("ping", "-n", "-q", "-c", 5, "-i", 0.2, "-W", 10, "10.79.0.2")
    rules = [json.loads(line) for line in command(engine, "rule", "list", "--json").splitlines()]
    assert [rule["packets"] for rule in rules] == [5, 5]
    engine.stop()


@pytest.mark.needs("af_packet", "ping")
def test_an_address_is_translated_by_rules(network, millrace):
    """The right host answers to an address that it does not have."""
    net = network(AF_PACKET)
    left, right = net.ends
    left.space.ip(f"neigh replace 10.77.0.100 lladdr {right.mac} dev end nud permanent")
    engine = millrace(network=net)
    for line in ("flow create 0 ingress pattern eth / ipv4 dst is 10.77.0.100 / end "
                 "actions set_ipv4_dst ipv4_addr 10.77.0.2 / dec_ttl / port_id id 1 / end",
                 "flow create 1 ingress pattern eth / ipv4 src is 10.77.0.2 / end "
                 "actions set_ipv4_src ipv4_addr 10.77.0.100 / port_id id 0 / end"):
        command(engine, "rule", "add", line)
    said = left.space.run("ping", "-n", "-q", "-c", 5, "-i", 0.2, "-W", 10, "10.77.0.100")
    assert " 5 received" in said.stdout
    # without the rules nobody has that address
    command(engine, "rule", "add", "flow flush 0")
    command(engine, "rule", "add", "flow flush 1")
    said = left.space.run("ping", "-n", "-q", "-c", 2, "-i", 0.2, "-W", 1, "10.77.0.100", check=False)
    assert " 0 received" in said.stdout
    engine.stop()
