# SPDX-License-Identifier: BSD-3-Clause
"""drop follow and rules that log: what is shown, and that what is left out is counted to the packet."""
import json
import subprocess

import pytest
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether

import engine
import frames
from conftest import MILLRACE, SLOWER
from test_rules_run import add, rule

pytestmark = pytest.mark.usefixtures("simulated_nic")

ROUND = {
    "dns": frames.udp(0, "10.0.0.1", 1000, "10.0.0.2", 53),
    "six": frames.udp(0, "fd00::1", 1000, "fd00::2", 443, vlans=[7]),
    "syn": frames.Tcp(0, "10.0.0.3", 1000, "10.0.0.2", 80).segment(0, frames.SYN).packets[0],
    "arp": frames.arp(0, "10.6.0.1", "10.6.0.2"),
    "bad": Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02", type=0x800) / b"no",
    "passes": frames.udp(0, "10.9.0.1", 1000, "10.0.0.2", 53),
}
ROUND["bad"].time = frames.START


@pytest.fixture(name="paced")
def start_paced(started, tmp_path):
    """An engine with packets that do not end."""
    capture = frames.write(tmp_path / "round.pcap", *ROUND.values(), in_order=False)
    return lambda *more, pace=6000: started(f"capture={capture},pace={pace}", *more)


class Follower:
    """A connection that follows, and what it was told."""

    def __init__(self, running, request, **given):
        self.running, self.lines = running, []
        self.connection = engine.Connection(running.socket)
        self.connection.send(request, **given)

    def next(self):
        self.lines.append(self.connection.next())
        return self.lines[-1]

    def until(self, fits):
        """The next line that fits."""
        while not fits(self.next()):
            pass
        return self.lines[-1]

    def shown(self):
        return sum("reason" in line for line in self.lines)

    def left_out(self):
        return sum(line.get("left_out", 0) for line in self.lines)


def remove(running, number=0):
    running.ask("rule del", port=0, number=number)
    running.until(lambda: running.connection.ask("rule list")[1]["unsettled"] == 0, "it is settled")


@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_shown(paced, workers):
    """Headers, bytes, reason, rule and port, of each kind of packet."""
    running = paced("--workers", workers, "--offload-rules-in-nic", "off")
    for line in (rule("ipv4 src is 10.0.0.1"), rule("ipv6", "reject"), rule("ipv4 ttl is 64 / tcp"),
                 rule("eth type is 0x806")):
        add(running, line)
    follower = Follower(running, "drop follow", rate=1000)
    seen = {}
    while len(seen) < 5:
        line = follower.next()
        if "reason" in line:
            name = next(name for name, frame in ROUND.items() if bytes(frame).hex()[:256] == line["bytes"])
            seen.setdefault(name, line)
    reasons = {"dns": "rule", "six": "rejected", "syn": "rule", "arp": "rule", "bad": "malformed"}
    assert {name: line["reason"] for name, line in seen.items()} == reasons
    numbers = {name: line.get("rule") for name, line in seen.items()}
    assert numbers == {"dns": 0, "six": 1, "syn": 2, "arp": 3, "bad": None}
    for name, line in seen.items():
        assert (line["port"], line["wire"], line["length"]) == ("a", 0, len(ROUND[name]))
        assert line.get("rule_port") == (None if name == "bad" else 0)
    assert (seen["dns"]["src"], seen["dns"]["sport"], seen["dns"]["dport"]) == ("10.0.0.1", 1000, 53)
    assert (seen["six"]["src"], seen["six"]["dst"], seen["six"]["proto"]) == ("fd00::1", "fd00::2", 17)
    assert (seen["syn"]["tcp_flags"], seen["syn"]["src"]) == (frames.SYN, ROUND["syn"][IP].src)
    assert "src" not in seen["arp"] and "src" not in seen["bad"]
    follower.connection.close()
    running.stop(leaves=["records.json"], idle=False)


def test_what_is_left_out_is_counted(paced):
    """From the first packet that is dropped to the last one: those shown and those left out are all."""
    running = paced("--offload-rules-in-nic", "off", pace=60000)
    # nothing is dropped by rules before there is one
    follower = Follower(running, "drop follow", reason="rule", rate=20)
    other = Follower(running, "drop follow", reason="malformed", rate=20)
    other.until(lambda line: "reason" in line)
    add(running, rule("ipv4 src is 10.0.0.1"))
    follower.until(lambda line: follower.left_out() > 1000)
    remove(running)
    dropped = running.drops()["rule"]
    follower.until(lambda line: follower.shown() + follower.left_out() >= dropped)
    assert follower.shown() + follower.left_out() == dropped
    assert {line["reason"] for line in follower.lines if "reason" in line} == {"rule"}
    assert {line["rule"] for line in follower.lines if "reason" in line} == {0}
    follower.connection.close()
    other.connection.close()
    running.stop(leaves=["records.json"], idle=False)


def test_only_one_rule(paced):
    """By the port that the rule was made for, and its number; the client shows it."""
    running = paced("--offload-rules-in-nic", "off", pace=60000)
    add(running, rule("ipv4 src is 10.0.0.1"))
    add(running, rule("ipv6"))
    follower = Follower(running, "drop follow", at=0, rule=1, rate=1000)
    for _ in range(50):
        line = follower.until(lambda line: "reason" in line)
        assert (line["rule"], line["src"]) == (1, "fd00::1")
    client = subprocess.Popen([MILLRACE, "drop", "follow", "--at", "0", "--rule", "0", "--why", "rule",
                               "--socket", str(running.socket)], stdout=subprocess.PIPE, text=True)
    try:
        line = next(line for line in client.stdout if "left out" not in line)
    finally:
        client.terminate()
        client.communicate(timeout=30 * SLOWER)
    assert "udp   10.0.0.1:1000 -> 10.0.0.2:53, 62 bytes, rule 0 of port 0" in line and "  rule " in line
    follower.connection.close()
    running.stop(leaves=["records.json"], idle=False)


@pytest.mark.parametrize("workers", [1, 2])
def test_flows_are_logged_once(paced, workers):
    """When a flow comes to the rule, with its verdict; also those that are there already, and by their other rule."""
    running = paced("--workers", workers)
    running.until(lambda: len(running.ask("flow list")) == 4, "all flows are there")
    follower = Follower(running, "event follow", flows=False)
    add(running, rule("ipv4", "log / drop", attributes="priority 5 ingress"))
    logged = [follower.until(lambda line: line["event"] == "log") for _ in range(3)]
    assert {line["src"] for line in logged} == {"10.0.0.1", "10.0.0.3", "10.9.0.1"}
    for line in logged:
        assert (line["rule_port"], line["rule"], line["verdict"], line["per"]) == (0, 0, "drop", "flow")
        assert (line["port"], line["wire"], line["dst"]) == ("a", 0, "10.0.0.2")
    add(running, rule("ipv6", "log / reject"))
    line = follower.until(lambda line: line["event"] == "log")
    assert (line["rule"], line["verdict"], line["src"], line["dport"]) == (1, "reject", "fd00::1", 443)
    add(running, rule("udp dst is 53", "log"))
    logged = [follower.until(lambda line: line["event"] == "log") for _ in range(2)]
    assert {(line["rule"], line["verdict"], line["dport"]) for line in logged} == {(2, "forward", 53)}
    assert (running.wire()["logged"], running.wire()["log_lost"]) == (6, 0)
    assert [line["why"] for line in running.ask("rule list")][::2] == ["it logs, which no NIC does"] * 2
    follower.connection.close()
    running.stop(leaves=["records.json"], idle=False)


def test_packets_are_logged_within_the_rate(paced):
    """Each packet that is decided by itself: lines and those lost are the packets of the rule."""
    running = paced("--rules-log-rate", "50")
    follower = Follower(running, "event follow", flows=False)
    add(running, rule("ipv4 src is 10.0.0.1 ttl is 64", "log"))
    add(running, rule("eth type is 0x806", "log / drop"))
    kinds, seen = {(0, "forward", "10.0.0.1"), (1, "drop", None)}, set()
    while seen != kinds:
        line = follower.until(lambda line: line["event"] == "log")
        assert line["per"] == "packet"
        seen.add((line["rule"], line["verdict"], line.get("src")))
    running.until(lambda: running.wire()["log_lost"] > 0, "some are over the rate")
    for _ in range(2):
        remove(running, number=running.ask("rule list")[0]["number"])
    wire = running.wire()
    follower.until(lambda line: sum(line["event"] == "log" for line in follower.lines) == wire["logged"])
    told = sum(line.get("lost", 0) for line in follower.lines)
    assert 0 < told <= wire["log_lost"]
    follower.connection.close()
    running.stop(leaves=["records.json"], idle=False)


def test_what_it_costs_to_ask_wrongly(paced):
    running = paced()
    done = subprocess.run([MILLRACE, "drop", "follow", "--why", "rul", "--socket", str(running.socket)],
                          capture_output=True, text=True, timeout=30 * SLOWER, check=False)
    assert done.returncode == 2 and "did you mean rule?" in done.stderr
    running.connection.send("drop follow", rule=3)
    end = running.connection.next()
    assert end["code"] == 2 and "the port that it was made for is needed" in end["error"], json.dumps(end)
    running.stop(leaves=["records.json"], idle=False)
