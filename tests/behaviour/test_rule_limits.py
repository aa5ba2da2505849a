# SPDX-License-Identifier: BSD-3-Clause
"""Limits of sources: which flows pass, against plain models, with any number of workers; and what is told of limits."""
import random

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6

import frames
from conftest import run

SECOND = 1_000_000
RIGHT = [
    ("source live_flows above 200", "drop"),
    ("ipv4 / tcp dst is 22 / source new_flows above 3 per minute", "log / reject"),
    ("ct state is new / source new_flows above 20 per second burst 40 ipv4_prefix 0 ipv6_prefix 64", "drop / count"),
]
WRONG = [
    ("source", "drop", "it needs `new_flows above N per TIME` or `live_flows above N`"),
    ("source live_flows above 2 new_flows above 3 per hour", "drop", "it has one limit; another one needs a rule of its own"),
    ("source new_flows above 5", "drop", "new_flows needs a time: per second, minute or hour"),
    ("source live_flows above 5 burst 3", "drop", "live_flows has neither per nor burst"),
    ("source live_flows above 0", "drop", "field 'live_flows' of item 'source': it is 1 to 1000000"),
    ("source new_flows above 9 per hour burst 1000001", "drop", "field 'burst' of item 'source': it is 1 to 1000000"),
    ("source live_flows above 5", "count", "the rule has to drop or reject"),
    ("source live_flows above 5", "jump group 1", "the rule has to drop or reject"),
    ("source live_flows above 5 / tcp flags is 2", "drop", "the rule may not ask for what packets of a flow differ in"),
    ("source live_flows above 5 / source live_flows above 6", "drop", "the rule has one already"),
    ("source live_flows is 5", "drop", "is: \"above\" is needed here"),
    ("source new_flows above 5 per second ipv4_prefix 33", "drop", "33: a number up to 32 is needed for ipv4_prefix"),
]


def rule(pattern, actions):
    return f"flow create 0 ingress pattern {pattern} / end actions {actions} / end"


def check(tmp_path, lines):
    (tmp_path / "rules").write_text("".join(f"{line}\n" for line in lines), encoding="ascii")
    return run("rule", "check", tmp_path / "rules").stdout.decode().splitlines()


def test_words(tmp_path):
    told = check(tmp_path, [rule(*right) for right in RIGHT])
    assert len(told) == len(RIGHT)
    for line in told:
        assert line.startswith("ok, in software: it ") or "it is a limit of its source's flows" in line, told


@pytest.mark.parametrize("pattern, actions, why", WRONG)
def test_what_makes_no_sense_is_refused(tmp_path, pattern, actions, why):
    assert check(tmp_path, [rule(pattern, actions)])[0].endswith(why)


def passed(result):
    """(source, source port) of the flows of which something passed."""
    return {(record["src"], record["sport"]) for record in result.records if record["packets"] > 0}


def flow(time, source, port, dport=53):
    version = IPv6 if ":" in source else IP
    return frames.frame(time, version(src=source, dst="2001:db8::53" if version is IPv6 else "192.0.2.53") /
                        UDP(sport=port, dport=dport))


@pytest.mark.parametrize("workers", [1, 4])
def test_limits_are_exact_with_any_number_of_workers(replay, tmp_path, workers):
    """Flows of a source come to any worker; as many as the limit says pass, of live and of new ones, whichever they are."""
    sources = [f"10.1.{number}.{number}" for number in range(20)] + [f"2001:db8:{number}::1" for number in range(1, 11)]
    written = [flow(0.001 * (number % 7), source, 1024 + number, dport)
               for source in sources for number in range(150) for dport in (53, 80)]
    (tmp_path / "rules").write_text("\n".join([
        rule("udp dst is 53 / source live_flows above 40", "drop"),
        rule("udp dst is 80 / source new_flows above 60 per hour", "drop")]) + "\n", encoding="ascii")
    result = replay("--rules", tmp_path / "rules", "--workers", workers, frames.write(tmp_path / "many.pcap", written))
    counted = {}
    for record in result.records:
        key = record["src"], record["dport"]
        counted[key] = counted.get(key, 0) + (record["packets"] > 0)
    assert counted == {(source, dport): 40 if dport == 53 else 60 for source in sources for dport in (53, 80)}


@pytest.mark.parametrize("seed", range(4))
def test_new_flows_pass_as_a_bucket_says(replay, tmp_path, seed):
    """To the microsecond: each source has a bucket of tokens, and a /24 is one source."""
    draw = random.Random(seed)
    rate, burst = draw.choice([(4, 4), (2, 5), (8, 1)])
    times = sorted(draw.randrange(1, 20 * SECOND) for _ in range(800))
    buckets, wanted, written = {}, set(), []
    for number, time in enumerate(times):
        source = f"10.2.{draw.randrange(12)}.{draw.randrange(1, 255)}"
        network = source.rpartition(".")[0]
        tokens, at = buckets.get(network, (burst * SECOND, 0))
        tokens = min(burst * SECOND, tokens + (time - at) * rate)
        if tokens >= SECOND:
            tokens -= SECOND
            wanted.add((source, 1024 + number))
        buckets[network] = tokens, time
        written.append(flow(time / SECOND, source, 1024 + number))
    (tmp_path / "rules").write_text(
        rule(f"source new_flows above {rate} per second burst {burst} ipv4_prefix 24", "drop") + "\n", encoding="ascii")
    result = replay("--rules", tmp_path / "rules", frames.write(tmp_path / "bucket.pcap", written))
    assert 0 < len(wanted) < len(times)
    assert passed(result) == wanted


def test_what_is_told(started, tmp_path):
    """A flow's explanation has the limits that count it, or that it is above; a trace goes on behind those that it is not."""
    (tmp_path / "rules").write_text(
        "\n".join([rule("ipv4 / source live_flows above 2", "drop"), rule("ipv4 / udp", "count")]) + "\n", encoding="ascii")
    path = frames.write(tmp_path / "five.pcap", [flow(0.001 * number, "10.0.0.7", 1000 + number) for number in range(5)])
    running = started(f"capture={path},passes=1", "--rules", tmp_path / "rules")
    running.until(lambda: running.wire()["received"] == 5, "all packets")
    assert running.wire()["out"] == 2
    ends = {"src": "10.0.0.7", "dst": "192.0.2.53", "dport": 53, "proto": "udp"}
    limit = {"of": "live_flows", "source": "10.0.0.7", "live_flows": 2, "limit": 2, "above": True, "port": 0, "number": 0}
    for sport, accepted in ((1001, True), (1002, False)):
        (told,) = running.ask("flow explain", **ends, sport=sport)
        assert (told["accepted"], told["limits"]) == (accepted, [limit])
    # what begins is above; what was let pass is asked about no limit; another source is below
    *_, last = running.ask("rule trace", **ends, sport=1003)
    assert (last["number"], last["limit"]["above"], last["limit"]["live_flows"]) == (0, True, 2)
    *_, last = running.ask("rule trace", **ends, sport=1000)
    assert last["number"] == 1 and "limit" not in last
    results = [step for step in running.ask("rule trace", packet="0 ipv4 src is 10.0.0.8 / udp dst is 53 / end")
               if step["step"] == "result"]
    assert [(step["number"], step.get("limit", {}).get("above")) for step in results] == [(0, False), (1, None)]
    # when one ends the source has one less
    running.ask("flow kill", **ends, sport=1000)
    limits = [step["limit"] for step in running.ask("rule trace", **ends, sport=1003) if "limit" in step]
    assert [(limit["live_flows"], limit["above"]) for limit in limits] == [(1, False)]
    running.stop(leaves=["records.json"])
