# SPDX-License-Identifier: BSD-3-Clause
"""Simulated NICs of an engine: how they are asked for, and told by DPDK's telemetry what goes wrong."""
import json
import socket
import subprocess

from conftest import MILLRACE, SLOWER


def refusal(*words):
    """What it says to devices that it does not take, and its exit code."""
    done = subprocess.run([MILLRACE, "run", *words], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=30 * SLOWER, check=False)
    assert done.stdout == ""
    return done.returncode, done.stderr


def ports(a, b="source=none"):
    return "--port", f"a=net_flowsim0,{a}", "--port", f"b=net_flowsim1,{b}", "--wire", "a,b"


class Telemetry:
    """DPDK's socket of an engine, at the place that it told."""

    def __init__(self, running):
        line = next(line for line in running.errors.read_text().splitlines()
                    if "telemetry: " in line)
        self.path = line.split("telemetry: ")[1]

    def __call__(self, command):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.settimeout(30 * SLOWER)
            connection.connect(self.path)
            connection.recv(16384)
            connection.sendall(command.encode())
            return json.loads(connection.recv(16384))[command.split(",")[0]]
