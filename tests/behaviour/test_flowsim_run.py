# SPDX-License-Identifier: BSD-3-Clause
"""`millrace run` between two simulated NICs: every packet is known in advance, and counted."""
import collections
import json
import sys

import pytest

import frames
from conftest import ROOT
from simulated import Telemetry, ports, refusal

sys.path.append(str(ROOT / "tests" / "smoke"))

import engine  # pylint: disable=wrong-import-position

FLOWS, PASSES = 5000, 7

pytestmark = pytest.mark.usefixtures("simulated_nic")


class Carried:
    """What an engine carried: its counters, once `packets` have come, and its records."""

    def __init__(self, directory, packets, *words, workers=2):
        running = engine.Millrace(directory / "engine", *words, "--workers", workers,
                                  "--output", "records.json")
        try:
            running.until(lambda: running.wire()["received"] >= packets, f"{packets} packets")
            self.wire = running.idle()
            self.ports, self.drops = running.ports(), running.drops()
            self.workers = [line for line in running.ask("worker show") if "worker" in line]
            running.stop(leaves=["records.json"])
            with (running.directory / "records.json").open(encoding="ascii") as lines:
                self.records = [json.loads(line) for line in lines]
        finally:
            running.kill()

    def check(self, packets):
        """All came, all went out, by the engine's counters, the NICs' and the records."""
        wire = self.wire
        assert wire["received"] == wire["out"] == packets
        assert (wire["dropped"], wire["held"], self.drops) == (0, 0, {})
        assert sum(port["nic"]["rx_packets"] for port in self.ports.values()) == packets
        assert sum(port["nic"]["tx_packets"] for port in self.ports.values()) == packets
        assert sum(worker["received"] for worker in self.workers) == packets
        assert sum(r["packets"] + r["reverse_packets"] for r in self.records) == packets
        keys = collections.Counter(engine.flow_key(record) for record in self.records)
        assert set(keys.values()) == {1}
        return self

    def check_spread(self):
        """By the NIC's own RSS: both workers have their flows, and hand none over."""
        assert {port["sharding"] for port in self.ports.values()} == {"rss"}
        for worker in self.workers:
            assert worker["received"] > 0
            assert (worker["handed_out"], worker["handed_in"]) == (0, 0)


@pytest.mark.parametrize("kind", [
    "size=64",
    "proto=tcp,size=64-1500,load=uniform",
    "proto=mix,ipv6=40,vlan=30,size=imix",
])
def test_both_directions_of_every_flow(tmp_path, kind):
    words = f"flows={FLOWS},passes={PASSES},{kind}"
    packets = 2 * FLOWS * PASSES
    carried = Carried(tmp_path, packets, *ports(f"{words},side=forward", f"{words},side=reverse"))
    carried.check(packets).check_spread()
    assert len(carried.records) == FLOWS
    for record in carried.records:
        assert record["packets"] == record["reverse_packets"] == PASSES
    if "ipv6=40" in kind:
        assert {record["version"] for record in carried.records} == {4, 6}
        assert {record["proto"] for record in carried.records} == {1, 6, 17, 58, 132}


def test_under_every_simd_level(tmp_path, simd):
    words = f"flows={FLOWS},passes={PASSES},proto=mix,ipv6=40,vlan=30,size=imix"
    packets = 2 * FLOWS * PASSES
    carried = Carried(tmp_path, packets, *ports(f"{words},side=forward", f"{words},side=reverse"))
    carried.check(packets).check_spread()
    assert [worker["simd"] for worker in carried.workers] == [simd, simd]
    assert len(carried.records) == FLOWS
    for record in carried.records:
        assert record["packets"] == record["reverse_packets"] == PASSES


def test_one_direction_and_one_worker(tmp_path):
    packets = FLOWS * PASSES
    carried = Carried(tmp_path, packets, *ports(f"flows={FLOWS},passes={PASSES}"), workers=1)
    carried.check(packets)
    assert len(carried.records) == FLOWS
    assert all(record["reverse_packets"] == 0 for record in carried.records)
    assert carried.ports["b"]["nic"]["tx_packets"] == packets


def test_a_capture_again_and_again(tmp_path):
    tcp = frames.Tcp(0, "10.0.0.1", 1025, "10.0.0.2", 80).open().talk(times=3)
    path = frames.write(tmp_path / "it.pcap", tcp, frames.udp(1, "10.0.0.1", 9, "10.0.0.3", 53))
    once = len(tcp.packets) + 1
    carried = Carried(tmp_path, once * PASSES, *ports(f"capture={path},passes={PASSES}"))
    carried.check(once * PASSES)
    assert len(carried.records) == 2


@pytest.mark.parametrize("words, said", [
    ("flow=3", "did you mean flows=?"),
    ("flows=zero", "flows=zero"),
    ("profile=tinny", "did you mean tiny?"),
    ("capture=/no/such/file", "/no/such/file"),
    ("port=net_ring7", "net_ring7"),
    ("port=[net_nul0]", "net_nul0"),
    ("port=[net_null7,word=1]", "net_null7"),
    ("fault=loose", "loose"),
])
def test_words_that_it_does_not_know(words, said):
    code, line = refusal(*ports(words))
    assert code in (1, 2) and said in line and line.count("\n") == 1, line


def test_faults_of_a_running_engine(tmp_path):
    """Set by DPDK's telemetry, and struck: a ghost of an earlier run marks what it was told."""
    places = tmp_path / "run"
    places.mkdir()
    ghosts = "flows=8,hostile=0,fault=ghost:rules=8"
    running = engine.Millrace(tmp_path / "engine", *ports(ghosts), "--telemetry",
                              environment={"RUNTIME_DIRECTORY": str(places)})
    try:
        telemetry = Telemetry(running)
        assert telemetry.path.startswith(str(places))
        assert telemetry("/flowsim/list") == [0, 1]
        told = telemetry("/flowsim/fault,0:wrong_mark:times=5,value=3")
        # it may have struck five times by the time that it is told
        assert told["wrong_mark"]["on"] == 1 or told["wrong_mark"]["strikes"] == 5
        running.until(lambda: telemetry("/flowsim/faults,0")["wrong_mark"]["strikes"] == 5,
                      "five wrong marks")
        assert "error" in telemetry("/flowsim/fault,0:loose")
        assert running.ask("config show")[0]["telemetry"] is True
        running.stop()
    finally:
        running.kill()
    assert not list(places.rglob("dpdk_telemetry*"))
