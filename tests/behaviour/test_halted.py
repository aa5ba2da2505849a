# SPDX-License-Identifier: BSD-3-Clause
"""An engine of which one thread gets no turn: who waits for it, who does not, and that nothing is lost."""
import select
import sys

import pytest

from conftest import ROOT
from halted import halted
from simulated import ports

sys.path.append(str(ROOT / "tests" / "smoke"))

import engine  # pylint: disable=wrong-import-position

NULL_PORTS = ["--port", "a=net_null0,copy=0", "--port", "b=net_null1,copy=0", "--wire", "a,b",
              "--offload", "off"]


def test_others_are_served_while_a_worker_hangs(tmp_path):
    """Who asks that worker waits. Others are answered before that one is, and it is once the worker turns again."""
    running = engine.Millrace(tmp_path / "engine", *NULL_PORTS, "--workers", 2, "--flows", 1000)
    try:
        with engine.Connection(running.socket) as first, engine.Connection(running.socket) as other:
            with halted(running.process.pid, "worker-1"):
                first.send("wire show")
                for _ in range(50):
                    assert other.ask("config show")[0]
                # after five seconds it is told that a thread does not answer
                assert not select.select([first.socket], [], [], 0)[0], first.next()
            assert first.next()["wire"] == 0
            assert first.next()["error"] is None
            assert len(other.ask("worker show")[0]) == 2
        running.stop()
    finally:
        running.kill()


@pytest.mark.usefixtures("simulated_nic")
def test_reports_wait_for_the_exporter(tmp_path):
    """A worker has room for 65,536: the flows of a second, at such a rate, and more than the 60,000 of this test."""
    flows, room_once = 60000, 4096
    running = engine.Millrace(tmp_path / "engine", *ports(f"flows={flows},passes=1,pace=80000"),
                              "--workers", 1, "--flows", 1024, "--output", "records.json")
    try:
        with halted(running.process.pid, "exporter"):
            before = running.wire()["received"]
            running.until(lambda: running.wire()["received"] == flows, "all have come")
        running.stop(leaves=["records.json"])
        assert f"{flows:,} records: {flows:,} written, 0 lost" in running.stderr
        with (running.directory / "records.json").open("rb") as records:
            assert sum(1 for _ in records) == flows
        if flows - before < 4 * room_once:
            pytest.skip(f"the exporter was halted too late, behind {before:,} packets")
    finally:
        running.kill()
