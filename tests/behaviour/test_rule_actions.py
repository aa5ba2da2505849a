# SPDX-License-Identifier: BSD-3-Clause
"""Actions of rules that share something, or change how long a flow lives: every packet is known in advance."""
import json

import pytest

import frames
from conftest import run
from test_rules_run import add, refused, rule, write_rounds  # noqa: F401  # pylint: disable=unused-import

METER = """\
add port meter profile srtcm_rfc2697 0 1 {rate} {burst} 0 {packets}
add port meter policy 0 1 g_actions end y_actions color type yellow / end r_actions drop / end
create port meter 0 5 1 1 yes 0 yes
"""


def metered(rate, burst, packets=1):
    return METER.format(rate=rate, burst=burst, packets=packets)


def passes(times_ms, rate, burst):
    """How many packets pass, one at each time: a bucket that gets one every 1000 / rate ms."""
    left, stepped, passed = burst, 0, []
    for time in times_ms:
        steps = time * rate // 1000
        left, stepped = min(burst, left + steps - stepped), steps
        passed.append(left > 0)
        left -= left > 0
    return passed


def write_two_flows(path):
    """400 packets of two flows, in 4 s; and 40 of another that has no meter."""
    packets = [(10 * i, frames.udp(i / 100, "10.0.0.1", 1000 + i % 3 // 2, "10.0.0.2", 53))
               for i in range(400)]
    frames.write(path, [packet for _, packet in packets],
                 [frames.udp(i / 10, "10.0.0.1", 7, "10.0.0.2", 80) for i in range(40)])
    return [time for time, _ in packets]


def test_meter_in_replay(replay, tmp_path):
    """By the capture's clock, of all flows of its rules together; each drop is in a record, and nothing else is."""
    times = write_two_flows(tmp_path / "two.pcap")
    (tmp_path / "rules").write_text(
        metered(10, 5) + rule("ipv4 / udp dst is 53", "meter mtr_id 5") + "\n" +
        rule("ipv4 src is 10.0.0.1", "mark id 3"))
    result = replay("--rules", tmp_path / "rules", tmp_path / "two.pcap")
    passed = passes(times, 10, 5)
    assert 40 < sum(passed) < 50
    dropped = len(times) - sum(passed)
    assert {why: n for why, n in result.summary["dropped"].items() if n} == {"meter": dropped}
    told = {record["sport"]: record for record in result.records}
    for sport, among in ((1000, (0, 1)), (1001, (2,))):
        mine = [ok for i, ok in enumerate(passed) if i % 3 in among]
        assert told[sport]["packets"] == sum(mine)
        assert told[sport]["rule_dropped_packets"] == len(mine) - sum(mine)
        assert told[sport]["rule_dropped_bytes"] == 62 * (len(mine) - sum(mine))
    assert told[7]["packets"] == 40 and "rule_dropped_packets" not in told[7]


def test_meter_of_each_capture(replay, tmp_path):
    """Each capture has a clock of its own, and so each has the burst."""
    frames.write(tmp_path / "a.pcap", [frames.udp(i, "10.0.0.1", 1, "10.0.0.2", 53) for i in (0, 0, 0)])
    (tmp_path / "rules").write_text(metered(1, 2) + rule("ipv4", "meter mtr_id 5"))
    result = replay("--rules", tmp_path / "rules", tmp_path / "a.pcap", tmp_path / "a.pcap")
    assert result.summary["dropped"]["meter"] == 2


@pytest.mark.usefixtures("simulated_nic")
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("pattern", ["ipv4 / udp", "ipv4 ttl is 64 / udp"], ids=["flow", "packet"])
def test_meter_of_all_workers(started, tmp_path, workers, pattern):
    """The burst passes and not a packet more, whichever workers the flows belong to."""
    flows, rounds, burst = 64, 40, 333
    path = frames.write(tmp_path / "many.pcap", [
        frames.udp(0, "10.0.0.1", 1000 + i, "10.0.0.2", 53) for i in range(flows)])
    # a byte a second: no frame's worth comes while the test runs
    (tmp_path / "rules").write_text(metered(1, 62 * burst, packets=0) + rule(pattern, "meter mtr_id 5"))
    running = started(f"capture={path},passes={rounds}", "--workers", workers,
                      "--rules", tmp_path / "rules")
    running.until(lambda: running.wire()["received"] == flows * rounds, "all packets")
    assert running.idle()["dropped"] == flows * rounds - burst
    assert running.drops() == {"meter": flows * rounds - burst}
    (told,) = running.ask("rule list")
    assert (told["packets"], told["bytes"]) == (flows * rounds, 62 * flows * rounds)
    assert told["rule"].endswith("actions meter mtr_id 5 / end")
    records = running.ask("flow list")
    assert sum(record["packets"] for record in records) == burst
    assert sum(record["rule_dropped_packets"] for record in records if "rule_dropped_packets" in record) == \
        flows * rounds - burst
    running.stop(leaves=["records.json"])


@pytest.mark.usefixtures("simulated_nic")
def test_meter_commands(started):
    """What is used stays; what is not understood is refused with its word."""
    running = started("source=none")
    profile, policy, meter = metered(10, 5).splitlines()
    line = rule("ipv4", "meter mtr_id 5")
    assert refused(running, "rule add", rule=line) == (
        "rule add: column 50: action 'meter': there is no meter 5 of port 0 (create port meter)", 2)
    assert refused(running, "rule add", rule=meter) == (
        "rule add: column 1: there is no meter profile 1 of port 0", 1)
    assert add(running, profile) == ["meter profile 1 of port 0 created"]
    assert add(running, policy) == ["meter policy 1 of port 0 created"]
    assert add(running, meter) == ["meter 5 of port 0 created"]
    assert "is there already" in refused(running, "rule add", rule=meter)[0]
    assert add(running, line) == ["Flow rule #0 created"]
    assert refused(running, "rule add", rule="del port meter 0 5") == (
        "rule add: column 1: meter 5 of port 0 is used by 1 rule", 1)
    assert "used by 1 meter" in refused(running, "rule add", rule="del port meter profile 0 1")[0]
    assert add(running, "disable port meter 0 5") == ["meter 5 of port 0 disabled"]
    assert add(running, "add port meter profile trtcm_rfc2698 0 2 10 20 5 6 1") == [
        "meter profile 2 of port 0 created"]
    assert add(running, "set port meter profile 0 5 2") == ["meter 5 of port 0 has profile 2"]
    assert add(running, "flow destroy 0 rule 0") == ["Flow rule #0 destroyed"]
    for text, said in (("del port meter 0 5", "meter 5"), ("del port meter policy 0 1", "meter policy 1"),
                       ("del port meter profile 0 1", "meter profile 1"),
                       ("del port meter profile 0 2", "meter profile 2")):
        assert add(running, text) == [f"{said} of port 0 destroyed"]
    for text, column, said in (
            ("add port meter policy 0 2 g_actions queue index 0 / end y_actions end r_actions end", 27,
             "action 'queue': in software packets of a color go on, or are dropped"),
            ("add port meter policy 0 2 g_actions end y_actions end r_actions color type green / end", 55,
             "action 'color': in software packets keep the color that the meter gave them"),
            ("set port meter stats mask 0 5 1", 16, "stats: in software a meter counts no colors"),
            ("add port meter profile srtcm_rfc2697 0 1 0 1 1 0", 1, "cir 0: it has to be 1 or more")):
        assert refused(running, "rule add", rule=text)[0].startswith(f"rule add: column {column}: {said}")
    running.stop(leaves=["records.json"])


def test_meters_of_a_list(tmp_path):
    """They stand in files and in the configuration; `rule check` knows them, too."""
    lines = metered(10, 5).splitlines() + [rule("ipv4", "meter mtr_id 5")]
    path = tmp_path / "millrace.yaml"
    path.write_text("ports: [{name: a, device: net_null0}, {name: b, device: net_null1}]\n"
                    "wires: [[a, b]]\nrules:\n  list:\n" + "".join(f"    - '{line}'\n" for line in lines))
    done = run("config", "check", path)
    assert done.code == 0, done.stderr
    told = [json.loads(line) for line in
            run("rule", "check", "--json", stdin="\n".join(lines + [
                rule("ipv4", "meter mtr_id 6")]).encode()).stdout.decode().splitlines()]
    assert [line["software"] for line in told] == [True] * 4 + [False]
    assert "there is no meter 6" in told[4]["why"]


def test_age_in_replay(replay, tmp_path):
    """By the capture's clock: silence of 5 s ends the rule's flows, and that of the protocol the others."""
    times = [0, 4, 8, 14, 15, 30]
    frames.write(tmp_path / "a.pcap", [frames.udp(time, "10.0.0.1", 1000, "10.0.0.2", port)
                                       for time in times for port in (53, 80)])
    (tmp_path / "rules").write_text(rule("ipv4 / udp dst is 53", "age timeout 5"))
    result = replay("--timeout", "udp-new=20", "--rules", tmp_path / "rules", tmp_path / "a.pcap")
    told = sorted((record["dport"], record["packets"], record["end_reason"]) for record in result.records)
    # 0, 4, 8 | 14, 15 | 30
    assert told == [(53, 1, "shutdown"), (53, 2, "idle"), (53, 3, "idle"), (80, 6, "shutdown")]


@pytest.mark.parametrize("workers", [1, 2])
def test_age_of_tcp(replay, tmp_path, workers):
    """An open connection ends by it, and one that has closed does as ever."""
    open_one = frames.Tcp(0, "10.0.0.1", 1, "10.0.0.2", 80).open()
    closed = frames.Tcp(0, "10.0.0.1", 2, "10.0.0.2", 80).open().close()
    frames.write(tmp_path / "a.pcap", open_one, closed,
                 [frames.udp(time, "10.0.0.1", 7, "10.0.0.2", 7) for time in range(0, 100, 9)])
    for rules, why in ((rule("ipv4 / tcp", "age timeout 60"), "idle"), (rule("ipv4", "mark id 1"), "shutdown")):
        (tmp_path / "rules").write_text(rules)
        result = replay("--workers", workers, "--rules", tmp_path / "rules", tmp_path / "a.pcap")
        told = {record["sport"]: record["end_reason"] for record in result.records}
        assert told == {1: why, 2: "fin", 7: "shutdown"}


@pytest.mark.usefixtures("simulated_nic")
def test_age_of_live_flows(started, tmp_path):
    """Flows that are there already come under a rule, and end by it; flow explain says so."""
    path = frames.write(tmp_path / "one.pcap", [frames.udp(0, "10.0.0.1", 1000, "10.0.0.2", port)
                                                for port in (53, 80)])
    running = started(f"capture={path},passes=1")
    running.until(lambda: len(running.ask("flow list")) == 2, "both are there")
    assert refused(running, "rule add", rule=rule("ipv4 ttl is 3", "age timeout 1"))[0].endswith(
        "action 'age': flows age, and the rule asks for what packets of a flow may differ in")
    add(running, rule("ipv4 / udp dst is 80", "age timeout 3000"))
    running.until(lambda: running.ask("flow explain", src="10.0.0.1", sport=1000, dst="10.0.0.2", dport=80,
                                      proto="udp")[0]["timeout_s"] == 3000, "it is told")
    add(running, rule("ipv4 / udp dst is 53", "age timeout 1"))
    running.until(lambda: len(running.ask("flow list")) == 1, "one has ended")
    assert running.ask("flow list")[0]["dport"] == 80
    running.until(lambda: add(running, "flow aged 0")[0] == "Port 0 total aged flows: 1", "its rule has aged")
    running.stop(leaves=["records.json"])


INDIRECT = "flow indirect_action 0 create action_id 7 ingress action {actions} / end"


@pytest.mark.parametrize("workers", [1, 2])
def test_indirect_in_replay(replay, tmp_path, workers):
    """What its actions do, its rules do; also with a meter in it, which they share."""
    frames.write(tmp_path / "a.pcap", [frames.udp(0, "10.0.0.1", 1, "10.0.0.2", port)
                                       for port in (53, 80, 99) for _ in range(10)])
    users = rule("udp dst is 53", "indirect 7") + "\n" + rule("udp dst is 80", "count / indirect 7")
    for setup, actions, wanted in (("", "drop", {"rule": 20}),
                                   (metered(1, 6), "count / meter mtr_id 5", {"meter": 14})):
        (tmp_path / "rules").write_text(f"{setup}{INDIRECT.format(actions=actions)}\n{users}")
        result = replay("--workers", workers, "--rules", tmp_path / "rules", tmp_path / "a.pcap")
        assert {why: n for why, n in result.summary["dropped"].items() if n} == wanted
    for text, said in (
            (users, "rules:1:59: action 'indirect': there is no indirect action 7 of port 0"),
            (INDIRECT.format(actions="indirect 1"), "rules:1:58: action 'indirect': in software no list has"),
            (INDIRECT.format(actions="count / pf"), "rules:1:66: action 'pf': not done in software"),
            (f"{INDIRECT.format(actions='drop')}\n" + rule("ipv4", "drop / indirect 7"),
             "rules:2:57: action 'drop': the rule says already")):
        (tmp_path / "rules").write_text(text)
        result = run("replay", "--rules", tmp_path / "rules", tmp_path / "a.pcap")
        assert result.code == 1 and said in result.stderr, result.stderr


@pytest.mark.usefixtures("simulated_nic")
def test_indirect_commands(started, tmp_path):
    """It counts for all its rules, also for one that is gone, and is there as long as it is used."""
    path = frames.write(tmp_path / "a.pcap", [frames.udp(0, "10.0.0.1", 1, "10.0.0.2", port)
                                              for port in (53, 80, 99)])
    (tmp_path / "rules").write_text("\n".join([
        INDIRECT.format(actions="count / mark id 3"), rule("udp dst is 53", "indirect 7"),
        rule("udp dst is 80", "indirect 7"), rule("udp dst is 99", "count")]))
    running = started(f"capture={path},passes=50", "--rules", tmp_path / "rules")
    running.until(lambda: running.wire()["received"] == 150, "all packets")
    query = "flow indirect_action 0 query 7"
    assert add(running, query) == ["count: hits 100, bytes 6200"]
    assert {record["rule_mark"] for record in running.ask("flow list") if record["dport"] != 99} == {3}
    assert "is used by 2 rules" in refused(
        running, "rule add", rule="flow indirect_action 0 destroy action_id 7")[0]
    add(running, "flow destroy 0 rule 0")
    running.until(lambda: running.connection.ask("rule list")[1]["unsettled"] == 0, "it is settled")
    assert add(running, query) == ["count: hits 100, bytes 6200"]
    add(running, "flow destroy 0 rule 1")
    assert add(running, "flow indirect_action 0 destroy action_id 7") == ["Indirect action #7 destroyed"]
    assert "there is no indirect action 7" in refused(running, "rule add", rule=query)[0]
    assert add(running, "flow indirect_action 0 create ingress action drop / end") == ["Indirect action #0 created"]
    assert "has no action 'count'" in refused(running, "rule add", rule="flow indirect_action 0 query 0")[0]
    assert "update: in software" in refused(
        running, "rule add", rule="flow indirect_action 0 update 0 action drop / end")[0]
    running.stop(leaves=["records.json"])
