# SPDX-License-Identifier: BSD-3-Clause
"""What people's own collectors make of our exports: each is started from its package, and agrees with the JSON records."""
import collections
import datetime
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest

from engine import MILLRACE, ROOT, SLOWER

sys.path.append(str(ROOT / "tests"))

CAPTURES = ROOT.parent / "shared" / "captures"
FLAGS = "CEUAPRSF"
CAUSES = ["fin", "rst", "idle", "active", "evicted", "killed", "shutdown"]


def free_port(kind=socket.SOCK_DGRAM):
    with socket.socket(socket.AF_INET, kind) as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def needs(program):
    if shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin") is None:
        pytest.skip(f"{program} is not installed")


def until(condition, what, seconds=30):
    deadline = time.monotonic() + seconds * SLOWER
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.02)
    return found


@pytest.fixture(name="capture", params=["made", "zeek-echo-connections.pcap", "reddit-ipv6.pcap", "skype.pcap",
                                        "gnutella.pcap"])
def captures(request, tmp_path):
    """A mixture that we make, and captures from elsewhere where they are."""
    if request.param == "made":
        from mixture import make_mixture  # pylint: disable=import-outside-toplevel  # it needs scapy
        return make_mixture(tmp_path)[0]
    if not (CAPTURES / request.param).is_file():
        pytest.skip("the captures are not here")
    return CAPTURES / request.param


def replay(capture, tmp_path, *urls):
    """Replays with these exports; the JSON records of the same run."""
    output = tmp_path / "flows.json"
    exports = [word for url in urls for word in ("--export", url)]
    done = subprocess.run([MILLRACE, "replay", *exports, "--output", output, capture], text=True, capture_output=True,
                          timeout=120 * SLOWER, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in output.read_text().splitlines()]


def ways(records):
    """Each direction that had packets: what every collector can tell of it."""
    told = collections.Counter()
    for record in records:
        there = record["src"], record["dst"], record["sport"], record["dport"]
        back = record["dst"], record["src"], record["dport"], record["sport"]
        if record["packets"] or not record["reverse_packets"]:
            told[(record["proto"], *there, record["packets"], record["tcp_flags"])] += 1
        if record["reverse_packets"]:
            told[(record["proto"], *back, record["reverse_packets"], record["reverse_tcp_flags"])] += 1
    return told


def directions(record):
    """Those that a data record is made of: 1 of who began, 2 of the other end."""
    return [1] * (record["packets"] > 0 or not record["reverse_packets"]) + [2] * (record["reverse_packets"] > 0)


def moment(unix_ms):
    begun = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=unix_ms)
    return begun.isoformat(timespec="milliseconds")


def milliseconds(record, key):
    return record[key][:-4]  # they end with microseconds and Z


def nfdump_flags(text):
    return sum(1 << bit for bit, letter in enumerate(reversed(FLAGS)) if letter in text)


def test_nfdump(capture, tmp_path):
    """nfcapd takes them, nfdump prints them: flows, packets, flags, times, IPv6; and no sequence is wrong."""
    needs("nfcapd")
    port, place, log = free_port(), tmp_path / "nfcapd", tmp_path / "nfcapd.log"
    place.mkdir()
    with log.open("wb") as out:
        collector = subprocess.Popen(["nfcapd", "-p", str(port), "-b", "127.0.0.1", "-w", place, "-B", "4000000"],
                                     stdout=out, stderr=out)
    try:
        until(lambda: "Startup" in log.read_text() or collector.poll() is not None, "nfcapd is there")
        records = replay(capture, tmp_path, f"ipfix://127.0.0.1:{port}")
        until(lambda: queue_of(port) == 0, "all was read")
    finally:
        collector.send_signal(signal.SIGTERM)
        collector.wait(30 * SLOWER)
    wanted = ways(records)
    assert f"Flows: {sum(wanted.values())}," in log.read_text()
    assert "Sequence Errors: 0, Bad Packets: 0" in log.read_text()
    printed = subprocess.run(["nfdump", "-q", "-R", place, "-o", "json"], text=True, capture_output=True, check=True)
    flows = json.loads("[" + printed.stdout.strip().strip("[]").rstrip(",\n") + "]")
    told = collections.Counter((flow["proto"], flow.get("src4_addr", flow.get("src6_addr")),
                                flow.get("dst4_addr", flow.get("dst6_addr")),
                                0 if "icmp_type" in flow else flow["src_port"],
                                0 if "icmp_type" in flow else flow["dst_port"],
                                flow["in_packets"], nfdump_flags(flow.get("tcp_flags", ""))) for flow in flows)
    assert told == wanted
    assert collections.Counter(flow["first"] for flow in flows) == collections.Counter(
        milliseconds(record, "start") for record in records for _ in range(len(ways([record]))))


def queue_of(port):
    """Bytes that wait at a UDP port of this machine."""
    for line in pathlib.Path("/proc/net/udp").read_text().splitlines()[1:]:
        fields = line.split()
        if int(fields[1].split(":")[1], 16) == port:
            return int(fields[4].split(":")[1], 16)
    return None


def test_pmacct(capture, tmp_path):
    """nfacctd tells the same flows, packets and flags, and an element of ours by its name."""
    needs("nfacctd")
    port, told, log = free_port(), tmp_path / "told.json", tmp_path / "nfacctd.log"
    config = tmp_path / "nfacctd.conf"
    config.write_text(f"""
nfacctd_ip: 127.0.0.1
nfacctd_port: {port}
nfacctd_pipe_size: 4000000
nfacctd_time_new: true
plugins: print[all]
aggregate_primitives: {ROOT}/packaging/ipfix/millrace.primitives
aggregate[all]: src_host,dst_host,src_port,dst_port,proto,tcpflags,timestamp_start,timestamp_end,millraceFlowEndCause
timestamps_since_epoch: true
print_output[all]: json
print_output_file[all]: {told}
print_output_file_append[all]: true
print_refresh_time[all]: 1
plugin_buffer_size: 102400
plugin_pipe_size: 10240000
""", encoding="utf-8")
    with log.open("wb") as out:
        collector = subprocess.Popen(["/usr/sbin/nfacctd", "-f", config], stdout=out, stderr=out)
    try:
        until(lambda: queue_of(port) is not None, "nfacctd is there")
        records = replay(capture, tmp_path, f"ipfix://127.0.0.1:{port}?pen=32473")
        wanted = ways(records)
        # the last ones stay in its buffer until it ends
        until(lambda: queue_of(port) == 0, "all was read")
    finally:
        collector.send_signal(signal.SIGINT)
        collector.wait(30 * SLOWER)
    flows = [json.loads(line) for line in told.read_text().splitlines()]
    assert sum(flow["packets"] for flow in flows) == sum(key[5] * times for key, times in wanted.items())
    found = collections.Counter((flow["ip_src"], flow["ip_dst"], flow["port_src"], flow["port_dst"], flow["packets"],
                                 int(flow["tcp_flags"])) for flow in flows)
    without_protocol = collections.Counter()
    for key, times in wanted.items():
        without_protocol[key[1:]] += times
    assert found == without_protocol
    assert collections.Counter(int(flow["millraceflowendcause"]) for flow in flows) == collections.Counter(
        CAUSES.index(record["end_reason"]) for record in records for _ in directions(record))


@pytest.fixture(name="goflow2", scope="session")
def a_goflow2():
    """Built once for a checkout, of the very version that its file of modules names."""
    needs("go")
    place = ROOT / "build" / "goflow2"
    if not (place / "goflow2").exists():
        environment = {**os.environ, "GOPATH": str(place / "modules"), "GOCACHE": str(place / "cache"),
                       "GOFLAGS": "-mod=readonly -modcacherw"}
        done = subprocess.run(["go", "build", "-o", place / "goflow2", "github.com/netsampler/goflow2/cmd/goflow2"],
                              cwd=pathlib.Path(__file__).parent / "goflow2", env=environment, text=True,
                              capture_output=True, check=False, timeout=600 * SLOWER)
        if done.returncode != 0:
            pytest.skip(f"goflow2 is not to be had: {done.stderr.strip()[-300:]}")
    return place / "goflow2"


def test_goflow2(capture, tmp_path, goflow2):
    """
    It tells the same flows: times, ICMP and directions, too. With one worker, since another one may get to records
    before it has read their templates; and slowly, since it has the kernel's usual buffer.
    """
    port, told, log = free_port(), tmp_path / "told.json", tmp_path / "goflow2.log"
    with log.open("wb") as out:
        collector = subprocess.Popen([goflow2, "-listen", f"netflow://127.0.0.1:{port}", "-workers", "1", "-format", "json",
                                      "-transport", "file", "-transport.file", told,
                                      "-metrics.addr", f"127.0.0.1:{free_port(socket.SOCK_STREAM)}"],
                                     stdout=out, stderr=out)
    try:
        until(lambda: queue_of(port) is not None, "goflow2 is there")
        records = replay(capture, tmp_path, f"ipfix://127.0.0.1:{port}?rate=20000")
        wanted = ways(records)
        until(lambda: told.exists() and told.read_text().count("\n") >= sum(wanted.values()), "all was written")
    finally:
        collector.send_signal(signal.SIGTERM)
        collector.wait(30 * SLOWER)
    flows = [json.loads(line) for line in told.read_text().splitlines()]
    assert collections.Counter((flow["Proto"], flow["SrcAddr"], flow["DstAddr"], flow["SrcPort"], flow["DstPort"],
                                flow["Packets"], flow["TcpFlags"]) for flow in flows) == wanted
    assert collections.Counter((flow["BiFlowDirection"], moment(flow["TimeFlowStartMs"]), moment(flow["TimeFlowEndMs"]))
                               for flow in flows) == collections.Counter(
        (way, milliseconds(record, "start"), milliseconds(record, "end"))
        for record in records for way in directions(record))
    assert collections.Counter((flow["IcmpType"], flow["IcmpCode"]) for flow in flows if flow["Proto"] in (1, 58)) == \
        collections.Counter((record["reverse_" * (way - 1) + "icmp_type"], record["reverse_" * (way - 1) + "icmp_code"])
                            for record in records if record["proto"] in (1, 58) for way in directions(record))


@pytest.mark.parametrize("names", [["--rfc5610"], ["-e", ROOT / "packaging" / "ipfix" / "millrace.xml"]],
                         ids=["options", "elements"])
def test_ipfixdump(capture, tmp_path, names):
    """A strict reader of files (RFC 5655), which learns our elements from the file itself (RFC 5610), or from one of ours."""
    needs("ipfixDump")
    path = tmp_path / "flows.ipfix"
    records = replay(capture, tmp_path, f"ipfix+file:{path}?pen=32473")
    done = subprocess.run(["ipfixDump", *names, "-d", "-i", path], text=True, capture_output=True, check=True)
    dumped = [dict(re.findall(r"^\s*\([0-9/]+\) *(?:\(S\) *)?(\w+) : (.*?) *$", text, re.M))
              for text in done.stdout.split("--- data record")[1:]]
    flows = [one for one in dumped if "packetDeltaCount" in one]
    assert collections.Counter((int(flow["packetDeltaCount"]), int(flow["biflowDirection"])) for flow in flows) == \
        collections.Counter((record["reverse_" * (way - 1) + "packets"], way)
                            for record in records for way in directions(record))
    assert all("millraceFlowEndCause" in flow and "millraceRule" in flow for flow in flows)
    assert not done.stderr


def test_tshark(capture, tmp_path):
    """tshark reads the file (RFC 5655), and finds nothing malformed in it."""
    needs("tshark")
    path = tmp_path / "flows.ipfix"
    records = replay(capture, tmp_path, f"ipfix+file:{path}")
    done = subprocess.run(["tshark", "-r", path, "-T", "fields", "-e", "cflow.packets", "-e", "_ws.malformed",
                           "-e", "_ws.expert.message"], text=True, capture_output=True, check=True)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    packets = [int(number) for row in rows for number in row[0].split(",") if number]
    assert not any(row[1] for row in rows)
    assert collections.Counter(packets) == collections.Counter(
        key[5] for key, times in ways(records).items() for _ in range(times))
