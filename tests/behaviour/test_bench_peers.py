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
from offload import COUNTERS, Look, Outcome, Part, Plan, part  # noqa: E402
from offload_ours import about_offload, handled  # noqa: E402
from offload_rows import as_text, values  # noqa: E402
from offload_theirs import compared, processed, refusals  # noqa: E402
from rows import HEAD, Row, lower_quartile, parse_flows, parse_machine, parse_names, parse_rules, spread  # noqa: E402
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


def test_names_and_rules():
    assert parse_names("--nic", "cx5,x710", ("x710", "cx5")) == ("x710", "cx5")
    assert parse_rules("512") == 512
    for text in ("", "0", "65537", "-1", "x"):
        with pytest.raises(ValueError, match="not 1 to"):
            parse_rules(text)


# A flow of the datapath as Open vSwitch 3.1 dumps it, and what its log has of its rule.
DUMPED = ("ufid:1ea519ae-a2a9-4ef4-801b-4e76968a0105, skb_priority(0/0),skb_mark(0/0),ct_label(0/0),recirc_id(0),"
          "dp_hash(0/0),in_port(p1),packet_type(ns=0,id=0),eth(src=02:00:00:00:00:02/00:00:00:00:00:00,"
          "dst=02:00:00:00:00:01/00:00:00:00:00:00),eth_type(0x0800),ipv4(src=198.18.163.225,dst=10.79.177.220,"
          "proto=17,tos=0/0,ttl=64/0,frag=no),udp(src=5001,dst=64285), packets:44412, bytes:2842368, used:0.000s, "
          "dp:ovs, actions:p0")
LOGGED = """2026-11-23T08:27:59.437Z|00007|netdev_offload_dpdk(hw_offload6)|WARN|p1: rte_flow creation failed: 2 (full).
2026-11-23T08:27:59.437Z|00008|netdev_offload_dpdk(hw_offload6)|WARN|p1: Failed flow:   flow create 1 ingress priority 0 group 0 pattern eth / ipv4 src is 198.18.163.225 dst is 10.79.177.220 proto is 0x11 / udp src is 5001 dst is 64285 / end actions mark id 7 / rss / end
2026-11-23T08:27:59.438Z|00009|netdev_offload_dpdk(hw_offload6)|WARN|p1: rte_flow creation failed: 2 (fuller).
"""


def test_what_open_vswitch_says_of_a_flow():
    assert compared(DUMPED) == ("recirc_id(0),in_port(p1),eth_type(0x0800),ipv4(src=198.18.163.225,dst=10.79.177.220,"
                                "proto=17,frag=no),udp(src=5001,dst=64285), packets:44412, bytes:2842368, "
                                "used:0.000s, dp:ovs, actions:p0")
    found = refusals(LOGGED, DUMPED)
    assert found == {"refusals": 2, "last": "p1: rte_flow creation failed: 2 (fuller).",
                     "of_this_flow": ["p1: rte_flow creation failed: 2 (full)."]}
    other = DUMPED.replace("dst=64285", "dst=6428")
    assert refusals(LOGGED, other)["of_this_flow"] == [] and refusals("", DUMPED)["refusals"] == 0


def test_marks_are_those_of_the_polling_thread():
    assert processed(SHOWN.replace("  idle", "  phwol hits: 21\n  idle")) == (23118144, 5806255584, 21)
    with pytest.raises(Failed, match="tells no packets, marks or cycles"):
        processed(SHOWN)


def test_what_we_say_of_a_flow():
    text = (" udp 10.0.0.1:1 -> 10.0.0.2:2, open (replied)\n wire 0\n handled in software because: it is full\n"
            "   -> software, a: it is full\n verdict forward\n")
    assert about_offload(text) == ["udp 10.0.0.1:1 -> 10.0.0.2:2, open (replied)",
                                   "handled in software because: it is full", "  -> software, a: it is full"]
    assert handled(["x", "  -> NIC only, a, since 3 s: y", "  <- software, b: z"]) == ["NIC only", "software"]
    with pytest.raises(Failed, match="does not say where"):
        about_offload(text.replace("handled", "treated"))


def looked(cpu_ns, own, **nic):
    return Look(cpu_ns, {**dict.fromkeys(COUNTERS, 0), **nic}, *own)


def test_part_of_what_came_and_of_what_the_nic_kept():
    before = looked(1000, (10, 100.0, 0))
    after = looked(21000, (110, 8100.0, 60), rx_good_packets=100, tx_good_packets=100, rx_marked=50,
                   rx_forwarded_packets=100)
    assert part(before, after, "it") == Part(200, 100.0, 0.75, 0.5, 80.0, 0.6)
    with pytest.raises(Failed, match="it has sent 0 packets of 100"):
        part(before, looked(2000, (110, 0.0, 0), rx_good_packets=100), "it")
    with pytest.raises(Failed, match="had the NIC drop 7 packets"):
        part(before, looked(2000, (110, 0.0, 0), rx_good_packets=100, tx_good_packets=100,
                            rx_rule_dropped_packets=7), "it")
    with pytest.raises(Failed, match="received no packet"):
        part(before, before, "it")


def test_offload_side_by_side():
    parts = [Part(1000, ns, 0.8, 0.0, 90.0, None) for ns in (20, 40, 30)]
    plan = Plan(2000, 512, 3, 2.0, 1, 0.5)
    rows = [values("x710", plan, Outcome("millrace", "mark", parts, [512, 500], 3, 2000, {"in_hw": 1012},
                                         {"says": ["no room"]}), 2.0),
            values("x710", plan, Outcome("ovs", "on", parts, [512, 512], 9, 3990, {"partial": 1024},
                                         {"says": ["dp:ovs"], "log": {"refusals": 0, "last": None,
                                                                      "of_this_flow": []}}), 2.0)]
    assert [row["cycles"] for row in rows] == [40.0, 40.0] and rows[0]["spread"] == 1.0
    lines = list(as_text(rows))
    assert lines[0] == ("offload, x710 with room for 512 rules at each port; 2,000 UDP flows by Zipf's law, 64 bytes")
    assert "packets in hardware, by the NIC           80.0 %        80.0 %" in lines
    assert "rules in the NIC                           1,012         1,024" in lines
    assert lines[-1] == "    and in its log: nothing" and "    no room" in lines


@pytest.mark.parametrize("words, line", [
    (["--flows", "0"], "--flows 0: not sizes of 1 to"),
    (["--flows"], "not sizes of 1 to"),
    (["--rounds"], "--rounds: not understood"),
    (["--measure", "speed"], "--measure speed: no 'speed'; there are conntrack_total, offload"),
    (["--nic"], "there are x710, cx5"),
    (["--rules", "0"], "--rules 0: not 1 to"),
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
