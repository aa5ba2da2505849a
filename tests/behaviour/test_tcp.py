# SPDX-License-Identifier: BSD-3-Clause
"""TCP as its records tell it: ports that are used again, resets that are none, forged segments.

Each case is replayed with and without --tcp strict, and over IPv4, IPv6 and a VLAN. What is right
is what the ends of such a conversation would say (RFC 9293, RFC 5961, RFC 1337).
"""
import itertools
import pathlib

import pytest

import frames
from conftest import ROOT
from frames import ACK, FIN, PSH, RST, SYN

FIELD = pathlib.Path(ROOT).parent / "shared" / "field"

PLACES = {
    "ipv4": {"ends": ("10.0.0.1", "10.0.0.2"), "vlans": ()},
    "ipv6": {"ends": ("fd00::1", "fd00::2"), "vlans": ()},
    "vlan": {"ends": ("10.0.0.9", "10.0.0.2"), "vlans": (7,)},
}


class Talk(frames.Tcp):
    """A conversation on the same ports each time, with numbers of its own."""

    def __init__(self, time, place, numbers=(1000, 5000), turned=False, port=40000):
        client, server = (place["ends"][0], port), (place["ends"][1], 80)
        if turned:
            client, server = server, client
        super().__init__(time, *client, *server, vlans=place["vlans"])
        self.next = list(numbers)

    def life(self):
        return self.open().talk(times=4).close()

    def forged(self, end, flags, offset, data=b""):
        """Of somebody who does not know the numbers: it does not count for what follows."""
        before = list(self.next)
        self.segment(end, flags, data, offset=offset)
        self.next = before
        return self

    def only(self, end):
        """What one direction of it is."""
        sport = self.ends[end][1]
        self.packets = [packet for packet in self.packets if packet["TCP"].sport == sport]
        return self


def in_order(result, port=40000):
    """The records of this port, as they began."""
    mine = (record for record in result.records if port in (record["sport"], record["dport"]))
    return sorted(mine, key=lambda record: record["start"])


def ends(result, port=40000):
    return [record["end_reason"] for record in in_order(result, port)]


def counts(result, port=40000):
    return [record["packets"] + record["reverse_packets"] for record in in_order(result, port)]


# What was there before, on a conversation that has not begun.
FIRST = {
    "after a SYN": lambda talk: talk.segment(0, SYN),
    "after a SYN-ACK": lambda talk: talk.segment(0, SYN).segment(1, SYN | ACK),
    "picked up": lambda talk: talk.segment(0, PSH | ACK, b"q"),
    "established": lambda talk: talk.open().talk(times=3),
    "half closed": lambda talk: talk.open().talk().segment(0, FIN | ACK).segment(1, ACK),
    "half closed by the server": lambda talk: talk.open().talk().segment(1, FIN | ACK),
    "without the last ACK": lambda talk: talk.open().talk().segment(0, FIN | ACK)
                                             .segment(1, FIN | ACK),
    "closed": lambda talk: talk.life(),
    "reset": lambda talk: talk.open().talk().reset(),
    "refused": lambda talk: talk.segment(0, SYN).segment(1, RST | ACK),
}

END = {
    "without the last ACK": "fin",
    "closed": "fin",
    "reset": "rst",
    "refused": "rst",
}

NUMBERS = {
    "higher": (50_000_000, 70_000_000),
    "lower": (3_494_968_598, 2222),
    "far": (2_500_000_000, 1_234_567),
    "near": (4000, 9000),
}


@pytest.fixture(name="made")
def make_and_replay(tmp_path, replay):
    def made(*packets, strict=False, **more):
        args = ("--tcp", "strict") if strict else ()
        return replay(*args, frames.write(tmp_path / "made.pcap", *packets, **more))
    return made


both = pytest.mark.parametrize("strict", [False, True], ids=["count", "strict"])
everywhere = pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)


@both
@everywhere
def test_ports_are_used_again(made, place, strict):
    """From every state: two records, each with its own packets and times, and nothing outside."""
    cases = list(itertools.product(FIRST, NUMBERS))
    talks = []
    for port, (first, numbers) in enumerate(cases, 30000):
        old = FIRST[first](Talk(0, place, port=port))
        talks.append((old, Talk(old.time + 9, place, NUMBERS[numbers], port=port).life()))
    result = made(*itertools.chain(*talks), strict=strict)
    for port, ((first, numbers), (old, new)) in enumerate(zip(cases, talks), 30000):
        case = f"{first}, {numbers}"
        assert ends(result, port) == [END.get(first, "idle"), "fin"], case
        assert counts(result, port) == [len(old.packets), len(new.packets)], case
        for record, talk in zip(in_order(result, port), (old, new)):
            assert record["src"] == talk.ends[0][0], case
            for key, packet in (("start", talk.packets[0]), ("end", talk.packets[-1])):
                seconds = float(packet.time) - frames.START
                assert record[key] == f"2026-11-20T08:00:{seconds:09.6f}Z", case
    assert result.summary["tcp_outside_window"] == 0
    assert result.summary["dropped"]["tcp_window"] == 0


@both
@everywhere
def test_the_server_begins_anew(made, place, strict):
    old = Talk(0, place).open().talk()
    new = Talk(9, place, NUMBERS["far"], turned=True).life()
    result = made(old, new, strict=strict)
    assert ends(result) == ["idle", "fin"]
    assert [record["src"] for record in in_order(result)] == list(place["ends"])
    assert result.summary["tcp_outside_window"] == 0


@both
@everywhere
def test_the_syn_is_sent_again(made, place, strict):
    """Three times, before somebody answers: all three are of the new conversation."""
    old = Talk(0, place).open().talk()
    new = Talk(9, place, NUMBERS["far"]).segment(0, SYN)
    for time in (10, 10.5):
        new.packets.append(new.packets[0].copy())
        new.packets[-1].time = frames.START + time
    new.time = 11
    new.segment(1, SYN | ACK).segment(0, ACK).talk().close()
    result = made(old, new, strict=strict)
    assert counts(result) == [len(old.packets), len(new.packets)]
    assert ends(result) == ["idle", "fin"]
    assert result.summary["tcp_outside_window"] == 0


@both
@everywhere
def test_half_open_discovery(made, place, strict):
    """RFC 9293 section 3.5.1: a SYN, a challenge ACK, the RST for it, the SYN again."""
    old = Talk(0, place).open().talk()
    new = Talk(9, place, NUMBERS["far"]).segment(0, SYN)
    old.time = 9.01
    old.segment(1, ACK)  # the challenge
    old.segment(0, RST)
    new.next[0] -= 1
    new.time = 10
    new.life()
    result = made(old, new, strict=strict)
    assert ends(result) == ["rst", "fin"]
    assert result.summary["dropped"]["tcp_window"] == 0


@both
@everywhere
def test_half_open_of_which_only_the_end_is_seen(made, place, strict):
    """Nothing is known of the old conversation: its challenge ACK and the RST have to arrive."""
    new = Talk(0, place, NUMBERS["far"]).segment(0, SYN)
    old = Talk(0.1, place).segment(1, ACK).segment(0, RST)
    new.next[0] -= 1
    new.time = 1
    new.life()
    result = made(old, new, strict=strict)
    assert ends(result) == ["fin"]
    assert result.summary["dropped"]["tcp_window"] == 0


@both
@everywhere
@pytest.mark.parametrize("end", [0, 1], ids=["questions", "answers"])
def test_one_direction_alone(made, place, end, strict):
    """What follows the SYN in order makes it count, where nobody can be seen to answer."""
    old = Talk(0, place).open().talk().close().only(end)
    new = Talk(20, place, (3_000_000, 9_000_000)).open().talk(times=3).close().only(end)
    result = made(old, new, strict=strict)
    assert counts(result) == [len(old.packets), len(new.packets)]
    assert result.summary["tcp_outside_window"] == 0


FORGED = {
    "RST inside": (RST, 4000),
    "RST by three": (RST, 3),
    "RST behind": (RST, -1),
    "RST-ACK inside": (RST | ACK, 4000),
    "RST outside": (RST, 1 << 30),
    "SYN inside": (SYN, 3000),
    "SYN outside": (SYN, 1 << 30),
    "data outside": (PSH | ACK, 100_000),
    "FIN outside": (FIN | ACK, 100_000),
    "SYN-ACK outside": (SYN | ACK, 1 << 30),
}


@both
@everywhere
def test_a_forged_segment_moves_nothing(made, place, strict):
    """Again and again, with minutes of silence: one record, and only what is forged is outside."""
    cases = list(itertools.product(FORGED, (0, 1)))
    talks = []
    for port, (kind, end) in enumerate(cases, 30000):
        flags, offset = FORGED[kind]
        talk = Talk(0, place, port=port).open()
        for _ in range(3):
            data = b"x" * 9 if flags & PSH else b""
            talk.talk().forged(end, flags, offset, data).segment(1 - end, ACK)  # the challenge
            talk.time += 100
        talks.append(talk.talk().close())
    result = made(*talks, strict=strict)
    outside = [kind for kind, _ in cases if "outside" in kind]
    dropped = [kind for kind in outside if kind != "SYN outside"] if strict else []
    for port, (kind, end) in enumerate(cases, 30000):
        assert ends(result, port) == ["fin"], (kind, end)
    assert result.summary["tcp_outside_window"] == 3 * len(outside)
    assert result.summary["dropped"]["tcp_window"] == 3 * len(dropped)


@both
@everywhere
@pytest.mark.parametrize("end", [0, 1])
def test_an_exact_rst(made, place, end, strict):
    result = made(Talk(0, place).open().talk(times=2).segment(end, RST), strict=strict)
    assert ends(result) == ["rst"]
    assert result.summary["tcp_outside_window"] == 0


@both
@everywhere
def test_a_rst_that_nobody_heeds(made, place, strict):
    """At the exact number, and yet both go on: the connection is open again, and ends well."""
    talk = Talk(0, place).open().talk().segment(0, RST).talk(times=3)
    talk.time += 300
    result = made(talk.talk().close(), strict=strict)
    assert ends(result) == ["fin"]
    assert result.summary["tcp_outside_window"] == 0


@both
@everywhere
def test_an_ack_overtakes_a_fin(made, place, strict):
    """The last three change places, as between two queues."""
    talk = Talk(0, place).open().talk().segment(0, FIN | ACK)
    talk.forged(1, FIN | ACK, 0)
    talk.packets[-1]["TCP"].ack -= 1
    talk.next[1] += 1
    talk.segment(1, ACK)
    talk.packets[-2:] = reversed(talk.packets[-2:])
    talk.segment(0, ACK)
    result = made(talk, frames.ping(1000, "10.9.9.1", "10.9.9.2"), in_order=False, strict=strict)
    assert ends(result) == ["fin"]
    assert result.summary["tcp_outside_window"] == 0


def test_the_syn_comes_after_its_answer(made):
    """Who sent it began."""
    talk = Talk(0, PLACES["ipv4"]).life()
    talk.packets[:2] = reversed(talk.packets[:2])
    (record,) = made(talk, in_order=False).records
    assert (record["src"], record["sport"]) == ("10.0.0.1", 40000)
    assert record["end_reason"] == "fin"


@everywhere
def test_a_gap_costs_until_it_is_acknowledged(made, place):
    """A capture that lost 50 kB: what runs ahead is outside until the other end acknowledges it."""
    talk = Talk(0, place).open().talk()
    talk.next[1] += 50000
    talk.segment(1, ACK, b"a" * 500).segment(1, ACK, b"a" * 500).segment(0, ACK)
    result = made(talk.talk(times=3).close())
    assert ends(result) == ["fin"]
    assert result.summary["tcp_outside_window"] == 2


def test_an_odd_first_fragment_does_not_forget_the_window(made):
    """After it a RST of any number is as odd as before, and one inside moves nothing."""
    talk = Talk(0, PLACES["ipv4"]).open().talk()
    talk.forged(0, PSH | ACK, 1 << 29, b"x" * 1000)
    talk.packets += frames.fragments(talk.packets.pop(), 500)
    talk.forged(0, RST, 1 << 30).forged(1, RST, 77)
    result = made(talk.talk().close())
    assert "fin" in ends(result)
    assert "rst" not in ends(result)
    assert result.summary["tcp_outside_window"] == 2


# What real captures gave, where they lie beside the checkout: file, ends, and what may be outside.
CASES = {
    "t06": (["idle", "fin"], 0), "t07": (["idle", "fin"], 0), "t08": (["rst", "fin"], None),
    "t09": (["fin", "fin"], 0), "t11": (["fin", "fin"], 0), "t12": (["fin", "fin"], 0),
    "t13": (["fin", "fin"], 0), "t14": (["fin"], None), "t15": (["fin"], 1), "t35": (None, 0),
    "t37": (["fin"], 0), "t38": (["fin"], 0), "r05": (["fin"], None), "r07": (["rst"], 0),
    "r08": (["fin"], 1), "h-finack-swapped": (["fin"], 0),
}


@both
@pytest.mark.parametrize("case", CASES)
def test_cases_of_the_field(replay, case, strict):
    capture = FIELD / f"{case}.pcap"
    if not capture.is_file():
        pytest.skip(f"no {capture.name} in {FIELD}")
    reasons, outside = CASES[case]
    result = replay(*(("--tcp", "strict") if strict else ()), capture)
    told = ends(result, 1000 if case == "h-finack-swapped" else 40000)
    assert told == reasons if reasons else len(told) == 2
    if outside is not None:
        assert result.summary["tcp_outside_window"] == outside
    assert result.summary["dropped"]["tcp_window"] <= (1 if case == "t15" else 0)
