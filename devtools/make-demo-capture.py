#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the capture of a small office at work: the same bytes at every run.

Three desks, a file server, a printer that refuses, a name server, a visitor on a VLAN, and a
little of everything that a flow engine has to tell apart.

usage: make-demo-capture.py CAPTURE
"""
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests"))
import frames  # noqa: E402  pylint: disable=wrong-import-position

DESKS = ["10.0.0.11", "10.0.0.12", "10.0.0.13"]
NAMES, FILES, PRINTER, ROUTER = "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.1"
WEB, WEB6, DESK6 = "192.0.2.80", "2001:db8:80::1", "2001:db8:1::11"
VISITOR, CAMERA = "10.7.0.21", "10.7.0.9"


def browsing(chance):
    """Desks that look up a name and fetch a page: DNS, then TCP from handshake to FIN."""
    for number in range(60):
        desk, time = chance.choice(DESKS), number * 0.4 + chance.random() * 0.3
        port = 40000 + number
        yield frames.dns(time, desk, port, NAMES, f"page{number}.example")
        yield frames.dns(time + 0.004, desk, port, NAMES, f"page{number}.example", answer=WEB)
        page = frames.Tcp(time + 0.006, desk, port, WEB, 443, step=0.003)
        page.open().talk(200, chance.randint(300, 1400), times=chance.randint(1, 12)).close()
        yield page


def office():
    """All that happens, as packets, lists of packets and conversations."""
    chance = random.Random(2026)
    yield from browsing(chance)
    # The same over IPv6.
    yield frames.Tcp(3, DESK6, 50000, WEB6, 443, step=0.004).open().talk(times=20).close()
    # A long copy that is still going on when the capture ends.
    yield frames.Tcp(1, DESKS[0], 50100, FILES, 445, step=0.02).open().talk(60, 1400, times=380)
    # The printer is off: refused, and tried again.
    for time in (19, 20, 21):
        yield frames.Tcp(time, DESKS[1], 50200 + time, PRINTER, 9100).segment(0, frames.SYN).reset()
    # Somebody pings the way out.
    for number in range(10):
        yield frames.ping(2 + number, DESKS[2], ROUTER, number)
        yield frames.ping(2.002 + number, DESKS[2], ROUTER, number, reply=True)
    # A question to a port where nobody listens; the answer is an ICMP error.
    asked = frames.udp(8, DESKS[1], 50300, FILES, 514, size=80)
    yield asked
    yield frames.unreachable(8.001, FILES, asked)
    # A datagram too large for the wire, its pieces out of order.
    yield frames.fragments(frames.udp(9, FILES, 2049, DESKS[2], 900, size=4000), 1480)[::-1]
    # A visitor's network, in a VLAN of its own, with a camera that only talks.
    yield frames.Tcp(4, VISITOR, 50400, WEB, 443, vlans=(7,)).open().talk(times=6).close()
    for number in range(50):
        yield frames.udp(number * 0.5, CAMERA, 5004, VISITOR, 5004, size=1200, vlans=(7,))
    # What is not IP.
    for number in range(6):
        yield frames.arp(number * 4, DESKS[0], ROUTER)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    frames.write(sys.argv[1], *office())


main()
