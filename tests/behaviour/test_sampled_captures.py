# SPDX-License-Identifier: BSD-3-Clause
"""Copies of packets that rules sample go to capture files; a disk that is slow or full costs copies alone."""
import json
import os
import struct
import threading
import time

import pytest

import engine
import frames
from conftest import run

pytestmark = pytest.mark.usefixtures("simulated_nic")

PASSES = 200
ROUND = [frames.udp(0, "10.0.0.1", 1000, "10.0.0.2", 53), frames.udp(0, "10.0.0.1", 1001, "10.0.0.2", 80),
         frames.udp(0, "10.0.0.1", 1002, "10.0.0.2", 443)]


def sample(number, port, ratio=1):
    """The lines of a rule whose packets are copied to the file of this number; the engine has two ports."""
    return [f"set sample_actions {number} port_id id {2 + number} / end",
            f"flow create 0 ingress pattern eth / ipv4 / udp dst is {port} / end "
            f"actions sample ratio {ratio} index {number} / end"]


def configuration(tmp_path, captures, rules, passes=PASSES):
    capture = frames.write(tmp_path / "round.pcap", *ROUND, in_order=False)
    path = tmp_path / "millrace.yaml"
    path.write_text(json.dumps({
        "ports": [{"name": "a", "device": f"net_flowsim0,capture={capture},passes={passes}"},
                  {"name": "b", "device": "net_flowsim1,source=none"}],
        "wires": [["a", "b"]], "workers": 2, "rules": {"captures": [str(name) for name in captures], "list": rules}}))
    return path


def read(data):
    """(time in seconds, bytes) of each frame."""
    magic, major, minor, _, _, longest, link = struct.unpack_from("=IHHIIII", data)
    assert (magic, major, minor, longest, link) == (0xa1b2c3d4, 2, 4, 262144, 1)
    at, told = 24, []
    while at < len(data):
        seconds, us, captured, length = struct.unpack_from("=IIII", data, at)
        assert captured == length and us < 1000000
        told.append((seconds + us / 1e6, data[at + 16:at + 16 + length]))
        at += 16 + length
    assert at == len(data)
    return told


def written(running, path):
    """(written, lost), as the engine tells at its end."""
    (line,) = [line for line in running.stderr.splitlines() if f"capture {path}: " in line and "written" in line]
    words = line.split(f"{path}: ")[1].replace(",", "").split()
    return int(words[0]), int(words[3])


def test_files(tmp_path):
    """Each file has its own packets, whole, with their times; they are not among what the wire sent."""
    files = [tmp_path / "one.pcap", tmp_path / "two.pcap"]
    path = configuration(tmp_path, files, sample(0, 53) + sample(1, 80))
    begun = time.time()
    running = engine.Millrace(tmp_path / "engine", "--config", path)
    running.until(lambda: running.wire()["received"] == PASSES * len(ROUND), "all packets")
    wire = running.idle()
    assert wire["out"] == PASSES * len(ROUND) and wire["mirrored"] == 0
    # a mailbox has room for more than all of them
    assert (wire["captured"], wire["capture_lost"]) == (2 * PASSES, 0)
    assert f"copies for capture files: {2 * PASSES}, and 0 lost" in running.client("wire", "show")
    running.until(lambda: files[0].stat().st_size > PASSES * 16, "they are written while the engine runs")
    running.stop()
    for file, number in zip(files, (0, 1)):
        told = read(file.read_bytes())
        assert [data for _, data in told] == [bytes(ROUND[number])] * PASSES
        assert all(begun - 1 <= at <= time.time() + 1 for at, _ in told)
        assert written(running, file) == (PASSES, 0)
    result = run("replay", files[1])
    assert result.code == 0, result.stderr


def test_one_in_so_many(tmp_path):
    path = configuration(tmp_path, [tmp_path / "one.pcap"], sample(0, 53, ratio=4), passes=1000)
    running = engine.Millrace(tmp_path / "engine", "--config", path)
    running.until(lambda: running.wire()["received"] == 1000 * len(ROUND), "all packets")
    captured = running.idle()["captured"]
    assert 150 < captured < 350
    running.stop()
    assert len(read((tmp_path / "one.pcap").read_bytes())) == captured


def test_a_file_that_takes_nothing(tmp_path):
    """Nobody reads a pipe: packets pass all the same, and each copy is counted as handed over or lost."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    passes = 20000
    path = configuration(tmp_path, [fifo], sample(0, 53), passes)
    running = engine.Millrace(tmp_path / "engine", "--config", path)
    running.until(lambda: running.wire()["received"] == passes * len(ROUND), "all packets")
    wire = running.idle()
    assert wire["out"] == passes * len(ROUND)
    assert wire["captured"] + wire["capture_lost"] == passes and wire["capture_lost"] > passes / 2
    os.set_blocking(reader, True)
    got = []

    def drain():
        while data := os.read(reader, 65536):
            got.append(data)

    thread = threading.Thread(target=drain)
    thread.start()
    running.stop()
    thread.join()
    os.close(reader)
    assert len(read(b"".join(got))) == wire["captured"]
    assert written(running, fifo) == (wire["captured"], 0)
    lost = f"millrace: {wire['capture_lost']:,} copies for capture files are lost: they came faster than they were written"
    assert lost in running.stderr.splitlines()


@pytest.mark.parametrize("captures, rules, said", [
    (["one"], sample(0, 53), None),
    (["one"], sample(1, 53), "rules.list:2:72: action 'sample': port 3: the engine has ports 0 to 1"),
    (["one"], ["flow create 0 ingress pattern eth / end actions port_id id 2 / end"],
     "action 'port_id': port 2: the engine has ports 0 to 1"),
    (["none"], [], "rules.captures[0]: none: the path of a file is needed"),
    ([f"f{n}" for n in range(17)], [], "rules.captures: a list of paths of files is needed, 16 at most"),
])
def test_configuration(tmp_path, captures, rules, said):
    """config check makes no file."""
    done = run("config", "check", configuration(tmp_path, captures, rules))
    assert (done.code == 0) == (said is None), done.stderr
    assert said is None or said in done.stderr, done.stderr
    assert not os.path.exists("one")


@pytest.mark.parametrize("name, said", [
    ("/nowhere/one.pcap", "/nowhere/one.pcap: No such file or directory"),
    ("/dev/full", "/dev/full: No space left on device")])
def test_a_file_that_cannot_be(tmp_path, name, said):
    code, line = engine.refused(tmp_path, "--config", configuration(tmp_path, [name], []))
    assert code == 1 and said in line


def test_one_file_by_two_names(tmp_path):
    (tmp_path / "one.pcap").symlink_to(tmp_path / "two.pcap")
    names = [tmp_path / "one.pcap", tmp_path / "two.pcap"]
    code, line = engine.refused(tmp_path, "--config", configuration(tmp_path, names, []))
    assert code == 1 and line.endswith("write to the same place: records would be mixed")
    assert all(f"capture {name} " in line for name in names)
