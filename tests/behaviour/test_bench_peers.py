# SPDX-License-Identifier: BSD-3-Clause
"""`./dev bench peers`: how it reads what others say, what it tells, and what it says when it cannot."""
import json
import os
import subprocess
import sys

import pytest

from conftest import ROOT, run

# before all else: Open vSwitch's own Python has modules of the same name
sys.path[:0] = [str(ROOT / name) for name in ("bench/peers", "tests/peers", "tests/smoke")]

# pylint: disable=wrong-import-position
from contender import Failed, Interval, Moment, cost  # noqa: E402
from rows import HEAD, Row, lower_quartile, parse_flows, parse_machine, spread  # noqa: E402
from theirs import counters  # noqa: E402

# What Open vSwitch 3.1 says of a thread that polls, and of its main thread.
SHOWN = """pmd thread numa_id 0 core_id 1:
  packets received: 23118144
  packet recirculations: 22023232
  avg. datapath passes per packet: 1.95
  idle cycles: 700 (0.00%)
  processing cycles: 5806255584 (100.00%)
  avg cycles per packet: 251.16 (5806256284/23118144)
  avg processing cycles per packet: 251.16 (5806255584/23118144)
main thread:
  packets received: 0
  packet recirculations: 0
"""
MACHINE = "AMD EPYC, 8 cores, Linux 6.1.0, x86_64, TSC 2.60 GHz, DPDK 22.11.11"

pytestmark = pytest.mark.unsanitized


def bench_peers(*words, **environment):
    return subprocess.run([ROOT / "devtools/bench-peers", *words], text=True, capture_output=True, check=False,
                          env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment}, timeout=60)


def test_counters_are_those_of_the_polling_thread():
    assert counters(SHOWN) == (23118144, 5806256284)


@pytest.mark.parametrize("text", ["", "main thread:\n  packets received: 0\n", "  idle cycles: 7 (100.00%)\n"])
def test_counters_that_are_not_there(text):
    with pytest.raises(Failed, match="tells no packets or cycles"):
        counters(text)


def test_cost_of_an_interval():
    assert cost(Moment(1000, 50, 9000), Moment(21000, 150, 49000), 100, "it") == Interval(200, 400)
    assert cost(Moment(1000, 50), Moment(21000, 150), 101, "it") == Interval(200, None)


@pytest.mark.parametrize("received, sent, line", [
    (0, 0, "it has received no packet"),
    (10000, 9989, "it has sent 9989 packets of 10000"),
])
def test_packets_have_to_flow(received, sent, line):
    with pytest.raises(Failed, match=line):
        cost(Moment(0, 7), Moment(100, 7 + received), sent, "it")


def test_quartile_and_spread_are_those_of_the_other_benches():
    samples = [50, 10, 90, 30, 70, 20, 80, 40, 60]
    assert lower_quartile(samples) == 30  # the third of nine
    assert spread(samples) == pytest.approx((70 - 30) / 30)


@pytest.mark.parametrize("flows, theirs, goal, holds", [
    (1000, 999, 10, False), (1000, 1000, 10, True), (10000, 1000, 15, False), (1000000, 1500, 15, True)])
def test_row(flows, theirs, goal, holds):
    row = json.loads(Row(flows, [100] * 9, [theirs] * 8 + [4 * theirs]).as_json())
    assert list(row.items()) == [
        ("bench", "peers"), ("measure", "conntrack_total"), ("load", "uniform"), ("flows", flows),
        ("unit", "cycles"), ("ours", 100), ("against", "ovs"), ("theirs", theirs),
        ("ratio", pytest.approx(theirs / 100, abs=0.005)), ("goal", goal), ("holds", holds), ("rounds", 9),
        ("spread", 0)]


def test_row_as_text():
    text = Row(1000000, [66] * 9, [990.04] * 5 + [1980] * 4).as_text()
    assert text.split() == ["conntrack_total", "uniform", "1,000,000", "66.0", "ovs", "990.0", "cycles",
                            "15.00", "15.00", "100", "%"]
    assert len(text) == len(HEAD)
    assert Row(1000000, [67] * 9, [990] * 9).as_text().split()[-3:] == ["low", "0", "%"]


def test_head_and_machine_are_those_of_the_other_benches():
    if "bench" not in run("--help").stdout.decode():
        pytest.skip("built without bench")
    machine, head, *_ = run("bench", "table", "--flows", "64").stdout.decode().splitlines()
    assert head == HEAD
    assert 0 < parse_machine(machine) < 20


def test_machine():
    assert parse_machine(MACHINE) == 2.6
    for line in ("", "AMD EPYC, Linux 6.1.0", "TSC 2.60", "TSC 2.60 MHz, DPDK", "TSC GHz GHz"):
        with pytest.raises(ValueError):
            parse_machine(line)


def test_flows():
    assert parse_flows("1") == [1] and parse_flows("1000,8388608") == [1000, 8388608]
    for text in ("", "0", "8388609", "1,", "-1", "1 ", "+5", "x", "\u0663", ",".join(["1"] * 17)):
        with pytest.raises(ValueError, match="not sizes of"):
            parse_flows(text)


@pytest.mark.parametrize("words, line", [
    (["--flows", "0"], "--flows 0: not sizes of 1 to"),
    (["--flows"], "not sizes of 1 to"),
    (["--rounds"], "--rounds: not understood"),
])
def test_misused(words, line):
    done = bench_peers(*words)
    assert done.returncode == 2 and done.stdout == ""
    assert line in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("environment, line", [
    ({"MILLRACE": "/nowhere/millrace"}, "no /nowhere/millrace was built"),
    ({"FLOWSIM": "/nowhere/librte_net_flowsim.so"}, "no librte_net_flowsim.so was built"),
])
def test_what_is_not_there_is_told_in_a_line(environment, line):
    done = bench_peers("--json", **environment)
    assert done.returncode == 1 and done.stdout == ""
    assert (line if os.geteuid() == 0 else "needs root") in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_help():
    done = bench_peers("--help")
    assert done.returncode == 0 and done.stdout.startswith("usage: ./dev bench peers") and "--json" in done.stdout
