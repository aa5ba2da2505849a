# SPDX-License-Identifier: BSD-3-Clause
"""Real TCP through a simulated NIC that sends whole flows on alone: over af_packet, packet by packet.

The worker sees what begins and ends connections, and few packets besides; records have all of them, as captures do.
"""
import contextlib
import json
import socket

import pytest

import traffic
from engine import SLOWER, read_records
from network import AF_PACKET, INTERFACES, ring_bytes

pytestmark = pytest.mark.needs("namespaces", "iperf3")
BYTES = 100 * traffic.MEGABYTES


def wrapped():
    """The two ports of one ConnectX-5, over the interfaces of the namespace."""
    for i, (name, interface) in enumerate(zip("ab", INTERFACES)):
        device = (f"net_af_packet{i},iface={interface},blocksz=65536,framesz=2048,"
                  f"framecnt={ring_bytes() // 2048}")
        yield from ("--port", f"{name}=net_flowsim{i},port=[{device}],nic=n,profile=cx5")
    yield from ("--wire", "a,b", "--offload-threshold", "100", "--telemetry")


def started(millrace, net, tmp_path, *more):
    """The engine, when what its ports take is known."""
    engine = millrace("--output", "records.json", *wrapped(), *more, network=net, joined=False,
                      environment={"RUNTIME_DIRECTORY": str(tmp_path)})
    engine.until(lambda: all(port["ready"] and port["slots"] for port in engine.ask("offload show")),
                 "flows can be offloaded")
    return engine


def run_iperf(net, client, *options):
    """So many bytes of TCP, at the rate that comes of it (in bits a second)."""
    server = net.right if client is net.left else net.left
    with contextlib.closing(traffic.Iperf(server)) as iperf:
        told = iperf.run(client, "-n", BYTES, "-w", traffic.WINDOW, *options)
    assert told["sum_received"]["bytes"] > 0.9 * BYTES
    return told["sum_received"]["bits_per_second"]


def connections(flows):
    """iperf3's two, the one with data last."""
    mine = [flow for flow in flows if flow["proto"] == 6]
    return sorted(mine, key=lambda flow: flow["packets"] + flow["reverse_packets"])


def strike(engine, tmp_path, fault):
    """At both ports."""
    path = next(line.split("telemetry: ")[1] for line in engine.stderr.splitlines()
                if "telemetry: " in line)
    assert path.startswith(str(tmp_path))

    def tell(command):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.settimeout(30 * SLOWER)
            connection.connect(path)
            connection.recv(16384)
            connection.sendall(command.encode())
            return json.loads(connection.recv(16384))
    for port in tell("/flowsim/list")["/flowsim/list"]:
        assert "error" not in tell(f"/flowsim/fault,{port}:{fault}")["/flowsim/fault"]


def nothing_is_there(engine):
    return all(port["rules"] == 0 for port in engine.ask("offload show"))


@pytest.mark.needs("tcpdump")
def test_connections_are_sent_on(tmp_path, network, millrace, captures):
    """Both ways, the worker sees few packets, and each record has what the capture has."""
    net = network(AF_PACKET)
    engine = started(millrace, net, tmp_path, "--offload-mode", "full")
    taken = captures(net)
    for client in (net.left, net.right):
        run_iperf(net, client)
    engine.until(lambda: not any(end.space.tcp_under_way() for end in net.ends), "TCP is over")
    engine.until(lambda: nothing_is_there(engine), "all is in software")
    wire = engine.idle()
    sent = wire["nic_forwarded"] + wire["out"]
    engine.until(lambda: all(capture.count() == sent for capture in taken), "all is captured", timeout=15)
    for capture in taken:
        capture.stop()
    assert wire["nic_unaccounted"] == 0 and engine.drops() == {}
    assert wire["nic_forwarded"] > 9 * wire["received"]
    flows = engine.flows()
    assert len(connections(flows)) == 4
    for flow in connections(flows):
        assert flow["state"] == "closing" and "estimated" not in flow["offload"]
        # SYN, and what ended it: iperf3's server resets what it has all data of
        assert flow["tcp_flags"] & 2 and flow["reverse_tcp_flags"] & 2
        assert (flow["tcp_flags"] | flow["reverse_tcp_flags"]) & 5
    assert sum(flow["packets"] + flow["reverse_packets"] for flow in flows) == \
        sent - wire["non_ip"]
    assert sum(flow["bytes"] + flow["reverse_bytes"] for flow in flows) >= 2 * BYTES
    engine.stop(leaves=["records.json"])
    records = read_records(tmp_path / "run" / "records.json")
    assert {record["end_reason"] for record in connections(records)} <= {"fin", "rst"}
    truths = [traffic.replay(capture.path) for capture in taken]
    for truth in truths:
        assert {key(flow) for flow in truth} == {key(record) for record in records}


def key(flow):
    """Who spoke to whom, and how much."""
    return tuple(flow[name] for name in ("proto", "src", "sport", "dst", "dport", "packets", "bytes",
                                         "reverse_packets", "reverse_bytes"))


def test_the_rate_is_kept(tmp_path, network, millrace):
    """What the NIC does alone is not slower than what the CPU does with marks."""
    rates = {}
    for mode in ("mark", "full"):
        net = network(AF_PACKET)
        engine = started(millrace, net, tmp_path, "--offload-mode", mode, "--poll", "always")
        rates[mode] = max(run_iperf(net, net.left) for _ in range(3))
        engine.stop(leaves=["records.json"])
        (tmp_path / "run" / "records.json").unlink()
    print(rates)
    assert rates["full"] > 0.5 * rates["mark"]


@pytest.mark.parametrize("fault", ["forget", "reset", "dead"])
def test_the_table_goes(tmp_path, network, millrace, fault):
    """In the middle of a connection, which lives on in software: not a packet is lost by that."""
    net = network(AF_PACKET)
    engine = started(millrace, net, tmp_path, "--offload-mode", "full")
    with contextlib.closing(traffic.Iperf(net.right)) as iperf:
        iperf.await_server()
        client = net.left.space.popen("iperf3", "-c", net.right.address, "-t", 4, "--json",
                                      stdout=-1, text=True)
        engine.until(lambda: [flow for flow in engine.ask("flow list")
                              if flow["offload"].get("how") == "full"
                              and flow["offload"]["packets"] > 1000], "the NIC has it")
        before = engine.wire()["received"]
        strike(engine, tmp_path, fault)
        engine.until(lambda: engine.wire()["received"] > before + 100, "it is in software")
        told = json.loads(client.communicate(timeout=60)[0])["end"]
    assert told["sum_received"]["bytes"] > 0
    engine.until(lambda: not any(end.space.tcp_under_way() for end in net.ends), "TCP is over")
    assert engine.drops() == {}
    data = connections(engine.flows())[-1]
    assert data["state"] == "closing"
    events = [line for line in engine.ask("offload events") if line["event"] == "flow"]
    assert any(line["reason"] == "returned" for line in events)
    engine.stop(leaves=["records.json"])
    records = connections(read_records(tmp_path / "run" / "records.json"))
    assert len(records) == 2
    estimated = records[-1]["offload"].get("estimated", False)
    # what the card had counted last went with its table
    assert estimated == (fault != "forget")
    assert records[-1]["bytes"] >= told["sum_sent"]["bytes"] or estimated
