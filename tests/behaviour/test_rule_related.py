# SPDX-License-Identifier: BSD-3-Clause
"""ICMP errors are related to the flow that they quote, and pass as it does; forged ones quote nothing that is there."""
import collections
import json

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP, fragment
from scapy.layers.inet6 import (ICMPv6DestUnreach, ICMPv6PacketTooBig, ICMPv6TimeExceeded, IPv6, IPv6ExtHdrFragment,
                                fragment6)
from scapy.packet import Raw

import frames

RELATED = """\
flow create 0 transfer pattern ct state is related / eth / ipv4 / end actions count / end
flow create 0 transfer pattern ct state is related / eth / ipv6 / end actions count / end
flow create 0 transfer pattern ct state is established / eth / end actions count / end
"""
OUT = """\
flow create 0 transfer {replies}pattern {state}eth / ipv4 src spec 10.0.0.0 src prefix 8 / end actions count / end
flow create 0 transfer {replies}pattern {state}eth / ipv6 src spec fd00:: src prefix 16 / end actions count / end
flow create 0 transfer priority 9 pattern eth / end actions drop / end
"""
POLICIES = {
    "match": RELATED + OUT.format(replies="", state="ct state is new / "),
    "follow": OUT.format(replies="replies follow ", state=""),
}
INSIDE, OUTSIDE = {4: "10.0.0.{}", 6: "fd00::{}"}, {4: "198.51.100.{}", 6: "2001:db8::{}"}


def upper(number, seq=1000):
    kind = (UDP, TCP)[number % 2]
    ports = {"sport": 1000 + number, "dport": 53}
    return (kind(**ports) if kind is UDP else kind(flags="S", seq=seq, **ports)) / Raw(b"x" * 8)


def errors(version):
    """Each kind, without what it quotes; those of version 4 have a next-hop MTU, or none."""
    if version == 4:
        return [ICMP(type=3, code=3), ICMP(type=3, code=4, nexthopmtu=1300), ICMP(type=11), ICMP(type=3, code=1)]
    return [ICMPv6DestUnreach(code=4), ICMPv6PacketTooBig(mtu=1300), ICMPv6TimeExceeded(), ICMPv6DestUnreach(code=1)]


def error(router, about, kind, to=None, size=None):
    """From a router, about a packet; to its sender unless `to` is another."""
    quoted = bytes(about)[:size]
    return frames.network(router, to or about.src) / kind / Raw(quoted)


def scene(version):
    """Packets of flows, then errors: those that quote one of the flows, and those that are made up."""
    inside, outside = INSIDE[version].format, OUTSIDE[version].format
    network, kinds = frames.network, errors(version)
    flows, real, forged = [], [], []
    for number in range(24):
        ours, theirs = inside(number + 1), outside(number + 1)
        packet = network(ours, theirs) / upper(number)
        flows.append(packet)
        kind = kinds[number % len(kinds)]
        real.append(error(outside(100 + number), packet, kind))
        # of other ports, from somebody else, of nobody who is there, cut, and to somebody else than who sent it
        forged.append(error(outside(200), network(ours, theirs) / upper(number + 2), kind))
        forged.append(error(outside(201), network(ours, outside(99)) / upper(number), kind))
        forged.append(error(outside(202), network(inside(200), theirs) / upper(number), kind))
        forged.append(error(outside(203), packet, kind, size=22 if version == 4 else 42))
        forged.append(error(outside(204), packet, kind, to=inside(number + 2)))
        if TCP in packet:
            # which its sender cannot have sent
            forged.append(error(outside(205), network(ours, theirs) / upper(number, seq=2**31), kind))
        # what was not let pass begins nothing: the error would go out
        dropped = network(outside(150), ours) / upper(number)
        flows.append(dropped)
        forged.append(error(outside(206), dropped, kind))
    # a later fragment is quoted with the ports of its first; one of a datagram that nobody sent has none
    for known in (True, False):
        ours, theirs = inside(60 + known), outside(60)
        whole = network(ours, theirs) / UDP(sport=7, dport=53) / Raw(b"y" * 1600)
        if version == 4:
            whole.id = 77
            pieces = fragment(whole, 800)
        else:
            pieces = fragment6(network(ours, theirs) / IPv6ExtHdrFragment(id=77) / whole[IPv6].payload, 900)
        if known:
            flows.extend(pieces)
        (real if known else forged).append(error(outside(160 + known), pieces[1], kinds[0]))
    return flows, real, forged


def write(path, packets):
    # errors come after what they quote, and each from an address of its own flow
    return frames.write(path, [frames.frame(number / 10000, packet) for number, packet in enumerate(packets)])


def passed(records):
    """Packets of ICMP that passed, by who sent them and to whom."""
    counts = collections.Counter()
    for record in records:
        if record["proto"] in (1, 58):
            counts[record["src"], record["dst"]] += record["packets"]
            counts[record["dst"], record["src"]] += record["reverse_packets"]
    return counts


def ends(packet):
    return packet.src, packet.dst


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_in_replay(replay, tmp_path, version, name, workers):
    """Every error that quotes a flow passes, and none that was made up, however many workers there are."""
    flows, real, forged = scene(version)
    (tmp_path / "rules").write_text(POLICIES[name])
    result = replay("--rules", tmp_path / "rules", "--workers", workers, write(tmp_path / "all.pcap", flows + real + forged))
    counts = passed(result.records)
    assert {key: count for key, count in counts.items() if count} == dict(collections.Counter(map(ends, real)))
    # they are noted at the flows that they quote, whatever became of them
    noted = sum(record.get("icmp_errors", 0) for record in result.records)
    assert noted == len(real) + sum(packet.src == OUTSIDE[version].format(206) for packet in forged)


@pytest.mark.usefixtures("simulated_nic")
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("options", ["--workers 1", "--workers 2", "--workers 2 --threads split"])
def test_on_ports(started, tmp_path, name, options):
    """The same between workers, which ask each other. They see the packets of a round in no order among them."""
    packets, real, forged = ([*four, *six] for four, six in zip(scene(4), scene(6)))
    (tmp_path / "rules").write_text(POLICIES[name])
    capture = write(tmp_path / "all.pcap", packets + real + forged)
    running = started(f"capture={capture},pace=20000", "--rules", tmp_path / "rules", *options.split())
    wanted = set(map(ends, real))
    running.until(lambda: wanted <= {key for key, count in passed(running.flows()).items() if count}, "all real ones pass")
    received = running.wire()["received"]
    running.until(lambda: running.wire()["received"] > received + 4 * len(packets + real + forged), "further rounds")
    running.stop(leaves=["records.json"], idle=False)
    with open(running.directory / "records.json", encoding="ascii") as lines:
        counts = passed(map(json.loads, lines))
    assert {key for key, count in counts.items() if count} == wanted
