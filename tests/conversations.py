# SPDX-License-Identifier: BSD-3-Clause
"""
What rules say of conversations (docs/rules.md, "Conversations"), in plain Python: policies and conversations by chance,
and the verdict of each packet. It knows nothing of how the engine comes to it.
"""
import dataclasses
import ipaddress
import random

STATES = ("new", "established", "related", "invalid")
PORTS = (22, 53, 80, 443)
TTLS = (64, 3)


@dataclasses.dataclass
class Rule:  # pylint: disable=too-many-instance-attributes
    """The first rule that fits counts. What is None is not asked for."""
    passes: bool
    states: tuple = ()
    direction: str = None
    src: str = None
    dst: str = None
    proto: str = None
    dport: int = None
    ttl: int = None
    follow: bool = None

    def fits(self, packet, state, direction):
        return ((not self.states or state in self.states) and self.direction in (None, direction)
                and (self.src is None or ipaddress.ip_address(packet.src) in ipaddress.ip_network(self.src))
                and (self.dst is None or ipaddress.ip_address(packet.dst) in ipaddress.ip_network(self.dst))
                and self.proto in (None, packet.proto) and self.dport in (None, packet.dport)
                and self.ttl in (None, packet.ttl))

    def text(self, priority):
        items = []
        if self.states:
            items.append(f"ct state is {','.join(self.states)}")
        if self.direction:
            items.append(f"direction is {self.direction}")
        ip = "ipv4"
        for name in ("src", "dst"):
            net = getattr(self, name) and ipaddress.ip_network(getattr(self, name))
            ip += f" {name} spec {net.network_address} {name} prefix {net.prefixlen}" if net else ""
        items.append(ip + (f" ttl is {self.ttl}" if self.ttl is not None else ""))
        if self.proto:
            items.append(self.proto + (f" dst is {self.dport}" if self.dport is not None else ""))
        replies = "" if self.follow is None else f"replies {'follow' if self.follow else 'match'} "
        return (f"flow create 0 priority {priority} ingress {replies}pattern {' / '.join(items)} / end "
                f"actions {'count' if self.passes else 'drop'} / end")


@dataclasses.dataclass
class Packet:  # pylint: disable=too-many-instance-attributes
    number: int
    end: int
    src: str
    dst: str
    proto: str
    sport: int
    dport: int
    ttl: int
    syn: bool
    asks: bool = True  # of ICMP: an echo request, not a reply


class Conversation:
    """What has become of it so far, for rules."""

    def __init__(self):
        self.initiator, self.midway, self.followed = None, False, None
        self.asked = {}  # of ICMP: by end, the rule that replies to its requests follow, or None

    @property
    def accepted(self):
        return self.initiator is not None

    def take(self, packet, policy):
        """Does the packet pass?"""
        if packet.proto == "icmp":
            return self.take_icmp(packet, policy)
        if self.accepted and packet.end != self.initiator:
            if self.followed:
                return self.followed.passes
            found = policy.find(packet, "established", "reverse")
            return found is None or found.passes
        midway = self.midway if self.accepted else packet.proto == "tcp" and not packet.syn
        found = policy.find(packet, "invalid" if midway and not policy.pickup else "new", "forward")
        if found is not None and not found.passes:
            return False
        if not self.accepted:
            self.initiator, self.midway = packet.end, midway
            self.followed = found if found is not None and policy.follows(found) else None
        return True

    def take_icmp(self, packet, policy):
        """Either end may ask, and each reply is to requests that were let pass."""
        if not packet.asks:
            if self.asked.get(1 - packet.end):
                return self.asked[1 - packet.end].passes
            found = policy.find(packet, "established", "reverse") if 1 - packet.end in self.asked else \
                policy.find(packet, "invalid", None)
            return found is None or found.passes
        found = policy.find(packet, "new", "forward")
        if found is not None and not found.passes:
            return False
        if packet.end not in self.asked:
            self.asked[packet.end] = found if found is not None and policy.follows(found) else None
        return True


@dataclasses.dataclass
class Policy:
    rules: list
    follow: bool = False
    pickup: bool = True

    def find(self, packet, state, direction):
        return next((rule for rule in self.rules if rule.fits(packet, state, direction)), None)

    def follows(self, rule):
        return self.follow if rule.follow is None else rule.follow

    def text(self):
        return "".join(rule.text(at) + "\n" for at, rule in enumerate(self.rules))

    def options(self):
        return ("--rules-replies", "follow" if self.follow else "match",
                "--rules-pickup", "yes" if self.pickup else "no")


def draw_rule(draw, per_packet):
    proto = draw.choice((None, None, "tcp", "udp", "icmp"))
    return Rule(
        passes=draw.random() < 0.6,
        states=tuple(draw.sample(STATES, draw.choice((1, 1, 2)))) if draw.random() < 0.6 else (),
        direction=draw.choice(("forward", "reverse")) if draw.random() < 0.2 else None,
        src=draw.choice((None, None, "10.0.0.0/8", "192.0.2.0/24", "10.0.0.0/9")),
        dst=draw.choice((None, None, None, "10.0.0.0/8", "192.0.2.0/24")),
        proto=proto, dport=draw.choice((None, *PORTS)) if proto in ("tcp", "udp") else None,
        ttl=draw.choice(TTLS) if per_packet and draw.random() < 0.3 else None,
        follow=draw.choice((None, None, True, False)))


def draw_policy(seed):
    draw = random.Random(seed)
    per_packet = draw.random() < 0.4
    rules = [draw_rule(draw, per_packet) for _ in range(draw.randint(1, 5))]
    if draw.random() < 0.8:
        rules.append(Rule(passes=False))
    return Policy(rules, follow=draw.random() < 0.4, pickup=draw.random() < 0.7)


def draw_conversation(draw, number, policy):
    """Packets of one conversation, of either end as chance has it, and which of them pass."""
    inside, outside = f"10.{draw.choice((1, 200))}.{number >> 8}.{number & 255}", f"192.0.2.{draw.randint(1, 250)}"
    ends = (inside, outside) if draw.random() < 0.5 else (outside, inside)
    proto, port = draw.choice(("tcp", "udp", "tcp", "udp", "icmp")), draw.choice(PORTS)
    conversation, packets, passed = Conversation(), [], []
    for at in range(draw.randint(1, 8)):
        end = draw.choice((0, 0, 1)) if at else draw.choice((0, 0, 0, 1))
        ports = (1024 + number, port) if end == 0 else (port, 1024 + number)
        if proto == "icmp":
            ports = (0, 0)
        packet = Packet(at, end, ends[end], ends[not end], proto, *ports,
                        ttl=draw.choice((64, 64, 3)), syn=not conversation.accepted and draw.random() < 0.6, asks=draw.random() < 0.6)
        packets.append(packet)
        passed.append(conversation.take(packet, policy))
    return packets, passed
