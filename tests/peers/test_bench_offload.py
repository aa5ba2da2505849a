# SPDX-License-Identifier: BSD-3-Clause
"""`./dev bench peers --measure offload`, as short as it can be: what it tells of both programs agrees."""
import json
import os
import pathlib
import subprocess

import pytest
from engine import MILLRACE

pytestmark = pytest.mark.needs("driver", "ovs", "root", "hugepages", "two processors")

BENCH = pathlib.Path(__file__).resolve().parents[2] / "devtools/bench-peers"
FLOWS, ROOM = 600, 128


@pytest.fixture(name="rows", params=["x710", "cx5"], scope="module")
def measured(request):
    """Its objects, by program and mode."""
    done = subprocess.run([BENCH, "--measure", "offload", "--nic", request.param, "--flows", str(FLOWS), "--rules",
                           str(ROOM), "--short", "--json"], capture_output=True, text=True, timeout=300, check=False,
                          env={**os.environ, "MILLRACE": MILLRACE, "PYTHONDONTWRITEBYTECODE": "1"})
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(row["nic"] == request.param and row["measure"] == "offload" for row in rows)
    return {(row["who"], row["offload"]): row for row in rows}


def test_all_of_them_are_told(rows):
    whole = {("millrace", "full")} if ("millrace", "full") in rows else set()
    assert set(rows) - whole == {("millrace", "off"), ("millrace", "mark"), ("ovs", "off"), ("ovs", "on")}
    assert {row["nic"] for row in rows.values()} == {"cx5" if whole else "x710"}
    for row in rows.values():
        assert row["flows"] == FLOWS and row["room"] == ROOM and row["load"] == "zipf"
        assert row["cycles"] > 0 and row["own_cycles"] > 0 and row["mpps"] > 0


def test_without_offload_the_nic_does_nothing(rows):
    for row in (rows["millrace", "off"], rows["ovs", "off"]):
        assert row["rules"] == [0, 0] and row["in_nic"] == row["forwarded"] == 0
        assert row["says"] == {} and row["unfit"] is None


def test_rules_fit_and_shares_are_shares(rows):
    for (_, mode), row in rows.items():
        assert all(0 <= rules <= ROOM for rules in row["rules"])
        assert 0 <= row["forwarded"] <= row["in_nic"] <= 1
        assert (row["in_nic"] > 0.1) == (mode != "off"), row


def test_what_open_vswitch_says_is_what_the_nic_counted(rows):
    row = rows["ovs", "on"]
    # its flows have one direction; one that the load never brought has none
    assert FLOWS < row["knows"] <= 2 * FLOWS
    assert row["says"] == {"yes" if row["nic"] == "cx5" else "partial": sum(row["rules"])}
    # of packets that came to it a share of the rest was marked
    marked = (row["in_nic"] - row["forwarded"]) / (1 - row["forwarded"])
    assert row["own_marked"] == pytest.approx(marked, abs=0.02)
    assert (row["forwarded"] > 0) == (row["nic"] == "cx5")


def test_each_says_something_of_a_flow_that_did_not_fit(rows):
    for (who, mode), row in rows.items():
        if who == "millrace" and mode != "off":
            unfit = row["unfit"]
            assert unfit["state"] in ("software", "refused") and len(unfit["reasons"]) == 2
            # a sentence, and the rate that would be needed
            assert len(unfit["because"]) > 10 and unfit["says"][1].startswith("handled in software")
            assert len(unfit["handled"]) == 2 and set(unfit["handled"]) <= {"software", "refused"}
            assert any("packets a second" in line for line in unfit["says"])
    unfit = rows["ovs", "on"]["unfit"]
    assert "dp:ovs" in unfit["says"][0] and "offloaded" not in unfit["says"][0]
    assert unfit["log"]["refusals"] >= len(unfit["log"]["of_this_flow"])
