# SPDX-License-Identifier: BSD-3-Clause
"""Captures as they come: link types, check sequences, sections, byte orders, files of one stream."""
import gzip
import struct

import pytest

import frames
from conftest import ROOT, run

FIELD = ROOT.parent / "shared" / "field"
A, B, A6, B6 = "10.0.0.1", "10.0.0.2", "fd00::1", "fd00::2"
ETHERNET, SIZE = 1, 14


def conversation(version=4, time=0):
    """A TCP conversation of nine packets, as frames with their times."""
    ends = (A, 1025, B, 80) if version == 4 else (A6, 1025, B6, 80)
    return frames.Tcp(time, *ends).open().talk().close().packets


def timed(packets, head=None, fcs=b""):
    """(microseconds, bytes) of each packet, the Ethernet header replaced by `head` unless it is None."""
    return [(round(packet.time * 1000000),
             (bytes(packet) if head is None else head + bytes(packet)[SIZE:]) + fcs)
            for packet in packets]


def pcap(path, packets, link=ETHERNET, order="<", nano=False):
    """A pcap file in either byte order."""
    magic, unit = (0xA1B23C4D, 1000) if nano else (0xA1B2C3D4, 1)
    data = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 262144, link)
    for time, packet in packets:
        data += struct.pack(order + "IIII", time // 1000000, time % 1000000 * unit, len(packet),
                            len(packet)) + packet
    path.write_bytes(data)
    return path


def block(order, kind, body):
    body += bytes(-len(body) % 4)
    length = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + length + body + length


def option(order, code, value):
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def section(order, *interfaces):
    """A section with interfaces of (link type, options, packets), the packets in the order of time."""
    data = block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))
    packets = []
    for number, (link, options, listed) in enumerate(interfaces):
        data += block(order, 1, struct.pack(order + "HHI", link, 0, 0) + options)
        packets += [(time, number, packet) for time, packet in listed]
    for time, number, packet in sorted(packets):
        data += block(order, 6, struct.pack(order + "IIIII", number, time >> 32, time & 0xFFFFFFFF,
                                            len(packet), len(packet)) + packet)
    return data


def summed(records):
    """What does not depend on the link: of each record the key, the counts, the times and the end."""
    keys = ("version", "proto", "src", "sport", "dst", "dport", "packets", "reverse_packets",
            "start", "end", "end_reason", "tcp_flags", "reverse_tcp_flags")
    return [tuple(record[key] for key in keys) for record in records]


SLL = struct.pack("!HHHIIH", 4, 1, 6, 0x02000000, 0x00010000, 0x0800)
SLL2 = struct.pack("!HHIHBBQ", 0x0800, 0, 3, 1, 4, 6, 0)
LINKS = [
    # number, name of the key, what stands before IPv4, before IPv6
    (12, "raw", b"", b""), (14, "raw", b"", b""), (101, "raw", b"", b""),
    (228, "raw", b"", None), (229, "raw", None, b""),
    (113, "linux_sll", SLL, SLL[:-2] + b"\x86\xdd"),
    (276, "linux_sll2", SLL2, b"\x86\xdd" + SLL2[2:]),
    (0, "loopback", b"\x02\0\0\0", b"\x1e\0\0\0"), (0, "loopback", b"\0\0\0\x02", b"\0\0\0\x18"),
    (108, "loopback", b"\0\0\0\x02", b"\0\0\0\x18"),
    (9, "ppp", b"\0\x21", b"\x57"), (9, "ppp", b"\xff\x03\0\x21", b"\xff\x03\x57"),
    (50, "ppp", b"\xff\x03\0\x21", b"\xff\x03\0\x57"), (50, "ppp", b"\x0f\0\x08\0", b"\x8f\0\x86\xdd"),
    (51, "pppoe", b"\x11\0\0\x01\0\x40\0\x21", b"\x11\0\0\x01\0\x40\0\x57"),
]


@pytest.mark.parametrize("number, name, version, head", [
    (number, name, version, head) for number, name, *heads in LINKS
    for version, head in zip((4, 6), heads) if head is not None])
def test_link_types(tmp_path, replay, number, name, version, head):
    """The same flow on each link, in pcap and pcapng; the bytes are those of the capture."""
    packets = conversation(version)
    ethernet = replay(pcap(tmp_path / "ethernet.pcap", timed(packets)))
    assert "link" not in ethernet.records[0]
    other = tmp_path / "other.pcapng"
    other.write_bytes(section("<", (number, b"", timed(packets, head))))
    for path in (pcap(tmp_path / "other.pcap", timed(packets, head), number),
                 pcap(tmp_path / "swapped.pcap", timed(packets, head), number, ">", nano=True), other):
        result = replay(path)
        assert summed(result.records) == summed(ethernet.records)
        record, = result.records
        assert record["link"] == name and record["wire"] == 0
        assert list(record)[7:10] == ["zone", "link", "packets"]
        sizes = [len(packet) for _, packet in timed(packets, head)]
        assert record["bytes"] + record["reverse_bytes"] == sum(sizes) == result.summary["bytes"]


@pytest.mark.parametrize("head, number", [(SLL[:-2] + b"\x81\0", 113), (b"\x81\0" + SLL2[2:], 276)])
def test_cooked_tags(tmp_path, replay, head, number):
    """A tag that the kernel left in the packet follows the cooked header."""
    packets = timed(conversation(), head + b"\0\x07\x08\0") + timed(conversation(),
                                                                  head + b"\0\x08\x08\0")
    path = pcap(tmp_path / "tags.pcap", sorted(packets), number)
    result = replay("--zone", "vlan", path)
    assert sorted(record["zone"] for record in result.records) == [7, 8]
    assert {record["end_reason"] for record in result.records} == {"fin"}


@pytest.mark.parametrize("number, packet, sort", [
    (113, SLL[:-2] + b"\x08\x06" + bytes(28), "non_ip"), (113, SLL[:10], "malformed"),
    (276, b"\x08\x06" + SLL2[2:] + bytes(28), "non_ip"), (276, SLL2[:19], "malformed"),
    (0, b"\x07\0\0\0" + bytes(30), "non_ip"), (0, b"\x02\0\0", "malformed"),
    (9, b"\xff\x03\xc0\x21" + bytes(30), "non_ip"), (9, b"\xff\x03\0", "malformed"),
    (51, b"\x11\x09" + bytes(20), "non_ip"), (51, b"\x11\0\0", "malformed"),
    (101, b"", "malformed"), (101, b"\x13" * 40, "malformed"),
])
def test_no_ip_on_other_links(tmp_path, replay, number, packet, sort):
    """What is not IP is carried, what is cut is dropped."""
    summary = replay(pcap(tmp_path / "it.pcap", [(5, packet)], number)).summary
    assert summary["packets"] == 1
    assert (summary["dropped"] | summary)[sort] == 1


def test_fragments_and_errors_on_other_links(tmp_path, replay):
    """Later fragments find their first, and an ICMP error the flow that it quotes."""
    whole = frames.udp(0, A, 1000, B, 53, size=2000)
    packets = frames.fragments(whole, 1000)
    packets.append(frames.unreachable(1, B, frames.udp(0, A, 1000, B, 53)))
    result = replay(pcap(tmp_path / "it.pcap", timed(packets, SLL), 113))
    udp, = [record for record in result.records if record["proto"] == 17]
    assert udp["packets"] == 3 and udp["icmp_errors"] == 1
    assert result.summary["fragments_untied"] == result.summary["icmp_untied"] == 0


@pytest.mark.usefixtures("simd")
def test_interfaces_of_several_links(tmp_path, replay):
    """One file of Ethernet in nanoseconds, raw IP in microseconds and cooked packets in eighths."""
    packets = conversation()
    cooked = [(8 * frames.START + n, packet) for n, (_, packet) in enumerate(timed(packets, SLL))]
    nano = [(time * 1000, packet) for time, packet in timed(packets)]
    path = tmp_path / "mixed.pcapng"
    path.write_bytes(section("<", (ETHERNET, option("<", 9, b"\x09"), nano),
                             (101, b"", timed(packets, b"")),
                             (113, option("<", 9, b"\x83"), cooked)))
    result = replay(path, "--workers", 2)
    told = {record.get("link"): record for record in result.records}
    assert set(told) == {None, "raw", "linux_sll"}
    assert summed([told[None]]) == summed([told["raw"]])
    assert told["linux_sll"]["end"] == "2026-11-20T08:00:01.000000Z"
    assert told["linux_sll"]["end_reason"] == "fin"


@pytest.mark.parametrize("order", ["<", ">"])
def test_check_sequences(tmp_path, replay, order):
    """Bytes are those without a check sequence, where the file says that there is one."""
    packets = conversation()
    right = replay(pcap(tmp_path / "without.pcap", timed(packets))).records
    held = timed(packets, fcs=b"\xde\xad\xbe\xef")
    flags = option(order, 2, struct.pack(order + "I", 4 << 5))
    by_interface, by_packet = tmp_path / "interface.pcapng", tmp_path / "packet.pcapng"
    by_interface.write_bytes(section(order, (ETHERNET, option(order, 13, b"\x20"), held)))
    data = section(order, (ETHERNET, b"", []))
    for time, packet in held:
        body = struct.pack(order + "IIIII", 0, time >> 32, time & 0xFFFFFFFF, len(packet), len(packet))
        data += block(order, 6, body + packet + bytes(-len(packet) % 4) + flags)
    by_packet.write_bytes(data)
    for path in (pcap(tmp_path / "two.pcap", held, 0x24000000 | ETHERNET, order),
                 pcap(tmp_path / "four.pcap", held, 0x44000000 | ETHERNET, order),
                 by_interface, by_packet):
        assert replay(path).records == right, path
    # no word, no guess
    silent = replay(pcap(tmp_path / "silent.pcap", held, 0x20000000 | ETHERNET, order)).records
    assert silent[0]["bytes"] == right[0]["bytes"] + 4 * right[0]["packets"]


@pytest.mark.parametrize("orders", ["<>", "><", ">>", "<><"])
def test_sections(tmp_path, replay, orders):
    """Sections of either byte order, one after the other, are one capture."""
    packets = timed(conversation())
    right = replay(pcap(tmp_path / "one.pcap", packets)).records
    path, data = tmp_path / "sections.pcapng", b""
    for number, order in enumerate(orders):
        part = packets[number * 3:] if number == len(orders) - 1 else packets[number * 3:][:3]
        unused = (113, b"", []) if number % 2 else (ETHERNET, b"", [])
        data += section(order, (ETHERNET, b"", part), unused) + block(order, 5, bytes(12))
    path.write_bytes(data)
    assert replay(path).records == right


def test_later_version(tmp_path):
    """It is told as what it is, and what came before it counts."""
    path = tmp_path / "later.pcapng"
    later = block("<", 0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 2, 1, -1))
    path.write_bytes(section("<", (ETHERNET, b"", timed(conversation()))) + later)
    result = run("replay", "--json", path)
    assert result.code == 1
    assert "pcapng version 2.1, only 1.x is read" in result.lines[0]
    assert "damaged" not in result.stderr
    assert [record["end_reason"] for record in result.records] == ["fin"]


def test_snapshot_length_in_texts(tmp_path):
    """An error speaks of the file's own snapshot length."""
    path = pcap(tmp_path / "it.pcap", timed(conversation()))
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, 16, 65535)
    struct.pack_into("<I", data, 24 + 8, 300000)
    path.write_bytes(data)
    result = run("replay", "--json", path)
    assert result.code == 1
    assert "a packet of 300000 bytes" in result.lines[0]
    assert "the file's snapshot length is 65535" in result.lines[0]


def test_compressed(tmp_path):
    """One clear line says how to read it; and that way works (see also test_stdin)."""
    path = pcap(tmp_path / "it.pcap", timed(conversation()))
    packed = tmp_path / "it.pcap.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    result = run("replay", "--json", packed)
    assert result.code == 1
    assert result.lines == [f"millrace: {packed}: compressed by gzip; unpack it on the way: "
                            "zcat FILE | millrace replay -"]


# ------------------------------------------------------------------------- one stream in files
def rotated(tmp_path, number=3):
    """The files of one conversation, and the records of it in one file."""
    packets = timed(conversation())
    size = (len(packets) + number - 1) // number
    return [pcap(tmp_path / f"part{n}.pcap", packets[n * size:][:size]) for n in range(number)]


@pytest.mark.parametrize("number", [2, 3, 9])
def test_continue(tmp_path, replay, number):
    """With --continue files are one stream; without it each is a run of its own."""
    files = rotated(tmp_path, number)
    right = replay(pcap(tmp_path / "whole.pcap", timed(conversation())))
    result = replay("--continue", *files)
    assert result.records == right.records
    assert result.summary["captures"] == number
    assert result.summary["packets"] == right.summary["packets"]
    apart = replay(*files)
    assert len(apart.records) == number
    assert [record["file"] for record in apart.records] == [str(path) for path in files]


def test_continue_from_stdin(tmp_path, replay):
    """- stands wherever it is given."""
    files = rotated(tmp_path, 3)
    right = replay(pcap(tmp_path / "whole.pcap", timed(conversation())))
    result = replay("--continue", files[0], "-", files[2], stdin=files[1].read_bytes())
    assert result.records == right.records


def test_continue_keeps_what_waits(tmp_path, replay):
    """Fragments are tied, and silence ends a flow, over the border between two files."""
    pieces = timed(frames.fragments(frames.udp(0, A, 1000, B, 53, size=2000), 1000))
    later = timed([frames.udp(1000, A, 1000, B, 53)])
    files = [pcap(tmp_path / "one.pcap", pieces[:1]), pcap(tmp_path / "two.pcap", pieces[1:]),
             pcap(tmp_path / "three.pcap", later)]
    result = replay("--continue", *files)
    assert [(record["packets"], record["end_reason"]) for record in result.records] == [
        (len(pieces), "idle"), (1, "shutdown")]
    assert result.summary["fragments_untied"] == 0


def test_continue_past_a_bad_file(tmp_path):
    """A file that cannot be read is told; the stream goes on with the next one."""
    files = rotated(tmp_path, 3)
    bad = tmp_path / "bad.pcap"
    bad.write_text("no capture")
    result = run("replay", "--json", "--continue", files[0], bad, *files[1:])
    assert result.code == 1
    assert len(result.lines) == 1 and str(bad) in result.lines[0]
    assert [record["end_reason"] for record in result.records] == ["fin"]


def test_continue_in_words(tmp_path):
    """One summary for the stream, none for its files."""
    result = run("replay", "--continue", *rotated(tmp_path, 2))
    assert result.code == 0
    assert "part0.pcap" not in result.stderr
    assert "2 captures  9 packets" in result.stderr


# ------------------------------------------------------------------------------ from the field
@pytest.mark.parametrize("files, flows", [
    (["f05raw.pcap"], [(17, 1, 0, 29, 0, "raw")]),
    (["f05sll.pcap"], [(17, 1, 0, 45, 0, "linux_sll")]),
    (["f05null.pcap"], [(17, 1, 0, 33, 0, "loopback")]),
    (["f06.pcap"], [(6, 10, 9, 852, 3498, None)]),
    (["f13.pcapng"], [(6, 10, 9, 852, 3498, None)]),
    (["--continue", "f30a_1.pcap", "f30a_2.pcap"], [(6, 10, 9, 852, 3498, None)]),
    (["n02.pcap"], [(6, 1, 0, 78, 0, None), (6, 1, 0, 98, 0, None)]),
])
def test_field(replay, files, flows):
    if not (FIELD / files[-1]).is_file():
        pytest.skip(f"no {files[-1]} in {FIELD}")
    result = replay(*[FIELD / name if "." in name else name for name in files])
    keys = ("proto", "packets", "reverse_packets", "bytes", "reverse_bytes")
    assert sorted(tuple(record[key] for key in keys) + (record.get("link"),)
                  for record in result.records) == flows
