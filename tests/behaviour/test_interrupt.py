# SPDX-License-Identifier: BSD-3-Clause
"""A replay that is told to stop reports what it has read so far."""
import json
import signal
import subprocess

import frames
from conftest import MILLRACE, SLOWER

# More than a pipe holds: once they are written, the program is reading.
PACKETS = 50_000
LIMIT = 1_000_000  # packets after the signal: far more than any pipe holds


def bytes_of(path, packet):
    """The capture's header, and the packet's record as the file has it."""
    whole = path.read_bytes()
    record = whole[24:]
    assert len(record) == 16 + len(packet)
    return whole[:24], record


def feed(process, record):
    """Writes until the program has had enough; each packet gives it a chance to see the signal."""
    for _ in range(LIMIT):
        if process.poll() is not None:
            return
        try:
            process.stdin.write(record)
            process.stdin.flush()
        except BrokenPipeError:
            return


def test_interrupt_reports_what_was_read(tmp_path):
    packet = frames.udp(1, "10.0.0.1", 1000, "10.0.0.2", 53)
    path = frames.write(tmp_path / "one.pcap", packet)
    header, record = bytes_of(path, packet)
    records = tmp_path / "records.json"
    with subprocess.Popen([MILLRACE, "replay", "--json", "--output", records, "-"],
                          stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdin.write(header + record * PACKETS)
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        feed(process, record)
        try:
            process.stdin.close()
        except BrokenPipeError:
            pass
        code = process.wait(timeout=60 * SLOWER)
        lines = process.stderr.read().decode().splitlines()
    assert code == 1
    assert len(lines) == 2 and "interrupted" in lines[0]
    summary = json.loads(lines[1])
    written = [json.loads(line) for line in records.read_text().splitlines()]
    assert len(written) == 1
    assert written[0]["packets"] == summary["packets"] == summary["out"]
