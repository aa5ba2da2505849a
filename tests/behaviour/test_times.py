# SPDX-License-Identifier: BSD-3-Clause
"""Time stamps that go back and forth: each flow has those of its own packets, and ages as if they had not."""
import datetime
import itertools
import struct

import pytest

import frames
from test_flows import make_and_replay  # noqa: F401, pylint: disable=unused-import

A, B, C, D = "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"
YEAR = 365 * 86400


def told(time):
    """A moment as records tell it."""
    moment = datetime.datetime.fromtimestamp(0, datetime.timezone.utc) + datetime.timedelta(
        microseconds=round((frames.START + time) * 1e6))
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def conversation(time, port):
    return frames.Tcp(time, A, port, B, 80).open().talk(times=2).close()


def times(result, **ends):
    """Start and end of the records with these ends."""
    return [(record["start"], record["end"]) for record in result.records
            if all(record[key] == value for key, value in ends.items())]


def stamps(packets):
    """What the record of these packets has to tell."""
    return told(float(packets[0].time) - frames.START), told(float(packets[-1].time) - frames.START)


@pytest.mark.parametrize("step", [-2, -60, -3600, -86400, -3 * YEAR])
@pytest.mark.parametrize("args", [(), ("--workers", "3"), ("--active", "1000")])
def test_conversations_joined_in_the_wrong_order(made, step, args):
    """Each has its own times, and the summary says how often and how far time went back."""
    one, two, three = (conversation(time, port) for time, port in
                       ((0, 1001), (step, 1002), (2 * step, 1003)))
    result = made(one, two, three, in_order=False, args=args)
    assert len(result.records) == 3
    for talk, port in ((one, 1001), (two, 1002), (three, 1003)):
        assert times(result, sport=port) == [stamps(talk.packets)]
    assert {record["end_reason"] for record in result.records} == {"fin"}
    assert result.summary["time_back"] == 2
    gap = float(one.packets[-1].time - two.packets[0].time)
    assert abs(result.summary["time_back_us"] - gap * 1e6) <= 1


@pytest.mark.parametrize("ahead", [90, 3600, 86400, 10 * YEAR, -3600, -frames.START])
@pytest.mark.parametrize("place", range(4))
def test_one_stamp_that_is_astray(made, ahead, place):
    """Far ahead or back, in its own flow, the others' times and ages are as if it had not been."""
    astray = frames.udp(ahead, C, 1, D, 2)
    packets = [frames.udp(time, A, 1000, B, 53) for time in (0, 5, 10, 15, 20)]
    packets.insert(place + 1, astray)
    result = made(packets, in_order=False)
    assert times(result, sport=1000) == [(told(0), told(20))]
    assert times(result, sport=1) == [(told(ahead), told(ahead))]
    assert result.summary["time_back"] == 1


@pytest.mark.parametrize("ahead", [3600, 10 * YEAR])
def test_a_stamp_astray_within_a_flow(made, ahead):
    """First and last packet are what a record tells of; one between them is not among these."""
    result = made([frames.udp(time, A, 1000, B, 53) for time in (0, 5, ahead, 10, 15)],
                  in_order=False)
    assert times(result) == [(told(0), told(15))]
    # the last one is
    result = made([frames.udp(time, A, 1000, B, 53) for time in (0, 5, 10, ahead)],
                  in_order=False, args=("--timeout", f"udp={31536000}"))
    assert told(ahead) in {end for _, end in times(result)}


def test_machines_whose_clocks_differ(made):
    """Two interfaces, one an hour behind, in one capture: packets by turns, for twenty minutes."""
    one = [frames.udp(time, A, 1000, B, 53) for time in range(0, 1200, 10)]
    two = [frames.udp(time - 3600, C, 2000, D, 53) for time in range(0, 1200, 10)]
    result = made(list(itertools.chain(*zip(one, two))), in_order=False)
    assert times(result, sport=1000) == [(told(0), told(1190))]
    assert times(result, sport=2000) == [(told(-3600), told(-2410))]
    assert result.summary["time_back"] == 120
    assert result.summary["time_back_us"] == 3600 * 10**6


def test_silence_ends_flows_after_time_went_back(made):
    """The clock by which flows age goes on: a silence counts as one, an hour too early or not."""
    packets = [frames.udp(time, A, 1000, B, 53) for time in (0, -3600, -3570, -3500)]
    result = made(packets, in_order=False, args=("--timeout", "udp=60"))
    assert [(record["packets"], record["end_reason"]) for record in result.records] == [
        (3, "idle"), (1, "shutdown")]
    # of the first and the last packet, whichever is earlier
    assert times(result) == [(told(-3570), told(0)), (told(-3500), told(-3500))]


def test_small_disorder(made):
    """Some packets overtake others: the earliest is the start and the latest the end."""
    result = made([frames.udp(time, A, 1000, B, 53) for time in (0.3, 0.2, 0.25, 0.9, 0.7)],
                  in_order=False)
    assert times(result) == [(told(0.2), told(0.9))] or times(result) == [(told(0.3), told(0.9))]
    assert result.summary["time_back"] == 2 and result.summary["time_back_us"] == 200000


def test_several_captures(tmp_path, replay):
    """Each by itself: that the second is earlier than the first is nothing that went back."""
    paths = [frames.write(tmp_path / name, [frames.udp(time, A, 1000, B, 53) for time in seconds],
                          in_order=False)
             for name, seconds in (("late", (0, 1)), ("early", (-500, -600, -599)))]
    result = replay(*paths)
    assert [(record["start"], record["end"]) for record in result.records] == [
        (told(0), told(1)), (told(-599), told(-500))]
    assert result.summary["time_back"] == 1
    assert result.summary["time_back_us"] == 100 * 10**6


def test_fragments_keep_their_own_times(made):
    """Last first: the first of them that came is the start, not the one that tells the ports."""
    pieces = frames.fragments(frames.udp(0, A, 1000, B, 53, size=3000), 1400)
    for number, piece in enumerate(reversed(pieces)):
        piece.time = frames.START + number / 100
    result = made(list(reversed(pieces)), in_order=False)
    assert times(result, sport=1000) == [(told(0), told(0.02))]


def test_fragments_whose_first_never_came(made):
    pieces = frames.fragments(frames.udp(0, A, 1000, B, 53, size=3000), 1400)[1:]
    for number, piece in enumerate(pieces):
        piece.time = frames.START + number / 100
    result = made(pieces + [frames.udp(90, C, 9, D, 9)], in_order=False)
    assert times(result, src=A) == [(told(0), told(0.01))]


@pytest.mark.parametrize("seconds", [0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2085978495, 2085978496])
def test_edges_of_clocks(made, seconds):
    """1970, 2036 (where NTP's seconds begin anew), 2038 and 2106, and time that goes back from there and to there."""
    time = seconds - frames.START
    here, there = conversation(0, 1001), frames.udp(time, C, 1, D, 2)
    for packets in ([here, there], [there, here]):
        result = made(*packets, in_order=False)
        assert times(result, sport=1001) == [stamps(here.packets)]
        assert times(result, sport=1) == [(told(time), told(time))]


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("later", [65, 100, 119.5])
def test_a_record_begins_with_its_first_packet(made, back, later):
    """After an active report nothing comes for a while: the next record begins where something does."""
    ends = (B, 53, A, 1000) if back else (A, 1000, B, 53)
    packets = [frames.udp(0, A, 1000, B, 53)]
    packets += [frames.udp(later + i, *ends) for i in range(4)]
    result = made(packets, args=("--active", "60", "--timeout", "udp=200"))
    assert times(result) == [(told(0), told(0)), (told(later), told(later + 3))]
    assert [record["packets"] + record["reverse_packets"] for record in result.records] == [1, 4]
    assert all(record["bytes"] + record["reverse_bytes"] < 1000 for record in result.records)


def test_silence_after_an_active_report(made):
    """No packet more: the last record begins and ends with the report."""
    result = made([frames.udp(0.5, A, 1000, B, 53), frames.udp(300, C, 9, D, 9)],
                  args=("--active", "60", "--timeout", "udp=100"))
    assert times(result, sport=1000) == [(told(0.5), told(0.5)), (told(60.5), told(60.5))]


def test_text_says_that_time_went_back(tmp_path):
    from conftest import run  # pylint: disable=import-outside-toplevel
    path = frames.write(tmp_path / "back.pcap", [frames.udp(time, A, 1, B, 2) for time in (0, -1.5)],
                        in_order=False)
    assert "time went back: 1 time, by 1.500000 s at most" in run("replay", path).stderr
    path = frames.write(tmp_path / "on.pcap", [frames.udp(time, A, 1, B, 2) for time in (0, 1.5)])
    assert "went back" not in run("replay", path).stderr


def test_packets_without_a_time(tmp_path, replay):
    """pcapng's Simple Packet Blocks have none, and read as 1970: whatever stands between them keeps its own."""
    def block(kind, body):
        body += bytes(-len(body) % 4)
        return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)

    def enhanced(packet):
        data, us = bytes(packet), round(float(packet.time) * 1e6)
        return block(6, struct.pack("<IIIII", 0, us >> 32, us & 0xffffffff, len(data), len(data)) + data)

    content = block(0x0a0d0d0a, struct.pack("<IHHq", 0x1a2b3c4d, 1, 0, -1))
    content += block(1, struct.pack("<HHI", 1, 0, 262144))
    for time in (0, 10, 20, 30):
        data = bytes(frames.udp(0, C, 5, D, 6))
        content += enhanced(frames.udp(time, A, 1000, B, 53))
        content += block(3, struct.pack("<I", len(data)) + data)
    path = tmp_path / "simple.pcapng"
    path.write_bytes(content)
    result = replay(path)
    assert times(result, sport=1000) == [(told(0), told(30))]
    assert times(result, sport=5) == [(told(-frames.START), told(-frames.START))]
    assert result.summary["time_back"] == 4
