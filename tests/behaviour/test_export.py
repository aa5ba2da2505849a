# SPDX-License-Identifier: BSD-3-Clause
"""IPFIX exports of replays, read by a decoder of our own: the same flows as the JSON records, and octets as they are."""
import collections
import csv
import json
import pathlib
import random
import signal
import socket
import ssl
import struct
import subprocess
import time
import xml.etree.ElementTree

import pytest
from scapy.all import IP, UDP, Ether, Raw, wrpcap

import frames
import ipfix
from conftest import MILLRACE, SLOWER, run
from exports import Collector, check, exported, octets_of, octets_told
from mixture import make_mixture


PACKAGING = pathlib.Path(__file__).parents[2] / "packaging" / "ipfix"


@pytest.fixture(name="mixture")
def mixture_of_frames(tmp_path):
    return make_mixture(tmp_path)


@pytest.mark.parametrize("options", ["", "?biflow=yes", "?biflow=yes&pen=32473", "?pen=32473&domain=4294967295"])
def test_a_file_has_what_json_has(tmp_path, mixture, options):
    capture, frames = mixture
    decoder, records = exported(tmp_path, capture, options)
    check(decoder, records)
    assert octets_told(decoder.flows) == octets_of(frames)
    assert decoder.domains == {4294967295 if "domain" in options else 0}
    if "pen" in options:
        assert all("millraceFlowEndCause" in flow for flow in decoder.flows)
    else:
        assert not decoder.elements


def test_each_conversation_has_its_own_octets(tmp_path, mixture):
    """Padding is of the conversation that its frame is of: two of them on the same ports, one after the other."""
    decoder, _ = exported(tmp_path, mixture[0])
    web = [flow for flow in decoder.flows if 80 in (flow["sourceTransportPort"], flow["destinationTransportPort"])]
    assert sorted((flow["packetDeltaCount"], flow["octetDeltaCount"]) for flow in web) == 2 * [
        (2, 80)] + 2 * [(3, 40 + 40 + 740)]


def test_icmp_has_type_and_code(tmp_path, mixture):
    decoder, records = exported(tmp_path, mixture[0])
    assert {flow["icmpTypeCodeIPv4"] for flow in decoder.flows if flow["protocolIdentifier"] == 1} == {0x800, 0}
    assert {flow["icmpTypeCodeIPv6"] for flow in decoder.flows if flow["protocolIdentifier"] == 58} == {
        128 << 8, 129 << 8}
    ping = [record for record in records if record["proto"] == 1]
    assert [(one["icmp_type"], one["icmp_code"], one["reverse_icmp_type"]) for one in ping] == [(8, 0, 0)]


def test_octets_of_captures_from_elsewhere(tmp_path, captures):
    """Octets of IP packets, of each way between two ends, are those of the independent truth."""
    with open(captures / "truth.tsv", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    for name in sorted({row["file"] for row in rows}):
        wanted = collections.Counter()
        for row in rows:
            if row["file"] == name:
                a, b = (row["addrA"], int(row["portA"])), (row["addrB"], int(row["portB"]))
                wanted[row["proto"], a, b] += int(row["l3bytes_AB"])
                wanted[row["proto"], b, a] += int(row["l3bytes_BA"])
        decoder, _ = exported(tmp_path, captures / name, "", "--fragments", "separate")
        told = collections.Counter()
        for flow in decoder.flows:
            kind = "IPv6Address" if "sourceIPv6Address" in flow else "IPv4Address"
            told[str(flow["protocolIdentifier"]), (flow["source" + kind], flow["sourceTransportPort"]),
                 (flow["destination" + kind], flow["destinationTransportPort"])] += flow["octetDeltaCount"]
        assert +told == +wanted, name


def test_udp_takes_them_in_datagrams_of_the_mtu(captures, tmp_path):
    output = tmp_path / "flows.json"
    for mtu, family in ((576, socket.AF_INET), (1500, socket.AF_INET6), (9000, socket.AF_INET)):
        collector = Collector(family=family)
        host = "[::1]" if family == socket.AF_INET6 else "127.0.0.1"
        done = run("replay", "--export", f"ipfix://{host}:{collector.port}?mtu={mtu}&domain=7", "--output", output,
                   captures / "zeek-echo-connections.pcap")
        decoder = collector.stop()
        assert done.code == 0 and "1,000 records sent" in done.stderr
        check(decoder, [json.loads(line) for line in output.read_text().splitlines()])
        headers = 48 if family == socket.AF_INET6 else 28
        assert max(decoder.lengths) <= mtu - headers and max(decoder.lengths) > mtu - headers - 200


def test_all_of_it_in_the_shortest_datagrams(captures, tmp_path):
    """Templates of records that have everything need more than one datagram."""
    output = tmp_path / "flows.json"
    collector = Collector()
    done = run("replay", "--export", f"ipfix://127.0.0.1:{collector.port}?mtu=576&biflow=yes&pen=32473",
               "--output", output, captures / "zeek-echo-connections.pcap")
    decoder = collector.stop()
    assert done.code == 0 and max(decoder.lengths) <= 576 - 28
    check(decoder, [json.loads(line) for line in output.read_text().splitlines()])
    assert {element["informationElementId"] for element in decoder.options
            if "informationElementId" in element} == set(range(1, 21))


class Kept(Collector):
    """Datagrams as they came."""

    def __init__(self):
        self.datagrams = []
        super().__init__()

    def take_datagrams(self):
        while (data := self.socket.recv(65536)) != b"stop":
            self.datagrams.append(data)


def sequence_of(datagram):
    return struct.unpack_from("!I", datagram, 8)[0]


@pytest.mark.parametrize("seed", range(4))
def test_a_collector_knows_what_the_network_lost(captures, tmp_path, seed):
    """A fifth of the datagrams is lost and the rest comes in any order: the holes have what was lost, to the record."""
    collector, output = Kept(), tmp_path / "flows.json"
    done = run("replay", "--export", f"ipfix://127.0.0.1:{collector.port}?mtu=576", "--output", output,
               captures / "zeek-echo-connections.pcap")
    collector.stop()
    assert done.code == 0 and len(collector.datagrams) > 20
    chance = random.Random(seed)
    lost = set(chance.sample(range(1, len(collector.datagrams) - 1), len(collector.datagrams) // 5))
    arrived = [one for number, one in enumerate(collector.datagrams) if number not in lost]
    chance.shuffle(arrived)
    # all of the templates first, as one has them who listened before
    decoder, whole, n_records = ipfix.Decoder(), ipfix.Decoder(), {}
    for datagram in collector.datagrams:
        before = len(whole.flows) + len(whole.options)
        whole.message(datagram)
        n_records[datagram] = len(whole.flows) + len(whole.options) - before
    decoder.templates = dict(whole.templates)
    reached = sequence_of(arrived[0])
    for datagram in sorted(arrived, key=sequence_of):
        decoder.message(datagram)
        reached = sequence_of(datagram) + n_records[datagram]
    assert decoder.missing == sum(n_records[collector.datagrams[number]] for number in lost)
    assert reached == len(whole.flows) + len(whole.options)
    assert len(whole.flows) - len(decoder.flows) == decoder.missing
    check(whole, [json.loads(line) for line in output.read_text().splitlines()])


def test_files_of_elements_say_what_the_options_say(mixture, tmp_path):
    """Those for pmacct and libfixbuf have each element by its name, number, type and meaning, and no other."""
    decoder, _ = exported(tmp_path, mixture[0], "?pen=32473")
    told = {element["informationElementId"]: element for element in decoder.options
            if "informationElementId" in element}
    lengths, meanings = {1: 1, 2: 2, 3: 4, 4: 8}, {1: "quantity", 3: "deltaCounter", 4: "identifier"}
    lines = (PACKAGING / "millrace.primitives").read_text().splitlines()
    assert [line for line in lines if not line.startswith("!")] == [
        f"name={told[number]['informationElementName']} field_type=32473:{number} "
        f"len={lengths[told[number]['informationElementDataType']]} semantics=u_int" for number in sorted(told)]
    space, cert = "{http://www.iana.org/assignments}", "{http://www.cert.org/ipfix}"
    found = [[record.findtext(space + "name"), record.findtext(space + "dataType"),
              record.findtext(space + "dataTypeSemantics"), int(record.findtext(space + "elementId")),
              record.findtext(cert + "enterpriseId")]
             for record in xml.etree.ElementTree.parse(PACKAGING / "millrace.xml").iter(space + "record")]
    assert found == [[told[number]["informationElementName"],
                      f"unsigned{8 * lengths[told[number]['informationElementDataType']]}",
                      meanings[told[number]["informationElementSemantics"]], number, "32473"]
                     for number in sorted(told)]


def test_tcp_is_a_stream(mixture, tmp_path):
    collector = Collector(socket.SOCK_STREAM)
    output = tmp_path / "flows.json"
    done = run("replay", "--export", f"ipfix+tcp://127.0.0.1:{collector.port}", "--output", output, mixture[0])
    check(collector.stop(), [json.loads(line) for line in output.read_text().splitlines()])
    assert done.code == 0


@pytest.fixture(name="authority")
def make_authority(tmp_path):
    """A certificate for localhost that vouches for itself, and its key."""
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                    "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return certificate, key


def test_tls_is_a_stream_to_who_it_should_be(mixture, tmp_path, authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority)
    collector = Collector(socket.SOCK_STREAM, context=context)
    output = tmp_path / "flows.json"
    done = run("replay", "--export",
               f"ipfix+tls://127.0.0.1:{collector.port}?ca={authority[0]}&name=localhost", "--output", output,
               mixture[0])
    check(collector.stop(), [json.loads(line) for line in output.read_text().splitlines()])
    assert done.code == 0, done.stderr


def test_tls_refuses_who_it_is_not(mixture, authority):
    """A collector with a certificate for another name is given nothing, and the records are told as lost."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority)
    collector = Collector(socket.SOCK_STREAM, context=context)
    done = run("replay", "--export", f"ipfix+tls://127.0.0.1:{collector.port}?ca={authority[0]}&name=example.org",
               mixture[0])
    collector.join(10)
    assert done.code == 1
    assert "0 records sent" in done.stderr and "lost (" in done.stderr and "ostname mismatch" in done.stderr
    assert not collector.decoder.flows


def test_a_filter_takes_some(tmp_path, mixture):
    for options, wanted in (("?proto=udp", {17}), ("?port=80", {6}), ("?net=2001:db8::/32", {17, 58}),
                            ("?packets=5", {6}), ("?proto=tcp&port=81", set())):
        decoder, _ = exported(tmp_path, mixture[0], options)
        assert {flow["protocolIdentifier"] for flow in decoder.flows} == wanted, options


def test_active_reports_add_up(tmp_path):
    """A flow of five minutes is told each minute, and the reports add up to it."""
    frames = []
    for second in range(300):
        frame = Ether(dst="02:00:00:00:00:02") / IP(src="192.0.2.1", dst="192.0.2.2") / UDP(sport=1, dport=2) / Raw(b"x" * 100)
        frame.time = 1700000000 + second
        frames.append(frame)
    path = tmp_path / "long.pcap"
    wrpcap(str(path), frames)
    decoder, records = exported(tmp_path, path)
    check(decoder, records)
    assert [flow["flowEndReason"] for flow in decoder.flows] == 4 * [2] + [4]
    assert sum(flow["packetDeltaCount"] for flow in decoder.flows) == 300
    assert sum(flow["octetDeltaCount"] for flow in decoder.flows) == 300 * 128
    starts = [flow["flowStartMilliseconds"] // 1000 - 1700000000 for flow in decoder.flows]
    assert starts == [0, 60, 120, 180, 240]


@pytest.mark.parametrize("url, why", [
    ("ipfx://127.0.0.1", "begins with ipfix://"),
    ("ipfix://", "a host is needed"),
    ("ipfix://::1:4739", "in brackets"),
    ("ipfix://[::1", "has no ]"),
    ("ipfix://127.0.0.1:0", "from 1 to 65535"),
    ("ipfix://127.0.0.1:70000", "from 1 to 65535"),
    ("ipfix://127.0.0.1?domaim=7", "did you mean domain?"),
    ("ipfix://127.0.0.1?domain=-1", "a number is needed"),
    ("ipfix://127.0.0.1?domain", "OPTION=VALUE"),
    ("ipfix://127.0.0.1?biflow=true", "yes or no"),
    ("ipfix://127.0.0.1?pen=29305", "RFC 5103"),
    ("ipfix+tcp://127.0.0.1?mtu=1500", "no use for it"),
    ("ipfix://127.0.0.1?net=1.2.3/8", "no IP address or prefix"),
    ("ipfix+file:", "a file"),
    ("ipfix+file:-", "-: IPFIX is written to a file alone"),
    ("ipfix://127.0.0.1?domain=7&rate=5&domain=8", "domain: this option is given twice"),
    ("json+file:flows.json?net=10.0.0.0/8&net=11.0.0.0/8", "net: this option is given twice"),
    ("ipfix+tls://127.0.0.1?ca=/nowhere/ca.pem", "/nowhere/ca.pem: not to be used for TLS: No such file or directory"),
    ("kafka+tls://127.0.0.1/flows?ca=/nowhere/ca.pem", "/nowhere/ca.pem: not to be used for TLS: No such file"),
    ("json+tls://127.0.0.1:1?cert=/nowhere/cert.pem&key=/nowhere/key.pem",
     "/nowhere/cert.pem: not to be used for TLS: No such file or directory"),
    ("ipfix+tls://127.0.0.1?cert=/etc/hostname", "needed together"),
])
def test_a_wrong_url_is_told(mixture, url, why):
    done = run("replay", "--export", url, mixture[0])
    assert done.code == (1 if "not to be used" in why else 2) and why in done.stderr, done.stderr
    assert not pathlib.Path("-").exists()


def test_a_key_that_is_missing_is_told(mixture, authority, tmp_path):
    gone = tmp_path / "gone.pem"
    done = run("replay", "--export", f"ipfix+tls://127.0.0.1?cert={authority[0]}&key={gone}", mixture[0])
    assert done.code == 1 and f"{gone}: not to be used for TLS: No such file or directory" in done.stderr


def both(first, second):
    return f"{first} and {second} write to the same place: records would be mixed"


def test_outputs_do_not_share_a_file(mixture, tmp_path):
    """Whether it is there or not, and by whatever name; the command line names both."""
    path, link, other = tmp_path / "flows", tmp_path / "link", tmp_path / "other"
    link.symlink_to("flows")

    def refused(*words):
        done = run("replay", *words, mixture[0])
        assert done.code == 2, done.stderr
        return done.stderr

    for _ in range(2):
        assert both(f"--output {path}", f"--export json+file:{path}") in refused(
            "--output", path, "--export", f"json+file:{path}")
        assert both(f"--export ipfix+file:{path}", f"--export json+file:{link}?rate=7") in refused(
            "--export", f"ipfix+file:{path}", "--export", f"json+file:{other}", "--export", f"json+file:{link}?rate=7")
        assert both(f"--export json+file:{path}", f"--export json+file:{tmp_path}/./flows") in refused(
            "--export", f"json+file:{path}", "--export", f"json+file:{tmp_path}/./flows")
        path.write_text("a file of its own\n")
    other.hardlink_to(path)
    assert both(f"--output {path}", f"--export json+file:{other}") in refused(
        "--output", path, "--export", f"json+file:{other}")
    assert both("--output -", "--export json+file:-") in refused("--output", "-", "--export", "json+file:-")
    assert path.read_text() == "a file of its own\n"
    done = run("replay", "--output", "/dev/null", "--export", "json+file:/dev/null", mixture[0])
    assert done.code == 0, done.stderr


@pytest.mark.parametrize("option", ["--rules", "--blocks"])
def test_what_is_read_is_no_place_for_an_output(mixture, tmp_path, option):
    path = tmp_path / "read"
    path.write_text("# nothing\n")
    for words in (["--output", str(path)], ["--export", f"json+file:{path}"], ["--export", f"ipfix+file:{path}"]):
        done = run("replay", option, path, *words, mixture[0])
        assert done.code == 2 and f"{' '.join(words)}: this is the file that {option} {path} reads" in done.stderr
    assert path.read_text() == "# nothing\n"


def test_a_flow_that_falls_silent_ends_with_a_record(tmp_path):
    """Of a flow without a packet since its active report the end is told, with its reason, and 0 packets; no report before."""
    frames.write(tmp_path / "silent.pcap", [frames.udp(0, "10.0.0.1", 1000, "10.0.0.2", 53)] + [
        frames.udp(second, "10.0.0.3", 1001, "10.0.0.4", 53) for second in range(0, 400, 10)])
    decoder, records = exported(tmp_path, tmp_path / "silent.pcap", "", "--timeout", "udp=200")
    silent = [(flow["packetDeltaCount"], flow["flowEndReason"]) for flow in decoder.flows
              if flow["sourceTransportPort"] == 1000]
    assert silent == [(1, 2), (0, 1)]
    assert [(record["packets"], record["end_reason"]) for record in records if record["sport"] == 1000] == [
        (1, "active"), (0, "idle")]
    check(decoder, records)


def test_active_reports_are_of_exports(tmp_path):
    """Every 60 s with an export, never with off, and never without an export: as --help says."""
    frames.write(tmp_path / "long.pcap", [
        frames.udp(second, "10.0.0.3", 1001, "10.0.0.4", 53) for second in range(0, 185, 5)])
    reasons = [record["end_reason"] for record in exported(tmp_path, tmp_path / "long.pcap")[1]]
    assert reasons == ["active", "active", "active", "shutdown"]
    for words in ([], ["--active", "off"]):
        assert [record["end_reason"] for record in exported(tmp_path, tmp_path / "long.pcap", "", "--active", "off")[1]
                ] == ["shutdown"]
        assert len(run("replay", *words, tmp_path / "long.pcap").stdout.splitlines()) == 1
    assert "off: at its end\n                       alone (default: off; 60 with exports)" in run(
        "replay", "--help").stdout.decode()


def test_nobody_listens(mixture):
    """UDP without a collector: the replay goes on to its end, and says so."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    done = run("replay", "--export", f"ipfix://127.0.0.1:{port}?mtu=576", mixture[0])
    assert done.code == 0 and "nobody listened" in done.stderr


def test_a_rate_below_the_records_of_a_flow(tmp_path):
    """A flow of two directions is two records: at one a second they come all the same."""
    there = Ether(dst="02:00:00:00:00:02") / IP(src="192.0.2.1", dst="192.0.2.2") / UDP(sport=1, dport=2) / Raw(b"x" * 20)
    back = Ether(dst="02:00:00:00:00:01") / IP(src="192.0.2.2", dst="192.0.2.1") / UDP(sport=2, dport=1) / Raw(b"x" * 20)
    wrpcap(str(tmp_path / "two.pcap"), [there, back])
    decoder, records = exported(tmp_path, tmp_path / "two.pcap", "?rate=1")
    check(decoder, records)
    assert len(decoder.flows) == 2


@pytest.mark.parametrize("kind", ["ipfix+file", "json+file"])
def test_a_capture_is_no_place_for_an_export(mixture, tmp_path, kind):
    """It would be emptied before it is read."""
    own = tmp_path / "own.pcap"
    own.write_bytes(mixture[0].read_bytes())
    done = run("replay", "--export", f"{kind}:{own}", own)
    assert done.code == 2 and "this is one of the captures to read" in done.stderr
    assert own.read_bytes() == mixture[0].read_bytes()


def test_a_signal_ends_a_replay_that_keeps_to_a_rate(mixture, tmp_path):
    """At one record a second it would go on for minutes."""
    path = tmp_path / "flows.json"
    with subprocess.Popen([MILLRACE, "replay", "--export", f"json+file:{path}?rate=1", mixture[0]],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 30 * SLOWER
        while not path.exists() or not path.stat().st_size:
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        process.wait(20 * SLOWER)
