# SPDX-License-Identifier: BSD-3-Clause
"""Real traffic through every driver: what is counted is what was on the wire, flow by flow."""
import pytest

import traffic
from network import AF_PACKET, AF_XDP, TAP

# Whole packets on each of these; the others carry what needs care.
EVERYTHING = pytest.mark.needs("ping", "iperf3", "curl", "tcpdump")
SHAPES = [
    pytest.param(AF_PACKET, 1, "run-to-completion", id="af_packet-1"),
    pytest.param(AF_PACKET, 2, "run-to-completion", id="af_packet-2"),
    pytest.param(AF_PACKET, 1, "split", id="af_packet-1-split"),
    pytest.param(AF_PACKET, 2, "split", id="af_packet-2-split"),
    pytest.param(AF_XDP, 1, "run-to-completion", id="af_xdp-1"),
    pytest.param(AF_XDP, 2, "split", id="af_xdp-2-split"),
    pytest.param(TAP, 1, "run-to-completion", id="tap-1"),
    pytest.param(TAP, 2, "run-to-completion", id="tap-2"),
    pytest.param(TAP, 2, "split", id="tap-2-split"),
]


@EVERYTHING
@pytest.mark.parametrize("driver, workers, threads", SHAPES)
def test_everything(tmp_path, network, millrace, captures, driver, workers, threads):
    """ping, ping6, a VLAN, iperf3 TCP and UDP both ways, and 20 MB by curl."""
    net = network(driver)
    engine = millrace("--output", "records.json", "--workers", workers, "--threads", threads,
                      network=net)
    assert {port["driver"] for port in engine.ports().values()} == {f"net_{driver}"}
    taken = captures(net)
    with engine.watched() as asked:
        traffic.ping_all(net)
        traffic.iperf_all(net)
        traffic.curl(net)
    assert asked[0] > 100
    traffic.everything_arrived(engine, net, taken)
    records = traffic.compare(engine, taken, tmp_path)
    assert sum(record["proto"] == 6 for record in records) >= 5  # two each of iperf3's, and curl's


@pytest.mark.needs("ping", "curl", "tcpdump")
def test_every_simd_level(tmp_path, network, millrace, captures, simd):
    """Each walk carries ping, ping6, a VLAN and TCP, and counts them right."""
    net = network(AF_PACKET)
    engine = millrace("--output", "records.json", "--workers", 2, network=net)
    assert [worker["simd"] for worker in engine.ask("worker show")] == [simd, simd]
    taken = captures(net)
    with engine.watched():
        traffic.ping_all(net)
        traffic.curl(net)
    traffic.everything_arrived(engine, net, taken)
    traffic.compare(engine, taken, tmp_path)
