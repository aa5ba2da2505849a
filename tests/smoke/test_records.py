# SPDX-License-Identifier: BSD-3-Clause
"""Records of a running engine: files that are moved or full, and readers that do not read."""
import json
import os
import re
import signal
import subprocess
import threading

import pytest

import traffic
from engine import Connection, read_records, refused
from network import AF_PACKET
from test_million import write_capture

pytestmark = pytest.mark.needs("ping")


def end_flow(engine, net, port):
    """A flow with one packet that has ended by the next moment, its record written or lost."""
    traffic.datagram(net.left, net.right, 100, port=port)
    (flow,) = engine.until(lambda: engine.ask("flow list", port=port), "the flow is there")
    ends = {key: flow[key] for key in ("src", "sport", "dst", "dport")}
    (killed,) = engine.ask("flow kill", proto="udp", **ends)
    assert killed["packets"] == 1


def number(text):
    return int(text.replace(",", ""))


def told_at_the_end(engine):
    """Of the last line: records made, written, and lost by cause. They add up, whatever became of them."""
    line = engine.stderr.splitlines()[-1]
    told = re.search(r"  ([\d,]+) records: ([\d,]+) written, ([\d,]+) lost(?: \((.*)\))?$", line)
    assert told, line
    made, written, lost = map(number, told.groups()[:3])
    causes = {why: number(n) for n, why in re.findall(r"([\d,]*\d) (no room to wait|writing failed|no reader, or a slow one)",
                                                       told[4] or "")}
    assert made == written + lost and lost == sum(causes.values()), line
    return made, written, causes


def ports_of(path):
    return [record["dport"] for record in read_records(path)]


def test_hangup_opens_the_file_anew(network, millrace):
    """As logrotate does it: moved, SIGHUP, and the next records are in a new file."""
    net = network(AF_PACKET)
    engine = millrace("--output", "records.json", network=net)
    records, moved = engine.directory / "records.json", engine.directory / "records.json.1"
    end_flow(engine, net, 7001)
    engine.until(lambda: records.stat().st_size > 0, "the first record is written")
    records.rename(moved)
    engine.send_signal(signal.SIGHUP)
    engine.until(records.exists, "the file is opened anew")
    engine.until(lambda: "opened anew" in engine.stderr, "it is told")
    end_flow(engine, net, 7002)
    traffic.datagram(net.left, net.right, 100, port=7003)
    engine.stop(leaves=["records.json", "records.json.1"])
    assert ports_of(moved) == [7001] and ports_of(records) == [7002, 7003]


def test_hangup_without_records(network, millrace):
    """With nothing to open anew it is no reason to end."""
    net = network(AF_PACKET)
    engine = millrace(network=net)
    engine.send_signal(signal.SIGHUP)
    traffic.ping(net.left, net.right.address)
    engine.stop()


def test_hangup_that_fails(network, millrace):
    """The new file cannot be made: told, and the old one goes on."""
    net = network(AF_PACKET)
    engine = millrace("--output", "there/records.json", network=net, made=["there"])
    there, away = engine.directory / "there", engine.directory / "away"
    there.rename(away)
    engine.send_signal(signal.SIGHUP)
    engine.until(lambda: "cannot be opened anew" in engine.stderr, "it is told")
    end_flow(engine, net, 7001)
    engine.stop(leaves=["away"])
    assert ports_of(away / "records.json") == [7001]


def test_fifo_that_nobody_reads(network, millrace):
    """Traffic is carried as ever, whoever reads; the end comes in bounded time."""
    net = network(AF_PACKET)
    engine = millrace("--output", "fifo", network=net, fifo="fifo")
    assert "nobody reads the records" in engine.until(lambda: engine.stderr, "it is told")
    with engine.watched():
        traffic.ping(net.left, net.right.address, count=20)
        for port in range(7001, 7021):
            end_flow(engine, net, port)
    assert engine.drops() == {}
    wire = engine.idle()
    assert wire["received"] == wire["out"] == 60
    engine.stop(code=1, leaves=["fifo"])  # records were lost, and it says so
    assert "nobody reads the records" in engine.stderr
    made, written, causes = told_at_the_end(engine)
    assert (written, causes) == (0, {"no reader, or a slow one": made})


def test_fifo_with_a_reader_that_stops_reading(network, millrace):
    """Its pipe is full soon. Packets do not wait for it, and what it gets is whole lines."""
    net = network(AF_PACKET)
    engine = millrace("--output", "fifo", "--timeout", "udp=1", network=net, fifo="fifo")
    reader = os.open(engine.directory / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    try:
        end_flow(engine, net, 7001)
        with engine.watched():
            for _ in range(8):
                traffic.many_flows(net, 2000)
                traffic.ping(net.left, net.right.address)
        assert engine.drops() == {}
        engine.stop(code=1, leaves=["fifo"])
        got = b""
        while data := os.read(reader, 1 << 20):
            got += data
    finally:
        os.close(reader)
    # what is in a pipe cannot be taken back: the line at which it was full may end there
    lines = got.decode().split("\n")[:-1]
    assert len(lines) > 10 and {json.loads(line)["version"] for line in lines} == {4}
    assert "reader of the records takes none" in engine.stderr
    made, written, causes = told_at_the_end(engine)
    assert causes["no reader, or a slow one"] > 0 and len(lines) <= written < made


@pytest.mark.parametrize("table", [(), ("--flows", "1024")], ids=["at the end", "evicted"])
def test_slow_reader_of_the_last_records(tmp_path, millrace, table):
    """
    It needs longer than a thread is given to answer; the end waits for it, and loses nothing. Nor is anything lost where
    all but the last flows have gone by then to make room, at full rate, while nobody was reading.
    """
    flows, pause = 40_000, 30
    capture = write_capture(tmp_path / "flows.pcap", flows)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    fd = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    engine = millrace("--port", f"a=net_pcap0,rx_pcap={capture},tx_pcap=/dev/null", "--port",
                      "b=net_null0,no-rx=1", "--wire", "a,b", "--output", fifo, "--timeout",
                      "udp=3600", *table)
    got = bytearray()

    def read():
        os.set_blocking(fd, True)
        while data := os.read(fd, 65536):
            got.extend(data)
            engine.ended(pause)  # not yet, as a rule
        os.close(fd)

    reader = threading.Thread(target=read)
    try:
        engine.until(lambda: engine.wire()["received"] == flows, "every flow is there")
        reader.start()
        engine.stop()
    finally:
        engine.process.kill()
        if reader.ident:
            reader.join()
    # as many pauses as the pipe was full
    assert len(got) / 65536 * pause > 5000
    sources = {json.loads(line)["src"] for line in got.decode().splitlines()}
    assert len(sources) == got.count(b"\n") == flows and got.endswith(b"\n")
    assert engine.stderr.splitlines()[-1].endswith(
        "  40,000 records: 40,000 written, 0 lost"), engine.stderr
    assert "millrace:" not in engine.stderr


@pytest.mark.needs("mount")
def test_disk_full_under_the_record_file(network, millrace):
    """Told once, counted, packets pass; with room again records are written again, whole lines."""
    net = network(AF_PACKET)
    engine = millrace("--output", "disk/records.json", network=net, made=["disk"],
                      disk=("disk", "64k"))
    disk = engine.proc / "root" / str(engine.directory).lstrip("/") / "disk"
    records = disk / "records.json"
    end_flow(engine, net, 7001)
    engine.until(lambda: records.stat().st_size > 0, "the first record is written")
    filler = disk / "filler"
    subprocess.run(["dd", "if=/dev/zero", f"of={filler}", "bs=4096"], check=False,
                   stderr=subprocess.DEVNULL)
    with Connection(engine.socket) as follower, engine.watched():
        follower.send("event follow", flows=False)
        for port in range(7002, 7052):
            end_flow(engine, net, port)
        engine.until(lambda: "No space left on device" in engine.stderr, "it is told")
        traffic.ping(net.left, net.right.address, count=20)
        assert engine.stderr.count("No space left on device") == 1
        filler.unlink()
        end_flow(engine, net, 7099)
        engine.until(lambda: b'"dport":7099' in records.read_bytes(), "it is written again")
        engine.until(lambda: "writing again" in engine.stderr, "it is told", timeout=60)
    assert engine.drops() == {}
    written = ports_of(records)
    lost = int(re.search(r"writing again; ([\d,]+) records? w", engine.stderr)[1].replace(",", ""))
    assert written[0] == 7001 and written[-1] == 7099 and len(set(written)) == len(written)
    assert len(written) + lost == 52
    engine.stop(leaves=["disk"])
    made, told, causes = told_at_the_end(engine)
    assert made - told == lost and set(causes) <= {"writing failed"}


def test_output_that_cannot_be_written(network, tmp_path):
    """Known before a packet is taken."""
    net = network(AF_PACKET)
    code, line = refused(tmp_path, *net.arguments(), "--output", "no/such/place", network=net)
    assert code == 1 and "no/such/place: cannot write: No such file or directory" in line
    net.check_nothing_left()
