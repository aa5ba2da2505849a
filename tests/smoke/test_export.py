# SPDX-License-Identifier: BSD-3-Clause
"""
What people's own collectors make of our exports: each is started from its package, and agrees with the JSON records. Of
replays, and of an engine that they all listen to at once: for a few seconds, or for MILLRACE_LIVE_S.
"""
import collections
import contextlib
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
LIVE_S = int(os.environ.get("MILLRACE_LIVE_S", "5"))
SCTP = 132
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


@contextlib.contextmanager
def started(words, log, end=signal.SIGTERM):
    """A collector, until it was told to end and did."""
    with log.open("wb") as out:
        collector = subprocess.Popen(words, stdout=out, stderr=out)
    try:
        yield collector
    finally:
        collector.send_signal(end)
        collector.wait(30 * SLOWER)


@contextlib.contextmanager
def nfcapd(directory):
    """Its port, while it listens."""
    needs("nfcapd")
    port, place, log = free_port(), directory / "nfcapd", directory / "nfcapd.log"
    place.mkdir()
    with started(["nfcapd", "-p", str(port), "-b", "127.0.0.1", "-w", place, "-B", "4000000"], log) as collector:
        until(lambda: "Startup" in log.read_text() or collector.poll() is not None, "nfcapd is there")
        yield port
        until(lambda: queue_of(port) == 0, "all was read")


def check_nfdump(directory, records):
    """Flows, packets, flags, times; and no sequence is wrong."""
    wanted = collections.Counter()
    for key, times in ways(records).items():
        # of SCTP it shows the type of ICMP in place of that port
        wanted[(*key[:4], 0, *key[5:]) if key[0] == SCTP else key] += times
    log = (directory / "nfcapd.log").read_text()
    assert sum(map(int, re.findall(r"Flows: (\d+),", log))) == sum(wanted.values())
    assert set(re.findall(r"Sequence Errors: .*", log)) == {"Sequence Errors: 0, Bad Packets: 0"}
    printed = subprocess.run(["nfdump", "-q", "-R", directory / "nfcapd", "-o", "json"], text=True, capture_output=True,
                             check=True)
    flows = json.loads("[" + printed.stdout.strip().strip("[]").rstrip(",\n") + "]")
    told = collections.Counter((flow["proto"], flow.get("src4_addr", flow.get("src6_addr")),
                                flow.get("dst4_addr", flow.get("dst6_addr")),
                                0 if "icmp_type" in flow else flow["src_port"],
                                0 if "icmp_type" in flow else flow["dst_port"],
                                flow["in_packets"], nfdump_flags(flow.get("tcp_flags", ""))) for flow in flows)
    assert told == wanted
    assert collections.Counter(flow["first"] for flow in flows) == collections.Counter(
        milliseconds(record, "start") for record in records for _ in directions(record))


def test_nfdump(capture, tmp_path):
    """nfcapd takes them, nfdump prints them."""
    with nfcapd(tmp_path) as port:
        records = replay(capture, tmp_path, f"ipfix://127.0.0.1:{port}")
    check_nfdump(tmp_path, records)


def queue_of(port):
    """Bytes that wait at a UDP port of this machine."""
    for line in pathlib.Path("/proc/net/udp").read_text().splitlines()[1:]:
        fields = line.split()
        if int(fields[1].split(":")[1], 16) == port:
            return int(fields[4].split(":")[1], 16)
    return None


@contextlib.contextmanager
def nfacctd(directory):
    """Its port, while it listens."""
    needs("nfacctd")
    port, told, config = free_port(), directory / "nfacctd.json", directory / "nfacctd.conf"
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
    with started(["/usr/sbin/nfacctd", "-f", config], directory / "nfacctd.log", signal.SIGINT):
        until(lambda: queue_of(port) is not None, "nfacctd is there")
        yield port
        # the last ones stay in its buffer until it ends
        until(lambda: queue_of(port) == 0, "all was read")


def check_pmacct(directory, records):
    """The same flows, packets and flags, and an element of ours by its name."""
    wanted = collections.Counter()
    for key, times in ways(records).items():
        wanted[key[1:]] += times  # without the protocol
    flows = [json.loads(line) for line in (directory / "nfacctd.json").read_text().splitlines()]
    assert sum(flow["packets"] for flow in flows) == sum(key[4] * times for key, times in wanted.items())
    assert wanted == collections.Counter(
        (flow["ip_src"], flow["ip_dst"], flow["port_src"], flow["port_dst"], flow["packets"], int(flow["tcp_flags"]))
        for flow in flows)
    assert collections.Counter(int(flow["millraceflowendcause"]) for flow in flows) == collections.Counter(
        CAUSES.index(record["end_reason"]) for record in records for _ in directions(record))


def test_pmacct(capture, tmp_path):
    """nfacctd of pmacct."""
    with nfacctd(tmp_path) as port:
        records = replay(capture, tmp_path, f"ipfix://127.0.0.1:{port}?pen=32473")
    check_pmacct(tmp_path, records)


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


@contextlib.contextmanager
def listening_goflow2(program, directory):
    """Its port. With one worker, since another one may get to records before it has read their templates."""
    port = free_port()
    with started([program, "-listen", f"netflow://127.0.0.1:{port}", "-workers", "1", "-format", "json", "-transport", "file",
                  "-transport.file", directory / "goflow2.json",
                  "-metrics.addr", f"127.0.0.1:{free_port(socket.SOCK_STREAM)}"], directory / "goflow2.log"):
        until(lambda: queue_of(port) is not None, "goflow2 is there")
        yield port


def count_lines(path):
    with path.open("rb") as file:
        return sum(1 for _ in file)


def check_goflow2(directory, records):
    """The same flows: times, ICMP and directions, too."""
    flows = [json.loads(line) for line in (directory / "goflow2.json").read_text().splitlines()]
    assert collections.Counter((flow["Proto"], flow["SrcAddr"], flow["DstAddr"], flow["SrcPort"], flow["DstPort"],
                                flow["Packets"], flow["TcpFlags"]) for flow in flows) == ways(records)
    assert collections.Counter((flow["BiFlowDirection"], moment(flow["TimeFlowStartMs"]), moment(flow["TimeFlowEndMs"]))
                               for flow in flows) == collections.Counter(
        (way, milliseconds(record, "start"), milliseconds(record, "end"))
        for record in records for way in directions(record))
    assert collections.Counter((flow["IcmpType"], flow["IcmpCode"]) for flow in flows if flow["Proto"] in (1, 58)) == \
        collections.Counter((record["reverse_" * (way - 1) + "icmp_type"], record["reverse_" * (way - 1) + "icmp_code"])
                            for record in records if record["proto"] in (1, 58) for way in directions(record))


def test_goflow2(capture, tmp_path, goflow2):
    """Slowly, since it has the kernel's usual buffer."""
    with listening_goflow2(goflow2, tmp_path) as port:
        records = replay(capture, tmp_path, f"ipfix://127.0.0.1:{port}?rate=20000")
        until(lambda: (tmp_path / "goflow2.json").exists() and
              count_lines(tmp_path / "goflow2.json") >= sum(ways(records).values()), "all was written")
    check_goflow2(tmp_path, records)


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


def check_tshark(path, records):
    """Nothing is malformed."""
    done = subprocess.run(["tshark", "-r", path, "-T", "fields", "-e", "cflow.packets", "-e", "_ws.malformed",
                           "-e", "_ws.expert.message"], text=True, capture_output=True, check=True)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    packets = [int(number) for row in rows for number in row[0].split(",") if number]
    assert not any(row[1] for row in rows)
    assert collections.Counter(packets) == collections.Counter(
        key[5] for key, times in ways(records).items() for _ in range(times))


def test_tshark(capture, tmp_path):
    """tshark reads the file (RFC 5655)."""
    needs("tshark")
    path = tmp_path / "flows.ipfix"
    records = replay(capture, tmp_path, f"ipfix+file:{path}")
    check_tshark(path, records)


def test_live(millrace, tmp_path, goflow2):
    """
    All of them at once, of an engine whose conversations begin and end all the time, those that are left at its own end.
    Each stream of the generator pauses for longer than the time-outs now and then, and is another conversation afterwards.
    """
    needs("tshark")
    kinds = "flows=2000,proto=mix,ipv6=30,vlan=20,size=imix,load=zipf,pace=400"
    path = tmp_path / "flows.ipfix"
    with nfcapd(tmp_path) as first, nfacctd(tmp_path) as second, listening_goflow2(goflow2, tmp_path) as third:
        # nfcapd takes the records of options, which come with templates, for lost ones
        exports = [f"ipfix://127.0.0.1:{port}?pen=32473&rate=20000&templates=86400&template-messages=4000000000"
                   for port in (first, second, third)]
        engine = millrace("--port", f"a=net_flowsim0,{kinds},side=forward", "--port", f"b=net_flowsim1,{kinds},side=reverse",
                          "--wire", "a,b", "--active", "15",
                          *(word for proto in ("tcp", "udp", "sctp", "icmp") for word in ("--timeout", f"{proto}=2")),
                          *(word for url in [*exports, f"ipfix+file:{path}"] for word in ("--export", url)),
                          "--output", "flows.json")
        end = time.monotonic() + LIVE_S
        engine.until(lambda: time.monotonic() > end and engine.wire()["out"] > 0, "some traffic", LIVE_S + 30)
        engine.stop(leaves=["flows.json"], idle=False)
        records = [json.loads(line) for line in (engine.directory / "flows.json").read_text().splitlines()]
        until(lambda: count_lines(tmp_path / "goflow2.json") >= sum(ways(records).values()), "all was written", 120)
    print(f"{len(records)} records of {sum(record['packets'] + record['reverse_packets'] for record in records)} packets")
    assert {record["end_reason"] for record in records} >= {"idle", "shutdown"}
    check_nfdump(tmp_path, records)
    check_pmacct(tmp_path, records)
    check_goflow2(tmp_path, records)
    check_tshark(path, records)
