# SPDX-License-Identifier: BSD-3-Clause
"""Captures from elsewhere with independent truth. They are not part of the tree (conftest.py)."""
import concurrent.futures
import csv
import subprocess
import sys

import pytest

from conftest import ROOT, run

RECORDS2TSV = ROOT / "tests" / "records2tsv"


def names_in(table):
    """The files that a table of truth speaks of."""
    with open(table, encoding="utf-8") as lines:
        return sorted({row["file"] for row in csv.DictReader(lines, delimiter="\t")})


def compare(captures, truth, result, tmp_path):
    """Runs the comparison tool that comes with the captures; returns its code and last line."""
    records, table = tmp_path / "records.json", tmp_path / "records.tsv"
    records.write_bytes(result.stdout)
    root = captures / "corpus" if "corpus" in truth else captures
    with open(table, "w", encoding="utf-8") as out:
        subprocess.run([sys.executable, RECORDS2TSV, "--root", root, records], stdout=out,
                       check=True)
    judged = subprocess.run([sys.executable, captures / "compare.py", captures / truth, table,
                             "--bytes", "cap"], capture_output=True, text=True, check=False)
    return judged.returncode, judged.stdout.strip()


@pytest.mark.parametrize("truth, fragments, flows", [
    ("truth-track.tsv", [], 4494),
    ("truth-track.tsv", ["--fragments", "follow"], 4494),
    ("truth.tsv", ["--fragments", "separate"], 4492),
])
@pytest.mark.usefixtures("simd")
def test_every_flow_is_right(captures, tmp_path, replay, truth, fragments, flows):
    files = [captures / name for name in names_in(captures / "files.tsv")]
    result = replay(*fragments, *files)
    code, told = compare(captures, truth, result, tmp_path)
    assert code == 0, told
    assert f"'flows': {flows}, 'ok': {flows}, 'missing': 0" in told


def test_packets_of_each_file(captures, replay):
    """As many packets as the truth says, and non-IP and malformed ones told apart from flows."""
    with open(captures / "files.tsv", encoding="utf-8") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            result = replay(captures / row["file"])
            assert result.summary["packets"] == int(row["packets"]), row["file"]
            assert result.summary["flow_packets"] == int(row["ip"]), row["file"]


@pytest.mark.parametrize("workers", [2, 4])
@pytest.mark.usefixtures("simd")
def test_workers_make_no_difference(captures, replay, workers):
    """The same records, whoever made them."""
    files = [captures / name for name in names_in(captures / "files.tsv")]
    alone = replay("--workers", 1, *files).stdout.splitlines()
    shared = replay("--workers", workers, *files).stdout.splitlines()
    assert sorted(shared) == sorted(alone)


def test_levels_make_no_difference(captures, monkeypatch, simd):
    """The same records and sums under every SIMD level, of clear captures and of hostile ones."""
    files = [captures / name for name in names_in(captures / "files.tsv")]
    files += sorted((captures / "corpus").iterdir())
    under = run("replay", "--json", *files)
    monkeypatch.setenv("MILLRACE_SIMD", "portable")
    portable = run("replay", "--json", *files)
    assert under.code == portable.code and under.code in (0, 1), under.stderr
    assert sorted(under.stdout.splitlines()) == sorted(portable.stdout.splitlines()), simd
    for key in ("packets", "flow_packets", "dropped", "ended", "records"):
        assert under.summary[key] == portable.summary[key]
    under.check_sums()


@pytest.mark.parametrize("workers", [1, 2])
def test_corpus_never_crashes(captures, workers):
    """Hostile files: an exit code and sums that hold, never a signal."""
    files = sorted((captures / "corpus").iterdir())
    assert len(files) > 400
    # each file once: every other one with two workers
    files = files[workers - 1::2]

    def one(path):
        result = run("replay", "--json", "--workers", workers, "--flows", 65536, path)
        assert result.code in (0, 1), (path, result.code, result.stderr)
        assert len(result.lines) == (result.code != 0), (path, result.stderr)
        if result.summary:
            result.check_sums()
        return path.name

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert len(list(pool.map(one, files))) == len(files)


@pytest.mark.usefixtures("simd")
def test_corpus_flows_are_right(captures, tmp_path):
    """What the malformed files hold of clear flows comes out right too."""
    leave_out = set((captures / "corpus-disagree.txt").read_text().split())
    # The truth steps over an authentication header in IPv6 only, we do in IPv4, too: the flow is ESP's.
    leave_out.add("arkime__pcap__ah-esp.pcap")
    files = [captures / "corpus" / name for name in names_in(captures / "corpus-truth.tsv")
             if name not in leave_out]
    result = run("replay", "--json", "--fragments", "separate", *files)
    assert result.code in (0, 1), result.stderr
    _, told = compare(captures, "corpus-truth.tsv", result, tmp_path)
    wrong = [line for line in told.splitlines()[:-1] if line.split()[0] not in leave_out]
    assert not wrong


def test_same_capture_twice(captures, replay):
    """Each capture is a run of its own: nothing of the first is left in the second."""
    path = captures / "skype.pcap"
    once = replay(path).records
    twice = replay(path, path).records
    for record in twice:
        del record["file"]
    assert sorted(map(str, twice)) == sorted(map(str, once + once))
