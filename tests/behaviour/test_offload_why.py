# SPDX-License-Identifier: BSD-3-Clause
"""Why flows of a running engine wait for a card, or are not asked in: what explain and check say is so."""
import sys

import pytest

from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

from conftest import ROOT
from simulated import Telemetry, ports

sys.path.append(str(ROOT / "tests" / "smoke"))

import engine  # pylint: disable=wrong-import-position

pytestmark = pytest.mark.usefixtures("simulated_nic")

NAME = ("proto", "src", "sport", "dst", "dport", "zone", "wire")


@pytest.fixture(name="started")
def start(tmp_path):
    """started(words, *more, b=...): an engine between two such NICs."""
    engines = []

    def begin(words, *more, b="source=none"):
        engines.append(engine.Millrace(tmp_path / "engine", *ports(words, b), *more))
        return engines[-1]

    yield begin
    for running in engines:
        running.kill()


def ask(running, request, flow):
    return running.ask(request, **{key: flow[key] for key in NAME})


def test_both_directions_by_one_port(started):
    """The port has one rule of each flow: whose it is, and that the other way is in software for that."""
    running = started("flows=40,hostile=0,side=both,pace=40000")
    ways = set()

    def both_were_met():
        """By which of its packets a flow is asked in is chance: those that were seen begin anew."""
        for flow in running.ask("flow list", offload="in_hw"):
            (answer,) = ask(running, "flow explain", flow)
            forward, reverse = answer["directions"]
            assert (forward["direction"], reverse["direction"]) == ("forward", "reverse")
            if answer["where"] != "in_hw":
                continue
            (ruled,) = [side for side in (forward, reverse) if side["state"] == "in_hw"]
            # as was told when the rule was asked for
            assert ruled["direction"] == answer["changes"][0]["direction"]
            assert ruled["port"] == answer["changes"][0]["port"] == "a"
            if ruled is reverse:
                assert (forward["port"], forward["reason"]) == ("a", "other_way")
            ways.add(ruled["direction"])
            ask(running, "flow kill", flow)
        return ways == {"forward", "reverse"}

    running.until(both_were_met, "rules of both directions")
    running.stop(idle=False)


def test_no_place_in_the_queue(started):
    """A card of 11 ms a rule, and more flows than the queue for it has places."""
    running = started("flows=1500,side=forward,pace=60000,profile=x710-stock")

    def displaced():
        return [flow for flow in running.flows() if flow["offload"]["reason"] == "displaced"]

    running.until(lambda: len(displaced()) > 100, "flows find the queue full")
    told = [(side, check) for flow in displaced()[:50]
            for side in [ask(running, "flow explain", flow)[0]["directions"][0]]
            for check in [ask(running, "offload check", flow)[0]]
            if side["reason"] == check.get("now", {}).get("reason") == "displaced"]
    assert told
    for side, check in told:
        assert "next try in" in side["because"] or side["needs_pps"] > 1
        assert not check["would"] or check["needs_pps"] > 1
        assert "below the threshold" not in check["now"]["because"]
    running.stop(idle=False)


def test_cause_and_since_are_of_one_event(started):
    """Flows that are much alike, and more than the card has room for: some rank high enough, and wait all the same."""
    running = started("flows=200,side=forward,hostile=0,pace=60000,profile=tiny,rules=40", "--offload-threshold", 100)
    waits = "it ranks high enough, and waits for hysteresis: a flow in the NIC gives way only to one that is busier"
    met = set()

    def check(side, changes):
        """A time that is told is that of the change with this cause, or of a later event than all changes."""
        newest = next((change for change in changes if change["direction"] == side["direction"]), None)
        if newest is None or "since" not in side:
            return
        assert side["since"] >= newest["time"]
        if side["since"] == newest["time"]:
            assert (newest["after"], newest["reason"]) == (side["state"], side["reason"])
            met.add(side["state"])

    def both():
        for flow in running.flows():
            for answer in ask(running, "flow explain", flow):
                side = answer["directions"][0]
                check(side, answer["changes"])
                if side["because"].startswith(waits):
                    assert side["state"] == "software" and side["rank"] <= side["ranked"]
                    assert side["rate_pps"] < side["needs_pps"]
                    met.add("waits")
        return met >= {"in_hw", "waits"}

    running.until(both, "a flow that waits for hysteresis, and one in the NIC since it was accepted")
    running.stop(idle=False)


def test_slots_are_those_that_marks_have_room_for(started):
    running = started("flows=5000,side=forward,mark_bits=16,hostile=0", "--offload-threshold", 0,
                      b="source=none,mark_bits=16")
    slots = running.until(lambda: running.ask("offload show")[0].get("slots"), "the wire has slots")
    assert slots < 65536

    def without():
        return [flow for flow in running.flows() if flow["offload"]["reason"] == "no_slot"]

    running.until(without, "a flow without a slot")
    running.until(lambda: any(
        f"a wire may have {slots:,} flows in its NICs" in side["because"]
        for flow in without()[:50]
        for side in ask(running, "flow explain", flow)[0]["directions"]), "it says how many there are")
    running.stop(idle=False)


@pytest.mark.parametrize("read", ["yes", "no"])
def test_counters_that_nobody_reads(started, read):
    """A card may have few: who does not read them does not ask for them, and marks come all the same."""
    running = started("flows=40,profile=cx5", "--offload-threshold", 0, "--offload-counters", read)
    running.until(lambda: any(port["flows"]["proven"] > 0 for port in running.ask("offload show")),
                  "marks come")
    for port in running.ask("offload show"):
        assert port["counts"] == (read == "yes")
        shapes = [kind["shape"] for kind in port["kinds"].values() if kind["granted"]]
        assert shapes and all(("count" in shape) == (read == "yes") for shape in shapes)
    running.stop(idle=False)


def test_what_strict_tcp_drops_was_not_unmarked(tmp_path, started):
    """Resets that miss the window come with a mark, and go nowhere: what the card marked is the flow's, or was dropped."""
    there = Ether(dst="02:00:00:00:00:02") / IP(src="192.0.2.1", dst="198.51.100.1", ttl=64)
    back = Ether(dst="02:00:00:00:00:02") / IP(src="198.51.100.1", dst="192.0.2.1", ttl=64)
    data = [there / TCP(sport=4000, dport=80, seq=1000, ack=5000, flags="A", window=1000)]
    forged = [there / TCP(sport=4000, dport=80, seq=3_000_000_000, ack=5000, flags="RA")] * 12
    answer = [back / TCP(sport=80, dport=4000, seq=5000, ack=1000, flags="A", window=1000)]
    # both have spoken before the first of them
    wrpcap(str(tmp_path / "a.pcap"), 2000 * data + forged)
    wrpcap(str(tmp_path / "b.pcap"), 2000 * answer)
    running = started(f"profile=cx5,passes=8000,capture={tmp_path}/a.pcap", "--telemetry",
                      "--offload-threshold", 0, "--tcp", "strict",
                      b=f"profile=cx5,passes=8000,capture={tmp_path}/b.pcap")
    running.until(lambda: all(port["flows"]["proven"] for port in running.ask("offload show")),
                  "both directions have marks")
    dropped = running.wire()["dropped"]
    packets = 8000 * (2 * 2000 + 12)
    running.until(lambda: running.wire()["received"] >= packets, f"{packets} packets")
    assert running.wire()["dropped"] > dropped
    assert set(running.drops()) == {"tcp_window"}
    (flow,) = running.ask("flow list")
    telemetry = Telemetry(running)
    marked = sum(telemetry(f"/ethdev/xstats,{port}")["rx_marked"] for port in (0, 1))
    assert 0 < flow["offload"]["packets"] < marked <= flow["offload"]["packets"] + running.wire()["dropped"]
    running.stop(idle=False)
