# SPDX-License-Identifier: BSD-3-Clause
"""A capture with flows of every kind, made by scapy."""
from scapy.all import (ICMP, IP, TCP, UDP, Dot1Q, Ether, ICMPv6EchoReply, ICMPv6EchoRequest, IPv6, Raw, fragment,
                       wrpcap)


def captured(tmp_path, frames):
    path = tmp_path / "frames.pcap"
    for number, frame in enumerate(frames):
        frame.time = 1700000000 + number / 1000
    wrpcap(str(path), frames)
    return path


def make_mixture(directory):
    """Flows of every kind, with padding and tags, and a conversation that begins anew."""
    ether = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    there, back = IP(src="192.0.2.1", dst="198.51.100.2"), IP(src="198.51.100.2", dst="192.0.2.1")
    there6, back6 = IPv6(src="2001:db8::1", dst="2001:db8::2"), IPv6(src="2001:db8::2", dst="2001:db8::1")
    frames = []
    for seq in (1000, 900000):
        frames += [
            ether / there / TCP(sport=4000, dport=80, flags="S", seq=seq),
            ether / back / TCP(sport=80, dport=4000, flags="SA", seq=7 * seq, ack=seq + 1),
            ether / there / TCP(sport=4000, dport=80, flags="A", seq=seq + 1, ack=7 * seq + 1),
            ether / there / TCP(sport=4000, dport=80, flags="PA", seq=seq + 1, ack=7 * seq + 1) / Raw(b"x" * 700),
            ether / back / TCP(sport=80, dport=4000, flags="A", seq=7 * seq + 1, ack=seq + 701),
        ]
    frames += [
        ether / there / UDP(sport=53, dport=5353) / Raw(b"a"),
        ether / back / UDP(sport=5353, dport=53) / Raw(b"b" * 100),
        ether / there / ICMP(type=8, id=5), ether / back / ICMP(type=0, id=5),
        ether / Dot1Q(vlan=7) / there6 / UDP(sport=1, dport=2) / Raw(b"c" * 90),
        ether / Dot1Q(vlan=7) / Dot1Q(vlan=8) / back6 / UDP(sport=2, dport=1) / Raw(b"d"),
        ether / there6 / ICMPv6EchoRequest(), ether / back6 / ICMPv6EchoReply(),
        *[ether / part for part in fragment(there / UDP(sport=9, dport=9) / Raw(b"e" * 3000), fragsize=1400)],
        ether / back / Raw(b"no protocol that has ports"),
    ]
    frames = [Ether(bytes(frame).ljust(60, b"\0")) for frame in frames]
    return captured(directory, frames), frames
