# SPDX-License-Identifier: BSD-3-Clause
"""What is measured of flows that ask for it: round-trip times, segments sent again or out of order, windows, gaps."""
import json

import pytest
from scapy.all import IP, TCP, UDP, Ether, IPv6, Raw, wrpcap

import engine
from conftest import run
from exports import exported, unix_us
from mixture import make_mixture

CLIENT, SERVER = "10.0.0.1", "10.0.1.1"
PLAIN = {"retransmissions": 0, "reverse_retransmissions": 0, "out_of_order": 0, "reverse_out_of_order": 0,
         "zero_windows": 0, "reverse_zero_windows": 0}


class Talk:
    """A conversation, packet by packet, at times in microseconds."""

    def __init__(self, sport=1000):
        self.packets, self.sport = [], sport

    def say(self, at_us, end, flags, seq, ack=0, data=b"", window=1000):
        ports = {"sport": self.sport, "dport": 443} if end == CLIENT else {"sport": 443, "dport": self.sport}
        packet = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(
            src=end, dst=SERVER if end == CLIENT else CLIENT) / TCP(
                flags=flags, seq=seq, ack=ack, window=window, **ports) / Raw(data)
        packet.time = 1700000000 + at_us / 1000000
        self.packets.append(packet)

    def shake_hands(self):
        self.say(0, CLIENT, "S", 100)
        self.say(20000, SERVER, "SA", 500, 101)
        self.say(25000, CLIENT, "A", 101, 501)


def measured(replay, tmp_path, packets, *options, what="yes"):
    path = tmp_path / "talk.pcap"
    wrpcap(str(path), sorted(packets, key=lambda packet: packet.time))
    keys = set(PLAIN) | {"rtt_us", "answer_us", "reverse_answer_us", "max_gap_us", "reverse_max_gap_us"}
    return [{key: value for key, value in record.items() if key in keys}
            for record in replay("--measure", what, *options, path).records]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_handshake_and_gaps(replay, tmp_path, workers):
    talk = Talk()
    talk.shake_hands()
    talk.say(30000, CLIENT, "PA", 101, 501, b"x" * 100)
    talk.say(1030000, CLIENT, "PA", 201, 501, b"x" * 100)
    talk.say(1031000, SERVER, "A", 501, 301)
    assert measured(replay, tmp_path, talk.packets, "--workers", workers) == [
        PLAIN | {"rtt_us": 25000, "answer_us": 5000, "reverse_answer_us": 20000,
                 "max_gap_us": 1000000, "reverse_max_gap_us": 1011000}]


def test_a_handshake_that_was_asked_for_twice_tells_no_time(replay, tmp_path):
    """Whether the SYN-ACK answers the first SYN or the second is not known."""
    talk = Talk()
    talk.say(0, CLIENT, "S", 100)
    talk.say(1000, CLIENT, "S", 100)
    talk.say(20000, SERVER, "SA", 500, 101)
    talk.say(25000, CLIENT, "A", 101, 501)
    (record,) = measured(replay, tmp_path, talk.packets)
    assert record == PLAIN | {"retransmissions": 1, "max_gap_us": 24000, "reverse_max_gap_us": 0}


@pytest.mark.parametrize("late_us, what", [(5000, "out_of_order"), (200000, "retransmissions")])
def test_a_gap_is_filled_soon_or_late(replay, tmp_path, late_us, what):
    """Within the time of the handshake a segment was overtaken; later it is another copy."""
    talk = Talk()
    talk.shake_hands()
    talk.say(30000, CLIENT, "A", 101, 501, b"a" * 50)
    talk.say(30100, CLIENT, "A", 201, 501, b"c" * 50)
    talk.say(30100 + late_us, CLIENT, "A", 151, 501, b"b" * 50)
    (record,) = measured(replay, tmp_path, talk.packets)
    assert {key: record[key] for key in PLAIN} == PLAIN | {what: 1}


def test_what_counts_as_sent_again(replay, tmp_path):
    talk = Talk()
    talk.shake_hands()
    talk.say(30000, CLIENT, "A", 101, 501, b"a" * 100)
    talk.say(31000, CLIENT, "A", 101, 501, b"a" * 100)    # all of it again
    talk.say(32000, CLIENT, "A", 151, 501, b"a" * 100)    # a half
    talk.say(33000, CLIENT, "A", 250, 501, b"a")          # a keep-alive
    talk.say(34000, SERVER, "A", 501, 251, window=0)
    talk.say(35000, SERVER, "A", 501, 251, window=0)
    talk.say(36000, SERVER, "FA", 501, 251)
    talk.say(37000, SERVER, "FA", 501, 251)
    talk.say(38000, CLIENT, "RA", 251, 502, window=0)     # no window of anybody's
    (record,) = measured(replay, tmp_path, talk.packets)
    assert {key: record[key] for key in PLAIN} == PLAIN | {
        "retransmissions": 2, "reverse_retransmissions": 1, "reverse_zero_windows": 2}


def test_only_those_that_are_asked_for(replay, tmp_path):
    talk, other = Talk(), Talk(2000)
    talk.shake_hands()
    other.shake_hands()
    datagram = Ether(dst="02:00:00:00:00:02") / IP(src=CLIENT, dst=SERVER) / UDP(sport=5, dport=53) / Raw(b"x")
    datagram.time = 1700000000
    packets = talk.packets + other.packets + [datagram]
    told = measured(replay, tmp_path, packets, what="10.0.0.0/24 port 2000 proto tcp")
    assert sorted(len(record) for record in told) == [0, 0, len(PLAIN) + 5]
    told = measured(replay, tmp_path, packets)
    assert {"max_gap_us": 0, "reverse_max_gap_us": 0} in told
    assert measured(replay, tmp_path, packets, what="no") == [{}, {}, {}]


def in_order(record):
    return json.dumps(record, sort_keys=True)


def test_records_are_otherwise_the_same(replay, captures):
    """Measured flows take another way through the engine, and end up with the same records."""
    for name in ("skype.pcap", "reddit-ipv6.pcap", "ipv6-fragments.pcap", "tcp-lifecycle/ssh-dups.pcap"):
        path = captures / name
        plain, told = replay(path).records, replay("--measure", "yes", path).records
        assert told and all("max_gap_us" in record for record in told)
        told = [{key: record[key] for key in plain[0].keys() & record.keys() | {
            key for key in record if key.startswith(("icmp", "reverse_icmp"))}} for record in told]
        assert sorted(map(in_order, told)) == sorted(map(in_order, plain))


@pytest.mark.usefixtures("simulated_nic")
@pytest.mark.parametrize("how", ["mark", "full"])
def test_what_the_nic_has_is_measured_too(started, tmp_path, how):
    """With marks at most: what a card forwards alone nobody sees."""
    path, frames = make_mixture(tmp_path)
    passes = 60
    running = started(f"profile=cx5,capture={path},passes={passes},pace=20000", "--offload", "on", "--offload-mode", how,
                      "--offload-threshold", 0, "--measure", "yes")
    running.until(lambda: running.wire()["received"] == passes * len(frames), "all packets")
    for flow in running.ask("flow list"):
        assert "max_gap_us" in flow and flow["offload"].get("how") in (None, "mark")
    running.stop(leaves=["records.json"])
    records = engine.read_records(running.directory / "records.json")
    assert all("max_gap_us" in record for record in records)
    assert sum(record["packets"] + record["reverse_packets"] for record in records) == passes * len(
        [frame for frame in frames if frame.haslayer(IP) or frame.haslayer(IPv6)])
    assert all(record["retransmissions"] + record["reverse_retransmissions"] > 0
               for record in records if record["proto"] == 6 and record["packets"] > 60)


ELEMENTS = {"answer_us": "AnswerMicroseconds", "retransmissions": "RetransmissionDeltaCount",
            "out_of_order": "OutOfOrderDeltaCount", "zero_windows": "ZeroWindowDeltaCount",
            "max_gap_us": "MaximumGapMicroseconds"}


def told_by_json(records):
    """By the ends of a way and when the flow began: what was measured of it."""
    return {(record[source], record[target], record[port], unix_us(record["start"])): {
                element: record.get(before + key, 0) for key, element in ELEMENTS.items()}
            for record in records for before, source, target, port in (
                ("", "src", "dst", "sport"), ("reverse_", "dst", "src", "dport"))
            if record[before + "packets"] and "sport" in record}


def told_by_ipfix(flows):
    told = {}
    for flow in flows:
        version = "IPv6" if "sourceIPv6Address" in flow else "IPv4"
        ends = [flow[f"source{version}Address"], flow[f"destination{version}Address"]]
        begun = flow["flowStartMicroseconds"]
        told[(*ends, flow["sourceTransportPort"], begun)] = {
            element: flow["millrace" + element] for element in ELEMENTS.values()}
        if flow.get("reverse packetDeltaCount"):
            told[(*ends[::-1], flow["destinationTransportPort"], begun)] = {
                element: flow["reverseMillrace" + element] for element in ELEMENTS.values()}
    return told


@pytest.mark.parametrize("options", ["?pen=32473", "?biflow=yes&pen=32473"])
@pytest.mark.parametrize("what, n_talks", [("yes", 2), ("10.0.0.0/8 port 1000 proto tcp", 1)])
def test_ipfix_tells_the_same(tmp_path, options, what, n_talks):
    """In records of those flows alone; what was dropped, which a report keeps in the same place, is nothing."""
    talk, other = Talk(), Talk(2000)
    for one in (talk, other):
        one.shake_hands()
        one.say(30000, CLIENT, "PA", 101, 501, b"x" * 100)
        one.say(30100, CLIENT, "PA", 301, 501, b"x" * 100)
        one.say(30200, CLIENT, "PA", 201, 501, b"x" * 100)
        one.say(90000, CLIENT, "PA", 301, 501, b"x" * 100)
        one.say(91000, SERVER, "A", 501, 401, window=0)
    ask = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IPv6(src="2001:db8::1", dst="2001:db8::2") / UDP(
        sport=1000, dport=443) / Raw(b"?")
    for at in (0, 0.25):
        again = ask.copy()
        again.time = 1700000000 + at
        talk.packets.append(again)
    path = tmp_path / "talk.pcap"
    wrpcap(str(path), sorted(talk.packets + other.packets, key=lambda packet: packet.time))
    decoder, records = exported(tmp_path, path, options, "--measure", what)
    measured_ones = [flow for flow in decoder.flows if "millraceAnswerMicroseconds" in flow]
    assert told_by_ipfix(measured_ones) == told_by_json([one for one in records if "max_gap_us" in one])
    assert sum(flow["millraceRetransmissionDeltaCount"] for flow in measured_ones) == n_talks
    assert sum(flow["millraceOutOfOrderDeltaCount"] for flow in measured_ones) == n_talks
    assert (len(measured_ones) == len(decoder.flows)) == (what == "yes")
    assert all(flow["millraceBlockedPacketDeltaCount"] == flow["millraceRuleDroppedPacketDeltaCount"] == 0
               for flow in decoder.flows)


@pytest.mark.parametrize("what, why", [
    ("maybe", "column 1"), ("10.0.0.0/8 prot tcp", "column 12"), ("10.0.0.0/8 for 3", "belong to blocks"),
    ("10.0.0.0/8 reason x", "belong to blocks"), ("10.0.0.0/33", "column 1"), ("", "column 1"), ("x" * 400, "too long")])
def test_what_it_does_not_understand(what, why):
    result = run("replay", "--measure", what, "none.pcap")
    assert result.code == 2
    assert "--measure" in result.stderr and why in result.stderr
