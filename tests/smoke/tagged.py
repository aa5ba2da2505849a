# SPDX-License-Identifier: BSD-3-Clause
"""A VLAN ping without the kernel's VLAN interfaces, which small kernels lack: frames by hand."""
import socket
import struct
import threading

import frames  # pylint: disable=unused-import  # it silences scapy
from scapy.layers.inet import ICMP, IP
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw

from network import VLAN

ALL_FRAMES = 3
SOL_PACKET, PACKET_AUXDATA, PACKET_IGNORE_OUTGOING = 263, 8, 23
TAG_VALID = 0x10


class Tagged:
    """Every frame that comes to an end, with its tag: the kernel hands that over beside it."""

    def __init__(self, end):
        self.end = end
        self.socket = end.space.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_FRAMES))
        self.socket.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        self.socket.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        self.socket.bind(("end", ALL_FRAMES))
        self.socket.settimeout(10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, to, kind, sequence):
        frame = (Ether(src=self.end.mac, dst=to.mac) / Dot1Q(vlan=VLAN) /
                 IP(src=self.end.vlan_address, dst=to.vlan_address) /
                 ICMP(type=kind, id=77, seq=sequence) / Raw(b"p" * 48))
        self.socket.send(bytes(frame))

    def receive(self):
        """(VLAN, kind, sequence) of the next echo to this end's address in the VLAN."""
        while True:
            data, about, _, _ = self.socket.recvmsg(65536, 256)
            packet = Ether(data)
            if IP not in packet or packet[IP].dst != self.end.vlan_address:
                continue
            vlan = packet[Dot1Q].vlan if Dot1Q in packet else None
            for level, kind, auxiliary in about:
                status = struct.unpack_from("=I", auxiliary)[0]
                if (level, kind) == (SOL_PACKET, PACKET_AUXDATA) and status & TAG_VALID:
                    vlan = struct.unpack_from("=H", auxiliary, 16)[0] & 0xfff
            return vlan, packet[ICMP].type, packet[ICMP].seq


def ping(left, right, count=5):
    """Each echo comes back, tagged both ways."""
    got = []
    with Tagged(left) as asking, Tagged(right) as answering:
        def answer():
            for _ in range(count):
                got.append(answering.receive())
                answering.send(left, 0, got[-1][2])

        thread = threading.Thread(target=answer)
        thread.start()
        for sequence in range(count):
            asking.send(right, 8, sequence)
            assert asking.receive() == (VLAN, 0, sequence)
        thread.join()
    assert got == [(VLAN, 8, sequence) for sequence in range(count)]
