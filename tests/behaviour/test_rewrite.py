# SPDX-License-Identifier: BSD-3-Clause
"""Action programs change packets; scapy makes the same change, and the bytes are compared.

A packet is drawn as a description, changed as its list of actions says, and built before and after. The bytes
are put together here, since scapy takes a millisecond for each packet, but its checksums are by scapy's functions;
and one packet in SAMPLE is built by scapy alone, to the same bytes.
"""
import copy
import pathlib
import random
import socket
import struct
import subprocess
import zlib

import pytest

from conftest import MILLRACE, SLOWER
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_NOP
from scapy.layers.inet6 import (ICMPv6EchoRequest, IPv6, IPv6ExtHdrDestOpt,
                                IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, IPv6ExtHdrRouting, PadN)
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether, GRE
from scapy.layers.sctp import SCTP, crc32c
from scapy.layers.vxlan import VXLAN
from scapy.packet import NoPayload, Raw
from scapy.utils import checksum

TOOL = pathlib.Path(MILLRACE).parent / "tests" / "rewrite_capture"
CHUNKS, IN_A_CHUNK, SAMPLE = 10, 10000, 10
PCAP_HEAD = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
WHOLE, FIRST, LATER = range(3)
ICMP4, ICMP6 = 1, 58
HOP, ROUTING, FRAGMENT, DESTINATION = 0, 43, 44, 60
HEADER = {6: 20, 17: 8, 132: 12, ICMP4: 8, ICMP6: 8, 47: 0}
LATER_OFFSET = 1480


class Packet:  # pylint: disable=too-many-instance-attributes
    """A description that a packet is built from."""

    def __init__(self, draw):
        self.version = draw.choice((4, 6))
        self.macs = [self.mac(draw), self.mac(draw)]
        self.tags = [(draw.choice((0x8100, 0x88a8)), draw.getrandbits(16))
                     for _ in range(draw.choice((0, 0, 0, 1, 2, 3)))]
        self.addresses = [draw.randbytes(16), draw.randbytes(16)]
        self.ttl = draw.randint(1, 255)
        self.protocol = draw.choice((6, 6, 6, 17, 17, 17, 132, 132, 47,
                                     ICMP4 if self.version == 4 else ICMP6))
        self.ports = [draw.getrandbits(16), draw.getrandbits(16)]
        self.identification = draw.getrandbits(16)
        self.options = 4 * draw.choice((0, 0, 0, 1, 5, 10)) if self.version == 4 else 0
        self.extensions = []
        if self.version == 6 and draw.random() < 0.4:
            self.extensions = [draw.choice((HOP, ROUTING, DESTINATION))
                               for _ in range(draw.randint(1, 3))]
        # with a second routing header scapy takes another one's address than RFC 8200 means
        self.extensions = [kind for at, kind in enumerate(self.extensions)
                           if kind != ROUTING or ROUTING not in self.extensions[:at]]
        self.segments_left = draw.randint(0, 1) if ROUTING in self.extensions else 0
        self.final = draw.randbytes(16)
        self.fragment = draw.choice((WHOLE, WHOLE, WHOLE, WHOLE, FIRST, LATER))
        self.no_checksum = self.protocol == 17 and draw.random() < 0.2
        self.fields = draw.randbytes(16)
        self.payload = draw.randbytes(draw.randint(0, 120))
        self.cut = 8 * draw.randint(3, 8)

    @staticmethod
    def mac(draw):
        return bytes([draw.getrandbits(8) & 0xFE]) + draw.randbytes(5)

    def address(self, side):
        return self.addresses[side][:4 if self.version == 4 else 16]

    @property
    def has_ports(self):
        return self.protocol in (6, 17, 132) and self.fragment != LATER

    def upper(self):
        """Header and payload of the whole datagram's upper layer, with its checksum."""
        length = HEADER[self.protocol] + len(self.payload)
        ports = struct.pack("!HH", *self.ports)
        if self.protocol == 6:
            made, at = ports + self.fields[:8] + b"\x50\x10" + self.fields[8:10] + bytes(4), 16
        elif self.protocol == 17:
            made, at = ports + struct.pack("!HH", length, 0), 6
        elif self.protocol in (ICMP4, ICMP6):
            made, at = bytes([8 if self.protocol == ICMP4 else 128, 0, 0, 0]) + self.fields[:4], 2
        elif self.protocol == 132:
            made = ports + self.fields[:4] + bytes(4) + self.payload
            return made[:8] + struct.pack("!I", crc32c(made)) + made[12:]
        else:
            return self.payload
        made += self.payload
        pseudo = b""
        if self.protocol != ICMP4:
            destination = self.final if self.segments_left else self.address(1)
            pseudo = self.address(0) + destination + struct.pack("!II", self.protocol, length)
        total = checksum(pseudo + made)
        if self.protocol == 17:
            total = 0 if self.no_checksum else total or 0xFFFF
        return made[:at] + struct.pack("!H", total) + made[at + 2:]

    def part(self, upper):
        """The part of it that lies in this packet."""
        return upper[:self.cut] if self.fragment == FIRST else upper

    def build(self, middle=None):
        """The frame; a later fragment has `middle` behind its IP headers, whatever became of the ports."""
        upper = self.part(middle if middle is not None else self.upper())
        link = self.macs[1] + self.macs[0]
        for tpid, tci in self.tags:
            link += struct.pack("!HH", tpid, tci)
        if self.version == 4:
            flags = (0, 0x2000, LATER_OFFSET // 8)[self.fragment]
            head = struct.pack("!BBHHHBBH", 0x45 + self.options // 4, 0,
                               20 + self.options + len(upper), self.identification, flags,
                               self.ttl, self.protocol, 0)
            head += self.address(0) + self.address(1) + b"\x01" * self.options
            head = head[:10] + struct.pack("!H", checksum(head)) + head[12:]
            return link + b"\x08\x00" + head + upper
        chain = self.extensions + ([FRAGMENT] if self.fragment else []) + [self.protocol]
        more = b""
        for kind, following in zip(chain, chain[1:]):
            if kind == ROUTING:
                more += bytes([following, 2, 0, self.segments_left, 0, 0, 0, 0]) + self.final
            elif kind == FRAGMENT:
                offset = 1 if self.fragment == FIRST else LATER_OFFSET
                more += struct.pack("!BBHI", following, 0, offset, self.identification)
            else:
                more += bytes([following, 0, 1, 4, 0, 0, 0, 0])
        head = struct.pack("!IHBB", 6 << 28, len(more + upper), chain[0], self.ttl)
        return link + b"\x86\xdd" + head + self.address(0) + self.address(1) + more + upper

    def scapy_upper(self):
        """The upper layer, without checksums: they are scapy's to find."""
        ports = {"sport": self.ports[0], "dport": self.ports[1]}
        first, second, third = struct.unpack("!IIH", self.fields[:10])
        if self.protocol == 6:
            made = TCP(seq=first, ack=second, window=third, flags="A", **ports)
        elif self.protocol == 17:
            made = UDP(**ports, **({"chksum": 0} if self.no_checksum else {}))
        elif self.protocol == 132:
            made = SCTP(tag=first, **ports)
        elif self.protocol in (ICMP4, ICMP6):
            kind = ICMP(type=8) if self.protocol == ICMP4 else ICMPv6EchoRequest()
            kind.id, kind.seq = struct.unpack("!HH", self.fields[:4])
            made = kind
        else:
            return Raw(self.payload) if self.payload else NoPayload()
        return made / Raw(self.payload) if self.payload else made

    def scapy_build(self):
        """The same frame by scapy's objects alone."""
        made = Ether(src=mac_text(self.macs[0]), dst=mac_text(self.macs[1]))
        for tpid, tci in self.tags:
            kind = Dot1Q if tpid == 0x8100 else Dot1AD
            made /= kind(prio=tci >> 13, **{"dei" if "dei" in DOT1Q_FIELDS else "id": tci >> 12 & 1},
                         vlan=tci & 0xFFF)
        if self.version == 4:
            where = {"src": socket.inet_ntop(socket.AF_INET, self.address(0)),
                     "dst": socket.inet_ntop(socket.AF_INET, self.address(1)),
                     "ttl": self.ttl, "id": self.identification, "proto": self.protocol,
                     "options": [IPOption_NOP() for _ in range(self.options)]}
            whole = bytes(IP(**where) / self.scapy_upper())
            upper = whole[20 + self.options:]
            if self.fragment == WHOLE:
                return bytes(made / IP(whole))
            last = IP(flags="MF" if self.fragment == FIRST else 0,
                      frag=0 if self.fragment == FIRST else LATER_OFFSET // 8, **where)
            return bytes(made / last / Raw(self.part(upper)))
        head = IPv6(src=socket.inet_ntop(socket.AF_INET6, self.address(0)),
                    dst=socket.inet_ntop(socket.AF_INET6, self.address(1)),
                    hlim=self.ttl)
        last = head
        for kind in self.extensions:
            if kind == ROUTING:
                more = IPv6ExtHdrRouting(
                    addresses=[socket.inet_ntop(socket.AF_INET6, self.final)],
                    segleft=self.segments_left)
            else:
                more = (IPv6ExtHdrHopByHop if kind == HOP else IPv6ExtHdrDestOpt)(
                    options=[PadN(optdata=bytes(4))])
            last.nh = kind
            last.add_payload(more)
            last = more
        last.nh = self.protocol
        if self.fragment == WHOLE:
            last.add_payload(self.scapy_upper())
            return bytes(made / head)
        whole = head.copy()
        whole.lastlayer().add_payload(self.scapy_upper())
        upper = bytes(whole)[len(bytes(head)):]
        last.nh = FRAGMENT
        last.add_payload(IPv6ExtHdrFragment(
            nh=self.protocol, m=self.fragment == FIRST, id=self.identification,
            offset=0 if self.fragment == FIRST else LATER_OFFSET // 8) / Raw(self.part(upper)))
        return bytes(made / head)


DOT1Q_FIELDS = {field.name for field in Dot1Q.fields_desc}


def mac_text(mac):
    return ":".join(f"{byte:02x}" for byte in mac)


class Change:
    """A random list of actions, and what it has to make of a packet."""

    def __init__(self, draw, before):
        self.after = copy.copy(before)
        self.after.macs, self.after.tags = list(before.macs), list(before.tags)
        self.after.addresses, self.after.ports = list(before.addresses), list(before.ports)
        self.words, self.port, self.not_possible = [], 65535, False
        self.tags(draw)
        tags = self.words
        self.words = []
        self.others(draw)
        draw.shuffle(self.words)
        # the order of what changes tags is kept
        at = draw.randint(0, len(self.words))
        self.words[at:at] = tags
        self.expired = "decrement-ttl" in self.words and before.ttl <= 1

    def tags(self, draw):
        tags = self.after.tags
        for _ in range(draw.choice((0, 0, 0, 1, 1, 2, 3))):
            kind = draw.choice(("push", "pop", "set"))
            if kind == "push":
                tpid, vlan, priority = draw.choice((0x8100, 0x88A8)), draw.randint(0, 4094), draw.getrandbits(3)
                self.words.append(f"vlan-push {tpid:#x} {vlan} {priority}")
                tags.insert(0, (tpid, priority << 13 | vlan))
                continue
            vlan = draw.randint(0, 4094)
            self.words.append("vlan-pop" if kind == "pop" else f"vlan-set {vlan}")
            if not tags:
                self.not_possible = True
                return
            tpid, tci = tags.pop(0)
            if kind == "set":
                tags.insert(0, (tpid, tci & 0xF000 | vlan))

    def others(self, draw):
        after = self.after
        for side, name in enumerate(("src", "dst")):
            if draw.random() < 0.4:
                after.macs[side] = Packet.mac(draw)
                self.words.append(f"set-mac-{name} {mac_text(after.macs[side])}")
            if draw.random() < 0.4:
                after.addresses[side] = draw.randbytes(16)
                family = socket.AF_INET if after.version == 4 else socket.AF_INET6
                text = socket.inet_ntop(family, after.address(side))
                self.words.append(f"set-ipv{after.version}-{name} {text}")
            if draw.random() < 0.4:
                port = draw.getrandbits(16)
                self.words.append(f"set-port-{name} {port}")
                if after.protocol == 132 and after.fragment == FIRST:
                    self.not_possible = True
                elif after.has_ports:
                    after.ports[side] = port
        if draw.random() < 0.5:
            self.words.append("decrement-ttl")
            after.ttl = max(0, after.ttl - 1)
        elif draw.random() < 0.2:
            after.ttl = draw.getrandbits(8)
            self.words.append(f"set-ttl {after.ttl}")
        if draw.random() < 0.2:
            self.port = draw.randint(0, 65534)
            self.words.append(f"output {self.port}")

    @property
    def answer(self):
        if self.expired:
            return "ttl_expired"
        return "not_possible" if self.not_possible else "none"


def pcap(contents):
    parts = [PCAP_HEAD]
    for content in contents:
        parts += (struct.pack("<IIII", 0, 0, len(content), len(content)), content)
    return b"".join(parts)


def read_pcap(data):
    at = len(PCAP_HEAD)
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at + 8)
        yield data[at + 16:at + 16 + length]
        at += 16 + length


def run_lists(directory, before, lists):
    """Runs a list over each packet; returns reason and port of each, and an iterator over what goes on."""
    (directory / "in.pcap").write_bytes(pcap(before))
    (directory / "lists").write_text("\n".join(lists) + "\n", encoding="ascii")
    done = subprocess.run([TOOL, directory / "in.pcap", directory / "lists", directory / "out.pcap"],
                          capture_output=True, text=True, check=False, timeout=60 * SLOWER)
    assert done.returncode == 0, done.stderr
    return ([line.split() for line in done.stdout.splitlines()],
            read_pcap((directory / "out.pcap").read_bytes()))


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_as_scapy_makes_it(chunk, tmp_path):
    if not TOOL.exists():
        pytest.skip("the tests of this build are not built")
    draw = random.Random(zlib.crc32(b"rewrite %d" % chunk))
    before, lists, wanted, built = [], [], [], []
    for number in range(IN_A_CHUNK):
        packet = Packet(draw)
        change = Change(draw, packet)
        middle = packet.upper() if packet.fragment == LATER else None
        before.append(packet.build())
        lists.append(", ".join(change.words))
        built.append(change.after.build(middle))
        wanted.append((change.answer, change.port))
        if number % SAMPLE == 0:
            assert before[-1] == packet.scapy_build(), (chunk, number)
            if middle is None:
                assert built[-1] == change.after.scapy_build(), (chunk, number)
    answers, passed = run_lists(tmp_path, before, lists)
    assert len(answers) == IN_A_CHUNK
    for number, (drop, port) in enumerate(answers):
        where = (chunk, number, lists[number])
        assert drop == wanted[number][0], where
        if drop == "none":
            assert int(port) == wanted[number][1], where
            assert next(passed) == built[number], where
    assert next(passed, None) is None
    assert sum(drop == "none" for drop, _ in answers) > IN_A_CHUNK // 2


TUNNELS = 3000


def outer(draw, kind, payload):
    """A tunnel's headers around a payload, with a UDP source port of 0 where it is to be made up."""
    made = Ether(src=mac_text(Packet.mac(draw)), dst=mac_text(Packet.mac(draw)))
    for _ in range(draw.choice((0, 0, 1, 2))):
        made /= Dot1Q(vlan=draw.randint(0, 4094), prio=draw.randint(0, 7))
    if draw.random() < 0.5:
        made /= IP(src=socket.inet_ntoa(draw.randbytes(4)), dst=socket.inet_ntoa(draw.randbytes(4)),
                   ttl=draw.randint(1, 255), tos=draw.getrandbits(8), id=draw.getrandbits(16), flags="DF")
    else:
        made /= IPv6(src=socket.inet_ntop(socket.AF_INET6, draw.randbytes(16)),
                     dst=socket.inet_ntop(socket.AF_INET6, draw.randbytes(16)), hlim=draw.randint(1, 255))
    if kind == "vxlan":
        made /= UDP(sport=draw.choice((0, 0, 4789, 50000)), dport=4789, chksum=0)
        made /= VXLAN(vni=draw.getrandbits(24), flags="Instance")
    else:
        made /= GRE(key_present=1, proto=0x6558, key=draw.getrandbits(32))
    return made / Raw(payload) if payload else made


def udp_source(frame):
    """Where the outer UDP source port lies, or None."""
    at = 12
    while struct.unpack_from(">H", frame, at)[0] == 0x8100:
        at += 4
    version = struct.unpack_from(">H", frame, at)[0]
    at += 2
    protocol, upper = (frame[at + 9], at + 20) if version == 0x0800 else (frame[at + 6], at + 40)
    return upper if protocol == 17 else None


def test_tunnels_as_scapy_makes_them(tmp_path):
    if not TOOL.exists():
        pytest.skip("the tests of this build are not built")
    draw = random.Random(zlib.crc32(b"tunnels"))
    before, lists, wanted = [], [], []
    for number in range(TUNNELS):
        packet = Packet(draw)
        inner = packet.build()
        kind, seed = draw.choice(("vxlan", "nvgre")), draw.random()
        headers = bytes(outer(random.Random(seed), kind, b""))
        whole = bytes(outer(random.Random(seed), kind, inner))
        # what comes off has to lie in the first segment
        choice = "encap" if number % 3 == 2 else draw.choice(("encap", "decap", "both", "bytes", "other"))
        if choice == "encap":
            before.append(inner)
            lists.append(f"encap {headers.hex()}")
            wanted.append(whole)
        elif choice == "decap":
            before.append(whole)
            lists.append(f"decap {kind}")
            wanted.append(inner)
        elif choice == "both":
            again = random.Random(draw.random())
            state = again.getstate()
            before.append(whole)
            lists.append(f"decap {kind}, encap {bytes(outer(again, 'vxlan', b'')).hex()}")
            again.setstate(state)
            wanted.append(bytes(outer(again, "vxlan", inner)))
        elif choice == "bytes":
            link = bytes(Ether(src=mac_text(Packet.mac(draw)), dst=mac_text(Packet.mac(draw)), type=0x8847))
            before.append(inner)
            lists.append(f"decap bytes 14, encap {link.hex()}")
            wanted.append(link + inner[14:])
        else:
            # UDP may be of a tunnel by chance
            while packet.protocol in (17, 47):
                packet = Packet(draw)
            before.append(packet.build())
            lists.append(f"decap {kind}")
            wanted.append(None)
    answers, passed = run_lists(tmp_path, before, lists)
    made_up = 0
    for number, (drop, _) in enumerate(answers):
        where = (number, lists[number])
        assert drop == ("not_possible" if wanted[number] is None else "none"), where
        if wanted[number] is None:
            continue
        made, right = bytearray(next(passed)), wanted[number]
        at = udp_source(right) if "encap" in lists[number] and "bytes" not in lists[number] else None
        if at is not None and right[at:at + 2] == b"\0\0":
            assert made[at] >= 0xC0, where
            made[at:at + 2] = b"\0\0"
            made_up += 1
        assert made == right, where
    assert next(passed, None) is None
    assert made_up > TUNNELS // 10


def test_a_flow_keeps_its_tunnel_port(tmp_path):
    """Packets of one flow have one outer source port, those of others mostly other ones."""
    if not TOOL.exists():
        pytest.skip("the tests of this build are not built")
    headers = bytes(Ether(dst="02:00:00:00:00:02") / IP(src="192.0.2.1", dst="192.0.2.2") / UDP(sport=0, dport=4789, chksum=0) /
                    VXLAN(vni=7, flags="Instance")).hex()
    before = [bytes(Ether(dst="02:00:00:00:00:02") / IP(src="10.0.0.1", dst="10.0.0.2", id=i) /
                    UDP(sport=1000 + i % 50, dport=53) / Raw(b"x" * i)) for i in range(100)]
    _, passed = run_lists(tmp_path, before, [f"encap {headers}"] * len(before))
    ports = [frame[34:36] for frame in passed]
    assert ports[:50] == ports[50:]
    assert len(set(ports)) > 45
