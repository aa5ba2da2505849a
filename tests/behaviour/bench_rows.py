# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of `millrace bench` share: a row's keys, and what a build may be without."""
import pytest

from conftest import run

KEYS = ["bench", "measure", "load", "flows", "unit", "ours", "against", "theirs", "ratio", "goal",
        "holds", "rounds", "spread", "simd"]


@pytest.fixture(scope="module", autouse=True)
def built():
    if "bench" not in run("--help").stdout.decode():
        pytest.skip("built without bench")


@pytest.fixture(scope="module")
def simulated():
    if "built without" in run("bench", "wire", "--measure", "wire", "--flows", "1").stderr:
        pytest.skip("built without the simulated NIC")


def fits(row):
    """Whether the ratio of two costs is theirs / ours, as far as what is shown tells: costs are rounded to a tenth,
    the ratio to a hundredth, and what costs less than a twentieth counts as that much (bench/bench.c)."""
    theirs, ours, ratio = row["theirs"], row["ours"], row["ratio"]
    most = [(theirs + off) / max(ours + other, 0.05)
            for off in (-0.05, 0.05) for other in (-0.05, 0.05)]
    if theirs == ours == 0 and ratio == 1:
        return True
    return min(most) - 0.006 <= ratio <= max(most) + 0.006
