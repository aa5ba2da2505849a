# SPDX-License-Identifier: BSD-3-Clause
"""`millrace bench wire`: the measures beside the wire itself, with few flows: their rows.

The bench itself ends with an error when flows are missing, segments odd, or learned and exported flows
are not equally many: a row that is printed has passed that."""
import json
import os

import pytest

from bench_rows import KEYS, built, simulated  # noqa: F401
from conftest import SLOWER, run

pytestmark = pytest.mark.unsanitized


def rows(measures, *flows):
    done = run("bench", "wire", "--measure", measures, "--flows", ",".join(map(str, flows)),
               "--json", timeout=120)
    assert done.code == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.decode().splitlines()]
    for row in found:
        assert list(row) == KEYS
        assert row["bench"] == "wire" and row["rounds"] == 9 and row["spread"] >= 0
        if abs(row["ratio"] - row["goal"]) > 0.01:  # else what is shown is rounded
            assert row["holds"] == (row["goal"] == 0 or row["ratio"] > row["goal"])
    return found


@pytest.mark.usefixtures("simulated")
def test_tcp_window():
    cycles, share = rows("tcp_window", 1024)
    assert (cycles["measure"], cycles["unit"], cycles["against"]) == (
        "tcp_window", "cycles", "goal")
    assert (cycles["theirs"], cycles["goal"], cycles["flows"]) == (20, 1, 1024)
    assert (share["measure"], share["unit"], share["against"]) == (
        "tcp_window_share", "floors", "goal")
    # the same by another unit, as far as rounded figures tell
    if cycles["ours"] > 1 and share["ours"] > 0.5:
        assert share["ratio"] == pytest.approx(cycles["ratio"], rel=0.1)


@pytest.mark.usefixtures("simulated")
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two workers take two processors")
def test_two_workers():
    found = rows("two_workers", 1024, 3000)
    assert [(row["measure"], row["against"], row["flows"], row["goal"]) for row in found] == [
        (measure, against, flows, goal)
        for flows in (1024, 3000)
        for measure, against, goal in (
            ("two_workers", "one_worker", 1.9), ("two_workers_half", "one_of_them", 0))]
    for row in found:
        assert row["unit"] == "packets/s"
        assert row["ratio"] == pytest.approx(row["ours"] / row["theirs"], abs=0.01)


@pytest.mark.usefixtures("simulated")
def test_installer():
    """Blocked installers in turns with idle ones; burning calls too, where there is a processor for them."""
    found = rows("installer", 1024)
    expected = [("installer", 0.97), ("installer_spin", 0)]
    assert [(row["measure"], row["goal"]) for row in found] in (expected, expected[:1])
    for row in found:
        assert (row["unit"], row["against"], row["flows"]) == ("cycles", "idle", 1024)
        assert row["ratio"] == pytest.approx(row["theirs"] / row["ours"], abs=0.02)


@pytest.mark.parametrize("flows", [64, 5000])
def test_learn_rate(flows):
    learned, written = rows("learn_rate,json_rate", flows)
    assert (learned["measure"], learned["unit"], learned["against"]) == (
        "learn_rate", "flows/s", "goal")
    assert (learned["theirs"], learned["goal"], learned["flows"]) == (4000000, 1, flows)
    assert (written["measure"], written["unit"], written["against"], written["goal"]) == (
        "json_rate", "records/s", "learn_rate", 0)
    # rates: more is better
    assert written["theirs"] == learned["ours"] > 0
    assert learned["ratio"] == pytest.approx(learned["ours"] / 4e6, abs=0.01)


@pytest.mark.skipif(SLOWER > 1, reason="a sanitized exporter is slower than its worker, and loses records")
def test_learn_export():
    (row,) = rows("learn_export", 5000)
    assert (row["measure"], row["unit"], row["against"], row["goal"]) == ("learn_export", "cycles", "no_export", 0.97)
    assert row["ours"] > 0 and row["theirs"] > 0


def test_json_rate_alone():
    assert [row["measure"] for row in rows("json_rate", 1000)] == ["json_rate"]


def attacked(levels):
    return [(measure, load) for measure in levels for load in ("crc", "self", "bytes")]


def test_attack():
    found = rows("attack", 2000)
    measured = [(row["measure"], row["load"]) for row in found]
    # the second hash is that of processors without AES: where this is one, there is none
    assert measured in (attacked(["attack"]), attacked(["attack", "attack_portable"]))
    for row in found:
        assert (row["unit"], row["against"], row["goal"]) == ("cycles", "random", 0.9)
        assert row["ours"] > 0 and row["theirs"] > 0


@pytest.mark.usefixtures("simulated")
def test_rules():
    """Rules are loaded and removed nine times; the bench looks that each flow has one in the end."""
    done = run("bench", "wire", "--rules", "500", "--flows", "1024", "--json", timeout=120)
    assert done.code == 0, done.stderr
    row, = (json.loads(line) for line in done.stdout.decode().splitlines())
    assert list(row) == KEYS
    assert (row["measure"], row["against"], row["unit"], row["flows"]) == (
        "rules", "no_rules", "cycles", 1024)
    assert row["ours"] > 0 and row["theirs"] > 0 and row["goal"] == pytest.approx(0.97, abs=0.01)


def test_attack_on_the_portable_hash_alone(monkeypatch):
    monkeypatch.setenv("MILLRACE_SIMD", "portable")
    assert [(row["measure"], row["load"]) for row in rows("attack", 1000)] == attacked(["attack"])


@pytest.mark.usefixtures("simulated")
@pytest.mark.parametrize("measure, count", [
    ("floor", 1), ("wire_total", 2), ("wire_unlisted", 1), ("tcp_window_share", 1)])
def test_what_comes_along_is_had_alone(measure, count):
    assert [row["measure"] for row in rows(measure, 64)] == count * [measure] * (
        1 if measure == "tcp_window_share" else 2)  # loads


@pytest.mark.usefixtures("simulated")
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two workers take two processors")
def test_two_workers_half_alone():
    assert [row["measure"] for row in rows("two_workers_half", 1024)] == ["two_workers_half"]


def test_the_other_hash_where_there_is_none(monkeypatch):
    monkeypatch.setenv("MILLRACE_SIMD", "portable")
    done = run("bench", "wire", "--measure", "attack_portable", "--flows", "64", "--json")
    assert (done.code, done.stdout) == (1, b"")
    assert "bench wire: attack_portable: no row at" in done.stderr


def test_measures_have_sizes_of_their_own():
    """Unless they are named, they are measured at theirs: none of them at this one."""
    done = run("bench", "wire", "--flows", "100", "--json", timeout=120)
    if "built without" in done.stderr:
        pytest.skip("built without the simulated NIC")
    assert done.code == 0
    assert {json.loads(line)["measure"] for line in done.stdout.decode().splitlines()} == {
        "wire", "wire_total", "wire_unlisted", "floor"}


@pytest.mark.parametrize("args, code, line", [
    (["--measure", "tcp"], 2, "bench wire: --measure: no 'tcp'; there are wire, wire_total, "),
    (["--measure", "wire,attak"], 2, "no 'attak'; did you mean attack"),
    (["--measure", "learn_rate", "--flows", "63"], 1,
     "learn_rate: 63 flows are too few, 64 are not"),
    (["--rules", "0"], 2, "bench wire: --rules 0: not a number of 1 to 1048576"),
    (["--rules", "9", "--act"], 2, "bench wire: --rules takes no --act"),
    (["--measure", "attack", "--flows", "4000001"], 1, "attack: more than 4,000,000 flows"),
])
def test_refused(args, code, line):
    done = run("bench", "wire", *args)
    assert done.code == code
    assert line in done.stderr
    assert done.stderr.count("millrace: ") == 1
