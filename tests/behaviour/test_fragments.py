# SPDX-License-Identifier: BSD-3-Clause
"""Fragments, cut TCP headers and ICMP errors, by replay: times, drops by name, the same records each time."""
import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment
from scapy.packet import Raw

import frames
from conftest import ROOT

A, B = "10.0.0.1", "10.0.0.2"
A6, B6 = "fd00::1", "fd00::2"
FIELD = ROOT.parent / "shared" / "field"


@pytest.fixture(name="made")
def make_and_replay(tmp_path, replay):
    """made(packets..., args=[...]): writes a capture and replays it."""
    def made(*packets, args=(), **more):
        return replay(*args, frames.write(tmp_path / "made.pcap", *packets, **more))
    return made


@pytest.fixture(name="field")
def replay_of_the_field(replay):
    """field(name): the records of a capture from the field; skipped where these are not."""
    def field(name, *args):
        if not (FIELD / name).is_file():
            pytest.skip(f"no {name} in {FIELD}")
        return replay(*args, FIELD / name).records
    return field


def piece(time, start, content, more, src=A, dst=B, proto=17, number=7):
    """A fragment that begins `start` bytes into its datagram."""
    if ":" in src:
        network = IPv6(src=src, dst=dst) / IPv6ExtHdrFragment(
            nh=proto, id=number, offset=start // 8, m=more)
    else:
        network = IP(src=src, dst=dst, proto=proto, id=number, frag=start // 8, flags=more)
    return frames.frame(time, network / Raw(content))


def pieces(times, datagram, cuts, **more):
    """A datagram in pieces that end at `cuts`, each at its time; in the datagram's order."""
    ends = [*cuts, len(datagram)]
    begins = [0, *cuts]
    return [piece(time, begin, datagram[begin:end], int(end < len(datagram)), **more)
            for time, begin, end in zip(times, begins, ends)]


def seconds(record, key):
    """Of the minute; test captures begin at a whole one or not: what counts is the difference."""
    return float(record[key][17:26])


def lasted(record):
    return round((seconds(record, "end") - seconds(record, "start")) % 60, 6)


def udp(sport=1000, dport=53, size=56):
    return bytes(UDP(sport=sport, dport=dport, len=8 + size) / Raw(b"u" * size))


def tcp(flags, seq, ack=0, size=44, **more):
    return bytes(TCP(sport=1025, dport=80, flags=flags, seq=seq, ack=ack, **more) /
                 Raw(b"t" * size))


# ------------------------------------------------------------------------------------- times


@pytest.mark.parametrize("src, dst", [(A, B), (A6, B6)])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)])
@pytest.mark.parametrize("workers", [1, 3])
def test_a_record_begins_with_the_first_packet(made, src, dst, order, workers):
    times = [None] * 3
    for place, which in enumerate(order):
        times[which] = place * 0.01
    (record,) = made(pieces(times, udp(), (16, 32), src=src, dst=dst),
                     args=["--workers", workers]).records
    assert (record["sport"], record["packets"], lasted(record)) == (1000, 3, 0.02)


@pytest.mark.parametrize("later", [0.5, 59, 61, 90, 4000])
@pytest.mark.parametrize("workers", [1, 3])
def test_untied_ones_have_their_own_times(made, later, workers):
    """The first is lost; whenever the next packet of anybody comes, it makes no difference."""
    lost = pieces([9, 0, 0.01], udp(), (16, 32))[1:]
    result = made(lost, frames.udp(later, "10.9.0.1", 5, "10.9.0.2", 6),
                  args=["--workers", workers])
    (record,) = [record for record in result.records if record["sport"] == 0]
    assert (record["packets"], lasted(record)) == (2, 0.01)
    assert result.summary["fragments_untied"] == 2


def test_the_same_records_each_time(made):
    """Both ends send what cannot be tied: who came first began the flow, in each run."""
    lost = [pieces([9, 0.01 * i], udp(), (16,), src=(A, B)[i % 2], dst=(B, A)[i % 2], number=i)[1]
            for i in range(1, 40)]
    runs = {made(lost).stdout for _ in range(12)}
    assert len(runs) == 1
    assert b'"src":"10.0.0.2","sport":0' in runs.pop()


# -------------------------------------------------------------------------- numbers used again


def test_a_number_used_again(made):
    """Each datagram's later fragment comes first, and two seconds after the one before was whole."""
    datagrams = []
    for i in range(20):
        datagrams += pieces([3 * i + 0.001, 3 * i], udp(sport=2000 + i), (32,))
    result = made(datagrams)
    assert {record["sport"]: record["packets"] for record in result.records} == {
        2000 + i: 2 for i in range(20)}
    assert result.summary["fragments_untied"] == 0


def test_carried_twice(made):
    """What is captured on two ports comes twice, in whatever order."""
    whole = pieces([0, 0.001, 0.002], udp(), (16, 32))
    again = pieces([0.0005, 0.0015, 0.0025], udp(), (16, 32))
    for order in (whole + again, [*again[:2], *whole, again[2]]):
        (record,) = made(order).records
        assert (record["sport"], record["packets"]) == (1000, 6)


def test_many_datagrams(made):
    """More than are remembered beside a small table: each that is in order is tied."""
    datagrams = []
    for i in range(6000):
        datagrams += pieces([0.001 * i, 0.001 * i + 0.0002], udp(), (32,), number=i)
    result = made(datagrams, args=["--flows", 1000])
    (record,) = result.records
    assert record["packets"] == 12000
    assert result.summary["fragments_untied"] == 0


# --------------------------------------------------------------------------------- strict TCP


def handshake():
    return frames.Tcp(0, A, 1025, B, 80).open()


CUTS = [((8,), 0), ((16,), 0), ((8, 24), 0), ((16, 24), 0), ((24,), 2), ((24, 40), 3)]


@pytest.mark.parametrize("src, dst", [(A, B), (A6, B6)])
@pytest.mark.parametrize("cuts, passed", CUTS)
@pytest.mark.parametrize("last_first", [False, True])
def test_strict_wants_whole_headers(made, src, dst, cuts, passed, last_first):
    n = len(cuts) + 1
    times = [0.01 * (n - i if last_first else i) for i in range(n)]
    cut = pieces(times, tcp("A", 100), cuts, src=src, dst=dst, proto=6)
    result = made(cut)
    (record,) = result.records
    assert (record["packets"], result.summary["dropped"]["tcp_header"]) == (n, 0)
    result = made(cut, args=["--tcp", "strict"])
    assert result.summary["dropped"]["tcp_header"] == n - passed
    assert result.summary["out"] == passed


@pytest.mark.parametrize("cuts, passed", CUTS)
@pytest.mark.parametrize("flags", ["R", "A"])
def test_strict_is_not_passed_in_pieces(made, cuts, passed, flags):
    """A RST, or data, far beyond the window: neither whole nor in pieces."""
    connection = handshake()
    base = connection.packets[2][TCP].seq
    n = len(cuts) + 1
    attack = pieces([1 + 0.01 * i for i in range(n)],
                    tcp(flags, (base + 500000000) % 2**32, connection.packets[2][TCP].ack), cuts,
                    proto=6)
    result = made(connection, attack, args=["--tcp", "strict"])
    dropped = result.summary["dropped"]
    assert (dropped["tcp_header"], dropped["tcp_window"]) == ((0, n) if passed else (n, 0))
    (record,) = result.records
    assert (record["packets"] + record["reverse_packets"], record["end_reason"]) == (3, "shutdown")


@pytest.mark.parametrize("proto, dropped", [(6, 2), (17, 0)])
@pytest.mark.parametrize("src, dst", [(A, B), (A6, B6)])
@pytest.mark.parametrize("fragments", ["follow", "separate"])
def test_strict_drops_offset_8(made, proto, dropped, src, dst, fragments):
    """It would write over a header that was whole; with its first fragment, and without one."""
    segment = tcp("A", 100)
    first, _ = pieces([0, 1], segment, (32,), src=src, dst=dst, proto=proto)
    over = [piece(0.1 + number, 8, segment[8:], 0, src=src, dst=dst, proto=proto, number=number)
            for number in (7, 8)]
    result = made(first, over, args=["--fragments", fragments])
    assert result.summary["out"] == 3
    result = made(first, over, args=["--fragments", fragments, "--tcp", "strict"])
    assert result.summary["dropped"]["tcp_header"] == dropped
    assert result.summary["out"] == 3 - dropped


@pytest.mark.parametrize("offset, sane", [(0, False), (4, False), (5, True), (6, True), (16, False)])
def test_data_offset(made, offset, sane):
    """It lies within the segment, or the header is none: no state is moved, and strict drops it."""
    packets = [frames.frame(0.1 * i, IP(src=(A, B)[i % 2], dst=(B, A)[i % 2]) /
                            TCP(sport=(1025, 80)[i % 2], dport=(80, 1025)[i % 2], flags="A",
                                seq=100, ack=100, dataofs=offset % 16) / Raw(b"d" * 20))
               for i in range(2)]
    if offset == 16:  # beyond the end
        for packet in packets:
            packet[TCP].dataofs = 15
    more = frames.udp(70, "10.9.0.1", 5, "10.9.0.2", 6)
    record = next(record for record in made(packets, more).records if record["proto"] == 6)
    assert record["packets"] + record["reverse_packets"] == 2
    assert record["end_reason"] == ("shutdown" if sane else "idle")  # 7,440 s or 60
    result = made(packets, args=["--tcp", "strict"])
    assert result.summary["dropped"]["tcp_header"] == (0 if sane else 2)


@pytest.mark.parametrize("src, dst", [(A, B), (A6, B6)])
def test_pieces_of_headers_are_no_conversation(made, src, dst):
    """One each way, of 8 bytes: the record is not established, whatever they claim."""
    segment = tcp("SA", 100)
    there = piece(0, 0, segment[:8], 1, src=src, dst=dst, proto=6)
    back = piece(0.1, 0, segment[2:4] + segment[:2] + segment[4:8], 1, src=dst, dst=src, proto=6)
    result = made(there, back, frames.udp(62, "10.9.0.1", 5, "10.9.0.2", 6))
    record = next(record for record in result.records if record["proto"] == 6)
    assert (record["packets"], record["reverse_packets"]) == (1, 1)
    assert record["end_reason"] == "idle"


# -------------------------------------------------------------------------------- ICMP errors


def error(time, to, quoted):
    return frames.frame(time, IP(src="203.0.113.66", dst=to) / ICMP(type=3, code=1) / quoted)


@pytest.mark.parametrize("to, counts", [(A, 1), (B, 0), ("198.51.100.77", 0)])
def test_an_error_goes_to_the_sender(made, to, counts):
    asked = frames.udp(0, A, 1000, B, 53)
    result = made(asked, error(0.1, to, IP(bytes(asked[IP]))))
    record = next(record for record in result.records if record["proto"] == 17)
    assert (record["icmp_errors"], result.summary["icmp_untied"]) == (counts, 1 - counts)


@pytest.mark.parametrize("beyond, counts", [
    (0, 1), (50, 1), (100, 1), (101, 0), (2**31, 0), (500000000, 0), (-100000, 0)])
@pytest.mark.parametrize("length", [8, 20])
def test_an_error_quotes_what_was_sent(made, beyond, counts, length):
    connection = handshake()
    begin = connection.packets[2][TCP].seq
    connection.segment(0, frames.PSH | frames.ACK, b"d" * 100)
    quoted = IP(src=A, dst=B, proto=6, len=140) / Raw(tcp("A", (begin + beyond) % 2**32)[:length])
    result = made(connection, error(1, A, quoted))
    record = next(record for record in result.records if record["proto"] == 6)
    assert (record["icmp_errors"], result.summary["icmp_untied"]) == (counts, 1 - counts)


def test_icmp_may_be_silent_for_a_minute(made):
    """RFC 5508 REQ-2: an echo each 45 or 59 s is one flow, one each 62 s is not."""
    for silence, n in ((45, 1), (59, 1), (62, 3)):
        pings = [frames.ping(silence * i, A, B, sequence=i) for i in range(3)]
        assert len(made(pings).records) == n


# ---------------------------------------------------------------------------------- the field


def test_field_last_first(field):
    (record,) = field("g02.pcap")
    assert (record["start"][17:], record["end"][17:]) == ("20.000000Z", "20.020000Z")


def test_field_first_lost(field):
    record = next(record for record in field("g03.pcap") if record["sport"] == 0)
    assert record["start"] == "2023-11-14T22:13:20.000000Z"
    assert record["end"] == "2023-11-14T22:13:20.010000Z"


def test_field_silent_echo(field):
    (record,) = field("o03.pcap")
    assert (record["packets"], record["reverse_packets"]) == (5, 5)


def test_field_two_later(field):
    for _ in range(10):
        (record,) = field("h-two-later.pcap")
        assert (record["src"], record["packets"], record["reverse_packets"]) == (A, 1, 1)
