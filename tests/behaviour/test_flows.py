# SPDX-License-Identifier: BSD-3-Clause
"""What becomes of conversations: their records, from beginning to end."""
import collections
import struct

import pytest
from scapy.layers.inet6 import (IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment,
                                IPv6ExtHdrHopByHop, IPv6ExtHdrRouting, UDP)
from scapy.layers.sctp import SCTP, SCTPChunkInit
from scapy.packet import Raw

import frames

A, B, C = "10.0.0.1", "10.0.0.2", "10.0.0.3"
A6, B6 = "fd00::1", "fd00::2"


@pytest.fixture(name="made")
def make_and_replay(tmp_path, replay):
    """made(packets..., args=[...]): writes a capture and replays it."""
    def made(*packets, args=(), **more):
        return replay(*args, frames.write(tmp_path / "made.pcap", *packets, **more))
    return made


def pick(record, *keys):
    return tuple(record[key] for key in keys)


def ends(record):
    return pick(record, "src", "sport", "dst", "dport")


def counters(record):
    return pick(record, "packets", "bytes", "reverse_packets", "reverse_bytes")


def total(records):
    """The sums that records of one key add up to."""
    return tuple(map(sum, zip(*map(counters, records))))


def much_later(time=100000):
    """A ping so long after all else that everything else has ended by then."""
    return frames.ping(time, "10.9.9.1", "10.9.9.2")


def without_ping(result):
    return [record for record in result.records if record["src"] != "10.9.9.1"]


# ---------------------------------------------------------------------------------- the record


def test_every_key_of_the_record(made):
    """The whole line, byte for byte: keys, their order, no blanks, times in UTC."""
    result = made(frames.Tcp(0, A, 1025, B, 80).open().talk().close())
    assert result.stdout.decode() == (
        '{"version":4,"proto":6,"src":"10.0.0.1","sport":1025,"dst":"10.0.0.2","dport":80,'
        '"wire":0,"zone":0,"packets":6,"bytes":424,"reverse_packets":3,"reverse_bytes":1162,'
        '"start":"2026-11-20T08:00:00.000000Z","end":"2026-11-20T08:00:00.080000Z",'
        '"state":"ended","end_reason":"fin","tcp_flags":27,"reverse_tcp_flags":27,'
        '"icmp_errors":0,"offload":{"packets":0,"state":"software","reason":"no_nic"}}\n')


def test_two_captures_have_names(tmp_path, replay):
    """With more than one capture each record says which; with one it does not."""
    first = frames.write(tmp_path / "first.pcap", frames.udp(0, A, 1, B, 2))
    second = frames.write(tmp_path / "second.pcap", frames.udp(0, A, 1, B, 2))
    assert [record["file"] for record in replay(first, second).records] == [
        str(first), str(second)]
    assert "file" not in replay(first).records[0]


# ------------------------------------------------------------------------------- life and death


def test_tcp_fin(made):
    result = made(frames.Tcp(0, A, 1025, B, 80).open().talk(times=5).close(), much_later())
    (record,) = without_ping(result)
    assert record["end_reason"] == "fin"
    assert pick(record, "packets", "reverse_packets") == (14, 7)


def test_tcp_fin_of_the_responder(made):
    """The initiator is who opened, whoever closes."""
    result = made(frames.Tcp(0, B, 1025, A, 80).open().talk().close(end=1), much_later())
    (record,) = without_ping(result)
    assert ends(record) == (B, 1025, A, 80)
    assert record["end_reason"] == "fin"


def test_tcp_rst(made):
    result = made(frames.Tcp(0, A, 1025, B, 80).open().talk().reset(), much_later())
    (record,) = without_ping(result)
    assert record["end_reason"] == "rst"
    assert record["reverse_tcp_flags"] & frames.RST


def test_refused_connection(made):
    tcp = frames.Tcp(0, A, 1025, B, 80).segment(0, frames.SYN).reset(1)
    (record,) = without_ping(made(tcp, much_later()))
    assert record["end_reason"] == "rst"
    assert counters(record) == (1, 54, 1, 54)


def test_blind_rst_ends_nothing(made):
    """An RST far outside the window does not end the flow (RFC 5961 section 3)."""
    tcp = frames.Tcp(0, A, 1025, B, 80).open().talk()
    tcp.segment(1, frames.RST, offset=1 << 30).talk().close()
    (record,) = without_ping(made(tcp, much_later()))
    assert record["end_reason"] == "fin"
    assert record["packets"] + record["reverse_packets"] == 13


def test_tcp_idle(made):
    (record,) = without_ping(made(frames.Tcp(0, A, 1025, B, 80).open().talk(), much_later()))
    assert record["end_reason"] == "idle"
    assert record["end"] == "2026-11-20T08:00:00.050000Z", "the last packet, not the time-out"


def test_shutdown(made):
    """What still lives when the capture ends."""
    (record,) = made(frames.Tcp(0, A, 1025, B, 80).open().talk()).records
    assert pick(record, "state", "end_reason") == ("ended", "shutdown")


def test_same_ports_again(made):
    """A second connection on the ports of a closed one is another flow."""
    first = frames.Tcp(0, A, 1025, B, 80).open().talk().close()
    second = frames.Tcp(1, A, 1025, B, 80)
    second.next = [900000, 7000000]
    result = made(first, second.open().talk(times=2).close())
    assert sorted(record["packets"] for record in result.records) == [6, 8]
    assert {record["end_reason"] for record in result.records} == {"fin"}


def test_udp(made):
    """Both directions are one flow, whose initiator sent first."""
    result = made(frames.udp(0, B, 5353, A, 53, size=30), frames.udp(0.1, A, 53, B, 5353, size=90),
                  frames.udp(0.2, B, 5353, A, 53, size=30))
    (record,) = result.records
    assert ends(record) == (B, 5353, A, 53)
    assert counters(record) == (2, 144, 1, 132)
    assert pick(record, "tcp_flags", "reverse_tcp_flags") == (0, 0)


def test_udp_idle_makes_two(made):
    """A pause beyond the time-out: two records, and they add up."""
    packets = [frames.udp(time, A, 1000, B, 53) for time in (0, 1, 5000, 5001)]
    first, second = made(packets).records
    assert pick(first, "packets", "end_reason") == (2, "idle")
    assert pick(second, "packets", "end_reason") == (2, "shutdown")
    assert second["start"] == "2026-11-20T09:23:20.000000Z"


def test_timeout_option(made):
    """--timeout NAME=SECONDS sets one of them."""
    packets = [frames.udp(time, A, 1000, B, 53) for time in (0, 10, 20, 30)]
    assert len(made(packets).records) == 1
    assert len(made(packets, args=["--timeout", "udp=5"]).records) == 4


def test_active_records_add_up(made):
    """A long flow is reported while it lives; each report begins anew."""
    packets = [frames.udp(time, A, 1000, B, 53) for time in range(0, 300, 10)]
    result = made(packets, args=["--active", "60"])
    records = result.records
    assert len(records) >= 4
    assert [record["end_reason"] for record in records] == (
        ["active"] * (len(records) - 1) + ["shutdown"])
    assert total(records) == (30, 30 * 62, 0, 0)
    for before, after in zip(records, records[1:]):
        assert before["end"] <= after["start"], "no report overlaps the next"


def test_eviction(made):
    """A table too small for its flows: some end early, every packet is still told of."""
    packets = [frames.udp(0.001 * i, A, 1024 + i, B, 53) for i in range(5000)]
    result = made(packets, args=["--flows", "1024"])
    reasons = collections.Counter(record["end_reason"] for record in result.records)
    assert len(result.records) == 5000
    assert reasons["evicted"] == 5000 - 1024
    assert set(reasons) <= {"evicted", "shutdown", "idle"}


def test_eviction_spares_the_established(made):
    """A flood of half-open connections does not push out what is open."""
    good = frames.Tcp(0, A, 1025, B, 80, step=0.5).open().talk(times=3).close()
    flood = [frames.Tcp(1.2 + 0.0004 * i, C, 1024 + i, B, 80).segment(0, frames.SYN).packets[0]
             for i in range(5000)]
    result = made(good, flood, args=["--flows", "1024"])
    (record,) = [record for record in result.records if record["src"] == A]
    assert record["end_reason"] == "fin"


def test_eviction_takes_the_oldest(made):
    """Of many that have been silent ever since, the first one goes, not the last."""
    flows = [frames.Tcp(n, f"10.0.1.{n + 1}", 1025, B, 80).open() for n in range(100)]
    late = frames.udp(101, A, 1000, B, 53)
    records = made(*flows, late, args=("--flows", 100)).records
    (evicted,) = [record for record in records if record["end_reason"] == "evicted"]
    assert evicted["src"] == "10.0.1.1"


def test_eviction_takes_the_idlest(made):
    """With open flows only: the oldest flow of all stays, since it still talks."""
    def exchange(time, number):
        port = 1024 + number
        return [frames.udp(time, A, port, B, 53), frames.udp(time + 0.01, B, 53, A, port)]

    first = [exchange(0.1 * number, number) for number in range(64)]
    busy = [exchange(0.05 + 0.1 * tick, 0) for tick in range(63, 94)]
    later = [exchange(0.1 * number, number) for number in range(64, 94)]
    result = made(*first, *busy, *later, args=["--flows", "64"])
    reasons = {record["sport"] - 1024: record["end_reason"] for record in result.records}
    assert len(result.records) == 94, "no flow twice"
    assert reasons[0] == "shutdown"
    assert sorted(number for number, why in reasons.items() if why == "evicted") == (
        list(range(1, 31)))


# -------------------------------------------------------------------------------------- ICMP


@pytest.mark.parametrize("src, dst, proto", [(A, B, 1), (A6, B6, 58)])
def test_ping_is_one_flow(made, src, dst, proto):
    packets = [frames.ping(i, src, dst, i, reply) for i in range(3) for reply in (False, True)]
    (record,) = made(packets).records
    assert ends(record) == (src, 0, dst, 0)
    assert pick(record, "proto", "packets", "reverse_packets") == (proto, 3, 3)


@pytest.mark.parametrize("src, dst, router", [(A, B, B), (A, B, "10.0.0.254"), (A6, B6, B6)])
def test_icmp_error_belongs_to_the_quoted_flow(made, src, dst, router):
    """The error raises the quoted flow's icmp_errors; its own bytes are in its own record."""
    asked = frames.udp(0, src, 1000, dst, 53)
    result = made(asked, frames.unreachable(0.1, router, asked))
    by_proto = {record["proto"]: record for record in result.records}
    assert len(result.records) == 2
    assert pick(by_proto[17], "packets", "reverse_packets", "icmp_errors") == (1, 0, 1)
    (error,) = [record for proto, record in by_proto.items() if proto != 17]
    assert ends(error) == (router, 0, src, 0)
    assert pick(error, "packets", "icmp_errors") == (1, 0)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_icmp_errors_across_workers(made, workers):
    """The quoted flow may live in another shard."""
    packets = []
    for i in range(64):
        asked = frames.udp(0.01 * i, A, 1000 + i, B, 53)
        packets += [asked, frames.unreachable(0.01 * i + 0.005, B, asked)]
    result = made(packets, args=["--workers", workers])
    assert [record["icmp_errors"] for record in result.records if record["proto"] == 17] == [1] * 64


# --------------------------------------------------------------------------------- fragments


def split(time=0.0, src=A, dst=B, sport=1000, size=3000):
    """A UDP datagram in four fragments (of 1,000 bytes)."""
    pieces = frames.fragments(frames.udp(time, src, sport, dst, 53, size=size), 1000)
    assert len(pieces) == 4
    return pieces


@pytest.mark.parametrize("src, dst", [(A, B), (A6, B6)])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 0, 3, 2), (2, 3, 0, 1)])
def test_fragments_follow_the_first(made, src, dst, order):
    """Later fragments belong to the flow of their first one, in whatever order they come."""
    pieces = split(src=src, dst=dst)
    size = sum(len(piece) for piece in pieces)
    (record,) = made([pieces[i] for i in order], in_order=False).records
    assert ends(record) == (src, 1000, dst, 53)
    assert counters(record)[:2] == (4, size)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_fragments_across_workers(made, workers):
    """The shard of a flow with ports is not the one that its later fragments hash to."""
    pieces = []
    for i in range(40):
        four = split(0.01 * i, src=f"10.0.1.{i}", sport=2000 + i)
        pieces += four[::-1] if i % 2 else four
    result = made(pieces, args=["--workers", workers], in_order=False)
    assert sorted(record["sport"] for record in result.records) == list(range(2000, 2040))
    assert {record["packets"] for record in result.records} == {4}


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0), (2, 0, 1)])
def test_ipv6_fragments_name_different_next_headers(made, order):
    """Only the first fragment's next header counts (RFC 8200 section 4.5)."""
    def piece(offset, more, content, next_header):
        return IPv6(src=A6, dst=B6) / IPv6ExtHdrFragment(nh=next_header, id=7, offset=offset,
                                                         m=more) / content
    first = bytes(IPv6ExtHdrDestOpt(nh=17) / UDP(sport=1111, dport=2222, len=64) / Raw(b"x" * 8))
    pieces = [piece(0, 1, Raw(first), 60), piece(3, 1, Raw(b"y" * 16), 60),
              piece(5, 0, Raw(b"z" * 16), 6)]
    packets = [frames.frame(time, pieces[n]) for time, n in enumerate(order)]
    (record,) = made(packets).records
    assert pick(record, "proto", "sport", "dport", "packets") == (17, 1111, 2222, 3)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_fragments_behind_an_authentication_header(made, order):
    """The first fragment's protocol is TCP, that of the later ones' IPv4 headers is 51."""
    header = bytes([17, 4, 0, 0]) + struct.pack("!II", 256, 1) + bytes(12)
    inner = bytes(frames.UDP(sport=1000, dport=53, len=2008, chksum=1)) + b"u" * 2000
    whole = frames.frame(0, frames.IP(src=A, dst=B, proto=51) / frames.Raw(header + inner))
    pieces = frames.fragments(whole, 1000)
    for place, piece in enumerate(order):
        pieces[piece].time = frames.START + place / 10
    record, = made(pieces).records
    assert (record["proto"], record["sport"], record["dport"]) == (17, 1000, 53)
    assert record["packets"] == 3


def test_tcp_in_fragments(made):
    """The first fragment does not tell where a segment ends: that is no reason to doubt its ACK."""
    tcp = frames.Tcp(0, A, 1025, B, 80).open()
    whole = tcp.segment(0, frames.ACK, b"a" * 3000).packets.pop()
    tcp.packets += frames.fragments(whole, 1000)
    tcp.segment(1, frames.ACK)
    whole = tcp.segment(0, frames.FIN | frames.ACK, b"b" * 3000).packets.pop()
    tcp.packets += frames.fragments(whole, 1000)
    tcp.segment(1, frames.FIN | frames.ACK).segment(0, frames.ACK)
    for args in ((), ("--tcp", "strict")):
        result = made(tcp, args=args)
        (record,) = result.records
        assert record["end_reason"] == "fin"
        assert record["packets"] + record["reverse_packets"] == len(tcp.packets)
        assert result.summary["tcp_outside_window"] == 0


def test_first_fragment_never_comes(made):
    """Fragments that cannot be tied are a flow without ports, and none is lost."""
    (record,) = made(split()[1:]).records
    assert ends(record) == (A, 0, B, 0)
    assert record["packets"] == 3


def test_fragments_separate(made):
    """--fragments separate: later fragments are a flow without ports of their own."""
    result = made(split(), args=["--fragments", "separate"])
    assert sorted(pick(record, "sport", "packets") for record in result.records) == [
        (0, 3), (1000, 1)]


# ------------------------------------------------------------------------ headers of all kinds


def test_vlan_is_not_in_the_key(made):
    """The same conversation, tagged and not, is one flow; zone 0."""
    packets = [frames.udp(i, A, 1, B, 2, vlans=tags) for i, tags in enumerate([(), (10,), (20, 30)])]
    (record,) = made(packets).records
    assert pick(record, "packets", "zone") == (3, 0)


def test_vlan_as_zone(made):
    """Asked for, the outermost tag is the zone, and zones are kept apart."""
    packets = [frames.udp(i, A, 1, B, 2, vlans=tags)
               for i, tags in enumerate([(), (10,), (20, 30), (10, 40)])]
    result = made(packets, args=["--zone", "vlan"])
    assert sorted(pick(record, "zone", "packets") for record in result.records) == [
        (0, 1), (10, 2), (20, 1)]


def test_ipv6_extension_headers(made):
    """The ports behind them are found."""
    content = (IPv6(src=A6, dst=B6) / IPv6ExtHdrHopByHop() / IPv6ExtHdrRouting(addresses=[B6]) /
               IPv6ExtHdrDestOpt() / UDP(sport=1000, dport=53) / Raw(b"x" * 10))
    (record,) = made(frames.frame(0, content)).records
    assert pick(record, "version", "proto", "sport", "dport") == (6, 17, 1000, 53)


def test_sctp(made):
    content = frames.network(A, B) / SCTP(sport=1000, dport=2000) / SCTPChunkInit()
    (record,) = made(frames.frame(0, content)).records
    assert pick(record, "proto", "sport", "dport") == (132, 1000, 2000)


def test_protocol_without_ports(made):
    """GRE and the like are known by their addresses."""
    content = frames.network(A, B, proto=47) / Raw(b"\0" * 40)
    (record,) = made(frames.frame(0, content)).records
    assert pick(record, "proto", "sport", "dport") == (47, 0, 0)


def test_both_ends_the_same(made):
    """A packet to oneself has no direction but forward."""
    (record,) = made(frames.udp(0, A, 7, A, 7), frames.udp(1, A, 7, A, 7)).records
    assert counters(record)[::2] == (2, 0)


def test_not_ip(made):
    """What is not IP passes without a flow."""
    result = made(frames.arp(0, A, B), frames.udp(1, A, 1, B, 2))
    assert len(result.records) == 1
    assert result.summary["packets"] == 2
    assert result.summary["flow_packets"] == 1


def test_malformed(made):
    """Frames cut short are counted, and make no flow."""
    packets = []
    for length in (0, 1, 13, 14, 33):
        packet = Raw(bytes(frames.udp(0, A, 1, B, 2))[:length])
        packet.time = frames.START
        packets.append(packet)
    result = made(packets)
    assert result.records == []
    assert result.summary["packets"] == 5
    assert result.summary["dropped"]["malformed"] == 5


# -------------------------------------------------------------------------------------- time


def test_time_running_backwards(made):
    """Time stamps out of order end nothing, and no record ends before it starts."""
    packets = [frames.udp(time, A, 1000, B, 53) for time in (100, 50, 101, 0, 102)]
    (record,) = made(packets, in_order=False).records
    assert record["packets"] == 5
    assert record["start"] <= record["end"]


def test_time_of_long_ago_and_far_ahead(made):
    """1970 and 2106 in one capture: sums hold."""
    packets = [frames.udp(time - frames.START, A, 1000, B, 53) for time in (0, 2**32 - 1, 5)]
    result = made(packets, in_order=False)
    assert total(result.records)[0] == 3


def test_silence_of_years(made):
    """Longer than the clock of a run lasts: every flow ends by idleness, and times stay true."""
    year = 365 * 86400
    packets = [frames.udp(time, A, 1000, B, 53) for time in (0, 5 * year, 5 * year + 20, 30 * year)]
    records = made(packets).records
    assert [(record["packets"], record["end_reason"]) for record in records] == [
        (1, "idle"), (2, "idle"), (1, "shutdown")]
    assert [record["start"][:4] for record in records] == ["2026", "2031", "2056"]


def test_clock_outlasts_many_short_silences(made):
    """A packet a year for decades: no silence is longer than any timeout, together they are."""
    year = 365 * 86400
    packets = [frames.udp(n * year, A, 1000, B, 53) for n in range(20)]
    records = made(packets).records
    assert [record["packets"] for record in records] == [1] * 20
    assert [record["start"][:4] for record in records] == [str(2026 + n) for n in range(20)]
