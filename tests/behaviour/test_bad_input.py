# SPDX-License-Identifier: BSD-3-Clause
"""What goes wrong gives one clear line that names it, and an exit code: 1 failed, 2 misused."""
import os
import shutil
import struct
import subprocess

import pytest

import frames
from conftest import MILLRACE, SLOWER, run


@pytest.fixture(name="good")
def good_capture(tmp_path):
    """One TCP conversation of nine packets."""
    tcp = frames.Tcp(0, "10.0.0.1", 1025, "10.0.0.2", 80).open().talk().close()
    return frames.write(tmp_path / "good.pcap", tcp)


def header(link=1):
    """The 24 bytes at the start of a pcap file."""
    return struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link)


def one_line(result, *parts):
    """Exactly one line of complaint, and it holds all of `parts`."""
    assert len(result.lines) == 1, result.stderr
    for part in parts:
        assert str(part) in result.lines[0]


def cut(path, good):
    path.write_bytes(good.read_bytes()[:-10])


def damaged(path, good):
    """The second packet's length field says more than any packet has."""
    data = bytearray(good.read_bytes())
    second = 24 + 16 + struct.unpack_from("<I", data, 24 + 8)[0]
    struct.pack_into("<I", data, second + 8, 0x7FFFFFFF)
    path.write_bytes(data)


BAD_FILES = {
    "missing": (lambda path, good: None, "o such file"),
    "directory": (lambda path, good: path.mkdir(), "directory"),
    "empty": (lambda path, good: path.write_bytes(b""), "empty"),
    "text": (lambda path, good: path.write_text("Dear sir or madam,\n" * 10), "capture"),
    "zeros": (lambda path, good: path.write_bytes(bytes(1000)), "capture"),
    "header-cut": (lambda path, good: path.write_bytes(header()[:20]), ""),
    "other-link": (lambda path, good: path.write_bytes(header(link=105)), "thernet"),
    "unknown-link": (lambda path, good: path.write_bytes(header(link=65000)), "thernet"),
    "cut": (cut, ""),
    "damaged": (damaged, ""),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_file(tmp_path, good, name):
    make, words = BAD_FILES[name]
    path = tmp_path / f"{name}.pcap"
    make(path, good)
    result = run("replay", "--json", path)
    assert result.code == 1
    one_line(result, path, words)
    if name == "cut":
        # Eight of nine packets were whole, and they count.
        assert result.summary["packets"] == 8
        result.check_sums()


@pytest.mark.parametrize("name", BAD_FILES)
def test_other_files_go_on(tmp_path, good, name):
    """A bad file among good ones costs its own packets only."""
    make, _ = BAD_FILES[name]
    bad, second = tmp_path / f"{name}.pcap", tmp_path / "second.pcap"
    make(bad, good)
    shutil.copy(good, second)
    result = run("replay", "--json", good, bad, second)
    assert result.code == 1
    one_line(result, bad)
    files = [record["file"] for record in result.records]
    assert files.count(str(good)) == 1 and files.count(str(second)) == 1
    assert result.summary["packets"] >= 18
    result.check_sums()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file(good):
    good.chmod(0)
    result = run("replay", "--json", good)
    assert result.code == 1
    one_line(result, good, "ermission")


def test_no_packets(tmp_path, replay):
    """A capture of nothing is not an error."""
    path = tmp_path / "nothing.pcap"
    path.write_bytes(header())
    result = replay(path)
    assert result.records == []
    assert result.summary["packets"] == 0


@pytest.mark.parametrize("args, word", [
    (["replay"], "capture"),
    (["replay", "--colour", "GOOD"], "--colour"),
    (["replay", "-Q", "GOOD"], "Q"),
    (["replay", "--workers", "0", "GOOD"], "--workers"),
    (["replay", "--workers", "two", "GOOD"], "--workers"),
    (["replay", "--workers", "-1", "GOOD"], "--workers"),
    (["replay", "--workers", "99999999999999999999", "GOOD"], "--workers"),
    (["replay", "--flows", "0", "GOOD"], "--flows"),
    (["replay", "--flows", "10x", "GOOD"], "--flows"),
    (["replay", "--flows", "", "GOOD"], "--flows"),
    (["replay", "--active", "-5", "GOOD"], "--active"),
    (["replay", "--timeout", "often", "GOOD"], "--timeout"),
    (["replay", "--fragments", "maybe", "GOOD"], "--fragments"),
    (["replay", "GOOD", "--workers"], "--workers"),
    (["replya", "GOOD"], "replay"),
])
def test_misused(good, args, word):
    result = run(*[str(good) if arg == "GOOD" else arg for arg in args])
    assert result.code == 2
    assert result.stdout == b""
    assert word in result.stderr
    assert len(result.lines) <= 2, "an error, and at most where to read more"


def test_called_bare():
    result = run()
    assert result.code == 2
    assert "replay" in result.stderr


@pytest.mark.parametrize("output, words", [
    ("/dev/full", "o space"),
    ("{tmp}/no/such/place.json", "o such file"),
    ("{tmp}", "directory"),
])
def test_output_failed(tmp_path, good, output, words):
    """The engine goes on and still tells its summary."""
    output = output.format(tmp=tmp_path)
    result = run("replay", "--json", "--output", output, good)
    assert result.code == 1
    one_line(result, output, words)


def test_output_full_still_sums(good):
    result = run("replay", "--json", "--output", "/dev/full", good)
    assert result.summary["packets"] == 9
    assert result.summary["records_lost"] == 1


def test_output_file(tmp_path, good, replay):
    """--output holds what stdout would have held, and - is stdout."""
    path = tmp_path / "records.json"
    result = run("replay", "--output", path, good)
    assert (result.code, result.stdout) == (0, b"")
    assert path.read_bytes() == replay(good).stdout
    assert replay("--output", "-", good).stdout == path.read_bytes()


def test_reader_gone(tmp_path):
    """A reader that goes away early: one line, exit code 1, and the summary is still told."""
    flows = [frames.udp(i * 0.001, "10.0.0.1", 1024 + i, "10.0.0.2", 53) for i in range(3000)]
    path = frames.write(tmp_path / "many.pcap", flows)
    process = subprocess.Popen([MILLRACE, "replay", "--json", str(path)],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    with process:
        process.stdout.read(10)
        process.stdout.close()
        lines = process.stderr.read().decode().splitlines()
        code = process.wait(timeout=60 * SLOWER)
    assert code == 1
    assert len([line for line in lines if not line.startswith("{")]) == 1
    assert len(lines) == 2


def test_stdin(good, replay):
    """- is standard input, so that captures can come through a pipe."""
    result = replay("-", stdin=good.read_bytes())
    assert len(result.records) == 1


def test_name_is_not_trusted(tmp_path, good):
    """Any file name makes valid JSON, and cannot write lines or colours of its own."""
    strange = tmp_path / 'a "quoted"\nmillrace: lie\x1b[31m\\ \udcff.pcap'
    shutil.copy(good, strange)
    result = run("replay", strange, good, tmp_path / "not\nthere\x1b[31m.pcap")
    assert result.code == 1
    assert len(result.records) == 2
    assert result.records[0]["file"].startswith(str(tmp_path) + '/a "quoted"\n')
    assert "\x1b" not in result.stderr
    assert [line[:9] for line in result.lines].count("millrace:") == 1


@pytest.mark.parametrize("closed, code, words", [(0, 1, "standard input"),
                                                 (1, 1, "standard output"), (2, 0, "")])
def test_standard_files_closed_at_start(tmp_path, closed, code, words):
    """Nothing else gets their numbers: no hang, no record in the wrong place."""
    path = frames.write(tmp_path / "one.pcap", frames.udp(1, "10.0.0.1", 1, "10.0.0.2", 2))
    capture = "-" if closed == 0 else str(path)
    result = subprocess.run([MILLRACE, "replay", capture], preexec_fn=lambda: os.close(closed),
                            capture_output=True, timeout=60 * SLOWER, check=False)
    assert result.returncode == code
    assert words in result.stderr.decode()


def test_output_is_what_is_read(tmp_path):
    """Also by way of standard input: it is left as it is."""
    path = frames.write(tmp_path / "one.pcap", frames.udp(1, "10.0.0.1", 1, "10.0.0.2", 2))
    before = path.read_bytes()
    for capture in (path, "-"):
        with open(path, "rb") as stdin:
            result = subprocess.run([MILLRACE, "replay", capture, "--output", path], stdin=stdin,
                                    capture_output=True, timeout=60 * SLOWER, check=False)
        assert result.returncode == 2
        assert path.read_bytes() == before


@pytest.mark.parametrize("args", [["help"], ["--version"], ["replay", "--help"], ["help", "replay"]])
def test_help_that_cannot_be_written(args):
    with open("/dev/full", "wb") as full:
        result = subprocess.run([MILLRACE, *args], stdout=full, stderr=subprocess.PIPE,
                                timeout=60 * SLOWER, check=False)
    assert result.returncode == 1
    assert result.stderr
