# SPDX-License-Identifier: BSD-3-Clause
"""The filters of examples/filters/ do between hosts what their first lines say."""
import contextlib
import pathlib
import select
import socket

import pytest

from engine import SLOWER
from network import AF_PACKET

FILTERS = pathlib.Path(__file__).resolve().parents[2] / "examples" / "filters"
INSIDE, OUTSIDE = 0, 1
TCP, UDP = socket.SOCK_STREAM, socket.SOCK_DGRAM
# Where nothing comes back at all.
SILENCE_S = 1
# Operators' addresses in the file, and an outside host that is one.
NOBODY, OPERATOR = "192.0.2.0 src prefix 24", "10.77.0.2 src prefix 32"

HOME = [
    (INSIDE, 4, TCP, 80, "works"), (INSIDE, 6, TCP, 80, "works"), (INSIDE, 4, UDP, 53, "works"),
    (INSIDE, 6, UDP, 53, "works"), (OUTSIDE, 4, TCP, 22, "refused"), (OUTSIDE, 6, TCP, 22, "refused"),
    (OUTSIDE, 4, UDP, 53, "silence"), (OUTSIDE, 6, UDP, 53, "silence"),
]
SERVERS = [
    (OUTSIDE, 4, TCP, 80, "works"), (OUTSIDE, 4, TCP, 443, "works"), (OUTSIDE, 4, TCP, 25, "refused"),
    (OUTSIDE, 4, UDP, 53, "refused"), (OUTSIDE, 6, TCP, 80, "silence"), (INSIDE, 4, UDP, 53, "works"),
    (INSIDE, 4, UDP, 123, "works"), (INSIDE, 4, TCP, 80, "refused"), (INSIDE, 4, UDP, 124, "refused"),
]


def open_socket(end, version, kind, timeout):
    made = end.space.socket(socket.AF_INET if version == 4 else socket.AF_INET6, kind)
    made.settimeout(timeout)
    return made


def outcome(ends, side, version, kind, port, timeout):
    """What becomes of an attempt of that side to talk with a service of the other one."""
    asker, answerer = ends[side], ends[1 - side]
    address = answerer.address if version == 4 else answerer.address6
    with contextlib.closing(open_socket(answerer, version, kind, 10 * SLOWER)) as service, \
            contextlib.closing(open_socket(asker, version, kind, timeout)) as client:
        service.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        service.bind((address, port))
        try:
            if kind == TCP:
                service.listen()
                client.connect((address, port))
                service.accept()[0].close()
                return "works" if client.recv(1) == b"" else "odd"
            client.connect((address, port))
            client.send(b"asked")
            if select.select([service, client], [], [], timeout)[0] == [service]:
                said, back = service.recvfrom(64)
                service.sendto(said + b", told", back)
            return "works" if client.recv(64) == b"asked, told" else "odd"
        except ConnectionRefusedError:
            return "refused"
        except OSError as error:
            return "silence" if isinstance(error, TimeoutError) else "refused"


def check(engine, ends, attempts):
    for attempt in attempts:
        timeout = SILENCE_S if attempt[-1] == "silence" else 10 * SLOWER
        assert outcome(ends, *attempt[:-1], timeout) == attempt[-1], attempt
    wire = engine.ask("wire show")[0]
    assert wire["reject_replies"] == sum(attempt[-1] == "refused" for attempt in attempts), wire


@pytest.mark.needs("af_packet")
def test_home_gateway(network, millrace):
    net = network(AF_PACKET)
    engine = millrace("--rules", FILTERS / "home-gateway.rules", network=net)
    check(engine, net.ends, HOME)
    engine.stop()


@pytest.mark.needs("af_packet")
def test_server_farm(network, millrace, tmp_path):
    """With the operators' address in the file SSH works from there, and is told of; the file is loaded while all runs."""
    net = network(AF_PACKET)
    text = (FILTERS / "server-farm.rules").read_text(encoding="ascii")
    engine = millrace("--rules", FILTERS / "server-farm.rules", network=net)
    check(engine, net.ends, [*SERVERS, (OUTSIDE, 4, TCP, 22, "refused")])
    assert text.count(NOBODY) == 1
    (tmp_path / "rules").write_text(text.replace(NOBODY, OPERATOR), encoding="ascii")
    engine.client("rule", "load", tmp_path / "rules")
    assert outcome(net.ends, OUTSIDE, 4, TCP, 22, 10 * SLOWER) == "works"
    assert sum(rule["packets"] > 0 for rule in engine.ask("rule list")) >= 5
    engine.stop()
