# SPDX-License-Identifier: BSD-3-Clause
"""`millrace config check`: what a file comes to, or the one thing that is wrong with it and where."""
import json
import os
import re
import subprocess

import pytest

from conftest import MILLRACE, ROOT, SLOWER, run

EXAMPLE = ROOT / "packaging" / "millrace.yaml"
DOCUMENT = ROOT / "docs" / "configuration.md"


@pytest.fixture(name="check")
def check_of(tmp_path):
    """check(text, argument...): a check of a file with this text (or these bytes)."""
    def checked(text, *args):
        path = tmp_path / "f.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return run("config", "check", path, *args)
    return checked


def effective(check, text):
    """The whole configuration that a text comes to."""
    result = check(text, "--json")
    assert (result.code, result.stderr) == (0, "")
    assert result.stdout.count(b"\n") == 1
    return json.loads(result.stdout)


def refused(result, *parts):
    """Exit code 1, nothing on standard output, and one line that has all of `parts`."""
    assert result.code == 1
    assert result.stdout == b""
    assert len(result.lines) == 1, result.stderr
    for part in parts:
        assert part in result.lines[0]


def test_example():
    """The file that we hand out is right, and the paths in it are looked for by nobody."""
    result = run("config", "check", EXAMPLE)
    assert result.code == 0, result.stderr
    assert result.stdout.decode() == (f"{EXAMPLE}: fine: 1 wire, 2 ports, 1 worker, "
                                      "1,048,576 flows\n")


def test_example_has_every_default(check):
    """Its values are those that hold without it."""
    example = effective(check, EXAMPLE.read_bytes())
    plain = effective(check, "workers:\n")
    for key in ("ports", "wires"):
        assert example.pop(key) and not plain.pop(key)
    assert example == plain


def test_every_key_is_told(check):
    """The example and the document have every key that there is."""
    known = effective(check, "workers:\n")
    example, document = EXAMPLE.read_text(), DOCUMENT.read_text()
    for key in known:
        assert re.search(rf"^{key}:", example, re.MULTILINE), key
        assert f"| `{key}` |" in document, key
    for key in [*known["offload"], *known["blocks"], *known["metrics"]]:
        assert re.search(rf"^  {key}:", example, re.MULTILINE), key
        assert f"| `{key}` |" in document, key
    for name, seconds in known["timeouts"].items():
        assert re.search(rf"^  {name}: {seconds} ", example, re.MULTILINE), name
        assert f"| `{name}` | {seconds} |" in document, name


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "{}"])
def test_every_key_may_be_left_out(check, text):
    """A file without keys is no fault; it takes a wire to run, wherever that stands."""
    assert effective(check, text) == effective(check, "workers:\n")


def test_json_round_trip(check, tmp_path):
    """What it prints, it reads; also spread over lines by another program, and as YAML."""
    blocks = tmp_path / " x"
    blocks.write_text("10.9.0.0/16\n")
    first = effective(check, """
        ports: [{name: lan, device: eth1}, {name: "n", device: eth9}]
        wires: [[lan, "n"], [5e:00.0, eth3]]
        workers: 16
        threads: split
        sharding: software
        poll: always
        pin: no
        force: on
        telemetry: true
        tcp: strict
        zone: vlan
        active: 300
        timeouts: {tcp: 5, udp-new: 1}
        offload: {enabled: no, mode: full, threshold: 0, slots: 2097152,
                  rules: 7168, rules-per-second: 45000,
                  counters: off, restart: true, rules-in-nic: off,
                  except: [5e:00.0, lan]}
        blocks: {max: 3, reasons: 1, file: "BLOCKS", list: ["10.0.0.1 reason a #b", "::/0 port 80"]}
        metrics: {listen: "[::1]:9180"}
        rules: {max: 7, replies: follow, pickup: no}
        output: "/srv/flöws \\"of\\" \U0001F600.json"
        socket: s
        """.replace("BLOCKS", str(blocks)))
    assert first["wires"] == [["lan", "n"], ["5e:00.0", "eth3"]]
    assert first["ports"][2] == {"name": "5e:00.0", "device": "0000:5e:00.0"}
    assert (first["pin"], first["force"], first["telemetry"]) == (False, True, True)
    assert first["sharding"] == "software"
    assert first["offload"] == {"enabled": False, "mode": "full", "threshold": 0,
                                "slots": 2097152, "rules": 7168, "rules-per-second": 45000,
                                "counters": False, "restart": True, "rules-in-nic": "off",
                                "except": ["5e:00.0", "lan"]}
    assert first["blocks"] == {"max": 3, "reasons": 1, "file": str(blocks),
                               "list": ["10.0.0.1 reason a #b", "::/0 port 80"]}
    assert first["metrics"] == {"listen": "[::1]:9180"}
    assert first["rules"] == {"max": 7, "file": None, "reject-rate": 10000, "log-rate": 100,
                              "replies": "follow", "pickup": False,
                              "list": [], "sets": [], "captures": []}
    assert first["timeouts"]["tcp-open"] == 5 and first["timeouts"]["udp-open"] == 180
    assert effective(check, json.dumps(first, ensure_ascii=False)) == first
    assert effective(check, json.dumps(first, ensure_ascii=False, indent=4)) == first
    assert effective(check, json.dumps(first, ensure_ascii=False, sort_keys=True)) == first


@pytest.mark.parametrize("text, parts", [
    ("\nwokers: 2\n", ["f.yaml:2: wokers: ", "did you mean workers?"]),
    ("workers: 2\nflows: many\n", ["f.yaml:2: flows: many: "]),
    ("rules: {replies: folo}\n", ["f.yaml:1: rules.replies: folo: ", '"match" or "follow" is needed']),
    ("rules: {pickup: 2}\n", ["f.yaml:1: rules.pickup: 2: "]),
    ("metrics: {listen: localhost:9180}\n",
     ["f.yaml:1: metrics.listen: localhost:9180: ", "ADDRESS:PORT is needed, as in 127.0.0.1:9180"]),
    ("metrics: 9180\n", ["f.yaml:1: metrics: ", "lines of KEY: VALUE are needed, as in listen: 127.0.0.1:9180"]),
    ("metrics:\n  lisen: 9180\n", ["f.yaml:2: metrics.lisen: ", "did you mean listen?"]),
    ("workers: 17\n", ["f.yaml:1: workers: 17: ", "1 to 16"]),
    ("offload: off\n", ["f.yaml:1: offload: ", "KEY: VALUE"]),
    ("offload:\n  thresh: 1\n", ["f.yaml:2: offload.thresh: ", "did you mean threshold?"]),
    ("offload:\n  verify: always\n", ["f.yaml:2: offload.verify: "]),
    ("workers: 3\noffload:\n  rules-per-second: 2\n",
     ["f.yaml:3: offload.rules-per-second: 2: ", "3 workers"]),
    ("blocks: 3\n", ["f.yaml:1: blocks: ", "KEY: VALUE"]),
    ("blocks:\n  mxa: 1\n", ["f.yaml:2: blocks.mxa: ", "did you mean max?"]),
    ("blocks:\n  max: 15728641\n", ["f.yaml:2: blocks.max: 15728641: ", "0 to 15,728,640"]),
    ("blocks:\n  list: 10.0.0.1\n", ["f.yaml:2: blocks.list: ", "a list of blocks"]),
    ("blocks:\n  list:\n  - 10.0.0.1\n  - 10.0.0.1 prt 80\n",
     ["f.yaml:4: blocks.list[1]: column 10: prt: ", "did you mean port?"]),
    ("blocks:\n  max: 1\n  list: [10.0.0.1, 10.0.0.2]\n",
     ["f.yaml:2: blocks.max: 1: the list has 2 blocks"]),
    ("blocks: {max: 0, file: list}\n", ["f.yaml:1: blocks.max: 0: there is something to block"]),
    ("blocks:\n  list:\n" + 257 * "  - 10.0.0.1\n", ["f.yaml:2: blocks.list: ", "256 at most"]),
    ("offload: {slots: 0}\n", ["f.yaml:1: offload.slots: 0: ", "1 to 2,097,152"]),
    ("offload: {except: lan}\n", ["f.yaml:1: offload.except: ", "list"]),
    ("wires: [[lan, wan]]\noffload:\n  except:\n  - lan\n  - wen\n",
     ["f.yaml:5: offload.except[1]: wen: ", "did you mean wan?"]),
    ("ports: {lan: eth1}\n", ["f.yaml:1: ports: ", "{name: NAME, device: DEVICE}"]),
    ("wires:\n- [a, b]\n- [a, c]\n", ["f.yaml:3: wires[1]: a: "]),
    ("flows: 1\nflows: 2\n", ["f.yaml:2: flows: ", "line 1"]),
    ("workers: [\n", ["f.yaml:2: not YAML: "]),
    (b"\0\1\2\3", ["f.yaml: not YAML: "]),
    (b"\xc3(", ["f.yaml: not YAML: "]),
    (b"\x7fELF\2\1\1\0", ["f.yaml: not YAML: "]),
])
def test_wrong(check, text, parts):
    refused(check(text), *parts)


@pytest.mark.parametrize("text, options, parts", [
    (None, "", ["blocks.txt: ", "No such file"]),
    ("10.0.0.0/8\n10.0.0.1 prt 80\n", "", ["blocks.txt:2:10: prt: ", "did you mean port?"]),
    ("10.0.0.0/8\n10.0.0.1\n", ", max: 1", ["blocks.txt", "blocks.max"]),
    ("10.0.0.1 reason r\n", ", reasons: 0", ["blocks.txt", "blocks.reasons"]),
])
def test_file_of_blocks(check, tmp_path, text, options, parts):
    """It is read as the engine would read it."""
    path = tmp_path / "blocks.txt"
    if text is not None:
        path.write_text(text)
    refused(check(f"blocks: {{file: {path}{options}}}\n"), *parts)
    path.write_text("10.0.0.0/8\n")
    assert check(f"blocks: {{file: {path}{options}}}\n").code == 0


HOSTILE = {
    "laughs": "a: &a [x, x]\n" + "".join(
        f"{after}: &{after} [*{before}, *{before}, *{before}, *{before}]\n"
        for before, after in zip("abcdefghijk", "bcdefghijkl")),
    "lists": "[" * 500000,
    "mappings": "{" * 500000,
    "dashes": "- " * 500000,
    "questions": "? " * 500000,
    "keys": "".join(f"k{n}: 1\n" for n in range(60000)),
    "entries": "wires:\n" + "- [a, b]\n" * 100000,
    "key": "k" * 1000000 + ": 1\n",
    "word": "workers: " + "9" * 1000000 + "\n",
    "name": "wires: [[" + "a" * 500000 + ", b]]\n",
    "device": "ports: [{name: a, device: " + "a" * 500000 + "}]\n",
    "tags": "!" * 1000000,
    "zeros": "\0" * 2000000,
    "comment": "#" * 1048577,
    "quotes": "\"" + "\\x41" * 200000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile(check, name):
    """One line, at once."""
    refused(check(HOSTILE[name]), "f.yaml")


def test_not_a_file(tmp_path):
    refused(run("config", "check", tmp_path / "nothing"), "nothing: No such file")
    refused(run("config", "check", tmp_path), "directory")
    refused(run("config", "check", "/dev/zero"), "1 MB")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable(tmp_path):
    path = tmp_path / "f.yaml"
    path.write_text("workers: 1\n")
    path.chmod(0)
    refused(run("config", "check", path), "ermission")


def test_odd_name(tmp_path):
    """A name that would break the line does not."""
    refused(run("config", "check", tmp_path / "a\nb"), "a?b")
    path = tmp_path / ("n" * 250)
    path.write_text("workers: 0\n")
    refused(run("config", "check", path), "workers: 0: a whole number from 1 to 16 is needed")


@pytest.mark.parametrize("args, word", [
    ([], "file"),
    (["a", "b"], "one file"),
    (["a", "--jsn"], "did you mean --json?"),
    (["a", "--json=yes"], "no value"),
])
def test_misused(args, word):
    result = run("config", "check", *args)
    assert (result.code, result.stdout) == (2, b"")
    assert word in result.stderr and len(result.lines) == 1


def test_help():
    result = run("config", "check", "--help")
    assert (result.code, result.stderr) == (0, "")
    assert b"--json" in result.stdout


@pytest.mark.parametrize("args", [[EXAMPLE], [EXAMPLE, "--json"], ["--help"]])
def test_output_full(args):
    """What could not be printed was not told."""
    with open("/dev/full", "wb") as full:
        result = subprocess.run([MILLRACE, "config", "check", *args], stdout=full,
                                stderr=subprocess.PIPE, timeout=60 * SLOWER, check=False)
    assert result.returncode == 1
    assert b"standard output" in result.stderr


def test_run_with_file(tmp_path):
    """What is wrong in the file fails; what is wrong on the command line is misuse."""
    path = tmp_path / "f.yaml"
    path.write_text("workers: 0\nwires: [[a, b]]\n")
    refused(run("run", "--config", path), "f.yaml:1: workers: 0: ")
    refused(run("run", "--config", tmp_path / "nothing"), "nothing: No such file")
    path.write_text("wires: [[a, b]]\n")
    for args, word in ((["--wire", "c,d"], "choose one"), (["--workers", "0"], "--workers 0: ")):
        result = run("run", "--config", path, *args)
        assert (result.code, result.stdout, len(result.lines)) == (2, b"", 1)
        assert word in result.lines[0]
