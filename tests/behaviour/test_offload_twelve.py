# SPDX-License-Identifier: BSD-3-Clause
"""The last of the twelve defects of tests/path/test_offload_twelve.c: how the program is set up and run."""
import json
import sys

import pytest

from conftest import ROOT
from simulated import Telemetry

sys.path.append(str(ROOT / "tests" / "smoke"))

import engine  # pylint: disable=wrong-import-position

pytestmark = pytest.mark.usefixtures("simulated_nic")

# So long that the NICs have been tried long before the last packet.
FLOWS, PASSES = 400, 40000

CONFIG = f"""
ports:
  - {{name: lan, device: "net_flowsim0,flows={FLOWS},passes={PASSES},side=forward,proto=mix"}}
  - {{name: wan, device: "net_flowsim1,flows={FLOWS},passes={PASSES},side=reverse,proto=mix"}}
wires:
  - [lan, wan]
workers: 2
telemetry: yes
output: records.json
offload:
  enabled: on
  threshold: 0
  slots: 1000
"""


def test_founding_12_two_workers_and_queues_by_configuration(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "it.yaml").write_text(CONFIG)
    running = engine.Millrace(tmp_path / "engine", "--config", tmp_path / "it.yaml",
                              environment={"RUNTIME_DIRECTORY": str(tmp_path / "run")})
    try:
        packets = 2 * FLOWS * PASSES
        running.until(lambda: running.wire()["received"] >= packets, f"{packets} packets",
                      timeout=90)
        wire = running.idle()
        assert wire["received"] == wire["out"] == packets
        workers = [line for line in running.ask("worker show") if "worker" in line]
        assert len(workers) == 2
        for worker in workers:
            # each has its own queue of each port, with its own flows
            assert worker["received"] > 0 and worker["flows"] > 0
            assert (worker["handed_in"], worker["handed_out"]) == (0, 0)
            assert {port["port"] for port in worker["ports"] if port["rx_packets"]} == {"lan", "wan"}
        assert {port["rx_queues"] for port in running.ports().values()} == {2}
        listed = [json.loads(line) for line in running.client(
            "flow", "list", "--offload", "in_hw", "--json").splitlines()]
        assert len(listed) == FLOWS
        assert {flow["worker"] for flow in listed} == {0, 1}
        for port in running.ask("offload show"):
            assert (port["rules"], port["flows"]["in_hw"], port["slots_used"]) == (
                FLOWS, FLOWS, FLOWS)
            assert (port["strangers"], port["ghosts"], port["health"]["opened"]) == (0, 0, 0)
        assert f"rules {FLOWS}" in running.client("offload", "show")
        telemetry = Telemetry(running)
        marked = sum(telemetry(f"/ethdev/xstats,{port}")["rx_marked"] for port in (0, 1))
        assert marked > 0
        running.stop(leaves=["records.json"])
        records = engine.read_records(running.directory / "records.json")
        assert len(records) == FLOWS
        for record in records:
            assert record["packets"] == record["reverse_packets"] == PASSES
            assert record["end_reason"] == "shutdown"
            assert record["offload"]["state"] == "in_hw"
            assert 0 < record["offload"]["packets"] < 2 * PASSES
        assert sum(record["offload"]["packets"] for record in records) == marked
    finally:
        running.kill()
