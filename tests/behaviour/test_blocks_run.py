# SPDX-License-Identifier: BSD-3-Clause
"""What a running engine drops because somebody blocked it: every packet is known in advance, and counted."""
import json
import subprocess
import time

import pytest

import engine
import frames
from conftest import MILLRACE, SLOWER, run
from simulated import ports

pytestmark = pytest.mark.usefixtures("simulated_nic")

PASSES = 40

# The packets of one round, by flow. An ICMP error is of a flow of its own, by its own addresses.
FIRST = frames.udp(0, "10.0.0.1", 1000, "10.0.0.2", 53)
ROUND = {
    "first": [FIRST],
    "second": [frames.udp(0, "10.0.0.1", 1001, "10.0.0.2", 80)],
    "far": [frames.udp(0, "10.1.0.1", 1000, "10.9.0.2", 53)],
    "six": [frames.udp(0, "2001:db8::1", 1000, "2001:db8::2", 443)],
    "six_far": [frames.udp(0, "2001:db8:1::1", 1000, "2001:db8:2::2", 443)],
    "vlan": [frames.udp(0, "10.0.0.1", 1000, "10.0.0.2", 53, vlans=[7])],
    "ping": [frames.ping(0, "10.5.0.1", "10.5.0.2")],
    "pieces": frames.fragments(frames.udp(0, "10.2.0.1", 1000, "10.2.0.2", 53, size=3000), 1200),
    "error": [frames.unreachable(0, "10.3.0.1", FIRST)],
}
PACKETS = sum(map(len, ROUND.values()))
# What a record says of its flow.
NAMES = {("10.0.0.1", 1000, 0): "first", ("10.0.0.1", 1001, 0): "second",
         ("10.1.0.1", 1000, 0): "far", ("2001:db8::1", 1000, 0): "six",
         ("2001:db8:1::1", 1000, 0): "six_far", ("10.0.0.1", 1000, 7): "vlan",
         ("10.5.0.1", 0, 0): "ping", ("10.2.0.1", 1000, 0): "pieces",
         ("10.3.0.1", 0, 0): "error"}


@pytest.fixture(name="rounds")
def write_rounds(tmp_path):
    return frames.write(tmp_path / "round.pcap", *ROUND.values(), in_order=False)


def blocks_of(running, **filters):
    """The list, and the line that ends it."""
    return running.connection.ask("block list", **filters)


def block(running, **what):
    (line,) = running.ask("flow block", **what)
    return line


def stop(running):
    """The records; their packets and what was dropped of them are all that was counted."""
    wire, drops = running.idle(), running.drops()
    assert set(drops) <= {"blocked"}
    assert wire["received"] == wire["out"] + drops.get("blocked", 0)
    # of those taken back it is known when they have settled
    running.until(lambda: blocks_of(running)[1]["unsettled"] == 0, "all blocks have settled")
    lines, end = blocks_of(running)
    assert sum(line["packets"] for line in lines) + end["gone_packets"] == \
        drops.get("blocked", 0) + wire.get("nic_dropped", 0)
    running.stop(leaves=["records.json"])
    return engine.read_records(running.directory / "records.json")


def by_name(records):
    return {NAMES[(record["src"], record["sport"], record["zone"])]: record for record in records}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("lines, blocked", [
    ([], []),
    (["10.0.0.1"], ["first", "second", "vlan", "error"]),
    (["10.0.0.2 port 53"], ["first", "vlan"]),
    (["10.0.0.2 port 53 proto tcp"], []),
    (["10.0.0.0/8 port 53 proto udp"], ["first", "far", "vlan", "pieces"]),
    (["10.0.0.0/8 proto icmp"], ["ping", "error"]),
    (["2001:db8::/48"], ["six"]),
    (["2001:db8::/32 port 443"], ["six", "six_far"]),
    (["flow 10.0.0.2:53 10.0.0.1:1000 udp"], ["first"]),
    (["flow 10.0.0.1:1000 10.0.0.2:53 udp zone 7"], ["vlan"]),
    (["flow 10.0.0.1:1000 10.0.0.2:53 udp wire 1"], []),
    (["10.2.0.2"], ["pieces"]),
    (["10.3.0.1"], ["error"]),
    (["10.5.0.0/24", "10.0.0.1 port 1001"], ["ping", "second"]),
    (["0.0.0.0/0"], ["first", "second", "far", "vlan", "ping", "pieces", "error"]),
], ids=lambda value: "-".join(value) if isinstance(value, list) else str(value))
def test_from_the_first_packet(started, rounds, tmp_path, workers, lines, blocked):
    """What fits is dropped, all of it, and nothing else."""
    (tmp_path / "list").write_text("".join(f"{line}\n" for line in lines))
    running = started(f"capture={rounds},passes={PASSES}", "--workers", workers, "--zone", "vlan",
                      "--blocks", tmp_path / "list")
    running.until(lambda: running.wire()["received"] == PASSES * PACKETS, "all packets")
    dropped = PASSES * sum(len(ROUND[name]) for name in blocked)
    assert running.idle()["dropped"] == dropped
    assert sum(line["packets"] for line in blocks_of(running)[0]) == dropped
    records = by_name(stop(running))
    assert set(records) == set(ROUND)
    for name, record in records.items():
        packets = PASSES * len(ROUND[name])
        if name in blocked:
            assert (record["packets"], record["blocked_packets"]) == (0, packets), name
            assert record["blocked_bytes"] == PASSES * sum(map(len, ROUND[name]))
            assert record["blocked"] is True
        else:
            assert record["packets"] == packets and "blocked" not in record, name


def explain(running, sport):
    (line,) = running.ask("flow explain", src="10.0.0.1", sport=sport, dst="10.0.0.2", dport=53,
                          proto="udp")
    return line


def stands_still(running, sport):
    """The flow's packets, when a second has passed since now: none come any more."""
    time.sleep(1)
    before = explain(running, sport)["packets"]
    time.sleep(0.3)
    after = explain(running, sport)
    assert after["packets"] == before
    return after


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("what", [
    {"src": "10.0.0.2", "sport": 53, "dst": "10.0.0.1", "dport": 1, "proto": "udp"},
    {"prefix": "10.0.0.1", "port": 1}])
def test_a_live_flow(started, tmp_path, workers, what):
    """It stops within a second, and goes on when it is unblocked; what lies beside it loses nothing."""
    passes = 4000
    path = frames.write(tmp_path / "two.pcap", *[
        frames.udp(0, "10.0.0.1", sport, "10.0.0.2", 53) for sport in (1, 2, 3, 4)])
    running = started(f"capture={path},passes={passes},pace=2000", "--workers", workers)
    running.until(lambda: running.wire()["received"] >= 400, "some packets")
    made = block(running, **what, reason="a test")
    assert (made["new"], made["reason"]) == (True, "a test")
    flow = stands_still(running, 1)
    assert (flow["verdict"], flow["reverse_verdict"], flow["blocked"]) == ("drop", "drop", True)
    assert flow["block"]["number"] == made["number"] and flow["block"]["reason"] == "a test"
    assert flow["packets"] > 0 and flow["blocked_packets"] > 0
    assert [line["sport"] for line in running.ask("flow list", blocked=True)] == [1]
    assert len(running.ask("flow list", blocked=False)) == 3
    (gone,) = running.ask("flow unblock", number=made["number"])
    assert gone["packets"] > 0
    time.sleep(1)
    first = explain(running, 1)
    assert (first["verdict"], first["blocked"]) == ("forward", False) and "block" not in first
    time.sleep(0.3)
    assert explain(running, 1)["packets"] > first["packets"]
    running.until(lambda: running.wire()["received"] == 4 * passes, "all packets")
    records = {record["sport"]: record for record in stop(running)}
    for sport in (2, 3, 4):
        assert records[sport]["packets"] == passes and "blocked" not in records[sport]
    assert records[1]["packets"] + records[1]["blocked_packets"] == passes
    assert records[1]["blocked"] is False and records[1]["end_reason"] == "shutdown"


def test_it_ends_by_itself(started, tmp_path):
    """After three seconds, never before, and no more than a second later; whoever follows is told."""
    path = frames.write(tmp_path / "one.pcap", frames.udp(0, "10.0.0.1", 1, "10.0.0.2", 53))
    running = started(f"capture={path},pace=1000")
    running.until(lambda: running.wire()["received"] >= 100, "some packets")
    with engine.Connection(running.socket) as events:
        events.send("event follow")
        begun = time.monotonic()
        block(running, src="10.0.0.1", sport=1, dst="10.0.0.2", dport=53, proto="udp",
              **{"for": 3})
        said = []
        while not said or said[-1][0] != "flow_unblocked":
            said.append((events.next()["event"], time.monotonic() - begun))
    kinds = [event for event, _ in said]
    assert kinds.index("flow_blocked") < kinds.index("block_expired") < len(kinds) - 1
    assert dict(said)["flow_blocked"] < 1 * SLOWER
    assert 3 <= dict(said)["block_expired"] < 4.05 * SLOWER
    assert 3 <= dict(said)["flow_unblocked"] < 5 * SLOWER
    lines, end = blocks_of(running)
    assert lines == [] and end["expired"] == 1
    running.stop(leaves=["records.json"], idle=False)


def test_every_flow_of_many(started):
    """Half of the flows by name, in lists of lines; the sums hold to the packet."""
    running = started("flows=2000,side=forward,proto=mix,ipv6=40", "--workers", 2,
                      b="flows=2000,side=reverse,proto=mix,ipv6=40")
    running.until(lambda: len(running.flows()) == 2000, "all flows")
    half = running.flows()[::2]

    def line(flow):
        ends = [f"[{flow[end]}]:{flow[port]}" if flow["version"] == 6 else f"{flow[end]}:{flow[port]}"
                for end, port in (("src", "sport"), ("dst", "dport"))]
        return f"flow {' '.join(ends)} {flow['proto']} reason half"

    added = 0
    for at in range(0, len(half), 25):
        (told,) = running.ask("flow block", list="\n".join(map(line, half[at:at + 25])))
        added += told["added"]
    assert added == 1000
    running.until(lambda: len(running.ask("flow list", blocked=True)) == 1000, "all are blocked")
    lines, end = blocks_of(running, limit=10)
    assert len(lines) == 10 and end["blocks"] == end["flows"] == 1000 and end["reasons"] == 1
    before = {engine.flow_key(flow): flow for flow in running.flows()}
    time.sleep(0.2)
    for flow in running.flows():
        same = before[engine.flow_key(flow)]
        grown = flow["packets"] - same["packets"]
        assert (grown == 0) == flow.get("blocked", False)
    running.stop(leaves=["records.json"], idle=False)
    records = engine.read_records(running.directory / "records.json")
    assert sum("blocked" in record for record in records) == 1000


def test_the_client(started):
    """As a person would."""
    running = started("source=none", "--blocks-max", 2, "--blocks-reasons", 1)
    assert running.client("block", "list") == " 0 of 0 blocks, with room for 2\n"
    said = running.client("flow", "block", "192.0.2.0/24", "--port", "80", "--for", "100",
                          "--reason", "too many of them")
    assert said.startswith("blocked: 192.0.2.0/24 port 80, block 1, for ")
    assert said.endswith(" more: too many of them\n")
    assert running.client("flow", "block", "[2001:db8::1]:1", "[2001:db8::2]:2", "tcp") == \
        "blocked: flow [2001:db8::1]:1 [2001:db8::2]:2 tcp, block 2\n"
    assert running.client("flow", "block", "10.0.0.1", code=1) == \
        "millrace: flow block: the list is full: it has 2 blocks (blocks.max)\n"
    assert "blocked already" in running.client("flow", "block", "192.0.2.0/24", "--port", "80")
    lines = running.client("block", "list").splitlines()
    assert len(lines) == 4 and "192.0.2.0/24 port 80" in lines[1]
    assert lines[-1] == " 2 of 2 blocks, with room for 2"
    (line,) = running.client("block", "list", "192.0.2.7", "--json").splitlines()
    assert json.loads(line)["port"] == 80
    assert running.client("flow", "unblock", "192.0.2.0/24", code=1) == \
        "millrace: flow unblock: no such block\n"
    assert running.client("flow", "unblock", "--number", "2") == \
        "unblocked: flow [2001:db8::1]:1 [2001:db8::2]:2 tcp, block 2; it dropped 0 packets, 0 B\n"
    running.stop(leaves=["records.json"])


def test_no_list(started):
    running = started("source=none", "--blocks-max", 0)
    for words in (["flow", "block", "10.0.0.1"], ["flow", "unblock", "10.0.0.1"], ["block", "list"]):
        assert running.client(*words, code=1) == (
            f"millrace: {' '.join(words[:2])}: this engine keeps no list of blocks; it was started "
            "with blocks.max 0\n")
    running.stop(leaves=["records.json"])


def test_a_long_list(started, tmp_path):
    """100,000 blocks are loaded before the first packet, and the engine answers soon."""
    count = 100000
    with (tmp_path / "list").open("w") as lines:
        for i in range(count):
            lines.write(f"100.{i >> 16}.{i >> 8 & 255}.{i & 255} for 3600 reason one for all\n")
    begun = time.monotonic()
    running = started("source=none", "--blocks", tmp_path / "list", "--blocks-max", count)
    assert time.monotonic() - begun < 10 * SLOWER
    lines, end = blocks_of(running, limit=1)
    assert end["blocks"] == count and end["reasons"] == 1
    assert lines[0]["match"] == "100.0.0.0"
    running.stop(leaves=["records.json"])


@pytest.mark.parametrize("text, options, said", [
    ("10.0.0.1\n\n10.0.0.300 for 5\n", [], "list:3:1: 10.0.0.300: no IP address or prefix"),
    ("10.0.0.1 prt 80\n", [], "list:1:10: prt: no such word; did you mean port?"),
    ("10.0.0.1\n10.0.0.2\n", ["--blocks-max", "1"],
     "list: no room for the 2 blocks of this list: 0 of 1 are in use, with 0 of 4096 reasons"),
    ("10.0.0.1 reason x\n", ["--blocks-reasons", "0"], "with 0 of 0 reasons"),
    (None, [], "list: No such file or directory"),
    ("", ["--blocks-max", "0"], "blocks max 0: there is something to block"),
    ("", ["--blocks-max", "15728641"], "--blocks-max 15728641: "),
])
def test_a_list_that_is_wrong(tmp_path, text, options, said):
    """It is told by file, line and column, and nothing is started."""
    if text is not None:
        (tmp_path / "list").write_text(text)
    done = subprocess.run(
        [MILLRACE, "run", *ports("source=none"), "--socket", tmp_path / "socket", "--blocks",
         tmp_path / "list", *options], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=30 * SLOWER, check=False)
    assert done.returncode in (1, 2) and said in done.stderr, done.stderr
    assert not (tmp_path / "socket").exists()


def test_requests_by_the_second(started):
    """A detector asks on one connection, one after the other."""
    running = started("source=none")
    requests = 2000
    begun = time.monotonic()
    for i in range(requests):
        block(running, prefix=f"100.64.{i >> 8}.{i & 255}", **{"for": 60})
    rate = requests / (time.monotonic() - begun)
    print(f"{rate:.0f} a second")
    assert rate > 1000 / SLOWER
    running.stop(leaves=["records.json"])


@pytest.mark.parametrize("workers", [1, 2])
def test_replay(replay, rounds, tmp_path, workers):
    """A capture is dropped by the same list; the sums hold, and no other record changes."""
    (tmp_path / "list").write_text("10.0.0.2 port 53 for 1 reason x\n10.2.0.0/16\n::/0 port 443")
    blocked = ["first", "vlan", "six", "six_far", "pieces"]
    options = ["--zone", "vlan", "--workers", workers, rounds]
    plain, result = by_name(replay(*options).records), replay("--blocks", tmp_path / "list", *options)
    assert result.summary["dropped"]["blocked"] == sum(len(ROUND[name]) for name in blocked)
    for name, record in by_name(result.records).items():
        if name in blocked:
            assert (record["packets"], record["blocked_packets"]) == (0, len(ROUND[name]))
        else:
            assert record == plain[name]


def test_replay_without_a_list(rounds, tmp_path):
    (tmp_path / "list").write_text("10.0.0.1\n10.0.0.2 prt 5\n")
    done = run("replay", "--blocks", tmp_path / "list", rounds)
    assert done.code == 1 and done.stdout == b""
    assert "list:2:10: prt: no such word; did you mean port?" in done.stderr
    assert run("replay", "--blocks", tmp_path / "none", rounds).code == 1
    assert run("replay", "--blocks", "", rounds).code == 2
