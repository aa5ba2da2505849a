# SPDX-License-Identifier: BSD-3-Clause
"""Exports to Kafka: a real broker has exactly the records, in order for each flow, whatever happens to it meanwhile."""
import collections
import contextlib
import signal
import struct
import subprocess
import time

import pytest

from broker import Broker
from engine import MILLRACE, SLOWER

FLOWS, SECONDS = 200, 60


@pytest.fixture(name="broker")
def a_broker(tmp_path):
    directory = tmp_path / "broker"
    directory.mkdir()
    broker = Broker(directory)
    with contextlib.ExitStack() as stack:
        stack.callback(lambda: broker.stop(signal.SIGKILL))
        broker.start()
        yield broker


@pytest.fixture(name="capture")
def a_capture(tmp_path):
    """Flows of a minute, a datagram each second: by active reports each becomes many records."""
    path = tmp_path / "long.pcap"
    with path.open("wb") as out:
        out.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for second in range(SECONDS):
            for flow in range(FLOWS):
                udp = struct.pack(">HHHH", 1000 + flow, 53, 8 + 20, 0) + bytes(20)
                ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0,
                                 bytes([10, 0, 0, flow % 250 + 1]), bytes([192, 0, 2, 1]))
                frame = bytes(12) + b"\x08\x00" + ip + udp
                out.write(struct.pack("<IIII", 1700000000 + second, flow, len(frame), len(frame)) + frame)
    return path


@contextlib.contextmanager
def replaying(capture, output, *words):
    process = subprocess.Popen([MILLRACE, "replay", "--active", "1", "--output", output, *words, capture],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def until_written(output, process):
    """The output's buffer has been full once: hundreds of records were made."""
    deadline = time.monotonic() + 60 * SLOWER
    while not output.exists() or output.stat().st_size == 0:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)


def by_key(messages):
    """The records of each key in their order, which is that of its only partition."""
    values, partitions = collections.defaultdict(list), collections.defaultdict(set)
    for partition, _, key, value in messages:
        values[key].append(value)
        partitions[key].add(partition)
    assert all(len(places) == 1 for places in partitions.values())
    assert len(set().union(*partitions.values())) > 1, "more than one partition has records"
    return values


def written(output):
    """The records of each flow as the output has them, in order."""
    values = collections.defaultdict(list)
    for line in output.read_bytes().splitlines():
        values[line.split(b'"src":"')[1].split(b'","sport"')[0]].append(line)
    return values


def check(broker, output):
    """Byte for byte, none twice, none missing, and in order for each flow."""
    told = sorted(by_key(broker.messages("flows")).values())
    wanted = sorted(written(output).values())
    assert [len(records) for records in told] == [len(records) for records in wanted]
    assert told == wanted
    assert len(told) == FLOWS and all(len(records) >= SECONDS // 2 for records in told)


def test_a_broker_gets_all(broker, capture, tmp_path):
    output = tmp_path / "flows.json"
    with replaying(capture, output, "--export", f"kafka://{broker.address}/flows") as process:
        said = process.communicate(timeout=120 * SLOWER)[1]
    assert process.returncode == 0, said
    assert f"{sum(len(records) for records in written(output).values()):,} records sent" in said
    check(broker, output)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_broker_that_starts_anew(broker, capture, tmp_path, how):
    """It ends in the midst of it, politely or not, and comes back: nothing is lost, doubled or out of order.

    The queue is so short that the replay has to wait for it. It stands still while the broker ends politely, which
    takes longer than the rest of the capture does.
    """
    output = tmp_path / "flows.json"
    with replaying(capture, output, "--export", f"kafka://{broker.address}/flows?rate=1000&queue=131072") as process:
        until_written(output, process)
        if how == signal.SIGTERM:
            process.send_signal(signal.SIGSTOP)
        broker.stop(how)
        process.send_signal(signal.SIGCONT)
        assert process.poll() is None, "it is not done yet"
        broker.start()
        said = process.communicate(timeout=120 * SLOWER)[1]
    assert process.returncode == 0, said
    check(broker, output)


def test_tls(capture, tmp_path):
    """A broker with a certificate of the authority gets all; one whose certificate is not known gets nothing."""
    directory, output = tmp_path / "broker", tmp_path / "flows.json"
    directory.mkdir()
    certificate, key, both = (tmp_path / name for name in ("cert.pem", "key.pem", "both.pem"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True)
    both.write_bytes(key.read_bytes() + certificate.read_bytes())
    broker = Broker(directory, tls=both)
    with contextlib.ExitStack() as stack:
        stack.callback(lambda: broker.stop(signal.SIGKILL))
        broker.start()
        address = f"kafka+tls://localhost:{broker.tls_port}"
        with replaying(capture, output, "--export", f"{address}/flows?ca={certificate}") as process:
            said = process.communicate(timeout=120 * SLOWER)[1]
        assert process.returncode == 0, said
        check(broker, output)
        output.unlink()
        with replaying(capture, output, "--export", f"{address}/others?queue=1048576") as process:
            until_written(output, process)
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=120 * SLOWER)[1]
        assert process.returncode == 1 and "0 records sent" in said and "certificate verify failed" in said, said
        assert not broker.messages("others")


def test_no_broker(capture, tmp_path):
    """Without a broker a replay waits for one until it is told to end; then all is told as lost."""
    output = tmp_path / "flows.json"
    with replaying(capture, output, "--export", "kafka://127.0.0.1:9/flows?queue=1048576") as process:
        until_written(output, process)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=120 * SLOWER)[1]
    assert process.returncode == 1
    assert "0 records sent" in said and "lost" in said and "Connection refused" in said, said
