# SPDX-License-Identifier: BSD-3-Clause
"""Another list of rules while flows are in the NIC: what it forbids is out of the NIC when the answer comes, or that is told."""
import contextlib

import pytest

from simulated import Telemetry, ports
from test_rule_load import followed

import engine

pytestmark = pytest.mark.usefixtures("simulated_nic")

FLOWS = 8
MORE = 500
OPEN = "flow create 0 transfer pattern eth / end actions count / end\n"


@contextlib.contextmanager
def offloading(tmp_path, mode, proto, words="profile=cx5"):
    """An engine of whose NIC all flows are, with their packets endless, and a list of no rule that forbids one."""
    (tmp_path / "open").write_text(OPEN)
    running = engine.Millrace(
        tmp_path / "engine", *ports(f"flows={FLOWS},side=forward,proto={proto},{words},nic=n",
                                    f"flows={FLOWS},side=reverse,proto={proto},{words},nic=n"),
        "--offload-mode", mode, "--offload-threshold", 500, "--offload-rules-in-nic", "off", "--telemetry",
        "--rules", tmp_path / "open")
    try:
        all_in(running, mode)
        yield running
        running.stop(idle=False)
    finally:
        running.kill()


def all_in(running, mode):
    def look():
        told = [flow["offload"] for flow in running.flows()]
        return len(told) == FLOWS and all(each["state"] == "in_hw" and each.get("how", "mark") == mode for each in told)
    running.until(look, f"the NIC has all flows by {mode}")


def forbid(tmp_path, running, actions):
    """The sources of one flow in two, and a list that forbids these in both directions."""
    sources = sorted({flow["src"] for flow in running.flows()})[::2]
    (tmp_path / "list").write_text("".join(
        f"flow create 0 transfer pattern eth / ipv4 {end} is {source} / end actions {actions} / end\n"
        for source in sources for end in ("src", "dst")) + OPEN)
    return sources, str(tmp_path / "list")


def sums(running, sources, key):
    """The packets of the flows of these sources, in both directions."""
    return {flow["src"]: flow.get(key, 0) + flow.get(f"reverse_{key}", 0)
            for flow in running.flows() if flow["src"] in sources}


def check_forbidden(running, sources):
    """No packet of theirs passes any more, each is counted, and those of all others pass."""
    packets = sums(running, sources, "packets")
    dropped = sums(running, sources, "rule_dropped_packets")
    others = {flow["src"] for flow in running.flows()} - set(sources)
    passed = sums(running, others, "packets")
    assert len(packets) == FLOWS / 2
    running.until(lambda: all(now > dropped[source] + MORE for source, now in sums(
        running, sources, "rule_dropped_packets").items()), "they are dropped")
    running.until(lambda: all(now > passed[source] + MORE for source, now in sums(
        running, others, "packets").items()), "others pass")
    assert sums(running, sources, "packets") == packets
    assert not any(sums(running, others, "rule_dropped_packets").values())


def answered(running):
    wire = running.wire()
    return sum(wire[key] for key in ("reject_replies", "reject_limited", "reject_unanswered"))


@pytest.mark.parametrize("mode", ["full", "mark"])
@pytest.mark.parametrize("proto", ["udp", "tcp"])
@pytest.mark.parametrize("actions", ["drop", "reject"])
def test_out_of_the_nic(tmp_path, mode, proto, actions):
    """With the answer of the load; a rejected flow is software's then, and its senders are told by RST or ICMP."""
    with offloading(tmp_path, mode, proto) as running:
        sources, path = forbid(tmp_path, running, actions)
        assert "NICs had let go the old ones" in running.client("rule", "load", path)
        check_forbidden(running, sources)
        if actions == "reject":
            before = answered(running)
            running.until(lambda: answered(running) > before + MORE, "senders are told, or would be")
            assert running.wire()["reject_replies"] > 0
            told = {flow["src"]: flow["offload"] for flow in running.flows()}
            assert {told[source]["state"] for source in sources} == {"software"}
            assert {told[source]["reason"] for source in sources} == {"rejected"}
        # and back: they pass, and are in the NIC again
        running.client("rule", "load", str(tmp_path / "open"))
        before = sums(running, sources, "packets")
        running.until(lambda: all(now > before[source] + MORE for source, now in sums(
            running, sources, "packets").items()), "they pass again")
        all_in(running, mode)


@pytest.mark.parametrize("actions", ["drop", "reject"])
@pytest.mark.parametrize("mode, words, fault", [
    ("full", "profile=cx5", "stall_delete:ms=150"),
    ("full", "profile=cx5", "late:ms=150"),
    ("full", "profile=cx5", "dead"),
    ("mark", "profile=cx5", "stall_delete:ms=150"),
    ("mark", "profile=x710", "fail:op=destroy"),
    ("mark", "profile=cx6-hws", "drop_completion"),
])
def test_a_nic_with_faults(tmp_path, mode, words, fault, actions):
    """However it answers: with success nothing forbidden passes. A rule that only marks brings packets to software, which drops
    them, so that no such rule is waited for. Of a dead one nobody knows that its rules are gone."""
    with offloading(tmp_path, mode, "udp", words) as running:
        sources, path = forbid(tmp_path, running, actions)
        telemetry = Telemetry(running)
        for port in (0, 1):
            telemetry(f"/flowsim/fault,{port}:{fault}")
        with followed(running) as events:
            said = running.client("rule", "load", path, code=int(fault == "dead"))
            if fault == "dead":
                assert "policy_not_in_nic" in said and events.until("policy_not_in_nic")["flows"] > 0
            elif mode == "full":
                assert events.until("policy_applied")["took_us"] >= 150000
        check_forbidden(running, sources)


@pytest.mark.parametrize("actions", ["drop", "reject"])
def test_a_nic_that_does_not_let_go(tmp_path, actions):
    """It is told, and what it still brings to software is dropped there and counted, until it does let go."""
    with offloading(tmp_path, "full", "udp") as running:
        sources, path = forbid(tmp_path, running, actions)
        telemetry = Telemetry(running)
        telemetry("/flowsim/fault,0:fail:op=destroy")
        with followed(running) as events:
            assert "policy_not_in_nic" in running.client("rule", "load", path, code=1)
            told = events.until("policy_not_in_nic")
            assert told["flows"] == FLOWS / 2
            # the other port has let go: these packets are software's
            dropped = sums(running, sources, "rule_dropped_packets")
            running.until(lambda: all(now > dropped[source] + MORE for source, now in sums(
                running, sources, "rule_dropped_packets").items()), "they are dropped")
            assert running.ask("rule status")[0]["state"] == "not_in_nic"
            telemetry("/flowsim/fault,0:fail:off")
            events.until("policy_applied")
        check_forbidden(running, sources)
