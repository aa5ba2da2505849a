# SPDX-License-Identifier: BSD-3-Clause
"""A million flows, listed while packets come, and what clients may do meanwhile.

No privileges are needed: wire 0 is a capture with a million conversations, read once; wire 1 repeats
a small one without end. What it brings goes nowhere: net_null takes it.
"""
import contextlib
import json
import re
import socket
import struct
import subprocess

import pytest

from engine import MILLRACE, SLOWER, Connection, Millrace

FLOWS = 1_000_000
CHUNK = 65_536
KEY = re.compile(rb'"src":"10\.(\d+)\.(\d+)\.(\d+)","sport":1000,"dst":"192\.0\.2\.1","dport":53,')
FRAME = bytes.fromhex(
    "020000000002 020000000001 0800"
    "4500002e 00004000 40110000 0a000000 c0000201"  # the checksum is not looked at
    "03e80035 001a0000") + b"m" * 18
SOURCE = 16 + 26  # of its address, in a packet of the capture


def write_capture(path, flows, times=1):
    """One packet for each flow, from 10.0.0.0 on by address; all of it so many times."""
    header = struct.pack("<IIII", 1795161600, 0, len(FRAME), len(FRAME))
    size = len(header) + len(FRAME)
    block = bytearray((header + FRAME) * CHUNK)
    block[SOURCE + 3::size] = bytes(range(256)) * (CHUNK // 256)
    block[SOURCE + 2::size] = bytes(byte for byte in range(256) for _ in range(256))
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for chunk in list(range((flows + CHUNK - 1) // CHUNK)) * times:
            block[SOURCE + 1::size] = bytes([chunk]) * CHUNK
            file.write(memoryview(block)[:min(CHUNK, flows - chunk * CHUNK) * size])
    return path


@pytest.fixture(name="engine", scope="module", params=[1, 2], ids=["1-worker", "2-workers"])
def running(request, tmp_path_factory):
    """The engine with all its flows, and traffic that does not end; stopped as it should be."""
    directory = tmp_path_factory.mktemp("million")
    # twice: of two workers one that does not get its turn for long loses what the other has for it
    once = write_capture(directory / "once.pcap", FLOWS, times=2)
    again = write_capture(directory / "again.pcap", 512)
    engine = Millrace(
        directory / "run", "--workers", request.param, "--timeout", "udp=3600",
        "--port", f"a=net_pcap0,rx_pcap={once},tx_pcap=/dev/null", "--port", "b=net_null0,no-rx=1",
        "--port", f"c=net_pcap1,rx_pcap={again},tx_pcap=/dev/null,infinite_rx=1",
        "--port", "d=net_null1,no-rx=1", "--wire", "a,b", "--wire", "c,d", wait=False)
    try:
        engine.until(engine.answers, "the socket answers")
        engine.until(lambda: engine.wires()[0]["received"] == 2 * FLOWS, "two million packets")
        engine.alone = descriptors(engine)
        yield engine
        engine.stop(idle=False)
    finally:
        engine.kill()
        once.unlink()


def descriptors(engine):
    """How many the engine has open; alone: with no client but the one that asks here."""
    return len(list(engine.proc.joinpath("fd").iterdir()))


def traffic_runs(engine):
    """More packets than there were when this was asked, the sums right."""
    before = engine.wires()[1]["received"]
    engine.until(lambda: engine.wires()[1]["received"] > before, "traffic runs")


def test_each_flow_once(engine):
    """flow list --json prints every flow, each exactly once, with the worker that has it."""
    before = engine.wires()
    workers = {worker["worker"]: 0 for worker in engine.ask("worker show")}
    seen, lines = bytearray(FLOWS), 0
    with engine.watched() as asked, subprocess.Popen(
            [MILLRACE, "flow", "list", "--json", "--wire", "0", "--socket", engine.socket],
            stdout=subprocess.PIPE) as process:
        for line in process.stdout:
            high, middle, low = KEY.search(line).groups()
            seen[int(high) << 16 | int(middle) << 8 | int(low)] += 1
            workers[int(line[line.rindex(b'"worker":') + 9:-2])] += 1
            if lines % 4096 == 0:
                json.loads(line)
            lines += 1
    assert process.returncode == 0
    assert lines == before[0]["flows"] and max(seen) == 1
    # each flow had two packets; what is missing was dropped twice, under a name
    missing = seen.count(0)
    assert missing <= before[0]["dropped"] / 2
    assert len(workers) == 2 or missing == 0
    assert min(workers.values()) + missing > 0.9 * FLOWS / len(workers)  # the hash spreads them
    assert asked[0] > 10 and engine.wires()[1]["received"] > before[1]["received"]


def test_filters_and_pages(engine):
    """A page says where the next begins; all pages together are the list."""
    chosen = {"address": "10.3.0.0/16"}
    with Connection(engine.socket) as connection:
        whole = [flow["src"] for flow in connection.ask("flow list", **chosen)[0]]
        given, paged = {**chosen, "limit": 10000}, []
        while True:
            flows, end = connection.ask("flow list", **given)
            paged += [flow["src"] for flow in flows]
            assert end["matched"] == len(flows) <= 10000
            if not end["cursor"]:
                break
            given["cursor"] = end["cursor"]
    assert paged == whole and len(set(whole)) == len(whole) > 50000
    assert all(source.startswith("10.3.") for source in whole)


def test_busiest(engine):
    """Those of wire 1 have packets all the time."""
    top = json.loads("[" + ",".join(engine.client(
        "flow", "list", "--top", "5", "--over", "0.2", "--json").splitlines()) + "]")
    assert len(top) == 5 and all(flow["wire"] == 1 and flow["rate_pps"] > 0 for flow in top)


def test_client_killed_in_mid_answer(engine):
    """The answer is far from its end when the client goes; nobody else notices."""
    for _ in range(20):
        with subprocess.Popen([MILLRACE, "flow", "list", "--json", "--socket", engine.socket],
                              stdout=subprocess.PIPE) as client:
            assert client.stdout.readline().startswith(b'{"version":4')
            client.kill()
        traffic_runs(engine)
    assert engine.client("wire", "show", "--json").count("\n") == 2


def test_connection_reset_in_mid_answer(engine):
    """The same without a farewell: what was sent is thrown away."""
    for _ in range(50):
        connection = Connection(engine.socket)
        connection.send("flow list")
        connection.next()
        connection.socket.shutdown(socket.SHUT_RDWR)
        connection.close()
    traffic_runs(engine)


def test_client_that_never_reads(engine):
    """It gets what fits between it and the engine; everybody else is served, packets pass."""
    lazy = [Connection(engine.socket) for _ in range(32)]
    try:
        for connection in lazy:
            connection.send("flow list")
        with engine.watched() as asked:
            assert engine.client("flow", "list", "--json", "--wire", "1").count("\n") == 512
        assert asked[0] > 10
    finally:
        for connection in lazy:
            connection.close()
    traffic_runs(engine)


def test_more_clients_than_are_served(engine):
    """The one too many gets the greeting and a clear error, the others go on."""
    with contextlib.ExitStack() as stack:
        # the 64th is the one that every Millrace here has
        connections = [stack.enter_context(Connection(engine.socket)) for _ in range(63)]
        said = engine.client("wire", "show", code=1)
        assert said == "millrace: too many clients: 64 are served at a time\n"
        for connection in connections:
            connection.ask("wire show")
    engine.until(lambda: served(engine), "there is room again")


def served(engine):
    try:
        return engine.client("wire", "show")
    except AssertionError:
        return False


def test_thousand_clients(engine):
    """One after another; as many descriptors and as much memory as before."""
    def ask(times):
        for _ in range(times):
            with Connection(engine.socket) as connection:
                connection.ask("wire show")
        engine.until(lambda: descriptors(engine) == engine.alone, "connections are closed")

    def resident():
        return int(re.search(r"VmRSS:\s+(\d+)", engine.proc.joinpath("status").read_text())[1])

    ask(100)
    memory = resident()
    ask(1000)
    # sanitizers keep what was freed
    assert resident() - memory < 1024 or SLOWER > 1
    for _ in range(50):
        engine.client("worker", "show")
    traffic_runs(engine)
