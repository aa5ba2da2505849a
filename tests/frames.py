# SPDX-License-Identifier: BSD-3-Clause
"""Frames for tests and the demo, made with scapy: the same bytes and times at every run.

A packet is a scapy Ether with its time set (seconds). Conversations are lists of packets; lists
are mixed by sorting on time (see write()).
"""
import logging

logging.getLogger("scapy").setLevel(logging.ERROR)

# pylint: disable=wrong-import-position
from scapy.layers.dns import DNS, DNSQR, DNSRR  # noqa: E402
from scapy.layers.inet import ICMP, IP, TCP, UDP, fragment  # noqa: E402
from scapy.layers.inet6 import (ICMPv6DestUnreach, ICMPv6EchoReply,  # noqa: E402
                                ICMPv6EchoRequest, IPv6, IPv6ExtHdrFragment, fragment6)
from scapy.layers.l2 import ARP, Dot1AD, Dot1Q, Ether  # noqa: E402
from scapy.packet import Raw  # noqa: E402
from scapy.utils import PcapWriter  # noqa: E402

# 2026-11-20 08:00:00 UTC
START = 1795161600

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16


def network(src, dst, **fields):
    """The IP header between two addresses, of either version."""
    return IPv6(src=src, dst=dst, **fields) if ":" in src else IP(src=src, dst=dst, **fields)


def frame(time, content, vlans=()):
    """An Ethernet frame at START + time around `content`; two tags make the outer one 802.1ad."""
    ether = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    for depth, vlan in enumerate(vlans):
        ether /= (Dot1AD if depth == 0 and len(vlans) > 1 else Dot1Q)(vlan=vlan)
    packet = ether / content
    packet.time = START + time
    return packet


def udp(time, src, sport, dst, dport, size=20, vlans=(), data=None):
    """One UDP datagram with `size` bytes of data, or with `data` itself."""
    content = network(src, dst) / UDP(sport=sport, dport=dport) / (data or Raw(b"u" * size))
    return frame(time, content, vlans)


def dns(time, src, sport, dst, name, answer=None):
    """A question to dst's port 53; with an address as `answer`, dst's reply to it."""
    asked = DNSQR(qname=name)
    if answer is None:
        return udp(time, src, sport, dst, 53, data=DNS(id=sport, qd=asked))
    told = DNSRR(rrname=name, ttl=300, rdata=answer)
    return udp(time, dst, 53, src, sport, data=DNS(id=sport, qr=1, qd=asked, an=told))


def arp(time, src, dst):
    """src asks who has dst."""
    return frame(time, ARP(hwsrc="02:00:00:00:00:01", psrc=src, pdst=dst))


def ping(time, src, dst, sequence=1, reply=False, number=7):
    """An echo request from src to dst, or the reply that dst would send to it."""
    if reply:
        src, dst = dst, src
    if ":" in src:
        echo = (ICMPv6EchoReply if reply else ICMPv6EchoRequest)(id=number, seq=sequence)
    else:
        echo = ICMP(type=0 if reply else 8, id=number, seq=sequence)
    return frame(time, network(src, dst) / echo / Raw(b"p" * 48))


def unreachable(time, router, about):
    """The ICMP port unreachable that `router` sends to the sender of the packet `about`."""
    quoted = about[IPv6] if IPv6 in about else about[IP]
    quoted = type(quoted)(bytes(quoted))
    error = ICMPv6DestUnreach(code=4) if ":" in quoted.src else ICMP(type=3, code=3)
    return frame(time, network(router, quoted.src) / error / quoted)


def fragments(packet, size):
    """The fragments of a packet, all at its time, in order."""
    whole = packet[IPv6] if IPv6 in packet else packet[IP]
    if IPv6 in packet:
        whole = IPv6(src=whole.src, dst=whole.dst) / IPv6ExtHdrFragment(id=77) / whole.payload
        pieces = fragment6(whole, size + 40)
    else:
        pieces = fragment(whole, size)
    return [frame(float(packet.time) - START, piece) for piece in pieces]


class Tcp:
    """A TCP conversation: each call appends packets; time goes on by `step` at each of them."""

    def __init__(self, time, src, sport, dst, dport, step=0.01, vlans=()):
        self.time, self.step, self.vlans = time, step, vlans
        self.ends = ((src, sport, dst, dport), (dst, dport, src, sport))
        self.next = [1000, 5000]
        self.packets = []

    def segment(self, end, flags, data=b"", offset=0, options=()):
        """From end 0 (the client) or 1; `offset` moves the sequence number off its place."""
        src, sport, dst, dport = self.ends[end]
        header = TCP(sport=sport, dport=dport, flags=flags, seq=self.next[end] + offset,
                     ack=self.next[1 - end] if flags & ACK else 0, window=8192,
                     options=list(options))
        self.packets.append(frame(self.time, network(src, dst) / header / Raw(data), self.vlans))
        self.time += self.step
        if not offset:
            self.next[end] += len(data) + bool(flags & SYN) + bool(flags & FIN)
        return self

    def open(self):
        """Three packets."""
        return self.segment(0, SYN).segment(1, SYN | ACK).segment(0, ACK)

    def talk(self, asked=100, answered=1000, times=1):
        """Three packets each time: question, answer, acknowledgement."""
        for _ in range(times):
            self.segment(0, PSH | ACK, b"q" * asked).segment(1, PSH | ACK, b"a" * answered)
            self.segment(0, ACK)
        return self

    def close(self, end=0):
        """Three packets; both sides finish, `end` first."""
        return self.segment(end, FIN | ACK).segment(1 - end, FIN | ACK).segment(end, ACK)

    def reset(self, end=1):
        """One packet."""
        return self.segment(end, RST | ACK)


def write(path, *packets, in_order=True):
    """Writes packets, and lists of them, sorted by time unless told otherwise."""
    flat = []
    for item in packets:
        flat.extend(item.packets if isinstance(item, Tcp) else item if isinstance(item, list)
                    else [item])
    if in_order:
        flat.sort(key=lambda packet: packet.time)
    with PcapWriter(str(path), linktype=1, sync=False) as writer:
        writer.write_header(None)
        for packet in flat:
            # as bytes: writers of later versions refuse layers without a link type
            seconds = int(packet.time)
            writer.write_packet(bytes(packet), sec=seconds,
                                usec=round((packet.time - seconds) * 1000000))
    return path
