# SPDX-License-Identifier: BSD-3-Clause
"""Rules that reject: what senders are told is what scapy makes of the RFCs, and every packet is counted."""
import json
import random
import zlib

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_NOP
from scapy.layers.inet6 import (ICMPv6DestUnreach, ICMPv6EchoRequest, ICMPv6ND_Redirect, ICMPv6PacketTooBig,
                                IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop)
from scapy.layers.l2 import ARP, Dot1AD, Dot1Q, Ether
from scapy.layers.sctp import SCTP
from scapy.packet import Raw

import frames
from conftest import run
from test_rewrite import TOOL, run_lists
from test_rules_run import add, rule, sent

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
CODES = {4: {"port": 3, "host": 1, "admin": 13}, 6: {"port": 4, "host": 3, "admin": 1}}
TYPES = ("usual", "tcp_reset", "port", "host", "admin")
PACKETS = 4000


def link(draw):
    """A link header between two hosts, and its answer's."""
    macs = [f"02:00:00:{draw.getrandbits(8):02x}:00:01", f"02:00:00:{draw.getrandbits(8):02x}:00:02"]
    there, back = Ether(src=macs[0], dst=macs[1]), Ether(src=macs[1], dst=macs[0])
    for depth in range(draw.choice((0, 0, 0, 1, 2, 8))):
        tag = {"vlan": draw.randrange(4095), "prio": draw.randrange(8)}
        kind = Dot1AD if depth == 0 and draw.random() < 0.5 else Dot1Q
        there, back = there / kind(**tag), back / kind(**tag)
    return there, back


def network(draw, version):
    """An IP header, with options or extension headers now and then."""
    if version == 4:
        options = [IPOption_NOP()] * draw.choice((0, 0, 0, 4, 40))
        return IP(src=f"10.1.{draw.randrange(256)}.1", dst=f"10.2.{draw.randrange(256)}.2", id=draw.getrandbits(16),
                  tos=draw.getrandbits(8), ttl=draw.randint(1, 255), options=options)
    header = IPv6(src=f"fd00::{draw.getrandbits(16):x}", dst=f"2001:db8::{draw.getrandbits(16):x}",
                  tc=draw.getrandbits(8), fl=draw.getrandbits(20), hlim=draw.randint(1, 255))
    for kind in draw.sample((IPv6ExtHdrHopByHop, IPv6ExtHdrDestOpt), draw.choice((0, 0, 0, 1))):
        header /= kind()
    return header


def upper(draw, version):
    """What the IP packet carries; its protocol's name."""
    data = Raw(draw.randbytes(draw.choice((0, 1, 20, 21, 600, 1400))))
    kind = draw.choice(("tcp", "tcp", "tcp", "udp", "udp", "sctp", "echo"))
    ports = {"sport": draw.getrandbits(16), "dport": draw.getrandbits(16)}
    if kind == "tcp":
        # not RST
        flags = draw.choice((SYN, ACK, ACK | PSH, FIN | ACK, FIN, 0, SYN | ACK, PSH, SYN | FIN))
        options = [("NOP", None)] * draw.choice((0, 0, 4, 40))
        return kind, TCP(**ports, seq=draw.choice((0, 1, 2**32 - 1, draw.getrandbits(32))),
                         ack=draw.getrandbits(32), flags=flags, window=draw.getrandbits(16), options=options) / data
    if kind == "udp":
        return kind, UDP(**ports) / data
    if kind == "sctp":
        return kind, SCTP(**ports) / data
    return kind, (ICMP(id=7) if version == 4 else ICMPv6EchoRequest(id=7)) / data


def reset_for(packet, address):
    """RFC 9293 section 3.10.7.1."""
    tcp = packet[TCP]
    length = len(tcp.payload) + bool(tcp.flags & SYN) + bool(tcp.flags & FIN)
    if tcp.flags & ACK:
        numbers = {"seq": tcp.ack, "ack": 0, "flags": "R"}
    else:
        numbers = {"seq": 0, "ack": (tcp.seq + length) % 2**32, "flags": "RA"}
    return address(0, {}) / TCP(sport=tcp.dport, dport=tcp.sport, window=0, **numbers)


def error_for(packet, quoted, version, address, word, protocol):
    """As much of the packet as the error may have, from its IP header on."""
    if word == "usual":
        word = "port" if protocol == "udp" else "admin"
    if version == 4:
        tos = 0xc0 | (packet[IP].tos & 0x1c)
        return address(tos, {}) / ICMP(type=3, code=CODES[4][word], unused=0) / Raw(quoted[:576 - 28])
    return address(0, {"nh": 58}) / ICMPv6DestUnreach(code=CODES[6][word]) / Raw(quoted[:1280 - 48])


def answer_for(frame, back, version, word, protocol):
    """The frame that the sender gets, or None."""
    packet, quoted = Ether(frame), frame[len(bytes(back)):]

    def address(tos, more):
        if version == 4:
            return back / IP(src=packet[IP].dst, dst=packet[IP].src, id=0, flags="DF", ttl=64, tos=tos)
        return back / IPv6(src=packet[IPv6].dst, dst=packet[IPv6].src, hlim=64, **more)

    if protocol == "tcp" and word in ("usual", "tcp_reset"):
        made = bytes(reset_for(packet, address))
    elif word == "tcp_reset":
        return None
    else:
        made = bytes(error_for(packet, quoted, version, address, word, protocol))
    return made.ljust(60, b"\0")


@pytest.mark.parametrize("chunk", range(2))
def test_answers_as_scapy_makes_them(chunk, tmp_path):
    """Every byte of each answer, also of frames with padding, and in segments."""
    if not TOOL.exists():
        pytest.skip("the tests of this build are not built")
    draw = random.Random(zlib.crc32(b"reject %d" % chunk))
    before, lists, wanted = [], [], []
    for _ in range(PACKETS // 2):
        version, word = draw.choice((4, 6)), draw.choice(TYPES)
        there, back = link(draw)
        protocol, content = upper(draw, version)
        frame = bytes(there / network(draw, version) / content)
        before.append(frame + b"\x55" * draw.choice((0, 0, 3, 46)))
        lists.append(f"reject {word}")
        wanted.append(answer_for(frame, back, version, word, protocol))
    answers, made = run_lists(tmp_path, before, lists)
    assert len(answers) == len(before)
    for number, (drop, length) in enumerate(answers):
        assert drop == "rejected"
        assert int(length) == len(wanted[number] or b""), (number, lists[number])
        if wanted[number] is not None:
            assert next(made) == wanted[number], (number, lists[number])
    assert next(made, None) is None


def silent_frames():
    """Frames that nobody is to be told of, by what is wrong with them."""
    ether, four, six = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02"), \
        IP(src="10.0.0.1", dst="10.0.0.2"), IPv6(src="fd00::1", dst="fd00::2")
    udp, data = UDP(sport=1, dport=2), Raw(b"x" * 40)
    wrong_sum = bytearray(bytes(ether / four / udp / data))
    wrong_sum[24] ^= 1
    made = {
        "reset": ether / four / TCP(flags="R"),
        "reset with a number": ether / six / TCP(flags="RA"),
        "to all, by its link": Ether(src="02:00:00:00:00:01", dst="ff:ff:ff:ff:ff:ff") / four / udp,
        "to a group, by its link": Ether(src="02:00:00:00:00:01", dst="01:00:5e:00:00:01") / four / udp,
        "from a group, by its link": Ether(src="03:00:00:00:00:01", dst="02:00:00:00:00:02") / four / udp,
        "arp": ether / ARP(),
        "later fragment": ether / IP(src="10.0.0.1", dst="10.0.0.2", frag=3) / data,
        "later fragment of IPv6": ether / six / IPv6ExtHdrFragment(offset=3, nh=17) / data,
        "first fragment without a number": ether / IP(src="10.0.0.1", dst="10.0.0.2", flags="MF") / TCP(flags="S"),
        "error": ether / four / ICMP(type=3, code=1) / four / udp,
        "redirect": ether / four / ICMP(type=5) / four / udp,
        "time exceeded": ether / four / ICMP(type=11) / four / udp,
        "error of IPv6": ether / six / ICMPv6DestUnreach() / six / udp,
        "too big": ether / six / ICMPv6PacketTooBig() / six / udp,
        "redirect of IPv6": ether / six / ICMPv6ND_Redirect(tgt="fd00::9", dst="fd00::8"),
        "icmp without a type": ether / IP(src="10.0.0.1", dst="10.0.0.2", proto=1),
        "cut tcp": ether / IP(src="10.0.0.1", dst="10.0.0.2", proto=6) / Raw(b"x" * 19),
        "tcp with a header beyond its end": ether / four / TCP(flags="S", dataofs=9),
        "wrong sum": bytes(wrong_sum),
        "nine tags": Ether(bytes(ether)[:12] + b"\x81\x00\x00\x01" * 9 + b"\x08\x00" + bytes(four / udp)),
        "cut extension": ether / IPv6(src="fd00::1", dst="fd00::2", nh=0) / Raw(b"x"),
        "empty": b"\x02\0\0\0\0\2\x02\0\0\0\0\1\x08\0",
    }
    for source in ("0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255"):
        made[f"from {source}"] = ether / IP(src=source, dst="10.0.0.2") / udp
    for target in ("224.0.0.1", "255.255.255.255", "0.0.0.0"):
        made[f"to {target}"] = ether / IP(src="10.0.0.1", dst=target) / udp
    for source in ("::", "::1", "ff02::1"):
        made[f"from {source}"] = ether / IPv6(src=source, dst="fd00::2") / udp
    for target in ("ff02::1", "::"):
        made[f"to {target}"] = ether / IPv6(src="fd00::1", dst=target) / udp
    return {name: bytes(frame) for name, frame in made.items()}


def test_no_answer(tmp_path):
    """RFC 1122 section 3.2.2, RFC 1812 section 4.3.2.7, RFC 4443 section 2.4; and what cannot be read."""
    if not TOOL.exists():
        pytest.skip("the tests of this build are not built")
    silent = silent_frames()
    # each three times: the third lies in small segments
    before = [frame for frame in silent.values() for _ in range(3)]
    answers, made = run_lists(tmp_path, before, ["reject usual"] * len(before))
    told = {name: length for (name, at) in zip(silent, range(0, len(before), 3))
            for _, length in answers[at:at + 3] if length != "0"}
    assert told == {} and next(made, None) is None


ROUND = {
    "tcp": frames.Tcp(0, "10.0.0.1", 1000, "10.0.0.2", 80).segment(0, SYN).packets[0],
    "udp": frames.udp(0, "10.0.0.1", 1000, "10.0.0.2", 53),
    "six": frames.udp(0, "fd00::1", 1000, "fd00::2", 53, vlans=[7]),
    "ping": frames.ping(0, "10.0.0.1", "10.0.0.2"),
    "error": frames.unreachable(0, "10.0.0.1", frames.udp(0, "10.0.0.2", 9, "10.0.0.1", 9)),
    "arp": frames.arp(0, "10.6.0.1", "10.6.0.2"),
    "allowed": frames.udp(0, "10.9.0.1", 1000, "10.0.0.2", 53),
}
PASSES = 30


def write_round(path):
    return frames.write(path, *ROUND.values(), in_order=False)


def check_rejected(running, wire):
    """Each rejected packet is counted once by what became of its sender, and answers by their port."""
    rejected = running.drops().get("rejected", 0)
    assert rejected == wire["reject_replies"] + wire["reject_limited"] + wire["reject_unanswered"]
    assert wire["reject_replies"] == sum(port["reject_replies"] for port in running.ports().values())
    return rejected


@pytest.mark.usefixtures("simulated_nic")
@pytest.mark.parametrize("threads", ["run-to-completion", "split"])
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("pattern", ["eth / ipv4 src is 10.0.0.1", "eth / ipv4 src is 10.0.0.1 ttl is 64"],
                         ids=["flow", "packet"])
def test_every_packet_is_counted(started, tmp_path, pattern, workers, threads):
    """By its flow's verdict or its own: dropped, answered by the port that it came by, and the rule counts it."""
    lines = [rule(pattern, "reject"), rule("eth / ipv6", "count / reject type host"), rule("eth type is 0x806", "reject")]
    (tmp_path / "rules").write_text("\n".join(lines) + "\n")
    running = started(f"capture={write_round(tmp_path / 'round.pcap')},passes={PASSES}", "--workers", workers,
                      "--threads", threads, "--rules", tmp_path / "rules")
    running.until(lambda: sent(running) == PASSES * len(ROUND), "all packets")
    wire = running.idle()
    assert check_rejected(running, wire) == PASSES * 6
    assert (wire["nic_dropped"], wire["reject_replies"], wire["reject_unanswered"]) == (0, PASSES * 4, PASSES * 2)
    ports = running.ports()
    assert (ports["a"]["tx_packets"], ports["a"]["reject_replies"]) == (PASSES * 4, PASSES * 4)
    assert (ports["b"]["tx_packets"], ports["b"]["reject_replies"]) == (PASSES, 0)
    told = running.ask("rule list")
    assert [line["packets"] for line in told] == [PASSES * 4, PASSES, PASSES]
    assert [line["rule"] for line in told] == lines
    assert [line["where"] for line in told] == ["software"] * 3
    assert {line["why"] for line in told} == {"it rejects: no NIC tells senders that their packets are dropped"}
    dropped = [record.get("rule_dropped_packets", 0) for record in running.ask("flow list")]
    assert sum(dropped) == PASSES * 5
    explained = running.ask("flow explain", src="fd00::1", sport=1000, dst="fd00::2", dport=53, proto="udp")[0]
    assert explained["verdict"] == "reject" and explained["decided_by"]["rule"] == lines[1]
    assert "120 answers to rejected packets" in running.client("wire", "show")
    running.stop(leaves=["records.json"])


@pytest.mark.usefixtures("simulated_nic")
def test_the_rate_of_answers(started, tmp_path):
    """What is over the rate is dropped in silence, and counted; 0: nobody is told."""
    capture = frames.write(tmp_path / "one.pcap", [frames.udp(0, "10.0.0.1", 1000, "10.0.0.2", 53)])
    (tmp_path / "rules").write_text(rule("ipv4", "reject type admin") + "\n")
    for rate, most in ((0, 0), (50, 5 + 50 * 60)):
        running = started(f"capture={capture},passes=5000", "--rules", tmp_path / "rules",
                          "--rules-reject-rate", rate)
        running.until(lambda at=running: sent(at) == 5000, "all packets")
        wire = running.idle()
        assert check_rejected(running, wire) == 5000
        # at once a tenth of what may come in a second; no test takes a minute
        assert min(rate, 5) <= wire["reject_replies"] <= most
        assert wire["reject_limited"] == 5000 - wire["reject_replies"]
        running.stop(leaves=["records.json"])
        (tmp_path / "engine" / "records.json").unlink()


@pytest.mark.usefixtures("simulated_nic")
def test_live_flows_come_under_it(started, tmp_path):
    """A flow that is there is rejected from some packet on, and goes on when the rule is gone."""
    running = started(f"capture={write_round(tmp_path / 'round.pcap')},pace=20000")
    running.until(lambda: sent(running) > 100, "packets come")
    add(running, rule("ipv4 src is 10.0.0.1", "reject"))
    running.until(lambda: running.drops().get("rejected", 0) > 0, "they are rejected")
    running.until(lambda: running.wire()["reject_replies"] > 0, "and answered")
    running.ask("rule del", port=0, number=0)
    running.until(lambda: running.connection.ask("rule list")[1]["unsettled"] == 0, "it is settled")
    before = running.drops()["rejected"]
    out = running.wire()["out"]
    running.until(lambda: running.wire()["out"] > out + 100, "packets pass")
    assert running.drops()["rejected"] == before
    running.stop(leaves=["records.json"], idle=False)


def test_in_replay(replay, tmp_path):
    """There is nobody to be told: the packets are dropped, and in the records."""
    write_round(tmp_path / "round.pcap")
    (tmp_path / "rules").write_text(rule("ipv4 src is 10.0.0.1", "reject") + "\n")
    result = replay("--rules", tmp_path / "rules", tmp_path / "round.pcap")
    assert {why: n for why, n in result.summary["dropped"].items() if n} == {"rejected": 4}
    assert sum(record.get("rule_dropped_packets", 0) for record in result.records) == 4


def test_words(tmp_path):
    """It is printed as it was read, and a wrong word is refused."""
    actions = [f"reject type {word}" for word in TYPES[1:]] + [
        "log / reject", "log", "mark id 3 / reject / count", "log / drop",
        "reject type prot", "reject / drop", "log / passthru"]
    lines = [rule(f"ipv4 / udp dst is {number}", words) for number, words in enumerate(actions)]
    (tmp_path / "rules").write_text("\n".join(lines))
    told = [json.loads(line) for line in run("rule", "check", "--json", tmp_path / "rules").stdout.splitlines()]
    assert [line["rule"].split(" actions ")[1] for line in told[:8]] == [f"{words} / end" for words in actions[:8]]
    rejects, logs = "it rejects: no NIC tells senders that their packets are dropped", "it logs, which no NIC does"
    assert [line["why"] for line in told[:8]] == [rejects] * 5 + [logs, rejects, logs]
    assert told[8]["error"].endswith("did you mean port?")
    assert "the rule says already what becomes of the packet" in told[9]["why"]
    assert "a rule that leaves its packets to others does nothing else" in told[10]["why"]
