# SPDX-License-Identifier: BSD-3-Clause
"""What a running engine does by its rules: every packet is known in advance, and counted by the rule that it matched."""
import json
import os
import pathlib
import re
import subprocess
import time

import pytest
from scapy.layers.l2 import ARP, CookedLinux
from scapy.utils import PcapWriter

import frames
from conftest import MILLRACE, ROOT, SLOWER, run
from simulated import ports

pytestmark = pytest.mark.usefixtures("simulated_nic")

EXAMPLES = pathlib.Path(os.environ.get(
    "MILLRACE_EXAMPLES", ROOT.parent / "shared" / "flow-examples" / "visible.txt"))
PASSES = 40
ROUND = {
    "dns": frames.udp(0, "10.0.0.1", 1000, "10.0.0.2", 53),
    "web": frames.udp(0, "10.0.0.1", 1001, "10.0.0.2", 80),
    "far": frames.udp(0, "10.1.0.1", 1000, "10.9.0.2", 53),
    "six": frames.udp(0, "2001:db8::1", 1000, "2001:db8::2", 443),
    "vlan": frames.udp(0, "10.0.0.1", 1000, "10.0.0.2", 53, vlans=[7]),
    "ping": frames.ping(0, "10.5.0.1", "10.5.0.2"),
    "arp": frames.arp(0, "10.6.0.1", "10.6.0.2"),
}


def rule(pattern, actions="drop", port=0, attributes="ingress"):
    return f"flow create {port} {attributes} pattern {pattern} / end actions {actions} / end"


@pytest.fixture(name="rounds")
def write_rounds(tmp_path):
    return frames.write(tmp_path / "round.pcap", *ROUND.values(), in_order=False)


def add(running, text):
    return [line["line"] for line in running.ask("rule add", rule=text)]


def refused(running, request, **given):
    """The error, and the code that the client would end with."""
    running.connection.send(request, **given)
    end = running.connection.next()
    assert end.get("end") and end["error"], end
    return end["error"], end["code"]


def sent(running):
    """Packets that came, to the engine or as far as its NICs, which dropped them."""
    wire = running.wire()
    return wire["received"] + wire["nic_dropped"]


@pytest.mark.parametrize("in_nic", ["off", "drop"])
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("lines, matched", [
    ([rule("eth / ipv4 / udp dst is 53")], [["dns", "far", "vlan"]]),
    ([rule("eth / ipv4 / udp dst is 53", port=1)], [[]]),
    ([rule("eth / ipv4 / udp dst is 53", port=1, attributes="transfer")], [["dns", "far", "vlan"]]),
    ([rule("ipv4 src is 10.0.0.1"), rule("ipv4")], [["dns", "web", "vlan"], ["far", "ping"]]),
    ([rule("ipv4 src is 10.0.0.1", attributes="priority 1 ingress"), rule("ipv4")],
     [[], ["dns", "web", "vlan", "far", "ping"]]),
    ([rule("eth / ipv6")], [["six"]]),
    ([rule("eth / vlan vid is 7")], [["vlan"]]),
    ([rule("eth type is 0x0806")], [["arp"]]),
    ([rule("eth / ipv4 / icmp type is 8"), rule("eth / ipv4 / icmp type is 0")], [["ping"], []]),
    ([rule("ipv4 ttl is 64"), rule("ipv4 ttl is 63")],
     [["dns", "web", "far", "vlan", "ping"], []]),
    ([rule("ipv4", "jump group 1"), rule("udp dst is 53", attributes="group 1 ingress")],
     [None, ["dns", "far", "vlan"]]),
    (["flow create 0 ingress pattern end actions drop / end"], [list(ROUND)]),
], ids=lambda value: None)
def test_from_the_first_packet(started, rounds, tmp_path, in_nic, workers, lines, matched):
    """What a rule matches is dropped and counted by it, all of it, and nothing else; in the NIC or not."""
    (tmp_path / "rules").write_text("# rules\n" + "".join(f"{line}\n" for line in lines))
    running = started(f"capture={rounds},passes={PASSES}", "--workers", workers,
                      "--rules", tmp_path / "rules", "--offload-rules-in-nic", in_nic)
    running.until(lambda: sent(running) == PASSES * len(ROUND), "all packets")
    dropped = PASSES * sum(len(names or []) for names in matched)
    told = running.ask("rule list")
    by_nic = running.idle()["nic_dropped"]
    assert running.idle()["dropped"] + by_nic == dropped
    assert running.drops().get("rule", 0) == dropped - by_nic
    assert [line["rule"] for line in told] == lines
    expected = [None if names is None else PASSES * len(names) for names in matched]
    if in_nic == "off" or len(lines) == 1 or "jump" in lines[0]:
        assert [line.get("packets") for line in told] == expected
    else:
        # where two of them match a packet, a NIC may count it by either
        assert sum(line["packets"] for line in told) == sum(expected)
    assert sum(line.get("nic_packets", 0) for line in told) == by_nic
    if in_nic == "off":
        assert by_nic == 0
    running.stop(leaves=["records.json"])


def test_a_rule_for_arp_leaves_flows_alone(started, rounds, tmp_path):
    """No packet of IP has its type: flows are decided as a whole by the rule behind it. And by one for IPv4's type."""
    lines = [rule("eth type is 0x0806"), rule("eth type is 0x0800 / ipv4 dst is 10.0.0.2"),
             rule("eth", "count / mark id 7")]
    (tmp_path / "rules").write_text("\n".join(lines) + "\n")
    running = started(f"capture={rounds},passes={PASSES}", "--rules", tmp_path / "rules",
                      "--offload-rules-in-nic", "off")
    running.until(lambda: sent(running) == PASSES * len(ROUND), "all packets")
    told = running.ask("rule list")
    # the tagged one's type is that of the tag
    assert [line["packets"] // PASSES for line in told] == [1, 2, 4]
    # of the last rule: far, six, ping; the flow of the tagged packets is classified by packet
    assert "flows" not in told[0] and "flows" not in told[1] and told[2]["flows"] == 3
    running.stop(leaves=["records.json"])


def test_copies_are_in_the_sum(started, rounds, tmp_path):
    """What a rule samples leaves beside what was received: wire show adds up with the copies."""
    (tmp_path / "rules").write_text("set sample_actions 0 port_id id 1 / end\n" + rule(
        "ipv4 / udp dst is 53", "sample ratio 1 index 0") + "\n")
    running = started(f"capture={rounds},passes={PASSES}", "--rules", tmp_path / "rules")
    running.until(lambda: sent(running) == PASSES * len(ROUND), "all packets")
    wire = running.idle()
    assert wire["mirrored"] == PASSES * 3
    assert wire["received"] + wire["mirrored"] == wire["out"] == PASSES * (len(ROUND) + 3)
    text = running.client("wire", "show")
    assert "WRONG" not in text and "120 copies" in text
    running.stop(leaves=["records.json"])


def test_while_packets_flow(started, rounds):
    """Live flows are decided anew when rules come and go."""
    running = started(f"capture={rounds},pace=20000", "--offload-rules-in-nic", "off")
    assert add(running, rule("ipv4 / udp dst is 53")) == ["Flow rule #0 created"]
    running.until(lambda: running.drops().get("rule", 0) > 0, "packets are dropped")
    running.until(lambda: running.ask("rule list")[0]["packets"] > 0, "and counted")
    assert running.ask("rule list")[0]["flows"] == 2
    assert "packets" in running.ask("rule del", port=0, number=0)[0]
    running.until(lambda: running.connection.ask("rule list")[1]["unsettled"] == 0, "it is settled")
    before = running.drops()["rule"]
    time.sleep(0.3)
    assert running.drops()["rule"] == before
    running.stop(leaves=["records.json"], idle=False)


def test_while_the_nic_drops(started, rounds):
    """A rule goes to the NIC and comes back from it while packets flow: what it matches never passes meanwhile."""
    running = started(f"capture={rounds},pace=20000")
    line = rule("ipv4 / udp dst is 53", attributes="priority 5 ingress")
    assert add(running, line) == ["Flow rule #0 created"]
    running.until(lambda: running.ask("rule list")[0]["where"] == "nic", "the NIC has it")
    running.until(lambda: running.ask("rule list")[0]["nic_packets"] > 100, "and drops by it")
    (told,) = running.ask("rule list")
    assert "flows" not in told and "why" not in told
    assert told["packets"] == told["nic_packets"] + told["software_packets"]
    text = running.client("rule", "list")
    assert " nic " in text and "not counted" in text
    # a rule before it that takes some of its packets: when it is created the NIC has let go
    add(running, rule("ipv4 src is 10.0.0.1", "mark id 1", attributes="priority 4 ingress"))
    first = running.ask("rule list")[0]
    assert first["where"] == "software" and first["why"].startswith("rule #1 of port 0 comes before")
    time.sleep(0.2)
    again = running.ask("rule list")[0]
    assert again["nic_packets"] == first["nic_packets"]
    assert again["software_packets"] > first["software_packets"]
    assert "why" in running.ask("rule list")[1]
    running.client("rule", "del", "0", "1")
    running.until(lambda: running.ask("rule list")[0]["where"] == "nic", "it is back")
    # when the answer to `rule del` comes nothing is dropped any more
    running.client("rule", "del", "0", "0")
    dropped = running.wire()["nic_dropped"]
    time.sleep(0.3)
    assert running.wire()["nic_dropped"] == dropped
    running.stop(leaves=["records.json"], idle=False)


@pytest.mark.parametrize("in_nic", ["off", "drop"])
@pytest.mark.parametrize("command", ["flow flush 0", "flow destroy 0 rule 0", None])
def test_removed_rules_are_counted(started, rounds, command, in_nic):
    """Every packet that a rule drops is in a count: of a rule, or of those that are removed, to the last one."""
    passes = 8000
    running = started(f"capture={rounds},passes={passes},pace=20000", "--offload-rules-in-nic", in_nic)
    finals = 0
    for _ in range(3):
        before = running.drops().get("rule", 0)
        add(running, rule("ipv4 / udp dst is 53"))
        running.until(lambda before=before: running.drops().get("rule", 0) + running.wire()["nic_dropped"] > before + 500,
                      "packets are dropped")
        if command:
            add(running, command)
            continue
        (told,) = running.ask("rule del", port=0, number=0)
        assert told["final"] and (in_nic == "drop" or told["flows"] == 2)
        finals += told["packets"]
        # nothing comes behind what is final
        wire = running.wire()
        assert finals == running.drops().get("rule", 0) + wire["nic_dropped"]
    running.until(lambda: sent(running) == passes * len(ROUND), "all packets")
    by_nic, by_software = running.idle()["nic_dropped"], running.drops().get("rule", 0)
    lines, end = running.connection.ask("rule list")
    assert lines == [] and end["leaving"] == end["unsettled"] == 0
    assert end["gone_packets"] == by_nic + by_software and end["gone_nic_packets"] == by_nic
    assert command or finals == end["gone_packets"]
    assert end["gone_bytes"] > 60 * end["gone_packets"] and (in_nic == "drop" or end["gone_flows"] == 6)
    assert f" removed rules matched {end['gone_packets']:,} packets, " in running.client("rule", "list")
    running.stop(leaves=["records.json"])


@pytest.mark.parametrize("workers", [1, 2])
def test_a_deleted_rule_has_counted_all(started, rounds, workers):
    """What the answer to `rule del` says is all that was dropped, by the NIC to the moment when it let the rule go."""
    running = started(f"capture={rounds},pace=20000", "--workers", workers)
    by_nic = by_software = 0
    for _ in range(4):
        add(running, rule("ipv4 / udp dst is 53"))
        running.until(lambda: running.ask("rule list")[0]["where"] == "nic", "the NIC has it")
        # between two readings of its counter
        time.sleep(0.7)
        (told,) = running.ask("rule del", port=0, number=0)
        by_nic += told["nic_packets"]
        by_software += told["software_packets"]
        assert told["packets"] == told["nic_packets"] + told["software_packets"]
        assert told["nic_packets"] > 1000 and told["nic_bytes"] > 60 * told["nic_packets"]
        assert running.wire()["nic_dropped"] == by_nic
        assert running.drops().get("rule", 0) == by_software
    running.stop(leaves=["records.json"], idle=False)


@pytest.mark.parametrize("command", ["flow flush 0", "flow destroy 0 rule 0"])
def test_a_nic_counts_to_the_last(started, rounds, command):
    """Rules leave the NIC while packets flow, and of each packet it is known what became of it."""
    passes = 8000
    running = started(f"capture={rounds},passes={passes},pace=20000")
    add(running, rule("ipv4 / udp dst is 53"))
    running.until(lambda: running.ask("rule list")[0]["where"] == "nic", "the NIC has it")
    running.until(lambda: running.wire()["nic_dropped"] > 1000, "and drops by it")
    add(running, command)
    dropped = running.wire()["nic_dropped"]
    running.until(lambda: sent(running) == passes * len(ROUND), "all packets")
    assert running.idle()["nic_dropped"] == dropped
    running.stop(leaves=["records.json"])


def test_many_rules_in_the_nic(started, tmp_path):
    """Of 10,000 rules all that drop are given to the NIC, whatever else is among them; and others are answered meanwhile."""
    count = 10000
    with (tmp_path / "rules").open("w") as lines:
        for i in range(count):
            lines.write(rule(f"ipv4 src is 100.{i >> 16}.{i >> 8 & 255}.{i & 255}",
                             "drop" if i % 3 else "mark id 1",
                             attributes=f"priority {i % 5} ingress") + "\n")
    running = started("source=none", "--rules", tmp_path / "rules", "--rules-max", count + 1)
    drop = count - (count + 2) // 3
    running.until(lambda: sum(told["where"] == "nic" for told in running.ask("rule list")) == drop,
                  "they are there")
    add(running, rule("ipv4 src is 100.0.0.1", "mark id 1", attributes="priority 0 ingress"))
    told = running.ask("rule list")
    assert sum(line["where"] == "nic" for line in told) == drop - 1
    assert told[1]["why"].startswith(f"rule #{count} of port 0 comes before it")
    running.stop(leaves=["records.json"])


def test_flush_of_many_rules_in_the_nic(started, tmp_path):
    """Rules that a NIC is slow to let go are waited for, as long as it goes on; and nothing drops when it is told."""
    count = 16384
    with (tmp_path / "rules").open("w") as lines:
        for i in range(count):
            lines.write(rule(f"ipv4 src is 100.{i >> 16}.{i >> 8 & 255}.{i & 255}") + "\n")
    running = started("source=none,destroy_ns=500000", "--rules", tmp_path / "rules", "--rules-max", count)
    running.until(lambda: sum(told["where"] == "nic" for told in running.ask("rule list")) == count, "they are there")
    begun = time.monotonic()
    assert add(running, "flow flush 0") == [f"{count} flow rules of port 0 destroyed"]
    # that is longer than one is waited for that does not go on
    assert time.monotonic() - begun > 6
    lines, end = running.connection.ask("rule list")
    assert lines == [] and end["leaving"] == 0
    running.stop(leaves=["records.json"])


def test_a_shared_counter_is_software_s(started, rounds):
    """A rule that counts with others together is none for NICs, which would not add to that."""
    running = started(f"capture={rounds},passes={PASSES}")
    add(running, "flow indirect_action 0 create action_id 7 ingress action count / end")
    add(running, rule("ipv4 / udp dst is 53", "indirect 7 / drop"))
    assert "share" in running.ask("rule list")[0]["why"]
    assert running.ask("rule list")[0]["where"] == "software"
    running.stop(leaves=["records.json"], idle=False)


def test_a_nic_that_cannot(started, rounds):
    """What the driver says is the reason; and what a NIC does not count is not 0."""
    running = started(f"capture={rounds},pace=20000,profile=e810,actions=-count")
    add(running, rule("eth / ipv4 src spec 10.0.0.0 src mask 255.0.0.0"))
    add(running, rule("eth / ipv6 src is 2001:db8::1"))
    running.until(lambda: running.ask("rule list")[1]["where"] == "nic", "the NIC has one of them")
    first, second = running.ask("rule list")
    assert first["where"] == "software" and "only whole fields" in first["why"]
    assert first["packets"] > 0
    assert "packets" not in second and "nic_packets" not in second and "flows" not in second
    assert "not counted" in running.client("rule", "list")
    assert "does not count" in refused(running, "rule add", rule="flow query 0 1 count")[0]
    running.stop(leaves=["records.json"], idle=False)


@pytest.mark.parametrize("options, where", [
    ([], {"nic": None, "software": "action 'queue' is not given to NICs", "both": "port 1: "}),
    (["--offload-rules-in-nic", "off"], {
        "nic": "rules are not given to NICs (rules-in-nic)", "software": "action 'queue' is not given to NICs",
        "both": "rules are not given to NICs (rules-in-nic)"}),
])
def test_validate_says_where(started, rounds, options, where):
    """Before a rule is made it is said where it would be, and why."""
    running = started(f"capture={rounds},pace=20000", *options, "--offload-except", "b")
    lines = {"nic": rule("ipv4 / udp dst is 53"), "software": rule("ipv4", "queue index 1"),
             "both": rule("ipv4 / udp dst is 54", attributes="transfer")}
    add(running, lines["nic"])
    if not options:
        running.until(lambda: running.ask("rule list")[0]["where"] == "nic", "the NIC has it")
    for place, line in lines.items():
        told = running.ask("rule add", rule=line.replace("create", "validate"))
        assert told[0]["line"] == "Flow rule validated"
        (last,) = [line for line in told if "where" in line]
        assert last["where"] == ("software" if options else place)
        assert (last.get("why") or "").startswith(where[place] or "") and ("why" in last) == (where[place] is not None)
        assert last["line"] == f"where: {last['where']}" + (f": {last['why']}" if "why" in last else "")
    # a rule before it keeps it in software
    add(running, rule("ipv4 dst is 10.0.0.2", "mark id 1"))
    if not options:
        told = running.ask("rule add", rule=rule("ipv4 / udp dst is 54").replace("create", "validate"))
        assert told[-1]["why"].startswith("rule #1 of port 0 comes before it")
    assert len(running.ask("rule list")) == 2
    running.stop(leaves=["records.json"], idle=False)


def test_groups_without_a_jump(started, tmp_path):
    """It is told of a rule in a group that no rule jumps to, as long as none does; of a file once for each group."""
    running = started("source=none")
    alone = "warning: no rule jumps to group 2, so that it has no packets"
    assert add(running, rule("ipv4", attributes="group 2 ingress")) == ["Flow rule #0 created", alone]
    assert add(running, rule("ipv4", "jump group 2")) == ["Flow rule #1 created"]
    assert add(running, rule("ipv6", attributes="group 2 ingress")) == ["Flow rule #2 created"]
    add(running, "flow destroy 0 rule 1")
    assert alone in [line["line"] for line in running.ask(
        "rule add", rule=rule("arp_eth_ipv4", attributes="group 2 ingress").replace("create", "validate"))]
    running.stop(leaves=["records.json"])
    path = tmp_path / "grouped"
    path.write_text("\n".join([rule("ipv4", attributes="group 2 ingress"), rule("ipv6", attributes="group 2 ingress"),
                               rule("ipv6", attributes="group 1 ingress"), rule("ipv6", "jump group 1")]))
    running = started("source=none", "--rules", path)
    running.stop(leaves=["records.json"])
    warned = [line for line in running.stderr.splitlines() if "no rule jumps" in line]
    assert len(warned) == 1 and f"{path}:1: warning: no rule jumps to group 2" in warned[0]


def test_default_masks(started, tmp_path):
    """What a default mask asks for besides is told when a rule is made, and of those in a file."""
    told = "warning: item 'tcp' has no mask, and its default mask also asks for 'src is 0'; "
    line = rule("ipv4 / tcp dst spec 1 dst last 1023", "queue index 1")
    path = tmp_path / "masks"
    path.write_text(f"{line}\n{rule('ipv4 / udp / vxlan vni spec 5')}\n")
    running = started("source=none", "--rules", path)
    assert any(text.startswith(told) for text in add(running, line))
    # as the mask of rte_flow says, a number alone is that of one network
    for network, number in (5, 1), (6, None):
        steps = running.ask("rule trace", packet=f"0 ipv4 / udp dst is 4789 / vxlan vni is {network} / end")
        assert steps[-1].get("number") == number
    running.stop(leaves=["records.json"])
    assert sum(f"{path}:1: {told}" in text for text in running.stderr.splitlines()) == 1


def test_requests(started):
    """Each command of the language, what it says, and what is refused."""
    running = started("source=none", "--rules-max", 3)
    assert running.ask("rule list") == []
    line = rule("eth / ipv4 src is 10.0.0.1", "queue index 3")
    assert add(running, line) == [
        "Flow rule #0 created",
        "note: the flow chooses the worker: in software the queue has no meaning"]
    assert add(running, line)[2] == (
        "warning: the rule matches nothing that rule #0 of port 0 does not match before it")
    assert add(running, rule("eth", port=1)) == ["Flow rule #0 created"]
    assert [(told["port"], told["number"]) for told in running.ask("rule list")] == [
        (0, 0), (0, 1), (1, 0)]
    assert [told["number"] for told in running.ask("rule list", at=1)] == [0]
    lines, end = running.connection.ask("rule list", limit=2)
    assert len(lines) == 2 and end["rules"] == end["max"] == 3
    lines, end = running.connection.ask("rule list", cursor=end["cursor"])
    assert len(lines) == 1 and end["cursor"] is None
    assert refused(running, "rule add", rule=line) == (
        "rule add: column 1: no room: there are 3 of 3 rules (rules.max)", 1)
    assert add(running, "flow query 0 0 count") == ["count: hits 0, bytes 0"]
    assert add(running, "flow list 1") == [f"#0: {rule('eth', port=1)}"]
    assert add(running, "flow destroy 0 rule 1") == ["Flow rule #1 destroyed"]
    assert add(running, "flow flush 0") == ["1 flow rule of port 0 destroyed"]
    assert refused(running, "rule add", rule=rule("eth / gtp")) == (
        "rule add: column 37: item 'gtp': not matched in software", 2)
    error, code = refused(running, "rule add", rule="flow creat 0")
    assert error.startswith("rule add: column 6: creat: ") and code == 2
    assert refused(running, "rule add", rule="# nothing") == (
        "rule add: a rule is needed", 2)
    assert refused(running, "rule del", port=0, number=0) == (
        "rule del: there is no rule #0 of port 0", 1)
    assert refused(running, "rule list", cursor="x")[1] == 2
    for port in (2, 7, 99, 65535):
        for request, key, more in (("rule list", "at", {}), ("rule del", "port", {"number": 0}),
                                   ("rule trace", "at", {"src": "10.0.0.1", "dst": "10.0.0.2", "proto": "icmp"})):
            assert refused(running, request, **{key: port}, **more) == (
                f"{request}: {key} {port}: the engine has ports 0 to 1", 2)
    running.stop(leaves=["records.json"])


def test_trace(started):
    running = started("source=none")
    add(running, rule("ipv4 / udp dst is 53"))
    add(running, rule("ipv4 src spec 10.0.0.0 src mask 255.0.0.0", "mark id 7"))
    flow = {"src": "10.0.0.1", "dst": "10.0.0.2", "proto": "udp", "sport": 1000}
    steps = running.ask("rule trace", **flow, dport=53, at=0)
    assert (steps[0]["step"], steps[-1]["step"], steps[-1]["number"]) == ("packet", "result", 0)
    steps = running.ask("rule trace", **flow, dport=54, at=0)
    assert steps[-1]["number"] == 1
    # what cannot match is found out before its rules are looked up, but for one port in some ten or so
    assert [step["field"] for step in steps if step["step"] == "none_fits"] in (["dst_port"], [])
    assert [step["number"] for step in steps if step["step"] == "compared"] == [1]
    assert "number" not in running.ask("rule trace", **flow, dport=53, at=1)[-1]
    assert "at is needed" in refused(running, "rule trace", **flow, dport=53)[0]
    assert refused(running, "rule trace", **flow, dport=53, at=7)[1] == 2
    running.stop(leaves=["records.json"])


def test_trace_goes_on(started):
    """Behind a rule per packet; rules that were not compared are named; and what decided a flow is, too."""
    running = started("source=none")
    add(running, rule("ipv4 ttl is 3 / udp"))
    add(running, rule("ipv4 src is 10.9.9.9 / udp", "mark id 1"))
    add(running, rule("ipv4 / udp", "mark id 7"))
    flow = {"src": "10.0.0.1", "dst": "10.0.0.2", "proto": "udp", "sport": 1000, "dport": 53, "at": 0}
    steps = running.ask("rule trace", **flow)
    results = [step for step in steps if step["step"] == "result"]
    assert [(step["number"], step["per"]) for step in results] == [(0, "packet"), (2, "flow")]
    groups = [step for step in steps if step["step"] == "group"]
    assert [step.get("behind_number") for step in groups] == [None, 0]
    second = steps[steps.index(groups[1]):]
    named = [(step["number"], step["field"]) for step in second
             if step["step"] == "not_tried" or (step["step"] == "compared" and not step["matches"])]
    assert named == [(1, "src")]
    told = running.client("rule", "trace", "10.0.0.1:1000", "10.0.0.2:53", "udp", "--at", "0")
    assert "group 0, for packets that rule #0 of port 0 does not match\n" in told
    assert told.splitlines()[-1] == " decided by rule #2 of port 0"
    running.stop(leaves=["records.json"])


def test_trace_follows_jumps_of_packets(started):
    """A rule per packet that jumps: what its packets meet, one of them per packet again, and what the others meet."""
    running = started("source=none")
    for line in (rule("ipv4 ttl is 3 / udp", "jump group 1"), rule("ipv4 / udp", "mark id 7"),
                 rule("ipv4 tos is 4 / udp", "jump group 2", attributes="group 1 ingress"),
                 rule("ipv4 / udp", attributes="group 1 ingress"),
                 rule("ipv4 / udp", "mark id 9", attributes="group 2 ingress")):
        add(running, line)
    flow = {"src": "10.0.0.1", "dst": "10.0.0.2", "proto": "udp", "sport": 1000, "dport": 53, "at": 0}
    steps = running.ask("rule trace", **flow)
    groups = [(step["group"], step.get("jump_number"), step.get("behind_number")) for step in steps
              if step["step"] == "group"]
    assert groups == [(0, None, None), (1, 0, None), (2, 2, None), (1, None, 2), (0, None, 0)]
    results = [(step["number"], step["per"], step.get("jump")) for step in steps if step["step"] == "result"]
    assert results == [(0, "packet", 1), (2, "packet", 2), (4, "flow", None), (3, "flow", None), (1, "flow", None)]
    told = running.client("rule", "trace", "10.0.0.1:1000", "10.0.0.2:53", "udp", "--at", "0").splitlines()
    assert [line for line in told if line.startswith(("group", " matched", " decided"))] == [
        "group 0",
        " matched: rule #0 of port 0, which goes on in group 1, if a packet has what it asks for; each packet of the flow "
        "is classified",
        "group 1, for packets that rule #0 of port 0 matches",
        " matched: rule #2 of port 0, which goes on in group 2, if a packet has what it asks for; each packet of the flow "
        "is classified",
        "group 2, for packets that rule #2 of port 0 matches", " decided by rule #4 of port 0",
        "group 1, for packets that rule #2 of port 0 does not match", " decided by rule #3 of port 0",
        "group 0, for packets that rule #0 of port 0 does not match", " decided by rule #1 of port 0"]
    # packets of each kind are decided as it was told
    for fields, number in (("ttl is 3 tos is 4", 4), ("ttl is 3", 3), ("ttl is 9 tos is 4", 1)):
        packet = running.ask("rule trace", packet=f"0 ipv4 src is 10.0.0.1 {fields} / udp dst is 53 / end")
        assert packet[-1]["number"] == number
    running.stop(leaves=["records.json"])


def test_explain_names_the_rule(started, rounds):
    running = started(f"capture={rounds},pace=20000")
    line = rule("ipv4 src is 10.0.0.1 / udp dst is 80", "mark id 7")
    add(running, line)
    flow = {"src": "10.0.0.1", "sport": 1001, "dst": "10.0.0.2", "dport": 80, "proto": "udp"}
    running.until(lambda: any(one["sport"] == 1001 for one in running.flows()), "the flow is there")
    running.until(lambda: "decided_by" in running.ask("flow explain", **flow)[0], "it is decided")
    (told,) = running.ask("flow explain", **flow)
    assert told["decided_by"] == {"port": 0, "number": 0, "rule": line} and "reverse_decided_by" not in told
    text = running.client("flow", "explain", "10.0.0.1:1001", "10.0.0.2:80", "udp")
    assert f"decided by rule #0 of port 0 ->: {line}" in " ".join(text.split())
    add(running, "flow destroy 0 rule 0")
    assert "decided_by" not in running.ask("flow explain", **flow)[0]
    running.stop(leaves=["records.json"], idle=False)


@pytest.mark.parametrize("packet, number, why", [
    ("0 eth / ipv4 ttl is 3 / udp dst is 53 / end", 0, []),
    ("0 eth / ipv4 / udp dst is 53 / end", 2, [(0, "ttl"), (1, "eth_src")]),
    ("0 eth src is 02:00:00:00:00:09 / ipv4 / udp dst is 53 / end", 1, [(0, "ttl")]),
    ("0 ipv4 / tcp dst is 53 flags is 2 / end", 3, []),
    ("0 ipv4 / tcp dst is 53 flags is 18 / end", None, [(3, "tcp_flags")]),
    ("1 eth / ipv4 ttl is 3 / udp dst is 53 / end", None, []),
    ("0 eth / vlan vid is 7 / ipv6 / end", 4, []),
    ("0 eth / ipv6 / end", None, [(5, "eth_type")]),
    ("0 eth type is 0x0806 / end", 5, []),
])
def test_trace_of_a_packet(started, packet, number, why):
    """A packet is given by its fields: those count, too, that are looked at for each packet."""
    running = started("source=none")
    for line in (rule("ipv4 ttl is 3 / udp dst is 53"), rule("eth src is 02:00:00:00:00:09 / ipv4 / udp dst is 53"),
                 rule("udp dst is 53", "mark id 7"), rule("ipv4 / tcp flags is 2"),
                 rule("eth / vlan vid is 7 / ipv6"), rule("eth type is 0x0806")):
        add(running, line)
    steps = running.ask("rule trace", packet=packet)
    assert steps[0] == {"step": "packet", "at": int(packet[0]), "packet": True}
    assert steps[-1]["step"] == "result" and steps[-1].get("number") == number
    # a rule that was compared, or all of a kind
    unfit = [(step.get("number"), step["field"]) for step in steps if "field" in step]
    assert [pair for pair in unfit if pair in why] == why, unfit
    words = packet.split()
    told = running.client("rule", "trace", *words)
    assert told == running.client("rule", "trace", packet)
    assert told.splitlines()[0] == f"a packet that comes in by port {packet[0]}"
    assert told.splitlines()[-1] == (" no rule matches: forwarded" if number is None
                                     else f" decided by rule #{number} of port 0")
    for text, said in (("0 eth / ipv5 / end", "column 9: ipv5: a pattern item is needed here"),
                       ("0 eth / ipv4", "column 14: \" / end\" is needed behind the items"),
                       ("eth / end", "column 1: the number of the port is needed, then items"),
                       ("7 eth / end", "column 1: port 7: the engine has ports 0 to 1"),
                       ("0 ipv4 / gtp / end", "column 10: item 'gtp': not matched in software"),
                       ("0 tcp dst is 5 / end", "column 3: an item ipv4 or ipv6 is needed before it"),
                       ("0 ipv4 / udp dst spec 1 dst last 9 / end", "column 10: destination: a packet has one port")):
        error, code = refused(running, "rule trace", packet=text)
        assert error.startswith(f"rule trace: {said}") and code == 2, error
    assert refused(running, "rule trace", packet=packet, src="10.0.0.1")[1] == 2
    assert "src: is needed, but missing" in refused(running, "rule trace", dst="10.0.0.1", proto="udp")[0]
    running.stop(leaves=["records.json"])


def test_the_client(started):
    """As a person would."""
    running = started("source=none", "--rules-max", 2, "--offload-rules-in-nic", "off")
    assert running.client("rule", "list") == " 0 of 0 rules, with room for 2\n"
    words = rule("eth / ipv4 / udp dst is 53").split()
    assert running.client("rule", "add", *words) == "Flow rule #0 created\n"
    assert running.client("rule", "add", " ".join(words[:-6]) + " drop / end", code=2)
    assert running.client("rule", "add", rule("eth / gtp"), code=2) == \
        "millrace: rule add: column 37: item 'gtp': not matched in software\n"
    lines = running.client("rule", "list").splitlines()
    assert len(lines) == 4 and lines[1].endswith(" ".join(words))
    assert lines[2].strip() == "rules are not given to NICs (rules-in-nic)"
    (line,) = running.client("rule", "list", "--json").splitlines()
    assert (json.loads(line)["where"], json.loads(line)["per"]) == ("software", "flow")
    told = running.client("rule", "trace", "10.0.0.1:1", "10.0.0.2:53", "udp", "--at", "0")
    assert told.splitlines()[-1] == " decided by rule #0 of port 0"
    assert running.client("rule", "del", "0", "0") == \
        "Flow rule #0 destroyed; it matched 0 packets, 0 B\n"
    assert "two numbers" in running.client("rule", "del", "0", code=2)
    running.stop(leaves=["records.json"])


def test_no_rules(started):
    running = started("source=none", "--rules-max", 0)
    for words in (["add", "flow flush 0"], ["list"], ["del", "0", "0"]):
        assert running.client("rule", *words, code=1) == (
            f"millrace: rule {words[0]}: this engine keeps no rules; it was started with "
            "rules.max 0\n")
    running.stop(leaves=["records.json"])


def test_a_long_list(started, tmp_path):
    """100,000 rules are loaded before the first packet, and listed."""
    count = 100000
    with (tmp_path / "rules").open("w") as lines:
        for i in range(count):
            lines.write(rule(f"ipv4 src is 100.{i >> 16}.{i >> 8 & 255}.{i & 255}") + "\n")
    begun = time.monotonic()
    running = started("source=none", "--rules", tmp_path / "rules", "--rules-max", count)
    print(f"{time.monotonic() - begun:.2f} s")
    assert time.monotonic() - begun < 10 * SLOWER
    lines, end = running.connection.ask("rule list")
    assert len(lines) == end["rules"] == count
    assert lines[-1]["number"] == count - 1
    running.stop(leaves=["records.json"])


@pytest.mark.parametrize("text, options, said", [
    (f"{rule('eth')}\n\n{rule('eth / ipv5')}\n", [], "rules:3:37: ipv5: a pattern item is needed here"),
    (rule("eth / ipv4", "meter mtr_id 1"), [], "rules:1:56: action 'meter': there is no meter 1 of port 0"),
    (rule("eth", port=2), [], "rules:1:13: port 2: the engine has ports 0 to 1"),
    ("flow flush 0\n", [], "rules:1:1: a list of rules has only lines of flow create, of set, and "),
    (f"{rule('eth')}\n{rule('ipv4')}\n", ["--rules-max", "1"], "no room for 2: there are 0 of 1 rules"),
    (None, [], "rules: No such file or directory"),
    ("", ["--rules-max", "0"], "rules max 0: there are rules, but no room for them"),
    ("", ["--rules-max", "1048577"], "--rules-max 1048577: "),
])
def test_a_list_that_is_wrong(tmp_path, text, options, said):
    """It is told by file, line and column, and nothing is started."""
    if text is not None:
        (tmp_path / "rules").write_text(text)
    done = subprocess.run(
        [MILLRACE, "run", *ports("source=none"), "--socket", tmp_path / "socket", "--rules",
         tmp_path / "rules", *options], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=30 * SLOWER, check=False)
    assert done.returncode in (1, 2) and said in done.stderr, done.stderr
    assert not (tmp_path / "socket").exists()


def test_standard_input_is_refused(rounds, tmp_path):
    """A list may be read more than once; where there is a file of that name, it is not what was meant."""
    (tmp_path / "-").write_text(rule("eth") + "\n")
    said = "-: a file is needed: standard input and output are not taken; ./- is a file of this name"
    for command in (["run", *ports("source=none"), "--socket", "socket"], ["replay", rounds]):
        for option in ("--rules", "--blocks"):
            done = subprocess.run([MILLRACE, *command, option, "-"], cwd=tmp_path, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=30 * SLOWER, check=False)
            assert (done.returncode, done.stderr.splitlines()[0]) == (2, f"millrace: {option} {said}")
    done = subprocess.run([MILLRACE, "replay", rounds, "--json", "--rules", "./-"], cwd=tmp_path, capture_output=True,
                          stdin=subprocess.DEVNULL, text=True, timeout=30 * SLOWER, check=True)
    assert json.loads(done.stderr)["dropped"]["rule"] == len(ROUND)


def test_a_byte_order_mark(started, rounds, tmp_path):
    """It is skipped at the beginning of each file of a list."""
    mark = "\N{ZERO WIDTH NO-BREAK SPACE}"
    texts = {"rules": rule("ipv4 from_set is some"), "set": "10.0.0.1\n", "blocks": "10.5.0.1\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(mark + text, encoding="utf-8")
    (tmp_path / "yaml").write_text(f"{mark}rules: {{sets: [some file {tmp_path}/set]}}\n", encoding="utf-8")
    running = started(f"capture={rounds},passes={PASSES}", "--rules", tmp_path / "rules", "--config", tmp_path / "yaml",
                      "--blocks", tmp_path / "blocks")
    running.until(lambda: sent(running) == PASSES * len(ROUND), "all packets")
    assert running.drops() == {"rule": 3 * PASSES, "blocked": PASSES}
    running.stop(leaves=["records.json"])


@pytest.mark.parametrize("lines, said", [
    ([f"list: ['{rule('eth')}']"], None),
    ([f"list: ['{rule('eth / ipv5')}']"], "rules.list[0]: column 37: ipv5: a pattern item"),
    ([f"list: ['{rule('eth', port=3)}']"], "rules.list:1:13: port 3: the engine has ports 0 to 1"),
    ([f"list: ['{rule('eth')}', '{rule('ipv4')}']", "max: 1"], "no room for 2: there are 0 of 1 rules"),
    (["mox: 1"], "no such key; did you mean max?"),
    (["file: nowhere"], "nowhere: No such file or directory"),
    (["file: '-'"], "rules.file: -: a file is needed: standard input and output are not taken"),
    (["sets: [x file -]"], "rules.sets[0]: -: standard input is not taken; ./- is a file of this name"),
])
def test_configuration(tmp_path, lines, said):
    path = tmp_path / "millrace.yaml"
    path.write_text("ports: [{name: a, device: net_null0}, {name: b, device: net_null1}]\n"
                    "wires: [[a, b]]\nrules:\n" + "".join(f"  {line}\n" for line in lines))
    done = run("config", "check", path)
    assert (done.code == 0) == (said is None), done.stderr
    assert said is None or said in done.stderr, done.stderr


def test_check_of_a_file(tmp_path):
    """What is not done in software, and what can match nothing."""
    path = tmp_path / "rules"
    path.write_text("\n".join([
        rule("eth"), rule("eth / gtp"), rule("eth / ipv4"), rule("ipv4 proto is 17"),
        rule("eth", "queue index 1"), "flow flush 0", rule("eth / ipv4", "passthru")]))
    lines = run("rule", "check", path).stdout.decode().splitlines()
    shadow = "{}:{}: ok, with a warning: line {} matches all that this rule matches before it"
    assert lines == ["ok, for NICs that take it",
                     f"{path}:2: ok, but not in software: item 'gtp': not matched in software",
                     shadow.format(path, 3, 1), shadow.format(path, 4, 3),
                     shadow.format(path, 5, 1), "ok",
                     "ok, in software: action 'passthru' is not given to NICs"]
    told = [json.loads(line) for line in
            run("rule", "check", path, "--json").stdout.decode().splitlines()]
    assert [line.get("software") for line in told] == [True, False, True, True, True, None, True]
    assert told[1]["why"] == "item 'gtp': not matched in software"
    assert "no meaning" in told[4]["note"] and "warning" in told[4]


@pytest.mark.parametrize("workers", [1, 2])
def test_replay(replay, rounds, tmp_path, workers):
    """A capture is decided by the same rules: its packets come in by port 0."""
    path = tmp_path / "rules"
    path.write_text("\n".join([rule("ipv4 / udp dst is 53"), rule("ipv4 ttl is 1"),
                               rule("ipv6", "mark id 7"), rule("eth / ipv4 / icmp type is 8"),
                               rule("ipv4", port=0, attributes="priority 1 transfer",
                                    actions="dec_ttl")]))
    result = replay("--workers", workers, "--rules", path, rounds)
    assert result.code == 0, result.stderr
    assert {why: n for why, n in result.summary["dropped"].items() if n} == {"rule": 4}
    # what belongs to no flow is decided by its Ethernet header, as in an engine that runs
    path.write_text("\n".join([rule("eth type is 0x0806"), rule("eth")]))
    result = replay("--workers", workers, "--rules", path, rounds)
    assert {why: n for why, n in result.summary["dropped"].items() if n} == {"rule": len(ROUND)}
    path.write_text(rule("eth type is 0x0806"))
    result = replay("--workers", workers, "--rules", path, rounds)
    assert {why: n for why, n in result.summary["dropped"].items() if n} == {"rule": 1}
    for text, said in ((rule("eth", port=1), "rules:1:13: port 1: the engine has ports 0 to 0"),
                       (rule("eth", "port_id id 0"), "rules:1:49: action 'port_id': packets of a "
                        "capture are not sent by a port")):
        path.write_text(text)
        result = run("replay", "--rules", path, rounds)
        assert result.code == 1 and said in result.stderr


@pytest.mark.parametrize("pattern, dropped", [("eth type is 0x0806", 0), ("eth", 1)])
def test_replay_of_another_link(replay, tmp_path, pattern, dropped):
    """Where there is no Ethernet header, a packet that is no flow's has nothing that a rule may ask for."""
    capture, rules = tmp_path / "cooked.pcap", tmp_path / "rules"
    with PcapWriter(str(capture), linktype=113) as writer:
        writer.write(CookedLinux(proto=0x0806) / ARP(psrc="10.6.0.1", pdst="10.6.0.2"))
    rules.write_text(rule(pattern))
    assert replay("--rules", rules, capture).summary["dropped"]["rule"] == dropped


@pytest.mark.skipif(not EXAMPLES.exists(), reason=f"no {EXAMPLES}")
def test_examples_of_the_guides():
    """Each rule is done in software, or refused with the one word that is not, and why."""
    lines = []
    for row in EXAMPLES.read_text().splitlines():
        if not row.startswith("#"):
            _, _, setup, command = row.split("\t")
            lines += [line for line in setup.split(";;") if line != "-"] + [command]
    told = [json.loads(line) for line in run(
        "rule", "check", "--json", stdin="\n".join(lines).encode()).stdout.decode().splitlines()]
    assert len(told) == len(lines)
    asked = [line for line in told if "software" in line]
    assert len(asked) > 60 and sum(line["software"] for line in asked) > 12
    for line in asked:
        assert line["software"] or re.match(
            r"(item|action|field|egress|ingress|group|actions|update)\b.*: .+|there is no ", line["why"]), line


def test_aged_rules(started, rounds):
    """A rule that no packet comes to ages and is destroyed when asked; one with packets is left."""
    running = started(f"capture={rounds},pace=20000", "--offload-rules-in-nic", "off")
    add(running, rule("ipv4 / udp dst is 53", "drop / age timeout 2"))
    add(running, rule("ipv4 src is 10.99.0.1", "drop / age timeout 2"))
    add(running, rule("ipv4 src is 10.99.0.2", "drop"))
    running.until(lambda: add(running, "flow aged 0")[0] == "Port 0 total aged flows: 1", "one is aged")
    told = add(running, "flow aged 0 destroy")
    assert told[0] == "Port 0 total aged flows: 1"
    assert re.fullmatch(r"#1, idle for [2-9] s: flow create .*10\.99\.0\.1.*", told[1])
    assert told[2:] == ["Flow rule #1 destroyed"]
    assert [line["number"] for line in running.ask("rule list")] == [0, 2]
    assert add(running, "flow query 0 0 age") == ["age: aged 0, seconds since the last packet 0"]
    running.stop(leaves=["records.json"], idle=False)


def test_aged_rules_of_a_nic(started, rounds):
    """What the NIC drops by a rule keeps it from ageing."""
    running = started(f"capture={rounds},pace=20000")
    add(running, rule("ipv4 / udp dst is 53", "drop / age timeout 4"))
    add(running, rule("ipv4 src is 10.99.0.1", "drop / age timeout 4"))
    running.until(lambda: [line["where"] for line in running.ask("rule list")] == ["nic", "nic"],
                  "the NIC has them")
    running.until(lambda: add(running, "flow aged 0")[0] != "Port 0 total aged flows: 0", "one is aged")
    told = add(running, "flow aged 0 destroy")
    assert told[0] == "Port 0 total aged flows: 1" and told[1].startswith("#1, idle for ")
    running.stop(leaves=["records.json"], idle=False)
