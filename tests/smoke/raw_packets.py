# SPDX-License-Identifier: BSD-3-Clause
"""IP packets as bytes, many a second, with all checksums right; each ends with a number of eight digits."""
import socket
import struct

TCP, UDP, ICMP, ICMP6 = 6, 17, 1, 58
FIN, SYN, RST, ACK = 1, 2, 4, 16
TTL = 64


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
