# SPDX-License-Identifier: BSD-3-Clause
"""What hosts say to one another, so that nothing is lost on the way however late a thread gets its
turn: TCP has less under way than any queue holds, and UDP is slow."""
import contextlib
import functools
import hashlib
import http.server
import json
import random
import subprocess
import threading
import socket

import tagged
from capture import exactly, replay
from engine import read_records

MEGABYTES = 1000 * 1000
WINDOW = 128 * 1024  # what a TCP connection may have under way: some 100 packets


def ping(end, address, *options, count=5):
    """Each echo comes back. One by one: of several `ping` does not wait long for the last."""
    for _ in range(count):
        said = end.space.run("ping", "-n", "-q", "-c", 1, "-W", 10, *options, address)
        assert " 1 received, 0% packet loss" in said.stdout, said.stdout


def ping_all(network):
    """ping both ways, ping6 and through a VLAN."""
    left, right = network.ends
    ping(left, right.address)
    ping(right, left.address6)
    ping_vlan(network)


def ping_vlan(network):
    """Through a VLAN; where the kernel has no VLANs the tagged frames are made here."""
    left, right = network.ends
    try:
        for end, other in ((left, right), (right, left)):
            end.add_vlan(other)
    except AssertionError as error:
        assert "Unknown device type" in str(error)
        tagged.ping(left, right)
    else:
        ping(left, right.vlan_address)


class Iperf:
    """An iperf3 server at one end; run() is a client at the other."""

    def __init__(self, end):
        self.end = end
        self.server = end.space.popen("iperf3", "-s", "--forceflush", stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True)

    def close(self):
        self.server.kill()
        self.server.communicate()

    def await_server(self):
        for line in self.server.stdout:
            if "Server listening" in line:
                return
        raise AssertionError("iperf3 -s does not listen")

    def run(self, client, *options):
        """One test; what iperf3 says at its end."""
        self.await_server()
        done = client.space.run("iperf3", "-c", self.end.address, "--json", *options, check=False)
        told = json.loads(done.stdout)
        assert done.returncode == 0 and "error" not in told, told.get("error")
        return told["end"]


def iperf_all(network):
    """TCP and UDP, both ways."""
    left, right = network.ends
    with contextlib.closing(Iperf(right)) as iperf:
        for way in ((), ("-R",)):
            told = iperf.run(left, "-n", "10M", "-w", WINDOW, *way)
            assert told["sum_received"]["bytes"] > 9 * MEGABYTES
        for way in ((), ("-R",)):
            told = iperf.run(left, "-u", "-l", 1400, "-b", "20M", "-n", "1M", "-w", "2M", *way)
            assert told["sum"]["lost_packets"] == 0 and told["sum"]["packets"] > 700, told["sum"]


class Web(http.server.BaseHTTPRequestHandler):
    """Gives out 20 MB that look random."""

    body = random.Random(1).randbytes(20 * MEGABYTES)

    def do_GET(self):  # pylint: disable=invalid-name
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, WINDOW)
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


def curl(network, *options):
    """20 MB from right to left, with equal checksum."""
    left, right = network.ends
    with right.space.entered():
        server = http.server.HTTPServer((right.address, 8080), Web)
    thread = threading.Thread(target=functools.partial(server.serve_forever, poll_interval=0.05))
    thread.start()
    try:
        with left.space.entered():
            got = subprocess.run(
                ["curl", "-sS", *options, f"http://{right.address}:8080/"], check=True,
                capture_output=True, stdin=subprocess.DEVNULL, timeout=60).stdout
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert hashlib.sha256(got).digest() == hashlib.sha256(Web.body).digest()


def datagram(sender, receiver, size, port=7000, address="address"):
    """One UDP datagram, in fragments if need be; it arrives whole."""
    family = socket.AF_INET6 if address == "address6" else socket.AF_INET
    data = random.Random(size).randbytes(size)
    with receiver.space.socket(family, socket.SOCK_DGRAM) as inbox, \
            sender.space.socket(family, socket.SOCK_DGRAM) as outbox:
        inbox.settimeout(10)
        inbox.bind((getattr(receiver, address), port))
        outbox.sendto(data, (getattr(receiver, address), port))
        assert inbox.recv(65536) == data


def many_flows(network, count):
    """A datagram in each of so many flows, over and done with soon."""
    left, right = network.ends
    with left.space.socket(socket.AF_INET, socket.SOCK_DGRAM) as outbox, \
            right.space.socket(socket.AF_INET, socket.SOCK_DGRAM) as inbox:
        inbox.bind((right.address, 0))  # somebody is there, so that no ICMP errors come back
        for port in range(count):
            outbox.sendto(b"one of many", (right.address, 10000 + port))


@contextlib.contextmanager
def flood(sender, receiver, flows=16):
    """Datagrams all the time, some thousand a second, to as many ports as there are flows."""
    over = threading.Event()

    def send():
        with sender.space.socket(socket.AF_INET, socket.SOCK_DGRAM) as outbox:
            while not over.wait(0.005):
                for port in range(flows):
                    with contextlib.suppress(OSError):  # refused: nobody listens there
                        outbox.sendto(b"flood", (receiver.address, 20000 + port))

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def everything_arrived(engine, network, captures):
    """All that was sent has come through: at each end as many frames as the engine carried there."""
    def quiet():
        if any(end.space.tcp_under_way() for end in network.ends) or engine.wire()["held"]:
            return False
        ports = engine.ports()
        return all(ports[name]["rx_packets"] + ports[name]["tx_packets"] == capture.count()
                   for name, capture in zip("ab", captures))
    try:
        engine.until(quiet, "every frame is captured", timeout=15)
    except AssertionError:
        print(engine.ports(), [capture.count() for capture in captures],
              [end.space.tcp_under_way() for end in network.ends])
        raise
    for capture in captures:
        capture.stop()


def compare(engine, captures, tmp_path, *arguments):
    """The live flows, then the records, are those of a replay of either capture."""
    truths = [replay(capture.path, *arguments) for capture in captures]
    wire = engine.idle()
    assert engine.drops() == {}
    assert wire["received"] == wire["out"]
    live = exactly(engine.flows())
    for truth in truths:
        assert live == exactly(truth)
    engine.stop(leaves=["records.json"])
    records = read_records(tmp_path / "run" / "records.json")
    for truth in truths:
        assert exactly(records, "end_reason", "state") == exactly(truth, "end_reason", "state")
    assert sum(record["packets"] + record["reverse_packets"] for record in records) == \
        wire["received"] - wire["non_ip"]
    return records
