# SPDX-License-Identifier: BSD-3-Clause
"""What a person at a terminal meets: help, versions, suggestions, progress."""
import os
import pty
import re
import select
import subprocess

import pytest

import frames
from conftest import MILLRACE, run

LIMIT = 50_000_000  # packets: what a terminal has not shown by then it does not show


@pytest.mark.parametrize("args", [["help"], ["--help"], ["replay", "--help"], ["help", "replay"]])
def test_help_goes_to_stdout(args):
    result = run(*args)
    assert result.code == 0
    assert result.stdout and not result.stderr
    assert max(map(len, result.stdout.decode().splitlines())) <= 100


def test_help_names_every_option():
    text = run("replay", "--help").stdout.decode()
    for option in ("--workers", "--fragments", "--tcp", "--zone", "--timeout", "--active",
                   "--flows", "--output", "--summary", "--json"):
        assert option in text


def test_version():
    result = run("--version")
    assert result.code == 0
    assert re.fullmatch(rb"millrace \S+ \(DPDK \S+\)\n", result.stdout)


@pytest.mark.parametrize("args, near", [(["repaly"], "replay"), (["replay", "--worker", "x"], None),
                                        (["replay", "--ouput", "x", "y"], "--output")])
def test_unknown_words_are_errors(args, near):
    result = run(*args)
    assert result.code == 2
    assert near is None or near in result.stderr


def drain(terminal):
    """What the terminal shows now, without waiting."""
    shown = b""
    while select.select([terminal], [], [], 0)[0]:
        try:
            shown += os.read(terminal, 4096)
        except OSError:  # nobody holds the other side any more
            break
    return shown


def test_progress_on_a_terminal(tmp_path):
    """Long work shows how far it is, on a terminal, and wipes it away at the end."""
    path = frames.write(tmp_path / "one.pcap", frames.udp(1, "10.0.0.1", 1000, "10.0.0.2", 53))
    header, record = path.read_bytes()[:24], path.read_bytes()[24:]
    try:
        ours, theirs = pty.openpty()
    except OSError as error:
        pytest.skip(f"no pseudo terminal here: {error}")
    shown, fed = b"", 0
    with subprocess.Popen([MILLRACE, "replay", "--output", os.devnull, "-"],
                          stdin=subprocess.PIPE, stderr=theirs) as process:
        process.stdin.write(header)
        while b"pps" not in shown and fed < LIMIT:
            process.stdin.write(record * 1000)
            fed += 1000
            shown += drain(ours)
        process.stdin.close()
        assert process.wait(timeout=600) == 0
    os.close(theirs)
    shown += drain(ours)
    os.close(ours)
    progress, end = shown.rsplit(b"\r\x1b[K", 1)
    assert re.search(rb"\r\x1b\[K\S+ \S+  [\d,]+ packets  \S+ ?\S*pps", progress)
    assert f"{fed:,} packets".encode() in end
