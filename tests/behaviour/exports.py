# SPDX-License-Identifier: BSD-3-Clause
"""What tests of exports share: a collector, and the comparison of what it got with JSON records."""
import collections
import datetime
import json
import socket
import threading

from scapy.all import IP, IPv6

import ipfix
from conftest import run

REASONS = {"idle": 1, "active": 2, "fin": 3, "rst": 3, "killed": 4, "shutdown": 4, "evicted": 5}


def make_room(receiver):
    """For all that comes while the decoder is busy; without privileges as much as the system allows."""
    try:
        receiver.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
    except PermissionError:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)


class Collector(threading.Thread):
    """Takes messages at a port of the loopback until stop(): datagrams, or a stream, which `context` makes TLS."""

    def __init__(self, kind=socket.SOCK_DGRAM, family=socket.AF_INET, context=None, port=0, late=False, lines=False):
        super().__init__(daemon=True)
        self.socket = socket.socket(family, kind)
        self.socket.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", port))
        self.port = self.socket.getsockname()[1]
        self.stream = kind == socket.SOCK_STREAM
        self.context = context
        self.decoder = Lines() if lines else ipfix.Decoder(late)
        self.fault = None
        if self.stream:
            self.socket.listen()
        else:
            make_room(self.socket)
        self.start()

    def run(self):
        try:
            if self.stream:
                self.take_stream()
            else:
                self.take_datagrams()
        except Exception as fault:  # pylint: disable=broad-except  # it is the test's to tell
            self.fault = fault

    def take_datagrams(self):
        while True:
            data = self.socket.recv(65536)
            if data == b"stop":
                return
            self.decoder.message(data)

    def take_stream(self):
        connection, _ = self.socket.accept()
        if self.context:
            connection = self.context.wrap_socket(connection, server_side=True)
        left = b""
        while data := connection.recv(65536):
            left = self.decoder.stream(left + data)
        assert left == b"", "the last message is cut"

    def stop(self):
        """Whatever was sent before has been read then."""
        if not self.stream:
            with socket.socket(self.socket.family, socket.SOCK_DGRAM) as end:
                end.sendto(b"stop", self.socket.getsockname())
        self.join(30)
        assert not self.is_alive() and self.fault is None, self.fault
        return self.decoder


class Lines:
    """In place of a collector's decoder: bytes as they came, and how many in each datagram."""

    def __init__(self):
        self.bytes, self.count, self.lengths = bytearray(), 0, []

    def message(self, data):
        self.lengths.append(len(data))
        self.stream(data)

    def stream(self, data):
        """All but a line that is cut."""
        whole = data.rfind(b"\n") + 1
        self.bytes += data[:whole]
        self.count += data.count(b"\n")
        return data[whole:]

    def lines(self):
        return bytes(self.bytes).splitlines(keepends=True)


def unix_us(text):
    moment = datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=datetime.timezone.utc)
    return (moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)) // datetime.timedelta(microseconds=1)


def as_json_has_them(records):
    """JSON records as ipfix.conversations() has those of IPFIX, but for octets: directions without packets are none."""
    flows = {}
    for record in records:
        key = (record["proto"], (record["src"], record["sport"]), (record["dst"], record["dport"]), record["zone"],
               unix_us(record["start"]), unix_us(record["end"]), REASONS[record["end_reason"]])
        ways = [(False, record["packets"], record["bytes"], record["tcp_flags"], icmp_of(record, "")),
                (True, record["reverse_packets"], record["reverse_bytes"], record["reverse_tcp_flags"],
                 icmp_of(record, "reverse_"))]
        flows.setdefault(key, []).extend(way for way in ways if way[1] or (not way[0] and not ways[1][1]))
    return {key: sorted(ways) for key, ways in flows.items()}


def icmp_of(record, prefix):
    return record.get(prefix + "icmp_type", 0) << 8 | record.get(prefix + "icmp_code", 0)


def without_octets(conversations):
    return {key: sorted((way[0], way[1], way[3], way[4], way[5]) for way in ways if way[1] or not way[0])
            for key, ways in conversations.items()}


def check(decoder, records):
    assert decoder.missing == 0
    assert without_octets(ipfix.conversations(decoder.flows)) == as_json_has_them(records)


def exported(tmp_path, capture, options="", *more):
    """The messages of a file, decoded, and the JSON records of the same run."""
    path, output = tmp_path / "flows.ipfix", tmp_path / "flows.json"
    done = run("replay", "--export", f"ipfix+file:{path}{options}", "--output", output, *more, capture)
    assert done.code == 0, done.stderr
    decoder = ipfix.Decoder()
    assert decoder.stream(path.read_bytes()) == b""
    return decoder, [json.loads(line) for line in output.read_text().splitlines()]


def octets_of(frames):
    """By scapy: of each way from an address to another, by protocol, packets and the octets that IP headers tell."""
    sums = collections.Counter()
    for frame in frames:
        ip = frame[IP] if IP in frame else frame[IPv6]
        proto, length = (ip.proto, ip.len) if IP in frame else (ip.nh, 40 + ip.plen)
        sums[ip.src, ip.dst, proto] += length
    return sums


def octets_told(flows):
    sums = collections.Counter()
    for flow in flows:
        v6 = "sourceIPv6Address" in flow
        ends = (flow["sourceIPv6Address"], flow["destinationIPv6Address"]) if v6 else (
            flow["sourceIPv4Address"], flow["destinationIPv4Address"])
        sums[(*ends, flow["protocolIdentifier"])] += flow["octetDeltaCount"]
        sums[(*ends[::-1], flow["protocolIdentifier"])] += flow.get("reverse octetDeltaCount", 0)
    return +sums
