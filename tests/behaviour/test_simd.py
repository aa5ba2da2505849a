# SPDX-License-Identifier: BSD-3-Clause
"""The environment variable that forces a SIMD level."""
import subprocess

import pytest

import frames
import simd as simd_levels
from conftest import MILLRACE, run

COMMANDS = "run", "replay", "bench"


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("level", ["foo", "AVX2", "avx2 ", "sse42,avx2",
                                   pytest.param("x" * 5000, id="long")])
def test_a_wrong_level_is_refused(command, level):
    """In one line, which has the levels that there are, before anything else is done."""
    code, said = simd_levels.refusal(MILLRACE, level, command)
    if command == "bench" and "built without" in said:
        pytest.skip("this program has no benches")
    assert code == 2
    assert said.count("\n") == 1
    assert said.startswith(f"millrace: MILLRACE_SIMD={level[:20]}")
    assert "no such SIMD level; this processor has portable" in said


@pytest.mark.parametrize("command", COMMANDS)
def test_a_level_that_the_processor_lacks_is_refused(command):
    lacking = [level for level in simd_levels.LEVELS if not simd_levels.has(MILLRACE, level)]
    if not lacking:
        pytest.skip("this CPU has every level")
    code, said = simd_levels.refusal(MILLRACE, lacking[-1], command)
    if command == "bench" and "built without" in said:
        pytest.skip("this program has no benches")
    assert (code, said.count("\n")) == (2, 1)
    assert f"MILLRACE_SIMD={lacking[-1]}: this processor lacks it; it has portable" in said


def test_help_needs_no_level(monkeypatch):
    monkeypatch.setenv("MILLRACE_SIMD", "foo")
    for words in (["help", "run"], ["replay", "--help"], ["--version"], ["help"]):
        result = run(*words)
        assert (result.code, result.stderr) == (0, ""), words


def test_a_level_that_is_empty_is_none(monkeypatch, tmp_path):
    monkeypatch.setenv("MILLRACE_SIMD", "")
    path = frames.write(tmp_path / "it.pcap", frames.udp(1, "10.0.0.1", 9, "10.0.0.3", 53))
    assert run("replay", path).code == 0


def test_records_under_every_level(simd, tmp_path, replay):
    tcp = frames.Tcp(0, "10.0.0.1", 1025, "10.0.0.2", 80).open().talk(times=3).close()
    path = frames.write(tmp_path / "it.pcap", tcp, frames.udp(1, "fd00::1", 9, "fd00::3", 53))
    records = replay(path).records
    assert sorted(record["proto"] for record in records) == [6, 17], simd
