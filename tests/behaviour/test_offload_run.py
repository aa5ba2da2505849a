# SPDX-License-Identifier: BSD-3-Clause
"""What a running engine says of offload: of every flow, of its NICs, and while things go wrong there."""
import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time

import pytest

from conftest import MILLRACE, ROOT, SLOWER
from simulated import Telemetry, ports, refusal

sys.path.append(str(ROOT / "tests" / "smoke"))

import engine  # pylint: disable=wrong-import-position

pytestmark = pytest.mark.usefixtures("simulated_nic")

STATES = ["software", "refused", "queued", "installing", "leaving", "suspect", "in_hw"]
AT_ONCE = ("--offload-threshold", 0)


@pytest.fixture(name="started")
def start(tmp_path):
    """started(words, *more, b=...): an engine between two such NICs, its port a's arguments first."""
    engines = []
    places = tmp_path / "run"
    places.mkdir()

    def begin(words, *more, b=None):
        running = engine.Millrace(
            tmp_path / "engine",
            *ports(f"{words},side=forward", f"{words if b is None else b},side=reverse"), *more,
            "--telemetry", environment={"RUNTIME_DIRECTORY": str(places)})
        engines.append(running)
        running.until(lambda: all(port.get("ready", True) for port in running.ask("offload show")),
                      "the NICs have been tried")
        return running

    yield begin
    for running in engines:
        running.kill()


def explain(running, flow):
    """All about one flow of a list, or None when it has just ended."""
    name = {key: flow[key] for key in ("src", "sport", "dst", "dport", "proto", "wire", "zone")}
    (answer,) = running.ask("flow explain", **name)
    assert engine.flow_key(answer) == engine.flow_key(flow)
    assert [side["direction"] for side in answer["directions"]] == ["forward", "reverse"]
    assert answer["where"] in STATES
    # the whole flow is where the direction is that is further on
    further = max(answer["directions"], key=lambda side: STATES.index(side["state"]))
    assert answer["where"] == further["state"]
    assert answer["where_because"] in [side["because"] for side in answer["directions"]]
    return answer


def every_flow(running, flows, says):
    """Asks each of them until it says so, all of them in the end."""
    left = [flow for flow in running.until(
        lambda: (lambda listed: listed if len(listed) == flows else None)(running.flows()),
        f"{flows} flows")]
    explained = []

    def ask():
        for flow in list(left):
            answer = explain(running, flow)
            if says(answer):
                left.remove(flow)
                explained.append(answer)
        return not left

    try:
        running.until(ask, "every flow says why")
    except AssertionError:
        print(json.dumps(explain(running, left[0]), indent=1) if left else "")
        raise
    return explained


def at(answer, port):
    """The direction whose packets arrive there."""
    (side,) = [side for side in answer["directions"] if side["port"] == port]
    return side


def both(state, reason, because):
    """Do both directions say this, in these words?"""
    return lambda answer: all(
        (side["state"], side["reason"], side["because"]) == (state, reason, because)
        for side in answer["directions"])


def shown(running, port):
    (line,) = [line for line in running.ask("offload show") if line["port"] == port]
    return line


def in_hw(answer):
    return all(side["state"] == "in_hw" and side["proven"] for side in answer["directions"])


def processors(running):
    """thread's name: where it may run"""
    allowed = {}
    for task in (running.proc / "task").iterdir():
        status = (task / "status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith("Cpus_allowed_list")]
        allowed[(task / "comm").read_text().strip()] = line.split()[-1]
    return allowed


@pytest.mark.skipif(len(os.sched_getaffinity(0)) != 2, reason="wants two processors")
@pytest.mark.parametrize("pin", ["yes", "no"])
def test_installers_leave_the_worker_alone(started, pin):
    """A worker turns all the time: who shares its processor takes its time, or waits."""
    both_of_them = ["0-1", ",".join(str(cpu) for cpu in sorted(os.sched_getaffinity(0)))]
    running = started("flows=4", "--pin", pin)
    allowed = processors(running)
    if pin == "yes":
        assert allowed["installer-0"] == allowed["installer-1"]
        assert {allowed["worker-0"], allowed["installer-0"]} == {
            str(cpu) for cpu in os.sched_getaffinity(0)}
    else:
        assert allowed["worker-0"] in both_of_them and allowed["installer-0"] in both_of_them
    running.stop(idle=False)


def test_below_the_threshold(started):
    running = started("flows=40,proto=mix,ipv6=50", "--offload-threshold", 1000000000)
    explained = every_flow(running, 40, both(
        "software", "quiet", "its rate is below the threshold of 1,000,000,000 packets a second"))
    for answer in explained:
        assert answer["marked_packets"] == 0 and "mark" not in answer
        assert answer["changes"] == [] and answer["changes_lost"] is False
    running.stop(idle=False)


def test_too_short(started):
    """A packet each way, and nothing more."""
    running = started("flows=40,passes=1", "--offload-threshold", 1)
    running.until(lambda: running.wire()["received"] == 2 * 40, "all packets")
    for answer in every_flow(running, 40, lambda answer: all(
            (side["state"], side["reason"]) == ("software", "short")
            for side in answer["directions"])):
        assert answer["packets"] == answer["reverse_packets"] == 1
    running.stop()


def test_in_the_nic(started):
    running = started("flows=40,proto=mix,ipv6=50", *AT_ONCE)
    explained = every_flow(running, 40, lambda answer: in_hw(answer) and both(
        "in_hw", "busy", "every flow is given to the NIC, since the threshold is 0")(answer))
    for answer in explained:
        assert answer["marked_packets"] > 0
        for side in answer["directions"]:
            mine = [change for change in reversed(answer["changes"])
                    if change["direction"] == side["direction"]]
            assert {change["port"] for change in mine} == {side["port"]}
            changes = [(change["before"], change["after"], change.get("proven"))
                       for change in mine]
            assert changes == [("software", "queued", None), ("queued", "installing", None),
                               ("installing", "in_hw", False), ("in_hw", "in_hw", True)]
    assert len({answer["mark"] for answer in explained}) == 40
    running.stop(idle=False)


def test_a_rate_above_the_threshold(started):
    running = started("flows=8,hostile=0", "--offload-threshold", 500)
    for answer in every_flow(running, 8, in_hw):
        for side in answer["directions"]:
            assert side["because"] == "its rate reached the threshold of 500 packets a second"
        queued = [change for change in answer["changes"] if change["after"] == "queued"]
        assert queued and all(change["rate_pps"] >= 500 for change in queued)
    running.stop(idle=False)


@pytest.mark.parametrize("errno, words", [
    ("ENOSPC", "no room in the table"), ("ENOMEM", "no memory"), ("EBUSY", "in use")])
def test_refused(started, errno, words):
    """By one port alone, from now on: all flows begin anew."""
    running = started("flows=40,async=0,hostile=0", *AT_ONCE)
    every_flow(running, 40, in_hw)
    Telemetry(running)(f"/flowsim/fault,0:fail:op=create,errno={errno}")
    for flow in running.flows():
        running.ask("flow kill", **{key: flow[key] for key in (
            "src", "sport", "dst", "dport", "proto", "wire", "zone")})

    def says(answer):
        refused, well = at(answer, "a"), at(answer, "b")
        return (refused["state"], well["state"], well.get("proven")) == ("refused", "in_hw", True)

    for answer in every_flow(running, 40, says):
        side = at(answer, "a")
        assert side["reason"] == "refused"
        assert side["refusal"] == {"errno": errno, "words": words}
        assert side["because"].startswith(f'the NIC\'s driver refused it: {errno}, "{words}"')
        assert "refusal" not in at(answer, "b")
        assert {change["reason"] for change in answer["changes"] if change["after"] == "refused"
                } == {"refused"}
    # they are asked again and again: what the thread of the port has counted, workers have a moment later
    running.until(lambda: (port := shown(running, "a"))["refused"] == port["inserts_failed"] >= 40,
                  "both have counted the same")
    port = shown(running, "a")
    assert port["inserts_failed"] >= port["refused"] >= 40
    assert [(said["errno"], said["words"]) for said in port["refusals"]] == [(errno, words)]
    assert port["refusals"][0]["times"] >= 40
    assert shown(running, "b")["refused"] == 0
    running.stop(idle=False)


def test_the_table_is_full(started):
    """512 rules, and 600 flows: those that are not there say what the driver said of it."""
    running = started("flows=600,profile=tiny", *AT_ONCE)

    def says(answer):
        return all(side["state"] == "refused" or side["state"] == "in_hw" and side["proven"]
                   for side in answer["directions"])

    explained = every_flow(running, 600, says)
    sides = [side for answer in explained for side in answer["directions"]]
    assert sum(side["state"] == "in_hw" for side in sides) == 2 * 512
    for side in sides:
        if side["state"] == "refused":
            assert side["refusal"] == {"errno": "ENOSYS", "words": "Not supported action."}
    listed = {state: [json.loads(line) for line in running.client(
        "flow", "list", "--offload", state, "--json").splitlines()] for state in STATES}
    for state, flows in listed.items():
        assert all(flow["offload"]["state"] == state for flow in flows)
    assert len(listed["in_hw"]) >= 512
    running.stop(idle=False)


def test_workers_share_a_card(started):
    """Whosever they are: the busiest flows of both workers have its rules."""
    running = started("flows=64,load=zipf,rules=16,pace=20000", "--workers", 2)

    def busiest_are_in():
        flows = sorted(running.ask("flow list"), key=lambda flow: -flow["packets"])
        return len(flows) == 64 and all(flow["offload"]["state"] == "in_hw" for flow in flows[:6])

    running.until(busiest_are_in, "the busiest flows are in the NIC")
    for port in running.ask("offload show"):
        assert port["rules"] <= 16
    running.stop()


def test_the_breaker_is_open(started):
    """A NIC that marks no more is put to software; its neighbour is not."""
    running = started("flows=40,hostile=0", *AT_ONCE)
    every_flow(running, 40, in_hw)
    Telemetry(running)("/flowsim/fault,0:stop_mark")
    running.until(lambda: shown(running, "a")["health"]["state"] == "open", "the breaker opens")
    told = {"breaker": "port a was put to software", "quarantine": "it fell out of the NIC",
            "unmarked": "packets came without the mark"}

    def says(answer):
        side = at(answer, "a")
        assert side["reason"] in [*told, "busy", "unseen", "canary"], side
        return side["state"] == "software" and side["reason"] in told and "proven" in at(answer, "b")

    explained = every_flow(running, 40, says)
    for answer in explained:
        side = at(answer, "a")
        assert told[side["reason"]] in side["because"], side
        assert at(answer, "b")["reason"] == "busy" and at(answer, "b")["proven"]
        assert {"unmarked", "breaker"} & {change["reason"] for change in answer["changes"]
                                          if change["port"] == "a"}
    health = shown(running, "a")["health"]
    assert health["opened"] >= 1 and health["reason"] in ("unmarked", "unseen")
    assert shown(running, "b")["health"] == {"state": "closed", "opened": 0}
    Telemetry(running)("/flowsim/fault,0:stop_mark:off")
    every_flow(running, 40, in_hw)
    running.stop(idle=False)


def test_offload_is_off(started):
    running = started("flows=40", "--offload", "off")
    every_flow(running, 40, both("software", "off", "offload is turned off"))
    for port in running.ask("offload show"):
        assert (port["offload"], port["reason"], port["unable"]) == (
            False, "off", "offload is turned off")
    running.stop(idle=False)


def test_one_port_is_left_out(started):
    running = started("flows=40", "--offload-except", "b", *AT_ONCE)
    because = "port b is one of those that are left out of offload"
    for answer in every_flow(running, 40, lambda answer: at(answer, "a").get("proven")):
        assert (at(answer, "b")["reason"], at(answer, "b")["because"]) == ("off", because)
    running.stop(idle=False)


def test_kinds_that_the_nic_cannot(started):
    """A ConnectX-5 takes no rules for SCTP; all the others are in it."""
    running = started("flows=64,profile=cx5,proto=mix,ipv6=50", *AT_ONCE)
    explained = every_flow(running, 64, lambda answer: answer["proto"] == 132 or in_hw(answer))
    assert {answer["proto"] for answer in explained} == {1, 6, 17, 58, 132}
    for answer in explained:
        if answer["proto"] != 132:
            continue
        kind = f"ipv{answer['version']}/sctp"
        for side in answer["directions"]:
            refusal = shown(running, side["port"])["kinds"][kind]["refusal"]
            assert (side["state"], side["reason"]) == ("software", "kind")
            assert side["because"] == (f"port {side['port']} takes no rules for {kind} flows: "
                                       f"{refusal['errno']}, \"{refusal['words']}\"")
        assert answer["marked_packets"] == 0
    running.stop(idle=False)


def test_no_nic(started):
    """It has no marks at all: a sentence says so, the same as that of the port."""
    running = started("flows=40,mark_bits=0", *AT_ONCE)
    unable = shown(running, "a")["unable"]
    assert unable
    for answer in every_flow(running, 40, lambda answer: at(answer, "a")["reason"] == "no_nic"):
        for side in answer["directions"]:
            assert (side["state"], side["reason"]) == ("software", "no_nic")
            assert side["because"].endswith(unable)
    running.stop(idle=False)


def test_no_slot(started):
    running = started("flows=40", "--offload-slots", 8, *AT_ONCE)
    because = "no mark is free for it; a wire may have 8 flows in its NICs"

    def says(answer):
        sides = answer["directions"]
        return in_hw(answer) or all(
            (side["state"], side["reason"]) == ("software", "no_slot") and side["because"].startswith(because)
            for side in sides)

    assert sum(map(in_hw, every_flow(running, 40, says))) == 8
    assert len(running.client("flow", "list", "--offload", "in_hw", "--json").splitlines()) == 8
    port = shown(running, "a")
    assert (port["slots"], port["slots_used"]) == (8, 8) and port["no_slot"] > 0
    running.stop(idle=False)


# -------------------------------------------------------------------------------- as it happens


class Followed:
    """`millrace offload events --follow --json`, line by line."""

    def __init__(self, running):
        self.process = subprocess.Popen(
            [MILLRACE, "offload", "events", "--follow", "--json", "--socket", running.socket],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)

        self.lines, self.seen = queue.Queue(), []
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))

    def until(self, what):
        """The first event from here on for which that is so; fails when none comes in half a minute."""
        deadline = time.monotonic() + 30 * SLOWER
        while True:
            event = self.lines.get(timeout=max(0, deadline - time.monotonic()))
            self.seen.append(event)
            if what(event):
                return event


@contextlib.contextmanager
def followed(running):
    following = Followed(running)
    try:
        yield following
    finally:
        following.process.terminate()
        following.reader.join()
        following.process.wait()


def is_port_event(name, port="a"):
    return lambda event: (event["event"], event["port"]) == (name, port)


def is_change(before, after, reason, port="a"):
    return lambda event: event["event"] == "flow" and (
        event["before"], event["after"], event["reason"], event["port"]) == (
            before, after, reason, port)


def test_events_as_they_come(started):
    """A NIC stops marking and begins again: its flows, the breaker, and the way back."""
    running = started("flows=40,hostile=0", *AT_ONCE)
    telemetry = Telemetry(running)
    with followed(running) as events:
        proven = events.until(is_change("in_hw", "in_hw", "busy"))
        assert proven["proven"] is True
        every_flow(running, 40, in_hw)
        telemetry("/flowsim/fault,0:stop_mark")
        gone = events.until(is_change("suspect", "leaving", "unmarked"))
        assert gone["because"] == "packets came without the mark"
        opened = events.until(is_port_event("breaker_open"))
        assert opened["because"].startswith("the port is put to software: ")
        assert opened["reason"] in ("unmarked", "unseen")
        telemetry("/flowsim/fault,0:stop_mark:off")
        events.until(is_port_event("breaker_tries"))
        events.until(is_port_event("breaker_closed"))
    # those of workers and those of ports come in the order of their times, as far as both are known
    assert any(map(is_change("queued", "installing", "canary"), events.seen))
    every_flow(running, 40, in_hw)
    assert shown(running, "a")["fell_out"]["unmarked"] >= 8
    assert shown(running, "b")["fell_out"] == {}
    # those that are remembered are the same for who comes later
    names = {json.loads(line)["event"]
             for line in running.client("offload", "events", "--json").splitlines()}
    assert "flow" in names
    running.stop(idle=False)


@pytest.mark.parametrize("words", ["async=0", "async=1"])
@pytest.mark.parametrize("fault", [
    "stall_delete:ms=4000", "late:ms=4000", "fail:op=destroy"])
def test_a_flow_that_waits_behind_its_older_rule(started, words, fault):
    """Ended while the NIC has it, and begun anew: what it waits for is told, in words and numbers."""
    running = started(f"flows=4,hostile=0,{words}", *AT_ONCE)
    one = every_flow(running, 4, in_hw)[0]
    telemetry = Telemetry(running)
    telemetry(f"/flowsim/fault,0:{fault}")
    name = {key: one[key] for key in ("src", "sport", "dst", "dport", "proto", "wire", "zone")}
    running.ask("flow kill", **name)

    def waits():
        (answer,) = running.ask("flow explain", **name)
        side = at(answer, "a")
        return answer if side["reason"] == "older_rule" and side["older_for_us"] > 300000 else None

    answer = running.until(waits, "it waits behind the older rule")
    side = at(answer, "a")
    assert side["state"] in ("installing", "in_hw") and not side.get("proven"), side
    assert side["because"].startswith(
        "it waits behind an older rule of the same addresses and ports, which was to go "), side
    assert side["because"].endswith(" ago and is not confirmed to be gone"), side
    # it has waited for that rule since it began
    (gone,) = [change for change in answer["changes"] if change["port"] == "a" and
               change["after"] == "leaving" and change["reason"] == "ended"]
    assert side["older_since"] == gone["time"]
    (checked,) = [line for line in running.ask("offload check", **name) if line["port"] == "a"]
    assert checked["now"]["reason"] == "older_rule"
    assert "waits behind an older rule" in running.client(
        "flow", "explain", f"{one['src']}:{one['sport']}", f"{one['dst']}:{one['dport']}",
        str(one["proto"])).replace("\n", " ").replace("  ", "")
    telemetry(f"/flowsim/fault,0:{fault.split(':')[0]}:off")
    every_flow(running, 4, lambda answer: in_hw(answer) and at(answer, "a")["reason"] == "busy")
    running.stop(idle=False)


def test_one_flow_falls_out(started):
    """All others stay, and nothing is held against the port."""
    running = started("flows=40,hostile=0", *AT_ONCE)
    mark = every_flow(running, 40, in_hw)[0]["mark"]
    with followed(running) as events:
        Telemetry(running)(f"/flowsim/fault,0:stop_mark:mark={mark}")
        gone = events.until(is_change("suspect", "leaving", "unmarked"))
    for answer in every_flow(running, 40, lambda answer: True):
        ends = {(answer["src"], answer["sport"]), (answer["dst"], answer["dport"])}
        is_it = ends == {(gone["src"], gone["sport"]), (gone["dst"], gone["dport"])}
        assert is_it == any(change["reason"] == "unmarked" for change in answer["changes"])
    assert shown(running, "a")["health"] == {"state": "closed", "opened": 0}
    running.stop(idle=False)


def test_a_dead_nic_says_what_helps(started):
    """Where nobody allowed that: whoever looks, and whoever reads standard error, is told of it."""
    running = started("flows=40,hostile=0", *AT_ONCE)
    helps = "a restart of the port may help (--offload-restart yes)"
    every_flow(running, 40, in_hw)
    Telemetry(running)("/flowsim/fault,0:dead")
    running.until(lambda: helps in shown(running, "a")["health"].get("because", ""), "a way out")
    running.until(lambda: helps in running.stderr, "a way out on standard error")
    running.until(lambda: "a: its NIC is tried with a few flows" in running.stderr, "a try")
    running.stop(idle=False)


def test_rules_that_may_be_left(started):
    """They are told at the end, with their number; where all went nothing is."""
    running = started("flows=40,async=0,hostile=0", *AT_ONCE)
    every_flow(running, 40, in_hw)
    Telemetry(running)("/flowsim/fault,0:fail:op=destroy")
    running.stop(idle=False)
    told = [line for line in running.stderr.splitlines() if "may still be in" in line]
    assert told == ["millrace: a: 40 rules may still be in its NIC"]


def test_a_dead_nic_is_restarted(started):
    """If that is allowed. What it costs is counted, and all come back."""
    running = started("flows=40,hostile=0", "--offload-restart", "yes", *AT_ONCE)
    every_flow(running, 40, in_hw)
    with followed(running) as events:
        Telemetry(running)("/flowsim/fault,0:dead")
        events.until(is_port_event("breaker_open"))
        reset = events.until(is_port_event("reset"))
        assert reset["because"] == "the port was stopped and started; its rules are gone"
        events.until(is_port_event("breaker_closed"))
    every_flow(running, 40, in_hw)
    assert shown(running, "a")["rules"] == 40
    assert set(running.drops()) <= {"output"}
    running.stop(idle=False)


def test_ghosts_are_told(started):
    """Rules of an earlier run mark packets, and this run believes none of them."""
    running = started("flows=8,hostile=0,fault=ghost:rules=8", "--offload-threshold", 1000000000,
                      b="flows=8")
    with followed(running) as events:
        ghost = events.until(is_port_event("ghost"))
        assert "marks that this run never gave" in ghost["because"]
    for answer in every_flow(running, 8, lambda answer: True):
        assert answer["marked_packets"] == 0
    port = shown(running, "a")
    assert port["strangers"] >= port["ghosts"] > 0
    assert shown(running, "b")["ghosts"] == 0
    running.stop(idle=False)


def test_lists_by_state(started):
    """Each state's list has those flows of the whole list that say so, and no others."""
    running = started("flows=64,profile=cx5,proto=mix,passes=20000", *AT_ONCE)
    running.until(lambda: running.wire()["received"] >= 2 * 64 * 20000, "all packets", timeout=90)
    whole = {engine.flow_key(flow): flow["offload"]["state"] for flow in running.flows()}
    assert len(whole) == 64
    found = {}
    for state in STATES:
        flows = [json.loads(line) for line in running.client(
            "flow", "list", "--offload", state, "--json").splitlines()]
        assert {flow["offload"]["state"] for flow in flows} <= {state}
        found |= {engine.flow_key(flow): state for flow in flows}
    assert found == whole
    # what this NIC takes no rules for is there, too
    assert {"software"} <= set(found.values())
    running.stop()


# ----------------------------------------------------------------------------------- misused


def test_questions_that_make_no_sense(started):
    running = started("flows=8,passes=10")
    running.until(lambda: running.wire()["received"] == 160, "all packets")
    for words, code, said in (
            (("flow", "list", "--offload", "in_hww"), 2, "--offload in_hww"),
            (("flow", "list", "--offload", ""), 2, "--offload"),
            (("flow", "explain", "10.1.1.1:1", "10.2.2.2:2", "udp"), 1, "no such flow"),
            (("flow", "explain", "10.1.1.1:1", "10.2.2.2:2"), 2, "flow explain"),
            (("offload", "show", "a"), 2, "one word too many"),
            (("offload", "events", "--folow"), 2, "did you mean --follow?"),
            (("offload", "list"), 2, "list")):
        error = running.client(*words, code=code)
        assert said in error and error.count("\n") == 1, error
    running.connection.send("flow list", offload="in_hww")
    end = running.connection.next()
    assert end["end"] and "did you mean in_hw?" in end["error"], end
    running.stop()


@pytest.mark.parametrize("words, said", [
    (("--offload", "maybe"), "maybe"),
    (("--offload-mode", "whole"), "whole"),
    (("--offload-threshold", "-1"), "threshold"),
    (("--offload-threshold", "1000000001"), "threshold"),
    (("--offload-slots", "0"), "slots"),
    (("--offload-slots", "2097153"), "slots"),
    (("--offload-counters", "2"), "counters"),
    (("--offload-except", "c"), "c"),
    (("--offload-except", "a,a"), "a"),
])
def test_settings_that_make_no_sense(words, said):
    code, error = refusal(*ports("flows=8"), *words)
    assert code in (1, 2) and said in error and error.count("\n") == 1, error
