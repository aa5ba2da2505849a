# SPDX-License-Identifier: BSD-3-Clause
"""What the behaviour tests share: the program, run as a user runs it."""
import collections
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

sys.path.append(str(ROOT / "tests" / "smoke"))

# pylint: disable=wrong-import-position
import engine  # noqa: E402
import simd as simd_levels  # noqa: E402
# pylint: enable=wrong-import-position

MILLRACE = os.environ.get("MILLRACE", str(ROOT / "build" / "millrace"))
CAPTURES = pathlib.Path(os.environ.get("MILLRACE_CAPTURES", ROOT.parent / "shared" / "captures"))
# How much slower than usual the program may be (sanitizers).
SLOWER = int(os.environ.get("MILLRACE_SLOWER", "1"))


class Run:
    """One finished run: exit code, records, summary (a dict, or None) and the other lines."""

    def __init__(self, process):
        self.code = process.returncode
        self.stdout = process.stdout
        self.stderr = process.stderr.decode(errors="replace")
        self.summary, self.lines = None, []
        for line in self.stderr.splitlines():
            if line.startswith("{"):
                self.summary = json.loads(line)
            else:
                self.lines.append(line)

    @property
    def records(self):
        return [json.loads(line) for line in self.stdout.decode().splitlines()]

    def check_sums(self):
        """Truth 3: what was received is accounted for, and so are the packets of known flows."""
        summary, records = self.summary, self.records
        drops = sum(summary["dropped"].values())
        assert summary["packets"] == summary["out"] + summary["delivered"] + drops
        assert summary["flow_packets"] == sum(
            record["packets"] + record["reverse_packets"] for record in records)
        assert summary["records"] == len(records)
        ended = collections.Counter(record["end_reason"] for record in records)
        assert {why: n for why, n in summary["ended"].items() if n} == ended


def run(*args, stdin=None, timeout=60):
    """Runs the program with these arguments, whatever they are."""
    command = [MILLRACE, *map(str, args)]
    return Run(subprocess.run(command, input=stdin, stdin=None if stdin else subprocess.DEVNULL,
                              capture_output=True, timeout=timeout * SLOWER, check=False))


@pytest.fixture
def replay():
    """replay(argument...): a replay that has to succeed, its sums checked."""
    def checked(*args, **more):
        result = run("replay", "--json", *args, **more)
        assert result.code == 0, result.stderr
        assert result.lines == []
        result.check_sums()
        return result
    return checked


@pytest.fixture
def captures():
    """The directory of captures with known truth; without one the test is skipped."""
    if not (CAPTURES / "truth.tsv").is_file():
        pytest.skip(f"no captures in {CAPTURES} (MILLRACE_CAPTURES names another place)")
    return CAPTURES


@pytest.fixture(params=simd_levels.LEVELS)
def simd(request, monkeypatch):
    """A SIMD level, each in turn: what is run in the test runs under it. Skipped where the CPU lacks it."""
    simd_levels.force(MILLRACE, request.param, monkeypatch)
    return request.param


@pytest.fixture(scope="session")
def simulated_nic(tmp_path_factory):
    """It is not built where DPDK's driver headers are missing."""
    done = run("run", "--port", "a=net_flowsim0,flow=1", "--port", "b=net_flowsim1,flow=1",
               "--wire", "a,b", "--socket", tmp_path_factory.mktemp("none") / "socket")
    if "did you mean flows=?" not in done.stderr:
        pytest.skip("this millrace has no simulated NIC")


def pytest_collection_modifyitems(items):
    """Nothing here is worth running without the program: say so once, clearly."""
    if items and not os.access(MILLRACE, os.X_OK):
        pytest.exit(f"no program at {MILLRACE}: ./dev build makes it", returncode=2)


@pytest.fixture(name="started")
def start_simulated(tmp_path):
    """started(words, *more): an engine whose port a brings what the words say; records are written."""
    from simulated import ports  # pylint: disable=import-outside-toplevel  # it imports this file
    engines = []

    def begin(words, *more, b="source=none"):
        engines.append(engine.Millrace(tmp_path / "engine", *ports(words, b), "--output", "records.json", *more))
        return engines[-1]

    yield begin
    for running in engines:
        running.kill()
