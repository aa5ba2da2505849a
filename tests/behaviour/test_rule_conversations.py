# SPDX-License-Identifier: BSD-3-Clause
"""Rules of conversations: the verdict of every packet, against the meaning in plain Python (tests/conversations.py)."""
import json
import pathlib
import random

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.packet import Raw

import frames
from conftest import run
from conversations import draw_conversation, draw_policy

CONVERSATIONS = 120
MANUAL = pathlib.Path(__file__).parents[2] / "docs" / "rules.md"
OUT_AND_BACK = """\
flow create 0 ingress pattern ct state is new,related / eth / end actions count / end
flow create 0 transfer pattern ct state is established,related / eth / end actions count / end
flow create 0 transfer pattern eth / ipv4 / end actions drop / end
"""


def make(time, packet):
    """A frame whose length says which packet of its conversation it is: sums of different packets differ."""
    upper = UDP(sport=packet.sport, dport=packet.dport)
    if packet.proto == "tcp":
        upper = TCP(sport=packet.sport, dport=packet.dport, flags="S" if packet.syn else "A", seq=1, ack=1)
    elif packet.proto == "icmp":
        upper = ICMP(type=8 if packet.asks else 0)
    return frames.frame(time, IP(src=packet.src, dst=packet.dst, ttl=packet.ttl) / upper /
                        Raw(b"x" * (1 << packet.number)))


def told(records):
    """By both ends: the numbers of the packets that passed."""
    carried = {}
    for record in records:
        ends = frozenset(((record["src"], record["sport"]), (record["dst"], record["dport"])))
        packets = record["packets"] + record["reverse_packets"]
        header = 54 if record["proto"] == 6 else 42
        carried[ends] = carried.get(ends, 0) + record["bytes"] + record["reverse_bytes"] - header * packets
    return {ends: {number for number in range(16) if bits >> number & 1} for ends, bits in carried.items()}


def check(replay, tmp_path, policy, seed, workers=1):
    draw = random.Random(seed)
    wanted, written = {}, []
    for number in range(CONVERSATIONS):
        packets, passed = draw_conversation(draw, number, policy)
        first = packets[0]
        wanted[frozenset(((first.src, first.sport), (first.dst, first.dport)))] = {
            packet.number for packet, passes in zip(packets, passed) if passes}
        times = sorted(draw.uniform(0, 3) for _ in packets)
        written.append([make(time, packet) for time, packet in zip(times, packets)])
    (tmp_path / "rules").write_text(policy.text())
    result = replay("--rules", tmp_path / "rules", *policy.options(), "--workers", workers,
                    frames.write(tmp_path / "drawn.pcap", *written))
    found = told(result.records)
    differ = {ends: (found.get(ends), passed) for ends, passed in wanted.items() if found.get(ends) != passed}
    assert not differ, f"{policy.text()}{policy.options()} {differ}"


@pytest.mark.parametrize("seed", range(40))
def test_drawn_policies(replay, tmp_path, seed):
    """Some thousand conversations with policies of a few rules: each packet passes or does not as the meaning has it."""
    check(replay, tmp_path, draw_policy(seed), seed, workers=1 + seed % 2)


def checked(tmp_path, text, *options):
    (tmp_path / "rules").write_text(text)
    done = run("rule", "check", "--json", *options, tmp_path / "rules")
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def test_the_rules_of_the_manual_are_right(tmp_path):
    told = checked(tmp_path, OUT_AND_BACK)
    assert [line["rule"] for line in told] == OUT_AND_BACK.splitlines()
    assert all(line["software"] and "warning" not in line for line in told)
    assert OUT_AND_BACK.replace("flow create", "    flow create") in MANUAL.read_text(encoding="utf-8")


WAITS = "the rule is for conversations that have begun, and no rule lets any begin"
BACK = "flow create 0 transfer pattern ct state is established / eth / end actions count / end"
REST = "flow create 0 transfer priority 9 pattern eth / end actions drop / end"


@pytest.mark.parametrize("lines, warned", [
    ([BACK, REST], [True, False]),
    ([REST, BACK], [False, True]),
    ([BACK, REST, BACK.replace("established", "new")], [False, False, False]),
    ([BACK.replace("ct state is established", "direction is reverse"), REST], [True, False]),
    ([BACK], [False]),
    ([BACK, REST.replace("eth", "eth / ipv4")], [False, False]),
], ids=["nothing", "order", "new", "direction", "open", "rest"])
def test_what_waits_in_vain_is_told(tmp_path, lines, warned):
    told = [line.get("warning") for line in checked(tmp_path, "\n".join(lines) + "\n")]
    assert [text == WAITS for text in told] == warned


def test_cards_keep_off(tmp_path):
    """A rule that asks for a state is no card's, nor one that drops what may be replies that follow another, wherever."""
    drop = "flow create 0 transfer priority {} pattern eth / ipv4 {} is 192.0.2.1 / end actions drop / end\n"
    asks = "flow create 0 transfer pattern ct state is new / eth / ipv4 / end actions drop / end\n"
    goes = "flow create 0 transfer priority 5 pattern eth / ipv4 dst is 192.0.2.1 / end actions count / end\n"
    (told,) = checked(tmp_path, asks)
    assert (told["where"], told["why"]) == (
        "software", "it asks for the state of a conversation, which NICs do not know")
    for options, replies in (((), False), (("--rules-replies", "follow"), True)):
        told = checked(tmp_path, goes + drop.format(1, "src") + drop.format(1, "dst"), *options)
        # what both ends may be is not known to be apart from the replies
        assert told[1].get("why") == ("replies that follow another rule may be among its packets" if replies else None)
        assert told[1]["where"] == ("software" if replies else "nic")


def test_what_is_told_of_a_reply_that_follows(started, tmp_path):
    (tmp_path / "rules").write_text(
        "flow create 0 transfer replies follow pattern eth / ipv4 src is 10.0.0.1 / end actions count / end\n"
        "flow create 0 transfer pattern eth / end actions drop / end\n")
    path = frames.write(tmp_path / "pair.pcap", [frames.udp(0, "10.0.0.1", 1000, "10.0.0.2", 53),
                                                 frames.udp(1, "10.0.0.2", 53, "10.0.0.1", 1000),
                                                 frames.udp(2, "10.0.0.2", 53, "10.0.0.1", 1001)])
    running = started(f"capture={path},passes=1", "--rules", tmp_path / "rules")
    running.until(lambda: running.wire()["received"] == 3, "all packets")
    assert running.wire()["out"] == 2
    ends = {"src": "10.0.0.1", "sport": 1000, "dst": "10.0.0.2", "dport": 53, "proto": "udp"}
    back = {"src": "10.0.0.2", "sport": 53, "dst": "10.0.0.1", "dport": 1000, "proto": "udp"}
    (told,) = running.ask("flow explain", **ends)
    assert (told["accepted"], told["ct_state"], told["reverse_ct_state"]) == (True, "new", "established")
    assert told["reverse_decided_by"]["number"] == 0 and told["reverse_decided_by"]["follows"]
    assert "follows" not in told["decided_by"]
    first, second = running.ask("rule trace", **back)
    assert (first["ct_state"], first["direction"]) == ("established", "reverse")
    assert (second["step"], second["number"]) == ("follows", 0)
    (told,) = running.ask("flow explain", **{**back, "dport": 1001})
    assert (told["accepted"], told["ct_state"]) == (False, "new")
    # no rule, no conversation
    running.ask("rule del", port=0, number=0)
    running.until(lambda: running.ask("flow explain", **ends)[0]["reverse_verdict"] == "drop", "a verdict that drops")
    running.stop(leaves=["records.json"])
