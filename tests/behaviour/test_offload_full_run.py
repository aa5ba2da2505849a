# SPDX-License-Identifier: BSD-3-Clause
"""What a running engine says of flows that its NIC has whole: lists, explanations, sums and records."""
import json
import sys

import pytest

from conftest import ROOT
from simulated import ports

sys.path.append(str(ROOT / "tests" / "smoke"))

import engine  # pylint: disable=wrong-import-position

pytestmark = pytest.mark.usefixtures("simulated_nic")

FLOWS = 8


@pytest.fixture(name="started")
def start(tmp_path):
    """started(words, *more): an engine between two ports of one simulated NIC."""
    engines = []

    def begin(words, *more, a="nic=n", b="nic=n"):
        running = engine.Millrace(
            tmp_path / "engine",
            *ports(f"flows={FLOWS},side=forward,{words},{a}", f"flows={FLOWS},side=reverse,{words},{b}"),
            "--offload-mode", "full", "--output", "records.json", *more)
        engines.append(running)
        return running

    yield begin
    for running in engines:
        running.kill()


def all_in(running, how):
    """Until every flow is in the NIC that way; the list."""
    def look():
        flows = running.flows()
        done = len(flows) == FLOWS and all(
            flow["offload"]["state"] == "in_hw" and flow["offload"].get("how") == how for flow in flows)
        return flows if done else None
    return running.until(look, f"all flows are in the NIC by {how}")


def explain(running, flow):
    name = {key: flow[key] for key in ("src", "sport", "dst", "dport", "proto", "wire", "zone")}
    return running.ask("flow explain", **name)[0]


def text_of(running, flow):
    ends = (f"{flow[a]}:{flow[p]}" for a, p in (("src", "sport"), ("dst", "dport")))
    return running.client("flow", "explain", *ends, {6: "tcp", 17: "udp"}[flow["proto"]])


def is_whole(answer):
    return all(side["state"] == "in_hw" and side["proven"] and side["how"] == "full"
               for side in answer["directions"])


@pytest.mark.parametrize("proto", ["udp", "tcp"])
def test_everything_that_is_said(tmp_path, started, proto):
    running = started(f"profile=cx5,proto={proto}", "--offload-threshold", 500)
    flows = all_in(running, "full")
    for flow in flows:
        answer = running.until(
            lambda flow=flow: (lambda said: said if is_whole(said) else None)(explain(running, flow)),
            "both directions are proven")
        assert (answer["where"], answer["how"]) == ("in_hw", "full") and "estimated" not in answer
        assert all(side["nic_packets"] > 0 for side in answer["directions"])
        assert any(change["after"] == "in_hw" and change["how"] == "full" and change["proven"]
                   for change in answer["changes"])
        if proto == "tcp":
            assert not answer["tcp"]["window_tracked"]
    text = text_of(running, flows[0])
    assert "handled by the NIC alone because: its rate reached the threshold" in text
    assert "-> NIC only, a, since" in text and "NIC only, proven by its counter" in text
    assert "marked by the NIC, or sent on by it alone: " in text
    assert running.client("flow", "list").count("NIC only") == FLOWS

    for line in running.ask("offload show"):
        assert line["exact"] and line["forwarded"] > 0 and line["unaccounted"] == 0
        assert line["read_every_us"] >= 225000
        assert line["kinds"]["ipv4/udp"]["full"] == {
            "granted": True,
            "shape": "represented_port / eth / ipv4 whole / udp, indirect count + represented_port"}
        assert line["kinds"]["ipv4/icmp"]["full"] == {"granted": False}
    # nothing comes here any more, and time goes on
    received = running.idle()["received"]
    before = running.wire()["nic_forwarded"]
    running.until(lambda: running.wire()["nic_forwarded"] > before + 1000, "the NIC goes on")
    wire = running.wire()
    assert wire["received"] == received
    assert "sent on by the NIC alone: " in running.client("wire", "show")
    running.stop(leaves=["records.json"])
    records = engine.read_records(tmp_path / "engine" / "records.json")
    assert len(records) == FLOWS
    for record in records:
        assert record["end_reason"] == "shutdown" and record["offload"]["how"] == "full"
        assert "estimated" not in record["offload"]
        assert record["bytes"] == 64 * record["packets"]
        assert record["reverse_bytes"] == 64 * record["reverse_packets"]
    total = sum(record["packets"] + record["reverse_packets"] for record in records)
    # the last line has all that the NIC sent on, to its end
    said = running.stderr.splitlines()[-1]
    besides = int(said.split("besides, ")[1].split(" packets")[0].replace(",", ""))
    assert total == received + besides, said


@pytest.mark.parametrize("words, a, b", [
    ("profile=x710", "nic=n", "nic=n"),
    ("profile=cx5", "nic=n", "nic=m"),  # of two NICs
    ("profile=cx6-hws", "nic=n", "nic=n"),
])
def test_what_cannot_be_is_marked(started, words, a, b):
    running = started(words, "--offload-threshold", 500, a=a, b=b)
    flows = all_in(running, "mark")
    assert "handled in NIC because" in text_of(running, flows[0])
    for line in running.ask("offload show"):
        full = line["kinds"]["ipv4/udp"]["full"]
        assert not full["granted"] and full["refusal"]["errno"], full
        assert line["forwarded"] == 0
    assert running.wire()["nic_forwarded"] == 0
    running.stop(leaves=["records.json"])


def test_estimates(tmp_path, started):
    """Where counters go with their rules the last packets may be missing, and records say so."""
    actions = "actions=mark+queue+count+represented_port"
    running = started(f"profile=cx5,{actions}", "--offload-threshold", 500)
    flows = all_in(running, "full")
    assert not any(line["exact"] for line in running.ask("offload show"))
    running.client("flow", "kill", f"{flows[0]['src']}:{flows[0]['sport']}",
                   f"{flows[0]['dst']}:{flows[0]['dport']}", "udp")
    running.stop(leaves=["records.json"])
    with open(tmp_path / "engine" / "records.json", encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    assert all(record["offload"]["estimated"] for record in records
               if record["offload"].get("how") == "full")
    assert any(record["end_reason"] == "killed" for record in records)
