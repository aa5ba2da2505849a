# SPDX-License-Identifier: BSD-3-Clause
"""Fragments and cut headers on a real wire: how long one without its first waits, and what strict drops."""
import contextlib
import socket
import time

import frames  # pylint: disable=unused-import  # it silences scapy
import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from network import AF_PACKET, TAP

ALL_FRAMES = 3


def frame(content):
    return bytes(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / content)


@contextlib.contextmanager
def raw(end):
    """A socket for every frame of an end."""
    with end.space.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_FRAMES)) as sock:
        sock.bind(("end", ALL_FRAMES))
        sock.settimeout(30)
        yield sock


def wait_for(sock, wanted):
    """Until these bytes come by."""
    while sock.recv(2000)[:len(wanted)] != wanted:
        pass


@pytest.mark.parametrize("driver", [AF_PACKET, TAP])
def test_a_fragment_without_its_first_goes_on_soon(network, millrace, driver):
    """Not after a minute, when its receiver has given up, and its number is another datagram's."""
    net = network(driver)
    engine = millrace(network=net)
    left, right = net.ends
    later = frame(IP(src="10.7.0.1", dst="10.7.0.2", proto=17, id=77, frag=185) / Raw(b"f" * 64))
    with raw(left) as sender, raw(right) as receiver:
        began = time.monotonic()
        sender.send(later)
        engine.until(lambda: engine.wire()["held"] == 1 or engine.wire()["fragments_untied"] == 1,
                     "the fragment is there")
        wait_for(receiver, later)
        took = time.monotonic() - began
    assert 0.3 <= took < 20  # 0.3 s, on a machine that others use, too
    assert engine.wire()["fragments_untied"] == 1
    engine.stop()


@pytest.mark.parametrize("strict", [False, True])
def test_strict_drops_what_hides_a_header(network, millrace, strict):
    """Cut in the middle of its header, or with one that cannot be, and what belongs to it."""
    net = network(AF_PACKET)
    engine = millrace(*(["--tcp", "strict"] if strict else []), network=net)
    left, right = net.ends
    segment = bytes(TCP(sport=1025, dport=80, flags="R") / Raw(b"t" * 44))
    address = {"src": "10.7.0.1", "dst": "10.7.0.2"}
    hiding = [IP(proto=6, id=5, frag=0, flags="MF", **address) / Raw(segment[:16]),
              IP(proto=6, id=5, frag=2, **address) / Raw(segment[16:]),
              IP(proto=6, id=6, frag=1, **address) / Raw(segment[8:]),
              IP(**address) / TCP(sport=1026, dport=80, dataofs=4) / Raw(b"t" * 40)]
    last = frame(IP(**address) / UDP(sport=1, dport=2) / Raw(b"l" * 40))
    with raw(left) as sender, raw(right) as receiver:
        for content in hiding:
            sender.send(frame(content))
        sender.send(last)
        wait_for(receiver, last)
        engine.until(lambda: engine.wire()["held"] == 0, "nothing waits")
    assert engine.drops().get("tcp_header", 0) == (len(hiding) if strict else 0)
    engine.stop()
