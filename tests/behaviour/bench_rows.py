# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of `millrace bench` share: a row's keys, and what a build may be without."""
import pytest

from conftest import run

KEYS = ["bench", "measure", "load", "flows", "unit", "ours", "against", "theirs", "ratio", "goal",
        "holds", "rounds", "spread"]


@pytest.fixture(scope="module", autouse=True)
def built():
    if "bench" not in run("--help").stdout.decode():
        pytest.skip("built without bench")


@pytest.fixture(scope="module")
def simulated():
    if "built without" in run("bench", "wire", "--measure", "wire", "--flows", "1").stderr:
        pytest.skip("built without the simulated NIC")
