# SPDX-License-Identifier: BSD-3-Clause
"""Which of the changes that a running engine remembers are told: of which flows, of flows or of cards alone."""
import ipaddress
import json
import sys

import pytest

from conftest import ROOT
from simulated import Telemetry, ports

sys.path.append(str(ROOT / "tests" / "smoke"))

import engine  # pylint: disable=wrong-import-position

pytestmark = pytest.mark.usefixtures("simulated_nic")

NAME = ("proto", "src", "sport", "dst", "dport", "zone", "wire")


@pytest.fixture(name="remembered", scope="module")
def remember(tmp_path_factory):
    """An engine whose flows are in the cards at rest, once one was reset."""
    running = engine.Millrace(
        tmp_path_factory.mktemp("events") / "engine",
        *ports("flows=40,hostile=0,side=forward", "flows=40,hostile=0,side=reverse"),
        "--offload-threshold", 0, "--telemetry")

    def settled():
        listed = running.ask("flow list", offload="in_hw")
        return len(listed) == 40 and all(
            side.get("proven") for flow in listed
            for (answer,) in [running.ask("flow explain", **{key: flow[key] for key in NAME})]
            for side in answer["directions"])

    try:
        running.until(settled, "all flows are in the cards")
        Telemetry(running)("/flowsim/fault,0:reset")
        running.until(lambda: "breaker_closed" in names(running.ask("offload events")),
                      "the reset is noticed, and over")
        running.until(settled, "all flows are in the cards again")
        yield running
    finally:
        running.kill()


def names(events):
    return {event["event"] for event in events}


def is_of(event, key, value):
    if key == "address":
        return ipaddress.ip_network(value).version == ipaddress.ip_address(event["src"]).version and \
            any(ipaddress.ip_address(event[end]) in ipaddress.ip_network(value) for end in ("src", "dst"))
    if key == "port":
        return value in (event["sport"], event["dport"])
    return event[key] == value


@pytest.mark.parametrize("key", ["address", "prefix", "port", "proto", "zone"])
def test_of_some_flows(remembered, key):
    """Every remembered change of such flows, and no other; of cards none."""
    whole = remembered.ask("offload events")
    one = next(event for event in whole if event["event"] == "flow" and event["src"].count("."))
    name, value = {
        "address": ("address", one["src"]),
        "prefix": ("address", str(ipaddress.ip_network(f"{one['dst']}/28", strict=False))),
        "port": ("port", one["dport"]),
        "proto": ("proto", one["proto"]),
        "zone": ("zone", 7),
    }[key]
    told = remembered.ask("offload events", **{name: value})
    wanted = [event for event in whole if event["event"] == "flow" and is_of(event, name, value)]
    assert told == wanted
    assert bool(wanted) == (key != "zone") and len(wanted) < len(whole)


def test_of_one_flow_alone(remembered):
    """Filters together: those that fit all of them, in the client's words too."""
    whole = remembered.ask("offload events")
    one = next(event for event in whole if event["event"] == "flow" and event["src"].count("."))
    words = [word for key, name in (("src", "address"), ("sport", "port"), ("proto", "proto"))
             for word in (f"--{name}", str(one[key]))]
    told = [json.loads(line) for line in
            remembered.client("offload", "events", *words, "--json").splitlines()]
    assert told == [
        event for event in whole if event["event"] == "flow" and event["proto"] == one["proto"] and
        is_of(event, "address", one["src"]) and is_of(event, "port", one["sport"])]
    assert one in told


def test_of_cards_alone(remembered):
    whole = remembered.ask("offload events")
    told = remembered.ask("offload events", flows=False)
    assert told == [event for event in whole if event["event"] != "flow"]
    assert {"breaker_open", "breaker_tries", "breaker_closed"} <= names(told)
    assert remembered.client("offload", "events", "--no-flows", "--json").count("\n") == len(told)
    # a wire has flows and cards
    assert remembered.ask("offload events", wire=0) == whole
    assert remembered.ask("offload events", wire=0, flows=True) == whole


@pytest.mark.parametrize("given, error", [
    ({"wire": 1}, "offload events: wire 1: this engine has wire 0 only"),
    ({"address": "10.0.0"}, 'offload events: address "10.0.0": no IP address or prefix'),
    ({"flows": False, "proto": "tcp"},
     "offload events: proto is of flows, which are to be left out"),
    ({"state": "open"}, 'offload events: "state": no such key'),
])
def test_what_cannot_be_told(remembered, given, error):
    with pytest.raises(AssertionError) as raised:
        remembered.ask("offload events", **given)
    assert error in str(raised.value)


def test_nothing_fits(remembered):
    assert remembered.client("offload", "events", "--address", "192.0.2.1") == \
        " no such change is remembered\n"
