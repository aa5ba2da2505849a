# SPDX-License-Identifier: BSD-3-Clause
"""Rules of conversations on live ports: who may begin, what comes back, and what the kernel's nf_tables says of the same."""
import contextlib
import random
import select
import socket
import time

import frames  # pylint: disable=unused-import  # it silences scapy
import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.packet import Raw

from engine import SLOWER
from network import AF_PACKET, Namespace
from raw_packets import Side

CONVERSATIONS = 500
ROUNDS = 5
BURST = 100
# of markers, which pass by the first rule: what was sent before one has been decided when it comes
MARKED = "10.9.0.0/16"

OUT_AND_BACK = """\
flow create 0 ingress pattern ct state is new,related / eth / end actions count / end
flow create 0 transfer pattern ct state is established,related / eth / end actions count / end
flow create 0 transfer pattern eth / ipv4 / end actions drop / end
"""

# The same policy in both languages: inside is port 0, and the kernel's interface `in`.
SERVERS = [
    ("0 transfer", "ct state is established / eth / ipv4", "count", "ct state established accept"),
    ("0 ingress", "ct state is new / eth / ipv4 / tcp dst is 25", "drop", "iifname in ct state new tcp dport 25 drop"),
    ("0 ingress", "ct state is new / eth / ipv4", "count", "iifname in ct state new accept"),
    ("1 ingress", "ct state is new / eth / ipv4 / tcp dst is 22", "count",
     "iifname out ct state new tcp dport 22 accept"),
    ("1 ingress", "ct state is new / eth / ipv4 dst spec 10.1.5.0 dst prefix 24 / udp dst is 53", "count",
     "iifname out ct state new ip daddr 10.1.5.0/24 udp dport 53 accept"),
    ("0 transfer", "eth / ipv4", "drop", "drop"),
]


def server_rules():
    marked = (f"flow create 0 transfer priority 0 pattern eth / ipv4 src spec {MARKED[:-3]} src prefix 16 / end "
              "actions count / end\n")
    return marked + "".join(
        f"flow create {where} priority {at + 1} pattern {pattern} / end actions {action} / end\n"
        for at, (where, pattern, action, _) in enumerate(SERVERS))


def draw(seed, pickup):
    """rounds[r][side]: packets with their numbers, of conversations that either side begins; ports are of each its own.

    Who answers does so whether or not anything came. With `pickup` TCP has no handshake, as after a restart.
    """
    chance = random.Random(seed)
    rounds = [([], []) for _ in range(ROUNDS)]
    for number in range(CONVERSATIONS):
        first = chance.randrange(2)
        hosts = f"10.1.{chance.choice((5, 6))}.{chance.randint(1, 200)}", f"10.2.0.{chance.randint(1, 200)}"
        port = chance.choice((22, 25, 53, 80))
        tcp = chance.random() < 0.5
        spoken = [first, *(chance.randrange(2) for _ in range(ROUNDS - 1))] if not tcp else [first, not first, first]
        spoken = [int(side) for side in spoken][:chance.randint(1, ROUNDS)]
        for at, side in enumerate(spoken):
            ports = {"sport": 10000 + number, "dport": port} if side == first else \
                {"sport": port, "dport": 10000 + number}
            upper = UDP(**ports)
            if tcp and pickup:
                upper = TCP(flags="A", seq=(1000, 5000, 1008)[at], ack=(5000, 1008, 5008)[at], **ports)
            elif tcp:
                upper = TCP(flags=("S", "SA", "A")[at], seq=(1000, 5000, 1001)[at], ack=(0, 1001, 5001)[at], **ports)
            packet = IP(src=hosts[side], dst=hosts[not side], ttl=64) / upper / Raw(b"%08d" % (number * ROUNDS + at))
            rounds[at][side].append(packet)
    return rounds


def send_all(sides, rounds):
    """Sends rounds in their order, and both sides of each in turn: a packet is decided before what follows it is sent."""
    marker = 90000000
    for packets in rounds:
        for side in (0, 1):
            for at in range(0, len(packets[side]), BURST):
                for packet in packets[side][at:at + BURST]:
                    sides[side].send(bytes(packet))
                marker += 1
                sides[side].send(bytes(IP(src=f"10.9.{side}.1", dst=("10.2.250.250", "10.1.5.250")[side]) /
                                       UDP(sport=1, dport=1) / Raw(b"%08d" % marker)))
                sides[not side].take(marker)
    for side in sides:
        side.drain()
    return {number for side in sides for number in side.came if number < 90000000}


def passed_by_kernel(rounds, pickup):
    with contextlib.ExitStack() as stack:
        inside, router, outside = (stack.enter_context(contextlib.closing(Namespace(name)))
                                   for name in ("inside", "router", "outside"))
        for name, end, number in (("in", inside, 1), ("out", outside, 2)):
            router.ip(f"link add {name} type veth peer name end netns {end.path}", f"link set {name} up")
            end.ip("link set end up")
            router.set(f"ipv4/conf/{name}/rp_filter", 0)
            router.ip(f"addr add 10.{6 + number}.0.1/24 dev {name}",
                      f"neigh add 10.{6 + number}.0.2 lladdr 02:00:00:00:00:02 dev {name} nud permanent",
                      f"route add 10.{number}.0.0/16 via 10.{6 + number}.0.2")
        router.set("ipv4/conf/all/rp_filter", 0)
        router.set("ipv4/ip_forward", 1)
        router.set("netfilter/nf_conntrack_tcp_loose", int(pickup))
        router.set("netfilter/nf_conntrack_tcp_be_liberal", 1)
        router.run("nft", "add", "table", "ip", "t")
        router.run("nft", "add", "chain", "ip", "t", "forward", "{ type filter hook forward priority 0 ; policy accept ; }")
        router.run("nft", "add", "rule", "ip", "t", "forward", "ip", "saddr", MARKED, "accept")
        for *_, words in SERVERS:
            router.run("nft", "add", "rule", "ip", "t", "forward", *words.split())
        links = router.links()
        return send_all([Side(inside, links["in"]["address"]), Side(outside, links["out"]["address"])], rounds)


@pytest.mark.needs("af_packet", "nft")
@pytest.mark.parametrize("pickup", [False, True], ids=["handshakes", "pickup"])
def test_the_kernel_says_the_same_of_each_conversation(network, millrace, tmp_path, pickup):
    net = network(AF_PACKET)
    rounds = draw(33, pickup)
    (tmp_path / "rules").write_text(server_rules(), encoding="ascii")
    engine = millrace("--rules", tmp_path / "rules", "--rules-pickup", "yes" if pickup else "no", network=net)
    passed = send_all([Side(net.left.space, net.right.mac), Side(net.right.space, net.left.mac)], rounds)
    rules = engine.ask("rule list")
    assert all(rule["packets"] > 0 for rule in rules), rules
    by_kernel = passed_by_kernel(rounds, pickup)
    assert passed == by_kernel, (sorted(passed - by_kernel)[:9], sorted(by_kernel - passed)[:9])
    everything = sum(len(packets[side]) for packets in rounds for side in (0, 1))
    assert everything / 5 < len(passed) < everything * 4 / 5
    engine.stop()


def listening(end, kind, port):
    made = end.space.socket(socket.AF_INET, kind)
    made.bind((end.address, port))
    if kind == socket.SOCK_STREAM:
        made.listen()
    return made


def connected(end, other, port, timeout):
    made = end.space.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.settimeout(timeout)
    made.connect((other.address, port))
    return made


def echoes(asker, answerer, address, word, timeout):
    """Does a datagram come, and its answer?"""
    asker.sendto(word, address)
    if not select.select([answerer], [], [], timeout)[0]:
        return False
    said, back = answerer.recvfrom(64)
    answerer.sendto(said, back)
    return bool(select.select([asker], [], [], timeout)[0]) and asker.recv(64) == word


@pytest.mark.needs("af_packet", "ping")
def test_three_rules_let_inside_out(network, millrace, tmp_path):
    """Inside reaches outside by TCP, UDP and ping, and nobody comes in; without its rule a live flow ends at once."""
    net = network(AF_PACKET)
    inside, outside = net.ends
    (tmp_path / "rules").write_text(OUT_AND_BACK, encoding="ascii")
    engine = millrace("--rules", tmp_path / "rules", network=net)
    with contextlib.ExitStack() as stack:
        server, datagrams = (stack.enter_context(contextlib.closing(listening(outside, kind, 7000)))
                             for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM))
        own_server, own_datagrams = (stack.enter_context(contextlib.closing(listening(inside, kind, 7000)))
                                     for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM))
        line = stack.enter_context(contextlib.closing(connected(inside, outside, 7000, 10 * SLOWER)))
        far = stack.enter_context(contextlib.closing(server.accept()[0]))
        asker = stack.enter_context(contextlib.closing(inside.space.socket(socket.AF_INET, socket.SOCK_DGRAM)))
        assert echoes(asker, datagrams, (outside.address, 7000), b"out", 10 * SLOWER)
        assert " 3 received" in inside.space.run("ping", "-n", "-q", "-c", 3, "-i", 0.2, "-W", 10, outside.address).stdout

        with pytest.raises(TimeoutError):
            connected(outside, inside, 7000, 1)
        assert not select.select([own_server], [], [], 0)[0]
        assert not echoes(datagrams, own_datagrams, (inside.address, 7000), b"in", 0.5)
        said = outside.space.run("ping", "-n", "-q", "-c", 2, "-i", 0.2, "-W", 1, inside.address, check=False)
        assert " 0 received" in said.stdout

        flow = next(flow for flow in engine.flows() if flow["proto"] == 6 and flow["dst"] == outside.address)
        told = engine.client("flow", "explain", f"{flow['src']}:{flow['sport']}", f"{flow['dst']}:{flow['dport']}", "tcp")
        assert "conversation accepted: new ->, established <-" in told
        assert "decided by rule #0 of port 0 ->" in told and "decided by rule #1 of port 0 <-" in told
        told = engine.client("rule", "trace", f"{flow['dst']}:{flow['dport']}", f"{flow['src']}:{flow['sport']}", "tcp")
        assert "established, reverse" in told and "decided by rule #1 of port 0" in told

        # the rule that let it begin goes: neither direction passes any more
        line.sendall(b"before")
        assert far.recv(64) == b"before"
        begun = time.monotonic()
        engine.client("rule", "del", "0", "0")
        engine.until(lambda: '"reverse_verdict":"drop"' in engine.client(
            "flow", "explain", f"{flow['src']}:{flow['sport']}", f"{flow['dst']}:{flow['dport']}", "tcp",
            "--json").replace(" ", ""), "a verdict that drops")
        assert time.monotonic() - begun < SLOWER
        line.sendall(b"after")
        far.sendall(b"after")
        assert not select.select([line, far], [], [], 0.5)[0]
    engine.stop()
