# SPDX-License-Identifier: BSD-3-Clause
"""Another list of rules in place of the one in force, while packets flow: all or nothing, and never a mixture."""
import contextlib
import json
import signal
import subprocess
import time

import pytest

import frames
from conftest import MILLRACE, SLOWER, engine
from simulated import Telemetry, ports

pytestmark = pytest.mark.usefixtures("simulated_nic")


def rule(pattern, actions="drop", attributes="ingress"):
    return f"flow create 0 {attributes} pattern {pattern} / end actions {actions} / end"


DNS, WEB, SSH = (rule(f"eth / ipv4 / udp dst is {port}") for port in (53, 80, 22))


@pytest.fixture(name="lists")
def write_lists(tmp_path):
    """lists(name, line...): the path of a file with these lines."""
    def write(name, *lines):
        path = tmp_path / name
        path.write_text("".join(f"{line}\n" for line in lines))
        return path
    return write


@pytest.fixture(name="frames_of_three")
def write_frames(tmp_path):
    """One packet each of DNS, the web and SSH."""
    return frames.write(tmp_path / "three.pcap", *(
        frames.udp(0, "10.0.0.1", 1000, "10.0.0.2", port) for port in (53, 80, 22)))


def in_force(running):
    return [line["rule"] for line in running.ask("rule list")]


def status(running):
    return running.ask("rule status")[0]


class Events:
    """What happens, as a follower hears of it; flows apart."""

    def __init__(self, running):
        self.connection = engine.Connection(running.socket)
        self.connection.send("event follow", flows=False)
        # the engine follows from the next answer on
        running.ask("config show")

    def until(self, name):
        while (event := self.connection.next())["event"] != name:
            pass
        return event


@contextlib.contextmanager
def followed(running):
    events = Events(running)
    try:
        yield events
    finally:
        events.connection.close()


def test_what_stands_in_both_stays(started, lists, frames_of_three):
    """Rules of both lists keep number and counts; the others come and go; what would change is told before."""
    running = started(f"capture={frames_of_three},passes=10", "--offload-rules-in-nic", "off",
                      "--rules", lists("first", DNS, WEB))
    running.until(lambda: running.wire()["received"] == 30, "all packets")
    second = lists("second", "# another one", WEB, SSH)
    assert running.client("rule", "diff", str(second)) == (
        f"- {DNS}\n+ {SSH}\n1 added, 1 removed, 0 moved, 1 unchanged\n")
    assert in_force(running) == [DNS, WEB] and status(running)["epoch"] == 1
    with followed(running) as events:
        text = running.client("rule", "load", str(second))
        loaded, applied = events.until("policy_loaded"), events.until("policy_applied")
    assert text.startswith("epoch 2 is in force: rules 1 added, 1 removed, 0 moved, 1 unchanged\n")
    assert "all live flows were decided by them after " in text
    assert {key: loaded[key] for key in ("epoch", "added", "removed", "moved", "unchanged", "file")} == {
        "epoch": 2, "added": 1, "removed": 1, "moved": 0, "unchanged": 1, "file": str(second)}
    assert applied["epoch"] == 2 and 0 < applied["flows_us"] <= applied["took_us"]
    told = {line["rule"]: line for line in running.ask("rule list")}
    assert {text: (line["number"], line["packets"], line["line"], line["epoch"]) for text, line in told.items()} == {
        WEB: (1, 10, 2, 1), SSH: (2, 0, 3, 2)}
    assert status(running)["state"] == "applied" and status(running)["before"] == 2
    # in another order nothing is new, and one of them is moved
    assert running.client("rule", "diff", str(lists("turned", SSH, WEB))).endswith(
        "0 added, 0 removed, 1 moved, 1 unchanged\n")
    running.stop(leaves=["records.json"])


@pytest.mark.parametrize("name, lines, error", [
    ("syntax", [WEB, "flow create 0 ingress pattern eth / ipv5 / end actions drop / end"],
     "{path}:2:37: ipv5: a pattern item is needed here; did you mean ipv4?"),
    ("port", [WEB, rule("eth").replace("create 0", "create 7")], "{path}:2:13: port 7: "),
    ("set", [rule("eth / ipv4 from_set is nobody")], "{path}:1:37: field 'from_set' of item 'ipv4': there is no set 'nobody'"),
    ("command", [WEB, "flow flush 0"], "{path}:2:1: a list of rules has only lines of flow create"),
    ("many", [rule(f"eth / ipv4 src is 10.0.0.{i}") for i in range(5)],
     "rule load: no room: the list has 5 rules, and there can be 4 (rules.max)"),
    ("long", [WEB, rule("eth" + " / ipv4" * 2000)], "{path}:2:"),
    ("bytes", [WEB, "\0\1"], "{path}:2:"),
    ("missing", None, "{path}: No such file or directory"),
    ("directory", "", "{path}: Is a directory"),
])
def test_a_wrong_file_changes_nothing(started, lists, tmp_path, name, lines, error):
    """The line and column that is wrong are told, or why the file cannot be read; rules, counts and epoch stay."""
    running = started("source=none", "--rules", lists("first", DNS, WEB), "--rules-max", 4, "--offload", "off")
    before = running.ask("rule list")
    path = tmp_path / name
    if lines == "":
        path.mkdir()
    elif lines is not None:
        path = lists(name, *lines)
    for verb in ("load", "diff"):
        if name == "many" and verb == "diff":
            continue
        said = running.client("rule", verb, str(path), code=1)
        assert said.startswith("millrace: " + error.format(path=path)), said
    assert running.ask("rule list") == before and status(running)["epoch"] == 1
    # and the next right one comes in force
    running.client("rule", "load", str(lists("right", WEB)))
    assert in_force(running) == [WEB]
    running.stop(leaves=["records.json"])


def test_from_standard_input(started):
    """Comments may have any bytes; an empty list removes all."""
    running = started("source=none")
    for text, rules in ((f"# caf\u00e9\n{WEB} # \u00fc\n", [WEB]), ("", [])):
        done = subprocess.run([MILLRACE, "rule", "load", "-", "--socket", running.socket], input=text.encode("latin-1"),
                              capture_output=True, timeout=30 * SLOWER, check=False)
        assert done.returncode == 0, done.stderr
        assert in_force(running) == rules
    running.stop(leaves=["records.json"])


def test_unless_it_is_confirmed(started, lists):
    """It goes back by itself; until then no other list is loaded. Confirmed, it stays."""
    running = started("source=none", "--rules", lists("first", DNS))
    second = lists("second", WEB)
    with followed(running) as events:
        assert "within 1 s" in running.client("rule", "load", str(second), "--confirm", "1")
        assert in_force(running) == [WEB] and status(running)["confirm"] == 1
        assert "wait for rule confirm" in running.client("rule", "load", str(second), code=1)
        back = events.until("policy_rollback")
        assert back["why"] == "not confirmed" and back["epoch"] == 3
        assert in_force(running) == [DNS]
        running.client("rule", "load", str(second), "--confirm", "2")
        assert running.client("rule", "confirm") == "epoch 4 stays in force\n"
        events.until("policy_confirmed")
        assert "confirm" not in status(running)
        assert "no list of rules waits" in running.client("rule", "confirm", code=1)
        # or somebody does not want to wait
        running.client("rule", "load", str(lists("third", SSH)), "--confirm", "600", "--no-wait")
        running.client("rule", "rollback")
        assert events.until("policy_rollback")["why"] == "asked for"
    assert in_force(running) == [WEB] and status(running)["epoch"] == 6
    assert "there is no list to go back to" in running.client("rule", "rollback", code=1)
    assert "not confirmed" in running.stderr
    running.stop(leaves=["records.json"])


def test_sighup_reads_the_file_again(started, lists):
    """The engine's own file, with what stands in the configuration; what is wrong is told, and changes nothing."""
    path = lists("rules", DNS)
    running = started("source=none", "--rules", path)
    running.ask("rule add", rule=SSH)
    lists("rules", WEB, DNS)
    with followed(running) as events:
        running.send_signal(signal.SIGHUP)
        assert events.until("policy_applied")["epoch"] == 2
    assert sorted(in_force(running)) == sorted([WEB, DNS])
    running.until(lambda: "the rules were read again" in running.stderr, "it is told")
    lists("rules", WEB, "flow create 0 ingress pattern eth / end actions dropp / end")
    running.send_signal(signal.SIGHUP)
    running.until(lambda: f"the rules stay as they are: {path}:2:49: dropp" in running.stderr, "it is told")
    assert sorted(in_force(running)) == sorted([WEB, DNS]) and status(running)["epoch"] == 2
    path.unlink()
    running.send_signal(signal.SIGHUP)
    running.until(lambda: f"the rules stay as they are: {path}: No such file" in running.stderr, "it is told")
    running.stop(leaves=["records.json"])


def test_killed_in_the_middle(started, lists, tmp_path):
    """Nothing writes the file of a list: whatever becomes of the engine, it is as it was."""
    path = lists("rules", *(rule(f"eth / ipv4 src is 10.{i >> 8}.{i & 255}.1") for i in range(4000)))
    before = path.read_bytes()
    for pause in (0, 0.01, 0.03):
        running = started("source=none", "--rules", path)
        with subprocess.Popen([MILLRACE, "rule", "load", path, "--socket", running.socket],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as client:
            time.sleep(pause)
            running.kill()
            client.wait(30 * SLOWER)
        assert path.read_bytes() == before
        for left in (tmp_path / "engine").iterdir():
            left.unlink() if not left.is_dir() else None
    running = started("source=none", "--rules", path)
    assert len(in_force(running)) == 4000
    running.stop(leaves=["records.json"])


def test_the_nic_has_let_go(started, lists, frames_of_three):
    """When the answer comes nothing is dropped by the list before; what stands in both stays in the NIC."""
    running = started(f"capture={frames_of_three},pace=20000", "--rules", lists("first", DNS, WEB))
    running.until(lambda: {line["where"] for line in running.ask("rule list")} == {"nic"}, "the NIC has them")
    running.until(lambda: running.wire()["nic_dropped"] > 1000, "and drops by them")
    running.client("rule", "load", str(lists("second", WEB)))
    told = running.ask("rule list")[0]
    assert told["where"] == "nic" and told["nic_packets"] > 0
    running.until(lambda: 53 in {flow["dport"] for flow in running.flows()}, "DNS passes")
    running.client("rule", "load", str(lists("third")))
    dropped = running.wire()["nic_dropped"]
    before = running.wire()["out"]
    running.until(lambda: running.wire()["out"] > before + 1000, "packets pass")
    assert running.wire()["nic_dropped"] == dropped
    running.stop(leaves=["records.json"], idle=False)


def test_a_nic_that_does_not_let_go(started, lists, frames_of_three):
    """It is told, by the answer and by an event, and the list is in force in software all the same."""
    running = started(f"capture={frames_of_three},pace=20000", "--telemetry", "--rules", lists("first", DNS))
    running.until(lambda: running.ask("rule list")[0]["where"] == "nic", "the NIC has it")
    telemetry = Telemetry(running)
    telemetry("/flowsim/fault,0:fail:op=destroy")
    with followed(running) as events:
        said = running.client("rule", "load", str(lists("second", SSH)), code=1)
        assert "in force in software as epoch 2" in said and "policy_not_in_nic" in said
        told = events.until("policy_not_in_nic")
        assert told["epoch"] == 2 and told["rules"] == 1
        assert in_force(running) == [SSH] and status(running)["state"] == "not_in_nic"
        telemetry("/flowsim/fault,0:fail:off")
        assert events.until("policy_applied")["epoch"] == 2
    assert status(running)["state"] == "applied"
    running.stop(leaves=["records.json"], idle=False)


@pytest.mark.parametrize("fault", [None, "fail:op=destroy"])
def test_flows_that_the_nic_forwards(tmp_path, lists, fault):
    """A flow that the new list drops is out of the NIC when the answer comes; or that it is not is told, and how many are not."""
    flows = 8
    running = engine.Millrace(
        tmp_path / "engine", *ports(f"flows={flows},side=forward,profile=cx5,nic=n", f"flows={flows},side=reverse,nic=n"),
        "--offload-mode", "full", "--offload-threshold", 500, "--offload-rules-in-nic", "off", "--telemetry")
    try:
        running.until(lambda: [flow["offload"].get("how") for flow in running.flows()] == ["full"] * flows,
                      "the NIC forwards them")
        if fault:
            Telemetry(running)(f"/flowsim/fault,0:{fault}")
            Telemetry(running)(f"/flowsim/fault,1:{fault}")
        # of half of the flows
        sources = sorted({flow["src"] for flow in running.flows()})
        path = lists("none", *(rule(f"eth / ipv4 {end} is {source}", attributes="transfer")
                               for source in sources[::2] for end in ("src", "dst")))
        with followed(running) as events:
            said = running.client("rule", "load", str(path), code=1 if fault else 0)
            if fault:
                assert events.until("policy_not_in_nic")["flows"] > 0 and "policy_not_in_nic" in said
        if not fault:
            # it may drop them itself by now
            def of_forbidden(key):
                return {flow["src"]: flow.get(key, 0) for flow in running.flows() if flow["src"] in sources[::2]}

            packets, dropped = of_forbidden("packets"), of_forbidden("rule_dropped_packets")
            running.until(lambda: all(now > before + 1000 for now, before in zip(
                of_forbidden("rule_dropped_packets").values(), dropped.values())), "they are dropped")
            assert packets and of_forbidden("packets") == packets
        running.stop(idle=False)
    finally:
        running.kill()


# Flows of three kinds, told apart by the address that they go to: both lists let the first through, each by a rule of its
# own; both drop the second, each by a rule of its own; of the third they differ. Both drop the fourth: the rule of one list
# that lets it through is in a group that only a rule of the other one jumps to.
KINDS = ("10.1.0.1", "10.2.0.1", "10.3.0.1", "10.4.0.1")
FILLERS = 300


def policy(which):
    """Lists that have no rule in common."""
    allowed, forbidden, third, fourth = KINDS
    other = f"10.{100 + which}"
    return [
        *(rule(f"eth / ipv4 dst is {other}.{i >> 8}.{i & 255}") for i in range(FILLERS)),
        rule(f"eth / ipv4 dst is {allowed}" + (" / udp dst is 7" if which else ""), "mark id 1"),
        rule(f"eth / ipv4 dst is {forbidden}" + (" / udp" if which else "")),
        *([rule(f"eth / ipv4 dst is {fourth}", "jump group 1"),
           rule(f"eth / ipv4 dst is {fourth}", attributes="group 1 priority 5 ingress")] if which else
          [rule(f"eth / ipv4 dst is {fourth}", "mark id 4", "group 1 ingress"),
           rule(f"eth / ipv4 dst is {fourth}", attributes="priority 2 ingress"),
           rule(f"eth / ipv4 dst is {third}", "mark id 3")]),
        rule("eth / ipv4 dst spec 10.0.0.0 dst prefix " + ("8" if which else "14")),
    ]


@pytest.mark.parametrize("in_nic", ["off", "drop"])
@pytest.mark.parametrize("workers", [1, 2])
def test_never_half_a_policy(started, lists, tmp_path, in_nic, workers):
    """Two lists take turns each 200 ms under traffic of new and live flows: nothing is dropped that both allow, nothing
    passes that both forbid."""
    flows, passes, busy = 6000, 3, 40
    packets = []
    for i in range(flows):
        packets.append(frames.udp(0, f"10.9.{i >> 8}.{i & 255}", 1000 + i % 7, KINDS[i % 4], 7))
        if i % 10 == 0:
            packets.append(frames.udp(0, f"10.8.0.{i // 10 % busy}", 9, KINDS[i // 10 % 4], 7))
    capture = frames.write(tmp_path / "kinds.pcap", *packets, in_order=False)
    paths = [lists(f"list{which}", *policy(which)) for which in (0, 1)]
    running = started(f"capture={capture},passes={passes},pace=4000", "--rules", paths[0], "--workers", workers,
                      "--offload-rules-in-nic", in_nic)
    total, turns = passes * len(packets), 0

    def arrived():
        wire = running.wire()
        return wire["received"] + wire["nic_dropped"]

    while arrived() < total:
        turns += 1
        begun = time.monotonic()
        text = running.client("rule", "load", str(paths[turns % 2]))
        assert f"{FILLERS + 6 - turns % 2} added, {FILLERS + 5 + turns % 2} removed, 0 moved, 0 unchanged" in text
        running.until(lambda: time.monotonic() - begun >= 0.2 or arrived() == total, "the next turn")  # pylint: disable=cell-var-from-loop
    assert turns >= 8
    running.idle()
    running.stop(leaves=["records.json"])
    seen = {kind: [0, 0] for kind in KINDS}
    for line in (running.directory / "records.json").read_text().splitlines():
        record = json.loads(line)
        kind = record["dst"] if record["dst"] in seen else record["src"]
        seen[kind][0] += record["packets"] + record["reverse_packets"]
        seen[kind][1] += record.get("rule_dropped_packets", 0)
    allowed, forbidden, third, fourth = (seen[kind] for kind in KINDS)
    assert allowed == [total // 4, 0]
    assert forbidden[0] == fourth[0] == 0 and third[0] > 0
    if in_nic == "off":
        assert forbidden[1] == fourth[1] == total // 4 and third[1] > 0 and sum(third) == total // 4


def test_a_byte_order_mark_says_nothing(started, tmp_path):
    """Files of some editors begin with one; half of one is an error."""
    running = started("source=none", "--offload", "off")
    (tmp_path / "good").write_bytes(b"\xef\xbb\xbf" + WEB.encode() + b"\n")
    running.client("rule", "load", str(tmp_path / "good"))
    assert [told["rule"] for told in running.ask("rule list")] == [WEB]
    (tmp_path / "bad").write_bytes(b"\xef\xbb" + DNS.encode() + b"\n")
    assert f"{tmp_path}/bad:1:1: " in running.client("rule", "load", str(tmp_path / "bad"), code=1)
    assert [told["rule"] for told in running.ask("rule list")] == [WEB]
    running.stop(leaves=["records.json"])
