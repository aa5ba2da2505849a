# SPDX-License-Identifier: BSD-3-Clause
"""The kernel's nf_tables with the same policy says the same of each packet of generated conversations.

MILLRACE_CONVERSATIONS is how many; the manual (docs/rules.md, "Differences from nf_tables") has where the two differ, and
each difference here has to be one of those.
"""
import contextlib
import os
import random
import subprocess
from collections import Counter
from dataclasses import dataclass, field

import pytest

import raw_packets as raw
from network import AF_PACKET, Namespace
from raw_packets import ACK, FIN, RST, SYN, Side

CONVERSATIONS = int(os.environ.get("MILLRACE_CONVERSATIONS", "2000"))
STEPS = 8
BURST = 200
# conversations are sent side by side, so many at once: their packets come in time
SIDE_BY_SIDE = 5000
MARKER = 90000000
MARKED = "10.9.0.0/16"
# behind each burst: of different flows, so that every worker has some
MARKERS = 16
HOSTS = {4: ("10.1.{}.{}", "10.2.{}.{}"), 6: ("fd01::{:x}:{:x}", "fd02::{:x}:{:x}")}

# The same policy in both languages: inside is port 0, and the kernel's interface `in`; {} is the IP version's word. Servers
# are those inside with a 5 in their address.
POLICY = [
    ("0 transfer", "ct state is established / eth / {}", "count", "ct state established accept"),
    ("0 transfer", "ct state is related / eth / {}", "count", "ct state related accept"),
    ("0 ingress", "ct state is new / eth / {} / tcp dst is 25", "drop", "iifname in ct state new tcp dport 25 drop"),
    ("0 ingress", "ct state is new / eth / {}", "count", "iifname in ct state new accept"),
    ("1 ingress", "ct state is new / eth / {} / tcp dst is 22", "count", "iifname out ct state new tcp dport 22 accept"),
    ("1 ingress", "ct state is new / eth / {server} / udp dst is 53", "count",
     "iifname out ct state new {server_nft} udp dport 53 accept"),
    ("1 ingress", "ct state is new / eth / {server} / {icmp}", "count",
     "iifname out ct state new {server_nft} meta l4proto {icmp_nft} accept"),
    ("0 transfer", "eth / {}", "drop", "drop"),
]
WORDS = {
    4: {"": "ipv4", "server": "ipv4 dst spec 10.1.5.0 dst prefix 24", "icmp": "icmp",
        "server_nft": "ip daddr 10.1.5.0/24", "icmp_nft": "icmp"},
    6: {"": "ipv6", "server": "ipv6 dst spec fd01::5:0 dst prefix 112", "icmp": "icmp6",
        "server_nft": "ip6 daddr fd01::5:0/112", "icmp_nft": "ipv6-icmp"},
}


def as_rules():
    lines = [f"flow create 0 transfer priority 0 pattern eth / ipv4 src spec {MARKED[:-3]} src prefix 16 / end "
             "actions count / end"]
    for words in WORDS.values():
        for at, (where, pattern, action, _) in enumerate(POLICY):
            text = pattern.replace("{}", words[""]).format(**words)
            lines.append(f"flow create {where} priority {at + 1} pattern {text} / end actions {action} / end")
    return "".join(f"{line}\n" for line in lines)


def as_nft():
    lines = [f"ip saddr {MARKED} accept"]
    for *_, text in POLICY:
        # each once, if both versions have the same words
        lines += dict.fromkeys(text.format(**words) for words in WORDS.values())
    return ("table inet t {\nchain f {\ntype filter hook forward priority 0; policy accept;\n" + "\n".join(lines) +
            "\n}\n}\n")


@dataclass
class Conversation:
    """A conversation: (side, bytes, kind) of each packet, and the number of the first one."""
    first: int
    kind: str
    packets: list = field(default_factory=list)


class Writer:
    """Draws conversations by a seed; those of one run never have the same ends."""

    def __init__(self, seed, pickup):
        self.chance = random.Random(seed)
        self.pickup = pickup

    def draw(self, index):
        """Conversation `index`; its packets have the numbers from index * STEPS on."""
        chance = self.chance
        made = Conversation(index * STEPS, "")
        version = chance.choice((4, 4, 6))
        low, high = index % 250 + 1, index // 250 % 250
        # the third byte, or seventh word, says whether it is a server; ports tell the rest apart
        inside = HOSTS[version][0].format(chance.choice((5, 6)), low)
        self.ends = raw.packed(inside), raw.packed(HOSTS[version][1].format(high, low))  # pylint: disable=attribute-defined-outside-init
        self.side = chance.randrange(2)  # pylint: disable=attribute-defined-outside-init
        self.ports = 1024 + index // 62500 * 20000 + index % 20000, chance.choice((22, 25, 53, 80))  # pylint: disable=attribute-defined-outside-init
        made.kind = chance.choices(("tcp", "udp", "echo"), (5, 4, 1))[0]
        getattr(self, made.kind)(made)
        if made.packets and len(made.packets) < STEPS and chance.random() < 0.4:
            self.error(made, version)
        made.packets = made.packets[:STEPS]
        return made

    def number(self, made):
        return b"%08d" % (made.first + len(made.packets))

    def way(self, by_first):
        """Addresses and ports of a packet of the one who begins, or of the other; and the side where it enters."""
        side = self.side if by_first else not self.side
        ports = self.ports if by_first else self.ports[::-1]
        return int(side), self.ends[side], self.ends[not side], ports

    def udp(self, made):
        for at in range(self.chance.randint(1, 5)):
            side, src, dst, ports = self.way(at == 0 or self.chance.random() < 0.5)
            made.packets.append((side, raw.udp(src, dst, ports, self.number(made)), "udp"))

    def segment(self, made, by_first, flags, numbers, kind="tcp"):
        side, src, dst, ports = self.way(by_first)
        made.packets.append((side, raw.tcp(src, dst, ports, numbers, flags, self.number(made)), kind))

    def tcp(self, made):
        """A handshake, then data, then an end by FIN or RST; or, met on the way, no handshake. Each payload has 8 bytes."""
        chance = self.chance
        steps = chance.randint(1, 6)
        seq = [chance.getrandbits(32), chance.getrandbits(32)]
        if chance.random() < (0.5 if self.pickup else 0.2):
            made.kind = "midway"
        else:
            self.segment(made, True, SYN, (seq[0], 0))
            seq[0] = (seq[0] + 9) % 2**32
            if steps > 1 and chance.random() < 0.1:
                self.segment(made, False, RST | ACK, (0, seq[0]))
                return
            if steps > 1:
                self.segment(made, False, SYN | ACK, (seq[1], seq[0]))
                seq[1] = (seq[1] + 9) % 2**32
        while len(made.packets) < steps:
            # the initiator ends the handshake, or is met first
            who = 0 if len(made.packets) in (0, 2) else chance.randrange(2)
            last = len(made.packets) == steps - 1 and made.packets
            flags = ACK | (chance.choice((0, FIN, RST)) if last else 0)
            self.segment(made, who == 0, flags, (seq[who], seq[not who]))
            seq[who] = (seq[who] + 8 + (flags & FIN)) % 2**32

    def echo(self, made):
        """Requests and replies of either end; now and then a reply that nobody asked for, or of another identifier."""
        chance = self.chance
        if chance.random() < 0.2:
            side, src, dst, _ = self.way(True)
            made.packets.append((side, raw.echo(src, dst, False, 7, self.number(made)), "echo"))
            return
        for at in range(chance.randint(1, 4)):
            asks = at == 0 or chance.random() < 0.4
            side, src, dst, _ = self.way(asks)
            other = not asks and chance.random() < 0.2
            made.packets.append((side, raw.echo(src, dst, asks, 8 if other else 7, self.number(made)),
                                 "other echo" if other else "echo"))

    def error(self, made, version):
        """About one of the packets, from its receiver or a router there; some are made up."""
        chance = self.chance
        side, about, kind = chance.choice(made.packets)
        head = 40 if version == 6 else 20
        src, dst = self.ends[side], self.ends[not side]
        kind = "error about " + kind
        if chance.random() < 0.3:
            router = HOSTS[version][not side].format(200, 250 if version == 4 else 0xfa)
            dst = raw.packed(router)
        draw = chance.random()
        if draw < 0.25 and made.kind != "echo":
            # of another port
            about, kind = about[:head] + bytes([about[head] ^ 0x80]) + about[head + 1:], "forged error"
        elif draw < 0.35 and about[9 if version == 4 else 6] == raw.TCP:
            # with a sequence number far away
            about, kind = about[:head + 4] + bytes([about[head + 4] ^ 0x80]) + about[head + 5:], "error of another number"
        kinds = ((1, 4), (2, 0), (3, 0)) if version == 6 else ((3, 3), (3, 4), (11, 0))
        made.packets.append((int(not side), raw.error(dst, src, chance.choice(kinds), about, self.number(made)), kind))


class Sender:
    """Sends conversations side by side; a packet is decided before what follows it is sent."""

    def __init__(self, sides):
        self.sides, self.marker = sides, MARKER

    def burst(self, side, packets):
        for packet in packets:
            self.sides[side].send(packet)
        ends = raw.packed(f"10.9.{side}.1"), raw.packed(("10.2.250.250", "10.1.5.250")[side])
        markers = range(self.marker, self.marker + MARKERS)
        self.marker = markers.stop
        for marker in markers:
            self.sides[side].send(raw.udp(*ends, (1 + marker - markers.start, 1), b"%08d" % marker))
        for marker in markers:
            self.sides[not side].take(marker)

    def send(self, conversations):
        for step in range(STEPS):
            for side in (0, 1):
                packets = [made.packets[step][1] for made in conversations
                           if step < len(made.packets) and made.packets[step][0] == side]
                for at in range(0, len(packets), BURST):
                    self.burst(side, packets[at:at + BURST])
        # an error may come behind the markers, when a worker has asked another about it
        for side in (0, 1, 0, 1):
            self.burst(side, [])
        for side in self.sides:
            side.drain()

    def passed(self):
        return {number for side in self.sides for number in side.came if number < MARKER}


@contextlib.contextmanager
def kernel_router(pickup):
    """A Sender through a kernel that forwards by the policy."""
    with contextlib.ExitStack() as stack:
        inside, router, outside = (stack.enter_context(contextlib.closing(Namespace(name)))
                                   for name in ("inside", "router", "outside"))
        router.set("ipv4/conf/all/rp_filter", 0)
        router.set("ipv4/ip_forward", 1)
        router.set("ipv6/conf/all/forwarding", 1)
        for name, end, number in (("in", inside, 1), ("out", outside, 2)):
            router.ip(f"link add {name} type veth peer name end netns {end.path}", f"link set {name} up")
            end.ip("link set end up")
            router.set(f"ipv4/conf/{name}/rp_filter", 0)
            router.set(f"ipv6/conf/{name}/disable_ipv6", 0)
            router.ip(f"addr add 10.{6 + number}.0.1/24 dev {name}",
                      f"addr add fd0{6 + number}::1/64 dev {name} nodad",
                      *(f"neigh add {address} lladdr 02:00:00:00:00:02 dev {name} nud permanent"
                        for address in (f"10.{6 + number}.0.2", f"fd0{6 + number}::2")),
                      f"route add 10.{number}.0.0/16 via 10.{6 + number}.0.2",
                      f"route add fd0{number}::/16 via fd0{6 + number}::2")
        router.set("netfilter/nf_conntrack_tcp_loose", int(pickup))
        router.set("netfilter/nf_conntrack_tcp_be_liberal", 1)
        with router.entered():
            subprocess.run(["nft", "-f", "-"], input=as_nft(), text=True, check=True)
        links = router.links()
        yield Sender([Side(inside, links["in"]["address"]), Side(outside, links["out"]["address"])])


def flags_of(packet):
    """The flags of a TCP segment."""
    return packet[20 + 13 if packet[0] >> 4 == 4 else 40 + 13]


def no_beginning(kind, packet):
    """A segment that nf_tables picks up no connection by."""
    return kind == "tcp" and (flags_of(packet) & (FIN | RST) or flags_of(packet) & (SYN | ACK) == SYN | ACK)


def reason(made, at, ours, kernel, pickup):
    """Why the two differ about packet `at` of a conversation, as the manual has it; None: that is not known."""
    kind = made.packets[at][2]
    passes = made.first + at in ours
    if "other echo" in kind and passes:
        return "identifiers of echoes"
    if kind == "error of another number" and not passes:
        return "sequence numbers that errors quote"
    before = [(packet, kind) for _, packet, kind in made.packets[:at]]
    sender_passed = any(side != made.packets[at][0] and made.first + other in ours
                        for other, (side, *_) in enumerate(made.packets[:at]))
    if kind == "error about tcp" and not passes and not sender_passed:
        return "errors about what did not pass"
    if kind in ("error about tcp", "error of another number") and passes and any(kind == "tcp" and flags_of(packet) & RST for packet, kind in before):
        return "errors behind a reset"
    began = next(other for other in range(STEPS) if made.first + other in ours | kernel)
    if pickup and made.first + began not in kernel and no_beginning(made.packets[began][2], made.packets[began][1]):
        return "beginnings that are none"
    return None


@pytest.mark.needs("af_packet", "nft")
@pytest.mark.parametrize("pickup", [False, True], ids=["handshakes", "pickup"])
def test_the_same_policy_has_the_same_verdicts(network, millrace, tmp_path, pickup):
    net = network(AF_PACKET)
    (tmp_path / "rules").write_text(as_rules(), encoding="ascii")
    engine = millrace("--rules", tmp_path / "rules", "--rules-pickup", "yes" if pickup else "no", "--workers", 2,
                      network=net)
    ours = Sender([Side(net.left.space, net.right.mac), Side(net.right.space, net.left.mac)])
    writer, conversations = Writer(33 + pickup, pickup), []
    with kernel_router(pickup) as kernels:
        for at in range(0, CONVERSATIONS // 2, SIDE_BY_SIDE):
            drawn = [writer.draw(index) for index in range(at, min(at + SIDE_BY_SIDE, CONVERSATIONS // 2))]
            ours.send(drawn)
            kernels.send(drawn)
            conversations += drawn
        passed, by_kernel = ours.passed(), kernels.passed()
    kinds = Counter(kind for made in conversations for *_, kind in made.packets)
    reasons, unknown = Counter(), []
    for made in conversations:
        for at, (_, _, kind) in enumerate(made.packets):
            number = made.first + at
            if (number in passed) == (number in by_kernel):
                continue
            why = reason(made, at, passed, by_kernel, pickup)
            reasons[why] += 1
            if why is None:
                unknown.append((number, made.kind, kind, at, "passes" if number in passed else "dropped"))
    everything = sum(kinds.values())
    print(f"{len(conversations)} conversations, {everything} packets {dict(kinds)}; passed {len(passed)}, by nf_tables "
          f"{len(by_kernel)}; differences {dict(reasons)}")
    assert not unknown, (len(unknown), unknown[:12])
    assert everything / 5 < len(passed) < everything * 4 / 5
    assert all(rule["packets"] > 0 for rule in engine.ask("rule list"))
    engine.stop()
