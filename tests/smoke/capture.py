# SPDX-License-Identifier: BSD-3-Clause
"""tcpdump at an end of the wire, and what a replay of its capture says."""
import json
import re
import signal
import subprocess
import struct

from engine import MILLRACE, SLOWER, flow_key

COUNTERS = ("packets", "bytes", "reverse_packets", "reverse_bytes", "tcp_flags",
            "reverse_tcp_flags", "icmp_errors")


class Capture:
    """All frames at one end. Begins when tcpdump listens."""

    def __init__(self, end, path):
        self.path = path
        self.process = end.space.popen(
            "tcpdump", "-i", "end", "-n", "-U", "--immediate-mode", "-B", 65536, "-Z", "root",
            "-w", path, stderr=subprocess.PIPE, text=True)
        line = said = ""
        while "listening on" not in line:
            line = self.process.stderr.readline()
            said += line
            if not line:
                self.close()
                raise AssertionError(said.strip())

    def count(self):
        """How many packets are in the file so far."""
        packets = 0
        with open(self.path, "rb") as file:
            file.seek(24)
            while len(header := file.read(16)) == 16:
                file.seek(struct.unpack("=IIII", header)[2], 1)
                packets += 1
        return packets

    def stop(self):
        """Nothing was lost on the way into the file."""
        self.process.send_signal(signal.SIGINT)
        said = self.process.communicate(timeout=30)[1]
        assert re.search(r"^0 packets dropped by kernel", said, re.MULTILINE), said

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stderr.close()


def replay(path, *arguments):
    """The records of a capture."""
    done = subprocess.run([MILLRACE, "replay", "--json", *arguments, path], check=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=60 * SLOWER)
    return [json.loads(line) for line in done.stdout.splitlines()]


def exactly(flows, *more):
    """What has to be equal of flows, whatever their order: {who to whom: counters}; `more` keys."""
    table = {}
    for flow in flows:
        # a key may have several records; they stand under one another
        key = (flow_key(flow), flow["version"], flow["src"], flow["sport"])
        table.setdefault(key, []).append(tuple(flow[name] for name in (*COUNTERS, *more)))
    return {key: sorted(rows) for key, rows in table.items()}
