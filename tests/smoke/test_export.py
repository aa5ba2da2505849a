# SPDX-License-Identifier: BSD-3-Clause
"""What people's own collectors make of our exports: each is started from its package, and agrees with the JSON records."""
import collections
import json
import pathlib
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


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
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
    """nfacctd tells the same flows, packets and flags."""
    needs("nfacctd")
    port, told, log = free_port(), tmp_path / "told.json", tmp_path / "nfacctd.log"
    config = tmp_path / "nfacctd.conf"
    config.write_text(f"""
nfacctd_ip: 127.0.0.1
nfacctd_port: {port}
nfacctd_pipe_size: 4000000
nfacctd_time_new: true
plugins: print[all]
aggregate[all]: src_host,dst_host,src_port,dst_port,proto,tcpflags,timestamp_start,timestamp_end
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
        wanted = ways(replay(capture, tmp_path, f"ipfix://127.0.0.1:{port}"))
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
