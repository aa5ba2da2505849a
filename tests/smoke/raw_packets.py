# SPDX-License-Identifier: BSD-3-Clause
"""IP packets as bytes, many a second, with all checksums right; each ends with a number of eight digits."""
import select
import socket
import struct
import time

from engine import SLOWER

TCP, UDP, ICMP, ICMP6 = 6, 17, 1, 58
FIN, SYN, RST, ACK = 1, 2, 4, 16
TTL = 64
ALL_FRAMES = 3
ROOM = 1 << 25


def checksum(data):
    """RFC 1071: the sum of words with end-around carry is the number modulo 0xffff."""
    if len(data) % 2:
        data += b"\0"
    rest = int.from_bytes(data, "big") % 0xffff
    return 0xffff - rest or 0xffff


def packed(address):
    return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)


def network(src, dst, proto, upper):
    """Around `upper`; both addresses packed."""
    if len(src) == 16:
        return struct.pack("!IHBB", 6 << 28, len(upper), proto, TTL) + src + dst + upper
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(upper), 0, 0, TTL, proto, 0) + src + dst
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + upper


def pseudo(src, dst, proto, length):
    return src + dst + struct.pack("!II", length, proto)


def summed(src, dst, proto, upper, at):
    """With the checksum at that offset; of ICMP over IPv4 it is that of the message alone."""
    before = b"" if proto == ICMP else pseudo(src, dst, proto, len(upper))
    return upper[:at] + struct.pack("!H", checksum(before + upper)) + upper[at + 2:]


def udp(src, dst, ports, number):
    upper = struct.pack("!HHHH", *ports, 16, 0) + number
    return network(src, dst, UDP, summed(src, dst, UDP, upper, 6))


def tcp(src, dst, ports, numbers, flags, number):
    upper = struct.pack("!HHIIBBHHH", *ports, *numbers, 5 << 4, flags, 65535, 0, 0) + number
    return network(src, dst, TCP, summed(src, dst, TCP, upper, 16))


def icmp(src, dst, kind, rest, data):
    """`kind`: type and code; `rest`: the 4 bytes behind the checksum."""
    proto = ICMP if len(src) == 4 else ICMP6
    upper = struct.pack("!BBH", *kind, 0) + rest + data
    return network(src, dst, proto, summed(src, dst, proto, upper, 2))


def echo(src, dst, asks, name, number):
    kinds = ((129, 0), (128, 0)) if len(src) == 16 else ((0, 0), (8, 0))
    return icmp(src, dst, kinds[asks], struct.pack("!HH", name, 1), number)


def error(src, dst, kind, quoted, number):
    """About a packet, of which it has the IP header and 8 bytes."""
    head = 40 if len(src) == 16 else 20
    return icmp(src, dst, kind, bytes(4), quoted[:head + 8] + number)


class Side:
    """One end: sends what a host there and its neighbours would, and sees what comes."""

    def __init__(self, space, mac):
        self.socket = space.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_FRAMES))
        self.socket.setsockopt(socket.SOL_SOCKET, 33, ROOM)  # SO_RCVBUFFORCE
        self.socket.bind(("end", 0))
        head = bytes.fromhex((mac + ":02:00:00:00:00:01").replace(":", ""))
        self.heads = {0x40: head + b"\x08\x00", 0x60: head + b"\x86\xdd"}
        self.came = set()  # numbers of packets

    def send(self, packet):
        self.socket.send(self.heads[packet[0] & 0xf0] + packet)

    def drain(self):
        while select.select([self.socket], [], [], 0)[0]:
            frame, address = self.socket.recvfrom(2048)
            tail = frame.rstrip(b"\0")[-8:]
            if address[2] != socket.PACKET_OUTGOING and tail.isdigit():
                self.came.add(int(tail))

    def take(self, number):
        end = time.monotonic() + 30 * SLOWER
        while number not in self.came:
            assert select.select([self.socket], [], [], max(0, end - time.monotonic()))[0], number
            self.drain()
