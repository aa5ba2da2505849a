# SPDX-License-Identifier: BSD-3-Clause
"""What each kind of NIC refuses, with which errno, and how long it takes at least."""
import time

import pytest

pytestmark = pytest.mark.needs("driver", "dpdk-testpmd")

QUEUE = "mark id 1 / queue index 0 / end"


def rule(number, actions=QUEUE):
    return (f"flow create 0 ingress pattern eth / ipv4 src is 10.0.{number >> 8}.{number & 255} "
            f"dst is 10.1.1.1 / udp src is 1 dst is 2 / end actions {actions}")


@pytest.mark.parametrize("profile,rules,full", (
    ("x710-stock", 7168, "No buffer space available"), ("x710", 7168, "No buffer space available"),
    ("tiny", 512, "Function not implemented"), ("e810", 16384, "Invalid argument"),
    ("cx5", 1048576, "Cannot allocate memory")))
def test_a_table_is_full_when_its_kind_says(testpmd, profile, rules, full):
    """By a smaller table of the same kind, at once, and the number that the kind itself has."""
    program = testpmd(f"net_flowsim0,profile={profile},rules=20,create_ns=0,hostile=full_errno",
                      f"net_flowsim1,profile={profile},hostile=0")
    for number in range(20):
        program.created(rule(number))
    program.does(rule(20), full)
    program.does("flow destroy 0 rule 3", "destroyed")
    program.created(rule(21))
    assert program.xstats()["flow_rules"] == 20
    assert program.telemetry("/flowsim/profile,1")["size"] == rules


def test_without_hostility_no_room_is_told_as_such(testpmd):
    program = testpmd("net_flowsim0,profile=tiny,hostile=0,rules=1")
    program.created(rule(0))
    program.does(rule(1), "No space left on device")


def test_all_rules_of_the_smallest(testpmd):
    program = testpmd("net_flowsim0,profile=tiny,hostile=0")
    for number in range(512):
        program.created(rule(number))
    program.does(rule(512), "No space left on device")


@pytest.mark.parametrize("profile,actions", (
    ("x710", "count / " + QUEUE), ("x710", "age timeout 10 / " + QUEUE),
    ("x710", "of_pop_vlan / queue index 0 / end"), ("x710-stock", "count / " + QUEUE),
    ("x710", "jump group 1 / end"), ("e810", "age timeout 10 / " + QUEUE),
    ("cx5", "mark id 1 / end"), ("cx5", "mark id 0x1000000 / queue index 0 / end"),
    ("cx5", "mark id 1 / flag / queue index 0 / end")))
def test_what_a_kind_does_not_do(testpmd, profile, actions):
    program = testpmd(f"net_flowsim0,profile={profile},hostile=0")
    answer = program.run(rule(0, actions))
    assert "Caught PMD error" in answer and "created" not in answer, answer
    program.created(rule(0))


@pytest.mark.parametrize("profile", ("x710", "e810"))
def test_the_first_rule_fixes_the_fields(testpmd, profile):
    program = testpmd(f"net_flowsim0,profile={profile},hostile=0")
    program.created(rule(0))
    other = "flow create 0 ingress pattern eth / ipv4 src is 10.0.0.1 / udp / end actions " + QUEUE
    assert "Caught PMD error" in program.run(other)
    program.does("flow destroy 0 rule 0", "destroyed")
    program.created(other)


@pytest.mark.parametrize("profile,at_least_ms", (("x710-stock", 11), ("x710-stock,spin=1", 11),
                                                 ("ideal,create_ns=30000000", 30)))
def test_a_blocking_create_takes_its_time(testpmd, profile, at_least_ms):
    program = testpmd(f"net_flowsim0,profile={profile},hostile=0")
    for number in range(3):
        begin = time.monotonic()
        program.created(rule(number))
        assert time.monotonic() - begin >= at_least_ms / 1000
