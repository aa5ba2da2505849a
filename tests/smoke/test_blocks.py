# SPDX-License-Identifier: BSD-3-Clause
"""A live TCP transfer is blocked, and later goes on; another beside it does not notice."""
import contextlib
import random
import socket
import struct
import threading
import time

import pytest

from engine import read_records
from network import AF_PACKET

PORT, BLOCKED, OTHER = 5001, 40001, 40002
TCP_INFO_RETRANSMITS = 100  # tcpi_total_retrans of linux/tcp.h
PIECE = 1000
SECONDS = 6


class Transfer:
    """Data that looks random, from left to right, a piece each millisecond, for some seconds."""

    def __init__(self, network, port):
        left, right = network.ends
        server = right.space.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.client = left.space.socket(socket.AF_INET, socket.SOCK_STREAM)
        with contextlib.closing(server):
            server.bind((right.address, PORT + port))
            server.listen(1)
            self.client.bind((left.address, port))
            self.client.settimeout(60)
            self.client.connect((right.address, PORT + port))
            self.server = server.accept()[0]
        self.server.settimeout(60)
        self.data = random.Random(port).randbytes(PIECE * 1000 * SECONDS)
        self.got, self.last = bytearray(), 0
        self.threads = [threading.Thread(target=self.send), threading.Thread(target=self.receive)]
        for thread in self.threads:
            thread.start()

    def send(self):
        begun = time.monotonic()
        for at in range(0, len(self.data), PIECE):
            wait = begun + at / PIECE / 1000 - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            self.client.sendall(self.data[at:at + PIECE])
        self.client.shutdown(socket.SHUT_WR)

    def receive(self):
        while piece := self.server.recv(65536):
            self.got += piece
            self.last = time.monotonic()

    def finish(self):
        """All of it came, in order; how many segments its sender sent again, needed or not."""
        for thread in self.threads:
            thread.join(90)
            assert not thread.is_alive()
        info = self.client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192)
        assert bytes(self.got) == self.data
        self.client.close()
        self.server.close()
        return struct.unpack_from("=I", info, TCP_INFO_RETRANSMITS)[0]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("as_prefix", [False, True], ids=["flow", "port"])
def test_a_live_transfer(network, millrace, workers, as_prefix):
    net = network(AF_PACKET)
    engine = millrace("--output", "records.json", "--workers", workers, network=net)
    left, right = net.ends
    transfers = [Transfer(net, port) for port in (BLOCKED, OTHER)]
    engine.until(lambda: all(len(transfer.got) > 200 * PIECE for transfer in transfers), "some data")
    words = ([f"{left.address}/32", "--port", str(BLOCKED)] if as_prefix else
             [f"{right.address}:{PORT + BLOCKED}", f"{left.address}:{BLOCKED}", "tcp"])
    asked = time.monotonic()
    engine.client("flow", "block", *words, "--reason", "a test")
    time.sleep(2)
    blocked = transfers[0].last - asked
    assert blocked < 1, f"it went on for {blocked:.3f} s"
    (flow,) = engine.ask("flow list", blocked=True)
    assert BLOCKED in (flow["sport"], flow["dport"]) and flow["blocked_packets"] > 0
    assert transfers[1].last > asked + 1.5
    engine.client("flow", "unblock", *words)
    assert [transfer.finish() for transfer in transfers][0] > 0
    # a sender that waits for a late thread may send again what was not lost: the engine tells what was
    wire, drops = engine.idle(), engine.drops()
    assert drops == {"blocked": wire["received"] - wire["out"]}
    engine.stop(leaves=["records.json"])
    ports = {record["sport"]: record for record in
             read_records(engine.directory / "records.json") if record["proto"] == 6}
    assert ports[BLOCKED]["blocked_packets"] == drops["blocked"]
    assert ports[BLOCKED]["blocked"] is False and ports[BLOCKED]["end_reason"] == "fin"
    assert "blocked" not in ports[OTHER] and ports[OTHER]["end_reason"] == "fin"
